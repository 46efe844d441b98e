/* SPDX-License-Identifier: Apache-2.0 */
/* The classical methods are corners of the one formula F_x F_y^T = R_x [R_x^T C R_y]_r R_y^T, set
 * by metric, exponent, split and rank. Each is held to its own definition, in plain double loops:
 *
 *     CCA         metric whiten, exponent 0: unit covariance on both sides, diagonal between them
 *     PLS         metric none, exponent 0: orthonormal weights, diagonal cross-covariance
 *     Procrustes  the same at full rank: the rotation Q nearest to C, scores cos(Q^T x, y)
 *     ridge       metric whiten,none, split 1, full rank: cos(W^T x, y) with
 *                 W = (Sigma_x + ridge mu I)^-1 C
 *
 * Tolerances: weights are float32 (6e-8), data sums double; metrics of condition 1e3 leave 1e-4. */
#include "support.h"

enum { N = 300, D = 6 };

typedef struct study {
  problem p;
  double *x, *y;          /* unit rows without their mean, N by D */
  double c[D * D];        /* X^T Y / N */
  double sigma[2][D * D]; /* X^T X / N, Y^T Y / N */
} study;

static double *centred_unit(const float *rows) {
  double *out = support_doubles((int64_t)N * D), mean[D] = {0};
  for (int i = 0; i < N; i++) {
    double length = 0;
    for (int k = 0; k < D; k++) length += (double)rows[i * D + k] * (double)rows[i * D + k];
    for (int k = 0; k < D; k++) {
      out[i * D + k] = (double)rows[i * D + k] / sqrt(length);
      mean[k] += out[i * D + k] / N;
    }
  }
  for (int i = 0; i < N * D; i++) out[i] -= mean[i % D];
  return out;
}

static void covariance(const double *a, const double *b, double *out) {
  support_product(true, false, D, D, N, a, b, out);
  for (int k = 0; k < D * D; k++) out[k] /= N;
}

static void study_open(unicon_ctx *ctx, study *s) {
  problem_make(ctx, 77, N, D, D, 4, 0.4, &s->p);
  s->x = centred_unit(s->p.x);
  s->y = centred_unit(s->p.y);
  covariance(s->x, s->y, s->c);
  covariance(s->x, s->x, s->sigma[0]);
  covariance(s->y, s->y, s->sigma[1]);
}

static void study_close(study *s) {
  problem_free(&s->p);
  free(s->x);
  free(s->y);
}

/* F_x or F_y of the fitted model, as doubles (D by rank). */
static double *weights_of(scratch *s, const unicon_model *model, const char *name) {
  int64_t count;
  float *single = support_tensor(s, model, name, &count);
  double *out = support_doubles(count);
  for (int64_t k = 0; k < count; k++) out[k] = (double)single[k];
  free(single);
  return out;
}

/* a^T m b (r by r), a and b D by r. */
static void sandwich(const double *a, const double *m, const double *b, int64_t r, double *out) {
  double half[D * D];
  support_product(true, false, r, D, D, a, m, half);
  support_product(false, false, r, r, D, half, b, out);
}

/* Largest entry off the diagonal. */
static double off_diagonal(const double *m, int64_t r) {
  double top = 0;
  for (int64_t i = 0; i < r; i++)
    for (int64_t k = 0; k < r; k++)
      top = i != k && fabs(m[i * r + k]) > top ? fabs(m[i * r + k]) : top;
  return top;
}

static void check_identity(const double *m, int64_t r, double tolerance) {
  assert_true(off_diagonal(m, r) < tolerance * m[0]);
  for (int64_t k = 0; k < r; k++) CHECK_CLOSE(m[k * r + k] / m[0], 1, tolerance);
}

