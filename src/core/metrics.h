/* SPDX-License-Identifier: Apache-2.0 */
/* Retrieval metrics of two sets of unit vectors, one direction. */
#ifndef UNICON_CORE_METRICS_H
#define UNICON_CORE_METRICS_H

#include "base/ctx.h"
#include "io/pairs.h"

/* Metrics of x as queries against y (from_x) or the other way round. zx, zy have unit rows of r
 * entries. `per_query` (may be NULL) receives the rank of the first match of each query row, 0 for
 * rows without a match. With `intervals`, bootstrap with the seed. */
unicon_status unicon__metrics(unicon_ctx *ctx, const float *zx, const float *zy, int64_t r,
                              const unicon_pairs *pairs, bool from_x, bool intervals, uint64_t seed,
                              double *per_query, unicon_metrics *out);

#endif
