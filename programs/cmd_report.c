/* SPDX-License-Identifier: Apache-2.0 */
/* unicon report MODEL X Y -o report.html, unicon report --from report.json -o report.html */
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* The object as it would be read back, so that a page made now and one made from the file are the
 * same. */
static json_t *as_read(json_t *report) {
  char *text = report ? json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
  json_t *again = text ? json_loads(text, 0, NULL) : NULL;
  free(text);
  return again;
}

/* The object inside a page that was made from it. */
static json_t *load_page(FILE *file, json_error_t *error) {
  static const char mark[] = "<script type=\"application/json\" id=\"report\">";
  char *text = NULL;
  size_t room = 0;
  const bool read = getdelim(&text, &room, '\0', file) > 0;
  const char *start = read ? strstr(text, mark) : NULL;
  json_t *out = json_loads(start ? start + sizeof mark - 1 : "",
                           JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, error);
  free(text);
  return out;
}

static int load(tool *t, const char *path, json_t **out) {
  json_error_t error;
  FILE *file = fopen(path, "rb");
  const int first = file ? fgetc(file) : EOF;
  *out =
      first == '<' ? load_page(file, &error) : json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (file) fclose(file);
  if (*out) return EXIT_DONE;
  if (error.line < 0) return tool_error(t, "%s", error.text); /* cannot be opened; names the file */
  return tool_error(t, "%s is not JSON: line %d: %s", path, error.line, error.text);
}

/* Makes the page, which also tells whether a report that was read is one; writes it to `path`
 * unless that is NULL. */
static int write_page(tool *t, const json_t *report, const char *path) {
  char error[300], size_text[32];
  size_t size = 0;
  char *html = report_page(report, &size, error, sizeof error);
  const char *from = tool_value(t, CLI_OPT_FROM);
  if (!html)
    return from ? tool_error(t, "%s: %s", from, error) : tool_error(t, "the report: %s", error);
  const int code = path ? output_write(t, path, html, size) : EXIT_DONE;
  free(html);
  if (code == EXIT_DONE && !tool_has(t, CLI_OPT_JSON))
    printf("report           %s, %s\n", path,
           display_bytes((double)size, size_text, sizeof size_text));
  return code;
}

static int check_options(tool *t) {
  static const cli_id idle[] = {
      CLI_OPT_X_IDS,   CLI_OPT_Y_IDS,   CLI_OPT_LABELS,     CLI_OPT_CLASSES,  CLI_OPT_CLASS_NAMES,
      CLI_OPT_PAIRS,   CLI_OPT_Y_PER_X, CLI_OPT_X_PER_Y,    CLI_OPT_X_LABELS, CLI_OPT_Y_LABELS,
      CLI_OPT_IGNORE,  CLI_OPT_LAYOUT,  CLI_OPT_PERPLEXITY, CLI_OPT_X_TEXT,   CLI_OPT_Y_TEXT,
      CLI_OPT_X_MEDIA, CLI_OPT_Y_MEDIA, CLI_OPT_BESIDE};
  const char *const *path = t->args->positional;
  const cli_command *command = t->args->command;
  if (!tool_has(t, CLI_OPT_OUTPUT) && !tool_has(t, CLI_OPT_JSON))
    return cli_usage_error(command, "say where the report goes: -o report.html");
  if (tool_has(t, CLI_OPT_FROM)) {
    if (path[0]) return cli_usage_error(command, "--from takes the place of `%s`", path[0]);
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
      if (tool_has(t, idle[i]))
        return cli_error(command, "--%s cannot be used with --from", cli_name(idle[i]));
    return EXIT_DONE;
  }
  for (int k = 0; k < 3; k++)
    if (!path[k]) return cli_usage_error(command, "%s is missing", command->positional[k]);
  if (tool_has(t, CLI_OPT_CLASS_NAMES) && !tool_has(t, CLI_OPT_CLASSES))
    return cli_error(command, "--class-names needs --classes as well");
  if (tool_has(t, CLI_OPT_CLASSES) && !tool_has(t, CLI_OPT_LABELS) &&
      !tool_has(t, CLI_OPT_X_LABELS))
    return cli_error(command, "--classes needs the right answers: --labels FILE");
  return inputs_check_options(t);
}

int cmd_report(tool *t) {
  const char *output = tool_value(t, CLI_OPT_OUTPUT), *from = tool_value(t, CLI_OPT_FROM);
  json_t *report = NULL, *again = NULL;
  int64_t perplexity;
  int code = check_options(t);
  if (code == EXIT_DONE) code = cli_integer(t->args, CLI_OPT_PERPLEXITY, 1, 1000, &perplexity);
  if (code == EXIT_DONE && output) code = inputs_check_output(t, output);
  if (code == EXIT_DONE) code = from ? load(t, from, &report) : report_compute(t, &report);
  display_clear(&t->display);
  if (code == EXIT_DONE && !(again = as_read(report))) code = tool_out_of_memory(t);
  if (code == EXIT_DONE && (output || from)) code = write_page(t, again, output);
  json_decref(report);
  if (code == EXIT_DONE && tool_has(t, CLI_OPT_JSON)) {
    code = display_json(again) ? EXIT_DONE : tool_out_of_memory(t);
    again = NULL;
  }
  json_decref(again);
  return code;
}
