/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction set of the vector loops against plain double loops, for every length around the
 * lane counts, at odd addresses, with guards behind the end. `u` below is 2^-24, half a unit in the
 * last place of a float near 1. */
#include "linalg/vec.h"
#include "support.h"

enum { LONGEST = 70, GUARD = 16 };

static const double u = 0x1p-24;
static const float guard = -12345.0f;

/* A float at 4 mod 64 bytes, so that no vector access is aligned. */
typedef struct lane_buffer {
  _Alignas(64) float data[1 + LONGEST + GUARD];
} lane_buffer;

static float *fill(lane_buffer *b, uint64_t seed, int64_t n, double low, double high) {
  uint64_t state = seed * 31u + 7;
  for (int64_t k = 0; k < LONGEST + GUARD; k++)
    b->data[1 + k] = k < n ? (float)(low + (high - low) * support_uniform(&state)) : guard;
  return b->data + 1;
}

static void guarded(const float *x, int64_t n) {
  for (int64_t k = n; k < LONGEST + GUARD; k++) assert_true(x[k] == guard);
}

typedef void (*check_fn)(const unicon__vec *vec, int64_t n);

static void for_all(check_fn check) {
  int sets = 0;
  for (int k = 0; k < UNICON__VEC_SETS; k++) {
    const unicon__vec *vec = unicon__vec_set(k);
    if (!vec) continue;
    sets++;
    for (int64_t n = 0; n <= LONGEST; n++) check(vec, n);
  }
  assert_true(sets >= 1);
  assert_non_null(unicon__vec_set(2)); /* plain C is always there */
  assert_null(unicon__vec_set(UNICON__VEC_SETS));
}

/* ---- symmetric matrices ------------------------------------------------------------------- */

/* Two products by the definition; n terms of size 1, and cancellation. */
static void check_symmetric_block(const unicon__vec *vec, int64_t n) {
  enum { LD = LONGEST + 3 };
  static double a[LONGEST * LD];
  double x_rows[LONGEST], x_cols[LONGEST], y_rows[LONGEST + 1], y_cols[LONGEST + 1];
  uint64_t seed = 77;
  for (int k = 0; k < LONGEST * LD; k++) a[k] = support_normal(&seed);
  for (int k = 0; k < LONGEST; k++) {
    x_rows[k] = support_normal(&seed);
    x_cols[k] = support_normal(&seed);
  }
  const int64_t rows = (7 * n) % LONGEST;
  for (int64_t k = 0; k <= LONGEST; k++) y_rows[k] = y_cols[k] = (double)k;
  vec->symmetric_block(a, LD, rows, n, x_rows, x_cols, y_rows, y_cols);
  for (int64_t i = 0; i <= LONGEST; i++) {
    double across = (double)i, down = (double)i;
    for (int64_t k = 0; i < rows && k < n; k++) across += a[i * LD + k] * x_cols[k];
    for (int64_t k = 0; i < n && k < rows; k++) down += a[k * LD + i] * x_rows[k];
    CHECK_CLOSE(y_rows[i], across, 1e-13);
    CHECK_CLOSE(y_cols[i], down, 1e-13);
  }
}

static void symmetric_blocks_match(void **state) {
  (void)state;
  for_all(check_symmetric_block);
}

/* Sums in float64: products of two floats are exact, a sum of four has three roundings. */
static void check_columns(const unicon__vec *vec, int64_t n) {
  enum { LD = LONGEST + 5 };
  static float x[4 * LD];
  const double w[4] = {1, -0.5, 0.25, 3};
  double sum[LONGEST + 1], square[LONGEST + 1], wide[LONGEST + 1];
  uint64_t seed = 5;
  for (int k = 0; k < 4 * LD; k++) x[k] = (float)support_normal(&seed);
  for (int k = 0; k <= LONGEST; k++) sum[k] = square[k] = wide[k] = k;
  vec->add_columns(x, LD, n, w, -2, sum, square);
  vec->add_widened(wide, x, n, -2);
  for (int64_t k = 0; k <= LONGEST; k++) {
    double s = (double)k, q = (double)k;
    for (int i = 0; i < 4 && k < n; i++) {
      const double value = (double)x[i * LD + k];
      s -= 2 * w[i] * value;
      q -= 2 * w[i] * value * value;
    }
    CHECK_CLOSE(sum[k], s, 1e-13);
    CHECK_CLOSE(square[k], q, 1e-12);
    CHECK_CLOSE(wide[k], (double)k - (k < n ? 2 * (double)x[k] : 0), 1e-14 * (double)(k + 1));
  }
  vec->add_columns(x, LD, n, w, 2, sum, NULL);
  for (int64_t k = 0; k <= LONGEST; k++) CHECK_CLOSE(sum[k], (double)k, 1e-13 * (double)(k + 1));
}

