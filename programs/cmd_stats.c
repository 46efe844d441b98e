/* SPDX-License-Identifier: Apache-2.0 */
/* unicon stats X Y -o PART, unicon stats ALL --add|--remove X Y -o NEW, unicon merge, unicon
 * landmarks */
#include <stdlib.h>
#include <string.h>

#include "flags.h"
#include "inputs.h"
#include "summed.h"

/* The suffix tells statistics from models. */
static int check_output(tool *t) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  if (summed_is_name(path)) return inputs_check_output(t, path);
  return cli_error(t->args->command, "%s: a file of statistics is called NAME.stats", path);
}

/* ---- what is asked for -------------------------------------------------------------------- */

/* Statistics that are there have their maps: options about them would do nothing. */
static int check_settings(tool *t, const char *why) {
  static const char *const others[] = {"bad_rows", "seed", "drop_landmarks"};
  for (size_t i = 0; i < t->args->settings; i++) {
    const unicon_option_info *option = t->args->setting[i].option;
    bool fine = (option->scope & UNICON_SCOPE_CONTEXT) != 0;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
      fine = fine || strcmp(option->name, others[k]) == 0;
    if (fine) continue;
    char text[160], said[200];
    snprintf(text, sizeof text, "%s has no effect %s, which settle that", option->name, why);
    flags_in(t->args, text, said, sizeof said);
    return cli_error(t->args->command, "%s", said);
  }
  return EXIT_DONE;
}

/* Maps that are taken from statistics; a model's are looked after by the library. */
static int check_maps(tool *t) {
  const char *maps = tool_value(t, CLI_OPT_MAP_FROM);
  return maps && summed_is_name(maps) ? check_settings(t, "with --map-from of statistics")
                                      : EXIT_DONE;
}

static int check_decay(tool *t, double *keep) {
  const char *text = tool_value(t, CLI_OPT_DECAY);
  char *end = NULL;
  if (!text) return EXIT_DONE;
  *keep = strtod(text, &end);
  if (end != text && !*end && *keep > 0 && *keep < 1) return EXIT_DONE;
  return cli_error(t->args->command, "--decay is `%s`; accepted: a number above 0 and below 1",
                   text);
}

static int check_stats(tool *t, double *keep) {
  const cli_command *command = t->args->command;
  const bool add = tool_has(t, CLI_OPT_ADD), remove = tool_has(t, CLI_OPT_REMOVE);
  const bool change = add || remove;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(command, "say where the statistics go: -o NEW.stats");
  if (add && remove) return cli_error(command, "give one of --add and --remove");
  if (change && !t->args->positional[2]) return cli_usage_error(command, "Y is missing");
  if (!change && t->args->positional[2])
    return cli_usage_error(command, "`%s` is one argument too many without --add or --remove",
                           t->args->positional[2]);
  if (tool_has(t, CLI_OPT_DECAY) && !add) return cli_error(command, "--decay needs --add as well");
  if (tool_has(t, CLI_OPT_CERTIFICATE) && !remove)
    return cli_error(command, "--certificate needs --remove as well");
  if (cli_sets(t->args, "drop_landmarks") && !remove)
    return cli_error(command, "--drop-landmarks needs --remove as well");
  if (tool_has(t, CLI_OPT_MAP_FROM) && change)
    return cli_error(command, "--map-from has no effect beside --add or --remove");
  int code = change ? check_settings(t, "with ALL.stats") : check_maps(t);
  if (code == EXIT_DONE) code = check_decay(t, keep);
  if (code == EXIT_DONE) code = inputs_check_options(t);
  if (code == EXIT_DONE) code = check_output(t);
  if (code == EXIT_DONE && tool_has(t, CLI_OPT_CERTIFICATE))
    code = inputs_check_output(t, tool_value(t, CLI_OPT_CERTIFICATE));
  return code == EXIT_DONE ? inputs_check_differ(t, CLI_OPT_OUTPUT, CLI_OPT_CERTIFICATE) : code;
}

/* ---- empty statistics --------------------------------------------------------------------- */

static unicon_status from_model(tool *t, const char *path, unicon_stats **out) {
  unicon_model *model = NULL;
  unicon_status status = unicon_model_load(t->ctx, path, &model);
  if (status == UNICON_OK) status = unicon_stats_create_from_model(t->ctx, model, t->options, out);
  unicon_model_destroy(model);
  return status;
}

