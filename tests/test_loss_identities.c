/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the losses and for each of them (T3 to T6, T9, T11 to T13 of
 * docs/method.md section 7), for the reference of oracle.c and for the library.
 *
 * Tolerances
 *   reference    1e-14 of the sum of |S| in a row (or of the largest |S|): 40 terms of 1e-16 each.
 *   library      rel 1e-5 max(1, .1/tau) as in test_loss.c, of the largest |S|.
 *   T4           the bound is exact in real numbers; 1e-12 (1e-5 ... in float32) covers rounding.
 *   T6           rel 1e-4 of every single entry: exponents of up to 100 have errors of 6e-6.
 *   T12          integers to 1e-12; exactly 0 at the kink, all scores being exact in float32.
 *   T13          rel 1e-6: differences with step 1e-4 tau leave 1e-8. */
#include "scratch.h"

#include <math.h>

#include "oracle.h"

typedef struct fixture {
  oracle_problem problem;
  oracle_rows x, y;
  oracle_matrix s;
} fixture;

static void fixture_open(unicon_ctx *ctx, int set, fixture *f) {
  oracle_open(ctx, set, false, &f->problem);
  oracle_rows_draw(31, f->problem.n_x, 8, true, &f->x);
  oracle_rows_draw(32, f->problem.n_y, 8, true, &f->y);
  oracle_scores(&f->x, &f->y, &f->s);
}

static void get_library(unicon_ctx *ctx, const unicon__loss_params *params, const fixture *f,
                        double *value, oracle_matrix *s) {
  const unicon_status status = oracle_library(ctx, params, &f->problem, &f->x, &f->y, value, s);
  if (status != UNICON_OK) print_error("%s\n", unicon_ctx_error(ctx));
  assert_int_equal(status, UNICON_OK);
}

static double float_tolerance(double temperature) {
  return 1e-5 * (temperature < 0.1 ? 0.1 / temperature : 1);
}

static double row_sum(const oracle_problem *problem, const oracle_matrix *m, int i, bool modulus) {
  double sum = 0;
  for (int j = 0; j < problem->n_y; j++) sum += modulus ? fabs(m->at[i][j]) : m->at[i][j];
  return sum;
}

static double total_omega(const oracle_problem *problem, int i) {
  double sum = 0;
  for (int k = 0; k < problem->n_y; k++) sum += oracle_omega(problem, i, k);
  return sum;
}

/* ---- T3 ----------------------------------------------------------------------------------- */

/* Rows of S^x sum to 0 for nu = 1, and to (nu - 1) Omega_i for psi = exp, phi = log, any nu. */
static void expect_row_sums(const oracle_case *c, const oracle_problem *problem,
                            const oracle_matrix *s) {
  unicon__loss_params params = c->params;
  params.temperature = 0.1;
  const bool named = params.kind != UNICON__LOSS_GENERAL && params.kind != UNICON__LOSS_CUSTOM;
  const bool log_sum = oracle_is_exponential(&params) && params.phi == UNICON__PHI_LOG;
  oracle_matrix w;
  if (!oracle_has_directions(&params) || (!named && params.nu != 1 && !log_sum)) return;
  oracle_weights_x(&params, problem, s, &w);
  for (int i = 0; i < problem->n_x; i++) {
    double negatives = params.own;
    for (int j = 0; j < problem->n_y; j++) negatives += problem->epsilon.at[i][j];
    const double want = named || negatives == 0 ? 0 : (params.nu - 1) * total_omega(problem, i);
    const double error = fabs(row_sum(problem, &w, i, false) - want);
    if (error > 1e-14 * fmax(1, row_sum(problem, &w, i, true)))
      print_error("%s: row %d is off by %g\n", c->name, i, error);
    assert_true(error <= 1e-14 * fmax(1, row_sum(problem, &w, i, true)));
  }
}

static void rows_sum_to_nothing(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    fixture f;
    oracle_problem other;
    oracle_matrix turned;
    fixture_open(k->ctx, set, &f);
    oracle_transpose(&f.problem, &other);
    oracle_transpose_matrix(&f.s, &turned);
    for (int c = 0; c < oracle_case_count; c++) {
      expect_row_sums(&oracle_cases[c], &f.problem, &f.s);
      expect_row_sums(&oracle_cases[c], &other, &turned);
    }
    oracle_close(&f.problem);
  }
}

