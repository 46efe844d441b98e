/* SPDX-License-Identifier: Apache-2.0 */
#include "select/trial.h"

#include <math.h>
#include <string.h>

#include "base/together.h"
#include "device/use.h"
#include "features/project.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"
#include "solve/refine_device.h"

enum {
  MOST_LEAD = 1024, /* landmark features: more cost much and change no choice (docs/results) */
  MOST_AXES = 768,  /* eigenvectors: the rest adds .005 to every setting and costs as much again */
  BANK_ROWS = 1024  /* that tell settings apart; a model keeps more */
};

static const double signal_floor = 1e-6; /* directions below this share of s_1 are noise */

/* ---- a split ------------------------------------------------------------------------------ */

/* A set seen through what is prepared, with its features where the set is a part of it. */
static unicon__batch through(const unicon__prepared *prepared, const unicon__batch *set) {
  unicon__batch out = *set;
  unicon__source *source[2] = {&out.x, &out.y};
  for (int s = 0; s < 2; s++) {
    const unicon__side *side = &prepared->side[s];
    source[s]->map = &side->map;
    source[s]->cache = source[s]->rows == side->source.rows ? side->cache : NULL;
    if (!source[s]->cache) source[s]->cache_row = NULL;
    source[s]->kept = side->source.kept;
  }
  return out;
}

/* Is the held-out set a part of what is prepared, whose sums can be taken away? */
static bool is_part(const unicon__prepared *prepared, const unicon__dataset *held) {
  return held->whole.x.rows == prepared->side[0].source.rows && !held->overlaps &&
         !prepared->stats.listed;
}

/* Moments of the training rows: of all rows, less the held-out ones, or by themselves. */
static unicon_status open_moments(unicon_ctx *ctx, const unicon__dataset *held, unicon__trial *t) {
  const unicon__prepared *prepared = t->prepared;
  const bool own = t->train.x.count == prepared->side[0].source.count &&
                   t->train.y.count == prepared->side[1].source.count;
  const bool part = !own && is_part(prepared, held);
  const unicon__batch held_rows = through(prepared, &held->whole);
  const unicon__batch *set = part ? &held_rows : &t->train;
  unicon__stats sums = {.classes = 0};
  const unsigned char *kept = NULL;
  if (!own) {
    UNICON_TRY(unicon__stats_open(ctx, &ctx->arena, set, t->q, prepared->stats.holds, &sums));
    kept = sums.class_kept;
    if (part) sums.class_kept = prepared->stats.class_kept;
    UNICON_TRY(unicon__stats_add(ctx, set, 1, &sums));
  }
  UNICON_TRY(unicon__stats_finish(ctx, own || part ? &prepared->stats : &sums, part ? &sums : NULL,
                                  prepared->centring, t->q, &t->moments));
  sums.class_kept = kept;
  unicon__stats_drop(&ctx->arena, &sums);
  return UNICON_OK;
}

/* Held-out and bank rows as features. */
static unicon_status open_held(unicon_ctx *ctx, const unicon__dataset *held, unicon__trial *t) {
  const unicon__batch rows = through(t->prepared, &held->whole);
  t->features = (unicon__validation){.side = {rows.x, rows.y}, .pairs = rows.pairs};
  const int64_t most = t->params->bank < BANK_ROWS ? t->params->bank : BANK_ROWS;
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__validation_bank(ctx, s == 0 ? &t->train.x : &t->train.y, t->train.pairs, s,
                                       most, t->params->seed, &t->features));
  t->held = t->features;
  return UNICON_OK;
}

/* Room for the decomposition in force and its embeddings. */
static unicon_status open_results(unicon_ctx *ctx, unicon__trial *t) {
  const int64_t r = t->most;
  t->power = -1;
  t->z = (unicon__embedded){.r = r};
  UNICON_TRY(unicon__state_new(ctx, t->q[0], t->q[1], r, &t->state));
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, t->z.held[s], t->held.side[s].count * r);
    if (t->held.bank[s].count > 0) UNICON_NEW(ctx, t->z.bank[s], t->held.bank[s].count * r);
  }
  return unicon__svd_start_open(ctx, t->q[0], t->q[1], r, t->params->seed, &t->start);
}

