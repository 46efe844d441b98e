/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of batches, or of the parts of a fused model, from their held-out scores. */
#ifndef UNICON_SOLVE_AGGREGATE_H
#define UNICON_SOLVE_AGGREGATE_H

#include "base/ctx.h"

/* In the order of the words of option `aggregate`. */
typedef enum unicon__aggregation {
  UNICON__AGGREGATE_UNIFORM,
  UNICON__AGGREGATE_ACCURACY,
  UNICON__AGGREGATE_SOFTMAX,
  UNICON__AGGREGATE_ROBUST
} unicon__aggregation;

/* The weights, adding up to 1. */
unicon_status unicon__aggregate(unicon_ctx *ctx, unicon__aggregation how, const double *score,
                                int64_t count, double *weight);

#endif
