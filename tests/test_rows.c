/* SPDX-License-Identifier: Apache-2.0 */
/* Row sources other than .npy: every format gives the same numbers, every defect a sentence. */
#include "rows_check.h"

#include "io/rows.h"
#include "linalg/convert.h"

static void paths(void **state) {
  scratch *s = *state;
  refused(s, scratch_path(s, "none.npy"), UNICON_ERR_IO, "none.npy", "No such file");
  refused(s, scratch_path(s, "none"), UNICON_ERR_IO, "none", "No such file");
  const char *pipe_path = scratch_path(s, "pipe.npy");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  refused(s, pipe_path, UNICON_ERR_IO, "pipe.npy is a pipe", "not a regular file");
  const char *device = scratch_path(s, "null.npy");
  assert_int_equal(symlink("/dev/null", device), 0);
  refused(s, device, UNICON_ERR_IO, "null.npy is a device", "not a regular file");
}

static void vecs(void **state) {
  scratch *s = *state;
  int32_t words[9] = {2, 0, 0, 2, 0, 0, 2, 0, 0};
  for (int i = 0; i < 3; i++) memcpy(words + 3 * i + 1, matrix_c + 2 * i, 8);
  expect_matrix(s, scratch_write(s, "a.fvecs", words, sizeof words));
  refused(s, scratch_write(s, "cut.fvecs", words, 32), UNICON_ERR_FORMAT, "cut.fvecs is cut off",
          "32 bytes");
  refused(s, scratch_write(s, "tiny.fvecs", words, 3), UNICON_ERR_FORMAT, "tiny.fvecs", "3 bytes");
  words[6] = 3;
  refused(s, scratch_write(s, "mixed.fvecs", words, sizeof words), UNICON_ERR_FORMAT,
          "dimension of row 2 is 3", "before it is 2");
  for (int32_t bad = -1; bad <= 0; bad++) {
    words[0] = bad;
    refused(s, scratch_write(s, "bad.fvecs", words, sizeof words), UNICON_ERR_FORMAT,
            bad ? "dimension of row 0 is -1" : "dimension of row 0 is 0", "1 .. ");
  }
  uint32_t flat[8] = {3, 2};
  memcpy(flat + 2, matrix_c, 24);
  expect_matrix(s, scratch_write(s, "a.fbin", flat, sizeof flat));
  refused(s, scratch_write(s, "cut.fbin", flat, 31), UNICON_ERR_FORMAT, "3 rows of 2", "23 bytes");
  refused(s, scratch_write(s, "tiny.fbin", flat, 7), UNICON_ERR_FORMAT, "tiny.fbin", "7 bytes");
  flat[0] = 4;
  refused(s, scratch_write(s, "lie.fbin", flat, sizeof flat), UNICON_ERR_FORMAT, "4 rows of 2",
          "24 bytes");
  flat[0] = flat[1] = UINT32_MAX;
  refused(s, scratch_write(s, "huge.fbin", flat, sizeof flat), UNICON_ERR_FORMAT, "4294967295 rows",
          "24 bytes");
  flat[0] = 0;
  refused(s, scratch_write(s, "empty.fbin", flat, 8), UNICON_ERR_DATA, "empty.fbin is empty",
          "0 rows");
}

