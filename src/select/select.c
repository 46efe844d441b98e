/* SPDX-License-Identifier: Apache-2.0 */
#include "select/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/parallel.h"
#include "linalg/blas.h"

enum { FOLDS_MAX = 8, KERNELS_MAX = 6, FINALISTS = 3 };

/* A later kernel, or refine, must be better by more than the margin that breaks ties: it costs
 * more.
 */
static const double worth = 1e-5;

/* A kernel's best setting, closed form or refined. */
typedef struct candidate {
  char kernel[32];
  unicon__setting setting;
  int epochs, schedule; /* of refine: run, and of the falling rate */
  double temperature;
  double score; /* -1: none yet */
} candidate;

typedef struct selection {
  unicon_options *options;
  unicon__select_scope scope;
  const unicon__dataset *train, *held;
  int folds;
  bool fixed;             /* the user gave the kernel or the map */
  bool larger;            /* preset best */
  double deadline;        /* of the settings, or infinity: half of the budget */
  double refine_deadline; /* four fifths: the fit that follows needs its time too */
  unicon__select_log *log;
  unicon_status none;  /* why no kernel may be left */
  bool quarter_is_bad; /* power 1/4 lost clearly with another kernel: not tried again */
  /* the trials of one kernel at a time */
  unicon__block *frame;
  const char *open; /* kernel, or NULL */
  unicon__trial *trial[FOLDS_MAX];
  candidate now;                 /* best of the kernel that is open */
  double first[FOLDS_MAX];       /* score after the first epoch of the best refine, per fold */
  candidate kernel[KERNELS_MAX]; /* best of each kernel */
  int kernels;
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

static int setting_words(const candidate *c, const char *comma, char *out, size_t size) {
  char balance[UNICON__BALANCING_TEXT];
  unicon__balancing_print(c->setting.balance, balance);
  int used = unicon__number_print(
      out, size, "ridge %g%s metric power %g%s exponent %g%s rank %lld%s balance %s",
      c->setting.ridge, comma, c->setting.power, comma, c->setting.exponent, comma,
      (long long)c->setting.rank, comma, balance);
  if (c->epochs > 0 && (size_t)used < size)
    used += unicon__number_print(out + used, size - (size_t)used,
                                 "%s refine %d of %d epochs at temperature %g", comma, c->epochs,
                                 c->schedule, c->temperature);
  return used;
}

static void remember(unicon_ctx *ctx, selection *w, const candidate *c) {
  char words[256], kernel[80];
  setting_words(c, "", words, sizeof words);
  kernel_words(w->options, c->kernel, kernel, sizeof kernel);
  const size_t used = strlen(w->log->tried);
  unicon__number_print(w->log->tried + used, sizeof w->log->tried - used, "%s%s %s: %.4f",
                       used ? "; " : "", kernel, words, c->score);
  unicon__log(ctx, UNICON_LOG_INFO, "%-8s %s: held-out score %.4f", kernel, words, c->score);
}

/* ---- trials ------------------------------------------------------------------------------- */

static void close_trials(unicon_ctx *ctx, selection *w) {
  if (!w->open) return;
  for (int f = 0; f < w->folds; f++)
    if (w->trial[f]) unicon__trial_close(w->trial[f]);
  unicon__frame_close(ctx, w->frame);
  w->open = NULL;
}

/* Sets the kernel, and few landmarks where the user has not said how many: they tell the settings
 * apart as well as many do, at a tenth of the time. */
static unicon_status set_kernel(unicon_ctx *ctx, const selection *w, const char *kernel) {
  char count[16];
  const unicon_options *o = w->options;
  const bool free = !unicon__given(o, UNICON__MAP) && !unicon__given(o, UNICON__LANDMARKS) &&
                    !unicon__given(o, UNICON__LANDMARK_METHOD);
  if (!w->fixed) UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__KERNEL, kernel));
  if (!free || w->scope != UNICON__SELECT_ALL || strcmp(kernel, "linear") == 0) return UNICON_OK;
  snprintf(count, sizeof count, "%d", UNICON__SELECT_LANDMARKS);
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__MAP, "nystrom"));
  return unicon__options_choose(ctx, w->options, UNICON__LANDMARKS, count);
}

/* Map and landmarks as they were before set_kernel. */
static unicon_status restore_map(unicon_ctx *ctx, const selection *w) {
  static const int id[] = {UNICON__MAP, UNICON__LANDMARKS};
  for (int k = 0; k < 2; k++)
    if (!unicon__given(w->options, id[k]))
      UNICON_TRY(
          unicon__options_choose(ctx, w->options, id[k], unicon__option_row(id[k])->default_value));
  return UNICON_OK;
}

