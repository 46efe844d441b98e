/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_fit: checks, feature maps, metric, solver, model. No formulas here. */
#include "fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/together.h"
#include "fit/describe.h"
#include "fit/idle.h"
#include "fit/part.h"
#include "fit/stored.h"
#include "model/banks.h"
#include "model/embed.h"
#include "select/select.h"
#include "io/object.h"

/* Everything a fit works on; freed with the frame, but for what the datasets own. */
typedef struct fit {
  const unicon_options *options;
  unicon_options *own_options; /* a copy that a choice is written into */
  unicon__params params;
  unicon__prepared slot[UNICON__SELECT_SLOTS], *prepared; /* what a choice leaves, or NULL */
  const int64_t *groups;
  unicon__stored stored; /* statistics that stand in the place of the training rows, or nothing */
  unicon__dataset train, held;
  unicon__validation validation; /* over `held` */
  bool judged;                   /* are there validation pairs? */
  unicon__embedded finished;     /* they, by the finished model; r 0: not yet */
  unicon__problem batches;       /* of a fused model */
  unicon__select_log chosen;     /* folds 0: nothing was chosen */
} fit;

/* Place of an original row among the rows in use, or -1. */
static int64_t place_of(const unicon__source *source, int64_t row) {
  if (!source->index) return row >= 0 && row < source->count ? row : -1;
  const int64_t *found =
      bsearch(&row, source->index, (size_t)source->count, sizeof row, unicon__compare_int64);
  return found ? found - source->index : -1;
}

/* Rows given as landmarks by a file of x_row<TAB>y_row lines; NULL when there is none. */
static unicon_status given_landmarks(unicon_ctx *ctx, const fit *f, unicon__part_job *job) {
  int64_t *row[2] = {NULL, NULL};
  double *weight;
  const unicon__source *source[2] = {&f->train.whole.x, &f->train.whole.y};
  if (f->params.map.method != UNICON__LANDMARKS_GIVEN) return UNICON_OK;
  const char *path = unicon__text(f->options, UNICON__LANDMARK_METHOD);
  UNICON_TRY(unicon__pairs_parse(ctx, path, &row[0], &row[1], &weight, &job->landmarks));
  for (int s = 0; s < 2; s++) {
    for (int64_t k = 0; k < job->landmarks; k++) {
      const int64_t place = place_of(source[s], row[s][k]);
      if (place < 0)
        return unicon__fail(ctx, UNICON_ERR_PAIRS,
                            "%s: landmark row %lld of %s is not there (or was dropped)", path,
                            (long long)row[s][k], source[s]->rows->name);
      row[s][k] = place;
    }
    job->landmark[s] = row[s];
  }
  return UNICON_OK;
}

static bool is_fused(const fit *f) {
  return unicon__params_fused(&f->params, f->train.whole.x.count);
}

/* Takes the part's singular values into the model's spectrum, after those of earlier parts. */
static void take_spectrum(const unicon__solve_log *log, int64_t rank, float *spectrum) {
  for (int64_t k = 0; k < rank; k++) spectrum[k] = (float)log->spectrum[k];
}

/* Rank and spectrum of a model of one part. */
static unicon_status take_single(unicon_ctx *ctx, unicon_model *model,
                                 const unicon__solve_log *log) {
  model->rank = model->part[0].rank;
  UNICON_ARENA_NEW(ctx, &model->arena, model->spectrum, model->rank);
  take_spectrum(log, model->rank, model->spectrum);
  return UNICON_OK;
}

/* NULL holds nothing. */
static bool all_finite(const float *data, int64_t count) {
  for (int64_t k = 0; data && k < count; k++)
    if (!isfinite(data[k])) return false;
  return true;
}

/* Sums from a file may be those of no rows at all. */
static unicon_status check_sums(unicon_ctx *ctx, const fit *f, const unicon_model *model) {
  const unicon__part *part = &model->part[0];
  if (!f->stored.stats) return UNICON_OK;
  bool fine = all_finite(model->spectrum, model->rank);
  for (int s = 0; s < 2; s++)
    fine = fine && all_finite(part->weight[s], part->map[s].out * part->rank) &&
           all_finite(part->map[s].mean, part->map[s].out);
  if (fine) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "%s holds sums that are too large for any rows: a fit of them overflows",
                      f->stored.stats->name);
}

