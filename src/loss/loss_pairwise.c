/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that compare every negative with every positive of its row: psi hinge (triplet is nu = 1,
 * own = 0, phi identity), softplus, softmin, identity, and those of the caller (loss custom).
 *
 *     arg_ik = own psi((1-nu) s_ik) + sum over negatives j of epsilon_ij psi(s_ij - nu s_ik)
 *     g_ik   = omega_ik phi'(arg_ik)
 *     S^x_ij = -epsilon_ij sum_k g_ik psi'(s_ij - nu s_ik)
 *     S^x_ik = nu g_ik sum_j epsilon_ij psi'(s_ij - nu s_ik) - (1-nu) g_ik own psi'((1-nu) s_ik)
 *
 * Two numbers per positive and direction are kept: sum_j psi and sum_j psi'. For a hinge,
 * psi' is 1 where s_ij > nu s_ik - margin, strictly: with the positives of a row sorted by that
 * threshold, a negative is active for the first few of them, so it costs one search
 * (O(log |P|)), a bucket count and a bucket sum; suffix sums give the rest. identity is a hinge
 * without threshold. The smooth ones have no such order and cost O(|P|) per negative:
 *
 *     softplus  psi(x) = tau log(1 + e^{x/tau}), a hinge with a corner of width tau
 *     softmin   psi(x) = -tau log(1 + e^{(m-x)/tau}), min(x - m, 0) with such a corner, whose slope
 *               falls from 1 to 0: hard negatives weigh less
 *
 * A negative is compared with the positives of its row and of its column, so both must be there
 * when a tile is: 144 bytes per pair, and 16 for each pair of a row or column of each tile in work.
 * Class labels make n^2/classes pairs;
 * beyond LABEL_PAIRS of them these losses refuse. */
#include <math.h>
#include <stdlib.h>

#include "base/sweep.h"
#include "loss/loss.h"
#include "linalg/vec.h"

enum {
  SETTLE_ROWS = 256,    /* settled at a time: a piece of work for a thread */
  LABEL_PAIRS = 1 << 24 /* about 2 GB of numbers */
};

/* One positive of a row. */
typedef struct positive {
  double score, threshold; /* s_ik; negatives above the threshold are active */
  double g;                /* settled: omega phi' */
  double running;          /* settled: sum of g over this and lower thresholds */
  double weight;           /* settled: S of the pair in this direction */
  int64_t place;           /* position in the row's list */
} positive;

/* Sums over negatives, each epsilon times: of psi' and of what makes up psi. */
typedef struct tally {
  double slope, sum;
} tally;

typedef struct side {
  int64_t n;
  int64_t *start;     /* first positive of each row, n + 1 */
  positive *positive; /* of all rows, ascending thresholds within a row */
  int64_t *rank;      /* place in the list -> place in the sorted order */
  tally *tally;       /* per positive */
} side;

typedef struct pairwise {
  int psi, phi;
  bool sorted; /* hinge and identity: thresholds; else every negative meets every positive */
  double nu, own, margin, temperature;
  unicon__custom custom;
  side x, y;
  tally *slot_x, *slot_y; /* per slot: positives of the rows and of the columns of a cell */
  int64_t most_x, most_y; /* how many these can be */
  float *epsilon;         /* per slot */
  int64_t tile_y;
  double *block_value;
} pairwise;

static unicon__partners partners(const unicon__plane *plane, bool x, int64_t i) {
  return x ? unicon__positives_x(plane->pairs, i) : unicon__positives_y(plane->pairs, i);
}

static int by_threshold(const void *a, const void *b) {
  const positive *left = a, *right = b;
  if (left->threshold != right->threshold) return left->threshold < right->threshold ? -1 : 1;
  return (left->place > right->place) - (left->place < right->place);
}

/* psi and psi' of the smooth kinds at v. With sigma the logistic function softplus has the slope
 * sigma(v/tau), and softmin at v is minus softplus at m - v, of slope sigma((m - v)/tau). */
