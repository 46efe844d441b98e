/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks without an n_x by n_y matrix. For a query with positives of exact (float64) scores
 * t_0 >= t_1 >= ..., the rank of positive k is
 *     1 + k + #{candidates j that are no match : s_j >= t_k}
 * so a tie counts against us. Tiles of float32 products decide all but the near ties, which are
 * scored again in float64: the result does not depend on tiles, threads or the BLAS. */
#include "score/retrieval.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "linalg/vec.h"
#include "score/ranks_device.h"

enum {
  QUERY_ROWS = 128, /* by SCORE_COLS: 512 KiB of scores, in the cache of a core */
  SCORE_COLS = 1024,
  RESAMPLES = 1000 /* a bound of 95 % stands on 25 of them */
};

/* Scores of which the largest is looked at first. */
enum { AT_ONCE = 64 };

/* Places for the positives of a block of queries: fewer queries where each has many. */
enum { BLOCK_POSITIVES = 1 << 18, FEWEST_ROWS = 8 };

/* Few blocks of queries share the candidates among the threads: so many cells are wanted, of so
 * many candidates at least. By the numbers of rows alone, for means of scores are sums over cells.
 */
enum { CELLS_WANTED = 32, FEWEST_CANDIDATES = 4 * SCORE_COLS };

const char *const unicon__metric_name[UNICON__METRIC_COUNT] = {
    "hit@1", "hit@5", "hit@10",  "recall@1",    "recall@5", "recall@10",
    "mrr",   "map",   "ndcg@10", "median_rank", "mean_rank"};

/* A query's best candidates so far: the first is the one to beat. */
typedef struct best_list {
  int64_t count, id[UNICON__HUB_TOP];
  double score[UNICON__HUB_TOP];
} best_list;

/* What a query's other candidates look like. */
typedef struct others {
  double top, sum;
  int64_t count;
} others;

/* By what rows are ranked: their first columns. What is found out about that. */
typedef struct scale {
  int64_t columns;
  atomic_int_least64_t *found; /* per candidate, or NULL */
  double *margin;              /* per query, or NULL */
  double *value; /* UNICON__METRIC_COUNT per query; a first rank of 0: no match to find */
} scale;

enum { ALL, PLAIN, SCALES }; /* by all columns; by all but the last */

typedef struct ranking {
  const float *query, *candidate;
  int64_t queries, candidates, width;
  const unicon_pairs *pairs;
  bool from_x;
  scale by[SCALES];
  int scales;          /* 1: by all columns alone */
  int64_t most;        /* longest list of positives */
  int64_t block;       /* queries at a time */
  unicon__share own;   /* blocks of this process */
  int64_t cells, span; /* of a row of cells, and candidates of one */
  float *scores;       /* per worker: block by SCORE_COLS */
  /* per slot, and where there are several cells then per block of queries; for each scale: */
  double *threshold; /* block by most */
  int64_t *above;    /* block by most */
  best_list *best;   /* one per query of the block, or NULL */
  others *other;     /* likewise */
  int64_t slots;
} ranking;

static unicon__partners positives(const ranking *g, int64_t query) {
  return g->from_x ? unicon__positives_x(g->pairs, query) : unicon__positives_y(g->pairs, query);
}

static double exact_score(const ranking *g, int by, int64_t query, int64_t candidate) {
  return unicon__vec_best()->dot(g->query + query * g->width, g->candidate + candidate * g->width,
                                 g->by[by].columns);
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
  for (int64_t k = first; k < first + length; k++) scores[unicon__partner(p, k) - from] = -INFINITY;
}

/* A row does not find itself. */
static void hide_self(const ranking *g, int64_t query, int64_t from, int64_t count, float *scores) {
  const int64_t self =
      g->from_x ? unicon__self_x(g->pairs, query) : unicon__self_y(g->pairs, query);
  if (self >= from && self < from + count) scores[self - from] = -INFINITY;
}

