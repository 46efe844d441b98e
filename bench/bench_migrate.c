/* SPDX-License-Identifier: Apache-2.0 */
/* Migration: how long one query takes through a map, beside one product of BLAS, and rewriting an
 * index by a kernel map, beside the products it is made of. */
#include "bench.h"
#include "unicon/migrate.h"

/* Items by two models: normals times random matrices, bent. */
static unicon_rows *items(unicon_ctx *ctx, const char *name, int64_t n, int64_t d,
                          uint32_t stream) {
  enum { LATENT = 48 };
  float *z = bench_normals(n, LATENT, 90), *mix = bench_normals(LATENT, d, stream);
  float *x = malloc((size_t)(n * d) * sizeof *x);
  unicon_rows *rows = NULL;
  if (!x) exit(1);
  bench_sgemm(false, false, n, d, LATENT, 0.1f, z, LATENT, mix, d, 0, x, d);
  for (int64_t k = 0; k < n * d; k++) x[k] = x[k] / (1 + (x[k] < 0 ? -x[k] : x[k])) + 0.2f;
  free(z);
  free(mix);
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, name, x, UNICON_F32, n, d, d * 4, 4, &rows));
  return rows; /* the numbers stay until the program ends */
}

static unicon_model *fit(unicon_ctx *ctx, int64_t n, int64_t d, const char *anchors) {
  unicon_rows *o = items(ctx, "old", n, d, 91), *w = items(ctx, "new", n, d, 92);
  unicon_options *options = NULL;
  unicon_migration *made = NULL;
  unicon_model *model = NULL;
  BENCH_TRY(ctx, unicon_options_create(ctx, &options));
  BENCH_TRY(ctx, unicon_options_set(ctx, options, "into", "new"));
  BENCH_TRY(ctx, unicon_options_set(ctx, options, "anchors", anchors));
  const double start = unicon__now();
  BENCH_TRY(ctx, unicon_migrate(ctx, &UNICON_MIGRATION_DATA(.old_rows = o, .new_rows = w), options,
                                &made));
  printf("migrate, %lld pairs of %lld numbers: %.1f s, %s\n", (long long)n, (long long)d,
         unicon__now() - start, unicon_model_meta(unicon_migration_model(made), "method"));
  BENCH_TRY(ctx, unicon_model_save(ctx, unicon_migration_model(made), "bench.safetensors"));
  BENCH_TRY(ctx, unicon_model_load(ctx, "bench.safetensors", &model));
  remove("bench.safetensors");
  unicon_migration_destroy(made);
  unicon_options_destroy(options);
  unicon_rows_close(o);
  unicon_rows_close(w);
  return model;
}

/* A map of that shape by a plain fit: linear, or by so many landmarks. */
static unicon_model *shaped(unicon_ctx *ctx, int64_t d, int64_t rank, int64_t landmarks) {
  const int64_t n = landmarks > 0 ? landmarks : 2 * d + 64;
  float *x = bench_normals(n, d, 93), *y = bench_normals(n, d, 94);
  unicon_rows *rows_x = NULL, *rows_y = NULL;
  unicon_options *options = NULL;
  unicon_model *model = NULL;
  char text[32];
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "x", x, UNICON_F32, n, d, d * 4, 4, &rows_x));
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "y", y, UNICON_F32, n, d, d * 4, 4, &rows_y));
  BENCH_TRY(ctx, unicon_options_create(ctx, &options));
  snprintf(text, sizeof text, "%lld", (long long)rank);
  const char *const given[][2] = {{"preset", "fast"},
                                  {"rank", text},
                                  {"metric", "none"},
                                  {"balance", "off"},
                                  {"exponent", "1"}};
  for (size_t k = 0; k < sizeof given / sizeof *given; k++)
    BENCH_TRY(ctx, unicon_options_set(ctx, options, given[k][0], given[k][1]));
  if (landmarks > 0) {
    BENCH_TRY(ctx, unicon_options_set(ctx, options, "kernel_x", "angular"));
    BENCH_TRY(ctx, unicon_options_set(ctx, options, "map", "exact"));
  }
  BENCH_TRY(ctx, unicon_fit(ctx, &UNICON_DATA(.x = rows_x, .y = rows_y), NULL, options, &model));
  unicon_options_destroy(options);
  unicon_rows_close(rows_x);
  unicon_rows_close(rows_y);
  free(x);
  free(y);
  return model;
}

