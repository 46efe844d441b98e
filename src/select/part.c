/* SPDX-License-Identifier: Apache-2.0 */
#include "select/part.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"

/* none is 0, whiten 1/2. */
static double power_of(const unicon_options *options, int id) {
  const int word = unicon__word(options, id);
  return word == 0 ? 0 : word == 1 ? 0.5 : unicon__number(options, id);
}

double unicon__side_power(const unicon_options *options, int side, double both) {
  enum { SAME = 2 };
  const int id = side == 0 ? UNICON__METRIC_X : UNICON__METRIC_Y;
  return unicon__word(options, id) == SAME ? both : power_of(options, id);
}

double unicon__common_power(const unicon_options *options) {
  return power_of(options, UNICON__METRIC);
}

double unicon__metric_power(const unicon_options *options, int side) {
  return unicon__side_power(options, side, unicon__common_power(options));
}

double unicon__exponent_from(const unicon_options *options) {
  if (unicon__word(options, UNICON__EXPONENT) != 0)
    return unicon__number(options, UNICON__EXPONENT);
  const bool closed = unicon__integer(options, UNICON__ITERATIONS) == 0 &&
                      unicon__integer(options, UNICON__REFINE) == 0 &&
                      unicon__word(options, UNICON__START) == 0;
  return closed ? 1.5 : 1;
}

unicon__balancing unicon__balancing_from(const unicon_options *options, unicon__balancing usual) {
  unicon_ctx scratch = {0};
  unicon__balancing how;
  if (unicon__word(options, UNICON__BALANCE) == 0) return usual;
  (void)unicon__balancing_parse(&scratch, unicon__text(options, UNICON__BALANCE), &how);
  return how; /* the text was checked when it was set */
}

void unicon__powers_from(const unicon_options *options, double power[2]) {
  const bool shared = unicon__word(options, UNICON__SHARED_ENCODER) == 0;
  const double split = shared ? 0.5 : unicon__number(options, UNICON__SPLIT);
  const double exponent = unicon__exponent_from(options);
  power[0] = exponent * split;
  power[1] = exponent * (1 - split);
}

void unicon__solve_params_from(const unicon_options *options, unicon__solve_params *out) {
  *out = (unicon__solve_params){
      .iterations = (int)unicon__integer(options, UNICON__ITERATIONS),
      .safe = unicon__word(options, UNICON__DAMPING) == 0,
      .shared = unicon__word(options, UNICON__SHARED_ENCODER) == 0,
      .aggregate = unicon__word(options, UNICON__AGGREGATE),
      .svd = (unicon__svd_method)unicon__word(options, UNICON__SVD),
      .seed = (uint64_t)unicon__integer(options, UNICON__SEED),
  };
  unicon__powers_from(options, out->power);
  unicon__loss_params_from(options, &out->loss);
}

int64_t unicon__asked_rank(const unicon_options *options) {
  const int word = unicon__word(options, UNICON__RANK);
  return word == 0 ? 256 : word == 1 ? INT64_MAX : unicon__integer(options, UNICON__RANK);
}

int64_t unicon__most_rank(const unicon_options *options, const unicon__source *x,
                          const unicon__source *y) {
  const int64_t centred = unicon__word(options, UNICON__CENTER) == 0;
  int64_t most = x->map->out < y->map->out ? x->map->out : y->map->out;
  if (x->count - centred < most) most = x->count - centred;
  if (y->count - centred < most) most = y->count - centred;
  return most;
}

unicon_status unicon__choose_rank(unicon_ctx *ctx, const unicon_options *options,
                                  const unicon__source *x, const unicon__source *y, int64_t *out) {
  const int64_t most = unicon__most_rank(options, x, y);
  const int64_t asked = unicon__asked_rank(options);
  const bool number = unicon__word(options, UNICON__RANK) < 0;
  if (asked > most && number && unicon__given(options, UNICON__RANK))
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "rank is %lld, but %lld by %lld features of %lld and %lld rows allow at "
                        "most %lld",
                        (long long)asked, (long long)x->map->out, (long long)y->map->out,
                        (long long)x->count, (long long)y->count, (long long)most);
  *out = asked < most ? asked : most;
  return UNICON_OK;
}

