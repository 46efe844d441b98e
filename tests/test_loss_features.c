/* SPDX-License-Identifier: Apache-2.0 */
/* From weights to features: C = Phi_x^T S Phi_y, gradients with respect to the encoders, the moment
 * weights, Newton's step (T7, T8, T10, T14, T15 of docs/method.md section 7). Encoders are
 * f(x) = F^T phi(x).
 *
 * Tolerances
 *   reference    gradients rel 1e-6 against central differences with steps of 1e-4 tau (1e-6 for
 *                losses without temperature): what is left is about 1e-8, of the largest entry.
 *   library C    rel 1e-5 max(1, .1/tau) of max over a, b of sum |phi_ia S_ij phi_jb|: C is a sum
 * of n_x n_y products that cancel, each as good as its S. moment       1e-14 for formulas; C
 * against dense sums in float32 1e-6 of the same scale. spectral     1e-10, and rel 1e-5 in
 * float32. */
#include "scratch.h"

#include <math.h>

#include "base/rng.h"
#include "solve/stats.h"
#include "support.h"
#include "loss/pass.h"
#include "linalg/spectral.h"
#include "oracle.h"

enum { P_X = 6, P_Y = 5, RANK = 4, WIDTH = 6 };

/* ---- small dense algebra ------------------------------------------------------------------ */

/* out = a b, a m by k, b k by n; or a^T b with a k by m. */
static void product(bool transposed, int m, int k, int n, const oracle_matrix *a,
                    const oracle_matrix *b, oracle_matrix *out) {
  oracle_matrix c = {{{0}}};
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++)
      for (int j = 0; j < n; j++)
        c.at[i][j] += (transposed ? a->at[l][i] : a->at[i][l]) * b->at[l][j];
  *out = c;
}

static double norm(const oracle_matrix *m, int i, int width) {
  double sum = 0;
  for (int k = 0; k < width; k++) sum += m->at[i][k] * m->at[i][k];
  return sqrt(sum);
}

static double largest(int m, int n, const oracle_matrix *a) {
  return oracle_largest(&(oracle_problem){.n_x = m, .n_y = n}, a);
}

static double distance(int m, int n, const oracle_matrix *a, const oracle_matrix *b) {
  return oracle_distance(&(oracle_problem){.n_x = m, .n_y = n}, a, b);
}

static double float_tolerance(const unicon__loss_params *params) {
  const bool hot = oracle_has_temperature(params);
  return 1e-5 * (hot && params->temperature < 0.1 ? 0.1 / params->temperature : 1);
}

/* ---- features ----------------------------------------------------------------------------- */

/* One side: raw rows, the library's source of them, and their features in double. */
typedef struct side {
  int n, p;
  float data[ORACLE_MOST * WIDTH];
  float mean[WIDTH];
  unicon_rows *rows;
  unicon__source source;
  unicon__map map; /* linear: x/|x| - mean */
  oracle_matrix phi;
} side;

static void side_open(unicon_ctx *ctx, uint64_t seed, int n, int p, bool center, side *out) {
  memset(out, 0, sizeof *out);
  out->n = n;
  out->p = p;
  for (int i = 0; i < n; i++) {
    float *row = out->data + i * p;
    unicon__normals(seed, 201, (uint64_t)i, p, row);
    for (int k = 0; k < p; k++) row[k] += 0.7f; /* so that the mean is not small */
    for (int k = 0; k < p; k++) out->phi.at[i][k] = (double)row[k];
    const double length = norm(&out->phi, i, p);
    for (int k = 0; k < p; k++) out->phi.at[i][k] /= length;
  }
  for (int k = 0; k < p && center; k++) {
    double mean = 0;
    for (int i = 0; i < n; i++) mean += out->phi.at[i][k] / n;
    for (int i = 0; i < n; i++) out->phi.at[i][k] -= mean;
    out->mean[k] = (float)mean;
  }
  const int64_t item = sizeof *out->data;
  assert_int_equal(
      unicon_rows_wrap(ctx, "rows", out->data, UNICON_F32, n, p, p * item, item, &out->rows),
      UNICON_OK);
  out->map = (unicon__map){.in = p, .out = p, .normalize = true, .mean = center ? out->mean : NULL};
  out->source = (unicon__source){.rows = out->rows, .count = n, .map = &out->map};
}

/* Features and encoders of both sides. */
typedef struct model {
  oracle_problem problem;
  side x, y;
  oracle_matrix f_x, f_y; /* p by RANK */
  unicon__block *frame;
} model;

