/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled pass: the only code that walks the n_x by n_y plane on the host (on a device it is
 * loss/pass_device, which is asked first).
 *
 * Tiles of scores come from one product each, s = Z_x Z_y^T; a loss observes them or turns them
 * into weights S; the weights are used at once and forgotten. Workers take cells, a few tiles side
 * by side, with single-threaded BLAS; what cells say of rows and columns is folded in order
 * (base/sweep), so results depend on the tile size but not on the number of threads, and a plane of
 * few rows keeps as many threads busy as one of few columns. Several processes divide the rows of
 * cells among them; what they have observed of rows and columns, C and L are then summed. */
#ifndef UNICON_LOSS_PASS_H
#define UNICON_LOSS_PASS_H

#include "features/feature.h"
#include "loss/loss.h"

/* Observes the plane and settles loss->value and the statistics that S needs.
 * 2 n_x n_y r flops a sweep. */
unicon_status unicon__pass_observe(unicon_ctx *ctx, unicon__loss *loss);

/* C = Phi_x^T S Phi_y (p_x by p_y, float64), S the weights of a loss that has been observed (or is
 * pointwise: then loss->value is set too). 2 n_x n_y (r + p_y) flops. */
unicon_status unicon__pass_cross(unicon_ctx *ctx, unicon__loss *loss, const unicon__source *x,
                                 const unicon__source *y, double *c);

/* What to do with each tile of weights, for other uses of S (gradients, a picture of S). The slot
 * (below loss->slots) is that of the cell; the folds, or NULL, are called in order. */
typedef struct unicon__consumer {
  void *state;
  void (*tile)(void *state, const unicon__tile *tile, int slot);
  void (*fold_rows)(void *state, int64_t x0, int64_t nx, int slot);
  void (*fold_cols)(void *state, int64_t y0, int64_t ny, int slot);
} unicon__consumer;

unicon_status unicon__pass_weights(unicon_ctx *ctx, unicon__loss *loss,
                                   const unicon__consumer *consumer);

/* The rows of cells that a pass of this process walks: what a consumer has made of them it must sum
 * over the processes itself, where they are divided. */
unicon__share unicon__pass_share(const unicon_ctx *ctx, const unicon__loss *loss);

#endif
