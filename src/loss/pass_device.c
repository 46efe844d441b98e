/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/pass_device.h"

#include <string.h>

#include "features/feed.h"

typedef struct walking {
  unicon__loss *loss;
  const unicon__source *x, *y; /* NULL: the value alone */
  double *c;
} walking;

static double flops_of(const unicon__plane *plane, double p_y) {
  return 2 * (double)plane->n_x * (double)plane->n_y * ((double)plane->r + p_y);
}

/* Is there a device for it, and a form of the loss? The second goes without saying only where the
 * tiles are wanted here. */
static bool may_run(unicon_ctx *ctx, const unicon__loss *loss, bool served, bool asked) {
  if (!served || loss->at_home) return false;
  if (asked && loss->ops->may_ask(ctx, loss)) return true;
  if (!ctx->where.told)
    unicon__log(ctx, UNICON_LOG_INFO,
                "loss: on the CPU; devices do not compute this loss with these pairs");
  ctx->where.told = true;
  return false;
}

static unicon_status upload_plane(unicon_ctx *ctx, const unicon__plane *plane,
                                  unicon__device_room *room, unicon__device_plane *out) {
  const int64_t r = plane->r;
  unicon__matrix *zx, *zy;
  if (plane->on[0] && plane->on[1]) {
    *out = (unicon__device_plane){plane->on[0], plane->on[1], plane->n_x, plane->n_y, r};
    return UNICON_OK;
  }
  UNICON_TRY(unicon__device_copy(ctx, room, plane->zx, plane->n_x, r, r, &zx));
  UNICON_TRY(unicon__device_copy(ctx, room, plane->zy, plane->n_y, r, r, &zy));
  *out = (unicon__device_plane){zx, zy, plane->n_x, plane->n_y, r};
  return UNICON_OK;
}

/* ---- sums --------------------------------------------------------------------------------- */

/* The sums go to the loss when they are all there. */
static unicon_status sums_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const walking *w = state;
  const int64_t n_x = w->loss->plane.n_x, n_y = w->loss->plane.n_y;
  unicon__device_plane plane;
  unicon__device_exp wanted, own;
  UNICON_TRY(w->loss->ops->ask_sums(ctx, w->loss, &wanted));
  own = wanted;
  UNICON_NEW(ctx, own.row_top, n_x);
  UNICON_NEW(ctx, own.row_sum, n_x);
  UNICON_NEW(ctx, own.column_top, n_y);
  UNICON_NEW(ctx, own.column_sum, n_y);
  UNICON_TRY(upload_plane(ctx, &w->loss->plane, room, &plane));
  UNICON_TRY(unicon__on(ctx, exp_sums, &plane, &own));
  memcpy(wanted.row_top, own.row_top, (size_t)n_x * sizeof *own.row_top);
  memcpy(wanted.row_sum, own.row_sum, (size_t)n_x * sizeof *own.row_sum);
  memcpy(wanted.column_top, own.column_top, (size_t)n_y * sizeof *own.column_top);
  memcpy(wanted.column_sum, own.column_sum, (size_t)n_y * sizeof *own.column_sum);
  return UNICON_OK;
}

unicon_status unicon__device_observe(unicon_ctx *ctx, unicon__loss *loss, bool *done) {
  walking w = {.loss = loss};
  *done = false;
  const bool served = unicon__device_serves(ctx, exp_sums, flops_of(&loss->plane, 0));
  if (!may_run(ctx, loss, served, loss->ops->ask_sums != NULL)) return UNICON_OK;
  const int stage = unicon__stage_begin(ctx, "loss", 0);
  UNICON_TRY(unicon__device_run(ctx, "loss", sums_road, &w, done));
  if (*done) ctx->where.lowered = ctx->where.reduced;
  unicon__stage_end(ctx, stage);
  return *done ? loss->ops->settle(ctx, loss, 0) : UNICON_OK;
}

/* ---- weights ------------------------------------------------------------------------------ */

