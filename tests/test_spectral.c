/* SPDX-License-Identifier: Apache-2.0 */
/* Factorisations against matrices whose answer is known because they were built from it. The
 * tolerance 1e-12 is a few hundred times double rounding for the sizes used. */
#include "solve/whiten.h"
#include "linalg/spectral.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "support.h"

static double *random_matrix(uint64_t seed, int64_t m, int64_t n) {
  return support_random(seed + 99, m * n);
}

/* ---- QR ----------------------------------------------------------------------------------- */

static void check_qr(unicon_ctx *ctx, double *a, int64_t m, int64_t n) {
  double *q = support_doubles(m * n), *again = support_doubles(m * n), *r = support_doubles(n * n);
  double *product = support_doubles(m * n);
  memcpy(q, a, (size_t)(m * n) * sizeof *q);
  memcpy(again, a, (size_t)(m * n) * sizeof *q);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, m, n, q, r));
  CHECK_CLOSE(support_orthogonality(q, m, n), 0, 1e-12);
  support_product(false, false, m, n, n, q, r, product);
  CHECK_CLOSE(support_distance(product, a, m * n), 0, 1e-12);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) assert_true(r[i * n + j] == 0);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, m, n, again, NULL));
  CHECK_CLOSE(support_distance(again, q, m * n), 0, 0);
  free(q);
  free(again);
  free(r);
  free(product);
}

static void qr_gives_the_matrix_back(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[][2] = {{1, 1}, {4, 1}, {5, 5}, {50, 7}, {200, 33}, {65, 64}};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    double *a = random_matrix(c, sizes[c][0], sizes[c][1]);
    check_qr(ctx, a, sizes[c][0], sizes[c][1]);
    free(a);
  }
  static const double deficient[3] = {5, 2, 1};
  double *a = support_known(3, 40, 8, 3, deficient), *zero = support_doubles(40 * 8);
  check_qr(ctx, a, 40, 8);
  check_qr(ctx, zero, 40, 8);
  free(a);
  free(zero);
}

/* ---- singular values ---------------------------------------------------------------------- */

/* max over k of |M v - s u| and |M^T u - s v|, over s_1: the certificate, computed the plain way.
 */
static double plain_residual(const double *a, const unicon__svd *svd) {
  const int64_t m = svd->m, n = svd->n, r = svd->r;
  double worst = 0;
  for (int64_t k = 0; k < r; k++) {
    double left = 0, right = 0;
    for (int64_t i = 0; i < m; i++) {
      double sum = -svd->s[k] * svd->u[i * r + k];
      for (int64_t j = 0; j < n; j++) sum += a[i * n + j] * svd->v[j * r + k];
      left += sum * sum;
    }
    for (int64_t j = 0; j < n; j++) {
      double sum = -svd->s[k] * svd->v[j * r + k];
      for (int64_t i = 0; i < m; i++) sum += a[i * n + j] * svd->u[i * r + k];
      right += sum * sum;
    }
    worst = fmax(worst, sqrt(fmax(left, right)));
  }
  return svd->s[0] > 0 ? worst / svd->s[0] : 0;
}

static void check_signs(const unicon__svd *svd) {
  for (int64_t k = 0; k < svd->r; k++) {
    double top = 0;
    for (int64_t i = 0; i < svd->m; i++)
      if (fabs(svd->u[i * svd->r + k]) > fabs(top)) top = svd->u[i * svd->r + k];
    assert_true(top > 0);
  }
}

/* How far the left vectors are from those the matrix was made of. */
static double vector_distance(uint64_t seed, const unicon__svd *svd, int64_t q) {
  double *u = support_orthonormal(seed, svd->m, q), worst = 0;
  for (int64_t k = 0; k < svd->r; k++) { /* distinct values: each u_k is known up to its sign */
    double dot = 0;
    for (int64_t i = 0; i < svd->m; i++) dot += u[i * q + k] * svd->u[i * svd->r + k];
    worst = fmax(worst, 1 - fabs(dot));
  }
  free(u);
  return worst;
}

