/* SPDX-License-Identifier: Apache-2.0 */
/* Exact nearest neighbours by balanced score or cosine. The base streams by in blocks; float32
 * products filter, and whatever could enter a query's list is scored again in float64, so the
 * result does not depend on tiles, threads or the BLAS: it is the first k in the order of score and
 * row. Few queries share a block of the base among the threads, each with lists of its own that are
 * merged in the end. Memory: queries by (r + k), and one block of the base. */
#include "use/search.h"

#include <math.h>

#include "base/together.h"
#include "base/number.h"
#include "device/use.h"
#include "io/object.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum {
  BASE_ROWS = 4096,      /* of a block, at least ... */
  BASE_FLOATS = 1 << 22, /* ... and as many as this holds: 16 MB */
  QUERY_ROWS = 128,      /* by SCORE_COLS: 512 KiB of scores, in the cache of a core */
  SCORE_COLS = 1024,
  LANE_ROWS = 256,    /* of the base, at least */
  LANE_HITS = 1 << 22 /* in all lists: 64 MB */
};

/* A query's best so far: a heap with the worst on top. */
typedef struct hit {
  double score;
  int64_t id;
} hit;

typedef struct search {
  int64_t queries, r, k;
  int64_t rows;  /* queries at a time */
  int64_t lanes; /* parts of a base block */
  const float *q, *base;
  int64_t first, count;     /* of the base block */
  hit *heap;                /* k per query, for each lane */
  int64_t *filled;          /* likewise, per query */
  const unicon__lens *lens; /* of the base; NULL: rows of length 1 */
  double longest;           /* length of a query, at most */
  float *scores;            /* per worker: `rows` by SCORE_COLS */
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

/* `margin`: how far a score can be from the exact one. */
static void offer_row(const search *s, int64_t lane, int64_t query, int64_t column,
                      const float *scores, int64_t count, double margin) {
  const unicon__vec *vec = unicon__vec_best();
  hit *heap = s->heap + (lane * s->queries + query) * s->k;
  int64_t *filled = s->filled + lane * s->queries + query;
  for (int64_t j = 0; j < count; j++) {
    if (*filled == s->k && (double)scores[j] < heap[0].score - margin) continue;
    const double exact = vec->dot(s->q + query * s->r, s->base + (column + j) * s->r, s->r);
    heap_offer(heap, filled, s->k, (hit){exact, s->first + column + j});
  }
}

/* Some queries against a lane of the base block. */
static void search_cell(void *state, unicon__cell cell) {
  const search *s = state;
  const int64_t first = cell.row * s->rows, rows = unicon__least(s->rows, s->queries - first);
  const int64_t part = (s->count + s->lanes - 1) / s->lanes;
  const int64_t end = unicon__least((cell.col + 1) * part, s->count);
  float *scores = s->scores + cell.worker * s->rows * SCORE_COLS;
  for (int64_t column = cell.col * part; column < end; column += SCORE_COLS) {
    const int64_t cols = unicon__least(SCORE_COLS, end - column);
    const double longest =
        s->lens ? unicon__lens_longest(s->lens, s->base + column * s->r, cols, s->r) : 1.001;
    const double margin = unicon__score_error(s->r, s->longest * longest);
    unicon__sgemm(false, true, rows, cols, s->r, 1, s->q + first * s->r, s->r,
                  s->base + column * s->r, s->r, 0, scores, SCORE_COLS);
    for (int64_t i = 0; i < rows; i++)
      offer_row(s, cell.col, first + i, column, scores + i * SCORE_COLS, cols, margin);
  }
}

/* The lists of all lanes into that of the first. */
static void merge_lanes(const search *s, int64_t query) {
  for (int64_t lane = 1; lane < s->lanes; lane++) {
    const int64_t from = lane * s->queries + query;
    for (int64_t k = 0; k < s->filled[from]; k++)
      heap_offer(s->heap + query * s->k, &s->filled[query], s->k, s->heap[from * s->k + k]);
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

/* Vectors embedded before may have one column more than the queries: rows of form INDEX. */
static unicon_status open_base(unicon_ctx *ctx, unicon_view base, const unicon__lens *query,
                               unicon__lens *out) {
  if (!base.model && base.form == UNICON_FORM_RAW && base.rows->width == query->r + 1)
    base.form = UNICON_FORM_INDEX;
  return unicon__lens_open(ctx, &base, out);
}

/* Cells for all threads, unless the lists would take too much; and room for all of it. */
static unicon_status open_search(unicon_ctx *ctx, int64_t base_rows, search *s) {
  s->rows = unicon__least(s->queries, QUERY_ROWS);
  const int64_t blocks = s->rows > 0 ? (s->queries + s->rows - 1) / s->rows : 1;
  const int64_t wish = 4 * (int64_t)unicon__workers(ctx) / blocks;
  const int64_t allowed = LANE_HITS / (s->queries * s->k + 1);
  s->lanes = unicon__least(unicon__least(wish, allowed), base_rows / LANE_ROWS);
  if (s->lanes < 1) s->lanes = 1;
  UNICON_NEW(ctx, s->heap, s->lanes * s->queries * s->k);
  UNICON_NEW(ctx, s->filled, s->lanes * s->queries);
  UNICON_NEW(ctx, s->scores, unicon__workers_for(ctx, blocks * s->lanes) * s->rows * SCORE_COLS);
  return UNICON_OK;
}

static unicon__sweep sweep_of(search *s) {
  return (unicon__sweep){.share = 0.5,
                         .rows = s->rows > 0 ? (s->queries + s->rows - 1) / s->rows : 0,
                         .cols = s->lanes,
                         .region = &unicon__blas_region,
                         .state = s,
                         .body = search_cell};
}

/* The lists of all queries, k long. */
static void write_lists(const search *s, int64_t k, int64_t *ids, float *scores) {
  for (int64_t i = 0; i < s->queries; i++) {
    merge_lanes(s, i);
    write_list(s, i, ids + i * k, scores + i * k);
    for (int64_t j = s->k; j < k; j++) ids[i * k + j] = -1, scores[i * k + j] = -INFINITY;
  }
}

/* ---- on the device ------------------------------------------------------------------------ */

/* What the device's road is given: all of the base in memory, or a meeting that makes it. */
typedef struct finding {
  const float *q, *base;
  const unicon__meeting *meeting;
  int64_t queries, n, width, k, ld; /* ld: places of a list */
  int64_t *ids;
  float *scores;
} finding;

static void write_best(const finding *f, const double *best, const int64_t *id) {
  for (int64_t i = 0; i < f->queries; i++)
    for (int64_t j = 0; j < f->ld; j++) {
      const bool there = j < f->k && id[i * f->k + j] >= 0;
      f->ids[i * f->ld + j] = there ? id[i * f->k + j] : -1;
      f->scores[i * f->ld + j] = there ? (float)best[i * f->k + j] : -INFINITY;
    }
}

static unicon_status find_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const finding *f = state;
  const double bytes = 8.0 * (double)f->width;
  unicon__matrix *q, *candidate;
  float *made = NULL;
  double *best;
  int64_t *id;
  UNICON_TRY(unicon__device_copy(ctx, room, f->q, f->queries, f->width, f->width, &q));
  const int64_t block = unicon__device_rows(ctx, f->n, bytes, 0.5, f->base ? 0 : bytes / 2);
  UNICON_TRY(unicon__device_new(ctx, room, block, f->width, UNICON__ELEMENT_F32, &candidate));
  UNICON_NEW(ctx, best, f->queries * f->k);
  UNICON_NEW(ctx, id, f->queries * f->k);
  if (!f->base) UNICON_NEW(ctx, made, block * f->width);
  for (int64_t i = 0; i < f->queries * f->k; i++) id[i] = -1;
  const int stage = unicon__stage_begin(ctx, "search", 0.95);
  for (int64_t first = 0; first < f->n; first += block) {
    const int64_t count = unicon__least(block, f->n - first);
    UNICON_TRY(unicon__stage_step(ctx, first / block, (f->n + block - 1) / block));
    if (made) UNICON_TRY(unicon__meeting_candidates(ctx, f->meeting, first, count, made));
    UNICON_TRY(unicon__on(ctx, upload, candidate, 0, count,
                          made ? made : f->base + first * f->width, UNICON__ELEMENT_F32,
                          f->width * (int64_t)sizeof *made));
    const unicon__device_scores scores = {.query = q,
                                          .candidate = candidate,
                                          .queries = f->queries,
                                          .candidates = count,
                                          .width = f->width,
                                          .number = first};
    UNICON_TRY(unicon__on(ctx, nearest, &scores, f->k, best, id));
  }
  unicon__stage_end(ctx, stage);
  write_best(f, best, id);
  return UNICON_OK;
}

/* The lists of a device, where there is one for it. */
static unicon_status find_on_device(unicon_ctx *ctx, finding *f, bool *done) {
  const double flops = 2 * (double)f->queries * (double)f->n * (double)f->width;
  *done = false;
  if (f->queries == 0 || f->n == 0 || !unicon__device_serves(ctx, nearest, flops)) return UNICON_OK;
  return unicon__device_run(ctx, "search", find_road, f, done);
}

/* ---- the host's road ------------------------------------------------------------------------ */

unicon_status unicon__nearest(unicon_ctx *ctx, const float *q, int64_t queries, const float *base,
                              int64_t count, int64_t width, int64_t k, int64_t *ids,
                              float *scores) {
  finding f = {.q = q,
               .base = base,
               .queries = queries,
               .n = count,
               .width = width,
               .k = unicon__least(k, count),
               .ld = k,
               .ids = ids,
               .scores = scores};
  bool done;
  UNICON_TRY(find_on_device(ctx, &f, &done));
  if (done) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  search s = {.queries = queries,
              .r = width,
              .k = unicon__least(k, count),
              .q = q,
              .base = base,
              .count = count,
              .longest = 1.001};
  UNICON_TRY(open_search(ctx, count, &s));
  const unicon__sweep sweep = sweep_of(&s);
  UNICON_TRY(unicon__sweep_run(ctx, &sweep));
  write_lists(&s, k, ids, scores);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* All of the base, block after block, through `room`. */
static unicon_status scan_base(unicon_ctx *ctx, const unicon__meeting *meeting, int64_t n,
                               int64_t block, float *room, search *s) {
  const unicon__sweep sweep = sweep_of(s);
  s->base = room;
  const int stage = unicon__stage_begin(ctx, "search", 0.95);
  for (s->first = 0; s->first < n; s->first += block) {
    UNICON_TRY(unicon__stage_step(ctx, s->first / block, (n + block - 1) / block));
    s->count = unicon__least(block, n - s->first);
    UNICON_TRY(unicon__meeting_candidates(ctx, meeting, s->first, s->count, room));
    UNICON_TRY(unicon__sweep_run(ctx, &sweep));
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* The lists of some queries on the host. */
static unicon_status find_on_host(unicon_ctx *ctx, const finding *f, const unicon__share *own,
                                  const unicon__lens *query, const unicon__lens *base) {
  const int64_t wish = BASE_FLOATS / (f->width > 0 ? f->width : 1);
  const int64_t block = unicon__least(wish < BASE_ROWS ? BASE_ROWS : wish, f->n);
  search s = {.queries = own->count,
              .r = f->width,
              .k = f->k,
              .q = f->q + own->first * f->width,
              .longest = unicon__lens_longest(query, f->q, f->queries, f->width),
              .lens = base};
  float *room;
  UNICON_NEW(ctx, room, block * s.r);
  UNICON_TRY(open_search(ctx, block, &s));
  UNICON_TRY(scan_base(ctx, f->meeting, f->n, block, room, &s));
  write_lists(&s, f->ld, f->ids + own->first * f->ld, f->scores + own->first * f->ld);
  UNICON_TRY(unicon__gather_rows(ctx, own, f->ids, f->ld * (int64_t)sizeof *f->ids));
  return unicon__gather_rows(ctx, own, f->scores, f->ld * (int64_t)sizeof *f->scores);
}

unicon_status unicon__search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base,
                             int64_t k, int64_t *ids, float *scores) {
  unicon__lens lens_q, lens_b;
  unicon__meeting meeting;
  unicon_view own;
  UNICON_TRY(unicon__lens_open(ctx, queries, &lens_q));
  UNICON_TRY(unicon__view_take(ctx, base, &own));
  UNICON_TRY(open_base(ctx, own, &lens_q, &lens_b));
  UNICON_TRY(unicon__meet(ctx, &lens_q, &lens_b, &meeting));
  if (k < 1)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "k is %lld; accepted: 1 or more", (long long)k);
  UNICON_NEED(ctx, ids);
  UNICON_NEED(ctx, scores);
  finding f = {.meeting = &meeting,
               .queries = lens_q.count,
               .n = lens_b.count,
               .width = meeting.width,
               .k = unicon__least(k, lens_b.count),
               .ld = k,
               .ids = ids,
               .scores = scores};
  const double flops = 2 * (double)f.queries * (double)f.n * (double)f.width;
  const unicon__share share = unicon__share_of(ctx, f.queries, QUERY_ROWS, flops);
  bool done;
  float *q;
  UNICON_NEW(ctx, q, f.queries * f.width);
  UNICON_TRY(unicon__meeting_queries(ctx, &meeting, 0, f.queries, q));
  f.q = q;
  UNICON_TRY(find_on_device(ctx, &f, &done));
  return done ? UNICON_OK : find_on_host(ctx, &f, &share, &lens_q, &lens_b);
}

static long long rows_in(const unicon_view *view) {
  return view && view->rows ? (long long)view->rows->count : 0;
}

unicon_status unicon_search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base,
                            int64_t k, int64_t *ids, float *scores) {
  UNICON_TRY(unicon__enter(ctx));
  unicon_status status =
      unicon__together_begin(ctx, NULL, "search of %lld rows for %lld, %lld each", rows_in(base),
                             rows_in(queries), (long long)k);
  if (status == UNICON_OK) status = unicon__search(ctx, queries, base, k, ids, scores);
  return unicon__leave(ctx, unicon__together_end(ctx, status));
}
