/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "loss/pass.h"

/* ---- psi and phi -------------------------------------------------------------------------- */

/* psi, phi, nu and epsilon+ of the losses that have them. */
static unicon__loss_params family(const unicon__loss_params *params) {
  unicon__loss_params f = *params;
  if (f.kind == UNICON__LOSS_GENERAL) return f;
  if (f.kind == UNICON__LOSS_CUSTOM) {
    f.psi = UNICON__PSI_CUSTOM;
    f.phi = UNICON__PHI_CUSTOM;
    return f;
  }
  f.nu = 1;
  f.psi = f.kind == UNICON__LOSS_TRIPLET ? UNICON__PSI_HINGE : UNICON__PSI_EXP;
  f.phi = f.kind == UNICON__LOSS_TRIPLET ? UNICON__PHI_IDENTITY : UNICON__PHI_LOG;
  f.own = f.kind == UNICON__LOSS_TRIPLET ? 0 : 1;
  return f;
}

double oracle_psi(const unicon__loss_params *params, double x, int derivative) {
  const unicon__loss_params f = family(params);
  const double t = f.temperature;
  switch (f.psi) {
    case UNICON__PSI_EXP:
      return derivative ? exp(x / t) / t : exp(x / t);
    case UNICON__PSI_HINGE:
      if (!(x + f.margin > 0)) return 0;
      return derivative ? 1 : x + f.margin;
    case UNICON__PSI_SOFTPLUS:
      return derivative ? 1 / (1 + exp(-x / t)) : t * log1p(exp(x / t));
    case UNICON__PSI_SOFTMIN:
      return derivative ? 1 / (1 + exp((x - f.margin) / t)) : -t * log1p(exp((f.margin - x) / t));
    case UNICON__PSI_CUSTOM: /* x + sqrt(1 + x^2) */
      return derivative ? 1 + x / sqrt(1 + x * x) : x + sqrt(1 + x * x);
    default:
      return derivative ? 1 : x;
  }
}

/* The logarithms are multiplied by the temperature where psi has one. */
double oracle_phi(const unicon__loss_params *params, double x, int derivative) {
  const unicon__loss_params f = family(params);
  const double t = f.psi == UNICON__PSI_EXP ? f.temperature : 1;
  switch (f.phi) {
    case UNICON__PHI_LOG:
      return derivative ? t / x : t * log(x);
    case UNICON__PHI_LOG1P:
      return derivative ? t / (1 + x) : t * log1p(x);
    case UNICON__PHI_CUSTOM: /* 2 sqrt(1 + x) */
      return derivative ? 1 / sqrt(1 + x) : 2 * sqrt(1 + x);
    default:
      return derivative ? 1 : x;
  }
}

/* The same as callbacks. */
static double custom_psi(void *user, double x, double *slope) {
  const double root = sqrt(*(const double *)user + x * x);
  *slope = 1 + x / root;
  return x + root;
}

static double custom_phi(void *user, double x, double *slope) {
  const double root = sqrt(*(const double *)user + x);
  *slope = 1 / root;
  return 2 * root;
}

/* ---- pairs -------------------------------------------------------------------------------- */

int oracle_row_count(const oracle_problem *problem, int i) {
  int count = 0;
  for (int k = 0; k < problem->n_y; k++) count += problem->positive[i][k];
  return count;
}

int oracle_anchors(const oracle_problem *problem) {
  int count = 0;
  for (int i = 0; i < problem->n_x; i++) count += oracle_row_count(problem, i) > 0;
  return count;
}

static double share(const oracle_problem *problem, int i, int k) {
  return problem->positive[i][k] ? problem->weight.at[i][k] / oracle_row_count(problem, i) : 0;
}

static void all_omegas(const oracle_problem *problem, oracle_matrix *out) {
  double total = 0;
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++) total += out->at[i][k] = share(problem, i, k);
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++) out->at[i][k] /= total;
}

double oracle_omega(const oracle_problem *problem, int i, int k) {
  oracle_matrix omega;
  all_omegas(problem, &omega);
  return omega.at[i][k];
}

