/* SPDX-License-Identifier: Apache-2.0 */
#include "features/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "io/object.h"
#include "linalg/blas.h"

/* Members never end in padding, so that a new one makes the struct longer. */
enum { DATA_LEAST = offsetof(unicon_data, groups) + sizeof(const int64_t *) };
_Static_assert(sizeof(unicon_data) == DATA_LEAST, "no padding at the end");

unicon_status unicon__data_take(unicon_ctx *ctx, const unicon_data *given, unicon_data *out) {
  UNICON_TRY(unicon__take_sized(ctx, "UNICON_DATA", given, out, DATA_LEAST, sizeof *out));
  if (out->x && out->y) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a set needs rows of x and y; %s is NULL",
                      out->x ? "y" : "x");
}

static unicon_status check_shapes(unicon_ctx *ctx, const unicon_data *data) {
  const unicon_rows *x = data->x, *y = data->y;
  const unicon_pairs *pairs = data->pairs;
  if (x->width > UNICON__MAX_WIDTH || y->width > UNICON__MAX_WIDTH)
    return unicon__fail(ctx, UNICON_ERR_SHAPE, "rows of %lld values: at most %d are supported",
                        (long long)(x->width > y->width ? x->width : y->width), UNICON__MAX_WIDTH);
  if (pairs && (pairs->n_x != x->count || pairs->n_y != y->count))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "the pairs are for %lld by %lld rows, but %s has %lld and %s has %lld",
                        (long long)pairs->n_x, (long long)pairs->n_y, x->name, (long long)x->count,
                        y->name, (long long)y->count);
  return UNICON_OK;
}

static unicon_status check_counts(unicon_ctx *ctx, const unicon_rows *x, const unicon_rows *y) {
  if (x->count >= 2 && y->count >= 2) return UNICON_OK;
  return unicon__fail(
      ctx, UNICON_ERR_DATA, "%s has %lld row%s; a fit needs at least 2 on each side",
      x->count < 2 ? x->name : y->name, (long long)(x->count < 2 ? x->count : y->count),
      (x->count < 2 ? x->count : y->count) == 1 ? "" : "s");
}

/* With every pair positive no row can be told from another. */
/* Rows enough for a fit, and a pair? */
static bool is_enough(const unicon__batch *whole) {
  return whole->pairs && whole->x.count >= 2 && whole->y.count >= 2 &&
         whole->pairs->positive.count > 0;
}

static bool all_positive(const unicon_pairs *pairs) {
  return pairs->positive.count + pairs->selfs == pairs->n_x * pairs->n_y;
}

static unicon_status check_left(unicon_ctx *ctx, const unicon__batch *whole) {
  const bool enough = is_enough(whole);
  if (enough && all_positive(whole->pairs))
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "every row of %s belongs to every row of %s, so there is nothing to align",
                        whole->x.rows->name, whole->y.rows->name);
  if (enough) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%lld rows of %s, %lld rows of %s and %lld pairs are left; a fit needs at "
                      "least 2 rows on each side and a pair",
                      (long long)whole->x.count, whole->x.rows->name, (long long)whole->y.count,
                      whole->y.rows->name, (long long)whole->pairs->positive.count);
}

/* All rows, which will be looked at by whoever walks them first. */
static unicon_status look_later(unicon_ctx *ctx, unicon__row_need need, unicon__dataset *out) {
  unicon__source *source[2] = {&out->whole.x, &out->whole.y};
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(unicon__look_open(ctx, source[s]->rows, need, &out->look[s]));
    source[s]->count = source[s]->rows->count;
    source[s]->look = &out->look[s];
  }
  return UNICON_OK;
}

static unicon_status take(unicon_ctx *ctx, const unicon_data *data, unicon__row_need need,
                          unicon__bad_rows bad, unicon__dataset *out) {
  const bool drop = bad == UNICON__BAD_DROP;
  unicon__batch *whole = &out->whole;
  *out = (unicon__dataset){.whole = {.x = {.rows = data->x}, .y = {.rows = data->y}}};
  if (!data->pairs)
    UNICON_TRY(unicon__pairs_identity(ctx, data->x->count, data->y->count, &out->own));
  whole->pairs = data->pairs ? data->pairs : out->own;
  if (bad == UNICON__BAD_LATER) return look_later(ctx, need, out);
  UNICON_TRY(
      unicon__usable_rows(ctx, data->x, need, drop, &whole->x.index, &whole->x.count, &out->hash));
  UNICON_TRY(
      unicon__usable_rows(ctx, data->y, need, drop, &whole->y.index, &whole->y.count, &out->hash));
  if (whole->x.index || whole->y.index) {
    unicon_pairs *kept = NULL;
    UNICON_TRY(unicon__pairs_subset(ctx, whole->pairs, whole->x.index, whole->x.count,
                                    whole->y.index, whole->y.count, &kept));
    unicon_pairs_destroy(out->own);
    out->own = kept;
    whole->pairs = kept;
  }
  return UNICON_OK;
}

