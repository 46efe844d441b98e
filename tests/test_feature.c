/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to features: unit length whatever the size of the numbers, centring, rows that cannot
 * be used, and the cache. */
#include "features/feed.h"
#include "io/pairs.h"
#include "support.h"

/* Four ulp: one for 1/length, one for the product, and the float sum of squares of few entries. */
static const double unit_error = 2.5e-7;

/* ---- unit rows ---------------------------------------------------------------------------- */

/* Rows of one shape (1, -2, 2, 0) at every size float32 has, denormals included. */
static void rows_of_any_size_become_unit(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double shape[4] = {1, -2, 2, 0};
  for (int exponent = -43; exponent <= 37; exponent++) {
    float row[4], tile[4], out[4];
    double length = 0;
    for (int k = 0; k < 4; k++) {
      row[k] = (float)(shape[k] * pow(10, exponent));
      length += (double)row[k] * (double)row[k];
    }
    length = sqrt(length);
    unicon_rows *rows = support_rows(ctx, "rows", row, 1, 4);
    const unicon__map map = {.in = 4, .out = 4, .normalize = true};
    const unicon__source source = {.rows = rows, .count = 1, .map = &map};
    const float *unit = unicon__source_tile(&source, NULL, 0, 1, tile);
    for (int k = 0; k < 4; k++) CHECK_CLOSE(unit[k], (double)row[k] / length, unit_error);
    float mean[4] = {0.25f, -0.5f, 0.125f, 1};
    const unicon__map centred = {.in = 4, .out = 4, .normalize = true, .mean = mean};
    const unicon__source shifted = {.rows = rows, .count = 1, .map = &centred};
    unit = unicon__source_tile(&shifted, NULL, 0, 1, tile);
    for (int k = 0; k < 4; k++)
      CHECK_CLOSE(unit[k], (double)row[k] / length - (double)mean[k], unit_error);
    /* The same promise holds for vectors that are embedded without a model. */
    CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = rows, .side = UNICON_X), 0, 1, 1, out));
    for (int k = 0; k < 4; k++) {
      if (fabs((double)out[k] - (double)row[k] / length) > unit_error)
        print_error("size 1e%d: entry %d is %g\n", exponent, k, (double)out[k]);
      CHECK_CLOSE(out[k], (double)row[k] / length, unit_error);
    }
    CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = rows, .side = UNICON_X), 0, 1, 0, out));
    assert_memory_equal(out, row, sizeof row);
    unicon_rows_close(rows);
  }
}

static void wide_and_mixed_rows_become_unit(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 9, D = 301 };
  float *data = support_normals(3, N * D), *tile = support_floats(N * D);
  for (int k = 0; k < D; k++) {
    data[k] *= 1e30f;
    data[D + k] *= 1e-30f;
    data[2 * D + k] *= 1e-40f; /* denormal, with few bits left */
    data[3 * D + k] *= k == 17 ? 1e35f : 1e-35f;
    data[4 * D + k] = k == 300 ? -1e-44f : 0;
  }
  unicon_rows *rows = support_rows(ctx, "rows", data, N, D);
  const unicon__map map = {.in = D, .out = D, .normalize = true};
  const unicon__source source = {.rows = rows, .count = N, .map = &map};
  (void)unicon__source_tile(&source, NULL, 0, N, tile);
  for (int i = 0; i < N; i++) {
    double length = 0, cosine = 0, norm = 0;
    for (int k = 0; k < D; k++) {
      length += (double)data[i * D + k] * (double)data[i * D + k];
      norm += (double)tile[i * D + k] * (double)tile[i * D + k];
      cosine += (double)data[i * D + k] * (double)tile[i * D + k];
    }
    CHECK_CLOSE(norm, 1, 4 * unit_error);
    CHECK_CLOSE(cosine / sqrt(length), 1, 4 * unit_error);
  }
  unicon_rows_close(rows);
  free(data);
  free(tile);
}

/* ---- centring ----------------------------------------------------------------------------- */

