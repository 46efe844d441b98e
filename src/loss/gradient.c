/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/gradient.h"

#include <string.h>

#include "base/parallel.h"
#include "loss/pass.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

typedef struct gradient {
  const unicon__plane *plane;
  float *out_x, *out_y;
  float *partial; /* per slot: S^T Z_x, n_y by r */
  int64_t items;
} gradient;

static void gradient_tile(void *state, const unicon__tile *tile, int slot) {
  gradient *g = state;
  const int64_t r = g->plane->r;
  float *columns = g->partial + (slot * g->plane->n_y + tile->y0) * r;
  unicon__sgemm(false, false, tile->nx, r, tile->ny, 1, tile->s, tile->ld,
                g->plane->zy + tile->y0 * r, r, tile->y0 == 0 ? 0 : 1, g->out_x + tile->x0 * r, r);
  unicon__sgemm(true, false, tile->ny, r, tile->nx, 1, tile->s, tile->ld,
                g->plane->zx + tile->x0 * r, r, 0, columns, r);
}

static void add_row(void *state, int64_t row, int worker) {
  (void)worker;
  const gradient *g = state;
  const int64_t r = g->plane->r, n_y = g->plane->n_y;
  for (int64_t item = 0; item < g->items; item++)
    unicon__vec_best()->add_scaled(g->out_y + row * r, g->partial + (item * n_y + row) * r, r, 1);
}

static void gradient_fold(unicon_ctx *ctx, void *state, int64_t items) {
  gradient *g = state;
  g->items = items;
  unicon__parallel_for(ctx, g->plane->n_y, add_row, g);
}

unicon_status unicon__gradient(unicon_ctx *ctx, const unicon__loss_params *params,
                               const unicon_pairs *pairs, int64_t r, const float *zx,
                               const float *zy, float *out_x, float *out_y, double *value) {
  unicon__plane plane;
  unicon__loss loss;
  unicon__plane_init(&plane, pairs, r, zx, zy);
  UNICON_TRY(unicon__loss_begin(ctx, params, &plane, &loss));
  gradient g = {.plane = &plane, .out_x = out_x, .out_y = out_y};
  UNICON_NEW(ctx, g.partial, loss.slots * plane.n_y * r);
  memset(out_y, 0, (size_t)(plane.n_y * r) * sizeof *out_y);
  if (!loss.ops->pointwise) UNICON_TRY(unicon__pass_observe(ctx, &loss));
  const unicon__consumer consumer = {&g, gradient_tile, NULL, gradient_fold};
  UNICON_TRY(unicon__pass_weights(ctx, &loss, &consumer));
  *value = loss.value;
  return UNICON_OK;
}
