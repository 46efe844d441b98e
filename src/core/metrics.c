/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks without an n_x by n_y matrix. For a query with positives of exact (float64) scores
 * t_0 >= t_1 >= ..., the rank of positive k is
 *     1 + k + #{candidates j that are no match : s_j >= t_k}
 * so a tie counts against us. Tiles of float32 products decide all but the near ties, which are
 * scored again in float64: the result does not depend on tiles, threads or the BLAS. */
#include "core/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "core/embed.h"
#include "core/options.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { QUERY_ROWS = 128, SCORE_COLS = 1024, RESAMPLES = 1000 };

/* Places for the positives of a block of queries: fewer queries where each has many. */
enum { BLOCK_POSITIVES = 1 << 18, FEWEST_ROWS = 8 };

static const char *const names[UNICON_METRIC_COUNT] = {
    "hit@1", "hit@5", "hit@10",  "recall@1",    "recall@5", "recall@10",
    "mrr",   "map",   "ndcg@10", "median_rank", "mean_rank"};

const char *unicon_metric_name(size_t index) {
  return index < UNICON_METRIC_COUNT ? names[index] : NULL;
}

typedef struct ranking {
  const float *query, *candidate;
  int64_t queries, candidates, r;
  const unicon_pairs *pairs;
  bool from_x;
  int64_t most;      /* longest list of positives */
  int64_t block;     /* queries at a time */
  float *scores;     /* per worker: block by SCORE_COLS */
  double *threshold; /* per worker: block by most */
  int64_t *above;    /* per worker: block by most */
  double *value;     /* UNICON_METRIC_COUNT per query; a first rank of 0: no match to find */
} ranking;

static unicon__partners positives(const ranking *g, int64_t query) {
  return g->from_x ? unicon__positives_x(g->pairs, query) : unicon__positives_y(g->pairs, query);
}

static double exact_score(const ranking *g, int64_t query, int64_t candidate) {
  return unicon__vec_best()->dot(g->query + query * g->r, g->candidate + candidate * g->r, g->r);
}

static int descending(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left < right) - (left > right);
}

