/* SPDX-License-Identifier: Apache-2.0 */
#include "features/feature.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { SCAN_ROWS = 512 }; /* checked and hashed at a time: a piece of work for a thread */

/* Scales the row to length 1 when asked. A row whose 1/length is no float is scaled in float64. */
static void make_unit(const unicon__vec *vec, float *row, int64_t width, const float *shift) {
  const double length = unicon__row_length(vec, row, width);
  if (length > 1e-30 && length < 1e30) {
    vec->scale_shift(row, width, (float)(1 / length), shift);
    return;
  }
  for (int64_t k = 0; k < width; k++)
    row[k] = (float)((double)row[k] / (length > 0 ? length : 1)) - (shift ? shift[k] : 0);
}

/* ---- features ----------------------------------------------------------------------------- */

void unicon__source_load(const unicon__source *source, const int64_t *pick, int64_t first,
                         int64_t count, float *out) {
  const int64_t width = source->rows->width;
  if (!source->index) {
    unicon__rows_load(source->rows, pick, first, count, out, width);
  } else if (!pick) {
    unicon__rows_load(source->rows, source->index + first, 0, count, out, width);
  } else {
    for (int64_t i = 0; i < count; i++)
      unicon__rows_load(source->rows, NULL, source->index[pick[i]], 1, out + i * width, width);
  }
}

void unicon__unit_rows(float *rows, int64_t count, int64_t width) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) make_unit(vec, rows + i * width, width, NULL);
}

static void apply_linear(const unicon__map *map, float *rows, int64_t count) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) {
    float *row = rows + i * map->in;
    if (map->normalize)
      make_unit(vec, row, map->in, map->mean);
    else if (map->mean)
      vec->scale_shift(row, map->in, 1.0f, map->mean);
  }
}

/* Projections W x become random features: powers of the positive part, or cosines. */
static void random_features(const unicon__map *map, float *t, int64_t count) {
  const float scale = sqrtf(2.0f / (float)map->points);
  const unicon__kernel_kind kind = map->kernel.kind;
  for (int64_t i = 0; i < count; i++, t += map->points) {
    for (int64_t k = 0; k < map->points; k++) {
      const float positive = t[k] > 0 ? t[k] : 0;
      if (kind == UNICON__KERNEL_ARCCOS0)
        t[k] = t[k] > 0 ? scale : 0;
      else if (kind == UNICON__KERNEL_ARCCOS1)
        t[k] = scale * positive;
      else if (kind == UNICON__KERNEL_ARCCOS2)
        t[k] = scale * positive * positive * 0.577350269f; /* 1/sqrt 3: k(x, x) = 1 */
      else
        t[k] = scale * cosf(t[k] + map->square[k]);
    }
  }
}

/* rows -= shift */
static void shift_rows(float *rows, int64_t count, int64_t width, const float *shift) {
  for (int64_t i = 0; i < count; i++)
    unicon__vec_best()->scale_shift(rows + i * width, width, 1.0f, shift);
}

static void subtract_mean(const unicon__map *map, float *rows, int64_t count) {
  if (map->mean) shift_rows(rows, count, map->out, map->mean);
}

/* Kernel values times the factor, which is upper triangular: block after block of its columns, with
 * the rows above and in the block alone. */
static void times_factor(const unicon__map *map, const float *values, int64_t count, float *out) {
  enum { COLUMNS = 256 }; /* directions at a time: their products stay in the cache */
  for (int64_t from = 0; from < map->out; from += COLUMNS) {
    const int64_t cols = map->out - from < COLUMNS ? map->out - from : COLUMNS;
    unicon__sgemm(false, false, count, cols, from + cols, 1, values, map->points,
                  map->factor + from, map->out, 0, out + from, map->out);
  }
}

