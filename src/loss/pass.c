/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/pass.h"

#include <string.h>

#include "base/number.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"
#include "loss/pass_device.h"

typedef struct pass {
  unicon__loss *loss;
  const unicon__consumer *consumer; /* NULL: observe */
  int sweep;
  int64_t tile_x, tile_y;
  unicon__share own; /* rows of cells of this process */
  int64_t first;     /* row of cells that the sweep begins with */
  float *scores;     /* per worker: a tile */
} pass;

static int64_t rows_of(const pass *p) {
  return (p->loss->plane.n_x + p->tile_x - 1) / p->tile_x;
}

static void run_cell(void *state, unicon__cell cell) {
  const pass *p = state;
  unicon__loss *loss = p->loss;
  const unicon__plane *plane = &loss->plane;
  unicon__tile tile = {.x0 = (p->first + cell.row) * p->tile_x,
                       .ld = p->tile_y,
                       .cell = cell.col * loss->width,
                       .s = p->scores + cell.worker * p->tile_x * p->tile_y,
                       .worker = cell.worker};
  const int64_t end = unicon__least(tile.cell + loss->width, plane->n_y);
  tile.nx = unicon__least(p->tile_x, plane->n_x - tile.x0);
  for (tile.y0 = tile.cell; tile.y0 < end; tile.y0 += p->tile_y) {
    tile.ny = unicon__least(p->tile_y, plane->n_y - tile.y0);
    unicon__sgemm(false, true, tile.nx, tile.ny, plane->r, 1, plane->zx + tile.x0 * plane->r,
                  plane->r, plane->zy + tile.y0 * plane->r, plane->r, 0, tile.s, tile.ld);
    if (!p->consumer) {
      loss->ops->observe(loss, p->sweep, &tile, cell.slot);
      continue;
    }
    loss->ops->weigh(loss, &tile, cell.slot);
    p->consumer->tile(p->consumer->state, &tile, cell.slot);
  }
}

static void fold_rows(void *state, unicon__cell cell) {
  const pass *p = state;
  const int64_t x0 = (p->first + cell.row) * p->tile_x;
  const int64_t nx = unicon__least(p->tile_x, p->loss->plane.n_x - x0);
  if (p->consumer)
    p->consumer->fold_rows(p->consumer->state, x0, nx, cell.slot);
  else
    p->loss->ops->fold_rows(p->loss, p->sweep, x0, nx, cell.slot);
}

static void fold_cols(void *state, unicon__cell cell) {
  const pass *p = state;
  const int64_t y0 = cell.col * p->loss->width;
  const int64_t ny = unicon__least(p->loss->width, p->loss->plane.n_y - y0);
  if (p->consumer)
    p->consumer->fold_cols(p->consumer->state, y0, ny, cell.slot);
  else
    p->loss->ops->fold_cols(p->loss, p->sweep, y0, ny, cell.slot);
}

/* `rows` rows of cells from p->first on. */
static unicon_status run(unicon_ctx *ctx, pass *p, const char *name, double share, int64_t rows) {
  const bool by_row = !p->consumer || p->consumer->fold_rows;
  const bool by_col = !p->consumer || p->consumer->fold_cols;
  return unicon__sweep_run(ctx, &(unicon__sweep){.name = name,
                                                 .share = share,
                                                 .rows = rows,
                                                 .cols = unicon__loss_cells(p->loss),
                                                 .region = &unicon__blas_region,
                                                 .state = p,
                                                 .body = run_cell,
                                                 .fold_row = by_row ? fold_rows : NULL,
                                                 .fold_col = by_col ? fold_cols : NULL});
}

unicon__share unicon__pass_share(const unicon_ctx *ctx, const unicon__loss *loss) {
  const unicon__plane *plane = &loss->plane;
  const bool can = loss->ops->pointwise || loss->ops->merge;
  const double flops = 2 * (double)plane->n_x * (double)plane->n_y * (double)plane->r;
  return unicon__share_of(ctx, (plane->n_x + ctx->tile_x - 1) / ctx->tile_x, 1, can ? flops : -1);
}

