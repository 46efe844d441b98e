/* SPDX-License-Identifier: Apache-2.0 */
/* The metric: what R must satisfy, both ways to make it, and the second moments under it. */
#include "solve/whiten.h"
#include "linalg/spectral.h"
#include "linalg/blas.h"
#include "support.h"

/* Q diag(e) Q^T, to be freed. */
static double *symmetric(const double *q, const double *e, int64_t n) {
  double *a = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < n; k++) a[i * n + j] += q[i * n + k] * e[k] * q[j * n + k];
  return a;
}

static double *identity(int64_t n) {
  double *a = support_doubles(n * n);
  for (int64_t k = 0; k < n; k++) a[k * (n + 1)] = 1;
  return a;
}

/* The metric of sigma, with its own largest eigenvalue. */
static unicon_status build(unicon_ctx *ctx, const double *sigma, int64_t size, double power,
                           double ridge, unicon__whitening *out) {
  double mu;
  CHECK_OK(ctx, unicon__largest_eigenvalue(ctx, sigma, size, &mu));
  return unicon__whiten_build(ctx, sigma, size, mu, power, ridge, out);
}

/* R itself: what `back` makes of I; `left` and `right` must be its transpose and R. */
static double *factor_of(unicon_ctx *ctx, const unicon__whitening *metric) {
  const int64_t n = metric->size;
  double *r = identity(n), *left = identity(n), *right = identity(n);
  CHECK_OK(ctx, unicon__whiten_back(ctx, metric, r, n));
  CHECK_OK(ctx, unicon__whiten_left(ctx, metric, left, n));
  CHECK_OK(ctx, unicon__whiten_right(ctx, metric, right, n));
  double size = 0;
  for (int64_t k = 0; k < n * n; k++) size = fmax(size, fabs(r[k]));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      CHECK_CLOSE(left[j * n + i], r[i * n + j], 1e-12 * size);
      CHECK_CLOSE(right[i * n + j], r[i * n + j], 1e-12 * size);
    }
  free(left);
  free(right);
  return r;
}

enum { P = 12 };
static const double spectrum[P] = {5, 3, 2, 1.5, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003};

/* R R^T = (Sigma + shift)^(-2 power) and, for power 1/2, R^T (Sigma + shift) R = I. */
static void check_metric(unicon_ctx *ctx, double power, double ridge, unicon__whiten_kind kind) {
  double *q = support_orthonormal(4, P, P), *sigma = symmetric(q, spectrum, P);
  double *given = support_doubles(P * P), e[P], product[P * P], whitened[P * P];
  memcpy(given, sigma, P * P * sizeof *sigma);
  unicon__whitening metric;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, build(ctx, given, P, power, ridge, &metric));
  assert_int_equal(metric.kind, kind);
  double *r = factor_of(ctx, &metric);
  for (int k = 0; k < P; k++) e[k] = pow(spectrum[k] + ridge * spectrum[0], -2 * power);
  double *expected = symmetric(q, e, P);
  support_product(false, true, P, P, P, r, r, product);
  /* Conditions up to 2e3, each costing that factor of 1e-16; the largest eigenvalue, which sets the
   * shift, is known to 1e-10. */
  CHECK_CLOSE(support_distance(product, expected, P * P), 0, 1e-8 * e[P - 1]);
  if (power == 0.5) {
    for (int k = 0; k < P; k++) sigma[k * (P + 1)] += ridge * spectrum[0];
    support_product(false, false, P, P, P, sigma, r, product);
    support_product(true, false, P, P, P, r, product, whitened);
    double *one = identity(P);
    CHECK_CLOSE(support_distance(whitened, one, P * P), 0, 1e-8);
    free(one);
  }
  unicon__frame_close(ctx, frame);
  free(q);
  free(sigma);
  free(given);
  free(r);
  free(expected);
}

static void factor_has_the_metric(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  check_metric(ctx, 0.5, 0.01, UNICON__WHITEN_CHOLESKY);
  check_metric(ctx, 0.5, 3, UNICON__WHITEN_CHOLESKY);
  check_metric(ctx, 0.5, 0, UNICON__WHITEN_EIGEN);
  check_metric(ctx, 0.25, 0.01, UNICON__WHITEN_EIGEN);
  check_metric(ctx, 1, 0.1, UNICON__WHITEN_EIGEN);
  check_metric(ctx, 0.75, 0, UNICON__WHITEN_EIGEN);
  check_metric(ctx, 0, 0.01, UNICON__WHITEN_NONE);
}

