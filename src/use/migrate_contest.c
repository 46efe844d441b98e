/* SPDX-License-Identifier: Apache-2.0 */
/* Which method, kernel and ridge carries vectors over best: every setting is judged as it would be
 * deployed, on items that its map has not seen. */
#include <math.h>
#include <string.h>

#include "use/migrate.h"

enum { COARSE_PAIRS = 1200, WIDTH_PAIRS = 1000, KERNELS = 4 };

/* Ridges as shares of the largest eigenvalue: half decades from 1e-7 to 1. */
enum { RIDGES = 15 };

/* What is as good as the best: fifteen thousandths less. A ridge is made no smaller than LEANEST
 * for it: the map must keep its digits in float32. */
static const double NEARLY = 0.985, LEANEST = 1e-6;

/* Largest ridge of a kernel map for a rewrite. Where pairs say little, a fold of some hundred items
 * likes any amount of smoothing, and an index of thousands none of it. */
static const double MOST_KERNEL = 1e-3;

static double ridge_at(int step) {
  return pow(10, -7 + 0.5 * step);
}

/* The step nearest to a ridge. */
static int step_of(double ridge) {
  const int step = (int)lround((log10(ridge) + 7) * 2);
  return step < 0 ? 0 : step >= RIDGES ? RIDGES - 1 : step;
}

/* ---- judging ------------------------------------------------------------------------------ */

/* What is being tried: some of the pairs as a migration of its own. */
typedef struct ring {
  const unicon__move *move;
  unicon__regress_data data;
  const unicon__panel *panel; /* of a rewrite */
  const float *unseen;        /* panel items that no map has seen, by the old model; NULL: they are
                                 the pairs, and are left out by folds */
  const unicon__held *held;   /* of a bridge */
  unicon__contest *contest;   /* keeps the trials, or NULL */
} ring;

/* Items as maps that have not seen them predict them, asked by new queries. */
static unicon_status judge_rewrite(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                                   const unicon__trial *trial, double *score) {
  const unicon__panel *panel = g->panel;
  const int64_t d = g->data.d, e = g->data.e;
  unicon__figures figures;
  unicon__regression map;
  double *each;
  float *left;
  UNICON_NEW(ctx, each, panel->queries * UNICON__FIGURES);
  UNICON_NEW(ctx, left, panel->items * e);
  UNICON_TRY(unicon__regress_fit(ctx, regress, trial->recipe.ridge, g->unseen ? NULL : left,
                                 g->unseen ? &map : NULL));
  if (g->unseen)
    UNICON_TRY(
        unicon__regress_apply(ctx, &trial->recipe, &map, d, e, g->unseen, panel->items, left));
  UNICON_TRY(unicon__panel_rows(ctx, panel, g->move->query[UNICON__NEW], left, e, each, &figures));
  *score = figures.value[unicon__panel_leads(panel)];
  return UNICON_OK;
}

/* New queries through the map, among held-out items of the old model. */
static unicon_status judge_bridge(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                                  const unicon__trial *trial, double *score) {
  const unicon__jury *jury = &g->held->jury;
  const int64_t d = g->data.d, e = g->data.e;
  unicon__figures figures;
  unicon__regression map;
  double *each;
  float *query;
  UNICON_NEW(ctx, each, jury->queries * UNICON__FIGURES);
  UNICON_NEW(ctx, query, jury->queries * e);
  UNICON_TRY(unicon__regress_fit(ctx, regress, trial->recipe.ridge, NULL, &map));
  UNICON_TRY(unicon__regress_apply(ctx, &trial->recipe, &map, d, e, g->held->query[UNICON__NEW],
                                   jury->queries, query));
  UNICON_TRY(unicon__jury_rows(ctx, jury, query, g->held->item[UNICON__OLD], e, each));
  unicon__figures_of(each, jury->queries, &figures);
  *score = figures.value[UNICON__OVERLAP];
  return UNICON_OK;
}

/* Fits with the trial's ridge and judges; nothing stays in the frame. */
static unicon_status attempt(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                             unicon__trial *trial) {
  unicon__block *frame = unicon__frame_open(ctx);
  if (g->held)
    UNICON_TRY(judge_bridge(ctx, g, regress, trial, &trial->score));
  else
    UNICON_TRY(judge_rewrite(ctx, g, regress, trial, &trial->score));
  unicon__frame_close(ctx, frame);
  trial->pairs = g->data.n;
  if (g->contest && g->contest->count < UNICON__TRIALS)
    g->contest->list[g->contest->count++] = *trial;
  return UNICON_OK;
}

/* Walks the ridges from a start, first to smaller ones: scores have one top, broad enough for half
 * decades. */