/* The mean that a model keeps, over the rows that are used, whatever the threads. */
static void mean_is_the_plain_mean(void **state) {
  scratch *s = *state;
  enum { N = 1500, D = 5 }; /* more than two blocks */
  static const char *const on_off[2] = {"off", "on"};
  problem p;
  problem_make(s->ctx, 4, N, D, D, 3, 0.5, &p);
  for (int variant = 0; variant < 4; variant++) {
    const bool normalize = variant & 1, dropped = variant & 2;
    for (int64_t i = 7; dropped && i < N; i += 3) p.x[i * D + 1] = NAN;
    unicon_options *options =
        support_options(s->ctx, "normalize", on_off[normalize], "bad_rows", "drop", NULL);
    double mean[D] = {0}, used = 0;
    for (int64_t i = 0; i < N; i++) {
      const float *row = p.x + i * D;
      double length = 0;
      for (int k = 0; k < D; k++) length += (double)row[k] * (double)row[k];
      used += !isnan(length);
      for (int k = 0; k < D && !isnan(length); k++)
        mean[k] += (double)row[k] / (normalize ? sqrt(length) : 1);
    }
    for (int threads = 1; threads <= 3; threads++) {
      int64_t count;
      unicon__ctx_set_threads(s->ctx, threads);
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      float *found = support_tensor(s, model, "x.mean", &count);
      assert_int_equal(count, D);
      /* Rows of length about 3 when they are not scaled; one rounding to float32. */
      for (int k = 0; k < D; k++) CHECK_CLOSE(found[k], mean[k] / used, normalize ? 6e-8 : 3e-7);
      free(found);
      unicon_model_destroy(model);
    }
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

/* Features of picked rows, in batches and from the cache, are those of the whole. */
static void cache_changes_nothing(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 1200, D = 6 };
  static const int64_t pick[4] = {3, 700, 3, 1199}, batch[3] = {5, 600, 1000};
  float *data = support_normals(5, N * D), plain[4 * D], cached[4 * D], narrow[3 * D];
  unicon_rows *rows = support_rows(ctx, "rows", data, N, D);
  unicon__block *frame = unicon__frame_open(ctx);
  float mean[D] = {0.1f, -0.2f, 0.3f, 0, 0.05f, -0.1f};
  const unicon__map map = {.in = D, .out = D, .normalize = true, .mean = mean};
  unicon__source source = {.rows = rows, .count = N, .map = &map};
  float *all = support_floats(N * D);
  (void)unicon__source_tile(&source, pick, 0, 4, plain);
  (void)unicon__source_tile(&source, NULL, 0, N, all);
  for (int a = 0; a < 4; a++)
    assert_memory_equal(plain + a * D, all + pick[a] * D, D * sizeof *all);
  float *cache = NULL;
  CHECK_OK(ctx, unicon__source_cache(ctx, &ctx->arena, &source, &cache));
  assert_non_null(source.cache);
  assert_ptr_equal(cache, source.cache);
  (void)unicon__source_tile(&source, pick, 0, 4, cached);
  assert_memory_equal(plain, cached, sizeof plain);
  const float *tile = unicon__source_tile(&source, NULL, 0, N, NULL);
  assert_memory_equal(tile, all, N * D * sizeof *all);
  unicon__source part = source;
  part.count = 3;
  part.index = part.cache_row = batch;
  const float *through = unicon__source_tile(&part, NULL, 1, 2, narrow);
  for (int a = 0; a < 2; a++)
    assert_memory_equal(through + a * D, all + batch[a + 1] * D, D * sizeof *all);
  part.cache = NULL;
  memcpy(cached, unicon__source_tile(&part, NULL, 1, 2, narrow), 2 * D * sizeof *narrow);
  for (int a = 0; a < 2; a++)
    assert_memory_equal(cached + a * D, all + batch[a + 1] * D, D * sizeof *all);
  /* With little memory left there is no cache, and no error. */
  source.cache = NULL;
  unicon__budget_set_limit(ctx->arena.budget,
                           unicon__budget_used(ctx->arena.budget) + N * D * sizeof(float) * 3 / 2);
  CHECK_OK(ctx, unicon__source_cache(ctx, &ctx->arena, &source, &cache));
  assert_null(source.cache);
  assert_null(cache);
  unicon__frame_close(ctx, frame);
  unicon_rows_close(rows);
  free(all);
  free(data);
}

static int cancel_features(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)user;
  return strcmp(phase, "features") == 0 && done > 0.1;
}

/* Features of a kernel take long: filling the cache is a phase of its own, and can be cancelled. */
static void caching_can_be_cancelled(void **state) {
  scratch *s = *state;
  enum { N = 512 * 30, D = 2 };
  float *data = support_normals(6, N * D), *cache;
  unicon_rows *rows = support_rows(s->ctx, "rows", data, N, D);
  const unicon__map map = {.in = D, .out = D, .normalize = true};
  unicon__source source = {.rows = rows, .count = N, .map = &map};
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", "1")); /* so that we see every block */
  s->ctx->progress_interval = 0;
  unicon_ctx_set_progress(s->ctx, cancel_features, NULL);
  unicon__block *frame = unicon__frame_open(s->ctx);
  scratch_failed(s, unicon__source_cache(s->ctx, &s->ctx->arena, &source, &cache),
                 UNICON_ERR_CANCELLED, "cancelled", "features");
  unicon__frame_close(s->ctx, frame);
  unicon_rows_close(rows);
  free(data);
}

