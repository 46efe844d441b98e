/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/refine_device.h"

#include <math.h>
#include <string.h>

#include "features/feed.h"
#include "loss/entries.h"
#include "score/judge.h"
#include "solve/draw.h"

typedef struct refining {
  const unicon__batch *data;
  const unicon__whitening *metric;
  const unicon__validation *held;
  const unicon__refine_params *params;
  unicon__factors *factors;
  unicon__refine_log *log;
  unicon__loss_params loss; /* as settings of the general one */
  double share[2];
  unicon__draw draw;
  int64_t steps; /* of an epoch */
  unicon__device_tuned side[2];
  float *best[2], *f[2]; /* factors of the best epoch; weights, where the host judges */
  int32_t *place;        /* of a row of y in its batch, or -1 */
  double *weight_y;      /* per row of y of a batch: sum of the weights of its pairs there */
  int64_t *count_y;
} refining;

/* ---- which ones --------------------------------------------------------------------------- */

static bool is_exp(const unicon__loss_params *loss) {
  return loss->kind == UNICON__LOSS_CLIP || loss->kind == UNICON__LOSS_INFONCE ||
         loss->kind == UNICON__LOSS_SUPCON ||
         (loss->kind == UNICON__LOSS_GENERAL && loss->psi == UNICON__PSI_EXP);
}

bool unicon__refine_serves(unicon_ctx *ctx, const unicon__refine_params *params,
                           const unicon__batch *data, int64_t r) {
  const double width = (double)data->x.map->out + (double)data->y.map->out;
  const double batch = fmin((double)params->batch, (double)data->pairs->n_x);
  const double steps = params->epochs * (double)unicon__epoch_steps(data->pairs, params->batch);
  const double flops = steps * (double)r * batch * (4 * width + 8 * batch);
  return params->epochs > 0 && is_exp(&params->loss) && !params->learn_temperature &&
         !params->shared && !data->pairs->class_x && unicon__entries_few(ctx, data->pairs) &&
         unicon__device_serves(ctx, refine, flops) && unicon__device_serves(ctx, features, flops) &&
         unicon__device_serves(ctx, gather, flops);
}

/* ---- batches ------------------------------------------------------------------------------ */

/* The batches of an epoch. */
typedef struct epoch {
  unicon__device_steps steps;
  unicon__device_sparse entries;
  int64_t *start[2], *row[2], *entry_start, *column;
  double *value, *omega[2], *rate, *loss;
} epoch;

/* The next entry of a row that is in the batch; its column is the place there. */
static bool next_inside(const refining *f, unicon__entry_walk *walk, unicon__entry *e) {
  while (unicon__entry_next(walk, e))
    if (f->place[e->j] >= 0) return true;
  return false;
}

static void mark_batch(refining *f, const epoch *p, int64_t t, bool in) {
  for (int64_t k = p->start[1][t]; k < p->start[1][t + 1]; k++)
    f->place[p->row[1][k]] = in ? (int32_t)(k - p->start[1][t]) : -1;
}

static void count_entries(refining *f, epoch *p, int64_t t) {
  mark_batch(f, p, t, true);
  for (int64_t k = p->start[0][t]; k < p->start[0][t + 1]; k++) {
    unicon__entry_walk walk = unicon__entries_of(f->data->pairs, p->row[0][k]);
    int64_t count = 0;
    for (unicon__entry e; next_inside(f, &walk, &e);) count++;
    p->entry_start[k + 1] = p->entry_start[k] + count;
  }
  mark_batch(f, p, t, false);
}

