/* SPDX-License-Identifier: Apache-2.0 */
#include "use/logistic.h"

#include <lbfgs.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum {
  TILE_ROWS = 512,
  MEMORY = 10, /* corrections that L-BFGS keeps */
  MOST_STEPS = 2000
};

static const double wanted_gradient = 1e-6; /* over max(1, length of the point) */

/* ---- loss and gradient -------------------------------------------------------------------- */

unicon_status unicon__logistic_open(unicon_ctx *ctx, unicon__logistic *p) {
  const int64_t workers = unicon__workers(ctx);
  UNICON_NEW(ctx, p->weight, p->r * p->k);
  UNICON_NEW(ctx, p->bias, p->k);
  UNICON_NEW(ctx, p->logits, workers * TILE_ROWS * p->k);
  UNICON_NEW(ctx, p->partial, workers * p->r * p->k);
  UNICON_NEW(ctx, p->sum, workers * (p->k + 1));
  return UNICON_OK;
}

static void set_point(unicon__logistic *p, const double *point) {
  const int64_t size = p->r * p->k;
  for (int64_t j = 0; j < size; j++) p->weight[j] = (float)point[j];
  for (int64_t j = 0; j < p->k; j++) p->bias[j] = (float)point[size + j];
}

/* Logits of `count` rows: z W + b. */
static void tile_logits(const unicon__logistic *p, const float *z, int64_t count, float *out) {
  for (int64_t i = 0; i < count; i++) memcpy(out + i * p->k, p->bias, (size_t)p->k * sizeof *out);
  unicon__sgemm(false, false, count, p->k, p->r, 1, z, p->r, p->weight, p->k, 1, out, p->k);
}

/* A row of logits becomes softmax minus one-hot, in place; returns the row's cross-entropy. */
static double row_residual(float *row, int64_t k, int32_t class) {
  const unicon__vec *vec = unicon__vec_best();
  const float top = vec->max(row, k), own = row[class];
  for (int64_t j = 0; j < k; j++) row[j] -= top;
  vec->exp(row, k);
  double total = (double)row[0];
  for (int64_t j = 1; j < k; j++) total += (double)row[j];
  vec->scale_shift(row, k, (float)(1 / total), NULL);
  row[class] -= 1;
  return log(total) + (double)top - (double)own;
}

static void loss_tile(void *state, int64_t item, int worker) {
  unicon__logistic *p = state;
  const int64_t first = (p->first + item) * TILE_ROWS, left = p->n - first;
  const int64_t count = left < TILE_ROWS ? left : TILE_ROWS;
  const float *z = p->z + first * p->r;
  float *logits = p->logits + worker * TILE_ROWS * p->k;
  double *sum = p->sum + item * (p->k + 1);
  memset(sum, 0, (size_t)(p->k + 1) * sizeof *sum);
  tile_logits(p, z, count, logits);
  for (int64_t i = 0; i < count; i++) {
    sum[p->k] += row_residual(logits + i * p->k, p->k, p->class[first + i]);
    for (int64_t j = 0; j < p->k; j++) sum[j] += (double)logits[i * p->k + j];
  }
  unicon__sgemm(true, false, p->r, p->k, count, 1, z, p->r, logits, p->k, 0,
                p->partial + item * p->r * p->k, p->k);
}

/* Row `row` of the gradient of W += that row of every partial, in tile order. */
static void add_row(void *state, int64_t row, int worker) {
  (void)worker;
  const unicon__logistic *p = state;
  double *to = p->gradient + row * p->k;
  for (int64_t item = 0; item < p->items; item++) {
    const float *from = p->partial + (item * p->r + row) * p->k;
    for (int64_t j = 0; j < p->k; j++) to[j] += (double)from[j] / (double)p->n;
  }
}

double unicon__logistic_loss(unicon_ctx *ctx, unicon__logistic *p, const double *point,
                             double *gradient) {
  const int64_t size = p->r * p->k, tiles = (p->n + TILE_ROWS - 1) / TILE_ROWS;
  const int64_t round = unicon__workers(ctx);
  double loss = 0, square = 0;
  set_point(p, point);
  memset(gradient, 0, (size_t)(size + p->k) * sizeof *gradient);
  p->gradient = gradient;
  for (p->first = 0; p->first < tiles; p->first += round) {
    p->items = tiles - p->first < round ? tiles - p->first : round;
    unicon__blas_begin();
    unicon__parallel_for(ctx, p->items, loss_tile, p);
    unicon__blas_end();
    unicon__parallel_for(ctx, p->r, add_row, p);
    for (int64_t item = 0; item < p->items; item++) {
      const double *sum = p->sum + item * (p->k + 1);
      for (int64_t j = 0; j < p->k; j++) gradient[size + j] += sum[j] / (double)p->n;
      loss += sum[p->k] / (double)p->n;
    }
  }
  for (int64_t j = 0; j < size; j++) {
    gradient[j] += p->ridge * point[j];
    square += point[j] * point[j];
  }
  return loss + p->ridge * square / 2;
}

