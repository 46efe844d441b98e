/* SPDX-License-Identifier: Apache-2.0 */
/* The vector loops, included once per instruction set with VEC_TABLE and VEC_NAME defined. Written
 * with the compilers' vector type of 16 floats, which is lowered to whatever the target has.
 *
 * exp is written here instead of taken from libmvec or SLEEF so that it fuses with the mask, the
 * product and the two sums around it; a library call per vector costs about twice as much in these
 * loops, and neither library serves gcc and clang alike. */
#include <math.h>
#include <string.h>

#include "linalg/vec.h"

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t v16i __attribute__((vector_size(64)));
typedef double v8d __attribute__((vector_size(64)));

enum { LANES = 16 };

static inline v16 load(const float *p) {
  v16 v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline void store(float *p, v16 v) {
  memcpy(p, &v, sizeof v);
}

static inline v16 splat(float x) {
  return (v16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

/* The first n < 16 floats, the rest `fill`. */
static inline v16 load_part(const float *p, int64_t n, float fill) {
  v16 v = splat(fill);
  memcpy(&v, p, (size_t)n * sizeof *p);
  return v;
}

static inline void store_part(float *p, v16 v, int64_t n) {
  memcpy(p, &v, (size_t)n * sizeof *p);
}

static inline v16 select16(v16i mask, v16 yes, v16 no) {
  return (v16)((mask & (v16i)yes) | (~mask & (v16i)no));
}

/* NaN where either is: a mistake upstream must reach whoever looks at the result. */
static inline v16 max16(v16 a, v16 b) {
  return select16((a > b) | (a != a), a, b);  // NOLINT(misc-redundant-expression)
}

/* Pairwise over the lanes: a fixed order. */
static inline float sum16(v16 v) {
  float t[LANES];
  store(t, v);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) t[k] += t[k + half];
  return t[0];
}

static inline double sum8d(v8d v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* e^x = 2^n e^f, n = round(x / ln 2), |f| <= ln2/2, e^f by its Taylor polynomial of degree 7 with
 * remainder 5e-9; 0 below -87, infinite above 88.3, NaN of NaN. Relative error below 2e-7. */
static inline v16 exp16(v16 x) {
  const v16 magic = splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
  const v16 below = select16(x > splat(88.3f), splat(88.3f), x);
  const v16 in = select16(x < splat(-87.0f), splat(-87.0f), below);
  const v16 shifted = in * splat(1.44269504f) + magic;
  const v16 n = shifted - magic;
  const v16 f = (in - n * splat(0.693145752f)) - n * splat(1.42860677e-6f);
  v16 p = splat(1.98412698e-4f);
  p = p * f + splat(1.38888889e-3f);
  p = p * f + splat(8.33333333e-3f);
  p = p * f + splat(4.16666667e-2f);
  p = p * f + splat(1.66666667e-1f);
  p = p * f + splat(0.5f);
  p = p * f + splat(1.0f);
  p = p * f + splat(1.0f);
  const v16 power = (v16)(((v16i)shifted << 23) + (v16i)splat(1.0f));
  const v16 low = select16(x < splat(-87.0f), splat(0.0f), p * power);
  return select16(x > splat(88.3f), splat(INFINITY), low);
}

static double vec_sum_squares(const float *x, int64_t n) {
  v16 low = splat(0), high = splat(0);
  int64_t k = 0;
  for (; k + 2 * LANES <= n; k += 2 * LANES) {
    const v16 a = load(x + k), b = load(x + k + LANES);
    low += a * a;
    high += b * b;
  }
  for (; k < n; k += LANES) {
    const v16 a = n - k >= LANES ? load(x + k) : load_part(x + k, n - k, 0);
    low += a * a;
  }
  return (double)sum16(low + high);
}

static double vec_dot(const float *x, const float *y, int64_t n) {
  v8d low = {0}, high = {0};
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    const v16 a = part >= LANES ? load(x + k) : load_part(x + k, part, 0);
    const v16 b = part >= LANES ? load(y + k) : load_part(y + k, part, 0);
    v8d a_low, a_high, b_low, b_high;
    for (int i = 0; i < 8; i++) {
      a_low[i] = (double)a[i];
      b_low[i] = (double)b[i];
      a_high[i] = (double)a[i + 8];
      b_high[i] = (double)b[i + 8];
    }
    low += a_low * b_low;
    high += a_high * b_high;
  }
  return sum8d(low + high);
}

static void vec_scale_shift(float *x, int64_t n, float factor, const float *shift) {
  const v16 f = splat(factor);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES) {
      const v16 v = load(x + k) * f;
      store(x + k, shift ? v - load(shift + k) : v);
    } else {
      const v16 v = load_part(x + k, part, 0) * f;
      store_part(x + k, shift ? v - load_part(shift + k, part, 0) : v, part);
    }
  }
}

