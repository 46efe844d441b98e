/* SPDX-License-Identifier: Apache-2.0 */
/* The solver: a first step (moment weights, or those of the loss at s = 0 or at random factors),
 * then spectral steps C -> rank-r SVD in the metric, safeguarded.
 *
 * The state is M = U diag(s) V^T in metric coordinates (paper's F_x F_y^T seen there), of rank r
 * and norm 1. One step (docs/method.md section 5): M+ = [R_x^T C R_y]_r / norm,  M_eta = [(1 - eta)
 * M + eta M+]_r,  eta = 1, 1/2, ..., 2^-7 The first M_eta whose cosine loss is below the present
 * one is taken; if none is, the present model stays. So the tracked loss never rises. `plain` takes
 * M+ whatever its loss (the paper). Losses on dot products (spectral) keep the scale of M and step
 * along the gradient, M + eta M+: eta = 1/2 in the full metric without ridge is Newton's step and
 * lands on the minimiser.
 *
 * With several batches C is their weighted mean; or, as in the authors' code, each batch is solved
 * and M+ = [sum_b w_b U_b s_b^e V_b^T]_r, e the exponent of the model. Shrinkage to the identity:
 * M+ = [U (s/s_1)^e V^T + identity R_x^{-1} R_y^{-T}]_r. Both leave s^{1/e} in the state, so that
 * the model has just this product (for e = 0 singular vectors alone, as there). */
#ifndef UNICON_SOLVE_SOLVE_H
#define UNICON_SOLVE_SOLVE_H

#include "loss/loss.h"
#include "score/validation.h"
#include "solve/aggregate.h"
#include "solve/closed_form.h"

/* What the weights of the first step come from. */
typedef enum unicon__start {
  UNICON__START_MOMENT,
  UNICON__START_RANDOM, /* the loss at random factors */
  UNICON__START_ZERO,   /* the loss at s = 0 */
  UNICON__START_MODEL   /* nothing: refine starts from a model */
} unicon__start;

typedef struct unicon__solve_params {
  unicon__closed_params closed;
  double power[2]; /* of the singular values in F_x and F_y: exponent * split, ... */
  unicon__loss_params loss;
  int iterations;
  bool safe;
  unicon__start start;
  bool solutions;   /* of batches are averaged, not their C */
  double tolerance; /* a smaller change of M ends the steps */
  double identity;  /* how much of the identity is added */
  unicon__aggregation aggregate;
  const unicon__validation *held; /* pairs that choose the step returned; NULL: the last */
} unicon__solve_params;

enum { UNICON__LOG_STEPS = 64 }; /* steps whose figures are kept in the model */

/* What happened: loss after each step (entry 0 is the start), step length, certificate. */
typedef struct unicon__solve_log {
  int steps; /* entries in use */
  double loss[UNICON__LOG_STEPS], eta[UNICON__LOG_STEPS];
  double score[UNICON__LOG_STEPS]; /* where there are held-out pairs */
  int best;                        /* step returned */
  int taken;                       /* steps in all, the start included */
  double residual, gap;            /* worst certificate of all decompositions; last s_r+1 / s_r */
  const char *method;
  double *spectrum; /* r values of the first step, before scaling */
} unicon__solve_log;

/* Solves over the batches of `problem`, whose features are centred; `moments` are those of all its
 * rows, `metric` their whitenings. */
unicon_status unicon__solve(unicon_ctx *ctx, const unicon__problem *problem,
                            const unicon__moments *moments, const unicon__whitening metric[2],
                            const unicon__solve_params *params, unicon__state *state,
                            unicon__solve_log *log);

/* Normal factors of a side, p by r. */
void unicon__random_factor(uint64_t seed, int side, int64_t p, int64_t r, float *out);

/* F_x = R_x U s^power[0] and F_y = R_y V s^power[1], float32, of the context's frame. */
unicon_status unicon__state_factors(unicon_ctx *ctx, const unicon__state *state,
                                    const unicon__whitening metric[2], const double power[2],
                                    float **fx, float **fy);

#endif
