/* SPDX-License-Identifier: Apache-2.0 */
#include "core/auto.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/parallel.h"
#include "linalg/blas.h"

enum { FOLDS_MAX = 8, KERNELS_MAX = 6, FINALISTS = 3 };

/* A point of the sweep, with its scores summed over the folds. */
typedef struct setting {
  double power, ridge;
  double score[UNICON__CONTEST_RANKS];
  bool done;
} setting;

/* The best setting of a kernel. */
typedef struct finalist {
  char kernel[32];
  setting setting;
  int64_t rank;
  double score;
} finalist;

typedef struct sweep {
  unicon__arena *arena;
  unicon_options *options;
  const unicon__dataset *train, *held;
  int folds;
  bool fixed;             /* the user gave the kernel or the map */
  bool rough;             /* a few landmarks serve: a fit on everything follows */
  bool larger;            /* preset best */
  bool final;             /* the winner is the model: no fit on everything follows */
  double deadline;        /* of the settings, or infinity: half of the budget */
  double refine_deadline; /* four fifths: the fit that follows needs its time too */
  unicon__auto_log *log;
  unicon_status none; /* why no kernel may be left */
  bool half_is_worse; /* power 1/4 lost clearly with another kernel: not tried again */
  /* every kernel's best setting */
  finalist kernel[KERNELS_MAX];
  int kernels, best;        /* how many, and which of them is best */
  unicon__contest *contest; /* that one's, when there is one fold */
} sweep;

static void remember(unicon__auto_log *log, const char *kernel, const setting *s, int64_t rank,
                     double score) {
  const size_t used = strlen(log->tried);
  unicon__number_print(log->tried + used, sizeof log->tried - used,
                       "%s%s ridge %g power %g rank %lld: %.4f", used ? "; " : "", kernel, s->ridge,
                       s->power, (long long)rank, score);
}

static void remember_refined(unicon__auto_log *log, const finalist *who, double ridge, int epochs,
                             double score) {
  const size_t used = strlen(log->tried);
  unicon__number_print(log->tried + used, sizeof log->tried - used,
                       "; %s ridge %g rank %lld, %d epochs: %.4f", who->kernel, ridge,
                       (long long)who->rank, epochs, score);
}

/* Nothing can be better than the best setting so far. */
static bool is_perfect(const sweep *w) {
  const double all = 1 - 1e-9;
  return (w->kernels > 0 && w->kernel[w->best].score > all) ||
         (w->kernels < KERNELS_MAX && w->kernel[w->kernels].score > all);
}

/* Scores one setting on every fold and takes it if it is the best. */
static unicon_status try_setting(unicon_ctx *ctx, sweep *w, unicon__contest **contest,
                                 const char *kernel, setting *s) {
  const bool some = w->kernels > 0 || w->kernel[0].score > -1;
  if (s->done || (some && (unicon__now() > w->deadline || is_perfect(w)))) return UNICON_OK;
  s->done = true;
  for (int f = 0; f < w->folds; f++) {
    double score[UNICON__CONTEST_RANKS];
    UNICON_TRY(unicon__contest_score(ctx, contest[f], s->power, s->ridge, score));
    for (int k = 0; k < contest[f]->ranks; k++) s->score[k] += score[k] / w->folds;
  }
  int top = 0;
  for (int k = 1; k < contest[0]->ranks; k++)
    if (s->score[k] > s->score[top] + 1e-9) top = k;
  remember(w->log, kernel, s, contest[0]->rank[top], s->score[top]);
  unicon__log(ctx, UNICON_LOG_INFO, "%-8s ridge %-6g power %-5g rank %-4lld held-out score %.4f",
              kernel, s->ridge, s->power, (long long)contest[0]->rank[top], s->score[top]);
  finalist *own = &w->kernel[w->kernels];
  if (s->score[top] <= own->score) return UNICON_OK;
  *own = (finalist){.setting = *s, .rank = contest[0]->rank[top], .score = s->score[top]};
  snprintf(own->kernel, sizeof own->kernel, "%s", kernel);
  return UNICON_OK;
}

static double score_of(const setting *s) {
  double best = 0;
  for (int k = 0; k < UNICON__CONTEST_RANKS; k++) best = s->score[k] > best ? s->score[k] : best;
  return best;
}

