/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: what is accepted embeds rows of both sides without reading past its tensors. */
#include "target.h"

#include "model/model.h"

enum { ROWS = 3 };

/* Rows of ones, of a ramp, and of one large value. */
static void embed(unicon_ctx *ctx, const unicon_model *model, unicon_side side) {
  const int64_t width = unicon_model_width(model, side), rank = unicon_model_rank(model);
  TARGET_HOLDS(width > 0 && rank > 0 && width <= 1 << 24 && rank <= 1 << 24);
  float *in = target_floats(ROWS * width), *out = target_floats(ROWS * rank);
  for (int64_t k = 0; k < width; k++) {
    in[k] = 1;
    in[width + k] = (float)(k - width / 2) + 0.5f;
    in[2 * width + k] = k ? 0 : 1e6f;
  }
  unicon_rows *rows = NULL;
  if (target_ok(ctx,
                unicon_rows_wrap(ctx, "rows", in, UNICON_F32, ROWS, width, 4 * width, 4, &rows)))
    for (int64_t i = 0; i < ROWS; i++)
      if (target_ok(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = rows, .model = model, .side = side),
                                      i, 1, 1, out)))
        for (int64_t k = 0; k < rank; k++) TARGET_HOLDS(!isnan(out[k]));
  unicon_rows_close(rows);
  free(in);
  free(out);
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
    embed(ctx, model, UNICON_X);
    embed(ctx, model, UNICON_Y);
  }
  unicon_model_destroy(model);
  target_done(ctx);
  return 0;
}
