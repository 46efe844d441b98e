/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic models, and the figures a fit must reach on them. */
#include "support.h"

enum { DX = 40, DY = 30, TRAIN = 600, TEST = 400 };

typedef struct sample {
  float *x, *y;
  int64_t *label, count;
} sample;

static sample draw(unicon_ctx *ctx, const char *kind, const unicon_options *options, int64_t first,
                   int64_t count, int64_t d_x, int64_t d_y) {
  sample s = {support_floats(count * d_x), support_floats(count * d_y),
              calloc((size_t)count + 1, sizeof *s.label), count};
  CHECK_OK(ctx, unicon_synth(ctx, kind, options, NULL, first, count, s.x, s.y, s.label));
  return s;
}

static void free_sample(sample *s) {
  free(s->x);
  free(s->y);
  free(s->label);
}

/* ---- the data ----------------------------------------------------------------------------- */

/* Without noise x = U_1 z and y = U_2 z with orthonormal columns: the same inner products on both
 * sides, and no more dimensions than z has. */
static void bases_are_orthonormal(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_options *options = support_options(ctx, "noise", "0", "seed", "3", NULL);
  sample s = draw(ctx, "linear", options, 0, 60, DX, DY);
  double largest = 0, worst = 0;
  for (int i = 0; i < 60; i++)
    for (int j = 0; j <= i; j++) {
      double of_x = 0, of_y = 0;
      for (int k = 0; k < DX; k++) of_x += (double)s.x[i * DX + k] * (double)s.x[j * DX + k];
      for (int k = 0; k < DY; k++) of_y += (double)s.y[i * DY + k] * (double)s.y[j * DY + k];
      largest = fmax(largest, fabs(of_x));
      worst = fmax(worst, fabs(of_x - of_y));
    }
  assert_true(largest > 10); /* centres of variance 9 in 10 dimensions */
  CHECK_CLOSE(worst, 0, 1e-6 * largest);
  /* Gram-Schmidt of 60 rows finds 10 directions. */
  int directions = 0;
  double *basis = support_doubles(60 * DX);
  for (int i = 0; i < 60; i++) {
    double row[DX], sum = 0;
    for (int k = 0; k < DX; k++) row[k] = (double)s.x[i * DX + k];
    for (int pass = 0; pass < 2; pass++)
      for (int b = 0; b < directions; b++) {
        double dot = 0;
        for (int k = 0; k < DX; k++) dot += row[k] * basis[b * DX + k];
        for (int k = 0; k < DX; k++) row[k] -= dot * basis[b * DX + k];
      }
    for (int k = 0; k < DX; k++) sum += row[k] * row[k];
    if (sum < 1e-8) continue;
    for (int k = 0; k < DX; k++) basis[directions * DX + k] = row[k] / sqrt(sum);
    directions++;
  }
  assert_int_equal(directions, 10);
  free(basis);
  free_sample(&s);
  unicon_options_destroy(options);
}

static void samples_depend_on_their_number(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample all = draw(ctx, "linear", NULL, 0, 50, DX, DY);
  sample part = draw(ctx, "linear", NULL, 20, 30, DX, DY);
  assert_memory_equal(all.x + 20 * DX, part.x, 30 * DX * sizeof *part.x);
  assert_memory_equal(all.y + 20 * DY, part.y, 30 * DY * sizeof *part.y);
  assert_memory_equal(all.label + 20, part.label, 30 * sizeof *part.label);
  unicon_options *seed = support_options(ctx, "seed", "1", NULL);
  sample other = draw(ctx, "linear", seed, 20, 30, DX, DY);
  assert_memory_not_equal(other.x, part.x, 30 * DX * sizeof *part.x);
  sample bent = draw(ctx, "nonlinear", NULL, 20, 30, DX, DY);
  for (int k = 0; k < 30 * DX; k++) CHECK_CLOSE(bent.x[k], tanh((double)part.x[k]), 1e-6);
  for (int k = 0; k < 30 * DY; k++) CHECK_CLOSE(bent.y[k], tanh((double)part.y[k]), 1e-6);
  unicon_options_destroy(seed);
  free_sample(&all);
  free_sample(&part);
  free_sample(&other);
  free_sample(&bent);
}

