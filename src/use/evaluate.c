/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_evaluate, unicon_ranks, unicon_hubs: both sides embedded, both directions ranked, with
 * balance and without. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/together.h"
#include "io/object.h"
#include "io/result.h"
#include "model/embed.h"
#include "score/retrieval.h"
#include "base/options.h"
#include "linalg/vec.h"
#include "unicon/tools.h"

/* Both sides embedded, with the pairs between them. Rows have one column more than the space where
 * scores are balanced: 1 in a query, minus the bias in a candidate. */
typedef struct scene {
  const unicon_pairs *pairs;
  unicon__lens lens[2];
  float *z[2];
  float *bias[2]; /* NULL: scores of candidates of this side are not balanced */
  int64_t width;
} scene;

static unicon_status embed_side(unicon_ctx *ctx, scene *s, int side) {
  const unicon__lens *lens = &s->lens[side];
  const int64_t n = lens->count;
  UNICON_NEW(ctx, s->z[side], n * s->width);
  UNICON_TRY(unicon__lens_rows(ctx, lens, 0, n, true, s->z[side], s->width));
  if (!lens->balance) return UNICON_OK;
  UNICON_NEW(ctx, s->bias[side], n);
  return unicon__bias(ctx, lens->balance, lens->side, s->z[side], n, s->width, s->bias[side], 1);
}

static unicon_status check_pairs(unicon_ctx *ctx, const unicon_pairs *pairs,
                                 const unicon__lens lens[2]) {
  if (pairs->n_x == lens[0].count && pairs->n_y == lens[1].count) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_SHAPE,
                      "the pairs are for %lld by %lld rows, but there are %lld and %lld",
                      (long long)pairs->n_x, (long long)pairs->n_y, (long long)lens[0].count,
                      (long long)lens[1].count);
}

static unicon_status open_scene(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                const unicon_pairs *pairs, scene *s) {
  unicon__meeting meeting;
  *s = (scene){.pairs = pairs};
  UNICON_TRY(unicon__lens_open(ctx, x, &s->lens[0]));
  UNICON_TRY(unicon__lens_open(ctx, y, &s->lens[1]));
  if (s->lens[0].ready || s->lens[1].ready)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "both directions are evaluated, so rows must be vectors of the shared "
                        "space, not of form query or index");
  UNICON_TRY(unicon__meet(ctx, &s->lens[0], &s->lens[1], &meeting));
  UNICON_TRY(check_pairs(ctx, pairs, s->lens));
  s->width = s->lens[0].r + (s->lens[0].balance || s->lens[1].balance);
  UNICON_TRY(embed_side(ctx, s, 0));
  return embed_side(ctx, s, 1);
}

/* The last column of a side: 1 for queries, minus the bias (or 0) for candidates. */
static void set_column(scene *s, int side, bool query) {
  const int64_t n = s->lens[side].count, r = s->lens[side].r;
  for (int64_t i = 0; s->width > r && i < n; i++)
    s->z[side][i * s->width + r] = query ? 1 : s->bias[side] ? -s->bias[side][i] : 0;
}

/* What is wanted of the two directions, x to y and y to x; NULL: not that. */
typedef struct wanted {
  const unicon_options *options;
  unicon_result *result;
  int64_t *rank[2];
  int64_t *found[2], *plain[2];
  int64_t rows[2]; /* given, before any was dropped */
} wanted;

/* Metrics of a direction and how often its candidates were found, balanced and plain. */
typedef struct figures {
  unicon__metrics metrics[2];
  int64_t *found[2];
  double *rank;
} figures;

/* Direction 0 has rows of x as queries. Plain figures are those of balanced scores where these are
 * not balanced, or where they are not wanted. */
static unicon_status rank_direction(unicon_ctx *ctx, scene *s, const wanted *w, int direction,
                                    figures *f) {
  const bool balanced = s->bias[1 - direction] && (w->result || w->plain[direction]);
  const int64_t candidates = s->lens[1 - direction].count;
  set_column(s, direction, true);
  set_column(s, 1 - direction, false);
  const unicon__retrieval of = {
      .query = s->z[direction],
      .candidate = s->z[1 - direction],
      .width = s->width,
      .pairs = s->pairs,
      .from_x = direction == 0,
      .rank = f->rank,
      .found = f->found[0],
      .plain = balanced ? &f->metrics[1] : NULL,
      .plain_found = balanced ? f->found[1] : NULL,
      .intervals = unicon__is(w->options, UNICON__CI, "on"),
      .seed = (uint64_t)unicon__integer(w->options, UNICON__SEED),
  };
  UNICON_TRY(unicon__retrieval_of(ctx, &of, &f->metrics[0]));
  if (balanced) return UNICON_OK;
  f->metrics[1] = f->metrics[0];
  memcpy(f->found[1], f->found[0], (size_t)candidates * sizeof *f->found[0]);
  return UNICON_OK;
}

