/* SPDX-License-Identifier: Apache-2.0 */
#include "classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usable.h"

enum { DIGITS = 24 };

/* ---- labels to class rows ----------------------------------------------------------------- */

/* Names of the classes in row order: those of the file, or row numbers. */
static int name_classes(tool *t, const char *path, classes *c) {
  const int64_t count = unicon_rows_count(c->vectors);
  c->name = calloc((size_t)count + 1, sizeof *c->name);
  c->digits = calloc((size_t)count + 1, DIGITS);
  if (!c->name || !c->digits) return tool_out_of_memory(t);
  if (path) {
    const unicon_status status = unicon_labels_read(t->ctx, path, count, NULL, 0, &c->names);
    if (status != UNICON_OK) return tool_fail(t, status);
    if (unicon_labels_classes(c->names) != count)
      return tool_error(t, "%s names %lld rows with only %lld different names; each class has one",
                        path, (long long)count, (long long)unicon_labels_classes(c->names));
  }
  for (int64_t k = 0; k < count; k++) {
    snprintf(c->digits + k * DIGITS, DIGITS, "%lld", (long long)k);
    c->name[k] = path ? unicon_labels_name(c->names, unicon_labels_numbers(c->names, 0)[k])
                      : c->digits + k * DIGITS;
  }
  return EXIT_DONE;
}

/* A class by its name. */
typedef struct entry {
  const char *name;
  int64_t row;
} entry;

static int by_name(const void *a, const void *b) {
  return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* The class called so, or -1. */
static int64_t find_name(const entry *sorted, int64_t count, const char *name) {
  const entry key = {name, 0};
  const entry *found = bsearch(&key, sorted, (size_t)count, sizeof key, by_name);
  return found ? found->row : -1;
}

/* The row number that a label is, or -1. */
static int64_t find_number(int64_t count, const char *text) {
  char *end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  return end != text && !*end && errno == 0 && value >= 0 && value < count ? (int64_t)value : -1;
}

static int unknown_label(tool *t, const char *path, const char *label, int64_t count) {
  if (tool_has(t, CLI_OPT_CLASS_NAMES))
    return tool_error(t, "%s: the label `%s` is not in %s, nor a row number from 0 to %lld", path,
                      label, tool_value(t, CLI_OPT_CLASS_NAMES), (long long)count - 1);
  return tool_error(
      t,
      "%s: the label `%s` is not a row number from 0 to %lld of the classes; name them "
      "with --class-names",
      path, label, (long long)count - 1);
}

/* Class row of each distinct label: all by name, or all by number. */
static int match_labels(tool *t, const char *path, const classes *c, const entry *sorted,
                        int64_t *row) {
  const int64_t count = unicon_rows_count(c->vectors), distinct = unicon_labels_classes(c->labels);
  const char *stray = NULL; /* a label that is no name */
  for (int64_t k = 0; k < distinct && !stray; k++) {
    const char *label = unicon_labels_name(c->labels, k);
    row[k] = find_name(sorted, count, label);
    if (row[k] < 0) stray = label;
  }
  for (int64_t k = 0; k < distinct && stray; k++) {
    row[k] = find_number(count, unicon_labels_name(c->labels, k));
    if (row[k] < 0) return unknown_label(t, path, stray, count);
  }
  return EXIT_DONE;
}

static int number_rows(tool *t, const char *path, int64_t rows, classes *c) {
  const int64_t count = unicon_rows_count(c->vectors);
  const unicon_status status = unicon_labels_read(t->ctx, path, rows, NULL, 0, &c->labels);
  if (status != UNICON_OK) return tool_fail(t, status);
  const int64_t *number = unicon_labels_numbers(c->labels, 0);
  entry *sorted = calloc((size_t)count + 1, sizeof *sorted);
  int64_t *row = calloc((size_t)unicon_labels_classes(c->labels) + 1, sizeof *row);
  c->label = calloc((size_t)rows + 1, sizeof *c->label);
  int code = EXIT_DONE;
  if (!sorted || !row || !c->label) {
    code = tool_out_of_memory(t);
  } else {
    for (int64_t k = 0; k < count; k++) sorted[k] = (entry){c->name[k], k};
    qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    code = match_labels(t, path, c, sorted, row);
    for (int64_t i = 0; i < rows && code == EXIT_DONE; i++) c->label[i] = row[number[i]];
  }
  free(sorted);
  free(row);
  return code;
}

/* ---- classification ----------------------------------------------------------------------- */

int classes_run(tool *t, const unicon_rows *rows, const char *label_path, const unicon_model *model,
                unicon_side side, classes *out) {
  *out = (classes){0};
  unicon_status status = unicon_rows_open(t->ctx, tool_value(t, CLI_OPT_CLASSES), &out->vectors);
  if (status != UNICON_OK) return tool_fail(t, status);
  int code = name_classes(t, tool_value(t, CLI_OPT_CLASS_NAMES), out);
  if (code == EXIT_DONE) code = number_rows(t, label_path, unicon_rows_count(rows), out);
  if (code != EXIT_DONE) return code;
  unicon_view view = UNICON_VIEW(.rows = rows, .model = model, .side = side);
  const unicon_view vectors =
      UNICON_VIEW(.rows = out->vectors, .model = model,
                  .side = side == UNICON_X ? UNICON_Y : UNICON_X, .balance = t->balance);
  usable left = {0};
  code = usable_open(t, &view, &left);
  if (code == EXIT_DONE) {
    for (int64_t i = 0; i < left.count; i++) out->label[i] = out->label[usable_number(&left, i)];
    out->dropped = left.total - left.count;
    status = unicon_classify(t->ctx, &view, out->label, &vectors, NULL, &out->result);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  usable_close(&left);
  return code;
}

void classes_close(classes *c) {
  unicon_result_destroy(c->result);
  free(c->label);
  free(c->digits);
  free(c->name);
  unicon_labels_destroy(c->names);
  unicon_labels_destroy(c->labels);
  unicon_rows_close(c->vectors);
  *c = (classes){0};
}

confusion classes_confusion(const classes *c) {
  return (confusion){unicon_rows_count(c->vectors), c->name,
                     unicon_result_integers(c->result, "confusion", NULL, NULL)};
}

json_t *classes_json(const classes *c) {
  const confusion matrix = classes_confusion(c);
  json_t *out = display_json_result(c->result);
  json_object_set_new(out, "names", confusion_names_json(&matrix));
  return out;
}
