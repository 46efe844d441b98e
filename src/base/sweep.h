/* SPDX-License-Identifier: Apache-2.0 */
/* The one driver of loops over rows and over the plane. Cells, row after row, go to the context's
 * threads; what a cell leaves behind in its slot is folded into the totals in order:
 *
 *     fold_row   the cells of one row, from left to right
 *     fold_col   the cells of one column, from top to bottom
 *
 * Folds of one row, or of one column, never run at once and always in the same order, whoever runs
 * them; those of different rows or columns do run side by side. So sums depend on how the cells are
 * cut, never on the threads. A loop over rows is a plane of one column, whose fold_col gets every
 * cell in order.
 *
 * Cells are handed out only while there is a free slot, so room is a few slots, not threads times
 * what a row of cells leaves behind. Progress is told and cancelling asked between the cells of the
 * calling thread. */
#ifndef UNICON_BASE_SWEEP_H
#define UNICON_BASE_SWEEP_H

#include "base/parallel.h"

/* What is set up around a loop and taken down after it (linalg/blas: single-threaded BLAS). */
typedef struct unicon__region {
  void (*begin)(void);
  void (*end)(void);
} unicon__region;

/* A cell of the plane, the scratch memory of its worker (below unicon__workers_for all cells) and
 * of itself (below unicon__sweep_slots; kept until it is folded). */
typedef struct unicon__cell {
  int64_t row, col;
  int worker, slot;
} unicon__cell;

typedef void (*unicon__cell_fn)(void *state, unicon__cell cell);

typedef struct unicon__sweep {
  const char *name; /* of the stage, or NULL */
  double share;     /* of the step in progress that it takes; 0: see unicon__stage_begin */
  int64_t rows, cols;
  const unicon__region *region; /* or NULL */
  void *state;
  unicon__cell_fn body;               /* neither allocates nor fails nor starts another sweep */
  unicon__cell_fn fold_row, fold_col; /* or NULL */
} unicon__sweep;

/* Runs all cells. Fails when memory for the order of folds runs out and when the call is cancelled:
 * some cells have then not run. */
unicon_status unicon__sweep_run(unicon_ctx *ctx, const unicon__sweep *sweep);

/* A loop over `count` items without folds: cell.row is the item. */
unicon_status unicon__sweep_rows(unicon_ctx *ctx, const char *name, const unicon__region *region,
                                 int64_t count, unicon__cell_fn body, void *state);

/* How many slots a sweep with folds over so many cells uses. */
int64_t unicon__sweep_slots(const unicon_ctx *ctx, int64_t cells);

#endif
