/* SPDX-License-Identifier: Apache-2.0 */
/* What a fit must not depend on (row order, rotation, scale, threads), and the shapes it must take.
 * Tolerances of cosines: float32 rows carry roundings of 6e-8; a ridge of .01 amplifies them at
 * most a hundredfold in the whitened C, and the cosine of two embeddings sums about ten of them:
 * 1e-4 leaves a margin of two. Without whitening there is no amplification: 1e-5. */
#include "io/pairs.h"
#include "figures.h"
#include "support.h"

enum { N = 240, TEST = 60, DX = 14, DY = 10, LATENT = 6 };

static const char *const metrics[2] = {"none", "whiten"};
static const double tolerance[2] = {1e-5, 1e-4};

static unicon_options *with_metric(unicon_ctx *ctx, int metric, const char *iterations) {
  /* Plain steps are always taken, and settle at temperature 1. */
  return support_options(ctx, "metric", metrics[metric], "iterations", iterations, "temperature",
                         "1", "damping", "plain", NULL);
}

/* Cosines of the first TEST rows of q under a model fitted on x and y. */
static double *fit_and_compare(unicon_ctx *ctx, const unicon_rows *x, const unicon_rows *y,
                               const unicon_pairs *pairs, const unicon_options *options,
                               const float *test_x, const float *test_y) {
  unicon_model *model = support_fit(ctx, x, y, pairs, options);
  unicon_rows *tx = support_rows(ctx, "test x", test_x, TEST, unicon_rows_width(x));
  unicon_rows *ty = support_rows(ctx, "test y", test_y, TEST, unicon_rows_width(y));
  double *cosines = support_cosines(ctx, model, tx, ty);
  unicon_rows_close(tx);
  unicon_rows_close(ty);
  unicon_model_destroy(model);
  return cosines;
}

/* A many-to-many list with weights: row i of x with rows i and i+1 of y, some with neither. */
static int64_t make_pairs(int64_t *x, int64_t *y, double *weight) {
  int64_t count = 0;
  for (int64_t i = 0; i < N; i++)
    for (int64_t t = 0; t < 2; t++) {
      if ((i + t) % 11 == 0) continue;
      x[count] = i;
      y[count] = (i + t) % N;
      weight[count++] = t ? 0.5 : 2;
    }
  return count;
}

static void row_order_does_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 1, N, DX, DY, LATENT, 0.5, &p);
  int64_t x[2 * N], y[2 * N], px[2 * N], py[2 * N];
  double weight[2 * N];
  const int64_t count = make_pairs(x, y, weight);
  float *shuffled_x = support_floats(N * DX), *shuffled_y = support_floats(N * DY);
  for (int64_t i = 0; i < N; i++) { /* 7 and 11 have no factor in common with 240 */
    memcpy(shuffled_x + (i * 7 + 3) % N * DX, p.x + i * DX, DX * sizeof *p.x);
    memcpy(shuffled_y + (i * 11 + 5) % N * DY, p.y + i * DY, DY * sizeof *p.y);
  }
  for (int64_t k = 0; k < count; k++) {
    px[k] = (x[k] * 7 + 3) % N;
    py[k] = (y[k] * 11 + 5) % N;
  }
  unicon_rows *rx = support_rows(ctx, "x", shuffled_x, N, DX);
  unicon_rows *ry = support_rows(ctx, "y", shuffled_y, N, DY);
  unicon_pairs *pairs = NULL, *moved = NULL;
  CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, x, y, weight, count, &pairs));
  CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, px, py, weight, count, &moved));
  for (int metric = 0; metric < 2; metric++)
    for (int iterations = 0; iterations < 2; iterations++) {
      unicon_options *options = with_metric(ctx, metric, iterations ? "2" : "0");
      double *a = fit_and_compare(ctx, p.rows_x, p.rows_y, pairs, options, p.x, p.y);
      double *b = fit_and_compare(ctx, rx, ry, moved, options, p.x, p.y);
      CHECK_CLOSE(support_distance(a, b, TEST * TEST), 0, 1e-4);
      free(a);
      free(b);
      unicon_options_destroy(options);
    }
  unicon_pairs_destroy(pairs);
  unicon_pairs_destroy(moved);
  unicon_rows_close(rx);
  unicon_rows_close(ry);
  free(shuffled_x);
  free(shuffled_y);
  problem_free(&p);
}

/* rows times a d by d orthogonal matrix. */
static float *rotated(uint64_t seed, const float *rows, int64_t n, int64_t d) {
  double *q = support_orthonormal(seed, d, d);
  float *out = support_floats(n * d);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < d; j++) {
      double sum = 0;
      for (int64_t k = 0; k < d; k++) sum += (double)rows[i * d + k] * q[k * d + j];
      out[i * d + j] = (float)sum;
    }
  free(q);
  return out;
}