static unicon_status fit_one(unicon_ctx *ctx, fit *f, unicon_model *model, unicon__part_log *log) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__part_job job = {.params = &f->params,
                          .data = f->train.whole,
                          .prepared = f->prepared,
                          .held = f->judged ? &f->validation : NULL,
                          .arena = &model->arena,
                          .cut = f->params.cut};
  UNICON_TRY(given_landmarks(ctx, f, &job));
  UNICON_TRY(unicon__part_fit(ctx, &job, &model->part[0], log));
  UNICON_TRY(take_single(ctx, model, &log->solve));
  UNICON_TRY(check_sums(ctx, f, model));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Held-out score of a part by itself; 0 without held-out pairs. */
static unicon_status judge_part(unicon_ctx *ctx, const fit *f, const unicon__part *part,
                                double *score) {
  unicon__validation held = f->validation;
  const float *weights[2] = {part->weight[0], part->weight[1]};
  *score = 0;
  if (!f->judged) return UNICON_OK;
  for (int s = 0; s < 2; s++) held.side[s].map = &part->map[s];
  return unicon__validation_score(ctx, &held, weights, part->rank, score);
}

/* Leaves out the parts without a share, and counts the rank of the rest. */
static void keep_parts(unicon_model *model, const double *share, float **spectrum) {
  int64_t kept = 0;
  for (int64_t b = 0; b < model->parts; b++) {
    if (!(share[b] > 0)) continue;
    spectrum[kept] = spectrum[b];
    model->part[kept] = model->part[b];
    model->part[kept].share = share[b];
    model->rank += model->part[kept++].rank;
  }
  model->parts = kept;
}

static unicon_status fit_fused(unicon_ctx *ctx, fit *f, unicon_model *model,
                               unicon__part_log *log) {
  const int64_t parts = f->batches.batches;
  float **spectrum;
  double *score, *share, residual = 0;
  UNICON_NEW(ctx, spectrum, parts);
  UNICON_NEW(ctx, score, parts);
  UNICON_NEW(ctx, share, parts);
  for (int64_t b = 0; b < parts; b++) {
    unicon__block *frame = unicon__frame_open(ctx);
    const unicon__part_job job = {
        .params = &f->params, .data = f->batches.batch[b], .arena = &model->arena};
    UNICON_TRY(unicon__stage_step(ctx, b, parts));
    UNICON_TRY(unicon__part_fit(ctx, &job, &model->part[b], log));
    UNICON_ARENA_NEW(ctx, &model->arena, spectrum[b], model->part[b].rank);
    take_spectrum(&log->solve, model->part[b].rank, spectrum[b]);
    residual = fmax(residual, log->solve.residual);
    UNICON_TRY(judge_part(ctx, f, &model->part[b], &score[b]));
    unicon__frame_close(ctx, frame);
  }
  log->solve.residual = residual;
  const unicon__aggregation how = f->judged ? f->params.aggregate : UNICON__AGGREGATE_UNIFORM;
  UNICON_TRY(unicon__aggregate(ctx, how, score, parts, share));
  keep_parts(model, share, spectrum);
  UNICON_ARENA_NEW(ctx, &model->arena, model->spectrum, model->rank);
  for (int64_t b = 0, at = 0; b < model->parts; at += model->part[b++].rank)
    memcpy(model->spectrum + at, spectrum[b], (size_t)model->part[b].rank * sizeof **spectrum);
  return UNICON_OK;
}

/* Has every row a partner, by a list of pairs? */
static bool all_paired(const unicon_pairs *pairs) {
  if (!pairs) return true;
  if (pairs->class_x || pairs->ignore.count > 0 || pairs->only_listed) return false;
  for (int64_t i = 0; i < pairs->n_x; i++)
    if (unicon__positives_x(pairs, i).count == 0) return false;
  for (int64_t j = 0; j < pairs->n_y; j++)
    if (unicon__positives_y(pairs, j).count == 0) return false;
  return true;
}

