/* SPDX-License-Identifier: Apache-2.0 */
/* Removal, and the certificate of what it means. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/object.h"
#include "io/result.h"
#include "kept/kept.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"

/* A removal in the making: nothing of `stats` is changed before the end. */
typedef struct removal {
  unicon_stats *stats;
  const unicon_stats *part; /* what is taken away */
  unicon__sample sample;    /* what is left of it, in the arena of the statistics */
  unicon__ledger ledger;
  unicon__landmarks landmark[2];
  uint64_t hash;
  bool with_rows;    /* the rows are there, not only their sums */
  bool known;        /* the sample has every row, so that it knows ... */
  int64_t strangers; /* ... units that it does not have */
} removal;

/* ---- what is seen of the rows ------------------------------------------------------------- */

static uint64_t weight_bits(unicon__partners p, int64_t k) {
  const float weight = p.weight ? p.weight[k] : 1;
  uint32_t bits;
  memcpy(&bits, &weight, sizeof bits);
  return bits;
}

/* Of the label of a row; 0 without labels. */
static uint64_t label_bits(const unicon_pairs *pairs, const int32_t *class_of, int64_t row) {
  return class_of ? unicon__hash_of((uint64_t)pairs->class_key[class_of[row]], 3) : 0;
}

/* A sum over rows and pairs, so that their order does not matter. */
static void hash_set(const unicon__batch *set, const uint64_t *const hash[2], uint64_t *out) {
  const unicon_pairs *pairs = set->pairs;
  for (int64_t j = 0; j < set->y.count; j++)
    *out += unicon__hash_of(hash[1][j], 2 + label_bits(pairs, pairs->class_y, j));
  for (int64_t i = 0; i < set->x.count; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    *out += unicon__hash_of(hash[0][i], 1 + label_bits(pairs, pairs->class_x, i));
    for (int64_t k = 0; k < p.count && !pairs->class_x; k++)
      *out += unicon__hash_of(unicon__hash_of(hash[0][i], hash[1][unicon__partner(p, k)]),
                              weight_bits(p, k));
  }
}

/* A block of the set that is removed. */
static unicon_status look(unicon_ctx *ctx, void *state, const unicon__batch *set,
                          const uint64_t *const hash[2]) {
  removal *r = state;
  unicon__sample less;
  hash_set(set, hash, &r->hash);
  UNICON_TRY(unicon__landmarks_mark(ctx, &set->x, &r->landmark[0]));
  UNICON_TRY(unicon__landmarks_mark(ctx, &set->y, &r->landmark[1]));
  if (r->sample.units == 0) return UNICON_OK;
  UNICON_TRY(
      unicon__sample_remove(ctx, &r->stats->arena, &r->sample, set, hash, &r->strangers, &less));
  if (r->sample.unit != r->stats->sample.unit) unicon__sample_drop(&r->stats->arena, &r->sample);
  r->sample = less;
  return UNICON_OK;
}

/* ---- checks ------------------------------------------------------------------------------- */

static unicon_status check_counts(unicon_ctx *ctx, const unicon_stats *stats,
                                  const unicon_stats *part) {
  for (int s = 0; s < 2; s++)
    if (part->sums.rows[s] > stats->sums.rows[s] + 0.5)
      return unicon__fail(ctx, UNICON_ERR_DATA, "%g rows of %c cannot be removed: %s has %g",
                          part->sums.rows[s], "xy"[s], stats -> name, stats -> sums.rows[s]);
  if (part->sums.classes > 0) return unicon__kept_check_classes(ctx, stats, &part->sums);
  if (part->pairs > stats->pairs + 0.5)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%g pairs cannot be removed: %s has %g", part->pairs,
                        stats->name, stats->pairs);
  return UNICON_OK;
}

static double trace_of(const unicon_stats *stats, int s) {
  double trace = 0;
  for (int64_t k = 0; k < stats->sums.p[s]; k++) trace += stats->sums.square[s][k];
  return trace;
}

/* How far features of one row, computed twice, may be from one another, relative to their length: 0
 * where every step is the same. Kernel values may be rounded otherwise in another place of a tile,
 * and the factor makes more of that. */
