/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_check: is there anything to align? Three answers from closed-form fits.
 *
 *     spectrum  singular values of the whitened C on all pairs, against the largest one of shuffled
 *               pairs (parallel analysis): those above it are the suggested rank
 *     test      a fit on half A, embeddings of half B; the mean cosine of the pairs of B against
 *               its distribution over shuffles of B. A and B share no component, so the fit knows
 *               nothing of B, and under the null hypothesis all shuffles are equally likely
 *     pairs     fits on A and on B grade the pairs of the other half */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/result.h"
#include "fit/part.h"
#include "features/project.h"
#include "use/shuffle.h"
#include "use/suspect.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "unicon/tools.h"

enum {
  FEWEST_ROWS = 20,       /* of a side: half of fewer cannot grade the other half */
  MOST_RANK = 256,        /* as the rank of a fit is by default */
  SPECTRUM = 64,          /* values reported */
  SHUFFLED_SPECTRA = 6,   /* the largest of them is the level of chance */
  ROUND_SPECTRA = 1 << 23 /* draws of their own, apart from those of shuffles and samples */
};

/* What is found. */
typedef struct figures {
  int64_t pairs, rows_x, rows_y; /* in use */
  /* canonical correlations on all pairs, shrunk by the ridge, largest first */
  double spectrum[SPECTRUM];
  int64_t spectrum_count;
  double noise;                   /* the largest of shuffled pairs */
  int64_t rank;                   /* how many lie above it, at most MOST_RANK */
  double cosine, chance, p_value; /* of a fit on one half, tried on the other */
  double closer; /* mean share of other rows that are farther than the partner: .5 is chance */
  int64_t graded, doubtful; /* pairs (rows with class labels) tried, and those below .5 */
} figures;

typedef struct check {
  unicon_options *options; /* those of our scope alone */
  unicon__params params;
  const int64_t *groups;
  uint64_t seed;
  unicon__dataset all, half[2];
  unicon__grades grades;
  figures *out;
} check;

/* ---- spectrum ----------------------------------------------------------------------------- */

typedef struct spectrum {
  unicon__prepared prepared;
  unicon__moments moments;
  unicon__whitening metric[2];
  double *m; /* R_x^T C R_y */
} spectrum;

/* M of pairs whose rows are seen through the sources as they are; the maps centre them. */
static unicon_status whitened(unicon_ctx *ctx, const unicon__batch *set, spectrum *s) {
  const int64_t p[2] = {s->moments.p[0], s->moments.p[1]};
  const double *const mean[2] = {s->moments.mean[0], s->moments.mean[1]};
  unicon__stats stats;
  const unsigned holds = UNICON__STATS_CROSS | (s->prepared.stats.holds & UNICON__STATS_UNPAIRED);
  UNICON_TRY(unicon__stats_open(ctx, &ctx->arena, set, p, holds, &stats));
  UNICON_TRY(unicon__stats_add(ctx, set, 1, &stats));
  UNICON_TRY(unicon__stats_cross(ctx, &stats, mean, s->m));
  unicon__blas_begin();
  const unicon_status status = unicon__closed_matrix(ctx, s->metric, s->m);
  unicon__blas_end();
  return status;
}

