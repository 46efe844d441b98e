/* SPDX-License-Identifier: Apache-2.0 */
/* Stages on a device: which operations each one runs, that results are those of the CPU to
 * rounding, blocks, limits, failures and cancelling. The soft device counts and fails on demand.
 *
 * Most stages are tested on it once more by the tests of the stages themselves
 * (cmake/tests.cmake). */
#include "soft/loaded.h"

#include "device/use.h"
#include "support.h"

enum { N = 300, DX = 24, DY = 18, K = 7 };

/* Cosines of two fits that differ by rounding, ridge .01; at temperature .01 the error of S, and so
 * this, is ten times as large (docs/numerics.md). */
static const double rounding = 1e-4;

typedef struct kind {
  const char *name;
  const char *option[9]; /* name, value, ... */
  int ops[11];           /* that a fit runs on the device; -1 */
} kind;

#define STATISTICS SOFT_features, SOFT_add_product, SOFT_add_sums, SOFT_combine
#define SWEEPS SOFT_embed, SOFT_exp_sums, SOFT_weigh

static const kind kinds[] = {
    {"fast",
     {"rank", "6"},
     {STATISTICS, SOFT_leading, SOFT_product, SOFT_upload, SOFT_download, SOFT_shift, -1}},
    {"landmarks",
     {"kernel", "angular", "landmarks", "40", "map", "nystrom", "rank", "6"},
     {STATISTICS, SOFT_leading, SOFT_shift, -1}},
    {"power", {"metric", "0.3", "rank", "6"}, {STATISTICS, SOFT_eigen, SOFT_product, -1}},
    {"balanced", {"balance", "softmax:5", "rank", "6"}, {STATISTICS, SOFT_embed, -1}},
    {"clip", {"iterations", "2", "rank", "6"}, {STATISTICS, SWEEPS, -1}},
    {"cold clip", {"iterations", "1", "temperature", "0.01", "rank", "6"}, {SWEEPS, -1}},
    {"batches", {"iterations", "1", "batch", "100", "rank", "6"}, {SWEEPS, SOFT_gather, -1}},
    {"siglip", {"iterations", "1", "loss", "siglip", "rank", "6"}, {SOFT_weigh, SOFT_embed, -1}},
    {"spectral", {"iterations", "1", "loss", "spectral", "rank", "6"}, {SOFT_weigh, -1}},
    {"random", {"kernel", "rbf", "map", "random", "features", "50", "rank", "6"}, {STATISTICS, -1}},
    {"dense", {"svd", "dense", "rank", "6"}, {SOFT_svd, -1}},
    {"refined", {"refine", "2", "refine_batch", "60", "rank", "6"}, {STATISTICS, SOFT_refine, -1}},
    {"supcon",
     {"refine", "1", "loss", "supcon", "rank", "6", "kernel", "angular"},
     {SOFT_refine, SOFT_features, -1}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static unicon_options *options_of(unicon_ctx *ctx, const kind *k) {
  unicon_options *options = support_options(ctx, NULL);
  for (int i = 0; k->option[i]; i += 2)
    CHECK_OK(ctx, unicon_options_set(ctx, options, k->option[i], k->option[i + 1]));
  return options;
}

/* A fit on the device in force. */
static unicon_status fit(unicon_ctx *ctx, const problem *p, const kind *k, unicon_model **model) {
  unicon_options *options = options_of(ctx, k);
  const unicon_status status =
      unicon_fit(ctx, &UNICON_DATA(.x = p->rows_x, .y = p->rows_y), NULL, options, model);
  unicon_options_destroy(options);
  return status;
}

/* Cosines of all rows; always made on the CPU. */
static double *cosines(unicon_ctx *ctx, const unicon_model *model, const problem *p) {
  CHECK_OK(ctx, unicon_ctx_set(ctx, "device", "cpu"));
  return support_cosines(ctx, model, p->rows_x, p->rows_y);
}

static double *cpu_cosines(unicon_ctx *ctx, const problem *p, const kind *k) {
  unicon_model *model;
  CHECK_OK(ctx, unicon_ctx_set(ctx, "device", "cpu"));
  CHECK_OK(ctx, fit(ctx, p, k, &model));
  assert_string_equal(unicon_model_meta(model, "device"), "cpu");
  double *out = cosines(ctx, model, p);
  unicon_model_destroy(model);
  return out;
}

static void fits_run_there_and_agree(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int k = 0; k < KINDS; k++) {
    unicon_model *model;
    double *want = cpu_cosines(s->ctx, &p, &kinds[k]);
    for (int op = 0; op < SOFT_OP_COUNT; op++) assert_int_equal(soft->calls[op], 0);
    soft_use(s->ctx, "soft");
    CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[k], &model));
    assert_string_equal(unicon_model_meta(model, "device"), "soft");
    assert_int_equal(soft->matrices, 0);
    for (int i = 0; kinds[k].ops[i] >= 0 && i < 11; i++) {
      if (!soft->calls[kinds[k].ops[i]])
        print_error("%s: operation %d did not run\n", kinds[k].name, kinds[k].ops[i]);
      assert_true(soft->calls[kinds[k].ops[i]] > 0);
    }
    double *got = cosines(s->ctx, model, &p);
    const double far = support_distance(got, want, (int64_t)N * N);
    /* steps of Adam are as long where a gradient is nothing but rounding */
    const bool rough = strcmp(kinds[k].name, "cold clip") == 0 || kinds[k].ops[0] == SOFT_refine;
    const double allowed = rough ? 10 * rounding : rounding;
    if (!(far < allowed)) print_error("%s: cosines are off by %g\n", kinds[k].name, far);
    assert_true(far < allowed);
    unicon_model_destroy(model);
    free(got), free(want);
    soft_reset();
  }
  problem_free(&p);
}