unicon_status unicon__trial_resize(unicon_ctx *ctx, unicon__trial *trial, int64_t most) {
  if (most > trial->limit) most = trial->limit;
  if (most == trial->most) return UNICON_OK;
  for (int s = 0; s < 2; s++) {
    unicon__drop(ctx, trial->z.held[s]);
    unicon__drop(ctx, trial->z.bank[s]);
  }
  unicon__drop(ctx, trial->state.u);
  unicon__drop(ctx, trial->state.s);
  unicon__drop(ctx, trial->state.v);
  unicon__drop(ctx, trial->start.basis);
  trial->state = (unicon__state){.r = 0};
  trial->start.basis = NULL;
  trial->most = most;
  return open_results(ctx, trial);
}

/* The map about the mean of the training rows. */
static unicon_status open_map(unicon_ctx *ctx, unicon__trial *t, int s) {
  float *mean;
  t->seen[s] = t->prepared->side[s].map;
  if (t->seen[s].mean) {
    UNICON_NEW(ctx, mean, t->q[s]);
    for (int64_t k = 0; k < t->q[s]; k++)
      mean[k] = (float)((double)t->seen[s].mean[k] + t->moments.mean[s][k]);
    t->seen[s].mean = mean;
  }
  t->held.side[s].map = t->held.bank[s].map = &t->seen[s];
  return UNICON_OK;
}

/* The highest rank that features and training rows allow. Statistics that were made before are of
 * more rows than are there. */
static int64_t rank_limit(const unicon__trial *t) {
  const int64_t rows[2] = {t->train.x.count, t->train.y.count};
  int64_t limit = unicon__most_rank(t->params, t->prepared);
  for (int s = 0; s < 2; s++) {
    const double n = fmax((double)rows[s], floor(t->moments.rows[s]));
    if (n - 1 < (double)limit) limit = (int64_t)n - 1;
    if (t->q[s] < limit) limit = t->q[s];
  }
  return limit;
}

unicon_status unicon__trial_open(unicon_ctx *ctx, const unicon__params *params,
                                 const unicon__prepared *prepared, const unicon__dataset *train,
                                 const unicon__dataset *held, int64_t most, unicon__trial *out) {
  bool kept = false;
  *out = (unicon__trial){.params = params, .prepared = prepared};
  out->part.batch = &out->part.whole;
  out->train = through(prepared, &train->whole);
  for (int s = 0; s < 2; s++) {
    const unicon__map *map = &prepared->side[s].map;
    out->q[s] = map->factor && map->out > MOST_LEAD ? MOST_LEAD : map->out;
    kept = kept || prepared->side[s].cache || unicon__is_kept(&prepared->side[s].source);
  }
  UNICON_TRY(open_moments(ctx, held, out));
  UNICON_TRY(unicon__moments_check(ctx, prepared, &out->moments));
  out->limit = rank_limit(out);
  if (out->limit < 1)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "a side has a single training row, so there is nothing to choose by");
  out->most = most < out->limit ? most : out->limit;
  UNICON_TRY(open_held(ctx, held, out));
  if (kept) return unicon__trial_turn(ctx, out); /* kept features are about another mean */
  for (int s = 0; s < 2; s++) UNICON_TRY(open_map(ctx, out, s));
  return open_results(ctx, out);
}

void unicon__trial_close(unicon__trial *trial) {
  unicon__judge_close(&trial->judge);
  for (int k = 0; k < 6; k++) unicon__kept_close(&trial->kept[k]);
  unicon__problem_close(&trial->part);
}

/* ---- coordinates -------------------------------------------------------------------------- */

/* Eigenvectors of a side, the leading ones by row in `vectors`, by column in float32 as axes; and
 * the mean in their coordinates. */