/* Entries of a batch: what they count as negatives, and their weights before the normalizers. */
static void list_entries(refining *f, epoch *p, int64_t t, double normalizer[2]) {
  const int64_t n_y = p->start[1][t + 1] - p->start[1][t];
  const bool supcon = f->loss.kind == UNICON__LOSS_SUPCON;
  memset(f->weight_y, 0, (size_t)n_y * sizeof *f->weight_y);
  memset(f->count_y, 0, (size_t)n_y * sizeof *f->count_y);
  normalizer[0] = normalizer[1] = 0;
  mark_batch(f, p, t, true);
  for (int64_t k = p->start[0][t]; k < p->start[0][t + 1]; k++) {
    unicon__entry_walk walk = unicon__entries_of(f->data->pairs, p->row[0][k]);
    int64_t at = p->entry_start[k], count = 0;
    double weight = 0;
    for (unicon__entry e; next_inside(f, &walk, &e); at++) {
      const int64_t j = f->place[e.j];
      p->column[at] = j;
      p->value[at] = e.positive && !supcon ? 0 : e.epsilon;
      p->omega[0][at] = e.positive ? e.weight : -1;
      if (!e.positive) continue;
      weight += e.weight;
      count++;
      f->weight_y[j] += e.weight;
      f->count_y[j]++;
    }
    for (at = p->entry_start[k]; at < p->entry_start[k + 1]; at++)
      p->omega[1][at] = (double)count; /* held here until the normalizers are known */
    if (count > 0) normalizer[0] += weight / (double)count;
  }
  mark_batch(f, p, t, false);
  for (int64_t j = 0; j < n_y; j++)
    if (f->count_y[j] > 0) normalizer[1] += f->weight_y[j] / (double)f->count_y[j];
}

/* omega of both directions, with their shares. */
static void weigh_entries(const refining *f, epoch *p, int64_t t, const double normalizer[2]) {
  for (int64_t at = p->entry_start[p->start[0][t]]; at < p->entry_start[p->start[0][t + 1]]; at++) {
    const double weight = p->omega[0][at], count_x = p->omega[1][at];
    const double count_y = (double)f->count_y[p->column[at]];
    const bool counts = weight > 0;
    p->omega[0][at] = counts ? f->share[0] * weight / (count_x * normalizer[0]) : 0;
    p->omega[1][at] = counts ? f->share[1] * weight / (count_y * normalizer[1]) : 0;
  }
}

static unicon_status draw_rows(unicon_ctx *ctx, refining *f, int64_t first, epoch *p) {
  const int64_t batch = f->draw.batch;
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, p->start[s], f->steps + 1);
    UNICON_NEW(ctx, p->row[s], f->steps * batch);
  }
  for (int64_t t = 0; t < f->steps; t++) {
    int64_t *const row[2] = {p->row[0] + p->start[0][t], p->row[1] + p->start[1][t]};
    int64_t count[2];
    unicon__draw_batch(&f->draw, first + t, row, count);
    for (int s = 0; s < 2; s++) p->start[s][t + 1] = p->start[s][t] + count[s];
  }
  return UNICON_OK;
}

static unicon_status open_epoch(unicon_ctx *ctx, refining *f, int number, epoch *p) {
  const int64_t first = (number - 1) * f->steps;
  double normalizer[2];
  *p = (epoch){.loss = NULL};
  unicon__draw_epoch(&f->draw, number);
  UNICON_TRY(draw_rows(ctx, f, first, p));
  const int64_t rows = p->start[0][f->steps];
  UNICON_NEW(ctx, p->entry_start, rows + 1);
  for (int64_t t = 0; t < f->steps; t++) count_entries(f, p, t);
  UNICON_NEW(ctx, p->column, p->entry_start[rows]);
  UNICON_NEW(ctx, p->value, p->entry_start[rows]);
  for (int s = 0; s < 2; s++) UNICON_NEW(ctx, p->omega[s], p->entry_start[rows]);
  UNICON_NEW(ctx, p->rate, f->steps);
  UNICON_NEW(ctx, p->loss, f->steps);
  for (int64_t t = 0; t < f->steps; t++) {
    list_entries(f, p, t, normalizer);
    weigh_entries(f, p, t, normalizer);
    p->rate[t] = unicon__refine_rate(f->params, f->steps, first + t);
  }
  p->entries = (unicon__device_sparse){rows, p->entry_start, p->column, p->value};
  p->steps = (unicon__device_steps){.steps = f->steps,
                                    .first = first,
                                    .start = {p->start[0], p->start[1]},
                                    .row = {p->row[0], p->row[1]},
                                    .entries = &p->entries,
                                    .omega_x = p->omega[0],
                                    .omega_y = p->omega[1],
                                    .a = 1 / f->loss.temperature,
                                    .nu = f->loss.nu,
                                    .own = f->loss.kind == UNICON__LOSS_SUPCON ? 0 : f->loss.own,
                                    .phi = f->loss.phi,
                                    .rate = p->rate,
                                    .decay = f->params->decay,
                                    .value = p->loss};
  return UNICON_OK;
}