/* ---- rows that cannot be used ------------------------------------------------------------- */

static void bad_values_are_named(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 1, 700, 6, 4, 3, 0.1, &p);
  static const struct {
    int64_t row, column;
    float value;
    const char *place;
  } cases[] = {{0, 0, NAN, "x.npy: row 0, column 0"},
               {3, 2, INFINITY, "x.npy: row 3, column 2"},
               {699, 5, -INFINITY, "x.npy: row 699, column 5"},
               {513, 1, NAN, "x.npy: row 513, column 1"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    float *at = p.x + cases[c].row * 6 + cases[c].column;
    const float held = *at;
    *at = cases[c].value;
    unicon_model *model = (unicon_model *)(void *)s;
    const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
    scratch_failed(s, unicon_fit(s->ctx, &data, NULL, NULL, &model), UNICON_ERR_DATA,
                   cases[c].place, "not a finite number");
    scratch_failed(s, UNICON_ERR_DATA, UNICON_ERR_DATA, "1 of 700 rows", "bad_rows drop");
    assert_null(model);
    float *out = support_floats(700 * 6);
    scratch_failed(
        s, unicon_embed(s->ctx, &UNICON_VIEW(.rows = p.rows_x, .side = UNICON_X), 0, 700, 1, out),
        UNICON_ERR_DATA, cases[c].place, "not a finite number");
    free(out);
    *at = held;
  }
  memset(p.y + 5 * 4, 0, 4 * sizeof *p.y);
  memset(p.y + 600 * 4, 0, 4 * sizeof *p.y);
  unicon_model *model = NULL;
  scratch_failed(s,
                 unicon_fit(s->ctx, &UNICON_DATA(.x = p.rows_x, .y = p.rows_y), NULL, NULL, &model),
                 UNICON_ERR_DATA, "y.npy: row 5 is all zero", "2 of 700 rows");
  /* Without scaling to unit length a zero row is a row like any other. */
  unicon_options *raw = support_options(s->ctx, "normalize", "off", NULL);
  unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, NULL, raw));
  unicon_options_destroy(raw);
  problem_free(&p);
}

/* With normalize off, a row whose square is no float32 is named: among training rows, validation
 * rows and rows to embed; it may be dropped. */
static void long_rows_are_named(void **state) {
  static const char *const kernels[] = {"linear", "angular", "rbf", "matern12", "matern32"};
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 4, 50, 6, 5, 3, 0.1, &p);
  float *bad = support_floats(50 * 6), out[50 * 4];
  memcpy(bad, p.x, 50 * 6 * sizeof *bad);
  for (int k = 0; k < 6; k++) bad[7 * 6 + k] *= 1e20f;
  unicon_rows *rows = support_rows(s->ctx, "bad.npy", bad, 50, 6);
  const unicon_data good = UNICON_DATA(.x = p.rows_x, .y = p.rows_y),
                    data = UNICON_DATA(.x = rows, .y = p.rows_y);
  for (size_t c = 0; c < sizeof kernels / sizeof *kernels; c++) {
    unicon_options *options = support_options(s->ctx, "kernel", kernels[c], "normalize", "off",
                                              "rank", "4", "iterations", "1", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options), *none = NULL;
    scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &none), UNICON_ERR_DATA,
                   "bad.npy: row 7 ", "too large");
    scratch_failed(s, unicon_fit(s->ctx, &good, &data, options, &none), UNICON_ERR_DATA,
                   "bad.npy: row 7 ", "too large");
    if (c > 0) /* a linear map squares nothing */
      scratch_failed(
          s,
          unicon_embed(s->ctx, &UNICON_VIEW(.rows = rows, .model = model, .side = UNICON_X), 0, 50,
                       1, out),
          UNICON_ERR_DATA, "bad.npy: row 7 ", "too large");
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "bad_rows", "drop"));
    unicon_model *without = support_fit(s->ctx, rows, p.rows_y, NULL, options);
    assert_string_equal(unicon_model_meta(without, "n_x"), "49");
    unicon_model_destroy(without);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  unicon_rows_close(rows);
  free(bad);
  problem_free(&p);
}

static void double_beyond_float_is_refused(void **state) {
  scratch *s = *state;
  double wide[4] = {1, 2, 1e39, 4};
  float out[4];
  unicon_rows *rows = NULL;
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "wide", wide, UNICON_F64, 2, 2, 16, 8, &rows));
  scratch_failed(s,
                 unicon_embed(s->ctx, &UNICON_VIEW(.rows = rows, .side = UNICON_X), 0, 2, 0, out),
                 UNICON_ERR_DATA, "wide: row 1, column 0", "beyond float32");
  unicon_rows_close(rows);
}

