/* SPDX-License-Identifier: Apache-2.0 */
/* unicon rewrite MODEL INDEX -o OUT.npy|FOLDER */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "inputs.h"
#include "moving.h"
#include "unicon/migrate.h"

/* What has been done. */
typedef struct progress {
  int64_t rows, there; /* in all, and how many were there already */
  int64_t files;
} progress;

static bool is_npy(const char *path) {
  const size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

static unicon_dtype dtype_of(const tool *t) {
  return strcmp(tool_value(t, CLI_OPT_DTYPE), "f2") == 0 ? UNICON_F16 : UNICON_F32;
}

/* One file, written or only checked. */
static int one_file(tool *t, const unicon_view *view, int64_t first, int64_t count,
                    const char *path, progress *p) {
  const double all = (double)unicon_rows_count(view->rows);
  display_part(&t->display, "rewrite", (double)first / all, (double)count / all);
  int64_t there = 0;
  unicon_status status = UNICON_OK;
  if (!tool_has(t, CLI_OPT_CHECK))
    status = unicon_rewrite(t->ctx, view, first, count, moving_index_form(view->model), dtype_of(t),
                            path, t->options, &there);
  if (status == UNICON_OK && (tool_has(t, CLI_OPT_CHECK) || there == count))
    status = unicon_vectors_check(t->ctx, path);
  display_part(&t->display, NULL, 0, 0);
  display_clear(&t->display);
  if (status == UNICON_ERR_CANCELLED) {
    cli_error(t->args->command, "interrupted; the same command goes on from %s.part", path);
    return EXIT_INTERRUPTED;
  }
  if (status != UNICON_OK) return tool_fail(t, status);
  p->rows += count;
  p->there += there;
  p->files++;
  return EXIT_DONE;
}

/* Shards 0.npy, 1.npy, ... of so many rows each. */
static int many_files(tool *t, const unicon_view *view, const char *folder, int64_t rows,
                      progress *p) {
  const int64_t count = unicon_rows_count(view->rows);
  const size_t room = strlen(folder) + 32;
  char *path = malloc(room);
  int code = path ? EXIT_DONE : tool_out_of_memory(t);
  if (path && !tool_has(t, CLI_OPT_CHECK) && mkdir(folder, 0777) != 0 && errno != EEXIST)
    code = tool_error(t, "cannot make the folder %s: %s", folder, strerror(errno));
  for (int64_t k = 0; code == EXIT_DONE && k * rows < count; k++) {
    const int64_t left = count - k * rows;
    snprintf(path, room, "%s/%lld.npy", folder, (long long)k);
    code = inputs_check_output(t, path);
    if (code == EXIT_DONE) code = one_file(t, view, k * rows, left < rows ? left : rows, path, p);
  }
  free(path);
  return code;
}

static int print_result(tool *t, const unicon_view *view, const char *path, const progress *p) {
  const int64_t width =
      unicon_form_width(unicon_model_rank(view->model), moving_index_form(view->model));
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:s, s:b}", "output", display_json_text(path), "rows",
                  (json_int_t)p->rows, "width", (json_int_t)width, "files", (json_int_t)p->files,
                  "there_already", (json_int_t)p->there, "space", moving_space(view->model),
                  "checked", tool_has(t, CLI_OPT_CHECK) || p->there == p->rows);
    return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  }
  if (tool_has(t, CLI_OPT_CHECK))
    printf("%lld rows of %lld numbers in %s are what was written\n", (long long)p->rows,
           (long long)width, path);
  else
    printf("%lld rows of %lld numbers of the %s space in %s%s\n", (long long)p->rows,
           (long long)width, moving_space(view->model), path,
           p->there == p->rows ? ", finished before and checked" : "");
  if (p->there > 0 && p->there < p->rows)
    printf("%lld of them were there already\n", (long long)p->there);
  return EXIT_DONE;
}

static int rewrite(tool *t, const unicon_view *view) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  progress p = {0};
  int64_t shard = 0;
  int code = cli_integer(t->args, CLI_OPT_SHARD_ROWS, 1, INT64_MAX, &shard);
  if (code == EXIT_DONE && is_npy(path)) {
    if (tool_has(t, CLI_OPT_SHARD_ROWS))
      return cli_error(t->args->command, "--shard-rows is for a folder, but %s is a file", path);
    code = inputs_check_output(t, path);
    if (code == EXIT_DONE) code = one_file(t, view, 0, unicon_rows_count(view->rows), path, &p);
  } else if (code == EXIT_DONE) {
    code = many_files(t, view, path, shard, &p);
  }
  return code == EXIT_DONE ? print_result(t, view, path, &p) : code;
}

int cmd_rewrite(tool *t) {
  const char *const *path = t->args->positional;
  unicon_model *model = NULL;
  unicon_rows *rows = NULL;
  int code = EXIT_DONE;
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say where the rewritten rows go: -o NEW.npy");
  unicon_status status = unicon_model_load(t->ctx, path[0], &model);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[1], &rows);
  if (status != UNICON_OK) code = tool_fail(t, status);
  if (code == EXIT_DONE) code = moving_refuse_other(t, model, path[0]);
  if (code == EXIT_DONE && strcmp(moving_space(model), "old") == 0)
    code = tool_error(t,
                      "%s maps new queries into the old index: the index stays as it is, and "
                      "`unicon embed --into old` is for the queries",
                      path[0]);
  if (code == EXIT_DONE) code = moving_refuse_moved(t, model, path[1]);
  if (code == EXIT_DONE)
    code = rewrite(t, &UNICON_VIEW(.rows = rows, .model = model, .side = UNICON_X));
  unicon_rows_close(rows);
  unicon_model_destroy(model);
  return code;
}
