/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of several processes (base/together): the same models, figures and lists as those of one, the
 * same bytes in all of them; and where one fails all end, with its sentence. */
#include "figures.h"
#include "processes.h"

#include "base/options.h"

enum { N = 300, PER = 2, DX = 11, DY = 9, K = 5, BYTES = 1 << 23 };

typedef enum pair_kind { ROW_BY_ROW, TWO_EACH, SHUFFLED, LABELS, IGNORED } pair_kind;

typedef struct row {
  const char *name;
  const char *option[13]; /* name, value, ...; NULL */
  pair_kind pairs;
  bool held;        /* with validation pairs */
  double tolerance; /* of cosines */
} row;

/* Sums in another order: measured up to 7e-6, and 2e-4 after the many steps of refine. */
#define ROUNDING 3e-5

static const row rows[] = {
    {"fast", {"preset", "fast"}, ROW_BY_ROW, false, ROUNDING},
    {"fast, two each", {"preset", "fast"}, TWO_EACH, false, ROUNDING},
    {"fast, a list", {"preset", "fast", "unpaired", "on"}, SHUFFLED, false, ROUNDING},
    {"labels", {"preset", "fast"}, LABELS, false, ROUNDING},
    {"ignored pairs", {"preset", "fast"}, IGNORED, false, ROUNDING},
    {"validated", {"preset", "fast"}, TWO_EACH, true, ROUNDING},
    {"landmarks",
     {"preset", "fast", "kernel", "angular", "map", "nystrom", "landmarks", "40"},
     TWO_EACH,
     false,
     ROUNDING},
    {"pivots",
     {"preset", "fast", "kernel", "rbf", "map", "nystrom", "landmarks", "30", "landmark_method",
      "pivot"},
     ROW_BY_ROW,
     false,
     ROUNDING},
    {"exact map", {"preset", "fast", "kernel", "rbf", "map", "exact"}, ROW_BY_ROW, false, ROUNDING},
    {"random features",
     {"preset", "fast", "kernel", "rbf", "map", "random", "features", "60"},
     SHUFFLED,
     false,
     ROUNDING},
    {"auto", {"preset", "auto", "kernel", "linear", "refine", "0"}, TWO_EACH, false, ROUNDING},
    {"auto, refined", {"preset", "auto", "landmarks", "60"}, TWO_EACH, true, 2e-3},
    {"refine", {"refine", "2", "refine_batch", "40", "temperature", "learn"}, TWO_EACH, true, 2e-3},
    {"clip", {"iterations", "2"}, TWO_EACH, false, ROUNDING},
    {"clip, sharp", {"iterations", "1", "temperature", "0.01"}, SHUFFLED, false, ROUNDING},
    {"clip, labels", {"iterations", "1"}, LABELS, false, ROUNDING},
    {"clip, in batches", {"iterations", "1", "batch", "100"}, ROW_BY_ROW, false, ROUNDING},
    {"supcon", {"iterations", "1", "loss", "supcon"}, LABELS, false, ROUNDING},
    {"triplet", {"iterations", "1", "loss", "triplet"}, SHUFFLED, false, ROUNDING},
    {"siglip", {"iterations", "1", "loss", "siglip"}, TWO_EACH, false, ROUNDING},
    {"spectral", {"iterations", "1", "loss", "spectral"}, ROW_BY_ROW, false, ROUNDING},
    {"paper", {"preset", "paper"}, ROW_BY_ROW, false, ROUNDING},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* What one process made. */
typedef struct outcome {
  unicon_status status;
  char error[512];
  size_t size;
  unsigned char *model;
  int64_t ids[N * K];
  float scores[N * K];
  figures to_y, to_x;
} outcome;

typedef struct stage {
  scratch *s;
  problem p; /* N rows of x, PER N rows of y */
  unicon_rows *y, *held_x, *held_y;
  unicon_pairs *pairs, *held_pairs;
  unicon_options *options;
  unicon_data train, held;
  const row *row;
  outcome saw[PROCESSES_MOST];
  unicon_model *alone;
  outcome plain; /* of one process */
  /* What goes wrong, and where: */
  int64_t victim, fault;
  unicon_options *others;     /* of the victim */
  const unicon_rows *other_x; /* likewise */
} stage;

/* ---- the data ----------------------------------------------------------------------------- */

static unicon_pairs *listed_pairs(scratch *s) {
  int64_t x[N], y[N];
  double weight[N];
  unicon_pairs *out = NULL;
  for (int64_t i = 0; i < N; i++) { /* every third row of x has two partners or none */
    x[i] = (i * 7) % N / 3 * 3 + i % 2;
    y[i] = i * 2 % N + i % 2;
    weight[i] = 1 + (double)(i % 3);
  }
  int64_t count = 0;
  for (int64_t i = 0; i < N; i++) {
    bool twice = false;
    for (int64_t k = 0; k < count && !twice; k++) twice = x[k] == x[i] && y[k] == y[i];
    if (twice) continue;
    x[count] = x[i];
    y[count] = y[i];
    weight[count++] = weight[i];
  }
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, N, N, x, y, weight, count, &out));
  return out;
}