static double feature_error(const unicon_stats *stats, const unicon_stats *part, int s) {
  const unicon__map *map = &stats->map[s];
  const bool same =
      strcmp(stats->vectors, "mixed") != 0 && strcmp(stats->vectors, part->vectors) == 0;
  double square = 0;
  if (map->kind == UNICON__MAP_LINEAR) return same || !map->normalize ? 0 : ldexp(1, -22);
  if (map->kind == UNICON__MAP_RANDOM) return ldexp(1, -20);
  for (int64_t k = 0; k < map->points * map->out; k++)
    square += (double)map->factor[k] * (double)map->factor[k];
  return unicon__kernel_error(map->kernel.kind) * sqrt(square);
}

/* What is left must be the sums of some rows: G - a a^T / n has no negative eigenvalue beyond
 * rounding, that of features that were computed twice included. n^3 / 3 multiplications. */
static unicon_status check_side(unicon_ctx *ctx, const removal *r, int s) {
  const unicon__stats *all = &r->stats->sums, *part = &r->part->sums;
  const int64_t p = all->p[s];
  const double n = all->rows[s] - part->rows[s];
  const double slack = 1e-10 * trace_of(r->stats, s) + DBL_MIN +
                       4 * feature_error(r->stats, r->part, s) * trace_of(r->part, s);
  double *rest;
  int64_t info = 0;
  UNICON_NEW(ctx, rest, p * p);
  for (int64_t i = 0; i < p; i++) {
    const double a = all->sum[s][i] - part->sum[s][i];
    for (int64_t j = 0; j <= i; j++) {
      const double b = all->sum[s][j] - part->sum[s][j];
      rest[i * p + j] =
          all->gram[s][i * p + j] - part->gram[s][i * p + j] - (n > 0.5 ? a * b / n : 0);
    }
    rest[i * p + i] += slack;
  }
  unicon__blas_begin();
  const unicon_status status = unicon__tiled_dpotrf(ctx, p, rest, p, &info);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__drop(ctx, rest);
  if (info == 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "these rows of %c were never added to %s: without them no covariance would "
                      "be left (it has a negative eigenvalue); nothing is removed",
                      "xy"[s], r -> stats -> name);
}

/* Removing as many rows as there are must leave sums of nothing. */
static unicon_status check_sums(unicon_ctx *ctx, removal *r) {
  const unicon_stats *stats = r->stats;
  UNICON_TRY(check_counts(ctx, stats, r->part));
  if (stats->ledger.on) {
    if (!r->part->ledger.on)
      return unicon__fail(
          ctx, UNICON_ERR_DATA,
          "%s has a ledger, so what is removed needs one too: make it with ledger on", stats->name);
    return unicon__ledger_subtract(ctx, &r->stats->arena, &stats->ledger, &r->part->ledger,
                                   &r->ledger);
  }
  if (r->known && r->strangers > 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "the sample of %s has every row, but not %lld of the %s: these were never "
                        "added, or not with these partners; nothing is removed",
                        stats->name, (long long)r->strangers,
                        stats->sums.classes > 0 ? "rows" : "rows and their partners");
  UNICON_TRY(check_side(ctx, r, 0));
  return check_side(ctx, r, 1);
}

/* Landmarks that are among the rows. */
static int64_t landmarks_of(const removal *r) {
  return r->landmark[0].found + r->landmark[1].found;
}

static unicon_status check_landmarks(unicon_ctx *ctx, const removal *r,
                                     const unicon_options *options) {
  if (landmarks_of(r) == 0 || unicon__is(options, UNICON__DROP_LANDMARKS, "on")) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%lld of the rows are landmarks of the kernel and would live on in the maps "
                      "and in every model; set drop_landmarks to go on without these landmarks",
                      (long long)landmarks_of(r));
}

/* ---- the certificate ---------------------------------------------------------------------- */

/* Roundings of an entry of G, at most: those inside a product over 1024 rows, and one for each such
 * product, each group of them and each update that was added to it. */
static double roundings(double rows, int64_t updates) {
  return 1024 + rows / 1024 + 64 * (double)(updates + 1);
}

