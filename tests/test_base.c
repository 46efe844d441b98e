/* SPDX-License-Identifier: Apache-2.0 */
/* The base: memory with its limit, errors, log, loops on threads. */
#include <stdatomic.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "support.h"

/* ---- workspace ---------------------------------------------------------------------------- */

static void blocks_are_aligned_and_zeroed(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t counts[] = {0, 1, 63, 64, 65, 4096, 1 << 20, (1 << 20) + 1, 3 << 20};
  for (int round = 0; round < 2; round++) /* the second round gets used memory back */
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      unsigned char *memory = unicon__new(ctx, counts[c], 1);
      assert_non_null(memory);
      assert_int_equal((uintptr_t)memory % 64, 0);
      int64_t filled = 0;
      for (int64_t k = 0; k < counts[c]; k++) filled += memory[k] != 0;
      assert_int_equal(filled, 0);
      if (counts[c]) memset(memory, 0xff, (size_t)counts[c]);
      assert_true(unicon__budget_used(ctx->arena.budget) >= (uint64_t)counts[c]);
      unicon__drop(ctx, memory);
      assert_int_equal(unicon__budget_used(ctx->arena.budget), 0);
    }
  unicon__drop(ctx, NULL);
}

static void overflow_is_refused(void **state) {
  scratch *s = *state;
  const struct {
    int64_t count;
    size_t size;
  } cases[] = {{INT64_MAX, 8}, {INT64_MAX, 1}, {INT64_MAX / 2, 3},      {-1, 8},
               {INT64_MIN, 1}, {1, SIZE_MAX},  {1 << 20, SIZE_MAX / 16}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unicon__clear_error(s->ctx);
    assert_null(unicon__new(s->ctx, cases[c].count, cases[c].size));
    scratch_failed(s, unicon__status(s->ctx), UNICON_ERR_MEMORY, "memory", "MiB");
    assert_int_equal(scratch_memory(s), 0);
  }
}

static void limit_is_hard(void **state) {
  scratch *s = *state;
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "max_mem", "1M"));
  void *first = unicon__new(s->ctx, 600000, 1);
  assert_non_null(first);
  const uint64_t used = scratch_memory(s);
  assert_null(unicon__new(s->ctx, 600000, 1));
  scratch_failed(s, unicon__status(s->ctx), UNICON_ERR_MEMORY, "of the 1.0 MiB that max_mem allows",
                 "0.6 MiB more are needed");
  assert_int_equal(scratch_memory(s), used);
  /* What fits is still given, and the peak says no more than the limit. */
  void *second = unicon__new(s->ctx, 400000, 1);
  assert_non_null(second);
  assert_true(unicon_ctx_memory_peak(s->ctx) <= 1048576);
  assert_true(unicon_ctx_memory_peak(s->ctx) >= 1000000);
  unicon__drop(s->ctx, first);
  unicon__drop(s->ctx, second);
  void *third = unicon__new(s->ctx, 900000, 1);
  assert_non_null(third);
  unicon__drop(s->ctx, third);
  const uint64_t peak = unicon_ctx_memory_peak(s->ctx);
  unicon__drop(s->ctx, unicon__new(s->ctx, 10, 1));
  assert_int_equal(unicon_ctx_memory_peak(s->ctx), peak); /* it never falls */
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "max_mem", "none"));
  unicon__drop(s->ctx, unicon__new(s->ctx, 2 << 20, 1));
  assert_true(unicon_ctx_memory_peak(s->ctx) > 2 << 20);
}

/* A large block that was given back is kept for the next of its size, and held all the while: never
 * is more held, by what is in use and what is spare, than the peak says. */
static void peak_counts_spare_blocks(void **state) {
  scratch *s = *state;
  enum { MEGA = 1 << 20 };
  const unicon__arena *arena = &s->ctx->arena;
  void *small = unicon__new(s->ctx, 10, 1), *block[4];
  unicon__drop(s->ctx, unicon__new(s->ctx, 4 * MEGA, 1));
  assert_true(arena->spare_bytes >= 4 * MEGA);
  uint64_t seed = 1;
  for (int k = 0; k < 300; k++) {
    const int count = 1 + (int)(4 * support_uniform(&seed));
    for (int b = 0; b < count; b++) {
      block[b] = unicon__new(s->ctx, (2 + (int)(5 * support_uniform(&seed))) * MEGA, 1);
      assert_true(scratch_memory(s) + arena->spare_bytes <= unicon_ctx_memory_peak(s->ctx));
    }
    for (int b = 0; b < count; b++) unicon__drop(s->ctx, block[b]);
    assert_true(scratch_memory(s) + arena->spare_bytes <= unicon_ctx_memory_peak(s->ctx));
  }
  assert_true(arena->spare_bytes > 0);
  assert_true(unicon_ctx_memory_peak(s->ctx) < 25 * MEGA); /* four of at most 6 MB */
  unicon__drop(s->ctx, small); /* with the last block all of them go back to the system */
  assert_true(arena->spare_bytes == 0);
}

