/* SPDX-License-Identifier: Apache-2.0 */
/* Losses with psi(x) = e^{x/tau}: clip, infonce (L_x of clip alone), general and supcon. For clip
 *
 *     N_i  = sum over negatives j of e^{s_ij/tau}        (never "total minus positives")
 *     D_ik = e^{s_ik/tau} + N_i
 *     L_x  = sum over P of omega_ik tau log(D_ik / e^{s_ik/tau})
 *     S^x_ij = -e^{s_ij/tau} R_i on negatives,  R_i = sum_k omega_ik / D_ik
 *     S^x_ik = omega_ik N_i / D_ik on positives
 *
 * supcon keeps the positives in the denominator D_i = N_i + sum_k e^{s_ik/tau}:
 *     L_x = sum_i Omega_i tau log D_i - sum_k omega_ik s_ik,  S^x_ij = omega_ij - Omega_i
 * e^{s_ij/tau} / D_i
 *
 * Only logarithms of N and R are kept. Where 1/tau <= 44, e^{s/tau} fits float32 for every cosine
 * and one exponential an entry serves rows and columns; below, each row and column has its own
 * running maximum. With a list of pairs, R comes from the nnz(P) positives directly; with class
 * labels it takes a second look at every tile (N must be known first). */
#include <math.h>

#include "base/sweep.h"
#include "linalg/vec.h"
#include "loss/entries.h"
#include "loss/loss.h"

enum { SETTLE_ROWS = 256 }; /* whose sums are settled at a time: a piece of work for a thread */

/* Numbers of one direction: per row for x, per column for y. */
typedef struct side {
  int64_t n;
  double share;      /* of this direction in L */
  double *log_n;     /* log N, or log D for supcon */
  double *top, *sum; /* running log-sum-exp: of scores in sweep 0, of log(omega rho) in sweep 1 */
  float *weight;     /* share * R, or its logarithm when shifted */
} side;

typedef struct exp_state {
  double a; /* 1/tau */
  bool shifted, supcon;
  double nu, own;
  int phi;
  side x, y;
  double *row_top, *row_sum;    /* per slot: tile_x */
  float *slot_max, *slot_sum;   /* sweep 0, per slot: columns of a cell */
  double *slot_top, *slot_part; /* sweep 1, likewise */
  float *held, *positive;       /* per slot: tile_y scores */
  int64_t tile_y, tile_x, width;
  double *block_value; /* settle: parts of L */
} exp_state;

/* The general loss with u = s/tau, for a positive of log N (docs/method.md section 1):
 *     D = own e^u + N,  arg = D e^{-nu u},  phi = tau log, tau log1p or identity
 *     rho = phi'(arg) e^{-nu u} / tau,  S_ik = omega rho (nu N - (1 - nu) own e^u)
 * clip is nu = own = 1 with log. */
static double log_denominator(const exp_state *st, double u, double log_n) {
  return st->own > 0 ? unicon__log_add(u + log(st->own), log_n) : log_n;
}

static double log_rho(const exp_state *st, double u, double log_d) {
  if (st->phi == UNICON__PHI_LOG) return -log_d;
  if (st->phi == UNICON__PHI_LOG1P) return -unicon__log_add(log_d, st->nu * u);
  return log(st->a) - st->nu * u;
}

static double phi_value(const exp_state *st, double u, double log_d) {
  const double log_arg = log_d - st->nu * u;
  if (st->phi == UNICON__PHI_LOG) return log_arg / st->a;
  if (st->phi == UNICON__PHI_LOG1P) return unicon__log_add(0, log_arg) / st->a;
  return exp(log_arg);
}

static double positive_slope(const exp_state *st, double u, double log_n) {
  const double log_d = log_denominator(st, u, log_n);
  if (log_d == -INFINITY) return 0; /* no negatives and no own term: the row is left out */
  const double rho = log_rho(st, u, log_d);
  const double own = st->own > 0 ? st->own * exp(rho + u) : 0;
  return st->nu * exp(rho + log_n) - (1 - st->nu) * own;
}

