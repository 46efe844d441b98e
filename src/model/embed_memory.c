/* SPDX-License-Identifier: Apache-2.0 */
#include "model/embed_memory.h"

#include <math.h>
#include <string.h>

#include "features/feed.h"
#include "io/object.h"

typedef struct moving {
  const unicon_model *model;
  int side;
  bool unit;
  const unicon_rows *rows;
  const unicon_memory *to;
  const float *made; /* embeddings on the host */
} moving;

/* ---- where everything stays on the device ------------------------------------------------- */

/* A block of z to where it is wanted. */
static unicon_status put_block(unicon_ctx *ctx, const unicon_memory *to, const unicon__matrix *z,
                               int64_t first, int64_t count) {
  const unicon__foreign out = unicon__memory_foreign(to);
  if (!unicon__memory_is_host(to)) return unicon__on(ctx, hand, z, 0, count, &out, first);
  return unicon__on(ctx, download, z, 0, count, (char *)to->data + first * to->row_stride,
                    to->row_stride);
}

static unicon_status check_block(unicon_ctx *ctx, const moving *m, const unicon__matrix *z,
                                 int64_t first, int64_t count) {
  int64_t bad = -1;
  UNICON_TRY(unicon__on(ctx, flaw, z, 0, count, 0, &bad));
  if (bad < 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "%s: the embedding of row %lld overflows float32; the weights of the model "
                      "are out of range",
                      m->rows->name, (long long)(first + bad));
}

static unicon_status embed_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const moving *m = state;
  const unicon__part *part = &m->model->part[0];
  const unicon__map *map = &part->map[m->side];
  const unicon__source source = {.rows = m->rows, .count = m->rows->count, .map = map};
  const int64_t n = source.count, r = part->rank;
  const int64_t block = unicon__feed_rows(ctx, &source, n, 4.0 * (double)r, 0.5);
  const unicon__matrix *phi;
  unicon__matrix *weight, *z;
  unicon__feed feed;
  int64_t at;
  UNICON_TRY(unicon__device_copy(ctx, room, part->weight[m->side], map->out, r, r, &weight));
  UNICON_TRY(unicon__device_new(ctx, room, block, r, UNICON__ELEMENT_F32, &z));
  UNICON_TRY(unicon__feed_open(ctx, room, &source, block, &feed));
  feed.check = true;
  feed.need = unicon__map_need(map);
  const int stage = unicon__stage_begin(ctx, "embed", 0);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__stage_step(ctx, first / block, (n + block - 1) / block));
    UNICON_TRY(unicon__feed_block(ctx, &feed, NULL, first, count, &phi, &at));
    UNICON_TRY(unicon__on(ctx, embed, phi, at, count, weight, m->unit, z, 0));
    UNICON_TRY(check_block(ctx, m, z, first, count));
    UNICON_TRY(put_block(ctx, m->to, z, first, count));
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* Rows of the device for the length of a call; the host cannot read them. */
static unicon_rows rows_there(const char *name, const unicon_memory *from, unicon__away *away,
                              unicon__segment *segment) {
  const int64_t size = (int64_t)sizeof(float);
  *away = (unicon__away){unicon__memory_foreign(from), from->kind};
  *segment = (unicon__segment){NULL, 0, from->rows, from->cols * size, size, UNICON_F32, away, 0};
  return (unicon_rows){.name = (char *)(uintptr_t)name,
                       .count = from->rows,
                       .width = from->cols,
                       .segment = segment,
                       .segments = 1};
}

/* One part without an offset, and rows that the device can check. */
static bool is_plain(const unicon_model *model, int side) {
  return model->parts == 1 && !model->part[0].offset[side] &&
         unicon__map_need(&model->part[0].map[side]) != UNICON__ROW_SQUARED;
}

/* ---- by way of the host ------------------------------------------------------------------- */

static unicon_status hand_over(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const moving *m = state;
  const int64_t n = m->to->rows, r = m->to->cols, size = r * (int64_t)sizeof *m->made;
  const int64_t block = unicon__device_rows(ctx, n, (double)size, 0.5, 0);
  unicon__matrix *z;
  UNICON_TRY(unicon__device_new(ctx, room, block, r, UNICON__ELEMENT_F32, &z));
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(
        unicon__on(ctx, upload, z, 0, count, m->made + first * r, UNICON__ELEMENT_F32, size));
    UNICON_TRY(put_block(ctx, m->to, z, first, count));
  }
  return UNICON_OK;
}

