/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/ctx.h"
#include "base/together.h"
#include "select/selection.h"

/* ---- settings ----------------------------------------------------------------------------- */

/* The score that a setting is at, after some of the folds: that of the best so far, and what the
 * setting is behind or ahead on these. */
static double score_so_far(const unicon__candidate *best, const unicon__candidate *c, int folds) {
  double ahead = 0;
  for (int f = 0; f < folds; f++) ahead += (c->fold[f] - best->fold[f]) / folds;
  return best->score + ahead;
}

/* Scores a setting on every fold, or until it is clearly behind, and takes it if it is the best of
 * its kernel. */
static unicon_status consider(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o,
                              unicon__setting setting, double *score) {
  unicon__candidate c = {.kernel = o->kernel, .setting = setting, .score = 0};
  *score = -1;
  if (w->now.score >= 0 && !w->due && unicon__seconds_left(w, 0.6) < 0) return UNICON_OK;
  w->planned = ++w->shown > w->planned ? w->shown : w->planned;
  unicon__stage_label(ctx, "candidate %d of %d, %s", w->shown, w->planned, o->kernel->name);
  const int stage = unicon__stage_begin(ctx, NULL, (1 - unicon__opening_share(w)) / w->planned);
  for (int f = 0; f < w->folds; f++) {
    UNICON_TRY(unicon__trial_score(ctx, o->trial[f], &setting, &c.fold[f]));
    c.score += c.fold[f] / w->folds;
    const int64_t found = o->trial[f]->signal;
    if (w->params->open.rank && (c.directions == 0 || found < c.directions)) c.directions = found;
    if (f + 1 == w->folds || w->now.score < 0) continue;
    const double now = score_so_far(&w->now, &c, f + 1);
    if (now >= w->now.score - UNICON__NEAR_ENOUGH) continue;
    c.score = now;
    break;
  }
  unicon__stage_end(ctx, stage);
  *score = c.score;
  unicon__remember(ctx, w, &c);
  if (c.score > w->now.score) w->now = c;
  return UNICON_OK;
}

/* Writes a rung of a ladder into a setting; `from` is where the walk began. */
typedef void (*rung)(unicon__setting *setting, const unicon__setting *from, double value);

/* Walks from the place `at` of a ladder in both directions while that helps. */
static unicon_status walk(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o,
                          const double *ladder, int steps, int at, rung set) {
  const unicon__setting from = w->now.setting;
  for (int way = -1; way <= 1; way += 2) {
    const double before = w->now.score;
    for (int k = at + way; k >= 0 && k < steps; k += way) {
      unicon__setting s = w->now.setting;
      const double best = w->now.score;
      double score;
      set(&s, &from, ladder[k]);
      UNICON_TRY(consider(ctx, w, o, s, &score));
      if (score <= best) break;
    }
    if (w->now.score > before) break; /* the other side was passed already */
  }
  return UNICON_OK;
}

static int place_in(const double *ladder, int steps, double value) {
  int at = 0;
  while (at + 1 < steps && ladder[at] < value * (1 - 1e-9)) at++;
  return at;
}

/* A ridge times a factor, to two digits: it is shown to people. */
static double scaled_ridge(double ridge, double factor) {
  if (!(ridge > 0)) return ridge;
  const double unit = pow(10, floor(log10(ridge * factor)) - 1);
  return round(ridge * factor / unit) * unit;
}

void unicon__scale_ridge(unicon__setting *s, const unicon__setting *from, double factor) {
  for (int k = 0; k < 2; k++) s->ridge[k] = scaled_ridge(from->ridge[k], factor);
}

static void scale_ridge_x(unicon__setting *s, const unicon__setting *from, double factor) {
  s->ridge[0] = scaled_ridge(from->ridge[0], factor);
}

static void scale_ridge_y(unicon__setting *s, const unicon__setting *from, double factor) {
  s->ridge[1] = scaled_ridge(from->ridge[1], factor);
}

static void set_exponent(unicon__setting *s, const unicon__setting *from, double value) {
  (void)from;
  s->exponent = value;
}

static void set_softmax(unicon__setting *s, const unicon__setting *from, double value) {
  (void)from;
  s->balance = (unicon__balancing){UNICON__BALANCE_SOFTMAX, value};
}

/* Few enough features for eigenvectors to cost little, which many ridges need. */
static bool is_small(const unicon__opened *o) {
  enum { SMALL = 1024 };
  return o->trial[0]->q[0] <= SMALL && o->trial[0]->q[1] <= SMALL;
}

