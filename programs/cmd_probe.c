/* SPDX-License-Identifier: Apache-2.0 */
/* unicon probe MODEL --side x|y TRAIN --train-labels FILE --test TEST --test-labels FILE */
#include <stdlib.h>
#include <string.h>

#include "confusion.h"
#include "inputs.h"

typedef struct probe {
  unicon_model *model;
  unicon_rows *train, *test;
  unicon_labels *labels;
  int64_t *label, classes; /* class numbers of `labels` in use, ascending */
  const char **name;       /* their texts */
  int64_t *count;          /* the confusion matrix */
  unicon_probe_result result;
} probe;

static confusion matrix_of(const probe *p) {
  return (confusion){p->classes, p->name, p->count};
}

/* ---- table -------------------------------------------------------------------------------- */

static int print_table(const probe *p) {
  const unicon_probe_result *r = &p->result;
  printf("accuracy         %.3f on %lld rows; always the commonest label: %.3f\n", r->accuracy,
         (long long)unicon_rows_count(p->test), r->chance);
  printf("training         %.3f on %lld rows\n", r->train_accuracy,
         (long long)unicon_rows_count(p->train));
  printf("fit              loss %.4f after %lld steps, gradient %.1e\n", r->loss,
         (long long)r->iterations, r->gradient);
  if (r->unseen > 0)
    printf("unseen           %lld test rows have a label that no training row has\n",
           (long long)r->unseen);
  const confusion matrix = matrix_of(p);
  confusion_print(&matrix);
  return EXIT_DONE;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static int print_json(tool *t, const probe *p) {
  const unicon_probe_result *r = &p->result;
  const confusion matrix = matrix_of(p);
  json_t *out = json_object();
  display_json_real(out, "accuracy", r->accuracy);
  display_json_real(out, "train_accuracy", r->train_accuracy);
  display_json_real(out, "chance", r->chance);
  display_json_real(out, "loss", r->loss);
  display_json_real(out, "gradient", r->gradient);
  json_object_set_new(out, "iterations", json_integer((json_int_t)r->iterations));
  json_object_set_new(out, "train_rows", json_integer((json_int_t)unicon_rows_count(p->train)));
  json_object_set_new(out, "test_rows", json_integer((json_int_t)unicon_rows_count(p->test)));
  json_object_set_new(out, "unseen", json_integer((json_int_t)r->unseen));
  json_object_set_new(out, "labels", confusion_names_json(&matrix));
  json_object_set_new(out, "confusion", confusion_json(&matrix));
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
  const unicon_view train = {.rows = p->train, .model = p->model, .side = side},
                    test = {.rows = p->test, .model = p->model, .side = side};
  const int64_t *train_label = unicon_labels_numbers(p->labels, 0);
  const int64_t *test_label = unicon_labels_numbers(p->labels, 1);
  const int64_t n = unicon_rows_count(p->train), rows = n + unicon_rows_count(p->test);
  int64_t same = 1;
  while (same < n && train_label[same] == train_label[0]) same++;
  if (same == n)
    return tool_error(t, "all %lld training rows have the label `%s`; a probe needs at least 2",
                      (long long)n, unicon_labels_name(p->labels, train_label[0]));
  p->label = calloc((size_t)rows, sizeof *p->label);
  if (!p->label) return tool_out_of_memory(t);
  unicon_status status =
      unicon_probe_classes(t->ctx, train_label, n, test_label, rows - n, &p->classes, p->label);
  if (status != UNICON_OK) return tool_fail(t, status);
  p->count = calloc((size_t)p->classes, (size_t)p->classes * sizeof *p->count);
  p->name = calloc((size_t)p->classes, sizeof *p->name);
  if (!p->count || !p->name) return tool_out_of_memory(t);
  for (int64_t c = 0; c < p->classes; c++) p->name[c] = unicon_labels_name(p->labels, p->label[c]);
  status = unicon_probe(t->ctx, &train, train_label, &test, test_label, t->options, p->classes,
                        p->count, &p->result);
  display_clear(&t->display);
  if (status != UNICON_OK) return tool_fail(t, status);
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
  const unicon_status status = open_files(t, &p);
  const int code = status == UNICON_OK ? run(t, &p) : tool_fail(t, status);
  free(p.count);
  free(p.name);
  free(p.label);
  unicon_labels_destroy(p.labels);
  unicon_rows_close(p.test);
  unicon_rows_close(p.train);
  unicon_model_destroy(p.model);
  return code;
}
