/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/tiled.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

/* BLAS packs the operands of every tile, which costs a tenth at 256 by 256, a twentieth at 512 by
 * 512: tiles are as large as the wish for a few of them allows. */
enum {
  TILE_MOST = 512,     /* rows and columns of a tile, right-hand sides of a slice */
  TILE_LEAST = 128,    /* not cut any further */
  TILES_WANTED = 8,    /* of a product */
  SLICES_WANTED = 4,   /* of a triangular solve, whose slices all pack the triangle */
  TOO_SMALL = 1 << 21, /* multiplications that are not worth waking a thread */
};

/* How many pieces of at most `most` a length is cut into, and how long they are (the last may be
 * shorter): about equal, and a multiple of 16. */
static int64_t pieces(int64_t length, int64_t most, int64_t *size) {
  const int64_t count = (length + most - 1) / most;
  *size = count > 0 ? ((length + count - 1) / count + 15) / 16 * 16 : most;
  return (length + *size - 1) / *size;
}

/* Cuts m by n into tiles; returns how many there are, `across` of them side by side. */
static int64_t cut(int64_t m, int64_t n, int64_t *rows, int64_t *cols, int64_t *across) {
  int64_t most_rows = TILE_MOST, most_cols = TILE_MOST;
  for (;;) {
    const int64_t down = pieces(m, most_rows, rows);
    *across = pieces(n, most_cols, cols);
    if (down * *across >= TILES_WANTED) return down * *across;
    if (*rows >= *cols && *rows >= 2 * TILE_LEAST)
      most_rows = *rows / 2;
    else if (*cols >= 2 * TILE_LEAST)
      most_cols = *cols / 2;
    else
      return down * *across;
  }
}

static void run(unicon_ctx *ctx, double work, int64_t items, unicon__item_fn body, void *state) {
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
  const int64_t rows = unicon__least(p->rows, p->m - i), cols = unicon__least(p->cols, p->n - j);
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
  const int64_t tiles = cut(p->m, p->n, &p->rows, &p->cols, &p->across);
  run(ctx, (double)p->m * (double)p->n * (double)p->k, tiles, product_tile, p);
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
  const int64_t first = item * s->slice, count = unicon__least(s->slice, s->m - first);
  if (s->left)
    unicon__dtrsm_left(s->trans, s->n, count, s->l, s->ldl, s->b + first, s->ldb);
  else
    unicon__dtrsm_right(s->trans, count, s->n, s->l, s->ldl, s->b + first * s->ldb, s->ldb);
}

static void solve_slices(unicon_ctx *ctx, solve *s) {
  int64_t most = TILE_MOST, items;
  while ((items = pieces(s->m, most, &s->slice)) < SLICES_WANTED && most >= 2 * TILE_LEAST)
    most /= 2;
  run(ctx, 0.5 * (double)s->n * (double)s->n * (double)s->m, items, solve_slice, s);
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

/* ---- Cholesky ----------------------------------------------------------------------------- */

typedef struct trailing {
  int64_t n, k, ld, tile; /* C is n by n, P n by k */
  const double *p;
  double *c;
} trailing;

/* The lower triangle of C -= P P^T, tile by tile. */
static void downdate_tile(void *state, int64_t item, int worker) {
  (void)worker;
  const trailing *t = state;
  int64_t i = 0;
  while ((i + 1) * (i + 2) / 2 <= item) i++; /* row of tiles; the triangle is counted by rows */
  const int64_t row = i * t->tile, col = (item - i * (i + 1) / 2) * t->tile;
  const int64_t rows = unicon__least(t->tile, t->n - row),
                cols = unicon__least(t->tile, t->n - col);
  double *c = t->c + row * t->ld + col;
  if (row == col)
    unicon__dsyrk(rows, t->k, -1, t->p + row * t->ld, t->ld, 1, c, t->ld);
  else
    unicon__dgemm(false, true, rows, cols, t->k, -1, t->p + row * t->ld, t->ld, t->p + col * t->ld,
                  t->ld, 1, c, t->ld);
}

unicon_status unicon__tiled_dpotrf(unicon_ctx *ctx, int64_t n, double *a, int64_t lda,
                                   int64_t *info) {
  enum { BLOCK = 192 };
  *info = 0;
  for (int64_t k = 0; k < n; k += BLOCK) {
    UNICON_TRY(unicon__poll(ctx));
    const int64_t block = unicon__least(BLOCK, n - k), rest = n - k - block;
    double *diagonal = a + k * lda + k, *panel = diagonal + block * lda;
    const int bad = unicon__dpotrf(block, diagonal, lda);
    if (bad) {
      *info = k + bad;
      return UNICON_OK;
    }
    unicon__tiled_dtrsm_right(ctx, true, rest, block, diagonal, lda, panel, lda);
    trailing t = {rest, block, lda, 0, panel, panel + block};
    const int64_t down = pieces(rest, rest < 2 * TILE_MOST ? TILE_LEAST : TILE_MOST / 2, &t.tile);
    run(ctx, 0.5 * (double)rest * (double)rest * (double)block, down * (down + 1) / 2,
        downdate_tile, &t);
  }
  return UNICON_OK;
}

/* ---- symmetric matrix times vector -------------------------------------------------------- */

enum { SYMV_ROWS = 128, SYMV_FROM = 512 };

typedef struct symmetric {
  int64_t n, lda, blocks;
  const double *a, *x;
  double *part; /* n per block of rows */
} symmetric;

/* What a block of rows I of the lower triangle adds to y: A_I x to y_I, and A_I^T x_I to the y
 * before it. */
static void symmetric_rows(void *state, int64_t item, int worker) {
  (void)worker;
  const symmetric *s = state;
  const int64_t block = s->blocks - 1 - item; /* the longest first */
  const int64_t first = block * SYMV_ROWS, count = unicon__least(SYMV_ROWS, s->n - first);
  const double *rows = s->a + first * s->lda;
  double *part = s->part + block * s->n;
  unicon__dsymv(count, rows + first, s->lda, s->x + first, part + first);
  memset(part, 0, (size_t)first * sizeof *part);
  unicon__vec_best()->symmetric_block(rows, s->lda, count, first, s->x + first, s->x, part + first,
                                      part);
}

int64_t unicon__tiled_dsymv_room(int64_t n) {
  return n < SYMV_FROM ? 0 : n * ((n + SYMV_ROWS - 1) / SYMV_ROWS);
}

void unicon__tiled_dsymv(unicon_ctx *ctx, int64_t n, const double *a, int64_t lda, const double *x,
                         double *y, double *room) {
  if (n < SYMV_FROM) {
    unicon__dsymv(n, a, lda, x, y);
    return;
  }
  symmetric s = {n, lda, (n + SYMV_ROWS - 1) / SYMV_ROWS, a, x, room};
  unicon__blas_begin();
  unicon__parallel_for(ctx, s.blocks, symmetric_rows, &s);
  unicon__blas_end();
  for (int64_t i = 0; i < n; i++) y[i] = 0;
  for (int64_t block = 0; block < s.blocks; block++) {
    const int64_t length = unicon__least((block + 1) * SYMV_ROWS, n);
    for (int64_t i = 0; i < length; i++) y[i] += room[block * n + i];
  }
}
