/* SPDX-License-Identifier: Apache-2.0 */
/* Every loss on every kind of pairs: the reference against differences of itself (T1 of
 * docs/method.md section 7), the library against the reference (T2).
 *
 * Tolerances
 *   differences  rel 1e-6. Steps of 1e-3 tau leave (nu h / tau)^2 / 6, below 7e-7 for nu <= 2;
 * those of 1e-5 for losses without temperature leave rounding, 1e-16 L / 1e-5. Relative to the
 * largest |S|. library S    rel 1e-5 max(1, .1/tau), of the largest |S|: float32 exponents s/tau of
 * up to 1/tau carry errors of 6e-8/tau, and up to 40 terms are summed. library L    the same of
 * max(|L|, .01): L averages differences of scores near 1, and is small only where they cancel.
 *   threads      none: the same bytes. Tile sizes may change the order of sums, so: as above. */
#include "scratch.h"

#include <math.h>

#include "loss/pass.h"
#include "oracle.h"

static const double temperatures[] = {1, 0.3, 0.1, 0.05, 0.02, 0.01};
enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };

static double float_tolerance(const unicon__loss_params *params) {
  const bool hot = oracle_has_temperature(params);
  return 1e-5 * (hot && params->temperature < 0.1 ? 0.1 / params->temperature : 1);
}

static void expect_below(double found, double bound, const char *what, const char *name, int set,
                         double temperature) {
  if (!(found <= bound))
    print_error("%s: %s on %s at temperature %g: %g, at most %g\n", what, name,
                oracle_set_name(set), temperature, found, bound);
  assert_true(found <= bound);
}

/* ---- T1 ----------------------------------------------------------------------------------- */

static void differences(const unicon__loss_params *params, const oracle_problem *problem,
                        oracle_matrix *s, double h, oracle_matrix *out) {
  for (int i = 0; i < problem->n_x; i++)
    for (int j = 0; j < problem->n_y; j++) {
      const double held = s->at[i][j];
      s->at[i][j] = held + h;
      const double high = oracle_loss(params, problem, s);
      s->at[i][j] = held - h;
      out->at[i][j] = -(high - oracle_loss(params, problem, s)) / (2 * h);
      s->at[i][j] = held;
    }
}

static void check_differences(const oracle_case *c, int set, const oracle_problem *problem,
                              double temperature) {
  unicon__loss_params params = c->params;
  oracle_rows x, y;
  oracle_matrix s, weights, slopes;
  params.temperature = temperature;
  oracle_rows_draw(11, problem->n_x, 8, true, &x);
  oracle_rows_draw(12, problem->n_y, 8, true, &y);
  oracle_scores(&x, &y, &s);
  oracle_weights(&params, problem, &s, &weights);
  differences(&params, problem, &s, oracle_has_temperature(&params) ? 1e-3 * temperature : 1e-5,
              &slopes);
  const double scale = oracle_largest(problem, &weights);
  assert_true(scale > 0);
  expect_below(oracle_distance(problem, &weights, &slopes), 1e-6 * scale, "S and differences",
               c->name, set, temperature);
}

static void reference_is_a_gradient(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++) {
    oracle_problem problem;
    oracle_open(k->ctx, set, true, &problem);
    for (int c = 0; c < oracle_case_count; c++) {
      const bool hot = oracle_has_temperature(&oracle_cases[c].params);
      check_differences(&oracle_cases[c], set, &problem, 1);
      if (hot) check_differences(&oracle_cases[c], set, &problem, 0.3);
      if (hot) check_differences(&oracle_cases[c], set, &problem, 0.05);
    }
    oracle_close(&problem);
  }
}

/* ---- T2 ----------------------------------------------------------------------------------- */

/* A problem with its embeddings and scores. */
typedef struct fixture {
  int set;
  oracle_problem problem;
  oracle_rows x, y;
  oracle_matrix s;
} fixture;

/* The dot product of spectral has rows of any length, so twice as long ones. */
static void fixture_open(unicon_ctx *ctx, int set, bool grid, bool cosine, fixture *f) {
  f->set = set;
  oracle_open(ctx, set, false, &f->problem);
  oracle_rows_draw(21, f->problem.n_x, 8, grid, &f->x);
  oracle_rows_draw(22, f->problem.n_y, 8, grid, &f->y);
  for (int k = 0; k < f->x.n * f->x.r && !cosine; k++) f->x.z[k] *= 2;
  oracle_scores(&f->x, &f->y, &f->s);
}