static unicon_status climb(unicon_ctx *ctx, const ring *g, unicon__regress *regress, int start,
                           unicon__trial *best) {
  const bool kernel = best->way == UNICON__REWRITE && best->recipe.method == UNICON__BY_KERNEL;
  const int end = kernel ? step_of(MOST_KERNEL) + 1 : RIDGES;
  if (start >= end) start = end - 1;
  best->recipe.ridge = ridge_at(start);
  UNICON_TRY(attempt(ctx, g, regress, best));
  bool fell = false;
  for (int way = -1; way <= 1 && !fell; way += 2)
    for (int step = start + way; step >= 0 && step < end; step += way) {
      unicon__trial next = *best;
      next.recipe.ridge = ridge_at(step);
      UNICON_TRY(attempt(ctx, g, regress, &next));
      if (!(next.score > best->score)) break;
      *best = next;
      fell = way < 0; /* it went up on this side: the other need not be tried */
    }
  return UNICON_OK;
}

/* One method and kernel with its best ridge. */
static unicon_status run_method(unicon_ctx *ctx, const ring *g, unicon__recipe recipe, int start,
                                unicon__trial *best) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__regress *regress;
  best->recipe = recipe;
  UNICON_TRY(unicon__regress_open(ctx, &g->data, &recipe, &regress));
  if (recipe.method == UNICON__BY_PROCRUSTES)
    UNICON_TRY(attempt(ctx, g, regress, best));
  else
    UNICON_TRY(climb(ctx, g, regress, start, best));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- kernels ------------------------------------------------------------------------------ */

/* Mean distance of neighbours in the random order: the scale of the rbf kernel. */
static double usual_distance(const float *x, int64_t n, int64_t d) {
  const int64_t count = n < WIDTH_PAIRS ? n : WIDTH_PAIRS;
  double sum = 0;
  for (int64_t i = 0; i + 1 < count; i++) {
    double square = 0;
    for (int64_t k = 0; k < d; k++) {
      const double gap = (double)x[i * d + k] - (double)x[(i + 1) * d + k];
      square += gap * gap;
    }
    sum += sqrt(square);
  }
  return fmax(sum / (double)(count - 1), 1e-3);
}

static void kernels_of(const unicon__move *move, unicon__kernel list[KERNELS]) {
  static const double widths[KERNELS - 1] = {0.55, 0.8, 1.15};
  const double scale = usual_distance(move->row[UNICON__OLD], move->n, move->d[UNICON__OLD]);
  list[0] = (unicon__kernel){UNICON__KERNEL_ARCCOS1, 1, 1};
  for (int k = 1; k < KERNELS; k++)
    list[k] = (unicon__kernel){UNICON__KERNEL_RBF, widths[k - 1] * scale, 1};
}

/* All pairs. */
static ring whole_ring(const unicon__move *move, unicon__contest *contest) {
  return (ring){.move = move,
                .data = unicon__move_data(move, UNICON__REWRITE, 0, move->n, move->items),
                .panel = &move->panel,
                .contest = contest};
}

/* A panel of the first items alone, in so many folds. */
static unicon_status small_panel(unicon_ctx *ctx, const unicon__move *move, int64_t items,
                                 int64_t folds, unicon__panel *out) {
  *out = (unicon__panel){.items = items,
                         .folds = folds,
                         .queries = move->self ? items : move->queries,
                         .self = move->self};
  return unicon__panel_open(ctx, move->query[UNICON__NEW], move->row[UNICON__NEW],
                            move->d[UNICON__NEW], out);
}

/* Kernels side by side on a part of the pairs; the best with its ridge. Equal ones: the first,
 * which has no width that could be wrong elsewhere. */
