/* SPDX-License-Identifier: Apache-2.0 */
/* The metric W = (Sigma + ridge lambda_max I)^{-power} of one side, kept as a factor R:
 * whitened M = R_x^T C R_y, and a factor G in those coordinates maps back to F = R G.
 *
 *     power 1/2: Cholesky, Sigma + ridge mu I = L L^T, R = L^{-T}; p^3/3 flops
 *     others:    eigenvectors, R = Q diag((e + ridge mu)^{-power}); about 9 p^3 flops
 *     power 0:   R = I
 *
 * A singular matrix (ridge 0) falls back to eigenvectors with the null space left out. */
#ifndef UNICON_SOLVE_WHITEN_H
#define UNICON_SOLVE_WHITEN_H

#include "base/ctx.h"

typedef enum unicon__whiten_kind {
  UNICON__WHITEN_NONE,
  UNICON__WHITEN_CHOLESKY,
  UNICON__WHITEN_EIGEN,
  UNICON__WHITEN_DIAGONAL /* in coordinates where Sigma is diagonal: R = diag(scale) */
} unicon__whiten_kind;

typedef struct unicon__whitening {
  unicon__whiten_kind kind;
  int64_t size;
  double *factor; /* L, or eigenvectors by row */
  double *scale;  /* eigen, diagonal: (e + ridge mu)^{-power}, 0 for the null space */
} unicon__whitening;

/* Largest eigenvalue of a symmetric matrix (lower triangle) by Lanczos, relative error 1e-10. */
unicon_status unicon__largest_eigenvalue(unicon_ctx *ctx, const double *a, int64_t n, double *out);

/* Builds the metric of sigma (size by size, lower triangle) with largest eigenvalue mu. */
unicon_status unicon__whiten_build(unicon_ctx *ctx, const double *sigma, int64_t size, double mu,
                                   double power, double ridge, unicon__whitening *out);

/* The same from eigenvectors (by row) and eigenvalues computed before; `vectors` is shared. */
unicon_status unicon__whiten_from_eigen(unicon_ctx *ctx, double *vectors, const double *values,
                                        int64_t size, double power, double ridge,
                                        unicon__whitening *out);

/* Eigenvectors (by row, in a new array) and eigenvalues of sigma. */
unicon_status unicon__eigen(unicon_ctx *ctx, const double *sigma, int64_t size, double **vectors,
                            double **values);

/* m (size by cols) = R^T m; and m (rows by size) = m R. */
unicon_status unicon__whiten_left(unicon_ctx *ctx, const unicon__whitening *metric, double *m,
                                  int64_t cols);
unicon_status unicon__whiten_right(unicon_ctx *ctx, const unicon__whitening *metric, double *m,
                                   int64_t rows);
/* g (size by cols) = R g. */
unicon_status unicon__whiten_back(unicon_ctx *ctx, const unicon__whitening *metric, double *g,
                                  int64_t cols);

/* The identity map in the coordinates of both metrics, R_x^{-1} R_y^{-T} (size by size), with the
 * norm of an identity matrix. 2 size^3 flops. */
unicon_status unicon__whiten_identity(unicon_ctx *ctx, const unicon__whitening metric[2],
                                      double *out);

/* out = R g as float32 (size by cols); g is destroyed. Values that would leave float32 are scaled
 * by a common factor, which changes no cosine. */
unicon_status unicon__whiten_weights(unicon_ctx *ctx, const unicon__whitening *metric, double *g,
                                     int64_t cols, float *out);

#endif
