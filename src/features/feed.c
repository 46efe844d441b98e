/* SPDX-License-Identifier: Apache-2.0 */
#include "features/feed.h"

#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "linalg/convert.h"

enum { LOAD_ROWS = 256 }; /* converted at a time: a piece of work for a thread */

/* Kernels of both headers are the same numbers. */
_Static_assert((int)UNICON__DEVICE_KERNEL_COSINE == (int)UNICON__KERNEL_COSINE &&
                   (int)UNICON__DEVICE_KERNEL_ARCCOS1 == (int)UNICON__KERNEL_ARCCOS1 &&
                   (int)UNICON__DEVICE_KERNEL_EXPCOS == (int)UNICON__KERNEL_EXPCOS &&
                   (int)UNICON__DEVICE_KERNEL_MATERN52 == (int)UNICON__KERNEL_MATERN52 &&
                   (int)UNICON__DEVICE_KERNEL_POLY == (int)UNICON__KERNEL_POLY,
               "kernels of device/device.h");
_Static_assert((int)UNICON__ELEMENT_F16 == (int)UNICON_F16 &&
                   (int)UNICON__ELEMENT_U8 == (int)UNICON_U8,
               "elements of device/device.h");

/* ---- the map ------------------------------------------------------------------------------ */

static unicon_status upload_map(unicon_ctx *ctx, unicon__device_room *room, const unicon__map *map,
                                unicon__device_map *out) {
  const int64_t in = map->in, m = map->points;
  unicon__matrix *base = NULL, *square = NULL, *center = NULL, *factor = NULL, *mean = NULL;
  if (map->kind != UNICON__MAP_LINEAR) {
    UNICON_TRY(
        unicon__device_copy(ctx, room, map->center ? map->near : map->base, m, in, in, &base));
    UNICON_TRY(unicon__device_copy(ctx, room, map->square, 1, m, m, &square));
    UNICON_TRY(unicon__device_copy(ctx, room, map->center, 1, in, in, &center));
    UNICON_TRY(unicon__device_copy(ctx, room, map->factor, m, map->out, map->out, &factor));
  }
  UNICON_TRY(unicon__device_copy(ctx, room, map->mean, 1, map->out, map->out, &mean));
  *out = (unicon__device_map){.kind = map->kind == UNICON__MAP_LINEAR   ? UNICON__DEVICE_LINEAR
                                      : map->kind == UNICON__MAP_RANDOM ? UNICON__DEVICE_RANDOM
                                                                        : UNICON__DEVICE_KERNEL,
                              .kernel = (int32_t)unicon__kernel_plain(map->kernel.kind),
                              .normalize = map->normalize,
                              .degree = map->kernel.degree,
                              .width = map->kernel.width,
                              .in = in,
                              .points = map->kind == UNICON__MAP_LINEAR ? 0 : m,
                              .out = map->out,
                              .base = base,
                              .square = square,
                              .center = center,
                              .factor = factor,
                              .mean = mean};
  return UNICON_OK;
}

/* ---- rows of the host --------------------------------------------------------------------- */

typedef struct loading {
  const unicon__feed *feed;
  const int64_t *pick;
  int64_t first, count;
} loading;

static void load_piece(void *state, unicon__cell cell) {
  const loading *l = state;
  const unicon__feed *f = l->feed;
  const int64_t at = cell.row * LOAD_ROWS, left = l->count - at;
  const int64_t count = left < LOAD_ROWS ? left : LOAD_ROWS, width = f->source->rows->width;
  float *to = f->staging + at * width;
  unicon__source_load(f->source, l->pick ? l->pick + at : NULL, l->pick ? 0 : l->first + at, count,
                      to);
  f->bad[cell.row] =
      f->check ? unicon__first_bad_row(to, count, width, f->need, &f->where[cell.row]) : -1;
}

/* Raw rows into the staging room; fails at the first that cannot be used. */
static unicon_status load(unicon_ctx *ctx, const unicon__feed *f, const int64_t *pick,
                          int64_t first, int64_t count) {
  loading l = {f, pick, first, count};
  const int64_t pieces = (count + LOAD_ROWS - 1) / LOAD_ROWS;
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, pieces, load_piece, &l));
  for (int64_t k = 0; k < pieces; k++)
    if (f->bad[k] >= 0)
      return unicon__bad_row(ctx, f->source->rows, first + k * LOAD_ROWS + f->bad[k], f->where[k]);
  return UNICON_OK;
}