void oracle_transpose_matrix(const oracle_matrix *m, oracle_matrix *out) {
  for (int i = 0; i < ORACLE_MOST; i++)
    for (int j = 0; j < ORACLE_MOST; j++) out->at[j][i] = m->at[i][j];
}

void oracle_transpose(const oracle_problem *problem, oracle_problem *out) {
  out->n_x = problem->n_y;
  out->n_y = problem->n_x;
  out->pairs = NULL;
  for (int i = 0; i < ORACLE_MOST; i++)
    for (int j = 0; j < ORACLE_MOST; j++) out->positive[j][i] = problem->positive[i][j];
  oracle_transpose_matrix(&problem->weight, &out->weight);
  oracle_transpose_matrix(&problem->epsilon, &out->epsilon);
}

/* ---- one direction ------------------------------------------------------------------------ */

/* arg_ik = epsilon+ psi((1 - nu) s_ik) + sum_j epsilon_ij psi(s_ij - nu s_ik). */
static double argument(const unicon__loss_params *f, const oracle_problem *problem,
                       const oracle_matrix *s, int i, int k) {
  const double own = s->at[i][k];
  double sum = f->own > 0 ? f->own * oracle_psi(f, (1 - f->nu) * own, 0) : 0;
  for (int j = 0; j < problem->n_y; j++)
    if (problem->epsilon.at[i][j] > 0)
      sum += problem->epsilon.at[i][j] * oracle_psi(f, s->at[i][j] - f->nu * own, 0);
  return sum;
}

/* Without epsilon+ and negatives there is nothing to take the logarithm of: the row is left out. */
static bool left_out(const unicon__loss_params *f, double arg) {
  return f->phi == UNICON__PHI_LOG && arg == 0;
}

static double general_loss(const unicon__loss_params *params, const oracle_problem *problem,
                           const oracle_matrix *s) {
  const unicon__loss_params f = family(params);
  oracle_matrix omega;
  double sum = 0;
  all_omegas(problem, &omega);
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++) {
      if (!problem->positive[i][k]) continue;
      const double arg = argument(&f, problem, s, i, k);
      if (!left_out(&f, arg)) sum += omega.at[i][k] * oracle_phi(&f, arg, 0);
    }
  return sum;
}

static void general_weights(const unicon__loss_params *params, const oracle_problem *problem,
                            const oracle_matrix *s, oracle_matrix *out) {
  const unicon__loss_params f = family(params);
  oracle_matrix omega;
  all_omegas(problem, &omega);
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++) {
      if (!problem->positive[i][k]) continue;
      const double own = s->at[i][k], arg = argument(&f, problem, s, i, k);
      if (left_out(&f, arg)) continue;
      const double outer = omega.at[i][k] * oracle_phi(&f, arg, 1);
      if (f.own > 0)
        out->at[i][k] -= outer * f.own * (1 - f.nu) * oracle_psi(&f, (1 - f.nu) * own, 1);
      for (int j = 0; j < problem->n_y; j++) {
        if (!(problem->epsilon.at[i][j] > 0)) continue;
        const double inner =
            problem->epsilon.at[i][j] * oracle_psi(&f, s->at[i][j] - f.nu * own, 1);
        out->at[i][j] -= outer * inner;
        out->at[i][k] += outer * f.nu * inner;
      }
    }
}

/* supcon: all positives, and the negatives, share one denominator. */
static double supcon_term(const unicon__loss_params *params, const oracle_problem *problem,
                          const oracle_matrix *s, int i, int j) {
  const double e = problem->positive[i][j] ? 1 : problem->epsilon.at[i][j];
  return e > 0 ? e * exp(s->at[i][j] / params->temperature) : 0;
}

static double supcon_total(const unicon__loss_params *params, const oracle_problem *problem,
                           const oracle_matrix *s, int i) {
  double total = 0;
  for (int j = 0; j < problem->n_y; j++) total += supcon_term(params, problem, s, i, j);
  return total;
}

