/* SPDX-License-Identifier: Apache-2.0 */
/* Maps on landmarks: their features have the kernel as inner product (T18), Nystrom with all rows
 * is exact (T19), centring is HKH, and rows that repeat, landmarks that are too many or given, and
 * features that are constant are no failure.
 *
 * Tolerance of phi phi^T against K: pivots below the error of a kernel value (2e-6 of the largest,
 * 2e-4 for arccos0, 6e-4 for matern12) are left out, so as much is missing by intent; a float32
 * kernel value is off by 1e-7 to 6e-4 (test_kernel.c), which the factor amplifies by at most
 * 1/sqrt(smallest eigenvalue of K), 700 at a floor of 2e-6. On these rows:
 * 2e-5 for smooth kernels, 1e-3 for arccos0 and matern12, whose smallest eigenvalues are large. */
#include "select/params.h"
#include "linalg/blas.h"
#include "support.h"

enum { N = 60, D = 6 };

/* Words that were said. */
typedef struct listener {
  const char *word;
  int heard;
} listener;

static void listen(void *user, unicon_log_level level, const char *text) {
  listener *ear = user;
  ear->heard += level <= UNICON_LOG_INFO && strstr(text, ear->word) != NULL;
}

static const struct {
  const char *name;
  double tolerance;
} kernels[] = {{"linear", 2e-5},   {"cosine", 2e-5},  {"angular", 2e-5},  {"arccos0", 2e-3},
               {"arccos1", 2e-5},  {"arccos2", 2e-5}, {"expcos", 5e-5},   {"rbf", 5e-5},
               {"matern12", 2e-3}, {"laplace", 2e-3}, {"matern32", 2e-5}, {"matern52", 2e-5},
               {"poly", 2e-5}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* A map fitted on rows, with its tables. */
typedef struct fitted {
  unicon__arena arena;
  unicon__map map;
} fitted;

static void fit_map(unicon_ctx *ctx, const unicon_rows *rows, const int64_t *landmark,
                    int64_t landmarks, const unicon_options *options, fitted *out) {
  const unicon__source source = {.rows = rows, .count = unicon_rows_count(rows)};
  unicon__arena_init(&out->arena, ctx->arena.budget);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(options, &params);
  CHECK_OK(ctx,
           unicon__map_fit(ctx, &out->arena, &params, 0, landmark, landmarks, &source, &out->map));
  unicon__frame_close(ctx, frame);
}

/* phi phi^T of the rows, to be freed. */
static double *gram(const unicon__map *map, const unicon_rows *rows) {
  const int64_t n = unicon_rows_count(rows);
  const unicon__source source = {.rows = rows, .count = n, .map = map};
  float *buffer = support_floats(n * unicon__map_room(map));
  const float *phi = unicon__source_tile(&source, NULL, 0, n, buffer);
  double *out = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < map->out; k++)
        out[i * n + j] += (double)phi[i * map->out + k] * (double)phi[j * map->out + k];
  free(buffer);
  return out;
}

/* K of rows scaled to length 1 in double (n by m, rows i of x with rows pick[j], all if NULL). */
static double *kernel_matrix(const unicon__kernel *kernel, const float *x, int64_t n, int64_t d,
                             const int64_t *pick, int64_t m) {
  double *unit = support_doubles(n * d), *k = support_doubles(n * m);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (double)x[i * d + j] * (double)x[i * d + j];
    for (int64_t j = 0; j < d; j++) unit[i * d + j] = (double)x[i * d + j] / sqrt(sum);
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m; j++) {
      const double *a = unit + i * d, *b = unit + (pick ? pick[j] : j) * d;
      double dot = 0;
      for (int64_t t = 0; t < d; t++) dot += a[t] * b[t];
      k[i * m + j] = unicon__kernel_value(kernel, a == b ? 1 : dot, 1, 1);
    }
  free(unit);
  return k;
}

