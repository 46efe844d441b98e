/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/refine.h"

#include <math.h>
#include <string.h>

#include "base/together.h"
#include "loss/gradient.h"
#include "solve/adam.h"
#include "solve/draw.h"
#include "solve/refine_device.h"
#include "features/feed.h"
#include "features/project.h"
#include "score/judge.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

/* One side during refinement. */
typedef struct tuned {
  unicon__source copy;
  const unicon__source *source; /* the copy */
  int64_t p, r;
  const float *metric; /* R, or NULL */
  const float *scale;  /* or its diagonal, where R is one */
  float *g, *best;     /* factors now, and of the best epoch */
  unicon__adam adam;
  float *f, *gradient, *half; /* where R G goes; gradient of G; scratch */
  int64_t *row;               /* rows of the batch, ascending */
  int64_t count;
  unicon__share own; /* those of this process */
  float *buffer;     /* features of the batch */
  const float *features;
  float *z, *dz; /* embeddings of the batch, unit, and what S does to them */
  float *length;
} tuned;

typedef struct refiner {
  const unicon__batch *data;
  const unicon__validation *held;
  const unicon__refine_params *params;
  unicon__refine_log *log;
  tuned side[2];
  unicon__draw draw;
  int64_t steps, step;
  double log_scale, scale_moment[2]; /* log 1/tau */
} refiner;

unicon_status unicon__whiten_matrix(unicon_ctx *ctx, const unicon__whitening *metric, float **out) {
  const int64_t n = metric->size;
  *out = NULL;
  if (metric->kind == UNICON__WHITEN_NONE || metric->kind == UNICON__WHITEN_DIAGONAL)
    return UNICON_OK;
  double *r;
  UNICON_NEW(ctx, *out, n * n);
  UNICON_NEW(ctx, r, n * n);
  if (metric->kind == UNICON__WHITEN_CHOLESKY) {
    unicon__tiled_inverse(ctx, n, metric->factor, n, r);
  } else {
    for (int64_t k = 0; k < n; k++) r[k * n + k] = 1;
    UNICON_TRY(unicon__whiten_back(ctx, metric, r, n));
  }
  for (int64_t k = 0; k < n * n; k++) (*out)[k] = (float)r[k];
  unicon__drop(ctx, r);
  return UNICON_OK;
}

int64_t unicon__epoch_steps(const unicon_pairs *pairs, int64_t batch) {
  const int64_t n = pairs->n_x > pairs->n_y ? pairs->n_x : pairs->n_y;
  const int64_t steps = n / batch;
  return steps < 1 ? 1 : steps;
}

double unicon__refine_rate(const unicon__refine_params *params, int64_t steps, int64_t step) {
  const double pi = 3.14159265358979;
  const int epochs = params->schedule > 0 ? params->schedule : params->epochs;
  return params->rate * 0.5 * (1 + cos(pi * (double)step / (double)(steps * epochs)));
}

static void unit_mean_square(float *g, int64_t count) {
  const double sum = unicon__vec_best()->dot(g, g, count);
  if (sum > 0) unicon__vec_best()->scale_shift(g, count, (float)sqrt((double)count / sum), NULL);
}

/* Features that a device has kept, and the host has not. */
static unicon_status fetch_features(unicon_ctx *ctx, unicon__source *source) {
  float *cache;
  if (source->cache || !unicon__is_kept(source)) return UNICON_OK;
  if (!source->kept->alone) return unicon__source_cache(ctx, &ctx->arena, source, &cache);
  UNICON_NEW(ctx, cache, source->count * source->map->out);
  UNICON_TRY(unicon__kept_fetch(ctx, source, cache));
  source->cache = cache;
  source->cache_row = NULL;
  return UNICON_OK;
}