/* Full whitening from ridge .01 downhill and uphill by factors of 3, then the half-strength metric
 * at the best ridge and a tenth of it. */
static unicon_status sweep_settings(unicon_ctx *ctx, sweep *w, unicon__contest **contest,
                                    const char *kernel) {
  static const double ladder[] = {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3};
  enum { STEPS = 7, MIDDLE = 3 };
  const bool ridge_given = unicon__given(w->options, UNICON__RIDGE);
  const bool power_given = unicon__given(w->options, UNICON__METRIC);
  const double ridge = unicon__number(w->options, UNICON__RIDGE);
  const double power = power_given ? unicon__common_power(w->options) : 0.5;
  setting step[STEPS] = {{0}};
  int at = MIDDLE;
  for (int k = 0; k < STEPS; k++)
    step[k] = (setting){.power = power, .ridge = ridge_given ? ridge : ladder[k]};
  UNICON_TRY(try_setting(ctx, w, contest, kernel, &step[at]));
  for (int way = -1; way <= 1 && !ridge_given; way += 2)
    for (int k = at + way; k >= 0 && k < STEPS; k += way) {
      UNICON_TRY(try_setting(ctx, w, contest, kernel, &step[k]));
      if (score_of(&step[k]) <= score_of(&step[at])) break;
      at = k;
    }
  const double full = score_of(&step[at]);
  for (int k = 0; k < 2 && !power_given && !w->half_is_worse; k++) {
    setting half = {.power = 0.25,
                    .ridge = ridge_given || k == 0 ? step[at].ridge : step[at].ridge / 10};
    if (ridge_given && k == 1) break;
    UNICON_TRY(try_setting(ctx, w, contest, kernel, &half));
    if (k == 1) w->half_is_worse = score_of(&half) < full - 0.02;
  }
  return UNICON_OK;
}

/* Sets the kernel of the contests to come. On several splits a few landmarks tell the settings
 * apart as well as every row, at a tenth of the time. */
static unicon_status set_kernel(unicon_ctx *ctx, const sweep *w, const char *kernel) {
  const char *map = strcmp(kernel, "linear") == 0 ? "auto" : "nystrom";
  if (!w->fixed) UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__KERNEL, kernel));
  if (!w->rough) return UNICON_OK;
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__MAP, map));
  char count[16];
  snprintf(count, sizeof count, "%d", UNICON__AUTO_LANDMARKS);
  return unicon__options_choose(ctx, w->options, UNICON__LANDMARKS, count);
}

/* Map and landmarks as they were before set_kernel. */
static unicon_status restore_map(unicon_ctx *ctx, const sweep *w) {
  static const int id[] = {UNICON__MAP, UNICON__LANDMARKS};
  for (int k = 0; k < 2 && w->rough; k++)
    UNICON_TRY(
        unicon__options_choose(ctx, w->options, id[k], unicon__option_row(id[k])->default_value));
  return UNICON_OK;
}

/* A contest of the kernel that is set on every fold, with ranks up to `most`. */
static unicon_status open_contests(unicon_ctx *ctx, const sweep *w, int64_t most,
                                   unicon__contest **contest) {
  for (int f = 0; f < w->folds; f++) {
    const unicon__judge held = {w->held[f].whole.x, w->held[f].whole.y, w->held[f].whole.pairs};
    UNICON_NEW(ctx, contest[f], 1);
    UNICON_TRY(unicon__contest_open(ctx, w->arena, w->options, &w->train[f].whole, &held, most,
                                    w->final, contest[f]));
  }
  return UNICON_OK;
}

