/* SPDX-License-Identifier: Apache-2.0 */
/* Losses whose S_ij depends on s_ij alone: one sweep, no statistics.
 *
 * siglip, z = 1 on positives and -1 on negatives, e = w on positives:
 *     L = (1/W) sum e_ij log(1 + exp(-z (t s_ij + b))),  W = sum of the weights of the pairs
 *     S_ij = e_ij z t sigma(-z (t s_ij + b)) / W
 *
 * spectral, on dot products, E = number of pairs that are not ignored:
 *     L = -(2/W) sum_P w_ij s_ij + (1/E) sum s_ij^2,   S_ij = 2 w_ij / W - 2 s_ij / E */
#include <math.h>

#include "loss/loss.h"
#include "linalg/vec.h"

typedef struct pointwise {
  double weights;     /* W */
  double entries;     /* E */
  float *held, *keep; /* per slot */
  int64_t tile_x, tile_y;
} pointwise;

static unicon_status pointwise_begin(unicon_ctx *ctx, unicon__loss *loss) {
  const unicon_pairs *pairs = loss->plane.pairs;
  pointwise *st;
  UNICON_NEW(ctx, st, 1);
  loss->state = st;
  st->tile_x = ctx->tile_x;
  st->tile_y = ctx->tile_y;
  UNICON_NEW(ctx, st->held, loss->slots * ctx->tile_y);
  UNICON_NEW(ctx, st->keep, loss->slots * ctx->tile_y);
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    if (!p.weight) st->weights += (double)p.count;
    for (int64_t k = 0; p.weight && k < p.count; k++) st->weights += (double)p.weight[k];
  }
  if (!(st->weights > 0)) st->weights = INFINITY; /* no pair has weight: nothing pulls */
  st->entries = pairs->only_listed
                    ? (double)(pairs->positive.count + pairs->negative.count)
                    : (double)pairs->n_x * (double)pairs->n_y - (double)pairs->ignore.count;
  return UNICON_OK;
}

/* Copies the scores of row i's positives in the tile to `keep`: first place and number. */
static int64_t keep_positives(const unicon__partners p, const unicon__tile *tile, const float *s,
                              float *keep, int64_t *length) {
  const int64_t first = unicon__list_range(p, tile->y0, tile->y0 + tile->ny, length);
  for (int64_t k = 0; k < *length; k++) keep[k] = s[p.item[first + k] - tile->y0];
  return first;
}

/* log(1 + e^v) and sigma(v). */
static double softplus(double v, double *sigma) {
  const double e = exp(-fabs(v));
  *sigma = v > 0 ? 1 / (1 + e) : e / (1 + e);
  return (v > 0 ? v : 0) + log1p(e);
}

static void siglip_weigh(unicon__loss *loss, const unicon__tile *tile, int slot) {
  const pointwise *st = loss->state;
  const unicon__vec *vec = unicon__vec_best();
  const double t = loss->params.scale, b = loss->params.bias;
  float *keep = st->keep + slot * st->tile_y;
  double value = 0;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    float *s = tile->s + row * tile->ld;
    const unicon__partners p = unicon__positives_x(loss->plane.pairs, i);
    int64_t length;
    const int64_t first = keep_positives(p, tile, s, keep, &length);
    unicon__mask_row(loss->plane.pairs, i, tile->y0, tile->ny, s, false,
                     st->held + slot * st->tile_y);
    value += vec->sigmoid_weights(s, tile->ny, (float)t, (float)b, (float)(t / st->weights));
    for (int64_t k = 0; k < length; k++) {
      const double w = unicon__pair_weight(p, first + k);
      double sigma;
      value += w * softplus(-(t * (double)keep[k] + b), &sigma);
      s[p.item[first + k] - tile->y0] = (float)(w * t * sigma / st->weights);
    }
  }
  *unicon__cell_value(loss, tile, st->tile_x) += value / st->weights;
}

static void spectral_weigh(unicon__loss *loss, const unicon__tile *tile, int slot) {
  const pointwise *st = loss->state;
  const unicon__vec *vec = unicon__vec_best();
  float *keep = st->keep + slot * st->tile_y;
  double squares = 0, linear = 0;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    float *s = tile->s + row * tile->ld;
    const unicon__partners p = unicon__positives_x(loss->plane.pairs, i);
    int64_t length;
    const int64_t first = keep_positives(p, tile, s, keep, &length);
    if (loss->plane.pairs->only_listed || loss->plane.pairs->ignore.count > 0) {
      unicon__mask_row(loss->plane.pairs, i, tile->y0, tile->ny, s, true,
                       st->held + slot * st->tile_y);
      for (int64_t j = 0; j < tile->ny; j++) s[j] = s[j] == -INFINITY ? 0 : s[j];
    }
    squares += vec->sum_squares(s, tile->ny);
    vec->scale_shift(s, tile->ny, (float)(-2 / st->entries), NULL);
    for (int64_t k = 0; k < length; k++) {
      const double w = unicon__pair_weight(p, first + k);
      linear += w * (double)keep[k];
      s[p.item[first + k] - tile->y0] += (float)(2 * w / st->weights);
    }
  }
  *unicon__cell_value(loss, tile, st->tile_x) += squares / st->entries - 2 * linear / st->weights;
}

const unicon__loss_ops unicon__loss_siglip = {
    "siglip", true, true, pointwise_begin, NULL, NULL, NULL, NULL, NULL, siglip_weigh,
};

const unicon__loss_ops unicon__loss_spectral = {
    "spectral", false, true, pointwise_begin, NULL, NULL, NULL, NULL, NULL, spectral_weigh,
};