bool unicon__fit_one_sweep(const unicon_options *options, const unicon__params *p,
                           const unicon_data *train) {
  const unicon_rows *rows[2] = {train->x, train->y};
  for (int s = 0; s < 2; s++)
    if (p->map.kernel[s] != UNICON__KERNEL_LINEAR || rows[s]->width > rows[s]->count ||
        !(p->map.by_size || p->map.kind == UNICON__MAP_LINEAR))
      return false;
  return !unicon__is(options, UNICON__BAD_ROWS, "drop") && p->cut.size == 0 && !p->shared &&
         p->iterations == 0 && p->refine.epochs == 0 && p->start == UNICON__START_MOMENT &&
         unicon__select_scope_of(p, train->y->count) == UNICON__SELECT_NOTHING &&
         all_paired(train->pairs);
}

static unicon_status open_train(unicon_ctx *ctx, fit *f, const unicon_data *train) {
  const int64_t given[2] = {train->x->count, train->y->count};
  unicon__params_from(f->options, given, &f->params);
  UNICON_TRY(unicon__dataset_open(ctx, train, f->options,
                                  unicon__fit_one_sweep(f->options, &f->params, train), &f->train));
  const int64_t rows[2] = {f->train.whole.x.count, f->train.whole.y.count};
  unicon__params_from(f->options, rows, &f->params);
  return UNICON_OK;
}

/* Statistics in the place of rows: their sample is the set, and its features are prepared. */
static unicon_status open_stored(unicon_ctx *ctx, fit *f, const unicon_stats *stats) {
  UNICON_TRY(unicon__options_copy(ctx, f->options, &f->own_options));
  UNICON_TRY(unicon__stored_settle(ctx, stats, f->own_options));
  f->options = f->own_options;
  const int64_t rows[2] = {llround(stats->sums.rows[0]), llround(stats->sums.rows[1])};
  unicon__params_from(f->options, rows, &f->params);
  f->params.open.kernel = f->params.open.landmarks = f->params.open.refine = false;
  UNICON_TRY(unicon__stored_open(ctx, stats, &f->params, &f->stored));
  f->train.whole = f->stored.set.whole;
  f->train.hash = f->stored.set.hash;
  f->prepared = &f->stored.prepared;
  if (f->stored.sampled || f->params.balance.kind == UNICON__BALANCE_OFF) return UNICON_OK;
  if (!f->params.open.balance)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "balance is %s, but %s keeps no rows to make banks of (sample_rows 0)",
                        unicon__text(f->options, UNICON__BALANCE), stats->name);
  f->params.open.balance = false;
  f->params.balance = (unicon__balancing){UNICON__BALANCE_OFF, 0};
  return UNICON_OK;
}

static unicon_status open_held(unicon_ctx *ctx, fit *f, const unicon_data *validation) {
  const int64_t width[2] = {f->train.whole.x.rows->width, f->train.whole.y.rows->width};
  if (validation->x->width != width[0] || validation->y->width != width[1])
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "validation rows have %lld and %lld values, training rows %lld and %lld",
                        (long long)validation->x->width, (long long)validation->y->width,
                        (long long)width[0], (long long)width[1]);
  UNICON_TRY(unicon__dataset_open(ctx, validation, f->options, false, &f->held));
  f->validation = (unicon__validation){.side = {f->held.whole.x, f->held.whole.y},
                                       .pairs = f->held.whole.pairs};
  f->judged = true;
  return UNICON_OK;
}

/* ---- choices ------------------------------------------------------------------------------ */

enum {
  FEWEST_PAIRS = 40, /* a tenth of fewer held out tells nothing */
  FOLDS_MAX = 5
};

/* What is prepared already: of statistics. */
static unicon__prepared *stored_rows(fit *f) {
  return f->stored.stats ? &f->stored.prepared : NULL;
}

/* Held-out share: a tenth, at most 5000 rows; the fewer the pairs, the more folds. */
static double held_fraction(const fit *f, int *folds) {
  const double n = (double)f->train.whole.y.count;
  const bool sampled = f->stored.stats && !unicon__sample_is_all(&f->stored.stats->sample);
  *folds = unicon__select_folds(f->train.whole.y.count);
  if (f->params.val_fraction > 0) return f->params.val_fraction;
  if (sampled) return 0.25; /* what is left of the sample is for banks alone */
  return n < 1500 ? 0.2 : n > 50000 ? 5000 / n : 0.1;
}

