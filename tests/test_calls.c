/* SPDX-License-Identifier: Apache-2.0 */
/* One call at a time: what a callback may do with the context whose call it belongs to, and that
 * every public function gives its context back, whatever became of it. */
#include "support.h"

enum { N = 60, DX = 8, DY = 6 };

/* What the calls below work on. */
typedef struct things {
  scratch *s;
  unicon_ctx *ctx;
  problem p;
  unicon_pairs *pairs;
  unicon_options *options;
  unicon_model *model;
  const char *path; /* of the model */
  int visits, refused;
} things;

static void things_open(scratch *s, things *t) {
  *t = (things){.s = s, .ctx = s->ctx};
  problem_make(s->ctx, 5, N, DX, DY, 4, 0.3, &t->p);
  CHECK_OK(s->ctx, unicon_pairs_identity(s->ctx, N, N, &t->pairs));
  t->options = support_options(s->ctx, "rank", "3", NULL);
  t->model = support_fit(s->ctx, t->p.rows_x, t->p.rows_y, NULL, t->options);
  t->path = scratch_path(s, "model.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, t->model, t->path));
}

static void things_close(things *t) {
  unicon_model_destroy(t->model);
  unicon_options_destroy(t->options);
  unicon_pairs_destroy(t->pairs);
  problem_free(&t->p);
}

/* ---- every public function that takes a context ------------------------------------------- */

typedef unicon_status (*public_call)(things *t);

static unicon_status call_set(things *t) {
  return unicon_ctx_set(t->ctx, "threads", "7");
}

static unicon_status call_options_create(things *t) {
  unicon_options *out = NULL;
  const unicon_status status = unicon_options_create(t->ctx, &out);
  assert_int_equal(out != NULL, status == UNICON_OK);
  unicon_options_destroy(out);
  return status;
}

static unicon_status call_options_set(things *t) {
  return unicon_options_set(t->ctx, t->options, "rank", "3");
}

static unicon_status call_rows_open(things *t) {
  unicon_rows *out = NULL;
  char path[1200];
  snprintf(path, sizeof path, "%s:weight_x", t->path);
  const unicon_status status = unicon_rows_open(t->ctx, path, &out);
  unicon_rows_close(out);
  return status == UNICON_ERR_FORMAT ? UNICON_OK : status; /* there may be no such tensor */
}

static unicon_status call_rows_wrap(things *t) {
  unicon_rows *out = NULL;
  const unicon_status status =
      unicon_rows_wrap(t->ctx, "x", t->p.x, UNICON_F32, N, DX, 4 * DX, 4, &out);
  unicon_rows_close(out);
  return status;
}

static unicon_status call_rows_read(things *t) {
  float row[DX];
  return unicon_rows_read(t->ctx, t->p.rows_x, 0, 1, row);
}

static unicon_status drop_pairs(unicon_status status, unicon_pairs *pairs) {
  assert_int_equal(pairs != NULL, status == UNICON_OK);
  unicon_pairs_destroy(pairs);
  return status;
}

static unicon_status call_pairs_identity(things *t) {
  unicon_pairs *out = NULL;
  const unicon_status status = unicon_pairs_identity(t->ctx, N, N, &out);
  return drop_pairs(status, out);
}

static unicon_status call_pairs_per_y(things *t) {
  unicon_pairs *out = NULL;
  const unicon_status status = unicon_pairs_per_y(t->ctx, N, N / 2, 2, &out);
  return drop_pairs(status, out);
}

static unicon_status call_pairs_list(things *t) {
  static const int64_t one[] = {1};
  unicon_pairs *out = NULL;
  unicon_status status = unicon_pairs_list(t->ctx, N, N, one, one, NULL, 1, &out);
  if (status == UNICON_OK)
    status = unicon_pairs_set_ignored(t->ctx, out, one, (int64_t[]){2}, NULL, 1);
  if (status == UNICON_OK)
    status = unicon_pairs_set_negatives(t->ctx, out, one, (int64_t[]){3}, NULL, 1);
  return drop_pairs(status, out);
}

static unicon_status call_pairs_labels(things *t) {
  int64_t label[N] = {0};
  unicon_pairs *out = NULL;
  const unicon_status status = unicon_pairs_labels(t->ctx, label, N, label, N, &out);
  return drop_pairs(status, out);
}

static unicon_status call_pairs_read(things *t) {
  const char *path = scratch_text(t->s, "pairs.tsv", "1\t2\n");
  const char *other = scratch_text(t->s, "other.tsv", "1\t3\n");
  const char *third = scratch_text(t->s, "third.tsv", "1\t4\n");
  unicon_pairs *out = NULL;
  unicon_status status = unicon_pairs_read(t->ctx, path, N, N, &out);
  if (status == UNICON_OK) status = unicon_pairs_read_ignored(t->ctx, out, other);
  if (status == UNICON_OK) status = unicon_pairs_read_negatives(t->ctx, out, third);
  return drop_pairs(status, out);
}

static unicon_status call_labels(things *t) {
  const char *path = scratch_text(t->s, "labels.txt", "a\nb\n");
  unicon_pairs *pairs = NULL;
  unicon_labels *labels = NULL;
  unicon_status status = unicon_pairs_read_labels(t->ctx, path, path, 2, 2, &pairs);
  if (status == UNICON_OK) status = unicon_labels_read(t->ctx, path, 2, NULL, 0, &labels);
  assert_int_equal(labels != NULL, status == UNICON_OK);
  unicon_labels_destroy(labels);
  return drop_pairs(status, pairs);
}

static unicon_status call_split(things *t) {
  unicon_split *out = NULL;
  const unicon_data data = {t->p.rows_x, t->p.rows_y, NULL, NULL};
  const unicon_status status = unicon_split_make(t->ctx, &data, 0.3, t->options, &out);
  assert_int_equal(out != NULL, status == UNICON_OK);
  unicon_split_destroy(out);
  return status;
}

static unicon_status call_fit(things *t) {
  unicon_model *out = NULL;
  const unicon_data data = {t->p.rows_x, t->p.rows_y, NULL, NULL};
  const unicon_status status = unicon_fit(t->ctx, &data, NULL, t->options, &out);
  assert_int_equal(out != NULL, status == UNICON_OK);
  unicon_model_destroy(out);
  return status;
}

static unicon_status call_plan(things *t) {
  unicon_plan_result out;
  return unicon_plan(t->ctx, &(unicon_data){t->p.rows_x, t->p.rows_y, NULL, NULL}, NULL, &out);
}

static unicon_status call_model_save(things *t) {
  return unicon_model_save(t->ctx, t->model, t->path);
}

static unicon_status call_model_load(things *t) {
  unicon_model *out = NULL;
  const unicon_status status = unicon_model_load(t->ctx, t->path, &out);
  assert_int_equal(out != NULL, status == UNICON_OK);
  unicon_model_destroy(out);
  return status;
}

static unicon_status call_embed(things *t) {
  float z[N * 3];
  return unicon_embed(
      t->ctx, &(unicon_view){.rows = t->p.rows_x, .model = t->model, .side = UNICON_X}, 0, N, 1, z);
}

static unicon_status call_search(things *t) {
  int64_t ids[N];
  float scores[N];
  return unicon_search(
      t->ctx, &(unicon_view){.rows = t->p.rows_x, .model = t->model, .side = UNICON_X},
      &(unicon_view){.rows = t->p.rows_y, .model = t->model, .side = UNICON_Y}, 1, ids, scores);
}

static unicon_status call_evaluate(things *t) {
  unicon_metrics to_y, to_x;
  return unicon_evaluate(t->ctx,
                         &(unicon_view){.rows = t->p.rows_x, .model = t->model, .side = UNICON_X},
                         &(unicon_view){.rows = t->p.rows_y, .model = t->model, .side = UNICON_Y},
                         NULL, NULL, &to_y, &to_x);
}

static unicon_status call_ranks(things *t) {
  int64_t rank[N];
  return unicon_ranks(
      t->ctx, &(unicon_view){.rows = t->p.rows_x, .model = t->model, .side = UNICON_X},
      &(unicon_view){.rows = t->p.rows_y, .model = t->model, .side = UNICON_Y}, NULL, rank, NULL);
}

static unicon_status call_weights(things *t) {
  double loss;
  return unicon_weights(t->ctx,
                        &(unicon_view){.rows = t->p.rows_x, .model = t->model, .side = UNICON_X},
                        &(unicon_view){.rows = t->p.rows_y, .model = t->model, .side = UNICON_Y},
                        t->pairs, NULL, NULL, NULL, &loss);
}

static unicon_status call_probe(things *t) {
  int64_t label[N], classes;
  unicon_probe_result out;
  const unicon_view rows = {.rows = t->p.rows_x, .model = NULL, .side = UNICON_X};
  for (int64_t i = 0; i < N; i++) label[i] = i % 2;
  UNICON_TRY(unicon_probe_classes(t->ctx, label, N, label, N, &classes, NULL));
  return unicon_probe(t->ctx, &rows, label, &rows, label, NULL, classes, NULL, &out);
}

static unicon_status call_classify(things *t) {
  int64_t label[N] = {0};
  unicon_classify_result out;
  const unicon_view rows = {.rows = t->p.rows_x, .model = NULL, .side = UNICON_X};
  return unicon_classify(t->ctx, &rows, label, &rows, NULL, NULL, &out);
}

static unicon_status call_check(things *t) {
  unicon_check_result out;
  return unicon_check(t->ctx, &(unicon_data){t->p.rows_x, t->p.rows_y, NULL, NULL}, NULL, 0, NULL,
                      &out);
}

static unicon_status call_synth(things *t) {
  float x[1000], y[1000];
  int64_t label[1];
  unicon_options *options = NULL;
  unicon_status status = unicon_options_create(t->ctx, &options);
  if (status == UNICON_OK) status = unicon_options_set(t->ctx, options, "dim_x", "40");
  if (status == UNICON_OK) status = unicon_options_set(t->ctx, options, "dim_y", "40");
  if (status == UNICON_OK)
    status = unicon_synth(t->ctx, "linear", options, NULL, 0, 1, x, y, label);
  unicon_options_destroy(options);
  return status;
}

/* A writer that another context opened: whatever the status, commit ends it. */
static unicon_status call_writer(things *t) {
  unicon_ctx *other = NULL;
  unicon_writer *writer = NULL, *second = NULL;
  const float row[2] = {1, 2};
  assert_int_equal(unicon_ctx_create(&other), UNICON_OK);
  CHECK_OK(other,
           unicon_writer_open(other, scratch_path(t->s, "a.npy"), UNICON_WRITE_F32, 1, 2, &writer));
  CHECK_OK(other, unicon_writer_append(other, writer, row, 1));
  unicon_ctx_destroy(other);
  const unicon_status first =
      unicon_writer_open(t->ctx, scratch_path(t->s, "b.npy"), UNICON_WRITE_F32, 1, 2, &second);
  assert_int_equal(second != NULL, first == UNICON_OK);
  if (second) CHECK_OK(t->ctx, unicon_writer_append(t->ctx, second, row, 1));
  unicon_writer_discard(second);
  const unicon_status status = unicon_writer_commit(t->ctx, writer);
  assert_int_equal(first, status);
  return status;
}

static const public_call calls[] = {
    call_set,        call_options_create, call_options_set,    call_rows_open,   call_rows_wrap,
    call_rows_read,  call_pairs_list,     call_pairs_identity, call_pairs_per_y, call_pairs_labels,
    call_pairs_read, call_labels,         call_split,          call_fit,         call_plan,
    call_model_save, call_model_load,     call_embed,          call_search,      call_evaluate,
    call_ranks,      call_weights,        call_probe,          call_classify,    call_check,
    call_synth,      call_writer,
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *const sentence = "inside another call";

/* ---- callbacks ---------------------------------------------------------------------------- */

static void try_all(things *t) {
  t->visits++;
  for (int k = 0; k < CALLS; k++) {
    const unicon_status status = calls[k](t);
    t->refused += status == UNICON_ERR_ARGUMENT && strstr(unicon_ctx_error(t->ctx), sentence);
  }
  assert_true(unicon_ctx_memory_peak(t->ctx) > 0); /* questions are answered */
}

static int progress_that_calls(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)phase;
  (void)done;
  things *t = user;
  if (t->visits < 2) try_all(t);
  return 0;
}

static int progress_unused(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)user;
  (void)phase;
  (void)done;
  return 1; /* would cancel */
}

