/* SPDX-License-Identifier: Apache-2.0 */
/* A data set cut in two, for callers that compare methods on the same rows. */
#include <string.h>

#include "features/dataset.h"
#include "io/object.h"
#include "unicon/tools.h"

struct unicon_split {
  unicon__arena arena; /* holds the groups, the numbers and this struct */
  unicon_data part[2];
  int64_t *row[2][2]; /* by part and side: the numbers that the rows had */
  unicon_rows *x[2], *y[2];
  unicon_pairs *pairs[2];
};

/* The numbers of the rows of a side before the cut. */
static unicon_status take_numbers(unicon_ctx *ctx, const unicon__source *side, unicon_split *split,
                                  int64_t **out) {
  UNICON_ARENA_NEW(ctx, &split->arena, *out, side->count);
  for (int64_t i = 0; i < side->count; i++) (*out)[i] = side->index ? side->index[i] : i;
  return UNICON_OK;
}

static unicon_status take_part(unicon_ctx *ctx, unicon__dataset *set, const int64_t *groups, int k,
                               unicon_split *split) {
  const unicon__source *x = &set->whole.x, *y = &set->whole.y;
  int64_t *own = NULL;
  split->pairs[k] = set->own;
  set->own = NULL;
  UNICON_TRY(unicon__rows_select(ctx, x->rows, x->index, x->count, &split->x[k]));
  UNICON_TRY(unicon__rows_select(ctx, y->rows, y->index, y->count, &split->y[k]));
  UNICON_TRY(take_numbers(ctx, x, split, &split->row[k][UNICON_X]));
  UNICON_TRY(take_numbers(ctx, y, split, &split->row[k][UNICON_Y]));
  if (groups) {
    UNICON_ARENA_NEW(ctx, &split->arena, own, x->count);
    for (int64_t i = 0; i < x->count; i++) own[i] = groups[split->row[k][UNICON_X][i]];
  }
  const unicon_pairs *pairs = split->pairs[k] ? split->pairs[k] : set->whole.pairs;
  split->part[k] = UNICON_DATA(.x = split->x[k], .y = split->y[k], .pairs = pairs, .groups = own);
  return UNICON_OK;
}

static unicon_status cut(unicon_ctx *ctx, const unicon_data *data, double fraction,
                         const unicon_options *options, unicon_split *split) {
  unicon__dataset all, part[2];
  const uint64_t seed = (uint64_t)unicon__integer(options, UNICON__SEED);
  memset(part, 0, sizeof part);
  unicon_status status = unicon__dataset_open(ctx, data, options, false, &all);
  if (status == UNICON_OK && fraction == 0) {
    status = take_part(ctx, &all, data->groups, 0, split);
  } else if (status == UNICON_OK) {
    status =
        unicon__dataset_split(ctx, &all, data->groups, fraction, seed, &part[0], &part[1], NULL);
    for (int k = 0; k < 2 && status == UNICON_OK; k++)
      status = take_part(ctx, &part[k], data->groups, k, split);
  }
  for (int k = 0; k < 2; k++) unicon__dataset_close(&part[k]);
  unicon__dataset_close(&all);
  return status;
}

static unicon_status make(unicon_ctx *ctx, const unicon_data *given, double fraction,
                          const unicon_options *options, unicon_split **out) {
  unicon_data data;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  if (!(fraction >= 0 && fraction < 1))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "a split needs a fraction of at least 0 and below 1, not %g", fraction);
  unicon_split *split = unicon__object_new(ctx, sizeof *split);
  if (!split) return UNICON_ERR_MEMORY;
  const unicon_status status = cut(ctx, &data, fraction, options, split);
  if (status == UNICON_OK)
    *out = split;
  else
    unicon_split_destroy(split);
  return status;
}

unicon_status unicon_split_make(unicon_ctx *ctx, const unicon_data *data, double fraction,
                                const unicon_options *options, unicon_split **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, make(ctx, data, fraction, options, out));
}

void unicon_split_destroy(unicon_split *split) {
  if (!split) return;
  for (int k = 0; k < 2; k++) {
    unicon_pairs_destroy(split->pairs[k]);
    unicon_rows_close(split->y[k]);
    unicon_rows_close(split->x[k]);
  }
  unicon__object_free(split);
}

const unicon_data *unicon_split_part(const unicon_split *split, int part) {
  return split ? &split->part[part == 1] : NULL;
}

const int64_t *unicon_split_rows(const unicon_split *split, int part, unicon_side side) {
  return split ? split->row[part == 1][side == UNICON_Y] : NULL;
}
