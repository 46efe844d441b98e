/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/prepared.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { GUESS_ROWS = 512 }; /* whose mean is the shift of the sums: it needs to be near, not exact */

/* A first guess of the mean from rows spread over the source: sums about it lose no digits. */
static unicon_status guess_mean(unicon_ctx *ctx, unicon__arena *arena, unicon__side *side) {
  const unicon__source *source = &side->source;
  const int64_t p = source->map->out;
  const int64_t count = source->count < GUESS_ROWS ? source->count : GUESS_ROWS;
  int64_t pick[GUESS_ROWS];
  float *buffer, *mean;
  UNICON_NEW(ctx, buffer, count * unicon__map_room(source->map));
  UNICON_ARENA_NEW(ctx, arena, mean, p);
  for (int64_t i = 0; i < count; i++) pick[i] = i * source->count / count;
  const float *rows = unicon__source_tile(source, pick, 0, count, buffer);
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < p; k++) mean[k] += rows[i * p + k] / (float)count;
  unicon__drop(ctx, buffer);
  side->map.mean = mean;
  return UNICON_OK;
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

static unicon_status fit_map(unicon_ctx *ctx, const unicon__prepare_plan *plan, int s,
                             const unicon__source *rows, unicon__prepared *out) {
  unicon__side *side = &out->side[s];
  side->fitted = *rows;
  unicon__blas_begin();
  unicon_status status = unicon__map_fit(ctx, &out->arena, plan->map, s, plan->landmark[s],
                                         plan->landmarks, rows, &side->map);
  side->source.map = &side->map;
  if (status == UNICON_OK && plan->centring != UNICON__CENTRE_NONE)
    status = guess_mean(ctx, &out->arena, side);
  unicon__blas_end();
  return status;
}

static unicon_status fit_maps(unicon_ctx *ctx, const unicon__prepare_plan *plan, bool shared,
                              unicon__prepared *out) {
  const unicon__source *x = &plan->data->x, *y = &plan->data->y;
  unicon__source both;
  if (!shared) {
    UNICON_TRY(fit_map(ctx, plan, 0, x, out));
    return fit_map(ctx, plan, 1, y, out);
  }
  if (x->rows->width != y->rows->width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "shared_encoder needs rows of equal width, but %s has %lld values a row "
                        "and %s has %lld",
                        x->rows->name, (long long)x->rows->width, y->rows->name,
                        (long long)y->rows->width);
  UNICON_TRY(stack(ctx, x, y, &both));
  UNICON_TRY(fit_map(ctx, plan, 0, &both, out));
  out->side[1].map = out->side[0].map;
  out->side[1].fitted = both;
  out->side[1].source.map = &out->side[1].map;
  return UNICON_OK;
}

/* What the features of a side cost, about: products with its landmarks and their factor. */
static double work_of(const unicon__side *side) {
  const unicon__map *map = &side->map;
  return (double)side->source.count * (double)map->out * (2 * (double)map->in + (double)map->out);
}

/* Rows whose features are kept are looked at before these are made. */
static unicon_status look_before(unicon_ctx *ctx, const unicon__batch *data) {
  if (data->x.look) UNICON_TRY(unicon__look_refuse(ctx, data->x.look));
  return data->y.look ? unicon__look_refuse(ctx, data->y.look) : UNICON_OK;
}

unicon_status unicon__prepare(unicon_ctx *ctx, const unicon__prepare_plan *plan,
                              unicon__prepared *out) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  *out = (unicon__prepared){.pairs = plan->data->pairs, .centring = plan->centring};
  unicon__arena_init(&out->arena, ctx->arena.budget);
  unicon__arena_init(&out->sums, ctx->arena.budget);
  out->side[0].source = plan->data->x;
  out->side[1].source = plan->data->y;
  int stage = unicon__stage_begin(ctx, NULL, 0.1);
  UNICON_TRY(fit_maps(ctx, plan, plan->centring == UNICON__CENTRE_SHARED, out));
  unicon__stage_end(ctx, stage);
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__keep(ctx, &out->arena, &out->side[s].source, &out->side[s].kept));
  for (int s = 0; s < 2; s++) {
    const double work = work_of(&out->side[s]), other = work_of(&out->side[1 - s]);
    if (!plan->cache && out->side[s].map.kind == UNICON__MAP_LINEAR) continue;
    if (plan->away && unicon__is_kept(&out->side[s].source)) continue;
    UNICON_TRY(look_before(ctx, plan->data));
    stage = unicon__stage_begin(ctx, NULL, 0.5 * work / (work + other));
    UNICON_TRY(unicon__source_cache(ctx, &out->arena, &out->side[s].source, &out->side[s].cache));
    unicon__stage_end(ctx, stage);
  }
  stage = unicon__stage_begin(ctx, NULL, 1);
  const unicon__batch set = unicon__prepared_set(out);
  UNICON_TRY(unicon__stats_open(ctx, &out->sums, &set, all, plan->holds, &out->stats));
  UNICON_TRY(unicon__stats_add(ctx, &set, 1, &out->stats));
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

void unicon__prepared_drop_sums(unicon__prepared *prepared) {
  if (prepared->sums.budget) unicon__arena_release(&prepared->sums);
  prepared->sums = (unicon__arena){.budget = NULL};
  const unicon__stats *stats = &prepared->stats; /* how many rows they were of remains */
  prepared->stats = (unicon__stats){.rows = {stats->rows[0], stats->rows[1]}};
}

