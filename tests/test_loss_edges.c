/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of the losses: rows without negatives, single pairs, equal scores, weights at s = 0 (T10
 * of docs/method.md section 7), the coldest temperature, what is refused, and how options reach
 * them.
 *
 * Tolerances
 *   library      rel 1e-5 max(1, .1/tau) as in test_loss.c, of the largest |S|; so where S is 0 the
 *                library must give 0. supcon subtracts equal numbers there: of the largest omega.
 *   formulas     1e-14: a handful of operations on numbers below 1. */
#include "scratch.h"

#include <math.h>

#include "loss/gradient.h"
#include "features/project.h"
#include "oracle.h"
#include "support.h"

static const double smallest = 1e-38; /* of float32, about: below it digits are lost */

static double float_tolerance(const unicon__loss_params *params) {
  const bool hot = oracle_has_temperature(params);
  return 1e-5 * (hot && params->temperature < 0.1 ? 0.1 / params->temperature : 1);
}

static double largest_omega(const oracle_problem *p) {
  oracle_problem other;
  double most = 0;
  oracle_transpose(p, &other);
  for (int i = 0; i < p->n_x; i++)
    for (int j = 0; j < p->n_y; j++)
      most = fmax(most, fmax(oracle_omega(p, i, j), oracle_omega(&other, j, i)));
  return most;
}

static void expect_library(unicon_ctx *ctx, const char *name, const char *what,
                           const unicon__loss_params *params, const oracle_problem *p,
                           const oracle_rows *x, const oracle_rows *y) {
  double value = NAN;
  oracle_matrix s, want, got;
  oracle_scores(x, y, &s);
  oracle_weights(params, p, &s, &want);
  const unicon_status status = oracle_library(ctx, params, p, x, y, &value, &got);
  if (status != UNICON_OK) print_error("%s: %s\n", name, unicon_ctx_error(ctx));
  assert_int_equal(status, UNICON_OK);
  double scale = oracle_largest(p, &want);
  if (params->kind == UNICON__LOSS_SUPCON) scale = fmax(scale, largest_omega(p));
  const double error = oracle_distance(p, &got, &want), loss = oracle_loss(params, p, &s);
  const double bound = float_tolerance(params);
  assert_true(isfinite(loss) && isfinite(scale));
  if (!(error <= fmax(bound * scale, smallest)) ||
      !(fabs(value - loss) <= bound * fmax(fabs(loss), 0.01)))
    print_error("%s, %s, temperature %g: S off by %g of %g, L %g for %g\n", name, what,
                params->temperature, error, scale, value, loss);
  assert_true(error <= fmax(bound * scale, smallest));
  assert_true(fabs(value - loss) <= bound * fmax(fabs(loss), 0.01));
}

/* Every loss at three temperatures. */
static void expect_all(unicon_ctx *ctx, const char *what, const oracle_problem *p,
                       const oracle_rows *x, const oracle_rows *y) {
  static const double temperatures[] = {1, 0.1, 0.01};
  for (int c = 0; c < oracle_case_count; c++)
    for (int t = 0; t < 3; t++) {
      unicon__loss_params params = oracle_cases[c].params;
      params.temperature = temperatures[t];
      if (oracle_refuses(&params, p) || (oracle_overflows(&params) && t == 2)) continue;
      expect_library(ctx, oracle_cases[c].name, what, &params, p, x, y);
    }
}

/* ---- small and degenerate problems -------------------------------------------------------- */

/* Letters say what a pair is: + positive, - negative, anything else neither. */
static void problem_spell(unicon_ctx *ctx, const char *const *lines, int n_x, bool listed,
                          oracle_problem *p) {
  memset(p, 0, sizeof *p);
  p->n_x = n_x;
  p->n_y = (int)strlen(lines[0]);
  for (int i = 0; i < n_x; i++)
    for (int j = 0; j < p->n_y; j++) {
      p->positive[i][j] = lines[i][j] == '+';
      p->epsilon.at[i][j] = lines[i][j] == '-';
      p->weight.at[i][j] = 1;
    }
  oracle_attach(ctx, listed, p);
}

