/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/cross.h"

#include <string.h>

#include "base/parallel.h"
#include "linalg/blas.h"

unicon_status unicon__cross_open(unicon_ctx *ctx, const unicon__source *x, const unicon__source *y,
                                 int64_t y_rows, double *c, unicon__cross *out) {
  const int64_t slots = unicon__workers(ctx), p_x = x->map->out, p_y = y->map->out;
  const int64_t of_x = ctx->tile_x * unicon__map_room(x->map);
  const int64_t of_y = y_rows * unicon__map_room(y->map);
  *out = (unicon__cross){.x = x, .y = y, .c = c, .tile_x = ctx->tile_x};
  out->buffer_size = of_x > of_y ? of_x : of_y;
  UNICON_NEW(ctx, out->buffer, slots * out->buffer_size);
  UNICON_NEW(ctx, out->product, slots * ctx->tile_x * p_y);
  UNICON_NEW(ctx, out->partial, slots * p_x * p_y);
  memset(c, 0, (size_t)(p_x * p_y) * sizeof *c);
  return UNICON_OK;
}

void unicon__cross_close(unicon_ctx *ctx, unicon__cross *cross) {
  unicon__drop(ctx, cross->partial);
  unicon__drop(ctx, cross->product);
  unicon__drop(ctx, cross->buffer);
}

void unicon__cross_row(const unicon__cross *cross, int64_t x0, int64_t nx, int slot) {
  const int64_t p_x = cross->x->map->out, p_y = cross->y->map->out;
  const float *rows =
      unicon__source_tile(cross->x, NULL, x0, nx, unicon__cross_buffer(cross, slot));
  unicon__sgemm(true, false, p_x, p_y, nx, 1, rows, p_x, unicon__cross_product(cross, slot), p_y, 0,
                cross->partial + slot * p_x * p_y, p_y);
}

static void add_row(void *state, int64_t row, int worker) {
  (void)worker;
  const unicon__cross *k = state;
  const int64_t p_x = k->x->map->out, p_y = k->y->map->out;
  double *to = k->c + row * p_y;
  for (int64_t item = 0; item < k->items; item++) {
    const float *from = k->partial + (item * p_x + row) * p_y;
    for (int64_t j = 0; j < p_y; j++) to[j] += (double)from[j];
  }
}

void unicon__cross_fold(unicon_ctx *ctx, unicon__cross *cross, int64_t items) {
  cross->items = items;
  unicon__parallel_for(ctx, cross->x->map->out, add_row, cross);
}
