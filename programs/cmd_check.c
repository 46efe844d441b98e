/* SPDX-License-Identifier: Apache-2.0 */
/* unicon check X Y */
#include <stdlib.h>

#include "inputs.h"

enum { SHOWN_VALUES = 12 };

/* The worst pairs, a list for each column. */
typedef struct suspects {
  const int64_t *x, *y; /* -1: none */
  const double *cosine, *closer;
  int64_t count;
} suspects;

static suspects suspects_of(const unicon_result *r) {
  suspects s = {.count = 0};
  s.x = unicon_result_integers(r, "suspects.x", &s.count, NULL);
  s.y = unicon_result_integers(r, "suspects.y", NULL, NULL);
  s.cosine = unicon_result_reals(r, "suspects.cosine", NULL, NULL);
  s.closer = unicon_result_reals(r, "suspects.closer", NULL, NULL);
  return s;
}

/* The number of a row, or "-". */
static const char *row_text(int64_t row, char out[24]) {
  if (row >= 0)
    snprintf(out, 24, "%lld", (long long)row);
  else
    snprintf(out, 24, "-");
  return out;
}

static void print_suspects(const unicon_result *r) {
  const suspects s = suspects_of(r);
  char x[24], y[24];
  if (s.count == 0) return;
  printf(
      "\nThe worst of %.0f, as graded by fits that have not seen them (closer: than which share "
      "of other rows)\n%10s  %10s  %8s  %8s\n",
      display_number(r, "", "graded"), "x", "y", "cosine", "closer");
  for (int64_t k = 0; k < s.count; k++)
    printf("%10s  %10s  %8.3f  %8.3f\n", row_text(s.x[k], x), row_text(s.y[k], y), s.cosine[k],
           s.closer[k]);
}

static int print_text(const unicon_result *r) {
  int64_t values = 0;
  const double *spectrum = unicon_result_reals(r, "spectrum", &values, NULL);
  const double p = display_number(r, "", "p_value");
  puts(unicon_result_text(r, "verdict"));
  printf("\npairs            %.0f between %.0f rows of x and %.0f of y\n",
         display_number(r, "", "pairs"), display_number(r, "", "rows_x"),
         display_number(r, "", "rows_y"));
  printf("cosine           %.3f in unseen pairs, %.3f in shuffled ones, p %s %.3g\n",
         display_number(r, "", "cosine"), display_number(r, "", "chance"), p < 0.001 ? "<" : "=",
         p < 0.001 ? 0.001 : p);
  printf("closer           than %.1f %% of the other rows in the mean; %.0f of %.0f below half\n",
         100 * display_number(r, "", "closer"), display_number(r, "", "doubtful"),
         display_number(r, "", "graded"));
  printf("correlations    ");
  for (int64_t k = 0; k < values && k < SHOWN_VALUES; k++) printf(" %.2f", spectrum[k]);
  printf("%s; shuffled pairs reach %.2f\n", values > SHOWN_VALUES ? " ..." : "",
         display_number(r, "", "noise"));
  printf("rank             %.0f above those of shuffled pairs\n", display_number(r, "", "rank"));
  print_suspects(r);
  return EXIT_DONE;
}

/* The suspects as a table of their own. */
static int write_file(tool *t, const unicon_result *r, const char *path) {
  const suspects s = suspects_of(r);
  char *text = NULL, x[24], y[24];
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return tool_out_of_memory(t);
  fputs("x\ty\tcosine\tcloser\n", stream);
  for (int64_t k = 0; k < s.count; k++)
    fprintf(stream, "%s\t%s\t%.6f\t%.6f\n", row_text(s.x[k], x), row_text(s.y[k], y), s.cosine[k],
            s.closer[k]);
  const bool failed = ferror(stream) != 0;
  const int code =
      fclose(stream) != 0 || failed ? tool_out_of_memory(t) : output_write(t, path, text, size);
  free(text);
  return code;
}

/* ---- the command -------------------------------------------------------------------------- */

static int check(tool *t, const inputs *in, int64_t room) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_data data = UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs,
                                       .groups = unicon_labels_numbers(in->groups, 0));
  unicon_result *r = NULL;
  const unicon_status status = unicon_check(t->ctx, &data, t->options, room, &r);
  display_clear(&t->display);
  int code = status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
  if (code == EXIT_DONE && path) code = write_file(t, r, path);
  if (code == EXIT_DONE && !tool_has(t, CLI_OPT_JSON))
    code = print_text(r);
  else if (code == EXIT_DONE && !display_json(display_json_result(r)))
    code = tool_out_of_memory(t);
  unicon_result_destroy(r);
  return code;
}

int cmd_check(tool *t) {
  const char *const *path = t->args->positional;
  const char *output = tool_value(t, CLI_OPT_OUTPUT);
  int64_t room = 0;
  inputs in = {0};
  int code = inputs_check_options(t);
  if (code == EXIT_DONE) code = cli_integer(t->args, CLI_OPT_TOP, 0, 1000000000, &room);
  if (code == EXIT_DONE && output) code = inputs_check_output(t, output);
  if (code == EXIT_DONE) code = inputs_open(t, path[0], path[1], INPUTS_MAIN, &in);
  if (code == EXIT_DONE) code = check(t, &in, room);
  inputs_close(&in);
  return code;
}
