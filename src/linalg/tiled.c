/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/tiled.h"

#include "base/parallel.h"
#include "linalg/blas.h"

enum {
  TILE = 256,          /* rows and columns of a tile at most; fewer cost more packing */
  SLICE = 128,         /* right-hand sides of a triangular solve */
  TOO_SMALL = 1 << 20, /* multiplications that are not worth waking a thread */
};

/* How many pieces of at most `most` a length is cut into, and how long they are (the last may be
 * shorter): about equal, and a multiple of 16. */
static int64_t pieces(int64_t length, int64_t most, int64_t *size) {
  const int64_t count = (length + most - 1) / most;
  *size = count > 0 ? ((length + count - 1) / count + 15) / 16 * 16 : most;
  return (length + *size - 1) / *size;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void run(unicon_ctx *ctx, int64_t work, int64_t items, unicon__item_fn body, void *state) {
  unicon__blas_begin();
  if (work < TOO_SMALL)
    for (int64_t item = 0; item < items; item++) body(state, item, 0);
  else
    unicon__parallel_for(ctx, items, body, state);
  unicon__blas_end();
}

/* ---- general products --------------------------------------------------------------------- */

/* A product in either precision; `wide` is float64. */
typedef struct product {
  bool wide, trans_a, trans_b;
  int64_t m, n, k, lda, ldb, ldc;
  double alpha, beta;
  const void *a, *b;
  void *c;
  int64_t rows, cols, across; /* of a tile; tiles side by side */
} product;

static void product_tile(void *state, int64_t item, int worker) {
  (void)worker;
  const product *p = state;
  const int64_t i = item / p->across * p->rows, j = item % p->across * p->cols;
  const int64_t rows = least(p->rows, p->m - i), cols = least(p->cols, p->n - j);
  const int64_t at_a = p->trans_a ? i : i * p->lda, at_b = p->trans_b ? j * p->ldb : j;
  const int64_t at_c = i * p->ldc + j;
  if (p->wide)
    unicon__dgemm(p->trans_a, p->trans_b, rows, cols, p->k, p->alpha, (const double *)p->a + at_a,
                  p->lda, (const double *)p->b + at_b, p->ldb, p->beta, (double *)p->c + at_c,
                  p->ldc);
  else
    unicon__sgemm(p->trans_a, p->trans_b, rows, cols, p->k, (float)p->alpha,
                  (const float *)p->a + at_a, p->lda, (const float *)p->b + at_b, p->ldb,
                  (float)p->beta, (float *)p->c + at_c, p->ldc);
}

static void multiply(unicon_ctx *ctx, product *p) {
  const int64_t down = pieces(p->m, TILE, &p->rows);
  p->across = pieces(p->n, TILE, &p->cols);
  run(ctx, p->m * p->n * p->k, down * p->across, product_tile, p);
}

void unicon__tiled_sgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                         int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                         int64_t ldb, float beta, float *c, int64_t ldc) {
  product p = {false,         trans_a,      trans_b, m, n, k, lda, ldb, ldc,
               (double)alpha, (double)beta, a,       b, c, 0, 0,   0};
  multiply(ctx, &p);
}

void unicon__tiled_dgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                         int64_t k, double alpha, const double *a, int64_t lda, const double *b,
                         int64_t ldb, double beta, double *c, int64_t ldc) {
  product p = {true, trans_a, trans_b, m, n, k, lda, ldb, ldc, alpha, beta, a, b, c, 0, 0, 0};
  multiply(ctx, &p);
}

/* ---- triangular solves -------------------------------------------------------------------- */

typedef struct solve {
  bool left, trans;
  int64_t n, m, ldl, ldb; /* L is n by n; m right-hand sides */
  const double *l;
  double *b;
  int64_t slice;
} solve;

static void solve_slice(void *state, int64_t item, int worker) {
  (void)worker;
  const solve *s = state;
  const int64_t first = item * s->slice, count = least(s->slice, s->m - first);
  if (s->left)
    unicon__dtrsm_left(s->trans, s->n, count, s->l, s->ldl, s->b + first, s->ldb);
  else
    unicon__dtrsm_right(s->trans, count, s->n, s->l, s->ldl, s->b + first * s->ldb, s->ldb);
}

static void solve_slices(unicon_ctx *ctx, solve *s) {
  const int64_t items = pieces(s->m, SLICE, &s->slice);
  run(ctx, s->n * s->n / 2 * s->m, items, solve_slice, s);
}

void unicon__tiled_dtrsm_left(unicon_ctx *ctx, bool trans, int64_t n, int64_t m, const double *l,
                              int64_t ldl, double *b, int64_t ldb) {
  solve s = {true, trans, n, m, ldl, ldb, l, b, 0};
  solve_slices(ctx, &s);
}

void unicon__tiled_dtrsm_right(unicon_ctx *ctx, bool trans, int64_t m, int64_t n, const double *l,
                               int64_t ldl, double *b, int64_t ldb) {
  solve s = {false, trans, n, m, ldl, ldb, l, b, 0};
  solve_slices(ctx, &s);
}
