/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of labelled rows (docs/method.md section 10): any split of either side, in any order,
 * is the whole; what was taken away was never there; labels that nobody has are not kept.
 *
 * Tolerances are those of test_kept.c: float64 sums of the same products in another order. */
#include <stdlib.h>
#include <string.h>

#include "kept_check.h"

enum { NX = 600, NY = 440, DX = 14, DY = 11, CLASSES = 9, TESTS = 80 };

/* Rows around a centre of their class; classes 0 .. CLASSES-1, by numbers that do not ascend. */
typedef struct world {
  float *x, *y;
  int64_t label_x[NX], label_y[NY];
} world;

static const int64_t number_of[CLASSES + 1] = {40, -3, 7, 1000000000000, 8, 5, -900, 2, 99, 12};

static void world_make(world *w) {
  float *centre_x = support_normals(3, CLASSES * DX), *centre_y = support_normals(4, CLASSES * DY);
  w->x = support_normals(1, (int64_t)NX * DX);
  w->y = support_normals(2, (int64_t)NY * DY);
  for (int64_t i = 0; i < NX; i++) {
    const int64_t c = (i * i + i / 5) % CLASSES;
    w->label_x[i] = number_of[c];
    for (int k = 0; k < DX; k++) w->x[i * DX + k] += 2 * centre_x[c * DX + k];
  }
  for (int64_t j = 0; j < NY; j++) {
    const int64_t c = j * CLASSES / NY; /* sorted: parts have few labels in common */
    w->label_y[j] = number_of[c];
    for (int k = 0; k < DY; k++) w->y[j * DY + k] += 2 * centre_y[c * DY + k];
  }
  free(centre_x);
  free(centre_y);
}

static void world_free(world *w) {
  free(w->x);
  free(w->y);
}

/* Rows [x, to_x) and [y, to_y). */
static void part_open(unicon_ctx *ctx, const world *w, int64_t x, int64_t to_x, int64_t y,
                      int64_t to_y, kept_part *out) {
  out->x = support_rows(ctx, "x", w->x + x * DX, to_x - x, DX);
  out->y = support_rows(ctx, "y", w->y + y * DY, to_y - y, DY);
  CHECK_OK(ctx, unicon_pairs_labels_part(ctx, w->label_x + x, to_x - x, w->label_y + y, to_y - y,
                                         &out->pairs));
  out->data = UNICON_DATA(.x = out->x, .y = out->y, .pairs = out->pairs);
}

static unicon_options *options_of(unicon_ctx *ctx, const char *kernel, const char *ledger) {
  unicon_options *options = NULL;
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "kernel", kernel));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "landmarks", "60"));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "ledger", ledger));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "sample_rows", "300"));
  return options;
}

static void add(unicon_ctx *ctx, const world *w, int64_t x, int64_t to_x, int64_t y, int64_t to_y,
                unicon_stats *stats) {
  kept_part p;
  part_open(ctx, w, x, to_x, y, to_y, &p);
  CHECK_OK(ctx, unicon_stats_add(ctx, stats, &p.data, NULL));
  kept_part_close(&p);
}

/* Empty statistics, with maps of all rows. */
static unicon_stats *empty_of(unicon_ctx *ctx, const world *w, const unicon_options *options) {
  kept_part all;
  unicon_stats *out = NULL;
  part_open(ctx, w, 0, NX, 0, NY, &all);
  CHECK_OK(ctx, unicon_stats_create(ctx, &all.data, options, &out));
  kept_part_close(&all);
  return out;
}

/* Largest difference of sums, relative to the trace of the side. */
static double distance(const unicon_stats *a, const unicon_stats *b) {
  double worst = fmax(fabs(a->pairs - b->pairs), kept_sides_distance(a, b));
  const int64_t classes = a->sums.classes;
  assert_int_equal(classes, b->sums.classes);
  for (int64_t k = 0; k < classes; k++) assert_true(a->sums.class_key[k] == b->sums.class_key[k]);
  for (int s = 0; s < 2; s++) {
    const double rows = support_distance(a->sums.class_rows[s], b->sums.class_rows[s], classes);
    const double sums =
        support_distance(a->sums.class_sum[s], b->sums.class_sum[s], classes * a->sums.p[s]);
    worst = fmax(worst, fmax(rows, sums / kept_trace(a, s)));
  }
  return worst;
}