static unicon_status open_axes(unicon_ctx *ctx, unicon__trial *t, int s, double **vectors) {
  const int64_t p = t->moments.p[s], q = p < MOST_AXES ? p : MOST_AXES;
  double *all = NULL, *values = NULL;
  UNICON_TRY(unicon__eigen(ctx, t->moments.sigma[s], p, &all, &values));
  UNICON_NEW(ctx, t->moments.values[s], q);
  UNICON_NEW(ctx, *vectors, q * p);
  UNICON_NEW(ctx, t->axes[s], p * q);
  UNICON_NEW(ctx, t->offset[s], q);
  for (int64_t k = 0; k < q; k++) {
    const double *from = all + (p - 1 - k) * p;
    double mean = 0;
    t->moments.values[s][k] = values[p - 1 - k];
    memcpy(*vectors + k * p, from, (size_t)p * sizeof *from);
    for (int64_t i = 0; i < p; i++) {
      t->axes[s][i * q + k] = (float)from[i];
      mean += from[i] * t->moments.mean[s][i];
    }
    t->offset[s][k] = (float)mean;
  }
  t->moments.mu[s] = values[p - 1];
  unicon__drop(ctx, values);
  unicon__drop(ctx, all);
  unicon__drop(ctx, t->moments.sigma[s]);
  t->moments.sigma[s] = NULL;
  t->features_used[s] = p;
  t->q[s] = q;
  t->seen[s] = (unicon__map){.in = q, .out = q};
  return UNICON_OK;
}

/* C becomes V_x^T C V_y. */
static unicon_status turn_cross(unicon_ctx *ctx, double *const vectors[2], unicon__trial *t) {
  const int64_t p_x = t->moments.p[0], p_y = t->moments.p[1], q_x = t->q[0], q_y = t->q[1];
  double *half, *cross;
  UNICON_NEW(ctx, cross, q_x * q_y);
  UNICON_NEW(ctx, half, q_x * p_y);
  unicon__tiled_dgemm(ctx, false, false, q_x, p_y, p_x, 1, vectors[0], p_x, t->moments.cross, p_y,
                      0, half, p_y);
  unicon__tiled_dgemm(ctx, false, true, q_x, q_y, p_y, 1, half, p_y, vectors[1], p_y, 0, cross,
                      q_y);
  unicon__drop(ctx, half);
  unicon__drop(ctx, t->moments.cross);
  t->moments.cross = cross;
  t->moments.p[0] = q_x;
  t->moments.p[1] = q_y;
  return UNICON_OK;
}

enum { TURN_ROWS = 256, HELD = 0, BANK = 2, TRAINING = 4 }; /* places of kept rows */

/* Rows that become coordinates. */
typedef struct turning {
  const unicon__source *from;
  unicon__share own; /* rows of this process */
  const float *axes, *offset;
  int64_t p, q; /* features that are looked at, coordinates */
  float *buffer, *out;
} turning;

static void turn_item(void *state, unicon__cell cell) {
  const turning *t = state;
  const int64_t at = cell.row * TURN_ROWS, left = t->own.count - at, first = t->own.first + at;
  const int64_t count = left < TURN_ROWS ? left : TURN_ROWS, ld = t->from->map->out, q = t->q;
  float *buffer = t->buffer + cell.worker * TURN_ROWS * unicon__map_room(t->from->map);
  float *out = t->out + first * q;
  const float *rows = unicon__source_tile(t->from, NULL, first, count, buffer);
  unicon__sgemm(false, false, count, q, t->p, 1, rows, ld, t->axes, q, 0, out, q);
  for (int64_t i = 0; i < count; i++) unicon__vec_best()->scale_shift(out + i * q, q, 1, t->offset);
}

/* The same on a device, which takes weights for all features; the rows stay there. */
static unicon_status turn_on_device(unicon_ctx *ctx, const turning *t, unicon__source *out,
                                    unicon__kept *kept, bool *done) {
  const int64_t p = t->from->map->out, q = t->q;
  float *weight;
  UNICON_NEW(ctx, weight, p * q);
  memcpy(weight, t->axes, (size_t)(t->p * q) * sizeof *weight);
  const unicon__turn turn = {"coordinates", t->from, weight, t->offset, false};
  UNICON_TRY(unicon__keep_turned(ctx, &turn, out, kept, done));
  unicon__drop(ctx, weight);
  return UNICON_OK;
}

