/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/whiten.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"

enum {
  LANCZOS_STEPS = 120
}; /* 1e-10 of the largest eigenvalue on flat spectra too (test_spectral) */

static double norm(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += x[k] * x[k];
  return sqrt(sum);
}

static void orthogonalize(double *w, const double *basis, int64_t count, int64_t n) {
  for (int64_t j = 0; j < count; j++) {
    const double *q = basis + j * n;
    double product = 0;
    for (int64_t k = 0; k < n; k++) product += q[k] * w[k];
    for (int64_t k = 0; k < n; k++) w[k] -= product * q[k];
  }
}

/* Largest eigenvalue of the tridiagonal matrix built so far. */
static double top_ritz(const double *alpha, const double *beta, int64_t steps, double *work) {
  memcpy(work, alpha, (size_t)steps * sizeof *work);
  memcpy(work + LANCZOS_STEPS, beta, (size_t)steps * sizeof *work);
  if (unicon__dsterf(steps, work, work + LANCZOS_STEPS)) return alpha[0];
  return work[steps - 1];
}

unicon_status unicon__largest_eigenvalue(unicon_ctx *ctx, const double *a, int64_t n, double *out) {
  const int64_t most = n < LANCZOS_STEPS ? n : LANCZOS_STEPS;
  double *basis, *w, *work, *room, alpha[LANCZOS_STEPS], beta[LANCZOS_STEPS];
  float *start;
  UNICON_NEW(ctx, basis, most * n);
  UNICON_NEW(ctx, w, n);
  UNICON_NEW(ctx, work, 2 * LANCZOS_STEPS);
  UNICON_NEW(ctx, room, unicon__tiled_dsymv_room(n));
  UNICON_NEW(ctx, start, n);
  unicon__normals(0, UNICON__STREAM_START, 0, n, start);
  for (int64_t k = 0; k < n; k++) w[k] = (double)start[k];
  double length = norm(w, n), previous = 0;
  *out = 0;
  for (int64_t step = 0; step < most && length > 0; step++) {
    double *q = basis + step * n;
    UNICON_TRY(unicon__poll(ctx));
    for (int64_t k = 0; k < n; k++) q[k] = w[k] / length;
    unicon__tiled_dsymv(ctx, n, a, n, q, w, room);
    alpha[step] = 0;
    for (int64_t k = 0; k < n; k++) alpha[step] += q[k] * w[k];
    orthogonalize(w, basis, step + 1, n);
    orthogonalize(w, basis, step + 1, n);
    length = norm(w, n);
    beta[step] = length;
    *out = top_ritz(alpha, beta, step + 1, work);
    if (length <= 1e-14 * fabs(*out)) break;
    if (step > 4 && fabs(*out - previous) <= 1e-12 * fabs(*out)) break;
    previous = *out;
  }
  unicon__drop(ctx, start);
  unicon__drop(ctx, room);
  unicon__drop(ctx, work);
  unicon__drop(ctx, w);
  unicon__drop(ctx, basis);
  return UNICON_OK;
}

unicon_status unicon__eigen(unicon_ctx *ctx, const double *sigma, int64_t size, double **vectors,
                            double **values) {
  int info;
  UNICON_NEW(ctx, *vectors, size * size);
  UNICON_NEW(ctx, *values, size);
  memcpy(*vectors, sigma, (size_t)(size * size) * sizeof *sigma);
  UNICON_TRY(unicon__tiled_dsyevd(ctx, size, *vectors, *values, &info));
  if (info > 0) {
    memcpy(*vectors, sigma, (size_t)(size * size) * sizeof *sigma);
    UNICON_TRY(unicon__dsyev(ctx, size, *vectors, *values, &info));
  }
  if (info)
    return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                        "the eigenvalues of the %lld by %lld second moment did not converge; a "
                        "larger ridge helps",
                        (long long)size, (long long)size);
  return UNICON_OK;
}

