/* SPDX-License-Identifier: Apache-2.0 */
/* Fits of every kind in which something fails: an allocation, a system call, the start of a thread,
 * or the caller cancels. The right status and a sentence, nothing left behind, and in the end the
 * same context makes the same model as before. UNICON_FAULTS=full tries every event. */
#include "support.h"

enum { N = 44, DX = 6, DY = 5, RANK_MOST = 64 };

typedef struct row {
  const char *name;
  const char *option[11]; /* name, value, ...; NULL. FILE stands for a file of landmarks, MODEL for
                             a model */
  bool held;              /* with validation pairs */
  bool labels;
} row;

static const row rows[] = {
    {"fast", {"preset", "fast"}, false, false},
    {"auto", {"preset", "auto", "kernel", "linear"}, false, false},
    {"auto, held out", {"preset", "auto"}, true, false},
    {"paper", {"preset", "paper", "batch", "20"}, false, false},
    {"steps", {"iterations", "2", "batch", "15", "svd", "random"}, false, true},
    {"power metric", {"metric", "0.25", "iterations", "1"}, false, false},
    {"exact map", {"kernel", "angular", "map", "exact", "kernel_ridge", "0.1"}, false, false},
    {"pivots",
     {"kernel", "rbf", "map", "nystrom", "landmarks", "9", "landmark_method", "pivot"},
     false,
     false},
    {"landmark file",
     {"kernel", "poly", "map", "nystrom", "landmark_method", "FILE"},
     false,
     false},
    {"random features", {"kernel", "rbf", "map", "random", "features", "12"}, false, false},
    {"fused",
     {"kernel", "expcos", "map", "exact", "batch", "15", "aggregate", "accuracy"},
     true,
     false},
    {"refine", {"refine", "2", "refine_batch", "11", "temperature", "learn"}, true, false},
    {"refine a model", {"start", "MODEL", "refine", "1", "metric", "none"}, false, false},
    {"one encoder", {"shared_encoder", "on", "iterations", "1"}, false, false},
    {"triplet", {"loss", "triplet", "iterations", "1"}, false, false},
    {"softplus",
     {"loss", "general", "psi", "softplus", "phi", "identity", "iterations", "1"},
     false,
     false},
    {"siglip", {"loss", "siglip", "iterations", "1"}, false, true},
};

enum { ROWS = sizeof rows / sizeof *rows };

typedef struct stage {
  problem p;
  unicon_data train, held;
  unicon_rows *held_x, *held_y;
  unicon_pairs *labels;
  unicon_options *options;
  const char *path[2]; /* landmarks, model */
  const row *row;
  float spectrum[RANK_MOST]; /* of the last model */
  int64_t rank;
} stage;

static void write_inputs(scratch *s, stage *g) {
  unicon_writer *writer = NULL;
  g->path[0] = scratch_path(s, "landmarks.npy");
  const int64_t landmark[10] = {0, 1, 7, 3, 11, 20, 20, 33, 41, 40}; /* of x and of y */
  CHECK_OK(s->ctx, unicon_writer_open(s->ctx, g->path[0], UNICON_WRITE_I64, 5, 2, &writer));
  CHECK_OK(s->ctx, unicon_writer_append(s->ctx, writer, landmark, 5));
  CHECK_OK(s->ctx, unicon_writer_commit(s->ctx, writer));
  unicon_options *plain = support_options(s->ctx, "metric", "none", NULL);
  unicon_model *model = support_fit(s->ctx, g->p.rows_x, g->p.rows_y, NULL, plain);
  g->path[1] = scratch_path(s, "start.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, g->path[1]));
  unicon_model_destroy(model);
  unicon_options_destroy(plain);
}

static void open_stage(scratch *s, stage *g) {
  int64_t label[N];
  memset(g, 0, sizeof *g);
  s->ctx->tile_x = 16; /* many small tiles instead of one that is mostly page faults */
  s->ctx->tile_y = 16;
  problem_make(s->ctx, 1, N, DX, DY, 4, 0.5, &g->p);
  g->held_x = support_rows(s->ctx, "held x", g->p.x + 4 * DX, N - 4, DX);
  g->held_y = support_rows(s->ctx, "held y", g->p.y + 4 * DY, N - 4, DY);
  for (int64_t i = 0; i < N; i++) label[i] = i / 2;
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, N, label, N, &g->labels));
  g->train = UNICON_DATA(.x = g->p.rows_x, .y = g->p.rows_y);
  g->held = UNICON_DATA(.x = g->held_x, .y = g->held_y);
  write_inputs(s, g);
}

static void choose_row(scratch *s, stage *g, int number) {
  g->row = &rows[number];
  unicon_options_destroy(g->options);
  g->options = support_options(s->ctx, "rank", "3", NULL);
  for (int k = 0; g->row->option[k]; k += 2) {
    const char *value = g->row->option[k + 1];
    if (strcmp(value, "FILE") == 0) value = g->path[0];
    if (strcmp(value, "MODEL") == 0) value = g->path[1];
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, g->options, g->row->option[k], value));
  }
}

static void close_stage(stage *g) {
  unicon_options_destroy(g->options);
  unicon_pairs_destroy(g->labels);
  unicon_rows_close(g->held_x);
  unicon_rows_close(g->held_y);
  problem_free(&g->p);
}

