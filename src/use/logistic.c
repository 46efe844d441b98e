/* SPDX-License-Identifier: Apache-2.0 */
#include "use/logistic.h"

#include <lbfgs.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "linalg/blas.h"
#include "linalg/vec.h"

enum {
  TILE_ROWS = 512,  /* of a product */
  MEMORY = 10,      /* corrections that L-BFGS keeps */
  MOST_STEPS = 2000 /* a probe that needs more has too small a ridge, and says so */
};

static const double wanted_gradient = 1e-6; /* over max(1, length of the point) */

/* ---- loss and gradient -------------------------------------------------------------------- */

static int64_t tiles_of(int64_t rows) {
  return (rows + TILE_ROWS - 1) / TILE_ROWS;
}

unicon_status unicon__logistic_open(unicon_ctx *ctx, unicon__logistic *p) {
  const int64_t slots = unicon__sweep_slots(ctx, tiles_of(p->n));
  UNICON_NEW(ctx, p->weight, p->r * p->k);
  UNICON_NEW(ctx, p->bias, p->k);
  UNICON_NEW(ctx, p->logits, unicon__workers(ctx) * TILE_ROWS * p->k);
  UNICON_NEW(ctx, p->partial, slots * p->r * p->k);
  UNICON_NEW(ctx, p->sum, slots * (p->k + 1));
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

static void loss_tile(void *state, unicon__cell cell) {
  const unicon__logistic *p = state;
  const int64_t first = cell.row * TILE_ROWS, left = p->n - first;
  const int64_t count = left < TILE_ROWS ? left : TILE_ROWS;
  const float *z = p->z + first * p->r;
  float *logits = p->logits + cell.worker * TILE_ROWS * p->k;
  double *sum = p->sum + cell.slot * (p->k + 1);
  memset(sum, 0, (size_t)(p->k + 1) * sizeof *sum);
  tile_logits(p, z, count, logits);
  for (int64_t i = 0; i < count; i++) {
    sum[p->k] += row_residual(logits + i * p->k, p->k, p->class[first + i]);
    for (int64_t j = 0; j < p->k; j++) sum[j] += (double)logits[i * p->k + j];
  }
  unicon__sgemm(true, false, p->r, p->k, count, 1, z, p->r, logits, p->k, 0,
                p->partial + cell.slot * p->r * p->k, p->k);
}

static void add_tile(void *state, unicon__cell cell) {
  unicon__logistic *p = state;
  const int64_t size = p->r * p->k;
  const float *from = p->partial + cell.slot * size;
  const double *sum = p->sum + cell.slot * (p->k + 1), n = (double)p->n;
  for (int64_t j = 0; j < size; j++) p->gradient[j] += (double)from[j] / n;
  for (int64_t j = 0; j < p->k; j++) p->gradient[size + j] += sum[j] / n;
  p->loss += sum[p->k] / n;
}

unicon_status unicon__logistic_loss(unicon_ctx *ctx, unicon__logistic *p, const double *point,
                                    double *gradient, double *loss) {
  const int64_t size = p->r * p->k;
  double square = 0;
  set_point(p, point);
  memset(gradient, 0, (size_t)(size + p->k) * sizeof *gradient);
  p->gradient = gradient;
  p->loss = 0;
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.rows = tiles_of(p->n),
                                                     .cols = 1,
                                                     .region = &unicon__blas_region,
                                                     .state = p,
                                                     .body = loss_tile,
                                                     .fold_col = add_tile}));
  for (int64_t j = 0; j < size; j++) {
    gradient[j] += p->ridge * point[j];
    square += point[j] * point[j];
  }
  *loss = p->loss + p->ridge * square / 2;
  return UNICON_OK;
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
  descent *d = instance;
  double loss = 0;
  for (int64_t j = d->size; j < n; j++) gradient[j] = 0;
  if (d->status == UNICON_OK)
    d->status = unicon__logistic_loss(d->ctx, d->fit, point, gradient, &loss);
  return loss;
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
  if (d->status == UNICON_OK) d->status = unicon__stage_step(d->ctx, (int64_t)(1000 * way), 1000);
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
  const int stage = unicon__stage_begin(ctx, "logistic regression", 0);
  const int code = lbfgs((int)padded, point, NULL, evaluate, watch, &d, &parameter);
  UNICON_TRY(d.status);
  unicon__stage_end(ctx, stage);
  if (code == LBFGSERR_OUTOFMEMORY)
    return unicon__fail(ctx, UNICON_ERR_MEMORY, "out of memory for %lld weights", (long long)size);
  /* A line search that ends in rounding leaves the best point; the gradient says how good it is. */
  UNICON_TRY(unicon__logistic_loss(ctx, fit, point, gradient, &log->loss));
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

static void answer_tile(void *state, unicon__cell cell) {
  const answers *a = state;
  const int64_t first = cell.row * TILE_ROWS, left = a->count - first, k = a->fit->k;
  const int64_t count = left < TILE_ROWS ? left : TILE_ROWS;
  float *logits = a->fit->logits + cell.worker * TILE_ROWS * k;
  tile_logits(a->fit, a->z + first * a->fit->r, count, logits);
  for (int64_t i = 0; i < count; i++) {
    const float *row = logits + i * k;
    int32_t best = 0;
    for (int32_t j = 1; j < (int32_t)k; j++)
      if (row[j] > row[best]) best = j;
    a->class[first + i] = best;
  }
}

unicon_status unicon__logistic_answer(unicon_ctx *ctx, const unicon__logistic *fit, const float *z,
                                      int64_t count, int32_t *class) {
  answers a = {fit, z, count, class};
  return unicon__sweep_rows(ctx, "answers", &unicon__blas_region, tiles_of(count), answer_tile, &a);
}