/* A fit of x with y whose callbacks use the context; the same model must come of it. */
static unicon_model *fit_listened(things *t, unicon_progress_fn progress, unicon_log_fn log) {
  unicon_model *out = NULL;
  t->visits = t->refused = 0;
  unicon_ctx_set_progress(t->ctx, progress, t);
  unicon_ctx_set_log(t->ctx, log, t);
  CHECK_OK(t->ctx, unicon_fit(t->ctx, &(unicon_data){t->p.rows_x, t->p.rows_y, NULL, NULL}, NULL,
                              t->options, &out));
  unicon_ctx_set_progress(t->ctx, NULL, NULL);
  unicon_ctx_set_log(t->ctx, NULL, NULL);
  assert_string_equal(unicon_ctx_error(t->ctx), "");
  assert_true(t->visits > 0);
  return out;
}

static void check_same_model(const unicon_model *a, const unicon_model *b) {
  assert_int_equal(unicon_model_rank(a), unicon_model_rank(b));
  assert_memory_equal(unicon_model_spectrum(a), unicon_model_spectrum(b),
                      (size_t)unicon_model_rank(a) * sizeof(float));
}

static void calls_of_a_callback_are_refused(void **state) {
  things t;
  things_open(*state, &t);
  CHECK_OK(t.ctx, unicon_ctx_set(t.ctx, "threads", "2"));
  unicon_model *model = fit_listened(&t, progress_that_calls, NULL);
  assert_int_equal(t.visits, 2);
  assert_int_equal(t.refused, 2 * CALLS);
  assert_int_equal(t.ctx->threads, 2);
  check_same_model(model, t.model);
  unicon_model_destroy(model);
  things_close(&t);
}