/* Rows of a block: all where they are kept as they stand. */
static int64_t block_of(unicon_ctx *ctx, const unicon__source *source, double share) {
  const bool whole = unicon__is_kept(source) && source->kept->count == source->count;
  const double gathered = whole ? 0 : 4.0 * (double)source->map->out;
  return unicon__feed_rows(ctx, source, source->count, gathered, share);
}

/* Windows of blocks of y and of x; C stays on the device. */
static unicon_status walk_blocks(unicon_ctx *ctx, const walking *w, unicon__device_room *room,
                                 const unicon__device_plane *plane, unicon__device_weights *weights,
                                 unicon__matrix *c, double *value) {
  const int64_t n_x = plane->n_x, n_y = plane->n_y;
  unicon__feed feed_x, feed_y;
  const int64_t block_y = block_of(ctx, w->y, 0.4), block_x = block_of(ctx, w->x, 0.2);
  UNICON_TRY(unicon__feed_open(ctx, room, w->y, block_y, &feed_y));
  UNICON_TRY(unicon__feed_open(ctx, room, w->x, block_x, &feed_x));
  const int64_t down = (n_x + block_x - 1) / block_x, across = (n_y + block_y - 1) / block_y;
  for (int64_t j = 0; j < across; j++) {
    weights->y0 = j * block_y;
    weights->n_y = n_y - weights->y0 < block_y ? n_y - weights->y0 : block_y;
    UNICON_TRY(unicon__feed_block(ctx, &feed_y, NULL, weights->y0, weights->n_y, &weights->phi_y,
                                  &weights->phi_y0));
    for (int64_t i = 0; i < down; i++) {
      weights->x0 = i * block_x;
      weights->n_x = n_x - weights->x0 < block_x ? n_x - weights->x0 : block_x;
      UNICON_TRY(unicon__stage_step(ctx, j * down + i, across * down));
      UNICON_TRY(unicon__feed_block(ctx, &feed_x, NULL, weights->x0, weights->n_x, &weights->phi_x,
                                    &weights->phi_x0));
      UNICON_TRY(unicon__on(ctx, weigh, plane, weights, c, value));
    }
  }
  return UNICON_OK;
}

static unicon_status weights_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const walking *w = state;
  unicon__loss *loss = w->loss;
  double value = 0, factor, rest, *result = loss->ops->pointwise ? &value : NULL;
  unicon__device_plane plane;
  unicon__device_weights weights;
  unicon__matrix *c = NULL;
  UNICON_TRY(loss->ops->ask_weights(ctx, loss, &weights, &factor, &rest));
  UNICON_TRY(upload_plane(ctx, &loss->plane, room, &plane));
  if (w->x) {
    const int64_t p_x = w->x->map->out, p_y = w->y->map->out;
    UNICON_TRY(unicon__device_new(ctx, room, p_x, p_y, UNICON__ELEMENT_F64, &c));
    UNICON_TRY(walk_blocks(ctx, w, room, &plane, &weights, c, result));
    UNICON_TRY(unicon__on(ctx, download, c, 0, p_x, w->c, p_y * (int64_t)sizeof *w->c));
  } else {
    weights.n_x = plane.n_x;
    weights.n_y = plane.n_y;
    UNICON_TRY(unicon__on(ctx, weigh, &plane, &weights, NULL, result));
  }
  if (loss->ops->pointwise) loss->value = factor * value + rest;
  return UNICON_OK;
}

unicon_status unicon__device_cross(unicon_ctx *ctx, unicon__loss *loss, const unicon__source *x,
                                   const unicon__source *y, double *c, bool *done) {
  walking w = {.loss = loss, .x = x, .y = y, .c = c};
  const double flops = flops_of(&loss->plane, y ? (double)y->map->out : 0);
  *done = false;
  const bool served = unicon__device_serves(ctx, weigh, flops) &&
                      unicon__device_serves(ctx, features, flops) &&
                      unicon__device_serves(ctx, gather, flops);
  if (!may_run(ctx, loss, served, loss->ops->ask_weights != NULL)) return UNICON_OK;
  const int stage = unicon__stage_begin(ctx, "weights", 0);
  UNICON_TRY(unicon__device_run(ctx, "weights", weights_road, &w, done));
  if (*done) ctx->where.lowered = ctx->where.reduced;
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}
