/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/svd.h"

#include <string.h>

#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"

/* out (n by m) = A^T, A m by n. */
static void transpose(const double *a, int64_t m, int64_t n, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[j * m + i] = a[i * n + j];
}

/* A = Q R, R = U_R diag(s) V^T: U = Q U_R. */
static unicon_status through_qr(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                double *u, double *vt, int *info) {
  double *r, *small;
  UNICON_NEW(ctx, r, n * n);
  UNICON_NEW(ctx, small, n * n);
  UNICON_TRY(unicon__tiled_dqr(ctx, m, n, a, r));
  UNICON_TRY(unicon__poll(ctx));
  UNICON_TRY(unicon__dgesvd(ctx, n, n, r, s, small, vt, info));
  UNICON_TRY(unicon__poll(ctx));
  if (*info == 0) unicon__tiled_dgemm(ctx, false, false, m, n, n, 1, a, n, small, n, 0, u, n);
  unicon__drop(ctx, small);
  unicon__drop(ctx, r);
  return UNICON_OK;
}

/* A^T = V diag(s) U^T. */
static unicon_status transposed(unicon_ctx *ctx, int64_t m, int64_t n, const double *a, double *s,
                                double *u, double *vt, int *info) {
  double *turned, *v, *ut;
  UNICON_NEW(ctx, turned, n * m);
  UNICON_NEW(ctx, v, n * m);
  UNICON_NEW(ctx, ut, m * m);
  transpose(a, m, n, turned);
  UNICON_TRY(through_qr(ctx, n, m, turned, s, v, ut, info));
  transpose(v, n, m, vt);
  transpose(ut, m, m, u);
  unicon__drop(ctx, ut);
  unicon__drop(ctx, v);
  unicon__drop(ctx, turned);
  return UNICON_OK;
}

unicon_status unicon__tiled_dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                   double *u, double *vt, int *info) {
  if (2 * m >= 3 * n && n > 64) return through_qr(ctx, m, n, a, s, u, vt, info);
  if (2 * n >= 3 * m && m > 64) return transposed(ctx, m, n, a, s, u, vt, info);
  return unicon__dgesvd(ctx, m, n, a, s, u, vt, info);
}
