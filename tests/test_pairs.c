/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of every origin against a dense table of what they should be. */
#include "scratch.h"

#include <math.h>

#include "io/pairs.h"

enum { MOST = 64 };

/* weight[i][j] > 0 (or marked) where (i, j) is in the set. */
typedef struct table {
  float weight[MOST][MOST];
  int64_t count;
} table;

static void expect_list(unicon__partners list, int64_t i, int64_t others, const table *t,
                        bool transposed) {
  int64_t p = 0;
  for (int64_t j = 0; j < others; j++) {
    const float weight = transposed ? t->weight[j][i] : t->weight[i][j];
    if (isnan(weight)) continue;
    assert_true(p < list.count);
    assert_int_equal(unicon__partner(list, p), j);
    assert_true((list.weight ? list.weight[p] : 1.0f) == weight);
    p++;
  }
  assert_int_equal(p, list.count);
}

/* NaN marks what is not in a set, so that a weight of 0 is in it. */
static void table_clear(table *t) {
  t->count = 0;
  for (int i = 0; i < MOST; i++)
    for (int j = 0; j < MOST; j++) t->weight[i][j] = NAN;
}

static void table_add(table *t, int64_t i, int64_t j, float weight) {
  t->weight[i][j] = weight;
  t->count++;
}

static void expect_positive(const unicon_pairs *pairs, const table *t) {
  assert_int_equal(unicon_pairs_count(pairs), t->count);
  for (int64_t i = 0; i < pairs->n_x; i++)
    expect_list(unicon__positives_x(pairs, i), i, pairs->n_y, t, false);
  for (int64_t j = 0; j < pairs->n_y; j++)
    expect_list(unicon__positives_y(pairs, j), j, pairs->n_x, t, true);
}

static void expect_set(const unicon_pairs *pairs, const unicon__pair_set *set, const table *t) {
  assert_int_equal(set->count, t->count);
  for (int64_t i = 0; i < pairs->n_x; i++)
    expect_list(unicon__list_at(&set->by_x, i), i, pairs->n_y, t, false);
  for (int64_t j = 0; j < pairs->n_y; j++)
    expect_list(unicon__list_at(&set->by_y, j), j, pairs->n_x, t, true);
}

static void blocks(void **state) {
  scratch *s = *state;
  unicon_pairs *pairs;
  table t;
  table_clear(&t);
  for (int i = 0; i < 7; i++) table_add(&t, i, i, 1);
  assert_int_equal(unicon_pairs_identity(s->ctx, 7, 7, &pairs), UNICON_OK);
  expect_positive(pairs, &t);
  unicon_pairs_destroy(pairs);
  table_clear(&t);
  for (int j = 0; j < 12; j++) table_add(&t, j / 3, j, 1);
  assert_int_equal(unicon_pairs_per_x(s->ctx, 4, 12, 3, &pairs), UNICON_OK);
  expect_positive(pairs, &t);
  unicon_pairs_destroy(pairs);
  table_clear(&t);
  for (int i = 0; i < 12; i++) table_add(&t, i, i / 3, 1);
  assert_int_equal(unicon_pairs_per_y(s->ctx, 12, 4, 3, &pairs), UNICON_OK);
  expect_positive(pairs, &t);
  unicon_pairs_destroy(pairs);
  scratch_failed(s, unicon_pairs_identity(s->ctx, 7, 8, &pairs), UNICON_ERR_PAIRS,
                 "y has 8, but row i", "7");
  assert_null(pairs);
  scratch_failed(s, unicon_pairs_per_x(s->ctx, 4, 13, 3, &pairs), UNICON_ERR_PAIRS, "13 rows", "3");
  scratch_failed(s, unicon_pairs_per_y(s->ctx, 12, 4, 2, &pairs), UNICON_ERR_PAIRS, "12 rows", "2");
  scratch_failed(s, unicon_pairs_per_x(s->ctx, 4, 12, 0, &pairs), UNICON_ERR_PAIRS, "with 0", "12");
  scratch_failed(s, unicon_pairs_identity(s->ctx, 0, 0, &pairs), UNICON_ERR_PAIRS, "0 rows",
                 "1 ..");
  scratch_failed(s, unicon_pairs_identity(s->ctx, 2147483648, 2147483648, &pairs), UNICON_ERR_PAIRS,
                 "2147483648 rows", "1 .. 2147483647");
  scratch_failed(s, unicon_pairs_per_x(s->ctx, 1, -4, 3, &pairs), UNICON_ERR_PAIRS, "-4 rows", "");
}