static unicon_status side_begin(unicon_ctx *ctx, side *s, int64_t n, double share) {
  s->n = n;
  s->share = share;
  UNICON_NEW(ctx, s->log_n, n);
  UNICON_NEW(ctx, s->top, n);
  UNICON_NEW(ctx, s->sum, n);
  UNICON_NEW(ctx, s->weight, n);
  for (int64_t i = 0; i < n; i++) s->top[i] = -INFINITY;
  return UNICON_OK;
}

/* Where the running maximum of a cell's row starts: sums that need no shift are of e^0. */
static double start_of(const exp_state *st) {
  return st->shifted ? -INFINITY : 0;
}

static unicon_status exp_begin(unicon_ctx *ctx, unicon__loss *loss) {
  const int64_t slots = loss->slots, n_y = loss->plane.n_y, width = loss->width;
  exp_state *st;
  UNICON_NEW(ctx, st, 1);
  loss->state = st;
  st->a = 1 / loss->params.temperature;
  st->nu = loss->params.nu;
  st->own = loss->params.own;
  st->phi = loss->params.phi;
  st->shifted = st->a > 44 || st->phi == UNICON__PHI_IDENTITY;
  st->supcon = loss->params.kind == UNICON__LOSS_SUPCON;
  st->tile_y = ctx->tile_y;
  st->tile_x = ctx->tile_x;
  st->width = width;
  UNICON_TRY(side_begin(ctx, &st->x, loss->plane.n_x, loss->share[0]));
  UNICON_TRY(side_begin(ctx, &st->y, n_y, loss->share[1]));
  UNICON_NEW(ctx, st->row_top, slots * st->tile_x);
  UNICON_NEW(ctx, st->row_sum, slots * st->tile_x);
  for (int64_t k = 0; k < slots * st->tile_x; k++) st->row_top[k] = start_of(st);
  UNICON_NEW(ctx, st->slot_sum, slots * width);
  UNICON_NEW(ctx, st->held, slots * ctx->tile_y);
  UNICON_NEW(ctx, st->positive, slots * ctx->tile_y);
  if (st->shifted) {
    UNICON_NEW(ctx, st->slot_max, slots * width);
    for (int64_t k = 0; k < slots * width; k++) st->slot_max[k] = -INFINITY;
  }
  const int64_t larger = st->x.n > n_y ? st->x.n : n_y;
  UNICON_NEW(ctx, st->block_value, (larger + SETTLE_ROWS - 1) / SETTLE_ROWS);
  return UNICON_OK;
}

static int exp_sweeps(const unicon__loss *loss) {
  const exp_state *st = loss->state;
  return loss->plane.pairs->class_x && !st->supcon ? 2 : 1;
}

/* ---- sweep 0: N of rows and columns ------------------------------------------------------- */

static void observe_scores(unicon__loss *loss, const unicon__tile *tile, int slot) {
  exp_state *st = loss->state;
  const unicon__vec *vec = unicon__vec_best();
  const float a = (float)st->a;
  const int64_t column = slot * st->width + tile->y0 - tile->cell;
  double *row_top = st->row_top + slot * st->tile_x, *row_sum = st->row_sum + slot * st->tile_x;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    float *s = tile->s + row * tile->ld;
    unicon__mask_row(loss->plane.pairs, i, tile->y0, tile->ny, 1 / st->a, st->supcon, s,
                     st->held + slot * st->tile_y);
    if (!st->shifted) {
      row_sum[row] += (double)vec->exp_sums(s, tile->ny, a, st->slot_sum + column);
      continue;
    }
    const float top = vec->max(s, tile->ny);
    const float shift = top == -INFINITY ? 0 : top;
    const float sum =
        vec->exp_sums_shifted(s, tile->ny, a, shift, st->slot_max + column, st->slot_sum + column);
    if (top > -INFINITY)
      unicon__lse_add(&row_top[row], &row_sum[row], st->a * (double)top, (double)sum);
  }
}

static void fold_scores(exp_state *st, int slot, int64_t y0, int64_t ny) {
  float *sum = st->slot_sum + slot * st->width;
  for (int64_t k = 0; k < ny; k++) {
    double top = 0;
    if (st->shifted) {
      float *slot_top = st->slot_max + slot * st->width + k;
      top = st->a * (double)*slot_top;
      *slot_top = -INFINITY;
    }
    unicon__lse_add(&st->y.top[y0 + k], &st->y.sum[y0 + k], top, (double)sum[k]);
    sum[k] = 0;
  }
}

