/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/stats_rows.h"

#include <string.h>

#include "base/sweep.h"
#include "linalg/vec.h"

enum {
  MAKE_ROWS = 64,  /* of a piece of work */
  PICK_ROWS = 256, /* partners loaded at once */
};

double unicon__pairs_ratio(const unicon_pairs *pairs) {
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    if (p.count == 0) continue;
    const double ratio =
        (double)p.count / (double)unicon__positives_y(pairs, unicon__partner(p, 0)).count;
    return unicon__pairs_have_ratio(pairs, ratio) ? ratio : -1;
  }
  return -1;
}

bool unicon__pairs_have_ratio(const unicon_pairs *pairs, double ratio) {
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners p = unicon__positives_x(pairs, i);
    for (int64_t k = 0; k < p.count; k++)
      if ((double)p.count !=
          ratio * (double)unicon__positives_y(pairs, unicon__partner(p, k)).count)
        return false;
  }
  return true;
}

/* ---- weights ------------------------------------------------------------------------------ */

/* What is done with each entry (i, j) of W. */
typedef struct visit {
  void (*entry)(void *state, int64_t i, int64_t j, double weight);
  void *state;
} visit;

/* Entries of row i of the plain W. */
static void visit_plain(const unicon_pairs *pairs, int direction, int64_t i, const visit *v) {
  const unicon__partners p = unicon__positives_x(pairs, i);
  for (int64_t k = 0; k < p.count; k++) {
    const int64_t j = unicon__partner(p, k);
    const int64_t count = direction == 0 ? p.count : unicon__positives_y(pairs, j).count;
    v->entry(v->state, i, j, unicon__pair_weight(p, k) / (double)count);
  }
}

/* What row i, and column j, add to the entries of their class. */
static double row_share(const unicon__stats_rows *m, int64_t i) {
  const unicon_pairs *pairs = m->set->pairs;
  const int64_t count = unicon__positives_x(pairs, i).count;
  if (count == 0) return 0;
  return unicon__omega_x(&m->plane, count, 1) / 2 - (pairs->only_listed ? m->u[i] : 0);
}

static double column_share(const unicon__stats_rows *m, int64_t j) {
  const unicon_pairs *pairs = m->set->pairs;
  const int64_t count = unicon__positives_y(pairs, j).count;
  const double omega = count == 0 ? 0 : unicon__omega_y(&m->plane, count, 1) / 2;
  return pairs->only_listed ? omega - m->v[j] : omega;
}

/* What takes a row's own entry out again, which the sums over its class and over all have in. */
static double self_factor(const unicon__stats_rows *m, int64_t i, int64_t self) {
  const unicon_pairs *pairs = m->set->pairs;
  const double all = pairs->only_listed ? 0 : m->u[i] + m->v[self];
  if (unicon__positives_x(pairs, i).count == 0) return all;
  return all - row_share(m, i) - column_share(m, self);
}

/* Entries of row i of W with lists, but for what labels give to a whole class. */
static void visit_listed(const unicon__stats_rows *m, int64_t i, const visit *v) {
  const unicon_pairs *pairs = m->set->pairs;
  const unicon__partners p = unicon__positives_x(pairs, i);
  for (int64_t k = 0; k < p.count && !pairs->class_x; k++) {
    const int64_t j = unicon__partner(p, k);
    const double w = unicon__pair_weight(p, k);
    double factor = unicon__omega_x(&m->plane, p.count, w) / 2 +
                    unicon__omega_y(&m->plane, unicon__positives_y(pairs, j).count, w) / 2;
    if (pairs->only_listed) factor -= m->u[i] + m->v[j];
    v->entry(v->state, i, j, factor);
  }
  const unicon__partners listed = unicon__listed(pairs, true, i);
  for (int64_t k = 0; k < listed.count; k++) {
    const double less = (pairs->only_listed ? 0 : 1) - unicon__epsilon(pairs, listed, k);
    v->entry(v->state, i, listed.item[k], less * (m->u[i] + m->v[listed.item[k]]));
  }
  const int64_t self = unicon__self_x(pairs, i);
  if (self >= 0) v->entry(v->state, i, self, self_factor(m, i, self));
}

