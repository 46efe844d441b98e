/* SPDX-License-Identifier: Apache-2.0 */
#include "core/spectral.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/blas.h"

enum {
  DENSE_UP_TO = 768,  /* smaller side for which dense is always the choice */
  MOST_ITERATIONS = 24
};

static const double good_residual = 1e-5; /* far below the float32 rounding of what M is made of */

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static unicon_status no_convergence(unicon_ctx *ctx, int64_t m, int64_t n) {
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "the singular values of a %lld by %lld matrix did not converge; a larger "
                      "ridge helps",
                      (long long)m, (long long)n);
}

static void fix_signs(unicon__svd *svd) {
  for (int64_t k = 0; k < svd->r; k++) {
    int64_t top = 0;
    for (int64_t i = 1; i < svd->m; i++)
      if (fabs(svd->u[i * svd->r + k]) > fabs(svd->u[top * svd->r + k])) top = i;
    if (svd->u[top * svd->r + k] >= 0) continue;
    for (int64_t i = 0; i < svd->m; i++) svd->u[i * svd->r + k] *= -1;
    for (int64_t i = 0; i < svd->n; i++) svd->v[i * svd->r + k] *= -1;
  }
}

/* Largest column norm of P - Q diag(s), both rows by r. */
static double worst_column(const double *p, const double *q, const double *s, int64_t rows,
                           int64_t r, double *sums) {
  memset(sums, 0, (size_t)r * sizeof *sums);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < r; k++) {
      const double d = p[i * r + k] - s[k] * q[i * r + k];
      sums[k] += d * d;
    }
  double worst = 0;
  for (int64_t k = 0; k < r; k++) worst = sums[k] > worst ? sums[k] : worst;
  return sqrt(worst);
}

/* The certificate: both residuals, from the matrix itself. */
static unicon_status certify(unicon_ctx *ctx, const double *matrix, unicon__svd *svd) {
  const int64_t m = svd->m, n = svd->n, r = svd->r;
  double *product, *sums;
  UNICON_NEW(ctx, product, (m > n ? m : n) * r);
  UNICON_NEW(ctx, sums, r);
  unicon__dgemm(false, false, m, r, n, 1, matrix, n, svd->v, r, 0, product, r);
  const double left = worst_column(product, svd->u, svd->s, m, r, sums);
  unicon__dgemm(true, false, n, r, m, 1, matrix, n, svd->u, r, 0, product, r);
  const double right = worst_column(product, svd->v, svd->s, n, r, sums);
  svd->residual = svd->s[0] > 0 ? (left > right ? left : right) / svd->s[0] : 0;
  unicon__drop(ctx, sums);
  unicon__drop(ctx, product);
  return UNICON_OK;
}

static unicon_status dense(unicon_ctx *ctx, const double *matrix, unicon__svd *svd) {
  const int64_t m = svd->m, n = svd->n, q = smaller(m, n), r = svd->r;
  double *copy, *s, *u, *vt;
  int info;
  UNICON_NEW(ctx, copy, m * n);
  UNICON_NEW(ctx, s, q);
  UNICON_NEW(ctx, u, m * q);
  UNICON_NEW(ctx, vt, q * n);
  memcpy(copy, matrix, (size_t)(m * n) * sizeof *copy);
  UNICON_TRY(unicon__dgesvd(ctx, m, n, copy, s, u, vt, &info));
  if (info) return no_convergence(ctx, m, n);
  for (int64_t i = 0; i < m; i++)
    memcpy(svd->u + i * r, u + i * q, (size_t)r * sizeof *u);
  for (int64_t k = 0; k < r; k++) {
    svd->s[k] = s[k];
    for (int64_t j = 0; j < n; j++) svd->v[j * r + k] = vt[k * n + j];
  }
  svd->next = r < q ? s[r] : 0;
  svd->method = "dense";
  unicon__drop(ctx, vt);
  unicon__drop(ctx, u);
  unicon__drop(ctx, s);
  unicon__drop(ctx, copy);
  return UNICON_OK;
}

typedef struct subspace {
  int64_t width;                 /* r + oversampling */
  double *left, *right;          /* m by width, n by width */
  double *core, *s, *us, *vs;    /* width by width, and its decomposition */
} subspace;

