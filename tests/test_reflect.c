/* SPDX-License-Identifier: Apache-2.0 */
/* Orthonormal bases, eigenvectors and singular vectors on the context's threads: what they are, and
 * that one thread and several give the same bytes. */
#include "linalg/reflect.h"
#include "linalg/svd.h"
#include "support.h"

static void set_threads(unicon_ctx *ctx, int threads) {
  char text[12];
  snprintf(text, sizeof text, "%d", threads);
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", text));
}

/* ---- QR ----------------------------------------------------------------------------------- */

/* |Q R - A| and |Q^T Q - I| of reflections are a few n u; entries of A are of size 1. */
static void check_qr(unicon_ctx *ctx, int64_t m, int64_t n) {
  double *a = support_random(31, m * n), *q = support_doubles(m * n), *r = support_doubles(n * n);
  double *back = support_doubles(m * n), *gram = support_doubles(n * n);
  memcpy(q, a, (size_t)(m * n) * sizeof *q);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, m, n, q, r));
  support_product(false, false, m, n, n, q, r, back);
  support_product(true, false, n, n, m, q, q, gram);
  CHECK_CLOSE(support_distance(back, a, m * n), 0, 1e-12);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      CHECK_CLOSE(gram[i * n + j], i == j, 1e-12);
      if (j < i) assert_true(r[i * n + j] == 0);
    }
  memcpy(back, a, (size_t)(m * n) * sizeof *q);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, m, n, back, NULL));
  assert_memory_equal(back, q, (size_t)(m * n) * sizeof *q);
  free(a);
  free(q);
  free(r);
  free(back);
  free(gram);
}

static void columns_become_orthonormal(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[][2] = {{1, 1},   {7, 1},    {32, 32},   {33, 33},
                                     {64, 50}, {129, 65}, {300, 128}, {400, 290}};
  set_threads(ctx, 3);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) check_qr(ctx, sizes[k][0], sizes[k][1]);
}

/* Columns without rank: Q is orthonormal all the same. */
static void columns_without_rank(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 150, N = 70 };
  double *q = support_doubles(M * N), *gram = support_doubles(N * N);
  for (int64_t i = 0; i < M; i++)
    for (int64_t j = 0; j < N; j++) q[i * N + j] = j % 3 == 0 ? 0 : (double)(i % 5);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, M, N, q, NULL));
  support_product(true, false, N, N, M, q, q, gram);
  for (int64_t i = 0; i < N; i++)
    for (int64_t j = 0; j < N; j++) CHECK_CLOSE(gram[i * N + j], i == j, 1e-12);
  free(q);
  free(gram);
}

/* ---- eigenvectors ------------------------------------------------------------------------- */

/* |A q - w q| and |Q Q^T - I| of backward stable methods are a few n u |A|; |A| is below 100. */
static void check_eigen(const double *full, const double *q, const double *w, int64_t n) {
  double *image = support_doubles(n * n), *gram = support_doubles(n * n);
  support_product(false, false, n, n, n, q, full, image);
  support_product(false, true, n, n, n, q, q, gram);
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < n; i++) {
      CHECK_CLOSE(image[k * n + i], w[k] * q[k * n + i], 1e-11);
      CHECK_CLOSE(gram[k * n + i], i == k, 1e-12);
    }
    if (k > 0) assert_true(w[k] >= w[k - 1]);
  }
  free(image);
  free(gram);
}

static void eigenvectors_are_eigenvectors(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[] = {1, 2, 300, 700, 737}; /* in tiles from 700 on */
  set_threads(ctx, 3);
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    const int64_t n = sizes[c];
    int info = -1;
    double *full, *a = support_symmetric(n, &full), *w = support_doubles(n);
    CHECK_OK(ctx, unicon__tiled_dsyevd(ctx, n, a, w, &info));
    assert_int_equal(info, 0);
    check_eigen(full, a, w, n);
    free(full);
    free(a);
    free(w);
  }
}

/* Matrices that leave reflections nothing to do: diagonal, zero, one block. */
static void eigenvectors_of_special_matrices(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 705 };
  for (int kind = 0; kind < 3; kind++) {
    int info = -1;
    double *full = support_doubles(N * N), *a = support_doubles(N * N), *w = support_doubles(N);
    for (int64_t i = 0; i < N && kind < 2; i++)
      full[i * N + i] = kind == 0 ? (double)((7 * i) % N) / N : 0;
    for (int64_t i = 0; i < N && kind == 2; i++)
      for (int64_t j = 0; j < N; j++) full[i * N + j] = i / 50 == j / 50 ? 0.02 : 0;
    memcpy(a, full, sizeof *a * N * N);
    CHECK_OK(ctx, unicon__tiled_dsyevd(ctx, N, a, w, &info));
    assert_int_equal(info, 0);
    check_eigen(full, a, w, N);
    free(full);
    free(a);
    free(w);
  }
}

