/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/side.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "linalg/blas.h"
#include "linalg/vec.h"

enum { GUESS_ROWS = 512 };

/* A first guess of the mean from rows spread over the source, so that one pass gives the exact mean
 * and the covariance without cancellation. */
static unicon_status guess_mean(unicon_ctx *ctx, const unicon__source *source, float *mean) {
  const int64_t p = source->map->out;
  const int64_t count = source->count < GUESS_ROWS ? source->count : GUESS_ROWS;
  int64_t pick[GUESS_ROWS];
  float *buffer;
  UNICON_NEW(ctx, buffer, count * unicon__map_room(source->map));
  for (int64_t i = 0; i < count; i++) pick[i] = i * source->count / count;
  const float *rows = unicon__source_tile(source, pick, 0, count, buffer);
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < p; k++) mean[k] += rows[i * p + k] / (float)count;
  unicon__drop(ctx, buffer);
  return UNICON_OK;
}

/* Squares are summed from float32 products: says where values leave their range. */
static unicon_status fail_size(unicon_ctx *ctx, const unicon__side *side, double square) {
  const bool large = !(square <= (double)FLT_MAX); /* or NaN, a difference of infinities */
  return unicon__fail(ctx, UNICON_ERR_DATA, "%s: %s; scale the rows %s, or set normalize on",
                      side->source.rows->name,
                      large ? "values are too large, squares of them pass float32"
                            : "values are zero or too small, squares of them vanish in float32",
                      large ? "down" : "up");
}

/* Refuses rows that are all alike: centred, they are rounding noise and nothing else. `spread` is
 * the trace of their covariance. */
static unicon_status check_spread(unicon_ctx *ctx, const unicon__side *side, double spread) {
  double square = 0;
  for (int64_t k = 0; k < side->map.out; k++)
    square += (double)side->map.mean[k] * (double)side->map.mean[k];
  if (spread > 1e-11 * (square + spread)) return UNICON_OK;
  if (!isfinite(square + spread) || square + spread < (double)FLT_MIN)
    return fail_size(ctx, side, square + spread);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s: all rows are the same up to rounding, so there is nothing to align",
                      side->source.rows->name);
}

/* Mean of the features and, with sigma, their covariance, in one pass where there is no cache. */
static unicon_status center(unicon_ctx *ctx, unicon__arena *arena, float *cache,
                            unicon__side *side) {
  const int64_t p = side->map.out;
  float *mean;
  double *rest;
  UNICON_ARENA_NEW(ctx, arena, mean, p);
  if (cache || !side->sigma) {
    double spread;
    UNICON_TRY(unicon__feature_mean(ctx, &side->source, mean, &spread));
    side->map.mean = mean;
    UNICON_TRY(check_spread(ctx, side, spread));
    for (int64_t i = 0; cache && i < side->source.count; i++)
      unicon__vec_best()->scale_shift(cache + i * p, p, 1.0f, mean);
    return side->sigma ? unicon__second_moment(ctx, &side->source, side->sigma, NULL) : UNICON_OK;
  }
  UNICON_TRY(guess_mean(ctx, &side->source, mean));
  side->map.mean = mean;
  UNICON_NEW(ctx, rest, p);
  UNICON_TRY(unicon__second_moment(ctx, &side->source, side->sigma, rest));
  for (int64_t i = 0; i < p; i++)
    for (int64_t k = 0; k <= i; k++) side->sigma[i * p + k] -= rest[i] * rest[k];
  for (int64_t k = 0; k < p; k++) mean[k] = (float)((double)mean[k] + rest[k]);
  unicon__drop(ctx, rest);
  double spread = 0;
  for (int64_t k = 0; k < p; k++) spread += side->sigma[k * p + k];
  return check_spread(ctx, side, spread);
}

static unicon_status fit_map(unicon_ctx *ctx, unicon__arena *arena, const unicon__side_plan *plan,
                             const unicon__source *source, unicon__map *map) {
  unicon__blas_begin();
  const unicon_status status = unicon__map_fit(ctx, arena, plan->options, plan->number,
                                               plan->landmark, plan->landmarks, source, map);
  unicon__blas_end();
  return status;
}