static void vec_add_scaled(float *y, const float *x, int64_t n, float factor) {
  const v16 f = splat(factor);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES)
      store(y + k, load(y + k) + load(x + k) * f);
    else
      store_part(y + k, load_part(y + k, part, 0) + load_part(x + k, part, 0) * f, part);
  }
}

/* Eight rows of W to one pass over y: y stays in the first cache, and W streams by. */
static void vec_add_widened(double *restrict y, const float *restrict x, int64_t n, double factor) {
  for (int64_t k = 0; k < n; k++) y[k] += factor * (double)x[k];
}

static void vec_add_columns(const float *restrict x, int64_t ld, int64_t cols, const double w[4],
                            double factor, double *restrict sum, double *restrict square) {
  const double a = factor * w[0], b = factor * w[1], c = factor * w[2], d = factor * w[3];
  for (int64_t k = 0; k < cols; k++)
    sum[k] += (a * (double)x[k] + b * (double)x[ld + k]) +
              (c * (double)x[2 * ld + k] + d * (double)x[3 * ld + k]);
  for (int64_t k = 0; square && k < cols; k++) {
    const double p = (double)x[k], q = (double)x[ld + k];
    const double r = (double)x[2 * ld + k], s = (double)x[3 * ld + k];
    square[k] += (a * p * p + b * q * q) + (c * r * r + d * s * s);
  }
}

static void vec_add_rows(float *y, const float *w, int64_t rows, int64_t cols, const float *x) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    const float *at = w + i * cols;
    v16 f[8];
    for (int k = 0; k < 8; k++) f[k] = splat(x[i + k]);
    for (int64_t j = 0; j < cols; j += LANES) {
      const int64_t part = cols - j;
      v16 even, odd = splat(0);
      if (part >= LANES) {
        even = load(y + j);
        for (int k = 0; k < 8; k += 2) {
          even += load(at + k * cols + j) * f[k];
          odd += load(at + (k + 1) * cols + j) * f[k + 1];
        }
        store(y + j, even + odd);
      } else {
        even = load_part(y + j, part, 0);
        for (int k = 0; k < 8; k++) even += load_part(at + k * cols + j, part, 0) * f[k];
        store_part(y + j, even, part);
      }
    }
  }
  for (; i < rows; i++) vec_add_scaled(y, w + i * cols, cols, x[i]);
}

static float vec_max(const float *x, int64_t n) {
  v16 best = splat(-INFINITY);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    best = max16(best, part >= LANES ? load(x + k) : load_part(x + k, part, -INFINITY));
  }
  float t[LANES];
  store(t, best);
  for (int k = 1; k < LANES; k++) t[0] = t[k] > t[0] || isnan(t[k]) ? t[k] : t[0];
  return t[0];
}

enum { WIDE_LANES = 8 };

static inline v8d load8d(const double *p) {
  v8d v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline void store8d(double *p, v8d v) {
  memcpy(p, &v, sizeof v);
}

static inline v8d splat8d(double x) {
  return (v8d){x, x, x, x, x, x, x, x};
}

/* Four rows of the block at once, so that y_cols is loaded and stored once for them. */
static inline void symmetric_rows4(const double *a, int64_t lda, int64_t cols, const double *x_rows,
                                   const double *x_cols, double *y_rows, double *y_cols) {
  const double *b = a + lda, *c = b + lda, *d = c + lda;
  const v8d f0 = splat8d(x_rows[0]), f1 = splat8d(x_rows[1]);
  const v8d f2 = splat8d(x_rows[2]), f3 = splat8d(x_rows[3]);
  v8d s0 = splat8d(0), s1 = s0, s2 = s0, s3 = s0;
  int64_t k = 0;
  for (; k + WIDE_LANES <= cols; k += WIDE_LANES) {
    const v8d x = load8d(x_cols + k), a0 = load8d(a + k), a1 = load8d(b + k);
    const v8d a2 = load8d(c + k), a3 = load8d(d + k);
    store8d(y_cols + k, load8d(y_cols + k) + ((f0 * a0 + f1 * a1) + (f2 * a2 + f3 * a3)));
    s0 += a0 * x;
    s1 += a1 * x;
    s2 += a2 * x;
    s3 += a3 * x;
  }
  double t[4] = {sum8d(s0), sum8d(s1), sum8d(s2), sum8d(s3)};
  for (; k < cols; k++) {
    y_cols[k] += (x_rows[0] * a[k] + x_rows[1] * b[k]) + (x_rows[2] * c[k] + x_rows[3] * d[k]);
    t[0] += a[k] * x_cols[k];
    t[1] += b[k] * x_cols[k];
    t[2] += c[k] * x_cols[k];
    t[3] += d[k] * x_cols[k];
  }
  for (int i = 0; i < 4; i++) y_rows[i] += t[i];
}

static void vec_symmetric_block(const double *a, int64_t lda, int64_t rows, int64_t cols,
                                const double *x_rows, const double *x_cols, double *y_rows,
                                double *y_cols) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    symmetric_rows4(a + i * lda, lda, cols, x_rows + i, x_cols, y_rows + i, y_cols);
  for (; i < rows; i++) {
    double sum = 0;
    for (int64_t k = 0; k < cols; k++) {
      y_cols[k] += x_rows[i] * a[i * lda + k];
      sum += a[i * lda + k] * x_cols[k];
    }
    y_rows[i] += sum;
  }
}

