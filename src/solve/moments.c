/* SPDX-License-Identifier: Apache-2.0 */
/* From statistics to means, covariances and C. */
#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "solve/stats.h"
#include "solve/whiten.h"

/* Statistics less others, entry by entry. */
static double less(const double *a, const double *b, int64_t k) {
  return a[k] - (b ? b[k] : 0);
}

typedef struct taking {
  const unicon__stats *all, *part; /* part may be NULL */
  int64_t p[2];                    /* features that are looked at, at most those of part */
} taking;

static double rows_of(const taking *t, int s) {
  return t->all->rows[s] - (t->part ? t->part->rows[s] : 0);
}

/* a of a side, and its mean. */
static unicon_status side_sums(unicon_ctx *ctx, const taking *t, int s, double **sum) {
  UNICON_NEW(ctx, *sum, t->p[s]);
  for (int64_t k = 0; k < t->p[s]; k++)
    (*sum)[k] = less(t->all->sum[s], t->part ? t->part->sum[s] : NULL, k);
  return UNICON_OK;
}

/* m of both sides. */
static unicon_status means(unicon_ctx *ctx, const taking *t, unicon__centring centring,
                           double *const sum[2], double *mean[2]) {
  const double n[2] = {rows_of(t, 0), rows_of(t, 1)};
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, mean[s], t->p[s]);
    for (int64_t k = 0; k < t->p[s] && centring != UNICON__CENTRE_NONE; k++)
      mean[s][k] = centring == UNICON__CENTRE_SIDES ? sum[s][k] / n[s]
                                                    : (sum[0][k] + sum[1][k]) / (n[0] + n[1]);
  }
  return UNICON_OK;
}

/* Trace of the covariance of a side about m. */
static double spread_of(const taking *t, int s, const double *mean) {
  const double n = rows_of(t, s);
  double total = 0;
  for (int64_t k = 0; k < t->p[s]; k++) {
    const double square = less(t->all->square[s], t->part ? t->part->square[s] : NULL, k);
    const double sum = less(t->all->sum[s], t->part ? t->part->sum[s] : NULL, k);
    total += (square - 2 * mean[k] * sum) / n + mean[k] * mean[k];
  }
  return total;
}

/* Rows of a p by p or p_x by p_y matrix that a piece of work fills. */
enum { ROWS_AT_ONCE = 64 };

