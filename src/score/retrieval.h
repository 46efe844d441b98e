/* SPDX-License-Identifier: Apache-2.0 */
/* Retrieval metrics of two sets of rows whose products are the scores, one direction. */
#ifndef UNICON_SCORE_RETRIEVAL_H
#define UNICON_SCORE_RETRIEVAL_H

#include <math.h>

#include "base/ctx.h"
#include "io/pairs.h"

enum {
  UNICON__HIT_1, /* share of queries with a true match among the first k: papers' R@k */
  UNICON__HIT_5,
  UNICON__HIT_10,
  UNICON__RECALL_1, /* mean share of a query's matches that are among the first k */
  UNICON__RECALL_5,
  UNICON__RECALL_10,
  UNICON__MRR,            /* mean 1/rank of the first match */
  UNICON__MEAN_PRECISION, /* mean average precision */
  UNICON__NDCG_10,
  UNICON__MEDIAN_RANK, /* of the first match, 1 is best */
  UNICON__MEAN_RANK,
  UNICON__METRIC_COUNT
};

/* "hit@1", ... */
extern const char *const unicon__metric_name[UNICON__METRIC_COUNT];

typedef struct unicon__metrics {
  int64_t queries;    /* rows with at least one match: the ones that count */
  int64_t candidates; /* rows searched */
  int64_t pairs;      /* positive pairs among the rows in use */
  double value[UNICON__METRIC_COUNT];
  double low[UNICON__METRIC_COUNT], high[UNICON__METRIC_COUNT]; /* 95 % bootstrap, or NaN */
  double chance[UNICON__METRIC_COUNT]; /* of a random order, for hit@k; NaN for the rest */
} unicon__metrics;

/* What is ranked: rows of x as queries and rows of y as candidates (from_x), or the other way
 * round; `width` floats each: unit vectors, or [u, 1] and [v, -b(v)]. Balanced rows may be ranked by
 * their cosines as well, in the same walk: by all columns but the last. */
typedef struct unicon__retrieval {
  const float *query, *candidate;
  int64_t width;
  const unicon_pairs *pairs;
  bool from_x;
  /* Wanted beside the metrics; NULL: not that. */
  double *rank;           /* of the first match of each query, 0 where there is none */
  int64_t *found;         /* per candidate: how often among the first UNICON__HUB_TOP of a query */
  unicon__metrics *plain; /* by cosines; and how often found so. Without intervals */
  int64_t *plain_found;
  double *margin; /* mean over the queries of (t - w) / (t - m): t the score of the best match, w
                     and m the largest and the mean of the others; at best 1, at any scale */
  bool intervals; /* bootstrap, with the seed */
  uint64_t seed;
} unicon__retrieval;

enum { UNICON__HUB_TOP = 10 }; /* as in the literature on hubs: skewness of the 10-occurrence */

/* Fills value, low, high, chance, queries and candidates of `out`. */
unicon_status unicon__retrieval_of(unicon_ctx *ctx, const unicon__retrieval *of,
                                   unicon__metrics *out);

/* The same from what a device has counted (score/ranks_device.h), with the margin. */
struct unicon__ranks_job;
unicon_status unicon__retrieval_counted(unicon_ctx *ctx, const struct unicon__ranks_job *job,
                                        double *margin, unicon__metrics *out);

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
