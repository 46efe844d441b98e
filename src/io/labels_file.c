/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "io/object.h"
#include "io/pair_set.h"
#include "io/rows_npy.h"
#include "io/text.h"
#include "unicon/tools.h"

struct unicon_labels {
  unicon__arena arena; /* holds everything below, this struct too */
  int64_t *number[2];
  int64_t classes;
  char **name;
};

/* One file of labels. */
typedef struct label_file {
  const char *path; /* NULL: there is no such file */
  unicon__bytes bytes;
  unicon__npy npy;
  bool is_npy;
  int64_t count;
  int64_t *label;
} label_file;

/* A label of either kind and where its number goes. */
typedef struct mark {
  const char *text;
  size_t length;
  int64_t value; /* of an npy file; there text is "" */
  int64_t *place;
} mark;

static int by_content(const void *a, const void *b) {
  const mark *left = a, *right = b;
  if (left->value != right->value) return left->value < right->value ? -1 : 1;
  const size_t shorter = left->length < right->length ? left->length : right->length;
  const int order = memcmp(left->text, right->text, shorter);
  return order ? order : (left->length > right->length) - (left->length < right->length);
}

static unicon_status open_labels(unicon_ctx *ctx, label_file *file) {
  if (!file->path) return UNICON_OK;
  file->is_npy = unicon__is_table(file->path, file->bytes);
  if (file->is_npy) {
    UNICON_TRY(unicon__table_open(ctx, file->path, file->bytes, &file->npy));
    if (file->npy.cols != 1)
      return unicon__fail(ctx, UNICON_ERR_SHAPE,
                          "%s has %" PRId64 " columns; labels are one column", file->path,
                          file->npy.cols);
  }
  file->count = file->is_npy ? file->npy.rows : unicon__line_count(file->bytes);
  if (file->count == 0)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s is empty: no labels", file->path);
  UNICON_NEW(ctx, file->label, file->count);
  return UNICON_OK;
}

static unicon_status collect(unicon_ctx *ctx, label_file *file, mark *out) {
  if (!file->path) return UNICON_OK;
  if (file->is_npy) UNICON_TRY(unicon__npy_integers(ctx, file->path, &file->npy, 0, file->label));
  unicon__lines lines = {file->bytes, 0, 0};
  for (int64_t k = 0; k < file->count; k++) {
    out[k] = (mark){"", 0, 0, &file->label[k]};
    if (file->is_npy)
      out[k].value = file->label[k];
    else
      unicon__line_next(&lines, &out[k].text, &out[k].length);
  }
  return UNICON_OK;
}

/* Texts of the distinct labels of the sorted and numbered list, one behind the other. */
static unicon_status keep_names(unicon_ctx *ctx, const mark *all, int64_t count, bool is_npy,
                                unicon_labels *labels) {
  const size_t digits = 24;
  size_t room = 0, used = 0;
  char *text;
  labels->classes = *all[count - 1].place + 1;
  for (int64_t k = 0; k < count; k++)
    if (k == 0 || *all[k].place != *all[k - 1].place) room += is_npy ? digits : all[k].length + 1;
  UNICON_ARENA_NEW(ctx, &labels->arena, text, (int64_t)room);
  UNICON_ARENA_NEW(ctx, &labels->arena, labels->name, labels->classes);
  for (int64_t k = 0; k < count; k++) {
    if (k > 0 && *all[k].place == *all[k - 1].place) continue;
    char *name = text + used;
    if (is_npy)
      snprintf(name, digits, "%" PRId64, all[k].value);
    else
      memcpy(name, all[k].text, all[k].length);
    labels->name[*all[k].place] = name;
    used += is_npy ? digits : all[k].length + 1;
  }
  return UNICON_OK;
}

/* The value of a whole number of 64 bits written as such, without a sign + or zeros before it. */
static bool read_whole(const char *text, size_t length, int64_t *out) {
  const bool below = length > 0 && text[0] == '-';
  int64_t value = 0;
  if (length < 1u + below || (text[below] == '0' && length > 1)) return false;
  for (size_t k = below; k < length; k++) {
    const int digit = text[k] - '0';
    if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, below ? -digit : digit, &value))
      return false;
  }
  *out = value;
  return true;
}