/* Rows in coordinates, as a source of its own that has them in its cache, unless they are to stay
 * on a device alone. */
static unicon_status to_axes(unicon_ctx *ctx, const unicon__trial *t, int s,
                             const unicon__source *from, bool alone, unicon__source *out,
                             unicon__kept *kept) {
  const int64_t n = from->count, q = t->q[s];
  const double row = unicon__feature_flops(from) + 2 * (double)t->features_used[s] * (double)q;
  turning work = {.from = from,
                  .own = unicon__share_of(ctx, n, TURN_ROWS, (double)n * row),
                  .axes = t->axes[s],
                  .offset = t->offset[s],
                  .p = t->features_used[s],
                  .q = q};
  const int64_t items = (work.own.count + TURN_ROWS - 1) / TURN_ROWS;
  bool done = false;
  *out = (unicon__source){.rows = from->rows, .count = n, .map = &t->seen[s]};
  if (n > 0) UNICON_TRY(turn_on_device(ctx, &work, out, kept, &done));
  if (done && alone) return UNICON_OK;
  UNICON_NEW(ctx, work.out, n * q);
  out->cache = work.out;
  if (done) return unicon__kept_fetch(ctx, out, work.out);
  UNICON_NEW(ctx, work.buffer,
             unicon__workers_for(ctx, items) * TURN_ROWS * unicon__map_room(from->map));
  UNICON_TRY(unicon__sweep_rows(ctx, "coordinates", &unicon__blas_region, items, turn_item, &work));
  unicon__drop(ctx, work.buffer);
  UNICON_TRY(unicon__gather_rows(ctx, &work.own, work.out, q * (int64_t)sizeof *work.out));
  return UNICON_OK;
}

static unicon_status turn(unicon_ctx *ctx, unicon__trial *t) {
  double *vectors[2] = {NULL, NULL};
  for (int s = 0; s < 2; s++) UNICON_TRY(open_axes(ctx, t, s, &vectors[s]));
  UNICON_TRY(turn_cross(ctx, vectors, t));
  unicon__drop(ctx, vectors[1]);
  unicon__drop(ctx, vectors[0]);
  for (int s = 0; s < 2; s++) {
    if (t->q[s] < t->limit) t->limit = t->q[s];
    if (t->q[s] < t->most) t->most = t->q[s];
    UNICON_TRY(
        to_axes(ctx, t, s, &t->features.side[s], false, &t->held.side[s], &t->kept[HELD + s]));
    UNICON_TRY(
        to_axes(ctx, t, s, &t->features.bank[s], false, &t->held.bank[s], &t->kept[BANK + s]));
  }
  t->turned = true;
  UNICON_TRY(unicon__judge_open(ctx, &t->held, &t->judge));
  t->held.judge = &t->judge;
  return open_results(ctx, t);
}

unicon_status unicon__trial_turn(unicon_ctx *ctx, unicon__trial *trial) {
  if (trial->turned) return UNICON_OK;
  const int stage = unicon__stage_begin(ctx, "coordinates", 0);
  unicon__blas_begin();
  const unicon_status status = turn(ctx, trial);
  unicon__blas_end();
  unicon__stage_end(ctx, stage);
  return status;
}

/* ---- settings ----------------------------------------------------------------------------- */

/* The closed form of a setting; sides with a metric of their own keep it. */
static unicon__closed_params closed_of(unicon__trial *t, const unicon__setting *setting) {
  unicon__closed_params closed = unicon__params_closed(t->params, t->most);
  for (int s = 0; s < 2; s++) {
    if (!t->params->sided) closed.power[s] = setting->power;
    closed.ridge[s] = setting->ridge[s];
  }
  closed.start = &t->start;
  return closed;
}

