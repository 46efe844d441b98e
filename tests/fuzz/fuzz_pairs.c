/* SPDX-License-Identifier: Apache-2.0 */
/* Files of pairs, as text or .npy: what is read becomes positives, and once more the ignored pairs
 * and the negatives of an identity. */
#include "target.h"

#include "io/pair_set.h"

enum { N_X = 40, N_Y = 50 };

/* Every list is ascending and in range, both directions have the same number of entries. */
static void look(const unicon_pairs *pairs) {
  int64_t count_x = 0, count_y = 0;
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    for (int64_t k = 0; k < p.count; k++) {
      TARGET_HOLDS(p.item[k] >= 0 && p.item[k] < pairs->n_y && (!k || p.item[k - 1] < p.item[k]));
      if (p.weight) TARGET_HOLDS(p.weight[k] >= 0 && isfinite(p.weight[k]));
    }
    count_x += p.count;
  }
  for (int64_t j = 0; j < pairs->n_y; j++) count_y += unicon__positives_y(pairs, j).count;
  TARGET_HOLDS(count_x == count_y && count_x == unicon_pairs_count(pairs));
}

static void take(unicon_ctx *ctx, const unicon_pairs *pairs) {
  static const int64_t keep_x[] = {0, 1, 5, 39}, keep_y[] = {1, 2, 3, 49};
  unicon_pairs *part = NULL;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  const unicon_status status = unicon__pairs_subset(ctx, pairs, keep_x, 4, keep_y, 4, &part);
  if (target_ok(ctx, unicon__leave(ctx, status))) look(part);
  unicon_pairs_destroy(part);
}

static void add_sets(unicon_ctx *ctx, const int64_t *x, const int64_t *y, const double *weight,
                     int64_t count) {
  unicon_pairs *pairs = NULL;
  if (target_ok(ctx, unicon__pairs_from_list(ctx, "pair", N_X, N_Y, (const int64_t[]){39},
                                             (const int64_t[]){49}, NULL, 1, &pairs))) {
    const unicon_status status = unicon__pairs_add_set(ctx, pairs, UNICON__PAIR_IGNORED,
                                                       "ignored pair", x, y, weight, count);
    if (target_ok(ctx, status) && count > 0)
      TARGET_HOLDS(unicon__pairs_add_set(ctx, pairs, UNICON__PAIR_NEGATIVE, "negative pair", x, y,
                                         NULL, count) != UNICON_OK); /* they are ignored already */
    look(pairs);
  }
  unicon_pairs_destroy(pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  int64_t *x, *y, count;
  double *weight;
  unicon_pairs *pairs = NULL;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  unicon_status status = unicon__pairs_parse_bytes(ctx, "input.tsv", (unicon__bytes){data, size},
                                                   &x, &y, &weight, &count);
  if (status == UNICON_OK) {
    add_sets(ctx, x, y, weight, count);
    unicon__clear_error(ctx);
    status = unicon__pairs_from_list(ctx, "input.tsv: pair", N_X, N_Y, x, y, weight, count, &pairs);
  }
  if (target_ok(ctx, unicon__leave(ctx, status))) {
    look(pairs);
    take(ctx, pairs);
  }
  unicon_pairs_destroy(pairs);
  target_done(ctx);
  return 0;
}