static void columns_match(void **state) {
  (void)state;
  for_all(check_columns);
}

/* ---- sums --------------------------------------------------------------------------------- */

static void check_sums(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b;
  const float *x = fill(&a, 1, n, -2, 3), *y = fill(&b, 2, n, -1, 1);
  double squares = 0, dot = 0, size = 0;
  float top = -INFINITY;
  for (int64_t k = 0; k < n; k++) {
    squares += (double)x[k] * (double)x[k];
    dot += (double)x[k] * (double)y[k];
    size += fabs((double)x[k] * (double)y[k]);
    top = x[k] > top ? x[k] : top;
  }
  /* 32 float lanes: n/32 + 6 roundings of positive terms, and one for each square. */
  CHECK_CLOSE(vec->sum_squares(x, n), squares, squares * u * ((double)n / 32 + 8));
  /* Products of floats are exact in double; at most n + 4 roundings of 2^-53. */
  CHECK_CLOSE(vec->dot(x, y, n), dot, size * 0x1p-53 * (double)(n + 4));
  assert_true(vec->max(x, n) == top);
}

static void sums_match(void **state) {
  (void)state;
  for_all(check_sums);
}

static void check_maximum(const unicon__vec *vec, int64_t n) {
  lane_buffer a;
  float *x = fill(&a, 3, n, -5, -4);
  for (int64_t k = 0; k < n; k++) { /* wherever it stands, and below zero */
    const float held = x[k];
    x[k] = -3.5f;
    assert_true(vec->max(x, n) == -3.5f);
    x[k] = held;
  }
  for (int64_t k = 0; k < n; k++) x[k] = -INFINITY;
  assert_true(vec->max(x, n) == -INFINITY);
}

static void maximum_is_found_anywhere(void **state) {
  (void)state;
  for_all(check_maximum);
}

/* ---- in place ----------------------------------------------------------------------------- */

static void check_scaling(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b, c;
  const float *x = fill(&a, 4, n, -2, 2), *shift = fill(&b, 5, n, -1, 1);
  float *out = fill(&c, 4, n, -2, 2);
  vec->scale_shift(out, n, 1.7f, shift);
  for (int64_t k = 0; k < n; k++) { /* two roundings, or one when fused */
    const double product = (double)x[k] * (double)1.7f;
    CHECK_CLOSE(out[k], product - (double)shift[k],
                u * (fabs(product) + fabs(product - (double)shift[k])) * 1.001);
  }
  guarded(out, n);
  out = fill(&c, 4, n, -2, 2);
  vec->scale_shift(out, n, 0.3f, NULL);
  for (int64_t k = 0; k < n; k++) assert_true(out[k] == x[k] * 0.3f);
  guarded(out, n);
  out = fill(&c, 6, n, -3, 3);
  const float *before = fill(&a, 6, n, -3, 3);
  vec->add_scaled(out, shift, n, -0.9f);
  for (int64_t k = 0; k < n; k++) {
    const double product = -(double)0.9f * (double)shift[k];
    CHECK_CLOSE(out[k], (double)before[k] + product,
                u * (fabs(product) + fabs((double)before[k] + product)) * 1.001);
  }
  guarded(out, n);
}

static void scaling_matches(void **state) {
  (void)state;
  for_all(check_scaling);
}

/* y + W^T x: rows + 1 terms, each rounded, of moduli that add up to at most 3 + 3 rows. */
static void check_add_rows(const unicon__vec *vec, int64_t n) {
  enum { ROWS = 21 };
  static float w[ROWS * LONGEST];
  lane_buffer a, b, c;
  uint64_t seed = 5;
  for (int k = 0; k < ROWS * LONGEST; k++) w[k] = (float)(2 * support_uniform(&seed) - 1);
  const float *x = fill(&a, 8, ROWS, -3, 3), *before = fill(&b, 9, n, -3, 3);
  for (int64_t rows = 0; rows <= ROWS; rows += 3) {
    float *out = fill(&c, 9, n, -3, 3);
    vec->add_rows(out, w, rows, n, x);
    for (int64_t k = 0; k < n; k++) {
      double sum = (double)before[k];
      for (int64_t i = 0; i < rows; i++) sum += (double)w[i * n + k] * (double)x[i];
      CHECK_CLOSE(out[k], sum, u * (double)(rows + 1) * (3 + 3 * (double)rows));
    }
    guarded(out, n);
  }
}