/* What reduced scores and weights do to the cosines of a fit with ridge .01: more than rounding, and
 * no more than docs/numerics.md says. */
static void reduced_precision_is_coarse_and_bounded(void **state) {
  scratch *s = *state;
  static const double bound[] = {1e-2, 3e-2, 1e-2};
  static const int tried[] = {4, 5, 7}; /* clip, cold clip, siglip */
  soft_control *soft = soft_reset();
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int t = 0; t < 3; t++) {
    const kind *k = &kinds[tried[t]];
    unicon_model *model;
    double *want = cpu_cosines(s->ctx, &p, k);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "reduced"));
    soft_use(s->ctx, "soft");
    CHECK_OK(s->ctx, fit(s->ctx, &p, k, &model));
    assert_string_equal(unicon_model_meta(model, "precision"), "reduced");
    double *got = cosines(s->ctx, model, &p);
    unicon_model_destroy(model);
    const double far = support_distance(got, want, (int64_t)N * N);
    if (!(far < bound[t] && far > rounding))
      print_error("%s, reduced: cosines are off by %g\n", k->name, far);
    assert_true(far < bound[t] && far > rounding);
    free(got), free(want);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "full"));
  }
  assert_true(soft->calls[SOFT_weigh] > 0);
  problem_free(&p);
}

/* It changes nothing where nothing has it, and the log says so. A change takes hold in a device that
 * is open. */
static void reduced_precision_says_where_it_has_no_effect(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  static const struct {
    const char *device;
    int kind;
    const char *precision, *why;
  } tries[] = {{"cpu", 4, "full", "the fit ran on the CPU"},
               {"soft", 0, "full", "no iteration ran on the device"},
               {"soft", 4, "reduced", NULL}};
  for (size_t t = 0; t < 3; t++) {
    log_book book = {.count = {0}};
    unicon_model *model;
    unicon_ctx_set_log(s->ctx, support_log, &book);
    soft_use(s->ctx, tries[t].device);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "reduced"));
    CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[tries[t].kind], &model));
    assert_string_equal(unicon_model_meta(model, "precision"), tries[t].precision);
    assert_string_equal(unicon_model_meta(model, "device"), tries[t].device);
    assert_int_equal(book.count[UNICON_LOG_WARNING], tries[t].why != NULL);
    if (tries[t].why) {
      assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "precision reduced has no effect"));
      assert_non_null(strstr(book.last[UNICON_LOG_WARNING], tries[t].why));
    }
    unicon_model_destroy(model);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "full"));
    assert_int_equal(soft->opened, 0);
  }
  unicon_ctx_set_log(s->ctx, NULL, NULL);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  problem_free(&p);
}

