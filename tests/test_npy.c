/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy format: types, orders and versions read, and every defect of a header refused. */
#include "rows_check.h"

#include <fcntl.h>

#include "linalg/convert.h"

static void npy_types(void **state) {
  scratch *s = *state;
  double wide[6];
  uint16_t half[6];
  signed char small[6];
  for (int k = 0; k < 6; k++) {
    wide[k] = (double)matrix_c[k];
    small[k] = (signed char)matrix_c[k];
  }
  unicon__to_half(matrix_c, 6, half);
  expect_matrix(s, scratch_npy(s, "a.npy", DICT("<f4", "False", "(3, 2)"), matrix_c, 24));
  expect_matrix(s, scratch_npy(s, "b.npy", DICT("=f4", "False", "(3, 2)"), matrix_c, 24));
  expect_matrix(s, scratch_npy(s, "c.npy", DICT("<f4", "True", "(3, 2)"), matrix_f, 24));
  expect_matrix(s, scratch_npy(s, "d.npy", DICT("<f8", "False", "(3, 2)"), wide, 48));
  expect_matrix(s, scratch_npy(s, "e.npy", DICT("<f2", "False", "(3, 2)"), half, 12));
  expect_matrix(s, scratch_npy(s, "f.npy", DICT("|i1", "False", "(3, 2)"), small, 6));
  expect_matrix(s, scratch_npy(s, "g.npy", DICT("|u1", "False", "(3, 2)"), small, 6));
  /* Other quotes, other order, no blanks, no comma at the end. */
  expect_matrix(s, scratch_npy(s, "h.npy", "{\"shape\":(3,2),'fortran_order':False,'descr':'<f4'}",
                               matrix_c, 24));
  for (int version = 1; version <= 3; version++) {
    const file_image image = npy_make(version, DICT("<f4", "True", "(3, 2)"), matrix_f, 24);
    expect_matrix(s, scratch_write(s, "v.npy", image.bytes, image.size));
  }
}

static void npy_header_defects(void **state) {
  scratch *s = *state;
  static const char *const broken[] = {
      "",
      "nonsense",
      "{'descr': '<f4', 'fortran_order': False, }",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 99999999999999999999)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'more': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)} x",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (3, 2)}",
      "{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (3, 2)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (3, 2)}",
      "{descr: '<f4', 'fortran_order': Fal",
  };
  for (size_t k = 0; k < sizeof broken / sizeof *broken; k++)
    refused(s, scratch_npy(s, "broken.npy", broken[k], matrix_c, 24), UNICON_ERR_FORMAT,
            "broken.npy", "header is damaged at byte");
}

static void npy_refused(void **state) {
  scratch *s = *state;
  static const char *const types[] = {">f4", "<i4", "|b1", "|S3", "<f16", "<U5", "f4", ""};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    char dictionary[128], quoted[32];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '%s', 'fortran_order': False, 'shape': (3, 2), }\n", types[k]);
    snprintf(quoted, sizeof quoted, "dtype '%s'; ", types[k]);
    refused(s, scratch_npy(s, "t.npy", dictionary, matrix_c, 24), UNICON_ERR_FORMAT, quoted,
            "t.npy').astype('<f4')");
    assert_non_null(strstr(unicon_ctx_error(s->ctx), "f2 f4 f8 i1 u1"));
  }
  refused(s,
          scratch_npy(s, "s.npy",
                      "{'descr': [('a', '<f4'), ('b', '<i8', (2,))], 'fortran_order': False, "
                      "'shape': (3,), }",
                      matrix_c, 24),
          UNICON_ERR_FORMAT, "dtype 'structured'", "s.npy");
  refused(s, scratch_npy(s, "1.npy", DICT("<f4", "False", "(6,)"), matrix_c, 24), UNICON_ERR_SHAPE,
          "1 dimension,", "needs 2 dimensions");
  refused(s, scratch_npy(s, "0.npy", DICT("<f4", "False", "()"), matrix_c, 4), UNICON_ERR_SHAPE,
          "0 dimensions", "needs 2 dimensions");
  refused(s, scratch_npy(s, "3.npy", DICT("<f4", "False", "(1, 3, 2)"), matrix_c, 24),
          UNICON_ERR_SHAPE, "3 dimensions", "needs 2 dimensions");
  refused(s, scratch_npy(s, "cut.npy", DICT("<f4", "False", "(3, 2)"), matrix_c, 23),
          UNICON_ERR_FORMAT, "cut.npy is cut off", "promises 24 bytes of data, the file has 23");
  refused(s, scratch_npy(s, "long.npy", DICT("<f4", "False", "(2, 2)"), matrix_c, 24),
          UNICON_ERR_FORMAT, "long.npy is too long", "promises 16 bytes of data, the file has 24");
  refused(s,
          scratch_npy(s, "h.npy", DICT("<f4", "False", "(4611686018427387905, 4)"), matrix_c, 16),
          UNICON_ERR_FORMAT, "4611686018427387905 by 4", "is larger than any file");
  refused(s, scratch_npy(s, "e.npy", DICT("<f4", "False", "(0, 2)"), NULL, 0), UNICON_ERR_DATA,
          "e.npy is empty", "0 rows of 2 columns");
  refused(s, scratch_npy(s, "w.npy", DICT("<f4", "False", "(2, 0)"), NULL, 0), UNICON_ERR_DATA,
          "w.npy is empty", "2 rows of 0 columns");
}

