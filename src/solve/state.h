/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the solver, M = U diag(s) V^T in metric coordinates, and mixtures of two states. */
#ifndef UNICON_SOLVE_STATE_H
#define UNICON_SOLVE_STATE_H

#include "linalg/spectral.h"

typedef struct unicon__state {
  int64_t m, n, r;
  double *u, *s, *v; /* m by r, r, n by r */
} unicon__state;

unicon_status unicon__state_new(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r,
                                unicon__state *out);
/* Both have the same shape. */
void unicon__state_copy(unicon__state *to, const unicon__state *from);
/* Scales M to norm 1. */
void unicon__state_normalize(unicon__state *state);
/* g (m by n) += factor U diag(s^exponent) V^T. */
unicon_status unicon__state_add(unicon_ctx *ctx, const unicon__state *state, double exponent,
                                double factor, double *g);
/* |M_a - M_b|_F of two states of the same shape. */
unicon_status unicon__state_distance(unicon_ctx *ctx, const unicon__state *a,
                                     const unicon__state *b, double *out);
/* Keeps the first `rank` directions. */
void unicon__state_trim(unicon__state *state, int64_t rank);

/* [keep M + eta M+]_r of two states, either through the QR factors of their stacked bases (made
 * once for all eta) or, where 2r exceeds a side, through the dense matrix. */
typedef struct unicon__mixer {
  const unicon__state *from, *to;
  bool cosine; /* keep = 1 - eta, result of norm 1; else keep = 1: a gradient step */
  bool dense;
  double *qu, *ru, *qv, *rv; /* m by 2r, 2r by 2r, n by 2r, 2r by 2r */
} unicon__mixer;

unicon_status unicon__mixer_open(unicon_ctx *ctx, const unicon__state *from,
                                 const unicon__state *to, bool cosine, unicon__mixer *out);
/* M_eta into `out`, which has the shape of the two. */
unicon_status unicon__mix(unicon_ctx *ctx, const unicon__mixer *mix, double eta,
                          unicon__state *out);

#endif
