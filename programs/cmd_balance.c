/* SPDX-License-Identifier: Apache-2.0 */
/* unicon balance MODEL X Y -o NEW */
#include "balanced.h"
#include "inputs.h"

static int print_result(tool *t, const char *path) {
  char words[BALANCED_WORDS];
  if (!tool_has(t, CLI_OPT_JSON)) {
    printf("balance          %s\n", balanced_words(t->balance, words));
    printf("model            %s\n", path);
    printf("next             unicon eval %s X.test Y.test (and how rows belong together)\n", path);
    return EXIT_DONE;
  }
  json_t *out = json_pack("{s:o}", "model", display_json_text(path));
  balanced_json(t->balance, out);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int rebalance(tool *t, const unicon_model *model, const inputs *in) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_data data = UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs);
  unicon_model *made = NULL;
  unicon_status status = unicon_model_rebalance(t->ctx, model, &data, t->options, &made);
  if (status == UNICON_OK)
    status = unicon_balance_create(t->ctx, made, NULL, NULL, NULL, &t->balance);
  int code = EXIT_DONE;
  if (status == UNICON_OK && display_interrupted())
    code = tool_interrupted(t);
  else if (status == UNICON_OK)
    status = unicon_model_save(t->ctx, made, path);
  unicon_model_destroy(made);
  display_clear(&t->display);
  if (status != UNICON_OK) return tool_fail(t, status);
  return code == EXIT_DONE ? print_result(t, path) : code;
}

int cmd_balance(tool *t) {
  const char *const *path = t->args->positional, *target = tool_value(t, CLI_OPT_OUTPUT);
  unicon_model *model = NULL;
  inputs in = {0};
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the new model goes: -o NEW.safetensors");
  int code = inputs_check_options(t);
  if (code == EXIT_DONE) code = inputs_check_model_output(t, target);
  if (code != EXIT_DONE) return code;
  const unicon_status status = unicon_model_load(t->ctx, path[0], &model);
  code = status == UNICON_OK ? inputs_open(t, path[1], path[2], INPUTS_LOOSE, &in)
                             : tool_fail(t, status);
  if (code == EXIT_DONE) {
    inputs_warn_model_name(t, target);
    code = rebalance(t, model, &in);
  }
  inputs_close(&in);
  unicon_model_destroy(model);
  return code;
}