static void expect_library(unicon_ctx *ctx, const oracle_case *c, const unicon__loss_params *params,
                           const fixture *f) {
  double value = 0;
  oracle_matrix got, want;
  const unicon_status status = oracle_library(ctx, params, &f->problem, &f->x, &f->y, &value, &got);
  if (status != UNICON_OK) print_error("%s: %s\n", c->name, unicon_ctx_error(ctx));
  assert_int_equal(status, UNICON_OK);
  oracle_weights(params, &f->problem, &f->s, &want);
  const double tolerance = float_tolerance(params), t = params->temperature;
  const double loss = oracle_loss(params, &f->problem, &f->s);
  expect_below(oracle_distance(&f->problem, &got, &want),
               tolerance * oracle_largest(&f->problem, &want), "S", c->name, f->set, t);
  expect_below(fabs(value - loss), tolerance * fmax(fabs(loss), 0.01), "L", c->name, f->set, t);
}

/* phi = identity on e^(s/tau) leaves float32 below .05: e^(2/.02) is above its largest number. */
static bool too_cold(const unicon__loss_params *params) {
  return oracle_overflows(params) && params->temperature < 0.05;
}

static void at_temperatures(unicon_ctx *ctx, const oracle_case *c, int set, bool grid) {
  fixture f;
  unicon__loss_params params = c->params;
  fixture_open(ctx, set, grid, params.kind != UNICON__LOSS_SPECTRAL, &f);
  const int last = oracle_has_temperature(&params) ? TEMPERATURES : 1;
  for (int t = 0; t < last; t++) {
    params.temperature = temperatures[t];
    if (!too_cold(&params) && !oracle_refuses(&params, &f.problem))
      expect_library(ctx, c, &params, &f);
  }
  oracle_close(&f.problem);
}

static void library_is_the_reference(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++)
    for (int c = 0; c < oracle_case_count; c++)
      at_temperatures(k->ctx, &oracle_cases[c], set, true);
}

/* The same with scores that float32 rounds, as it does in use; a rounded score moves S by 6e-8/tau.
 * Hinges are left out: a score may land on the other side of a kink. */
static void rounded_scores(void **state) {
  scratch *k = *state;
  for (int set = 0; set < ORACLE_SET_COUNT; set++)
    for (int c = 0; c < oracle_case_count; c++)
      if (!oracle_has_kink(&oracle_cases[c].params))
        at_temperatures(k->ctx, &oracle_cases[c], set, false);
}

/* ---- tiles and threads -------------------------------------------------------------------- */

static void expect_same_bytes(unicon_ctx *ctx, const oracle_case *c,
                              const unicon__loss_params *params, const fixture *f) {
  double first = 0, other = 0;
  oracle_matrix first_s, other_s;
  for (int threads = 1; threads <= 3; threads++) {
    unicon__ctx_set_threads(ctx, threads);
    assert_int_equal(
        oracle_library(ctx, params, &f->problem, &f->x, &f->y, threads == 1 ? &first : &other,
                       threads == 1 ? &first_s : &other_s),
        UNICON_OK);
    if (threads == 1) continue;
    if (memcmp(&first, &other, sizeof first) || memcmp(&first_s, &other_s, sizeof first_s))
      print_error("%s on %s: %d threads change the result\n", c->name, oracle_set_name(f->set),
                  threads);
    assert_memory_equal(&first, &other, sizeof first);
    assert_memory_equal(&first_s, &other_s, sizeof first_s);
  }
}