/* The library shows S^x alone in infonce. */
static void infonce_rows_sum_to_nothing(void **state) {
  scratch *k = *state;
  const unicon__loss_params params = {.kind = UNICON__LOSS_INFONCE, .temperature = 0.1};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    fixture f;
    double value;
    oracle_matrix w;
    fixture_open(k->ctx, set, &f);
    get_library(k->ctx, &params, &f, &value, &w);
    for (int i = 0; i < f.problem.n_x; i++)
      assert_true(fabs(row_sum(&f.problem, &w, i, false)) <=
                  1e-6 * row_sum(&f.problem, &w, i, true));
    oracle_close(&f.problem);
  }
}

/* ---- T4 ----------------------------------------------------------------------------------- */

static void rows_are_bounded(void **state) {
  scratch *k = *state;
  static const double temperatures[] = {1, 0.1, 0.02, 0.01};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    fixture f;
    fixture_open(k->ctx, set, &f);
    for (int t = 0; t < 4; t++) {
      double value;
      oracle_matrix want, got;
      unicon__loss_params params = {.kind = UNICON__LOSS_INFONCE, .temperature = temperatures[t]};
      oracle_weights_x(&params, &f.problem, &f.s, &want);
      get_library(k->ctx, &params, &f, &value, &got);
      assert_true(isfinite(value));
      for (int i = 0; i < f.problem.n_x; i++) {
        const double bound = 2 * total_omega(&f.problem, i);
        assert_true(row_sum(&f.problem, &want, i, true) <= bound * (1 + 1e-12));
        assert_true(row_sum(&f.problem, &got, i, true) <=
                    bound * (1 + float_tolerance(temperatures[t])));
      }
    }
    oracle_close(&f.problem);
  }
}

/* ---- T5 ----------------------------------------------------------------------------------- */

/* siglip is no ratio: its negatives have no w, so their share falls as the weights grow. */
static void expect_scaled(unicon_ctx *ctx, const unicon__loss_params *params, const fixture *f,
                          const fixture *scaled) {
  oracle_matrix a, b;
  double one = 0, other = 0;
  oracle_weights(params, &f->problem, &f->s, &a);
  oracle_weights(params, &scaled->problem, &f->s, &b);
  const double scale = oracle_largest(&f->problem, &a);
  assert_true(oracle_distance(&f->problem, &a, &b) <= 1e-14 * scale);
  one = oracle_loss(params, &f->problem, &f->s);
  assert_true(fabs(one - oracle_loss(params, &scaled->problem, &f->s)) <= 1e-14 * fmax(1, one));
  get_library(ctx, params, f, &one, &a);
  get_library(ctx, params, scaled, &other, &b);
  assert_true(oracle_distance(&f->problem, &a, &b) <= 1e-6 * scale);
  assert_true(fabs(one - other) <= 1e-6 * fmax(fabs(one), 0.01));
}

static void only_ratios_of_weights_count(void **state) {
  scratch *k = *state;
  fixture f, scaled;
  fixture_open(k->ctx, ORACLE_IGNORED, &f);
  scaled = f;
  scaled.problem.pairs = NULL;
  for (int i = 0; i < f.problem.n_x; i++)
    for (int j = 0; j < f.problem.n_y; j++) scaled.problem.weight.at[i][j] *= 3;
  oracle_attach(k->ctx, false, &scaled.problem);
  for (int c = 0; c < oracle_case_count; c++) {
    unicon__loss_params params = oracle_cases[c].params;
    params.temperature = 0.3;
    if (params.kind != UNICON__LOSS_SIGLIP) expect_scaled(k->ctx, &params, &f, &scaled);
  }
  oracle_close(&f.problem);
  oracle_close(&scaled.problem);
}

/* supcon and spectral keep a positive of weight 0 as a candidate (e = 1 on P); all others give it
 * no weight at all. Nobody weighs an ignored pair, or looks at its score. */
