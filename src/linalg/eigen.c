/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/eigen.h"

#include <string.h>

#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"

enum {
  TILED_FROM = 700,  /* below, LAPACK on one thread is as fast */
  PANEL = 32,        /* columns reduced between two updates of the rest */
  UPDATE_TILE = 384, /* rows and columns of a tile of that update */
  REFLECTIONS = 64,  /* applied at once on the way back */
  SLICE_MOST = 256   /* eigenvectors of a slice */
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* ---- A = Q T Q^T -------------------------------------------------------------------------- */

/* The lower triangle of A holds what is not reduced yet. Reflection j, I - tau v v^T with v zero up
 * to j and 1 at j + 1, is left in the upper triangle: entry (j, i) of A is v_i. For LAPACK, whose
 * matrices lie by columns, that is the lower triangle, where it wants them. */
typedef struct reduction {
  int64_t n;
  double *a, *diagonal, *off_diagonal, *tau;
  /* Of the panel, one row of n for each of its columns: reflections v and w, such that the rest
   * becomes A - V W^T - W V^T. [V; W] and [W; V] one below the other, for one product. */
  double *vw, *wv;
  double *room, *small;
  int64_t first, width; /* of the panel */
} reduction;

static double *panel_v(const reduction *r, int64_t c) {
  return r->vw + c * r->n;
}

static double *panel_w(const reduction *r, int64_t c) {
  return r->wv + c * r->n;
}

/* x (from index `at` on) -= V^T p + W^T q over the first c columns of the panel. */
static void subtract(const reduction *r, int64_t c, int64_t at, const double *p, const double *q,
                     double *x) {
  unicon__dgemv(true, c, r->n - at, -1, r->vw + at, r->n, p, 1, x + at);
  unicon__dgemv(true, c, r->n - at, -1, r->wv + at, r->n, q, 1, x + at);
}

/* Column c of the panel: brings it up to date, makes its reflection v and w = tau A v + ... */
static void reduce_column(unicon_ctx *ctx, const reduction *r, int64_t c) {
  const int64_t n = r->n, j = r->first + c, next = j + 1;
  double *v = panel_v(r, c), *w = panel_w(r, c), *p = r->small, *q = r->small + PANEL;
  for (int64_t k = 0; k < c; k++) {
    p[k] = panel_w(r, k)[j];
    q[k] = panel_v(r, k)[j];
  }
  if (c > 0) subtract(r, c, j, p, q, v);
  r->diagonal[j] = v[j];
  memset(v, 0, (size_t)next * sizeof *v);
  memset(w, 0, (size_t)n * sizeof *w);
  if (next == n) return;
  r->tau[j] = unicon__dlarfg(n - next, v + next);
  r->off_diagonal[j] = v[next];
  v[next] = 1;
  unicon__tiled_dsymv(ctx, n - next, r->a + next * (n + 1), n, v + next, w + next, r->room);
  if (c > 0) {
    unicon__dgemv(false, c, n - next, 1, r->wv + next, n, v + next, 0, p);
    unicon__dgemv(false, c, n - next, 1, r->vw + next, n, v + next, 0, q);
    subtract(r, c, next, p, q, w);
  }
  double along = 0;
  for (int64_t i = next; i < n; i++) {
    w[i] *= r->tau[j];
    along += w[i] * v[i];
  }
  for (int64_t i = next; i < n; i++) w[i] -= 0.5 * r->tau[j] * along * v[i];
}

/* A tile of the lower triangle of the rest. */
static void update_tile(void *state, int64_t item, int worker) {
  (void)worker;
  const reduction *r = state;
  const int64_t n = r->n, start = r->first + r->width;
  int64_t i = 0;
  while ((i + 1) * (i + 2) / 2 <= item) i++;
  const int64_t row = start + i * UPDATE_TILE, col = start + (item - i * (i + 1) / 2) * UPDATE_TILE;
  unicon__dgemm(true, false, least(UPDATE_TILE, n - row), least(UPDATE_TILE, n - col), 2 * r->width,
                -1, r->vw + row, n, r->wv + col, n, 1, r->a + row * n + col, n);
}

static void reduce_panel(unicon_ctx *ctx, reduction *r) {
  const int64_t n = r->n, first = r->first, width = r->width, rest = n - first - width;
  for (int64_t i = first; i < n; i++)
    for (int64_t c = 0; c < width; c++) panel_v(r, c)[i] = r->a[i * n + first + c];
  for (int64_t c = 0; c < width; c++) reduce_column(ctx, r, c);
  /* What lies above the diagonal is of no use any more, so whole tiles may be written there. */
  memcpy(r->vw + width * n, r->wv, (size_t)(width * n) * sizeof *r->vw);
  memcpy(r->wv + width * n, r->vw, (size_t)(width * n) * sizeof *r->vw);
  const int64_t down = (rest + UPDATE_TILE - 1) / UPDATE_TILE;
  unicon__parallel_for(ctx, down * (down + 1) / 2, update_tile, r);
  for (int64_t c = 0; c < width; c++) {
    const int64_t next = first + c + 1;
    memcpy(r->a + (first + c) * n + next, panel_v(r, c) + next, (size_t)(n - next) * sizeof *r->a);
  }
}

static unicon_status tridiagonalize(unicon_ctx *ctx, reduction *r) {
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_NEW(ctx, r->vw, 2 * PANEL * r->n);
  UNICON_NEW(ctx, r->wv, 2 * PANEL * r->n);
  UNICON_NEW(ctx, r->small, 2 * PANEL);
  UNICON_NEW(ctx, r->room, unicon__tiled_dsymv_room(r->n));
  for (r->first = 0; r->first < r->n; r->first += r->width) {
    UNICON_TRY(unicon__poll(ctx));
    r->width = least(PANEL, r->n - r->first);
    reduce_panel(ctx, r);
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- Q Z ---------------------------------------------------------------------------------- */

typedef struct back {
  int64_t n, slice, first;
  const double *a, *tau;
  double *factor; /* REFLECTIONS squared for each block of reflections */
  double *z;
  double *room; /* REFLECTIONS by slice per worker */
} back;

static int64_t block_width(const back *b, int64_t block) {
  return least(REFLECTIONS, b->n - 1 - block * REFLECTIONS);
}

static double *block_factor(const back *b, int64_t block) {
  return b->factor + block * REFLECTIONS * REFLECTIONS;
}

/* The triangular factor of a block of reflections. */
static void make_factor(void *state, int64_t block, int worker) {
  (void)worker;
  const back *b = state;
  const int64_t first = block * REFLECTIONS;
  unicon__dlarft(b->n - 1 - first, block_width(b, block), b->a + first * (b->n + 1) + 1, b->n,
                 b->tau + first, block_factor(b, block));
}

/* All blocks, the last first, on a slice of the vectors. */
static void turn_slice(void *state, int64_t item, int worker) {
  const back *b = state;
  const int64_t n = b->n, at = (b->first + item) * b->slice, count = least(b->slice, n - at);
  for (int64_t block = (n - 2) / REFLECTIONS; block >= 0; block--) {
    const int64_t first = block * REFLECTIONS;
    unicon__dlarfb(n - 1 - first, count, block_width(b, block), b->a + first * (n + 1) + 1, n,
                   block_factor(b, block), b->z + at * n + first + 1, n,
                   b->room + (int64_t)worker * REFLECTIONS * b->slice);
  }
}

static unicon_status turn_back(unicon_ctx *ctx, back *b) {
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t blocks = (b->n - 2) / REFLECTIONS + 1, round = unicon__workers(ctx);
  b->slice = SLICE_MOST;
  const int64_t slices = (b->n + b->slice - 1) / b->slice;
  UNICON_NEW(ctx, b->factor, blocks * REFLECTIONS * REFLECTIONS);
  UNICON_NEW(ctx, b->room, round * REFLECTIONS * b->slice);
  unicon__parallel_for(ctx, blocks, make_factor, b);
  for (b->first = 0; b->first < slices; b->first += round) {
    UNICON_TRY(unicon__poll(ctx));
    unicon__parallel_for(ctx, least(round, slices - b->first), turn_slice, b);
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static unicon_status in_steps(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  double *off_diagonal, *tau, *z;
  UNICON_NEW(ctx, off_diagonal, n);
  UNICON_NEW(ctx, tau, n);
  UNICON_NEW(ctx, z, n * n);
  reduction r = {.n = n, .a = a, .diagonal = w, .off_diagonal = off_diagonal, .tau = tau};
  UNICON_TRY(tridiagonalize(ctx, &r));
  UNICON_TRY(unicon__dstedc(ctx, n, w, off_diagonal, z, info));
  back b = {.n = n, .a = a, .tau = tau, .z = z};
  if (*info == 0) UNICON_TRY(turn_back(ctx, &b));
  memcpy(a, z, (size_t)(n * n) * sizeof *a);
  return UNICON_OK;
}

unicon_status unicon__tiled_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  if (n < TILED_FROM) return unicon__dsyevd(ctx, n, a, w, info);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__blas_begin();
  const unicon_status status = in_steps(ctx, n, a, w, info);
  unicon__blas_end();
  UNICON_TRY(status);
  if (unicon__fault(&ctx->faults.lapack)) *info = 1;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