static double smooth_psi(const pairwise *st, double v, double *slope) {
  if (st->psi == UNICON__PSI_CUSTOM) return st->custom.psi(st->custom.user, v, slope);
  const double sign = st->psi == UNICON__PSI_SOFTMIN ? -1 : 1;
  const double u = sign < 0 ? st->margin - v : v, e = exp(-fabs(u) / st->temperature);
  *slope = u > 0 ? 1 / (1 + e) : e / (1 + e);
  return sign * ((u > 0 ? u : 0) + st->temperature * log1p(e));
}

/* ---- setting up --------------------------------------------------------------------------- */

typedef struct filling {
  const unicon__loss *loss;
  side *side;
  bool x;
} filling;

static void fill_block(void *state, unicon__cell cell) {
  const filling *f = state;
  const pairwise *st = f->loss->state;
  const unicon__plane *plane = &f->loss->plane;
  const float *mine = f->x ? plane->zx : plane->zy, *other = f->x ? plane->zy : plane->zx;
  const int64_t first = cell.row * SETTLE_ROWS;
  for (int64_t i = first; i < first + SETTLE_ROWS && i < f->side->n; i++) {
    const unicon__partners p = partners(plane, f->x, i);
    positive *list = f->side->positive + f->side->start[i];
    for (int64_t k = 0; k < p.count; k++) {
      const float score = (float)unicon__vec_best()->dot(
          mine + i * plane->r, other + unicon__partner(p, k) * plane->r, plane->r);
      list[k].score = (double)score;
      list[k].place = k;
      list[k].threshold =
          st->psi == UNICON__PSI_HINGE ? st->nu * (double)score - st->margin : -INFINITY;
    }
    qsort(list, (size_t)p.count, sizeof *list, by_threshold);
    for (int64_t k = 0; k < p.count; k++) f->side->rank[f->side->start[i] + list[k].place] = k;
  }
}

static unicon_status side_begin(unicon_ctx *ctx, unicon__loss *loss, side *s, bool x) {
  s->n = x ? loss->plane.n_x : loss->plane.n_y;
  UNICON_NEW(ctx, s->start, s->n + 1);
  for (int64_t i = 0; i < s->n; i++)
    s->start[i + 1] = s->start[i] + partners(&loss->plane, x, i).count;
  UNICON_NEW(ctx, s->positive, s->start[s->n]);
  UNICON_NEW(ctx, s->rank, s->start[s->n]);
  UNICON_NEW(ctx, s->tally, s->start[s->n]);
  filling f = {loss, s, x};
  return unicon__sweep_rows(ctx, NULL, NULL, (s->n + SETTLE_ROWS - 1) / SETTLE_ROWS, fill_block,
                            &f);
}

/* The most positives that `rows` rows in a block have. */
static int64_t most_positives(const side *s, int64_t rows) {
  int64_t most = 0;
  for (int64_t first = 0; first < s->n; first += rows) {
    const int64_t last = first + rows < s->n ? first + rows : s->n;
    const int64_t count = s->start[last] - s->start[first];
    most = count > most ? count : most;
  }
  return most;
}

static bool is_sorted(const unicon__loss_params *params) {
  return params->psi == UNICON__PSI_HINGE || params->psi == UNICON__PSI_IDENTITY;
}

/* Refuses class labels that make too many pairs. Batches of `rows` x rows have a tenth fewer than
 * allowed, for they are drawn at random. */