/* One kernel: contests on all folds, then the sweep. */
static unicon_status sweep_kernel(unicon_ctx *ctx, sweep *w, const char *kernel) {
  unicon__contest *contest[FOLDS_MAX];
  UNICON_TRY(open_contests(ctx, w, w->larger ? 512 : 256, contest));
  /* Folds differ in size a little: only ranks that all of them have are compared. */
  for (int f = 1; f < w->folds; f++) {
    if (contest[f]->ranks < contest[0]->ranks) contest[0]->ranks = contest[f]->ranks;
    for (int k = 0; k < contest[0]->ranks; k++)
      if (contest[f]->rank[k] < contest[0]->rank[k]) contest[0]->rank[k] = contest[f]->rank[k];
  }
  for (int f = 1; f < w->folds; f++) {
    contest[f]->ranks = contest[0]->ranks;
    memcpy(contest[f]->rank, contest[0]->rank, sizeof contest[0]->rank);
  }
  w->kernel[w->kernels].score = -1;
  UNICON_TRY(sweep_settings(ctx, w, contest, kernel));
  if (w->kernel[w->kernels].score < 0) return UNICON_OK; /* no time was left for a setting */
  if (w->kernels == 0 || w->kernel[w->kernels].score > w->kernel[w->best].score) {
    w->best = w->kernels;
    w->contest = contest[0];
  }
  w->kernels++;
  return UNICON_OK;
}

/* Seconds until the first setting of a kernel, at the rate of a slow machine. The eigenvectors of
 * both covariances take most of them. */
static double preparation(const unicon_ctx *ctx, const sweep *w, const char *kernel) {
  const int64_t n[2] = {w->train[0].whole.x.count, w->train[0].whole.y.count};
  const int64_t landmarks =
      w->rough ? UNICON__AUTO_LANDMARKS : unicon__integer(w->options, UNICON__LANDMARKS);
  double flops = 0;
  if (strcmp(kernel, "linear") == 0) return 0;
  for (int s = 0; s < 2; s++) {
    const double p = (double)(n[s] < landmarks ? n[s] : landmarks);
    flops += w->folds * p * p * (9 * p + 2 * (double)n[s]);
  }
  return flops / (1e10 * unicon__workers(ctx));
}

/* Whether another kernel is worth its time; says so if the budget is the reason. */
static bool time_for(unicon_ctx *ctx, const sweep *w, const char *kernel) {
  const double now = unicon__now();
  if (w->kernels == 0) return true;
  if (is_perfect(w)) return false;
  if (now < w->deadline && now + preparation(ctx, w, kernel) < w->refine_deadline) return true;
  unicon__log(ctx, UNICON_LOG_WARNING, "the budget leaves no time for kernel %s", kernel);
  return false;
}

/* The sweep of one kernel, and what it holds given back unless it is the best so far: with several
 * folds the contests are opened again, no need to hold all of them. A kernel that does not fit
 * under max-mem, or does not reach the rank that was asked for, is left out; the sentence stays, in
 * case that none is left. */
static unicon_status try_kernel(unicon_ctx *ctx, sweep *w, const char *kernel) {
  if (!time_for(ctx, w, kernel)) return UNICON_OK;
  const sweep before = *w;
  unicon__block *frame = unicon__frame_open(ctx), *mark = unicon__arena_mark(w->arena);
  UNICON_TRY(set_kernel(ctx, w, kernel));
  const unicon_status status = sweep_kernel(ctx, w, kernel);
  const bool limited = unicon__budget_limit(ctx->arena.budget) != UINT64_MAX;
  const bool ranked = w->final && unicon__given(w->options, UNICON__RANK);
  if (!w->fixed &&
      ((status == UNICON_ERR_MEMORY && limited) || (status == UNICON_ERR_DATA && ranked))) {
    unicon__log(ctx, UNICON_LOG_WARNING, "kernel %s is left out: %s", kernel, ctx->error);
    *w = before;
    w->none = status;
  } else {
    UNICON_TRY(status);
  }
  if (w->folds > 1 || w->contest == before.contest) {
    unicon__frame_close(ctx, frame);
    unicon__arena_back(w->arena, mark);
  }
  return UNICON_OK;
}

