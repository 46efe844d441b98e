/* SPDX-License-Identifier: Apache-2.0 */
#include "base/together.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* Less work than this (about 20 ms of a core) is done by every process for itself. */
static const double worth_dividing = 2e9;

bool unicon__together(const unicon_ctx *ctx) {
  return ctx->job.active;
}

int64_t unicon__process_count(const unicon_ctx *ctx) {
  return ctx->job.active ? ctx->job.with.count : 1;
}

/* The first row of a process. */
static int64_t first_of(const unicon_ctx *ctx, int64_t count, int64_t block, int64_t process) {
  const int64_t blocks = (count + block - 1) / block;
  const int64_t whole = blocks / ctx->job.with.count, rest = blocks % ctx->job.with.count;
  return unicon__least(count, block * (process * whole + unicon__least(process, rest)));
}

unicon__share unicon__share_of(const unicon_ctx *ctx, int64_t count, int64_t block, double flops) {
  const int64_t own = ctx->job.with.index;
  if (!ctx->job.active || flops < ctx->job.least)
    return (unicon__share){0, count, count, block, false};
  const int64_t first = first_of(ctx, count, block, own);
  return (unicon__share){first, first_of(ctx, count, block, own + 1) - first, count, block, true};
}

/* ---- words -------------------------------------------------------------------------------- */

typedef enum word_kind {
  WORD_BEGIN,
  WORD_SUM,
  WORD_FLOATS,
  WORD_LARGEST,
  WORD_GATHER,
  WORD_FIRST,
  WORD_END
} word_kind;

/* What a process says before an exchange: how it is, and what it is about to do. */
typedef struct word {
  int64_t status, number, kind, size;
} word;

/* The failure in force is that of the call, whatever is done about it on the way out. */
static unicon_status end_with(unicon_ctx *ctx, unicon_status status) {
  ctx->job.over = true;
  ctx->job.status = status;
  memcpy(ctx->job.why, ctx->error, sizeof ctx->job.why);
  return status;
}

static unicon_status lost(unicon_ctx *ctx) {
  return end_with(ctx, unicon__fail(ctx, UNICON_ERR_IO,
                                    "process %lld cannot reach the others any more (the "
                                    "communication of the job failed)",
                                    (long long)ctx->job.with.index));
}

/* Bytes of equal size of each process, one's own in its place. */
static bool gather_equal(unicon_ctx *ctx, void *all, int64_t bytes, int64_t *offset) {
  const unicon_processes *with = &ctx->job.with;
  for (int64_t k = 0; k <= with->count; k++) offset[k] = k * bytes;
  return with->gather(with->user, all, offset) == 0;
}

/* The sentence of process `from` becomes that of all. */
static unicon_status hear(unicon_ctx *ctx, int64_t from, int64_t status, int64_t *offset) {
  const unicon_processes *with = &ctx->job.with;
  char text[sizeof ctx->error] = "";
  if (with->index == from) memcpy(text, ctx->error, sizeof text);
  for (int64_t k = 0; k <= with->count; k++) offset[k] = k > from ? (int64_t)sizeof text : 0;
  if (with->gather(with->user, text, offset) != 0) return lost(ctx);
  text[sizeof text - 1] = '\0';
  return end_with(
      ctx, unicon__fail(ctx, (unicon_status)status, "process %lld: %s", (long long)from, text));
}

/* Looks at the words of all. */
static unicon_status compare_words(unicon_ctx *ctx, const word *all, int64_t *offset) {
  const unicon_processes *with = &ctx->job.with;
  int64_t failed = 0, first = -1, other = -1;
  for (int64_t k = with->count - 1; k >= 0; k--) {
    if (all[k].status != UNICON_OK) {
      failed++;
      first = k;
    }
    if (memcmp(&all[k].number, &all[0].number, sizeof *all - sizeof all->status) != 0) other = k;
  }
  if (failed == 0 && other < 0) return UNICON_OK;
  if (failed == with->count) /* all for one reason, each with its own sentence */
    return end_with(ctx, (unicon_status)all[with->index].status);
  if (failed > 0) return hear(ctx, first, all[first].status, offset);
  (void)unicon__fail(ctx, UNICON_ERR_DATA,
                     "process %lld is at another point of this call than process 0 (exchange %lld, "
                     "%lld of kind %lld; there %lld of kind %lld): do all see the same files?",
                     (long long)other, (long long)all[0].number, (long long)all[other].size,
                     (long long)all[other].kind, (long long)all[0].size, (long long)all[0].kind);
  return end_with(ctx, UNICON_ERR_DATA);
}