static void expect_silent(unicon_ctx *ctx, const unicon__loss_params *params, const fixture *f) {
  const oracle_problem *p = &f->problem;
  const bool candidate =
      params->kind == UNICON__LOSS_SUPCON || params->kind == UNICON__LOSS_SPECTRAL;
  oracle_matrix want, got, moved = f->s;
  double value;
  int zeros = 0, ignored = 0;
  oracle_weights(params, p, &f->s, &want);
  get_library(ctx, params, f, &value, &got);
  for (int i = 0; i < p->n_x; i++)
    for (int j = 0; j < p->n_y; j++) {
      const bool zero = p->positive[i][j] && p->weight.at[i][j] == 0;
      const bool out = !p->positive[i][j] && p->epsilon.at[i][j] == 0;
      zeros += zero;
      ignored += out;
      if (out) moved.at[i][j] += 0.5;
      if (!out && (!zero || candidate)) continue;
      assert_true(want.at[i][j] == 0);
      assert_true(got.at[i][j] == 0);
    }
  assert_true(zeros > 2 && ignored > 2);
  assert_true(oracle_loss(params, p, &f->s) == oracle_loss(params, p, &moved));
}

static void zero_weights_and_ignored_pairs(void **state) {
  scratch *k = *state;
  fixture f;
  fixture_open(k->ctx, ORACLE_IGNORED, &f);
  for (int c = 0; c < oracle_case_count; c++) {
    unicon__loss_params params = oracle_cases[c].params;
    params.temperature = 0.1;
    expect_silent(k->ctx, &params, &f);
  }
  oracle_close(&f.problem);
}

/* ---- T6 ----------------------------------------------------------------------------------- */

/* Perfect positives at tau = .01: S_ii = N_i / (n D_i) is 1e-10 and less of a row whose total is 1;
 * it survives only if N_i never contained the positive. */
static void negatives_are_summed_alone(void **state) {
  scratch *k = *state;
  static const int kinds[] = {UNICON__LOSS_INFONCE, UNICON__LOSS_CLIP};
  fixture f;
  fixture_open(k->ctx, ORACLE_ONE_TO_ONE, &f);
  f.y = f.x;
  oracle_scores(&f.x, &f.y, &f.s);
  for (int kind = 0; kind < 2; kind++) {
    const unicon__loss_params params = {.kind = kinds[kind], .temperature = 0.01};
    double value;
    oracle_matrix want, got;
    oracle_weights(&params, &f.problem, &f.s, &want);
    get_library(k->ctx, &params, &f, &value, &got);
    for (int i = 0; i < f.problem.n_x; i++)
      for (int j = 0; j < f.problem.n_y; j++)
        if (fabs(want.at[i][j]) > 1e-36)
          assert_true(fabs(got.at[i][j] - want.at[i][j]) <= 1e-4 * fabs(want.at[i][j]));
    assert_true(want.at[0][0] < 1e-7 && want.at[0][0] > 1e-36);
    const double loss = oracle_loss(&params, &f.problem, &f.s);
    assert_true(fabs(value - loss) <= 1e-4 * loss);
  }
  oracle_close(&f.problem);
}

/* ---- T9 ----------------------------------------------------------------------------------- */

/* alpha_ij of Nakada et al. (paper, appendix "Relationship with"), epsilon_ii = own. */
static double alpha(const unicon__loss_params *p, int n, const oracle_matrix *s, int i, int j) {
  double sum = 0;
  for (int m = 0; m < n; m++)
    sum += (m == i ? p->own : 1) * oracle_psi(p, s->at[i][m] - p->nu * s->at[i][i], 0);
  return (i == j ? p->own : 1) * oracle_phi(p, sum, 1) *
         oracle_psi(p, s->at[i][j] - p->nu * s->at[i][i], 1);
}

/* S_ij = -beta_ij / n and S_ii = beta_i / n. */
static void beta_form(const unicon__loss_params *p, int n, const oracle_matrix *s,
                      oracle_matrix *out) {
  oracle_matrix t;
  oracle_transpose_matrix(s, &t);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (i != j) {
        out->at[i][j] = -(alpha(p, n, s, i, j) + alpha(p, n, &t, j, i)) / (2 * n);
        continue;
      }
      double beta = -(alpha(p, n, s, i, i) + alpha(p, n, &t, i, i)) / 2;
      for (int m = 0; m < n; m++)
        beta += p->nu * (alpha(p, n, s, i, m) + alpha(p, n, &t, i, m)) / 2;
      out->at[i][i] = beta / n;
    }
}

