/* SPDX-License-Identifier: Apache-2.0 */
#include "features/mapfit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum { EXACT_UP_TO = 4000, WIDTH_ROWS = 1000 };

/* `count` different rows of n, ascending. */
static unicon_status sample_rows(unicon_ctx *ctx, uint64_t seed, uint32_t stream, int64_t n,
                                 int64_t count, int64_t **out) {
  int64_t *order;
  UNICON_NEW(ctx, order, n);
  UNICON_NEW(ctx, *out, count);
  unicon__permutation(seed, stream, 0, n, order);
  memcpy(*out, order, (size_t)count * sizeof **out);
  qsort(*out, (size_t)count, sizeof **out, unicon__compare_int64);
  unicon__drop(ctx, order);
  return UNICON_OK;
}

/* ---- kernel and width --------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
  const float left = *(const float *)a, right = *(const float *)b;
  return (left > right) - (left < right);
}

/* Median distance over a random order of up to WIDTH_ROWS rows, each with the ten that follow. */
static unicon_status median_distance(unicon_ctx *ctx, const unicon__source *source, bool normalize,
                                     uint64_t seed, double *out) {
  const int64_t width = source->rows->width;
  const int64_t count = source->count < WIDTH_ROWS ? source->count : WIDTH_ROWS;
  int64_t *pick, found = 0;
  float *rows, *distance;
  UNICON_NEW(ctx, pick, source->count);
  unicon__permutation(seed, UNICON__STREAM_WIDTH, 0, source->count, pick);
  UNICON_NEW(ctx, rows, count * width);
  UNICON_NEW(ctx, distance, count * 10);
  unicon__source_load(source, pick, 0, count, rows);
  if (normalize) unicon__unit_rows(rows, count, width);
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 1; k <= 10; k++) {
      const float *a = rows + i * width, *b = rows + ((i + k) % count) * width;
      double sum = 0;
      for (int64_t j = 0; j < width; j++) sum += (double)(a[j] - b[j]) * (double)(a[j] - b[j]);
      if (sum > 0) distance[found++] = (float)sqrt(sum);
    }
  qsort(distance, (size_t)found, sizeof *distance, compare_floats);
  *out = found > 0 ? (double)distance[found / 2] : 1;
  unicon__drop(ctx, distance);
  unicon__drop(ctx, rows);
  unicon__drop(ctx, pick);
  return UNICON_OK;
}

static const double narrowest = 0.11; /* of expcos: exp(1/width^2) is a float32 */

unicon_status unicon__kernel_fit(unicon_ctx *ctx, const unicon_options *options, int side,
                                 const unicon__source *source, unicon__kernel *kernel) {
  const int own = unicon__word(options, side == 0 ? UNICON__KERNEL_X : UNICON__KERNEL_Y);
  const int word = own > UNICON__KERNEL_POLY ? unicon__word(options, UNICON__KERNEL) : own;
  *kernel = (unicon__kernel){.kind = (unicon__kernel_kind)word, .width = 1};
  kernel->kind = unicon__kernel_plain(kernel->kind);
  kernel->degree = (int)unicon__integer(options, UNICON__DEGREE);
  if (!unicon__kernel_has_width(kernel->kind)) return UNICON_OK;
  if (unicon__word(options, UNICON__WIDTH) != 0) {
    kernel->width = unicon__number(options, UNICON__WIDTH);
    if (kernel->kind == UNICON__KERNEL_EXPCOS && kernel->width < narrowest)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "width %g is too small for kernel expcos: exp(1/width^2) must be a "
                          "float32, so at least 0.11; rbf has no such bound and is the same on "
                          "unit rows",
                          kernel->width);
    return UNICON_OK;
  }
  UNICON_TRY(median_distance(ctx, source, unicon__word(options, UNICON__NORMALIZE) == 0,
                             (uint64_t)unicon__integer(options, UNICON__SEED), &kernel->width));
  if (kernel->kind == UNICON__KERNEL_EXPCOS && kernel->width < narrowest) kernel->width = narrowest;
  return UNICON_OK;
}

