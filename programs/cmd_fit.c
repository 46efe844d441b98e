/* SPDX-License-Identifier: Apache-2.0 */
/* unicon fit X Y -o MODEL, and from statistics */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balanced.h"
#include "flags.h"
#include "inputs.h"
#include "summed.h"

enum { LEADING = 6, EPOCHS_LOGGED = 511 /* that a model has at most */ };

typedef struct fit_result {
  const inputs *train;
  const unicon_model *model;
  const char *path;
  double seconds;
  double memory; /* bytes */
} fit_result;

/* Rows as they were read; without them, as they were summed. */
static json_t *side_json(const fit_result *result, unicon_side side) {
  const unicon_rows *rows = side == UNICON_X ? result->train->x : result->train->y;
  const char *summed = unicon_model_meta(result->model, side == UNICON_X ? "n_x" : "n_y");
  const json_int_t count = rows ? unicon_rows_count(rows) : summed ? llround(atof(summed)) : 0;
  return json_pack("{s:I, s:I}", "rows", count, "width",
                   (json_int_t)unicon_model_width(result->model, side));
}

static json_int_t pairs_of(const fit_result *result) {
  const char *summed = unicon_model_meta(result->model, "pairs");
  return result->train->pairs ? unicon_pairs_count(result->train->pairs)
         : summed             ? llround(atof(summed))
                              : 0;
}