static double supcon_loss(const unicon__loss_params *params, const oracle_problem *problem,
                          const oracle_matrix *s) {
  double sum = 0;
  oracle_matrix omega;
  all_omegas(problem, &omega);
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++)
      if (problem->positive[i][k])
        sum -= omega.at[i][k] * params->temperature *
               log(supcon_term(params, problem, s, i, k) / supcon_total(params, problem, s, i));
  return sum;
}

static void supcon_weights(const unicon__loss_params *params, const oracle_problem *problem,
                           const oracle_matrix *s, oracle_matrix *out) {
  oracle_matrix omega;
  all_omegas(problem, &omega);
  for (int i = 0; i < problem->n_x; i++)
    for (int k = 0; k < problem->n_y; k++) {
      if (!problem->positive[i][k]) continue;
      const double total = supcon_total(params, problem, s, i);
      out->at[i][k] += omega.at[i][k];
      for (int j = 0; j < problem->n_y; j++)
        out->at[i][j] -= omega.at[i][k] * supcon_term(params, problem, s, i, j) / total;
    }
}

double oracle_loss_x(const unicon__loss_params *params, const oracle_problem *problem,
                     const oracle_matrix *s) {
  return params->kind == UNICON__LOSS_SUPCON ? supcon_loss(params, problem, s)
                                             : general_loss(params, problem, s);
}

void oracle_weights_x(const unicon__loss_params *params, const oracle_problem *problem,
                      const oracle_matrix *s, oracle_matrix *out) {
  memset(out, 0, sizeof *out);
  if (params->kind == UNICON__LOSS_SUPCON)
    supcon_weights(params, problem, s, out);
  else
    general_weights(params, problem, s, out);
}

/* ---- losses of single pairs --------------------------------------------------------------- */

/* siglip: e log(1 + exp(-z (t s + b))) / sum w. */
static double siglip_pair(const unicon__loss_params *params, const oracle_problem *problem,
                          double s, int i, int j, int derivative) {
  const bool positive = problem->positive[i][j];
  const double e = positive ? problem->weight.at[i][j] : problem->epsilon.at[i][j];
  const double z = positive ? 1 : -1, x = -z * (params->scale * s + params->bias);
  return derivative ? e * -z * params->scale / (1 + exp(-x)) : e * log1p(exp(x));
}

/* sum of w, and of e = 1 on positives, epsilon elsewhere. */
static void totals(const oracle_problem *problem, double *weights, double *pairs) {
  *weights = *pairs = 0;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) {
      if (problem->positive[i][j]) *weights += problem->weight.at[i][j];
      *pairs += problem->positive[i][j] ? 1 : problem->epsilon.at[i][j];
    }
}

/* A pair's part of L, or of dL/ds. spectral: -2 w s / sum w + e s^2 / sum e. */
static double pair_part(const unicon__loss_params *params, const oracle_problem *problem, double s,
                        int i, int j, int derivative) {
  double weights, pairs;
  totals(problem, &weights, &pairs);
  if (params->kind == UNICON__LOSS_SIGLIP)
    return siglip_pair(params, problem, s, i, j, derivative) / weights;
  const double w = problem->positive[i][j] ? problem->weight.at[i][j] : 0;
  const double e = problem->positive[i][j] ? 1 : problem->epsilon.at[i][j];
  if (derivative) return -2 * w / weights + 2 * e * s / pairs;
  return -2 * w * s / weights + e * s * s / pairs;
}

/* Of L_x in L. */
static double x_share(const unicon__loss_params *params) {
  if (params->kind == UNICON__LOSS_INFONCE) return 1;
  return params->direction == UNICON__DIRECTION_BOTH ? 0.5
         : params->direction == UNICON__DIRECTION_X  ? 1
                                                     : 0;
}

double oracle_loss(const unicon__loss_params *params, const oracle_problem *problem,
                   const oracle_matrix *s) {
  if (oracle_has_directions(params)) {
    oracle_problem other;
    oracle_matrix turned;
    oracle_transpose(problem, &other);
    oracle_transpose_matrix(s, &turned);
    return x_share(params) * oracle_loss_x(params, problem, s) +
           (1 - x_share(params)) * oracle_loss_x(params, &other, &turned);
  }
  double sum = 0;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) sum += pair_part(params, problem, s->at[i][j], i, j, 0);
  return sum;
}

