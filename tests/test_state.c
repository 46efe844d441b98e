/* SPDX-License-Identifier: Apache-2.0 */
/* Mixing of two low-rank states against the plain matrix: [keep M + eta M+]_r, of norm 1 for
 * cosines, by stacked bases and by the dense way. The truncated product is the best of its rank, so
 * it must equal the first r triples of the plain matrix's own SVD. Tolerance: double, 1e-12. */
#include "linalg/spectral.h"
#include "solve/state.h"
#include "support.h"

enum { M = 14, N = 11 };

static void state_draw(unicon_ctx *ctx, uint64_t seed, int64_t r, unicon__state *out) {
  double *u = support_orthonormal(seed, M, r), *v = support_orthonormal(seed + 50, N, r);
  CHECK_OK(ctx, unicon__state_new(ctx, M, N, r, out));
  memcpy(out->u, u, (size_t)(M * r) * sizeof *u);
  memcpy(out->v, v, (size_t)(N * r) * sizeof *v);
  for (int64_t k = 0; k < r; k++) out->s[k] = pow(0.7, (double)k);
  unicon__state_normalize(out);
  free(u);
  free(v);
}

/* weight U diag(s) V^T added to `out`. */
static void add_plain(const unicon__state *state, double weight, double *out) {
  for (int64_t i = 0; i < M; i++)
    for (int64_t j = 0; j < N; j++)
      for (int64_t k = 0; k < state->r; k++)
        out[i * N + j] +=
            weight * state->u[i * state->r + k] * state->s[k] * state->v[j * state->r + k];
}

/* The first r triples of `matrix` as a matrix again, of norm 1 if `unit`. */
static void truncate_plain(unicon_ctx *ctx, double *matrix, int64_t r, bool unit) {
  unicon__svd svd;
  double square = 0;
  CHECK_OK(ctx, unicon__svd_top(ctx, matrix, M, N, r, UNICON__SVD_DENSE, 0, &svd));
  for (int64_t k = 0; k < r; k++) square += svd.s[k] * svd.s[k];
  memset(matrix, 0, (size_t)(M * N) * sizeof *matrix);
  const unicon__state top = {M, N, r, svd.u, svd.s, svd.v};
  add_plain(&top, unit ? 1 / sqrt(square) : 1, matrix);
}

static void check_mix(unicon_ctx *ctx, int64_t r, bool cosine, double eta) {
  unicon__state from, to, mixed;
  unicon__mixer mixer;
  unicon__block *frame = unicon__frame_open(ctx);
  state_draw(ctx, 1, r, &from);
  state_draw(ctx, 2, r, &to);
  CHECK_OK(ctx, unicon__state_new(ctx, M, N, r, &mixed));
  CHECK_OK(ctx, unicon__mixer_open(ctx, &from, &to, cosine, &mixer));
  assert_int_equal(mixer.dense, 2 * r > N);
  CHECK_OK(ctx, unicon__mix(ctx, &mixer, eta, &mixed));
  double *want = support_doubles(M * N), *got = support_doubles(M * N);
  add_plain(&from, cosine ? 1 - eta : 1, want);
  add_plain(&to, eta, want);
  truncate_plain(ctx, want, r, cosine);
  add_plain(&mixed, 1, got);
  CHECK_CLOSE(support_distance(want, got, M * N), 0, 1e-12);
  free(want);
  free(got);
  unicon__frame_close(ctx, frame);
}

static void mixtures_are_the_plain_sum(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double etas[] = {0.125, 0.5, 1};
  for (int64_t r = 1; r <= 8; r++) /* stacked up to 5, dense from 6 on */
    for (int cosine = 0; cosine < 2; cosine++)
      for (int k = 0; k < 3; k++) check_mix(ctx, r, cosine, etas[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(mixtures_are_the_plain_sum),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
