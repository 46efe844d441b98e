/* SPDX-License-Identifier: Apache-2.0 */
/* What more pairs would add, and what a larger index takes away. */
#include <math.h>

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

/* overlap@10 among `count` items from `first` on, which ask for each other or are asked for. */
static unicon_status judge_block(unicon_ctx *ctx, const unicon__outcome *o, int64_t first,
                                 int64_t count, double *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon__move *move = o->move;
  const int64_t e = move->d[UNICON__NEW];
  const float *item = move->row[UNICON__NEW] + first * e;
  const float *query = move->jury.self ? item : move->query[UNICON__NEW];
  unicon__jury jury = {.queries = move->queries < 500 ? move->queries : 500, .items = count};
  unicon__figures figures;
  int64_t *self;
  if (move->jury.self) {
    jury.queries = count;
    UNICON_NEW(ctx, self, count);
    for (int64_t i = 0; i < count; i++) self[i] = i;
    jury.self = self;
  }
  UNICON_TRY(unicon__jury_open(ctx, query, item, e, &jury));
  UNICON_TRY(unicon__jury_rows(ctx, &jury, query, o->left + first * e, e, &figures, NULL));
  *out = figures.value[UNICON__OVERLAP];
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
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

/* overlap@10 of the rewrite among parts of the items. */
unicon_status unicon__outcome_shrink(unicon_ctx *ctx, unicon__outcome *o) {
  if (o->move->jury.judged) return UNICON_OK;
  for (int64_t parts = 8; parts >= 1; parts /= 2) {
    const int64_t count = o->move->items / parts;
    double sum = 0;
    if (count < 4 * UNICON__NEIGHBOURS) continue;
    for (int64_t p = 0; p < parts; p++) {
      double overlap;
      UNICON_TRY(judge_block(ctx, o, p * count, count, &overlap));
      sum += overlap;
    }
    o->size_items[o->size_points] = count;
    o->size_score[o->size_points++] = sum / (double)parts;
  }
  extrapolate(o);
  return UNICON_OK;
}
