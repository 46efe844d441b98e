/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a model: both sides prepared, the solver run, the factors stored. */
#ifndef UNICON_SELECT_PART_H
#define UNICON_SELECT_PART_H

#include "model/model.h"
#include "solve/refine.h"
#include "solve/side.h"
#include "solve/solve.h"

/* What a part is fitted on and with. */
typedef struct unicon__part_job {
  const unicon_options *options;
  unicon__batch data;             /* sources without maps, and pairs */
  unicon__cut cut;                /* into batches */
  const unicon__validation *held; /* held-out rows without maps or banks, or NULL */
  const int64_t *landmark[2];
  int64_t landmarks;
  unicon__arena *arena; /* of the model */
  int schedule;         /* of refine, see there */
} unicon__part_job;

/* What happened, for the metadata. */
typedef struct unicon__part_log {
  unicon__solve_log solve; /* its spectrum lives in the frame */
  unicon__refine_log refine;
} unicon__part_log;

unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__part_log *log);

/* Held-out rows, and a bank of the training rows, seen through the maps of two fitted sides, their
 * features kept if memory allows. Options balance and balance_bank say how scores are balanced. */
unicon_status unicon__validation_through(unicon_ctx *ctx, const unicon_options *options,
                                         const unicon__validation *held,
                                         const unicon_pairs *train_pairs, const unicon__side *side,
                                         unicon__validation *out);

/* How scores are balanced: as the options say; auto: `usual`. */
unicon__balancing unicon__balancing_from(const unicon_options *options, unicon__balancing usual);

/* The exponent of the options; auto: 3/2 for the closed form alone, 1 before iterations and
 * refine, which find lengths of their own. */
double unicon__exponent_from(const unicon_options *options);

/* Powers of the singular values in F_x and F_y: exponent * split and exponent * (1 - split). */
void unicon__powers_from(const unicon_options *options, double power[2]);

/* U s^power[0] and V s^power[1] of a state, in metric coordinates. */
unicon_status unicon__factors_of(unicon_ctx *ctx, const unicon__state *state, const double power[2],
                                 unicon__factors *out);

/* The batches of the options. */
unicon__cut unicon__cut_from(const unicon_options *options);

/* Options of refine. */
void unicon__refine_params_from(const unicon_options *options, unicon__refine_params *out);

/* POWER of the metric of a side (0 for x, 1 for y), `both` where the side has none of its own. */
double unicon__side_power(const unicon_options *options, int side, double both);

/* POWER of the option metric: none is 0, whiten 1/2. */
double unicon__common_power(const unicon_options *options);

/* The power of a side, with that of the option metric where it has none of its own. */
double unicon__metric_power(const unicon_options *options, int side);

/* Options of the solver. The rank is left to unicon__choose_rank. */
void unicon__solve_params_from(const unicon_options *options, unicon__solve_params *out);

/* The rank of the options: 256 for auto, the largest number there is for full. */
int64_t unicon__asked_rank(const unicon_options *options);

/* The highest rank that features and rows allow. */
int64_t unicon__most_rank(const unicon_options *options, const unicon__source *x,
                          const unicon__source *y);

/* The rank: what was asked for, or at most 256, within what features and rows allow. */
unicon_status unicon__choose_rank(unicon_ctx *ctx, const unicon_options *options,
                                  const unicon__source *x, const unicon__source *y, int64_t *out);

/* F = R G of both sides becomes the part. */
unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena, const unicon__side *side,
                                 const unicon__whitening metric[2], const unicon__factors *factors,
                                 unicon__part *part);

#endif
