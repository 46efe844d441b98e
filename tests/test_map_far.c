/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of distances on rows far from the origin (normalize off): |x|^2 + |y|^2 - 2 x.y must not
 * lose the distance, so a common shift of all rows changes nothing.
 *
 * Rows lie on a grid of 2^-6, of spread (root of the mean squared distance from their mean) about
 * 5; shifts are whole numbers up to 2^16, so every shifted row is exact in float32 and whatever
 * changes is the library's. Real rows at 1e4 times their spread have lost all but three digits of
 * it before the library sees them.
 *
 * Tolerances: a kernel value around the mean is off by 1e-6, by 6e-4 for matern12 where rows
 * coincide (test_kernel.c); phi phi^T of well-conditioned landmarks, as these are, amplifies that
 * by less than 10: 1e-5, and 2e-3 for matern12. */
#include "features/mapfit.h"
#include "support.h"

enum { N = 80, D = 24, M = 30 };

static const double shifts[] = {0, 64, 1000, 4096, 50000, 65536};
enum { SHIFTS = sizeof shifts / sizeof *shifts };

static const struct {
  const char *name;
  double tolerance;
} kernels[] = {{"rbf", 1e-5}, {"matern12", 2e-3}, {"matern32", 1e-5}, {"matern52", 1e-5}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Normal numbers on the grid, all of them shifted; every other column the other way. */
static float *grid_rows(uint64_t seed, int64_t n, int64_t d, double shift) {
  float *x = support_normals(seed, n * d);
  for (int64_t k = 0; k < n * d; k++)
    x[k] = (float)(round((double)x[k] * 64) / 64 + (k % d % 2 ? -shift : shift));
  return x;
}

/* phi phi^T of the rows by a map fitted on them, to be freed. */
static double *fitted_gram(unicon_ctx *ctx, const unicon_rows *rows, const unicon_options *options,
                           double *width) {
  const int64_t n = unicon_rows_count(rows);
  unicon__source source = {.rows = rows, .count = n};
  unicon__arena arena;
  unicon__map map;
  unicon__arena_init(&arena, ctx->arena.budget);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(options, &params);
  CHECK_OK(ctx, unicon__map_fit(ctx, &arena, &params, 0, NULL, 0, &source, &map));
  source.map = &map;
  *width = map.kernel.width;
  float *buffer = support_floats(n * unicon__map_room(&map));
  const float *phi = unicon__source_tile(&source, NULL, 0, n, buffer);
  double *out = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < map.out; k++)
        out[i * n + j] += (double)phi[i * map.out + k] * (double)phi[j * map.out + k];
  free(buffer);
  unicon__frame_close(ctx, frame);
  unicon__arena_release(&arena);
  return out;
}

/* Exact and Nystrom maps, width auto: the same features at every shift, and the same width. */
static void shifts_change_no_feature(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const maps[2] = {"exact", "nystrom"};
  for (int c = 0; c < KERNELS; c++)
    for (int m = 0; m < 2; m++) {
      unicon_options *options = support_options(ctx, "kernel", kernels[c].name, "map", maps[m],
                                                "landmarks", "30", "normalize", "off", NULL);
      double *first = NULL, first_width = 0;
      for (int t = 0; t < SHIFTS; t++) {
        float *x = grid_rows(1, N, D, shifts[t]);
        unicon_rows *rows = support_rows(ctx, "x", x, N, D);
        double width, *gram = fitted_gram(ctx, rows, options, &width);
        if (t == 0) {
          first = gram;
          first_width = width;
        } else {
          const double gap = support_distance(gram, first, N * N);
          if (!(gap <= kernels[c].tolerance))
            print_error("%s, %s, shift %g: %g\n", kernels[c].name, maps[m], shifts[t], gap);
          assert_true(gap <= kernels[c].tolerance);
          assert_true(width == first_width); /* differences of rows are exact */
          free(gram);
        }
        unicon_rows_close(rows);
        free(x);
      }
      free(first);
      unicon_options_destroy(options);
    }
}

