/* SPDX-License-Identifier: Apache-2.0 */
/* What a fit refuses, in which words; the memory limit; presets; batches; what it says about
 * itself. */
#include "support.h"

static unicon_status try_fit(scratch *s, const problem *p, const unicon_pairs *pairs,
                             const unicon_options *options) {
  unicon_model *model = (unicon_model *)(void *)s;
  const unicon_data data = UNICON_DATA(.x = p->rows_x, .y = p->rows_y, .pairs = pairs);
  const unicon_status status = unicon_fit(s->ctx, &data, NULL, options, &model);
  if (status != UNICON_OK) assert_null(model);
  if (status == UNICON_OK) unicon_model_destroy(model);
  return status;
}

static void too_few_rows(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 1, 1, 4, 3, 2, 0.1, &p);
  scratch_failed(s, try_fit(s, &p, NULL, NULL), UNICON_ERR_DATA, "x.npy has 1 row", "at least 2");
  problem_free(&p);
}

static void counts_must_agree(void **state) {
  scratch *s = *state;
  problem p, q;
  unicon_pairs *pairs = NULL;
  unicon_model *model = NULL;
  problem_make(s->ctx, 1, 12, 4, 3, 2, 0.1, &p);
  problem_make(s->ctx, 1, 9, 4, 3, 2, 0.1, &q);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = q.rows_y);
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, NULL, &model), UNICON_ERR_PAIRS, "12", "9");
  CHECK_OK(s->ctx, unicon_pairs_identity(s->ctx, 9, 9, &pairs));
  scratch_failed(s, try_fit(s, &p, pairs, NULL), UNICON_ERR_SHAPE, "9 by 9", "x.npy has 12");
  unicon_pairs_destroy(pairs);
  scratch_failed(s, unicon_fit(s->ctx, NULL, NULL, NULL, &model), UNICON_ERR_ARGUMENT, "NULL",
                 "UNICON_DATA");
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, NULL, NULL), UNICON_ERR_ARGUMENT, "out is NULL",
                 "");
  assert_int_equal(unicon_fit(NULL, &data, NULL, NULL, &model), UNICON_ERR_ARGUMENT);
  const unicon_data train = UNICON_DATA(.x = p.rows_x, .y = p.rows_y),
                    wide = UNICON_DATA(.x = q.rows_x, .y = q.rows_x);
  scratch_failed(s, unicon_fit(s->ctx, &train, &wide, NULL, &model), UNICON_ERR_SHAPE,
                 "validation rows have 4 and 4 values", "training rows 4 and 3");
  problem_free(&p);
  problem_free(&q);
}

static void rank_adapts_unless_given(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 2, 30, 8, 6, 3, 0.5, &p);
  unicon_options *seven = support_options(s->ctx, "rank", "7", NULL);
  scratch_failed(s, try_fit(s, &p, NULL, seven), UNICON_ERR_DATA, "rank is 7", "at most 6");
  unicon_options *six = support_options(s->ctx, "rank", "6", NULL);
  CHECK_OK(s->ctx, try_fit(s, &p, NULL, six));
  unicon_options *paper = support_options(s->ctx, "preset", "paper", NULL); /* rank 128 */
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, paper);
  assert_true(unicon_model_rank(model) <= 6 && unicon_model_rank(model) >= 5);
  unicon_model_destroy(model);
  unicon_options_destroy(seven);
  unicon_options_destroy(six);
  unicon_options_destroy(paper);
  problem_free(&p);
  /* Few rows bound it too: centred, one direction less than rows. */
  problem_make(s->ctx, 2, 5, 8, 6, 6, 0.5, &p);
  unicon_options *five = support_options(s->ctx, "rank", "5", NULL);
  scratch_failed(s, try_fit(s, &p, NULL, five), UNICON_ERR_DATA, "rank is 5", "at most 4");
  problem_free(&p);
  /* On either side, and where the rows are just as many as the features. */
  static const int64_t row[6] = {0, 1, 2, 3, 4, 5};
  unicon_options *as_wide = support_options(s->ctx, "rank", "6", NULL);
  for (int side = 0; side < 2; side++) {
    unicon_pairs *pairs = NULL;
    unicon_model *none = NULL;
    problem_make(s->ctx, 2, 9, 8, 6, 6, 0.5, &p);
    unicon_rows *few =
        side ? support_rows(s->ctx, "few", p.y, 6, 6) : support_rows(s->ctx, "few", p.x, 6, 8);
    CHECK_OK(s->ctx,
             unicon_pairs_list(s->ctx, side ? 9 : 6, side ? 6 : 9, row, row, NULL, 6, &pairs));
    const unicon_data data =
        UNICON_DATA(.x = side ? p.rows_x : few, .y = side ? few : p.rows_y, .pairs = pairs);
    scratch_failed(s, unicon_fit(s->ctx, &data, NULL, as_wide, &none), UNICON_ERR_DATA, "rank is 6",
                   "at most 5");
    unicon_pairs_destroy(pairs);
    unicon_rows_close(few);
    problem_free(&p);
  }
  unicon_options_destroy(as_wide);
  unicon_options_destroy(five);
}

