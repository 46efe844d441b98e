/* SPDX-License-Identifier: Apache-2.0 */
/* Exact t-SNE (van der Maaten & Hinton 2008) in the plane, for the picture of a report.
 *
 * Points z_i get affinities p_ij = (p_j|i + p_i|j) / 2n, p_j|i ~ exp(-beta_i |z_i - z_j|^2) with
 * beta_i such that the entropy of row i is log(perplexity). Their places a_i minimise
 *     KL = sum p_ij log(p_ij / q_ij),   q_ij = w_ij / Z,   w_ij = 1 / (1 + |a_i - a_j|^2),
 *     Z = sum over i != j of w_ij,      dKL/da_i = 4 sum_j (p_ij - q_ij) w_ij (a_i - a_j)
 * by gradient descent with momentum and gains, from the two main directions of the points. n^2
 * floats; 3 n^2 d flops and at most 64 n^2 exponentials, then 750 steps of 15 n^2 flops. */
#ifndef UNICON_PROGRAMS_TSNE_H
#define UNICON_PROGRAMS_TSNE_H

#include <stdint.h>

typedef struct tsne {
  int64_t n;
  float *p;         /* n by n, symmetric, sums to 1; the diagonal is 0 */
  float *at[2];     /* places */
  float *sum[5];    /* of each point: w, p w d and w^2 d, d in both coordinates */
  float *change[2]; /* gradient */
  float *step[2];   /* last move */
  float *gain[2];   /* of each coordinate */
} tsne;

/* As the progress callback of a context: not 0 stops. */
typedef int (*tsne_progress)(void *user, const char *label, double done, double left);

typedef enum tsne_status { TSNE_DONE, TSNE_STOPPED, TSNE_NO_MEMORY } tsne_status;

tsne_status tsne_open(int64_t n, tsne *out);
void tsne_close(tsne *t);

/* p from points (n by d), whose squares must be floats. The perplexity is cut to a third of the
 * other points. */
tsne_status tsne_affinities(tsne *t, const float *z, int64_t d, double perplexity,
                            tsne_progress progress, void *user);

/* `change` = dKL/da, with p multiplied by `exaggeration`. */
void tsne_gradient(tsne *t, double exaggeration);

/* KL at the present places. */
double tsne_divergence(const tsne *t);

/* The whole: places n points (n by d) in the plane; `out` is n by 2. Perplexity 0, or fewer than 4
 * points: the coordinates along the two main directions, and the divergence is NaN. */
tsne_status tsne_place(const float *z, int64_t n, int64_t d, double perplexity,
                       tsne_progress progress, void *user, float *out, double *divergence);

#endif
