/* SPDX-License-Identifier: Apache-2.0 */
#include "features/usable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sweep.h"
#include "base/together.h"

enum {
  LANES = 8,        /* of the number of a piece: multiplications that do not wait for one another */
  BLOCK_PIECES = 4, /* of a piece of work */
  SWEEP_BLOCKS = 64 /* read ahead while those before are looked at */
};

/* Length of a row; float sums serve unless they over- or underflow. NaN when not finite. */
double unicon__row_length(const unicon__vec *vec, const float *row, int64_t width) {
  const double fast = vec->sum_squares(row, width);
  if (fast > 1e-20 && fast < 1e30) return sqrt(fast);
  double sum = 0;
  for (int64_t k = 0; k < width; k++) sum += (double)row[k] * (double)row[k];
  return isfinite(sum) ? sqrt(sum) : NAN;
}

/* The longest row whose square, and the sum of a thousand of them, is a float32. */
static const double longest = 1e17;

int64_t unicon__first_bad_row(const float *buffer, int64_t count, int64_t width,
                              unicon__row_need need, int64_t *column) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) {
    const float *row = buffer + i * width;
    const double length = unicon__row_length(vec, row, width);
    const bool zero = need == UNICON__ROW_DIRECTED && !(length > 0);
    const bool far = need == UNICON__ROW_SQUARED && length > longest;
    if (isfinite(length) && !zero && !far) continue;
    *column = far ? UNICON__ROW_LONG : UNICON__ROW_ZERO;
    for (int64_t k = 0; k < width && *column < 0; k++)
      if (!isfinite(row[k])) *column = k;
    return i;
  }
  return -1;
}

/* "7", or "607 (row 7 of 1.npy)" where the rows are those of a folder. */
static const char *say_row(const unicon_rows *rows, int64_t row, char *out, size_t size) {
  int64_t k = rows->segments - 1;
  while (k > 0 && rows->segment[k].first > row) k--;
  if (rows->file && k >= 0 && rows->file[k])
    snprintf(out, size, "%lld (row %lld of %s)", (long long)row,
             (long long)(row - rows->segment[k].first), rows->file[k]);
  else
    snprintf(out, size, "%lld", (long long)row);
  return out;
}

unicon_status unicon__bad_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                              int64_t column) {
  char number[320];
  say_row(rows, row, number, sizeof number);
  if (column == UNICON__ROW_LONG)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s: row %s is longer than %g, and its values are too large for squares "
                        "and kernels in float32; scale the rows down, or use normalize on",
                        rows->name, number, longest);
  if (column < 0)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s: row %s is all zero and has no direction",
                        rows->name, number);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s: row %s, column %lld is not a finite number (NaN, infinite or beyond "
                      "float32)",
                      rows->name, number, (long long)column);
}

/* ---- which rows can be used --------------------------------------------------------------- */

static const uint64_t factor = 0x9E3779B97F4A7C15u;

static inline uint64_t stir(uint64_t h, uint64_t word) {
  h = (h ^ word) * factor;
  return h ^ (h >> 32);
}

/* A number of n floats: multiply and xor-shift in lanes of eight bytes, which are then mixed. The
 * same on every little-endian machine. */
static uint64_t number_of(const float *x, int64_t n) {
  uint64_t lane[LANES] = {0}, h = (uint64_t)n, word;
  int64_t k = 0;
  for (; k + 2 * LANES <= n; k += 2 * LANES)
    for (int l = 0; l < LANES; l++) {
      memcpy(&word, x + k + 2 * l, sizeof word);
      lane[l] = stir(lane[l], word);
    }
  for (; k < n; k++) {
    uint32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    h = stir(h, bits);
  }
  for (int l = 0; l < LANES; l++) h = stir(h, lane[l]);
  return h;
}

enum { BLOCK_ROWS = BLOCK_PIECES * UNICON__LOOK_ROWS };