/* First k with score >= threshold[k] (descending list). */
static int64_t first_beaten(const double *threshold, int64_t count, double score) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (score >= threshold[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void hide(unicon__partners p, int64_t from, int64_t count, float *scores) {
  int64_t length;
  const int64_t first = unicon__list_range(p, from, from + count, &length);
  for (int64_t k = first; k < first + length; k++) scores[p.item[k] - from] = -INFINITY;
}

/* Counts, for each threshold of the query, the candidates of this tile at or above it. */
static void count_above(const ranking *g, int64_t query, int64_t from, int64_t count, float *scores,
                        const double *threshold, int64_t *above) {
  const unicon__partners p = positives(g, query);
  const double margin = unicon__score_error(g->r);
  const double lowest = threshold[p.count - 1] - margin;
  hide(p, from, count, scores);
  if (g->pairs->ignore.count > 0)
    hide(unicon__list_at(g->from_x ? &g->pairs->ignore.by_x : &g->pairs->ignore.by_y, query), from,
         count, scores);
  for (int64_t j = 0; j < count; j++) {
    const double score = (double)scores[j];
    if (score < lowest) continue;
    int64_t at = first_beaten(threshold, p.count, score - margin);
    if (at > 0 && score + margin >= threshold[at - 1])
      at = first_beaten(threshold, p.count, exact_score(g, query, from + j));
    if (at < p.count) above[at]++;
  }
}

/* The metrics of one query from the ranks of its positives, which come best first. */
static void query_metrics(const int64_t *above, int64_t count, double *value) {
  static const int cut[3] = {1, 5, 10};
  double precision = 0, gain = 0, ideal = 0, within[3] = {0, 0, 0}, first = 0;
  int64_t better = 0;
  for (int64_t k = 0; k < count; k++) {
    better += above[k];
    const double rank = (double)(better + k + 1);
    if (k == 0) first = rank;
    precision += (double)(k + 1) / rank;
    if (rank <= 10) gain += 1 / log2(rank + 1);
    if (k < 10) ideal += 1 / log2((double)k + 2);
    for (int c = 0; c < 3; c++) within[c] += rank <= cut[c];
  }
  for (int c = 0; c < 3; c++) {
    value[UNICON_HIT_1 + c] = first <= cut[c];
    value[UNICON_RECALL_1 + c] = within[c] / (double)count;
  }
  value[UNICON_MRR] = 1 / first;
  value[UNICON_MAP] = precision / (double)count;
  value[UNICON_NDCG_10] = gain / ideal;
  value[UNICON_MEDIAN_RANK] = first;
  value[UNICON_MEAN_RANK] = first;
}

static void rank_block(void *state, int64_t item, int worker) {
  const ranking *g = state;
  const int64_t first = item * g->block, left = g->queries - first;
  const int64_t rows = left < g->block ? left : g->block;
  float *scores = g->scores + (int64_t)worker * g->block * SCORE_COLS;
  double *threshold = g->threshold + worker * g->block * g->most;
  int64_t *above = g->above + worker * g->block * g->most;
  memset(above, 0, (size_t)(g->block * g->most) * sizeof *above);
  for (int64_t i = 0; i < rows; i++) {
    const unicon__partners p = positives(g, first + i);
    for (int64_t k = 0; k < p.count; k++)
      threshold[i * g->most + k] = exact_score(g, first + i, p.item[k]);
    qsort(threshold + i * g->most, (size_t)p.count, sizeof *threshold, descending);
  }
  for (int64_t from = 0; from < g->candidates; from += SCORE_COLS) {
    const int64_t cols = g->candidates - from < SCORE_COLS ? g->candidates - from : SCORE_COLS;
    unicon__sgemm(false, true, rows, cols, g->r, 1, g->query + first * g->r, g->r,
                  g->candidate + from * g->r, g->r, 0, scores, SCORE_COLS);
    for (int64_t i = 0; i < rows; i++)
      if (positives(g, first + i).count > 0)
        count_above(g, first + i, from, cols, scores + i * SCORE_COLS, threshold + i * g->most,
                    above + i * g->most);
  }
  for (int64_t i = 0; i < rows; i++) {
    const int64_t count = positives(g, first + i).count;
    if (count > 0)
      query_metrics(above + i * g->most, count, g->value + (first + i) * UNICON_METRIC_COUNT);
  }
}

/* ---- averages and intervals --------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
  return descending(b, a);
}

/* Median of `count` values, reordering them. */
static double median(double *values, int64_t count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Means (and one median) over the queries list[0..count-1], or resample `draw` of them. */
static void average(const double *value, const int64_t *list, int64_t count, int64_t draw,
                    uint64_t seed, double *ranks, double *out) {
  for (int m = 0; m < UNICON_METRIC_COUNT; m++) out[m] = 0;
  for (int64_t k = 0; k < count; k++) {
    const int64_t pick = draw < 0 ? k
                                  : unicon__below(seed, UNICON__STREAM_BOOTSTRAP, (uint64_t)k,
                                                  (uint32_t)draw, count);
    const double *row = value + list[pick] * UNICON_METRIC_COUNT;
    for (int m = 0; m < UNICON_METRIC_COUNT; m++) out[m] += row[m];
    ranks[k] = row[UNICON_MEDIAN_RANK];
  }
  for (int m = 0; m < UNICON_METRIC_COUNT; m++) out[m] /= (double)count;
  out[UNICON_MEDIAN_RANK] = median(ranks, count);
}

typedef struct bootstrap {
  const double *value;
  const int64_t *list;
  int64_t count;
  uint64_t seed;
  double *ranks; /* per worker */
  double *draws; /* RESAMPLES by UNICON_METRIC_COUNT */
} bootstrap;

static void resample(void *state, int64_t item, int worker) {
  const bootstrap *b = state;
  average(b->value, b->list, b->count, item, b->seed, b->ranks + worker * b->count,
          b->draws + item * UNICON_METRIC_COUNT);
}

/* The central 95 % of the resampled means. */
static unicon_status intervals_of(unicon_ctx *ctx, bootstrap *b, unicon_metrics *out) {
  double column[RESAMPLES];
  UNICON_NEW(ctx, b->draws, RESAMPLES * UNICON_METRIC_COUNT);
  unicon__parallel_for(ctx, RESAMPLES, resample, b);
  for (int m = 0; m < UNICON_METRIC_COUNT; m++) {
    for (int k = 0; k < RESAMPLES; k++) column[k] = b->draws[k * UNICON_METRIC_COUNT + m];
    qsort(column, RESAMPLES, sizeof *column, ascending);
    out->low[m] = column[RESAMPLES / 40];
    out->high[m] = column[RESAMPLES - 1 - RESAMPLES / 40];
  }
  return UNICON_OK;
}

/* Chance that one of m matches is among the first k of n in random order. */
static double chance_hit(int64_t n, int64_t m, int k) {
  double miss = 1;
  for (int t = 0; t < k && t < n; t++)
    miss *= n - m - t > 0 ? (double)(n - m - t) / (double)(n - t) : 0;
  return 1 - miss;
}

static unicon_status summarize(unicon_ctx *ctx, const ranking *g, bool intervals, uint64_t seed,
                               unicon_metrics *out) {
  static const int cut[3] = {1, 5, 10};
  int64_t *list;
  bootstrap b = {.value = g->value, .seed = seed};
  UNICON_NEW(ctx, list, g->queries);
  for (int m = 0; m < UNICON_METRIC_COUNT; m++) out->low[m] = out->high[m] = out->chance[m] = NAN;
  for (int c = 0; c < 3; c++) out->chance[UNICON_HIT_1 + c] = 0;
  for (int64_t i = 0; i < g->queries; i++) {
    const int64_t count = positives(g, i).count;
    if (count == 0) continue;
    list[b.count++] = i;
    const int64_t ignored =
        unicon__list_at(g->from_x ? &g->pairs->ignore.by_x : &g->pairs->ignore.by_y, i).count;
    for (int c = 0; c < 3; c++)
      out->chance[UNICON_HIT_1 + c] += chance_hit(g->candidates - ignored, count, cut[c]);
  }
  if (b.count == 0)
    return unicon__fail(ctx, UNICON_ERR_PAIRS, "no row has a match, so there is nothing to score");
  for (int c = 0; c < 3; c++) out->chance[UNICON_HIT_1 + c] /= (double)b.count;
  UNICON_NEW(ctx, b.ranks, unicon__workers(ctx) * b.count);
  b.list = list;
  average(g->value, list, b.count, -1, 0, b.ranks, out->value);
  out->queries = b.count;
  out->candidates = g->candidates;
  return intervals ? intervals_of(ctx, &b, out) : UNICON_OK;
}

unicon_status unicon__metrics(unicon_ctx *ctx, const float *zx, const float *zy, int64_t r,
                              const unicon_pairs *pairs, bool from_x, bool intervals, uint64_t seed,
                              double *per_query, unicon_metrics *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  ranking g = {.query = from_x ? zx : zy,
               .candidate = from_x ? zy : zx,
               .r = r,
               .pairs = pairs,
               .queries = from_x ? pairs->n_x : pairs->n_y,
               .candidates = from_x ? pairs->n_y : pairs->n_x,
               .from_x = from_x,
               .most = 1};
  for (int64_t i = 0; i < g.queries; i++) {
    const int64_t count = positives(&g, i).count;
    g.most = count > g.most ? count : g.most;
  }
  const int64_t workers = unicon__workers(ctx);
  g.block = BLOCK_POSITIVES / g.most;
  g.block = g.block < FEWEST_ROWS ? FEWEST_ROWS : g.block > QUERY_ROWS ? QUERY_ROWS : g.block;
  UNICON_NEW(ctx, g.scores, workers * g.block * SCORE_COLS);
  UNICON_NEW(ctx, g.threshold, workers * g.block * g.most);
  UNICON_NEW(ctx, g.above, workers * g.block * g.most);
  UNICON_NEW(ctx, g.value, g.queries * UNICON_METRIC_COUNT);
  const double begin = from_x ? 0 : 0.5;
  unicon__blas_begin();
  const unicon_status status = unicon__parallel_rounds(
      ctx, "metrics", begin, begin + 0.5, (g.queries + g.block - 1) / g.block, rank_block, &g);
  unicon__blas_end();
  UNICON_TRY(status);
  for (int64_t i = 0; per_query && i < g.queries; i++)
    per_query[i] = g.value[i * UNICON_METRIC_COUNT + UNICON_MEAN_RANK];
  UNICON_TRY(summarize(ctx, &g, intervals, seed, out));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- unicon_evaluate, unicon_ranks -------------------------------------------------------- */

/* Both sides embedded, with the pairs between them. */
typedef struct scene {
  const unicon_pairs *pairs;
  float *zx, *zy;
  int64_t r;
} scene;

static unicon_status open_scene(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                const unicon_pairs *pairs, scene *out) {
  unicon__lens lens_x, lens_y;
  UNICON_TRY(unicon__lens_open(ctx, x, &lens_x));
  UNICON_TRY(unicon__lens_open(ctx, y, &lens_y));
  const int64_t n_x = lens_x.count, n_y = lens_y.count, r = lens_x.r;
  if (r != lens_y.r)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "x has %lld dimensions and y has %lld; both must lie in one shared space",
                        (long long)r, (long long)lens_y.r);
  if (pairs->n_x != n_x || pairs->n_y != n_y)
    return unicon__fail(
        ctx, UNICON_ERR_SHAPE, "the pairs are for %lld by %lld rows, but there are %lld and %lld",
        (long long)pairs->n_x, (long long)pairs->n_y, (long long)n_x, (long long)n_y);
  *out = (scene){.pairs = pairs, .r = r};
  UNICON_NEW(ctx, out->zx, n_x * r);
  UNICON_NEW(ctx, out->zy, n_y * r);
  UNICON_TRY(unicon__lens_rows(ctx, &lens_x, 0, n_x, true, out->zx));
  return unicon__lens_rows(ctx, &lens_y, 0, n_y, true, out->zy);
}

/* What is wanted of the two directions; NULL: not that. */
typedef struct wanted {
  const unicon_options *options;
  unicon_metrics *metrics[2]; /* x to y, y to x */
  int64_t *rank[2];
} wanted;

static unicon_status run_direction(unicon_ctx *ctx, const scene *s, const wanted *w,
                                   int direction) {
  const bool from_x = direction == 0;
  const int64_t queries = from_x ? s->pairs->n_x : s->pairs->n_y;
  const bool intervals = unicon__word(w->options, UNICON__CI) == 0;
  unicon_metrics unused = {0}, *metrics = w->metrics[direction] ? w->metrics[direction] : &unused;
  double *rank;
  UNICON_NEW(ctx, rank, queries);
  UNICON_TRY(unicon__metrics(ctx, s->zx, s->zy, s->r, s->pairs, from_x, intervals,
                             (uint64_t)unicon__integer(w->options, UNICON__SEED), rank, metrics));
  for (int64_t i = 0; w->rank[direction] && i < queries; i++)
    w->rank[direction][i] = (int64_t)rank[i];
  unicon__drop(ctx, rank);
  return UNICON_OK;
}

static unicon_status run_both(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                              const unicon_pairs *pairs, const wanted *w) {
  scene s;
  UNICON_TRY(open_scene(ctx, x, y, pairs, &s));
  for (int direction = 0; direction < 2; direction++)
    if (w->metrics[direction] || w->rank[direction])
      UNICON_TRY(run_direction(ctx, &s, w, direction));
  return UNICON_OK;
}

static int64_t noted_count(const unicon_model *model, const char *key) {
  const char *text = unicon_model_meta(model, key);
  return text ? strtoll(text, NULL, 10) : -1;
}

/* Says so when the rows are those that the model was fitted on. They are read for it only where
 * their numbers agree. */
static unicon_status warn_training_rows(unicon_ctx *ctx, const unicon_view *x,
                                        const unicon_view *y) {
  const unicon_model *model = x->model;
  const char *noted = model ? unicon_model_meta(model, "input_hash") : NULL;
  if (!ctx->log || !noted || y->model != model || x->side != UNICON_X || y->side != UNICON_Y ||
      noted_count(model, "n_x") != x->rows->count || noted_count(model, "n_y") != y->rows->count)
    return UNICON_OK;
  const int64_t *keep;
  int64_t count;
  uint64_t hash = 0;
  UNICON_TRY(unicon__usable_rows(ctx, x->rows, false, true, &keep, &count, &hash));
  UNICON_TRY(unicon__usable_rows(ctx, y->rows, false, true, &keep, &count, &hash));
  if (strtoull(noted, NULL, 16) == hash)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the model was fitted on these rows: the result says nothing about new ones");
  return UNICON_OK;
}

/* Without pairs, row i belongs to row i. */
static unicon_status evaluate(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                              const unicon_pairs *pairs, const wanted *w) {
  unicon_pairs *own = NULL;
  if (!x || !y || !x->rows || !y->rows)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "evaluate needs two views and two results");
  unicon_status status = warn_training_rows(ctx, x, y);
  if (status == UNICON_OK && !pairs)
    status = unicon__pairs_identity(ctx, x->rows->count, y->rows->count, &own);
  if (status == UNICON_OK) status = run_both(ctx, x, y, pairs ? pairs : own, w);
  unicon_pairs_destroy(own);
  return status;
}

unicon_status unicon_evaluate(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                              const unicon_pairs *pairs, const unicon_options *options,
                              unicon_metrics *to_y, unicon_metrics *to_x) {
  UNICON_TRY(unicon__enter(ctx));
  if (!to_y || !to_x)
    return unicon__leave(
        ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT, "evaluate needs two views and two results"));
  const wanted w = {.options = options, .metrics = {to_y, to_x}};
  return unicon__leave(ctx, evaluate(ctx, x, y, pairs, &w));
}

unicon_status unicon_ranks(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                           const unicon_pairs *pairs, int64_t *to_y, int64_t *to_x) {
  UNICON_TRY(unicon__enter(ctx));
  const wanted w = {.rank = {to_y, to_x}};
  return unicon__leave(ctx, evaluate(ctx, x, y, pairs, &w));
}
