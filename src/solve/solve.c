/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "loss/pass.h"
#include "features/project.h"

enum { HALVINGS = 7 };

static const double enough = 1e-6;         /* relative fall of the loss that counts */
static const double spectrum_floor = 1e-6; /* below this share of s_1 a direction is noise */
static const double no_correlation = 1e-5; /* rounding of float32 features, whitened */

typedef struct solver {
  unicon_ctx *ctx;
  const unicon__problem *problem;
  const unicon__moments *moments;
  const unicon__whitening *metric; /* of x and y */
  const unicon__solve_params *params;
  unicon__solve_log *log;
  bool cosine; /* the loss takes cosines; else dot products, and the norm of M matters */
  int64_t p_x, p_y;
  double *c, *part; /* p_x by p_y: mean over batches, and one batch */
  double *share;    /* weight of each batch in c and in the loss; they sum to 1 */
} solver;

/* ---- factors ------------------------------------------------------------------------------ */

static unicon_status factor(unicon_ctx *ctx, const unicon__whitening *metric, const double *u,
                            const double *s, int64_t m, int64_t r, double power, float **out) {
  double *g;
  UNICON_NEW(ctx, *out, m * r);
  UNICON_NEW(ctx, g, m * r);
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < r; k++) g[i * r + k] = u[i * r + k] * pow(s[k], power);
  UNICON_TRY(unicon__whiten_weights(ctx, metric, g, r, *out));
  unicon__drop(ctx, g);
  return UNICON_OK;
}

unicon_status unicon__state_factors(unicon_ctx *ctx, const unicon__state *state,
                                    const unicon__whitening metric[2], const double power[2],
                                    float **fx, float **fy) {
  UNICON_TRY(factor(ctx, &metric[0], state->u, state->s, state->m, state->r, power[0], fx));
  return factor(ctx, &metric[1], state->v, state->s, state->n, state->r, power[1], fy);
}

/* ---- weights of batches ------------------------------------------------------------------- */

/* 1 for scores within three robust standard deviations below the median, else 0. */
static unicon_status keep_inliers(unicon_ctx *ctx, const double *score, int64_t count,
                                  double *weight) {
  double *sorted;
  UNICON_NEW(ctx, sorted, count);
  memcpy(sorted, score, (size_t)count * sizeof *sorted);
  const double middle = unicon__median(sorted, count);
  for (int64_t b = 0; b < count; b++) sorted[b] = fabs(score[b] - middle);
  const double spread = 1.4826 * unicon__median(sorted, count);
  int64_t dropped = 0;
  for (int64_t b = 0; b < count; b++) {
    weight[b] = score[b] >= middle - 3 * spread - 1e-12;
    dropped += weight[b] == 0;
  }
  if (dropped > 0)
    unicon__log(ctx, UNICON_LOG_INFO, "%lld of %lld batches dropped as outliers",
                (long long)dropped, (long long)count);
  unicon__drop(ctx, sorted);
  return UNICON_OK;
}

unicon_status unicon__aggregate(unicon_ctx *ctx, unicon__aggregation how, const double *score,
                                int64_t count, double *weight) {
  double sum = 0;
  for (int64_t b = 0; b < count; b++)
    weight[b] = how == UNICON__AGGREGATE_ACCURACY  ? score[b]
                : how == UNICON__AGGREGATE_SOFTMAX ? exp(score[b])
                                                   : 1;
  if (how == UNICON__AGGREGATE_ROBUST) UNICON_TRY(keep_inliers(ctx, score, count, weight));
  for (int64_t b = 0; b < count; b++) sum += weight[b];
  for (int64_t b = 0; b < count; b++) weight[b] = sum > 0 ? weight[b] / sum : 1 / (double)count;
  return UNICON_OK;
}

/* ---- the spectral update ------------------------------------------------------------------ */

/* state = [R_x^T C R_y]_r, unscaled; C is overwritten. */
static unicon_status spectral_update(solver *s, int64_t rank, unicon__state *state) {
  unicon__closed_params params = s->params->closed;
  unicon__closed found = {.residual = s->log->residual};
  params.rank = rank;
  UNICON_TRY(unicon__closed_update(s->ctx, s->metric, s->c, &params, &found));
  *state = found.state;
  s->log->residual = found.residual;
  s->log->gap = found.gap;
  s->log->method = found.method;
  return UNICON_OK;
}