/* ---- rows and factors --------------------------------------------------------------------- */

/* All rows of a source as features on the device: those that are kept, where they are as they
 * stand, or a copy. */
static unicon_status open_rows(unicon_ctx *ctx, unicon__device_room *room,
                               const unicon__source *source, const unicon__matrix **out) {
  const int64_t n = source->count, p = source->map->out;
  const unicon__kept *kept = source->kept;
  if (unicon__is_kept(source) && kept->count == n) {
    *out = kept->phi;
    return UNICON_OK;
  }
  const int64_t block = unicon__feed_rows(ctx, source, n, 8.0 * (double)p, 0.5);
  unicon__device_room other = {.count = 0};
  const unicon__matrix *phi;
  unicon__matrix *all;
  unicon__feed feed;
  int64_t at;
  UNICON_TRY(unicon__device_new(ctx, room, n, p, UNICON__ELEMENT_F32, &all));
  unicon_status status = unicon__feed_open(ctx, &other, source, block, &feed);
  for (int64_t first = 0; first < n && status == UNICON_OK; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    status = unicon__feed_block(ctx, &feed, NULL, first, count, &phi, &at);
    int64_t *place = NULL;
    if (status == UNICON_OK) place = unicon__new(ctx, count, sizeof *place);
    if (status == UNICON_OK && !place) status = UNICON_ERR_MEMORY;
    for (int64_t i = 0; i < count && place; i++) place[i] = at + i;
    if (status == UNICON_OK) status = unicon__on(ctx, gather, phi, place, count, all, first);
    unicon__drop(ctx, place);
  }
  unicon__device_close(ctx, &other);
  *out = all;
  return status;
}

static unicon_status open_metric(unicon_ctx *ctx, unicon__device_room *room,
                                 const unicon__whitening *metric, unicon__device_tuned *t) {
  const int64_t p = metric->size;
  unicon__matrix *made = NULL;
  float *r;
  if (metric->kind == UNICON__WHITEN_NONE) return UNICON_OK;
  if (metric->kind == UNICON__WHITEN_DIAGONAL) {
    UNICON_NEW(ctx, r, p);
    for (int64_t k = 0; k < p; k++) r[k] = (float)metric->scale[k];
    UNICON_TRY(unicon__device_copy(ctx, room, r, 1, p, p, &made));
    t->scale = made;
    return UNICON_OK;
  }
  UNICON_TRY(unicon__whiten_matrix(ctx, metric, &r));
  UNICON_TRY(unicon__device_copy(ctx, room, r, p, p, p, &made));
  t->whole = made;
  unicon__drop(ctx, r);
  return UNICON_OK;
}

static unicon_status open_side(unicon_ctx *ctx, unicon__device_room *room, refining *f, int s) {
  const int64_t p = f->factors->p[s], r = f->factors->r;
  const int single = UNICON__ELEMENT_F32;
  unicon__device_tuned *t = &f->side[s];
  *t = (unicon__device_tuned){.phi = NULL};
  UNICON_TRY(open_rows(ctx, room, s == 0 ? &f->data->x : &f->data->y, &t->phi));
  UNICON_TRY(open_metric(ctx, room, &f->metric[s], t));
  UNICON_TRY(unicon__device_copy(ctx, room, f->factors->g[s], p, r, r, &t->g));
  UNICON_TRY(unicon__device_new(ctx, room, p, r, single, &t->mean));
  UNICON_TRY(unicon__device_new(ctx, room, p, r, single, &t->square));
  UNICON_TRY(unicon__device_new(ctx, room, p, r, single, &t->f));
  UNICON_NEW(ctx, f->f[s], p * r);
  UNICON_NEW(ctx, f->best[s], p * r);
  memcpy(f->best[s], f->factors->g[s], (size_t)(p * r) * sizeof *f->best[s]);
  return UNICON_OK;
}

static unicon_status fetch(unicon_ctx *ctx, const refining *f, const unicon__matrix *const from[2],
                           float *const to[2]) {
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__on(ctx, download, from[s], 0, f->factors->p[s], to[s],
                          f->factors->r * (int64_t)sizeof *to[s]));
  return UNICON_OK;
}

