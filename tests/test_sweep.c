/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of loops: every cell once, folds in order whatever the threads do, few slots, cancel;
 * and progress: stages within stages, one share that never falls, seconds by stage. */
#include <stdatomic.h>

#include "base/clock.h"
#include "base/sweep.h"
#include "support.h"

/* ---- cells -------------------------------------------------------------------------------- */

enum { ROWS = 13, COLS = 7, MOST_SLOTS = 128 };

typedef struct field {
  atomic_int visits[ROWS][COLS];
  int64_t rows, cols;
  int workers, slots;
  double left[MOST_SLOTS]; /* what a cell leaves in its slot */
  atomic_int folds_left[MOST_SLOTS];
  atomic_int wrong; /* a slot or worker out of its bounds, a slot used twice, a fold out of order */
  double row_sum[ROWS], col_sum[COLS];
  int64_t row_next[ROWS], col_next[COLS];
  atomic_int at_row[ROWS], at_col[COLS];
  bool by_row, by_col;
} field;

/* Cells take unlike times, so that they end in another order than they begin. */
static void rest(unicon__cell cell) {
  const double until = unicon__now() + 2e-5 * (double)((cell.row * 5 + cell.col * 3) % 8);
  while (unicon__now() < until) continue;
}

static double value_of(int64_t row, int64_t col) {
  return 1.0 / (double)(1 + row * 31 + col); /* sums of these depend on the order */
}

static void visit(void *state, unicon__cell cell) {
  field *f = state;
  atomic_fetch_add(&f->visits[cell.row][cell.col], 1);
  if (cell.worker < 0 || cell.worker >= f->workers) atomic_fetch_add(&f->wrong, 1);
  rest(cell);
  if (!f->by_row && !f->by_col) return;
  if (cell.slot < 0 || cell.slot >= f->slots) atomic_fetch_add(&f->wrong, 1);
  if (atomic_exchange(&f->folds_left[cell.slot], f->by_row + f->by_col) != 0)
    atomic_fetch_add(&f->wrong, 1);
  f->left[cell.slot] = value_of(cell.row, cell.col);
}

static void fold_row(void *state, unicon__cell cell) {
  field *f = state;
  if (atomic_fetch_add(&f->at_row[cell.row], 1) != 0) atomic_fetch_add(&f->wrong, 1);
  if (f->row_next[cell.row]++ != cell.col) atomic_fetch_add(&f->wrong, 1);
  f->row_sum[cell.row] += f->left[cell.slot];
  atomic_fetch_sub(&f->at_row[cell.row], 1);
  atomic_fetch_sub(&f->folds_left[cell.slot], 1);
}

static void fold_col(void *state, unicon__cell cell) {
  field *f = state;
  if (atomic_fetch_add(&f->at_col[cell.col], 1) != 0) atomic_fetch_add(&f->wrong, 1);
  if (f->col_next[cell.col]++ != cell.row) atomic_fetch_add(&f->wrong, 1);
  f->col_sum[cell.col] += f->left[cell.slot];
  atomic_fetch_sub(&f->at_col[cell.col], 1);
  atomic_fetch_sub(&f->folds_left[cell.slot], 1);
}

static unicon_status run(unicon_ctx *ctx, field *f, int64_t rows, int64_t cols, bool by_row,
                         bool by_col) {
  memset(f, 0, sizeof *f);
  f->rows = rows;
  f->cols = cols;
  f->by_row = by_row;
  f->by_col = by_col;
  f->workers = (int)unicon__workers_for(ctx, rows * cols);
  f->slots = (int)unicon__sweep_slots(ctx, rows * cols);
  assert_true(f->slots <= MOST_SLOTS);
  return unicon__sweep_run(ctx, &(unicon__sweep){.name = "cells",
                                                 .rows = rows,
                                                 .cols = cols,
                                                 .state = f,
                                                 .body = visit,
                                                 .fold_row = by_row ? fold_row : NULL,
                                                 .fold_col = by_col ? fold_col : NULL});
}

