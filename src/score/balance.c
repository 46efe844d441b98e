/* SPDX-License-Identifier: Apache-2.0 */
#include "score/balance.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "device/use.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "linalg/convert.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum { BIAS_ROWS = 256, BANK_ROWS = 1024 }; /* of a tile of scores: 1 MiB, in the cache of a core */

/* ---- biases ------------------------------------------------------------------------------- */

typedef struct biases {
  const unicon_balance *balance;
  unicon__bank bank;
  const float *curve;
  const float *z;
  int64_t n, ld, stride;
  float *out;
  float *scores;  /* per worker: BIAS_ROWS by BANK_ROWS */
  float *nearest; /* csls, per worker: BIAS_ROWS by K, each row ascending */
  int64_t k;
} biases;

/* Running log-sum-exp of a row, total = sum e^{beta top}. */
typedef struct running {
  double top, sum;
} running;

static void add_softmax(running *row, const float *s, int64_t count, double beta) {
  const unicon__vec *vec = unicon__vec_best();
  const double top = (double)vec->max(s, count);
  const double sum = (double)vec->exp_sum(s, count, (float)beta, (float)top);
  if (top <= row->top) {
    row->sum += sum * exp(beta * (top - row->top));
  } else {
    row->sum = sum + row->sum * exp(beta * (row->top - top));
    row->top = top;
  }
}

/* Keeps the k largest, ascending, so that the first is the one to beat. */
static void add_nearest(float *kept, int64_t k, const float *s, int64_t count) {
  for (int64_t j = 0; j < count; j++) {
    if (s[j] <= kept[0]) continue;
    int64_t at = 0;
    for (; at + 1 < k && kept[at + 1] < s[j]; at++) kept[at] = kept[at + 1];
    kept[at] = s[j];
  }
}

static double mean_of(const float *values, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; k++) sum += (double)values[k];
  return sum / (double)count;
}

/* A bias lies within [-1, 1]: rows rounded to float16 may be longer than 1 by a hair. */
static float within(double bias) {
  return (float)(bias > 1 ? 1 : bias < -1 ? -1 : bias);
}

static void bias_block(void *state, unicon__cell cell) {
  const biases *b = state;
  const int64_t r = b->balance->r, first = cell.row * BIAS_ROWS, left = b->n - first;
  const int64_t rows = left < BIAS_ROWS ? left : BIAS_ROWS;
  const double beta = b->balance->how.strength;
  float *scores = b->scores + cell.worker * BIAS_ROWS * BANK_ROWS;
  float *nearest = b->nearest ? b->nearest + cell.worker * BIAS_ROWS * b->k : NULL;
  running sum[BIAS_ROWS];
  for (int64_t i = 0; i < rows; i++) sum[i] = (running){-INFINITY, 0};
  for (int64_t i = 0; nearest && i < rows * b->k; i++) nearest[i] = -INFINITY;
  for (int64_t from = 0; from < b->bank.count; from += BANK_ROWS) {
    const int64_t cols = b->bank.count - from < BANK_ROWS ? b->bank.count - from : BANK_ROWS;
    unicon__sgemm(false, true, rows, cols, r, 1, b->z + first * b->ld, b->ld,
                  b->bank.row + from * r, r, 0, scores, BANK_ROWS);
    for (int64_t i = 0; i < rows; i++) {
      if (nearest)
        add_nearest(nearest + i * b->k, b->k, scores + i * BANK_ROWS, cols);
      else
        add_softmax(&sum[i], scores + i * BANK_ROWS, cols, beta);
    }
  }
  for (int64_t i = 0; i < rows; i++)
    b->out[(first + i) * b->stride] =
        within(nearest ? mean_of(nearest + i * b->k, b->k) / 2
                       : sum[i].top + log(sum[i].sum / (double)b->bank.count) / beta);
}

static void curve_block(void *state, unicon__cell cell) {
  const biases *b = state;
  const int64_t r = b->balance->r, first = cell.row * BIAS_ROWS;
  const int64_t last = first + BIAS_ROWS < b->n ? first + BIAS_ROWS : b->n;
  const float *w = b->curve + 1, *q = w + r;
  for (int64_t i = first; i < last; i++) {
    const float *z = b->z + i * b->ld;
    double sum = (double)b->curve[0];
    for (int64_t k = 0; k < r; k++)
      sum += (double)z[k] * ((double)w[k] + (double)q[k] * (double)z[k]);
    b->out[i * b->stride] = within(sum);
  }
}