/* The highest rank that is tried. */
static int64_t most_rank(const selection *w) {
  const bool given = unicon__word(w->options, UNICON__RANK) != 0;
  return given ? unicon__asked_rank(w->options) : w->larger ? 512 : unicon__asked_rank(w->options);
}

static unicon_status open_trials(unicon_ctx *ctx, selection *w, const char *kernel) {
  if (w->open && strcmp(w->open, kernel) == 0) return UNICON_OK;
  close_trials(ctx, w);
  w->frame = unicon__frame_open(ctx);
  w->open = kernel;
  memset(w->trial, 0, sizeof w->trial);
  UNICON_TRY(set_kernel(ctx, w, kernel));
  for (int f = 0; f < w->folds; f++) {
    const unicon__batch *held = &w->held[f].whole;
    const unicon__validation rows = {.side = {held->x, held->y}, .pairs = held->pairs};
    UNICON_NEW(ctx, w->trial[f], 1);
    UNICON_TRY(
        unicon__trial_open(ctx, w->options, &w->train[f].whole, &rows, most_rank(w), w->trial[f]));
  }
  return UNICON_OK;
}

/* A rank that was asked for and that the landmarks of a kernel do not reach. */
static bool too_few_landmarks(const selection *w, const char *kernel) {
  const unicon_options *o = w->options;
  return strcmp(kernel, "linear") != 0 && unicon__word(o, UNICON__RANK) < 0 &&
         unicon__given(o, UNICON__LANDMARKS) &&
         unicon__integer(o, UNICON__RANK) > unicon__integer(o, UNICON__LANDMARKS);
}

/* Ranks that all folds have. */
static int64_t common_rank(const selection *w) {
  int64_t rank = w->trial[0]->most;
  for (int f = 1; f < w->folds; f++)
    if (w->trial[f]->most < rank) rank = w->trial[f]->most;
  return rank;
}

/* ---- settings ----------------------------------------------------------------------------- */

/* Scores a setting on every fold and takes it if it is the best of its kernel. */
static unicon_status consider(unicon_ctx *ctx, selection *w, unicon__setting setting,
                              double *score) {
  candidate c = {.setting = setting, .score = 0};
  snprintf(c.kernel, sizeof c.kernel, "%s", w->open);
  *score = -1;
  if (w->now.score >= 0 && unicon__now() > w->deadline) return UNICON_OK;
  for (int f = 0; f < w->folds; f++) {
    double own;
    UNICON_TRY(unicon__trial_score(ctx, w->trial[f], &setting, &own));
    c.score += own / w->folds;
  }
  *score = c.score;
  remember(ctx, w, &c);
  if (c.score > w->now.score) w->now = c;
  return UNICON_OK;
}

/* Full whitening from ridge .01 downhill and uphill by factors of 3. */
static unicon_status sweep_ridge(unicon_ctx *ctx, selection *w) {
  static const double ladder[] = {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3};
  enum { STEPS = 7, MIDDLE = 3 };
  for (int way = -1; way <= 1; way += 2) {
    const double before = w->now.setting.ridge;
    for (int k = MIDDLE + way; k >= 0 && k < STEPS; k += way) {
      unicon__setting s = w->now.setting;
      const double best = w->now.score;
      double score;
      s.ridge = ladder[k];
      UNICON_TRY(consider(ctx, w, s, &score));
      if (score <= best) break;
    }
    if (w->now.setting.ridge != before) break; /* the other side was passed already */
  }
  return UNICON_OK;
}

/* The half-strength metric at the best ridge and a tenth of it. */
static unicon_status sweep_power(unicon_ctx *ctx, selection *w) {
  const bool ridge_given = unicon__given(w->options, UNICON__RIDGE);
  const double full = w->now.score, ridge = w->now.setting.ridge;
  double best = -1, score;
  for (int k = 0; k < (ridge_given ? 1 : 2) && !w->quarter_is_bad; k++) {
    unicon__setting s = w->now.setting;
    s.power = 0.25;
    s.ridge = k == 0 ? ridge : ridge / 10;
    UNICON_TRY(consider(ctx, w, s, &score));
    best = score > best ? score : best;
  }
  w->quarter_is_bad = best >= 0 && best < full - 0.02;
  return UNICON_OK;
}

