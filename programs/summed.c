/* SPDX-License-Identifier: Apache-2.0 */
#include "summed.h"

#include <string.h>

bool summed_is_name(const char *path) {
  const size_t length = strlen(path);
  return length > 6 && strcmp(path + length - 6, ".stats") == 0;
}

int summed_check_sources(tool *t) {
  static const cli_id about_rows[] = {CLI_OPT_PAIRS,   CLI_OPT_X_LABELS, CLI_OPT_Y_LABELS,
                                      CLI_OPT_ONE_SET, CLI_OPT_IGNORE,   CLI_OPT_NEGATIVES,
                                      CLI_OPT_GROUPS};
  const char *const *path = t->args->positional;
  const cli_command *command = t->args->command;
  const bool from = tool_has(t, CLI_OPT_FROM);
  if (!from && !path[1]) return cli_usage_error(command, "%s is missing", path[0] ? "Y" : "X");
  if (from && path[0])
    return cli_usage_error(command, "with --from X and Y are not given, but `%s` is", path[0]);
  for (size_t k = 0; from && k < sizeof about_rows / sizeof *about_rows; k++)
    if (tool_has(t, about_rows[k]))
      return cli_error(command, "--%s is about the rows of X and Y; statistics have their pairs",
                       cli_name(about_rows[k]));
  return EXIT_DONE;
}

int summed_open(tool *t, const char *path, unicon_stats **out) {
  const unicon_status status = unicon_stats_load(t->ctx, path, out);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

static const char *text_of(const unicon_result *r, const char *name) {
  const char *text = unicon_result_text(r, name);
  return text ? text : "";
}

static void print_side(const unicon_result *r, char side) {
  char name[4][16];
  static const char *const what[4] = {"rows", "width", "features", "kernel"};
  for (int k = 0; k < 4; k++) snprintf(name[k], sizeof name[k], "%s_%c", what[k], side);
  printf("%c                %.10g rows of %.10g numbers, kernel %s, %.10g features\n", side,
         display_number(r, "", name[0]), display_number(r, "", name[1]), text_of(r, name[3]),
         display_number(r, "", name[2]));
}

static void print_stats(const char *path, const unicon_result *r) {
  print_side(r, 'x');
  print_side(r, 'y');
  printf("pairs            %.10g", display_number(r, "", "pairs"));
  if (display_number(r, "", "classes") > 0)
    printf(", of %.10g labels", display_number(r, "", "classes"));
  puts("");
  printf("maps             %s, normalize %s, unpaired %s\n", text_of(r, "maps"),
         text_of(r, "normalize"), text_of(r, "unpaired"));
  printf("sample           %.10g x %.10g rows%s\n", display_number(r, "sample", "rows_x"),
         display_number(r, "sample", "rows_y"),
         display_number(r, "sample", "all") > 0 ? ", all there are" : "");
  if (display_number(r, "", "ledger") > 0) puts("ledger           of every row");
  if (display_number(r, "", "decayed") > 0) puts("decayed          nothing can be removed");
  printf("statistics       %s\n", path);
}

static void print_certificate(const unicon_result *c) {
  printf("removed          %.10g rows of x, %.10g rows of y, %.10g pairs\n",
         display_number(c, "removed", "rows_x"), display_number(c, "removed", "rows_y"),
         display_number(c, "removed", "pairs"));
  printf("checked by       %s\n", text_of(c, "checked_by"));
  printf("trace            at most %.2g of the sums of squares\n",
         display_number(c, "trace", "bound"));
  printf("seen by          %s\n", text_of(c, "seen_by"));
}

int summed_print(tool *t, const char *path, const unicon_stats *stats,
                 const unicon_result *certificate) {
  unicon_result *r = NULL;
  const unicon_status status = unicon_stats_describe(t->ctx, stats, &r);
  if (status != UNICON_OK) return tool_fail(t, status);
  int code = EXIT_DONE;
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out = display_json_result(r);
    if (out) json_object_set_new(out, "statistics", display_json_text(path));
    if (out && certificate)
      json_object_set_new(out, "certificate", display_json_result(certificate));
    code = out && display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  } else {
    if (certificate) print_certificate(certificate);
    print_stats(path, r);
  }
  unicon_result_destroy(r);
  return code;
}

int summed_info(tool *t, const char *path) {
  unicon_stats *stats = NULL;
  int code = summed_open(t, path, &stats);
  if (code == EXIT_DONE) code = summed_print(t, path, stats, NULL);
  unicon_stats_destroy(stats);
  return code;
}
