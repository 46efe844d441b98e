/* SPDX-License-Identifier: Apache-2.0 */
/* Which landmarks are rows that go. */
#include <math.h>
#include <stdlib.h>

#include "kept/kept.h"

/* Landmarks at length 1 may have been made on another machine, where the sum of squares was rounded
 * otherwise: the same row is theirs up to a factor. Others are the rows, bit for bit. */
static double tolerance(const unicon__map *map) {
  return map->normalize ? ldexp(1, -14) : 0;
}

/* A number of a row by which it is looked up: the sum of its values, every other about with its sign
 * changed. That of a unit row whose values are off by a factor is off by less than that times (1 +
 * its size). */
static double number_of(const float *row, int64_t width) {
  double sum = 0;
  for (int64_t k = 0; k < width; k++) {
    const bool minus = (uint64_t)k * 0x9e3779b97f4a7c15u >> 63;
    sum += minus ? -(double)row[k] : (double)row[k];
  }
  return sum;
}

static bool are_same(const float *row, const float *landmark, int64_t width, double near) {
  for (int64_t k = 0; k < width; k++)
    if (!(fabs((double)row[k] - (double)landmark[k]) <= near * fabs((double)landmark[k])))
      return false;
  return true;
}

static int by_number(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b; /* the first member */
  return (left > right) - (left < right);
}

unicon_status unicon__landmarks_list(unicon_ctx *ctx, const unicon__map *map,
                                     unicon__landmarks *out) {
  *out = (unicon__landmarks){.map = map};
  if (!unicon__map_is_kernel(map)) return UNICON_OK;
  UNICON_NEW(ctx, out->list, map->points);
  UNICON_NEW(ctx, out->gone, map->points);
  for (int64_t k = 0; k < map->points; k++)
    out->list[k] = (unicon__landmark){number_of(map->base + k * map->in, map->in), k};
  qsort(out->list, (size_t)map->points, sizeof *out->list, by_number);
  return UNICON_OK;
}

/* The first landmark whose number is not below. */
static int64_t first_from(const unicon__landmarks *l, double number) {
  int64_t low = 0, high = l->map->points;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (l->list[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

unicon_status unicon__landmarks_mark(unicon_ctx *ctx, const unicon__source *source,
                                     unicon__landmarks *l) {
  const unicon__map *map = l->map;
  const double near = tolerance(map);
  float *row;
  if (!l->list) return UNICON_OK;
  UNICON_NEW(ctx, row, map->in);
  for (int64_t i = 0; i < source->count; i++) {
    unicon__source_load(source, NULL, i, 1, row);
    if (map->normalize) unicon__unit_rows(row, 1, map->in);
    const double number = number_of(row, map->in), far = near * (1 + fabs(number));
    for (int64_t k = first_from(l, number - far);
         k < map->points && l->list[k].number <= number + far; k++) {
      const int64_t at = l->list[k].at;
      if (l->gone[at] || !are_same(row, map->base + at * map->in, map->in, near)) continue;
      l->gone[at] = 1;
      l->found++;
    }
  }
  unicon__drop(ctx, row);
  return UNICON_OK;
}