/* Embeddings of the held-out and bank rows, on the device of the judge if there is one. */
static unicon_status embed_here_or_there(unicon_ctx *ctx, unicon__trial *t, const float *const f[2],
                                         int64_t r) {
  unicon__embedded z;
  UNICON_TRY(unicon__judge_take(ctx, &t->held, &t->judge, f, r, &t->away));
  if (t->away) return UNICON_OK;
  UNICON_TRY(unicon__validation_embed(ctx, &t->held, f, r, &z));
  for (int s = 0; s < 2; s++) {
    memcpy(t->z.held[s], z.held[s], (size_t)(t->held.side[s].count * r) * sizeof(float));
    if (z.bank[s])
      memcpy(t->z.bank[s], z.bank[s], (size_t)(t->held.bank[s].count * r) * sizeof(float));
  }
  return UNICON_OK;
}

/* Makes power and ridges of a setting those in force. */
static unicon_status take_setting(unicon_ctx *ctx, unicon__trial *t,
                                  const unicon__setting *setting) {
  static const double none[2] = {0, 0};
  if (t->power == setting->power && t->ridge[0] == setting->ridge[0] &&
      t->ridge[1] == setting->ridge[1])
    return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon__closed_params params = closed_of(t, setting);
  const int64_t r = t->most;
  unicon__closed closed;
  float *f[2];
  UNICON_TRY(unicon__closed_form(ctx, &t->moments, &params, &closed));
  unicon__state_copy(&t->state, &closed.state);
  for (t->signal = 0; t->signal < r && t->state.s[t->signal] > signal_floor * t->state.s[0];)
    t->signal++;
  UNICON_TRY(unicon__state_factors(ctx, &closed.state, closed.metric, none, &f[0], &f[1]));
  UNICON_TRY(embed_here_or_there(ctx, t, (const float *const *)f, r));
  t->power = setting->power;
  memcpy(t->ridge, setting->ridge, sizeof t->ridge);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Shares of the exponent that the sides get. */
static void sides_of(const unicon__trial *t, double exponent, double power[2]) {
  power[0] = exponent * t->params->split;
  power[1] = exponent * (1 - t->params->split);
}

static unicon_status score_setting(unicon_ctx *ctx, unicon__trial *t,
                                   const unicon__setting *setting, double *score) {
  double power[2], *scale[2];
  *score = 0;
  UNICON_TRY(take_setting(ctx, t, setting));
  if (!(t->state.s[0] > (setting->power > 0 ? UNICON__NO_CORRELATION : 0))) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t rank = setting->rank < t->signal ? setting->rank : t->signal;
  sides_of(t, setting->exponent, power);
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, scale[s], rank);
    for (int64_t k = 0; k < rank; k++) scale[s][k] = pow(t->state.s[k] / t->state.s[0], power[s]);
  }
  bool done = false;
  if (t->away)
    UNICON_TRY(unicon__judge_tell(ctx, &t->held, &t->judge, rank, (const double *const *)scale,
                                  setting->balance, score, &done));
  if (t->away && !done) { /* the judge is out of force: once more */
    t->power = -1;
    UNICON_TRY(take_setting(ctx, t, setting));
  }
  if (!done)
    UNICON_TRY(unicon__validation_judge(ctx, &t->held, &t->z, rank, (const double *const *)scale,
                                        setting->balance, score));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__trial_score(unicon_ctx *ctx, unicon__trial *trial,
                                  const unicon__setting *setting, double *score) {
  const int stage = unicon__stage_begin(ctx, "settings", 1);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__blas_begin();
  const unicon_status status = score_setting(ctx, trial, setting, score);
  unicon__blas_end();
  if (status != UNICON_OK) unicon__frame_close(ctx, frame); /* a choice may go on without it */
  unicon__stage_end(ctx, stage);
  return status;
}

/* ---- refine ------------------------------------------------------------------------------- */

/* Training rows in coordinates: all of them, or as many as have room in half of the memory that is
 * still allowed (or 1 GB), which is more than an epoch looks at. */