/* Bound of |G - G never added|_F relative to tr G. A sum with k roundings is off by at most k 2^-53
 * of the sum of the sizes of its terms, whose norm is at most tr G: this for the sums as they were,
 * for those that never had the rows, and twice for what is removed; and what features of the same
 * row may differ by. */
static double trace_bound(const unicon_stats *before, const unicon_stats *part,
                          const double left[2]) {
  double worst = 0;
  for (int s = 0; s < 2; s++) {
    const double all = trace_of(before, s), gone = trace_of(part, s);
    const double sums = ldexp(2, -53) * (roundings(before->sums.rows[s], before->updates) * all +
                                         roundings(part->sums.rows[s], part->updates) * gone);
    const double features = 4 * feature_error(before, part, s) * gone;
    const double scale = left[s] > 0 ? left[s] : all;
    if (scale > 0) worst = fmax(worst, (sums + features) / scale);
  }
  return worst;
}

/* Pairs that are left: of labels those of the rows of each class that are. */
static double pairs_left(const unicon_stats *stats, const unicon_stats *part) {
  const unicon__stats *all = &stats->sums, *less = &part->sums;
  double pairs = all->classes > 0 ? 0 : stats->pairs - part->pairs;
  for (int64_t k = 0, at = 0; k < all->classes; k++) {
    double n[2] = {all->class_rows[0][k], all->class_rows[1][k]};
    while (at < less->classes && less->class_key[at] < all->class_key[k]) at++;
    if (at < less->classes && less->class_key[at] == all->class_key[k])
      for (int s = 0; s < 2; s++) n[s] -= less->class_rows[s][at];
    pairs += n[0] * n[1];
  }
  return pairs;
}

/* Rows and pairs of `of`, less the rows of `less` (NULL: none). */
static void note_counts(unicon_ctx *ctx, const char *what, const unicon_stats *of,
                        const unicon_stats *less, double pairs, unicon_result *r) {
  const double value[3] = {of->sums.rows[0] - (less ? less->sums.rows[0] : 0),
                           of->sums.rows[1] - (less ? less->sums.rows[1] : 0), pairs};
  static const char *const name[3] = {"rows_x", "rows_y", "pairs"};
  char key[32];
  for (int k = 0; k < 3; k++) {
    snprintf(key, sizeof key, "%s.%s", what, name[k]);
    if (fabs(value[k]) < 9e18)
      unicon__result_integer(ctx, r, key, llround(value[k]));
    else /* pairs of very many labelled rows */
      unicon__result_real(ctx, r, key, value[k]);
  }
}

/* What else has seen the rows; `sampled` of them were in the sample. */
static void say_seen(const removal *r, int64_t sampled, char *out, size_t size) {
  const bool kernel =
      r->stats->map[0].kind != UNICON__MAP_LINEAR || r->stats->map[1].kind != UNICON__MAP_LINEAR;
  snprintf(
      out, size,
      "the sums%s%s were rebuilt without the rows.%s Models fitted before, with "
      "their banks and what was chosen for them, have seen the rows: fit them again from these "
      "statistics.",
      sampled > 0 ? " and the sample" : "", r->stats->ledger.on ? " and the ledger" : "",
      !kernel         ? " Linear maps are made of no rows."
      : !r->with_rows ? " Whether a landmark is one of them is not known: only their sums "
                        "were given."
      : landmarks_of(r) > 0
          ? " Landmarks that were such rows were dropped; the width of the kernel "
            "stays."
          : " No landmark is one of them; the width of the kernel stays.");
}

