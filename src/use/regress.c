/* SPDX-License-Identifier: Apache-2.0 */
#include "use/regress.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "features/project.h"
#include "linalg/svd.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum { THIRDS = 3, BLOCK_ROWS = 1024, POWER_STEPS = 200, DIAGONAL_COLS = 512 };

struct unicon__regress {
  unicon__regress_data data;
  unicon__recipe recipe;
  double *mean_x, *mean_y; /* of the features and of Y */
  double top;              /* largest eigenvalue of gram or kernel */
  /* procrustes, and ridges in features: */
  int64_t p;             /* features: d, or landmarks */
  float *phi;            /* n by p, centred */
  double *gram, *cross;  /* p by p, p by e */
  double *third[THIRDS]; /* cross of the rows i = t mod 3, of procrustes */
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

static void kernel_row(void *state, int64_t i, int worker) {
  (void)worker;
  const kernel_rows *s = state;
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
  return unicon__parallel_rounds(ctx, "migrate", 0, 1, n, kernel_row, &s);
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

/* Gram and cross products of centred features and centred Y, in float64. `thirds` keeps the cross
 * products of three parts of the rows apart. */
static unicon_status products(unicon_ctx *ctx, unicon__regress *r, bool thirds) {
  const int64_t n = r->data.n, p = r->p, e = r->data.e;
  double *a, *b;
  UNICON_NEW(ctx, r->cross, p * e);
  if (!thirds) UNICON_NEW(ctx, r->gram, p * p);
  for (int t = 0; t < THIRDS && thirds; t++) UNICON_NEW(ctx, r->third[t], p * e);
  UNICON_NEW(ctx, a, BLOCK_ROWS * p);
  UNICON_NEW(ctx, b, BLOCK_ROWS * e);
  for (int t = 0; t < (thirds ? THIRDS : 1); t++) {
    double *cross = thirds ? r->third[t] : r->cross;
    const int64_t step = thirds ? THIRDS : 1;
    for (int64_t first = t; first < n;) {
      int64_t count = 0;
      UNICON_TRY(unicon__poll(ctx));
      for (; count < BLOCK_ROWS && first < n; count++, first += step) {
        for (int64_t k = 0; k < p; k++) a[count * p + k] = (double)r->phi[first * p + k];
        for (int64_t k = 0; k < e; k++)
          b[count * e + k] = (double)r->data.y[first * e + k] - r->mean_y[k];
      }
      unicon__tiled_dgemm(ctx, true, false, p, e, count, 1, a, p, b, e, 1, cross, e);
      if (!thirds) unicon__tiled_dgemm(ctx, true, false, p, p, count, 1, a, p, a, p, 1, r->gram, p);
    }
  }
  for (int t = 0; t < THIRDS && thirds; t++)
    for (int64_t k = 0; k < p * e; k++) r->cross[k] += r->third[t][k];
  unicon__drop(ctx, b);
  unicon__drop(ctx, a);
  return thirds ? UNICON_OK : top_eigenvalue(ctx, r->gram, p, &r->top);
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
  return products(ctx, r, false);
}

static unicon_status open_linear(unicon_ctx *ctx, unicon__regress *r) {
  r->p = r->data.d;
  UNICON_NEW(ctx, r->phi, r->data.n * r->p);
  memcpy(r->phi, r->data.x, (size_t)(r->data.n * r->p) * sizeof *r->phi);
  UNICON_TRY(centre(ctx, r));
  return products(ctx, r, r->recipe.method == UNICON__BY_PROCRUSTES);
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
  for (int t = THIRDS; t-- > 0;) unicon__drop(ctx, r->third[t]);
  unicon__drop(ctx, r->gram);
  unicon__drop(ctx, r->cross);
  unicon__drop(ctx, r->phi);
  unicon__drop(ctx, r->mean_x);
  unicon__drop(ctx, r->mean_y);
  unicon__drop(ctx, r);
}

/* ---- results ------------------------------------------------------------------------------ */

/* Row i without itself: y_i minus its residual over `keeps`, at length 1. */
static void write_left(const unicon__regress *r, int64_t i, const double *residual, double keeps,
                       float *left) {
  const int64_t e = r->data.e;
  const double scale = 1 / fmax(keeps, 1e-12);
  for (int64_t k = 0; k < e; k++)
    left[i * e + k] = (float)((double)r->data.y[i * e + k] - residual[k] * scale);
  unicon__scale_rows(left + i * e, 1, e, e, 1);
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

/* Rows of every third by the rotation of the other two. */
static unicon_status rotate_thirds(unicon_ctx *ctx, const unicon__regress *r, float *left) {
  const int64_t n = r->data.judged, d = r->p, e = r->data.e;
  double *rotation;
  float *weight, *all;
  UNICON_NEW(ctx, rotation, d * e);
  UNICON_NEW(ctx, weight, d * e);
  UNICON_NEW(ctx, all, n * e);
  for (int t = 0; t < THIRDS; t++) {
    for (int64_t k = 0; k < d * e; k++) rotation[k] = r->cross[k] - r->third[t][k];
    UNICON_TRY(nearest_rotation(ctx, rotation, d, e));
    for (int64_t k = 0; k < d * e; k++) weight[k] = (float)rotation[k];
    unicon__tiled_sgemm(ctx, false, false, n, e, d, 1, r->phi, d, weight, e, 0, all, e);
    for (int64_t i = t; i < n; i += THIRDS) {
      for (int64_t k = 0; k < e; k++)
        left[i * e + k] = (float)((double)all[i * e + k] + r->mean_y[k]);
      unicon__scale_rows(left + i * e, 1, e, e, 1);
    }
  }
  unicon__drop(ctx, all);
  unicon__drop(ctx, weight);
  unicon__drop(ctx, rotation);
  return UNICON_OK;
}

static unicon_status fit_procrustes(unicon_ctx *ctx, const unicon__regress *r,
                                    const unicon__regress_want *want) {
  unicon__regression *map = want->map;
  if (want->left) UNICON_TRY(rotate_thirds(ctx, r, want->left));
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

/* What is known of rows left out: `residual` of row i of the fit on all, and how much of it `keeps`
 * is its own doing. */
static void note_left(const unicon__regress *r, const unicon__regress_want *want, int64_t i,
                      const double *residual, double keeps) {
  const int64_t e = r->data.e;
  if (want->left) write_left(r, i, residual, keeps, want->left);
  if (!want->two) return;
  want->two->diagonal[i] = keeps;
  for (int64_t k = 0; k < e; k++) want->two->residual[i * e + k] = (float)residual[k];
}

static unicon_status open_two(unicon_ctx *ctx, const unicon__regress *r, unicon__left_two *two) {
  const int64_t n = r->data.judged;
  two->items = n;
  UNICON_NEW(ctx, two->cross, two->queries * n);
  UNICON_NEW(ctx, two->diagonal, n);
  UNICON_NEW(ctx, two->residual, n * r->data.e);
  return UNICON_OK;
}

/* Rows left out: their residuals keep 1 - 1/n - |z_i|^2 of their own, z_i = L^-1 phi_i, and have
 * -1/n - z_i . z_j in common. */
static unicon_status ridge_left(unicon_ctx *ctx, const unicon__regress *r, const double *l,
                                const double *weight, const unicon__regress_want *want) {
  const int64_t n = r->data.judged, p = r->p, e = r->data.e;
  const double share = 1 / (double)r->data.n;
  double *phi, *guess;
  float *z = NULL;
  UNICON_NEW(ctx, phi, BLOCK_ROWS * p);
  UNICON_NEW(ctx, guess, BLOCK_ROWS * e);
  if (want->two) UNICON_NEW(ctx, z, n * p);
  for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
    const int64_t count = n - first < BLOCK_ROWS ? n - first : BLOCK_ROWS;
    UNICON_TRY(unicon__poll(ctx));
    for (int64_t k = 0; k < count * p; k++) phi[k] = (double)r->phi[first * p + k];
    unicon__tiled_dgemm(ctx, false, false, count, e, p, 1, phi, p, weight, e, 0, guess, e);
    unicon__tiled_dtrsm_right(ctx, true, count, p, l, p, phi, p);
    for (int64_t k = 0; k < count * p && z; k++) z[first * p + k] = (float)phi[k];
    for (int64_t i = 0; i < count; i++) {
      double own = share, *residual = guess + i * e;
      for (int64_t k = 0; k < p; k++) own += phi[i * p + k] * phi[i * p + k];
      for (int64_t k = 0; k < e; k++)
        residual[k] = (double)r->data.y[(first + i) * e + k] - r->mean_y[k] - residual[k];
      note_left(r, want, first + i, residual, 1 - own);
    }
  }
  if (want->two) {
    unicon__left_two *two = want->two;
    unicon__tiled_sgemm(ctx, false, true, two->queries, n, p, -1, z, p, z, p, 0, two->cross, n);
    for (int64_t k = 0; k < two->queries * n; k++) two->cross[k] -= (float)share;
  }
  unicon__drop(ctx, z);
  unicon__drop(ctx, guess);
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

static unicon_status fit_ridge(unicon_ctx *ctx, const unicon__regress *r, double ridge,
                               const unicon__regress_want *want) {
  unicon__regression *map = want->map;
  const int64_t p = r->p, e = r->data.e;
  double *l, *weight;
  UNICON_NEW(ctx, l, p * p);
  UNICON_NEW(ctx, weight, p * e);
  memcpy(l, r->gram, (size_t)(p * p) * sizeof *l);
  memcpy(weight, r->cross, (size_t)(p * e) * sizeof *weight);
  UNICON_TRY(factorise(ctx, l, p, ridge * r->top));
  unicon__tiled_dtrsm_left(ctx, false, p, e, l, p, weight, e);
  unicon__tiled_dtrsm_left(ctx, true, p, e, l, p, weight, e);
  if (want->left || want->two) UNICON_TRY(ridge_left(ctx, r, l, weight, want));
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

/* Diagonal of A^-1 = L^-T L^-1: squared lengths of the columns of L^-1, a block of them at a time;
 * above the block they are 0. n^3 / 3 flops. */
static unicon_status inverse_diagonal(unicon_ctx *ctx, const double *l, int64_t n, double *out) {
  double *block;
  UNICON_NEW(ctx, block, n * DIAGONAL_COLS);
  for (int64_t first = 0; first < n; first += DIAGONAL_COLS) {
    const int64_t left = n - first, cols = left < DIAGONAL_COLS ? left : DIAGONAL_COLS;
    UNICON_TRY(unicon__poll(ctx));
    memset(block, 0, (size_t)(left * cols) * sizeof *block);
    for (int64_t k = 0; k < cols; k++) block[k * cols + k] = 1;
    unicon__tiled_dtrsm_left(ctx, false, left, cols, l + first * n + first, n, block, cols);
    for (int64_t k = 0; k < cols; k++) out[first + k] = 0;
    for (int64_t i = 0; i < left; i++)
      for (int64_t k = 0; k < cols; k++)
        out[first + k] += block[i * cols + k] * block[i * cols + k];
  }
  unicon__drop(ctx, block);
  return UNICON_OK;
}

/* M_ij of the queries: rows of A^-1 less u u^T / 1^T u, u = A^-1 1, which is in `last` columns of
 * a. */
static unicon_status inverse_rows(unicon_ctx *ctx, const unicon__regress *r, const double *l,
                                  const double *u, int64_t step, double sum,
                                  unicon__left_two *two) {
  const int64_t n = r->data.n, queries = two->queries;
  double *block;
  UNICON_NEW(ctx, block, n * DIAGONAL_COLS);
  for (int64_t first = 0; first < queries; first += DIAGONAL_COLS) {
    const int64_t left = n - first;
    const int64_t cols = queries - first < DIAGONAL_COLS ? queries - first : DIAGONAL_COLS;
    UNICON_TRY(unicon__poll(ctx));
    memset(block, 0, (size_t)(n * cols) * sizeof *block);
    double *low = block + first * cols; /* above it L^-1 has zeros */
    for (int64_t k = 0; k < cols; k++) low[k * cols + k] = 1;
    unicon__tiled_dtrsm_left(ctx, false, left, cols, l + first * n + first, n, low, cols);
    unicon__tiled_dtrsm_left(ctx, true, n, cols, l, n, block, cols);
    for (int64_t k = 0; k < cols; k++)
      for (int64_t j = 0; j < two->items; j++)
        two->cross[(first + k) * two->items + j] =
            (float)(block[j * cols + k] - u[(first + k) * step] * u[j * step] / sum);
  }
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
                                const unicon__regress_want *want) {
  const int64_t n = r->data.n, e = r->data.e, wide = e + 1;
  const bool judged = want->left || want->two;
  unicon__regression *map = want->map;
  double *l, *a, *b, *diagonal;
  UNICON_NEW(ctx, l, n * n);
  UNICON_NEW(ctx, a, n * wide);
  UNICON_NEW(ctx, b, wide);
  UNICON_NEW(ctx, diagonal, n);
  memcpy(l, r->kernel, (size_t)(n * n) * sizeof *l);
  UNICON_TRY(factorise(ctx, l, n, ridge * r->top));
  UNICON_TRY(solve_targets(ctx, r, l, a, b));
  const double sum = b[e];
  if (judged) UNICON_TRY(inverse_diagonal(ctx, l, n, diagonal));
  if (want->two) UNICON_TRY(inverse_rows(ctx, r, l, a + e, wide, sum, want->two));
  unicon__drop(ctx, l);
  for (int64_t k = 0; k < e; k++) b[k] /= sum;
  if (map) UNICON_NEW(ctx, map->weight, n * e);
  for (int64_t i = 0; i < n; i++) { /* a = A^-1 (Y - 1 b^T) */
    double *row = a + i * wide;
    for (int64_t k = 0; k < e; k++) row[k] -= row[e] * b[k];
    for (int64_t k = 0; k < e && map; k++) map->weight[i * e + k] = (float)row[k];
    if (judged && i < r->data.judged)
      note_left(r, want, i, row, diagonal[i] - row[e] * row[e] / sum);
  }
  unicon__drop(ctx, diagonal);
  if (map) {
    UNICON_TRY(to_floats(ctx, b, e, &map->offset));
    UNICON_NEW(ctx, map->base, n * r->data.d);
    memcpy(map->base, r->data.x, (size_t)(n * r->data.d) * sizeof *map->base);
    map->points = n;
  }
  unicon__drop(ctx, b);
  unicon__drop(ctx, a);
  return UNICON_OK;
}

unicon_status unicon__regress_fit(unicon_ctx *ctx, unicon__regress *r, double ridge,
                                  const unicon__regress_want *want) {
  if (want->map) *want->map = (unicon__regression){0};
  if (r->recipe.method == UNICON__BY_PROCRUSTES) return fit_procrustes(ctx, r, want);
  if (want->two) UNICON_TRY(open_two(ctx, r, want->two));
  return r->kernel ? fit_kernel(ctx, r, ridge, want) : fit_ridge(ctx, r, ridge, want);
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