static unicon_status coarse(unicon_ctx *ctx, const unicon__move *move, unicon__contest *contest,
                            unicon__trial *best) {
  const int64_t pairs = COARSE_PAIRS;
  unicon__kernel kernel[KERNELS];
  unicon__panel panel;
  unicon__block *frame = unicon__frame_open(ctx);
  ring g = whole_ring(move, contest);
  if (move->n > pairs + pairs / 4 && move->items >= pairs) {
    UNICON_TRY(small_panel(ctx, move, pairs, unicon__move_folds(pairs), &panel));
    g.panel = &panel;
    g.data = unicon__move_data(move, UNICON__REWRITE, 0, pairs, pairs);
  }
  kernels_of(move, kernel);
  const int stage = unicon__stage_begin(ctx, NULL, 0.3);
  for (int k = 0; k < KERNELS; k++) {
    UNICON_TRY(unicon__stage_step(ctx, k, KERNELS));
    unicon__trial trial = {.way = UNICON__REWRITE};
    const unicon__recipe recipe = {UNICON__BY_KERNEL, kernel[k], 0};
    UNICON_TRY(run_method(ctx, &g, recipe, step_of(k == 0 ? 1e-4 : best->recipe.ridge), &trial));
    if (k == 0 || trial.score > best->score + 0.003) *best = trial;
  }
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- the contest -------------------------------------------------------------------------- */

/* Of nearly equal ones a kernel map is better in an index, for the reasons of lean(). */
static double prefer(const unicon__trial *trial) {
  const bool kernel = trial->way == UNICON__REWRITE && trial->recipe.method == UNICON__BY_KERNEL;
  return trial->score / (kernel ? NEARLY : 1);
}

static void keep_better(unicon__contest *contest, const unicon__trial *trial) {
  unicon__trial *best = &contest->best[trial->way];
  if (best->pairs == 0 || prefer(trial) > prefer(best)) *best = *trial;
}

static unicon_status run_linear(unicon_ctx *ctx, const ring *g, unicon__way way) {
  static const unicon__method methods[] = {UNICON__BY_PROCRUSTES, UNICON__BY_RIDGE};
  for (int m = 0; m < 2; m++) {
    const unicon__recipe recipe = {methods[m], {UNICON__KERNEL_LINEAR, 1, 1}, 0};
    unicon__trial trial = {.way = way};
    UNICON_TRY(run_method(ctx, g, recipe, step_of(1e-2), &trial));
    keep_better(g->contest, &trial);
  }
  return UNICON_OK;
}

/* The smallest ridge that scores nearly as well as the best one. An index is larger than a fold and
 * holds the pairs themselves, and both want smaller ridges than folds do, by a decade or more: a
 * ridge that is too large loses up to a tenth of what they find, one that is too small little. */
static unicon_status lean(unicon_ctx *ctx, const ring *g, unicon__trial *best) {
  const double least = NEARLY * best->score;
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__regress *regress;
  UNICON_TRY(unicon__regress_open(ctx, &g->data, &best->recipe, &regress));
  for (int step = step_of(best->recipe.ridge) - 1; step >= step_of(LEANEST); step--) {
    unicon__trial next = *best;
    next.recipe.ridge = ridge_at(step);
    UNICON_TRY(attempt(ctx, g, regress, &next));
    if (!(next.score >= least)) break;
    *best = next;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__contest_rewrite(unicon_ctx *ctx, const unicon__move *move,
                                      unicon__contest *out) {
  const ring whole = whole_ring(move, out);
  unicon__trial trial;
  UNICON_TRY(coarse(ctx, move, out, &trial));
  UNICON_TRY(run_linear(ctx, &whole, UNICON__REWRITE));
  if (trial.pairs < move->n) {
    /* The largest eigenvalue grows with the pairs, the noise of a vector does not. */
    const double ridge = trial.recipe.ridge * (double)trial.pairs / (double)move->n;
    UNICON_TRY(run_method(ctx, &whole, trial.recipe, step_of(ridge), &trial));
  }
  keep_better(out, &trial);
  unicon__trial *best = &out->best[UNICON__REWRITE];
  return best->recipe.method == UNICON__BY_KERNEL ? lean(ctx, &whole, best) : UNICON_OK;
}

unicon_status unicon__contest_bridge(unicon_ctx *ctx, const unicon__move *move,
                                     const unicon__held *held, unicon__contest *out) {
  const ring g = {.move = move,
                  .data = unicon__move_data(move, UNICON__BRIDGE, 0, held->first, held->first),
                  .held = held,
                  .contest = out};
  const unicon__recipe recipe = {UNICON__BY_KERNEL, {UNICON__KERNEL_ARCCOS1, 1, 1}, 0};
  unicon__trial trial = {.way = UNICON__BRIDGE};
  UNICON_TRY(run_linear(ctx, &g, UNICON__BRIDGE));
  UNICON_TRY(run_method(ctx, &g, recipe, step_of(1e-4), &trial));
  keep_better(out, &trial);
  return UNICON_OK;
}

unicon_status unicon__contest_learn(unicon_ctx *ctx, const unicon__move *move,
                                    const unicon__trial *trial, int64_t pairs, int64_t folds,
                                    double *score) {
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t items = unicon__fold_first(move->items, move->folds, folds);
  unicon__panel panel;
  unicon__trial best = {.way = UNICON__REWRITE};
  const ring g = {.move = move,
                  .data = unicon__move_data(move, UNICON__REWRITE, move->n - pairs, pairs, pairs),
                  .panel = &panel,
                  .unseen = move->row[UNICON__OLD]};
  const double ridge = trial->recipe.ridge * (double)trial->pairs / (double)pairs;
  const int start = trial->recipe.method == UNICON__BY_PROCRUSTES ? 0 : step_of(ridge);
  UNICON_TRY(small_panel(ctx, move, items, folds, &panel));
  UNICON_TRY(run_method(ctx, &g, trial->recipe, start, &best));
  *score = best.score;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
