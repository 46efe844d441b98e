/* SPDX-License-Identifier: Apache-2.0 */
/* Search against a full sort in double, and embed against the formula. */
#include "support.h"

typedef struct hit {
  double score;
  int64_t id;
} hit;

static int by_score_then_row(const void *a, const void *b) {
  const hit *left = a, *right = b;
  if (left->score != right->score) return left->score < right->score ? 1 : -1;
  return (left->id > right->id) - (left->id < right->id);
}

/* The rows as the library makes them unit, so that exact ties stay exact. */
static float *unit_rows(unicon_ctx *ctx, const unicon_rows *rows) {
  const int64_t n = unicon_rows_count(rows), d = unicon_rows_width(rows);
  float *z = support_floats(n * d);
  CHECK_OK(ctx, unicon_embed(ctx, &(unicon_view){.rows = rows, .model = NULL, .side = UNICON_X}, 0,
                             n, 1, z));
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += (double)z[i * d + k] * (double)z[i * d + k];
    CHECK_CLOSE(sum, 1, 5e-7);
  }
  return z;
}

static void check_search(unicon_ctx *ctx, const float *queries, int64_t n_q, const float *base,
                         int64_t n, int64_t d, int64_t k) {
  unicon_rows *q = support_rows(ctx, "queries", queries, n_q, d);
  unicon_rows *b = support_rows(ctx, "base", base, n, d);
  float *zq = unit_rows(ctx, q), *zb = unit_rows(ctx, b), *scores = support_floats(n_q * k);
  int64_t *ids = calloc((size_t)(n_q * k), sizeof *ids);
  int64_t *again = calloc((size_t)(n_q * k), sizeof *again);
  hit *all = calloc((size_t)n, sizeof *all);
  const unicon_view vq = {.rows = q, .model = NULL, .side = UNICON_X},
                    vb = {.rows = b, .model = NULL, .side = UNICON_Y};
  unicon__ctx_set_threads(ctx, 1);
  CHECK_OK(ctx, unicon_search(ctx, &vq, &vb, k, ids, scores));
  for (int64_t i = 0; i < n_q; i++) {
    for (int64_t j = 0; j < n; j++) {
      all[j] = (hit){0, j};
      for (int64_t t = 0; t < d; t++) all[j].score += (double)zq[i * d + t] * (double)zb[j * d + t];
    }
    qsort(all, (size_t)n, sizeof *all, by_score_then_row);
    for (int64_t t = 0; t < k; t++) {
      assert_int_equal(ids[i * k + t], t < n ? all[t].id : -1);
      if (t < n) CHECK_CLOSE(scores[i * k + t], all[t].score, 1e-7);
      if (t >= n) assert_true(scores[i * k + t] == -INFINITY);
    }
  }
  float *more = support_floats(n_q * k);
  unicon__ctx_set_threads(ctx, 3);
  CHECK_OK(ctx, unicon_search(ctx, &vq, &vb, k, again, more));
  assert_memory_equal(ids, again, (size_t)(n_q * k) * sizeof *ids);
  assert_memory_equal(scores, more, (size_t)(n_q * k) * sizeof *scores);
  unicon_rows_close(q);
  unicon_rows_close(b);
  free(zq);
  free(zb);
  free(scores);
  free(more);
  free(ids);
  free(again);
  free(all);
}

static void search_is_exact(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t cases[][4] = {{1, 1, 1, 1},       {1, 50, 8, 3},     {130, 40, 5, 40},
                                     {20, 7, 3, 12},     {3, 9000, 16, 10}, {140, 4200, 4, 5},
                                     {3, 4200, 1100, 10}}; /* two blocks of the base */
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const int64_t *s = cases[c];
    float *q = support_normals(c, s[0] * s[2]), *b = support_normals(c + 50, s[1] * s[2]);
    check_search(ctx, q, s[0], b, s[1], s[2], s[3]);
    free(q);
    free(b);
  }
}

/* Rows with entries +-1/2 in 4 of `width` dimensions. */
static float *signs(uint64_t seed, int64_t n, int64_t width) {
  float *z = support_normals(seed, n * width);
  for (int64_t k = 0; k < n * width; k++) z[k] = k % width >= 4 ? 0 : z[k] < 0 ? -0.5f : 0.5f;
  return z;
}