/* Adds the parts of L that cells left behind, row after row. */
static unicon_status add_values(unicon_ctx *ctx, const pass *p) {
  const int64_t rows = rows_of(p), cells = unicon__loss_cells(p->loss);
  double value = 0;
  for (int64_t row = 0; row < rows; row++) {
    double sum = 0;
    for (int64_t k = row * cells; k < (row + 1) * cells; k++) {
      sum += p->loss->cell_value[k];
      p->loss->cell_value[k] = 0;
    }
    value += sum;
  }
  UNICON_TRY(unicon__sum_all(ctx, &p->own, &value, 1));
  p->loss->value += value;
  return UNICON_OK;
}

static unicon_status pass_open(unicon_ctx *ctx, unicon__loss *loss,
                               const unicon__consumer *consumer, pass *p) {
  *p = (pass){.loss = loss,
              .consumer = consumer,
              .tile_x = ctx->tile_x,
              .tile_y = ctx->tile_y,
              .own = unicon__pass_share(ctx, loss)};
  p->first = p->own.first;
  const int64_t workers = unicon__workers_for(ctx, rows_of(p) * unicon__loss_cells(loss));
  UNICON_NEW(ctx, p->scores, workers * p->tile_x * p->tile_y);
  if (consumer && loss->ops->pointwise) loss->value = 0;
  return UNICON_OK;
}

static unicon_status pass_close(unicon_ctx *ctx, pass *p) {
  if (!p->consumer || p->loss->ops->pointwise) UNICON_TRY(add_values(ctx, p));
  unicon__drop(ctx, p->scores);
  return UNICON_OK;
}

static void no_tile(void *state, const unicon__tile *tile, int slot) {
  (void)state, (void)tile, (void)slot;
}

unicon_status unicon__pass_observe(unicon_ctx *ctx, unicon__loss *loss) {
  bool done;
  if (loss->ops->pointwise)
    UNICON_TRY(unicon__device_cross(ctx, loss, NULL, NULL, NULL, &done));
  else
    UNICON_TRY(unicon__device_observe(ctx, loss, &done));
  if (done) return UNICON_OK;
  if (loss->ops->pointwise)
    return unicon__pass_weights(ctx, loss, &(unicon__consumer){NULL, no_tile, NULL, NULL});
  pass p;
  UNICON_TRY(pass_open(ctx, loss, NULL, &p));
  const int sweeps = loss->ops->sweeps(loss);
  for (p.sweep = 0; p.sweep < sweeps; p.sweep++) {
    UNICON_TRY(run(ctx, &p, "loss", 0, p.own.count));
    if (p.own.divided) UNICON_TRY(loss->ops->merge(ctx, loss, &p.own));
    UNICON_TRY(loss->ops->settle(ctx, loss, p.sweep));
  }
  return pass_close(ctx, &p);
}

unicon_status unicon__pass_weights(unicon_ctx *ctx, unicon__loss *loss,
                                   const unicon__consumer *consumer) {
  pass p;
  UNICON_TRY(pass_open(ctx, loss, consumer, &p));
  UNICON_TRY(run(ctx, &p, "weights", 0, p.own.count));
  return pass_close(ctx, &p);
}

/* ---- C = Phi_x^T S Phi_y ------------------------------------------------------------------ */

/* A group of rows of cells at a time: T = S Phi_y from the cells, then C += Phi_x^T T in tiles of
 * C, over tile_x rows in float32 and over these in float64. */
typedef struct cross {
  const unicon__source *x, *y;
  int64_t tile_x, first; /* first row of x of the group */
  float *rows_y;         /* per worker: a tile of features of y */
  float *part;           /* per slot: T of a cell */
  float *t;              /* of the group: T ... */
  float *phi;            /* ... and Phi_x */
  float *rows_x;         /* per worker: features of x, where they are not kept */
  int64_t room_x, room_y;
} cross;

static void cross_tile(void *state, const unicon__tile *tile, int slot) {
  const cross *k = state;
  const int64_t p_y = k->y->map->out;
  const float *rows =
      unicon__source_tile(k->y, NULL, tile->y0, tile->ny, k->rows_y + tile->worker * k->room_y);
  unicon__sgemm(false, false, tile->nx, p_y, tile->ny, 1, tile->s, tile->ld, rows, p_y,
                tile->y0 == tile->cell ? 0 : 1, k->part + slot * k->tile_x * p_y, p_y);
}