/* ---- epochs ------------------------------------------------------------------------------- */

/* The held-out score of F as it is on the device. */
static unicon_status judge_now(unicon_ctx *ctx, unicon__device_room *room, const refining *f,
                               double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  const unicon__validation *held = f->held;
  unicon__matrix *const weight[2] = {f->side[0].f, f->side[1].f};
  const unicon__matrix *const from[2] = {weight[0], weight[1]};
  const int64_t r = f->factors->r;
  *score = 0;
  if (!held) return UNICON_OK;
  if (held->judge && held->judge->on) {
    UNICON_TRY(unicon__judge_embed(ctx, room, held, held->judge, weight, r));
    return unicon__judge_score(ctx, held, held->judge, r, as_it_is, held->balance, score);
  }
  UNICON_TRY(fetch(ctx, f, from, f->f));
  return unicon__validation_score(ctx, held, (const float *const *)f->f, r, score);
}

static unicon_status run_epoch(unicon_ctx *ctx, refining *f, int number, double *loss) {
  unicon__block *frame = unicon__frame_open(ctx);
  epoch p;
  double sum = 0;
  UNICON_TRY(open_epoch(ctx, f, number, &p));
  UNICON_TRY(unicon__on(ctx, refine, f->side, &p.steps));
  for (int64_t t = 0; t < f->steps; t++) sum += p.loss[t];
  if (!isfinite(sum))
    return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                        "the loss of a refine batch is not finite; a higher temperature or a "
                        "smaller refine_rate helps");
  *loss = sum / (double)f->steps;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static unicon_status run_epochs(unicon_ctx *ctx, unicon__device_room *room, refining *f) {
  const unicon__device_steps none = {.steps = 0};
  const unicon__matrix *const g[2] = {f->side[0].g, f->side[1].g};
  double best, score, loss;
  UNICON_TRY(unicon__on(ctx, refine, f->side, &none));
  UNICON_TRY(judge_now(ctx, room, f, &best));
  f->log->score[0] = best;
  for (int number = 1; number <= f->params->epochs; number++) {
    UNICON_TRY(unicon__stage_step(ctx, number - 1, f->params->epochs));
    UNICON_TRY(run_epoch(ctx, f, number, &loss));
    UNICON_TRY(judge_now(ctx, room, f, &score));
    if (unicon__refine_note(ctx, f->held, number, loss, score, &best, f->log))
      UNICON_TRY(fetch(ctx, f, g, f->best));
    if (unicon__refine_ends(f->params, f->held, number, score, f->log)) break;
  }
  return UNICON_OK;
}

static unicon_status refine_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  refining *f = state;
  const int64_t n_y = f->data->pairs->n_y;
  UNICON_TRY(unicon__draw_open(ctx, f->data->pairs, f->params->batch, f->params->seed, &f->draw));
  UNICON_NEW(ctx, f->place, n_y);
  UNICON_NEW(ctx, f->weight_y, f->draw.batch);
  UNICON_NEW(ctx, f->count_y, f->draw.batch);
  for (int64_t j = 0; j < n_y; j++) f->place[j] = -1;
  for (int s = 0; s < 2; s++) UNICON_TRY(open_side(ctx, room, f, s));
  UNICON_TRY(run_epochs(ctx, room, f));
  for (int s = 0; s < 2; s++)
    memcpy(f->factors->g[s], f->best[s],
           (size_t)(f->factors->p[s] * f->factors->r) * sizeof *f->best[s]);
  return UNICON_OK;
}

unicon_status unicon__refine_on_device(unicon_ctx *ctx, const unicon__batch *data,
                                       const unicon__whitening metric[2],
                                       const unicon__validation *held,
                                       const unicon__refine_params *params,
                                       unicon__factors *factors, unicon__refine_log *log,
                                       bool *done) {
  refining f = {.data = data,
                .metric = metric,
                .held = held,
                .params = params,
                .factors = factors,
                .log = log,
                .steps = unicon__epoch_steps(data->pairs, params->batch)};
  *done = false;
  if (!unicon__refine_serves(ctx, params, data, factors->r)) return UNICON_OK;
  f.loss = unicon__loss_settings(&params->loss, f.share);
  return unicon__device_run(ctx, "refine", refine_road, &f, done);
}