static void say_not_chosen(unicon_ctx *ctx, const char *why) {
  unicon__log(
      ctx, UNICON_LOG_WARNING,
      "no pairs can be held out (%s): nothing is chosen or measured, the settings are those "
      "of preset fast; give validation rows if you can",
      why);
}

/* Chooses on splits of the training pairs. */
static unicon_status choose_by_splits(unicon_ctx *ctx, fit *f, unicon__select_scope scope) {
  unicon__dataset train[FOLDS_MAX], held[FOLDS_MAX];
  const uint64_t seed = f->params.seed;
  int folds;
  const double fraction = held_fraction(f, &folds);
  unicon__block *frame = unicon__frame_open(ctx);
  const char *why_not = NULL;
  unicon_status status = UNICON_OK;
  memset(train, 0, sizeof train);
  memset(held, 0, sizeof held);
  for (int k = 0; k < folds && status == UNICON_OK && !why_not; k++)
    status = unicon__dataset_split(ctx, &f->train, f->groups, fraction, seed + (uint64_t)k,
                                   &train[k], &held[k], &why_not);
  if (why_not) {
    say_not_chosen(ctx, why_not);
  } else if (status == UNICON_OK) {
    const unicon__select_job job = {scope, f->options, &f->train.whole, train,
                                    held,  folds,      false,           stored_rows(f)};
    status = unicon__select(ctx, &job, &f->params, f->slot, &f->prepared, &f->chosen);
  }
  for (int k = 0; k < FOLDS_MAX; k++) {
    unicon__dataset_close(&train[k]);
    unicon__dataset_close(&held[k]);
  }
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Chooses, and writes what is chosen into our options as well; the fit follows. */
static unicon_status choose(unicon_ctx *ctx, fit *f, unicon__select_scope scope) {
  if (f->stored.stats && !f->judged && !f->stored.splits) {
    unicon__log(ctx, UNICON_LOG_WARNING,
                "no rows can be held out of these statistics (%s): settings of preset fast",
                f->stored.stats->decayed ? "they were decayed"
                : !f->stored.sampled     ? "they keep no sample"
                                         : "their pairs connect too many rows");
    return UNICON_OK;
  }
  if (!f->judged && f->train.whole.pairs->positive.count < FEWEST_PAIRS) {
    char why[96];
    snprintf(why, sizeof why, "%lld pairs are too few, %d are needed",
             (long long)f->train.whole.pairs->positive.count, FEWEST_PAIRS);
    say_not_chosen(ctx, why);
    return UNICON_OK;
  }
  if (f->judged) {
    const unicon__select_job job = {scope, f->options, &f->train.whole, &f->train, &f->held,
                                    1,     true,       stored_rows(f)};
    UNICON_TRY(unicon__select(ctx, &job, &f->params, f->slot, &f->prepared, &f->chosen));
  } else {
    UNICON_TRY(choose_by_splits(ctx, f, scope));
  }
  if (f->chosen.folds == 0) return UNICON_OK;
  if (!f->own_options) UNICON_TRY(unicon__options_copy(ctx, f->options, &f->own_options));
  f->options = f->own_options;
  return unicon__params_write(ctx, &f->params, f->own_options);
}

/* ---- balance ------------------------------------------------------------------------------ */

enum { FEWEST_ROWS = 64 }; /* with a pair, on each side: fewer say little about what is usual */

static int64_t paired_rows(const unicon_pairs *pairs, bool x) {
  int64_t count = 0;
  for (int64_t i = 0; i < (x ? pairs->n_x : pairs->n_y); i++)
    count += (x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i)).count > 0;
  return count;
}

/* What the parameters say; nothing of its own accord where there are few rows. */
static unicon__balancing usual_balance(const fit *f) {
  const unicon_pairs *pairs = f->train.whole.pairs;
  const unicon__balancing off = {UNICON__BALANCE_OFF, 0};
  const bool few =
      paired_rows(pairs, true) < FEWEST_ROWS || paired_rows(pairs, false) < FEWEST_ROWS;
  return f->params.open.balance && f->chosen.folds == 0 && few ? off : f->params.balance;
}

