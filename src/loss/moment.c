/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/moment.h"

#include <string.h>

#include "base/parallel.h"
#include "loss/cross.h"
#include "loss/loss.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { PICK_ROWS = 512 }; /* partners loaded at once */

typedef struct moment {
  unicon__plane plane; /* for omega; its embeddings are not used */
  const unicon_pairs *pairs;
  double *u, *v;
  double *b;                   /* labels: what column j adds in a row of its class, else NULL */
  double *class_sum, *class_b; /* labels: sums over a class of phi_y and b phi_y, else NULL */
  double *all, *all_v;         /* sums over all y of phi_y and v phi_y; NULL when both centred */
  unicon__cross cross;
  int64_t *pick;   /* per slot: PICK_ROWS rows of y ... */
  float *factor;   /* ... their factors ... */
  int64_t *target; /* ... and the row of T they go to */
  int64_t first;
  bool centred;
} moment;

/* Omega_i / (2 candidates of row i) for every row of one side. */
static void half_shares(const moment *m, bool x, double *out) {
  const unicon_pairs *pairs = m->pairs;
  const int64_t n = x ? pairs->n_x : pairs->n_y, other = x ? pairs->n_y : pairs->n_x;
  for (int64_t i = 0; i < n; i++) {
    const unicon__partners p = x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
    const int64_t self = x ? unicon__self_x(pairs, i) : unicon__self_y(pairs, i);
    const unicon__partners listed = unicon__listed(pairs, x, i);
    double candidates = pairs->only_listed ? (double)p.count : (double)(other - (self >= 0));
    for (int64_t k = 0; k < listed.count; k++)
      candidates += unicon__epsilon(pairs, listed, k) - (pairs->only_listed ? 0 : 1);
    double total = p.weight ? 0 : (double)p.count;
    for (int64_t k = 0; p.weight && k < p.count; k++) total += (double)p.weight[k];
    if (p.count == 0) continue;
    const double omega =
        x ? unicon__omega_x(&m->plane, p.count, total) : unicon__omega_y(&m->plane, p.count, total);
    out[i] = omega / (2 * candidates);
  }
}

/* Sums of phi_y and factor phi_y over classes (or over everything when class is NULL). */
static unicon_status sum_features(unicon_ctx *ctx, const moment *m, const int32_t *class,
                                  const double *factor, double *sum, double *sum_v) {
  const unicon__source *y = m->cross.y;
  const int64_t p = y->map->out;
  float *buffer;
  UNICON_NEW(ctx, buffer, PICK_ROWS * unicon__map_room(y->map));
  for (int64_t first = 0; first < y->count; first += PICK_ROWS) {
    const int64_t count = y->count - first < PICK_ROWS ? y->count - first : PICK_ROWS;
    const float *rows = unicon__source_tile(y, NULL, first, count, buffer);
    for (int64_t j = 0; j < count; j++) {
      const int64_t to = class ? class[first + j] * p : 0;
      const double v = factor[first + j];
      for (int64_t k = 0; k < p; k++) {
        sum[to + k] += (double)rows[j * p + k];
        sum_v[to + k] += v * (double)rows[j * p + k];
      }
    }
  }
  unicon__drop(ctx, buffer);
  return UNICON_OK;
}

/* Adds the picked rows of y, times their factors, to T. */
static void flush(const moment *m, int slot, int64_t count) {
  const unicon__vec *vec = unicon__vec_best();
  const int64_t p = m->cross.y->map->out, at = slot * (int64_t)PICK_ROWS;
  float *product = unicon__cross_product(&m->cross, slot);
  const float *rows = unicon__source_tile(m->cross.y, m->pick + at, 0, count,
                                          unicon__cross_buffer(&m->cross, slot));
  for (int64_t k = 0; k < count; k++)
    vec->add_scaled(product + m->target[at + k] * p, rows + k * p, p, m->factor[at + k]);
}

static int64_t push(const moment *m, int slot, int64_t count, int64_t row, int64_t target,
                    double factor) {
  const int64_t at = slot * (int64_t)PICK_ROWS + count;
  m->pick[at] = row;
  m->target[at] = target;
  m->factor[at] = (float)factor;
  if (count + 1 < PICK_ROWS) return count + 1;
  flush(m, slot, PICK_ROWS);
  return 0;
}

/* What row i adds to the columns of its class. */
static double row_share(const moment *m, int64_t i, int64_t count) {
  return unicon__omega_x(&m->plane, count, 1) / 2 - (m->pairs->only_listed ? m->u[i] : 0);
}

static void column_shares(const moment *m, double *b) {
  for (int64_t j = 0; j < m->pairs->n_y; j++) {
    const int64_t count = unicon__positives_y(m->pairs, j).count;
    b[j] = count == 0 ? 0 : unicon__omega_y(&m->plane, count, 1) / 2;
    if (m->pairs->only_listed) b[j] -= m->v[j];
  }
}

/* What takes a row's own entry out again, which the sums over its class and over all have in. */
static double self_factor(const moment *m, int64_t i, int64_t self) {
  const unicon__partners p = unicon__positives_x(m->pairs, i);
  const double all = m->pairs->only_listed ? 0 : m->u[i] + m->v[self];
  return p.count == 0 ? all : all - row_share(m, i, p.count) - m->b[self];
}

