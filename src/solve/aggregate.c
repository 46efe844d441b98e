/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/aggregate.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* 1 for scores within three robust standard deviations below the median, else 0. */
static unicon_status keep_inliers(unicon_ctx *ctx, const double *score, int64_t count,
                                  double *weight) {
  double *sorted;
  UNICON_NEW(ctx, sorted, count);
  memcpy(sorted, score, (size_t)count * sizeof *sorted);
  const double middle = unicon__median(sorted, count);
  for (int64_t b = 0; b < count; b++) sorted[b] = fabs(score[b] - middle);
  const double spread = 1.4826 * unicon__median(sorted, count);
  int64_t dropped = 0;
  for (int64_t b = 0; b < count; b++) {
    weight[b] = score[b] >= middle - 3 * spread - 1e-12;
    dropped += weight[b] == 0;
  }
  if (dropped > 0)
    unicon__log(ctx, UNICON_LOG_INFO, "%lld of %lld batches dropped as outliers",
                (long long)dropped, (long long)count);
  unicon__drop(ctx, sorted);
  return UNICON_OK;
}

unicon_status unicon__aggregate(unicon_ctx *ctx, unicon__aggregation how, const double *score,
                                int64_t count, double *weight) {
  double sum = 0;
  for (int64_t b = 0; b < count; b++)
    weight[b] = how == UNICON__AGGREGATE_ACCURACY  ? score[b]
                : how == UNICON__AGGREGATE_SOFTMAX ? exp(score[b])
                                                   : 1;
  if (how == UNICON__AGGREGATE_ROBUST) UNICON_TRY(keep_inliers(ctx, score, count, weight));
  for (int64_t b = 0; b < count; b++) sum += weight[b];
  for (int64_t b = 0; b < count; b++) weight[b] = sum > 0 ? weight[b] / sum : 1 / (double)count;
  return UNICON_OK;
}
