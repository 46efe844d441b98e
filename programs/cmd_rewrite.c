/* SPDX-License-Identifier: Apache-2.0 */
/* unicon rewrite MODEL INDEX -o OUT.npy|FOLDER */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inputs.h"
#include "moving.h"
#include "shards.h"
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

/* What a call of the library has come to. */
static int settle(tool *t, unicon_status status, const char *path) {
  display_part(&t->display, NULL, 0, 0);
  display_clear(&t->display);
  if (status == UNICON_OK) return EXIT_DONE;
  if (status != UNICON_ERR_CANCELLED || tool_has(t, CLI_OPT_CHECK)) return tool_fail(t, status);
  cli_error(t->args->command, "interrupted; the same command goes on from %s.part", path);
  return EXIT_INTERRUPTED;
}

/* One file, written or only checked. */
static int one_file(tool *t, const unicon_view *view, int64_t first, int64_t count,
                    const char *path, progress *p) {
  const double all = (double)unicon_rows_count(view->rows);
  const unicon_form form = moving_index_form(view->model);
  int64_t there = 0;
  unicon_status status = UNICON_OK;
  display_part(&t->display, "rewrite", (double)first / all, (double)count / all);
  if (!tool_has(t, CLI_OPT_CHECK))
    status =
        unicon_rewrite(t->ctx, view, first, count, form, dtype_of(t), path, t->options, &there);
  if (status == UNICON_OK && (tool_has(t, CLI_OPT_CHECK) || there == count))
    status = unicon_rewrite_check(t->ctx, view, first, count, form, path);
  const int code = settle(t, status, path);
  if (code != EXIT_DONE) return code;
  p->rows += count;
  p->there += there;
  p->files++;
  return EXIT_DONE;
}

/* ---- shards ------------------------------------------------------------------------------- */

static int one_shard(tool *t, const unicon_view *view, int64_t first, int64_t count,
                     const char *path, progress *p) {
  const bool check = tool_has(t, CLI_OPT_CHECK);
  if (check && access(path, F_OK) != 0)
    return tool_error(
        t,
        "%s, which begins with row %lld, is not there; run the command without --check "
        "to continue",
        path, (long long)first);
  const int code = check ? EXIT_DONE : inputs_check_output(t, path);
  return code == EXIT_DONE ? one_file(t, view, first, count, path, p) : code;
}

/* Shards 0.npy, 1.npy, ...: written, of `each` rows, or checked, of as many as they have. */
static int walk_shards(tool *t, const unicon_view *view, const char *folder, int64_t each,
                       progress *p) {
  const int64_t count = unicon_rows_count(view->rows);
  int code = EXIT_DONE;
  while (code == EXIT_DONE && p->rows < count) {
    const int64_t left = count - p->rows;
    char *path = shards_path(folder, p->files, "");
    if (!path) return tool_out_of_memory(t);
    const int64_t rows = tool_has(t, CLI_OPT_CHECK) ? shards_rows(path, left)
                         : left < each              ? left
                                                    : each;
    code = one_shard(t, view, p->rows, rows, path, p);
    free(path);
  }
  return code == EXIT_DONE ? shards_refuse_others(t, folder, p->files) : code;
}

static int many_files(tool *t, const unicon_view *view, const char *folder, progress *p) {
  const bool check = tool_has(t, CLI_OPT_CHECK);
  int64_t each = 0;
  int code = cli_integer(t->args, CLI_OPT_SHARD_ROWS, 1, INT64_MAX, &each);
  if (code == EXIT_DONE && !check && mkdir(folder, 0777) != 0 && errno != EEXIST)
    code = tool_error(t, "cannot make the folder %s: %s", folder, strerror(errno));
  if (code == EXIT_DONE && (!check || tool_has(t, CLI_OPT_SHARD_ROWS)))
    code = shards_check_room(t, folder, unicon_rows_count(view->rows), each);
  return code == EXIT_DONE ? walk_shards(t, view, folder, each, p) : code;
}

/* ---- the command -------------------------------------------------------------------------- */

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

/* Is a name that does not end in .npy one of a folder? One that ends in another suffix is rather a
 * slip, unless the folder is there or the name ends in a slash. */
static bool is_folder(const char *path) {
  struct stat about;
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const char *name = slash ? slash + 1 : path;
  return !dot || dot <= name || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

static int rewrite(tool *t, const unicon_view *view) {
  const char *path = tool_value(t, CLI_OPT_OUTPUT);
  const cli_command *command = t->args->command;
  progress p = {0};
  int code;
  if (is_npy(path)) {
    if (tool_has(t, CLI_OPT_SHARD_ROWS))
      return cli_error(command, "--shard-rows is for a folder, but %s is a file", path);
    code = inputs_check_output(t, path);
    if (code == EXIT_DONE) code = one_file(t, view, 0, unicon_rows_count(view->rows), path, &p);
  } else if (is_folder(path)) {
    code = many_files(t, view, path, &p);
  } else {
    return cli_error(command,
                     "%s is neither an .npy file nor a folder: end the name in .npy for one file, "
                     "or in / for a folder of shards",
                     path);
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
  if (code == EXIT_DONE && !tool_has(t, CLI_OPT_CHECK)) moving_warn_keep(t, model, path[0]);
  if (code == EXIT_DONE)
    code = rewrite(t, &UNICON_VIEW(.rows = rows, .model = model, .side = UNICON_X));
  unicon_rows_close(rows);
  unicon_model_destroy(model);
  return code;
}
