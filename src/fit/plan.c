/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_plan: what a fit will hold and do, before it starts (fit/cost.h), in seconds by the rate of a
 * short product measured here and now; and whether to do it at all. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "device/use.h"
#include "fit/cost.h"
#include "io/object.h"
#include "io/result.h"
#include "kept/kept.h"
#include "linalg/rate.h"
#include "unicon/tools.h"

static const double mib = 1048576, day = 86400;

typedef struct rates {
  double single, wide;
} rates;

/* Factorisations run at about a quarter of the rate of products. */
static double seconds_of(const unicon__cost *e, const rates *rate) {
  double seconds = e->work[UNICON__COST_ALGEBRA] / (0.25 * rate->wide);
  for (int k = 0; k < UNICON__COST_ALGEBRA; k++) seconds += e->work[k] / (0.8 * rate->single);
  if (unicon__cost_chooses(e) && unicon__word(e->options, UNICON__BUDGET) != 0)
    return fmin(seconds, unicon__number(e->options, UNICON__BUDGET));
  return seconds;
}

static void say_time(double seconds, char out[32]) {
  const double year = 365 * day;
  if (seconds >= 2 * year)
    snprintf(out, 32, "%.3g years", seconds / year);
  else if (seconds >= 2 * day)
    snprintf(out, 32, "%.0f days", seconds / day);
  else if (seconds >= 7200)
    snprintf(out, 32, "%.0f hours", seconds / 3600);
  else if (seconds >= 120)
    snprintf(out, 32, "%.0f minutes", seconds / 60);
  else
    snprintf(out, 32, "%.2g seconds", seconds);
}

/* Bytes of memory that this machine has; infinite where it does not say. */
static double machine_memory(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (double)pages * (double)size : INFINITY;
}

/* ---- in its place ------------------------------------------------------------------------- */

enum { FEW_BATCH = 2000 }; /* rows of x that show the loss well enough (docs/method.md) */

/* The same job with less of what costs most; words about it. */
static const char *lighter(unicon__cost *e) {
  int most = 0;
  for (int k = 1; k < UNICON__COST_PARTS; k++)
    if (e->work[k] > e->work[most]) most = k;
  if (most == UNICON__COST_PLANE && e->params.cut.size == 0) {
    e->params.cut.size = FEW_BATCH;
    return "batch 2000, which looks at parts of the plane";
  }
  if (most == UNICON__COST_REFINE && e->params.refine.epochs > 0) {
    e->params.refine.epochs = 0;
    return "no refine";
  }
  if (e->params.goal != UNICON__GOAL_FIXED) {
    e->params.goal = UNICON__GOAL_FIXED;
    e->params.open.kernel = e->params.open.landmarks = false;
    return "preset fast";
  }
  if (!e->side[0].linear || !e->side[1].linear) {
    if (unicon__given(e->options, UNICON__MAP) &&
        unicon__word(e->options, UNICON__MAP) == 1 + UNICON__MAP_EXACT)
      return "map nystrom with 2000 landmarks";
    return "fewer landmarks, or kernel linear";
  }
  return NULL;
}

static unicon__cost fresh(const unicon__cost *e, const unicon__params *params) {
  unicon__cost out = *e;
  out.params = *params;
  out.parts = 1;
  out.most_points = INFINITY;
  out.held = out.peak = out.sweeps = 0;
  memset(out.work, 0, sizeof out.work);
  memset(out.reads, 0, sizeof out.reads);
  return out;
}

/* "do not: about 11 years, ...; in its place: batch 2000, ..., about 3 hours". */
static void advise_against(const unicon__cost *e, const rates *rate, double seconds, char *out,
                           size_t size) {
  static const char *const parts[] = {"sums over rows", "sweeps over all pairs of rows",
                                      "steps of refine", "factorisations"};
  char time[32], other[32];
  unicon__cost light = *e;
  int most = 0;
  for (int k = 1; k < UNICON__COST_PARTS; k++)
    if (e->work[k] > e->work[most]) most = k;
  const char *words = lighter(&light);
  light = fresh(&light, &light.params);
  unicon__cost_fit(&light);
  say_time(seconds, time);
  say_time(seconds_of(&light, rate), other);
  const bool helps = seconds_of(&light, rate) < seconds / 2;
  snprintf(out, size, "do not: it would take about %s, most of it in %s; %s%s%s%s", time,
           parts[most],
           words ? "in its place: " : "use fewer rows, or a machine that is as much faster",
           words ? words : "", helps ? ", about " : "", helps ? other : "");
}

