/* SPDX-License-Identifier: Apache-2.0 */
#include "core/embed.h"

#include "core/project.h"

unicon_status unicon__lens_open(unicon_ctx *ctx, const unicon_view *view, unicon__lens *lens) {
  if (!view || !view->rows)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a view needs rows");
  if (view->side != UNICON_X && view->side != UNICON_Y)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "side is %d; accepted: 0 (x) or 1 (y)",
                        (int)view->side);
  const unicon_rows *rows = view->rows;
  *lens = (unicon__lens){.source = {.rows = rows, .count = rows->count}, .r = rows->width};
  if (!view->model) {
    lens->identity = (unicon__map){.in = rows->width, .out = rows->width};
    lens->source.map = &lens->identity;
    return UNICON_OK;
  }
  const unicon__map *map = &view->model->map[view->side];
  if (rows->width != map->in)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld values, but side %s of the model takes %lld",
                        rows->name, (long long)rows->width, view->side == UNICON_X ? "x" : "y",
                        (long long)map->in);
  lens->source.map = map;
  lens->weight = view->model->weight[view->side];
  lens->r = view->model->rank;
  return UNICON_OK;
}

unicon_status unicon__lens_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out) {
  return unicon__project(ctx, &lens->source, lens->weight, lens->r, first, count, unit, true, out);
}

static unicon_status embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                           bool unit, float *out) {
  unicon__lens lens;
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  if (!out || first < 0 || count < 0 || first > lens.source.count - count)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "rows %lld to %lld asked of %s, which has %lld",
                        (long long)first, (long long)(first + count - 1), view->rows->name,
                        (long long)lens.source.count);
  return unicon__lens_rows(ctx, &lens, first, count, unit, out);
}

unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                           int unit, float *out) {
  if (!ctx) return UNICON_ERR_ARGUMENT;
  unicon__block *frame = unicon__enter(ctx);
  return unicon__leave(ctx, frame, embed(ctx, view, first, count, unit != 0, out));
}
