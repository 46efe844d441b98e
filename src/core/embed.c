/* SPDX-License-Identifier: Apache-2.0 */
#include "core/embed.h"

#include <math.h>

#include "core/project.h"
#include "linalg/blas.h"

unicon_status unicon__lens_open(unicon_ctx *ctx, const unicon_view *view, unicon__lens *lens) {
  if (!view || !view->rows) return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a view needs rows");
  if (view->side != UNICON_X && view->side != UNICON_Y)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "side is %d; accepted: 0 (x) or 1 (y)",
                        (int)view->side);
  const unicon_rows *rows = view->rows;
  if (rows->width > UNICON__MAX_WIDTH)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld values: at most %d are supported", rows->name,
                        (long long)rows->width, UNICON__MAX_WIDTH);
  *lens = (unicon__lens){rows, view->model, (int)view->side, rows->count, rows->width};
  if (!view->model) return UNICON_OK;
  const int64_t width = unicon_model_width(view->model, view->side);
  if (rows->width != width)
    return unicon__fail(
        ctx, UNICON_ERR_SHAPE, "%s has rows of %lld values, but side %s of the model takes %lld",
        rows->name, (long long)rows->width, view->side == UNICON_X ? "x" : "y", (long long)width);
  lens->r = view->model->rank;
  return UNICON_OK;
}

unicon_status unicon__lens_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out) {
  const unicon_model *model = lens->model;
  unicon__source source = {.rows = lens->rows, .count = lens->count};
  if (!model) {
    const unicon__map identity = {.in = lens->r, .out = lens->r};
    source.map = &identity;
    return unicon__project(ctx, &source, NULL, lens->r, first, count, unit, true, out, lens->r);
  }
  const bool fused = model->parts > 1;
  int64_t column = 0;
  for (int64_t b = 0; b < model->parts; b++) {
    const unicon__part *part = &model->part[b];
    source.map = &part->map[lens->side];
    UNICON_TRY(unicon__project(ctx, &source, part->weight[lens->side], part->rank, first, count,
                               unit || fused, b == 0, out + column, model->rank));
    if (fused) unicon__scale_rows(out + column, count, part->rank, model->rank, sqrt(part->share));
    column += part->rank;
  }
  if (fused && unit) unicon__scale_rows(out, count, model->rank, model->rank, 1);
  return UNICON_OK;
}

static unicon_status embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                           bool unit, float *out) {
  unicon__lens lens;
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  if (!out || first < 0 || count < 0 || count > lens.count || first > lens.count - count)
    return unicon__fail(
        ctx, UNICON_ERR_ARGUMENT, "%lld rows from row %lld on were asked of %s, which has %lld",
        (long long)count, (long long)first, view->rows->name, (long long)lens.count);
  return unicon__lens_rows(ctx, &lens, first, count, unit, out);
}

unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                           int unit, float *out) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, embed(ctx, view, first, count, unit != 0, out));
}