static double cosine_distance(unicon_ctx *ctx, const world *w, const unicon_model *a,
                              const unicon_model *b) {
  kept_part test;
  part_open(ctx, w, 0, TESTS, 0, TESTS, &test);
  const double far = kept_cosine_distance(ctx, test.x, test.y, a, b);
  kept_part_close(&test);
  return far;
}

/* C of the definition, over all pairs of the plane: S(0) of MATH 2 about the means of the rows. */
static void naive_cross(const unicon_stats *stats, const world *w, double *c) {
  double *phi[2], mean[2][DY + DX] = {{0}};
  const float *from[2] = {w->x, w->y};
  const int64_t n[2] = {NX, NY}, d[2] = {DX, DY};
  const int64_t *label[2] = {w->label_x, w->label_y};
  for (int s = 0; s < 2; s++) {
    phi[s] = support_doubles(n[s] * d[s]);
    for (int64_t i = 0; i < n[s]; i++) {
      double length = 0;
      for (int64_t k = 0; k < d[s]; k++) length += pow((double)from[s][i * d[s] + k], 2);
      for (int64_t k = 0; k < d[s]; k++) {
        phi[s][i * d[s] + k] = (double)(float)((double)from[s][i * d[s] + k] / sqrt(length));
        mean[s][k] += phi[s][i * d[s] + k] / (double)n[s];
      }
    }
  }
  assert_true(stats->map[0].normalize);
  memset(c, 0, DX * DY * sizeof *c);
  for (int64_t i = 0; i < NX; i++)
    for (int64_t j = 0; j < NY; j++) {
      double n_x = 0, n_y = 0;
      if (label[0][i] != label[1][j]) continue;
      for (int64_t k = 0; k < NX; k++) n_x += label[0][k] == label[0][i];
      for (int64_t k = 0; k < NY; k++) n_y += label[1][k] == label[1][j];
      const double weight = (1 / n_y / NX + 1 / n_x / NY) / 2;
      for (int a = 0; a < DX; a++)
        for (int b = 0; b < DY; b++)
          c[a * DY + b] +=
              weight * (phi[0][i * DX + a] - mean[0][a]) * (phi[1][j * DY + b] - mean[1][b]);
    }
  free(phi[0]);
  free(phi[1]);
}

static void sums_are_the_definition(void **state) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  unicon__moments moments;
  double c[DX * DY];
  world_make(&w);
  unicon_options *options = options_of(ctx, "linear", "off");
  unicon_stats *stats = empty_of(ctx, &w, options);
  add(ctx, &w, 0, 100, 0, 7, stats);
  add(ctx, &w, 100, NX, 7, NY, stats);
  assert_int_equal(stats->sums.classes, CLASSES);
  naive_cross(stats, &w, c);
  assert_int_equal(unicon__enter(ctx), UNICON_OK);
  const unicon_status status =
      unicon__stats_finish(ctx, &stats->sums, NULL, UNICON__CENTRE_SIDES, all, &moments);
  /* rows of length 1 are float32: 1e-7 of a row, where two ways of dividing round differently */
  CHECK_CLOSE(support_distance(moments.cross, c, DX * DY), 0, 2e-8);
  CHECK_OK(ctx, unicon__leave(ctx, status));
  unicon_stats_destroy(stats);
  unicon_options_destroy(options);
  world_free(&w);
}

static const char *const kernels[] = {"linear", "rbf"};
static const double sums_near[] = {1e-13, 1e-5};