/* A linear kernel on landmarks (d > n) is a linear map after all: F = base^T factor G, and the mean
 * is that of the rows themselves. The model then holds no training rows. */
static unicon_status fold_linear(unicon_ctx *ctx, const unicon__source *source, int64_t rank,
                                 unicon__map *map, float **weight) {
  float *folded, *mean = NULL;
  UNICON_NEW(ctx, folded, map->in * rank);
  unicon__tiled_sgemm(ctx, true, false, map->in, rank, map->points, 1, map->base, map->in, *weight,
                      rank, 0, folded, rank);
  unicon__map linear = {.in = map->in, .out = map->in, .normalize = map->normalize};
  if (map->mean) {
    unicon__source plain = *source;
    plain.map = &linear;
    plain.cache = NULL;
    UNICON_NEW(ctx, mean, map->in);
    UNICON_TRY(unicon__feature_mean(ctx, &plain, mean, NULL));
  }
  linear.mean = mean;
  *map = linear;
  *weight = folded;
  return UNICON_OK;
}

/* factor^T k = mean for the mean k of the kernel values: factor is upper triangular, and `rest`
 * holds what is left of the mean. */
static void mean_values(const unicon__map *map, double *rest, float *out) {
  const int64_t m = map->points;
  for (int64_t i = 0; i < m; i++) rest[i] = (double)map->mean[i];
  for (int64_t i = 0; i < m; i++) {
    const float *row = map->factor + i * m;
    const double value = rest[i] / (double)row[i];
    for (int64_t j = i + 1; j < m; j++) rest[j] -= (double)row[j] * value;
    out[i] = (float)value;
  }
}

/* F^T (factor^T k - mean) = (factor F)^T (k - mean of k): the weights take the factor in, which
 * makes a model of m (d + r) numbers instead of m (d + m + r), and as much faster to use. */
static unicon_status fold_factor(unicon_ctx *ctx, int64_t rank, unicon__map *map, float **weight) {
  enum { ROWS = 256 };
  const int64_t m = map->points, p = map->out;
  double *factor, *f, *product;
  float *folded, *mean;
  UNICON_NEW(ctx, folded, m * rank);
  UNICON_NEW(ctx, factor, ROWS * p);
  UNICON_NEW(ctx, f, p * rank);
  UNICON_NEW(ctx, product, ROWS * rank);
  for (int64_t k = 0; k < p * rank; k++) f[k] = (double)(*weight)[k];
  for (int64_t first = 0; first < m; first += ROWS) {
    const int64_t rows = m - first < ROWS ? m - first : ROWS;
    for (int64_t k = 0; k < rows * p; k++) factor[k] = (double)map->factor[first * p + k];
    unicon__tiled_dgemm(ctx, false, false, rows, rank, p, 1, factor, p, f, rank, 0, product, rank);
    for (int64_t k = 0; k < rows * rank; k++) folded[first * rank + k] = (float)product[k];
  }
  if (map->mean) {
    double *rest;
    UNICON_NEW(ctx, mean, m);
    UNICON_NEW(ctx, rest, m);
    mean_values(map, rest, mean);
    map->mean = mean;
  }
  map->factor = NULL;
  map->out = m;
  *weight = folded;
  return UNICON_OK;
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

/* F = R G by way of float64. */
static unicon_status map_back(unicon_ctx *ctx, const unicon__whitening *metric, const float *g,
                              int64_t r, float *out) {
  const int64_t size = metric->size * r;
  double *wide;
  UNICON_NEW(ctx, wide, size);
  for (int64_t k = 0; k < size; k++) wide[k] = (double)g[k];
  unicon__blas_begin();
  const unicon_status status = unicon__whiten_weights(ctx, metric, wide, r, out);
  unicon__blas_end();
  unicon__drop(ctx, wide);
  return status;
}

unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena, const unicon__side *side,
                                 const unicon__whitening metric[2], const unicon__factors *factors,
                                 unicon__part *part) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__part made = {.rank = factors->r, .share = 1};
  for (int s = 0; s < 2; s++) {
    unicon__map *map = &made.map[s];
    *map = side[s].map;
    UNICON_NEW(ctx, made.weight[s], factors->p[s] * factors->r);
    UNICON_TRY(map_back(ctx, &metric[s], factors->g[s], factors->r, made.weight[s]));
    unicon__blas_begin();
    const bool linear = map->factor && map->kernel.kind == UNICON__KERNEL_LINEAR;
    unicon_status status = UNICON_OK;
    if (map->factor) status = fold_factor(ctx, factors->r, map, &made.weight[s]);
    if (linear && status == UNICON_OK)
      status = fold_linear(ctx, &side[s].fitted, factors->r, map, &made.weight[s]);
    unicon__blas_end();
    UNICON_TRY(status);
    UNICON_TRY(unicon__part_copy_side(ctx, arena, &made, s, part));
  }
  if (arena != &ctx->arena) unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

