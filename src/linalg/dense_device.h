/* SPDX-License-Identifier: Apache-2.0 */
/* Dense algebra on a device: linalg asks it first. *done: it has; else the matrices are as they
 * were. */
#ifndef UNICON_LINALG_DENSE_DEVICE_H
#define UNICON_LINALG_DENSE_DEVICE_H

#include "device/use.h"

/* unicon__tiled_dsyevd. */
unicon_status unicon__device_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, bool *done);

/* unicon__tiled_dgesvd. */
unicon_status unicon__device_dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                    double *u, double *vt, bool *done);

/* The r leading triples of A (m by n), as in device/device.h; s has r + 1 numbers. */
unicon_status unicon__device_leading(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r,
                                     const double *a, double *s, double *u, double *v, bool *done);

/* C = op(A) op(B), matrices without gaps. */
bool unicon__device_dgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                          int64_t k, const double *a, const double *b, double *c);

#endif
