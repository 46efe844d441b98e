/* SPDX-License-Identifier: Apache-2.0 */
#include "use/regress.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "features/project.h"
#include "linalg/svd.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum {
  PARTS = 3, /* of the folds, of which procrustes is judged on one at a time: it is one SVD each */
  BLOCK_ROWS = 1024, /* of a product */
  POWER_STEPS = 200  /* at most; it stops at 1e-8 */
};

struct unicon__regress {
  unicon__regress_data data;
  unicon__recipe recipe;
  double *mean_x, *mean_y; /* of the features and of Y */
  double top;              /* largest eigenvalue of gram or kernel */
  /* procrustes, and ridges in features: */
  int64_t p;            /* features: d, or landmarks */
  float *phi;           /* n by p, centred */
  double *gram, *cross; /* p by p, p by e */
  double *part[PARTS];  /* cross of three parts of the folds, of procrustes */
  /* kernel map of many rows: */
  unicon__map map;
  float *landmarks;
  double *chol; /* K of the landmarks = L L^T */
  /* kernel map of all rows: */
  double *kernel; /* n by n, lower triangle */
};

/* ---- kernel matrix ------------------------------------------------------------------------ */

typedef struct kernel_rows {
  const unicon__kernel *kernel;
  int64_t n;
  double *k;
} kernel_rows;

static void kernel_row(void *state, unicon__cell cell) {
  const kernel_rows *s = state;
  const int64_t i = cell.row;
  double *row = s->k + i * s->n;
  for (int64_t j = 0; j < i; j++) row[j] = unicon__kernel_value(s->kernel, row[j], 1, 1);
  row[i] = unicon__kernel_value(s->kernel, 1, 1, 1);
}

/* Lower triangle of K of n unit rows, products included in float64: small ridges rest on it. */
static unicon_status kernel_matrix(unicon_ctx *ctx, const unicon__kernel *kernel, const float *x,
                                   int64_t n, int64_t d, double *k) {
  double *rows;
  UNICON_NEW(ctx, rows, n * d);
  for (int64_t i = 0; i < n * d; i++) rows[i] = (double)x[i];
  unicon__tiled_dgemm(ctx, false, true, n, n, d, 1, rows, d, rows, d, 0, k, n);
  unicon__drop(ctx, rows);
  kernel_rows s = {kernel, n, k};
  return unicon__sweep_rows(ctx, NULL, NULL, n, kernel_row, &s);
}

/* Largest eigenvalue of a positive matrix by power steps from a start that is near the ones: few of
 * them for a kernel, whose entries are positive. It only sets the scale of ridges. */
static unicon_status top_eigenvalue(unicon_ctx *ctx, const double *a, int64_t n, double *out) {
  double *v, *w, *room, length = 0, before = -1;
  UNICON_NEW(ctx, v, n);
  UNICON_NEW(ctx, w, n);
  UNICON_NEW(ctx, room, unicon__tiled_dsymv_room(n));
  for (int64_t i = 0; i < n; i++) w[i] = 1 + 0.1 * (double)(i % 7);
  for (int step = 0; step < POWER_STEPS && fabs(length - before) > 1e-8 * length; step++) {
    double square = 0;
    before = length;
    for (int64_t i = 0; i < n; i++) square += w[i] * w[i];
    for (int64_t i = 0; i < n; i++) v[i] = square > 0 ? w[i] / sqrt(square) : 0;
    unicon__tiled_dsymv(ctx, n, a, n, v, w, room);
    length = 0;
    for (int64_t i = 0; i < n; i++) length += w[i] * v[i];
  }
  *out = length > 0 ? length : 1;
  unicon__drop(ctx, room);
  unicon__drop(ctx, w);
  unicon__drop(ctx, v);
  return UNICON_OK;
}

