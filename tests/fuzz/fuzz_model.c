/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: what is accepted embeds rows of both sides in every form, searches and takes new
 * banks without reading past its tensors. */
#include "target.h"

#include "model/model.h"

enum { ROWS = 16, SMALL = 64 }; /* a bank takes 16 rows; wide models only embed */

/* Rows of one side. */
typedef struct rows {
  float *data;
  unicon_rows *rows;
  unicon_view view;
} rows;

/* Rows of ones, of a ramp, of one large value, and then of small whole numbers. */
static int rows_open(unicon_ctx *ctx, const unicon_model *model, unicon_side side, rows *out) {
  const int64_t width = unicon_model_width(model, side), rank = unicon_model_rank(model);
  TARGET_HOLDS(width > 0 && rank > 0 && width <= 1 << 24 && rank <= 1 << 24);
  const int64_t count = width <= SMALL ? ROWS : 3;
  out->data = target_floats(count * width);
  for (int64_t k = 0; k < width; k++) {
    out->data[k] = 1;
    out->data[width + k] = (float)(k - width / 2) + 0.5f;
    out->data[2 * width + k] = k ? 0 : 1e6f;
    for (int64_t i = 3; i < count; i++) out->data[i * width + k] = (float)((i * 7 + k * k) % 5 - 1);
  }
  const int made = target_ok(ctx, unicon_rows_wrap(ctx, "rows", out->data, UNICON_F32, count, width,
                                                   4 * width, 4, &out->rows));
  out->view = (unicon_view){.rows = out->rows, .model = model, .side = side};
  return made;
}

static void rows_free(rows *r) {
  unicon_rows_close(r->rows);
  free(r->data);
}

/* Unit vectors, whatever the form; a bias lies within [-1, 1]. */
static void embed(unicon_ctx *ctx, const unicon_view *view, unicon_form form) {
  const int64_t rank = unicon_model_rank(view->model), width = unicon_form_width(rank, form);
  float *out = target_floats(width);
  for (int64_t i = 0; i < unicon_rows_count(view->rows) && i < 4; i++) {
    if (!target_ok(ctx, unicon_embed(ctx, view, i, 1, form, out))) continue;
    for (int64_t k = 0; k < width; k++) TARGET_HOLDS(fabsf(out[k]) < 1.001f);
  }
  free(out);
}

static void search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base) {
  int64_t ids[ROWS * 2];
  float scores[ROWS * 2];
  if (!target_ok(ctx, unicon_search(ctx, queries, base, 2, ids, scores))) return;
  for (int64_t k = 0; k < 2 * unicon_rows_count(queries->rows); k++)
    TARGET_HOLDS(ids[k] >= 0 && ids[k] < unicon_rows_count(base->rows) && fabsf(scores[k]) < 2.01f);
}

/* New banks, which rows that cannot be embedded must not enter. */
static void rebalance(unicon_ctx *ctx, const unicon_model *model, const rows side[2]) {
  unicon_model *made = NULL;
  const unicon_data data = {side[0].rows, side[1].rows, NULL, NULL};
  if (target_ok(ctx, unicon_model_rebalance(ctx, model, &data, NULL, &made))) {
    unicon_view view = side[1].view;
    view.model = made;
    embed(ctx, &view, UNICON_FORM_INDEX);
  }
  unicon_model_destroy(made);
}

static void use(unicon_ctx *ctx, const unicon_model *model) {
  rows side[2] = {{.data = NULL}, {.data = NULL}};
  const int64_t rank = unicon_model_rank(model);
  int made = 1, small = rank <= SMALL;
  for (int s = 0; s < 2; s++) {
    made = rows_open(ctx, model, (unicon_side)s, &side[s]) && made;
    small = small && unicon_model_width(model, (unicon_side)s) <= SMALL;
  }
  for (int s = 0; s < 2 && made; s++) {
    embed(ctx, &side[s].view, UNICON_FORM_UNIT);
    embed(ctx, &side[s].view, UNICON_FORM_INDEX_COSINE);
    if (small) search(ctx, &side[s].view, &side[1 - s].view);
  }
  if (made && small) rebalance(ctx, model, side);
  for (int s = 0; s < 2; s++) rows_free(&side[s]);
}

static void look(const unicon_model *model) {
  const char *key, *value;
  for (int64_t k = 0; k < unicon_model_rank(model); k++)
    TARGET_HOLDS(isfinite(unicon_model_spectrum(model)[k]));
  for (size_t k = 0; unicon_model_meta_at(model, k, &key, &value); k++)
    TARGET_HOLDS(unicon_model_meta(model, key) == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon_model *model = NULL;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  unicon_status status = unicon__model_create(ctx, &model);
  if (status == UNICON_OK)
    status = unicon__model_parse(ctx, model, "input.safetensors", (unicon__bytes){data, size});
  if (target_ok(ctx, unicon__leave(ctx, status))) {
    look(model);
    use(ctx, model);
  }
  unicon_model_destroy(model);
  target_done(ctx);
  return 0;
}
