/* SPDX-License-Identifier: Apache-2.0 */
#include "fit/cost.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "fit/fit.h"
#include "solve/stats_rows.h"

static void keep(unicon__cost *e, double bytes) {
  e->held += bytes;
  e->peak = e->held > e->peak ? e->held : e->peak;
}

/* A stage that holds `bytes` on top and gives them back. */
static void pass_by(unicon__cost *e, double bytes) {
  const double now = e->held + bytes;
  e->peak = now > e->peak ? now : e->peak;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

static double most(double a, double b) {
  return a > b ? a : b;
}

static double room(const unicon__cost_side *s) {
  return s->linear ? s->d : s->p + s->d + s->points + 1;
}

static bool whitens(const unicon__cost *e, int s) {
  return e->params.power[s] > 0 || e->params.open.power;
}

/* Features of a side: linear, or landmarks (all rows up to 4000), or directions. */
static void size_side(unicon__cost *e, int number, bool kernel) {
  unicon__cost_side *s = &e->side[number];
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
static double cache_bytes(const unicon__cost *e, double bytes) {
  const double allowed = isinf(e->limit) ? 2e9 - e->held : e->limit - e->held;
  return bytes <= allowed / 2 ? bytes : 0;
}

static double feature_work(const unicon__cost_side *s) {
  return s->linear ? 0 : 2 * s->n * s->points * (s->d + s->p);
}

/* Landmarks or directions, and the factor. */
static void plan_map(unicon__cost *e, int number) {
  const unicon__cost_side *s = &e->side[number];
  if (s->linear) return;
  keep(e, (s->points * s->d * s->tables + s->points + s->points * s->p) * 4);
  pass_by(e, s->points * (s->points * 16 + s->d * 8 + (s->d + 1) * 4));
  e->work[UNICON__COST_ALGEBRA] += 2 * s->points * s->points * (s->d + s->points);
}

/* The map of a side and its features, where they are kept. */
static void plan_side(unicon__cost *e, int number, bool often) {
  const unicon__cost_side *s = &e->side[number];
  const double p = s->p, w = e->workers;
  plan_map(e, number);
  const double features = feature_work(s);
  const double cache = often || !s->linear ? cache_bytes(e, s->n * p * 4) : 0;
  keep(e, cache + p * 4);
  if (cache > 0) pass_by(e, w * 512 * room(s) * 4);
  e->reads[number] += cache > 0;
  e->work[UNICON__COST_SUMS] += cache > 0 ? features : 2 * features;
}

/* Rows that are looked at before anything is made of them. */
static void plan_look(unicon__cost *e) {
  for (int s = 0; s < 2; s++) {
    keep(e, e->side[s].n / 128 * 9);
    if (e->one_sweep) continue;
    pass_by(e, e->workers * 512 * e->side[s].d * 4);
    e->reads[s] += 1;
  }
}

/* Sums over rows and pairs, as unicon__stats_add makes them. `wide`: in float64. */
static void plan_sums(unicon__cost *e, bool wide) {
  const unicon__cost_side *side = e->side;
  const double p_x = side[0].p, p_y = side[1].p, w = e->workers, size = wide ? 8 : 4;
  const double ways = e->classes > 0 ? 0 : e->ways, flops = wide ? 2 : 1;
  double psi = 0, own = w * (256 * 256 * 4 + (wide ? 2 * 1024 * 256 * 8 : 0));
  for (int s = 0; s < 2; s++) {
    const double p = side[s].p, wider = s == 0 && p_y > p ? p_y : p;
    const bool gram = wide || whitens(e, s);
    const double group = p <= 256 ? 1024 : 2048;
    const double groups = least(wider <= 256    ? 8
                                : wider <= 1024 ? 4
                                                : 1,
                                ceil(most(side[s].n, 1) / group));
    const double rows = least(side[s].n, groups * group);
    psi = most(psi, rows * p * 4);
    keep(e, (gram ? p * p * 8 : 0) + p * 40);
    if (groups > 1) own += groups * 8 * ((gram ? p * p : 0) + (s == 0 ? ways * p * p_y : 0));
    if (s == 0) own += ways * rows * p_y * size;
    own = most(own, 0) + rows * 16 + w * 128 * room(&side[s]) * 4;
    e->work[UNICON__COST_SUMS] += gram ? flops * side[s].n * p * p * 1.25 : 0;
    e->reads[s] += 1;
  }
  keep(e, ways * p_x * p_y * 8 + e->classes * (p_x + p_y + 2) * 8);
  pass_by(e, psi + own + w * 256 * (room(&side[1]) * 4 + 24));
  e->work[UNICON__COST_SUMS] += ways * flops * 2 * side[0].n * p_x * p_y + 2 * e->pairs * p_y;
  if (e->classes > 0) pass_by(e, e->classes * (p_x + p_y) * 8); /* finish */
}

/* C in the metric and its decomposition. */
static void plan_update(unicon__cost *e) {
  const double p_x = e->side[0].p, p_y = e->side[1].p, q = least(p_x, p_y), r = e->rank;
  const bool dense = q <= 768 || 3 * r > q;
  const double width = least(q, 4 * r + 64);
  keep(e, (p_x + p_y) * r * 8);
  pass_by(e, dense ? 8 * (2 * p_x * p_y + (p_x + p_y) * q + 5 * q * q)
                   : 8 * (width * (2 * p_x + p_y) + 5 * width * width));
  e->work[UNICON__COST_ALGEBRA] +=
      p_x * p_y * (p_x + p_y) + (dense ? 12 * p_x * p_y * q : 8 * p_x * p_y * width);
}

/* Batches that the rows of x are cut into. */
static double batches_of(const unicon__cost *e) {
  const double size = (double)e->params.cut.size;
  return size > 0 && size < e->side[0].n ? ceil(e->side[0].n / size) : 1;
}

static bool keeps_pairs(const unicon__cost *e) {
  const int kind = e->params.loss.kind;
  return kind == UNICON__LOSS_TRIPLET || kind == UNICON__LOSS_CUSTOM ||
         (kind == UNICON__LOSS_GENERAL && e->params.loss.psi != UNICON__PSI_EXP);
}

/* One look at the loss, with C if `cross`. */
static void plan_pass(unicon__cost *e, bool cross) {
  const unicon__cost_side *x = &e->side[0], *y = &e->side[1];
  const double w = e->workers, r = e->rank, n_y = y->n;
  const double in_batch = n_y / batches_of(e); /* rows of y that a row of x meets */
  const double both = (x->n + n_y) / batches_of(e);
  const double z = both * r * 4, tiles = w * 256 * 1024 * 4;
  const double slots = 1.5 * w + 1, rows = 256 * (x->p + y->p);
  const double statistics = both * 28 + slots * (least(in_batch, 8192) * 8 + 256 * 16);
  const double group = least(ceil(x->n / 256), most(w, (1 << 22) / rows)); /* as pass.c */
  const double products =
      4 * (w * (256 * room(x) + 1024 * room(y) + 512 * 512) + slots * 256 * y->p + group * rows);
  /* losses without an order of entries keep numbers for each pair */
  const double pairs = keeps_pairs(e) ? e->listed / batches_of(e) : 0;
  pass_by(e, z + tiles + statistics + (cross ? products : 0) + (x->p + y->p) * r * 12 +
                 pairs * (144 + 16 * w));
  e->work[UNICON__COST_PLANE] += 10 * pairs * in_batch;
  e->work[UNICON__COST_PLANE] += 2 * (x->n * x->p + n_y * y->p) * r + 2 * x->n * in_batch * r;
  e->sweeps += 1;
  if (!cross) return;
  e->work[UNICON__COST_PLANE] += 2 * x->n * in_batch * (r + y->p) + 2 * x->n * x->p * y->p;
  e->sweeps += 1;
  e->reads[0] += 1;
  e->reads[1] += ceil(x->n / batches_of(e) / 256);
}

/* Statistics: the maps, the features that are kept, the sums over rows and pairs. */
static void plan_prepared(unicon__cost *e, bool kernel, bool often) {
  size_side(e, 0, kernel);
  size_side(e, 1, kernel);
  e->rank = (double)e->params.rank;
  for (int s = 0; s < 2; s++) {
    e->rank = least(e->rank, least(e->side[s].p, e->side[s].n));
    plan_side(e, s, often);
  }
  plan_sums(e, false);
}

/* Moments, whitenings, the closed form, spectral steps, refine. */
static void plan_solver(unicon__cost *e) {
  const unicon__cost_side *x = &e->side[0], *y = &e->side[1];
  const int64_t iterations = e->params.iterations, epochs = e->params.refine.epochs;
  const double batch = (double)e->params.refine.batch;
  for (int s = 0; s < 2; s++) {
    const double p = e->side[s].p;
    if (!whitens(e, s)) continue;
    keep(e, 2 * p * p * 8); /* sigma and its factor */
    pass_by(e, 120 * p * 8);
    e->work[UNICON__COST_ALGEBRA] += p * p * p / 3;
  }
  keep(e, (iterations > 0 ? 3 : 2) * x->p * y->p * 8);
  plan_update(e);
  if (batches_of(e) > 1) keep(e, 40 * (x->n + y->n)); /* rows and pairs of the batches */
  if (iterations > 0) plan_pass(e, true);
  for (int64_t k = 0; k < iterations; k++) {
    plan_update(e);
    plan_pass(e, k + 1 < iterations);
  }
  if (epochs == 0) return;
  const double sides = x->p + y->p, steps = (double)epochs * most(1, most(x->n, y->n) / batch);
  pass_by(e, 4 * (8 * sides * e->rank + x->p * x->p + y->p * y->p) +
                 8 * (x->p * x->p + y->p * y->p) + 8 * batch * batch +
                 batch * 4 * (room(x) + room(y) + 4 * e->rank));
  e->work[UNICON__COST_REFINE] +=
      steps * e->rank * (4 * batch * sides + 4 * (x->p * x->p + y->p * y->p) + 8 * batch * batch);
}

static bool looks_often(const unicon__cost *e) {
  return e->params.iterations > 0 || e->params.refine.epochs > 0;
}

/* Everything a fit with these options does once. Batches with a kernel are fits of their own, whose
 * models are kept side by side. */
static void plan_once(unicon__cost *e, bool kernel) {
  const double n[2] = {e->side[0].n, e->side[1].n}, parts = e->parts;
  for (int s = 0; s < 2 && parts > 1; s++) e->side[s].n = ceil(n[s] / parts);
  plan_prepared(e, kernel, looks_often(e));
  plan_solver(e);
  if (parts == 1) return;
  for (int k = 0; k < UNICON__COST_PARTS; k++) e->work[k] *= parts;
  for (int s = 0; s < 2; s++) {
    const unicon__cost_side *side = &e->side[s];
    /* of the others: their landmarks and weights, pairs and rows */
    keep(e, (parts - 1) * 4 * (side->points * (side->d * side->tables + e->rank + 2) + side->d));
    keep(e, n[s] * 32);
    e->side[s].n = n[s];
  }
  e->rank *= parts;
}

/* Biases and ranks of the held-out rows: a tile for each worker, and what a rank 256 makes of the
 * rows and of two banks. */
static void plan_judge(unicon__cost *e, double held) {
  const double bank = (double)unicon__integer(e->options, UNICON__BALANCE_BANK);
  const double banks = least(bank, e->side[0].n) + least(bank, e->side[1].n);
  const double rows = held * (e->side[0].n + e->side[1].n) + banks;
  const double least_p = least(e->side[0].p, e->side[1].p); /* twice the rank is tried as well */
  const double rank =
      e->params.open.rank && unicon__cost_chooses(e) ? least(2 * e->rank, least_p) : e->rank;
  keep(e, 4 * rows * (rank + 1));
  pass_by(e, 4 * (2 * rows * (rank + 1) + e->workers * (256 * 1024 + 128 * 1024)));
  e->work[UNICON__COST_SUMS] +=
      4 * e->rank * (rows * bank + held * held * e->side[0].n * e->side[1].n);
}

/* Moments of the training rows: the sums of the held-out ones, which are dropped, and what is left. */
static void plan_part(unicon__cost *e, double held) {
  unicon__cost part = *e;
  double q[2];
  for (int s = 0; s < 2; s++) {
    q[s] = part.side[s].p = least(e->side[s].p, 1024);
    part.side[s].n = ceil(held * e->side[s].n);
  }
  plan_sums(&part, false);
  const double sums = part.held - e->held;
  e->peak = part.peak;
  keep(e, 8 * (q[0] * q[0] + q[1] * q[1] + q[0] * q[1]));
  pass_by(e, sums + e->classes * (q[0] + q[1]) * 8);
}

/* A split of what is prepared: eigenvectors of its moments, rows in their coordinates, and about
 * ten settings, each a rough SVD. */
static void plan_split(unicon__cost *e, double held) {
  const double q_x = least(e->side[0].p, 1024), q_y = least(e->side[1].p, 1024);
  plan_part(e, held);
  keep(e, 40 * (e->side[0].n + e->side[1].n)); /* which rows, and the pairs among them */
  keep(e, 4 * (e->side[0].p * q_x + e->side[1].p * q_y) + 8 * q_x * q_y + 8 * q_y * 350);
  keep(e, 4 * (held * e->side[0].n * q_x + held * e->side[1].n * q_y + 1024 * (q_x + q_y)));
  plan_judge(e, held);
  pass_by(e, 8 * (3 * most(q_x * q_x, q_y * q_y) + 2 * q_x * q_y));
  e->work[UNICON__COST_ALGEBRA] +=
      9 * (q_x * q_x * q_x + q_y * q_y * q_y) + 5 * 8 * q_x * q_y * 336;
}

/* The winner refined on every split: about 60 steps. */
static void plan_refine(unicon__cost *e, double folds) {
  const unicon__cost_side *x = &e->side[0], *y = &e->side[1];
  const double q_x = least(x->p, 1024), q_y = least(y->p, 1024), batch = least(1000, x->n / 2);
  const double sides = q_x + q_y;
  e->work[UNICON__COST_REFINE] += folds * 60 * e->rank * (4 * batch * sides + 6 * batch * batch);
  /* training rows in coordinates, of all splits */
  keep(e, folds * least(1e9, 4 * (x->n * q_x + y->n * q_y)));
  pass_by(e,
          4 * 6 * sides * e->rank + batch * 4 * (room(x) + room(y) + (4 + e->workers) * e->rank));
}

/* Presets auto and best: kernels tried on every split of the rows that are prepared once; refine;
 * and a fit that goes on with them, or, for best, with more landmarks. */
static void plan_sweep(unicon__cost *e) {
  const bool larger = e->params.goal == UNICON__GOAL_BEST;
  const bool given = !e->params.open.kernel, few = !e->params.open.landmarks;
  const bool kernel = unicon__word(e->options, UNICON__KERNEL) != UNICON__KERNEL_LINEAR;
  const int folds = unicon__select_folds((int64_t)e->side[1].n);
  const int kernels = given ? 1 : larger ? 6 : 2;
  const double start = e->held, held = folds > 1 ? 0.2 : 0.1;
  double before = start; /* auto: the first kernel stays beside the next */
  if (!few && larger) e->most_points = UNICON__SELECT_LANDMARKS; /* else by the number of rows */
  for (int k = 0; k < kernels; k++) {
    e->held = larger ? start : before;
    plan_prepared(e, given ? kernel : k != 1, false);
    before = e->held;
    for (int f = 0; f < folds; f++) plan_split(e, held);
  }
  e->held = start;
  plan_prepared(e, !given || kernel, true);
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

/* Preset fast on few rows: exponent and balance are chosen on every split, then the fit goes on. */
static void plan_scores(unicon__cost *e, bool kernel) {
  const int folds = unicon__select_folds((int64_t)e->side[1].n);
  plan_prepared(e, kernel, false);
  const double kept = e->held;
  for (int f = 0; f < folds; f++) plan_split(e, 0.2);
  e->held = kept;
  plan_solver(e);
}

/* The banks of the model. */
static void plan_banks(unicon__cost *e) {
  const double bank = (double)unicon__integer(e->options, UNICON__BALANCE_BANK);
  if (strcmp(unicon__text(e->options, UNICON__BALANCE), "off") == 0) return;
  for (int s = 0; s < 2; s++) {
    keep(e, 4 * e->rank * least(bank, e->side[s].n));
    pass_by(e, 4 * e->workers * 256 * room(&e->side[s]) + 24 * least(bank, e->side[s].n));
  }
}

/* ---- the interface ------------------------------------------------------------------------ */

/* Where sums over the rows of a part are needed. */
static void take_pairs(const unicon_data *data, unicon__cost *e) {
  const unicon_pairs *pairs = data->pairs;
  const bool lists = pairs && (pairs->only_listed || pairs->ignore.count > 0 || pairs->self_x);
  e->pairs = e->listed = pairs ? (double)pairs->positive.count : e->side[0].n;
  e->lists = lists;
  e->own_pairs = !pairs;
  e->ways = !pairs || lists || (!pairs->class_x && unicon__pairs_ratio(pairs) >= 0) ? 1 : 2;
  if (pairs && pairs->class_x && !lists) {
    e->classes = (double)pairs->classes;
    e->pairs = 0; /* no list of them is walked */
  }
}

void unicon__cost_open(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                       unicon__cost *out) {
  const uint64_t limit = unicon__budget_limit(ctx->arena.budget);
  const int64_t rows[2] = {data->x->count, data->y->count};
  *out = (unicon__cost){.options = options,
                        .workers = unicon__workers(ctx),
                        .most_points = INFINITY,
                        .parts = 1,
                        .limit = limit == UINT64_MAX ? INFINITY : (double)limit};
  unicon__params_from(options, rows, &out->params);
  out->side[0] = (unicon__cost_side){.n = (double)rows[0], .d = (double)data->x->width};
  out->side[1] = (unicon__cost_side){.n = (double)rows[1], .d = (double)data->y->width};
  take_pairs(data, out);
  out->one_sweep = unicon__fit_one_sweep(options, &out->params, data);
  keep(out, (double)unicon__budget_used(ctx->arena.budget));
}

bool unicon__cost_chooses(const unicon__cost *e) {
  return unicon__select_scope_of(&e->params, (int64_t)e->side[1].n) == UNICON__SELECT_ALL;
}

void unicon__cost_fit(unicon__cost *e) {
  const bool kernel = unicon__word(e->options, UNICON__KERNEL) != UNICON__KERNEL_LINEAR;
  if (unicon__params_fused(&e->params, (int64_t)e->side[0].n)) e->parts = batches_of(e);
  if (e->own_pairs) keep(e, 12 * (e->side[0].n + e->side[1].n));
  plan_look(e);
  if (unicon__cost_chooses(e))
    plan_sweep(e);
  else if (unicon__select_scope_of(&e->params, (int64_t)e->side[1].n) == UNICON__SELECT_SCORES)
    plan_scores(e, kernel);
  else
    plan_once(e, kernel);
  plan_banks(e);
}

void unicon__cost_stored(unicon__cost *e, const double sample[2]) {
  const double share = 0.25; /* of the sample that is held out (fit.c) */
  e->rank = (double)e->params.rank;
  for (int s = 0; s < 2; s++) {
    e->rank = least(e->rank, least(e->side[s].p, e->side[s].n));
    keep(e, sample[s] * (e->side[s].d * 4 + 48)); /* rows in float32, pairs */
    e->side[s].n = sample[s];
  }
  if (sample[0] > 0 && sample[1] > 0 &&
      unicon__select_scope_of(&e->params, (int64_t)e->side[1].n) != UNICON__SELECT_NOTHING)
    for (int f = 0; f < unicon__select_folds((int64_t)e->side[1].n); f++) {
      unicon__cost held = *e;
      for (int s = 0; s < 2; s++) held.side[s].n = share * sample[s];
      plan_sums(&held, true);
      plan_split(&held, 1);
      for (int k = 0; k < UNICON__COST_PARTS; k++) e->work[k] = held.work[k];
      e->held = held.held;
      e->peak = held.peak;
    }
  plan_solver(e);
  if (sample[0] > 0) plan_banks(e);
}

void unicon__cost_sums(unicon__cost *e, bool ledger, double sample) {
  const double start = e->held;
  const bool kernel = unicon__word(e->options, UNICON__KERNEL) != UNICON__KERNEL_LINEAR;
  for (int s = 0; s < 2; s++) {
    /* labels are cut into as many blocks as the other side has rows for */
    const double wide = e->classes > 0 ? ceil(e->side[s].n / e->side[1 - s].n) : 0;
    const double block = least(e->side[s].n, most(1 << 16, wide));
    size_side(e, s, kernel);
    plan_map(e, s);
    e->work[UNICON__COST_SUMS] += feature_work(&e->side[s]);
    e->held += (ledger ? 16 : 0) * e->side[s].n + block * 200;
    e->held += 3 * sample / 2 * e->side[s].d * 2; /* a sample, that of a block, and both */
  }
  if (e->own_pairs) keep(e, 12 * (e->side[0].n + e->side[1].n));
  if (e->ways == 2) keep(e, 32 * e->pairs); /* pairs that connect all rows are one block */
  plan_sums(e, true);
  if (e->classes == 0 && e->ways == 1) keep(e, 3 * e->side[0].p * e->side[1].p * 8); /* both ways */
  pass_by(e, e->held - start); /* a set is summed by itself and then added */
}
