/* SPDX-License-Identifier: Apache-2.0 */
#include "core/loss.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

static const unicon__loss_ops *const table[] = {
    [UNICON__LOSS_CLIP] = &unicon__loss_exp,
    [UNICON__LOSS_INFONCE] = &unicon__loss_exp,
    [UNICON__LOSS_SUPCON] = &unicon__loss_exp,
};

void unicon__loss_params_from(const unicon_options *options, unicon__loss_params *out) {
  out->kind = unicon__word(options, UNICON__LOSS);
  out->temperature = unicon__number(options, UNICON__TEMPERATURE);
}

/* Z_x or Z_y: sum over rows of (sum of weights) / (number of positives). */
static double normalizer(const unicon_pairs *pairs, bool x) {
  const int64_t n = x ? pairs->n_x : pairs->n_y;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const unicon__partners p = x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
    if (p.count == 0) continue;
    double weights = p.weight ? 0 : (double)p.count;
    for (int64_t k = 0; p.weight && k < p.count; k++) weights += (double)p.weight[k];
    sum += weights / (double)p.count;
  }
  return sum;
}

void unicon__plane_init(unicon__plane *plane, const unicon_pairs *pairs, int64_t r, const float *zx,
                        const float *zy) {
  *plane = (unicon__plane){.n_x = pairs->n_x, .n_y = pairs->n_y, .r = r, .zx = zx, .zy = zy,
                           .pairs = pairs};
  plane->weight_x = normalizer(pairs, true);
  plane->weight_y = normalizer(pairs, false);
}

unicon_status unicon__loss_begin(unicon_ctx *ctx, const unicon__loss_params *params,
                                 const unicon__plane *plane, unicon__loss *out) {
  *out = (unicon__loss){.ops = table[params->kind], .plane = *plane, .params = *params,
                        .slots = unicon__workers(ctx)};
  UNICON_NEW(ctx, out->tile_value, (plane->n_x + ctx->tile_x - 1) / ctx->tile_x);
  return out->ops->begin(ctx, out);
}

static void hide(unicon__partners p, int64_t y0, int64_t ny, float *s) {
  int64_t length;
  const int64_t first = unicon__list_range(p, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++) s[p.item[k] - y0] = -INFINITY;
}

/* Copies the listed scores of `from` into `to`. */
static void show(unicon__partners p, int64_t y0, int64_t ny, const float *from, float *to) {
  int64_t length;
  const int64_t first = unicon__list_range(p, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++) to[p.item[k] - y0] = from[p.item[k] - y0];
}

void unicon__mask_row(const unicon_pairs *pairs, int64_t i, int64_t y0, int64_t ny, float *s,
                      bool keep_positives, float *held) {
  if (pairs->only_listed) {
    memcpy(held, s, (size_t)ny * sizeof *s);
    for (int64_t j = 0; j < ny; j++) s[j] = -INFINITY;
    show(unicon__list_at(&pairs->negative.by_x, i), y0, ny, held, s);
    if (keep_positives) show(unicon__positives_x(pairs, i), y0, ny, held, s);
    return;
  }
  if (!keep_positives) hide(unicon__positives_x(pairs, i), y0, ny, s);
  if (pairs->ignore.count > 0) hide(unicon__list_at(&pairs->ignore.by_x, i), y0, ny, s);
}
