/* SPDX-License-Identifier: Apache-2.0 */
#include "select/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/together.h"
#include "linalg/rate.h"
#include "select/chance.h"
#include "select/selection.h"

enum { FINALISTS = 3 };

/* A later kernel, or refine, must be better by more than the margin that breaks ties: it costs
 * more. */
static const double worth = 1e-5;

/* Those that auto tries, and the rest, which best tries as well. */
static const unicon__kernel_name all_kernels[UNICON__KERNELS_MAX] = {
    {"angular", UNICON__KERNEL_ARCCOS1}, {"linear", UNICON__KERNEL_LINEAR},
    {"rbf", UNICON__KERNEL_RBF},         {"arccos0", UNICON__KERNEL_ARCCOS0},
    {"arccos2", UNICON__KERNEL_ARCCOS2}, {"matern32", UNICON__KERNEL_MATERN32}};
enum { KERNELS_AUTO = 2, LINEAR = 1 };

/* ---- kernels ------------------------------------------------------------------------------ */

/* Whether another kernel has time; says so if the budget is the reason. The first has, but for one
 * on landmarks where a glance at the linear kernel has given something to return. */
static bool time_for(unicon_ctx *ctx, const unicon__selection *w,
                     const unicon__kernel_name *kernel) {
  const bool linear = kernel->kind == UNICON__KERNEL_LINEAR;
  const bool first = w->kernels == 0 && (linear || w->glance < 0);
  const int64_t landmarks = unicon__landmarks_for(w, UNICON__SELECT_LANDMARKS);
  const double wanted = unicon__preparation_time(w, linear ? 1 : landmarks);
  if (first || wanted < unicon__seconds_left(w, w->kernels == 0 ? 0.8 : 0.5)) return true;
  unicon__log(ctx, UNICON_LOG_WARNING, "the budget leaves no time for %skernel %s",
              linear && w->glance >= 0 ? "more settings of " : "", kernel->name);
  return false;
}

/* A rank that was asked for and that the landmarks of a kernel do not reach. */
static bool too_few_landmarks(const unicon__selection *w, const unicon__kernel_name *kernel) {
  return kernel->kind != UNICON__KERNEL_LINEAR && w->params->rank_given &&
         w->params->map.landmarks_given && w->params->rank > w->params->map.landmarks;
}

/* The sweep of one kernel. One that does not fit under max_mem is left out where there are others;
 * the sentence stays, in case that none is left. */
static unicon_status try_kernel(unicon_ctx *ctx, unicon__selection *w,
                                const unicon__kernel_name *kernel, bool glance, double share) {
  const bool alone = kernel == &w->given;
  const bool limited = unicon__budget_limit(ctx->arena.budget) != UINT64_MAX;
  unicon__opened *o = NULL;
  if (!alone && !time_for(ctx, w, kernel)) return UNICON_OK;
  if (!alone && too_few_landmarks(w, kernel)) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: rank %lld needs more landmarks",
                kernel->name, (long long)w->params->rank);
    return UNICON_OK;
  }
  const int stage = unicon__stage_begin(ctx, NULL, share);
  w->shown = 0;
  w->planned = glance ? 1 : unicon__count_settings(w);
  unicon__stage_label(ctx, "candidate 1 of %d, %s", w->planned, kernel->name);
  const int opening = unicon__stage_begin(ctx, NULL, unicon__opening_share(w));
  unicon_status status = unicon__kernel_open(ctx, w, kernel, &o);
  unicon__stage_end(ctx, opening);
  if (status == UNICON_OK)
    status = glance ? unicon__glance(ctx, w, o) : unicon__sweep_settings(ctx, w, o);
  unicon__stage_end(ctx, stage);
  if (!alone && status == UNICON_ERR_MEMORY && limited && !unicon__together(ctx)) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: %s", kernel->name, ctx->error);
    if (glance) w->glanced = w->now; /* what there was room for */
    unicon__kernel_close(ctx, w, o);
    w->none = status;
    return UNICON_OK;
  }
  UNICON_TRY(status);
  if (glance) {
    w->glanced = w->now;
    unicon__kernel_close(ctx, w, o);
  } else if (w->now.kernel) {
    w->kernel[w->kernels++] = w->now;
  }
  return UNICON_OK;
}