/* ---- sweep 1, class labels only: R and L from the tiles ----------------------------------- */

/* Value of one positive in one direction; its omega rho goes to R = (top, sum). */
static double observe_one(const exp_state *st, double u, double log_n, double omega, double *top,
                          double *sum) {
  const double log_d = log_denominator(st, u, log_n);
  if (log_d == -INFINITY || !(omega > 0)) return 0;
  unicon__lse_add(top, sum, log(omega) + log_rho(st, u, log_d), 1);
  return omega * phi_value(st, u, log_d);
}

static void observe_positives(unicon__loss *loss, const unicon__tile *tile, int slot) {
  exp_state *st = loss->state;
  const unicon__plane *plane = &loss->plane;
  double *row_top = st->row_top + slot * st->tile_x, *row_sum = st->row_sum + slot * st->tile_x;
  double value = 0;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    const unicon__partners p = unicon__positives_x(plane->pairs, i);
    int64_t length;
    const int64_t first = unicon__list_range(p, tile->y0, tile->y0 + tile->ny, &length);
    for (int64_t k = first; k < first + length; k++) {
      const int64_t j = unicon__partner(p, k), column = slot * st->width + j - tile->cell;
      const double u = st->a * (double)tile->s[row * tile->ld + j - tile->y0];
      const double omega_x = unicon__omega_x(plane, p.count, 1);
      const double omega_y = unicon__omega_y(plane, unicon__positives_y(plane->pairs, j).count, 1);
      value +=
          st->x.share * observe_one(st, u, st->x.log_n[i], omega_x, &row_top[row], &row_sum[row]);
      value += st->y.share * observe_one(st, u, st->y.log_n[j], omega_y, &st->slot_top[column],
                                         &st->slot_part[column]);
    }
  }
  *unicon__cell_value(loss, tile, st->tile_x) += value;
}

static void fold_positives(exp_state *st, int slot, int64_t y0, int64_t ny) {
  double *top = st->slot_top + slot * st->width, *sum = st->slot_part + slot * st->width;
  for (int64_t k = 0; k < ny; k++) {
    unicon__lse_add(&st->y.top[y0 + k], &st->y.sum[y0 + k], top[k], sum[k]);
    top[k] = -INFINITY;
    sum[k] = 0;
  }
}

static void exp_observe(unicon__loss *loss, int sweep, const unicon__tile *tile, int slot) {
  if (sweep == 0)
    observe_scores(loss, tile, slot);
  else
    observe_positives(loss, tile, slot);
}

static void exp_fold_rows(unicon__loss *loss, int sweep, int64_t x0, int64_t nx, int slot) {
  exp_state *st = loss->state;
  double *top = st->row_top + slot * st->tile_x, *sum = st->row_sum + slot * st->tile_x;
  for (int64_t row = 0; row < nx; row++) {
    unicon__lse_add(&st->x.top[x0 + row], &st->x.sum[x0 + row], top[row], sum[row]);
    top[row] = sweep == 0 ? start_of(st) : -INFINITY;
    sum[row] = 0;
  }
}

static void exp_fold_cols(unicon__loss *loss, int sweep, int64_t y0, int64_t ny, int slot) {
  if (sweep == 0)
    fold_scores(loss->state, slot, y0, ny);
  else
    fold_positives(loss->state, slot, y0, ny);
}

/* ---- several processes -------------------------------------------------------------------- */

/* Running log-sum-exps of all become one. */
static unicon_status merge_side(unicon_ctx *ctx, const unicon__share *share, side *s) {
  double *own;
  UNICON_NEW(ctx, own, s->n);
  for (int64_t i = 0; i < s->n; i++) own[i] = s->top[i];
  UNICON_TRY(unicon__largest_of_all(ctx, share, s->top, s->n));
  for (int64_t i = 0; i < s->n; i++) s->sum[i] *= own[i] > -INFINITY ? exp(own[i] - s->top[i]) : 0;
  unicon__drop(ctx, own);
  return unicon__sum_all(ctx, share, s->sum, s->n);
}