/* K_nm (K_mm + ridge I)^-1 K_mn by eigenvectors, those below 1e-12 of the largest left out. */
static double *nystrom_matrix(unicon_ctx *ctx, const double *knm, const double *kmm, int64_t n,
                              int64_t m, double ridge) {
  double *q = support_doubles(m * m), *w = support_doubles(m), *half = support_doubles(n * m);
  double *out = support_doubles(n * n);
  int info;
  memcpy(q, kmm, (size_t)(m * m) * sizeof *q);
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__dsyevd(ctx, m, q, w, &info));
  unicon__frame_close(ctx, frame);
  support_product(false, true, n, m, m, knm, q, half);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < m; k++)
      half[i * m + k] *= w[k] > 1e-12 * w[m - 1] ? 1 / sqrt(w[k] + ridge) : 0;
  support_product(false, true, n, n, m, half, half, out);
  free(q);
  free(w);
  free(half);
  return out;
}

/* ---- T18 ---------------------------------------------------------------------------------- */

static void features_have_the_kernel(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int c = 0; c < KERNELS; c++)
    for (int repeated = 0; repeated < 2; repeated++) {
      float *x = support_normals(3, N * D);
      for (int k = 20 * D; repeated && k < N * D; k++) x[k] = x[k - 20 * D]; /* 20 rows, 3 times */
      unicon_rows *rows = support_rows(ctx, "x", x, N, D);
      unicon_options *options =
          support_options(ctx, "kernel", kernels[c].name, "map", "exact", "width",
                          strcmp(kernels[c].name, "poly") == 0 ? "2" : "auto", NULL);
      fitted f;
      listener ear = {"explained by the others", 0};
      unicon_ctx_set_log(ctx, listen, &ear);
      fit_map(ctx, rows, NULL, 0, options, &f);
      unicon_ctx_set_log(ctx, NULL, NULL);
      assert_true(f.map.out <= (repeated ? 20 : N));
      assert_int_equal(ear.heard, f.map.out < N);
      double *found = gram(&f.map, rows), *k = kernel_matrix(&f.map.kernel, x, N, D, NULL, N);
      const double scale = k[0];
      if (support_distance(found, k, N * N) > kernels[c].tolerance * scale)
        print_error("%s, %s\n", kernels[c].name, repeated ? "repeated rows" : "distinct rows");
      CHECK_CLOSE(support_distance(found, k, N * N), 0, kernels[c].tolerance * scale);
      free(found);
      free(k);
      unicon__arena_release(&f.arena);
      unicon_options_destroy(options);
      unicon_rows_close(rows);
      free(x);
    }
}

/* With a ridge: K (K + ridge I)^-1 K, rows that repeat included. */
static void ridge_is_one_map(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const ridges[3] = {"0.001", "0.1", "10"};
  for (int c = 0; c < KERNELS; c++)
    for (int t = 0; t < 6; t++) {
      float *x = support_normals(4, N * D);
      for (int k = 30 * D; t % 2 && k < N * D; k++) x[k] = x[k - 30 * D];
      unicon_rows *rows = support_rows(ctx, "x", x, N, D);
      unicon_options *options = support_options(ctx, "kernel", kernels[c].name, "map", "exact",
                                                "kernel_ridge", ridges[t / 2], NULL);
      fitted f;
      fit_map(ctx, rows, NULL, 0, options, &f);
      double *found = gram(&f.map, rows), *k = kernel_matrix(&f.map.kernel, x, N, D, NULL, N);
      double *wanted = nystrom_matrix(ctx, k, k, N, N, strtod(ridges[t / 2], NULL));
      if (support_distance(found, wanted, N * N) > kernels[c].tolerance * k[0])
        print_error("%s, ridge %s, case %d\n", kernels[c].name, ridges[t / 2], t % 2);
      CHECK_CLOSE(support_distance(found, wanted, N * N), 0, kernels[c].tolerance * k[0]);
      free(found);
      free(wanted);
      free(k);
      unicon__arena_release(&f.arena);
      unicon_options_destroy(options);
      unicon_rows_close(rows);
      free(x);
    }
}

/* ---- landmarks ---------------------------------------------------------------------------- */

