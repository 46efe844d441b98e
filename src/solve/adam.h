/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW (Loshchilov, Hutter 2019) on one array of parameters:
 *
 *     m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2
 *     value = (1 - rate decay) value - rate m/(1-b1^t) / (sqrt(v/(1-b2^t)) + floor)
 *
 * The floor is a share of the gradient's own size, since losses here have any scale. */
#ifndef UNICON_SOLVE_ADAM_H
#define UNICON_SOLVE_ADAM_H

#include "base/ctx.h"

typedef struct unicon__adam {
  int64_t size;
  float *mean, *square;
} unicon__adam;

/* One step of the schedule. */
typedef struct unicon__adam_step {
  int64_t number; /* from 1 */
  double rate, decay;
} unicon__adam_step;

/* Moments of `size` parameters in the frame, all 0. */
unicon_status unicon__adam_open(unicon_ctx *ctx, int64_t size, unicon__adam *out);

void unicon__adam_take(unicon__adam *adam, const unicon__adam_step *step, const float *gradient,
                       float *value);

/* The same for a single parameter in float64, without decay: its new value. moment is {m, v}. */
double unicon__adam_scalar(const unicon__adam_step *step, double gradient, double moment[2],
                           double value);

#endif