static unicon_status exp_merge(unicon_ctx *ctx, unicon__loss *loss, const unicon__share *share) {
  exp_state *st = loss->state;
  UNICON_TRY(merge_side(ctx, share, &st->x));
  return merge_side(ctx, share, &st->y);
}

/* ---- settling ----------------------------------------------------------------------------- */

typedef struct settling {
  unicon__loss *loss;
  side *side;
  bool x;
  const double *class_sum; /* supcon with labels: sums of the other side's rows by class */
} settling;

static double omega(const settling *s, int64_t count, double weight) {
  const unicon__plane *plane = &s->loss->plane;
  return s->x ? unicon__omega_x(plane, count, weight) : unicon__omega_y(plane, count, weight);
}

/* Score of row i of this side with row j of the other. */
static double score(const settling *s, int64_t i, int64_t j) {
  const unicon__plane *plane = &s->loss->plane;
  const float *mine = s->x ? plane->zx : plane->zy, *other = s->x ? plane->zy : plane->zx;
  return unicon__vec_best()->dot(mine + i * plane->r, other + j * plane->r, plane->r);
}

/* Value and R of row i. */
static double settle_general(const settling *s, int64_t i, unicon__partners p) {
  const exp_state *st = s->loss->state;
  double value = 0;
  for (int64_t k = 0; k < p.count; k++)
    value += observe_one(st, st->a * score(s, i, unicon__partner(p, k)), s->side->log_n[i],
                         omega(s, p.count, unicon__pair_weight(p, k)), &s->side->top[i],
                         &s->side->sum[i]);
  return value;
}

/* The same for supcon: R_i = Omega_i / D_i. */
static double settle_supcon(const settling *s, int64_t i, unicon__partners p) {
  const exp_state *st = s->loss->state;
  const unicon__plane *plane = &s->loss->plane;
  double total = 0, scores = 0;
  if (s->class_sum) {
    const float *mine = (s->x ? plane->zx : plane->zy) + i * plane->r;
    const int32_t class = (s->x ? plane->pairs->class_x : plane->pairs->class_y)[i];
    const double *sum = s->class_sum + class * plane->r;
    const int64_t self = s->x ? unicon__self_x(plane->pairs, i) : unicon__self_y(plane->pairs, i);
    for (int64_t k = 0; k < plane->r; k++) scores += (double)mine[k] * sum[k];
    if (self >= 0) scores -= score(s, i, self);
    scores *= omega(s, p.count, 1);
    total = omega(s, p.count, 1) * (double)p.count;
  }
  for (int64_t k = 0; !s->class_sum && k < p.count; k++) {
    const double w = omega(s, p.count, unicon__pair_weight(p, k));
    total += w;
    scores += w * score(s, i, unicon__partner(p, k));
  }
  s->side->top[i] = total > 0 ? log(total) - s->side->log_n[i] : -INFINITY;
  s->side->sum[i] = total > 0 ? 1 : 0;
  return total * s->side->log_n[i] / st->a - scores;
}

static void settle_block(void *state, unicon__cell cell) {
  settling *s = state;
  exp_state *st = s->loss->state;
  const int64_t first = cell.row * SETTLE_ROWS;
  const int64_t last = first + SETTLE_ROWS < s->side->n ? first + SETTLE_ROWS : s->side->n;
  double value = 0;
  for (int64_t i = first; i < last; i++) {
    const unicon__partners p = s->x ? unicon__positives_x(s->loss->plane.pairs, i)
                                    : unicon__positives_y(s->loss->plane.pairs, i);
    s->side->top[i] = -INFINITY;
    s->side->sum[i] = 0;
    if (p.count > 0) value += st->supcon ? settle_supcon(s, i, p) : settle_general(s, i, p);
  }
  st->block_value[cell.row] = value;
}