/* Without a ridge the null space is left out: R R^T is the pseudo-inverse. */
static void singular_moments_are_handled(void **state) {
  scratch *s = *state;
  static const double e[P] = {4, 2, 1, 0.5, 0.25}, inverse[P] = {0.25, 0.5, 1, 2, 4};
  double *q = support_orthonormal(6, P, P), *sigma = symmetric(q, e, P), product[P * P];
  double *expected = symmetric(q, inverse, P), *zero = support_doubles(P * P);
  unicon__whitening metric;
  unicon__block *frame = unicon__frame_open(s->ctx);
  log_book book = {0};
  unicon_ctx_set_log(s->ctx, support_log, &book);
  CHECK_OK(s->ctx, build(s->ctx, sigma, P, 0.5, 0, &metric));
  assert_int_equal(book.count[UNICON_LOG_INFO], 1);
  assert_non_null(strstr(book.last[UNICON_LOG_INFO], "7 of 12"));
  double *r = factor_of(s->ctx, &metric);
  support_product(false, true, P, P, P, r, r, product);
  CHECK_CLOSE(support_distance(product, expected, P * P), 0, 1e-10);
  scratch_failed(s, build(s->ctx, zero, P, 0.5, 0.01, &metric), UNICON_ERR_DATA, "same", "align");
  unicon__frame_close(s->ctx, frame);
  free(q);
  free(sigma);
  free(expected);
  free(zero);
  free(r);
}

/* ---- T16 ---------------------------------------------------------------------------------- */

enum { N = 300, Q = 9 };

typedef struct moments {
  double x[N * P], y[N * Q];
  double sigma_x[P * P], sigma_y[Q * Q], c[P * Q];
} moments;

static moments *make_moments(void) {
  moments *m = calloc(1, sizeof *m);
  assert_non_null(m);
  uint64_t state = 77;
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < P; k++) m->x[i * P + k] = support_normal(&state) * (1 + k);
    for (int k = 0; k < Q; k++)
      m->y[i * Q + k] = 0.2 * (1 + k) * m->x[i * P + k] / (1 + k) + support_normal(&state);
  }
  for (int k = 0; k < P + Q; k++) { /* centred */
    double *column = k < P ? m->x + k : m->y + k - P, mean = 0;
    const int width = k < P ? P : Q;
    for (int i = 0; i < N; i++) mean += column[i * width] / N;
    for (int i = 0; i < N; i++) column[i * width] -= mean;
  }
  support_product(true, false, P, P, N, m->x, m->x, m->sigma_x);
  support_product(true, false, Q, Q, N, m->y, m->y, m->sigma_y);
  support_product(true, false, P, Q, N, m->x, m->y, m->c);
  return m;
}

/* A = R_x U s^1/2 and B = R_y V s^1/2 with the singular values. */
static void solve_moments(unicon_ctx *ctx, const moments *m, double power, double ridge,
                          unicon__whiten_kind kind, double *a, double *b, double *s) {
  double sx[P * P], sy[Q * Q], c[P * Q];
  unicon__whitening x, y;
  unicon__svd svd;
  memcpy(sx, m->sigma_x, sizeof sx);
  memcpy(sy, m->sigma_y, sizeof sy);
  memcpy(c, m->c, sizeof c);
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, build(ctx, sx, P, power, ridge, &x));
  CHECK_OK(ctx, build(ctx, sy, Q, power, ridge, &y));
  assert_int_equal(x.kind, kind);
  CHECK_OK(ctx, unicon__whiten_left(ctx, &x, c, Q));
  CHECK_OK(ctx, unicon__whiten_right(ctx, &y, c, P));
  CHECK_OK(ctx, unicon__svd_top(ctx, c, P, Q, Q, UNICON__SVD_DENSE, 0, &svd));
  for (int k = 0; k < Q; k++) {
    s[k] = svd.s[k];
    for (int i = 0; i < P; i++) a[i * Q + k] = svd.u[i * Q + k] * sqrt(s[k]);
    for (int i = 0; i < Q; i++) b[i * Q + k] = svd.v[i * Q + k] * sqrt(s[k]);
  }
  CHECK_OK(ctx, unicon__whiten_back(ctx, &x, a, Q));
  CHECK_OK(ctx, unicon__whiten_back(ctx, &y, b, Q));
  unicon__frame_close(ctx, frame);
}