static unicon_status check_labels(unicon_ctx *ctx, const unicon__loss *loss) {
  const unicon_pairs *pairs = loss->plane.pairs;
  const double count = (double)pairs->positive.count;
  if (!pairs->class_x) return UNICON_OK;
  if (!is_sorted(&loss->params))
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "%s costs rows x pairs, and class labels make %lld pairs; use psi exp or "
                        "hinge, or give a list of pairs",
                        loss->params.psi == UNICON__PSI_SOFTPLUS  ? "psi softplus"
                        : loss->params.psi == UNICON__PSI_SOFTMIN ? "psi softmin"
                                                                  : "loss custom",
                        (long long)pairs->positive.count);
  if (count <= LABEL_PAIRS) return UNICON_OK;
  const double rows = 0.9 * LABEL_PAIRS * (double)pairs->n_x / count;
  return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                      "%s keeps numbers for every pair, and these class labels make %lld pairs: at "
                      "most %d are supported; use batch %lld or fewer, or loss supcon or clip, "
                      "which keep numbers for every row only",
                      loss->params.kind == UNICON__LOSS_TRIPLET  ? "loss triplet"
                      : loss->params.psi == UNICON__PSI_IDENTITY ? "psi identity"
                                                                 : "psi hinge",
                      (long long)pairs->positive.count, LABEL_PAIRS,
                      (long long)(rows > 2 ? rows : 2));
}

static unicon_status pairwise_begin(unicon_ctx *ctx, unicon__loss *loss) {
  const unicon__loss_params *params = &loss->params;
  UNICON_TRY(check_labels(ctx, loss));
  pairwise *st;
  UNICON_NEW(ctx, st, 1);
  loss->state = st;
  *st = (pairwise){.psi = params->psi,
                   .phi = params->phi,
                   .nu = params->nu,
                   .own = params->own,
                   .sorted = is_sorted(params),
                   .margin = params->psi == UNICON__PSI_IDENTITY ? 0 : params->margin,
                   .temperature = params->temperature,
                   .custom = params->custom,
                   .tile_y = ctx->tile_y};
  UNICON_TRY(side_begin(ctx, loss, &st->x, true));
  UNICON_TRY(side_begin(ctx, loss, &st->y, false));
  st->most_x = most_positives(&st->x, ctx->tile_x);
  st->most_y = most_positives(&st->y, loss->width);
  UNICON_NEW(ctx, st->slot_x, loss->slots * st->most_x);
  UNICON_NEW(ctx, st->slot_y, loss->slots * st->most_y);
  UNICON_NEW(ctx, st->epsilon, loss->slots * ctx->tile_y);
  const int64_t larger = st->x.n > st->y.n ? st->x.n : st->y.n;
  UNICON_NEW(ctx, st->block_value, (larger + SETTLE_ROWS - 1) / SETTLE_ROWS);
  return UNICON_OK;
}

static int one_sweep(const unicon__loss *loss) {
  (void)loss;
  return 1;
}

/* ---- tallies ------------------------------------------------------------------------------ */

/* How many of the sorted thresholds lie strictly below the score. */
static int64_t active(const positive *list, int64_t count, double score) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (list[middle].threshold < score)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Adds one negative of score s to the tallies of a row's positives. */
static void count_negative(const pairwise *st, const positive *list, int64_t count, double s,
                           double epsilon, tally *out) {
  if (st->sorted) {
    const int64_t first = active(list, count, s);
    if (first == 0) return;
    out[first - 1].slope += epsilon;
    out[first - 1].sum += epsilon * s;
    return;
  }
  for (int64_t k = 0; k < count; k++) {
    double slope;
    out[k].sum += epsilon * smooth_psi(st, s - st->nu * list[k].score, &slope);
    out[k].slope += epsilon * slope;
  }
}

static void pairwise_observe(unicon__loss *loss, int sweep, const unicon__tile *tile, int slot) {
  (void)sweep;
  pairwise *st = loss->state;
  tally *rows = st->slot_x + slot * st->most_x, *columns = st->slot_y + slot * st->most_y;
  const int64_t first_x = st->x.start[tile->x0], first_y = st->y.start[tile->cell];
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row, at = st->x.start[i], count = st->x.start[i + 1] - at;
    const float *s = tile->s + row * tile->ld;
    float *epsilon = st->epsilon + slot * st->tile_y;
    unicon__epsilon_row(loss->plane.pairs, i, tile->y0, tile->ny, epsilon);
    for (int64_t k = 0; k < tile->ny; k++) {
      const int64_t j = tile->y0 + k, from = st->y.start[j];
      const double e = (double)epsilon[k], v = (double)s[k];
      if (!(e > 0)) continue;
      if (loss->share[0] > 0)
        count_negative(st, st->x.positive + at, count, v, e, rows + at - first_x);
      if (loss->share[1] > 0)
        count_negative(st, st->y.positive + from, st->y.start[j + 1] - from, v, e,
                       columns + from - first_y);
    }
  }
}

