/* SPDX-License-Identifier: Apache-2.0 */
/* Refinement: the gradient of the loss with respect to embeddings and to the factors against
 * differences of the float64 oracle; what an epoch may do to loss, temperature and held-out score;
 * and that seed and threads settle it. */
#include "loss/gradient.h"
#include "solve/refine.h"
#include "select/params.h"
#include "oracle.h"
#include "figures.h"
#include "support.h"

/* ---- gradients ---------------------------------------------------------------------------- */

/* dL/dangle when row i of x turns towards t (unit, orthogonal to it), and the same for y. */
static double turned_loss(const unicon__loss_params *params, const oracle_problem *p,
                          const oracle_rows *x, const oracle_rows *y, int side, int row,
                          const double *t, double angle) {
  static double z[2][ORACLE_MOST][ORACLE_MOST];
  static oracle_matrix s;
  const oracle_rows *rows[2] = {x, y};
  const int r = x->r;
  for (int a = 0; a < 2; a++)
    for (int i = 0; i < rows[a]->n; i++)
      for (int k = 0; k < r; k++) z[a][i][k] = (double)rows[a]->z[i * r + k];
  for (int k = 0; k < r; k++) z[side][row][k] = cos(angle) * z[side][row][k] + sin(angle) * t[k];
  for (int i = 0; i < p->n_x; i++)
    for (int j = 0; j < p->n_y; j++) {
      s.at[i][j] = 0;
      for (int k = 0; k < r; k++) s.at[i][j] += z[0][i][k] * z[1][j][k];
    }
  return oracle_loss(params, p, &s);
}

/* A unit vector orthogonal to a row. */
static void tangent(uint64_t *state, const float *row, int r, double *t) {
  double along = 0, own = 0, length = 0;
  for (int k = 0; k < r; k++) {
    t[k] = support_normal(state);
    along += t[k] * (double)row[k];
    own += (double)row[k] * (double)row[k];
  }
  for (int k = 0; k < r; k++) {
    t[k] -= along / own * (double)row[k];
    length += t[k] * t[k];
  }
  for (int k = 0; k < r; k++) t[k] /= sqrt(length);
}

/* out_x = S Z_y and out_y = S^T Z_x give -dL/dangle for every loss, pair set and row: the larger of
 * 1e-5 max(1, .1/tau) and the difference's own error, of the largest entry of S. */
static void gradients_are_differences(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { R = 6 };
  static oracle_problem p;
  static oracle_rows x, y;
  uint64_t draw = 9;
  for (int c = 0; c < oracle_case_count; c++)
    for (int set = 0; set < ORACLE_SET_COUNT; set++) {
      unicon__loss_params params = oracle_cases[c].params;
      params.temperature = 0.3;
      oracle_open(ctx, set, true, &p);
      if (oracle_refuses(&params, &p)) {
        oracle_close(&p);
        continue;
      }
      oracle_rows_draw(17 + (uint64_t)c, p.n_x, R, true, &x);
      oracle_rows_draw(170 + (uint64_t)c, p.n_y, R, true, &y);
      float *out[2] = {support_floats(p.n_x * R), support_floats(p.n_y * R)};
      double value, largest = 0;
      for (int side = 0; side < 2; side++) /* what stood there does not matter */
        for (int k = 0; k < (side ? p.n_y : p.n_x) * R; k++) out[side][k] = 7;
      static const int64_t tiles[3][2] = {{256, 1024}, {3, 4}, {1, 1}};
      ctx->tile_x = tiles[(c + set) % 3][0]; /* one tile, many in several slots, many in a cell */
      ctx->tile_y = tiles[(c + set) % 3][1];
      unicon__ctx_set_threads(ctx, 1 + (int)c % 3);
      unicon__block *frame = unicon__frame_open(ctx);
      CHECK_OK(ctx, unicon__gradient(ctx, &params, p.pairs, R, x.z, y.z, out[0], out[1], &value));
      unicon__frame_close(ctx, frame);
      double none[R] = {0};
      const double loss = turned_loss(&params, &p, &x, &y, 0, 0, none, 0);
      CHECK_CLOSE(value, loss, 1e-5 * (1 + fabs(loss)));
      for (int side = 0; side < 2; side++)
        for (int k = 0; k < (side ? p.n_y : p.n_x) * R; k++)
          largest = fmax(largest, fabs((double)out[side][k]));
      for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? p.n_y : p.n_x); i++) {
          const float *row = (side ? y.z : x.z) + i * R;
          double t[R], slope = 0;
          tangent(&draw, row, R, t);
          for (int k = 0; k < R; k++) slope -= t[k] * (double)out[side][i * R + k];
          const double h = 1e-5;
          const double difference = (turned_loss(&params, &p, &x, &y, side, i, t, h) -
                                     turned_loss(&params, &p, &x, &y, side, i, t, -h)) /
                                    (2 * h);
          if (fabs(slope - difference) > 1e-5 * largest + 1e-8)
            print_error("%s on %s, side %d, row %d\n", oracle_cases[c].name, oracle_set_name(set),
                        side, i);
          CHECK_CLOSE(slope, difference, 1e-5 * largest + 1e-8);
        }
      free(out[0]);
      free(out[1]);
      oracle_close(&p);
    }
}

