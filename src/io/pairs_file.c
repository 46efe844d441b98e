/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/object.h"
#include "io/pair_set.h"
#include "io/rows_npy.h"
#include "io/text.h"

enum {
  FIELDS = 3,        /* row of x, row of y, weight */
  NUMBER_LENGTH = 63 /* letters: any float64 in full is shorter */
};

/* What a file holds; `weight` is NULL where it has two columns. */
typedef struct pair_list {
  int64_t *x, *y, count;
  double *weight;
} pair_list;

typedef struct field {
  const char *text;
  size_t length;
} field;

/* A line being read. */
typedef struct place {
  unicon_ctx *ctx;
  const char *name;
  int64_t line;
} place;

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/* Fields are parted by blanks, or by one comma with blanks around it. Returns their number, which
 * is FIELDS + 1 where there are more than fit. */
static int split(const char *text, size_t length, field out[FIELDS]) {
  int fields = 0;
  bool comma = false;
  for (size_t at = 0;;) {
    while (at < length && is_blank(text[at])) at++;
    if (at == length && !comma) return fields;
    if (fields == FIELDS) return FIELDS + 1;
    const size_t start = at;
    while (at < length && !is_blank(text[at]) && text[at] != ',') at++;
    out[fields++] = (field){text + start, at - start};
    while (at < length && is_blank(text[at])) at++;
    comma = at < length && text[at] == ',';
    if (comma) at++;
  }
}

static bool read_integer(field f, int64_t *out) {
  size_t at = f.length > 0 && (f.text[0] == '-' || f.text[0] == '+');
  const bool negative = f.length > 0 && f.text[0] == '-';
  if (at == f.length) return false;
  int64_t value = 0;
  for (; at < f.length; at++) {
    const int digit = f.text[at] - '0';
    if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *out = negative ? -value : value;
  return true;
}

static bool read_real(field f, double *out) {
  char text[NUMBER_LENGTH + 1];
  if (f.length == 0 || f.length > NUMBER_LENGTH) return false;
  memcpy(text, f.text, f.length);
  text[f.length] = '\0';
  char *end;
  *out = unicon__number_read(text, &end);
  return end == text + f.length;
}

static unicon_status bad_field(const place *at, const char *needed, field f) {
  return unicon__fail(at->ctx, UNICON_ERR_FORMAT, "%s line %" PRId64 ": '%.*s' is not %s", at->name,
                      at->line, (int)(f.length < 80 ? f.length : 80), f.text, needed);
}

/* A header names its columns: no field is a number. */
static bool is_header(const field *fields, int count) {
  double ignored;
  for (int k = 0; k < count && k < FIELDS; k++)
    if (fields[k].length == 0 || read_real(fields[k], &ignored)) return false;
  return count >= 2;
}

static unicon_status read_fields(const place *at, const field *fields, int count, pair_list *list) {
  const int wanted = list->weight ? 3 : 2;
  if (count != wanted)
    return unicon__fail(at->ctx, UNICON_ERR_FORMAT, "%s line %" PRId64 " has %d%s field%s; %s",
                        at->name, at->line, count, count > FIELDS ? " or more" : "",
                        count == 1 ? "" : "s",
                        list->count == 0 ? "x_row, y_row and perhaps a weight are needed"
                        : list->weight   ? "the lines before it have 3"
                                         : "the lines before it have 2");
  const int64_t p = list->count++;
  if (!read_integer(fields[0], &list->x[p])) return bad_field(at, "a row number of x", fields[0]);
  if (!read_integer(fields[1], &list->y[p])) return bad_field(at, "a row number of y", fields[1]);
  if (list->weight && !read_real(fields[2], &list->weight[p]))
    return bad_field(at, "a weight", fields[2]);
  return UNICON_OK;
}

/* A file of lines, and whether one with fields has been met. */
typedef struct reading {
  unicon__lines lines;
  bool begun;
} reading;

/* The fields of the next line that has a pair: comments, blank lines and a header have none. */
static int next_fields(reading *r, field out[FIELDS]) {
  const char *text;
  size_t length;
  while (unicon__line_next(&r->lines, &text, &length)) {
    const int count = length > 0 && text[0] == '#' ? 0 : split(text, length, out);
    const bool header = count > 0 && !r->begun && is_header(out, count);
    r->begun |= count > 0;
    if (count > 0 && !header) return count;
  }
  return 0;
}

static unicon_status read_lines(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                pair_list *list) {
  const int64_t most = unicon__line_count(bytes);
  UNICON_NEW(ctx, list->x, most);
  UNICON_NEW(ctx, list->y, most);
  reading r = {.lines = {bytes, 0, 0}};
  field fields[FIELDS];
  for (int count; (count = next_fields(&r, fields)) > 0;) {
    const place at = {ctx, name, r.lines.number};
    if (list->count == 0 && count == 3) UNICON_NEW(ctx, list->weight, most);
    UNICON_TRY(read_fields(&at, fields, count, list));
  }
  return UNICON_OK;
}

static unicon_status read_npy(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                              pair_list *list) {
  unicon__npy npy;
  UNICON_TRY(unicon__table_open(ctx, name, bytes, &npy));
  if (npy.dims != 2 || npy.cols < 2 || npy.cols > 3)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %d dimensions and %" PRId64
                        " columns; pairs are n by 2 (x_row, y_row) or n by 3 (and a weight)",
                        name, npy.dims, npy.cols);
  list->count = npy.rows;
  UNICON_NEW(ctx, list->x, npy.rows);
  UNICON_NEW(ctx, list->y, npy.rows);
  UNICON_TRY(unicon__npy_integers(ctx, name, &npy, 0, list->x));
  UNICON_TRY(unicon__npy_integers(ctx, name, &npy, 1, list->y));
  if (npy.cols == 2) return UNICON_OK;
  UNICON_NEW(ctx, list->weight, npy.rows);
  unicon__npy_reals(&npy, 2, list->weight);
  return UNICON_OK;
}

