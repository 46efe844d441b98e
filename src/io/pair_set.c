/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pair_set.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

/* A counting sort into lists: count entries into start[list + 1], open, put every entry, close.
 * Between open and close start[i] is where the next entry of list i goes. */
static void lists_open(unicon__lists *lists, int64_t n) {
  for (int64_t i = 0; i < n; i++) lists->start[i + 1] += lists->start[i];
}

static inline void lists_put(unicon__lists *lists, int64_t list, int64_t item, float weight) {
  const int64_t p = lists->start[list]++;
  lists->item[p] = (int32_t)item;
  if (lists->weight) lists->weight[p] = weight;
}

static void lists_close(unicon__lists *lists, int64_t n) {
  memmove(lists->start + 1, lists->start, (size_t)n * sizeof *lists->start);
  lists->start[0] = 0;
}

unicon_status unicon__lists_new(unicon_ctx *ctx, unicon__arena *arena, int64_t lists,
                                int64_t entries, bool weighted, unicon__lists *out) {
  UNICON_ARENA_NEW(ctx, arena, out->start, lists + 1);
  UNICON_ARENA_NEW(ctx, arena, out->item, entries);
  out->weight = NULL;
  if (weighted) UNICON_ARENA_NEW(ctx, arena, out->weight, entries);
  return UNICON_OK;
}

void unicon__lists_transpose(const unicon__lists *from, int64_t n_from, unicon__lists *to,
                             int64_t n_to) {
  memset(to->start, 0, (size_t)(n_to + 1) * sizeof *to->start);
  for (int64_t p = 0; p < from->start[n_from]; p++) to->start[from->item[p] + 1]++;
  lists_open(to, n_to);
  for (int64_t i = 0; i < n_from; i++)
    for (int64_t p = from->start[i]; p < from->start[i + 1]; p++)
      lists_put(to, from->item[p], i, from->weight ? from->weight[p] : 1.0f);
  lists_close(to, n_to);
}

unicon_status unicon__lists_group(unicon_ctx *ctx, unicon__arena *arena, const int32_t *class_of,
                                  int64_t rows, int64_t classes, unicon__lists *out) {
  UNICON_TRY(unicon__lists_new(ctx, arena, classes, rows, false, out));
  for (int64_t i = 0; i < rows; i++) out->start[class_of[i] + 1]++;
  lists_open(out, classes);
  for (int64_t i = 0; i < rows; i++) lists_put(out, class_of[i], i, 1.0f);
  lists_close(out, classes);
  return UNICON_OK;
}

bool unicon__partners_have(unicon__partners partners, int64_t item) {
  int64_t length;
  unicon__list_range(partners, item, item + 1, &length);
  return length > 0;
}

static unicon_status check_range(unicon_ctx *ctx, const char *what, int64_t n_x, int64_t n_y,
                                 const int64_t *x, const int64_t *y, int64_t count) {
  for (int64_t p = 0; p < count; p++) {
    const bool bad_x = x[p] < 0 || x[p] >= n_x;
    if (!bad_x && y[p] >= 0 && y[p] < n_y) continue;
    return unicon__fail(ctx, UNICON_ERR_PAIRS,
                        "%s %" PRId64 " is (%" PRId64 ", %" PRId64
                        "), but the rows of %s are 0 .. "
                        "%" PRId64,
                        what, p, x[p], y[p], bad_x ? "x" : "y", (bad_x ? n_x : n_y) - 1);
  }
  return UNICON_OK;
}

/* Weights become float32, so that is where they must be finite and somewhere above 0 (but those of
 * ignored pairs, which usually are 0). */
static unicon_status check_weights(unicon_ctx *ctx, const char *what, unicon__pair_kind kind,
                                   const double *weight, int64_t count, bool *usual) {
  const bool positive = kind == UNICON__PAIR_POSITIVE;
  const float most = positive ? FLT_MAX : 1.0f, as_usual = kind == UNICON__PAIR_IGNORED ? 0 : 1;
  bool some = kind == UNICON__PAIR_IGNORED;
  *usual = true;
  for (int64_t p = 0; weight && p < count; p++) {
    const float w = (float)weight[p];
    if (!(w >= 0.0f && w <= most))
      return unicon__fail(ctx, UNICON_ERR_PAIRS, "%s %" PRId64 " has weight %g; %s from 0 to %s",
                          what, p, weight[p],
                          positive ? "weights are float32 numbers" : "it counts as a negative",
                          positive ? "3.4e38" : "1 times");
    some |= w > 0.0f;
    *usual &= w == as_usual; /* NOLINT: exactly that */
  }
  if (weight && !some)
    return unicon__fail(ctx, UNICON_ERR_PAIRS, "%s 0 and all others have weight 0", what);
  return UNICON_OK;
}

/* Two equal entries of a row's list; the slow search for where they were given is for the error
 * only. */
static unicon_status check_twice(unicon_ctx *ctx, const char *what, const unicon__lists *by_x,
                                 int64_t n_x, const int64_t *x, const int64_t *y) {
  for (int64_t i = 0; i < n_x; i++)
    for (int64_t p = by_x->start[i] + 1; p < by_x->start[i + 1]; p++) {
      const int64_t j = by_x->item[p];
      if (by_x->item[p - 1] != j) continue;
      int64_t first = 0;
      while (x[first] != i || y[first] != j) first++;
      int64_t second = first + 1;
      while (x[second] != i || y[second] != j) second++;
      return unicon__fail(ctx, UNICON_ERR_PAIRS,
                          "%s %" PRId64 " is (%" PRId64 ", %" PRId64
                          "), given twice: number %" PRId64 " is the same",
                          what, second, i, j, first);
    }
  return UNICON_OK;
}

unicon_status unicon__fail_empty_list(unicon_ctx *ctx, const char *what, const char *hint) {
  const char *colon = strrchr(what, ':'), *kind = colon ? colon + 2 : what;
  return unicon__fail(ctx, UNICON_ERR_PAIRS, "%.*sthe list of %ss is empty; %s", (int)(kind - what),
                      what, kind, hint);
}

unicon_status unicon__pair_set_build(unicon_ctx *ctx, unicon__arena *arena, const char *what,
                                     unicon__pair_kind kind, int64_t n_x, int64_t n_y,
                                     const int64_t *x, const int64_t *y, const double *weight,
                                     int64_t count, unicon__pair_set *out) {
  bool usual;
  if (count < 1) return unicon__fail_empty_list(ctx, what, "at least 1 is needed");
  UNICON_TRY(check_range(ctx, what, n_x, n_y, x, y, count));
  UNICON_TRY(check_weights(ctx, what, kind, weight, count, &usual));
  unicon__lists by_x, by_y;
  UNICON_TRY(unicon__lists_new(ctx, arena, n_x, count, !usual, &by_x));
  UNICON_TRY(unicon__lists_new(ctx, arena, n_y, count, !usual, &by_y));
  /* By column in any order, then by row, which sorts the rows' lists, then by column again. */
  for (int64_t p = 0; p < count; p++) by_y.start[y[p] + 1]++;
  lists_open(&by_y, n_y);
  for (int64_t p = 0; p < count; p++)
    lists_put(&by_y, y[p], x[p], weight ? (float)weight[p] : 1.0f);
  lists_close(&by_y, n_y);
  unicon__lists_transpose(&by_y, n_y, &by_x, n_x);
  UNICON_TRY(check_twice(ctx, what, &by_x, n_x, x, y));
  unicon__lists_transpose(&by_x, n_x, &by_y, n_y);
  *out = (unicon__pair_set){by_x, by_y, count};
  return UNICON_OK;
}