/* Spread 0 and noise 0 leave the centres: as many different rows as clusters, evenly drawn. Noise
 * alone is white. Five standard deviations everywhere. */
static void options_mean_what_they_say(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_options *still = support_options(ctx, "spread", "0", "noise", "0", "clusters", "4",
                                          "dim-x", "7", "dim_y", "6", "latent", "5", NULL);
  sample s = draw(ctx, "linear", still, 0, 2000, 7, 6);
  double count[4] = {0};
  float center[4][7];
  for (int i = 0; i < 2000; i++) {
    assert_true(s.label[i] >= 0 && s.label[i] < 4);
    if (count[s.label[i]]++ == 0) memcpy(center[s.label[i]], s.x + i * 7, sizeof center[0]);
    assert_memory_equal(center[s.label[i]], s.x + i * 7, sizeof center[0]);
  }
  for (int c = 0; c < 4; c++) {
    CHECK_CLOSE(count[c] / 2000, 0.25, 5 * sqrt(0.25 * 0.75 / 2000));
    for (int o = 0; o < c; o++) assert_memory_not_equal(center[o], center[c], sizeof center[0]);
  }
  free_sample(&s);
  unicon_options *white = support_options(ctx, "spread", "0", "centers", "0", "noise", "0.5", NULL);
  s = draw(ctx, "linear", white, 0, 2000, DX, DY);
  double sum = 0, cross = 0;
  for (int k = 0; k < 2000 * DX; k++) sum += (double)s.x[k] * (double)s.x[k] / (2000 * DX);
  for (int i = 0; i < 2000; i++)
    for (int k = 0; k < DY; k++) cross += (double)s.x[i * DX + k] * (double)s.y[i * DY + k];
  CHECK_CLOSE(sum, 0.25, 0.25 * 5 * sqrt(2.0 / (2000 * DX)));
  CHECK_CLOSE(cross / (2000 * DY), 0, 0.25 * 5 / sqrt(2000 * DY)); /* x and y are independent */
  free_sample(&s);
  unicon_options_destroy(still);
  unicon_options_destroy(white);
}

static sample draw_part(unicon_ctx *ctx, const char *kind, const unicon_options *options,
                        unicon_synth_part part, int64_t d_x, int64_t d_y) {
  sample s = {support_floats(part.rows * d_x), support_floats(part.rows * d_y),
              calloc((size_t)part.rows + 1, sizeof *s.label), part.rows};
  CHECK_OK(ctx, unicon_synth(ctx, kind, options, &part, 0, part.rows, s.x, s.y, s.label));
  return s;
}

/* The authors' linear model: clusters one after the other, centres in [-2, 2]^10 of every part's
 * own, spread .6 and noise .1. With U orthonormal |x|^2 of a centre is that of z: mean 10 * 4/3. */
static void released_linear_is_sorted(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_options *still = support_options(ctx, "spread", "0", "noise", "0", NULL);
  double square = 0;
  for (int64_t part = 0; part < 40; part++) {
    sample s = draw_part(ctx, "linear-released", still, (unicon_synth_part){part, 31}, DX, DY);
    for (int i = 0; i < 31; i++) {
      assert_int_equal(s.label[i], i / 11); /* blocks of ceil(31/3) */
      assert_memory_equal(s.x + i * DX, s.x + i / 11 * 11 * DX, DX * sizeof *s.x);
      if (i % 11 != 0) continue;
      double sum = 0;
      for (int k = 0; k < DX; k++) sum += (double)s.x[i * DX + k] * (double)s.x[i * DX + k];
      assert_true(sum < 40.001); /* the corner of the cube */
      square += sum / 120;
    }
    free_sample(&s);
  }
  /* var of z^2 is 16/5 - 16/9; 120 centres of 10 dimensions, five deviations */
  CHECK_CLOSE(square, 40.0 / 3, 5 * 10 * sqrt((3.2 - 16.0 / 9) / 1200));
  sample quiet = draw_part(ctx, "linear-released", still, (unicon_synth_part){1, 3000}, DX, DY);
  sample s = draw_part(ctx, "linear-released", NULL, (unicon_synth_part){1, 3000}, DX, DY);
  double spread = 0;
  for (int k = 0; k < 3000 * DX; k++) spread += pow((double)s.x[k] - (double)quiet.x[k], 2) / 3000;
  CHECK_CLOSE(spread, 10 * 0.36 + DX * 0.01, 0.2); /* 10 spread^2 + 40 noise^2 */
  free_sample(&quiet);
  free_sample(&s);
  unicon_options_destroy(still);
}

