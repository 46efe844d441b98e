/* SPDX-License-Identifier: Apache-2.0 */
/* The model file: what is saved comes back, what is not a model is refused in a sentence, and a
 * save that fails leaves the old file whole. */
#include "support.h"

enum { N = 60, DX = 6, DY = 5 };

static unicon_model *make_model(unicon_ctx *ctx, uint64_t seed, const unicon_options *options,
                                problem *p) {
  problem_make(ctx, seed, N, DX, DY, 4, 0.4, p);
  return support_fit(ctx, p->rows_x, p->rows_y, NULL, options);
}

static unicon_model *load(scratch *s, const char *path) {
  unicon_model *model = NULL;
  CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &model));
  return model;
}

static void refused(scratch *s, const char *path, unicon_status expected, const char *word,
                    const char *other) {
  unicon_model *model = (unicon_model *)(void *)s;
  scratch_failed(s, unicon_model_load(s->ctx, path, &model), expected, word, other);
  assert_null(model);
}

/* ---- there and back ----------------------------------------------------------------------- */

static void check_round_trip(scratch *s, const unicon_options *options) {
  problem p;
  unicon_model *a = make_model(s->ctx, 1, options, &p);
  const char *path = scratch_path(s, "a.safetensors"), *copy = scratch_path(s, "b.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, a, path));
  unicon_model *b = load(s, path);
  const int64_t rank = unicon_model_rank(a);
  assert_int_equal(unicon_model_rank(b), rank);
  assert_int_equal(unicon_model_width(b, UNICON_X), DX);
  assert_int_equal(unicon_model_width(b, UNICON_Y), DY);
  assert_memory_equal(unicon_model_spectrum(a), unicon_model_spectrum(b),
                      (size_t)rank * sizeof(float));
  for (int side = 0; side < 2; side++)
    for (int unit = 0; unit < 2; unit++) {
      const unicon_rows *rows = side ? p.rows_y : p.rows_x;
      float *of_a = support_floats(N * rank), *of_b = support_floats(N * rank);
      CHECK_OK(
          s->ctx,
          unicon_embed(s->ctx, &UNICON_VIEW(.rows = rows, .model = a, .side = (unicon_side)side), 0,
                       N, (unicon_form)unit, of_a));
      CHECK_OK(
          s->ctx,
          unicon_embed(s->ctx, &UNICON_VIEW(.rows = rows, .model = b, .side = (unicon_side)side), 0,
                       N, (unicon_form)unit, of_b));
      assert_memory_equal(of_a, of_b, (size_t)(N * rank) * sizeof *of_a);
      free(of_a);
      free(of_b);
    }
  const char *key_a, *value_a, *key_b, *value_b;
  size_t count = 0;
  for (; unicon_model_meta_at(a, count, &key_a, &value_a); count++) {
    assert_int_equal(unicon_model_meta_at(b, count, &key_b, &value_b), 1);
    assert_string_equal(key_a, key_b);
    assert_string_equal(value_a, value_b);
  }
  assert_int_equal(unicon_model_meta_at(b, count, &key_b, &value_b), 0);
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, b, copy)); /* and again: the same file */
  size_t size_a, size_b;
  unsigned char *bytes_a = support_slurp(path, &size_a), *bytes_b = support_slurp(copy, &size_b);
  assert_int_equal(size_a, size_b);
  assert_memory_equal(bytes_a, bytes_b, size_a);
  free(bytes_a);
  free(bytes_b);
  unicon_model_destroy(a);
  unicon_model_destroy(b);
  problem_free(&p);
}

static void what_is_saved_comes_back(void **state) {
  scratch *s = *state;
  unicon_options *raw = support_options(s->ctx, "normalize", "off", "center", "off", NULL);
  unicon_options *more =
      support_options(s->ctx, "iterations", "3", "batch", "20", "rank", "1", NULL);
  check_round_trip(s, NULL);
  check_round_trip(s, raw);
  check_round_trip(s, more);
  unicon_options_destroy(raw);
  unicon_options_destroy(more);
}

