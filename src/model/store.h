/* SPDX-License-Identifier: Apache-2.0 */
/* From factors in metric coordinates to a part of a model: F = R G, with everything folded into the
 * weights that use does not need apart. */
#ifndef UNICON_MODEL_STORE_H
#define UNICON_MODEL_STORE_H

#include "model/model.h"
#include "solve/prepared.h"
#include "solve/refine.h"

unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena, const unicon__side *side,
                                 const unicon__whitening metric[2], const unicon__factors *factors,
                                 unicon__part *part);

#endif
