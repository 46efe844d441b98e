/* SPDX-License-Identifier: Apache-2.0 */
/* S applied to the embeddings it was made from: what a gradient of the loss needs. */
#ifndef UNICON_LOSS_GRADIENT_H
#define UNICON_LOSS_GRADIENT_H

#include "loss/loss.h"

/* For embeddings zx, zy (n by r) of the pairs' rows: out_x = S Z_y, out_y = S^T Z_x and the loss.
 * 2 n_x n_y r flops for each of the sweeps and of the two products. */
unicon_status unicon__gradient(unicon_ctx *ctx, const unicon__loss_params *params,
                               const unicon_pairs *pairs, int64_t r, const float *zx,
                               const float *zy, float *out_x, float *out_y, double *value);

#endif
