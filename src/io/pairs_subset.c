/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "io/pair_set.h"

/* The rows of one side that are kept. */
typedef struct kept {
  const int64_t *row; /* ascending; NULL: all */
  int64_t count;
  int64_t first, span; /* rows from the first kept one to the last */
  int32_t *number;     /* new number of each of these, -1 where it is dropped */
} kept;

static int64_t old_row(const kept *k, int64_t row) {
  return k->row ? k->row[row] : row;
}

static int32_t new_row(const kept *k, int64_t row) {
  return row >= k->first && row - k->first < k->span ? k->number[row - k->first] : -1;
}

/* Takes time for the rows in the span alone: a set may be walked in blocks. */
static unicon_status number_rows(unicon_ctx *ctx, const char *side, int64_t rows, kept *k) {
  if (!k->row) k->count = rows;
  for (int64_t a = 0; a < k->count; a++) {
    const int64_t row = old_row(k, a);
    if (row < 0 || row >= rows || (a > 0 && row <= old_row(k, a - 1)))
      return unicon__fail(ctx, UNICON_ERR_PAIRS,
                          "row %" PRId64 " of %s is to be kept, but rows are 0 .. %" PRId64
                          " and kept in ascending order",
                          row, side, rows - 1);
  }
  if (k->count == 0) return UNICON_OK;
  k->first = old_row(k, 0);
  k->span = old_row(k, k->count - 1) - k->first + 1;
  UNICON_NEW(ctx, k->number, k->span);
  memset(k->number, 0xff, (size_t)k->span * sizeof *k->number);
  for (int64_t a = 0; a < k->count; a++) k->number[old_row(k, a) - k->first] = (int32_t)a;
  return UNICON_OK;
}

static unicon_status keep_set(unicon_ctx *ctx, unicon__arena *arena, const unicon__pair_set *set,
                              const kept *x, const kept *y, unicon__pair_set *out) {
  if (set->count == 0) return UNICON_OK;
  unicon__lists *by_x = &out->by_x;
  const bool weighted = set->by_x.weight != NULL;
  int64_t count = 0;
  for (int64_t a = 0; a < x->count; a++) {
    const unicon__partners list = unicon__list_at(&set->by_x, old_row(x, a));
    for (int64_t p = 0; p < list.count; p++) count += new_row(y, list.item[p]) >= 0;
  }
  UNICON_TRY(unicon__lists_new(ctx, arena, x->count, count, weighted, by_x));
  UNICON_TRY(unicon__lists_new(ctx, arena, y->count, count, weighted, &out->by_y));
  for (int64_t a = 0; a < x->count; a++) {
    const unicon__partners list = unicon__list_at(&set->by_x, old_row(x, a));
    for (int64_t p = 0; p < list.count; p++) {
      const int32_t item = new_row(y, list.item[p]);
      if (item < 0) continue;
      if (weighted) by_x->weight[out->count] = list.weight[p];
      by_x->item[out->count++] = item;
    }
    by_x->start[a + 1] = out->count;
  }
  unicon__lists_transpose(by_x, x->count, &out->by_y, y->count);
  return UNICON_OK;
}

static unicon_status keep_classes(unicon_ctx *ctx, unicon__arena *arena, const int32_t *class_of,
                                  int32_t classes, const kept *k, int32_t **out,
                                  unicon__lists *lists) {
  int32_t *kept_class;
  UNICON_ARENA_NEW(ctx, arena, kept_class, k->count);
  for (int64_t a = 0; a < k->count; a++) kept_class[a] = class_of[old_row(k, a)];
  *out = kept_class;
  return unicon__lists_group(ctx, arena, kept_class, k->count, classes, lists);
}

/* Which kept rows are the same on both sides. */
static unicon_status keep_selfs(unicon_ctx *ctx, const unicon_pairs *pairs, const kept *x,
                                const kept *y, unicon_pairs *out) {
  if (!pairs->self_x) return UNICON_OK;
  UNICON_ARENA_NEW(ctx, &out->arena, out->self_x, x->count);
  UNICON_ARENA_NEW(ctx, &out->arena, out->self_y, y->count);
  for (int64_t b = 0; b < y->count; b++) out->self_y[b] = -1;
  for (int64_t a = 0; a < x->count; a++) {
    const int32_t self = pairs->self_x[old_row(x, a)];
    out->self_x[a] = self < 0 ? -1 : new_row(y, self);
    if (out->self_x[a] < 0) continue;
    out->self_y[out->self_x[a]] = (int32_t)a;
    out->selfs++;
  }
  return UNICON_OK;
}

static unicon_status fill(unicon_ctx *ctx, const unicon_pairs *pairs, const kept *x, const kept *y,
                          unicon_pairs *out) {
  unicon__arena *arena = &out->arena;
  out->only_listed = pairs->only_listed;
  UNICON_TRY(keep_set(ctx, arena, &pairs->ignore, x, y, &out->ignore));
  UNICON_TRY(keep_set(ctx, arena, &pairs->negative, x, y, &out->negative));
  if (!pairs->class_x) return keep_set(ctx, arena, &pairs->positive, x, y, &out->positive);
  out->classes = pairs->classes;
  UNICON_ARENA_NEW(ctx, arena, out->class_key, pairs->classes);
  memcpy(out->class_key, pairs->class_key, (size_t)pairs->classes * sizeof *out->class_key);
  UNICON_TRY(keep_selfs(ctx, pairs, x, y, out));
  UNICON_TRY(keep_classes(ctx, arena, pairs->class_x, pairs->classes, x, &out->class_x,
                          &out->positive.by_x));
  UNICON_TRY(keep_classes(ctx, arena, pairs->class_y, pairs->classes, y, &out->class_y,
                          &out->positive.by_y));
  out->positive.count = unicon__count_class_pairs(out);
  return UNICON_OK;
}

unicon_status unicon__pairs_subset(unicon_ctx *ctx, const unicon_pairs *pairs,
                                   const int64_t *x_keep, int64_t x_count, const int64_t *y_keep,
                                   int64_t y_count, unicon_pairs **out) {
  *out = NULL;
  kept x = {.row = x_keep, .count = x_count}, y = {.row = y_keep, .count = y_count};
  UNICON_TRY(number_rows(ctx, "x", pairs->n_x, &x));
  UNICON_TRY(number_rows(ctx, "y", pairs->n_y, &y));
  unicon_pairs *subset = unicon__pairs_new(ctx, x.count, y.count);
  if (!subset) return unicon__status(ctx);
  const unicon_status status = fill(ctx, pairs, &x, &y, subset);
  unicon__drop(ctx, x.number);
  unicon__drop(ctx, y.number);
  return unicon__pairs_finish(subset, status, out);
}