static void any_split_is_the_whole(void **state) {
  static const int64_t cut_x[] = {0, 3, 3 + 250, 3 + 251, 500, NX};
  static const int64_t cut_y[] = {0, 200, 201, 330, 339, NY};
  static const int order[2][5] = {{3, 0, 4, 2, 1}, {1, 2, 3, 4, 0}};
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  world_make(&w);
  for (int k = 0; k < 4; k++) {
    unicon_options *options = options_of(ctx, kernels[k % 2], "on");
    unicon_stats *all = empty_of(ctx, &w, options), *sum = NULL;
    add(ctx, &w, 0, NX, 0, NY, all);
    CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &sum));
    for (int o = 0; o < 5; o++) { /* parts of x and of y that have nothing to do with one another */
      unicon_stats *one = NULL;
      const int a = order[k / 2][o], b = order[1 - k / 2][o];
      CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &one));
      add(ctx, &w, cut_x[a], cut_x[a + 1], cut_y[b], cut_y[b + 1], one);
      CHECK_OK(ctx, unicon_stats_merge(ctx, sum, one));
      unicon_stats_destroy(one);
    }
    CHECK_CLOSE(distance(all, sum), 0, sums_near[k % 2]);
    kept_same_sample(all, sum);
    for (int s = 0; s < 2; s++) {
      assert_int_equal(all->sample.rows[s], 150);
      assert_memory_equal(all->ledger.entry[s], sum->ledger.entry[s],
                          (size_t)all->ledger.count[s] * 8);
    }
    unicon_model *a = kept_fit(ctx, all, "fast"), *b = kept_fit(ctx, sum, "fast");
    CHECK_CLOSE(cosine_distance(ctx, &w, a, b), 0, k % 2 == 0 ? 1e-6 : 2e-4);
    unicon_model_destroy(a);
    unicon_model_destroy(b);
    unicon_stats_destroy(sum);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
  }
  world_free(&w);
}

/* A fit from sums is that of the rows, all of which count. */
static void a_fit_is_that_of_the_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  kept_part all;
  world_make(&w);
  for (int64_t i = 0; i < 20; i++) w.label_x[i] = number_of[CLASSES]; /* no y has that */
  part_open(ctx, &w, 0, NX, 0, NY, &all);
  unicon_options *options = options_of(ctx, "linear", "off");
  unicon_stats *stats = empty_of(ctx, &w, options);
  add(ctx, &w, 0, NX, 0, NY, stats);
  for (int k = 0; k < 2; k++) {
    unicon_options *how = support_options(ctx, "metric", k ? "0.25" : "whiten", NULL);
    unicon_model *rows = NULL, *sums = NULL;
    log_book book = {{0}, {""}};
    unicon_ctx_set_log(ctx, support_log, &book);
    CHECK_OK(ctx, unicon_stats_fit(ctx, stats, NULL, how, &sums));
    unicon_ctx_set_log(ctx, NULL, NULL);
    assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "20 rows of x have a label"));
    CHECK_OK(ctx, unicon_options_set(ctx, how, "unpaired", "on"));
    CHECK_OK(ctx, unicon_fit(ctx, &all.data, NULL, how, &rows));
    CHECK_CLOSE(cosine_distance(ctx, &w, rows, sums), 0, 1e-4);
    assert_string_equal(unicon_model_meta(sums, "n_x"), unicon_model_meta(rows, "n_x"));
    assert_string_equal(unicon_model_meta(sums, "pairs"), unicon_model_meta(rows, "pairs"));
    unicon_model_destroy(rows);
    unicon_model_destroy(sums);
    unicon_options_destroy(how);
  }
  unicon_stats_destroy(stats);
  unicon_options_destroy(options);
  kept_part_close(&all);
  world_free(&w);
}