/* Does the fit choose among kernels, and leave out those that do not fit? */
static bool leaves_out(const unicon__cost *e) {
  return unicon__cost_chooses(e) && e->params.open.kernel;
}

/* The peak with the first kernel alone, which is linear, on top of what is held before. */
static double least_memory(const unicon__cost *e, double before) {
  if (!leaves_out(e)) return e->peak;
  unicon__cost bare = fresh(e, &e->params);
  bare.held = bare.peak = before;
  bare.params.open.kernel = false;
  unicon__cost_fit(&bare);
  return bare.peak;
}

static void say_bytes(double bytes, char out[32]) {
  const bool large = bytes >= 10240 * mib;
  const double value = bytes / (large ? 1024 * mib : mib);
  snprintf(out, 32, "%.*f %s", value < 100, value, large ? "GiB" : "MiB");
}

static void advise(const unicon__cost *e, const rates *rate, double least, char *out, size_t size) {
  const double seconds = seconds_of(e, rate), machine = machine_memory();
  const bool linear = leaves_out(e) || (e->side[0].linear && e->side[1].linear);
  const double room = fmin(e->limit, machine);
  char have[32], need[32];
  const char *const less = least <= room ? "kernels that do not fit will be left out"
                           : linear
                               ? "lower rank, use fewer threads, or reduce the width of the vectors"
                               : "lower landmarks or features, use fewer threads, or kernel linear";
  say_bytes(room, have);
  say_bytes(least <= room ? e->peak : least, need);
  if (seconds > 14 * day)
    advise_against(e, rate, seconds, out, size);
  else if (e->peak > e->limit)
    snprintf(out, size, "max_mem is %s, but up to %s may be needed: %s", have, need, less);
  else if (e->peak > machine)
    snprintf(out, size, "%sthis machine has %s of memory, but up to %s may be needed: %s",
             least > machine ? "do not: " : "", have, need, less);
  else
    snprintf(out, size, "%s",
             isinf(e->limit) ? "it fits into this machine; max_mem sets no limit"
                             : "the fit stays within max_mem");
}

/* ---- the result --------------------------------------------------------------------------- */

static double work_of(const unicon__cost *e) {
  double flops = 0;
  for (int k = 0; k < UNICON__COST_PARTS; k++) flops += e->work[k];
  return flops;
}

static void note(unicon_ctx *ctx, const unicon__cost *e, const rates *rate, unicon_result *r) {
  char advice[320];
  const double seconds = seconds_of(e, rate), machine = machine_memory();
  const double least = least_memory(e, (double)unicon__budget_used(ctx->arena.budget));
  advise(e, rate, least, advice, sizeof advice);
  unicon__result_integer(ctx, r, "memory", (int64_t)e->peak);
  unicon__result_integer(ctx, r, "memory_least", (int64_t)least);
  unicon__result_integer(ctx, r, "machine_memory", isinf(machine) ? 0 : (int64_t)machine);
  unicon__result_integer(ctx, r, "reads_x", (int64_t)e->reads[0]);
  unicon__result_integer(ctx, r, "reads_y", (int64_t)e->reads[1]);
  unicon__result_integer(ctx, r, "plane_sweeps", (int64_t)e->sweeps);
  unicon__result_real(ctx, r, "flops", work_of(e));
  unicon__result_real(ctx, r, "seconds", seconds);
  unicon__result_text(ctx, r, "device", unicon__device_chosen(ctx, work_of(e)));
  unicon__result_text(ctx, r, "advice", advice);
}

/* Bytes of a .stats file: sums, the sample, the ledger. */
static double file_bytes(const unicon__cost *e, bool ledger, double sample) {
  const double p_x = e->side[0].p, p_y = e->side[1].p;
  const double rows = fmin(sample, e->side[0].n + e->side[1].n), n_x = e->side[0].n;
  const double of_x = rows * n_x / (n_x + e->side[1].n), of_y = rows - of_x;
  const double pairs = e->classes > 0 ? e->classes * (p_x + p_y + 3) : 2 * p_x * p_y;
  double maps = 0;
  for (int s = 0; s < 2; s++)
    if (!e->side[s].linear) maps += 4 * e->side[s].points * (e->side[s].d + e->side[s].p);
  return maps + 8 * (p_x * p_x + p_y * p_y + pairs) + of_x * (2 * e->side[0].d + 40) +
         of_y * (2 * e->side[1].d + 40) + (ledger ? 8 * (n_x + e->side[1].n) : 0);
}