/* A + lambda I = L L^T in place. */
static unicon_status factorise(unicon_ctx *ctx, double *a, int64_t n, double lambda) {
  int64_t info;
  for (int64_t i = 0; i < n; i++) a[i * n + i] += lambda;
  UNICON_TRY(unicon__tiled_dpotrf(ctx, n, a, n, &info));
  if (info != 0)
    return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                        "the matrix of %lld vectors is not positive definite with a ridge of %g",
                        (long long)n, lambda);
  return UNICON_OK;
}

/* ---- features ----------------------------------------------------------------------------- */

/* Part of the folds of procrustes: its first row; rows that are not judged are in none. */
static int64_t part_first(const unicon__regress *r, int64_t part) {
  return unicon__fold_first(r->data.judged, r->data.folds, r->data.folds * part / PARTS);
}

/* cross += phi^T Y' and gram (may be NULL) += phi^T phi over some rows, in float64. */
static unicon_status add_products(unicon_ctx *ctx, const unicon__regress *r, int64_t from,
                                  int64_t to, double *cross, double *gram) {
  const int64_t p = r->p, e = r->data.e;
  double *a, *b;
  UNICON_NEW(ctx, a, BLOCK_ROWS * p);
  UNICON_NEW(ctx, b, BLOCK_ROWS * e);
  for (int64_t first = from; first < to; first += BLOCK_ROWS) {
    const int64_t count = to - first < BLOCK_ROWS ? to - first : BLOCK_ROWS;
    UNICON_TRY(unicon__poll(ctx));
    for (int64_t k = 0; k < count * p; k++) a[k] = (double)r->phi[first * p + k];
    for (int64_t k = 0; k < count * e; k++)
      b[k] = (double)r->data.y[first * e + k] - r->mean_y[k % e];
    unicon__tiled_dgemm(ctx, true, false, p, e, count, 1, a, p, b, e, 1, cross, e);
    if (gram) unicon__tiled_dgemm(ctx, true, false, p, p, count, 1, a, p, a, p, 1, gram, p);
  }
  unicon__drop(ctx, b);
  unicon__drop(ctx, a);
  return UNICON_OK;
}

/* Gram and cross products of centred features and centred Y. Procrustes needs no gram, and keeps
 * the cross products of its parts apart. */
static unicon_status products(unicon_ctx *ctx, unicon__regress *r) {
  const int64_t p = r->p, e = r->data.e;
  UNICON_NEW(ctx, r->cross, p * e);
  if (r->recipe.method != UNICON__BY_PROCRUSTES) {
    UNICON_NEW(ctx, r->gram, p * p);
    UNICON_TRY(add_products(ctx, r, 0, r->data.n, r->cross, r->gram));
    return top_eigenvalue(ctx, r->gram, p, &r->top);
  }
  UNICON_TRY(add_products(ctx, r, r->data.judged, r->data.n, r->cross, NULL));
  for (int t = 0; t < PARTS; t++) {
    UNICON_NEW(ctx, r->part[t], p * e);
    UNICON_TRY(add_products(ctx, r, part_first(r, t), part_first(r, t + 1), r->part[t], NULL));
    for (int64_t k = 0; k < p * e; k++) r->cross[k] += r->part[t][k];
  }
  return UNICON_OK;
}

/* Centres phi, keeping the mean. */
static unicon_status centre(unicon_ctx *ctx, unicon__regress *r) {
  const int64_t n = r->data.n, p = r->p;
  UNICON_NEW(ctx, r->mean_x, p);
  unicon__mean_row(r->phi, n, p, r->mean_x);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < p; k++)
      r->phi[i * p + k] = (float)((double)r->phi[i * p + k] - r->mean_x[k]);
  return UNICON_OK;
}

/* Landmarks are every (n / m)-th row: rows come in no order that matters. Features are
 * L^-1 k(landmarks, x) with K + jitter = L L^T. */