/* How unlike the queries are to the bank that balances them: the squared distance of the two means
 * over the spread of the bank, less what samples of these sizes show by chance. */
static unicon_status warn_unlike(unicon_ctx *ctx, const scene *s, int direction) {
  const unicon_balance *balance = s->lens[1 - direction].balance;
  const int64_t n = s->lens[direction].count, r = s->lens[direction].r;
  if (!balance || balance->how.kind == UNICON__BALANCE_QUADRATIC || !ctx->log) return UNICON_OK;
  const unicon__bank *bank = &balance->bank[1 - s->lens[1 - direction].side];
  double *gap, shift = 0, square = 0;
  UNICON_NEW(ctx, gap, 2 * r);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < r; k++) gap[k] += (double)s->z[direction][i * s->width + k] / (double)n;
  for (int64_t i = 0; i < bank->count; i++)
    for (int64_t k = 0; k < r; k++)
      gap[r + k] += (double)bank->row[i * r + k] / (double)bank->count;
  for (int64_t k = 0; k < r; k++) {
    shift += (gap[k] - gap[r + k]) * (gap[k] - gap[r + k]);
    square += gap[r + k] * gap[r + k];
  }
  unicon__drop(ctx, gap);
  const double spread = 1 - square, chance = spread / (double)n + spread / (double)bank->count;
  if (shift > 0.1 * spread + 3 * chance)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "%s looks unlike the rows that balance its scores (their means are %.2f of the "
                "spread apart): new banks from such rows, or balance off, may do better",
                s->lens[direction].rows->name, sqrt(shift / spread));
  return UNICON_OK;
}

/* ---- what was found ----------------------------------------------------------------------- */

/* "x_to_y", PART, "." and NAME in one. */
static const char *name_of(char *out, int direction, const char *part, const char *name) {
  snprintf(out, UNICON__RESULT_NAME, "%s%s.%s", direction == 0 ? "x_to_y" : "y_to_x", part, name);
  return out;
}

static void note_metrics(unicon_ctx *ctx, unicon_result *r, int direction, const char *part,
                         const double *value) {
  char name[UNICON__RESULT_NAME];
  for (int m = 0; m < UNICON__METRIC_COUNT; m++)
    unicon__result_real(ctx, r, name_of(name, direction, part, unicon__metric_name[m]), value[m]);
}

static void note_direction(unicon_ctx *ctx, unicon_result *r, int direction, const figures *f) {
  static const char *const skewness[2] = {"skewness", "plain_skewness"};
  static const char *const never_found[2] = {"never_found", "plain_never_found"};
  char name[UNICON__RESULT_NAME];
  const unicon__metrics *m = &f->metrics[0];
  unicon__result_integer(ctx, r, name_of(name, direction, "", "queries"), m->queries);
  unicon__result_integer(ctx, r, name_of(name, direction, "", "candidates"), m->candidates);
  note_metrics(ctx, r, direction, "", m->value);
  note_metrics(ctx, r, direction, ".chance", m->chance);
  note_metrics(ctx, r, direction, ".plain", f->metrics[1].value);
  for (int k = 0; k < 2; k++) {
    double skew, never;
    unicon__hubness(f->found[k], m->candidates, &skew, &never);
    unicon__result_real(ctx, r, name_of(name, direction, ".hubs", skewness[k]), skew);
    unicon__result_real(ctx, r, name_of(name, direction, ".hubs", never_found[k]), never);
  }
  for (int k = 0; k < UNICON__METRIC_COUNT; k++)
    if (isfinite(m->low[k]) && isfinite(m->high[k]))
      unicon__result_reals(ctx, r, name_of(name, direction, ".ci", unicon__metric_name[k]),
                           (double[]){m->low[k], m->high[k]}, 2, 0);
}