/* Sums of the rows of each class, classes by r. */
static unicon_status class_sums(unicon_ctx *ctx, const unicon__plane *plane, bool of_y,
                                double **out) {
  const int64_t n = of_y ? plane->n_y : plane->n_x, r = plane->r;
  const int32_t *class = of_y ? plane->pairs->class_y : plane->pairs->class_x;
  const float *z = of_y ? plane->zy : plane->zx;
  UNICON_NEW(ctx, *out, plane->pairs->classes * r);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < r; k++) (*out)[class[i] * r + k] += (double)z[i * r + k];
  return UNICON_OK;
}

static unicon_status settle_side(unicon_ctx *ctx, unicon__loss *loss, side *which, bool x) {
  exp_state *st = loss->state;
  settling s = {loss, which, x, NULL};
  if (which->share == 0) return UNICON_OK;
  if (st->supcon && loss->plane.pairs->class_x) {
    double *sums;
    UNICON_TRY(class_sums(ctx, &loss->plane, x, &sums));
    s.class_sum = sums;
  }
  const int64_t blocks = (which->n + SETTLE_ROWS - 1) / SETTLE_ROWS;
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, blocks, settle_block, &s));
  for (int64_t b = 0; b < blocks; b++) loss->value += which->share * st->block_value[b];
  return UNICON_OK;
}

/* R as the weight that weigh multiplies with. */
static void finish_weights(const exp_state *st, side *s) {
  for (int64_t i = 0; i < s->n; i++) {
    const double log_r =
        s->share > 0 ? unicon__lse_value(s->top[i], s->sum[i]) + log(s->share) : -INFINITY;
    s->weight[i] = (float)(st->shifted ? log_r : exp(log_r));
  }
}

static void finish_counts(side *s) {
  for (int64_t i = 0; i < s->n; i++) s->log_n[i] = unicon__lse_value(s->top[i], s->sum[i]);
}

static unicon_status exp_settle(unicon_ctx *ctx, unicon__loss *loss, int sweep) {
  exp_state *st = loss->state;
  if (sweep == 0) {
    finish_counts(&st->x);
    finish_counts(&st->y);
    loss->value = 0;
  }
  if (sweep == 0 && exp_sweeps(loss) == 2) {
    for (int64_t i = 0; i < st->x.n; i++) st->x.top[i] = -INFINITY, st->x.sum[i] = 0;
    for (int64_t j = 0; j < st->y.n; j++) st->y.top[j] = -INFINITY, st->y.sum[j] = 0;
    if (!st->slot_top) {
      UNICON_NEW(ctx, st->slot_top, loss->slots * st->width);
      UNICON_NEW(ctx, st->slot_part, loss->slots * st->width);
    }
    for (int64_t k = 0; k < loss->slots * st->width; k++) st->slot_top[k] = -INFINITY;
    for (int64_t k = 0; k < loss->slots * st->tile_x; k++) st->row_top[k] = -INFINITY;
    return UNICON_OK;
  }
  if (sweep == 0) {
    UNICON_TRY(settle_side(ctx, loss, &st->x, true));
    UNICON_TRY(settle_side(ctx, loss, &st->y, false));
  }
  finish_weights(st, &st->x);
  finish_weights(st, &st->y);
  return UNICON_OK;
}

/* ---- weights ------------------------------------------------------------------------------ */

/* S of a positive with score u/a, both directions together. */
static double positive_weight(const unicon__loss *loss, int64_t i, int64_t j, int64_t count_x,
                              double pair, double u) {
  const exp_state *st = loss->state;
  const int64_t count_y = unicon__positives_y(loss->plane.pairs, j).count;
  const double omega_x = st->x.share * unicon__omega_x(&loss->plane, count_x, pair);
  const double omega_y = st->y.share * unicon__omega_y(&loss->plane, count_y, pair);
  if (st->supcon) return omega_x + omega_y;
  return omega_x * positive_slope(st, u, st->x.log_n[i]) +
         omega_y * positive_slope(st, u, st->y.log_n[j]);
}

