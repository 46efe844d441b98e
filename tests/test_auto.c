/* SPDX-License-Identifier: Apache-2.0 */
/* Preset auto, weights of batches, shared encoders: the choices that held-out pairs make. */
#include "features/dataset.h"
#include "fit/part.h"
#include "figures.h"
#include "scratch.h"
#include "support.h"

enum { N = 300, HELD = 120, DX = 12, DY = 10 };

/* Training and held-out rows of one problem. */
typedef struct cut {
  problem p;
  unicon_rows *x, *y, *held_x, *held_y;
} cut;

static void cut_make(unicon_ctx *ctx, uint64_t seed, cut *c) {
  problem_make(ctx, seed, N + HELD, DX, DY, 6, 0.6, &c->p);
  c->x = support_rows(ctx, "x", c->p.x, N, DX);
  c->y = support_rows(ctx, "y", c->p.y, N, DY);
  c->held_x = support_rows(ctx, "held x", c->p.x + N * DX, HELD, DX);
  c->held_y = support_rows(ctx, "held y", c->p.y + N * DY, HELD, DY);
}

static void cut_free(cut *c) {
  unicon_rows_close(c->held_y);
  unicon_rows_close(c->held_x);
  unicon_rows_close(c->y);
  unicon_rows_close(c->x);
  problem_free(&c->p);
}

/* (mrr + hit@10) / 2, mean of both directions, through the public evaluation. */
static double score_of(unicon_ctx *ctx, const unicon_model *model, const unicon_rows *x,
                       const unicon_rows *y) {
  figures m[2];
  CHECK_OK(ctx, figures_evaluate(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
                                 &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), NULL,
                                 NULL, &m[0], &m[1]));
  return (m[0].value[UNICON__MRR] + m[1].value[UNICON__MRR] + m[0].value[UNICON__HIT_10] +
          m[1].value[UNICON__HIT_10]) /
         4;
}

/* Losses that refine cannot use leave auto without refine, not without a fit. */
static void every_loss_goes_with_auto(void **state) {
  scratch *s = *state;
  static const char *const losses[] = {"spectral", "moment", "siglip"};
  cut c;
  cut_make(s->ctx, 9, &c);
  for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
    unicon_options *options = NULL;
    CHECK_OK(s->ctx, unicon_options_create(s->ctx, &options));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "loss", losses[k]));
    unicon_model *model = support_fit(s->ctx, c.x, c.y, NULL, options);
    assert_true(score_of(s->ctx, model, c.held_x, c.held_y) > 0.3);
    if (k < 2) assert_string_equal(unicon_model_meta(model, "option.refine"), "0");
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  cut_free(&c);
}

/* On several splits the choice is made with a few landmarks; the model that follows has all rows,
 * and its metadata say so. */
static void choice_leaves_the_map_alone(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 31, 300, 12, 10, 6, 0.6, &p);
  unicon_options *options = NULL;
  CHECK_OK(s->ctx, unicon_options_create(s->ctx, &options));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "kernel", "angular"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "refine", "0"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "ridge", "0.01"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "metric", "whiten"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "8"));
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  int64_t values = 0;
  free(support_tensor(s, model, "x.landmarks", &values));
  assert_int_equal(values, 300 * 12);
  assert_string_equal(unicon_model_meta(model, "x.map"), "exact");
  assert_string_equal(unicon_model_meta(model, "option.map"), "auto");
  assert_string_equal(unicon_model_meta(model, "option.landmarks"), "2000");
  assert_string_equal(unicon_model_meta(model, "auto_folds"), "3");
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* The score that is reported is that of the model that is returned, and no candidate was better:
 * the closed form with default settings is one of them. */