/* Scores of a query with the candidates of a tile. */
typedef struct strip {
  int64_t from, count;
  float *score;
  float most[SCORE_COLS / AT_ONCE]; /* of AT_ONCE scores no one is larger */
} strip;

/* AT_ONCE scores from `first` on: where they end; whether none of them is as large as `lowest`. */
static int64_t strip_end(const strip *s, int64_t first) {
  return unicon__least(s->count, first + AT_ONCE);
}

static bool strip_below(const strip *s, int64_t first, double lowest) {
  return (double)s->most[first / AT_ONCE] < lowest;
}

/* Counts, for each threshold of the query, the candidates of this tile at or above it. */
static void count_above(const ranking *g, int by, int64_t query, const strip *s,
                        const double *threshold, int64_t *above) {
  const unicon__partners p = positives(g, query);
  const double margin = unicon__score_error(g->width, 2);
  const double lowest = threshold[p.count - 1] - margin;
  hide(p, s->from, s->count, s->score);
  if (g->pairs->ignore.count > 0)
    hide(unicon__list_at(g->from_x ? &g->pairs->ignore.by_x : &g->pairs->ignore.by_y, query),
         s->from, s->count, s->score);
  for (int64_t first = 0; first < s->count; first += AT_ONCE) {
    if (strip_below(s, first, lowest)) continue;
    for (int64_t j = first; j < strip_end(s, first); j++) {
      const double score = (double)s->score[j];
      if (score < lowest) continue;
      if (isnan(score)) { /* counts against us */
        above[0]++;
        continue;
      }
      int64_t at = first_beaten(threshold, p.count, score - margin);
      if (at > 0 && score + margin >= threshold[at - 1])
        at = first_beaten(threshold, p.count, exact_score(g, by, query, s->from + j));
      if (at < p.count) above[at]++;
    }
  }
}

/* Puts a candidate into a list that is kept best last; they come by row, and of equals the first
 * stays. */
static void insert(best_list *best, int64_t id, double score) {
  const bool full = best->count == UNICON__HUB_TOP;
  if (full && score <= best->score[0]) return;
  int64_t at = full ? 0 : best->count++;
  for (; !full && at > 0 && best->score[at - 1] >= score; at--) {
    best->score[at] = best->score[at - 1];
    best->id[at] = best->id[at - 1];
  }
  for (; full && at + 1 < best->count && best->score[at + 1] < score; at++) {
    best->score[at] = best->score[at + 1];
    best->id[at] = best->id[at + 1];
  }
  best->score[at] = score;
  best->id[at] = id;
}

/* Offers the candidates of a tile to a query's list of the first ones. */
static void offer(const ranking *g, int by, int64_t query, const strip *s, best_list *best) {
  const double margin = unicon__score_error(g->width, 2);
  for (int64_t first = 0; first < s->count; first += AT_ONCE) {
    if (best->count == UNICON__HUB_TOP && strip_below(s, first, best->score[0] - margin)) continue;
    for (int64_t j = first; j < strip_end(s, first); j++) {
      if (s->score[j] == -INFINITY) continue; /* hidden */
      if (best->count < UNICON__HUB_TOP || (double)s->score[j] >= best->score[0] - margin)
        insert(best, s->from + j, exact_score(g, by, query, s->from + j));
    }
  }
}

/* Takes in the scores of a tile that are no matches; those hidden are -inf. Sums in LANES, in a
 * fixed order. */
static void observe(others *other, int64_t count, const float *scores) {
  enum { LANES = 8 }; /* sums side by side, as wide as a vector of float64 with AVX-512 */
  double sum[LANES] = {0};
  int64_t seen[LANES] = {0};
  for (int64_t j = 0; j < count; j++) {
    const bool hidden = scores[j] == -INFINITY;
    sum[j % LANES] += hidden ? 0 : (double)scores[j];
    seen[j % LANES] += !hidden;
  }
  const double top = (double)unicon__vec_best()->max(scores, count);
  other->top = top > other->top ? top : other->top;
  for (int k = 0; k < LANES; k++) {
    other->sum += sum[k];
    other->count += seen[k];
  }
}

