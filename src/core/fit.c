/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_fit: checks, feature maps, metric, solver, model. No formulas here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/model.h"
#include "core/solve.h"
#include "linalg/blas.h"

/* Everything a fit works on; freed with the frame, but for the owned pairs. */
typedef struct fit {
  const unicon_options *options;
  const unicon_data *data;
  unicon__problem problem;
  unicon_pairs *own_pairs; /* made here: identity, or what is left after dropping rows */
  unicon__metric metric_x, metric_y;
  unicon__solve_params params;
  uint64_t hash;
} fit;

static unicon_status check_shapes(unicon_ctx *ctx, const unicon_data *data) {
  const unicon_rows *x = data->x, *y = data->y;
  const unicon_pairs *pairs = data->pairs;
  if (x->width > UNICON__MAX_WIDTH || y->width > UNICON__MAX_WIDTH)
    return unicon__fail(ctx, UNICON_ERR_SHAPE, "rows of %lld values: at most %d are supported",
                        (long long)(x->width > y->width ? x->width : y->width), UNICON__MAX_WIDTH);
  if (pairs && (pairs->n_x != x->count || pairs->n_y != y->count))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "the pairs are for %lld by %lld rows, but %s has %lld and %s has %lld",
                        (long long)pairs->n_x, (long long)pairs->n_y, x->name, (long long)x->count,
                        y->name, (long long)y->count);
  if (x->count < 2 || y->count < 2)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s has %lld row%s; a fit needs at least 2 on each side",
                        x->count < 2 ? x->name : y->name,
                        (long long)(x->count < 2 ? x->count : y->count),
                        (x->count < 2 ? x->count : y->count) == 1 ? "" : "s");
  return UNICON_OK;
}

/* Sources of usable rows and the pairs among them. */
static unicon_status open_data(unicon_ctx *ctx, fit *f) {
  const unicon_data *data = f->data;
  const bool normalize = unicon__word(f->options, UNICON__NORMALIZE) == 0;
  const bool drop = unicon__word(f->options, UNICON__BAD_ROWS) == 1;
  unicon__batch *whole = &f->problem.whole;
  whole->x.rows = data->x;
  whole->y.rows = data->y;
  UNICON_TRY(check_shapes(ctx, data));
  if (!data->pairs)
    UNICON_TRY(unicon_pairs_identity(ctx, data->x->count, data->y->count, &f->own_pairs));
  whole->pairs = data->pairs ? data->pairs : f->own_pairs;
  UNICON_TRY(unicon__usable_rows(ctx, data->x, normalize, drop, &whole->x.index, &whole->x.count,
                                 &f->hash));
  UNICON_TRY(unicon__usable_rows(ctx, data->y, normalize, drop, &whole->y.index, &whole->y.count,
                                 &f->hash));
  if (whole->x.index || whole->y.index) {
    unicon_pairs *kept;
    UNICON_TRY(unicon__pairs_subset(ctx, whole->pairs, whole->x.index, whole->x.count,
                                    whole->y.index, whole->y.count, &kept));
    unicon_pairs_destroy(f->own_pairs);
    f->own_pairs = kept;
    whole->pairs = kept;
  }
  if (whole->x.count < 2 || whole->y.count < 2 || whole->pairs->positive.count == 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%lld rows of %s, %lld rows of %s and %lld pairs are left; a fit needs at "
                        "least 2 rows on each side and a pair",
                        (long long)whole->x.count, data->x->name, (long long)whole->y.count,
                        data->y->name, (long long)whole->pairs->positive.count);
  return UNICON_OK;
}

static unicon_status fit_maps(unicon_ctx *ctx, fit *f, unicon_model *model) {
  const bool normalize = unicon__word(f->options, UNICON__NORMALIZE) == 0;
  const bool center = unicon__word(f->options, UNICON__CENTER) == 0;
  unicon__source *source[2] = {&f->problem.whole.x, &f->problem.whole.y};
  for (int side = 0; side < 2; side++) {
    UNICON_TRY(unicon__map_fit_linear(ctx, &model->arena, source[side], normalize, center,
                                      &model->map[side]));
    source[side]->map = &model->map[side];
    if (unicon__integer(f->options, UNICON__ITERATIONS) > 0)
      UNICON_TRY(unicon__source_cache(ctx, source[side]));
  }
  return UNICON_OK;
}

static double metric_power(const unicon_options *options) {
  const int word = unicon__word(options, UNICON__METRIC);
  return word == 0 ? 0 : word == 1 ? 0.5 : unicon__number(options, UNICON__METRIC);
}

