/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sweep.h"
#include "base/rng.h"
#include "features/mapfit.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum {
  BLOCK = 64, /* landmarks between two passes over the rows: the work is products, not passes */
  TILE_ROWS = 256
};

typedef struct pivoting {
  const unicon__source *source;
  const unicon__kernel *kernel;
  bool normalize;
  double error;                /* of a kernel value: residuals below are rounding */
  float *center;               /* a mean of rows that distances are taken around, or NULL */
  int64_t most;                /* columns that f can hold */
  int64_t done;                /* columns of f in use */
  int64_t block;               /* rows picked this round */
  float *f;                    /* n by most: K ~ f f^T */
  double *left;                /* n: diagonal of K - f f^T */
  float *point, *point_square; /* block by d: the rows picked, and their squared lengths */
  float *point_f;              /* block by most: their rows of f */
  float *solve;                /* block by block: L^{-T} of the block's residual kernel */
  float *raw, *values;         /* per worker: TILE_ROWS rows, TILE_ROWS by BLOCK residuals */
} pivoting;

static int64_t tiles_of(const pivoting *p) {
  return (p->source->count + TILE_ROWS - 1) / TILE_ROWS;
}

static void load_unit(const pivoting *p, const int64_t *pick, int64_t first, int64_t count,
                      float *rows, float *square) {
  const int64_t d = p->source->rows->width;
  unicon__source_load(p->source, pick, first, count, rows);
  if (p->normalize) unicon__unit_rows(rows, count, d);
  for (int64_t i = 0; i < count && p->center; i++)
    unicon__vec_best()->scale_shift(rows + i * d, d, 1.0f, p->center);
  for (int64_t i = 0; i < count; i++)
    square[i] = (float)unicon__vec_best()->sum_squares(rows + i * d, d);
}

/* Residual kernel between `count` rows (with their rows of f) and the picked ones. */
static void residuals(const pivoting *p, const float *rows, const float *square, const float *f,
                      int64_t count, float *out) {
  const int64_t d = p->source->rows->width;
  unicon__sgemm(false, true, count, p->block, d, 1, rows, d, p->point, d, 0, out, p->block);
  unicon__kernel_tile(p->kernel, out, count, p->block, p->block, square, p->point_square);
  if (p->done > 0)
    unicon__sgemm(false, true, count, p->block, p->done, -1, f, p->most, p->point_f, p->most, 1,
                  out, p->block);
}

/* New columns of f for a tile of rows, and their diagonal. */
static void extend_tile(void *state, unicon__cell cell) {
  const pivoting *p = state;
  const int64_t d = p->source->rows->width, first = cell.row * TILE_ROWS;
  const int64_t rest = p->source->count - first, count = rest < TILE_ROWS ? rest : TILE_ROWS;
  float *raw = p->raw + cell.worker * TILE_ROWS * (d + 1), *square = raw + TILE_ROWS * d;
  float *values = p->values + cell.worker * TILE_ROWS * BLOCK;
  float *f = p->f + first * p->most;
  load_unit(p, NULL, first, count, raw, square);
  residuals(p, raw, square, f, count, values);
  unicon__sgemm(false, false, count, p->block, p->block, 1, values, p->block, p->solve, p->block, 0,
                f + p->done, p->most);
  for (int64_t i = 0; i < count; i++) {
    for (int64_t k = 0; k < p->block; k++) {
      const double entry = (double)f[i * p->most + p->done + k];
      p->left[first + i] -= entry * entry;
    }
    if (p->left[first + i] < 0) p->left[first + i] = 0;
  }
}

/* Draws up to `wanted` different rows with probability proportional to what is left of them. */
static int64_t draw_rows(const pivoting *p, int64_t wanted, uint64_t seed, uint32_t stream,
                         uint32_t round, double total, int64_t *pick) {
  double target[BLOCK];
  int64_t count = 0, next = 0;
  for (int64_t k = 0; k < wanted; k++) /* stratified: one draw in each of `wanted` equal parts */
    target[k] =
        total * ((double)k + unicon__uniform(seed, stream, (uint64_t)k, round)) / (double)wanted;
  double sum = 0;
  for (int64_t i = 0; i < p->source->count && next < wanted; i++) {
    sum += p->left[i];
    if (sum <= target[next]) continue;
    pick[count++] = i;
    while (next < wanted && target[next] < sum) next++;
  }
  return count;
}

/* L^{-T} of the picked rows' residual kernel; rows that the others explain are dropped from
 * `pick`. */
static unicon_status factor_block(unicon_ctx *ctx, pivoting *p, int64_t *pick, double top) {
  double *k, *inverse;
  float *values;
  int *order;
  int64_t rank = 0, kept[BLOCK];
  UNICON_NEW(ctx, values, BLOCK * BLOCK);
  UNICON_NEW(ctx, k, BLOCK * BLOCK);
  UNICON_NEW(ctx, inverse, BLOCK * BLOCK);
  UNICON_NEW(ctx, order, BLOCK);
  residuals(p, p->point, p->point_square, p->point_f, p->block, values);
  for (int64_t i = 0; i < p->block * p->block; i++) k[i] = (double)values[i];
  UNICON_TRY(unicon__tiled_dpstrf(ctx, p->block, k, order, fmax(1e-5, p->error) * top, &rank));
  for (int64_t i = 0; i < rank; i++) {
    kept[i] = pick[order[i]];
    inverse[i * rank + i] = 1;
  }
  unicon__dtrsm_left(true, rank, rank, k, p->block, inverse, rank);
  memcpy(pick, kept, (size_t)rank * sizeof *pick);
  p->block = rank;
  for (int64_t i = 0; i < rank * rank; i++) p->solve[i] = (float)inverse[i];
  unicon__drop(ctx, order);
  unicon__drop(ctx, inverse);
  unicon__drop(ctx, k);
  unicon__drop(ctx, values);
  return UNICON_OK;
}

