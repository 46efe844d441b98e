/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/gradient.h"

#include <string.h>

#include "loss/pass.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

typedef struct gradient {
  const unicon__plane *plane;
  int64_t tile_x, width; /* rows and columns of a cell */
  float *out_x, *out_y;
  float *part_x, *part_y; /* per slot: S Z_y and S^T Z_x of a cell */
} gradient;

static void gradient_tile(void *state, const unicon__tile *tile, int slot) {
  const gradient *g = state;
  const int64_t r = g->plane->r;
  float *rows = g->part_x + slot * g->tile_x * r;
  float *columns = g->part_y + (slot * g->width + tile->y0 - tile->cell) * r;
  unicon__sgemm(false, false, tile->nx, r, tile->ny, 1, tile->s, tile->ld,
                g->plane->zy + tile->y0 * r, r, tile->y0 == tile->cell ? 0 : 1, rows, r);
  unicon__sgemm(true, false, tile->ny, r, tile->nx, 1, tile->s, tile->ld,
                g->plane->zx + tile->x0 * r, r, 0, columns, r);
}

static void fold_rows(void *state, int64_t x0, int64_t nx, int slot) {
  const gradient *g = state;
  const int64_t r = g->plane->r;
  unicon__vec_best()->add_scaled(g->out_x + x0 * r, g->part_x + slot * g->tile_x * r, nx * r, 1);
}

static void fold_cols(void *state, int64_t y0, int64_t ny, int slot) {
  const gradient *g = state;
  const int64_t r = g->plane->r;
  unicon__vec_best()->add_scaled(g->out_y + y0 * r, g->part_y + slot * g->width * r, ny * r, 1);
}

unicon_status unicon__gradient(unicon_ctx *ctx, const unicon__loss_params *params,
                               const unicon_pairs *pairs, int64_t r, const float *zx,
                               const float *zy, float *out_x, float *out_y, double *value) {
  unicon__plane plane;
  unicon__loss loss;
  unicon__plane_init(&plane, pairs, r, zx, zy);
  UNICON_TRY(unicon__loss_begin(ctx, params, &plane, &loss));
  loss.at_home = true;
  gradient g = {
      .plane = &plane, .tile_x = ctx->tile_x, .width = loss.width, .out_x = out_x, .out_y = out_y};
  UNICON_NEW(ctx, g.part_x, loss.slots * g.tile_x * r);
  UNICON_NEW(ctx, g.part_y, loss.slots * g.width * r);
  memset(out_x, 0, (size_t)(plane.n_x * r) * sizeof *out_x);
  memset(out_y, 0, (size_t)(plane.n_y * r) * sizeof *out_y);
  if (!loss.ops->pointwise) UNICON_TRY(unicon__pass_observe(ctx, &loss));
  const unicon__consumer consumer = {&g, gradient_tile, fold_rows, fold_cols};
  UNICON_TRY(unicon__pass_weights(ctx, &loss, &consumer));
  const unicon__share own = unicon__pass_share(ctx, &loss);
  UNICON_TRY(unicon__sum_floats(ctx, &own, out_x, plane.n_x * r));
  UNICON_TRY(unicon__sum_floats(ctx, &own, out_y, plane.n_y * r));
  *value = loss.value;
  return UNICON_OK;
}
