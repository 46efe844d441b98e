/* SPDX-License-Identifier: Apache-2.0 */
/* Models of earlier versions (tests/golden): they load, and embed the stored rows as they did.
 *
 * Tolerance: unit vectors in float32; another instruction set or BLAS rounds sums of a few dozen
 * terms otherwise, which is below 1e-6. Differences of squared distances in the kernels lose
 * another digit, and the factor of the landmarks multiplies what is left by up to 10: 1e-4. */
#include "support.h"

static const char *const models[] = {"linear", "plain", "nystrom", "poly", "random",
                                     "arccos", "fused", "softmax", "csls", "quadratic"};

static const char *golden_path(const char *name, const char *suffix) {
  static char path[4][1024];
  static int next;
  const char *source = getenv("UNICON_SOURCE_DIR");
  char *out = path[next++ % 4];
  snprintf(out, sizeof path[0], "%s/tests/golden/%s%s", source ? source : ".", name, suffix);
  return out;
}

static unicon_rows *golden_rows(scratch *s, const char *name, const char *suffix) {
  unicon_rows *rows = NULL;
  CHECK_OK(s->ctx, unicon_rows_open(s->ctx, golden_path(name, suffix), &rows));
  return rows;
}

static void check_side(scratch *s, const char *name, const unicon_model *model, unicon_side side) {
  unicon_rows *in = golden_rows(s, side == UNICON_X ? "x" : "y", ".npy");
  unicon_rows *expected = golden_rows(s, name, side == UNICON_X ? ".x.npy" : ".y.npy");
  const int64_t n = unicon_rows_count(in), r = unicon_model_rank(model);
  assert_int_equal(unicon_rows_count(expected), n);
  assert_int_equal(unicon_rows_width(expected), r);
  assert_int_equal(unicon_model_width(model, side), unicon_rows_width(in));
  float *z = support_floats(n * r), *golden = support_floats(n * r);
  CHECK_OK(s->ctx, unicon_embed(s->ctx, &UNICON_VIEW(.rows = in, .model = model, .side = side), 0,
                                n, 1, z));
  CHECK_OK(s->ctx, unicon_rows_read(s->ctx, expected, 0, n, golden));
  double length = 0;
  for (int64_t k = 0; k < n * r; k++) {
    CHECK_CLOSE(z[k], golden[k], 1e-4);
    length += (double)golden[k] * (double)golden[k] / (double)n;
  }
  CHECK_CLOSE(length, 1, 1e-5); /* the stored file is what it says */
  free(z);
  free(golden);
  unicon_rows_close(in);
  unicon_rows_close(expected);
}

static void golden_models_embed_as_ever(void **state) {
  scratch *s = *state;
  for (size_t c = 0; c < sizeof models / sizeof *models; c++) {
    unicon_model *model = NULL;
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, golden_path(models[c], ".safetensors"), &model));
    assert_string_equal(unicon_model_meta(model, "format_version"), "1");
    for (int64_t k = 1; k < unicon_model_rank(model); k++)
      assert_true(isfinite(unicon_model_spectrum(model)[k]));
    check_side(s, models[c], model, UNICON_X);
    check_side(s, models[c], model, UNICON_Y);
    unicon_model_destroy(model);
  }
}

/* What was read is written again without a loss. */
static void golden_models_are_saved_again(void **state) {
  scratch *s = *state;
  for (size_t c = 0; c < sizeof models / sizeof *models; c++) {
    unicon_model *model = NULL, *again = NULL;
    const char *path = scratch_path(s, "again.safetensors");
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, golden_path(models[c], ".safetensors"), &model));
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &again));
    check_side(s, models[c], again, UNICON_X);
    check_side(s, models[c], again, UNICON_Y);
    unicon_model_destroy(again);
    unicon_model_destroy(model);
  }
}

/* A file of a newer major format is refused, and the sentence says what to do. */
static void newer_formats_are_refused(void **state) {
  scratch *s = *state;
  static const char now[] = "\"format_version\":\"1\"";
  for (size_t c = 0; c < sizeof models / sizeof *models; c++) {
    size_t size, at = 0;
    unicon_model *model = NULL;
    unsigned char *bytes = support_slurp(golden_path(models[c], ".safetensors"), &size);
    while (at + sizeof now < size && memcmp(bytes + at, now, sizeof now - 1) != 0) at++;
    assert_true(at + sizeof now < size);
    bytes[at + sizeof now - 3] = '2';
    const char *path = scratch_write(s, "newer.safetensors", bytes, size);
    scratch_failed(s, unicon_model_load(s->ctx, path, &model), UNICON_ERR_FORMAT,
                   "newer.safetensors has model format 2", "use a newer unicon");
    assert_null(model);
    free(bytes);
  }
}

/* A number in the metadata that goes on after its digits is no number. */
static void numbers_have_no_tail(void **state) {
  scratch *s = *state;
  static const struct {
    const char *model, *key;
  } cases[] = {{"nystrom", "x.kernel_width"}, {"fused", "share.0"}, {"linear", "rank"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char entry[64];
    size_t size, at = 0;
    unicon_model *model = NULL;
    const int length = snprintf(entry, sizeof entry, "\"%s\":\"", cases[c].key);
    unsigned char *bytes = support_slurp(golden_path(cases[c].model, ".safetensors"), &size);
    while (at + 64 < size && memcmp(bytes + at, entry, (size_t)length) != 0) at++;
    assert_true(at + 64 < size);
    at += (size_t)length;
    while (bytes[at + 1] != '"') at++;
    bytes[at] = 'x'; /* in the place of the last digit */
    const char *path = scratch_write(s, "tail.safetensors", bytes, size);
    scratch_failed(s, unicon_model_load(s->ctx, path, &model), UNICON_ERR_FORMAT, cases[c].key,
                   "x\"");
    assert_null(model);
    free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(golden_models_embed_as_ever),
      SCRATCH_TEST(golden_models_are_saved_again),
      SCRATCH_TEST(newer_formats_are_refused),
      SCRATCH_TEST(numbers_have_no_tail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
