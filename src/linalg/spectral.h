/* SPDX-License-Identifier: Apache-2.0 */
/* The rank-r singular value decomposition M ~ U diag(s) V^T, with a certificate.
 *
 * dense:   LAPACK, divide and conquer, O(m n min(m, n)).
 * squared: eigenvectors of M^T M or M M^T, whichever is smaller; what `auto` takes for dense where
 *          s_r > 1e-4 s_1, at a third of the time.
 * random:  block Krylov space from a random start (Halko, Martinsson, Tropp 2011; Musco & Musco
 *         2015), grown from 2r columns until the residual of every kept triple is small: 4 m n
 * flops a column and 2 (m + n) K^2 for the orthogonality of K columns. */
#ifndef UNICON_LINALG_SPECTRAL_H
#define UNICON_LINALG_SPECTRAL_H

#include "base/ctx.h"

typedef enum unicon__svd_method {
  UNICON__SVD_AUTO,
  UNICON__SVD_DENSE,
  UNICON__SVD_RANDOM
} unicon__svd_method;

typedef struct unicon__svd {
  int64_t m, n, r;
  double *u, *s, *v;  /* u m by r, v n by r, row-major; s descending */
  double residual;    /* max over k of |M v_k - s_k u_k| and |M^T u_k - s_k v_k|, over s_1 */
  double next;        /* s_{r+1} or its estimate; 0 when r is everything */
  const char *method; /* "dense", "squared" or "random" */
} unicon__svd;

/* The r leading triples of M (m by n, row-major, left unchanged), r <= min(m, n). The entry of
 * largest modulus of each u_k is positive. */
unicon_status unicon__svd_top(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                              int64_t r, unicon__svd_method method, uint64_t seed,
                              unicon__svd *out);

/* A cheaper, rougher answer from a good guess: subspace iteration, `rounds` times, from the n by w
 * columns of `start` (w >= r), which become the new right basis. 4 m n w + 2 (m + n) w^2 flops a
 * round, nearly all of them products, and the eigenvectors of a w by w matrix. That is the square
 * of the small matrix, so singular values below sqrt(w eps) of the first (3e-7 for 500 columns) are
 * 0, and those near it rough. No certificate. */
unicon_status unicon__svd_warm(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                               int64_t r, double *start, int64_t w, int rounds, unicon__svd *out);

#endif