static void visit_row(const unicon__stats_rows *m, int direction, int64_t i, const visit *v) {
  if (m->listed)
    visit_listed(m, i, v);
  else
    visit_plain(m->set->pairs, direction, i, v);
}

/* Omega_i / (2 candidates of row i) for every row of one side. */
static void half_shares(const unicon__stats_rows *m, bool x, double *out) {
  const unicon_pairs *pairs = m->set->pairs;
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

/* ---- sums of weights ---------------------------------------------------------------------- */

typedef struct totals {
  double *x, *y, sum;
} totals;

static void total_entry(void *state, int64_t i, int64_t j, double weight) {
  totals *t = state;
  t->x[i] += weight;
  t->y[j] += weight;
  t->sum += weight;
}

/* Row and column sums of what labels give to classes. */
static void class_totals(const unicon__stats_rows *m, totals *t) {
  const unicon_pairs *pairs = m->set->pairs;
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const unicon__partners all = unicon__list_at(&pairs->positive.by_y, pairs->class_x[i]);
    const double share = row_share(m, i);
    if (unicon__positives_x(pairs, i).count == 0) continue;
    for (int64_t k = 0; k < all.count; k++)
      total_entry(t, i, all.item[k], share + column_share(m, all.item[k]));
  }
}

static unicon_status sum_weights(unicon_ctx *ctx, unicon__stats_rows *m) {
  const unicon_pairs *pairs = m->set->pairs;
  UNICON_NEW(ctx, m->total[0], pairs->n_x);
  UNICON_NEW(ctx, m->total[1], pairs->n_y);
  totals t = {m->total[0], m->total[1], 0};
  const visit v = {total_entry, &t};
  for (int64_t i = 0; i < pairs->n_x; i++) visit_listed(m, i, &v);
  if (pairs->class_x) class_totals(m, &t);
  m->weight = t.sum;
  return UNICON_OK;
}

/* Sum of row i, or column i, of the plain W. */
static double plain_total(const unicon_pairs *pairs, int direction, int side, int64_t i) {
  const unicon__partners p =
      side == 0 ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
  double sum = 0;
  for (int64_t k = 0; k < p.count; k++) {
    const int64_t other = unicon__partner(p, k);
    const int64_t count = direction == side ? p.count
                          : direction == 0  ? unicon__positives_x(pairs, other).count
                                            : unicon__positives_y(pairs, other).count;
    sum += unicon__pair_weight(p, k) / (double)count;
  }
  return sum;
}

double unicon__stats_rows_weight(const unicon__stats_rows *rows, int direction) {
  const unicon_pairs *pairs = rows->set->pairs;
  double sum = 0;
  if (rows->listed) return rows->weight;
  for (int64_t i = 0; i < pairs->n_x; i++) sum += plain_total(pairs, direction, 0, i);
  return sum;
}

void unicon__stats_rows_totals(const unicon__stats_rows *rows, int direction, int side,
                               const int64_t *row, int64_t first, int64_t count, double *out) {
  for (int64_t k = 0; k < count; k++) {
    const int64_t i = row ? row[first + k] : first + k;
    out[k] =
        rows->listed ? rows->total[side][i] : plain_total(rows->set->pairs, direction, side, i);
  }
}

