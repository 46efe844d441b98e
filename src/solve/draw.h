/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of refine: rows of x that have a positive, shuffled each epoch, and of each a
 * positive drawn anew. */
#ifndef UNICON_SOLVE_DRAW_H
#define UNICON_SOLVE_DRAW_H

#include "base/ctx.h"
#include "io/pairs.h"

typedef struct unicon__draw {
  const unicon_pairs *pairs;
  uint64_t seed;
  int64_t batch, rows; /* of a batch of x at most; that have a positive */
  int64_t *order;      /* of the epoch, and room */
  unsigned char *seen; /* y rows of the batch */
} unicon__draw;

unicon_status unicon__draw_open(unicon_ctx *ctx, const unicon_pairs *pairs, int64_t batch,
                                uint64_t seed, unicon__draw *out);

/* Shuffles for epoch `epoch`, from 1. */
void unicon__draw_epoch(unicon__draw *draw, int epoch);

/* The rows of step `step`, counted over all epochs, ascending: row[s] has room for a batch. */
void unicon__draw_batch(unicon__draw *draw, int64_t step, int64_t *const row[2], int64_t count[2]);

#endif
