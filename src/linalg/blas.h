/* SPDX-License-Identifier: Apache-2.0 */
/* The only door to BLAS and LAPACK. Matrices are row-major with leading dimension `ld` (elements
 * between rows). float32 products serve data; float64 serves small dense algebra.
 *
 * Threads: everything here runs on the calling thread and may be called from our own loops; what
 * the context's threads share is in linalg/tiled. The BLAS thread count belongs to the process, so
 * each call borrows it and keeps it at 1 (unicon__blas_begin ... end). */
#ifndef UNICON_LINALG_BLAS_H
#define UNICON_LINALG_BLAS_H

#include "base/sweep.h"

/* Most columns of rows. BLAS counts with 32-bit integers; widths are checked against this, and
 * numbers of rows against INT32_MAX, where data come in. */
enum { UNICON__MAX_WIDTH = 1 << 24 };

/* From begin to end OpenBLAS uses one thread. Regions nest and may overlap between threads; the old
 * count comes back with the last end. A region around many products saves the switching. */
void unicon__blas_begin(void);
void unicon__blas_end(void);
extern const unicon__region unicon__blas_region; /* both, for sweeps */

/* "OpenBLAS 0.3.21 (SkylakeX)"; with advice where it took a newer processor for one of 2004. */
const char *unicon__blas_name(void);

/* C = alpha op(A) op(B) + beta C, op(A) m by k, op(B) k by n. */
void unicon__sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc);
void unicon__dgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                   double *c, int64_t ldc);
/* Lower triangle of C (n by n) = alpha A A^T + beta C, A n by k. */
void unicon__dsyrk(int64_t n, int64_t k, double alpha, const double *a, int64_t lda, double beta,
                   double *c, int64_t ldc);
/* y = alpha op(A) x + beta y, A m by n. */
void unicon__dgemv(bool trans, int64_t m, int64_t n, double alpha, const double *a, int64_t lda,
                   const double *x, double beta, double *y);
/* y = A x for a symmetric n by n matrix of which the lower triangle is read. */
void unicon__dsymv(int64_t n, const double *a, int64_t lda, const double *x, double *y);
/* B (n by m) = op(L)^{-1} B, L lower triangular n by n. */
void unicon__dtrsm_left(bool trans, int64_t n, int64_t m, const double *l, int64_t ldl, double *b,
                        int64_t ldb);
/* B (m by n) = B op(L)^{-1}. */
void unicon__dtrsm_right(bool trans, int64_t m, int64_t n, const double *l, int64_t ldl, double *b,
                         int64_t ldb);

/* LAPACK, with work space from the context's frame; `info` as LAPACK returns it (0 is success).
 * Status is an error when memory runs out, or when the work space is more than LAPACK can count
 * in 32 bits: that is asked of these, in 64 bits, before anything is allocated. */

/* Numbers of float64 work space: dsyevd up to n = 32766, dstedc up to n = 46338, dgesdd up to
 * min(m, n) = 23169 stay below 2^31. */
int64_t unicon__dsyevd_room(int64_t n);
int64_t unicon__dstedc_room(int64_t n);
int64_t unicon__dgesdd_room(int64_t m, int64_t n);

/* Lower Cholesky factor in place (row-major; only the lower triangle is read and written). */
int unicon__dpotrf(int64_t n, double *a, int64_t lda);
/* Eigenvalues ascending in w; a becomes the eigenvectors, one per row. Reads the lower triangle. */
unicon_status unicon__dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info);
/* The same by QR iteration: slower, and converges where the other does not. */
unicon_status unicon__dsyev(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info);
/* A (m by n) = U diag(s) V^T, q = min(m, n); u is m by q, vt q by n, a is destroyed. Falls back
 * from divide and conquer to QR iteration. */
unicon_status unicon__dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s, double *u,
                             double *vt, int *info);
/* The Householder reflection I - tau v v^T that takes x (n) to (beta, 0, ...): x becomes beta and
 * the rest of v, whose first entry is 1. Returns tau. */
double unicon__dlarfg(int64_t n, double *x);
/* k reflections at once are I - V T V^T: `factor` (k by k) receives T. Vector c is row c of `v`
 * (k by n), 1 at c and not read before and there. */
void unicon__dlarft(int64_t n, int64_t k, const double *v, int64_t ldv, const double *tau,
                    double *factor);
/* C = C op(I - V T V^T)^T for C m by n, in rows; `room` has k m numbers. */
void unicon__dlarfb(bool trans, int64_t n, int64_t m, int64_t k, const double *v, int64_t ldv,
                    const double *factor, double *c, int64_t ldc, double *room);
/* The k reflections that make A^T (n by k, A k by n in rows) upper triangular, in its place, with R
 * on and above the diagonal; `room` has k numbers. */
void unicon__dgeqr2(int64_t n, int64_t k, double *a, int64_t lda, double *tau, double *room);
/* Eigenvalues (ascending, in place of the diagonal) and eigenvectors, one per row of z, of a
 * symmetric tridiagonal matrix by divide and conquer; and whether LAPACK can count that far. */
unicon_status unicon__dstedc_fits(unicon_ctx *ctx, int64_t n);
unicon_status unicon__dstedc(unicon_ctx *ctx, int64_t n, double *diagonal, double *off_diagonal,
                             double *z, int *info);
/* Singular values (descending, in place of the diagonal) of an upper bidiagonal matrix U diag V^T
 * by divide and conquer, or else QR iteration: column k of U is row k of u, V is row by row in v.
 * And whether LAPACK can count that far. */
unicon_status unicon__dbdsdc_fits(unicon_ctx *ctx, int64_t n);
unicon_status unicon__dbdsdc(unicon_ctx *ctx, int64_t n, double *diagonal, double *off_diagonal,
                             double *u, double *v, int *info);
/* Eigenvalues of a symmetric tridiagonal matrix, ascending, in place of its diagonal. */
int unicon__dsterf(int64_t n, double *diagonal, double *off_diagonal);

#endif
