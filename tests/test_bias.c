/* SPDX-License-Identifier: Apache-2.0 */
/* The bias of a candidate: its definition, and the identities of docs/method.md section 8.
 *
 * Tolerances: a product of unit vectors of R entries in float32 is off by about R 6e-8, and the
 * log-mean-exp of such products by no more. */
#include "score/balance.h"
#include "support.h"

enum { N = 300, M = 40, R = 8 };

static int descending(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left < right) - (left > right);
}

/* The definition, in double. */
static double naive_bias(unicon__balancing how, const float *bank, int64_t m, const float *v) {
  double *s = support_doubles(m), sum = 0;
  for (int64_t k = 0; k < m; k++) s[k] = support_dot(bank + k * R, v, R);
  qsort(s, (size_t)m, sizeof *s, descending);
  const int64_t near =
      how.kind == UNICON__BALANCE_CSLS && how.strength < (double)m ? (int64_t)how.strength : m;
  for (int64_t k = 0; k < near; k++)
    sum += how.kind == UNICON__BALANCE_CSLS ? s[k] / (double)near / 2
                                            : exp(how.strength * (s[k] - s[0])) / (double)m;
  const double top = s[0];
  free(s);
  return how.kind == UNICON__BALANCE_CSLS ? sum : top + log(sum) / how.strength;
}

/* Biases of n candidates of y from a bank of x. */
static float *biases(unicon_ctx *ctx, unicon__balancing how, const float *bank, int64_t m,
                     const float *v, int64_t n) {
  float *out = support_floats(n);
  const unicon_balance balance = {.how = how, .r = R, .bank = {{m, bank}, {0, NULL}}};
  CHECK_OK(ctx, unicon__bias(ctx, &balance, UNICON_Y, v, n, R, out, 1));
  return out;
}

static void biases_are_their_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t banks[] = {1, 16, 1024, 1500, 2600}; /* tiles of 1024 rows and their ends */
  static const unicon__balancing hows[] = {
      {UNICON__BALANCE_SOFTMAX, 0.5}, {UNICON__BALANCE_SOFTMAX, 10}, {UNICON__BALANCE_SOFTMAX, 500},
      {UNICON__BALANCE_CSLS, 1},      {UNICON__BALANCE_CSLS, 10},    {UNICON__BALANCE_CSLS, 1000}};
  float *v = support_unit_rows(1, N, R);
  for (size_t b = 0; b < sizeof banks / sizeof *banks; b++) {
    float *bank = support_unit_rows(2 + b, banks[b], R);
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
      float *got = biases(ctx, hows[h], bank, banks[b], v, N);
      for (int64_t i = 0; i < N; i++)
        CHECK_CLOSE(got[i], naive_bias(hows[h], bank, banks[b], v + i * R), 2e-6);
      free(got);
    }
    free(bank);
  }
  free(v);
}

/* beta to 0: the mean; beta to infinity: the maximum; every row twice: the same; all products
 * higher by c: higher by c. */