/* Pseudo-random pairs in a scrambled order, without repeats. */
static int64_t scramble(int64_t n_x, int64_t n_y, int64_t *x, int64_t *y, double *weight,
                        table *t) {
  int64_t count = 0;
  for (int64_t k = 0; k < n_x * n_y; k++) {
    const int64_t cell = k * 389 % (n_x * n_y); /* 389 is prime and divides neither */
    if (cell * 2654435761 % 7 > 2) continue;
    x[count] = cell / n_y;
    y[count] = cell % n_y;
    weight[count] = (double)(cell % 4) / 2;
    table_add(t, x[count], y[count], (float)weight[count]);
    count++;
  }
  return count;
}

static void lists(void **state) {
  scratch *s = *state;
  int64_t x[MOST * MOST], y[MOST * MOST];
  double weight[MOST * MOST];
  unicon_pairs *pairs;
  table t;
  table_clear(&t);
  const int64_t count = scramble(31, 23, x, y, weight, &t);
  assert_true(count > 100);
  assert_int_equal(unicon_pairs_list(s->ctx, 31, 23, x, y, weight, count, &pairs), UNICON_OK);
  assert_non_null(pairs->positive.by_x.weight);
  expect_positive(pairs, &t);
  unicon_pairs_destroy(pairs);
  for (int64_t p = 0; p < count; p++) {
    t.weight[x[p]][y[p]] = 1;
    weight[p] = 1;
  }
  assert_int_equal(unicon_pairs_list(s->ctx, 31, 23, x, y, NULL, count, &pairs), UNICON_OK);
  expect_positive(pairs, &t);
  unicon_pairs_destroy(pairs);
  assert_int_equal(unicon_pairs_list(s->ctx, 31, 23, x, y, weight, count, &pairs), UNICON_OK);
  assert_null(pairs->positive.by_x.weight);
  assert_null(pairs->positive.by_y.weight);
  unicon_pairs_destroy(pairs);
}

static void list_defects(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_pairs *pairs;
  const int64_t x[5] = {0, 4, 2, 1, 4}, y[5] = {1, 2, 0, 3, 2};
  double weight[5] = {1, 2, 3, 4, 5};
  scratch_failed(s, unicon_pairs_list(ctx, 4, 4, x, y, NULL, 4, &pairs), UNICON_ERR_PAIRS,
                 "pair 1 is (4, 2)", "rows of x are 0 .. 3");
  assert_null(pairs);
  scratch_failed(s, unicon_pairs_list(ctx, 5, 3, x, y, NULL, 4, &pairs), UNICON_ERR_PAIRS,
                 "pair 3 is (1, 3)", "rows of y are 0 .. 2");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, y, NULL, 5, &pairs), UNICON_ERR_PAIRS,
                 "pair 4 is (4, 2), given twice", "number 1 is the same");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, y, NULL, 0, &pairs), UNICON_ERR_PAIRS,
                 "list of pairs is empty", "at least 1");
  const int64_t negative[1] = {-1};
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, negative, y, NULL, 1, &pairs), UNICON_ERR_PAIRS,
                 "pair 0 is (-1, 1)", "rows of x");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, negative, NULL, 1, &pairs), UNICON_ERR_PAIRS,
                 "pair 0 is (0, -1)", "rows of y");
  const struct {
    double value;
    const char *word;
  } bad[] = {{-0.5, "-0.5"}, {(double)NAN, "nan"}, {(double)INFINITY, "inf"}, {1e60, "1e+60"}};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    weight[2] = bad[k].value;
    scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, y, weight, 4, &pairs), UNICON_ERR_PAIRS,
                   "pair 2 has weight", bad[k].word);
    assert_non_null(strstr(unicon_ctx_error(ctx), "from 0 to 3.4e38"));
  }
  memset(weight, 0, sizeof weight);
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, y, weight, 4, &pairs), UNICON_ERR_PAIRS,
                 "weight 0", "all others");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, NULL, y, NULL, 4, &pairs), UNICON_ERR_ARGUMENT,
                 "x is NULL", "");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, NULL, NULL, 4, &pairs), UNICON_ERR_ARGUMENT,
                 "y is NULL", "");
  scratch_failed(s, unicon_pairs_list(ctx, 5, 4, x, y, NULL, 4, NULL), UNICON_ERR_ARGUMENT,
                 "out is NULL", "");
  scratch_failed(s, unicon_pairs_list(ctx, 1LL << 31, 4, x, y, NULL, 4, &pairs), UNICON_ERR_PAIRS,
                 "2147483648 rows of x", "2147483647");
}

