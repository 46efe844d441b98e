/* SPDX-License-Identifier: Apache-2.0 */
/* unicon synth KIND -o DIR */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

enum { FILES = 3, PARTS = 3, MOST_ROWS = 4096, MOST_NUMBERS = 1 << 22 }; /* of a block */

/* x, y and label of one part, in this order. */
typedef struct part {
  const char *name;
  int64_t rows; /* 0: left out */
  unicon_writer *writer[FILES];
} part;

typedef struct synth_plan {
  const char *kind, *folder;
  int64_t width[FILES];
  int64_t block; /* rows made at a time */
  part part[PARTS];
} synth_plan;

static const char *const file_name[FILES] = {"x", "y", "label"};

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
        unicon_writer_open(t->ctx, path, f == 2 ? UNICON_WRITE_I64 : UNICON_WRITE_F32, p->rows,
                           plan->width[f], &p->writer[f]);
    free(path);
    if (status != UNICON_OK) return tool_fail(t, status);
  }
  return EXIT_DONE;
}

static int fill_part(tool *t, const synth_plan *plan, part *p, float *x, float *y, int64_t *label) {
  for (int64_t done = 0; done < p->rows; done += plan->block) {
    const int64_t now = p->rows - done < plan->block ? p->rows - done : plan->block;
    unicon_status status = unicon_synth(t->ctx, plan->kind, t->options, p - plan->part, p->rows,
                                        done, now, x, y, label);
    const void *const rows[FILES] = {x, y, label};
    for (int f = 0; f < FILES && status == UNICON_OK; f++)
      status = unicon_writer_append(t->ctx, p->writer[f], rows[f], now);
    if (status != UNICON_OK) return tool_fail(t, status);
    if (display_progress(&t->display, p->name, (double)(done + now) / (double)p->rows, -1))
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
  for (int i = 0; i < PARTS && code == EXIT_DONE; i++)
    if (plan->part[i].rows > 0) code = open_part(t, plan, &plan->part[i]);
  for (int i = 0; i < PARTS && code == EXIT_DONE; i++)
    code = fill_part(t, plan, &plan->part[i], x, y, label);
  free(x);
  free(y);
  free(label);
  return code;
}

/* Names all files when everything went well, drops them otherwise. */
static int commit_parts(tool *t, synth_plan *plan, int code) {
  for (int i = 0; i < PARTS * FILES; i++) {
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
  const long long train = plan->part[0].rows, test = plan->part[1].rows;
  const long long val = plan->part[2].rows;
  const char *folder = plan->folder;
  if (tool_has(t, CLI_OPT_JSON)) {
    json_t *out = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "kind", plan->kind, "folder",
                            display_json_text(folder), "train", (json_int_t)train, "test",
                            (json_int_t)test, "val", (json_int_t)val, "x_width",
                            (json_int_t)plan->width[0], "y_width", (json_int_t)plan->width[1]);
    return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
  }
  if (test > 0)
    printf("%lld training and %lld test pairs in %s: x, y and label, .train.npy and .test.npy\n",
           train, test, folder);
  else
    printf("%lld training pairs in %s: x, y and label, .train.npy\n", train, folder);
  if (val > 0) printf("and %lld validation pairs, .val.npy\n", val);
  fputs("next  unicon fit ", stdout);
  display_word(folder);
  fputs("/x.train.npy ", stdout);
  display_word(folder);
  fputs("/y.train.npy -o ", stdout);
  display_word(folder);
  puts("/model.safetensors");
  return EXIT_DONE;
}

/* Files that an earlier run left there would pass for parts of this one. */
static void warn_of_older(tool *t, const synth_plan *plan) {
  char text[512];
  for (int i = 0; i < PARTS; i++) {
    char *path = path_of(plan->folder, file_name[0], plan->part[i].name);
    if (path && plan->part[i].rows == 0 && access(path, F_OK) == 0) {
      snprintf(text, sizeof text, "%.400s is left from an earlier run: this run made no %s pairs",
               path, plan->part[i].name);
      display_log(&t->display, UNICON_LOG_WARNING, text);
    }
    free(path);
  }
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
    const unicon_status status =
        unicon_synth(t->ctx, plan->kind, t->options, 0, 1, 0, 1, x, y, &label);
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
  static const struct {
    const char *name;
    cli_id option;
    int64_t least;
  } parts[PARTS] = {
      {"train", CLI_OPT_TRAIN, 1}, {"test", CLI_OPT_TEST, 0}, {"val", CLI_OPT_VAL, 0}};
  int code = EXIT_DONE;
  for (int i = 0; i < PARTS && code == EXIT_DONE; i++) {
    plan.part[i] = (part){parts[i].name, 0, {NULL}};
    code = cli_integer(t->args, parts[i].option, parts[i].least, 1000000000000, &plan.part[i].rows);
  }
  if (code != EXIT_DONE) return code;
  for (int s = 0; s < 2; s++) {
    plan.width[s] = unicon_synth_width(plan.kind, t->options, s == 0 ? UNICON_X : UNICON_Y);
    if (plan.width[s] < 1) plan.width[s] = 1; /* no such kind, as the library will say */
  }
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
  if (code == EXIT_DONE) warn_of_older(t, &plan);
  if (code == EXIT_DONE) return print_result(t, &plan);
  if (made) rmdir(plan.folder);
  return code;
}
