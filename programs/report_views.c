/* SPDX-License-Identifier: Apache-2.0 */
/* The two pictures of a report that show a sample of the rows: places in the plane, and S. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_sample.h"
#include "tsne.h"

enum { VIEW_POINTS = 2000, WEIGHT_ROWS = 80 };

/* ---- places in the plane ------------------------------------------------------------------ */

static json_t *points_json(const subject *s, const sample *a, const float *place) {
  json_t *points = json_array();
  for (int side = 0; side < 2; side++)
    for (int64_t k = 0; k < a->count[side]; k++, place += 2) {
      const int64_t row = a->row[side][k];
      const unsigned char before = s->named[side][row];
      json_t *point =
          json_pack("{s:s, s:o, s:I, s:o, s:o, s:I}", "side", side == 0 ? "x" : "y", "name",
                    report_row_name(s, side, row), "number", (json_int_t)row, "at_x",
                    report_rounded((double)place[0], 1e-3), "at_y",
                    report_rounded((double)place[1], 1e-3), "rank", (json_int_t)s->rank[side][row]);
      s->named[side][row] = before | REPORT_PLACED;
      if (s->labels)
        json_object_set_new(point, "label", json_integer((json_int_t)report_label(s, side, row)));
      json_array_append_new(points, point);
    }
  return points;
}

/* Pairs as numbers of points; none between classes, where they would cover everything. */
static json_t *lines_json(const sample *a) {
  json_t *lines = json_array();
  for (int64_t k = 0; k < a->pairs && !a->classes; k++)
    json_array_append_new(lines, json_pack("[I, I]", (json_int_t)a->x[k],
                                           (json_int_t)a->count[0] + (json_int_t)a->y[k]));
  return lines;
}

static json_t *view_json(const subject *s, const sample *a, const float *place, double divergence) {
  json_t *out = json_pack("{s:s, s:o, s:o}", "method", isfinite(divergence) ? "t-SNE" : "PCA",
                          "points", points_json(s, a, place), "lines", lines_json(a));
  if (!out) return NULL;
  display_json_real(out, "divergence", divergence);
  if (isfinite(divergence)) { /* a third of the neighbours at most, as tsne.h has it */
    const double asked = atof(tool_value(s->t, CLI_OPT_PERPLEXITY));
    const double most = (double)(a->count[0] + a->count[1] - 1) / 3;
    json_object_set_new(out, "perplexity",
                        json_real(fmax(1, asked < most ? asked : floor(10 * most) / 10)));
  }
  if (s->labels) {
    json_t *names = json_array();
    for (int64_t k = 0; k < unicon_labels_classes(s->labels); k++)
      json_array_append_new(names, display_json_text(unicon_labels_name(s->labels, k)));
    json_object_set_new(out, "labels", names);
  }
  return out;
}

/* False after a failure that was said. */
static bool place_points(const subject *s, const float *z, int64_t count, float *place,
                         double *divergence) {
  const bool pca = strcmp(tool_value(s->t, CLI_OPT_LAYOUT), "pca") == 0;
  const double perplexity = pca ? 0 : atof(tool_value(s->t, CLI_OPT_PERPLEXITY));
  const tsne_status status =
      tsne_place(z, count, s->r, perplexity, display_progress, &s->t->display, place, divergence);
  if (status == TSNE_NO_MEMORY) tool_out_of_memory(s->t);
  if (status == TSNE_STOPPED) tool_interrupted(s->t);
  return status == TSNE_DONE;
}

json_t *report_view(subject *s) {
  sample a;
  json_t *out = NULL;
  float *z = NULL, *place = NULL;
  double divergence = NAN;
  if (sample_open(s, VIEW_POINTS, &a) && (z = sample_vectors(s, &a, 0, 1))) {
    const int64_t count = a.count[0] + a.count[1];
    place = calloc((size_t)count * 2 + 1, sizeof *place);
    if (!place)
      tool_out_of_memory(s->t);
    else if (place_points(s, z, count, place, &divergence))
      out = report_made(s, view_json(s, &a, place, divergence));
  }
  free(place);
  free(z);
  sample_close(&a);
  return out;
}

/* ---- S ------------------------------------------------------------------------------------ */

/* The loss that the model was fitted with, or would have been. */
static unicon_status loss_options(const subject *s, unicon_options *options) {
  static const char *const name[] = {"loss", "temperature", "margin", "scale",  "bias",
                                     "psi",  "phi",         "nu",     "epsilon"};
  unicon_status status = UNICON_OK;
  for (size_t k = 0; k < sizeof name / sizeof *name && status == UNICON_OK; k++) {
    char key[64];
    snprintf(key, sizeof key, "option.%s", name[k]);
    const char *value = unicon_model_meta(s->model, key);
    const char *learned = unicon_model_meta(s->model, "refine_temperature");
    if (learned && strcmp(name[k], "temperature") == 0) value = learned;
    if (value) status = unicon_options_set(s->t->ctx, options, name[k], value);
  }
  return status;
}