/* Held-out score of a state; 0 without held-out pairs. */
static unicon_status judge_state(solver *s, const unicon__state *state, double *score) {
  float *fx, *fy;
  *score = 0;
  if (!s->params->held) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(s->ctx);
  UNICON_TRY(unicon__state_factors(s->ctx, state, s->metric, s->params->power, &fx, &fy));
  const float *weights[2] = {fx, fy};
  UNICON_TRY(unicon__validation_score(s->ctx, s->params->held, weights, state->r, score));
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* C of the moment weights of one batch, into `out`: that of all rows, or of statistics of its own.
 */
static unicon_status moment_batch(solver *s, int64_t b, double *out) {
  const unicon__batch *batch = &s->problem->batch[b];
  if (!batch->x_row) {
    memcpy(out, s->moments->cross, (size_t)(s->p_x * s->p_y) * sizeof *out);
    return UNICON_OK;
  }
  unicon__block *frame = unicon__frame_open(s->ctx);
  const int64_t all[2] = {s->p_x, s->p_y};
  unicon__stats stats;
  double *zero;
  UNICON_NEW(s->ctx, zero, s->p_x > s->p_y ? s->p_x : s->p_y); /* the maps centre by all rows */
  const double *const mean[2] = {zero, zero};
  UNICON_TRY(unicon__stats_open(s->ctx, &s->ctx->arena, batch, all, UNICON__STATS_CROSS, &stats));
  UNICON_TRY(unicon__stats_add(s->ctx, batch, 1, &stats));
  UNICON_TRY(unicon__stats_cross(s->ctx, &stats, mean, out));
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* Weights of the batches: the held-out score of each batch's own closed form decides. */
static unicon_status weigh_batches(solver *s) {
  const int64_t count = s->problem->batches;
  double *score;
  UNICON_NEW(s->ctx, s->share, count);
  UNICON_NEW(s->ctx, score, count);
  const bool judged = s->params->held && count > 1;
  const unicon__aggregation how = judged ? s->params->aggregate : UNICON__AGGREGATE_UNIFORM;
  for (int64_t b = 0; b < count && how != UNICON__AGGREGATE_UNIFORM; b++) {
    unicon__block *frame = unicon__frame_open(s->ctx);
    unicon__state state;
    UNICON_TRY(moment_batch(s, b, s->c));
    UNICON_TRY(spectral_update(s, s->params->closed.rank, &state));
    if (state.s[0] > 0) UNICON_TRY(judge_state(s, &state, &score[b]));
    unicon__frame_close(s->ctx, frame);
  }
  UNICON_TRY(unicon__aggregate(s->ctx, how, score, count, s->share));
  unicon__drop(s->ctx, score);
  return UNICON_OK;
}

static void add_part(solver *s, int64_t b) {
  for (int64_t k = 0; k < s->p_x * s->p_y; k++) s->c[k] += s->share[b] * s->part[k];
}

static unicon_status moment_start(solver *s, unicon__state *state) {
  UNICON_TRY(weigh_batches(s));
  memset(s->c, 0, (size_t)(s->p_x * s->p_y) * sizeof *s->c);
  if (s->problem->batches == 1) UNICON_TRY(moment_batch(s, 0, s->c));
  for (int64_t b = 0; b < s->problem->batches && s->problem->batches > 1; b++) {
    if (s->share[b] == 0) continue;
    UNICON_TRY(moment_batch(s, b, s->part));
    add_part(s, b);
  }
  UNICON_TRY(spectral_update(s, s->params->closed.rank, state));
  const bool whitened =
      s->metric[0].kind != UNICON__WHITEN_NONE && s->metric[1].kind != UNICON__WHITEN_NONE;
  if (!(state->s[0] > (whitened ? no_correlation : 0)) || !isfinite(state->s[0]))
    return unicon__fail(s->ctx, UNICON_ERR_DATA,
                        "the paired rows have no covariance at all (are all rows of one side the "
                        "same?), so there is nothing to align");
  int64_t keep = 0;
  while (keep < state->r && state->s[keep] > spectrum_floor * state->s[0]) keep++;
  unicon__state_trim(state, keep);
  if (state->r < s->params->closed.rank)
    unicon__log(s->ctx, UNICON_LOG_INFO, "rank %lld: the data carry no more directions than that",
                (long long)state->r);
  UNICON_NEW(s->ctx, s->log->spectrum, state->r);
  memcpy(s->log->spectrum, state->s, (size_t)state->r * sizeof *state->s);
  if (s->cosine) unicon__state_normalize(state);
  return UNICON_OK;
}

/* ---- loss and weights at a state ---------------------------------------------------------- */

static unicon_status gather(unicon_ctx *ctx, const float *z, const int64_t *row, int64_t count,
                            int64_t r, const float **out) {
  *out = z;
  if (!row) return UNICON_OK;
  float *copy;
  UNICON_NEW(ctx, copy, count * r);
  for (int64_t i = 0; i < count; i++)
    memcpy(copy + i * r, z + row[i] * r, (size_t)r * sizeof *copy);
  *out = copy;
  return UNICON_OK;
}

/* Loss of one batch; with `cross`, its C is added to s->c. */
static unicon_status evaluate_batch(solver *s, int64_t b, int64_t r, const float *zx,
                                    const float *zy, bool cross, double *value) {
  const unicon__batch *batch = &s->problem->batch[b];
  unicon__block *frame = unicon__frame_open(s->ctx);
  const float *bx, *by;
  unicon__plane plane;
  unicon__loss loss;
  UNICON_TRY(gather(s->ctx, zx, batch->x_row, batch->x.count, r, &bx));
  UNICON_TRY(gather(s->ctx, zy, batch->y_row, batch->y.count, r, &by));
  unicon__plane_init(&plane, batch->pairs, r, bx, by);
  UNICON_TRY(unicon__loss_begin(s->ctx, &s->params->loss, &plane, &loss));
  if (!cross || !loss.ops->pointwise) UNICON_TRY(unicon__pass_observe(s->ctx, &loss));
  if (cross) {
    UNICON_TRY(unicon__pass_cross(s->ctx, &loss, &batch->x, &batch->y, s->part));
    add_part(s, b);
  }
  *value += s->share[b] * loss.value;
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* Loss over the batches at `state`, weighted as their C are; C goes to s->c if `cross`. */
static unicon_status evaluate(solver *s, const unicon__state *state, bool cross, double *value) {
  unicon__block *frame = unicon__frame_open(s->ctx);
  const unicon__batch *whole = &s->problem->whole;
  float *fx, *fy, *zx, *zy;
  UNICON_TRY(unicon__state_factors(s->ctx, state, s->metric, s->params->power, &fx, &fy));
  UNICON_NEW(s->ctx, zx, whole->x.count * state->r);
  UNICON_NEW(s->ctx, zy, whole->y.count * state->r);
  UNICON_TRY(unicon__project(s->ctx, &whole->x, fx, state->r, 0, whole->x.count, s->cosine, false,
                             zx, state->r));
  UNICON_TRY(unicon__project(s->ctx, &whole->y, fy, state->r, 0, whole->y.count, s->cosine, false,
                             zy, state->r));
  *value = 0;
  if (cross) memset(s->c, 0, (size_t)(s->p_x * s->p_y) * sizeof *s->c);
  for (int64_t b = 0; b < s->problem->batches; b++)
    if (s->share[b] > 0) UNICON_TRY(evaluate_batch(s, b, state->r, zx, zy, cross, value));
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* ---- steps -------------------------------------------------------------------------------- */

/* Looks for a shorter and shorter step that lowers the loss; *eta is 0 when there is none. */
static unicon_status safe_step(solver *s, unicon__state *state, const unicon__state *candidate,
                               bool more, double *loss, double *eta) {
  unicon__mixer mix;
  unicon__state trial;
  UNICON_TRY(unicon__mixer_open(s->ctx, state, candidate, s->cosine, &mix));
  UNICON_TRY(unicon__state_new(s->ctx, state->m, state->n, state->r, &trial));
  *eta = s->cosine ? 1 : 0.5; /* 1/2 is the Newton step of the spectral loss */
  for (int k = 0; k <= HALVINGS; k++, *eta /= 2) {
    double value;
    UNICON_TRY(unicon__mix(s->ctx, &mix, *eta, &trial));
    UNICON_TRY(evaluate(s, &trial, false, &value));
    if (!(value < *loss - enough * fabs(*loss))) continue;
    unicon__state_copy(state, &trial);
    if (more) UNICON_TRY(evaluate(s, state, true, &value));
    *loss = value;
    return UNICON_OK;
  }
  *eta = 0;
  return UNICON_OK;
}

/* Logs a step, and keeps it if it is the best so far (the last, without held-out pairs). */
static unicon_status note_step(solver *s, const unicon__state *state, double loss, double eta,
                               unicon__state *best, double *best_score) {
  unicon__solve_log *log = s->log;
  double score;
  UNICON_TRY(judge_state(s, state, &score));
  unicon__log(s->ctx, UNICON_LOG_DEBUG, "step %d: loss %.6f, length %g, held-out score %.4f",
              log->taken, loss, eta, score);
  if (!s->params->held || log->taken == 0 || score > *best_score) {
    unicon__state_copy(best, state);
    *best_score = score;
    log->best = log->taken;
  }
  log->taken++;
  if (log->steps == UNICON__LOG_STEPS) return UNICON_OK;
  log->loss[log->steps] = loss;
  log->eta[log->steps] = eta;
  log->score[log->steps] = score;
  log->steps++;
  return UNICON_OK;
}

static unicon_status iterate(solver *s, unicon__state *state) {
  double loss, best_score = 0;
  unicon__state best;
  UNICON_TRY(unicon__state_new(s->ctx, state->m, state->n, state->r, &best));
  UNICON_TRY(evaluate(s, state, true, &loss));
  UNICON_TRY(note_step(s, state, loss, 0, &best, &best_score));
  for (int step = 0; step < s->params->iterations; step++) {
    UNICON_TRY(unicon__stage_step(s->ctx, step, s->params->iterations));
    unicon__block *frame = unicon__frame_open(s->ctx);
    const bool more = step + 1 < s->params->iterations;
    unicon__state candidate;
    double eta = 1;
    UNICON_TRY(spectral_update(s, state->r, &candidate));
    if (!(candidate.s[0] > 0)) { /* S is 0: every pair is as the loss wants it */
      unicon__frame_close(s->ctx, frame);
      break;
    }
    if (s->cosine) unicon__state_normalize(&candidate);
    if (s->params->safe) {
      UNICON_TRY(safe_step(s, state, &candidate, more, &loss, &eta));
    } else {
      unicon__state_copy(state, &candidate);
      UNICON_TRY(evaluate(s, state, more, &loss));
    }
    unicon__frame_close(s->ctx, frame);
    if (eta == 0) break;
    UNICON_TRY(note_step(s, state, loss, eta, &best, &best_score));
  }
  unicon__state_copy(state, &best);
  return UNICON_OK;
}

unicon_status unicon__solve(unicon_ctx *ctx, const unicon__problem *problem,
                            const unicon__moments *moments, const unicon__whitening metric[2],
                            const unicon__solve_params *params, unicon__state *state,
                            unicon__solve_log *log) {
  solver s = {.ctx = ctx,
              .problem = problem,
              .moments = moments,
              .metric = metric,
              .params = params,
              .log = log,
              .p_x = moments->p[0],
              .p_y = moments->p[1]};
  *log = (unicon__solve_log){.method = "none"};
  s.cosine = params->loss.kind != UNICON__LOSS_SPECTRAL;
  UNICON_NEW(ctx, s.c, s.p_x * s.p_y);
  if (problem->batches > 1 || params->iterations > 0) UNICON_NEW(ctx, s.part, s.p_x * s.p_y);
  UNICON_TRY(moment_start(&s, state));
  if (params->iterations > 0 && params->loss.kind != UNICON__LOSS_MOMENT)
    UNICON_TRY(iterate(&s, state));
  return UNICON_OK;
}