static int64_t pieces_of(int64_t rows) {
  return (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
}

/* Sigma = G/n - m a^T/n - a m^T/n + m m^T of a side; of both where they share one. */
typedef struct covariance {
  const taking *t;
  int first, last; /* sides */
  double *const *sum;
  const double *mean;
  double n, *out;
  int64_t p;
} covariance;

static void covariance_rows(void *state, unicon__cell cell) {
  const covariance *c = state;
  const taking *t = c->t;
  const int64_t p = c->p, from = cell.row * ROWS_AT_ONCE;
  const double *mean = c->mean;
  for (int side = c->first; side <= c->last; side++)
    for (int64_t i = from; i < p && i < from + ROWS_AT_ONCE; i++) {
      const double *gram = t->all->gram[side];
      if (!gram) continue; /* a fit that asks for a covariance holds it */
      const double *all = gram + i * t->all->p[side];
      const double *part = t->part ? t->part->gram[side] + i * t->part->p[side] : NULL;
      const double *a = c->sum[side], own = rows_of(t, side);
      for (int64_t j = 0; j <= i; j++)
        c->out[i * p + j] +=
            (less(all, part, j) - mean[i] * a[j] - a[i] * mean[j] + own * mean[i] * mean[j]) / c->n;
    }
}

static unicon_status covariance_of(unicon_ctx *ctx, const taking *t, int s, bool shared,
                                   double *const sum[2], const double *mean, double **out) {
  covariance c = {.t = t, .first = s, .last = s, .sum = sum, .mean = mean, .p = t->p[s]};
  c.n = shared ? rows_of(t, 0) + rows_of(t, 1) : rows_of(t, s);
  if (shared) c.first = 0, c.last = 1;
  UNICON_NEW(ctx, *out, c.p * c.p);
  c.out = *out;
  return unicon__sweep_rows(ctx, NULL, NULL, pieces_of(c.p), covariance_rows, &c);
}

/* ---- C ------------------------------------------------------------------------------------ */

/* c += share (H/A - (h/A) m_y^T - m_x (h'/A)^T + m_x m_y^T - rest), with o the means of the rows and
 *     rest = (h/A - m_x) (o_y - m_y)^T towards y
 *            (o_x - m_x) (h'/A - m_y)^T towards x */
typedef struct corner {
  const double *left, *right; /* h/A, h'/A */
  const double *mean[2], *own[2];
  bool to_y;
  double share;
} corner;

static void add_rank_one(const corner *k, int64_t i, int64_t p_y, double *c) {
  const double h = k->left[i], m = k->mean[0][i];
  const double factor = k->to_y ? h - m : k->own[0][i] - m;
  for (int64_t j = 0; j < p_y; j++) {
    const double rest = k->to_y ? k->own[1][j] - k->mean[1][j] : k->right[j] - k->mean[1][j];
    c[j] += k->share * (m * k->mean[1][j] - h * k->mean[1][j] - m * k->right[j] - factor * rest);
  }
}

/* c += scale H and what the means take away, H by statistics or NULL. */
typedef struct crossing {
  const taking *t;
  const unicon__direction *all, *part;
  double scale, of_part; /* H of the part is of_part times its sums */
  corner corner;
  int64_t p_x, p_y;
  double *c;
} crossing;

static void crossing_rows(void *state, unicon__cell cell) {
  const crossing *k = state;
  const int64_t from = cell.row * ROWS_AT_ONCE;
  for (int64_t i = from; i < k->p_x && i < from + ROWS_AT_ONCE; i++) {
    const double *h = k->all ? k->all->cross + i * k->t->all->p[1] : NULL;
    const double *g = k->part ? k->part->cross + i * k->t->part->p[1] : NULL;
    for (int64_t j = 0; h && j < k->p_y; j++)
      k->c[i * k->p_y + j] += k->scale * (h[j] - (g ? k->of_part * g[j] : 0));
    add_rank_one(&k->corner, i, k->p_y, k->c + i * k->p_y);
  }
}

/* The directions of pairs. */
static unicon_status cross_of_pairs(unicon_ctx *ctx, const taking *t, const double *const mean[2],
                                    const double *const own[2], double *c) {
  const unicon__stats *all = t->all, *part = t->part;
  const int64_t p_x = t->p[0], p_y = t->p[1];
  for (int d = 0; d < 2; d++) {
    const int from = all->way[d].cross ? d : 0; /* H' = ratio H */
    /* ... or of the part alone: pairs that are regular in it */
    const int of_part = part && !part->way[from].cross ? 0 : from;
    if (!all->way[from].cross) continue; /* a fit that asks for C holds them */
    const unicon__direction *a = &all->way[d], *b = part ? &part->way[d] : NULL;
    const double weight = a->weight - (b ? b->weight : 0);
    const double scale = (from == d ? 1 : all->ratio) / weight / 2;
    double *left, *right;
    UNICON_NEW(ctx, left, p_x);
    UNICON_NEW(ctx, right, p_y);
    for (int64_t i = 0; i < p_x; i++) left[i] = less(a->left, b ? b->left : NULL, i) / weight;
    for (int64_t j = 0; j < p_y; j++) right[j] = less(a->right, b ? b->right : NULL, j) / weight;
    crossing k = {.t = t,
                  .all = &all->way[from],
                  .part = part ? &part->way[of_part] : NULL,
                  .scale = scale,
                  .of_part = of_part == from ? 1 : part->ratio,
                  .corner = {left, right, {mean[0], mean[1]}, {own[0], own[1]}, d == 0, 0.5},
                  .p_x = p_x,
                  .p_y = p_y,
                  .c = c};
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, pieces_of(p_x), crossing_rows, &k));
    unicon__drop(ctx, right);
    unicon__drop(ctx, left);
  }
  return UNICON_OK;
}

/* Labels: H = sum over classes of (1/n_y + 1/n_x, each over its A) a_x a_y^T / 2, about the means.
 */
