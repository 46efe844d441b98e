/* SPDX-License-Identifier: Apache-2.0 */
/* What a file format must provide: a parser from bytes to one strided matrix. A new format is a
 * parser and a line in the table of rows.c. */
#ifndef UNICON_IO_ROWS_FORMAT_H
#define UNICON_IO_ROWS_FORMAT_H

#include "io/rows.h"

/* The matrix of one file; rows.first is left 0. */
typedef struct unicon__matrix {
  unicon__segment rows;
  int64_t width;
} unicon__matrix;

/* `name` is the path as the user gave it, with any ":tensor". The matrix points into `bytes`; it
 * may be empty, which the caller refuses. */
typedef unicon_status (*unicon__matrix_parser)(unicon_ctx *ctx, const char *name,
                                               unicon__bytes bytes, unicon__matrix *out);

unicon_status unicon__npy_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon__matrix *out);
unicon_status unicon__fvecs_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out);
unicon_status unicon__fbin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 unicon__matrix *out);
unicon_status unicon__bvecs_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out);
unicon_status unicon__u8bin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out);
unicon_status unicon__i8bin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out);
unicon_status unicon__npz_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon__matrix *out);
unicon_status unicon__faiss_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out);
unicon_status unicon__tensor_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                   unicon__matrix *out);

/* "FILE.safetensors:TENSOR", "FILE.npz:ARRAY": the part after the colon, or NULL. */
const char *unicon__member_part(const char *name);

/* Room for `files` files, then the files one by one, in row order. */
unicon_status unicon__rows_reserve(unicon_ctx *ctx, unicon_rows *rows, int64_t files);
unicon_status unicon__rows_add(unicon_ctx *ctx, unicon_rows *rows, const char *path,
                               const char *name, unicon__matrix_parser parse);

/* All numbered .npy files of a folder as one matrix. */
unicon_status unicon__rows_open_shards(unicon_ctx *ctx, unicon_rows *rows, const char *folder);

/* The header of an .npy file in C order; 128 bytes are a multiple of 64, as the format asks, and
 * hold any two sizes. */
enum { UNICON__NPY_HEADER = 128 };
void unicon__npy_header(const char *descr, int64_t rows, int64_t width,
                        char out[UNICON__NPY_HEADER + 1]);

#endif