static unicon_pairs *make_pairs(scratch *s, pair_kind kind) {
  int64_t label[N], own[N];
  unicon_pairs *out = NULL;
  if (kind == TWO_EACH) CHECK_OK(s->ctx, unicon_pairs_per_x(s->ctx, N, PER * N, PER, &out));
  if (kind == ROW_BY_ROW || kind == IGNORED)
    CHECK_OK(s->ctx, unicon_pairs_identity(s->ctx, N, N, &out));
  if (kind == SHUFFLED) return listed_pairs(s);
  for (int64_t i = 0; i < N; i++) {
    label[i] = i % 10;
    own[i] = (i + 1) % N;
  }
  if (kind == LABELS) CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, N, label, N, &out));
  for (int64_t i = 0; i < N; i++) label[i] = i;
  if (kind == IGNORED) CHECK_OK(s->ctx, unicon_pairs_set_ignored(s->ctx, out, label, own, NULL, N));
  return out;
}

/* Rows of y that are near those of x they belong to. */
static float *make_y(const problem *p, int64_t n) {
  float *y = support_normals(77, n * DY);
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k < DY; k++)
      y[j * DY + k] = p->y[j * N / n * DY + k] + 0.2f * y[j * DY + k];
  return y;
}

static void open_stage(scratch *s, const row *r, stage *st) {
  *st = (stage){.s = s, .row = r, .victim = -1, .fault = -1};
  const bool two = r->pairs == TWO_EACH;
  const int64_t n_y = two ? PER * N : N;
  problem_make(s->ctx, 5, N, DX, DY, 6, 0.4, &st->p);
  float *y = make_y(&st->p, n_y);
  free(st->p.y);
  unicon_rows_close(st->p.rows_y);
  st->p.y = y;
  st->p.rows_y = NULL;
  st->y = support_rows(s->ctx, "y", y, n_y, DY);
  st->pairs = make_pairs(s, r->pairs);
  st->train = UNICON_DATA(.x = st->p.rows_x, .y = st->y, .pairs = st->pairs);
  st->held_x = support_rows(s->ctx, "held x", st->p.x, N / 2, DX);
  st->held_y = support_rows(s->ctx, "held y", y, n_y / 2, DY);
  if (r->held) {
    CHECK_OK(s->ctx, unicon_pairs_per_x(s->ctx, N / 2, n_y / 2, two ? PER : 1, &st->held_pairs));
    st->held = UNICON_DATA(.x = st->held_x, .y = st->held_y, .pairs = st->held_pairs);
  }
  CHECK_OK(s->ctx, unicon_options_create(s->ctx, &st->options));
  for (int k = 0; r->option[k]; k += 2)
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, st->options, r->option[k], r->option[k + 1]));
}

