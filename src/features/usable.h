/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows can be used. Every row is looked at once before anything is made of it, and every value
 * goes into a number that tells data sets apart. That is a sweep over the files of its own, or takes
 * place while the rows are summed, so that they are read once (`look` of a source). */
#ifndef UNICON_FEATURES_USABLE_H
#define UNICON_FEATURES_USABLE_H

#include "io/rows.h"
#include "linalg/vec.h"

/* What rows must be, beside finite. */
typedef enum unicon__row_need {
  UNICON__ROW_FINITE,   /* nothing */
  UNICON__ROW_DIRECTED, /* not all zero: they are scaled to length 1 */
  UNICON__ROW_SQUARED   /* no longer than 1e17: their squares are taken in float32, and summed */
} unicon__row_need;

/* In the place of the column of a value that is not finite. */
enum { UNICON__ROW_ZERO = -1, UNICON__ROW_LONG = -2 };

/* Rows that can be used. Writes their numbers to a new array *keep of the frame, or sets it to NULL
 * when all can. With `drop` false the first bad row is an error that names file, row and column.
 * `hash` (may be NULL) receives a number that depends on every value. */
unicon_status unicon__usable_rows(unicon_ctx *ctx, const unicon_rows *rows, unicon__row_need need,
                                  bool drop, const int64_t **keep, int64_t *count, uint64_t *hash);

/* Number of the first row of `buffer` that cannot be used, with its column (or ROW_ZERO, ROW_LONG),
 * or -1. */
int64_t unicon__first_bad_row(const float *buffer, int64_t count, int64_t width,
                              unicon__row_need need, int64_t *column);

/* "FILE: row R, column C is not a finite number", "... is all zero" or "... is longer than". */
unicon_status unicon__bad_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                              int64_t column);

/* Length of a row in float64; NaN where it is not finite. */
double unicon__row_length(const unicon__vec *vec, const float *row, int64_t width);

/* ---- looking in passing ------------------------------------------------------------------- */

enum { UNICON__LOOK_ROWS = 128 }; /* of a piece, whose rows are looked at together */

typedef struct unicon__look {
  const unicon_rows *rows;
  unicon__row_need need;
  bool done; /* every piece was looked at */
  uint64_t *number;
  unsigned char *bad; /* of each piece: has it a row that cannot be used? */
} unicon__look;

/* Nothing is looked at so far. Arrays in the context's frame. */
unicon_status unicon__look_open(unicon_ctx *ctx, const unicon_rows *rows, unicon__row_need need,
                                unicon__look *out);

/* Looks at whole pieces that were just loaded: rows first .. first + count - 1. Thread-safe for
 * different pieces. */
void unicon__look_at(const unicon__look *look, int64_t first, const float *raw, int64_t count);

/* Has one of these rows' pieces a bad row? */
bool unicon__look_found(const unicon__look *look, int64_t first, int64_t count);

/* Looks at all rows, unless that is done. */
unicon_status unicon__look_through(unicon_ctx *ctx, unicon__look *look);

/* The same, and fails where one cannot be used, with the sentence of unicon__usable_rows. */
unicon_status unicon__look_refuse(unicon_ctx *ctx, unicon__look *look);

/* What unicon__usable_rows makes of the numbers. */
void unicon__look_hash(const unicon__look *look, uint64_t *hash);

#endif
