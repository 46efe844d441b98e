/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of statistics that are kept: fitted on rows once, or taken from a model. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "features/mapfit.h"
#include "kept/kept.h"
#include "linalg/blas.h"

/* ---- making them -------------------------------------------------------------------------- */

/* The map of a side without a fit of its own: linear stays linear whatever the rows. */
static unicon_status check_kind(unicon_ctx *ctx, const unicon_options *options) {
  if (unicon__is(options, UNICON__MAP, "exact"))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "map is exact, which has a feature for every row; statistics take linear, "
                        "nystrom or random");
  if (unicon__word(options, UNICON__LANDMARK_METHOD) < 0)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "landmark_method is a file; statistics take uniform or pivot");
  return UNICON_OK;
}

static unicon_status fit_side(unicon_ctx *ctx, const unicon__map_params *all, int s,
                              const unicon_rows *rows, bool drop, unicon_stats *stats) {
  unicon__map_params params = *all;
  unicon__source source = {.rows = rows, .count = rows->count};
  const bool linear = params.kernel[s] == UNICON__KERNEL_LINEAR;
  if (params.by_size) params.kind = linear ? UNICON__MAP_LINEAR : UNICON__MAP_NYSTROM;
  params.by_size = false;
  if (!linear) /* landmarks and widths come from rows that can be used */
    UNICON_TRY(unicon__usable_rows(ctx, rows,
                                   params.normalize ? UNICON__ROW_DIRECTED : UNICON__ROW_SQUARED,
                                   drop, &source.index, &source.count, NULL));
  unicon__blas_begin();
  const unicon_status status =
      unicon__map_fit(ctx, &stats->arena, &params, s, NULL, 0, &source, &stats->map[s]);
  unicon__blas_end();
  return status;
}

unicon_status unicon__kept_fit_maps(unicon_ctx *ctx, const unicon_data *data,
                                    const unicon_options *options, unicon_stats *stats) {
  unicon__map_params params;
  const bool drop = unicon__is(options, UNICON__BAD_ROWS, "drop");
  UNICON_TRY(check_kind(ctx, options));
  unicon__map_params_from(options, &params);
  UNICON_TRY(fit_side(ctx, &params, 0, data->x, drop, stats));
  return fit_side(ctx, &params, 1, data->y, drop, stats);
}

unicon_status unicon__kept_copy_map(unicon_ctx *ctx, unicon__arena *arena, const unicon__map *from,
                                    unicon__map *to) {
  unicon__part part = {.map = {*from}}, copy = {.rank = 0};
  part.map[0].mean = NULL;
  UNICON_TRY(unicon__part_copy_side(ctx, arena, &part, 0, &copy));
  *to = copy.map[0];
  return UNICON_OK;
}

/* Options that the maps of a model have settled. */
static unicon_status check_settled(unicon_ctx *ctx, const unicon_options *options) {
  static const int settled[] = {UNICON__NORMALIZE, UNICON__KERNEL,          UNICON__KERNEL_X,
                                UNICON__KERNEL_Y,  UNICON__WIDTH,           UNICON__MAP,
                                UNICON__LANDMARKS, UNICON__LANDMARK_METHOD, UNICON__FEATURES};
  for (size_t k = 0; k < sizeof settled / sizeof *settled; k++)
    if (unicon__given(options, settled[k]))
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "%s has no effect with the maps of a model, which settle that",
                          unicon__option_row(settled[k])->name);
  return UNICON_OK;
}

/* A model keeps the landmarks; the factor, which its weights have taken in, is made again. */
unicon_status unicon__kept_take_maps(unicon_ctx *ctx, const unicon_model *model,
                                     const unicon_options *options, unicon_stats *stats) {
  UNICON_TRY(check_settled(ctx, options));
  if (model->parts != 1)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "the model is fused of %lld parts, which have no map in common",
                        (long long)model->parts);
  for (int s = 0; s < 2; s++) {
    unicon__map *map = &stats->map[s];
    UNICON_TRY(unicon__kept_copy_map(ctx, &stats->arena, &model->part[0].map[s], map));
    if (!unicon__map_is_kernel(map)) continue;
    unicon__blas_begin();
    const unicon_status status = unicon__map_factor(
        ctx, &stats->arena, unicon__number(options, UNICON__KERNEL_RIDGE), s, map);
    unicon__blas_end();
    UNICON_TRY(status);
    map->kind = UNICON__MAP_NYSTROM;
  }
  return UNICON_OK;
}

/* ---- comparing them ----------------------------------------------------------------------- */

