/* SPDX-License-Identifier: Apache-2.0 */
/* A NaN is seen: in every instruction set, at every place of every length around the lane counts,
 * it comes out of the vector loops in its own entry and in the sums it is part of, and nowhere
 * else. The guards of the losses rely on that. */
#include "linalg/vec.h"
#include "support.h"

enum { LONGEST = 37 };

typedef float lanes[LONGEST];

/* Ordinary values with a NaN at `at`, of either sign. */
static void fill(float *x, int64_t n, int64_t at) {
  for (int64_t k = 0; k < n; k++) x[k] = 0.1f * (float)(k % 7) - 0.2f;
  x[at] = at % 2 ? -NAN : NAN;
}

static void only_at(const float *x, int64_t n, int64_t at) {
  for (int64_t k = 0; k < n; k++) assert_int_equal(isnan(x[k]) != 0, k == at);
}

static void check_sums(const unicon__vec *vec, int64_t n, int64_t at) {
  lanes x, y = {0};
  fill(x, n, at);
  assert_true(isnan(vec->sum_squares(x, n)));
  assert_true(isnan(vec->dot(x, y, n)));
  assert_true(isnan(vec->max(x, n)));
  vec->add_scaled(y, x, n, 0.5f);
  only_at(y, n, at);
  vec->scale_shift(x, n, 2, NULL);
  only_at(x, n, at);
}

static void check_exponentials(const unicon__vec *vec, int64_t n, int64_t at) {
  lanes x, column = {0}, top, sum = {0};
  fill(x, n, at);
  vec->exp(x, n);
  only_at(x, n, at);
  fill(x, n, at);
  assert_true(isnan(vec->exp_sums(x, n, 2, column)));
  only_at(column, n, at);
  for (int64_t k = 0; k < n; k++) top[k] = k % 3 ? 0.3f : -INFINITY; /* none seen yet */
  assert_true(isnan(vec->exp_sums_shifted(x, n, 2, 0.4f, top, sum)));
  only_at(top, n, at);
  only_at(sum, n, at);
  fill(x, n, (at + 1) % n); /* once seen, it stays */
  x[(at + 1) % n] = n > 1 ? 0.2f : NAN;
  (void)vec->exp_sums_shifted(x, n, 2, 0.4f, top, sum);
  only_at(sum, n, at);
}

static void check_weights(const unicon__vec *vec, int64_t n, int64_t at) {
  lanes x, column = {0};
  fill(x, n, at);
  vec->exp_weights(x, n, 2, 0.5f, column);
  only_at(x, n, at);
  fill(x, n, at);
  vec->exp_weights_shifted(x, n, 2, 0.5f, column);
  only_at(x, n, at);
  fill(x, n, at);
  assert_true(isnan(vec->sigmoid_weights(x, n, 10, -3, 0.5f)));
  only_at(x, n, at);
}

static void check_kernels(const unicon__vec *vec, int64_t n, int64_t at) {
  for (int order = 0; order < 3; order++) {
    lanes x;
    fill(x, n, at);
    vec->arccos(x, n, order);
    only_at(x, n, at);
    fill(x, n, at);
    for (int64_t k = 0; k < n; k++) x[k] = x[k] * x[k];
    vec->matern(x, n, order);
    only_at(x, n, at);
  }
}

typedef void (*check_fn)(const unicon__vec *vec, int64_t n, int64_t at);

static void for_all(check_fn check) {
  for (int set = 0; set < UNICON__VEC_SETS; set++)
    for (int64_t n = 1; n <= LONGEST && unicon__vec_set(set); n++)
      for (int64_t at = 0; at < n; at++) check(unicon__vec_set(set), n, at);
}

static void sums_show_it(void **state) {
  (void)state;
  for_all(check_sums);
}

static void exponentials_show_it(void **state) {
  (void)state;
  for_all(check_exponentials);
}

static void weights_show_it(void **state) {
  (void)state;
  for_all(check_weights);
}

static void kernels_show_it(void **state) {
  (void)state;
  for_all(check_kernels);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_show_it),
      cmocka_unit_test(exponentials_show_it),
      cmocka_unit_test(weights_show_it),
      cmocka_unit_test(kernels_show_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