/* ---- one whole step ----------------------------------------------------------------------- */

enum { N = 24, D = 7, RANK = 3 };

/* Loss of the batch of all rows at F = R G, in double from the float32 features. */
static double loss_of(const unicon__loss_params *params, const oracle_problem *p,
                      const unicon__side side[2], double *const r[2], const double *const g[2]) {
  static oracle_matrix s;
  double z[2][N][RANK] = {{{0}}};
  for (int a = 0; a < 2; a++) {
    const int64_t m = side[a].map.out;
    double *f = support_doubles(m * RANK);
    support_product(false, false, m, RANK, m, r[a], g[a], f);
    for (int i = 0; i < N; i++) {
      double length = 0;
      for (int k = 0; k < RANK; k++) {
        for (int64_t j = 0; j < m; j++)
          z[a][i][k] += (double)side[a].source.cache[i * m + j] * f[j * RANK + k];
        length += z[a][i][k] * z[a][i][k];
      }
      for (int k = 0; k < RANK; k++) z[a][i][k] /= sqrt(length);
    }
    free(f);
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      s.at[i][j] = 0;
      for (int k = 0; k < RANK; k++) s.at[i][j] += z[0][i][k] * z[1][j][k];
    }
  return oracle_loss(params, p, &s);
}

/* One epoch of one step over all rows: Adam's first step is rate g / (|g| + 1e-4 rms g) for every
 * factor, so it tells the gradient's sign, and near 0 its size. Whitened angular features. */
