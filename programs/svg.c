/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"

#include <math.h>
#include <string.h>

enum { TICKS = 5 };

static const double far = 1e5; /* no coordinate lies beyond */

/* ---- text --------------------------------------------------------------------------------- */

static void put(FILE *out, unsigned char c) {
  switch (c) {
    case '&':
      fputs("&amp;", out);
      return;
    case '<':
      fputs("&lt;", out);
      return;
    case '>':
      fputs("&gt;", out);
      return;
    case '"':
      fputs("&quot;", out);
      return;
    case '\'':
      fputs("&#39;", out);
      return;
    default:
      fputc(c < 0x20 || c == 0x7f ? ' ' : c, out);
  }
}

void svg_text(FILE *out, const char *text, int most) {
  int count = 0;
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    const bool first = (*c & 0xc0) != 0x80; /* of a character */
    if (first && most > 0 && count++ == most) {
      fputs("\xe2\x80\xa6", out);
      return;
    }
    put(out, *c);
  }
}

void svg_number(FILE *out, double value) {
  char text[32];
  if (!isfinite(value)) value = 0;
  value = value > far ? far : value < -far ? -far : value;
  snprintf(text, sizeof text, "%.2f", value);
  size_t length = strlen(text);
  while (text[length - 1] == '0') text[--length] = '\0';
  if (text[length - 1] == '.') text[--length] = '\0';
  fputs(strcmp(text, "-0") == 0 ? "0" : text, out);
}

const char *svg_value(double value, char *out, size_t size) {
  snprintf(out, size, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
  return out;
}

const char *svg_percent(double share, char *out, size_t size) {
  const double percent = 100 * share;
  snprintf(out, size,
           percent >= 99.95 || percent == 0 ? "%.0f"
           : percent < 0.1                  ? "%.2g"
                                            : "%.1f",
           percent);
  return out;
}

/* ---- shapes ------------------------------------------------------------------------------- */

double svg_x(const svg_plot *p, double value) {
  const double range = p->x1 - p->x0;
  return p->left + (range > 0 ? (value - p->x0) / range : 0.5) * (p->right - p->left);
}

double svg_y(const svg_plot *p, double value) {
  const double range = p->y1 - p->y0;
  return p->bottom - (range > 0 ? (value - p->y0) / range : 0.5) * (p->bottom - p->top);
}

/* ` name="value"` */
static void attribute(FILE *out, const char *name, double value) {
  fprintf(out, " %s=\"", name);
  svg_number(out, value);
  fputc('"', out);
}

void svg_open(FILE *out, const char *name, double width, double height, const char *label) {
  fprintf(out, "<svg class=\"chart %s\" viewBox=\"0 0 ", name);
  svg_number(out, width);
  fputc(' ', out);
  svg_number(out, height);
  fputs("\" role=\"img\" aria-label=\"", out);
  svg_text(out, label, 0);
  fputs("\">\n", out);
}

void svg_close(FILE *out) {
  fputs("</svg>\n", out);
}

void svg_line(FILE *out, const char *name, double x1, double y1, double x2, double y2) {
  fprintf(out, "<line class=\"%s\"", name);
  attribute(out, "x1", x1);
  attribute(out, "y1", y1);
  attribute(out, "x2", x2);
  attribute(out, "y2", y2);
  fputs("/>\n", out);
}

void svg_rect(FILE *out, const char *name, double x, double y, double width, double height) {
  fprintf(out, "<rect class=\"%s\"", name);
  attribute(out, "x", x);
  attribute(out, "y", y);
  attribute(out, "width", width > 0 ? width : 0);
  attribute(out, "height", height > 0 ? height : 0);
  fputc('>', out);
}

void svg_label(FILE *out, const char *name, double x, double y, const char *anchor,
               const char *text) {
  fprintf(out, "<text class=\"%s\"", name);
  attribute(out, "x", x);
  attribute(out, "y", y);
  fprintf(out, " text-anchor=\"%s\">", anchor);
  svg_text(out, text, 0);
  fputs("</text>\n", out);
}

/* ---- axes --------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, so that a range has at most TICKS steps. */
static double nice_step(double range) {
  static const double nice[] = {1, 2, 5, 10};
  if (!(range > 0) || !isfinite(range)) return 1;
  const double raw = range / TICKS, base = pow(10, floor(log10(raw)));
  for (int k = 0; k < 4; k++)
    if (raw <= nice[k] * base * 1.000001) return nice[k] * base;
  return 10 * base;
}

void svg_y_axis(const svg_plot *p, const char *name, bool percent) {
  const double step = nice_step(p->y1 - p->y0), first = ceil(p->y0 / step - 1e-9);
  char text[32], number[24];
  for (int k = 0; k <= 2 * TICKS; k++) {
    const double value = (first + k) * step;
    if (!(value <= p->y1 + 1e-9 * step)) break;
    svg_line(p->out, "rule", p->left, svg_y(p, value), p->right, svg_y(p, value));
    snprintf(text, sizeof text, percent ? "%s %%" : "%s",
             svg_value((percent ? 100 : 1) * (fabs(value) < 1e-9 * step ? 0 : value), number,
                       sizeof number));
    svg_label(p->out, "tick", p->left - 8, svg_y(p, value) + 4, "end", text);
  }
  svg_label(p->out, "axis", 2, p->top - 14, "start", name);
}

void svg_x_name(const svg_plot *p, const char *name) {
  svg_line(p->out, "base", p->left, p->bottom, p->right, p->bottom);
  svg_label(p->out, "axis", (p->left + p->right) / 2, p->bottom + 38, "middle", name);
}

void svg_x_axis(const svg_plot *p, const char *name) {
  const double wide = nice_step(p->x1 - p->x0), step = wide < 1 ? 1 : wide;
  const double first = ceil(p->x0 / step - 1e-9);
  char text[24];
  for (int k = 0; k <= 2 * TICKS; k++) {
    const double value = (first + k) * step;
    if (!(value <= p->x1 + 1e-9)) break;
    svg_label(p->out, "tick", svg_x(p, value), p->bottom + 18, "middle",
              svg_value(value, text, sizeof text));
  }
  svg_x_name(p, name);
}