static void tensors(void **state) {
  scratch *s = *state;
  static const char header[] =
      "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[3,2],"
      "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[24,36]}"
      ",\"c\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[36,44]},"
      "\"d\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[44,68]}}";
  unsigned char data[68] = {0};
  memcpy(data, matrix_c, 24);
  for (int k = 0; k < 6; k++) memcpy(data + 24 + 2 * k, (const char *)&matrix_c[k] + 2, 2);
  const file_image file = safetensors_make(header, data, sizeof data);
  scratch_write(s, "t.safetensors", file.bytes, file.size);
  expect_matrix(s, scratch_path(s, "t.safetensors:a"));
  expect_matrix(s, scratch_path(s, "t.safetensors:b"));
  refused(s, scratch_path(s, "t.safetensors:zz"), UNICON_ERR_FORMAT, "no tensor 'zz'",
          "'a', 'b', 'c', 'd'");
  refused(s, scratch_path(s, "t.safetensors"), UNICON_ERR_FORMAT, "3 tensors of 2 dimensions",
          "'a', 'b', 'c', 'd'");
  refused(s, scratch_path(s, "t.safetensors:c"), UNICON_ERR_FORMAT, "'c' has dtype I64", "BF16");
  refused(s, scratch_path(s, "t.safetensors:d"), UNICON_ERR_SHAPE, "'d' has 1 dimension",
          "needs 2 dimensions");
  refused(s, scratch_path(s, "u.safetensors:a"), UNICON_ERR_IO, "u.safetensors", "No such file");
  static const char one[] =
      "{\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
      "\"m\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}}";
  const file_image single = safetensors_make(one, data, 32);
  expect_matrix(s, scratch_write(s, "one.safetensors", single.bytes, single.size));
  const file_image none = safetensors_make("{}", data, 0);
  refused(s, scratch_write(s, "none.safetensors", none.bytes, none.size), UNICON_ERR_FORMAT,
          "has no tensor of 2 dimensions", "no tensors");
}

/* Writes rows first .. first+count-1 of the 10 i + j matrix as one shard. */
static void write_shard(scratch *s, const char *name, int first, int count, bool half) {
  float values[64];
  uint16_t halves[64];
  char dictionary[128];
  for (int k = 0; k < 2 * count; k++) values[k] = (float)(10 * (first + k / 2) + k % 2);
  unicon__to_half(values, 2 * count, halves);
  snprintf(dictionary, sizeof dictionary,
           "{'descr': '%s', 'fortran_order': False, 'shape': (%d, 2), }\n", half ? "<f2" : "<f4",
           count);
  scratch_npy(s, name, dictionary, half ? (const void *)halves : values,
              (size_t)(half ? 4 : 8) * (size_t)count);
}

static const char *make_folder(scratch *s, const char *name) {
  const char *path = scratch_path(s, name);
  assert_int_equal(mkdir(path, 0700), 0);
  return path;
}

static void shards(void **state) {
  scratch *s = *state;
  const char *folder = make_folder(s, "img");
  write_shard(s, "img/img_emb_10.npy", 5, 3, true); /* after 2, though "10" < "2" as text */
  write_shard(s, "img/img_emb_2.npy", 3, 2, false);
  write_shard(s, "img/img_emb_0.npy", 0, 3, false);
  scratch_text(s, "img/notes.txt", "ignored");
  scratch_text(s, "img/mean.npy", "ignored, has no number");
  scratch_text(s, "img/.img_emb_1.npy", "ignored, hidden");
  unicon_rows *rows = open_rows(s, folder);
  assert_int_equal(unicon_rows_count(rows), 8);
  assert_int_equal(rows->segments, 3);
  float out[8][3];
  for (int first = 0; first < 8; first++) {
    memset(out, 0, sizeof out);
    unicon__rows_load(rows, NULL, first, 8 - first, &out[0][0], 3);
    for (int k = 0; k < 8 - first; k++) {
      assert_true(out[k][0] == (float)(10 * (first + k)));
      assert_true(out[k][1] == (float)(10 * (first + k) + 1));
      assert_true(out[k][2] == 0.0f); /* the gap of the leading dimension stays */
    }
  }
  const int64_t index[5] = {7, 0, 4, 4, 2};
  unicon__rows_load(rows, index, 0, 5, &out[0][0], 3);
  for (int k = 0; k < 5; k++) assert_true(out[k][1] == (float)(10 * index[k] + 1));
  unicon_rows_close(rows);
}

