/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_weights against the double oracle of the losses, for every loss and set of pairs. */
#include "oracle.h"
#include "support.h"

enum { DIMS = 6 };

static const char *const words[] = {"clip",   "infonce", "general",  "triplet",
                                    "supcon", "siglip",  "spectral", "moment"};

/* Options that say what the case's parameters say. */
static unicon_options *options_of(unicon_ctx *ctx, const char *loss) {
  return support_options(ctx, "loss", loss, "temperature", "0.3", NULL);
}

/* The oracle knows moment as supcon at s = 0. Float32 scores are off by DIMS roundings, which the
 * losses here amplify by at most 10. */
static void check(unicon_ctx *ctx, const char *loss, const oracle_problem *set) {
  const bool moment = strcmp(loss, "moment") == 0;
  static oracle_rows x, y;
  static oracle_matrix s, zero, wanted;
  unicon_options *options = options_of(ctx, loss);
  unicon__loss_params params;
  double value = 0;
  float *scores = support_floats((int64_t)set->n_x * set->n_y);
  float *weights = support_floats((int64_t)set->n_x * set->n_y);
  oracle_rows_draw(3, set->n_x, DIMS, false, &x);
  oracle_rows_draw(4, set->n_y, DIMS, false, &y);
  unicon_rows *rows_x = support_rows(ctx, "x", x.z, x.n, DIMS),
              *rows_y = support_rows(ctx, "y", y.z, y.n, DIMS);
  const unicon_view vx = {.rows = rows_x, .model = NULL, .side = UNICON_X},
                    vy = {.rows = rows_y, .model = NULL, .side = UNICON_Y};
  CHECK_OK(ctx, unicon_weights(ctx, &vx, &vy, set->pairs, options, scores, weights, &value));
  oracle_scores(&x, &y, &s);
  unicon__loss_params_from(options, &params);
  memset(&zero, 0, sizeof zero);
  if (moment) params.kind = UNICON__LOSS_SUPCON;
  oracle_weights(&params, set, moment ? &zero : &s, &wanted);
  const double most = oracle_largest(set, &wanted);
  for (int i = 0; i < set->n_x; i++)
    for (int j = 0; j < set->n_y; j++) {
      CHECK_CLOSE(scores[i * set->n_y + j], s.at[i][j], 2e-6);
      CHECK_CLOSE(weights[i * set->n_y + j], wanted.at[i][j], 2e-5 * most);
    }
  CHECK_CLOSE(value, oracle_loss(&params, set, moment ? &zero : &s), 2e-5 * (1 + fabs(value)));
  unicon_options_destroy(options);
  unicon_rows_close(rows_x);
  unicon_rows_close(rows_y);
  free(scores);
  free(weights);
}

static void every_loss_matches_the_oracle(void **state) {
  static const int kinds[] = {ORACLE_ONE_TO_ONE, ORACLE_FIVE_PER_X, ORACLE_MANY, ORACLE_LABELS};
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    static oracle_problem set;
    oracle_open(ctx, kinds[k], true, &set);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
      print_message("%s on %s\n", words[w], oracle_set_name(kinds[k]));
      check(ctx, words[w], &set);
    }
    oracle_close(&set);
  }
}

/* The loss alone makes no n_x by n_y matrix, which would be 64 MB here, and is the loss beside the
 * weights. */
static void the_loss_alone_is_small(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 4000 };
  float *z = support_normals(7, 2 * ROWS * DIMS), *weights = support_floats(ROWS * ROWS);
  unicon_rows *x = support_rows(ctx, "x", z, ROWS, DIMS);
  unicon_rows *y = support_rows(ctx, "y", z + ROWS * DIMS, ROWS, DIMS);
  const unicon_view vx = {.rows = x, .model = NULL, .side = UNICON_X},
                    vy = {.rows = y, .model = NULL, .side = UNICON_Y};
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, ROWS, ROWS, &pairs));
  unicon__ctx_set_threads(ctx, 2); /* each has its tiles */
  for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
    unicon_options *options = options_of(ctx, words[w]);
    double beside = 0, alone = 0;
    CHECK_OK(ctx, unicon_ctx_set(ctx, "max-mem", "none"));
    CHECK_OK(ctx, unicon_weights(ctx, &vx, &vy, pairs, options, NULL, weights, &beside));
    CHECK_OK(ctx, unicon_ctx_set(ctx, "max-mem", "24M"));
    CHECK_OK(ctx, unicon_weights(ctx, &vx, &vy, pairs, options, NULL, NULL, &alone));
    assert_true(alone == beside);
    unicon_options_destroy(options);
  }
  unicon_pairs_destroy(pairs);
  unicon_rows_close(x);
  unicon_rows_close(y);
  free(weights);
  free(z);
}