static void model_open(unicon_ctx *ctx, int set, bool small, bool center, model *m) {
  float row[RANK];
  oracle_open(ctx, set, small, &m->problem);
  m->frame = unicon__frame_open(ctx);
  side_open(ctx, 41, m->problem.n_x, P_X, center, &m->x);
  side_open(ctx, 42, m->problem.n_y, P_Y, center, &m->y);
  for (int a = 0; a < P_X + P_Y; a++) {
    unicon__normals(43, 202, (uint64_t)a, RANK, row);
    for (int k = 0; k < RANK; k++)
      (a < P_X ? m->f_x.at[a] : m->f_y.at[a - P_X])[k] = 0.6 * (double)row[k];
  }
}

static void model_close(unicon_ctx *ctx, model *m) {
  unicon_rows_close(m->x.rows);
  unicon_rows_close(m->y.rows);
  unicon__frame_close(ctx, m->frame);
  oracle_close(&m->problem);
}

/* Embeddings Phi F of one side, of length 1 if `unit`. */
static void embed(const side *s, const oracle_matrix *f, bool unit, oracle_matrix *z) {
  product(false, s->n, s->p, RANK, &s->phi, f, z);
  for (int i = 0; i < s->n && unit; i++) {
    const double length = norm(z, i, RANK);
    for (int k = 0; k < RANK; k++) z->at[i][k] /= length;
  }
}

static void model_scores(const model *m, bool unit, oracle_matrix *s) {
  oracle_matrix zx, zy, turned;
  embed(&m->x, &m->f_x, unit, &zx);
  embed(&m->y, &m->f_y, unit, &zy);
  oracle_transpose_matrix(&zy, &turned);
  product(false, m->x.n, RANK, m->y.n, &zx, &turned, s);
}

static void float_rows(const side *s, const oracle_matrix *f, bool unit, oracle_rows *out) {
  oracle_matrix z;
  embed(s, f, unit, &z);
  out->n = s->n;
  out->r = RANK;
  for (int i = 0; i < s->n; i++)
    for (int k = 0; k < RANK; k++) out->z[i * RANK + k] = (float)z.at[i][k];
}

/* C = Phi_x^T S Phi_y, or the sum of the moduli of its terms. */
static void dense_cross(const model *m, const oracle_matrix *s, bool modulus, oracle_matrix *c) {
  oracle_matrix left = m->x.phi, right = m->y.phi, middle = *s;
  for (int i = 0; i < ORACLE_MOST && modulus; i++)
    for (int j = 0; j < ORACLE_MOST; j++) {
      left.at[i][j] = fabs(left.at[i][j]);
      right.at[i][j] = fabs(right.at[i][j]);
      middle.at[i][j] = fabs(middle.at[i][j]);
    }
  product(false, m->x.n, m->y.n, P_Y, &middle, &right, &middle);
  product(true, P_X, m->x.n, P_Y, &left, &middle, c);
}

static void expect_cross(const model *m, const oracle_matrix *s, const double *got,
                         double tolerance, const char *name) {
  oracle_matrix want, scale, c;
  dense_cross(m, s, false, &want);
  dense_cross(m, s, true, &scale);
  for (int a = 0; a < P_X; a++)
    for (int b = 0; b < P_Y; b++) c.at[a][b] = got[a * P_Y + b];
  const double error = distance(P_X, P_Y, &c, &want), bound = tolerance * largest(P_X, P_Y, &scale);
  if (!(error <= bound)) print_error("%s: C is off by %g, at most %g\n", name, error, bound);
  assert_true(error <= bound);
}

/* ---- C of every loss ---------------------------------------------------------------------- */

static void library_cross(unicon_ctx *ctx, const unicon__loss_params *params, const model *m,
                          bool unit, double *c, double *value) {
  unicon__plane plane;
  unicon__loss loss;
  oracle_rows zx, zy;
  float_rows(&m->x, &m->f_x, unit, &zx);
  float_rows(&m->y, &m->f_y, unit, &zy);
  unicon__plane_init(&plane, m->problem.pairs, RANK, zx.z, zy.z);
  assert_int_equal(unicon__loss_begin(ctx, params, &plane, &loss), UNICON_OK);
  if (!loss.ops->pointwise) assert_int_equal(unicon__pass_observe(ctx, &loss), UNICON_OK);
  assert_int_equal(unicon__pass_cross(ctx, &loss, &m->x.source, &m->y.source, c), UNICON_OK);
  *value = loss.value;
}