static void cca(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  unicon_options *options =
      support_options(s->ctx, "ridge", "0", "exponent", "0", "rank", "4", NULL);
  unicon_model *model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  double *fx = weights_of(s, model, "x.weight"), *fy = weights_of(s, model, "y.weight"), m[D * D];
  sandwich(fx, t.sigma[0], fx, 4, m);
  check_identity(m, 4, 1e-4);
  sandwich(fy, t.sigma[1], fy, 4, m);
  check_identity(m, 4, 1e-4);
  sandwich(fx, t.c, fy, 4, m);
  assert_true(off_diagonal(m, 4) < 1e-4 * m[0]);
  for (int k = 1; k < 4; k++) assert_true(m[k * 4 + k] > 0 && m[k * 4 + k] <= m[(k - 1) * 5]);
  free(fy);
  free(fx);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  study_close(&t);
}

static void pls(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  unicon_options *options =
      support_options(s->ctx, "metric", "none", "exponent", "0", "rank", "3", NULL);
  unicon_model *model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  double *fx = weights_of(s, model, "x.weight"), *fy = weights_of(s, model, "y.weight"), m[D * D];
  support_product(true, false, 3, 3, D, fx, fx, m);
  check_identity(m, 3, 1e-5);
  support_product(true, false, 3, 3, D, fy, fy, m);
  check_identity(m, 3, 1e-5);
  sandwich(fx, t.c, fy, 3, m);
  assert_true(off_diagonal(m, 3) < 1e-5 * m[0]);
  /* the top three: what is left has no larger singular value than the third */
  double rest[D * D], product[D * D], power = 0;
  memcpy(rest, t.c, sizeof rest);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) rest[i * D + j] -= m[k * 4] * fx[i * 3 + k] * fy[j * 3 + k];
  support_product(true, false, D, D, D, rest, rest, product);
  for (int k = 0; k < D; k++) power += product[k * D + k];
  assert_true(power < 3 * m[8] * m[8] * 1.001);
  free(fy);
  free(fx);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  study_close(&t);
}

/* a (D by D) becomes its inverse; Gauss-Jordan with pivots. */
static void invert(double *a) {
  double b[D * D] = {0};
  for (int k = 0; k < D; k++) b[k * D + k] = 1;
  for (int k = 0; k < D; k++) {
    int top = k;
    for (int i = k; i < D; i++) top = fabs(a[i * D + k]) > fabs(a[top * D + k]) ? i : top;
    for (int j = 0; j < D; j++) {
      const double ha = a[k * D + j], hb = b[k * D + j];
      a[k * D + j] = a[top * D + j], a[top * D + j] = ha;
      b[k * D + j] = b[top * D + j], b[top * D + j] = hb;
    }
    const double pivot = a[k * D + k];
    for (int j = 0; j < D; j++) a[k * D + j] /= pivot, b[k * D + j] /= pivot;
    for (int i = 0; i < D; i++) {
      const double factor = a[i * D + k];
      for (int j = 0; j < D && i != k; j++) {
        a[i * D + j] -= factor * a[k * D + j];
        b[i * D + j] -= factor * b[k * D + j];
      }
    }
  }
  memcpy(a, b, sizeof b);
}

/* The model's cosines are those of x W with y. */
static void check_cosines(unicon_ctx *ctx, const study *t, const unicon_model *model,
                          const double *w, double tolerance) {
  double *found = support_cosines(ctx, model, t->p.rows_x, t->p.rows_y);
  double *xw = support_doubles((int64_t)N * D);
  support_product(false, false, N, D, D, t->x, w, xw);
  for (int i = 0; i < N; i += 7)
    for (int j = 0; j < N; j += 3) {
      double dot = 0, a = 0, b = 0;
      for (int k = 0; k < D; k++) {
        dot += xw[i * D + k] * t->y[j * D + k];
        a += xw[i * D + k] * xw[i * D + k];
        b += t->y[j * D + k] * t->y[j * D + k];
      }
      CHECK_CLOSE(found[i * N + j], dot / sqrt(a * b), tolerance);
    }
  free(xw);
  free(found);
}