static void metadata_tell_the_story(void **state) {
  scratch *s = *state;
  problem p;
  unicon_options *options = support_options(s->ctx, "rank", "4", "ridge", "0.25", NULL);
  unicon_model *model = make_model(s->ctx, 2, options, &p);
  static const char *const expected[][2] = {{"format", "unicon"},
                                            {"format_version", "1"},
                                            {"d_x", "6"},
                                            {"d_y", "5"},
                                            {"n_x", "60"},
                                            {"n_y", "60"},
                                            {"pairs", "60"},
                                            {"rank", "4"},
                                            {"option.rank", "4"},
                                            {"option.ridge", "0.25"},
                                            {"option.preset", "fast"},
                                            {"option.normalize", "on"},
                                            {"option.metric", "whiten"},
                                            {"svd_method", "squared"}};
  for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
    const char *value = unicon_model_meta(model, expected[k][0]);
    assert_non_null(value);
    assert_string_equal(value, expected[k][1]);
  }
  assert_string_equal(unicon_model_meta(model, "library_version"), unicon_version());
  assert_true(atof(unicon_model_meta(model, "svd_residual")) < 1e-10);
  assert_null(unicon_model_meta(model, "no such key"));
  assert_null(unicon_model_meta(NULL, "rank"));
  assert_null(unicon_model_meta(model, NULL));
  for (size_t k = 0; k < unicon_option_count(); k++) { /* every option of a fit is there */
    const unicon_option_info *row = unicon_option_at(k);
    char key[64];
    snprintf(key, sizeof key, "option.%s", row->name);
    assert_int_equal(unicon_model_meta(model, key) != NULL, (row->scope & UNICON_SCOPE_FIT) != 0);
  }
  /* The hash sees the data. */
  char hash[32];
  snprintf(hash, sizeof hash, "%s", unicon_model_meta(model, "input_hash"));
  p.y[N * DY - 1] = nextafterf(p.y[N * DY - 1], 9);
  unicon_model *other = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  assert_string_not_equal(hash, unicon_model_meta(other, "input_hash"));
  assert_int_equal(unicon_model_rank(NULL), 0);
  assert_int_equal(unicon_model_width(NULL, UNICON_X), 0);
  assert_null(unicon_model_spectrum(NULL));
  unicon_model_destroy(NULL);
  unicon_model_destroy(other);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* Rows of another width do not go through a model. */
static void views_are_checked(void **state) {
  scratch *s = *state;
  problem p;
  unicon_model *model = make_model(s->ctx, 3, NULL, &p);
  float *out = support_floats(N * DX);
  scratch_failed(
      s,
      unicon_embed(s->ctx, &UNICON_VIEW(.rows = p.rows_y, .model = model, .side = UNICON_X), 0, N,
                   0, out),
      UNICON_ERR_SHAPE, "y.npy has rows of 5 values", "side x of the model takes 6");
  scratch_failed(
      s,
      unicon_embed(s->ctx, &UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_Y), 0, N,
                   0, out),
      UNICON_ERR_SHAPE, "x.npy has rows of 6 values", "side y of the model takes 5");
  free(out);
  unicon_model_destroy(model);
  problem_free(&p);
}

/* ---- files that are no models ------------------------------------------------------------- */

