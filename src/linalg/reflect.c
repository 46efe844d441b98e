/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/reflect.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/dense_device.h"
#include "linalg/tiled.h"

enum {
  EIGEN_FROM = 700,  /* below, LAPACK on one thread is as fast */
  PANEL = 32,        /* columns reduced between two updates of the rest */
  UPDATE_TILE = 384, /* rows and columns of a tile of that update */
  BLOCK = UNICON__REFLECT_BLOCK,
  SLICE = UNICON__REFLECT_SLICE
};

/* ---- many reflections --------------------------------------------------------------------- */

static int64_t block_count(const unicon__reflections *h) {
  return (h->count + BLOCK - 1) / BLOCK;
}

static void make_factor(void *state, int64_t block, int worker) {
  (void)worker;
  const unicon__reflections *h = state;
  const int64_t first = block * BLOCK;
  unicon__dlarft(h->n - first, unicon__least(BLOCK, h->count - first), h->v + first * (h->ld + 1),
                 h->ld, h->tau + first, h->factor + block * BLOCK * BLOCK);
}

unicon_status unicon__reflections_open(unicon_ctx *ctx, unicon__reflections *h) {
  UNICON_NEW(ctx, h->factor, block_count(h) * BLOCK * BLOCK);
  unicon__parallel_for(ctx, block_count(h), make_factor, h);
  return UNICON_OK;
}

void unicon__reflect(const unicon__reflections *h, int64_t last, double *c, int64_t ldc,
                     int64_t cols, double *room) {
  for (int64_t block = last / BLOCK; block >= 0; block--) {
    const int64_t first = block * BLOCK;
    unicon__dlarfb(false, h->n - first, cols, unicon__least(BLOCK, h->count - first),
                   h->v + first * (h->ld + 1), h->ld, h->factor + block * BLOCK * BLOCK, c + first,
                   ldc, room);
  }
}

/* ---- orthonormal columns ------------------------------------------------------------------ */

typedef struct basis {
  unicon__reflections h;
  double *columns;              /* m by n, by columns: V below, R on and above the diagonal */
  double *out;                  /* m by n, by rows */
  double *room;                 /* per worker: BLOCK SLICE, then m SLICE */
  int64_t first, width;         /* of the panel */
  double factor[PANEL * PANEL]; /* of the panel */
} basis;

static double *basis_room(const basis *b, int worker) {
  return b->room + (int64_t)worker * SLICE * (BLOCK + b->h.n);
}

/* The reflections of a panel on a slice of the columns after it. */
static void update_slice(void *state, int64_t item, int worker) {
  const basis *b = state;
  const int64_t m = b->h.n, col = b->first + b->width + item * SLICE;
  unicon__dlarfb(true, m - b->first, unicon__least(SLICE, b->h.count - col), b->width,
                 b->columns + b->first * (m + 1), m, b->factor, b->columns + col * m + b->first, m,
                 basis_room(b, worker));
}

/* A slice of the columns of Q: reflections of the unit vectors. Later ones leave them alone. */
static void form_slice(void *state, int64_t item, int worker) {
  const basis *b = state;
  const int64_t m = b->h.n, n = b->h.count, col = item * SLICE,
                cols = unicon__least(SLICE, n - col);
  double *room = basis_room(b, worker), *q = room + BLOCK * SLICE;
  memset(q, 0, (size_t)(m * cols) * sizeof *q);
  for (int64_t c = 0; c < cols; c++) q[c * m + col + c] = 1;
  unicon__reflect(&b->h, col + cols - 1, q, m, cols, room);
  for (int64_t i = 0; i < m; i++)
    for (int64_t c = 0; c < cols; c++) b->out[i * n + col + c] = q[c * m + i];
}

