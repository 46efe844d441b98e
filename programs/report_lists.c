/* SPDX-License-Identifier: Apache-2.0 */
/* The sections that are lists: rows to look at, and classes. */
#include <stdint.h>
#include <string.h>

#include "report_read.h"

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
            strcmp(column[k], "cosine") == 0 || strcmp(column[k], "score") == 0 ||
                    strstr(column[k], "rank")
                ? " class=\"n\""
                : "",
            column[k]);
  fputs("</tr></thead><tbody>\n", p->out);
}

static void table_end(page *p) {
  fputs("</tbody></table></div></div>\n", p->out);
}

static void hardest(page *p, const json_t *part, const char *key, const char *title, char side) {
  const json_t *rows = page_list(p, part, key);
  const bool balanced = page_balanced(p) != NULL;
  const char *const number = balanced ? "score" : "cosine";
  const bool x = side == 'x';
  const char *const column[] = {x ? "row of x" : "row of y",
                                "rank",
                                x ? "its match in y" : "its match in x",
                                number,
                                "found first",
                                number};
  if (json_array_size(rows) == 0) return;
  table_start(p, title, "Queries whose first true match comes last, with what is found instead.",
              column, 6);
  for (size_t k = 0; k < json_array_size(rows); k++) {
    const json_t *row = json_array_get(rows, k);
    fputs("<tr class=\"hard\">", p->out);
    cell(p, row, "query");
    number_cell(p, row, "rank", "rank");
    cell(p, row, "match");
    number_cell(p, row, balanced ? "match_score" : "match_cosine", "cosine");
    cell(p, row, "found");
    number_cell(p, row, balanced ? "found_score" : "found_cosine", "cosine");
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

void page_rows(page *p) {
  const json_t *part = page_part(p, "hardest");
  page_section(p, "rows", "Rows to look at",
               "By id where ids were given, else by row number, counted from 0.");
  if (part) {
    fputs("<div class=\"grid\">\n", p->out);
    hardest(p, part, "x_to_y", "Hardest queries, x \xe2\x86\x92 y", 'x');
    p->section = "hardest";
    hardest(p, part, "y_to_x", "Hardest queries, y \xe2\x86\x92 x", 'y');
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

void page_classes(page *p) {
  const json_t *part = page_part(p, "zero_shot");
  char a[24], b[24], c[24], d[24];
  if (!part) return;
  page_section(p, "classes", "Zero-shot classification", NULL);
  fprintf(
      p->out,
      "<p class=\"lead\">Each of %.0f rows of x is given the class whose vector scores highest: "
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