static void add_rows_matches(void **state) {
  (void)state;
  for_all(check_add_rows);
}

static void check_exp(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b;
  const float *x = fill(&a, 7, n, -87, 88);
  float *e = fill(&b, 7, n, -87, 88);
  vec->exp(e, n);
  for (int64_t k = 0; k < n; k++) {
    const double exact = exp((double)x[k]);
    CHECK_CLOSE(e[k], exact, 3e-7 * exact);
  }
  guarded(e, n);
}

static void exp_matches_at_every_length(void **state) {
  (void)state;
  for_all(check_exp);
}

/* Relative error below 3e-7: a polynomial remainder of 5e-9, the reduced argument to 2^-25, and
 * five roundings of the last Horner steps. */
static void exp_is_accurate_everywhere(void **state) {
  (void)state;
  enum { STEPS = 70000 };
  static float x[STEPS + 1];
  for (int set = 0; set < UNICON__VEC_SETS; set++) {
    const unicon__vec *vec = unicon__vec_set(set);
    if (!vec) continue;
    for (int k = 0; k <= STEPS; k++) x[k] = (float)(-87 + 175.0 * k / STEPS);
    vec->exp(x, STEPS + 1);
    double worst = 0;
    for (int k = 0; k <= STEPS; k++) {
      const double exact = exp((double)(float)(-87 + 175.0 * k / STEPS));
      const double error = fabs((double)x[k] / exact - 1);
      worst = error > worst ? error : worst;
    }
    assert_true(worst < 3e-7);
    float edge[8] = {-INFINITY, -1e30f, -87.01f, -1e4f, 0, 88.0f, 1000.0f, INFINITY};
    vec->exp(edge, 8);
    for (int k = 0; k < 4; k++) assert_true(edge[k] == 0);
    assert_true(edge[4] == 1);
    for (int k = 6; k < 8; k++) assert_true(edge[k] == INFINITY);
  }
}

/* ---- rows of scores ----------------------------------------------------------------------- */

/* Relative error of e^{a s} in float: that of exp, and the rounding of the product a s. */
static double exp_error(double argument) {
  return 3e-7 + 2 * u * fabs(argument);
}

static double exp_of(float s, double a) {
  return s == -INFINITY ? 0 : exp(a * (double)s);
}

static float *masked_scores(lane_buffer *b, uint64_t seed, int64_t n) {
  float *s = fill(b, seed, n, -1, 1);
  for (int64_t k = (int64_t)(seed % 3); k < n; k += 3) s[k] = -INFINITY;
  return s;
}

static void check_exp_sums(const unicon__vec *vec, int64_t n) {
  static const float inverse[] = {1.0f, 10.0f, 44.0f};
  for (int t = 0; t < 3; t++) {
    lane_buffer a, b, c;
    const float *s = masked_scores(&a, 8, n);
    float *column = fill(&b, 9, n, 0, 2);
    const float *before = fill(&c, 9, n, 0, 2);
    const double scale = (double)inverse[t];
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += exp_of(s[k], scale);
    const double relative = exp_error(scale) + u * ((double)n / 16 + 5);
    CHECK_CLOSE(vec->exp_sums(s, n, inverse[t], column), sum, sum * relative);
    for (int64_t k = 0; k < n; k++) {
      const double exact = (double)before[k] + exp_of(s[k], scale);
      CHECK_CLOSE(column[k], exact, exact * exp_error(scale) + u * exact);
      if (s[k] == -INFINITY) assert_true(column[k] == before[k]);
    }
    guarded(column, n);
  }
}

static void exp_sums_match(void **state) {
  (void)state;
  for_all(check_exp_sums);
}

