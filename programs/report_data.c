/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a JSON object: model, options, metrics, ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "report.h"
#include "usable.h"

json_t *report_rounded(double value, double unit) {
  return json_real(isfinite(value) ? round(value / unit) * unit : 0);
}

json_t *report_row_name(const subject *s, int side, int64_t row) {
  const unicon_labels *id = s->id[side];
  if (row >= 0) s->named[side][row] |= REPORT_LISTED;
  if (!id || row < 0) return json_integer((json_int_t)row);
  return display_json_text(unicon_labels_name(id, unicon_labels_numbers(id, 0)[row]));
}

/* ---- model and data ----------------------------------------------------------------------- */

/* Options in force, with what they are without being said. */
static json_t *options_json(const unicon_model *model) {
  json_t *out = json_array();
  for (size_t i = 0; i < unicon_option_count(); i++) {
    const unicon_option_info *row = unicon_option_at(i);
    char key[80];
    snprintf(key, sizeof key, "option.%s", row->name);
    const char *value = unicon_model_meta(model, key);
    if (!value) continue;
    json_array_append_new(
        out, json_pack("{s:s, s:o, s:s, s:s}", "name", row->name, "value", display_json_text(value),
                       "default", cli_chosen(row) ? "chosen by auto" : row->default_value, "group",
                       row->group));
  }
  return out;
}

/* Numbers of a log, separated by blanks; NULL where there are none. */
static json_t *numbers_json(const char *text) {
  json_t *out = text && *text ? json_array() : NULL;
  for (char *end = NULL; out && *text; text = end) {
    const double value = strtod(text, &end);
    if (end == text) break;
    json_array_append_new(out, json_real(isfinite(value) ? value : 0));
  }
  return out;
}

/* What happened step by step, of what there was. */
static json_t *curves_json(const unicon_model *model) {
  static const char *const key[][3] = {{"loss", "loss_log"},
                                       {"score", "score_log"},
                                       {"refine_loss", "refine_loss_log"},
                                       {"refine_score", "refine_score_log", "auto_refine_log"}};
  json_t *out = json_object();
  for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
    json_t *list = numbers_json(unicon_model_meta(model, key[k][1]));
    if (!list && key[k][2]) list = numbers_json(unicon_model_meta(model, key[k][2]));
    if (list) json_object_set_new(out, key[k][0], list);
  }
  return out;
}

/* ---- what auto tried ---------------------------------------------------------------------- */

enum { TRIED_MOST = 128, TRIED_LETTERS = 200 };

typedef struct trial {
  char setting[TRIED_LETTERS];
  double score;
} trial;

static int by_score(const void *a, const void *b) {
  const trial *left = a, *right = b;
  return (left->score < right->score) - (left->score > right->score);
}

/* "angular ridge 0.01 metric power 0.5 exponent 1.5 rank 256 balance softmax:10: 0.5182; ...": the
 * score stands behind the last colon. */
static size_t parse_trials(const char *text, trial *out) {
  size_t count = 0;
  while (*text && count < TRIED_MOST) {
    const size_t length = strcspn(text, ";");
    size_t name = length;
    while (name > 0 && text[name - 1] != ':') name--;
    snprintf(out[count].setting, TRIED_LETTERS, "%.*s", (int)(name > 0 ? name - 1 : 0), text);
    out[count].score = strtod(text + name, NULL);
    count += name > 1 && isfinite(out[count].score);
    text += length;
    text += strspn(text, "; ");
  }
  qsort(out, count, sizeof *out, by_score);
  return count;
}