static unicon_status fit_metric(unicon_ctx *ctx, const fit *f, const unicon__source *source,
                                unicon__metric *metric) {
  const int64_t p = source->map->out;
  const double power = metric_power(f->options);
  double *sigma = NULL;
  if (power > 0) {
    UNICON_NEW(ctx, sigma, p * p);
    UNICON_TRY(unicon__second_moment(ctx, source, sigma));
  }
  unicon__blas_begin(ctx->threads);
  const unicon_status status = unicon__metric_build(
      ctx, sigma, p, power, unicon__number(f->options, UNICON__RIDGE), metric);
  unicon__blas_end(ctx->threads);
  return status;
}

/* The rank: what was asked for, or at most 256, within what the data allow. */
static unicon_status choose_rank(unicon_ctx *ctx, fit *f) {
  const unicon__batch *whole = &f->problem.whole;
  const int64_t centred = unicon__word(f->options, UNICON__CENTER) == 0;
  int64_t most = whole->x.map->out < whole->y.map->out ? whole->x.map->out : whole->y.map->out;
  if (whole->x.count - centred < most) most = whole->x.count - centred;
  if (whole->y.count - centred < most) most = whole->y.count - centred;
  const bool automatic = unicon__word(f->options, UNICON__RANK) == 0;
  const int64_t asked = automatic ? 256 : unicon__integer(f->options, UNICON__RANK);
  if (asked > most && unicon__given(f->options, UNICON__RANK) && !automatic)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "rank is %lld, but %lld by %lld features of %lld and %lld rows allow at "
                        "most %lld",
                        (long long)asked, (long long)whole->x.map->out,
                        (long long)whole->y.map->out, (long long)whole->x.count,
                        (long long)whole->y.count, (long long)most);
  f->params.rank = asked < most ? asked : most;
  return UNICON_OK;
}

static void read_params(fit *f) {
  unicon__loss_params_from(f->options, &f->params.loss);
  f->params.split = unicon__number(f->options, UNICON__SPLIT);
  f->params.iterations = (int)unicon__integer(f->options, UNICON__ITERATIONS);
  f->params.safe = unicon__word(f->options, UNICON__DAMPING) == 0;
  f->params.svd = (unicon__svd_method)unicon__word(f->options, UNICON__SVD);
  f->params.seed = (uint64_t)unicon__integer(f->options, UNICON__SEED);
}

/* Says which given options have no effect here. */
static void warn_idle(unicon_ctx *ctx, const fit *f) {
  static const int loss_options[] = {UNICON__LOSS, UNICON__TEMPERATURE, UNICON__DAMPING};
  for (size_t k = 0; k < sizeof loss_options / sizeof *loss_options; k++)
    if (f->params.iterations == 0 && unicon__given(f->options, loss_options[k]))
      unicon__log(ctx, UNICON_LOG_WARNING, "%s has no effect with 0 iterations",
                  unicon__option_row(loss_options[k])->name);
  if (f->params.iterations > 0 && f->params.loss.kind == UNICON__LOSS_MOMENT)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the moment weights do not depend on the model: iterations have no effect");
  if (metric_power(f->options) == 0 && unicon__given(f->options, UNICON__RIDGE))
    unicon__log(ctx, UNICON_LOG_WARNING, "ridge has no effect without a metric");
}

