/* SPDX-License-Identifier: Apache-2.0 */
/* unicon eval MODEL X Y, unicon eval MODEL X --classes C --x-labels L, either with --no-model */
#include <math.h>
#include <string.h>

#include "balanced.h"
#include "classes.h"
#include "inputs.h"
#include "usable.h"

static const char *const directions[2] = {"x_to_y", "y_to_x"};

/* Widths of the columns: a value, the same without balance (0: not shown). */
typedef struct columns {
  int value, plain;
} columns;

static int digits_of(const char *metric) {
  return strcmp(metric, "median_rank") == 0 ? 1 : strcmp(metric, "mean_rank") == 0 ? 2 : 3;
}

static void print_number(double value, int digits, int width) {
  char text[32] = "";
  if (isfinite(value)) snprintf(text, sizeof text, "%.*f", digits, value);
  printf("  %*s", width, text);
}

/* "0.223", with the interval "0.223 [0.201, 0.250]". */
static void print_cell(const unicon_result *r, const char *from, const char *metric, int width) {
  const double value = display_number(r, from, metric);
  const int digits = digits_of(metric);
  char text[64] = "-", name[64];
  snprintf(name, sizeof name, "%s.ci.%s", from, metric);
  const double *interval = unicon_result_reals(r, name, NULL, NULL);
  if (isfinite(value)) snprintf(text, sizeof text, "%.*f", digits, value);
  const size_t at = strlen(text);
  if (interval)
    snprintf(text + at, sizeof text - at, " [%.*f, %.*f]", digits, interval[0], digits,
             interval[1]);
  printf("  %*s", width, text);
}

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

static void print_metric(const unicon_result *r, const columns *c, const char *metric) {
  char plain[64], by_chance[64];
  printf("%-11s", metric);
  for (int k = 0; k < 2; k++) {
    snprintf(plain, sizeof plain, "%s.plain", directions[k]);
    snprintf(by_chance, sizeof by_chance, "%s.chance", directions[k]);
    const double chance = display_number(r, by_chance, metric);
    print_cell(r, directions[k], metric, c->value);
    if (c->plain) print_number(display_number(r, plain, metric), digits_of(metric), c->plain);
    if (k == 0 || isfinite(chance)) print_number(chance, chance < 0.0005 ? 5 : 3, 7);
  }
  putchar('\n');
}

/* A number of each direction, with and without balance where `plain` names that. */
static void print_pair(const unicon_result *r, const columns *c, const char *title, int digits,
                       const char *name, const char *plain) {
  printf("%-11s", title);
  for (int k = 0; k < 2; k++) {
    print_number(display_number(r, directions[k], name), digits, c->value);
    if (c->plain && plain)
      print_number(display_number(r, directions[k], plain), digits, c->plain);
    else if (c->plain && k == 0)
      printf("  %*s", c->plain, "");
    if (k == 0) printf("  %7s", "");
  }
  putchar('\n');
}

static void print_table(const tool *t, const unicon_result *r) {
  const bool intervals = unicon_result_kind(r, "x_to_y.ci.hit@1") != UNICON_KIND_NONE;
  const bool on = balanced_is_on(t->balance);
  const columns c = {intervals ? 20 : on ? 8 : 7, !on ? 0 : intervals ? 6 : 7};
  print_titles(&c);
  const char *name;
  for (size_t i = 0; (name = unicon_result_name(r, i)) != NULL; i++) /* x_to_y.hit@1 ... */
    if (strncmp(name, "x_to_y.", 7) == 0 && !strchr(name + 7, '.') &&
        unicon_result_kind(r, name) == UNICON_KIND_REAL)
      print_metric(r, &c, name + 7);
  print_pair(r, &c, "hub_skew", 3, "hubs.skewness", "hubs.plain_skewness");
  print_pair(r, &c, "never_found", 3, "hubs.never_found", "hubs.plain_never_found");
  print_pair(r, &c, "queries", 0, "queries", NULL);
  print_pair(r, &c, "candidates", 0, "candidates", NULL);
  if (on) printf("\nbalanced: %s; plain: the cosine alone\n", unicon_balance_text(t->balance));
  printf(
      "%shub_skew: skewness of how often each candidate is among a query's first 10, 0 without "
      "hubs\nnever_found: share of the candidates that never are\n",
      on ? "" : "\n");
}