/* T19: as many landmarks as rows, or more, are the exact map, to the last bit. */
static void all_rows_are_exact(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const counts[3] = {"60", "61", "100000"};
  static const char *const methods[2] = {"uniform", "pivot"};
  float *x = support_normals(5, N * D);
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  for (int c = 0; c < KERNELS; c++) {
    unicon_options *exact = support_options(ctx, "kernel", kernels[c].name, "map", "exact", NULL);
    fitted f;
    fit_map(ctx, rows, NULL, 0, exact, &f);
    for (int t = 0; t < 6; t++) {
      unicon_options *options =
          support_options(ctx, "kernel", kernels[c].name, "map", "nystrom", "landmarks",
                          counts[t / 2], "landmark_method", methods[t % 2], NULL);
      fitted g;
      fit_map(ctx, rows, NULL, 0, options, &g);
      assert_int_equal(f.map.points, g.map.points);
      assert_int_equal(f.map.out, g.map.out);
      const int64_t points = f.map.points;
      assert_memory_equal(f.map.base, g.map.base, (size_t)(points * D) * sizeof(float));
      assert_memory_equal(f.map.factor, g.map.factor, (size_t)(points * f.map.out) * sizeof(float));
      unicon__arena_release(&g.arena);
      unicon_options_destroy(options);
    }
    unicon__arena_release(&f.arena);
    unicon_options_destroy(exact);
  }
  unicon_rows_close(rows);
  free(x);
}

/* Fewer: phi phi^T = K_nm K_mm^-1 K_mn of the landmarks given, whatever their order; one given
 * twice is dropped with a sentence. */
static void given_landmarks_are_used(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 9 };
  static const int64_t row[M + 1] = {50, 3, 7, 21, 0, 59, 33, 34, 12, 7};
  float *x = support_normals(6, N * D);
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  for (int c = 0; c < KERNELS; c++) {
    unicon_options *options =
        support_options(ctx, "kernel", kernels[c].name, "map", "nystrom", NULL);
    fitted f;
    listener ear = {"1 of 10 landmarks", 0};
    unicon_ctx_set_log(ctx, listen, &ear);
    fit_map(ctx, rows, row, M + 1, options, &f);
    unicon_ctx_set_log(ctx, NULL, NULL);
    const bool narrow = c < 2; /* linear: no more landmarks than dimensions */
    assert_int_equal(f.map.points, narrow ? D : M);
    assert_int_equal(ear.heard, !narrow);
    double *knm = kernel_matrix(&f.map.kernel, x, N, D, row, M), *kmm = support_doubles(M * M);
    for (int i = 0; i < M; i++) memcpy(kmm + i * M, knm + row[i] * M, M * sizeof *kmm);
    double *wanted = nystrom_matrix(ctx, knm, kmm, N, M, 0), *found = gram(&f.map, rows);
    CHECK_CLOSE(support_distance(found, wanted, N * N), 0, kernels[c].tolerance * kmm[0]);
    free(found);
    free(wanted);
    free(kmm);
    free(knm);
    unicon__arena_release(&f.arena);
    unicon_options_destroy(options);
  }
  unicon_rows_close(rows);
  free(x);
}

/* Uniform landmarks are different rows of the data, other rows for another seed or side. */
static void uniform_landmarks_are_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const seeds[3] = {"1", "1", "2"};
  float *x = support_normals(7, N * D);
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  bool used[3][N] = {{false}};
  for (int t = 0; t < 3; t++) {
    unicon_options *options = support_options(ctx, "kernel", "angular", "map", "nystrom",
                                              "landmarks", "20", "seed", seeds[t], NULL);
    fitted f;
    fit_map(ctx, rows, NULL, 0, options, &f);
    assert_int_equal(f.map.points, 20);
    for (int64_t p = 0; p < 20; p++) {
      int at = -1;
      for (int i = 0; i < N; i++) {
        double length = 0, gap = 0;
        for (int k = 0; k < D; k++) length += (double)x[i * D + k] * (double)x[i * D + k];
        for (int k = 0; k < D; k++)
          gap += fabs((double)x[i * D + k] / sqrt(length) - (double)f.map.base[p * D + k]);
        if (gap < 1e-5) at = i;
      }
      assert_true(at >= 0 && !used[t][at]);
      used[t][at] = true;
    }
    unicon__arena_release(&f.arena);
    unicon_options_destroy(options);
  }
  assert_memory_equal(used[0], used[1], sizeof used[0]);
  assert_memory_not_equal(used[0], used[2], sizeof used[0]);
  unicon_rows_close(rows);
  free(x);
}

