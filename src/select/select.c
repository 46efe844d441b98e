/* SPDX-License-Identifier: Apache-2.0 */
#include "select/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "linalg/rate.h"

enum { FOLDS_MAX = 8, KERNELS_MAX = 6, FINALISTS = 3 };

/* A later kernel, or refine, must be better by more than the margin that breaks ties: it costs
 * more. */
static const double worth = 1e-5;

/* A kernel is swept only where its first score is as near as this to the best of another: a sweep
 * gains less. */
static const double near_enough = 0.01;

typedef struct kernel_name {
  const char *name;
  unicon__kernel_kind kind;
} kernel_name;

/* Those that auto tries, and the rest, which best tries as well. */
static const kernel_name all_kernels[KERNELS_MAX] = {
    {"angular", UNICON__KERNEL_ARCCOS1}, {"linear", UNICON__KERNEL_LINEAR},
    {"rbf", UNICON__KERNEL_RBF},         {"arccos0", UNICON__KERNEL_ARCCOS0},
    {"arccos2", UNICON__KERNEL_ARCCOS2}, {"matern32", UNICON__KERNEL_MATERN32}};
enum { KERNELS_AUTO = 2, LINEAR = 1 };

/* A kernel's best setting, closed form or refined. */
typedef struct candidate {
  const kernel_name *kernel;
  unicon__setting setting;
  int epochs, schedule; /* of refine: run, and of the falling rate */
  double temperature;
  double score; /* -1: none yet */
  int tried;    /* refined: epochs that were run, and the scores after them */
  double by_epoch[UNICON__EPOCH_LOG];
} candidate;

/* A kernel with its rows prepared and its splits open. */
typedef struct opened {
  const kernel_name *kernel; /* NULL: nothing is open */
  unicon__prepared *prepared;
  unicon__trial *trial[FOLDS_MAX];
  unicon__block *frame;
} opened;

typedef struct selection {
  const unicon__select_job *job;
  unicon__params *params; /* what is being tried; the choice in the end */
  int folds;
  bool all, larger;   /* scope, preset best */
  kernel_name given;  /* the user's kernel, where it is not open */
  double begun, rate; /* seconds; flops a second */
  unicon__select_log *log;
  unicon_status none;  /* why no kernel may be left */
  bool quarter_is_bad; /* power 1/4 lost clearly with another kernel: not tried again */
  opened open[UNICON__SELECT_SLOTS];
  unicon__prepared *slot;
  candidate now;                      /* best of the kernel that is being tried */
  double first[FOLDS_MAX];            /* score after the first epoch of the best refine, per fold */
  double by_epoch[UNICON__EPOCH_LOG]; /* of the first refine of the kernel */
  int tried;
  candidate kernel[KERNELS_MAX]; /* best of each kernel */
  int kernels;
  double glance;      /* first score of the linear kernel; -1: none */
  int shown, planned; /* candidates of the kernel so far, and in all, about */
} selection;

/* ---- words -------------------------------------------------------------------------------- */

/* "angular" or, where the sides differ, "rbf x linear". */
static void kernel_words(const unicon_options *options, const char *kernel, char *out,
                         size_t size) {
  const char *own[2] = {unicon__text(options, UNICON__KERNEL_X),
                        unicon__text(options, UNICON__KERNEL_Y)};
  for (int s = 0; s < 2; s++)
    if (strcmp(own[s], "same") == 0) own[s] = kernel;
  if (strcmp(own[0], own[1]) == 0)
    snprintf(out, size, "%s", own[0]);
  else
    snprintf(out, size, "%s x %s", own[0], own[1]);
}

/* "0.01" or, where the sides differ, "0.01,0.003", as the option takes it. */
static void ridge_words(const unicon__setting *setting, char *out, size_t size) {
  const double *ridge = setting->ridge;
  if (ridge[0] == ridge[1])
    unicon__number_print(out, size, "%g", ridge[0]);
  else
    unicon__number_print(out, size, "%g,%g", ridge[0], ridge[1]);
}