/* At one tile size: the same bytes for 1, 2 and 3 threads, and the reference's numbers. */
static void with_tiles(scratch *k, int64_t tile_x, int64_t tile_y) {
  k->ctx->tile_x = tile_x;
  k->ctx->tile_y = tile_y;
  for (int set = 0; set < ORACLE_SET_COUNT; set++)
    for (int c = 0; c < oracle_case_count; c++) {
      fixture f;
      unicon__loss_params params = oracle_cases[c].params;
      params.temperature = 0.1;
      fixture_open(k->ctx, set, true, params.kind != UNICON__LOSS_SPECTRAL, &f);
      if (!oracle_refuses(&params, &f.problem)) {
        expect_same_bytes(k->ctx, &oracle_cases[c], &params, &f);
        expect_library(k->ctx, &oracle_cases[c], &params, &f);
      }
      oracle_close(&f.problem);
    }
}

static void default_tiles(void **state) {
  scratch *k = *state;
  with_tiles(k, k->ctx->tile_x, k->ctx->tile_y);
}

static void tiles_of_3(void **state) {
  with_tiles(*state, 3, 3);
}

static void tiles_of_5(void **state) {
  with_tiles(*state, 5, 5);
}

static void tiles_of_16(void **state) {
  with_tiles(*state, 16, 16);
}

static void tiles_of_64(void **state) {
  with_tiles(*state, 64, 64);
}

static void oblong_tiles(void **state) {
  with_tiles(*state, 5, 16);
  with_tiles(*state, 16, 3);
}

/* From 128 tiles on a cell has several, side by side. */
static void cells_of_several_tiles(void **state) {
  with_tiles(*state, 2, 2);
  with_tiles(*state, 1, 2);
  with_tiles(*state, 1, 1);
}

/* One context, one loss after another: nothing is left behind in a pool or a slot. */
static void order_does_not_matter(void **state) {
  scratch *k = *state;
  fixture f;
  double first, again;
  oracle_matrix first_s, again_s;
  unicon__loss_params clip = {.kind = UNICON__LOSS_CLIP, .temperature = 0.1};
  k->ctx->tile_x = k->ctx->tile_y = 5;
  fixture_open(k->ctx, ORACLE_IGNORED, true, true, &f);
  assert_int_equal(oracle_library(k->ctx, &clip, &f.problem, &f.x, &f.y, &first, &first_s),
                   UNICON_OK);
  for (int c = 0; c < oracle_case_count; c++) {
    unicon__loss_params params = oracle_cases[c].params;
    params.temperature = 1;
    assert_int_equal(oracle_library(k->ctx, &params, &f.problem, &f.x, &f.y, &again, &again_s),
                     UNICON_OK);
  }
  assert_int_equal(oracle_library(k->ctx, &clip, &f.problem, &f.x, &f.y, &again, &again_s),
                   UNICON_OK);
  assert_memory_equal(&first, &again, sizeof first);
  assert_memory_equal(&first_s, &again_s, sizeof first_s);
  oracle_close(&f.problem);
}

/* ---- more rows than a block or a tile ----------------------------------------------------- */

enum { LARGE = 1100, LARGE_R = 8 };

typedef struct large {
  float *z[2], *got;
  double *s;
} large;

static void keep_tile(void *state, const unicon__tile *tile, int slot) {
  large *l = state;
  (void)slot;
  for (int64_t i = 0; i < tile->nx; i++)
    memcpy(l->got + (tile->x0 + i) * LARGE + tile->y0, tile->s + i * tile->ld,
           (size_t)tile->ny * sizeof *l->got);
}

/* One-to-one, dS = psi'(s_ij - s_ii) phi' of row i on negatives, written for clip and triplet; adds
 * half of S^x (x true) or S^y and returns L of that direction. */
static double large_direction(const large *l, const unicon__loss_params *params, bool x,
                              double *out) {
  const bool clip = params->kind == UNICON__LOSS_CLIP;
  double value = 0;
  for (int64_t i = 0; i < LARGE; i++) {
    double sum = clip ? 1 : 0, pull = 0;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t j = 0; j < LARGE; j++) {
        const int64_t at = x ? i * LARGE + j : j * LARGE + i;
        const double gap = l->s[at] - l->s[i * LARGE + i];
        if (i == j) continue;
        if (pass == 0) sum += clip ? exp(gap / params->temperature) : fmax(gap + params->margin, 0);
        const double part = clip                       ? exp(gap / params->temperature) / sum
                            : gap + params->margin > 0 ? 1
                                                       : 0;
        if (pass == 1) out[at] -= part / (2 * LARGE);
        if (pass == 1) pull += part / (2 * LARGE);
      }
    out[i * LARGE + i] += pull;
    value += (clip ? params->temperature * log(sum) : sum) / LARGE;
  }
  return value;
}