void unicon__refine_params_from(const unicon_options *options, unicon__refine_params *out) {
  *out = (unicon__refine_params){
      .epochs = (int)unicon__integer(options, UNICON__REFINE),
      .batch = unicon__integer(options, UNICON__REFINE_BATCH),
      .rate = unicon__number(options, UNICON__REFINE_RATE),
      .decay = unicon__number(options, UNICON__REFINE_DECAY),
      .patience = (int)unicon__integer(options, UNICON__REFINE_PATIENCE),
      .learn_temperature = unicon__word(options, UNICON__LEARN_TEMPERATURE) == 0,
      .shared = unicon__word(options, UNICON__SHARED_ENCODER) == 0,
      .seed = (uint64_t)unicon__integer(options, UNICON__SEED),
  };
  unicon__loss_params_from(options, &out->loss);
}

/* Training rows that a bank is made of. */
static unicon_status open_bank(unicon_ctx *ctx, const unicon_options *options,
                               const unicon_pairs *pairs, int side, const unicon__source *train,
                               unicon__source *out) {
  const int64_t most = unicon__integer(options, UNICON__BALANCE_BANK);
  int64_t *row = NULL, count = 0;
  UNICON_TRY(unicon__bank_draw(ctx, pairs, side, train->count, most,
                               (uint64_t)unicon__integer(options, UNICON__SEED), &row, &count));
  return unicon__source_narrow(ctx, train, row, count, out);
}

unicon_status unicon__validation_through(unicon_ctx *ctx, const unicon_options *options,
                                         const unicon__validation *held,
                                         const unicon_pairs *train_pairs, const unicon__side *side,
                                         unicon__validation *out) {
  *out = *held;
  out->balance = unicon__balancing_from(options, unicon__balancing_usual(side[1].source.count));
  for (int s = 0; s < 2; s++) {
    float *cache;
    out->side[s].map = &side[s].map;
    out->side[s].cache = NULL;
    UNICON_TRY(unicon__source_cache(ctx, &out->side[s], &cache));
    if (out->balance.kind == UNICON__BALANCE_OFF) continue;
    UNICON_TRY(open_bank(ctx, options, train_pairs, s, &side[s].source, &out->bank[s]));
  }
  return UNICON_OK;
}

static void log_phase(unicon_ctx *ctx, const char *phase, double *clock) {
  const double now = unicon__now();
  unicon__log(ctx, UNICON_LOG_DEBUG, "%s: %.3f s", phase, now - *clock);
  *clock = now;
}

/* The part in the making. */
typedef struct making {
  const unicon__part_job *job;
  unicon__side side[2];
  unicon__whitening metric[2];
  unicon__validation held;
  unicon__solve_params params;
  unicon__refine_params refine;
  unicon__factors factors;
} making;

