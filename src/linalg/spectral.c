/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/spectral.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/dense_device.h"
#include "linalg/reflect.h"
#include "linalg/svd.h"
#include "linalg/tiled.h"

enum {
  DENSE_UP_TO = 768, /* smaller side for which dense is always the choice */
  START_COLUMNS = 256
};

static const double good_residual = 1e-5; /* near the float32 rounding of what M is made of */
static const double square_enough = 1e-4; /* s_r / s_1 of squares: leaves 2e-8, as float32 */
static const double poor_residual = 1e-2; /* worse than this, the dense way is taken instead */

static unicon_status no_convergence(unicon_ctx *ctx, int64_t m, int64_t n) {
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "the singular values of a %lld by %lld matrix did not converge; a larger "
                      "ridge helps",
                      (long long)m, (long long)n);
}

/* *out = M 2^-shift with entries that can be squared: M itself, with shift 0, but where the largest
 * entry is beyond 2^300 or below 2^-300. */
static unicon_status rescale(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                             const double **out, int *shift) {
  enum { SAFE = 300 }; /* squares and sums of 2^40 of them stay far from 2^1024 */
  double top = 0, bad = 0, *scaled;
  for (int64_t k = 0; k < m * n; k++) {
    top = fmax(top, fabs(matrix[k]));
    bad += matrix[k] - matrix[k]; /* NaN where an entry is not finite */
  }
  if (bad != 0) return no_convergence(ctx, m, n);
  *shift = top > 0 ? ilogb(top) : 0;
  *out = matrix;
  if (*shift >= -SAFE && *shift <= SAFE) *shift = 0;
  if (*shift == 0) return UNICON_OK;
  UNICON_NEW(ctx, scaled, m * n);
  for (int64_t k = 0; k < m * n; k++) scaled[k] = ldexp(matrix[k], -*shift);
  *out = scaled;
  return UNICON_OK;
}

static void scale_back(unicon__svd *svd, int shift) {
  for (int64_t k = 0; k < svd->r && shift != 0; k++) svd->s[k] = ldexp(svd->s[k], shift);
  svd->next = ldexp(svd->next, shift);
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
  UNICON_TRY(unicon__poll(ctx));
  unicon__tiled_dgemm(ctx, false, false, m, r, n, 1, matrix, n, svd->v, r, 0, product, r);
  const double left = worst_column(product, svd->u, svd->s, m, r, sums);
  unicon__tiled_dgemm(ctx, true, false, n, r, m, 1, matrix, n, svd->u, r, 0, product, r);
  const double right = worst_column(product, svd->v, svd->s, n, r, sums);
  svd->residual = svd->s[0] > 0 ? (left > right ? left : right) / svd->s[0] : 0;
  unicon__drop(ctx, sums);
  unicon__drop(ctx, product);
  return UNICON_OK;
}