static unicon_status note_numbers(unicon_ctx *ctx, unicon_model *model, const char *key,
                                  const double *values, int count) {
  char text[2048] = "";
  size_t used = 0;
  for (int k = 0; k < count && used + 32 < sizeof text; k++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.8g", k ? " " : "", values[k]);
  return unicon__model_note(ctx, model, key, "%s", text);
}

/* Options in force, sizes, certificate, iteration log. No times, paths or dates. */
static unicon_status describe(unicon_ctx *ctx, const fit *f, const unicon__solve_log *log,
                              unicon_model *model) {
  const unicon__batch *whole = &f->problem.whole;
  UNICON_TRY(unicon__model_note(ctx, model, "format", "unicon"));
  UNICON_TRY(unicon__model_note(ctx, model, "format_version", "1"));
  UNICON_TRY(unicon__model_note(ctx, model, "library_version", "%s", unicon_version()));
  UNICON_TRY(unicon__model_note(ctx, model, "input_hash", "%016llx", (unsigned long long)f->hash));
  UNICON_TRY(unicon__model_note(ctx, model, "d_x", "%lld", (long long)whole->x.rows->width));
  UNICON_TRY(unicon__model_note(ctx, model, "d_y", "%lld", (long long)whole->y.rows->width));
  UNICON_TRY(unicon__model_note(ctx, model, "n_x", "%lld", (long long)whole->x.count));
  UNICON_TRY(unicon__model_note(ctx, model, "n_y", "%lld", (long long)whole->y.count));
  UNICON_TRY(unicon__model_note(ctx, model, "pairs", "%lld",
                                (long long)whole->pairs->positive.count));
  UNICON_TRY(unicon__model_note(ctx, model, "batches", "%lld", (long long)f->problem.batches));
  UNICON_TRY(unicon__model_note(ctx, model, "rank", "%lld", (long long)model->rank));
  UNICON_TRY(unicon__model_note(ctx, model, "svd_method", "%s", log->method));
  UNICON_TRY(unicon__model_note(ctx, model, "svd_residual", "%.3g", log->residual));
  UNICON_TRY(unicon__model_note(ctx, model, "spectral_gap", "%.6g", log->gap));
  if (log->steps > 0) {
    UNICON_TRY(note_numbers(ctx, model, "loss_log", log->loss, log->steps));
    UNICON_TRY(note_numbers(ctx, model, "step_log", log->eta, log->steps));
  }
  for (int id = 0; id < UNICON__OPTION_COUNT; id++) {
    const unicon_option_info *row = unicon__option_row(id);
    char key[64];
    if (!(row->scope & UNICON_SCOPE_FIT)) continue;
    snprintf(key, sizeof key, "option.%s", row->name);
    UNICON_TRY(unicon__model_note(ctx, model, key, "%s", unicon__text(f->options, id)));
  }
  unicon__model_seal(model);
  return UNICON_OK;
}

static unicon_status store_factors(unicon_ctx *ctx, const fit *f, const unicon__state *state,
                                   const unicon__solve_log *log, unicon_model *model) {
  float *factors[2];
  UNICON_TRY(unicon__state_factors(ctx, state, &f->metric_x, &f->metric_y, f->params.split,
                                   &factors[0], &factors[1]));
  model->rank = state->r;
  UNICON_ARENA_NEW(ctx, &model->arena, model->spectrum, state->r);
  for (int64_t k = 0; k < state->r; k++) model->spectrum[k] = (float)log->spectrum[k];
  for (int side = 0; side < 2; side++) {
    const int64_t size = model->map[side].out * state->r;
    UNICON_ARENA_NEW(ctx, &model->arena, model->weight[side], size);
    memcpy(model->weight[side], factors[side], (size_t)size * sizeof **model->weight);
  }
  return UNICON_OK;
}

static void log_phase(unicon_ctx *ctx, const char *phase, double *clock) {
  const double now = unicon__now();
  unicon__log(ctx, UNICON_LOG_DEBUG, "%s: %.3f s", phase, now - *clock);
  *clock = now;
}

static unicon_status run_fit(unicon_ctx *ctx, fit *f, unicon_model *model) {
  double clock = unicon__now();
  unicon__state state;
  unicon__solve_log log;
  read_params(f);
  warn_idle(ctx, f);
  UNICON_TRY(open_data(ctx, f));
  UNICON_TRY(fit_maps(ctx, f, model));
  UNICON_TRY(choose_rank(ctx, f));
  log_phase(ctx, "rows checked, maps fitted", &clock);
  UNICON_TRY(fit_metric(ctx, f, &f->problem.whole.x, &f->metric_x));
  UNICON_TRY(fit_metric(ctx, f, &f->problem.whole.y, &f->metric_y));
  log_phase(ctx, "metric", &clock);
  const bool full = unicon__word(f->options, UNICON__BATCH) == 0;
  UNICON_TRY(unicon__problem_cut(ctx, full ? 0 : unicon__integer(f->options, UNICON__BATCH),
                                 f->params.seed, &f->problem));
  unicon__blas_begin(ctx->threads);
  const unicon_status status =
      unicon__solve(ctx, &f->problem, &f->metric_x, &f->metric_y, &f->params, &state, &log);
  unicon__blas_end(ctx->threads);
  UNICON_TRY(status);
  log_phase(ctx, "solved", &clock);
  UNICON_TRY(store_factors(ctx, f, &state, &log, model));
  return describe(ctx, f, &log, model);
}

static unicon_status make_model(unicon_ctx *ctx, const unicon_data *train,
                                const unicon_options *options, unicon_model **out) {
  fit f = {.options = options, .data = train};
  unicon_model *model = NULL;
  UNICON_TRY(unicon__model_create(ctx, &model));
  const unicon_status status = run_fit(ctx, &f, model);
  unicon__problem_close(&f.problem);
  unicon_pairs_destroy(f.own_pairs);
  if (status != UNICON_OK)
    unicon_model_destroy(model);
  else
    *out = model;
  return status;
}

unicon_status unicon_fit(unicon_ctx *ctx, const unicon_data *train, const unicon_data *validation,
                         const unicon_options *options, unicon_model **out) {
  if (!ctx) return UNICON_ERR_ARGUMENT;
  unicon__block *frame = unicon__enter(ctx);
  if (out) *out = NULL;
  if (!train || !train->x || !train->y || !out)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "fit needs rows of x and y and a place for the "
                                                  "model");
  if (validation)
    unicon__log(ctx, UNICON_LOG_WARNING, "this preset makes no choice: the validation pairs are "
                                         "not used");
  return unicon__leave(ctx, frame, make_model(ctx, train, options, out));
}
