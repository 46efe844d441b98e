/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a source as features on the device: what its roads begin with.
 *
 * A feed hands out blocks. Features that are kept on the device are used there; those kept on the
 * host are copied; else raw rows are copied as they lie in memory, in their own type where they lie
 * side by side, and become features on the device. */
#ifndef UNICON_FEATURES_FEED_H
#define UNICON_FEATURES_FEED_H

#include "device/use.h"
#include "features/feature.h"

/* Features of all rows of a source, on the device for as long as a fit has its rows prepared. */
typedef struct unicon__kept {
  unicon_ctx *ctx;
  unicon__device_room room;
  unicon__matrix *phi;
  int64_t count;
  bool alone;              /* the host cannot make them from its rows */
  const unicon__map *map;  /* that made them */
  const unicon_rows *rows; /* of these rows ... */
  const int64_t *place;    /* ... row i lies at place[i]; NULL: at i */
} unicon__kept;

/* Keeps the features of a source on the device, if there is one and they take at most a third of
 * the memory that it has left; else leaves `kept` empty. The source then points to it. `arena` is
 * for small things. Close before the context ends, also after a failure. */
unicon_status unicon__keep(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                           unicon__kept *kept);
void unicon__kept_close(unicon__kept *kept);

/* The same wherever a device is open: for rows that many stages will use there. */
unicon_status unicon__keep_rows(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                                unicon__kept *kept);

/* Other rows made of those of a source: phi W + offset, or phi W to length 1 if `unit`; W is features
 * by q. */
typedef struct unicon__turn {
  const char *name; /* of the stage */
  const unicon__source *source;
  const float *weight, *offset; /* offset may be NULL */
  bool unit;
} unicon__turn;

/* Keeps such rows as those of a source `out` of as many rows through a map of q columns, which has
 * no other features: the host has its own in out->cache, or asks for them with unicon__kept_fetch.
 * *done: they are there. */
unicon_status unicon__keep_turned(unicon_ctx *ctx, const unicon__turn *turn, unicon__source *out,
                                  unicon__kept *kept, bool *done);

/* Kept features to the host, source->count rows. */
unicon_status unicon__kept_fetch(unicon_ctx *ctx, const unicon__source *source, float *out);

/* Moves the kept features, if there are any, by a new mean: phi -= by. Where the device cannot, they
 * are no longer kept. */
unicon_status unicon__kept_shift(unicon__kept *kept, const double *by);

/* Kept features of this source, through its map? */
bool unicon__is_kept(const unicon__source *source);

/* Computes the features of all rows once and keeps them in `arena`, if that takes at most half of
 * the memory still allowed (or 1 GB of 2); otherwise leaves the source as it is. *cache (may be
 * changed until the source is used) is the kept array, or NULL. */
unicon_status unicon__source_cache(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                                   float **cache);

/* Where row `row` of the source lies among them. */
static inline int64_t unicon__kept_place(const unicon__source *source, int64_t row) {
  const int64_t own = source->index ? source->index[row] : row;
  return source->kept->place ? source->kept->place[own] : own;
}

typedef struct unicon__feed {
  unicon__device_room *room;
  const unicon__source *source;
  bool check; /* bad rows are an error */
  unicon__row_need need;
  int64_t most; /* rows of a block */
  unicon__device_map map;
  unicon__matrix *raw, *phi;
  float *staging;
  int64_t *place, *bad, *where; /* rows to gather; per piece of loading: a bad row, its column */
} unicon__feed;

/* A feed for blocks of at most `most` rows, its matrices in `room`, memory in the frame. It does
 * not check rows; the caller may set `check` and `need`. */
unicon_status unicon__feed_open(unicon_ctx *ctx, unicon__device_room *room,
                                const unicon__source *source, int64_t most, unicon__feed *out);

/* Features of rows pick[0..count-1] of the source (first.. when pick is NULL): rows *at.. of *phi,
 * until the next call. */
unicon_status unicon__feed_block(unicon_ctx *ctx, unicon__feed *feed, const int64_t *pick,
                                 int64_t first, int64_t count, const unicon__matrix **phi,
                                 int64_t *at);

/* How many of `rows` rows a block has: unicon__device_rows for those of a feed and `more` bytes of
 * the device beside them. */
int64_t unicon__feed_rows(unicon_ctx *ctx, const unicon__source *source, int64_t rows, double more,
                          double share);

#endif