/* What was seen at the glance may be better than what there was time or room for. */
static void keep_glanced(unicon__selection *w) {
  int k = 0;
  if (!w->glanced.kernel) return;
  while (k < w->kernels && w->kernel[k].kernel != w->glanced.kernel) k++;
  if (k == w->kernels)
    w->kernel[w->kernels++] = w->glanced;
  else if (w->glanced.score > w->kernel[k].score)
    w->kernel[k] = w->glanced;
}

/* A glance at the linear kernel first, while there is nothing else in memory; it comes back where
 * it is near the first score of its successor, the angular kernel. The glance takes a share of 0.06
 * of the time of two kernels, the angular kernel nearly all of the rest where linear is far. */
static unicon_status try_kernels(unicon_ctx *ctx, unicon__selection *w) {
  if (!w->all || !w->params->open.kernel) return try_kernel(ctx, w, &w->given, false, 1);
  const int count = w->larger ? UNICON__KERNELS_MAX : KERNELS_AUTO;
  const double first = w->larger ? 0.24 : 0.84, next = (0.94 - first) / (count - 1);
  UNICON_TRY(try_kernel(ctx, w, &all_kernels[LINEAR], true, 0.06));
  for (int k = 0; k < count; k++) {
    if (k == LINEAR && w->glance < w->opening - UNICON__NEAR_KERNEL) continue;
    UNICON_TRY(unicon__poll(ctx));
    UNICON_TRY(try_kernel(ctx, w, &all_kernels[k], false, k == 0 ? first : next));
  }
  keep_glanced(w);
  if (w->kernels == 0) return w->none; /* the last sentence says what is missing */
  unicon__clear_error(ctx);
  return UNICON_OK;
}

/* ---- refine ------------------------------------------------------------------------------- */

/* About 60 steps: fewer epochs for many rows, more for few. Small batches are as good as large ones
 * at half of their cost (docs/results). */
static void plan_refine(const unicon__selection *w, unicon__refine_params *refine) {
  enum { STEPS = 60, EPOCHS_MOST = 12, BATCH = 1000, BATCH_LARGER = 2000 };
  const unicon__batch *train = &w->job->train[0].whole;
  const unicon__params *p = w->params;
  const bool refinable =
      refine->loss.kind != UNICON__LOSS_MOMENT && refine->loss.kind != UNICON__LOSS_SPECTRAL;
  if (p->open.batch) {
    const int64_t half = train->x.count / 2 > 2 ? train->x.count / 2 : 2;
    refine->batch = w->larger ? BATCH_LARGER : BATCH;
    if (refine->batch > half) refine->batch = half;
  }
  if (!p->open.refine) return;
  refine->epochs = 0;
  if (!refinable || !w->all) return;
  const int64_t epochs = STEPS / unicon__epoch_steps(train->pairs, refine->batch);
  refine->epochs = (int)(epochs < 1 ? 1 : epochs > EPOCHS_MOST ? EPOCHS_MOST : epochs);
}

/* Seconds of a refine in the trial and of the one in the fit that follows. */
static double refine_time(const unicon__selection *w, const unicon__refine_params *refine) {
  const unicon__batch *data = w->job->data;
  const double steps = refine->epochs * (double)unicon__epoch_steps(data->pairs, refine->batch);
  const double b = (double)refine->batch, r = (double)w->params->rank;
  const double m = (double)w->params->map.landmarks;
  const double turning = (double)(data->x.count + data->y.count) * m * (m + 1);
  return (steps * (8 * b * r * (m + UNICON__SELECT_LANDMARKS) + 12 * b * b * r) + 2 * turning) /
         w->rate;
}

/* Ways to balance that refined factors, whose scores spread wider, may like better. */
static const unicon__balancing stronger[] = {
    {UNICON__BALANCE_SOFTMAX, 15}, {UNICON__BALANCE_SOFTMAX, 20}, {UNICON__BALANCE_SOFTMAX, 30}};
enum { STRONGER = 3 };