void unicon__map_pointwise(const unicon__map *map, const float *raw, int64_t count, float *square,
                           float *products) {
  if (map->kind == UNICON__MAP_RANDOM) {
    random_features(map, products, count);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    square[i] = (float)unicon__vec_best()->sum_squares(raw + i * map->in, map->in);
  unicon__kernel_tile(&map->kernel, products, count, map->points, map->points, square, map->square);
}

/* Products with the landmarks or directions, the pointwise function, the factor. */
static void apply_points(const unicon__map *map, float *buffer, int64_t count) {
  float *raw = unicon__map_raw(map, buffer, count), *values = raw + count * map->in;
  float *square = values + count * map->points;
  if (map->normalize) unicon__unit_rows(raw, count, map->in);
  if (map->center) shift_rows(raw, count, map->in, map->center);
  float *products = map->factor ? values : buffer;
  unicon__sgemm(false, true, count, map->points, map->in, 1, raw, map->in,
                map->center ? map->near : map->base, map->in, 0, products, map->points);
  unicon__map_pointwise(map, raw, count, square, products);
  if (map->factor) times_factor(map, values, count, buffer);
}

void unicon__mean_row(const float *rows, int64_t count, int64_t width, double *mean) {
  for (int64_t k = 0; k < width; k++) mean[k] = 0;
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < width; k++) mean[k] += (double)rows[i * width + k];
  for (int64_t k = 0; k < width; k++) mean[k] /= (double)count;
}

unicon_status unicon__map_settle(unicon_ctx *ctx, unicon__arena *arena, unicon__map *map) {
  const int64_t m = map->points, d = map->in;
  const float *landmarks = map->base;
  if (unicon__kernel_of_distance(map->kernel.kind)) {
    double *mean;
    UNICON_NEW(ctx, mean, d);
    UNICON_ARENA_NEW(ctx, arena, map->center, d);
    UNICON_ARENA_NEW(ctx, arena, map->near, m * d);
    unicon__mean_row(map->base, m, d, mean);
    for (int64_t k = 0; k < d; k++) map->center[k] = (float)mean[k];
    memcpy(map->near, map->base, (size_t)(m * d) * sizeof *map->near);
    shift_rows(map->near, m, d, map->center);
    unicon__drop(ctx, mean);
    landmarks = map->near;
  }
  UNICON_ARENA_NEW(ctx, arena, map->square, m);
  for (int64_t i = 0; i < m; i++)
    map->square[i] = (float)unicon__vec_best()->sum_squares(landmarks + i * d, d);
  return UNICON_OK;
}

void unicon__map_apply(const unicon__map *map, float *buffer, int64_t count) {
  if (map->kind == UNICON__MAP_LINEAR) {
    apply_linear(map, buffer, count);
    return;
  }
  apply_points(map, buffer, count);
  subtract_mean(map, buffer, count);
}

static const float *cached_tile(const unicon__source *source, const int64_t *pick, int64_t first,
                                int64_t count, float *buffer) {
  const int64_t out = source->map->out;
  if (!pick && !source->cache_row) return source->cache + first * out;
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = pick ? pick[i] : first + i;
    const int64_t from = source->cache_row ? source->cache_row[row] : row;
    memcpy(buffer + i * out, source->cache + from * out, (size_t)out * sizeof *buffer);
  }
  return buffer;
}

const float *unicon__source_tile(const unicon__source *source, const int64_t *pick, int64_t first,
                                 int64_t count, float *buffer) {
  if (source->cache) return cached_tile(source, pick, first, count, buffer);
  unicon__source_load(source, pick, first, count, unicon__map_raw(source->map, buffer, count));
  unicon__map_apply(source->map, buffer, count);
  return buffer;
}

/* ---- sums over all rows -------------------------------------------------------------------- */

typedef struct walk {
  const unicon__source *source;
  unicon__share own;    /* rows of this process */
  float *buffer;        /* SCAN_ROWS tiles per worker */
  double *sum, *square; /* per slot: sums of the features and of their squares */
  double *total, *total_square;
  float *cache; /* or: where features go */
} walk;

/* The features of a block of rows. */
static const float *block_of(const walk *w, unicon__cell cell, int64_t *count) {
  const int64_t first = cell.row * SCAN_ROWS, left = w->own.count - first;
  *count = left < SCAN_ROWS ? left : SCAN_ROWS;
  return unicon__source_tile(
      w->source, NULL, w->own.first + first, *count,
      w->buffer + cell.worker * SCAN_ROWS * unicon__map_room(w->source->map));
}