static int64_t key_of(const char *text, size_t length) {
  int64_t key;
  return read_whole(text, length, &key) ? key : (int64_t)unicon__hash(0x6c6162656c, text, length);
}

int64_t unicon_label_number(const char *text) {
  return text ? key_of(text, strlen(text)) : 0;
}

/* The labels of both files, in the order of their rows. */
static unicon_status collect_both(unicon_ctx *ctx, label_file *x, label_file *y, mark **out) {
  UNICON_TRY(open_labels(ctx, x));
  UNICON_TRY(open_labels(ctx, y));
  if (y->path && x->is_npy != y->is_npy)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is %s, but %s is %s; the labels of both files must be of one kind",
                        x->path, x->is_npy ? "an .npy file" : "text", y->path,
                        y->is_npy ? "an .npy file" : "text");
  UNICON_NEW(ctx, *out, x->count + y->count);
  UNICON_TRY(collect(ctx, x, *out));
  return collect(ctx, y, *out + x->count);
}

/* Sorts the labels of both files and numbers the distinct ones from 0; their texts go to `labels`.
 */
static unicon_status number_labels(unicon_ctx *ctx, label_file *x, label_file *y,
                                   unicon_labels *labels) {
  mark *all;
  UNICON_TRY(collect_both(ctx, x, y, &all));
  const int64_t n = x->count + y->count;
  qsort(all, (size_t)n, sizeof *all, by_content);
  int64_t number = 0;
  for (int64_t k = 0; k < n; k++) {
    if (k > 0 && by_content(&all[k - 1], &all[k]) != 0) number++;
    *all[k].place = number;
  }
  UNICON_TRY(keep_names(ctx, all, n, x->is_npy, labels));
  unicon__drop(ctx, all);
  return UNICON_OK;
}

static unicon_status map_labels(unicon_ctx *ctx, label_file *x, label_file *y) {
  UNICON_TRY(unicon__bytes_map(ctx, x->path, &x->bytes));
  return y->path ? unicon__bytes_map(ctx, y->path, &y->bytes) : UNICON_OK;
}

static void unmap_labels(label_file *x, label_file *y) {
  unicon__bytes_unmap(&x->bytes);
  unicon__bytes_unmap(&y->bytes);
}

unicon_status unicon__labels_parse(unicon_ctx *ctx, const char *x_name, unicon__bytes x_bytes,
                                   const char *y_name, unicon__bytes y_bytes, int64_t **label_x,
                                   int64_t *n_x, int64_t **label_y, int64_t *n_y) {
  label_file x = {.path = x_name, .bytes = x_bytes}, y = {.path = y_name, .bytes = y_bytes};
  mark *all;
  UNICON_TRY(collect_both(ctx, &x, &y, &all));
  for (int64_t k = 0; k < x.count + y.count; k++)
    *all[k].place = x.is_npy ? all[k].value : key_of(all[k].text, all[k].length);
  unicon__drop(ctx, all);
  *label_x = x.label;
  *n_x = x.count;
  *label_y = y.label;
  *n_y = y.count;
  return UNICON_OK;
}

static unicon_status check_count(unicon_ctx *ctx, const char *path, int64_t labels,
                                 const char *side, int64_t rows) {
  if (labels == rows) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_SHAPE,
                      "%s has %" PRId64 " labels, but %s has %" PRId64
                      " rows; one label for each row is needed",
                      path, labels, side, rows);
}

/* Rows without a label would all belong together, which is hardly meant. */
static void warn_of_blanks(unicon_ctx *ctx, const label_file *file) {
  const int64_t blank = key_of("", 0);
  int64_t blanks = 0;
  for (int64_t i = 0; i < file->count; i++) blanks += file->label[i] == blank;
  if (blanks > 0)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "%s: %" PRId64 " of %" PRId64
                " lines are empty; an empty line counts as a label: their rows belong together",
                file->path, blanks, file->count);
}