static const int64_t label_x[8] = {5, -3, 7, 5, 900000000000, 7, 5, 11};
static const int64_t label_y[6] = {7, 5, 12, 900000000000, 5, 7};

static void label_table(table *t) {
  table_clear(t);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 6; j++)
      if (label_x[i] == label_y[j]) table_add(t, i, j, 1);
}

static void labels(void **state) {
  scratch *s = *state;
  unicon_pairs *pairs;
  table t;
  label_table(&t);
  assert_int_equal(t.count, 3 * 2 + 2 * 2 + 1);
  assert_int_equal(unicon_pairs_labels(s->ctx, label_x, 8, label_y, 6, &pairs), UNICON_OK);
  expect_positive(pairs, &t);
  assert_int_equal(pairs->classes, 6);
  unicon_pairs_destroy(pairs);
  const int64_t apart[2] = {1, 2};
  scratch_failed(s, unicon_pairs_labels(s->ctx, label_x, 8, apart, 2, &pairs), UNICON_ERR_PAIRS,
                 "none of the 7 labels", "both sides");
  assert_null(pairs);
  scratch_failed(s, unicon_pairs_labels(s->ctx, label_x, INT32_MAX, label_y, 6, &pairs),
                 UNICON_ERR_PAIRS, "2147483647 rows of x", "together");
  scratch_failed(s, unicon_pairs_labels(s->ctx, NULL, 8, label_y, 6, &pairs), UNICON_ERR_ARGUMENT,
                 "label_x is NULL", "");
  scratch_failed(s, unicon_pairs_labels(s->ctx, label_x, 8, NULL, 6, &pairs), UNICON_ERR_ARGUMENT,
                 "label_y is NULL", "");
}

static void ignored_and_negatives(void **state) {
  scratch *s = *state;
  unicon_pairs *pairs;
  table ignored, negative;
  table_clear(&ignored);
  table_clear(&negative);
  const int64_t ix[3] = {7, 0, 0}, iy[3] = {0, 3, 2}, nx[2] = {0, 1}, ny[2] = {0, 5};
  for (int p = 0; p < 3; p++) table_add(&ignored, ix[p], iy[p], 1);
  for (int p = 0; p < 2; p++) table_add(&negative, nx[p], ny[p], 1);
  assert_int_equal(unicon_pairs_labels(s->ctx, label_x, 8, label_y, 6, &pairs), UNICON_OK);
  const int64_t hit_x[1] = {0}, hit_y[1] = {1};
  scratch_failed(s, unicon_pairs_set_ignored(s->ctx, pairs, hit_x, hit_y, NULL, 1),
                 UNICON_ERR_PAIRS, "ignored pair (0, 1)", "a positive pair");
  scratch_failed(s, unicon_pairs_set_negatives(s->ctx, pairs, hit_x, hit_y, NULL, 1),
                 UNICON_ERR_PAIRS, "negative pair (0, 1)", "a positive pair");
  scratch_failed(s, unicon_pairs_set_negatives(s->ctx, pairs, hit_x, hit_y, NULL, 0),
                 UNICON_ERR_PAIRS, "list of negative pairs is empty", "without a list every pair");
  assert_false(pairs->only_listed);
  assert_int_equal(unicon_pairs_set_ignored(s->ctx, pairs, NULL, NULL, NULL, 0), UNICON_OK);
  assert_int_equal(pairs->ignore.count, 0); /* none, and they may still be set */
  assert_int_equal(unicon_pairs_set_ignored(s->ctx, pairs, ix, iy, NULL, 3), UNICON_OK);
  expect_set(pairs, &pairs->ignore, &ignored);
  assert_false(pairs->only_listed);
  scratch_failed(s, unicon_pairs_set_ignored(s->ctx, pairs, ix, iy, NULL, 3), UNICON_ERR_ARGUMENT,
                 "3 of them were set before", "once");
  scratch_failed(s, unicon_pairs_set_negatives(s->ctx, pairs, ix, iy, NULL, 3), UNICON_ERR_PAIRS,
                 "negative pair (0, 2)", "an ignored pair");
  assert_int_equal(unicon_pairs_set_negatives(s->ctx, pairs, nx, ny, NULL, 2), UNICON_OK);
  expect_set(pairs, &pairs->negative, &negative);
  assert_true(pairs->only_listed);
  unicon_pairs_destroy(pairs);
  assert_int_equal(unicon_pairs_identity(s->ctx, 8, 8, &pairs), UNICON_OK);
  assert_int_equal(unicon_pairs_set_negatives(s->ctx, pairs, nx + 1, ny + 1, NULL, 1), UNICON_OK);
  scratch_failed(s, unicon_pairs_set_ignored(s->ctx, pairs, nx + 1, ny + 1, NULL, 1),
                 UNICON_ERR_PAIRS, "ignored pair (1, 5)", "a negative pair");
  scratch_failed(s, unicon_pairs_set_ignored(s->ctx, NULL, ix, iy, NULL, 1), UNICON_ERR_ARGUMENT,
                 "pairs is NULL", "");
  scratch_failed(s, unicon_pairs_set_ignored(s->ctx, pairs, NULL, iy, NULL, 1), UNICON_ERR_ARGUMENT,
                 "x is NULL", "");
  assert_int_equal(unicon_pairs_set_ignored(NULL, pairs, ix, iy, NULL, 1), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_pairs_set_negatives(NULL, pairs, ix, iy, NULL, 1), UNICON_ERR_ARGUMENT);
  unicon_pairs_destroy(pairs);
}

