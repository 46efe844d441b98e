/* SPDX-License-Identifier: Apache-2.0 */
/* The two formats of the nearest-neighbour benchmarks. .fvecs: every row is its dimension (int32)
 * and its float32 values. .fbin: rows and dimension (uint32 each), then all float32 values. */
#include <inttypes.h>
#include <string.h>

#include "io/rows_format.h"

static uint32_t load_u32(const unsigned char *p) {
  uint32_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

static unicon_status check_start(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 size_t header) {
  if (bytes.size >= header) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s has %zu bytes; its format starts with %zu", name,
                      bytes.size, header);
}

unicon_status unicon__fvecs_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  UNICON_TRY(check_start(ctx, name, bytes, 4));
  const int64_t width = load_u32(bytes.data);
  if (width < 1 || width > INT32_MAX)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the dimension of row 0 is %" PRId64 "; it must lie in 1 .. %d", name,
                        width, INT32_MAX);
  const int64_t stride = 4 + 4 * width, size = (int64_t)bytes.size;
  for (int64_t row = 0; row < size / stride; row++) {
    const uint32_t here = load_u32(bytes.data + row * stride);
    if (here != (uint32_t)width)
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "%s: the dimension of row %" PRId64 " is %" PRIu32
                          ", but that of the rows before it is %" PRId64,
                          name, row, here, width);
  }
  if (size % stride)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is cut off: %" PRId64 " bytes are not a multiple of the %" PRId64
                        " bytes of a row",
                        name, size, stride);
  out->rows = (unicon__segment){bytes.data + 4, 0, size / stride, stride, 4, UNICON_F32};
  out->width = width;
  return UNICON_OK;
}

unicon_status unicon__fbin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 unicon__matrix *out) {
  UNICON_TRY(check_start(ctx, name, bytes, 8));
  const int64_t count = load_u32(bytes.data), width = load_u32(bytes.data + 4);
  int64_t values; /* at most 2^64 - 2^33 + 1: may pass int64_t */
  const bool overflow = __builtin_mul_overflow(count, width, &values);
  if (overflow || (bytes.size - 8) % 4 || (uint64_t)values != (bytes.size - 8) / 4)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the header promises %" PRId64 " rows of %" PRId64
                        " float32 values, but %zu bytes of data follow",
                        name, count, width, bytes.size - 8);
  out->rows = (unicon__segment){bytes.data + 8, 0, count, 4 * width, 4, UNICON_F32};
  out->width = width;
  return UNICON_OK;
}