/* A saved model, its bytes, and where its data start. */
static unsigned char *saved_bytes(scratch *s, size_t *size, size_t *data) {
  problem p;
  unicon_options *options = support_options(s->ctx, "rank", "3", NULL);
  unicon_model *model = make_model(s->ctx, 4, options, &p);
  const char *path = scratch_path(s, "good.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
  unsigned char *bytes = support_slurp(path, size);
  *data = 8;
  for (int k = 0; k < 8; k++) *data += (size_t)bytes[k] << (8 * k);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
  return bytes;
}

/* Replaces the one occurrence of `from` in the header by `to`, of the same length. */
static void patch(unsigned char *bytes, size_t size, const char *from, const char *to) {
  const size_t length = strlen(from);
  assert_int_equal(length, strlen(to));
  for (size_t k = 0; k + length <= size; k++)
    if (memcmp(bytes + k, from, length) == 0) {
      memcpy(bytes + k, to, length);
      return;
    }
  print_error("no %s in the header\n", from);
  fail();
}

static void tampered_headers_are_refused(void **state) {
  scratch *s = *state;
  size_t size, data;
  unsigned char *good = saved_bytes(s, &size, &data), *bytes = malloc(size);
  assert_non_null(bytes);
  static const char *const cases[][4] = {
      {"\"format\":\"unicon\"", "\"format\":\"unicom\"", "not a unicon model", "format"},
      {"\"format\":\"unicon\"", "\"farmat\":\"unicon\"", "not a unicon model", "format"},
      {"\"format_version\":\"1\"", "\"format_version\":\"2\"", "newer", "use a newer unicon"},
      {"\"format_version\":\"1\"", "\"format_version\":\"x\"", "format_version", "\"x\""},
      {"\"format_version\":\"1\"", "\"format_version\":\"0\"", "format_version", "\"0\""},
      {"\"rank\":\"3\"", "\"rank\":\"2\"", "spectrum", "promise"},
      {"\"rank\":\"3\"", "\"runk\":\"3\"", "rank", "missing"},
      {"\"rank\":\"3\"", "\"rank\":\"0\"", "rank", "\"0\""},
      {"\"d_x\":\"6\"", "\"d_x\":\"5\"", "x.mean", "promise"},
      {"\"d_y\":\"5\"", "\"d_y\":\"6\"", "y.mean", "promise"},
      {"\"d_y\":\"5\"", "\"d_z\":\"5\"", "d_y", "missing"},
      {"\"x.weight\"", "\"x.weighs\"", "x.weight", "missing"},
      {"\"y.weight\"", "\"y.weighs\"", "y.weight", "missing"},
      {"\"spectrum\"", "\"spectral\"", "no tensor spectrum", ""},
      {"\"parts\":\"1\"", "\"parts\":\"2\"", "share.0", "missing"},
      {"\"parts\":\"1\"", "\"parts\":\"0\"", "parts", "\"0\""},
      {"\"x.map\":\"linear\"", "\"x.map\":\"lineal\"", "x.map", "\"lineal\""},
      {"\"y.normalize\":\"on\"", "\"y.normalize\":\"no\"", "y.normalize", "\"no\""},
      {"\"y.kernel\":\"linear\"", "\"y.kernel\":\"banana\"", "y.kernel", "\"banana\""},
      {"[6,3]", "[3,6]", "x.weight", "shape"},
      {"[5,3]", "[3,5]", "y.weight", "shape"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    memcpy(bytes, good, size);
    patch(bytes, data, cases[c][0], cases[c][1]);
    const char *path = scratch_write(s, "bad.safetensors", bytes, size);
    refused(s, path, UNICON_ERR_FORMAT, "bad.safetensors", cases[c][2]);
    refused(s, path, UNICON_ERR_FORMAT, "bad.safetensors", cases[c][3]);
  }
  unicon_model_destroy(load(s, scratch_write(s, "same.safetensors", good, size)));
  free(bytes);
  free(good);
}

static void numbers_must_be_finite(void **state) {
  scratch *s = *state;
  size_t size, data;
  unsigned char *bytes = saved_bytes(s, &size, &data);
  static const float bad[2] = {NAN, INFINITY};
  const size_t floats = (size - data) / sizeof *bad;
  assert_int_equal(floats, 3 + 6 + 5 + 3 * (6 + 5)); /* spectrum, means, weights */
  for (size_t k = 0; k < floats; k++) {
    float held;
    memcpy(&held, bytes + data + 4 * k, 4);
    memcpy(bytes + data + 4 * k, &bad[k % 2], 4);
    refused(s, scratch_write(s, "nan.safetensors", bytes, size), UNICON_ERR_FORMAT,
            "nan.safetensors", "not finite");
    memcpy(bytes + data + 4 * k, &held, 4);
  }
  free(bytes);
}

/* Every shorter file is refused, and so is a longer one. */
static void truncated_files_are_refused(void **state) {
  scratch *s = *state;
  size_t size, data;
  unsigned char *bytes = saved_bytes(s, &size, &data);
  bytes = realloc(bytes, size + 1);
  assert_non_null(bytes);
  bytes[size] = 0;
  for (size_t length = 0; length <= size + 1; length += length + 1 == size ? 2 : 1) {
    if (length == size) continue;
    const char *path = scratch_write(s, "cut.safetensors", bytes, length);
    unicon_model *model = NULL;
    const unicon_status status = unicon_model_load(s->ctx, path, &model);
    assert_true(status == UNICON_ERR_FORMAT);
    assert_null(model);
    assert_non_null(strstr(unicon_ctx_error(s->ctx), "cut.safetensors"));
  }
  free(bytes);
}

static void other_files_are_refused(void **state) {
  scratch *s = *state;
  static const float two[2] = {1, 2};
  refused(s, scratch_path(s, "missing.safetensors"), UNICON_ERR_IO, "missing.safetensors", "");
  refused(s, scratch_text(s, "text.safetensors", "once upon a time, far away"), UNICON_ERR_FORMAT,
          "text.safetensors", "not a .safetensors file");
  refused(s,
          scratch_npy(s, "rows.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}\n",
                      two, sizeof two),
          UNICON_ERR_FORMAT, "rows.npy", "not a .safetensors file");
  const file_image foreign = safetensors_make(
      "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", two, sizeof two);
  refused(s, scratch_write(s, "foreign.safetensors", foreign.bytes, foreign.size),
          UNICON_ERR_FORMAT, "foreign.safetensors", "not a unicon model");
  const file_image named = safetensors_make(
      "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
      "offsets\":"
      "[0,8]}}",
      two, sizeof two);
  refused(s, scratch_write(s, "pt.safetensors", named.bytes, named.size), UNICON_ERR_FORMAT,
          "pt.safetensors", "not a unicon model");
  unicon_model *model = NULL;
  scratch_failed(s, unicon_model_load(s->ctx, NULL, &model), UNICON_ERR_ARGUMENT, "path", "");
  assert_true(unicon_model_load(s->ctx, s->folder, &model) != UNICON_OK);
  assert_null(model);
}

/* ---- saves that fail ---------------------------------------------------------------------- */

typedef struct save_case {
  const unicon_model *model;
  const char *path;
} save_case;

static unicon_status try_save(scratch *s, void *user) {
  const save_case *c = user;
  return unicon_model_save(s->ctx, c->model, c->path);
}

/* scratch_faults makes every step fail in turn; in between, the file must be the old one. */
static unicon_status try_save_and_look(scratch *s, void *user) {
  const save_case *c = user;
  size_t before_size, after_size;
  unsigned char *before = support_slurp(c->path, &before_size);
  const unicon_status status = unicon_model_save(s->ctx, c->model, c->path);
  unsigned char *after = support_slurp(c->path, &after_size);
  if (status != UNICON_OK) {
    assert_int_equal(after_size, before_size);
    assert_memory_equal(after, before, before_size);
  } else {
    assert_false(after_size == before_size && memcmp(after, before, after_size) == 0);
  }
  free(before);
  free(after);
  return status;
}

static void failed_saves_leave_the_old_file(void **state) {
  scratch *s = *state;
  problem p, q;
  unicon_model *old = make_model(s->ctx, 5, NULL, &p), *new = make_model(s->ctx, 6, NULL, &q);
  save_case c = {old, scratch_path(s, "m.safetensors")};
  const int fresh = scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, try_save, &c);
  assert_true(fresh >= 4); /* open, writes, sync, rename */
  c.model = new;
  scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, try_save_and_look, &c);
  c.model = old;
  scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, try_save_and_look, &c);
  unicon_model *model = load(s, c.path);
  unicon_model_destroy(model);
  scratch_failed(s, unicon_model_save(s->ctx, old, s->folder), UNICON_ERR_IO, s->folder, "folder");
  scratch_failed(s, unicon_model_save(s->ctx, old, scratch_path(s, "no/such/m.safetensors")),
                 UNICON_ERR_IO, "no/such/m.safetensors", "");
  scratch_failed(s, unicon_model_save(s->ctx, NULL, c.path), UNICON_ERR_ARGUMENT, "model", "");
  assert_int_equal(scratch_count_entries(s->folder), 1);
  unicon_model_destroy(old);
  unicon_model_destroy(new);
  problem_free(&p);
  problem_free(&q);
}

