/* SPDX-License-Identifier: Apache-2.0 */
/* What more pairs would add, and what a larger index takes away. */
#include <math.h>

#include "base/sweep.h"
#include "linalg/tiled.h"
#include "use/migrate.h"

enum { MOST_QUERIES = 1000 }; /* that halves of the items are searched for */

/* ---- pairs -------------------------------------------------------------------------------- */

/* Scores of a rewrite on an eighth, a quarter and half of the pairs, among items that none of them
 * has seen, and of the one on all pairs among the same. */
unicon_status unicon__outcome_learn(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  const unicon__trial *best = &o->contest.best[UNICON__REWRITE];
  const unicon__figure leads = unicon__panel_leads(&move->panel);
  int64_t folds = 0;
  if (move->judged) return UNICON_OK;
  while (folds < move->folds &&
         unicon__fold_first(move->items, move->folds, folds + 1) <= move->n - move->n / 2)
    folds++;
  for (int64_t share = 8; share >= 2; share /= 2) {
    const int64_t pairs = move->n / share;
    if (pairs < 50) continue;
    o->curve_pairs[o->curve_points] = pairs;
    UNICON_TRY(
        unicon__contest_learn(ctx, move, best, pairs, folds, &o->curve_score[o->curve_points++]));
  }
  o->curve_pairs[o->curve_points] = o->entry[UNICON__ROW_REWRITE].pairs;
  o->curve_score[o->curve_points++] = o->entry[UNICON__ROW_REWRITE].figures.value[leads];
  const int last = o->curve_points - 1;
  if (last < 2) return UNICON_OK;
  /* What a doubling adds falls; the next adds what the last one did, times what that was of the one
   * before. The last step is a little less than a doubling. */
  const double step = log2((double)o->curve_pairs[last] / (double)o->curve_pairs[last - 1]);
  const double gain = fmax(0, o->curve_score[last] - o->curve_score[last - 1]) / step;
  const double before = fmax(1e-6, o->curve_score[last - 1] - o->curve_score[last - 2]);
  o->more = gain * fmin(1, fmax(0.3, gain / before));
  o->enough = o->more < 0.01;
  /* Every item was left out with its fold; the map that is deployed has all pairs. */
  unicon__entry *entry = &o->entry[UNICON__ROW_REWRITE];
  o->missing = gain * log2((double)move->n / (double)entry->pairs);
  for (int f = 0; f < UNICON__FIGURES; f++)
    entry->figures.high[f] = fmin(1, entry->figures.high[f] + o->missing);
  return UNICON_OK;
}

/* ---- items -------------------------------------------------------------------------------- */

const int unicon__cuts[UNICON__CUTS] = {1, 2, 3, 5, 10};

/* Rows of scores as deployed and by the new model in one fold, and how it is cut up. */
typedef struct slices {
  int64_t queries, items, count; /* `count` items of a slice */
  bool self;
  const float *score[2];
  double *overlap; /* per query: mean over the slices at each cut */
} slices;

static void judge_slices(void *state, unicon__cell cell) {
  const slices *s = state;
  const int64_t query = cell.row;
  const int64_t parts = s->items / s->count;
  double *out = s->overlap + query * UNICON__CUTS;
  for (int c = 0; c < UNICON__CUTS; c++) out[c] = 0;
  for (int64_t p = 0; p < parts; p++) {
    int64_t best[2][UNICON__NEIGHBOURS];
    for (int way = 0; way < 2; way++)
      unicon__top_items(s->score[way] + query * s->items, p * s->count, s->count,
                        s->self ? query : -1, UNICON__NEIGHBOURS, best[way]);
    for (int c = 0; c < UNICON__CUTS; c++)
      for (int k = 0; k < unicon__cuts[c]; k++)
        for (int t = 0; t < unicon__cuts[c]; t++)
          if (best[0][k] >= 0 && best[0][k] == best[1][t])
            out[c] += 1 / (double)(unicon__cuts[c] * parts);
  }
}

/* Adds the mean overlaps of one half of the items, in slices of three sizes, to `out`. `left` are
 * its items by a map of other rows. */
static unicon_status slice_half(unicon_ctx *ctx, const unicon__outcome *o, int half,
                                const float *left, double out[UNICON__SIZES][UNICON__CUTS]) {
  const unicon__move *move = o->move;
  const int64_t e = move->d[UNICON__NEW], first = unicon__fold_first(move->items, 2, half);
  const float *query = move->query[UNICON__NEW] + (move->self ? first * e : 0);
  const float *item[2] = {left, move->row[UNICON__NEW] + first * e};
  unicon__block *frame = unicon__frame_open(ctx);
  slices s = {.items = unicon__fold_first(move->items, 2, half + 1) - first, .self = move->self};
  s.queries = move->self ? s.items : move->queries;
  if (s.queries > MOST_QUERIES) s.queries = MOST_QUERIES;
  UNICON_NEW(ctx, s.overlap, s.queries * UNICON__CUTS);
  for (int way = 0; way < 2; way++) {
    float *score;
    UNICON_NEW(ctx, score, s.queries * s.items);
    unicon__tiled_sgemm(ctx, false, true, s.queries, s.items, e, 1, query, e, item[way], e, 0,
                        score, s.items);
    s.score[way] = score;
  }
  for (int p = 0; p < UNICON__SIZES; p++) {
    s.count = o->size_items[p];
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, s.queries, judge_slices, &s));
    for (int64_t q = 0; q < s.queries; q++)
      for (int c = 0; c < UNICON__CUTS; c++)
        out[p][c] += s.overlap[q * UNICON__CUTS + c] / (2 * (double)s.queries);
  }
  unicon__frame_close(ctx, frame);
  return unicon__poll(ctx);
}