static int64_t pieces_of(const unicon_rows *rows) {
  return (rows->count + UNICON__LOOK_ROWS - 1) / UNICON__LOOK_ROWS;
}

static int64_t blocks_of(const unicon_rows *rows) {
  return (rows->count + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

unicon_status unicon__look_open(unicon_ctx *ctx, const unicon_rows *rows, unicon__row_need need,
                                unicon__look *out) {
  *out = (unicon__look){.rows = rows, .need = need};
  UNICON_NEW(ctx, out->number, blocks_of(rows) * BLOCK_PIECES);
  UNICON_NEW(ctx, out->bad, blocks_of(rows) * BLOCK_PIECES);
  return UNICON_OK;
}

void unicon__look_at(const unicon__look *look, int64_t first, const float *raw, int64_t count) {
  const int64_t width = look->rows->width;
  for (int64_t at = 0; at < count; at += UNICON__LOOK_ROWS) {
    const int64_t left = count - at, rows = left < UNICON__LOOK_ROWS ? left : UNICON__LOOK_ROWS;
    const int64_t piece = (first + at) / UNICON__LOOK_ROWS;
    int64_t column;
    look->number[piece] = number_of(raw + at * width, rows * width);
    look->bad[piece] =
        unicon__first_bad_row(raw + at * width, rows, width, look->need, &column) >= 0;
  }
}

bool unicon__look_found(const unicon__look *look, int64_t first, int64_t count) {
  for (int64_t k = first / UNICON__LOOK_ROWS; k * UNICON__LOOK_ROWS < first + count; k++)
    if (look->bad[k]) return true;
  return false;
}

void unicon__look_hash(const unicon__look *look, uint64_t *hash) {
  for (int64_t k = 0; k < pieces_of(look->rows); k++)
    *hash = (*hash ^ look->number[k]) * factor + 1;
}

typedef struct scan {
  const unicon__look *look;
  int64_t first; /* block */
  float *buffer; /* BLOCK_PIECES pieces per worker */
} scan;

static void scan_block(void *state, unicon__cell cell) {
  const scan *s = state;
  const unicon_rows *rows = s->look->rows;
  const int64_t first = (s->first + cell.row) * BLOCK_ROWS, left = rows->count - first;
  const int64_t count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
  float *buffer = s->buffer + cell.worker * BLOCK_ROWS * rows->width;
  unicon__rows_load(rows, NULL, first, count, buffer, rows->width);
  unicon__look_at(s->look, first, buffer, count);
}

unicon_status unicon__look_through(unicon_ctx *ctx, unicon__look *look) {
  const unicon_rows *rows = look->rows;
  const double number = 10; /* to read and number one takes as long as so many flops of a product */
  const unicon__share own =
      unicon__share_of(ctx, blocks_of(rows), 1, number * (double)rows->count * (double)rows->width);
  const int64_t blocks = own.first + own.count;
  const int64_t step = SWEEP_BLOCKS * BLOCK_ROWS;
  scan s = {.look = look, .first = own.first};
  if (look->done) return UNICON_OK;
  const int stage = unicon__stage_begin(ctx, "reading", 0);
  UNICON_NEW(ctx, s.buffer, unicon__workers_for(ctx, blocks) * BLOCK_ROWS * rows->width);
  for (; s.first < blocks; s.first += SWEEP_BLOCKS) {
    const int64_t left = blocks - s.first;
    UNICON_TRY(unicon__stage_step(ctx, (s.first - own.first) / SWEEP_BLOCKS,
                                  own.count / SWEEP_BLOCKS + 1));
    unicon__rows_ahead(rows, s.first * BLOCK_ROWS + step, step);
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, left < SWEEP_BLOCKS ? left : SWEEP_BLOCKS,
                                  scan_block, &s));
    unicon__rows_behind(rows, s.first * BLOCK_ROWS, step);
  }
  unicon__drop(ctx, s.buffer);
  unicon__stage_end(ctx, stage);
  UNICON_TRY(unicon__gather_rows(ctx, &own, look->number, BLOCK_PIECES * 8));
  UNICON_TRY(unicon__gather_rows(ctx, &own, look->bad, BLOCK_PIECES));
  look->done = true;
  return UNICON_OK;
}