static void reported_score_is_the_models(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    cut c;
    unicon_model *model = NULL;
    cut_make(ctx, seed, &c);
    const unicon_data train = UNICON_DATA(.x = c.x, .y = c.y),
                      held = UNICON_DATA(.x = c.held_x, .y = c.held_y);
    CHECK_OK(ctx, unicon_fit(ctx, &train, &held, NULL, &model));
    const double reported = atof(unicon_model_meta(model, "auto_score"));
    assert_non_null(unicon_model_meta(model, "auto_refine_log"));
    /* six digits are noted, and ties are broken by a millionth of the margin */
    CHECK_CLOSE(score_of(ctx, model, c.held_x, c.held_y), reported, 3e-6);
    unicon_model *fast = support_fit(ctx, c.x, c.y, NULL, NULL);
    assert_true(reported >= score_of(ctx, fast, c.held_x, c.held_y) - 0.01);
    assert_non_null(strstr(unicon_model_meta(model, "auto_tried"), "angular"));
    unicon_model_destroy(fast);
    unicon_model_destroy(model);
    cut_free(&c);
  }
}

static void given_options_stay(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  cut c;
  unicon_model *model = NULL;
  cut_make(ctx, 4, &c);
  unicon_options *options = support_options(ctx, "preset", "auto", "ridge", "0.01234", "kernel",
                                            "linear", "rank", "5", "refine", "0", NULL);
  const unicon_data train = UNICON_DATA(.x = c.x, .y = c.y);
  CHECK_OK(ctx, unicon_fit(ctx, &train, NULL, options, &model));
  assert_string_equal(unicon_model_meta(model, "option.ridge"), "0.01234");
  assert_string_equal(unicon_model_meta(model, "ridge"), "0.01234 0.01234"); /* all its digits */
  assert_string_equal(unicon_model_meta(model, "option.kernel"), "linear");
  assert_int_equal(unicon_model_rank(model), 5);
  assert_null(strstr(unicon_model_meta(model, "auto_tried"), "angular"));
  assert_null(unicon_model_meta(model, "refine_best_epoch"));
  assert_string_equal(unicon_options_get(options, "metric"), "whiten"); /* the caller's stay */
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  cut_free(&c);
}

/* The certificate of a model that auto made: sigma_{r+1} / sigma_r of a cut spectrum. */
static void the_gap_is_noted(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  cut c;
  unicon_model *model = NULL;
  cut_make(ctx, 4, &c);
  unicon_options *options =
      support_options(ctx, "preset", "auto", "kernel", "linear", "rank", "3", "refine", "0", NULL);
  const unicon_data train = UNICON_DATA(.x = c.x, .y = c.y),
                    held = UNICON_DATA(.x = c.held_x, .y = c.held_y);
  CHECK_OK(ctx, unicon_fit(ctx, &train, &held, options, &model));
  const double gap = atof(unicon_model_meta(model, "spectral_gap"));
  assert_true(gap > 0.3 && gap < 1);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  cut_free(&c);
}

/* Epochs that are given are the most that are tried: the model is that of the choice. */
static void given_epochs_are_the_most(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  cut c;
  cut_make(ctx, 4, &c);
  unicon_options *options =
      support_options(ctx, "preset", "auto", "refine", "40", "refine_rate", "1", NULL);
  unicon_model *model = support_fit(ctx, c.x, c.y, NULL, options);
  const char *chosen = strstr(unicon_model_meta(model, "auto_chosen"), "refine ");
  const int epochs = chosen ? atoi(chosen + strlen("refine ")) : 0;
  assert_in_range(epochs, 0, 39); /* so long a step overfits 300 rows */
  assert_int_equal(atoi(unicon_model_meta(model, "option.refine")), epochs);
  const char *log = unicon_model_meta(model, "refine_loss_log");
  int noted = 0;
  for (char *end = NULL; log && *log; log = end, noted++) strtod(log, &end);
  assert_int_equal(noted, epochs);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  cut_free(&c);
}

/* A rank that all rows allow is fine although a split, or a few landmarks, would not reach it; with
 * validation rows a kernel whose landmarks do not reach it is left out. */