static unicon_status open_landmarks(unicon_ctx *ctx, unicon__regress *r) {
  const unicon__regress_data *data = &r->data;
  const int64_t n = data->n, m = data->anchors, d = data->d;
  double *inverse;
  float *factor;
  UNICON_NEW(ctx, r->landmarks, m * d);
  for (int64_t k = 0; k < m; k++)
    memcpy(r->landmarks + k * d, data->x + (k * n / m) * d, (size_t)d * sizeof(float));
  UNICON_NEW(ctx, r->chol, m * m);
  UNICON_TRY(kernel_matrix(ctx, &r->recipe.kernel, r->landmarks, m, d, r->chol));
  UNICON_TRY(factorise(ctx, r->chol, m, 1e-6 * unicon__kernel_value(&r->recipe.kernel, 1, 1, 1)));
  UNICON_NEW(ctx, inverse, m * m);
  for (int64_t i = 0; i < m; i++) inverse[i * m + i] = 1;
  unicon__tiled_dtrsm_left(ctx, true, m, m, r->chol, m, inverse, m);
  UNICON_NEW(ctx, factor, m * m);
  for (int64_t i = 0; i < m * m; i++) factor[i] = (float)inverse[i];
  unicon__drop(ctx, inverse);
  r->p = m;
  r->map = (unicon__map){.kind = UNICON__MAP_NYSTROM,
                         .in = d,
                         .out = m,
                         .normalize = true,
                         .kernel = r->recipe.kernel,
                         .points = m,
                         .base = r->landmarks,
                         .factor = factor};
  UNICON_TRY(unicon__map_settle(ctx, &ctx->arena, &r->map));
  unicon__segment segment;
  const unicon_rows rows = unicon__rows_over("x", data->x, n, d, &segment);
  const unicon__source source = {.rows = &rows, .count = n, .map = &r->map};
  UNICON_NEW(ctx, r->phi, n * m);
  UNICON_TRY(unicon__project(ctx, &source, NULL, m, 0, n, false, false, r->phi, m));
  unicon__drop(ctx, factor);
  r->map.factor = NULL;
  UNICON_TRY(centre(ctx, r));
  return products(ctx, r);
}

static unicon_status open_linear(unicon_ctx *ctx, unicon__regress *r) {
  r->p = r->data.d;
  UNICON_NEW(ctx, r->phi, r->data.n * r->p);
  memcpy(r->phi, r->data.x, (size_t)(r->data.n * r->p) * sizeof *r->phi);
  UNICON_TRY(centre(ctx, r));
  return products(ctx, r);
}

unicon_status unicon__regress_open(unicon_ctx *ctx, const unicon__regress_data *data,
                                   const unicon__recipe *recipe, unicon__regress **out) {
  unicon__regress *r;
  UNICON_NEW(ctx, r, 1);
  r->data = *data;
  r->recipe = *recipe;
  UNICON_NEW(ctx, r->mean_y, data->e);
  unicon__mean_row(data->y, data->n, data->e, r->mean_y);
  *out = r;
  if (recipe->method != UNICON__BY_KERNEL) return open_linear(ctx, r);
  if (data->n > data->anchors) return open_landmarks(ctx, r);
  UNICON_NEW(ctx, r->kernel, data->n * data->n);
  UNICON_TRY(kernel_matrix(ctx, &recipe->kernel, data->x, data->n, data->d, r->kernel));
  return top_eigenvalue(ctx, r->kernel, data->n, &r->top);
}

void unicon__regress_close(unicon_ctx *ctx, unicon__regress *r) {
  if (!r) return;
  unicon__drop(ctx, r->kernel);
  unicon__drop(ctx, r->map.square);
  unicon__drop(ctx, r->map.near);
  unicon__drop(ctx, r->map.center);
  unicon__drop(ctx, r->chol);
  unicon__drop(ctx, r->landmarks);
  for (int t = PARTS; t-- > 0;) unicon__drop(ctx, r->part[t]);
  unicon__drop(ctx, r->gram);
  unicon__drop(ctx, r->cross);
  unicon__drop(ctx, r->phi);
  unicon__drop(ctx, r->mean_x);
  unicon__drop(ctx, r->mean_y);
  unicon__drop(ctx, r);
}