static void shard_defects(void **state) {
  scratch *s = *state;
  const char *folder = make_folder(s, "f");
  refused(s, folder, UNICON_ERR_FORMAT, "/f has no numbered .npy files", "img_emb_0.npy");
  write_shard(s, "f/a_0.npy", 0, 1, false);
  write_shard(s, "f/b_1.npy", 1, 1, false);
  refused(s, folder, UNICON_ERR_FORMAT, "a_0.npy and b_1.npy", "two series");
  scratch_remove(scratch_path(s, "f/b_1.npy"));
  write_shard(s, "f/a_00.npy", 1, 1, false);
  refused(s, folder, UNICON_ERR_FORMAT, "a_00.npy", "one number");
  scratch_remove(scratch_path(s, "f/a_00.npy"));
  scratch_npy(s, "f/a_3.npy", DICT("<f4", "False", "(2, 3)"), matrix_c, 24);
  refused(s, folder, UNICON_ERR_SHAPE, "a_3.npy has 3 columns", "before it have 2");
  scratch_npy(s, "f/a_3.npy", DICT("<f4", "False", "(0, 2)"), NULL, 0);
  refused(s, folder, UNICON_ERR_DATA, "a_3.npy is empty", "0 rows");
  scratch_text(s, "f/a_3.npy", "short");
  refused(s, folder, UNICON_ERR_FORMAT, "f/a_3.npy", "not an .npy file");
  /* Plain numbers, more of them than the first room. */
  make_folder(s, "many");
  for (int k = 0; k < 100; k++) {
    char name[32];
    snprintf(name, sizeof name, "many/%d.npy", k);
    write_shard(s, name, k, 1, k % 2);
  }
  unicon_rows *rows = open_rows(s, scratch_path(s, "many"));
  float out[2];
  for (int k = 99; k >= 0; k--) {
    assert_int_equal(unicon_rows_read(s->ctx, rows, k, 1, out), UNICON_OK);
    assert_true(out[0] == (float)(10 * k));
  }
  unicon_rows_close(rows);
}

static void wrapped(void **state) {
  scratch *s = *state;
  unicon_rows *rows;
  float out[6];
  const struct {
    const float *data;
    int64_t row_stride, col_stride;
    float expected[6];
  } cases[] = {{matrix_c, 8, 4, {0, 1, 10, 11, 20, 21}},
               {matrix_f, 4, 12, {0, 1, 10, 11, 20, 21}},
               {matrix_c + 5, -8, -4, {21, 20, 11, 10, 1, 0}},
               {matrix_c + 2, 0, 4, {10, 11, 10, 11, 10, 11}}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    assert_int_equal(unicon_rows_wrap(s->ctx, "m", cases[k].data, UNICON_F32, 3, 2,
                                      cases[k].row_stride, cases[k].col_stride, &rows),
                     UNICON_OK);
    assert_int_equal(unicon_rows_read(s->ctx, rows, 0, 3, out), UNICON_OK);
    assert_memory_equal(out, cases[k].expected, sizeof out);
    unicon_rows_close(rows);
  }
}

