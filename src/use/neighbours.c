/* SPDX-License-Identifier: Apache-2.0 */
#include "use/neighbours.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "use/search.h"

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
      if (!jury->self || ids[q * wide + from] != jury->self[q])
        list[q * k + to++] = ids[q * wide + from];
  unicon__drop(ctx, scores);
  unicon__drop(ctx, ids);
  return UNICON_OK;
}

typedef struct top_task {
  const unicon__jury *jury;
  const float *scores;
  int64_t k;
  int64_t *list;
} top_task;

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

static void top_of_row(void *state, int64_t query, int worker) {
  (void)worker;
  const top_task *t = state;
  unicon__top_items(t->scores + query * t->jury->items, 0, t->jury->items,
                    t->jury->self ? t->jury->self[query] : -1, t->k, t->list + query * t->k);
}

unicon_status unicon__jury_top(unicon_ctx *ctx, const unicon__jury *jury, const float *scores,
                               int64_t k, int64_t *list) {
  top_task t = {jury, scores, k, list};
  unicon__parallel_for(ctx, jury->queries, top_of_row, &t);
  return unicon__poll(ctx);
}

unicon_status unicon__jury_open(unicon_ctx *ctx, const float *query, const float *item,
                                int64_t width, unicon__jury *jury) {
  UNICON_NEW(ctx, jury->answer, jury->queries * UNICON__NEIGHBOURS);
  return unicon__jury_find(ctx, jury, query, item, width, UNICON__NEIGHBOURS, jury->answer);
}

/* ---- one query ---------------------------------------------------------------------------- */

/* What it is worth to find an item: 1 or 0 for neighbours, the grade of judged items. */
static double gain_of(const unicon__jury *jury, int64_t query, int64_t item) {
  if (jury->judged) {
    const unicon__partners p = unicon__positives_x(jury->judged, query);
    for (int64_t k = 0; k < p.count; k++)
      if (item >= 0 && p.item[k] == jury->original[item]) return p.weight ? (double)p.weight[k] : 1;
    return 0;
  }
  const int64_t *answer = jury->answer + query * UNICON__NEIGHBOURS;
  for (int k = 0; k < UNICON__NEIGHBOURS; k++)
    if (answer[k] == item && item >= 0) return 1;
  return 0;
}

/* DCG of the best order, and how many answers count. */
static double best_gain(const unicon__jury *jury, int64_t query, int64_t *right) {
  double top[UNICON__NEIGHBOURS] = {0}, sum = 0;
  *right = 0;
  if (!jury->judged) {
    for (int k = 0; k < UNICON__NEIGHBOURS; k++) {
      if (jury->answer[query * UNICON__NEIGHBOURS + k] < 0) continue;
      sum += 1 / log2((double)(*right)++ + 2);
    }
    return sum;
  }
  const unicon__partners p = unicon__positives_x(jury->judged, query);
  for (int64_t k = 0; k < p.count; k++) {
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

/* The figures of one query; false where it has no right answer. */
static bool judge_query(const unicon__jury *jury, int64_t query, const int64_t *list, int64_t k,
                        double value[UNICON__FIGURES]) {
  int64_t right, first = 0, all = 0;
  double gained = 0;
  const double best = best_gain(jury, query, &right);
  if (right == 0) return false;
  for (int64_t t = 0; t < k; t++) {
    const double gain = gain_of(jury, query, list[t]);
    if (!(gain > 0)) continue;
    all++;
    if (t >= UNICON__NEIGHBOURS) continue;
    first++;
    gained += gain / log2((double)t + 2);
  }
  const int64_t most = right < UNICON__NEIGHBOURS ? right : UNICON__NEIGHBOURS;
  value[UNICON__OVERLAP] = (double)first / (double)most;
  value[UNICON__NDCG] = gained / best;
  value[UNICON__WITHIN] = (double)all / (double)right;
  return true;
}

/* ---- all queries -------------------------------------------------------------------------- */

unicon_status unicon__jury_lists(unicon_ctx *ctx, const unicon__jury *jury, const int64_t *list,
                                 int64_t k, unicon__figures *out, double *each) {
  double sum[UNICON__FIGURES] = {0}, square[UNICON__FIGURES] = {0};
  *out = (unicon__figures){0};
  for (int64_t q = 0; q < jury->queries; q++) {
    double value[UNICON__FIGURES];
    const bool counts = judge_query(jury, q, list + q * k, k, value);
    if (each) each[q] = counts ? value[unicon__jury_leads(jury)] : NAN;
    if (!counts) continue;
    out->queries++;
    for (int f = 0; f < UNICON__FIGURES; f++) {
      sum[f] += value[f];
      square[f] += value[f] * value[f];
    }
  }
  if (out->queries == 0)
    return unicon__fail(ctx, UNICON_ERR_PAIRS, "no query has a right answer to be judged by");
  const double n = (double)out->queries;
  for (int f = 0; f < UNICON__FIGURES; f++) {
    const double mean = sum[f] / n, variance = fmax(0, square[f] / n - mean * mean);
    const double half = 1.96 * sqrt(variance / n);
    out->value[f] = mean;
    out->low[f] = fmax(0, mean - half);
    out->high[f] = fmin(1, mean + half);
  }
  return UNICON_OK;
}

unicon_status unicon__jury_rows(unicon_ctx *ctx, const unicon__jury *jury, const float *query,
                                const float *item, int64_t width, unicon__figures *out,
                                double *each) {
  int64_t *list;
  UNICON_NEW(ctx, list, jury->queries * UNICON__NEIGHBOURS);
  UNICON_TRY(unicon__jury_find(ctx, jury, query, item, width, UNICON__NEIGHBOURS, list));
  UNICON_TRY(unicon__jury_lists(ctx, jury, list, UNICON__NEIGHBOURS, out, each));
  unicon__drop(ctx, list);
  return UNICON_OK;
}

void unicon__paired_gain(const double *a, const double *b, int64_t queries, double *gain,
                         double *error) {
  double sum = 0, square = 0, count = 0;
  for (int64_t q = 0; q < queries; q++) {
    const double gap = a[q] - b[q];
    if (!isfinite(gap)) continue;
    sum += gap;
    square += gap * gap;
    count++;
  }
  *gain = count > 0 ? sum / count : 0;
  *error = count > 0 ? sqrt(fmax(0, square / count - *gain * *gain) / count) : 0;
}