/* Rows of one direction have no covariance after scaling: only rounding is left to align. */
static void constant_data_is_a_sentence(void **state) {
  scratch *s = *state;
  static const char *const metric[] = {"whiten", "none"};
  for (int sized = 0; sized < 2; sized++)
    for (int m = 0; m < 2; m++) {
      problem p;
      problem_make(s->ctx, 3, 40, 5, 4, 3, 0.1, &p);
      for (int i = 1; i < 40; i++)
        for (int k = 0; k < 5; k++) p.x[i * 5 + k] = p.x[k] * (sized ? 0.1f * (float)(i + 3) : 1);
      unicon_options *options = support_options(s->ctx, "metric", metric[m], NULL);
      const unicon_status status = try_fit(s, &p, NULL, options);
      if (status == UNICON_OK)
        print_error("a model of %s rows was made\n", sized ? "scaled" : "equal");
      scratch_failed(s, status, UNICON_ERR_DATA, "same", "align");
      unicon_options_destroy(options);
      problem_free(&p);
    }
}

/* Uncentred constant rows do have a direction, and that is fine. */
static void constant_data_without_centring(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 3, 40, 5, 4, 3, 0.1, &p);
  for (int k = 0; k < 40 * 5; k++) p.x[k] = p.x[k % 5];
  unicon_options *options = support_options(s->ctx, "center", "off", "rank", "1", NULL);
  const unicon_status status = try_fit(s, &p, NULL, options);
  if (status != UNICON_OK) scratch_failed(s, status, UNICON_ERR_DATA, "align", "");
  unicon_options_destroy(options);
  problem_free(&p);
}

/* With normalize off, squares of the rows must fit float32: from 1e-18 to 1e15 they do. Beyond, a
 * sentence, never a model of nothing. */