static unicon_status tuned_open(unicon_ctx *ctx, const refiner *f, const unicon__whitening *metric,
                                unicon__factors *factors, int s, tuned *t) {
  const int64_t batch = f->params->batch;
  const unicon__source *source = s == 0 ? &f->data->x : &f->data->y;
  float *r, *scale = NULL;
  UNICON_TRY(unicon__whiten_matrix(ctx, metric, &r));
  if (metric->kind == UNICON__WHITEN_DIAGONAL) {
    UNICON_NEW(ctx, scale, metric->size);
    for (int64_t k = 0; k < metric->size; k++) scale[k] = (float)metric->scale[k];
  }
  *t = (tuned){.copy = *source,
               .p = factors->p[s],
               .r = factors->r,
               .metric = r,
               .scale = scale,
               .g = factors->g[s]};
  const int64_t size = t->p * t->r;
  t->source = &t->copy;
  UNICON_TRY(fetch_features(ctx, &t->copy));
  UNICON_NEW(ctx, t->best, size);
  UNICON_TRY(unicon__adam_open(ctx, size, &t->adam));
  UNICON_NEW(ctx, t->f, size);
  UNICON_NEW(ctx, t->gradient, size);
  UNICON_NEW(ctx, t->half, size);
  UNICON_NEW(ctx, t->row, batch);
  UNICON_NEW(ctx, t->buffer, batch * unicon__map_room(source->map));
  UNICON_NEW(ctx, t->z, batch * t->r);
  UNICON_NEW(ctx, t->dz, batch * t->r);
  UNICON_NEW(ctx, t->length, batch);
  memcpy(t->best, t->g, (size_t)size * sizeof *t->g);
  return UNICON_OK;
}

/* Rows of `from` times the diagonal. */
static void scale_rows(const tuned *t, const float *from, float *to) {
  for (int64_t i = 0; i < t->p; i++)
    for (int64_t k = 0; k < t->r; k++) to[i * t->r + k] = t->scale[i] * from[i * t->r + k];
}

/* F = R G. */
static const float *weights_of(unicon_ctx *ctx, tuned *t) {
  if (t->scale) scale_rows(t, t->g, t->f);
  if (t->metric)
    unicon__tiled_sgemm(ctx, false, false, t->p, t->r, t->p, 1, t->metric, t->p, t->g, t->r, 0,
                        t->f, t->r);
  return t->metric || t->scale ? t->f : t->g;
}

/* ---- batches ------------------------------------------------------------------------------ */

static void draw_batch(refiner *f) {
  int64_t *const row[2] = {f->side[0].row, f->side[1].row};
  int64_t count[2];
  unicon__draw_batch(&f->draw, f->step, row, count);
  for (int s = 0; s < 2; s++) f->side[s].count = count[s];
}

/* Unit embeddings of the batch, and their lengths before; features and lengths are those of our own
 * rows. */
static unicon_status embed_batch(unicon_ctx *ctx, tuned *t) {
  const float *f = weights_of(ctx, t);
  const double row = unicon__feature_flops(t->source) + 4 * (double)t->p * (double)t->r;
  t->own = unicon__share_of(ctx, t->count, 1, (double)t->count * row);
  const int64_t count = t->own.count;
  float *z = t->z + t->own.first * t->r;
  t->features = unicon__source_tile(t->source, t->row + t->own.first, 0, count, t->buffer);
  unicon__tiled_sgemm(ctx, false, false, count, t->r, t->p, 1, t->features, t->p, f, t->r, 0, z,
                      t->r);
  for (int64_t i = 0; i < count; i++)
    t->length[i] = (float)sqrt(unicon__vec_best()->sum_squares(z + i * t->r, t->r));
  unicon__scale_rows(z, count, t->r, t->r, 1);
  return unicon__gather_rows(ctx, &t->own, t->z, t->r * (int64_t)sizeof *t->z);
}

/* dz holds S V^; becomes dL/du, then G's gradient. *total is sum_i u^_i (S V^)_i = sum_ij S_ij s_ij.
 */
static unicon_status pull_back(unicon_ctx *ctx, tuned *t, double *total) {
  const unicon__vec *vec = unicon__vec_best();
  float *own = t->dz + t->own.first * t->r;
  *total = 0;
  for (int64_t i = 0; i < t->count; i++)
    *total += vec->dot(t->z + i * t->r, t->dz + i * t->r, t->r);
  for (int64_t i = 0; i < t->own.count; i++) {
    float *dz = own + i * t->r;
    const float *z = t->z + (t->own.first + i) * t->r;
    const double along = vec->dot(z, dz, t->r);
    vec->add_scaled(dz, z, t->r, (float)-along);
    vec->scale_shift(dz, t->r, t->length[i] > 0 ? -1 / t->length[i] : 0, NULL);
  }
  float *to = t->metric ? t->half : t->gradient;
  unicon__tiled_sgemm(ctx, true, false, t->p, t->r, t->own.count, 1, t->features, t->p, own, t->r,
                      0, to, t->r);
  UNICON_TRY(unicon__sum_floats(ctx, &t->own, to, t->p * t->r));
  if (t->metric)
    unicon__tiled_sgemm(ctx, true, false, t->p, t->r, t->p, 1, t->metric, t->p, t->half, t->r, 0,
                        t->gradient, t->r);
  if (t->scale) scale_rows(t, t->gradient, t->gradient);
  return UNICON_OK;
}

