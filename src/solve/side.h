/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a fit, prepared: feature map, centring, covariance. */
#ifndef UNICON_SOLVE_SIDE_H
#define UNICON_SOLVE_SIDE_H

#include "features/mapfit.h"
#include "solve/whiten.h"

typedef struct unicon__side {
  unicon__source source; /* the training rows through `map` */
  unicon__map map;
  unicon__source fitted;    /* the rows the map was fitted on: of both sides for a shared encoder */
  double *sigma;            /* covariance of the features (lower triangle), or NULL */
  double mu;                /* its largest eigenvalue */
  double *vectors, *values; /* its eigenvectors by row, where a caller has set them */
} unicon__side;

/* What a side is fitted with. */
typedef struct unicon__side_plan {
  const unicon_options *options;
  int number;              /* 0 for x, 1 for y */
  const int64_t *landmark; /* rows given as landmarks, or NULL */
  int64_t landmarks;
  bool covariance; /* a metric will be needed */
  bool cache;      /* features will be used many times */
} unicon__side_plan;

/* Fits map and centring on the rows of `source` and computes the covariance. The map's tables live
 * in `arena`. The side must stay where it is: its source points to its map. */
unicon_status unicon__side_fit(unicon_ctx *ctx, unicon__arena *arena, const unicon__side_plan *plan,
                               const unicon__source *source, unicon__side *side);

/* Both sides through one map, fitted on the rows of x and y together: for a shared encoder. */
unicon_status unicon__sides_fit_shared(unicon_ctx *ctx, unicon__arena *arena,
                                       const unicon__side_plan *plan, const unicon__source *x,
                                       const unicon__source *y, unicon__side *side);

/* The metric of the side. */
unicon_status unicon__side_metric(unicon_ctx *ctx, const unicon__side *side, double power,
                                  double ridge, unicon__whitening *out);

#endif