static void given_rank_is_that_of_all_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  unicon_model *model = NULL;
  problem_make(ctx, 7, 66, 60, 60, 6, 0.6, &p);
  unicon_options *options = support_options(ctx, "preset", "auto", "rank", "60", NULL);
  model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_int_equal(unicon_model_rank(model), 60);
  assert_non_null(strstr(unicon_model_meta(model, "auto_chosen"), "rank 60"));
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  log_book book = {0};
  unicon_ctx_set_log(ctx, support_log, &book);
  options = support_options(ctx, "preset", "auto", "rank", "60", "landmarks", "30", NULL);
  CHECK_OK(ctx, unicon_fit(ctx, &data, &data, options, &model));
  assert_int_equal(unicon_model_rank(model), 60);
  assert_non_null(strstr(unicon_model_meta(model, "auto_chosen"), "kernel linear"));
  unicon_model_destroy(model);
  CHECK_OK(ctx, unicon_options_set(ctx, options, "rank", "61"));
  assert_int_equal(unicon_fit(ctx, &data, &data, options, &model), UNICON_ERR_DATA);
  /* What no kernel has is refused before the first is tried. */
  book.count[UNICON_LOG_INFO] = 0;
  CHECK_OK(ctx, unicon_options_set(ctx, options, "rank", "66"));
  assert_int_equal(unicon_fit(ctx, &data, &data, options, &model), UNICON_ERR_DATA);
  assert_non_null(strstr(unicon_ctx_error(ctx), "66 rows of x and 66 of y allow at most 65"));
  assert_int_equal(book.count[UNICON_LOG_INFO], 0);
  CHECK_OK(ctx, unicon_options_set(ctx, options, "rank", "full"));
  CHECK_OK(ctx, unicon_fit(ctx, &data, NULL, options, &model));
  assert_in_range(unicon_model_rank(model), 29, 60);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* Few rows on one side: rows of the other are held out, and the choice is made all the same. Where
 * nothing can be held out, as with three groups of which one has most rows, a warning says so. */
static void few_rows_of_a_side_are_no_error(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    int64_t n_x, n_y;
    const char *warning;
  } cases[] = {{400, 5, "x rows alone are held out"}, {4, 80, "y rows alone are held out"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int labels = 0; labels < 2; labels++) {
      const int64_t n_x = cases[c].n_x, n_y = cases[c].n_y, few = n_x < n_y ? n_x : n_y;
      float *x = support_normals(3, n_x * 6), *y = support_normals(4, n_y * 5);
      int64_t label[2][400];
      for (int64_t i = 0; i < 400; i++) label[0][i] = label[1][i] = i % few;
      for (int64_t i = 0; i < n_x; i++) x[i * 6 + i % few] += 3;
      for (int64_t j = 0; j < n_y; j++) y[j * 5 + j % few] += 3;
      unicon_rows *rows_x = support_rows(ctx, "x", x, n_x, 6);
      unicon_rows *rows_y = support_rows(ctx, "y", y, n_y, 5);
      unicon_pairs *pairs = NULL;
      int64_t place[400], partner[400];
      for (int64_t k = 0; k < 400; k++) {
        place[k] = n_x > n_y ? k : k % few;
        partner[k] = n_x > n_y ? k % few : k;
      }
      if (labels)
        CHECK_OK(ctx, unicon_pairs_labels(ctx, label[0], n_x, label[1], n_y, &pairs));
      else
        CHECK_OK(ctx, unicon_pairs_list(ctx, n_x, n_y, place, partner, NULL, n_x > n_y ? n_x : n_y,
                                        &pairs));
      log_book book = {0};
      unicon_model *model = NULL;
      unicon_ctx_set_log(ctx, support_log, &book);
      CHECK_OK(ctx, unicon_fit(ctx, &UNICON_DATA(.x = rows_x, .y = rows_y, .pairs = pairs), NULL,
                               NULL, &model));
      assert_non_null(strstr(book.last[UNICON_LOG_WARNING], cases[c].warning));
      assert_true(atof(unicon_model_meta(model, "auto_score")) > 0.6);
      unicon_model_destroy(model);
      unicon_pairs_destroy(pairs);
      unicon_rows_close(rows_y);
      unicon_rows_close(rows_x);
      free(y);
      free(x);
    }
}

