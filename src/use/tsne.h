/* SPDX-License-Identifier: Apache-2.0 */
/* Exact t-SNE (van der Maaten & Hinton 2008) in the plane.
 *
 * Points z_i get affinities p_ij = (p_j|i + p_i|j) / 2n, p_j|i ~ exp(-beta_i |z_i - z_j|^2) with
 * beta_i such that the entropy of row i is log(perplexity). Their places (x_i, y_i) minimise
 *     KL = sum p_ij log(p_ij / q_ij),   q_ij = w_ij / Z,   w_ij = 1 / (1 + |d_ij|^2),
 *     Z = sum over i != j of w_ij,      dKL/d(x_i, y_i) = 4 sum_j (p_ij - q_ij) w_ij d_ij
 * by gradient descent with momentum and gains. 20 n^2 flops a step; n^2 floats. Every row is summed
 * by itself and Z in row order, so nothing depends on the number of threads. */
#ifndef UNICON_USE_TSNE_H
#define UNICON_USE_TSNE_H

#include "base/ctx.h"

typedef struct unicon__tsne {
  int64_t n;
  float *p;         /* n by n, symmetric, sums to 1; the diagonal is 0 */
  float *x, *y;     /* places */
  float *force;     /* n by 5: the sums of each row */
  float *step[2];   /* last move */
  float *gain[2];   /* of each coordinate */
  float *change[2]; /* gradient */
} unicon__tsne;

unicon_status unicon__tsne_open(unicon_ctx *ctx, int64_t n, unicon__tsne *out);

/* p from points (n by d). The perplexity is cut to a third of the other points. 2 n^2 d flops and
 * at most 64 n^2 exponentials. */
unicon_status unicon__tsne_affinities(unicon_ctx *ctx, unicon__tsne *t, const float *z, int64_t d,
                                      double perplexity);

/* `change` = dKL/d(x, y), with p multiplied by `exaggeration`. */
void unicon__tsne_gradient(unicon_ctx *ctx, unicon__tsne *t, double exaggeration);

/* KL at the present places. */
double unicon__tsne_divergence(const unicon__tsne *t);

/* Descends from the present places. */
unicon_status unicon__tsne_descend(unicon_ctx *ctx, unicon__tsne *t);

#endif
