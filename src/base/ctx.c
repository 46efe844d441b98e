/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */  // NOLINT(bugprone-reserved-identifier)
#include "base/ctx.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"

#define UNICON_STRING_(x) #x
#define UNICON_STRING(x) UNICON_STRING_(x)

const char *unicon_version(void) {
  return UNICON_STRING(UNICON_VERSION_MAJOR) "." UNICON_STRING(
      UNICON_VERSION_MINOR) "." UNICON_STRING(UNICON_VERSION_PATCH);
}

const char *unicon_status_name(unicon_status status) {
  switch (status) {
    case UNICON_OK:
      return "UNICON_OK";
    case UNICON_ERR_ARGUMENT:
      return "UNICON_ERR_ARGUMENT";
    case UNICON_ERR_OPTION:
      return "UNICON_ERR_OPTION";
    case UNICON_ERR_SHAPE:
      return "UNICON_ERR_SHAPE";
    case UNICON_ERR_DATA:
      return "UNICON_ERR_DATA";
    case UNICON_ERR_PAIRS:
      return "UNICON_ERR_PAIRS";
    case UNICON_ERR_MEMORY:
      return "UNICON_ERR_MEMORY";
    case UNICON_ERR_IO:
      return "UNICON_ERR_IO";
    case UNICON_ERR_FORMAT:
      return "UNICON_ERR_FORMAT";
    case UNICON_ERR_NUMERIC:
      return "UNICON_ERR_NUMERIC";
    case UNICON_ERR_CANCELLED:
      return "UNICON_ERR_CANCELLED";
    case UNICON_ERR_UNSUPPORTED:
      return "UNICON_ERR_UNSUPPORTED";
    case UNICON_ERR_DEVICE:
      return "UNICON_ERR_DEVICE";
  }
  return "UNICON_ERR_UNKNOWN";
}

/* Sentences quote files and names of strangers: what a terminal would obey, the control characters
 * of ASCII and (C2 80 to C2 9F in UTF-8) of Unicode, becomes a question mark. */
static void tame(char *text) {
  for (unsigned char *p = (unsigned char *)text; *p; p++) {
    const bool wide = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
    if (wide) p[1] = '?';
    if (wide || *p < ' ' || *p == 0x7f) *p = '?';
  }
}

void unicon__set_error(unicon_ctx *ctx, unicon_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ctx->error, sizeof ctx->error, format, arguments);
  va_end(arguments);
  tame(ctx->error);
  ctx->status = status;
}

unicon_status unicon__status(const unicon_ctx *ctx) {
  return ctx->status;
}

void unicon__clear_error(unicon_ctx *ctx) {
  ctx->progress.cancelled = false;
  ctx->status = UNICON_OK;
  ctx->error[0] = '\0';
}

int unicon__processor_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__ /* a container or a batch system may allow us fewer */
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
#endif
  return count < 1 ? 1 : count > UNICON__MAX_THREADS ? UNICON__MAX_THREADS : (int)count;
}

unicon_status unicon_ctx_create(unicon_ctx **out) {
  if (!out) return UNICON_ERR_ARGUMENT;
  *out = NULL;
  unicon_ctx *ctx = calloc(1, sizeof *ctx);
  unicon__budget *budget = unicon__budget_create();
  if (!ctx || !budget) {
    free(ctx);
    unicon__budget_release(budget);
    return UNICON_ERR_MEMORY;
  }
  unicon__arena_init(&ctx->arena, budget);
  unicon__budget_release(budget); /* the arena holds it now */
  ctx->threads = unicon__processor_count();
  ctx->progress_interval = 0.1;
  ctx->tile_x = 256; /* bench/bench_pass measures these */
  ctx->tile_y = 1024;
  ctx->faults = (unicon__faults){-1, -1, -1, -1};
  unicon__progress_reset(ctx);
  *out = ctx;
  return UNICON_OK;
}

/* Takes the context for a call; false if one is running. */
static bool take(unicon_ctx *ctx) {
  if (!atomic_exchange(&ctx->busy, true)) return true;
  atomic_store(&ctx->refused, true);
  return false;
}

/* What was refused meanwhile is no longer of interest: the text is that of the call itself. */
static void give_back(unicon_ctx *ctx) {
  atomic_store(&ctx->refused, false);
  atomic_store(&ctx->busy, false);
}

void unicon_ctx_destroy(unicon_ctx *ctx) {
  if (!ctx || !take(ctx)) return;
  if (ctx->where.close) ctx->where.close(ctx);
  unicon__pool_destroy(ctx->pool);
  unicon__arena_release(&ctx->arena);
  free(ctx);
}

const char *unicon_ctx_error(const unicon_ctx *ctx) {
  if (!ctx) return "there is no context";
  if (!atomic_load(&ctx->refused)) return ctx->error;
  return "this context is inside another call, whose callback (or another thread) made this one; "
         "wait until that call returns, or use a second context";
}

uint64_t unicon_ctx_memory_peak(const unicon_ctx *ctx) {
  return ctx ? unicon__budget_peak(ctx->arena.budget) : 0;
}

void unicon_ctx_set_log(unicon_ctx *ctx, unicon_log_fn fn, void *user) {
  if (!ctx || !take(ctx)) return;
  ctx->log = fn;
  ctx->log_user = user;
  give_back(ctx);
}

void unicon_ctx_set_progress(unicon_ctx *ctx, unicon_progress_fn fn, void *user) {
  if (!ctx || !take(ctx)) return;
  ctx->tell = fn;
  ctx->tell_user = user;
  give_back(ctx);
}

void unicon__ctx_set_threads(unicon_ctx *ctx, int threads) {
  unicon__pool_destroy(ctx->pool);
  ctx->pool = NULL;
  ctx->threads = threads;
}

bool unicon__fault(int64_t *counter) {
  if (*counter < 0) return false;
  return (*counter)-- == 0;
}

void unicon__log(unicon_ctx *ctx, unicon_log_level level, const char *format, ...) {
  if (!ctx->log) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  tame(text);
  if (level == UNICON_LOG_WARNING) {
    if (strcmp(ctx->warned, text) == 0) return; /* once a call is enough */
    memcpy(ctx->warned, text, strlen(text) + 1);
  }
  ctx->log(ctx->log_user, level, text);
}

unicon_status unicon__enter(unicon_ctx *ctx) {
  if (!ctx || !take(ctx)) return UNICON_ERR_ARGUMENT;
  unicon__clear_error(ctx);
  ctx->warned[0] = '\0';
  ctx->where.used = ctx->where.lowered = ctx->where.told = false;
  unicon__progress_reset(ctx);
  ctx->frame = unicon__frame_open(ctx);
  return UNICON_OK;
}

unicon_status unicon__leave(unicon_ctx *ctx, unicon_status status) {
  /* What fails after a cancelled loop fails because of it. */
  if (status != UNICON_OK && ctx->progress.cancelled) status = unicon__poll(ctx);
  unicon__frame_close(ctx, ctx->frame);
  give_back(ctx);
  return status;
}