static void removed_rows_were_never_there(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  kept_part gone;
  world_make(&w);
  for (int ledger = 0; ledger < 2; ledger++) {
    unicon_options *options = options_of(ctx, "linear", ledger ? "on" : "off");
    CHECK_OK(ctx, unicon_options_set(ctx, options, "sample_rows", "100000"));
    unicon_stats *all = empty_of(ctx, &w, options), *never = NULL, *other = NULL;
    unicon_result *certificate = NULL;
    double bound, value, pairs = 0;
    for (int64_t j = 0; j < 30; j++) w.label_y[j] = number_of[CLASSES]; /* gone with its rows */
    CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &never));
    CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &other));
    add(ctx, &w, 0, NX, 0, NY, all);
    add(ctx, &w, 200, NX, 150, NY, never);
    add(ctx, &w, 0, 200, 0, 150, other);
    assert_int_equal(all->sums.classes, CLASSES + 1);
    pairs = all->pairs;
    part_open(ctx, &w, 0, 200, 0, 150, &gone);
    CHECK_OK(ctx, unicon_stats_remove(ctx, all, &gone.data, NULL, &certificate));
    assert_int_equal(unicon_result_number(certificate, "trace.bound", &bound), 0);
    assert_true(bound > 0 && bound < 1e-10);
    assert_int_equal(all->sums.classes, CLASSES);
    assert_true(distance(never, all) <= bound);
    kept_same_sample(never, all);
    assert_int_equal(unicon_result_number(certificate, "removed.pairs", &value), 0);
    CHECK_CLOSE(value, pairs - never->pairs, 0); /* with rows that stay as well */
    assert_int_equal(unicon_result_number(certificate, "left.pairs", &value), 0);
    CHECK_CLOSE(value, never->pairs, 0);
    unicon_result_destroy(certificate);
    /* and by their sums; then all of it */
    CHECK_OK(ctx, unicon_stats_add(ctx, all, &gone.data, NULL));
    CHECK_OK(ctx, unicon_stats_subtract(ctx, all, other, NULL));
    assert_true(distance(never, all) <= 2 * bound);
    kept_same_sample(never, all);
    unicon_model *a = kept_fit(ctx, all, "auto"), *b = kept_fit(ctx, never, "auto");
    CHECK_CLOSE(cosine_distance(ctx, &w, a, b), 0, 1e-6);
    unicon_model_destroy(a);
    unicon_model_destroy(b);
    CHECK_OK(ctx, unicon_stats_subtract(ctx, all, never, NULL));
    assert_true(all->sums.classes == 0 && all->sums.rows[0] == 0 && all->sums.square[1][2] == 0);
    unicon_pairs_destroy(gone.pairs); /* empty statistics take pairs or labels */
    CHECK_OK(ctx, unicon_pairs_per_x(ctx, 50, 150, 3, &gone.pairs));
    unicon_rows_close(gone.x);
    gone.x = support_rows(ctx, "x", w.x, 50, DX);
    const unicon_data paired = UNICON_DATA(.x = gone.x, .y = gone.y, .pairs = gone.pairs);
    CHECK_OK(ctx, unicon_stats_add(ctx, all, &paired, NULL));
    assert_true(all->sums.way[0].weight > 0 && all->pairs == 150);
    scratch_failed(s, unicon_stats_merge(ctx, all, never), UNICON_ERR_SHAPE, "class labels",
                   "made with pairs");
    scratch_failed(s, unicon_stats_add(ctx, never, &paired, NULL), UNICON_ERR_SHAPE, "x has pairs",
                   "made with class labels");
    kept_part_close(&gone);
    unicon_stats_destroy(other);
    unicon_stats_destroy(never);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
  }
  world_free(&w);
}

