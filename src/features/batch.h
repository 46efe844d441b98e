/* SPDX-License-Identifier: Apache-2.0 */
/* A problem (two sources and their pairs) and its cut into batches: B rows of x, by a seeded
 * permutation or as they come, every y row paired to one of them, and no other y row. */
#ifndef UNICON_FEATURES_BATCH_H
#define UNICON_FEATURES_BATCH_H

#include "features/feature.h"
#include "io/pairs.h"

typedef struct unicon__batch {
  unicon__source x, y;
  const unicon_pairs *pairs;
  const int64_t *x_row, *y_row; /* rows of the whole problem; NULL: all */
} unicon__batch;

typedef struct unicon__problem {
  unicon__batch whole;
  unicon__batch *batch; /* one, the whole, when not cut */
  int64_t batches;
} unicon__problem;

/* What a cut follows. */
typedef struct unicon__cut {
  int64_t size;  /* rows of x in a batch; 0: one batch */
  bool in_order; /* of exactly `size` rows as they come, the rest left out; else equal parts at
                  * random
                  */
  uint64_t seed;
} unicon__cut;

/* Cuts problem->whole into batches. The sub-pairs are owned by the problem: unicon__problem_close
 * frees them, also after a failure. */
unicon_status unicon__problem_cut(unicon_ctx *ctx, const unicon__cut *cut,
                                  unicon__problem *problem);
void unicon__problem_close(unicon__problem *problem);

/* The source of the given rows (positions) of a source. `row` must outlive it. */
unicon_status unicon__source_narrow(unicon_ctx *ctx, const unicon__source *from, const int64_t *row,
                                    int64_t count, unicon__source *out);

#endif
