/* SPDX-License-Identifier: Apache-2.0 */
#include "features/kernel.h"

#include <math.h>

#include "linalg/vec.h"

static const double pi = 3.14159265358979323846;

unicon__kernel_kind unicon__kernel_plain(unicon__kernel_kind kind) {
  return kind == UNICON__KERNEL_ANGULAR   ? UNICON__KERNEL_ARCCOS1
         : kind == UNICON__KERNEL_LAPLACE ? UNICON__KERNEL_MATERN12
                                          : kind;
}

bool unicon__kernel_is_relu(unicon__kernel_kind kind) {
  return kind >= UNICON__KERNEL_ARCCOS0 && kind <= UNICON__KERNEL_ARCCOS2;
}

bool unicon__kernel_of_distance(unicon__kernel_kind kind) {
  return kind == UNICON__KERNEL_RBF ||
         (kind >= UNICON__KERNEL_MATERN12 && kind <= UNICON__KERNEL_MATERN52);
}

bool unicon__kernel_is_fourier(unicon__kernel_kind kind) {
  return unicon__kernel_of_distance(kind);
}

bool unicon__kernel_has_width(unicon__kernel_kind kind) {
  return kind == UNICON__KERNEL_EXPCOS || unicon__kernel_of_distance(kind);
}

double unicon__kernel_error(unicon__kernel_kind kind) {
  const unicon__kernel_kind plain = unicon__kernel_plain(kind);
  return plain == UNICON__KERNEL_ARCCOS0 ? 2e-4 : plain == UNICON__KERNEL_MATERN12 ? 6e-4 : 2e-6;
}

/* The arc-cosine kernel of order n on the sphere. */
static double arccos(int order, double c) {
  const double theta = acos(c), rest = pi - theta, sine = sqrt((1 - c) * (1 + c));
  if (order == 0) return rest / pi;
  if (order == 1) return (sine + rest * c) / pi;
  return (3 * sine * c + rest * (1 + 2 * c * c)) / (3 * pi);
}

/* The Matern kernels at a = sqrt(2 nu) d / l. */
static double matern(unicon__kernel_kind kind, double a) {
  if (kind == UNICON__KERNEL_MATERN32) return (1 + a) * exp(-a);
  if (kind == UNICON__KERNEL_MATERN52) return (1 + a + a * a / 3) * exp(-a);
  return exp(-a);
}

/* sqrt(2 nu) */
static double matern_factor(unicon__kernel_kind kind) {
  return kind == UNICON__KERNEL_MATERN32   ? sqrt(3.0)
         : kind == UNICON__KERNEL_MATERN52 ? sqrt(5.0)
                                           : 1;
}

double unicon__kernel_value(const unicon__kernel *kernel, double product, double square_x,
                            double square_y) {
  const double lengths = sqrt(square_x * square_y), l = kernel->width;
  const double ratio = lengths > 0 ? product / lengths : 0;
  const double c = ratio > 1 ? 1 : ratio < -1 ? -1 : ratio;
  const double gap = square_x + square_y - 2 * product, square = gap > 0 ? gap : 0;
  switch (kernel->kind) {
    case UNICON__KERNEL_LINEAR:
      return product;
    case UNICON__KERNEL_COSINE:
      return c;
    case UNICON__KERNEL_ARCCOS0:
      return arccos(0, c);
    case UNICON__KERNEL_ANGULAR:
    case UNICON__KERNEL_ARCCOS1:
      return lengths * arccos(1, c);
    case UNICON__KERNEL_ARCCOS2:
      return lengths * lengths * arccos(2, c);
    case UNICON__KERNEL_EXPCOS:
      return exp(c / (l * l));
    case UNICON__KERNEL_RBF:
      return exp(-square / (2 * l * l));
    case UNICON__KERNEL_POLY:
      return pow((1 + product) / 2, kernel->degree);
    case UNICON__KERNEL_MATERN12:
    case UNICON__KERNEL_LAPLACE:
    case UNICON__KERNEL_MATERN32:
    case UNICON__KERNEL_MATERN52:
      return matern(kernel->kind, matern_factor(kernel->kind) * sqrt(square) / l);
  }
  return 0;
}

