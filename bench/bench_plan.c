/* SPDX-License-Identifier: Apache-2.0 */
/* What `unicon plan` promises beside what fits take: memory (planned over held) and time (planned
 * over taken), for several sets of options.
 *
 *     bench_plan [--rows 6000] [--width 300] */
#include "bench.h"

typedef enum pairing { ROWS, LABELS, PER_X, RANDOM } pairing;

static const struct {
  const char *name;
  const char *option[5][2];
  pairing
      kind; /* row i with row i; labels of `number` rows; as many rows of y for each of x; random
                 pairs, as many for each row */
  int number;
} cases[] = {
    {"fast", {{"preset", "fast"}}, ROWS, 0},
    {"fast, rank full", {{"preset", "fast"}, {"rank", "full"}}, ROWS, 0},
    {"two exact steps", {{"preset", "fast"}, {"iterations", "2"}}, ROWS, 0},
    {"two steps on batches", {{"preset", "fast"}, {"iterations", "2"}, {"batch", "500"}}, ROWS, 0},
    {"refine 2", {{"preset", "fast"}, {"refine", "2"}, {"refine_batch", "500"}}, ROWS, 0},
    {"angular, 300 landmarks",
     {{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}},
     ROWS,
     0},
    {"the same, 1000 rows a part",
     {{"preset", "fast"}, {"kernel", "angular"}, {"landmarks", "300"}, {"batch", "1000"}},
     ROWS,
     0},
    {"rbf, 400 random features",
     {{"preset", "fast"}, {"kernel", "rbf"}, {"map", "random"}, {"features", "400"}},
     ROWS,
     0},
    {"paper", {{"preset", "paper"}, {"batch", "full"}}, ROWS, 0},
    {"labels, fast", {{"preset", "fast"}}, LABELS, 120},
    {"two rows a label, fast", {{"preset", "fast"}}, LABELS, 2},
    {"two rows a label, auto, linear", {{"preset", "auto"}, {"kernel", "linear"}}, LABELS, 2},
    {"two rows a label, rbf",
     {{"preset", "fast"}, {"kernel", "rbf"}, {"landmarks", "500"}},
     LABELS,
     2},
    {"random pairs, fast", {{"preset", "fast"}}, RANDOM, 10},
    {"triplet, three labels",
     {{"preset", "fast"}, {"loss", "triplet"}, {"iterations", "1"}},
     LABELS,
     2000},
    {"labels, supcon, a step",
     {{"preset", "fast"}, {"loss", "supcon"}, {"iterations", "1"}},
     LABELS,
     120},
    {"auto, linear", {{"preset", "auto"}, {"kernel", "linear"}}, ROWS, 0},
    {"auto", {{"preset", "auto"}}, ROWS, 0},
    {"auto, five a row", {{"preset", "auto"}}, PER_X, 5},
    {"auto, near-exact, linear",
     {{"preset", "auto"}, {"kernel", "linear"}, {"refine", "0"}},
     ROWS,
     0},
    {"best, 200 landmarks", {{"preset", "best"}, {"landmarks", "200"}, {"refine", "1"}}, ROWS, 0},
};

static double figure_of(const unicon_result *r, const char *name) {
  double value = NAN;
  unicon_result_number(r, name, &value);
  return value;
}

static unicon_status random_pairs(unicon_ctx *ctx, int64_t n, int64_t each, unicon_pairs **out) {
  int64_t *x = calloc((size_t)(n * each), sizeof *x), *y = calloc((size_t)(n * each), sizeof *y);
  if (!x || !y) exit(1);
  for (int64_t k = 0; k < n * each; k++) {
    x[k] = k / each;
    y[k] = (k / each * 7919 + k % each * 104729) % n;
  }
  const unicon_status status = unicon_pairs_list(ctx, n, n, x, y, NULL, n * each, out);
  free(x), free(y);
  return status;
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
    const int64_t number = cases[c].number;
    const pairing kind = cases[c].kind;
    const int64_t n_x = kind == PER_X ? n / number : n;
    BENCH_TRY(ctx, unicon_rows_wrap(ctx, "x", x, UNICON_F32, n_x, d, 4 * d, 4, &rows[0]));
    BENCH_TRY(ctx, unicon_rows_wrap(ctx, "y", y, UNICON_F32, n, d, 4 * d, 4, &rows[1]));
    for (int64_t i = 0; i < n && kind == LABELS; i++) label[i] = i / number;
    if (kind == PER_X) BENCH_TRY(ctx, unicon_pairs_per_x(ctx, n_x, n, number, &pairs));
    if (kind == RANDOM) BENCH_TRY(ctx, random_pairs(ctx, n, number, &pairs));
    if (kind == LABELS) BENCH_TRY(ctx, unicon_pairs_labels(ctx, label, n, label, n, &pairs));
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
           figure_of(plan, "memory") / 1e6, held / 1e6, figure_of(plan, "memory") / held,
           figure_of(plan, "seconds"), taken, figure_of(plan, "seconds") / taken);
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