/* The validation rows as the finished model embeds them, once. */
static unicon_status embed_held(unicon_ctx *ctx, fit *f, const unicon_model *model) {
  const unicon__validation *held = &f->validation;
  if (f->finished.r > 0) return UNICON_OK;
  for (int s = 0; s < 2; s++) {
    const int64_t n = held->side[s].count;
    UNICON_NEW(ctx, f->finished.held[s], n * model->rank);
    UNICON_TRY(unicon__model_embed(ctx, model, s, &held->side[s], 0, n, true, false,
                                   f->finished.held[s], model->rank));
  }
  f->finished.r = model->rank;
  return UNICON_OK;
}

/* Held-out score of the finished model, balanced by its own banks. */
static unicon_status judge_model(unicon_ctx *ctx, fit *f, const unicon_model *model,
                                 unicon__balancing how, double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  UNICON_TRY(embed_held(ctx, f, model));
  f->finished.made = &model->balance;
  return unicon__validation_judge(ctx, &f->validation, &f->finished, model->rank, as_it_is, how,
                                  score);
}

/* With validation pairs the finished model decides between the balance that was chosen before it
 * was there, or the usual one, and some others. */
static unicon_status choose_balance(unicon_ctx *ctx, fit *f, unicon_model *model) {
  const unicon__balancing now = model->balance.how;
  const bool softmax = now.kind == UNICON__BALANCE_SOFTMAX;
  const unicon__balancing others[] = {{UNICON__BALANCE_SOFTMAX, softmax ? 1.5 * now.strength : 10},
                                      {UNICON__BALANCE_SOFTMAX, softmax ? 2 * now.strength : 15},
                                      {UNICON__BALANCE_OFF, 0},
                                      {UNICON__BALANCE_SOFTMAX, softmax ? now.strength / 2 : 5}};
  unicon__balancing best = now;
  double top;
  UNICON_TRY(judge_model(ctx, f, model, best, &top));
  for (size_t k = 0; k < (f->chosen.folds > 0 ? 2 : sizeof others / sizeof *others); k++) {
    double score;
    UNICON_TRY(judge_model(ctx, f, model, others[k], &score));
    if (score > top) {
      top = score;
      best = others[k];
    }
  }
  model->balance.how = best;
  for (int s = 0; s < 2 && best.kind == UNICON__BALANCE_OFF; s++)
    model->balance.bank[s] = (unicon__bank){0, NULL}; /* as its file will be */
  return UNICON_OK;
}

/* The words about the choice say what is in force: `text` behind `word`. */
static void reword(unicon__select_log *log, const char *word, const char *text) {
  const size_t size = sizeof log->chosen;
  char *at = strstr(log->chosen, word);
  char rest[sizeof log->chosen] = "";
  if (!at) return;
  at += strlen(word);
  snprintf(rest, sizeof rest, "%s", at + strcspn(at, ","));
  snprintf(at, size - (size_t)(at - log->chosen), "%s%s", text, rest);
}

static unicon_status balance(unicon_ctx *ctx, fit *f, unicon_model *model) {
  const unicon__bank_plan plan = {
      .side = {f->train.whole.x, f->train.whole.y},
      .pairs = f->train.whole.pairs,
      .how = usual_balance(f),
      .rows = f->params.bank,
      .seed = f->params.seed,
  };
  UNICON_TRY(unicon__banks_make(ctx, &plan, model));
  if (f->judged && f->params.open.balance && plan.how.kind != UNICON__BALANCE_OFF)
    UNICON_TRY(choose_balance(ctx, f, model));
  char text[UNICON__BALANCING_TEXT];
  unicon__balancing_print(model->balance.how, text);
  if (f->chosen.folds > 0) {
    reword(&f->chosen, "balance ", text);
    UNICON_TRY(unicon__options_choose(ctx, f->own_options, UNICON__BALANCE, text));
  }
  return unicon__model_note_text(ctx, model, "balance", text);
}

static unicon_status fit_parts(unicon_ctx *ctx, fit *f, unicon_model *model,
                               unicon__part_log *log) {
  const bool fused = is_fused(f);
  model->parts = 1;
  if (fused) {
    f->batches.whole = f->train.whole;
    UNICON_TRY(unicon__problem_cut(ctx, &f->params.cut, &f->batches));
    model->parts = f->batches.batches;
  }
  UNICON_ARENA_NEW(ctx, &model->arena, model->part, model->parts);
  return fused ? fit_fused(ctx, f, model, log) : fit_one(ctx, f, model, log);
}

