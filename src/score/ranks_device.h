/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on a device: the counting of score/retrieval, blocks of queries by blocks of candidates. */
#ifndef UNICON_SCORE_RANKS_DEVICE_H
#define UNICON_SCORE_RANKS_DEVICE_H

#include "device/use.h"
#include "io/pairs.h"

typedef struct unicon__ranks_job {
  const unicon_pairs *pairs;
  bool from_x;                    /* rows of x are the queries */
  const float *query, *candidate; /* rows of `width`, of them `columns` */
  int64_t queries, candidates, width, columns;
  int64_t k;   /* the first k of each query are wanted; 0: no */
  bool others; /* what the candidates look like that are no match */
  /* Found, in the frame: for positive number start[i] + k of query i, best first, the exact score
   * and how many others are between it and the one before; ids (-1: none) of the first k; the
   * largest and the sum of the scores of the others, and how many they are. */
  int64_t *start, *above, *id, *count;
  double *threshold, *top, *sum;
} unicon__ranks_job;

/* One job by all columns, or a second of the same rows by all but the last. */
unicon_status unicon__ranks_on_device(unicon_ctx *ctx, unicon__ranks_job *job, int jobs,
                                      bool *done);

#endif
