/* SPDX-License-Identifier: Apache-2.0 */
#include "io/pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/object.h"
#include "io/pair_set.h"
#include "unicon/tools.h"

unicon_pairs *unicon__pairs_new(unicon_ctx *ctx, int64_t n_x, int64_t n_y) {
  if (n_x < 1 || n_y < 1 || n_x > INT32_MAX || n_y > INT32_MAX) {
    unicon__set_error(ctx, UNICON_ERR_PAIRS,
                      "pairs of %" PRId64 " rows of x and %" PRId64
                      " rows of y cannot be made; each side has 1 .. %d rows",
                      n_x, n_y, INT32_MAX);
    return NULL;
  }
  unicon_pairs *pairs = unicon__object_new(ctx, sizeof *pairs);
  if (!pairs) return NULL;
  pairs->n_x = n_x;
  pairs->n_y = n_y;
  return pairs;
}

unicon_status unicon__pairs_finish(unicon_pairs *pairs, unicon_status status, unicon_pairs **out) {
  if (status == UNICON_OK)
    *out = pairs;
  else
    unicon_pairs_destroy(pairs);
  return status;
}

void unicon_pairs_destroy(unicon_pairs *pairs) {
  unicon__object_free(pairs);
}

int64_t unicon_pairs_count(const unicon_pairs *pairs) {
  return pairs ? pairs->positive.count : 0;
}

int64_t unicon_pairs_partners(const unicon_pairs *pairs, unicon_side side, int64_t row,
                              int64_t room, int64_t *partner) {
  if (!pairs || row < 0 || row >= (side == UNICON_Y ? pairs->n_y : pairs->n_x)) return 0;
  const unicon__partners p =
      side == UNICON_Y ? unicon__positives_y(pairs, row) : unicon__positives_x(pairs, row);
  for (int64_t k = 0; partner && k < p.count && k < room; k++) partner[k] = unicon__partner(p, k);
  return p.count;
}

/* ---- row i with rows k*i .. k*i+k-1 ------------------------------------------------------- */

static unicon_status build_blocks(unicon_ctx *ctx, unicon_pairs *pairs, int64_t few, int64_t k,
                                  unicon__lists *of_few, unicon__lists *of_many) {
  const int64_t many = few * k;
  UNICON_TRY(unicon__lists_new(ctx, &pairs->arena, few, many, false, of_few));
  UNICON_TRY(unicon__lists_new(ctx, &pairs->arena, many, many, false, of_many));
  for (int64_t i = 0; i <= few; i++) of_few->start[i] = k * i;
  for (int64_t j = 0; j < many; j++) {
    of_few->item[j] = (int32_t)j;
    of_many->start[j + 1] = j + 1;
    of_many->item[j] = (int32_t)(j / k);
  }
  pairs->positive.count = many;
  return UNICON_OK;
}

static unicon_status make_blocks(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k, bool per_x,
                                 unicon_pairs **out) {
  UNICON_NEED(ctx, out);
  unicon_pairs *pairs = unicon__pairs_new(ctx, n_x, n_y);
  if (!pairs) return unicon__status(ctx);
  const int64_t few = per_x ? n_x : n_y, many = per_x ? n_y : n_x;
  unicon__lists *by_x = &pairs->positive.by_x, *by_y = &pairs->positive.by_y;
  unicon_status status;
  if (k == 1 && n_x != n_y)
    status = unicon__fail(ctx, UNICON_ERR_PAIRS,
                          "x has %" PRId64 " rows and y has %" PRId64
                          ", but row i belongs to row i; say which rows belong together",
                          n_x, n_y);
  else if (k < 1 || many % k || many / k != few)
    status = unicon__fail(ctx, UNICON_ERR_PAIRS,
                          "%s has %" PRId64 " rows, but with %" PRId64 " for each of the %" PRId64
                          " rows of %s it must have %" PRId64 " times as many",
                          per_x ? "y" : "x", many, k, few, per_x ? "x" : "y", k);
  else if (per_x)
    status = build_blocks(ctx, pairs, few, k, by_x, by_y);
  else
    status = build_blocks(ctx, pairs, few, k, by_y, by_x);
  return unicon__pairs_finish(pairs, status, out);
}

