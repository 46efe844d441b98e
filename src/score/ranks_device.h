/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on a device: the counting of score/retrieval, blocks of queries by blocks of candidates. */
#ifndef UNICON_SCORE_RANKS_DEVICE_H
#define UNICON_SCORE_RANKS_DEVICE_H

#include "device/use.h"

typedef struct unicon__ranks_job {
  const float *query, *candidate; /* rows of `width` */
  int64_t queries, candidates, width;
  const int64_t
      *start; /* thresholds of each query, descending, and what is counted: see device.h */
  const double *threshold;
  int64_t *above;
  const int64_t *hidden_start, *hidden; /* candidates that do not count */
  const int64_t *self;                  /* per query a candidate that is not there; or NULL */
  double *top, *sum;                    /* per query, or NULL */
  int64_t k, *id;                       /* the first k of each query, or NULL */
  double *score;
} unicon__ranks_job;

bool unicon__ranks_device_serves(unicon_ctx *ctx, const unicon__ranks_job *job);

/* A road; `state` is the job. */
unicon_status unicon__ranks_road(unicon_ctx *ctx, void *state, unicon__device_room *room);

#endif