/* 16 different rows, so nearly everything is a tie, also across the parts of the base that threads
 * have for themselves and, with 1050 dimensions, across blocks of 4096 rows. */
static void equal_scores_come_in_row_order(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *q = signs(1, 9, 1050), *b = signs(2, 8300, 1050);
  check_search(ctx, q, 9, b, 8300, 1050, 700);
  free(q);
  free(b);
  q = signs(1, 30, 4);
  b = signs(2, 8300, 4);
  check_search(ctx, q, 30, b, 8300, 4, 700);
  for (int64_t k = 0; k < 300 * 4; k++) b[k] = 0.5f; /* all the same */
  check_search(ctx, q, 30, b, 300, 4, 10);
  free(q);
  free(b);
}

/* Rows of form QUERY and INDEX are taken as they are, so their products can be of any size: biases
 * that float32 products hardly see beside the rest, and products beyond float32. */
static void rows_of_any_length_are_searched_exactly(void **state) {
  enum { Q = 20, B = 3000, D = 6, K = 5 };
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double scales[][2] = {{1, 3e5}, {1e25, 1}, {1e-25, 1e-3}};
  for (size_t c = 0; c < 3; c++) {
    float *q = support_normals(1, Q * (D + 1)), *b = support_normals(2, B * (D + 1));
    for (int64_t k = 0; k < Q * (D + 1); k++)
      q[k] = k % (D + 1) == D ? 1 : (float)(q[k] * scales[c][0]);
    for (int64_t k = 0; k < B * (D + 1); k++)
      b[k] = k % (D + 1) == D ? (float)(scales[c][1] + 1e-6 * b[k]) : (float)(b[k] * scales[c][0]);
    unicon_rows *rows_q = support_rows(ctx, "q", q, Q, D + 1);
    unicon_rows *rows_b = support_rows(ctx, "b", b, B, D + 1);
    const unicon_view queries = {.rows = rows_q, .form = UNICON_FORM_QUERY};
    const unicon_view base = {.rows = rows_b, .side = UNICON_Y, .form = UNICON_FORM_INDEX};
    int64_t ids[Q * K], answer[Q], label[Q] = {0};
    float scores[Q * K];
    hit all[B];
    unicon_classify_result result;
    CHECK_OK(ctx, unicon_search(ctx, &queries, &base, K, ids, scores));
    CHECK_OK(ctx, unicon_classify(ctx, &queries, label, &base, answer, NULL, &result));
    for (int64_t i = 0; i < Q; i++) {
      for (int64_t j = 0; j < B; j++)
        all[j] = (hit){support_dot(q + i * (D + 1), b + j * (D + 1), D + 1), j};
      qsort(all, B, sizeof *all, by_score_then_row);
      for (int64_t t = 0; t < K; t++) assert_int_equal(ids[i * K + t], all[t].id);
      assert_int_equal(answer[i], all[0].id);
    }
    unicon_rows_close(rows_b);
    unicon_rows_close(rows_q);
    free(b);
    free(q);
  }
}