static unicon_status certify(unicon_ctx *ctx, const removal *r, unicon_result **out) {
  const unicon__sample *before = &r->stats->sample, *after = &r->sample;
  const double left[2] = {trace_of(r->stats, 0) - trace_of(r->part, 0),
                          trace_of(r->stats, 1) - trace_of(r->part, 1)};
  char hash[24], seen[512];
  const int64_t sampled = before->rows[0] + before->rows[1] - after->rows[0] - after->rows[1];
  unicon_result *result = unicon__result_new(ctx);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
  const double pairs = pairs_left(r->stats, r->part);
  note_counts(ctx, "removed", r->part, NULL, r->stats->pairs - pairs, result);
  if (r->with_rows) unicon__result_text(ctx, result, "removed.hash", hash);
  note_counts(ctx, "left", r->stats, r->part, pairs, result);
  unicon__result_text(ctx, result, "checked_by",
                      r->stats->ledger.on ? "ledger"
                      : r->known          ? "sample of every row"
                                          : "counts and covariance");
  unicon__result_real(ctx, result, "trace.bound", trace_bound(r->stats, r->part, left));
  unicon__result_integer(ctx, result, "sample.removed", sampled);
  unicon__result_integer(ctx, result, "landmarks.dropped", landmarks_of(r));
  say_seen(r, sampled, seen, sizeof seen);
  unicon__result_text(ctx, result, "seen_by", seen);
  return unicon__result_done(result, out);
}

/* ---- the removal -------------------------------------------------------------------------- */

/* Sums of fewer landmarks, less the part. */
static unicon_status project(unicon_ctx *ctx, const removal *r, unicon__map map[2],
                             unicon__stats *out) {
  unicon__projection side[2];
  unicon__stats less;
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(unicon__project_open(ctx, &r->stats->arena, &r->stats->map[s],
                                    r->landmark[s].found > 0 ? r->landmark[s].gone : NULL,
                                    &side[s]));
    map[s] = side[s].map;
  }
  UNICON_TRY(unicon__project_sums(ctx, &r->stats->arena, side, &r->stats->sums, out));
  UNICON_TRY(unicon__project_sums(ctx, &ctx->arena, side, &r->part->sums, &less));
  return unicon__stats_merge(ctx, &less, -1, out);
}

/* Exactly nothing, where all rows are gone. */
static void clear_rounding(unicon_stats *s, unicon__stats *nothing) {
  if (s->sums.rows[0] > 0.5 || s->sums.rows[1] > 0.5) {
    unicon__kept_compact(&s->sums);
    return;
  }
  unicon__kept_drop_sums(&s->arena, &s->sums);
  s->sums = *nothing;
  *nothing = (unicon__stats){.classes = 0};
  unicon__sample_drop(&s->arena, &s->sample);
  s->pairs = 0;
}

/* Takes smaller maps; the old ones, with the landmarks that go, and the sums of their features are
 * given back. */
static void forget_old(unicon_stats *stats, const unicon__map map[2]) {
  for (int s = 0; s < 2; s++) {
    const unicon__map *old = &stats->map[s];
    float *const tables[] = {old->base, old->center, old->near, old->square, old->factor};
    for (size_t k = 0; k < sizeof tables / sizeof *tables && map[s].base != old->base; k++)
      unicon__arena_drop(&stats->arena, tables[k]);
    stats->map[s] = map[s];
  }
  unicon__kept_drop_sums(&stats->arena, &stats->sums);
}

/* Everything is ready: takes the part away. */
static unicon_status commit(unicon_ctx *ctx, removal *r) {
  unicon_stats *stats = r->stats;
  unicon__map map[2] = {stats->map[0], stats->map[1]};
  unicon__stats sums = {.classes = 0}, nothing;
  const double pairs = pairs_left(stats, r->part);
  if (landmarks_of(r) > 0) UNICON_TRY(project(ctx, r, map, &sums));
  UNICON_TRY(unicon__kept_open_sums(ctx, &stats->arena, map, stats->unpaired, NULL, 0, &nothing));
  if (landmarks_of(r) > 0) {
    forget_old(stats, map);
    stats->sums = sums;
    stats->updates += r->part->updates;
  } else {
    UNICON_TRY(unicon__kept_sum(ctx, r->part, -1, stats));
  }
  stats->pairs = pairs;
  if (r->sample.unit != stats->sample.unit) {
    unicon__sample_drop(&stats->arena, &stats->sample);
    stats->sample = r->sample;
  }
  if (stats->ledger.on) {
    unicon__ledger_drop(&stats->arena, &stats->ledger);
    stats->ledger = r->ledger;
  }
  clear_rounding(stats, &nothing);
  unicon__kept_drop_sums(&stats->arena, &nothing);
  return UNICON_OK;
}

