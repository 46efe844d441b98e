/* SPDX-License-Identifier: Apache-2.0 */
/* unicon eval MODEL X Y, unicon eval MODEL X --classes C --x-labels L, either with --no-model */
#include <math.h>
#include <string.h>

#include "classes.h"
#include "inputs.h"
#include "usable.h"

typedef struct directions {
  unicon_metrics to_y, to_x;
} directions;

static bool is_rank(size_t metric) {
  return metric == UNICON_MEDIAN_RANK || metric == UNICON_MEAN_RANK;
}

/* "0.223", with the interval "0.223 [0.201, 0.250]"; ranks have one decimal. */
static void print_cell(const unicon_metrics *m, size_t metric, int width) {
  char text[64] = "-";
  const int digits = is_rank(metric) ? 1 : 3;
  if (isfinite(m->value[metric])) {
    const int at = snprintf(text, sizeof text, "%.*f", digits, m->value[metric]);
    if (isfinite(m->low[metric]) && isfinite(m->high[metric]))
      snprintf(text + at, sizeof text - (size_t)at, " [%.*f, %.*f]", digits, m->low[metric], digits,
               m->high[metric]);
  }
  printf("  %*s", width, text);
}

static void print_chance(const unicon_metrics *m, size_t metric) {
  char text[32] = "";
  if (isfinite(m->chance[metric]))
    snprintf(text, sizeof text, "%.*f", m->chance[metric] < 0.0005 ? 5 : 3, m->chance[metric]);
  printf("  %7s", text);
}

static void print_counts(const char *name, int width, int64_t to_y, int64_t to_x) {
  printf("%-11s  %*lld  %7s  %*lld\n", name, width, (long long)to_y, "", width, (long long)to_x);
}

static void print_table(const directions *d) {
  const int width = isfinite(d->to_y.low[0]) || isfinite(d->to_x.low[0]) ? 20 : 7;
  printf("%-11s  %*s  %7s  %*s  %7s\n", "", width, "x to y", "chance", width, "y to x", "chance");
  for (size_t i = 0; i < UNICON_METRIC_COUNT; i++) {
    printf("%-11s", unicon_metric_name(i));
    print_cell(&d->to_y, i, width);
    print_chance(&d->to_y, i);
    print_cell(&d->to_x, i, width);
    if (isfinite(d->to_x.chance[i])) print_chance(&d->to_x, i);
    putchar('\n');
  }
  print_counts("queries", width, d->to_y.queries, d->to_x.queries);
  print_counts("candidates", width, d->to_y.candidates, d->to_x.candidates);
}

static int print_json(tool *t, const directions *d, const inputs *in) {
  json_t *out = json_pack("{s:I, s:o, s:o}", "pairs", (json_int_t)d->to_y.pairs, "x_to_y",
                          display_json_metrics(&d->to_y), "y_to_x", display_json_metrics(&d->to_x));
  if (usable_wanted(t))
    json_object_set_new(
        out, "dropped",
        json_pack("{s:I, s:I}", "x", (json_int_t)(unicon_rows_count(in->x) - d->to_x.candidates),
                  "y", (json_int_t)(unicon_rows_count(in->y) - d->to_y.candidates)));
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int evaluate(tool *t, const inputs *in, const unicon_model *model) {
  const unicon_view x = {.rows = in->x, .model = model, .side = UNICON_X},
                    y = {.rows = in->y, .model = model, .side = UNICON_Y};
  directions d;
  const unicon_status status =
      unicon_evaluate(t->ctx, &x, &y, in->pairs, t->options, &d.to_y, &d.to_x);
  display_clear(&t->display);
  if (status != UNICON_OK) return tool_fail(t, status);
  if (tool_has(t, CLI_OPT_JSON)) return print_json(t, &d, in);
  print_table(&d);
  return EXIT_DONE;
}

/* ---- zero-shot ---------------------------------------------------------------------------- */

static int print_classes(tool *t, const classes *c) {
  const unicon_classify_result *r = &c->result;
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out = classes_json(c);
    if (usable_wanted(t))
      json_object_set_new(
          out, "dropped",
          json_pack("{s:I}", tool_has(t, CLI_OPT_Y_LABELS) ? "y" : "x", (json_int_t)c->dropped));
    return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  }
  const confusion matrix = classes_confusion(c);
  printf("accuracy         %.3f on %lld rows; a random answer: %.3f\n", r->accuracy,
         (long long)r->rows, r->chance);
  if (r->classes > 5) printf("top 5            %.3f\n", r->top5);
  printf("mean of classes  %.3f\n", r->mean_class_accuracy);
  confusion_print(&matrix);
  return EXIT_DONE;
}

/* The label option names the side of the rows; the classes are of the other one. */
static int check_classes(tool *t) {
  static const cli_id idle[] = {CLI_OPT_Y_PER_X, CLI_OPT_X_PER_Y, CLI_OPT_PAIRS, CLI_OPT_IGNORE};
  const cli_command *command = t->args->command;
  if (t->args->positional[2])
    return cli_usage_error(command, "--classes takes the place of Y; `%s` is too much",
                           t->args->positional[2]);
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
    if (tool_has(t, idle[i]))
      return cli_error(command, "--%s has no meaning with --classes", cli_name(idle[i]));
  if (strcmp(unicon_options_get(t->options, "ci"), "on") == 0)
    return cli_error(command, "--ci has no meaning with --classes");
  if (tool_has(t, CLI_OPT_X_LABELS) == tool_has(t, CLI_OPT_Y_LABELS))
    return cli_error(command,
                     "--classes needs the right answers: --x-labels FILE, or --y-labels "
                     "FILE where the rows are of the y side");
  return EXIT_DONE;
}

static int zero_shot(tool *t, const unicon_model *model) {
  const bool mirror = tool_has(t, CLI_OPT_Y_LABELS);
  const char *labels = tool_value(t, mirror ? CLI_OPT_Y_LABELS : CLI_OPT_X_LABELS);
  unicon_rows *rows = NULL;
  classes c = {0};
  const unicon_status status = unicon_rows_open(t->ctx, t->args->positional[1], &rows);
  int code = status == UNICON_OK
                 ? classes_run(t, rows, labels, model, mirror ? UNICON_Y : UNICON_X, &c)
                 : tool_fail(t, status);
  display_clear(&t->display);
  if (code == EXIT_DONE) code = print_classes(t, &c);
  classes_close(&c);
  unicon_rows_close(rows);
  return code;
}

/* ---- the command -------------------------------------------------------------------------- */

static int retrieval(tool *t, const unicon_model *model) {
  inputs in = {0};
  int code = inputs_open(t, t->args->positional[1], t->args->positional[2], INPUTS_MAIN, &in);
  if (code == EXIT_DONE) code = evaluate(t, &in, model);
  inputs_close(&in);
  return code;
}

int cmd_eval(tool *t) {
  const char *const *path = t->args->positional;
  const bool by_class = tool_has(t, CLI_OPT_CLASSES);
  unicon_model *model = NULL;
  if (!by_class && !path[2]) return cli_usage_error(t->args->command, "Y is missing");
  if (!by_class && tool_has(t, CLI_OPT_CLASS_NAMES))
    return cli_error(t->args->command, "--class-names needs --classes as well");
  int code = by_class ? check_classes(t) : inputs_check_options(t);
  if (code == EXIT_DONE && path[0]) {
    const unicon_status status = unicon_model_load(t->ctx, path[0], &model);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  if (code == EXIT_DONE) code = by_class ? zero_shot(t, model) : retrieval(t, model);
  unicon_model_destroy(model);
  return code;
}
