/* SPDX-License-Identifier: Apache-2.0 */
/* Products outside our own loops, cut into tiles that run on the context's threads, each with
 * single-threaded BLAS. The threads of OpenBLAS itself are never used: they spin while they wait
 * for one another, so beside a busy process they give their time away.
 *
 * Tiles are cut by the shape alone and each entry is the work of one tile, so the bytes do not
 * depend on the number of threads. To be called from the calling thread only; loops use
 * linalg/blas. Matrices are row-major with leading dimension `ld`. When the call is cancelled,
 * functions without a status end early with a result of no use; the next poll fails. */
#ifndef UNICON_LINALG_TILED_H
#define UNICON_LINALG_TILED_H

#include "base/ctx.h"

/* C = alpha op(A) op(B) + beta C, op(A) m by k, op(B) k by n. */
void unicon__tiled_sgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                         int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                         int64_t ldb, float beta, float *c, int64_t ldc);
void unicon__tiled_dgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                         int64_t k, double alpha, const double *a, int64_t lda, const double *b,
                         int64_t ldb, double beta, double *c, int64_t ldc);
/* C (m by n, float64) += A^T B, A k by m and B k by n in float32: products over `block` rows in
 * float32, their sums in float64, in order. With `lower` only the tiles that reach the lower
 * triangle. This is how sums over the data are made: rows of features side by side in a and b, C
 * cut into tiles, so that the room is a tile for each thread whatever m and n are. */
unicon_status unicon__tiled_add_product(unicon_ctx *ctx, int64_t m, int64_t n, int64_t k,
                                        int64_t block, const float *a, int64_t lda, const float *b,
                                        int64_t ldb, bool lower, double *c, int64_t ldc);
/* B (n by m) = op(L)^{-1} B, L lower triangular n by n. */
void unicon__tiled_dtrsm_left(unicon_ctx *ctx, bool trans, int64_t n, int64_t m, const double *l,
                              int64_t ldl, double *b, int64_t ldb);
/* B (m by n) = B op(L)^{-1}. */
void unicon__tiled_dtrsm_right(unicon_ctx *ctx, bool trans, int64_t m, int64_t n, const double *l,
                               int64_t ldl, double *b, int64_t ldb);
/* Lower Cholesky factor in place (only the lower triangle is read and written); `info` is 0, or the
 * order of the first leading part that is not positive definite. The status is that of the progress
 * callback. */
unicon_status unicon__tiled_dpotrf(unicon_ctx *ctx, int64_t n, double *a, int64_t lda,
                                   int64_t *info);

/* The same with pivots: order[i] is the row of A that became row i, and L has `rank` columns, after
 * which no diagonal entry of the rest is above `floor`. What is left of the rest is of no use. */
unicon_status unicon__tiled_dpstrf(unicon_ctx *ctx, int64_t n, double *a, int *order, double floor,
                                   int64_t *rank);
/* out (n by n) = L^{-T}, upper triangular. n^3 / 3 multiplications. */
void unicon__tiled_inverse(unicon_ctx *ctx, int64_t n, const double *l, int64_t ldl, double *out);

/* y = A x for a symmetric n by n matrix of which the lower triangle is read; `room` has
 * unicon__tiled_dsymv_room(n) numbers. */
int64_t unicon__tiled_dsymv_room(int64_t n);
void unicon__tiled_dsymv(unicon_ctx *ctx, int64_t n, const double *a, int64_t lda, const double *x,
                         double *y, double *room);

#endif