static void beta_form_of_nakada(void **state) {
  scratch *k = *state;
  fixture f;
  fixture_open(k->ctx, ORACLE_ONE_TO_ONE, &f);
  for (int c = 0; c < oracle_case_count; c++) {
    unicon__loss_params params = oracle_cases[c].params;
    oracle_matrix want, beta;
    params.temperature = 0.3;
    if (params.kind == UNICON__LOSS_CLIP || params.kind == UNICON__LOSS_SUPCON ||
        params.kind == UNICON__LOSS_TRIPLET)
      params.nu = 1, params.own = params.kind == UNICON__LOSS_TRIPLET ? 0 : 1;
    else if (params.kind != UNICON__LOSS_GENERAL)
      continue;
    if (params.direction != UNICON__DIRECTION_BOTH) continue;
    beta_form(&params, f.problem.n_x, &f.s, &beta);
    oracle_weights(&params, &f.problem, &f.s, &want);
    assert_true(oracle_distance(&f.problem, &want, &beta) <=
                1e-14 * fmax(1, oracle_largest(&f.problem, &want)));
  }
  oracle_close(&f.problem);
}

/* ---- T11 and relatives -------------------------------------------------------------------- */

/* The library's two ways of saying the same loss. */
static void expect_equal(unicon_ctx *ctx, unicon__loss_params a, unicon__loss_params b, int set) {
  fixture f;
  double value_a, value_b;
  oracle_matrix s_a, s_b, want_a, want_b;
  a.temperature = b.temperature = 0.1;
  fixture_open(ctx, set, &f);
  oracle_weights(&a, &f.problem, &f.s, &want_a);
  oracle_weights(&b, &f.problem, &f.s, &want_b);
  const double scale = oracle_largest(&f.problem, &want_a);
  assert_true(oracle_distance(&f.problem, &want_a, &want_b) <= 1e-13 * scale);
  get_library(ctx, &a, &f, &value_a, &s_a);
  get_library(ctx, &b, &f, &value_b, &s_b);
  assert_true(oracle_distance(&f.problem, &s_a, &s_b) <= 1e-6 * scale);
  assert_true(fabs(value_a - value_b) <= 1e-6 * fmax(fabs(value_a), 0.01));
  oracle_close(&f.problem);
}

static void names_of_the_same_loss(void **state) {
  scratch *k = *state;
  const unicon__loss_params clip = {.kind = UNICON__LOSS_CLIP};
  const unicon__loss_params supcon = {.kind = UNICON__LOSS_SUPCON};
  const unicon__loss_params triplet = {.kind = UNICON__LOSS_TRIPLET, .margin = 0.2};
  const unicon__loss_params general = {.kind = UNICON__LOSS_GENERAL, .nu = 1, .own = 1};
  const unicon__loss_params hinge = {.kind = UNICON__LOSS_GENERAL,
                                     .psi = UNICON__PSI_HINGE,
                                     .phi = UNICON__PHI_IDENTITY,
                                     .nu = 1,
                                     .margin = 0.2};
  expect_equal(k->ctx, clip, supcon, ORACLE_ONE_TO_ONE);
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    expect_equal(k->ctx, clip, general, set);
    expect_equal(k->ctx, triplet, hinge, set);
  }
}

/* psi and phi identity, one-to-one: n times the moment weights, (I - 1 1^T / n) in all. */
static void identity_is_the_moment(void **state) {
  scratch *k = *state;
  const unicon__loss_params params = {.kind = UNICON__LOSS_GENERAL,
                                      .psi = UNICON__PSI_IDENTITY,
                                      .phi = UNICON__PHI_IDENTITY,
                                      .nu = 1,
                                      .own = 1};
  fixture f;
  double value;
  oracle_matrix want, got;
  fixture_open(k->ctx, ORACLE_ONE_TO_ONE, &f);
  const int n = f.problem.n_x;
  oracle_weights(&params, &f.problem, &f.s, &want);
  get_library(k->ctx, &params, &f, &value, &got);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      assert_true(fabs(want.at[i][j] - ((i == j) - 1.0 / n)) <= 1e-13);
      assert_true(fabs(got.at[i][j] - ((i == j) - 1.0 / n)) <= 1e-6);
    }
  oracle_close(&f.problem);
}

/* ---- T12 ---------------------------------------------------------------------------------- */

