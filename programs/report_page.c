/* SPDX-License-Identifier: Apache-2.0 */
#include "report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

const char *const way_key[2] = {"x_to_y", "y_to_x"};

/* ---- values ------------------------------------------------------------------------------- */

void complain(page *p, const char *key, const char *what) {
  if (*p->error) return;
  snprintf(p->error, sizeof p->error, "%s: `%s` must be %s", p->section, key, what);
}

const json_t *get_part(page *p, const char *name) {
  const json_t *part = json_object_get(p->report, name);
  p->section = name;
  if (!part || json_is_object(part)) return part;
  complain(p, name, "an object");
  return NULL;
}

double get_maybe(page *p, const json_t *object, const char *key, double otherwise) {
  const json_t *value = json_object_get(object, key);
  if (!value) return otherwise;
  if (!json_is_number(value)) complain(p, key, "a number");
  return json_number_value(value);
}

double get_number(page *p, const json_t *object, const char *key) {
  if (!json_object_get(object, key)) complain(p, key, "there");
  return get_maybe(p, object, key, 0);
}

const char *get_string(page *p, const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (json_is_string(value)) return json_string_value(value);
  complain(p, key, value ? "a text" : "there");
  return "";
}

static const json_t *get_of(page *p, const json_t *object, const char *key, json_type type) {
  const json_t *value = json_object_get(object, key);
  if (value && json_typeof(value) == type) return value;
  complain(p, key, !value ? "there" : type == JSON_ARRAY ? "a list" : "an object");
  return NULL;
}

const json_t *get_object(page *p, const json_t *object, const char *key) {
  return get_of(p, object, key, JSON_OBJECT);
}

const json_t *get_list(page *p, const json_t *object, const char *key) {
  return get_of(p, object, key, JSON_ARRAY);
}

double get_entry(page *p, const json_t *list, size_t index) {
  const json_t *value = json_array_get(list, index);
  if (!json_is_number(value)) complain(p, "entry of a list", "a number");
  return json_number_value(value);
}

double get_cell(page *p, const json_t *rows, size_t row, size_t column) {
  return get_entry(p, json_array_get(rows, row), column);
}

const char *get_balance(page *p) {
  const json_t *part = json_object_get(p->report, "balance");
  const char *how = part ? get_string(p, part, "how") : "off";
  return strcmp(how, "off") == 0 ? NULL : how;
}

double get_plain(page *p, int direction, const char *metric, double otherwise) {
  const json_t *part = json_object_get(p->report, "balance");
  if (!part) return otherwise;
  const json_t *plain = get_object(p, get_object(p, part, way_key[direction]), "plain");
  return get_maybe(p, plain, metric, otherwise);
}

const char *meta(const json_t *metadata, const char *key) {
  const char *value = json_string_value(json_object_get(metadata, key));
  return value ? value : "";
}

static double item(page *p, const json_t *list, size_t k, const char *key) {
  return key ? get_number(p, json_array_get(list, k), key) : get_entry(p, list, k);
}

double sum_of(page *p, const json_t *list, const char *key) {
  double sum = 0;
  for (size_t k = 0; k < json_array_size(list); k++) sum += item(p, list, k, key);
  return sum;
}

double most_of(page *p, const json_t *list, const char *key) {
  double most = json_array_size(list) > 0 ? -INFINITY : 0;
  for (size_t k = 0; k < json_array_size(list); k++) most = fmax(most, item(p, list, k, key));
  return most;
}

double least_of(page *p, const json_t *list, const char *key) {
  double least = json_array_size(list) > 0 ? INFINITY : 0;
  for (size_t k = 0; k < json_array_size(list); k++) least = fmin(least, item(p, list, k, key));
  return least;
}

double largest_of(page *p, const json_t *rows, size_t n_x, size_t n_y) {
  double most = 0;
  for (size_t i = 0; i < n_x && !*p->error; i++)
    for (size_t j = 0; j < n_y && !*p->error; j++) most = fmax(most, fabs(get_cell(p, rows, i, j)));
  return most > 0 ? most : 1;
}

size_t taken_for(page *p, const json_t *row, size_t own) {
  size_t best = SIZE_MAX;
  double most = 0;
  for (size_t k = 0; k < json_array_size(row); k++) {
    const double count = get_entry(p, row, k);
    if (k == own || !(count > most)) continue;
    most = count;
    best = k;
  }
  return best;
}

