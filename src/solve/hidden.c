/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/hidden.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

/* The rows as the layer sees them, kept in memory if there is room. */
static unicon_status open_input(unicon_ctx *ctx, const unicon__source *source,
                                unicon__hidden *hidden) {
  const unicon__map *map = hidden->map;
  float *mean, *cache;
  hidden->plain = (unicon__map){.in = map->in, .out = map->in, .normalize = map->normalize};
  hidden->input = *source;
  hidden->input.map = &hidden->plain;
  hidden->input.cache = NULL;
  if (map->mean) {
    UNICON_NEW(ctx, mean, map->in);
    UNICON_TRY(unicon__feature_mean(ctx, &hidden->input, mean, NULL));
    hidden->plain.mean = mean;
  }
  return unicon__source_cache(ctx, &hidden->input, &cache);
}

/* b = b + sign W c: between the map's bias and that of centred rows. */
static void shift_bias(const unicon__hidden *hidden, float sign, const float *w, float *b) {
  const int64_t in = hidden->map->in;
  const float *mean = hidden->plain.mean;
  for (int64_t k = 0; mean && k < hidden->map->points; k++)
    b[k] += sign * (float)unicon__vec_best()->dot(w + k * in, mean, in);
}

unicon_status unicon__hidden_open(unicon_ctx *ctx, const unicon__source *source, unicon__map *map,
                                  int64_t batch, double dropout, uint64_t seed, int side,
                                  unicon__hidden *out) {
  const int64_t m = map->points, size = m * map->in;
  *out =
      (unicon__hidden){.ctx = ctx,
                       .map = map,
                       .dropout = dropout,
                       .seed = seed,
                       .stream = side == 0 ? UNICON__STREAM_DROPOUT_X : UNICON__STREAM_DROPOUT_Y};
  UNICON_TRY(open_input(ctx, source, out));
  UNICON_NEW(ctx, out->w, size);
  UNICON_NEW(ctx, out->b, m);
  UNICON_NEW(ctx, out->best_w, size);
  UNICON_NEW(ctx, out->best_b, m);
  UNICON_NEW(ctx, out->gradient_w, size);
  UNICON_NEW(ctx, out->gradient_b, m);
  UNICON_TRY(unicon__adam_open(ctx, size, &out->adam_w));
  UNICON_TRY(unicon__adam_open(ctx, m, &out->adam_b));
  UNICON_NEW(ctx, out->buffer, batch * unicon__map_room(&out->plain));
  UNICON_NEW(ctx, out->h, batch * m);
  UNICON_NEW(ctx, out->phi, batch * m);
  UNICON_NEW(ctx, out->dh, batch * m);
  memcpy(out->w, map->base, (size_t)size * sizeof *out->w);
  memcpy(out->b, map->square, (size_t)m * sizeof *out->b);
  shift_bias(out, 1, out->w, out->b);
  unicon__hidden_keep(out);
  return UNICON_OK;
}

/* Zeroes each entry of a row with probability `dropout`. */
static void drop_units(const unicon__hidden *hidden, float *row, uint64_t number) {
  const uint32_t below = (uint32_t)(hidden->dropout * 4294967296.0);
  const int64_t m = hidden->map->points;
  for (int64_t k = 0; k < m; k += 4) {
    uint32_t word[4];
    unicon__philox(hidden->seed, hidden->stream, number, (uint32_t)(k / 4), word);
    for (int64_t a = k; a < k + 4 && a < m; a++)
      if (word[a - k] < below) row[a] = 0;
  }
}

static float scale_of(const unicon__hidden *hidden) {
  return (float)(sqrt(2.0 / (double)hidden->map->points) / (1 - hidden->dropout));
}

const float *unicon__hidden_forward(unicon__hidden *hidden, const int64_t *row, int64_t count,
                                    int64_t step) {
  const unicon__map *map = hidden->map;
  const int64_t m = map->points;
  const float scale = scale_of(hidden);
  hidden->u = unicon__source_tile(&hidden->input, row, 0, count, hidden->buffer);
  unicon__tiled_sgemm(hidden->ctx, false, true, count, m, map->in, 1, hidden->u, map->in, hidden->w,
                      map->in, 0, hidden->h, m);
  for (int64_t i = 0; i < count; i++) {
    float *h = hidden->h + i * m, *phi = hidden->phi + i * m;
    for (int64_t k = 0; k < m; k++)
      h[k] = h[k] + hidden->b[k] > 0 ? scale * (h[k] + hidden->b[k]) : 0;
    if (hidden->dropout > 0) drop_units(hidden, h, (uint64_t)step << 32 | (uint64_t)row[i]);
    for (int64_t k = 0; k < m; k++) phi[k] = h[k] - (map->mean ? map->mean[k] : 0);
  }
  return hidden->phi;
}

void unicon__hidden_backward(unicon__hidden *hidden, const float *d_phi, int64_t count,
                             const unicon__adam_step *step) {
  const int64_t m = hidden->map->points, in = hidden->map->in;
  const float scale = scale_of(hidden);
  memset(hidden->gradient_b, 0, (size_t)m * sizeof *hidden->gradient_b);
  for (int64_t i = 0; i < count; i++) {
    const float *h = hidden->h + i * m, *from = d_phi + i * m;
    float *d = hidden->dh + i * m;
    for (int64_t k = 0; k < m; k++) {
      d[k] = h[k] > 0 ? scale * from[k] : 0;
      hidden->gradient_b[k] += d[k];
    }
  }
  unicon__tiled_sgemm(hidden->ctx, true, false, m, in, count, 1, hidden->dh, m, hidden->u, in, 0,
                      hidden->gradient_w, in);
  unicon__adam_take(&hidden->adam_w, step, hidden->gradient_w, hidden->w);
  const unicon__adam_step free_step = {step->number, step->rate, 0}; /* biases do not decay */
  unicon__adam_take(&hidden->adam_b, &free_step, hidden->gradient_b, hidden->b);
}

static void publish(unicon__hidden *hidden, const float *w, const float *b) {
  unicon__map *map = hidden->map;
  memcpy(map->base, w, (size_t)(map->points * map->in) * sizeof *w);
  memcpy(map->square, b, (size_t)map->points * sizeof *b);
  shift_bias(hidden, -1, map->base, map->square);
}

void unicon__hidden_publish(unicon__hidden *hidden) {
  publish(hidden, hidden->w, hidden->b);
}

void unicon__hidden_keep(unicon__hidden *hidden) {
  const unicon__map *map = hidden->map;
  memcpy(hidden->best_w, hidden->w, (size_t)(map->points * map->in) * sizeof *hidden->w);
  memcpy(hidden->best_b, hidden->b, (size_t)map->points * sizeof *hidden->b);
}

void unicon__hidden_publish_best(unicon__hidden *hidden) {
  publish(hidden, hidden->best_w, hidden->best_b);
}
