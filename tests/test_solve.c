/* SPDX-License-Identifier: Apache-2.0 */
/* The solver: the closed form against a plain double version of the whole method, the split of the
 * singular values (T20), and steps that never raise the loss (T21, T24). */
#include "features/batch.h"
#include "linalg/blas.h"
#include "support.h"

enum { N = 150, DX = 9, DY = 7, NEW = 20 };

/* ---- the closed form, the plain way ------------------------------------------------------- */

typedef struct side {
  int64_t d;
  double mean[DX];
  double *root; /* (Sigma + ridge lambda_max I)^-power, d by d */
  double *phi;  /* N by d, unit and centred */
} side;

static void unit_row(const float *row, int64_t d, double *out) {
  double sum = 0;
  for (int64_t k = 0; k < d; k++) sum += (double)row[k] * (double)row[k];
  for (int64_t k = 0; k < d; k++) out[k] = (double)row[k] / sqrt(sum);
}

static void make_side(unicon_ctx *ctx, const float *rows, int64_t d, double power, double ridge,
                      side *s) {
  *s = (side){.d = d, .root = support_doubles(d * d), .phi = support_doubles(N * d)};
  for (int64_t i = 0; i < N; i++) {
    unit_row(rows + i * d, d, s->phi + i * d);
    for (int64_t k = 0; k < d; k++) s->mean[k] += s->phi[i * d + k] / N;
  }
  for (int64_t k = 0; k < N * d; k++) s->phi[k] -= s->mean[k % d];
  double *sigma = support_doubles(d * d), w[DX];
  int info;
  support_product(true, false, d, d, N, s->phi, s->phi, sigma);
  for (int64_t k = 0; k < d * d; k++) sigma[k] /= N;
  CHECK_OK(ctx, unicon__dsyevd(ctx, d, sigma, w, &info));
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++)
      for (int64_t k = 0; k < d; k++)
        s->root[i * d + j] +=
            sigma[k * d + i] * pow(w[k] + ridge * w[d - 1], -power) * sigma[k * d + j];
  free(sigma);
}

/* Embeds a new row: s^share U^T root (x/|x| - mean), scaled to length 1. */
static void embed_plain(const side *s, const double *u, const double *values, int64_t r,
                        double share, const float *row, double *out) {
  double x[DX], y[DX], sum = 0;
  unit_row(row, s->d, x);
  for (int64_t k = 0; k < s->d; k++) x[k] -= s->mean[k];
  support_product(false, false, s->d, 1, s->d, s->root, x, y);
  for (int64_t k = 0; k < r; k++) {
    out[k] = 0;
    for (int64_t i = 0; i < s->d; i++) out[k] += u[i * r + k] * y[i] * pow(values[k], share);
    sum += out[k] * out[k];
  }
  for (int64_t k = 0; k < r; k++) out[k] /= sqrt(sum);
}

/* One fit of the library against the symmetric-root form in double: M = W_x C W_y, C = the mean of
 * phi_x phi_y^T over the pairs, cosines of rows that were not seen. */
