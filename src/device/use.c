/* SPDX-License-Identifier: Apache-2.0 */
#include "device/use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/parallel.h"
#include "device/plugin.h"
#include "unicon/tools.h"

/* Of less work than this a call does not even look into folders for plugins. */
static const double worth_looking = 1e7;

static int poll_host(void *user) {
  return unicon__poll(user) != UNICON_OK;
}

typedef struct copying {
  char *to;
  const char *from;
  int64_t to_stride, from_stride, bytes, rows,
      piece; /* rows, or bytes of a single row, at a time */
} copying;

static void copy_piece(void *state, int64_t item, int worker) {
  const copying *c = state;
  const int64_t first = item * c->piece, all = c->rows > 1 ? c->rows : c->bytes;
  const int64_t count = all - first < c->piece ? all - first : c->piece;
  (void)worker;
  if (c->rows == 1) {
    memcpy(c->to + first, c->from + first, (size_t)count);
    return;
  }
  for (int64_t i = first; i < first + count; i++)
    memcpy(c->to + i * c->to_stride, c->from + i * c->from_stride, (size_t)c->bytes);
}

static void copy_host(void *user, void *to, int64_t to_stride, const void *from,
                      int64_t from_stride, int64_t bytes, int64_t rows) {
  enum { PIECE = 1 << 19 };
  copying c = {to, from, to_stride, from_stride, bytes, rows, PIECE};
  if (bytes <= 0 || rows <= 0) return;
  if (to_stride == bytes && from_stride == bytes) {
    c.bytes *= rows;
    c.rows = 1;
  }
  if (c.rows > 1) c.piece = PIECE / bytes > 0 ? PIECE / bytes : 1;
  const int64_t all = c.rows > 1 ? c.rows : c.bytes;
  unicon__parallel_for(user, (all + c.piece - 1) / c.piece, copy_piece, &c);
}

/* The library stays loaded: drivers have threads and hooks of their own in it. */
static void close_device(unicon_ctx *ctx) {
  unicon__where *where = &ctx->where;
  if (where->device && where->process == (int64_t)getpid()) where->table->close(where->device);
  where->table = NULL;
  where->device = NULL;
  where->library = NULL;
  where->settled = false;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* The plugin is the one in force; it is opened when it is needed. */
static void take_plugin(unicon_ctx *ctx, const unicon__plugin *plugin) {
  ctx->where.table = plugin->table;
  ctx->where.library = plugin->library;
  ctx->where.process = (int64_t)getpid();
  ctx->where.close = close_device;
}

/* Opens it; on failure `text` has the sentence. */
static bool open_device(unicon_ctx *ctx, char text[UNICON__PLUGIN_TEXT]) {
  unicon__where *where = &ctx->where;
  const unicon__device_host host = {sizeof host, ctx, poll_host, copy_host, where->reduced};
  const double begun = unicon__now();
  text[0] = '\0';
  const int said =
      where->table->open(&host, where->limit, &where->device, text, UNICON__PLUGIN_TEXT);
  if (said == UNICON__DEVICE_OK) {
    unicon__log(ctx, UNICON_LOG_DEBUG, "device %s opened in %.3f s", where->table->name,
                unicon__now() - begun);
    return true;
  }
  where->device = NULL;
  return false;
}

/* The best of those that are there. */
static void choose_best(unicon_ctx *ctx) {
  char name[UNICON__PLUGINS][UNICON__PLUGIN_NAME];
  const int count = unicon__plugin_names(ctx->where.folder, name);
  unicon__plugin best = {.table = NULL};
  for (int k = 0; k < count; k++) {
    unicon__plugin now;
    unicon__plugin_load(ctx->where.folder, name[k], &now);
    const int preference = now.table ? now.table->preference : 1;
    if (!now.usable && preference > 0)
      unicon__log(ctx, UNICON_LOG_INFO, "device %s is not used: %s", now.name, now.text);
    if (!now.usable || preference <= (best.table ? best.table->preference : 0)) {
      unicon__plugin_drop(&now);
      continue;
    }
    unicon__plugin_drop(&best);
    best = now;
  }
  if (best.table) take_plugin(ctx, &best);
}

/* What auto means is found out when it is first asked for; a fork begins anew. */
static void settle(unicon_ctx *ctx) {
  unicon__where *where = &ctx->where;
  if (where->device && where->process != (int64_t)getpid()) {
    close_device(ctx);
    unicon__log(ctx, UNICON_LOG_WARNING,
                "a device does not outlive a fork: the CPU goes on in this process");
    where->settled = true;
  }
  if (where->settled) return;
  where->settled = true;
  if (!where->name[0] || strcmp(where->name, "auto") == 0) choose_best(ctx);
}

/* A device that is open is opened anew when it is next needed. */
static void set_precision(unicon_ctx *ctx, bool reduced) {
  unicon__where *where = &ctx->where;
  if (where->reduced == reduced) return;
  where->reduced = reduced;
  if (where->device && where->process == (int64_t)getpid()) {
    where->table->close(where->device);
    where->device = NULL;
  }
}

/* NAME or NAME:SIZE. */
static unicon_status read_name(unicon_ctx *ctx, const char *text, char *name, uint64_t *limit) {
  const size_t length = strcspn(text, ":");
  double bytes = 0;
  const bool fits = length < UNICON__PLUGIN_NAME;
  snprintf(name, UNICON__PLUGIN_NAME, "%.*s", fits ? (int)length : 0, text);
  if (!unicon__plugin_is_name(name) || (text[length] && strcmp(name, "cpu") == 0) ||
      (text[length] &&
       (!unicon__bytes_read(text + length + 1, &bytes) || !(bytes >= 1048576 && bytes <= 1e18))))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "device is \"%.100s\"; accepted: auto, cpu or the name of a device, which "
                        "may be followed by a limit of its memory from 1M on, as in cuda:4G",
                        text);
  *limit = (uint64_t)bytes;
  return UNICON_OK;
}

