/* SPDX-License-Identifier: Apache-2.0 */
/* Singular value decomposition on the context's threads. */
#ifndef UNICON_LINALG_SVD_H
#define UNICON_LINALG_SVD_H

#include "base/ctx.h"

/* A (m by n) = U diag(s) V^T, q = min(m, n); u is m by q, vt q by n, a is destroyed. LAPACK's
 * dgesdd in three steps:
 *
 *     A = Q B P^T          reflections from both sides, blocked as dgebrd; 8/3 n^3 flops for m = n,
 *                          half of them in matrix-vector products
 *     B = U_B diag(s) V_B^T  divide and conquer, dbdsdc, on one thread
 *     Q U_B, P V_B         4 n^3
 *
 * A matrix that is much longer than wide goes through QR: 4 m n^2 flops in tiles, then the
 * decomposition of R and one product. `info` is as LAPACK returns it; the status is an error when
 * memory runs out or the call is cancelled. The bytes do not depend on the number of threads. */
unicon_status unicon__tiled_dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                   double *u, double *vt, int *info);

#endif
