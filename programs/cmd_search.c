/* SPDX-License-Identifier: Apache-2.0 */
/* unicon search MODEL --query-side x|y Q --base-side x|y B -k K */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balanced.h"
#include "inputs.h"
#include "moving.h"
#include "unicon/migrate.h"
#include "usable.h"

/* What was found, in the numbers of the files. */
typedef struct hits {
  int64_t queries, k;
  int64_t *id; /* queries by k; -1 where there are no more rows, or the query was left out */
  float *score;
  const usable *q, *b; /* the rows in use */
  bool biased;         /* the base rows bring their biases along */
} hits;

/* The side named by one option, or else the other side than the second option names. */
static unicon_side side_of(const tool *t, cli_id own, cli_id other) {
  if (tool_has(t, own)) return strcmp(tool_value(t, own), "y") == 0 ? UNICON_Y : UNICON_X;
  return strcmp(tool_value(t, other), "y") == 0 ? UNICON_X : UNICON_Y;
}

static int print_table(const hits *h) {
  puts("query\trank\tbase\tscore");
  for (int64_t q = 0; q < h->queries && !ferror(stdout); q++)
    for (int64_t r = 0; r < h->k && h->id[q * h->k + r] >= 0; r++)
      printf("%lld\t%lld\t%lld\t%.6f\n", (long long)q, (long long)r + 1,
             (long long)h->id[q * h->k + r], (double)h->score[q * h->k + r]);
  return EXIT_DONE;
}

/* What scores were balanced by, and the rows that were left out. */
static void add_notes(const tool *t, const hits *h, json_t *out) {
  json_object_set_new(out, "balance",
                      json_string(h->biased ? "base" : unicon_balance_text(t->balance)));
  if (usable_wanted(t))
    json_object_set_new(out, "dropped",
                        json_pack("{s:I, s:I}", "queries", (json_int_t)(h->q->total - h->q->count),
                                  "base", (json_int_t)(h->b->total - h->b->count)));
}

