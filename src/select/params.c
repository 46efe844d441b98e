/* SPDX-License-Identifier: Apache-2.0 */
#include "select/params.h"

#include <math.h>
#include <stdio.h>

#include "base/balancing.h"
#include "base/number.h"

enum { USUAL_RANK = 256 };

static bool is_on(const unicon_options *options, int id) {
  return unicon__is(options, id, "on");
}

/* Metric none is power 0, whiten 1/2. */
static double power_of(const unicon_options *options, int side) {
  enum { NONE, WHITEN }; /* the words of the option; else a number */
  const unicon__value metric = unicon__of_side(options, UNICON__METRIC, side);
  return metric.word == NONE ? 0 : metric.word == WHITEN ? 0.5 : metric.number;
}

static unicon__goal goal_of(const unicon_options *options) {
  return unicon__has_preset(options, "auto")   ? UNICON__GOAL_AUTO
         : unicon__has_preset(options, "best") ? UNICON__GOAL_BEST
                                               : UNICON__GOAL_FIXED;
}

static void read_refine(const unicon_options *options, unicon__params *out) {
  /* An SGD head, as is usual: nothing but refine has made the factors. */
  const bool head = out->start != UNICON__START_MOMENT && out->iterations == 0;
  out->refine = (unicon__refine_params){
      .epochs = (int)unicon__integer(options, UNICON__REFINE),
      .batch = unicon__integer(options, UNICON__REFINE_BATCH),
      .rate = unicon__number(options, UNICON__REFINE_RATE),
      .decay = head ? 0.01 : 0,
      .patience = head ? 5 : 0,
      .learn_temperature = unicon__is(options, UNICON__TEMPERATURE, "learn"),
      .shared = out->shared,
      .seed = out->seed,
      .loss = out->loss,
  };
}

static void read_open(const unicon_options *options, unicon__params *out) {
  out->open.kernel =
      !unicon__given(options, UNICON__KERNEL) && !unicon__given(options, UNICON__KERNEL_X) &&
      !unicon__given(options, UNICON__KERNEL_Y) && !unicon__given(options, UNICON__MAP);
  out->open.landmarks = !unicon__given(options, UNICON__MAP) && !out->map.landmarks_given;
  out->open.ridge = unicon__is(options, UNICON__RIDGE, "auto");
  out->open.power = !unicon__given(options, UNICON__METRIC);
  out->open.exponent = unicon__is(options, UNICON__EXPONENT, "auto");
  out->open.rank = unicon__is(options, UNICON__RANK, "auto");
  out->open.balance = unicon__is(options, UNICON__BALANCE, "auto");
  out->open.refine = !unicon__given(options, UNICON__REFINE);
  out->open.temperature = !unicon__given(options, UNICON__TEMPERATURE);
  out->open.batch = !unicon__given(options, UNICON__REFINE_BATCH);
}

static void read_scores(const unicon_options *options, int64_t rows_y, unicon__params *out) {
  unicon_ctx scratch = {0};
  const bool closed =
      out->iterations == 0 && out->refine.epochs == 0 && out->start == UNICON__START_MOMENT;
  out->split = out->shared ? 0.5 : unicon__number(options, UNICON__SPLIT);
  /* iterations and refine find lengths of their own */
  out->exponent =
      out->open.exponent ? (closed ? 1.5 : 1) : unicon__number(options, UNICON__EXPONENT);
  out->balance = unicon__balancing_usual(rows_y);
  if (!out->open.balance) /* the text was checked when it was set */
    (void)unicon__balancing_parse(&scratch, unicon__text(options, UNICON__BALANCE), &out->balance);
  out->bank = unicon__integer(options, UNICON__BALANCE_BANK);
}

static bool has_kernel(const unicon__params *params) {
  return params->map.kernel[0] != UNICON__KERNEL_LINEAR ||
         params->map.kernel[1] != UNICON__KERNEL_LINEAR;
}

void unicon__params_ridges(double factor, const int64_t rows[2], double ridge[2]) {
  const double ratio_most = 25; /* beyond, more rows say nothing new of the other side */
  const double n[2] = {fmax((double)rows[0], 1), fmax((double)rows[1], 1)};
  const double middle = factor / sqrt(sqrt(n[0] * n[1]));
  const double root = sqrt(fmin(fmax(n[1] / n[0], 1 / ratio_most), ratio_most));
  ridge[0] = middle * root;
  ridge[1] = middle / root;
}

static double number_or(const unicon_options *options, int id, const char *word, double value) {
  return unicon__is(options, id, word) ? value : unicon__number(options, id);
}

static unicon__start start_of(const unicon_options *options) {
  return unicon__is(options, UNICON__START, "moment")   ? UNICON__START_MOMENT
         : unicon__is(options, UNICON__START, "random") ? UNICON__START_RANDOM
         : unicon__is(options, UNICON__START, "zero")   ? UNICON__START_ZERO
                                                        : UNICON__START_MODEL;
}

