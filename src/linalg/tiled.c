/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/tiled.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "linalg/blas.h"
#include "linalg/dense_device.h"
#include "linalg/vec.h"

/* BLAS packs the operands of every tile, which costs a tenth at 256 by 256, a twentieth at 512 by
 * 512: tiles are as large as the wish for a few of them allows. */
enum {
  TILE_MOST = 512,     /* rows and columns of a tile, right-hand sides of a slice */
  TILE_LEAST = 128,    /* not cut any further */
  TILES_WANTED = 8,    /* of a product ... */
  TILES_LARGE = 32,    /* ... and of a large one, for many threads */
  LARGE = 1 << 27,     /* multiplications of it */
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

/* Cuts m by n into tiles for a product of so much work; returns how many there are, `across` of
 * them side by side. */
static int64_t cut(int64_t m, int64_t n, double work, int64_t *rows, int64_t *cols,
                   int64_t *across) {
  const int64_t wanted = work < LARGE ? TILES_WANTED : TILES_LARGE;
  int64_t most_rows = TILE_MOST, most_cols = TILE_MOST;
  for (;;) {
    const int64_t down = pieces(m, most_rows, rows);
    *across = pieces(n, most_cols, cols);
    if (down * *across >= wanted) return down * *across;
    if (*rows >= *cols && *rows >= 2 * TILE_LEAST)
      most_rows = *rows / 2;
    else if (*cols >= 2 * TILE_LEAST)
      most_cols = *cols / 2;
    else
      return down * *across;
  }
}

/* Runs the items. When the call is cancelled on the way it returns early: the next poll says so. */
static void run(unicon_ctx *ctx, double work, int64_t items, unicon__cell_fn body, void *state) {
  if (work >= TOO_SMALL) {
    (void)unicon__sweep_rows(ctx, NULL, &unicon__blas_region, items, body, state);
    return;
  }
  unicon__blas_begin();
  for (int64_t item = 0; item < items; item++) body(state, (unicon__cell){.row = item});
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

static void product_tile(void *state, unicon__cell cell) {
  const product *p = state;
  const int64_t i = cell.row / p->across * p->rows, j = cell.row % p->across * p->cols;
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
  const double work = (double)p->m * (double)p->n * (double)p->k;
  const int64_t tiles = cut(p->m, p->n, work, &p->rows, &p->cols, &p->across);
  run(ctx, work, tiles, product_tile, p);
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
  const bool whole =
      alpha == 1 && beta == 0 && lda == (trans_a ? m : k) && ldb == (trans_b ? k : n) && ldc == n;
  if (whole && unicon__device_dgemm(ctx, trans_a, trans_b, m, n, k, a, b, c)) return;
  multiply(ctx, &p);
}

/* ---- sums of products over many rows -------------------------------------------------------- */

typedef struct addition {
  int64_t m, n, k, block, lda, ldb, ldc;
  const float *a, *b;
  double *c;
  bool lower;
  int64_t rows, cols; /* of a tile */
  float *scratch;     /* per worker: a tile */
} addition;

static void add_tile(void *state, unicon__cell cell) {
  const addition *p = state;
  const int64_t i = cell.row * p->rows, j = cell.col * p->cols;
  const int64_t rows = unicon__least(p->rows, p->m - i), cols = unicon__least(p->cols, p->n - j);
  float *scratch = p->scratch + cell.worker * p->rows * p->cols;
  if (p->lower && j >= i + rows) return;
  for (int64_t from = 0; from < p->k; from += p->block) {
    unicon__sgemm(true, false, rows, cols, unicon__least(p->block, p->k - from), 1,
                  p->a + from * p->lda + i, p->lda, p->b + from * p->ldb + j, p->ldb, 0, scratch,
                  cols);
    for (int64_t r = 0; r < rows; r++) {
      double *to = p->c + (i + r) * p->ldc + j;
      for (int64_t s = 0; s < cols; s++) to[s] += (double)scratch[r * cols + s];
    }
  }
}

unicon_status unicon__tiled_add_product(unicon_ctx *ctx, int64_t m, int64_t n, int64_t k,
                                        int64_t block, const float *a, int64_t lda, const float *b,
                                        int64_t ldb, bool lower, double *c, int64_t ldc) {
  addition p = {m, n, k, block, lda, ldb, ldc, a, b, c, lower, 0, 0, NULL};
  int64_t across;
  const int64_t tiles = cut(m, n, (double)m * (double)n * (double)block, &p.rows, &p.cols, &across);
  UNICON_NEW(ctx, p.scratch, unicon__workers_for(ctx, tiles) * p.rows * p.cols);
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.rows = tiles / across,
                                                     .cols = across,
                                                     .region = &unicon__blas_region,
                                                     .state = &p,
                                                     .body = add_tile}));
  unicon__drop(ctx, p.scratch);
  return UNICON_OK;
}