static void npy_start_defects(void **state) {
  scratch *s = *state;
  file_image image = npy_make(1, DICT("<f4", "False", "(3, 2)"), matrix_c, 24);
  for (size_t size = 0; size < image.size; size++) {
    unicon_rows *rows;
    const char *path = scratch_write(s, "p.npy", image.bytes, size);
    scratch_failed(s, unicon_rows_open(s->ctx, path, &rows), UNICON_ERR_FORMAT, "p.npy", "");
    assert_null(rows);
  }
  refused(s, scratch_write(s, "p.npy", image.bytes, 20), UNICON_ERR_FORMAT, "p.npy is cut off",
          "the file has 20");
  image.bytes[6] = 4;
  refused(s, scratch_write(s, "p.npy", image.bytes, image.size), UNICON_ERR_FORMAT, "version 4",
          "p.npy");
  refused(s, scratch_text(s, "p.npy", "PK zip file"), UNICON_ERR_FORMAT, "p.npy",
          "not an .npy file");
}

/* A file of version 2 whose header says it takes `length` bytes, all of them there: a dictionary
 * with a name that ends where the header does. The blanks of it are a hole in the file. */
static const char *long_header(scratch *s, const char *name, uint32_t length) {
  file_image image = {.size = 0};
  image_add(&image, "\x93NUMPY\2\0", 8);
  image_add_length(&image, length, 4);
  image_add(&image, "{'", 2);
  const char *path = scratch_write(s, name, image.bytes, image.size);
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, "'", 1, 12 + (off_t)length - 1), 1);
  close(file);
  return path;
}

/* Every reader of .npy refuses a header above 1 MiB; from 2 GiB on its length passes an int. */
static void npy_header_length(void **state) {
  scratch *s = *state;
  static const uint32_t lengths[] = {(1u << 20) + 1, UINT32_MAX, 0x80000010u};
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    unicon_pairs *pairs = (unicon_pairs *)(void *)s;
    unicon_labels *labels = (unicon_labels *)(void *)s;
    char taken[32];
    snprintf(taken, sizeof taken, "takes %lu bytes", (unsigned long)lengths[k]);
    const char *path = long_header(s, "long.npy", lengths[k]);
    refused(s, path, UNICON_ERR_FORMAT, taken, "at most 1048576");
    scratch_failed(s, unicon_pairs_read(s->ctx, path, 3, 3, &pairs), UNICON_ERR_FORMAT, taken,
                   "long.npy");
    assert_null(pairs);
    scratch_failed(s, unicon_pairs_read_labels(s->ctx, path, path, 3, 3, &pairs), UNICON_ERR_FORMAT,
                   taken, "long.npy");
    scratch_failed(s, unicon_labels_read(s->ctx, path, 3, NULL, 0, &labels), UNICON_ERR_FORMAT,
                   taken, "long.npy");
    assert_null(labels);
  }
  /* What is no longer than that is read: this one is damaged, not too long. */
  refused(s, long_header(s, "long.npy", 1u << 20), UNICON_ERR_FORMAT, "header is damaged at byte",
          "long.npy");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(npy_types),         SCRATCH_TEST(npy_header_defects), SCRATCH_TEST(npy_refused),
      SCRATCH_TEST(npy_start_defects), SCRATCH_TEST(npy_header_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