/* Rows of T from the lists: positives, and ignored or listed pairs. */
static int64_t push_lists(const moment *m, int slot, int64_t count, int64_t i, int64_t target) {
  const unicon_pairs *pairs = m->pairs;
  const unicon__partners p = unicon__positives_x(pairs, i);
  for (int64_t k = 0; k < p.count && !pairs->class_x; k++) {
    const int64_t j = unicon__partner(p, k);
    const double w = unicon__pair_weight(p, k);
    double factor = unicon__omega_x(&m->plane, p.count, w) / 2 +
                    unicon__omega_y(&m->plane, unicon__positives_y(pairs, j).count, w) / 2;
    if (pairs->only_listed) factor -= m->u[i] + m->v[j];
    count = push(m, slot, count, j, target, factor);
  }
  const unicon__partners listed = unicon__listed(pairs, true, i);
  for (int64_t k = 0; k < listed.count; k++) {
    const double less = (pairs->only_listed ? 0 : 1) - unicon__epsilon(pairs, listed, k);
    const double factor = less * (m->u[i] + m->v[listed.item[k]]);
    count = push(m, slot, count, listed.item[k], target, factor);
  }
  const int64_t self = unicon__self_x(pairs, i);
  return self < 0 ? count : push(m, slot, count, self, target, self_factor(m, i, self));
}

/* A row of T from the sums: its class, and the rank-one terms. */
static void add_sums(const moment *m, int64_t i, float *row) {
  const unicon_pairs *pairs = m->pairs;
  const int64_t p = m->cross.y->map->out;
  const unicon__partners list = unicon__positives_x(pairs, i);
  if (m->class_sum && list.count > 0) {
    const double factor = row_share(m, i, list.count);
    const double *sum = m->class_sum + pairs->class_x[i] * p;
    const double *sum_b = m->class_b + pairs->class_x[i] * p;
    for (int64_t k = 0; k < p; k++) row[k] += (float)(factor * sum[k] + sum_b[k]);
  }
  if (m->all)
    for (int64_t k = 0; k < p; k++) row[k] -= (float)(m->u[i] * m->all[k] + m->all_v[k]);
}

static void moment_row(void *state, int64_t item, int worker) {
  (void)worker;
  const moment *m = state;
  const int slot = (int)item;
  const int64_t p = m->cross.y->map->out, tile = m->cross.tile_x, x0 = (m->first + item) * tile;
  const int64_t nx = m->pairs->n_x - x0 < tile ? m->pairs->n_x - x0 : tile;
  float *product = unicon__cross_product(&m->cross, slot);
  memset(product, 0, (size_t)(nx * p) * sizeof *product);
  int64_t count = 0;
  for (int64_t i = 0; i < nx; i++) count = push_lists(m, slot, count, x0 + i, i);
  flush(m, slot, count);
  for (int64_t i = 0; i < nx; i++) add_sums(m, x0 + i, product + i * p);
  unicon__cross_row(&m->cross, x0, nx, slot);
}

static unicon_status moment_prepare(unicon_ctx *ctx, moment *m) {
  const int64_t p = m->cross.y->map->out, slots = unicon__workers(ctx);
  UNICON_NEW(ctx, m->u, m->pairs->n_x);
  UNICON_NEW(ctx, m->v, m->pairs->n_y);
  half_shares(m, true, m->u);
  half_shares(m, false, m->v);
  UNICON_NEW(ctx, m->pick, slots * PICK_ROWS);
  UNICON_NEW(ctx, m->factor, slots * PICK_ROWS);
  UNICON_NEW(ctx, m->target, slots * PICK_ROWS);
  if (m->pairs->class_x) {
    UNICON_NEW(ctx, m->b, m->pairs->n_y);
    column_shares(m, m->b);
    UNICON_NEW(ctx, m->class_sum, m->pairs->classes * p);
    UNICON_NEW(ctx, m->class_b, m->pairs->classes * p);
    UNICON_TRY(sum_features(ctx, m, m->pairs->class_y, m->b, m->class_sum, m->class_b));
  }
  if (!m->pairs->only_listed && !m->centred) {
    UNICON_NEW(ctx, m->all, p);
    UNICON_NEW(ctx, m->all_v, p);
    UNICON_TRY(sum_features(ctx, m, NULL, m->v, m->all, m->all_v));
  }
  return UNICON_OK;
}

unicon_status unicon__moment_cross(unicon_ctx *ctx, const unicon_pairs *pairs,
                                   const unicon__source *x, const unicon__source *y, bool centred,
                                   double *c) {
  moment m = {.pairs = pairs, .centred = centred};
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__plane_init(&m.plane, pairs, 0, NULL, NULL);
  UNICON_TRY(unicon__cross_open(ctx, x, y, PICK_ROWS, c, &m.cross));
  UNICON_TRY(moment_prepare(ctx, &m));
  const int64_t tile = ctx->tile_x, rows = (pairs->n_x + tile - 1) / tile;
  const int64_t round = unicon__workers(ctx);
  for (m.first = 0; m.first < rows; m.first += round) {
    const int64_t items = rows - m.first < round ? rows - m.first : round;
    UNICON_TRY(unicon__progress(ctx, "moment", (double)m.first / (double)rows));
    unicon__blas_begin();
    unicon__parallel_for(ctx, items, moment_row, &m);
    unicon__blas_end();
    unicon__cross_fold(ctx, &m.cross, items);
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