/* More rows of a label than there are; the same rows with another label, which the ledger knows. */
static void strangers_are_noticed(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  kept_part gone;
  world_make(&w);
  for (int ledger = 0; ledger < 2; ledger++) {
    unicon_options *options = options_of(ctx, "linear", ledger ? "on" : "off");
    unicon_stats *all = empty_of(ctx, &w, options), *before = NULL;
    CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &before));
    add(ctx, &w, 0, NX, 0, NY, all);
    add(ctx, &w, 0, NX, 0, NY, before);
    const int64_t kept = w.label_x[5];
    w.label_x[5] = kept == number_of[1] ? number_of[2] : number_of[1];
    part_open(ctx, &w, 0, 10, 0, 10, &gone);
    if (ledger) {
      scratch_failed(s, unicon_stats_remove(ctx, all, &gone.data, NULL, NULL), UNICON_ERR_DATA,
                     "1 of the 10 rows of x", "never added");
    } else {
      unicon_pairs_destroy(gone.pairs);
      int64_t label[10];
      for (int k = 0; k < 10; k++) label[k] = 31337;
      CHECK_OK(ctx, unicon_pairs_labels(ctx, label, 10, label, 10, &gone.pairs));
      gone.data = UNICON_DATA(.x = gone.x, .y = gone.y, .pairs = gone.pairs);
      scratch_failed(s, unicon_stats_remove(ctx, all, &gone.data, NULL, NULL), UNICON_ERR_DATA,
                     "10 rows of x with label 31337", "the statistics has 0");
    }
    assert_true(distance(before, all) == 0);
    kept_same_sample(before, all);
    w.label_x[5] = kept;
    kept_part_close(&gone);
    unicon_stats_destroy(before);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
  }
  world_free(&w);
}

static void files_come_back(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  unicon_stats *read = NULL;
  unicon_result *about = NULL;
  double value;
  world_make(&w);
  for (int decayed = 0; decayed < 2; decayed++) {
    unicon_options *options = options_of(ctx, "rbf", decayed ? "off" : "on");
    unicon_stats *all = empty_of(ctx, &w, options);
    add(ctx, &w, 0, NX, 0, NY, all);
    if (decayed) CHECK_OK(ctx, unicon_stats_decay(ctx, all, 0.25));
    if (decayed) add(ctx, &w, 0, 50, 0, 40, all);
    const char *path = scratch_path(s, "all.stats");
    CHECK_OK(ctx, unicon_stats_save(ctx, all, path));
    CHECK_OK(ctx, unicon_stats_load(ctx, path, &read));
    assert_true(distance(all, read) == 0);
    kept_same_sample(all, read);
    CHECK_OK(ctx, unicon_stats_describe(ctx, read, &about));
    assert_int_equal(unicon_result_number(about, "classes", &value), 0);
    CHECK_CLOSE(value, CLASSES, 0);
    assert_int_equal(unicon_result_number(about, "rows_x", &value), 0);
    CHECK_CLOSE(value, decayed ? 0.25 * NX + 50 : NX, 1e-9);
    unicon_model *a = kept_fit(ctx, all, "fast"), *b = kept_fit(ctx, read, "fast");
    CHECK_CLOSE(cosine_distance(ctx, &w, a, b), 0, 0);
    unicon_model_destroy(a);
    unicon_model_destroy(b);
    unicon_result_destroy(about);
    unicon_stats_destroy(read);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
  }
  world_free(&w);
}

/* A landmark that is taken away, with the sums of classes projected. */
static void landmarks_are_not_forgotten(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  kept_part gone;
  world_make(&w);
  unicon_options *options = options_of(ctx, "rbf", "off"), *drop = NULL;
  unicon_stats *all = empty_of(ctx, &w, options), *never = NULL;
  add(ctx, &w, 0, NX, 0, NY, all);
  part_open(ctx, &w, 0, 60, 0, 50, &gone);
  scratch_failed(s, unicon_stats_remove(ctx, all, &gone.data, NULL, NULL), UNICON_ERR_DATA,
                 "landmarks of the kernel", "drop_landmarks");
  CHECK_OK(ctx, unicon_options_create(ctx, &drop));
  CHECK_OK(ctx, unicon_options_set(ctx, drop, "drop_landmarks", "on"));
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &gone.data, drop, NULL));
  assert_true(all->map[0].points < 60 && all->map[1].points < 60);
  CHECK_OK(ctx, unicon_stats_create_like(ctx, all, &never));
  add(ctx, &w, 60, NX, 50, NY, never);
  CHECK_CLOSE(distance(never, all), 0, 1e-4);
  kept_part_close(&gone);
  unicon_stats_destroy(never);
  unicon_stats_destroy(all);
  unicon_options_destroy(drop);
  unicon_options_destroy(options);
  world_free(&w);
}