static unicon_status open_rows(unicon_ctx *ctx, unicon__trial *t,
                               const unicon__refine_params *params) {
  if (t->rows.pairs) return UNICON_OK;
  const unicon__budget *budget = ctx->arena.budget;
  const uint64_t limit = unicon__budget_limit(budget), used = unicon__budget_used(budget);
  double allowed = limit == UINT64_MAX ? 1e9 : used < limit ? (double)(limit - used) / 2 : 0;
  if (unicon__together(ctx)) UNICON_TRY(unicon__as_first(ctx, &allowed, (int64_t)sizeof allowed));
  const unicon__source *x = &t->train.x, *y = &t->train.y;
  const double bytes =
      4 * ((double)x->count * (double)t->q[0] + (double)y->count * (double)t->q[1]);
  const double share = bytes > allowed ? allowed / bytes : 1;
  const int64_t size = (int64_t)(share * (double)x->count);
  t->part.whole = t->train;
  const unicon__cut cut = {.size = share < 1 ? (size > 2 ? size : 2) : 0, .seed = t->params->seed};
  UNICON_TRY(unicon__problem_cut(ctx, &cut, &t->part));
  const unicon__batch *batch = &t->part.batch[0];
  const bool alone = unicon__refine_serves(ctx, params, batch, t->most);
  for (int s = 0; s < 2; s++) {
    const int stage = unicon__stage_begin(ctx, NULL, 0.1);
    UNICON_TRY(to_axes(ctx, t, s, s == 0 ? &batch->x : &batch->y, alone,
                       s == 0 ? &t->rows.x : &t->rows.y, &t->kept[TRAINING + s]));
    unicon__stage_end(ctx, stage);
  }
  t->rows.pairs = batch->pairs;
  return UNICON_OK;
}

/* Scores of factors under several ways to balance. */
static unicon_status balance_factors(unicon_ctx *ctx, unicon__trial *t,
                                     const unicon__whitening metric[2],
                                     const unicon__factors *factors, const unicon__balancing *how,
                                     int hows, double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  const int64_t r = factors->r;
  unicon__embedded z;
  float *f[2];
  bool done = hows > 0;
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, f[s], t->q[s] * r);
    for (int64_t k = 0; k < t->q[s] * r; k++)
      f[s][k] = (float)metric[s].scale[k / r] * factors->g[s][k];
  }
  t->power = -1; /* the embeddings in force are others */
  if (done)
    UNICON_TRY(unicon__judge_take(ctx, &t->held, &t->judge, (const float *const *)f, r, &done));
  for (int k = 0; k < hows && done; k++)
    UNICON_TRY(unicon__judge_tell(ctx, &t->held, &t->judge, r, as_it_is, how[k], &score[k], &done));
  if (done || hows == 0) return UNICON_OK;
  UNICON_TRY(unicon__validation_embed(ctx, &t->held, (const float *const *)f, r, &z));
  for (int k = 0; k < hows; k++)
    UNICON_TRY(unicon__validation_judge(ctx, &t->held, &z, r, as_it_is, how[k], &score[k]));
  return UNICON_OK;
}

/* The setting as factors to refine. */
static unicon_status start_of(unicon_ctx *ctx, unicon__trial *t, const unicon__setting *setting,
                              unicon__factors *out) {
  const int64_t rank = setting->rank < t->signal ? setting->rank : t->signal;
  double power[2];
  unicon__state state;
  sides_of(t, setting->exponent, power);
  UNICON_TRY(unicon__state_new(ctx, t->q[0], t->q[1], t->most, &state));
  unicon__state_copy(&state, &t->state);
  unicon__state_trim(&state, rank);
  return unicon__factors_of(ctx, &state, power, out);
}

static unicon_status refine_setting(unicon_ctx *ctx, unicon__trial *t,
                                    const unicon__setting *setting,
                                    const unicon__refine_params *params, unicon__refine_log *log,
                                    const unicon__balancing *how, int hows, double *score) {
  unicon__whitening metric[2] = {{.size = 0}, {.size = 0}};
  unicon__factors factors;
  UNICON_TRY(unicon__trial_turn(ctx, t));
  UNICON_TRY(open_rows(ctx, t, params));
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon__closed_params closed = closed_of(t, setting);
  UNICON_TRY(take_setting(ctx, t, setting));
  UNICON_TRY(unicon__closed_whiten(ctx, &t->moments, &closed, metric));
  UNICON_TRY(start_of(ctx, t, setting, &factors));
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
