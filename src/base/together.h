/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes in one call. All of them walk the same road over the same data; where a stage is
 * worth it each does its share of the rows, and what they have is put together:
 *
 *     const unicon__share own = unicon__share_of(ctx, n, TILE_ROWS, flops);
 *     ... rows own.first .. own.first + own.count - 1 ...
 *     UNICON_TRY(unicon__sum_all(ctx, &own, sums, count));
 *
 * Alone, or where the work is small, the share is everything and putting together does nothing. That
 * depends on what all processes know alike, so all decide alike.
 *
 * Each exchange begins with a word of every process: that it is well, and what it is about to do. Who
 * fails says so once, when its call ends, and the others hear it in the exchange they come to next; so
 * nobody waits for someone who has gone. A word about something else than the others' means that their
 * data differ, and is an error as well. */
#ifndef UNICON_BASE_TOGETHER_H
#define UNICON_BASE_TOGETHER_H

#include "base/options.h"

/* Rows of this process. */
typedef struct unicon__share {
  int64_t first, count;
  int64_t all, block; /* rows of all; first is a multiple of `block` */
  bool divided;       /* others have the rest */
} unicon__share;

/* Is this a call of several processes? How many there are (1: no). */
bool unicon__together(const unicon_ctx *ctx);
int64_t unicon__process_count(const unicon_ctx *ctx);

/* The part of `count` rows whose stage takes so many flops, in whole blocks of so many rows: where
 * these are the tiles of the stage, each row is as one process would make it, to the byte. */
unicon__share unicon__share_of(const unicon_ctx *ctx, int64_t count, int64_t block, double flops);

/* Sums over the processes of numbers that are those of one's own share; not divided: nothing. */
unicon_status unicon__sum_all(unicon_ctx *ctx, const unicon__share *share, double *values,
                              int64_t count);
unicon_status unicon__sum_floats(unicon_ctx *ctx, const unicon__share *share, float *values,
                                 int64_t count);
unicon_status unicon__largest_of_all(unicon_ctx *ctx, const unicon__share *share, double *values,
                                     int64_t count);
/* Rows of `bytes` bytes: one's own share lies in its place, the others' come. */
unicon_status unicon__gather_rows(unicon_ctx *ctx, const unicon__share *share, void *rows,
                                  int64_t bytes);
/* What process 0 has, to all: for what a clock says. */
unicon_status unicon__as_first(unicon_ctx *ctx, void *bytes, int64_t count);

/* A public call of all processes:
 *
 *     unicon_status status = unicon__together_begin(ctx, options, "search: %lld ...", ...);
 *     if (status == UNICON_OK) status = body(...);
 *     status = unicon__together_end(ctx, status);
 *
 * Begin compares versions, options and that text. A body that succeeded here may have failed
 * elsewhere: what it made is then to be destroyed. */
unicon_status unicon__together_begin(unicon_ctx *ctx, const unicon_options *options,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));
unicon_status unicon__together_end(unicon_ctx *ctx, unicon_status status);

#endif