/* ---- results ------------------------------------------------------------------------------ */

/* The rows of a fold without it: y minus E, M E = R, at length 1. M (b by b) and R (b by e) are
 * destroyed. b^3 / 3 + 2 b^2 e flops. */
static unicon_status write_fold(unicon_ctx *ctx, const unicon__regress *r, int64_t first, int64_t b,
                                double *m, double *residual, float *left) {
  const int64_t e = r->data.e;
  double most = 0;
  for (int64_t i = 0; i < b; i++) most = fmax(most, m[i * b + i]);
  UNICON_TRY(factorise(ctx, m, b, 1e-12 * most)); /* equal rows: as far as they are known */
  unicon__tiled_dtrsm_left(ctx, false, b, e, m, b, residual, e);
  unicon__tiled_dtrsm_left(ctx, true, b, e, m, b, residual, e);
  for (int64_t k = 0; k < b * e; k++)
    left[first * e + k] = (float)((double)r->data.y[first * e + k] - residual[k]);
  unicon__scale_rows(left + first * e, b, e, e, 1);
  return UNICON_OK;
}

static int64_t fold_first(const unicon__regress *r, int64_t fold) {
  return unicon__fold_first(r->data.judged, r->data.folds, fold);
}

/* Rows of the largest fold. */
static int64_t fold_rows(const unicon__regress *r) {
  return r->data.judged / r->data.folds + 1;
}

static unicon_status to_floats(unicon_ctx *ctx, const double *from, int64_t count, float **out) {
  UNICON_NEW(ctx, *out, count);
  for (int64_t k = 0; k < count; k++) (*out)[k] = (float)from[k];
  return UNICON_OK;
}

/* ---- procrustes --------------------------------------------------------------------------- */

/* The orthogonal matrix (or one with orthonormal columns or rows) nearest to `cross`, in place. */
static unicon_status nearest_rotation(unicon_ctx *ctx, double *cross, int64_t d, int64_t e) {
  const int64_t q = d < e ? d : e;
  double *s, *u, *vt;
  int info;
  UNICON_NEW(ctx, s, q);
  UNICON_NEW(ctx, u, d * q);
  UNICON_NEW(ctx, vt, q * e);
  UNICON_TRY(unicon__tiled_dgesvd(ctx, d, e, cross, s, u, vt, &info));
  if (info != 0)
    return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                        "the singular values of %lld by %lld numbers did not converge",
                        (long long)d, (long long)e);
  unicon__tiled_dgemm(ctx, false, false, d, e, q, 1, u, q, vt, e, 0, cross, e);
  unicon__drop(ctx, vt);
  unicon__drop(ctx, u);
  unicon__drop(ctx, s);
  return UNICON_OK;
}

/* Rows of every part by the rotation of the others. */
static unicon_status rotate_parts(unicon_ctx *ctx, const unicon__regress *r, float *left) {
  const int64_t d = r->p, e = r->data.e;
  double *rotation;
  float *weight;
  UNICON_NEW(ctx, rotation, d * e);
  UNICON_NEW(ctx, weight, d * e);
  for (int t = 0; t < PARTS; t++) {
    const int64_t first = part_first(r, t), count = part_first(r, t + 1) - first;
    float *out = left + first * e;
    if (count == 0) continue;
    for (int64_t k = 0; k < d * e; k++) rotation[k] = r->cross[k] - r->part[t][k];
    UNICON_TRY(nearest_rotation(ctx, rotation, d, e));
    for (int64_t k = 0; k < d * e; k++) weight[k] = (float)rotation[k];
    unicon__tiled_sgemm(ctx, false, false, count, e, d, 1, r->phi + first * d, d, weight, e, 0, out,
                        e);
    for (int64_t k = 0; k < count * e; k++) out[k] = (float)((double)out[k] + r->mean_y[k % e]);
    unicon__scale_rows(out, count, e, e, 1);
  }
  unicon__drop(ctx, weight);
  unicon__drop(ctx, rotation);
  return UNICON_OK;
}

