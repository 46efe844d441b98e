/* SPDX-License-Identifier: Apache-2.0 */
#include "features/mapfit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum {
  EXACT_UP_TO = 4000, /* rows: their kernel matrix takes 128 MB and its factor a few seconds */
  WIDTH_ROWS = 1000   /* with ten distances each: the median is good to about a per cent */
};

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

static unicon_status fit_degree(unicon_ctx *ctx, double degree, unicon__kernel *kernel) {
  if (!(degree >= 1 && degree <= 16 && degree == floor(degree)))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "width %g is the degree of kernel poly here; it must be a whole number "
                        "from 1 to 16",
                        degree);
  kernel->degree = (int)degree;
  return UNICON_OK;
}

static unicon__kernel_kind kernel_of(const unicon_options *options, int own) {
  const int id = unicon__is(options, own, "same") ? UNICON__KERNEL : own;
  return unicon__kernel_plain((unicon__kernel_kind)unicon__word(options, id));
}

void unicon__map_params_from(const unicon_options *options, unicon__map_params *out) {
  const int map = unicon__word(options, UNICON__MAP);
  *out = (unicon__map_params){
      .normalize = unicon__is(options, UNICON__NORMALIZE, "on"),
      .kernel = {kernel_of(options, UNICON__KERNEL_X), kernel_of(options, UNICON__KERNEL_Y)},
      .by_size = unicon__is(options, UNICON__MAP, "auto"),
      .kind = map > 0 ? (unicon__map_kind)(map - 1) : UNICON__MAP_LINEAR, /* after auto */
      .landmarks = unicon__integer(options, UNICON__LANDMARKS),
      .landmarks_given = unicon__given(options, UNICON__LANDMARKS) ||
                         unicon__given(options, UNICON__LANDMARK_METHOD),
      .method = unicon__is(options, UNICON__LANDMARK_METHOD, "uniform") ? UNICON__LANDMARKS_UNIFORM
                : unicon__is(options, UNICON__LANDMARK_METHOD, "pivot") ? UNICON__LANDMARKS_PIVOT
                                                                        : UNICON__LANDMARKS_GIVEN,
      .features = unicon__integer(options, UNICON__FEATURES),
      .kernel_ridge = unicon__number(options, UNICON__KERNEL_RIDGE),
      .seed = (uint64_t)unicon__integer(options, UNICON__SEED),
  };
  for (int s = 0; s < 2; s++) {
    const unicon__value width = unicon__of_side(options, UNICON__WIDTH, s);
    out->width[s] = width.word < 0 ? width.number : 0; /* auto */
  }
}

unicon_status unicon__kernel_fit(unicon_ctx *ctx, const unicon__map_params *params, int side,
                                 const unicon__source *source, unicon__kernel *kernel) {
  const double width = params->width[side];
  *kernel = (unicon__kernel){.kind = params->kernel[side], .width = 1, .degree = 3};
  if (kernel->kind == UNICON__KERNEL_POLY && width > 0) return fit_degree(ctx, width, kernel);
  if (!unicon__kernel_has_width(kernel->kind)) return UNICON_OK;
  if (width > 0) {
    kernel->width = width;
    if (kernel->kind == UNICON__KERNEL_EXPCOS && kernel->width < narrowest)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "width %g is too small for kernel expcos: exp(1/width^2) must be a "
                          "float32, so at least 0.11; rbf has no such bound and is the same on "
                          "unit rows",
                          kernel->width);
    return UNICON_OK;
  }
  UNICON_TRY(median_distance(ctx, source, params->normalize, params->seed, &kernel->width));
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

/* The lower triangle of K of the landmarks, in tiles. */
typedef struct landmark_values {
  const unicon__kernel *kernel;
  int64_t m, d;
  const float *base;
  double *rows, *mean, *square; /* landmarks without the mean, which is 0 unless it serves */
  double *k;
} landmark_values;

enum { KERNEL_ROWS = 128 }; /* of a tile of K: 128 KiB in float64, which a cache holds */

static void widen_rows(void *state, unicon__cell cell) {
  const landmark_values *v = state;
  const int64_t first = cell.row * KERNEL_ROWS, d = v->d;
  for (int64_t i = first; i < first + KERNEL_ROWS && i < v->m; i++) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) {
      v->rows[i * d + k] = (double)v->base[i * d + k] - v->mean[k];
      sum += v->rows[i * d + k] * v->rows[i * d + k];
    }
    v->square[i] = sum;
  }
}

static void value_tile(void *state, unicon__cell cell) {
  const landmark_values *v = state;
  const int64_t i0 = cell.row * KERNEL_ROWS, j0 = cell.col * KERNEL_ROWS, m = v->m, d = v->d;
  const int64_t rows = m - i0 < KERNEL_ROWS ? m - i0 : KERNEL_ROWS;
  const int64_t cols = m - j0 < KERNEL_ROWS ? m - j0 : KERNEL_ROWS;
  if (j0 > i0) return;
  unicon__dgemm(false, true, rows, cols, d, 1, v->rows + i0 * d, d, v->rows + j0 * d, d, 0,
                v->k + i0 * m + j0, m);
  for (int64_t i = i0; i < i0 + rows; i++)
    for (int64_t j = j0; j < j0 + cols && j <= i; j++)
      v->k[i * m + j] = unicon__kernel_value(v->kernel, i == j ? v->square[i] : v->k[i * m + j],
                                             v->square[i], v->square[j]);
}

/* K of the landmarks in float64, products included: its small pivots decide the factor. Distances
 * are taken around the mean, so that they keep their digits far from the origin. */
