/* SPDX-License-Identifier: Apache-2.0 */
/* Exact nearest neighbours by balanced score or cosine. The base streams by in blocks; float32
 * products filter, and whatever could enter a query's list is scored again in float64, so the
 * result does not depend on tiles, threads or the BLAS. Memory: queries by (r + k), and one block
 * of the base. */
#include "use/search.h"

#include <math.h>

#include "base/parallel.h"
#include "io/object.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { BASE_ROWS = 4096, QUERY_ROWS = 128, SCORE_COLS = 1024 };

/* A query's best so far: a heap with the worst on top. */
typedef struct hit {
  double score;
  int64_t id;
} hit;

typedef struct search {
  int64_t queries, r, k;
  int64_t rows; /* queries at a time */
  const float *q, *base;
  int64_t first, count; /* of the base block */
  hit *heap;            /* k per query */
  int64_t *filled;      /* per query */
  float *scores;        /* per worker: `rows` by SCORE_COLS */
} search;

static bool worse(hit a, hit b) {
  return a.score < b.score || (a.score == b.score && a.id > b.id);
}

static void sift_down(hit *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && worse(heap[child + 1], heap[child])) child++;
    if (!worse(heap[child], heap[at])) return;
    const hit held = heap[at];
    heap[at] = heap[child];
    heap[child] = held;
    at = child;
  }
}

static void heap_offer(hit *heap, int64_t *filled, int64_t k, hit value) {
  if (*filled < k) {
    heap[(*filled)++] = value;
    if (*filled == k)
      for (int64_t at = k / 2; at-- > 0;) sift_down(heap, k, at);
  } else if (worse(heap[0], value)) {
    heap[0] = value;
    sift_down(heap, k, 0);
  }
}

static void offer_row(search *s, int64_t query, int64_t column, const float *scores,
                      int64_t count) {
  const unicon__vec *vec = unicon__vec_best();
  const double margin = unicon__score_error(s->r);
  hit *heap = s->heap + query * s->k;
  for (int64_t j = 0; j < count; j++) {
    if (s->filled[query] == s->k && (double)scores[j] < heap[0].score - margin) continue;
    const double exact = vec->dot(s->q + query * s->r, s->base + (column + j) * s->r, s->r);
    heap_offer(heap, &s->filled[query], s->k, (hit){exact, s->first + column + j});
  }
}

static void search_block(void *state, int64_t item, int worker) {
  search *s = state;
  const int64_t first = item * s->rows, left = s->queries - first;
  const int64_t rows = left < s->rows ? left : s->rows;
  float *scores = s->scores + (int64_t)worker * s->rows * SCORE_COLS;
  for (int64_t column = 0; column < s->count; column += SCORE_COLS) {
    const int64_t cols = s->count - column < SCORE_COLS ? s->count - column : SCORE_COLS;
    unicon__sgemm(false, true, rows, cols, s->r, 1, s->q + first * s->r, s->r,
                  s->base + column * s->r, s->r, 0, scores, SCORE_COLS);
    for (int64_t i = 0; i < rows; i++)
      offer_row(s, first + i, column, scores + i * SCORE_COLS, cols);
  }
}

/* Best first. */
static void write_list(const search *s, int64_t query, int64_t *ids, float *scores) {
  hit *heap = s->heap + query * s->k;
  const int64_t count = s->filled[query];
  for (int64_t at = count / 2; at-- > 0;) sift_down(heap, count, at);
  for (int64_t left = count; left > 0; left--) {
    ids[left - 1] = heap[0].id;
    scores[left - 1] = (float)heap[0].score;
    heap[0] = heap[left - 1];
    sift_down(heap, left - 1, 0);
  }
}

