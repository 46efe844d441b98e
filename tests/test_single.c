/* SPDX-License-Identifier: Apache-2.0 */
/* One row at a time gives what unicon_embed gives, through every kind of map, and touches nothing
 * but the room it is given. Both are float32 sums of at most 96 features in another order; the
 * vectors have length 1, so they agree to 96 roundings of 2^-24, amplified where the sum is shorter
 * than its terms: 1e-5. */
#include "support.h"

enum { N = 96, TEST = 7, DX = 13, DY = 20, LATENT = 5, GUARD = 8 };

static void check_side(unicon_ctx *ctx, const unicon_model *model, const problem *p, int side) {
  const int64_t r = unicon_model_rank(model), d = side ? DY : DX;
  const int64_t room = unicon_embed_one_room(model, (unicon_side)side);
  const float *rows = side ? p->y : p->x;
  float *all = support_floats(TEST * r), *one = support_floats(r + GUARD);
  float *scratch_room = support_floats(room + GUARD);
  const unicon_view view =
      UNICON_VIEW(.rows = side ? p->rows_y : p->rows_x, .model = model, .side = (unicon_side)side);
  CHECK_OK(ctx, unicon_embed(ctx, &view, 0, TEST, UNICON_FORM_UNIT, all));
  const uint64_t memory = unicon__budget_used(ctx->arena.budget);
  for (int64_t i = 0; i < TEST; i++) {
    assert_int_equal(unicon_embed_one(model, (unicon_side)side, rows + i * d, scratch_room, one),
                     UNICON_OK);
    for (int64_t k = 0; k < r; k++) CHECK_CLOSE(one[k], all[i * r + k], 1e-5);
  }
  for (int k = 0; k < GUARD; k++) assert_true(one[r + k] == 0 && scratch_room[room + k] == 0);
  assert_int_equal(unicon__budget_used(ctx->arena.budget), memory);
  free(all);
  free(one);
  free(scratch_room);
}

static void equals_embed(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const cases[][8] = {{"kernel", "linear"},
                                         {"kernel", "linear", "normalize", "off", "center", "off"},
                                         {"kernel", "angular", "map", "exact"},
                                         {"kernel", "rbf", "map", "nystrom", "landmarks", "30"},
                                         {"kernel", "rbf", "map", "random", "features", "40"},
                                         {"kernel", "angular", "map", "exact", "batch", "32"}};
  problem p;
  problem_make(ctx, 9, N, DX, DY, LATENT, 0.3, &p);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unicon_options *options = support_options(ctx, "rank", "6", NULL);
    for (int k = 0; k < 8 && cases[c][k]; k += 2)
      CHECK_OK(ctx, unicon_options_set(ctx, options, cases[c][k], cases[c][k + 1]));
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    check_side(ctx, model, &p, 0);
    check_side(ctx, model, &p, 1);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

static void refuses(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float row[DX] = {0}, out[8], room[64];
  problem p;
  problem_make(ctx, 9, N, DX, DY, LATENT, 0.3, &p);
  unicon_options *options = support_options(ctx, "rank", "6", NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  assert_true(unicon_embed_one_room(model, UNICON_Y) <= 64);
  assert_int_equal(unicon_embed_one(model, UNICON_X, row, room, out), UNICON_ERR_DATA);
  row[3] = NAN;
  assert_int_equal(unicon_embed_one(model, UNICON_X, row, room, out), UNICON_ERR_DATA);
  row[3] = 1;
  assert_int_equal(unicon_embed_one(model, UNICON_X, row, room, out), UNICON_OK);
  assert_int_equal(unicon_embed_one(NULL, UNICON_X, row, room, out), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_embed_one(model, (unicon_side)2, row, room, out), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_embed_one(model, UNICON_X, row, NULL, out), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_embed_one_room(NULL, UNICON_X), 0);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* The id is that of the file, and another seed's model has another. */
static void ids_tell_models_apart(void **state) {
  scratch *s = *state;
  char made[UNICON_MODEL_ID], loaded[UNICON_MODEL_ID], other[UNICON_MODEL_ID];
  problem p;
  problem_make(s->ctx, 9, N, DX, DY, LATENT, 0.3, &p);
  for (int balanced = 0; balanced < 2; balanced++) {
    unicon_options *options = support_options(s->ctx, "rank", "6", "kernel", "angular", "balance",
                                              balanced ? "softmax:5" : "off", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options), *again = NULL;
    const char *path = scratch_path(s, "m.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &again));
    unicon_model_id(model, made);
    unicon_model_id(again, loaded);
    assert_string_equal(made, loaded);
    assert_int_equal(strlen(made), UNICON_MODEL_ID - 1);
    unicon_model_destroy(again);
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "ridge", "0.02"));
    again = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
    unicon_model_id(again, other);
    assert_string_not_equal(made, other);
    unicon_model_destroy(again);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(equals_embed), SCRATCH_TEST(refuses),
                                     SCRATCH_TEST(ids_tell_models_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