static double margin_of(const others *other, double match) {
  const double gap = match - (other->count ? other->sum / (double)other->count : match);
  const double share = gap > 0 ? (match - other->top) / gap : -1;
  return other->count == 0 ? 1 : share < -1 ? -1 : share;
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
    value[UNICON__HIT_1 + c] = first <= cut[c];
    value[UNICON__RECALL_1 + c] = within[c] / (double)count;
  }
  value[UNICON__MRR] = 1 / first;
  value[UNICON__MEAN_PRECISION] = precision / (double)count;
  value[UNICON__NDCG_10] = gain / ideal;
  value[UNICON__MEDIAN_RANK] = first;
  value[UNICON__MEAN_RANK] = first;
}

/* What is known of a block of queries by a scale: of a cell, by its slot, or of all its cells so far. */
typedef struct desk {
  double *threshold;
  int64_t *above;
  best_list *best;
  others *other;
} desk;

static desk desk_of(const ranking *g, int64_t number, int by) {
  const int64_t first = (number * g->scales + by) * g->block;
  return (desk){g->threshold + first * g->most, g->above + first * g->most,
                g->best ? g->best + first : NULL, g->other ? g->other + first : NULL};
}

static void desk_clear(const ranking *g, int by, const desk *d, int64_t first, int64_t rows) {
  memset(d->above, 0, (size_t)(g->block * g->most) * sizeof *d->above);
  for (int64_t i = 0; i < rows; i++) {
    const unicon__partners p = positives(g, first + i);
    for (int64_t k = 0; k < p.count; k++)
      d->threshold[i * g->most + k] = exact_score(g, by, first + i, unicon__partner(p, k));
    qsort(d->threshold + i * g->most, (size_t)p.count, sizeof *d->threshold, descending);
    if (d->best) d->best[i].count = 0;
    if (d->other) d->other[i] = (others){-INFINITY, 0, 0};
  }
}

static int64_t rows_of(const ranking *g, unicon__cell cell) {
  const int64_t left = g->queries - (g->own.first + cell.row) * g->block;
  return left < g->block ? left : g->block;
}

/* The metrics of a block of queries whose candidates have all been seen. */
static void finish(const ranking *g, int by, const desk *d, int64_t first, int64_t rows) {
  const scale *s = &g->by[by];
  for (int64_t i = 0; i < rows; i++) {
    const int64_t count = positives(g, first + i).count;
    for (int64_t k = 0; s->found && k < d->best[i].count; k++)
      atomic_fetch_add(&s->found[d->best[i].id[k]], 1);
    if (count == 0) continue;
    query_metrics(d->above + i * g->most, count, s->value + (first + i) * UNICON__METRIC_COUNT);
    if (s->margin) s->margin[first + i] = margin_of(&d->other[i], d->threshold[i * g->most]);
  }
}

/* Takes in a query's scores of a tile; those of hidden candidates become -inf. */
static void look(const ranking *g, int by, const desk *d, int64_t query, int64_t row,
                 const strip *s) {
  if (g->by[by].found) offer(g, by, query, s, &d->best[row]);
  if (positives(g, query).count == 0) return;
  count_above(g, by, query, s, d->threshold + row * g->most, d->above + row * g->most);
  if (g->by[by].margin) observe(&d->other[row], s->count, s->score);
}

static void find_most(strip *s) {
  for (int64_t first = 0; first < s->count; first += AT_ONCE)
    s->most[first / AT_ONCE] =
        unicon__vec_best()->max(s->score + first, strip_end(s, first) - first);
}

/* s + own * last: rounding keeps the order, so the largest terms bound the sums. */
static void add_last(const strip *s, float own, const strip *last, strip *out) {
  for (int64_t j = 0; j < s->count; j++) out->score[j] = s->score[j] + own * last->score[j];
  for (int64_t k = 0; k * AT_ONCE < s->count; k++)
    out->most[k] = own < 0 ? INFINITY : s->most[k] + own * last->most[k];
}