void oracle_weights(const unicon__loss_params *params, const oracle_problem *problem,
                    const oracle_matrix *s, oracle_matrix *out) {
  memset(out, 0, sizeof *out);
  if (oracle_has_directions(params)) {
    const double share = x_share(params);
    oracle_weights_x(params, problem, s, out);
    oracle_problem other;
    oracle_matrix turned, other_s;
    oracle_transpose(problem, &other);
    oracle_transpose_matrix(s, &turned);
    oracle_weights_x(params, &other, &turned, &other_s);
    for (int i = 0; i < problem->n_x; i++)
      for (int j = 0; j < problem->n_y; j++)
        out->at[i][j] = share * out->at[i][j] + (1 - share) * other_s.at[j][i];
    return;
  }
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++)
      out->at[i][j] = -pair_part(params, problem, s->at[i][j], i, j, 1);
}

/* ---- what is tested on what --------------------------------------------------------------- */

#define GENERAL(psi_, phi_, nu_, own_)                                                  \
  {                                                                                     \
    .kind = UNICON__LOSS_GENERAL, .psi = UNICON__PSI_##psi_, .phi = UNICON__PHI_##phi_, \
    .margin = 0.2, .nu = nu_, .own = own_                                               \
  }

#define ONE_WAY(psi_, phi_, nu_, own_, way_)                                            \
  {                                                                                     \
    .kind = UNICON__LOSS_GENERAL, .psi = UNICON__PSI_##psi_, .phi = UNICON__PHI_##phi_, \
    .margin = 0.2, .nu = nu_, .own = own_, .direction = UNICON__DIRECTION_##way_        \
  }

static double one = 1;
#define CUSTOM(nu_, own_, way_)                                                                 \
  {                                                                                             \
    .kind = UNICON__LOSS_CUSTOM, .nu = nu_, .own = own_, .direction = UNICON__DIRECTION_##way_, \
    .custom = {                                                                                 \
      custom_psi,                                                                               \
      custom_phi,                                                                               \
      &one                                                                                      \
    }                                                                                           \
  }