unicon_status unicon__whiten_from_eigen(unicon_ctx *ctx, double *vectors, const double *values,
                                        int64_t size, double power, double ridge,
                                        unicon__whitening *out) {
  double *scale;
  UNICON_NEW(ctx, scale, size);
  /* Float32 features carry noise of about 1e-7 of the largest eigenvalue. */
  const double top = fabs(values[size - 1]), floor = top * (double)FLT_EPSILON;
  int64_t dropped = 0;
  for (int64_t k = 0; k < size; k++) {
    const double e = (values[k] > 0 ? values[k] : 0) + ridge * top;
    if (e <= floor) dropped++;
    scale[k] = e > floor ? pow(e, -power) : 0;
  }
  if (dropped > 0)
    unicon__log(ctx, UNICON_LOG_INFO, "%lld of %lld directions without variance left out",
                (long long)dropped, (long long)size);
  *out = (unicon__whitening){UNICON__WHITEN_EIGEN, size, vectors, scale};
  return UNICON_OK;
}

static unicon_status build_eigen(unicon_ctx *ctx, const double *sigma, int64_t size, double power,
                                 double ridge, unicon__whitening *out) {
  double *vectors = NULL, *values = NULL;
  UNICON_TRY(unicon__eigen(ctx, sigma, size, &vectors, &values));
  return unicon__whiten_from_eigen(ctx, vectors, values, size, power, ridge, out);
}

unicon_status unicon__whiten_build(unicon_ctx *ctx, const double *sigma, int64_t size, double mu,
                                   double power, double ridge, unicon__whitening *out) {
  *out = (unicon__whitening){UNICON__WHITEN_NONE, size, NULL, NULL};
  if (power == 0) return UNICON_OK;
  if (!(mu > 0))
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "all rows of one side are the same, so there is nothing to align");
  if (power != 0.5 || ridge < 1e-9) return build_eigen(ctx, sigma, size, power, ridge, out);
  double *copy;
  UNICON_NEW(ctx, copy, size * size);
  memcpy(copy, sigma, (size_t)(size * size) * sizeof *copy);
  for (int64_t k = 0; k < size; k++) copy[k * size + k] += ridge * mu;
  int64_t info;
  UNICON_TRY(unicon__tiled_dpotrf(ctx, size, copy, size, &info));
  if (info) {
    unicon__drop(ctx, copy);
    return build_eigen(ctx, sigma, size, power, ridge, out);
  }
  *out = (unicon__whitening){UNICON__WHITEN_CHOLESKY, size, copy, NULL};
  return UNICON_OK;
}

/* m = diag(scale) Q m for eigenvectors Q by row; scratch of the same size. */
unicon_status unicon__whiten_left(unicon_ctx *ctx, const unicon__whitening *metric, double *m,
                                  int64_t cols) {
  const int64_t n = metric->size;
  UNICON_TRY(unicon__poll(ctx));
  if (metric->kind == UNICON__WHITEN_NONE) return UNICON_OK;
  if (metric->kind == UNICON__WHITEN_CHOLESKY) {
    unicon__tiled_dtrsm_left(ctx, false, n, cols, metric->factor, n, m, cols);
    return UNICON_OK;
  }
  double *copy = NULL;
  if (metric->kind == UNICON__WHITEN_EIGEN) {
    UNICON_NEW(ctx, copy, n * cols);
    memcpy(copy, m, (size_t)(n * cols) * sizeof *m);
    unicon__tiled_dgemm(ctx, false, false, n, cols, n, 1, metric->factor, n, copy, cols, 0, m,
                        cols);
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < cols; j++) m[i * cols + j] *= metric->scale[i];
  unicon__drop(ctx, copy);
  return UNICON_OK;
}