static void note_scene(unicon_ctx *ctx, const wanted *w, const scene *s) {
  const unicon_balance *balance = s->lens[1].balance ? s->lens[1].balance : s->lens[0].balance;
  char text[UNICON__BALANCING_TEXT] = "off";
  if (balance) unicon__balancing_print(balance->how, text);
  unicon__result_text(ctx, w->result, "balance", text);
  unicon__result_integer(ctx, w->result, "bank_x", unicon_balance_rows(balance, UNICON_X));
  unicon__result_integer(ctx, w->result, "bank_y", unicon_balance_rows(balance, UNICON_Y));
  unicon__result_integer(ctx, w->result, "dropped.x", w->rows[0] - s->lens[0].count);
  unicon__result_integer(ctx, w->result, "dropped.y", w->rows[1] - s->lens[1].count);
}

static unicon_status run_direction(unicon_ctx *ctx, scene *s, const wanted *w, int direction) {
  const int64_t queries = s->lens[direction].count, candidates = s->lens[1 - direction].count;
  const size_t bytes = (size_t)candidates * sizeof(int64_t);
  unicon__block *frame = unicon__frame_open(ctx);
  figures f;
  UNICON_NEW(ctx, f.rank, queries);
  for (int k = 0; k < 2; k++) UNICON_NEW(ctx, f.found[k], candidates);
  UNICON_TRY(rank_direction(ctx, s, w, direction, &f));
  for (int64_t i = 0; w->rank[direction] && i < queries; i++)
    w->rank[direction][i] = (int64_t)f.rank[i];
  if (w->found[direction]) memcpy(w->found[direction], f.found[0], bytes);
  if (w->plain[direction]) memcpy(w->plain[direction], f.found[1], bytes);
  if (w->result) note_direction(ctx, w->result, direction, &f);
  unicon__frame_close(ctx, frame);
  return warn_unlike(ctx, s, direction);
}

static unicon_status run_both(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                              const unicon_pairs *pairs, const wanted *w) {
  scene s;
  int stage = unicon__stage_begin(ctx, NULL, 0.3);
  UNICON_TRY(open_scene(ctx, x, y, pairs, &s));
  unicon__stage_end(ctx, stage);
  if (w->result) unicon__result_integer(ctx, w->result, "pairs", pairs->positive.count);
  for (int direction = 0; direction < 2; direction++) {
    stage = unicon__stage_begin(ctx, NULL, 0.35);
    if (w->result || w->rank[direction] || w->found[direction] || w->plain[direction])
      UNICON_TRY(run_direction(ctx, &s, w, direction));
    unicon__stage_end(ctx, stage);
  }
  if (w->result) note_scene(ctx, w, &s);
  return UNICON_OK;
}

static int64_t noted_count(const unicon_model *model, const char *key) {
  const char *text = unicon_model_meta(model, key);
  return text ? strtoll(text, NULL, 10) : -1;
}

/* Says so when the rows are those that the model was fitted on. They are read for it only where
 * their numbers agree. */
static unicon_status warn_training_rows(unicon_ctx *ctx, const unicon_view *x,
                                        const unicon_view *y) {
  const unicon_model *model = x->model;
  const char *noted = model ? unicon_model_meta(model, "input_hash") : NULL;
  if ((!ctx->log && !unicon__together(ctx)) || !noted || y->model != model || x->side != UNICON_X ||
      y->side != UNICON_Y || noted_count(model, "n_x") != x->rows->count ||
      noted_count(model, "n_y") != y->rows->count)
    return UNICON_OK;
  uint64_t hash = 0;
  const int stage = ctx->progress.depth;
  const unicon_rows *rows[2] = {x->rows, y->rows};
  for (int s = 0; s < 2; s++) {
    const int64_t *keep;
    int64_t count;
    const unicon_status status =
        unicon__usable_rows(ctx, rows[s], UNICON__ROW_FINITE, false, &keep, &count, &hash);
    if (status == UNICON_ERR_DATA) { /* whoever uses the rows will say so */
      unicon__stage_end(ctx, stage);
      unicon__clear_error(ctx);
      return UNICON_OK;
    }
    UNICON_TRY(status);
  }
  if (strtoull(noted, NULL, 16) == hash)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the model was fitted on these rows: the result says nothing about new ones");
  return UNICON_OK;
}