/* Heaps of the `kept` best, and room for scores. */
static unicon_status search_open(unicon_ctx *ctx, search *s) {
  s->rows = s->queries < QUERY_ROWS ? s->queries : QUERY_ROWS;
  const int64_t items = s->rows > 0 ? (s->queries + s->rows - 1) / s->rows : 0;
  UNICON_NEW(ctx, s->heap, s->queries * s->k);
  UNICON_NEW(ctx, s->filled, s->queries);
  UNICON_NEW(ctx, s->scores, unicon__workers_for(ctx, items) * s->rows * SCORE_COLS);
  return UNICON_OK;
}

/* Rows first .. first+count-1 of the base, which are in s->base. */
static void search_feed(unicon_ctx *ctx, search *s, int64_t first, int64_t count) {
  s->first = first;
  s->count = count;
  unicon__blas_begin();
  unicon__parallel_for(ctx, (s->queries + s->rows - 1) / s->rows, search_block, s);
  unicon__blas_end();
}

/* The lists of all queries, k long. */
static void search_close(const search *s, int64_t k, int64_t *ids, float *scores) {
  for (int64_t i = 0; i < s->queries; i++) {
    write_list(s, i, ids + i * k, scores + i * k);
    for (int64_t j = s->k; j < k; j++) ids[i * k + j] = -1, scores[i * k + j] = -INFINITY;
  }
}

unicon_status unicon__nearest(unicon_ctx *ctx, const float *q, int64_t queries, const float *base,
                              int64_t count, int64_t width, int64_t k, int64_t *ids,
                              float *scores) {
  unicon__block *frame = unicon__frame_open(ctx);
  search s = {.queries = queries, .r = width, .k = k < count ? k : count, .q = q, .base = base};
  UNICON_TRY(search_open(ctx, &s));
  UNICON_TRY(unicon__poll(ctx));
  if (queries > 0) search_feed(ctx, &s, 0, count);
  search_close(&s, k, ids, scores);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Vectors embedded before may have one column more than the queries: rows of form INDEX. */
static unicon_status open_base(unicon_ctx *ctx, const unicon_view *base, const unicon__lens *query,
                               unicon__lens *out) {
  if (base->model || base->form != UNICON_FORM_RAW || base->rows->width != query->r + 1)
    return unicon__lens_open(ctx, base, out);
  unicon_view index = *base;
  index.form = UNICON_FORM_INDEX;
  return unicon__lens_open(ctx, &index, out);
}

unicon_status unicon__search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base,
                             int64_t k, int64_t *ids, float *scores) {
  unicon__lens lens_q, lens_b;
  unicon__meeting meeting;
  UNICON_TRY(unicon__lens_open(ctx, queries, &lens_q));
  if (!base || !base->rows) return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a view needs rows");
  UNICON_TRY(open_base(ctx, base, &lens_q, &lens_b));
  UNICON_TRY(unicon__meet(ctx, &lens_q, &lens_b, &meeting));
  if (k < 1)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "k is %lld; accepted: 1 or more", (long long)k);
  UNICON_NEED(ctx, ids);
  UNICON_NEED(ctx, scores);
  const int64_t n = lens_b.count;
  search s = {.queries = lens_q.count, .r = meeting.width, .k = k < n ? k : n};
  float *q, *block;
  UNICON_NEW(ctx, q, s.queries * s.r);
  UNICON_TRY(unicon__meeting_queries(ctx, &meeting, 0, s.queries, q));
  UNICON_NEW(ctx, block, (n < BASE_ROWS ? n : BASE_ROWS) * s.r);
  s.q = q;
  s.base = block;
  UNICON_TRY(search_open(ctx, &s));
  for (int64_t first = 0; first < n; first += BASE_ROWS) {
    const int64_t count = n - first < BASE_ROWS ? n - first : BASE_ROWS;
    UNICON_TRY(unicon__progress(ctx, "search", (double)first / (double)n));
    UNICON_TRY(unicon__meeting_candidates(ctx, &meeting, first, count, block));
    search_feed(ctx, &s, first, count);
  }
  search_close(&s, k, ids, scores);
  return UNICON_OK;
}

unicon_status unicon_search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base,
                            int64_t k, int64_t *ids, float *scores) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, unicon__search(ctx, queries, base, k, ids, scores));
}