static void vec_exp(float *x, int64_t n) {
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES)
      store(x + k, exp16(load(x + k)));
    else
      store_part(x + k, exp16(load_part(x + k, part, 0)), part);
  }
}

static float vec_exp_sum(const float *s, int64_t n, float a, float shift) {
  const v16 scale = splat(a), less = splat(shift);
  v16 sum = splat(0);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    sum +=
        exp16(((part >= LANES ? load(s + k) : load_part(s + k, part, -INFINITY)) - less) * scale);
  }
  return sum16(sum);
}

static float vec_exp_sums(const float *s, int64_t n, float a, float *column) {
  const v16 scale = splat(a);
  v16 sum = splat(0);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES) {
      const v16 e = exp16(load(s + k) * scale);
      sum += e;
      store(column + k, load(column + k) + e);
    } else {
      const v16 e = exp16(load_part(s + k, part, -INFINITY) * scale);
      sum += e;
      store_part(column + k, load_part(column + k, part, 0) + e, part);
    }
  }
  return sum16(sum);
}

/* One step of the running log-sum-exp of 16 columns. A column that has seen nothing has maximum
 * -INFINITY; -inf minus -inf is kept out by the clamp to a large negative number. */
static inline void fold_columns(v16 s, v16 scale, v16 *maximum, v16 *sum) {
  const v16 floor = splat(-1e30f);
  const v16 value = max16(s, floor), old = max16(*maximum, floor);
  const v16 top = max16(value, old);
  *sum = *sum * exp16((old - top) * scale) +
         select16(s > floor, exp16((value - top) * scale), splat(0));
  *maximum = max16(*maximum, s);
}

static float vec_exp_sums_shifted(const float *s, int64_t n, float a, float row_max,
                                  float *column_max, float *column_sum) {
  const v16 scale = splat(a), shift = splat(row_max);
  v16 sum = splat(0);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES) {
      const v16 value = load(s + k);
      v16 maximum = load(column_max + k), total = load(column_sum + k);
      sum += exp16((value - shift) * scale);
      fold_columns(value, scale, &maximum, &total);
      store(column_max + k, maximum);
      store(column_sum + k, total);
    } else {
      const v16 value = load_part(s + k, part, -INFINITY);
      v16 maximum = load_part(column_max + k, part, 0), total = load_part(column_sum + k, part, 0);
      sum += exp16((value - shift) * scale);
      fold_columns(value, scale, &maximum, &total);
      store_part(column_max + k, maximum, part);
      store_part(column_sum + k, total, part);
    }
  }
  return sum16(sum);
}

static void vec_exp_weights(float *s, int64_t n, float a, float row, const float *column) {
  const v16 scale = splat(a), minus_row = splat(-row);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES)
      store(s + k, exp16(load(s + k) * scale) * (minus_row - load(column + k)));
    else
      store_part(
          s + k,
          exp16(load_part(s + k, part, 0) * scale) * (minus_row - load_part(column + k, part, 0)),
          part);
  }
}

static void vec_exp_weights_shifted(float *s, int64_t n, float a, float log_row,
                                    const float *log_column) {
  const v16 scale = splat(a), row = splat(log_row);
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    const v16 value = (part >= LANES ? load(s + k) : load_part(s + k, part, 0)) * scale;
    const v16 column = part >= LANES ? load(log_column + k) : load_part(log_column + k, part, 0);
    const v16 weight = -(exp16(value + row) + exp16(value + column));
    if (part >= LANES)
      store(s + k, weight);
    else
      store_part(s + k, weight, part);
  }
}

/* log(1 + y) for y in [0, 1] as 2 atanh(z), z = y/(2+y) <= 1/3, by its series up to z^15:
 * relative error 1e-7, also for small y. */
static inline v16 log1p16(v16 y) {
  const v16 z = y / (splat(2.0f) + y), z2 = z * z;
  v16 p = splat(2.0f / 15);
  p = p * z2 + splat(2.0f / 13);
  p = p * z2 + splat(2.0f / 11);
  p = p * z2 + splat(2.0f / 9);
  p = p * z2 + splat(2.0f / 7);
  p = p * z2 + splat(2.0f / 5);
  p = p * z2 + splat(2.0f / 3);
  p = p * z2 + splat(2.0f);
  return p * z;
}