static void read_rank(const unicon_options *options, unicon__params *out) {
  const bool all = unicon__is(options, UNICON__RANK, "full");
  const bool usual = unicon__is(options, UNICON__RANK, "auto");
  out->rank = all ? INT64_MAX : usual ? USUAL_RANK : unicon__integer(options, UNICON__RANK);
  out->rank_given = unicon__given(options, UNICON__RANK) && !usual && !all;
  /* Towards the identity of the rows themselves, so in their coordinates and with all of them. */
  if (out->identity > 0 && usual) out->rank = INT64_MAX;
  if (out->identity > 0 && out->map.by_size && !has_kernel(out)) {
    out->map.by_size = false;
    out->map.kind = UNICON__MAP_LINEAR;
  }
}

static void read_whitening(const unicon_options *options, const int64_t rows[2],
                           unicon__params *out) {
  const int64_t both[2] = {rows[0] + rows[1], rows[0] + rows[1]}; /* of a shared encoder */
  double usual[2];
  out->centring = !is_on(options, UNICON__CENTER) ? UNICON__CENTRE_NONE
                  : out->shared                   ? UNICON__CENTRE_SHARED
                                                  : UNICON__CENTRE_SIDES;
  unicon__params_ridges(UNICON__RIDGE_ROWS, out->shared ? both : rows, usual);
  out->sided = unicon__of_side(options, UNICON__METRIC, 0).sided;
  for (int s = 0; s < 2; s++) {
    out->power[s] = power_of(options, s);
    const double given = unicon__of_side(options, UNICON__RIDGE, s).number;
    out->ridge[s] = isnan(given) ? usual[s] : given; /* auto is no number */
  }
}

void unicon__params_from(const unicon_options *options, const int64_t rows[2],
                         unicon__params *out) {
  const uint64_t seed = (uint64_t)unicon__integer(options, UNICON__SEED);
  *out = (unicon__params){
      .rows = {rows[0], rows[1]},
      .goal = goal_of(options),
      .shared = is_on(options, UNICON__SHARED_ENCODER),
      .unpaired = is_on(options, UNICON__UNPAIRED),
      .svd = (unicon__svd_method)unicon__word(options, UNICON__SVD),
      .start = start_of(options),
      .start_path = unicon__text(options, UNICON__START),
      .iterations = (int)unicon__integer(options, UNICON__ITERATIONS),
      .safe = unicon__is(options, UNICON__DAMPING, "safe"),
      .tolerance = unicon__number(options, UNICON__TOLERANCE),
      .identity = unicon__number(options, UNICON__IDENTITY),
      .solutions = unicon__is(options, UNICON__BATCH_AVERAGE, "solution"),
      .cut = {.size = (int64_t)number_or(options, UNICON__BATCH, "full", 0),
              .in_order = unicon__is(options, UNICON__BATCH_ORDER, "file"),
              .seed = seed},
      .aggregate = (unicon__aggregation)unicon__word(options, UNICON__AGGREGATE),
      .budget = number_or(options, UNICON__BUDGET, "none", INFINITY),
      .val_fraction = number_or(options, UNICON__VAL_FRACTION, "auto", 0),
      .seed = seed,
  };
  unicon__map_params_from(options, &out->map);
  unicon__loss_params_from(options, &out->loss);
  read_rank(options, out);
  read_whitening(options, rows, out);
  read_refine(options, out);
  read_open(options, out);
  read_scores(options, rows[1], out);
}

static unicon_status write_number(unicon_ctx *ctx, unicon_options *options, int id, double value) {
  char text[32];
  unicon__number_print(text, sizeof text, "%.10g", value);
  return unicon__options_choose(ctx, options, id, text);
}

/* One number where the sides agree, else A,B. */
static unicon_status write_ridge(unicon_ctx *ctx, const unicon__params *params,
                                 unicon_options *options) {
  const double *ridge = params->ridge;
  char text[64];
  if (ridge[0] == ridge[1])
    unicon__number_print(text, sizeof text, "%.10g", ridge[0]);
  else
    unicon__number_print(text, sizeof text, "%.10g,%.10g", ridge[0], ridge[1]);
  return unicon__options_replace(ctx, options, UNICON__RIDGE, text); /* given: auto at most */
}

