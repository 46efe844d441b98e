/* SPDX-License-Identifier: Apache-2.0 */
/* unicon check X Y */
#include <stdlib.h>

#include "inputs.h"

enum { SHOWN_VALUES = 12 };

typedef struct findings {
  const inputs *in;
  unicon_check_result result;
  unicon_suspect *suspect;
} findings;

/* A sentence for someone who does not know the numbers below. */
static const char *verdict(const unicon_check_result *r, char *out, size_t size) {
  const double share = 100 * r->closer;
  if (r->p_value >= 0.05) {
    snprintf(out, size,
             "No alignment found: pairs that the fit has not seen are no closer than shuffled ones "
             "(p = %.3g). Are the rows of both files in the same order, and is the pair option the "
             "right one?",
             r->p_value);
    return out;
  }
  if (r->closer < 0.6) {
    snprintf(out, size,
             "A weak alignment: it is there (p = %.3g), but a partner is closer than only %.0f %% "
             "of the other rows. More pairs or a kernel may help.",
             r->p_value, share);
    return out;
  }
  const int used = snprintf(
      out, size, "%s: in new pairs a partner is closer than %.1f %% of the other rows (p = %.3g).",
      r->closer < 0.9 ? "There is something to align" : "The two sides align well", share,
      r->p_value);
  if (r->rank > 0)
    snprintf(out + used, size - (size_t)used, " At least %lld dimension%s it.", (long long)r->rank,
             r->rank == 1 ? " carries" : "s carry");
  return out;
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_number(FILE *stream, const char *form, int64_t row) {
  if (row >= 0)
    fprintf(stream, "%lld", (long long)row);
  else
    fputs("-", stream);
  fputs(form, stream);
}

static void write_suspects(FILE *stream, const findings *f) {
  fputs("x\ty\tcosine\tcloser\n", stream);
  for (int64_t k = 0; k < f->result.suspects; k++) {
    print_number(stream, "\t", f->suspect[k].x);
    print_number(stream, "\t", f->suspect[k].y);
    fprintf(stream, "%.6f\t%.6f\n", f->suspect[k].cosine, f->suspect[k].closer);
  }
}

static void print_suspects(const findings *f) {
  if (f->result.suspects == 0) return;
  printf(
      "\nThe worst of %lld, as graded by fits that have not seen them (closer: than which share "
      "of other rows)\n%10s  %10s  %8s  %8s\n",
      (long long)f->result.graded, "x", "y", "cosine", "closer");
  for (int64_t k = 0; k < f->result.suspects; k++) {
    const unicon_suspect *s = &f->suspect[k];
    char x[24] = "-", y[24] = "-";
    if (s->x >= 0) snprintf(x, sizeof x, "%lld", (long long)s->x);
    if (s->y >= 0) snprintf(y, sizeof y, "%lld", (long long)s->y);
    printf("%10s  %10s  %8.3f  %8.3f\n", x, y, s->cosine, s->closer);
  }
}

static int print_text(const findings *f) {
  const unicon_check_result *r = &f->result;
  char text[400];
  puts(verdict(r, text, sizeof text));
  printf("\npairs            %lld between %lld rows of x and %lld of y\n", (long long)r->pairs,
         (long long)r->rows_x, (long long)r->rows_y);
  printf("cosine           %.3f in unseen pairs, %.3f in shuffled ones, p = %.3g\n", r->cosine,
         r->chance, r->p_value);
  printf("closer           than %.1f %% of the other rows in the mean; %lld of %lld below half\n",
         100 * r->closer, (long long)r->doubtful, (long long)r->graded);
  printf("correlations    ");
  for (int64_t k = 0; k < r->spectrum_count && k < SHOWN_VALUES; k++)
    printf(" %.2f", r->spectrum[k]);
  printf("%s; shuffled pairs reach %.2f\n", r->spectrum_count > SHOWN_VALUES ? " ..." : "",
         r->noise);
  printf("rank             %lld above those of shuffled pairs\n", (long long)r->rank);
  print_suspects(f);
  return EXIT_DONE;
}

/* ---- JSON and file ------------------------------------------------------------------------ */

static json_t *row_json(int64_t row) {
  return row >= 0 ? json_integer((json_int_t)row) : json_null();
}

static int print_json(tool *t, const findings *f) {
  const unicon_check_result *r = &f->result;
  char text[400];
  json_t *out = json_object(), *spectrum = json_array(), *suspects = json_array();
  for (int64_t k = 0; k < r->spectrum_count; k++)
    json_array_append_new(spectrum, json_real(r->spectrum[k]));
  for (int64_t k = 0; k < r->suspects; k++) {
    const unicon_suspect *s = &f->suspect[k];
    json_array_append_new(
        suspects, json_pack("{s:o, s:o, s:f, s:f}", "x", row_json(s->x), "y", row_json(s->y),
                            "cosine", s->cosine, "closer", s->closer));
  }
  json_object_set_new(out, "verdict", json_string(verdict(r, text, sizeof text)));
  json_object_set_new(out, "pairs", json_integer((json_int_t)r->pairs));
  json_object_set_new(out, "x_rows", json_integer((json_int_t)r->rows_x));
  json_object_set_new(out, "y_rows", json_integer((json_int_t)r->rows_y));
  display_json_real(out, "p_value", r->p_value);
  display_json_real(out, "cosine", r->cosine);
  display_json_real(out, "chance", r->chance);
  display_json_real(out, "closer", r->closer);
  json_object_set_new(out, "graded", json_integer((json_int_t)r->graded));
  json_object_set_new(out, "doubtful", json_integer((json_int_t)r->doubtful));
  json_object_set_new(out, "rank", json_integer((json_int_t)r->rank));
  display_json_real(out, "noise", r->noise);
  json_object_set_new(out, "spectrum", spectrum);
  json_object_set_new(out, "suspects", suspects);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

/* The suspects as a table of their own. */
static int write_file(tool *t, const findings *f, const char *path) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return tool_out_of_memory(t);
  write_suspects(stream, f);
  const bool failed = ferror(stream) != 0;
  const int code =
      fclose(stream) != 0 || failed ? tool_out_of_memory(t) : output_write(t, path, text, size);
  free(text);
  return code;
}

/* ---- the command -------------------------------------------------------------------------- */

static int check(tool *t, const inputs *in, int64_t room) {
  findings f = {.in = in, .suspect = calloc((size_t)room + 1, sizeof *f.suspect)};
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_data data = {in->x, in->y, in->pairs, unicon_labels_numbers(in->groups, 0)};
  if (!f.suspect) return tool_out_of_memory(t);
  const unicon_status status = unicon_check(t->ctx, &data, t->options, room, f.suspect, &f.result);
  display_clear(&t->display);
  int code = status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
  if (code == EXIT_DONE && path) code = write_file(t, &f, path);
  if (code == EXIT_DONE) code = tool_has(t, CLI_OPT_JSON) ? print_json(t, &f) : print_text(&f);
  free(f.suspect);
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