static json_t *matrix_json(const float *m, int64_t rows, int64_t columns, double unit) {
  json_t *out = json_array();
  for (int64_t i = 0; i < rows; i++) {
    json_t *row = json_array();
    for (int64_t j = 0; j < columns; j++)
      json_array_append_new(row, report_rounded((double)m[i * columns + j], unit));
    json_array_append_new(out, row);
  }
  return out;
}

static json_t *weights_json(const subject *s, const sample *a, const unicon_options *options,
                            const float *scores, const float *weights, double loss) {
  json_t *name[2] = {json_array(), json_array()}, *pairs = json_array();
  double most = 0;
  for (int side = 0; side < 2; side++)
    for (int64_t k = 0; k < a->count[side]; k++)
      json_array_append_new(name[side], report_row_name(s, side, a->row[side][k]));
  for (int64_t k = 0; k < a->pairs; k++)
    json_array_append_new(pairs, json_pack("[I, I]", (json_int_t)a->x[k], (json_int_t)a->y[k]));
  for (int64_t k = 0; k < a->count[0] * a->count[1];
       k++) { /* with fmax, gcc 12 crashes for aarch64 */
    const double size = fabs((double)weights[k]);
    if (size > most) most = size;
  }
  const double unit = most > 0 ? pow(10, floor(log10(most)) - 4) : 1;
  json_t *out = json_pack(
      "{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "loss", unicon_options_get(options, "loss"),
      "temperature", unicon_options_get(options, "temperature"), "x", name[0], "y", name[1],
      "pairs", pairs, "scores", matrix_json(scores, a->count[0], a->count[1], 1e-4), "weights",
      matrix_json(weights, a->count[0], a->count[1], unit));
  if (out) display_json_real(out, "value", loss);
  return out;
}

/* Views on the sampled vectors, their pairs and options. */
typedef struct block {
  sample a;
  float *z[2], *scores, *weights;
  unicon_rows *rows[2];
  unicon_pairs *pairs;
  unicon_options *options;
} block;

/* The loss on dot products wants vectors of their own length. */
static unicon_status true_lengths(subject *s, block *b) {
  unicon_status status = UNICON_OK;
  for (int side = 0; side < 2; side++) {
    const unicon_view view = UNICON_VIEW(.rows = side == 0 ? s->in.x : s->in.y, .model = s->model,
                                         .side = side == 0 ? UNICON_X : UNICON_Y);
    for (int64_t k = 0; k < b->a.count[side] && status == UNICON_OK; k++)
      status = unicon_embed(s->t->ctx, &view, b->a.row[side][k], 1, 0, b->z[side] + k * s->r);
  }
  return status;
}

static json_t *weigh(subject *s, block *b) {
  unicon_ctx *ctx = s->t->ctx;
  double loss = 0;
  unicon_status status = unicon_options_create(ctx, &b->options);
  if (status == UNICON_OK) status = loss_options(s, b->options);
  if (status == UNICON_OK && strcmp(unicon_options_get(b->options, "loss"), "spectral") == 0)
    status = true_lengths(s, b);
  for (int side = 0; side < 2 && status == UNICON_OK; side++)
    status = unicon_rows_wrap(ctx, side == 0 ? "x" : "y", b->z[side], UNICON_F32, b->a.count[side],
                              s->r, s->r * (int64_t)sizeof(float), sizeof(float), &b->rows[side]);
  if (status == UNICON_OK)
    status = unicon_pairs_list(ctx, b->a.count[0], b->a.count[1], b->a.x, b->a.y, NULL, b->a.pairs,
                               &b->pairs);
  const unicon_view x = UNICON_VIEW(.rows = b->rows[0], .side = UNICON_X),
                    y = UNICON_VIEW(.rows = b->rows[1], .side = UNICON_Y);
  if (status == UNICON_OK)
    status = unicon_weights(ctx, &x, &y, b->pairs, b->options, b->scores, b->weights, &loss);
  if (status != UNICON_OK) {
    tool_fail(s->t, status);
    return NULL;
  }
  return report_made(s, weights_json(s, &b->a, b->options, b->scores, b->weights, loss));
}

json_t *report_weights(subject *s) {
  block b = {0};
  json_t *out = NULL;
  if (sample_open(s, WEIGHT_ROWS, &b.a) && (b.z[0] = sample_vectors(s, &b.a, 0, 0)) &&
      (b.z[1] = sample_vectors(s, &b.a, 1, 1))) {
    const size_t cells = (size_t)(b.a.count[0] * b.a.count[1]) + 1;
    b.scores = calloc(cells, sizeof *b.scores);
    b.weights = calloc(cells, sizeof *b.weights);
    if (b.scores && b.weights)
      out = weigh(s, &b);
    else
      tool_out_of_memory(s->t);
  }
  for (int side = 0; side < 2; side++) {
    unicon_rows_close(b.rows[side]);
    free(b.z[side]);
  }
  unicon_pairs_destroy(b.pairs);
  unicon_options_destroy(b.options);
  free(b.scores);
  free(b.weights);
  sample_close(&b.a);
  return out;
}