static void check_svd(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r, unicon__svd_method method) {
  const int64_t q = m < n ? m : n;
  double *s = support_doubles(q);
  for (int64_t k = 0; k < q; k++) s[k] = 3 * pow(0.8, (double)k);
  double *a = support_known(11, m, n, q, s);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__svd svd;
  CHECK_OK(ctx, unicon__svd_top(ctx, a, m, n, r, method, 7, &svd));
  /* dense is exact; random stops at a residual of 1e-5, which bounds the error of each value (Weyl)
   * and, with a gap of .2 s_k, makes that of the angle's cosine about its square. squared has s^2
   * to eps s_1^2, so what it loses grows with s_1 / s_r, once for values and residuals, twice for
   * the orthogonality of the second basis. */
  const double smallest = s[r - 1] / s[0];
  const bool squared = method == UNICON__SVD_AUTO, random = method == UNICON__SVD_RANDOM;
  const double tolerance = random ? 1e-5 : squared ? 2e-15 / smallest + 1e-13 : 1e-12;
  const double orthogonal = squared ? 2e-14 / (smallest * smallest) + 1e-13 : 1e-11;
  for (int64_t k = 0; k < r; k++) CHECK_CLOSE(svd.s[k], s[k], tolerance * s[0]);
  assert_true(svd.residual <= tolerance);
  CHECK_CLOSE(svd.residual, plain_residual(a, &svd), 1e-13);
  CHECK_CLOSE(support_orthogonality(svd.u, m, r), 0, orthogonal);
  CHECK_CLOSE(support_orthogonality(svd.v, n, r), 0, orthogonal);
  CHECK_CLOSE(vector_distance(11, &svd, q), 0, pow(10 * tolerance / smallest, 2) + 1e-12);
  check_signs(&svd);
  CHECK_CLOSE(svd.next, r < q ? s[r] : 0, random ? 0.05 * s[r - 1] : 10 * tolerance);
  assert_string_equal(svd.method, random ? "random" : squared ? "squared" : "dense");
  unicon__frame_close(ctx, frame);
  free(a);
  free(s);
}

static void svd_finds_a_known_spectrum(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[][3] = {{1, 1, 1},   {6, 4, 4},    {4, 6, 2},
                                     {60, 25, 9}, {25, 60, 25}, {90, 90, 12}};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    check_svd(ctx, sizes[c][0], sizes[c][1], sizes[c][2], UNICON__SVD_AUTO);
    check_svd(ctx, sizes[c][0], sizes[c][1], sizes[c][2], UNICON__SVD_DENSE);
    check_svd(ctx, sizes[c][0], sizes[c][1], sizes[c][2], UNICON__SVD_RANDOM);
  }
}

/* Where divide and conquer does not converge, QR iteration does, with the same answer. What has no
 * answer ends in a sentence. */
static void no_convergence_has_a_second_way(void **state) {
  scratch *s = *state;
  double *a = random_matrix(4, 12, 12), *v[2], *w[2];
  for (int method = UNICON__SVD_AUTO; method <= UNICON__SVD_RANDOM; method++) {
    s->ctx->faults.lapack = 0;
    check_svd(s->ctx, 40, 30, 6, (unicon__svd_method)method);
    assert_int_equal(s->ctx->faults.lapack, -1);
  }
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < i; j++) a[i * 12 + j] = a[j * 12 + i];
  for (int way = 0; way < 2; way++) {
    s->ctx->faults.lapack = way - 1;
    CHECK_OK(s->ctx, unicon__eigen(s->ctx, a, 12, &v[way], &w[way]));
    assert_int_equal(s->ctx->faults.lapack, -1);
  }
  CHECK_CLOSE(support_distance(w[0], w[1], 12), 0, 1e-12);
  for (int k = 0; k < 12; k++) { /* the same vectors up to their sign */
    double dot = 0;
    for (int j = 0; j < 12; j++) dot += v[0][k * 12 + j] * v[1][k * 12 + j];
    CHECK_CLOSE(fabs(dot), 1, 1e-10);
  }
  unicon__svd svd;
  a[5] = NAN;
  scratch_failed(s, unicon__svd_top(s->ctx, a, 12, 12, 3, UNICON__SVD_DENSE, 1, &svd),
                 UNICON_ERR_NUMERIC, "did not converge", "12 by 12");
  unicon__frame_close(s->ctx, NULL);
  free(a);
}

