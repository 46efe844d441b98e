/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_split_make: both parts together are the whole, nothing that belongs together is cut, and
 * the rows of a part are the very numbers of the original. */
#include "support.h"

enum { N = 60, K = 3, D = 4 };

/* Row i of x holds i in its first column, row j of y j. */
static void numbered(unicon_ctx *ctx, int64_t n, float *data, const char *name, unicon_rows **out) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < D; k++) data[i * D + k] = (float)(k == 0 ? i : k);
  *out = support_rows(ctx, name, data, n, D);
}

typedef struct whole {
  float x[N * D], y[N * K * D];
  unicon_rows *rows_x, *rows_y;
  unicon_pairs *pairs;
  unicon_data data;
} whole;

static void whole_open(unicon_ctx *ctx, whole *w) {
  numbered(ctx, N, w->x, "x", &w->rows_x);
  numbered(ctx, N * K, w->y, "y", &w->rows_y);
  CHECK_OK(ctx, unicon_pairs_per_x(ctx, N, N * K, K, &w->pairs));
  w->data = UNICON_DATA(.x = w->rows_x, .y = w->rows_y, .pairs = w->pairs);
}

static void whole_close(whole *w) {
  unicon_pairs_destroy(w->pairs);
  unicon_rows_close(w->rows_y);
  unicon_rows_close(w->rows_x);
}

static int64_t number_of(unicon_ctx *ctx, const unicon_rows *rows, int64_t row) {
  float values[D];
  CHECK_OK(ctx, unicon_rows_read(ctx, rows, row, 1, values));
  for (int k = 1; k < D; k++) assert_true(values[k] == (float)k);
  return (int64_t)values[0];
}

static void parts_make_up_the_whole(void **state) {
  scratch *s = *state;
  whole w;
  whole_open(s->ctx, &w);
  unicon_split *split = NULL;
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.25, NULL, &split));
  int seen_x[N] = {0}, seen_y[N * K] = {0};
  for (int part = 0; part < 2; part++) {
    const unicon_data *d = unicon_split_part(split, part);
    const int64_t n_x = unicon_rows_count(d->x), n_y = unicon_rows_count(d->y);
    assert_int_equal(n_y, K * n_x);
    assert_int_equal(unicon_pairs_count(d->pairs), n_y);
    assert_int_equal(n_x, part == 0 ? N - N / 4 : N / 4);
    for (int64_t i = 0; i < n_x; i++) {
      const int64_t x = number_of(s->ctx, d->x, i);
      assert_int_equal(unicon_split_rows(split, part, UNICON_X)[i], x);
      seen_x[x]++;
    }
    for (int64_t j = 0; j < n_y; j++) {
      const int64_t y = number_of(s->ctx, d->y, j);
      assert_int_equal(unicon_split_rows(split, part, UNICON_Y)[j], y);
      seen_y[y]++;
      /* its partner is in the same part, under the number the pairs say */
      float *one = support_floats(n_x * D);
      CHECK_OK(s->ctx, unicon_rows_read(s->ctx, d->x, 0, n_x, one));
      int64_t found = 0;
      for (int64_t i = 0; i < n_x; i++) found += (int64_t)one[i * D] == y / K;
      assert_int_equal(found, 1);
      free(one);
    }
  }
  for (int i = 0; i < N; i++) assert_int_equal(seen_x[i], 1);
  for (int j = 0; j < N * K; j++) assert_int_equal(seen_y[j], 1);
  unicon_split_destroy(split);
  whole_close(&w);
}

/* A fit on a part equals a fit on a copy of its rows. */
static void a_part_fits_like_its_copy(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 9, 200, 5, 6, 3, 0.2, &p);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  unicon_split *split = NULL;
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &data, 0.3, NULL, &split));
  const unicon_data *part = unicon_split_part(split, 0);
  const int64_t n = unicon_rows_count(part->x);
  float *x = support_floats(n * 5), *y = support_floats(n * 6);
  CHECK_OK(s->ctx, unicon_rows_read(s->ctx, part->x, 0, n, x));
  CHECK_OK(s->ctx, unicon_rows_read(s->ctx, part->y, 0, n, y));
  unicon_rows *copy_x = support_rows(s->ctx, "x", x, n, 5);
  unicon_rows *copy_y = support_rows(s->ctx, "y", y, n, 6);
  unicon_model *a = support_fit(s->ctx, part->x, part->y, part->pairs, NULL);
  unicon_model *b = support_fit(s->ctx, copy_x, copy_y, NULL, NULL);
  double *cos_a = support_cosines(s->ctx, a, p.rows_x, p.rows_y);
  double *cos_b = support_cosines(s->ctx, b, p.rows_x, p.rows_y);
  assert_true(support_distance(cos_a, cos_b, 200 * 200) == 0);
  free(cos_b);
  free(cos_a);
  unicon_model_destroy(b);
  unicon_model_destroy(a);
  unicon_rows_close(copy_y);
  unicon_rows_close(copy_x);
  free(y);
  free(x);
  unicon_split_destroy(split);
  problem_free(&p);
}