/* The products of a tile are those of the scale of fewest columns; with the last column of both rows
 * they are the other's, rounded once more. */
static void rank_tile(const ranking *g, const desk d[SCALES], int64_t first, int64_t rows,
                      int64_t from, int64_t cols, float *tile) {
  float last_column[SCORE_COLS], sums[SCORE_COLS];
  strip last = {from, cols, last_column, {0}}, all = {from, cols, sums, {0}};
  const int64_t w = g->width;
  const bool both = g->scales > 1;
  unicon__sgemm(false, true, rows, cols, g->by[g->scales - 1].columns, 1, g->query + first * w, w,
                g->candidate + from * w, w, 0, tile, SCORE_COLS);
  for (int64_t j = 0; j < cols && both; j++) last_column[j] = g->candidate[(from + j) * w + w - 1];
  if (both) find_most(&last);
  for (int64_t i = 0; i < rows; i++) {
    strip s = {from, cols, tile + i * SCORE_COLS, {0}};
    hide_self(g, first + i, from, cols, s.score);
    find_most(&s);
    if (both) add_last(&s, g->query[(first + i) * w + w - 1], &last, &all);
    look(g, ALL, &d[ALL], first + i, i, both ? &all : &s);
    if (both) look(g, PLAIN, &d[PLAIN], first + i, i, &s);
  }
}

static void rank_cell(void *state, unicon__cell cell) {
  const ranking *g = state;
  const int64_t first = (g->own.first + cell.row) * g->block, rows = rows_of(g, cell);
  const int64_t end = unicon__least(g->candidates, (cell.col + 1) * g->span);
  desk d[SCALES];
  for (int by = 0; by < g->scales; by++) {
    d[by] = desk_of(g, cell.slot, by);
    desk_clear(g, by, &d[by], first, rows);
  }
  for (int64_t from = cell.col * g->span; from < end; from += SCORE_COLS)
    rank_tile(g, d, first, rows, from, unicon__least(SCORE_COLS, end - from),
              g->scores + cell.worker * g->block * SCORE_COLS);
  for (int by = 0; by < g->scales && g->cells == 1; by++) finish(g, by, &d[by], first, rows);
}

/* Adds what a cell has seen to what the cells before it in the row have, the first to nothing. */
static void add_desk(const ranking *g, int by, unicon__cell cell) {
  const int64_t first = (g->own.first + cell.row) * g->block, rows = rows_of(g, cell);
  const desk now = desk_of(g, cell.slot, by), all = desk_of(g, g->slots + cell.row, by);
  if (cell.col == 0) desk_clear(g, by, &all, first, rows);
  for (int64_t k = 0; k < rows * g->most; k++) all.above[k] += now.above[k];
  for (int64_t i = 0; i < rows; i++) {
    /* of equals in a list the first row is the last: it is offered first */
    for (int64_t k = now.best ? now.best[i].count : 0; k-- > 0;)
      insert(&all.best[i], now.best[i].id[k], now.best[i].score[k]);
    if (!now.other) continue;
    all.other[i].top = fmax(all.other[i].top, now.other[i].top);
    all.other[i].sum += now.other[i].sum;
    all.other[i].count += now.other[i].count;
  }
  if (cell.col + 1 == g->cells) finish(g, by, &all, first, rows);
}

static void add_cell(void *state, unicon__cell cell) {
  const ranking *g = state;
  for (int by = 0; by < g->scales; by++) add_desk(g, by, cell);
}

/* ---- on a device -------------------------------------------------------------------------- */

/* What came back, as the host's cells would have left it. */
static void take_back(const ranking *g, const unicon__ranks_job *job, const scale *s) {
  for (int64_t i = 0; i < g->queries; i++) {
    const int64_t count = job->start[i + 1] - job->start[i], at = job->start[i];
    for (int64_t k = i * job->k; job->id && k < (i + 1) * job->k; k++)
      if (job->id[k] >= 0) atomic_fetch_add(&s->found[job->id[k]], 1);
    if (count == 0) continue;
    query_metrics(job->above + at, count, s->value + i * UNICON__METRIC_COUNT);
    if (!s->margin) continue;
    const others other = {job->top[i], job->sum[i], job->count[i]};
    s->margin[i] = margin_of(&other, job->threshold[at]);
  }
}

