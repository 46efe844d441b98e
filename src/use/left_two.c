/* SPDX-License-Identifier: Apache-2.0 */
#include "use/left_two.h"

#include <math.h>

#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { QUERIES = 32 };

typedef struct task {
  const unicon__left_two *two;
  const float *y;
  int64_t e;
  const double *along, *length; /* per item: y_j . a_j and |a_j|^2 */
  float *room;                  /* per worker: three tiles */
  float *scores;
} task;

static void score_tile(void *state, int64_t item, int worker) {
  const task *t = state;
  const unicon__left_two *two = t->two;
  const int64_t n = two->items, e = t->e, first = item * QUERIES;
  const int64_t count = two->queries - first < QUERIES ? two->queries - first : QUERIES;
  float *ya = t->room + (int64_t)worker * 3 * QUERIES * n; /* y_i . a_j */
  float *ay = ya + QUERIES * n, *aa = ay + QUERIES * n;    /* a_i . y_j, a_i . a_j */
  const float *y = t->y + first * e, *a = two->residual + first * e;
  float *out = t->scores + first * n; /* y_i . y_j at first */
  unicon__sgemm(false, true, count, n, e, 1, y, e, t->y, e, 0, out, n);
  unicon__sgemm(false, true, count, n, e, 1, y, e, two->residual, e, 0, ya, n);
  unicon__sgemm(false, true, count, n, e, 1, a, e, t->y, e, 0, ay, n);
  unicon__sgemm(false, true, count, n, e, 1, a, e, two->residual, e, 0, aa, n);
  for (int64_t q = 0; q < count; q++) {
    const int64_t i = first + q;
    const double own = two->diagonal[i];
    for (int64_t j = 0; j < n; j++) {
      const int64_t at = q * n + j;
      const double cross = (double)two->cross[i * n + j];
      const double det = own * two->diagonal[j] - cross * cross;
      /* A twin of the query has nothing left to be predicted from but the others. */
      const double safe = fmax(det, 1e-6 * own * two->diagonal[j]);
      const double f = own / safe, g = cross / safe;
      const double product = (double)out[at] - f * (double)ya[at] + g * t->along[i];
      const double square = 1 + f * f * t->length[j] + g * g * t->length[i] - 2 * f * t->along[j] +
                            2 * g * (double)ay[at] - 2 * f * g * (double)aa[at];
      out[at] = (float)(product / sqrt(fmax(square, 1e-12)));
    }
  }
}

unicon_status unicon__left_two_scores(unicon_ctx *ctx, const unicon__left_two *two, const float *y,
                                      int64_t e, float *scores) {
  const unicon__vec *vec = unicon__vec_best();
  const int64_t items = (two->queries + QUERIES - 1) / QUERIES;
  double *along, *length;
  task t = {.two = two, .y = y, .e = e, .scores = scores};
  UNICON_NEW(ctx, along, two->items);
  UNICON_NEW(ctx, length, two->items);
  UNICON_NEW(ctx, t.room, unicon__workers_for(ctx, items) * 3 * QUERIES * two->items);
  for (int64_t j = 0; j < two->items; j++) {
    along[j] = vec->dot(y + j * e, two->residual + j * e, e);
    length[j] = vec->sum_squares(two->residual + j * e, e);
  }
  t.along = along;
  t.length = length;
  unicon__blas_begin();
  unicon__parallel_for(ctx, items, score_tile, &t);
  unicon__blas_end();
  unicon__drop(ctx, t.room);
  unicon__drop(ctx, length);
  unicon__drop(ctx, along);
  return unicon__poll(ctx);
}