/* The epoch with the best mean score over the folds, and the balance that its factors like. */
static void pick_epoch(const unicon__selection *w, const int *returned, const double *balanced,
                       unicon__candidate *c) {
  bool same = true; /* the balanced factors are those of the epoch that is chosen */
  c->epochs = 1;
  for (int e = 2; e <= c->tried; e++)
    if (c->by_epoch[e] > c->by_epoch[c->epochs]) c->epochs = e;
  c->score = c->by_epoch[c->epochs];
  for (int f = 0; f < w->folds; f++) same = same && returned[f] == c->epochs;
  for (int k = 0; w->params->open.balance && same && k < STRONGER; k++)
    if (balanced[k] > c->score) {
      c->score = balanced[k];
      c->setting.balance = stronger[k];
    }
}

/* Is a run, after some of the folds, clearly behind the best one at its best there? */
static bool is_behind(const unicon__selection *w, const double *reached, int folds) {
  const double clearly = 0.004; /* the difference of two runs has a deviation of .003 over folds */
  double behind = 0;
  for (int f = 0; f < folds; f++) behind += (w->reached[f] - reached[f]) / folds;
  return behind > clearly;
}

/* `barred`: a fold that is behind the best run after an epoch is given up, and all folds where
 * those that are done are clearly behind. */
static unicon_status refine_once(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o,
                                 const unicon__candidate *from, const unicon__refine_params *params,
                                 bool barred, unicon__candidate *best) {
  const int most = UNICON__EPOCH_LOG - 1;
  double balanced[STRONGER] = {0}, first[UNICON__FOLDS_MAX] = {0}, reached[UNICON__FOLDS_MAX];
  int returned[UNICON__FOLDS_MAX] = {0};
  unicon__candidate c = *from;
  memset(c.by_epoch, 0, sizeof c.by_epoch);
  c.tried = params->epochs < most ? params->epochs : most;
  c.temperature = params->loss.temperature;
  c.schedule = params->epochs;
  for (int f = 0; f < w->folds; f++) {
    unicon__refine_log log;
    double own[STRONGER];
    unicon__refine_params here = *params;
    if (barred) here.bar = w->first[f];
    UNICON_TRY(unicon__trial_refine(ctx, o->trial[f], &c.setting, &here, &log, stronger,
                                    w->params->open.balance ? STRONGER : 0, own));
    first[f] = log.score[1];
    reached[f] = log.score[log.best < most ? log.best : most];
    returned[f] = log.best;
    if (barred && is_behind(w, reached, f + 1)) return UNICON_OK;
    for (int k = 0; w->params->open.balance && k < STRONGER; k++) balanced[k] += own[k] / w->folds;
    if (log.epochs < c.tried) c.tried = log.epochs; /* patience or the bar ended it */
    for (int e = 0; e <= c.tried; e++) c.by_epoch[e] += log.score[e] / w->folds;
  }
  pick_epoch(w, returned, balanced, &c);
  unicon__remember(ctx, w, &c);
  if (c.score > best->score || !barred) {
    memcpy(w->first, first, sizeof first);
    memcpy(w->reached, reached, sizeof reached);
  }
  if (!barred) {
    memcpy(w->by_epoch, c.by_epoch, sizeof w->by_epoch);
    w->tried = c.tried;
  }
  if (c.score > best->score) *best = c;
  return UNICON_OK;
}

/* Refines a kernel's best setting at three times its ridge: the true loss fits the training pairs
 * more closely than the closed form, so it wants more shrinkage. Near-exact pairs, which score
 * high, want none, and may like half the temperature; preset best asks for the other ridge as well.
 * What is behind the best after an epoch stays behind and is given up. */