static unicon_status landmark_kernel(unicon_ctx *ctx, const unicon__map *map, double *k) {
  const int64_t m = map->points, d = map->in, tiles = (m + KERNEL_ROWS - 1) / KERNEL_ROWS;
  landmark_values v = {.kernel = &map->kernel, .m = m, .d = d, .base = map->base, .k = k};
  UNICON_NEW(ctx, v.rows, m * d);
  UNICON_NEW(ctx, v.mean, d);
  UNICON_NEW(ctx, v.square, m);
  if (unicon__kernel_of_distance(map->kernel.kind)) unicon__mean_row(map->base, m, d, v.mean);
  UNICON_TRY(unicon__sweep_rows(ctx, "landmarks", NULL, tiles, widen_rows, &v));
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.name = "landmarks",
                                                     .rows = tiles,
                                                     .cols = tiles,
                                                     .region = &unicon__blas_region,
                                                     .state = &v,
                                                     .body = value_tile}));
  unicon__drop(ctx, v.square);
  unicon__drop(ctx, v.mean);
  unicon__drop(ctx, v.rows);
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
unicon_status unicon__map_factor(unicon_ctx *ctx, unicon__arena *arena, double ridge, int side,
                                 unicon__map *map) {
  const int64_t m = map->points;
  double *k, *inverse;
  int *pivot;
  float *scratch;
  int64_t rank = 0;
  UNICON_NEW(ctx, k, m * m);
  UNICON_NEW(ctx, pivot, m);
  UNICON_NEW(ctx, scratch, m * map->in);
  const int stage = unicon__stage_begin(ctx, "landmarks", 0);
  UNICON_TRY(landmark_kernel(ctx, map, k));
  double top = 0;
  const double floor = unicon__kernel_error(map->kernel.kind);
  for (int64_t i = 0; i < m; i++) {
    k[i * m + i] += ridge;
    top = k[i * m + i] > top ? k[i * m + i] : top;
  }
  UNICON_TRY(unicon__tiled_dpstrf(ctx, m, k, pivot, floor * top, &rank));
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
  unicon__tiled_inverse(ctx, rank, k, m, inverse);
  UNICON_TRY(unicon__poll(ctx));
  unicon__stage_end(ctx, stage);
  map->out = rank;
  UNICON_ARENA_NEW(ctx, arena, map->factor, rank * rank);
  for (int64_t i = 0; i < rank * rank; i++) map->factor[i] = (float)inverse[i];
  unicon__drop(ctx, inverse);
  unicon__drop(ctx, pivot);
  unicon__drop(ctx, k);
  return UNICON_OK;
}

static unicon_status fit_landmarks(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon__map_params *params, int side, const int64_t *given,
                                   int64_t givens, const unicon__source *source, unicon__map *map) {
  const uint64_t seed = params->seed;
  const uint32_t stream = side == 0 ? UNICON__STREAM_LANDMARK_X : UNICON__STREAM_LANDMARK_Y;
  int64_t count = map->kind == UNICON__MAP_EXACT ? source->count : params->landmarks;
  if (count > source->count) count = source->count;
  int64_t *row = NULL;
  if (map->kind == UNICON__MAP_NYSTROM && given) {
    UNICON_TRY(load_landmarks(ctx, arena, source, given, givens, map));
  } else if (map->kind == UNICON__MAP_NYSTROM && count < source->count &&
             params->method == UNICON__LANDMARKS_PIVOT) {
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
  return unicon__map_factor(ctx, arena, params->kernel_ridge, side, map);
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
                                const unicon__map_params *params, int side, unicon__map *map) {
  const bool fourier = unicon__kernel_is_fourier(map->kernel.kind);
  if (!fourier && !unicon__kernel_is_relu(map->kernel.kind))
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "map random supports the angular, arccos, rbf and matern kernels; use nystrom for "
        "the others");
  const uint64_t seed = params->seed;
  const uint32_t stream = side == 0 ? UNICON__STREAM_FEATURE_X : UNICON__STREAM_FEATURE_Y;
  const int64_t m = params->features, d = map->in;
  map->points = map->out = m;
  UNICON_ARENA_NEW(ctx, arena, map->base, m * d);
  UNICON_ARENA_NEW(ctx, arena, map->square, m);
  for (int64_t i = 0; i < m; i++) unicon__normals(seed, stream, (uint64_t)i, d, map->base + i * d);
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

static unicon__map_kind choose_kind(const unicon__map_params *params, unicon__kernel_kind kernel,
                                    const unicon__source *source) {
  if (!params->by_size) return params->kind;
  if (kernel == UNICON__KERNEL_LINEAR)
    return source->rows->width > source->count ? UNICON__MAP_EXACT : UNICON__MAP_LINEAR;
  return source->count <= EXACT_UP_TO && !params->landmarks_given ? UNICON__MAP_EXACT
                                                                  : UNICON__MAP_NYSTROM;
}

unicon_status unicon__map_fit(unicon_ctx *ctx, unicon__arena *arena,
                              const unicon__map_params *params, int side, const int64_t *landmark,
                              int64_t landmarks, const unicon__source *source, unicon__map *map) {
  *map = (unicon__map){
      .in = source->rows->width, .out = source->rows->width, .normalize = params->normalize};
  UNICON_TRY(unicon__kernel_fit(ctx, params, side, source, &map->kernel));
  map->kind = choose_kind(params, map->kernel.kind, source);
  if (map->kind == UNICON__MAP_LINEAR && map->kernel.kind != UNICON__KERNEL_LINEAR)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "map linear goes with kernel linear only; leave map out, or use exact, "
                        "nystrom or random");
  if (map->kind == UNICON__MAP_RANDOM)
    UNICON_TRY(fit_random(ctx, arena, params, side, map));
  else if (map->kind != UNICON__MAP_LINEAR)
    UNICON_TRY(fit_landmarks(ctx, arena, params, side, landmark, landmarks, source, map));
  return UNICON_OK;
}
