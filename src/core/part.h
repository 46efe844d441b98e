/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a model: both sides prepared, the solver run, the factors stored. */
#ifndef UNICON_CORE_PART_H
#define UNICON_CORE_PART_H

#include "core/model.h"
#include "core/side.h"
#include "core/solve.h"

/* What a part is fitted on and with. */
typedef struct unicon__part_job {
  const unicon_options *options;
  unicon__batch data;   /* sources without maps, and pairs */
  int64_t batch;        /* rows of x per batch; 0: one batch */
  const int64_t *landmark[2];
  int64_t landmarks;
  unicon__arena *arena; /* of the model */
} unicon__part_job;

/* Fits the part; what happened goes to `log` (its spectrum lives in the frame). */
unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__solve_log *log);

/* POWER of the option metric: none is 0, whiten 1/2. */
double unicon__metric_power(const unicon_options *options);

/* Options of the solver. The rank is left to unicon__choose_rank. */
void unicon__solve_params_from(const unicon_options *options, unicon__solve_params *out);

/* The rank: what was asked for, or at most 256, within what features and rows allow. */
unicon_status unicon__choose_rank(unicon_ctx *ctx, const unicon_options *options,
                                  const unicon__source *x, const unicon__source *y, int64_t *out);

/* Factors of a state in the metric of two sides become the part. */
unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena,
                                 const unicon__side side[2], const unicon__metric metric[2],
                                 const unicon__state *state, double split, unicon__part *part);

#endif