static void sum_block(void *state, unicon__cell cell) {
  const walk *w = state;
  int64_t count;
  const int64_t width = w->source->map->out;
  const float *rows = block_of(w, cell, &count);
  double *sum = w->sum + cell.slot * width, *square = w->square + cell.slot * width;
  memset(sum, 0, (size_t)width * sizeof *sum);
  memset(square, 0, (size_t)width * sizeof *square);
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < width; k++) {
      const double value = (double)rows[i * width + k];
      sum[k] += value;
      square[k] += value * value;
    }
}

static void add_block(void *state, unicon__cell cell) {
  const walk *w = state;
  const int64_t width = w->source->map->out;
  for (int64_t k = 0; k < width; k++) {
    w->total[k] += w->sum[cell.slot * width + k];
    w->total_square[k] += w->square[cell.slot * width + k];
  }
}

double unicon__feature_flops(const unicon__source *source) {
  const unicon__map *map = source->map;
  const double in = (double)map->in, points = (double)map->points, out = (double)map->out;
  if (source->cache || map->kind == UNICON__MAP_LINEAR) return 2 * out;
  return 2 * points * in + (map->factor ? points * out : 0);
}

/* The rows of this process, and their blocks. */
static int64_t open_walk(const unicon_ctx *ctx, walk *w) {
  const int64_t n = w->source->count;
  w->own = unicon__share_of(ctx, n, SCAN_ROWS, (double)n * unicon__feature_flops(w->source));
  return (w->own.count + SCAN_ROWS - 1) / SCAN_ROWS;
}

unicon_status unicon__feature_mean(unicon_ctx *ctx, const unicon__source *whole, float *mean,
                                   double *spread) {
  unicon__map uncentred = *whole->map;
  unicon__source without = *whole;
  uncentred.mean = NULL;
  without.map = &uncentred;
  const int64_t width = uncentred.out;
  walk w = {.source = &without};
  const int64_t blocks = open_walk(ctx, &w), slots = unicon__sweep_slots(ctx, blocks);
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_NEW(ctx, w.buffer,
             unicon__workers_for(ctx, blocks) * SCAN_ROWS * unicon__map_room(&uncentred));
  UNICON_NEW(ctx, w.sum, slots * width);
  UNICON_NEW(ctx, w.square, slots * width);
  UNICON_NEW(ctx, w.total, width);
  UNICON_NEW(ctx, w.total_square, width);
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.name = "mean",
                                                     .rows = blocks,
                                                     .cols = 1,
                                                     .region = &unicon__blas_region,
                                                     .state = &w,
                                                     .body = sum_block,
                                                     .fold_col = add_block}));
  UNICON_TRY(unicon__sum_all(ctx, &w.own, w.total, width));
  UNICON_TRY(unicon__sum_all(ctx, &w.own, w.total_square, width));
  const double n = (double)whole->count;
  if (spread) *spread = 0;
  for (int64_t k = 0; k < width; k++) {
    const double middle = w.total[k] / n;
    mean[k] = (float)middle;
    if (spread) *spread += w.total_square[k] / n - middle * middle;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static void cache_block(void *state, unicon__cell cell) {
  const walk *w = state;
  int64_t count;
  const int64_t out = w->source->map->out;
  const float *rows = block_of(w, cell, &count);
  memcpy(w->cache + (w->own.first + cell.row * SCAN_ROWS) * out, rows,
         (size_t)(count * out) * sizeof *rows);
}

unicon_status unicon__source_fill(unicon_ctx *ctx, const unicon__source *source, float *out) {
  walk w = {.source = source, .cache = out};
  const int64_t blocks = open_walk(ctx, &w), row = source->map->out * (int64_t)sizeof *out;
  UNICON_NEW(ctx, w.buffer,
             unicon__workers_for(ctx, blocks) * SCAN_ROWS * unicon__map_room(source->map));
  UNICON_TRY(unicon__sweep_rows(ctx, "features", &unicon__blas_region, blocks, cache_block, &w));
  unicon__drop(ctx, w.buffer);
  return unicon__gather_rows(ctx, &w.own, out, row);
}