static void extreme_sizes_without_normalize(void **state) {
  scratch *s = *state;
  static const float sizes[] = {1e-18f, 1e15f, 1e-30f, 1e18f, 1e25f, 1e30f};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    problem p;
    problem_make(s->ctx, 4, 50, 6, 5, 3, 0.1, &p);
    for (int k = 0; k < 50 * 6; k++) p.x[k] *= sizes[c];
    unicon_options *options = support_options(s->ctx, "normalize", "off", NULL);
    unicon_model *model = NULL;
    const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
    const unicon_status status = unicon_fit(s->ctx, &data, NULL, options, &model);
    if (c < 2) CHECK_OK(s->ctx, status);
    assert_true(status == UNICON_OK || status == UNICON_ERR_DATA || status == UNICON_ERR_NUMERIC);
    if (status == UNICON_OK) {
      double *cosines = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
      double own = 0;
      for (int i = 0; i < 50; i++) own += cosines[i * 51] / 50;
      assert_true(own > 0.5);
      free(cosines);
      unicon_model_destroy(model);
    }
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

/* Where the squares pass float32 the sentence says so, and not that the rows are the same. */
static void values_beyond_float32_are_named(void **state) {
  scratch *s = *state;
  static const struct {
    float size;
    const char *option, *value, *word;
  } cases[] = {{1e20f, "preset", "fast", "too large"},    {1e20f, "center", "off", "too large"},
               {1e20f, "kernel", "angular", "too large"}, {1e15f, "kernel", "poly", "too large"},
               {1e20f, "preset", "auto", "too large"},    {1e-25f, "preset", "fast", "too small"},
               {1e-25f, "center", "off", "too small"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    problem p;
    problem_make(s->ctx, 4, 50, 6, 5, 3, 0.1, &p);
    for (int k = 0; k < 50 * 6; k++) p.x[k] *= cases[c].size;
    unicon_options *options =
        support_options(s->ctx, "normalize", "off", cases[c].option, cases[c].value, NULL);
    scratch_failed(s, try_fit(s, &p, NULL, options), UNICON_ERR_DATA, cases[c].word, "float32");
    assert_null(strstr(unicon_ctx_error(s->ctx), "same"));
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

/* Class labels of 17 million pairs in 64 MB: losses that keep numbers per row make no list of them.
 * Those that keep numbers per pair refuse, before they allocate, and what they advise works. */
static void labels_make_no_list(void **state) {
  scratch *s = *state;
  enum { ROWS = 4600 };
  static const char *const rowwise[] = {"clip", "supcon", "siglip"};
  static const char *const pairwise[][2] = {
      {"triplet", "exp"}, {"general", "hinge"}, {"general", "identity"}};
  problem p;
  problem_make(s->ctx, 6, ROWS, 6, 5, 3, 0.3, &p);
  int64_t *label = malloc(ROWS * sizeof *label);
  assert_non_null(label);
  for (int64_t i = 0; i < ROWS; i++) label[i] = i % 10 > 0;
  unicon_pairs *pairs = NULL;
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, ROWS, label, ROWS, &pairs));
  assert_true(unicon_pairs_count(pairs) > 1 << 24);
  unicon__ctx_set_threads(s->ctx, 2); /* each has its tiles */
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "max-mem", "64M"));
  for (size_t c = 0; c < sizeof rowwise / sizeof *rowwise; c++) {
    unicon_options *options =
        support_options(s->ctx, "loss", rowwise[c], "iterations", "1", "damping", "plain", NULL);
    unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, pairs, options));
    unicon_options_destroy(options);
  }
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y, .pairs = pairs);
  for (size_t c = 0; c < sizeof pairwise / sizeof *pairwise; c++) {
    unicon_options *options = support_options(s->ctx, "loss", pairwise[c][0], "psi", pairwise[c][1],
                                              "phi", "identity", "iterations", "1", NULL);
    unicon_model *model = NULL;
    scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_UNSUPPORTED,
                   c == 0 ? "triplet" : pairwise[c][1], "batch");
    assert_non_null(strstr(unicon_ctx_error(s->ctx), "supcon"));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "batch", "60"));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "damping", "plain")); /* no trials */
    if (c == 0) unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, pairs, options));
    unicon_options_destroy(options);
  }
  unicon_pairs_destroy(pairs);
  free(label);
  problem_free(&p);
}

