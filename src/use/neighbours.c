/* SPDX-License-Identifier: Apache-2.0 */
#include "use/neighbours.h"

#include <math.h>
#include <string.h>

#include "use/search.h"

/* ---- figures ------------------------------------------------------------------------------ */

void unicon__figures_of(const double *each, int64_t queries, unicon__figures *out) {
  *out = (unicon__figures){0};
  for (int64_t q = 0; q < queries; q++) out->queries += isfinite(each[q * UNICON__FIGURES]) != 0;
  const double n = (double)(out->queries > 0 ? out->queries : 1);
  for (int f = 0; f < UNICON__FIGURES; f++) {
    double sum = 0, square = 0;
    for (int64_t q = 0; q < queries; q++) {
      const double value = each[q * UNICON__FIGURES + f];
      if (!isfinite(value)) continue;
      sum += value;
      square += value * value;
    }
    const double mean = sum / n, half = 1.96 * sqrt(fmax(0, square / n - mean * mean) / n);
    out->value[f] = mean;
    out->low[f] = fmax(0, mean - half);
    out->high[f] = fmin(1, mean + half);
  }
}

void unicon__figures_gain(const double *a, const double *b, int64_t queries, unicon__figure figure,
                          double *gain, double *error) {
  double sum = 0, square = 0, count = 0;
  for (int64_t q = 0; q < queries; q++) {
    const int64_t at = q * UNICON__FIGURES + (int64_t)figure;
    const double gap = a[at] - b[at];
    if (!isfinite(gap)) continue;
    sum += gap;
    square += gap * gap;
    count++;
  }
  *gain = count > 0 ? sum / count : 0;
  *error = count > 0 ? sqrt(fmax(0, square / count - *gain * *gain) / count) : 0;
}

/* ---- finding ------------------------------------------------------------------------------ */

unicon_status unicon__jury_find(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, int64_t k, int64_t *list) {
  const int64_t wide = jury->self ? k + 1 : k;
  int64_t *ids;
  float *scores;
  UNICON_NEW(ctx, ids, jury->queries * wide);
  UNICON_NEW(ctx, scores, jury->queries * wide);
  UNICON_TRY(
      unicon__nearest(ctx, query, jury->queries, item, jury->items, width, wide, ids, scores));
  for (int64_t t = 0; t < jury->queries * k; t++) list[t] = -1;
  for (int64_t q = 0; q < jury->queries; q++)
    for (int64_t from = 0, to = 0; from < wide && to < k; from++)
      if (!jury->self || ids[q * wide + from] != q) list[q * k + to++] = ids[q * wide + from];
  unicon__drop(ctx, scores);
  unicon__drop(ctx, ids);
  return UNICON_OK;
}

unicon_status unicon__jury_open(unicon_ctx *ctx, const float *query, const float *item,
                                int64_t width, unicon__jury *jury) {
  UNICON_NEW(ctx, jury->answer, jury->queries * UNICON__NEIGHBOURS);
  return unicon__jury_find(ctx, jury, query, item, width, UNICON__NEIGHBOURS, jury->answer);
}

void unicon__top_items(const float *score, int64_t first, int64_t count, int64_t self, int64_t k,
                       int64_t *list) {
  int64_t filled = 0;
  for (int64_t j = first; j < first + count; j++) {
    if (j == self || (filled == k && !(score[j] > score[list[k - 1]]))) continue;
    int64_t at = filled < k ? filled++ : k - 1;
    for (; at > 0 && score[j] > score[list[at - 1]]; at--) list[at] = list[at - 1];
    list[at] = j;
  }
  for (; filled < k; filled++) list[filled] = -1;
}

/* ---- judging ------------------------------------------------------------------------------ */

/* What it is worth to find an item: 1 or 0 for neighbours, the grade of judged items. */
static double gain_of(const unicon__jury *jury, int64_t query, int64_t item) {
  if (item < 0) return 0;
  if (jury->judged) {
    const unicon__partners p = unicon__positives_x(jury->judged, query);
    const int64_t row = jury->original[item];
    int64_t there;
    const int64_t k = unicon__list_range(p, row, row + 1, &there);
    return there == 0 ? 0 : p.weight ? (double)p.weight[k] : 1;
  }
  const int64_t *answer = jury->answer + query * UNICON__NEIGHBOURS;
  for (int k = 0; k < UNICON__NEIGHBOURS; k++)
    if (answer[k] == item) return 1;
  return 0;
}

/* DCG of the best order, and how many answers count. */
static double best_gain(const unicon__jury *jury, int64_t query, int64_t *right) {
  double top[UNICON__NEIGHBOURS] = {0}, sum = 0;
  *right = 0;
  if (!jury->judged) {
    for (int k = 0; k < UNICON__NEIGHBOURS; k++)
      if (jury->answer[query * UNICON__NEIGHBOURS + k] >= 0)
        sum += 1 / log2((double)(*right)++ + 2);
    return sum;
  }
  const unicon__partners p = unicon__positives_x(jury->judged, query);
  for (int64_t k = 0; k < p.count; k++) {
    if (jury->drawn && !jury->drawn[unicon__partner(p, k)]) continue; /* nobody can find it */
    double grade = p.weight ? (double)p.weight[k] : 1;
    *right += grade > 0;
    for (int t = 0; t < UNICON__NEIGHBOURS; t++) /* into its place among the ten largest */
      if (grade > top[t]) {
        const double held = top[t];
        top[t] = grade;
        grade = held;
      }
  }
  for (int t = 0; t < UNICON__NEIGHBOURS; t++) sum += top[t] / log2(t + 2.0);
  return sum;
}

