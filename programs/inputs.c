/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- pair options ------------------------------------------------------------------------- */

static int check_both(tool *t, cli_id a, cli_id b) {
  if (tool_has(t, a) == tool_has(t, b)) return EXIT_DONE;
  const cli_id there = tool_has(t, a) ? a : b, missing = there == a ? b : a;
  return cli_error(t->args->command, "--%s needs --%s as well", cli_name(there), cli_name(missing));
}

/* At most one of the options may be given. */
static int check_one(tool *t, const cli_id *id, size_t count) {
  const char *first = NULL;
  for (size_t i = 0; i < count; i++) {
    if (!tool_has(t, id[i])) continue;
    if (first)
      return cli_error(t->args->command,
                       "--%s and --%s both say which rows belong together; give one of them", first,
                       cli_name(id[i]));
    first = cli_name(id[i]);
  }
  return EXIT_DONE;
}

/* The options that name the rows of a kind and their pairs. */
typedef struct file_options {
  cli_id x, y, pairs, x_labels, y_labels;
  const char *rows; /* what the sentences call them */
} file_options;

static const file_options files_of[] = {
    [INPUTS_MAIN] = {.pairs = CLI_OPT_PAIRS,
                     .x_labels = CLI_OPT_X_LABELS,
                     .y_labels = CLI_OPT_Y_LABELS,
                     .rows = "training"},
    [INPUTS_LOOSE] = {.pairs = CLI_OPT_PAIRS,
                      .x_labels = CLI_OPT_X_LABELS,
                      .y_labels = CLI_OPT_Y_LABELS},
    [INPUTS_VALIDATION] = {CLI_OPT_VAL_X, CLI_OPT_VAL_Y, CLI_OPT_VAL_PAIRS, CLI_OPT_VAL_X_LABELS,
                           CLI_OPT_VAL_Y_LABELS, "validation"},
    [INPUTS_TEST] = {CLI_OPT_TEST_X, CLI_OPT_TEST_Y, CLI_OPT_TEST_PAIRS, CLI_OPT_TEST_X_LABELS,
                     CLI_OPT_TEST_Y_LABELS, "test"},
};

/* Labels come for both sides; those of one set, where there is one, for x alone. */
static int check_labels(tool *t, const file_options *f) {
  if (!tool_has(t, CLI_OPT_ONE_SET)) return check_both(t, f->x_labels, f->y_labels);
  if (tool_has(t, f->y_labels))
    return cli_error(t->args->command, "--one-set takes the labels of --%s alone; leave --%s out",
                     cli_name(f->x_labels), cli_name(f->y_labels));
  return EXIT_DONE;
}

/* Files of the training pairs say nothing about other rows. */
static int check_others(tool *t, const file_options *f) {
  const cli_id pair_files[] = {f->pairs, f->x_labels};
  int code = check_both(t, f->x, f->y);
  if (code == EXIT_DONE) code = check_labels(t, f);
  if (code == EXIT_DONE) code = check_one(t, pair_files, 2);
  if (code != EXIT_DONE) return code;
  const bool own = tool_has(t, f->pairs) || tool_has(t, f->x_labels);
  if (own && !tool_has(t, f->x))
    return cli_error(t->args->command, "--%s needs --%s and --%s as well",
                     cli_name(tool_has(t, f->pairs) ? f->pairs : f->x_labels), cli_name(f->x),
                     cli_name(f->y));
  if (own || !tool_has(t, f->x)) return EXIT_DONE;
  if (tool_has(t, CLI_OPT_PAIRS))
    return cli_error(t->args->command,
                     "--pairs is about the training rows; give --%s for the %s rows",
                     cli_name(f->pairs), f->rows);
  if (tool_has(t, CLI_OPT_X_LABELS))
    return cli_error(t->args->command,
                     "--x-labels and --y-labels are about the training rows; give --%s and --%s "
                     "for the %s rows",
                     cli_name(f->x_labels), cli_name(f->y_labels), f->rows);
  return EXIT_DONE;
}