static void frames_close_what_they_opened(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unsigned char *outer = unicon__new(ctx, 100, 1);
  memset(outer, 7, 100);
  const uint64_t before = unicon__budget_used(ctx->arena.budget);
  unicon__block *frame = unicon__frame_open(ctx);
  void *block[5];
  for (int k = 0; k < 5; k++) block[k] = unicon__new(ctx, 1000 << k, 8);
  unicon__block *inner = unicon__frame_open(ctx);
  for (int k = 0; k < 3; k++) assert_non_null(unicon__new(ctx, 2 << 20, 1));
  unicon__frame_close(ctx, inner);
  unicon__drop(ctx, block[2]); /* in the middle */
  unicon__drop(ctx, block[4]); /* the newest */
  unicon__drop(ctx, block[0]);
  assert_true(unicon__budget_used(ctx->arena.budget) > before + 8000);
  unicon__frame_close(ctx, frame);
  assert_int_equal(unicon__budget_used(ctx->arena.budget), before);
  for (int k = 0; k < 100; k++) assert_int_equal(outer[k], 7);
  unicon__drop(ctx, outer);
}

static void kth_allocation_fails(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  ctx->faults.allocation = 2;
  void *block[5];
  for (int k = 0; k < 5; k++) block[k] = unicon__new(ctx, 10, 8);
  for (int k = 0; k < 5; k++) assert_int_equal(block[k] == NULL, k == 2);
  for (int k = 0; k < 5; k++) unicon__drop(ctx, block[k]);
}

static void budget_outlives_the_context(void **state) {
  (void)state;
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  float copy[6];
  unicon_ctx *ctx = NULL, *other = NULL;
  assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
  assert_int_equal(unicon_ctx_create(&other), UNICON_OK);
  unicon_rows *rows = support_rows(ctx, "rows", data, 3, 2);
  unicon_options *options = support_options(ctx, "rank", "3", NULL);
  unicon__arena arena;
  unicon__arena_init(&arena, ctx->arena.budget);
  assert_non_null(unicon__arena_new(ctx, &arena, 5000, 1));
  unicon__budget *budget = arena.budget;
  const uint64_t all = unicon__budget_used(budget);
  assert_true(all > 5000);
  unicon_ctx_destroy(ctx);
  assert_int_equal(unicon__budget_used(budget), all);
  CHECK_OK(other, unicon_rows_read(other, rows, 0, 3, copy));
  assert_memory_equal(copy, data, sizeof data);
  assert_string_equal(unicon_options_get(options, "rank"), "3");
  unicon_rows_close(rows);
  unicon_options_destroy(options);
  assert_true(unicon__budget_used(budget) < all);
  assert_true(unicon__budget_used(budget) >= 5000);
  unicon__arena_release(&arena);
  unicon_ctx_destroy(other);
}

/* ---- errors and log ------------------------------------------------------------- */

static void errors_have_names_and_texts(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
#define NAME_IS(status) assert_string_equal(unicon_status_name(status), #status)
  NAME_IS(UNICON_OK);
  NAME_IS(UNICON_ERR_ARGUMENT);
  NAME_IS(UNICON_ERR_OPTION);
  NAME_IS(UNICON_ERR_SHAPE);
  NAME_IS(UNICON_ERR_DATA);
  NAME_IS(UNICON_ERR_PAIRS);
  NAME_IS(UNICON_ERR_MEMORY);
  NAME_IS(UNICON_ERR_IO);
  NAME_IS(UNICON_ERR_FORMAT);
  NAME_IS(UNICON_ERR_NUMERIC);
  NAME_IS(UNICON_ERR_CANCELLED);
  NAME_IS(UNICON_ERR_UNSUPPORTED);
  NAME_IS(UNICON_ERR_DEVICE);
#undef NAME_IS
  assert_string_equal(unicon_status_name((unicon_status)99), "UNICON_ERR_UNKNOWN");
  assert_string_equal(unicon_ctx_error(ctx), "");
  assert_int_equal(unicon__fail(ctx, UNICON_ERR_DATA, "row %d of %s", 7, "a.npy"), UNICON_ERR_DATA);
  assert_string_equal(unicon_ctx_error(ctx), "row 7 of a.npy");
  assert_int_equal(unicon__status(ctx), UNICON_ERR_DATA);
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1")); /* a call that succeeds forgets it */
  assert_string_equal(unicon_ctx_error(ctx), "");
  (void)unicon__fail(ctx, UNICON_ERR_DATA, "%s", "a\x1b[2J\n\x7f \xc2\x9b \xc2\xa0\xc3\xa9 \xc2");
  assert_string_equal(unicon_ctx_error(ctx), "a?[2J?? ?? \xc2\xa0\xc3\xa9 \xc2");
  char lengthy[3000];
  memset(lengthy, 'a', sizeof lengthy - 1);
  lengthy[sizeof lengthy - 1] = '\0';
  (void)unicon__fail(ctx, UNICON_ERR_IO, "%s", lengthy);
  assert_int_equal(strlen(unicon_ctx_error(ctx)), sizeof ctx->error - 1);
  assert_true(strlen(unicon_ctx_error(NULL)) > 0);
  assert_int_equal(unicon_ctx_create(NULL), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_ctx_memory_peak(NULL), 0);
  unicon_ctx_destroy(NULL);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", UNICON_VERSION_MAJOR, UNICON_VERSION_MINOR,
           UNICON_VERSION_PATCH);
  assert_string_equal(unicon_version(), version);
  assert_non_null(strstr(unicon_build_info(), "SIMD"));
}