/* Both views without the rows that cannot be used, and the pairs among the others. */
static unicon_status run_usable(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                const unicon_pairs *pairs, const wanted *w) {
  unicon__lens lens[2];
  const int64_t *keep[2];
  int64_t count[2];
  unicon_rows *rows[2] = {NULL, NULL};
  unicon_pairs *among = NULL;
  unicon_view view[2] = {*x, *y};
  for (int s = 0; s < 2; s++) UNICON_TRY(unicon__lens_open(ctx, &view[s], &lens[s]));
  UNICON_TRY(check_pairs(ctx, pairs, lens));
  const int stage = unicon__stage_begin(ctx, NULL, 0.02);
  for (int s = 0; s < 2; s++) UNICON_TRY(unicon__lens_usable(ctx, &lens[s], &keep[s], &count[s]));
  unicon__stage_end(ctx, stage);
  unicon_status status =
      unicon__pairs_subset(ctx, pairs, keep[0], count[0], keep[1], count[1], &among);
  for (int s = 0; s < 2 && status == UNICON_OK; s++) {
    status = unicon__rows_select(ctx, lens[s].rows, keep[s], count[s], &rows[s]);
    view[s].rows = rows[s];
  }
  if (status == UNICON_OK) status = run_both(ctx, &view[0], &view[1], among, w);
  unicon_pairs_destroy(among);
  for (int s = 0; s < 2; s++) unicon_rows_close(rows[s]);
  return status;
}

/* Without pairs, row i belongs to row i. */
static unicon_status evaluate(unicon_ctx *ctx, const unicon_view *given_x,
                              const unicon_view *given_y, const unicon_pairs *pairs, wanted *w) {
  unicon_pairs *own = NULL;
  unicon_view view[2];
  const unicon_view *x = &view[0], *y = &view[1];
  UNICON_TRY(unicon__view_take(ctx, given_x, &view[0]));
  UNICON_TRY(unicon__view_take(ctx, given_y, &view[1]));
  for (int s = 0; s < 2; s++) w->rows[s] = view[s].rows->count;
  const int stage = unicon__stage_begin(ctx, NULL, 0.02);
  unicon_status status = warn_training_rows(ctx, x, y);
  if (status == UNICON_OK) unicon__stage_end(ctx, stage);
  if (status == UNICON_OK && !pairs)
    status = unicon__pairs_identity(ctx, x->rows->count, y->rows->count, &own);
  const bool drop = unicon__is(w->options, UNICON__BAD_ROWS, "drop");
  if (status == UNICON_OK)
    status = (drop ? run_usable : run_both)(ctx, x, y, pairs ? pairs : own, w);
  unicon_pairs_destroy(own);
  return status;
}

static unicon_status evaluate_into(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                   const unicon_pairs *pairs, const unicon_options *options,
                                   unicon_result **out) {
  UNICON_NEED(ctx, out);
  wanted w = {.options = options, .result = unicon__result_new(ctx)};
  if (!w.result) return UNICON_ERR_MEMORY;
  const unicon_status status = evaluate(ctx, x, y, pairs, &w);
  if (status == UNICON_OK) return unicon__result_done(w.result, out);
  unicon_result_destroy(w.result);
  return status;
}

unicon_status unicon_evaluate(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                              const unicon_pairs *pairs, const unicon_options *options,
                              unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  unicon_status status = unicon__together_begin(ctx, options, "eval of %lld and %lld rows",
                                                x && x->rows ? (long long)x->rows->count : 0,
                                                y && y->rows ? (long long)y->rows->count : 0);
  if (status == UNICON_OK) status = evaluate_into(ctx, x, y, pairs, options, out);
  status = unicon__together_end(ctx, status);
  if (status != UNICON_OK && out) { /* made here, but not elsewhere */
    unicon_result_destroy(*out);
    *out = NULL;
  }
  return unicon__leave(ctx, status);
}

unicon_status unicon_ranks(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                           const unicon_pairs *pairs, int64_t *to_y, int64_t *to_x) {
  UNICON_TRY(unicon__enter(ctx));
  wanted w = {.rank = {to_y, to_x}};
  return unicon__leave(ctx, evaluate(ctx, x, y, pairs, &w));
}

unicon_status unicon_hubs(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                          const unicon_pairs *pairs, int64_t *found[2], int64_t *plain[2]) {
  UNICON_TRY(unicon__enter(ctx));
  wanted w = {.options = NULL};
  for (int k = 0; k < 2; k++) {
    w.found[k] = found ? found[k] : NULL;
    w.plain[k] = plain ? plain[k] : NULL;
  }
  return unicon__leave(ctx, evaluate(ctx, x, y, pairs, &w));
}