static void identities_of_the_softmax(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *v = support_unit_rows(1, N, R), *bank = support_unit_rows(2, M, R);
  float *twice = support_floats(2 * M * R);
  for (int64_t k = 0; k < 2 * M * R; k++) twice[k] = bank[k % (M * R)];
  const unicon__balancing weak = {UNICON__BALANCE_SOFTMAX, 0.01};
  const unicon__balancing strong = {UNICON__BALANCE_SOFTMAX, 1000};
  const unicon__balancing usual = {UNICON__BALANCE_SOFTMAX, 10};
  float *low = biases(ctx, weak, bank, M, v, N), *high = biases(ctx, strong, bank, M, v, N);
  float *once = biases(ctx, usual, bank, M, v, N), *both = biases(ctx, usual, twice, 2 * M, v, N);
  for (int64_t i = 0; i < N; i++) {
    double mean = 0, top = -2;
    for (int64_t k = 0; k < M; k++) {
      const double s = support_dot(bank + k * R, v + i * R, R);
      mean += s / M;
      top = s > top ? s : top;
    }
    CHECK_CLOSE(low[i], mean, 0.01 * 0.5); /* beta/2 times the variance, at most 1 */
    CHECK_CLOSE(high[i], top, log(M) / 1000 + 2e-6);
    CHECK_CLOSE(once[i], both[i], 1e-6);
    assert_true(low[i] <= once[i] + 1e-6f && once[i] <= high[i] + 1e-6f);
  }
  free(both);
  free(once);
  free(high);
  free(low);
  /* a bank with a constant column is the bank, and c times the candidate's last entry more */
  for (int64_t k = 0; k < M; k++) bank[k * R + R - 1] = 0;
  float *without = biases(ctx, usual, bank, M, v, N);
  for (int64_t k = 0; k < M; k++) bank[k * R + R - 1] = 0.5f;
  float *with = biases(ctx, usual, bank, M, v, N);
  for (int64_t i = 0; i < N; i++)
    CHECK_CLOSE(with[i] - without[i], 0.5 * (double)v[i * R + R - 1], 1e-6);
  free(with);
  free(without);
  free(twice);
  free(bank);
  free(v);
}

/* On biases that are a quadratic form the fit finds it; |b| <= 1 holds whatever the form says. */
static void quadratic_form_is_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *v = support_unit_rows(1, 5000, R), *bank = support_unit_rows(2, 1000, R);
  for (int k = 0; k < 1000; k++) bank[k * R] += 1; /* a bank with a direction of its own */
  const unicon_balance softmax = {
      .how = {UNICON__BALANCE_SOFTMAX, 4}, .r = R, .bank = {{1000, bank}, {0, NULL}}};
  float curve[2 * R + 1], *exact = support_floats(5000), *near = support_floats(5000);
  CHECK_OK(ctx, unicon__bias(ctx, &softmax, UNICON_Y, v, 5000, R, exact, 1));
  CHECK_OK(ctx, unicon__curve_fit(ctx, &softmax, UNICON_Y, v, 5000, curve));
  unicon_balance form = {.how = {UNICON__BALANCE_QUADRATIC, 4}, .r = R, .curve = {NULL, curve}};
  CHECK_OK(ctx, unicon__bias(ctx, &form, UNICON_Y, v, 5000, R, near, 1));
  double mean = 0, spread = 0, left = 0;
  for (int k = 0; k < 5000; k++) mean += (double)exact[k] / 5000;
  for (int k = 0; k < 5000; k++) {
    spread += ((double)exact[k] - mean) * ((double)exact[k] - mean);
    left += ((double)exact[k] - (double)near[k]) * ((double)exact[k] - (double)near[k]);
  }
  assert_true(left < 0.05 * spread);
  curve[0] = 50;
  CHECK_OK(ctx, unicon__bias(ctx, &form, UNICON_Y, v, 5000, R, near, 1));
  for (int k = 0; k < 5000; k++) assert_true(near[k] <= 1);
  free(near);
  free(exact);
  free(bank);
  free(v);
}

