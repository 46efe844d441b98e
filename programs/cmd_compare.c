/* SPDX-License-Identifier: Apache-2.0 */
/* unicon compare X Y: our presets beside the usual methods, on the user's rows */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contestants.h"
#include "inputs.h"

/* Everything that is compared. */
typedef struct comparison {
  inputs train, validation, test; /* as given; empty where rows are held out instead */
  unicon_split *split[2];         /* test rows cut off, then validation rows */
  unicon_split *usable[2];        /* of the given validation and test rows, with --bad-rows drop */
  compared_sets data;
  outcome *row;
  size_t rows, done, shown; /* to run, finished, and printed */
} comparison;

/* ---- the three sets ----------------------------------------------------------------------- */

static unicon_data data_of(const inputs *in) {
  return UNICON_DATA(.x = in->x, .y = in->y, .pairs = in->pairs,
                     .groups = unicon_labels_numbers(in->groups, 0));
}

/* Rows of all sets must be as wide as those of training. */
static int check_widths(tool *t, const unicon_data *train, const inputs *other, const char *rows) {
  const unicon_rows *const a[2] = {train->x, train->y}, *const b[2] = {other->x, other->y};
  for (int s = 0; s < 2; s++)
    if (b[s] && unicon_rows_width(b[s]) != unicon_rows_width(a[s]))
      return tool_error(t, "the %s rows of %c have %lld numbers, the training rows %lld", rows,
                        "xy"[s], (long long)unicon_rows_width(b[s]),
                        (long long)unicon_rows_width(a[s]));
  return EXIT_DONE;
}

/* Cuts `fraction` off the training rows. */
static int hold_out(tool *t, comparison *c, double fraction, unicon_split **split,
                    unicon_data *held) {
  const unicon_status status =
      unicon_split_make(t->ctx, &c->data.train, fraction, t->options, split);
  if (status != UNICON_OK) return tool_fail(t, status);
  c->data.train = *unicon_split_part(*split, 0);
  *held = *unicon_split_part(*split, 1);
  return EXIT_DONE;
}

/* Leaves out rows of a given set that cannot be used, where the user wants that. */
static int drop_bad_rows(tool *t, unicon_data *data, unicon_split **usable) {
  if (strcmp(unicon_options_get(t->options, "bad_rows"), "drop") != 0) return EXIT_DONE;
  const unicon_status status = unicon_split_make(t->ctx, data, 0, t->options, usable);
  if (status != UNICON_OK) return tool_fail(t, status);
  *data = *unicon_split_part(*usable, 0);
  return EXIT_DONE;
}

/* With both other sets in files nothing is held out. */
static int check_idle(tool *t) {
  if (!tool_has(t, CLI_OPT_VAL_X)) return EXIT_DONE;
  if (cli_sets(t->args, "val_fraction"))
    return cli_error(t->args->command, "--val-fraction cannot be used with --val-x");
  if (tool_has(t, CLI_OPT_TEST_X) && tool_has(t, CLI_OPT_GROUPS))
    return cli_error(t->args->command, "--groups cannot be used with both --val-x and --test-x");
  return EXIT_DONE;
}

static double validation_fraction(const tool *t) {
  const double given = strtod(unicon_options_get(t->options, "val_fraction"), NULL);
  return given > 0 ? given : 0.1; /* "auto" is no number */
}

