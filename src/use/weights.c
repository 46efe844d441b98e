/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_weights: the matrix S = -dL/ds itself, for a picture of a few rows. */
#include <string.h>

#include "io/object.h"
#include "model/embed.h"
#include "loss/pass.h"
#include "linalg/tiled.h"
#include "unicon/tools.h"

typedef struct picture {
  float *weights;
  int64_t n_y;
} picture;

static void keep_tile(void *state, const unicon__tile *tile, int slot) {
  (void)slot;
  const picture *p = state;
  for (int64_t i = 0; i < tile->nx; i++)
    memcpy(p->weights + (tile->x0 + i) * p->n_y + tile->y0, tile->s + i * tile->ld,
           (size_t)tile->ny * sizeof *tile->s);
}

/* S at s = 0 of supcon is `moment`: with rows of zeros on one side all scores are 0. */
static unicon_status weigh(unicon_ctx *ctx, unicon__loss_params params, const unicon_pairs *pairs,
                           int64_t r, float *zx, float *zy, float *weights, double *value) {
  unicon__plane plane;
  unicon__loss loss;
  if (params.kind == UNICON__LOSS_MOMENT) {
    params.kind = UNICON__LOSS_SUPCON;
    params.direction = UNICON__DIRECTION_BOTH;
    memset(zx, 0, (size_t)(pairs->n_x * r) * sizeof *zx);
  }
  unicon__plane_init(&plane, pairs, r, zx, zy);
  UNICON_TRY(unicon__loss_begin(ctx, &params, &plane, &loss));
  loss.at_home = true;
  if (!weights || !loss.ops->pointwise) UNICON_TRY(unicon__pass_observe(ctx, &loss));
  if (weights) {
    picture p = {weights, pairs->n_y};
    UNICON_TRY(unicon__pass_weights(ctx, &loss, &(unicon__consumer){&p, keep_tile, NULL, NULL}));
  }
  if (value) *value = loss.value;
  return UNICON_OK;
}

static unicon_status draw(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                          const unicon_pairs *pairs, const unicon_options *options, float *scores,
                          float *weights, double *value) {
  unicon__lens lens_x, lens_y;
  unicon__loss_params params;
  float *zx, *zy;
  UNICON_NEED(ctx, pairs);
  UNICON_TRY(unicon__lens_open(ctx, x, &lens_x));
  UNICON_TRY(unicon__lens_open(ctx, y, &lens_y));
  const int64_t n_x = lens_x.count, n_y = lens_y.count, r = lens_x.r;
  if (r != lens_y.r || pairs->n_x != n_x || pairs->n_y != n_y)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "x is %lld by %lld, y %lld by %lld and the pairs are for %lld by %lld "
                        "rows; they must fit together",
                        (long long)n_x, (long long)r, (long long)n_y, (long long)lens_y.r,
                        (long long)pairs->n_x, (long long)pairs->n_y);
  unicon__loss_params_from(options, &params);
  const bool unit = params.kind != UNICON__LOSS_SPECTRAL;
  UNICON_NEW(ctx, zx, n_x * r);
  UNICON_NEW(ctx, zy, n_y * r);
  UNICON_TRY(unicon__lens_rows(ctx, &lens_x, 0, n_x, unit, zx, r));
  UNICON_TRY(unicon__lens_rows(ctx, &lens_y, 0, n_y, unit, zy, r));
  if (scores) unicon__tiled_sgemm(ctx, false, true, n_x, n_y, r, 1, zx, r, zy, r, 0, scores, n_y);
  if (!weights && !value) return unicon__poll(ctx);
  return weigh(ctx, params, pairs, r, zx, zy, weights, value);
}

unicon_status unicon_weights(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                             const unicon_pairs *pairs, const unicon_options *options,
                             float *scores, float *weights, double *loss) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, draw(ctx, x, y, pairs, options, scores, weights, loss));
}
