/* SPDX-License-Identifier: Apache-2.0 */
#include "fit/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "io/pair_set.h"

/* ---- options ------------------------------------------------------------------------------ */

/* An option that was given must say what the statistics say. */
static unicon_status settle(unicon_ctx *ctx, const unicon_stats *stats, unicon_options *options,
                            int id, const char *value) {
  const char *given = unicon__text(options, id);
  if (unicon__given(options, id) && strcmp(given, value) != 0 && strcmp(given, "auto") != 0)
    return unicon__fail(ctx, UNICON_ERR_OPTION, "%s is %s, but %s was made with %s",
                        unicon__option_row(id)->name, given, stats->name, value);
  return unicon__options_replace(ctx, options, id, value);
}

/* Kernels by their own names: angular is arccos1. */
static unicon_status settle_kernels(unicon_ctx *ctx, const unicon_stats *stats,
                                    unicon_options *options) {
  static const int own[2] = {UNICON__KERNEL_X, UNICON__KERNEL_Y};
  char word[2][16];
  unicon__map_params given;
  unicon__map_params_from(options, &given);
  for (int s = 0; s < 2; s++) {
    const unicon__map *map = &stats->map[s];
    const unicon__kernel_kind kind =
        map->kind == UNICON__MAP_LINEAR ? UNICON__KERNEL_LINEAR : map->kernel.kind;
    const bool said = unicon__given(options, UNICON__KERNEL) || unicon__given(options, own[s]);
    unicon__option_word(UNICON__KERNEL, (int)kind, word[s], sizeof word[s]);
    if (said && given.kernel[s] != kind)
      return unicon__fail(
          ctx, UNICON_ERR_OPTION, "kernel of %c is %s, but %s was made with %s", "xy"[s],
          unicon__text(options, unicon__given(options, own[s]) ? own[s] : UNICON__KERNEL),
          stats -> name, word[s]);
  }
  UNICON_TRY(unicon__options_replace(ctx, options, UNICON__KERNEL, word[0]));
  UNICON_TRY(unicon__options_replace(ctx, options, UNICON__KERNEL_X, "same"));
  return unicon__options_replace(ctx, options, UNICON__KERNEL_Y,
                                 strcmp(word[0], word[1]) == 0 ? "same" : word[1]);
}

/* What needs the rows. */
static unicon_status check_possible(unicon_ctx *ctx, const unicon_options *options) {
  static const struct {
    int id;
    const char *usual;
  } rows[] = {{UNICON__ITERATIONS, "0"},
              {UNICON__REFINE, "0"},
              {UNICON__START, "moment"},
              {UNICON__BATCH, "full"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const char *value = unicon__text(options, rows[k].id);
    if (strcmp(value, rows[k].usual) != 0)
      return unicon__fail(
          ctx, UNICON_ERR_OPTION,
          "%s is %s, which needs the rows; a fit from statistics is the closed form "
          "(%s %s)",
          unicon__option_row(rows[k].id)->name, value, unicon__option_row(rows[k].id)->name,
          rows[k].usual);
  }
  return UNICON_OK;
}

static unicon_status check_shared(unicon_ctx *ctx, const unicon_stats *stats,
                                  const unicon_options *options) {
  const unicon__map *x = &stats->map[0], *y = &stats->map[1];
  const bool same =
      x->kind == UNICON__MAP_LINEAR && y->kind == UNICON__MAP_LINEAR && x->in == y->in;
  if (same || !unicon__is(options, UNICON__SHARED_ENCODER, "on")) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_OPTION,
                      "shared_encoder needs statistics with one map for both sides: rows of one "
                      "width, and the linear kernel");
}

unicon_status unicon__stored_settle(unicon_ctx *ctx, const unicon_stats *stats,
                                    unicon_options *options) {
  char map[16];
  const int side = stats->map[0].kind == UNICON__MAP_LINEAR;
  UNICON_TRY(check_possible(ctx, options));
  UNICON_TRY(check_shared(ctx, stats, options));
  UNICON_TRY(
      settle(ctx, stats, options, UNICON__NORMALIZE, stats->map[0].normalize ? "on" : "off"));
  UNICON_TRY(settle(ctx, stats, options, UNICON__UNPAIRED, stats->unpaired ? "on" : "off"));
  unicon__option_word(UNICON__MAP, 1 + (int)stats->map[side].kind, map, sizeof map);
  UNICON_TRY(settle(ctx, stats, options, UNICON__MAP, map));
  return settle_kernels(ctx, stats, options);
}

/* ---- the sample --------------------------------------------------------------------------- */

/* The labels of the sample, as classes of the statistics. */
static unicon_status open_labels(unicon_ctx *ctx, const unicon_stats *stats, unicon__stored *out) {
  const unicon__sample *s = &stats->sample;
  int32_t *class_of[2];
  for (int side = 0; side < 2; side++) {
    UNICON_NEW(ctx, class_of[side], s->rows[side]);
    for (int64_t i = 0; i < s->rows[side]; i++) {
      const int64_t *found =
          bsearch(&s->label[side][i], stats->sums.class_key, (size_t)stats->sums.classes,
                  sizeof *found, unicon__compare_int64);
      if (!found)
        return unicon__fail(ctx, UNICON_ERR_FORMAT,
                            "%s: the sample has label %lld, which no class has", stats->name,
                            (long long)s->label[side][i]);
      class_of[side][i] = (int32_t)(found - stats->sums.class_key);
    }
  }
  UNICON_TRY(unicon__pairs_from_classes(ctx, class_of[0], s->rows[0], class_of[1], s->rows[1],
                                        stats->sums.class_key, (int32_t)stats->sums.classes,
                                        &out->set.own));
  out->set.whole.pairs = out->set.own;
  return UNICON_OK;
}