/* ---- landmarks ---------------------------------------------------------------------------- */

/* Landmark rows (unit if asked) into the map. */
static unicon_status load_landmarks(unicon_ctx *ctx, unicon__arena *arena,
                                    const unicon__source *source, const int64_t *row, int64_t count,
                                    unicon__map *map) {
  map->points = count;
  UNICON_ARENA_NEW(ctx, arena, map->base, count * map->in);
  unicon__source_load(source, row, 0, count, map->base);
  if (map->normalize) unicon__unit_rows(map->base, count, map->in);
  return UNICON_OK;
}

/* K of the landmarks in float64, products included: its small pivots decide the factor. Distances
 * are taken around the mean, so that they keep their digits far from the origin. */
static unicon_status landmark_kernel(unicon_ctx *ctx, const unicon__map *map, double *k) {
  const int64_t m = map->points, d = map->in;
  double *rows, *mean;
  UNICON_NEW(ctx, rows, m * d);
  UNICON_NEW(ctx, mean, d);
  if (unicon__kernel_of_distance(map->kernel.kind)) unicon__mean_row(map->base, m, d, mean);
  for (int64_t i = 0; i < m * d; i++) rows[i] = (double)map->base[i] - mean[i % d];
  unicon__drop(ctx, mean);
  unicon__tiled_dgemm(ctx, false, true, m, m, d, 1, rows, d, rows, d, 0, k, m);
  unicon__drop(ctx, rows);
  double *square;
  UNICON_NEW(ctx, square, m);
  for (int64_t i = 0; i < m; i++) square[i] = k[i * m + i];
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < m; j++)
      k[i * m + j] = unicon__kernel_value(&map->kernel, k[i * m + j], square[i], square[j]);
  unicon__drop(ctx, square);
  return UNICON_OK;
}

/* Keeps only landmarks kept[0..count-1], in that order. */
static void keep_landmarks(unicon__map *map, const int *kept, int64_t count, float *scratch) {
  for (int64_t i = 0; i < count; i++)
    memcpy(scratch + i * map->in, map->base + kept[i] * map->in, (size_t)map->in * sizeof *scratch);
  memcpy(map->base, scratch, (size_t)(count * map->in) * sizeof *scratch);
  map->points = count;
}

/* factor = L^{-T} of the pivoted Cholesky factorisation K + ridge I = L L^T, so that
 * factor^T k(landmarks, x) has the kernel (Nystrom) as its inner product. Landmarks that others
 * explain (duplicates, or nearly: the pivot is below the error of a kernel value) are dropped: on
 * them this is the pseudo-inverse. */
static unicon_status fit_factor(unicon_ctx *ctx, unicon__arena *arena, double ridge, int side,
                                unicon__map *map) {
  const int64_t m = map->points;
  double *k, *inverse;
  int *pivot;
  float *scratch;
  int64_t rank = 0;
  UNICON_NEW(ctx, k, m * m);
  UNICON_NEW(ctx, pivot, m);
  UNICON_NEW(ctx, scratch, m * map->in);
  UNICON_TRY(landmark_kernel(ctx, map, k));
  double top = 0;
  const double floor = unicon__kernel_error(map->kernel.kind);
  for (int64_t i = 0; i < m; i++) {
    k[i * m + i] += ridge;
    top = k[i * m + i] > top ? k[i * m + i] : top;
  }
  UNICON_TRY(unicon__dpstrf(ctx, m, k, pivot, floor * top, &rank));
  if (rank == 0)
    return unicon__fail(ctx, UNICON_ERR_DATA, "the kernel of %s is zero on every landmark",
                        side == 0 ? "x" : "y");
  if (rank < m)
    unicon__log(ctx, UNICON_LOG_INFO,
                "%s: %lld of %lld landmarks are explained by the others and were dropped",
                side == 0 ? "x" : "y", (long long)(m - rank), (long long)m);
  keep_landmarks(map, pivot, rank, scratch);
  unicon__drop(ctx, scratch);
  UNICON_TRY(unicon__map_settle(ctx, arena, map));
  UNICON_NEW(ctx, inverse, rank * rank);
  for (int64_t i = 0; i < rank; i++) inverse[i * rank + i] = 1;
  unicon__tiled_dtrsm_left(ctx, true, rank, rank, k, m, inverse, rank);
  map->out = rank;
  UNICON_ARENA_NEW(ctx, arena, map->factor, rank * rank);
  for (int64_t i = 0; i < rank * rank; i++) map->factor[i] = (float)inverse[i];
  unicon__drop(ctx, inverse);
  unicon__drop(ctx, pivot);
  unicon__drop(ctx, k);
  return UNICON_OK;
}