/* The table of the kept rows and columns; NULL keeps all. */
static table table_subset(const table *t, const int64_t *x, int64_t n_x, const int64_t *y,
                          int64_t n_y) {
  table out;
  table_clear(&out);
  for (int64_t a = 0; a < n_x; a++)
    for (int64_t b = 0; b < n_y; b++) {
      const float weight = t->weight[x ? x[a] : a][y ? y[b] : b];
      if (!isnan(weight)) table_add(&out, a, b, weight);
    }
  return out;
}

static void subset_of_lists(void **state) {
  scratch *s = *state;
  int64_t x[MOST * MOST], y[MOST * MOST];
  double weight[MOST * MOST];
  unicon_pairs *pairs, *part;
  table all, positive, ignored, negative;
  table_clear(&all);
  table_clear(&positive);
  table_clear(&ignored);
  table_clear(&negative);
  const int64_t count = scramble(31, 23, x, y, weight, &all), third = count / 3;
  for (int64_t p = 0; p < third; p++) {
    table_add(&positive, x[p], y[p], (float)weight[p]);
    table_add(&ignored, x[third + p], y[third + p], (float)weight[third + p] / 2);
    table_add(&negative, x[2 * third + p], y[2 * third + p], (float)weight[2 * third + p] / 2);
  }
  assert_int_equal(unicon_pairs_list(s->ctx, 31, 23, x, y, weight, third, &pairs), 0);
  for (int64_t p = 0; p < count; p++) weight[p] /= 2; /* at most 1 */
  assert_int_equal(
      unicon_pairs_set_ignored(s->ctx, pairs, x + third, y + third, weight + third, third), 0);
  assert_int_equal(unicon_pairs_set_negatives(s->ctx, pairs, x + 2 * third, y + 2 * third,
                                              weight + 2 * third, third),
                   0);
  const int64_t x_keep[6] = {0, 3, 4, 17, 29, 30}, y_keep[9] = {1, 2, 5, 6, 7, 11, 20, 21, 22};
  for (int sides = 0; sides < 4; sides++) {
    const int64_t *kx = sides & 1 ? x_keep : NULL, *ky = sides & 2 ? y_keep : NULL;
    const int64_t n_x = kx ? 6 : 31, n_y = ky ? 9 : 23;
    assert_int_equal(unicon__pairs_subset(s->ctx, pairs, kx, kx ? 6 : 0, ky, ky ? 9 : 0, &part),
                     UNICON_OK);
    assert_int_equal(part->n_x, n_x);
    assert_int_equal(part->n_y, n_y);
    assert_true(part->only_listed);
    const table kept = table_subset(&positive, kx, n_x, ky, n_y);
    const table kept_ignored = table_subset(&ignored, kx, n_x, ky, n_y);
    const table kept_negative = table_subset(&negative, kx, n_x, ky, n_y);
    expect_positive(part, &kept);
    expect_set(part, &part->ignore, &kept_ignored);
    expect_set(part, &part->negative, &kept_negative);
    unicon_pairs_destroy(part);
  }
  const int64_t wrong[2] = {4, 31}, twice[2] = {4, 4};
  scratch_failed(s, unicon__pairs_subset(s->ctx, pairs, wrong, 2, NULL, 0, &part), UNICON_ERR_PAIRS,
                 "row 31 of x", "0 .. 30");
  scratch_failed(s, unicon__pairs_subset(s->ctx, pairs, NULL, 0, twice, 2, &part), UNICON_ERR_PAIRS,
                 "row 4 of y", "ascending");
  unicon__frame_close(s->ctx, NULL);
  unicon_pairs_destroy(pairs);
}