int inputs_check_options(tool *t) {
  static const cli_id ways[] = {CLI_OPT_Y_PER_X, CLI_OPT_X_PER_Y, CLI_OPT_PAIRS, CLI_OPT_X_LABELS};
  int64_t k = 0;
  int code = check_labels(t, &files_of[INPUTS_MAIN]);
  if (code == EXIT_DONE && tool_has(t, CLI_OPT_ONE_SET) && !tool_has(t, CLI_OPT_X_LABELS))
    code = cli_error(t->args->command, "--one-set needs --x-labels as well");
  if (code == EXIT_DONE) code = check_one(t, ways, 4);
  for (size_t i = 0; i < 2 && code == EXIT_DONE; i++)
    if (tool_has(t, ways[i])) code = cli_integer(t->args, ways[i], 1, 1000000000, &k);
  if (code == EXIT_DONE) code = check_others(t, &files_of[INPUTS_VALIDATION]);
  return code == EXIT_DONE ? check_others(t, &files_of[INPUTS_TEST]) : code;
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* Without any pair option row i belongs to row i; when the counts differ, says what would fit. */
static int identity_pairs(tool *t, const char *x_path, const char *y_path, int64_t n_x, int64_t n_y,
                          unicon_pairs **out) {
  if (n_x == n_y) {
    const unicon_status status = unicon_pairs_identity(t->ctx, n_x, n_y, out);
    return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
  }
  char hint[80] = "give --pairs FILE";
  if (n_x > 0 && n_y > 0 && n_y % n_x == 0)
    snprintf(hint, sizeof hint, "did you mean --y-per-x %lld?", (long long)(n_y / n_x));
  else if (n_x > 0 && n_y > 0 && n_x % n_y == 0)
    snprintf(hint, sizeof hint, "did you mean --x-per-y %lld?", (long long)(n_x / n_y));
  return tool_error(t,
                    "%s has %lld rows and %s has %lld, but without a pair option row i belongs to "
                    "row i; %s",
                    x_path, (long long)n_x, y_path, (long long)n_y, hint);
}

bool inputs_same(const char *a, const char *b) {
  struct stat first, second;
  if (strcmp(a, b) == 0) return true;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && same_file(&first, &second);
}

/* X and Y are one set: rows of one width, and one file unless the user knows better. */
static int check_one_set(tool *t, const char *x_path, const char *y_path, const inputs *in) {
  const long long x = unicon_rows_width(in->x), y = unicon_rows_width(in->y);
  char text[640];
  if (inputs_same(x_path, y_path)) return EXIT_DONE;
  if (x != y)
    return tool_error(t,
                      "--one-set takes the same rows as X and as Y, but %s has %lld numbers a row "
                      "and %s %lld; give --y-labels in its place",
                      x_path, x, y_path, y);
  snprintf(text, sizeof text,
           "--one-set treats the rows of %.200s and %.200s as the same: row i of one never "
           "belongs to row i of the other",
           x_path, y_path);
  display_log(&t->display, UNICON_LOG_WARNING, text);
  return EXIT_DONE;
}

/* Labels of rows that are given as X and as Y. */
static unicon_status one_set(tool *t, const char *path, int64_t n_x, int64_t n_y,
                             unicon_pairs **out) {
  unicon_labels *labels = NULL;
  unicon_status status = unicon_labels_read(t->ctx, path, n_x, path, n_y, &labels);
  if (status == UNICON_OK)
    status = unicon_pairs_one_set(t->ctx, unicon_labels_numbers(labels, 0), n_x, out);
  unicon_labels_destroy(labels);
  return status;
}

static int open_pairs(tool *t, const char *x_path, const char *y_path, inputs_kind kind,
                      inputs *in) {
  const file_options *f = &files_of[kind];
  const char *file = tool_value(t, f->pairs);
  const char *x_labels = tool_value(t, f->x_labels), *y_labels = tool_value(t, f->y_labels);
  const int64_t n_x = unicon_rows_count(in->x), n_y = unicon_rows_count(in->y);
  int64_t k = 0;
  int code = EXIT_DONE;
  unicon_status status = UNICON_OK;
  if (file) {
    status = unicon_pairs_read(t->ctx, file, n_x, n_y, &in->pairs);
  } else if (x_labels && tool_has(t, CLI_OPT_ONE_SET)) {
    status = one_set(t, x_labels, n_x, n_y, &in->pairs);
    if (status == UNICON_OK) code = check_one_set(t, x_path, y_path, in);
  } else if (x_labels) {
    const bool part = t->args->command->run == cmd_stats; /* partners may be in another part */
    status = (part ? unicon_pairs_read_labels_part : unicon_pairs_read_labels)(
        t->ctx, x_labels, y_labels, n_x, n_y, &in->pairs);
  } else if (tool_has(t, CLI_OPT_Y_PER_X)) {
    code = cli_integer(t->args, CLI_OPT_Y_PER_X, 1, INT64_MAX, &k);
    if (code == EXIT_DONE) status = unicon_pairs_per_x(t->ctx, n_x, n_y, k, &in->pairs);
  } else if (tool_has(t, CLI_OPT_X_PER_Y)) {
    code = cli_integer(t->args, CLI_OPT_X_PER_Y, 1, INT64_MAX, &k);
    if (code == EXIT_DONE) status = unicon_pairs_per_y(t->ctx, n_x, n_y, k, &in->pairs);
  } else if (kind != INPUTS_LOOSE) {
    code = identity_pairs(t, x_path, y_path, n_x, n_y, &in->pairs);
  }
  if (code != EXIT_DONE) return code;
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

/* The lists that change what counts as a wrong pair. */
static int read_lists(tool *t, inputs *in) {
  const char *ignore = tool_value(t, CLI_OPT_IGNORE);
  const char *negatives = tool_value(t, CLI_OPT_NEGATIVES);
  unicon_status status = UNICON_OK;
  if (ignore) status = unicon_pairs_read_ignored(t->ctx, in->pairs, ignore);
  if (status == UNICON_OK && negatives)
    status = unicon_pairs_read_negatives(t->ctx, in->pairs, negatives);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

int inputs_open(tool *t, const char *x_path, const char *y_path, inputs_kind kind, inputs *out) {
  *out = (inputs){0};
  unicon_status status = unicon_rows_open(t->ctx, x_path, &out->x);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, y_path, &out->y);
  if (status != UNICON_OK) return tool_fail(t, status);
  int code = open_pairs(t, x_path, y_path, kind, out);
  if (code != EXIT_DONE || kind != INPUTS_MAIN) return code;
  code = read_lists(t, out);
  const char *groups = tool_value(t, CLI_OPT_GROUPS);
  if (code != EXIT_DONE || !groups) return code;
  status = unicon_labels_read(t->ctx, groups, unicon_rows_count(out->x), NULL, 0, &out->groups);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

void inputs_close(inputs *in) {
  unicon_labels_destroy(in->groups);
  unicon_pairs_destroy(in->pairs);
  unicon_rows_close(in->y);
  unicon_rows_close(in->x);
  *in = (inputs){0};
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* stat of a path, or of the file in front of `:TENSOR`. */
static bool stat_input(const char *path, struct stat *out) {
  if (stat(path, out) == 0) return true;
  const char *colon = strrchr(path, ':');
  char *file = colon ? strndup(path, (size_t)(colon - path)) : NULL;
  const bool found = file && stat(file, out) == 0;
  free(file);
  return found;
}

/* Where an output goes: its folder, and the file itself if it is there. */
typedef struct target {
  struct stat folder, file;
  bool shard; /* by its name one of those that are read of a folder */
} target;

/* A path without its folder. */
static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ".pt" of "m.pt"; "" where the name has none. */
static const char *suffix_of(const char *path) {
  const char *name = name_of(path), *dot = strrchr(name, '.');
  return dot && dot > name ? dot : "";
}

static int stat_folder(tool *t, const char *path, struct stat *out) {
  const char *slash = strrchr(path, '/');
  char *name = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
  if (!name) return tool_out_of_memory(t);
  int code = EXIT_DONE;
  if (stat(name, out) != 0)
    code = tool_error(t, "cannot write %s: the folder %s: %s", path, name, strerror(errno));
  else if (!S_ISDIR(out->st_mode))
    code = tool_error(t, "cannot write %s: %s is not a folder", path, name);
  free(name);
  return code;
}

/* Is the target this input, or one of the files of a folder that is read? */
static bool is_read(const char *input, const target *to) {
  struct stat source;
  if (!input || !stat_input(input, &source)) return false;
  const bool folder = S_ISDIR(source.st_mode);
  return (!folder || to->shard) && same_file(&source, folder ? &to->folder : &to->file);
}

static bool is_input(const tool *t, const target *to) {
  for (int k = 0; k < CLI_POSITIONALS; k++)
    if (is_read(t->args->positional[k], to)) return true;
  for (size_t k = 0; k < t->args->rests; k++)
    if (is_read(t->args->rest[k], to)) return true;
  for (size_t i = 0; i < cli_tool_option_count; i++) { /* all options that name a file to read */
    const cli_option *option = &cli_tool_options[i];
    const bool file = option->metavar && strcmp(option->metavar, "FILE") == 0;
    if (file && option->id != CLI_OPT_OUTPUT && is_read(tool_value(t, option->id), to)) return true;
  }
  for (size_t i = 0; i < t->args->settings; i++) {
    const cli_setting *s = &t->args->setting[i];
    if (strcmp(s->option->kind, "text") == 0 && is_read(s->value, to)) return true;
  }
  return false;
}

int inputs_check_output(tool *t, const char *path) {
  target to = {.shard = strcmp(suffix_of(path), ".npy") == 0};
  if (!*path) return cli_error(t->args->command, "the output name is empty");
  const int code = stat_folder(t, path, &to.folder);
  if (code != EXIT_DONE || stat(path, &to.file) != 0) return code;
  if (!S_ISREG(to.file.st_mode)) /* it would be replaced: think of /dev/null */
    return tool_error(t, "cannot write %s: it is %s", path,
                      S_ISDIR(to.file.st_mode) ? "a folder" : "not a regular file");
  if (!is_input(t, &to)) return EXIT_DONE;
  return tool_error(t, "%s is an input; writing the output there would destroy it", path);
}

int inputs_check_differ(tool *t, cli_id first, cli_id second) {
  const char *a = tool_value(t, first), *b = tool_value(t, second);
  struct stat folder[2];
  if (!a || !b || strcmp(name_of(a), name_of(b)) != 0) return EXIT_DONE;
  int code = stat_folder(t, a, &folder[0]);
  if (code == EXIT_DONE) code = stat_folder(t, b, &folder[1]);
  if (code != EXIT_DONE || !same_file(&folder[0], &folder[1])) return code;
  return cli_error(t->args->command, "--%s and --%s are both %s; give two names", cli_name(first),
                   cli_name(second), b);
}

int inputs_check_matrix_output(tool *t, const char *path) {
  const char *suffix = suffix_of(path);
  if (strcmp(suffix, ".npy") == 0 || strcmp(suffix, ".fbin") == 0)
    return inputs_check_output(t, path);
  return cli_error(t->args->command, "%s: the name must end in .npy or .fbin", path);
}

/* A name that promises another format is an error. */
static int check_model_name(tool *t, const char *path) {
  static const char *const others[] = {".pt", ".pth", ".bin", ".npy", ".npz", ".pkl", ".onnx"};
  const char *suffix = suffix_of(path);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(suffix, others[i]) == 0)
      return cli_error(t->args->command,
                       "%s: a model is written in the format safetensors; call it "
                       "%.*s.safetensors",
                       path, (int)(suffix - path), path);
  return EXIT_DONE;
}

int inputs_check_model_output(tool *t, const char *path) {
  const int code = inputs_check_output(t, path);
  return code == EXIT_DONE ? check_model_name(t, path) : code;
}

void inputs_warn_model_name(tool *t, const char *path) {
  char text[512];
  if (strcmp(suffix_of(path), ".safetensors") == 0) return;
  snprintf(text, sizeof text,
           "%.300s is written in the format safetensors, which its name does not say", path);
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

/* The file beside `path` that the data go to first: .NAME.tmp-PID, to be freed. */
static char *temporary_name(const char *path) {
  const char *slash = strrchr(path, '/');
  const size_t folder = slash ? (size_t)(slash - path) + 1 : 0, room = strlen(path) + 32;
  char *out = malloc(room);
  if (out) snprintf(out, room, "%.*s.%s.tmp-%ld", (int)folder, path, path + folder, (long)getpid());
  return out;
}

int output_write(tool *t, const char *path, const void *data, size_t size) {
  char *temporary = temporary_name(path);
  if (!temporary) return tool_out_of_memory(t);
  const int handle = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = handle >= 0 ? fdopen(handle, "wb") : NULL;
  bool done = file != NULL;
  if (file) {
    done = fwrite(data, 1, size, file) == size && fflush(file) == 0 && fsync(handle) == 0;
    done = fclose(file) == 0 && done;
    done = done && rename(temporary, path) == 0;
  }
  const int why = errno;
  if (!file && handle >= 0) close(handle);
  if (handle >= 0 && !done) remove(temporary);
  free(temporary);
  return done ? EXIT_DONE : tool_error(t, "cannot write %s: %s", path, strerror(why));
}