static int setting_words(const candidate *c, const char *comma, char *out, size_t size) {
  char balance[UNICON__BALANCING_TEXT];
  unicon__balancing_print(c->setting.balance, balance);
  char ridge[64];
  ridge_words(&c->setting, ridge, sizeof ridge);
  int used = unicon__number_print(
      out, size, "ridge %s%s metric power %g%s exponent %g%s rank %lld%s balance %s", ridge, comma,
      c->setting.power, comma, c->setting.exponent, comma, (long long)c->setting.rank, comma,
      balance);
  if (c->epochs > 0 && (size_t)used < size)
    used += unicon__number_print(out + used, size - (size_t)used,
                                 "%s refine %d of %d epochs at temperature %g", comma, c->epochs,
                                 c->schedule, c->temperature);
  return used;
}

static void remember(unicon_ctx *ctx, const selection *w, const candidate *c) {
  char words[256], kernel[80];
  setting_words(c, "", words, sizeof words);
  kernel_words(w->job->options, c->kernel->name, kernel, sizeof kernel);
  const size_t used = strlen(w->log->tried);
  unicon__number_print(w->log->tried + used, sizeof w->log->tried - used, "%s%s %s: %.4f",
                       used ? "; " : "", kernel, words, c->score);
  unicon__log(ctx, UNICON_LOG_INFO, "%-8s %s: held-out score %.4f", kernel, words, c->score);
}

/* ---- time --------------------------------------------------------------------------------- */

/* Seconds that are left when `share` of the budget is gone. */
static double seconds_left(const selection *w, double share) {
  return share * w->params->budget - (unicon__now() - w->begun);
}

/* Seconds until the first setting of a kernel on so many landmarks: kernel values, features and
 * statistics; eigenvectors of the part that is looked at, on one thread at a tenth of the rate. */
static double preparation(const selection *w, int64_t landmarks) {
  const unicon__batch *data = w->job->data;
  const double n[2] = {(double)data->x.count, (double)data->y.count};
  const double d[2] = {(double)data->x.rows->width, (double)data->y.rows->width};
  double flops = 0;
  for (int s = 0; s < 2; s++) {
    const double m = fmin(n[s], (double)landmarks), q = fmin(m, UNICON__SELECT_LANDMARKS);
    flops += n[s] * m * (2 * d[s] + 2 * m) + n[0] * m * m + 9 * q * q * q * 10 * w->folds;
  }
  return flops / w->rate;
}

/* As many landmarks as a third of the budget has time for. */
static int64_t landmarks_for(const selection *w, int64_t wanted) {
  static const int64_t fewer[] = {1000, 500, 250};
  int64_t best = wanted;
  for (size_t k = 0; k < 3 && preparation(w, best) > w->params->budget / 3; k++)
    if (fewer[k] < wanted) best = fewer[k];
  return best;
}

/* ---- trials ------------------------------------------------------------------------------- */

static void close_kernel(unicon_ctx *ctx, const selection *w, opened *o) {
  if (!o->kernel) return;
  for (int f = 0; f < FOLDS_MAX; f++)
    if (o->trial[f]) unicon__trial_close(o->trial[f]);
  if (o->prepared != w->job->prepared) unicon__prepared_close(o->prepared);
  unicon__frame_close(ctx, o->frame);
  *o = (opened){0};
}

/* Sets kernel and landmarks where the user has not. */
static void set_kernel(selection *w, const kernel_name *kernel) {
  unicon__params *params = w->params;
  if (params->open.kernel && w->all) params->map.kernel[0] = params->map.kernel[1] = kernel->kind;
  params->kernel = kernel->name;
  if (!params->open.landmarks || !w->all) return;
  params->map.landmarks =
      landmarks_for(w, w->larger ? UNICON__SELECT_LANDMARKS : UNICON__AUTO_LANDMARKS);
  params->map.by_size = !w->larger || kernel->kind == UNICON__KERNEL_LINEAR;
  params->map.kind = UNICON__MAP_NYSTROM;
}