/* A flat spectrum defeats 24 iterations: then the certificate must say so, truthfully. */
static void certificate_is_honest(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 200, R = 5 };
  double s[N];
  for (int k = 0; k < N; k++) s[k] = 1 - 1e-4 * k;
  double *a = support_known(5, N, N, N, s);
  unicon__svd svd;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__svd_top(ctx, a, N, N, R, UNICON__SVD_RANDOM, 1, &svd));
  assert_true(svd.residual > 1e-5);
  CHECK_CLOSE(svd.residual, plain_residual(a, &svd), 1e-12);
  /* And it would notice a wrong triple: turn one vector by an angle of 1e-3. */
  CHECK_OK(ctx, unicon__svd_top(ctx, a, N, N, R, UNICON__SVD_DENSE, 1, &svd));
  assert_true(plain_residual(a, &svd) < 1e-12);
  for (int j = 0; j < N; j++) svd.v[j * R] += 1e-3 * svd.v[j * R + 1];
  assert_true(plain_residual(a, &svd) > 0.9e-3);
  unicon__frame_close(ctx, frame);
  free(a);
}

static void deficient_and_zero_matrices(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double three[3] = {4, 2, 1};
  double *a = support_known(21, 30, 20, 3, three), *zero = support_doubles(30 * 20);
  for (int method = UNICON__SVD_DENSE; method <= UNICON__SVD_RANDOM; method++) {
    unicon__block *frame = unicon__frame_open(ctx);
    unicon__svd svd;
    CHECK_OK(ctx, unicon__svd_top(ctx, a, 30, 20, 6, (unicon__svd_method)method, 2, &svd));
    for (int k = 0; k < 6; k++) CHECK_CLOSE(svd.s[k], k < 3 ? three[k] : 0, 1e-12);
    CHECK_CLOSE(support_orthogonality(svd.u, 30, 6), 0, 1e-11);
    CHECK_CLOSE(support_orthogonality(svd.v, 20, 6), 0, 1e-11);
    assert_true(svd.residual < 1e-12);
    CHECK_OK(ctx, unicon__svd_top(ctx, zero, 30, 20, 4, (unicon__svd_method)method, 2, &svd));
    for (int k = 0; k < 4; k++) assert_true(svd.s[k] == 0);
    assert_true(svd.residual == 0 && svd.next == 0);
    CHECK_CLOSE(support_orthogonality(svd.u, 30, 4), 0, 1e-11);
    unicon__frame_close(ctx, frame);
  }
  free(a);
  free(zero);
}

static void auto_goes_by_size_and_seeds_repeat(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 800, R = 10 };
  double *small = random_matrix(1, 100, 90), *a = support_doubles(N * N);
  double *left = random_matrix(2, N, 20), *right = random_matrix(3, N, 20);
  support_product(false, true, N, N, 20, left, right, a);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__svd svd, again;
  CHECK_OK(ctx, unicon__svd_top(ctx, small, 100, 90, 3, UNICON__SVD_AUTO, 0, &svd));
  assert_string_equal(svd.method, "squared");
  double steep[90];
  for (int k = 0; k < 90; k++) steep[k] = pow(10, -k / 2.0); /* the tenth is below 1e-4 */
  double *wide = support_known(6, 90, 100, 90, steep);
  CHECK_OK(ctx, unicon__svd_top(ctx, wide, 90, 100, 8, UNICON__SVD_AUTO, 0, &svd));
  assert_string_equal(svd.method, "squared");
  CHECK_OK(ctx, unicon__svd_top(ctx, wide, 90, 100, 12, UNICON__SVD_AUTO, 0, &svd));
  assert_string_equal(svd.method, "dense");
  CHECK_CLOSE(support_orthogonality(svd.u, 90, 12), 0, 1e-11);
  free(wide);
  CHECK_OK(ctx, unicon__svd_top(ctx, a, N, N, R, UNICON__SVD_AUTO, 4, &svd));
  assert_string_equal(svd.method, "random");
  CHECK_OK(ctx, unicon__svd_top(ctx, a, N, N, R, UNICON__SVD_RANDOM, 4, &again));
  assert_memory_equal(svd.s, again.s, R * sizeof *svd.s);
  assert_memory_equal(svd.u, again.u, N * R * sizeof *svd.u);
  unicon__frame_close(ctx, frame);
  free(small);
  free(a);
  free(left);
  free(right);
}

/* ---- from a good guess -------------------------------------------------------------------- */