static unicon_status rank_on_device(unicon_ctx *ctx, const ranking *g, bool *done) {
  unicon__ranks_job job[SCALES];
  for (int by = 0; by < g->scales; by++)
    job[by] = (unicon__ranks_job){.pairs = g->pairs,
                                  .from_x = g->from_x,
                                  .query = g->query,
                                  .candidate = g->candidate,
                                  .queries = g->queries,
                                  .candidates = g->candidates,
                                  .width = g->width,
                                  .columns = g->by[by].columns,
                                  .k = g->by[by].found ? UNICON__HUB_TOP : 0,
                                  .others = g->by[by].margin != NULL};
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(unicon__ranks_on_device(ctx, job, g->scales, done));
  for (int by = 0; by < g->scales && *done; by++) take_back(g, &job[by], &g->by[by]);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
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
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) out[m] = 0;
  for (int64_t k = 0; k < count; k++) {
    const int64_t pick = draw < 0 ? k
                                  : unicon__below(seed, UNICON__STREAM_BOOTSTRAP, (uint64_t)k,
                                                  (uint32_t)draw, count);
    const double *row = value + list[pick] * UNICON__METRIC_COUNT;
    for (int m = 0; m < UNICON__METRIC_COUNT; m++) out[m] += row[m];
    ranks[k] = row[UNICON__MEDIAN_RANK];
  }
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) out[m] /= (double)count;
  out[UNICON__MEDIAN_RANK] = median(ranks, count);
}

typedef struct bootstrap {
  const double *value;
  const int64_t *list;
  int64_t count;
  uint64_t seed;
  double *ranks; /* per worker */
  double *draws; /* RESAMPLES by UNICON__METRIC_COUNT */
} bootstrap;

static void resample(void *state, unicon__cell cell) {
  const bootstrap *b = state;
  average(b->value, b->list, b->count, cell.row, b->seed, b->ranks + cell.worker * b->count,
          b->draws + cell.row * UNICON__METRIC_COUNT);
}

/* The central 95 % of the resampled means. */
static unicon_status intervals_of(unicon_ctx *ctx, bootstrap *b, unicon__metrics *out) {
  double column[RESAMPLES];
  UNICON_NEW(ctx, b->draws, RESAMPLES * UNICON__METRIC_COUNT);
  UNICON_TRY(unicon__sweep_rows(ctx, "intervals", NULL, RESAMPLES, resample, b));
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
    for (int k = 0; k < RESAMPLES; k++) column[k] = b->draws[k * UNICON__METRIC_COUNT + m];
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

static unicon_status summarize(unicon_ctx *ctx, const ranking *g, const double *value,
                               bool intervals, uint64_t seed, unicon__metrics *out) {
  static const int cut[3] = {1, 5, 10};
  int64_t *list;
  bootstrap b = {.value = value, .seed = seed};
  UNICON_NEW(ctx, list, g->queries);
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) out->low[m] = out->high[m] = out->chance[m] = NAN;
  for (int c = 0; c < 3; c++) out->chance[UNICON__HIT_1 + c] = 0;
  for (int64_t i = 0; i < g->queries; i++) {
    const int64_t count = positives(g, i).count;
    if (count == 0) continue;
    list[b.count++] = i;
    const int64_t self = g->from_x ? unicon__self_x(g->pairs, i) : unicon__self_y(g->pairs, i);
    const int64_t ignored =
        unicon__list_at(g->from_x ? &g->pairs->ignore.by_x : &g->pairs->ignore.by_y, i).count +
        (self >= 0);
    for (int c = 0; c < 3; c++)
      out->chance[UNICON__HIT_1 + c] += chance_hit(g->candidates - ignored, count, cut[c]);
  }
  if (b.count == 0)
    return unicon__fail(ctx, UNICON_ERR_PAIRS, "no row has a match, so there is nothing to score");
  for (int c = 0; c < 3; c++) out->chance[UNICON__HIT_1 + c] /= (double)b.count;
  UNICON_NEW(ctx, b.ranks, (intervals ? unicon__workers(ctx) : 1) * b.count);
  b.list = list;
  average(value, list, b.count, -1, 0, b.ranks, out->value);
  out->queries = b.count;
  out->candidates = g->candidates;
  out->pairs = g->pairs->positive.count;
  return intervals ? intervals_of(ctx, &b, out) : UNICON_OK;
}

