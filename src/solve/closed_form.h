/* SPDX-License-Identifier: Apache-2.0 */
/* The closed form, from moments to factors (docs/method.md section 4):
 *
 *     M = R_x^T C R_y,   M = U diag(s) V^T,   F_x = R_x U s^a,  F_y = R_y V s^b
 *
 * with R the whitening of a side, (Sigma + ridge lambda_max I)^{-power}. Fits, choices, checks and
 * the baselines (CCA, PLS, Procrustes and ridge regression are corners of it) all go through here.
 */
#ifndef UNICON_SOLVE_CLOSED_FORM_H
#define UNICON_SOLVE_CLOSED_FORM_H

#include "linalg/spectral.h"
#include "solve/state.h"
#include "solve/stats.h"
#include "solve/whiten.h"

/* A right basis that one decomposition hands on to the next, of a matrix not far from it: well
 * enough for a score, not for a model. */
typedef struct unicon__svd_start {
  double *basis; /* p_y by width */
  int64_t width;
  bool warm; /* it comes from a decomposition, not from the generator */
} unicon__svd_start;

typedef struct unicon__closed_params {
  double power[2], ridge[2];
  int64_t rank;
  bool shared; /* one encoder: the positive eigenvalues of (M + M^T)/2 */
  unicon__svd_method svd;
  uint64_t seed;
  unicon__svd_start *start; /* NULL: to full accuracy, with a certificate */
} unicon__closed_params;

typedef struct unicon__closed {
  unicon__whitening metric[2];
  unicon__state state; /* U, s, V */
  double residual, gap;
  const char *method;
} unicon__closed;

/* Whitened singular values up to this are rounding of float32 features. */
#define UNICON__NO_CORRELATION 1e-5

unicon_status unicon__closed_form(unicon_ctx *ctx, const unicon__moments *moments,
                                  const unicon__closed_params *params, unicon__closed *out);

/* Its steps. R of both sides: */
unicon_status unicon__closed_whiten(unicon_ctx *ctx, const unicon__moments *moments,
                                    const unicon__closed_params *params,
                                    unicon__whitening metric[2]);
/* C (p_x by p_y) becomes M: */
unicon_status unicon__closed_matrix(unicon_ctx *ctx, const unicon__whitening metric[2], double *c);
/* C, which is destroyed, becomes U, s, V. Certificates are kept in `out` at their worst. */
unicon_status unicon__closed_update(unicon_ctx *ctx, const unicon__whitening metric[2], double *c,
                                    const unicon__closed_params *params, unicon__closed *out);

/* Room and normals for a start of rank `rank`; basis NULL where the dense way is cheap. */
unicon_status unicon__svd_start_open(unicon_ctx *ctx, int64_t p_x, int64_t p_y, int64_t rank,
                                     uint64_t seed, unicon__svd_start *out);

#endif
