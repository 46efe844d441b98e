/* SPDX-License-Identifier: Apache-2.0 */
/* Singular values of matrices that are made to defeat the short ways: the square of the matrix, and
 * bases by Cholesky. What is asked of every answer, whichever way was taken: values to 1e-7 of the
 * first, residuals likewise, and bases that are orthogonal to 1e-6: the digits of float32, which
 * models are kept in. */
#include <float.h>

#include "linalg/spectral.h"
#include "support.h"

static const double tolerance = 1e-7, turned = 1e-6;

/* The triples of 2^shift A against the values of A. */
static void check_top(unicon_ctx *ctx, const double *a, int64_t m, int64_t n, int64_t r,
                      const double *s, int shift, unicon__svd_method method) {
  double *scaled = support_doubles(m * n);
  unicon__svd svd;
  for (int64_t k = 0; k < m * n; k++) scaled[k] = ldexp(a[k], shift);
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__svd_top(ctx, scaled, m, n, r, method, 5, &svd));
  for (int64_t k = 0; k < r; k++) CHECK_CLOSE(ldexp(svd.s[k], -shift), s[k], tolerance * s[0]);
  if (r < (m < n ? m : n)) CHECK_CLOSE(ldexp(svd.next, -shift), s[r], 1e-4 * s[0]);
  CHECK_CLOSE(svd.residual, 0, tolerance);
  CHECK_CLOSE(support_orthogonality(svd.u, m, r), 0, turned);
  CHECK_CLOSE(support_orthogonality(svd.v, n, r), 0, turned);
  unicon__frame_close(ctx, frame);
  free(scaled);
}

static double spectrum(int kind, int64_t k, int64_t q) {
  const double t = (double)k / (double)(q > 1 ? q - 1 : 1);
  switch (kind) {
    case 0:
      return pow(10, -8 * t); /* over eight decades */
    case 1:
      return k < q / 3 ? 1 : 0.5; /* repeated */
    case 2:
      return k < 3 ? 4 - (double)k : 0; /* deficient */
    case 3:
      return k == 0 ? 1 : 1.001e-4; /* a cliff just above where squares are given up */
    case 4:
      return k == 0 ? 1 : 0.999e-4; /* and just below */
    case 5:
      return 1 - 1e-9 * (double)k; /* nearly one value */
    default:
      return k < q / 2 ? 1 - 0.5 * t : 1e-14; /* and rounding */
  }
}

static void every_spectrum_at_every_scale(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[][2] = {{40, 40}, {70, 30}, {30, 70}};
  static const int shifts[] = {0, -1020, -540, -520, -300, 300, 500, 512, 1010};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
    for (int kind = 0; kind <= 6; kind++) {
      const int64_t m = sizes[c][0], n = sizes[c][1], q = m < n ? m : n;
      double *s = support_doubles(q);
      for (int64_t k = 0; k < q; k++) s[k] = spectrum(kind, k, q);
      double *a = support_known(71, m, n, q, s);
      for (size_t k = 0; k < sizeof shifts / sizeof *shifts; k++)
        for (int64_t r = 1; r <= q; r += q / 3 - 1)
          check_top(ctx, a, m, n, r, s, shifts[k], UNICON__SVD_AUTO);
      free(a);
      free(s);
    }
}

static void what_is_no_number_is_refused(void **state) {
  scratch *s = *state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  double *ones = support_doubles(20 * 12), *start = support_doubles(12 * 5);
  unicon__svd svd;
  for (int k = 0; k < 20 * 12; k++) ones[k] = k % 7;
  for (int k = 0; k < 12 * 5; k++) start[k] = k % 5 + k % 3;
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    ones[17] = bad[k];
    for (int method = UNICON__SVD_AUTO; method <= UNICON__SVD_RANDOM; method++) {
      scratch_failed(s,
                     unicon__svd_top(s->ctx, ones, 20, 12, 3, (unicon__svd_method)method, 1, &svd),
                     UNICON_ERR_NUMERIC, "did not converge", "20 by 12");
      unicon__frame_close(s->ctx, NULL);
    }
    scratch_failed(s, unicon__svd_warm(s->ctx, ones, 20, 12, 3, start, 5, 1, &svd),
                   UNICON_ERR_NUMERIC, "did not converge", "20 by 12");
    unicon__frame_close(s->ctx, NULL);
  }
  free(ones);
  free(start);
}

/* Kahan's matrix: its w columns depend on one another to 0.89^w / 1.45^w although no diagonal entry
 * of the Cholesky factor of their products is below 0.89^w of another. The identity times it is
 * what has to be made orthonormal. */
static void a_hidden_dependence_is_seen(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 90, WIDEST = 60 };
  const double c = 0.45, s = sqrt(1 - c * c);
  double *eye = support_doubles(N * N), *start = support_doubles(N * WIDEST);
  unicon__svd svd;
  for (int i = 0; i < N; i++) eye[i * (N + 1)] = 1;
  for (int w = 10; w <= WIDEST; w += 5) {
    const int r = w / 2;
    memset(start, 0, N * WIDEST * sizeof *start);
    for (int i = 0; i < w; i++)
      for (int j = i; j < w; j++) start[i * w + j] = pow(s, i) * (i == j ? 1 : -c);
    unicon__block *frame = unicon__frame_open(ctx);
    CHECK_OK(ctx, unicon__svd_warm(ctx, eye, N, N, r, start, w, 1, &svd));
    for (int k = 0; k < r; k++) CHECK_CLOSE(svd.s[k], 1, 1e-5);
    CHECK_CLOSE(support_orthogonality(svd.u, N, r), 0, 1e-5);
    CHECK_CLOSE(support_orthogonality(svd.v, N, r), 0, 1e-5);
    CHECK_CLOSE(support_orthogonality(start, N, w), 0, 1e-5);
    unicon__frame_close(ctx, frame);
  }
  free(eye);
  free(start);
}

/* Of a matrix of rank 3 a warm start asks for more: no column of the answer or of the next start
 * may be longer than 1, and the values that are not there are 0. */
static void warm_starts_do_not_blow_up_noise(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { M = 300, N = 280, R = 60, W = 91 };
  double *s = support_doubles(N);
  for (int k = 0; k < 3; k++) s[k] = 5 - k;
  double *a = support_known(71, M, N, N, s), *start = support_random(8, N * W);
  unicon__svd svd;
  for (int round = 0; round < 4; round++) {
    unicon__block *frame = unicon__frame_open(ctx);
    CHECK_OK(ctx, unicon__svd_warm(ctx, a, M, N, R, start, W, round ? 1 : 5, &svd));
    for (int k = 0; k < R; k++) CHECK_CLOSE(svd.s[k], s[k], k < 3 ? 1e-12 : 0);
    for (int k = 0; k < R && svd.s[k] > 0; k++) {
      double length = 0;
      for (int j = 0; j < N; j++) length += svd.v[j * R + k] * svd.v[j * R + k];
      CHECK_CLOSE(length, 1, 1e-6);
    }
    CHECK_CLOSE(support_orthogonality(svd.u, M, R), 0, 1e-5);
    unicon__frame_close(ctx, frame);
  }
  free(a);
  free(s);
  free(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_spectrum_at_every_scale),
      SCRATCH_TEST(what_is_no_number_is_refused),
      SCRATCH_TEST(a_hidden_dependence_is_seen),
      SCRATCH_TEST(warm_starts_do_not_blow_up_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