/* The segment that has all of these rows with their elements side by side, or NULL. */
static const unicon__segment *lies_in(const unicon__source *source, const int64_t *pick,
                                      int64_t first, int64_t count) {
  const unicon_rows *rows = source->rows;
  for (int64_t k = 0; k < rows->segments && !pick && !source->index; k++) {
    const unicon__segment *s = &rows->segment[k];
    if (first >= s->first && first + count <= s->first + s->count &&
        s->col_stride == unicon__dtype_size(s->dtype))
      return s;
  }
  return NULL;
}

/* Do these rows lie in memory that the device in force can read? */
static bool lies_away(const unicon_ctx *ctx, const unicon__segment *s) {
  return s && s->away && ctx->where.table->receive &&
         s->away->kind == ctx->where.table->memory_kind;
}

/* Rows of a segment, in their own type, to the room for raw rows. */
static unicon_status send_raw(unicon_ctx *ctx, const unicon__feed *f, const unicon__segment *s,
                              int64_t first, int64_t count) {
  if (lies_away(ctx, s))
    return unicon__on(ctx, receive, f->raw, 0, count, &s->away->row,
                      s->away_first + first - s->first);
  return unicon__on(ctx, upload, f->raw, 0, count, s->data + (first - s->first) * s->row_stride,
                    (int)s->dtype, s->row_stride);
}

/* Looks there for a row that cannot be used, and fetches it to say why. */
static unicon_status check_away(unicon_ctx *ctx, const unicon__feed *f, int64_t first,
                                int64_t count) {
  const int64_t width = f->source->rows->width;
  int64_t bad = -1, column = UNICON__ROW_ZERO;
  UNICON_TRY(unicon__on(ctx, flaw, f->raw, 0, count, f->need == UNICON__ROW_DIRECTED, &bad));
  if (bad < 0) return UNICON_OK;
  UNICON_TRY(unicon__on(ctx, download, f->raw, bad, 1, f->staging, width * 4));
  (void)unicon__first_bad_row(f->staging, 1, width, f->need, &column);
  return unicon__bad_row(ctx, f->source->rows, first + bad, column);
}

/* To rows to_first.. of `to`, as the next one. */
static unicon_status feed_raw(unicon_ctx *ctx, const unicon__feed *f, const int64_t *pick,
                              int64_t first, int64_t count, unicon__matrix *to, int64_t to_first) {
  const int64_t width = f->source->rows->width;
  const unicon__segment *s = lies_in(f->source, pick, first, count);
  const bool there = lies_away(ctx, s) && f->need != UNICON__ROW_SQUARED;
  if (s && (there || !f->check)) {
    UNICON_TRY(send_raw(ctx, f, s, first, count));
    if (f->check) UNICON_TRY(check_away(ctx, f, first, count));
  } else {
    UNICON_TRY(load(ctx, f, pick, first, count));
    UNICON_TRY(unicon__on(ctx, upload, f->raw, 0, count, f->staging, UNICON__ELEMENT_F32,
                          width * (int64_t)sizeof *f->staging));
  }
  return unicon__on(ctx, features, &f->map, f->raw, count, to, to_first);
}

/* Features that the host keeps. */
static unicon_status feed_cached(unicon_ctx *ctx, const unicon__feed *f, const int64_t *pick,
                                 int64_t first, int64_t count, unicon__matrix *to,
                                 int64_t to_first) {
  const float *rows = unicon__source_tile(f->source, pick, first, count, f->staging);
  return unicon__on(ctx, upload, to, to_first, count, rows, UNICON__ELEMENT_F32,
                    f->source->map->out * (int64_t)sizeof *rows);
}

/* ---- feeds -------------------------------------------------------------------------------- */

bool unicon__is_kept(const unicon__source *source) {
  const unicon__kept *kept = source->kept;
  return kept && kept->phi && kept->map == source->map && kept->rows == source->rows;
}