/* ---- triangular solves -------------------------------------------------------------------- */

typedef struct solve {
  bool left, trans;
  int64_t n, m, ldl, ldb; /* L is n by n; m right-hand sides */
  const double *l;
  double *b;
  int64_t slice;
} solve;

static void solve_slice(void *state, unicon__cell cell) {
  const solve *s = state;
  const int64_t first = cell.row * s->slice, count = unicon__least(s->slice, s->m - first);
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
static void downdate_tile(void *state, unicon__cell cell) {
  const trailing *t = state;
  int64_t i = 0; /* row of tiles; the triangle is counted by rows */
  while ((i + 1) * (i + 2) / 2 <= cell.row) i++;
  const int64_t row = i * t->tile, col = (cell.row - i * (i + 1) / 2) * t->tile;
  const int64_t rows = unicon__least(t->tile, t->n - row),
                cols = unicon__least(t->tile, t->n - col);
  double *c = t->c + row * t->ld + col;
  if (row == col)
    unicon__dsyrk(rows, t->k, -1, t->p + row * t->ld, t->ld, 1, c, t->ld);
  else
    unicon__dgemm(false, true, rows, cols, t->k, -1, t->p + row * t->ld, t->ld, t->p + col * t->ld,
                  t->ld, 1, c, t->ld);
}

/* C -= P P^T in tiles. */
static void downdate(unicon_ctx *ctx, int64_t rest, int64_t block, const double *panel, double *c,
                     int64_t lda) {
  trailing t = {rest, block, lda, 0, panel, c};
  const int64_t down = pieces(rest, rest < 2 * TILE_MOST ? TILE_LEAST : TILE_MOST / 2, &t.tile);
  run(ctx, 0.5 * (double)rest * (double)rest * (double)block, down * (down + 1) / 2, downdate_tile,
      &t);
}

unicon_status unicon__tiled_dpotrf(unicon_ctx *ctx, int64_t n, double *a, int64_t lda,
                                   int64_t *info) {
  enum { BLOCK = 192 }; /* columns factored by one thread while the others wait */
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
    downdate(ctx, rest, block, panel, panel + block, lda);
  }
  return UNICON_OK;
}

/* ---- Cholesky with pivots ------------------------------------------------------------------ */

/* Columns between two updates of the rest, which are products; rows of a piece of a column. */
enum { PIVOT_BLOCK = 64, PIVOT_ROWS = 512 };

typedef struct pivoting {
  int64_t n, first, at; /* first column of the panel, and the one in work */
  double *a, *taken;    /* of each row: the squares of its entries in the panel so far */
  double *column;       /* scratch, n */
} pivoting;

static void trade(double *x, double *y) {
  const double held = *x;
  *x = *y;
  *y = held;
}

/* Changes rows and columns j < p of the lower triangle for each other. */
static void exchange(const pivoting *v, int64_t j, int64_t p, int *order) {
  double *a = v->a;
  const int64_t n = v->n;
  const int row = order[j];
  order[j] = order[p];
  order[p] = row;
  trade(&v->taken[j], &v->taken[p]);
  trade(&a[j * n + j], &a[p * n + p]);
  for (int64_t k = 0; k < j; k++) trade(&a[j * n + k], &a[p * n + k]);
  for (int64_t k = j + 1; k < p; k++) trade(&a[k * n + j], &a[p * n + k]);
  for (int64_t k = p + 1; k < n; k++) trade(&a[k * n + j], &a[k * n + p]);
}