/* Takes `word` out of the text. */
static void leave_out(char *text, const char *word) {
  char *at = strstr(text, word);
  if (at) memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/* Best first: the setting, the same in few words, and its score. */
static json_t *tried_json(const unicon_model *model) {
  const char *text = unicon_model_meta(model, "auto_tried");
  trial *list = calloc(TRIED_MOST, sizeof *list);
  const size_t count = list && text ? parse_trials(text, list) : 0;
  json_t *out = json_array();
  for (size_t k = 0; k < count; k++) {
    char words[TRIED_LETTERS];
    snprintf(words, sizeof words, "%s", list[k].setting);
    leave_out(words, "metric ");
    if (!strstr(words, "balance off")) leave_out(words, "balance ");
    leave_out(words, "epochs ");
    leave_out(words, "temperature ");
    json_array_append_new(
        out, json_pack("{s:o, s:o, s:f}", "setting", display_json_text(list[k].setting), "words",
                       display_json_text(words), "score", list[k].score));
  }
  free(list);
  return out;
}

static json_t *model_json(const subject *s) {
  json_t *spectrum = json_array(), *metadata = json_object();
  const int64_t rank = unicon_model_rank(s->model);
  const char *key, *value;
  for (int64_t i = 0; i < rank; i++)
    json_array_append_new(spectrum, json_real((double)unicon_model_spectrum(s->model)[i]));
  for (size_t i = 0; unicon_model_meta_at(s->model, i, &key, &value); i++)
    if (strncmp(key, "option.", 7) != 0)
      json_object_set_new(metadata, key, display_json_text(value));
  return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "file",
                   display_json_text(s->t->args->positional[0]), "rank", (json_int_t)rank,
                   "x_width", (json_int_t)unicon_model_width(s->model, UNICON_X), "y_width",
                   (json_int_t)unicon_model_width(s->model, UNICON_Y), "spectrum", spectrum,
                   "options", options_json(s->model), "curves", curves_json(s->model), "tried",
                   tried_json(s->model), "metadata", metadata);
}

static json_t *data_json(const subject *s) {
  const char *const *path = s->t->args->positional;
  return json_pack("{s:{s:o, s:I}, s:{s:o, s:I}, s:I}", "x", "file", display_json_text(path[1]),
                   "rows", (json_int_t)s->rows[0], "y", "file", display_json_text(path[2]), "rows",
                   (json_int_t)s->rows[1], "pairs", (json_int_t)unicon_pairs_count(s->in.pairs));
}

/* ---- ranks -------------------------------------------------------------------------------- */

/* First ranks of the bins: 1, 2, 3, 6, 11, 21, 51, 101, 201, 501, ... up to the candidates. */
static int64_t bin_edge(int bin) {
  static const int64_t small[] = {1, 2, 3}, step[] = {5, 10, 20};
  if (bin < 3) return small[bin];
  int64_t edge = step[(bin - 3) % 3];
  for (int k = 0; k < (bin - 3) / 3; k++) edge *= 10;
  return edge + 1;
}

static json_t *histogram_json(const subject *s, int side) {
  json_t *out = json_array();
  const int64_t most = s->rows[1 - side];
  for (int bin = 0; s->rank[side] && bin_edge(bin) <= most; bin++) {
    const int64_t from = bin_edge(bin), next = bin_edge(bin + 1);
    int64_t count = 0;
    for (int64_t i = 0; i < s->rows[side]; i++)
      count += s->rank[side][i] >= from && s->rank[side][i] < next;
    json_array_append_new(out, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)from, "to",
                                         (json_int_t)(next - 1 < most ? next - 1 : most), "count",
                                         (json_int_t)count));
  }
  return out;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Adds a part, unless it could not be made, which was said. */
static int add(tool *t, json_t *out, const char *name, json_t *part) {
  if (!part) return display_interrupted() ? EXIT_INTERRUPTED : EXIT_FAILED;
  return json_object_set_new(out, name, part) == 0 ? EXIT_DONE : tool_out_of_memory(t);
}

json_t *report_made(const subject *s, json_t *part) {
  if (!part) tool_out_of_memory(s->t);
  return part;
}

static int add_classes(subject *s, json_t *out) {
  const char *labels = tool_value(s->t, CLI_OPT_LABELS);
  classes c = {0};
  if (!tool_has(s->t, CLI_OPT_CLASSES)) return EXIT_DONE;
  if (!labels) labels = tool_value(s->t, CLI_OPT_X_LABELS);
  int code = classes_run(s->t, s->in.x, labels, s->model, UNICON_X, &c);
  if (code == EXIT_DONE) code = add(s->t, out, "zero_shot", classes_json(&c));
  classes_close(&c);
  return code;
}