/* The largest singular value of M, by Lanczos on M^T M. */
static unicon_status largest_value(unicon_ctx *ctx, const spectrum *s, double *out) {
  const int64_t p_x = s->moments.p[0], p_y = s->moments.p[1];
  unicon__block *frame = unicon__frame_open(ctx);
  double *square, top = 0;
  UNICON_NEW(ctx, square, p_y * p_y);
  unicon__blas_begin();
  unicon__tiled_dgemm(ctx, true, false, p_y, p_y, p_x, 1, s->m, p_y, s->m, p_y, 0, square, p_y);
  const unicon_status status = unicon__largest_eigenvalue(ctx, square, p_y, &top);
  unicon__blas_end();
  UNICON_TRY(status);
  *out = top > 0 ? sqrt(top) : 0;
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* The largest singular value that shuffled pairs give. Single rows are moved on x and y in turn. */
static unicon_status shuffled_noise(unicon_ctx *ctx, check *c, spectrum *s) {
  unicon__blocks blocks[2];
  for (int k = 0; k < 2; k++)
    UNICON_TRY(unicon__blocks_open(ctx, &c->all.whole, c->groups, k == 0, &blocks[k]));
  for (uint32_t k = 0; k < SHUFFLED_SPECTRA; k++) {
    unicon__block *frame = unicon__frame_open(ctx);
    const int moved = blocks[0].single ? k % 2 : 0;
    unicon__batch set = unicon__prepared_set(&s->prepared);
    double value = 0;
    UNICON_TRY(unicon__source_shuffle(ctx, &s->prepared.side[moved].source, &blocks[moved], c->seed,
                                      ROUND_SPECTRA + k, moved == 0 ? &set.x : &set.y));
    UNICON_TRY(whitened(ctx, &set, s));
    UNICON_TRY(largest_value(ctx, s, &value));
    if (value > c->out->noise) c->out->noise = value;
    unicon__frame_close(ctx, frame);
  }
  return UNICON_OK;
}

static unicon_status run_spectrum(unicon_ctx *ctx, check *c, spectrum *s) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  figures *out = c->out;
  unicon__prepare_plan plan = unicon__params_prepare(&c->params, &c->all.whole);
  unicon__closed closed;
  plan.cache = true;
  UNICON_TRY(unicon__prepare(ctx, &plan, &s->prepared));
  UNICON_TRY(
      unicon__stats_finish(ctx, &s->prepared.stats, NULL, c->params.centring, all, &s->moments));
  UNICON_TRY(unicon__moments_check(ctx, &s->prepared, &s->moments));
  int64_t most = unicon__most_rank(&c->params, &s->prepared);
  if (most > MOST_RANK) most = MOST_RANK;
  const unicon__closed_params params = unicon__params_closed(&c->params, most);
  UNICON_TRY(unicon__closed_form(ctx, &s->moments, &params, &closed));
  memcpy(s->metric, closed.metric, sizeof s->metric);
  UNICON_TRY(unicon__prepared_centre(ctx, &s->prepared, &s->moments));
  UNICON_NEW(ctx, s->m, s->moments.p[0] * s->moments.p[1]);
  UNICON_TRY(shuffled_noise(ctx, c, s));
  const unicon__state *state = &closed.state;
  out->spectrum_count = state->r < SPECTRUM ? state->r : SPECTRUM;
  memcpy(out->spectrum, state->s, (size_t)out->spectrum_count * sizeof *out->spectrum);
  while (out->rank < state->r && state->s[out->rank] > out->noise) out->rank++;
  return UNICON_OK;
}