static unicon_status subspace_start(unicon_ctx *ctx, const unicon__svd *svd, uint64_t seed,
                                    subspace *sub) {
  const int64_t extra = svd->r / 4 > 16 ? svd->r / 4 : 16;
  sub->width = smaller(svd->r + extra, smaller(svd->m, svd->n));
  const int64_t w = sub->width;
  UNICON_NEW(ctx, sub->left, svd->m * w);
  UNICON_NEW(ctx, sub->right, svd->n * w);
  UNICON_NEW(ctx, sub->core, w * w);
  UNICON_NEW(ctx, sub->s, w);
  UNICON_NEW(ctx, sub->us, w * w);
  UNICON_NEW(ctx, sub->vs, w * w);
  float *row;
  UNICON_NEW(ctx, row, w);
  for (int64_t j = 0; j < svd->n; j++) {
    unicon__normals(seed, UNICON__STREAM_SKETCH, (uint64_t)j, w, row);
    for (int64_t k = 0; k < w; k++) sub->right[j * w + k] = (double)row[k];
  }
  unicon__drop(ctx, row);
  return UNICON_OK;
}

/* One iteration: left = orth(M right), right = orth(M^T left) with its R, then the small SVD
 * M ~ left R^T right^T. */
static unicon_status subspace_step(unicon_ctx *ctx, const double *matrix, const unicon__svd *svd,
                                   subspace *sub) {
  const int64_t m = svd->m, n = svd->n, w = sub->width;
  int info;
  unicon__dgemm(false, false, m, w, n, 1, matrix, n, sub->right, w, 0, sub->left, w);
  UNICON_TRY(unicon__dqr(ctx, m, w, sub->left, NULL));
  unicon__dgemm(true, false, n, w, m, 1, matrix, n, sub->left, w, 0, sub->right, w);
  UNICON_TRY(unicon__dqr(ctx, n, w, sub->right, sub->core));
  /* M^T left = right core, so left^T M = core^T right^T; core = us s vs: u = left vs^T. */
  UNICON_TRY(unicon__dgesvd(ctx, w, w, sub->core, sub->s, sub->us, sub->vs, &info));
  return info ? no_convergence(ctx, w, w) : UNICON_OK;
}

static void subspace_extract(const subspace *sub, unicon__svd *svd) {
  const int64_t w = sub->width, r = svd->r;
  memcpy(svd->s, sub->s, (size_t)r * sizeof *svd->s);
  unicon__dgemm(false, true, svd->m, r, w, 1, sub->left, w, sub->vs, w, 0, svd->u, r);
  unicon__dgemm(false, false, svd->n, r, w, 1, sub->right, w, sub->us, w, 0, svd->v, r);
  svd->next = r < w ? sub->s[r] : 0;
  svd->method = "random";
}

static unicon_status random_subspace(unicon_ctx *ctx, const double *matrix, uint64_t seed,
                                     unicon__svd *svd) {
  subspace sub = {0};
  UNICON_TRY(subspace_start(ctx, svd, seed, &sub));
  for (int iteration = 0; iteration < MOST_ITERATIONS; iteration++) {
    UNICON_TRY(unicon__progress(ctx, "singular values", (double)iteration / MOST_ITERATIONS));
    UNICON_TRY(subspace_step(ctx, matrix, svd, &sub));
    if (iteration < 2) continue;
    subspace_extract(&sub, svd);
    UNICON_TRY(certify(ctx, matrix, svd));
    if (svd->residual <= good_residual) break;
  }
  return UNICON_OK;
}

unicon_status unicon__svd_top(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                              int64_t r, unicon__svd_method method, uint64_t seed,
                              unicon__svd *out) {
  *out = (unicon__svd){.m = m, .n = n, .r = r};
  UNICON_NEW(ctx, out->u, m * r);
  UNICON_NEW(ctx, out->s, r);
  UNICON_NEW(ctx, out->v, n * r);
  const int64_t q = smaller(m, n);
  if (method == UNICON__SVD_AUTO)
    method = q <= DENSE_UP_TO || 3 * r > q ? UNICON__SVD_DENSE : UNICON__SVD_RANDOM;
  unicon__block *frame = unicon__frame_open(ctx);
  if (method == UNICON__SVD_DENSE)
    UNICON_TRY(dense(ctx, matrix, out));
  else
    UNICON_TRY(random_subspace(ctx, matrix, seed, out));
  UNICON_TRY(certify(ctx, matrix, out));
  unicon__frame_close(ctx, frame);
  fix_signs(out);
  return UNICON_OK;
}