static unicon_status dense(unicon_ctx *ctx, const double *matrix, unicon__svd *svd) {
  const int64_t m = svd->m, n = svd->n, q = unicon__least(m, n), r = svd->r;
  double *copy, *s, *u, *vt;
  int info;
  UNICON_NEW(ctx, copy, m * n);
  UNICON_NEW(ctx, s, q);
  UNICON_NEW(ctx, u, m * q);
  UNICON_NEW(ctx, vt, q * n);
  memcpy(copy, matrix, (size_t)(m * n) * sizeof *copy);
  UNICON_TRY(unicon__tiled_dgesvd(ctx, m, n, copy, s, u, vt, &info));
  if (info) return no_convergence(ctx, m, n);
  for (int64_t i = 0; i < m; i++) memcpy(svd->u + i * r, u + i * q, (size_t)r * sizeof *u);
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

/* M^T M of a matrix M (m by n), or M M^T. */
typedef struct square {
  const double *matrix;
  int64_t m, n;
  bool of_rows; /* M M^T */
} square;

static void make_square(unicon_ctx *ctx, const square *s, double *out) {
  const int64_t w = s->of_rows ? s->m : s->n, k = s->of_rows ? s->n : s->m;
  unicon__tiled_dgemm(ctx, !s->of_rows, s->of_rows, w, w, k, 1, s->matrix, s->n, s->matrix, s->n, 0,
                      out, w);
}

/* Eigenvalues of a square in descending order, and its vectors, one a row. */
static unicon_status square_eigen(unicon_ctx *ctx, const square *s, double *e, double *value,
                                  int *info) {
  const int64_t w = s->of_rows ? s->m : s->n;
  make_square(ctx, s, e);
  UNICON_TRY(unicon__tiled_dsyevd(ctx, w, e, value, info)); /* ascending */
  if (*info > 0) {
    make_square(ctx, s, e);
    UNICON_TRY(unicon__dsyev(ctx, w, e, value, info));
  }
  for (int64_t k = 0; k < w / 2 && !*info; k++) {
    const double kept = value[k];
    value[k] = value[w - 1 - k];
    value[w - 1 - k] = kept;
    for (int64_t i = 0; i < w; i++) {
      const double entry = e[k * w + i];
      e[k * w + i] = e[(w - 1 - k) * w + i];
      e[(w - 1 - k) * w + i] = entry;
    }
  }
  return UNICON_OK;
}

static void triples_of_square(unicon_ctx *ctx, const double *matrix, const double *e,
                              const double *value, unicon__svd *svd) {
  const int64_t m = svd->m, n = svd->n, r = svd->r, q = unicon__least(m, n);
  const bool tall = m >= n;
  double *own = tall ? svd->v : svd->u, *other = tall ? svd->u : svd->v;
  for (int64_t k = 0; k < r; k++) {
    svd->s[k] = sqrt(value[k]);
    for (int64_t j = 0; j < q; j++) own[j * r + k] = e[k * q + j];
  }
  unicon__tiled_dgemm(ctx, !tall, false, tall ? m : n, r, q, 1, matrix, n, own, r, 0, other, r);
  for (int64_t i = 0; i < (tall ? m : n); i++)
    for (int64_t k = 0; k < r; k++) other[i * r + k] /= svd->s[k];
  svd->next = r < q && value[r] > 0 ? sqrt(value[r]) : 0;
  svd->method = "squared";
}

/* From the eigenvectors E of the square of the shorter side: s^2, one basis E, the other M E / s.
 * Products and one symmetric problem, a third of the time of the dense way. What is lost: the
 * second basis is orthogonal to eps (s_1 / s_r)^2, so `good` is false where s_r is far below s_1.
 */
static unicon_status squared(unicon_ctx *ctx, const double *matrix, unicon__svd *svd, bool *good) {
  const int64_t m = svd->m, n = svd->n, r = svd->r, q = unicon__least(m, n);
  double *e, *value;
  int info;
  UNICON_NEW(ctx, e, q * q);
  UNICON_NEW(ctx, value, q);
  UNICON_TRY(square_eigen(ctx, &(square){matrix, m, n, m < n}, e, value, &info));
  *good = !info && value[r - 1] > square_enough * square_enough * value[0];
  if (*good) triples_of_square(ctx, matrix, e, value, svd);
  unicon__drop(ctx, value);
  unicon__drop(ctx, e);
  return UNICON_OK;
}

/* The same on a device, whatever the size. */
static unicon_status squared_there(unicon_ctx *ctx, const double *matrix, unicon__svd *svd,
                                   bool *good) {
  const int64_t r = svd->r;
  double *s;
  UNICON_NEW(ctx, s, r + 1);
  UNICON_TRY(unicon__device_leading(ctx, svd->m, svd->n, r, matrix, s, svd->u, svd->v, good));
  *good = *good && s[r - 1] > square_enough * s[0];
  memcpy(svd->s, s, (size_t)r * sizeof *s);
  svd->next = s[r];
  svd->method = "squared";
  unicon__drop(ctx, s);
  return UNICON_OK;
}

/* Orthonormal bases of the Krylov spaces of M^T M and M M^T, and M times the first. Stored by rows
 * of `most` entries, `width` of them in use. */
typedef struct krylov {
  int64_t m, n, block, width, most;
  double *right, *left, *image; /* n by most, m by most, m by most: image = M right */
  double *fresh, *product;      /* a new block, and its products with a basis */
} krylov;

static unicon_status krylov_open(unicon_ctx *ctx, const unicon__svd *svd, krylov *k) {
  const int64_t q = unicon__least(svd->m, svd->n), longer = svd->m > svd->n ? svd->m : svd->n;
  *k = (krylov){.m = svd->m, .n = svd->n};
  k->block = unicon__least(unicon__least(svd->r / 8 > 32 ? svd->r / 8 : 32, START_COLUMNS), q);
  k->most = unicon__least(q, 4 * svd->r + 2 * k->block);
  UNICON_NEW(ctx, k->right, k->n * k->most);
  UNICON_NEW(ctx, k->left, k->m * k->most);
  UNICON_NEW(ctx, k->image, k->m * k->most);
  UNICON_NEW(ctx, k->fresh, longer * k->block);
  UNICON_NEW(ctx, k->product, k->most * k->block);
  return UNICON_OK;
}

/* Makes the fresh block (rows by b) orthonormal and orthogonal to the basis, twice for rounding;
 * a block that vanishes is replaced by other directions on the way. Appends it to the basis. */
static unicon_status krylov_append(unicon_ctx *ctx, krylov *k, double *basis, int64_t rows,
                                   int64_t b) {
  for (int pass = 0; pass < 2; pass++) {
    if (k->width > 0) {
      unicon__tiled_dgemm(ctx, true, false, k->width, b, rows, 1, basis, k->most, k->fresh, b, 0,
                          k->product, b);
      unicon__tiled_dgemm(ctx, false, false, rows, b, k->width, -1, basis, k->most, k->product, b,
                          1, k->fresh, b);
    }
    UNICON_TRY(unicon__tiled_dqr(ctx, rows, b, k->fresh, NULL));
  }
  for (int64_t i = 0; i < rows; i++)
    memcpy(basis + i * k->most + k->width, k->fresh + i * b, (size_t)b * sizeof *basis);
  return UNICON_OK;
}

/* One more block on both sides: right from M^T times the last left block, left from M times it. */
static unicon_status krylov_grow(unicon_ctx *ctx, const double *matrix, uint64_t seed, krylov *k) {
  const int64_t b = unicon__least(k->block, k->most - k->width), m = k->m, n = k->n;
  const double *from = k->left + k->width - b;
  if (k->width == 0) { /* normals in the place of a left block */
    float row[START_COLUMNS];
    from = k->left;
    for (int64_t i = 0; i < m; i++) {
      unicon__normals(seed, UNICON__STREAM_SKETCH, (uint64_t)i, b, row);
      for (int64_t j = 0; j < b; j++) k->left[i * k->most + j] = (double)row[j];
    }
  }
  unicon__tiled_dgemm(ctx, true, false, n, b, m, 1, matrix, n, from, k->most, 0, k->fresh, b);
  UNICON_TRY(krylov_append(ctx, k, k->right, n, b));
  unicon__tiled_dgemm(ctx, false, false, m, b, n, 1, matrix, n, k->right + k->width, k->most, 0,
                      k->image + k->width, k->most);
  for (int64_t i = 0; i < m; i++)
    memcpy(k->fresh + i * b, k->image + i * k->most + k->width, (size_t)b * sizeof *k->fresh);
  UNICON_TRY(krylov_append(ctx, k, k->left, m, b));
  k->width += b;
  return UNICON_OK;
}

/* Leading triples of left^T M right, lifted. */
static unicon_status krylov_extract(unicon_ctx *ctx, const krylov *k, unicon__svd *svd) {
  const int64_t w = k->width, r = svd->r;
  double *core, *s, *u, *vt;
  int info;
  UNICON_NEW(ctx, core, w * w);
  UNICON_NEW(ctx, s, w);
  UNICON_NEW(ctx, u, w * w);
  UNICON_NEW(ctx, vt, w * w);
  unicon__tiled_dgemm(ctx, true, false, w, w, k->m, 1, k->left, k->most, k->image, k->most, 0, core,
                      w);
  UNICON_TRY(unicon__tiled_dgesvd(ctx, w, w, core, s, u, vt, &info));
  if (info) return no_convergence(ctx, w, w);
  memcpy(svd->s, s, (size_t)r * sizeof *s);
  unicon__tiled_dgemm(ctx, false, false, k->m, r, w, 1, k->left, k->most, u, w, 0, svd->u, r);
  unicon__tiled_dgemm(ctx, false, true, k->n, r, w, 1, k->right, k->most, vt, w, 0, svd->v, r);
  svd->next = r < w ? s[r] : 0;
  svd->method = "random";
  unicon__drop(ctx, vt);
  unicon__drop(ctx, u);
  unicon__drop(ctx, s);
  unicon__drop(ctx, core);
  return UNICON_OK;
}

static unicon_status random_krylov(unicon_ctx *ctx, const double *matrix, uint64_t seed,
                                   unicon__svd *svd) {
  krylov k = {0};
  UNICON_TRY(krylov_open(ctx, svd, &k));
  int64_t target = unicon__least(k.most, 2 * svd->r + k.block);
  for (;;) {
    while (k.width < target) {
      UNICON_TRY(unicon__stage_step(ctx, k.width, k.most));
      UNICON_TRY(krylov_grow(ctx, matrix, seed, &k));
    }
    UNICON_TRY(krylov_extract(ctx, &k, svd));
    UNICON_TRY(certify(ctx, matrix, svd));
    if (svd->residual <= good_residual || k.width == k.most) return UNICON_OK;
    target = unicon__least(k.most, target + svd->r / 2 + k.block);
  }
}

static unicon_status svd_new(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r, unicon__svd *out) {
  *out = (unicon__svd){.m = m, .n = n, .r = r};
  UNICON_NEW(ctx, out->u, m * r);
  UNICON_NEW(ctx, out->s, r);
  UNICON_NEW(ctx, out->v, n * r);
  return UNICON_OK;
}

/* How far the columns of Z (m by w) are from length 1, in squares. */
static double longest_error(const double *z, int64_t m, int64_t w, double *sums) {
  double worst = 0;
  memset(sums, 0, (size_t)w * sizeof *sums);
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < w; k++) sums[k] += z[i * w + k] * z[i * w + k];
  for (int64_t k = 0; k < w; k++) worst = fmax(worst, fabs(sums[k] - 1));
  return worst;
}