static unicon_status prepare(unicon_ctx *ctx, making *m) {
  const unicon__part_job *job = m->job;
  const double power[2] = {unicon__metric_power(job->options, 0),
                           unicon__metric_power(job->options, 1)};
  const double ridge = unicon__number(job->options, UNICON__RIDGE);
  const bool often = m->params.iterations > 0 || m->refine.epochs > 0;
  unicon__side_plan plan = {job->options, 0, job->landmark[0], job->landmarks, power[0] > 0, often};
  if (m->params.shared && power[0] != power[1])
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "a shared encoder has one metric: metric_x and metric_y must agree");
  if (m->params.shared)
    UNICON_TRY(
        unicon__sides_fit_shared(ctx, &ctx->arena, &plan, &job->data.x, &job->data.y, m->side));
  for (int s = 0; s < 2; s++) {
    plan.number = s;
    plan.landmark = job->landmark[s];
    plan.covariance = power[s] > 0;
    if (!m->params.shared)
      UNICON_TRY(unicon__side_fit(ctx, &ctx->arena, &plan, s == 0 ? &job->data.x : &job->data.y,
                                  &m->side[s]));
    UNICON_TRY(unicon__side_metric(ctx, &m->side[s], power[s], ridge, &m->metric[s]));
  }
  if (job->held)
    UNICON_TRY(unicon__validation_through(ctx, job->options, job->held, job->data.pairs, m->side,
                                          &m->held));
  m->params.held = job->held ? &m->held : NULL;
  return unicon__choose_rank(ctx, job->options, &m->side[0].source, &m->side[1].source,
                             &m->params.rank);
}

static unicon_status solve(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  unicon__state state;
  unicon__problem problem = {
      .whole = {.x = m->side[0].source, .y = m->side[1].source, .pairs = m->job->data.pairs}};
  unicon_status status = unicon__problem_cut(ctx, m->job->batch, m->params.seed, &problem);
  unicon__blas_begin();
  if (status == UNICON_OK)
    status = unicon__solve(ctx, &problem, &m->metric[0], &m->metric[1], &m->params, &state, log);
  unicon__blas_end();
  unicon__problem_close(&problem);
  UNICON_TRY(status);
  return unicon__factors_of(ctx, &state, m->params.power, &m->factors);
}

/* Normal factors, for refine alone. */
static unicon_status start_random(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  m->factors = (unicon__factors){.r = m->params.rank};
  *log = (unicon__solve_log){.method = "none"};
  for (int s = 0; s < 2; s++) {
    m->factors.p[s] = m->side[s].map.out;
    UNICON_NEW(ctx, m->factors.g[s], m->factors.p[s] * m->factors.r);
    for (int64_t i = 0; i < m->factors.p[s]; i++)
      unicon__normals(m->params.seed, UNICON__STREAM_START,
                      (uint64_t)(2 * i + (m->params.shared ? 0 : s)), m->factors.r,
                      m->factors.g[s] + i * m->factors.r);
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
    if (model->parts > 1 || map->kind != UNICON__MAP_LINEAR || map->out != m->side[s].map.out ||
        m->metric[s].kind != UNICON__WHITEN_NONE)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "%s cannot be the start: that takes a linear model of the same widths, "
                          "and metric none",
                          path);
    m->factors.p[s] = map->out;
    UNICON_NEW(ctx, m->factors.g[s], map->out * model->rank);
    memcpy(m->factors.g[s], model->part[0].weight[s],
           (size_t)(map->out * model->rank) * sizeof(float));
  }
  return UNICON_OK;
}

static unicon_status start_model(unicon_ctx *ctx, making *m, unicon__solve_log *log) {
  const char *path = unicon__text(m->job->options, UNICON__START);
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
  int64_t n, p;
  bool triangular; /* R is upper triangular */
  float *rows;     /* per worker: TURN_ROWS by p */
} turning;

enum { TURN_ROWS = 256, TURN_COLUMNS = 256 };