/* clip at temperature `*user`, from outside. */
static double exp_of(void *user, double t, double *slope) {
  const double tau = *(double *)user;
  *slope = exp(t / tau) / tau;
  return exp(t / tau);
}

static double log_of(void *user, double t, double *slope) {
  const double tau = *(double *)user;
  *slope = tau / t;
  return tau * log(t);
}

/* A loss of the caller's own is that loss in weights and in a fit, and its options are copied with
 * the rest. Float32 scores make the difference. */
static void a_loss_of_the_callers_own(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  double tau = 0.5, value[2] = {0, 0};
  problem p;
  problem_make(ctx, 5, 60, 8, 7, 4, 0.3, &p);
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, p.n, p.n, &pairs));
  unicon_options *own = support_options(ctx, "iterations", "2", "rank", "3", NULL);
  unicon_options *clip =
      support_options(ctx, "iterations", "2", "rank", "3", "temperature", "0.5", NULL);
  unicon_loss loss = {exp_of, log_of, &tau};
  CHECK_OK(ctx, unicon_options_set_loss(ctx, own, &loss));
  assert_string_equal(unicon_options_get(own, "loss"), "custom");
  unicon_model *a = support_fit(ctx, p.rows_x, p.rows_y, NULL, own);
  unicon_model *b = support_fit(ctx, p.rows_x, p.rows_y, NULL, clip);
  double *of_a = support_cosines(ctx, a, p.rows_x, p.rows_y);
  double *of_b = support_cosines(ctx, b, p.rows_x, p.rows_y);
  CHECK_CLOSE(support_distance(of_a, of_b, p.n * p.n), 0, 1e-4);
  assert_string_equal(unicon_model_meta(a, "option.loss"), "custom");
  float *weights[2] = {support_floats(p.n * p.n), support_floats(p.n * p.n)};
  for (int k = 0; k < 2; k++) {
    const unicon_view x = {.rows = p.rows_x, .model = a, .side = UNICON_X},
                      y = {.rows = p.rows_y, .model = a, .side = UNICON_Y};
    CHECK_OK(ctx, unicon_weights(ctx, &x, &y, pairs, k ? clip : own, NULL, weights[k], &value[k]));
  }
  CHECK_CLOSE(value[0], value[1], 1e-6);
  for (int64_t k = 0; k < p.n * p.n; k++) CHECK_CLOSE(weights[0][k], weights[1][k], 1e-7);
  loss.phi = NULL;
  scratch_failed(s, unicon_options_set_loss(ctx, own, &loss), UNICON_ERR_ARGUMENT,
                 "options_set_loss", "psi and phi");
  unicon_options *named = support_options(ctx, "loss", "custom", "iterations", "1", NULL);
  unicon_model *none = NULL;
  scratch_failed(
      s, unicon_fit(ctx, &(unicon_data){p.rows_x, p.rows_y, NULL, NULL}, NULL, named, &none),
      UNICON_ERR_OPTION, "loss custom", "unicon_options_set_loss");
  unicon_options_destroy(named);
  unicon_options_destroy(own);
  unicon_options_destroy(clip);
  unicon_model_destroy(a);
  unicon_model_destroy(b);
  unicon_pairs_destroy(pairs);
  free(of_a), free(of_b), free(weights[0]), free(weights[1]);
  problem_free(&p);
}

static void mistakes_are_named(void **state) {
  scratch *s = *state;
  const float z[] = {1, 0, 0, 1, 1, 1};
  float weights[9];
  unicon_pairs *pairs = NULL;
  unicon_rows *two = support_rows(s->ctx, "two", z, 3, 2),
              *three = support_rows(s->ctx, "three", z, 2, 3);
  const unicon_view a = {.rows = two, .model = NULL, .side = UNICON_X},
                    b = {.rows = three, .model = NULL, .side = UNICON_Y};
  CHECK_OK(s->ctx, unicon_pairs_identity(s->ctx, 3, 3, &pairs));
  scratch_failed(s, unicon_weights(s->ctx, &a, &b, pairs, NULL, NULL, weights, NULL),
                 UNICON_ERR_SHAPE, "3 by 2", "2 by 3");
  scratch_failed(s, unicon_weights(s->ctx, &a, &a, NULL, NULL, NULL, weights, NULL),
                 UNICON_ERR_ARGUMENT, "weights", "pairs");
  CHECK_OK(s->ctx, unicon_weights(s->ctx, &a, &a, pairs, NULL, weights, NULL, NULL));
  CHECK_CLOSE(weights[2], sqrt(0.5), 1e-6); /* scores alone */
  unicon_pairs_destroy(pairs);
  unicon_rows_close(two);
  unicon_rows_close(three);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_loss_matches_the_oracle),
      SCRATCH_TEST(the_loss_alone_is_small),
      SCRATCH_TEST(a_loss_of_the_callers_own),
      SCRATCH_TEST(mistakes_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