/* Dropping rows gives the model of the data without them, pairs renumbered, to the last bit. */
static void dropped_rows_take_their_pairs_along(void **state) {
  scratch *s = *state;
  enum { NX = 60, NY = 50, DX = 7, DY = 5, PAIRS = 120 };
  problem p;
  problem_make(s->ctx, 2, NX, DX, DY, 3, 0.3, &p);
  unicon_rows *some_y = support_rows(s->ctx, "y.npy", p.y, NY, DY);
  p.x[4 * DX] = NAN;
  memset(p.x + 17 * DX, 0, DX * sizeof *p.x);
  p.y[49 * DY + 1] = INFINITY;
  int64_t x[PAIRS], y[PAIRS], kept_x[PAIRS], kept_y[PAIRS], count = 0, kept = 0;
  double weight[PAIRS], kept_weight[PAIRS];
  for (int64_t k = 0; k < PAIRS; k++) {
    x[count] = k % NX;
    y[count] = (k * 7 + k / NX) % NY;
    weight[count] = 1 + (double)(k % 3);
    if (x[k] != 4 && x[k] != 17 && y[k] != 49) {
      kept_x[kept] = x[k] - (x[k] > 4) - (x[k] > 17);
      kept_y[kept] = y[k];
      kept_weight[kept++] = weight[k];
    }
    count++;
  }
  float *clean = support_floats((NX - 2) * DX);
  for (int64_t i = 0, to = 0; i < NX; i++)
    if (i != 4 && i != 17) memcpy(clean + DX * to++, p.x + DX * i, DX * sizeof *clean);
  unicon_rows *clean_x = support_rows(s->ctx, "clean", clean, NX - 2, DX);
  unicon_rows *clean_y = support_rows(s->ctx, "clean", p.y, NY - 1, DY);
  unicon_pairs *all = NULL, *left = NULL;
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, NX, NY, x, y, weight, count, &all));
  CHECK_OK(s->ctx,
           unicon_pairs_list(s->ctx, NX - 2, NY - 1, kept_x, kept_y, kept_weight, kept, &left));
  unicon_options *drop = support_options(s->ctx, "bad_rows", "drop", "iterations", "2", NULL);
  log_book book = {0};
  unicon_ctx_set_log(s->ctx, support_log, &book);
  unicon_model *a = support_fit(s->ctx, p.rows_x, some_y, all, drop);
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "1 of 50 rows dropped"));
  unicon_model *b = support_fit(s->ctx, clean_x, clean_y, left, drop);
  assert_string_equal(unicon_model_meta(a, "n_x"), "58");
  assert_string_equal(unicon_model_meta(a, "n_y"), "49");
  assert_string_equal(unicon_model_meta(a, "pairs"), unicon_model_meta(b, "pairs"));
  assert_string_equal(unicon_model_meta(a, "loss_log"), unicon_model_meta(b, "loss_log"));
  double *of_a = support_cosines(s->ctx, a, clean_x, clean_y);
  double *of_b = support_cosines(s->ctx, b, clean_x, clean_y);
  assert_memory_equal(of_a, of_b, (NX - 2) * (NY - 1) * sizeof *of_a);
  free(of_a);
  free(of_b);
  unicon_model_destroy(a);
  unicon_model_destroy(b);
  unicon_options_destroy(drop);
  unicon_pairs_destroy(all);
  unicon_pairs_destroy(left);
  unicon_rows_close(clean_x);
  unicon_rows_close(clean_y);
  unicon_rows_close(some_y);
  free(clean);
  problem_free(&p);
}

static void nothing_left_is_a_sentence(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 3, 5, 4, 4, 2, 0.1, &p);
  for (int i = 0; i < 4; i++) p.x[i * 4] = NAN;
  unicon_options *drop = support_options(s->ctx, "bad_rows", "drop", NULL);
  unicon_model *model = NULL;
  scratch_failed(s,
                 unicon_fit(s->ctx, &UNICON_DATA(.x = p.rows_x, .y = p.rows_y), NULL, drop, &model),
                 UNICON_ERR_DATA, "1 rows of x.npy", "at least 2 rows");
  unicon_options_destroy(drop);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(rows_of_any_size_become_unit),
      SCRATCH_TEST(wide_and_mixed_rows_become_unit),
      SCRATCH_TEST(mean_is_the_plain_mean),
      SCRATCH_TEST(cache_changes_nothing),
      SCRATCH_TEST(caching_can_be_cancelled),
      SCRATCH_TEST(bad_values_are_named),
      SCRATCH_TEST(long_rows_are_named),
      SCRATCH_TEST(double_beyond_float_is_refused),
      SCRATCH_TEST(dropped_rows_take_their_pairs_along),
      SCRATCH_TEST(nothing_left_is_a_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
