/* SPDX-License-Identifier: Apache-2.0 */
/* One row at a time, for queries as they come: no context, no memory of its own, no locks and no
 * BLAS. The weights are read once, 4 p r bytes, which is nearly all of the time. */
#include <math.h>
#include <string.h>

#include "features/project.h"
#include "linalg/vec.h"
#include "model/model.h"

int64_t unicon_embed_one_room(const unicon_model *model, unicon_side side) {
  int64_t most = 0;
  if (!model || (side != UNICON_X && side != UNICON_Y)) return 0;
  for (int64_t b = 0; b < model->parts; b++) {
    const unicon__map *map = &model->part[b].map[side];
    const int64_t room = map->in + map->points;
    most = room > most ? room : most;
  }
  return most;
}

/* Features of the row in `raw`, which is changed: there, or behind it in `room`. */
static const float *features_of(const unicon__map *map, float *raw, float *room) {
  const unicon__vec *vec = unicon__vec_best();
  if (map->kind == UNICON__MAP_LINEAR) {
    unicon__map_apply(map, raw, 1);
    return raw;
  }
  if (map->normalize) unicon__unit_rows(raw, 1, map->in);
  if (map->center) vec->scale_shift(raw, map->in, 1, map->center);
  const float *points = map->center ? map->near : map->base;
  for (int64_t k = 0; k < map->points; k++)
    room[k] = (float)vec->dot(points + k * map->in, raw, map->in);
  float square;
  unicon__map_pointwise(map, raw, 1, &square, room);
  if (map->mean) vec->scale_shift(room, map->out, 1, map->mean);
  return room;
}

unicon_status unicon_embed_one(const unicon_model *model, unicon_side side, const float *row,
                               float *room, float *out) {
  if (!model || !row || !room || !out || (side != UNICON_X && side != UNICON_Y))
    return UNICON_ERR_ARGUMENT;
  const unicon__vec *vec = unicon__vec_best();
  int64_t column = 0, bad;
  for (int64_t b = 0; b < model->parts; b++) {
    const unicon__part *part = &model->part[b];
    const unicon__map *map = &part->map[side];
    const unicon__row_need need = part->weight[side] ? unicon__map_need(map) : UNICON__ROW_DIRECTED;
    if (b == 0 && unicon__first_bad_row(row, 1, map->in, need, &bad) >= 0) return UNICON_ERR_DATA;
    memcpy(room, row, (size_t)map->in * sizeof *room);
    const float *phi = features_of(map, room, room + map->in);
    float *z = out + column;
    if (part->offset[side])
      memcpy(z, part->offset[side], (size_t)part->rank * sizeof *z);
    else
      memset(z, 0, (size_t)part->rank * sizeof *z);
    if (part->weight[side])
      vec->add_rows(z, part->weight[side], map->out, part->rank, phi);
    else
      memcpy(z, phi, (size_t)part->rank * sizeof *z);
    unicon__scale_rows(z, 1, part->rank, part->rank, model->parts > 1 ? sqrt(part->share) : 1);
    column += part->rank;
  }
  if (model->parts > 1) unicon__scale_rows(out, 1, model->rank, model->rank, 1);
  for (int64_t k = 0; k < model->rank; k++)
    if (!isfinite(out[k])) return UNICON_ERR_NUMERIC;
  return UNICON_OK;
}