static void turn_block(void *state, int64_t item, int worker) {
  const turning *t = state;
  const int64_t first = item * TURN_ROWS, p = t->p;
  const int64_t count = t->n - first < TURN_ROWS ? t->n - first : TURN_ROWS;
  float *rows = t->rows + (int64_t)worker * TURN_ROWS * p, *out = t->cache + first * p;
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
               .n = source->count,
               .p = metric->size,
               .triangular = metric->kind == UNICON__WHITEN_CHOLESKY};
  const int64_t items = (t.n + TURN_ROWS - 1) / TURN_ROWS;
  UNICON_NEW(ctx, t.rows, unicon__workers_for(ctx, items) * TURN_ROWS * t.p);
  unicon__blas_begin();
  const unicon_status status =
      unicon__parallel_rounds(ctx, "whitening", 0, 1, items, turn_block, &t);
  unicon__blas_end();
  unicon__drop(ctx, t.rows);
  return status;
}

/* Are the features of a side kept, in an array of their own, as well as those of held-out rows? */
static bool can_turn(const making *m, int s) {
  const unicon__source *train = &m->side[s].source;
  return m->metric[s].kind != UNICON__WHITEN_NONE && !m->params.shared && train->cache &&
         !train->cache_row && (!m->params.held || m->held.side[s].cache);
}

/* Turns the kept features into metric coordinates, n p^2 flops, where the steps of refine would
 * spend more on products with R: 4 p^2 r each. The metric of the turned rows is plain. */
static unicon_status turn_side(unicon_ctx *ctx, making *m, int s, unicon__whitening *plain) {
  const double steps =
      (double)m->refine.epochs * (double)unicon__epoch_steps(m->job->data.pairs, m->refine.batch);
  float *r;
  *plain = m->metric[s];
  if (!can_turn(m, s) || 4 * steps * (double)m->factors.r < (double)m->side[s].source.count)
    return UNICON_OK;
  UNICON_TRY(unicon__whiten_matrix(ctx, &m->metric[s], &r));
  UNICON_TRY(turn_cache(ctx, &m->metric[s], r, &m->side[s].source));
  if (m->params.held) UNICON_TRY(turn_cache(ctx, &m->metric[s], r, &m->held.side[s]));
  unicon__drop(ctx, r);
  *plain = (unicon__whitening){UNICON__WHITEN_NONE, m->metric[s].size, NULL, NULL};
  return UNICON_OK;
}

static unicon_status refine(unicon_ctx *ctx, making *m, unicon__refine_log *log) {
  unicon__whitening metric[2];
  for (int s = 0; s < 2; s++) UNICON_TRY(turn_side(ctx, m, s, &metric[s]));
  const unicon__batch data = {
      .x = m->side[0].source, .y = m->side[1].source, .pairs = m->job->data.pairs};
  unicon__blas_begin();
  const unicon_status status =
      unicon__refine(ctx, &data, metric, m->params.held, &m->refine, &m->factors, log);
  unicon__blas_end();
  return status;
}

unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__part_log *log) {
  double clock = unicon__now();
  making m = {.job = job};
  *log = (unicon__part_log){0};
  unicon__solve_params_from(job->options, &m.params);
  unicon__refine_params_from(job->options, &m.refine);
  m.refine.schedule = job->schedule;
  UNICON_TRY(prepare(ctx, &m));
  log_phase(ctx, "maps and metric", &clock);
  const int start = unicon__word(job->options, UNICON__START);
  UNICON_TRY(start == 0   ? solve(ctx, &m, &log->solve)
             : start == 1 ? start_random(ctx, &m, &log->solve)
                          : start_model(ctx, &m, &log->solve));
  log_phase(ctx, "solved", &clock);
  if (m.refine.epochs > 0) UNICON_TRY(refine(ctx, &m, &log->refine));
  if (m.refine.epochs > 0) log_phase(ctx, "refined", &clock);
  return unicon__part_store(ctx, job->arena, m.side, m.metric, &m.factors, part);
}