/* The highest rank that is tried. */
static int64_t most_rank(const selection *w) {
  return w->params->open.rank && w->larger ? 512 : w->params->rank;
}

static unicon_status open_rows(unicon_ctx *ctx, selection *w, opened *o) {
  unicon__prepare_plan plan = unicon__params_prepare(w->params, w->job->data);
  plan.cache = false;
  plan.holds |= UNICON__STATS_GRAM_X | UNICON__STATS_GRAM_Y; /* whatever the power that is tried */
  if (!w->job->prepared) UNICON_TRY(unicon__prepare(ctx, &plan, o->prepared));
  for (int f = 0; f < w->folds; f++) {
    UNICON_NEW(ctx, o->trial[f], 1);
    UNICON_TRY(unicon__trial_open(ctx, w->params, o->prepared, &w->job->train[f], &w->job->held[f],
                                  most_rank(w), o->trial[f]));
  }
  return UNICON_OK;
}

static opened *find_open(selection *w, const kernel_name *kernel) {
  for (int k = 0; k < UNICON__SELECT_SLOTS; k++)
    if (w->open[k].kernel == kernel) return &w->open[k];
  return NULL;
}

/* The kernel's trials, made if they are not there; what was opened last makes room. */
static unicon_status open_kernel(unicon_ctx *ctx, selection *w, const kernel_name *kernel,
                                 opened **out) {
  *out = find_open(w, kernel);
  if (*out) return UNICON_OK;
  int at = 0;
  while (at + 1 < UNICON__SELECT_SLOTS && w->open[at].kernel && !w->larger) at++;
  for (int k = UNICON__SELECT_SLOTS - 1; k >= at; k--) close_kernel(ctx, w, &w->open[k]);
  *out = &w->open[at];
  unicon__prepared *rows = w->job->prepared ? w->job->prepared : &w->slot[at];
  **out = (opened){.kernel = kernel, .prepared = rows, .frame = unicon__frame_open(ctx)};
  set_kernel(w, kernel);
  return open_rows(ctx, w, *out);
}

/* Before more than one setting is tried. */
static unicon_status turn(unicon_ctx *ctx, const selection *w, opened *o) {
  for (int f = 0; f < w->folds; f++) UNICON_TRY(unicon__trial_turn(ctx, o->trial[f]));
  return UNICON_OK;
}

/* Ranks that all folds have. */
static int64_t common_rank(const selection *w, const opened *o) {
  int64_t rank = o->trial[0]->most;
  for (int f = 1; f < w->folds; f++)
    if (o->trial[f]->most < rank) rank = o->trial[f]->most;
  return rank;
}

/* ---- settings ----------------------------------------------------------------------------- */

/* Scores a setting on every fold and takes it if it is the best of its kernel. */
static unicon_status consider(unicon_ctx *ctx, selection *w, opened *o, unicon__setting setting,
                              double *score) {
  candidate c = {.kernel = o->kernel, .setting = setting, .score = 0};
  *score = -1;
  if (w->now.score >= 0 && seconds_left(w, 0.6) < 0) return UNICON_OK;
  w->planned = ++w->shown > w->planned ? w->shown : w->planned;
  unicon__stage_label(ctx, "candidate %d of %d, %s", w->shown, w->planned, o->kernel->name);
  const int stage = unicon__stage_begin(ctx, NULL, 0.3 / w->planned);
  for (int f = 0; f < w->folds; f++) {
    double own;
    UNICON_TRY(unicon__trial_score(ctx, o->trial[f], &setting, &own));
    c.score += own / w->folds;
  }
  unicon__stage_end(ctx, stage);
  *score = c.score;
  remember(ctx, w, &c);
  if (c.score > w->now.score) w->now = c;
  return UNICON_OK;
}

