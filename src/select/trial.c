/* SPDX-License-Identifier: Apache-2.0 */
#include "select/trial.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "loss/moment.h"
#include "features/project.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"

enum {
  MOST_AXES = 1024, /* more cost much and are worth .002 of the score (docs/results) */
  DENSE_UP_TO = 400 /* smaller side for which the dense SVD is cheap */
};

static const double signal_floor = 1e-6; /* directions below this share of s_1 are noise */

/* ---- coordinates -------------------------------------------------------------------------- */

/* Eigenvectors of a side: the leading ones by row in `vectors`, by column in float32 as axes. */
static unicon_status open_axes(unicon_ctx *ctx, unicon__trial *t, int s, double **vectors) {
  unicon__side *side = &t->side[s];
  const int64_t p = side->map.out, q = p < MOST_AXES ? p : MOST_AXES;
  double *all = NULL, *values = NULL;
  UNICON_TRY(unicon__eigen(ctx, side->sigma, p, &all, &values));
  UNICON_NEW(ctx, t->values[s], q);
  UNICON_NEW(ctx, *vectors, q * p);
  UNICON_NEW(ctx, t->axes[s], p * q);
  for (int64_t k = 0; k < q; k++) {
    const double *from = all + (p - 1 - k) * p;
    t->values[s][k] = values[p - 1 - k];
    memcpy(*vectors + k * p, from, (size_t)p * sizeof *from);
    for (int64_t i = 0; i < p; i++) t->axes[s][i * q + k] = (float)from[i];
  }
  t->q[s] = q;
  t->plain[s] = (unicon__map){.in = q, .out = q};
  unicon__drop(ctx, values);
  unicon__drop(ctx, all);
  unicon__drop(ctx, side->sigma);
  side->sigma = NULL;
  return UNICON_OK;
}

/* Rows of a source in coordinates, as a source of its own that has them in its cache. */
static unicon_status to_axes(unicon_ctx *ctx, const unicon__trial *t, int s,
                             const unicon__source *from, unicon__source *out) {
  const int64_t n = from->count, q = t->q[s];
  float *rows;
  UNICON_NEW(ctx, rows, n * q);
  UNICON_TRY(unicon__project(ctx, from, t->axes[s], q, 0, n, false, false, rows, q));
  *out = (unicon__source){.rows = from->rows, .count = n, .map = &t->plain[s], .cache = rows};
  return UNICON_OK;
}

static unicon_status open_held(unicon_ctx *ctx, const unicon__validation *held, unicon__trial *t) {
  unicon__validation features;
  UNICON_TRY(unicon__validation_through(ctx, t->options, held, t->pairs, t->side, &features));
  t->held = features;
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(to_axes(ctx, t, s, &features.side[s], &t->held.side[s]));
    if (features.bank[s].count > 0)
      UNICON_TRY(to_axes(ctx, t, s, &features.bank[s], &t->held.bank[s]));
    unicon__drop(ctx, (float *)(uintptr_t)features.side[s].cache);
  }
  return UNICON_OK;
}

static unicon_status open_cross(unicon_ctx *ctx, double *const vectors[2], unicon__trial *t) {
  const int64_t p_x = t->side[0].map.out, p_y = t->side[1].map.out;
  const bool centred = t->side[0].map.mean && t->side[1].map.mean;
  double *c, *half;
  UNICON_NEW(ctx, t->cross, t->q[0] * t->q[1]);
  UNICON_NEW(ctx, c, p_x * p_y);
  UNICON_NEW(ctx, half, t->q[0] * p_y);
  UNICON_TRY(
      unicon__moment_cross(ctx, t->pairs, &t->side[0].source, &t->side[1].source, centred, c));
  unicon__tiled_dgemm(ctx, false, false, t->q[0], p_y, p_x, 1, vectors[0], p_x, c, p_y, 0, half,
                      p_y);
  unicon__tiled_dgemm(ctx, false, true, t->q[0], t->q[1], p_y, 1, half, p_y, vectors[1], p_y, 0,
                      t->cross, t->q[1]);
  unicon__drop(ctx, half);
  unicon__drop(ctx, c);
  return UNICON_OK;
}

/* Room for the basis that settings hand on, and normals as its first value; none where the dense
 * SVD is cheap. */