static double logit(double share) {
  const double inside = fmin(0.9999, fmax(0.0001, share));
  return log(inside / (1 - inside));
}

/* Least squares of logit overlap@k among n items on 1, x, log k and, with `bent`, x^2, where
 * x = log(n/k): what the place of the cut among all items says, and how many are cut off. Solves the
 * normal equations by elimination; predicts for ten of `rows`. */
static double fit_sizes(const unicon__outcome *o, bool bent, double rows) {
  enum { MOST = 4 };
  double a[MOST][MOST + 1] = {{0}}, x = log(rows / UNICON__NEIGHBOURS), out = 0;
  const int m = bent ? MOST : MOST - 1;
  for (int p = 0; p < o->size_points; p++)
    for (int c = 0; c < UNICON__CUTS; c++) {
      const double k = unicon__cuts[c], n = (double)o->size_items[p];
      const double v[MOST + 1] = {1, log(n / k), log(k), log(n / k) * log(n / k),
                                  logit(o->size_score[p][c])};
      if (n < 4 * k) continue;
      for (int i = 0; i < m; i++)
        for (int j = 0; j <= m; j++) a[i][j] += v[i] * v[j < m ? j : MOST];
    }
  for (int i = 0; i < m; i++)
    for (int r = 0; r < m; r++) {
      const double f = r == i ? 0 : a[r][i] / (a[i][i] + 1e-12);
      for (int j = i; j <= m; j++) a[r][j] -= f * a[i][j];
    }
  const double at[MOST] = {1, x, log(UNICON__NEIGHBOURS), x * x};
  for (int i = 0; i < m; i++) out += at[i] * a[i][m] / (a[i][i] + 1e-12);
  return out;
}

static double share_of(double logit_value) {
  return 1 / (1 + exp(-logit_value));
}

/* How much the logit of overlap@10 changes from one size of the index to another. */
static double change_of(const unicon__outcome *o, bool bent, double from, double to) {
  return fit_sizes(o, bent, to) - fit_sizes(o, bent, from);
}

/* What to expect of an index of another size: overlap@10 in a large index is like overlap@1 in one
 * of a tenth, and that is seen here already. The mean of a straight and a bent fit, from the figure
 * of the rewrite on; as uncertain as they differ and the change is large (docs/migration.md has it
 * on five pairs of models). */
static void extrapolate(unicon__outcome *o) {
  const unicon__entry *entry = &o->entry[UNICON__ROW_REWRITE];
  const unicon__figures *f = &entry->figures;
  if (unicon__is(o->move->options, UNICON__INDEX_ROWS, "none")) return;
  o->index_rows = unicon__integer(o->move->options, UNICON__INDEX_ROWS);
  const double rows = (double)o->index_rows, items = (double)entry->items;
  const double straight = change_of(o, false, items, rows), bent = change_of(o, true, items, rows);
  const double change = (straight + bent) / 2,
               at = logit(f->value[UNICON__OVERLAP] + o->missing) + change;
  const double half = fabs(straight - bent) / 2 + 0.15 * fabs(change) +
                      (logit(f->high[UNICON__OVERLAP]) - logit(f->low[UNICON__OVERLAP])) / 2;
  o->index_score = share_of(at);
  o->index_low = share_of(at - half);
  o->index_high = share_of(at + half);
}

/* The items of a half by the map of so many pairs of the other half. */
static unicon_status map_half(unicon_ctx *ctx, const unicon__outcome *o, int half, int64_t pairs,
                              float *left) {
  const unicon__move *move = o->move;
  const unicon__trial *best = &o->contest.best[UNICON__REWRITE];
  const int64_t first = unicon__fold_first(move->items, 2, half);
  const int64_t count = unicon__fold_first(move->items, 2, half + 1) - first;
  const unicon__regress_data data =
      unicon__move_data(move, UNICON__REWRITE, half == 0 ? move->n - pairs : 0, pairs, pairs);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__regress *regress;
  unicon__regression map;
  const double ridge = best->recipe.ridge * (double)move->n / (double)pairs;
  UNICON_TRY(unicon__regress_open(ctx, &data, &best->recipe, &regress));
  UNICON_TRY(unicon__regress_fit(ctx, regress, fmin(ridge, 1), NULL, &map));
  UNICON_TRY(unicon__regress_apply(ctx, &best->recipe, &map, data.d, data.e,
                                   move->row[UNICON__OLD] + first * data.d, count, left));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__outcome_shrink(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  float *left;
  if (move->judged) return UNICON_OK;
  for (int p = 0; p < UNICON__SIZES; p++)
    o->size_items[p] = (move->items / 2) >> (UNICON__SIZES - 1 - p);
  UNICON_NEW(ctx, left, (move->items / 2 + 1) * move->d[UNICON__NEW]);
  for (int half = 0; half < 2; half++) {
    UNICON_TRY(map_half(ctx, o, half, move->n / 2, left));
    UNICON_TRY(slice_half(ctx, o, half, left, o->size_score));
  }
  unicon__drop(ctx, left);
  o->size_points = UNICON__SIZES;
  extrapolate(o);
  return UNICON_OK;
}