static void triplet_counts(void **state) {
  scratch *k = *state;
  const unicon__loss_params params = {.kind = UNICON__LOSS_TRIPLET, .margin = 0.2};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    fixture f;
    oracle_matrix w;
    if (set == ORACLE_WEIGHTED || set == ORACLE_IGNORED || set == ORACLE_PART_IGNORED ||
        set == ORACLE_PART_NEGATIVES || set == ORACLE_ONE_SET_IGNORED ||
        set == ORACLE_ONE_SET_NEGATIVES)
      continue; /* unit weights only */
    fixture_open(k->ctx, set, &f);
    oracle_weights_x(&params, &f.problem, &f.s, &w);
    const int anchors = oracle_anchors(&f.problem);
    for (int i = 0; i < f.problem.n_x; i++)
      for (int j = 0; j < f.problem.n_y; j++) {
        const double count = anchors * oracle_row_count(&f.problem, i) * w.at[i][j];
        assert_true(fabs(count - nearbyint(count)) <= 1e-12);
      }
    if (set == ORACLE_ONE_TO_ONE) {
      double value;
      get_library(k->ctx, &params, &f, &value, &w);
      for (int i = 0; i < f.problem.n_x; i++)
        for (int j = 0; j < f.problem.n_y; j++) {
          const double count = 2 * anchors * w.at[i][j]; /* both directions, so twice the half */
          assert_true(fabs(count - nearbyint(count)) <= 1e-5);
        }
    }
    oracle_close(&f.problem);
  }
}

/* n_x = 1: positives .5 and .75, margin .25; a negative at .25 + d meets the first kink at d = 0.
 */
static void triplet_at_the_kink(void **state) {
  scratch *k = *state;
  static const double offsets[] = {-0x1p-20, 0, 0x1p-20};
  const unicon__loss_params params = {.kind = UNICON__LOSS_TRIPLET, .margin = 0.25};
  for (int d = 0; d < 3; d++) {
    fixture f = {.problem = {.n_x = 1, .n_y = 4}};
    const double scores[] = {0.5, 0.25 + offsets[d], 0.75, 0.25 + offsets[d]};
    double value;
    oracle_matrix got;
    for (int j = 0; j < 4; j++) {
      f.s.at[0][j] = scores[j];
      f.problem.positive[0][j] = j % 2 == 0;
      f.problem.weight.at[0][j] = 1;
      f.problem.epsilon.at[0][j] = j % 2;
    }
    oracle_attach(k->ctx, false, &f.problem);
    oracle_rows_direct(&f.problem, &f.s, &f.x, &f.y);
    get_library(k->ctx, &params, &f, &value, &got);
    /* Columns have no negatives: L = L_x / 2. Active: both negatives for the first positive. */
    const double active = d == 2 ? 1 : 0;
    assert_true(got.at[0][0] == active * 2 / 4 && got.at[0][2] == 0);
    assert_true(got.at[0][1] == -active / 4 && got.at[0][3] == -active / 4);
    assert_true(value == (d == 2 ? 0x1p-20 / 2 : 0));
    oracle_close(&f.problem);
  }
}

/* ---- T13 ---------------------------------------------------------------------------------- */

/* Entropy of the softmax of row i over `own` (or all positives, own < 0) and the negatives,
 * relative to what each of them counts. */
static double entropy(const oracle_problem *p, const oracle_matrix *s, double t, int i, int own) {
  double total = 0, sum = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int j = 0; j < p->n_y; j++) {
      const bool in = p->positive[i][j] ? own < 0 || j == own : p->epsilon.at[i][j] > 0;
      const double count = p->positive[i][j] ? 1 : p->epsilon.at[i][j];
      const double e = in ? exp(s->at[i][j] / t) : 0;
      if (pass == 0) total += count * e;
      if (pass == 1 && e > 0) sum -= count * e / total * log(e / total);
    }
  return sum;
}

static double mean_entropy(const oracle_problem *p, const oracle_matrix *s, double t, bool all) {
  double sum = 0;
  for (int i = 0; i < p->n_x; i++)
    for (int k = 0; k < p->n_y; k++)
      if (p->positive[i][k]) sum += oracle_omega(p, i, k) * entropy(p, s, t, i, all ? -1 : k);
  return sum;
}