/* Sums of psi_y, and of psi_y by the shares of the columns, over classes. */
static unicon_status sum_classes(unicon_ctx *ctx, unicon__stats_rows *m) {
  const unicon__source *y = &m->set->y;
  const int64_t p = m->p, ld = y->map->out;
  float *buffer;
  UNICON_NEW(ctx, m->class_sum, m->set->pairs->classes * p);
  UNICON_NEW(ctx, m->class_b, m->set->pairs->classes * p);
  UNICON_NEW(ctx, buffer, PICK_ROWS * unicon__map_room(y->map));
  for (int64_t first = 0; first < y->count; first += PICK_ROWS) {
    const int64_t count = y->count - first < PICK_ROWS ? y->count - first : PICK_ROWS;
    const float *rows = unicon__source_tile(y, NULL, first, count, buffer);
    for (int64_t j = 0; j < count; j++) {
      const int64_t to = m->set->pairs->class_y[first + j] * p;
      const double share = column_share(m, first + j);
      for (int64_t k = 0; k < p; k++) {
        m->class_sum[to + k] += (double)rows[j * ld + k];
        m->class_b[to + k] += share * (double)rows[j * ld + k];
      }
    }
  }
  unicon__drop(ctx, buffer);
  return UNICON_OK;
}

unicon_status unicon__stats_rows_open(unicon_ctx *ctx, const unicon__batch *set, int64_t p,
                                      bool listed, unicon__stats_rows *out) {
  const unicon_pairs *pairs = set->pairs;
  *out = (unicon__stats_rows){.set = set, .p = p, .listed = listed};
  if (!listed) return UNICON_OK;
  unicon__plane_init(&out->plane, pairs, 0, NULL, NULL);
  UNICON_NEW(ctx, out->u, pairs->n_x);
  UNICON_NEW(ctx, out->v, pairs->n_y);
  half_shares(out, true, out->u);
  half_shares(out, false, out->v);
  UNICON_TRY(sum_weights(ctx, out));
  UNICON_NEW(ctx, out->alone[0], pairs->n_x);
  UNICON_NEW(ctx, out->alone[1], pairs->n_y);
  for (int s = 0; s < 2 && !pairs->only_listed; s++) {
    const double *from = s == 0 ? out->u : out->v;
    for (int64_t i = 0; i < (s == 0 ? pairs->n_x : pairs->n_y); i++) {
      out->alone[s][i] = from[i];
      out->alone_weight[s] += from[i];
    }
  }
  return pairs->class_x ? sum_classes(ctx, out) : UNICON_OK;
}

void unicon__stats_rows_alone(const unicon__stats_rows *rows, int side, const int64_t *row,
                              int64_t first, int64_t count, double *out) {
  for (int64_t k = 0; k < count; k++) out[k] = rows->alone[side][row ? row[first + k] : first + k];
}

/* ---- rows --------------------------------------------------------------------------------- */

typedef struct making {
  const unicon__stats_rows *m;
  int direction;
  const int64_t *row;
  int64_t first, count;
  unicon__stats_t t;
  float *buffer;
  int64_t *pick, *target; /* per worker: PICK_ROWS rows of y, and the row of T they go to */
  double *factor;
} making;

/* One worker's list of rows of y that wait to be added. */
typedef struct waiting {
  const making *k;
  int64_t *pick, *target, count, at; /* at: row of T in the making */
  double *factor;
  float *buffer;
} waiting;

static void flush(waiting *w) {
  const unicon__stats_rows *m = w->k->m;
  const int64_t p = m->p, ld = m->set->y.map->out;
  const float *rows = unicon__source_tile(&m->set->y, w->pick, 0, w->count, w->buffer);
  for (int64_t k = 0; k < w->count; k++) {
    const int64_t to = w->target[k] * p;
    const float *row = rows + k * ld;
    if (w->k->t.wide)
      for (int64_t j = 0; j < p; j++) w->k->t.wide[to + j] += w->factor[k] * (double)row[j];
    else
      unicon__vec_best()->add_scaled(w->k->t.single + to, row, p, (float)w->factor[k]);
  }
  w->count = 0;
}

static void wait_entry(void *state, int64_t i, int64_t j, double weight) {
  (void)i;
  waiting *w = state;
  w->pick[w->count] = j;
  w->target[w->count] = w->at;
  w->factor[w->count] = weight;
  if (++w->count == PICK_ROWS) flush(w);
}