static void expect_spelled(unicon_ctx *ctx, const char *const *lines, int n_x, bool listed) {
  oracle_problem p;
  oracle_rows x, y;
  bool negatives = false;
  for (int i = 0; i < n_x; i++) negatives |= strchr(lines[i], '-') != NULL;
  if (listed && !negatives) return; /* an empty list is refused */
  problem_spell(ctx, lines, n_x, listed, &p);
  oracle_rows_draw(61, p.n_x, 8, true, &x);
  oracle_rows_draw(62, p.n_y, 8, true, &y);
  expect_all(ctx, lines[0], &p, &x, &y);
  oracle_close(&p);
}

static void degenerate_problems(void **state) {
  scratch *k = *state;
  static const char *const single[] = {"+"}, *const row[] = {"-+---"}, *const full_row[] = {"+++"};
  static const char *const two_in_a_row[] = {"+-+-"};
  static const char *const column[] = {"-", "+", "-", "-"}, *const full_column[] = {"+", "+"};
  static const char *const no_negatives[] = {"++++", "-+--", "--+-"}; /* in row 0 and no column */
  static const char *const column_without[] = {"+--", "++-", "+-+"};
  static const char *const positives_only[] = {"+.", ".+"};
  static const char *const one_negative[] = {"+.-", ".+.", "..."};
  static const char *const all_positive[] = {"++", "++"};
  for (int listed = 0; listed < 2; listed++) {
    expect_spelled(k->ctx, single, 1, listed);
    expect_spelled(k->ctx, row, 1, listed);
    expect_spelled(k->ctx, full_row, 1, listed);
    expect_spelled(k->ctx, two_in_a_row, 1, listed);
    expect_spelled(k->ctx, column, 4, listed);
    expect_spelled(k->ctx, full_column, 2, listed);
    expect_spelled(k->ctx, no_negatives, 3, listed);
    expect_spelled(k->ctx, column_without, 3, listed);
    expect_spelled(k->ctx, positives_only, 2, listed);
    expect_spelled(k->ctx, one_negative, 3, listed);
    expect_spelled(k->ctx, all_positive, 2, listed);
  }
}

/* All labels equal: there are no negatives. All different: there are no others. */
static void one_class(void **state) {
  scratch *k = *state;
  oracle_problem p = {.n_x = 4, .n_y = 3};
  oracle_rows x, y;
  const int64_t label[4] = {9, 9, 9, 9};
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 3; j++) {
      p.positive[i][j] = true;
      p.weight.at[i][j] = 1;
    }
  assert_int_equal(unicon_pairs_labels(k->ctx, label, 4, label, 3, &p.pairs), UNICON_OK);
  oracle_rows_draw(63, 4, 8, true, &x);
  oracle_rows_draw(64, 3, 8, true, &y);
  expect_all(k->ctx, "one class", &p, &x, &y);
  oracle_close(&p);
}

static void equal_scores(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem p;
    oracle_rows x, y;
    oracle_open(k->ctx, set, false, &p);
    oracle_rows_draw(65, p.n_x, 8, true, &x);
    for (int i = 1; i < p.n_x; i++) memcpy(x.z + i * 8, x.z, 8 * sizeof *x.z);
    y = x;
    y.n = p.n_y;
    for (int j = 0; j < p.n_y; j++) memcpy(y.z + j * 8, x.z, 8 * sizeof *x.z);
    k->ctx->tile_x = k->ctx->tile_y = 5;
    expect_all(k->ctx, oracle_set_name(set), &p, &x, &y);
    oracle_close(&p);
  }
}

