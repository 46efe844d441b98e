/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices to .npy and .fbin files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/bytes.h"
#include "io/object.h"
#include "io/outfile.h"
#include "io/rows_format.h"
#include "io/text.h"
#include "linalg/convert.h"
#include "unicon/tools.h"

enum { CHUNK = 1 << 14 }; /* values converted at a time */

struct unicon_writer {
  unicon__arena arena;
  unicon__outfile *file;
  unicon_file_dtype dtype;
  int64_t rows, width, written;
  uint16_t *half; /* CHUNK values; NULL unless float16 */
};

static const struct {
  const char *descr;
  int64_t size;
} dtypes[] = {[UNICON_WRITE_F32] = {"<f4", 4},
              [UNICON_WRITE_F16] = {"<f2", 2},
              [UNICON_WRITE_I64] = {"<i8", 8}};

static unicon_status write_npy_header(unicon_ctx *ctx, const unicon_writer *writer) {
  char header[UNICON__NPY_HEADER + 1];
  unicon__npy_header(dtypes[writer->dtype].descr, writer->rows, writer->width, header);
  return unicon__outfile_write(ctx, writer->file, header, UNICON__NPY_HEADER);
}

static unicon_status write_fbin_header(unicon_ctx *ctx, const unicon_writer *writer) {
  const uint32_t header[2] = {(uint32_t)writer->rows, (uint32_t)writer->width};
  return unicon__outfile_write(ctx, writer->file, header, sizeof header);
}

static unicon_status check_open_arguments(unicon_ctx *ctx, const char *path,
                                          unicon_file_dtype dtype, int64_t rows, int64_t width) {
  UNICON_NEED(ctx, path);
  if ((unsigned)dtype >= sizeof dtypes / sizeof *dtypes)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: dtype %d is not one of UNICON_WRITE_F32 (0), F16 (1), I64 (2)", path,
                        (int)dtype);
  int64_t bytes;
  if (rows < 1 || width < 1 || __builtin_mul_overflow(rows, width, &bytes) ||
      __builtin_mul_overflow(bytes, 8, &bytes))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: a file of %" PRId64 " rows of %" PRId64
                        " columns cannot be written; both must be at least 1",
                        path, rows, width);
  const bool fbin = unicon__has_suffix(path, ".fbin");
  if (!fbin && !unicon__has_suffix(path, ".npy"))
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: the name must end in .npy or .fbin", path);
  if (fbin && dtype != UNICON_WRITE_F32)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: .fbin files hold float32 ('<f4'), not '%s'; write an .npy file", path,
                        dtypes[dtype].descr);
  if (fbin && (rows > UINT32_MAX || width > UINT32_MAX))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: %" PRId64 " rows of %" PRId64
                        " columns do not fit into an .fbin file; write an .npy file",
                        path, rows, width);
  return UNICON_OK;
}

static unicon_status start(unicon_ctx *ctx, unicon_writer *writer, const char *path) {
  if (writer->dtype == UNICON_WRITE_F16) UNICON_ARENA_NEW(ctx, &writer->arena, writer->half, CHUNK);
  UNICON_TRY(unicon__outfile_open(ctx, &writer->arena, path, &writer->file));
  return unicon__has_suffix(path, ".fbin") ? write_fbin_header(ctx, writer)
                                           : write_npy_header(ctx, writer);
}

static unicon_status writer_open(unicon_ctx *ctx, const char *path, unicon_file_dtype dtype,
                                 int64_t rows, int64_t width, unicon_writer **out) {
  UNICON_NEED(ctx, out);
  UNICON_TRY(check_open_arguments(ctx, path, dtype, rows, width));
  unicon_writer *writer = unicon__object_new(ctx, sizeof *writer);
  if (!writer) return UNICON_ERR_MEMORY;
  writer->dtype = dtype;
  writer->rows = rows;
  writer->width = width;
  const unicon_status status = start(ctx, writer, path);
  if (status == UNICON_OK)
    *out = writer;
  else
    unicon_writer_discard(writer);
  return status;
}

unicon_status unicon_writer_open(unicon_ctx *ctx, const char *path, unicon_file_dtype dtype,
                                 int64_t rows, int64_t width, unicon_writer **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, writer_open(ctx, path, dtype, rows, width, out));
}

/* A finite value must not become an infinity. */
static unicon_status check_half(unicon_ctx *ctx, const unicon_writer *writer, const float *values,
                                int64_t count) {
  const float limit = 65520; /* rounds up to 2^16 */
  for (int64_t k = 0; k < count; k++)
    if (fabsf(values[k]) >= limit && !isinf(values[k]))
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "%g in row %" PRId64 " is beyond float16 (65504); write float32",
                          (double)values[k], writer->written + k / writer->width);
  return UNICON_OK;
}

static unicon_status write_half(unicon_ctx *ctx, const unicon_writer *writer, const float *values,
                                int64_t count) {
  UNICON_TRY(check_half(ctx, writer, values, count));
  for (int64_t done = 0; done < count; done += CHUNK) {
    const int64_t now = count - done < CHUNK ? count - done : CHUNK;
    unicon__to_half(values + done, now, writer->half);
    UNICON_TRY(unicon__outfile_write(ctx, writer->file, writer->half, 2 * (size_t)now));
  }
  return UNICON_OK;
}

static unicon_status writer_append(unicon_ctx *ctx, unicon_writer *writer, const void *rows,
                                   int64_t count) {
  UNICON_NEED(ctx, writer);
  UNICON_NEED(ctx, rows);
  if (count < 0 || count > writer->rows - writer->written)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%" PRId64 " rows were given after %" PRId64 ", but the file has %" PRId64,
                        count, writer->written, writer->rows);
  const int64_t values = count * writer->width;
  if (writer->half)
    UNICON_TRY(write_half(ctx, writer, rows, values));
  else
    UNICON_TRY(unicon__outfile_write(ctx, writer->file, rows,
                                     (size_t)(values * dtypes[writer->dtype].size)));
  writer->written += count;
  return UNICON_OK;
}

unicon_status unicon_writer_append(unicon_ctx *ctx, unicon_writer *writer, const void *rows,
                                   int64_t count) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, writer_append(ctx, writer, rows, count));
}

static unicon_status writer_commit(unicon_ctx *ctx, const unicon_writer *writer) {
  UNICON_NEED(ctx, writer);
  if (writer->written < writer->rows)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%" PRId64 " rows were given, but the file has %" PRId64, writer->written,
                        writer->rows);
  return unicon__outfile_commit(ctx, writer->file);
}

unicon_status unicon_writer_commit(unicon_ctx *ctx, unicon_writer *writer) {
  unicon_status status = unicon__enter(ctx);
  if (status == UNICON_OK) status = unicon__leave(ctx, writer_commit(ctx, writer));
  unicon_writer_discard(writer);
  return status;
}

void unicon_writer_discard(unicon_writer *writer) {
  if (!writer) return;
  unicon__outfile_discard(writer->file);
  unicon__object_free(writer);
}
