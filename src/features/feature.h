/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to features: unit rows, feature map, centring.
 *
 *     linear        phi(x) = x/|x| - mean
 *     exact,nystrom phi(x) = factor^T k(landmarks, x/|x|) - mean,
 *                   factor factor^T = (K + ridge I)^-1; in a model the weights have taken the
 *                   factor in, and phi(x) = k(landmarks, x/|x|) - mean. For kernels of distances
 *                   both the landmarks and x/|x| without the mean of the landmarks, which changes
 *                   no distance
 *     random        phi(x) = sqrt(2/m) relu(W x/|x|)^n - mean, or
 *                   sqrt(2/m) cos(W x/|x| + b) - mean
 *
 * A source is one side of a problem: which rows, seen through which map. Everything that walks the
 * data asks a source for tiles. */
#ifndef UNICON_FEATURES_FEATURE_H
#define UNICON_FEATURES_FEATURE_H

#include "base/number.h"
#include "features/kernel.h"
#include "features/usable.h"

/* In the order of the words of option `map`, after auto. */
typedef enum unicon__map_kind {
  UNICON__MAP_LINEAR,
  UNICON__MAP_EXACT,
  UNICON__MAP_NYSTROM,
  UNICON__MAP_RANDOM
} unicon__map_kind;

/* A fitted feature map. Immutable once fitted, shared by threads. */
typedef struct unicon__map {
  unicon__map_kind kind;
  int64_t in;     /* width of the rows */
  int64_t out;    /* features */
  bool normalize; /* scale rows to length 1 first */
  float *mean;    /* of the training features; NULL: no centring */
  /* all but linear: */
  unicon__kernel kernel;
  int64_t points; /* landmarks or random directions */
  float *base;    /* points by in: landmarks or W */
  float *center;  /* in: mean of the landmarks where the kernel is one of distances, else NULL */
  float *near;    /* points by in: landmarks - center, where there is one */
  float *square;  /* points: squared lengths of the landmarks (those of `near`, where there is one),
                     or b of Fourier features */
  float *factor;  /* points by out, upper triangular; NULL: none, out is points */
} unicon__map;

typedef struct unicon__source {
  const unicon_rows *rows;
  const int64_t *index; /* which rows, in this order; NULL: all */
  int64_t count;
  const unicon__map *map;
  const float *cache;              /* features computed before, or NULL */
  const int64_t *cache_row;        /* their row for each row of the source; NULL: the same */
  const struct unicon__kept *kept; /* features on the device (features/feed.h), or NULL */
  unicon__look *look;              /* rows that nobody has looked at so far (all of them, in
                                      order): who walks them first does; else NULL */
} unicon__source;

/* Floats that a buffer needs for each row of a tile: features, raw row, kernel values. */
static inline int64_t unicon__map_room(const unicon__map *map) {
  return map->kind == UNICON__MAP_LINEAR ? map->in : map->out + map->in + map->points + 1;
}

/* Kernel values with landmarks? */
static inline bool unicon__map_is_kernel(const unicon__map *map) {
  return map->kind == UNICON__MAP_EXACT || map->kind == UNICON__MAP_NYSTROM;
}

/* Where raw rows go in a buffer for `count` rows. */
static inline float *unicon__map_raw(const unicon__map *map, float *buffer, int64_t count) {
  return map->kind == UNICON__MAP_LINEAR ? buffer : buffer + count * map->out;
}

/* What the rows of a map must be. */
static inline unicon__row_need unicon__map_need(const unicon__map *map) {
  return map->normalize               ? UNICON__ROW_DIRECTED
         : unicon__map_is_kernel(map) ? UNICON__ROW_SQUARED
                                      : UNICON__ROW_FINITE;
}

/* Mean of the source's features (its map's own mean left aside) and, in *spread (may be NULL), the
 * trace of their covariance; sums in float64. */
unicon_status unicon__feature_mean(unicon_ctx *ctx, const unicon__source *source, float *mean,
                                   double *spread);

/* Features of rows pick[0..count-1] of the source (first.. when pick is NULL): a pointer to count
 * by map->out floats, the start of `buffer` (count times map room) or a place in the cache.
 * Thread-safe. */
const float *unicon__source_tile(const unicon__source *source, const int64_t *pick, int64_t first,
                                 int64_t count, float *buffer);

/* The same in two steps, for rows that were not checked before: raw rows to unicon__map_raw of the
 * buffer, then features to its start. */
void unicon__source_load(const unicon__source *source, const int64_t *pick, int64_t first,
                         int64_t count, float *raw);
void unicon__map_apply(const unicon__map *map, float *buffer, int64_t count);

/* A step of that: products of raw rows (as the map wants them) with its points become features, not
 * centred. `square` has room for count numbers. */
void unicon__map_pointwise(const unicon__map *map, const float *raw, int64_t count, float *square,
                           float *products);

/* Scales raw rows of `width` to length 1. */
void unicon__unit_rows(float *rows, int64_t count, int64_t width);

/* What products with the landmarks in `base` need: `square` and, for a kernel of distances,
 * `center` and `near`. Allocated in `arena`. */
unicon_status unicon__map_settle(unicon_ctx *ctx, unicon__arena *arena, unicon__map *map);

/* Mean of `count` rows of `width`, in float64. */
void unicon__mean_row(const float *rows, int64_t count, int64_t width, double *mean);

/* About what the features of a row take. */
double unicon__feature_flops(const unicon__source *source);

/* The features of all rows, one after the other, made on the host. */
unicon_status unicon__source_fill(unicon_ctx *ctx, const unicon__source *source, float *out);

#endif