/* s_k = 3 decay^k of 90 by 60, 8 triples from 18 columns. One round from noise leaves a share of
 * about (s_18 / s_k)^2 of what is not wanted, each further one that share again. What the square of
 * the small matrix forgets is 1e-16 s_1 / s_k of a value. */
static void warm_finds_a_known_spectrum(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 90, N = 60, R = 8, W = 18 };
  static const double decay[] = {0.5, 0.1, 0.8}; /* .1: columns too dependent for Cholesky */
  for (size_t c = 0; c < sizeof decay / sizeof *decay; c++) {
    double s[N], *start = random_matrix(40, N, W);
    for (int k = 0; k < N; k++) s[k] = 3 * pow(decay[c], k);
    double *a = support_known(41, M, N, N, s);
    unicon__block *frame = unicon__frame_open(ctx);
    unicon__svd svd;
    CHECK_OK(ctx, unicon__svd_warm(ctx, a, M, N, R, start, W, 6, &svd));
    const double left = pow(s[W] / s[R - 1], 12);
    for (int k = 0; k < R; k++)
      CHECK_CLOSE(svd.s[k], s[k], 30 * left * s[k] + 1e-15 * s[0] * s[0] / s[k]);
    if (decay[c] > 0.1) { /* there the last ones are 1e-7 of the first */
      CHECK_CLOSE(support_orthogonality(svd.u, M, R), 0, 1e-9);
      CHECK_CLOSE(support_orthogonality(svd.v, N, R), 0, 1e-9);
      assert_true(plain_residual(a, &svd) < 1e-9 + 6 * sqrt(left));
      CHECK_CLOSE(svd.next, s[R], 0.05 * s[R]);
    }
    /* What it left in `start` is the right basis: one round more changes nothing. */
    unicon__svd again;
    ctx->faults.lapack = 0; /* where divide and conquer fails there is a second way */
    CHECK_OK(ctx, unicon__svd_warm(ctx, a, M, N, R, start, W, 1, &again));
    assert_int_equal(ctx->faults.lapack, -1);
    for (int k = 0; k < R; k++)
      CHECK_CLOSE(again.s[k], svd.s[k], 30 * left * s[k] + 1e-15 * s[0] * s[0] / s[k]);
    unicon__frame_close(ctx, frame);
    free(a);
    free(start);
  }
}

static void warm_bears_what_is_not_there(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 30, N = 40, R = 6, W = 10 };
  static const double three[3] = {4, 2, 1};
  double *a = support_known(51, M, N, 3, three), *zero = support_doubles(M * N);
  double *start = random_matrix(52, N, W);
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__svd svd;
  for (int round = 0; round < 2; round++) {
    CHECK_OK(ctx, unicon__svd_warm(ctx, a, M, N, R, start, W, 2, &svd));
    for (int k = 0; k < R; k++) CHECK_CLOSE(svd.s[k], k < 3 ? three[k] : 0, k < 3 ? 1e-12 : 1e-6);
    for (int k = 0; k < N * W; k++) assert_true(isfinite(start[k]));
    CHECK_OK(ctx, unicon__svd_warm(ctx, zero, M, N, R, start, W, 2, &svd));
    for (int k = 0; k < R; k++) assert_true(svd.s[k] == 0);
  }
  a[3] = NAN;
  scratch_failed(*state, unicon__svd_warm(ctx, a, M, N, R, start, W, 1, &svd), UNICON_ERR_NUMERIC,
                 "did not converge", "30 by 40");
  unicon__frame_close(ctx, frame);
  free(a);
  free(zero);
  free(start);
}

/* ---- eigenvalues -------------------------------------------------------------------------- */

static void eigenvectors_are_eigenvectors(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 31 };
  double *b = random_matrix(8, N, N), *a = support_doubles(N * N), *q = support_doubles(N * N);
  double w[N], top;
  int info;
  support_product(true, false, N, N, N, b, b, a);
  memcpy(q, a, N * N * sizeof *a);
  for (int i = 0; i < N; i++) /* only the lower triangle is read */
    for (int j = i + 1; j < N; j++) q[i * N + j] = NAN;
  CHECK_OK(ctx, unicon__largest_eigenvalue(ctx, q, N, &top));
  CHECK_OK(ctx, unicon__dsyevd(ctx, N, q, w, &info));
  assert_int_equal(info, 0);
  for (int k = 0; k < N; k++)
    for (int i = 0; i < N; i++) {
      double sum = 0;
      for (int j = 0; j < N; j++) sum += a[i * N + j] * q[k * N + j];
      CHECK_CLOSE(sum, w[k] * q[k * N + i], 1e-11 * w[N - 1]);
    }
  for (int k = 1; k < N; k++) assert_true(w[k] >= w[k - 1]);
  CHECK_CLOSE(top, w[N - 1], 1e-10 * w[N - 1]);
  free(a);
  free(b);
  free(q);
}