/* Entries of the column in work for a slice of the rows below it. */
static void column_rows(void *state, int64_t item, int worker) {
  (void)worker;
  const pivoting *v = state;
  const int64_t n = v->n, from = v->at + 1 + item * PIVOT_ROWS;
  const int64_t rows = unicon__least(PIVOT_ROWS, n - from);
  double *column = v->column + from;
  const double pivot = v->a[v->at * (n + 1)];
  for (int64_t i = 0; i < rows; i++) column[i] = v->a[(from + i) * n + v->at];
  if (v->at > v->first)
    unicon__dgemv(false, rows, v->at - v->first, -1, v->a + from * n + v->first, n,
                  v->a + v->at * n + v->first, 1, column);
  for (int64_t i = 0; i < rows; i++) {
    column[i] /= pivot;
    v->a[(from + i) * n + v->at] = column[i];
    v->taken[from + i] += column[i] * column[i];
  }
}

/* Factors a panel; returns the column at which no pivot above the floor is left, or its end. */
static int64_t pivot_panel(unicon_ctx *ctx, pivoting *v, int64_t end, double floor, int *order) {
  const int64_t n = v->n;
  memset(v->taken, 0, (size_t)n * sizeof *v->taken);
  for (v->at = v->first; v->at < end; v->at++) {
    int64_t best = v->at;
    double top = -INFINITY;
    for (int64_t i = v->at; i < n; i++) {
      const double left = v->a[i * (n + 1)] - v->taken[i];
      if (!(left > top)) continue;
      top = left;
      best = i;
    }
    if (!(top > floor)) return v->at;
    if (best > v->at) exchange(v, v->at, best, order);
    v->a[v->at * (n + 1)] = sqrt(top);
    unicon__parallel_for(ctx, (n - v->at - 1 + PIVOT_ROWS - 1) / PIVOT_ROWS, column_rows, v);
  }
  return end;
}

unicon_status unicon__tiled_dpstrf(unicon_ctx *ctx, int64_t n, double *a, int *order, double floor,
                                   int64_t *rank) {
  pivoting v = {.n = n, .a = a};
  UNICON_NEW(ctx, v.taken, n);
  UNICON_NEW(ctx, v.column, n);
  for (int64_t i = 0; i < n; i++) order[i] = (int)i;
  const int stage = unicon__stage_begin(ctx, "Cholesky", 0);
  for (*rank = 0; v.first < n; v.first += PIVOT_BLOCK) {
    const int64_t end = unicon__least(v.first + PIVOT_BLOCK, n);
    UNICON_TRY(unicon__stage_step(ctx, v.first, n));
    unicon__blas_begin();
    *rank = pivot_panel(ctx, &v, end, floor, order);
    unicon__blas_end();
    if (*rank < end) break;
    downdate(ctx, n - end, end - v.first, a + end * n + v.first, a + end * (n + 1), n);
  }
  unicon__stage_end(ctx, stage);
  unicon__drop(ctx, v.column);
  unicon__drop(ctx, v.taken);
  return UNICON_OK;
}

/* ---- inverse of a triangle ----------------------------------------------------------------- */

typedef struct inversion {
  int64_t n, ldl, slice;
  const double *l;
  double *out;
} inversion;

/* Some columns of L^{-T}: they end at the diagonal, so only as much of L counts. */
static void inverse_slice(void *state, unicon__cell cell) {
  const inversion *v = state;
  const int64_t first = cell.row * v->slice, count = unicon__least(v->slice, v->n - first);
  for (int64_t k = 0; k < count; k++) v->out[(first + k) * (v->n + 1)] = 1;
  unicon__dtrsm_left(true, first + count, count, v->l, v->ldl, v->out + first, v->n);
}

void unicon__tiled_inverse(unicon_ctx *ctx, int64_t n, const double *l, int64_t ldl, double *out) {
  inversion v = {.n = n, .ldl = ldl, .l = l, .out = out};
  memset(out, 0, (size_t)(n * n) * sizeof *out);
  const int64_t slices = pieces(n, TILE_LEAST, &v.slice);
  run(ctx, (double)n * (double)n * (double)n / 6, slices, inverse_slice, &v);
}

/* ---- symmetric matrix times vector -------------------------------------------------------- */

enum {
  SYMV_ROWS = 128, /* of a piece of work */
  SYMV_FROM = 512  /* order: below, one thread is done before the others have begun */
};

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