static unicon_status bias_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const biases *b = state;
  const int64_t r = b->balance->r;
  const bool csls = b->balance->how.kind == UNICON__BALANCE_CSLS;
  unicon__matrix *bank, *z;
  float *out;
  UNICON_TRY(unicon__device_copy(ctx, room, b->bank.row, b->bank.count, r, r, &bank));
  const int64_t block = unicon__device_rows(ctx, b->n, 4.0 * (double)(r + b->bank.count), 0.5, 0);
  UNICON_TRY(unicon__device_new(ctx, room, block, r, UNICON__ELEMENT_F32, &z));
  UNICON_NEW(ctx, out, b->n);
  for (int64_t first = 0; first < b->n; first += block) {
    const int64_t count = b->n - first < block ? b->n - first : block;
    UNICON_TRY(unicon__on(ctx, upload, z, 0, count, b->z + first * b->ld, UNICON__ELEMENT_F32,
                          b->ld * (int64_t)sizeof *b->z));
    UNICON_TRY(unicon__on(ctx, bias, z, 0, count, bank,
                          csls ? UNICON__DEVICE_CSLS : UNICON__DEVICE_SOFTMAX,
                          b->balance->how.strength, out + first));
  }
  for (int64_t i = 0; i < b->n; i++) b->out[i * b->stride] = within((double)out[i]);
  return UNICON_OK;
}

static unicon_status bias_rows(unicon_ctx *ctx, const unicon_balance *balance, int side,
                               const float *z, int64_t n, int64_t ld, float *out, int64_t stride) {
  const int64_t items = (n + BIAS_ROWS - 1) / BIAS_ROWS;
  const int64_t workers = unicon__workers_for(ctx, items);
  const bool curve = balance->how.kind == UNICON__BALANCE_QUADRATIC;
  biases b = {.balance = balance,
              .bank = balance->bank[1 - side],
              .curve = balance->curve[side],
              .z = z,
              .n = n,
              .ld = ld,
              .stride = stride,
              .out = out};
  const double flops = 2 * (double)n * (double)b.bank.count * (double)balance->r;
  bool done = false;
  if (!curve && unicon__device_serves(ctx, bias, flops))
    UNICON_TRY(unicon__device_run(ctx, "balance", bias_road, &b, &done));
  if (done) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  if (!curve) UNICON_NEW(ctx, b.scores, workers * BIAS_ROWS * BANK_ROWS);
  if (balance->how.kind == UNICON__BALANCE_CSLS) {
    b.k = (int64_t)balance->how.strength < b.bank.count ? (int64_t)balance->how.strength
                                                        : b.bank.count;
    UNICON_NEW(ctx, b.nearest, workers * BIAS_ROWS * b.k);
  }
  UNICON_TRY(unicon__sweep_rows(ctx, "balance", &unicon__blas_region, items,
                                curve ? curve_block : bias_block, &b));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__bias(unicon_ctx *ctx, const unicon_balance *balance, int side, const float *z,
                           int64_t n, int64_t ld, float *out, int64_t stride) {
  const double row = 2 * (double)balance->bank[1 - side].count * (double)balance->r;
  const unicon__share own = unicon__share_of(ctx, n, BIAS_ROWS, (double)n * row);
  float *all;
  if (!own.divided) return bias_rows(ctx, balance, side, z, n, ld, out, stride);
  UNICON_NEW(ctx, all, n);
  UNICON_TRY(bias_rows(ctx, balance, side, z + own.first * ld, own.count, ld, all + own.first, 1));
  UNICON_TRY(unicon__gather_rows(ctx, &own, all, (int64_t)sizeof *all));
  for (int64_t i = 0; i < n; i++) out[i * stride] = all[i];
  unicon__drop(ctx, all);
  return UNICON_OK;
}

/* ---- banks -------------------------------------------------------------------------------- */

typedef struct draw {
  uint64_t key;
  int64_t row;
} draw;

static void sift_down(draw *heap, int64_t count, int64_t at) {
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && heap[child + 1].key > heap[child].key) child++;
    if (heap[child].key <= heap[at].key) return;
    const draw held = heap[at];
    heap[at] = heap[child];
    heap[child] = held;
    at = child;
  }
}

static uint64_t key_of(uint64_t seed, int side, int64_t row) {
  uint32_t word[4];
  unicon__philox(seed, side == 0 ? UNICON__STREAM_BANK_X : UNICON__STREAM_BANK_Y, (uint64_t)row, 0,
                 word);
  return (uint64_t)word[0] << 32 | word[1];
}

static bool may_enter(const unicon__bank_rows *from, int64_t row) {
  const unicon_pairs *pairs = from->pairs;
  if (from->barred && from->barred[row]) return false;
  if (!pairs) return true;
  return (from->side == 0 ? unicon__positives_x(pairs, row) : unicon__positives_y(pairs, row))
             .count > 0;
}