static unicon_status cross_of_classes(unicon_ctx *ctx, const taking *t, const double *const mean[2],
                                      const double *const own[2], double *c) {
  const int64_t classes = t->all->classes, p_x = t->p[0], p_y = t->p[1];
  double *n[2], *x, *y, weight[2] = {0, 0};
  double *left[2], *right[2];
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, n[s], classes);
    UNICON_NEW(ctx, left[s], p_x);
    UNICON_NEW(ctx, right[s], p_y);
    for (int64_t k = 0; k < classes; k++)
      n[s][k] = less(t->all->class_rows[s], t->part ? t->part->class_rows[s] : NULL, k);
  }
  for (int64_t k = 0; k < classes; k++)
    for (int d = 0; d < 2; d++) weight[d] += n[0][k] > 0 && n[1][k] > 0 ? n[d][k] : 0;
  UNICON_NEW(ctx, x, classes * p_x);
  UNICON_NEW(ctx, y, classes * p_y);
  for (int64_t k = 0; k < classes; k++) {
    if (!(n[0][k] > 0 && n[1][k] > 0)) continue;
    const double *part[2] = {t->part ? t->part->class_sum[0] + k * t->part->p[0] : NULL,
                             t->part ? t->part->class_sum[1] + k * t->part->p[1] : NULL};
    const double factor = (1 / (n[1][k] * weight[0]) + 1 / (n[0][k] * weight[1])) / 2;
    for (int64_t i = 0; i < p_x; i++) {
      const double a = less(t->all->class_sum[0] + k * t->all->p[0], part[0], i);
      x[k * p_x + i] = factor * a;
      left[0][i] += a / weight[0];
      left[1][i] += a * n[1][k] / n[0][k] / weight[1];
    }
    for (int64_t j = 0; j < p_y; j++) {
      const double a = less(t->all->class_sum[1] + k * t->all->p[1], part[1], j);
      y[k * p_y + j] = a;
      right[0][j] += a * n[0][k] / n[1][k] / weight[0];
      right[1][j] += a / weight[1];
    }
  }
  unicon__tiled_dgemm(ctx, true, false, p_x, p_y, classes, 1, x, p_x, y, p_y, 1, c, p_y);
  for (int d = 0; d < 2; d++) {
    crossing k = {.t = t,
                  .corner = {left[d], right[d], {mean[0], mean[1]}, {own[0], own[1]}, d == 0, 0.5},
                  .p_x = p_x,
                  .p_y = p_y,
                  .c = c};
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, pieces_of(p_x), crossing_rows, &k));
  }
  return UNICON_OK;
}

/* Lists: W as it is, and u 1^T + 1 v^T where all rows are candidates. */
static void cross_of_lists(const unicon__stats *s, const double *const mean[2], double *c) {
  const unicon__direction *w = &s->way[0];
  const int64_t p_x = s->p[0], p_y = s->p[1];
  for (int64_t i = 0; i < p_x; i++) {
    const double m = mean[0][i], u = s->alone[0][i] - s->alone_weight[0] * m;
    const double rest = s->sum[0][i] - s->rows[0] * m;
    for (int64_t j = 0; j < p_y; j++) {
      const double n = mean[1][j];
      c[i * p_y + j] = w->cross[i * p_y + j] - w->left[i] * n - m * w->right[j] +
                       w->weight * m * n - u * (s->sum[1][j] - s->rows[1] * n) -
                       rest * (s->alone[1][j] - s->alone_weight[1] * n);
    }
  }
}

static unicon_status cross_of(unicon_ctx *ctx, const taking *t, const double *const mean[2],
                              double *const sum[2], double *c) {
  double *own[2];
  memset(c, 0, (size_t)(t->p[0] * t->p[1]) * sizeof *c);
  for (int s = 0; s < 2; s++) {
    UNICON_NEW(ctx, own[s], t->p[s]);
    for (int64_t k = 0; k < t->p[s]; k++) own[s][k] = sum[s][k] / rows_of(t, s);
  }
  const double *const of_rows[2] = {own[0], own[1]};
  if (t->all->listed)
    cross_of_lists(t->all, mean, c);
  else if (t->all->classes > 0)
    UNICON_TRY(cross_of_classes(ctx, t, mean, of_rows, c));
  else
    UNICON_TRY(cross_of_pairs(ctx, t, mean, of_rows, c));
  return UNICON_OK;
}

/* ---- the interface ------------------------------------------------------------------------ */

unicon_status unicon__stats_finish(unicon_ctx *ctx, const unicon__stats *stats,
                                   const unicon__stats *part, unicon__centring centring,
                                   const int64_t lead[2], unicon__moments *out) {
  taking t = {.all = stats, .part = part};
  double *sum[2];
  *out = (unicon__moments){0};
  for (int s = 0; s < 2; s++) {
    t.p[s] = stats->p[s] < lead[s] ? stats->p[s] : lead[s];
    if (part && part->p[s] < t.p[s]) t.p[s] = part->p[s];
    out->p[s] = t.p[s];
    out->rows[s] = rows_of(&t, s);
    UNICON_TRY(side_sums(ctx, &t, s, &sum[s]));
  }
  UNICON_TRY(means(ctx, &t, centring, sum, out->mean));
  for (int s = 0; s < 2; s++) {
    out->spread[s] = spread_of(&t, s, out->mean[s]);
    if (!stats->gram[s]) continue;
    UNICON_TRY(covariance_of(ctx, &t, s, centring == UNICON__CENTRE_SHARED, sum, out->mean[s],
                             &out->sigma[s]));
    unicon__blas_begin();
    const unicon_status status =
        unicon__largest_eigenvalue(ctx, out->sigma[s], out->p[s], &out->mu[s]);
    unicon__blas_end();
    UNICON_TRY(status);
  }
  if (!(stats->holds & UNICON__STATS_CROSS)) return UNICON_OK;
  const double *const mean[2] = {out->mean[0], out->mean[1]};
  UNICON_NEW(ctx, out->cross, out->p[0] * out->p[1]);
  unicon__blas_begin();
  const unicon_status status = cross_of(ctx, &t, mean, sum, out->cross);
  unicon__blas_end();
  return status;
}

