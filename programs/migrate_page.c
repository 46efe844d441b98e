/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"

enum { LABEL = 90, RIGHT = 620, LINE = 30, CHART_HEIGHT = 220 };

static const char *const style =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2330;--soft:#5b6575;"
    "--rule:#e3e6eb;--a:#2f6bdb;--b:#e0872f;--c:#b6bfcc}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#12151a;--card:#1a1e25;--ink:#e7eaf0;"
    "--soft:#9aa5b5;--rule:#2b313b;--a:#6fa0ff;--b:#f2a65a;--c:#4a5360}}\n"
    "body{margin:0 auto;max-width:860px;padding:32px 20px;background:var(--page);"
    "color:var(--ink);font:16px/1.55 system-ui,sans-serif}\n"
    "h1{font-size:1.6rem;margin:0 0 8px}h2{font-size:1.15rem;margin:36px 0 8px}\n"
    ".lead{font-size:1.05rem}.note{color:var(--soft);font-size:.9rem}\n"
    "svg{display:block;width:100%;height:auto;background:var(--card);border:1px solid var(--rule);"
    "border-radius:10px}svg text{font-size:12px;fill:var(--soft)}svg .value{fill:var(--ink)}\n"
    ".rule{stroke:var(--rule)}.base{stroke:var(--soft)}.whisker{stroke:var(--ink);stroke-width:"
    "1.4}.bar{fill:var(--c)}.bar.chosen{fill:var(--a)}.curve{stroke:var(--a);stroke-width:2}"
    ".dot{fill:var(--a)}\n"
    "table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--rule)}"
    "th{color:var(--soft);font-weight:500}td.n,th.n{text-align:right}\n";

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static double number_of(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

static void head(FILE *out, const json_t *decision) {
  fputs(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>unicon migration</title>\n<style>\n",
      out);
  fputs(style, out);
  fputs("</style>\n</head>\n<body>\n<h1>Migration: ", out);
  svg_text(out, text_of(decision, "verdict"), 0);
  fputs("</h1>\n<p class=\"lead\">", out);
  svg_text(out, text_of(decision, "sentence"), 0);
  fprintf(out,
          "</p>\n<p class=\"note\">%.0f pairs, from %.0f numbers (old) and %.0f (new); right "
          "answers: ",
          number_of(decision, "pairs"), number_of(decision, "old_width"),
          number_of(decision, "new_width"));
  svg_text(out, text_of(decision, "answers"), 0);
  fputs("; queries: ", out);
  svg_text(out, text_of(decision, "queries_are"), 0);
  fputs(".</p>\n", out);
}

/* One bar with its interval. */
static void bar(const svg_plot *p, const json_t *row, const char *score, double y, bool chosen) {
  const json_t *figure = json_object_get(row, score);
  const double value = number_of(figure, "value");
  char text[24];
  svg_label(p->out, "value", p->left - 8, y + 15, "end", text_of(row, "way"));
  svg_rect(p->out, chosen ? "bar chosen" : "bar", p->left, y + 3, svg_x(p, value) - p->left, 16);
  fprintf(p->out, "<title>%.3f (%.3f to %.3f)</title></rect>\n", value, number_of(figure, "low"),
          number_of(figure, "high"));
  svg_line(p->out, "whisker", svg_x(p, number_of(figure, "low")), y + 11,
           svg_x(p, number_of(figure, "high")), y + 11);
  snprintf(text, sizeof text, "%.3f", value);
  svg_label(p->out, "value", svg_x(p, fmax(value, number_of(figure, "high"))) + 6, y + 15, "start",
            text);
}

static void ways(FILE *out, const json_t *decision) {
  const json_t *list = json_object_get(decision, "ways"), *row;
  const char *score = text_of(decision, "score"), *verdict = text_of(decision, "verdict");
  const double height = (double)(json_array_size(list) * LINE + 10);
  size_t i;
  const svg_plot p = {out, LABEL, RIGHT, 0, height, 0, 1, 0, 1};
  fprintf(out, "<h2>%s, as deployed</h2>\n", score);
  svg_open(out, "ways", RIGHT + 80, height, "Ways beside each other");
  json_array_foreach(list, i, row)
      bar(&p, row, score, (double)(i * LINE + 5), strcmp(verdict, text_of(row, "way")) == 0);
  svg_close(out);
  fputs(
      "<table>\n<thead><tr><th>way</th><th>how</th><th class=\"n\">overlap@10</th>"
      "<th class=\"n\">ndcg@10</th><th class=\"n\">within@200</th><th class=\"n\">items</th>"
      "<th class=\"n\">queries</th></tr></thead>\n<tbody>\n",
      out);
  json_array_foreach(list, i, row) {
    const json_t *deep = json_object_get(row, "within@200");
    fputs("<tr><td>", out);
    svg_text(out, text_of(row, "way"), 0);
    fputs("</td><td>", out);
    svg_text(out, text_of(row, "how"), 0);
    fprintf(out, "</td><td class=\"n\">%.3f</td><td class=\"n\">%.3f</td><td class=\"n\">",
            number_of(json_object_get(row, "overlap@10"), "value"),
            number_of(json_object_get(row, "ndcg@10"), "value"));
    if (deep) fprintf(out, "%.3f", number_of(deep, "value"));
    fprintf(out, "</td><td class=\"n\">%.0f</td><td class=\"n\">%.0f</td></tr>\n",
            number_of(row, "items"), number_of(row, "queries"));
  }
  fputs("</tbody>\n</table>\n", out);
}

/* A curve over doublings. */
static void curve(FILE *out, const json_t *list, const char *title, const char *x, const char *y) {
  const size_t count = json_array_size(list);
  if (count < 2) return;
  double low = 1, high = 0;
  for (size_t i = 0; i < count; i++) {
    const double value = number_of(json_array_get(list, i), y);
    low = fmin(low, value);
    high = fmax(high, value);
  }
  const double margin = fmax(0.02, (high - low) / 4);
  const svg_plot p = {out,
                      60,
                      RIGHT,
                      20,
                      CHART_HEIGHT - 40,
                      0,
                      (double)(count - 1),
                      fmax(0, low - margin),
                      fmin(1, high + margin)};
  fprintf(out, "<h2>%s</h2>\n", title);
  svg_open(out, "curve", RIGHT + 80, CHART_HEIGHT, title);
  svg_y_axis(&p, "score", false);
  for (size_t i = 0; i < count; i++) {
    const json_t *point = json_array_get(list, i), *next = json_array_get(list, i + 1);
    const double at = svg_x(&p, (double)i), value = number_of(point, y);
    char text[32];
    if (next)
      svg_line(out, "curve", at, svg_y(&p, value), svg_x(&p, (double)(i + 1)),
               svg_y(&p, number_of(next, y)));
    svg_rect(out, "dot", at - 3, svg_y(&p, value) - 3, 6, 6);
    fprintf(out, "<title>%.3f</title></rect>\n", value);
    snprintf(text, sizeof text, "%.0f", number_of(point, x));
    svg_label(out, "", at, CHART_HEIGHT - 20, "middle", text);
  }
  svg_x_name(&p, x);
  svg_close(out);
}

static void tried(FILE *out, const json_t *decision) {
  const json_t *list = json_object_get(decision, "tried"), *row;
  size_t i;
  fputs(
      "<h2>What was tried</h2>\n<table>\n<thead><tr><th>way</th><th>method</th><th>kernel</th>"
      "<th class=\"n\">width</th><th class=\"n\">ridge</th><th class=\"n\">pairs</th>"
      "<th class=\"n\">score</th></tr></thead>\n<tbody>\n",
      out);
  json_array_foreach(list, i, row) {
    const json_t *width = json_object_get(row, "width"), *ridge = json_object_get(row, "ridge");
    fprintf(out, "<tr><td>%s</td><td>%s</td><td>%s</td><td class=\"n\">", text_of(row, "way"),
            text_of(row, "method"), text_of(row, "kernel"));
    if (width) fprintf(out, "%.3g", json_number_value(width));
    fputs("</td><td class=\"n\">", out);
    if (ridge) fprintf(out, "%.2g", json_number_value(ridge));
    fprintf(out, "</td><td class=\"n\">%.0f</td><td class=\"n\">%.3f</td></tr>\n",
            number_of(row, "pairs"), number_of(row, "score"));
  }
  fputs(
      "</tbody>\n</table>\n<p class=\"note\">Every setting was judged on items that its map has "
      "not seen.</p>\n",
      out);
}

char *migrate_page(const json_t *decision, size_t *size) {
  char *text = NULL;
  FILE *out = open_memstream(&text, size);
  if (!out) return NULL;
  head(out, decision);
  ways(out, decision);
  curve(out, json_object_get(decision, "by_pairs"), "By the number of pairs", "pairs", "score");
  curve(out, json_object_get(decision, "by_items"), "By the number of items searched", "items",
        "overlap@10");
  tried(out, decision);
  fputs("</body>\n</html>\n", out);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}
