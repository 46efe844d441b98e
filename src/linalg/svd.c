/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/svd.h"

#include <string.h>

#include "base/number.h"
#include "linalg/blas.h"
#include "linalg/dense_device.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"

/* out (n by m) = A^T, A m by n. */
static void transpose(const double *a, int64_t m, int64_t n, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[j * m + i] = a[i * n + j];
}

/* ---- A = Q B P^T -------------------------------------------------------------------------- */

enum {
  OWN_FROM = 400, /* columns; below, LAPACK on one thread is as fast */
  PANEL = 32,     /* columns reduced between two updates of the rest */
  GEMV_ROWS = 64, /* of a piece of a matrix-vector product */
  GEMV_COLS = 256
};

/* A (m by n, m >= n) becomes upper bidiagonal B by reflections from both sides, blocked as dgebrd:
 * within a panel the matrix is A - V Y^T - X U, V and U the reflections of its columns and rows.
 * All of these lie by rows: row k of v, y, x, u belongs to column first + k. */
typedef struct reduction {
  int64_t m, n, first;
  double *a, *diagonal, *off_diagonal;
  double *left, *right;         /* all reflections: n rows of m, and n rows of n */
  double *tau_left, *tau_right; /* n */
  double *vx, *yu;              /* [V; X], 2 PANEL rows of m, and [Y; U], 2 PANEL rows of n */
  double coefficient[PANEL];
  const double *in; /* of the matrix-vector product in work */
  double *out;
  int64_t row, col; /* where its matrix begins */
} reduction;

static double *x_row(const reduction *r, int64_t k) {
  return r->vx + (PANEL + k) * r->m;
}

static double *y_row(const reduction *r, int64_t k) {
  return r->yu + k * r->n;
}

/* out -= sum over the first c rows of `rows` of (row . with) times the row of `other`, from index
 * `at` of `rows` and `to` of `other` on. */
static void subtract(reduction *r, int64_t c, const double *rows, int64_t ld, int64_t at,
                     const double *with, const double *other, int64_t ld_other, int64_t to,
                     double *out) {
  if (c == 0) return;
  unicon__dgemv(false, c, ld - at, 1, rows + at, ld, with + at, 0, r->coefficient);
  unicon__dgemv(true, c, ld_other - to, -1, other + to, ld_other, r->coefficient, 1, out + to);
}

/* The same with the entries at `column` of the rows as coefficients. */
static void subtract_at(reduction *r, int64_t c, const double *rows, int64_t ld, int64_t column,
                        const double *other, int64_t ld_other, int64_t to, double *out) {
  if (c == 0) return;
  for (int64_t k = 0; k < c; k++) r->coefficient[k] = rows[k * ld + column];
  unicon__dgemv(true, c, ld_other - to, -1, other + to, ld_other, r->coefficient, 1, out + to);
}

/* A piece of A^T v and of A u. */
static void column_piece(void *state, int64_t item, int worker) {
  (void)worker;
  const reduction *r = state;
  const int64_t at = r->col + item * GEMV_COLS;
  unicon__dgemv(true, r->m - r->row, unicon__least(GEMV_COLS, r->n - at), 1,
                r->a + r->row * r->n + at, r->n, r->in + r->row, 0, r->out + at);
}

static void row_piece(void *state, int64_t item, int worker) {
  (void)worker;
  const reduction *r = state;
  const int64_t at = r->row + item * GEMV_ROWS;
  unicon__dgemv(false, unicon__least(GEMV_ROWS, r->m - at), r->n - r->col, 1,
                r->a + at * r->n + r->col, r->n, r->in + r->col, 0, r->out + at);
}

/* Makes the reflection of x from index `at` on: returns tau, *beta is what is left of x. */
static double make_reflection(double *x, int64_t length, int64_t at, double *beta) {
  const double tau = unicon__dlarfg(length - at, x + at);
  memset(x, 0, (size_t)at * sizeof *x);
  *beta = x[at];
  x[at] = 1;
  return tau;
}

static void scale(double *x, int64_t length, double factor) {
  for (int64_t k = 0; k < length; k++) x[k] *= factor;
}

/* Column and row i = first + c: brings them up to date, makes their reflections v and u, and
 * y = tau A^T v, x = tau A u of the matrix as it is by now. */
