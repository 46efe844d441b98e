/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over float arrays, in one file per instruction set (plain C, AVX2, AVX-512), all compiled
 * from vec_body.h and chosen once at run time. `a` is an inverse temperature. Sums are taken in 16
 * lanes in a fixed order, so all three give the same result up to the rounding of fused
 * multiply-adds. A NaN that goes in comes out: in its own entry, and in the sums and maxima it is
 * part of. */
#ifndef UNICON_LINALG_VEC_H
#define UNICON_LINALG_VEC_H

#include <stdint.h>

/* A step of AdamW with its bias corrections taken in. */
typedef struct unicon__adam_rates {
  float beta_1, beta_2; /* of the running mean and square */
  float keep;           /* 1 - rate decay */
  float length;         /* rate / (1 - beta_1^t) */
  float root;           /* (1 - beta_2^t)^-1/2 */
  float floor;          /* added to the root of the square */
} unicon__adam_rates;

typedef struct unicon__vec {
  const char *name;
  /* sum of squares */
  double (*sum_squares)(const float *x, int64_t n);
  double (*dot)(const float *x, const float *y, int64_t n);
  /* x = factor * x - shift (shift may be NULL) */
  void (*scale_shift)(float *x, int64_t n, float factor, const float *shift);
  /* y += factor * x */
  void (*add_scaled)(float *y, const float *x, int64_t n, float factor);
  /* y += factor * x, y in float64 */
  void (*add_widened)(double *y, const float *x, int64_t n, double factor);
  /* Sums over four rows of x, ld apart, in float64: sum_k += factor sum_i w_i x_ik and, unless it
   * is NULL, square_k += factor sum_i w_i x_ik^2. */
  void (*add_columns)(const float *x, int64_t ld, int64_t cols, const double w[4], double factor,
                      double *sum, double *square);
  /* y += W^T x for W rows by cols, row-major: W is read once, eight rows at a time. */
  void (*add_rows)(float *y, const float *w, int64_t rows, int64_t cols, const float *x);
  float (*max)(const float *x, int64_t n);
  /* A block of a symmetric matrix, in float64 and read once, on both sides of the diagonal:
   * y_rows += A x_cols and y_cols += A^T x_rows, A rows by cols. */
  void (*symmetric_block)(const double *a, int64_t lda, int64_t rows, int64_t cols,
                          const double *x_rows, const double *x_cols, double *y_rows,
                          double *y_cols);
  /* x_j = exp(x_j), 2 ulp; below -87 gives 0 */
  void (*exp)(float *x, int64_t n);
  /* sum of e^{a (s_j - shift)} */
  float (*exp_sum)(const float *s, int64_t n, float a, float shift);

  /* Statistics of one row of scores, without shift: adds e^{a s_j} to column[j], returns their
   * sum. Needs |a s| <= 44. Entries of -INFINITY count as 0. */
  float (*exp_sums)(const float *s, int64_t n, float a, float *column);
  /* The same with shifts: returns sum_j e^{a (s_j - row_max)} and folds the row into the running
   * column maxima and sums, column_sum[j] = sum e^{a (s - column_max[j])}. */
  float (*exp_sums_shifted)(const float *s, int64_t n, float a, float row_max, float *column_max,
                            float *column_sum);

  /* Weights of negatives: s_j = -(e^{a s_j} row + e^{a s_j} column[j]); needs |a s| <= 44. */
  void (*exp_weights)(float *s, int64_t n, float a, float row, const float *column);
  /* s_j = -(e^{a s_j + log_row} + e^{a s_j + log_column[j]}). */
  void (*exp_weights_shifted)(float *s, int64_t n, float a, float log_row, const float *log_column);

  /* With v = t s_j + b: s_j = -factor / (1 + e^-v); returns the sum of log(1 + e^v). */
  double (*sigmoid_weights)(float *s, int64_t n, float t, float b, float factor);

  /* Cosines in [-1, 1] become the arc-cosine kernel of order 0, 1 or 2, scaled to 1 at 1. */
  void (*arccos)(float *c, int64_t n, int order);
  /* Squares a^2 become e^-a, (1 + a) e^-a or (1 + a + a^2/3) e^-a. */
  void (*matern)(float *square, int64_t n, int order);

  /* mean and square take in the gradient; x = keep x - length mean / (root sqrt(square) + floor) */
  void (*adam)(float *x, float *mean, float *square, const float *gradient, int64_t n,
               const unicon__adam_rates *rates);
} unicon__vec;

/* The fastest set this processor runs. */
const unicon__vec *unicon__vec_best(void);

/* All sets built in, for tests; a NULL entry ends the list or marks one this processor lacks. */
enum { UNICON__VEC_SETS = 3 };
const unicon__vec *unicon__vec_set(int index);

#endif