static void subset_of_labels(void **state) {
  scratch *s = *state;
  unicon_pairs *pairs, *part;
  table t;
  label_table(&t);
  const int64_t x_keep[4] = {0, 1, 3, 5}, y_keep[3] = {0, 2, 4};
  assert_int_equal(unicon_pairs_labels(s->ctx, label_x, 8, label_y, 6, &pairs), UNICON_OK);
  assert_int_equal(unicon__pairs_subset(s->ctx, pairs, x_keep, 4, y_keep, 3, &part), UNICON_OK);
  const table kept = table_subset(&t, x_keep, 4, y_keep, 3);
  assert_int_equal(kept.count, 3);
  expect_positive(part, &kept);
  unicon_pairs_destroy(part);
  const int64_t lonely[1] = {1};
  assert_int_equal(unicon__pairs_subset(s->ctx, pairs, lonely, 1, NULL, 0, &part), UNICON_OK);
  assert_int_equal(unicon_pairs_count(part), 0);
  unicon_pairs_destroy(part);
  unicon_pairs_destroy(pairs);
}

/* A row has the others of its label, and is in no list of its own; a subset may keep a row on one
 * side only. */
static void one_set(void **state) {
  scratch *s = *state;
  const int64_t label[7] = {4, 2, 4, 4, 9, 2, 4}, self = 3;
  unicon_pairs *pairs, *part;
  table t;
  table_clear(&t);
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++)
      if (i != j && label[i] == label[j]) table_add(&t, i, j, 1);
  assert_int_equal(unicon_pairs_one_set(s->ctx, label, 7, &pairs), UNICON_OK);
  assert_int_equal(pairs->selfs, 7);
  expect_positive(pairs, &t);
  int64_t got[3] = {-1, -1, -1};
  assert_int_equal(unicon_pairs_partners(pairs, UNICON_X, 2, 3, got), 3);
  assert_true(got[0] == 0 && got[1] == 3 && got[2] == 6);
  scratch_failed(s, unicon_pairs_set_negatives(s->ctx, pairs, &self, &self, NULL, 1),
                 UNICON_ERR_PAIRS, "negative pair (3, 3)", "a row with itself");
  const int64_t x_keep[5] = {0, 1, 2, 4, 5}, y_keep[4] = {0, 3, 5, 6};
  assert_int_equal(unicon__pairs_subset(s->ctx, pairs, x_keep, 5, y_keep, 4, &part), UNICON_OK);
  const table kept = table_subset(&t, x_keep, 5, y_keep, 4);
  expect_positive(part, &kept);
  assert_int_equal(part->selfs, 2); /* rows 0 and 5 */
  for (int64_t a = 0; a < 5; a++)
    for (int64_t b = 0; b < 4; b++) {
      assert_int_equal(unicon__self_x(part, a) == b, x_keep[a] == y_keep[b]);
      assert_int_equal(unicon__self_y(part, b) == a, x_keep[a] == y_keep[b]);
    }
  unicon__frame_close(s->ctx, NULL);
  unicon_pairs_destroy(part);
  unicon_pairs_destroy(pairs);
  const int64_t lonely[3] = {1, 2, 3};
  scratch_failed(s, unicon_pairs_one_set(s->ctx, lonely, 3, &pairs), UNICON_ERR_PAIRS,
                 "none of the 3 labels occurs twice", "no pairs");
}