static void a_step_follows_the_gradient(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static oracle_problem p;
  p = (oracle_problem){.n_x = N, .n_y = N};
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      p.positive[i][j] = i == j;
      p.weight.at[i][j] = i == j;
      p.epsilon.at[i][j] = i != j;
    }
  CHECK_OK(ctx, unicon_pairs_identity(ctx, N, N, &p.pairs));
  problem q;
  problem_make(ctx, 3, N, D, D, 4, 0.5, &q);
  unicon_options *options = support_options(ctx, "kernel", "angular", "map", "exact", NULL);
  unicon__block *frame = unicon__frame_open(ctx);
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  const unicon__batch rows = {
      .x = {.rows = q.rows_x, .count = N}, .y = {.rows = q.rows_y, .count = N}, .pairs = p.pairs};
  unicon__params fit;
  unicon__prepared prepared;
  unicon__moments moments;
  unicon__params_from(options, (const int64_t[2]){N, N}, &fit);
  unicon__prepare_plan plan = unicon__params_prepare(&fit, &rows);
  plan.cache = true;
  plan.away = false;
  CHECK_OK(ctx, unicon__prepare(ctx, &plan, &prepared));
  CHECK_OK(ctx, unicon__stats_finish(ctx, &prepared.stats, NULL, fit.centring, all, &moments));
  CHECK_OK(ctx, unicon__prepared_centre(ctx, &prepared, &moments));
  const unicon__side *side = prepared.side;
  unicon__whitening metric[2];
  const unicon__closed_params closed = {.power = {0.5, 0.5}, .ridge = {0.05, 0.05}};
  CHECK_OK(ctx, unicon__closed_whiten(ctx, &moments, &closed, metric));
  unicon__factors factors = {.r = RANK};
  double *r[2], *start[2], rms[2] = {0};
  uint64_t draw = 5;
  for (int a = 0; a < 2; a++) {
    float *matrix;
    assert_non_null(side[a].source.cache);
    CHECK_OK(ctx, unicon__whiten_matrix(ctx, &metric[a], &matrix));
    const int64_t m = side[a].map.out;
    factors.p[a] = m;
    factors.g[a] = support_floats(m * RANK);
    r[a] = support_doubles(m * m);
    start[a] = support_doubles(m * RANK);
    double square = 0;
    for (int64_t k = 0; k < m * m; k++) r[a][k] = (double)matrix[k];
    for (int64_t k = 0; k < m * RANK; k++) {
      start[a][k] = support_normal(&draw);
      square += start[a][k] * start[a][k] / (double)(m * RANK);
    }
    for (int64_t k = 0; k < m * RANK; k++) { /* unit mean square, as refine starts */
      factors.g[a][k] = (float)(start[a][k] / sqrt(square));
      start[a][k] = (double)factors.g[a][k];
    }
  }
  unicon__refine_params params = {
      .loss = {.kind = UNICON__LOSS_CLIP, .temperature = 0.3, .nu = 1, .own = 1},
      .epochs = 1,
      .batch = N,
      .rate = 0.125};
  unicon__refine_log log;
  const unicon__batch data = {.x = side[0].source, .y = side[1].source, .pairs = p.pairs};
  CHECK_OK(ctx, unicon__refine(ctx, &data, metric, NULL, &params, &factors, &log));
  assert_int_equal(log.epochs, 1);
  assert_int_equal(log.best, 1);
  const double *const now[2] = {start[0], start[1]};
  CHECK_CLOSE(log.loss[1], loss_of(&params.loss, &p, side, r, now), 1e-5);
  for (int a = 0; a < 2; a++) {
    const int64_t count = factors.p[a] * RANK;
    double *slope = support_doubles(count);
    for (int64_t k = 0; k < count; k++) {
      const double held = start[a][k], h = 1e-5;
      start[a][k] = held + h;
      const double up = loss_of(&params.loss, &p, side, r, now);
      start[a][k] = held - h;
      slope[k] = (up - loss_of(&params.loss, &p, side, r, now)) / (2 * h);
      start[a][k] = held;
      rms[a] += slope[k] * slope[k] / (double)count;
    }
    for (int64_t k = 0; k < count; k++) {
      const double size = fabs(slope[k]) / (fabs(slope[k]) + 1e-4 * sqrt(rms[a]));
      const double wanted = -0.125 * (slope[k] > 0 ? size : -size);
      const double found = (double)factors.g[a][k] - start[a][k];
      /* 1e-3 of the rms is what float32 may turn around; above it sign and size must be right */
      if (fabs(slope[k]) > 1e-3 * sqrt(rms[a])) CHECK_CLOSE(found, wanted, 0.125 * 0.05);
      assert_true(fabs(found) <= 0.1251);
    }
    free(slope);
  }
  for (int a = 0; a < 2; a++) {
    free(factors.g[a]);
    free(r[a]);
    free(start[a]);
  }
  unicon__frame_close(ctx, frame);
  unicon__prepared_close(&prepared);
  unicon_options_destroy(options);
  unicon_pairs_destroy(p.pairs);
  problem_free(&q);
}

/* ---- whole fits --------------------------------------------------------------------------- */

/* Numbers of a metadata entry; returns how many. */
static int numbers_of(const unicon_model *model, const char *key, double *out, int most) {
  const char *text = unicon_model_meta(model, key);
  int count = 0;
  assert_non_null(text);
  for (char *end; count < most; text = end) {
    out[count] = strtod(text, &end);
    if (end == text) break;
    count++;
  }
  return count;
}

static double score_of(unicon_ctx *ctx, const unicon_model *model, const problem *p) {
  figures to_y, to_x;
  CHECK_OK(ctx,
           figures_evaluate(ctx, &UNICON_VIEW(.rows = p->rows_x, .model = model, .side = UNICON_X),
                            &UNICON_VIEW(.rows = p->rows_y, .model = model, .side = UNICON_Y), NULL,
                            NULL, &to_y, &to_x));
  return (to_y.value[UNICON__MRR] + to_x.value[UNICON__MRR] + to_y.value[UNICON__HIT_10] +
          to_x.value[UNICON__HIT_10]) /
         4;
}