const oracle_case oracle_cases[] = {
    {"clip", {.kind = UNICON__LOSS_CLIP}},
    {"infonce", {.kind = UNICON__LOSS_INFONCE}},
    {"supcon", {.kind = UNICON__LOSS_SUPCON}},
    {"exp log nu 1", GENERAL(EXP, LOG, 1, 1)},
    {"exp log nu .5", GENERAL(EXP, LOG, 0.5, 1)},
    {"exp log nu 1.5 own 0", GENERAL(EXP, LOG, 1.5, 0)},
    {"exp log nu 0 own .5", GENERAL(EXP, LOG, 0, 0.5)},
    {"exp log1p nu 1", GENERAL(EXP, LOG1P, 1, 1)},
    {"exp log1p nu 2 own 0", GENERAL(EXP, LOG1P, 2, 0)},
    {"exp log1p nu .5 own 2", GENERAL(EXP, LOG1P, 0.5, 2)},
    {"exp identity nu 1", GENERAL(EXP, IDENTITY, 1, 1)},
    {"exp identity nu .5 own .5", GENERAL(EXP, IDENTITY, 0.5, 0.5)},
    {"hinge identity nu 1.5", GENERAL(HINGE, IDENTITY, 1.5, 1)},
    {"hinge identity nu .5 own 0", GENERAL(HINGE, IDENTITY, 0.5, 0)},
    {"hinge log1p nu 1 own .5", GENERAL(HINGE, LOG1P, 1, 0.5)},
    {"hinge log1p nu .5 own 0", GENERAL(HINGE, LOG1P, 0.5, 0)},
    {"hinge log nu 1", GENERAL(HINGE, LOG, 1, 1)},
    {"softplus log nu 1", GENERAL(SOFTPLUS, LOG, 1, 1)},
    {"softplus log nu 1.5 own 0", GENERAL(SOFTPLUS, LOG, 1.5, 0)},
    {"softplus log1p nu .5", GENERAL(SOFTPLUS, LOG1P, 0.5, 1)},
    {"softplus identity nu 1.5", GENERAL(SOFTPLUS, IDENTITY, 1.5, 1)},
    {"softmin identity nu 1", GENERAL(SOFTMIN, IDENTITY, 1, 1)},
    {"softmin identity nu 1.5 own 0", GENERAL(SOFTMIN, IDENTITY, 1.5, 0)},
    {"exp log nu 2, x alone", ONE_WAY(EXP, LOG, 2, 1, X)},
    {"exp log1p nu .5, y alone", ONE_WAY(EXP, LOG1P, 0.5, 1, Y)},
    {"hinge identity nu 1.5, y alone", ONE_WAY(HINGE, IDENTITY, 1.5, 1, Y)},
    {"softplus log nu 1, x alone", ONE_WAY(SOFTPLUS, LOG, 1, 1, X)},
    {"clip, y alone", {.kind = UNICON__LOSS_CLIP, .direction = UNICON__DIRECTION_Y}},
    {"supcon, x alone", {.kind = UNICON__LOSS_SUPCON, .direction = UNICON__DIRECTION_X}},
    {"triplet, x alone",
     {.kind = UNICON__LOSS_TRIPLET, .margin = 0.2, .direction = UNICON__DIRECTION_X}},
    {"custom nu 1.5", CUSTOM(1.5, 1, BOTH)},
    {"custom nu 1 own 0, y alone", CUSTOM(1, 0, Y)},
    {"identity identity nu 1", GENERAL(IDENTITY, IDENTITY, 1, 1)},
    {"identity identity nu 1.5 own .5", GENERAL(IDENTITY, IDENTITY, 1.5, 0.5)},
    {"triplet", {.kind = UNICON__LOSS_TRIPLET, .margin = 0.2}},
    {"siglip", {.kind = UNICON__LOSS_SIGLIP, .scale = 10, .bias = -3}},
    {"spectral", {.kind = UNICON__LOSS_SPECTRAL}},
};
const int oracle_case_count = (int)(sizeof oracle_cases / sizeof *oracle_cases);

bool oracle_has_directions(const unicon__loss_params *params) {
  return params->kind != UNICON__LOSS_SIGLIP && params->kind != UNICON__LOSS_SPECTRAL;
}

bool oracle_is_exponential(const unicon__loss_params *params) {
  return oracle_has_directions(params) && family(params).psi == UNICON__PSI_EXP;
}

bool oracle_has_temperature(const unicon__loss_params *params) {
  return oracle_is_exponential(params) ||
         (oracle_has_directions(params) && (family(params).psi == UNICON__PSI_SOFTPLUS ||
                                            family(params).psi == UNICON__PSI_SOFTMIN));
}

bool oracle_has_kink(const unicon__loss_params *params) {
  return oracle_has_directions(params) && family(params).psi == UNICON__PSI_HINGE;
}

bool oracle_overflows(const unicon__loss_params *params) {
  return oracle_is_exponential(params) && family(params).phi == UNICON__PHI_IDENTITY;
}

bool oracle_refuses(const unicon__loss_params *params, const oracle_problem *problem) {
  const int psi = family(params).psi;
  return oracle_has_directions(params) && problem->pairs->class_x &&
         (psi == UNICON__PSI_SOFTPLUS || psi == UNICON__PSI_SOFTMIN || psi == UNICON__PSI_CUSTOM);
}

const char *oracle_set_name(int set) {
  static const char *const names[ORACLE_SET_COUNT] = {"one to one",
                                                      "five per x",
                                                      "many to many",
                                                      "weights",
                                                      "weights and ignored",
                                                      "explicit negatives",
                                                      "labels",
                                                      "labels and ignored",
                                                      "labels and explicit negatives",
                                                      "more x than y",
                                                      "mostly positives",
                                                      "ignored in part",
                                                      "negatives in part",
                                                      "one set",
                                                      "one set, ignored in part",
                                                      "one set, negatives in part"};
  return names[set];
}