/* Orthonormal basis of the columns of Z (m by w) in place. By the Cholesky factor of Z^T Z, which
 * is nearly all products, where the columns are far enough from dependent for that: what is lost of
 * the orthogonality is eps cond(Z)^2. The diagonal of the factor is only a bound of cond(Z) from
 * below; the lengths of the columns that come out show what it hides. */
static unicon_status orthonormal(unicon_ctx *ctx, int64_t m, int64_t w, double *z, double *gram) {
  const double far_enough = 1e-5; /* 1 / cond: leaves 2e-6, far below what a setting asks for */
  const double lost = 2e-6;
  double low = INFINITY, high = 0;
  int64_t info;
  unicon__tiled_dgemm(ctx, true, false, w, w, m, 1, z, w, z, w, 0, gram, w);
  UNICON_TRY(unicon__tiled_dpotrf(ctx, w, gram, w, &info));
  for (int64_t k = 0; k < w && !info; k++) {
    low = fmin(low, gram[k * w + k]);
    high = fmax(high, gram[k * w + k]);
  }
  if (info || !(low > far_enough * high)) return unicon__tiled_dqr(ctx, m, w, z, NULL);
  unicon__tiled_dtrsm_right(ctx, true, m, w, gram, w, z, w);
  return longest_error(z, m, w, gram) <= lost ? UNICON_OK : unicon__tiled_dqr(ctx, m, w, z, NULL);
}

