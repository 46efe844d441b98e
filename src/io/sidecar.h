/* SPDX-License-Identifier: Apache-2.0 */
/* FILE.json beside FILE: which model made the vectors in FILE and in which space they lie. A vector
 * carries no name, and the header of an .npy file has no room for one. */
#ifndef UNICON_IO_SIDECAR_H
#define UNICON_IO_SIDECAR_H

#include "io/bytes.h"

enum { UNICON__SIDECAR_ID = 17, UNICON__SIDECAR_WORD = 16 };

typedef struct unicon__sidecar {
  char model[UNICON__SIDECAR_ID];   /* unicon_model_id */
  char space[UNICON__SIDECAR_WORD]; /* old, new or shared */
  char form[UNICON__SIDECAR_WORD];  /* unit, index, ... */
  char dtype[UNICON__SIDECAR_WORD]; /* <f4 or <f2 */
  int64_t rows, width;
  int64_t first;                   /* row of the source that the first row is of */
  char source[UNICON__SIDECAR_ID]; /* of rows of the source, to know it again */
  char hash[UNICON__SIDECAR_ID];   /* of the data, or of what is written so far */
  int64_t done;                    /* rows that are written */
} unicon__sidecar;

/* Reads the JSON in `bytes`; `name` is what errors call it. */
unicon_status unicon__sidecar_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                    unicon__sidecar *out);

/* The sidecar at `path`; *found is false where there is no such file. */
unicon_status unicon__sidecar_read(unicon_ctx *ctx, const char *path, unicon__sidecar *out,
                                   bool *found);

/* Writes it whole or not at all. */
unicon_status unicon__sidecar_write(unicon_ctx *ctx, const char *path,
                                    const unicon__sidecar *sidecar);

#endif
