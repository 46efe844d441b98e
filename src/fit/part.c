/* SPDX-License-Identifier: Apache-2.0 */
#include "fit/part.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "model/store.h"
#include "score/judge.h"
#include "solve/refine_device.h"

/* The part in the making. */
typedef struct making {
  const unicon__part_job *job;
  unicon__prepared own, *prepared; /* own: where the job brings none */
  unicon__moments moments;
  unicon__whitening metric[2];
  unicon__validation held;
  bool judged;
  int64_t rank;
  unicon__refine_params refine;
  unicon__factors factors;
} making;

/* The rank: what was asked for, or at most 256, within what features and rows allow. */
static unicon_status choose_rank(unicon_ctx *ctx, const unicon__params *params,
                                 const unicon__prepared *prepared, int64_t *out) {
  const int64_t most = unicon__most_rank(params, prepared);
  const unicon__source *x = &prepared->side[0].source, *y = &prepared->side[1].source;
  if (params->rank > most && params->rank_given)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "rank is %lld, but %lld by %lld features of %lld and %lld rows allow at "
                        "most %lld",
                        (long long)params->rank, (long long)x->map->out, (long long)y->map->out,
                        (long long)x->count, (long long)y->count, (long long)most);
  *out = params->rank < most ? params->rank : most;
  return UNICON_OK;
}

/* The identity has a meaning between rows of one space. */
static unicon_status check_identity(unicon_ctx *ctx, double identity,
                                    const unicon__prepared *prepared) {
  const unicon__map *x = &prepared->side[0].map, *y = &prepared->side[1].map;
  if (x->kind == UNICON__MAP_LINEAR && y->kind == UNICON__MAP_LINEAR && x->out == y->out)
    return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_OPTION,
                      "identity %g needs rows of one space, without a kernel; here x has %lld and "
                      "y %lld features",
                      identity, (long long)x->out, (long long)y->out);
}

static unicon_status prepare(unicon_ctx *ctx, making *m) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  const unicon__part_job *job = m->job;
  const unicon__params *params = job->params;
  if (params->shared &&
      (params->power[0] != params->power[1] || params->ridge[0] != params->ridge[1]))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "a shared encoder has one metric, not one for x and another for y");
  if (!m->prepared) {
    unicon__prepare_plan plan = unicon__params_prepare(params, &job->data);
    memcpy(plan.landmark, job->landmark, sizeof plan.landmark);
    plan.landmarks = job->landmarks;
    m->prepared = &m->own;
    UNICON_TRY(unicon__prepare(ctx, &plan, &m->own));
  }
  UNICON_TRY(
      unicon__stats_finish(ctx, &m->prepared->stats, NULL, params->centring, all, &m->moments));
  unicon__prepared_drop_sums(m->prepared);
  UNICON_TRY(unicon__moments_check(ctx, m->prepared, &m->moments));
  UNICON_TRY(unicon__prepared_centre(ctx, m->prepared, &m->moments));
  const unicon__closed_params closed = unicon__params_closed(params, 0);
  unicon__blas_begin();
  const unicon_status status = unicon__closed_whiten(ctx, &m->moments, &closed, m->metric);
  unicon__blas_end();
  UNICON_TRY(status);
  for (int s = 0; s < 2; s++) { /* the metric has taken its place */
    unicon__drop(ctx, m->moments.sigma[s]);
    m->moments.sigma[s] = NULL;
  }
  if (params->identity > 0) UNICON_TRY(check_identity(ctx, params->identity, m->prepared));
  m->judged = job->held != NULL;
  if (job->held)
    UNICON_TRY(unicon__validation_through(ctx, job->held, m->prepared, params->balance,
                                          params->bank, params->seed, &m->held));
  return choose_rank(ctx, params, m->prepared, &m->rank);
}

static unicon_status solve(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  const unicon__params *params = m->job->params;
  unicon__state state;
  unicon__problem problem = {.whole = unicon__prepared_set(m->prepared)};
  unicon__solve_params solve = unicon__params_solve(params, m->rank);
  if (m->judged) solve.held = &m->held;
  unicon_status status = unicon__problem_cut(ctx, &m->job->cut, &problem);
  unicon__blas_begin();
  if (status == UNICON_OK)
    status = unicon__solve(ctx, &problem, &m->moments, m->metric, &solve, &state, log);
  unicon__blas_end();
  unicon__problem_close(&problem);
  UNICON_TRY(status);
  return unicon__factors_of(ctx, &state, solve.power, &m->factors);
}