static void temperature_and_entropy(void **state) {
  scratch *k = *state;
  static const int kinds[] = {UNICON__LOSS_CLIP, UNICON__LOSS_SUPCON, UNICON__LOSS_INFONCE};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem problem, other;
    oracle_rows x, y;
    oracle_matrix s, turned;
    oracle_open(k->ctx, set, true, &problem);
    oracle_rows_draw(31, problem.n_x, 8, true, &x);
    oracle_rows_draw(32, problem.n_y, 8, true, &y);
    oracle_scores(&x, &y, &s);
    oracle_transpose(&problem, &other);
    oracle_transpose_matrix(&s, &turned);
    for (int kind = 0; kind < 3; kind++) {
      const double t = 0.2, h = 1e-4 * t;
      const bool all = kinds[kind] == UNICON__LOSS_SUPCON;
      unicon__loss_params low = {.kind = kinds[kind], .temperature = t - h};
      unicon__loss_params high = {.kind = kinds[kind], .temperature = t + h};
      const double slope =
          (oracle_loss(&high, &problem, &s) - oracle_loss(&low, &problem, &s)) / (2 * h);
      double want = mean_entropy(&problem, &s, t, all);
      if (kinds[kind] != UNICON__LOSS_INFONCE)
        want = (want + mean_entropy(&other, &turned, t, all)) / 2;
      assert_true(fabs(slope - want) <= 1e-6 * want);
    }
    oracle_close(&problem);
  }
}

/* ---- T21 ---------------------------------------------------------------------------------- */

/* Dot products s = x^T M y: J = L + rho/2 |M|^2 at temperature tau and tau M is tau times J at 1,
 * rho tau and M, since L(tau, tau s) = tau L(1, s). By the definition, and by the library, whose
 * scores are dot products of the rows it is given. */
static void scale_goes_into_the_temperature(void **state) {
  scratch *k = *state;
  static const double taus[] = {0.1, 0.5, 3};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    fixture f;
    fixture_open(k->ctx, set, &f);
    for (int t = 0; t < 3; t++) {
      const double tau = taus[t], rho = 0.7, norm = 5.3; /* |M|^2 */
      unicon__loss_params warm = {.kind = UNICON__LOSS_CLIP, .temperature = 1};
      unicon__loss_params cold = {.kind = UNICON__LOSS_CLIP, .temperature = tau};
      fixture scaled = f;
      for (int i = 0; i < f.x.n * f.x.r; i++) scaled.x.z[i] = (float)(tau * (double)f.x.z[i]);
      for (int i = 0; i < f.problem.n_x; i++)
        for (int j = 0; j < f.problem.n_y; j++) scaled.s.at[i][j] = tau * f.s.at[i][j];
      const double whole = oracle_loss(&warm, &f.problem, &f.s) + rho * tau / 2 * norm;
      const double part = oracle_loss(&cold, &f.problem, &scaled.s) + rho / 2 * tau * tau * norm;
      assert_true(fabs(part - tau * whole) <= 1e-12 * fabs(part));
      double of_warm, of_cold;
      oracle_matrix s_warm, s_cold;
      get_library(k->ctx, &warm, &f, &of_warm, &s_warm);
      get_library(k->ctx, &cold, &scaled, &of_cold, &s_cold);
      assert_true(fabs(of_cold - tau * of_warm) <= 1e-5 * fabs(of_cold));
      assert_true(oracle_distance(&f.problem, &s_cold, &s_warm) <=
                  1e-5 * oracle_largest(&f.problem, &s_warm)); /* S does not change */
    }
    oracle_close(&f.problem);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(rows_sum_to_nothing),
      SCRATCH_TEST(infonce_rows_sum_to_nothing),
      SCRATCH_TEST(rows_are_bounded),
      SCRATCH_TEST(only_ratios_of_weights_count),
      SCRATCH_TEST(zero_weights_and_ignored_pairs),
      SCRATCH_TEST(negatives_are_summed_alone),
      SCRATCH_TEST(beta_form_of_nakada),
      SCRATCH_TEST(names_of_the_same_loss),
      SCRATCH_TEST(identity_is_the_moment),
      SCRATCH_TEST(triplet_counts),
      SCRATCH_TEST(triplet_at_the_kink),
      SCRATCH_TEST(temperature_and_entropy),
      SCRATCH_TEST(scale_goes_into_the_temperature),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