static void close_stage(stage *st) {
  for (int k = 0; k < PROCESSES_MOST; k++) free(st->saw[k].model);
  unicon_model_destroy(st->alone);
  free(st->plain.model);
  unicon_options_destroy(st->options);
  unicon_pairs_destroy(st->held_pairs);
  unicon_pairs_destroy(st->pairs);
  unicon_rows_close(st->held_y);
  unicon_rows_close(st->held_x);
  unicon_rows_close(st->y);
  problem_free(&st->p);
}

/* ---- the calls ---------------------------------------------------------------------------- */

static unicon_status use(unicon_ctx *ctx, const stage *st, const unicon_model *model, outcome *o) {
  const unicon_view x = UNICON_VIEW(.rows = st->p.rows_x, .model = model, .side = UNICON_X),
                    y = UNICON_VIEW(.rows = st->y, .model = model, .side = UNICON_Y);
  UNICON_TRY(unicon_search(ctx, &x, &y, K, o->ids, o->scores));
  return figures_evaluate(ctx, &x, &y, st->pairs, st->options, &o->to_y, &o->to_x);
}

/* Fits, and uses the model. */
static void fit_and_use(unicon_ctx *ctx, int64_t index, void *user) {
  stage *st = user;
  outcome *o = &st->saw[index];
  unicon_model *model = NULL;
  unicon_data train = st->train;
  const unicon_options *options = st->options;
  if (index == st->victim && st->fault >= 0) ctx->faults.allocation = st->fault;
  if (index == st->victim && st->others) options = st->others;
  if (index == st->victim && st->other_x) train.x = st->other_x;
  o->status = unicon_fit(ctx, &train, st->row->held ? &st->held : NULL, options, &model);
  snprintf(o->error, sizeof o->error, "%.511s", unicon_ctx_error(ctx));
  if (o->status == UNICON_OK && st->victim < 0) {
    o->model = malloc(BYTES);
    o->status = unicon_model_to_bytes(ctx, model, o->model, BYTES, &o->size);
  }
  if (o->status == UNICON_OK && st->victim < 0) o->status = use(ctx, st, st->alone, o);
  if (o->status != UNICON_OK && st->victim < 0)
    snprintf(o->error, sizeof o->error, "%.511s", unicon_ctx_error(ctx));
  unicon_model_destroy(model);
}

static void fit_alone(stage *st) {
  unicon_ctx *ctx = st->s->ctx;
  const unicon_data *held = st->row->held ? &st->held : NULL;
  CHECK_OK(ctx, unicon_fit(ctx, &st->train, held, st->options, &st->alone));
  CHECK_OK(ctx, use(ctx, st, st->alone, &st->plain));
}

/* ---- what is the same --------------------------------------------------------------------- */

static void check_model(stage *st, int64_t count) {
  unicon_ctx *ctx = st->s->ctx;
  unicon_model *made = NULL;
  const outcome *first = &st->saw[0];
  for (int64_t k = 0; k < count; k++) {
    if (st->saw[k].status != UNICON_OK) fail_msg("%s: %s", st->row->name, st->saw[k].error);
    assert_int_equal(st->saw[k].size, first->size);
    assert_memory_equal(st->saw[k].model, first->model, first->size);
  }
  CHECK_OK(ctx, unicon_model_from_bytes(ctx, first->model, first->size, &made));
  assert_string_equal(unicon_model_meta(made, "input_hash"),
                      unicon_model_meta(st->alone, "input_hash"));
  assert_string_equal(unicon_model_meta(made, "n_x"), unicon_model_meta(st->alone, "n_x"));
  assert_string_equal(unicon_model_meta(made, "pairs"), unicon_model_meta(st->alone, "pairs"));
  assert_string_equal(unicon_model_meta(made, "balance"), unicon_model_meta(st->alone, "balance"));
  double *now = support_cosines(ctx, made, st->p.rows_x, st->y);
  double *then = support_cosines(ctx, st->alone, st->p.rows_x, st->y);
  const double off = support_distance(now, then, N * unicon_rows_count(st->y));
  if (!(off <= st->row->tolerance))
    fail_msg("%s, %lld processes: cosines differ by %g", st->row->name, (long long)count, off);
  free(then);
  free(now);
  unicon_model_destroy(made);
}