static void log_levels_arrive(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  log_book book = {0};
  unicon__log(ctx, UNICON_LOG_WARNING, "nobody listens");
  unicon_ctx_set_log(ctx, support_log, &book);
  unicon__log(ctx, UNICON_LOG_WARNING, "w %d", 1);
  unicon__log(ctx, UNICON_LOG_INFO, "i %d", 2);
  unicon__log(ctx, UNICON_LOG_INFO, "i %d", 3);
  unicon__log(ctx, UNICON_LOG_DEBUG, "d %d", 4);
  assert_int_equal(book.count[UNICON_LOG_WARNING], 1);
  assert_int_equal(book.count[UNICON_LOG_INFO], 2);
  assert_int_equal(book.count[UNICON_LOG_DEBUG], 1);
  assert_string_equal(book.last[UNICON_LOG_WARNING], "w 1");
  assert_string_equal(book.last[UNICON_LOG_INFO], "i 3");
  assert_string_equal(book.last[UNICON_LOG_DEBUG], "d 4");
  unicon_ctx_set_log(ctx, NULL, NULL);
  unicon__log(ctx, UNICON_LOG_INFO, "nobody listens");
  assert_int_equal(book.count[UNICON_LOG_INFO], 2);
}

/* ---- loops on threads --------------------------------------------------------------------- */

typedef struct tally {
  atomic_int visits[1000];
  atomic_int outside; /* workers that were not 0 .. threads-1 */
  int threads;
} tally;

static void visit(void *state, int64_t item, int worker) {
  tally *t = state;
  atomic_fetch_add(&t->visits[item], 1);
  if (worker < 0 || worker >= t->threads) atomic_fetch_add(&t->outside, 1);
}

static void every_item_once(unicon_ctx *ctx, int threads) {
  static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 999};
  for (int repeat = 0; repeat < 20; repeat++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      tally t = {.threads = threads};
      unicon__parallel_for(ctx, counts[c], visit, &t);
      for (int64_t k = 0; k < 1000; k++) assert_int_equal(t.visits[k], k < counts[c]);
      assert_int_equal(t.outside, 0);
    }
}

static void loops_visit_every_item_once(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int threads = 1; threads <= 5; threads++) {
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", text));
    assert_int_equal(unicon__workers(ctx), threads);
    every_item_once(ctx, threads);
  }
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "all"));
  assert_int_equal(unicon__workers(ctx), unicon__processor_count());
}

typedef struct meeting {
  atomic_int present, met;
  atomic_int seen[4]; /* by worker */
} meeting;

/* Waits until three items are in progress at once, or five seconds. */
static void meet(void *state, int64_t item, int worker) {
  (void)item;
  meeting *m = state;
  const double start = unicon__now();
  atomic_fetch_add(&m->seen[worker], 1);
  atomic_fetch_add(&m->present, 1);
  while (atomic_load(&m->present) < 3 && unicon__now() - start < 5) continue;
  if (atomic_load(&m->present) == 3) atomic_fetch_add(&m->met, 1);
}

static void threads_run_side_by_side(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  meeting m = {0};
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "3"));
  unicon__parallel_for(ctx, 3, meet, &m);
  assert_int_equal(m.met, 3);
  for (int k = 0; k < 3; k++) assert_int_equal(m.seen[k], 1); /* each worker has its own number */
}

static void missing_threads_are_done_without(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int made = 0; made < 3; made++) {
    log_book book = {0};
    char sentence[64];
    unicon_ctx_set_log(ctx, support_log, &book);
    CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "4"));
    ctx->faults.thread = made;
    every_item_once(ctx, made + 1);
    assert_int_equal(ctx->faults.thread, -1);
    snprintf(sentence, sizeof sentence, "4 threads were asked for, %d could be started", made + 1);
    assert_int_equal(book.count[UNICON_LOG_WARNING], 1);
    assert_string_equal(book.last[UNICON_LOG_WARNING], sentence);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(blocks_are_aligned_and_zeroed),
      SCRATCH_TEST(overflow_is_refused),
      SCRATCH_TEST(limit_is_hard),
      SCRATCH_TEST(peak_counts_spare_blocks),
      SCRATCH_TEST(frames_close_what_they_opened),
      SCRATCH_TEST(kth_allocation_fails),
      SCRATCH_TEST(budget_outlives_the_context),
      SCRATCH_TEST(errors_have_names_and_texts),
      SCRATCH_TEST(log_levels_arrive),
      SCRATCH_TEST(loops_visit_every_item_once),
      SCRATCH_TEST(threads_run_side_by_side),
      SCRATCH_TEST(missing_threads_are_done_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