static unicon_status sweep_exponent(unicon_ctx *ctx, selection *w) {
  static const double all[] = {1, 1.5, 2};
  const double tried = w->now.setting.exponent;
  for (int k = 0; k < 3; k++) {
    unicon__setting s = w->now.setting;
    double score;
    if (all[k] == tried) continue;
    s.exponent = all[k];
    UNICON_TRY(consider(ctx, w, s, &score));
  }
  return UNICON_OK;
}

/* Strengths up and down from the usual one while they help, and none at all. */
static unicon_status sweep_balance(unicon_ctx *ctx, selection *w) {
  static const double ladder[] = {2.5, 5, 10, 15, 20, 30};
  enum { STEPS = 6 };
  const double usual = w->now.setting.balance.strength;
  unicon__setting s = w->now.setting;
  double score;
  int at = 0;
  while (at + 1 < STEPS && ladder[at] < usual) at++;
  for (int way = -1; way <= 1; way += 2)
    for (int k = at + way; k >= 0 && k < STEPS; k += way) {
      const double best = w->now.score;
      s.balance = (unicon__balancing){UNICON__BALANCE_SOFTMAX, ladder[k]};
      UNICON_TRY(consider(ctx, w, s, &score));
      if (score <= best) break;
    }
  s.balance = (unicon__balancing){UNICON__BALANCE_OFF, 0};
  UNICON_TRY(consider(ctx, w, s, &score));
  for (int k = 10; k <= 50 && w->larger; k += 40) {
    s.balance = (unicon__balancing){UNICON__BALANCE_CSLS, k};
    UNICON_TRY(consider(ctx, w, s, &score));
  }
  return UNICON_OK;
}

/* Half the rank while that helps. */
static unicon_status sweep_rank(unicon_ctx *ctx, selection *w) {
  for (int64_t rank = w->now.setting.rank / 2; rank >= 16; rank /= 2) {
    unicon__setting s = w->now.setting;
    const double best = w->now.score;
    double score;
    s.rank = rank;
    UNICON_TRY(consider(ctx, w, s, &score));
    if (score <= best) break;
  }
  return UNICON_OK;
}

/* What the options leave open, one axis after the other, those that matter most first. */
static unicon_status sweep_settings(unicon_ctx *ctx, selection *w) {
  const unicon_options *o = w->options;
  const bool all = w->scope == UNICON__SELECT_ALL;
  const bool ridge = all && !unicon__given(o, UNICON__RIDGE);
  const bool power = all && !unicon__given(o, UNICON__METRIC);
  const bool exponent = unicon__word(o, UNICON__EXPONENT) == 0;
  const bool balance = unicon__word(o, UNICON__BALANCE) == 0;
  const unicon__setting first = {
      .power = power ? 0.5 : unicon__common_power(o),
      .ridge = ridge ? 0.01 : unicon__number(o, UNICON__RIDGE),
      .exponent = unicon__exponent_from(o),
      .rank = common_rank(w),
      .balance = unicon__balancing_from(o, unicon__balancing_usual(w->train[0].whole.y.count)),
  };
  double score;
  w->now = (candidate){.score = -1};
  UNICON_TRY(consider(ctx, w, first, &score));
  if (ridge) UNICON_TRY(sweep_ridge(ctx, w));
  if (power) UNICON_TRY(sweep_power(ctx, w));
  if (exponent) UNICON_TRY(sweep_exponent(ctx, w));
  if (balance) UNICON_TRY(sweep_balance(ctx, w));
  if (all && unicon__word(o, UNICON__RANK) == 0) UNICON_TRY(sweep_rank(ctx, w));
  return UNICON_OK;
}

/* ---- kernels ------------------------------------------------------------------------------ */

/* Seconds until the first setting of a kernel, at the rate of a slow machine. The eigenvectors of
 * both covariances take most of them. */
static double preparation(const unicon_ctx *ctx, const selection *w, const char *kernel) {
  const int64_t n[2] = {w->train[0].whole.x.count, w->train[0].whole.y.count};
  const int64_t landmarks = unicon__given(w->options, UNICON__LANDMARKS)
                                ? unicon__integer(w->options, UNICON__LANDMARKS)
                                : UNICON__SELECT_LANDMARKS;
  double flops = 0;
  if (strcmp(kernel, "linear") == 0) return 0;
  for (int s = 0; s < 2; s++) {
    const double p = (double)(n[s] < landmarks ? n[s] : landmarks);
    flops += w->folds * p * p * (9 * p + 2 * (double)n[s]);
  }
  return flops / (1e10 * unicon__workers(ctx));
}

