/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a migration against their definitions, models of every direction through their file,
 * and what happens when memory or the patience of the caller runs out. */
#include "support.h"
#include "unicon/migrate.h"
#include "use/isotonic.h"
#include "use/likeness.h"
#include "use/neighbours.h"

/* ---- figures ------------------------------------------------------------------------------ */

/* Lists by hand: two of three graded answers at places 2 and 4. */
static void figures_are_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_pairs *judged = NULL;
  const int64_t query[] = {0, 0, 0}, row[] = {5, 6, 7},
                original[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const double grade[] = {3, 1, 2};
  const int64_t list[20] = {1, 5, 2, 7, 3, 4, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  double each[2 * UNICON__FIGURES];
  unicon__figures f;
  CHECK_OK(ctx, unicon_pairs_list(ctx, 2, 12, query, row, grade, 3, &judged));
  const unicon__jury jury = {.queries = 2, .items = 12, .judged = judged, .original = original};
  unicon__jury_judge(&jury, list, 10, each);
  CHECK_CLOSE(each[UNICON__OVERLAP], 2.0 / 3, 1e-12);
  const double best = 3 / log2(2) + 2 / log2(3) + 1 / log2(4);
  CHECK_CLOSE(each[UNICON__NDCG], (3 / log2(3) + 2 / log2(5)) / best, 1e-12);
  assert_true(isnan(each[UNICON__FIGURES])); /* the second query has no answer */
  unicon__figures_of(each, 2, &f);
  assert_int_equal(f.queries, 1);
  CHECK_CLOSE(f.value[UNICON__OVERLAP], 2.0 / 3, 1e-12);

  /* Items that were not drawn are no answers. */
  bool drawn[12];
  for (int i = 0; i < 12; i++) drawn[i] = i != 6;
  unicon__jury part = jury;
  part.drawn = drawn;
  unicon__jury_judge(&part, list, 10, each);
  CHECK_CLOSE(each[UNICON__OVERLAP], 1, 1e-12);
  CHECK_CLOSE(each[UNICON__NDCG], (3 / log2(3) + 2 / log2(5)) / (best - 1 / log2(4)), 1e-12);
  unicon_pairs_destroy(judged);
}

/* With labels of one set of rows a query is no answer to itself, and every other of its class is. */
static void queries_do_not_answer_themselves(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_pairs *judged = NULL;
  const int64_t label[] = {7, 8, 7, 8, 7, 8, 8, 8, 8, 8, 8, 8}, /* 0, 2 and 4 */
      original[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const int64_t list[10] = {0, 4, 1, 2, 3, 5, 6, 7, 8, 9};
  double each[UNICON__FIGURES];
  CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, 12, &judged));
  const unicon__jury jury = {.queries = 1, .items = 12, .judged = judged, .original = original};
  unicon__jury_judge(&jury, list, 10, each);
  CHECK_CLOSE(each[UNICON__OVERLAP], 1, 1e-12);
  CHECK_CLOSE(each[UNICON__NDCG], (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3)), 1e-12);
  unicon_pairs_destroy(judged);
}

/* Means, 1.96 standard errors, and paired differences. */
static void intervals_are_the_definition(void **state) {
  (void)state;
  const double a[] = {0.5, 0, 0.7, 0, 0.9, 0, NAN, NAN}, b[] = {0.4, 0, 0.7, 0, 0.5, 0, 1, 1};
  unicon__figures f;
  double gain, error;
  unicon__figures_of(a, 4, &f);
  assert_int_equal(f.queries, 3);
  CHECK_CLOSE(f.value[UNICON__OVERLAP], 0.7, 1e-12);
  const double half = 1.96 * sqrt((0.04 + 0.04) / 3 / 3);
  CHECK_CLOSE(f.low[UNICON__OVERLAP], 0.7 - half, 1e-12);
  CHECK_CLOSE(f.high[UNICON__OVERLAP], 0.7 + half, 1e-12);
  unicon__figures_gain(a, b, 4, UNICON__OVERLAP, &gain, &error);
  CHECK_CLOSE(gain, 0.5 / 3, 1e-12);
  CHECK_CLOSE(error, sqrt((0.01 + 0.16) / 3 / 3 - gain * gain / 3), 1e-12);
}