static void load_points(pivoting *p, const int64_t *pick) {
  load_unit(p, pick, 0, p->block, p->point, p->point_square);
  for (int64_t i = 0; i < p->block; i++)
    memcpy(p->point_f + i * p->most, p->f + pick[i] * p->most, (size_t)p->done * sizeof *p->f);
}

/* For a kernel of distances: the mean of TILE_ROWS rows spread over the source. `scratch` holds as
 * many rows and their squared lengths. */
static unicon_status find_center(unicon_ctx *ctx, pivoting *p, float *scratch) {
  const int64_t n = p->source->count, d = p->source->rows->width;
  const int64_t count = n < TILE_ROWS ? n : TILE_ROWS;
  int64_t pick[TILE_ROWS];
  double *mean;
  if (!unicon__kernel_of_distance(p->kernel->kind)) return UNICON_OK;
  UNICON_NEW(ctx, mean, d);
  for (int64_t i = 0; i < count; i++) pick[i] = i * n / count;
  load_unit(p, pick, 0, count, scratch, scratch + TILE_ROWS * d);
  unicon__mean_row(scratch, count, d, mean);
  UNICON_NEW(ctx, p->center, d);
  for (int64_t k = 0; k < d; k++) p->center[k] = (float)mean[k];
  unicon__drop(ctx, mean);
  return UNICON_OK;
}

/* The diagonal of K for a tile of rows. */
static void start_tile(void *state, unicon__cell cell) {
  const pivoting *p = state;
  const int64_t d = p->source->rows->width, first = cell.row * TILE_ROWS;
  const int64_t rest = p->source->count - first, count = rest < TILE_ROWS ? rest : TILE_ROWS;
  float *raw = p->raw + cell.worker * TILE_ROWS * (d + 1), *square = raw + TILE_ROWS * d;
  load_unit(p, NULL, first, count, raw, square);
  for (int64_t i = 0; i < count; i++)
    p->left[first + i] =
        unicon__kernel_value(p->kernel, (double)square[i], (double)square[i], (double)square[i]);
}

static unicon_status pivot_open(unicon_ctx *ctx, pivoting *p) {
  const int64_t n = p->source->count, d = p->source->rows->width;
  const int64_t workers = unicon__workers_for(ctx, tiles_of(p));
  UNICON_NEW(ctx, p->f, n * p->most);
  UNICON_NEW(ctx, p->left, n);
  UNICON_NEW(ctx, p->point, BLOCK * d);
  UNICON_NEW(ctx, p->point_square, BLOCK);
  UNICON_NEW(ctx, p->point_f, BLOCK * p->most);
  UNICON_NEW(ctx, p->solve, BLOCK * BLOCK);
  UNICON_NEW(ctx, p->raw, workers * TILE_ROWS * (d + 1));
  UNICON_NEW(ctx, p->values, workers * TILE_ROWS * BLOCK);
  UNICON_TRY(find_center(ctx, p, p->raw));
  return unicon__sweep_rows(ctx, NULL, NULL, tiles_of(p), start_tile, p);
}

static double sum_left(const pivoting *p) {
  double sum = 0;
  for (int64_t i = 0; i < p->source->count; i++) sum += p->left[i];
  return sum;
}

unicon_status unicon__pivot_rows(unicon_ctx *ctx, const unicon__source *source,
                                 const unicon__kernel *kernel, bool normalize, int64_t count,
                                 uint64_t seed, uint32_t stream, int64_t *row, int64_t *picked,
                                 double *left) {
  pivoting p = {.source = source,
                .kernel = kernel,
                .normalize = normalize,
                .error = unicon__kernel_error(kernel->kind),
                .most = count};
  unicon__block *frame = unicon__frame_open(ctx);
  const int stage = unicon__stage_begin(ctx, "landmarks", 0);
  UNICON_TRY(pivot_open(ctx, &p));
  const double whole = sum_left(&p);
  /* At least about eight rounds, so that later picks see what earlier ones left. */
  const int64_t block = count / 8 < 1 ? 1 : count / 8 < BLOCK ? count / 8 : BLOCK;
  double total = whole;
  for (uint32_t round = 0; p.done < count && total > p.error * whole; round++) {
    int64_t pick[BLOCK];
    UNICON_TRY(unicon__stage_step(ctx, p.done, count));
    const int64_t wanted = count - p.done < block ? count - p.done : block;
    p.block = draw_rows(&p, wanted, seed, stream, round, total, pick);
    load_points(&p, pick);
    UNICON_TRY(factor_block(ctx, &p, pick, whole / (double)source->count));
    if (p.block == 0) break;
    load_points(&p, pick);
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, &unicon__blas_region, tiles_of(&p), extend_tile, &p));
    memcpy(row + p.done, pick, (size_t)p.block * sizeof *row);
    p.done += p.block;
    total = sum_left(&p);
  }
  qsort(row, (size_t)p.done, sizeof *row, unicon__compare_int64);
  *picked = p.done;
  *left = whole > 0 ? total / whole : 0;
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