unicon_status unicon__device_set(unicon_ctx *ctx, const char *text) {
  char name[UNICON__PLUGIN_NAME];
  uint64_t limit;
  UNICON_TRY(read_name(ctx, text, name, &limit));
  close_device(ctx);
  memcpy(ctx->where.name, name, sizeof name);
  ctx->where.limit = limit;
  if (strcmp(name, "auto") == 0) return UNICON_OK;
  ctx->where.settled = true;
  if (strcmp(name, "cpu") == 0) return UNICON_OK;
  unicon__plugin plugin;
  unicon__plugin_load(ctx->where.folder, name, &plugin);
  char why[UNICON__PLUGIN_TEXT];
  memcpy(why, plugin.text, sizeof why);
  if (plugin.usable) take_plugin(ctx, &plugin);
  if (plugin.usable && open_device(ctx, why)) return UNICON_OK;
  ctx->where.table = NULL;
  unicon__plugin_drop(&plugin);
  memcpy(ctx->where.name, "cpu", sizeof "cpu");
  return unicon__fail(ctx, UNICON_ERR_DEVICE,
                      "device %s cannot be used: %s; accepted: auto, cpu or a device that `unicon "
                      "info` lists as usable",
                      name, why);
}

/* ---- stages ------------------------------------------------------------------------------- */

const char *unicon__device_name(const unicon_ctx *ctx) {
  return ctx->where.table && ctx->where.used ? ctx->where.table->name : "cpu";
}

const char *unicon__device_precision(unicon_ctx *ctx) {
  const unicon__where *where = &ctx->where;
  if (where->lowered) return "reduced";
  if (where->reduced)
    unicon__log(ctx, UNICON_LOG_WARNING, "precision reduced has no effect: %s",
                where->used ? "no iteration ran on the device" : "the fit ran on the CPU");
  return "full";
}

/* Opens the device that was found, unless it is open; if it cannot be, the CPU goes on. */
static bool is_open(unicon_ctx *ctx) {
  unicon__where *where = &ctx->where;
  char why[UNICON__PLUGIN_TEXT];
  if (where->device || open_device(ctx, why)) return true;
  unicon__log(ctx, UNICON_LOG_WARNING, "device %s cannot be opened, the CPU goes on: %s",
              where->table->name, why);
  where->table = NULL;
  return false;
}

bool unicon__device_has(unicon_ctx *ctx, size_t place, double flops) {
  unicon__where *where = &ctx->where;
  void (*entry)(void);
  if (ctx->job.active || (!where->settled && flops < worth_looking)) return false;
  settle(ctx);
  if (!where->table || flops < where->table->least_flops) return false;
  memcpy(&entry, (const char *)where->table + place, sizeof entry);
  where->said = UNICON__DEVICE_OK;
  return entry != NULL && is_open(ctx);
}