static int stop_at_the_third(void *user, const char *phase, double done, double left) {
  (void)left;
  assert_string_equal(phase, "eigenvectors");
  assert_true(done >= 0 && done < 1);
  return ++*(int *)user == 3;
}

static void a_decomposition_can_be_cancelled(void **state) {
  scratch *s = *state;
  enum { N = 720 };
  int visits = 0, info;
  double *full, *a = support_symmetric(N, &full), *w = support_doubles(N);
  s->ctx->progress_interval = 0;
  unicon_ctx_set_progress(s->ctx, stop_at_the_third, &visits);
  unicon__block *frame = unicon__frame_open(s->ctx);
  scratch_failed(s, unicon__tiled_dsyevd(s->ctx, N, a, w, &info), UNICON_ERR_CANCELLED,
                 "eigenvectors", "cancelled");
  unicon__frame_close(s->ctx, frame);
  free(full);
  free(a);
  free(w);
}

/* ---- singular vectors --------------------------------------------------------------------- */

/* With `rank` the rows after it repeat the ones before, or are all zero. */
static void check_svd(unicon_ctx *ctx, int64_t m, int64_t n, int64_t rank) {
  const int64_t q = m < n ? m : n;
  double *a = support_random(41, m * n);
  for (int64_t i = rank; rank >= 0 && i < m; i++)
    for (int64_t j = 0; j < n; j++) a[i * n + j] = rank > 0 ? a[(i % rank) * n + j] : 0;
  double *copy = support_doubles(m * n), *s = support_doubles(q);
  double *u = support_doubles(m * q), *vt = support_doubles(q * n), *us = support_doubles(m * q);
  double *back = support_doubles(m * n), *gram = support_doubles(q * q);
  int info = -1;
  memcpy(copy, a, (size_t)(m * n) * sizeof *a);
  CHECK_OK(ctx, unicon__tiled_dgesvd(ctx, m, n, copy, s, u, vt, &info));
  assert_int_equal(info, 0);
  for (int64_t k = 0; k < q; k++) assert_true(s[k] >= 0 && (k == 0 || s[k] <= s[k - 1]));
  for (int64_t i = 0; i < m * q; i++) us[i] = u[i] * s[i % q];
  support_product(false, false, m, n, q, us, vt, back);
  CHECK_CLOSE(support_distance(back, a, m * n), 0, 1e-11); /* s_1 is below 60 */
  support_product(true, false, q, q, m, u, u, gram);
  for (int64_t k = 0; k < q * q; k++) CHECK_CLOSE(gram[k], k % (q + 1) == 0, 1e-12);
  support_product(false, true, q, q, n, vt, vt, gram);
  for (int64_t k = 0; k < q * q; k++) CHECK_CLOSE(gram[k], k % (q + 1) == 0, 1e-12);
  free(a);
  free(copy);
  free(s);
  free(u);
  free(vt);
  free(us);
  free(back);
  free(gram);
}

/* Both ways round, square, and either side of the shapes that go through QR. */
static void singular_vectors_give_the_matrix_back(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[][2] = {{1, 1},     {5, 1},     {1, 5},     {40, 300},
                                     {300, 40},  {120, 120}, {300, 199}, {300, 201},
                                     {199, 300}, {201, 300}, {700, 90},  {90, 700}};
  set_threads(ctx, 3);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    check_svd(ctx, sizes[k][0], sizes[k][1], -1);
}

/* From 400 columns on the matrix is made bidiagonal here. LAPACK's divide and conquer may fail. */
static void large_ones_too(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  set_threads(ctx, 3);
  check_svd(ctx, 400, 400, -1);
  check_svd(ctx, 433, 417, -1);
  check_svd(ctx, 417, 433, -1);
  check_svd(ctx, 640, 410, -1);
  check_svd(ctx, 420, 420, 30);
  check_svd(ctx, 400, 400, 0);
  ctx->faults.lapack = 0;
  check_svd(ctx, 405, 403, -1);
  assert_int_equal(ctx->faults.lapack, -1);
}

static int stop_in_singular_values(void *user, const char *label, double done, double left) {
  (void)label, (void)done, (void)left;
  return ++*(int *)user == 200;
}

