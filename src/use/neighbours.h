/* SPDX-License-Identifier: Apache-2.0 */
/* How much of one model's answers another arrangement finds. The right answers of a query are its
 * ten nearest items by the new model, or items that people judged:
 *
 *     overlap@10   share of the right ten among the first ten found
 *     ndcg@10      sum of gain / log2(1 + place) over the first ten, over that of the best order;
 *                  gain 1 for neighbours, the grade for judged items
 *     within@200   share of the right ones among the first 200: what is left for a second pass
 *                  that embeds those anew
 *
 * Where queries are items themselves, an item is never its own answer. */
#ifndef UNICON_USE_NEIGHBOURS_H
#define UNICON_USE_NEIGHBOURS_H

#include "io/pairs.h"

enum { UNICON__NEIGHBOURS = 10, UNICON__CASCADE = 200 };

/* Queries with their right answers. */
typedef struct unicon__jury {
  int64_t queries, items;
  const int64_t *self;        /* the item that each query is; NULL: queries are no items */
  int64_t *answer;            /* queries by UNICON__NEIGHBOURS: items by the new model */
  const unicon_pairs *judged; /* query by row, weights are grades; NULL: neighbours */
  const int64_t *original;    /* the row that each item is, in the judgements */
} unicon__jury;

typedef enum unicon__figure {
  UNICON__OVERLAP,
  UNICON__NDCG,
  UNICON__WITHIN,
  UNICON__FIGURES
} unicon__figure;

/* Means over the queries with 95 % intervals, mean +- 1.96 standard errors. */
typedef struct unicon__figures {
  int64_t queries;
  double value[UNICON__FIGURES], low[UNICON__FIGURES], high[UNICON__FIGURES];
} unicon__figures;

/* The ten nearest items of each query by the new model, as rows of `width` at length 1. */
unicon_status unicon__jury_open(unicon_ctx *ctx, const float *query, const float *item,
                                int64_t width, unicon__jury *jury);

/* The k nearest items of each query by the products of rows of `width`, best first, without the
 * item that it is itself; -1 where there are no more. */
unicon_status unicon__jury_find(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, int64_t k, int64_t *list);

/* The k largest of score[first .. first + count - 1] but for item `self`, by insertion: few of many
 * get in. Equal scores come in order; -1 where there are no more. */
void unicon__top_items(const float *score, int64_t first, int64_t count, int64_t self, int64_t k,
                       int64_t *list);

/* The same from all scores, queries by items. */
unicon_status unicon__jury_top(unicon_ctx *ctx, const unicon__jury *jury, const float *scores,
                               int64_t k, int64_t *list);

/* Judges lists of items, best first, `k` for each query (-1: none). `each` (may be NULL) receives
 * the leading figure of every query: ndcg of judged items, else overlap; NaN where a query has no
 * right answer. */
unicon_status unicon__jury_lists(unicon_ctx *ctx, const unicon__jury *jury, const int64_t *list,
                                 int64_t k, unicon__figures *out, double *each);

/* Both: ranks, then judges the first ten. */
unicon_status unicon__jury_rows(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, unicon__figures *out,
                                double *each);

/* Mean of the differences a - b over queries that have both, and its standard error. */
void unicon__paired_gain(const double *a, const double *b, int64_t queries, double *gain,
                         double *error);

/* The figure that decides. */
static inline unicon__figure unicon__jury_leads(const unicon__jury *jury) {
  return jury->judged ? UNICON__NDCG : UNICON__OVERLAP;
}

#endif
