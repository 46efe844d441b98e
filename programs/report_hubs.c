/* SPDX-License-Identifier: Apache-2.0 */
/* The section on hubs: rows that are near everything, before and after balance. */
#include "report_read.h"

static const char *const key[2] = {"x_to_y", "y_to_x"};

/* Name, without and with balance, for both directions; shares as percentages. */
static void hubness_row(page *p, const json_t *part, const char *name, const char *plain,
                        const char *after, bool share) {
  fprintf(p->out, "<tr><th scope=\"row\">%s</th>", name);
  for (int d = 0; d < 2; d++) {
    const json_t *direction = page_object(p, part, key[d]);
    const double value[2] = {page_maybe(p, direction, plain, 0),
                             page_maybe(p, direction, after, 0)};
    for (int k = 0; k < 2; k++) {
      char text[24];
      if (share)
        fprintf(p->out, "<td class=\"n\">%s&#160;%%</td>",
                svg_percent(value[k], text, sizeof text));
      else
        fprintf(p->out, "<td class=\"n\">%.2f</td>", value[k]);
    }
  }
  fputs("</tr>\n", p->out);
}

static void metric_row(page *p, const char *metric) {
  fprintf(p->out, "<tr><th scope=\"row\">%s</th>", metric);
  for (int d = 0; d < 2; d++) {
    char plain[24], after[24];
    const double value = page_number(p, page_part(p, key[d]), metric);
    fprintf(p->out, "<td class=\"n\">%s&#160;%%</td><td class=\"n\">%s&#160;%%</td>",
            svg_percent(page_plain(p, key[d], metric, value), plain, sizeof plain),
            svg_percent(value, after, sizeof after));
  }
  fputs("</tr>\n", p->out);
}

static void summary(page *p, const json_t *part) {
  fputs(
      "<div class=\"card\"><h3>Before and after</h3>\n<div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"Before and after\"><table class=\"hubness\"><thead><tr><th "
      "scope=\"col\"></th><th scope=\"col\" class=\"n\">x \xe2\x86\x92 y, plain</th><th "
      "scope=\"col\" class=\"n\">balanced</th><th scope=\"col\" class=\"n\">y \xe2\x86\x92 x, "
      "plain</th><th scope=\"col\" class=\"n\">balanced</th></tr></thead><tbody>\n",
      p->out);
  metric_row(p, "hit@1");
  metric_row(p, "hit@10");
  p->section = "balance";
  hubness_row(p, part, "skewness", "plain_skew", "skew", false);
  hubness_row(p, part, "never found", "plain_never", "never", true);
  fputs(
      "</tbody></table></div>\n<p class=\"note\">Skewness of how often each row is among the first "
      "ten of a query: 0 where all are found alike, large where a few rows are found all the time. "
      "Never found: the share of the rows that are among the first ten of no query.</p></div>\n",
      p->out);
}

static void hub_table(page *p, const json_t *part, int d) {
  static const char *const title[2] = {"Strongest hubs among the rows of y",
                                       "Strongest hubs among the rows of x"};
  const json_t *hubs = page_list(p, page_object(p, part, key[d]), "hubs");
  fprintf(p->out,
          "<div class=\"card\"><h3>%s</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"%s\"><table><thead><tr><th scope=\"col\">row of %c</th><th scope=\"col\" "
          "class=\"n\">plain</th><th scope=\"col\" class=\"n\">balanced</th></tr></thead><tbody>\n",
          title[d], title[d], "yx"[d]);
  for (size_t k = 0; k < json_array_size(hubs); k++) {
    const json_t *row = json_array_get(hubs, k);
    char name[32];
    fputs("<tr class=\"hub\"><td>", p->out);
    svg_text(p->out, page_name(p, json_object_get(row, "row"), name, sizeof name), 80);
    fprintf(p->out, "</td><td class=\"n\">%.0f</td><td class=\"n\">%.0f</td></tr>\n",
            page_number(p, row, "plain"), page_number(p, row, "found"));
  }
  fputs("</tbody></table></div></div>\n", p->out);
}

void page_hubs(page *p) {
  const json_t *part = page_part(p, "balance");
  if (!part) return;
  const char *how = page_balanced(p);
  page_section(p, "hubs", "Hubs and balance", NULL);
  fputs(
      "<p class=\"lead\">A row that is near everything is found by queries that it has nothing to "
      "do "
      "with, and pushes their true matches down. ",
      p->out);
  if (how) {
    fputs("This model lowers the scores of such rows (<code>balance ", p->out);
    page_text(p, how);
    fputs("</code>); every ranking on this page does the same.", p->out);
  } else {
    fputs("The scores of this model are not balanced: before and after are the same.", p->out);
  }
  fputs("</p>\n", p->out);
  p->section = "balance";
  summary(p, part);
  fputs(
      "<p class=\"lead\">How often a row is among the first ten rows found, over all queries; "
      "those found most "
      "often without balance come first.</p>\n<div class=\"grid\">\n",
      p->out);
  for (int d = 0; d < 2; d++) hub_table(p, part, d);
  fputs("</div>\n</section>\n", p->out);
}
