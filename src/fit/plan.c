/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_plan: what a fit will hold and do, before it starts. Memory follows the allocations of the
 * stages in the order of the code: what stays until the end, and what a stage needs on top. Time is
 * the number of float operations over the rate of a short product measured here and now. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/dataset.h"
#include "io/object.h"
#include "io/result.h"
#include "base/parallel.h"
#include "select/select.h"
#include "linalg/rate.h"
#include "unicon/tools.h"

typedef struct side_sizes {
  double n, d;      /* rows and their width */
  double p, points; /* features, landmarks or directions */
  double tables;    /* of points by d: kernels of distances hold landmarks around their mean too */
  bool linear;
} side_sizes;

typedef struct estimate {
  const unicon_options *options;
  unicon__params params;
  side_sizes side[2];
  double pairs, workers, rank;
  double limit;              /* max_mem, or infinity */
  double most_points;        /* landmarks that a trial takes at most */
  double held, peak;         /* bytes */
  double flops, small_flops; /* in float32 products, and in float64 dense algebra */
  double reads[2], sweeps;
} estimate;

static void keep(estimate *e, double bytes) {
  e->held += bytes;
  e->peak = e->held > e->peak ? e->held : e->peak;
}

/* A stage that holds `bytes` on top and gives them back. */
static void pass_by(estimate *e, double bytes) {
  const double now = e->held + bytes;
  e->peak = now > e->peak ? now : e->peak;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

static double most(double a, double b) {
  return a > b ? a : b;
}

static double room(const side_sizes *s) {
  return s->linear ? s->d : s->p + s->d + s->points + 1;
}

/* Features of a side: linear, or landmarks (all rows up to 4000), or directions. */
static void size_side(estimate *e, int number, bool kernel) {
  side_sizes *s = &e->side[number];
  const int map = unicon__word(e->options, UNICON__MAP);
  const int own = unicon__word(e->options, number == 0 ? UNICON__KERNEL_X : UNICON__KERNEL_Y);
  if (own <= UNICON__KERNEL_POLY) kernel = own != UNICON__KERNEL_LINEAR;
  s->linear = !kernel && (map == 1 + UNICON__MAP_LINEAR || (map == 0 && s->d <= s->n));
  s->p = s->points = s->d;
  if (s->linear) return;
  const bool landmarks = unicon__given(e->options, UNICON__LANDMARKS) ||
                         unicon__given(e->options, UNICON__LANDMARK_METHOD);
  if (map == 1 + UNICON__MAP_RANDOM)
    s->points = (double)unicon__integer(e->options, UNICON__FEATURES);
  else if (map == 1 + UNICON__MAP_EXACT || (map == 0 && !kernel) ||
           (map == 0 && s->n <= 4000 && !landmarks))
    s->points = s->n;
  else
    s->points = least(s->n, (double)unicon__integer(e->options, UNICON__LANDMARKS));
  const int word = own <= UNICON__KERNEL_POLY ? own : unicon__word(e->options, UNICON__KERNEL);
  const bool landmark = map != 1 + UNICON__MAP_RANDOM;
  s->tables = landmark && unicon__kernel_of_distance((unicon__kernel_kind)word) ? 2 : 1;
  if (kernel) s->points = least(s->points, e->most_points);
  s->p = s->points;
}

/* As unicon__source_cache decides. */
static double cache_bytes(const estimate *e, double bytes) {
  const double allowed = isinf(e->limit) ? 2e9 - e->held : e->limit - e->held;
  return bytes <= allowed / 2 ? bytes : 0;
}

static void plan_side(estimate *e, int number, bool often, bool metric) {
  const side_sizes *s = &e->side[number];
  const double p = s->p, w = e->workers;
  pass_by(e, s->n + w * 512 * s->d * 4);
  e->reads[number] += 1;
  if (!s->linear) {
    keep(e, (s->points * s->d * s->tables + s->points + s->points * p) * 4);
    pass_by(e, s->points * (s->points * 16 + s->d * 8 + (s->d + 1) * 4));
    e->small_flops += 2 * s->points * s->points * (s->d + s->points);
  }
  const double features = s->linear ? 0 : 2 * s->n * s->points * (s->d + p);
  const double cache = often || !s->linear ? cache_bytes(e, s->n * p * 4) : 0;
  keep(e, cache + p * 4);
  if (cache > 0) pass_by(e, w * 512 * room(s) * 4);
  e->reads[number] += cache > 0 ? 1 : 2;
  e->flops += cache > 0 ? features : 2 * features;
  if (!metric) return;
  const double groups = p <= 256 ? 8 : p <= 1024 ? 4 : 1; /* as unicon__stats_add */
  keep(e, p * p * 8);
  pass_by(e, w * (256 * 256 + 128 * room(s)) * 4 + (groups > 1 ? groups * p * p * 8 : 0) +
                 (cache > 0 ? 0 : least(s->n, groups * 1024) * p * 4));
  e->flops += s->n * p * p;
}

/* C in the metric and its decomposition. */
static void plan_update(estimate *e) {
  const double p_x = e->side[0].p, p_y = e->side[1].p, q = least(p_x, p_y), r = e->rank;
  const bool dense = q <= 768 || 3 * r > q;
  const double width = least(q, 4 * r + 64);
  keep(e, (p_x + p_y) * r * 8);
  pass_by(e, dense ? 8 * (2 * p_x * p_y + (p_x + p_y) * q + 5 * q * q)
                   : 8 * (width * (2 * p_x + p_y) + 5 * width * width));
  e->small_flops += p_x * p_y * (p_x + p_y) + (dense ? 12 * p_x * p_y * q : 8 * p_x * p_y * width);
}

/* One look at the loss, with C if `cross`. */
static void plan_pass(estimate *e, bool cross) {
  const side_sizes *x = &e->side[0], *y = &e->side[1];
  const double w = e->workers, r = e->rank, n_y = y->n;
  const double z = (x->n + n_y) * r * 4, tiles = w * 256 * 1024 * 4;
  const double slots = 1.5 * w + 1, rows = 256 * (x->p + y->p);
  const double statistics = (x->n + n_y) * 28 + slots * (least(n_y, 8192) * 8 + 256 * 16);
  const double group = least(ceil(x->n / 256), most(w, (1 << 22) / rows)); /* as pass.c */
  const double products =
      4 * (w * (256 * room(x) + 1024 * room(y) + 512 * 512) + slots * 256 * y->p + group * rows);
  pass_by(e, z + tiles + statistics + (cross ? products : 0) + (x->p + y->p) * r * 12);
  e->flops += 2 * (x->n * x->p + n_y * y->p) * r + 2 * x->n * n_y * r;
  e->sweeps += 1;
  if (!cross) return;
  e->flops += 2 * x->n * n_y * (r + y->p) + 2 * x->n * x->p * y->p;
  e->sweeps += 1;
  e->reads[0] += 1;
  e->reads[1] += ceil(x->n / 256);
}

/* Statistics: the maps, the features that are kept, the sums over rows and pairs. */
static void plan_prepared(estimate *e, bool kernel, bool often) {
  const side_sizes *x = &e->side[0], *y = &e->side[1];
  size_side(e, 0, kernel);
  size_side(e, 1, kernel);
  e->rank = (double)e->params.rank;
  for (int s = 0; s < 2; s++) {
    e->rank = least(e->rank, least(e->side[s].p, e->side[s].n));
    plan_side(e, s, often, e->params.power[s] > 0);
  }
  keep(e, x->p * y->p * 8);
  pass_by(e, (x->n + y->n) * 32 + least(x->n, 8192) * y->p * 4);
  e->flops += 2 * x->n * x->p * y->p + 2 * e->pairs * y->p;
  e->reads[0] += 1;
  e->reads[1] += 1;
}

/* Moments, whitenings, the closed form, spectral steps, refine. */
static void plan_solver(estimate *e) {
  const side_sizes *x = &e->side[0], *y = &e->side[1];
  const int64_t iterations = unicon__integer(e->options, UNICON__ITERATIONS);
  const int64_t epochs = unicon__integer(e->options, UNICON__REFINE);
  const double batch = (double)unicon__integer(e->options, UNICON__REFINE_BATCH);
  for (int s = 0; s < 2; s++) {
    const double p = e->side[s].p;
    if (e->params.power[s] == 0) continue;
    keep(e, 2 * p * p * 8); /* sigma and its factor */
    pass_by(e, 120 * p * 8);
    e->small_flops += p * p * p / 3;
  }
  keep(e, (iterations > 0 ? 3 : 2) * x->p * y->p * 8);
  plan_update(e);
  if (iterations > 0) plan_pass(e, true);
  for (int64_t k = 0; k < iterations; k++) {
    plan_update(e);
    plan_pass(e, k + 1 < iterations);
  }
  if (epochs == 0) return;
  const double sides = x->p + y->p, steps = (double)epochs * most(1, most(x->n, y->n) / batch);
  pass_by(e, 4 * (6 * sides * e->rank + x->p * x->p + y->p * y->p) +
                 8 * (x->p * x->p + y->p * y->p) + batch * 4 * (room(x) + room(y) + 4 * e->rank));
  e->flops +=
      steps * e->rank * (4 * batch * sides + 4 * (x->p * x->p + y->p * y->p) + 8 * batch * batch);
}

static bool looks_often(const estimate *e) {
  return e->params.iterations > 0 || e->params.refine.epochs > 0;
}

/* Everything a fit with these options does once. */
static void plan_once(estimate *e, bool kernel) {
  plan_prepared(e, kernel, looks_often(e));
  plan_solver(e);
}

/* Biases and ranks of the held-out rows: a tile for each worker, and what a rank 256 makes of the
 * rows and of two banks. */
static void plan_judge(estimate *e, double held) {
  const double bank = (double)unicon__integer(e->options, UNICON__BALANCE_BANK);
  const double banks = least(bank, e->side[0].n) + least(bank, e->side[1].n);
  const double rows = held * (e->side[0].n + e->side[1].n) + banks;
  keep(e, 4 * rows * (e->rank + 1));
  pass_by(e, 4 * (2 * rows * (e->rank + 1) + e->workers * (256 * 1024 + 128 * 1024)));
  e->flops += 4 * e->rank * (rows * bank + held * held * e->side[0].n * e->side[1].n);
}

/* A split of what is prepared: eigenvectors of its moments, rows in their coordinates, and about
 * ten settings, each a rough SVD. */
static void plan_split(estimate *e, double held) {
  const double q_x = least(e->side[0].p, 1024), q_y = least(e->side[1].p, 1024);
  keep(e, 4 * (e->side[0].p * q_x + e->side[1].p * q_y) + 8 * q_x * q_y + 8 * q_y * 350);
  keep(e, 4 * (held * e->side[0].n * q_x + held * e->side[1].n * q_y + 1024 * (q_x + q_y)));
  plan_judge(e, held);
  pass_by(e, 8 * (3 * most(q_x * q_x, q_y * q_y) + 2 * q_x * q_y));
  e->small_flops += 9 * (q_x * q_x * q_x + q_y * q_y * q_y) + 5 * 8 * q_x * q_y * 336;
}

/* The winner refined on every split: about 60 steps. */
static void plan_refine(estimate *e, double folds) {
  const side_sizes *x = &e->side[0], *y = &e->side[1];
  const double q_x = least(x->p, 1024), q_y = least(y->p, 1024), batch = least(1000, x->n / 2);
  const double sides = q_x + q_y;
  e->flops += folds * 60 * e->rank * (4 * batch * sides + 6 * batch * batch);
  /* training rows in coordinates, of all splits */
  keep(e, folds * least(1e9, 4 * (x->n * q_x + y->n * q_y)));
  pass_by(e,
          4 * 6 * sides * e->rank + batch * 4 * (room(x) + room(y) + (4 + e->workers) * e->rank));
}

/* Presets auto and best: kernels tried on every split of the rows that are prepared once; refine;
 * and a fit that goes on with them, or, for best, with more landmarks. */
static void plan_sweep(estimate *e) {
  const bool larger = e->params.goal == UNICON__GOAL_BEST;
  const bool given = !e->params.open.kernel, few = !e->params.open.landmarks;
  const bool kernel = unicon__word(e->options, UNICON__KERNEL) != UNICON__KERNEL_LINEAR;
  const int folds = unicon__select_folds((int64_t)e->side[1].n);
  const int kernels = given ? 1 : larger ? 6 : 2;
  const double start = e->held, held = folds > 1 ? 0.2 : 0.1;
  double before = start; /* auto: the first kernel stays beside the next */
  if (!few) e->most_points = larger ? UNICON__SELECT_LANDMARKS : UNICON__AUTO_LANDMARKS;
  for (int k = 0; k < kernels; k++) {
    e->held = larger ? start : before;
    plan_prepared(e, given ? kernel : k != 1, false);
    before = e->held;
    for (int f = 0; f < folds; f++) plan_split(e, held);
  }
  e->held = start;
  plan_prepared(e, !given || kernel, false);
  const double kept = e->held;
  for (int f = 0; f < folds; f++) plan_split(e, held);
  plan_refine(e, larger ? 6 * folds : folds); /* best: three kernels, twice as long */
  e->held = larger && !few ? start : kept;
  if (larger && !few) {
    e->most_points = UNICON__BEST_LANDMARKS;
    plan_prepared(e, !given || kernel, true);
  }
  plan_solver(e);
}

static bool chooses(const estimate *e) {
  return unicon__select_scope_of(&e->params, (int64_t)e->side[1].n) == UNICON__SELECT_ALL;
}

/* Preset fast on few rows: exponent and balance are chosen on every split, then the fit goes on. */
static void plan_scores(estimate *e, bool kernel) {
  const int folds = unicon__select_folds((int64_t)e->side[1].n);
  plan_prepared(e, kernel, false);
  const double kept = e->held;
  for (int f = 0; f < folds; f++) plan_split(e, 0.2);
  e->held = kept;
  plan_solver(e);
}

/* The banks of the model. */
static void plan_banks(estimate *e) {
  const double bank = (double)unicon__integer(e->options, UNICON__BALANCE_BANK);
  if (strcmp(unicon__text(e->options, UNICON__BALANCE), "off") == 0) return;
  for (int s = 0; s < 2; s++) {
    keep(e, 4 * e->rank * least(bank, e->side[s].n));
    pass_by(e, 4 * e->workers * 256 * room(&e->side[s]) + 24 * least(bank, e->side[s].n));
  }
}

static void advise(const estimate *e, char *out, size_t size) {
  const double mib = 1048576;
  const bool choice = chooses(e) && !unicon__given(e->options, UNICON__KERNEL);
  if (isinf(e->limit) || e->peak <= e->limit) {
    snprintf(out, size, "%s",
             isinf(e->limit) ? "no memory limit is set" : "the fit stays within max_mem");
    return;
  }
  snprintf(out, size, "max_mem is %.0f MiB, about %.0f MiB too little: %s", e->limit / mib,
           (e->peak - e->limit) / mib,
           choice ? "kernels that do not fit will be left out"
           : e->side[0].linear && e->side[1].linear
               ? "lower rank, use fewer threads, or reduce the width of the vectors"
               : "lower landmarks or features, use fewer threads, or kernel linear");
}

static unicon_status report(unicon_ctx *ctx, const estimate *e, double seconds,
                            unicon_result **out) {
  char advice[256];
  unicon_result *r = unicon__result_new(ctx);
  advise(e, advice, sizeof advice);
  unicon__result_integer(ctx, r, "memory", (int64_t)e->peak);
  unicon__result_integer(ctx, r, "reads_x", (int64_t)e->reads[0]);
  unicon__result_integer(ctx, r, "reads_y", (int64_t)e->reads[1]);
  unicon__result_integer(ctx, r, "plane_sweeps", (int64_t)e->sweeps);
  unicon__result_real(ctx, r, "flops", e->flops + e->small_flops);
  unicon__result_real(ctx, r, "seconds", seconds);
  unicon__result_text(ctx, r, "advice", advice);
  return unicon__result_done(r, out);
}

static unicon_status plan(unicon_ctx *ctx, const unicon_data *given, const unicon_options *options,
                          unicon_result **out) {
  unicon_data own;
  const unicon_data *data = &own;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, given, &own));
  const uint64_t limit = unicon__budget_limit(ctx->arena.budget);
  estimate e = {.options = options,
                .workers = unicon__workers(ctx),
                .most_points = INFINITY,
                .limit = limit == UINT64_MAX ? INFINITY : (double)limit};
  unicon__params_from(options, (const int64_t[2]){data->x->count, data->y->count}, &e.params);
  e.side[0] = (side_sizes){.n = (double)data->x->count, .d = (double)data->x->width};
  e.side[1] = (side_sizes){.n = (double)data->y->count, .d = (double)data->y->width};
  e.pairs = data->pairs ? (double)data->pairs->positive.count : e.side[0].n;
  keep(&e, (double)unicon__budget_used(ctx->arena.budget));
  const bool sweep = chooses(&e);
  const bool kernel = unicon__word(options, UNICON__KERNEL) != UNICON__KERNEL_LINEAR;
  if (sweep)
    plan_sweep(&e);
  else if (unicon__select_scope_of(&e.params, (int64_t)e.side[1].n) == UNICON__SELECT_SCORES)
    plan_scores(&e, kernel);
  else
    plan_once(&e, kernel);
  plan_banks(&e);
  double single = 1e9, wide = 1e9;
  UNICON_TRY(unicon__product_rate(ctx, &single, &wide));
  /* Factorisations run at about a quarter of the rate of products. */
  double seconds = e.flops / (0.8 * single) + e.small_flops / (0.25 * wide);
  if (sweep && unicon__word(options, UNICON__BUDGET) != 0)
    seconds = least(seconds, unicon__number(options, UNICON__BUDGET));
  return report(ctx, &e, seconds, out);
}

unicon_status unicon_plan(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                          unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, plan(ctx, data, options, out));
}
