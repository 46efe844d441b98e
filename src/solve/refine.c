/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "loss/gradient.h"
#include "solve/adam.h"
#include "features/project.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

/* One side during refinement. */
typedef struct tuned {
  const unicon__source *source;
  int64_t p, r;
  const float *metric; /* R, or NULL */
  const float *scale;  /* or its diagonal, where R is one */
  float *g, *best;     /* factors now, and of the best epoch */
  unicon__adam adam;
  float *f, *gradient, *half; /* where R G goes; gradient of G; scratch */
  int64_t *row;               /* rows of the batch, ascending */
  int64_t count;
  float *buffer; /* features of the batch */
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
  int64_t *order; /* rows of x that have a positive, shuffled each epoch */
  int64_t rows, steps, step;
  unsigned char *seen;               /* y rows of the batch */
  double log_scale, scale_moment[2]; /* log 1/tau */
} refiner;

unicon_status unicon__whiten_matrix(unicon_ctx *ctx, const unicon__whitening *metric, float **out) {
  const int64_t n = metric->size;
  *out = NULL;
  if (metric->kind == UNICON__WHITEN_NONE || metric->kind == UNICON__WHITEN_DIAGONAL)
    return UNICON_OK;
  double *identity;
  UNICON_NEW(ctx, *out, n * n);
  UNICON_NEW(ctx, identity, n * n);
  for (int64_t k = 0; k < n; k++) identity[k * n + k] = 1;
  UNICON_TRY(unicon__whiten_back(ctx, metric, identity, n));
  for (int64_t k = 0; k < n * n; k++) (*out)[k] = (float)identity[k];
  unicon__drop(ctx, identity);
  return UNICON_OK;
}

int64_t unicon__epoch_steps(const unicon_pairs *pairs, int64_t batch) {
  const int64_t n = pairs->n_x > pairs->n_y ? pairs->n_x : pairs->n_y;
  const int64_t steps = n / batch;
  return steps < 1 ? 1 : steps;
}

