/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as functions of dot products: a tile of products (one GEMM) becomes a tile of kernel
 * values in place. With c = cos(theta) = x.y / |x||y|, d = |x - y|, l the width:
 *
 *     linear    x.y
 *     cosine    c
 *     arccos0   1 - theta/pi
 *     arccos1   |x||y| (sin theta + (pi - theta) c) / pi, called angular too
 *     arccos2   |x|^2|y|^2 (3 sin theta c + (pi - theta)(1 + 2 c^2)) / 3pi, so that k(x,x) = 1
 *     expcos    exp(c / l^2)
 *     rbf       exp(-d^2 / 2l^2)
 *     matern12  exp(-d/l), called laplace too
 *     matern32  (1 + a) exp(-a), a = sqrt(3) d/l
 *     matern52  (1 + a + a^2/3) exp(-a), a = sqrt(5) d/l
 *     poly      ((1 + x.y) / 2)^degree
 *
 * (Cho & Saul 2009 for the arc-cosine family.) In float32 a product near 1 is off by 1e-7, so near
 * theta = 0 kernels with a square-root there are less exact: arccos0 2e-4, matern12 6e-4 of k(x,x);
 * the others 2e-6 (unicon__kernel_error). */
#ifndef UNICON_FEATURES_KERNEL_H
#define UNICON_FEATURES_KERNEL_H

#include "base/ctx.h"

/* In the order of the words of option `kernel`. */
typedef enum unicon__kernel_kind {
  UNICON__KERNEL_LINEAR,
  UNICON__KERNEL_COSINE,
  UNICON__KERNEL_ANGULAR,
  UNICON__KERNEL_ARCCOS0,
  UNICON__KERNEL_ARCCOS1,
  UNICON__KERNEL_ARCCOS2,
  UNICON__KERNEL_EXPCOS,
  UNICON__KERNEL_RBF,
  UNICON__KERNEL_MATERN12,
  UNICON__KERNEL_LAPLACE,
  UNICON__KERNEL_MATERN32,
  UNICON__KERNEL_MATERN52,
  UNICON__KERNEL_POLY
} unicon__kernel_kind;

typedef struct unicon__kernel {
  unicon__kernel_kind kind; /* angular and laplace are stored as arccos1 and matern12 */
  double width;             /* of expcos, rbf, matern */
  int degree;               /* of poly */
} unicon__kernel;

/* The kind of an alias: angular is arccos1, laplace is matern12. */
unicon__kernel_kind unicon__kernel_plain(unicon__kernel_kind kind);

/* Is it a function of |x - y| alone? Then a common shift of all rows changes nothing, and a shift
 * to the middle of them keeps the digits of |x|^2 + |y|^2 - 2 x.y: callers take it. */
bool unicon__kernel_of_distance(unicon__kernel_kind kind);

/* Does it have random features: powers of the positive part, or cosines? */
bool unicon__kernel_is_relu(unicon__kernel_kind kind);
bool unicon__kernel_is_fourier(unicon__kernel_kind kind);

/* Does the kernel have a width? */
bool unicon__kernel_has_width(unicon__kernel_kind kind);

/* How far a value of unicon__kernel_tile may be from the exact one, as a share of k(x, x). What is
 * smaller than that, a pivot of K above all, is rounding. */
double unicon__kernel_error(unicon__kernel_kind kind);

/* k of one product in float64; squares are the squared lengths of the two rows. */
double unicon__kernel_value(const unicon__kernel *kernel, double product, double square_x,
                            double square_y);

/* Products t (rows by cols, ld between rows) become kernel values. A distance whose square is no
 * float32 is a large one: k is 0 there. */
void unicon__kernel_tile(const unicon__kernel *kernel, float *t, int64_t rows, int64_t cols,
                         int64_t ld, const float *square_x, const float *square_y);

#endif
