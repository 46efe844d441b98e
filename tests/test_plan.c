/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a fit against the fit: memory from 1 to 2.5 times what was held, and a fit with the
 * planned memory as its limit works. Times are estimates (bench/bench_plan.c shows them); here it is
 * only held that work grows as it must. */
#include "figures.h"
#include "scratch.h"
#include "support.h"
#include "unicon/stats.h"

typedef struct planned {
  const char *name[4][2];
  int labels; /* classes; 0: row i with row i; -5: five rows of y for each of x */
} planned;

static const planned cases[] = {
    {{{"preset", "fast"}}, 0},
    {{{"preset", "fast"}, {"iterations", "2"}}, 0},
    {{{"preset", "fast"}, {"refine", "1"}, {"refine_batch", "200"}}, 0},
    {{{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}}, 0},
    {{{"preset", "fast"}, {"kernel", "rbf"}, {"map", "random"}, {"features", "400"}}, 0},
    {{{"preset", "paper"}, {"batch", "full"}}, 0},
    {{{"preset", "auto"}, {"kernel", "linear"}}, 0}, /* three splits at once, and refine */
    {{{"preset", "best"}, {"landmarks", "100"}, {"refine", "1"}, {"rank", "16"}}, 0},
    {{{"preset", "fast"}, {"rank", "full"}}, 0},
    {{{"preset", "fast"}, {"iterations", "2"}, {"batch", "500"}}, 0},
    {{{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "200"}, {"batch", "600"}},
     0}, /* fused */
    {{{"preset", "fast"}}, 40},
    {{{"preset", "fast"}}, 1500},
    {{{"preset", "auto"}, {"kernel", "linear"}, {"refine", "0"}}, 1500},
    {{{"preset", "auto"}, {"landmarks", "300"}, {"refine", "1"}}, -5},
    {{{"preset", "fast"}, {"loss", "triplet"}, {"iterations", "1"}}, 30},
    {{{"preset", "fast"}, {"loss", "supcon"}, {"iterations", "1"}}, 40},
};

static unicon_options *options_of(unicon_ctx *ctx, const planned *p) {
  unicon_options *options = NULL;
  assert_int_equal(unicon_options_create(ctx, &options), UNICON_OK);
  for (int k = 0; k < 4 && p->name[k][0]; k++)
    assert_int_equal(unicon_options_set(ctx, options, p->name[k][0], p->name[k][1]), UNICON_OK);
  return options;
}

static void plan_matches_fit(void **state) {
  scratch *s = *state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    problem p;
    unicon_ctx *ctx = NULL;
    unicon_model *model = NULL;
    plan_figures plan;
    unicon_pairs *pairs = NULL;
    int64_t label[3000];
    assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
    problem_make(ctx, 5, 3000, 300, 200, 20, 0.3, &p);
    const int classes = cases[c].labels;
    unicon_rows *few = support_rows(ctx, "few", p.x, 600, 300);
    for (int i = 0; i < 3000 && classes > 0; i++) label[i] = i % classes;
    if (classes > 0) CHECK_OK(ctx, unicon_pairs_labels(ctx, label, 3000, label, 3000, &pairs));
    if (classes < 0) CHECK_OK(ctx, unicon_pairs_per_x(ctx, 600, 3000, -classes, &pairs));
    const unicon_data data =
        UNICON_DATA(.x = classes < 0 ? few : p.rows_x, .y = p.rows_y, .pairs = pairs);
    unicon_options *options = options_of(ctx, &cases[c]);
    assert_int_equal(figures_plan(s->ctx, &data, options, &plan),
                     UNICON_OK); /* a peak of its own */
    assert_int_equal(unicon_fit(ctx, &data, NULL, options, &model), UNICON_OK);
    const double peak = (double)unicon_ctx_memory_peak(ctx), ratio = (double)plan.memory / peak;
    if (ratio < 1 || ratio > 2.5) print_error("case %zu: planned %.2f of the peak\n", c, ratio);
    assert_true(ratio >= 1 && ratio <= 2.5);
    assert_true(plan.seconds > 0 && plan.flops > 0 && plan.reads[0] >= 1);
    unicon_model_destroy(model);
    char limit[32];
    snprintf(limit, sizeof limit, "%.0f", (double)plan.memory);
    assert_int_equal(unicon_ctx_set(ctx, "max_mem", limit), UNICON_OK);
    assert_int_equal(unicon_fit(ctx, &data, NULL, options, &model), UNICON_OK);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    unicon_pairs_destroy(pairs);
    unicon_rows_close(few);
    problem_free(&p);
    unicon_ctx_destroy(ctx);
  }
}