static void wrap_defects(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_rows *rows;
  const int64_t big = INT64_MAX / 2;
  const struct {
    const char *name;
    const void *data;
    int dtype;
    int64_t count, width, row_stride, col_stride;
    unicon_status status;
    const char *word;
  } cases[] = {
      {NULL, matrix_c, 2, 3, 2, 8, 4, UNICON_ERR_ARGUMENT, "name is NULL"},
      {"m", NULL, 2, 3, 2, 8, 4, UNICON_ERR_ARGUMENT, "data is NULL"},
      {"m", matrix_c, 9, 3, 2, 8, 4, UNICON_ERR_ARGUMENT, "dtype 9"},
      {"m", matrix_c, 2, -3, 2, 8, 4, UNICON_ERR_ARGUMENT, "-3 rows of 2"},
      {"m", matrix_c, 2, 3, -2, 8, 4, UNICON_ERR_ARGUMENT, "3 rows of -2"},
      {"m", matrix_c, 2, 0, 2, 8, 4, UNICON_ERR_DATA, "m is empty: 0 rows of 2"},
      {"m", matrix_c, 2, 3, 0, 8, 4, UNICON_ERR_DATA, "m is empty: 3 rows of 0"},
      {"m", matrix_c, 2, 3, 2, big, 4, UNICON_ERR_ARGUMENT, "4611686018427387903"},
      {"m", matrix_c, 2, 3, 2, 8, -INT64_MAX, UNICON_ERR_ARGUMENT, "-9223372036854775807"},
      {"m", matrix_c, 2, big, 3, 0, 0, UNICON_ERR_ARGUMENT, "do not fit"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rows = (unicon_rows *)(void *)s;
    scratch_failed(s,
                   unicon_rows_wrap(ctx, cases[k].name, cases[k].data, (unicon_dtype)cases[k].dtype,
                                    cases[k].count, cases[k].width, cases[k].row_stride,
                                    cases[k].col_stride, &rows),
                   cases[k].status, cases[k].word, "");
    assert_null(rows);
  }
  scratch_failed(s, unicon_rows_wrap(ctx, "m", matrix_c, UNICON_F32, 3, 2, 8, 4, NULL),
                 UNICON_ERR_ARGUMENT, "out is NULL", "");
  assert_int_equal(unicon_rows_wrap(NULL, "m", matrix_c, UNICON_F32, 3, 2, 8, 4, &rows),
                   UNICON_ERR_ARGUMENT);
}

static void arguments(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_rows *rows;
  float out[6];
  assert_int_equal(unicon_rows_open(NULL, "a.npy", &rows), UNICON_ERR_ARGUMENT);
  scratch_failed(s, unicon_rows_open(ctx, NULL, &rows), UNICON_ERR_ARGUMENT, "path is NULL", "");
  scratch_failed(s, unicon_rows_open(ctx, "a.npy", NULL), UNICON_ERR_ARGUMENT, "out is NULL", "");
  assert_int_equal(unicon_rows_wrap(ctx, "wrapped", matrix_c, UNICON_F32, 3, 2, 8, 4, &rows), 0);
  const int64_t ranges[][2] = {{-1, 1}, {0, 4}, {3, 1}, {4, 0}, {1, -1}, {1, INT64_MAX}};
  for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
    scratch_failed(s, unicon_rows_read(ctx, rows, ranges[k][0], ranges[k][1], out),
                   UNICON_ERR_ARGUMENT, "wrapped", "it has 3 rows");
  scratch_failed(s, unicon_rows_read(ctx, NULL, 0, 1, out), UNICON_ERR_ARGUMENT, "rows is NULL",
                 "");
  scratch_failed(s, unicon_rows_read(ctx, rows, 0, 1, NULL), UNICON_ERR_ARGUMENT, "out is NULL",
                 "");
  assert_int_equal(unicon_rows_read(NULL, rows, 0, 1, out), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_rows_read(ctx, rows, 3, 0, out), UNICON_OK);
  unicon_rows_close(rows);
  unicon_rows_close(NULL);
  assert_int_equal(unicon_rows_count(NULL), 0);
  assert_int_equal(unicon_rows_width(NULL), 0);
}

static unicon_status open_and_close(scratch *s, void *user) {
  unicon_rows *rows;
  const unicon_status status = unicon_rows_open(s->ctx, user, &rows);
  if (status) assert_null(rows);
  unicon_rows_close(rows);
  return status;
}

static unicon_status wrap_and_close(scratch *s, void *user) {
  unicon_rows *rows;
  (void)user;
  const unicon_status status =
      unicon_rows_wrap(s->ctx, "m", matrix_c, UNICON_F32, 3, 2, 8, 4, &rows);
  if (status) assert_null(rows);
  unicon_rows_close(rows);
  return status;
}

static void failures(void **state) {
  scratch *s = *state;
  unicon__faults *faults = &s->ctx->faults;
  char file[1024], folder[1024];
  snprintf(folder, sizeof folder, "%s", make_folder(s, "f"));
  write_shard(s, "f/a_0.npy", 0, 2, false);
  write_shard(s, "f/a_1.npy", 2, 2, false);
  snprintf(file, sizeof file, "%s/f/a_0.npy", s->folder);
  assert_true(scratch_faults(s, &faults->io, UNICON_ERR_IO, open_and_close, file) >= 4);
  assert_true(scratch_faults(s, &faults->io, UNICON_ERR_IO, open_and_close, folder) >= 9);
  assert_true(scratch_faults(s, &faults->allocation, UNICON_ERR_MEMORY, open_and_close, folder) >=
              6);
  assert_true(scratch_faults(s, &faults->allocation, UNICON_ERR_MEMORY, wrap_and_close, NULL) >= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(paths),        SCRATCH_TEST(vecs),          SCRATCH_TEST(tensors),
      SCRATCH_TEST(shards),       SCRATCH_TEST(shard_defects), SCRATCH_TEST(wrapped),
      SCRATCH_TEST(wrap_defects), SCRATCH_TEST(arguments),     SCRATCH_TEST(failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