static void what_does_not_fit_is_refused(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  unicon_pairs *pairs = NULL;
  unicon_model *model = NULL;
  const int64_t label[4] = {1, 1, 2, 2}, other[4] = {3, 3, 4, 4}, zero = 0, two = 2;
  world_make(&w);
  unicon_options *options = options_of(ctx, "linear", "off");
  unicon_stats *stats = empty_of(ctx, &w, options);
  unicon_rows *x = support_rows(ctx, "x", w.x, 4, DX), *y = support_rows(ctx, "y", w.y, 4, DY);
  scratch_failed(s, unicon_pairs_labels(ctx, label, 4, other, 4, &pairs), UNICON_ERR_PAIRS,
                 "none of the 4 labels", "both sides");
  CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, 4, &pairs));
  const unicon_data one_set = UNICON_DATA(.x = x, .y = y, .pairs = pairs);
  scratch_failed(s, unicon_stats_add(ctx, stats, &one_set, NULL), UNICON_ERR_UNSUPPORTED,
                 "one set of rows", "no sum");
  unicon_pairs_destroy(pairs);
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, 4, label, 4, &pairs));
  CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, pairs, &zero, &two, NULL, 1));
  const unicon_data ignoring = UNICON_DATA(.x = x, .y = y, .pairs = pairs);
  scratch_failed(s, unicon_stats_add(ctx, stats, &ignoring, NULL), UNICON_ERR_UNSUPPORTED,
                 "ignored", "depend on all rows");
  unicon_pairs_destroy(pairs);
  CHECK_OK(ctx, unicon_pairs_labels_part(ctx, label, 4, other, 4, &pairs));
  const unicon_data apart = UNICON_DATA(.x = x, .y = y, .pairs = pairs);
  scratch_failed(s, unicon_fit(ctx, &apart, NULL, NULL, &model), UNICON_ERR_DATA, "0 pairs",
                 "are left");
  CHECK_OK(ctx, unicon_stats_add(ctx, stats, &apart, NULL));
  assert_int_equal(stats->sums.classes, 4);
  scratch_failed(s, unicon_stats_fit(ctx, stats, NULL, NULL, &model), UNICON_ERR_DATA,
                 "none of the 4 labels", "no pairs");
  unicon_pairs_destroy(pairs);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_stats_destroy(stats);
  unicon_options_destroy(options);
  world_free(&w);
}