static unicon_status fit(scratch *s, void *user) {
  stage *g = user;
  unicon_model *model = (unicon_model *)(void *)s;
  unicon_data train = g->train;
  if (g->row->labels) train.pairs = g->labels;
  if (strcmp(g->row->name, "one encoder") == 0) train.y = train.x;
  const unicon_status status =
      unicon_fit(s->ctx, &train, g->row->held ? &g->held : NULL, g->options, &model);
  assert_int_equal(model == NULL, status != UNICON_OK);
  if (status == UNICON_OK) {
    g->rank = unicon_model_rank(model);
    assert_true(g->rank > 0 && g->rank <= RANK_MOST);
    memcpy(g->spectrum, unicon_model_spectrum(model), (size_t)g->rank * sizeof *g->spectrum);
  }
  unicon_model_destroy(model);
  return status;
}

/* The same bytes as before. */
static void fits_again(scratch *s, stage *g) {
  const stage before = *g;
  CHECK_OK(s->ctx, fit(s, g));
  assert_int_equal(g->rank, before.rank);
  assert_memory_equal(g->spectrum, before.spectrum, (size_t)g->rank * sizeof *g->spectrum);
}

static void every_allocation_may_fail(void **state) {
  scratch *s = *state;
  stage g;
  open_stage(s, &g);
  for (int k = 0; k < (int)ROWS; k++) {
    choose_row(s, &g, k);
    CHECK_OK(s->ctx, fit(s, &g));
    const int points = scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, fit, &g);
    if (points < 40) print_error("%s: %d allocations\n", g.row->name, points);
    assert_true(points >= 40);
    fits_again(s, &g);
  }
  close_stage(&g);
}

static void every_read_may_fail(void **state) {
  scratch *s = *state;
  stage g;
  int readers = 0;
  open_stage(s, &g);
  for (int k = 0; k < (int)ROWS; k++) {
    choose_row(s, &g, k);
    CHECK_OK(s->ctx, fit(s, &g));
    readers += scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, fit, &g) >= 3;
    fits_again(s, &g);
  }
  assert_int_equal(readers, 2); /* landmarks and a model */
  close_stage(&g);
}

/* Fewer threads than asked for: a warning and the same model. */
static void threads_may_not_start(void **state) {
  if (getenv("UNICON_TEST_DEVICE")) skip(); /* there are few loops on threads */
  scratch *s = *state;
  stage g;
  int failed[2] = {0, 0};
  open_stage(s, &g);
  for (int k = 0; k < (int)ROWS; k++) {
    choose_row(s, &g, k);
    unicon__ctx_set_threads(s->ctx, 3);
    CHECK_OK(s->ctx, fit(s, &g));
    for (int fails = 0; fails < 2; fails++) {
      log_book book = {0};
      unicon__ctx_set_threads(s->ctx, 3); /* a new pool */
      unicon_ctx_set_log(s->ctx, support_log, &book);
      s->ctx->faults.thread = fails;
      fits_again(s, &g);
      /* a fit of few rows may have no loop of two pieces, and then makes no threads */
      const bool asked = s->ctx->faults.thread == -1;
      if (asked) assert_true(book.count[UNICON_LOG_WARNING] >= 1);
      failed[fails] += asked;
      s->ctx->faults.thread = -1;
      unicon_ctx_set_log(s->ctx, NULL, NULL);
    }
  }
  assert_true(failed[0] >= (int)ROWS - 2 && failed[1] == failed[0]);
  close_stage(&g);
}

typedef struct stopper {
  int count, stop_at;
} stopper;

static int stop_at(void *user, const char *phase, double done, double left) {
  (void)left;
  stopper *t = user;
  assert_true(strlen(phase) > 0 && done >= 0 && done <= 1);
  return t->count++ == t->stop_at;
}

static void every_progress_call_may_stop(void **state) {
  scratch *s = *state;
  stage g;
  open_stage(s, &g);
  s->ctx->progress_interval = 0;
  for (int k = 0; k < (int)ROWS; k++) {
    choose_row(s, &g, k);
    CHECK_OK(s->ctx, fit(s, &g));
    const uint64_t memory = scratch_memory(s);
    for (int at = 0;; at = scratch_next_fault(at)) {
      stopper t = {.stop_at = at};
      unicon_ctx_set_progress(s->ctx, stop_at, &t);
      const unicon_status status = fit(s, &g);
      unicon_ctx_set_progress(s->ctx, NULL, NULL);
      assert_int_equal(scratch_memory(s), memory);
      if (t.count <= at) { /* it ended before */
        CHECK_OK(s->ctx, status);
        assert_true(at >= 3);
        break;
      }
      assert_int_equal(t.count, at + 1); /* nothing is asked after the answer */
      scratch_failed(s, status, UNICON_ERR_CANCELLED, "cancelled", "");
    }
    fits_again(s, &g);
  }
  close_stage(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_allocation_may_fail),
      SCRATCH_TEST(every_read_may_fail),
      SCRATCH_TEST(threads_may_not_start),
      SCRATCH_TEST(every_progress_call_may_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