/* Lists and figures are exact. */
static void check_use(const stage *st, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    const outcome *o = &st->saw[k];
    assert_memory_equal(o->ids, st->plain.ids, sizeof o->ids);
    assert_memory_equal(o->scores, st->plain.scores, sizeof o->scores);
    for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
      CHECK_CLOSE(o->to_y.value[m], st->plain.to_y.value[m], 1e-12);
      CHECK_CLOSE(o->to_x.value[m], st->plain.to_x.value[m], 1e-12);
    }
  }
}

static void as_one_process(void **state) {
  scratch *s = *state;
  for (int r = 0; r < ROWS; r++)
    for (int64_t count = 2; count <= 4; count += 2) {
      stage *st = malloc(sizeof *st);
      open_stage(s, &rows[r], st);
      fit_alone(st);
      processes_run(count, fit_and_use, st);
      check_model(st, count);
      check_use(st, count);
      close_stage(st);
      free(st);
    }
}

/* ---- failures ----------------------------------------------------------------------------- */

/* Every allocation of one process fails in turn, here a few of them: all end, all have its sentence,
 * and without a fault all succeed. */
static void one_fails_all_fail(void **state) {
  scratch *s = *state;
  static const int tried[] = {0, 3, 10, 17};
  for (size_t t = 0; t < sizeof tried / sizeof *tried; t++) {
    stage *st = malloc(sizeof *st);
    open_stage(s, &rows[tried[t]], st);
    for (int64_t fault = 0;; fault = fault * 5 / 4 + 1) {
      st->victim = 1;
      st->fault = fault;
      processes_run(3, fit_and_use, st);
      if (st->saw[0].status == UNICON_OK) {
        assert_true(fault > 20);
        for (int k = 0; k < 3; k++) assert_int_equal(st->saw[k].status, UNICON_OK);
        break;
      }
      for (int k = 0; k < 3; k++) {
        assert_int_equal(st->saw[k].status, UNICON_ERR_MEMORY);
        if (strncmp(st->saw[k].error, "process 1: ", 11) != 0)
          fail_msg("process %d says: %s", k, st->saw[k].error);
      }
    }
    close_stage(st);
    free(st);
  }
}

/* All have the sentence, which begins with the process and has these words. */
static void check_sentence(const stage *st, int64_t count, unicon_status status, const char *begin,
                           const char *words) {
  for (int64_t k = 0; k < count; k++) {
    if (st->saw[k].status != status || strncmp(st->saw[k].error, begin, strlen(begin)) != 0 ||
        !strstr(st->saw[k].error, words))
      fail_msg("process %lld says: %d, %s", (long long)k, (int)st->saw[k].status, st->saw[k].error);
  }
}

static void options_must_agree(void **state) {
  scratch *s = *state;
  stage *st = malloc(sizeof *st);
  open_stage(s, &rows[0], st);
  st->victim = 2;
  CHECK_OK(s->ctx, unicon_options_create(s->ctx, &st->others));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, st->others, "preset", "fast"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, st->others, "ridge", "0.5"));
  processes_run(4, fit_and_use, st);
  check_sentence(st, 4, UNICON_ERR_OPTION, "process 2: option ridge is 0.5 here, but on process 0",
                 "all processes must be given the same");
  unicon_options_destroy(st->others);
  close_stage(st);
  free(st);
}

static void shapes_must_agree(void **state) {
  scratch *s = *state;
  stage *st = malloc(sizeof *st);
  open_stage(s, &rows[0], st);
  st->victim = 1;
  unicon_rows *fewer = support_rows(s->ctx, "x", st->p.x, N - 1, DX);
  st->other_x = fewer;
  processes_run(2, fit_and_use, st);
  check_sentence(st, 2, UNICON_ERR_OPTION, "process 1: the call is fit of 299 by 11",
                 "on process 0 the call is fit of 300 by 11");
  unicon_rows_close(fewer);
  close_stage(st);
  free(st);
}

/* A bad row in the share of one process is known to all; one that only a single process sees is that
 * one's failure. */
