/* SPDX-License-Identifier: Apache-2.0 */
/* `fast` against its own products: fit time over the time of X^T X, Y^T Y and X^T Ybar as full
 * float32 sgemm (Ybar: the y rows of each x row summed), in one run; reading the files apart.
 *
 *     UNICON_DATA=DIR bench_fit [--repeat 5]
 *
 * reads DIR/flickr8k-inceptionv3-use/{image,text}.train.npy; without it, random data of that size.
 */
#include "bench.h"

static double time_products(int threads, const float *x, int64_t n_x, int64_t d_x, const float *y,
                            int64_t n_y, int64_t d_y, long repeat) {
  const int64_t most = d_x > d_y ? d_x : d_y;
  float *c = calloc((size_t)(most * most), sizeof *c);
  if (!c) exit(1);
  double best = 1e30;
  openblas_set_num_threads(threads);
  for (long k = 0; k < repeat; k++) {
    const double start = unicon__now();
    bench_sgemm(true, false, d_x, d_x, n_x, 1, x, d_x, x, d_x, 0, c, d_x);
    bench_sgemm(true, false, d_y, d_y, n_y, 1, y, d_y, y, d_y, 0, c, d_y);
    bench_sgemm(true, false, d_x, d_y, n_x, 1, x, d_x, y, d_y, 0, c, d_y);
    const double taken = unicon__now() - start;
    best = taken < best ? taken : best;
  }
  free(c);
  return best;
}

static unicon_rows *open_rows(unicon_ctx *ctx, const char *name, int64_t n, int64_t d,
                              uint32_t stream, float **own) {
  const char *data = getenv("UNICON_DATA");
  unicon_rows *rows = NULL;
  if (data) {
    char path[1024];
    snprintf(path, sizeof path, "%s/flickr8k-inceptionv3-use/%s.train.npy", data, name);
    BENCH_TRY(ctx, unicon_rows_open(ctx, path, &rows));
    return rows;
  }
  *own = bench_normals(n, d, stream);
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, name, *own, UNICON_F32, n, d, d * 4, 4, &rows));
  return rows;
}

int main(int argc, char **argv) {
  const long repeat = bench_option(argc, argv, "--repeat", 5);
  unicon_ctx *ctx;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  float *own_x = NULL, *own_y = NULL;
  unicon_rows *x = open_rows(ctx, "image", 6000, 2048, 1, &own_x);
  unicon_rows *y = open_rows(ctx, "text", 30000, 512, 2, &own_y);
  const int64_t n_x = unicon_rows_count(x), d_x = unicon_rows_width(x);
  const int64_t n_y = unicon_rows_count(y), d_y = unicon_rows_width(y);
  unicon_pairs *pairs;
  BENCH_TRY(ctx, unicon_pairs_per_x(ctx, n_x, n_y, n_y / n_x, &pairs));
  float *fx = malloc((size_t)(n_x * d_x) * 4), *fy = malloc((size_t)(n_y * d_y) * 4);
  if (!fx || !fy) return 1;
  unicon_options *fast;
  BENCH_TRY(ctx, unicon_options_create(ctx, &fast));
  BENCH_TRY(ctx, unicon_options_set(ctx, fast, "preset", "fast"));
  double read = 1e30, fit = 1e30;
  for (long k = 0; k < repeat; k++) {
    double start = unicon__now();
    BENCH_TRY(ctx, unicon_rows_read(ctx, x, 0, n_x, fx));
    BENCH_TRY(ctx, unicon_rows_read(ctx, y, 0, n_y, fy));
    read = unicon__now() - start < read ? unicon__now() - start : read;
    unicon_model *model;
    start = unicon__now();
    BENCH_TRY(ctx,
              unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y, .pairs = pairs), NULL, fast, &model));
    fit = unicon__now() - start < fit ? unicon__now() - start : fit;
    unicon_model_destroy(model);
  }
  const double products = time_products(ctx->threads, fx, n_x, d_x, fy, n_y, d_y, repeat);
  printf("%s, %d threads, x %lld x %lld, y %lld x %lld, best of %ld\n", unicon_build_info(),
         ctx->threads, (long long)n_x, (long long)d_x, (long long)n_y, (long long)d_y, repeat);
  printf("fit fast          %7.3f s\n", fit);
  printf("three products    %7.3f s\n", products);
  printf("ratio             %7.2f   (at most 3)\n", fit / products);
  printf("reading the rows  %7.3f s\n", read);
  printf("library memory    %7.1f MB at most\n", (double)unicon_ctx_memory_peak(ctx) / 1e6);
  free(fy);
  free(fx);
  unicon_options_destroy(fast);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(y);
  unicon_rows_close(x);
  free(own_y);
  free(own_x);
  unicon_ctx_destroy(ctx);
  return 0;
}
