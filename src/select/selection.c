/* SPDX-License-Identifier: Apache-2.0 */
#include "select/selection.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"

/* ---- words -------------------------------------------------------------------------------- */

/* "angular" or, where the sides differ, "rbf x linear". */
void unicon__kernel_words(const unicon_options *options, const char *kernel, char *out,
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

/* The rank or, where rows have fewer directions, as of class labels, that many. */
static void rank_words(const unicon__candidate *c, char *out, size_t size) {
  const bool fewer = c->directions > 0 && c->directions < c->setting.rank;
  if (c->setting.rank == INT64_MAX)
    snprintf(out, size, "full");
  else
    snprintf(out, size, "%lld", (long long)(fewer ? c->directions : c->setting.rank));
}

int unicon__setting_words(const unicon__candidate *c, const char *comma, char *out, size_t size) {
  char balance[UNICON__BALANCING_TEXT];
  unicon__balancing_print(c->setting.balance, balance);
  char ridge[64];
  ridge_words(&c->setting, ridge, sizeof ridge);
  char rank[24];
  rank_words(c, rank, sizeof rank);
  int used = unicon__number_print(
      out, size, "ridge %s%s metric power %g%s exponent %g%s rank %s%s balance %s", ridge, comma,
      c->setting.power, comma, c->setting.exponent, comma, rank, comma, balance);
  if (c->epochs > 0 && (size_t)used < size)
    used += unicon__number_print(out + used, size - (size_t)used,
                                 "%s refine %d of %d epochs at temperature %g", comma, c->epochs,
                                 c->schedule, c->temperature);
  return used;
}

void unicon__remember(unicon_ctx *ctx, const unicon__selection *w, const unicon__candidate *c) {
  char words[256], kernel[80];
  unicon__setting_words(c, "", words, sizeof words);
  unicon__kernel_words(w->job->options, c->kernel->name, kernel, sizeof kernel);
  const size_t used = strlen(w->log->tried);
  unicon__number_print(w->log->tried + used, sizeof w->log->tried - used, "%s%s %s: %.4f",
                       used ? "; " : "", kernel, words, c->score);
  unicon__log(ctx, UNICON_LOG_INFO, "%-8s %s: held-out score %.4f", kernel, words, c->score);
}

/* ---- time --------------------------------------------------------------------------------- */

/* Seconds that are left when `share` of the budget is gone. */
double unicon__seconds_left(const unicon__selection *w, double share) {
  return share * w->params->budget - (unicon__now() - w->begun);
}

/* Seconds until the first setting of a kernel on so many landmarks: kernel values, features and
 * statistics; eigenvectors of the part that is looked at, at a third of the rate; half as much
 * again as products alone would take. */
double unicon__preparation_time(const unicon__selection *w, int64_t landmarks) {
  const unicon__batch *data = w->job->data;
  const double n[2] = {(double)data->x.count, (double)data->y.count};
  const double d[2] = {(double)data->x.rows->width, (double)data->y.rows->width};
  double flops = 0;
  for (int s = 0; s < 2; s++) {
    const double m = fmin(n[s], (double)landmarks), q = fmin(m, UNICON__SELECT_LANDMARKS);
    flops += n[s] * m * (2 * d[s] + 2 * m) + n[0] * m * m + 9 * q * q * q * 3 * w->folds;
  }
  return 1.5 * flops / w->rate;
}

/* As many landmarks as half of the budget has time for. */
int64_t unicon__landmarks_for(const unicon__selection *w, int64_t wanted) {
  static const int64_t fewer[] = {1000, 500, 250};
  int64_t best = wanted;
  for (size_t k = 0; k < 3 && unicon__preparation_time(w, best) > w->params->budget / 2; k++)
    if (fewer[k] < wanted) best = fewer[k];
  return best;
}

/* ---- trials ------------------------------------------------------------------------------- */

void unicon__kernel_close(unicon_ctx *ctx, const unicon__selection *w, unicon__opened *o) {
  if (!o->kernel) return;
  for (int f = 0; f < UNICON__FOLDS_MAX; f++)
    if (o->trial[f]) unicon__trial_close(o->trial[f]);
  if (o->prepared != w->job->prepared) unicon__prepared_close(o->prepared);
  unicon__frame_close(ctx, o->frame);
  *o = (unicon__opened){0};
}

/* Sets kernel and landmarks where the user has not. */
void unicon__kernel_set(unicon__selection *w, const unicon__kernel_name *kernel) {
  unicon__params *params = w->params;
  if (params->open.kernel && w->all) params->map.kernel[0] = params->map.kernel[1] = kernel->kind;
  params->kernel = kernel->name;
  if (!params->open.landmarks || !w->all) return;
  const int64_t wanted = w->larger ? UNICON__SELECT_LANDMARKS : UNICON__AUTO_LANDMARKS;
  params->map.landmarks = unicon__landmarks_for(w, wanted);
  const bool enough = !w->larger && params->map.landmarks == wanted;
  params->map.by_size = enough || kernel->kind == UNICON__KERNEL_LINEAR;
  params->map.kind = UNICON__MAP_NYSTROM;
}

/* The highest rank that is tried. */
static int64_t most_rank(const unicon__selection *w) {
  return w->params->open.rank && w->larger ? 512 : w->params->rank;
}

static unicon_status open_rows(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o) {
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

unicon__opened *unicon__kernel_find(unicon__selection *w, const unicon__kernel_name *kernel) {
  for (int k = 0; k < UNICON__SELECT_SLOTS; k++)
    if (w->open[k].kernel == kernel) return &w->open[k];
  return NULL;
}

/* The kernel's trials, made if they are not there; what was opened last makes room. */
unicon_status unicon__kernel_open(unicon_ctx *ctx, unicon__selection *w,
                                  const unicon__kernel_name *kernel, unicon__opened **out) {
  *out = unicon__kernel_find(w, kernel);
  if (*out) return UNICON_OK;
  int at = 0;
  while (at + 1 < UNICON__SELECT_SLOTS && w->open[at].kernel && !w->larger) at++;
  for (int k = UNICON__SELECT_SLOTS - 1; k >= at; k--) unicon__kernel_close(ctx, w, &w->open[k]);
  *out = &w->open[at];
  unicon__prepared *rows = w->job->prepared ? w->job->prepared : &w->slot[at];
  **out = (unicon__opened){.kernel = kernel, .prepared = rows, .frame = unicon__frame_open(ctx)};
  unicon__kernel_set(w, kernel);
  return open_rows(ctx, w, *out);
}

/* What opening a kernel takes of its sweep: rows are prepared once, settings tried on every fold. */
double unicon__opening_share(const unicon__selection *w) {
  return w->folds == 1 ? 0.7 : 0.4;
}

/* Before more than one setting is tried. */
unicon_status unicon__kernel_turn(unicon_ctx *ctx, const unicon__selection *w, unicon__opened *o) {
  for (int f = 0; f < w->folds; f++) UNICON_TRY(unicon__trial_turn(ctx, o->trial[f]));
  return UNICON_OK;
}

/* Ranks that all folds have. */
int64_t unicon__common_rank(const unicon__selection *w, const unicon__opened *o) {
  int64_t rank = o->trial[0]->most;
  for (int f = 1; f < w->folds; f++)
    if (o->trial[f]->most < rank) rank = o->trial[f]->most;
  return rank;
}