void unicon__jury_judge(const unicon__jury *jury, const int64_t *list, int64_t k, double *each) {
  for (int64_t q = 0; q < jury->queries; q++) {
    double *value = each + q * UNICON__FIGURES, gained = 0;
    int64_t right, found = 0;
    const double best = best_gain(jury, q, &right);
    for (int t = 0; t < UNICON__NEIGHBOURS; t++) {
      const double gain = gain_of(jury, q, list[q * k + t]);
      found += gain > 0;
      gained += gain / log2(t + 2.0);
    }
    const int64_t most = right < UNICON__NEIGHBOURS ? right : UNICON__NEIGHBOURS;
    value[UNICON__OVERLAP] = right > 0 ? (double)found / (double)most : NAN;
    value[UNICON__NDCG] = right > 0 ? gained / best : NAN;
  }
}

unicon_status unicon__jury_rows(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, double *each) {
  int64_t *list;
  UNICON_NEW(ctx, list, jury->queries * UNICON__NEIGHBOURS);
  UNICON_TRY(unicon__jury_find(ctx, jury, query, item, width, UNICON__NEIGHBOURS, list));
  unicon__jury_judge(jury, list, UNICON__NEIGHBOURS, each);
  unicon__drop(ctx, list);
  return UNICON_OK;
}

/* ---- items in folds ----------------------------------------------------------------------- */

unicon_status unicon__panel_open(unicon_ctx *ctx, const float *query, const float *item,
                                 int64_t width, unicon__panel *panel) {
  UNICON_NEW(ctx, panel->jury, panel->folds);
  for (int64_t f = 0; f < panel->folds; f++) {
    const int64_t first = unicon__panel_first(panel, f);
    const int64_t items = unicon__panel_first(panel, f + 1) - first;
    panel->jury[f] = (unicon__jury){.queries = panel->self ? items : panel->queries,
                                    .items = items,
                                    .self = panel->self,
                                    .judged = panel->judged,
                                    .original = panel->original,
                                    .drawn = panel->drawn};
    UNICON_TRY(unicon__jury_open(ctx, panel->self ? query + first * width : query,
                                 item + first * width, width, &panel->jury[f]));
  }
  return UNICON_OK;
}

/* The 97.5 % point of Student's t (Cornish and Fisher's series). */
static double student(double freedom) {
  const double z = 1.96, cube = z * z * z;
  return z + (cube + z) / (4 * freedom) +
         (5 * cube * z * z + 16 * cube + 3 * z) / (96 * freedom * freedom);
}

/* Other queries would have other neighbours among other items, and a fold is a small index of its
 * own: how the means of the folds differ goes into the interval beside how the queries do. Maps of
 * the folds share most of their pairs, and other pairs would give other maps: hence the second term
 * (Nadeau and Bengio). `fold` holds figures of every fold. */
static void widen(const double *fold, int64_t folds, unicon__figures *out) {
  const double n = (double)folds;
  if (folds < 2) return;
  for (int f = 0; f < UNICON__FIGURES; f++) {
    double sum = 0, square = 0;
    for (int64_t k = 0; k < folds; k++) sum += fold[k * UNICON__FIGURES + f] / n;
    for (int64_t k = 0; k < folds; k++) square += pow(fold[k * UNICON__FIGURES + f] - sum, 2);
    const double own = student(n - 1) * sqrt(square / (n - 1) * (1 / n + 1 / (n - 1)));
    out->low[f] = fmax(0, out->value[f] - hypot(out->value[f] - out->low[f], own));
    out->high[f] = fmin(1, out->value[f] + hypot(out->high[f] - out->value[f], own));
  }
}

/* Means over the queries of a fold. */
static void fold_mean(const double *each, int64_t queries, double *mean) {
  unicon__figures figures;
  unicon__figures_of(each, queries, &figures);
  memcpy(mean, figures.value, sizeof figures.value);
}

unicon_status unicon__panel_rows(unicon_ctx *ctx, const unicon__panel *panel, const float *query,
                                 const float *item, int64_t width, double *each,
                                 unicon__figures *out) {
  const int64_t numbers = panel->queries * UNICON__FIGURES;
  double *fold, *mean;
  UNICON_NEW(ctx, mean, panel->folds * UNICON__FIGURES);
  UNICON_NEW(ctx, fold, numbers);
  memset(each, 0, (size_t)numbers * sizeof *each);
  for (int64_t f = 0; f < panel->folds; f++) {
    const int64_t first = unicon__panel_first(panel, f);
    if (panel->self) {
      UNICON_TRY(unicon__jury_rows(ctx, &panel->jury[f], query + first * width,
                                   item + first * width, width, each + first * UNICON__FIGURES));
      fold_mean(each + first * UNICON__FIGURES, panel->jury[f].queries, mean + f * UNICON__FIGURES);
      continue;
    }
    UNICON_TRY(unicon__jury_rows(ctx, &panel->jury[f], query, item + first * width, width, fold));
    fold_mean(fold, panel->queries, mean + f * UNICON__FIGURES);
    for (int64_t k = 0; k < numbers; k++) each[k] += fold[k] / (double)panel->folds;
  }
  unicon__drop(ctx, fold);
  unicon__figures_of(each, panel->queries, out);
  widen(mean, panel->folds, out);
  unicon__drop(ctx, mean);
  if (out->queries > 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_PAIRS, "no query has a right answer to be judged by");
}