/* Of both sides together and then of each; for preset fast of both together alone. */
static unicon_status sweep_ridge(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o,
                                 bool each) {
  static const double factor[] = {0.03, 0.1, 0.3, 1, 3, 10, 30};
  enum { STEPS = 7, HERE = 3 };
  UNICON_TRY(walk(ctx, w, o, factor, STEPS, HERE, unicon__scale_ridge));
  if (!each) return UNICON_OK;
  UNICON_TRY(walk(ctx, w, o, factor, STEPS, HERE, scale_ridge_x));
  return walk(ctx, w, o, factor, STEPS, HERE, scale_ridge_y);
}

static unicon_status sweep_exponent(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  static const double ladder[] = {1, 1.5, 2, 2.5};
  const int steps = w->larger ? 4 : 3;
  return walk(ctx, w, o, ladder, steps, place_in(ladder, steps, w->now.setting.exponent),
              set_exponent);
}

/* The half-strength metric at the best ridge and a tenth of it. */
static unicon_status sweep_power(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  const double full = w->now.score;
  const unicon__setting whole = w->now.setting;
  double best = -1, score;
  for (int k = 0; k < (w->params->open.ridge ? 2 : 1) && !w->quarter_is_bad; k++) {
    unicon__setting s = whole;
    s.power = 0.25;
    if (k == 1) unicon__scale_ridge(&s, &whole, 0.1);
    UNICON_TRY(consider(ctx, w, o, s, &score));
    best = score > best ? score : best;
    if (score >= 0 && score < full - 0.05) break; /* a tenth of the ridge does not mend that */
  }
  w->quarter_is_bad = w->quarter_is_bad || (best >= 0 && best < full - 0.02);
  return UNICON_OK;
}

/* Strengths up and down from the usual one while they help, none at all and, for preset best, the
 * nearest bank rows. */
static unicon_status sweep_balance(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  static const double ladder[] = {2.5, 5, 10, 15, 20, 30};
  static const unicon__balancing others[] = {
      {UNICON__BALANCE_OFF, 0}, {UNICON__BALANCE_CSLS, 10}, {UNICON__BALANCE_CSLS, 50}};
  enum { STEPS = 6 };
  const int at = place_in(ladder, STEPS, w->now.setting.balance.strength);
  UNICON_TRY(walk(ctx, w, o, ladder, STEPS, at, set_softmax));
  for (int k = 0; k < (w->larger ? 3 : 1); k++) {
    unicon__setting s = w->now.setting;
    double score;
    s.balance = others[k];
    UNICON_TRY(consider(ctx, w, o, s, &score));
  }
  return UNICON_OK;
}

static unicon_status try_rank(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o,
                              int64_t rank) {
  unicon__setting s = w->now.setting;
  double score;
  for (int f = 0; f < w->folds; f++) UNICON_TRY(unicon__trial_resize(ctx, o->trial[f], rank));
  s.rank = unicon__common_rank(w, o);
  return s.rank > w->now.setting.rank ? consider(ctx, w, o, s, &score) : UNICON_OK;
}

/* A rank is taken that is twice as large where that is clearly better: it doubles the size of every
 * vector that a model makes. Pairs that are nearly exact have that many directions in common. Under
 * max_mem it may not fit, which is no reason to give up the rest. */
static unicon_status double_rank(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  const double clearly = 0.002;
  const unicon__candidate before = w->now;
  const int64_t rank = before.setting.rank, most = o->trial[0]->most;
  const int stage = ctx->progress.depth;
  const unicon_status status = try_rank(ctx, w, o, 2 * rank);
  if (status == UNICON_ERR_MEMORY && !unicon__together(ctx)) {
    unicon__stage_end(ctx, stage);
    unicon__clear_error(ctx);
    unicon__log(ctx, UNICON_LOG_INFO, "rank %lld is not tried: there is no memory for it",
                2 * (long long)rank);
  } else if (status != UNICON_OK) {
    return status;
  }
  if (w->now.setting.rank > rank && w->now.score > before.score + clearly) return UNICON_OK;
  w->now = before;
  for (int f = 0; f < w->folds; f++) UNICON_TRY(unicon__trial_resize(ctx, o->trial[f], most));
  return UNICON_OK;
}