enum { STREAM_PAIRS = 101, STREAM_EXTRA, STREAM_WEIGHT, STREAM_ROWS, STREAM_PART };

static bool chance(uint32_t stream, int i, int j, double p) {
  return unicon__uniform(7, stream, (uint64_t)i, (uint32_t)j) < p;
}

/* Row 1 and column 2 have no partner; row 0 has several. Weights are multiples of 1/8 (exact in
 * float32), some 0; those of row 3 are all 0. */
static void draw_many(oracle_problem *problem, double density, bool weighted) {
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) {
      const double u = unicon__uniform(7, STREAM_WEIGHT, (uint64_t)i, (uint32_t)j);
      problem->positive[i][j] = i != 1 && j != 2 &&
                                (chance(STREAM_PAIRS, i, j, density) ||
                                 j == (3 * i) % problem->n_y || (i == 0 && (j == 1 || j == 5)));
      if (weighted) problem->weight.at[i][j] = i == 3 || u < 0.1 ? 0 : ceil(16 * u) / 8;
    }
}

/* Label 13 occurs once: that row has no partner. */
static void draw_one_set(unicon_ctx *ctx, oracle_problem *problem) {
  int64_t label[ORACLE_MOST];
  for (int i = 0; i < problem->n_x; i++) label[i] = i == 4 ? 13 : (7 * i + i / 3) % 3 + 10;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_x; j++) problem->positive[i][j] = i != j && label[i] == label[j];
  assert_int_equal(unicon_pairs_one_set(ctx, label, problem->n_x, &problem->pairs), UNICON_OK);
}

static void draw_labels(unicon_ctx *ctx, oracle_problem *problem) {
  int64_t x[ORACLE_MOST], y[ORACLE_MOST];
  for (int i = 0; i < problem->n_x; i++) x[i] = (7 * i + i / 3) % 5 + 10; /* 14 is not in y */
  for (int j = 0; j < problem->n_y; j++) y[j] = (5 * j + j / 4) % 4 + 10;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) problem->positive[i][j] = x[i] == y[j];
  assert_int_equal(unicon_pairs_labels(ctx, x, problem->n_x, y, problem->n_y, &problem->pairs),
                   UNICON_OK);
}

void oracle_attach(unicon_ctx *ctx, bool listed, oracle_problem *problem) {
  int64_t at[3][2][ORACLE_MOST * ORACLE_MOST], count[3] = {0}; /* positive, negative, ignored */
  double weight[3][ORACLE_MOST * ORACLE_MOST];
  bool weighted = false, parts = false;
  const bool one_set = problem->pairs && problem->pairs->self_x;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) {
      const double epsilon = problem->epsilon.at[i][j];
      const bool negative = listed ? epsilon > 0 : epsilon == 1;
      const int set = problem->positive[i][j] ? 0 : negative ? 1 : 2;
      if (one_set && i == j) continue;
      if (set == 0 && problem->weight.at[i][j] != 1) weighted = true;
      if (set != 0 && epsilon != 0 && epsilon != 1) parts = true;
      weight[set][count[set]] = set == 0 ? problem->weight.at[i][j] : epsilon;
      at[set][0][count[set]] = i;
      at[set][1][count[set]++] = j;
    }
  if (!problem->pairs)
    assert_int_equal(unicon_pairs_list(ctx, problem->n_x, problem->n_y, at[0][0], at[0][1],
                                       weighted ? weight[0] : NULL, count[0], &problem->pairs),
                     UNICON_OK);
  if (listed)
    assert_int_equal(unicon_pairs_set_negatives(ctx, problem->pairs, at[1][0], at[1][1],
                                                parts ? weight[1] : NULL, count[1]),
                     UNICON_OK);
  else if (count[2] > 0)
    assert_int_equal(unicon_pairs_set_ignored(ctx, problem->pairs, at[2][0], at[2][1],
                                              parts ? weight[2] : NULL, count[2]),
                     UNICON_OK);
}

