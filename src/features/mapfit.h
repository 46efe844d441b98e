/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting a feature map on the rows of one side. */
#ifndef UNICON_FEATURES_MAPFIT_H
#define UNICON_FEATURES_MAPFIT_H

#include "features/feature.h"
#include "base/options.h"

/* Fits the map that the options ask for on `source` (whose map is not read), without centring.
 * Tables of the map are allocated in `arena`. `side` is 0 for x, 1 for y. `landmark` lists rows of
 * the source given by the user, or is NULL. */
unicon_status unicon__map_fit(unicon_ctx *ctx, unicon__arena *arena, const unicon_options *options,
                              int side, const int64_t *landmark, int64_t landmarks,
                              const unicon__source *source, unicon__map *map);

/* The kernel of a side with its width set (the median distance of up to 1000 rows for auto). */
unicon_status unicon__kernel_fit(unicon_ctx *ctx, const unicon_options *options, int side,
                                 const unicon__source *source, unicon__kernel *kernel);

/* Randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), in blocks: picks `count` rows as
 * landmarks with probability proportional to what the rows picked so far leave unexplained.
 * O(n count (d + count)) flops, n count floats. Writes the picked rows, ascending, and the share of
 * the trace that is left; fewer than `count` if the rest is explained. */
unicon_status unicon__pivot_rows(unicon_ctx *ctx, const unicon__source *source,
                                 const unicon__kernel *kernel, bool normalize, int64_t count,
                                 uint64_t seed, uint32_t stream, int64_t *row, int64_t *picked,
                                 double *left);

#endif
