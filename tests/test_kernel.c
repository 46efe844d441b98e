/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: float32 tiles against the float64 value, both against formulas written here anew (the
 * arc-cosine family as the integral that defines it), identities T19, and K >= 0.
 *
 * Tolerances, as shares of sqrt(k(x,x) k(y,y)): a float32 product of unit rows is off by about
 * 2e-7, which a smooth kernel passes on times its slope: 2e-6. Near theta = 0 arccos0 and matern12
 * have a square root there: sqrt(2 * 2e-7) / pi = 2e-4 and sqrt(2 * 2e-7) = 6e-4 (docs/method.md
 * section 4); near theta = pi arccos0 has the same root, the others are flat. */
#include "features/kernel.h"

#include "linalg/blas.h"
#include "support.h"

enum { ROWS = 34, D = 7 };

static const double circle = 3.14159265358979323846;

typedef struct kernel_case {
  const char *name;
  unicon__kernel kernel;
  double smooth, root; /* tolerance at most angles, and next to theta = 0 and pi */
} kernel_case;

static const kernel_case cases[] = {
    {"linear", {UNICON__KERNEL_LINEAR, 1, 1}, 1e-6, 1e-6},
    {"cosine", {UNICON__KERNEL_COSINE, 1, 1}, 1e-6, 1e-6},
    {"angular", {UNICON__KERNEL_ANGULAR, 1, 1}, 2e-6, 2e-6},
    {"arccos0", {UNICON__KERNEL_ARCCOS0, 1, 1}, 2e-6, 2e-4},
    {"arccos1", {UNICON__KERNEL_ARCCOS1, 1, 1}, 2e-6, 2e-6},
    {"arccos2", {UNICON__KERNEL_ARCCOS2, 1, 1}, 2e-6, 2e-6},
    {"expcos", {UNICON__KERNEL_EXPCOS, 0.7, 1}, 2e-6, 2e-6},
    {"rbf", {UNICON__KERNEL_RBF, 0.8, 1}, 2e-6, 2e-6},
    {"matern12", {UNICON__KERNEL_MATERN12, 1.1, 1}, 2e-6, 6e-4},
    {"laplace", {UNICON__KERNEL_LAPLACE, 1, 1}, 2e-6, 6e-4},
    {"matern32", {UNICON__KERNEL_MATERN32, 0.9, 1}, 2e-6, 2e-6},
    {"matern52", {UNICON__KERNEL_MATERN52, 1.3, 1}, 2e-6, 2e-6},
    {"poly1", {UNICON__KERNEL_POLY, 1, 1}, 1e-6, 1e-6},
    {"poly3", {UNICON__KERNEL_POLY, 1, 3}, 2e-6, 2e-6},
    {"poly16", {UNICON__KERNEL_POLY, 1, 16}, 5e-6, 5e-6},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- the formulas again ------------------------------------------------------------------- */

/* 2 E[(w.x)^n (w.y)^n; w.x > 0, w.y > 0] for normal w and unit x, y at an angle theta (Cho & Saul
 * 2009, eq. 1): in the plane of x and y, over the angle of w by Simpson's rule; the radius gives
 * 2^n n!. */
static double arccos_integral(int order, double theta) {
  enum { STEPS = 4000 };
  const double from = theta - circle / 2, h = (circle - theta) / STEPS;
  double sum = 0;
  for (int k = 0; k <= STEPS; k++) {
    const double phi = from + h * k, weight = k == 0 || k == STEPS ? 1 : k % 2 ? 4 : 2;
    sum += weight * pow(cos(phi) * cos(phi - theta), order);
  }
  static const double radius[3] = {1, 2, 8};
  return radius[order] * sum * h / 3 / circle;
}

/* k(x, y) from the vectors. */
static double expected(const unicon__kernel *kernel, const double *x, const double *y, int d) {
  double dot = 0, xx = 0, yy = 0, gap = 0;
  for (int k = 0; k < d; k++) {
    dot += x[k] * y[k];
    xx += x[k] * x[k];
    yy += y[k] * y[k];
    gap += (x[k] - y[k]) * (x[k] - y[k]);
  }
  const double lengths = sqrt(xx) * sqrt(yy), c = dot / lengths, l = kernel->width;
  double cross = 0; /* |x|^2 y - (x.y) x has length |x|^2 |y| sin theta: exact near 0 and pi */
  for (int k = 0; k < d; k++) cross += pow(xx * y[k] - dot * x[k], 2);
  const double theta = atan2(sqrt(cross) / xx, dot / sqrt(xx)), far = sqrt(gap);
  switch (kernel->kind) {
    case UNICON__KERNEL_LINEAR:
      return dot;
    case UNICON__KERNEL_COSINE:
      return c;
    case UNICON__KERNEL_ARCCOS0:
      return arccos_integral(0, theta);
    case UNICON__KERNEL_ANGULAR:
    case UNICON__KERNEL_ARCCOS1:
      return lengths * arccos_integral(1, theta);
    case UNICON__KERNEL_ARCCOS2:
      return lengths * lengths * arccos_integral(2, theta) / 3;
    case UNICON__KERNEL_EXPCOS:
      return exp(c / (l * l));
    case UNICON__KERNEL_RBF:
      return exp(-gap / (2 * l * l));
    case UNICON__KERNEL_MATERN12:
    case UNICON__KERNEL_LAPLACE:
      return exp(-far / l);
    case UNICON__KERNEL_MATERN32:
      return (1 + sqrt(3) * far / l) * exp(-sqrt(3) * far / l);
    case UNICON__KERNEL_MATERN52:
      return (1 + sqrt(5) * far / l + 5 * gap / (3 * l * l)) * exp(-sqrt(5) * far / l);
    case UNICON__KERNEL_POLY: {
      double value = 1;
      for (int k = 0; k < kernel->degree; k++) value *= 0.5 + dot / 2;
      return value;
    }
  }
  return NAN;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Random directions; then row 1 is row 0, row 2 its opposite, and rows 3.. turn away from 0 by
 * 1e-1, 1e-2, ... and from its opposite by as much. Lengths 1, or from 0.25 to 2.5. */
static void make_rows(uint64_t seed, bool unit, double *rows) {
  uint64_t state = seed;
  for (int k = 0; k < ROWS * D; k++) rows[k] = support_normal(&state);
  for (int i = 0; i < ROWS; i++) {
    double *row = rows + i * D, length = 0;
    const double angle = i < 3 || i >= 15 ? 0 : pow(10, -(i - 1) / 2);
    const double sign = i == 2 || i % 2 == 1 ? -1 : 1;
    for (int k = 0; i > 0 && i < 15 && k < D; k++)
      row[k] = (i < 3 ? (i == 2 ? -1 : 1) : sign) * rows[k] + angle * row[k];
    for (int k = 0; k < D; k++) length += row[k] * row[k];
    const double wanted = unit ? 1 : 0.25 + 0.25 * (i % 10);
    for (int k = 0; k < D; k++) row[k] = (double)(float)(row[k] * wanted / sqrt(length));
  }
}

/* The tile of all rows with all rows, as the library makes it: float32 products. */
static void make_tile(const unicon__kernel *kernel, const double *rows, float *tile, int ld) {
  float narrow[ROWS * D], square[ROWS];
  for (int k = 0; k < ROWS * D; k++) narrow[k] = (float)rows[k];
  unicon__sgemm(false, true, ROWS, ROWS, D, 1, narrow, D, narrow, D, 0, tile, ld);
  for (int i = 0; i < ROWS; i++) {
    double sum = 0;
    for (int k = 0; k < D; k++) sum += rows[i * D + k] * rows[i * D + k];
    square[i] = (float)sum;
  }
  unicon__kernel_tile(kernel, tile, ROWS, ROWS, ld, square, square);
}

static double plain_dot(const double *x, const double *y) {
  double sum = 0;
  for (int k = 0; k < D; k++) sum += x[k] * y[k];
  return sum;
}

/* ---- values ------------------------------------------------------------------------------- */

/* The float64 value is the formula; next to theta = 0 only sqrt(1e-16) of it is left for roots. */
static void values_are_the_formulas(void **state) {
  (void)state;
  double rows[ROWS * D];
  for (int c = 0; c < CASES; c++)
    for (int unit = 0; unit < 2; unit++) {
      make_rows(11 + (uint64_t)c, unit, rows);
      for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
          const double *x = rows + i * D, *y = rows + j * D;
          const double xx = plain_dot(x, x), yy = plain_dot(y, y);
          const double found = unicon__kernel_value(&cases[c].kernel, plain_dot(x, y), xx, yy);
          const double wanted = expected(&cases[c].kernel, x, y, D);
          const double scale =
              sqrt(expected(&cases[c].kernel, x, x, D)) * sqrt(expected(&cases[c].kernel, y, y, D));
          const bool root = cases[c].root > cases[c].smooth;
          if (fabs(found - wanted) > (root ? 1e-7 : 1e-10) * scale)
            print_error("%s, rows %d and %d\n", cases[c].name, i, j);
          CHECK_CLOSE(found, wanted, (root ? 1e-7 : 1e-10) * scale);
        }
    }
}

/* Float32 tiles: near coincident or opposite rows at the stated tolerance, elsewhere at 2e-6. Rows
 * of different lengths cost the kernels of distances |x|^2 + |y|^2 times more. */
static void tiles_are_the_values(void **state) {
  (void)state;
  enum { LD = ROWS + 3 };
  static double rows[ROWS * D];
  static float tile[ROWS * LD];
  for (int c = 0; c < CASES; c++)
    for (int unit = 0; unit < 2; unit++) {
      const unicon__kernel *kernel = &cases[c].kernel;
      make_rows(31 + (uint64_t)c, unit, rows);
      for (int k = 0; k < ROWS * LD; k++) tile[k] = 77;
      make_tile(kernel, rows, tile, LD);
      for (int i = 0; i < ROWS; i++) {
        for (int j = ROWS; j < LD - 1; j++) assert_true(tile[i * LD + j] == 77); /* untouched */
        for (int j = 0; j < ROWS; j++) {
          const double *x = rows + i * D, *y = rows + j * D;
          const double xx = plain_dot(x, x), yy = plain_dot(y, y), dot = plain_dot(x, y);
          const double value = unicon__kernel_value(kernel, dot, xx, yy);
          const double scale = sqrt(unicon__kernel_value(kernel, xx, xx, xx)) *
                               sqrt(unicon__kernel_value(kernel, yy, yy, yy));
          const bool near = fabs(dot) > 0.99 * sqrt(xx * yy);
          double tolerance = (near ? cases[c].root : cases[c].smooth) * scale;
          if (!unit && unicon__kernel_has_width(kernel->kind)) tolerance *= 1 + (xx + yy) / 2;
          if (fabs((double)tile[i * LD + j] - value) > tolerance)
            print_error("%s, rows %d and %d, %s\n", cases[c].name, i, j, unit ? "unit" : "long");
          CHECK_CLOSE(tile[i * LD + j], value, tolerance);
        }
      }
    }
}

/* k(x, x) on the sphere: 1, but e^(1/l^2) for expcos. */
static void own_values(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    const unicon__kernel *kernel = &cases[c].kernel;
    const double l = kernel->width;
    CHECK_CLOSE(unicon__kernel_value(kernel, 1, 1, 1),
                kernel->kind == UNICON__KERNEL_EXPCOS ? exp(1 / (l * l)) : 1, 1e-15);
  }
}

