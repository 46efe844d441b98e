/* SPDX-License-Identifier: Apache-2.0 */
/* unicon synth linear|nonlinear -o DIR */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

enum { FILES = 3, MOST_ROWS = 4096, MOST_NUMBERS = 1 << 22 }; /* of a block */

/* x, y and label of one part, in this order. */
typedef struct part {
  const char *name;
  int64_t first, count;
  unicon_writer *writer[FILES];
} part;

typedef struct synth_plan {
  const char *kind, *folder;
  int64_t width[FILES];
  int64_t block; /* rows made at a time */
  part part[2];
} synth_plan;

static const char *const file_name[FILES] = {"x", "y", "label"};

/* A size: the table has 1 as the least. */
static int64_t option_size(const tool *t, const char *name) {
  const char *text = unicon_options_get(t->options, name);
  const long long value = text ? strtoll(text, NULL, 10) : 0;
  return value < 1 ? 1 : value;
}

static char *path_of(const char *folder, const char *file, const char *part_name) {
  const size_t size = strlen(folder) + 32;
  char *path = malloc(size);
  if (path) snprintf(path, size, "%s/%s.%s.npy", folder, file, part_name);
  return path;
}

static int open_part(tool *t, const synth_plan *plan, part *p) {
  for (int f = 0; f < FILES; f++) {
    char *path = path_of(plan->folder, file_name[f], p->name);
    if (!path) return tool_out_of_memory(t);
    const unicon_status status =
        unicon_writer_open(t->ctx, path, f == 2 ? UNICON_WRITE_I64 : UNICON_WRITE_F32, p->count,
                           plan->width[f], &p->writer[f]);
    free(path);
    if (status != UNICON_OK) return tool_fail(t, status);
  }
  return EXIT_DONE;
}

static int fill_part(tool *t, const synth_plan *plan, part *p, float *x, float *y, int64_t *label) {
  for (int64_t done = 0; done < p->count; done += plan->block) {
    const int64_t now = p->count - done < plan->block ? p->count - done : plan->block;
    unicon_status status =
        unicon_synth(t->ctx, plan->kind, t->options, p->first + done, now, x, y, label);
    const void *const rows[FILES] = {x, y, label};
    for (int f = 0; f < FILES && status == UNICON_OK; f++)
      status = unicon_writer_append(t->ctx, p->writer[f], rows[f], now);
    if (status != UNICON_OK) return tool_fail(t, status);
    if (display_progress(&t->display, p->name, (double)(done + now) / (double)p->count, -1))
      return tool_interrupted(t);
  }
  return EXIT_DONE;
}

static int fill_parts(tool *t, synth_plan *plan) {
  const size_t block = (size_t)plan->block;
  float *x = malloc(sizeof *x * block * (size_t)plan->width[0]);
  float *y = malloc(sizeof *y * block * (size_t)plan->width[1]);
  int64_t *label = malloc(sizeof *label * block);
  int code = x && y && label ? EXIT_DONE : tool_out_of_memory(t);
  for (int i = 0; i < 2 && code == EXIT_DONE; i++) code = open_part(t, plan, &plan->part[i]);
  for (int i = 0; i < 2 && code == EXIT_DONE; i++)
    code = fill_part(t, plan, &plan->part[i], x, y, label);
  free(x);
  free(y);
  free(label);
  return code;
}

/* Names all files when everything went well, drops them otherwise. */
static int commit_parts(tool *t, synth_plan *plan, int code) {
  for (int i = 0; i < 2 * FILES; i++) {
    unicon_writer *writer = plan->part[i / FILES].writer[i % FILES];
    if (!writer) continue;
    if (code != EXIT_DONE) {
      unicon_writer_discard(writer);
      continue;
    }
    const unicon_status status = unicon_writer_commit(t->ctx, writer);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  return code;
}

static int print_result(tool *t, const synth_plan *plan) {
  const long long train = plan->part[0].count, test = plan->part[1].count;
  const char *folder = plan->folder;
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:I}", "kind", plan->kind, "folder",
                  display_json_text(folder), "train", (json_int_t)train, "test", (json_int_t)test,
                  "x_width", (json_int_t)plan->width[0], "y_width", (json_int_t)plan->width[1]);
    return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  }
  printf("%lld training and %lld test pairs in %s: x, y and label, .train.npy and .test.npy\n",
         train, test, folder);
  printf("next  unicon fit %s/x.train.npy %s/y.train.npy -o %s/model.safetensors\n", folder, folder,
         folder);
  return EXIT_DONE;
}

/* Refuses an unknown kind or contradicting options before anything is made. */
static int try_options(tool *t, const synth_plan *plan) {
  float *x = malloc(sizeof *x * (size_t)plan->width[0]);
  float *y = malloc(sizeof *y * (size_t)plan->width[1]);
  int64_t label = 0;
  int code = EXIT_DONE;
  if (!x || !y) {
    code = tool_out_of_memory(t);
  } else {
    const unicon_status status = unicon_synth(t->ctx, plan->kind, t->options, 0, 1, x, y, &label);
    if (status != UNICON_OK) code = tool_fail(t, status);
  }
  free(x);
  free(y);
  return code;
}

int cmd_synth(tool *t) {
  if (!tool_has(t, CLI_OPT_OUTPUT))
    return cli_usage_error(t->args->command, "say which folder the files go to: -o DIR");
  synth_plan plan = {.kind = t->args->positional[0], .folder = tool_value(t, CLI_OPT_OUTPUT)};
  int64_t train = 0, test = 0;
  int code = cli_integer(t->args, CLI_OPT_TRAIN, 1, 1000000000000, &train);
  if (code == EXIT_DONE) code = cli_integer(t->args, CLI_OPT_TEST, 1, 1000000000000, &test);
  if (code != EXIT_DONE) return code;
  plan.part[0] = (part){"train", 0, train, {NULL}};
  plan.part[1] = (part){"test", train, test, {NULL}};
  plan.width[0] = option_size(t, "dim_x");
  plan.width[1] = option_size(t, "dim_y");
  plan.width[2] = 1;
  plan.block = MOST_NUMBERS / (plan.width[0] + plan.width[1]);
  plan.block = plan.block < 1 ? 1 : plan.block > MOST_ROWS ? MOST_ROWS : plan.block;
  code = try_options(t, &plan);
  if (code != EXIT_DONE) return code;
  const bool made = mkdir(plan.folder, 0777) == 0;
  if (!made && errno != EEXIST)
    return tool_error(t, "cannot make the folder %s: %s", plan.folder, strerror(errno));
  code = commit_parts(t, &plan, fill_parts(t, &plan));
  display_clear(&t->display);
  if (code == EXIT_DONE) return print_result(t, &plan);
  if (made) rmdir(plan.folder);
  return code;
}
