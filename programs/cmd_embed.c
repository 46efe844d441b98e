/* SPDX-License-Identifier: Apache-2.0 */
/* unicon embed MODEL --side x|y ROWS -o OUT */
#include <stdlib.h>
#include <string.h>

#include "balanced.h"
#include "inputs.h"
#include "moving.h"
#include "unicon/migrate.h"
#include "usable.h"

enum {
  BLOCK_FLOATS = 1 << 21, /* 8 MB of embedded rows at a time, */
  TILE_ROWS = 256,        /* a multiple of what the library embeds at once: as search has them */
  DROPPED_SAID = 10,      /* rows left out that are named, */
  DROPPED_JSON = 1000     /* and with --json */
};

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* What the rows are to look like, and its name. */
static unicon_form form_of(const tool *t) {
  const bool index = tool_has(t, CLI_OPT_INDEX), query = tool_has(t, CLI_OPT_QUERY);
  if (index) return tool_value(t, CLI_OPT_INDEX) ? UNICON_FORM_INDEX_COSINE : UNICON_FORM_INDEX;
  if (query) return tool_value(t, CLI_OPT_QUERY) ? UNICON_FORM_QUERY_COSINE : UNICON_FORM_QUERY;
  return tool_has(t, CLI_OPT_NO_UNIT) ? UNICON_FORM_RAW : UNICON_FORM_UNIT;
}

static const char *form_name(unicon_form form) {
  static const char *const name[] = {"raw",   "unit",         "query",
                                     "index", "query cosine", "index cosine"};
  return name[form];
}

static int64_t width_of(const tool *t, const unicon_view *view) {
  return unicon_form_width(unicon_model_rank(view->model), form_of(t));
}

/* Embeds block by block into the writer. */
static int stream_rows(tool *t, const unicon_view *view, unicon_writer *writer) {
  const int64_t count = unicon_rows_count(view->rows), width = width_of(t, view);
  const int64_t fit = BLOCK_FLOATS / width / TILE_ROWS * TILE_ROWS;
  const int64_t block = fit > TILE_ROWS ? fit : TILE_ROWS;
  float *out = malloc((size_t)(smaller(block, count) * width + 1) * sizeof *out);
  if (!out) return tool_out_of_memory(t);
  int code = EXIT_DONE;
  for (int64_t first = 0; first < count && code == EXIT_DONE; first += block) {
    const int64_t now = smaller(block, count - first);
    const double share = 1 / (double)count;
    display_part(&t->display, "embed", (double)first * share, (double)now * share);
    unicon_status status = unicon_embed(t->ctx, view, first, now, form_of(t), out);
    if (status == UNICON_OK) status = unicon_writer_append(t->ctx, writer, out, now);
    if (status != UNICON_OK)
      code = usable_fail(t, status, view, 1);
    else if (display_progress(&t->display, "embed", 1, 0))
      code = tool_interrupted(t);
  }
  display_part(&t->display, NULL, 0, 0);
  free(out);
  return code;
}

