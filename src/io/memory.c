/* SPDX-License-Identifier: Apache-2.0 */
#include "io/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/object.h"
#include "linalg/convert.h"

enum { MEMORY_LEAST = offsetof(unicon_memory, reserved) + sizeof(int) };
_Static_assert(sizeof(unicon_memory) == MEMORY_LEAST, "no padding at the end");

static const char *kind_name(int kind) {
  return kind == UNICON__MEMORY_CUDA ? " (CUDA)" : kind == UNICON__MEMORY_PINNED ? " (pinned)" : "";
}

unicon_status unicon__memory_take(unicon_ctx *ctx, const char *name, const unicon_memory *given,
                                  unicon_memory *out) {
  UNICON_NEED(ctx, name);
  UNICON_TRY(unicon__take_sized(ctx, "UNICON_MEMORY", given, out, MEMORY_LEAST, sizeof *out));
  if (out->reserved != 0 || out->number < 0 || out->kind < 1)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s is memory of kind %d, number %d; accepted: kinds from 1 on and numbers "
                        "from 0 on",
                        name, out->kind, out->number);
  if (unicon__memory_is_host(out) || unicon__device_reads(ctx, out->kind)) return UNICON_OK;
  return unicon__fail(
      ctx, UNICON_ERR_DEVICE,
      "%s lies in the memory of a device of kind %d%s, number %d, which device %s cannot read; "
      "accepted: a copy in the memory of the host, or option device with the name of that device",
      name, out->kind, kind_name(out->kind), out->number,
      ctx->where.table ? ctx->where.table->name : "cpu");
}

unicon__foreign unicon__memory_foreign(const unicon_memory *m) {
  return (unicon__foreign){m->data,       m->rows,           m->cols,   m->row_stride,
                           m->col_stride, (int32_t)m->dtype, m->number, m->stream};
}

/* ---- rows --------------------------------------------------------------------------------- */

typedef struct fetching {
  const unicon__foreign *from;
  float *to;
} fetching;

/* Block after block as float32. */
static unicon_status fetch(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const fetching *f = state;
  const int64_t n = f->from->rows, d = f->from->cols, size = d * (int64_t)sizeof *f->to;
  const int64_t block = unicon__device_rows(ctx, n, (double)size, 0.5, 0);
  unicon__matrix *held;
  UNICON_TRY(unicon__device_new(ctx, room, block, d, UNICON__ELEMENT_F32, &held));
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__on(ctx, receive, held, 0, count, f->from, first));
    UNICON_TRY(unicon__on(ctx, download, held, 0, count, f->to + first * d, size));
  }
  return UNICON_OK;
}

/* Gives rows of a device their copy. */
static unicon_status bring(unicon_ctx *ctx, const unicon_memory *m, unicon_rows *rows) {
  unicon__away *away;
  float *copy;
  bool done;
  const int64_t size = m->cols * (int64_t)sizeof *copy;
  UNICON_ARENA_NEW(ctx, &rows->arena, away, 1);
  UNICON_ARENA_NEW(ctx, &rows->arena, copy, m->rows * m->cols);
  *away = (unicon__away){unicon__memory_foreign(m), m->kind};
  rows->segment[0] = (unicon__segment){(const unsigned char *)copy, 0,          m->rows, size,
                                       (int64_t)sizeof *copy,       UNICON_F32, away,    0};
  fetching f = {&away->row, copy};
  UNICON_TRY(unicon__device_run(ctx, "fetching rows", fetch, &f, &done));
  if (done) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_MEMORY,
                      "%s: the device has no memory left for a row of %" PRId64 " columns",
                      rows->name, m->cols);
}

unicon_status unicon__rows_of_memory(unicon_ctx *ctx, const char *name, const unicon_memory *m,
                                     unicon_rows **out) {
  const unicon__segment whole = {m->data,       0,        m->rows, m->row_stride,
                                 m->col_stride, m->dtype, NULL,    0};
  unicon_rows *rows = NULL;
  *out = NULL;
  UNICON_TRY(unicon__rows_wrap(ctx, name, &whole, m->cols, &rows));
  const unicon_status status = unicon__memory_is_host(m) ? UNICON_OK : bring(ctx, m, rows);
  if (status == UNICON_OK)
    *out = rows;
  else
    unicon_rows_close(rows);
  return status;
}

