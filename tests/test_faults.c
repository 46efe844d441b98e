/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation that can fail and every progress call that can stop: the right status, nothing
 * left behind, the BLAS threads given back, and a context that works on. */
#include <cblas.h>

#include "support.h"

enum { N = 40, DX = 6, DY = 5, K = 3 };

/* Everything the calls need, and what they write. */
typedef struct stage {
  problem p;
  unicon_pairs *pairs;
  unicon_options *options;
  unicon_model *model;
  const char *path, *saved;
  float *z;
} stage;

static void open_stage(scratch *s, stage *g) {
  int64_t label_x[N], label_y[N];
  memset(g, 0, sizeof *g);
  s->ctx->tile_x = 16; /* many small tiles instead of one that is mostly page faults */
  s->ctx->tile_y = 16;
  problem_make(s->ctx, 1, N, DX, DY, 4, 0.5, &g->p);
  for (int64_t i = 0; i < N; i++) label_x[i] = label_y[i] = i / 2;
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label_x, N, label_y, N, &g->pairs));
  g->options = support_options(s->ctx, "iterations", "2", "batch", "15", "temperature", "1", "ci",
                               "on", "bad_rows", "drop", "svd", "random", NULL);
  g->p.x[3 * DX] = NAN; /* the dropping of rows is on the way too */
  g->model = support_fit(s->ctx, g->p.rows_x, g->p.rows_y, g->pairs, g->options);
  g->p.x[3 * DX] = 1;
  g->saved = scratch_path(s, "saved.safetensors");
  g->path = scratch_path(s, "again.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, g->model, g->saved));
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, g->model, g->path));
  g->z = support_floats(N * DX);
}

static void close_stage(stage *g) {
  unicon_model_destroy(g->model);
  unicon_options_destroy(g->options);
  unicon_pairs_destroy(g->pairs);
  problem_free(&g->p);
  free(g->z);
}

static unicon_status call_fit(scratch *s, void *user) {
  stage *g = user;
  unicon_model *model = (unicon_model *)(void *)s;
  g->p.x[3 * DX] = NAN;
  const unicon_data data = {g->p.rows_x, g->p.rows_y, g->pairs, NULL};
  const unicon_status status = unicon_fit(s->ctx, &data, NULL, g->options, &model);
  assert_int_equal(model == NULL, status != UNICON_OK);
  g->p.x[3 * DX] = 1;
  unicon_model_destroy(model);
  return status;
}

static unicon_status call_embed(scratch *s, void *user) {
  stage *g = user;
  return unicon_embed(s->ctx,
                      &(unicon_view){.rows = g->p.rows_x, .model = g->model, .side = UNICON_X}, 0,
                      N, 1, g->z);
}

static unicon_status call_search(scratch *s, void *user) {
  stage *g = user;
  int64_t ids[N * K];
  float scores[N * K];
  return unicon_search(
      s->ctx, &(unicon_view){.rows = g->p.rows_x, .model = g->model, .side = UNICON_X},
      &(unicon_view){.rows = g->p.rows_y, .model = g->model, .side = UNICON_Y}, K, ids, scores);
}

static unicon_status call_evaluate(scratch *s, void *user) {
  stage *g = user;
  unicon_metrics to_y, to_x;
  return unicon_evaluate(s->ctx,
                         &(unicon_view){.rows = g->p.rows_x, .model = g->model, .side = UNICON_X},
                         &(unicon_view){.rows = g->p.rows_y, .model = g->model, .side = UNICON_Y},
                         g->pairs, g->options, &to_y, &to_x);
}

static unicon_status call_evaluate_identity(scratch *s, void *user) {
  stage *g = user;
  unicon_metrics to_y, to_x;
  return unicon_evaluate(s->ctx,
                         &(unicon_view){.rows = g->p.rows_x, .model = g->model, .side = UNICON_X},
                         &(unicon_view){.rows = g->p.rows_y, .model = g->model, .side = UNICON_Y},
                         NULL, NULL, &to_y, &to_x);
}

static unicon_status call_save(scratch *s, void *user) {
  stage *g = user;
  return unicon_model_save(s->ctx, g->model, g->path);
}

static unicon_status call_load(scratch *s, void *user) {
  stage *g = user;
  unicon_model *model = (unicon_model *)(void *)s;
  const unicon_status status = unicon_model_load(s->ctx, g->saved, &model);
  assert_int_equal(model == NULL, status != UNICON_OK);
  unicon_model_destroy(model);
  return status;
}

static unicon_status call_synth(scratch *s, void *user) {
  (void)user;
  float x[2 * 40], y[2 * 30];
  int64_t label[2];
  return unicon_synth(s->ctx, "linear", NULL, NULL, 0, 2, x, y, label);
}