/* Blocks of queries, and cells of candidates where there are few blocks. */
static int64_t cut_cells(ranking *g) {
  g->block = BLOCK_POSITIVES / g->most;
  g->block = g->block < FEWEST_ROWS ? FEWEST_ROWS : g->block > QUERY_ROWS ? QUERY_ROWS : g->block;
  const int64_t blocks = (g->queries + g->block - 1) / g->block;
  const int64_t wish = (CELLS_WANTED + blocks - 1) / blocks;
  const int64_t most = g->candidates / FEWEST_CANDIDATES, cells = wish < most ? wish : most;
  const int64_t tiles = (g->candidates + SCORE_COLS - 1) / SCORE_COLS;
  g->span = (cells > 1 ? (tiles + cells - 1) / cells : tiles) * SCORE_COLS;
  g->cells = g->span > 0 ? (g->candidates + g->span - 1) / g->span : 1;
  return blocks;
}

static unicon_status ranking_open(unicon_ctx *ctx, const unicon__retrieval *of, ranking *g) {
  for (int64_t i = 0; i < g->queries; i++) {
    const int64_t count = positives(g, i).count;
    g->most = count > g->most ? count : g->most;
  }
  const int64_t room = g->queries + QUERY_ROWS; /* of whole blocks */
  g->scales = of->plain ? SCALES : 1;
  for (int by = 0; by < g->scales; by++) {
    scale *s = &g->by[by];
    s->columns = g->width - by;
    UNICON_NEW(ctx, s->value, room * UNICON__METRIC_COUNT);
    if (by == ALL ? of->found : of->plain_found) UNICON_NEW(ctx, s->found, g->candidates);
    if (by == ALL && of->margin) UNICON_NEW(ctx, s->margin, room);
  }
  return UNICON_OK;
}

/* What the blocks of the other processes gave. */
static unicon_status gather(unicon_ctx *ctx, const ranking *g, const scale *s) {
  double *found;
  const int64_t row = UNICON__METRIC_COUNT * (int64_t)sizeof *s->value;
  UNICON_TRY(unicon__gather_rows(ctx, &g->own, s->value, g->block * row));
  if (s->margin)
    UNICON_TRY(unicon__gather_rows(ctx, &g->own, s->margin, g->block * (int64_t)sizeof *s->margin));
  if (!s->found || !g->own.divided) return UNICON_OK;
  UNICON_NEW(ctx, found, g->candidates);
  for (int64_t j = 0; j < g->candidates; j++) found[j] = (double)s->found[j];
  UNICON_TRY(unicon__sum_all(ctx, &g->own, found, g->candidates));
  for (int64_t j = 0; j < g->candidates; j++) s->found[j] = (int64_t)found[j];
  unicon__drop(ctx, found);
  return UNICON_OK;
}