bool unicon__device_reads(unicon_ctx *ctx, int kind) {
  settle(ctx);
  const unicon__device_table *table = ctx->where.table;
  return table && table->receive && table->hand && table->flaw && table->memory_kind == kind &&
         is_open(ctx);
}

const char *unicon__device_chosen(unicon_ctx *ctx, double flops) {
  return unicon__device_serves(ctx, add_product, flops) ? ctx->where.table->name : "cpu";
}

unicon_status unicon__device_check(unicon_ctx *ctx, int said) {
  unicon__where *where = &ctx->where;
  char text[UNICON__PLUGIN_TEXT] = "";
  where->said = said;
  where->used = true;
  if (said == UNICON__DEVICE_OK) return UNICON_OK;
  if (said == UNICON__DEVICE_CANCELLED) {
    const unicon_status status = unicon__poll(ctx);
    if (status != UNICON_OK) return status;
  }
  if (said == UNICON__DEVICE_ELSEWHERE)
    return unicon__fail(ctx, UNICON_ERR_DEVICE, "device %s has no such case", where->table->name);
  where->table->error(where->device, text, sizeof text);
  return unicon__fail(ctx, said == UNICON__DEVICE_MEMORY ? UNICON_ERR_MEMORY : UNICON_ERR_DEVICE,
                      "device %s: %s", where->table->name, text);
}

void unicon__device_forget(unicon_ctx *ctx) {
  ctx->where.said = UNICON__DEVICE_OK;
  ctx->status = UNICON_OK; /* not unicon__clear_error: a call that is cancelled stays so */
  ctx->error[0] = '\0';
}

/* Can the host make good what the device said? Then the failure is forgotten. */
static bool left_to_host(unicon_ctx *ctx, const char *stage) {
  const int said = ctx->where.said;
  if (said != UNICON__DEVICE_MEMORY && said != UNICON__DEVICE_ELSEWHERE) return false;
  const bool memory = said == UNICON__DEVICE_MEMORY;
  unicon__log(ctx, memory ? UNICON_LOG_WARNING : UNICON_LOG_INFO, "%s: the CPU does it, for %s",
              stage, ctx->error);
  unicon__device_forget(ctx);
  return true;
}

unicon_status unicon__device_run(unicon_ctx *ctx, const char *stage, unicon__device_road road,
                                 void *state, bool *done) {
  unicon__device_room room = {.count = 0};
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon_status status = road(ctx, state, &room);
  unicon__device_close(ctx, &room);
  *done = status == UNICON_OK;
  if (!*done && !left_to_host(ctx, stage)) return status;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- matrices ----------------------------------------------------------------------------- */

unicon_status unicon__device_new(unicon_ctx *ctx, unicon__device_room *room, int64_t rows,
                                 int64_t cols, int element, unicon__matrix **out) {
  unicon__matrix *made = NULL;
  *out = NULL;
  if (room->count == UNICON__DEVICE_PLACES)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED, "a stage has more than %d matrices",
                        UNICON__DEVICE_PLACES);
  UNICON_TRY(unicon__on(ctx, matrix_new, rows, cols, element, &made));
  *out = room->matrix[room->count++] = made;
  return UNICON_OK;
}

unicon_status unicon__device_copy(unicon_ctx *ctx, unicon__device_room *room, const float *from,
                                  int64_t rows, int64_t cols, int64_t ld, unicon__matrix **out) {
  *out = NULL;
  if (!from) return UNICON_OK;
  UNICON_TRY(unicon__device_new(ctx, room, rows, cols, UNICON__ELEMENT_F32, out));
  return unicon__on(ctx, upload, *out, 0, rows, from, UNICON__ELEMENT_F32,
                    ld * (int64_t)sizeof *from);
}

void unicon__device_close(unicon_ctx *ctx, unicon__device_room *room) {
  while (room->count > 0)
    ctx->where.table->matrix_free(ctx->where.device, room->matrix[--room->count]);
}

double unicon__device_memory_left(unicon_ctx *ctx) {
  unicon__device_memory memory = {0, 0, 0};
  ctx->where.table->memory(ctx->where.device, &memory);
  return (double)memory.left;
}