int64_t unicon__feed_rows(unicon_ctx *ctx, const unicon__source *source, int64_t rows, double more,
                          double share) {
  const unicon__map *map = source->map;
  const bool kept = unicon__is_kept(source);
  /* raw rows and features, and what the device needs between them */
  const double bytes = 4.0 * (double)(2 * map->in + map->out + 2 * map->points);
  const double host = 4.0 * (double)(source->cache ? map->out : map->in);
  return unicon__device_rows(ctx, rows, more + (kept ? 0 : bytes), share, kept ? 0 : host);
}

unicon_status unicon__feed_open(unicon_ctx *ctx, unicon__device_room *room,
                                const unicon__source *source, int64_t most, unicon__feed *out) {
  const unicon__map *map = source->map;
  const int64_t pieces = (most + LOAD_ROWS - 1) / LOAD_ROWS;
  const bool kept = unicon__is_kept(source), cached = !kept && source->cache;
  *out = (unicon__feed){.room = room, .source = source, .most = most};
  if (kept) {
    UNICON_NEW(ctx, out->place, most);
    return UNICON_OK;
  }
  UNICON_NEW(ctx, out->staging, most * (cached ? map->out : map->in));
  if (cached) return UNICON_OK;
  UNICON_NEW(ctx, out->bad, pieces);
  UNICON_NEW(ctx, out->where, pieces);
  UNICON_TRY(unicon__device_new(ctx, room, most, map->in, UNICON__ELEMENT_F32, &out->raw));
  return upload_map(ctx, room, map, &out->map);
}

/* Where rows of a source lie among the kept ones. */
static unicon_status feed_kept(unicon_ctx *ctx, unicon__feed *f, const int64_t *pick, int64_t first,
                               int64_t count, const unicon__matrix **phi, int64_t *at) {
  const unicon__kept *kept = f->source->kept;
  bool together = true;
  for (int64_t i = 0; i < count; i++) {
    f->place[i] = unicon__kept_place(f->source, pick ? pick[i] : first + i);
    together = together && f->place[i] == f->place[0] + i;
  }
  if (together) {
    *phi = kept->phi;
    *at = count > 0 ? f->place[0] : 0;
    return UNICON_OK;
  }
  return unicon__on(ctx, gather, kept->phi, f->place, count, f->phi, 0);
}

unicon_status unicon__feed_block(unicon_ctx *ctx, unicon__feed *f, const int64_t *pick,
                                 int64_t first, int64_t count, const unicon__matrix **phi,
                                 int64_t *at) {
  if (!f->phi)
    UNICON_TRY(unicon__device_new(ctx, f->room, f->most, f->source->map->out, UNICON__ELEMENT_F32,
                                  &f->phi));
  *phi = f->phi;
  *at = 0;
  if (unicon__is_kept(f->source)) return feed_kept(ctx, f, pick, first, count, phi, at);
  if (f->source->cache) return feed_cached(ctx, f, pick, first, count, f->phi, 0);
  return feed_raw(ctx, f, pick, first, count, f->phi, 0);
}

/* ---- features that are kept ---------------------------------------------------------------- */

/* Does the device make features, of so many rows? What is done with them counts: their products are
 * summed at least. */
static bool makes_features(unicon_ctx *ctx, const unicon__source *source) {
  const unicon__map *map = source->map;
  const double each =
      (double)map->in * (double)(map->points + 1) + (double)map->out * (double)map->out;
  const double flops = 2 * (double)source->count * each;
  return unicon__device_serves(ctx, features, flops) && unicon__device_serves(ctx, gather, flops) &&
         unicon__device_serves(ctx, shift, flops);
}

typedef struct keeping {
  const unicon__source *source;
  unicon__kept *kept;
} keeping;

/* All features of the source, block after block. */
static unicon_status keep_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const keeping *k = state;
  const unicon__source *source = k->source;
  const int64_t n = source->count;
  unicon__feed feed;
  UNICON_TRY(unicon__device_new(ctx, &k->kept->room, n, source->map->out, UNICON__ELEMENT_F32,
                                &k->kept->phi));
  const int64_t block = unicon__feed_rows(ctx, source, n, 0, 0.5);
  UNICON_TRY(unicon__feed_open(ctx, room, source, block, &feed));
  const int stage = unicon__stage_begin(ctx, "features", 0);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__stage_step(ctx, first / block, (n + block - 1) / block));
    UNICON_TRY((source->cache ? feed_cached : feed_raw)(ctx, &feed, NULL, first, count,
                                                        k->kept->phi, first));
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* Have all features of a source room in a third of what the device has left? */
static bool has_room(unicon_ctx *ctx, const unicon__source *source) {
  return 4 * (double)source->count * (double)source->map->out <=
         unicon__device_memory_left(ctx) / 3;
}

