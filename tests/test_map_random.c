/* SPDX-License-Identifier: Apache-2.0 */
/* Random features: phi(x).phi(y) tends to k(x, y) as m^-1/2, for every kernel that has them, and
 * orthogonal directions are no worse than independent ones; draws depend on seed and side alone.
 *
 * The error is the root mean square over all pairs of rows and eight seeds. Its square is that of
 * one block over the number of blocks, so from m = 128 to 8192 it falls 8-fold; a mean square of
 * about a hundred independent numbers is known to 15 %, hence 6 to 10.7. A bias would show as a
 * floor: at m = 8192 the variance alone leaves less than 0.02. */
#include "features/mapfit.h"
#include "support.h"

enum { N = 24, D = 6, SEEDS = 8 };

static const char *const kernels[] = {"arccos0",  "arccos1",  "arccos2", "rbf",
                                      "matern12", "matern32", "matern52"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void fit_map(unicon_ctx *ctx, unicon__arena *arena, const unicon_rows *rows, int side,
                    const unicon_options *options, unicon__map *map) {
  const unicon__source source = {.rows = rows, .count = unicon_rows_count(rows)};
  unicon__arena_init(arena, ctx->arena.budget);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__map_params params;
  unicon__map_params_from(options, &params);
  CHECK_OK(ctx, unicon__map_fit(ctx, arena, &params, side, NULL, 0, &source, map));
  unicon__frame_close(ctx, frame);
}

static unicon_options *options_of(unicon_ctx *ctx, const char *kernel, int64_t m, int seed) {
  char count[24], number[24];
  snprintf(count, sizeof count, "%lld", (long long)m);
  snprintf(number, sizeof number, "%d", seed);
  return support_options(ctx, "kernel", kernel, "map", "random", "features", count, "seed", number,
                         "width", "0.9", NULL);
}

/* Independent normal directions in the place of those of the map. False for matern, whose
 * directions are none. */
static bool make_independent(unicon__map *map, int seed) {
  const unicon__kernel_kind kind = map->kernel.kind;
  if (unicon__kernel_is_fourier(kind) && kind != UNICON__KERNEL_RBF) return false;
  float *w = support_normals(100 + (uint64_t)seed, map->points * D);
  for (int64_t k = 0; k < map->points * D; k++)
    map->base[k] = kind == UNICON__KERNEL_RBF ? w[k] / (float)map->kernel.width : w[k];
  free(w);
  return true;
}

/* Sum over the pairs i < j of rows of the squared error, and the signed errors added to `mean`. */
static double square_error(const unicon__map *map, const unicon_rows *rows, const double *unit,
                           double *mean) {
  const unicon__source source = {.rows = rows, .count = N, .map = map};
  float *buffer = support_floats(N * unicon__map_room(map));
  const float *phi = unicon__source_tile(&source, NULL, 0, N, buffer);
  double sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i; j++) {
      double dot = 0, found = 0;
      for (int k = 0; k < D; k++) dot += unit[i * D + k] * unit[j * D + k];
      for (int64_t k = 0; k < map->out; k++)
        found += (double)phi[i * map->out + k] * (double)phi[j * map->out + k];
      const double error = found - unicon__kernel_value(&map->kernel, dot, 1, 1);
      mean[i * N + j] += error / SEEDS;
      sum += error * error;
    }
  free(buffer);
  return sum;
}

/* Root mean square error at m features over the pairs and seeds; *bias is that of the mean over the
 * seeds. 0 where there are no independent directions to compare with. */
static double error_at(unicon_ctx *ctx, const char *kernel, int64_t m, bool independent,
                       double *bias) {
  float *x = support_normals(2, N * D);
  double unit[N * D], mean[N * N] = {0}, sum = 0;
  for (int i = 0; i < N; i++) {
    double length = 0;
    for (int k = 0; k < D; k++) length += (double)x[i * D + k] * (double)x[i * D + k];
    for (int k = 0; k < D; k++) unit[i * D + k] = (double)x[i * D + k] / sqrt(length);
  }
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  for (int seed = 0; seed < SEEDS; seed++) {
    unicon_options *options = options_of(ctx, kernel, m, seed);
    unicon__arena arena;
    unicon__map map;
    fit_map(ctx, &arena, rows, 0, options, &map);
    assert_int_equal(map.out, m);
    if (!independent || make_independent(&map, seed)) sum += square_error(&map, rows, unit, mean);
    unicon__arena_release(&arena);
    unicon_options_destroy(options);
  }
  *bias = 0;
  for (int k = 0; k < N * N; k++) *bias += mean[k] * mean[k] / (N * (N - 1) / 2.0);
  *bias = sqrt(*bias);
  unicon_rows_close(rows);
  free(x);
  return sqrt(sum / SEEDS / (N * (N - 1) / 2.0));
}