/* Nearest others in folds, as plain loops find them; an item is never its own answer. */
static void panels_search_fold_by_fold(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ITEMS = 90, D = 6, FOLDS = 3 };
  float *x = support_normals(3, ITEMS * D);
  for (int i = 0; i < ITEMS; i++) {
    double s = 0;
    for (int k = 0; k < D; k++) s += (double)x[i * D + k] * (double)x[i * D + k];
    for (int k = 0; k < D; k++) x[i * D + k] = (float)((double)x[i * D + k] / sqrt(s));
  }
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__panel panel = {.items = ITEMS, .folds = FOLDS, .queries = ITEMS, .self = true};
  double each[ITEMS * UNICON__FIGURES];
  unicon__figures f;
  CHECK_OK(ctx, unicon__panel_open(ctx, x, x, D, &panel));
  for (int i = 0; i < ITEMS; i++) {
    const int fold = i * FOLDS / ITEMS, first = fold * ITEMS / FOLDS;
    const int64_t *answer = panel.jury[fold].answer + (i - first) * UNICON__NEIGHBOURS;
    for (int t = 0; t < UNICON__NEIGHBOURS; t++) { /* fewer than ten others are nearer */
      int nearer = 0;
      double own = 0;
      const float *at = x + (first + answer[t]) * D;
      assert_true(first + answer[t] != i);
      for (int k = 0; k < D; k++) own += (double)at[k] * (double)x[i * D + k];
      for (int j = first; j < first + ITEMS / FOLDS; j++) {
        double score = 0;
        for (int k = 0; k < D; k++) score += (double)x[j * D + k] * (double)x[i * D + k];
        nearer += j != i && score > own;
      }
      assert_true(nearer == t);
    }
  }
  CHECK_OK(ctx, unicon__panel_rows(ctx, &panel, x, x, D, each, &f));
  CHECK_CLOSE(f.value[UNICON__OVERLAP], 1, 0);
  CHECK_CLOSE(f.value[UNICON__NDCG], 1, 1e-12);
  CHECK_CLOSE(f.low[UNICON__OVERLAP], 1, 0);

  /* Other items: the interval counts how queries differ and how folds do, by Student's t, which is
   * 4.303 for three folds and a little less in the series. */
  float *z = support_normals(4, ITEMS * D);
  unicon__figures plain;
  double mean[FOLDS] = {0}, middle = 0, square = 0;
  CHECK_OK(ctx, unicon__panel_rows(ctx, &panel, x, z, D, each, &f));
  unicon__figures_of(each, ITEMS, &plain);
  for (int i = 0; i < ITEMS; i++)
    mean[i * FOLDS / ITEMS] += each[i * UNICON__FIGURES + UNICON__OVERLAP] * FOLDS / ITEMS;
  for (int k = 0; k < FOLDS; k++) middle += mean[k] / FOLDS;
  for (int k = 0; k < FOLDS; k++) square += (mean[k] - middle) * (mean[k] - middle);
  const double own = sqrt(square / (FOLDS - 1) * (1.0 / FOLDS + 1.0 / (FOLDS - 1)));
  const double query = plain.high[UNICON__OVERLAP] - plain.value[UNICON__OVERLAP];
  const double half = f.high[UNICON__OVERLAP] - f.value[UNICON__OVERLAP];
  CHECK_CLOSE(f.value[UNICON__OVERLAP], middle, 1e-12);
  assert_true(own > 0 && half > hypot(query, 3.7 * own) && half < hypot(query, 4.31 * own));
  free(z);
  unicon__frame_close(ctx, frame);
  free(x);
}

static void top_items_are_the_largest(void **state) {
  (void)state;
  const float score[] = {0.1f, 0.9f, 0.5f, 0.9f, 0.3f, 0.7f};
  int64_t list[4];
  unicon__top_items(score, 0, 6, 1, 4, list);
  const int64_t want[] = {3, 5, 2, 4};
  assert_memory_equal(list, want, sizeof want);
  unicon__top_items(score, 0, 6, -1, 2, list); /* equal scores in order */
  assert_true(list[0] == 1 && list[1] == 3);
  unicon__top_items(score, 4, 2, 4, 3, list);
  assert_true(list[0] == 5 && list[1] == -1 && list[2] == -1);
}

/* ---- curves ------------------------------------------------------------------------------- */