static void cross_fold(void *state, int64_t x0, int64_t nx, int slot) {
  const cross *k = state;
  const int64_t p_y = k->y->map->out;
  unicon__vec_best()->add_scaled(k->t + (x0 - k->first) * p_y, k->part + slot * k->tile_x * p_y,
                                 nx * p_y, 1);
}

static void load_phi(void *state, unicon__cell cell) {
  const cross *k = state;
  const int64_t p_x = k->x->map->out, at = cell.row * k->tile_x;
  const int64_t count = unicon__least(k->tile_x, k->x->count - k->first - at);
  const float *rows =
      unicon__source_tile(k->x, NULL, k->first + at, count, k->rows_x + cell.worker * k->room_x);
  memcpy(k->phi + at * p_x, rows, (size_t)(count * p_x) * sizeof *rows);
}

/* How many rows of cells a group has: enough for every thread, more where the room is small. */
static int64_t group_rows(const unicon_ctx *ctx, const cross *k) {
  enum { GROUP_FLOATS = 1 << 22 }; /* 16 MB */
  const int64_t row = k->tile_x * (k->x->map->out + k->y->map->out);
  const int64_t rows = GROUP_FLOATS / row, workers = unicon__workers(ctx);
  return rows > workers ? rows : workers;
}

static unicon_status cross_open(unicon_ctx *ctx, const pass *p, int64_t group, cross *k) {
  const int64_t p_x = k->x->map->out, p_y = k->y->map->out;
  k->room_x = p->tile_x * unicon__map_room(k->x->map);
  k->room_y = p->tile_y * unicon__map_room(k->y->map);
  UNICON_NEW(ctx, k->rows_y,
             unicon__workers_for(ctx, group * unicon__loss_cells(p->loss)) * k->room_y);
  UNICON_NEW(ctx, k->rows_x, unicon__workers_for(ctx, group) * k->room_x);
  UNICON_NEW(ctx, k->part, p->loss->slots * p->tile_x * p_y);
  UNICON_NEW(ctx, k->t, group * p->tile_x * p_y);
  UNICON_NEW(ctx, k->phi, group * p->tile_x * p_x);
  return UNICON_OK;
}

static unicon_status cross_group(unicon_ctx *ctx, pass *p, cross *k, int64_t rows, double *c) {
  const int64_t p_x = k->x->map->out, p_y = k->y->map->out;
  k->first = p->first * p->tile_x;
  const int64_t count = unicon__least(rows * p->tile_x, k->x->count - k->first);
  memset(k->t, 0, (size_t)(count * p_y) * sizeof *k->t);
  UNICON_TRY(run(ctx, p, NULL, 0.9, rows));
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, &unicon__blas_region, rows, load_phi, k));
  return unicon__tiled_add_product(ctx, p_x, p_y, count, p->tile_x, k->phi, p_x, k->t, p_y, false,
                                   c, p_y);
}

unicon_status unicon__pass_cross(unicon_ctx *ctx, unicon__loss *loss, const unicon__source *x,
                                 const unicon__source *y, double *c) {
  pass p;
  bool done;
  UNICON_TRY(unicon__device_cross(ctx, loss, x, y, c, &done));
  if (done) return UNICON_OK;
  cross k = {.x = x, .y = y, .tile_x = ctx->tile_x};
  const unicon__consumer consumer = {&k, cross_tile, cross_fold, NULL};
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(pass_open(ctx, loss, &consumer, &p));
  const int64_t rows = p.own.count, end = p.own.first + rows;
  const int64_t group = unicon__least(group_rows(ctx, &k), rows > 0 ? rows : 1);
  UNICON_TRY(cross_open(ctx, &p, group, &k));
  memset(c, 0, (size_t)(x->map->out * y->map->out) * sizeof *c);
  const int stage = unicon__stage_begin(ctx, "weights", 0);
  for (p.first = p.own.first; p.first < end; p.first += group) {
    const int64_t at = (p.first - p.own.first) / group;
    UNICON_TRY(unicon__stage_step(ctx, at, (rows + group - 1) / group));
    UNICON_TRY(cross_group(ctx, &p, &k, unicon__least(group, end - p.first), c));
  }
  UNICON_TRY(unicon__sum_all(ctx, &p.own, c, x->map->out * y->map->out));
  unicon__stage_end(ctx, stage);
  UNICON_TRY(pass_close(ctx, &p));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