static unicon_status refine_kernel(unicon_ctx *ctx, unicon__selection *w,
                                   const unicon__candidate *from,
                                   const unicon__refine_params *params, unicon__candidate *best) {
  const bool ridge = w->params->open.ridge, near_exact = from->score > 0.7;
  unicon__candidate own = *from, start = *from;
  unicon__refine_params next = *params;
  unicon__opened *o = NULL;
  UNICON_TRY(unicon__kernel_open(ctx, w, from->kernel, &o));
  if (ridge && !near_exact) unicon__scale_ridge(&start.setting, &from->setting, 3);
  UNICON_TRY(refine_once(ctx, w, o, &start, &next, false, &own));
  if (ridge && w->larger && refine_time(w, params) < unicon__seconds_left(w, 0.8)) {
    unicon__scale_ridge(&start.setting, &from->setting, near_exact ? 3 : 1);
    UNICON_TRY(refine_once(ctx, w, o, &start, &next, true, &own));
  }
  if (own.epochs > 0 && near_exact && w->params->open.temperature &&
      refine_time(w, params) < unicon__seconds_left(w, 0.8)) {
    memcpy(start.setting.ridge, own.setting.ridge, sizeof start.setting.ridge);
    next.loss.temperature /= 2;
    UNICON_TRY(refine_once(ctx, w, o, &start, &next, true, &own));
  }
  if (own.score > best->score + worth) {
    *best = own;
  } else if (best->kernel == from->kernel && best->epochs == 0) { /* what refine would have given */
    memcpy(best->by_epoch, w->by_epoch, sizeof best->by_epoch);
    best->tried = w->tried;
  }
  return UNICON_OK;
}

/* The kernel with the best score that is not yet done, or -1. */
static int next_kernel(const unicon__selection *w, const bool *done) {
  int next = -1;
  for (int k = 0; k < w->kernels; k++)
    if (!done[k] && (next < 0 || w->kernel[k].score > w->kernel[next].score + worth)) next = k;
  return next;
}

/* The best kernel, for preset best the best three, refined. */
static unicon_status choose(unicon_ctx *ctx, unicon__selection *w,
                            const unicon__refine_params *params, unicon__candidate *best) {
  bool done[UNICON__KERNELS_MAX] = {false};
  *best = w->kernel[next_kernel(w, done)];
  for (int k = UNICON__SELECT_SLOTS - 1; k > 0 && w->open[k].kernel != best->kernel; k--)
    unicon__kernel_close(ctx, w, &w->open[k]); /* room for the rows of refine */
  for (int round = 0; round < (w->larger ? FINALISTS : 1) && params->epochs > 0; round++) {
    const int k = next_kernel(w, done);
    if (k < 0 || (w->params->open.refine && refine_time(w, params) > unicon__seconds_left(w, 0.9)))
      break;
    done[k] = true;
    UNICON_TRY(unicon__stage_step(ctx, round, w->larger ? FINALISTS : 1));
    unicon__stage_label(ctx, "%s, refined", w->kernel[k].kernel->name);
    UNICON_TRY(refine_kernel(ctx, w, &w->kernel[k], params, best));
  }
  return UNICON_OK;
}

/* ---- the choice --------------------------------------------------------------------------- */

static void describe(unicon_ctx *ctx, const unicon__selection *w, const unicon__candidate *best) {
  unicon__select_log *log = w->log;
  char kernel[80];
  unicon__kernel_words(w->job->options, best->kernel->name, kernel, sizeof kernel);
  const int used = snprintf(log->chosen, sizeof log->chosen, "kernel %s, ", kernel);
  unicon__setting_words(best, ",", log->chosen + used, sizeof log->chosen - (size_t)used);
  memcpy(log->by_epoch, best->by_epoch, sizeof log->by_epoch);
  log->epochs = best->tried;
  log->score = best->score;
  log->held[0] = w->job->held[0].whole.x.count;
  log->held[1] = w->job->held[0].whole.y.count;
  log->folds = w->folds;
  for (int f = 0; f < w->folds; f++)
    log->chance += unicon__chance(w->job->held[f].whole.pairs) / w->folds;
  unicon__log(ctx, UNICON_LOG_INFO, "chosen: %s (held-out score %.4f)", log->chosen, log->score);
}

static bool uses_landmarks(const unicon__prepared *prepared) {
  return prepared->side[0].map.kind == UNICON__MAP_NYSTROM ||
         prepared->side[1].map.kind == UNICON__MAP_NYSTROM;
}