static void groups_that_cannot_be_split(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  log_book book = {0};
  unicon_model *model = NULL;
  int64_t group[60];
  problem_make(ctx, 5, 60, 6, 5, 3, 0.2, &p);
  for (int64_t i = 0; i < 60; i++) group[i] = i == 7;
  unicon_ctx_set_log(ctx, support_log, &book);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y, .groups = group);
  CHECK_OK(ctx, unicon_fit(ctx, &data, NULL, NULL, &model));
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "no pairs can be held out"));
  assert_null(unicon_model_meta(model, "auto_chosen"));
  assert_string_equal(unicon_ctx_error(ctx), "");
  unicon_model_destroy(model);
  problem_free(&p);
}

/* Preset best refines several kernels; the epochs that are noted are those of the chosen one, so
 * that the entry of its epoch is its score. A balance that is given is not chosen again, which
 * would raise the score above it. */
static void noted_epochs_are_of_the_choice(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    problem p;
    problem_make(ctx, seed, 400, 10, 9, 5, 0.8, &p);
    unicon_options *options =
        support_options(ctx, "preset", "best", "balance", "softmax:10", "rank", "6", NULL);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    const char *chosen = strstr(unicon_model_meta(model, "auto_chosen"), "refine ");
    const char *log = unicon_model_meta(model, "auto_refine_log");
    const int epoch = chosen ? atoi(chosen + strlen("refine ")) : 0;
    char *end = NULL;
    double noted = strtod(log, &end);
    for (int e = 0; e < epoch; e++) noted = strtod(end, &end);
    const double score = atof(unicon_model_meta(model, "auto_score"));
    if (chosen) CHECK_CLOSE(noted, score, 1e-6);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

static void few_pairs_fall_back(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  log_book book = {0};
  unicon_model *model = NULL;
  problem_make(ctx, 5, 30, 6, 5, 3, 0.2, &p);
  unicon_ctx_set_log(ctx, support_log, &book);
  CHECK_OK(ctx, unicon_fit(ctx, &UNICON_DATA(.x = p.rows_x, .y = p.rows_y), NULL, NULL, &model));
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "30 pairs are too few"));
  assert_null(unicon_model_meta(model, "auto_chosen"));
  unicon_options *options = NULL;
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "preset", "fast"));
  unicon_model *fast = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_int_equal(book.count[UNICON_LOG_WARNING], 2); /* fast says so as well */
  unicon_options_destroy(options);
  double *a = support_cosines(ctx, model, p.rows_x, p.rows_y);
  double *b = support_cosines(ctx, fast, p.rows_x, p.rows_y);
  CHECK_CLOSE(support_distance(a, b, 900), 0, 1e-6);
  free(b);
  free(a);
  unicon_model_destroy(fast);
  unicon_model_destroy(model);
  problem_free(&p);
}

/* Near-exact pairs: every candidate finds every match among 80 rows, so the held-out score is 1 for
 * all. The search goes on, and the margin decides: not for a few directions of many. */
static void a_perfect_score_does_not_end_the_search(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 400, D = 80 };
  uint64_t random = 3;
  float *x = support_normals(1, ROWS * D), *y = support_floats(ROWS * D);
  double *turn = support_orthonormal(2, D, D);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t k = 0; k < D; k++) {
      double sum = 0.02 * support_normal(&random);
      for (int64_t j = 0; j < D; j++) sum += (double)x[i * D + j] * turn[j * D + k];
      y[i * D + k] = (float)sum;
    }
  unicon_rows *rows_x = support_rows(ctx, "x", x, ROWS, D);
  unicon_rows *rows_y = support_rows(ctx, "y", y, ROWS, D);
  unicon_model *model = NULL;
  CHECK_OK(ctx, unicon_fit(ctx, &UNICON_DATA(.x = rows_x, .y = rows_y), NULL, NULL, &model));
  assert_true(atof(unicon_model_meta(model, "auto_score")) > 0.999);
  assert_true(unicon_model_rank(model) >= 64);
  assert_non_null(strstr(unicon_model_meta(model, "auto_tried"), "angular"));
  unicon_model_destroy(model);
  unicon_rows_close(rows_y);
  unicon_rows_close(rows_x);
  free(turn);
  free(y);
  free(x);
}