/* A fit with held-out pairs that chooses its settings. */
static unicon_status choose(unicon_ctx *ctx, const problem *p, const problem *held,
                            unicon_model **model) {
  unicon_options *options =
      support_options(ctx, "preset", "auto", "rank", "6", "refine_batch", "50", NULL);
  const unicon_status status =
      unicon_fit(ctx, &UNICON_DATA(.x = p->rows_x, .y = p->rows_y),
                 &UNICON_DATA(.x = held->rows_x, .y = held->rows_y), options, model);
  unicon_options_destroy(options);
  return status;
}

/* Trials, refine and held-out scores: the same choice and score, whichever of the operations of a
 * choice the device has. */
static void choices_run_there_and_agree(void **state) {
  scratch *s = *state;
  static const int left[] = {-1, SOFT_judge, SOFT_refine, SOFT_embed};
  soft_control *soft = soft_reset();
  problem p, held;
  unicon_model *want;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  problem_make(s->ctx, 6, 90, DX, DY, 8, 0.3, &held);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  CHECK_OK(s->ctx, choose(s->ctx, &p, &held, &want));
  for (size_t k = 0; k < sizeof left / sizeof *left; k++) {
    unicon_model *model;
    soft = soft_reset();
    soft->elsewhere = left[k];
    soft_use(s->ctx, "soft");
    CHECK_OK(s->ctx, choose(s->ctx, &p, &held, &model));
    assert_int_equal(soft->matrices, 0);
    assert_true(soft->calls[SOFT_judge] > (left[k] == SOFT_embed ? -1 : 0));
    assert_true(soft->calls[SOFT_refine] > 0);
    if (k == 0) assert_true(soft->calls[SOFT_judge] > 10 && soft->calls[SOFT_refine] > 4);
    assert_string_equal(unicon_model_meta(model, "auto_chosen"),
                        unicon_model_meta(want, "auto_chosen"));
    CHECK_CLOSE(strtod(unicon_model_meta(model, "auto_score"), NULL),
                strtod(unicon_model_meta(want, "auto_score"), NULL), 2e-3);
    unicon_model_destroy(model);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
  unicon_model_destroy(want);
  problem_free(&p);
  problem_free(&held);
}

/* A choice whose device fails on the way: a sentence, and nothing is left there; where memory is what
 * is missing the CPU goes on. */
static void choices_may_fail(void **state) {
  scratch *s = *state;
  static const int events[] = {5, 40, 90, 150, 220, 300};
  soft_control *soft = soft_reset();
  problem p, held;
  int failed = 0;
  problem_make(s->ctx, 5, 80, DX, DY, 8, 0.3, &p);
  problem_make(s->ctx, 6, 40, DX, DY, 8, 0.3, &held);
  for (size_t k = 0; k < 2 * sizeof events / sizeof *events; k++) {
    const bool launch = k % 2;
    unicon_model *model = NULL;
    soft = soft_reset();
    soft_use(s->ctx, "soft");
    *(launch ? &soft->fail_launch : &soft->fail_allocation) = events[k / 2];
    const unicon_status status = choose(s->ctx, &p, &held, &model);
    assert_int_equal(soft->matrices, 0);
    assert_true(status == UNICON_OK || (launch && status == UNICON_ERR_DEVICE));
    failed += status != UNICON_OK;
    unicon_model_destroy(model);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
  assert_true(failed > 2);
  problem_free(&p);
  problem_free(&held);
}

/* Neighbours, their scores, and metrics of a balanced model: the device's embeddings differ by
 * rounding, its decisions do not beyond that. */
static void use_runs_there_and_agrees(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  unicon_model *model;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[3], &model));
  int64_t *id[2];
  float *score[2];
  double hit[2];
  for (int d = 0; d < 2; d++) {
    const unicon_view x = UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X);
    const unicon_view y = UNICON_VIEW(.rows = p.rows_y, .model = model, .side = UNICON_Y);
    unicon_pairs *pairs;
    unicon_result *result;
    if (d == 1) soft_use(s->ctx, "soft");
    id[d] = calloc(N * K, sizeof **id);
    score[d] = support_floats(N * K);
    assert_non_null(id[d]);
    CHECK_OK(s->ctx, unicon_search(s->ctx, &x, &y, K, id[d], score[d]));
    CHECK_OK(s->ctx, unicon_pairs_identity(s->ctx, N, N, &pairs));
    CHECK_OK(s->ctx, unicon_evaluate(s->ctx, &x, &y, pairs, NULL, &result));
    CHECK_OK(s->ctx, unicon_result_number(result, "x_to_y.mrr", &hit[d]));
    unicon_result_destroy(result);
    unicon_pairs_destroy(pairs);
  }
  assert_true(soft->calls[SOFT_nearest] > 0 && soft->calls[SOFT_bias] > 0);
  assert_true(soft->calls[SOFT_ranks] > 0 && soft->calls[SOFT_embed] > 0);
  assert_true(soft->calls[SOFT_nearest] >= (N + 47) / 48); /* in blocks */
  CHECK_CLOSE(hit[0], hit[1], 1e-3);
  int differ = 0;
  for (int i = 0; i < N * K; i++) {
    CHECK_CLOSE(score[0][i], score[1][i], 1e-5);
    differ += id[0][i] != id[1][i];
  }
  assert_true(differ < N * K / 100);
  for (int d = 0; d < 2; d++) free(id[d]), free(score[d]);
  unicon_model_destroy(model);
  problem_free(&p);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* The same bytes whatever the number of threads, and again; other blocks differ by rounding. */