/* The best of all curves that do not fall: no other, and no step of one pool, is nearer. */
static void isotonic_is_the_least_squares(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  const float x[] = {5, 1, 2, 4, 3, 6}, y[] = {4, 1, 3, 6, 2, 7};
  unicon__curve curve;
  CHECK_OK(ctx, unicon__isotonic(ctx, &ctx->arena, x, y, 6, &curve));
  /* 1; 3, 2 -> 2.5; 6, 4 -> 5; 7 */
  const double want[][2] = {{1, 1}, {2.5, 2.5}, {4.5, 5}, {6, 7}};
  assert_int_equal(curve.knots, 4);
  for (int k = 0; k < 4; k++) {
    CHECK_CLOSE(curve.knot[2 * k], want[k][0], 1e-6);
    CHECK_CLOSE(curve.knot[2 * k + 1], want[k][1], 1e-6);
  }
  CHECK_CLOSE(unicon__curve_at(&curve, 3.5), 3.75, 1e-6);
  CHECK_CLOSE(unicon__curve_at(&curve, 6.5), 1, 0);      /* outside as steep as from end to end, */
  CHECK_CLOSE(unicon__curve_at(&curve, 0.5), 0.4, 1e-6); /* but within -1 and 1 */
  unicon__frame_close(ctx, frame);
}

/* Many points become at most 64 knots of a curve that still never falls and follows them. */
static void curves_stay_short(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 5000 };
  unicon__block *frame = unicon__frame_open(ctx);
  float *x = support_floats(N), *y = support_floats(N);
  uint64_t seed = 6;
  for (int i = 0; i < N; i++) {
    x[i] = (float)support_uniform(&seed);
    y[i] = (float)(0.2 + 0.5 * (double)x[i] * (double)x[i] + 0.02 * support_normal(&seed));
  }
  unicon__curve curve;
  CHECK_OK(ctx, unicon__isotonic(ctx, &ctx->arena, x, y, N, &curve));
  assert_true(curve.knots > 10 && curve.knots <= UNICON__KNOTS);
  for (int64_t k = 1; k < curve.knots; k++) {
    assert_true(curve.knot[2 * k] > curve.knot[2 * k - 2]);
    assert_true(curve.knot[2 * k + 1] >= curve.knot[2 * k - 1]);
  }
  /* pools of 70 points or so: noise of .02 over their root, and the bend inside one */
  for (int t = 5; t < 95; t++)
    CHECK_CLOSE(unicon__curve_at(&curve, t / 100.0), 0.2 + 0.5 * t * t / 1e4, 0.02);
  assert_true(unicon__curve_at(&curve, 9) <= 1 && unicon__curve_at(&curve, -9) >= -1);
  free(x);
  free(y);
  unicon__frame_close(ctx, frame);
}

/* ---- migration ---------------------------------------------------------------------------- */

enum { PAIRS = 240, DX = 12, DY = 16, LATENT = 6 };

static unicon_options *options_into(unicon_ctx *ctx, const char *into) {
  unicon_options *options = NULL;
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "into", into));
  return options;
}

static unicon_migration *migrated(unicon_ctx *ctx, const problem *p, const char *into) {
  unicon_options *options = options_into(ctx, into);
  unicon_migration *made = NULL;
  const unicon_migration_data data =
      UNICON_MIGRATION_DATA(.old_rows = p->rows_x, .new_rows = p->rows_y);
  CHECK_OK(ctx, unicon_migrate(ctx, &data, options, &made));
  unicon_options_destroy(options);
  return made;
}