/* A draw is of rows that have a pair, does not depend on the rows behind, and grows by rows. */
static void banks_are_drawn_among_pairs(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  int64_t x[N], y[N], *few = NULL, *many = NULL, *again = NULL, counts[3];
  for (int64_t k = 0; k < N; k++) x[k] = y[k] = 2 * k;
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_list(ctx, 2 * N, 2 * N, x, y, NULL, N, &pairs));
  const unicon__bank_rows of_x = {pairs, 0, 2 * N, NULL}, of_y = {pairs, 1, 2 * N, NULL};
  CHECK_OK(ctx, unicon__bank_draw(ctx, &of_x, 20, 7, &few, &counts[0]));
  CHECK_OK(ctx, unicon__bank_draw(ctx, &of_x, 50, 7, &many, &counts[1]));
  CHECK_OK(ctx, unicon__bank_draw(ctx, &of_y, 50, 7, &again, &counts[2]));
  assert_int_equal(counts[0], 20);
  assert_int_equal(counts[1], 50);
  int64_t common = 0, other = 0;
  for (int64_t a = 0; a < 50; a++) {
    assert_int_equal(many[a] % 2, 0);
    if (a > 0) assert_true(many[a] > many[a - 1]);
    for (int64_t b = 0; b < 20; b++) common += many[a] == few[b];
    for (int64_t b = 0; b < 50; b++) other += many[a] == again[b];
  }
  assert_int_equal(common, 20);
  assert_true(other < 40); /* the sides have draws of their own */
  CHECK_OK(ctx, unicon__bank_draw(ctx, &of_x, 4096, 7, &few, &counts[0]));
  assert_int_equal(counts[0], N);
  unsigned char barred[2 * N] = {0};
  for (int64_t k = 0; k < N; k++) barred[k] = 1;
  const unicon__bank_rows left = {pairs, 0, 2 * N, barred};
  CHECK_OK(ctx, unicon__bank_draw(ctx, &left, 4096, 7, &few, &counts[0]));
  assert_int_equal(counts[0], N / 2);
  for (int64_t k = 0; k < N / 2; k++) assert_true(few[k] >= N);
  unicon__frame_close(ctx, NULL);
  unicon_pairs_destroy(pairs);
}

/* With all rows of x as the bank and beta = 1/tau, e^{-beta b_j} is m over the sum of column j of
 * e^{s/tau}: half a step of Sinkhorn's iteration, after which every column of e^{s'/tau} sums to m.
 * A term is off by beta 5e-7 of itself. */
static void all_rows_as_a_bank_make_column_sums_equal(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const double beta = 1 / 0.07;
  float *u = support_unit_rows(1, N, R), *v = support_unit_rows(2, M, R);
  float *b = biases(ctx, (unicon__balancing){UNICON__BALANCE_SOFTMAX, beta}, u, N, v, M);
  for (int64_t j = 0; j < M; j++) {
    double sum = 0;
    for (int64_t i = 0; i < N; i++)
      sum += exp(beta * (support_dot(u + i * R, v + j * R, R) - (double)b[j]));
    CHECK_CLOSE(sum / N, 1, beta * 2e-6);
  }
  free(b);
  free(v);
  free(u);
}

/* Var b = Var(e^{beta s}) / (beta^2 m E(e^{beta s})^2) over banks of m rows, to first order in 1/m.
 * The spread of 400 banks gives the variance to 7 %, so 21 % is three deviations; the second order
 * is of size Var / E^2 m = .004. */
static void sampling_error_of_a_bank(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { BANKS = 400, ROWS = 500 };
  const unicon__balancing how = {UNICON__BALANCE_SOFTMAX, 3};
  float *u = support_unit_rows(1, BANKS * ROWS, R), *v = support_unit_rows(2, 1, R);
  double mean = 0, square = 0, b_mean = 0, b_square = 0;
  for (int64_t i = 0; i < BANKS * ROWS; i++) {
    const double e = exp(how.strength * support_dot(u + i * R, v, R));
    mean += e / (BANKS * ROWS);
    square += e * e / (BANKS * ROWS);
  }
  for (int64_t k = 0; k < BANKS; k++) {
    float *b = biases(ctx, how, u + k * ROWS * R, ROWS, v, 1);
    b_mean += (double)b[0] / BANKS;
    b_square += (double)b[0] * (double)b[0] / BANKS;
    free(b);
  }
  const double predicted =
      (square / (mean * mean) - 1) / (how.strength * how.strength * (double)ROWS);
  CHECK_CLOSE((b_square - b_mean * b_mean) / predicted, 1, 0.21);
  free(v);
  free(u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(biases_are_their_definition),
      SCRATCH_TEST(identities_of_the_softmax),
      SCRATCH_TEST(quadratic_form_is_found),
      SCRATCH_TEST(banks_are_drawn_among_pairs),
      SCRATCH_TEST(all_rows_as_a_bank_make_column_sums_equal),
      SCRATCH_TEST(sampling_error_of_a_bank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