static void a_dense_decomposition_can_be_cancelled(void **state) {
  scratch *s = *state;
  enum { N = 410 };
  int asked = 0, info;
  double *a = support_random(43, N * N), *values = support_doubles(N);
  double *u = support_doubles(N * N), *vt = support_doubles(N * N);
  unicon__block *frame = unicon__frame_open(s->ctx);
  s->ctx->progress_interval = 0;
  unicon_ctx_set_progress(s->ctx, stop_in_singular_values, &asked);
  scratch_failed(s, unicon__tiled_dgesvd(s->ctx, N, N, a, values, u, vt, &info),
                 UNICON_ERR_CANCELLED, "cancelled", "");
  assert_int_equal(asked, 200); /* among the 410 columns */
  unicon__frame_close(s->ctx, frame);
  free(vt);
  free(u);
  free(values);
  free(a);
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { LONG = 730, WIDE = 210, SQUARE = 410 };

typedef struct results {
  double *basis, *triangle, *vectors, *values, *left, *right, *singular;
  double *square[3]; /* a square one */
} results;

static void compute(unicon_ctx *ctx, results *r) {
  int info;
  double *full, *copy = support_random(51, LONG * WIDE);
  r->basis = support_random(51, LONG * WIDE);
  r->triangle = support_doubles(WIDE * WIDE);
  r->vectors = support_symmetric(LONG, &full);
  r->values = support_doubles(LONG);
  r->left = support_doubles(LONG * WIDE);
  r->right = support_doubles(WIDE * WIDE);
  r->singular = support_doubles(WIDE);
  CHECK_OK(ctx, unicon__tiled_dqr(ctx, LONG, WIDE, r->basis, r->triangle));
  CHECK_OK(ctx, unicon__tiled_dsyevd(ctx, LONG, r->vectors, r->values, &info));
  assert_int_equal(info, 0);
  CHECK_OK(ctx, unicon__tiled_dgesvd(ctx, LONG, WIDE, copy, r->singular, r->left, r->right, &info));
  assert_int_equal(info, 0);
  free(copy);
  copy = support_random(52, SQUARE * SQUARE);
  for (int k = 0; k < 3; k++) r->square[k] = support_doubles(SQUARE * SQUARE);
  CHECK_OK(ctx, unicon__tiled_dgesvd(ctx, SQUARE, SQUARE, copy, r->square[0], r->square[1],
                                     r->square[2], &info));
  assert_int_equal(info, 0);
  free(full);
  free(copy);
}

static void results_free(results *r) {
  for (int k = 0; k < 3; k++) free(r->square[k]);
  free(r->basis);
  free(r->triangle);
  free(r->vectors);
  free(r->values);
  free(r->left);
  free(r->right);
  free(r->singular);
}

static void threads_change_no_byte(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  results one, many;
  set_threads(ctx, 1);
  compute(ctx, &one);
  for (int threads = 2; threads <= 4; threads++) {
    set_threads(ctx, threads);
    compute(ctx, &many);
    assert_memory_equal(one.basis, many.basis, sizeof *one.basis * LONG * WIDE);
    assert_memory_equal(one.triangle, many.triangle, sizeof *one.triangle * WIDE * WIDE);
    assert_memory_equal(one.values, many.values, sizeof *one.values * LONG);
    assert_memory_equal(one.vectors, many.vectors, sizeof *one.vectors * LONG * LONG);
    assert_memory_equal(one.left, many.left, sizeof *one.left * LONG * WIDE);
    assert_memory_equal(one.right, many.right, sizeof *one.right * WIDE * WIDE);
    assert_memory_equal(one.singular, many.singular, sizeof *one.singular * WIDE);
    for (int k = 0; k < 3; k++)
      assert_memory_equal(one.square[k], many.square[k], sizeof *one.square[k] * SQUARE * SQUARE);
    results_free(&many);
  }
  results_free(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(columns_become_orthonormal),
      SCRATCH_TEST(columns_without_rank),
      SCRATCH_TEST(eigenvectors_are_eigenvectors),
      SCRATCH_TEST(eigenvectors_of_special_matrices),
      SCRATCH_TEST(a_decomposition_can_be_cancelled),
      SCRATCH_TEST(singular_vectors_give_the_matrix_back),
      SCRATCH_TEST(large_ones_too),
      SCRATCH_TEST(a_dense_decomposition_can_be_cancelled),
      SCRATCH_TEST(threads_change_no_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