static unicon_status through_host(unicon_ctx *ctx, const unicon_view *view, unicon_form form,
                                  const unicon_memory *to) {
  float *made;
  bool done = false;
  UNICON_NEW(ctx, made, to->rows * to->cols);
  UNICON_TRY(unicon__embed(ctx, view, 0, to->rows, form, made));
  moving m = {.to = to, .made = made};
  for (int64_t i = 0; i < to->rows && unicon__memory_is_host(to); i++)
    memcpy((char *)to->data + i * to->row_stride, made + i * to->cols,
           (size_t)to->cols * sizeof *made);
  if (unicon__memory_is_host(to)) return UNICON_OK;
  UNICON_TRY(unicon__device_run(ctx, "embed", hand_over, &m, &done));
  return done ? UNICON_OK
              : unicon__fail(ctx, UNICON_ERR_MEMORY,
                             "the device has no memory left for a vector of %lld numbers",
                             (long long)to->cols);
}

/* ---- unicon_embed_memory ------------------------------------------------------------------ */

static unicon_status check_target(unicon_ctx *ctx, const unicon_memory *from,
                                  const unicon_model *model, const unicon_memory *to) {
  const int64_t size = (int64_t)sizeof(float);
  if (to->rows != from->rows || to->cols != model->rank)
    return unicon__fail(
        ctx, UNICON_ERR_SHAPE, "out has shape (%lld, %lld), but the embeddings have (%lld, %lld)",
        (long long)to->rows, (long long)to->cols, (long long)from->rows, (long long)model->rank);
  if (to->dtype != UNICON_F32 || to->col_stride != size || to->row_stride < to->cols * size ||
      to->row_stride % size != 0)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "out has numbers of type %d, %lld bytes apart, in rows %lld bytes apart; "
                        "accepted: float32 (%d), side by side in each row",
                        (int)to->dtype, (long long)to->col_stride, (long long)to->row_stride,
                        (int)UNICON_F32);
  if (!to->data || !from->data)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "%s has no memory",
                        to->data ? "the input" : "out");
  return UNICON_OK;
}

/* Where the device has all it takes. */
static unicon_status try_road(unicon_ctx *ctx, moving *m, const unicon_rows *rows, bool *done) {
  *done = false;
  if (!unicon__device_serves(ctx, embed, INFINITY) ||
      !unicon__device_serves(ctx, features, INFINITY))
    return UNICON_OK;
  m->rows = rows;
  const unicon_status status = unicon__device_run(ctx, "embed", embed_road, m, done);
  m->rows = NULL; /* they are the caller's */
  return status;
}

static unicon_status move(unicon_ctx *ctx, moving *m, unicon_form form, const char *name,
                          const unicon_memory *from) {
  const bool there = !unicon__memory_is_host(from), plain = is_plain(m->model, m->side);
  unicon_rows *rows;
  bool done = false;
  if (there && plain) {
    unicon__away away;
    unicon__segment segment;
    const unicon_rows borrowed = rows_there(name, from, &away, &segment);
    UNICON_TRY(try_road(ctx, m, &borrowed, &done));
  }
  if (done) return UNICON_OK;
  UNICON_TRY(unicon__rows_of_memory(ctx, name, from, &rows));
  const unicon_view view =
      UNICON_VIEW(.rows = rows, .model = m->model, .side = (unicon_side)m->side);
  unicon_status status = UNICON_OK;
  if (!there && plain && !unicon__memory_is_host(m->to)) status = try_road(ctx, m, rows, &done);
  if (status == UNICON_OK && !done) status = through_host(ctx, &view, form, m->to);
  unicon_rows_close(rows);
  return status;
}

static unicon_status embed_memory(unicon_ctx *ctx, const unicon_model *model, unicon_side side,
                                  unicon_form form, const char *name, const unicon_memory *given,
                                  const unicon_memory *wanted) {
  unicon_memory from, to;
  UNICON_NEED(ctx, model);
  UNICON_TRY(unicon__memory_take(ctx, name, given, &from));
  UNICON_TRY(unicon__memory_take(ctx, "out", wanted, &to));
  if ((side != UNICON_X && side != UNICON_Y) ||
      (form != UNICON_FORM_RAW && form != UNICON_FORM_UNIT))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "side is %d and form %d; accepted here: sides 0 and 1, forms 0 (raw) and "
                        "1 (unit)",
                        (int)side, (int)form);
  UNICON_TRY(check_target(ctx, &from, model, &to));
  const int64_t width = unicon_model_width(model, side);
  if (from.rows < 1 || from.cols != width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %lld rows of %lld values, but side %s of the model takes %lld",
                        name, (long long)from.rows, (long long)from.cols,
                        side == UNICON_X ? "x" : "y", (long long)width);
  UNICON_TRY(check_target(ctx, &from, model, &to));
  moving m = {model, (int)side, form == UNICON_FORM_UNIT, NULL, &to, NULL};
  return move(ctx, &m, form, name, &from);
}

unicon_status unicon_embed_memory(unicon_ctx *ctx, const unicon_model *model, unicon_side side,
                                  unicon_form form, const char *name, const unicon_memory *from,
                                  const unicon_memory *to) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, embed_memory(ctx, model, side, form, name, from, to));
}
