/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of statistics on a device: the same as the chunks of solve/stats, in larger blocks. */
#ifndef UNICON_SOLVE_STATS_DEVICE_H
#define UNICON_SOLVE_STATS_DEVICE_H

#include "device/use.h"
#include "solve/stats.h"
#include "solve/stats_rows.h"

/* A set that is added: its rows that count (row NULL: all), and the weights of its pairs. */
typedef struct unicon__stats_job {
  const unicon__batch *set;
  unicon__stats *stats;
  double sign;
  const unicon__stats_rows *rows;
  const int64_t *row[2];
  int64_t count[2];
} unicon__stats_job;

/* Is there a device for it? Not for float64 products and not for labels. */
bool unicon__stats_device_serves(unicon_ctx *ctx, const unicon__stats_job *job);

/* Adds everything but the totals of rows and weights; a road, `state` the job. */
unicon_status unicon__stats_road(unicon_ctx *ctx, void *state, unicon__device_room *room);

#endif