static int open_sets(tool *t, comparison *c) {
  const char *const *path = t->args->positional;
  const char *val_x = tool_value(t, CLI_OPT_VAL_X), *test_x = tool_value(t, CLI_OPT_TEST_X);
  int code = inputs_open(t, path[0], path[1], INPUTS_MAIN, &c->train);
  if (code == EXIT_DONE && val_x)
    code = inputs_open(t, val_x, tool_value(t, CLI_OPT_VAL_Y), INPUTS_VALIDATION, &c->validation);
  if (code == EXIT_DONE && test_x)
    code = inputs_open(t, test_x, tool_value(t, CLI_OPT_TEST_Y), INPUTS_TEST, &c->test);
  if (code != EXIT_DONE) return code;
  c->data = (compared_sets){data_of(&c->train), data_of(&c->validation), data_of(&c->test)};
  code = check_widths(t, &c->data.train, &c->validation, "validation");
  if (code == EXIT_DONE) code = check_widths(t, &c->data.train, &c->test, "test");
  if (code == EXIT_DONE && val_x) code = drop_bad_rows(t, &c->data.validation, &c->usable[0]);
  if (code == EXIT_DONE && test_x) code = drop_bad_rows(t, &c->data.test, &c->usable[1]);
  if (code == EXIT_DONE && !test_x) code = hold_out(t, c, 0.2, &c->split[0], &c->data.test);
  if (code == EXIT_DONE && !val_x)
    code = hold_out(t, c, validation_fraction(t), &c->split[1], &c->data.validation);
  return code;
}

enum { FEW_ROWS = 20 }; /* as unicon check needs: of fewer a figure says little */

static void warn_of_few(tool *t, const comparison *c) {
  const unicon_data *const set[] = {&c->data.test, &c->data.validation};
  char text[160];
  for (int k = 0; k < 2; k++) {
    const long long x = unicon_rows_count(set[k]->x), y = unicon_rows_count(set[k]->y);
    if (x >= FEW_ROWS && y >= FEW_ROWS) continue;
    snprintf(text, sizeof text, "%lld x %lld %s rows are few: the methods can hardly be told apart",
             x, y, k ? "validation" : "test");
    display_log(&t->display, UNICON_LOG_WARNING, text);
  }
}

static void close_sets(comparison *c) {
  for (int k = 0; k < 2; k++) {
    unicon_split_destroy(c->split[k]);
    unicon_split_destroy(c->usable[k]);
  }
  inputs_close(&c->test);
  inputs_close(&c->validation);
  inputs_close(&c->train);
}

/* ---- who takes part ----------------------------------------------------------------------- */

/* The names of --only, or all. */
static int choose_rows(tool *t, comparison *c) {
  const char *only = tool_value(t, CLI_OPT_ONLY);
  for (size_t i = 0; i < contestant_count && !only; i++) c->row[c->rows++].who = &contestants[i];
  for (size_t length; only && *only; only += length + (only[length] == ',')) {
    only += strspn(only, " ");
    length = strcspn(only, ",");
    size_t name = length;
    while (name > 0 && only[name - 1] == ' ') name--;
    const contestant *who = contestant_find(only, name);
    if (!who) {
      char names[160] = "";
      for (size_t i = 0, at = 0; i < contestant_count; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               contestants[i].name);
      return cli_error(t->args->command, "--only `%.*s`: the rows are %s", (int)name, only, names);
    }
    bool twice = false;
    for (size_t i = 0; i < c->rows; i++) twice = twice || c->row[i].who == who;
    if (!twice) c->row[c->rows++].who = who;
  }
  if (c->rows == 0) return cli_error(t->args->command, "--only names no row");
  return EXIT_DONE;
}

static double balanced_score(const outcome *o) {
  return o->by[BALANCED].score;
}

/* The row whose quality the others are timed against: the best SGD head, balanced, or else the best
 * baseline. */
static const outcome *reference_of(const comparison *c) {
  const outcome *found = NULL;
  for (size_t i = 0; i < c->done; i++) {
    const outcome *o = &c->row[i];
    if (o->skipped[0] || !o->who->baseline || o->who->identity) continue;
    const bool learns = o->by[BALANCED].epochs > 0,
               learned = found && found->by[BALANCED].epochs > 0;
    if (!found || (learns && !learned) ||
        (learns == learned && balanced_score(o) > balanced_score(found)))
      found = o;
  }
  return found;
}

static bool all_skipped(const comparison *c) {
  for (size_t i = 0; i < c->done; i++)
    if (!c->row[i].skipped[0]) return false;
  return true;
}

/* ---- output ------------------------------------------------------------------------------- */