static uint64_t hash_floats(uint64_t h, const float *data, int64_t count) {
  return unicon__hash(h, data, data ? (size_t)count * sizeof *data : 0);
}

static uint64_t hash_tables(uint64_t h, const unicon__map *map) {
  if (map->kind == UNICON__MAP_LINEAR) return h;
  h = hash_floats(h, map->base, map->points * map->in);
  if (map->kind == UNICON__MAP_RANDOM)
    return hash_floats(h, unicon__kernel_is_fourier(map->kernel.kind) ? map->square : NULL,
                       map->points);
  return hash_floats(h, map->factor, map->points * map->out);
}

/* Is the width, or the degree, something that the kernel has? */
static double width_of(const unicon__kernel *kernel) {
  return kernel->kind == UNICON__KERNEL_POLY      ? (double)kernel->degree
         : unicon__kernel_has_width(kernel->kind) ? kernel->width
                                                  : 0;
}

uint64_t unicon__kept_hash(const unicon_stats *stats) {
  uint64_t h = stats->unpaired;
  for (int s = 0; s < 2; s++) {
    const unicon__map *map = &stats->map[s];
    const bool linear = map->kind == UNICON__MAP_LINEAR;
    const double width = linear ? 0 : width_of(&map->kernel);
    const int64_t numbers[] = {map->in, map->out, map->kind, map->normalize,
                               linear ? 0 : (int64_t)map->kernel.kind};
    h = unicon__hash(h, numbers, sizeof numbers);
    h = unicon__hash(h, &width, sizeof width);
    h = hash_tables(h, map);
  }
  return h;
}

static const char *yes(bool value) {
  return value ? "on" : "off";
}

static const char *word(int option, int index, char out[16]) {
  unicon__option_word(option, index, out, 16);
  return out;
}

/* Something that differs, in words of both; false where nothing does. */
static bool differs(const unicon_stats *a, const unicon_stats *b, int s, char out[2][96]) {
  const unicon__map *map[2] = {&a->map[s], &b->map[s]};
  const bool linear = map[0]->kind == UNICON__MAP_LINEAR && map[1]->kind == UNICON__MAP_LINEAR;
  const unicon_stats *const of[2] = {a, b};
  char one[16], other[16];
  for (int k = 0; k < 2; k++) {
    const unicon__map *m = map[k];
    if (map[0]->in != map[1]->in)
      snprintf(out[k], sizeof out[k], "rows of %lld values on side %c", (long long)m->in, "xy"[s]);
    else if (map[0]->normalize != map[1]->normalize)
      snprintf(out[k], sizeof out[k], "normalize %s", yes(m->normalize));
    else if (a->unpaired != b->unpaired)
      snprintf(out[k], sizeof out[k], "unpaired %s", yes(of[k]->unpaired));
    else if (linear)
      return false;
    else if (map[0]->kind != map[1]->kind || map[0]->kernel.kind != map[1]->kernel.kind)
      snprintf(out[k], sizeof out[k], "kernel %s (map %s) on side %c",
               word(UNICON__KERNEL, m->kind == UNICON__MAP_LINEAR ? 0 : (int)m->kernel.kind, one),
               word(UNICON__MAP, 1 + (int)m->kind, other), "xy"[s]);
    else if (width_of(&map[0]->kernel) != width_of(&map[1]->kernel))
      unicon__number_print(out[k], sizeof out[k], "width %.17g on side %c", width_of(&m->kernel),
                           "xy"[s]);
    else if (map[0]->out != map[1]->out)
      snprintf(out[k], sizeof out[k], "%lld features on side %c", (long long)m->out, "xy"[s]);
    else if (hash_tables(0, map[0]) != hash_tables(0, map[1]))
      snprintf(out[k], sizeof out[k], "%s %016llx on side %c",
               m->kind == UNICON__MAP_RANDOM ? "directions" : "landmarks",
               (unsigned long long)hash_tables(0, m), "xy"[s]);
    else
      return false;
  }
  return true;
}

unicon_status unicon__kept_same(unicon_ctx *ctx, const unicon_stats *a, const unicon_stats *b) {
  char words[2][96];
  for (int s = 0; s < 2; s++)
    if (differs(a, b, s, words))
      return unicon__fail(ctx, UNICON_ERR_SHAPE,
                          "%s was made with %s, but %s with %s: sums need the same maps; make all "
                          "parts with the options, or the maps, of one of them",
                          b->name, words[1], a->name, words[0]);
  return UNICON_OK;
}