/* Tells the others, and hears from them. */
static unicon_status say(unicon_ctx *ctx, unicon_status own, word_kind kind, int64_t size) {
  const unicon_processes *with = &ctx->job.with;
  enum { FEW = 1024 }; /* beyond, room is asked for, and a process that gets none is lost */
  word few[FEW] = {{0}}, *all = few;
  int64_t few_offsets[FEW + 1], *offset = few_offsets;
  if (ctx->job.over) return unicon__fail(ctx, ctx->job.status, "%s", ctx->job.why);
  if (with->count > FEW) { /* what is over for want of memory ends the job: nobody can be told */
    all = unicon__new(ctx, with->count, sizeof *all);
    offset = unicon__new(ctx, with->count + 1, sizeof *offset);
    if (!all || !offset) return lost(ctx);
  }
  all[with->index] = (word){own, ctx->job.said++, (int64_t)kind, size};
  const bool heard = gather_equal(ctx, all, (int64_t)sizeof *all, offset);
  const unicon_status status = heard ? compare_words(ctx, all, offset) : lost(ctx);
  if (with->count > FEW) {
    unicon__drop(ctx, offset);
    unicon__drop(ctx, all);
  }
  return status;
}

/* ---- exchanges ---------------------------------------------------------------------------- */

unicon_status unicon__sum_all(unicon_ctx *ctx, const unicon__share *share, double *values,
                              int64_t count) {
  if (!share->divided || !values || count == 0) return UNICON_OK;
  UNICON_TRY(say(ctx, UNICON_OK, WORD_SUM, count));
  return ctx->job.with.sum(ctx->job.with.user, values, count) == 0 ? UNICON_OK : lost(ctx);
}

unicon_status unicon__sum_floats(unicon_ctx *ctx, const unicon__share *share, float *values,
                                 int64_t count) {
  if (!share->divided || count == 0) return UNICON_OK;
  UNICON_TRY(say(ctx, UNICON_OK, WORD_FLOATS, count));
  return ctx->job.with.sum_floats(ctx->job.with.user, values, count) == 0 ? UNICON_OK : lost(ctx);
}

unicon_status unicon__largest_of_all(unicon_ctx *ctx, const unicon__share *share, double *values,
                                     int64_t count) {
  if (!share->divided || count == 0) return UNICON_OK;
  UNICON_TRY(say(ctx, UNICON_OK, WORD_LARGEST, count));
  return ctx->job.with.largest(ctx->job.with.user, values, count) == 0 ? UNICON_OK : lost(ctx);
}

unicon_status unicon__gather_rows(unicon_ctx *ctx, const unicon__share *share, void *rows,
                                  int64_t bytes) {
  const unicon_processes *with = &ctx->job.with;
  int64_t *offset;
  if (!share->divided || share->all == 0) return UNICON_OK;
  UNICON_NEW(ctx, offset, with->count + 1);
  for (int64_t k = 0; k <= with->count; k++)
    offset[k] = first_of(ctx, share->all, share->block, k) * bytes;
  UNICON_TRY(say(ctx, UNICON_OK, WORD_GATHER, share->all * bytes));
  if (with->gather(with->user, rows, offset) != 0) return lost(ctx);
  unicon__drop(ctx, offset);
  return UNICON_OK;
}

unicon_status unicon__as_first(unicon_ctx *ctx, void *bytes, int64_t count) {
  if (!ctx->job.active) return UNICON_OK;
  UNICON_TRY(say(ctx, UNICON_OK, WORD_FIRST, count));
  return ctx->job.with.broadcast(ctx->job.with.user, bytes, count) == 0 ? UNICON_OK : lost(ctx);
}

/* ---- a call ------------------------------------------------------------------------------- */

/* What must be the same in all processes, a line each: "NAME is VALUE". */
static size_t describe(const unicon__budget *budget, const unicon_options *options,
                       const char *call, char *out, size_t room) {
  size_t used = (size_t)snprintf(out, room,
                                 "the library is %s\nthe build is %s\nmax_mem is %llu bytes\n"
                                 "the call is %s\n",
                                 unicon_version(), unicon_build_info(),
                                 (unsigned long long)unicon__budget_limit(budget), call);
  for (int id = 0; id < UNICON__OPTION_COUNT; id++) {
    const unicon_option_info *row = unicon__option_row(id);
    if (row->scope == UNICON_SCOPE_CONTEXT) continue;
    used += (size_t)snprintf(used < room ? out + used : NULL, used < room ? room - used : 0,
                             "option %s is %s\n", row->name, unicon__text(options, id));
  }
  return used + 1;
}