/* nu = 0: every positive of a row sees the same sum over negatives. */
static void nu_of_zero(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem p;
    oracle_rows x, y;
    oracle_open(k->ctx, set, false, &p);
    oracle_rows_draw(66, p.n_x, 8, true, &x);
    oracle_rows_draw(67, p.n_y, 8, true, &y);
    for (int c = 0; c < oracle_case_count; c++) {
      unicon__loss_params params = oracle_cases[c].params;
      params.temperature = 0.1;
      params.nu = 0;
      const bool log_hinge = oracle_has_kink(&params) && params.phi == UNICON__PHI_LOG;
      if (params.kind != UNICON__LOSS_GENERAL || oracle_refuses(&params, &p) || log_hinge) continue;
      expect_library(k->ctx, oracle_cases[c].name, "nu 0", &params, &p, &x, &y);
    }
    oracle_close(&p);
  }
}

/* At the lowest temperature of the options e^(s/tau) is far beyond every float; S stays bounded by
 * the weights of the pairs, here 1 in all for each direction. */
static void coldest(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem p;
    oracle_rows x, y;
    oracle_open(k->ctx, set, false, &p);
    oracle_rows_draw(68, p.n_x, 3, false, &x);
    oracle_rows_draw(69, p.n_y, 3, false, &y);
    for (int c = 0; c < oracle_case_count; c++) {
      unicon__loss_params params = oracle_cases[c].params;
      oracle_matrix got;
      double value;
      params.temperature = 1e-3;
      if (!oracle_is_exponential(&params) || oracle_overflows(&params)) continue;
      assert_int_equal(oracle_library(k->ctx, &params, &p, &x, &y, &value, &got), UNICON_OK);
      if (!isfinite(value) || !(oracle_largest(&p, &got) <= 2))
        print_error("%s on %s: L %g, largest S %g\n", oracle_cases[c].name, oracle_set_name(set),
                    value, oracle_largest(&p, &got));
      assert_true(isfinite(value));
      assert_true(oracle_largest(&p, &got) <= 2);
    }
    oracle_close(&p);
  }
}

/* ---- T10: weights at s = 0 ---------------------------------------------------------------- */

static bool plain_set(int set) {
  return set == ORACLE_ONE_TO_ONE || set == ORACLE_FIVE_PER_X || set == ORACLE_MANY ||
         set == ORACLE_LABELS || set == ORACLE_TALL;
}

/* (P_ij / |P_x(i)| - 1/n_y) / a_x on rows with a positive; clip: times n_y / (n_y - |P_x(i)| + 1).
 */
static void start_x(const oracle_problem *p, bool clip, oracle_matrix *out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < p->n_x; i++) {
    const int count = oracle_row_count(p, i);
    const double factor = clip ? (double)p->n_y / (p->n_y - count + 1) : 1;
    for (int j = 0; j < p->n_y && count > 0; j++)
      out->at[i][j] =
          factor * ((double)p->positive[i][j] / count - 1.0 / p->n_y) / oracle_anchors(p);
  }
}

static void start_weights(const oracle_problem *p, bool clip, oracle_matrix *out) {
  oracle_problem other;
  oracle_matrix s_x, s_y;
  oracle_transpose(p, &other);
  start_x(p, clip, &s_x);
  start_x(&other, clip, &s_y);
  for (int i = 0; i < p->n_x; i++)
    for (int j = 0; j < p->n_y; j++) out->at[i][j] = (s_x.at[i][j] + s_y.at[j][i]) / 2;
}

static void weights_at_zero(void **state) {
  scratch *k = *state;
  static const int kinds[] = {UNICON__LOSS_SUPCON, UNICON__LOSS_CLIP};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem p;
    if (!plain_set(set)) continue;
    oracle_open(k->ctx, set, false, &p);
    const oracle_rows x = {.n = p.n_x, .r = 1}, y = {.n = p.n_y, .r = 1};
    for (int c = 0; c < 4; c++) {
      const unicon__loss_params params = {.kind = kinds[c % 2], .temperature = c < 2 ? 1 : 0.05};
      const oracle_matrix zero = {{{0}}};
      oracle_matrix formula_s, want, got;
      double value;
      start_weights(&p, kinds[c % 2] == UNICON__LOSS_CLIP, &formula_s);
      oracle_weights(&params, &p, &zero, &want);
      assert_true(oracle_distance(&p, &want, &formula_s) <= 1e-14);
      assert_int_equal(oracle_library(k->ctx, &params, &p, &x, &y, &value, &got), UNICON_OK);
      assert_true(oracle_distance(&p, &got, &formula_s) <= 1e-6 * oracle_largest(&p, &formula_s));
    }
    oracle_close(&p);
  }
}