static void check_closed_form(unicon_ctx *ctx, const char *metric, double power, const char *split,
                              int64_t r) {
  problem p, fresh;
  problem_make(ctx, 1, N, DX, DY, 5, 0.6, &p);
  problem_make(ctx, 2, NEW, DX, DY, 5, 0.6, &fresh);
  const double share = atof(split);
  char rank[8];
  side x, y;
  make_side(ctx, p.x, DX, power, 0.01, &x);
  make_side(ctx, p.y, DY, power, 0.01, &y);
  double c[DX * DY], half[DX * DY], values[DY], u[DX * DY], vt[DY * DY];
  int info;
  support_product(true, false, DX, DY, N, x.phi, y.phi, c);
  for (int k = 0; k < DX * DY; k++) c[k] /= N;
  support_product(false, false, DX, DY, DX, x.root, c, half);
  support_product(false, false, DX, DY, DY, half, y.root, c);
  CHECK_OK(ctx, unicon__dgesvd(ctx, DX, DY, c, values, u, vt, &info));
  snprintf(rank, sizeof rank, "%d", (int)r);
  unicon_options *options =
      support_options(ctx, "metric", metric, "split", split, "rank", rank, NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  for (int64_t k = 0; k < r; k++)
    /* Float32 sums of Sigma are good to 1e-7, which a ridge of .01 raises a hundredfold. */
    CHECK_CLOSE(unicon_model_spectrum(model)[k], values[k], 1e-5 * values[0]);
  double left[DX * DY], right[DY * DY], a[DY], b[DY];
  for (int64_t k = 0; k < r; k++) {
    for (int64_t i = 0; i < DX; i++) left[i * r + k] = u[i * DY + k];
    for (int64_t i = 0; i < DY; i++) right[i * r + k] = vt[k * DY + i];
  }
  double *cosines = support_cosines(ctx, model, fresh.rows_x, fresh.rows_y);
  for (int i = 0; i < NEW; i++)
    for (int j = 0; j < NEW; j++) {
      double expected = 0;
      embed_plain(&x, left, values, r, share, fresh.x + i * DX, a);
      embed_plain(&y, right, values, r, 1 - share, fresh.y + j * DY, b);
      for (int64_t k = 0; k < r; k++) expected += a[k] * b[k];
      CHECK_CLOSE(cosines[i * NEW + j], expected, 1e-4); /* as in test_fit.c */
    }
  free(cosines);
  free(x.root);
  free(x.phi);
  free(y.root);
  free(y.phi);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
  problem_free(&fresh);
}

static void closed_form_is_the_formula(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  check_closed_form(ctx, "whiten", 0.5, "0.5", 7);
  check_closed_form(ctx, "whiten", 0.5, "0.5", 3);
  check_closed_form(ctx, "none", 0, "0.5", 4);
  check_closed_form(ctx, "0.25", 0.25, "0.3", 5);
  check_closed_form(ctx, "1", 1, "1", 7);
}

/* ---- T20 ---------------------------------------------------------------------------------- */

/* F_x F_y^T is the same for every split; the cosines are not. */
static void split_keeps_the_product(void **state) {
  scratch *s = *state;
  static const char *const splits[] = {"0.5", "0", "0.3", "1"};
  problem p;
  problem_make(s->ctx, 3, N, DX, DY, 5, 0.6, &p);
  double first[DX * DY], *cosines = NULL;
  for (int c = 0; c < 4; c++) {
    unicon_options *options = support_options(s->ctx, "split", splits[c], "metric", "none", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    const int64_t r = unicon_model_rank(model);
    const float *spectrum = unicon_model_spectrum(model);
    double product[DX * DY] = {0}, size = 0, total = 0;
    int64_t count;
    float *fx = support_tensor(s, model, "x.weight", &count);
    assert_int_equal(count, DX * r);
    float *fy = support_tensor(s, model, "y.weight", &count);
    assert_int_equal(count, DY * r);
    for (int i = 0; i < DX; i++)
      for (int j = 0; j < DY; j++)
        for (int64_t k = 0; k < r; k++)
          product[i * DY + j] += (double)fx[i * r + k] * (double)fy[j * r + k];
    if (c == 0) memcpy(first, product, sizeof first);
    for (int k = 0; k < DX * DY; k++) size = fmax(size, fabs(first[k]));
    /* The factors are rounded to float32 once. */
    CHECK_CLOSE(support_distance(product, first, DX * DY), 0, 4e-7 * size);
    /* Without a metric the columns of F_x have length s^split. */
    for (int64_t k = 0; k < r; k++) total += pow((double)spectrum[k], 2);
    for (int64_t k = 0; k < r; k++) {
      double length = 0;
      for (int i = 0; i < DX; i++) length += pow((double)fx[i * r + k], 2);
      CHECK_CLOSE(sqrt(length), pow((double)spectrum[k] / sqrt(total), atof(splits[c])), 1e-6);
    }
    double *now = support_cosines(s->ctx, model, p.rows_x, p.rows_y);
    if (cosines) assert_true(support_distance(cosines, now, N * N) > 1e-2);
    if (cosines)
      free(now);
    else
      cosines = now;
    free(fx);
    free(fy);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  free(cosines);
  problem_free(&p);
}

/* ---- T24 ---------------------------------------------------------------------------------- */

/* tau times the mean cross-entropy of rows and of columns, halved, from the cosines themselves. */
static double clip_loss(const double *s, int64_t n, double tau) {
  double total = 0;
  for (int64_t i = 0; i < n; i++)
    for (int direction = 0; direction < 2; direction++) {
      double sum = 0;
      for (int64_t j = 0; j < n; j++)
        sum += exp(((direction ? s[j * n + i] : s[i * n + j]) - s[i * n + i]) / tau);
      total += tau * log(sum) / (2 * (double)n);
    }
  return total;
}

/* The numbers of a metadata entry. */
static int read_log(const unicon_model *model, const char *key, double *out) {
  int count = 0;
  const char *text = unicon_model_meta(model, key);
  assert_non_null(text);
  for (char *end; count < 64; text = end) {
    const double value = strtod(text, &end);
    if (end == text) break;
    out[count++] = value;
  }
  return count;
}

static const char *const temperatures[] = {"1", "0.3", "0.1", "0.05", "0.02"};

/* Returns whether the loss ever rose. */
static bool check_iterations(unicon_ctx *ctx, const problem *p, const char *temperature,
                             const char *metric, const char *damping, const char *batch,
                             int *taken) {
  double loss[64], eta[64];
  unicon_options *options =
      support_options(ctx, "temperature", temperature, "metric", metric, "damping", damping,
                      "batch", batch, "iterations", "8", NULL);
  unicon_model *model = support_fit(ctx, p->rows_x, p->rows_y, NULL, options);
  const int count = read_log(model, "loss_log", loss);
  assert_int_equal(read_log(model, "step_log", eta), count);
  assert_true(count >= 1 && count <= 9);
  bool rose = false;
  for (int k = 1; k < count; k++) {
    rose = rose || loss[k] > loss[k - 1];
    const double halvings = -log2(eta[k]);
    assert_true(halvings >= 0 && halvings <= 7 && halvings == floor(halvings));
  }
  *taken += count - 1;
  if (strcmp(batch, "full") == 0) { /* the model returned is the last one logged */
    double *cosines = support_cosines(ctx, model, p->rows_x, p->rows_y);
    const double tau = atof(temperature);
    /* Cosines to 5e-7, exponents 1/tau times that, and tau in front: 1e-6 whatever tau. */
    CHECK_CLOSE(loss[count - 1], clip_loss(cosines, p->n, tau), 2e-6);
    free(cosines);
  }
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  return rose;
}

static void safe_steps_never_raise_the_loss(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  int taken = 0;
  for (uint64_t seed = 0; seed < 4; seed++) {
    problem p;
    problem_make(ctx, 20 + seed, 60 + 30 * (int64_t)seed, DX, DY, 2 + (int64_t)seed,
                 0.3 * (double)(1 + seed), &p);
    for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++) {
      assert_false(check_iterations(ctx, &p, temperatures[t], "none", "safe", "full", &taken));
      assert_false(check_iterations(ctx, &p, temperatures[t], "whiten", "safe", "full", &taken));
      assert_false(check_iterations(ctx, &p, temperatures[t], "none", "safe", "25", &taken));
    }
    problem_free(&p);
  }
  assert_true(taken > 60); /* and steps are taken: one in each of 60 runs on average */
}

/* T21, second half: on dot products (loss spectral) a damped step is a descent step of J, so the
 * tracked loss falls whatever the metric, the batches and the start. */
static void damped_steps_on_dot_products_descend(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const metric[] = {"none", "whiten", "0.25"};
  static const char *const start[] = {"moment", "random"};
  int taken = 0;
  for (uint64_t seed = 0; seed < 3; seed++) {
    problem p;
    problem_make(ctx, 40 + seed, 90, DX, DY, 4, 0.5, &p);
    for (int m = 0; m < 3; m++)
      for (int b = 0; b < 4; b++) {
        double loss[64];
        unicon_options *options =
            support_options(ctx, "loss", "spectral", "metric", metric[m], "rank", "3", "start",
                            start[b / 2], "batch", b % 2 ? "30" : "full", "iterations", "8", NULL);
        unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
        const int count = read_log(model, "loss_log", loss);
        for (int k = 1; k < count; k++) assert_true(loss[k] < loss[k - 1]);
        taken += count - 1;
        unicon_model_destroy(model);
        unicon_options_destroy(options);
      }
    problem_free(&p);
  }
  assert_true(taken > 36); /* a step in each run on average */
}

/* Plain steps do raise it, which is why there are safe ones; all eight are taken. */
static void plain_steps_may_raise_the_loss(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  int taken = 0, rose = 0;
  problem_make(ctx, 21, 90, DX, DY, 3, 0.6, &p);
  for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++)
    rose += check_iterations(ctx, &p, temperatures[t], "none", "plain", "full", &taken);
  assert_int_equal(taken, 40);
  assert_true(rose >= 2);
  problem_free(&p);
}

/* The cosines of a batch alone, rows with rows of the same batch. */
static double batch_loss(const double *cosines, int64_t n, const int64_t *row, int64_t count) {
  double *own = support_doubles(count * count);
  for (int64_t a = 0; a < count; a++)
    for (int64_t b = 0; b < count; b++) own[a * count + b] = cosines[row[a] * n + row[b]];
  const double loss = clip_loss(own, count, 0.3);
  free(own);
  return loss;
}

/* One of four batches has wrong pairs, and `robust` drops it: it counts neither in C nor in the
 * loss that steps are held to. */
static void dropped_batches_are_not_in_the_loss(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 160, BATCHES = 4 };
  problem p, held;
  problem_make(ctx, 31, ROWS + 100, DX, DY, 4, 0.3, &p);
  held = p;
  held.rows_x = support_rows(ctx, "held x", p.x + ROWS * DX, 100, DX);
  held.rows_y = support_rows(ctx, "held y", p.y + ROWS * DY, 100, DY);
  unicon_rows *x = support_rows(ctx, "x", p.x, ROWS, DX),
              *y = support_rows(ctx, "y", p.y, ROWS, DY);
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, ROWS, ROWS, &pairs));
  unicon__problem cut = {
      .whole = {.x = {.rows = x, .count = ROWS}, .y = {.rows = y, .count = ROWS}, .pairs = pairs}};
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__problem_cut(ctx, &(unicon__cut){.size = ROWS / BATCHES}, &cut));
  assert_int_equal(cut.batches, BATCHES);
  const unicon__batch *wrong = &cut.batch[1];
  for (int64_t k = 0; k < wrong->x.count; k++) /* y rows of the batch, none with its x */
    for (int64_t j = 0; j < DY && k % 2 == 0; j++) {
      float *a = p.y + wrong->x_row[k] * DY + j, *b = p.y + wrong->x_row[k + 1] * DY + j, c = *a;
      *a = -*b;
      *b = -c;
    }
  log_book book = {0};
  double loss[64], wanted = 0;
  unicon_options *options = support_options(ctx, "batch", "40", "aggregate", "robust", "iterations",
                                            "3", "temperature", "0.3", NULL);
  unicon_model *model = NULL;
  unicon_ctx_set_log(ctx, support_log, &book);
  CHECK_OK(ctx, unicon_fit(ctx, &(unicon_data){x, y, NULL, NULL},
                           &(unicon_data){held.rows_x, held.rows_y, NULL, NULL}, options, &model));
  unicon_ctx_set_log(ctx, NULL, NULL);
  assert_non_null(strstr(book.last[UNICON_LOG_INFO], "1 of 4 batches dropped"));
  double *cosines = support_cosines(ctx, model, x, y);
  for (int b = 0; b < BATCHES; b++)
    if (b != 1) wanted += batch_loss(cosines, ROWS, cut.batch[b].x_row, cut.batch[b].x.count) / 3;
  assert_true(read_log(model, "loss_log", loss) > 0);
  CHECK_CLOSE(loss[atoi(unicon_model_meta(model, "best_step"))], wanted, 2e-6);
  free(cosines);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  unicon__problem_close(&cut);
  unicon__frame_close(ctx, frame);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_rows_close(held.rows_x);
  unicon_rows_close(held.rows_y);
  problem_free(&p);
}