/* Diagonal matrices: the answer is the largest entry, and Lanczos does not know that. The header
 * promises 1e-10. */
static void largest_eigenvalue_is_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[] = {1, 2, 3, 40, 150, 600};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
    for (int kind = 0; kind < 5; kind++) {
      const int64_t n = sizes[c];
      double *a = support_doubles(n * n), top;
      for (int64_t k = 0; k < n; k++) {
        const double t = (double)(k + 1) / (double)n; /* 1 at the end */
        const double e[5] = {t, t * t * t, k + 2 >= n ? 1 : 0.5 * t, exp(20 * (t - 1)), 1};
        a[k * (n + 1)] = e[kind];
      }
      CHECK_OK(ctx, unicon__largest_eigenvalue(ctx, a, n, &top));
      CHECK_CLOSE(top, 1, 1e-10);
      /* No moment of floats is smaller than 1e-90. */
      for (int64_t k = 0; k < n; k++) a[k * (n + 1)] *= 1e-90;
      CHECK_OK(ctx, unicon__largest_eigenvalue(ctx, a, n, &top));
      CHECK_CLOSE(top, 1e-90, 1e-100);
      memset(a, 0, (size_t)(n * n) * sizeof *a);
      CHECK_OK(ctx, unicon__largest_eigenvalue(ctx, a, n, &top));
      assert_true(top == 0);
      free(a);
    }
}

/* ---- triangular products ------------------------------------------------------------------ */

static void triangles_solve_what_they_multiply(void **state) {
  (void)state;
  enum { N = 9, M = 4 };
  double *b = random_matrix(31, N, M), *wide = random_matrix(32, M, N),
         *root = random_matrix(33, N, N);
  double l[N * N] = {0}, x[N * M], back[N * M], gram[N * N], right[M * N], product[M * N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j <= i; j++)
      l[i * N + j] = i == j ? 2 + root[i * N + j] * root[i * N + j] : root[i * N + j];
  for (int trans = 0; trans < 2; trans++) {
    memcpy(x, b, sizeof x);
    unicon__dtrsm_left(trans, N, M, l, N, x, M);
    support_product(trans, false, N, M, N, l, x, back);
    CHECK_CLOSE(support_distance(back, b, N * M), 0, 1e-10); /* the condition is below 1e3 */
    memcpy(right, wide, sizeof right);
    unicon__dtrsm_right(trans, M, N, l, N, right, N);
    support_product(false, trans, M, N, N, right, l, product);
    CHECK_CLOSE(support_distance(product, wide, M * N), 0, 1e-10);
  }
  support_product(false, true, N, N, N, l, l, gram);
  for (int i = 0; i < N; i++)
    for (int j = i + 1; j < N; j++) gram[i * N + j] = 0;
  assert_int_equal(unicon__dpotrf(N, gram, N), 0);
  CHECK_CLOSE(support_distance(gram, l, N * N), 0, 1e-11);
  gram[0] = -1;
  assert_true(unicon__dpotrf(N, gram, N) > 0);
  free(b);
  free(wide);
  free(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(qr_gives_the_matrix_back),
      SCRATCH_TEST(svd_finds_a_known_spectrum),
      SCRATCH_TEST(no_convergence_has_a_second_way),
      SCRATCH_TEST(certificate_is_honest),
      SCRATCH_TEST(deficient_and_zero_matrices),
      SCRATCH_TEST(auto_goes_by_size_and_seeds_repeat),
      SCRATCH_TEST(warm_finds_a_known_spectrum),
      SCRATCH_TEST(warm_bears_what_is_not_there),
      SCRATCH_TEST(eigenvectors_are_eigenvectors),
      SCRATCH_TEST(largest_eigenvalue_is_found),
      SCRATCH_TEST(triangles_solve_what_they_multiply),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