/* Marks the bad rows of the pieces that have some. */
static unicon_status mark_bad(unicon_ctx *ctx, const unicon__look *look, unsigned char *mark,
                              int64_t *bad, int64_t *first) {
  const unicon_rows *rows = look->rows;
  float *row;
  *bad = 0;
  *first = -1;
  UNICON_NEW(ctx, row, rows->width);
  for (int64_t k = 0; k < pieces_of(rows); k++)
    for (int64_t i = k * UNICON__LOOK_ROWS;
         look->bad[k] && i < rows->count && i < (k + 1) * UNICON__LOOK_ROWS; i++) {
      int64_t column;
      unicon__rows_load(rows, NULL, i, 1, row, rows->width);
      if (unicon__first_bad_row(row, 1, rows->width, look->need, &column) < 0) continue;
      mark[i] = 1;
      if (*first < 0) *first = i;
      ++*bad;
    }
  unicon__drop(ctx, row);
  return unicon__poll(ctx);
}

static unicon_status report_bad(unicon_ctx *ctx, const unicon__look *look, int64_t first,
                                int64_t bad) {
  int64_t column = -1;
  float *row;
  UNICON_NEW(ctx, row, look->rows->width);
  unicon__rows_load(look->rows, NULL, first, 1, row, look->rows->width);
  (void)unicon__first_bad_row(row, 1, look->rows->width, look->need, &column);
  (void)unicon__bad_row(ctx, look->rows, first, column);
  const size_t used = strlen(ctx->error);
  char sentence[sizeof ctx->error];
  memcpy(sentence, ctx->error, used + 1);
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s; %lld of %lld rows cannot be used (bad_rows drop leaves them and "
                      "their pairs out)",
                      sentence, (long long)bad, (long long)look->rows->count);
}

unicon_status unicon__look_refuse(unicon_ctx *ctx, unicon__look *look) {
  unsigned char *mark;
  int64_t bad, first;
  UNICON_TRY(unicon__look_through(ctx, look));
  if (!unicon__look_found(look, 0, look->rows->count)) return UNICON_OK;
  UNICON_NEW(ctx, mark, look->rows->count);
  UNICON_TRY(mark_bad(ctx, look, mark, &bad, &first));
  return report_bad(ctx, look, first, bad);
}

unicon_status unicon__usable_rows(unicon_ctx *ctx, const unicon_rows *rows, unicon__row_need need,
                                  bool drop, const int64_t **keep, int64_t *count, uint64_t *hash) {
  unicon__look look;
  unsigned char *mark;
  int64_t *list, bad, first;
  *keep = NULL;
  *count = rows->count;
  UNICON_TRY(unicon__look_open(ctx, rows, need, &look));
  UNICON_TRY(unicon__look_through(ctx, &look));
  if (hash) unicon__look_hash(&look, hash);
  if (!unicon__look_found(&look, 0, rows->count)) return UNICON_OK;
  if (!drop) return unicon__look_refuse(ctx, &look);
  UNICON_NEW(ctx, mark, rows->count);
  UNICON_TRY(mark_bad(ctx, &look, mark, &bad, &first));
  *count = rows->count - bad;
  UNICON_NEW(ctx, list, *count);
  for (int64_t i = 0, next = 0; i < rows->count; i++)
    if (!mark[i]) list[next++] = i;
  unicon__log(ctx, UNICON_LOG_WARNING,
              "%s: %lld of %lld rows dropped (all zero, not finite or too large)", rows->name,
              (long long)bad, (long long)rows->count);
  *keep = list;
  return UNICON_OK;
}
