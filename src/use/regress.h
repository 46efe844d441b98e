/* SPDX-License-Identifier: Apache-2.0 */
/* Maps from the vectors of one model to those of another, row i of X to row i of Y, all in closed
 * form, with what each predicts for rows it has not seen.
 *
 *     procrustes  y ~ R^T (x - mean_x) + mean_y, R orthogonal: U V^T of X'^T Y' = U S V^T
 *     ridge       y ~ W^T (x - mean_x) + b, min sum |y - W^T x - b|^2 + lambda |W|^2
 *     kernel      y ~ sum_j a_j k(x_j, x) + b, the same in the space of the kernel:
 *                 a = M Y, M = A^-1 - A^-1 1 1^T A^-1 / 1^T A^-1 1, A = K + lambda I,
 *                 b = 1^T A^-1 Y / 1^T A^-1 1
 *
 * What a map without a fold S of the rows predicts for them follows from the map of all rows, so
 * one factorisation serves all folds (Allen 1974 for single rows; b is free of the penalty):
 *
 *     ridge   Y_S - Yhat_S = (I - H_SS)^-1 R_S,  R = Y - H Y,
 *             H = 1/n + X' (X'^T X' + lambda I)^-1 X'^T
 *     kernel  Y_S - Yhat_S = M_SS^-1 (M Y)_S
 *
 * Single rows would not do where rows are searched together: neighbours j and k, each predicted
 * with the help of the other, would trade places.
 *
 * Procrustes has no such identity and is fitted on three parts of the folds. lambda is a share of
 * the largest eigenvalue of X'^T X' or K. Beyond `anchors` rows the kernel map keeps that many of
 * them as landmarks and is a ridge in their features. */
#ifndef UNICON_USE_REGRESS_H
#define UNICON_USE_REGRESS_H

#include "features/feature.h"

typedef enum unicon__method {
  UNICON__BY_PROCRUSTES,
  UNICON__BY_RIDGE,
  UNICON__BY_KERNEL,
  UNICON__BY_METHODS
} unicon__method;

/* What to fit. */
typedef struct unicon__recipe {
  unicon__method method;
  unicon__kernel kernel; /* of the kernel map */
  double ridge;          /* share of the largest eigenvalue; not of procrustes */
} unicon__recipe;

/* X and Y: n rows of length 1 each. */
typedef struct unicon__regress_data {
  int64_t n, d, e;
  const float *x, *y; /* n by d, n by e */
  int64_t anchors;    /* most landmarks */
  int64_t judged;     /* rows, the first ones, that are predicted by maps without their fold */
  int64_t folds;      /* of these rows, one after the other and of equal size but for rounding */
} unicon__regress_data;

/* First row of a fold; of fold `folds`: the end. */
static inline int64_t unicon__fold_first(int64_t judged, int64_t folds, int64_t fold) {
  return judged * fold / folds;
}

/* A map: features of x times `weight`, plus `offset`. */
typedef struct unicon__regression {
  int64_t points; /* landmarks; 0: linear */
  float *base;    /* points by d */
  float *mean;    /* d; NULL: with landmarks */
  float *weight;  /* d or points by e */
  float *offset;  /* e */
} unicon__regression;

/* Work that the ridges of one method and kernel share. */
typedef struct unicon__regress unicon__regress;

/* Prepares a method (its ridge is not read). Lives in the context's frame. Procrustes and ridge:
 * 2 n d (d + e) flops and an eigenvalue or singular value problem of size d; kernel: the n by n
 * matrix. */
unicon_status unicon__regress_open(unicon_ctx *ctx, const unicon__regress_data *data,
                                   const unicon__recipe *recipe, unicon__regress **out);

/* Fits with that ridge: what each of the judged rows is predicted to be by a map without its fold,
 * at length 1 (`left`, judged by e), and the map of all rows in the context's frame (`map`); either
 * may be NULL. Ridge: 4 n d e flops; kernel: 2/3 n^3 + 2 n^2 (e + n / folds). */
unicon_status unicon__regress_fit(unicon_ctx *ctx, unicon__regress *r, double ridge, float *left,
                                  unicon__regression *map);

/* Gives its memory back. */
void unicon__regress_close(unicon_ctx *ctx, unicon__regress *r);

/* Rows of X, length 1, through a map of that recipe; rows of length 1 come out. */
unicon_status unicon__regress_apply(unicon_ctx *ctx, const unicon__recipe *recipe,
                                    const unicon__regression *map, int64_t d, int64_t e,
                                    const float *x, int64_t n, float *out);

/* The map as a feature map and weights: pointers are shared. `arena` holds what it needs beside. */
unicon_status unicon__regress_map(unicon_ctx *ctx, unicon__arena *arena,
                                  const unicon__recipe *recipe, const unicon__regression *map,
                                  int64_t d, unicon__map *out);

#endif