/* Every direction: saved, loaded, copied by a rebalance of the shared one, embedded, one by one. */
static void models_go_through_their_file(void **state) {
  scratch *s = *state;
  static const char *const into[] = {"old", "new", "shared"}, *const direction[] = {"new-to-old",
                                                                                    "old-to-new",
                                                                                    "shared"};
  problem p;
  problem_make(s->ctx, 4, PAIRS, DX, DY, LATENT, 0.2, &p);
  for (int t = 0; t < 3; t++) {
    unicon_migration *made = migrated(s->ctx, &p, into[t]);
    const unicon_model *model = unicon_migration_model(made);
    unicon_model *loaded = NULL;
    const char *path = scratch_path(s, "m.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &loaded));
    assert_string_equal(unicon_model_meta(loaded, "direction"), direction[t]);
    for (int side = 0; side < 2; side++) {
      const int64_t r = unicon_model_rank(model), d = side ? DY : DX;
      float *a = support_floats(PAIRS * r), *b = support_floats(PAIRS * r);
      float one[64], room[1024];
      unicon_view view = UNICON_VIEW(.rows = side ? p.rows_y : p.rows_x, .model = model,
                                     .side = (unicon_side)side);
      CHECK_OK(s->ctx, unicon_embed(s->ctx, &view, 0, PAIRS, UNICON_FORM_UNIT, a));
      view.model = loaded;
      CHECK_OK(s->ctx, unicon_embed(s->ctx, &view, 0, PAIRS, UNICON_FORM_UNIT, b));
      assert_memory_equal(a, b, (size_t)(PAIRS * r) * sizeof *a);
      assert_true(unicon_embed_one_room(loaded, (unicon_side)side) <= 1024 && r <= 64);
      assert_int_equal(
          unicon_embed_one(loaded, (unicon_side)side, (side ? p.y : p.x) + 3 * d, room, one),
          UNICON_OK);
      for (int64_t k = 0; k < r; k++) CHECK_CLOSE(one[k], a[3 * r + k], 1e-4);
      CHECK_OK(s->ctx, unicon_model_check_rows(s->ctx, loaded, (unicon_side)side, view.rows));
      free(a);
      free(b);
    }
    float score[3] = {0.2f, 0.5f, 0.8f}, again[3] = {0.2f, 0.5f, 0.8f};
    CHECK_OK(s->ctx, unicon_model_calibrate(s->ctx, model, 1, 3, score));
    CHECK_OK(s->ctx, unicon_model_calibrate(s->ctx, loaded, 1, 3, again));
    assert_memory_equal(score, again, sizeof score);
    assert_true(score[0] <= score[1] && score[1] <= score[2]);
    unicon_model_destroy(loaded);
    unicon_migration_destroy(made);
  }
  problem_free(&p);
}

/* The same bytes whatever the number of threads. */
static void threads_change_nothing(void **state) {
  scratch *s = *state;
  problem p;
  size_t size[3];
  unsigned char *bytes[3];
  problem_make(s->ctx, 5, PAIRS, DX, DY, LATENT, 0.2, &p);
  for (int t = 0; t < 3; t++) {
    const char *path = scratch_path(s, "t.safetensors");
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", t == 0 ? "1" : t == 1 ? "2" : "3"));
    unicon_migration *made = migrated(s->ctx, &p, "new");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, unicon_migration_model(made), path));
    bytes[t] = support_slurp(path, &size[t]);
    unicon_migration_destroy(made);
    assert_int_equal(size[t], size[0]);
    assert_memory_equal(bytes[t], bytes[0], size[0]);
  }
  for (int t = 0; t < 3; t++) free(bytes[t]);
  problem_free(&p);
}

/* More pairs than landmarks: the rest of the pairs still teaches, and the map keeps few rows. */
static void landmarks_are_a_part(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 6, PAIRS, DX, DY, LATENT, 0.2, &p);
  unicon_options *options = options_into(s->ctx, "new");
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "anchors", "64"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "index_rows", "100000"));
  unicon_migration *made = NULL;
  const unicon_migration_data data =
      UNICON_MIGRATION_DATA(.old_rows = p.rows_x, .new_rows = p.rows_y);
  CHECK_OK(s->ctx, unicon_migrate(s->ctx, &data, options, &made));
  assert_string_equal(unicon_model_meta(unicon_migration_model(made), "pairs"), "240");
  assert_non_null(strstr(unicon_migration_json(made), "\"index\":{\"rows\":100000"));
  unicon_migration_destroy(made);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "anchors", "30"));
  CHECK_OK(s->ctx, unicon_migrate(s->ctx, &data, options, &made)); /* 120 of the pairs */
  assert_string_equal(unicon_model_meta(unicon_migration_model(made), "pairs"), "120");
  unicon_migration_destroy(made);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* The number behind a name behind others in the decision. */
static double number_in(const unicon_migration *made, const char *const names[], int count) {
  const char *at = unicon_migration_json(made);
  for (int k = 0; k < count; k++) {
    at = strstr(at, names[k]);
    assert_non_null(at);
    at += strlen(names[k]);
  }
  return strtod(at, NULL);
}

/* Each query is an item, and that is its one right answer: embedding all anew finds it first, also
 * where half of the pairs are drawn. The scores have their curves. */
static void judged_items_are_drawn(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  static const char *const ndcg[] = {"\"way\":\"reembed\"", "\"ndcg@10\":", "\"value\":"},
                           *const asked[] = {"\"way\":\"reembed\"", "\"queries\":"},
                           *const off[] = {"\"scores\":", "\"new\":", "\"off_before\":"};
  problem p;
  problem_make(ctx, 6, PAIRS, DX, DY, LATENT, 0.2, &p);
  unicon_options *options = options_into(ctx, "new");
  CHECK_OK(ctx, unicon_options_set(ctx, options, "anchors", "30")); /* 120 of the pairs */
  for (int t = 0; t < 2; t++) {
    const int64_t queries = t == 0 ? 40 : PAIRS;
    int64_t row[PAIRS];
    unicon_rows *asks = support_rows(ctx, "q.npy", p.y, queries, DY);
    unicon_pairs *judged = NULL;
    unicon_migration *made = NULL;
    for (int64_t q = 0; q < PAIRS; q++) row[q] = q;
    CHECK_OK(ctx, unicon_pairs_list(ctx, queries, PAIRS, row, row, NULL, queries, &judged));
    const unicon_migration_data data =
        UNICON_MIGRATION_DATA(.old_rows = p.rows_x, .new_rows = p.rows_y, .queries_new = asks,
                              .judgements = judged);
    CHECK_OK(ctx, unicon_migrate(ctx, &data, options, &made));
    CHECK_CLOSE(number_in(made, ndcg, 3), 1, 1e-6);
    CHECK_CLOSE(number_in(made, asked, 2), t == 0 ? 40 : 120, 0);
    assert_true(number_in(made, off, 3) > 0);
    float score = 0.5f;
    CHECK_OK(ctx, unicon_model_calibrate(ctx, unicon_migration_model(made), 1, 1, &score));
    unicon_migration_destroy(made);
    unicon_pairs_destroy(judged);
    unicon_rows_close(asks);
  }
  unicon_options_destroy(options);
  problem_free(&p);
}