static void unit_mean_square(float *g, int64_t count) {
  const double sum = unicon__vec_best()->dot(g, g, count);
  if (sum > 0) unicon__vec_best()->scale_shift(g, count, (float)sqrt((double)count / sum), NULL);
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
  *t = (tuned){.source = source,
               .p = factors->p[s],
               .r = factors->r,
               .metric = r,
               .scale = scale,
               .g = factors->g[s]};
  const int64_t size = t->p * t->r;
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
  unit_mean_square(t->g, size);
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

/* Rows of x from the shuffled order, and one positive of each. */
static void draw_batch(refiner *f) {
  const unicon_pairs *pairs = f->data->pairs;
  const int64_t wanted = f->params->batch < f->rows ? f->params->batch : f->rows;
  const uint64_t seed = f->params->seed;
  tuned *x = &f->side[0], *y = &f->side[1];
  x->count = wanted;
  y->count = 0;
  for (int64_t k = 0; k < wanted; k++) {
    const int64_t at = f->step * wanted + k, i = f->order[at % f->rows];
    const unicon__partners p = unicon__positives_x(pairs, i);
    const int64_t j = unicon__partner(
        p, unicon__below(seed, UNICON__STREAM_REFINE, (uint64_t)at, UINT32_MAX, p.count));
    x->row[k] = i;
    if (f->seen[j]) continue;
    f->seen[j] = 1;
    y->row[y->count++] = j;
  }
  for (int64_t k = 0; k < y->count; k++) f->seen[y->row[k]] = 0;
  qsort(x->row, (size_t)x->count, sizeof *x->row, unicon__compare_int64);
  qsort(y->row, (size_t)y->count, sizeof *y->row, unicon__compare_int64);
}

/* Unit embeddings of the batch, and their lengths before. */
static void embed_batch(unicon_ctx *ctx, tuned *t) {
  const float *f = weights_of(ctx, t);
  t->features = unicon__source_tile(t->source, t->row, 0, t->count, t->buffer);
  unicon__tiled_sgemm(ctx, false, false, t->count, t->r, t->p, 1, t->features, t->p, f, t->r, 0,
                      t->z, t->r);
  for (int64_t i = 0; i < t->count; i++)
    t->length[i] = (float)sqrt(unicon__vec_best()->sum_squares(t->z + i * t->r, t->r));
  unicon__scale_rows(t->z, t->count, t->r, t->r, 1);
}

/* dz holds S V^; becomes dL/du, then G's gradient. Returns sum_i u^_i (S V^)_i = sum_ij S_ij s_ij.
 */
static double pull_back(unicon_ctx *ctx, tuned *t) {
  const unicon__vec *vec = unicon__vec_best();
  double total = 0;
  for (int64_t i = 0; i < t->count; i++) {
    float *dz = t->dz + i * t->r;
    const float *z = t->z + i * t->r;
    const double along = vec->dot(z, dz, t->r);
    total += along;
    vec->add_scaled(dz, z, t->r, (float)-along);
    vec->scale_shift(dz, t->r, t->length[i] > 0 ? -1 / t->length[i] : 0, NULL);
  }
  float *to = t->metric ? t->half : t->gradient;
  unicon__tiled_sgemm(ctx, true, false, t->p, t->r, t->count, 1, t->features, t->p, t->dz, t->r, 0,
                      to, t->r);
  if (t->metric)
    unicon__tiled_sgemm(ctx, true, false, t->p, t->r, t->p, 1, t->metric, t->p, t->half, t->r, 0,
                        t->gradient, t->r);
  if (t->scale) scale_rows(t, t->gradient, t->gradient);
  return total;
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
  double value, along;
  draw_batch(f);
  embed_batch(ctx, x);
  embed_batch(ctx, y);
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
  along = pull_back(ctx, x);
  (void)pull_back(ctx, y);
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
  return unicon__validation_score(ctx, f->held, weights, f->side[0].r, score);
}

static void keep_best(refiner *f, int epoch) {
  for (int s = 0; s < 2; s++) {
    tuned *t = &f->side[s];
    memcpy(t->best, t->g, (size_t)(t->p * t->r) * sizeof *t->g);
  }
  f->log->best = epoch;
}

static unicon_status run_epoch(unicon_ctx *ctx, refiner *f, int epoch) {
  const double pi = 3.14159265358979;
  const int epochs = f->params->schedule > 0 ? f->params->schedule : f->params->epochs;
  const double all = (double)(f->steps * epochs);
  double sum = 0;
  unicon__permutation(f->params->seed, UNICON__STREAM_REFINE, (uint32_t)epoch, f->rows, f->order);
  /* the permutation numbers rows of x that have a positive */
  for (int64_t i = 0, next = 0; i < f->data->pairs->n_x; i++)
    if (unicon__positives_x(f->data->pairs, i).count > 0) f->order[f->rows + next++] = i;
  for (int64_t k = 0; k < f->rows; k++) f->order[k] = f->order[f->rows + f->order[k]];
  for (int64_t k = 0; k < f->steps; k++) {
    UNICON_TRY(unicon__stage_step(ctx, f->step, f->steps * f->params->epochs));
    const double rate = f->params->rate * 0.5 * (1 + cos(pi * (double)f->step / all));
    UNICON_TRY(take_step(ctx, f, rate, &sum));
  }
  if (epoch < UNICON__EPOCH_LOG) f->log->loss[epoch] = sum / (double)f->steps;
  return UNICON_OK;
}

static unicon_status run_epochs(unicon_ctx *ctx, refiner *f) {
  unicon__refine_log *log = f->log;
  double best, score;
  UNICON_TRY(judge_now(ctx, f, &best));
  log->score[0] = best;
  for (int epoch = 1; epoch <= f->params->epochs; epoch++) {
    UNICON_TRY(run_epoch(ctx, f, epoch));
    UNICON_TRY(judge_now(ctx, f, &score));
    log->epochs = epoch;
    if (epoch < UNICON__EPOCH_LOG) log->score[epoch] = score;
    const double loss = epoch < UNICON__EPOCH_LOG ? log->loss[epoch] : 0;
    if (f->held)
      unicon__log(ctx, UNICON_LOG_DEBUG, "refine epoch %d: loss %.5f, held-out score %.4f", epoch,
                  loss, score);
    else
      unicon__log(ctx, UNICON_LOG_DEBUG, "refine epoch %d: loss %.5f", epoch, loss);
    if (!f->held || score > best) {
      best = score;
      keep_best(f, epoch);
    }
    if (f->params->patience > 0 && epoch - log->best >= f->params->patience) break;
    if (f->held && epoch == 1 && score < f->params->bar) break;
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

unicon_status unicon__refine(unicon_ctx *ctx, const unicon__batch *data,
                             const unicon__whitening metric[2], const unicon__validation *held,
                             const unicon__refine_params *params, unicon__factors *factors,
                             unicon__refine_log *log) {
  refiner f = {.data = data, .held = held, .params = params, .log = log};
  f.log_scale = log_scale_of(params->loss.temperature);
  *log = (unicon__refine_log){.temperature = params->loss.temperature};
  for (int64_t i = 0; i < data->pairs->n_x; i++)
    f.rows += unicon__positives_x(data->pairs, i).count > 0;
  f.steps = unicon__epoch_steps(data->pairs, params->batch);
  if (params->epochs > 0 && params->loss.kind == UNICON__LOSS_SPECTRAL)
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "refine works on cosines and loss spectral on dot products; use iterations, "
        "or another loss");
  UNICON_NEW(ctx, f.order, 2 * f.rows);
  UNICON_NEW(ctx, f.seen, data->pairs->n_y);
  for (int s = 0; s < 2; s++) UNICON_TRY(tuned_open(ctx, &f, &metric[s], factors, s, &f.side[s]));
  const int stage = unicon__stage_begin(ctx, "refine", 1);
  UNICON_TRY(run_epochs(ctx, &f));
  unicon__stage_end(ctx, stage);
  for (int s = 0; s < 2; s++) {
    const tuned *t = &f.side[s];
    memcpy(factors->g[s], t->best, (size_t)(t->p * t->r) * sizeof *t->best);
  }
  if (params->learn_temperature) log->temperature = exp(-f.log_scale);
  return UNICON_OK;
}
