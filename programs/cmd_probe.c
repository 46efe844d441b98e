/* SPDX-License-Identifier: Apache-2.0 */
/* unicon probe MODEL --side x|y TRAIN --train-labels FILE --test TEST --test-labels FILE */
#include <stdlib.h>
#include <string.h>

#include "confusion.h"
#include "inputs.h"
#include "usable.h"

typedef struct probe {
  unicon_model *model;
  unicon_rows *train, *test;
  unicon_labels *labels;
  const char **name; /* of the labels in use */
  unicon_result *result;
} probe;

static int64_t classes_of(const probe *p) {
  return unicon_labels_classes(p->labels);
}

static confusion matrix_of(const probe *p) {
  return (confusion){classes_of(p), p->name,
                     unicon_result_integers(p->result, "confusion", NULL, NULL)};
}

static double number(const probe *p, const char *name) {
  return display_number(p->result, "", name);
}

static int print_table(const probe *p) {
  printf("accuracy         %.3f on %.0f rows; always the most common label: %.3f\n",
         number(p, "accuracy"), number(p, "test_rows"), number(p, "chance"));
  printf("training         %.3f on %.0f rows\n", number(p, "train_accuracy"),
         number(p, "train_rows"));
  printf("fit              loss %.4f after %.0f steps, gradient %.1e\n", number(p, "loss"),
         number(p, "iterations"), number(p, "gradient"));
  if (number(p, "unseen") > 0)
    printf("unseen           %.0f test row%s a label that no training row has\n",
           number(p, "unseen"), number(p, "unseen") > 1 ? "s have" : " has");
  const confusion matrix = matrix_of(p);
  confusion_print(&matrix);
  return EXIT_DONE;
}

/* The labels as texts in place of their numbers. */
static int print_json(tool *t, const probe *p) {
  const confusion matrix = matrix_of(p);
  json_t *out = display_json_result(p->result);
  json_object_set_new(out, "labels", confusion_names_json(&matrix));
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

/* ---- the command -------------------------------------------------------------------------- */

static unicon_status open_files(tool *t, probe *p) {
  const char *const *path = t->args->positional;
  unicon_status status = UNICON_OK;
  if (path[0]) status = unicon_model_load(t->ctx, path[0], &p->model);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[1], &p->train);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, tool_value(t, CLI_OPT_TEST), &p->test);
  if (status == UNICON_OK)
    status = unicon_labels_read(t->ctx, tool_value(t, CLI_OPT_TRAIN_LABELS),
                                unicon_rows_count(p->train), tool_value(t, CLI_OPT_TEST_LABELS),
                                unicon_rows_count(p->test), &p->labels);
  return status;
}

static int run(tool *t, probe *p) {
  const char *side_name = tool_value(t, CLI_OPT_SIDE);
  const unicon_side side = side_name && strcmp(side_name, "y") == 0 ? UNICON_Y : UNICON_X;
  const unicon_view view[2] = {UNICON_VIEW(.rows = p->train, .model = p->model, .side = side),
                               UNICON_VIEW(.rows = p->test, .model = p->model, .side = side)};
  const int64_t *train_label = unicon_labels_numbers(p->labels, 0);
  const int64_t *test_label = unicon_labels_numbers(p->labels, 1);
  const int64_t n = unicon_rows_count(p->train);
  int64_t same = 1;
  while (same < n && train_label[same] == train_label[0]) same++;
  if (same == n)
    return tool_error(t, "all %lld training rows have the label `%s`; a probe needs at least 2",
                      (long long)n, unicon_labels_name(p->labels, train_label[0]));
  p->name = calloc((size_t)classes_of(p), sizeof *p->name);
  if (!p->name) return tool_out_of_memory(t);
  for (int64_t c = 0; c < classes_of(p); c++) p->name[c] = unicon_labels_name(p->labels, c);
  const unicon_status status =
      unicon_probe(t->ctx, &view[0], train_label, &view[1], test_label, t->options, &p->result);
  display_clear(&t->display);
  if (status != UNICON_OK) return usable_fail(t, status, view, 2);
  return tool_has(t, CLI_OPT_JSON) ? print_json(t, p) : print_table(p);
}

int cmd_probe(tool *t) {
  static const cli_id needed[] = {CLI_OPT_TRAIN_LABELS, CLI_OPT_TEST, CLI_OPT_TEST_LABELS};
  probe p = {0};
  if (t->args->positional[0] && !tool_has(t, CLI_OPT_SIDE))
    return cli_usage_error(t->args->command,
                           "say which side the rows belong to: --side x or --side y");
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!tool_has(t, needed[i]))
      return cli_usage_error(t->args->command, "--%s FILE is missing", cli_name(needed[i]));
  if (!t->args->positional[0] && tool_has(t, CLI_OPT_SIDE))
    display_idle(&t->display, "side", "without a MODEL");
  const unicon_status status = open_files(t, &p);
  const int code = status == UNICON_OK ? run(t, &p) : tool_fail(t, status);
  free(p.name);
  unicon_result_destroy(p.result);
  unicon_labels_destroy(p.labels);
  unicon_rows_close(p.test);
  unicon_rows_close(p.train);
  unicon_model_destroy(p.model);
  return code;
}
