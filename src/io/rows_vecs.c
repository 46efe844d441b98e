/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of the nearest-neighbour benchmarks. .fvecs and .bvecs: every row is its dimension
 * (int32) and its float32 or uint8 values. .fbin, .u8bin and .i8bin: rows and dimension (uint32
 * each), then all float32, uint8 or int8 values. .ivecs and .ibin are the same with int32 values:
 * labels and pairs. */
#include <inttypes.h>
#include <string.h>

#include "io/rows_format.h"
#include "io/rows_npy.h"
#include "io/text.h"
#include "linalg/convert.h"

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

static unicon_status parse_vecs(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon_dtype dtype, unicon__matrix *out) {
  UNICON_TRY(check_start(ctx, name, bytes, 4));
  const int64_t width = load_u32(bytes.data), element = unicon__dtype_size(dtype);
  if (width < 1 || width > INT32_MAX)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the dimension of row 0 is %" PRId32 "; it must lie in 1 .. %d", name,
                        (int32_t)width, INT32_MAX);
  const int64_t stride = 4 + element * width, size = (int64_t)bytes.size;
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
  out->rows = (unicon__segment){bytes.data + 4, 0, size / stride, stride, element, dtype, NULL, 0};
  out->width = width;
  return UNICON_OK;
}

unicon_status unicon__fvecs_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  return parse_vecs(ctx, name, bytes, UNICON_F32, out);
}

unicon_status unicon__bvecs_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  return parse_vecs(ctx, name, bytes, UNICON_U8, out);
}

/* The matrix behind a header of two counts, `element` bytes a value. */
static unicon_status parse_bin(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                               int64_t element, unicon_dtype dtype, unicon__matrix *out) {
  UNICON_TRY(check_start(ctx, name, bytes, 8));
  const int64_t count = load_u32(bytes.data), width = load_u32(bytes.data + 4);
  int64_t size; /* may pass int64_t */
  const bool overflow =
      __builtin_mul_overflow(count, width, &size) || __builtin_mul_overflow(size, element, &size);
  if (overflow || (uint64_t)size != bytes.size - 8)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the header promises %" PRId64 " rows of %" PRId64 " values of %" PRId64
                        " byte%s, but %zu bytes of data follow",
                        name, count, width, element, element == 1 ? "" : "s", bytes.size - 8);
  out->rows = (unicon__segment){bytes.data + 8, 0, count, element * width, element, dtype, NULL, 0};
  out->width = width;
  return UNICON_OK;
}

unicon_status unicon__fbin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 unicon__matrix *out) {
  return parse_bin(ctx, name, bytes, 4, UNICON_F32, out);
}

unicon_status unicon__u8bin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  return parse_bin(ctx, name, bytes, 1, UNICON_U8, out);
}

unicon_status unicon__i8bin_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  return parse_bin(ctx, name, bytes, 1, UNICON_I8, out);
}

/* ---- tables of whole numbers -------------------------------------------------------------- */

bool unicon__is_table(const char *name, unicon__bytes bytes) {
  return unicon__npy_looks_like(bytes) || unicon__has_suffix(name, ".ibin") ||
         unicon__has_suffix(name, ".ivecs");
}

unicon_status unicon__table_open(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 unicon__npy *out) {
  unicon__matrix m = {.width = 0};
  if (unicon__npy_looks_like(bytes)) return unicon__npy_open_table(ctx, name, bytes, out);
  /* int32 in the place of float32 */
  UNICON_TRY(unicon__has_suffix(name, ".ivecs") ? unicon__fvecs_parse(ctx, name, bytes, &m)
                                                : unicon__fbin_parse(ctx, name, bytes, &m));
  *out = (unicon__npy){.descr = "<i4",
                       .data = m.rows.data,
                       .dims = 2,
                       .rows = m.rows.count,
                       .cols = m.width,
                       .row_stride = m.rows.row_stride,
                       .col_stride = 4};
  return UNICON_OK;
}