/* Best mean of several rounds, in microseconds. */
static void one_query(unicon_ctx *ctx, const unicon_model *model, const char *name) {
  const int64_t d = unicon_model_width(model, UNICON_X), r = unicon_model_rank(model);
  float *row = bench_normals(1, d, 95), *weight = bench_normals(d, r, 96);
  float *out = malloc((size_t)r * sizeof *out);
  float *room = malloc((size_t)unicon_embed_one_room(model, UNICON_X) * sizeof *room);
  double best = 1e9, product = 1e9;
  if (!out || !room) exit(1);
  openblas_set_num_threads(1);
  for (int round = 0; round < 20; round++) {
    double start = unicon__now();
    for (int k = 0; k < 200; k++) BENCH_TRY(ctx, unicon_embed_one(model, UNICON_X, row, room, out));
    const double mean = (unicon__now() - start) / 200;
    best = mean < best ? mean : best;
    start = unicon__now();
    for (int k = 0; k < 200; k++)
      cblas_sgemv(CblasRowMajor, CblasTrans, (int)d, (int)r, 1, weight, (int)r, row, 1, 0, out, 1);
    const double plain = (unicon__now() - start) / 200;
    product = plain < product ? plain : product;
  }
  printf("one query, %s, %lld to %lld: %.1f us; the product alone by BLAS on one thread: %.1f us\n",
         name, (long long)d, (long long)r, 1e6 * best, 1e6 * product);
  free(room);
  free(out);
  free(weight);
  free(row);
}

/* Rows rewritten, beside the two products that a kernel map is made of. */
static void rewrite(unicon_ctx *ctx, const unicon_model *model, int64_t n, int64_t points) {
  const int64_t d = unicon_model_width(model, UNICON_X), e = unicon_model_rank(model);
  enum { TILE = 1024 };
  unicon_rows *index = items(ctx, "index", n, d, 91);
  float *a = bench_normals(TILE, d, 97), *b = bench_normals(points, d, 98);
  float *w = bench_normals(points, e, 99), *k = malloc((size_t)(TILE * points) * sizeof *k);
  float *z = malloc((size_t)(TILE * e) * sizeof *z);
  if (!k || !z) exit(1);
  double start = unicon__now();
  BENCH_TRY(ctx, unicon_rewrite(ctx, &UNICON_VIEW(.rows = index, .model = model, .side = UNICON_X),
                                0, n, UNICON_FORM_UNIT, UNICON_F32, "bench.npy", NULL, NULL));
  const double took = unicon__now() - start;
  openblas_set_num_threads(openblas_get_num_procs());
  start = unicon__now();
  for (int64_t at = 0; at < n; at += TILE) {
    bench_sgemm(false, true, TILE, points, d, 1, a, d, b, d, 0, k, points);
    bench_sgemm(false, false, TILE, e, points, 1, k, points, w, e, 0, z, e);
  }
  const double products = unicon__now() - start;
  const double flops = 2.0 * (double)points * (double)(d + e);
  printf(
      "rewrite, %lld rows by %lld landmarks, %lld to %lld: %.2f s, %.0f GFLOP/s; its products "
      "by BLAS %.2f s, %.0f %% of the time; 10 million rows: %.1f min\n",
      (long long)n, (long long)points, (long long)d, (long long)e, took,
      flops * (double)n / took * 1e-9, products, 100 * products / took,
      took / (double)n * 1e7 / 60);
  remove("bench.npy");
  remove("bench.npy.json");
  free(z);
  free(k);
  free(w);
  free(b);
  free(a);
  unicon_rows_close(index);
}

int main(int argc, char **argv) {
  const int64_t rows = bench_option(argc, argv, "--rows", 50000);
  const int64_t pairs = bench_option(argc, argv, "--pairs", 2000);
  const int64_t landmarks = bench_option(argc, argv, "--landmarks", 4000);
  unicon_ctx *ctx = NULL;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  static const int64_t widths[] = {384, 768, 1024};
  for (int k = 0; k < 3; k++) {
    unicon_model *model = shaped(ctx, widths[k], widths[k] - widths[k] % 16 - 16, 0);
    one_query(ctx, model, "linear");
    unicon_model_destroy(model);
  }
  unicon_model *model = shaped(ctx, 384, 368, landmarks);
  one_query(ctx, model, "kernel");
  rewrite(ctx, model, rows, landmarks);
  unicon_model_destroy(model);
  unicon_model_destroy(fit(ctx, pairs, 384, "5000"));
  unicon_ctx_destroy(ctx);
  return 0;
}
