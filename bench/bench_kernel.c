/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel fit against its own products: the time of a whitened angular Nystrom fit over the time
 * of the float32 products that such a fit must do once, by plain threaded sgemm on tiles of TILE
 * rows in the same run; and the memory it takes beyond its input.
 *
 *     bench_kernel [--n 100000] [--d 512] [--m 2000] [--r 256] [--repeat 1]
 *
 * n random unit rows of d numbers on each side, row i with row i. The products, for both sides:
 *     rows by landmarks        2 n d m flops a side
 *     kernel values by factor  2 n m m
 *     second moments           2 n m m, as a full sgemm (the fit computes one triangle)
 * and once Phi_x^T Phi_y       2 n m m.
 * Not counted: the kernel function itself, factorisations (m^3), sums in float64, the SVD, and
 * features computed again where they are not kept. */
#include <math.h>

#include "bench.h"

enum { TILE = 1024 };

typedef struct sizes {
  int64_t n, d, m;
} sizes;

static float *room(int64_t count) {
  float *data = calloc((size_t)count, sizeof *data);
  if (!data) exit(1);
  return data;
}

static float *unit_rows(int64_t n, int64_t d, uint32_t stream) {
  float *x = bench_normals(n, d, stream);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += (double)x[i * d + k] * (double)x[i * d + k];
    for (int64_t k = 0; k < d; k++) x[i * d + k] = (float)((double)x[i * d + k] / sqrt(sum));
  }
  return x;
}

/* The products of one tile of both sides; landmarks are the first m rows, the factor anything. */
static void tile_products(const sizes *z, const float *const side[2], int64_t first, int64_t count,
                          const float *factor, float *values, float *const phi[2], float *square) {
  for (int s = 0; s < 2; s++) {
    bench_sgemm(false, true, count, z->m, z->d, 1, side[s] + first * z->d, z->d, side[s], z->d, 0,
                values, z->m);
    bench_sgemm(false, false, count, z->m, z->m, 1, values, z->m, factor, z->m, 0, phi[s], z->m);
    bench_sgemm(true, false, z->m, z->m, count, 1, phi[s], z->m, phi[s], z->m, 0, square, z->m);
  }
  bench_sgemm(true, false, z->m, z->m, count, 1, phi[0], z->m, phi[1], z->m, 0, square, z->m);
}

static double time_products(int threads, const sizes *z, const float *const side[2]) {
  float *factor = bench_normals(z->m, z->m, 3), *values = room(TILE * z->m);
  float *const phi[2] = {room(TILE * z->m), room(TILE * z->m)}, *square = room(z->m * z->m);
  openblas_set_num_threads(threads);
  tile_products(z, side, 0, TILE < z->n ? TILE : z->n, factor, values, phi, square); /* warm */
  const double start = unicon__now();
  for (int64_t first = 0; first < z->n; first += TILE)
    tile_products(z, side, first, z->n - first < TILE ? z->n - first : TILE, factor, values, phi,
                  square);
  const double taken = unicon__now() - start;
  free(square);
  free(phi[1]);
  free(phi[0]);
  free(values);
  free(factor);
  return taken;
}

/* Keeps the largest anonymous memory that the process had, about ten times a second. */
static int watch(void *user, const char *phase, double done, double left) {
  double *most = user, now = bench_memory("RssAnon:");
  (void)phase;
  (void)done, (void)left;
  if (now > *most) *most = now;
  return 0;
}

static unicon_options *options_of(unicon_ctx *ctx, long m, long r) {
  char landmarks[32], rank[32];
  snprintf(landmarks, sizeof landmarks, "%ld", m);
  snprintf(rank, sizeof rank, "%ld", r);
  const char *const list[][2] = {{"preset", "fast"},       {"kernel", "angular"},
                                 {"map", "nystrom"},       {"rank", rank},
                                 {"landmarks", landmarks}, {"metric", "whiten"}};
  unicon_options *options;
  BENCH_TRY(ctx, unicon_options_create(ctx, &options));
  for (size_t k = 0; k < sizeof list / sizeof *list; k++)
    BENCH_TRY(ctx, unicon_options_set(ctx, options, list[k][0], list[k][1]));
  return options;
}

int main(int argc, char **argv) {
  const sizes z = {bench_option(argc, argv, "--n", 100000), bench_option(argc, argv, "--d", 512),
                   bench_option(argc, argv, "--m", 2000)};
  const long r = bench_option(argc, argv, "--r", 256);
  const long repeat = bench_option(argc, argv, "--repeat", 1);
  if (z.n < z.m || z.m < r || r < 1 || z.d < 1 || repeat < 1) {
    fprintf(stderr, "bench_kernel needs n >= m >= r >= 1, d >= 1, repeat >= 1\n");
    return 2;
  }
  unicon_ctx *ctx;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  float *x = unit_rows(z.n, z.d, 1), *y = unit_rows(z.n, z.d, 2);
  unicon_rows *rows_x, *rows_y;
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "x", x, UNICON_F32, z.n, z.d, z.d * 4, 4, &rows_x));
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "y", y, UNICON_F32, z.n, z.d, z.d * 4, 4, &rows_y));
  unicon_options *options = options_of(ctx, z.m, r);
  const double before = bench_memory("RssAnon:");
  double most = before, fit = 1e30, products = 1e30;
  unicon_ctx_set_progress(ctx, watch, &most);
  for (long k = 0; k < repeat; k++) {
    unicon_model *model;
    const double start = unicon__now();
    BENCH_TRY(ctx,
              unicon_fit(ctx, &(unicon_data){rows_x, rows_y, NULL, NULL}, NULL, options, &model));
    const double taken = unicon__now() - start;
    fit = taken < fit ? taken : fit;
    unicon_model_destroy(model);
  }
  const double highest = bench_memory("VmHWM:"); /* the products below allocate on their own */
  for (long k = 0; k < repeat; k++) {
    const double taken = time_products(ctx->threads, &z, (const float *const[2]){x, y});
    products = taken < products ? taken : products;
  }
  const double n = (double)z.n, d = (double)z.d, m = (double)z.m;
  printf("%s, %d threads, n %lld, d %lld, m %lld, r %ld, best of %ld\n", unicon_build_info(),
         ctx->threads, (long long)z.n, (long long)z.d, (long long)z.m, r, repeat);
  printf("fit angular nystrom  %8.3f s\n", fit);
  printf("its products         %8.3f s  (%.0f GFLOP/s)\n", products,
         (4 * n * d * m + 10 * n * m * m) / products / 1e9);
  printf("ratio                %8.2f    (at most 2)\n", fit / products);
  printf("library memory       %8.1f MB at most\n", (double)unicon_ctx_memory_peak(ctx) / 1e6);
  printf("RssAnon beyond input %8.1f MB at most, sampled  (at most 1500)\n",
         (most - before) * 1.048576);
  printf("VmHWM                %8.1f MB, input of %.1f MB and code included\n", highest * 1.048576,
         2 * n * d * 4 / 1e6);
  unicon_options_destroy(options);
  unicon_rows_close(rows_y);
  unicon_rows_close(rows_x);
  free(y);
  free(x);
  unicon_ctx_destroy(ctx);
  return 0;
}