/* ---- refusals and options ----------------------------------------------------------------- */

static unicon_status begin(scratch *k, const oracle_problem *p, unicon__loss_params params) {
  const oracle_rows x = {.n = p->n_x, .r = 1}, y = {.n = p->n_y, .r = 1};
  double value;
  oracle_matrix s;
  params.kind = UNICON__LOSS_GENERAL;
  params.temperature = 0.1;
  return oracle_library(k->ctx, &params, p, &x, &y, &value, &s);
}

static void illegal_combinations(void **state) {
  scratch *k = *state;
  enum { EXP = UNICON__PSI_EXP, HINGE = UNICON__PSI_HINGE, IDENTITY = UNICON__PSI_IDENTITY };
  enum { LOG = UNICON__PHI_LOG, LOG1P = UNICON__PHI_LOG1P, LINEAR = UNICON__PHI_IDENTITY };
  static const struct {
    unicon__loss_params params;
    const char *word;
  } refused[] = {
      {{.psi = HINGE, .phi = LOG, .nu = 1, .own = 0, .margin = 0.2}, "hinge"},
      {{.psi = HINGE, .phi = LOG, .nu = 0.5, .own = 1, .margin = 0.2}, "hinge"},
      {{.psi = HINGE, .phi = LOG, .nu = 1.5, .own = 1, .margin = 0.2}, "hinge"},
      {{.psi = HINGE, .phi = LOG, .nu = 1, .own = 1, .margin = 0}, "hinge"},
      {{.psi = IDENTITY, .phi = LOG, .nu = 1, .own = 1}, "identity"},
      {{.psi = IDENTITY, .phi = LOG1P, .nu = 1, .own = 1}, "identity"},
  };
  static const unicon__loss_params accepted[] = {
      {.psi = HINGE, .phi = LOG, .nu = 1, .own = 1, .margin = 0.2},
      {.psi = HINGE, .phi = LOG1P, .nu = 1.5, .own = 0, .margin = 0},
      {.psi = HINGE, .phi = LINEAR, .nu = 1, .own = 0, .margin = 0},
      {.psi = IDENTITY, .phi = LINEAR, .nu = 2, .own = 0},
      {.psi = EXP, .phi = LOG, .nu = 0, .own = 0},
  };
  oracle_problem p;
  oracle_open(k->ctx, ORACLE_MANY, true, &p);
  for (size_t c = 0; c < sizeof refused / sizeof *refused; c++)
    scratch_failed(k, begin(k, &p, refused[c].params), UNICON_ERR_OPTION, refused[c].word, "phi");
  for (size_t c = 0; c < sizeof accepted / sizeof *accepted; c++)
    assert_int_equal(begin(k, &p, accepted[c]), UNICON_OK);
  oracle_close(&p);
}

static void softplus_of_labels(void **state) {
  scratch *k = *state;
  const unicon__loss_params params = {.psi = UNICON__PSI_SOFTPLUS, .nu = 1, .own = 1};
  oracle_problem p;
  oracle_open(k->ctx, ORACLE_LABELS, true, &p);
  const unicon_status status = begin(k, &p, params);
  assert_true(status == UNICON_ERR_UNSUPPORTED || status == UNICON_ERR_OPTION);
  scratch_failed(k, status, status, "softplus", "label");
  oracle_close(&p);
}