static void check_field(const field *f) {
  assert_int_equal(f->wrong, 0);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < COLS; j++)
      assert_int_equal(f->visits[i][j], i < f->rows && j < f->cols);
  for (int64_t i = 0; i < f->rows && f->by_row; i++) {
    double sum = 0;
    for (int64_t j = 0; j < f->cols; j++) sum += value_of(i, j);
    assert_true(f->row_sum[i] == sum); /* to the last bit */
  }
  for (int64_t j = 0; j < f->cols && f->by_col; j++) {
    double sum = 0;
    for (int64_t i = 0; i < f->rows; i++) sum += value_of(i, j);
    assert_true(f->col_sum[j] == sum);
  }
}

static void every_cell_once_and_folds_in_order(void **state) {
  scratch *s = *state;
  static const int64_t shape[][2] = {{0, 1}, {1, 1}, {1, COLS}, {ROWS, 1}, {2, 5}, {ROWS, COLS}};
  field f;
  for (int threads = 1; threads <= 6; threads++)
    for (int repeat = 0; repeat < 10; repeat++)
      for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
        for (int ways = 0; ways < 4; ways++) {
          unicon__ctx_set_threads(s->ctx, threads);
          CHECK_OK(s->ctx, run(s->ctx, &f, shape[k][0], shape[k][1], ways & 1, ways & 2));
          check_field(&f);
          assert_int_equal(scratch_memory(s), 0);
        }
}

/* The first cell takes until all slots but its own are full: nobody waits for ever. */
typedef struct queue {
  atomic_int begun;
  int slots, folded;
} queue;

static void slow_first(void *state, unicon__cell cell) {
  queue *q = state;
  const double start = unicon__now();
  atomic_fetch_add(&q->begun, 1);
  while (cell.row == 0 && atomic_load(&q->begun) < q->slots && unicon__now() - start < 5) continue;
}

static void count_fold(void *state, unicon__cell cell) {
  queue *q = state;
  assert_int_equal(q->folded++, cell.row);
}

static void a_slow_cell_holds_nobody_for_ever(void **state) {
  scratch *s = *state;
  unicon__ctx_set_threads(s->ctx, 3);
  queue q = {.slots = (int)unicon__sweep_slots(s->ctx, 40)};
  CHECK_OK(s->ctx, unicon__sweep_run(s->ctx, &(unicon__sweep){.rows = 40,
                                                              .cols = 1,
                                                              .state = &q,
                                                              .body = slow_first,
                                                              .fold_col = count_fold}));
  assert_int_equal(q.folded, 40);
}

static int depth; /* of the region below */

static void go_in(void) {
  depth++;
}

static void go_out(void) {
  depth--;
}

static void inside(void *state, unicon__cell cell) {
  (void)state, (void)cell;
  assert_int_equal(depth, 1);
}

static int stop_now(void *user, const char *label, double done, double left) {
  (void)done, (void)left;
  assert_string_equal(label, "cells");
  return ++*(int *)user == 2;
}

static void regions_and_cancel(void **state) {
  scratch *s = *state;
  static const unicon__region region = {go_in, go_out};
  field f;
  CHECK_OK(s->ctx, unicon__sweep_rows(s->ctx, NULL, &region, 20, inside, NULL));
  assert_int_equal(depth, 0);
  s->ctx->progress_interval = 0;
  for (int threads = 1; threads <= 4; threads++)
    for (int folds = 0; folds < 2; folds++) {
      int asked = 0, seen = 0;
      unicon__ctx_set_threads(s->ctx, threads);
      unicon__block *frame = unicon__frame_open(s->ctx);
      unicon_ctx_set_progress(s->ctx, stop_now, &asked);
      scratch_failed(s, run(s->ctx, &f, ROWS, COLS, folds, folds), UNICON_ERR_CANCELLED,
                     "cancelled", "cells");
      unicon__frame_close(s->ctx, frame);
      for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++) seen += f.visits[i][j];
      assert_true(seen < ROWS * COLS);
      assert_int_equal(asked, 2);
      /* whoever asks afterwards hears the same, without the callback */
      assert_int_equal(unicon__poll(s->ctx), UNICON_ERR_CANCELLED);
      assert_int_equal(run(s->ctx, &f, 3, 3, false, false), UNICON_ERR_CANCELLED);
      assert_int_equal(f.visits[0][0], 0);
      assert_int_equal(asked, 2);
      unicon_ctx_set_progress(s->ctx, NULL, NULL);
      unicon__clear_error(s->ctx);
      unicon__progress_reset(s->ctx);
    }
}

