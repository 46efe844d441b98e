/* SPDX-License-Identifier: Apache-2.0 */
#include "select/chance.h"

#include <math.h>

/* Of a query with `matches` among so many candidates: the first match has rank k with the chance
 * that k - 1 places miss and the next one does not. */
static double of_query(int64_t candidates, int64_t matches) {
  const double nothing = 1e-12;
  double miss = 1, reciprocal = 0, hit = 0;
  for (int64_t k = 1; k <= candidates && miss > nothing; k++) {
    const double share = fmin(1, (double)matches / (double)(candidates - k + 1));
    reciprocal += miss * share / (double)k;
    if (k <= 10) hit += miss * share;
    miss *= 1 - share;
  }
  return (reciprocal + hit) / 2;
}

/* What was computed last for some numbers: most queries have the same. */
typedef struct memo {
  int64_t candidates, matches;
  double value;
} memo;

enum { MEMOS = 256 };

static double remembered(memo *all, int64_t candidates, int64_t matches) {
  memo *m = &all[(uint64_t)(candidates + 31 * matches) % MEMOS];
  if (m->candidates != candidates || m->matches != matches)
    *m = (memo){candidates, matches, of_query(candidates, matches)};
  return m->value;
}

/* Queries of x, or of y. */
static double of_side(const unicon_pairs *pairs, bool x) {
  const int64_t queries = x ? pairs->n_x : pairs->n_y, all = x ? pairs->n_y : pairs->n_x;
  memo memos[MEMOS] = {{0}};
  double sum = 0, count = 0;
  for (int64_t i = 0; i < queries; i++) {
    const int64_t matches =
        (x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i)).count;
    const int64_t self = x ? unicon__self_x(pairs, i) : unicon__self_y(pairs, i);
    const int64_t ignored =
        unicon__list_at(x ? &pairs->ignore.by_x : &pairs->ignore.by_y, i).count + (self >= 0);
    if (matches == 0) continue;
    sum += remembered(memos, all - ignored, matches);
    count++;
  }
  return count > 0 ? sum / count : 0;
}

double unicon__chance(const unicon_pairs *pairs) {
  return (of_side(pairs, true) + of_side(pairs, false)) / 2;
}