int report_add_metrics(subject *s, json_t *out) {
  json_t *evaluation = display_json_result(s->result);
  int code = EXIT_DONE;
  for (int k = 0; k < 2 && code == EXIT_DONE; k++) {
    const char *name = k == 0 ? "x_to_y" : "y_to_x";
    code = add(s->t, out, name, json_incref(json_object_get(evaluation, name)));
  }
  json_decref(evaluation);
  if (code == EXIT_DONE)
    code = add(
        s->t, out, "ranks",
        json_pack("{s:o, s:o}", "x_to_y", histogram_json(s, 0), "y_to_x", histogram_json(s, 1)));
  if (code == EXIT_DONE) code = add(s->t, out, "balance", report_balance(s));
  if (code == EXIT_DONE && s->labels) code = add(s->t, out, "by_class", report_by_class(s));
  return code;
}

static int assemble(subject *s, json_t *out) {
  tool *t = s->t;
  json_object_set_new(out, "format", json_string(REPORT_FORMAT));
  json_object_set_new(out, "version", json_integer(REPORT_VERSION));
  json_object_set_new(out, "unicon", json_string(unicon_version()));
  int code = add(t, out, "data", report_made(s, data_json(s)));
  if (code == EXIT_DONE) code = add(t, out, "model", report_made(s, model_json(s)));
  if (code == EXIT_DONE) code = report_add_metrics(s, out);
  if (code == EXIT_DONE) code = add(t, out, "weights", report_weights(s));
  if (code == EXIT_DONE) code = add(t, out, "view", report_view(s));
  if (code == EXIT_DONE) code = add(t, out, "hardest", report_hardest(s));
  if (code == EXIT_DONE) code = add(t, out, "suspects", report_suspects(s));
  if (code == EXIT_DONE && s->beside) code = add(t, out, "beside", report_beside(s));
  if (code == EXIT_DONE) code = add(t, out, "cards", report_cards(s));
  return code == EXIT_DONE ? add_classes(s, out) : code;
}

static bool allocate(subject *s) {
  bool done = true;
  for (int side = 0; side < 2; side++) {
    const size_t rows = (size_t)s->rows[side] + 1;
    done = (s->z[side] = calloc(rows, (size_t)s->r * sizeof(float))) && done;
    done = (s->bias[side] = calloc(rows, sizeof(float))) && done;
    done = (s->rank[side] = calloc(rows, sizeof(int64_t))) && done;
    done = (s->found[side] = calloc(rows, sizeof(int64_t))) && done;
    done = (s->plain_found[side] = calloc(rows, sizeof(int64_t))) && done;
    done = (s->near[side] = calloc(rows, REPORT_NEAR * sizeof(int64_t))) && done;
    done = (s->near_score[side] = calloc(rows, REPORT_NEAR * sizeof(float))) && done;
    done = (s->match[side] = calloc(rows, 1)) && done;
  }
  return done;
}

static void release(subject *s) {
  for (int side = 0; side < 2; side++) {
    free(s->z[side]);
    free(s->bias[side]);
    free(s->rank[side]);
    free(s->found[side]);
    free(s->plain_found[side]);
    free(s->near[side]);
    free(s->near_score[side]);
    free(s->match[side]);
  }
  unicon_balance_destroy(s->balance);
  unicon_result_destroy(s->result);
  unicon_model_destroy(s->model);
}

/* Ranks, hubs and first rows. What is to be said about the rows, unicon_evaluate has said. */
static unicon_status count(subject *s, const unicon_view view[2]) {
  unicon_ctx *ctx = s->t->ctx;
  int64_t *found[2] = {s->found[1], s->found[0]}; /* x as queries finds rows of y */
  int64_t *plain[2] = {s->plain_found[1], s->plain_found[0]};
  unicon_ctx_set_log(ctx, NULL, NULL);
  display *d = &s->t->display;
  display_part(d, "report", 0.6, 0.2);
  unicon_status status = unicon_ranks(ctx, &view[0], &view[1], s->in.pairs, s->rank[0], s->rank[1]);
  display_part(d, "report", 0.8, 0.1);
  if (status == UNICON_OK) status = unicon_hubs(ctx, &view[0], &view[1], s->in.pairs, found, plain);
  display_part(d, "report", 0.9, 0.1);
  if (status == UNICON_OK) status = report_find_near(s);
  display_part(d, NULL, 0, 0);
  unicon_ctx_set_log(ctx, display_log, &s->t->display);
  return status;
}