/* The bytes are those of the file; they may lie at an odd address, and are not kept. */
static void bytes_are_those_of_the_file(void **state) {
  scratch *s = *state;
  problem p;
  unicon_model *model = make_model(s->ctx, 5, NULL, &p), *again = NULL;
  const char *path = scratch_path(s, "m.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
  size_t length, size = 0;
  unsigned char *file = support_slurp(path, &length);
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, model, NULL, 0, &size));
  assert_int_equal(size, length);
  unsigned char *bytes = malloc(size + 2);
  bytes[0] = bytes[size + 1] = 0xa5;
  scratch_failed(s, unicon_model_to_bytes(s->ctx, model, bytes + 1, size - 1, &size),
                 UNICON_ERR_ARGUMENT, "room for", "are needed");
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, model, bytes + 1, size, &size));
  assert_memory_equal(bytes + 1, file, length);
  assert_int_equal(bytes[0], 0xa5);
  assert_int_equal(bytes[size + 1], 0xa5);
  for (size_t cut = 0; cut < size; cut += size / 7) {
    scratch_failed(s, unicon_model_from_bytes(s->ctx, bytes + 1, cut, &again), UNICON_ERR_FORMAT,
                   "the bytes", "");
    assert_null(again);
  }
  CHECK_OK(s->ctx, unicon_model_from_bytes(s->ctx, bytes + 1, size, &again));
  memset(bytes, 0, size + 2);
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, again, bytes, size, &size));
  assert_memory_equal(bytes, file, length);
  free(bytes);
  free(file);
  unicon_model_destroy(again);
  unicon_model_destroy(model);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(what_is_saved_comes_back),    SCRATCH_TEST(metadata_tell_the_story),
      SCRATCH_TEST(views_are_checked),           SCRATCH_TEST(tampered_headers_are_refused),
      SCRATCH_TEST(numbers_must_be_finite),      SCRATCH_TEST(truncated_files_are_refused),
      SCRATCH_TEST(other_files_are_refused),     SCRATCH_TEST(failed_saves_leave_the_old_file),
      SCRATCH_TEST(bytes_are_those_of_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
