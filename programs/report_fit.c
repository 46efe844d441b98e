/* SPDX-License-Identifier: Apache-2.0 */
/* The section on the fit: options, what auto tried, spectrum, iterations. */
#include <stdlib.h>
#include <string.h>

#include "report_read.h"

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

void page_fit(page *p) {
  const json_t *model = page_part(p, "model");
  if (!model) return;
  const json_t *metadata = page_object(p, model, "metadata"),
               *options = page_list(p, model, "options");
  page_section(p, "fit", "The fit", NULL);
  fputs("<p class=\"lead\">", p->out);
  if (*meta(metadata, "n_x"))
    fprintf(p->out, "Fitted on %.0f rows of x, %.0f of y and %.0f pairs. ",
            atof(meta(metadata, "n_x")), atof(meta(metadata, "n_y")),
            atof(meta(metadata, "pairs")));
  if (*meta(metadata, "auto_chosen")) {
    fputs("Chosen on held-out pairs: ", p->out);
    page_text(p, meta(metadata, "auto_chosen"));
    if (*meta(metadata, "auto_score"))
      fprintf(p->out, "; held-out score %.3f", atof(meta(metadata, "auto_score")));
    fputs(".", p->out);
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
