/* SPDX-License-Identifier: Apache-2.0 */
/* unicon probe MODEL --side x|y TRAIN --train-labels FILE --test TEST --test-labels FILE */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

enum { TABLE_CLASSES = 20, LISTED = 20, LONGEST_LABEL = 16 };

typedef struct probe {
  unicon_model *model;
  unicon_rows *train, *test;
  unicon_labels *labels;
  int64_t *label, classes; /* class numbers of `labels` in use, ascending */
  int64_t *confusion;
  unicon_probe_result result;
} probe;

static const char *name_of(const probe *p, int64_t class) {
  return unicon_labels_name(p->labels, p->label[class]);
}

static int64_t row_sum(const probe *p, int64_t class) {
  int64_t sum = 0;
  for (int64_t b = 0; b < p->classes; b++) sum += p->confusion[class * p->classes + b];
  return sum;
}

/* ---- table -------------------------------------------------------------------------------- */

static int widest(const probe *p, int64_t class) {
  const size_t length = strlen(name_of(p, class));
  int width = length < LONGEST_LABEL ? (int)length : LONGEST_LABEL;
  for (int64_t a = 0; a < p->classes; a++) {
    const int digits = snprintf(NULL, 0, "%lld", (long long)p->confusion[a * p->classes + class]);
    if (digits > width) width = digits;
  }
  return width;
}

/* Rows are the true labels, columns the answers. */
static void print_matrix(const probe *p) {
  int first = 4;
  for (int64_t a = 0; a < p->classes; a++) {
    const size_t length = strlen(name_of(p, a));
    if ((int)length > first) first = length < LONGEST_LABEL ? (int)length : LONGEST_LABEL;
  }
  printf("\nrows: true label, columns: answer\n%-*s", first, "");
  for (int64_t b = 0; b < p->classes; b++)
    printf("  %*.*s", widest(p, b), LONGEST_LABEL, name_of(p, b));
  puts("    rows  right");
  for (int64_t a = 0; a < p->classes; a++) {
    const int64_t rows = row_sum(p, a), *count = p->confusion + a * p->classes;
    printf("%-*.*s", first, LONGEST_LABEL, name_of(p, a));
    for (int64_t b = 0; b < p->classes; b++) printf("  %*lld", widest(p, b), (long long)count[b]);
    printf("  %6lld", (long long)rows);
    if (rows > 0) printf("  %5.3f", (double)count[a] / (double)rows);
    putchar('\n');
  }
}

/* The largest entry beside the diagonal that comes after (count, place) in falling order; -1 at the
 * end. */
static int64_t next_error(const probe *p, int64_t count, int64_t place) {
  const int64_t cells = p->classes * p->classes;
  int64_t best = -1;
  for (int64_t k = 0; k < cells; k++) {
    const int64_t now = p->confusion[k];
    if (k % (p->classes + 1) == 0 || now == 0) continue;
    if (now > count || (now == count && k <= place)) continue;
    if (best < 0 || now > p->confusion[best]) best = k;
  }
  return best;
}

/* Too many classes for a matrix on a screen: the commonest errors. */
static void print_errors(const probe *p) {
  int64_t count = INT64_MAX, place = -1;
  printf("\n%lld classes: the commonest errors (--json has the whole matrix)\n",
         (long long)p->classes);
  printf("%-*s  %-*s  %6s\n", LONGEST_LABEL, "true label", LONGEST_LABEL, "answer", "rows");
  for (int k = 0; k < LISTED; k++) {
    place = next_error(p, count, place);
    if (place < 0) return;
    count = p->confusion[place];
    printf("%-*.*s  %-*.*s  %6lld\n", LONGEST_LABEL, LONGEST_LABEL, name_of(p, place / p->classes),
           LONGEST_LABEL, LONGEST_LABEL, name_of(p, place % p->classes), (long long)count);
  }
}

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
  if (p->classes <= TABLE_CLASSES)
    print_matrix(p);
  else
    print_errors(p);
  return EXIT_DONE;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static int print_json(tool *t, const probe *p) {
  const unicon_probe_result *r = &p->result;
  json_t *out = json_object(), *labels = json_array(), *confusion = json_array();
  for (int64_t a = 0; a < p->classes; a++) {
    json_t *row = json_array(), *name = json_string(name_of(p, a)); /* NULL: not UTF-8 */
    for (int64_t b = 0; b < p->classes; b++)
      json_array_append_new(row, json_integer((json_int_t)p->confusion[a * p->classes + b]));
    json_array_append_new(labels, name ? name : json_integer((json_int_t)a));
    json_array_append_new(confusion, row);
  }
  display_json_real(out, "accuracy", r->accuracy);
  display_json_real(out, "train_accuracy", r->train_accuracy);
  display_json_real(out, "chance", r->chance);
  display_json_real(out, "loss", r->loss);
  display_json_real(out, "gradient", r->gradient);
  json_object_set_new(out, "iterations", json_integer((json_int_t)r->iterations));
  json_object_set_new(out, "train_rows", json_integer((json_int_t)unicon_rows_count(p->train)));
  json_object_set_new(out, "test_rows", json_integer((json_int_t)unicon_rows_count(p->test)));
  json_object_set_new(out, "unseen", json_integer((json_int_t)r->unseen));
  json_object_set_new(out, "labels", labels);
  json_object_set_new(out, "confusion", confusion);
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
  const unicon_view train = {p->train, p->model, side}, test = {p->test, p->model, side};
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
  p->confusion = calloc((size_t)p->classes, (size_t)p->classes * sizeof *p->confusion);
  if (!p->confusion) return tool_out_of_memory(t);
  status = unicon_probe(t->ctx, &train, train_label, &test, test_label, t->options, p->classes,
                        p->confusion, &p->result);
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
  free(p.confusion);
  free(p.label);
  unicon_labels_destroy(p.labels);
  unicon_rows_close(p.test);
  unicon_rows_close(p.train);
  unicon_model_destroy(p.model);
  return code;
}