/* The fit that follows a choice of 3 of 8 epochs runs the schedule that was scored: its losses are
 * the first 3 of 8 epochs, not those of a rate that falls to 0 within 3. */
static void a_schedule_is_kept(void **state) {
  scratch *s = *state;
  cut c;
  cut_make(s->ctx, 4, &c);
  double loss[3][UNICON__EPOCH_LOG];
  static const int epochs[3] = {8, 3, 3}, schedule[3] = {0, 8, 0};
  for (int k = 0; k < 3; k++) {
    char text[8];
    snprintf(text, sizeof text, "%d", epochs[k]);
    unicon_options *options = support_options(s->ctx, "refine", text, "refine_batch", "100", NULL);
    unicon__dataset set;
    unicon__part part = {0};
    unicon__part_log log;
    CHECK_OK(s->ctx,
             unicon__dataset_open(s->ctx, &UNICON_DATA(.x = c.x, .y = c.y), options, false, &set));
    unicon__params params;
    unicon__params_from(options, (const int64_t[2]){set.whole.y.count, set.whole.y.count}, &params);
    params.refine.schedule = schedule[k];
    const unicon__part_job job = {.params = &params, .data = set.whole, .arena = &s->ctx->arena};
    CHECK_OK(s->ctx, unicon__part_fit(s->ctx, &job, &part, &log));
    memcpy(loss[k], log.refine.loss, sizeof loss[k]);
    assert_int_equal(log.refine.epochs, epochs[k]);
    unicon__dataset_close(&set);
    unicon_options_destroy(options);
    unicon__frame_close(s->ctx, NULL);
  }
  for (int e = 1; e <= 3; e++) CHECK_CLOSE(loss[1][e], loss[0][e], 0);
  assert_true(fabs(loss[2][2] - loss[0][2]) > 1e-6);
  cut_free(&c);
}

static void weights_follow_the_scores(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const double score[5] = {0.5, 0.52, 0.48, 0.5, 0.1};
  double w[5];
  assert_int_equal(unicon__aggregate(ctx, UNICON__AGGREGATE_UNIFORM, score, 5, w), UNICON_OK);
  CHECK_CLOSE(w[4], 0.2, 1e-15);
  assert_int_equal(unicon__aggregate(ctx, UNICON__AGGREGATE_ACCURACY, score, 5, w), UNICON_OK);
  CHECK_CLOSE(w[1], 0.52 / 2.1, 1e-15);
  assert_int_equal(unicon__aggregate(ctx, UNICON__AGGREGATE_SOFTMAX, score, 5, w), UNICON_OK);
  CHECK_CLOSE(w[0] / w[4], exp(0.4), 1e-12);
  assert_int_equal(unicon__aggregate(ctx, UNICON__AGGREGATE_ROBUST, score, 5, w), UNICON_OK);
  CHECK_CLOSE(w[4], 0, 0);
  CHECK_CLOSE(w[0], 0.25, 1e-15);
}

