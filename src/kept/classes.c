/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of labelled rows: the table of their classes grows with what is added and shrinks with
 * what is taken away, so that the number of a label that nobody has any more is not kept. */
#include <string.h>

#include "kept/kept.h"

/* Sums of `classes` labels (0: of pairs) through these maps, empty. */
unicon_status unicon__kept_open_sums(unicon_ctx *ctx, unicon__arena *arena,
                                     const unicon__map map[2], bool unpaired, const int64_t *key,
                                     int64_t classes, unicon__stats *out) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  int64_t *own = NULL;
  unicon_pairs none = {.n_x = 0};
  int32_t place = 0;
  unsigned holds =
      UNICON__STATS_GRAM_X | UNICON__STATS_GRAM_Y | UNICON__STATS_CROSS | UNICON__STATS_DOUBLE;
  if (classes > 0) {
    UNICON_ARENA_NEW(ctx, arena, own, classes);
    memcpy(own, key, (size_t)classes * sizeof *own);
    none.class_x = &place; /* that there are labels */
    none.classes = (int32_t)classes;
    none.class_key = own;
  }
  const unicon__batch like = {.x = {.map = &map[0]}, .y = {.map = &map[1]}, .pairs = &none};
  if (unpaired || classes > 0) holds |= UNICON__STATS_UNPAIRED;
  return unicon__stats_open(ctx, arena, &like, all, holds, out);
}

void unicon__kept_drop_sums(unicon__arena *arena, unicon__stats *sums) {
  unicon__arena_drop(arena, (void *)(uintptr_t)sums->class_key);
  unicon__stats_drop(arena, sums);
}

bool unicon__kept_is_empty(const unicon_stats *stats) {
  return !(stats->sums.rows[0] > 0) && !(stats->sums.rows[1] > 0);
}

static bool has_rows(const unicon__stats *sums, int64_t k) {
  return sums->class_rows[0][k] > 0 || sums->class_rows[1][k] > 0;
}

/* The keys of both tables, ascending; of `from` those alone that have rows. */
static int32_t join_keys(const unicon__stats *to, const unicon__stats *from, int64_t *out) {
  int64_t a = 0, b = 0;
  int32_t count = 0;
  while (a < to->classes || b < from->classes) {
    if (b < from->classes && !has_rows(from, b)) {
      b++;
      continue;
    }
    const bool left =
        a < to->classes && (b == from->classes || to->class_key[a] <= from->class_key[b]);
    if (left && b < from->classes && to->class_key[a] == from->class_key[b]) b++;
    out[count++] = left ? to->class_key[a++] : from->class_key[b++];
  }
  return count;
}

unicon_status unicon__kept_widen(unicon_ctx *ctx, unicon_stats *stats, const unicon__stats *from,
                                 unicon__stats *out) {
  const unicon__stats *now = &stats->sums;
  int64_t *key;
  *out = *now;
  if (from->classes == 0) return UNICON_OK;
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_NEW(ctx, key, now->classes + from->classes);
  const int32_t count = join_keys(now, from, key);
  if (count > now->classes) {
    UNICON_TRY(
        unicon__kept_open_sums(ctx, &stats->arena, stats->map, stats->unpaired, key, count, out));
    if (!unicon__kept_is_empty(stats)) UNICON_TRY(unicon__stats_merge(ctx, now, 1, out));
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

void unicon__kept_compact(unicon__stats *sums) {
  int64_t *key = (int64_t *)(uintptr_t)sums->class_key, kept = 0;
  for (int64_t k = 0; k < sums->classes; k++) {
    if (!has_rows(sums, k)) continue;
    key[kept] = key[k];
    for (int s = 0; s < 2; s++) {
      sums->class_rows[s][kept] = sums->class_rows[s][k];
      memmove(sums->class_sum[s] + kept * sums->p[s], sums->class_sum[s] + k * sums->p[s],
              (size_t)sums->p[s] * sizeof **sums->class_sum);
    }
    kept++;
  }
  sums->classes = kept;
}

double unicon__kept_class_pairs(const unicon__stats *sums) {
  double pairs = 0;
  for (int64_t k = 0; k < sums->classes; k++)
    pairs += sums->class_rows[0][k] * sums->class_rows[1][k];
  return pairs;
}

/* As many rows of each class must be there as are to be taken away. */
unicon_status unicon__kept_check_classes(unicon_ctx *ctx, const unicon_stats *stats,
                                         const unicon__stats *part) {
  const unicon__stats *all = &stats->sums;
  for (int64_t k = 0, at = 0; k < part->classes; k++) {
    while (at < all->classes && all->class_key[at] < part->class_key[k]) at++;
    const bool found = at < all->classes && all->class_key[at] == part->class_key[k];
    for (int s = 0; s < 2; s++) {
      const double there = found ? all->class_rows[s][at] : 0;
      if (part->class_rows[s][k] > there)
        return unicon__fail(
            ctx, UNICON_ERR_DATA, "%g rows of %c with label %lld cannot be removed: %s has %g",
            part->class_rows[s][k], "xy"[s], (long long)part -> class_key[k], stats -> name, there);
    }
  }
  return UNICON_OK;
}

unicon_status unicon__kept_check_kind(unicon_ctx *ctx, const unicon_stats *stats, bool labels,
                                      const char *name) {
  static const char *const word[2] = {"pairs", "class labels"};
  const bool own = stats->sums.classes > 0;
  if (unicon__kept_is_empty(stats) || own == labels) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_SHAPE,
                      "%s has %s, but %s was made with %s: these cannot be summed", name,
                      word[labels], stats->name, word[own]);
}