static int print_json(tool *t, const hits *h) {
  json_t *results = json_array();
  for (int64_t q = 0; q < h->queries; q++) {
    if (h->id[q * h->k] < 0) continue;
    json_t *base = json_array(), *score = json_array();
    for (int64_t r = 0; r < h->k && h->id[q * h->k + r] >= 0; r++) {
      json_array_append_new(base, json_integer((json_int_t)h->id[q * h->k + r]));
      json_array_append_new(score, json_real((double)h->score[q * h->k + r]));
    }
    json_array_append_new(results, json_pack("{s:I, s:o, s:o}", "query", (json_int_t)q, "base",
                                             base, "score", score));
  }
  json_t *out = json_pack("{s:I, s:I, s:o}", "queries", (json_int_t)h->q->count, "k",
                          (json_int_t)h->k, "results", results);
  add_notes(t, h, out);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

static unicon_status open_and_fill(tool *t, const char *path, unicon_file_dtype dtype,
                                   const hits *h, const void *values, unicon_writer **out) {
  const unicon_status status = unicon_writer_open(t->ctx, path, dtype, h->queries, h->k, out);
  return status == UNICON_OK ? unicon_writer_append(t->ctx, *out, values, h->queries) : status;
}

/* Both files are complete before either gets its name. */
static int write_files(tool *t, const hits *h, const char *ids, const char *scores) {
  unicon_writer *id_writer = NULL, *score_writer = NULL;
  unicon_status status = open_and_fill(t, ids, UNICON_WRITE_I64, h, h->id, &id_writer);
  if (status == UNICON_OK)
    status = open_and_fill(t, scores, UNICON_WRITE_F32, h, h->score, &score_writer);
  if (status == UNICON_OK) {
    status = unicon_writer_commit(t->ctx, id_writer);
    id_writer = NULL;
  }
  if (status == UNICON_OK) {
    status = unicon_writer_commit(t->ctx, score_writer);
    score_writer = NULL;
  }
  int code = status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
  if (id_writer) unicon_writer_discard(id_writer);
  if (score_writer) unicon_writer_discard(score_writer);
  if (code != EXIT_DONE) return code;
  if (!tool_has(t, CLI_OPT_JSON)) {
    printf("%lld queries, %lld rows each, in %s and %s\n", (long long)h->q->count, (long long)h->k,
           ids, scores);
    return EXIT_DONE;
  }
  json_t *out = json_pack("{s:I, s:I, s:I, s:o, s:o}", "queries", (json_int_t)h->q->count, "rows",
                          (json_int_t)h->queries, "k", (json_int_t)h->k, "ids",
                          display_json_text(ids), "scores", display_json_text(scores));
  add_notes(t, h, out);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

/* The two files of -o PREFIX, to be freed. */
typedef struct names {
  char *ids, *scores;
} names;

static void names_free(names *n) {
  free(n->ids);
  free(n->scores);
}

/* Names the files and checks that they can be made, before the search; nothing without -o. */
static int names_make(tool *t, names *out) {
  const char *prefix = tool_value(t, CLI_OPT_OUTPUT);
  if (!tool_has(t, CLI_OPT_OUTPUT)) return EXIT_DONE;
  const size_t length = strlen(prefix), size = length + 16;
  if (length > 4 && strcmp(prefix + length - 4, ".npy") == 0)
    return cli_error(t->args->command,
                     "-o %s: this is a prefix, of two files; with %.*s they are %.*s.ids.npy and "
                     "%.*s.scores.npy",
                     prefix, (int)length - 4, prefix, (int)length - 4, prefix, (int)length - 4,
                     prefix);
  out->ids = malloc(size);
  out->scores = malloc(size);
  if (!out->ids || !out->scores) return tool_out_of_memory(t);
  snprintf(out->ids, size, "%s.ids.npy", prefix);
  snprintf(out->scores, size, "%s.scores.npy", prefix);
  const int code = inputs_check_output(t, out->ids);
  return code == EXIT_DONE ? inputs_check_output(t, out->scores) : code;
}

static int show(tool *t, const hits *h, const names *files) {
  if (files->ids) return write_files(t, h, files->ids, files->scores);
  return tool_has(t, CLI_OPT_JSON) ? print_json(t, h) : print_table(h);
}

/* From the rows in use, where the lists begin one behind the other, to all rows and the numbers of
 * the files. Backwards, so that nothing is overwritten before it has moved. */
static void renumber(hits *h) {
  const size_t list = (size_t)h->k;
  int64_t from = h->q->count;
  for (int64_t q = h->queries; q-- > 0;) {
    int64_t *id = h->id + q * h->k;
    float *score = h->score + q * h->k;
    const bool used = from > 0 && usable_number(h->q, from - 1) == q;
    if (used) {
      from--;
      memmove(id, h->id + from * h->k, list * sizeof *id);
      memmove(score, h->score + from * h->k, list * sizeof *score);
    }
    for (int64_t r = 0; r < h->k; r++) {
      if (!used) id[r] = -1, score[r] = -INFINITY;
      if (id[r] >= 0) id[r] = usable_number(h->b, id[r]);
    }
  }
}

/* Scores as another model would have them; the order stays. */
static int calibrate(tool *t, const unicon_model *model, const hits *h) {
  const char *to = tool_value(t, CLI_OPT_CALIBRATE);
  if (!to) return EXIT_DONE;
  const unicon_status status =
      unicon_model_calibrate(t->ctx, model, strcmp(to, "new") == 0, h->queries * h->k, h->score);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

static int search(tool *t, unicon_view *queries, unicon_view *base, int64_t k, const names *files) {
  usable q = {0}, b = {0};
  hits h = {unicon_rows_count(queries->rows), k, NULL, NULL, &q, &b,
            base->form == UNICON_FORM_INDEX};
  if (h.queries > (INT64_MAX / 16 - 1) / k) return tool_out_of_memory(t);
  const size_t cells = (size_t)(h.queries * k) + 1;
  int code = usable_open(t, queries, &q);
  if (code == EXIT_DONE) code = usable_open(t, base, &b);
  h.id = malloc(cells * sizeof *h.id);
  h.score = malloc(cells * sizeof *h.score);
  const bool room = h.id && h.score;
  if (code == EXIT_DONE && !room) code = tool_out_of_memory(t);
  code = tool_agree(t, code);
  if (code == EXIT_DONE && room) {
    const unicon_status status = unicon_search(t->ctx, queries, base, k, h.id, h.score);
    display_clear(&t->display);
    if (status != UNICON_OK) code = usable_fail(t, status, (unicon_view[]){*queries, *base}, 2);
  }
  if (code == EXIT_DONE && room) {
    renumber(&h);
    code = calibrate(t, queries->model, &h);
  }
  if (code == EXIT_DONE && room && tool_writes(t)) code = show(t, &h, files);
  free(h.id);
  free(h.score);
  usable_close(&b);
  usable_close(&q);
  return code;
}

/* Rows embedded before: vectors, or with their biases behind, as `embed --index` writes them. */
static int open_embedded(tool *t, const unicon_model *model, unicon_view *base) {
  const int64_t rank = unicon_model_rank(model), width = unicon_rows_width(base->rows);
  base->model = NULL;
  if (width != rank && width != rank + 1)
    return tool_error(t,
                      "%s has rows of %lld numbers; vectors of this model have %lld, or %lld with "
                      "their bias (`unicon embed --index`)",
                      t->args->positional[2], (long long)width, (long long)rank,
                      (long long)rank + 1);
  if (width == rank) return EXIT_DONE;
  base->form = UNICON_FORM_INDEX;
  if (balanced_asked(t))
    display_log(&t->display, UNICON_LOG_WARNING,
                "--balance and banks have no effect: the rows bring their biases along");
  return EXIT_DONE;
}

/* Vectors of a migration meet in one space: queries are of the new model, as they are or mapped;
 * the base is what was moved, or what stays. */
static int check_spaces(tool *t, const unicon_model *model, const unicon_view *q,
                        const unicon_view *b) {
  const char *const *path = t->args->positional;
  int code = EXIT_DONE;
  if (tool_has(t, CLI_OPT_CALIBRATE) || moving_space(model))
    code = moving_refuse_other(t, model, path[0]);
  if (!moving_space(model) || code != EXIT_DONE) return code;
  if (tool_has(t, CLI_OPT_BASE_EMBEDDED)) {
    code = moving_check_moved(t, model, path[2]);
  } else {
    code = moving_refuse_moved(t, model, path[2]);
    if (code == EXIT_DONE) code = moving_check_rows(t, model, b->side, b->rows);
  }
  return code == EXIT_DONE ? moving_check_rows(t, model, q->side, q->rows) : code;
}

static int search_files(tool *t, const unicon_model *model, const unicon_rows *queries,
                        const unicon_rows *base, int64_t k, const names *files) {
  int code = balanced_open(t, model);
  unicon_view q =
      UNICON_VIEW(.rows = queries, .model = model,
                  .side = side_of(t, CLI_OPT_QUERY_SIDE, CLI_OPT_BASE_SIDE), .balance = t->balance);
  unicon_view b = q;
  b.rows = base;
  b.side = side_of(t, CLI_OPT_BASE_SIDE, CLI_OPT_QUERY_SIDE);
  const cli_id idle = b.side == UNICON_X ? CLI_OPT_BANK_X : CLI_OPT_BANK_Y;
  if (code == EXIT_DONE && tool_has(t, idle) && q.side != b.side)
    display_idle(&t->display, cli_name(idle), "here: only the bank of the query side is used");
  if (code == EXIT_DONE && !moving_space(model) && cli_sets(t->args, "trust"))
    display_idle(&t->display, "trust", "with a model that `unicon migrate` did not make");
  if (code == EXIT_DONE) code = check_spaces(t, model, &q, &b);
  if (code == EXIT_DONE && tool_has(t, CLI_OPT_BASE_EMBEDDED)) code = open_embedded(t, model, &b);
  return code == EXIT_DONE ? search(t, &q, &b, k, files) : code;
}

/* No more than there are. */
static int64_t at_most(tool *t, const unicon_rows *base, int64_t k) {
  const int64_t count = unicon_rows_count(base);
  char text[256];
  if (k <= count) return k;
  snprintf(text, sizeof text, "%.100s has %lld rows: each query gets %lld, not %lld",
           t->args->positional[2], (long long)count, (long long)count, (long long)k);
  display_log(&t->display, UNICON_LOG_WARNING, text);
  return count;
}

int cmd_search(tool *t) {
  const char *const *path = t->args->positional;
  int64_t k = 0;
  if (!tool_has(t, CLI_OPT_QUERY_SIDE) && !tool_has(t, CLI_OPT_BASE_SIDE))
    return cli_usage_error(
        t->args->command, "say which side the queries belong to: --query-side x or --query-side y");
  names files = {NULL, NULL};
  int code = cli_integer(t->args, CLI_OPT_TOP, 1, 1000000, &k);
  if (code == EXIT_DONE) code = names_make(t, &files);
  if (code != EXIT_DONE) {
    names_free(&files);
    return code;
  }
  unicon_model *model = NULL;
  unicon_rows *queries = NULL, *base = NULL;
  unicon_status status = unicon_model_load(t->ctx, path[0], &model);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[1], &queries);
  if (status == UNICON_OK) status = unicon_rows_open(t->ctx, path[2], &base);
  if (status == UNICON_OK) k = at_most(t, base, k);
  code =
      status == UNICON_OK ? search_files(t, model, queries, base, k, &files) : tool_fail(t, status);
  unicon_rows_close(base);
  unicon_rows_close(queries);
  unicon_model_destroy(model);
  names_free(&files);
  return code;
}