static unicon_status fit_procrustes(unicon_ctx *ctx, const unicon__regress *r, float *left,
                                    unicon__regression *map) {
  if (left) UNICON_TRY(rotate_parts(ctx, r, left));
  if (!map) return UNICON_OK;
  double *rotation;
  UNICON_NEW(ctx, rotation, r->p * r->data.e);
  memcpy(rotation, r->cross, (size_t)(r->p * r->data.e) * sizeof *rotation);
  UNICON_TRY(nearest_rotation(ctx, rotation, r->p, r->data.e));
  UNICON_TRY(to_floats(ctx, r->mean_x, r->p, &map->mean));
  UNICON_TRY(to_floats(ctx, r->mean_y, r->data.e, &map->offset));
  return to_floats(ctx, rotation, r->p * r->data.e, &map->weight);
}

/* ---- ridge in features -------------------------------------------------------------------- */

/* I - H of a fold: I - 1/n - Z Z^T, rows of Z being L^-1 phi_i; residuals R = Y' - phi W. */
static unicon_status ridge_left(unicon_ctx *ctx, const unicon__regress *r, const double *l,
                                const double *weight, float *left) {
  const int64_t p = r->p, e = r->data.e, room = fold_rows(r);
  double *phi, *residual, *m;
  UNICON_NEW(ctx, phi, room * p);
  UNICON_NEW(ctx, residual, room * e);
  UNICON_NEW(ctx, m, room * room);
  for (int64_t f = 0; f < r->data.folds; f++) {
    const int64_t first = fold_first(r, f), b = fold_first(r, f + 1) - first;
    for (int64_t k = 0; k < b * p; k++) phi[k] = (double)r->phi[first * p + k];
    for (int64_t k = 0; k < b * e; k++)
      residual[k] = (double)r->data.y[first * e + k] - r->mean_y[k % e];
    unicon__tiled_dgemm(ctx, false, false, b, e, p, -1, phi, p, weight, e, 1, residual, e);
    unicon__tiled_dtrsm_right(ctx, true, b, p, l, p, phi, p);
    for (int64_t k = 0; k < b * b; k++) m[k] = (k / b == k % b ? 1 : 0) - 1 / (double)r->data.n;
    unicon__tiled_dgemm(ctx, false, true, b, b, p, -1, phi, p, phi, p, 1, m, b);
    UNICON_TRY(write_fold(ctx, r, first, b, m, residual, left));
  }
  unicon__drop(ctx, m);
  unicon__drop(ctx, residual);
  unicon__drop(ctx, phi);
  return UNICON_OK;
}

/* W of features to that of the landmarks: k(x) L^-T W, and the mean of the features into b. */
static unicon_status landmark_map(unicon_ctx *ctx, const unicon__regress *r, double *weight,
                                  unicon__regression *map) {
  const int64_t m = r->p, e = r->data.e;
  double *offset;
  UNICON_NEW(ctx, offset, e);
  for (int64_t k = 0; k < e; k++) offset[k] = r->mean_y[k];
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < e; k++) offset[k] -= r->mean_x[i] * weight[i * e + k];
  unicon__tiled_dtrsm_left(ctx, true, m, e, r->chol, m, weight, e);
  UNICON_NEW(ctx, map->base, m * r->data.d);
  memcpy(map->base, r->landmarks, (size_t)(m * r->data.d) * sizeof *map->base);
  map->points = m;
  UNICON_TRY(to_floats(ctx, offset, e, &map->offset));
  return to_floats(ctx, weight, m * e, &map->weight);
}

