/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/solve.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "features/feed.h"
#include "loss/pass.h"
#include "features/project.h"

enum { HALVINGS = 7 }; /* of a step: one of less than a hundredth changes nothing */

static const double enough = 1e-6;         /* relative fall of the loss that counts */
static const double spectrum_floor = 1e-6; /* below this share of s_1 a direction is noise */

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
  double exponent;  /* of the singular values in the product of the factors */
  double total;     /* where solutions are averaged: the sum of their weights in c */
  int64_t rank;     /* of the step that is made */
  bool made;        /* has the last look at the loss made C? */
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

/* ---- the spectral update ------------------------------------------------------------------ */

/* state = [R_x^T C R_y]_r, unscaled; C is overwritten. */
static unicon_status decompose(solver *s, const unicon__whitening metric[2], double *c,
                               unicon__state *state) {
  unicon__closed_params params = s->params->closed;
  unicon__closed found = {.residual = s->log->residual};
  params.rank = s->rank;
  UNICON_TRY(unicon__closed_update(s->ctx, metric, c, &params, &found));
  *state = found.state;
  s->log->residual = found.residual;
  s->log->gap = found.gap;
  s->log->method = found.method;
  return UNICON_OK;
}

static unicon_status spectral_update(solver *s, double *c, unicon__state *state) {
  return decompose(s, s->metric, c, state);
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
  const bool judged = s->params->held && count > 1 && !s->params->solutions;
  const unicon__aggregation how = judged ? s->params->aggregate : UNICON__AGGREGATE_UNIFORM;
  for (int64_t b = 0; b < count && how != UNICON__AGGREGATE_UNIFORM; b++) {
    unicon__block *frame = unicon__frame_open(s->ctx);
    unicon__state state;
    UNICON_TRY(moment_batch(s, b, s->c));
    UNICON_TRY(spectral_update(s, s->c, &state));
    if (state.s[0] > 0) UNICON_TRY(judge_state(s, &state, &score[b]));
    unicon__frame_close(s->ctx, frame);
  }
  UNICON_TRY(unicon__aggregate(s->ctx, how, score, count, s->share));
  unicon__drop(s->ctx, score);
  return UNICON_OK;
}

/* ---- the mean over batches ---------------------------------------------------------------- */

static void clear_mean(solver *s) {
  memset(s->c, 0, (size_t)(s->p_x * s->p_y) * sizeof *s->c);
  s->total = 0;
}

/* Takes the C of batch b, in s->part, into the mean; or its solution, whose held-out score weighs
 * it. */