/* Adds what a slot has for the positives of rows first .. first+count-1. */
static void fold_tallies(const side *s, int64_t first, int64_t count, tally *slot) {
  const int64_t from = s->start[first], length = s->start[first + count] - from;
  for (int64_t k = 0; k < length; k++) {
    s->tally[from + k].slope += slot[k].slope;
    s->tally[from + k].sum += slot[k].sum;
    slot[k] = (tally){0, 0};
  }
}

static void pairwise_fold_rows(unicon__loss *loss, int sweep, int64_t x0, int64_t nx, int slot) {
  (void)sweep;
  const pairwise *st = loss->state;
  fold_tallies(&st->x, x0, nx, st->slot_x + slot * st->most_x);
}

static void pairwise_fold_cols(unicon__loss *loss, int sweep, int64_t y0, int64_t ny, int slot) {
  (void)sweep;
  const pairwise *st = loss->state;
  fold_tallies(&st->y, y0, ny, st->slot_y + slot * st->most_y);
}

static unicon_status merge_tallies(unicon_ctx *ctx, const unicon__share *share, const side *s) {
  const int64_t count = s->start[s->n];
  return count == 0 ? UNICON_OK : unicon__sum_all(ctx, share, &s->tally->slope, 2 * count);
}

static unicon_status pairwise_merge(unicon_ctx *ctx, unicon__loss *loss,
                                    const unicon__share *share) {
  const pairwise *st = loss->state;
  UNICON_TRY(merge_tallies(ctx, share, &st->x));
  return merge_tallies(ctx, share, &st->y);
}

/* ---- settling ----------------------------------------------------------------------------- */

/* psi of the positive's own term and its slope. */
static double own_term(const pairwise *st, double score, double *slope) {
  const double v = (1 - st->nu) * score;
  if (!st->sorted) return smooth_psi(st, v, slope);
  *slope = st->psi == UNICON__PSI_IDENTITY || v + st->margin > 0;
  return *slope * (v + st->margin);
}

static double phi(const pairwise *st, double argument, double *slope) {
  if (st->phi == UNICON__PHI_CUSTOM) return st->custom.phi(st->custom.user, argument, slope);
  if (st->phi == UNICON__PHI_IDENTITY) {
    *slope = 1;
    return argument;
  }
  const double shifted = st->phi == UNICON__PHI_LOG1P ? 1 + argument : argument;
  *slope = shifted > 0 ? 1 / shifted : 0; /* softplus without negatives or own term: left out */
  return shifted > 0 ? log(shifted) : 0;
}

/* Value of row i; fills g, running sums and S of its positives. */
static double settle_row(const filling *f, int64_t i) {
  const pairwise *st = f->loss->state;
  const unicon__plane *plane = &f->loss->plane;
  const unicon__partners p = partners(plane, f->x, i);
  positive *list = f->side->positive + f->side->start[i];
  tally *sums = f->side->tally + f->side->start[i];
  double value = 0, running = 0;
  if (st->sorted)
    for (int64_t k = p.count - 1; k > 0; k--) {
      sums[k - 1].slope += sums[k].slope;
      sums[k - 1].sum += sums[k].sum;
    }
  for (int64_t k = 0; k < p.count; k++) {
    const double w = unicon__pair_weight(p, list[k].place);
    const double omega =
        f->x ? unicon__omega_x(plane, p.count, w) : unicon__omega_y(plane, p.count, w);
    double own_slope = 0, slope, argument = sums[k].sum;
    if (st->sorted) argument -= sums[k].slope * (st->nu * list[k].score - st->margin);
    if (st->own > 0) argument += st->own * own_term(st, list[k].score, &own_slope);
    value += omega * phi(st, argument, &slope);
    list[k].g = omega * slope;
    running += list[k].g;
    list[k].running = running;
    list[k].weight = list[k].g * (st->nu * sums[k].slope - (1 - st->nu) * st->own * own_slope);
  }
  return value;
}