/* The first line in which two texts differ. */
static unicon_status compare_lines(unicon_ctx *ctx, const char *own, const char *first) {
  while (*own && *first) {
    const int here = (int)strcspn(own, "\n"), there = (int)strcspn(first, "\n");
    if (here != there || memcmp(own, first, (size_t)here) != 0)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "%.*s here, but on process 0 %.*s: all processes must be given the same",
                          here, own, there, first);
    own += here + (own[here] == '\n');
    first += there + (first[there] == '\n');
  }
  return UNICON_OK;
}

static unicon_status compare_calls(unicon_ctx *ctx, const unicon_options *options,
                                   const char *call) {
  const unicon__budget *budget = ctx->arena.budget;
  char none[1];
  const size_t size = describe(budget, options, call, none, 0);
  int64_t room = (int64_t)size;
  char *own, *first;
  UNICON_TRY(unicon__as_first(ctx, &room, sizeof room));
  UNICON_NEW(ctx, own, (int64_t)size);
  UNICON_NEW(ctx, first, room > (int64_t)size ? room : (int64_t)size);
  describe(budget, options, call, own, size);
  memcpy(first, own, size);
  UNICON_TRY(unicon__as_first(ctx, first, room));
  first[room - 1] = '\0';
  const unicon_status status = compare_lines(ctx, own, first);
  unicon__drop(ctx, first);
  unicon__drop(ctx, own);
  return status;
}

/* Several processes would share one device, or each need its own. */
static unicon_status check_device(unicon_ctx *ctx) {
  const char *name = ctx->where.name;
  if (!name[0] || strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                      "device is %s, but calls of several processes run on the CPU; leave device "
                      "out or use cpu",
                      name);
}

unicon_status unicon__together_begin(unicon_ctx *ctx, const unicon_options *options,
                                     const char *format, ...) {
  char call[512];
  va_list arguments;
  if (ctx->job.with.count < 2) return UNICON_OK;
  ctx->job.active = true;
  ctx->job.over = false;
  ctx->job.said = 0;
  va_start(arguments, format);
  vsnprintf(call, sizeof call, format, arguments);
  va_end(arguments);
  UNICON_TRY(say(ctx, UNICON_OK, WORD_BEGIN, 0));
  UNICON_TRY(check_device(ctx));
  return compare_calls(ctx, options, call);
}

unicon_status unicon__together_end(unicon_ctx *ctx, unicon_status status) {
  if (!ctx->job.active) return status;
  if (status != UNICON_OK && ctx->progress.cancelled) status = unicon__poll(ctx);
  status = say(ctx, status, WORD_END, 0);
  ctx->job.active = false;
  return status;
}

/* ---- public functions --------------------------------------------------------------------- */

static unicon_status join(unicon_ctx *ctx, const unicon_processes *given) {
  unicon_processes with = {.count = 0};
  ctx->job = (unicon__job){.with = {.count = 0}};
  if (!given) return UNICON_OK;
  if (given->size < sizeof with)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "the size of the processes is %zu; accepted: %zu, which UNICON_PROCESSES "
                        "sets",
                        given->size, sizeof with);
  memcpy(&with, given, sizeof with);
  if (with.count < 1 || with.index < 0 || with.index >= with.count)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "process %lld of %lld: there is no such one",
                        (long long)with.index, (long long)with.count);
  if (!with.gather || !with.broadcast || !with.sum || !with.sum_floats || !with.largest)
    return unicon__fail(
        ctx, UNICON_ERR_ARGUMENT,
        "processes need gather, broadcast, sum, sum_floats and largest; one is NULL");
  if (with.count > 1) ctx->job = (unicon__job){.with = with, .least = worth_dividing};
  return UNICON_OK;
}

unicon_status unicon_ctx_join(unicon_ctx *ctx, const unicon_processes *processes) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, join(ctx, processes));
}

unicon_status unicon_agree(unicon_ctx *ctx, unicon_status own, const char *sentence) {
  char text[sizeof ctx->error]; /* may be that of the context, which the call clears */
  snprintf(text, sizeof text, "%s", sentence ? sentence : "");
  UNICON_TRY(unicon__enter(ctx));
  if (own != UNICON_OK) unicon__set_error(ctx, own, "%s", text);
  if (ctx->job.with.count < 2) return unicon__leave(ctx, own);
  ctx->job.active = true;
  ctx->job.over = false;
  ctx->job.said = 0;
  return unicon__leave(ctx, unicon__together_end(ctx, own));
}