/* With the maps of --map-from, or of the rows. */
static int open_empty(tool *t, const inputs *in, unicon_stats **out) {
  const unicon_data data = UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs);
  const char *path = tool_value(t, CLI_OPT_MAP_FROM);
  unicon_status status = UNICON_OK;
  unicon_stats *like = NULL;
  if (!path) {
    status = unicon_stats_create(t->ctx, &data, t->options, out);
  } else if (summed_is_name(path)) {
    status = unicon_stats_load(t->ctx, path, &like);
    if (status == UNICON_OK) status = unicon_stats_create_like(t->ctx, like, out);
    unicon_stats_destroy(like);
  } else {
    status = from_model(t, path, out);
  }
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

/* ---- results ------------------------------------------------------------------------------ */

static int write_certificate(tool *t, const unicon_result *certificate) {
  const char *path = tool_value(t, CLI_OPT_CERTIFICATE);
  if (!path) return EXIT_DONE;
  json_t *object = display_json_result(certificate);
  if (object)
    json_object_set_new(object, "statistics", display_json_text(tool_value(t, CLI_OPT_OUTPUT)));
  char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
  const int code = text ? output_write(t, path, text, strlen(text)) : tool_out_of_memory(t);
  free(text);
  json_decref(object);
  return code;
}

/* Saves, then says what there is. */
static int finish(tool *t, const unicon_stats *stats, const unicon_result *certificate) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  display_clear(&t->display);
  if (display_interrupted()) return tool_interrupted(t);
  const unicon_status status = unicon_stats_save(t->ctx, stats, path);
  if (status != UNICON_OK) return tool_fail(t, status);
  const int code = certificate ? write_certificate(t, certificate) : EXIT_DONE;
  return code == EXIT_DONE ? summed_print(t, path, stats, certificate) : code;
}

/* ---- the commands ------------------------------------------------------------------------- */

static unicon_status change(tool *t, const inputs *in, double keep, unicon_stats *stats,
                            unicon_result **certificate) {
  const unicon_data data = UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs);
  if (tool_has(t, CLI_OPT_REMOVE))
    return unicon_stats_remove(t->ctx, stats, &data, t->options, certificate);
  const unicon_status status = keep < 1 ? unicon_stats_decay(t->ctx, stats, keep) : UNICON_OK;
  return status == UNICON_OK ? unicon_stats_add(t->ctx, stats, &data, t->options) : status;
}

int cmd_stats(tool *t) {
  const char *const *path = t->args->positional;
  inputs in = {0};
  unicon_stats *stats = NULL;
  unicon_result *certificate = NULL;
  double keep = 1;
  int code = check_stats(t, &keep);
  if (code != EXIT_DONE) return code;
  const bool there = path[2] != NULL;
  if (there) code = summed_open(t, path[0], &stats);
  if (code == EXIT_DONE) code = inputs_open(t, path[there], path[1 + there], INPUTS_MAIN, &in);
  if (code == EXIT_DONE && !there) code = open_empty(t, &in, &stats);
  if (code == EXIT_DONE) {
    const unicon_status status = change(t, &in, keep, stats, &certificate);
    code = status == UNICON_OK ? finish(t, stats, certificate) : tool_fail(t, status);
  }
  unicon_result_destroy(certificate);
  unicon_stats_destroy(stats);
  inputs_close(&in);
  return code;
}

int cmd_landmarks(tool *t) {
  const char *const *path = t->args->positional;
  inputs in = {0};
  unicon_stats *stats = NULL;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the maps go: -o MAPS.stats");
  int code = check_maps(t);
  if (code == EXIT_DONE) code = check_output(t);
  if (code == EXIT_DONE && cli_sets(t->args, "drop_landmarks"))
    display_idle(&t->display, "drop-landmarks", "where landmarks are chosen");
  if (code == EXIT_DONE) code = inputs_open(t, path[0], path[1], INPUTS_LOOSE, &in);
  if (code == EXIT_DONE) code = open_empty(t, &in, &stats);
  if (code == EXIT_DONE) code = finish(t, stats, NULL);
  unicon_stats_destroy(stats);
  inputs_close(&in);
  return code;
}

int cmd_merge(tool *t) {
  unicon_stats *all = NULL;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the sum goes: -o ALL.stats");
  int code = check_output(t);
  if (code == EXIT_DONE) code = summed_open(t, t->args->positional[0], &all);
  for (size_t k = 0; k < t->args->rests && code == EXIT_DONE; k++) {
    unicon_stats *part = NULL;
    code = summed_open(t, t->args->rest[k], &part);
    if (code == EXIT_DONE) {
      const unicon_status status = unicon_stats_merge(t->ctx, all, part);
      if (status != UNICON_OK) code = tool_fail(t, status);
    }
    unicon_stats_destroy(part);
    if (code == EXIT_DONE && display_interrupted()) code = tool_interrupted(t);
  }
  if (code == EXIT_DONE) code = finish(t, all, NULL);
  unicon_stats_destroy(all);
  return code;
}