static unicon_status try_kernels(unicon_ctx *ctx, sweep *w) {
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
static void plan_refine(const unicon__batch *train, bool batch_given, bool larger,
                        unicon__refine_params *params) {
  const int64_t rows = train->x.count;
  if (!batch_given && params->batch > rows / 2) params->batch = rows / 2 > 2 ? rows / 2 : 2;
  const int64_t steps = unicon__epoch_steps(train->pairs, params->batch);
  const int64_t epochs = (larger ? 90 : 45) / steps;
  params->epochs = (int)(epochs < 1 ? 1 : epochs > 12 ? 12 : epochs);
}

/* The winner refined at some ridge. */
typedef struct refined {
  double temperature;
  double ridge, score;                /* mean held-out score of the best epoch over the folds */
  double gain;                        /* over the closed form */
  double by_epoch[UNICON__EPOCH_LOG]; /* mean held-out score after each; entry 0: the start */
  int epochs, tried;                  /* chosen, and how many were run */
  /* of the last fold: */
  unicon__metric metric[2];
  unicon__factors factors;
  unicon__part_log log;
} refined;

static unicon_status refine_fold(unicon_ctx *ctx, const finalist *who,
                                 const unicon__contest *contest,
                                 const unicon__refine_params *params, refined *r) {
  UNICON_TRY(unicon__contest_factors(ctx, contest, who->setting.power, r->ridge, who->rank,
                                     r->metric, &r->factors, &r->log.solve));
  unicon__blas_begin();
  const unicon_status status = unicon__refine(ctx, &contest->train, r->metric, &contest->judge,
                                              params, &r->factors, &r->log.refine);
  unicon__blas_end();
  return status;
}

/* Mean held-out score of each epoch over the folds decides how many epochs are run. */
static unicon_status refine_at(unicon_ctx *ctx, const sweep *w, const finalist *who,
                               const unicon__refine_params *params, unicon__contest **contest,
                               refined *r) {
  double *score = r->by_epoch;
  r->tried = params->epochs < UNICON__EPOCH_LOG ? params->epochs : UNICON__EPOCH_LOG - 1;
  for (int f = 0; f < w->folds; f++) {
    UNICON_TRY(refine_fold(ctx, who, contest[f], params, r));
    if (r->log.refine.epochs < r->tried) r->tried = r->log.refine.epochs; /* patience ended it */
    for (int e = 0; e <= r->tried; e++) score[e] += r->log.refine.score[e] / w->folds;
  }
  for (int e = 1; e <= r->tried; e++)
    if (score[e] > score[r->epochs]) r->epochs = e;
  r->score = score[r->epochs];
  if (r->epochs > 0) remember_refined(w->log, who, r->ridge, r->epochs, r->score);
  r->gain = r->score - score[0];
  unicon__log(ctx, UNICON_LOG_INFO,
              "refine %s ridge %g temperature %g held-out score %.4f, after %d of %d epochs %.4f",
              who->kernel, r->ridge, r->temperature, score[0], r->epochs, params->epochs, r->score);
  return UNICON_OK;
}

/* Refines at the ridge of the closed form and, where that helped, at ten times that (the true loss
 * fits the training pairs more closely than the closed form, so it often wants more shrinkage) and
 * at half the temperature. */
static unicon_status choose_refined(unicon_ctx *ctx, const sweep *w, finalist *who,
                                    unicon__refine_params *params, unicon__contest **contest,
                                    refined *best) {
  const bool ridge_given = unicon__given(w->options, UNICON__RIDGE);
  const bool heat_given = unicon__given(w->options, UNICON__TEMPERATURE);
  enum { AS_IT_IS, MORE_RIDGE, COLDER, TRIALS };
  for (int trial = AS_IT_IS; trial < (params->epochs == 0 ? 1 : TRIALS); trial++) {
    refined now = {.ridge = trial == COLDER ? best->ridge : who->setting.ridge, .score = -1};
    unicon__refine_params here = *params;
    if ((trial == MORE_RIDGE && ridge_given) || (trial == COLDER && heat_given)) continue;
    if (trial > 0 && (best->gain < 0.005 || unicon__now() > w->refine_deadline)) break;
    if (trial == MORE_RIDGE) now.ridge *= 10;
    if (trial == COLDER) here.loss.temperature /= 2;
    now.temperature = here.loss.temperature;
    UNICON_TRY(refine_at(ctx, w, who, &here, contest, &now));
    if (trial == AS_IT_IS || now.score > best->score) *best = now;
  }
  params->epochs = best->epochs;
  params->loss.temperature = best->temperature;
  who->setting.ridge = best->ridge;
  who->score = best->score;
  return UNICON_OK;
}

/* ---- the final ---------------------------------------------------------------------------- */

/* The best finalist after refine. */
typedef struct champion {
  finalist who; /* score -1: nobody yet */
  unicon__refine_params params;
} champion;

static unicon_status write_choice(unicon_ctx *ctx, const sweep *w, const champion *best) {
  const unicon__refine_params *params = &best->params;
  const finalist *who = &best->who;
  const bool asked = unicon__word(w->options, UNICON__RANK) < 0;
  const int64_t rank = asked ? unicon__integer(w->options, UNICON__RANK) : who->rank;
  char text[64];
  if (!w->fixed) UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__KERNEL, who->kernel));
  UNICON_TRY(restore_map(ctx, w));
  unicon__number_print(text, sizeof text, "%g", who->setting.ridge);
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__RIDGE, text));
  if (who->setting.power == 0.5)
    snprintf(text, sizeof text, "whiten");
  else
    unicon__number_print(text, sizeof text, "%g", who->setting.power);
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__METRIC, text));
  snprintf(text, sizeof text, "%lld", (long long)rank);
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__RANK, text));
  snprintf(text, sizeof text, "%d", params->epochs);
  UNICON_TRY(unicon__options_replace(ctx, w->options, UNICON__REFINE, text)); /* given: at most */
  unicon__number_print(text, sizeof text, "%g", params->loss.temperature);
  if (params->epochs > 0)
    UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__TEMPERATURE, text));
  snprintf(text, sizeof text, "%lld", (long long)params->batch);
  UNICON_TRY(unicon__options_choose(ctx, w->options, UNICON__REFINE_BATCH, text));
  const int used = unicon__number_print(
      w->log->chosen, sizeof w->log->chosen, "kernel %s, ridge %g, metric power %g, rank %lld",
      who->kernel, who->setting.ridge, who->setting.power, (long long)rank);
  if (params->epochs > 0)
    unicon__number_print(w->log->chosen + used, sizeof w->log->chosen - (size_t)used,
                         ", refine %d epochs at temperature %g", params->epochs,
                         params->loss.temperature);
  w->log->score = who->score;
  w->log->held[0] = w->held[0].whole.x.count;
  w->log->held[1] = w->held[0].whole.y.count;
  w->log->folds = w->folds;
  return UNICON_OK;
}

