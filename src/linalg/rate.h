/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNICON_LINALG_RATE_H
#define UNICON_LINALG_RATE_H

#include "base/ctx.h"

/* Float operations a second of products on all threads, the best of three short ones, in float32
 * and, unless `wide` is NULL, in float64. */
unicon_status unicon__product_rate(unicon_ctx *ctx, double *single, double *wide);

#endif