static void memory_limit_is_kept(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, 900, 150, 120, 20, 0.3, &p);
  unicon_options *options = support_options(s->ctx, "iterations", "1", NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  const uint64_t needed = unicon_ctx_memory_peak(s->ctx);
  unicon_model_destroy(model);
  int refused = 0, made = 0;
  for (uint64_t limit = 1 << 20; limit < 2 * needed; limit += limit / 4) {
    unicon_ctx *small = NULL;
    char text[32];
    assert_int_equal(unicon_ctx_create(&small), UNICON_OK);
    snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
    CHECK_OK(small, unicon_ctx_set(small, "max-mem", text));
    const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
    const unicon_status status = unicon_fit(small, &data, NULL, options, &model);
    assert_true(unicon_ctx_memory_peak(small) <= limit);
    if (status == UNICON_OK) {
      made++;
      unicon_model_destroy(model);
    } else {
      refused++;
      assert_int_equal(status, UNICON_ERR_MEMORY);
      assert_null(model);
      assert_non_null(strstr(unicon_ctx_error(small), "max_mem"));
      assert_int_equal(unicon__budget_used(small->arena.budget), 0);
      CHECK_OK(small, unicon_ctx_set(small, "max-mem", "none")); /* and it works on */
      CHECK_OK(small, unicon_fit(small, &data, NULL, options, &model));
      unicon_model_destroy(model);
    }
    unicon_ctx_destroy(small);
  }
  assert_true(refused >= 3 && made >= 1);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* ---- batches ------------------------------------------------------------------------------ */

static void batch_of_everything_is_full(void **state) {
  scratch *s = *state;
  enum { N = 90 };
  problem p;
  problem_make(s->ctx, 6, N, 8, 7, 4, 0.4, &p);
  static const char *const sizes[] = {"full", "90", "91", "100000", "30"};
  double *first = NULL;
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    unicon_options *options =
        support_options(s->ctx, "batch", sizes[c], "iterations", "2", "temperature", "0.5", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    double *cosines = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
    if (!first) first = cosines;
    const bool same = memcmp(first, cosines, N * N * sizeof *first) == 0;
    assert_int_equal(same, c < 4);
    if (c == 4) { /* another problem, but one about the same pairs */
      double own = 0;
      for (int i = 0; i < N; i++) own += cosines[i * (N + 1)] / N;
      assert_true(own > 0.5);
    }
    if (cosines != first) free(cosines);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  free(first);
  problem_free(&p);
}

/* The seed shuffles the batches: the same seed the same bytes, another seed another cut. */
static void seeds_choose_the_batches(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 7, 80, 6, 5, 4, 0.5, &p);
  static const char *const seeds[] = {"1", "1", "2"};
  unsigned char *bytes[3];
  size_t size[3];
  for (int k = 0; k < 3; k++) {
    unicon_options *options = support_options(s->ctx, "batch", "20", "iterations", "2", "seed",
                                              seeds[k], "temperature", "0.5", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    const char *path = scratch_path(s, "m.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    bytes[k] = support_slurp(path, &size[k]);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  const size_t tail = 400; /* the end of the weights, past all metadata */
  assert_memory_not_equal(bytes[0] + size[0] - tail, bytes[2] + size[2] - tail, tail);
  for (int k = 0; k < 3; k++) free(bytes[k]);
  problem_free(&p);
}

/* Rows in a narrow cone: the median distance alone would be too narrow for exp(1/width^2). */
static void expcos_takes_a_narrow_cone(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 8, 60, 6, 5, 4, 0.2, &p);
  for (int64_t i = 0; i < 60; i++) p.x[i * 6] += 300, p.y[i * 5] += 300;
  unicon_options *options = support_options(s->ctx, "kernel", "expcos", NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  double *cosine = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
  for (int64_t k = 0; k < 60 * 60; k++) assert_true(isfinite(cosine[k]));
  free(cosine);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* ---- what it says ------------------------------------------------------------------------- */

static void idle_options_are_announced(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 8, 40, 6, 5, 4, 0.5, &p);
  static const char *const idle[][5] = {
      {"temperature", "0.2", NULL, NULL, "temperature has no effect with 0 iterations"},
      {"damping", "plain", NULL, NULL, "damping has no effect"},
      {"ridge", "0.1", "metric", "none", "ridge has no effect"},
      {"val_fraction", "0.1", NULL, NULL, "val_fraction has no effect where nothing is chosen"},
      {"budget", "1", NULL, NULL, "budget has no effect where nothing is tried"},
      {"nu", "0.5", NULL, NULL, "nu has no effect without loss general"},
      {"margin", "0.5", NULL, NULL, "margin has no effect without loss triplet"},
      {"bias", "-3", NULL, NULL, "bias has no effect without loss siglip"},
      {"width", "2", "kernel", "angular", "width has no effect with a kernel that has no width"},
      {"landmarks", "9", "map", "linear", "landmarks has no effect without map nystrom"},
      {"features", "9", NULL, NULL, "features has no effect without map random"},
      {"refine_rate", "0.5", NULL, NULL, "refine_rate has no effect without refine"},
      {"tolerance", "0.5", NULL, NULL, "tolerance has no effect without iterations"},
      {"batch_order", "file", NULL, NULL, "batch_order has no effect without batches"},
      {"batch_average", "solution", NULL, NULL, "batch_average has no effect without batches"},
      {"nu", "2", "iterations", "1", "nu has no effect without loss general"},
      {"preset", "auto", "batch", "20", "preset auto chooses nothing beside"},
      {"loss", "moment", "iterations", "2", "iterations have no effect"}};
  for (size_t c = 0; c < sizeof idle / sizeof *idle; c++) {
    log_book book = {0};
    unicon_ctx_set_log(s->ctx, support_log, &book);
    unicon_options *options =
        support_options(s->ctx, idle[c][0], idle[c][1], idle[c][2], idle[c][3], NULL);
    unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options));
    assert_int_equal(book.count[UNICON_LOG_WARNING], 1);
    assert_non_null(strstr(book.last[UNICON_LOG_WARNING], idle[c][4]));
    unicon_options_destroy(options);
  }
  log_book book = {0};
  unicon_model *model = NULL;
  unicon_ctx_set_log(s->ctx, support_log, &book);
  unicon_options *held = support_options(s->ctx, "val_fraction", "0.3", "exponent", "auto", NULL);
  unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, NULL, held));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
  unicon_options_destroy(held);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  const unicon_data half[2] = {UNICON_DATA(.x = p.rows_x, .y = NULL),
                               UNICON_DATA(.x = NULL, .y = p.rows_y)};
  for (int k = 0; k < 2; k++) {
    assert_int_equal(unicon_fit(s->ctx, &data, &half[k], NULL, &model), UNICON_ERR_ARGUMENT);
    assert_int_equal(unicon_fit(s->ctx, &half[k], NULL, NULL, &model), UNICON_ERR_ARGUMENT);
  }
  unicon_options *file = support_options(s->ctx, "start", "m.safetensors", NULL);
  assert_int_equal(unicon_fit(s->ctx, &data, NULL, file, &model), UNICON_ERR_OPTION);
  assert_non_null(strstr(unicon_ctx_error(s->ctx), "start is \"m.safetensors\"; accepted: moment"));
  unicon_options_destroy(file);
  unicon_options *fast = support_options(s->ctx, NULL);
  CHECK_OK(s->ctx, unicon_fit(s->ctx, &data, NULL, fast, &model));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
  assert_true(book.count[UNICON_LOG_DEBUG] >= 2);
  unicon_model_destroy(model);
  CHECK_OK(s->ctx, unicon_fit(s->ctx, &data, &data, fast, &model));
  unicon_options_destroy(fast);
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "validation"));
  unicon_model_destroy(model);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(too_few_rows),
      SCRATCH_TEST(counts_must_agree),
      SCRATCH_TEST(rank_adapts_unless_given),
      SCRATCH_TEST(constant_data_is_a_sentence),
      SCRATCH_TEST(constant_data_without_centring),
      SCRATCH_TEST(extreme_sizes_without_normalize),
      SCRATCH_TEST(values_beyond_float32_are_named),
      SCRATCH_TEST(labels_make_no_list),
      SCRATCH_TEST(memory_limit_is_kept),
      SCRATCH_TEST(batch_of_everything_is_full),
      SCRATCH_TEST(seeds_choose_the_batches),
      SCRATCH_TEST(expcos_takes_a_narrow_cone),
      SCRATCH_TEST(idle_options_are_announced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