void unicon__prepared_close(unicon__prepared *prepared) {
  unicon__prepared_drop_sums(prepared);
  for (int s = 0; s < 2; s++) unicon__kept_close(&prepared->side[s].kept);
  if (prepared->arena.budget) unicon__arena_release(&prepared->arena);
  *prepared = (unicon__prepared){.pairs = NULL};
}

unicon__batch unicon__prepared_set(const unicon__prepared *prepared) {
  return (unicon__batch){
      .x = prepared->side[0].source, .y = prepared->side[1].source, .pairs = prepared->pairs};
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

/* The rows themselves may differ: what is done with them may be the reason. */
static unicon_status fail_alike(unicon_ctx *ctx, const unicon__side *side) {
  const unicon__map *map = &side->map;
  const bool wide = map->kind != UNICON__MAP_LINEAR && unicon__kernel_has_width(map->kernel.kind);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s: all rows are the same up to rounding%s, so there is nothing to align%s",
                      side->source.rows->name, map->normalize ? ", once their length is 1" : "",
                      wide             ? "; a smaller width tells more rows apart"
                      : map->normalize ? "; normalize off leaves their lengths"
                                       : "");
}

/* Trace of sigma, from float32 products: it may have vanished, or left their range. */
static double trace_of(const unicon__moments *m, int s) {
  double trace = 0;
  for (int64_t k = 0; k < m->p[s]; k++) trace += m->sigma[s][k * m->p[s] + k];
  return trace;
}

unicon_status unicon__moments_check(unicon_ctx *ctx, const unicon__prepared *prepared,
                                    const unicon__moments *moments) {
  for (int s = 0; s < 2; s++) {
    const unicon__side *side = &prepared->side[s];
    const double spread = moments->spread[s];
    double square = spread;
    for (int64_t k = 0; k < moments->p[s]; k++) {
      const double shift = side->map.mean ? (double)side->map.mean[k] : 0;
      square += (shift + moments->mean[s][k]) * (shift + moments->mean[s][k]);
    }
    if (!isfinite(square)) return fail_size(ctx, side, square);
    if (spread > 1e-11 * square) {
      const double trace = moments->sigma[s] ? trace_of(moments, s) : spread;
      if (!isfinite(trace) || !(trace > 0)) return fail_size(ctx, side, trace);
      continue;
    }
    if (square < (double)FLT_MIN) return fail_size(ctx, side, square);
    return fail_alike(ctx, side);
  }
  return UNICON_OK;
}

/* Kept features less what their mean was guessed wrong by. */
typedef struct centring {
  float *cache;
  const double *mean;
  int64_t n, p;
} centring;

enum { CENTRE_ROWS = 256 };

static void centre_rows(void *state, unicon__cell cell) {
  const centring *c = state;
  const int64_t from = cell.row * CENTRE_ROWS;
  for (int64_t i = from; i < c->n && i < from + CENTRE_ROWS; i++)
    for (int64_t k = 0; k < c->p; k++) c->cache[i * c->p + k] -= (float)c->mean[k];
}

unicon_status unicon__prepared_centre(unicon_ctx *ctx, unicon__prepared *prepared,
                                      unicon__moments *moments) {
  for (int s = 0; s < 2 && prepared->centring != UNICON__CENTRE_NONE; s++) {
    unicon__side *side = &prepared->side[s];
    const int64_t p = side->map.out, n = side->source.count;
    UNICON_TRY(unicon__kept_shift(&side->kept, moments->mean[s]));
    const bool own = s == 0 || side->map.mean != prepared->side[0].map.mean;
    centring c = {side->cache, moments->mean[s], n, p};
    if (side->cache)
      UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, (n + CENTRE_ROWS - 1) / CENTRE_ROWS,
                                    centre_rows, &c));
    for (int64_t k = 0; k < p && own; k++)
      side->map.mean[k] = (float)((double)side->map.mean[k] + moments->mean[s][k]);
  }
  for (int s = 0; s < 2; s++)
    memset(moments->mean[s], 0, (size_t)moments->p[s] * sizeof *moments->mean[s]);
  return UNICON_OK;
}

unicon_status unicon__validation_through(unicon_ctx *ctx, const unicon__validation *held,
                                         const unicon__prepared *prepared,
                                         unicon__balancing balance, int64_t bank, uint64_t seed,
                                         unicon__validation *out) {
  *out = *held;
  out->balance = balance;
  for (int s = 0; s < 2; s++) {
    const unicon__side *side = &prepared->side[s];
    float *cache;
    out->side[s].map = &side->map;
    out->side[s].cache = NULL;
    out->side[s].cache_row = NULL;
    out->side[s].kept = NULL;
    if (!unicon__is_kept(&side->source))
      UNICON_TRY(unicon__source_cache(ctx, &ctx->arena, &out->side[s], &cache));
    if (balance.kind == UNICON__BALANCE_OFF || bank == 0) continue;
    UNICON_TRY(unicon__validation_bank(ctx, &side->source, prepared->pairs, s, bank, seed, out));
  }
  return UNICON_OK;
}