static const char *time_or_never(double seconds, char *out, size_t size) {
  return isfinite(seconds) ? display_time(seconds, out, size) : "never reaches it";
}

/* hit@k and the held-out score of one kind of scores. */
static void print_scores(const char *name, const char *kind, const outcome *o, scoring by) {
  printf("%-10s  %-8s  %.3f   %.3f  %.3f   %.3f     %.3f", name, kind,
         outcome_number(o, by, "x_to_y", "hit@1"), outcome_number(o, by, "x_to_y", "hit@10"),
         outcome_number(o, by, "y_to_x", "hit@1"), outcome_number(o, by, "y_to_x", "hit@10"),
         o->by[by].score);
}

static void print_row(const outcome *o) {
  char time[32], memory[32];
  if (o->skipped[0]) {
    printf("%-10s  left out: %s\n", o->who->name, o->skipped);
    return;
  }
  print_scores(o->who->name, "plain", o, PLAIN);
  putchar('\n');
  print_scores("", "balanced", o, BALANCED);
  printf("  %-10s  %10s  %8s\n", o->by[BALANCED].balance,
         display_time(o->seconds, time, sizeof time),
         display_bytes(o->memory, memory, sizeof memory));
}

/* What a random order of the test rows would reach. */
static void print_chance(const outcome *o) {
  const unicon_result *r = o->by[PLAIN].result;
  printf("%-10s  %-8s  %.3f   %.3f  %.3f   %.3f\n", "chance", "",
         display_number(r, "x_to_y.chance", "hit@1"), display_number(r, "x_to_y.chance", "hit@10"),
         display_number(r, "y_to_x.chance", "hit@1"), display_number(r, "y_to_x.chance", "hit@10"));
}

static void print_counts(const char *name, const unicon_data *data, const char *from) {
  printf("%-10s  %lld x %lld rows, %lld pairs%s\n", name, (long long)unicon_rows_count(data->x),
         (long long)unicon_rows_count(data->y), (long long)unicon_pairs_count(data->pairs), from);
}

/* "auto 3.2 s", on a new line where this one is full; returns the column it ends in. */
static int print_time_to(const outcome *o, double target, const char *end, int column) {
  enum { INDENT = 2, COLUMNS = 96 };
  char time[32], text[64];
  const int length = snprintf(text, sizeof text, "%s %s%s", o->who->name,
                              time_or_never(outcome_time_to(o, target), time, sizeof time), end);
  const bool full = column + 1 + length > COLUMNS;
  printf(full ? "\n%*s%s" : "%*s%s", full ? INDENT : 1, "", text);
  return full ? INDENT + length : column + 1 + length;
}

/* How long all need for what the reference reaches, and it for what our presets reach. */
static void print_reference(const comparison *c, const outcome *reference) {
  char own[32], other[32];
  const double target = balanced_score(reference);
  int column = printf("as good as %s, balanced (%.3f), after:", reference->who->name, target);
  for (size_t i = 0; i < c->done; i++)
    if (!c->row[i].skipped[0] && &c->row[i] != reference)
      column = print_time_to(&c->row[i], target, ",", column);
  print_time_to(reference, target, "\n", column);
  for (size_t i = 0; i < c->done; i++) {
    const outcome *o = &c->row[i];
    if (o->who->baseline || o->skipped[0]) continue;
    const double seconds = outcome_time_to(reference, balanced_score(o));
    printf("%s reaches %.3f in %s; %s, balanced too, %s%s\n", o->who->name, balanced_score(o),
           display_time(o->seconds, own, sizeof own), reference->who->name,
           isfinite(seconds) ? "needs " : "never does",
           isfinite(seconds) ? display_time(seconds, other, sizeof other) : "");
  }
}