static void bad_rows_are_named(void **state) {
  scratch *s = *state;
  stage *st = malloc(sizeof *st);
  open_stage(s, &rows[0], st);
  st->p.x[299 * DX + 4] = NAN;
  st->victim = 0;
  processes_run(4, fit_and_use, st);
  check_sentence(st, 4, UNICON_ERR_DATA, "x.npy: row 299, column 4 is not a finite number",
                 "1 of 300 rows cannot be used");
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, st->options, "bad_rows", "drop"));
  processes_run(4, fit_and_use, st);
  for (int k = 0; k < 4; k++) assert_int_equal(st->saw[k].status, UNICON_OK);
  close_stage(st);
  free(st);
}

static int cancel(void *user, const char *label, double done, double left) {
  (void)user, (void)label, (void)done, (void)left;
  return 1;
}

static void fit_cancelled(unicon_ctx *ctx, int64_t index, void *user) {
  if (index == 1) unicon_ctx_set_progress(ctx, cancel, NULL);
  fit_and_use(ctx, index, user);
}

static void one_cancels(void **state) {
  scratch *s = *state;
  stage *st = malloc(sizeof *st);
  open_stage(s, &rows[0], st);
  st->victim = 0;
  processes_run(2, fit_cancelled, st);
  check_sentence(st, 2, UNICON_ERR_CANCELLED, "", "cancelled while");
  close_stage(st);
  free(st);
}

static void agree(unicon_ctx *ctx, int64_t index, void *user) {
  stage *st = user;
  outcome *o = &st->saw[index];
  o->status = unicon_agree(ctx, UNICON_OK, NULL);
  if (o->status != UNICON_OK) return;
  o->status = unicon_agree(ctx, index == 2 ? UNICON_ERR_IO : UNICON_OK, "there is no such shard");
  snprintf(o->error, sizeof o->error, "%.511s", unicon_ctx_error(ctx));
}

static void programs_agree(void **state) {
  stage *st = calloc(1, sizeof *st);
  (void)state;
  static const int64_t counts[] = {3, 4, PROCESSES_MOST};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    processes_run(counts[k], agree, st);
    check_sentence(st, counts[k], UNICON_ERR_IO, "process 2: there is no such shard", "");
  }
  free(st);
}

static void what_cannot_be(void **state) {
  scratch *s = *state;
  unicon_processes with = {.size = sizeof with, .index = 3, .count = 2};
  assert_int_equal(unicon_ctx_join(s->ctx, &with), UNICON_ERR_ARGUMENT);
  with.index = 1;
  assert_int_equal(unicon_ctx_join(s->ctx, &with), UNICON_ERR_ARGUMENT); /* no callbacks */
  with.size = 8;
  assert_int_equal(unicon_ctx_join(s->ctx, &with), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_ctx_join(s->ctx, NULL), UNICON_OK);
  assert_int_equal(unicon_agree(s->ctx, UNICON_OK, NULL), UNICON_OK);
  assert_int_equal(unicon_agree(s->ctx, UNICON_ERR_IO, "one alone"), UNICON_ERR_IO);
  assert_string_equal(unicon_ctx_error(s->ctx), "one alone");
}

/* Choices do not go by a clock that others do not have. */
static void no_budget(void **state) {
  scratch *s = *state;
  static const row timed = {"budget", {"preset", "auto", "budget", "5"}, ROW_BY_ROW, false, 0};
  stage *st = malloc(sizeof *st);
  open_stage(s, &timed, st);
  st->victim = 0;
  processes_run(2, fit_and_use, st);
  check_sentence(st, 2, UNICON_ERR_OPTION, "budget is 5 seconds", "leave budget out");
  close_stage(st);
  free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(as_one_process),     SCRATCH_TEST(one_fails_all_fail),
      SCRATCH_TEST(options_must_agree), SCRATCH_TEST(shapes_must_agree),
      SCRATCH_TEST(bad_rows_are_named), SCRATCH_TEST(one_cancels),
      SCRATCH_TEST(programs_agree),     SCRATCH_TEST(what_cannot_be),
      SCRATCH_TEST(no_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