/* What was tried and chosen. */
static unicon_status describe_choice(unicon_ctx *ctx, fit *f, unicon_model *model) {
  const unicon__select_log *chosen = &f->chosen;
  double score = chosen->score;
  char rank[24];
  if (chosen->folds == 0) return UNICON_OK;
  snprintf(rank, sizeof rank, "%lld", (long long)model->rank);
  if (f->params.open.rank) reword(&f->chosen, "rank ", rank); /* splits may have had fewer */
  if (f->judged) UNICON_TRY(judge_model(ctx, f, model, model->balance.how, &score));
  UNICON_TRY(unicon__model_note_text(ctx, model, "auto_tried", chosen->tried));
  UNICON_TRY(unicon__model_note_text(ctx, model, "auto_chosen", chosen->chosen));
  UNICON_TRY(unicon__model_note_real(ctx, model, "auto_score", 6, score));
  UNICON_TRY(unicon__model_note_real(ctx, model, "auto_chance", 6, chosen->chance));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "auto_folds", chosen->folds));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "auto_held_x", chosen->held[0]));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "auto_held_y", chosen->held[1]));
  if (f->params.refine.epochs > 0)
    UNICON_TRY(
        unicon__model_note_integer(ctx, model, "refine_schedule", f->params.refine.schedule));
  return chosen->epochs == 0 ? UNICON_OK
                             : unicon__model_note_numbers(ctx, model, "auto_refine_log",
                                                          chosen->by_epoch, chosen->epochs + 1);
}

/* Rows of y that are fitted on. */
static int64_t rows_of_y(const fit *f) {
  return f->stored.stats ? llround(f->stored.stats->sums.rows[1]) : f->train.whole.y.count;
}

/* No kernel has more dimensions than rows, so a rank beyond them is refused before anything is
 * tried. */
static unicon_status check_rank(unicon_ctx *ctx, const fit *f) {
  const bool stored = f->stored.stats;
  const double x = stored ? f->stored.stats->sums.rows[0] : (double)f->train.whole.x.count;
  const double y = stored ? f->stored.stats->sums.rows[1] : (double)f->train.whole.y.count;
  const double most = fmin(x, y) - (f->params.centring != UNICON__CENTRE_NONE);
  if (!f->params.rank_given || (double)f->params.rank <= most) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "rank is %lld, but %.0f rows of x and %.0f of y allow at most %.0f",
                      (long long)f->params.rank, x, y, most);
}

static unicon_status run_fit(unicon_ctx *ctx, fit *f, unicon_model *model) {
  unicon__part_log log = {.solve.method = ""};
  const unicon__select_scope scope = unicon__select_scope_of(&f->params, rows_of_y(f));
  const unicon__fit_kind kind = {
      .judged = f->judged,
      .sweeps = scope == UNICON__SELECT_ALL,
      .fused = is_fused(f),
      .chooses = scope != UNICON__SELECT_NOTHING,
      .scores = scope == UNICON__SELECT_SCORES || f->params.open.balance,
  };
  if (f->params.start == UNICON__START_MODEL && f->params.refine.epochs == 0)
    return unicon__fail(
        ctx, UNICON_ERR_OPTION,
        "start is \"%.300s\"; accepted: moment, random, zero, or the file of a model that "
        "refine begins with, where refine is given as well",
        f->params.start_path);
  UNICON_TRY(check_rank(ctx, f));
  const double choosing = scope != UNICON__SELECT_ALL ? 0.01 : f->judged ? 0.55 : 0.75;
  int stage = unicon__stage_begin(ctx, NULL, choosing);
  if (scope != UNICON__SELECT_NOTHING) UNICON_TRY(choose(ctx, f, scope));
  unicon__stage_end(ctx, stage);
  unicon__warn_idle(ctx, f->options, kind);
  stage = unicon__stage_begin(ctx, NULL, 0.9 - choosing);
  UNICON_TRY(fit_parts(ctx, f, model, &log));
  UNICON_TRY(unicon__dataset_look(ctx, &f->train));
  unicon__stage_end(ctx, stage);
  UNICON_TRY(balance(ctx, f, model));
  UNICON_TRY(describe_choice(ctx, f, model));
  const unicon__fitted made = {
      f->options, &f->params, &f->train, f->stored.stats, f->judged && !is_fused(f), &log};
  UNICON_TRY(unicon__describe_fit(ctx, &made, model));
  unicon__stage_report(ctx);
  return unicon__poll(ctx);
}

