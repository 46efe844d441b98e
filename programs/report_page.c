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
  char number[24], text[96];
  fputs("<ul class=\"tiles\">\n", p->out);
  for (int d = 0; d < 2; d++) {
    const json_t *direction = page_part(p, key[d]);
    if (!direction) continue;
    snprintf(text, sizeof text, "hit@1, %s, among %.0f", way[d],
             page_number(p, direction, "candidates"));
    tile(p, svg_percent(page_number(p, direction, "hit@1"), number, sizeof number), "&#160;%",
         text);
  }
  for (int d = 0; d < 2; d++) {
    const json_t *direction = page_part(p, key[d]);
    if (!direction) continue;
    snprintf(text, sizeof text, "median rank, %s", way[d]);
    snprintf(number, sizeof number, "%g", page_number(p, direction, "median_rank"));
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
  fputs(
      "<nav aria-label=\"Contents\"><ol><li><a href=\"#retrieval\">Retrieval</a></li>"
      "<li><a href=\"#space\">The shared space</a></li><li><a href=\"#fit\">The fit</a></li>"
      "<li><a href=\"#weights\">Scores and weights</a></li><li><a href=\"#rows\">Rows to look "
      "at</a></li>",
      p->out);
  if (page_part(p, "zero_shot")) fputs("<li><a href=\"#classes\">Zero-shot</a></li>", p->out);
  fputs("</ol></nav>\n</header>\n<main>\n", p->out);
}

/* ---- retrieval ---------------------------------------------------------------------------- */

static void section(page *p, const char *id, const char *title, const char *text) {
  fprintf(p->out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, title);
  if (text) fprintf(p->out, "<p class=\"lead\">%s</p>\n", text);
}

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

static void metric_cells(page *p, const json_t *direction, const char *metric) {
  const json_t *interval = json_object_get(json_object_get(direction, "ci"), metric);
  if (!json_object_get(direction, metric)) {
    fputs("<td class=\"n\"></td><td class=\"n\"></td>", p->out);
    return;
  }
  fprintf(p->out, "<td class=\"n\">%.4g</td><td class=\"n\">", page_number(p, direction, metric));
  if (interval)
    fprintf(p->out, "%.4g to %.4g", page_entry(p, interval, 0), page_entry(p, interval, 1));
  fputs("</td>", p->out);
}

static void metrics_table(page *p) {
  fputs(
      "<details><summary>All metrics as numbers</summary>\n<div class=\"card scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"All metrics\"><table><thead><tr><th "
      "scope=\"col\">metric</th><th scope=\"col\" class=\"n\">x \xe2\x86\x92 y</th><th "
      "scope=\"col\" class=\"n\">95 % interval</th><th scope=\"col\" class=\"n\">y \xe2\x86\x92 "
      "x</th><th scope=\"col\" class=\"n\">95 % interval</th></tr></thead><tbody>\n",
      p->out);
  for (size_t k = 0; unicon_metric_name(k); k++) {
    fprintf(p->out, "<tr><th scope=\"row\">%s</th>", unicon_metric_name(k));
    metric_cells(p, page_part(p, "x_to_y"), unicon_metric_name(k));
    metric_cells(p, page_part(p, "y_to_x"), unicon_metric_name(k));
    fputs("</tr>\n", p->out);
  }
  fputs("</tbody></table></div></details>\n", p->out);
}

