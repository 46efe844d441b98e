/* SPDX-License-Identifier: Apache-2.0 */
/* Retrieval metrics of two sets of rows whose products are the scores, one direction. */
#ifndef UNICON_SCORE_RETRIEVAL_H
#define UNICON_SCORE_RETRIEVAL_H

#include <math.h>

#include "base/ctx.h"
#include "io/pairs.h"

/* What is ranked: rows of x as queries and rows of y as candidates (from_x), or the other way
 * round; `width` floats each: unit vectors, or [u, 1] and [v, -b(v)]. */
typedef struct unicon__retrieval {
  const float *query, *candidate;
  int64_t width;
  const unicon_pairs *pairs;
  bool from_x;
  /* Wanted beside the metrics; NULL: not that. */
  double *rank;   /* of the first match of each query, 0 where there is none */
  int64_t *found; /* per candidate: how often among the first UNICON__HUB_TOP of a query */
  double
      *margin;    /* mean over the queries of (t - w) / (t - m): t the score of the best match, w
                     and m the largest and the mean of the others; 1 at best, scale does not matter */
  bool intervals; /* bootstrap, with the seed */
  uint64_t seed;
} unicon__retrieval;

enum { UNICON__HUB_TOP = 10 };

/* Fills value, low, high, chance, queries and candidates of `out`. */
unicon_status unicon__retrieval_of(unicon_ctx *ctx, const unicon__retrieval *of,
                                   unicon_metrics *out);

/* Skewness of the counts, and the share of them that is 0. */
void unicon__hubness(const int64_t *found, int64_t count, double *skew, double *never);

/* How far a float32 product of two rows of `width` entries can be from the exact one: that many
 * roundings of 2^-24 each, of terms whose moduli add up to at most the product of the rows'
 * lengths, and what is lost below the smallest number. Unit vectors with a bias of 1 at most have a
 * length of sqrt 2 at most. */
static inline double unicon__score_error(int64_t width, double lengths) {
  if (lengths > 0x1p100) return INFINITY; /* a product may be beyond float32 */
  return (double)(width + 8) * (0x1p-24 * lengths + 0x1p-126);
}

#endif