/* A batch of wrong pairs is dropped by `robust` and pulls the others down less. */
static void robust_batches_resist(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  cut c;
  cut_make(ctx, 6, &c);
  double score[2];
  static const char *const how[2] = {"uniform", "robust"};
  for (int k = 0; k < 2; k++) {
    unicon_model *model = NULL;
    unicon_options *options =
        support_options(ctx, "batch", "50", "aggregate", how[k], "iterations", "1", NULL);
    const unicon_data train = UNICON_DATA(.x = c.x, .y = c.y),
                      held = UNICON_DATA(.x = c.held_x, .y = c.held_y);
    CHECK_OK(ctx, unicon_fit(ctx, &train, &held, options, &model));
    score[k] = score_of(ctx, model, c.held_x, c.held_y);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  assert_true(score[1] >= score[0] - 0.02); /* nothing is lost on clean data */
  cut_free(&c);
}

/* One encoder: equal weights, and the objective of the closed form is the sum of squared positive
 * eigenvalues (T22), which no other rank-r symmetric positive M exceeds: dropping the metric,
 * the spectrum is that of (C + C^T)/2. */
static void check_shared(scratch *s, const problem *p, const unicon_options *options) {
  unicon_model *model = support_fit(s->ctx, p->rows_x, p->rows_y, NULL, options);
  int64_t count;
  float *x = support_tensor(s, model, "x.weight", &count);
  float *y = support_tensor(s, model, "y.weight", &count);
  for (int64_t k = 0; k < count; k++) CHECK_CLOSE(x[k], y[k], 1e-5);
  const float *spectrum = unicon_model_spectrum(model);
  for (int64_t k = 0; k < unicon_model_rank(model); k++) assert_true(spectrum[k] > 0);
  free(y);
  free(x);
  unicon_model_destroy(model);
}

static void shared_encoder_is_shared(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 7, 200, 8, 8, 4, 0.3, &p);
  unicon_options *options =
      support_options(s->ctx, "shared_encoder", "on", "rank", "6", "iterations", "1", NULL);
  check_shared(s, &p, options);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "refine", "2"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "refine_batch", "50"));
  check_shared(s, &p, options);
  unicon_rows *narrow = support_rows(s->ctx, "narrow", p.y, 200, 7);
  unicon_model *none = NULL;
  scratch_failed(s,
                 unicon_fit(s->ctx, &UNICON_DATA(.x = p.rows_x, .y = narrow), NULL, options, &none),
                 UNICON_ERR_SHAPE, "equal width", "7");
  unicon_rows_close(narrow);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* Rows paired with themselves: C is their covariance, so the spectrum of the shared encoder is that
 * of the covariance of the centred unit rows, up to a common factor. Tolerance: float32 sums. */
static void shared_encoder_finds_principal_axes(void **state) {
  scratch *s = *state;
  enum { ROWS = 150, D = 6, R = 4 };
  problem p;
  problem_make(s->ctx, 9, ROWS, D, D, 3, 0.5, &p);
  double unit[ROWS][D], mean[D] = {0}, sigma[D * D] = {0}, *vectors, *values;
  for (int i = 0; i < ROWS; i++) {
    double length = 0;
    for (int k = 0; k < D; k++) length += (double)p.x[i * D + k] * (double)p.x[i * D + k];
    for (int k = 0; k < D; k++)
      mean[k] += (unit[i][k] = (double)p.x[i * D + k] / sqrt(length)) / ROWS;
  }
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < D * D; k++)
      sigma[k] += (unit[i][k / D] - mean[k / D]) * (unit[i][k % D] - mean[k % D]);
  CHECK_OK(s->ctx, unicon__eigen(s->ctx, sigma, D, &vectors, &values)); /* ascending */
  unicon_options *options =
      support_options(s->ctx, "shared_encoder", "on", "metric", "none", "rank", "4", NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_x, NULL, options);
  const float *spectrum = unicon_model_spectrum(model);
  for (int k = 1; k < R; k++)
    CHECK_CLOSE((double)spectrum[k] / (double)spectrum[0], values[D - 1 - k] / values[D - 1], 1e-5);
  unicon__frame_close(s->ctx, NULL);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* exponent E: column k of F_x is U_k s_k^(E/2), so from E = 1 to 2 it grows by s_k^(1/2). */