unicon_status unicon__dataset_look(unicon_ctx *ctx, unicon__dataset *set) {
  for (int s = 0; s < 2; s++) {
    unicon__look *look = (s == 0 ? &set->whole.x : &set->whole.y)->look;
    if (!look) continue;
    UNICON_TRY(unicon__look_refuse(ctx, look));
    unicon__look_hash(look, &set->hash);
  }
  set->whole.x.look = set->whole.y.look = NULL;
  return UNICON_OK;
}

unicon_status unicon__dataset_open(unicon_ctx *ctx, const unicon_data *data,
                                   const unicon_options *options, bool later,
                                   unicon__dataset *out) {
  const unicon__bad_rows bad = later                                           ? UNICON__BAD_LATER
                               : unicon__is(options, UNICON__BAD_ROWS, "drop") ? UNICON__BAD_DROP
                                                                               : UNICON__BAD_REFUSE;
  const unicon__row_need need =
      unicon__is(options, UNICON__NORMALIZE, "on") ? UNICON__ROW_DIRECTED : UNICON__ROW_SQUARED;
  *out = (unicon__dataset){.own = NULL};
  UNICON_TRY(check_shapes(ctx, data));
  UNICON_TRY(check_counts(ctx, data->x, data->y));
  UNICON_TRY(take(ctx, data, need, bad, out));
  return check_left(ctx, &out->whole);
}

unicon_status unicon__dataset_take(unicon_ctx *ctx, const unicon_data *data,
                                   const unicon__map map[2], unicon__bad_rows bad,
                                   unicon__dataset *out) {
  *out = (unicon__dataset){.own = NULL};
  UNICON_TRY(check_shapes(ctx, data));
  return take(ctx, data, map[0].normalize ? UNICON__ROW_DIRECTED : UNICON__ROW_SQUARED, bad, out);
}

void unicon__dataset_close(unicon__dataset *set) {
  unicon_pairs_destroy(set->own);
  set->own = NULL;
}

/* ---- hold-out ----------------------------------------------------------------------------- */

/* Union-find over n_x + n_y nodes. */
static int64_t root_of(int64_t *parent, int64_t node) {
  while (parent[node] != node) {
    parent[node] = parent[parent[node]];
    node = parent[node];
  }
  return node;
}

static void join(int64_t *parent, int64_t a, int64_t b) {
  const int64_t ra = root_of(parent, a), rb = root_of(parent, b);
  if (ra < rb)
    parent[rb] = ra;
  else
    parent[ra] = rb;
}

/* Joins x rows of equal group number. */
static unicon_status join_groups(unicon_ctx *ctx, const unicon__batch *whole, const int64_t *groups,
                                 int64_t *parent) {
  int64_t *sorted; /* (group, row) one after the other */
  UNICON_NEW(ctx, sorted, 2 * whole->x.count);
  for (int64_t i = 0; i < whole->x.count; i++) {
    sorted[2 * i] = groups[whole->x.index ? whole->x.index[i] : i];
    sorted[2 * i + 1] = i;
  }
  qsort(sorted, (size_t)whole->x.count, 2 * sizeof *sorted, unicon__compare_int64);
  for (int64_t k = 1; k < whole->x.count; k++)
    if (sorted[2 * k] == sorted[2 * k - 2]) join(parent, sorted[2 * k + 1], sorted[2 * k - 1]);
  unicon__drop(ctx, sorted);
  return UNICON_OK;
}

/* Joins partners. Those of a class are one component: every row joins the first row of its class on
 * the other side, O(n) instead of n^2/classes. */
static void join_pairs(const unicon_pairs *pairs, int64_t *parent) {
  const bool labels = pairs->class_x != NULL;
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    for (int64_t k = 0; k < (labels && p.count > 1 ? 1 : p.count); k++)
      join(parent, i, pairs->n_x + unicon__partner(p, k));
  }
  for (int64_t j = 0; j < pairs->n_y && labels; j++) {
    const unicon__partners p = unicon__positives_y(pairs, j);
    if (p.count > 0) join(parent, pairs->n_x + j, unicon__partner(p, 0));
  }
}

