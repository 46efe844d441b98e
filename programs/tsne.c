/* SPDX-License-Identifier: Apache-2.0 */
#include "tsne.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 13, BISECTIONS = 64, STEPS = 750, EARLY_STEPS = 250, LEAST_POINTS = 4 };

/* Settings of Belkina et al. 2019 and of common implementations. */
static const double exaggeration = 12, early_momentum = 0.5, late_momentum = 0.8;
static const float gain_up = 0.2f, gain_down = 0.8f, least_gain = 0.01f;

static const double start_spread = 1e-4;   /* so that no point is far away yet */
static const double affinity_share = 0.15; /* of the time, about */

tsne_status tsne_open(int64_t n, tsne *out) {
  *out = (tsne){.n = n, .p = calloc((size_t)(n * (n + ARRAYS)), sizeof(float))};
  if (!out->p) return TSNE_NO_MEMORY;
  float *next = out->p + n * n;
  for (int k = 0; k < 5; k++, next += n) out->sum[k] = next;
  for (int k = 0; k < 2; k++, next += 4 * n) {
    out->at[k] = next;
    out->change[k] = next + n;
    out->step[k] = next + 2 * n;
    out->gain[k] = next + 3 * n;
  }
  return TSNE_DONE;
}

void tsne_close(tsne *t) {
  free(t->p);
  *t = (tsne){0};
}

/* ---- affinities --------------------------------------------------------------------------- */

/* Squared distances of point i to all; `turned` is d by n, so that the inner loop has no sum. */
static void distances(const float *turned, int64_t n, int64_t d, int64_t i, float *restrict row) {
  memset(row, 0, (size_t)n * sizeof *row);
  for (int64_t k = 0; k < d; k++) {
    const float *restrict z = turned + k * n;
    const float own = z[i];
    for (int64_t j = 0; j < n; j++) row[j] += (z[j] - own) * (z[j] - own);
  }
}

/* Turns squared distances into p_j|i by bisection on beta: with e_j = exp(-beta (D_j - D_min)),
 *     H = log(sum e) + beta (sum e (D - D_min)) / sum e   falls as beta grows. */
