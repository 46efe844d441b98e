/* SPDX-License-Identifier: Apache-2.0 */
/* The page: one HTML file that needs nothing else, made from a report. */
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "report_read.h"

/* ---- head --------------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

static void head(page *p) {
  const char *file = base_name(page_string(p, page_part(p, "model"), "file"));
  fputs(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>",
      p->out);
  page_text(p, file);
  fputs(" \xc2\xb7 unicon report</title>\n<style>\n", p->out);
  for (const char *const *piece = report_style; *piece; piece++) fputs(*piece, p->out);
  fputs("</style>\n</head>\n<body>\n<header>\n<p class=\"eyebrow\">unicon report</p>\n<h1>",
        p->out);
  page_text(p, file);
  fputs("</h1>\n", p->out);
}

/* "x: upper.test.npy, 500 rows" */
static void side_text(page *p, const char *side) {
  const json_t *about = page_object(p, page_part(p, "data"), side);
  fprintf(p->out, "%s is <code>", side);
  page_text(p, base_name(page_string(p, about, "file")));
  fprintf(p->out, "</code>, %.0f rows", page_number(p, about, "rows"));
}

static void lead(page *p) {
  const json_t *data = page_part(p, "data");
  fputs("<p class=\"lead\">How well two sides meet in the shared space of this model: ", p->out);
  side_text(p, "x");
  fputs("; ", p->out);
  side_text(p, "y");
  fprintf(p->out, "; %.0f true pairs between them.</p>\n", page_number(p, data, "pairs"));
}

static void tile(page *p, const char *number, const char *unit, const char *text) {
  fprintf(p->out, "<li><b>%s%s</b><span>%s</span></li>\n", number, unit, text);
}

static void tiles(page *p) {
  static const char *const key[2] = {"x_to_y", "y_to_x"}, *const way[2] = {
                                                              "x\xc2\xa0\xe2\x86\x92\xc2\xa0y",
                                                              "y\xc2\xa0\xe2\x86\x92\xc2\xa0x"};
  char number[24], text[128];
  fputs("<ul class=\"tiles\">\n", p->out);
  for (int d = 0; d < 2; d++) {
    const json_t *direction = page_part(p, key[d]);
    if (!direction) continue;
    const double hit = page_number(p, direction, "hit@1");
    const int at = snprintf(text, sizeof text, "hit@1, %s, among %.0f", way[d],
                            page_number(p, direction, "candidates"));
    if (page_balanced(p))
      snprintf(text + at, sizeof text - (size_t)at, "; plain: %s&#160;%%",
               svg_percent(page_plain(p, key[d], "hit@1", hit), number, sizeof number));
    tile(p, svg_percent(hit, number, sizeof number), "&#160;%", text);
  }
  for (int d = 0; d < 2; d++) {
    const json_t *direction = page_part(p, key[d]);
    if (!direction) continue;
    const double rank = page_number(p, direction, "median_rank");
    const int at = snprintf(text, sizeof text, "median rank, %s", way[d]);
    if (page_balanced(p))
      snprintf(text + at, sizeof text - (size_t)at, "; plain: %g",
               page_plain(p, key[d], "median_rank", rank));
    snprintf(number, sizeof number, "%g", rank);
    tile(p, number, "", text);
  }
  const json_t *model = page_part(p, "model"), *zero_shot = page_part(p, "zero_shot");
  if (model) {
    snprintf(number, sizeof number, "%.0f", page_number(p, model, "rank"));
    snprintf(text, sizeof text, "dimensions, from %.0f and %.0f", page_number(p, model, "x_width"),
             page_number(p, model, "y_width"));
    tile(p, number, "", text);
  }
  if (zero_shot)
    tile(p, svg_percent(page_number(p, zero_shot, "accuracy"), number, sizeof number), "&#160;%",
         "zero-shot accuracy");
  fputs("</ul>\n", p->out);
}

static void contents(page *p) {
  fputs("<nav aria-label=\"Contents\"><ol><li><a href=\"#retrieval\">Retrieval</a></li>", p->out);
  if (page_part(p, "balance")) fputs("<li><a href=\"#hubs\">Hubs and balance</a></li>", p->out);
  fputs(
      "<li><a href=\"#space\">The shared space</a></li><li><a href=\"#fit\">The fit</a></li>"
      "<li><a href=\"#weights\">Scores and weights</a></li><li><a href=\"#rows\">Rows to look "
      "at</a></li>",
      p->out);
  if (page_part(p, "zero_shot")) fputs("<li><a href=\"#classes\">Zero-shot</a></li>", p->out);
  fputs("</ol></nav>\n</header>\n<main>\n", p->out);
}

/* ---- retrieval ---------------------------------------------------------------------------- */

static void recall_caption(page *p) {
  const json_t *to_y = page_part(p, "x_to_y");
  char found[24], chance[24];
  if (to_y)
    fprintf(
        p->out,
        "<figcaption>%s&#160;%% of the rows of x find a true match first among the %.0f rows of y; "
        "a random order would find %s&#160;%%. hit@k is what papers call R@k; ties count against "
        "the model.</figcaption>\n",
        svg_percent(page_number(p, to_y, "hit@1"), found, sizeof found),
        page_number(p, to_y, "candidates"),
        svg_percent(page_maybe(p, page_object(p, to_y, "chance"), "hit@1", 0), chance,
                    sizeof chance));
  fputs("</figure>\n", p->out);
}