/* Rows that nobody could hold: their addresses are never read. */
static unicon_status plan_large(unicon_ctx *ctx, int64_t n, int64_t d,
                                const unicon_options *options, plan_figures *out) {
  static const uint16_t nothing[1];
  unicon_rows *x = NULL, *y = NULL;
  CHECK_OK(ctx, unicon_rows_wrap(ctx, "x", nothing, UNICON_F16, n, d, 2 * d, 2, &x));
  CHECK_OK(ctx, unicon_rows_wrap(ctx, "y", nothing, UNICON_F16, n, d, 2 * d, 2, &y));
  const unicon_status status = figures_plan(ctx, &UNICON_DATA(.x = x, .y = y), options, out);
  unicon_rows_close(y);
  unicon_rows_close(x);
  return status;
}

/* A job of years is advised against, with one of hours in its place; one that does not fit into the
 * machine as well. */
static void plan_says_do_not(void **state) {
  scratch *s = *state;
  plan_figures exact, batches, fast, huge;
  unicon_options *steps = support_options(s->ctx, "preset", "fast", "iterations", "3", NULL);
  unicon_options *cut =
      support_options(s->ctx, "preset", "fast", "iterations", "3", "batch", "2000", NULL);
  unicon_options *plain = support_options(s->ctx, "preset", "fast", NULL);
  unicon_options *wide =
      support_options(s->ctx, "preset", "fast", "kernel", "rbf", "landmarks", "1000000", NULL);
  CHECK_OK(s->ctx, plan_large(s->ctx, 20000000, 512, steps, &exact));
  CHECK_OK(s->ctx, plan_large(s->ctx, 20000000, 512, cut, &batches));
  CHECK_OK(s->ctx, plan_large(s->ctx, 20000000, 512, plain, &fast));
  CHECK_OK(s->ctx, plan_large(s->ctx, 20000000, 512, wide, &huge));
  assert_non_null(strstr(exact.advice, "do not: it would take about"));
  assert_non_null(strstr(exact.advice, "sweeps over all pairs of rows"));
  assert_non_null(strstr(exact.advice, "in its place: batch 2000"));
  assert_null(strstr(batches.advice, "do not"));
  assert_true(exact.flops > 1000 * batches.flops && batches.flops > 2 * fast.flops);
  /* 20 million pairs: the products, once read, in memory that pairs and sums take */
  const double products = 20e6 * 512 * 512 * 2 * (1 + 1.25);
  assert_true(fast.flops > products && fast.flops < 1.3 * products);
  assert_true(fast.reads[0] == 1 && fast.reads[1] == 1);
  assert_true(fast.memory > 480e6 && fast.memory < 800e6);
  assert_non_null(strstr(huge.advice, "do not: "));
  unicon_options_destroy(wide);
  unicon_options_destroy(plain);
  unicon_options_destroy(cut);
  unicon_options_destroy(steps);
}

static const struct {
  const char *ledger, *kernel, *preset;
} kept[] = {{"off", "linear", "auto"}, {"on", "linear", "fast"}, {"off", "rbf", "fast"}};

static void check_memory(const unicon_result *plan, const char *name, const unicon_ctx *ctx) {
  double memory;
  const double peak = (double)unicon_ctx_memory_peak(ctx);
  assert_int_equal(unicon_result_number(plan, name, &memory), 0);
  if (memory < peak || memory > 2.5 * peak)
    print_error("%s: planned %.2f of the peak\n", name, memory / peak);
  assert_true(memory >= peak && memory <= 2.5 * peak);
}

