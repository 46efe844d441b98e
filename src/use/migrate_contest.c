/* SPDX-License-Identifier: Apache-2.0 */
/* Which method, kernel and ridge carries vectors over best: every setting is judged as it would be
 * deployed, on items that its map has not seen. */
#include <math.h>
#include <string.h>

#include "use/migrate.h"

enum { COARSE_PAIRS = 1200, WIDTH_PAIRS = 1000, KERNELS = 4 };

/* Ridges as shares of the largest eigenvalue: half decades from 1e-7 to 1. */
enum { RIDGES = 15 };

static double ridge_at(int step) {
  return pow(10, -7 + 0.5 * step);
}

/* The step nearest to a ridge. */
static int step_of(double ridge) {
  const int step = (int)lround((log10(ridge) + 7) * 2);
  return step < 0 ? 0 : step >= RIDGES ? RIDGES - 1 : step;
}

/* ---- judging ------------------------------------------------------------------------------ */

unicon_status unicon__way_find(unicon_ctx *ctx, const unicon__move *move, const unicon__jury *jury,
                               const unicon__trial *trial, const float *left,
                               const unicon__regression *map, int64_t k, int64_t *list) {
  const int64_t from = move->d[UNICON__NEW], to = move->d[UNICON__OLD];
  if (trial->way == UNICON__REWRITE)
    return unicon__jury_find(ctx, jury, move->query[UNICON__NEW], left, from, k, list);
  if (jury->self) return unicon__jury_find(ctx, jury, left, move->row[UNICON__OLD], to, k, list);
  float *query;
  UNICON_NEW(ctx, query, jury->queries * to);
  UNICON_TRY(unicon__regress_apply(ctx, &trial->recipe, map, from, to, move->query[UNICON__NEW],
                                   jury->queries, query));
  UNICON_TRY(unicon__jury_find(ctx, jury, query, move->row[UNICON__OLD], to, k, list));
  unicon__drop(ctx, query);
  return UNICON_OK;
}

/* What is being tried: a part of the pairs as a migration of its own. */
typedef struct ring {
  const unicon__move *move;
  const unicon__jury *jury;
  int64_t pairs;
  unicon__contest *contest; /* keeps the trials, or NULL */
} ring;

/* Fits with the trial's ridge and judges; nothing stays in the frame. */
static unicon_status attempt(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                             unicon__trial *trial) {
  const unicon__move *move = g->move;
  const unicon__regress_data data = unicon__move_data(move, trial->way, g->pairs);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__figures figures;
  unicon__regression map = {0};
  int64_t *list;
  float *left;
  const int64_t items = g->jury->items;
  const bool maps = items > data.judged || (trial->way == UNICON__BRIDGE && !g->jury->self);
  UNICON_NEW(ctx, left, items * data.e);
  UNICON_TRY(unicon__regress_fit(ctx, regress, trial->recipe.ridge, left, maps ? &map : NULL));
  if (items > data.judged) /* the others are new to the map anyway */
    UNICON_TRY(unicon__regress_apply(ctx, &trial->recipe, &map, data.d, data.e,
                                     data.x + data.judged * data.d, items - data.judged,
                                     left + data.judged * data.e));
  UNICON_NEW(ctx, list, g->jury->queries * UNICON__NEIGHBOURS);
  UNICON_TRY(unicon__way_find(ctx, move, g->jury, trial, left, &map, UNICON__NEIGHBOURS, list));
  UNICON_TRY(unicon__jury_lists(ctx, g->jury, list, UNICON__NEIGHBOURS, &figures, NULL));
  unicon__frame_close(ctx, frame);
  trial->pairs = g->pairs;
  trial->items = items;
  trial->score = figures.value[unicon__jury_leads(g->jury)];
  if (g->contest && g->contest->count < UNICON__TRIALS)
    g->contest->list[g->contest->count++] = *trial;
  return UNICON_OK;
}

/* Walks the ridges from a start, first to smaller ones: scores have one top, broad enough for half
 * decades. */
