/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are looked at while they are summed (features/usable.h): the same number, the same model
 * and the same sentence as from a sweep of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/usable.h"
#include "scratch.h"
#include "support.h"
#include "unicon/tools.h"

enum { N = 20011, D = 37, TESTS = 50 };

static uint64_t number_of(unicon_ctx *ctx, const unicon_rows *rows) {
  const int64_t *keep;
  int64_t count;
  uint64_t hash = 7;
  assert_int_equal(unicon__enter(ctx), UNICON_OK);
  const unicon_status status =
      unicon__usable_rows(ctx, rows, UNICON__ROW_FINITE, false, &keep, &count, &hash);
  CHECK_OK(ctx, unicon__leave(ctx, status));
  return hash;
}

/* Every value counts, wherever it stands, and so does the order of the rows. */
static void every_value_counts(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int64_t width = 1; width < 80; width += 13) {
    const int64_t rows = 300;
    float *data = support_normals(3, rows * width);
    unicon_rows *all = support_rows(ctx, "x", data, rows, width);
    const uint64_t before = number_of(ctx, all);
    assert_true(number_of(ctx, all) == before);
    for (int64_t k = 0; k < rows * width; k += 1 + (k * k) % 97) {
      const float value = data[k];
      data[k] = nextafterf(value, 10);
      assert_true(number_of(ctx, all) != before);
      data[k] = value;
    }
    const float first = data[0];
    data[0] = data[width * 140];
    data[width * 140] = first;
    assert_true(number_of(ctx, all) != before);
    unicon_rows_close(all);
    free(data);
  }
}

static unicon_model *fit(unicon_ctx *ctx, const unicon_rows *x, const unicon_rows *y,
                         const char *bad_rows, unicon_status *status) {
  unicon_options *options = support_options(ctx, "preset", "fast", "bad_rows", bad_rows, NULL);
  unicon_model *model = NULL;
  *status = unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y), NULL, options, &model);
  unicon_options_destroy(options);
  return model;
}

/* One sweep (bad_rows error) and two (drop, which must know the rows before) give one model. */
static void one_sweep_is_as_good_as_two(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  unicon_status status[2];
  problem_make(ctx, 9, N, D, 23, 5, 0.5, &p);
  for (int threads = 1; threads < 4; threads += 2) {
    assert_int_equal(unicon_ctx_set(ctx, "threads", threads == 1 ? "1" : "3"), UNICON_OK);
    unicon_model *one = fit(ctx, p.rows_x, p.rows_y, "error", &status[0]);
    unicon_model *two = fit(ctx, p.rows_x, p.rows_y, "drop", &status[1]);
    assert_true(status[0] == UNICON_OK && status[1] == UNICON_OK);
    assert_string_equal(unicon_model_meta(one, "input_hash"), unicon_model_meta(two, "input_hash"));
    unicon_rows *x = support_rows(ctx, "x", p.x, TESTS, D),
                *y = support_rows(ctx, "y", p.y, TESTS, 23);
    double *a = support_cosines(ctx, one, x, y), *b = support_cosines(ctx, two, x, y);
    assert_memory_equal(a, b, TESTS * TESTS * sizeof *a);
    free(a), free(b);
    unicon_rows_close(x);
    unicon_rows_close(y);
    unicon_model_destroy(one);
    unicon_model_destroy(two);
  }
  problem_free(&p);
}

/* The row is named as ever, x before y, and how many there are. */
static void bad_rows_are_named(void **state) {
  scratch *s = *state;
  problem p;
  unicon_status status;
  problem_make(s->ctx, 9, N, D, 23, 5, 0.5, &p);
  p.y[3 * 23 + 4] = NAN;
  p.y[(N - 1) * 23] = INFINITY;
  assert_null(fit(s->ctx, p.rows_x, p.rows_y, "error", &status));
  scratch_failed(s, status, UNICON_ERR_DATA, "row 3, column 4", "2 of 20011 rows");
  p.x[(N - 1) * D + D - 1] = NAN;
  assert_null(fit(s->ctx, p.rows_x, p.rows_y, "error", &status));
  scratch_failed(s, status, UNICON_ERR_DATA, "row 20010, column 36", "1 of 20011 rows");
  memset(p.x + 200 * D, 0, D * sizeof *p.x);
  assert_null(fit(s->ctx, p.rows_x, p.rows_y, "error", &status));
  scratch_failed(s, status, UNICON_ERR_DATA, "row 200 is all zero", "2 of 20011 rows");
  unicon_model *model = fit(s->ctx, p.rows_x, p.rows_y, "drop", &status);
  assert_int_equal(status, UNICON_OK);
  assert_string_equal(unicon_model_meta(model, "n_x"), "20009");
  unicon_model_destroy(model);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(every_value_counts),
                                     SCRATCH_TEST(one_sweep_is_as_good_as_two),
                                     SCRATCH_TEST(bad_rows_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
