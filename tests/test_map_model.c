/* SPDX-License-Identifier: Apache-2.0 */
/* Models with a feature map: a linear kernel is the linear path (T17), the spectrum is that of
 * K_x^1/2 S K_y^1/2 (paper 3.3), landmarks come from a file, and features that are constant or rows
 * that repeat are no failure.
 *
 * Cosines agree to 1e-4: float32 features, their roundings amplified at most a hundredfold by a
 * ridge of .01 (test_fit.c). */
#include "features/kernel.h"
#include "linalg/blas.h"
#include "support.h"

enum { N = 90, TEST = 40, DX = 12, DY = 9, LATENT = 5 };

/* ---- T17 ---------------------------------------------------------------------------------- */

/* The exact map of the linear kernel (folded back to a linear map) and of the cosine kernel (not
 * folded: it keeps its landmarks) against the linear path, on new rows; more rows than dimensions,
 * and more dimensions than rows, where auto is exact. */
static void linear_kernel_is_the_linear_path(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const metrics[2] = {"none", "whiten"}, *const center[2] = {"on", "off"};
  static const int64_t sizes[2][3] = {{N, DX, DY}, {40, 130, 70}};
  for (int t = 0; t < 8; t++) {
    const int64_t *size = sizes[t / 4];
    problem p, q;
    problem_make(ctx, 3, size[0], size[1], size[2], LATENT, 0.4, &p);
    problem_make(ctx, 3, size[0] + TEST, size[1], size[2], LATENT, 0.4, &q);
    unicon_rows *x = support_rows(ctx, "x", q.x + size[0] * size[1], TEST, size[1]);
    unicon_rows *y = support_rows(ctx, "y", q.y + size[0] * size[2], TEST, size[2]);
    double *first = NULL;
    static const char *const ways[4][2] = {
        {"linear", "linear"}, {"linear", "exact"}, {"linear", "auto"}, {"cosine", "exact"}};
    for (int way = 0; way < 4; way++) {
      unicon_options *options = support_options(
          ctx, "preset", "fast", "metric", metrics[t % 2], "center", center[t / 2 % 2], "kernel",
          ways[way][0], "map", ways[way][1], "rank", "4", "iterations", "0", NULL);
      unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
      assert_string_equal(unicon_model_meta(model, "x.map"), way < 3 ? "linear" : "exact");
      double *cosines = support_cosines(ctx, model, x, y);
      if (!first) first = cosines;
      if (support_distance(first, cosines, TEST * TEST) > 1e-4)
        print_error("case %d, kernel %s, map %s\n", t, ways[way][0], ways[way][1]);
      CHECK_CLOSE(support_distance(first, cosines, TEST * TEST), 0, 1e-4);
      if (cosines != first) free(cosines);
      unicon_model_destroy(model);
      unicon_options_destroy(options);
    }
    free(first);
    unicon_rows_close(x);
    unicon_rows_close(y);
    problem_free(&p);
    problem_free(&q);
  }
}

/* ---- the spectrum ------------------------------------------------------------------------- */

/* K^1/2 of unit rows in float64, H K H where centred; n by n, to be freed. */
static double *kernel_root(unicon_ctx *ctx, const unicon__kernel *kernel, const float *x, int64_t d,
                           bool centred) {
  double *unit = support_doubles(N * d), *k = support_doubles(N * N),
         *half = support_doubles(N * N);
  double mean[N] = {0}, all = 0, w[N];
  int info;
  for (int64_t i = 0; i < N; i++) {
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (double)x[i * d + j] * (double)x[i * d + j];
    for (int64_t j = 0; j < d; j++) unit[i * d + j] = (double)x[i * d + j] / sqrt(sum);
  }
  support_product(false, true, N, N, d, unit, unit, half);
  for (int64_t i = 0; i < N; i++)
    for (int64_t j = 0; j < N; j++) {
      k[i * N + j] = unicon__kernel_value(kernel, i == j ? 1 : half[i * N + j], 1, 1);
      mean[i] += k[i * N + j] / N;
    }
  for (int64_t i = 0; i < N; i++) all += mean[i] / N;
  for (int64_t i = 0; centred && i < N; i++)
    for (int64_t j = 0; j < N; j++) k[i * N + j] += all - mean[i] - mean[j];
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__dsyevd(ctx, N, k, w, &info));
  unicon__frame_close(ctx, frame);
  for (int64_t t = 0; t < N; t++)
    for (int64_t j = 0; j < N; j++) half[t * N + j] = k[t * N + j] * sqrt(w[t] > 0 ? w[t] : 0);
  double *root = support_doubles(N * N);
  support_product(true, false, N, N, N, k, half, root);
  free(unit);
  free(k);
  free(half);
  return root;
}

/* Singular values of M = K_x^1/2 S(0) K_y^1/2, S(0) = (I - 11^T/n)/n, against those of C = Phi_x^T
 * S(0) Phi_y, which the model keeps: kernels of both sides the same and not, centred and not. */