/* "rows 3, 7, ... of FILE are not in OUT", a warning. */
static void say_dropped(tool *t, const usable *left, const char *path) {
  int64_t number[DROPPED_SAID];
  char text[1024];
  const int64_t count = usable_dropped(left, DROPPED_SAID, number);
  if (count == 0) return;
  int at = snprintf(text, sizeof text, "row%s", count > 1 ? "s" : "");
  for (int64_t k = 0; k < count; k++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", k ? ", " : " ",
                   (long long)number[k]);
  snprintf(text + at, sizeof text - (size_t)at, "%s of %.400s %s not in %.400s",
           left->total - left->count > count ? " and others" : "", t->args->positional[1],
           count > 1 ? "are" : "is", path);
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

static json_t *dropped_json(const usable *left) {
  json_t *first = json_array();
  int64_t *number = calloc(DROPPED_JSON, sizeof *number);
  const int64_t count = number ? usable_dropped(left, DROPPED_JSON, number) : 0;
  for (int64_t k = 0; k < count; k++)
    json_array_append_new(first, json_integer((json_int_t)number[k]));
  free(number);
  return json_pack("{s:I, s:o}", "count", (json_int_t)(left->total - left->count), "first", first);
}

/* Plain vectors of a model that balances scores lack the biases. */
static void say_plain(tool *t, const char *path) {
  char text[512];
  if (form_of(t) != UNICON_FORM_UNIT || !balanced_is_on(t->balance)) return;
  snprintf(text, sizeof text,
           "the rows of %.200s leave out the biases that `unicon search` ranks with (balance %s): "
           "for an index write the rows to be searched with --index and the queries with --query",
           path, unicon_balance_text(t->balance));
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

static int print_result(tool *t, const unicon_view *view, const usable *left, const char *path) {
  const int64_t rows = unicon_rows_count(view->rows), width = width_of(t, view);
  say_dropped(t, left, path);
  say_plain(t, path);
  if (!tool_has(t, CLI_OPT_JSON)) {
    char shape[80];
    printf("%s in %s\n", display_shape(rows, width, shape, sizeof shape), path);
    return EXIT_DONE;
  }
  json_t *out =
      json_pack("{s:o, s:I, s:I, s:s, s:b, s:s, s:s}", "output", display_json_text(path), "rows",
                (json_int_t)rows, "width", (json_int_t)width, "dtype", tool_value(t, CLI_OPT_DTYPE),
                "unit", !tool_has(t, CLI_OPT_NO_UNIT), "form", form_name(form_of(t)), "balance",
                unicon_balance_text(t->balance));
  if (usable_wanted(t)) json_object_set_new(out, "dropped", dropped_json(left));
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int embed_file(tool *t, const unicon_view *view, const usable *left) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_file_dtype dtype =
      strcmp(tool_value(t, CLI_OPT_DTYPE), "f2") == 0 ? UNICON_WRITE_F16 : UNICON_WRITE_F32;
  unicon_writer *writer = NULL;
  unicon_status status = unicon_writer_open(t->ctx, path, dtype, unicon_rows_count(view->rows),
                                            width_of(t, view), &writer);
  if (status != UNICON_OK) return tool_fail(t, status);
  const int code = stream_rows(t, view, writer);
  display_clear(&t->display);
  if (code != EXIT_DONE) {
    unicon_writer_discard(writer);
    return code;
  }
  status = unicon_writer_commit(t->ctx, writer);
  return status == UNICON_OK ? print_result(t, view, left, path) : tool_fail(t, status);
}

static int check_form(tool *t) {
  const bool index = tool_has(t, CLI_OPT_INDEX), query = tool_has(t, CLI_OPT_QUERY);
  if (index && query)
    return cli_error(t->args->command,
                     "rows are either searched or queries: give --index or --query, not both");
  if ((index || query) && tool_has(t, CLI_OPT_NO_UNIT))
    return cli_error(t->args->command,
                     "--%s is made for rows of length 1; it cannot go with --no-unit",
                     index ? "index" : "query");
  return EXIT_DONE;
}

/* A model of a migration leads into one space; the rows that move are those of the other side. */
static int take_direction(tool *t, const unicon_model *model, unicon_view *view) {
  const char *into = tool_value(t, CLI_OPT_INTO), *space = moving_space(model);
  const char *side = tool_value(t, CLI_OPT_SIDE), *path = t->args->positional[0];
  view->side = side && strcmp(side, "y") == 0 ? UNICON_Y : UNICON_X;
  if (!space && cli_sets(t->args, "trust"))
    display_idle(&t->display, "trust", "with a model that `unicon migrate` did not make");
  if (!into) return space ? moving_check_rows(t, model, view->side, view->rows) : EXIT_DONE;
  if (!space) return moving_refuse_other(t, model, path);
  if (strcmp(into, space) != 0)
    return tool_error(t,
                      "%s leads into the %s space, not into the %s one; `unicon migrate --into "
                      "%s` makes a model that does",
                      path, space, into, into);
  if (!side && strcmp(space, "shared") == 0)
    return cli_error(t->args->command,
                     "say which model the rows are of: --side x (old) or --side y (new)");
  if (!side) view->side = strcmp(space, "old") == 0 ? UNICON_Y : UNICON_X;
  const int code = moving_refuse_moved(t, model, t->args->positional[1]);
  return code == EXIT_DONE ? moving_check_rows(t, model, view->side, view->rows) : code;
}

/* With --into: the file says where its vectors lie. */
static int embed_into(tool *t, const unicon_view *view, const usable *left) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_dtype dtype =
      strcmp(tool_value(t, CLI_OPT_DTYPE), "f2") == 0 ? UNICON_F16 : UNICON_F32;
  const unicon_status status = unicon_rewrite(t->ctx, view, 0, unicon_rows_count(view->rows),
                                              form_of(t), dtype, path, t->options, NULL);
  display_clear(&t->display);
  return status == UNICON_OK ? print_result(t, view, left, path) : usable_fail(t, status, view, 1);
}

int cmd_embed(tool *t) {
  static const cli_id bank[2] = {CLI_OPT_BANK_X, CLI_OPT_BANK_Y};
  const char *const *path = t->args->positional;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the embedded rows go: -o OUT.npy");
  if (!tool_has(t, CLI_OPT_SIDE) && !tool_has(t, CLI_OPT_INTO))
    return cli_usage_error(t->args->command,
                           "say which side the rows belong to: --side x or --side y");
  int code = check_form(t);
  for (int k = 0; k < 2 && code == EXIT_DONE; k++)
    if (tool_has(t, bank[k]) && !tool_has(t, CLI_OPT_INDEX))
      display_idle(&t->display, cli_name(bank[k]), "without --index");
  if (code == EXIT_DONE) code = inputs_check_matrix_output(t, tool_value(t, CLI_OPT_OUTPUT));
  if (code != EXIT_DONE) return code;
  unicon_model *model = NULL;
  unicon_rows *rows = NULL;
  unicon_status status = unicon_model_load(t->ctx, path[0], &model);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[1], &rows);
  if (status == UNICON_OK) {
    unicon_view view = UNICON_VIEW(.rows = rows, .model = model);
    usable left = {0};
    code = take_direction(t, model, &view);
    if (code == EXIT_DONE) code = balanced_open(t, model);
    view.balance = t->balance;
    if (code == EXIT_DONE) code = usable_open(t, &view, &left);
    if (code == EXIT_DONE)
      code = tool_has(t, CLI_OPT_INTO) ? embed_into(t, &view, &left) : embed_file(t, &view, &left);
    usable_close(&left);
  } else {
    code = tool_fail(t, status);
  }
  unicon_rows_close(rows);
  unicon_model_destroy(model);
  return code;
}