/* One batch of all rows: the loss of every epoch is below that of the one before. Small batches,
 * and a random start: the last epoch is below the first. */
static void refine_lowers_the_loss(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const cases[][8] = {
      {"refine_batch", "300", "refine_rate", "0.01", NULL},
      {"refine_batch", "60", NULL},
      {"refine_batch", "60", "start", "random", "metric", "none", NULL},
      {"refine_batch", "100", "kernel", "angular", NULL}};
  problem p;
  problem_make(ctx, 4, 300, 12, 10, 6, 0.7, &p);
  for (int c = 0; c < 4; c++) {
    double loss[64];
    unicon_options *options =
        support_options(ctx, "preset", "fast", "refine", "10", "rank", "5", NULL);
    for (int k = 0; cases[c][k]; k += 2)
      CHECK_OK(ctx, unicon_options_set(ctx, options, cases[c][k], cases[c][k + 1]));
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    assert_int_equal(numbers_of(model, "refine_loss_log", loss, 64), 10);
    assert_string_equal(unicon_model_meta(model, "refine_best_epoch"), "10"); /* no judge: last */
    for (int k = 1; c == 0 && k < 10; k++) assert_true(loss[k] < loss[k - 1]);
    if (!(loss[9] < loss[0])) print_error("case %d: loss %g to %g\n", c, loss[0], loss[9]);
    assert_true(loss[9] < loss[0]);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

/* The log of a long run is whole. */
static void every_epoch_is_noted(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  double loss[512];
  problem p;
  problem_make(ctx, 5, 20, 4, 3, 2, 0.7, &p);
  unicon_options *options = support_options(ctx, "preset", "fast", "refine", "400", NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_int_equal(numbers_of(model, "refine_loss_log", loss, 512), 400);
  assert_true(loss[399] < loss[0]);
  unicon_model *again = NULL;
  const char *path = scratch_path(*state, "long.safetensors");
  CHECK_OK(ctx, unicon_model_save(ctx, model, path));
  CHECK_OK(ctx, unicon_model_load(ctx, path, &again));
  assert_string_equal(unicon_model_meta(again, "refine_loss_log"),
                      unicon_model_meta(model, "refine_loss_log"));
  unicon_model_destroy(again);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* Bytes for one number of threads; between numbers Adam carries roundings of 1e-7 along its path,
 * and divides by gradients as small as 1e-4 of their mean: cosines to 1e-3. */
static void seed_and_threads_settle_it(void **state) {
  scratch *s = *state;
  static const char *const seeds[3] = {"3", "3", "4"};
  enum { ROWS = 300 };
  problem p;
  problem_make(s->ctx, 5, ROWS, 12, 10, 6, 0.7, &p);
  double *first = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    unsigned char *bytes[3];
    size_t size[3];
    unicon__ctx_set_threads(s->ctx, threads);
    for (int k = 0; k < 3; k++) {
      unicon_options *options =
          support_options(s->ctx, "preset", "fast", "refine", "4", "refine_batch", "70", "seed",
                          seeds[k], "rank", "5", NULL);
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      const char *path = scratch_path(s, "m.safetensors");
      CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
      bytes[k] = support_slurp(path, &size[k]);
      if (k == 0) {
        double *cosines = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
        if (!first) first = cosines;
        CHECK_CLOSE(support_distance(first, cosines, ROWS * ROWS), 0, 1e-3);
        if (first != cosines) free(cosines);
      }
      unicon_model_destroy(model);
      unicon_options_destroy(options);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    assert_memory_not_equal(bytes[0] + size[0] - 200, bytes[2] + size[2] - 200, 200);
    for (int k = 0; k < 3; k++) free(bytes[k]);
  }
  free(first);
  problem_free(&p);
}

/* Rows of x without a partner are in no batch: the fit is that without them. Three y rows for each
 * x row keep the number of steps; in the plain metric, without centring, nothing else sees them. */
static void rows_without_a_partner_stay_out(void **state) {
  scratch *s = *state;
  enum { PAIRED = 60, LONE = 15, K = 3 };
  problem p;
  problem_make(s->ctx, 51, PAIRED * K, 6, 5, 4, 0.3, &p);
  float *x = support_floats((PAIRED + LONE) * 6);
  for (int64_t i = 0; i < LONE * 6; i++) x[i] = (float)(1 + i % 5); /* rows in front, unpaired */
  int64_t from[PAIRED * K], to[PAIRED * K];
  for (int64_t j = 0; j < PAIRED * K; j++) {
    from[j] = LONE + j / K;
    to[j] = j;
    if (j % K == 0) memcpy(x + from[j] * 6, p.x + j * 6, 6 * sizeof *x);
  }
  unicon_rows *with = support_rows(s->ctx, "x", x, PAIRED + LONE, 6);
  unicon_rows *without = support_rows(s->ctx, "x", x + LONE * 6, PAIRED, 6);
  unicon_pairs *pairs_with = NULL, *pairs_without = NULL;
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, PAIRED + LONE, PAIRED * K, from, to, NULL, PAIRED * K,
                                     &pairs_with));
  CHECK_OK(s->ctx, unicon_pairs_per_x(s->ctx, PAIRED, PAIRED * K, K, &pairs_without));
  unicon_options *options =
      support_options(s->ctx, "start", "random", "metric", "none", "center", "off", "refine", "5",
                      "refine_batch", "20", "rank", "4", NULL);
  unicon_model *a = support_fit(s->ctx, with, p.rows_y, pairs_with, options);
  unicon_model *b = support_fit(s->ctx, without, p.rows_y, pairs_without, options);
  double *cos_a = support_cosines(s->ctx, a, without, p.rows_y);
  double *cos_b = support_cosines(s->ctx, b, without, p.rows_y);
  assert_true(support_distance(cos_a, cos_b, PAIRED * PAIRED * K) < 1e-5);
  free(cos_b);
  free(cos_a);
  unicon_model_destroy(b);
  unicon_model_destroy(a);
  unicon_options_destroy(options);
  unicon_pairs_destroy(pairs_without);
  unicon_pairs_destroy(pairs_with);
  unicon_rows_close(without);
  unicon_rows_close(with);
  free(x);
  problem_free(&p);
}

/* Held-out pairs choose the first epoch with the best score, and it is that model which comes back;
 * steps that only do harm (rate 10) give back the start. */
static void the_best_epoch_comes_back(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const rates[3] = {"10", "0.05", "1"};
  problem p, held;
  problem_make(ctx, 6, 400, 12, 10, 6, 1, &p);
  problem_make(ctx, 6, 520, 12, 10, 6, 1, &held);
  unicon_rows *x = support_rows(ctx, "x", held.x + 400 * 12, 120, 12);
  unicon_rows *y = support_rows(ctx, "y", held.y + 400 * 10, 120, 10);
  const unicon_data train = UNICON_DATA(.x = p.rows_x, .y = p.rows_y),
                    validation = UNICON_DATA(.x = x, .y = y);
  const problem seen = {.n = 120, .rows_x = x, .rows_y = y};
  unicon_options *plain = support_options(ctx, "preset", "fast", "rank", "5", NULL);
  unicon_model *start = support_fit(ctx, p.rows_x, p.rows_y, NULL, plain);
  for (int c = 0; c < 3; c++) {
    double score[64];
    unicon_model *model = NULL;
    unicon_options *options = support_options(ctx, "preset", "fast", "rank", "5", "refine", "8",
                                              "refine_batch", "100", "refine_rate", rates[c], NULL);
    CHECK_OK(ctx, unicon_fit(ctx, &train, &validation, options, &model));
    assert_int_equal(numbers_of(model, "refine_score_log", score, 64), 9);
    int best = 0;
    for (int k = 1; k < 9; k++)
      if (score[k] > score[best]) best = k;
    assert_int_equal(strtol(unicon_model_meta(model, "refine_best_epoch"), NULL, 10), best);
    CHECK_CLOSE(score_of(ctx, model, &seen), score[best], 1e-6);
    CHECK_CLOSE(score_of(ctx, start, &seen), score[0], 1e-6);
    if (best == 0) { /* the very model of the closed form */
      double *a = support_cosines(ctx, start, x, y), *b = support_cosines(ctx, model, x, y);
      CHECK_CLOSE(support_distance(a, b, 120 * 120), 0, 1e-5);
      free(a);
      free(b);
    }
    if (c == 0) assert_int_equal(best, 0);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  unicon_options *patient =
      support_options(ctx, "preset", "fast", "rank", "5", "refine", "50", "refine_batch", "100",
                      "refine_rate", "10", "start", "random", "metric", "none", NULL);
  unicon_model *model = NULL;
  double score[64];
  CHECK_OK(ctx, unicon_fit(ctx, &train, &validation, patient, &model));
  const long best = strtol(unicon_model_meta(model, "refine_best_epoch"), NULL, 10);
  assert_int_equal(numbers_of(model, "refine_score_log", score, 64), best + 1 + 5);
  unicon_model_destroy(model);
  unicon_options_destroy(patient);
  unicon_model_destroy(start);
  unicon_options_destroy(plain);
  unicon_rows_close(x);
  unicon_rows_close(y);
  problem_free(&p);
  problem_free(&held);
}

/* The learned temperature falls from 0.07 where the pairs can be told apart, but not below 1/100,
 * and rises where they cannot; a number stays as it is. */
static void temperature_is_learned_within_bounds(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    double noise;
    const char *temperature;
    double low, high;
  } cases[] = {
      {0.05, "learn", 0.0099999, 0.06}, {50, "learn", 0.075, 1e6}, {0.05, "0.2", 0.2, 0.2}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    double found;
    problem p;
    problem_make(ctx, 7, 300, 12, 10, 6, cases[c].noise, &p);
    unicon_options *options =
        support_options(ctx, "preset", "fast", "refine", "30", "refine_batch", "50", "refine_rate",
                        "0.3", "temperature", cases[c].temperature, NULL);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    assert_int_equal(numbers_of(model, "refine_temperature", &found, 1), 1);
    if (!(found >= cases[c].low && found <= cases[c].high))
      print_error("%s with noise %g: %g\n", cases[c].temperature, cases[c].noise, found);
    assert_true(found >= cases[c].low && found <= cases[c].high);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

/* Every loss can be refined or is refused in a sentence, also on labels and with rows unpaired. */
static void every_loss_is_refined_or_refused(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const losses[] = {"clip",   "infonce", "general",  "triplet",
                                       "supcon", "siglip",  "spectral", "moment"};
  enum { ROWS = 60 };
  problem p;
  problem_make(ctx, 8, ROWS, 9, 8, 4, 0.5, &p);
  int64_t label[ROWS], list[20];
  for (int i = 0; i < ROWS; i++) label[i] = i % 7;
  for (int i = 0; i < 20; i++) list[i] = 3 * i;
  unicon_pairs *pairs[3] = {NULL};
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, ROWS, label, ROWS, &pairs[1]));
  CHECK_OK(ctx, unicon_pairs_list(ctx, ROWS, ROWS, list, list, NULL, 20, &pairs[2]));
  for (size_t c = 0; c < sizeof losses / sizeof *losses; c++)
    for (int k = 0; k < 3; k++) {
      unicon_options *options = support_options(ctx, "preset", "fast", "loss", losses[c], "refine",
                                                "2", "refine_batch", "16", "rank", "4", NULL);
      unicon_model *model = NULL;
      const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y, .pairs = pairs[k]);
      const unicon_status status = unicon_fit(ctx, &data, NULL, options, &model);
      if (status != UNICON_OK) assert_true(strlen(unicon_ctx_error(ctx)) > 20);
      if (status == UNICON_OK) free(support_cosines(ctx, model, p.rows_x, p.rows_y));
      unicon_model_destroy(model);
      unicon_options_destroy(options);
    }
  unicon_pairs_destroy(pairs[1]);
  unicon_pairs_destroy(pairs[2]);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(gradients_are_differences),
      SCRATCH_TEST(a_step_follows_the_gradient),
      SCRATCH_TEST(refine_lowers_the_loss),
      SCRATCH_TEST(every_epoch_is_noted),
      SCRATCH_TEST(seed_and_threads_settle_it),
      SCRATCH_TEST(rows_without_a_partner_stay_out),
      SCRATCH_TEST(the_best_epoch_comes_back),
      SCRATCH_TEST(temperature_is_learned_within_bounds),
      SCRATCH_TEST(every_loss_is_refined_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