unicon_status unicon__whiten_right(unicon_ctx *ctx, const unicon__whitening *metric, double *m,
                                   int64_t rows) {
  const int64_t n = metric->size;
  UNICON_TRY(unicon__poll(ctx));
  if (metric->kind == UNICON__WHITEN_NONE) return UNICON_OK;
  if (metric->kind == UNICON__WHITEN_CHOLESKY) {
    unicon__tiled_dtrsm_right(ctx, true, rows, n, metric->factor, n, m, n);
    return UNICON_OK;
  }
  double *copy = NULL;
  if (metric->kind == UNICON__WHITEN_EIGEN) {
    UNICON_NEW(ctx, copy, n * rows);
    memcpy(copy, m, (size_t)(n * rows) * sizeof *m);
    unicon__tiled_dgemm(ctx, false, true, rows, n, n, 1, copy, n, metric->factor, n, 0, m, n);
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++) m[i * n + j] *= metric->scale[j];
  unicon__drop(ctx, copy);
  return UNICON_OK;
}

unicon_status unicon__whiten_back(unicon_ctx *ctx, const unicon__whitening *metric, double *g,
                                  int64_t cols) {
  const int64_t n = metric->size;
  UNICON_TRY(unicon__poll(ctx));
  if (metric->kind == UNICON__WHITEN_NONE) return UNICON_OK;
  if (metric->kind == UNICON__WHITEN_CHOLESKY) {
    unicon__tiled_dtrsm_left(ctx, true, n, cols, metric->factor, n, g, cols);
    return UNICON_OK;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < cols; j++) g[i * cols + j] *= metric->scale[i];
  if (metric->kind == UNICON__WHITEN_DIAGONAL) return UNICON_OK;
  double *copy;
  UNICON_NEW(ctx, copy, n * cols);
  memcpy(copy, g, (size_t)(n * cols) * sizeof *g);
  unicon__tiled_dgemm(ctx, true, false, n, cols, n, 1, metric->factor, n, copy, cols, 0, g, cols);
  unicon__drop(ctx, copy);
  return UNICON_OK;
}

unicon_status unicon__whiten_weights(unicon_ctx *ctx, const unicon__whitening *metric, double *g,
                                     int64_t cols, float *out) {
  const int64_t size = metric->size * cols;
  double top = 0;
  UNICON_TRY(unicon__whiten_back(ctx, metric, g, cols));
  for (int64_t k = 0; k < size; k++) top = fabs(g[k]) > top ? fabs(g[k]) : top;
  const double scale = top > 1e15 || top < 1e-15 ? 1 / (top > 0 ? top : 1) : 1;
  for (int64_t k = 0; k < size; k++) out[k] = (float)(g[k] * scale);
  return UNICON_OK;
}

/* R^{-1}: L^T, diag(1/scale) Q, or I; 0 in the null space. */
static unicon_status inverse(unicon_ctx *ctx, const unicon__whitening *metric, double **out) {
  const int64_t n = metric->size;
  UNICON_NEW(ctx, *out, n * n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const double *f = metric->factor;
      const double unit = i == j ? 1 : 0;
      const double scale = metric->scale && metric->scale[i] > 0 ? 1 / metric->scale[i] : 0;
      (*out)[i * n + j] = metric->kind == UNICON__WHITEN_NONE       ? unit
                          : metric->kind == UNICON__WHITEN_CHOLESKY ? (j >= i ? f[j * n + i] : 0)
                          : metric->kind == UNICON__WHITEN_EIGEN    ? scale * f[i * n + j]
                                                                    : scale * unit;
    }
  return UNICON_OK;
}

unicon_status unicon__whiten_identity(unicon_ctx *ctx, const unicon__whitening metric[2],
                                      double *out) {
  const int64_t n = metric[0].size;
  double *of_x, *of_y, sum = 0;
  UNICON_TRY(inverse(ctx, &metric[0], &of_x));
  UNICON_TRY(inverse(ctx, &metric[1], &of_y));
  unicon__tiled_dgemm(ctx, false, true, n, n, n, 1, of_x, n, of_y, n, 0, out, n);
  for (int64_t k = 0; k < n * n; k++) sum += out[k] * out[k];
  for (int64_t k = 0; k < n * n && sum > 0; k++) out[k] *= sqrt((double)n / sum);
  unicon__drop(ctx, of_y);
  unicon__drop(ctx, of_x);
  return UNICON_OK;
}