/* Twice the rank, or half of it while that helps. */
static unicon_status sweep_rank(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  const int64_t first = w->now.setting.rank;
  if (first == o->trial[0]->most && first < o->trial[0]->limit) UNICON_TRY(double_rank(ctx, w, o));
  if (w->now.setting.rank > first) return UNICON_OK;
  for (int64_t rank = first / 2; rank >= 16; rank /= 2) {
    unicon__setting s = w->now.setting;
    const double best = w->now.score;
    double score;
    s.rank = rank;
    UNICON_TRY(consider(ctx, w, o, s, &score));
    if (score <= best) break;
  }
  return UNICON_OK;
}

/* Where a kernel's settings begin: kernels bear less ridge and a steeper spectrum than the plain
 * rows do. */
static unicon__setting first_setting(const unicon__selection *w, const unicon__opened *o) {
  const unicon__params *p = w->params;
  const bool linear = o->kernel->kind == UNICON__KERNEL_LINEAR;
  double ridge[2] = {p->ridge[0], p->ridge[1]};
  if (w->all && p->open.ridge)
    unicon__params_ridges(linear ? UNICON__RIDGE_ROWS : UNICON__RIDGE_KERNEL, p->rows, ridge);
  for (int k = 0; k < 2 && p->open.ridge; k++) ridge[k] = scaled_ridge(ridge[k], 1);
  return (unicon__setting){
      .power = w->all && p->open.power ? 0.5 : p->power[0],
      .ridge = {ridge[0], ridge[1]},
      .exponent = !p->open.exponent ? p->exponent
                  : linear          ? 1.5
                                    : 2,
      .rank = unicon__common_rank(w, o),
      .balance = p->balance,
  };
}

/* How many settings a sweep tries where none but the first of each axis helps. */
int unicon__count_settings(const unicon__selection *w) {
  const unicon__params *p = w->params;
  return 1 + (p->open.exponent ? 2 : 0) + (p->open.balance ? 4 + w->larger : 0) +
         (p->open.ridge ? (w->all ? 6 : 2) : 0) + (w->all ? p->open.power + 2 * p->open.rank : 0);
}

/* What preset fast chooses: ridge, where that costs little, exponent and balance. */
static unicon_status sweep_scores(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  const unicon__params *p = w->params;
  const bool ridges = p->open.ridge && is_small(o);
  if (ridges) UNICON_TRY(unicon__kernel_turn(ctx, w, o));
  if (ridges) UNICON_TRY(sweep_ridge(ctx, w, o, false));
  if (p->open.exponent) UNICON_TRY(sweep_exponent(ctx, w, o));
  return p->open.balance ? sweep_balance(ctx, w, o) : UNICON_OK;
}

/* With a budget, which may leave time for nothing else, the settings of preset fast are tried however
 * little it is: what is chosen is as good as these. */
static unicon_status sweep_due(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  if (isinf(w->params->budget) || w->job->data->y.count >= UNICON__FEW_ROWS) return UNICON_OK;
  w->due = true;
  const unicon_status status = sweep_scores(ctx, w, o);
  w->due = false;
  return status;
}

/* The first setting alone, before there is another kernel. */
unicon_status unicon__glance(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  w->now = (unicon__candidate){.score = -1};
  UNICON_TRY(consider(ctx, w, o, first_setting(w, o), &w->glance));
  return sweep_due(ctx, w, o);
}

/* What is left open, one axis after the other, those that matter most first. */
unicon_status unicon__sweep_settings(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
  const unicon__params *p = w->params;
  double score;
  w->now = (unicon__candidate){.score = -1};
  UNICON_TRY(consider(ctx, w, o, first_setting(w, o), &score));
  if (score < w->opening - UNICON__NEAR_KERNEL) return UNICON_OK;
  w->opening = fmax(w->opening, score);
  if (!w->all) return sweep_scores(ctx, w, o);
  if (!p->open.kernel) UNICON_TRY(sweep_due(ctx, w, o)); /* else at the glance */
  UNICON_TRY(unicon__kernel_turn(ctx, w, o));
  if (p->open.ridge) UNICON_TRY(sweep_ridge(ctx, w, o, true));
  if (p->open.power) UNICON_TRY(sweep_power(ctx, w, o));
  if (p->open.exponent) UNICON_TRY(sweep_exponent(ctx, w, o));
  if (p->open.balance) UNICON_TRY(sweep_balance(ctx, w, o));
  return p->open.rank ? sweep_rank(ctx, w, o) : UNICON_OK;
}