static double vec_sigmoid_weights(float *s, int64_t n, float t, float b, float factor) {
  const v16 zero = splat(0), one = splat(1), scale = splat(t), shift = splat(b);
  const v16 minus = splat(-factor);
  v16 sum = zero;
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    const v16 v = (part >= LANES ? load(s + k) : load_part(s + k, part, -INFINITY)) * scale + shift;
    const v16 e = exp16(select16(v > zero, -v, v)); /* e^-|v| */
    const v16 share = select16(v > zero, one, e) / (one + e);
    sum += max16(v, zero) + log1p16(e);
    if (part >= LANES)
      store(s + k, minus * share);
    else
      store_part(s + k, minus * share, part);
  }
  return (double)sum16(sum);
}

static inline v16 sqrt16(v16 x) {
  float t[LANES];
  store(t, x);
  for (int k = 0; k < LANES; k++) t[k] = sqrtf(t[k]);
  return load(t);
}

/* arc cosine: sqrt(1-x) times a polynomial for x >= 0 (Abramowitz & Stegun 4.4.46, error 2e-8),
 * pi minus it for x < 0. */
static inline v16 acos16(v16 c) {
  const v16 x = select16(c < splat(0), -c, c);
  v16 p = splat(-0.0012624911f);
  p = p * x + splat(0.0066700901f);
  p = p * x + splat(-0.0170881256f);
  p = p * x + splat(0.0308918810f);
  p = p * x + splat(-0.0501743046f);
  p = p * x + splat(0.0889789874f);
  p = p * x + splat(-0.2145988016f);
  p = p * x + splat(1.5707963050f);
  const v16 theta = p * sqrt16(splat(1) - x);
  return select16(c < splat(0), splat(3.14159265f) - theta, theta);
}

static inline v16 arccos16(v16 c, int order) {
  const v16 rest = splat(3.14159265f) - acos16(c), one = splat(1);
  if (order == 0) return rest * splat(0.318309886f);
  const v16 sine = sqrt16((one - c) * (one + c));
  if (order == 1) return (sine + rest * c) * splat(0.318309886f);
  return (splat(3) * sine * c + rest * (one + splat(2) * c * c)) * splat(0.106103295f);
}

static void vec_arccos(float *c, int64_t n, int order) {
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES)
      store(c + k, arccos16(load(c + k), order));
    else
      store_part(c + k, arccos16(load_part(c + k, part, 0), order), part);
  }
}

static inline v16 matern16(v16 square, int order) {
  const v16 a = sqrt16(square), one = splat(1);
  const v16 factor = order == 0 ? one : order == 1 ? one + a : one + a + square * splat(1.0f / 3);
  return factor * exp16(-a);
}

static void vec_matern(float *square, int64_t n, int order) {
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES)
      store(square + k, matern16(load(square + k), order));
    else
      store_part(square + k, matern16(load_part(square + k, part, 0), order), part);
  }
}

static inline v16 adam16(v16 x, v16 *mean, v16 *square, v16 g, const unicon__adam_rates *a) {
  *mean = splat(a->beta_1) * *mean + splat(1 - a->beta_1) * g;
  *square = splat(a->beta_2) * *square + splat(1 - a->beta_2) * g * g;
  return splat(a->keep) * x -
         splat(a->length) * *mean / (splat(a->root) * sqrt16(*square) + splat(a->floor));
}

static void vec_adam(float *x, float *mean, float *square, const float *gradient, int64_t n,
                     const unicon__adam_rates *rates) {
  for (int64_t k = 0; k < n; k += LANES) {
    const int64_t part = n - k;
    if (part >= LANES) {
      v16 m = load(mean + k), s = load(square + k);
      store(x + k, adam16(load(x + k), &m, &s, load(gradient + k), rates));
      store(mean + k, m);
      store(square + k, s);
    } else {
      v16 m = load_part(mean + k, part, 0), s = load_part(square + k, part, 0);
      const v16 g = load_part(gradient + k, part, 0);
      store_part(x + k, adam16(load_part(x + k, part, 0), &m, &s, g, rates), part);
      store_part(mean + k, m, part);
      store_part(square + k, s, part);
    }
  }
}

const unicon__vec VEC_TABLE = {
    VEC_NAME,
    vec_sum_squares,
    vec_dot,
    vec_scale_shift,
    vec_add_scaled,
    vec_add_widened,
    vec_add_columns,
    vec_add_rows,
    vec_max,
    vec_symmetric_block,
    vec_exp,
    vec_exp_sum,
    vec_exp_sums,
    vec_exp_sums_shifted,
    vec_exp_weights,
    vec_exp_weights_shifted,
    vec_sigmoid_weights,
    vec_arccos,
    vec_matern,
    vec_adam,
};