/* ---- centring ----------------------------------------------------------------------------- */

/* Centred features: their Gram matrix is H K H, their mean 0, and mu the largest eigenvalue of
 * H K H / n. */
static void centring_is_hkh(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *x = support_normals(8, N * D);
  for (int k = 0; k < N * D; k++) x[k] += 0.5f; /* something to subtract */
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  for (int c = 0; c < KERNELS; c++) {
    unicon_options *options = support_options(ctx, "kernel", kernels[c].name, "map", "exact", NULL);
    static const int64_t whole[2] = {INT64_MAX, INT64_MAX};
    unicon_pairs *pairs = NULL;
    CHECK_OK(ctx, unicon_pairs_identity(ctx, N, N, &pairs));
    const unicon__batch data = {
        .x = {.rows = rows, .count = N}, .y = {.rows = rows, .count = N}, .pairs = pairs};
    unicon__params params;
    unicon__prepared prepared;
    unicon__moments moments;
    unicon__block *frame = unicon__frame_open(ctx);
    unicon__params_from(options, (const int64_t[2]){N, N}, &params);
    unicon__prepare_plan plan = unicon__params_prepare(&params, &data);
    plan.away = false;
    CHECK_OK(ctx, unicon__prepare(ctx, &plan, &prepared));
    CHECK_OK(ctx,
             unicon__stats_finish(ctx, &prepared.stats, NULL, params.centring, whole, &moments));
    CHECK_OK(ctx, unicon__prepared_centre(ctx, &prepared, &moments));
    const unicon__side side = prepared.side[0];
    double *found = gram(&side.map, rows), *k = kernel_matrix(&side.map.kernel, x, N, D, NULL, N);
    double row_mean[N] = {0}, all = 0, values[N];
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) row_mean[i] += k[i * N + j] / N;
    for (int i = 0; i < N; i++) all += row_mean[i] / N;
    const double scale = k[0];
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) k[i * N + j] += all - row_mean[i] - row_mean[j];
    CHECK_CLOSE(support_distance(found, k, N * N), 0, kernels[c].tolerance * scale);
    const float *phi = side.source.cache; /* the features that the fit itself goes on with */
    assert_non_null(phi);
    for (int64_t p = 0; p < side.map.out; p++) {
      double mean = 0;
      for (int i = 0; i < N; i++) mean += (double)phi[i * side.map.out + p] / N;
      CHECK_CLOSE(mean, 0, 1e-6);
    }
    int info;
    CHECK_OK(ctx, unicon__dsyevd(ctx, N, k, values, &info));
    CHECK_CLOSE(moments.mu[0], values[N - 1] / N, kernels[c].tolerance * scale);
    free(found);
    free(k);
    unicon__frame_close(ctx, frame);
    unicon__prepared_close(&prepared);
    unicon_pairs_destroy(pairs);
    unicon_options_destroy(options);
  }
  unicon_rows_close(rows);
  free(x);
}

/* ---- width -------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* auto is the median distance of the unit rows, from a sample of pairs: between the 40th and 60th
 * percentile (30th and 70th of few rows), for any number of rows above 30 (37 is the stride of the
 * sample), also where rows of a kind follow each other at a fixed period. Fewer rows: between the
 * smallest and the largest. */