static void add_class(const making *k, int64_t i, int64_t at) {
  const unicon__stats_rows *m = k->m;
  const unicon_pairs *pairs = m->set->pairs;
  const double share = row_share(m, i);
  const double *sum = m->class_sum + pairs->class_x[i] * m->p;
  const double *sum_b = m->class_b + pairs->class_x[i] * m->p;
  if (unicon__positives_x(pairs, i).count == 0) return;
  for (int64_t j = 0; j < m->p; j++) {
    const double more = share * sum[j] + sum_b[j];
    if (k->t.wide)
      k->t.wide[at * m->p + j] += more;
    else
      k->t.single[at * m->p + j] += (float)more;
  }
}

static void make_item(void *state, unicon__cell cell) {
  const making *k = state;
  const unicon__stats_rows *m = k->m;
  const int64_t from = cell.row * MAKE_ROWS, at = cell.worker * (int64_t)PICK_ROWS;
  const int64_t to = from + MAKE_ROWS < k->count ? from + MAKE_ROWS : k->count;
  waiting w = {.k = k,
               .pick = k->pick + at,
               .target = k->target + at,
               .factor = k->factor + at,
               .buffer = k->buffer + at * unicon__map_room(m->set->y.map)};
  const visit v = {wait_entry, &w};
  if (k->t.wide)
    memset(k->t.wide + from * m->p, 0, (size_t)((to - from) * m->p) * sizeof *k->t.wide);
  else
    memset(k->t.single + from * m->p, 0, (size_t)((to - from) * m->p) * sizeof *k->t.single);
  for (w.at = from; w.at < to; w.at++) {
    const int64_t i = k->row ? k->row[k->first + w.at] : k->first + w.at;
    visit_row(m, k->direction, i, &v);
    if (m->class_sum) add_class(k, i, w.at);
  }
  flush(&w);
}

unicon_status unicon__stats_rows_make(unicon_ctx *ctx, const unicon__stats_rows *rows,
                                      int direction, const int64_t *row, int64_t first,
                                      int64_t count, unicon__stats_t t) {
  const int64_t items = (count + MAKE_ROWS - 1) / MAKE_ROWS;
  const int64_t room = unicon__workers_for(ctx, items) * PICK_ROWS;
  making k = {
      .m = rows, .direction = direction, .row = row, .first = first, .count = count, .t = t};
  UNICON_NEW(ctx, k.pick, room);
  UNICON_NEW(ctx, k.target, room);
  UNICON_NEW(ctx, k.factor, room);
  UNICON_NEW(ctx, k.buffer, room * unicon__map_room(rows->set->y.map));
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, items, make_item, &k));
  unicon__drop(ctx, k.buffer);
  unicon__drop(ctx, k.factor);
  unicon__drop(ctx, k.target);
  unicon__drop(ctx, k.pick);
  return UNICON_OK;
}

/* ---- entries ------------------------------------------------------------------------------ */

typedef struct listing {
  unicon__stats_entries to; /* without columns: only counted */
  int64_t count;
} listing;

static void list_entry(void *state, int64_t i, int64_t j, double weight) {
  (void)i;
  listing *l = state;
  if (l->to.column) {
    l->to.column[l->count] = j;
    l->to.value[l->count] = weight;
  }
  l->count++;
}

unicon_status unicon__stats_rows_entries(unicon_ctx *ctx, const unicon__stats_rows *rows,
                                         int direction, const int64_t *row, int64_t first,
                                         int64_t count, unicon__stats_entries *out) {
  listing l = {.count = 0};
  const visit v = {list_entry, &l};
  UNICON_NEW(ctx, l.to.start, count + 1);
  for (int64_t i = 0; i < count; i++) {
    visit_row(rows, direction, row ? row[first + i] : first + i, &v);
    l.to.start[i + 1] = l.count;
  }
  UNICON_NEW(ctx, l.to.value, l.count);
  UNICON_NEW(ctx, l.to.column, l.count);
  l.count = 0;
  for (int64_t i = 0; i < count; i++)
    visit_row(rows, direction, row ? row[first + i] : first + i, &v);
  *out = l.to;
  return UNICON_OK;
}
