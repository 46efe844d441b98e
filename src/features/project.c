/* SPDX-License-Identifier: Apache-2.0 */
#include "features/project.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "features/feed.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { PROJECT_ROWS = 256 }; /* of a product: large enough for its full rate */

typedef struct project {
  const unicon__source *source;
  const float *weight;
  int64_t r, ld, first, count;
  int64_t rows; /* of a tile */
  bool unit, check;
  float *buffer;           /* per worker */
  int64_t *bad;            /* per slot: first bad row of the tile, or -1 ... */
  int64_t *where;          /* ... and its column */
  int64_t bad_row, column; /* the first of all, or -1 */
  float *out;
} project;

void unicon__scale_rows(float *rows, int64_t count, int64_t r, int64_t ld, double length) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) {
    float *row = rows + i * ld;
    const double now = sqrt(vec->sum_squares(row, r));
    if (now > 1e-15 && now < 1e15) {
      vec->scale_shift(row, r, (float)(length / now), NULL);
      continue;
    }
    double sum = 0; /* too large or small to square in float32 */
    for (int64_t k = 0; k < r; k++) sum += (double)row[k] * (double)row[k];
    for (int64_t k = 0; k < r && sum > 0; k++)
      row[k] = (float)((double)row[k] * length / sqrt(sum));
  }
}

enum { OVERFLOW = -3 }; /* in the place of a column */

/* The first row that holds an infinity or NaN, or -1: weights of a strange model. */
static int64_t first_overflow(const float *rows, int64_t count, int64_t r, int64_t ld,
                              int64_t *column) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < r; k++)
      if (!isfinite(rows[i * ld + k])) {
        *column = OVERFLOW;
        return i;
      }
  return -1;
}

static unicon_status report_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                                int64_t column) {
  if (column != OVERFLOW) return unicon__bad_row(ctx, rows, row, column);
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "%s: the embedding of row %lld overflows float32; the weights of the model "
                      "are out of range",
                      rows->name, (long long)row);
}

static void project_tile(void *state, unicon__cell cell) {
  const project *p = state;
  const unicon__map *map = p->source->map;
  const int64_t start = cell.row * p->rows, left = p->count - start;
  const int64_t count = left < p->rows ? left : p->rows;
  int64_t *bad = &p->bad[cell.slot], *column = &p->where[cell.slot];
  float *buffer = p->buffer + cell.worker * p->rows * unicon__map_room(map);
  float *out = p->out + start * p->ld;
  const float *features = buffer;
  *bad = -1;
  if (p->check) {
    float *raw = unicon__map_raw(map, buffer, count);
    unicon__source_load(p->source, NULL, p->first + start, count, raw);
    const unicon__row_need need = p->weight ? unicon__map_need(map) : UNICON__ROW_DIRECTED;
    *bad = unicon__first_bad_row(raw, count, map->in, need, column);
    if (*bad >= 0) return;
    unicon__map_apply(map, buffer, count);
  } else {
    features = unicon__source_tile(p->source, NULL, p->first + start, count, buffer);
  }
  if (p->weight)
    unicon__sgemm(false, false, count, p->r, map->out, 1, features, map->out, p->weight, p->r, 0,
                  out, p->ld);
  else
    for (int64_t i = 0; i < count; i++)
      memcpy(out + i * p->ld, features + i * p->r, (size_t)p->r * sizeof *out);
  *bad = first_overflow(out, count, p->r, p->ld, column);
  if (p->unit) unicon__scale_rows(out, count, p->r, p->ld, 1);
}

/* Tiles come in order, so the first bad row found is the first of all. */
static void note_bad(void *state, unicon__cell cell) {
  project *p = state;
  if (p->bad[cell.slot] < 0 || p->bad_row >= 0) return;
  p->bad_row = p->first + cell.row * p->rows + p->bad[cell.slot];
  p->column = p->where[cell.slot];
}

/* ---- on the device ------------------------------------------------------------------------ */