static void procrustes(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  double q[D * D];
  memcpy(q, t.c, sizeof q);
  for (int step = 0; step < 60; step++) { /* the polar factor: Q = (Q + Q^-T) / 2 */
    double inverse[D * D];
    memcpy(inverse, q, sizeof inverse);
    invert(inverse);
    for (int i = 0; i < D; i++)
      for (int k = 0; k < D; k++) q[i * D + k] = (q[i * D + k] + inverse[k * D + i]) / 2;
  }
  unicon_options *options =
      support_options(s->ctx, "metric", "none", "exponent", "0", "rank", "6", NULL);
  unicon_model *model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  check_cosines(s->ctx, &t, model, q, 1e-5);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  study_close(&t);
}

static double largest_eigenvalue(const double *a) {
  double v[D], next[D], size = 0;
  for (int k = 0; k < D; k++) v[k] = 1 + 0.1 * k;
  for (int step = 0; step < 2000; step++) {
    support_product(false, false, D, 1, D, a, v, next);
    size = 0;
    for (int k = 0; k < D; k++) size += next[k] * next[k];
    for (int k = 0; k < D; k++) v[k] = next[k] / sqrt(size);
  }
  return sqrt(size);
}

static void ridge(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  double inverse[D * D], w[D * D];
  memcpy(inverse, t.sigma[0], sizeof inverse);
  for (int k = 0; k < D; k++) inverse[k * D + k] += 0.05 * largest_eigenvalue(t.sigma[0]);
  invert(inverse);
  support_product(false, false, D, D, D, inverse, t.c, w);
  unicon_options *options = support_options(s->ctx, "metric", "whiten,none", "ridge", "0.05",
                                            "split", "1", "rank", "6", NULL);
  unicon_model *model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  check_cosines(s->ctx, &t, model, w, 1e-4);
  unicon_model_destroy(model);
  /* the eigenvector path of the metric, power 1/2 by number, gives the same */
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "metric", "0.5,none"));
  model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  check_cosines(s->ctx, &t, model, w, 1e-4);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  study_close(&t);
}

/* A side's own metric is not swept by auto, and both ways of the ridge differ from whitening. */
static void sides_keep_their_metric(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  unicon_options *options =
      support_options(s->ctx, "preset", "auto", "kernel", "linear", "metric", "0.5,none", "ridge",
                      "0.05", "rank", "6", "refine", "0", NULL);
  unicon_model *model = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, options);
  unicon_options *plain =
      support_options(s->ctx, "metric", "whiten,none", "ridge", "0.05", "rank", "6", NULL);
  unicon_model *same = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, plain);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, plain, "metric", "whiten"));
  unicon_model *other = support_fit(s->ctx, t.p.rows_x, t.p.rows_y, NULL, plain);
  double *a = support_cosines(s->ctx, model, t.p.rows_x, t.p.rows_y);
  double *b = support_cosines(s->ctx, same, t.p.rows_x, t.p.rows_y);
  double *c = support_cosines(s->ctx, other, t.p.rows_x, t.p.rows_y);
  assert_true(support_distance(a, b, (int64_t)N * N) < 1e-4);
  assert_true(support_distance(b, c, (int64_t)N * N) > 1e-2);
  free(c);
  free(b);
  free(a);
  unicon_model_destroy(other);
  unicon_model_destroy(same);
  unicon_model_destroy(model);
  unicon_options_destroy(plain);
  unicon_options_destroy(options);
  study_close(&t);
}

static void a_shared_encoder_has_one_metric(void **state) {
  scratch *s = *state;
  study t;
  study_open(s->ctx, &t);
  unicon_options *options =
      support_options(s->ctx, "shared_encoder", "on", "metric", "whiten,none", NULL);
  unicon_model *model = NULL;
  const unicon_data data = {t.p.rows_x, t.p.rows_y, NULL, NULL};
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_OPTION,
                 "one metric", "for y");
  unicon_options_destroy(options);
  study_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(cca),
      SCRATCH_TEST(pls),
      SCRATCH_TEST(procrustes),
      SCRATCH_TEST(ridge),
      SCRATCH_TEST(sides_keep_their_metric),

      SCRATCH_TEST(a_shared_encoder_has_one_metric),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
