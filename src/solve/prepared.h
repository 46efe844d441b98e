/* SPDX-License-Identifier: Apache-2.0 */
/* Rows made ready: the maps of both sides fitted, their features kept where they are used often,
 * and the statistics of all rows and pairs. */
#ifndef UNICON_SOLVE_PREPARED_H
#define UNICON_SOLVE_PREPARED_H

#include "features/feed.h"
#include "features/mapfit.h"
#include "score/validation.h"
#include "solve/stats.h"

typedef struct unicon__side {
  unicon__source source; /* the rows through `map` */
  unicon__map map;
  unicon__source fitted; /* the rows the map was fitted on: of both sides for a shared encoder; of
                            sums without their rows: none */
  float *cache;          /* their features, or NULL */
  unicon__kept kept;     /* ... on the device */
} unicon__side;

typedef struct unicon__prepared {
  unicon__arena arena; /* maps and features */
  unicon__arena sums;  /* statistics */
  unicon__side side[2];
  const unicon_pairs *pairs;
  unicon__centring centring;
  unicon__stats stats;
} unicon__prepared;

typedef struct unicon__prepare_plan {
  const unicon__map_params *map;
  unicon__centring centring;
  const unicon__batch *data;  /* sources without maps, and pairs */
  const int64_t *landmark[2]; /* rows given as landmarks, or NULL */
  int64_t landmarks;
  bool cache;     /* features will be used many times; those of kernels always are */
  bool away;      /* ... but not here, where a device keeps them */
  unsigned holds; /* of the statistics */
} unicon__prepare_plan;

/* Fits the maps and adds up the statistics of all rows. What is prepared must stay where it is (its
 * sources point to its maps); close frees it, also after a failure. */
unicon_status unicon__prepare(unicon_ctx *ctx, const unicon__prepare_plan *plan,
                              unicon__prepared *out);
void unicon__prepared_close(unicon__prepared *prepared);

/* Gives the statistics back, once nobody asks for moments any more. */
void unicon__prepared_drop_sums(unicon__prepared *prepared);

/* The rows and pairs as a set. */
unicon__batch unicon__prepared_set(const unicon__prepared *prepared);

/* Refuses sides whose rows are all alike: centred, they are rounding noise and nothing else. */
unicon_status unicon__moments_check(unicon_ctx *ctx, const unicon__prepared *prepared,
                                    const unicon__moments *moments);

/* Moves the means of the maps, and the features that are kept, to those of the moments, which are
 * relative to nothing from then on. The statistics do not hold any more. */
unicon_status unicon__prepared_centre(unicon_ctx *ctx, unicon__prepared *prepared,
                                      unicon__moments *moments);

/* Other rows, and `bank` of the prepared ones (0: no balance), seen through the maps, the features
 * of the former kept if memory allows. */
unicon_status unicon__validation_through(unicon_ctx *ctx, const unicon__validation *held,
                                         const unicon__prepared *prepared,
                                         unicon__balancing balance, int64_t bank, uint64_t seed,
                                         unicon__validation *out);

#endif
