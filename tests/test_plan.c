/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a fit against the fit: memory from 0.85 to 1.6 times what was held. Below 1 the
 * promise of max_mem would be broken by the advice to set it so, hence the test also fits with the
 * planned memory, plus a fifth, as the limit. */
#include "figures.h"
#include "scratch.h"
#include "support.h"

typedef struct planned {
  const char *name[4][2];
} planned;

static const planned cases[] = {
    {{{"preset", "fast"}}},
    {{{"preset", "fast"}, {"iterations", "2"}}},
    {{{"preset", "fast"}, {"refine", "1"}, {"refine_batch", "200"}}},
    {{{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}}},
    {{{"preset", "fast"}, {"kernel", "rbf"}, {"map", "random"}, {"features", "400"}}},
    {{{"preset", "paper"}, {"batch", "full"}}},
    {{{"preset", "auto"}, {"kernel", "linear"}}}, /* three splits at once, and refine */
    {{{"preset", "best"}, {"landmarks", "100"}, {"refine", "1"}, {"rank", "16"}}},
    {{{"preset", "fast"}, {"rank", "full"}}},
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
    assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
    problem_make(ctx, 5, 3000, 300, 200, 20, 0.3, &p);
    const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
    unicon_options *options = options_of(ctx, &cases[c]);
    assert_int_equal(figures_plan(s->ctx, &data, options, &plan),
                     UNICON_OK); /* a peak of its own */
    assert_int_equal(unicon_fit(ctx, &data, NULL, options, &model), UNICON_OK);
    const double peak = (double)unicon_ctx_memory_peak(ctx), ratio = (double)plan.memory / peak;
    if (ratio < 0.85 || ratio > 1.6) print_error("case %zu: planned %.2f of the peak\n", c, ratio);
    assert_true(ratio >= 0.85 && ratio <= 1.6);
    assert_true(plan.seconds > 0 && plan.flops > 0 && plan.reads[0] >= 2);
    unicon_model_destroy(model);
    char limit[32];
    snprintf(limit, sizeof limit, "%.0f", 1.2 * (double)plan.memory);
    assert_int_equal(unicon_ctx_set(ctx, "max_mem", limit), UNICON_OK);
    assert_int_equal(unicon_fit(ctx, &data, NULL, options, &model), UNICON_OK);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    problem_free(&p);
    unicon_ctx_destroy(ctx);
  }
}

static void plan_advises(void **state) {
  scratch *s = *state;
  problem p;
  plan_figures plan;
  problem_make(s->ctx, 6, 2000, 400, 300, 20, 0.3, &p);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  assert_int_equal(figures_plan(s->ctx, &data, NULL, &plan), UNICON_OK);
  assert_non_null(strstr(plan.advice, "no memory limit"));
  assert_int_equal(unicon_ctx_set(s->ctx, "max_mem", "2M"), UNICON_OK);
  unicon_options *options = support_options(s->ctx, "preset", "fast", NULL);
  /* the measuring itself does not fit into 2 MB: an error, and a sentence */
  assert_int_equal(figures_plan(s->ctx, &data, options, &plan), UNICON_ERR_MEMORY);
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
  const struct CMUnitTest tests[] = {SCRATCH_TEST(plan_matches_fit), SCRATCH_TEST(plan_advises)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