/* The spectrum moves from the frame to where the part is. */
static unicon_status keep_spectrum(unicon_ctx *ctx, unicon__arena *arena, int64_t rank,
                                   unicon__solve_log *log) {
  double *kept;
  UNICON_ARENA_NEW(ctx, arena, kept, rank);
  memcpy(kept, log->spectrum, (size_t)rank * sizeof *kept);
  log->spectrum = kept;
  return UNICON_OK;
}

/* One finalist, refined; if it is the best its part and its log are stored. */
static unicon_status play(unicon_ctx *ctx, const sweep *w, finalist *who,
                          unicon__refine_params params, champion *best, unicon__part *part,
                          unicon__part_log *log) {
  unicon__contest *contest[FOLDS_MAX] = {NULL};
  refined winner;
  UNICON_TRY(set_kernel(ctx, w, who->kernel));
  if (w->folds == 1 && who == &w->kernel[w->best])
    contest[0] = w->contest; /* kept since the sweep */
  else
    UNICON_TRY(open_contests(ctx, w, who->rank, contest));
  UNICON_TRY(choose_refined(ctx, w, who, &params, contest, &winner));
  if (who->score <= best->who.score) return UNICON_OK;
  unicon__part stored = {0};
  if (part) { /* before anything of an earlier winner is given up: this may fail */
    UNICON_TRY(unicon__part_store(ctx, w->arena, contest[0]->side, winner.metric, &winner.factors,
                                  &stored));
    UNICON_TRY(keep_spectrum(ctx, w->arena, stored.rank, &winner.log.solve));
    *part = stored;
  }
  *best = (champion){*who, params};
  *log = winner.log;
  w->log->epochs = winner.tried;
  memcpy(w->log->by_epoch, winner.by_epoch, sizeof winner.by_epoch);
  return UNICON_OK;
}

/* The kernel with the best score that is not yet done; NULL when there is none. */
static finalist *next_finalist(sweep *w, const bool *done) {
  finalist *next = NULL;
  for (int k = 0; k < w->kernels; k++)
    if (!done[k] && (!next || w->kernel[k].score > next->score)) next = &w->kernel[k];
  return next;
}