static unicon_status call_plan(scratch *s, void *user) {
  stage *g = user;
  unicon_plan_result plan;
  const unicon_data data = {g->p.rows_x, g->p.rows_y, g->pairs, NULL};
  return unicon_plan(s->ctx, &data, g->options, &plan);
}

typedef unicon_status (*call_fn)(scratch *s, void *user);

static const struct {
  const char *name;
  call_fn call;
  int allocations; /* at least */
  int reports;     /* at least */
} calls[] = {{"fit", call_fit, 60, 15},
             {"embed", call_embed, 1, 1},
             {"search", call_search, 5, 2},
             {"evaluate", call_evaluate, 8, 4},
             {"evaluate", call_evaluate_identity, 8, 4},
             {"save", call_save, 3, 0},
             {"load", call_load, 8, 0},
             {"plan", call_plan, 1, 0},
             {"synth", call_synth, 4, 0}};

static void every_allocation_may_fail(void **state) {
  scratch *s = *state;
  stage g;
  open_stage(s, &g);
  const int before = openblas_get_num_threads(), blas = 3; /* not what the context uses */
  openblas_set_num_threads(blas);
  for (int threads = 1; threads <= 2; threads++)
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
      unicon__ctx_set_threads(s->ctx, threads);
      const int points =
          scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, calls[c].call, &g);
      if (points < calls[c].allocations) print_error("%s: %d\n", calls[c].name, points);
      assert_true(points >= calls[c].allocations);
      assert_int_equal(openblas_get_num_threads(), blas);
    }
  openblas_set_num_threads(before);
  close_stage(&g);
}

typedef struct stopper {
  int count, stop_at;
  double last;
  char phase[64];
} stopper;

static int stop_at(void *user, const char *phase, double done, double left) {
  (void)left;
  stopper *t = user;
  assert_true(done >= 0 && done <= 1);
  assert_true(strlen(phase) > 0);
  snprintf(t->phase, sizeof t->phase, "%s", phase);
  return t->count++ == t->stop_at;
}

static void every_progress_call_may_stop(void **state) {
  scratch *s = *state;
  stage g;
  open_stage(s, &g);
  const int before = openblas_get_num_threads(), blas = 3; /* not what the context uses */
  openblas_set_num_threads(blas);
  const uint64_t memory = scratch_memory(s);
  s->ctx->progress_interval = 0;
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
    for (int k = 0;; k = scratch_next_fault(k)) {
      stopper t = {.stop_at = k};
      unicon_ctx_set_progress(s->ctx, stop_at, &t);
      const unicon_status status = calls[c].call(s, &g);
      assert_int_equal(scratch_memory(s), memory);
      assert_int_equal(openblas_get_num_threads(), blas);
      if (t.count <= k) { /* it ended before */
        CHECK_OK(s->ctx, status);
        if (k < calls[c].reports) print_error("%s: %d\n", calls[c].name, k);
        assert_true(k >= calls[c].reports);
        break;
      }
      assert_int_equal(t.count, k + 1); /* nothing is asked after the answer */
      scratch_failed(s, status, UNICON_ERR_CANCELLED, "cancelled", t.phase);
    }
  }
  unicon_ctx_set_progress(s->ctx, NULL, NULL);
  openblas_set_num_threads(before);
  close_stage(&g);
}

/* After all of that, the context fits the very same model. */
static void context_works_on(void **state) {
  scratch *s = *state;
  stage g;
  open_stage(s, &g);
  for (int k = 0; k < 400; k += 7) {
    s->ctx->faults.allocation = k;
    (void)call_fit(s, &g);
    s->ctx->faults.allocation = -1;
  }
  stopper t = {.stop_at = 4};
  s->ctx->progress_interval = 0;
  unicon_ctx_set_progress(s->ctx, stop_at, &t);
  assert_int_equal(call_fit(s, &g), UNICON_ERR_CANCELLED);
  unicon_ctx_set_progress(s->ctx, NULL, NULL);
  g.p.x[3 * DX] = NAN;
  unicon_model *again = support_fit(s->ctx, g.p.rows_x, g.p.rows_y, g.pairs, g.options);
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, again, g.path));
  size_t size[2];
  unsigned char *bytes[2] = {support_slurp(g.saved, &size[0]), support_slurp(g.path, &size[1])};
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  free(bytes[0]);
  free(bytes[1]);
  unicon_model_destroy(again);
  close_stage(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_allocation_may_fail),
      SCRATCH_TEST(every_progress_call_may_stop),
      SCRATCH_TEST(context_works_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
