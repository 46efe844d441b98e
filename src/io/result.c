/* SPDX-License-Identifier: Apache-2.0 */
#include "io/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "io/object.h"

typedef struct entry {
  char name[UNICON__RESULT_NAME];
  unicon_kind kind;
  int64_t rows, width; /* of an array */
  int64_t integer;
  double real;
  void *data; /* text or array */
} entry;

struct unicon_result {
  unicon__arena arena; /* holds everything below, this struct too */
  unicon_status status;
  entry *entry;
  int64_t count, room;
};

/* ---- making ------------------------------------------------------------------------------- */

unicon_result *unicon__result_new(unicon_ctx *ctx) {
  return unicon__object_new(ctx, sizeof(unicon_result));
}

static unicon_status grow(unicon_ctx *ctx, unicon_result *r) {
  entry *larger;
  if (r->count < r->room) return UNICON_OK;
  UNICON_ARENA_NEW(ctx, &r->arena, larger, 2 * r->room + 16);
  if (r->count > 0) memcpy(larger, r->entry, (size_t)r->count * sizeof *larger);
  unicon__arena_drop(&r->arena, r->entry);
  r->entry = larger;
  r->room = 2 * r->room + 16;
  return UNICON_OK;
}

/* A new entry with a copy of `bytes` bytes of data, or NULL where memory ran out, now or before. */
static entry *add(unicon_ctx *ctx, unicon_result *r, const char *name, unicon_kind kind,
                  const void *data, size_t bytes) {
  if (!r || r->status != UNICON_OK) return NULL;
  void *copy = NULL;
  r->status = grow(ctx, r);
  if (r->status == UNICON_OK && data) {
    copy = unicon__arena_new(ctx, &r->arena, (int64_t)bytes, 1);
    if (!copy) r->status = UNICON_ERR_MEMORY;
  }
  if (r->status != UNICON_OK) return NULL;
  if (copy) memcpy(copy, data, bytes);
  entry *e = &r->entry[r->count++];
  *e = (entry){.kind = kind, .data = copy};
  snprintf(e->name, sizeof e->name, "%s", name);
  return e;
}

void unicon__result_integer(unicon_ctx *ctx, unicon_result *r, const char *name, int64_t value) {
  entry *e = add(ctx, r, name, UNICON_KIND_INTEGER, NULL, 0);
  if (e) e->integer = value;
}

void unicon__result_real(unicon_ctx *ctx, unicon_result *r, const char *name, double value) {
  entry *e = isfinite(value) ? add(ctx, r, name, UNICON_KIND_REAL, NULL, 0) : NULL;
  if (e) e->real = value;
}

void unicon__result_text(unicon_ctx *ctx, unicon_result *r, const char *name, const char *value) {
  add(ctx, r, name, UNICON_KIND_TEXT, value, strlen(value) + 1);
}

static void add_array(unicon_ctx *ctx, unicon_result *r, const char *name, unicon_kind kind,
                      const void *values, int64_t rows, int64_t width, size_t size) {
  const int64_t count = rows * (width > 0 ? width : 1);
  entry *e = add(ctx, r, name, kind, count > 0 ? values : "", (size_t)count * size);
  if (!e) return;
  e->rows = rows;
  e->width = width;
}

void unicon__result_reals(unicon_ctx *ctx, unicon_result *r, const char *name, const double *values,
                          int64_t rows, int64_t width) {
  add_array(ctx, r, name, UNICON_KIND_REALS, values, rows, width, sizeof *values);
}

void unicon__result_integers(unicon_ctx *ctx, unicon_result *r, const char *name,
                             const int64_t *values, int64_t rows, int64_t width) {
  add_array(ctx, r, name, UNICON_KIND_INTEGERS, values, rows, width, sizeof *values);
}

unicon_status unicon__result_done(unicon_result *r, unicon_result **out) {
  const unicon_status status = r ? r->status : UNICON_ERR_MEMORY;
  if (status == UNICON_OK)
    *out = r;
  else
    unicon_result_destroy(r);
  return status;
}

void unicon_result_destroy(unicon_result *result) {
  unicon__object_free(result);
}

/* ---- reading ------------------------------------------------------------------------------ */

static const entry *find(const unicon_result *r, const char *name) {
  for (int64_t k = 0; r && name && k < r->count; k++)
    if (strcmp(r->entry[k].name, name) == 0) return &r->entry[k];
  return NULL;
}

const char *unicon_result_name(const unicon_result *result, size_t index) {
  return result && index < (size_t)result->count ? result->entry[index].name : NULL;
}

unicon_kind unicon_result_kind(const unicon_result *result, const char *name) {
  const entry *e = find(result, name);
  return e ? e->kind : UNICON_KIND_NONE;
}

unicon_status unicon_result_number(const unicon_result *result, const char *name, double *value) {
  const entry *e = find(result, name);
  const bool integer = e && e->kind == UNICON_KIND_INTEGER;
  const bool found = integer || (e && e->kind == UNICON_KIND_REAL);
  if (value) *value = integer ? (double)e->integer : found ? e->real : NAN;
  return value && found ? UNICON_OK : UNICON_ERR_ARGUMENT;
}

const char *unicon_result_text(const unicon_result *result, const char *name) {
  const entry *e = find(result, name);
  return e && e->kind == UNICON_KIND_TEXT ? e->data : NULL;
}