static unicon_status open_start(unicon_ctx *ctx, unicon__trial *t) {
  const int64_t small = t->q[0] < t->q[1] ? t->q[0] : t->q[1];
  const int64_t w = t->most + t->most / 4 + 16;
  if (small <= DENSE_UP_TO || 2 * w > small) return UNICON_OK;
  float *row;
  UNICON_NEW(ctx, t->start, t->q[1] * w);
  UNICON_NEW(ctx, row, w);
  for (int64_t j = 0; j < t->q[1]; j++) {
    unicon__normals((uint64_t)unicon__integer(t->options, UNICON__SEED), UNICON__STREAM_SKETCH,
                    (uint64_t)j, w, row);
    for (int64_t k = 0; k < w; k++) t->start[j * w + k] = (double)row[k];
  }
  t->start_width = w;
  unicon__drop(ctx, row);
  return UNICON_OK;
}

/* Room for the decomposition in force and its embeddings. */
static unicon_status open_results(unicon_ctx *ctx, unicon__trial *t) {
  const int64_t r = t->most;
  t->svd = (unicon__svd){.m = t->q[0], .n = t->q[1], .r = r};
  t->z = (unicon__embedded){.r = r};
  t->power = t->ridge = -1;
  UNICON_NEW(ctx, t->svd.u, t->q[0] * r);
  UNICON_NEW(ctx, t->svd.s, r);
  UNICON_NEW(ctx, t->svd.v, t->q[1] * r);
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, t->z.held[s], t->held.side[s].count * r);
    if (t->held.bank[s].count > 0) UNICON_NEW(ctx, t->z.bank[s], t->held.bank[s].count * r);
  }
  return UNICON_OK;
}

static unicon_status open_shared(unicon_ctx *ctx, const unicon__validation *held,
                                 unicon__trial *t) {
  double *vectors[2] = {NULL, NULL};
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(unicon__progress(ctx, "eigenvectors", s / 2.0));
    UNICON_TRY(open_axes(ctx, t, s, &vectors[s]));
  }
  UNICON_TRY(open_cross(ctx, vectors, t));
  unicon__drop(ctx, vectors[1]);
  unicon__drop(ctx, vectors[0]);
  for (int s = 0; s < 2; s++)
    if (t->most > t->q[s]) t->most = t->q[s];
  UNICON_TRY(open_start(ctx, t));
  UNICON_TRY(open_held(ctx, held, t));
  return open_results(ctx, t);
}

unicon_status unicon__trial_open(unicon_ctx *ctx, const unicon_options *options,
                                 const unicon__batch *train, const unicon__validation *held,
                                 int64_t most, unicon__trial *out) {
  *out = (unicon__trial){.options = options, .pairs = train->pairs};
  out->part.batch = &out->part.whole;
  for (int s = 0; s < 2; s++) {
    const unicon__side_plan plan = {
        .options = options, .number = s, .covariance = true, .cache = true};
    UNICON_TRY(
        unicon__side_fit(ctx, &ctx->arena, &plan, s == 0 ? &train->x : &train->y, &out->side[s]));
  }
  const int64_t allowed = unicon__most_rank(options, &out->side[0].source, &out->side[1].source);
  out->most = most < allowed ? most : allowed;
  unicon__blas_begin();
  const unicon_status status = open_shared(ctx, held, out);
  unicon__blas_end();
  return status;
}

void unicon__trial_close(unicon__trial *trial) {
  unicon__problem_close(&trial->part);
}

/* ---- settings ----------------------------------------------------------------------------- */

/* The metric of a side at `power`, or at its own where the user gave one. */
static unicon_status trial_metric(unicon_ctx *ctx, const unicon__trial *t, int s, double power,
                                  double ridge, unicon__whitening *out) {
  const double own = unicon__side_power(t->options, s, power);
  const double top = t->values[s][0], floor = top * (double)FLT_EPSILON;
  double *scale;
  UNICON_NEW(ctx, scale, t->q[s]);
  for (int64_t k = 0; k < t->q[s]; k++) {
    const double e = (t->values[s][k] > 0 ? t->values[s][k] : 0) + ridge * top;
    scale[k] = e > floor ? pow(e, -own) : 0;
  }
  *out = (unicon__whitening){UNICON__WHITEN_DIAGONAL, t->q[s], NULL, scale};
  return UNICON_OK;
}

/* The leading triples of M, in full or, well enough for a score, by a few rounds of subspace
 * iteration from the setting before. */
