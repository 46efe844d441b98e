/* SPDX-License-Identifier: Apache-2.0 */
/* The banks of a model: drawn from rows, embedded, rounded, kept. */
#ifndef UNICON_MODEL_BANKS_H
#define UNICON_MODEL_BANKS_H

#include "model/embed.h"
#include "base/options.h"

/* Where a model's banks come from. */
typedef struct unicon__bank_plan {
  unicon__source side[2];    /* rows of x and y; their maps are not read */
  const unicon_pairs *pairs; /* rows without a pair are left out; NULL: all may enter */
  unicon__balancing how;
  int64_t rows; /* of a bank, at most */
  uint64_t seed;
} unicon__bank_plan;

/* Makes the model balance as planned. It is noted by whoever knows that the plan will stay. */
unicon_status unicon__banks_make(unicon_ctx *ctx, const unicon__bank_plan *plan,
                                 unicon_model *model);

#endif