unicon_status unicon__components(unicon_ctx *ctx, const unicon__batch *whole, const int64_t *groups,
                                 int64_t **number, int64_t *count, int64_t *largest) {
  const int64_t n_x = whole->x.count, n = n_x + whole->y.count;
  int64_t *parent, *size;
  UNICON_NEW(ctx, parent, n);
  UNICON_NEW(ctx, size, n);
  UNICON_NEW(ctx, *number, n);
  for (int64_t k = 0; k < n; k++) parent[k] = k;
  join_pairs(whole->pairs, parent);
  if (groups) UNICON_TRY(join_groups(ctx, whole, groups, parent));
  *count = *largest = 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t root = root_of(parent, k);
    (*number)[k] = root == k ? (*count)++ : (*number)[root];
    if (++size[root] > *largest) *largest = size[root];
  }
  unicon__drop(ctx, size);
  unicon__drop(ctx, parent);
  return UNICON_OK;
}

/* Rows (ascending) whose mark is `value`, as positions in the source. */
static unicon_status marked_rows(unicon_ctx *ctx, const unsigned char *mark, int64_t n,
                                 unsigned char value, int64_t **out, int64_t *count) {
  *count = 0;
  for (int64_t i = 0; i < n; i++) *count += mark[i] == value;
  UNICON_NEW(ctx, *out, *count);
  for (int64_t i = 0, next = 0; i < n; i++)
    if (mark[i] == value) (*out)[next++] = i;
  return UNICON_OK;
}

/* The rows with mark `value` on either side, and the pairs among them; NULL where there are no
 * rows. */
static unicon_status take_marked(unicon_ctx *ctx, const unicon__batch *whole,
                                 const unsigned char *mark_x, const unsigned char *mark_y,
                                 unsigned char value, unicon__dataset *out) {
  int64_t *x, *y, n_x, n_y;
  *out = (unicon__dataset){0};
  UNICON_TRY(marked_rows(ctx, mark_x, whole->x.count, value, &x, &n_x));
  UNICON_TRY(marked_rows(ctx, mark_y, whole->y.count, value, &y, &n_y));
  if (n_x == 0 || n_y == 0) return UNICON_OK;
  UNICON_TRY(unicon__source_narrow(ctx, &whole->x, x, n_x, &out->whole.x));
  UNICON_TRY(unicon__source_narrow(ctx, &whole->y, y, n_y, &out->whole.y));
  UNICON_TRY(unicon__pairs_subset(ctx, whole->pairs, x, n_x, y, n_y, &out->own));
  out->whole.pairs = out->own;
  return UNICON_OK;
}

/* Marks rows of a side at random. */
static void mark_random(unsigned char *mark, int64_t n, double fraction, uint64_t seed,
                        uint32_t side) {
  for (int64_t i = 0; i < n; i++)
    mark[i] = unicon__uniform(seed, UNICON__STREAM_SPLIT, (uint64_t)i, side) < fraction;
}

/* Would fewer than `wanted` rows of the smaller side be held out? Then those of the other are. */
static bool side_is_small(const unicon__batch *whole, double fraction, double wanted) {
  const int64_t n_x = whole->x.count, n_y = whole->y.count;
  return n_x != n_y && fraction * (double)(n_x < n_y ? n_x : n_y) < wanted;
}

/* Marks whole components until `fraction` of the y rows is held out, and two rows of each side. */
static unicon_status mark_components(unicon_ctx *ctx, const unicon__batch *whole,
                                     const int64_t *groups, double fraction, uint64_t seed,
                                     unsigned char *mark_x, unsigned char *mark_y, bool *one_side) {
  int64_t *number = NULL, *order, count = 0, largest = 0;
  unsigned char *chosen;
  int64_t *x_rows, *y_rows, held_x = 0, held_y = 0;
  UNICON_TRY(unicon__components(ctx, whole, groups, &number, &count, &largest));
  *one_side = !groups &&
              (2 * largest > whole->x.count + whole->y.count || side_is_small(whole, fraction, 2));
  if (*one_side) return UNICON_OK;
  UNICON_NEW(ctx, order, count);
  UNICON_NEW(ctx, chosen, count);
  UNICON_NEW(ctx, x_rows, count);
  UNICON_NEW(ctx, y_rows, count);
  for (int64_t i = 0; i < whole->x.count; i++) x_rows[number[i]]++;
  for (int64_t j = 0; j < whole->y.count; j++) y_rows[number[whole->x.count + j]]++;
  unicon__permutation(seed, UNICON__STREAM_SPLIT, 0, count, order);
  const double wanted = fraction * (double)whole->y.count;
  for (int64_t k = 0; k < count && ((double)held_y < wanted || held_x < 2 || held_y < 2); k++) {
    const int64_t c = order[k];
    if (2 * y_rows[c] > whole->y.count) continue; /* a giant group stays in training */
    chosen[c] = 1;
    held_x += x_rows[c];
    held_y += y_rows[c];
  }
  for (int64_t i = 0; i < whole->x.count; i++) mark_x[i] = chosen[number[i]];
  for (int64_t j = 0; j < whole->y.count; j++) mark_y[j] = chosen[number[whole->x.count + j]];
  return UNICON_OK;
}

