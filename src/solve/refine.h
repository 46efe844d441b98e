/* SPDX-License-Identifier: Apache-2.0 */
/* Refinement: minibatch Adam on the factors G in metric coordinates (F = R G), on the true loss.
 *
 * A batch is B distinct rows of x, each with one of its positives drawn anew; other pairs of P that
 * fall into the batch are positives too. With u = F_x^T phi(x), unit u^, S of the batch:
 *     -dL/du_i = (I - u^ u^T) (S V^)_i / |u_i|,   dL/dG_x = R_x^T Phi_x^T dL/dU     (docs/method.md
 * T8) The step length follows a cosine from `rate` to 0; factors start with unit mean square. A
 * learned temperature follows L/tau (plain cross-entropy), d(L/tau)/d(1/tau) = -sum S_ij s_ij. With
 * held-out pairs the best epoch is returned, the start included. The same engine from a random
 * start in the plain metric, with weight decay, is the SGD-CLIP linear baseline. */
#ifndef UNICON_SOLVE_REFINE_H
#define UNICON_SOLVE_REFINE_H

#include "loss/loss.h"
#include "score/validation.h"
#include "solve/state.h"
#include "solve/whiten.h"

typedef struct unicon__refine_params {
  unicon__loss_params loss;
  int epochs;
  int schedule; /* epochs after which the rate would be 0; 0: those that are run */
  double bar;   /* a held-out score after the first epoch below this ends it */
  int64_t batch;
  double rate;
  double decay; /* AdamW weight decay */
  bool learn_temperature;
  bool shared;  /* one encoder: both sides take the sum of their gradients */
  int patience; /* stop after so many epochs without a better held-out score; 0: never */
  uint64_t seed;
} unicon__refine_params;

enum { UNICON__EPOCH_LOG = 512 }; /* epochs whose figures are kept; later ones are not logged */

typedef struct unicon__refine_log {
  int epochs;                      /* run */
  int best;                        /* epoch returned; 0: the start */
  double score[UNICON__EPOCH_LOG]; /* held-out, entry 0: the start; 0 without held-out pairs */
  double loss[UNICON__EPOCH_LOG];  /* mean batch loss of the epoch; entry 0 unused */
  double temperature;              /* at the end */
} unicon__refine_log;

/* Factors of both sides, in metric coordinates: g[s] is features by r. */
typedef struct unicon__factors {
  int64_t r;
  int64_t p[2];
  float *g[2];
} unicon__factors;

/* U s^power[0] and V s^power[1] of a state, in metric coordinates. */
unicon_status unicon__factors_of(unicon_ctx *ctx, const unicon__state *state, const double power[2],
                                 unicon__factors *out);

/* Improves `factors` in place. `held` may be NULL. */
unicon_status unicon__refine(unicon_ctx *ctx, const unicon__batch *data,
                             const unicon__whitening metric[2], const unicon__validation *held,
                             const unicon__refine_params *params, unicon__factors *factors,
                             unicon__refine_log *log);

/* For both roads: the length of step `step` of `steps` an epoch; notes an epoch in the log, true: it
 * is the best so far; is it the last? */
double unicon__refine_rate(const unicon__refine_params *params, int64_t steps, int64_t step);
bool unicon__refine_note(unicon_ctx *ctx, const unicon__validation *held, int epoch, double loss,
                         double score, double *best, unicon__refine_log *log);
bool unicon__refine_ends(const unicon__refine_params *params, const unicon__validation *held,
                         int epoch, double score, const unicon__refine_log *log);

/* R of a metric as a float32 matrix in the frame; NULL for the plain metric. */
unicon_status unicon__whiten_matrix(unicon_ctx *ctx, const unicon__whitening *metric, float **out);

/* Pairs per epoch over rows per batch. */
int64_t unicon__epoch_steps(const unicon_pairs *pairs, int64_t batch);

#endif