unicon_status unicon__pairs_identity(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                     unicon_pairs **out) {
  return make_blocks(ctx, n_x, n_y, 1, true, out);
}

unicon_status unicon_pairs_identity(unicon_ctx *ctx, int64_t n_x, int64_t n_y, unicon_pairs **out) {
  return unicon_pairs_per_x(ctx, n_x, n_y, 1, out);
}

unicon_status unicon_pairs_per_x(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                 unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, make_blocks(ctx, n_x, n_y, k, true, out));
}

unicon_status unicon_pairs_per_y(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                 unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, make_blocks(ctx, n_x, n_y, k, false, out));
}

/* ---- lists -------------------------------------------------------------------------------- */

unicon_status unicon__pairs_from_list(unicon_ctx *ctx, const char *what, int64_t n_x, int64_t n_y,
                                      const int64_t *x, const int64_t *y, const double *weight,
                                      int64_t count, unicon_pairs **out) {
  UNICON_NEED(ctx, out);
  UNICON_NEED(ctx, x);
  UNICON_NEED(ctx, y);
  unicon_pairs *pairs = unicon__pairs_new(ctx, n_x, n_y);
  if (!pairs) return unicon__status(ctx);
  const unicon_status status =
      unicon__pair_set_build(ctx, &pairs->arena, what, UNICON__PAIR_POSITIVE, n_x, n_y, x, y,
                             weight, count, &pairs->positive);
  return unicon__pairs_finish(pairs, status, out);
}

unicon_status unicon_pairs_list(unicon_ctx *ctx, int64_t n_x, int64_t n_y, const int64_t *x,
                                const int64_t *y, const double *weight, int64_t count,
                                unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx,
                       unicon__pairs_from_list(ctx, "pair", n_x, n_y, x, y, weight, count, out));
}

/* ---- labels ------------------------------------------------------------------------------- */

typedef struct labelled {
  int64_t label;
  int32_t *place; /* where its class number goes */
} labelled;

static int by_label(const void *a, const void *b) {
  const int64_t left = ((const labelled *)a)->label, right = ((const labelled *)b)->label;
  return (left > right) - (left < right);
}

/* Numbers the distinct labels of both sides from 0 in ascending order; they are the keys. */
static unicon_status number_classes(unicon_ctx *ctx, unicon_pairs *pairs, const int64_t *label_x,
                                    const int64_t *label_y) {
  const int64_t n_x = pairs->n_x, n_y = pairs->n_y, n = n_x + n_y;
  labelled *all;
  UNICON_NEW(ctx, all, n);
  for (int64_t i = 0; i < n_x; i++) all[i] = (labelled){label_x[i], &pairs->class_x[i]};
  for (int64_t j = 0; j < n_y; j++) all[n_x + j] = (labelled){label_y[j], &pairs->class_y[j]};
  qsort(all, (size_t)n, sizeof *all, by_label);
  int32_t number = 0;
  for (int64_t k = 0; k < n; k++) {
    if (k > 0 && all[k].label != all[k - 1].label) number++;
    *all[k].place = number;
  }
  pairs->classes = number + 1;
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_key, pairs->classes);
  for (int64_t k = 0; k < n; k++) pairs->class_key[*all[k].place] = all[k].label;
  unicon__drop(ctx, all);
  return UNICON_OK;
}

int64_t unicon__count_class_pairs(const unicon_pairs *pairs) {
  int64_t count = 0;
  for (int32_t c = 0; c < pairs->classes; c++)
    count += unicon__list_at(&pairs->positive.by_x, c).count *
             unicon__list_at(&pairs->positive.by_y, c).count;
  return count - pairs->selfs;
}

