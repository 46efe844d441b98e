/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulates C = Phi_x^T T over rows of tiles, T = S Phi_y being made by the caller slot by slot:
 * float32 products per tile, float64 sums in tile order. */
#ifndef UNICON_LOSS_CROSS_H
#define UNICON_LOSS_CROSS_H

#include "features/feature.h"

typedef struct unicon__cross {
  const unicon__source *x, *y;
  double *c;      /* p_x by p_y */
  float *buffer;  /* per slot: buffer_size floats for rows of either side */
  float *product; /* per slot: T, tile_x by p_y */
  float *partial; /* per slot: p_x by p_y */
  int64_t tile_x, buffer_size, items;
} unicon__cross;

/* Clears c; `y_rows` is how many rows of y the caller loads into a slot's buffer at once. */
unicon_status unicon__cross_open(unicon_ctx *ctx, const unicon__source *x, const unicon__source *y,
                                 int64_t y_rows, double *c, unicon__cross *out);
void unicon__cross_close(unicon_ctx *ctx, unicon__cross *cross);

static inline float *unicon__cross_product(const unicon__cross *cross, int slot) {
  return cross->product + slot * cross->tile_x * cross->y->map->out;
}

static inline float *unicon__cross_buffer(const unicon__cross *cross, int slot) {
  return cross->buffer + slot * cross->buffer_size;
}

/* Slot's partial = Phi_x[x0 .. x0+nx-1]^T T. Called by workers. */
void unicon__cross_row(const unicon__cross *cross, int64_t x0, int64_t nx, int slot);

/* c += partials of slots 0 .. items-1, in order. */
void unicon__cross_fold(unicon_ctx *ctx, unicon__cross *cross, int64_t items);

#endif