/* The source's features are those in `kept`, in its own order. */
static unicon_status note_kept(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                               unicon__kept *kept) {
  int64_t *place = NULL;
  if (source->index) UNICON_ARENA_NEW(ctx, arena, place, source->rows->count);
  for (int64_t i = 0; source->index && i < source->count; i++) place[source->index[i]] = i;
  kept->count = source->count;
  kept->map = source->map;
  kept->rows = source->rows;
  kept->place = place;
  source->kept = kept;
  return UNICON_OK;
}

unicon_status unicon__keep_rows(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                                unicon__kept *kept) {
  keeping k = {source, kept};
  bool done = false;
  *kept = (unicon__kept){.ctx = ctx};
  if (!ctx->where.device || !has_room(ctx, source)) return UNICON_OK;
  if (source->look) UNICON_TRY(unicon__look_refuse(ctx, source->look));
  const unicon_status status = unicon__device_run(ctx, "keeping features", keep_road, &k, &done);
  if (!done) unicon__kept_close(kept);
  UNICON_TRY(status);
  return done ? note_kept(ctx, arena, source, kept) : UNICON_OK;
}

unicon_status unicon__keep(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                           unicon__kept *kept) {
  *kept = (unicon__kept){.ctx = ctx};
  return makes_features(ctx, source) ? unicon__keep_rows(ctx, arena, source, kept) : UNICON_OK;
}

/* ---- other rows of them --------------------------------------------------------------------- */

typedef struct turning {
  const unicon__turn *turn;
  int64_t q;
  unicon__kept *kept;
} turning;

static unicon_status add_offset(unicon_ctx *ctx, unicon__device_room *room, const float *offset,
                                unicon__matrix *to, int64_t n, int64_t q) {
  unicon__matrix *row;
  float *away;
  UNICON_NEW(ctx, away, q);
  for (int64_t k = 0; k < q; k++) away[k] = -offset[k];
  UNICON_TRY(unicon__device_copy(ctx, room, away, 1, q, q, &row));
  return unicon__on(ctx, shift, to, 0, n, row);
}

static unicon_status turn_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const turning *t = state;
  const unicon__source *source = t->turn->source;
  const int64_t n = source->count, p = source->map->out, q = t->q;
  const int64_t block = unicon__feed_rows(ctx, source, n, 4.0 * (double)p, 0.5);
  const unicon__matrix *phi;
  unicon__matrix *weight, *out;
  unicon__feed feed;
  int64_t at;
  UNICON_TRY(unicon__device_new(ctx, &t->kept->room, n, q, UNICON__ELEMENT_F32, &out));
  t->kept->phi = out;
  UNICON_TRY(unicon__device_copy(ctx, room, t->turn->weight, p, q, q, &weight));
  UNICON_TRY(unicon__feed_open(ctx, room, source, block, &feed));
  const int stage = unicon__stage_begin(ctx, t->turn->name, 0);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__stage_step(ctx, first / block, (n + block - 1) / block));
    UNICON_TRY(unicon__feed_block(ctx, &feed, NULL, first, count, &phi, &at));
    UNICON_TRY(unicon__on(ctx, embed, phi, at, count, weight, t->turn->unit, out, first));
  }
  if (t->turn->offset) UNICON_TRY(add_offset(ctx, room, t->turn->offset, out, n, q));
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

unicon_status unicon__keep_turned(unicon_ctx *ctx, const unicon__turn *turn, unicon__source *out,
                                  unicon__kept *kept, bool *done) {
  const int64_t n = turn->source->count, q = out->map->out;
  turning t = {turn, q, kept};
  const double flops = 2 * (double)n * (double)turn->source->map->out * (double)q;
  *done = false;
  *kept = (unicon__kept){.ctx = ctx};
  if (!unicon__device_serves(ctx, embed, flops) || !unicon__device_serves(ctx, shift, flops) ||
      !unicon__device_serves(ctx, gather, flops) || !unicon__device_serves(ctx, features, flops) ||
      !has_room(ctx, out))
    return UNICON_OK;
  const unicon_status status = unicon__device_run(ctx, turn->name, turn_road, &t, done);
  if (!*done) unicon__kept_close(kept);
  UNICON_TRY(status);
  if (!*done) return UNICON_OK;
  kept->alone = true;
  kept->count = n;
  kept->map = out->map;
  kept->rows = out->rows;
  out->kept = kept;
  return UNICON_OK;
}