/* The best kernel, for preset best the best three, refined; what a loser holds is given back. */
static unicon_status play_final(unicon_ctx *ctx, sweep *w, const unicon__refine_params *params,
                                champion *best, unicon__part *part, unicon__part_log *log) {
  const bool limited = unicon__budget_limit(ctx->arena.budget) != UINT64_MAX;
  bool done[KERNELS_MAX] = {false};
  for (int round = 0; round < (w->larger ? FINALISTS : 1); round++) {
    finalist *who = next_finalist(w, done);
    if (!who || (round > 0 && unicon__now() > w->refine_deadline)) break;
    done[who - w->kernel] = true;
    unicon__block *frame = unicon__frame_open(ctx), *mark = unicon__arena_mark(w->arena);
    const unicon_status status = play(ctx, w, who, *params, best, part, log);
    if (status != UNICON_OK && !(status == UNICON_ERR_MEMORY && limited && round > 0))
      return status;
    const bool won = status == UNICON_OK && best->who.score == who->score;
    unicon__clear_error(ctx);
    unicon__frame_close(ctx, frame);
    if (!won || !part) unicon__arena_back(w->arena, mark);
  }
  return UNICON_OK;
}

bool unicon__is_auto(const unicon_options *options) {
  const bool asked = unicon__has_preset(options, "auto") || unicon__has_preset(options, "best");
  return asked && unicon__word(options, UNICON__BATCH) == 0 &&
         unicon__word(options, UNICON__START) == 0 &&
         unicon__word(options, UNICON__LANDMARK_METHOD) >= 0 &&
         unicon__word(options, UNICON__MAP) != 1 + UNICON__MAP_HIDDEN &&
         unicon__word(options, UNICON__SHARED_ENCODER) != 0 &&
         unicon__integer(options, UNICON__ITERATIONS) == 0;
}

static bool is_fixed(const unicon_options *options) {
  return unicon__given(options, UNICON__KERNEL) || unicon__given(options, UNICON__KERNEL_X) ||
         unicon__given(options, UNICON__KERNEL_Y) || unicon__given(options, UNICON__MAP);
}

unicon_status unicon__auto(unicon_ctx *ctx, unicon__arena *arena, unicon_options *options,
                           const unicon__dataset *train, const unicon__dataset *held, int folds,
                           unicon__part *part, unicon__part_log *part_log, unicon__auto_log *log) {
  const double budget = unicon__word(options, UNICON__BUDGET) == 0
                            ? INFINITY
                            : unicon__number(options, UNICON__BUDGET);
  sweep w = {.arena = arena,
             .options = options,
             .train = train,
             .held = held,
             .folds = folds < FOLDS_MAX ? folds : FOLDS_MAX,
             .fixed = is_fixed(options),
             .rough = folds > 1 && !unicon__given(options, UNICON__MAP) &&
                      !unicon__given(options, UNICON__LANDMARKS) &&
                      !unicon__given(options, UNICON__LANDMARK_METHOD),
             .log = log,
             .final = part != NULL,
             .larger = unicon__has_preset(options, "best"),
             .deadline = unicon__now() + 0.5 * budget,
             .refine_deadline = unicon__now() + 0.8 * budget};
  champion best = {.who.score = -1};
  unicon__refine_params params;
  *log = (unicon__auto_log){0};
  UNICON_TRY(try_kernels(ctx, &w));
  unicon__refine_params_from(options, &params);
  if (!unicon__given(options, UNICON__REFINE))
    plan_refine(&train[0].whole, unicon__given(options, UNICON__REFINE_BATCH), w.larger, &params);
  const bool refinable =
      params.loss.kind != UNICON__LOSS_MOMENT && params.loss.kind != UNICON__LOSS_SPECTRAL;
  if ((!refinable || is_perfect(&w)) && !unicon__given(options, UNICON__REFINE)) params.epochs = 0;
  UNICON_TRY(play_final(ctx, &w, &params, &best, part, part_log));
  UNICON_TRY(write_choice(ctx, &w, &best));
  unicon__log(ctx, UNICON_LOG_INFO, "chosen: %s (held-out score %.4f)", log->chosen, log->score);
  return UNICON_OK;
}
