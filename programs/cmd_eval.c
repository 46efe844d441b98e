/* SPDX-License-Identifier: Apache-2.0 */
/* unicon eval MODEL X Y, unicon eval MODEL X --classes C --x-labels L, either with --no-model */
#include <math.h>
#include <string.h>

#include "balanced.h"
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

static void print_number(double value, int digits, int width) {
  char text[32] = "";
  if (isfinite(value)) snprintf(text, sizeof text, "%.*f", digits, value);
  printf("  %*s", width, text);
}

static void print_chance(const unicon_metrics *m, size_t metric) {
  print_number(m->chance[metric], m->chance[metric] < 0.0005 ? 5 : 3, 7);
}

/* Widths of the columns: a value, the same without balance (0: not shown). */
typedef struct columns {
  int value, plain;
} columns;

static void print_titles(const columns *c) {
  if (c->plain) {
    const int each = c->value + c->plain + 4 + 7;
    printf("%-11s  %*s  %*s\n", "", -each, "x to y", -6, "y to x");
    for (int k = 0; k < 2; k++)
      printf("%-*s  %*s  %*s  %7s", k ? 0 : 11, "", c->value, "balanced", c->plain, "plain",
             "chance");
  } else {
    printf("%-11s  %*s  %7s  %*s  %7s", "", c->value, "x to y", "chance", c->value, "y to x",
           "chance");
  }
  putchar('\n');
}

static void print_metric(const directions *d, const columns *c, size_t metric) {
  const unicon_metrics *side[2] = {&d->to_y, &d->to_x};
  printf("%-11s", unicon_metric_name(metric));
  for (int k = 0; k < 2; k++) {
    print_cell(side[k], metric, c->value);
    if (c->plain) print_number(side[k]->plain[metric], is_rank(metric) ? 1 : 3, c->plain);
    if (k == 0 || isfinite(side[k]->chance[metric])) print_chance(side[k], metric);
  }
  putchar('\n');
}

/* A number of each direction, with and without balance. */
static void print_pair(const char *name, const columns *c, int digits, const double value[2],
                       const double plain[2]) {
  printf("%-11s", name);
  for (int k = 0; k < 2; k++) {
    print_number(value[k], digits, c->value);
    if (c->plain && (k == 0 || isfinite(plain[k]))) print_number(plain[k], digits, c->plain);
    if (k == 0) printf("  %7s", "");
  }
  putchar('\n');
}

static void print_table(const tool *t, const directions *d) {
  const unicon_metrics *y = &d->to_y, *x = &d->to_x;
  const bool intervals = isfinite(y->low[0]) || isfinite(x->low[0]);
  const bool on = balanced_is_on(t->balance);
  const columns c = {intervals ? 20 : on ? 8 : 7, !on ? 0 : intervals ? 6 : 7};
  const double none[2] = {NAN, NAN};
  print_titles(&c);
  for (size_t i = 0; i < UNICON_METRIC_COUNT; i++) print_metric(d, &c, i);
  print_pair("hub_skew", &c, 3, (double[]){y->hub_skew, x->hub_skew},
             (double[]){y->plain_hub_skew, x->plain_hub_skew});
  print_pair("never_found", &c, 3, (double[]){y->hub_never, x->hub_never},
             (double[]){y->plain_hub_never, x->plain_hub_never});
  print_pair("queries", &c, 0, (double[]){(double)y->queries, (double)x->queries}, none);
  print_pair("candidates", &c, 0, (double[]){(double)y->candidates, (double)x->candidates}, none);
  if (on) printf("\nbalanced: %s; plain: the cosine alone\n", unicon_balance_text(t->balance));
  printf(
      "%shub_skew: skewness of how often each candidate is among a query's first 10, 0 without "
      "hubs\nnever_found: share of the candidates that never are\n",
      on ? "" : "\n");
}

static int print_json(tool *t, const directions *d, const inputs *in) {
  json_t *out = json_pack("{s:I, s:o, s:o}", "pairs", (json_int_t)d->to_y.pairs, "x_to_y",
                          display_json_metrics(&d->to_y), "y_to_x", display_json_metrics(&d->to_x));
  balanced_json(t->balance, out);
  if (usable_wanted(t))
    json_object_set_new(
        out, "dropped",
        json_pack("{s:I, s:I}", "x", (json_int_t)(unicon_rows_count(in->x) - d->to_x.candidates),
                  "y", (json_int_t)(unicon_rows_count(in->y) - d->to_y.candidates)));
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int evaluate(tool *t, const inputs *in, const unicon_model *model) {
  const unicon_view x = {in->x, model, UNICON_X, t->balance, UNICON_FORM_RAW},
                    y = {in->y, model, UNICON_Y, t->balance, UNICON_FORM_RAW};
  directions d;
  const unicon_status status =
      unicon_evaluate(t->ctx, &x, &y, in->pairs, t->options, &d.to_y, &d.to_x);
  display_clear(&t->display);
  if (status != UNICON_OK) return tool_fail(t, status);
  if (tool_has(t, CLI_OPT_JSON)) return print_json(t, &d, in);
  print_table(t, &d);
  return EXIT_DONE;
}

/* ---- zero-shot ---------------------------------------------------------------------------- */

static int print_classes(tool *t, const classes *c) {
  const unicon_classify_result *r = &c->result;
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out = classes_json(c);
    balanced_json(t->balance, out);
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
  if (code == EXIT_DONE) code = balanced_open(t, model);
  if (code == EXIT_DONE) code = by_class ? zero_shot(t, model) : retrieval(t, model);
  unicon_model_destroy(model);
  return code;
}
