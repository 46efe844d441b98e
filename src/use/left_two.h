/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of items by maps that have seen neither the item nor the query. Where items ask for each
 * other, leaving the item out is not enough: the pair of the query has pulled its neighbours
 * towards the query. With M and the residuals a of use/regress.h, rows i and j left out together
 * have the residuals
 *
 *     (e_i, e_j) = M_S^-1 (a_i, a_j), S = {i, j}:
 *     e_j = (M_ii a_j - M_ij a_i) / D,  D = M_ii M_jj - M_ij^2
 *
 * so the score of item j for the query y_i is the cosine of y_i with y_j - e_j, which follows from
 * products of rows of Y and a alone: 8 n e flops for each query. */
#ifndef UNICON_USE_LEFT_TWO_H
#define UNICON_USE_LEFT_TWO_H

#include "base/ctx.h"

typedef struct unicon__left_two {
  int64_t queries, items; /* queries are the first items */
  float *cross;           /* queries by items: M_ij */
  double *diagonal;       /* items: M_ii */
  float *residual;        /* items by e: a */
} unicon__left_two;

/* Scores, queries by items; y has rows of length 1. An item's score for itself is meaningless. */
unicon_status unicon__left_two_scores(unicon_ctx *ctx, const unicon__left_two *two, const float *y,
                                      int64_t e, float *scores);

#endif