/* What pivoted Cholesky says is left of the trace, against float64 distances of the rows. */
static void pivots_see_distances(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int t = 0; t < SHIFTS; t++) {
    const unicon__kernel kernel = {UNICON__KERNEL_RBF, 4, 1};
    float *x = grid_rows(2, N, D, shifts[t]);
    unicon_rows *rows = support_rows(ctx, "x", x, N, D);
    const unicon__source source = {.rows = rows, .count = N};
    int64_t row[M], count = 0;
    double left = 0, rest[N], f[N][M], sum = 0;
    unicon__block *frame = unicon__frame_open(ctx);
    CHECK_OK(ctx, unicon__pivot_rows(ctx, &source, &kernel, false, M, 3, 11, row, &count, &left));
    unicon__frame_close(ctx, frame);
    assert_int_equal(count, M);
    for (int i = 0; i < N; i++) rest[i] = 1;
    for (int p = 0; p < M; p++) {
      const double root = sqrt(rest[row[p]]);
      for (int i = 0; i < N; i++) {
        double gap = 0;
        for (int k = 0; k < D; k++) gap += pow((double)x[i * D + k] - (double)x[row[p] * D + k], 2);
        f[i][p] = exp(-gap / 32);
        for (int k = 0; k < p; k++) f[i][p] -= f[i][k] * f[row[p]][k];
        f[i][p] /= root;
      }
      for (int i = 0; i < N; i++) rest[i] -= f[i][p] * f[i][p];
    }
    for (int i = 0; i < N; i++) sum += rest[i] / N;
    CHECK_CLOSE(left, sum, 1e-5);
    unicon_rows_close(rows);
    free(x);
  }
}

/* From rows to cosines, fitted and read back: the closed form with ridge .01 multiplies what the
 * features are off by about 10 (docs/numerics.md), so 1e-3. */
static void shifts_change_no_cosine(void **state) {
  scratch *s = *state;
  double *first = NULL;
  unicon_options *options = support_options(s->ctx, "kernel", "rbf", "map", "nystrom", "landmarks",
                                            "40", "normalize", "off", "rank", "5", NULL);
  for (int t = 0; t < SHIFTS; t++) {
    float *x = grid_rows(3, N, D, shifts[t]), *y = support_floats(N * D);
    for (int k = 0; k < N * D; k++) /* y is x turned by a column, with a shift of its own */
      y[k] = (float)((double)x[k / D * D + (k + 1) % D] + 3 * (k % 2 ? -shifts[t] : shifts[t]));
    unicon_rows *rows_x = support_rows(s->ctx, "x", x, N, D);
    unicon_rows *rows_y = support_rows(s->ctx, "y", y, N, D);
    unicon_model *model = support_fit(s->ctx, rows_x, rows_y, NULL, options), *again = NULL;
    double *cosines = support_cosines(s->ctx, model, rows_x, rows_y);
    if (t == 0) {
      first = cosines;
    } else {
      CHECK_CLOSE(support_distance(cosines, first, N * N), 0, 1e-3);
      free(cosines);
    }
    float *made = support_floats(N * 5), *read = support_floats(N * 5);
    const char *path = scratch_path(s, "model.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &again));
    CHECK_OK(s->ctx,
             unicon_embed(s->ctx, &(unicon_view){.rows = rows_x, .model = model, .side = UNICON_X},
                          0, N, 1, made));
    CHECK_OK(s->ctx,
             unicon_embed(s->ctx, &(unicon_view){.rows = rows_x, .model = again, .side = UNICON_X},
                          0, N, 1, read));
    assert_memory_equal(made, read, N * 5 * sizeof *made);
    free(made);
    free(read);
    unicon_model_destroy(model);
    unicon_model_destroy(again);
    unicon_rows_close(rows_x);
    unicon_rows_close(rows_y);
    free(x);
    free(y);
  }
  free(first);
  unicon_options_destroy(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(shifts_change_no_feature),
      SCRATCH_TEST(pivots_see_distances),
      SCRATCH_TEST(shifts_change_no_cosine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