/* Loads the model: embeddings, metrics with intervals, ranks and hubs of both sides. */
static int measure(subject *s, const char *path) {
  tool *t = s->t;
  unicon_status status = unicon_model_load(t->ctx, path, &s->model);
  if (status != UNICON_OK) return tool_fail(t, status);
  const unicon_view view[2] = {UNICON_VIEW(.rows = s->in.x, .model = s->model, .side = UNICON_X),
                               UNICON_VIEW(.rows = s->in.y, .model = s->model, .side = UNICON_Y)};
  s->r = unicon_model_rank(s->model);
  status = unicon_options_set(t->ctx, t->options, "ci", "on");
  display_part(&t->display, "report", 0, 0.6);
  if (status == UNICON_OK)
    status = unicon_evaluate(t->ctx, &view[0], &view[1], s->in.pairs, t->options, &s->result);
  if (status == UNICON_OK && !allocate(s)) return tool_out_of_memory(t);
  if (status == UNICON_OK)
    status = unicon_balance_create(t->ctx, s->model, NULL, NULL, NULL, &s->balance);
  for (int side = 0; side < 2 && status == UNICON_OK; side++)
    status = report_embed(s, &view[side], side);
  if (status == UNICON_OK) status = count(s, view);
  return status == UNICON_OK ? EXIT_DONE : usable_fail(t, status, view, 2);
}

/* Rows, pairs, ids, labels and what else there is to show of a row. */
static int open_subject(tool *t, subject *s) {
  const char *const *path = t->args->positional;
  const char *const id[2] = {tool_value(t, CLI_OPT_X_IDS), tool_value(t, CLI_OPT_Y_IDS)};
  const char *labels = tool_value(t, CLI_OPT_LABELS);
  unicon_status status = UNICON_OK;
  const int code = inputs_open(t, path[1], path[2], INPUTS_MAIN, &s->in);
  if (code != EXIT_DONE) return code;
  s->rows[0] = unicon_rows_count(s->in.x);
  s->rows[1] = unicon_rows_count(s->in.y);
  for (int side = 0; side < 2; side++)
    if (!(s->named[side] = calloc((size_t)s->rows[side] + 1, 1))) return tool_out_of_memory(t);
  for (int side = 0; side < 2 && status == UNICON_OK; side++)
    if (id[side])
      status = unicon_labels_read(t->ctx, id[side], s->rows[side], NULL, 0, &s->id[side]);
  if (!labels) labels = tool_value(t, CLI_OPT_X_LABELS);
  if (status == UNICON_OK && labels)
    status = unicon_labels_read(t->ctx, labels, s->rows[0], NULL, 0, &s->labels);
  return status == UNICON_OK ? report_media_open(s) : tool_fail(t, status);
}

static void close_subject(subject *s) {
  release(s);
  for (int side = 0; side < 2; side++) {
    free(s->named[side]);
    unicon_labels_destroy(s->id[side]);
  }
  report_media_close(s);
  unicon_labels_destroy(s->labels);
  inputs_close(&s->in);
}

int report_compute(tool *t, json_t **out) {
  subject s = {.t = t}, beside;
  const char *const other = tool_value(t, CLI_OPT_BESIDE);
  json_t *object = json_object();
  int code = object ? open_subject(t, &s) : tool_out_of_memory(t);
  beside = s; /* the rows are shared */
  if (code == EXIT_DONE) code = measure(&s, t->args->positional[0]);
  if (code == EXIT_DONE && other) {
    s.beside = &beside;
    code = measure(&beside, other);
  }
  if (code == EXIT_DONE) code = assemble(&s, object);
  release(&beside);
  close_subject(&s);
  if (code != EXIT_DONE) json_decref(object);
  *out = code == EXIT_DONE ? object : NULL;
  return code;
}
