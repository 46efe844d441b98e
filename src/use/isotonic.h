/* SPDX-License-Identifier: Apache-2.0 */
/* Curves that never fall, so that a score of one model can be read as one of another and keep its
 * order. */
#ifndef UNICON_USE_ISOTONIC_H
#define UNICON_USE_ISOTONIC_H

#include "model/model.h"

enum { UNICON__KNOTS = 64 };

/* Isotonic regression of y on x by pooling adjacent violators (Ayer et al. 1955), O(n log n), then
 * brought down to at most UNICON__KNOTS points by joining neighbours. In `arena`. */
unicon_status unicon__isotonic(unicon_ctx *ctx, unicon__arena *arena, const float *x,
                               const float *y, int64_t n, unicon__curve *out);

/* The value of the curve. */
double unicon__curve_at(const unicon__curve *curve, double x);

#endif