static void expect_large(scratch *k, large *l, const unicon_pairs *pairs,
                         const unicon__loss_params *params) {
  double *want = calloc((size_t)LARGE * LARGE, sizeof *want), worst = 0, scale = 0;
  assert_non_null(want);
  const double value =
      (large_direction(l, params, true, want) + large_direction(l, params, false, want)) / 2;
  unicon__plane plane;
  unicon__loss loss;
  assert_int_equal(unicon__enter(k->ctx), UNICON_OK);
  unicon__plane_init(&plane, pairs, LARGE_R, l->z[0], l->z[1]);
  assert_int_equal(unicon__loss_begin(k->ctx, params, &plane, &loss), UNICON_OK);
  assert_int_equal(unicon__pass_observe(k->ctx, &loss), UNICON_OK);
  assert_int_equal(
      unicon__pass_weights(k->ctx, &loss, &(unicon__consumer){l, keep_tile, NULL, NULL}),
      UNICON_OK);
  for (int64_t at = 0; at < (int64_t)LARGE * LARGE; at++) {
    worst = fmax(worst, fabs((double)l->got[at] - want[at]));
    scale = fmax(scale, fabs(want[at]));
    assert_true(l->got[at] == l->got[at]); /* no NaN */
  }
  assert_true(worst <= float_tolerance(params) * scale);
  assert_true(fabs(loss.value - value) <= float_tolerance(params) * value);
  assert_int_equal(unicon__leave(k->ctx, UNICON_OK), UNICON_OK);
  free(want);
}

static void large_plane(void **state) {
  scratch *k = *state;
  large l = {.got = malloc(sizeof *l.got * LARGE * LARGE),
             .s = malloc(sizeof *l.s * LARGE * LARGE)};
  unicon_pairs *pairs;
  for (int side = 0; side < 2; side++) {
    l.z[side] = malloc(sizeof *l.z[side] * LARGE * LARGE_R);
    for (int i = 0; i < LARGE; i++) {
      oracle_rows row;
      oracle_rows_draw((uint64_t)(1000 + side * LARGE + i), 1, LARGE_R, true, &row);
      memcpy(l.z[side] + i * LARGE_R, row.z, LARGE_R * sizeof *row.z);
    }
  }
  for (int64_t at = 0; at < (int64_t)LARGE * LARGE; at++) {
    l.s[at] = 0;
    for (int c = 0; c < LARGE_R; c++)
      l.s[at] += (double)(l.z[0][at / LARGE * LARGE_R + c] * l.z[1][at % LARGE * LARGE_R + c]);
  }
  assert_int_equal(unicon_pairs_identity(k->ctx, LARGE, LARGE, &pairs), UNICON_OK);
  unicon__ctx_set_threads(k->ctx, 2);
  const unicon__loss_params clip = {.kind = UNICON__LOSS_CLIP, .temperature = 0.1};
  const unicon__loss_params cold = {.kind = UNICON__LOSS_CLIP, .temperature = 0.02};
  const unicon__loss_params triplet = {.kind = UNICON__LOSS_TRIPLET, .margin = 0.2};
  expect_large(k, &l, pairs, &clip);
  expect_large(k, &l, pairs, &cold);
  expect_large(k, &l, pairs, &triplet);
  unicon_pairs_destroy(pairs);
  free(l.z[0]), free(l.z[1]), free(l.got), free(l.s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(reference_is_a_gradient),
      SCRATCH_TEST(library_is_the_reference),
      SCRATCH_TEST(rounded_scores),
      SCRATCH_TEST(default_tiles),
      SCRATCH_TEST(tiles_of_3),
      SCRATCH_TEST(tiles_of_5),
      SCRATCH_TEST(tiles_of_16),
      SCRATCH_TEST(tiles_of_64),
      SCRATCH_TEST(oblong_tiles),
      SCRATCH_TEST(cells_of_several_tiles),
      SCRATCH_TEST(order_does_not_matter),
      SCRATCH_TEST(large_plane),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