static int print_json(tool *t, const fit_result *result) {
  json_t *spectrum = json_array(), *metadata = json_object();
  const float *value = unicon_model_spectrum(result->model);
  const int64_t rank = unicon_model_rank(result->model);
  for (int64_t i = 0; i < rank; i++) json_array_append_new(spectrum, json_real((double)value[i]));
  const char *key, *text;
  for (size_t i = 0; unicon_model_meta_at(result->model, i, &key, &text); i++)
    json_object_set_new(metadata, key, json_string(text));
  json_t *out = json_pack("{s:o, s:o, s:o, s:I, s:I, s:f, s:I, s:o, s:o}", "model",
                          display_json_text(result->path), "x", side_json(result, UNICON_X), "y",
                          side_json(result, UNICON_Y), "pairs", pairs_of(result), "rank",
                          (json_int_t)rank, "seconds", result->seconds, "memory_peak",
                          (json_int_t)result->memory, "spectrum", spectrum, "metadata", metadata);
  balanced_json(t->balance, out);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static void print_spectrum(const unicon_model *model) {
  const float *value = unicon_model_spectrum(model);
  const int64_t rank = unicon_model_rank(model);
  fputs("singular values ", stdout);
  for (int64_t i = 0; i < rank && i < LEADING; i++) printf(" %.3g", (double)value[i]);
  if (rank > LEADING) printf(" ... %.3g", (double)value[rank - 1]);
  putchar('\n');
}

/* The command a newcomer would type next, with the same kind of pairs. */
static void print_next(const tool *t, const char *path) {
  fputs("next             unicon eval ", stdout);
  display_word(path);
  fputs(" X.test Y.test", stdout);
  if (tool_has(t, CLI_OPT_Y_PER_X)) printf(" --y-per-x %s", tool_value(t, CLI_OPT_Y_PER_X));
  if (tool_has(t, CLI_OPT_X_PER_Y)) printf(" --x-per-y %s", tool_value(t, CLI_OPT_X_PER_Y));
  if (tool_has(t, CLI_OPT_PAIRS)) fputs(" --pairs FILE", stdout);
  if (tool_has(t, CLI_OPT_ONE_SET))
    fputs(" --x-labels FILE --one-set", stdout);
  else if (tool_has(t, CLI_OPT_X_LABELS))
    fputs(" --x-labels FILE --y-labels FILE", stdout);
  if (tool_has(t, CLI_OPT_FROM)) fputs(" (and how rows belong together)", stdout);
  putchar('\n');
}

/* A score says little where it keeps less than its double, or a tenth of what is above it, from that
 * of a random order. */
static void warn_of_chance(tool *t, double score, double random) {
  char text[256];
  if (score - random >= fmin(random, (1 - random) / 10)) return;
  snprintf(text, sizeof text,
           "the held-out score %.3f is %s chance (%.2g): do rows belong together as given? `unicon "
           "check` tells more",
           score, score > random ? "hardly above" : "not above", random);
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

/* What preset auto chose, and its score on pairs that were held out. */
static void print_choice(tool *t, const unicon_model *model) {
  const char *chosen = unicon_model_meta(model, "auto_chosen");
  const char *score = unicon_model_meta(model, "auto_score");
  const char *folds = unicon_model_meta(model, "auto_folds");
  const char *held_x = unicon_model_meta(model, "auto_held_x");
  const char *held_y = unicon_model_meta(model, "auto_held_y");
  if (!chosen || !score || !folds || !held_x || !held_y) return;
  printf("chosen           %s\n", chosen);
  const double random = display_noted(model, "auto_chance");
  printf("held-out score   %.3f among %s x %s rows (%s split%s): mean of mrr and hit@10",
         atof(score), held_x, held_y, folds, folds[0] == '1' && !folds[1] ? "" : "s");
  if (random > 0) printf("; chance %.2g", random);
  putchar('\n');
  warn_of_chance(t, atof(score), random);
}

/* How many numbers there are, the first and the last. */
static int numbers_of(const unicon_model *model, const char *key, double end[2]) {
  const char *text = unicon_model_meta(model, key);
  char *next = NULL;
  int count = 0;
  for (double value; text; text = next, count++) {
    value = strtod(text, &next);
    if (next == text) break;
    end[count > 0] = value;
    if (count == 0) end[1] = value;
  }
  return count;
}

/* From the first loss to the last; of a model's log that ends before its steps do, the first. */
static void print_losses(const double loss[2], bool whole) {
  if (whole)
    printf(", loss %.5g to %.5g", loss[0], loss[1]);
  else
    printf(", loss %.5g at first", loss[0]);
}

/* What steps and epochs that were asked for have done: a step that does not lower the loss is not
 * taken. A model has the losses of its first steps and epochs. */
static void print_steps(const unicon_model *model) {
  const char *chosen = unicon_model_meta(model, "auto_chosen");
  const double wanted = display_noted(model, "option.iterations"),
               taken = display_noted(model, "steps_taken");
  double loss[2] = {0};
  const int steps = numbers_of(model, "loss_log", loss);
  if (wanted > 0 && steps > 0) {
    printf("iterations       %.0f of %.0f steps", taken, wanted);
    if (taken == 0)
      printf(": none lowers the loss of %.5g\n", loss[0]);
    else {
      print_losses(loss, steps > taken);
      printf("; the model is that of step %.0f\n", display_noted(model, "best_step"));
    }
  }
  const int epochs = numbers_of(model, "refine_loss_log", loss);
  if (epochs > 0 && !(chosen && strstr(chosen, "refine"))) {
    const double asked = display_noted(model, "option.refine");
    const bool whole = epochs < EPOCHS_LOGGED || epochs >= asked;
    printf("refine           %s%d of %.0f epochs", whole ? "" : "at least ", epochs, asked);
    print_losses(loss, whole);
    printf("; the model is that of epoch %.0f\n", display_noted(model, "refine_best_epoch"));
  }
}

/* How the model balances scores, and whether held-out pairs said so. */
static void print_balance(const tool *t, const unicon_model *model) {
  char words[BALANCED_WORDS];
  const bool open = strcmp(unicon_options_get(t->options, "balance"), "auto") == 0;
  const bool tried = unicon_model_meta(model, "auto_folds") ||
                     (tool_has(t, CLI_OPT_VAL_X) && balanced_is_on(t->balance));
  printf("balance          %s%s\n", balanced_words(t->balance, words),
         open && tried ? ", chosen on held-out pairs" : "");
}

/* A side: its rows, how many were dropped, how many have no partner. */
static void print_side(const fit_result *result, unicon_side side) {
  const inputs *in = result->train;
  if (!in->x) {
    const char *n = unicon_model_meta(result->model, side == UNICON_X ? "n_x" : "n_y");
    printf("%c                %s rows of %lld numbers, summed before\n", "xy"[side], n ? n : "",
           (long long)unicon_model_width(result->model, side));
    return;
  }
  const unicon_rows *rows = side == UNICON_X ? in->x : in->y;
  const int64_t count = unicon_rows_count(rows);
  const char *used = unicon_model_meta(result->model, side == UNICON_X ? "n_x" : "n_y");
  const int64_t dropped = used ? count - strtoll(used, NULL, 10) : 0;
  int64_t alone = 0;
  char shape[80];
  for (int64_t i = 0; i < count; i++)
    alone += unicon_pairs_partners(in->pairs, side, i, 0, NULL) == 0;
  printf("%c                %s", "xy"[side],
         display_shape(count, unicon_rows_width(rows), shape, sizeof shape));
  if (dropped > 0) printf(", %lld dropped", (long long)dropped);
  if (alone > 0) printf(", %lld without a partner", (long long)alone);
  putchar('\n');
}

static int print_summary(tool *t, const fit_result *result) {
  const char *pairs = unicon_model_meta(result->model, "pairs");
  char time[32], memory[32];
  print_side(result, UNICON_X);
  print_side(result, UNICON_Y);
  printf("pairs            %s\n", pairs ? pairs : "");
  printf("rank             %lld\n", (long long)unicon_model_rank(result->model));
  print_spectrum(result->model);
  print_steps(result->model);
  print_choice(t, result->model);
  print_balance(t, result->model);
  printf("time             %s, %s of memory at most\n",
         display_time(result->seconds, time, sizeof time),
         display_bytes(result->memory, memory, sizeof memory));
  printf("model            %s\n", result->path);
  print_next(t, result->path);
  return EXIT_DONE;
}

/* How much memory the whole fit may take; 0 where that cannot be said. */
static double planned(tool *t, const unicon_data *data, const unicon_stats *stats) {
  unicon_result *plan = NULL;
  const unicon_status status = stats ? unicon_stats_plan(t->ctx, stats, t->options, &plan)
                                     : unicon_plan(t->ctx, data, t->options, &plan);
  const double bytes = status == UNICON_OK ? display_number(plan, "", "memory_least") : 0;
  unicon_result_destroy(plan);
  return bytes;
}

/* The library knows what the next step lacks; here is what all of them take. */
static int fail(tool *t, unicon_status status, const unicon_data *data, const unicon_stats *stats) {
  char error[512], text[512], bytes[32];
  if (status != UNICON_ERR_MEMORY) return tool_fail(t, status);
  snprintf(error, sizeof error, "%s", unicon_ctx_error(t->ctx));
  const double memory = planned(t, data, stats);
  flags_in(t->args, error, text, sizeof text);
  if (!(memory > 0)) return tool_error(t, "%s", text);
  return tool_error(t, "%s; the whole fit may take %s: `unicon plan` says what to change", text,
                    display_bytes(memory, bytes, sizeof bytes));
}

/* Fits on rows, or where there are statistics from these. */
static int fit_and_save(tool *t, const inputs *train, const unicon_stats *stats,
                        const inputs *validation) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_data data = UNICON_DATA(.x = train->x, .y = train->y, .pairs = train->pairs,
                                       .groups = unicon_labels_numbers(train->groups, 0));
  const unicon_data held_out =
      UNICON_DATA(.x = validation->x, .y = validation->y, .pairs = validation->pairs);
  unicon_model *model = NULL;
  int code = tool_agree(t, EXIT_DONE);
  if (code != EXIT_DONE) return code;
  const double start = display_now();
  const unicon_data *held = validation->x ? &held_out : NULL;
  unicon_status status = stats ? unicon_stats_fit(t->ctx, stats, held, t->options, &model)
                               : unicon_fit(t->ctx, &data, held, t->options, &model);
  const double seconds = display_now() - start;
  if (status == UNICON_OK && display_interrupted()) code = tool_interrupted(t);
  if (status == UNICON_OK) code = tool_agree(t, code);
  if (status == UNICON_OK && code == EXIT_DONE && tool_writes(t))
    status = unicon_model_save(t->ctx, model, path);
  if (status == UNICON_OK && code == EXIT_DONE)
    status = unicon_balance_create(t->ctx, model, NULL, NULL, NULL, &t->balance);
  display_clear(&t->display);
  if (status != UNICON_OK) code = fail(t, status, &data, stats);
  code = tool_agree(t, code);
  if (code == EXIT_DONE) {
    const fit_result result = {train, model, path, seconds, (double)unicon_ctx_memory_peak(t->ctx)};
    code = tool_has(t, CLI_OPT_JSON) ? print_json(t, &result) : print_summary(t, &result);
  }
  unicon_model_destroy(model);
  return code;
}

/* Files given twice by a slip: the fit would be perfect, and its score say nothing. */
static void warn_of_twins(tool *t, const char *x, const char *y) {
  const char *val_x = tool_value(t, CLI_OPT_VAL_X), *val_y = tool_value(t, CLI_OPT_VAL_Y);
  const bool paired = tool_has(t, CLI_OPT_PAIRS) || tool_has(t, CLI_OPT_X_LABELS);
  if (x && y && !paired && inputs_same(x, y))
    display_log(&t->display, UNICON_LOG_WARNING,
                "X and Y are one file: each row is aligned with itself");
  if (x && y && val_x && val_y && inputs_same(x, val_x) && inputs_same(y, val_y))
    display_log(&t->display, UNICON_LOG_WARNING,
                "the validation rows are the training rows: what is chosen on them fits these rows "
                "alone, and the held-out score says nothing");
}

int cmd_fit(tool *t) {
  const char *x = t->args->positional[0], *y = t->args->positional[1];
  const char *val_x = tool_value(t, CLI_OPT_VAL_X), *val_y = tool_value(t, CLI_OPT_VAL_Y);
  inputs train = {0}, validation = {0};
  unicon_stats *stats = NULL;
  int code = summed_check_sources(t);
  if (code != EXIT_DONE) return code;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the model goes: -o MODEL.safetensors");
  code = inputs_check_options(t);
  if (code == EXIT_DONE) code = inputs_check_model_output(t, tool_value(t, CLI_OPT_OUTPUT));
  if (code == EXIT_DONE)
    code = x ? inputs_open(t, x, y, INPUTS_MAIN, &train)
             : summed_open(t, tool_value(t, CLI_OPT_FROM), &stats);
  if (code == EXIT_DONE && val_x)
    code = inputs_open(t, val_x, val_y, INPUTS_VALIDATION, &validation);
  if (code == EXIT_DONE) {
    inputs_warn_model_name(t, tool_value(t, CLI_OPT_OUTPUT));
    warn_of_twins(t, x, y);
    code = fit_and_save(t, &train, stats, &validation);
  }
  unicon_stats_destroy(stats);
  inputs_close(&validation);
  inputs_close(&train);
  return code;
}