/* ---- steps -------------------------------------------------------------------------------- */

/* One step on log(1/tau) along d(L/tau). */
static void adapt_temperature(refiner *f, double sum, const unicon__adam_step *step) {
  const unicon__adam_step slower = {step->number, 0.1 * step->rate, 0};
  const double slope = -sum * exp(f->log_scale);
  f->log_scale = unicon__adam_scalar(&slower, slope, f->scale_moment, f->log_scale);
  if (f->log_scale > log(100.0)) f->log_scale = log(100.0); /* as CLIP */
}

static unicon_status take_step(unicon_ctx *ctx, refiner *f, double rate, double *loss_sum) {
  unicon__block *frame = unicon__frame_open(ctx);
  tuned *x = &f->side[0], *y = &f->side[1];
  unicon_pairs *pairs = NULL;
  unicon__loss_params params = f->params->loss;
  double value, along, across;
  draw_batch(f);
  UNICON_TRY(embed_batch(ctx, x));
  UNICON_TRY(embed_batch(ctx, y));
  if (f->params->learn_temperature) params.temperature = exp(-f->log_scale);
  UNICON_TRY(unicon__pairs_subset(ctx, f->data->pairs, x->row, x->count, y->row, y->count, &pairs));
  const unicon_status status =
      unicon__gradient(ctx, &params, pairs, x->r, x->z, y->z, x->dz, y->dz, &value);
  unicon_pairs_destroy(pairs);
  UNICON_TRY(status);
  if (!isfinite(value))
    return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                        "the loss of a refine batch is not finite; a higher temperature or a "
                        "smaller refine_rate helps");
  UNICON_TRY(pull_back(ctx, x, &along));
  UNICON_TRY(pull_back(ctx, y, &across));
  if (f->params->shared) {
    unicon__vec_best()->add_scaled(x->gradient, y->gradient, x->p * x->r, 1);
    memcpy(y->gradient, x->gradient, (size_t)(x->p * x->r) * sizeof *x->gradient);
  }
  const unicon__adam_step step = {++f->step, rate, f->params->decay};
  unicon__adam_take(&x->adam, &step, x->gradient, x->g);
  unicon__adam_take(&y->adam, &step, y->gradient, y->g);
  if (f->params->learn_temperature) adapt_temperature(f, along, &step);
  *loss_sum += value;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- epochs ------------------------------------------------------------------------------- */

static unicon_status judge_now(unicon_ctx *ctx, refiner *f, double *score) {
  *score = 0;
  if (!f->held) return UNICON_OK;
  const float *weights[2] = {weights_of(ctx, &f->side[0]), weights_of(ctx, &f->side[1])};
  return unicon__judged(ctx, f->held, weights, f->side[0].r, score);
}

static void keep_best(refiner *f) {
  for (int s = 0; s < 2; s++) {
    tuned *t = &f->side[s];
    memcpy(t->best, t->g, (size_t)(t->p * t->r) * sizeof *t->g);
  }
}

static unicon_status run_epoch(unicon_ctx *ctx, refiner *f, int epoch, double *loss) {
  double sum = 0;
  unicon__draw_epoch(&f->draw, epoch);
  for (int64_t k = 0; k < f->steps; k++) {
    UNICON_TRY(unicon__stage_step(ctx, f->step, f->steps * f->params->epochs));
    UNICON_TRY(take_step(ctx, f, unicon__refine_rate(f->params, f->steps, f->step), &sum));
  }
  *loss = sum / (double)f->steps;
  return UNICON_OK;
}