static void log_that_calls(void *user, unicon_log_level level, const char *text) {
  (void)level;
  (void)text;
  things *t = user;
  if (t->visits < 1) try_all(t);
}

static void so_are_those_of_a_log(void **state) {
  things t;
  things_open(*state, &t);
  unicon_model *model = fit_listened(&t, NULL, log_that_calls);
  assert_int_equal(t.refused, CALLS);
  check_same_model(model, t.model);
  unicon_model_destroy(model);
  things_close(&t);
}

static int progress_that_destroys(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)phase;
  (void)done;
  things *t = user;
  t->visits++;
  unicon_ctx_destroy(t->ctx);
  assert_non_null(strstr(unicon_ctx_error(t->ctx), sentence));
  unicon_ctx_set_log(t->ctx, log_that_calls, NULL);
  unicon_ctx_set_progress(t->ctx, progress_unused, NULL);
  assert_non_null(strstr(unicon_ctx_error(t->ctx), sentence));
  return 0;
}

static void a_callback_changes_and_destroys_nothing(void **state) {
  things t;
  things_open(*state, &t);
  t.ctx->progress_interval = 0;
  unicon_model *model = fit_listened(&t, progress_that_destroys, NULL);
  assert_true(t.visits > 1);
  check_same_model(model, t.model);
  unicon_model_destroy(model);
  things_close(&t);
}