static void check_width(unicon_ctx *ctx, int64_t n, int64_t period) {
  enum { WIDE = 5 };
  float *x = support_normals((uint64_t)n, n * WIDE);
  uint64_t state = 5;
  for (int64_t i = 0; i < n && n >= 100; i++) { /* clusters of different sizes and places */
    const double kind = period ? (double)(i % period) / (double)period : support_uniform(&state);
    x[i * WIDE] += kind < 0.5 ? 4 : kind < 0.75 ? -2 : 0;
    x[i * WIDE + 1] += kind < 0.75 ? 0 : 3;
  }
  unicon_rows *rows = support_rows(ctx, "x", x, n, WIDE);
  unicon_options *options = support_options(ctx, "kernel", "rbf", NULL);
  const unicon__source source = {.rows = rows, .count = n};
  unicon__kernel kernel;
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(options, &params);
  CHECK_OK(ctx, unicon__kernel_fit(ctx, &params, 0, &source, &kernel));
  unicon__frame_close(ctx, frame);
  const unicon__kernel linear = {.degree = 1};
  double *dot = kernel_matrix(&linear, x, n, WIDE, NULL, n), *distance = support_doubles(n * n);
  int64_t count = 0;
  const int64_t margin = n < 30 ? 50 : n < 100 ? 20 : 10;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) distance[count++] = sqrt(2 - 2 * dot[i * n + j]);
  qsort(distance, (size_t)count, sizeof *distance, compare_doubles);
  const double low = 0.99999 * distance[count * (50 - margin) / 100];
  const double high = 1.00001 * distance[(count - 1) * (50 + margin) / 100];
  free(distance);
  free(dot);
  unicon_options_destroy(options);
  unicon_rows_close(rows);
  free(x);
  if (!(kernel.width >= low && kernel.width <= high))
    print_error("%lld rows, period %lld: width %g, wanted %g to %g\n", (long long)n,
                (long long)period, kernel.width, low, high);
  assert_true(kernel.width >= low && kernel.width <= high);
}

static void width_is_the_median(void **state) {
  static const int64_t counts[] = {2, 3, 11, 37, 74, 185, 400, 1000, 1300};
  for (size_t t = 0; t < sizeof counts / sizeof *counts; t++)
    check_width(((scratch *)*state)->ctx, counts[t], 0);
}

static void width_of_periodic_rows_is_the_median(void **state) {
  static const int64_t periods[] = {4, 5, 37, 100};
  for (size_t t = 0; t < sizeof periods / sizeof *periods; t++)
    check_width(((scratch *)*state)->ctx, 1000, periods[t]);
}

static void width_is_taken_as_given(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float x[8] = {1, 0, 0, 1, -1, 0, 1, 1}, same[6] = {1, 2, 2, 4, 3, 6};
  unicon_rows *rows = support_rows(ctx, "x", x, 4, 2), *alike = support_rows(ctx, "x", same, 3, 2);
  unicon_options *given = support_options(ctx, "kernel", "matern32", "width", "0.37", NULL);
  unicon_options *automatic = support_options(ctx, "kernel", "rbf", NULL);
  const unicon__source source = {.rows = rows, .count = 4}, dull = {.rows = alike, .count = 3};
  unicon__kernel kernel;
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(given, &params);
  CHECK_OK(ctx, unicon__kernel_fit(ctx, &params, 1, &source, &kernel));
  assert_true(kernel.width == 0.37 && kernel.kind == UNICON__KERNEL_MATERN32);
  unicon__map_params_from(automatic, &params);
  CHECK_OK(ctx, unicon__kernel_fit(ctx, &params, 1, &dull, &kernel)); /* no distance at all */
  assert_true(kernel.width > 0 && isfinite(kernel.width));
  unicon__frame_close(ctx, frame);
  unicon_options_destroy(given);
  unicon_options_destroy(automatic);
  unicon_rows_close(rows);
  unicon_rows_close(alike);
}

/* The width of poly is its degree: whole, from 1 to 16. */
static void degrees_are_whole(void **state) {
  scratch *s = *state;
  static const char *const bad[] = {"0.5", "2.5", "17"};
  problem p;
  problem_make(s->ctx, 6, 30, 5, 4, 3, 0.5, &p);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    unicon_model *model = NULL;
    unicon_options *options =
        support_options(s->ctx, "preset", "fast", "kernel", "poly", "width", bad[k], NULL);
    scratch_failed(
        s, unicon_fit(s->ctx, &UNICON_DATA(.x = p.rows_x, .y = p.rows_y), NULL, options, &model),
        UNICON_ERR_OPTION, "degree", "from 1 to 16");
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(degrees_are_whole),
      SCRATCH_TEST(features_have_the_kernel),
      SCRATCH_TEST(ridge_is_one_map),
      SCRATCH_TEST(all_rows_are_exact),
      SCRATCH_TEST(given_landmarks_are_used),
      SCRATCH_TEST(uniform_landmarks_are_rows),
      SCRATCH_TEST(centring_is_hkh),
      SCRATCH_TEST(width_is_the_median),
      SCRATCH_TEST(width_of_periodic_rows_is_the_median),
      SCRATCH_TEST(width_is_taken_as_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