bool unicon__refine_note(unicon_ctx *ctx, const unicon__validation *held, int epoch, double loss,
                         double score, double *best, unicon__refine_log *log) {
  log->epochs = epoch;
  if (epoch < UNICON__EPOCH_LOG) log->score[epoch] = score;
  if (epoch < UNICON__EPOCH_LOG) log->loss[epoch] = loss;
  if (held)
    unicon__log(ctx, UNICON_LOG_DEBUG, "refine epoch %d: loss %.5f, held-out score %.4f", epoch,
                loss, score);
  else
    unicon__log(ctx, UNICON_LOG_DEBUG, "refine epoch %d: loss %.5f", epoch, loss);
  if (held && !(score > *best)) return false;
  *best = score;
  log->best = epoch;
  return true;
}

bool unicon__refine_ends(const unicon__refine_params *params, const unicon__validation *held,
                         int epoch, double score, const unicon__refine_log *log) {
  if (params->patience > 0 && epoch - log->best >= params->patience) return true;
  return held && epoch == 1 && score < params->bar;
}

static unicon_status run_epochs(unicon_ctx *ctx, refiner *f) {
  double best, score, loss;
  UNICON_TRY(judge_now(ctx, f, &best));
  f->log->score[0] = best;
  for (int epoch = 1; epoch <= f->params->epochs; epoch++) {
    UNICON_TRY(run_epoch(ctx, f, epoch, &loss));
    UNICON_TRY(judge_now(ctx, f, &score));
    if (unicon__refine_note(ctx, f->held, epoch, loss, score, &best, f->log)) keep_best(f);
    if (unicon__refine_ends(f->params, f->held, epoch, score, f->log)) break;
  }
  return UNICON_OK;
}

static double log_scale_of(double temperature) {
  return -log(temperature);
}

unicon_status unicon__factors_of(unicon_ctx *ctx, const unicon__state *state, const double power[2],
                                 unicon__factors *out) {
  *out = (unicon__factors){.r = state->r, .p = {state->m, state->n}};
  for (int s = 0; s < 2; s++) {
    const double *basis = s == 0 ? state->u : state->v;
    UNICON_NEW(ctx, out->g[s], out->p[s] * state->r);
    for (int64_t i = 0; i < out->p[s]; i++)
      for (int64_t k = 0; k < state->r; k++)
        out->g[s][i * state->r + k] = (float)(basis[i * state->r + k] * pow(state->s[k], power[s]));
  }
  return UNICON_OK;
}

/* The road of the host. */
static unicon_status refine_here(unicon_ctx *ctx, const unicon__batch *data,
                                 const unicon__whitening metric[2], const unicon__validation *held,
                                 const unicon__refine_params *params, unicon__factors *factors,
                                 unicon__refine_log *log) {
  refiner f = {.data = data, .held = held, .params = params, .log = log};
  f.log_scale = log_scale_of(params->loss.temperature);
  f.steps = unicon__epoch_steps(data->pairs, params->batch);
  UNICON_TRY(unicon__draw_open(ctx, data->pairs, params->batch, params->seed, &f.draw));
  for (int s = 0; s < 2; s++) UNICON_TRY(tuned_open(ctx, &f, &metric[s], factors, s, &f.side[s]));
  UNICON_TRY(run_epochs(ctx, &f));
  for (int s = 0; s < 2; s++) {
    const tuned *t = &f.side[s];
    memcpy(factors->g[s], t->best, (size_t)(t->p * t->r) * sizeof *t->best);
  }
  if (params->learn_temperature) log->temperature = exp(-f.log_scale);
  return UNICON_OK;
}

unicon_status unicon__refine(unicon_ctx *ctx, const unicon__batch *data,
                             const unicon__whitening metric[2], const unicon__validation *held,
                             const unicon__refine_params *params, unicon__factors *factors,
                             unicon__refine_log *log) {
  const unicon__refine_log start = {.temperature = params->loss.temperature};
  bool done;
  if (params->epochs > 0 && params->loss.kind == UNICON__LOSS_SPECTRAL)
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "refine works on cosines and loss spectral on dot products; use iterations, "
        "or another loss");
  for (int s = 0; s < 2; s++) unit_mean_square(factors->g[s], factors->p[s] * factors->r);
  *log = start;
  const int stage = unicon__stage_begin(ctx, "refine", 1);
  UNICON_TRY(unicon__refine_on_device(ctx, data, metric, held, params, factors, log, &done));
  if (!done) {
    *log = start;
    UNICON_TRY(refine_here(ctx, data, metric, held, params, factors, log));
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}
