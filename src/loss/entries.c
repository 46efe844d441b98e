/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/entries.h"

#include "base/sweep.h"
#include "device/use.h"
#include "linalg/vec.h"

enum { ENTRY_ROWS = 64 }; /* of a piece of work: rows differ much in their entries */

unicon__entry_walk unicon__entries_of(const unicon_pairs *pairs, int64_t i) {
  return (unicon__entry_walk){.pairs = pairs,
                              .positive = unicon__positives_x(pairs, i),
                              .listed = unicon__listed(pairs, true, i),
                              .i = i,
                              .self = unicon__self_x(pairs, i)};
}

bool unicon__entry_next(unicon__entry_walk *w, unicon__entry *out) {
  const int64_t positive =
      w->p < w->positive.count ? unicon__partner(w->positive, w->p) : INT64_MAX;
  const int64_t listed = w->l < w->listed.count ? w->listed.item[w->l] : INT64_MAX;
  const int64_t self = w->self >= 0 ? w->self : INT64_MAX;
  const int64_t least = positive < listed ? positive : listed, j = least < self ? least : self;
  if (j == INT64_MAX) return false;
  *out = (unicon__entry){.i = w->i, .j = j, .epsilon = 1};
  if (j == listed) out->epsilon = unicon__epsilon(w->pairs, w->listed, w->l++);
  if (j == positive) {
    out->positive = true;
    out->count = w->positive.count;
    out->weight = unicon__pair_weight(w->positive, w->p++);
  }
  if (j == self) {
    out->epsilon = 0;
    w->self = -1;
  }
  return true;
}

bool unicon__entries_few(const unicon_ctx *ctx, const unicon_pairs *pairs) {
  const double bytes = sizeof(int64_t) + sizeof(double);
  int64_t count = pairs->n_x + pairs->ignore.count;
  for (int64_t i = 0; i < pairs->n_x; i++) count += unicon__positives_x(pairs, i).count;
  return !pairs->only_listed && unicon__device_lists(ctx, bytes * (double)count);
}

double unicon__entry_score(const unicon__loss *loss, const unicon__entry *e) {
  const unicon__plane *plane = &loss->plane;
  return unicon__vec_best()->dot(plane->zx + e->i * plane->r, plane->zy + e->j * plane->r,
                                 plane->r);
}

typedef struct making {
  const unicon__loss *loss;
  unicon__entry_fn value;
  int64_t n, *start, *column;
  double *values, *part; /* part: per row */
} making;

static void make_rows(void *state, unicon__cell cell) {
  const making *m = state;
  const int64_t first = cell.row * ENTRY_ROWS;
  for (int64_t i = first; i < first + ENTRY_ROWS && i < m->n; i++) {
    unicon__entry_walk w = unicon__entries_of(m->loss->plane.pairs, i);
    int64_t at = m->start[i];
    for (unicon__entry e; unicon__entry_next(&w, &e); at++) {
      m->column[at] = e.j;
      m->values[at] = m->value(m->loss, &e, &m->part[i]);
    }
  }
}

unicon_status unicon__entries_make(unicon_ctx *ctx, const unicon__loss *loss,
                                   unicon__entry_fn value, unicon__device_sparse *out,
                                   double *sum) {
  making m = {.loss = loss, .value = value, .n = loss->plane.n_x};
  UNICON_NEW(ctx, m.start, m.n + 1);
  UNICON_NEW(ctx, m.part, m.n);
  for (int64_t i = 0; i < m.n; i++) {
    unicon__entry_walk w = unicon__entries_of(loss->plane.pairs, i);
    int64_t count = 0;
    for (unicon__entry e; unicon__entry_next(&w, &e);) count++;
    m.start[i + 1] = m.start[i] + count;
  }
  UNICON_NEW(ctx, m.column, m.start[m.n]);
  UNICON_NEW(ctx, m.values, m.start[m.n]);
  UNICON_TRY(
      unicon__sweep_rows(ctx, NULL, NULL, (m.n + ENTRY_ROWS - 1) / ENTRY_ROWS, make_rows, &m));
  *out = (unicon__device_sparse){m.n, m.start, m.column, m.values};
  *sum = 0;
  for (int64_t i = 0; i < m.n; i++) *sum += m.part[i];
  return UNICON_OK;
}