/* Normal factors, for refine alone. */
static unicon_status start_random(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  m->factors = (unicon__factors){.r = m->rank};
  *log = (unicon__solve_log){.method = "none"};
  for (int s = 0; s < 2; s++) {
    m->factors.p[s] = m->prepared->side[s].map.out;
    UNICON_NEW(ctx, m->factors.g[s], m->factors.p[s] * m->factors.r);
    unicon__random_factor(m->job->params->seed, m->job->params->shared ? 0 : s, m->factors.p[s],
                          m->factors.r, m->factors.g[s]);
  }
  UNICON_NEW(ctx, log->spectrum, m->factors.r);
  return UNICON_OK;
}

/* Weights of a model as factors; they are those of the plain metric. */
static unicon_status take_weights(unicon_ctx *ctx, making *m, const unicon_model *model,
                                  const char *path) {
  m->factors = (unicon__factors){.r = model->rank};
  for (int s = 0; s < 2; s++) {
    const unicon__map *map = &model->part[0].map[s];
    if (model->parts > 1 || map->kind != UNICON__MAP_LINEAR ||
        map->out != m->prepared->side[s].map.out)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "%s cannot be the start: that takes a linear model of the same widths",
                          path);
    if (m->metric[s].kind != UNICON__WHITEN_NONE)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "the weights of %s are a start with metric none only", path);
    m->factors.p[s] = map->out;
    UNICON_NEW(ctx, m->factors.g[s], map->out * model->rank);
    memcpy(m->factors.g[s], model->part[0].weight[s],
           (size_t)(map->out * model->rank) * sizeof(float));
  }
  return UNICON_OK;
}

static unicon_status start_model(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  const char *path = m->job->params->start_path;
  unicon_model *model = NULL;
  *log = (unicon__solve_log){.method = "none"};
  UNICON_TRY(unicon__model_load(ctx, path, &model));
  unicon_status status = take_weights(ctx, m, model, path);
  if (status == UNICON_OK) {
    log->spectrum = unicon__new(ctx, model->rank, sizeof *log->spectrum);
    if (!log->spectrum) status = UNICON_ERR_MEMORY;
    for (int64_t k = 0; log->spectrum && k < model->rank; k++)
      log->spectrum[k] = (double)model->spectrum[k];
  }
  unicon_model_destroy(model);
  return status;
}

/* Kept features that become Phi R. */
typedef struct turning {
  float *cache; /* n by p */
  const float *r;
  unicon__share own; /* rows of this process */
  int64_t p;
  bool triangular; /* R is upper triangular */
  float *rows;     /* per worker: TURN_ROWS by p */
} turning;

enum { TURN_ROWS = 256, TURN_COLUMNS = 256 }; /* of a tile: a product at its full rate */

static void turn_block(void *state, unicon__cell cell) {
  const turning *t = state;
  const int64_t at = cell.row * TURN_ROWS, p = t->p;
  const int64_t count = t->own.count - at < TURN_ROWS ? t->own.count - at : TURN_ROWS;
  float *rows = t->rows + cell.worker * TURN_ROWS * p, *out = t->cache + (t->own.first + at) * p;
  memcpy(rows, out, (size_t)(count * p) * sizeof *rows);
  for (int64_t from = 0; from < p; from += TURN_COLUMNS) {
    const int64_t cols = p - from < TURN_COLUMNS ? p - from : TURN_COLUMNS;
    unicon__sgemm(false, false, count, cols, t->triangular ? from + cols : p, 1, rows, p,
                  t->r + from, p, 0, out + from, p);
  }
}

static unicon_status turn_cache(unicon_ctx *ctx, const unicon__whitening *metric, const float *r,
                                const unicon__source *source) {
  turning t = {.cache = (float *)(uintptr_t)source->cache,
               .r = r,
               .p = metric->size,
               .triangular = metric->kind == UNICON__WHITEN_CHOLESKY};
  const double n = (double)source->count;
  t.own = unicon__share_of(ctx, source->count, TURN_ROWS, n * (double)t.p * (double)t.p);
  const int64_t items = (t.own.count + TURN_ROWS - 1) / TURN_ROWS;
  UNICON_NEW(ctx, t.rows, unicon__workers_for(ctx, items) * TURN_ROWS * t.p);
  UNICON_TRY(unicon__sweep_rows(ctx, "whitening", &unicon__blas_region, items, turn_block, &t));
  unicon__drop(ctx, t.rows);
  return unicon__gather_rows(ctx, &t.own, t.cache, t.p * (int64_t)sizeof *t.cache);
}

/* Are the features of a side kept, in an array of their own, as well as those of held-out rows? */
static bool can_turn(const making *m, int s) {
  const unicon__source *train = &m->prepared->side[s].source;
  return m->metric[s].kind != UNICON__WHITEN_NONE && !m->job->params->shared && train->cache &&
         !train->cache_row && (!m->judged || m->held.side[s].cache);
}