/* The authors' nonlinear model without noise: the inner layer is `nonlinear` of the same z, and the
 * outer one turns it, which keeps inner products. Noise is added outside the tanh. */
static void released_nonlinear_has_two_layers(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 50, D_Y = 39 };
  unicon_options *quiet = support_options(ctx, "noise", "0", NULL);
  unicon_options *inner =
      support_options(ctx, "noise", "0", "clusters", "1", "centers", "0", "dim_y", "39", NULL);
  assert_int_equal(unicon_synth_width("nonlinear-released", NULL, UNICON_Y), D_Y);
  assert_int_equal(unicon_synth_width("cubic", NULL, UNICON_X), 0);
  sample outer = draw(ctx, "nonlinear-released", quiet, 0, ROWS, DX, D_Y);
  sample one = draw(ctx, "nonlinear", inner, 0, ROWS, DX, D_Y);
  sample noisy = draw(ctx, "nonlinear-released", NULL, 0, ROWS, DX, D_Y);
  double noise = 0;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) {
      double a = 0, b = 0;
      for (int k = 0; k < D_Y; k++) {
        a += atanh((double)outer.y[i * D_Y + k]) * atanh((double)outer.y[j * D_Y + k]);
        b += (double)one.y[i * D_Y + k] * (double)one.y[j * D_Y + k];
      }
      CHECK_CLOSE(a, b, 2e-5); /* float32 values, whose slope under atanh is below 10 here */
    }
  for (int k = 0; k < ROWS * DX; k++)
    noise += pow((double)noisy.x[k] - (double)outer.x[k], 2) / (ROWS * DX);
  CHECK_CLOSE(noise, 0.09, 0.09 * 5 * sqrt(2.0 / (ROWS * DX)));
  free_sample(&outer);
  free_sample(&one);
  free_sample(&noisy);
  unicon_options_destroy(quiet);
  unicon_options_destroy(inner);
}

static void misuse_is_a_sentence(void **state) {
  scratch *s = *state;
  float x[80], y[60];
  int64_t label[2];
  scratch_failed(s, unicon_synth(s->ctx, "round", NULL, NULL, 0, 2, x, y, label),
                 UNICON_ERR_ARGUMENT, "round", "linear, nonlinear");
  scratch_failed(s, unicon_synth(s->ctx, "linear-released", NULL, NULL, 0, 2, x, y, label),
                 UNICON_ERR_ARGUMENT, "linear-released", "at least 2");
  scratch_failed(
      s, unicon_synth(s->ctx, "linear", NULL, &(unicon_synth_part){-1, 2}, 0, 2, x, y, label),
      UNICON_ERR_ARGUMENT, "part number -1", "65535");
  unicon_options *wide = support_options(s->ctx, "latent", "31", NULL);
  scratch_failed(s, unicon_synth(s->ctx, "linear", wide, NULL, 0, 2, x, y, label),
                 UNICON_ERR_OPTION, "latent is 31", "30");
  unicon_options_destroy(wide);
  scratch_failed(s, unicon_synth(s->ctx, "linear", NULL, NULL, -1, 2, x, y, label),
                 UNICON_ERR_ARGUMENT, "synth", "");
  scratch_failed(s, unicon_synth(s->ctx, "linear", NULL, NULL, 0, 2, NULL, y, label),
                 UNICON_ERR_ARGUMENT, "synth", "");
  CHECK_OK(s->ctx, unicon_synth(s->ctx, "linear", NULL, NULL, 5, 0, x, y, label));
}