/* Checks, certificate, change; on failure the statistics are as before. */
static unicon_status take_away(unicon_ctx *ctx, removal *r, const unicon_options *options,
                               unicon_result **certificate) {
  unicon_result *made = NULL;
  UNICON_TRY(check_sums(ctx, r));
  UNICON_TRY(check_landmarks(ctx, r, options));
  UNICON_TRY(certify(ctx, r, &made));
  const unicon_status status = commit(ctx, r);
  if (status == UNICON_OK && certificate)
    *certificate = made;
  else
    unicon_result_destroy(made);
  return status;
}

static unicon_status check_removable(unicon_ctx *ctx, const unicon_stats *stats) {
  if (!stats->decayed) return UNICON_OK;
  return unicon__fail(
      ctx, UNICON_ERR_UNSUPPORTED,
      "%s was decayed: how much a row still counts depends on when it was added, so "
      "none can be removed",
      stats->name);
}

static unicon_status remove_rows(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *data,
                                 const unicon_options *options, unicon_result **certificate) {
  const unicon__block *mark = unicon__arena_mark(&stats->arena);
  removal r = {.stats = stats,
               .sample = stats->sample,
               .with_rows = true,
               .known = unicon__kept_has_rows(stats)};
  const unicon__kept_seen seen = {look, &r};
  unicon_stats *part = NULL;
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__landmarks_list(ctx, &stats->map[s], &r.landmark[s]));
  UNICON_TRY(unicon__kept_like(ctx, stats, &part));
  part->sample.room = 0; /* it needs none of its own */
  memset(part->sample.threshold, 0, sizeof part->sample.threshold);
  r.part = part;
  unicon_status status = unicon__kept_add(ctx, part, data, options, &seen);
  if (status == UNICON_OK) status = take_away(ctx, &r, options, certificate);
  unicon_stats_destroy(part);
  if (status != UNICON_OK) unicon__arena_back(&stats->arena, mark);
  return status;
}

static unicon_status enter_remove(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *given,
                                  const unicon_options *options, unicon_result **certificate) {
  unicon_data data;
  UNICON_NEED(ctx, stats);
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  UNICON_TRY(check_removable(ctx, stats));
  UNICON_TRY(unicon__kept_check_kind(ctx, stats, data.pairs && data.pairs->class_x, data.x->name));
  return remove_rows(ctx, stats, &data, options, certificate);
}

unicon_status unicon_stats_remove(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *data,
                                  const unicon_options *options, unicon_result **certificate) {
  if (certificate) *certificate = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, enter_remove(ctx, stats, data, options, certificate));
}

static unicon_status subtract(unicon_ctx *ctx, unicon_stats *stats, const unicon_stats *other,
                              unicon_result **certificate) {
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, other);
  UNICON_TRY(check_removable(ctx, stats));
  UNICON_TRY(check_removable(ctx, other));
  UNICON_TRY(unicon__kept_same(ctx, stats, other));
  if (!unicon__kept_is_empty(other))
    UNICON_TRY(unicon__kept_check_kind(ctx, stats, other->sums.classes > 0, other->name));
  const unicon__block *mark = unicon__arena_mark(&stats->arena);
  removal r = {.stats = stats,
               .part = other,
               .sample = stats->sample,
               .known = unicon__kept_has_rows(stats) && unicon__kept_has_rows(other)};
  unicon_status status = unicon__sample_subtract(ctx, &stats->arena, &stats->sample, &other->sample,
                                                 &r.strangers, &r.sample);
  if (status == UNICON_OK) status = take_away(ctx, &r, NULL, certificate);
  if (status != UNICON_OK) unicon__arena_back(&stats->arena, mark);
  return status;
}

unicon_status unicon_stats_subtract(unicon_ctx *ctx, unicon_stats *stats, const unicon_stats *other,
                                    unicon_result **certificate) {
  if (certificate) *certificate = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, subtract(ctx, stats, other, certificate));
}