static int evaluate(tool *t, const inputs *in, const unicon_model *model) {
  const unicon_view view[2] = {
      UNICON_VIEW(.rows = in->x, .model = model, .side = UNICON_X, .balance = t->balance),
      UNICON_VIEW(.rows = in->y, .model = model, .side = UNICON_Y, .balance = t->balance)};
  unicon_result *r = NULL;
  int code = tool_agree(t, EXIT_DONE);
  if (code != EXIT_DONE) return code;
  const unicon_status status =
      unicon_evaluate(t->ctx, &view[0], &view[1], in->pairs, t->options, &r);
  display_clear(&t->display);
  if (status != UNICON_OK)
    code = usable_fail(t, status, view, 2);
  else if (!tool_has(t, CLI_OPT_JSON))
    print_table(t, r);
  else if (!display_json(display_json_result(r)))
    code = tool_out_of_memory(t);
  unicon_result_destroy(r);
  return code;
}

/* ---- zero-shot ---------------------------------------------------------------------------- */

static int print_classes(tool *t, const classes *c) {
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out = classes_json(c);
    balanced_json(t->balance, out);
    json_object_set_new(
        out, "dropped",
        json_pack("{s:I}", tool_has(t, CLI_OPT_Y_LABELS) ? "y" : "x", (json_int_t)c->dropped));
    return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  }
  const confusion matrix = classes_confusion(c);
  printf("accuracy         %.3f on %.0f rows; a random answer: %.3f\n",
         display_number(c->result, "", "accuracy"), display_number(c->result, "", "rows"),
         display_number(c->result, "", "chance"));
  if (matrix.classes > 5) printf("top 5            %.3f\n", display_number(c->result, "", "top5"));
  printf("mean of classes  %.3f\n", display_number(c->result, "", "mean_class_accuracy"));
  confusion_print(&matrix);
  return EXIT_DONE;
}

/* The label option names the side of the rows; the classes are of the other one. */
static int check_classes(tool *t) {
  static const cli_id idle[] = {CLI_OPT_Y_PER_X, CLI_OPT_X_PER_Y, CLI_OPT_PAIRS, CLI_OPT_IGNORE};
  const cli_command *command = t->args->command;
  if (t->args->positional[2])
    return cli_usage_error(command, "--classes takes the place of Y; `%s` is one argument too many",
                           t->args->positional[2]);
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
    if (tool_has(t, idle[i]))
      return cli_error(command, "--%s cannot be used with --classes", cli_name(idle[i]));
  if (strcmp(unicon_options_get(t->options, "ci"), "on") == 0)
    return cli_error(command, "--ci cannot be used with --classes");
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

/* A model that was fitted on classes, and is measured on rows one to one: that is hardly meant. */
static void warn_of_pairs(tool *t, const unicon_model *model) {
  const double pairs = display_noted(model, "pairs"), x = display_noted(model, "n_x"),
               y = display_noted(model, "n_y");
  char text[256];
  if (tool_has(t, CLI_OPT_PAIRS) || tool_has(t, CLI_OPT_X_LABELS) || tool_has(t, CLI_OPT_Y_PER_X) ||
      tool_has(t, CLI_OPT_X_PER_Y) || !(pairs > 1.5 * x) || !(pairs > 1.5 * y))
    return;
  snprintf(text, sizeof text,
           "the model was fitted on %.0f pairs of %.0f x %.0f rows, but here each row has one "
           "partner: --x-labels and --y-labels, or --pairs, say otherwise",
           pairs, x, y);
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

static int retrieval(tool *t, const unicon_model *model) {
  inputs in = {0};
  int code = inputs_open(t, t->args->positional[1], t->args->positional[2], INPUTS_MAIN, &in);
  if (code == EXIT_DONE) warn_of_pairs(t, model);
  if (code == EXIT_DONE && cli_sets(t->args, "seed") &&
      strcmp(unicon_options_get(t->options, "ci"), "on") != 0)
    display_idle(&t->display, "seed", "without --ci");
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