static void reduce_pair(unicon_ctx *ctx, reduction *r, int64_t c) {
  const int64_t m = r->m, n = r->n, i = r->first + c, next = i + 1;
  double *v = r->vx + c * m, *u = r->yu + (PANEL + c) * n, *x = x_row(r, c), *y = y_row(r, c);
  const double *all_u = r->yu + PANEL * n, *all_x = x_row(r, 0), *all_y = r->yu;
  for (int64_t k = i; k < m; k++) v[k] = r->a[k * n + i];
  subtract_at(r, c, all_y, n, i, r->vx, m, i, v);
  subtract_at(r, c, all_u, n, i, all_x, m, i, v);
  r->tau_left[i] = make_reflection(v, m, i, &r->diagonal[i]);
  memset(x, 0, (size_t)m * sizeof *x);
  memset(y, 0, (size_t)n * sizeof *y);
  memset(u, 0, (size_t)n * sizeof *u);
  if (next == n) return;
  r->in = v, r->out = y, r->row = i, r->col = next;
  unicon__parallel_for(ctx, (n - next + GEMV_COLS - 1) / GEMV_COLS, column_piece, r);
  subtract(r, c, r->vx, m, i, v, all_y, n, next, y);
  subtract(r, c, all_x, m, i, v, all_u, n, next, y);
  scale(y + next, n - next, r->tau_left[i]);
  memcpy(u + next, r->a + i * n + next, (size_t)(n - next) * sizeof *u);
  subtract_at(r, c + 1, r->vx, m, i, all_y, n, next, u);
  subtract_at(r, c, all_x, m, i, all_u, n, next, u);
  r->tau_right[i] = make_reflection(u, n, next, &r->off_diagonal[i]);
  r->in = u, r->out = x, r->row = next;
  unicon__parallel_for(ctx, (m - next + GEMV_ROWS - 1) / GEMV_ROWS, row_piece, r);
  subtract(r, c + 1, all_y, n, next, u, r->vx, m, next, x);
  subtract(r, c, all_u, n, next, u, all_x, m, next, x);
  scale(x + next, m - next, r->tau_right[i]);
}

static unicon_status reduce(unicon_ctx *ctx, reduction *r) {
  const int64_t m = r->m, n = r->n;
  UNICON_NEW(ctx, r->vx, 2 * PANEL * m);
  UNICON_NEW(ctx, r->yu, 2 * PANEL * n);
  for (r->first = 0; r->first < n; r->first += PANEL) {
    const int64_t width = unicon__least(PANEL, n - r->first), end = r->first + width;
    for (int64_t c = 0; c < width; c++) {
      UNICON_TRY(unicon__poll(ctx));
      reduce_pair(ctx, r, c);
    }
    memcpy(r->left + r->first * m, r->vx, (size_t)(width * m) * sizeof *r->left);
    memcpy(r->right + r->first * n, r->yu + PANEL * n, (size_t)(width * n) * sizeof *r->right);
    if (end < n) /* width is PANEL, so V and X lie side by side */
      unicon__tiled_dgemm(ctx, true, false, m - end, n - end, 2 * PANEL, -1, r->vx + end, m,
                          r->yu + end, n, 1, r->a + end * (n + 1), n);
  }
  unicon__drop(ctx, r->yu);
  unicon__drop(ctx, r->vx);
  return UNICON_OK;
}

/* ---- U = Q U_B, V = P V_B ------------------------------------------------------------------ */

typedef struct turning {
  unicon__reflections left, right;
  const double *u_b; /* n rows: columns of U_B */
  double *u, *vt;
  double *room; /* per worker */
} turning;

static double *turning_room(const turning *t, int worker) {
  return t->room + worker * UNICON__REFLECT_SLICE * (UNICON__REFLECT_BLOCK + t->left.n);
}

static void turn_left(void *state, unicon__cell cell) {
  const turning *t = state;
  const int64_t m = t->left.n, n = t->left.count, col = cell.row * UNICON__REFLECT_SLICE;
  const int64_t cols = unicon__least(UNICON__REFLECT_SLICE, n - col);
  double *room = turning_room(t, cell.worker);
  double *q = room + UNICON__REFLECT_BLOCK * UNICON__REFLECT_SLICE;
  memset(q, 0, (size_t)(m * cols) * sizeof *q);
  for (int64_t c = 0; c < cols; c++)
    memcpy(q + c * m, t->u_b + (col + c) * n, (size_t)n * sizeof *q);
  unicon__reflect(&t->left, n - 1, q, m, cols, room);
  for (int64_t i = 0; i < m; i++)
    for (int64_t c = 0; c < cols; c++) t->u[i * n + col + c] = q[c * m + i];
}

/* Reflection j has its 1 at j + 1. */
static void turn_right(void *state, unicon__cell cell) {
  const turning *t = state;
  const int64_t n = t->left.count, row = cell.row * UNICON__REFLECT_SLICE;
  unicon__reflect(&t->right, t->right.count - 1, t->vt + row * n + 1, n,
                  unicon__least(UNICON__REFLECT_SLICE, n - row), turning_room(t, cell.worker));
}

