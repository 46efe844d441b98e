/* SPDX-License-Identifier: Apache-2.0 */
#include "kept/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "kept/sample.h"

/* What a row is paired with, whatever the order; with labels, its label. */
static uint64_t partners_of(const unicon__batch *set, const uint64_t *const hash[2], int s,
                            int64_t i) {
  const unicon_pairs *pairs = set->pairs;
  if (pairs->class_x)
    return unicon__hash_of(
        (uint64_t)pairs->class_key[(s == 0 ? pairs->class_x : pairs->class_y)[i]], 3);
  const unicon__partners p = s == 0 ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
  uint64_t sum = 0;
  for (int64_t k = 0; k < p.count; k++) {
    const float weight = p.weight ? p.weight[k] : 1;
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    sum += unicon__hash_of(hash[1 - s][unicon__partner(p, k)], bits);
  }
  return sum;
}

static int compare(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

unicon_status unicon__ledger_of(unicon_ctx *ctx, const unicon__batch *set,
                                const uint64_t *const hash[2], bool unpaired, unicon__ledger *out) {
  *out = (unicon__ledger){.on = true};
  for (int s = 0; s < 2; s++) {
    const int64_t n = s == 0 ? set->x.count : set->y.count;
    UNICON_NEW(ctx, out->entry[s], n);
    for (int64_t i = 0; i < n; i++) {
      const unicon__partners p =
          s == 0 ? unicon__positives_x(set->pairs, i) : unicon__positives_y(set->pairs, i);
      if (p.count == 0 && !unpaired && !set->pairs->class_x) continue;
      out->entry[s][out->count[s]++] = unicon__hash_of(hash[s][i], partners_of(set, hash, s, i));
    }
  }
  return UNICON_OK;
}

/* The entries in order, in the context's frame. */
static unicon_status sorted(unicon_ctx *ctx, const unicon__ledger *from, int s, uint64_t **out) {
  UNICON_NEW(ctx, *out, from->count[s]);
  if (from->count[s] > 0) memcpy(*out, from->entry[s], (size_t)from->count[s] * sizeof **out);
  qsort(*out, (size_t)from->count[s], sizeof **out, compare);
  return UNICON_OK;
}

unicon_status unicon__ledger_merge(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon__ledger *from, const unicon__ledger *more,
                                   unicon__ledger *out) {
  *out = (unicon__ledger){.on = from->on};
  for (int s = 0; s < 2; s++) {
    const int64_t n = from->count[s], m = more->count[s];
    uint64_t *other;
    UNICON_TRY(sorted(ctx, more, s, &other));
    UNICON_ARENA_NEW(ctx, arena, out->entry[s], n + m);
    for (int64_t k = 0, a = 0, b = 0; k < n + m; k++)
      out->entry[s][k] =
          b == m || (a < n && from->entry[s][a] <= other[b]) ? from->entry[s][a++] : other[b++];
    out->count[s] = n + m;
    unicon__drop(ctx, other);
  }
  return UNICON_OK;
}

/* One side; `missing` entries of `other` (m, in order) are not there. */
static void subtract(const unicon__ledger *from, int s, const uint64_t *other, int64_t m,
                     int64_t *missing, unicon__ledger *out) {
  int64_t b = 0;
  *missing = 0;
  for (int64_t a = 0; a < from->count[s]; a++) {
    for (; b < m && other[b] < from->entry[s][a]; b++) ++*missing;
    if (b < m && other[b] == from->entry[s][a])
      b++;
    else
      out->entry[s][out->count[s]++] = from->entry[s][a];
  }
  *missing += m - b;
}

unicon_status unicon__ledger_subtract(unicon_ctx *ctx, unicon__arena *arena,
                                      const unicon__ledger *from, const unicon__ledger *less,
                                      unicon__ledger *out) {
  *out = (unicon__ledger){.on = from->on};
  for (int s = 0; s < 2; s++) {
    uint64_t *other;
    int64_t missing;
    UNICON_TRY(sorted(ctx, less, s, &other));
    UNICON_ARENA_NEW(ctx, arena, out->entry[s], from->count[s]);
    subtract(from, s, other, less->count[s], &missing, out);
    unicon__drop(ctx, other);
    if (missing > 0)
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "the ledger says that %lld of the %lld rows of %c were never added, or "
                          "not with these partners; nothing is removed",
                          (long long)missing, (long long)less->count[s], "xy"[s]);
  }
  return UNICON_OK;
}

bool unicon__ledger_has(const unicon__ledger *all, const unicon__ledger *part) {
  for (int s = 0; s < 2; s++) {
    int64_t a = 0;
    for (int64_t k = 0; k < part->count[s]; k++, a++) {
      while (a < all->count[s] && all->entry[s][a] < part->entry[s][k]) a++;
      if (a == all->count[s] || all->entry[s][a] != part->entry[s][k]) return false;
    }
  }
  return part->count[0] + part->count[1] > 0;
}

void unicon__ledger_drop(unicon__arena *arena, unicon__ledger *ledger) {
  for (int s = 0; s < 2; s++) unicon__arena_drop(arena, ledger->entry[s]);
  *ledger = (unicon__ledger){.on = false};
}