static void misuse_is_a_sentence(void **state) {
  scratch *s = *state;
  float data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, scores[8];
  int64_t ids[8];
  unicon_rows *narrow = support_rows(s->ctx, "narrow", data, 4, 3);
  unicon_rows *wide = support_rows(s->ctx, "wide", data, 2, 6);
  const unicon_view a = {.rows = narrow, .model = NULL, .side = UNICON_X},
                    b = {.rows = wide, .model = NULL, .side = UNICON_Y};
  scratch_failed(s, unicon_search(s->ctx, &a, &b, 1, ids, scores), UNICON_ERR_SHAPE, "narrow has 3",
                 "wide has 6");
  scratch_failed(s, unicon_search(s->ctx, &a, &a, 0, ids, scores), UNICON_ERR_ARGUMENT, "k is 0",
                 "1 or more");
  scratch_failed(s, unicon_search(s->ctx, &a, &a, 1, NULL, scores), UNICON_ERR_ARGUMENT,
                 "ids is NULL", "");
  scratch_failed(s, unicon_search(s->ctx, &a, &a, 1, ids, NULL), UNICON_ERR_ARGUMENT,
                 "scores is NULL", "");
  scratch_failed(s, unicon_search(s->ctx, &a, NULL, 1, ids, scores), UNICON_ERR_ARGUMENT, "view",
                 "rows");
  scratch_failed(
      s,
      unicon_embed(s->ctx, &(unicon_view){.rows = narrow, .model = NULL, .side = (unicon_side)7}, 0,
                   1, 0, scores),
      UNICON_ERR_ARGUMENT, "side is 7", "");
  const int64_t ranges[][2] = {{0, 5}, {4, 1}, {-1, 2}, {1, -1}, {5, INT64_MAX}, {INT64_MAX, 1}};
  for (size_t c = 0; c < sizeof ranges / sizeof *ranges; c++)
    scratch_failed(s, unicon_embed(s->ctx, &a, ranges[c][0], ranges[c][1], 0, scores),
                   UNICON_ERR_ARGUMENT, "narrow", "has 4");
  CHECK_OK(s->ctx, unicon_embed(s->ctx, &a, 4, 0, 0, scores)); /* nothing, at the end */
  CHECK_OK(s->ctx, unicon_embed(s->ctx, &a, 3, 1, 0, scores));
  assert_memory_equal(scores, data + 9, 3 * sizeof *data);
  assert_int_equal(unicon_embed(NULL, &a, 0, 1, 0, scores), UNICON_ERR_ARGUMENT);
  unicon_rows_close(narrow);
  unicon_rows_close(wide);
}

/* Which rows a view can use depends on what its model does with them. */
static void usable_rows_keep_their_numbers(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 2, 60, 5, 4, 3, 0.1, &p);
  unicon_options *raw = support_options(s->ctx, "normalize", "off", NULL);
  unicon_model *unit = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, NULL),
               *plain = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, raw);
  for (int k = 0; k < 5; k++) p.x[7 * 5 + k] = 0;
  p.x[20 * 5 + 2] = NAN;
  const struct {
    const unicon_model *model;
    int64_t count, after; /* how many there are, and the number of row 19 of them */
  } cases[] = {{unit, 58, 21}, {NULL, 58, 21}, {plain, 59, 19}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const unicon_view view = {.rows = p.rows_x, .model = cases[c].model, .side = UNICON_X};
    unicon_rows *rows = NULL;
    int64_t number[60];
    float got[5];
    CHECK_OK(s->ctx, unicon_rows_usable(s->ctx, &view, number, &rows));
    assert_int_equal(unicon_rows_count(rows), cases[c].count);
    assert_int_equal(number[19], cases[c].after);
    for (int64_t i = 0; i < cases[c].count; i++) {
      CHECK_OK(s->ctx, unicon_rows_read(s->ctx, rows, i, 1, got));
      assert_memory_equal(got, p.x + number[i] * 5, sizeof got);
    }
    unicon_rows_close(rows);
    CHECK_OK(s->ctx, unicon_rows_usable(s->ctx, &view, NULL, &rows));
    unicon_rows_close(rows);
  }
  unicon_rows *rows = (unicon_rows *)(void *)s;
  const unicon_view view = {.rows = p.rows_x, .model = unit, .side = UNICON_X},
                    wrong = {.rows = p.rows_x, .model = unit, .side = UNICON_Y};
  scratch_failed(s, unicon_rows_usable(s->ctx, &view, NULL, NULL), UNICON_ERR_ARGUMENT,
                 "out is NULL", "");
  scratch_failed(s, unicon_rows_usable(s->ctx, &wrong, NULL, &rows), UNICON_ERR_SHAPE, "5 values",
                 "takes 4");
  assert_null(rows);
  assert_int_equal(unicon_rows_usable(NULL, &view, NULL, &rows), UNICON_ERR_ARGUMENT);
  for (int k = 0; k < 60 * 5; k++) p.x[k] = 0;
  scratch_failed(s, unicon_rows_usable(s->ctx, &view, NULL, &rows), UNICON_ERR_DATA,
                 "none of its 60 rows", "zero");
  assert_null(rows);
  unicon_model_destroy(plain);
  unicon_model_destroy(unit);
  unicon_options_destroy(raw);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(search_is_exact),
      SCRATCH_TEST(equal_scores_come_in_row_order),
      SCRATCH_TEST(rows_of_any_length_are_searched_exactly),
      SCRATCH_TEST(misuse_is_a_sentence),
      SCRATCH_TEST(usable_rows_keep_their_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