static unicon_status study_spectrum(unicon_ctx *ctx, check *c) {
  unicon__block *frame = unicon__frame_open(ctx);
  spectrum s = {.m = NULL};
  const unicon_status status = run_spectrum(ctx, c, &s);
  unicon__prepared_close(&s.prepared);
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- halves ------------------------------------------------------------------------------- */

/* Fits one half and tries it on the other; the test needs the pairs of the other half to be unseen,
 * and two tests would not be independent, so it is made once. */
static unicon_status try_half(unicon_ctx *ctx, check *c, int fitted) {
  unicon__block *frame = unicon__frame_open(ctx);
  const unicon__batch *held = &c->half[1 - fitted].whole;
  const unicon__part_job job = {
      .params = &c->params, .data = c->half[fitted].whole, .arena = &ctx->arena};
  unicon__part part = {0};
  unicon__part_log log;
  unicon__shuffle_test test;
  float *z[2];
  UNICON_TRY(unicon__part_fit(ctx, &job, &part, &log));
  for (int s = 0; s < 2; s++) {
    unicon__source source = s == 0 ? held->x : held->y;
    source.map = &part.map[s];
    UNICON_NEW(ctx, z[s], source.count * part.rank);
    UNICON_TRY(unicon__project(ctx, &source, part.weight[s], part.rank, 0, source.count, true,
                               false, z[s], part.rank));
  }
  if (fitted == 0) {
    UNICON_TRY(unicon__shuffle_pairs(ctx, held, c->groups, z[0], z[1], part.rank, c->seed, &test));
    c->out->cosine = test.cosine;
    c->out->chance = test.chance;
    c->out->p_value = test.p;
  }
  UNICON_TRY(unicon__grade(ctx, held, z[0], z[1], part.rank, c->seed, &c->grades));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static unicon_status study_halves(unicon_ctx *ctx, check *c) {
  figures *out = c->out;
  c->grades.room =
      unicon__grade_count(c->half[0].whole.pairs) + unicon__grade_count(c->half[1].whole.pairs);
  UNICON_NEW(ctx, c->grades.entry, c->grades.room);
  for (int fitted = 0; fitted < 2; fitted++) UNICON_TRY(try_half(ctx, c, fitted));
  unicon__grades_sort(&c->grades);
  out->graded = c->grades.count;
  for (int64_t k = 0; k < c->grades.count; k++) {
    out->closer += c->grades.entry[k].closer / (double)c->grades.count;
    out->doubtful += c->grades.entry[k].closer < 0.5;
  }
  return UNICON_OK;
}

/* ---- unicon_check ------------------------------------------------------------------------- */

/* Options of our scope; everything else is as in preset fast. */
static unicon_status take_options(unicon_ctx *ctx, const unicon_options *from, check *c) {
  UNICON_TRY(unicon__options_create(ctx, &c->options));
  UNICON_TRY(unicon__options_choose(ctx, c->options, UNICON__PRESET, "fast"));
  for (int id = 0; id < UNICON__OPTION_COUNT; id++)
    if ((unicon__option_row(id)->scope & UNICON_SCOPE_CHECK) && unicon__given(from, id))
      UNICON_TRY(unicon__options_choose(ctx, c->options, id, unicon__text(from, id)));
  c->seed = (uint64_t)unicon__integer(c->options, UNICON__SEED);
  return UNICON_OK;
}

static unicon_status run_check(unicon_ctx *ctx, check *c, const unicon_data *given,
                               const unicon_options *options) {
  unicon_data data;
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  c->groups = data.groups;
  UNICON_TRY(take_options(ctx, options, c));
  UNICON_TRY(unicon__dataset_open(ctx, &data, c->options, false, &c->all));
  const unicon__batch *all = &c->all.whole;
  if (all->pairs->self_x)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "labels of one set cannot be checked: whatever its rows are, they find "
                        "their like on the other side, which is themselves");
  if (all->x.count < FEWEST_ROWS || all->y.count < FEWEST_ROWS)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "there are %lld rows of x and %lld of y; a check needs at least %d of each",
                        (long long)all->x.count, (long long)all->y.count, FEWEST_ROWS);
  *c->out = (figures){
      .pairs = all->pairs->positive.count, .rows_x = all->x.count, .rows_y = all->y.count};
  UNICON_TRY(
      unicon__dataset_split(ctx, &c->all, c->groups, 0.5, c->seed, &c->half[0], &c->half[1], NULL));
  unicon__params_from(c->options, (const int64_t[2]){all->x.count, all->y.count}, &c->params);
  UNICON_TRY(study_spectrum(ctx, c));
  UNICON_TRY(study_halves(ctx, c));
  return unicon__poll(ctx);
}

/* A test by shuffles ends at one over their number. */
static void say_p(double p, char out[32]) {
  snprintf(out, 32, p < 0.001 ? "p < 0.001" : "p = %.3g", p);
}

