/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: one context under a small memory limit, the promises that every call
 * must keep, and the use of rows once they are read. A broken promise aborts, so that the fuzzer
 * and the replay notice. */
#ifndef UNICON_TESTS_FUZZ_TARGET_H
#define UNICON_TESTS_FUZZ_TARGET_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/rows_format.h"

#define TARGET_LIMIT "8M"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert: it must hold in every build. */
#define TARGET_HOLDS(condition)                                               \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (0)

/* Short stacks of allocations, and few freed blocks held back: the allocator is most of the time of
 * some targets. */
const char *__asan_default_options(void);  // NOLINT(bugprone-reserved-identifier)
const char *__asan_default_options(void) {
  return "malloc_context_size=4:quarantine_size_mb=32";
}

static inline void target_limit(unicon_ctx *ctx) {
  TARGET_HOLDS(unicon_ctx_set(ctx, "threads", "1") == UNICON_OK);
  TARGET_HOLDS(unicon_ctx_set(ctx, "max_mem", TARGET_LIMIT) == UNICON_OK);
}

/* The one context of the program, made at the first call. */
static inline unicon_ctx *target_ctx(void) {
  static unicon_ctx *ctx;
  if (ctx) return ctx;
  TARGET_HOLDS(unicon_ctx_create(&ctx) == UNICON_OK);
  target_limit(ctx);
  return ctx;
}

/* A failure has a sentence. Returns whether the call succeeded. */
static inline int target_ok(const unicon_ctx *ctx, unicon_status status) {
  TARGET_HOLDS(strcmp(unicon_status_name(status), "UNICON_ERR_UNKNOWN") != 0);
  if (status != UNICON_OK) TARGET_HOLDS(strlen(unicon_ctx_error(ctx)) > 0);
  return status == UNICON_OK;
}

/* Everything was given back. */
static inline void target_done(const unicon_ctx *ctx) {
  TARGET_HOLDS(unicon__budget_used(ctx->arena.budget) == 0);
}

/* Exactly as many floats as said, so that AddressSanitizer sees one too many. */
static inline float *target_floats(int64_t count) {
  float *data = malloc((size_t)count * sizeof *data);
  TARGET_HOLDS(data);
  return data;
}

static inline void target_search(unicon_ctx *ctx, const unicon_rows *rows) {
  int64_t ids[2];
  float scores[2];
  unicon_rows *query = NULL;
  const int64_t width = unicon_rows_width(rows);
  float *row = target_floats(width);
  if (target_ok(ctx, unicon_rows_read(ctx, rows, unicon_rows_count(rows) - 1, 1, row)) &&
      target_ok(ctx, unicon_rows_wrap(ctx, "query", row, UNICON_F32, 1, width, 0, 4, &query)) &&
      target_ok(ctx, unicon_search(ctx, &UNICON_VIEW(.rows = query, .side = UNICON_X),
                                   &UNICON_VIEW(.rows = rows, .side = UNICON_X), 2, ids, scores)))
    for (int k = 0; k < 2; k++)
      TARGET_HOLDS(ids[k] >= -1 && ids[k] < unicon_rows_count(rows) && !isnan(scores[k]));
  unicon_rows_close(query);
  free(row);
}

/* Reads every element; embeds and searches where that is quick. */
static inline void target_use_rows(unicon_ctx *ctx, const unicon_rows *rows) {
  const int64_t count = unicon_rows_count(rows), width = unicon_rows_width(rows);
  TARGET_HOLDS(count > 0 && width > 0);
  TARGET_HOLDS(count <= 1 << 24 && width <= 1 << 24); /* the input has that many bytes */
  float *all = target_floats(count * width);
  TARGET_HOLDS(target_ok(ctx, unicon_rows_read(ctx, rows, 0, count, all)));
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  for (int64_t i = 0; i < count && i < 2 && width <= 64; i++) {
    if (!target_ok(ctx, unicon_embed(ctx, &view, i, 1, 1, all))) continue;
    for (int64_t k = 0; k < width; k++) TARGET_HOLDS(isfinite(all[k]));
  }
  free(all);
  TARGET_HOLDS(unicon_rows_read(ctx, rows, count, 1, NULL) == UNICON_ERR_ARGUMENT);
  if (count * width <= 64) target_search(ctx, rows);
}

/* The body of the targets that read one matrix from bytes. */
static inline void target_matrix(const char *name, unicon__matrix_parser parse, const uint8_t *data,
                                 size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon__matrix m = {.width = 0};
  unicon_rows *rows = NULL;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  const unicon_status status =
      unicon__leave(ctx, parse(ctx, name, (unicon__bytes){data, size}, &m));
  if (target_ok(ctx, status) &&
      target_ok(ctx, unicon_rows_wrap(ctx, name, m.rows.data, m.rows.dtype, m.rows.count, m.width,
                                      m.rows.row_stride, m.rows.col_stride, &rows)))
    target_use_rows(ctx, rows);
  unicon_rows_close(rows);
  target_done(ctx);
}

#endif
