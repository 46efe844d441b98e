/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of a flat FAISS index, in the order in which they were added. The file begins with
 *
 *     kind (4 letters), d (int32), n (int64), 2 x int64, trained (1 byte), metric (int32),
 *     metric argument (float32, where the metric is above 1), numbers that follow (uint64)
 *
 * and then has n d float32 numbers. Indexes of other kinds keep something else than the vectors. */
#include <inttypes.h>
#include <string.h>

#include "io/rows_format.h"
#include "io/text.h"

enum { PLAIN_HEADER = 45, METRIC_AT = 33, ARGUMENT = 4 };

static unicon_status refuse_kind(unicon_ctx *ctx, const char *name, const unsigned char *kind) {
  char word[5] = "";
  for (int k = 0; k < 4; k++) word[k] = kind[k] >= ' ' && kind[k] < 127 ? (char)kind[k] : '.';
  return unicon__fail(
      ctx, UNICON_ERR_FORMAT,
      "%s starts with '%s'; only flat FAISS indexes are read ('IxFI', 'IxF2', 'IxFl'). Make "
      "an .npy file of another one with: python3 -c \"import faiss, numpy as np; i = "
      "faiss.read_index('%s'); np.save('%s.npy', i.reconstruct_n(0, i.ntotal))\"",
      name, word, unicon__text_shell(name), unicon__text_shell(name));
}

unicon_status unicon__faiss_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                  unicon__matrix *out) {
  if (bytes.size < PLAIN_HEADER + ARGUMENT)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s has %zu bytes, too few for a FAISS index", name,
                        bytes.size);
  const unsigned char *p = bytes.data;
  if (memcmp(p, "IxFI", 4) != 0 && memcmp(p, "IxF2", 4) != 0 && memcmp(p, "IxFl", 4) != 0)
    return refuse_kind(ctx, name, p);
  const uint64_t width = unicon__little_endian(p + 4, 4), count = unicon__little_endian(p + 8, 8);
  const bool argued = (int32_t)unicon__little_endian(p + METRIC_AT, 4) > 1;
  const size_t start = argued ? PLAIN_HEADER + ARGUMENT : PLAIN_HEADER;
  const uint64_t values = unicon__little_endian(p + start - 8, 8), left = bytes.size - start;
  uint64_t wanted;
  if (width > INT32_MAX || count > INT64_MAX || __builtin_mul_overflow(width, count, &wanted) ||
      wanted != values || left % 4 || values != left / 4)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: its header promises %" PRIu64 " rows of %" PRIu64 " and %" PRIu64
                        " float32 numbers, but %" PRIu64 " bytes of data follow",
                        name, count, width, values, left);
  out->rows =
      (unicon__segment){p + start, 0, (int64_t)count, 4 * (int64_t)width, 4, UNICON_F32, NULL, 0};
  out->width = (int64_t)width;
  return UNICON_OK;
}