/* What max_mem leaves. */
static double host_left(const unicon_ctx *ctx, double usual) {
  const uint64_t limit = unicon__budget_limit(ctx->arena.budget);
  const uint64_t used = unicon__budget_used(ctx->arena.budget);
  return limit == UINT64_MAX ? usual : limit > used ? (double)(limit - used) : 0;
}

bool unicon__device_lists(const unicon_ctx *ctx, double bytes) {
  return bytes <= 0x1p30 && bytes <= host_left(ctx, 0x1p32) / 4;
}

/* Rows that fit. */
static int64_t fitting(int64_t rows, double bytes, double room) {
  return bytes * (double)rows > room ? (int64_t)(room / bytes) : rows;
}

int64_t unicon__device_rows(unicon_ctx *ctx, int64_t rows, double bytes, double share,
                            double host) {
  const int64_t most = ctx->where.table->most_rows;
  int64_t count = fitting(rows, bytes, unicon__device_memory_left(ctx) * share);
  count = fitting(count, host, fmin(host_left(ctx, 0x1p29) / 8, 0x1p26));
  if (most > 0 && count > most) count = most;
  return count < 1 ? 1 : count;
}

/* ---- public ------------------------------------------------------------------------------- */

static unicon_status set_context(unicon_ctx *ctx, const char *name, const char *value) {
  unicon__value parsed;
  int id;
  UNICON_TRY(unicon__context_value(ctx, name, value, &id, &parsed));
  if (id == UNICON__DEVICE) return unicon__device_set(ctx, value);
  const bool all = strcmp(value, "all") == 0, none = strcmp(value, "none") == 0;
  if (id == UNICON__PRECISION)
    set_precision(ctx, strcmp(value, "reduced") == 0);
  else if (id == UNICON__THREADS)
    unicon__ctx_set_threads(ctx, all ? unicon__processor_count() : (int)parsed.number);
  else
    unicon__budget_set_limit(ctx->arena.budget, none ? UINT64_MAX : (uint64_t)parsed.number);
  return UNICON_OK;
}

unicon_status unicon_ctx_set(unicon_ctx *ctx, const char *name, const char *value) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, set_context(ctx, name, value));
}

static unicon_status set_folder(unicon_ctx *ctx, const char *folder) {
  if (!folder || strlen(folder) >= sizeof ctx->where.folder)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "device_folder needs a path of at most %d bytes",
                        (int)sizeof ctx->where.folder - 1);
  memcpy(ctx->where.folder, folder, strlen(folder) + 1);
  return UNICON_OK;
}

unicon_status unicon_device_folder(unicon_ctx *ctx, const char *folder) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, set_folder(ctx, folder));
}

/* One line of the list. */
static void describe(const unicon__plugin *plugin, unicon_device *out) {
  *out = (unicon_device){.usable = plugin->usable};
  snprintf(out->name, sizeof out->name, "%s", plugin->name);
  snprintf(out->text, sizeof out->text, "%s", plugin->text);
}

static unicon_status list_devices(unicon_ctx *ctx, unicon_device *list, size_t room,
                                  size_t *count) {
  char name[UNICON__PLUGINS][UNICON__PLUGIN_NAME];
  if (!count || (room && !list))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "devices needs a list and a place for its length");
  settle(ctx);
  const int found = unicon__plugin_names(ctx->where.folder, name);
  const char *chosen = ctx->where.table ? ctx->where.table->name : "cpu";
  unicon__plugin plugin = {.name = "cpu", .usable = true};
  snprintf(plugin.text, sizeof plugin.text, "threads: %d; %s", ctx->threads, unicon_build_info());
  *count = (size_t)found + 1;
  for (size_t k = 0; k < *count && k < room; k++) {
    if (k > 0) unicon__plugin_load(ctx->where.folder, name[k - 1], &plugin);
    describe(&plugin, &list[k]);
    list[k].chosen = strcmp(plugin.name, chosen) == 0;
    if (k > 0) unicon__plugin_drop(&plugin);
  }
  return UNICON_OK;
}

unicon_status unicon_devices(unicon_ctx *ctx, unicon_device *list, size_t room, size_t *count) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, list_devices(ctx, list, room, count));
}