unicon_status unicon__pairs_parse_bytes(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                        int64_t **x, int64_t **y, double **weight, int64_t *count) {
  pair_list list = {0};
  UNICON_TRY(unicon__is_table(name, bytes) ? read_npy(ctx, name, bytes, &list)
                                           : read_lines(ctx, name, bytes, &list));
  *x = list.x;
  *y = list.y;
  *weight = list.weight;
  *count = list.count;
  return UNICON_OK;
}

unicon_status unicon__pairs_parse(unicon_ctx *ctx, const char *path, int64_t **x, int64_t **y,
                                  double **weight, int64_t *count) {
  unicon__bytes bytes;
  UNICON_NEED(ctx, path);
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = unicon__pairs_parse_bytes(ctx, path, bytes, x, y, weight, count);
  unicon__bytes_unmap(&bytes);
  return status;
}

/* The pairs of a file, and how errors call them: "FILE: pair". */
static unicon_status read_list(unicon_ctx *ctx, const char *path, const char *kind, pair_list *list,
                               char **what) {
  UNICON_TRY(unicon__pairs_parse(ctx, path, &list->x, &list->y, &list->weight, &list->count));
  *what = unicon__text_join(ctx, path, ": ", kind);
  return *what ? UNICON_OK : UNICON_ERR_MEMORY;
}

/* The line of a text file that has pair `number`. */
static long long line_of(unicon__bytes bytes, long long number) {
  reading r = {.lines = {bytes, 0, 0}};
  field fields[FIELDS];
  for (long long k = 0; k <= number; k++) (void)next_fields(&r, fields);
  return (long long)r.lines.number;
}

/* "FILE: pair 7 is ..., given twice: number 3 is the same", with lines in the place of the numbers
 * where the file is text. */
static unicon_status say_lines(unicon_ctx *ctx, const char *path, const char *what,
                               unicon_status status) {
  static const char twice[] = "number ";
  char sentence[sizeof ctx->error], *rest, other[64] = "";
  unicon__bytes bytes;
  const size_t length = strlen(what);
  if (status != UNICON_ERR_PAIRS || strncmp(ctx->error, what, length) != 0) return status;
  memcpy(sentence, ctx->error, sizeof sentence);
  const long long number = strtoll(sentence + length, &rest, 10);
  if (strncmp(rest, " is ", 4) != 0 && strncmp(rest, " has ", 5) != 0)
    return status; /* of no one */
  if (unicon__bytes_map(ctx, path, &bytes) != UNICON_OK || unicon__is_table(path, bytes)) {
    unicon__bytes_unmap(&bytes);
    return unicon__fail(ctx, status, "%s", sentence);
  }
  char *first = strstr(rest, twice);
  if (first) {
    const long long same = strtoll(first + sizeof twice - 1, NULL, 10);
    snprintf(other, sizeof other, "line %lld is the same", line_of(bytes, same));
    *first = '\0';
  }
  const long long line = line_of(bytes, number);
  unicon__bytes_unmap(&bytes);
  return unicon__fail(ctx, status, "%s line %lld%s%s", path, line, rest, other);
}

static unicon_status pairs_read(unicon_ctx *ctx, const char *path, int64_t n_x, int64_t n_y,
                                unicon_pairs **out) {
  pair_list list = {0};
  char *what;
  UNICON_NEED(ctx, out);
  UNICON_TRY(read_list(ctx, path, "pair", &list, &what));
  return say_lines(
      ctx, path, what,
      unicon__pairs_from_list(ctx, what, n_x, n_y, list.x, list.y, list.weight, list.count, out));
}

unicon_status unicon_pairs_read(unicon_ctx *ctx, const char *path, int64_t n_x, int64_t n_y,
                                unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, pairs_read(ctx, path, n_x, n_y, out));
}

static unicon_status read_set(unicon_ctx *ctx, unicon_pairs *pairs, unicon__pair_kind kind,
                              const char *path) {
  pair_list list = {0};
  char *what;
  UNICON_NEED(ctx, pairs);
  UNICON_TRY(read_list(ctx, path, kind == UNICON__PAIR_NEGATIVE ? "negative pair" : "ignored pair",
                       &list, &what));
  return say_lines(
      ctx, path, what,
      unicon__pairs_add_set(ctx, pairs, kind, what, list.x, list.y, list.weight, list.count));
}

unicon_status unicon_pairs_read_ignored(unicon_ctx *ctx, unicon_pairs *pairs, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, read_set(ctx, pairs, UNICON__PAIR_IGNORED, path));
}

unicon_status unicon_pairs_read_negatives(unicon_ctx *ctx, unicon_pairs *pairs, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, read_set(ctx, pairs, UNICON__PAIR_NEGATIVE, path));
}