static void spectrum_is_that_of_m(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    const char *x, *y, *width;
    unicon__kernel kernel_x, kernel_y;
  } cases[] = {
      {"linear", "linear", "0.8", {UNICON__KERNEL_LINEAR, 1, 1}, {UNICON__KERNEL_LINEAR, 1, 1}},
      {"angular", "same", "0.8", {UNICON__KERNEL_ARCCOS1, 1, 1}, {UNICON__KERNEL_ARCCOS1, 1, 1}},
      {"rbf", "arccos0", "0.8", {UNICON__KERNEL_RBF, 0.8, 1}, {UNICON__KERNEL_ARCCOS0, 1, 1}},
      {"rbf",
       "matern32",
       "0.7,0.8",
       {UNICON__KERNEL_RBF, 0.7, 1},
       {UNICON__KERNEL_MATERN32, 0.8, 1}},
      {"poly", "expcos", "auto,0.8", {UNICON__KERNEL_POLY, 1, 3}, {UNICON__KERNEL_EXPCOS, 0.8, 1}},
      {"rbf", "poly", "0.8,4", {UNICON__KERNEL_RBF, 0.8, 1}, {UNICON__KERNEL_POLY, 1, 4}}};
  problem p;
  problem_make(ctx, 4, N, DX, DY, LATENT, 0.4, &p);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int centred = 0; centred < 2; centred++) {
      unicon_options *options = support_options(
          ctx, "preset", "fast", "kernel", c == 1 ? "angular" : "linear", "kernel_x", cases[c].x,
          "kernel_y", cases[c].y, "width", cases[c].width, "metric", "none", "center",
          centred ? "on" : "off", "map", "exact", "rank", "8", NULL);
      unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
      double *kx = kernel_root(ctx, &cases[c].kernel_x, p.x, DX, centred);
      double *ky = kernel_root(ctx, &cases[c].kernel_y, p.y, DY, centred);
      double *m = support_doubles(N * N), *u = support_doubles(N * N), *v = support_doubles(N * N);
      double s[N];
      int info;
      for (int j = 0; j < N; j++) { /* (I - 11^T/n)/n K_y^1/2 */
        double mean = 0;
        for (int i = 0; i < N; i++) mean += ky[i * N + j] / N;
        for (int i = 0; i < N; i++) ky[i * N + j] = (ky[i * N + j] - mean) / N;
      }
      support_product(false, false, N, N, N, kx, ky, m);
      unicon__block *frame = unicon__frame_open(ctx);
      CHECK_OK(ctx, unicon__dgesvd(ctx, N, N, m, s, u, v, &info));
      unicon__frame_close(ctx, frame);
      const float *found = unicon_model_spectrum(model);
      for (int k = 0; k < 8; k++) CHECK_CLOSE(found[k], s[k], 2e-5 * s[0]);
      free(kx);
      free(ky);
      free(m);
      free(u);
      free(v);
      unicon_model_destroy(model);
      unicon_options_destroy(options);
    }
  problem_free(&p);
}