/* Where every triplet keeps its margin S is 0, and there is no step to take: the model stays. */
static void a_loss_of_zero_ends_it(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float x[8 * 8] = {0};
  for (int i = 0; i < 8; i++) x[9 * i] = 1;
  unicon_rows *rows = support_rows(ctx, "x", x, 8, 8);
  unicon_options *options = support_options(ctx, "loss", "triplet", "margin", "0.1", "iterations",
                                            "3", "damping", "plain", NULL);
  unicon_model *model = support_fit(ctx, rows, rows, NULL, options);
  double *cosine = support_cosines(ctx, model, rows, rows);
  for (int i = 0; i < 8; i++) CHECK_CLOSE(cosine[9 * i], 1, 1e-5);
  assert_true(cosine[1] < 0.5);
  free(cosine);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  unicon_rows_close(rows);
}

/* The moment weights do not depend on the model: iterating them changes nothing. */
static void moment_needs_no_iterations(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 22, 90, DX, DY, 3, 0.6, &p);
  unicon_options *moment = support_options(ctx, "loss", "moment", "iterations", "3", NULL);
  unicon_model *a = support_fit(ctx, p.rows_x, p.rows_y, NULL, moment);
  unicon_model *b = support_fit(ctx, p.rows_x, p.rows_y, NULL, NULL);
  double *of_a = support_cosines(ctx, a, p.rows_x, p.rows_y);
  double *of_b = support_cosines(ctx, b, p.rows_x, p.rows_y);
  /* Roundings of the mean and the second moment may differ where features are kept in a cache. */
  CHECK_CLOSE(support_distance(of_a, of_b, 90 * 90), 0, 1e-4);
  assert_null(unicon_model_meta(a, "loss_log"));
  free(of_a);
  free(of_b);
  unicon_model_destroy(a);
  unicon_model_destroy(b);
  unicon_options_destroy(moment);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(closed_form_is_the_formula),
      SCRATCH_TEST(split_keeps_the_product),
      SCRATCH_TEST(safe_steps_never_raise_the_loss),
      SCRATCH_TEST(damped_steps_on_dot_products_descend),
      SCRATCH_TEST(plain_steps_may_raise_the_loss),
      SCRATCH_TEST(moment_needs_no_iterations),
      SCRATCH_TEST(dropped_batches_are_not_in_the_loss),
      SCRATCH_TEST(a_loss_of_zero_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
