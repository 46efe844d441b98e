/* SPDX-License-Identifier: Apache-2.0 */
#include "score/ranks_device.h"

#include <math.h>

bool unicon__ranks_device_serves(unicon_ctx *ctx, const unicon__ranks_job *job) {
  const double flops = 2 * (double)job->queries * (double)job->candidates * (double)job->width;
  return unicon__device_serves(ctx, ranks, flops) && unicon__device_serves(ctx, nearest, flops);
}

/* What a job is before anything has been counted. */
static void clear(const unicon__ranks_job *job) {
  for (int64_t k = 0; k < job->start[job->queries]; k++) job->above[k] = 0;
  for (int64_t i = 0; job->top && i < job->queries; i++) job->top[i] = -INFINITY, job->sum[i] = 0;
  for (int64_t i = 0; job->id && i < job->queries * job->k; i++) job->id[i] = -1;
}

/* A block of queries against a block of candidates. */
static unicon_status count_block(unicon_ctx *ctx, const unicon__ranks_job *job,
                                 const unicon__device_scores *s, int64_t first) {
  const unicon__device_sparse hidden = {s->queries, job->hidden_start + first, job->hidden, NULL};
  const unicon__device_ranks ranks = {.start = job->start + first,
                                      .threshold = job->threshold,
                                      .hidden = &hidden,
                                      .above = job->above,
                                      .top = job->top ? job->top + first : NULL,
                                      .sum = job->sum ? job->sum + first : NULL};
  UNICON_TRY(unicon__on(ctx, ranks, s, &ranks));
  if (!job->id) return UNICON_OK;
  return unicon__on(ctx, nearest, s, job->k, job->score + first * job->k, job->id + first * job->k);
}

static unicon_status fill(unicon_ctx *ctx, unicon__matrix *to, const float *rows, int64_t first,
                          int64_t count, int64_t width) {
  return unicon__on(ctx, upload, to, 0, count, rows + first * width, UNICON__ELEMENT_F32,
                    width * (int64_t)sizeof *rows);
}

unicon_status unicon__ranks_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const unicon__ranks_job *job = state;
  const double bytes = 8 * (double)job->width;
  const int64_t part_q = unicon__device_rows(ctx, job->queries, bytes, 0.4);
  const int64_t part_c = unicon__device_rows(ctx, job->candidates, bytes, 0.4);
  unicon__matrix *query, *candidate;
  UNICON_TRY(unicon__device_new(ctx, room, part_q, job->width, UNICON__ELEMENT_F32, &query));
  UNICON_TRY(unicon__device_new(ctx, room, part_c, job->width, UNICON__ELEMENT_F32, &candidate));
  clear(job);
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
                                       .self = job->self ? job->self + q : NULL};
      if (c == 0 || part_q < job->queries)
        UNICON_TRY(fill(ctx, query, job->query, q, rows, job->width));
      UNICON_TRY(count_block(ctx, job, &s, q));
    }
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}