static void exp_weigh(unicon__loss *loss, const unicon__tile *tile, int slot) {
  exp_state *st = loss->state;
  const unicon__vec *vec = unicon__vec_best();
  const float a = (float)st->a;
  float *positive = st->positive + slot * st->tile_y;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row;
    float *s = tile->s + row * tile->ld;
    const unicon__partners p = unicon__positives_x(loss->plane.pairs, i);
    int64_t length;
    const int64_t first = unicon__list_range(p, tile->y0, tile->y0 + tile->ny, &length);
    for (int64_t k = 0; k < length; k++) positive[k] = s[unicon__partner(p, first + k) - tile->y0];
    unicon__mask_row(loss->plane.pairs, i, tile->y0, tile->ny, 1 / st->a, st->supcon, s,
                     st->held + slot * st->tile_y);
    if (st->shifted)
      vec->exp_weights_shifted(s, tile->ny, a, st->x.weight[i], st->y.weight + tile->y0);
    else
      vec->exp_weights(s, tile->ny, a, st->x.weight[i], st->y.weight + tile->y0);
    for (int64_t k = 0; k < length; k++) {
      const int64_t j = unicon__partner(p, first + k);
      const double weight = positive_weight(loss, i, j, p.count, unicon__pair_weight(p, first + k),
                                            st->a * (double)positive[k]);
      float *to = s + (j - tile->y0);
      *to = (float)(st->supcon ? (double)*to + weight : weight);
    }
  }
}

/* ---- on a device -------------------------------------------------------------------------- */

/* Where one look at the plane is enough, and the entries can be listed. */
static bool exp_may_ask(const unicon_ctx *ctx, const unicon__loss *loss) {
  return exp_sweeps(loss) == 1 && unicon__entries_few(ctx, loss->plane.pairs);
}

/* What an entry counts in the denominators. */
static double count_of(const unicon__loss *loss, const unicon__entry *e, double *part) {
  const exp_state *st = loss->state;
  (void)part;
  return e->positive && !st->supcon ? 0 : e->epsilon;
}

static unicon_status exp_ask_sums(unicon_ctx *ctx, unicon__loss *loss, unicon__device_exp *out) {
  exp_state *st = loss->state;
  unicon__device_sparse *counts;
  double none;
  UNICON_NEW(ctx, counts, 1);
  UNICON_TRY(unicon__entries_make(ctx, loss, count_of, counts, &none));
  *out =
      (unicon__device_exp){st->a, st->shifted, counts, st->x.top, st->x.sum, st->y.top, st->y.sum};
  return UNICON_OK;
}

/* S of an entry: what it is as a negative, and as a positive. */
static double weight_of(const unicon__loss *loss, const unicon__entry *e, double *part) {
  const exp_state *st = loss->state;
  (void)part;
  if (e->epsilon == 0 && !e->positive) return 0;
  const double u = st->a * unicon__entry_score(loss, e);
  const double own = e->positive ? positive_weight(loss, e->i, e->j, e->count, e->weight, u) : 0;
  if (e->positive && !st->supcon) return own;
  const double row = (double)st->x.weight[e->i], column = (double)st->y.weight[e->j];
  const double plain = st->shifted ? exp(u + row) + exp(u + column) : exp(u) * (row + column);
  return own - e->epsilon * plain;
}

static unicon_status exp_ask_weights(unicon_ctx *ctx, unicon__loss *loss,
                                     unicon__device_weights *out, double *factor, double *rest) {
  const exp_state *st = loss->state;
  unicon__device_sparse *fixed;
  UNICON_NEW(ctx, fixed, 1);
  UNICON_TRY(unicon__entries_make(ctx, loss, weight_of, fixed, rest));
  *factor = 0;
  *out = (unicon__device_weights){.form = st->shifted ? UNICON__DEVICE_SHIFTED : UNICON__DEVICE_EXP,
                                  .a = st->a,
                                  .row = st->x.weight,
                                  .column = st->y.weight,
                                  .fixed = fixed};
  return UNICON_OK;
}

const unicon__loss_ops unicon__loss_exp = {
    .name = "exp",
    .cosine = true,
    .begin = exp_begin,
    .sweeps = exp_sweeps,
    .observe = exp_observe,
    .fold_rows = exp_fold_rows,
    .fold_cols = exp_fold_cols,
    .merge = exp_merge,
    .settle = exp_settle,
    .weigh = exp_weigh,
    .ask_sums = exp_ask_sums,
    .ask_weights = exp_ask_weights,
    .may_ask = exp_may_ask,
};