/* Rows of zeros (normalize off) and products beyond |x||y| by rounding stay finite. */
static void odd_products_stay_finite(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    float tile[6] = {0, 0, 1.0000002f, -1.0000002f, 0, 0};
    const float x[3] = {0, 1, 0}, y[2] = {1, 1};
    unicon__kernel_tile(&cases[c].kernel, tile, 3, 2, 2, x, y);
    for (int k = 0; k < 6; k++) assert_true(isfinite(tile[k]));
    CHECK_CLOSE(tile[0], unicon__kernel_value(&cases[c].kernel, 0, 0, 1), 1e-6);
    const double own = unicon__kernel_value(&cases[c].kernel, 1, 1, 1);
    CHECK_CLOSE(tile[2], own, 1e-5 * own);
    assert_true(isfinite(unicon__kernel_value(&cases[c].kernel, 1.0000002, 1, 1)));
    assert_true(isfinite(unicon__kernel_value(&cases[c].kernel, -1.0000002, 1, 1)));
  }
}

/* A squared distance that is no float32 is a large one: k is 0, and never that of a row with
 * itself. */
static void distances_beyond_float_are_large(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    if (!unicon__kernel_of_distance(cases[c].kernel.kind)) continue;
    float tile[4] = {INFINITY, -INFINITY, 1e38f, 0};
    const float x[2] = {INFINITY, 3e38f}, y[2] = {INFINITY, 3e38f};
    unicon__kernel narrow = cases[c].kernel;
    narrow.width = 1e-6;
    unicon__kernel_tile(&narrow, tile, 2, 2, 2, x, y);
    for (int k = 0; k < 4; k++) assert_true(tile[k] == 0);
  }
}