/* Writes a rung of a ladder into a setting; `from` is where the walk began. */
typedef void (*rung)(unicon__setting *setting, const unicon__setting *from, double value);

/* Walks from the place `at` of a ladder in both directions while that helps. */
static unicon_status walk(unicon_ctx *ctx, selection *w, opened *o, const double *ladder, int steps,
                          int at, rung set) {
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

static void scale_ridge(unicon__setting *s, const unicon__setting *from, double factor) {
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
static bool is_small(const opened *o) {
  enum { SMALL = 1024 };
  return o->trial[0]->q[0] <= SMALL && o->trial[0]->q[1] <= SMALL;
}

/* Of each side; for preset best of both together first, for preset fast of both together alone. */
static unicon_status sweep_ridge(unicon_ctx *ctx, selection *w, opened *o) {
  static const double factor[] = {0.03, 0.1, 0.3, 1, 3, 10, 30};
  enum { STEPS = 7, HERE = 3 };
  if (w->larger || !w->all) UNICON_TRY(walk(ctx, w, o, factor, STEPS, HERE, scale_ridge));
  if (!w->all) return UNICON_OK;
  UNICON_TRY(walk(ctx, w, o, factor, STEPS, HERE, scale_ridge_x));
  return walk(ctx, w, o, factor, STEPS, HERE, scale_ridge_y);
}

static unicon_status sweep_exponent(unicon_ctx *ctx, selection *w, opened *o) {
  static const double ladder[] = {1, 1.5, 2, 2.5};
  const int steps = w->larger ? 4 : 3;
  return walk(ctx, w, o, ladder, steps, place_in(ladder, steps, w->now.setting.exponent),
              set_exponent);
}

/* The half-strength metric at the best ridge and a tenth of it. */
static unicon_status sweep_power(unicon_ctx *ctx, selection *w, opened *o) {
  const double full = w->now.score;
  const unicon__setting whole = w->now.setting;
  double best = -1, score;
  for (int k = 0; k < (w->params->open.ridge ? 2 : 1) && !w->quarter_is_bad; k++) {
    unicon__setting s = whole;
    s.power = 0.25;
    if (k == 1) scale_ridge(&s, &whole, 0.1);
    UNICON_TRY(consider(ctx, w, o, s, &score));
    best = score > best ? score : best;
    if (score >= 0 && score < full - 0.05) break; /* a tenth of the ridge does not mend that */
  }
  w->quarter_is_bad = w->quarter_is_bad || (best >= 0 && best < full - 0.02);
  return UNICON_OK;
}

/* Strengths up and down from the usual one while they help, none at all and, for preset best, the
 * nearest bank rows. */
static unicon_status sweep_balance(unicon_ctx *ctx, selection *w, opened *o) {
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

/* Half the rank while that helps. */
static unicon_status sweep_rank(unicon_ctx *ctx, selection *w, opened *o) {
  for (int64_t rank = w->now.setting.rank / 2; rank >= 16; rank /= 2) {
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
static unicon__setting first_setting(const selection *w, const opened *o) {
  const unicon__params *p = w->params;
  const bool linear = o->kernel->kind == UNICON__KERNEL_LINEAR;
  double ridge[2] = {p->ridge[0], p->ridge[1]};
  if (w->all && p->open.ridge) unicon__params_ridges(linear ? 1.16 : 0.35, p->rows, ridge);
  return (unicon__setting){
      .power = w->all && p->open.power ? 0.5 : p->power[0],
      .ridge = {scaled_ridge(ridge[0], 1), scaled_ridge(ridge[1], 1)},
      .exponent = !p->open.exponent ? p->exponent
                  : linear          ? 1.5
                                    : 2,
      .rank = common_rank(w, o),
      .balance = p->balance,
  };
}

/* The best score of the kernels tried before; -1 where there are none. */
static double best_before(const selection *w) {
  double best = -1;
  for (int k = 0; k < w->kernels; k++) best = fmax(best, w->kernel[k].score);
  return best;
}

/* How many settings a sweep tries where none but the first of each axis helps. */
static int count_settings(const selection *w) {
  const unicon__params *p = w->params;
  return 1 + (p->open.exponent ? 2 : 0) + (p->open.balance ? 4 + w->larger : 0) +
         (p->open.ridge ? (w->larger ? 6
                           : w->all  ? 4
                                     : 2)
                        : 0) +
         (w->all ? p->open.power + p->open.rank : 0);
}

/* The first setting alone, before there is another kernel. */
static unicon_status glance_at(unicon_ctx *ctx, selection *w, opened *o) {
  w->now = (candidate){.score = -1};
  return consider(ctx, w, o, first_setting(w, o), &w->glance);
}

/* What is left open, one axis after the other, those that matter most first. */
static unicon_status sweep_settings(unicon_ctx *ctx, selection *w, opened *o) {
  const unicon__params *p = w->params;
  double score;
  w->now = (candidate){.score = -1};
  UNICON_TRY(consider(ctx, w, o, first_setting(w, o), &score));
  if (score < best_before(w) - near_enough) return UNICON_OK;
  const bool ridges = p->open.ridge && (w->all || is_small(o));
  if (w->all || ridges) UNICON_TRY(turn(ctx, w, o));
  if (ridges) UNICON_TRY(sweep_ridge(ctx, w, o));
  if (w->all && p->open.power) UNICON_TRY(sweep_power(ctx, w, o));
  if (p->open.exponent) UNICON_TRY(sweep_exponent(ctx, w, o));
  if (p->open.balance) UNICON_TRY(sweep_balance(ctx, w, o));
  if (w->all && p->open.rank) UNICON_TRY(sweep_rank(ctx, w, o));
  return UNICON_OK;
}

/* ---- kernels ------------------------------------------------------------------------------ */

/* Whether another kernel has time; says so if the budget is the reason. */
static bool time_for(unicon_ctx *ctx, const selection *w, const kernel_name *kernel) {
  const bool linear = kernel->kind == UNICON__KERNEL_LINEAR;
  const double wanted = preparation(w, linear ? 1 : UNICON__SELECT_LANDMARKS);
  if (w->kernels == 0 || wanted < seconds_left(w, 0.5)) return true;
  unicon__log(ctx, UNICON_LOG_WARNING, "the budget leaves no time for kernel %s", kernel->name);
  return false;
}

/* A rank that was asked for and that the landmarks of a kernel do not reach. */
static bool too_few_landmarks(const selection *w, const kernel_name *kernel) {
  return kernel->kind != UNICON__KERNEL_LINEAR && w->params->rank_given &&
         w->params->map.landmarks_given && w->params->rank > w->params->map.landmarks;
}

/* The sweep of one kernel. One that does not fit under max_mem is left out where there are others;
 * the sentence stays, in case that none is left. */
static unicon_status try_kernel(unicon_ctx *ctx, selection *w, const kernel_name *kernel,
                                bool glance) {
  const bool alone = kernel == &w->given;
  const bool limited = unicon__budget_limit(ctx->arena.budget) != UINT64_MAX;
  opened *o = NULL;
  if (!time_for(ctx, w, kernel)) return UNICON_OK;
  if (!alone && too_few_landmarks(w, kernel)) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: rank %lld needs more landmarks",
                kernel->name, (long long)w->params->rank);
    return UNICON_OK;
  }
  const int stage = unicon__stage_begin(ctx, NULL, 1);
  w->shown = 0;
  w->planned = glance ? 1 : count_settings(w);
  unicon__stage_label(ctx, "candidate 1 of %d, %s", w->planned, kernel->name);
  unicon_status status = open_kernel(ctx, w, kernel, &o);
  if (status == UNICON_OK) status = glance ? glance_at(ctx, w, o) : sweep_settings(ctx, w, o);
  unicon__stage_end(ctx, stage);
  if (!alone && status == UNICON_ERR_MEMORY && limited) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: %s", kernel->name, ctx->error);
    close_kernel(ctx, w, o);
    w->none = status;
    return UNICON_OK;
  }
  UNICON_TRY(status);
  if (glance)
    close_kernel(ctx, o);
  else
    w->kernel[w->kernels++] = w->now;
  return UNICON_OK;
}

/* A glance at the linear kernel first, while there is nothing else in memory; it comes back where
 * it is near the best of its successor, the angular kernel. */
static unicon_status try_kernels(unicon_ctx *ctx, selection *w) {
  if (!w->all || !w->params->open.kernel) return try_kernel(ctx, w, &w->given, false);
  const int count = w->larger ? KERNELS_MAX : KERNELS_AUTO;
  UNICON_TRY(unicon__stage_step(ctx, 0, 8 * count));
  UNICON_TRY(try_kernel(ctx, w, &all_kernels[LINEAR], true));
  for (int k = 0; k < count; k++) {
    if (k == LINEAR && w->glance < best_before(w) - near_enough) continue;
    UNICON_TRY(unicon__stage_step(ctx, 8 * k + 1, 8 * count));
    UNICON_TRY(try_kernel(ctx, w, &all_kernels[k], false));
  }
  if (w->kernels == 0) return w->none; /* the last sentence says what is missing */
  unicon__clear_error(ctx);
  return UNICON_OK;
}

/* ---- refine ------------------------------------------------------------------------------- */

/* About 60 steps: fewer epochs for many rows, more for few. Small batches are as good as large ones
 * at half of their cost (docs/results). */
static void plan_refine(const selection *w, unicon__refine_params *refine) {
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
static double refine_time(const selection *w, const unicon__refine_params *refine) {
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
static void pick_epoch(const selection *w, const int *returned, const double *balanced,
                       candidate *c) {
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

/* `barred`: a fold that is behind the best run after an epoch is given up. */
static unicon_status refine_once(unicon_ctx *ctx, selection *w, opened *o, const candidate *from,
                                 const unicon__refine_params *params, bool barred,
                                 candidate *best) {
  const int most = UNICON__EPOCH_LOG - 1;
  double balanced[STRONGER] = {0}, first[FOLDS_MAX] = {0};
  int returned[FOLDS_MAX] = {0};
  candidate c = *from;
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
    returned[f] = log.best;
    for (int k = 0; w->params->open.balance && k < STRONGER; k++) balanced[k] += own[k] / w->folds;
    if (log.epochs < c.tried) c.tried = log.epochs; /* patience or the bar ended it */
    for (int e = 0; e <= c.tried; e++) c.by_epoch[e] += log.score[e] / w->folds;
  }
  pick_epoch(w, returned, balanced, &c);
  remember(ctx, w, &c);
  if (c.score > best->score || !barred) memcpy(w->first, first, sizeof first);
  if (!barred) {
    memcpy(w->by_epoch, c.by_epoch, sizeof w->by_epoch);
    w->tried = c.tried;
  }
  if (c.score > best->score) *best = c;
  return UNICON_OK;
}

/* Refines a kernel's best setting at three times its ridge: the true loss fits the training pairs
 * more closely than the closed form, so it wants more shrinkage. Near-exact pairs, which score
 * high, like half the temperature; preset best asks for the ridge itself as well. What is behind
 * the best after an epoch stays behind and is given up.
 *
 * With validation pairs the fit that follows judges its own epochs, so a few steps tell whether it
 * is to refine at all. */
static unicon_status refine_kernel(unicon_ctx *ctx, selection *w, const candidate *from,
                                   const unicon__refine_params *params, candidate *best) {
  enum { FEW_STEPS = 15 };
  const bool ridge = w->params->open.ridge;
  const double near_exact = 0.7;
  candidate own = *from, start = *from;
  unicon__refine_params next = *params;
  opened *o = NULL;
  if (w->job->judged && !w->larger) next.most_steps = FEW_STEPS;
  UNICON_TRY(open_kernel(ctx, w, from->kernel, &o));
  if (ridge) scale_ridge(&start.setting, &from->setting, 3);
  UNICON_TRY(refine_once(ctx, w, o, &start, &next, false, &own));
  start.setting = from->setting;
  if (ridge && w->larger && refine_time(w, params) < seconds_left(w, 0.8))
    UNICON_TRY(refine_once(ctx, w, o, &start, &next, true, &own));
  if (own.epochs > 0 && own.score > near_exact && w->params->open.temperature &&
      refine_time(w, params) < seconds_left(w, 0.8)) {
    memcpy(start.setting.ridge, own.setting.ridge, sizeof start.setting.ridge);
    next.loss.temperature /= 2;
    UNICON_TRY(refine_once(ctx, w, o, &start, &next, true, &own));
  }
  if (next.most_steps > 0 && own.epochs > 0) own.epochs = params->epochs;
  if (own.score > best->score + worth) {
    *best = own;
  } else if (best->kernel == from->kernel && best->epochs == 0) { /* what refine would have given */
    memcpy(best->by_epoch, w->by_epoch, sizeof best->by_epoch);
    best->tried = w->tried;
  }
  return UNICON_OK;
}

/* The kernel with the best score that is not yet done, or -1. */
static int next_kernel(const selection *w, const bool *done) {
  int next = -1;
  for (int k = 0; k < w->kernels; k++)
    if (!done[k] && (next < 0 || w->kernel[k].score > w->kernel[next].score + worth)) next = k;
  return next;
}

/* The best kernel, for preset best the best three, refined. */
static unicon_status choose(unicon_ctx *ctx, selection *w, const unicon__refine_params *params,
                            candidate *best) {
  bool done[KERNELS_MAX] = {false};
  *best = w->kernel[next_kernel(w, done)];
  for (int k = UNICON__SELECT_SLOTS - 1; k > 0 && w->open[k].kernel != best->kernel; k--)
    close_kernel(ctx, &w->open[k]); /* room for the rows of refine */
  for (int round = 0; round < (w->larger ? FINALISTS : 1) && params->epochs > 0; round++) {
    const int k = next_kernel(w, done);
    if (k < 0 || (w->params->open.refine && refine_time(w, params) > seconds_left(w, 0.9))) break;
    done[k] = true;
    UNICON_TRY(unicon__stage_step(ctx, round, w->larger ? FINALISTS : 1));
    unicon__stage_label(ctx, "%s, refined", w->kernel[k].kernel->name);
    UNICON_TRY(refine_kernel(ctx, w, &w->kernel[k], params, best));
  }
  return UNICON_OK;
}

/* ---- the choice --------------------------------------------------------------------------- */

static void describe(unicon_ctx *ctx, const selection *w, const candidate *best) {
  unicon__select_log *log = w->log;
  char kernel[80];
  kernel_words(w->job->options, best->kernel->name, kernel, sizeof kernel);
  const int used = snprintf(log->chosen, sizeof log->chosen, "kernel %s, ", kernel);
  setting_words(best, ",", log->chosen + used, sizeof log->chosen - (size_t)used);
  memcpy(log->by_epoch, best->by_epoch, sizeof log->by_epoch);
  log->epochs = best->tried;
  log->score = best->score;
  log->held[0] = w->job->held[0].whole.x.count;
  log->held[1] = w->job->held[0].whole.y.count;
  log->folds = w->folds;
  unicon__log(ctx, UNICON_LOG_INFO, "chosen: %s (held-out score %.4f)", log->chosen, log->score);
}

static bool uses_landmarks(const unicon__prepared *prepared) {
  return prepared->side[0].map.kind == UNICON__MAP_NYSTROM ||
         prepared->side[1].map.kind == UNICON__MAP_NYSTROM;
}

/* The choice as parameters of the fit that follows. */
static void take(selection *w, const candidate *best, const unicon__refine_params *refine,
                 bool landmarks) {
  unicon__params *p = w->params;
  const unicon__setting *s = &best->setting;
  const int64_t number = p->map.landmarks;
  set_kernel(w, best->kernel);
  p->map.landmarks = number;
  p->landmarks_chosen = landmarks && p->open.landmarks && w->all;
  if (w->larger && p->open.landmarks) {
    p->map.landmarks = landmarks_for(w, UNICON__BEST_LANDMARKS);
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
  enum { FEW_ROWS = 10000 }; /* below, a choice costs little, and a rule fits less well */
  const bool closed =
      params->cut.size == 0 && params->identity == 0 && params->start == UNICON__START_MOMENT &&
      params->map.method != UNICON__LANDMARKS_GIVEN && !params->shared && params->iterations == 0;
  if (!closed) return UNICON__SELECT_NOTHING;
  if (params->goal != UNICON__GOAL_FIXED) return UNICON__SELECT_ALL;
  const bool open = params->open.exponent || params->open.balance || params->open.ridge;
  return open && rows_y < FEW_ROWS && params->refine.epochs == 0 ? UNICON__SELECT_SCORES
                                                                 : UNICON__SELECT_NOTHING;
}

static unicon_status run(unicon_ctx *ctx, selection *w, unicon__prepared **kept) {
  unicon__refine_params refine = w->params->refine;
  candidate best = {0};
  w->rate = INFINITY;
  if (!isinf(w->params->budget)) UNICON_TRY(unicon__product_rate(ctx, &w->rate, NULL));
  int stage = unicon__stage_begin(ctx, NULL, 0.6);
  UNICON_TRY(try_kernels(ctx, w));
  unicon__stage_end(ctx, stage);
  plan_refine(w, &refine);
  stage = unicon__stage_begin(ctx, NULL, 0.4);
  UNICON_TRY(choose(ctx, w, &refine, &best));
  unicon__stage_end(ctx, stage);
  if (!w->params->open.rank) best.setting.rank = w->params->rank; /* splits may allow less */
  describe(ctx, w, &best);
  const opened *o = find_open(w, best.kernel);
  const bool landmarks = !o || uses_landmarks(o->prepared);
  take(w, &best, &refine, landmarks);
  if (o && !(w->larger && w->params->open.landmarks)) *kept = o->prepared;
  return UNICON_OK;
}

unicon_status unicon__select(unicon_ctx *ctx, const unicon__select_job *job, unicon__params *params,
                             unicon__prepared slot[UNICON__SELECT_SLOTS], unicon__prepared **kept,
                             unicon__select_log *log) {
  selection w = {.job = job,
                 .params = params,
                 .folds = job->folds < FOLDS_MAX ? job->folds : FOLDS_MAX,
                 .all = job->scope == UNICON__SELECT_ALL,
                 .larger = params->goal == UNICON__GOAL_BEST,
                 .given = {unicon__text(job->options, UNICON__KERNEL), params->map.kernel[0]},
                 .begun = unicon__now(),
                 .slot = slot,
                 .glance = -1,
                 .log = log};
  unicon__block *frame = unicon__frame_open(ctx);
  *log = (unicon__select_log){0};
  *kept = NULL;
  const unicon_status status = run(ctx, &w, kept);
  for (int k = 0; k < UNICON__SELECT_SLOTS; k++) {
    for (int f = 0; f < FOLDS_MAX; f++)
      if (w.open[k].trial[f]) unicon__trial_close(w.open[k].trial[f]);
    if (w.open[k].kernel && w.open[k].prepared != *kept && w.open[k].prepared != job->prepared)
      unicon__prepared_close(w.open[k].prepared);
  }
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
