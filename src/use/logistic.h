/* SPDX-License-Identifier: Apache-2.0 */
/* Multinomial logistic regression on unit vectors z with classes c(i),
 *
 *     L(W, b) = 1/n sum_i [ log sum_k exp(w_k z_i + b_k) - (w_c(i) z_i + b_c(i)) ] + ridge/2 |W|^2
 *
 * convex; its minimum is found by L-BFGS from W = b = 0. A gradient costs two products of
 * n by r by K: float32 in tiles of rows, float64 sums in tile order. */
#ifndef UNICON_USE_LOGISTIC_H
#define UNICON_USE_LOGISTIC_H

#include "base/ctx.h"

typedef struct unicon__logistic {
  int64_t n, r, k;      /* rows, dimensions, classes */
  const float *z;       /* n by r */
  const int32_t *class; /* n: 0 .. k-1 */
  double ridge;
  float *weight;  /* r by k: W of the present point ... */
  float *bias;    /* k: ... and b */
  float *logits;  /* per worker: a tile of rows by k */
  float *partial; /* per slot: r by k */
  double *sum;    /* per slot: the residuals' sums of k, the loss */
  double *gradient, loss;
} unicon__logistic;

/* What the search for the minimum came to. */
typedef struct unicon__logistic_log {
  double loss, gradient; /* the gradient's length */
  int64_t steps;
} unicon__logistic_log;

/* Allocates what an evaluation needs; n, r, k, z, class and ridge are set before. */
unicon_status unicon__logistic_open(unicon_ctx *ctx, unicon__logistic *fit);

/* L at the point (W row by row, then b), and its gradient. */
unicon_status unicon__logistic_loss(unicon_ctx *ctx, unicon__logistic *fit, const double *point,
                                    double *gradient, double *loss);

/* Goes to the minimum. Memory that liblbfgs takes counts against the budget. */
unicon_status unicon__logistic_minimize(unicon_ctx *ctx, unicon__logistic *fit,
                                        unicon__logistic_log *log);

/* The likeliest class of each of `count` rows of r floats, the first of equals. */
unicon_status unicon__logistic_answer(unicon_ctx *ctx, const unicon__logistic *fit, const float *z,
                                      int64_t count, int32_t *class);

#endif