static unicon_status wrap_memory(unicon_ctx *ctx, const char *name, const unicon_memory *given,
                                 unicon_rows **out) {
  unicon_memory m;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__memory_take(ctx, name, given, &m));
  return unicon__rows_of_memory(ctx, name, &m, out);
}

unicon_status unicon_rows_wrap_memory(unicon_ctx *ctx, const char *name,
                                      const unicon_memory *memory, unicon_rows **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, wrap_memory(ctx, name, memory, out));
}

/* ---- room --------------------------------------------------------------------------------- */

struct unicon_room {
  unicon__arena arena;
  unicon_memory memory;
  void (*give_back)(void *room, int32_t number); /* NULL: it is the arena's */
  int64_t process; /* that made it: a driver does not outlive a fork */
};

static unicon_status memory_kind(unicon_ctx *ctx, int *kind) {
  UNICON_NEED(ctx, kind);
  *kind = UNICON__MEMORY_HOST;
  if (unicon__device_reads(ctx, UNICON__MEMORY_CUDA))
    *kind = UNICON__MEMORY_CUDA;
  else if (ctx->where.table && unicon__device_reads(ctx, ctx->where.table->memory_kind))
    *kind = ctx->where.table->memory_kind;
  return UNICON_OK;
}

unicon_status unicon_memory_kind(unicon_ctx *ctx, int *kind) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, memory_kind(ctx, kind));
}

static unicon_status fill_room(unicon_ctx *ctx, int64_t rows, int64_t cols, unicon_room *room) {
  int32_t number = 0;
  int kind;
  float *own;
  UNICON_TRY(memory_kind(ctx, &kind));
  const unicon__device_table *table = ctx->where.table;
  const bool there = table && ctx->where.device && table->room_new;
  const int64_t row = cols * (int64_t)sizeof *own;
  room->memory = UNICON_MEMORY(.rows = rows, .cols = cols, .row_stride = row,
                               .col_stride = (int64_t)sizeof *own, .dtype = UNICON_F32);
  room->memory.kind = there ? kind : UNICON__MEMORY_HOST;
  room->process = (int64_t)getpid();
  if (there) {
    UNICON_TRY(unicon__on(ctx, room_new, (uint64_t)(rows * row), &room->memory.data, &number));
    room->memory.number = number;
    room->give_back = table->room_free;
    return UNICON_OK;
  }
  UNICON_ARENA_NEW(ctx, &room->arena, own, rows * cols);
  room->memory.data = own;
  return UNICON_OK;
}

static unicon_status room_create(unicon_ctx *ctx, int64_t rows, int64_t cols, unicon_room **out) {
  UNICON_NEED(ctx, out);
  if (rows < 1 || cols < 1 || rows > INT64_MAX / 8 / cols)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "room for %" PRId64 " rows of %" PRId64 " columns; both must be at least 1",
                        rows, cols);
  unicon_room *room = unicon__object_new(ctx, sizeof *room);
  if (!room) return UNICON_ERR_MEMORY;
  const unicon_status status = fill_room(ctx, rows, cols, room);
  if (status == UNICON_OK)
    *out = room;
  else
    unicon_room_destroy(room);
  return status;
}

unicon_status unicon_room_create(unicon_ctx *ctx, int64_t rows, int64_t cols, unicon_room **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, room_create(ctx, rows, cols, out));
}

void unicon_room_memory(const unicon_room *room, unicon_memory *out) {
  if (room && out) *out = room->memory;
}

void unicon_room_destroy(unicon_room *room) {
  if (!room) return;
  if (room->give_back && room->process == (int64_t)getpid())
    room->give_back(room->memory.data, room->memory.number);
  unicon__object_free(room);
}