static unicon_status fit_landmarks(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon_options *options, int side, const int64_t *given,
                                   int64_t givens, const unicon__source *source, unicon__map *map) {
  const uint64_t seed = (uint64_t)unicon__integer(options, UNICON__SEED);
  const uint32_t stream = side == 0 ? UNICON__STREAM_LANDMARK_X : UNICON__STREAM_LANDMARK_Y;
  int64_t count =
      map->kind == UNICON__MAP_EXACT ? source->count : unicon__integer(options, UNICON__LANDMARKS);
  if (count > source->count) count = source->count;
  int64_t *row = NULL;
  if (map->kind == UNICON__MAP_NYSTROM && given) {
    UNICON_TRY(load_landmarks(ctx, arena, source, given, givens, map));
  } else if (map->kind == UNICON__MAP_NYSTROM && count < source->count &&
             unicon__word(options, UNICON__LANDMARK_METHOD) == 1) {
    double left;
    UNICON_NEW(ctx, row, count);
    UNICON_TRY(unicon__pivot_rows(ctx, source, &map->kernel, map->normalize, count, seed, stream,
                                  row, &count, &left));
    unicon__log(ctx, UNICON_LOG_INFO, "%s: %lld pivoted landmarks leave %.3g of the trace",
                side == 0 ? "x" : "y", (long long)count, left);
    UNICON_TRY(load_landmarks(ctx, arena, source, row, count, map));
  } else {
    UNICON_TRY(sample_rows(ctx, seed, stream, source->count, count, &row));
    UNICON_TRY(load_landmarks(ctx, arena, source, row, count, map));
  }
  unicon__drop(ctx, row);
  return fit_factor(ctx, arena, unicon__number(options, UNICON__KERNEL_RIDGE), side, map);
}

/* ---- random features ---------------------------------------------------------------------- */

/* Lengths of W's rows follow chi(d); blocks of d rows are orthogonal. Orthogonal features have
 * lower variance (Yu et al. 2016). */
static unicon_status orthogonal_block(unicon_ctx *ctx, float *w, int64_t rows, int64_t d) {
  double *q, *r, *length;
  UNICON_NEW(ctx, q, d * rows);
  UNICON_NEW(ctx, r, rows * rows);
  UNICON_NEW(ctx, length, rows);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < d; k++) {
      q[k * rows + i] = (double)w[i * d + k];
      length[i] += q[k * rows + i] * q[k * rows + i];
    }
  UNICON_TRY(unicon__tiled_dqr(ctx, d, rows, q, r));
  for (int64_t i = 0; i < rows; i++) {
    const double scale = copysign(sqrt(length[i]), r[i * rows + i]); /* Haar: no preferred side */
    for (int64_t k = 0; k < d; k++) w[i * d + k] = (float)(q[k * rows + i] * scale);
  }
  unicon__drop(ctx, length);
  unicon__drop(ctx, r);
  unicon__drop(ctx, q);
  return UNICON_OK;
}

/* Spectral measure of the kernel: normal for rbf, multivariate t with 2 nu degrees of freedom for
 * matern, both over the width. */
