/* SPDX-License-Identifier: Apache-2.0 */
/* Losses whose S_ij depends on s_ij alone: one sweep, no statistics.
 *
 * siglip, z = 1 on positives and -1 on negatives, e = w on positives and epsilon elsewhere:
 *     L = (1/W) sum e_ij log(1 + exp(-z (t s_ij + b))),  W = sum of the weights of the pairs
 *     S_ij = e_ij z t sigma(-z (t s_ij + b)) / W
 *
 * spectral, on dot products, e = 1 on positives and epsilon elsewhere, E their sum:
 *     L = -(2/W) sum_P w_ij s_ij + (1/E) sum e_ij s_ij^2,   S_ij = 2 w_ij / W - 2 e_ij s_ij / E */
#include <math.h>

#include "linalg/vec.h"
#include "loss/entries.h"
#include "loss/loss.h"

typedef struct pointwise {
  double weights;     /* W */
  double entries;     /* E */
  float *held, *keep; /* per slot */
  float *part;        /* per slot: scores of listed negatives */
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
  UNICON_NEW(ctx, st->part, loss->slots * ctx->tile_y);
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    if (!p.weight) st->weights += (double)p.count;
    for (int64_t k = 0; p.weight && k < p.count; k++) st->weights += (double)p.weight[k];
  }
  if (!(st->weights > 0)) st->weights = INFINITY; /* no pair has weight: nothing pulls */
  st->entries = pairs->only_listed ? (double)pairs->positive.count
                                   : (double)pairs->n_x * (double)pairs->n_y - (double)pairs->selfs;
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners listed = unicon__listed(pairs, true, i);
    for (int64_t k = 0; k < listed.count; k++)
      st->entries += unicon__epsilon(pairs, listed, k) - (pairs->only_listed ? 0 : 1);
  }
  return UNICON_OK;
}

/* Copies the listed scores of the tile to `keep`: first place and number. */
static int64_t keep_scores(const unicon__partners p, const unicon__tile *tile, const float *s,
                           float *keep, int64_t *length) {
  const int64_t first = unicon__list_range(p, tile->y0, tile->y0 + tile->ny, length);
  for (int64_t k = 0; k < *length; k++) keep[k] = s[unicon__partner(p, first + k) - tile->y0];
  return first;
}

/* log(1 + e^v) and sigma(v). */
static double softplus(double v, double *sigma) {
  const double e = exp(-fabs(v));
  *sigma = v > 0 ? 1 / (1 + e) : e / (1 + e);
  return (v > 0 ? v : 0) + log1p(e);
}

/* Negatives of row i that count epsilon < 1 were taken as whole ones: the rest of them is taken
 * back from the weights, and its value returned. `part` has their scores. */
static double siglip_parts(const unicon__loss *loss, const unicon__tile *tile,
                           unicon__partners listed, int64_t first, int64_t length,
                           const float *part, float *s) {
  double value = 0, sigma;
  for (int64_t k = 0; k < length; k++) {
    const double epsilon = unicon__epsilon(loss->plane.pairs, listed, first + k);
    if (!(epsilon > 0)) continue;
    value +=
        (1 - epsilon) * softplus(loss->params.scale * (double)part[k] + loss->params.bias, &sigma);
    s[listed.item[first + k] - tile->y0] *= (float)epsilon;
  }
  return value;
}

static void siglip_weigh(unicon__loss *loss, const unicon__tile *tile, int slot) {
  const pointwise *st = loss->state;
  const unicon__vec *vec = unicon__vec_best();
  const double t = loss->params.scale, b = loss->params.bias;
  float *keep = st->keep + slot * st->tile_y, *part = st->part + slot * st->tile_y;
  double value = 0;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    float *s = tile->s + row * tile->ld;
    const unicon__partners p = unicon__positives_x(loss->plane.pairs, i);
    const unicon__partners listed = unicon__listed(loss->plane.pairs, true, i);
    int64_t length, parts;
    const int64_t first = keep_scores(p, tile, s, keep, &length);
    const int64_t first_part = keep_scores(listed, tile, s, part, &parts);
    unicon__mask_row(loss->plane.pairs, i, tile->y0, tile->ny, 0, false, s,
                     st->held + slot * st->tile_y);
    value += vec->sigmoid_weights(s, tile->ny, (float)t, (float)b, (float)(t / st->weights));
    if (listed.weight) value -= siglip_parts(loss, tile, listed, first_part, parts, part, s);
    for (int64_t k = 0; k < length; k++) {
      const double w = unicon__pair_weight(p, first + k);
      double sigma;
      value += w * softplus(-(t * (double)keep[k] + b), &sigma);
      s[unicon__partner(p, first + k) - tile->y0] = (float)(w * t * sigma / st->weights);
    }
  }
  *unicon__cell_value(loss, tile, st->tile_x) += value / st->weights;
}

