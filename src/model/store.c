/* SPDX-License-Identifier: Apache-2.0 */
#include "model/store.h"

#include <math.h>
#include <string.h>

#include "linalg/blas.h"
#include "linalg/tiled.h"

/* The shortest m with F^T m = weight^T k, for the mean k of the kernel values and F = base^T weight:
 * k is base times the mean of the rows, so there is one. d r^2 flops. */
static unicon_status mean_of_values(unicon_ctx *ctx, const unicon__map *map, const float *weight,
                                    const float *folded, int64_t r, float *out) {
  const int64_t d = map->in;
  double *f, *square, *target, *values = NULL, *vectors = NULL;
  UNICON_NEW(ctx, f, d * r);
  UNICON_NEW(ctx, square, r * r);
  UNICON_NEW(ctx, target, r);
  for (int64_t k = 0; k < d * r; k++) {
    f[k] = (double)folded[k];
    if (isfinite(folded[k])) continue;
    out[0] = NAN; /* sums of a file may overflow, which whoever checks the model will say */
    return UNICON_OK;
  }
  for (int64_t i = 0; i < map->points * r; i++)
    target[i % r] += (double)weight[i] * (double)map->mean[i / r];
  unicon__tiled_dgemm(ctx, true, false, r, r, d, 1, f, r, f, r, 0, square, r);
  UNICON_TRY(unicon__eigen(ctx, square, r, &vectors, &values));
  double *c = square; /* F^T F c = target, along what is above the rounding of float32 */
  memset(c, 0, (size_t)r * sizeof *c);
  for (int64_t k = 0; k < r; k++) {
    const double *v = vectors + k * r;
    double part = 0;
    if (!(values[k] > 1e-12 * values[r - 1])) continue;
    for (int64_t j = 0; j < r; j++) part += v[j] * target[j];
    for (int64_t j = 0; j < r; j++) c[j] += v[j] * part / values[k];
  }
  for (int64_t i = 0; i < d; i++) {
    double sum = 0;
    for (int64_t j = 0; j < r; j++) sum += f[i * r + j] * c[j];
    out[i] = (float)sum;
  }
  return UNICON_OK;
}

/* A linear kernel on landmarks (d > n) is a linear map after all: F = base^T factor G, and the mean
 * is that of the rows themselves. The model then holds no training rows. */
static unicon_status fold_linear(unicon_ctx *ctx, const unicon__source *source, int64_t rank,
                                 unicon__map *map, float **weight) {
  float *folded, *mean = NULL;
  UNICON_NEW(ctx, folded, map->in * rank);
  unicon__tiled_sgemm(ctx, true, false, map->in, rank, map->points, 1, map->base, map->in, *weight,
                      rank, 0, folded, rank);
  unicon__map linear = {.in = map->in, .out = map->in, .normalize = map->normalize};
  if (map->mean) UNICON_NEW(ctx, mean, map->in);
  if (map->mean && source->rows) {
    unicon__source plain = *source;
    plain.map = &linear;
    plain.cache = NULL;
    UNICON_TRY(unicon__feature_mean(ctx, &plain, mean, NULL));
  } else if (map->mean) {
    UNICON_TRY(mean_of_values(ctx, map, *weight, folded, rank, mean));
  }
  linear.mean = mean;
  *map = linear;
  *weight = folded;
  return UNICON_OK;
}

/* factor^T k = mean for the mean k of the kernel values: factor is upper triangular, and `rest`
 * holds what is left of the mean. */
static void mean_values(const unicon__map *map, double *rest, float *out) {
  const int64_t m = map->points;
  for (int64_t i = 0; i < m; i++) rest[i] = (double)map->mean[i];
  for (int64_t i = 0; i < m; i++) {
    const float *row = map->factor + i * m;
    const double value = rest[i] / (double)row[i];
    for (int64_t j = i + 1; j < m; j++) rest[j] -= (double)row[j] * value;
    out[i] = (float)value;
  }
}

/* F^T (factor^T k - mean) = (factor F)^T (k - mean of k): the weights take the factor in, which
 * makes a model of m (d + r) numbers instead of m (d + m + r), and as much faster to use. */
static unicon_status fold_factor(unicon_ctx *ctx, int64_t rank, unicon__map *map, float **weight) {
  enum { ROWS = 256 }; /* of the product at a time: its copy in float64 stays small */
  const int64_t m = map->points, p = map->out;
  double *factor, *f, *product;
  float *folded, *mean;
  UNICON_NEW(ctx, folded, m * rank);
  UNICON_NEW(ctx, factor, ROWS * p);
  UNICON_NEW(ctx, f, p * rank);
  UNICON_NEW(ctx, product, ROWS * rank);
  for (int64_t k = 0; k < p * rank; k++) f[k] = (double)(*weight)[k];
  for (int64_t first = 0; first < m; first += ROWS) {
    const int64_t rows = m - first < ROWS ? m - first : ROWS;
    for (int64_t k = 0; k < rows * p; k++) factor[k] = (double)map->factor[first * p + k];
    unicon__tiled_dgemm(ctx, false, false, rows, rank, p, 1, factor, p, f, rank, 0, product, rank);
    for (int64_t k = 0; k < rows * rank; k++) folded[first * rank + k] = (float)product[k];
  }
  if (map->mean) {
    double *rest;
    UNICON_NEW(ctx, mean, m);
    UNICON_NEW(ctx, rest, m);
    mean_values(map, rest, mean);
    map->mean = mean;
  }
  map->factor = NULL;
  map->out = m;
  *weight = folded;
  return UNICON_OK;
}

/* F = R G by way of float64. */
static unicon_status map_back(unicon_ctx *ctx, const unicon__whitening *metric, const float *g,
                              int64_t r, float *out) {
  const int64_t size = metric->size * r;
  double *wide;
  UNICON_NEW(ctx, wide, size);
  for (int64_t k = 0; k < size; k++) wide[k] = (double)g[k];
  unicon__blas_begin();
  const unicon_status status = unicon__whiten_weights(ctx, metric, wide, r, out);
  unicon__blas_end();
  unicon__drop(ctx, wide);
  return status;
}

unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena, const unicon__side *side,
                                 const unicon__whitening metric[2], const unicon__factors *factors,
                                 unicon__part *part) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__part made = {.rank = factors->r, .share = 1};
  for (int s = 0; s < 2; s++) {
    unicon__map *map = &made.map[s];
    *map = side[s].map;
    UNICON_NEW(ctx, made.weight[s], factors->p[s] * factors->r);
    UNICON_TRY(map_back(ctx, &metric[s], factors->g[s], factors->r, made.weight[s]));
    unicon__blas_begin();
    const bool linear = map->factor && map->kernel.kind == UNICON__KERNEL_LINEAR;
    unicon_status status = UNICON_OK;
    if (map->factor) status = fold_factor(ctx, factors->r, map, &made.weight[s]);
    if (linear && status == UNICON_OK)
      status = fold_linear(ctx, &side[s].fitted, factors->r, map, &made.weight[s]);
    unicon__blas_end();
    UNICON_TRY(status);
    UNICON_TRY(unicon__part_copy_side(ctx, arena, &made, s, part));
  }
  if (arena != &ctx->arena) unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