/* A fit, of rows or of statistics. */
static unicon_status fit_model(unicon_ctx *ctx, fit *f, const unicon_data *train,
                               const unicon_stats *stats, const unicon_data *validation,
                               unicon_model **out) {
  unicon_model *model = NULL;
  UNICON_TRY(unicon__model_create(ctx, &model));
  f->batches.batch = &f->batches.whole;
  const int stage = unicon__stage_begin(ctx, "reading", 0.05);
  unicon_status status = train ? open_train(ctx, f, train) : open_stored(ctx, f, stats);
  if (status == UNICON_OK && validation) status = open_held(ctx, f, validation);
  unicon__stage_end(ctx, stage);
  if (status == UNICON_OK) status = run_fit(ctx, f, model);
  for (int k = 0; k < UNICON__SELECT_SLOTS; k++) unicon__prepared_close(&f->slot[k]);
  unicon__problem_close(&f->batches);
  unicon_options_destroy(f->own_options);
  unicon__dataset_close(&f->held);
  unicon__dataset_close(&f->train);
  unicon__stored_close(&f->stored);
  unicon__arena_trim(&model->arena);
  if (status != UNICON_OK)
    unicon_model_destroy(model);
  else
    *out = model;
  return status;
}

unicon_status unicon__fit(unicon_ctx *ctx, const unicon_data *train, const unicon_data *validation,
                          const unicon_options *options, unicon_model **out) {
  fit f = {.options = options, .groups = train->groups};
  return fit_model(ctx, &f, train, NULL, validation, out);
}

static unicon_status fit_stored(unicon_ctx *ctx, const unicon_stats *stats,
                                const unicon_data *validation, const unicon_options *options,
                                unicon_model **out) {
  unicon_data held;
  fit f = {.options = options};
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, out);
  if (validation) UNICON_TRY(unicon__data_take(ctx, validation, &held));
  return fit_model(ctx, &f, NULL, stats, validation ? &held : NULL, out);
}

unicon_status unicon_stats_fit(unicon_ctx *ctx, const unicon_stats *stats,
                               const unicon_data *validation, const unicon_options *options,
                               unicon_model **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, fit_stored(ctx, stats, validation, options, out));
}

static unicon_status take_and_fit(unicon_ctx *ctx, const unicon_data *train,
                                  const unicon_data *validation, const unicon_options *options,
                                  unicon_model **out) {
  unicon_data own, held;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, train, &own));
  if (validation) UNICON_TRY(unicon__data_take(ctx, validation, &held));
  return unicon__fit(ctx, &own, validation ? &held : NULL, options, out);
}

enum { SHAPE_TEXT = 160 };

/* "5 by 3 and 5 by 2 numbers with 5 pairs". */
static const char *shape_of(const unicon_data *data, char text[SHAPE_TEXT]) {
  const unicon_rows *x = data ? data->x : NULL, *y = data ? data->y : NULL;
  snprintf(text, SHAPE_TEXT, "nothing");
  if (x && y)
    snprintf(text, SHAPE_TEXT, "%lld by %lld and %lld by %lld numbers with %lld pairs",
             (long long)x->count, (long long)x->width, (long long)y->count, (long long)y->width,
             (long long)(data->pairs ? data->pairs->positive.count : x->count));
  return text;
}

unicon_status unicon_fit(unicon_ctx *ctx, const unicon_data *train, const unicon_data *validation,
                         const unicon_options *options, unicon_model **out) {
  char text[2][SHAPE_TEXT];
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  unicon_status status =
      unicon__together_begin(ctx, options, "fit of %s, validated on %s", shape_of(train, text[0]),
                             shape_of(validation, text[1]));
  if (status == UNICON_OK) status = take_and_fit(ctx, train, validation, options, out);
  status = unicon__together_end(ctx, status);
  if (status != UNICON_OK && out) { /* made here, but not elsewhere */
    unicon_model_destroy(*out);
    *out = NULL;
  }
  return unicon__leave(ctx, status);
}