/* Cholesky and symmetric roots differ by a rotation, which the singular vectors take up. The next
 * number after .5 is a power that only eigenvectors serve, and moves the result by 1e-16. */
static void both_roots_give_one_model(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  moments *m = make_moments();
  double a[P * Q], b[Q * Q], s[Q], a2[P * Q], b2[Q * Q], s2[Q];
  solve_moments(ctx, m, 0.5, 0.05, UNICON__WHITEN_CHOLESKY, a, b, s);
  solve_moments(ctx, m, nextafter(0.5, 1), 0.05, UNICON__WHITEN_EIGEN, a2, b2, s2);
  for (int k = 0; k < Q; k++) {
    double same = 0;
    CHECK_CLOSE(s2[k], s[k], 1e-10);
    for (int i = 0; i < P; i++) same += a[i * Q + k] * a2[i * Q + k];
    const double sign = same < 0 ? -1 : 1;
    for (int i = 0; i < P; i++) CHECK_CLOSE(a2[i * Q + k], sign * a[i * Q + k], 1e-10);
    for (int i = 0; i < Q; i++) CHECK_CLOSE(b2[i * Q + k], sign * b[i * Q + k], 1e-10);
  }
  free(m);
}

static void no_ridge_gives_canonical_correlations(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  moments *m = make_moments();
  double a[P * Q], b[Q * Q], s[Q], tiny[Q], correlation[P * Q];
  solve_moments(ctx, m, 0.5, 0, UNICON__WHITEN_EIGEN, a, b, s);
  solve_moments(ctx, m, 0.5, 1e-8, UNICON__WHITEN_CHOLESKY, a, b, tiny);
  support_orthonormalize(m->x, N, P);
  support_orthonormalize(m->y, N, Q);
  support_product(true, false, P, Q, N, m->x, m->y, correlation);
  unicon__svd svd;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__svd_top(ctx, correlation, P, Q, Q, UNICON__SVD_DENSE, 0, &svd));
  assert_true(svd.s[0] < 1 && svd.s[0] > 0.5 && svd.s[Q - 1] < 0.4);
  for (int k = 0; k < Q; k++) {
    CHECK_CLOSE(s[k], svd.s[k], 1e-10);
    CHECK_CLOSE(tiny[k], svd.s[k], 1e-5); /* ridge 1e-8 of an eigenvalue range of about 150 */
  }
  unicon__frame_close(ctx, frame);
  free(m);
}

/* Rounding can make a second moment indefinite: then Cholesky fails, and eigenvectors do it, with
 * zero in the place of what is below it. */
static void indefinite_moments_have_a_metric(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double value[3] = {1, 0.5, -0.1};
  double *q = support_orthonormal(8, 3, 3), *sigma = symmetric(q, value, 3);
  unicon__whitening metric;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__whiten_build(ctx, sigma, 3, 1, 0.5, 0.01, &metric));
  assert_int_equal(metric.kind, UNICON__WHITEN_EIGEN);
  double *r = factor_of(ctx, &metric), product[9];
  support_product(false, true, 3, 3, 3, r, r, product); /* R R^T = (Sigma + .01)^-1 */
  for (int k = 0; k < 3; k++) {
    double along = 0;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) along += q[i * 3 + k] * product[i * 3 + j] * q[j * 3 + k];
    CHECK_CLOSE(along, 1 / (fmax(value[k], 0) + 0.01), 1e-10);
  }
  unicon__frame_close(ctx, frame);
  free(r);
  free(sigma);
  free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(factor_has_the_metric),
      SCRATCH_TEST(singular_moments_are_handled),
      SCRATCH_TEST(both_roots_give_one_model),
      SCRATCH_TEST(no_ridge_gives_canonical_correlations),
      SCRATCH_TEST(indefinite_moments_have_a_metric),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