/* Statistics are made and saved; returns their path. */
static const char *plan_and_sum(scratch *s, size_t c) {
  problem p;
  unicon_ctx *ctx = NULL;
  unicon_stats *stats = NULL;
  unicon_result *plan = NULL;
  unicon_options *options = NULL;
  double bytes;
  size_t size;
  assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
  problem_make(ctx, 5, 5000, 220, 150, 20, 0.3, &p);
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "ledger", kept[c].ledger));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "kernel", kept[c].kernel));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "landmarks", "300"));
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  CHECK_OK(s->ctx, unicon_plan(s->ctx, &data, options, &plan));
  assert_string_equal(unicon_result_text(plan, "device"), "cpu");
  CHECK_OK(ctx, unicon_stats_create(ctx, &data, options, &stats));
  CHECK_OK(ctx, unicon_stats_add(ctx, stats, &data, options));
  check_memory(plan, "statistics.memory", ctx);
  CHECK_OK(ctx, unicon_stats_to_bytes(ctx, stats, NULL, 0, &size));
  assert_int_equal(unicon_result_number(plan, "statistics.bytes", &bytes), 0);
  assert_true(bytes > 0.8 * (double)size && bytes < 1.3 * (double)size);
  const char *path = scratch_path(s, "all.stats");
  CHECK_OK(ctx, unicon_stats_save(ctx, stats, path));
  unicon_result_destroy(plan);
  unicon_stats_destroy(stats);
  unicon_options_destroy(options);
  problem_free(&p);
  unicon_ctx_destroy(ctx);
  return path;
}

/* Making statistics, and a fit from them: what is planned holds. */
static void plan_of_statistics(void **state) {
  scratch *s = *state;
  for (size_t c = 0; c < sizeof kept / sizeof *kept; c++) {
    unicon_ctx *ctx = NULL; /* with a peak of its own */
    unicon_model *model = NULL;
    unicon_stats *stats = NULL;
    unicon_result *plan = NULL;
    unicon_options *fit = NULL;
    const char *path = plan_and_sum(s, c);
    assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
    CHECK_OK(ctx, unicon_options_create(ctx, &fit));
    CHECK_OK(ctx, unicon_options_set(ctx, fit, "preset", kept[c].preset));
    CHECK_OK(ctx, unicon_stats_load(ctx, path, &stats));
    CHECK_OK(ctx, unicon_stats_plan(ctx, stats, fit, &plan));
    assert_non_null(strstr(unicon_result_text(plan, "advice"), "fits into this machine"));
    CHECK_OK(ctx, unicon_stats_fit(ctx, stats, NULL, fit, &model));
    check_memory(plan, "memory", ctx);
    unicon_result_destroy(plan);
    unicon_model_destroy(model);
    unicon_stats_destroy(stats);
    unicon_options_destroy(fit);
    unicon_ctx_destroy(ctx);
  }
}

static void plan_advises(void **state) {
  scratch *s = *state;
  problem p;
  plan_figures plan;
  unicon_model *model = NULL;
  problem_make(s->ctx, 6, 2000, 400, 300, 20, 0.3, &p);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  assert_int_equal(figures_plan(s->ctx, &data, NULL, &plan), UNICON_OK);
  assert_non_null(strstr(plan.advice, "fits into this machine"));
  assert_int_equal(unicon_ctx_set(s->ctx, "max_mem", "2M"), UNICON_OK);
  unicon_options *options = support_options(s->ctx, "preset", "fast", NULL);
  /* the limit is the fit's: what is timed here does not count, and the limit is in force again */
  CHECK_OK(s->ctx, figures_plan(s->ctx, &data, options, &plan));
  assert_non_null(strstr(plan.advice, "max_mem is 2.0 MiB, but up to "));
  assert_non_null(strstr(plan.advice, "lower rank"));
  CHECK_OK(s->ctx, figures_plan(s->ctx, &data, NULL, &plan)); /* not even the linear kernel fits */
  assert_non_null(strstr(plan.advice, "lower rank"));
  assert_int_equal(unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_MEMORY);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "2001"));
  assert_int_equal(figures_plan(s->ctx, &data, options, &plan), UNICON_ERR_DATA);
  assert_int_equal(unicon_ctx_set(s->ctx, "max_mem", "20M"), UNICON_OK);
  unicon_options *kernel = support_options(s->ctx, "preset", "fast", "kernel", "rbf", NULL);
  assert_int_equal(figures_plan(s->ctx, &data, kernel, &plan), UNICON_OK);
  assert_non_null(strstr(plan.advice, "landmarks"));
  assert_true(plan.memory > 20000000);
  assert_int_equal(figures_plan(s->ctx, NULL, kernel, &plan), UNICON_ERR_ARGUMENT);
  unicon_options_destroy(kernel);
  unicon_options_destroy(options);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(plan_matches_fit), SCRATCH_TEST(plan_says_do_not),
                                     SCRATCH_TEST(plan_of_statistics), SCRATCH_TEST(plan_advises)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