static void exponent_is_a_power(void **state) {
  scratch *s = *state;
  problem p;
  float *weight[2];
  int64_t count;
  problem_make(s->ctx, 8, 200, 9, 7, 5, 0.3, &p);
  const float *spectrum = NULL;
  unicon_model *model[2];
  for (int k = 0; k < 2; k++) {
    unicon_options *options = support_options(s->ctx, "exponent", k ? "2" : "1", "rank", "4", NULL);
    model[k] = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    weight[k] = support_tensor(s, model[k], "x.weight", &count);
    spectrum = unicon_model_spectrum(model[k]);
    unicon_options_destroy(options);
  }
  for (int64_t i = 0; i < 9; i++)
    for (int64_t k = 1; k < 4; k++) {
      const double grown = (double)(weight[1][i * 4 + k] * weight[0][i * 4]);
      const double plain = (double)(weight[0][i * 4 + k] * weight[1][i * 4]);
      CHECK_CLOSE(grown, plain * sqrt((double)(spectrum[k] / spectrum[0])),
                  1e-5 * (1 + fabs(plain)));
    }
  for (int k = 0; k < 2; k++) {
    free(weight[k]);
    unicon_model_destroy(model[k]);
  }
  problem_free(&p);
}

/* From 50,000 rows on 5000 of them are held out, not a tenth. */
static void many_rows_hold_out_few(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 6, 52000, 3, 3, 3, 0.1, &p);
  unicon_options *options = support_options(s->ctx, "preset", "auto", "kernel", "linear", "ridge",
                                            "0.01", "metric", "whiten", "refine", "0", NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  assert_string_equal(unicon_model_meta(model, "auto_folds"), "1");
  assert_int_equal(unicon_model_rank(model), 3);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

typedef struct shares {
  double last, leap;
} shares;

static int follow(void *user, const char *label, double done, double left) {
  shares *f = user;
  (void)label;
  (void)left;
  if (done - f->last > f->leap) f->leap = done - f->last;
  f->last = done;
  return 0;
}

/* The share of a fit that is told moves on while kernels are prepared, settings tried and the model
 * refined; what is passed over, a kernel or refine, is the longest leap. */
static void the_share_makes_no_leaps(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  cut c;
  unicon_model *model = NULL;
  shares told = {0, 0};
  cut_make(ctx, 3, &c);
  const unicon_data train = UNICON_DATA(.x = c.x, .y = c.y),
                    held = UNICON_DATA(.x = c.held_x, .y = c.held_y);
  const double interval = ctx->progress_interval;
  ctx->progress_interval = 0;
  unicon_ctx_set_progress(ctx, follow, &told);
  CHECK_OK(ctx, unicon_fit(ctx, &train, &held, NULL, &model));
  unicon_ctx_set_progress(ctx, NULL, NULL);
  ctx->progress_interval = interval;
  assert_true(told.last > 0.9);
  assert_true(told.leap < 0.25);
  unicon_model_destroy(model);
  cut_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(the_share_makes_no_leaps),
      SCRATCH_TEST(reported_score_is_the_models),
      SCRATCH_TEST(every_loss_goes_with_auto),
      SCRATCH_TEST(choice_leaves_the_map_alone),
      SCRATCH_TEST(given_options_stay),
      SCRATCH_TEST(noted_epochs_are_of_the_choice),
      SCRATCH_TEST(few_pairs_fall_back),
      SCRATCH_TEST(the_gap_is_noted),
      SCRATCH_TEST(given_epochs_are_the_most),
      SCRATCH_TEST(given_rank_is_that_of_all_rows),
      SCRATCH_TEST(few_rows_of_a_side_are_no_error),
      SCRATCH_TEST(groups_that_cannot_be_split),
      SCRATCH_TEST(a_perfect_score_does_not_end_the_search),
      SCRATCH_TEST(a_schedule_is_kept),
      SCRATCH_TEST(weights_follow_the_scores),
      SCRATCH_TEST(robust_batches_resist),
      SCRATCH_TEST(shared_encoder_is_shared),
      SCRATCH_TEST(exponent_is_a_power),
      SCRATCH_TEST(shared_encoder_finds_principal_axes),
      SCRATCH_TEST(many_rows_hold_out_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