/* ---- the paper's setting ------------------------------------------------------------------ */

typedef struct figures {
  double hit, same_cluster; /* both directions, averaged */
} figures;

static double top_match_in_cluster(unicon_ctx *ctx, const unicon_view *queries,
                                   const unicon_view *base, const int64_t *label) {
  int64_t ids[TEST];
  float scores[TEST];
  double right = 0;
  CHECK_OK(ctx, unicon_search(ctx, queries, base, 1, ids, scores));
  for (int i = 0; i < TEST; i++) right += label[ids[i]] == label[i];
  return right / TEST;
}

static figures run_setting(unicon_ctx *ctx, const char *noise, const char *seed,
                           const char *metric) {
  unicon_options *options =
      support_options(ctx, "noise", noise, "seed", seed, "metric", metric, NULL);
  sample train = draw(ctx, "linear", options, 0, TRAIN, DX, DY);
  sample test = draw(ctx, "linear", options, TRAIN, TEST, DX, DY);
  unicon_rows *x = support_rows(ctx, "x", train.x, TRAIN, DX);
  unicon_rows *y = support_rows(ctx, "y", train.y, TRAIN, DY);
  unicon_rows *test_x = support_rows(ctx, "test x", test.x, TEST, DX);
  unicon_rows *test_y = support_rows(ctx, "test y", test.y, TEST, DY);
  unicon_model *model = support_fit(ctx, x, y, NULL, options);
  const unicon_view vx = {.rows = test_x, .model = model, .side = UNICON_X},
                    vy = {.rows = test_y, .model = model, .side = UNICON_Y};
  unicon_metrics to_y, to_x;
  CHECK_OK(ctx, unicon_evaluate(ctx, &vx, &vy, NULL, NULL, &to_y, &to_x));
  const figures f = {(to_y.value[UNICON_HIT_1] + to_x.value[UNICON_HIT_1]) / 2,
                     (top_match_in_cluster(ctx, &vx, &vy, test.label) +
                      top_match_in_cluster(ctx, &vy, &vx, test.label)) /
                         2};
  unicon_model_destroy(model);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_rows_close(test_x);
  unicon_rows_close(test_y);
  free_sample(&train);
  free_sample(&test);
  unicon_options_destroy(options);
  return f;
}

static void papers_setting_is_solved(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const seeds[] = {"0", "1", "2", "3", "4"};
  double whitened = 0, plain = 0, quiet = 0;
  for (int k = 0; k < 5; k++) {
    const figures a = run_setting(ctx, "0.3", seeds[k], "whiten");
    assert_true(a.same_cluster == 1);
    whitened += a.hit / 5;
    plain += run_setting(ctx, "0.3", seeds[k], "none").hit / 5;
    const figures c = run_setting(ctx, "0.05", seeds[k], "whiten");
    assert_true(c.hit >= 0.99 && c.same_cluster == 1);
    quiet += c.hit / 5;
  }
  print_message("hit@1 at noise .3: whitened %.3f, none %.3f; at .05 %.3f\n", whitened, plain,
                quiet);
  assert_true(whitened >= 0.90);
  assert_true(plain >= 0.6 && plain <= 0.85);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(bases_are_orthonormal),      SCRATCH_TEST(samples_depend_on_their_number),
      SCRATCH_TEST(options_mean_what_they_say), SCRATCH_TEST(misuse_is_a_sentence),
      SCRATCH_TEST(released_linear_is_sorted),  SCRATCH_TEST(released_nonlinear_has_two_layers),
      SCRATCH_TEST(papers_setting_is_solved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
