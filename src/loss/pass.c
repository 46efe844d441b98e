/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/pass.h"

#include "base/parallel.h"
#include "loss/cross.h"
#include "linalg/blas.h"

enum { FOLD_COLUMNS = 4096 };

typedef struct pass {
  unicon__loss *loss;
  const unicon__consumer *consumer; /* NULL: observe */
  int sweep;
  int64_t tile_x, tile_y;
  int64_t first; /* first row of tiles of this round */
  int64_t items;
  float *scores; /* tile_x by tile_y per slot */
} pass;

/* One row of tiles. The slot is the place in the round, so that folding can follow tile order. */
static void run_row(void *state, int64_t item, int worker) {
  (void)worker;
  pass *p = state;
  unicon__loss *loss = p->loss;
  const unicon__plane *plane = &loss->plane;
  const int slot = (int)item;
  unicon__tile tile = {.x0 = (p->first + item) * p->tile_x,
                       .ld = p->tile_y,
                       .s = p->scores + item * p->tile_x * p->tile_y};
  tile.nx = plane->n_x - tile.x0 < p->tile_x ? plane->n_x - tile.x0 : p->tile_x;
  for (tile.y0 = 0; tile.y0 < plane->n_y; tile.y0 += p->tile_y) {
    tile.ny = plane->n_y - tile.y0 < p->tile_y ? plane->n_y - tile.y0 : p->tile_y;
    unicon__sgemm(false, true, tile.nx, tile.ny, plane->r, 1, plane->zx + tile.x0 * plane->r,
                  plane->r, plane->zy + tile.y0 * plane->r, plane->r, 0, tile.s, tile.ld);
    if (p->consumer) {
      loss->ops->weigh(loss, &tile, slot);
      p->consumer->tile(p->consumer->state, &tile, slot);
    } else {
      loss->ops->observe(loss, p->sweep, &tile, slot);
    }
  }
  if (p->consumer && p->consumer->row_done)
    p->consumer->row_done(p->consumer->state, tile.x0, tile.nx, slot);
}

static void fold_columns(void *state, int64_t item, int worker) {
  (void)worker;
  pass *p = state;
  const int64_t from = item * FOLD_COLUMNS, n_y = p->loss->plane.n_y;
  const int64_t to = from + FOLD_COLUMNS < n_y ? from + FOLD_COLUMNS : n_y;
  for (int slot = 0; slot < (int)p->items; slot++)
    p->loss->ops->fold(p->loss, p->sweep, slot, from, to);
}

static unicon_status run(unicon_ctx *ctx, pass *p, const char *phase) {
  const unicon__plane *plane = &p->loss->plane;
  const int64_t rows = (plane->n_x + p->tile_x - 1) / p->tile_x, round = p->loss->slots;
  const int stage = unicon__stage_begin(ctx, phase, 0);
  for (p->first = 0; p->first < rows; p->first += round) {
    UNICON_TRY(unicon__stage_step(ctx, p->first, rows));
    p->items = rows - p->first < round ? rows - p->first : round;
    unicon__blas_begin();
    unicon__parallel_for(ctx, p->items, run_row, p);
    unicon__blas_end();
    if (!p->consumer && p->loss->ops->fold)
      unicon__parallel_for(ctx, (plane->n_y + FOLD_COLUMNS - 1) / FOLD_COLUMNS, fold_columns, p);
    if (p->consumer && p->consumer->fold) p->consumer->fold(ctx, p->consumer->state, p->items);
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* Adds the parts of L that tiles left behind, in tile order. */
static void add_tile_values(unicon__loss *loss, int64_t tile_x) {
  for (int64_t t = 0; t * tile_x < loss->plane.n_x; t++) {
    loss->value += loss->tile_value[t];
    loss->tile_value[t] = 0;
  }
}

static unicon_status pass_open(unicon_ctx *ctx, unicon__loss *loss, pass *p) {
  *p = (pass){.loss = loss, .tile_x = ctx->tile_x, .tile_y = ctx->tile_y};
  UNICON_NEW(ctx, p->scores, loss->slots * p->tile_x * p->tile_y);
  return UNICON_OK;
}

static void no_tile(void *state, const unicon__tile *tile, int slot) {
  (void)state, (void)tile, (void)slot;
}

unicon_status unicon__pass_observe(unicon_ctx *ctx, unicon__loss *loss) {
  if (loss->ops->pointwise)
    return unicon__pass_weights(ctx, loss, &(unicon__consumer){NULL, no_tile, NULL, NULL});
  pass p;
  UNICON_TRY(pass_open(ctx, loss, &p));
  const int sweeps = loss->ops->sweeps(loss);
  for (p.sweep = 0; p.sweep < sweeps; p.sweep++) {
    UNICON_TRY(run(ctx, &p, "loss"));
    UNICON_TRY(loss->ops->settle(ctx, loss, p.sweep));
  }
  add_tile_values(loss, p.tile_x);
  unicon__drop(ctx, p.scores);
  return UNICON_OK;
}

unicon_status unicon__pass_weights(unicon_ctx *ctx, unicon__loss *loss,
                                   const unicon__consumer *consumer) {
  pass p;
  UNICON_TRY(pass_open(ctx, loss, &p));
  p.consumer = consumer;
  if (loss->ops->pointwise) loss->value = 0;
  UNICON_TRY(run(ctx, &p, "weights"));
  if (loss->ops->pointwise) add_tile_values(loss, p.tile_x);
  unicon__drop(ctx, p.scores);
  return UNICON_OK;
}

/* ---- C = Phi_x^T S Phi_y ------------------------------------------------------------------ */

static void cross_tile(void *state, const unicon__tile *tile, int slot) {
  const unicon__cross *k = state;
  const int64_t p_y = k->y->map->out;
  const float *rows =
      unicon__source_tile(k->y, NULL, tile->y0, tile->ny, unicon__cross_buffer(k, slot));
  unicon__sgemm(false, false, tile->nx, p_y, tile->ny, 1, tile->s, tile->ld, rows, p_y,
                tile->y0 == 0 ? 0 : 1, unicon__cross_product(k, slot), p_y);
}

static void cross_row_done(void *state, int64_t x0, int64_t nx, int slot) {
  unicon__cross_row(state, x0, nx, slot);
}

static void cross_fold(unicon_ctx *ctx, void *state, int64_t items) {
  unicon__cross_fold(ctx, state, items);
}

unicon_status unicon__pass_cross(unicon_ctx *ctx, unicon__loss *loss, const unicon__source *x,
                                 const unicon__source *y, double *c) {
  unicon__cross k;
  UNICON_TRY(unicon__cross_open(ctx, x, y, ctx->tile_y, c, &k));
  const unicon__consumer consumer = {&k, cross_tile, cross_row_done, cross_fold};
  UNICON_TRY(unicon__pass_weights(ctx, loss, &consumer));
  unicon__cross_close(ctx, &k);
  return UNICON_OK;
}