/* Several rows folded into running columns; column 5 never sees a score. */
static void check_shifted_sums(const unicon__vec *vec, int64_t n) {
  enum { ROWS = 6 };
  lane_buffer a, m, c;
  const float inverse = 100.0f;
  float *top = fill(&m, 1, n, 0, 1), *sum = fill(&c, 1, n, 0, 1);
  float kept[ROWS][LONGEST];
  for (int64_t k = 0; k < n; k++) top[k] = -INFINITY, sum[k] = 0;
  for (int row = 0; row < ROWS; row++) {
    float *s = masked_scores(&a, (uint64_t)(10 + row), n);
    if (n > 5) s[5] = -INFINITY;
    if (row == 3)
      for (int64_t k = 0; k < n; k++) s[k] = -INFINITY; /* a row without negatives */
    const float row_max = row == 3 ? 0.0f : vec->max(s, n);
    double exact = 0;
    for (int64_t k = 0; k < n; k++)
      if (s[k] > -INFINITY) exact += exp(100.0 * ((double)s[k] - (double)row_max));
    memcpy(kept[row], s, (size_t)n * sizeof *s);
    if (row_max == -INFINITY) continue; /* n = 0, or everything masked */
    /* x e^-x <= 1/e: the rounding of large arguments cannot show in a sum that is at least 1. */
    CHECK_CLOSE(vec->exp_sums_shifted(s, n, inverse, row_max, top, sum), exact, 1e-6 * (exact + 1));
  }
  for (int64_t k = 0; k < n; k++) {
    float best = -INFINITY;
    double exact = 0;
    for (int row = 0; row < ROWS; row++) best = kept[row][k] > best ? kept[row][k] : best;
    for (int row = 0; row < ROWS && best > -INFINITY; row++)
      if (kept[row][k] > -INFINITY) exact += exp(100.0 * ((double)kept[row][k] - (double)best));
    assert_true(top[k] == best);
    CHECK_CLOSE(sum[k], exact, ROWS * 1e-6 * exact); /* one rescaling for each row */
  }
  guarded(top, n);
  guarded(sum, n);
}

static void shifted_sums_match(void **state) {
  (void)state;
  for_all(check_shifted_sums);
}

static void check_weights(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b, c;
  const float inverse = 20.0f;
  const float *s = masked_scores(&a, 20, n), *column = fill(&b, 21, n, 0, 2);
  float *out = masked_scores(&c, 20, n);
  vec->exp_weights(out, n, inverse, 0.7f, column);
  for (int64_t k = 0; k < n; k++) {
    const double exact = -exp_of(s[k], 20) * ((double)0.7f + (double)column[k]);
    CHECK_CLOSE(out[k], exact, fabs(exact) * (exp_error(20) + 3 * u));
  }
  guarded(out, n);
}

static void weights_match(void **state) {
  (void)state;
  for_all(check_weights);
}

static void check_shifted_weights(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b, c;
  const float inverse = 100.0f;
  const float *s = masked_scores(&a, 22, n);
  float *column = fill(&b, 23, n, -110, -90);
  for (int64_t k = 1; k < n; k += 7) column[k] = -INFINITY; /* a column without positives */
  float *out = masked_scores(&c, 22, n);
  vec->exp_weights_shifted(out, n, inverse, -95.5f, column);
  for (int64_t k = 0; k < n; k++) {
    const double value = 100.0 * (double)s[k];
    const double row = s[k] == -INFINITY ? 0 : exp(value - 95.5);
    const double col =
        s[k] == -INFINITY || column[k] == -INFINITY ? 0 : exp(value + (double)column[k]);
    /* Two roundings of numbers up to 200; below e^-87 the result is 0. */
    CHECK_CLOSE(out[k], -(row + col), (row + col) * (exp_error(200) + 200 * u) + 4e-38);
    assert_true(out[k] <= 0);
  }
  guarded(out, n);
  float *none = masked_scores(&c, 22, n);
  for (int64_t k = 0; k < n; k++) column[k] = -INFINITY;
  vec->exp_weights_shifted(none, n, inverse, -INFINITY, column);
  for (int64_t k = 0; k < n; k++) assert_true(none[k] == 0);
}

static void shifted_weights_match(void **state) {
  (void)state;
  for_all(check_shifted_weights);
}

/* ---- kernels and sigmoids ----------------------------------------------------------------- */

static void check_sigmoids(const unicon__vec *vec, int64_t n) {
  lane_buffer a, b;
  const float *s = masked_scores(&a, 30, n);
  float *out = masked_scores(&b, 30, n);
  double sum = 0, size = 0;
  const double value = vec->sigmoid_weights(out, n, 12.5f, -3.25f, 0.75f);
  for (int64_t k = 0; k < n; k++) {
    const bool masked = s[k] == -INFINITY;
    const double v = masked ? -INFINITY : 12.5 * (double)s[k] - 3.25;
    const double exact = -0.75 / (1 + exp(-v)), term = masked ? 0 : log1p(exp(v));
    sum += term;
    size += term * (1 + 32 * u * 16); /* v is rounded at the size of its parts */
    CHECK_CLOSE(out[k], exact, fabs(exact) * (exp_error(16) + 8 * u));
  }
  CHECK_CLOSE(value, sum, size * (exp_error(16) + u * ((double)n / 16 + 8)) + 1e-12);
  guarded(out, n);
}

