/* SPDX-License-Identifier: Apache-2.0 */
/* Householder reflections in blocks, I - V T V^T, applied on the context's threads, and what is
 * made of them: orthonormal bases and eigenvectors. The bytes do not depend on the number of
 * threads. */
#ifndef UNICON_LINALG_REFLECT_H
#define UNICON_LINALG_REFLECT_H

#include "base/ctx.h"

enum {
  UNICON__REFLECT_BLOCK = 64, /* reflections applied at once */
  UNICON__REFLECT_SLICE = 128 /* columns they are applied to at a time */
};

/* H_0 H_1 ... H_count-1 of length n, in LAPACK's form: the vector of H_j is column j of a matrix
 * that lies by columns, 1 at entry j, which is not stored, and zero before it. */
typedef struct unicon__reflections {
  int64_t n, count, ld;
  const double *v, *tau;
  double *factor; /* BLOCK squared for each block */
} unicon__reflections;

/* Makes the factors of the blocks, in the frame. */
unicon_status unicon__reflections_open(unicon_ctx *ctx, unicon__reflections *h);

/* C (n by cols, by columns) = H_0 ... H_last C; `room` has BLOCK cols numbers. For workers. */
void unicon__reflect(const unicon__reflections *h, int64_t last, double *c, int64_t ldc,
                     int64_t cols, double *room);

/* Orthonormal basis of the columns of A (m by n, m >= n) in place; r (n by n, upper triangular) may
 * be NULL. Blocked as dgeqrf and dorgqr, 4 m n^2 flops. */
unicon_status unicon__tiled_dqr(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *r);

/* Eigenvalues of a symmetric matrix ascending in w; a becomes the eigenvectors, one per row. Reads
 * the lower triangle. `info` is as LAPACK returns it (0 is success); the status is an error when
 * memory runs out or the call is cancelled. LAPACK's dsyevd in three steps:
 *
 *     A = Q T Q^T        reflections, blocked as dsytrd; 4/3 n^3 flops, half of them in
 *                        matrix-vector products
 *     T = Z diag(w) Z^T  divide and conquer, dstedc, on one thread; up to 4/3 n^3
 *     Q Z                2 n^3 */
unicon_status unicon__tiled_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info);

#endif