static void print_head(const comparison *c) {
  print_counts("train", &c->data.train, "");
  print_counts("validation", &c->data.validation,
               c->split[1] ? ", held out of the training rows" : "");
  print_counts("test", &c->data.test,
               c->split[0] ? ", held out: no --test-x and --test-y were given" : "");
  printf("\n%-20s  %-12s  %s\n", "", "x to y", "y to x");
  printf("%-10s  %-8s  hit@1  hit@10  hit@1  hit@10  held out  %-10s  %10s  %8s\n", "", "scores",
         "balance", "fit time", "memory");
}

/* Shows what has been finished since the last call, at once: the rest may take long, or be
 * interrupted. While nothing but rows left out is there, that may be all, and then it is an error.
 */
static void show_finished(tool *t, comparison *c) {
  const outcome *last = &c->row[c->done - 1];
  char text[128];
  if (tool_has(t, CLI_OPT_JSON)) {
    snprintf(text, sizeof text, "%s: %s", last->who->name, last->skipped[0] ? "left out" : "done");
    display_log(&t->display, UNICON_LOG_INFO, text);
    return;
  }
  if (all_skipped(c)) return;
  if (c->shown == 0) {
    print_head(c);
    print_chance(last);
  }
  while (c->shown < c->done) print_row(&c->row[c->shown++]);
  fflush(stdout);
}

/* "a, b and c" of the rows that were not run. */
static void print_missing(const comparison *c) {
  fputs("interrupted: ", stdout);
  for (size_t i = c->done; i < c->rows; i++)
    printf("%s%s", i == c->done ? "" : i + 1 < c->rows ? ", " : " and ", c->row[i].who->name);
  printf(" %s not run\n", c->rows - c->done == 1 ? "was" : "were");
}

/* What was left open, and how it was chosen; in two lines where plain and balanced scores chose
 * differently. */
static void print_chosen(const outcome *o) {
  const showing *plain = &o->by[PLAIN], *balanced = &o->by[BALANCED];
  if (strcmp(plain->chosen, balanced->chosen) == 0) {
    if (plain->chosen[0]) printf("%s: %s\n", o->who->name, plain->chosen);
    return;
  }
  printf("%s, plain: %s\n", o->who->name, plain->chosen);
  printf("%s, balanced: %s\n", o->who->name, balanced->chosen);
}

static void print_foot(const comparison *c) {
  const outcome *reference = reference_of(c);
  printf(
      "\nhit@k: on the test rows. plain: by the cosine alone; balanced: the score of a candidate "
      "is\n"
      "lowered for being near everything. held out: (mrr + hit@10)/2 of both directions on the\n"
      "validation rows, by which settings, and how strongly to balance, were chosen for every "
      "row;\n"
      "fit time includes all settings tried; below, an SGD head is timed with its chosen setting "
      "only.\n");
  if (reference) print_reference(c, reference);
  for (size_t i = 0; i < c->done; i++)
    if (!c->row[i].skipped[0]) print_chosen(&c->row[i]);
  if (c->done < c->rows) print_missing(c);
}

static json_t *set_json(const unicon_data *data, bool held_out) {
  return json_pack("{s:I, s:I, s:I, s:b}", "x", (json_int_t)unicon_rows_count(data->x), "y",
                   (json_int_t)unicon_rows_count(data->y), "pairs",
                   (json_int_t)unicon_pairs_count(data->pairs), "held_out", held_out);
}

/* A direction whose figures are those of plain scores. */
static void make_plain(json_t *direction) {
  json_t *plain = json_object_get(direction, "plain"), *hubs = json_object_get(direction, "hubs");
  json_object_update_existing(direction, plain);
  json_object_set(hubs, "skewness", json_object_get(hubs, "plain_skewness"));
  json_object_set(hubs, "never_found", json_object_get(hubs, "plain_never_found"));
  json_object_del(direction, "ci"); /* that of balanced scores */
}