static unicon_status climb(unicon_ctx *ctx, const ring *g, unicon__regress *regress, int start,
                           unicon__trial *best) {
  best->recipe.ridge = ridge_at(start);
  UNICON_TRY(attempt(ctx, g, regress, best));
  bool fell = false;
  for (int way = -1; way <= 1 && !fell; way += 2)
    for (int step = start + way; step >= 0 && step < RIDGES; step += way) {
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
  const unicon__regress_data data = unicon__move_data(g->move, best->way, g->pairs);
  unicon__regress *regress;
  best->recipe = recipe;
  UNICON_TRY(unicon__regress_open(ctx, &data, &recipe, &regress));
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

static int kernels_of(const unicon__move *move, unicon__way way, unicon__kernel list[KERNELS]) {
  static const double widths[KERNELS - 1] = {0.55, 0.8, 1.15};
  const unicon__regress_data data = unicon__move_data(move, way, move->n);
  list[0] = (unicon__kernel){UNICON__KERNEL_ARCCOS1, 1, 1};
  if (way == UNICON__BRIDGE) return 1; /* it seldom leads: one kernel shows how far it gets */
  const double scale = usual_distance(data.x, data.n, data.d);
  for (int k = 1; k < KERNELS; k++)
    list[k] = (unicon__kernel){UNICON__KERNEL_RBF, widths[k - 1] * scale, 1};
  return KERNELS;
}

/* Right answers among the first items alone, which are all that a part of the pairs has. */
static unicon_status small_jury(unicon_ctx *ctx, const unicon__move *move, int64_t items,
                                unicon__jury *out) {
  *out = move->quick;
  out->items = items;
  if (out->self && out->queries > items) out->queries = items;
  if (out->judged) return UNICON_OK;
  return unicon__jury_open(ctx, move->query[UNICON__NEW], move->row[UNICON__NEW],
                           move->d[UNICON__NEW], out);
}

/* Kernels side by side on a part of the pairs; the best with its ridge. Equal ones: the first,
 * which has no width that could be wrong elsewhere. */
static unicon_status coarse(unicon_ctx *ctx, const unicon__move *move, unicon__way way,
                            unicon__contest *contest, unicon__trial *best) {
  const int64_t pairs = move->n < COARSE_PAIRS ? move->n : COARSE_PAIRS;
  unicon__kernel kernel[KERNELS];
  unicon__jury jury;
  unicon__block *frame = unicon__frame_open(ctx);
  /* Judged items may lie anywhere, so with judgements all of them are searched. */
  UNICON_TRY(
      small_jury(ctx, move, move->jury.judged || pairs > move->items ? move->items : pairs, &jury));
  const ring g = {move, &jury, pairs, contest};
  const int kernels = kernels_of(move, way, kernel);
  for (int k = 0; k < kernels; k++) {
    unicon__trial trial = {.way = way};
    const unicon__recipe recipe = {UNICON__BY_KERNEL, kernel[k], 0};
    UNICON_TRY(run_method(ctx, &g, recipe, step_of(k == 0 ? 1e-4 : best->recipe.ridge), &trial));
    if (k == 0 || trial.score > best->score + 0.003) *best = trial;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- the contest -------------------------------------------------------------------------- */

static void keep_better(unicon__contest *contest, const unicon__trial *trial) {
  unicon__trial *best = &contest->best[trial->way];
  if (best->pairs == 0 || trial->score > best->score) *best = *trial;
}

/* Linear methods on all pairs. */
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

unicon_status unicon__contest_run(unicon_ctx *ctx, const unicon__move *move, unicon__contest *out) {
  const ring whole = {move, &move->quick, move->n, out};
  unicon__trial start[2];
  memset(out, 0, sizeof *out);
  for (int way = UNICON__BRIDGE; way <= UNICON__REWRITE; way++) {
    UNICON_TRY(unicon__progress(ctx, "migrate", 0.05 + 0.15 * way));
    UNICON_TRY(coarse(ctx, move, (unicon__way)way, out, &start[way]));
    UNICON_TRY(unicon__progress(ctx, "migrate", 0.15 + 0.15 * way));
    UNICON_TRY(run_linear(ctx, &whole, (unicon__way)way));
  }
  for (int way = UNICON__BRIDGE; way <= UNICON__REWRITE; way++) {
    UNICON_TRY(unicon__progress(ctx, "migrate", 0.35 + 0.2 * way));
    unicon__trial trial = start[way];
    if (trial.pairs == move->n && trial.items == move->items) {
      keep_better(out, &trial);
      continue;
    }
    if (trial.score < start[1 - way].score - 0.05) continue; /* far behind already */
    /* The largest eigenvalue grows with the pairs, the noise of a vector does not. */
    const double ridge = trial.recipe.ridge * (double)trial.pairs / (double)move->n;
    UNICON_TRY(run_method(ctx, &whole, trial.recipe, step_of(ridge), &trial));
    keep_better(out, &trial);
  }
  return UNICON_OK;
}

unicon_status unicon__contest_learn(unicon_ctx *ctx, const unicon__move *move,
                                    const unicon__trial *trial, int64_t pairs, double *score) {
  const ring g = {move, &move->quick, pairs, NULL};
  unicon__trial best = {.way = trial->way};
  const double ridge = trial->recipe.ridge * (double)trial->pairs / (double)pairs;
  const int start = trial->recipe.method == UNICON__BY_PROCRUSTES ? 0 : step_of(ridge);
  UNICON_TRY(run_method(ctx, &g, trial->recipe, start, &best));
  *score = best.score;
  return UNICON_OK;
}
