/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy format of NumPy, versions 1 to 3. unicon__npy_parse (rows_format.h) reads embeddings;
 * here is what pairs and labels need: whole numbers. */
#ifndef UNICON_IO_ROWS_NPY_H
#define UNICON_IO_ROWS_NPY_H

#include "io/bytes.h"

typedef struct unicon__npy {
  char descr[16]; /* byte order and type as in the file, such as "<f4" */
  const unsigned char *data;
  int dims;           /* 1 or 2 */
  int64_t rows, cols; /* 1 column where dims is 1 */
  int64_t row_stride, col_stride;
} unicon__npy;

/* Whether the bytes start as a .npy file does. */
bool unicon__npy_looks_like(unicon__bytes bytes);

/* Is this a table of whole numbers, an .npy file or, by its name, .ibin or .ivecs? (rows_vecs.c) */
bool unicon__is_table(const char *name, unicon__bytes bytes);
unicon_status unicon__table_open(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 unicon__npy *out);

/* An array of one or two dimensions with integers of any size, or float64. */
unicon_status unicon__npy_open_table(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                     unicon__npy *out);

/* One column of such an array, `rows` values, as integers: a value that is not whole or passes
 * int64_t is an error. */
unicon_status unicon__npy_integers(unicon_ctx *ctx, const char *name, const unicon__npy *npy,
                                   int64_t column, int64_t *out);

/* The same as float64. */
void unicon__npy_reals(const unicon__npy *npy, int64_t column, double *out);

#endif