static void retrieval(page *p) {
  section(p, "retrieval", "Retrieval",
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

/* ---- the fit ------------------------------------------------------------------------------ */

static void option_rows(page *p, const json_t *options, bool changed) {
  for (size_t k = 0; k < json_array_size(options); k++) {
    const json_t *option = json_array_get(options, k);
    const char *value = page_string(p, option, "value"), *usual = page_string(p, option, "default");
    if (changed && strcmp(value, usual) == 0) continue;
    fputs("<tr><th scope=\"row\"><code>", p->out);
    page_text(p, page_string(p, option, "name"));
    fputs("</code></th><td>", p->out);
    page_text(p, value);
    fputs("</td><td>", p->out);
    page_text(p, usual);
    fputs("</td></tr>\n", p->out);
  }
}

static void option_table(page *p, const json_t *options, bool changed) {
  fputs(
      "<table><thead><tr><th scope=\"col\">option</th><th scope=\"col\">in force</th><th "
      "scope=\"col\">default</th></tr></thead><tbody>\n",
      p->out);
  option_rows(p, options, changed);
  fputs("</tbody></table>\n", p->out);
}

static void metadata_table(page *p, const json_t *metadata) {
  const char *key;
  const json_t *value;
  void *iter = json_object_iter((json_t *)metadata);
  fputs("<table><tbody>\n", p->out);
  for (; iter; iter = json_object_iter_next((json_t *)metadata, iter)) {
    key = json_object_iter_key(iter);
    value = json_object_iter_value(iter);
    fputs("<tr><th scope=\"row\"><code>", p->out);
    page_text(p, key);
    fputs("</code></th><td>", p->out);
    page_text(p, json_is_string(value) ? json_string_value(value) : "");
    fputs("</td></tr>\n", p->out);
  }
  fputs("</tbody></table>\n", p->out);
}

static const char *meta(const json_t *metadata, const char *key) {
  const char *value = json_string_value(json_object_get(metadata, key));
  return value ? value : "";
}

static void curves(page *p, const json_t *metadata) {
  chart_curve(p, "Loss of the spectral steps", "training loss", meta(metadata, "loss_log"), 0,
              "step",
              "Step 0 is the closed form (moment) start. Steps are shortened until the loss falls, "
              "or refused.");
  chart_curve(p, "Held-out score of the spectral steps", "score", meta(metadata, "score_log"), 0,
              "step", "Mean of mrr and hit@10 on validation pairs; the best step was kept.");
  chart_curve(p, "Loss of refine", "training loss", meta(metadata, "refine_loss_log"), 1, "epoch",
              "Mean loss of the batches of each epoch. A falling loss alone is no better model: "
              "held-out pairs decide.");
  const char *held = meta(metadata, "refine_score_log");
  if (!*held) held = meta(metadata, "auto_refine_log");
  chart_curve(p, "Held-out score of refine", "score", held, 0, "epoch",
              "Mean of mrr and hit@10 on held-out pairs; epoch 0 is the closed form. Where the "
              "curve turns down, refine begins to overfit.");
}

static void fit(page *p) {
  const json_t *model = page_part(p, "model");
  if (!model) return;
  const json_t *metadata = page_object(p, model, "metadata"),
               *options = page_list(p, model, "options");
  section(p, "fit", "The fit", NULL);
  fputs("<p class=\"lead\">", p->out);
  if (*meta(metadata, "n_x"))
    fprintf(p->out, "Fitted on %.0f rows of x, %.0f of y and %.0f pairs. ",
            atof(meta(metadata, "n_x")), atof(meta(metadata, "n_y")),
            atof(meta(metadata, "pairs")));
  if (*meta(metadata, "auto_chosen")) {
    fputs("Chosen on held-out pairs: ", p->out);
    page_text(p, meta(metadata, "auto_chosen"));
    fprintf(p->out, "; held-out score %.3f.", atof(meta(metadata, "auto_score")));
  }
  if (!*meta(metadata, "loss_log") && !*meta(metadata, "refine_loss_log"))
    fputs(" The closed form alone: there were no iterations.", p->out);
  fputs("</p>\n<div class=\"grid\">\n", p->out);
  chart_spectrum(p, model);
  chart_tried(p, meta(metadata, "auto_tried"), meta(metadata, "auto_chosen"));
  curves(p, metadata);
  fputs(
      "<div class=\"card scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Options\"><h3>"
      "Options that differ from the defaults</h3>\n",
      p->out);
  option_table(p, options, true);
  fputs(
      "</div>\n</div>\n<details><summary>All options and what the model file says</summary>\n<div "
      "class=\"card scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All options\">\n",
      p->out);
  option_table(p, options, false);
  metadata_table(p, metadata);
  fputs("</div></details>\n</section>\n", p->out);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void cell(page *p, const json_t *row, const char *key) {
  char name[32];
  fputs("<td>", p->out);
  svg_text(p->out, page_name(p, json_object_get(row, key), name, sizeof name), 80);
  fputs("</td>", p->out);
}

static void number_cell(page *p, const json_t *row, const char *key, const char *form) {
  const double value = page_number(p, row, key);
  fputs("<td class=\"n\">", p->out);
  fprintf(p->out, strcmp(form, "rank") == 0 ? "%.0f" : "%.3f", value);
  fputs("</td>", p->out);
}

static void table_start(page *p, const char *title, const char *text, const char *const *column,
                        size_t count) {
  fprintf(p->out,
          "<div class=\"card\"><h3>%s</h3>\n<p>%s</p>\n<div class=\"scroll\" "
          "tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><thead><tr>",
          title, text, title);
  for (size_t k = 0; k < count; k++)
    fprintf(p->out, "<th scope=\"col\"%s>%s</th>",
            strcmp(column[k], "cosine") == 0 || strstr(column[k], "rank") ? " class=\"n\"" : "",
            column[k]);
  fputs("</tr></thead><tbody>\n", p->out);
}

static void table_end(page *p) {
  fputs("</tbody></table></div></div>\n", p->out);
}

static void hardest(page *p, const json_t *part, const char *key, const char *title,
                    const char *const *column) {
  const json_t *rows = page_list(p, part, key);
  if (json_array_size(rows) == 0) return;
  table_start(p, title, "Queries whose first true match comes last, with what is found instead.",
              column, 6);
  for (size_t k = 0; k < json_array_size(rows); k++) {
    const json_t *row = json_array_get(rows, k);
    fputs("<tr class=\"hard\">", p->out);
    cell(p, row, "query");
    number_cell(p, row, "rank", "rank");
    cell(p, row, "match");
    number_cell(p, row, "match_cosine", "cosine");
    cell(p, row, "found");
    number_cell(p, row, "found_cosine", "cosine");
    fputs("</tr>\n", p->out);
  }
  table_end(p);
}

static void suspects(page *p) {
  static const char *const column[] = {"x", "y", "cosine", "rank of x", "rank of y"};
  const json_t *part = page_part(p, "suspects");
  if (!part) return;
  const json_t *rows = page_list(p, part, "rows");
  char text[200];
  snprintf(text, sizeof text,
           "The lowest cosines among %.0f true pairs, whose mean is %.3f: wrong pairs, if there "
           "are any, are likely to be here. Ranks are those of the first match.",
           page_number(p, part, "pairs"), page_number(p, part, "mean_cosine"));
  table_start(p, "Most suspicious pairs", text, column, 5);
  for (size_t k = 0; k < json_array_size(rows); k++) {
    const json_t *row = json_array_get(rows, k);
    fputs("<tr class=\"suspect\">", p->out);
    cell(p, row, "x");
    cell(p, row, "y");
    number_cell(p, row, "cosine", "cosine");
    number_cell(p, row, "x_rank", "rank");
    number_cell(p, row, "y_rank", "rank");
    fputs("</tr>\n", p->out);
  }
  table_end(p);
}

static void rows(page *p) {
  static const char *const from_x[] = {"row of x", "rank",        "its match in y",
                                       "cosine",   "found first", "cosine"};
  static const char *const from_y[] = {"row of y", "rank",        "its match in x",
                                       "cosine",   "found first", "cosine"};
  const json_t *part = page_part(p, "hardest");
  section(p, "rows", "Rows to look at",
          "By id where ids were given, else by row number, counted from 0.");
  if (part) {
    fputs("<div class=\"grid\">\n", p->out);
    hardest(p, part, "x_to_y", "Hardest queries, x \xe2\x86\x92 y", from_x);
    p->section = "hardest";
    hardest(p, part, "y_to_x", "Hardest queries, y \xe2\x86\x92 x", from_y);
    fputs("</div>\n", p->out);
  }
  suspects(p);
  fputs("</section>\n", p->out);
}

/* ---- zero-shot ---------------------------------------------------------------------------- */

enum { CLASSES_LISTED = 200 };

/* The answer, other than the class itself, that row k of the matrix has most; -1: none. */
static int64_t taken_for(page *p, const json_t *m, size_t k, size_t count, double *rows) {
  int64_t best = -1;
  double most = 0;
  *rows = 0;
  for (size_t j = 0; j < count && !*p->error; j++) {
    const double value = page_cell(p, m, k, j);
    *rows += value;
    if (j != k && value > most) {
      most = value;
      best = (int64_t)j;
    }
  }
  return best;
}

static void class_rows(page *p, const json_t *names, const json_t *m) {
  const size_t count = json_array_size(names);
  for (size_t k = 0; k < count && k < CLASSES_LISTED; k++) {
    char name[32], text[24];
    double rows;
    const int64_t other = taken_for(p, m, k, count, &rows);
    fputs("<tr class=\"class\"><td>", p->out);
    svg_text(p->out, page_name(p, json_array_get(names, k), name, sizeof name), 40);
    fprintf(p->out, "</td><td class=\"n\">%.0f</td><td class=\"n\">%s&#160;%%</td><td>", rows,
            rows > 0 ? svg_percent(page_cell(p, m, k, k) / rows, text, sizeof text) : "-");
    if (other >= 0)
      svg_text(p->out, page_name(p, json_array_get(names, (size_t)other), name, sizeof name), 40);
    fputs("</td></tr>\n", p->out);
  }
}

static void class_table(page *p, const json_t *part) {
  const json_t *names = page_list(p, part, "names"), *m = page_list(p, part, "confusion");
  fputs(
      "<div class=\"card\"><h3>Class by class</h3>\n<div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"Class by class\"><table><thead><tr><th "
      "scope=\"col\">class</th><th scope=\"col\" class=\"n\">rows</th><th scope=\"col\" "
      "class=\"n\">right</th><th scope=\"col\">most often taken for</th></tr></thead><tbody>\n",
      p->out);
  class_rows(p, names, m);
  fputs("</tbody></table></div></div>\n", p->out);
}

static void zero_shot(page *p) {
  const json_t *part = page_part(p, "zero_shot");
  char a[24], b[24], c[24], d[24];
  if (!part) return;
  section(p, "classes", "Zero-shot classification", NULL);
  fprintf(p->out,
          "<p class=\"lead\">Each of %.0f rows of x is given the class whose vector is nearest: "
          "%s&#160;%% are right, %s&#160;%% have the right class among the first five; the mean "
          "over the classes is %s&#160;%%, a random answer is right in %s&#160;%%.</p>\n<div "
          "class=\"grid\">\n",
          page_number(p, part, "rows"), svg_percent(page_number(p, part, "accuracy"), a, sizeof a),
          svg_percent(page_number(p, part, "top5"), b, sizeof b),
          svg_percent(page_number(p, part, "mean_class_accuracy"), c, sizeof c),
          svg_percent(page_number(p, part, "chance"), d, sizeof d));
  chart_confusion(p, part);
  class_table(p, part);
  fputs("</div>\n</section>\n", p->out);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void write_page(page *p) {
  const json_t *part;
  head(p);
  lead(p);
  tiles(p);
  contents(p);
  retrieval(p);
  if ((part = page_part(p, "view"))) {
    section(p, "space", "The shared space",
            "Rows of both sides in one picture, thinned where there are many.");
    chart_plane(p, part);
    fputs("</section>\n", p->out);
  }
  fit(p);
  if ((part = page_part(p, "weights"))) {
    section(p, "weights", "Scores and weights",
            "A few rows of both sides, ordered by pair: each row of x stands in line with its "
            "partner in y.");
    chart_weights(p, part);
    fputs("</section>\n", p->out);
  }
  rows(p);
  zero_shot(p);
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