/* Turns the kept features into metric coordinates, n p^2 flops, where the steps of refine would
 * spend more on products with R: 4 p^2 r each. The metric of the turned rows is plain. */
static unicon_status turn_side(unicon_ctx *ctx, making *m, int s, unicon__whitening *plain) {
  const double steps =
      (double)m->refine.epochs * (double)unicon__epoch_steps(m->job->data.pairs, m->refine.batch);
  float *r;
  *plain = m->metric[s];
  if (!can_turn(m, s) ||
      4 * steps * (double)m->factors.r < (double)m->prepared->side[s].source.count)
    return UNICON_OK;
  UNICON_TRY(unicon__whiten_matrix(ctx, &m->metric[s], &r));
  UNICON_TRY(turn_cache(ctx, &m->metric[s], r, &m->prepared->side[s].source));
  if (m->judged) UNICON_TRY(turn_cache(ctx, &m->metric[s], r, &m->held.side[s]));
  unicon__drop(ctx, r);
  *plain = (unicon__whitening){UNICON__WHITEN_NONE, m->metric[s].size, NULL, NULL};
  return UNICON_OK;
}

static unicon_status refine(unicon_ctx *ctx, making *m, unicon__refine_log *log) {
  unicon__whitening metric[2];
  unicon__drop(ctx, m->moments.cross); /* factors have taken its place */
  m->moments.cross = NULL;
  const unicon__batch data = unicon__prepared_set(m->prepared);
  const bool away = unicon__refine_serves(ctx, &m->refine, &data, m->factors.r);
  for (int s = 0; s < 2; s++) metric[s] = m->metric[s];
  for (int s = 0; s < 2 && !away; s++) {
    const int stage = unicon__stage_begin(ctx, NULL, 0.12);
    UNICON_TRY(turn_side(ctx, m, s, &metric[s]));
    unicon__stage_end(ctx, stage);
  }
  unicon__judge judge = {.on = false};
  unicon_status status = UNICON_OK;
  unicon__blas_begin();
  if (m->judged) status = unicon__judge_open(ctx, &m->held, &judge);
  m->held.judge = judge.on ? &judge : NULL;
  if (status == UNICON_OK)
    status = unicon__refine(ctx, &data, metric, m->judged ? &m->held : NULL, &m->refine,
                            &m->factors, log);
  m->held.judge = NULL;
  unicon__judge_close(&judge);
  unicon__blas_end();
  return status;
}

/* What a part of the fit takes of it, about: passes and epochs most, where there are any. */
typedef struct stage_shares {
  double maps, solving;
  bool passes;
} stage_shares;

static stage_shares shares_of(const making *m) {
  const unicon__solve_params solve = unicon__params_solve(m->job->params, m->rank);
  const bool passes = solve.iterations > 0 && solve.loss.kind != UNICON__LOSS_MOMENT;
  const bool epochs = m->refine.epochs > 0;
  const double before = m->job->prepared ? 0.05 : passes || epochs ? 0.15 : 0.7;
  return (stage_shares){before, epochs ? (passes ? 0.4 : 0.1) : 0.97 - before, passes};
}

static unicon_status make_part(unicon_ctx *ctx, making *m, unicon__part *part,
                               unicon__part_log *log) {
  const unicon__start start = m->job->params->start;
  const bool steps = m->job->params->iterations > 0 || m->refine.epochs == 0;
  const stage_shares share = shares_of(m);
  int stage = unicon__stage_begin(ctx, "maps and metric", share.maps);
  UNICON_TRY(prepare(ctx, m));
  unicon__stage_end(ctx, stage);
  stage = unicon__stage_begin(ctx, share.passes ? "iterations" : "closed form", share.solving);
  UNICON_TRY(start == UNICON__START_MODEL              ? start_model(ctx, m, &log->solve)
             : start == UNICON__START_RANDOM && !steps ? start_random(ctx, m, &log->solve)
                                                       : solve(ctx, m, &log->solve));
  unicon__stage_end(ctx, stage);
  stage = unicon__stage_begin(ctx, NULL, 0.97 - share.maps - share.solving);
  if (m->refine.epochs > 0) UNICON_TRY(refine(ctx, m, &log->refine));
  unicon__stage_end(ctx, stage);
  return unicon__part_store(ctx, m->job->arena, m->prepared->side, m->metric, &m->factors, part);
}

unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__part_log *log) {
  making m = {.job = job, .prepared = job->prepared, .refine = job->params->refine};
  *log = (unicon__part_log){0};
  const unicon_status status = make_part(ctx, &m, part, log);
  unicon__prepared_close(&m.own);
  return status;
}
