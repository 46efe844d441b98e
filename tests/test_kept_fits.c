/* SPDX-License-Identifier: Apache-2.0 */
/* Fits from statistics that hold few rows, or none: what can be known of the sums does not depend on
 * their sample.
 *
 * Tolerances. Two sets of features that span the same space give the same cosines up to the float32
 * products behind them, whose roundings (1e-7) a whitening with ridge 0.01 makes up to 1e3 of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kept_check.h"

enum { N = 900, VAL = 150, DX = 30, DY = 26, LATENT = 24 };

/* N rows of both sides to sum, VAL others, and `all` of them. */
typedef struct world {
  problem all;
  unicon_rows *x, *y, *val_x, *val_y;
  unicon_data data, val;
} world;

static void world_open(unicon_ctx *ctx, world *w) {
  problem_make(ctx, 9, N + VAL, DX, DY, LATENT, 0.8, &w->all);
  for (int64_t k = 0; k < (N + VAL) * DX; k++) w->all.x[k] += 2; /* a mean that matters */
  w->x = support_rows(ctx, "x", w->all.x, N, DX);
  w->y = support_rows(ctx, "y", w->all.y, N, DY);
  w->val_x = support_rows(ctx, "vx", w->all.x + N * DX, VAL, DX);
  w->val_y = support_rows(ctx, "vy", w->all.y + N * DY, VAL, DY);
  w->data = UNICON_DATA(.x = w->x, .y = w->y);
  w->val = UNICON_DATA(.x = w->val_x, .y = w->val_y);
}

static void world_close(world *w) {
  unicon_rows_close(w->x);
  unicon_rows_close(w->y);
  unicon_rows_close(w->val_x);
  unicon_rows_close(w->val_y);
  problem_free(&w->all);
}

static unicon_stats *sum_of(unicon_ctx *ctx, const world *w, const unicon_options *options) {
  unicon_stats *out = NULL;
  CHECK_OK(ctx, unicon_stats_create(ctx, &w->data, options, &out));
  CHECK_OK(ctx, unicon_stats_add(ctx, out, &w->data, options));
  return out;
}

/* The rank is that of the sums, and the model that of all rows, however few of them are kept, with
 * validation pairs and, where some can be held out, without. */
static void a_small_sample_is_no_limit(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const rooms[] = {"0", "2", "20", "100", "5000"};
  static const char *const presets[] = {"fast", "auto"};
  world w;
  world_open(ctx, &w);
  for (int k = 0; k < 5; k++)
    for (int preset = 0; preset < 2; preset++)
      for (int judged = 0; judged < 2; judged++) {
        unicon_options *options = support_options(ctx, "sample_rows", rooms[k], NULL);
        unicon_options *how = NULL;
        unicon_stats *stats = sum_of(ctx, &w, options);
        unicon_model *model = NULL;
        CHECK_OK(ctx, unicon_options_create(ctx, &how));
        CHECK_OK(ctx, unicon_options_set(ctx, how, "preset", presets[preset]));
        CHECK_OK(ctx, unicon_stats_fit(ctx, stats, judged ? &w.val : NULL, how, &model));
        if (preset == 0) assert_int_equal(unicon_model_rank(model), DY);
        if (preset == 1) assert_true(unicon_model_rank(model) >= 16);
        if (judged) assert_true(atof(unicon_model_meta(model, "auto_score")) > 0.9);
        if (k == 0) assert_string_equal(unicon_model_meta(model, "balance"), "off");
        unicon_model_destroy(model);
        unicon_stats_destroy(stats);
        unicon_options_destroy(how);
        unicon_options_destroy(options);
      }
  world_close(&w);
}

/* A linear kernel on landmarks is linear; its mean is that of all rows that were summed. */
static void the_mean_is_that_of_the_sums(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const rooms[] = {"0", "30", "5000"};
  static const char *const ridges[] = {"0", "1e-3"};
  world w;
  world_open(ctx, &w);
  unicon_options *plain = support_options(ctx, "map", "linear", NULL);
  unicon_model *rows = support_fit(ctx, w.x, w.y, NULL, plain);
  for (int k = 0; k < 6; k++) {
    unicon_options *options =
        support_options(ctx, "map", "nystrom", "landmarks", "200", "sample_rows", rooms[k % 3],
                        "kernel_ridge", ridges[k / 3], NULL);
    unicon_stats *stats = sum_of(ctx, &w, options);
    unicon_model *model = NULL, *again = NULL;
    scratch *s = *state;
    CHECK_OK(ctx, unicon_stats_fit(ctx, stats, NULL, options, &model));
    CHECK_CLOSE(kept_cosine_distance(ctx, w.val_x, w.val_y, rows, model), 0, 1e-3);
    CHECK_OK(ctx, unicon_model_save(ctx, model, scratch_path(s, "m.safetensors")));
    CHECK_OK(ctx, unicon_model_load(ctx, scratch_path(s, "m.safetensors"), &again));
    unicon_model_destroy(again);
    unicon_model_destroy(model);
    unicon_stats_destroy(stats);
    unicon_options_destroy(options);
  }
  unicon_model_destroy(rows);
  unicon_options_destroy(plain);
  world_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(a_small_sample_is_no_limit),
      SCRATCH_TEST(the_mean_is_that_of_the_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