/* Cosines of a row of products. */
static void to_cosines(float *t, int64_t n, float square_x, const float *square_y) {
  for (int64_t j = 0; j < n; j++) {
    const float lengths = sqrtf(square_x) * sqrtf(square_y[j]); /* no overflow */
    const float c = lengths > 0 ? t[j] / lengths : 0;
    t[j] = c > 1 ? 1 : c < -1 ? -1 : c;
  }
}

static void tile_arccos(int order, float *t, int64_t n, float square_x, const float *square_y) {
  to_cosines(t, n, square_x, square_y);
  unicon__vec_best()->arccos(t, n, order);
  for (int64_t j = 0; j < n && order > 0; j++) {
    const float lengths = sqrtf(square_x) * sqrtf(square_y[j]);
    t[j] *= order == 1 ? lengths : lengths * lengths;
  }
}

/* Squared distances times `factor`, at most `far`: every kernel is 0 there, and infinite products
 * (their difference is NaN) are as far. */
static void to_distances(float *t, int64_t n, float square_x, const float *square_y, float factor) {
  const float far = 1e30f;
  for (int64_t j = 0; j < n; j++) {
    const float gap = (square_x + square_y[j] - 2 * t[j]) * factor;
    const float bounded = gap < far ? gap : far;
    t[j] = bounded > 0 ? bounded : 0;
  }
}

static void tile_matern(unicon__kernel_kind kind, float *t, int64_t n, float square_x,
                        const float *square_y, double width) {
  const double factor = matern_factor(kind) / width;
  const int order = kind == UNICON__KERNEL_MATERN32 ? 1 : kind == UNICON__KERNEL_MATERN52 ? 2 : 0;
  to_distances(t, n, square_x, square_y, (float)(factor * factor));
  unicon__vec_best()->matern(t, n, order);
}

static void tile_row(const unicon__kernel *kernel, float *t, int64_t n, float square_x,
                     const float *square_y) {
  const unicon__vec *vec = unicon__vec_best();
  const float inverse = (float)(1 / (kernel->width * kernel->width));
  switch (kernel->kind) {
    case UNICON__KERNEL_LINEAR:
      return;
    case UNICON__KERNEL_COSINE:
      to_cosines(t, n, square_x, square_y);
      return;
    case UNICON__KERNEL_ARCCOS0:
      tile_arccos(0, t, n, square_x, square_y);
      return;
    case UNICON__KERNEL_ANGULAR:
    case UNICON__KERNEL_ARCCOS1:
      tile_arccos(1, t, n, square_x, square_y);
      return;
    case UNICON__KERNEL_ARCCOS2:
      tile_arccos(2, t, n, square_x, square_y);
      return;
    case UNICON__KERNEL_EXPCOS:
      to_cosines(t, n, square_x, square_y);
      vec->scale_shift(t, n, inverse, NULL);
      vec->exp(t, n);
      return;
    case UNICON__KERNEL_RBF:
      to_distances(t, n, square_x, square_y, inverse / 2);
      vec->scale_shift(t, n, -1, NULL);
      vec->exp(t, n);
      return;
    case UNICON__KERNEL_POLY:
      for (int64_t j = 0; j < n; j++) t[j] = powf((1 + t[j]) / 2, (float)kernel->degree);
      return;
    case UNICON__KERNEL_MATERN12:
    case UNICON__KERNEL_LAPLACE:
    case UNICON__KERNEL_MATERN32:
    case UNICON__KERNEL_MATERN52:
      tile_matern(kernel->kind, t, n, square_x, square_y, kernel->width);
      return;
  }
}

void unicon__kernel_tile(const unicon__kernel *kernel, float *t, int64_t rows, int64_t cols,
                         int64_t ld, const float *square_x, const float *square_y) {
  for (int64_t i = 0; i < rows; i++) tile_row(kernel, t + i * ld, cols, square_x[i], square_y);
}
