/* SPDX-License-Identifier: Apache-2.0 */
/* Preset auto within limits of time and memory, and the rank that it takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "support.h"

enum { DX = 12, DY = 10 };

/* The best score among "kernel, setting: score; ..." of all that was tried. */
static double best_tried(const unicon_model *model) {
  double best = 0;
  for (const char *at = unicon_model_meta(model, "auto_tried"); at && *at; at = strchr(at, ';')) {
    at += strspn(at, "; ");
    const char *end = strchr(at, ';'), *score = at;
    for (const char *colon = at; colon && (!end || colon < end); colon = strstr(colon + 1, ": "))
      score = colon;
    best = fmax(best, atof(score + 1));
    if (!end) break;
  }
  return best;
}

/* A budget that ends anywhere ends in a model, the best of what was tried: a kernel for which no
 * time was left is no finalist, a first look at one that there was time for is. It is never behind
 * preset fast, whose settings are tried whatever the budget. */
static void any_budget_gives_a_model(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 33, 700, 20, 16, 6, 0.6, &p);
  static const char *const budgets[] = {"0.1", "0.3", "0.6", "1.2"};
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", "2")); /* more would have time for a kernel */
  unicon_options *fast = NULL;
  CHECK_OK(s->ctx, unicon_options_create(s->ctx, &fast));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, fast, "preset", "fast"));
  unicon_model *least = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, fast);
  const double floor_score = atof(unicon_model_meta(least, "auto_score"));
  for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
    unicon_options *options = NULL;
    CHECK_OK(s->ctx, unicon_options_create(s->ctx, &options));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "preset", "best"));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "budget", budgets[k]));
    log_book book = {0};
    unicon_ctx_set_log(s->ctx, support_log, &book);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    if (k == 0) assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "leaves no time for"));
    const double score = atof(unicon_model_meta(model, "auto_score")), best = best_tried(model);
    assert_true(best > 0 && fabs(score - best) < 1e-4); /* four digits are kept of what was tried */
    assert_true(score > floor_score - 1e-5);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  unicon_model_destroy(least);
  unicon_options_destroy(fast);
  problem_free(&p);
}

/* The same where the kernel is given, as it is for statistics; and preset fast has no budget, for it
 * is soon done. */
static void a_given_kernel_is_never_behind_fast(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const kernels[] = {"linear", "angular"};
  problem p;
  problem_make(ctx, 33, 700, 20, 16, 6, 0.6, &p);
  for (int k = 0; k < 2; k++) {
    unicon_options *fast = NULL; /* with nothing else given, as a user has it */
    CHECK_OK(ctx, unicon_options_create(ctx, &fast));
    CHECK_OK(ctx, unicon_options_set(ctx, fast, "preset", "fast"));
    CHECK_OK(ctx, unicon_options_set(ctx, fast, "kernel", kernels[k]));
    unicon_model *want = support_fit(ctx, p.rows_x, p.rows_y, NULL, fast);
    CHECK_OK(ctx, unicon_options_set(ctx, fast, "budget", "0.1"));
    unicon_model *same = support_fit(ctx, p.rows_x, p.rows_y, NULL, fast);
    CHECK_OK(ctx, unicon_options_set(ctx, fast, "preset", "auto"));
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, fast);
    const double floor_score = atof(unicon_model_meta(want, "auto_score"));
    assert_string_equal(unicon_model_meta(same, "auto_chosen"),
                        unicon_model_meta(want, "auto_chosen"));
    assert_true(atof(unicon_model_meta(model, "auto_score")) > floor_score - 1e-5);
    unicon_model_destroy(want);
    unicon_model_destroy(same);
    unicon_model_destroy(model);
    unicon_options_destroy(fast);
  }
  problem_free(&p);
}