/* The choice as parameters of the fit that follows. */
static void take(unicon__selection *w, const unicon__candidate *best,
                 const unicon__refine_params *refine, bool landmarks) {
  unicon__params *p = w->params;
  const unicon__setting *s = &best->setting;
  const int64_t number = p->map.landmarks;
  unicon__kernel_set(w, best->kernel);
  p->map.landmarks = number;
  p->landmarks_chosen = landmarks && p->open.landmarks && w->all;
  if (w->larger && p->open.landmarks) {
    p->map.landmarks = unicon__landmarks_for(w, UNICON__BEST_LANDMARKS);
    p->map.by_size = best->kernel->kind == UNICON__KERNEL_LINEAR;
  }
  memcpy(p->ridge, s->ridge, sizeof p->ridge);
  p->exponent = s->exponent;
  p->balance = s->balance;
  for (int k = 0; k < 2 && !p->sided; k++) p->power[k] = s->power;
  if (p->open.rank) p->rank = s->rank;
  p->refine = *refine;
  p->refine.epochs = best->epochs;
  p->refine.schedule = best->schedule;
  if (best->epochs > 0) p->refine.loss.temperature = best->temperature;
}

unicon__select_scope unicon__select_scope_of(const unicon__params *params, int64_t rows_y) {
  const bool closed =
      params->cut.size == 0 && params->identity == 0 && params->start == UNICON__START_MOMENT &&
      params->map.method != UNICON__LANDMARKS_GIVEN && !params->shared && params->iterations == 0;
  if (!closed) return UNICON__SELECT_NOTHING;
  if (params->goal != UNICON__GOAL_FIXED) return UNICON__SELECT_ALL;
  const bool open = params->open.exponent || params->open.balance || params->open.ridge;
  return open && rows_y < UNICON__FEW_ROWS && params->refine.epochs == 0 ? UNICON__SELECT_SCORES
                                                                         : UNICON__SELECT_NOTHING;
}

static unicon_status run(unicon_ctx *ctx, unicon__selection *w, unicon__prepared **kept) {
  unicon__refine_params refine = w->params->refine;
  unicon__candidate best = {0};
  w->rate = INFINITY;
  if (!w->all) w->params->budget = INFINITY; /* preset fast: all that it tries is soon done */
  if (unicon__together(ctx) && !isinf(w->params->budget))
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "budget is %g seconds, but several processes have no clock in common; leave "
        "budget out",
        w->params->budget);
  if (!isinf(w->params->budget)) UNICON_TRY(unicon__product_rate(ctx, &w->rate, NULL));
  int stage = unicon__stage_begin(ctx, NULL, 0.6);
  UNICON_TRY(try_kernels(ctx, w));
  if (w->kernels == 0) return w->none;
  unicon__stage_end(ctx, stage);
  plan_refine(w, &refine);
  stage = unicon__stage_begin(ctx, NULL, 0.4);
  UNICON_TRY(choose(ctx, w, &refine, &best));
  unicon__stage_end(ctx, stage);
  if (!w->params->open.rank) best.setting.rank = w->params->rank; /* splits may allow less */
  describe(ctx, w, &best);
  const unicon__opened *o = unicon__kernel_find(w, best.kernel);
  const bool landmarks = !o || uses_landmarks(o->prepared);
  take(w, &best, &refine, landmarks);
  if (o && !(w->larger && w->params->open.landmarks)) *kept = o->prepared;
  return UNICON_OK;
}

unicon_status unicon__select(unicon_ctx *ctx, const unicon__select_job *job, unicon__params *params,
                             unicon__prepared slot[UNICON__SELECT_SLOTS], unicon__prepared **kept,
                             unicon__select_log *log) {
  unicon__selection w = {
      .job = job,
      .params = params,
      .folds = job->folds < UNICON__FOLDS_MAX ? job->folds : UNICON__FOLDS_MAX,
      .all = job->scope == UNICON__SELECT_ALL,
      .larger = params->goal == UNICON__GOAL_BEST,
      .given = {unicon__text(job->options, UNICON__KERNEL), params->map.kernel[0]},
      .begun = unicon__now(),
      .slot = slot,
      .glance = -1,
      .opening = -1,
      .log = log};
  unicon__block *frame = unicon__frame_open(ctx);
  *log = (unicon__select_log){0};
  *kept = NULL;
  const unicon_status status = run(ctx, &w, kept);
  for (int k = 0; k < UNICON__SELECT_SLOTS; k++) {
    for (int f = 0; f < UNICON__FOLDS_MAX; f++)
      if (w.open[k].trial[f]) unicon__trial_close(w.open[k].trial[f]);
    if (w.open[k].kernel && w.open[k].prepared != *kept && w.open[k].prepared != job->prepared)
      unicon__prepared_close(w.open[k].prepared);
  }
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