static unicon_status decompose(unicon_ctx *ctx, unicon__trial *t, const double *scale_x,
                               const double *scale_y, unicon__svd *svd) {
  const int64_t q_x = t->q[0], q_y = t->q[1];
  double *m;
  UNICON_NEW(ctx, m, q_x * q_y);
  for (int64_t i = 0; i < q_x; i++)
    for (int64_t j = 0; j < q_y; j++)
      m[i * q_y + j] = scale_x[i] * t->cross[i * q_y + j] * scale_y[j];
  if (!t->start)
    return unicon__svd_top(ctx, m, q_x, q_y, t->most,
                           (unicon__svd_method)unicon__word(t->options, UNICON__SVD),
                           (uint64_t)unicon__integer(t->options, UNICON__SEED), svd);
  const int rounds = t->warm ? 2 : 5;
  t->warm = true;
  return unicon__svd_warm(ctx, m, q_x, q_y, t->most, t->start, t->start_width, rounds, svd);
}

/* U or V in coordinates, without the singular values: features to embedding. */
static unicon_status basis_weights(unicon_ctx *ctx, int64_t q, const double *scale,
                                   const double *basis, int64_t r, float **out) {
  UNICON_NEW(ctx, *out, q * r);
  for (int64_t i = 0; i < q; i++)
    for (int64_t k = 0; k < r; k++) (*out)[i * r + k] = (float)(scale[i] * basis[i * r + k]);
  return UNICON_OK;
}

/* Makes (power, ridge) the setting in force. */
static unicon_status take_setting(unicon_ctx *ctx, unicon__trial *t, double power, double ridge) {
  if (t->power == power && t->ridge == ridge) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t r = t->most;
  unicon__whitening metric[2] = {{.size = 0}, {.size = 0}};
  unicon__svd svd;
  unicon__embedded z;
  float *f[2];
  for (int s = 0; s < 2; s++) UNICON_TRY(trial_metric(ctx, t, s, power, ridge, &metric[s]));
  UNICON_TRY(decompose(ctx, t, metric[0].scale, metric[1].scale, &svd));
  memcpy(t->svd.u, svd.u, (size_t)(t->q[0] * r) * sizeof *svd.u);
  memcpy(t->svd.s, svd.s, (size_t)r * sizeof *svd.s);
  memcpy(t->svd.v, svd.v, (size_t)(t->q[1] * r) * sizeof *svd.v);
  for (t->signal = 0; t->signal < r && svd.s[t->signal] > signal_floor * svd.s[0];) t->signal++;
  UNICON_TRY(basis_weights(ctx, t->q[0], metric[0].scale, svd.u, r, &f[0]));
  UNICON_TRY(basis_weights(ctx, t->q[1], metric[1].scale, svd.v, r, &f[1]));
  UNICON_TRY(unicon__validation_embed(ctx, &t->held, (const float *const *)f, r, &z));
  for (int s = 0; s < 2; s++) {
    memcpy(t->z.held[s], z.held[s], (size_t)(t->held.side[s].count * r) * sizeof(float));
    if (z.bank[s])
      memcpy(t->z.bank[s], z.bank[s], (size_t)(t->held.bank[s].count * r) * sizeof(float));
  }
  t->power = power;
  t->ridge = ridge;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Shares of the exponent that the sides get. */
static void sides_of(const unicon__trial *t, double exponent, double power[2]) {
  const double split = unicon__number(t->options, UNICON__SPLIT);
  power[0] = exponent * split;
  power[1] = exponent * (1 - split);
}

static unicon_status score_setting(unicon_ctx *ctx, unicon__trial *t,
                                   const unicon__setting *setting, double *score) {
  double power[2], *scale[2];
  *score = 0;
  UNICON_TRY(take_setting(ctx, t, setting->power, setting->ridge));
  if (!(t->svd.s[0] > 0)) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t rank = setting->rank < t->signal ? setting->rank : t->signal;
  sides_of(t, setting->exponent, power);
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, scale[s], rank);
    for (int64_t k = 0; k < rank; k++) scale[s][k] = pow(t->svd.s[k] / t->svd.s[0], power[s]);
  }
  UNICON_TRY(unicon__validation_judge(ctx, &t->held, &t->z, rank, (const double *const *)scale,
                                      setting->balance, score));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__trial_score(unicon_ctx *ctx, unicon__trial *trial,
                                  const unicon__setting *setting, double *score) {
  unicon__blas_begin();
  const unicon_status status = score_setting(ctx, trial, setting, score);
  unicon__blas_end();
  return status;
}