/* Row i of x is row i of y. */
static unicon_status mark_selfs(unicon_ctx *ctx, unicon_pairs *pairs) {
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->self_x, pairs->n_x);
  for (int64_t i = 0; i < pairs->n_x; i++) pairs->self_x[i] = (int32_t)i;
  pairs->self_y = pairs->self_x;
  pairs->selfs = pairs->n_x;
  return UNICON_OK;
}

/* The members of each class, once rows have their class numbers. */
static unicon_status group_classes(unicon_ctx *ctx, unicon_pairs *pairs) {
  unicon__pair_set *positive = &pairs->positive;
  UNICON_TRY(unicon__lists_group(ctx, &pairs->arena, pairs->class_x, pairs->n_x, pairs->classes,
                                 &positive->by_x));
  return unicon__lists_group(ctx, &pairs->arena, pairs->class_y, pairs->n_y, pairs->classes,
                             &positive->by_y);
}

static unicon_status build_labels(unicon_ctx *ctx, unicon_pairs *pairs, const int64_t *label_x,
                                  const int64_t *label_y, unicon__labelled how) {
  const bool one_set = how == UNICON__LABELS_ONE_SET;
  if (pairs->n_x + pairs->n_y > INT32_MAX)
    return unicon__fail(ctx, UNICON_ERR_PAIRS,
                        "labels of %" PRId64 " rows of x and %" PRId64
                        " rows of y; together they may have %d rows",
                        pairs->n_x, pairs->n_y, INT32_MAX);
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_x, pairs->n_x);
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_y, pairs->n_y);
  UNICON_TRY(number_classes(ctx, pairs, label_x, label_y));
  UNICON_TRY(group_classes(ctx, pairs));
  if (one_set) UNICON_TRY(mark_selfs(ctx, pairs));
  pairs->positive.count = unicon__count_class_pairs(pairs);
  if (pairs->positive.count == 0 && how != UNICON__LABELS_PART)
    return unicon__fail(ctx, UNICON_ERR_PAIRS,
                        "none of the %" PRId32 " labels occurs %s, so there are no pairs",
                        pairs->classes, one_set ? "twice" : "on both sides");
  return UNICON_OK;
}

unicon_status unicon__pairs_from_labels(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                        const int64_t *label_y, int64_t n_y, unicon__labelled how,
                                        unicon_pairs **out) {
  UNICON_NEED(ctx, out);
  UNICON_NEED(ctx, label_x);
  UNICON_NEED(ctx, label_y);
  unicon_pairs *pairs = unicon__pairs_new(ctx, n_x, n_y);
  if (!pairs) return unicon__status(ctx);
  return unicon__pairs_finish(pairs, build_labels(ctx, pairs, label_x, label_y, how), out);
}

static unicon_status take_classes(unicon_ctx *ctx, unicon_pairs *pairs, const int32_t *class_x,
                                  const int32_t *class_y, const int64_t *key) {
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_x, pairs->n_x);
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_y, pairs->n_y);
  UNICON_ARENA_NEW(ctx, &pairs->arena, pairs->class_key, pairs->classes);
  memcpy(pairs->class_x, class_x, (size_t)pairs->n_x * sizeof *class_x);
  memcpy(pairs->class_y, class_y, (size_t)pairs->n_y * sizeof *class_y);
  memcpy(pairs->class_key, key, (size_t)pairs->classes * sizeof *key);
  UNICON_TRY(group_classes(ctx, pairs));
  pairs->positive.count = unicon__count_class_pairs(pairs);
  return UNICON_OK;
}

unicon_status unicon__pairs_from_classes(unicon_ctx *ctx, const int32_t *class_x, int64_t n_x,
                                         const int32_t *class_y, int64_t n_y, const int64_t *key,
                                         int32_t classes, unicon_pairs **out) {
  unicon_pairs *pairs = unicon__pairs_new(ctx, n_x, n_y);
  if (!pairs) return unicon__status(ctx);
  pairs->classes = classes;
  return unicon__pairs_finish(pairs, take_classes(ctx, pairs, class_x, class_y, key), out);
}