static void scale_frequencies(const unicon__kernel *kernel, uint64_t seed, uint32_t stream,
                              float *w, int64_t rows, int64_t d) {
  const int freedom = kernel->kind == UNICON__KERNEL_MATERN12   ? 1
                      : kernel->kind == UNICON__KERNEL_MATERN32 ? 3
                      : kernel->kind == UNICON__KERNEL_MATERN52 ? 5
                                                                : 0;
  for (int64_t i = 0; i < rows; i++) {
    double factor = 1 / kernel->width, chi = 0;
    float draw[5];
    unicon__normals(seed, stream, (uint64_t)i + ((uint64_t)1 << 40), freedom, draw);
    for (int k = 0; k < freedom; k++) chi += (double)draw[k] * (double)draw[k];
    if (freedom > 0) factor *= sqrt(freedom / chi);
    for (int64_t k = 0; k < d; k++) w[i * d + k] = (float)((double)w[i * d + k] * factor);
  }
}

static unicon_status fit_random(unicon_ctx *ctx, unicon__arena *arena,
                                const unicon_options *options, int side, unicon__map *map) {
  const bool fourier = unicon__kernel_is_fourier(map->kernel.kind);
  if (!fourier && !unicon__kernel_is_relu(map->kernel.kind))
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "map random serves angular, arccos, rbf and matern kernels; use nystrom for "
        "the others");
  const uint64_t seed = (uint64_t)unicon__integer(options, UNICON__SEED);
  const uint32_t stream = side == 0 ? UNICON__STREAM_FEATURE_X : UNICON__STREAM_FEATURE_Y;
  const int64_t m = unicon__integer(options, UNICON__FEATURES), d = map->in;
  map->points = map->out = m;
  UNICON_ARENA_NEW(ctx, arena, map->base, m * d);
  UNICON_ARENA_NEW(ctx, arena, map->square, m);
  for (int64_t i = 0; i < m; i++) unicon__normals(seed, stream, (uint64_t)i, d, map->base + i * d);
  if (unicon__word(options, UNICON__ORTHOGONAL) == 0)
    for (int64_t i = 0; i < m; i += d)
      UNICON_TRY(orthogonal_block(ctx, map->base + i * d, m - i < d ? m - i : d, d));
  if (!fourier) return UNICON_OK;
  scale_frequencies(&map->kernel, seed, stream, map->base, m, d);
  for (int64_t i = 0; i < m; i++)
    map->square[i] =
        (float)(6.283185307179586 * unicon__uniform(seed, stream, (uint64_t)i, UINT32_MAX));
  return UNICON_OK;
}

/* ---- the choice --------------------------------------------------------------------------- */

static unicon__map_kind choose_kind(const unicon_options *options, unicon__kernel_kind kernel,
                                    const unicon__source *source) {
  const int word = unicon__word(options, UNICON__MAP);
  const bool landmarks =
      unicon__given(options, UNICON__LANDMARKS) || unicon__given(options, UNICON__LANDMARK_METHOD);
  if (word > 0) return (unicon__map_kind)(word - 1);
  if (kernel == UNICON__KERNEL_LINEAR)
    return source->rows->width > source->count ? UNICON__MAP_EXACT : UNICON__MAP_LINEAR;
  return source->count <= EXACT_UP_TO && !landmarks ? UNICON__MAP_EXACT : UNICON__MAP_NYSTROM;
}

unicon_status unicon__map_fit(unicon_ctx *ctx, unicon__arena *arena, const unicon_options *options,
                              int side, const int64_t *landmark, int64_t landmarks,
                              const unicon__source *source, unicon__map *map) {
  *map = (unicon__map){.in = source->rows->width,
                       .out = source->rows->width,
                       .normalize = unicon__word(options, UNICON__NORMALIZE) == 0};
  UNICON_TRY(unicon__kernel_fit(ctx, options, side, source, &map->kernel));
  map->kind = choose_kind(options, map->kernel.kind, source);
  if (map->kind == UNICON__MAP_LINEAR && map->kernel.kind != UNICON__KERNEL_LINEAR)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "map linear goes with kernel linear only; leave map out, or use exact, "
                        "nystrom or random");
  if (map->kind == UNICON__MAP_RANDOM)
    UNICON_TRY(fit_random(ctx, arena, options, side, map));
  else if (map->kind != UNICON__MAP_LINEAR)
    UNICON_TRY(fit_landmarks(ctx, arena, options, side, landmark, landmarks, source, map));
  return UNICON_OK;
}