static int stop_at_once(void *user, const char *phase, double done, double left) {
  (void)user;
  (void)phase;
  (void)done;
  (void)left;
  return 1;
}

static void refuses(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  problem p, few;
  unicon_migration *made = NULL;
  problem_make(ctx, 7, PAIRS, DX, DY, LATENT, 0.2, &p);
  problem_make(ctx, 7, 80, DX, DY, LATENT, 0.2, &few);
  const unicon_migration_data data =
      UNICON_MIGRATION_DATA(.old_rows = p.rows_x, .new_rows = p.rows_y);
  unicon_migration_data wrong = UNICON_MIGRATION_DATA(.old_rows = p.rows_x);
  scratch_failed(s, unicon_migrate(ctx, &wrong, NULL, &made), UNICON_ERR_ARGUMENT, "old", "new");
  wrong.new_rows = few.rows_y;
  scratch_failed(s, unicon_migrate(ctx, &wrong, NULL, &made), UNICON_ERR_SHAPE, "240", "80");
  wrong = UNICON_MIGRATION_DATA(.old_rows = few.rows_x, .new_rows = few.rows_y);
  scratch_failed(s, unicon_migrate(ctx, &wrong, NULL, &made), UNICON_ERR_DATA, "80 items", "100");
  wrong = data;
  wrong.queries_old = few.rows_x;
  scratch_failed(s, unicon_migrate(ctx, &wrong, NULL, &made), UNICON_ERR_ARGUMENT, "alone", "new");
  wrong.queries_new = few.rows_x;
  scratch_failed(s, unicon_migrate(ctx, &wrong, NULL, &made), UNICON_ERR_SHAPE, "12", "16");
  assert_null(made);
  assert_int_equal(unicon_migrate(ctx, NULL, NULL, &made), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_migrate(ctx, &data, NULL, NULL), UNICON_ERR_ARGUMENT);
  unicon_ctx_set_progress(ctx, stop_at_once, NULL);
  assert_int_equal(unicon_migrate(ctx, &data, NULL, &made), UNICON_ERR_CANCELLED);
  unicon_ctx_set_progress(ctx, NULL, NULL);
  assert_null(unicon_migration_model(NULL));
  assert_null(unicon_migration_json(NULL));
  unicon_migration_destroy(NULL);
  problem_free(&p);
  problem_free(&few);
}

static unicon_status try_migrate(scratch *s, void *user) {
  const problem *p = user;
  unicon_migration *made = NULL;
  const unicon_migration_data data =
      UNICON_MIGRATION_DATA(.old_rows = p->rows_x, .new_rows = p->rows_y);
  const unicon_status status = unicon_migrate(s->ctx, &data, NULL, &made);
  unicon_migration_destroy(made);
  return status;
}

static void memory_may_run_out(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 8, 120, 5, 6, 4, 0.2, &p);
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, try_migrate, &p) >
              50);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(figures_are_the_definition),
      SCRATCH_TEST(queries_do_not_answer_themselves),
      cmocka_unit_test(intervals_are_the_definition),
      SCRATCH_TEST(panels_search_fold_by_fold),
      cmocka_unit_test(top_items_are_the_largest),
      SCRATCH_TEST(isotonic_is_the_least_squares),
      SCRATCH_TEST(curves_stay_short),
      SCRATCH_TEST(models_go_through_their_file),
      SCRATCH_TEST(threads_change_nothing),
      SCRATCH_TEST(landmarks_are_a_part),
      SCRATCH_TEST(judged_items_are_drawn),
      SCRATCH_TEST(refuses),
      SCRATCH_TEST(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
