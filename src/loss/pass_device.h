/* SPDX-License-Identifier: Apache-2.0 */
/* The pass on a device: the loss says what it wants of the plane, the device walks it. */
#ifndef UNICON_LOSS_PASS_DEVICE_H
#define UNICON_LOSS_PASS_DEVICE_H

#include "device/use.h"
#include "features/feature.h"
#include "loss/loss.h"

/* The sums that a loss observes, and then its first settling; *done: it has been done. */
unicon_status unicon__device_observe(unicon_ctx *ctx, unicon__loss *loss, bool *done);

/* C = Phi_x^T S Phi_y, and L of a pointwise loss; without sources L alone. */
unicon_status unicon__device_cross(unicon_ctx *ctx, unicon__loss *loss, const unicon__source *x,
                                   const unicon__source *y, double *c, bool *done);

#endif