static void cross_of_case(unicon_ctx *ctx, int set, const oracle_case *c, bool center) {
  model m;
  double got[P_X * P_Y], value;
  oracle_matrix s, w;
  unicon__loss_params params = c->params;
  const bool unit = params.kind != UNICON__LOSS_SPECTRAL;
  params.temperature = 0.1;
  model_open(ctx, set, false, center, &m);
  if (!oracle_refuses(&params, &m.problem)) {
    model_scores(&m, unit, &s);
    oracle_weights(&params, &m.problem, &s, &w);
    library_cross(ctx, &params, &m, unit, got, &value);
    expect_cross(&m, &w, got, float_tolerance(&params), c->name);
    const double loss = oracle_loss(&params, &m.problem, &s);
    assert_true(fabs(value - loss) <= float_tolerance(&params) * fmax(fabs(loss), 0.01));
  }
  model_close(ctx, &m);
}

static void cross_is_dense(void **state) {
  scratch *k = *state;
  static const int64_t tiles[][2] = {{256, 1024}, {5, 7}, {2, 2}};
  for (int t = 0; t < 3; t++) {
    k->ctx->tile_x = tiles[t][0];
    k->ctx->tile_y = tiles[t][1];
    for (int set = 0; set < ORACLE_SET_COUNT; set++)
      for (int c = 0; c < oracle_case_count; c++)
        cross_of_case(k->ctx, set, &oracle_cases[c], set % 2 == 0);
  }
}

/* ---- T7, T8: gradients -------------------------------------------------------------------- */

static double model_loss(const unicon__loss_params *params, const model *m, bool unit) {
  oracle_matrix s;
  model_scores(m, unit, &s);
  return oracle_loss(params, &m->problem, &s);
}

/* -dL/dF of one side by central differences. */
static void differences(const unicon__loss_params *params, model *m, bool x, bool unit,
                        oracle_matrix *out) {
  const double h = oracle_has_temperature(params) ? 1e-4 * params->temperature : 1e-6;
  oracle_matrix *f = x ? &m->f_x : &m->f_y;
  for (int a = 0; a < (x ? P_X : P_Y); a++)
    for (int k = 0; k < RANK; k++) {
      const double held = f->at[a][k];
      f->at[a][k] = held + h;
      const double high = model_loss(params, m, unit);
      f->at[a][k] = held - h;
      out->at[a][k] = -(high - model_loss(params, m, unit)) / (2 * h);
      f->at[a][k] = held;
    }
}

/* -dL/dF = C F_other for the dot product; C~ F_other - T F for cosines, where C~ has
 * S_ij/(|u_i||v_j|) and T = Phi^T diag(t_i / |u_i|^2) Phi, t_i = sum_j S_ij s_ij. `w` and `s` are
 * seen from `own`. */
static void formula(const side *own, const oracle_matrix *f, const side *other,
                    const oracle_matrix *f_other, const oracle_matrix *w, const oracle_matrix *s,
                    bool unit, oracle_matrix *out) {
  oracle_matrix u, v, scaled = *w, t, part;
  embed(own, f, false, &u);
  embed(other, f_other, false, &v);
  for (int i = 0; i < own->n; i++)
    for (int j = 0; j < other->n && unit; j++)
      scaled.at[i][j] /= norm(&u, i, RANK) * norm(&v, j, RANK);
  product(false, own->n, other->n, RANK, &scaled, &v, &part);
  product(true, own->p, own->n, RANK, &own->phi, &part, out);
  if (!unit) return;
  for (int i = 0; i < own->n; i++) {
    double sum = 0;
    for (int j = 0; j < other->n; j++) sum += w->at[i][j] * s->at[i][j];
    for (int k = 0; k < RANK; k++)
      t.at[i][k] = u.at[i][k] * sum / (norm(&u, i, RANK) * norm(&u, i, RANK));
  }
  product(true, own->p, own->n, RANK, &own->phi, &t, &part);
  for (int a = 0; a < own->p; a++)
    for (int k = 0; k < RANK; k++) out->at[a][k] -= part.at[a][k];
}

static void model_formula(const model *m, const oracle_matrix *w, const oracle_matrix *s, bool x,
                          bool unit, oracle_matrix *out) {
  oracle_matrix wt, st;
  oracle_transpose_matrix(w, &wt);
  oracle_transpose_matrix(s, &st);
  if (x)
    formula(&m->x, &m->f_x, &m->y, &m->f_y, w, s, unit, out);
  else
    formula(&m->y, &m->f_y, &m->x, &m->f_x, &wt, &st, unit, out);
}