unicon_status unicon_pairs_labels(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                  const int64_t *label_y, int64_t n_y, unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(
      ctx, unicon__pairs_from_labels(ctx, label_x, n_x, label_y, n_y, UNICON__LABELS_WHOLE, out));
}

unicon_status unicon_pairs_labels_part(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                       const int64_t *label_y, int64_t n_y, unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(
      ctx, unicon__pairs_from_labels(ctx, label_x, n_x, label_y, n_y, UNICON__LABELS_PART, out));
}

unicon_status unicon_pairs_one_set(unicon_ctx *ctx, const int64_t *label, int64_t n,
                                   unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(
      ctx, unicon__pairs_from_labels(ctx, label, n, label, n, UNICON__LABELS_ONE_SET, out));
}

/* ---- ignored pairs and explicit negatives ------------------------------------------------- */

static unicon_status check_apart(unicon_ctx *ctx, const unicon_pairs *pairs, const char *what,
                                 const unicon__pair_set *set, const unicon__pair_set *other) {
  const char *as = other == &pairs->negative ? "a negative pair" : "an ignored pair";
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners list = unicon__list_at(&set->by_x, i);
    for (int64_t p = 0; p < list.count; p++) {
      const bool self = unicon__self_x(pairs, i) == list.item[p];
      const bool positive = unicon__partners_have(unicon__positives_x(pairs, i), list.item[p]);
      if (!positive && !self &&
          !unicon__partners_have(unicon__list_at(&other->by_x, i), list.item[p]))
        continue;
      return unicon__fail(ctx, UNICON_ERR_PAIRS, "%s (%" PRId64 ", %" PRId32 ") is also %s", what,
                          i, list.item[p],
                          positive ? "a positive pair"
                          : self   ? "a row with itself, which is no pair"
                                   : as);
    }
  }
  return UNICON_OK;
}

unicon_status unicon__pairs_add_set(unicon_ctx *ctx, unicon_pairs *pairs, unicon__pair_kind kind,
                                    const char *what, const int64_t *x, const int64_t *y,
                                    const double *weight, int64_t count) {
  const bool negatives = kind == UNICON__PAIR_NEGATIVE;
  UNICON_NEED(ctx, pairs);
  if (count == 0 && !negatives) return UNICON_OK;
  if (count == 0)
    return unicon__fail_empty_list(
        ctx, what, "without a list every pair that is not positive and not ignored is negative");
  UNICON_NEED(ctx, x);
  UNICON_NEED(ctx, y);
  unicon__pair_set *target = negatives ? &pairs->negative : &pairs->ignore;
  const unicon__pair_set *other = negatives ? &pairs->ignore : &pairs->negative;
  if (target->count > 0)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: %" PRId64 " of them were set before; they can be set once", what,
                        target->count);
  unicon__pair_set set;
  UNICON_TRY(unicon__pair_set_build(ctx, &pairs->arena, what, kind, pairs->n_x, pairs->n_y, x, y,
                                    weight, count, &set));
  UNICON_TRY(check_apart(ctx, pairs, what, &set, other));
  *target = set;
  pairs->only_listed |= negatives;
  return UNICON_OK;
}

unicon_status unicon_pairs_set_ignored(unicon_ctx *ctx, unicon_pairs *pairs, const int64_t *x,
                                       const int64_t *y, const double *weight, int64_t count) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, unicon__pairs_add_set(ctx, pairs, UNICON__PAIR_IGNORED, "ignored pair",
                                                  x, y, weight, count));
}

unicon_status unicon_pairs_set_negatives(unicon_ctx *ctx, unicon_pairs *pairs, const int64_t *x,
                                         const int64_t *y, const double *weight, int64_t count) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, unicon__pairs_add_set(ctx, pairs, UNICON__PAIR_NEGATIVE,
                                                  "negative pair", x, y, weight, count));
}