static unicon_status sweep_with_folds(scratch *s, void *user) {
  unicon__block *frame = unicon__frame_open(s->ctx);
  const unicon_status status = run(s->ctx, user, ROWS, COLS, true, true);
  unicon__frame_close(s->ctx, frame);
  unicon__progress_reset(s->ctx);
  return status;
}

static void memory_may_run_out(void **state) {
  scratch *s = *state;
  field f;
  assert_int_equal(
      scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, sweep_with_folds, &f), 3);
}

/* ---- progress ----------------------------------------------------------------------------- */

typedef struct reports {
  int count;
  double done, left;
  char label[64];
} reports;

static int keep_report(void *user, const char *label, double done, double left) {
  reports *r = user;
  assert_true(done >= r->done && done <= 1); /* it never falls */
  snprintf(r->label, sizeof r->label, "%s", label);
  r->done = done;
  r->left = left;
  r->count++;
  return 0;
}

static void shares_nest(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  reports r = {0};
  ctx->progress_interval = 0;
  unicon_ctx_set_progress(ctx, keep_report, &r);
  CHECK_OK(ctx, unicon__poll(ctx));
  assert_string_equal(r.label, "working");
  const int outer = unicon__stage_begin(ctx, NULL, 0.5);
  const int inner = unicon__stage_begin(ctx, "inner", 0.8);
  CHECK_OK(ctx, unicon__stage_step(ctx, 1, 4));
  CHECK_CLOSE(r.done, 0.5 * 0.8 * 0.25, 1e-12);
  assert_string_equal(r.label, "inner");
  const int leaf = unicon__stage_begin(ctx, "leaf", 0.5); /* half of the second of four steps */
  CHECK_OK(ctx, unicon__stage_step(ctx, 1, 2));
  CHECK_CLOSE(r.done, 0.4 * (0.25 + 0.25 * 0.5 * 0.5), 1e-12);
  assert_string_equal(r.label, "inner"); /* the outermost that has a name */
  unicon__stage_end(ctx, leaf);
  CHECK_OK(ctx, unicon__poll(ctx));
  CHECK_CLOSE(r.done, 0.4 * (0.25 + 0.125), 1e-12);
  /* what nobody planned takes half of what is left of the step, again and again */
  for (int k = 0; k < 3; k++) unicon__stage_end(ctx, unicon__stage_begin(ctx, NULL, 0));
  CHECK_OK(ctx, unicon__poll(ctx));
  CHECK_CLOSE(r.done, 0.4 * (0.5 - 0.125 / 8), 1e-12);
  CHECK_OK(ctx, unicon__stage_step(ctx, 0, 4)); /* back: the share stays */
  CHECK_CLOSE(r.done, 0.4 * (0.5 - 0.125 / 8), 1e-12);
  unicon__stage_end(ctx, inner);
  unicon__stage_label(ctx, "candidate %d of %d, %s", 4, 11, "angular");
  const int rest_of_it = unicon__stage_begin(ctx, "deep", 5); /* more than there is: all of it */
  CHECK_OK(ctx, unicon__poll(ctx));
  CHECK_CLOSE(r.done, 0.4, 1e-12);
  assert_string_equal(r.label, "candidate 4 of 11, angular");
  unicon__stage_end(ctx, rest_of_it);
  CHECK_OK(ctx, unicon__poll(ctx));
  CHECK_CLOSE(r.done, 0.5, 1e-12);
  unicon__stage_end(ctx, outer);
  unicon__stage_end(ctx, outer); /* once more does nothing */
  CHECK_OK(ctx, unicon__poll(ctx));
  CHECK_CLOSE(r.done, 0.5, 1e-12);
  unicon__progress_reset(ctx);
}

static void stages_left_open_end_with_the_outer_one(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const int outer = unicon__stage_begin(ctx, "outer", 0.25);
  for (int k = 0; k < 40; k++) (void)unicon__stage_begin(ctx, "deeper", 0.9);
  unicon__stage_end(ctx, outer);
  assert_int_equal(ctx->progress.depth, 0);
  CHECK_CLOSE(ctx->progress.stage[0].at, 0.25, 1e-12);
  unicon__progress_reset(ctx);
}