static void choose_size(int set, bool small, oracle_problem *out) {
  static const int sizes[ORACLE_SET_COUNT][2][2] = {
      [ORACLE_ONE_TO_ONE] = {{23, 23}, {9, 9}},
      [ORACLE_FIVE_PER_X] = {{8, 40}, {3, 15}},
      [ORACLE_MANY] = {{19, 27}, {9, 11}},
      [ORACLE_WEIGHTED] = {{19, 27}, {9, 11}},
      [ORACLE_IGNORED] = {{19, 27}, {9, 11}},
      [ORACLE_NEGATIVES] = {{19, 27}, {9, 11}},
      [ORACLE_LABELS] = {{24, 31}, {11, 8}},
      [ORACLE_LABELS_IGNORED] = {{24, 31}, {11, 8}},
      [ORACLE_LABELS_NEGATIVES] = {{24, 31}, {11, 8}},
      [ORACLE_TALL] = {{33, 13}, {12, 7}},
      [ORACLE_DENSE] = {{40, 37}, {8, 9}},
      [ORACLE_PART_IGNORED] = {{19, 27}, {9, 11}},
      [ORACLE_PART_NEGATIVES] = {{19, 27}, {9, 11}},
      [ORACLE_ONE_SET] = {{26, 26}, {10, 10}},
      [ORACLE_ONE_SET_IGNORED] = {{26, 26}, {10, 10}},
      [ORACLE_ONE_SET_NEGATIVES] = {{26, 26}, {10, 10}}};
  out->n_x = sizes[set][small][0];
  out->n_y = sizes[set][small][1];
}

void oracle_open(unicon_ctx *ctx, int set, bool small, oracle_problem *out) {
  memset(out, 0, sizeof *out);
  choose_size(set, small, out);
  for (int i = 0; i < ORACLE_MOST; i++)
    for (int j = 0; j < ORACLE_MOST; j++) out->weight.at[i][j] = 1;
  const bool one_set = set >= ORACLE_ONE_SET && set <= ORACLE_ONE_SET_NEGATIVES;
  const bool ignores = set == ORACLE_IGNORED || set == ORACLE_LABELS_IGNORED ||
                       set == ORACLE_PART_IGNORED || set == ORACLE_ONE_SET_IGNORED;
  const bool listed = set == ORACLE_NEGATIVES || set == ORACLE_LABELS_NEGATIVES ||
                      set == ORACLE_PART_NEGATIVES || set == ORACLE_ONE_SET_NEGATIVES;
  const bool parts = set == ORACLE_PART_IGNORED || set == ORACLE_PART_NEGATIVES ||
                     set == ORACLE_ONE_SET_IGNORED || set == ORACLE_ONE_SET_NEGATIVES;
  if (set == ORACLE_ONE_TO_ONE || set == ORACLE_FIVE_PER_X) {
    for (int j = 0; j < out->n_y; j++)
      out->positive[set == ORACLE_ONE_TO_ONE ? j : j / 5][j] = true;
  } else if (set == ORACLE_LABELS || set == ORACLE_LABELS_IGNORED ||
             set == ORACLE_LABELS_NEGATIVES) {
    draw_labels(ctx, out);
  } else if (one_set) {
    draw_one_set(ctx, out);
  } else {
    draw_many(out, set == ORACLE_DENSE ? 0.6 : 0.12,
              set == ORACLE_WEIGHTED || set == ORACLE_IGNORED);
  }
  for (int i = 0; i < out->n_x; i++)
    for (int j = 0; j < out->n_y; j++) {
      const bool negative = ignores  ? !chance(STREAM_EXTRA, i, j, 0.15)
                            : listed ? chance(STREAM_EXTRA, i, j, 0.4) && i != 2
                                     : true;
      /* a listed or ignored pair counts 1/8 to 7/8 here, some ignored ones 0 */
      const double part = ceil(7 * unicon__uniform(7, STREAM_PART, (uint64_t)i, (uint32_t)j)) / 8;
      const bool own = out->positive[i][j] || (one_set && i == j);
      out->epsilon.at[i][j] = own                             ? 0
                              : parts && listed && negative   ? part
                              : parts && ignores && !negative ? (part < 0.2 ? 0 : part)
                                                              : negative;
    }
  oracle_attach(ctx, listed, out);
}