static void rotation_does_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 2, N, DX, DY, LATENT, 0.5, &p);
  float *turned_x = rotated(5, p.x, N, DX), *turned_y = rotated(6, p.y, N, DY);
  unicon_rows *rx = support_rows(ctx, "x", turned_x, N, DX);
  unicon_rows *ry = support_rows(ctx, "y", turned_y, N, DY);
  for (int metric = 0; metric < 2; metric++)
    for (int iterations = 0; iterations < 2; iterations++) {
      unicon_options *options = with_metric(ctx, metric, iterations ? "2" : "0");
      double *a = fit_and_compare(ctx, p.rows_x, p.rows_y, NULL, options, p.x, p.y);
      double *b = fit_and_compare(ctx, rx, ry, NULL, options, turned_x, turned_y);
      CHECK_CLOSE(support_distance(a, b, TEST * TEST), 0, tolerance[metric]);
      free(a);
      free(b);
      unicon_options_destroy(options);
    }
  unicon_rows_close(rx);
  unicon_rows_close(ry);
  free(turned_x);
  free(turned_y);
  problem_free(&p);
}

/* Rows scaled one by one: by powers of two nothing changes at all, by others only roundings. */
static void scale_does_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 3, N, DX, DY, LATENT, 0.5, &p);
  float *scaled = support_floats(N * DX);
  unicon_rows *rx = support_rows(ctx, "x", scaled, N, DX);
  for (int metric = 0; metric < 2; metric++) {
    unicon_options *options = with_metric(ctx, metric, "2");
    double *a = fit_and_compare(ctx, p.rows_x, p.rows_y, NULL, options, p.x, p.y);
    for (int k = 0; k < N * DX; k++) scaled[k] = ldexpf(p.x[k], (k / DX) % 9 - 4);
    double *b = fit_and_compare(ctx, rx, p.rows_y, NULL, options, p.x, p.y);
    assert_memory_equal(a, b, TEST * TEST * sizeof *a);
    for (int k = 0; k < N * DX; k++) scaled[k] = p.x[k] * (0.3f + (float)((k / DX) % 7));
    double *c = fit_and_compare(ctx, rx, p.rows_y, NULL, options, p.x, p.y);
    CHECK_CLOSE(support_distance(a, c, TEST * TEST), 0, tolerance[metric]);
    free(a);
    free(b);
    free(c);
    unicon_options_destroy(options);
  }
  unicon_rows_close(rx);
  free(scaled);
  problem_free(&p);
}

/* The tiled sums do not depend on the threads; LAPACK and large products inside OpenBLAS may, by
 * rounding. So the same count gives the same bytes, and other counts the same cosines. */
static void threads_do_not_matter(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 4, 700, DX, DY, LATENT, 0.5, &p);
  unicon_options *options = with_metric(s->ctx, 1, "2");
  double *first = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    unsigned char *bytes[2];
    size_t size[2];
    unicon__ctx_set_threads(s->ctx, threads);
    double *cosines = NULL;
    for (int k = 0; k < 2; k++) {
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      const char *path = scratch_path(s, "model.safetensors");
      CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
      bytes[k] = support_slurp(path, &size[k]);
      if (k == 0) cosines = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
      unicon_model_destroy(model);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    if (first) CHECK_CLOSE(support_distance(first, cosines, 700 * 700), 0, 1e-5);
    if (first)
      free(cosines);
    else
      first = cosines;
  }
  free(first);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* Labels are the list of all pairs of equal label. */
static void labels_are_their_list(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 5, N, DX, DY, LATENT, 0.5, &p);
  int64_t label_x[N], label_y[N], *x = calloc(N * N, sizeof *x), *y = calloc(N * N, sizeof *y);
  int64_t count = 0;
  for (int64_t i = 0; i < N; i++) { /* classes 0..20 of x; 3..17 of y: some have no partner */
    label_x[i] = i % 21;
    label_y[i] = 3 + i % 15;
  }
  for (int64_t i = 0; i < N; i++)
    for (int64_t j = 0; j < N; j++)
      if (label_x[i] == label_y[j]) x[count] = i, y[count++] = j;
  unicon_pairs *labels = NULL, *list = NULL;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label_x, N, label_y, N, &labels));
  CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, x, y, NULL, count, &list));
  assert_int_equal(unicon_pairs_count(labels), count);
  static const char *const center[2] = {"on", "off"};
  for (int k = 0; k < 2; k++)
    for (int iterations = 0; iterations < 2; iterations++) {
      unicon_options *options = support_options(ctx, "center", center[k], "rank", "5", "iterations",
                                                iterations ? "2" : "0", "loss", "supcon", "damping",
                                                "plain", "temperature", "1", NULL);
      double *a = fit_and_compare(ctx, p.rows_x, p.rows_y, labels, options, p.x, p.y);
      double *b = fit_and_compare(ctx, p.rows_x, p.rows_y, list, options, p.x, p.y);
      CHECK_CLOSE(support_distance(a, b, TEST * TEST), 0, 1e-4);
      free(a);
      free(b);
      unicon_options_destroy(options);
    }
  unicon_pairs_destroy(labels);
  unicon_pairs_destroy(list);
  free(x);
  free(y);
  problem_free(&p);
}

