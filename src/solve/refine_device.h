/* SPDX-License-Identifier: Apache-2.0 */
/* Refine on a device: rows, factors and moments stay there, an epoch of batches at a time goes there
 * as lists of rows, and held-out rows are judged there. Losses with psi exp, fixed temperature and
 * a map for each side; others are the host's. */
#ifndef UNICON_SOLVE_REFINE_DEVICE_H
#define UNICON_SOLVE_REFINE_DEVICE_H

#include "solve/refine.h"

/* Is there a device that refines so? */
bool unicon__refine_serves(unicon_ctx *ctx, const unicon__refine_params *params,
                           const unicon__batch *data, int64_t r);

/* unicon__refine from factors of unit mean square. *done: it has been done. */
unicon_status unicon__refine_on_device(unicon_ctx *ctx, const unicon__batch *data,
                                       const unicon__whitening metric[2],
                                       const unicon__validation *held,
                                       const unicon__refine_params *params,
                                       unicon__factors *factors, unicon__refine_log *log,
                                       bool *done);

#endif