/* The pairs of the sample, with numbers of its rows. */
static unicon_status open_pairs(unicon_ctx *ctx, const unicon__sample *s, unicon__stored *out) {
  int64_t *x, *y;
  double *weight;
  bool weighted = false;
  UNICON_NEW(ctx, x, s->pairs);
  UNICON_NEW(ctx, y, s->pairs);
  UNICON_NEW(ctx, weight, s->pairs);
  for (int64_t u = 0; u < s->units; u++) {
    const unicon__unit *unit = &s->unit[u];
    out->splits = out->splits && unit->whole;
    for (int64_t k = unit->at_pair; k < unit->at_pair + unit->pairs; k++) {
      x[k] = unit->at[0] + s->pair[2 * k];
      y[k] = unit->at[1] + s->pair[2 * k + 1];
      weight[k] = (double)s->weight[k];
      weighted = weighted || s->weight[k] != 1;
    }
  }
  UNICON_TRY(unicon__pairs_from_list(ctx, "pair of the sample", s->rows[0], s->rows[1], x, y,
                                     weighted ? weight : NULL, s->pairs, &out->set.own));
  out->set.whole.pairs = out->set.own;
  return UNICON_OK;
}

static unicon_status open_rows(unicon_ctx *ctx, const unicon_stats *stats, unicon__stored *out) {
  static const char *const name[2] = {"the sample of x", "the sample of y"};
  unicon__source *source[2] = {&out->set.whole.x, &out->set.whole.y};
  for (int s = 0; s < 2; s++) {
    const int64_t count = stats->sample.rows[s];
    float *rows;
    UNICON_TRY(unicon__sample_rows(ctx, &stats->sample, s, &rows));
    out->rows[s] = unicon__rows_over(name[s], rows, count, stats->map[s].in, &out->segment[s]);
    *source[s] = (unicon__source){.rows = &out->rows[s], .count = count};
  }
  return UNICON_OK;
}

/* The maps, with means that can be moved. */
static unicon_status open_prepared(unicon_ctx *ctx, const unicon_stats *stats,
                                   const unicon__params *params, unicon__stored *out) {
  unicon__prepared *p = &out->prepared;
  *p = (unicon__prepared){
      .pairs = out->set.whole.pairs, .centring = params->centring, .stats = stats->sums};
  unicon__arena_init(&p->arena, ctx->arena.budget);
  for (int s = 0; s < 2; s++) {
    unicon__side *side = &p->side[s];
    side->source = s == 0 ? out->set.whole.x : out->set.whole.y;
    side->map = stats->map[s];
    if (params->centring == UNICON__CENTRE_SHARED && s == 1)
      side->map.mean = p->side[0].map.mean;
    else if (params->centring != UNICON__CENTRE_NONE)
      UNICON_ARENA_NEW(ctx, &p->arena, side->map.mean, side->map.out);
    side->source.map = &side->map;
  }
  return UNICON_OK;
}

/* Rows whose label the other side does not have cannot be left out of sums. */
static void say_alone(unicon_ctx *ctx, const unicon_stats *stats) {
  const unicon__stats *sums = &stats->sums;
  for (int s = 0; s < 2; s++) {
    double alone = 0;
    for (int64_t k = 0; k < sums->classes; k++)
      if (!(sums->class_rows[1 - s][k] > 0)) alone += sums->class_rows[s][k];
    if (alone > 0 && !stats->unpaired)
      unicon__log(ctx, UNICON_LOG_WARNING,
                  "%g rows of %c have a label that no row of %c has; they count in the covariance, "
                  "as with unpaired on",
                  alone, "xy"[s], "yx"[s]);
  }
}

unicon_status unicon__stored_open(unicon_ctx *ctx, const unicon_stats *stats,
                                  const unicon__params *params, unicon__stored *out) {
  static const unicon_pairs none = {.n_x = 0};
  out->stats = stats;
  const bool labels = stats->sums.classes > 0;
  out->sampled = stats->sample.rows[0] > 0 && stats->sample.rows[1] > 0;
  out->splits = !stats->decayed && out->sampled;
  for (int s = 0; s < 2; s++)
    if (stats->sums.rows[s] < 2)
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "%s has %g rows of %c; a fit needs at least 2 on each side", stats->name,
                          stats->sums.rows[s], "xy"[s]);
  out->set.hash = unicon__kept_hash(stats);
  for (int s = 0; s < 2; s++) {
    const int64_t p = stats->sums.p[s];
    out->set.hash = unicon__hash(out->set.hash, stats->sums.gram[s],
                                 (size_t)(p * p) * sizeof *stats->sums.gram[s]);
  }
  UNICON_TRY(open_rows(ctx, stats, out));
  out->set.whole.pairs = &none;
  if (labels && !(stats->pairs > 0))
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "none of the %lld labels of %s has rows on both sides, so there are no "
                        "pairs",
                        (long long)stats->sums.classes, stats->name);
  if (labels) say_alone(ctx, stats);
  if (out->sampled)
    UNICON_TRY(labels ? open_labels(ctx, stats, out) : open_pairs(ctx, &stats->sample, out));
  return open_prepared(ctx, stats, params, out);
}

void unicon__stored_close(unicon__stored *stored) {
  unicon__prepared_close(&stored->prepared);
  unicon__dataset_close(&stored->set);
}
