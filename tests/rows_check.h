/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of row sources share. */
#ifndef UNICON_TESTS_ROWS_CHECK_H
#define UNICON_TESTS_ROWS_CHECK_H

#include "scratch.h"

/* The 3 by 2 matrix of all tests: element (i, j) is 10 i + j. */
static const float matrix_c[6] = {0, 1, 10, 11, 20, 21};
static const float matrix_f[6] = {0, 10, 20, 1, 11, 21};

#define DICT(descr, fortran, shape) \
  "{'descr': '" descr "', 'fortran_order': " fortran ", 'shape': " shape ", }  \n"

static inline unicon_rows *open_rows(scratch *s, const char *path) {
  unicon_rows *rows = NULL;
  const unicon_status status = unicon_rows_open(s->ctx, path, &rows);
  if (status) print_error("%s\n", unicon_ctx_error(s->ctx));
  assert_int_equal(status, UNICON_OK);
  return rows;
}

static inline void expect_matrix(scratch *s, const char *path) {
  float out[6];
  unicon_rows *rows = open_rows(s, path);
  assert_int_equal(unicon_rows_count(rows), 3);
  assert_int_equal(unicon_rows_width(rows), 2);
  assert_int_equal(unicon_rows_read(s->ctx, rows, 0, 3, out), UNICON_OK);
  assert_memory_equal(out, matrix_c, sizeof out);
  assert_int_equal(unicon_rows_read(s->ctx, rows, 2, 1, out), UNICON_OK);
  assert_memory_equal(out, matrix_c + 4, 2 * sizeof *out);
  unicon_rows_close(rows);
}

static inline void refused(scratch *s, const char *path, unicon_status expected, const char *word,
                           const char *other) {
  unicon_rows *rows = (unicon_rows *)(void *)s;
  scratch_failed(s, unicon_rows_open(s->ctx, path, &rows), expected, word, other);
  assert_null(rows);
}

#endif
