/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvectors of a symmetric matrix on the context's threads: LAPACK's dsyevd in three steps, of
 * which the first and the last, where the time goes, are cut into tiles.
 *
 *     A = Q T Q^T      Householder reflections, blocked as dsytrd; 4/3 n^3 flops, half of them in
 *                      matrix-vector products
 *     T = Z diag(w) Z^T  divide and conquer, dstedc, on one thread; up to 4/3 n^3
 *     A's vectors Q Z  blocks of reflections, dlarfb, on slices of Z; 2 n^3
 *
 * The bytes do not depend on the number of threads. */
#ifndef UNICON_LINALG_EIGEN_H
#define UNICON_LINALG_EIGEN_H

#include "base/ctx.h"

/* Eigenvalues ascending in w; a becomes the eigenvectors, one per row. Reads the lower triangle.
 * `info` is as LAPACK returns it (0 is success); the status is an error when memory runs out or
 * the call is cancelled. */
unicon_status unicon__tiled_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info);

#endif