static unicon_status rank_on_host(unicon_ctx *ctx, ranking *g) {
  const double flops = 2 * (double)g->queries * (double)g->candidates * (double)g->width;
  g->own = unicon__share_of(ctx, cut_cells(g), 1, flops);
  const int64_t blocks = g->own.count;
  const int64_t workers = unicon__workers_for(ctx, blocks * g->cells);
  g->slots = g->cells > 1 ? unicon__sweep_slots(ctx, blocks * g->cells) : workers;
  const int64_t desks = (g->slots + (g->cells > 1 ? blocks : 0)) * g->block * g->scales;
  UNICON_NEW(ctx, g->scores, workers * g->block * SCORE_COLS);
  UNICON_NEW(ctx, g->threshold, desks * g->most);
  UNICON_NEW(ctx, g->above, desks * g->most);
  if (g->by[ALL].found || g->by[PLAIN].found) UNICON_NEW(ctx, g->best, desks);
  if (g->by[ALL].margin) UNICON_NEW(ctx, g->other, desks);
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.name = "metrics",
                                                     .rows = blocks,
                                                     .cols = g->cells,
                                                     .region = &unicon__blas_region,
                                                     .state = g,
                                                     .body = rank_cell,
                                                     .fold_row = g->cells > 1 ? add_cell : NULL}));
  for (int by = 0; by < g->scales; by++) UNICON_TRY(gather(ctx, g, &g->by[by]));
  return UNICON_OK;
}

/* What was wanted beside the metrics. */
static void hand_out(const ranking *g, const unicon__retrieval *of, int64_t scored) {
  const scale *all = &g->by[ALL], *plain = &g->by[PLAIN];
  for (int64_t i = 0; of->rank && i < g->queries; i++)
    of->rank[i] = all->value[i * UNICON__METRIC_COUNT + UNICON__MEAN_RANK];
  for (int64_t j = 0; of->found && j < g->candidates; j++) of->found[j] = all->found[j];
  for (int64_t j = 0; of->plain_found && j < g->candidates; j++)
    of->plain_found[j] = plain->found[j];
  if (of->margin) *of->margin = 0;
  for (int64_t i = 0; of->margin && i < g->queries; i++)
    *of->margin += all->margin[i] / (double)scored;
}

unicon_status unicon__retrieval_of(unicon_ctx *ctx, const unicon__retrieval *of,
                                   unicon__metrics *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon_pairs *pairs = of->pairs;
  ranking g = {.query = of->query,
               .candidate = of->candidate,
               .width = of->width,
               .pairs = pairs,
               .queries = of->from_x ? pairs->n_x : pairs->n_y,
               .candidates = of->from_x ? pairs->n_y : pairs->n_x,
               .from_x = of->from_x,
               .most = 1};
  bool done;
  UNICON_TRY(ranking_open(ctx, of, &g));
  UNICON_TRY(rank_on_device(ctx, &g, &done));
  if (!done) UNICON_TRY(rank_on_host(ctx, &g));
  UNICON_TRY(summarize(ctx, &g, g.by[ALL].value, of->intervals, of->seed, out));
  if (of->plain) UNICON_TRY(summarize(ctx, &g, g.by[PLAIN].value, false, 0, of->plain));
  hand_out(&g, of, out->queries);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__retrieval_counted(unicon_ctx *ctx, const unicon__ranks_job *job,
                                        double *margin, unicon__metrics *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon__retrieval of = {.pairs = job->pairs, .from_x = job->from_x, .margin = margin};
  ranking g = {.pairs = job->pairs,
               .queries = job->queries,
               .candidates = job->candidates,
               .from_x = job->from_x,
               .most = 1};
  UNICON_TRY(ranking_open(ctx, &of, &g));
  take_back(&g, job, &g.by[ALL]);
  UNICON_TRY(summarize(ctx, &g, g.by[ALL].value, false, 0, out));
  hand_out(&g, &of, out->queries);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

void unicon__hubness(const int64_t *found, int64_t count, double *skew, double *never) {
  double sum = 0, square = 0, cube = 0;
  int64_t none = 0;
  for (int64_t j = 0; j < count; j++) {
    sum += (double)found[j];
    none += found[j] == 0;
  }
  const double mean = sum / (double)count;
  for (int64_t j = 0; j < count; j++) {
    const double gap = (double)found[j] - mean;
    square += gap * gap / (double)count;
    cube += gap * gap * gap / (double)count;
  }
  *skew = square > 0 ? cube / (square * sqrt(square)) : 0;
  *never = (double)none / (double)count;
}
