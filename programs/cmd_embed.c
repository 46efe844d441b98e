/* SPDX-License-Identifier: Apache-2.0 */
/* unicon embed MODEL --side x|y ROWS -o OUT */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "usable.h"

enum {
  BLOCK_FLOATS = 1 << 21, /* 8 MB of embedded rows at a time */
  DROPPED_SAID = 10,      /* rows left out that are named, */
  DROPPED_JSON = 1000     /* and with --json */
};

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Embeds block by block into the writer. */
static int stream_rows(tool *t, const unicon_view *view, unicon_writer *writer) {
  const int64_t count = unicon_rows_count(view->rows), rank = unicon_model_rank(view->model);
  const int64_t block = rank < BLOCK_FLOATS ? BLOCK_FLOATS / rank : 1;
  const int unit = !tool_has(t, CLI_OPT_NO_UNIT);
  float *out = malloc((size_t)(smaller(block, count) * rank + 1) * sizeof *out);
  if (!out) return tool_out_of_memory(t);
  int code = EXIT_DONE;
  for (int64_t first = 0; first < count && code == EXIT_DONE; first += block) {
    const int64_t now = smaller(block, count - first);
    const double share = 1 / (double)count;
    display_part(&t->display, "embed", (double)first * share, (double)now * share);
    unicon_status status = unicon_embed(t->ctx, view, first, now, unit, out);
    if (status == UNICON_OK) status = unicon_writer_append(t->ctx, writer, out, now);
    if (status != UNICON_OK)
      code = tool_fail(t, status);
    else if (display_progress(&t->display, "embed", 1))
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

static int print_result(tool *t, const unicon_view *view, const usable *left, const char *path) {
  const int64_t rows = unicon_rows_count(view->rows), rank = unicon_model_rank(view->model);
  say_dropped(t, left, path);
  if (!tool_has(t, CLI_OPT_JSON)) {
    printf("%lld rows of %lld numbers in %s\n", (long long)rows, (long long)rank, path);
    return EXIT_DONE;
  }
  json_t *out = json_pack("{s:o, s:I, s:I, s:s, s:b}", "output", display_json_text(path), "rows",
                          (json_int_t)rows, "width", (json_int_t)rank, "dtype",
                          tool_value(t, CLI_OPT_DTYPE), "unit", !tool_has(t, CLI_OPT_NO_UNIT));
  if (usable_wanted(t)) json_object_set_new(out, "dropped", dropped_json(left));
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static int embed_file(tool *t, const unicon_view *view, const usable *left) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const unicon_file_dtype dtype =
      strcmp(tool_value(t, CLI_OPT_DTYPE), "f2") == 0 ? UNICON_WRITE_F16 : UNICON_WRITE_F32;
  unicon_writer *writer = NULL;
  unicon_status status = unicon_writer_open(t->ctx, path, dtype, unicon_rows_count(view->rows),
                                            unicon_model_rank(view->model), &writer);
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

int cmd_embed(tool *t) {
  const char *const *path = t->args->positional;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the embedded rows go: -o OUT.npy");
  if (!tool_has(t, CLI_OPT_SIDE))
    return cli_usage_error(t->args->command,
                           "say which side the rows belong to: --side x or --side y");
  int code = inputs_check_output(t, tool_value(t, CLI_OPT_OUTPUT));
  if (code != EXIT_DONE) return code;
  unicon_model *model = NULL;
  unicon_rows *rows = NULL;
  unicon_status status = unicon_model_load(t->ctx, path[0], &model);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[1], &rows);
  if (status == UNICON_OK) {
    const bool y = strcmp(tool_value(t, CLI_OPT_SIDE), "y") == 0;
    unicon_view view = {.rows = rows, .model = model, .side = y ? UNICON_Y : UNICON_X};
    usable left = {0};
    code = usable_open(t, &view, &left);
    if (code == EXIT_DONE) code = embed_file(t, &view, &left);
    usable_close(&left);
  } else {
    code = tool_fail(t, status);
  }
  unicon_rows_close(rows);
  unicon_model_destroy(model);
  return code;
}