static void groups_stay_together_and_travel(void **state) {
  scratch *s = *state;
  whole w;
  whole_open(s->ctx, &w);
  int64_t group[N];
  for (int i = 0; i < N; i++) group[i] = i % 10;
  w.data.groups = group;
  unicon_split *split = NULL, *again = NULL;
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.3, NULL, &split));
  int in_part[10][2] = {{0}};
  for (int part = 0; part < 2; part++) {
    const unicon_data *d = unicon_split_part(split, part);
    for (int64_t i = 0; i < unicon_rows_count(d->x); i++) {
      const int64_t row = number_of(s->ctx, d->x, i);
      assert_int_equal(d->groups[i], row % 10);
      in_part[row % 10][part] = 1;
    }
  }
  for (int g = 0; g < 10; g++) assert_int_equal(in_part[g][0] + in_part[g][1], 1);
  /* a part can be cut again, by the same groups */
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, unicon_split_part(split, 0), 0.3, NULL, &again));
  const unicon_data *first = unicon_split_part(again, 0), *second = unicon_split_part(again, 1);
  for (int64_t i = 0; i < unicon_rows_count(first->x); i++)
    for (int64_t k = 0; k < unicon_rows_count(second->x); k++)
      assert_true(first->groups[i] != second->groups[k]);
  unicon_split_destroy(again);
  unicon_split_destroy(split);
  whole_close(&w);
}

static void seeds_differ_and_repeat(void **state) {
  scratch *s = *state;
  whole w;
  whole_open(s->ctx, &w);
  unicon_options *other = support_options(s->ctx, "seed", "7", NULL);
  unicon_split *split[3];
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.25, NULL, &split[0]));
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.25, NULL, &split[1]));
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.25, other, &split[2]));
  int same[3] = {0};
  for (int k = 1; k < 3; k++)
    for (int64_t i = 0; i < N / 4; i++)
      same[k] += number_of(s->ctx, unicon_split_part(split[0], 1)->x, i) ==
                 number_of(s->ctx, unicon_split_part(split[k], 1)->x, i);
  assert_int_equal(same[1], N / 4);
  assert_true(same[2] < N / 4);
  for (int k = 0; k < 3; k++) unicon_split_destroy(split[k]);
  unicon_options_destroy(other);
  whole_close(&w);
}

static void bad_rows_are_dropped_or_refused(void **state) {
  scratch *s = *state;
  whole w;
  whole_open(s->ctx, &w);
  w.x[5 * D + 1] = NAN;
  unicon_split *split = NULL;
  scratch_failed(s, unicon_split_make(s->ctx, &w.data, 0.25, NULL, &split), UNICON_ERR_DATA, "x",
                 "row 5");
  assert_null(split);
  unicon_options *drop = support_options(s->ctx, "bad_rows", "drop", NULL);
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0.25, drop, &split));
  int64_t rows = 0;
  for (int part = 0; part < 2; part++) {
    const unicon_data *d = unicon_split_part(split, part);
    rows += unicon_rows_count(d->x);
    for (int64_t i = 0; i < unicon_rows_count(d->x); i++) {
      const int64_t row = number_of(s->ctx, d->x, i);
      assert_true(row != 5 && row == unicon_split_rows(split, part, UNICON_X)[i]);
    }
  }
  assert_int_equal(rows, N - 1);
  unicon_split_destroy(split);
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0, drop, &split)); /* that alone */
  const unicon_data *kept = unicon_split_part(split, 0);
  assert_int_equal(unicon_rows_count(kept->x), N - 1);
  assert_int_equal(unicon_rows_count(kept->y), N * K);
  assert_int_equal(unicon_pairs_count(kept->pairs), (N - 1) * K);
  assert_null(unicon_split_part(split, 1)->x);
  unicon_split_destroy(split);
  w.x[5 * D + 1] = 1;
  CHECK_OK(s->ctx, unicon_split_make(s->ctx, &w.data, 0, drop, &split)); /* nothing to drop */
  kept = unicon_split_part(split, 0);
  assert_int_equal(unicon_rows_count(kept->x), N);
  assert_ptr_equal(kept->pairs, w.pairs);
  unicon_split_destroy(split);
  unicon_options_destroy(drop);
  whole_close(&w);
}

static void nonsense_is_refused(void **state) {
  scratch *s = *state;
  whole w;
  whole_open(s->ctx, &w);
  unicon_split *split = NULL;
  static const double fraction[] = {1, -0.5, 2, NAN};
  for (size_t k = 0; k < sizeof fraction / sizeof *fraction; k++)
    scratch_failed(s, unicon_split_make(s->ctx, &w.data, fraction[k], NULL, &split),
                   UNICON_ERR_ARGUMENT, "fraction", "below 1");
  assert_int_equal(unicon_split_make(s->ctx, NULL, 0.5, NULL, &split), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_split_make(s->ctx, &w.data, 0.5, NULL, NULL), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_split_make(NULL, &w.data, 0.5, NULL, &split), UNICON_ERR_ARGUMENT);
  assert_null(unicon_split_part(NULL, 0));
  assert_null(unicon_split_rows(NULL, 0, UNICON_X));
  unicon_split_destroy(NULL);
  whole_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(parts_make_up_the_whole),         SCRATCH_TEST(a_part_fits_like_its_copy),
      SCRATCH_TEST(groups_stay_together_and_travel), SCRATCH_TEST(seeds_differ_and_repeat),
      SCRATCH_TEST(bad_rows_are_dropped_or_refused), SCRATCH_TEST(nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