static unicon_status turn_back(unicon_ctx *ctx, turning *t) {
  const int64_t n = t->left.count;
  const int64_t slices = (n + UNICON__REFLECT_SLICE - 1) / UNICON__REFLECT_SLICE;
  UNICON_TRY(unicon__reflections_open(ctx, &t->left));
  UNICON_TRY(unicon__reflections_open(ctx, &t->right));
  UNICON_NEW(ctx, t->room,
             unicon__workers_for(ctx, slices) * UNICON__REFLECT_SLICE *
                 (UNICON__REFLECT_BLOCK + t->left.n));
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, &unicon__blas_region, slices, turn_left, t));
  return unicon__sweep_rows(ctx, NULL, &unicon__blas_region, slices, turn_right, t);
}

/* m >= n. */
static unicon_status bidiagonal(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                double *u, double *vt, int *info) {
  reduction r = {.m = m, .n = n, .a = a, .diagonal = s};
  double *u_b;
  UNICON_NEW(ctx, r.off_diagonal, n);
  UNICON_NEW(ctx, r.tau_left, n);
  UNICON_NEW(ctx, r.tau_right, n);
  UNICON_NEW(ctx, r.left, n * m);
  UNICON_NEW(ctx, r.right, n * n);
  UNICON_NEW(ctx, u_b, n * n);
  UNICON_TRY(reduce(ctx, &r));
  UNICON_TRY(unicon__poll(ctx));
  UNICON_TRY(unicon__dbdsdc(ctx, n, s, r.off_diagonal, u_b, vt, info));
  if (*info) return UNICON_OK;
  for (int64_t i = 0; i < n; i++) /* V_B by its columns */
    for (int64_t j = 0; j < i; j++) {
      const double held = vt[i * n + j];
      vt[i * n + j] = vt[j * n + i];
      vt[j * n + i] = held;
    }
  turning t = {.left = {.n = m, .count = n, .ld = m, .v = r.left, .tau = r.tau_left},
               .right = {.n = n - 1, .count = n - 1, .ld = n, .v = r.right + 1, .tau = r.tau_right},
               .u_b = u_b,
               .u = u,
               .vt = vt};
  return turn_back(ctx, &t);
}

static unicon_status decompose(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                               double *u, double *vt, int *info) {
  UNICON_TRY(unicon__poll(ctx));
  if (n < OWN_FROM) return unicon__dgesvd(ctx, m, n, a, s, u, vt, info);
  UNICON_TRY(unicon__dbdsdc_fits(ctx, n));
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__blas_begin();
  const unicon_status status = bidiagonal(ctx, m, n, a, s, u, vt, info);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- shapes ------------------------------------------------------------------------------- */

/* A = Q R, R = U_R diag(s) V^T: U = Q U_R. */
static unicon_status through_qr(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                double *u, double *vt, int *info) {
  double *r, *small;
  UNICON_NEW(ctx, r, n * n);
  UNICON_NEW(ctx, small, n * n);
  UNICON_TRY(unicon__tiled_dqr(ctx, m, n, a, r));
  UNICON_TRY(decompose(ctx, n, n, r, s, small, vt, info));
  UNICON_TRY(unicon__poll(ctx));
  if (*info == 0) unicon__tiled_dgemm(ctx, false, false, m, n, n, 1, a, n, small, n, 0, u, n);
  unicon__drop(ctx, small);
  unicon__drop(ctx, r);
  return UNICON_OK;
}

/* m >= n. */
static unicon_status longer(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s, double *u,
                            double *vt, int *info) {
  return 2 * m >= 3 * n && n > 64 ? through_qr(ctx, m, n, a, s, u, vt, info)
                                  : decompose(ctx, m, n, a, s, u, vt, info);
}

/* A^T = V diag(s) U^T. */
static unicon_status transposed(unicon_ctx *ctx, int64_t m, int64_t n, const double *a, double *s,
                                double *u, double *vt, int *info) {
  double *turned, *v, *ut;
  UNICON_NEW(ctx, turned, n * m);
  UNICON_NEW(ctx, v, n * m);
  UNICON_NEW(ctx, ut, m * m);
  transpose(a, m, n, turned);
  UNICON_TRY(longer(ctx, n, m, turned, s, v, ut, info));
  transpose(v, n, m, vt);
  transpose(ut, m, m, u);
  unicon__drop(ctx, ut);
  unicon__drop(ctx, v);
  unicon__drop(ctx, turned);
  return UNICON_OK;
}

unicon_status unicon__tiled_dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                   double *u, double *vt, int *info) {
  bool done;
  UNICON_TRY(unicon__device_dgesvd(ctx, m, n, a, s, u, vt, &done));
  if (done) *info = 0;
  if (done) return UNICON_OK;
  return m >= n ? longer(ctx, m, n, a, s, u, vt, info) : transposed(ctx, m, n, a, s, u, vt, info);
}