/* ---- identities --------------------------------------------------------------------------- */

/* T19, on unit rows. */
static void kernels_that_are_others(void **state) {
  (void)state;
  for (double c = -1; c <= 1; c += 0x1p-6)
    for (double l = 0.25; l < 4; l *= 1.5) {
      const unicon__kernel expcos = {UNICON__KERNEL_EXPCOS, l, 1}, rbf = {UNICON__KERNEL_RBF, l, 1};
      const double value = unicon__kernel_value(&expcos, c, 1, 1);
      CHECK_CLOSE(value / exp(1 / (l * l)), unicon__kernel_value(&rbf, c, 1, 1), 1e-12);
      const unicon__kernel laplace = {UNICON__KERNEL_LAPLACE, l, 1};
      const unicon__kernel matern = {UNICON__KERNEL_MATERN12, l, 1};
      assert_true(unicon__kernel_value(&laplace, c, 1, 1) ==
                  unicon__kernel_value(&matern, c, 1, 1));
      const unicon__kernel cosine = {UNICON__KERNEL_COSINE, l, 1}, linear = {.degree = 1};
      CHECK_CLOSE(unicon__kernel_value(&cosine, c, 1, 1), unicon__kernel_value(&linear, c, 1, 1),
                  1e-12);
      const unicon__kernel angular = {UNICON__KERNEL_ANGULAR, l, 1};
      const unicon__kernel arccos1 = {UNICON__KERNEL_ARCCOS1, l, 1};
      assert_true(unicon__kernel_value(&angular, c, 1, 1) ==
                  unicon__kernel_value(&arccos1, c, 1, 1));
    }
  static double rows[ROWS * D];
  static float a[ROWS * ROWS], b[ROWS * ROWS];
  make_rows(71, true, rows);
  static const unicon__kernel_kind same[2][2] = {{UNICON__KERNEL_LAPLACE, UNICON__KERNEL_MATERN12},
                                                 {UNICON__KERNEL_ANGULAR, UNICON__KERNEL_ARCCOS1}};
  for (int k = 0; k < 2; k++) {
    make_tile(&(unicon__kernel){same[k][0], 0.7, 1}, rows, a, ROWS);
    make_tile(&(unicon__kernel){same[k][1], 0.7, 1}, rows, b, ROWS);
    assert_memory_equal(a, b, sizeof a);
  }
}