static unicon_status fit_ridge(unicon_ctx *ctx, const unicon__regress *r, double ridge, float *left,
                               unicon__regression *map) {
  const int64_t p = r->p, e = r->data.e;
  double *l, *weight;
  UNICON_NEW(ctx, l, p * p);
  UNICON_NEW(ctx, weight, p * e);
  memcpy(l, r->gram, (size_t)(p * p) * sizeof *l);
  memcpy(weight, r->cross, (size_t)(p * e) * sizeof *weight);
  UNICON_TRY(factorise(ctx, l, p, ridge * r->top));
  unicon__tiled_dtrsm_left(ctx, false, p, e, l, p, weight, e);
  unicon__tiled_dtrsm_left(ctx, true, p, e, l, p, weight, e);
  if (left) UNICON_TRY(ridge_left(ctx, r, l, weight, left));
  unicon__drop(ctx, l);
  if (map && r->landmarks) UNICON_TRY(landmark_map(ctx, r, weight, map));
  if (map && !r->landmarks) {
    UNICON_TRY(to_floats(ctx, r->mean_x, p, &map->mean));
    UNICON_TRY(to_floats(ctx, r->mean_y, e, &map->offset));
    UNICON_TRY(to_floats(ctx, weight, p * e, &map->weight));
  }
  unicon__drop(ctx, weight);
  return UNICON_OK;
}

/* ---- kernel map of all rows --------------------------------------------------------------- */

/* M of a fold: B^T B - u u^T / 1^T u, B being its columns of L^-1, which are 0 above the fold;
 * residuals are rows of a = M Y. n^3 / 3 flops for all folds, and n^2 b for the products. */
static unicon_status kernel_left(unicon_ctx *ctx, const unicon__regress *r, const double *l,
                                 const double *a, double sum, float *left) {
  const int64_t n = r->data.n, e = r->data.e, wide = e + 1, room = fold_rows(r);
  double *block, *residual, *m;
  UNICON_NEW(ctx, block, n * room);
  UNICON_NEW(ctx, residual, room * e);
  UNICON_NEW(ctx, m, room * room);
  for (int64_t f = 0; f < r->data.folds; f++) {
    const int64_t first = fold_first(r, f), b = fold_first(r, f + 1) - first, rows = n - first;
    UNICON_TRY(unicon__poll(ctx));
    memset(block, 0, (size_t)(rows * b) * sizeof *block);
    for (int64_t k = 0; k < b; k++) block[k * b + k] = 1;
    unicon__tiled_dtrsm_left(ctx, false, rows, b, l + first * n + first, n, block, b);
    for (int64_t k = 0; k < b * b; k++)
      m[k] = -a[(first + k / b) * wide + e] * a[(first + k % b) * wide + e] / sum;
    unicon__tiled_dgemm(ctx, true, false, b, b, rows, 1, block, b, block, b, 1, m, b);
    for (int64_t k = 0; k < b * e; k++) residual[k] = a[(first + k / e) * wide + k % e];
    UNICON_TRY(write_fold(ctx, r, first, b, m, residual, left));
  }
  unicon__drop(ctx, m);
  unicon__drop(ctx, residual);
  unicon__drop(ctx, block);
  return UNICON_OK;
}

/* Y and 1 through A^-1, n by e + 1 in place of a; sums of the columns in `sum`. */
static unicon_status solve_targets(unicon_ctx *ctx, const unicon__regress *r, const double *l,
                                   double *a, double *sum) {
  const int64_t n = r->data.n, e = r->data.e, wide = e + 1;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < e; k++) a[i * wide + k] = (double)r->data.y[i * e + k];
    a[i * wide + e] = 1;
  }
  unicon__tiled_dtrsm_left(ctx, false, n, wide, l, n, a, wide);
  unicon__tiled_dtrsm_left(ctx, true, n, wide, l, n, a, wide);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < wide; k++) sum[k] += a[i * wide + k];
  return unicon__poll(ctx);
}