/* The array of that name and kind, with its shape. */
static const void *find_array(const unicon_result *r, const char *name, unicon_kind kind,
                              int64_t *rows, int64_t *width) {
  const entry *e = find(r, name);
  const bool found = e && e->kind == kind;
  if (rows) *rows = found ? e->rows : 0;
  if (width) *width = found ? e->width : 0;
  return found ? e->data : NULL;
}

const double *unicon_result_reals(const unicon_result *result, const char *name, int64_t *rows,
                                  int64_t *width) {
  return find_array(result, name, UNICON_KIND_REALS, rows, width);
}

const int64_t *unicon_result_integers(const unicon_result *result, const char *name, int64_t *rows,
                                      int64_t *width) {
  return find_array(result, name, UNICON_KIND_INTEGERS, rows, width);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* Text that is cut where the room ends, while its length is counted to the end. */
typedef struct sink {
  char *out;
  size_t room, length;
} sink;

static void put(sink *to, const char *text, size_t length) {
  if (to->length < to->room) {
    const size_t left = to->room - to->length;
    memcpy(to->out + to->length, text, length < left ? length : left);
  }
  to->length += length;
}

static void put_text(sink *to, const char *text) {
  put(to, text, strlen(text));
}

static void put_string(sink *to, const char *text, size_t length) {
  put(to, "\"", 1);
  for (size_t k = 0; k < length; k++) {
    const unsigned char c = (unsigned char)text[k];
    char escaped[8];
    if (c == '"' || c == '\\')
      snprintf(escaped, sizeof escaped, "\\%c", c);
    else
      snprintf(escaped, sizeof escaped, c < 0x20 ? "\\u%04x" : "%c", c);
    put_text(to, escaped);
  }
  put(to, "\"", 1);
}

static void put_integer(sink *to, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put_text(to, text);
}

/* As short as it can be read back; null where it is not finite, which JSON cannot say. */
static void put_real(sink *to, double value) {
  char text[32] = "null";
  for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
    char *end;
    unicon__number_print(text, sizeof text, "%.*g", digits, value);
    if (unicon__number_read(text, &end) == value) break;
  }
  put_text(to, text);
  if (isfinite(value) && !strpbrk(text, ".e")) put(to, ".0", 2);
}

static void put_item(sink *to, const entry *e, int64_t k) {
  if (e->kind == UNICON_KIND_REALS)
    put_real(to, ((const double *)e->data)[k]);
  else
    put_integer(to, ((const int64_t *)e->data)[k]);
}

/* A list, or a list of lists. */
static void put_array(sink *to, const entry *e) {
  const int64_t width = e->width > 0 ? e->width : 1;
  put(to, "[", 1);
  for (int64_t i = 0; i < e->rows; i++) {
    if (i > 0) put(to, ", ", 2);
    if (e->width > 0) put(to, "[", 1);
    for (int64_t j = 0; j < width; j++) {
      if (j > 0) put(to, ", ", 2);
      put_item(to, e, i * width + j);
    }
    if (e->width > 0) put(to, "]", 1);
  }
  put(to, "]", 1);
}

static void put_value(sink *to, const entry *e) {
  switch (e->kind) {
    case UNICON_KIND_INTEGER:
      put_integer(to, e->integer);
      return;
    case UNICON_KIND_REAL:
      put_real(to, e->real);
      return;
    case UNICON_KIND_TEXT:
      put_string(to, e->data, strlen(e->data));
      return;
    case UNICON_KIND_REALS:
    case UNICON_KIND_INTEGERS:
      put_array(to, e);
      return;
    case UNICON_KIND_NONE:
      return;
  }
}

/* Length of the part of a name that says in which object it is, its last dot included. */
static size_t folder(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? (size_t)(dot - name) + 1 : 0;
}

/* Closes the objects that `name` is not in, opens those it is in; `open` is the folder so far. */
static void move(sink *to, const char *open, size_t open_length, const char *name) {
  const size_t length = folder(name);
  size_t common = 0;
  for (size_t k = 0; k < length && k < open_length && open[k] == name[k]; k++)
    if (name[k] == '.') common = k + 1;
  for (size_t k = common; k < open_length; k++)
    if (open[k] == '.') put(to, "}", 1);
  if (open) put(to, ", ", 2);
  for (size_t k = common, start = common; k < length; k++) {
    if (name[k] != '.') continue;
    put_string(to, name + start, k - start);
    put(to, ": {", 3);
    start = k + 1;
  }
}

size_t unicon_result_json(const unicon_result *result, char *out, size_t room) {
  sink to = {out, out && room > 0 ? room - 1 : 0, 0};
  const char *open = NULL;
  put(&to, "{", 1);
  for (int64_t k = 0; result && k < result->count; k++) {
    const entry *e = &result->entry[k];
    move(&to, open, open ? folder(open) : 0, e->name);
    put_string(&to, e->name + folder(e->name), strlen(e->name) - folder(e->name));
    put(&to, ": ", 2);
    put_value(&to, e);
    open = e->name;
  }
  for (size_t k = 0; open && k < folder(open); k++)
    if (open[k] == '.') put(&to, "}", 1);
  put(&to, "}", 1);
  if (out && room > 0) out[to.length < room - 1 ? to.length : room - 1] = '\0';
  return to.length;
}