static void calibrate(float *row, int64_t n, int64_t self, double entropy, float *e) {
  float least = INFINITY;
  double beta = 1, low = 0, high = INFINITY, sum = 1;
  for (int64_t j = 0; j < n; j++)
    if (j != self && row[j] < least) least = row[j];
  for (int k = 0; k < BISECTIONS; k++) {
    double weighted = 0;
    sum = 0;
    for (int64_t j = 0; j < n; j++) {
      e[j] = j == self ? 0 : expf((float)-beta * (row[j] - least));
      sum += (double)e[j];
      weighted += (double)e[j] * (double)(row[j] - least);
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
  for (int64_t j = 0; j < n; j++) row[j] = (float)((double)e[j] / sum);
}

tsne_status tsne_affinities(tsne *t, const float *z, int64_t d, double perplexity,
                            tsne_progress progress, void *user) {
  const int64_t n = t->n;
  const double most = (double)(n - 1) / 3, wanted = fmax(1, fmin(perplexity, most));
  float *turned = calloc((size_t)(n * (d + 1)), sizeof *turned);
  bool stopped = false;
  if (!turned) return TSNE_NO_MEMORY;
  for (int64_t k = 0; k < n * d; k++) turned[k % d * n + k / d] = z[k];
  for (int64_t i = 0; i < n && !stopped; i++) {
    stopped = progress && progress(user, "layout", affinity_share * (double)i / (double)n, -1) != 0;
    distances(turned, n, d, i, t->p + i * n);
    calibrate(t->p + i * n, n, i, log(wanted), turned + n * d);
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      t->p[i * n + j] = t->p[j * n + i] = (t->p[i * n + j] + t->p[j * n + i]) / (float)(2 * n);
  free(turned);
  return stopped ? TSNE_STOPPED : TSNE_DONE;
}

/* ---- descent ------------------------------------------------------------------------------ */

/* What a point at (own_x, own_y) with affinities p does to all n points (x, y): adds the five sums
 * of tsne.h, d being the way from the point to each of them. */
static void add_forces(int64_t n, float own_x, float own_y, const float *restrict p,
                       const float *restrict x, const float *restrict y, float *restrict sum,
                       float *restrict pull_x, float *restrict pull_y, float *restrict push_x,
                       float *restrict push_y) {
  for (int64_t j = 0; j < n; j++) {
    const float dx = x[j] - own_x, dy = y[j] - own_y, w = 1 / (1 + dx * dx + dy * dy);
    sum[j] += w;
    pull_x[j] += p[j] * w * dx;
    pull_y[j] += p[j] * w * dy;
    push_x[j] += w * w * dx;
    push_y[j] += w * w * dy;
  }
}

void tsne_gradient(tsne *t, double factor) {
  double z = -(double)t->n; /* a point's own w is 1 */
  memset(t->sum[0], 0, (size_t)(5 * t->n) * sizeof(float));
  for (int64_t i = 0; i < t->n; i++)
    add_forces(t->n, t->at[0][i], t->at[1][i], t->p + i * t->n, t->at[0], t->at[1], t->sum[0],
               t->sum[1], t->sum[2], t->sum[3], t->sum[4]);
  for (int64_t j = 0; j < t->n; j++) z += (double)t->sum[0][j];
  for (int k = 0; k < 2; k++)
    for (int64_t j = 0; j < t->n; j++)
      t->change[k][j] = (float)(4 * (factor * (double)t->sum[1 + k][j] -
                                     (z > 0 ? (double)t->sum[3 + k][j] / z : 0)));
}

double tsne_divergence(const tsne *t) {
  double z = 0, sum = 0, mass = 0;
  for (int64_t i = 0; i < t->n; i++) {
    const float *p = t->p + i * t->n;
    for (int64_t j = 0; j < t->n; j++) {
      if (j == i) continue;
      const double dx = (double)t->at[0][i] - (double)t->at[0][j],
                   dy = (double)t->at[1][i] - (double)t->at[1][j];
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
static void move(tsne *t, int axis, double rate, double momentum) {
  double mean = 0;
  for (int64_t i = 0; i < t->n; i++) {
    const float change = t->change[axis][i], step = t->step[axis][i], gain = t->gain[axis][i];
    const float now = (change > 0) != (step > 0) ? gain + gain_up : gain * gain_down;
    t->gain[axis][i] = now > least_gain ? now : least_gain;
    t->step[axis][i] =
        (float)(momentum * (double)step - rate * (double)t->gain[axis][i] * (double)change);
    t->at[axis][i] += t->step[axis][i];
    mean += (double)t->at[axis][i];
  }
  mean /= (double)t->n;
  for (int64_t i = 0; i < t->n; i++) t->at[axis][i] -= (float)mean;
}

static tsne_status descend(tsne *t, tsne_progress progress, void *user) {
  const double rate = fmax(50, (double)t->n / (4 * exaggeration));
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < t->n; i++) t->gain[k][i] = 1;
  for (int s = 0; s < STEPS; s++) {
    const bool early = s < EARLY_STEPS;
    const double done = affinity_share + (1 - affinity_share) * (double)s / STEPS;
    if (progress && progress(user, "layout", done, -1) != 0) return TSNE_STOPPED;
    tsne_gradient(t, early ? exaggeration : 1);
    for (int k = 0; k < 2; k++) move(t, k, rate, early ? early_momentum : late_momentum);
  }
  return TSNE_DONE;
}

/* ---- the start ---------------------------------------------------------------------------- */

/* Makes b orthogonal to a, and of length 1, or 0 where nothing is left. */
static void straighten(const double *a, double *b, int64_t d) {
  double before = 0, along = 0, after = 0;
  for (int64_t k = 0; k < d; k++) before += b[k] * b[k];
  for (int64_t k = 0; a && k < d; k++) along += a[k] * b[k];
  for (int64_t k = 0; k < d; k++) {
    b[k] -= a ? along * a[k] : 0;
    after += b[k] * b[k];
  }
  const double scale = after > 1e-24 * before ? 1 / sqrt(after) : 0;
  for (int64_t k = 0; k < d; k++) b[k] *= scale;
}

/* Coordinates of the centred points along their two leading principal directions, by power
 * iteration. Directions of nearly equal variance stay mixed, which a picture cannot tell. */
static tsne_status main_directions(const float *z, int64_t n, int64_t d, float *out) {
  enum { ROUNDS = 200 };
  double *mean = calloc((size_t)(5 * d), sizeof *mean), moved = 1;
  if (!mean) return TSNE_NO_MEMORY;
  double *axis[2] = {mean + d, mean + 2 * d}, *next[2] = {mean + 3 * d, mean + 4 * d};
  for (int64_t k = 0; k < n * d; k++) mean[k % d] += (double)z[k] / (double)n;
  for (int64_t k = 0; k < d; k++) { /* any two directions */
    axis[0][k] = cos((double)(k + 1));
    axis[1][k] = sin((double)(2 * k + 1));
  }
  for (int round = 0; round <= ROUNDS && moved > 1e-12; round++) {
    memset(next[0], 0, (size_t)(2 * d) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
      for (int a = 0; a < 2; a++) {
        double along = 0;
        for (int64_t k = 0; k < d; k++) along += axis[a][k] * ((double)z[i * d + k] - mean[k]);
        for (int64_t k = 0; k < d; k++) next[a][k] += along * ((double)z[i * d + k] - mean[k]);
        out[2 * i + a] = (float)along;
      }
    straighten(NULL, next[0], d);
    straighten(next[0], next[1], d);
    moved = 0;
    for (int64_t k = 0; k < 2 * d; k++) {
      moved += (next[0][k] - axis[0][k]) * (next[0][k] - axis[0][k]);
      axis[0][k] = next[0][k];
    }
  }
  free(mean);
  return TSNE_DONE;
}

tsne_status tsne_place(const float *z, int64_t n, int64_t d, double perplexity,
                       tsne_progress progress, void *user, float *out, double *divergence) {
  tsne t;
  double square = 0;
  *divergence = NAN;
  tsne_status status = main_directions(z, n, d, out);
  if (status != TSNE_DONE || perplexity <= 0 || n < LEAST_POINTS) return status;
  status = tsne_open(n, &t);
  if (status != TSNE_DONE) return status;
  for (int64_t i = 0; i < n; i++) square += (double)out[2 * i] * (double)out[2 * i];
  const double scale = square > 0 ? start_spread / sqrt(square / (double)n) : 0;
  for (int64_t k = 0; k < 2 * n; k++) t.at[k % 2][k / 2] = (float)(scale * (double)out[k]);
  status = tsne_affinities(&t, z, d, perplexity, progress, user);
  if (status == TSNE_DONE) status = descend(&t, progress, user);
  for (int64_t k = 0; k < 2 * n; k++) out[k] = t.at[k % 2][k / 2];
  if (status == TSNE_DONE) *divergence = tsne_divergence(&t);
  tsne_close(&t);
  return status;
}