/* Triples of M ~ left (M^T left)^T from the eigenvectors E of the square of image = M^T left (n by
 * w): s^2, U = left E, V = image E / s. V becomes the start of the next time; a direction that M
 * does not have stays as it was. */
static unicon_status warm_extract(unicon_ctx *ctx, const double *left, const double *image,
                                  int64_t w, double *start, unicon__svd *svd) {
  double *e, *value, *turned;
  int info;
  UNICON_NEW(ctx, e, w * w);
  UNICON_NEW(ctx, value, w);
  UNICON_NEW(ctx, turned, svd->n * w);
  UNICON_TRY(square_eigen(ctx, &(square){image, svd->n, w, false}, e, value, &info));
  if (info) return no_convergence(ctx, svd->m, svd->n);
  unicon__tiled_dgemm(ctx, false, true, svd->m, svd->r, w, 1, left, w, e, w, 0, svd->u, svd->r);
  unicon__tiled_dgemm(ctx, false, true, svd->n, w, w, 1, image, w, e, w, 0, turned, w);
  const double floor = value[0] * (double)w * DBL_EPSILON; /* rounding of the squares */
  for (int64_t k = 0; k < w; k++) {
    const double s = value[k] > floor ? sqrt(value[k]) : 0;
    if (k < svd->r) svd->s[k] = s;
    for (int64_t j = 0; j < svd->n && s > 0; j++) start[j * w + k] = turned[j * w + k] / s;
  }
  for (int64_t j = 0; j < svd->n; j++)
    memcpy(svd->v + j * svd->r, start + j * w, (size_t)svd->r * sizeof *start);
  svd->next = svd->r < w && value[svd->r] > floor ? sqrt(value[svd->r]) : 0;
  svd->method = "random";
  return UNICON_OK;
}

