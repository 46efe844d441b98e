/* SPDX-License-Identifier: Apache-2.0 */
#include "report_read.h"

#include <string.h>

static void complain(page *p, const char *key, const char *what) {
  if (*p->error) return;
  snprintf(p->error, sizeof p->error, "%s: `%s` must be %s", p->section, key, what);
}

const json_t *page_part(page *p, const char *name) {
  const json_t *part = json_object_get(p->report, name);
  p->section = name;
  if (!part || json_is_object(part)) return part;
  complain(p, name, "an object");
  return NULL;
}

double page_maybe(page *p, const json_t *object, const char *key, double otherwise) {
  const json_t *value = json_object_get(object, key);
  if (!value) return otherwise;
  if (!json_is_number(value)) complain(p, key, "a number");
  return json_number_value(value);
}

double page_number(page *p, const json_t *object, const char *key) {
  if (!json_object_get(object, key)) complain(p, key, "there");
  return page_maybe(p, object, key, 0);
}

const char *page_string(page *p, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (json_is_string(value)) return json_string_value(value);
  complain(p, key, value ? "a text" : "there");
  return "";
}

const json_t *page_object(page *p, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (json_is_object(value)) return value;
  complain(p, key, value ? "an object" : "there");
  return NULL;
}

const json_t *page_list(page *p, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (json_is_array(value)) return value;
  complain(p, key, value ? "a list" : "there");
  return NULL;
}

double page_entry(page *p, const json_t *list, size_t index) {
  const json_t *value = json_array_get(list, index);
  if (!json_is_number(value)) complain(p, "entry of a list", "a number");
  return json_number_value(value);
}

double page_cell(page *p, const json_t *rows, size_t row, size_t column) {
  return page_entry(p, json_array_get(rows, row), column);
}

const char *page_name(page *p, const json_t *value, char *out, size_t size) {
  if (json_is_string(value)) return json_string_value(value);
  if (!json_is_integer(value)) complain(p, "name of a row", "a text or a whole number");
  snprintf(out, size, "%lld", (long long)json_integer_value(value));
  return out;
}

const char *page_balanced(page *p) {
  const char *section = p->section;
  const json_t *part = page_part(p, "balance");
  const char *how = part ? page_string(p, part, "how") : "off";
  p->section = section;
  return strcmp(how, "off") == 0 ? NULL : how;
}

double page_plain(page *p, const char *direction, const char *metric, double otherwise) {
  const char *section = p->section;
  const json_t *part = page_part(p, "balance");
  if (part) {
    const json_t *plain = page_object(p, page_object(p, part, direction), "plain");
    otherwise = page_maybe(p, plain, metric, otherwise);
  }
  p->section = section;
  return otherwise;
}

void page_text(page *p, const char *text) {
  svg_text(p->out, text, 0);
}

void page_section(page *p, const char *id, const char *title, const char *text) {
  fprintf(p->out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, title);
  if (text) fprintf(p->out, "<p class=\"lead\">%s</p>\n", text);
}