/* Each side its own kernel, as the model says. */
static void sides_may_differ(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 5, N, DX, DY, LATENT, 0.4, &p);
  unicon_options *options =
      support_options(ctx, "preset", "fast", "kernel_x", "rbf", "kernel_y", "laplace", NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_string_equal(unicon_model_meta(model, "x.kernel"), "rbf");
  assert_string_equal(unicon_model_meta(model, "y.kernel"), "matern12");
  assert_non_null(unicon_model_meta(model, "x.kernel_width"));
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  options = support_options(ctx, "preset", "fast", "kernel", "angular", "kernel_y", "linear", NULL);
  model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_string_equal(unicon_model_meta(model, "x.kernel"), "arccos1");
  assert_string_equal(unicon_model_meta(model, "x.map"), "exact");
  assert_string_equal(unicon_model_meta(model, "y.kernel"), "linear");
  assert_string_equal(unicon_model_meta(model, "y.map"), "linear");
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* ---- landmarks from a file ---------------------------------------------------------------- */

static double length_of(const float *row, int64_t d) {
  double sum = 0;
  for (int64_t k = 0; k < d; k++) sum += (double)row[k] * (double)row[k];
  return sqrt(sum);
}

/* Is each row of `tensor` (m by d) the unit row number list[..] of x, each once? */
static void check_landmarks(scratch *s, const unicon_model *model, const char *name, const float *x,
                            int64_t d, const int64_t *list, int64_t m) {
  int64_t count;
  float *tensor = support_tensor(s, model, name, &count);
  assert_int_equal(count, m * d);
  for (int64_t t = 0; t < m; t++) {
    int found = 0;
    for (int64_t p = 0; p < m; p++) {
      double gap = 0;
      const float *row = x + list[t] * d;
      for (int64_t k = 0; k < d; k++)
        gap += fabs((double)row[k] / length_of(row, d) - (double)tensor[p * d + k]);
      found += gap < 1e-5;
    }
    if (found != 1)
      print_error("%s: row %lld is there %d times\n", name, (long long)list[t], found);
    assert_int_equal(found, 1);
  }
  free(tensor);
}

static void landmarks_come_from_a_file(void **state) {
  scratch *s = *state;
  static const int64_t x[4] = {5, 80, 17, 44}, y[4] = {5, 2, 17, 30};
  problem p;
  problem_make(s->ctx, 6, N, DX, DY, LATENT, 0.4, &p);
  const char *path = scratch_text(s, "landmarks.tsv", "5\t5\n80\t2\n17\t17\n44\t30\n");
  unicon_options *options = support_options(s->ctx, "preset", "fast", "kernel", "angular", "map",
                                            "nystrom", "landmark_method", path, NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  check_landmarks(s, model, "x.landmarks", p.x, DX, x, 4);
  check_landmarks(s, model, "y.landmarks", p.y, DY, y, 4);
  assert_true(unicon_model_rank(model) <= 4);
  unicon_model_destroy(model);
  /* A row that is dropped does not shift the numbers of the file. */
  p.x[10 * DX] = NAN;
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "bad_rows", "drop"));
  model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  check_landmarks(s, model, "x.landmarks", p.x, DX, x, 4);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

static void bad_landmark_files_are_named(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 6, N, DX, DY, LATENT, 0.4, &p);
  const unicon_data data = {p.rows_x, p.rows_y, NULL, NULL};
  const struct {
    const char *path;
    unicon_status status;
    const char *word;
  } cases[] = {{scratch_text(s, "far.tsv", "1\t2\n3\t90\n"), UNICON_ERR_PAIRS, "row 90"},
               {scratch_text(s, "minus.tsv", "-1\t2\n"), UNICON_ERR_PAIRS, "-1"},
               {scratch_path(s, "missing.tsv"), UNICON_ERR_IO, "missing.tsv"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unicon_options *options = support_options(s->ctx, "preset", "fast", "kernel", "rbf", "map",
                                              "nystrom", "landmark_method", cases[c].path, NULL);
    unicon_model *model = NULL;
    const unicon_status status = unicon_fit(s->ctx, &data, NULL, options, &model);
    if (c == 1) /* a sign may already be no number to the reader of the file */
      assert_true(status == UNICON_ERR_PAIRS || status == UNICON_ERR_FORMAT);
    scratch_failed(s, status, c == 1 ? status : cases[c].status, cases[c].word, "tsv");
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

/* ---- rows that say little ----------------------------------------------------------------- */

/* Counts what is said about landmarks that were dropped. */
static void hear_dropped(void *user, unicon_log_level level, const char *text) {
  int *heard = user;
  *heard +=
      level == UNICON_LOG_INFO && strstr(text, "landmarks are explained by the others") != NULL;
}

/* Columns that never change; rows that come three times; on one side all rows the same. */
static void dull_rows_are_no_failure(void **state) {
  scratch *s = *state;
  static const char *const kernels[] = {"angular", "rbf", "arccos0", "matern12", "poly"};
  static const char *const maps[] = {"exact", "nystrom", "random"};
  for (size_t c = 0; c < 5; c++)
    for (int m = 0; m < 3 && !(c == 4 && m == 2); m++) {
      problem p;
      problem_make(s->ctx, 7, N, DX, DY, LATENT, 0.4, &p);
      for (int i = 0; i < N; i++) p.x[i * DX + 3] = p.x[i * DX + 4] = 2;
      for (int k = 30 * DY; k < N * DY; k++) p.y[k] = p.y[k - 30 * DY];
      unicon_options *options =
          support_options(s->ctx, "preset", "fast", "kernel", kernels[c], "map", maps[m],
                          "landmarks", "70", "features", "50", NULL);
      int heard = 0;
      unicon_ctx_set_log(s->ctx, hear_dropped, &heard);
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      unicon_ctx_set_log(s->ctx, NULL, NULL);
      assert_true(m == 2 || heard >= 1);
      double *cosines = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
      double own = 0, other = 0;
      for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
          *(i % 30 == j % 30 ? &own : &other) +=
              cosines[i * N + j] / (i % 30 == j % 30 ? 270 : 7830);
      assert_true(own > other + 0.2);
      free(cosines);
      unicon_model_destroy(model);
      for (int k = DX; k < N * DX; k++) p.x[k] = p.x[k % DX];
      scratch_failed(
          s,
          unicon_fit(s->ctx, &(unicon_data){p.rows_x, p.rows_y, NULL, NULL}, NULL, options, &model),
          UNICON_ERR_DATA, "same", "align");
      CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "center", "off"));
      scratch_failed(/* uncentred, one direction is a direction, but it tells no rows apart */
                     s,
                     unicon_fit(s->ctx, &(unicon_data){p.rows_x, p.rows_y, NULL, NULL}, NULL,
                                options, &model),
                     UNICON_ERR_DATA, "nothing to align", "");
      unicon_options_destroy(options);
      problem_free(&p);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(linear_kernel_is_the_linear_path),
      SCRATCH_TEST(spectrum_is_that_of_m),
      SCRATCH_TEST(sides_may_differ),
      SCRATCH_TEST(landmarks_come_from_a_file),
      SCRATCH_TEST(bad_landmark_files_are_named),
      SCRATCH_TEST(dull_rows_are_no_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
