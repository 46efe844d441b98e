/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors container: 8 bytes little-endian header length, JSON header, tensor bytes.
 * The reader checks every offset against the file and the dtype and shape against the length. */
#ifndef UNICON_IO_SAFETENSORS_H
#define UNICON_IO_SAFETENSORS_H

#include "io/bytes.h"

enum { UNICON__TENSOR_DIMS = 4 }; /* ours have 2 at most; files of others are listed as well */

typedef struct unicon__tensor {
  const char *name;
  const char *dtype; /* "F16" "BF16" "F32" "F64" "I64" ... as in the file */
  int64_t shape[UNICON__TENSOR_DIMS];
  int dims;
  const void *data;
  size_t bytes;
} unicon__tensor;

typedef struct unicon__meta {
  const char *key, *value;
} unicon__meta;

typedef struct unicon__safetensors {
  unicon__tensor *tensor;
  int64_t tensors;
  unicon__meta *meta; /* sorted by key */
  int64_t metas;
} unicon__safetensors;

/* Parses `bytes`; names and metadata are copied into `arena`, tensor data points into `bytes`.
 * `name` is what errors call the file. Tensors are sorted by name; their data may lie at any
 * address, so it is copied or converted, not cast. */
unicon_status unicon__safetensors_parse(unicon_ctx *ctx, unicon__arena *arena, const char *name,
                                        unicon__bytes bytes, unicon__safetensors *out);

/* The tensor of that name of a parsed file, or NULL. */
const unicon__tensor *unicon__tensor_find(const unicon__safetensors *file, const char *name);

/* Writes the container to path by way of a temporary name in the same folder, fsync and rename.
 * Metadata and tensors are written in the given order; the data area starts 64-byte aligned. */
unicon_status unicon__safetensors_write(unicon_ctx *ctx, const char *path,
                                        const unicon__safetensors *content);

/* The same bytes into memory. *size is how many they are; `out` NULL asks for that alone. */
unicon_status unicon__safetensors_bytes(unicon_ctx *ctx, const unicon__safetensors *content,
                                        void *out, size_t room, size_t *size);

#endif
