/* SPDX-License-Identifier: Apache-2.0 */
/* Which method, kernel and ridge carries vectors over best: every setting is judged as it would be
 * deployed, on items that its map has not seen. */
#include <math.h>
#include <string.h>

#include "linalg/tiled.h"
#include "use/migrate.h"

enum { COARSE_PAIRS = 1200, FEWEST_ASKING = 200, WIDTH_PAIRS = 1000, KERNELS = 4 };

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

/* What is being tried: some of the pairs as a migration of its own. */
typedef struct ring {
  const unicon__move *move;
  const unicon__jury *jury;
  const float *query;       /* of the jury, by the new model */
  const unicon__held *held; /* of a bridge */
  int64_t pairs;
  unicon__contest *contest; /* keeps the trials, or NULL */
} ring;

unicon_status unicon__rewrite_scores(unicon_ctx *ctx, const unicon__move *move,
                                     const unicon__jury *jury, unicon__regress *regress,
                                     const unicon__recipe *recipe, unicon__regression *map,
                                     float *scores) {
  const int64_t e = move->d[UNICON__NEW], items = move->items;
  unicon__left_two two = {.queries = jury->queries};
  if (jury->self && recipe->method != UNICON__BY_PROCRUSTES) {
    const unicon__regress_want want = {.two = &two, .map = map};
    UNICON_TRY(unicon__regress_fit(ctx, regress, recipe->ridge, &want));
    return unicon__left_two_scores(ctx, &two, move->row[UNICON__NEW], e, scores);
  }
  const unicon__regress_want want = {.left = unicon__new(ctx, items * e, sizeof(float)),
                                     .map = map};
  if (!want.left) return UNICON_ERR_MEMORY;
  UNICON_TRY(unicon__regress_fit(ctx, regress, recipe->ridge, &want));
  unicon__tiled_sgemm(ctx, false, true, jury->queries, items, e, 1, move->query[UNICON__NEW], e,
                      want.left, e, 0, scores, items);
  return UNICON_OK;
}

/* All pairs: every item is left out in its turn, and where items ask, so is the query. */
static unicon_status judge_whole(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                                 const unicon__trial *trial, unicon__figures *out) {
  int64_t *list;
  float *scores;
  UNICON_NEW(ctx, scores, g->jury->queries * g->jury->items);
  UNICON_NEW(ctx, list, g->jury->queries * UNICON__NEIGHBOURS);
  UNICON_TRY(unicon__rewrite_scores(ctx, g->move, g->jury, regress, &trial->recipe, NULL, scores));
  UNICON_TRY(unicon__jury_top(ctx, g->jury, scores, UNICON__NEIGHBOURS, list));
  return unicon__jury_lists(ctx, g->jury, list, UNICON__NEIGHBOURS, out, NULL);
}

/* Some of the pairs: each is left out in its turn, other items and the queries are new anyway. */
static unicon_status judge_part(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                                const unicon__trial *trial, unicon__figures *out) {
  const unicon__regress_data data = unicon__move_data(g->move, UNICON__REWRITE, g->pairs);
  const int64_t items = g->jury->items, seen = data.judged;
  unicon__regression map;
  unicon__regress_want want = {.map = items > seen ? &map : NULL};
  UNICON_NEW(ctx, want.left, items * data.e);
  UNICON_TRY(unicon__regress_fit(ctx, regress, trial->recipe.ridge, &want));
  if (items > seen)
    UNICON_TRY(unicon__regress_apply(ctx, &trial->recipe, &map, data.d, data.e,
                                     data.x + seen * data.d, items - seen,
                                     want.left + seen * data.e));
  return unicon__jury_rows(ctx, g->jury, g->query, want.left, data.e, out, NULL);
}

/* New queries through the map, among held-out items of the old model. */
static unicon_status judge_bridge(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                                  const unicon__trial *trial, unicon__figures *out) {
  const unicon__regress_data data = unicon__move_data(g->move, UNICON__BRIDGE, g->pairs);
  unicon__regression map;
  float *query;
  UNICON_NEW(ctx, query, g->jury->queries * data.e);
  UNICON_TRY(
      unicon__regress_fit(ctx, regress, trial->recipe.ridge, &(unicon__regress_want){.map = &map}));
  UNICON_TRY(unicon__regress_apply(ctx, &trial->recipe, &map, data.d, data.e, g->query,
                                   g->jury->queries, query));
  return unicon__jury_rows(ctx, g->jury, query, g->held->item[UNICON__OLD], data.e, out, NULL);
}

/* Fits with the trial's ridge and judges; nothing stays in the frame. */
static unicon_status attempt(unicon_ctx *ctx, const ring *g, unicon__regress *regress,
                             unicon__trial *trial) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__figures figures;
  if (trial->way == UNICON__BRIDGE)
    UNICON_TRY(judge_bridge(ctx, g, regress, trial, &figures));
  else if (g->pairs == g->move->n)
    UNICON_TRY(judge_whole(ctx, g, regress, trial, &figures));
  else
    UNICON_TRY(judge_part(ctx, g, regress, trial, &figures));
  unicon__frame_close(ctx, frame);
  trial->pairs = g->pairs;
  trial->items = g->jury->items;
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