unicon_status unicon__side_fit(unicon_ctx *ctx, unicon__arena *arena, const unicon__side_plan *plan,
                               const unicon__source *source, unicon__side *side) {
  float *cache = NULL;
  *side = (unicon__side){.source = *source, .fitted = *source};
  UNICON_TRY(fit_map(ctx, arena, plan, source, &side->map));
  side->source.map = &side->map;
  if (plan->cache || side->map.kind != UNICON__MAP_LINEAR)
    UNICON_TRY(unicon__source_cache(ctx, &side->source, &cache));
  if (plan->covariance) UNICON_NEW(ctx, side->sigma, side->map.out * side->map.out);
  if (unicon__word(plan->options, UNICON__CENTER) == 0)
    UNICON_TRY(center(ctx, arena, cache, side));
  else if (side->sigma)
    UNICON_TRY(unicon__second_moment(ctx, &side->source, side->sigma, NULL));
  if (!side->sigma) return UNICON_OK;
  double trace = 0;
  for (int64_t k = 0; k < side->map.out; k++) trace += side->sigma[k * side->map.out + k];
  if (!isfinite(trace) || trace <= 0) return fail_size(ctx, side, trace);
  unicon__blas_begin();
  const unicon_status status =
      unicon__largest_eigenvalue(ctx, side->sigma, side->map.out, &side->mu);
  unicon__blas_end();
  return status;
}

/* Rows of x and then of y as one source; its pieces live in the frame. */
static unicon_status stack(unicon_ctx *ctx, const unicon__source *x, const unicon__source *y,
                           unicon__source *out) {
  unicon_rows *rows;
  int64_t *index;
  UNICON_NEW(ctx, rows, 1);
  rows->name = x->rows->name;
  rows->width = x->rows->width;
  rows->count = x->rows->count + y->rows->count;
  rows->segments = x->rows->segments + y->rows->segments;
  UNICON_NEW(ctx, rows->segment, rows->segments);
  memcpy(rows->segment, x->rows->segment, (size_t)x->rows->segments * sizeof *rows->segment);
  for (int64_t k = 0; k < y->rows->segments; k++) {
    rows->segment[x->rows->segments + k] = y->rows->segment[k];
    rows->segment[x->rows->segments + k].first += x->rows->count;
  }
  UNICON_NEW(ctx, index, x->count + y->count);
  for (int64_t i = 0; i < x->count; i++) index[i] = x->index ? x->index[i] : i;
  for (int64_t i = 0; i < y->count; i++)
    index[x->count + i] = x->rows->count + (y->index ? y->index[i] : i);
  *out = (unicon__source){.rows = rows, .index = index, .count = x->count + y->count};
  return UNICON_OK;
}

unicon_status unicon__sides_fit_shared(unicon_ctx *ctx, unicon__arena *arena,
                                       const unicon__side_plan *plan, const unicon__source *x,
                                       const unicon__source *y, unicon__side *side) {
  if (x->rows->width != y->rows->width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "shared_encoder needs rows of equal width, but %s has %lld values a row "
                        "and %s has %lld",
                        x->rows->name, (long long)x->rows->width, y->rows->name,
                        (long long)y->rows->width);
  unicon__source both;
  UNICON_TRY(stack(ctx, x, y, &both));
  UNICON_TRY(unicon__side_fit(ctx, arena, plan, &both, &side[0]));
  side[1] = side[0];
  const float *cache = side[0].source.cache;
  for (int s = 0; s < 2; s++) {
    side[s].source = s == 0 ? *x : *y;
    side[s].source.map = &side[s].map;
    side[s].source.cache_row = NULL;
    side[s].source.cache = cache ? cache + (s == 0 ? 0 : x->count) * side[s].map.out : NULL;
  }
  return UNICON_OK;
}

unicon_status unicon__side_metric(unicon_ctx *ctx, const unicon__side *side, double power,
                                  double ridge, unicon__whitening *out) {
  unicon__blas_begin();
  const unicon_status status =
      unicon__whiten_build(ctx, side->sigma, side->map.out, side->mu, power, ridge, out);
  unicon__blas_end();
  return status;
}