static unicon_status read_labels(unicon_ctx *ctx, const char *x_path, const char *y_path,
                                 int64_t n_x, int64_t n_y, unicon__labelled how,
                                 unicon_pairs **out) {
  label_file x = {.path = x_path}, y = {.path = y_path};
  UNICON_NEED(ctx, x_path);
  UNICON_NEED(ctx, y_path);
  unicon_status status = map_labels(ctx, &x, &y);
  if (status == UNICON_OK)
    status = unicon__labels_parse(ctx, x_path, x.bytes, y_path, y.bytes, &x.label, &x.count,
                                  &y.label, &y.count);
  unmap_labels(&x, &y);
  UNICON_TRY(status);
  UNICON_TRY(check_count(ctx, x_path, x.count, "x", n_x));
  UNICON_TRY(check_count(ctx, y_path, y.count, "y", n_y));
  warn_of_blanks(ctx, &x);
  if (strcmp(x_path, y_path) != 0) warn_of_blanks(ctx, &y);
  return unicon__pairs_from_labels(ctx, x.label, n_x, y.label, n_y, how, out);
}

unicon_status unicon_pairs_read_labels(unicon_ctx *ctx, const char *x_path, const char *y_path,
                                       int64_t n_x, int64_t n_y, unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, read_labels(ctx, x_path, y_path, n_x, n_y, UNICON__LABELS_WHOLE, out));
}

unicon_status unicon_pairs_read_labels_part(unicon_ctx *ctx, const char *x_path, const char *y_path,
                                            int64_t n_x, int64_t n_y, unicon_pairs **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, read_labels(ctx, x_path, y_path, n_x, n_y, UNICON__LABELS_PART, out));
}

/* ---- labels of rows ----------------------------------------------------------------------- */

static unicon_status keep_numbers(unicon_ctx *ctx, const label_file *file, int64_t rows,
                                  unicon_labels *labels, int which) {
  if (!file->path) return UNICON_OK;
  if (file->count != rows)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %" PRId64 " %s, but there are %" PRId64
                        " rows; one for each row is needed",
                        file->path, file->count, file->is_npy ? "entries" : "lines", rows);
  UNICON_ARENA_NEW(ctx, &labels->arena, labels->number[which], rows);
  memcpy(labels->number[which], file->label, (size_t)rows * sizeof *file->label);
  return UNICON_OK;
}

static unicon_status read_rows(unicon_ctx *ctx, const char *path, int64_t rows,
                               const char *other_path, int64_t other_rows, unicon_labels **out) {
  label_file file = {.path = path}, other = {.path = other_path};
  UNICON_NEED(ctx, path);
  UNICON_NEED(ctx, out);
  unicon_labels *labels = unicon__object_new(ctx, sizeof *labels);
  if (!labels) return UNICON_ERR_MEMORY;
  unicon_status status = map_labels(ctx, &file, &other);
  if (status == UNICON_OK) status = number_labels(ctx, &file, &other, labels);
  if (status == UNICON_OK) status = keep_numbers(ctx, &file, rows, labels, 0);
  if (status == UNICON_OK) status = keep_numbers(ctx, &other, other_rows, labels, 1);
  unmap_labels(&file, &other);
  if (status == UNICON_OK)
    *out = labels;
  else
    unicon_labels_destroy(labels);
  return status;
}

unicon_status unicon_labels_read(unicon_ctx *ctx, const char *path, int64_t rows,
                                 const char *other_path, int64_t other_rows, unicon_labels **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, read_rows(ctx, path, rows, other_path, other_rows, out));
}

void unicon_labels_destroy(unicon_labels *labels) {
  unicon__object_free(labels);
}

const int64_t *unicon_labels_numbers(const unicon_labels *labels, int file) {
  return labels && (file == 0 || file == 1) ? labels->number[file] : NULL;
}

int64_t unicon_labels_classes(const unicon_labels *labels) {
  return labels ? labels->classes : 0;
}

const char *unicon_labels_name(const unicon_labels *labels, int64_t number) {
  return labels && number >= 0 && number < labels->classes ? labels->name[number] : NULL;
}
