/* SPDX-License-Identifier: Apache-2.0 */
/* What one chunk of rows adds to statistics: products in tiles, plain, weighted and class sums, each
 * a piece of work of its own on our threads. A tile is summed over its rows in order, so sums do not
 * depend on the threads. */
#ifndef UNICON_SOLVE_STATS_CHUNK_H
#define UNICON_SOLVE_STATS_CHUNK_H

#include "solve/stats.h"

enum {
  UNICON__STATS_CHUNK = 1024, /* rows of a float32 product: rounding grows with its root */
  UNICON__STATS_PRODUCTS = 3,
  UNICON__STATS_WEIGHTS = 4
};

/* out (m by n) += sign a^T b over the rows of a chunk. */
typedef struct unicon__stats_product {
  const float *a, *b;
  const double *wide_b; /* in the place of b, where it is in float64 */
  int64_t lda, ldb, m, n, tile, tiles_m, tiles_n;
  bool lower; /* a is b: the lower triangle alone */
  double *out;
} unicon__stats_product;

/* One chunk of rows of one side: what is to be summed of it. */
typedef struct unicon__stats_chunk {
  const unicon__stats *stats;
  int side, groups, products;
  int64_t first, rows; /* among the rows that count */
  int64_t group_rows;
  unicon__stats_product product[UNICON__STATS_PRODUCTS];
  const float *psi; /* rows by ld */
  int64_t ld;
  double sign;
  int weights;                           /* weighted sums beside the plain one */
  double *weight[UNICON__STATS_WEIGHTS]; /* of the rows */
  double *sum[UNICON__STATS_WEIGHTS];
  const int32_t *class_of;
  const int64_t *row; /* numbers of the rows, or NULL */
  float *scratch;     /* made here, per worker: a tile ... */
  double *wide;       /* ... or rows of a and b in float64 */
} unicon__stats_chunk;

/* Adds a product to what the chunk sums: out += a^T b, of its lower triangle where a is b. What
 * `wide_b` says of it is set before. */
void unicon__stats_chunk_product(unicon__stats_chunk *c, const float *a, int64_t lda, int64_t m,
                                 const float *b, int64_t ldb, int64_t n, double *out);

/* Sums it, in float64 products where the statistics hold them so. In the frame. */
unicon_status unicon__stats_chunk_sum(unicon_ctx *ctx, unicon__stats_chunk *c);

#endif