unicon_status unicon__svd_warm(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                               int64_t r, double *start, int64_t w, int rounds, unicon__svd *out) {
  double *left, *image, *gram;
  bool done;
  int shift;
  UNICON_TRY(svd_new(ctx, m, n, r, out));
  unicon__block *frame = unicon__frame_open(ctx);
  const int stage = unicon__stage_begin(ctx, "singular values", 0);
  UNICON_TRY(rescale(ctx, matrix, m, n, &matrix, &shift));
  UNICON_TRY(squared_there(ctx, matrix, out, &done));
  if (done) { /* the next may be the host's */
    for (int64_t j = 0; j < n; j++)
      memcpy(start + j * w, out->v + j * r, (size_t)r * sizeof *start);
    scale_back(out, shift);
    unicon__stage_end(ctx, stage);
    unicon__frame_close(ctx, frame);
    return UNICON_OK;
  }
  UNICON_NEW(ctx, left, m * w);
  UNICON_NEW(ctx, image, n * w);
  UNICON_NEW(ctx, gram, w * w);
  for (int k = 0; k < rounds; k++) {
    unicon__tiled_dgemm(ctx, false, false, m, w, n, 1, matrix, n, k ? image : start, w, 0, left, w);
    UNICON_TRY(orthonormal(ctx, m, w, left, gram));
    unicon__tiled_dgemm(ctx, true, false, n, w, m, 1, matrix, n, left, w, 0, image, w);
    if (k + 1 < rounds) UNICON_TRY(orthonormal(ctx, n, w, image, gram));
  }
  UNICON_TRY(warm_extract(ctx, left, image, w, start, out));
  scale_back(out, shift);
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__svd_top(unicon_ctx *ctx, const double *matrix, int64_t m, int64_t n,
                              int64_t r, unicon__svd_method method, uint64_t seed,
                              unicon__svd *out) {
  const int64_t q = unicon__least(m, n);
  if (r < 1 || r > q)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%lld singular values of a %lld by %lld matrix were requested",
                        (long long)r, (long long)m, (long long)n);
  UNICON_TRY(svd_new(ctx, m, n, r, out));
  const bool free = method == UNICON__SVD_AUTO;
  if (free) method = q <= DENSE_UP_TO || 3 * r > q ? UNICON__SVD_DENSE : UNICON__SVD_RANDOM;
  unicon__block *frame = unicon__frame_open(ctx);
  const int stage = unicon__stage_begin(ctx, "singular values", 0);
  bool done = false;
  int shift;
  UNICON_TRY(rescale(ctx, matrix, m, n, &matrix, &shift));
  if (free) UNICON_TRY(squared_there(ctx, matrix, out, &done));
  if (free && !done && method == UNICON__SVD_DENSE) UNICON_TRY(squared(ctx, matrix, out, &done));
  if (done) UNICON_TRY(certify(ctx, matrix, out));
  if (!done && method == UNICON__SVD_RANDOM) { /* comes with its certificate */
    UNICON_TRY(random_krylov(ctx, matrix, seed, out));
    done = out->residual <= poor_residual;
  }
  if (!done) {
    UNICON_TRY(dense(ctx, matrix, out));
    UNICON_TRY(certify(ctx, matrix, out));
  }
  scale_back(out, shift);
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  fix_signs(out);
  return UNICON_OK;
}