static void the_callback_has_time_between(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  reports r = {0};
  ctx->progress_interval = 1e9; /* only a new label is worth a call */
  unicon_ctx_set_progress(ctx, keep_report, &r);
  int stage = unicon__stage_begin(ctx, "one", 0.3);
  for (int k = 0; k < 4; k++) CHECK_OK(ctx, unicon__stage_step(ctx, k, 4));
  assert_int_equal(r.count, 1);
  assert_true(r.left < 0); /* too early to say */
  unicon__stage_end(ctx, stage);
  stage = unicon__stage_begin(ctx, "two", 0.3);
  CHECK_OK(ctx, unicon__poll(ctx));
  assert_int_equal(r.count, 2);
  assert_string_equal(r.label, "two");
  ctx->progress.begun -= 60; /* as if a minute had passed */
  ctx->progress_interval = 0;
  CHECK_OK(ctx, unicon__stage_step(ctx, 1, 3));
  CHECK_CLOSE(r.done, 0.4, 1e-12);
  CHECK_CLOSE(r.left, 90, 5); /* 60 s for .4; the test itself takes a while */
  unicon__stage_end(ctx, stage);
  unicon_ctx_set_progress(ctx, NULL, NULL);
  unicon__progress_reset(ctx);
}

static void wait_for(double seconds) {
  const double start = unicon__now();
  while (unicon__now() - start < seconds) continue;
}

static double seconds_of(const unicon_ctx *ctx, const char *name) {
  for (int k = 0; k < ctx->progress.names; k++)
    if (strcmp(ctx->progress.name[k], name) == 0) return ctx->progress.seconds[k];
  return -1;
}

/* A stage's seconds are without those of its inner ones, and those of all names are all seconds. */
static void seconds_are_counted_once(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  log_book book = {0};
  unicon__progress_reset(ctx);
  const double start = unicon__now();
  for (int k = 0; k < 2; k++) {
    const int outer = unicon__stage_begin(ctx, "outer", 0.5);
    wait_for(0.004);
    const int inner = unicon__stage_begin(ctx, "inner", 0.5);
    const int nameless = unicon__stage_begin(ctx, NULL, 0.5);
    wait_for(0.008);
    unicon__stage_end(ctx, nameless);
    unicon__stage_end(ctx, inner);
    unicon__stage_end(ctx, outer);
  }
  wait_for(0.002);
  unicon_ctx_set_log(ctx, support_log, &book);
  unicon__stage_report(ctx);
  const double all = unicon__now() - start;
  assert_int_equal(book.count[UNICON_LOG_DEBUG], 3);
  const double outer = seconds_of(ctx, "outer"), inner = seconds_of(ctx, "inner");
  const double other = seconds_of(ctx, "other");
  assert_true(outer >= 0.008 && inner >= 0.016 && other >= 0.002);
  assert_true(outer + inner + other <= all + 1e-4);
  unicon_ctx_set_log(ctx, NULL, NULL);
  unicon__progress_reset(ctx);
}

static void many_names_are_too_many(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static char name[2 * UNICON__STAGE_NAMES][16];
  unicon__progress_reset(ctx);
  for (int k = 0; k < 2 * UNICON__STAGE_NAMES; k++) {
    snprintf(name[k], sizeof name[k], "n%d", k);
    unicon__stage_end(ctx, unicon__stage_begin(ctx, name[k], 0));
  }
  assert_true(ctx->progress.names < UNICON__STAGE_NAMES);
  unicon__progress_reset(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_cell_once_and_folds_in_order),
      SCRATCH_TEST(a_slow_cell_holds_nobody_for_ever),
      SCRATCH_TEST(regions_and_cancel),
      SCRATCH_TEST(memory_may_run_out),
      SCRATCH_TEST(shares_nest),
      SCRATCH_TEST(stages_left_open_end_with_the_outer_one),
      SCRATCH_TEST(the_callback_has_time_between),
      SCRATCH_TEST(seconds_are_counted_once),
      SCRATCH_TEST(many_names_are_too_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