unicon_status unicon__stats_cross(unicon_ctx *ctx, const unicon__stats *stats,
                                  const double *const mean[2], double *c) {
  unicon__block *frame = unicon__frame_open(ctx);
  const taking t = {.all = stats, .p = {stats->p[0], stats->p[1]}};
  unicon__blas_begin();
  const unicon_status status = cross_of(ctx, &t, mean, stats->sum, c);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- merging ------------------------------------------------------------------------------ */

static void add_all(const double *from, double sign, int64_t count, double *to) {
  for (int64_t k = 0; from && k < count; k++) to[k] += sign * from[k];
}

/* The class of `to` that is class k of `from`, sought from *at on, or -1. */
static int64_t same_class(const unicon__stats *from, int64_t k, const unicon__stats *to,
                          int64_t *at) {
  if (from->class_key == to->class_key) return k < to->classes ? k : -1;
  while (*at < to->classes && to->class_key[*at] < from->class_key[k]) ++*at;
  return *at < to->classes && to->class_key[*at] == from->class_key[k] ? *at : -1;
}

/* Has `to` all classes of which `from` has rows? */
static bool has_classes(const unicon__stats *from, const unicon__stats *to) {
  int64_t at = 0;
  for (int64_t k = 0; k < from->classes; k++)
    if (same_class(from, k, to, &at) < 0 &&
        (from->class_rows[0][k] != 0 || from->class_rows[1][k] != 0))
      return false;
  return true;
}

static void add_classes(const unicon__stats *from, double sign, unicon__stats *to) {
  int64_t at = 0;
  for (int64_t k = 0; k < from->classes; k++) {
    const int64_t c = same_class(from, k, to, &at);
    for (int s = 0; s < 2 && c >= 0; s++) {
      const int64_t p = to->p[s];
      to->class_rows[s][c] += sign * from->class_rows[s][k];
      add_all(from->class_sum[s] + k * p, sign, p, to->class_sum[s] + c * p);
    }
  }
}

unicon_status unicon__stats_merge(unicon_ctx *ctx, const unicon__stats *from, double sign,
                                  unicon__stats *to) {
  const bool both = from->way[1].cross || !to->way[1].cross;
  if (from->p[0] != to->p[0] || from->p[1] != to->p[1] ||
      (from->classes > 0) != (to->classes > 0) || !has_classes(from, to) ||
      from->holds != to->holds || from->listed || to->listed || !both ||
      (!to->way[1].cross && from->ratio != to->ratio))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "these statistics are of other features, classes or pairs and cannot be "
                        "summed");
  for (int s = 0; s < 2; s++) {
    to->rows[s] += sign * from->rows[s];
    add_all(from->sum[s], sign, to->p[s], to->sum[s]);
    add_all(from->square[s], sign, to->p[s], to->square[s]);
    add_all(from->gram[s], sign, to->p[s] * to->p[s], to->gram[s]);
    to->way[s].weight += sign * from->way[s].weight;
    add_all(from->way[s].cross, sign, to->p[0] * to->p[1], to->way[s].cross);
    add_all(from->way[s].left, sign, to->p[0], to->way[s].left);
    add_all(from->way[s].right, sign, to->p[1], to->way[s].right);
  }
  add_classes(from, sign, to);
  return UNICON_OK;
}

static void scale_all(double factor, int64_t count, double *data) {
  for (int64_t k = 0; data && k < count; k++) data[k] *= factor;
}

void unicon__stats_scale(double factor, unicon__stats *stats) {
  const int64_t *p = stats->p;
  for (int s = 0; s < 2; s++) {
    stats->rows[s] *= factor;
    scale_all(factor, p[s], stats->sum[s]);
    scale_all(factor, p[s], stats->square[s]);
    scale_all(factor, p[s] * p[s], stats->gram[s]);
    scale_all(factor, stats->classes, stats->class_rows[s]);
    scale_all(factor, stats->classes * p[s], stats->class_sum[s]);
    stats->way[s].weight *= factor;
    scale_all(factor, p[0] * p[1], stats->way[s].cross);
    scale_all(factor, p[0], stats->way[s].left);
    scale_all(factor, p[1], stats->way[s].right);
  }
}
