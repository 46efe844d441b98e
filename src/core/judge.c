/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judge.h"

#include <string.h>

#include "core/metrics.h"
#include "core/project.h"

double unicon__score(const unicon_metrics metrics[2]) {
  return (metrics[0].value[UNICON_MRR] + metrics[1].value[UNICON_MRR] +
          metrics[0].value[UNICON_HIT_10] + metrics[1].value[UNICON_HIT_10]) /
         4;
}

/* The first `rank` columns, rows scaled to length 1. */
static unicon_status leading_columns(unicon_ctx *ctx, const float *z, int64_t n, int64_t ld,
                                     int64_t rank, float **out) {
  UNICON_NEW(ctx, *out, n * rank);
  for (int64_t i = 0; i < n; i++) memcpy(*out + i * rank, z + i * ld, (size_t)rank * sizeof **out);
  unicon__scale_rows(*out, n, rank, rank, 1);
  return UNICON_OK;
}

unicon_status unicon__judge_embedded(unicon_ctx *ctx, const unicon__judge *judge, const float *zx,
                                     const float *zy, int64_t ld, int64_t rank,
                                     unicon_metrics metrics[2]) {
  unicon__block *frame = unicon__frame_open(ctx);
  float *x, *y;
  UNICON_TRY(leading_columns(ctx, zx, judge->x.count, ld, rank, &x));
  UNICON_TRY(leading_columns(ctx, zy, judge->y.count, ld, rank, &y));
  UNICON_TRY(unicon__metrics(ctx, x, y, rank, judge->pairs, true, false, 0, NULL, &metrics[0]));
  UNICON_TRY(unicon__metrics(ctx, x, y, rank, judge->pairs, false, false, 0, NULL, &metrics[1]));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__judge_weights(unicon_ctx *ctx, const unicon__judge *judge, const float *fx,
                                    const float *fy, int64_t r, unicon_metrics metrics[2]) {
  unicon__block *frame = unicon__frame_open(ctx);
  float *zx, *zy;
  UNICON_NEW(ctx, zx, judge->x.count * r);
  UNICON_NEW(ctx, zy, judge->y.count * r);
  UNICON_TRY(unicon__project(ctx, &judge->x, fx, r, 0, judge->x.count, false, false, zx, r));
  UNICON_TRY(unicon__project(ctx, &judge->y, fy, r, 0, judge->y.count, false, false, zy, r));
  UNICON_TRY(unicon__judge_embedded(ctx, judge, zx, zy, r, r, metrics));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