static unicon_status qr(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *r) {
  basis b = {.h = {.n = m, .count = n, .ld = m}, .out = a};
  double *tau, *work;
  UNICON_NEW(ctx, b.columns, m * n);
  UNICON_NEW(ctx, tau, n);
  UNICON_NEW(ctx, work, PANEL);
  UNICON_NEW(ctx, b.room, unicon__workers(ctx) * SLICE * (BLOCK + m));
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) b.columns[j * m + i] = a[i * n + j];
  for (b.first = 0; b.first < n; b.first += b.width) {
    double *panel = b.columns + b.first * (m + 1);
    UNICON_TRY(unicon__poll(ctx));
    b.width = unicon__least(PANEL, n - b.first);
    unicon__dgeqr2(m - b.first, b.width, panel, m, tau + b.first, work);
    unicon__dlarft(m - b.first, b.width, panel, m, tau + b.first, b.factor);
    unicon__parallel_for(ctx, (n - b.first - b.width + SLICE - 1) / SLICE, update_slice, &b);
  }
  for (int64_t i = 0; r && i < n; i++)
    for (int64_t j = 0; j < n; j++) r[i * n + j] = j < i ? 0.0 : b.columns[j * m + i];
  b.h.v = b.columns;
  b.h.tau = tau;
  UNICON_TRY(unicon__reflections_open(ctx, &b.h));
  UNICON_TRY(unicon__poll(ctx));
  unicon__parallel_for(ctx, (n + SLICE - 1) / SLICE, form_slice, &b);
  return UNICON_OK;
}

unicon_status unicon__tiled_dqr(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *r) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__blas_begin();
  const unicon_status status = qr(ctx, m, n, a, r);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
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
  unicon__dgemm(true, false, unicon__least(UPDATE_TILE, n - row),
                unicon__least(UPDATE_TILE, n - col), 2 * r->width, -1, r->vw + row, n, r->wv + col,
                n, 1, r->a + row * n + col, n);
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
    r->width = unicon__least(PANEL, r->n - r->first);
    reduce_panel(ctx, r);
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- Q Z ---------------------------------------------------------------------------------- */

typedef struct turning {
  unicon__reflections h;
  int64_t first; /* slice of the round */
  double *z;     /* vectors, by rows */
  double *room;  /* BLOCK SLICE per worker */
} turning;

static void turn_slice(void *state, int64_t item, int worker) {
  const turning *t = state;
  const int64_t n = t->h.n + 1, at = (t->first + item) * SLICE;
  unicon__reflect(&t->h, t->h.count - 1, t->z + at * n + 1, n, unicon__least(SLICE, n - at),
                  t->room + (int64_t)worker * BLOCK * SLICE);
}

/* Reflection j of the reduction has its 1 at j + 1: all of them live in rows 1 to n - 1. */
static unicon_status turn_back(unicon_ctx *ctx, const reduction *r, double *z) {
  const int64_t n = r->n, slices = (n + SLICE - 1) / SLICE, round = unicon__workers(ctx);
  turning t = {.h = {.n = n - 1, .count = n - 1, .ld = n, .v = r->a + 1, .tau = r->tau}, .z = z};
  UNICON_TRY(unicon__reflections_open(ctx, &t.h));
  UNICON_NEW(ctx, t.room, round * BLOCK * SLICE);
  for (; t.first < slices; t.first += round) {
    UNICON_TRY(unicon__poll(ctx));
    unicon__parallel_for(ctx, unicon__least(round, slices - t.first), turn_slice, &t);
  }
  return UNICON_OK;
}

static unicon_status eigen(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  double *off_diagonal, *tau, *z;
  UNICON_NEW(ctx, off_diagonal, n);
  UNICON_NEW(ctx, tau, n);
  UNICON_NEW(ctx, z, n * n);
  reduction r = {.n = n, .a = a, .diagonal = w, .off_diagonal = off_diagonal, .tau = tau};
  UNICON_TRY(tridiagonalize(ctx, &r));
  UNICON_TRY(unicon__poll(ctx));
  UNICON_TRY(unicon__dstedc(ctx, n, w, off_diagonal, z, info));
  if (*info == 0) UNICON_TRY(turn_back(ctx, &r, z));
  memcpy(a, z, (size_t)(n * n) * sizeof *a);
  return UNICON_OK;
}

unicon_status unicon__tiled_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  const int stage = unicon__stage_begin(ctx, "eigenvectors", 0);
  unicon__block *frame = unicon__frame_open(ctx);
  bool done;
  UNICON_TRY(unicon__poll(ctx));
  UNICON_TRY(unicon__device_dsyevd(ctx, n, a, w, &done));
  if (done) {
    *info = 0;
  } else if (n < EIGEN_FROM) {
    UNICON_TRY(unicon__dsyevd(ctx, n, a, w, info));
  } else {
    UNICON_TRY(unicon__dstedc_fits(ctx, n));
    unicon__blas_begin();
    const unicon_status status = eigen(ctx, n, a, w, info);
    unicon__blas_end();
    UNICON_TRY(status);
    if (unicon__fault(&ctx->faults.lapack)) *info = 1;
  }
  unicon__frame_close(ctx, frame);
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}