/* Pairs that are nearly exact have more directions in common than the usual rank; others do not. */
static void many_common_directions_take_more_rank(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 2400, WIDTH = 320 };
  for (int exact = 0; exact < 2; exact++) {
    problem p;
    problem_make(ctx, 7, ROWS, WIDTH, WIDTH, exact ? WIDTH : 40, exact ? 30 : 8, &p);
    unicon_options *options =
        support_options(ctx, "preset", "auto", "kernel", "linear", "refine", "0", "metric",
                        "whiten", "ridge", "0.3", "exponent", "1", "balance", "off", NULL);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    const int64_t rank = unicon_model_rank(model);
    assert_true(exact ? rank > 256 : rank <= 256);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

/* Where there is room for the usual rank and not for twice of it, the choice goes on without. */
static void a_rank_without_room_is_left_out(void **state) {
  scratch *s = *state;
  enum { ROWS = 900, WIDTH = 320 };
  static const char *const ranks[] = {"256", "auto"};
  problem p;
  char limit[32];
  uint64_t peak = 0;
  problem_make(s->ctx, 7, ROWS, WIDTH, WIDTH, WIDTH, 30, &p);
  for (int k = 0; k < 2; k++) {
    unicon_ctx *ctx = NULL; /* with a peak of its own */
    unicon_options *options = support_options(s->ctx, "preset", "auto", "kernel", "linear",
                                              "refine", "0", "rank", ranks[k], NULL);
    assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
    CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1"));
    snprintf(limit, sizeof limit, "%.0f", (double)peak + 1e5); /* the words of a rank more */
    if (k > 0) CHECK_OK(ctx, unicon_ctx_set(ctx, "max_mem", limit));
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    assert_int_equal(unicon_model_rank(model), 256);
    if (k > 0) assert_null(strstr(unicon_model_meta(model, "auto_tried"), "rank 320"));
    assert_string_equal(unicon_ctx_error(ctx), "");
    peak = (uint64_t)unicon_ctx_memory_peak(ctx);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    unicon_ctx_destroy(ctx);
  }
  problem_free(&p);
}

/* What is said of the rank is what comes out of it: all there is, or as many directions as class
 * labels have. */
static void the_rank_is_said_as_it_is(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 400 };
  problem p;
  unicon_pairs *pairs = NULL;
  int64_t label[ROWS];
  problem_make(ctx, 5, ROWS, DX, DY, 6, 0.6, &p);
  for (int i = 0; i < ROWS; i++) label[i] = i % 4;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, ROWS, label, ROWS, &pairs));
  for (int labels = 0; labels < 2; labels++) {
    unicon_options *options = support_options(ctx, "preset", "auto", "kernel", "linear", "refine",
                                              "0", "rank", labels ? "auto" : "full", NULL);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, labels ? pairs : NULL, options);
    assert_non_null(
        strstr(unicon_model_meta(model, "auto_chosen"), labels ? "rank 3" : "rank full"));
    assert_int_equal(unicon_model_rank(model), labels ? 3 : DY);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  unicon_pairs_destroy(pairs);
  problem_free(&p);
}

/* Splits may have fewer directions than all rows: a column of y that two rows alone have, for one. */
static void the_rank_is_that_of_the_model(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const presets[] = {"fast", "auto"};
  enum { ROWS = 300 };
  problem p;
  problem_make(ctx, 6, ROWS, DX, DY, 6, 0.6, &p);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t k = DY - 4; k < DY; k++) p.y[i * DY + k] = i == 40 * (DY - k) ? 3.0f : 0.0f;
  for (int k = 0; k < 2; k++) {
    unicon_options *options = NULL;
    char words[32];
    CHECK_OK(ctx, unicon_options_create(ctx, &options));
    CHECK_OK(ctx, unicon_options_set(ctx, options, "preset", presets[k]));
    CHECK_OK(ctx, unicon_options_set(ctx, options, "kernel", "linear"));
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    snprintf(words, sizeof words, "rank %lld,", (long long)unicon_model_rank(model));
    assert_non_null(strstr(unicon_model_meta(model, "auto_chosen"), words));
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

/* Keeps the first warning of its kind. */
static void hear_left_out(void *user, unicon_log_level level, const char *text) {
  char *kept = user;
  if (level == UNICON_LOG_WARNING && strstr(text, "left out") && !kept[0])
    snprintf(kept, 256, "%.255s", text);
}

/* Under a small limit a kernel that does not fit is left out and said so; where none fits, the
 * sentence names the limit. The kernels' matrices are rows by rows: 3 x 7 MB here. */
static void kernels_must_fit_the_limit(void **state) {
  scratch *s = *state;
  enum { ROWS = 800 };
  problem p;
  problem_make(s->ctx, 5, ROWS, DX, DY, 6, 0.6, &p);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", "2")); /* each has buffers of its own */
  static const struct {
    const char *limit;
    bool held, left_out, fits;
  } cases[] = {{"9M", false, true, true},
               {"9M", true, true, true},
               {"1M", false, true, false},
               {"none", false, false, true}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char heard[256] = "";
    unicon_model *model = NULL;
    const uint64_t before = scratch_memory(s);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "max-mem", cases[c].limit));
    unicon_ctx_set_log(s->ctx, hear_left_out, heard);
    const unicon_status status =
        unicon_fit(s->ctx, &data, cases[c].held ? &data : NULL, NULL, &model);
    unicon_ctx_set_log(s->ctx, NULL, NULL);
    assert_int_equal(heard[0] != '\0', cases[c].left_out);
    if (!cases[c].fits) {
      scratch_failed(s, status, UNICON_ERR_MEMORY, "max_mem", "");
      continue;
    }
    CHECK_OK(s->ctx, status);
    const bool tried = strstr(unicon_model_meta(model, "auto_tried"), "angular") != NULL;
    assert_int_equal(tried, !cases[c].left_out);
    if (cases[c].left_out) {
      assert_non_null(strstr(heard, "kernel angular"));
      assert_string_equal(unicon_ctx_error(s->ctx), "");
      assert_true(scratch_memory(s) - before < 1 << 20); /* a linear model and nothing else */
    }
    unicon_model_destroy(model);
  }
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(any_budget_gives_a_model),
      SCRATCH_TEST(a_given_kernel_is_never_behind_fast),
      SCRATCH_TEST(many_common_directions_take_more_rank),
      SCRATCH_TEST(a_rank_without_room_is_left_out),
      SCRATCH_TEST(the_rank_is_said_as_it_is),
      SCRATCH_TEST(the_rank_is_that_of_the_model),
      SCRATCH_TEST(kernels_must_fit_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