/* Many rows of one side and few of the other are summed in blocks. */
static void blocks_do_not_show(void **state) {
  enum { ROWS = 70001, FEW = 5, WIDTH = 3 };
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *x = support_normals(1, (int64_t)ROWS * WIDTH), *y = support_normals(2, FEW * WIDTH);
  int64_t *label = calloc(ROWS, sizeof *label), few[FEW] = {0, 1, 2, 3, 4};
  for (int64_t i = 0; i < ROWS; i++) label[i] = i * i % 7;
  for (int turned = 0; turned < 2; turned++) {
    unicon_options *options = options_of(ctx, "linear", "on");
    unicon_rows *many = support_rows(ctx, "many", x, ROWS, WIDTH);
    unicon_rows *names = support_rows(ctx, "names", y, FEW, WIDTH);
    unicon_pairs *pairs = NULL;
    unicon_stats *stats = NULL;
    double sum[7][WIDTH] = {{0}}, count[7] = {0};
    CHECK_OK(ctx, turned ? unicon_pairs_labels(ctx, few, FEW, label, ROWS, &pairs)
                         : unicon_pairs_labels(ctx, label, ROWS, few, FEW, &pairs));
    const unicon_data data =
        UNICON_DATA(.x = turned ? names : many, .y = turned ? many : names, .pairs = pairs);
    CHECK_OK(ctx, unicon_options_set(ctx, options, "normalize", "off"));
    CHECK_OK(ctx, unicon_stats_create(ctx, &data, options, &stats));
    CHECK_OK(ctx, unicon_stats_add(ctx, stats, &data, options));
    for (int64_t i = 0; i < ROWS; i++) {
      count[label[i]]++;
      for (int k = 0; k < WIDTH; k++) sum[label[i]][k] += (double)x[i * WIDTH + k];
    }
    int present = 0; /* squares modulo 7 are 0, 1, 2, 4 */
    for (int64_t k = 0; k < stats->sums.classes; k++) {
      const int64_t c = stats->sums.class_key[k];
      CHECK_CLOSE(stats->sums.class_rows[turned][k], count[c], 0);
      CHECK_CLOSE(stats->sums.class_rows[1 - turned][k], c < FEW, 0);
      CHECK_CLOSE(support_distance(stats->sums.class_sum[turned] + k * WIDTH, sum[c], WIDTH), 0,
                  1e-9);
      present += count[c] > 0;
    }
    assert_int_equal(present, 4);
    CHECK_CLOSE(stats->sums.rows[turned], ROWS, 0);
    assert_int_equal(stats->ledger.count[turned], ROWS);
    assert_int_equal(stats->sample.rows[turned], 150);
    assert_int_equal(stats->sample.rows[1 - turned], FEW);
    unicon_stats_destroy(stats);
    unicon_pairs_destroy(pairs);
    unicon_rows_close(names);
    unicon_rows_close(many);
    unicon_options_destroy(options);
  }
  free(x), free(y), free(label);
}

/* Labels of files have the numbers that unicon_label_number gives. */
static void numbers_of_texts(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  static const struct {
    const char *text;
    int64_t number;
  } whole[] = {{"0", 0},
               {"-7", -7},
               {"1234567890123456789", 1234567890123456789},
               {"-9223372036854775808", INT64_MIN}};
  static const char *const hashed[] = {
      "dog", "", "-", "007", "+1", "-0", "1x", "9223372036854775808", " 3"};
  for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
    assert_true(unicon_label_number(whole[k].text) == whole[k].number);
  for (size_t k = 0; k < sizeof hashed / sizeof *hashed; k++)
    for (size_t l = 0; l < k; l++)
      assert_true(unicon_label_number(hashed[k]) != unicon_label_number(hashed[l]));
  assert_true(llabs(unicon_label_number("007")) > 1000);
  scratch_write(s, "x.txt", "dog\n3\ncat\n", 10);
  scratch_write(s, "y.txt", "cat\ndog\n", 8);
  unicon_pairs *pairs = NULL;
  char *x = strdup(scratch_path(s, "x.txt")), *y = strdup(scratch_path(s, "y.txt"));
  CHECK_OK(ctx, unicon_pairs_read_labels_part(ctx, x, y, 3, 2, &pairs));
  assert_int_equal(pairs->classes, 3);
  assert_true(pairs->class_key[pairs->class_x[0]] == unicon_label_number("dog"));
  assert_true(pairs->class_key[pairs->class_x[1]] == 3);
  assert_true(pairs->class_key[pairs->class_y[0]] == unicon_label_number("cat"));
  assert_int_equal(unicon_pairs_count(pairs), 2);
  unicon_pairs_destroy(pairs);
  free(x), free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(sums_are_the_definition),     SCRATCH_TEST(any_split_is_the_whole),
      SCRATCH_TEST(a_fit_is_that_of_the_rows),   SCRATCH_TEST(removed_rows_were_never_there),
      SCRATCH_TEST(strangers_are_noticed),       SCRATCH_TEST(files_come_back),
      SCRATCH_TEST(landmarks_are_not_forgotten), SCRATCH_TEST(what_does_not_fit_is_refused),
      SCRATCH_TEST(blocks_do_not_show),          SCRATCH_TEST(numbers_of_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
