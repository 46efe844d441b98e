/* SPDX-License-Identifier: Apache-2.0 */
/* Forgetting some rows (statistics less these rows, and a new model of them) against a fit of all
 * others from the rows.
 *
 *     bench_forget [--rows 1000000] [--width 512] [--gone 1000] [--repeat 1]
 *
 * A fit from rows uses float32 products, statistics that are kept float64 ones; making them is shown
 * apart. Rows are float16 in memory, width + width numbers each. Processor seconds stand beside those
 * of the clock. */
#include "bench.h"

#include "linalg/convert.h"
#include "unicon/stats.h"

/* The shorter of *best and the time since. */
static void take(bench_moment start, bench_moment *best) {
  const bench_moment taken = bench_since(start);
  if (taken.clock < best->clock) best->clock = taken.clock;
  if (taken.processor < best->processor) best->processor = taken.processor;
}

static uint16_t *make_rows(int64_t n, int64_t d, uint32_t stream) {
  uint16_t *half = malloc((size_t)(n * d) * sizeof *half);
  float *z = malloc((size_t)d * sizeof *z), *e = malloc((size_t)d * sizeof *e);
  if (!half || !z || !e) exit(1);
  for (int64_t i = 0; i < n; i++) {
    unicon__normals(1, 1, (uint64_t)i, d, z);
    unicon__normals(1, stream, (uint64_t)i, d, e);
    for (int64_t k = 0; k < d; k++) z[k] += 2 * e[k];
    unicon__to_half(z, d, half + i * d);
  }
  free(z), free(e);
  return half;
}

/* Rows first .. first + count - 1 of both sides. */
static unicon_data part_of(unicon_ctx *ctx, uint16_t *const data[2], int64_t first, int64_t count,
                           int64_t d) {
  unicon_rows *rows[2];
  for (int s = 0; s < 2; s++)
    BENCH_TRY(ctx, unicon_rows_wrap(ctx, s ? "y" : "x", data[s] + first * d, UNICON_F16, count, d,
                                    2 * d, 2, &rows[s]));
  return UNICON_DATA(.x = rows[0], .y = rows[1]);
}

static void close_part(unicon_data *part) {
  unicon_rows_close((unicon_rows *)(uintptr_t)part->x);
  unicon_rows_close((unicon_rows *)(uintptr_t)part->y);
}

int main(int argc, char **argv) {
  const int64_t n = bench_option(argc, argv, "--rows", 1000000);
  const int64_t d = bench_option(argc, argv, "--width", 512);
  const int64_t gone = bench_option(argc, argv, "--gone", 1000);
  const long repeat = bench_option(argc, argv, "--repeat", 1);
  bench_moment fit = {1e30, 1e30}, removal = fit, solve = fit, sums = fit;
  uint16_t *const data[2] = {make_rows(n, d, 2), make_rows(n, d, 3)};
  unicon_ctx *ctx;
  unicon_options *fast;
  unicon_stats *stats;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  BENCH_TRY(ctx, unicon_options_create(ctx, &fast));
  BENCH_TRY(ctx, unicon_options_set(ctx, fast, "preset", "fast"));
  unicon_data all = part_of(ctx, data, 0, n, d), less = part_of(ctx, data, 0, gone, d);
  unicon_data rest = part_of(ctx, data, gone, n - gone, d);
  BENCH_TRY(ctx, unicon_stats_create(ctx, &all, NULL, &stats));
  bench_moment start = bench_now();
  BENCH_TRY(ctx, unicon_stats_add(ctx, stats, &all, NULL));
  take(start, &sums);
  for (long k = 0; k < repeat; k++) {
    unicon_model *model;
    start = bench_now();
    BENCH_TRY(ctx, unicon_stats_remove(ctx, stats, &less, NULL, NULL));
    take(start, &removal);
    start = bench_now();
    BENCH_TRY(ctx, unicon_stats_fit(ctx, stats, NULL, fast, &model));
    take(start, &solve);
    unicon_model_destroy(model);
    BENCH_TRY(ctx, unicon_stats_add(ctx, stats, &less, NULL));
    start = bench_now();
    BENCH_TRY(ctx, unicon_fit(ctx, &rest, NULL, fast, &model));
    take(start, &fit);
    unicon_model_destroy(model);
  }
  printf("%s, %d threads, %lld of %lld pairs of %lld + %lld numbers, best of %ld\n",
         unicon_build_info(), ctx->threads, (long long)gone, (long long)n, (long long)d,
         (long long)d, repeat);
  printf("%-28s %11s %11s\n", "", "clock", "processors");
  printf("%-28s %9.3f s %9.3f s\n", "sums of all, once", sums.clock, sums.processor);
  printf("%-28s %9.3f s %9.3f s\n", "removal", removal.clock, removal.processor);
  printf("%-28s %9.3f s %9.3f s\n", "model from what is left", solve.clock, solve.processor);
  printf("%-28s %9.3f s %9.3f s\n", "fit of the other rows", fit.clock, fit.processor);
  printf("%-28s %11.4f %11.4f   (at most 0.1)\n", "removal and model over fit",
         (removal.clock + solve.clock) / fit.clock,
         (removal.processor + solve.processor) / fit.processor);
  close_part(&rest);
  close_part(&less);
  close_part(&all);
  unicon_stats_destroy(stats);
  unicon_options_destroy(fast);
  unicon_ctx_destroy(ctx);
  free(data[0]), free(data[1]);
  return 0;
}