static unicon_status make_all(scratch *s, void *user) {
  (void)user;
  const int64_t x[3] = {2, 0, 1}, y[3] = {0, 1, 2}, ix[1] = {0}, iy[1] = {0};
  const double weight[3] = {1, 2, 3};
  unicon_pairs *a = NULL, *b = NULL, *c = NULL, *d = NULL, *e = NULL;
  unicon_status status = unicon_pairs_list(s->ctx, 3, 3, x, y, weight, 3, &a);
  if (!status) status = unicon_pairs_set_ignored(s->ctx, a, ix, iy, NULL, 1);
  if (!status) status = unicon_pairs_labels(s->ctx, label_x, 8, label_y, 6, &b);
  if (!status) status = unicon_pairs_per_y(s->ctx, 6, 2, 3, &c);
  if (!status) status = unicon_pairs_one_set(s->ctx, label_y, 6, &e);
  if (!status) {
    assert_int_equal(unicon__enter(s->ctx), UNICON_OK);
    status = unicon__leave(s->ctx, unicon__pairs_subset(s->ctx, a, x + 1, 2, NULL, 0, &d));
  }
  unicon_pairs_destroy(a);
  unicon_pairs_destroy(b);
  unicon_pairs_destroy(c);
  unicon_pairs_destroy(d);
  unicon_pairs_destroy(e);
  return status;
}

static void failures(void **state) {
  scratch *s = *state;
  const int events =
      scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, make_all, NULL);
  assert_true(events > 30);
  unicon_pairs *pairs;
  assert_int_equal(unicon_pairs_identity(NULL, 1, 1, &pairs), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_pairs_per_y(NULL, 1, 1, 1, &pairs), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_pairs_list(NULL, 1, 1, NULL, NULL, NULL, 1, &pairs), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_pairs_labels(NULL, NULL, 1, NULL, 1, &pairs), UNICON_ERR_ARGUMENT);
  scratch_failed(s, unicon_pairs_identity(s->ctx, 1, 1, NULL), UNICON_ERR_ARGUMENT, "out is NULL",
                 "");
  unicon_pairs_destroy(NULL);
  assert_int_equal(unicon_pairs_count(NULL), 0);
}

static void partners(void **state) {
  scratch *s = *state;
  const int64_t x[] = {0, 0, 2, 0}, y[] = {3, 1, 0, 2}, kind_x[] = {7, 8, 7}, kind_y[] = {8, 7};
  int64_t got[4] = {-1, -1, -1, -1};
  unicon_pairs *list = NULL, *labels = NULL;
  assert_int_equal(unicon_pairs_list(s->ctx, 3, 4, x, y, NULL, 4, &list), UNICON_OK);
  assert_int_equal(unicon_pairs_labels(s->ctx, kind_x, 3, kind_y, 2, &labels), UNICON_OK);
  assert_int_equal(unicon_pairs_partners(list, UNICON_X, 0, 2, got), 3);
  assert_true(got[0] == 1 && got[1] == 2 && got[2] == -1);
  assert_int_equal(unicon_pairs_partners(list, UNICON_X, 1, 4, got), 0);
  assert_int_equal(unicon_pairs_partners(list, UNICON_Y, 0, 4, got), 1);
  assert_int_equal(got[0], 2);
  assert_int_equal(unicon_pairs_partners(labels, UNICON_Y, 1, 4, got), 2);
  assert_true(got[0] == 0 && got[1] == 2);
  assert_int_equal(unicon_pairs_partners(labels, UNICON_X, 1, 0, NULL), 1);
  assert_int_equal(unicon_pairs_partners(labels, UNICON_X, 3, 4, got), 0);
  assert_int_equal(unicon_pairs_partners(labels, UNICON_X, -1, 4, got), 0);
  assert_int_equal(unicon_pairs_partners(NULL, UNICON_X, 0, 4, got), 0);
  unicon_pairs_destroy(list);
  unicon_pairs_destroy(labels);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(blocks),          SCRATCH_TEST(lists),
      SCRATCH_TEST(list_defects),    SCRATCH_TEST(labels),
      SCRATCH_TEST(subset_of_lists), SCRATCH_TEST(subset_of_labels),
      SCRATCH_TEST(failures),        SCRATCH_TEST(ignored_and_negatives),
      SCRATCH_TEST(partners),        SCRATCH_TEST(one_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