/* Whether another kernel has time; says so if the budget is the reason. */
static bool time_for(unicon_ctx *ctx, const selection *w, const char *kernel) {
  const double now = unicon__now();
  if (w->kernels == 0) return true;
  if (now < w->deadline && now + preparation(ctx, w, kernel) < w->refine_deadline) return true;
  unicon__log(ctx, UNICON_LOG_WARNING, "the budget leaves no time for kernel %s", kernel);
  return false;
}

/* The sweep of one kernel. One that does not fit under max_mem is left out where there are others;
 * the sentence stays, in case that none is left. */
static unicon_status try_kernel(unicon_ctx *ctx, selection *w, const char *kernel) {
  if (!time_for(ctx, w, kernel)) return UNICON_OK;
  if (!w->fixed && too_few_landmarks(w, kernel)) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: rank %lld needs more landmarks",
                kernel, (long long)unicon__integer(w->options, UNICON__RANK));
    return UNICON_OK;
  }
  unicon_status status = open_trials(ctx, w, kernel);
  if (status == UNICON_OK) status = sweep_settings(ctx, w);
  const bool limited = unicon__budget_limit(ctx->arena.budget) != UINT64_MAX;
  if (!w->fixed && status == UNICON_ERR_MEMORY && limited) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: %s", kernel, ctx->error);
    close_trials(ctx, w);
    w->none = status;
    return UNICON_OK;
  }
  UNICON_TRY(status);
  w->kernel[w->kernels++] = w->now;
  return UNICON_OK;
}

static unicon_status try_kernels(unicon_ctx *ctx, selection *w) {
  static const char *const some[KERNELS_MAX] = {"linear",  "angular", "rbf",
                                                "arccos0", "arccos2", "matern32"};
  if (w->fixed) return try_kernel(ctx, w, unicon__text(w->options, UNICON__KERNEL));
  for (int k = 0; k < (w->larger ? KERNELS_MAX : 2); k++) UNICON_TRY(try_kernel(ctx, w, some[k]));
  if (w->kernels == 0) return w->none; /* the last sentence says what is missing */
  unicon__clear_error(ctx);
  return UNICON_OK;
}

/* ---- refine ------------------------------------------------------------------------------- */

/* About 45 steps: fewer epochs for many rows, more for few. */
static void plan_refine(const selection *w, unicon__refine_params *params) {
  const unicon__batch *train = &w->train[0].whole;
  const unicon_options *o = w->options;
  const bool refinable =
      params->loss.kind != UNICON__LOSS_MOMENT && params->loss.kind != UNICON__LOSS_SPECTRAL;
  if (unicon__given(o, UNICON__REFINE)) return;
  params->epochs = 0;
  if (!refinable || w->scope != UNICON__SELECT_ALL) return;
  if (!unicon__given(o, UNICON__REFINE_BATCH) && params->batch > train->x.count / 2)
    params->batch = train->x.count / 2 > 2 ? train->x.count / 2 : 2;
  const int64_t steps = unicon__epoch_steps(train->pairs, params->batch);
  const int64_t epochs = (w->larger ? 90 : 45) / steps;
  params->epochs = (int)(epochs < 1 ? 1 : epochs > 12 ? 12 : epochs);
}

/* Ways to balance that refined factors, whose scores spread wider, may like better. */
static const unicon__balancing stronger[] = {
    {UNICON__BALANCE_SOFTMAX, 15}, {UNICON__BALANCE_SOFTMAX, 20}, {UNICON__BALANCE_SOFTMAX, 30}};
enum { STRONGER = 3 };

/* Mean held-out score of each epoch over the folds decides how many epochs are run. `barred`: a
 * fold that is behind the best run after an epoch is given up. */