static void features_converge(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int c = 0; c < KERNELS; c++) {
    double bias;
    const double coarse = error_at(ctx, kernels[c], 128, false, &bias);
    const double middle = error_at(ctx, kernels[c], 1024, false, &bias);
    const double fine = error_at(ctx, kernels[c], 8192, false, &bias);
    if (!(coarse / fine > 6 && coarse / fine < 10.7 && middle / fine > 2 && middle / fine < 4))
      print_error("%s: %g, %g, %g\n", kernels[c], coarse, middle, fine);
    assert_true(coarse / fine > 6 && coarse / fine < 10.7);
    assert_true(middle / fine > 2 && middle / fine < 4);
    assert_true(fine < 0.02);
  }
}

/* Not worse than independent ones (10 % for chance), and without bias: the mean over the seeds has
 * 1/sqrt(8) of one seed's error. */
static void orthogonal_features_are_no_worse(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  int failures = 0;
  for (int c = 0; c < KERNELS; c++) {
    static const int64_t counts[2] = {1024, 8192};
    for (int t = 0; t < 2; t++) {
      double bias, unused;
      const double plain = error_at(ctx, kernels[c], counts[t], true, &unused);
      const double orthogonal = error_at(ctx, kernels[c], counts[t], false, &bias);
      const bool good = (plain == 0 || orthogonal < 1.1 * plain) && bias < 0.6 * orthogonal;
      if (!good)
        print_error("%s, %lld features: error %g independent, %g orthogonal, of which bias %g\n",
                    kernels[c], (long long)counts[t], plain, orthogonal, bias);
      failures += !good;
    }
  }
  assert_int_equal(failures, 0);
}

/* Directions of a block are orthogonal, also in a last block that is not full, and their lengths
 * are those of normals: mean square D. */
static void blocks_are_orthogonal(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 2003 };
  float *x = support_normals(2, N * D);
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  unicon_options *options = options_of(ctx, "arccos1", M, 3);
  unicon__arena arena;
  unicon__map map;
  fit_map(ctx, &arena, rows, 0, options, &map);
  double square = 0, first = 0;
  for (int i = 0; i < M; i++) {
    for (int j = i / D * D; j < i; j++) {
      double dot = 0;
      for (int k = 0; k < D; k++) dot += (double)map.base[i * D + k] * (double)map.base[j * D + k];
      CHECK_CLOSE(dot, 0, 1e-5);
    }
    for (int k = 0; k < D; k++) square += pow((double)map.base[i * D + k], 2) / M;
    first += (double)map.base[i * D] / M;
  }
  CHECK_CLOSE(square, D, 4 * sqrt(2.0 * D / M)); /* four standard errors */
  CHECK_CLOSE(first, 0, 4 / sqrt(M));            /* directions have no preferred side */
  unicon__arena_release(&arena);
  unicon_options_destroy(options);
  unicon_rows_close(rows);
  free(x);
}

static void draws_depend_on_seed_and_side(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 50 };
  float *x = support_normals(2, N * D);
  unicon_rows *rows = support_rows(ctx, "x", x, N, D);
  for (int c = 0; c < KERNELS; c++) {
    static const struct { int seed, side; } cases[4] = {{1, 0}, {1, 0}, {2, 0}, {1, 1}};
    float kept[4][M * D];
    for (int t = 0; t < 4; t++) {
      unicon_options *options = options_of(ctx, kernels[c], M, cases[t].seed);
      unicon__arena arena;
      unicon__map map;
      fit_map(ctx, &arena, rows, cases[t].side, options, &map);
      memcpy(kept[t], map.base, sizeof kept[t]);
      unicon__arena_release(&arena);
      unicon_options_destroy(options);
    }
    assert_memory_equal(kept[0], kept[1], sizeof kept[0]);
    assert_memory_not_equal(kept[0], kept[2], sizeof kept[0]);
    assert_memory_not_equal(kept[0], kept[3], sizeof kept[0]);
  }
  unicon_rows_close(rows);
  free(x);
}

/* Kernels without random features are refused in a sentence. */
static void other_kernels_are_refused(void **state) {
  scratch *s = *state;
  static const char *const others[] = {"linear", "cosine", "expcos", "poly"};
  problem p;
  problem_make(s->ctx, 1, 30, 5, 4, 3, 0.1, &p);
  const unicon_data data = {p.rows_x, p.rows_y, NULL, NULL};
  for (size_t c = 0; c < sizeof others / sizeof *others; c++) {
    unicon_options *options =
        support_options(s->ctx, "preset", "fast", "map", "random", "kernel", others[c], NULL);
    unicon_model *model = NULL;
    scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_OPTION,
                   "map random", "nystrom");
    unicon_options_destroy(options);
  }
  unicon_options *options =
      support_options(s->ctx, "preset", "fast", "map", "linear", "kernel", "rbf", NULL);
  unicon_model *model = NULL;
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_OPTION,
                 "map linear", "kernel linear");
  unicon_options_destroy(options);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(features_converge),         SCRATCH_TEST(orthogonal_features_are_no_worse),
      SCRATCH_TEST(blocks_are_orthogonal),     SCRATCH_TEST(draws_depend_on_seed_and_side),
      SCRATCH_TEST(other_kernels_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
