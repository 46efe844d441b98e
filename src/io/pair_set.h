/* SPDX-License-Identifier: Apache-2.0 */
/* Inner workings of pairs: lists made by counting sort, in time linear in rows and entries. */
#ifndef UNICON_IO_PAIR_SET_H
#define UNICON_IO_PAIR_SET_H

#include "io/pairs.h"

/* `lists` empty lists with room for `entries` together. */
unicon_status unicon__lists_new(unicon_ctx *ctx, unicon__arena *arena, int64_t lists,
                                int64_t entries, bool weighted, unicon__lists *out);

/* Fills `to` (n_to lists, new) with the entries of `from` (n_from lists) seen from the other side:
 * i stands in list j of `to` where j stands in list i of `from`. Lists come out ascending. */
void unicon__lists_transpose(const unicon__lists *from, int64_t n_from, unicon__lists *to,
                             int64_t n_to);

/* The members of each class, ascending: list c has the rows i with class_of[i] == c. */
unicon_status unicon__lists_group(unicon_ctx *ctx, unicon__arena *arena, const int32_t *class_of,
                                  int64_t rows, int64_t classes, unicon__lists *out);

bool unicon__partners_have(unicon__partners partners, int64_t item);

/* Counts the pairs of a label set: the sum over classes of x members times y members, less those of
 * a row with itself. */
int64_t unicon__count_class_pairs(const unicon_pairs *pairs);

/* An empty object for 1 .. INT32_MAX rows on each side; NULL with the error set. */
unicon_pairs *unicon__pairs_new(unicon_ctx *ctx, int64_t n_x, int64_t n_y);

/* Hands the pairs over, or destroys them where making them failed. */
unicon_status unicon__pairs_finish(unicon_pairs *pairs, unicon_status status, unicon_pairs **out);

/* The makers behind unicon_pairs_list, _labels, _set_ignored and _set_negatives, for callers that
 * are inside a call already. `what` begins the error sentences. */
unicon_status unicon__pairs_from_list(unicon_ctx *ctx, const char *what, int64_t n_x, int64_t n_y,
                                      const int64_t *x, const int64_t *y, const double *weight,
                                      int64_t count, unicon_pairs **out);

typedef enum unicon__labelled {
  UNICON__LABELS_WHOLE,  /* some label must be on both sides */
  UNICON__LABELS_PART,   /* none has to: partners may be in other parts */
  UNICON__LABELS_ONE_SET /* both sides are the same rows */
} unicon__labelled;

unicon_status unicon__pairs_from_labels(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                        const int64_t *label_y, int64_t n_y, unicon__labelled how,
                                        unicon_pairs **out);
/* Rows with class numbers below `classes`, whose keys are given; none has to meet another. */
unicon_status unicon__pairs_from_classes(unicon_ctx *ctx, const int32_t *class_x, int64_t n_x,
                                         const int32_t *class_y, int64_t n_y, const int64_t *key,
                                         int32_t classes, unicon_pairs **out);
/* "FILE: the list of negative pairs is empty; HINT" of "FILE: negative pair". */
unicon_status unicon__fail_empty_list(unicon_ctx *ctx, const char *what, const char *hint);

/* No ignored pairs are simply none; no negatives at all leave nothing to tell pairs from. */
unicon_status unicon__pairs_add_set(unicon_ctx *ctx, unicon_pairs *pairs, unicon__pair_kind kind,
                                    const char *what, const int64_t *x, const int64_t *y,
                                    const double *weight, int64_t count);

#endif
