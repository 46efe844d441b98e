/* SPDX-License-Identifier: Apache-2.0 */
/* What more pairs would add, and what a larger index takes away. */
#include <math.h>

#include "base/parallel.h"
#include "linalg/tiled.h"
#include "use/migrate.h"

/* Scores of a rewrite on an eighth, a quarter, half of the pairs, and on all. */
unicon_status unicon__outcome_learn(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__trial *best = &o->contest.best[UNICON__REWRITE];
  for (int64_t share = 8; share >= 1; share /= 2) {
    const int64_t pairs = o->move->n / share;
    double score = best->score;
    if (pairs < 50) continue;
    if (share > 1) UNICON_TRY(unicon__contest_learn(ctx, o->move, best, pairs, &score));
    o->curve_pairs[o->curve_points] = pairs;
    o->curve_score[o->curve_points++] = score;
  }
  const int last = o->curve_points - 1;
  if (last < 2) return UNICON_OK;
  /* The next doubling adds what the last one did, times what that was of the one before. */
  const double gain = fmax(0, o->curve_score[last] - o->curve_score[last - 1]);
  const double before = fmax(1e-6, o->curve_score[last - 1] - o->curve_score[last - 2]);
  o->more = gain * fmin(1, fmax(0.3, gain / before));
  o->enough = o->more < 0.01;
  return UNICON_OK;
}

/* Rows of scores as deployed and by the new model, and the part of the items in question. */
typedef struct blocks {
  const unicon__outcome *o;
  const float *truth; /* queries by items */
  int64_t count;      /* items of a part */
  double *overlap;    /* per query: mean over the parts */
} blocks;

/* overlap@10 of one query, mean over the parts of the items. */
static void judge_blocks(void *state, int64_t query, int worker) {
  (void)worker;
  const blocks *b = state;
  const unicon__jury *jury = &b->o->move->jury;
  const int64_t items = jury->items, parts = items / b->count;
  double sum = 0;
  for (int64_t p = 0; p < parts; p++) {
    const int64_t from = p * b->count;
    int64_t best[2][UNICON__NEIGHBOURS];
    for (int way = 0; way < 2; way++) {
      const float *score = (way ? b->truth : b->o->score) + query * items;
      unicon__top_items(score, from, b->count, jury->self ? jury->self[query] : -1,
                        UNICON__NEIGHBOURS, best[way]);
    }
    for (int k = 0; k < UNICON__NEIGHBOURS; k++)
      for (int t = 0; t < UNICON__NEIGHBOURS; t++)
        if (best[0][k] == best[1][t]) sum += 1.0 / UNICON__NEIGHBOURS;
  }
  b->overlap[query] = sum / (double)parts;
}

static double logit(double share) {
  const double inside = fmin(0.9999, fmax(0.0001, share));
  return log(inside / (1 - inside));
}

/* What to expect of an index of another size. In logits overlap falls with every doubling of the
 * items, by about .8 of what it fell before: seen on pairs of models up to 16 times the items
 * (docs/migration.md). Half of the change either way, and the interval, are the uncertainty. */
static void extrapolate(unicon__outcome *o) {
  const int last = o->size_points - 1;
  const unicon__figures *f = &o->entry[UNICON__ROW_REWRITE].figures;
  if (last < 2 || unicon__word(o->move->options, UNICON__INDEX_ROWS) == 0) return;
  o->index_rows = unicon__integer(o->move->options, UNICON__INDEX_ROWS);
  const double doublings = log2((double)o->index_rows / (double)o->size_items[last]);
  const double slope = fmin(0, (logit(o->size_score[last]) - logit(o->size_score[last - 2])) / 2);
  double change = doublings * slope; /* smaller indexes: straight back */
  if (doublings > 0) change = slope * 4 * (1 - pow(0.8, doublings));
  const double here = logit(f->value[UNICON__OVERLAP]), half = fabs(change) / 2;
  o->index_score = 1 / (1 + exp(-(here + change)));
  o->index_low = 1 / (1 + exp(-(logit(f->low[UNICON__OVERLAP]) + change - half)));
  o->index_high = 1 / (1 + exp(-(logit(f->high[UNICON__OVERLAP]) + change + half)));
}

unicon_status unicon__outcome_shrink(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  const int64_t e = move->d[UNICON__NEW];
  unicon__block *frame = unicon__frame_open(ctx);
  float *truth;
  blocks b = {.o = o};
  if (move->jury.judged) return UNICON_OK;
  UNICON_NEW(ctx, truth, move->queries * move->items);
  UNICON_NEW(ctx, b.overlap, move->queries);
  unicon__tiled_sgemm(ctx, false, true, move->queries, move->items, e, 1, move->query[UNICON__NEW],
                      e, move->row[UNICON__NEW], e, 0, truth, move->items);
  b.truth = truth;
  for (int64_t parts = 8; parts >= 1; parts /= 2) {
    double sum = 0;
    b.count = move->items / parts;
    if (b.count < 4 * UNICON__NEIGHBOURS) continue;
    unicon__parallel_for(ctx, move->queries, judge_blocks, &b);
    for (int64_t q = 0; q < move->queries; q++) sum += b.overlap[q];
    o->size_items[o->size_points] = b.count;
    o->size_score[o->size_points++] = sum / (double)move->queries;
    UNICON_TRY(unicon__poll(ctx));
  }
  unicon__frame_close(ctx, frame);
  extrapolate(o);
  return UNICON_OK;
}