static unicon_status take_part(solver *s, int64_t b) {
  const unicon__aggregation how = s->params->aggregate;
  unicon__state own;
  double weight = 1, score;
  if (!s->params->solutions) {
    for (int64_t k = 0; k < s->p_x * s->p_y; k++) s->c[k] += s->share[b] * s->part[k];
    return UNICON_OK;
  }
  unicon__block *frame = unicon__frame_open(s->ctx);
  UNICON_TRY(spectral_update(s, s->part, &own));
  if (own.s[0] > 0 && s->params->held && how != UNICON__AGGREGATE_UNIFORM) {
    UNICON_TRY(judge_state(s, &own, &score));
    weight = how == UNICON__AGGREGATE_ACCURACY ? score : exp(score);
  }
  if (own.s[0] > 0 && weight > 0) {
    UNICON_TRY(unicon__state_add(s->ctx, &own, s->exponent, weight, s->c));
    s->total += weight;
  }
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* Powers of the singular values, and back: where the product of the factors has been made. */
static void to_power(unicon__state *state, double power) {
  for (int64_t k = 0; k < state->r && power > 0 && isfinite(power); k++)
    state->s[k] = pow(state->s[k], power);
}

/* The mean becomes the next state. */
static unicon_status next_state(solver *s, unicon__state *state) {
  const int64_t size = s->p_x * s->p_y;
  const bool product = s->params->solutions;
  const unicon__whitening plain[2] = {{UNICON__WHITEN_NONE, s->p_x, NULL, NULL},
                                      {UNICON__WHITEN_NONE, s->p_y, NULL, NULL}};
  double *identity;
  for (int64_t k = 0; k < size && product && s->total > 0; k++) s->c[k] /= s->total;
  UNICON_TRY(decompose(s, product ? plain : s->metric, s->c, state));
  if (s->params->identity > 0 && state->s[0] > 0) {
    const double exponent = product ? 1 : s->exponent;
    clear_mean(s);
    UNICON_TRY(unicon__state_add(s->ctx, state, exponent, pow(state->s[0], -exponent), s->c));
    UNICON_NEW(s->ctx, identity, size);
    UNICON_TRY(unicon__whiten_identity(s->ctx, s->metric, identity));
    for (int64_t k = 0; k < size; k++) s->c[k] += s->params->identity * identity[k];
    unicon__drop(s->ctx, identity);
    UNICON_TRY(decompose(s, plain, s->c, state));
  }
  if (product || s->params->identity > 0) to_power(state, 1 / s->exponent);
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

/* Embeddings of all rows, where there is a device there as well. */
typedef struct embedded {
  int64_t r;
  float *z[2];
  unicon__map map; /* of r columns */
  unicon__kept kept[2];
} embedded;

/* What is wanted: the loss, and C if the loss is below `limit` and that costs no more than C. */
typedef struct wanted {
  bool cross;
  double limit;
} wanted;

/* Loss of one batch; C is added to s->c if it is wanted, and s->made says so. */
static unicon_status evaluate_batch(solver *s, int64_t b, const embedded *z, wanted want,
                                    double *value) {
  const unicon__batch *batch = &s->problem->batch[b];
  unicon__block *frame = unicon__frame_open(s->ctx);
  const float *bx, *by;
  unicon__plane plane;
  unicon__loss loss;
  UNICON_TRY(gather(s->ctx, z->z[0], batch->x_row, batch->x.count, z->r, &bx));
  UNICON_TRY(gather(s->ctx, z->z[1], batch->y_row, batch->y.count, z->r, &by));
  unicon__plane_init(&plane, batch->pairs, z->r, bx, by);
  for (int side = 0; side < 2 && !batch->x_row && !batch->y_row; side++)
    plane.on[side] = z->kept[side].phi;
  UNICON_TRY(unicon__loss_begin(s->ctx, &s->params->loss, &plane, &loss));
  const bool pointwise = loss.ops->pointwise, any = isinf(want.limit);
  bool cross = want.cross && (any || !pointwise);
  if (!cross || !pointwise) UNICON_TRY(unicon__pass_observe(s->ctx, &loss));
  cross = cross && (any || loss.value < want.limit);
  if (cross) {
    UNICON_TRY(unicon__pass_cross(s->ctx, &loss, &batch->x, &batch->y, s->part));
    UNICON_TRY(take_part(s, b));
  }
  s->made = s->made && cross;
  *value += s->share[b] * loss.value;
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

/* Loss over the batches at embeddings, weighted as their C are; their mean is made if it is wanted,
 * and s->made says so. */
static unicon_status evaluate_at(solver *s, const embedded *z, wanted want, double *value) {
  *value = 0;
  if (s->problem->batches > 1 && !isinf(want.limit)) want.cross = false;
  s->made = want.cross;
  if (want.cross) clear_mean(s);
  for (int64_t b = 0; b < s->problem->batches; b++)
    if (s->share[b] > 0) UNICON_TRY(evaluate_batch(s, b, z, want, value));
  return UNICON_OK;
}

/* Rows of a side through factors, to the host. */
static unicon_status embed_here(solver *s, int side, const float *f, embedded *z) {
  const unicon__batch *whole = &s->problem->whole;
  const unicon__source *rows = side == 0 ? &whole->x : &whole->y;
  return unicon__project(s->ctx, rows, f, z->r, 0, rows->count, s->cosine, false, z->z[side], z->r);
}

/* ... and onto the device. */
static unicon_status embed_side(solver *s, int side, const float *f, embedded *z) {
  const unicon__batch *whole = &s->problem->whole;
  const unicon__source *rows = side == 0 ? &whole->x : &whole->y;
  const unicon__turn turn = {"embed", rows, f, NULL, s->cosine};
  unicon__source out = {.rows = rows->rows, .count = rows->count, .map = &z->map};
  bool there;
  UNICON_NEW(s->ctx, z->z[side], rows->count * z->r);
  UNICON_TRY(unicon__keep_turned(s->ctx, &turn, &out, &z->kept[side], &there));
  if (there) return unicon__kept_fetch(s->ctx, &out, z->z[side]);
  return embed_here(s, side, f, z);
}

/* All rows through factors, into the frame and onto the device; then their loss. */
static unicon_status evaluate_factors(solver *s, const float *fx, const float *fy, int64_t r,
                                      wanted want, double *value) {
  embedded z = {.r = r, .map = {.in = r, .out = r}};
  unicon_status status = embed_side(s, 0, fx, &z);
  if (status == UNICON_OK) status = embed_side(s, 1, fy, &z);
  if (status == UNICON_OK) status = evaluate_at(s, &z, want, value);
  for (int side = 0; side < 2 && status == UNICON_OK && !isfinite(*value); side++)
    if (z.kept[side].phi) status = embed_here(s, side, side == 0 ? fx : fy, &z); /* says why */
  for (int side = 0; side < 2; side++) unicon__kept_close(&z.kept[side]);
  return status;
}

static unicon_status evaluate(solver *s, const unicon__state *state, wanted want, double *value) {
  unicon__block *frame = unicon__frame_open(s->ctx);
  float *fx, *fy;
  UNICON_TRY(unicon__state_factors(s->ctx, state, s->metric, s->params->power, &fx, &fy));
  UNICON_TRY(evaluate_factors(s, fx, fy, state->r, want, value));
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

static const wanted with_cross = {true, INFINITY};

/* ---- the first step ----------------------------------------------------------------------- */

void unicon__random_factor(uint64_t seed, int side, int64_t p, int64_t r, float *out) {
  for (int64_t i = 0; i < p; i++)
    unicon__normals(seed, UNICON__STREAM_START, (uint64_t)(2 * i + side), r, out + i * r);
}

/* C of the loss where all scores are 0, or at random factors. */
static unicon_status other_start(solver *s) {
  unicon__block *frame = unicon__frame_open(s->ctx);
  const unicon__batch *whole = &s->problem->whole;
  const bool random = s->params->start == UNICON__START_RANDOM;
  const int64_t r = random ? s->rank : 1;
  float *f[2];
  double value;
  if (random) {
    for (int side = 0; side < 2; side++) {
      const int64_t p = side == 0 ? s->p_x : s->p_y;
      UNICON_NEW(s->ctx, f[side], p * r);
      unicon__random_factor(s->params->closed.seed, s->params->closed.shared ? 0 : side, p, r,
                            f[side]);
    }
    UNICON_TRY(evaluate_factors(s, f[0], f[1], r, with_cross, &value));
  } else {
    embedded none = {.r = 1};
    UNICON_NEW(s->ctx, none.z[0], whole->x.count);
    UNICON_NEW(s->ctx, none.z[1], whole->y.count);
    UNICON_TRY(evaluate_at(s, &none, with_cross, &value));
  }
  unicon__frame_close(s->ctx, frame);
  return UNICON_OK;
}

static unicon_status first_step(solver *s, unicon__state *state) {
  const bool moment =
      s->params->start == UNICON__START_MOMENT || s->params->loss.kind == UNICON__LOSS_MOMENT;
  UNICON_TRY(weigh_batches(s));
  clear_mean(s);
  const bool direct = moment && s->problem->batches == 1 && !s->params->solutions;
  if (direct) UNICON_TRY(moment_batch(s, 0, s->c)); /* with no need of s->part */
  for (int64_t b = 0; b < s->problem->batches && moment && !direct; b++) {
    if (s->share[b] == 0) continue;
    UNICON_TRY(moment_batch(s, b, s->part));
    UNICON_TRY(take_part(s, b));
  }
  if (!moment) UNICON_TRY(other_start(s));
  UNICON_TRY(next_state(s, state));
  const bool whitened =
      s->metric[0].kind != UNICON__WHITEN_NONE && s->metric[1].kind != UNICON__WHITEN_NONE;
  if (!(state->s[0] > (whitened ? UNICON__NO_CORRELATION : 0)) || !isfinite(state->s[0]))
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
    const wanted want = {more, *loss - enough * fabs(*loss)};
    UNICON_TRY(evaluate(s, &trial, want, &value));
    if (!(value < want.limit)) continue;
    unicon__state_copy(state, &trial);
    if (more && !s->made) UNICON_TRY(evaluate(s, state, with_cross, &value));
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
  if (s->params->held)
    unicon__log(s->ctx, UNICON_LOG_DEBUG, "step %d: loss %.6f, length %g, held-out score %.4f",
                log->taken, loss, eta, score);
  else
    unicon__log(s->ctx, UNICON_LOG_DEBUG, "step %d: loss %.6f, length %g", log->taken, loss, eta);
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

/* Does the last step, from `before`, end the iteration? */
static unicon_status settled(solver *s, const unicon__state *before, const unicon__state *now,
                             bool *out) {
  double change = 0, norm = 0;
  *out = false;
  if (!(s->params->tolerance > 0)) return UNICON_OK;
  UNICON_TRY(unicon__state_distance(s->ctx, before, now, &change));
  for (int64_t k = 0; k < now->r; k++) norm += now->s[k] * now->s[k];
  *out = change < s->params->tolerance * sqrt(norm);
  return UNICON_OK;
}

static unicon_status iterate(solver *s, unicon__state *state) {
  double loss, best_score = 0;
  bool done = false;
  unicon__state best, before;
  UNICON_TRY(unicon__state_new(s->ctx, state->m, state->n, state->r, &best));
  UNICON_TRY(unicon__state_new(s->ctx, state->m, state->n, state->r, &before));
  s->rank = state->r;
  UNICON_TRY(evaluate(s, state, with_cross, &loss));
  UNICON_TRY(note_step(s, state, loss, 0, &best, &best_score));
  for (int step = 0; step < s->params->iterations && !done; step++) {
    UNICON_TRY(unicon__stage_step(s->ctx, step, s->params->iterations));
    unicon__block *frame = unicon__frame_open(s->ctx);
    const bool more = step + 1 < s->params->iterations;
    unicon__state candidate;
    double eta = 1;
    UNICON_TRY(next_state(s, &candidate));
    if (!(candidate.s[0] > 0)) { /* S is 0: every pair is as the loss wants it */
      unicon__frame_close(s->ctx, frame);
      break;
    }
    if (s->cosine) unicon__state_normalize(&candidate);
    unicon__state_copy(&before, state);
    if (s->params->safe) {
      UNICON_TRY(safe_step(s, state, &candidate, more, &loss, &eta));
    } else {
      unicon__state_copy(state, &candidate);
      UNICON_TRY(evaluate(s, state, (wanted){more, INFINITY}, &loss));
    }
    UNICON_TRY(settled(s, &before, state, &done));
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
              .exponent = params->power[0] + params->power[1],
              .rank = params->closed.rank,
              .p_x = moments->p[0],
              .p_y = moments->p[1]};
  *log = (unicon__solve_log){.method = "none"};
  s.cosine = params->loss.kind != UNICON__LOSS_SPECTRAL;
  const bool parts = problem->batches > 1 || params->iterations > 0 || params->solutions ||
                     params->start != UNICON__START_MOMENT;
  if (params->solutions && params->aggregate == UNICON__AGGREGATE_ROBUST)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "aggregate robust looks at all batches at once and goes with batch_average "
                        "c; with solution use uniform, accuracy or softmax");
  UNICON_NEW(ctx, s.c, s.p_x * s.p_y);
  if (parts) UNICON_NEW(ctx, s.part, s.p_x * s.p_y);
  UNICON_TRY(first_step(&s, state));
  if (params->iterations > 0 && params->loss.kind != UNICON__LOSS_MOMENT)
    UNICON_TRY(iterate(&s, state));
  return UNICON_OK;
}
