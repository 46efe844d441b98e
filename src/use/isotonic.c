/* SPDX-License-Identifier: Apache-2.0 */
#include "use/isotonic.h"

#include "unicon/migrate.h"

#include <math.h>
#include <stdlib.h>

#include "io/object.h"

/* Points with one value: their means and number. */
typedef struct pool {
  double x, y, weight;
} pool;

static int compare_pools(const void *a, const void *b) {
  const pool *left = a, *right = b;
  return (left->x > right->x) - (left->x < right->x);
}

static pool joined(pool a, pool b) {
  const double weight = a.weight + b.weight;
  return (pool){(a.x * a.weight + b.x * b.weight) / weight,
                (a.y * a.weight + b.y * b.weight) / weight, weight};
}

/* Neighbours in the wrong order, or at one place, become one; returns how many are left. */
static int64_t pool_violators(pool *p, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    p[count++] = p[i];
    while (count > 1 && (p[count - 2].y >= p[count - 1].y || p[count - 2].x >= p[count - 1].x)) {
      p[count - 2] = joined(p[count - 2], p[count - 1]);
      count--;
    }
  }
  return count;
}

unicon_status unicon__isotonic(unicon_ctx *ctx, unicon__arena *arena, const float *x,
                               const float *y, int64_t n, unicon__curve *out) {
  pool *p;
  double total = 0;
  *out = (unicon__curve){0};
  if (n == 0) return UNICON_OK;
  UNICON_NEW(ctx, p, n);
  for (int64_t i = 0; i < n; i++) p[i] = (pool){(double)x[i], (double)y[i], 1};
  qsort(p, (size_t)n, sizeof *p, compare_pools);
  const int64_t pools = pool_violators(p, n);
  UNICON_ARENA_NEW(ctx, arena, out->knot, (int64_t)2 * UNICON__KNOTS);
  for (int64_t i = 0; i < pools;) { /* as many points to a knot as are left for the rest */
    const double share = ((double)n - total) / (double)(UNICON__KNOTS - out->knots);
    pool knot = p[i++];
    while (i < pools && out->knots < UNICON__KNOTS - 1 && pools > UNICON__KNOTS &&
           knot.weight + p[i].weight / 2 < share)
      knot = joined(knot, p[i++]);
    while (i < pools && out->knots == UNICON__KNOTS - 1) knot = joined(knot, p[i++]);
    total += knot.weight;
    const float at = (float)knot.x;
    if (out->knots > 0 && at <= out->knot[2 * out->knots - 2]) continue; /* one float32 place */
    out->knot[2 * out->knots] = at;
    out->knot[2 * out->knots++ + 1] = (float)knot.y;
  }
  unicon__drop(ctx, p);
  return UNICON_OK;
}

double unicon__curve_at(const unicon__curve *curve, double x) {
  const float *k = curve->knot;
  int64_t low = 0, high = curve->knots - 1;
  if (curve->knots == 0) return x;
  if (curve->knots == 1) return (double)k[1];
  const double first = (double)k[0], last = (double)k[2 * high];
  const double slope = ((double)k[2 * high + 1] - (double)k[1]) / (last - first);
  if (!(x > first)) return fmax(-1, (double)k[1] - slope * (first - x));
  if (x >= last) return fmin(1, (double)k[2 * high + 1] + slope * (x - last));
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (x >= (double)k[2 * middle])
      low = middle;
    else
      high = middle;
  }
  const double from = (double)k[2 * low], to = (double)k[2 * high];
  const double share = (x - from) / (to - from);
  return (1 - share) * (double)k[2 * low + 1] + share * (double)k[2 * high + 1];
}

unicon_status unicon_model_calibrate(unicon_ctx *ctx, const unicon_model *model, int to_new,
                                     int64_t count, float *scores) {
  UNICON_TRY(unicon__enter(ctx));
  const unicon__curve *curve = model ? &model->curve[to_new ? UNICON__NEW : UNICON__OLD] : NULL;
  if (!model || (count > 0 && !scores))
    return unicon__leave(
        ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT, "model_calibrate needs a model and scores"));
  if (curve->knots == 0)
    return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                                           "the model has no curve from its scores to those of the "
                                           "%s model; `unicon migrate` makes models that do",
                                           to_new ? "new" : "old"));
  for (int64_t k = 0; k < count; k++)
    if (isfinite(scores[k])) scores[k] = (float)unicon__curve_at(curve, (double)scores[k]);
  return unicon__leave(ctx, UNICON_OK);
}