static unicon_status refine_once(unicon_ctx *ctx, selection *w, const candidate *from,
                                 const unicon__refine_params *params, bool barred,
                                 candidate *best) {
  double score[UNICON__EPOCH_LOG] = {0}, balanced[STRONGER] = {0}, first[FOLDS_MAX] = {0};
  int returned[FOLDS_MAX] = {0}; /* epoch whose factors were balanced */
  const bool open = unicon__word(w->options, UNICON__BALANCE) == 0;
  candidate c = *from;
  int tried = params->epochs < UNICON__EPOCH_LOG ? params->epochs : UNICON__EPOCH_LOG - 1;
  c.temperature = params->loss.temperature;
  c.schedule = params->epochs;
  for (int f = 0; f < w->folds; f++) {
    unicon__refine_log log;
    double own[STRONGER];
    unicon__refine_params here = *params;
    if (barred) here.bar = w->first[f];
    UNICON_TRY(unicon__trial_refine(ctx, w->trial[f], &c.setting, &here, &log, stronger,
                                    open ? STRONGER : 0, own));
    first[f] = log.score[1];
    returned[f] = log.best;
    for (int k = 0; open && k < STRONGER; k++) balanced[k] += own[k] / w->folds;
    if (log.epochs < tried) tried = log.epochs; /* patience or the bar ended it */
    for (int e = 0; e <= tried; e++) score[e] += log.score[e] / w->folds;
  }
  c.epochs = 1;
  for (int e = 2; e <= tried; e++)
    if (score[e] > score[c.epochs]) c.epochs = e;
  c.score = score[c.epochs];
  bool same = true; /* the balanced factors are those of the epoch that is chosen */
  for (int f = 0; f < w->folds; f++) same = same && returned[f] == c.epochs;
  for (int k = 0; open && same && k < STRONGER; k++)
    if (balanced[k] > c.score) {
      c.score = balanced[k];
      c.setting.balance = stronger[k];
    }
  remember(ctx, w, &c);
  if (c.score > best->score || w->log->epochs == 0) {
    w->log->epochs = tried;
    memcpy(w->log->by_epoch, score, sizeof score);
  }
  if (c.score > best->score || !barred) memcpy(w->first, first, sizeof first);
  if (c.score > best->score) *best = c;
  return UNICON_OK;
}

/* Refines a kernel's best setting at three times its ridge (the true loss fits the training pairs
 * more closely than the closed form, so it wants more shrinkage), at the ridge itself and, where
 * that helped, at half the temperature, which near-exact pairs like. What is behind the best after
 * an epoch stays behind and is given up. */
static unicon_status refine_kernel(unicon_ctx *ctx, selection *w, const candidate *from,
                                   const unicon__refine_params *params, candidate *best) {
  const bool ridge_given = unicon__given(w->options, UNICON__RIDGE);
  const bool heat_given = unicon__given(w->options, UNICON__TEMPERATURE);
  candidate own = *from, start = *from;
  unicon__refine_params next = *params;
  UNICON_TRY(open_trials(ctx, w, from->kernel));
  if (!ridge_given) {
    start.setting.ridge *= 3;
    UNICON_TRY(refine_once(ctx, w, &start, &next, false, &own));
    start.setting.ridge = from->setting.ridge;
  }
  if (unicon__now() < w->refine_deadline || ridge_given)
    UNICON_TRY(refine_once(ctx, w, &start, &next, !ridge_given, &own));
  if (own.score > from->score && unicon__now() < w->refine_deadline && !heat_given) {
    start.setting.ridge = own.setting.ridge;
    next.loss.temperature /= 2;
    UNICON_TRY(refine_once(ctx, w, &start, &next, true, &own));
  }
  if (own.score > best->score + worth) *best = own;
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
  for (int round = 0; round < (w->larger ? FINALISTS : 1) && params->epochs > 0; round++) {
    const int k = next_kernel(w, done);
    if (k < 0 || (round > 0 && unicon__now() > w->refine_deadline)) break;
    done[k] = true;
    UNICON_TRY(refine_kernel(ctx, w, &w->kernel[k], params, best));
  }
  return UNICON_OK;
}

/* ---- the choice --------------------------------------------------------------------------- */

static unicon_status write_number(unicon_ctx *ctx, unicon_options *options, int id, double value) {
  char text[32];
  unicon__number_print(text, sizeof text, "%.10g", value);
  return unicon__options_choose(ctx, options, id, text);
}

