/* SPDX-License-Identifier: Apache-2.0 */
#include "use/tsne.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { ROWS = 16, SUMS = 5, BISECTIONS = 64, STEPS = 750, EARLY_STEPS = 250 };

/* Settings of Belkina et al. 2019 and of common implementations. */
static const double exaggeration = 12, early_momentum = 0.5, late_momentum = 0.8;
static const float gain_up = 0.2f, gain_down = 0.8f, least_gain = 0.01f;

unicon_status unicon__tsne_open(unicon_ctx *ctx, int64_t n, unicon__tsne *out) {
  *out = (unicon__tsne){.n = n};
  UNICON_NEW(ctx, out->p, n * n);
  UNICON_NEW(ctx, out->x, n);
  UNICON_NEW(ctx, out->y, n);
  UNICON_NEW(ctx, out->force, n * SUMS);
  for (int k = 0; k < 2; k++) {
    UNICON_NEW(ctx, out->step[k], n);
    UNICON_NEW(ctx, out->gain[k], n);
    UNICON_NEW(ctx, out->change[k], n);
  }
  return UNICON_OK;
}

/* ---- affinities --------------------------------------------------------------------------- */

typedef struct affinities {
  const unicon__tsne *t;
  const float *z;
  int64_t d;
  const double *square; /* |z_i|^2 */
  double entropy;       /* wanted of each row */
  float *scratch;       /* per worker: n exponents */
} affinities;

/* Turns squared distances into p_j|i by bisection on beta: with e_j = exp(-beta (D_j - D_min)),
 *     H = log(sum e) + beta (sum e (D - D_min)) / sum e   falls as beta grows. */
static void calibrate(float *row, int64_t n, int64_t self, double entropy, float *e) {
  const unicon__vec *vec = unicon__vec_best();
  float least = INFINITY;
  double beta = 1, low = 0, high = INFINITY, sum = 0;
  for (int64_t j = 0; j < n; j++)
    if (j != self && row[j] < least) least = row[j];
  for (int64_t j = 0; j < n; j++) row[j] = j == self ? INFINITY : row[j] - least;
  for (int k = 0; k < BISECTIONS; k++) {
    double weighted = 0;
    sum = 0;
    for (int64_t j = 0; j < n; j++) e[j] = (float)-beta * row[j];
    vec->exp(e, n);
    for (int64_t j = 0; j < n; j++) {
      if (j == self) continue;
      sum += (double)e[j];
      weighted += (double)e[j] * (double)row[j];
    }
    /* cppcheck-suppress invalidFunctionArg ; there are rows, so the sum has a term of 1 */
    const double now = log(sum) + beta * weighted / sum;
    if (fabs(now - entropy) < 1e-5) break;
    if (now > entropy)
      low = beta;
    else
      high = beta;
    beta = isinf(high) ? 2 * beta : (low + high) / 2;
  }
  for (int64_t j = 0; j < n; j++) row[j] = j == self ? 0 : (float)((double)e[j] / sum);
}

static void affinity_rows(void *state, int64_t item, int worker) {
  const affinities *a = state;
  const unicon__tsne *t = a->t;
  const int64_t first = item * ROWS, n = t->n, left = n - first;
  const int64_t rows = left < ROWS ? left : ROWS;
  unicon__sgemm(false, true, rows, n, a->d, -2, a->z + first * a->d, a->d, a->z, a->d, 0,
                t->p + first * n, n);
  for (int64_t i = first; i < first + rows; i++) {
    float *row = t->p + i * n;
    for (int64_t j = 0; j < n; j++) {
      const double distance = (double)row[j] + a->square[i] + a->square[j];
      row[j] = distance > 0 ? (float)distance : 0;
    }
    calibrate(row, n, i, a->entropy, a->scratch + worker * n);
  }
}

/* p_ij = (p_j|i + p_i|j) / 2n; an item owns the cells whose smaller index it is. */
static void symmetric_row(void *state, int64_t i, int worker) {
  (void)worker;
  const unicon__tsne *t = state;
  const int64_t n = t->n;
  for (int64_t j = i + 1; j < n; j++)
    t->p[i * n + j] = t->p[j * n + i] = (t->p[i * n + j] + t->p[j * n + i]) / (float)(2 * n);
}