/* ---- minimum ------------------------------------------------------------------------------ */

typedef struct descent {
  unicon_ctx *ctx;
  unicon__logistic *fit;
  unicon__logistic_log *log;
  unicon_status status;
  int64_t size; /* of the point, without the padding that liblbfgs wants */
  double at_start;
} descent;

static lbfgsfloatval_t evaluate(void *instance, const lbfgsfloatval_t *point,
                                lbfgsfloatval_t *gradient, const int n,
                                const lbfgsfloatval_t step) {
  (void)step;
  const descent *d = instance;
  for (int64_t j = d->size; j < n; j++) gradient[j] = 0;
  return unicon__logistic_loss(d->ctx, d->fit, point, gradient);
}

static int watch(void *instance, const lbfgsfloatval_t *point, const lbfgsfloatval_t *gradient,
                 const lbfgsfloatval_t loss, const lbfgsfloatval_t length,
                 const lbfgsfloatval_t slope, const lbfgsfloatval_t step, int n, int k, int tries) {
  (void)point, (void)gradient, (void)loss, (void)step, (void)n, (void)tries;
  descent *d = instance;
  const double goal = wanted_gradient * (length > 1 ? length : 1);
  if (k == 1) d->at_start = slope;
  d->log->steps = k;
  const double way = d->at_start > goal ? log(d->at_start / slope) / log(d->at_start / goal) : 1;
  d->status = unicon__progress(d->ctx, "logistic regression", way);
  return d->status != UNICON_OK;
}

/* liblbfgs allocates by itself: what it will take is put aside in our own budget first, so that
 * max_mem holds. A large block is never touched and costs no memory. */
static unicon_status reserve(unicon_ctx *ctx, int64_t size) {
  double *unused;
  UNICON_NEW(ctx, unused, (2 * MEMORY + 6) * size);
  return UNICON_OK;
}

unicon_status unicon__logistic_minimize(unicon_ctx *ctx, unicon__logistic *fit,
                                        unicon__logistic_log *log) {
  const int64_t size = (fit->r + 1) * fit->k, padded = (size + 7) / 8 * 8;
  descent d = {.ctx = ctx, .fit = fit, .log = log, .size = size};
  lbfgs_parameter_t parameter;
  double *point, *gradient, square = 0;
  if (padded > INT_MAX)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%lld classes in %lld dimensions: at most %d weights are supported",
                        (long long)fit->k, (long long)fit->r, INT_MAX);
  UNICON_NEW(ctx, point, padded);
  UNICON_NEW(ctx, gradient, padded);
  UNICON_TRY(reserve(ctx, padded));
  *log = (unicon__logistic_log){0};
  lbfgs_parameter_init(&parameter);
  parameter.m = MEMORY;
  parameter.epsilon = wanted_gradient;
  parameter.max_iterations = MOST_STEPS;
  const int code = lbfgs((int)padded, point, NULL, evaluate, watch, &d, &parameter);
  UNICON_TRY(d.status);
  if (code == LBFGSERR_OUTOFMEMORY)
    return unicon__fail(ctx, UNICON_ERR_MEMORY, "out of memory for %lld weights", (long long)size);
  /* A line search that ends in rounding leaves the best point; the gradient says how good it is. */
  log->loss = unicon__logistic_loss(ctx, fit, point, gradient);
  for (int64_t j = 0; j < size; j++) square += gradient[j] * gradient[j];
  log->gradient = sqrt(square);
  return UNICON_OK;
}

/* ---- answers ------------------------------------------------------------------------------ */

typedef struct answers {
  const unicon__logistic *fit;
  const float *z;
  int64_t count;
  int32_t *class;
} answers;

static void answer_tile(void *state, int64_t item, int worker) {
  const answers *a = state;
  const int64_t first = item * TILE_ROWS, left = a->count - first, k = a->fit->k;
  const int64_t count = left < TILE_ROWS ? left : TILE_ROWS;
  float *logits = a->fit->logits + worker * TILE_ROWS * k;
  tile_logits(a->fit, a->z + first * a->fit->r, count, logits);
  for (int64_t i = 0; i < count; i++) {
    const float *row = logits + i * k;
    int32_t best = 0;
    for (int32_t j = 1; j < (int32_t)k; j++)
      if (row[j] > row[best]) best = j;
    a->class[first + i] = best;
  }
}

void unicon__logistic_answer(unicon_ctx *ctx, const unicon__logistic *fit, const float *z,
                             int64_t count, int32_t *class) {
  answers a = {fit, z, count, class};
  unicon__blas_begin();
  unicon__parallel_for(ctx, (count + TILE_ROWS - 1) / TILE_ROWS, answer_tile, &a);
  unicon__blas_end();
}
