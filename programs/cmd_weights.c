/* SPDX-License-Identifier: Apache-2.0 */
/* unicon weights MODEL X Y [-o S.npy] [--scores FILE], or with --no-model */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "usable.h"

/* The matrices of a few rows, and the loss. */
typedef struct weighing {
  inputs in;
  unicon_model *model;
  int64_t n_x, n_y;
  float *scores, *weights; /* NULL: not asked for */
  double loss;
} weighing;

static bool is_given(const tool *t, const unicon_option_info *option) {
  for (size_t i = 0; i < t->args->settings; i++)
    if (strcmp(t->args->setting[i].option->name, option->name) == 0) return true;
  return false;
}

/* The loss is that of the model, but for what the command line says. */
static unicon_status take_loss(tool *t, const unicon_model *model) {
  unicon_status status = UNICON_OK;
  for (size_t i = 0; model && i < unicon_option_count() && status == UNICON_OK; i++) {
    const unicon_option_info *option = unicon_option_at(i);
    char key[80];
    snprintf(key, sizeof key, "option.%s", option->name);
    const char *value = unicon_model_meta(model, key);
    if (value && (option->scope & UNICON_SCOPE_WEIGHTS) && !is_given(t, option))
      status = unicon_options_set(t->ctx, t->options, option->name, value);
  }
  return status;
}

static int make_room(tool *t, weighing *w) {
  const size_t room = (size_t)w->n_x * (size_t)w->n_y;
  if (tool_has(t, CLI_OPT_OUTPUT)) w->weights = malloc(room * sizeof *w->weights);
  if (tool_has(t, CLI_OPT_SCORES)) w->scores = malloc(room * sizeof *w->scores);
  const bool short_of =
      (tool_has(t, CLI_OPT_OUTPUT) && !w->weights) || (tool_has(t, CLI_OPT_SCORES) && !w->scores);
  if (!short_of) return EXIT_DONE;
  return tool_error(t, "the matrices have %lld by %lld numbers, for which there is no memory",
                    (long long)w->n_x, (long long)w->n_y);
}

static int write_matrix(tool *t, cli_id option, const weighing *w, const float *values) {
  unicon_writer *writer = NULL;
  if (!values) return EXIT_DONE;
  unicon_status status =
      unicon_writer_open(t->ctx, tool_value(t, option), UNICON_WRITE_F32, w->n_x, w->n_y, &writer);
  if (status == UNICON_OK) status = unicon_writer_append(t->ctx, writer, values, w->n_x);
  if (status == UNICON_OK)
    status = unicon_writer_commit(t->ctx, writer);
  else
    unicon_writer_discard(writer);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

static int print_result(tool *t, const weighing *w) {
  const char *name = unicon_options_get(t->options, "loss");
  if (!tool_has(t, CLI_OPT_JSON)) {
    printf("loss             %.6g (%s) of %lld by %lld rows, %lld pairs\n", w->loss, name,
           (long long)w->n_x, (long long)w->n_y, (long long)unicon_pairs_count(w->in.pairs));
    return EXIT_DONE;
  }
  json_t *out =
      json_pack("{s:s, s:I, s:I, s:I}", "loss", name, "x_rows", (json_int_t)w->n_x, "y_rows",
                (json_int_t)w->n_y, "pairs", (json_int_t)unicon_pairs_count(w->in.pairs));
  display_json_real(out, "value", w->loss);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int weigh(tool *t, weighing *w) {
  w->n_x = unicon_rows_count(w->in.x);
  w->n_y = unicon_rows_count(w->in.y);
  int code = make_room(t, w);
  if (code != EXIT_DONE) return code;
  const unicon_view view[2] = {UNICON_VIEW(.rows = w->in.x, .model = w->model, .side = UNICON_X),
                               UNICON_VIEW(.rows = w->in.y, .model = w->model, .side = UNICON_Y)};
  unicon_status status = take_loss(t, w->model);
  if (status == UNICON_OK)
    status = unicon_weights(t->ctx, &view[0], &view[1], w->in.pairs, t->options, w->scores,
                            w->weights, &w->loss);
  display_clear(&t->display);
  if (status != UNICON_OK) return usable_fail(t, status, view, 2);
  code = write_matrix(t, CLI_OPT_OUTPUT, w, w->weights);
  if (code == EXIT_DONE) code = write_matrix(t, CLI_OPT_SCORES, w, w->scores);
  return code == EXIT_DONE ? print_result(t, w) : code;
}

int cmd_weights(tool *t) {
  static const cli_id outputs[] = {CLI_OPT_OUTPUT, CLI_OPT_SCORES};
  const char *const *path = t->args->positional;
  weighing w = {0};
  int code = inputs_check_options(t);
  for (size_t k = 0; k < 2 && code == EXIT_DONE; k++)
    if (tool_has(t, outputs[k])) code = inputs_check_matrix_output(t, tool_value(t, outputs[k]));
  if (code == EXIT_DONE) code = inputs_check_differ(t, CLI_OPT_OUTPUT, CLI_OPT_SCORES);
  if (code == EXIT_DONE && path[0]) {
    const unicon_status status = unicon_model_load(t->ctx, path[0], &w.model);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  if (code == EXIT_DONE) code = inputs_open(t, path[1], path[2], INPUTS_MAIN, &w.in);
  if (code == EXIT_DONE) code = weigh(t, &w);
  free(w.weights);
  free(w.scores);
  inputs_close(&w.in);
  unicon_model_destroy(w.model);
  return code;
}
