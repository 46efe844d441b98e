/* SPDX-License-Identifier: Apache-2.0 */
/* Landmarks that nearly coincide. Next to theta = 0 a float32 kernel value of arccos0 is off by
 * 2e-4 and one of matern12 by 6e-4 (test_kernel.c): a landmark whose pivot is smaller than that
 * cannot be told from its neighbour, and its feature would be that error over the root of the
 * pivot.
 *
 * Groups of rows turned away from a common one by 1e-5 to 4e-4 in all directions. The exact map has
 * phi phi^T = K of the float64 reference, and so have landmarks of pivoted Cholesky where a group
 * is one point. What is left out, and what a kernel value is off, are the error each; a feature
 * whose pivot is just above it adds as much again: 4 times the error. */
#include "features/mapfit.h"
#include "support.h"

enum { GROUPS = 12, EACH = 25, N = GROUPS * EACH, D = 8 };

static float *groups(double angle) {
  float *x = support_floats(N * D);
  uint64_t draw = 5;
  for (int g = 0; g < GROUPS; g++) {
    double middle[D], length = 0;
    for (int k = 0; k < D; k++) middle[k] = support_normal(&draw);
    for (int k = 0; k < D; k++) length += middle[k] * middle[k];
    for (int i = 0; i < EACH; i++)
      for (int k = 0; k < D; k++)
        x[(g * EACH + i) * D + k] =
            (float)(middle[k] / sqrt(length) + angle * support_normal(&draw) / sqrt(D));
  }
  return x;
}

/* Largest |phi phi^T - K| of a map fitted on the rows, and largest |phi|^2. */
static void measure(unicon_ctx *ctx, const float *x, const unicon_options *options, double *worst,
                    double *longest) {
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  unicon__source source = {.rows = rows, .count = N};
  unicon__arena arena;
  unicon__map map;
  unicon__arena_init(&arena, ctx->arena.budget);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(options, &params);
  CHECK_OK(ctx, unicon__map_fit(ctx, &arena, &params, 0, NULL, 0, &source, &map));
  source.map = &map;
  float *buffer = support_floats(N * unicon__map_room(&map));
  const float *phi = unicon__source_tile(&source, NULL, 0, N, buffer);
  *worst = *longest = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double found = 0, dot = 0, xx = 0, yy = 0;
      for (int64_t k = 0; k < map.out; k++)
        found += (double)phi[i * map.out + k] * (double)phi[j * map.out + k];
      for (int k = 0; k < D; k++) {
        dot += (double)x[i * D + k] * (double)x[j * D + k];
        xx += (double)x[i * D + k] * (double)x[i * D + k];
        yy += (double)x[j * D + k] * (double)x[j * D + k];
      }
      const double k = unicon__kernel_value(&map.kernel, i == j ? 1 : dot / sqrt(xx * yy), 1, 1);
      *worst = fmax(*worst, fabs(found - k));
      if (i == j) *longest = fmax(*longest, found);
    }
  unicon__frame_close(ctx, frame);
  unicon__arena_release(&arena);
  unicon_rows_close(rows);
  free(buffer);
}

static void neighbours_are_told_apart_or_dropped(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    const char *word;
    double error;
  } kernels[2] = {{"arccos0", 2e-4}, {"matern12", 6e-4}};
  static const char *const maps[2] = {"exact", "nystrom"};
  static const double angles[] = {1e-5, 3e-5, 1e-4, 4e-4};
  for (int c = 0; c < 4; c++)
    for (size_t t = 0; t < sizeof angles / sizeof *angles; t++) {
      const double bound = 4 * kernels[c % 2].error;
      double worst, longest;
      float *x = groups(angles[t]);
      unicon_options *options =
          support_options(ctx, "kernel", kernels[c % 2].word, "map", maps[c / 2], "landmarks",
                          "200", "landmark_method", "pivot", NULL);
      measure(ctx, x, options, &worst, &longest);
      if (!(worst <= bound && longest <= 1 + bound))
        print_error("%s, %s, angle %g: phi phi^T off by %g, |phi|^2 %g\n", kernels[c % 2].word,
                    maps[c / 2], angles[t], worst, longest);
      assert_true(worst <= bound && longest <= 1 + bound);
      unicon_options_destroy(options);
      free(x);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(neighbours_are_told_apart_or_dropped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