/* ---- shapes ------------------------------------------------------------------------------- */

static void any_shape_fits(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    int64_t n, d_x, d_y, rank;
  } cases[] = {{2, 3, 3, 1},   {3, 1, 1, 1},     {5, 300, 200, 4},    {20, 700, 3, 3},
               {900, 3, 2, 2}, {1500, 20, 1, 1}, {300, 290, 280, 256}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    problem p;
    const int64_t n = cases[c].n;
    problem_make(ctx, c + 10, n, cases[c].d_x, cases[c].d_y, 2, 0.3, &p);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, NULL);
    assert_int_equal(unicon_model_rank(model), cases[c].rank);
    assert_int_equal(unicon_model_width(model, UNICON_X), cases[c].d_x);
    assert_int_equal(unicon_model_width(model, UNICON_Y), cases[c].d_y);
    const float *values = unicon_model_spectrum(model);
    for (int64_t k = 0; k < cases[c].rank; k++) {
      assert_true(values[k] > 0 && values[k] < 1.001f); /* correlations */
      assert_true(k == 0 || values[k] <= values[k - 1]);
    }
    double *cosines = support_cosines(ctx, model, p.rows_x, p.rows_y);
    double own = 0, other = 0;
    for (int64_t i = 0; i < n; i++) {
      own += cosines[i * n + i] / (double)n;
      for (int64_t j = 0; j < n; j++)
        if (j != i) other += cosines[i * n + j] / (double)(n * (n - 1));
    }
    assert_true(own > other + 0.2); /* the pairs it was fitted on are closer than others */
    free(cosines);
    unicon_model_destroy(model);
    problem_free(&p);
  }
}

/* One row can be embedded, searched and scored with a model made of many. */
static void one_row_is_enough_to_use_a_model(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 6, N, DX, DY, LATENT, 0.2, &p);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, NULL);
  const int64_t r = unicon_model_rank(model);
  float *all = support_floats(N * r), *one = support_floats(r), score;
  int64_t id;
  unicon_rows *x = support_rows(ctx, "one x", p.x + 7 * DX, 1, DX);
  unicon_rows *y = support_rows(ctx, "one y", p.y + 7 * DY, 1, DY);
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X),
                             0, N, 1, all));
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X), 0, 1,
                             1, one));
  for (int64_t k = 0; k < r; k++) CHECK_CLOSE(one[k], all[7 * r + k], 1e-6);
  CHECK_OK(ctx, unicon_search(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
                              &UNICON_VIEW(.rows = p.rows_y, .model = model, .side = UNICON_Y), 1,
                              &id, &score));
  assert_int_equal(id, 7); /* nearly noise-free pairs */
  figures to_y, to_x;
  CHECK_OK(ctx, figures_evaluate(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
                                 &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), NULL,
                                 NULL, &to_y, &to_x));
  assert_true(to_y.value[UNICON__HIT_1] == 1 && to_y.queries == 1 && to_x.candidates == 1);
  unicon_rows_close(x);
  unicon_rows_close(y);
  free(all);
  free(one);
  unicon_model_destroy(model);
  problem_free(&p);
}

/* C of shuffled batches of b rows is 1 - 1/b of that of one batch, and so is the spectrum. */
static void batches_keep_the_scale(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 41, 800, 8, 7, 5, 0.5, &p);
  unicon_options *whole = support_options(s->ctx, "metric", "none", NULL);
  unicon_options *cut = support_options(s->ctx, "metric", "none", "batch", "100", NULL);
  unicon_model *a = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, whole);
  unicon_model *b = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, cut);
  /* 1 - 1/100, and the draw of the batches moves C by a few per cent */
  CHECK_CLOSE(unicon_model_spectrum(b)[0] / unicon_model_spectrum(a)[0], 0.99, 0.05);
  unicon_model_destroy(b);
  unicon_model_destroy(a);
  unicon_options_destroy(cut);
  unicon_options_destroy(whole);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(batches_keep_the_scale),   SCRATCH_TEST(row_order_does_not_matter),
      SCRATCH_TEST(rotation_does_not_matter), SCRATCH_TEST(scale_does_not_matter),
      SCRATCH_TEST(threads_do_not_matter),    SCRATCH_TEST(labels_are_their_list),
      SCRATCH_TEST(any_shape_fits),           SCRATCH_TEST(one_row_is_enough_to_use_a_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