static int progress_that_cancels(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)phase;
  (void)done;
  things *t = user;
  assert_int_equal(unicon_ctx_set(t->ctx, "threads", "1"), UNICON_ERR_ARGUMENT);
  return 1;
}

/* The text is that of the call itself, not of what was refused meanwhile. */
static void the_error_is_of_the_call(void **state) {
  things t;
  unicon_model *out = NULL;
  things_open(*state, &t);
  unicon_ctx_set_progress(t.ctx, progress_that_cancels, &t);
  const unicon_status status =
      unicon_fit(t.ctx, &(unicon_data){t.p.rows_x, t.p.rows_y, NULL, NULL}, NULL, t.options, &out);
  scratch_failed(t.s, status, UNICON_ERR_CANCELLED, "cancelled", "");
  assert_null(out);
  unicon_ctx_set_progress(t.ctx, NULL, NULL);
  CHECK_OK(t.ctx, unicon_ctx_set(t.ctx, "threads", "1"));
  things_close(&t);
}

/* ---- balance ------------------------------------------------------------------------------ */

/* A call that is refused for its arguments leaves the context free for the next. */
static void bad_arguments_leave_the_context_free(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
#define REFUSED(call)                                     \
  do {                                                    \
    assert_int_not_equal((call), UNICON_OK);              \
    assert_null(strstr(unicon_ctx_error(ctx), sentence)); \
    CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1"));   \
  } while (0)
  REFUSED(unicon_ctx_set(ctx, NULL, NULL));
  REFUSED(unicon_options_create(ctx, NULL));
  REFUSED(unicon_options_set(ctx, NULL, NULL, NULL));
  REFUSED(unicon_rows_open(ctx, NULL, NULL));
  REFUSED(unicon_rows_wrap(ctx, NULL, NULL, UNICON_F32, 0, 0, 0, 0, NULL));
  REFUSED(unicon_rows_read(ctx, NULL, 0, 0, NULL));
  REFUSED(unicon_pairs_identity(ctx, 1, 1, NULL));
  REFUSED(unicon_pairs_per_x(ctx, 1, 1, 1, NULL));
  REFUSED(unicon_pairs_per_y(ctx, 1, 1, 1, NULL));
  REFUSED(unicon_pairs_list(ctx, 1, 1, NULL, NULL, NULL, 1, NULL));
  REFUSED(unicon_pairs_labels(ctx, NULL, 1, NULL, 1, NULL));
  REFUSED(unicon_pairs_read(ctx, NULL, 1, 1, NULL));
  REFUSED(unicon_pairs_read_labels(ctx, NULL, NULL, 1, 1, NULL));
  REFUSED(unicon_pairs_set_ignored(ctx, NULL, NULL, NULL, NULL, 1));
  REFUSED(unicon_pairs_set_negatives(ctx, NULL, NULL, NULL, NULL, 1));
  REFUSED(unicon_pairs_read_ignored(ctx, NULL, NULL));
  REFUSED(unicon_pairs_read_negatives(ctx, NULL, NULL));
  REFUSED(unicon_labels_read(ctx, NULL, 1, NULL, 1, NULL));
  REFUSED(unicon_split_make(ctx, NULL, 0.5, NULL, NULL));
  REFUSED(unicon_fit(ctx, NULL, NULL, NULL, NULL));
  REFUSED(unicon_plan(ctx, NULL, NULL, NULL));
  REFUSED(unicon_model_save(ctx, NULL, NULL));
  REFUSED(unicon_model_load(ctx, NULL, NULL));
  REFUSED(unicon_embed(ctx, NULL, 0, 0, 1, NULL));
  REFUSED(unicon_search(ctx, NULL, NULL, 1, NULL, NULL));
  REFUSED(unicon_evaluate(ctx, NULL, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_ranks(ctx, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_hubs(ctx, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_balance_create(ctx, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_model_rebalance(ctx, NULL, NULL, NULL, NULL));
  REFUSED(unicon_rows_usable(ctx, NULL, NULL, NULL));
  REFUSED(unicon_weights(ctx, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_probe_classes(ctx, NULL, 1, NULL, 1, NULL, NULL));
  REFUSED(unicon_probe(ctx, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL));
  REFUSED(unicon_classify(ctx, NULL, NULL, NULL, NULL, NULL, NULL));
  REFUSED(unicon_check(ctx, NULL, NULL, 0, NULL, NULL));
  REFUSED(unicon_writer_open(ctx, NULL, UNICON_WRITE_F32, 1, 1, NULL));
  REFUSED(unicon_writer_append(ctx, NULL, NULL, 1));
  REFUSED(unicon_writer_commit(ctx, NULL));
  REFUSED(unicon_synth(ctx, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL));
#undef REFUSED
}

/* ... and so does one that succeeds: each is made twice. */
static void success_leaves_the_context_free(void **state) {
  things t;
  things_open(*state, &t);
  for (int k = 0; k < 2 * CALLS; k++) CHECK_OK(t.ctx, calls[k / 2](&t));
  things_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(calls_of_a_callback_are_refused),
      SCRATCH_TEST(so_are_those_of_a_log),
      SCRATCH_TEST(a_callback_changes_and_destroys_nothing),
      SCRATCH_TEST(the_error_is_of_the_call),
      SCRATCH_TEST(bad_arguments_leave_the_context_free),
      SCRATCH_TEST(success_leaves_the_context_free),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