static void settle_block(void *state, unicon__cell cell) {
  const filling *f = state;
  const pairwise *st = f->loss->state;
  const int64_t first = cell.row * SETTLE_ROWS;
  double value = 0;
  for (int64_t i = first; i < first + SETTLE_ROWS && i < f->side->n; i++) value += settle_row(f, i);
  st->block_value[cell.row] = value;
}

static unicon_status pairwise_settle(unicon_ctx *ctx, unicon__loss *loss, int sweep) {
  (void)sweep;
  pairwise *st = loss->state;
  loss->value = 0;
  for (int which = 0; which < 2; which++) {
    if (loss->share[which] == 0) continue;
    filling f = {loss, which == 0 ? &st->x : &st->y, which == 0};
    const int64_t blocks = (f.side->n + SETTLE_ROWS - 1) / SETTLE_ROWS;
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, blocks, settle_block, &f));
    for (int64_t b = 0; b < blocks; b++) loss->value += loss->share[which] * st->block_value[b];
  }
  return UNICON_OK;
}

/* ---- weights ------------------------------------------------------------------------------ */

/* Sum over positives of g psi'(s - nu s_k). */
static double pull(const pairwise *st, const positive *list, int64_t count, double s) {
  if (st->sorted) {
    const int64_t first = active(list, count, s);
    return first == 0 ? 0 : list[first - 1].running;
  }
  double sum = 0;
  for (int64_t k = 0; k < count; k++) {
    double slope;
    (void)smooth_psi(st, s - st->nu * list[k].score, &slope);
    sum += list[k].g * slope;
  }
  return sum;
}

static void pairwise_weigh(unicon__loss *loss, const unicon__tile *tile, int slot) {
  const pairwise *st = loss->state;
  const double *share = loss->share;
  for (int64_t row = 0; row < tile->nx; row++) {
    const int64_t i = tile->x0 + row, at = st->x.start[i], count = st->x.start[i + 1] - at;
    float *s = tile->s + row * tile->ld, *epsilon = st->epsilon + slot * st->tile_y;
    unicon__epsilon_row(loss->plane.pairs, i, tile->y0, tile->ny, epsilon);
    for (int64_t k = 0; k < tile->ny; k++) {
      const int64_t j = tile->y0 + k, from = st->y.start[j];
      const double e = (double)epsilon[k], v = (double)s[k];
      double sum = 0;
      if (e > 0 && share[0] > 0) sum += share[0] * pull(st, st->x.positive + at, count, v);
      if (e > 0 && share[1] > 0)
        sum += share[1] * pull(st, st->y.positive + from, st->y.start[j + 1] - from, v);
      s[k] = (float)(-e * sum);
    }
    const unicon__partners p = unicon__positives_x(loss->plane.pairs, i);
    int64_t length;
    const int64_t first = unicon__list_range(p, tile->y0, tile->y0 + tile->ny, &length);
    for (int64_t k = first; k < first + length; k++) {
      const int64_t j = unicon__partner(p, k);
      const unicon__partners q = unicon__positives_y(loss->plane.pairs, j);
      int64_t one;
      const int64_t back = unicon__list_range(q, i, i + 1, &one);
      const double weight =
          share[0] * st->x.positive[at + st->x.rank[at + k]].weight +
          share[1] * st->y.positive[st->y.start[j] + st->y.rank[st->y.start[j] + back]].weight;
      s[j - tile->y0] = (float)weight;
    }
  }
}

const unicon__loss_ops unicon__loss_pairwise = {
    .name = "pairwise",
    .cosine = true,
    .begin = pairwise_begin,
    .sweeps = one_sweep,
    .observe = pairwise_observe,
    .fold_rows = pairwise_fold_rows,
    .fold_cols = pairwise_fold_cols,
    .merge = pairwise_merge,
    .settle = pairwise_settle,
    .weigh = pairwise_weigh,
};
