/* SPDX-License-Identifier: Apache-2.0 */
/* Run when the build is configured: are BLAS integers 32 bits wide, and are a product and a
 * factorisation right? */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

extern double ddot_(const int32_t *n, const double *x, const int32_t *incx, const double *y,
                    const int32_t *incy);

/* A library with 64-bit integers reads the second half too, sees a negative length and gives 0. */
static int integers_have_32_bits(void) {
  const int32_t n[2] = {2, -1}, one[2] = {1, 0};
  const double x[2] = {1, 2}, y[2] = {3, 4};
  return fabs(ddot_(n, x, one, y, one) - 11) < 1e-12;
}

static int product_is_right(void) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 2, 1, 0, 3};
  const float expected[4] = {5, 11, 14, 23};
  float c[4] = {0};
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 3, 1.0F, a, 3, b, 2, 0.0F, c, 2);
  for (int i = 0; i < 4; i++)
    if (fabsf(c[i] - expected[i]) > 1e-5F) return 0;
  return 1;
}

static int factor_is_right(void) {
  double a[4] = {4, 2, 2, 5};
  if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', 2, a, 2) != 0) return 0;
  return fabs(a[0] - 2) < 1e-12 && fabs(a[2] - 1) < 1e-12 && fabs(a[3] - 2) < 1e-12;
}

int main(void) {
  if (sizeof(lapack_int) != 4 || !integers_have_32_bits()) {
    puts("BLAS or LAPACKE uses 64-bit integers; unicon needs the 32-bit (LP64) interface");
    return 1;
  }
  if (!product_is_right()) {
    puts("sgemm gives a wrong product");
    return 1;
  }
  if (!factor_is_right()) {
    puts("LAPACKE gives a wrong Cholesky factor");
    return 1;
  }
  puts("32-bit integers, right answers");
  return 0;
}
