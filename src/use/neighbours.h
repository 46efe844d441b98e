/* SPDX-License-Identifier: Apache-2.0 */
/* How much of one model's answers another arrangement finds. The right answers of a query are its
 * ten nearest items by the new model, or items that people judged:
 *
 *     overlap@10   share of the right ten among the first ten found
 *     ndcg@10      sum of gain / log2(1 + place) over the first ten, over that of the best order;
 *                  gain 1 for neighbours, the grade for judged items
 *
 * Where queries are items themselves, an item is never its own answer. */
#ifndef UNICON_USE_NEIGHBOURS_H
#define UNICON_USE_NEIGHBOURS_H

#include "io/pairs.h"

enum { UNICON__NEIGHBOURS = 10 };

typedef enum unicon__figure { UNICON__OVERLAP, UNICON__NDCG, UNICON__FIGURES } unicon__figure;

/* Means over the queries with 95 % intervals, mean +- 1.96 standard errors. */
typedef struct unicon__figures {
  int64_t queries;
  double value[UNICON__FIGURES], low[UNICON__FIGURES], high[UNICON__FIGURES];
} unicon__figures;

/* Of the figures of every query, UNICON__FIGURES numbers each, NaN where it has no right answer. */
void unicon__figures_of(const double *each, int64_t queries, unicon__figures *out);

/* Mean of the differences a - b of one figure over queries that have both, and its standard error.
 */
void unicon__figures_gain(const double *a, const double *b, int64_t queries, unicon__figure figure,
                          double *gain, double *error);

/* ---- one set of items --------------------------------------------------------------------- */

/* Queries with their right answers among some items. */
typedef struct unicon__jury {
  int64_t queries, items;
  bool self;                  /* query i is item i */
  int64_t *answer;            /* queries by UNICON__NEIGHBOURS: items by the new model */
  const unicon_pairs *judged; /* query by row, weights are grades; NULL: neighbours */
  const int64_t *original;    /* the row that each item is, in the judgements */
  const bool *drawn;          /* of their rows: is it among the items? NULL: all are */
} unicon__jury;

/* The ten nearest items of each query by the new model, as rows of `width` at length 1. */
unicon_status unicon__jury_open(unicon_ctx *ctx, const float *query, const float *item,
                                int64_t width, unicon__jury *jury);

/* The k nearest items of each query by the products of rows of `width`, best first; -1 where there
 * are no more. */
unicon_status unicon__jury_find(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, int64_t k, int64_t *list);

/* Judges lists of items, best first, k >= 10 for each query: figures of each into `each`. */
void unicon__jury_judge(const unicon__jury *jury, const int64_t *list, int64_t k, double *each);

/* Both: finds, then judges. */
unicon_status unicon__jury_rows(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, double *each);

/* The k largest of score[first .. first + count - 1] but for item `self`, by insertion: few of many
 * get in. Equal scores come in order; -1 where there are no more. */
void unicon__top_items(const float *score, int64_t first, int64_t count, int64_t self, int64_t k,
                       int64_t *list);

/* ---- items in folds ----------------------------------------------------------------------- */

/* Items that are searched fold by fold: each is a small index that a map has not seen. Queries are
 * the items themselves, each asked in its fold, or others, asked in every fold, whose figures are
 * means over the folds. Judged items may lie in any fold, so with judgements there is one. */
typedef struct unicon__panel {
  int64_t items, folds, queries;
  bool self;
  const unicon_pairs *judged; /* as in a jury */
  const int64_t *original;
  const bool *drawn;
  unicon__jury *jury; /* of each fold */
} unicon__panel;

static inline int64_t unicon__panel_first(const unicon__panel *panel, int64_t fold) {
  return panel->items * fold / panel->folds;
}

/* Opens the juries of the panel, whose other members are set. */
unicon_status unicon__panel_open(unicon_ctx *ctx, const float *query, const float *item,
                                 int64_t width, unicon__panel *panel);

/* Figures of every query (`each` has room for queries times UNICON__FIGURES) and their means, when
 * rows are ranked by their products. */
unicon_status unicon__panel_rows(unicon_ctx *ctx, const unicon__panel *panel, const float *query,
                                 const float *item, int64_t width, double *each,
                                 unicon__figures *out);

/* The figure that decides. */
static inline unicon__figure unicon__panel_leads(const unicon__panel *panel) {
  return panel->jury[0].judged ? UNICON__NDCG : UNICON__OVERLAP;
}

#endif