static unicon_status write_choice(unicon_ctx *ctx, const selection *w, candidate *best,
                                  const unicon__refine_params *params) {
  unicon__setting *s = &best->setting;
  unicon_options *o = w->options;
  if (unicon__word(o, UNICON__RANK) < 0) s->rank = unicon__integer(o, UNICON__RANK);
  char text[64], kernel[80];
  UNICON_TRY(restore_map(ctx, w));
  UNICON_TRY(write_number(ctx, o, UNICON__EXPONENT, s->exponent));
  unicon__balancing_print(s->balance, text);
  if (unicon__word(o, UNICON__BALANCE) == 0)
    UNICON_TRY(unicon__options_choose(ctx, o, UNICON__BALANCE, text));
  if (w->scope == UNICON__SELECT_ALL) {
    if (!w->fixed) UNICON_TRY(unicon__options_choose(ctx, o, UNICON__KERNEL, best->kernel));
    UNICON_TRY(write_number(ctx, o, UNICON__RIDGE, s->ridge));
    if (s->power == 0.5)
      UNICON_TRY(unicon__options_choose(ctx, o, UNICON__METRIC, "whiten"));
    else
      UNICON_TRY(write_number(ctx, o, UNICON__METRIC, s->power));
    if (unicon__word(o, UNICON__RANK) == 0)
      UNICON_TRY(write_number(ctx, o, UNICON__RANK, (double)s->rank));
    snprintf(text, sizeof text, "%d", best->epochs);
    UNICON_TRY(unicon__options_replace(ctx, o, UNICON__REFINE, text)); /* given: at most */
    if (best->epochs > 0) {
      UNICON_TRY(write_number(ctx, o, UNICON__TEMPERATURE, best->temperature));
      UNICON_TRY(write_number(ctx, o, UNICON__REFINE_BATCH, (double)params->batch));
    }
  }
  kernel_words(o, best->kernel, kernel, sizeof kernel);
  const int used = snprintf(w->log->chosen, sizeof w->log->chosen, "kernel %s, ", kernel);
  setting_words(best, ",", w->log->chosen + used, sizeof w->log->chosen - (size_t)used);
  w->log->schedule = best->epochs > 0 ? best->schedule : 0;
  w->log->score = best->score;
  w->log->held[0] = w->held[0].whole.x.count;
  w->log->held[1] = w->held[0].whole.y.count;
  w->log->folds = w->folds;
  unicon__log(ctx, UNICON_LOG_INFO, "chosen: %s (held-out score %.4f)", w->log->chosen,
              w->log->score);
  return UNICON_OK;
}

unicon__select_scope unicon__select_scope_of(const unicon_options *options, int64_t rows_y) {
  enum { FEW_ROWS = 4000 }; /* below, a choice costs little, and a rule fits less well */
  const bool closed = unicon__word(options, UNICON__BATCH) == 0 &&
                      unicon__word(options, UNICON__START) == 0 &&
                      unicon__word(options, UNICON__LANDMARK_METHOD) >= 0 &&
                      unicon__word(options, UNICON__SHARED_ENCODER) != 0 &&
                      unicon__integer(options, UNICON__ITERATIONS) == 0;
  if (!closed) return UNICON__SELECT_NOTHING;
  if (unicon__has_preset(options, "auto") || unicon__has_preset(options, "best"))
    return UNICON__SELECT_ALL;
  const bool open =
      unicon__word(options, UNICON__EXPONENT) == 0 || unicon__word(options, UNICON__BALANCE) == 0;
  return open && rows_y < FEW_ROWS && unicon__integer(options, UNICON__REFINE) == 0
             ? UNICON__SELECT_SCORES
             : UNICON__SELECT_NOTHING;
}

static bool is_fixed(const unicon_options *options) {
  return unicon__given(options, UNICON__KERNEL) || unicon__given(options, UNICON__KERNEL_X) ||
         unicon__given(options, UNICON__KERNEL_Y) || unicon__given(options, UNICON__MAP);
}

static unicon_status run(unicon_ctx *ctx, selection *w) {
  unicon__refine_params params;
  candidate best;
  UNICON_TRY(try_kernels(ctx, w));
  unicon__refine_params_from(w->options, &params);
  plan_refine(w, &params);
  UNICON_TRY(choose(ctx, w, &params, &best));
  return write_choice(ctx, w, &best, &params);
}

unicon_status unicon__select(unicon_ctx *ctx, unicon__select_scope scope, unicon_options *options,
                             const unicon__dataset *train, const unicon__dataset *held, int folds,
                             unicon__select_log *log) {
  const double budget = unicon__word(options, UNICON__BUDGET) == 0
                            ? INFINITY
                            : unicon__number(options, UNICON__BUDGET);
  selection w = {.options = options,
                 .scope = scope,
                 .train = train,
                 .held = held,
                 .folds = folds < FOLDS_MAX ? folds : FOLDS_MAX,
                 .fixed = scope != UNICON__SELECT_ALL || is_fixed(options),
                 .log = log,
                 .larger = unicon__has_preset(options, "best"),
                 .deadline = unicon__now() + 0.5 * budget,
                 .refine_deadline = unicon__now() + 0.8 * budget};
  *log = (unicon__select_log){0};
  const unicon_status status = run(ctx, &w);
  close_trials(ctx, &w);
  return status;
}