void oracle_close(oracle_problem *problem) {
  unicon_pairs_destroy(problem->pairs);
  problem->pairs = NULL;
}

/* ---- the library on a small plane --------------------------------------------------------- */

void oracle_rows_draw(uint64_t seed, int n, int r, bool grid, oracle_rows *out) {
  out->n = n;
  out->r = r;
  for (int i = 0; i < n; i++) {
    float *z = out->z + i * r;
    double norm = 0;
    unicon__normals(seed, STREAM_ROWS, (uint64_t)i, r, z);
    for (int k = 0; k < r; k++) norm += (double)z[k] * (double)z[k];
    for (int k = 0; k < r; k++) {
      const double value = (double)z[k] / sqrt(norm);
      z[k] = (float)(grid ? nearbyint(value * 256) / 256 : value);
    }
  }
}

void oracle_rows_direct(const oracle_problem *problem, const oracle_matrix *s, oracle_rows *x,
                        oracle_rows *y) {
  const int r = problem->n_x;
  memset(x->z, 0, sizeof x->z);
  x->n = x->r = y->r = r;
  y->n = problem->n_y;
  for (int i = 0; i < r; i++) x->z[i * r + i] = 1;
  for (int j = 0; j < problem->n_y; j++)
    for (int i = 0; i < r; i++) y->z[j * r + i] = (float)s->at[i][j];
}

void oracle_scores(const oracle_rows *x, const oracle_rows *y, oracle_matrix *s) {
  memset(s, 0, sizeof *s);
  for (int i = 0; i < x->n; i++)
    for (int j = 0; j < y->n; j++) {
      for (int k = 0; k < x->r; k++)
        s->at[i][j] += (double)x->z[i * x->r + k] * (double)y->z[j * y->r + k];
      s->at[i][j] = (double)(float)s->at[i][j];
    }
}

static void keep_tile(void *state, const unicon__tile *tile, int slot) {
  oracle_matrix *s = state;
  (void)slot;
  for (int64_t i = 0; i < tile->nx; i++)
    for (int64_t j = 0; j < tile->ny; j++)
      s->at[tile->x0 + i][tile->y0 + j] = (double)tile->s[i * tile->ld + j];
}

static unicon_status library(unicon_ctx *ctx, const unicon__loss_params *params,
                             const unicon__plane *plane, double *value, oracle_matrix *s) {
  unicon__loss loss;
  UNICON_TRY(unicon__loss_begin(ctx, params, plane, &loss));
  UNICON_TRY(unicon__pass_observe(ctx, &loss));
  *value = loss.value;
  memset(s, 0, sizeof *s);
  return unicon__pass_weights(ctx, &loss, &(unicon__consumer){s, keep_tile, NULL, NULL});
}

unicon_status oracle_library(unicon_ctx *ctx, const unicon__loss_params *params,
                             const oracle_problem *problem, const oracle_rows *x,
                             const oracle_rows *y, double *value, oracle_matrix *s) {
  unicon__plane plane;
  UNICON_TRY(unicon__enter(ctx));
  unicon__plane_init(&plane, problem->pairs, x->r, x->z, y->z);
  return unicon__leave(ctx, library(ctx, params, &plane, value, s));
}

double oracle_distance(const oracle_problem *problem, const oracle_matrix *a,
                       const oracle_matrix *b) {
  double most = 0;
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) {
      const double d = fabs(a->at[i][j] - (b ? b->at[i][j] : 0));
      if (!(d <= most)) most = d; /* keeps a NaN */
      if (isnan(d)) return d;
    }
  return most;
}

double oracle_largest(const oracle_problem *problem, const oracle_matrix *m) {
  return oracle_distance(problem, m, NULL);
}
