/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse sets over the n_x by n_y plane: positives P, ignored pairs, explicit negatives.
 *
 * Partners of a row come as a sorted list, whichever way they are stored: a list of pairs is kept
 * by row and by column (CSR and CSC); class labels are kept as the members of each class, so that
 * rows of one class share one list. */
#ifndef UNICON_IO_PAIRS_H
#define UNICON_IO_PAIRS_H

#include "io/bytes.h"

/* Lists: item[start[i]] .. item[start[i+1]-1], ascending. `weight` is NULL when all are as usual:
 * 1, but 0 for ignored pairs. */
typedef struct unicon__lists {
  int64_t *start;
  int32_t *item;
  float *weight;
} unicon__lists;

/* A set of pairs, reachable from both sides. */
typedef struct unicon__pair_set {
  unicon__lists by_x, by_y;
  int64_t count; /* 0: the set is empty and the lists may be NULL */
} unicon__pair_set;

struct unicon_pairs {
  unicon__arena arena; /* holds everything below, this struct too */
  int64_t n_x, n_y;
  unicon__pair_set positive;  /* with labels: by_x lists the x members of each class, by_y the y
                                 members */
  int32_t *class_x, *class_y; /* NULL unless made from labels: class of each row */
  int32_t classes;
  int64_t *class_key;        /* of each class, ascending: the same for the same label in any set */
  int32_t *self_x, *self_y;  /* NULL unless x and y are one set: the row of the other side that is
                                the  same, or -1. It is neither positive nor negative. */
  int64_t selfs;             /* such pairs */
  unicon__pair_set ignore;   /* not positive; the weight is what they count as negatives */
  unicon__pair_set negative; /* if only_listed: the only negatives there are, and what they count */
  bool only_listed;
};

/* One row's (or column's) list; partner k is unicon__partner(p, k). */
typedef struct unicon__partners {
  const int32_t *item;
  const float *weight; /* NULL: all as usual */
  int64_t count;
  int64_t hole; /* place in `item` that is left out: the row itself, in the list of its class */
} unicon__partners;

static inline unicon__partners unicon__list_at(const unicon__lists *lists, int64_t i) {
  unicon__partners p = {lists->item, NULL, 0, INT64_MAX};
  if (!lists->start) return p;
  const int64_t from = lists->start[i];
  p.item = lists->item + from;
  p.weight = lists->weight ? lists->weight + from : NULL;
  p.count = lists->start[i + 1] - from;
  return p;
}

static inline int64_t unicon__partner(unicon__partners p, int64_t k) {
  return p.item[k < p.hole ? k : k + 1];
}

/* The part of a list with items in [from, to): first position and length. */
static inline int64_t unicon__list_range(unicon__partners p, int64_t from, int64_t to,
                                         int64_t *length) {
  int64_t low = 0, high = p.count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (unicon__partner(p, middle) < from)
      low = middle + 1;
    else
      high = middle;
  }
  const int64_t first = low;
  high = p.count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (unicon__partner(p, middle) < to)
      low = middle + 1;
    else
      high = middle;
  }
  *length = low - first;
  return first;
}

/* The column that is row i itself, and the row that is column j; -1: none. */
static inline int64_t unicon__self_x(const unicon_pairs *pairs, int64_t i) {
  return pairs->self_x ? pairs->self_x[i] : -1;
}

static inline int64_t unicon__self_y(const unicon_pairs *pairs, int64_t j) {
  return pairs->self_y ? pairs->self_y[j] : -1;
}

/* The list without `item`, which it has. */
static inline unicon__partners unicon__list_without(unicon__partners p, int64_t item) {
  int64_t one;
  if (item < 0) return p;
  p.hole = unicon__list_range(p, item, item + 1, &one);
  p.count--;
  return p;
}

/* Positives of row i of x (columns j), and of row j of y (rows i). */
static inline unicon__partners unicon__positives_x(const unicon_pairs *pairs, int64_t i) {
  if (!pairs->class_x) return unicon__list_at(&pairs->positive.by_x, i);
  return unicon__list_without(unicon__list_at(&pairs->positive.by_y, pairs->class_x[i]),
                              unicon__self_x(pairs, i));
}

static inline unicon__partners unicon__positives_y(const unicon_pairs *pairs, int64_t j) {
  if (!pairs->class_y) return unicon__list_at(&pairs->positive.by_y, j);
  return unicon__list_without(unicon__list_at(&pairs->positive.by_x, pairs->class_y[j]),
                              unicon__self_y(pairs, j));
}

/* The pairs of row i of x, or of y, whose weight as negatives is listed: all negatives there are,
 * or those that count less than others. */
static inline unicon__partners unicon__listed(const unicon_pairs *pairs, bool x, int64_t i) {
  const unicon__pair_set *set = pairs->only_listed ? &pairs->negative : &pairs->ignore;
  return unicon__list_at(x ? &set->by_x : &set->by_y, i);
}

/* epsilon of entry k of that list. */
static inline double unicon__epsilon(const unicon_pairs *pairs, unicon__partners listed,
                                     int64_t k) {
  return listed.weight ? (double)listed.weight[k] : pairs->only_listed ? 1 : 0;
}

/* Row i with row i. */
unicon_status unicon__pairs_identity(unicon_ctx *ctx, int64_t n_x, int64_t n_y, unicon_pairs **out);

/* The pairs among the given rows, renumbered: row a of the result is x_keep[a] of `pairs`, and so
 * for y (NULL keeps all). Kept lists are ascending. */
unicon_status unicon__pairs_subset(unicon_ctx *ctx, const unicon_pairs *pairs,
                                   const int64_t *x_keep, int64_t x_count, const int64_t *y_keep,
                                   int64_t y_count, unicon_pairs **out);

/* What pairs are listed as. Weights of positives are at least 0, those of the others 0 to 1. */
typedef enum unicon__pair_kind {
  UNICON__PAIR_POSITIVE,
  UNICON__PAIR_IGNORED,
  UNICON__PAIR_NEGATIVE
} unicon__pair_kind;

/* Builds both directions of a set from `count` pairs. Fails on an index out of range or a pair
 * given twice, naming it; `what` is "pair", "ignored pair", ... */
unicon_status unicon__pair_set_build(unicon_ctx *ctx, unicon__arena *arena, const char *what,
                                     unicon__pair_kind kind, int64_t n_x, int64_t n_y,
                                     const int64_t *x, const int64_t *y, const double *weight,
                                     int64_t count, unicon__pair_set *out);

/* Reads `x<TAB>y[<TAB>weight]` lines (tabs, blanks or commas; # comments; one header line) or an
 * npy n by 2 or 3 (the third column: weight) of integers or float64 into arrays of the context's
 * frame; *weight is NULL when the file has none. */
unicon_status unicon__pairs_parse(unicon_ctx *ctx, const char *path, int64_t **x, int64_t **y,
                                  double **weight, int64_t *count);

/* The same from memory; `name` is what errors call it. */
unicon_status unicon__pairs_parse_bytes(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                        int64_t **x, int64_t **y, double **weight, int64_t *count);

/* Reads one label per row (text lines, or integer npy) from memory as numbers that are equal for
 * equal labels (unicon_label_number). `y_name` may be NULL: there is one file. Arrays live in the
 * frame. */
unicon_status unicon__labels_parse(unicon_ctx *ctx, const char *x_name, unicon__bytes x_bytes,
                                   const char *y_name, unicon__bytes y_bytes, int64_t **label_x,
                                   int64_t *n_x, int64_t **label_y, int64_t *n_y);

#endif