static double inner(int p, const oracle_matrix *a, const oracle_matrix *b) {
  double sum = 0;
  for (int i = 0; i < p; i++)
    for (int k = 0; k < RANK; k++) sum += a->at[i][k] * b->at[i][k];
  return sum;
}

static void gradient_of_case(unicon_ctx *ctx, int set, const oracle_case *c, bool unit) {
  model m;
  oracle_rows zx, zy;
  oracle_matrix s, w, w32, want, got;
  double value;
  unicon__loss_params params = c->params;
  params.temperature = 0.3;
  model_open(ctx, set, true, true, &m);
  model_scores(&m, unit, &s);
  oracle_weights(&params, &m.problem, &s, &w);
  float_rows(&m.x, &m.f_x, unit, &zx);
  float_rows(&m.y, &m.f_y, unit, &zy);
  const bool refused = oracle_refuses(&params, &m.problem);
  if (!refused)
    assert_int_equal(oracle_library(ctx, &params, &m.problem, &zx, &zy, &value, &w32), UNICON_OK);
  for (int x = 0; x < 2; x++) {
    const int p = x ? P_X : P_Y;
    differences(&params, &m, x, unit, &want);
    model_formula(&m, &w, &s, x, unit, &got);
    const double error = distance(p, RANK, &want, &got), scale = largest(p, RANK, &got);
    if (!(error <= 1e-6 * scale)) print_error("%s: gradient off by %g\n", c->name, error / scale);
    assert_true(error <= 1e-6 * scale);
    if (unit) assert_true(fabs(inner(p, x ? &m.f_x : &m.f_y, &got)) <= 1e-13 * p * RANK * scale);
    if (refused) continue;
    model_formula(&m, &w32, &s, x, unit, &got);
    assert_true(distance(p, RANK, &want, &got) <= 3e-5 * scale); /* 1e-5, and the sums cancel */
  }
  model_close(ctx, &m);
}

static void gradient_of_dot_products(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++)
    for (int c = 0; c < oracle_case_count; c++)
      gradient_of_case(k->ctx, set, &oracle_cases[c], false);
}

static void gradient_of_cosines(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++)
    for (int c = 0; c < oracle_case_count; c++)
      if (oracle_cases[c].params.kind != UNICON__LOSS_SPECTRAL)
        gradient_of_case(k->ctx, set, &oracle_cases[c], true);
}

/* ---- T10: the moment weights -------------------------------------------------------------- */

static bool plain_set(int set) {
  return set == ORACLE_ONE_TO_ONE || set == ORACLE_FIVE_PER_X || set == ORACLE_MANY ||
         set == ORACLE_LABELS || set == ORACLE_TALL;
}

/* W = (D_x^{-1} P / a_x + P D_y^{-1} / a_y) / 2: S(0) without its constants, if nothing is ignored.
 */
static void positive_part(const oracle_problem *p, oracle_matrix *out) {
  oracle_problem other;
  oracle_transpose(p, &other);
  memset(out, 0, sizeof *out);
  for (int i = 0; i < p->n_x; i++)
    for (int j = 0; j < p->n_y; j++)
      if (p->positive[i][j])
        out->at[i][j] = 0.5 / (oracle_row_count(p, i) * oracle_anchors(p)) +
                        0.5 / (oracle_row_count(&other, j) * oracle_anchors(&other));
}

static void moment_of_set(unicon_ctx *ctx, int set, bool center) {
  const unicon__loss_params supcon = {.kind = UNICON__LOSS_SUPCON, .temperature = 1};
  const oracle_matrix zero = {{{0}}};
  model m;
  double got[P_X * P_Y];
  oracle_matrix w, c, constants;
  model_open(ctx, set, false, center, &m);
  oracle_weights(&supcon, &m.problem, &zero, &w);
  /* the maps subtract their means already: nothing is left to subtract */
  static const int64_t all[2] = {P_X, P_Y};
  static const double none[P_X > P_Y ? P_X : P_Y];
  const double *const mean[2] = {none, none};
  const unicon__batch batch = {.x = m.x.source, .y = m.y.source, .pairs = m.problem.pairs};
  const unsigned holds = UNICON__STATS_CROSS | UNICON__STATS_UNPAIRED;
  unicon__stats stats;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &batch, all, holds, &stats));
  CHECK_OK(ctx, unicon__stats_add(ctx, &batch, 1, &stats));
  CHECK_OK(ctx, unicon__stats_cross(ctx, &stats, mean, got));
  unicon__frame_close(ctx, frame);
  expect_cross(&m, &w, got, 1e-6, oracle_set_name(set));
  if (center && plain_set(set)) {
    dense_cross(&m, &w, false, &c);
    positive_part(&m.problem, &w);
    dense_cross(&m, &w, false, &constants);
    assert_true(distance(P_X, P_Y, &c, &constants) <= 1e-14);
  }
  model_close(ctx, &m);
}

