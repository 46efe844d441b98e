/* SPDX-License-Identifier: Apache-2.0 */
#include "score/ranks_device.h"

#include <math.h>
#include <stdlib.h>

#include "base/sweep.h"
#include "linalg/vec.h"

enum { MOST_JOBS = 2 };

/* Jobs as the device gets them. */
typedef struct handing {
  unicon__ranks_job *job;
  int jobs;
  int64_t *hidden_start, *hidden, *self; /* the same in all of them */
  double *score[MOST_JOBS];              /* of the first k of each */
} handing;

/* ---- what counts -------------------------------------------------------------------------- */

static unicon__partners positives(const unicon__ranks_job *job, int64_t query) {
  return job->from_x ? unicon__positives_x(job->pairs, query)
                     : unicon__positives_y(job->pairs, query);
}

static unicon__partners ignored(const unicon__ranks_job *job, int64_t query) {
  const unicon__lists *lists = job->from_x ? &job->pairs->ignore.by_x : &job->pairs->ignore.by_y;
  return unicon__list_at(lists, query);
}

static int descending(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left < right) - (left > right);
}

static void fill_thresholds(const unicon__ranks_job *job, int64_t query) {
  const unicon__partners p = positives(job, query);
  const float *row = job->query + query * job->width;
  double *threshold = job->threshold + job->start[query];
  /* the device sums products in another order: what that can change is a tie, and counts so */
  const double tie = 0x1p-51 * (double)job->width;
  for (int64_t k = 0; k < p.count; k++)
    threshold[k] = unicon__vec_best()->dot(row, job->candidate + unicon__partner(p, k) * job->width,
                                           job->columns) -
                   tie;
  qsort(threshold, (size_t)p.count, sizeof *threshold, descending);
}

/* Exact thresholds of a query, and what is hidden from it: two ascending lists made one. */
static void fill_query(void *state, unicon__cell cell) {
  const handing *h = state;
  const unicon__partners p = positives(h->job, cell.row), other = ignored(h->job, cell.row);
  int64_t *to = h->hidden + h->hidden_start[cell.row], k = 0, j = 0;
  for (int t = 0; t < h->jobs; t++) fill_thresholds(&h->job[t], cell.row);
  while (p.count > 0 && (k < p.count || j < other.count))
    *to++ = j == other.count || (k < p.count && unicon__partner(p, k) < other.item[j])
                ? unicon__partner(p, k++)
                : other.item[j++];
}

static unicon_status open_job(unicon_ctx *ctx, handing *h, int t) {
  unicon__ranks_job *job = &h->job[t];
  const int64_t n = job->queries;
  UNICON_NEW(ctx, job->start, n + 1);
  UNICON_NEW(ctx, job->count, n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = positives(job, i).count;
    job->start[i + 1] = job->start[i] + count;
    job->count[i] = job->candidates - count - ignored(job, i).count - (h->self[i] >= 0);
  }
  UNICON_NEW(ctx, job->threshold, job->start[n]);
  UNICON_NEW(ctx, job->above, job->start[n]);
  if (job->others) UNICON_NEW(ctx, job->top, n);
  if (job->others) UNICON_NEW(ctx, job->sum, n);
  if (job->k > 0) UNICON_NEW(ctx, job->id, n * job->k);
  if (job->k > 0) UNICON_NEW(ctx, h->score[t], n * job->k);
  for (int64_t i = 0; job->others && i < n; i++) job->top[i] = -INFINITY;
  for (int64_t k = 0; k < n * job->k; k++) job->id[k] = -1;
  return UNICON_OK;
}

