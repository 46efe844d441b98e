/* SPDX-License-Identifier: Apache-2.0 */
/* Row sources. Every format comes down to segments of strided elements in memory (mapped or the
 * caller's), so a format is one opener that fills segments, and reading never fails. */
#ifndef UNICON_IO_ROWS_H
#define UNICON_IO_ROWS_H

#include "device/device.h"
#include "io/bytes.h"

/* Rows that lie in memory of a device as well: `row` are they, of memory of that kind. */
typedef struct unicon__away {
  unicon__foreign row;
  int32_t kind;
} unicon__away;

typedef struct unicon__segment {
  const unsigned char *data; /* element (0, 0) */
  int64_t first;             /* row number of its first row */
  int64_t count;
  int64_t row_stride, col_stride; /* bytes */
  unicon_dtype dtype;
  const unicon__away *away; /* where the device finds them, or NULL ... */
  int64_t away_first;       /* ... and the number that the first row has there */
} unicon__segment;

struct unicon_rows {
  unicon__arena arena; /* holds everything below, this struct too */
  char *name;          /* what errors call it: the path, or the caller's name */
  int64_t count, width;
  unicon__segment *segment;
  int64_t segments;
  char **file;        /* of a folder: the name of each segment's file; else NULL */
  unicon__bytes *map; /* files to unmap */
  int64_t maps;
};

/* unicon_rows_wrap, inside a call. */
unicon_status unicon__rows_wrap(unicon_ctx *ctx, const char *name, const unicon__segment *segment,
                                int64_t width, unicon_rows **out);

/* Rows index[0..count-1], or first..first+count-1 when index is NULL, as float32 into out with
 * leading dimension ld. Thread-safe; does not allocate; the caller keeps indices in range. */
void unicon__rows_load(const unicon_rows *rows, const int64_t *index, int64_t first, int64_t count,
                       float *out, int64_t ld);

/* Rows first .. first+count-1 (as far as there are such) of mapped files will be wanted soon: the
 * system may begin to read them. */
void unicon__rows_ahead(const unicon_rows *rows, int64_t first, int64_t count);
/* They will not be wanted for a while: their pages are given back, the system keeps what it likes. */
void unicon__rows_behind(const unicon_rows *rows, int64_t first, int64_t count);

/* Rows index[0..count-1] (all when NULL) as rows of their own, numbered from 0. They point to the
 * memory of `rows`, which must outlive them. Neighbours share a segment. */
unicon_status unicon__rows_select(unicon_ctx *ctx, const unicon_rows *rows, const int64_t *index,
                                  int64_t count, unicon_rows **out);

/* Rows in memory of our own, for the length of a call: nothing is allocated, nothing to close. */
static inline unicon_rows unicon__rows_over(const char *name, const float *data, int64_t count,
                                            int64_t width, unicon__segment *segment) {
  const int64_t size = (int64_t)sizeof *data;
  *segment = (unicon__segment){
      (const unsigned char *)data, 0, count, width * size, size, UNICON_F32, NULL, 0};
  return (unicon_rows){.name = (char *)(uintptr_t)name,
                       .count = count,
                       .width = width,
                       .segment = segment,
                       .segments = 1};
}

#endif