unicon_status unicon__tsne_affinities(unicon_ctx *ctx, unicon__tsne *t, const float *z, int64_t d,
                                      double perplexity) {
  const double most = (double)(t->n - 1) / 3;
  double *square, wanted = perplexity < most ? perplexity : most;
  affinities a = {.t = t, .z = z, .d = d, .entropy = log(wanted > 1 ? wanted : 1)};
  UNICON_NEW(ctx, square, t->n);
  UNICON_NEW(ctx, a.scratch, unicon__workers(ctx) * t->n);
  for (int64_t i = 0; i < t->n; i++) square[i] = unicon__vec_best()->sum_squares(z + i * d, d);
  a.square = square;
  UNICON_TRY(unicon__poll(ctx));
  unicon__blas_begin();
  unicon__parallel_for(ctx, (t->n + ROWS - 1) / ROWS, affinity_rows, &a);
  unicon__blas_end();
  unicon__parallel_for(ctx, t->n, symmetric_row, t);
  return UNICON_OK;
}

/* ---- descent ------------------------------------------------------------------------------ */

static void force_rows(void *state, int64_t item, int worker) {
  (void)worker;
  const unicon__tsne *t = state;
  const int64_t first = item * ROWS, last = first + ROWS < t->n ? first + ROWS : t->n;
  for (int64_t i = first; i < last; i++)
    unicon__vec_best()->student_sums(t->x, t->y, t->p + i * t->n, t->n, t->x[i], t->y[i],
                                     t->force + i * SUMS);
}

void unicon__tsne_gradient(unicon_ctx *ctx, unicon__tsne *t, double factor) {
  double z = -(double)t->n; /* a point's own w is 1 */
  unicon__parallel_for(ctx, (t->n + ROWS - 1) / ROWS, force_rows, t);
  for (int64_t i = 0; i < t->n; i++) z += (double)t->force[i * SUMS];
  for (int64_t i = 0; i < t->n; i++) {
    const float *f = t->force + i * SUMS;
    for (int k = 0; k < 2; k++)
      t->change[k][i] =
          (float)(4 * (factor * (double)f[1 + k] - (z > 0 ? (double)f[3 + k] / z : 0)));
  }
}

double unicon__tsne_divergence(const unicon__tsne *t) {
  double z = 0, sum = 0, mass = 0;
  for (int64_t i = 0; i < t->n; i++) {
    const float *p = t->p + i * t->n;
    for (int64_t j = 0; j < t->n; j++) {
      if (j == i) continue;
      const double dx = (double)t->x[i] - (double)t->x[j], dy = (double)t->y[i] - (double)t->y[j];
      const double spread = 1 + dx * dx + dy * dy;
      z += 1 / spread;
      if (p[j] > 0) sum += (double)p[j] * log((double)p[j] * spread);
      mass += (double)p[j];
    }
  }
  return sum + mass * log(z > 0 ? z : 1);
}

/* A step with momentum; a coordinate that keeps its direction gains speed. Then the mean goes to
 * 0. */
static void move(unicon__tsne *t, int axis, double rate, double momentum) {
  float *at = axis == 0 ? t->x : t->y;
  double mean = 0;
  for (int64_t i = 0; i < t->n; i++) {
    const float change = t->change[axis][i], step = t->step[axis][i], gain = t->gain[axis][i];
    const float now = (change > 0) != (step > 0) ? gain + gain_up : gain * gain_down;
    t->gain[axis][i] = now > least_gain ? now : least_gain;
    t->step[axis][i] =
        (float)(momentum * (double)step - rate * (double)t->gain[axis][i] * (double)change);
    at[i] += t->step[axis][i];
    mean += (double)at[i];
  }
  mean /= (double)t->n;
  for (int64_t i = 0; i < t->n; i++) at[i] -= (float)mean;
}

unicon_status unicon__tsne_descend(unicon_ctx *ctx, unicon__tsne *t) {
  const double usual = (double)t->n / (4 * exaggeration), rate = usual > 50 ? usual : 50;
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < t->n; i++) {
      t->gain[k][i] = 1;
      t->step[k][i] = 0;
    }
  const int stage = unicon__stage_begin(ctx, "layout", 1);
  for (int s = 0; s < STEPS; s++) {
    const bool early = s < EARLY_STEPS;
    UNICON_TRY(unicon__stage_step(ctx, s, STEPS));
    unicon__tsne_gradient(ctx, t, early ? exaggeration : 1);
    for (int k = 0; k < 2; k++) move(t, k, rate, early ? early_momentum : late_momentum);
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}