static void moment_is_dense(void **state) {
  scratch *k = *state;
  for (int tiles = 0; tiles < 2; tiles++) {
    for (int set = 0; set < ORACLE_SET_COUNT; set++) {
      moment_of_set(k->ctx, set, true);
      moment_of_set(k->ctx, set, false);
    }
    k->ctx->tile_x = k->ctx->tile_y = 3;
    unicon__ctx_set_threads(k->ctx, 3);
  }
}

/* ---- T14: the Hessian at 0 ---------------------------------------------------------------- */

/* Phi^T Phi / n. */
static void second_moment(const side *s, oracle_matrix *out) {
  product(true, s->p, s->n, s->p, &s->phi, &s->phi, out);
  for (int a = 0; a < s->p; a++)
    for (int b = 0; b < s->p; b++) out->at[a][b] /= s->n;
}

/* C at s = Phi_x (h Delta) Phi_y^T. */
static void cross_along(const unicon__loss_params *params, const model *m,
                        const oracle_matrix *delta, double h, oracle_matrix *c) {
  oracle_matrix s, turned, w;
  oracle_transpose_matrix(&m->y.phi, &turned);
  product(false, m->x.n, P_X, P_Y, &m->x.phi, delta, &s);
  product(false, m->x.n, P_Y, m->y.n, &s, &turned, &s);
  for (int i = 0; i < m->x.n; i++)
    for (int j = 0; j < m->y.n; j++) s.at[i][j] *= h;
  oracle_weights(params, &m->problem, &s, &w);
  dense_cross(m, &w, false, c);
}

/* The Hessian maps Delta to Sigma_x Delta Sigma_y / tau. */
static void expect_hessian(const unicon__loss_params *params, const model *m) {
  const double h = 1e-3 * params->temperature;
  oracle_matrix delta, sigma_x, sigma_y, want, high, low;
  for (int a = 0; a < P_X; a++)
    for (int b = 0; b < P_Y; b++)
      delta.at[a][b] = unicon__uniform(51, 203, (uint64_t)a, (uint32_t)b) - 0.5;
  second_moment(&m->x, &sigma_x);
  second_moment(&m->y, &sigma_y);
  product(false, P_X, P_X, P_Y, &sigma_x, &delta, &want);
  product(false, P_X, P_Y, P_Y, &want, &sigma_y, &want);
  cross_along(params, m, &delta, h, &high);
  cross_along(params, m, &delta, -h, &low);
  for (int a = 0; a < P_X; a++)
    for (int b = 0; b < P_Y; b++) {
      want.at[a][b] /= params->temperature;
      high.at[a][b] = -(high.at[a][b] - low.at[a][b]) / (2 * h);
    }
  assert_true(distance(P_X, P_Y, &high, &want) <= 1e-6 * largest(P_X, P_Y, &want));
}

static void hessian_at_zero(void **state) {
  scratch *k = *state;
  const unicon__loss_params clip = {.kind = UNICON__LOSS_CLIP, .temperature = 0.1};
  const unicon__loss_params supcon = {.kind = UNICON__LOSS_SUPCON, .temperature = 0.1};
  static const int sets[] = {ORACLE_ONE_TO_ONE, ORACLE_FIVE_PER_X, ORACLE_MANY};
  for (int t = 0; t < 3; t++) {
    model m;
    model_open(k->ctx, sets[t], false, true, &m);
    oracle_problem *p = &m.problem;
    for (int i = 0; i < p->n_x && t == 2; i++) /* gives every row and column a partner */
      for (int j = 0; j < p->n_y; j++) {
        p->positive[i][j] |= j % p->n_x == i;
        p->epsilon.at[i][j] = !p->positive[i][j];
      }
    if (t == 0) expect_hessian(&clip, &m);
    expect_hessian(&supcon, &m);
    model_close(k->ctx, &m);
  }
}

/* ---- T15: spectral is solved in one step -------------------------------------------------- */