double letters_of(page *p, const json_t *names, size_t most) {
  size_t longest = 1;
  for (size_t k = 0; k < json_array_size(names); k++) {
    const json_t *name = json_array_get(names, k);
    if (!json_is_string(name) && !json_is_integer(name)) complain(p, "name", "a text");
    const size_t length = json_is_string(name) ? json_string_length(name) : 6;
    if (length > longest) longest = length;
  }
  return (double)(longest < most ? longest : most + 1);
}

const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

/* ---- output ------------------------------------------------------------------------------- */

void put_number(page *p, double value) {
  char text[32];
  snprintf(text, sizeof text, "%.2f", isfinite(value) ? fmin(fmax(value, -1e5), 1e5) : 0);
  size_t length = strlen(text);
  while (text[length - 1] == '0') text[--length] = '\0';
  if (text[length - 1] == '.') text[--length] = '\0';
  fputs(strcmp(text, "-0") == 0 ? "0" : text, p->out);
}

void put_short(page *p, double value) {
  fprintf(p->out, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
}

void put_percent(page *p, double share) {
  const double x = 100 * share;
  fprintf(p->out, x >= 99.95 || x == 0 ? "%.0f" : x < 0.1 ? "%.2g" : "%.1f", x);
}

void put_text(page *p, const char *text, size_t most) {
  static const char special[] = "&<>\"'";
  static const char *const escape[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  size_t count = 0;
  for (; *text; text++) {
    const unsigned char c = (unsigned char)*text;
    const char *found = strchr(special, c);
    if ((c & 0xc0) != 0x80 && count++ == most) { /* the first byte of a character */
      fputs("\xe2\x80\xa6", p->out);
      return;
    }
    if (found)
      fputs(escape[found - special], p->out);
    else
      fputc(c < 0x20 || c == 0x7f ? ' ' : c, p->out);
  }
}

void put_name(page *p, const json_t *name, size_t most) {
  if (json_is_string(name))
    put_text(p, json_string_value(name), most);
  else if (json_is_integer(name))
    fprintf(p->out, "%lld", (long long)json_integer_value(name));
  else
    complain(p, "name of a row", "a text or a whole number");
}

/* A < is found in texts alone, where \u003c says the same. */
void put_json(page *p) {
  char *text = json_dumps(p->report, JSON_COMPACT | JSON_REAL_PRECISION(12));
  if (!text) complain(p, "report", "small enough for the memory");
  for (const char *c = text; c && *c; c++) {
    if (*c == '<')
      fputs("\\u003c", p->out);
    else
      fputc(*c, p->out);
  }
  free(text);
}

/* ---- plots -------------------------------------------------------------------------------- */

double at_x(const plot *g, double value) {
  const double range = g->x1 - g->x0;
  return g->left + (range > 0 ? (value - g->x0) / range : 0.5) * (g->right - g->left);
}

double at_y(const plot *g, double value) {
  const double range = g->y1 - g->y0;
  return g->bottom - (range > 0 ? (value - g->y0) / range : 0.5) * (g->bottom - g->top);
}

plot plane_plot(page *p, const json_t *points, double width, double height) {
  enum { EDGE = 10 };
  plot g = {EDGE,
            width - EDGE,
            EDGE,
            height - EDGE,
            least_of(p, points, "at_x"),
            most_of(p, points, "at_x"),
            least_of(p, points, "at_y"),
            most_of(p, points, "at_y")};
  const double wide = g.right - g.left, high = g.bottom - g.top;
  const double unit = fmax((g.x1 - g.x0) / wide, (g.y1 - g.y0) / high);
  const double more_x = (unit * wide - (g.x1 - g.x0)) / 2,
               more_y = (unit * high - (g.y1 - g.y0)) / 2;
  g.x0 -= more_x;
  g.x1 += more_x;
  g.y0 -= more_y;
  g.y1 += more_y;
  return g;
}

int ticks(double low, double high, double least, double out[MOST_TICKS]) {
  enum { STEPS = 5 };
  const double range = high - low, raw = range > 0 && isfinite(range) ? range / STEPS : 1;
  const double base = pow(10, floor(log10(raw))), times = raw / base;
  double step = base * (times <= 1.000001 ? 1 : times <= 2.000001 ? 2 : times <= 5.000001 ? 5 : 10);
  step = fmax(step, least);
  const double first = ceil(low / step - 1e-9);
  int count = 0;
  for (; count < MOST_TICKS && (first + count) * step <= high + 1e-9 * step; count++)
    out[count] = (first + count) * step;
  return count;
}

/* ---- colours of labels -------------------------------------------------------------------- */

enum { COLOURS = 10 };

/* The label of a point, or `count`. */
static size_t label_of(page *p, const palette *c, const json_t *point) {
  const double label = get_maybe(p, point, "label", -1);
  return label >= 0 && label < (double)c->count ? (size_t)label : c->count;
}

void palette_open(page *p, const json_t *view, const json_t *points, palette *out) {
  *out = (palette){.labels = json_object_get(view, "labels")};
  if (!out->labels || !(out->labels = get_list(p, view, "labels"))) return;
  out->count = json_array_size(out->labels);
  out->colour = calloc(2 * out->count + 2, sizeof *out->colour);
  if (!out->colour) {
    complain(p, "labels", "fewer: out of memory");
    out->count = 0;
    return;
  }
  int *points_of = out->colour + out->count + 1;
  for (size_t k = 0; k < json_array_size(points); k++)
    points_of[label_of(p, out, json_array_get(points, k))]++;
  for (size_t k = 0; k < out->count; k++) out->colour[k] = -1;
  for (int next = 0; next < COLOURS && (size_t)next < out->count; next++) {
    size_t best = out->count; /* the commonest that has no colour yet, the first of equals */
    for (size_t k = 0; k < out->count; k++)
      if (out->colour[k] < 0 && (best == out->count || points_of[k] > points_of[best])) best = k;
    out->colour[best] = 0;
  }
  int next = 0; /* colours go by the order of the labels */
  for (size_t k = 0; k < out->count; k++)
    if (out->colour[k] == 0) out->colour[k] = next++;
}

void palette_close(palette *c) {
  free(c->colour);
}

const char *palette_class(page *p, const palette *c, const json_t *point) {
  static const char *const by_rank[] = {"r0", "r1", "r2", "r3", "r4"};
  static const char *const by_label[] = {"k0", "k1", "k2", "k3", "k4",
                                         "k5", "k6", "k7", "k8", "k9"};
  if (c->labels) {
    const size_t label = label_of(p, c, point);
    return label < c->count && c->colour[label] >= 0 ? by_label[c->colour[label]] : "k-other";
  }
  const double rank = get_number(p, point, "rank");
  return by_rank[rank < 1 ? 4 : rank <= 1 ? 0 : rank <= 5 ? 1 : rank <= 10 ? 2 : 3];
}

const json_t *palette_label(page *p, const palette *c, const json_t *point) {
  return json_array_get(c->labels, label_of(p, c, point));
}

/* ---- the page ----------------------------------------------------------------------------- */

/* Needed of every report, whatever parts it has. */
static bool is_report(page *p) {
  static const char *const part[] = {"model", "data", "x_to_y", "y_to_x"};
  const char *format = json_string_value(json_object_get(p->report, "format"));
  if (!format || strcmp(format, REPORT_FORMAT) != 0)
    snprintf(p->error, sizeof p->error, "not a report: `format` is not `%s`", REPORT_FORMAT);
  else if (json_integer_value(json_object_get(p->report, "version")) != REPORT_VERSION)
    snprintf(p->error, sizeof p->error, "`version` must be %d", REPORT_VERSION);
  for (size_t k = 0; k < sizeof part / sizeof *part && !*p->error; k++)
    if (!get_part(p, part[k]) && !*p->error)
      snprintf(p->error, sizeof p->error, "the part `%s` is missing", part[k]);
  return !*p->error;
}

char *report_page(const json_t *report, size_t *size, char *error, size_t room) {
  char *html = NULL;
  page p = {.report = report, .section = "report"};
  if (is_report(&p)) {
    cards_open(&p);
    p.out = open_memstream(&html, size);
    if (p.out) report_template(&p);
    cards_close(&p);
    const bool written = p.out && ferror(p.out) == 0;
    if ((!p.out || fclose(p.out) != 0 || !written) && !*p.error)
      snprintf(p.error, sizeof p.error, "out of memory");
  }
  if (!*p.error) return html;
  snprintf(error, room, "%s", p.error);
  free(html);
  return NULL;
}