static void results_are_repeatable(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  float first[64];
  int64_t rank = 0;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int t = 0; t < 3; t++) {
    unicon_model *model;
    soft_use(s->ctx, "soft");
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", t == 1 ? "3" : "1"));
    CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[4], &model));
    rank = unicon_model_rank(model);
    if (t == 0)
      memcpy(first, unicon_model_spectrum(model), (size_t)rank * sizeof *first);
    else
      assert_memory_equal(first, unicon_model_spectrum(model), (size_t)rank * sizeof *first);
    unicon_model_destroy(model);
  }
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  soft->most_rows = 7;
  soft_use(s->ctx, "soft");
  unicon_model *model;
  CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[4], &model));
  for (int64_t k = 0; k < rank; k++)
    CHECK_CLOSE(unicon_model_spectrum(model)[k], first[k], 1e-5 * (double)first[0]);
  unicon_model_destroy(model);
  problem_free(&p);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* With 1 MB, rows stream; where even sums do not fit the CPU does it, with a word. */
static void limits_hold(void **state) {
  scratch *s = *state;
  static const kind plain = {"plain", {"rank", "6"}, {-1}};
  static const struct {
    int64_t n, d;
    bool fits;
  } sizes[] = {{6000, 70, true}, {600, 400, false}};
  for (size_t t = 0; t < 2; t++) {
    soft_control *soft = soft_reset();
    log_book book = {.count = {0}};
    problem p;
    unicon_model *model;
    problem_make(s->ctx, 5, sizes[t].n, sizes[t].d, DY, 8, 0.3, &p);
    soft->most_rows = 0;
    unicon_ctx_set_log(s->ctx, support_log, &book);
    soft_use(s->ctx, "soft:1M");
    CHECK_OK(s->ctx, fit(s->ctx, &p, &plain, &model));
    unicon__device_memory memory;
    s->ctx->where.table->memory(s->ctx->where.device, &memory);
    assert_true(memory.peak <= 1 << 20 && memory.used == 0);
    if (sizes[t].fits) {
      assert_true(soft->calls[SOFT_features] > 1);
      assert_true(soft->calls[SOFT_add_product] > 2);
      assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
    } else {
      assert_true(book.count[UNICON_LOG_WARNING] > 0);
      assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "the CPU does it"));
    }
    unicon_model_destroy(model);
    problem_free(&p);
    unicon_ctx_set_log(s->ctx, NULL, NULL);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
}