/* Rows of one side are held out, with their partners, which stay in training as well. */
static unicon_status split_side(unicon_ctx *ctx, const unicon__batch *whole, bool x_side,
                                double fraction, uint64_t seed, unsigned char *mark_x,
                                unsigned char *mark_y, unicon__dataset *train,
                                unicon__dataset *held) {
  unsigned char *own = x_side ? mark_x : mark_y, *other = x_side ? mark_y : mark_x;
  const int64_t n = x_side ? whole->x.count : whole->y.count;
  unicon__log(ctx, UNICON_LOG_WARNING,
              "%s: %c rows alone are held out, so the held-out score is of %c rows that were seen "
              "in training",
              side_is_small(whole, fraction, 10) ? "the other side has few rows"
                                                 : "most rows are connected by pairs",
              x_side ? 'x' : 'y', x_side ? 'y' : 'x');
  mark_random(own, n, fraction, seed, x_side ? 0 : 1);
  memset(other, 0, (size_t)(x_side ? whole->y.count : whole->x.count));
  UNICON_TRY(take_marked(ctx, whole, mark_x, mark_y, 0, train));
  for (int64_t i = 0; i < n; i++) {
    const unicon__partners p =
        x_side ? unicon__positives_x(whole->pairs, i) : unicon__positives_y(whole->pairs, i);
    for (int64_t k = 0; own[i] && k < p.count; k++) other[unicon__partner(p, k)] = 1;
  }
  UNICON_TRY(take_marked(ctx, whole, mark_x, mark_y, 1, held));
  train->overlaps = held->overlaps = true;
  return UNICON_OK;
}

static unicon_status split(unicon_ctx *ctx, const unicon__dataset *set, const int64_t *groups,
                           double fraction, uint64_t seed, unicon__dataset *train,
                           unicon__dataset *held) {
  const unicon__batch *whole = &set->whole;
  const int64_t n_x = whole->x.count, n_y = whole->y.count;
  unsigned char *mark_x, *mark_y;
  bool one_side = false;
  *train = *held = (unicon__dataset){0};
  UNICON_NEW(ctx, mark_x, n_x);
  UNICON_NEW(ctx, mark_y, n_y);
  if (whole->pairs->class_x && !groups) {
    one_side = side_is_small(whole, fraction, 10);
    mark_random(mark_x, n_x, fraction, seed, 0);
    mark_random(mark_y, n_y, fraction, seed, whole->pairs->self_x ? 0 : 1); /* one set: the same */
  } else {
    UNICON_TRY(mark_components(ctx, whole, groups, fraction, seed, mark_x, mark_y, &one_side));
  }
  if (one_side) {
    const bool x_side = n_x > n_y && side_is_small(whole, fraction, 10);
    return split_side(ctx, whole, x_side, fraction, seed, mark_x, mark_y, train, held);
  }
  UNICON_TRY(take_marked(ctx, whole, mark_x, mark_y, 0, train));
  return take_marked(ctx, whole, mark_x, mark_y, 1, held);
}

unicon_status unicon__dataset_split(unicon_ctx *ctx, const unicon__dataset *set,
                                    const int64_t *groups, double fraction, uint64_t seed,
                                    unicon__dataset *train, unicon__dataset *held,
                                    const char **why_not) {
  const char *why = NULL;
  UNICON_TRY(split(ctx, set, groups, fraction, seed, train, held));
  if (!is_enough(&train->whole) || !is_enough(&held->whole))
    why = "there are too few independent pairs to hold some out";
  else if (all_positive(train->whole.pairs) || all_positive(held->whole.pairs))
    why = "in a part of the rows every row of x belongs to every row of y";
  if (why_not) *why_not = why;
  return why && !why_not ? unicon__fail(ctx, UNICON_ERR_DATA, "%s", why) : UNICON_OK;
}