static unicon_status hand_over(unicon_ctx *ctx, handing *h) {
  const unicon__ranks_job *job = h->job;
  const int64_t n = job->queries;
  UNICON_NEW(ctx, h->hidden_start, n + 1);
  UNICON_NEW(ctx, h->self, n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = positives(job, i).count;
    h->self[i] = job->from_x ? unicon__self_x(job->pairs, i) : unicon__self_y(job->pairs, i);
    h->hidden_start[i + 1] = h->hidden_start[i] + (count > 0 ? count + ignored(job, i).count : 0);
  }
  UNICON_NEW(ctx, h->hidden, h->hidden_start[n]);
  for (int t = 0; t < h->jobs; t++) UNICON_TRY(open_job(ctx, h, t));
  return unicon__sweep_rows(ctx, NULL, NULL, n, fill_query, h);
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* A block of queries, from `first` on, against a block of candidates. */
static unicon_status count_block(unicon_ctx *ctx, const handing *h, const unicon__device_scores *s,
                                 int64_t first) {
  const unicon__device_sparse hidden = {s->queries, h->hidden_start + first, h->hidden, NULL};
  unicon__device_ranks ranks[MOST_JOBS];
  for (int t = 0; t < h->jobs; t++) {
    const unicon__ranks_job *job = &h->job[t];
    ranks[t] = (unicon__device_ranks){.start = job->start + first,
                                      .threshold = job->threshold,
                                      .hidden = &hidden,
                                      .above = job->above,
                                      .top = job->top ? job->top + first : NULL,
                                      .sum = job->sum ? job->sum + first : NULL,
                                      .k = job->k,
                                      .score = job->k > 0 ? h->score[t] + first * job->k : NULL,
                                      .id = job->k > 0 ? job->id + first * job->k : NULL};
  }
  return unicon__on(ctx, ranks, s, ranks, h->jobs);
}

static unicon_status fill(unicon_ctx *ctx, unicon__matrix *to, const float *rows, int64_t first,
                          int64_t count, int64_t width) {
  return unicon__on(ctx, upload, to, 0, count, rows + first * width, UNICON__ELEMENT_F32,
                    width * (int64_t)sizeof *rows);
}

static unicon_status ranks_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const handing *h = state;
  const unicon__ranks_job *job = h->job;
  const double bytes = 8 * (double)job->width;
  const int64_t part_q = unicon__device_rows(ctx, job->queries, bytes, 0.4, 0);
  const int64_t part_c = unicon__device_rows(ctx, job->candidates, bytes, 0.4, 0);
  unicon__matrix *query, *candidate;
  UNICON_TRY(unicon__device_new(ctx, room, part_q, job->width, UNICON__ELEMENT_F32, &query));
  UNICON_TRY(unicon__device_new(ctx, room, part_c, job->width, UNICON__ELEMENT_F32, &candidate));
  const int stage = unicon__stage_begin(ctx, "metrics", 0);
  for (int64_t c = 0; c < job->candidates; c += part_c) {
    const int64_t cols = job->candidates - c < part_c ? job->candidates - c : part_c;
    UNICON_TRY(unicon__stage_step(ctx, c / part_c, (job->candidates + part_c - 1) / part_c));
    UNICON_TRY(fill(ctx, candidate, job->candidate, c, cols, job->width));
    for (int64_t q = 0; q < job->queries; q += part_q) {
      const int64_t rows = job->queries - q < part_q ? job->queries - q : part_q;
      const unicon__device_scores s = {.query = query,
                                       .candidate = candidate,
                                       .queries = rows,
                                       .candidates = cols,
                                       .width = job->width,
                                       .number = c,
                                       .self = h->self + q};
      if (c == 0 || part_q < job->queries)
        UNICON_TRY(fill(ctx, query, job->query, q, rows, job->width));
      UNICON_TRY(count_block(ctx, h, &s, q));
    }
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

unicon_status unicon__ranks_on_device(unicon_ctx *ctx, unicon__ranks_job *job, int jobs,
                                      bool *done) {
  handing h = {.job = job, .jobs = jobs};
  const double flops = 2 * (double)job->queries * (double)job->candidates * (double)job->width;
  int64_t total = 0;
  *done = false;
  for (int64_t i = 0; i < job->queries; i++) total += positives(job, i).count;
  if (!unicon__device_lists(ctx, 24 * (double)total) || !unicon__device_serves(ctx, ranks, flops))
    return UNICON_OK;
  UNICON_TRY(hand_over(ctx, &h));
  return unicon__device_run(ctx, "metrics", ranks_road, &h, done);
}