/* What `unicon stats` would take of the same rows. */
static void note_sums(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                      const rates *rate, unicon_result *r) {
  unicon__cost e;
  const bool ledger = unicon__is(options, UNICON__LEDGER, "on");
  const double sample = (double)unicon__integer(options, UNICON__SAMPLE_ROWS);
  unicon__cost_open(ctx, data, options, &e);
  unicon__cost_sums(&e, ledger, sample);
  unicon__result_integer(ctx, r, "statistics.memory", (int64_t)e.peak);
  unicon__result_integer(ctx, r, "statistics.bytes", (int64_t)file_bytes(&e, ledger, sample));
  unicon__result_real(ctx, r, "statistics.seconds", seconds_of(&e, rate));
}

/* The limit is one of the fit, not of the product that is timed here. */
static unicon_status measure(unicon_ctx *ctx, rates *out) {
  unicon__budget *budget = ctx->arena.budget;
  const uint64_t limit = unicon__budget_limit(budget);
  *out = (rates){1e9, 1e9};
  unicon__budget_set_limit(budget, UINT64_MAX);
  const unicon_status status = unicon__product_rate(ctx, &out->single, &out->wide);
  unicon__budget_set_limit(budget, limit);
  return status;
}

/* A rank that the fit refuses. */
static unicon_status check_rank(unicon_ctx *ctx, const unicon__cost *e) {
  const unicon__cost_side *x = &e->side[0], *y = &e->side[1];
  const double most = fmin(x->n, y->n) - (e->params.centring != UNICON__CENTRE_NONE);
  if (!e->params.rank_given || (double)e->params.rank <= most) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "rank is %lld, but %.0f rows of x and %.0f of y allow at most %.0f",
                      (long long)e->params.rank, x->n, y->n, most);
}

static unicon_status plan(unicon_ctx *ctx, const unicon_data *given, const unicon_options *options,
                          unicon_result **out) {
  unicon_data data;
  unicon__cost e;
  rates rate;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  unicon__cost_open(ctx, &data, options, &e);
  UNICON_TRY(check_rank(ctx, &e));
  UNICON_TRY(measure(ctx, &rate));
  unicon__cost_fit(&e);
  unicon_result *r = unicon__result_new(ctx);
  note(ctx, &e, &rate, r);
  if (unicon__word(options, UNICON__MAP) != 1 + UNICON__MAP_EXACT && !e.lists)
    note_sums(ctx, &data, options, &rate, r);
  return unicon__result_done(r, out);
}

unicon_status unicon_plan(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                          unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, plan(ctx, data, options, out));
}

/* ---- from statistics ---------------------------------------------------------------------- */

static unicon_status plan_stored(unicon_ctx *ctx, const unicon_stats *stats,
                                 const unicon_options *options, unicon_result **out) {
  rates rate;
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, out);
  const uint64_t limit = unicon__budget_limit(ctx->arena.budget);
  const int64_t rows[2] = {llround(stats->sums.rows[0]), llround(stats->sums.rows[1])};
  const double sample[2] = {(double)stats->sample.rows[0], (double)stats->sample.rows[1]};
  unicon__cost e = {.options = options,
                    .workers = unicon__workers(ctx),
                    .parts = 1,
                    .pairs = (double)stats->sample.pairs,
                    .classes = (double)stats->sums.classes,
                    .ways = 2,
                    .limit = limit == UINT64_MAX ? INFINITY : (double)limit};
  unicon__params_from(options, rows, &e.params);
  e.params.open.kernel = e.params.open.landmarks = e.params.open.refine = false;
  e.held = e.peak = (double)unicon__budget_used(ctx->arena.budget);
  for (int s = 0; s < 2; s++) {
    const unicon__map *map = &stats->map[s];
    e.side[s] = (unicon__cost_side){.n = stats->sums.rows[s],
                                    .d = (double)map->in,
                                    .p = (double)map->out,
                                    .points = (double)map->points,
                                    .tables = map->near ? 2 : 1,
                                    .linear = map->kind == UNICON__MAP_LINEAR};
  }
  UNICON_TRY(measure(ctx, &rate));
  unicon__cost_stored(&e, sample);
  e.reads[0] = e.reads[1] = e.sweeps = 0;
  unicon_result *r = unicon__result_new(ctx);
  note(ctx, &e, &rate, r);
  return unicon__result_done(r, out);
}

unicon_status unicon_stats_plan(unicon_ctx *ctx, const unicon_stats *stats,
                                const unicon_options *options, unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, plan_stored(ctx, stats, options, out));
}