unicon_status unicon__bank_draw(unicon_ctx *ctx, const unicon__bank_rows *from, int64_t count,
                                uint64_t seed, int64_t **row, int64_t *drawn) {
  draw *heap; /* the largest key on top */
  if (count > from->n) count = from->n;
  unsigned char *taken;
  int64_t filled = 0;
  UNICON_NEW(ctx, heap, count);
  UNICON_NEW(ctx, taken, from->n);
  for (int64_t i = 0; i < from->n; i++) {
    if (!may_enter(from, i)) continue;
    const draw now = {key_of(seed, from->side, i), i};
    if (filled < count) {
      heap[filled++] = now;
      for (int64_t at = filled / 2; filled == count && at-- > 0;) sift_down(heap, filled, at);
    } else if (now.key < heap[0].key) {
      heap[0] = now;
      sift_down(heap, filled, 0);
    }
  }
  for (int64_t k = 0; k < filled; k++) taken[heap[k].row] = 1;
  UNICON_NEW(ctx, *row, filled);
  for (int64_t i = 0, next = 0; i < from->n; i++)
    if (taken[i]) (*row)[next++] = i;
  *drawn = filled;
  return UNICON_OK;
}

void unicon__bank_round(float *rows, int64_t count) {
  enum { AT_ONCE = 256 }; /* numbers, on the stack */
  uint16_t half[AT_ONCE];
  for (int64_t k = 0; k < count; k += AT_ONCE) {
    const int64_t now = count - k < AT_ONCE ? count - k : AT_ONCE;
    unicon__to_half(rows + k, now, half);
    unicon__convert(UNICON_F16, (const unsigned char *)half, 2, now, rows + k);
  }
}

unicon__balancing unicon__balancing_usual(int64_t rows) {
  enum { FEW_ROWS = 4000 };
  return (unicon__balancing){UNICON__BALANCE_SOFTMAX, rows < FEW_ROWS ? 5 : 10};
}

/* ---- quadratic form ----------------------------------------------------------------------- */

/* Adds [1, z, z^2] with target b of some rows to the normal equations (size by size + 1). */
static void add_equations(unicon_ctx *ctx, const float *z, const float *bias, int64_t rows,
                          int64_t r, float *basis, double *normal) {
  const int64_t size = 2 * r + 1;
  for (int64_t i = 0; i < rows; i++) {
    float *row = basis + i * (size + 1);
    row[0] = 1;
    for (int64_t k = 0; k < r; k++) {
      row[1 + k] = z[i * r + k];
      row[1 + r + k] = z[i * r + k] * z[i * r + k];
    }
    row[size] = bias[i];
  }
  float *partial = basis + rows * (size + 1);
  unicon__tiled_sgemm(ctx, true, false, size + 1, size + 1, rows, 1, basis, size + 1, basis,
                      size + 1, 0, partial, size + 1);
  for (int64_t k = 0; k < (size + 1) * (size + 1); k++) normal[k] += (double)partial[k];
}

unicon_status unicon__curve_fit(unicon_ctx *ctx, const unicon_balance *balance, int side,
                                const float *z, int64_t n, float *curve) {
  const int64_t r = balance->r, size = 2 * r + 1, width = size + 1;
  float *bias, *basis;
  double *normal, *matrix, *target;
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_NEW(ctx, bias, n);
  UNICON_TRY(unicon__bias(ctx, balance, side, z, n, r, bias, 1));
  UNICON_NEW(ctx, basis, BANK_ROWS * width + width * width);
  UNICON_NEW(ctx, normal, width * width);
  for (int64_t first = 0; first < n; first += BANK_ROWS) {
    const int64_t rows = n - first < BANK_ROWS ? n - first : BANK_ROWS;
    add_equations(ctx, z + first * r, bias + first, rows, r, basis, normal);
  }
  UNICON_NEW(ctx, matrix, size * size);
  UNICON_NEW(ctx, target, size);
  for (int64_t i = 0; i < size; i++) {
    memcpy(matrix + i * size, normal + i * width, (size_t)size * sizeof *matrix);
    /* unit rows have sum z^2 = 1, so the system is singular without a little weight */
    matrix[i * size + i] = matrix[i * size + i] * (1 + 1e-3) + 1e-6 * (double)n / (double)r;
    target[i] = normal[i * width + size];
  }
  int64_t info;
  UNICON_TRY(unicon__tiled_dpotrf(ctx, size, matrix, size, &info));
  if (info)
    return unicon__fail(ctx, UNICON_ERR_NUMERIC, "the quadratic form of the bias cannot be solved");
  unicon__tiled_dtrsm_left(ctx, false, size, 1, matrix, size, target, 1);
  unicon__tiled_dtrsm_left(ctx, true, size, 1, matrix, size, target, 1);
  for (int64_t k = 0; k < size; k++) curve[k] = (float)target[k];
  unicon__frame_close(ctx, frame);
  return unicon__poll(ctx);
}
