/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting a feature map on the rows of one side. */
#ifndef UNICON_FEATURES_MAPFIT_H
#define UNICON_FEATURES_MAPFIT_H

#include "features/feature.h"
#include "base/options.h"

typedef enum unicon__landmark_method {
  UNICON__LANDMARKS_UNIFORM,
  UNICON__LANDMARKS_PIVOT,
  UNICON__LANDMARKS_GIVEN
} unicon__landmark_method;

/* What the maps of both sides are to be. */
typedef struct unicon__map_params {
  bool normalize;
  unicon__kernel_kind kernel[2];
  double width[2];       /* of poly its degree; 0: the median distance, or 3 */
  bool by_size;          /* linear, exact or nystrom as kernel and rows want it; else `kind` */
  unicon__map_kind kind; /* of both sides */
  int64_t landmarks;
  bool landmarks_given; /* or the method: then nystrom is meant */
  unicon__landmark_method method;
  int64_t features;
  double kernel_ridge;
  uint64_t seed;
} unicon__map_params;

void unicon__map_params_from(const unicon_options *options, unicon__map_params *out);

/* Fits the map of a side (0 for x, 1 for y) on `source` (whose map is not read), without centring.
 * Tables of the map are allocated in `arena`. `landmark` lists rows of the source given by the
 * user, or is NULL. */
unicon_status unicon__map_fit(unicon_ctx *ctx, unicon__arena *arena,
                              const unicon__map_params *params, int side, const int64_t *landmark,
                              int64_t landmarks, const unicon__source *source, unicon__map *map);

/* Makes the factor of landmarks that are in the map, and drops those that others explain. */
unicon_status unicon__map_factor(unicon_ctx *ctx, unicon__arena *arena, double ridge, int side,
                                 unicon__map *map);

/* The kernel of a side with its width set (the median distance of up to 1000 rows for auto). */
unicon_status unicon__kernel_fit(unicon_ctx *ctx, const unicon__map_params *params, int side,
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