/* ---- refine ------------------------------------------------------------------------------- */

/* Training rows in coordinates: all of them, or as many as have room in a quarter of a gigabyte's
 * worth (or of the memory that is still allowed), which is more than an epoch looks at. */
static unicon_status open_rows(unicon_ctx *ctx, unicon__trial *t) {
  if (t->rows.pairs) return UNICON_OK;
  const unicon__budget *budget = ctx->arena.budget;
  const uint64_t limit = unicon__budget_limit(budget), used = unicon__budget_used(budget);
  const double allowed = limit == UINT64_MAX ? 1e9 : used < limit ? (double)(limit - used) / 2 : 0;
  const unicon__source *x = &t->side[0].source, *y = &t->side[1].source;
  const double bytes =
      4 * ((double)x->count * (double)t->q[0] + (double)y->count * (double)t->q[1]);
  const double share = bytes > allowed ? allowed / bytes : 1;
  const int64_t size = (int64_t)(share * (double)x->count);
  t->part.whole = (unicon__batch){.x = *x, .y = *y, .pairs = t->pairs};
  const unicon__cut cut = {.size = share < 1 ? (size > 2 ? size : 2) : 0,
                           .seed = (uint64_t)unicon__integer(t->options, UNICON__SEED)};
  UNICON_TRY(unicon__problem_cut(ctx, &cut, &t->part));
  const unicon__batch *batch = &t->part.batch[0];
  UNICON_TRY(to_axes(ctx, t, 0, &batch->x, &t->rows.x));
  UNICON_TRY(to_axes(ctx, t, 1, &batch->y, &t->rows.y));
  t->rows.pairs = batch->pairs;
  return UNICON_OK;
}

/* Scores of factors under several ways to balance. */
static unicon_status balance_factors(unicon_ctx *ctx, const unicon__trial *t,
                                     const unicon__whitening metric[2],
                                     const unicon__factors *factors, const unicon__balancing *how,
                                     int hows, double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  unicon__embedded z;
  float *f[2];
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, f[s], t->q[s] * factors->r);
    for (int64_t k = 0; k < t->q[s] * factors->r; k++)
      f[s][k] = (float)metric[s].scale[k / factors->r] * factors->g[s][k];
  }
  UNICON_TRY(unicon__validation_embed(ctx, &t->held, (const float *const *)f, factors->r, &z));
  for (int k = 0; k < hows; k++)
    UNICON_TRY(
        unicon__validation_judge(ctx, &t->held, &z, factors->r, as_it_is, how[k], &score[k]));
  return UNICON_OK;
}

static unicon_status refine_setting(unicon_ctx *ctx, unicon__trial *t,
                                    const unicon__setting *setting,
                                    const unicon__refine_params *params, unicon__refine_log *log,
                                    const unicon__balancing *how, int hows, double *score) {
  double power[2];
  unicon__whitening metric[2] = {{.size = 0}, {.size = 0}};
  unicon__factors factors;
  UNICON_TRY(open_rows(ctx, t));
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(take_setting(ctx, t, setting->power, setting->ridge));
  sides_of(t, setting->exponent, power);
  for (int s = 0; s < 2; s++)
    UNICON_TRY(trial_metric(ctx, t, s, setting->power, setting->ridge, &metric[s]));
  const int64_t rank = setting->rank < t->signal ? setting->rank : t->signal;
  unicon__state state;
  UNICON_TRY(unicon__state_new(ctx, t->q[0], t->q[1], t->most, &state));
  const unicon__state from = {t->q[0], t->q[1], t->most, t->svd.u, t->svd.s, t->svd.v};
  unicon__state_copy(&state, &from);
  unicon__state_trim(&state, rank);
  UNICON_TRY(unicon__factors_of(ctx, &state, power, &factors));
  unicon__validation held = t->held;
  held.balance = setting->balance;
  UNICON_TRY(unicon__refine(ctx, &t->rows, metric, &held, params, &factors, log));
  UNICON_TRY(balance_factors(ctx, t, metric, &factors, how, hows, score));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__trial_refine(unicon_ctx *ctx, unicon__trial *trial,
                                   const unicon__setting *setting,
                                   const unicon__refine_params *params, unicon__refine_log *log,
                                   const unicon__balancing *how, int hows, double *score) {
  unicon__blas_begin();
  const unicon_status status = refine_setting(ctx, trial, setting, params, log, how, hows, score);
  unicon__blas_end();
  return status;
}
