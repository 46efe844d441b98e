/* SPDX-License-Identifier: Apache-2.0 */
/* What `unicon plan` promises beside what fits take: memory (planned over held) and time (planned
 * over taken), for several sets of options.
 *
 *     bench_plan [--rows 6000] [--width 300] */
#include "bench.h"

static const struct {
  const char *name;
  const char *option[5][2];
  int labels; /* classes; 0: row i with row i */
} cases[] = {
    {"fast", {{"preset", "fast"}}, 0},
    {"fast, rank full", {{"preset", "fast"}, {"rank", "full"}}, 0},
    {"two exact steps", {{"preset", "fast"}, {"iterations", "2"}}, 0},
    {"two steps on batches", {{"preset", "fast"}, {"iterations", "2"}, {"batch", "500"}}, 0},
    {"refine 2", {{"preset", "fast"}, {"refine", "2"}, {"refine_batch", "500"}}, 0},
    {"angular, 300 landmarks",
     {{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}},
     0},
    {"the same, 1000 rows a part",
     {{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}, {"batch", "1000"}},
     0},
    {"rbf, 400 random features",
     {{"preset", "fast"}, {"kernel", "rbf"}, {"map", "random"}, {"features", "400"}},
     0},
    {"paper", {{"preset", "paper"}, {"batch", "full"}}, 0},
    {"labels, fast", {{"preset", "fast"}}, 50},
    {"labels, supcon, a step", {{"preset", "fast"}, {"loss", "supcon"}, {"iterations", "1"}}, 50},
    {"auto, linear", {{"preset", "auto"}, {"kernel", "linear"}}, 0},
    {"auto", {{"preset", "auto"}}, 0},
    {"best, 200 landmarks", {{"preset", "best"}, {"landmarks", "200"}, {"refine", "1"}}, 0},
};

static double number(const unicon_result *r, const char *name) {
  double value = NAN;
  unicon_result_number(r, name, &value);
  return value;
}

int main(int argc, char **argv) {
  const int64_t n = bench_option(argc, argv, "--rows", 6000);
  const int64_t d = bench_option(argc, argv, "--width", 300);
  float *x = bench_normals(n, d, 1), *y = bench_normals(n, d, 2);
  int64_t *label = calloc((size_t)n, sizeof *label);
  if (!label) return 1;
  for (int64_t k = 0; k < n * d; k++) y[k] = x[k] + 0.5f * y[k];
  printf("%-30s %12s %12s %8s %9s %9s %8s\n", "", "planned MB", "held MB", "ratio", "planned s",
         "taken s", "ratio");
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unicon_ctx *ctx;
    unicon_rows *rows[2];
    unicon_pairs *pairs = NULL;
    unicon_options *options;
    unicon_result *plan;
    unicon_model *model;
    if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
    BENCH_TRY(ctx, unicon_rows_wrap(ctx, "x", x, UNICON_F32, n, d, 4 * d, 4, &rows[0]));
    BENCH_TRY(ctx, unicon_rows_wrap(ctx, "y", y, UNICON_F32, n, d, 4 * d, 4, &rows[1]));
    for (int64_t i = 0; i < n && cases[c].labels; i++) label[i] = i % cases[c].labels;
    if (cases[c].labels) BENCH_TRY(ctx, unicon_pairs_labels(ctx, label, n, label, n, &pairs));
    BENCH_TRY(ctx, unicon_options_create(ctx, &options));
    for (int k = 0; k < 5 && cases[c].option[k][0]; k++)
      BENCH_TRY(ctx,
                unicon_options_set(ctx, options, cases[c].option[k][0], cases[c].option[k][1]));
    const unicon_data data = UNICON_DATA(.x = rows[0], .y = rows[1], .pairs = pairs);
    BENCH_TRY(ctx, unicon_plan(ctx, &data, options, &plan));
    unicon_ctx *own;
    if (unicon_ctx_create(&own) != UNICON_OK) return 1;
    const double start = unicon__now();
    BENCH_TRY(own, unicon_fit(own, &data, NULL, options, &model));
    const double taken = unicon__now() - start, held = (double)unicon_ctx_memory_peak(own);
    printf("%-30s %12.1f %12.1f %8.2f %9.2f %9.2f %8.2f\n", cases[c].name,
           number(plan, "memory") / 1e6, held / 1e6, number(plan, "memory") / held,
           number(plan, "seconds"), taken, number(plan, "seconds") / taken);
    fflush(stdout);
    unicon_model_destroy(model);
    unicon_result_destroy(plan);
    unicon_options_destroy(options);
    unicon_pairs_destroy(pairs);
    unicon_rows_close(rows[1]);
    unicon_rows_close(rows[0]);
    unicon_ctx_destroy(own);
    unicon_ctx_destroy(ctx);
  }
  free(label), free(y), free(x);
  return 0;
}