unicon_status unicon__params_write(unicon_ctx *ctx, const unicon__params *params,
                                   unicon_options *options) {
  char text[UNICON__BALANCING_TEXT];
  if (params->open.kernel && params->kernel)
    UNICON_TRY(unicon__options_choose(ctx, options, UNICON__KERNEL, params->kernel));
  if (params->landmarks_chosen)
    UNICON_TRY(write_number(ctx, options, UNICON__LANDMARKS, (double)params->map.landmarks));
  if (params->open.ridge) UNICON_TRY(write_ridge(ctx, params, options));
  if (params->open.power && params->power[0] == 0.5)
    UNICON_TRY(unicon__options_choose(ctx, options, UNICON__METRIC, "whiten"));
  else if (params->open.power)
    UNICON_TRY(write_number(ctx, options, UNICON__METRIC, params->power[0]));
  UNICON_TRY(write_number(ctx, options, UNICON__EXPONENT, params->exponent));
  if (params->open.rank) UNICON_TRY(write_number(ctx, options, UNICON__RANK, (double)params->rank));
  unicon__balancing_print(params->balance, text);
  if (params->open.balance) UNICON_TRY(unicon__options_choose(ctx, options, UNICON__BALANCE, text));
  snprintf(text, sizeof text, "%d", params->refine.epochs);
  UNICON_TRY(unicon__options_replace(ctx, options, UNICON__REFINE, text)); /* given: at most */
  if (params->refine.epochs == 0) return UNICON_OK;
  UNICON_TRY(write_number(ctx, options, UNICON__TEMPERATURE, params->refine.loss.temperature));
  return write_number(ctx, options, UNICON__REFINE_BATCH, (double)params->refine.batch);
}

void unicon__params_powers(const unicon__params *params, double power[2]) {
  power[0] = params->exponent * params->split;
  power[1] = params->exponent * (1 - params->split);
}

unicon__closed_params unicon__params_closed(const unicon__params *params, int64_t rank) {
  return (unicon__closed_params){
      .power = {params->power[0], params->power[1]},
      .ridge = {params->ridge[0], params->ridge[1]},
      .rank = rank,
      .shared = params->shared,
      .svd = params->svd,
      .seed = params->seed,
  };
}

unicon__solve_params unicon__params_solve(const unicon__params *params, int64_t rank) {
  unicon__solve_params out = {
      .closed = unicon__params_closed(params, rank),
      .loss = params->loss,
      .iterations = params->iterations,
      .safe = params->safe,
      .start = params->start,
      .solutions = params->solutions,
      .tolerance = params->tolerance,
      .identity = params->identity,
      .aggregate = params->aggregate,
  };
  unicon__params_powers(params, out.power);
  return out;
}

/* Are passes and refine of this loss and these pairs among what devices do? */
static bool devices_do(const unicon__params *params, const unicon_pairs *pairs) {
  const unicon__loss_params *loss = &params->refine.loss;
  const bool other = loss->kind == UNICON__LOSS_TRIPLET || loss->kind == UNICON__LOSS_CUSTOM ||
                     (loss->kind == UNICON__LOSS_GENERAL && loss->psi != UNICON__PSI_EXP);
  const bool refined = loss->kind != UNICON__LOSS_SIGLIP && !params->refine.learn_temperature;
  return !other && (refined || params->refine.epochs == 0) && !params->shared && !pairs->class_x &&
         !pairs->only_listed;
}

unicon__prepare_plan unicon__params_prepare(const unicon__params *params,
                                            const unicon__batch *data) {
  unicon__prepare_plan plan = {
      .map = &params->map,
      .centring = params->centring,
      .data = data,
      .cache = params->iterations > 0 || params->refine.epochs > 0 ||
               params->start != UNICON__START_MOMENT,
      .away = devices_do(params, data->pairs),
      .holds = params->start == UNICON__START_MOMENT || params->loss.kind == UNICON__LOSS_MOMENT
                   ? UNICON__STATS_CROSS
                   : 0,
  };
  if (params->power[0] > 0) plan.holds |= UNICON__STATS_GRAM_X;
  if (params->power[1] > 0) plan.holds |= UNICON__STATS_GRAM_Y;
  if (params->unpaired) plan.holds |= UNICON__STATS_UNPAIRED;
  return plan;
}

bool unicon__params_fused(const unicon__params *params, int64_t rows_x) {
  const bool exact = params->map.by_size || params->map.kind == UNICON__MAP_EXACT;
  return has_kernel(params) && exact && params->cut.size > 0 && params->cut.size < rows_x;
}

int64_t unicon__most_rank(const unicon__params *params, const unicon__prepared *prepared) {
  const int64_t centred = params->centring != UNICON__CENTRE_NONE;
  int64_t most = INT64_MAX;
  for (int s = 0; s < 2; s++) {
    const unicon__source *source = &prepared->side[s].source;
    /* statistics that were made before have more rows than are there */
    const double summed = prepared->stats.rows[s];
    const int64_t rows = summed > (double)source->count ? (int64_t)summed : source->count;
    if (source->map->out < most) most = source->map->out;
    if (rows - centred < most) most = rows - centred;
  }
  return most;
}