static void sigmoids_match(void **state) {
  (void)state;
  for_all(check_sigmoids);
}

static double exact_arccos(double c, int order) {
  const double theta = acos(c), rest = acos(-1) - theta, pi = acos(-1);
  if (order == 0) return rest / pi;
  if (order == 1) return (sin(theta) + rest * c) / pi;
  return (3 * sin(theta) * c + rest * (1 + 2 * c * c)) / (3 * pi);
}

static double exact_matern(double square, int order) {
  const double a = sqrt(square);
  return exp(-a) * (order == 0 ? 1 : order == 1 ? 1 + a : 1 + a + square / 3);
}

static void check_kernels(const unicon__vec *vec, int64_t n) {
  for (int order = 0; order < 3; order++) {
    lane_buffer a, b;
    float *cosine = fill(&a, 40, n, -1, 1), *out = fill(&b, 40, n, -1, 1);
    if (n > 2) {
      cosine[0] = out[0] = 1;
      cosine[1] = out[1] = -1;
      cosine[2] = out[2] = 0;
    }
    vec->arccos(out, n, order);
    /* The polynomial is good to 2e-8, and about ten roundings of numbers up to pi follow. */
    for (int64_t k = 0; k < n; k++)
      CHECK_CLOSE(out[k], exact_arccos((double)cosine[k], order), 6e-7);
    if (n > 2) assert_true(out[0] == 1.0f || fabsf(out[0] - 1) < 2e-7f);
    guarded(out, n);
    float *square = fill(&a, 41, n, 0, 400);
    out = fill(&b, 41, n, 0, 400);
    if (n > 0) square[0] = out[0] = 0;
    vec->matern(out, n, order);
    for (int64_t k = 0; k < n; k++) {
      const double exact = exact_matern((double)square[k], order);
      CHECK_CLOSE(out[k], exact, exact * (exp_error(20) + 6 * u));
    }
    guarded(out, n);
  }
}

static void kernels_match(void **state) {
  (void)state;
  for_all(check_kernels);
}

/* Each result has a handful of roundings: 8 u of its terms. */
static void check_adam(const unicon__vec *vec, int64_t n) {
  const unicon__adam_rates a = {0.9f, 0.99f, 0.98f, 0.05f, 1.5f, 1e-3f};
  lane_buffer bx, bm, bs, bg;
  float *x = fill(&bx, 4, n, -2, 2), *mean = fill(&bm, 5, n, -1, 1);
  float *square = fill(&bs, 6, n, 0, 1), *g = fill(&bg, 7, n, -3, 3);
  double want[3][LONGEST];
  for (int64_t k = 0; k < n; k++) {
    const double gradient = (double)g[k];
    const double m = (double)a.beta_1 * (double)mean[k] + (1 - (double)a.beta_1) * gradient;
    const double s =
        (double)a.beta_2 * (double)square[k] + (1 - (double)a.beta_2) * gradient * gradient;
    want[0][k] = m;
    want[1][k] = s;
    want[2][k] = (double)a.keep * (double)x[k] -
                 (double)a.length * m / ((double)a.root * sqrt(s) + (double)a.floor);
  }
  vec->adam(x, mean, square, g, n, &a);
  for (int64_t k = 0; k < n; k++) {
    CHECK_CLOSE(mean[k], want[0][k], 8 * u * 2);
    CHECK_CLOSE(square[k], want[1][k], 8 * u * 2);
    CHECK_CLOSE(x[k], want[2][k], 8 * u * 20);
  }
  guarded(x, n);
  guarded(mean, n);
  guarded(square, n);
  guarded(g, n);
}

static void adam_matches(void **state) {
  (void)state;
  for_all(check_adam);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adam_matches),
      cmocka_unit_test(symmetric_blocks_match),
      cmocka_unit_test(columns_match),
      cmocka_unit_test(sums_match),
      cmocka_unit_test(maximum_is_found_anywhere),
      cmocka_unit_test(scaling_matches),
      cmocka_unit_test(add_rows_matches),
      cmocka_unit_test(exp_matches_at_every_length),
      cmocka_unit_test(exp_is_accurate_everywhere),
      cmocka_unit_test(exp_sums_match),
      cmocka_unit_test(shifted_sums_match),
      cmocka_unit_test(weights_match),
      cmocka_unit_test(shifted_weights_match),
      cmocka_unit_test(sigmoids_match),
      cmocka_unit_test(kernels_match),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