/* A sentence for someone who does not know the numbers. */
static void verdict(const figures *f, char *out, size_t size) {
  const double share = 100 * f->closer;
  char rank[64] = "", p[32];
  say_p(f->p_value, p);
  if (f->rank > 0)
    snprintf(rank, sizeof rank, " At least %lld dimension%s it.", (long long)f->rank,
             f->rank == 1 ? " carries" : "s carry");
  if (f->p_value >= 0.05)
    snprintf(
        out, size,
        "No alignment found: pairs that the fit has not seen are no closer than shuffled ones "
        "(%s).%s Are the rows of both sides in the same order, not shifted by a row? Are the "
        "pairs right?",
        p, f->rank > 0 ? " The correlation in the pairs that the fit has seen may be chance." : "");
  else if (f->closer < 0.6)
    snprintf(out, size,
             "A weak alignment: it is there (%s), but a partner is closer than only %.0f %% "
             "of the other rows. More pairs or a kernel may help.",
             p, share);
  else
    snprintf(out, size,
             "%s: in new pairs a partner is closer than %.1f %% of the other rows (%s).%s",
             f->closer < 0.9 ? "There is something to align" : "The two sides align well", share, p,
             rank);
}

/* The `count` worst, a list for each column. */
static unicon_status report_suspects(unicon_ctx *ctx, const unicon__suspect *worst, int64_t count,
                                     unicon_result *r) {
  int64_t *row[2];
  double *value[2];
  for (int k = 0; k < 2; k++) {
    UNICON_NEW(ctx, row[k], count);
    UNICON_NEW(ctx, value[k], count);
  }
  for (int64_t i = 0; i < count; i++) {
    row[0][i] = worst[i].x;
    row[1][i] = worst[i].y;
    value[0][i] = worst[i].cosine;
    value[1][i] = worst[i].closer;
  }
  unicon__result_integers(ctx, r, "suspects.x", row[0], count, 0);
  unicon__result_integers(ctx, r, "suspects.y", row[1], count, 0);
  unicon__result_reals(ctx, r, "suspects.cosine", value[0], count, 0);
  unicon__result_reals(ctx, r, "suspects.closer", value[1], count, 0);
  return UNICON_OK;
}

static unicon_status report(unicon_ctx *ctx, const check *c, int64_t room, unicon_result **out) {
  const figures *f = c->out;
  char text[400];
  unicon_result *r = unicon__result_new(ctx);
  verdict(f, text, sizeof text);
  unicon__result_text(ctx, r, "verdict", text);
  unicon__result_integer(ctx, r, "pairs", f->pairs);
  unicon__result_integer(ctx, r, "rows_x", f->rows_x);
  unicon__result_integer(ctx, r, "rows_y", f->rows_y);
  unicon__result_real(ctx, r, "p_value", f->p_value);
  unicon__result_real(ctx, r, "cosine", f->cosine);
  unicon__result_real(ctx, r, "chance", f->chance);
  unicon__result_real(ctx, r, "closer", f->closer);
  unicon__result_integer(ctx, r, "graded", f->graded);
  unicon__result_integer(ctx, r, "doubtful", f->doubtful);
  unicon__result_integer(ctx, r, "rank", f->rank);
  unicon__result_real(ctx, r, "noise", f->noise);
  unicon__result_reals(ctx, r, "spectrum", f->spectrum, f->spectrum_count, 0);
  const unicon_status status =
      report_suspects(ctx, c->grades.entry, room < c->grades.count ? room : c->grades.count, r);
  if (status == UNICON_OK) return unicon__result_done(r, out);
  unicon_result_destroy(r);
  return status;
}

unicon_status unicon_check(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                           int64_t suspects, unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  figures f;
  check c = {.out = &f};
  unicon_status status = out && suspects >= 0
                             ? run_check(ctx, &c, data, options)
                             : unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                                            "check needs where to put the result, and how many "
                                            "suspects to list, 0 or more");
  if (status == UNICON_OK) status = report(ctx, &c, suspects, out);
  unicon__dataset_close(&c.half[1]);
  unicon__dataset_close(&c.half[0]);
  unicon__dataset_close(&c.all);
  unicon_options_destroy(c.options);
  return unicon__leave(ctx, status);
}