/* Lower L with L L^T = Phi^T Phi / n. */
static void cholesky(const side *s, oracle_matrix *l) {
  oracle_matrix moment;
  second_moment(s, &moment);
  memset(l, 0, sizeof *l);
  for (int a = 0; a < s->p; a++)
    for (int b = 0; b <= a; b++) {
      double rest = moment.at[a][b];
      for (int c = 0; c < b; c++) rest -= l->at[a][c] * l->at[b][c];
      l->at[a][b] = a == b ? sqrt(rest) : rest / l->at[b][b];
    }
}

/* m (p by n) = L^{-1} m, or L^{-T} m. */
static void solve(const oracle_matrix *l, bool transposed, int p, int n, oracle_matrix *m) {
  for (int step = 0; step < p; step++) {
    const int a = transposed ? p - 1 - step : step;
    for (int j = 0; j < n; j++) {
      for (int c = transposed ? a + 1 : 0; c < (transposed ? p : a); c++)
        m->at[a][j] -= (transposed ? l->at[c][a] : l->at[a][c]) * m->at[c][j];
      m->at[a][j] /= l->at[a][a];
    }
  }
}

/* F = L^{-T} U sqrt(sigma). */
static void factor(const oracle_matrix *l, int p, const double *u, const double *sigma,
                   oracle_matrix *f) {
  for (int a = 0; a < p; a++)
    for (int k = 0; k < RANK; k++) f->at[a][k] = u[a * RANK + k] * sqrt(sigma[k]);
  solve(l, true, p, RANK, f);
}

/* The whitened step from s = 0: half of C(0) = 2 Phi_x^T (w / sum w) Phi_y. Gives -sum sigma^2. */
static double solve_spectral(unicon_ctx *ctx, const unicon__loss_params *params, model *m) {
  const oracle_matrix zero = {{{0}}};
  oracle_matrix w, c, turned, l_x, l_y;
  unicon__svd svd;
  double whitened[P_X * P_Y], sum = 0;
  oracle_weights(params, &m->problem, &zero, &w);
  dense_cross(m, &w, false, &c);
  cholesky(&m->x, &l_x);
  cholesky(&m->y, &l_y);
  solve(&l_x, false, P_X, P_Y, &c);
  oracle_transpose_matrix(&c, &turned);
  solve(&l_y, false, P_Y, P_X, &turned);
  for (int a = 0; a < P_X; a++)
    for (int b = 0; b < P_Y; b++) whitened[a * P_Y + b] = turned.at[b][a] / 2;
  assert_int_equal(unicon__svd_top(ctx, whitened, P_X, P_Y, RANK, UNICON__SVD_DENSE, 0, &svd),
                   UNICON_OK);
  factor(&l_x, P_X, svd.u, svd.s, &m->f_x);
  factor(&l_y, P_Y, svd.v, svd.s, &m->f_y);
  for (int k = 0; k < RANK; k++) sum -= svd.s[k] * svd.s[k];
  return sum;
}

static void spectral_in_one_step(void **state) {
  scratch *k = *state;
  const unicon__loss_params params = {.kind = UNICON__LOSS_SPECTRAL};
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    model m;
    oracle_matrix s, w, slope;
    double c[P_X * P_Y], value;
    if (!plain_set(set) && set != ORACLE_WEIGHTED) continue; /* every pair must count in e */
    model_open(k->ctx, set, false, false, &m);
    const double least = solve_spectral(k->ctx, &params, &m);
    model_scores(&m, false, &s);
    assert_true(fabs(oracle_loss(&params, &m.problem, &s) - least) <= 1e-10 * fabs(least));
    oracle_weights(&params, &m.problem, &s, &w);
    model_formula(&m, &w, &s, true, false, &slope);
    assert_true(largest(P_X, RANK, &slope) <= 1e-10 * largest(P_X, RANK, &m.f_x));
    model_formula(&m, &w, &s, false, false, &slope);
    assert_true(largest(P_Y, RANK, &slope) <= 1e-10 * largest(P_Y, RANK, &m.f_y));
    library_cross(k->ctx, &params, &m, false, c, &value);
    assert_true(fabs(value - least) <= 1e-5 * fabs(least));
    model_close(k->ctx, &m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(cross_is_dense),      SCRATCH_TEST(gradient_of_dot_products),
      SCRATCH_TEST(gradient_of_cosines), SCRATCH_TEST(moment_is_dense),
      SCRATCH_TEST(hessian_at_zero),     SCRATCH_TEST(spectral_in_one_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