static void widths_belong_to_some(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    unicon__kernel wide = cases[c].kernel;
    wide.width *= 3;
    const bool changes =
        unicon__kernel_value(&cases[c].kernel, 0.3, 1, 1) != unicon__kernel_value(&wide, 0.3, 1, 1);
    assert_int_equal(unicon__kernel_has_width(cases[c].kernel.kind), changes);
  }
}

/* K >= 0 for rows in general position, unit and not: exact to 1e-13 of the largest eigenvalue in
 * float64; float32 tiles may add their own error times the number of rows. */
static void kernels_are_positive(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static double rows[ROWS * D], k[ROWS * ROWS], values[ROWS];
  static float tile[ROWS * ROWS];
  for (int c = 0; c < CASES; c++)
    for (int variant = 0; variant < 4; variant++) {
      const bool unit = variant & 1, narrow = variant & 2;
      int info;
      make_rows(91 + (uint64_t)c, unit, rows);
      make_tile(&cases[c].kernel, rows, tile, ROWS);
      for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
          const double *x = rows + i * D, *y = rows + j * D;
          k[i * ROWS + j] = narrow ? (double)tile[i * ROWS + j]
                                   : unicon__kernel_value(&cases[c].kernel, plain_dot(x, y),
                                                          plain_dot(x, x), plain_dot(y, y));
          if (j < i)
            CHECK_CLOSE(k[i * ROWS + j], k[j * ROWS + i], 1e-5 * fabs(k[j * ROWS + i]) + 1e-6);
        }
      unicon__block *frame = unicon__frame_open(ctx);
      CHECK_OK(ctx, unicon__dsyevd(ctx, ROWS, k, values, &info));
      unicon__frame_close(ctx, frame);
      assert_int_equal(info, 0);
      const double floor = narrow ? cases[c].root * (unit ? 4 : 16) : 2e-15 * ROWS;
      if (values[0] < -floor * values[ROWS - 1])
        print_error("%s: eigenvalues from %g to %g\n", cases[c].name, values[0], values[ROWS - 1]);
      assert_true(values[0] >= -floor * values[ROWS - 1]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_the_formulas),
      cmocka_unit_test(tiles_are_the_values),
      cmocka_unit_test(own_values),
      cmocka_unit_test(odd_products_stay_finite),
      cmocka_unit_test(distances_beyond_float_are_large),
      cmocka_unit_test(kernels_that_are_others),
      cmocka_unit_test(widths_belong_to_some),
      SCRATCH_TEST(kernels_are_positive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