/* The row by one kind of scores. */
static json_t *showing_json(const showing *s, scoring by) {
  json_t *result = display_json_result(s->result);
  json_t *to_y = json_object_get(result, "x_to_y"), *to_x = json_object_get(result, "y_to_x");
  if (by == PLAIN) {
    make_plain(to_y);
    make_plain(to_x);
  }
  json_t *out = json_pack("{s:O, s:O, s:f, s:s, s:f, s:o}", "x_to_y", to_y, "y_to_x", to_x,
                          "held_out_score", s->score, "balance", s->balance, "chosen_fit_seconds",
                          s->run, "chosen", display_json_text(s->chosen));
  json_decref(result);
  return out;
}

static json_t *row_json(const comparison *c, const outcome *o) {
  json_t *out = json_pack("{s:s, s:b}", "name", o->who->name, "baseline", o->who->baseline);
  if (o->skipped[0]) {
    json_object_set_new(out, "skipped", display_json_text(o->skipped));
    return out;
  }
  json_object_set_new(out, "plain", showing_json(&o->by[PLAIN], PLAIN));
  json_object_set_new(out, "balanced", showing_json(&o->by[BALANCED], BALANCED));
  json_object_set_new(out, "fit_seconds", json_real(o->seconds));
  json_object_set_new(out, "candidates", json_integer(o->candidates));
  json_object_set_new(out, "memory_bytes", json_integer(llround(o->memory)));
  json_t *times = json_object();
  for (size_t i = 0; i < c->done; i++) {
    if (&c->row[i] == o || c->row[i].skipped[0]) continue;
    const double seconds = outcome_time_to(o, balanced_score(&c->row[i]));
    json_object_set_new(times, c->row[i].who->name,
                        isfinite(seconds) ? json_real(seconds) : json_null());
  }
  json_object_set_new(out, "seconds_to_quality_of", times);
  return out;
}

static int print_json(tool *t, const comparison *c) {
  json_t *rows = json_array(), *missing = json_array();
  for (size_t i = 0; i < c->done; i++) json_array_append_new(rows, row_json(c, &c->row[i]));
  for (size_t i = c->done; i < c->rows; i++)
    json_array_append_new(missing, json_string(c->row[i].who->name));
  json_t *out =
      json_pack("{s:o, s:o, s:o, s:o, s:b, s:o}", "train", set_json(&c->data.train, false),
                "validation", set_json(&c->data.validation, c->split[1] != NULL), "test",
                set_json(&c->data.test, c->split[0] != NULL), "rows", rows, "interrupted",
                c->done < c->rows, "not_run", missing);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

/* Runs one method after the other until all are done, the user stops it or nobody reads on. */
static int run_rows(tool *t, comparison *c) {
  while (c->done < c->rows && !ferror(stdout)) {
    outcome *row = &c->row[c->done];
    if (contestant_run(t, row->who, &c->data, all_skipped(c), row) == EXIT_INTERRUPTED) {
      cli_error(t->args->command, "interrupted after %zu of %zu methods", c->done, c->rows);
      return EXIT_INTERRUPTED;
    }
    c->done++;
    show_finished(t, c);
  }
  return EXIT_DONE;
}

int cmd_compare(tool *t) {
  comparison c = {.row = calloc(contestant_count, sizeof *c.row)};
  if (!c.row) return tool_out_of_memory(t);
  int code = inputs_check_options(t);
  if (code == EXIT_DONE) code = check_idle(t);
  if (code == EXIT_DONE) code = choose_rows(t, &c);
  if (code == EXIT_DONE) code = open_sets(t, &c);
  if (code == EXIT_DONE) {
    warn_of_few(t, &c);
    code = run_rows(t, &c);
    const bool json = tool_has(t, CLI_OPT_JSON);
    if (code == EXIT_DONE && all_skipped(&c))
      code = tool_error(t, "no method gave a result; %s: %s", c.row[0].who->name, c.row[0].skipped);
    else if (json && print_json(t, &c) != EXIT_DONE)
      code = EXIT_FAILED;
    else if (!json && c.shown > 0)
      print_foot(&c);
  }
  for (size_t i = 0; i < c.rows; i++) outcome_close(&c.row[i]);
  close_sets(&c);
  free(c.row);
  return code;
}
