/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to features: unit rows, feature map, centring.
 *
 *     phi(x) = map(x / |x|) - mean
 *
 * A source is one side of a problem: which rows, seen through which map. Everything that walks the
 * data asks a source for tiles. */
#ifndef UNICON_CORE_FEATURE_H
#define UNICON_CORE_FEATURE_H

#include "io/rows.h"

/* A fitted feature map. Immutable once fitted, shared by threads. */
typedef struct unicon__map {
  int64_t in;     /* width of the rows */
  int64_t out;    /* features */
  bool normalize; /* scale rows to length 1 first */
  float *mean;    /* of the training features; NULL: no centring */
} unicon__map;

typedef struct unicon__source {
  const unicon_rows *rows;
  const int64_t *index; /* which rows, in this order; NULL: all */
  int64_t count;
  const unicon__map *map;
  const float *cache;       /* features computed before, or NULL */
  const int64_t *cache_row; /* their row for each row of the source; NULL: the same */
} unicon__source;

/* Floats that a buffer needs for each row of a tile. */
static inline int64_t unicon__map_room(const unicon__map *map) {
  return map->out;
}

/* Rows that can be used: finite and, when they are scaled, not all zero. Writes the usable row
 * numbers to a new array *keep of the frame, or sets it to NULL when all are. With `drop` false
 * the first bad row is an error that names file, row and column. `hash` (may be NULL) receives a
 * number that depends on every value. */
unicon_status unicon__usable_rows(unicon_ctx *ctx, const unicon_rows *rows, bool normalize,
                                  bool drop, const int64_t **keep, int64_t *count,
                                  uint64_t *hash);

/* Fits the linear map, phi(x) = x/|x| - mean, on the source's rows; source->map is not read. The
 * mean is allocated in `arena`. Sums in float64. */
unicon_status unicon__map_fit_linear(unicon_ctx *ctx, unicon__arena *arena,
                                     const unicon__source *source, bool normalize, bool center,
                                     unicon__map *map);

/* Features of rows pick[0..count-1] of the source (first.. when pick is NULL): a pointer to count
 * by map->out floats, the start of `buffer` (count times map room) or a place in the cache.
 * Thread-safe. */
const float *unicon__source_tile(const unicon__source *source, const int64_t *pick, int64_t first,
                                 int64_t count, float *buffer);

/* The same in two steps, for rows that were not checked before: raw rows into `buffer`, then
 * features in its place. */
void unicon__source_load(const unicon__source *source, const int64_t *pick, int64_t first,
                         int64_t count, float *buffer);
void unicon__map_apply(const unicon__map *map, float *buffer, int64_t count);

/* Computes the features of all rows once and keeps them, if that takes at most a quarter of the
 * memory still allowed; otherwise leaves the source as it is. */
unicon_status unicon__source_cache(unicon_ctx *ctx, unicon__source *source);

/* Number of the first row among first..first+count-1 that cannot be used, with its column (-1: all
 * zero), or -1. `buffer` holds the raw rows. */
int64_t unicon__first_bad_row(const float *buffer, int64_t count, int64_t width, bool normalize,
                              int64_t *column);

/* "FILE: row R, column C is not a finite number" or "FILE: row R is all zero". */
unicon_status unicon__bad_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                              int64_t column);

#endif