static void kernels_of(const unicon__move *move, unicon__kernel list[KERNELS]) {
  static const double widths[KERNELS - 1] = {0.55, 0.8, 1.15};
  const double scale = usual_distance(move->row[UNICON__OLD], move->n, move->d[UNICON__OLD]);
  list[0] = (unicon__kernel){UNICON__KERNEL_ARCCOS1, 1, 1};
  for (int k = 1; k < KERNELS; k++)
    list[k] = (unicon__kernel){UNICON__KERNEL_RBF, widths[k - 1] * scale, 1};
}

static ring whole_ring(const unicon__move *move, unicon__contest *contest) {
  return (ring){.move = move,
                .jury = &move->quick,
                .query = move->query[UNICON__NEW],
                .pairs = move->n,
                .contest = contest};
}

/* Who asks about the first `items` where a map has seen the first `pairs`: the given queries, or
 * rows that it has not seen, which may be items themselves. */
static unicon_status open_ring(unicon_ctx *ctx, int64_t items, unicon__jury *jury, ring *g) {
  const unicon__move *move = g->move;
  const int64_t e = move->d[UNICON__NEW];
  *jury = move->quick;
  g->jury = jury;
  g->query = move->query[UNICON__NEW];
  jury->items = items;
  if (move->quick.self) {
    const int64_t spare = items - g->pairs, rest = move->n - (g->pairs > items ? g->pairs : items);
    const bool inside = spare >= rest; /* the queries are items */
    const int64_t most = inside ? spare : rest;
    int64_t *self = NULL;
    jury->queries = most < move->quick.queries ? most : move->quick.queries;
    const int64_t first = inside ? items - jury->queries : move->n - jury->queries;
    g->query = move->row[UNICON__NEW] + first * e;
    if (inside) UNICON_NEW(ctx, self, jury->queries);
    for (int64_t q = 0; inside && q < jury->queries; q++) self[q] = first + q;
    jury->self = self;
  }
  if (jury->judged) return UNICON_OK;
  return unicon__jury_open(ctx, g->query, move->row[UNICON__NEW], e, jury);
}

/* Kernels side by side on a part of the pairs; the best with its ridge. Equal ones: the first,
 * which has no width that could be wrong elsewhere. */
static unicon_status coarse(unicon_ctx *ctx, const unicon__move *move, unicon__contest *contest,
                            unicon__trial *best) {
  const int64_t pairs = move->n < COARSE_PAIRS + FEWEST_ASKING ? move->n : COARSE_PAIRS;
  unicon__kernel kernel[KERNELS];
  unicon__jury jury;
  unicon__block *frame = unicon__frame_open(ctx);
  ring g = whole_ring(move, contest);
  if (pairs < move->n) {
    g.pairs = pairs;
    /* Judged items may lie anywhere, so with judgements all of them are searched. */
    UNICON_TRY(open_ring(ctx, move->jury.judged ? move->items : pairs, &jury, &g));
  }
  kernels_of(move, kernel);
  for (int k = 0; k < KERNELS; k++) {
    unicon__trial trial = {.way = UNICON__REWRITE};
    const unicon__recipe recipe = {UNICON__BY_KERNEL, kernel[k], 0};
    UNICON_TRY(unicon__progress(ctx, "migrate", 0.05 + 0.05 * k));
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

unicon_status unicon__contest_rewrite(unicon_ctx *ctx, const unicon__move *move,
                                      unicon__contest *out) {
  const ring whole = whole_ring(move, out);
  unicon__trial trial;
  UNICON_TRY(coarse(ctx, move, out, &trial));
  UNICON_TRY(unicon__progress(ctx, "migrate", 0.25));
  UNICON_TRY(run_linear(ctx, &whole, UNICON__REWRITE));
  UNICON_TRY(unicon__progress(ctx, "migrate", 0.4));
  if (trial.pairs < move->n || trial.items < move->items) {
    /* The largest eigenvalue grows with the pairs, the noise of a vector does not. */
    const double ridge = trial.recipe.ridge * (double)trial.pairs / (double)move->n;
    UNICON_TRY(run_method(ctx, &whole, trial.recipe, step_of(ridge), &trial));
  }
  keep_better(out, &trial);
  return UNICON_OK;
}

unicon_status unicon__contest_bridge(unicon_ctx *ctx, const unicon__move *move,
                                     const unicon__held *held, unicon__contest *out) {
  const ring g = {move, &held->jury, held->query[UNICON__NEW], held, held->first, out};
  const unicon__recipe recipe = {UNICON__BY_KERNEL, {UNICON__KERNEL_ARCCOS1, 1, 1}, 0};
  unicon__trial trial = {.way = UNICON__BRIDGE};
  UNICON_TRY(run_linear(ctx, &g, UNICON__BRIDGE));
  UNICON_TRY(run_method(ctx, &g, recipe, step_of(1e-4), &trial));
  keep_better(out, &trial);
  return UNICON_OK;
}

unicon_status unicon__contest_learn(unicon_ctx *ctx, const unicon__move *move,
                                    const unicon__trial *trial, int64_t pairs, double *score) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__jury jury;
  ring g = {.move = move, .pairs = pairs};
  unicon__trial best = {.way = UNICON__REWRITE};
  const double ridge = trial->recipe.ridge * (double)trial->pairs / (double)pairs;
  const int start = trial->recipe.method == UNICON__BY_PROCRUSTES ? 0 : step_of(ridge);
  UNICON_TRY(open_ring(ctx, move->items, &jury, &g));
  UNICON_TRY(run_method(ctx, &g, trial->recipe, start, &best));
  *score = best.score;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