static void options_reach_the_loss(void **state) {
  scratch *k = *state;
  static const struct {
    const char *word;
    int kind;
  } losses[] = {{"clip", UNICON__LOSS_CLIP},         {"infonce", UNICON__LOSS_INFONCE},
                {"general", UNICON__LOSS_GENERAL},   {"triplet", UNICON__LOSS_TRIPLET},
                {"supcon", UNICON__LOSS_SUPCON},     {"siglip", UNICON__LOSS_SIGLIP},
                {"spectral", UNICON__LOSS_SPECTRAL}, {"moment", UNICON__LOSS_MOMENT}};
  static const char *const settings[][2] = {
      {"psi", "softplus"}, {"phi", "log1p"}, {"nu", "1.5"}, {"temperature", "0.25"},
      {"margin", "0.5"},   {"scale", "4"},   {"bias", "-2"}};
  unicon_options *options = NULL;
  unicon__loss_params params;
  assert_int_equal(unicon_options_create(k->ctx, &options), UNICON_OK);
  unicon__loss_params_from(options, &params); /* general is clip unless told */
  assert_true(params.psi == UNICON__PSI_EXP && params.phi == UNICON__PHI_LOG);
  assert_true(params.nu == 1 && params.own == 1 && params.temperature == 0.1);
  assert_true(params.margin == 0.2 && params.scale == 10 && params.bias == -10);
  for (size_t c = 0; c < sizeof losses / sizeof *losses; c++) {
    assert_int_equal(unicon_options_set(k->ctx, options, "loss", losses[c].word), UNICON_OK);
    unicon__loss_params_from(options, &params);
    assert_int_equal(params.kind, losses[c].kind);
  }
  for (size_t c = 0; c < sizeof settings / sizeof *settings; c++)
    assert_int_equal(unicon_options_set(k->ctx, options, settings[c][0], settings[c][1]),
                     UNICON_OK);
  unicon__loss_params_from(options, &params);
  assert_true(params.psi == UNICON__PSI_SOFTPLUS && params.phi == UNICON__PHI_LOG1P);
  assert_true(params.nu == 1.5 && params.temperature == 0.25 && params.margin == 0.5);
  assert_true(params.scale == 4 && params.bias == -2);
  unicon_options_destroy(options);
}

/* A batch may have only pairs of weight 0. They pull nothing, and no loss divides by their sum. */
static void pairs_without_weight(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 5, R = 3 };
  static const int64_t row[N + 1] = {0, 1, 2, 3, 4, 5};
  static const double last[N + 1] = {0, 0, 0, 0, 0, 1};
  unicon_pairs *all = NULL, *pairs = NULL;
  float *z = support_normals(2, (int64_t)2 * N * R), out[2][N * R];
  CHECK_OK(ctx, unicon_pairs_list(ctx, N + 1, N + 1, row, row, last, N + 1, &all));
  CHECK_OK(ctx, unicon__pairs_subset(ctx, all, row, N, row, N, &pairs));
  unicon__scale_rows(z, 2 * N, R, R, 1);
  for (int c = 0; c < oracle_case_count; c++) {
    double value;
    unicon__loss_params params = oracle_cases[c].params;
    params.temperature = 0.3;
    unicon__block *frame = unicon__frame_open(ctx);
    CHECK_OK(ctx, unicon__gradient(ctx, &params, pairs, R, z, z + N * R, out[0], out[1], &value));
    int bad = !isfinite(value);
    for (int k = 0; k < N * R; k++) bad += !isfinite(out[0][k]) || !isfinite(out[1][k]);
    if (bad) print_error("%s: value %g, %d not finite\n", oracle_cases[c].name, value, bad);
    assert_int_equal(bad, 0);
    unicon__frame_close(ctx, frame);
  }
  unicon_pairs_destroy(pairs);
  unicon_pairs_destroy(all);
  free(z);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(degenerate_problems),
      SCRATCH_TEST(one_class),
      SCRATCH_TEST(equal_scores),
      SCRATCH_TEST(nu_of_zero),
      SCRATCH_TEST(coldest),
      SCRATCH_TEST(weights_at_zero),
      SCRATCH_TEST(illegal_combinations),
      SCRATCH_TEST(softplus_of_labels),
      SCRATCH_TEST(options_reach_the_loss),
      SCRATCH_TEST(pairs_without_weight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