/* What a device leaves to the CPU changes nothing but rounding. */
static void what_is_left_to_the_cpu_agrees(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  double *want = cpu_cosines(s->ctx, &p, &kinds[4]);
  for (int op = SOFT_features; op < SOFT_OP_COUNT; op++) {
    unicon_model *model;
    soft->elsewhere = op;
    soft_use(s->ctx, "soft");
    CHECK_OK(s->ctx, fit(s->ctx, &p, &kinds[4], &model));
    assert_int_equal(soft->matrices, 0);
    double *got = cosines(s->ctx, model, &p);
    assert_true(support_distance(got, want, (int64_t)N * N) < rounding);
    unicon_model_destroy(model);
    free(got);
  }
  free(want);
  problem_free(&p);
}

/* ---- failures ----------------------------------------------------------------------------- */

/* Each allocation of the device may fail: the CPU does that stage. Each launch may fail: the call
 * ends with a sentence, unless the failed one is a product that has no status. */
static void every_event_may_fail(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  static const int tried[] = {1, 4, 11};
  problem p;
  problem_make(s->ctx, 5, 60, DX, DY, 8, 0.3, &p);
  for (int t = 0; t < 6; t++) {
    const kind *k = &kinds[tried[t % 3]];
    const bool launch = t >= 3;
    int64_t *counter = launch ? &soft->fail_launch : &soft->fail_allocation;
    int failed = 0;
    for (int event = 0;; event = scratch_next_fault(event)) {
      unicon_model *model = NULL;
      soft_use(s->ctx, "soft");
      *counter = event;
      const unicon_status status = fit(s->ctx, &p, k, &model);
      const bool over = *counter >= 0;
      *counter = -1;
      assert_int_equal(soft->matrices, 0);
      assert_true(status == UNICON_OK || (launch && status == UNICON_ERR_DEVICE));
      if (status != UNICON_OK) assert_non_null(strstr(unicon_ctx_error(s->ctx), "device soft"));
      if (status == UNICON_OK) assert_string_equal(unicon_ctx_error(s->ctx), "");
      failed += status != UNICON_OK;
      unicon_model_destroy(model);
      CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
      if (over) break;
    }
    assert_true(!launch || failed > 10);
  }
  problem_free(&p);
}

typedef struct patience {
  int left;
} patience;

static int lose_patience(void *user, const char *label, double done, double left) {
  (void)label, (void)done, (void)left;
  patience *p = user;
  return p->left-- <= 0;
}

static void fits_can_be_cancelled(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  problem p;
  problem_make(s->ctx, 5, 60, DX, DY, 8, 0.3, &p);
  s->ctx->progress_interval = 0;
  int cancelled = 0;
  for (int calls = 0;; calls = scratch_next_fault(calls)) {
    patience wait = {calls};
    unicon_model *model = NULL;
    soft_use(s->ctx, "soft");
    unicon_ctx_set_progress(s->ctx, lose_patience, &wait);
    const unicon_status status = fit(s->ctx, &p, &kinds[4], &model);
    unicon_ctx_set_progress(s->ctx, NULL, NULL);
    assert_int_equal(soft->matrices, 0);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
    unicon_model_destroy(model);
    if (status == UNICON_OK) break;
    assert_int_equal(status, UNICON_ERR_CANCELLED);
    cancelled++;
  }
  assert_true(cancelled > 10);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(fits_run_there_and_agree),
                                     SCRATCH_TEST(reduced_precision_is_coarse_and_bounded),
                                     SCRATCH_TEST(reduced_precision_says_where_it_has_no_effect),
                                     SCRATCH_TEST(choices_run_there_and_agree),
                                     SCRATCH_TEST(choices_may_fail),
                                     SCRATCH_TEST(use_runs_there_and_agrees),
                                     SCRATCH_TEST(results_are_repeatable),
                                     SCRATCH_TEST(limits_hold),
                                     SCRATCH_TEST(what_is_left_to_the_cpu_agrees),
                                     SCRATCH_TEST(every_event_may_fail),
                                     SCRATCH_TEST(fits_can_be_cancelled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