void unicon__kept_close(unicon__kept *kept) {
  if (kept->ctx && kept->room.count > 0) unicon__device_close(kept->ctx, &kept->room);
  *kept = (unicon__kept){.ctx = NULL};
}

typedef struct shifting {
  const unicon__kept *kept;
  const double *by;
} shifting;

static unicon_status shift_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const shifting *s = state;
  const int64_t p = s->kept->map->out;
  unicon__matrix *row;
  float *values;
  UNICON_NEW(ctx, values, p);
  for (int64_t k = 0; k < p; k++) values[k] = (float)s->by[k];
  UNICON_TRY(unicon__device_copy(ctx, room, values, 1, p, p, &row));
  return unicon__on(ctx, shift, s->kept->phi, 0, s->kept->count, row);
}

unicon_status unicon__kept_shift(unicon__kept *kept, const double *by) {
  shifting s = {kept, by};
  bool done = true;
  if (kept->phi) UNICON_TRY(unicon__device_run(kept->ctx, "centring", shift_road, &s, &done));
  if (!done) unicon__kept_close(kept);
  return UNICON_OK;
}

/* ---- features that the host keeps ----------------------------------------------------------- */

/* All features, made or kept on the device, to the host. */
typedef struct fetching {
  const unicon__source *source;
  float *out;
} fetching;

static unicon_status fetch_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const fetching *f = state;
  const int64_t n = f->source->count, p = f->source->map->out;
  const int64_t block = unicon__feed_rows(ctx, f->source, n, 4.0 * (double)p, 0.5);
  const unicon__matrix *phi;
  unicon__feed feed;
  int64_t at;
  UNICON_TRY(unicon__feed_open(ctx, room, f->source, block, &feed));
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__feed_block(ctx, &feed, NULL, first, count, &phi, &at));
    UNICON_TRY(
        unicon__on(ctx, download, phi, at, count, f->out + first * p, p * (int64_t)sizeof *f->out));
  }
  return UNICON_OK;
}

unicon_status unicon__kept_fetch(unicon_ctx *ctx, const unicon__source *source, float *out) {
  return unicon__on(ctx, download, source->kept->phi, 0, source->count, out,
                    source->map->out * (int64_t)sizeof *out);
}

static unicon_status fill_cache(unicon_ctx *ctx, const unicon__source *source, float *out) {
  fetching f = {source, out};
  bool done = false;
  if (makes_features(ctx, source))
    UNICON_TRY(unicon__device_run(ctx, "features", fetch_road, &f, &done));
  return done ? UNICON_OK : unicon__source_fill(ctx, source, out);
}

unicon_status unicon__source_cache(unicon_ctx *ctx, unicon__arena *arena, unicon__source *source,
                                   float **cache) {
  *cache = NULL;
  float *made;
  const unicon__budget *budget = ctx->arena.budget;
  const uint64_t limit = unicon__budget_limit(budget), used = unicon__budget_used(budget);
  const double others = (double)unicon__process_count(ctx); /* each keeps all of them */
  double allowed = limit == UINT64_MAX ? 2e9 / others - (double)used
                   : used < limit      ? (double)(limit - used)
                                       : 0;
  if (unicon__together(ctx)) UNICON_TRY(unicon__as_first(ctx, &allowed, (int64_t)sizeof allowed));
  const double bytes = (double)source->count * (double)source->map->out * sizeof(float);
  if (source->cache || bytes > allowed / 2) return UNICON_OK;
  UNICON_ARENA_NEW(ctx, arena, made, source->count * source->map->out);
  UNICON_TRY(fill_cache(ctx, source, made));
  source->cache = *cache = made;
  source->cache_row = NULL; /* the cache has the rows of this source, in its order */
  return UNICON_OK;
}