/* Blocks of rows through the feed, times the weights, and back. */
static unicon_status project_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  project *p = state;
  const int64_t r = p->r, wish = unicon__feed_rows(ctx, p->source, p->count,
                                                   4.0 * (double)(r + p->source->map->out), 0.5);
  const unicon__matrix *phi;
  unicon__matrix *weight, *z;
  unicon__feed feed;
  int64_t at;
  UNICON_TRY(unicon__device_copy(ctx, room, p->weight, p->source->map->out, r, r, &weight));
  UNICON_TRY(unicon__device_new(ctx, room, wish, r, UNICON__ELEMENT_F32, &z));
  UNICON_TRY(unicon__feed_open(ctx, room, p->source, wish, &feed));
  feed.check = p->check;
  feed.need = unicon__map_need(p->source->map);
  const int stage = unicon__stage_begin(ctx, "embed", 0);
  for (int64_t start = 0; start < p->count; start += wish) {
    const int64_t count = p->count - start < wish ? p->count - start : wish;
    float *out = p->out + start * p->ld;
    UNICON_TRY(unicon__stage_step(ctx, start / wish, (p->count + wish - 1) / wish));
    UNICON_TRY(unicon__feed_block(ctx, &feed, NULL, p->first + start, count, &phi, &at));
    UNICON_TRY(unicon__on(ctx, embed, phi, at, count, weight, p->unit, z, 0));
    UNICON_TRY(unicon__on(ctx, download, z, 0, count, out, p->ld * (int64_t)sizeof *out));
    const int64_t bad = first_overflow(out, count, r, p->ld, &p->column);
    if (bad >= 0) return report_row(ctx, p->source->rows, p->first + start + bad, p->column);
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* Worth it where the device has all it takes; rows taken as they are stay on the host. */
static bool device_projects(unicon_ctx *ctx, const project *p) {
  const unicon__map *map = p->source->map;
  const double in = map->kind == UNICON__MAP_LINEAR ? 0 : (double)map->in * (double)map->points;
  const double flops =
      2 * (double)p->count * ((p->source->cache ? 0 : in) + (double)map->out * (double)p->r);
  return p->weight && unicon__device_serves(ctx, embed, flops) &&
         unicon__device_serves(ctx, features, flops) && unicon__device_serves(ctx, gather, flops);
}

/* What one process does of it. */
static unicon_status project_rows(unicon_ctx *ctx, project p) {
  const int64_t tiles = p.count ? (p.count + p.rows - 1) / p.rows : 0;
  const int64_t slots = unicon__sweep_slots(ctx, tiles);
  if (device_projects(ctx, &p)) {
    bool done;
    UNICON_TRY(unicon__device_run(ctx, "embed", project_road, &p, &done));
    if (done) return UNICON_OK;
  }
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_NEW(ctx, p.bad, slots);
  UNICON_NEW(ctx, p.where, slots);
  UNICON_NEW(ctx, p.buffer,
             unicon__workers_for(ctx, tiles) * p.rows * unicon__map_room(p.source->map));
  UNICON_TRY(unicon__sweep_run(ctx, &(unicon__sweep){.name = "embed",
                                                     .rows = tiles,
                                                     .cols = 1,
                                                     .region = &unicon__blas_region,
                                                     .state = &p,
                                                     .body = project_tile,
                                                     .fold_col = note_bad}));
  if (p.bad_row >= 0) return report_row(ctx, p.source->rows, p.bad_row, p.column);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Rows of the others, whose columns may be some of `ld`. */
static unicon_status gather(unicon_ctx *ctx, const unicon__share *own, int64_t r, float *out,
                            int64_t ld) {
  const size_t row = (size_t)r * sizeof *out;
  float *packed;
  if (ld == r) return unicon__gather_rows(ctx, own, out, (int64_t)row);
  UNICON_NEW(ctx, packed, own->all * r);
  for (int64_t i = own->first; i < own->first + own->count; i++)
    memcpy(packed + i * r, out + i * ld, row);
  UNICON_TRY(unicon__gather_rows(ctx, own, packed, (int64_t)row));
  for (int64_t i = 0; i < own->all; i++) memcpy(out + i * ld, packed + i * r, row);
  unicon__drop(ctx, packed);
  return UNICON_OK;
}

unicon_status unicon__project(unicon_ctx *ctx, const unicon__source *source, const float *weight,
                              int64_t r, int64_t first, int64_t count, bool unit, bool check,
                              float *out, int64_t ld) {
  const double row =
      unicon__feature_flops(source) + 2 * (weight ? (double)source->map->out * (double)r : 0);
  const unicon__share own = unicon__share_of(ctx, count, PROJECT_ROWS, (double)count * row);
  const project job = {.source = source,
                       .weight = weight,
                       .r = r,
                       .first = first + own.first,
                       .count = own.count,
                       .rows = own.count < PROJECT_ROWS ? own.count : PROJECT_ROWS,
                       .unit = unit,
                       .check = check,
                       .out = out + own.first * ld,
                       .ld = ld,
                       .bad_row = -1};
  UNICON_TRY(project_rows(ctx, job));
  return own.divided ? gather(ctx, &own, r, out, ld) : UNICON_OK;
}