/* s becomes e s in row i; returns the sum of e s^2. */
static double spectral_mask(const unicon__loss *loss, const unicon__tile *tile, int64_t i, float *s,
                            float *held) {
  const unicon_pairs *pairs = loss->plane.pairs;
  const unicon__vec *vec = unicon__vec_best();
  if (!pairs->only_listed && !pairs->self_x && pairs->ignore.count == 0)
    return vec->sum_squares(s, tile->ny);
  unicon__mask_row(pairs, i, tile->y0, tile->ny, 0, true, s, held);
  for (int64_t j = 0; j < tile->ny; j++) s[j] = s[j] == -INFINITY ? 0 : s[j];
  double squares = vec->sum_squares(s, tile->ny);
  const unicon__partners listed = unicon__listed(pairs, true, i);
  int64_t length;
  const int64_t first = unicon__list_range(listed, tile->y0, tile->y0 + tile->ny, &length);
  for (int64_t k = first; k < first + length && listed.weight; k++) {
    const double epsilon = unicon__epsilon(pairs, listed, k);
    float *at = s + (listed.item[k] - tile->y0);
    squares -= (1 - epsilon) * (double)*at * (double)*at;
    *at *= (float)epsilon;
  }
  return squares;
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
    const int64_t first = keep_scores(p, tile, s, keep, &length);
    squares += spectral_mask(loss, tile, i, s, st->held + slot * st->tile_y);
    vec->scale_shift(s, tile->ny, (float)(-2 / st->entries), NULL);
    for (int64_t k = 0; k < length; k++) {
      const double w = unicon__pair_weight(p, first + k);
      linear += w * (double)keep[k];
      s[unicon__partner(p, first + k) - tile->y0] += (float)(2 * w / st->weights);
    }
  }
  *unicon__cell_value(loss, tile, st->tile_x) += squares / st->entries - 2 * linear / st->weights;
}

/* ---- on a device -------------------------------------------------------------------------- */

static bool pointwise_may_ask(const unicon_ctx *ctx, const unicon__loss *loss) {
  return unicon__entries_few(ctx, loss->plane.pairs);
}

static double siglip_entry(const unicon__loss *loss, const unicon__entry *e, double *part) {
  const pointwise *st = loss->state;
  const double t = loss->params.scale, b = loss->params.bias;
  double sigma;
  if (!e->positive && e->epsilon == 0) return 0;
  const double v = t * unicon__entry_score(loss, e) + b;
  const double share = e->positive ? e->weight : e->epsilon;
  *part += share * softplus(e->positive ? -v : v, &sigma) / st->weights;
  return (e->positive ? share : -share) * t * sigma / st->weights;
}

static unicon_status siglip_ask(unicon_ctx *ctx, unicon__loss *loss, unicon__device_weights *out,
                                double *factor, double *rest) {
  const pointwise *st = loss->state;
  unicon__device_sparse *fixed;
  UNICON_NEW(ctx, fixed, 1);
  UNICON_TRY(unicon__entries_make(ctx, loss, siglip_entry, fixed, rest));
  *factor = 1 / st->weights;
  *out = (unicon__device_weights){.form = UNICON__DEVICE_SIGMOID,
                                  .a = loss->params.scale,
                                  .bias = loss->params.bias,
                                  .scale = loss->params.scale / st->weights,
                                  .fixed = fixed};
  return UNICON_OK;
}

static double spectral_entry(const unicon__loss *loss, const unicon__entry *e, double *part) {
  const pointwise *st = loss->state;
  const double s = unicon__entry_score(loss, e), w = e->positive ? e->weight : 0;
  *part += e->epsilon * s * s / st->entries - 2 * w * s / st->weights;
  return 2 * w / st->weights - 2 * e->epsilon * s / st->entries;
}

static unicon_status spectral_ask(unicon_ctx *ctx, unicon__loss *loss, unicon__device_weights *out,
                                  double *factor, double *rest) {
  const pointwise *st = loss->state;
  unicon__device_sparse *fixed;
  UNICON_NEW(ctx, fixed, 1);
  UNICON_TRY(unicon__entries_make(ctx, loss, spectral_entry, fixed, rest));
  *factor = 1 / st->entries;
  *out = (unicon__device_weights){
      .form = UNICON__DEVICE_SQUARE, .scale = 2 / st->entries, .fixed = fixed};
  return UNICON_OK;
}

const unicon__loss_ops unicon__loss_siglip = {
    .name = "siglip",
    .cosine = true,
    .pointwise = true,
    .begin = pointwise_begin,
    .weigh = siglip_weigh,
    .ask_weights = siglip_ask,
    .may_ask = pointwise_may_ask,
};

const unicon__loss_ops unicon__loss_spectral = {
    .name = "spectral",
    .pointwise = true,
    .begin = pointwise_begin,
    .weigh = spectral_weigh,
    .ask_weights = spectral_ask,
    .may_ask = pointwise_may_ask,
};