static void metric_cells(page *p, const char *way, const char *metric) {
  const json_t *direction = page_part(p, way);
  const json_t *interval = json_object_get(json_object_get(direction, "ci"), metric);
  const bool balanced = page_balanced(p) != NULL;
  if (!json_object_get(direction, metric)) {
    for (int k = balanced ? 3 : 2; k > 0; k--) fputs("<td class=\"n\"></td>", p->out);
    return;
  }
  const double value = page_number(p, direction, metric);
  fprintf(p->out, "<td class=\"n\">%.4g</td><td class=\"n\">", value);
  if (interval)
    fprintf(p->out, "%.4g to %.4g", page_entry(p, interval, 0), page_entry(p, interval, 1));
  fputs("</td>", p->out);
  if (balanced) fprintf(p->out, "<td class=\"n\">%.4g</td>", page_plain(p, way, metric, value));
}

static void metrics_table(page *p) {
  static const char *const names[] = {"hit@1",    "hit@5",       "hit@10",   "recall@1",
                                      "recall@5", "recall@10",   "mrr",      "map",
                                      "ndcg@10",  "median_rank", "mean_rank"};
  const bool balanced = page_balanced(p) != NULL;
  fputs(
      "<details><summary>All metrics as numbers</summary>\n<div class=\"card scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"All metrics\"><table><thead><tr><th "
      "scope=\"col\">metric</th>",
      p->out);
  for (int d = 0; d < 2; d++)
    fprintf(p->out,
            "<th scope=\"col\" class=\"n\">%s</th><th scope=\"col\" class=\"n\">95 %% "
            "interval</th>%s",
            d == 0 ? "x \xe2\x86\x92 y" : "y \xe2\x86\x92 x",
            balanced ? "<th scope=\"col\" class=\"n\">plain</th>" : "");
  fputs("</tr></thead><tbody>\n", p->out);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    fprintf(p->out, "<tr><th scope=\"row\">%s</th>", names[k]);
    metric_cells(p, "x_to_y", names[k]);
    metric_cells(p, "y_to_x", names[k]);
    fputs("</tr>\n", p->out);
  }
  fputs("</tbody></table></div></details>\n", p->out);
}

static void retrieval(page *p) {
  page_section(p, "retrieval", "Retrieval",
               "Each row looks for its partner on the other side; all rows of the other side are "
               "candidates.");
  fputs("<div class=\"grid\">\n", p->out);
  chart_recall(p);
  recall_caption(p);
  chart_ranks(p);
  fputs("</div>\n", p->out);
  metrics_table(p);
  fputs("</section>\n", p->out);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void write_page(page *p) {
  const json_t *part;
  head(p);
  lead(p);
  tiles(p);
  contents(p);
  retrieval(p);
  page_hubs(p);
  if ((part = page_part(p, "view"))) {
    page_section(p, "space", "The shared space",
                 "Rows of both sides in one picture, thinned where there are many.");
    chart_plane(p, part);
    fputs("</section>\n", p->out);
  }
  page_fit(p);
  if ((part = page_part(p, "weights"))) {
    page_section(p, "weights", "Scores and weights",
                 "A few rows of both sides, ordered by pair: each row of x stands in line with its "
                 "partner in y.");
    chart_weights(p, part);
    fputs("</section>\n", p->out);
  }
  page_rows(p);
  page_classes(p);
  fputs("</main>\n<footer>Made by unicon ", p->out);
  page_text(p, page_string(p, p->report, "unicon"));
  fputs(
      " from one JSON object: <code>unicon report MODEL X Y --json</code> prints it, "
      "<code>unicon report --from FILE.json</code> makes this page again. Point at a mark to read "
      "its value.</footer>\n</body>\n</html>\n",
      p->out);
}

/* Needed of every report, whatever parts it has. */
static bool is_report(page *p) {
  const char *format = json_string_value(json_object_get(p->report, "format"));
  static const char *const part[] = {"model", "data", "x_to_y", "y_to_x"};
  if (!format || strcmp(format, REPORT_FORMAT) != 0) {
    snprintf(p->error, sizeof p->error, "not a report: `format` is not `%s`", REPORT_FORMAT);
    return false;
  }
  if (json_integer_value(json_object_get(p->report, "version")) != REPORT_VERSION) {
    snprintf(p->error, sizeof p->error, "`version` must be %d", REPORT_VERSION);
    return false;
  }
  for (size_t k = 0; k < sizeof part / sizeof *part; k++)
    if (!page_part(p, part[k])) {
      if (!*p->error) snprintf(p->error, sizeof p->error, "the part `%s` is missing", part[k]);
      return false;
    }
  return true;
}

char *report_page(const json_t *report, size_t *size, char *error, size_t room) {
  char *html = NULL;
  page p = {.report = report, .section = "report"};
  if (is_report(&p)) {
    p.out = open_memstream(&html, size);
    if (p.out) {
      write_page(&p);
      const bool failed = ferror(p.out) != 0;
      if ((fclose(p.out) != 0 || failed) && !*p.error)
        snprintf(p.error, sizeof p.error, "out of memory");
    } else {
      snprintf(p.error, sizeof p.error, "out of memory");
    }
  }
  if (!*p.error) return html;
  snprintf(error, room, "%s", p.error);
  free(html);
  return NULL;
}