static unicon_status fit_kernel(unicon_ctx *ctx, const unicon__regress *r, double ridge,
                                float *left, unicon__regression *map) {
  const int64_t n = r->data.n, e = r->data.e, wide = e + 1;
  double *l, *a, *b;
  UNICON_NEW(ctx, l, n * n);
  UNICON_NEW(ctx, a, n * wide);
  UNICON_NEW(ctx, b, wide);
  memcpy(l, r->kernel, (size_t)(n * n) * sizeof *l);
  UNICON_TRY(factorise(ctx, l, n, ridge * r->top));
  UNICON_TRY(solve_targets(ctx, r, l, a, b));
  const double sum = b[e];
  for (int64_t k = 0; k < e; k++) b[k] /= sum;
  for (int64_t i = 0; i < n; i++) /* a = A^-1 (Y - 1 b^T) = M Y */
    for (int64_t k = 0; k < e; k++) a[i * wide + k] -= a[i * wide + e] * b[k];
  if (left) UNICON_TRY(kernel_left(ctx, r, l, a, sum, left));
  unicon__drop(ctx, l);
  if (map) {
    map->points = n;
    UNICON_NEW(ctx, map->weight, n * e);
    for (int64_t k = 0; k < n * e; k++) map->weight[k] = (float)a[k / e * wide + k % e];
    UNICON_TRY(to_floats(ctx, b, e, &map->offset));
    UNICON_NEW(ctx, map->base, n * r->data.d);
    memcpy(map->base, r->data.x, (size_t)(n * r->data.d) * sizeof *map->base);
  }
  unicon__drop(ctx, b);
  unicon__drop(ctx, a);
  return UNICON_OK;
}

unicon_status unicon__regress_fit(unicon_ctx *ctx, unicon__regress *r, double ridge, float *left,
                                  unicon__regression *map) {
  if (map) *map = (unicon__regression){0};
  if (r->recipe.method == UNICON__BY_PROCRUSTES) return fit_procrustes(ctx, r, left, map);
  return r->kernel ? fit_kernel(ctx, r, ridge, left, map) : fit_ridge(ctx, r, ridge, left, map);
}

/* ---- use ---------------------------------------------------------------------------------- */

unicon_status unicon__regress_map(unicon_ctx *ctx, unicon__arena *arena,
                                  const unicon__recipe *recipe, const unicon__regression *map,
                                  int64_t d, unicon__map *out) {
  *out = (unicon__map){.kind = map->points > 0 ? UNICON__MAP_NYSTROM : UNICON__MAP_LINEAR,
                       .in = d,
                       .out = map->points > 0 ? map->points : d,
                       .normalize = true,
                       .mean = map->mean,
                       .kernel = {.kind = UNICON__KERNEL_LINEAR, .width = 1},
                       .points = map->points,
                       .base = map->base};
  if (map->points == 0) return UNICON_OK;
  out->kernel = recipe->kernel;
  return unicon__map_settle(ctx, arena, out);
}

unicon_status unicon__regress_apply(unicon_ctx *ctx, const unicon__recipe *recipe,
                                    const unicon__regression *map, int64_t d, int64_t e,
                                    const float *x, int64_t n, float *out) {
  unicon__map features;
  unicon__segment segment;
  const unicon_rows rows = unicon__rows_over("x", x, n, d, &segment);
  UNICON_TRY(unicon__regress_map(ctx, &ctx->arena, recipe, map, d, &features));
  const unicon__source source = {.rows = &rows, .count = n, .map = &features};
  UNICON_TRY(unicon__project(ctx, &source, map->weight, e, 0, n, false, false, out, e));
  for (int64_t i = 0; i < n; i++) unicon__vec_best()->add_scaled(out + i * e, map->offset, e, 1);
  unicon__scale_rows(out, n, e, e, 1);
  return UNICON_OK;
}
