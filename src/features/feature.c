/* SPDX-License-Identifier: Apache-2.0 */
#include "features/feature.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { SCAN_ROWS = 512 }; /* checked and hashed at a time: a piece of work for a thread */

/* Length of a row; float sums serve unless they over- or underflow. NaN when not finite. */
static double row_length(const unicon__vec *vec, const float *row, int64_t width) {
  const double fast = vec->sum_squares(row, width);
  if (fast > 1e-20 && fast < 1e30) return sqrt(fast);
  double sum = 0;
  for (int64_t k = 0; k < width; k++) sum += (double)row[k] * (double)row[k];
  return isfinite(sum) ? sqrt(sum) : NAN;
}

/* Scales the row to length 1 when asked. A row whose 1/length is no float is scaled in float64. */
static void make_unit(const unicon__vec *vec, float *row, int64_t width, const float *shift) {
  const double length = row_length(vec, row, width);
  if (length > 1e-30 && length < 1e30) {
    vec->scale_shift(row, width, (float)(1 / length), shift);
    return;
  }
  for (int64_t k = 0; k < width; k++)
    row[k] = (float)((double)row[k] / (length > 0 ? length : 1)) - (shift ? shift[k] : 0);
}

/* The longest row whose square, and the sum of a thousand of them, is a float32. */
static const double longest = 1e17;

int64_t unicon__first_bad_row(const float *buffer, int64_t count, int64_t width,
                              unicon__row_need need, int64_t *column) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) {
    const float *row = buffer + i * width;
    const double length = row_length(vec, row, width);
    const bool zero = need == UNICON__ROW_DIRECTED && !(length > 0);
    const bool far = need == UNICON__ROW_SQUARED && length > longest;
    if (isfinite(length) && !zero && !far) continue;
    *column = far ? UNICON__ROW_LONG : UNICON__ROW_ZERO;
    for (int64_t k = 0; k < width && *column < 0; k++)
      if (!isfinite(row[k])) *column = k;
    return i;
  }
  return -1;
}

/* "7", or "607 (row 7 of 1.npy)" where the rows are those of a folder. */
static const char *say_row(const unicon_rows *rows, int64_t row, char *out, size_t size) {
  int64_t k = rows->segments - 1;
  while (k > 0 && rows->segment[k].first > row) k--;
  if (rows->file && k >= 0 && rows->file[k])
    snprintf(out, size, "%lld (row %lld of %s)", (long long)row,
             (long long)(row - rows->segment[k].first), rows->file[k]);
  else
    snprintf(out, size, "%lld", (long long)row);
  return out;
}

unicon_status unicon__bad_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                              int64_t column) {
  char number[320];
  say_row(rows, row, number, sizeof number);
  if (column == UNICON__ROW_LONG)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s: row %s is longer than %g, and its values are too large for squares "
                        "and kernels in float32; scale the rows down, or use normalize on",
                        rows->name, number, longest);
  if (column < 0)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s: row %s is all zero and has no direction",
                        rows->name, number);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s: row %s, column %lld is not a finite number (NaN, infinite or beyond "
                      "float32)",
                      rows->name, number, (long long)column);
}

/* ---- which rows can be used --------------------------------------------------------------- */

typedef struct scan {
  const unicon_rows *rows;
  unicon__row_need need;
  int64_t from;  /* the first block of this process */
  float *buffer; /* SCAN_ROWS rows per worker */
  unsigned char *bad;
  uint64_t *hash; /* per block */
} scan;

/* Mixes n floats into h: multiply and xor-shift, the same on every machine. */
static uint64_t mix(uint64_t h, const float *x, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    uint32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    h = (h ^ bits) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
  }
  return h;
}

static void scan_block(void *state, unicon__cell cell) {
  scan *s = state;
  const int64_t width = s->rows->width, block = s->from + cell.row, first = block * SCAN_ROWS;
  const int64_t left = s->rows->count - first, count = left < SCAN_ROWS ? left : SCAN_ROWS;
  float *buffer = s->buffer + cell.worker * SCAN_ROWS * width;
  unicon__rows_load(s->rows, NULL, first, count, buffer, width);
  s->hash[block] = mix(0, buffer, count * width);
  for (int64_t i = 0; i < count;) {
    int64_t column;
    const int64_t bad =
        unicon__first_bad_row(buffer + i * width, count - i, width, s->need, &column);
    if (bad < 0) break;
    s->bad[first + i + bad] = 1;
    i += bad + 1;
  }
}

static unicon_status report_bad(unicon_ctx *ctx, const scan *s, int64_t first, int64_t bad) {
  int64_t column = -1;
  unicon__rows_load(s->rows, NULL, first, 1, s->buffer, s->rows->width);
  (void)unicon__first_bad_row(s->buffer, 1, s->rows->width, s->need, &column);
  (void)unicon__bad_row(ctx, s->rows, first, column);
  const size_t used = strlen(ctx->error);
  char sentence[sizeof ctx->error];
  memcpy(sentence, ctx->error, used + 1);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s; %lld of %lld rows cannot be used (bad_rows drop leaves them and "
                      "their pairs out)",
                      sentence, (long long)bad, (long long)s->rows->count);
}

/* Looks at all rows, each process at its blocks. */
static unicon_status scan_rows(unicon_ctx *ctx, int64_t blocks, scan *s) {
  const int64_t width = s->rows->width;
  const double number =
      100; /* to read and to mix one takes as long as so many flops of a product */
  const unicon__share own =
      unicon__share_of(ctx, blocks, 1, number * (double)s->rows->count * (double)width);
  UNICON_NEW(ctx, s->hash, blocks);
  UNICON_NEW(ctx, s->bad, blocks * SCAN_ROWS);
  UNICON_NEW(ctx, s->buffer, (unicon__workers_for(ctx, own.count) + 1) * SCAN_ROWS * width);
  s->from = own.first;
  UNICON_TRY(unicon__sweep_rows(ctx, "reading", NULL, own.count, scan_block, s));
  UNICON_TRY(unicon__gather_rows(ctx, &own, s->hash, (int64_t)sizeof *s->hash));
  return unicon__gather_rows(ctx, &own, s->bad, SCAN_ROWS);
}

unicon_status unicon__usable_rows(unicon_ctx *ctx, const unicon_rows *rows, unicon__row_need need,
                                  bool drop, const int64_t **keep, int64_t *count, uint64_t *hash) {
  scan s = {.rows = rows, .need = need};
  const int64_t blocks = (rows->count + SCAN_ROWS - 1) / SCAN_ROWS;
  UNICON_TRY(scan_rows(ctx, blocks, &s));
  if (hash)
    for (int64_t b = 0; b < blocks; b++) *hash = (*hash ^ s.hash[b]) * 0x9E3779B97F4A7C15u + 1;
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < rows->count; i++)
    if (s.bad[i]) {
      if (first < 0) first = i;
      bad++;
    }
  *keep = NULL;
  *count = rows->count - bad;
  if (bad > 0 && !drop) return report_bad(ctx, &s, first, bad);
  unicon__drop(ctx, s.buffer);
  if (bad == 0) return UNICON_OK;
  int64_t *list;
  UNICON_NEW(ctx, list, *count);
  for (int64_t i = 0, next = 0; i < rows->count; i++)
    if (!s.bad[i]) list[next++] = i;
  unicon__log(ctx, UNICON_LOG_WARNING,
              "%s: %lld of %lld rows dropped (all zero, not finite or too large)", rows->name,
              (long long)bad, (long long)rows->count);
  *keep = list;
  return UNICON_OK;
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
