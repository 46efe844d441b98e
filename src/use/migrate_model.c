/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a migration: the map of the way, what rows looked like, curves of the scores. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/vec.h"
#include "use/migrate.h"
#include "use/search.h"

enum { SCORE_QUERIES = 1000, SCORE_NEAR = 20, SCORE_PICKS = 40 };

/* Scores as deployed beside those of the old and the new model: the nearest of a query, and as many
 * drawn at random. */
typedef struct scores {
  int64_t count, tested; /* the first `tested` are of queries kept apart */
  float *own, *of[2];
} scores;

static unicon_status open_scores(unicon_ctx *ctx, int64_t queries, scores *s) {
  UNICON_NEW(ctx, s->own, queries * SCORE_PICKS);
  UNICON_NEW(ctx, s->of[0], queries * SCORE_PICKS);
  UNICON_NEW(ctx, s->of[1], queries * SCORE_PICKS);
  return UNICON_OK;
}

static unicon_status collect(unicon_ctx *ctx, const unicon__move *move, const unicon__fitted *f,
                             scores *s) {
  const unicon__vec *vec = unicon__vec_best();
  const int64_t queries = move->queries < SCORE_QUERIES ? move->queries : SCORE_QUERIES;
  const bool rewrite = f->trial.way == UNICON__REWRITE;
  const int64_t to = move->d[rewrite ? UNICON__NEW : UNICON__OLD];
  const float *query = rewrite ? move->query[UNICON__NEW] : f->left;
  const float *item = rewrite ? f->left : move->row[UNICON__OLD];
  float *mapped = NULL;
  if (!rewrite && !move->jury.self) {
    UNICON_NEW(ctx, mapped, queries * to);
    UNICON_TRY(unicon__regress_apply(ctx, &f->trial.recipe, &f->map, move->d[UNICON__NEW], to,
                                     move->query[UNICON__NEW], queries, mapped));
    query = mapped;
  }
  UNICON_TRY(open_scores(ctx, queries, s));
  for (int64_t q = 0; q < queries; q++) {
    if (q == queries / 2) s->tested = s->count;
    for (int k = 0; k < SCORE_PICKS; k++) {
      const int64_t id = k < SCORE_NEAR ? f->list[q * UNICON__CASCADE + k]
                                        : unicon__below(0, UNICON__STREAM_MIGRATE, (uint64_t)q,
                                                        (uint32_t)k, move->items);
      if (id < 0 || (move->jury.self && id == q)) continue;
      s->own[s->count] = (float)vec->dot(query + q * to, item + id * to, to);
      for (int m = 0; m < 2; m++)
        s->of[m][s->count] = move->query[m]
                                 ? (float)vec->dot(move->query[m] + q * move->d[m],
                                                   move->row[m] + id * move->d[m], move->d[m])
                                 : 0;
      s->count++;
    }
  }
  return UNICON_OK;
}

/* The same for a shared space: held-out rows are gone by now, so a fit on three quarters of the
 * pairs stands in for the one on all, and the rest of the rows are asked and searched. */
static unicon_status collect_shared(unicon_ctx *ctx, const unicon__outcome *o,
                                    const unicon_model *model, scores *s) {
  const unicon__move *move = o->move;
  const unicon__vec *vec = unicon__vec_best();
  const int64_t first = o->shared.pairs, items = o->shared.items;
  unicon__segment segment[2];
  unicon_rows rows[2];
  int64_t *ids;
  float *near;
  for (int m = 0; m < 2; m++)
    rows[m] = unicon__rows_over(m ? "new" : "old", move->row[m] + first * move->d[m], items,
                                move->d[m], &segment[m]);
  const unicon_view base = {.rows = &rows[0], .model = model, .side = UNICON_X};
  const unicon_view query = {.rows = &rows[1], .model = model, .side = UNICON_Y};
  UNICON_NEW(ctx, ids, items * SCORE_PICKS);
  UNICON_NEW(ctx, near, items * SCORE_PICKS);
  UNICON_TRY(unicon__search(ctx, &query, &base, SCORE_PICKS, ids, near));
  UNICON_TRY(open_scores(ctx, items, s));
  for (int64_t q = 0; q < items; q++) {
    if (q == items / 2) s->tested = s->count;
    for (int k = 0; k < SCORE_PICKS; k++) {
      const int64_t id = ids[q * SCORE_PICKS + k];
      if (id < 0 || id == q) continue;
      s->own[s->count] = near[q * SCORE_PICKS + k];
      for (int m = 0; m < 2; m++)
        s->of[m][s->count] = (float)vec->dot(move->row[m] + (first + q) * move->d[m],
                                             move->row[m] + (first + id) * move->d[m], move->d[m]);
      s->count++;
    }
  }
  return UNICON_OK;
}

/* The curves, and how far scores are off before and after those of one half on the other. */
static unicon_status calibrate(unicon_ctx *ctx, const scores *s, unicon__outcome *o,
                               unicon_model *model) {
  for (int m = 0; m < 2; m++) {
    unicon__curve half;
    if (!o->move->query[m] || s->tested == 0) continue;
    UNICON_TRY(unicon__isotonic(ctx, &ctx->arena, s->own + s->tested, s->of[m] + s->tested,
                                s->count - s->tested, &half));
    for (int64_t k = 0; k < s->tested; k++) {
      const double own = (double)s->own[k], want = (double)s->of[m][k];
      o->off_before[m] += fabs(own - want) / (double)s->tested;
      o->off_after[m] += fabs(unicon__curve_at(&half, own) - want) / (double)s->tested;
    }
    UNICON_TRY(unicon__isotonic(ctx, &model->arena, s->own, s->of[m], s->count, &model->curve[m]));
  }
  return UNICON_OK;
}

static unicon_status copy_array(unicon_ctx *ctx, unicon__arena *arena, const float *from,
                                int64_t count, float **out) {
  *out = NULL;
  if (!from) return UNICON_OK;
  UNICON_ARENA_NEW(ctx, arena, *out, count);
  memcpy(*out, from, (size_t)count * sizeof *from);
  return UNICON_OK;
}

static int falling(const void *a, const void *b) {
  const float left = *(const float *)a, right = *(const float *)b;
  return (left < right) - (left > right);
}

/* One part: the map on the side that moves, nothing on the other. The spectrum of such a model is
 * how widely its vectors spread along each axis, largest first. */
static unicon_status build(unicon_ctx *ctx, const unicon__move *move, const unicon__fitted *f,
                           unicon_model *model) {
  const unicon__regress_data data = unicon__move_data(move, f->trial.way, move->n);
  const int from = f->trial.way == UNICON__REWRITE ? UNICON__OLD : UNICON__NEW;
  unicon__arena *arena = &model->arena;
  unicon__regression own = f->map;
  model->parts = 1;
  UNICON_ARENA_NEW(ctx, arena, model->part, 1);
  unicon__part *part = model->part;
  const int64_t p = own.points > 0 ? own.points : data.d;
  UNICON_TRY(copy_array(ctx, arena, f->map.base, own.points * data.d, &own.base));
  UNICON_TRY(copy_array(ctx, arena, f->map.mean, data.d, &own.mean));
  UNICON_TRY(copy_array(ctx, arena, f->map.weight, p * data.e, &part->weight[from]));
  UNICON_TRY(copy_array(ctx, arena, f->map.offset, data.e, &part->offset[from]));
  UNICON_TRY(unicon__regress_map(ctx, arena, &f->trial.recipe, &own, data.d, &part->map[from]));
  part->map[1 - from] = (unicon__map){.kind = UNICON__MAP_LINEAR,
                                      .in = data.e,
                                      .out = data.e,
                                      .normalize = true,
                                      .kernel = {.kind = UNICON__KERNEL_LINEAR, .width = 1}};
  model->rank = part->rank = data.e;
  part->share = 1;
  UNICON_ARENA_NEW(ctx, arena, model->spectrum, data.e);
  for (int64_t k = 0; k < data.e; k++) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < move->items; i++) {
      const double value = (double)f->left[i * data.e + k];
      sum += value;
      square += value * value;
    }
    const double mean = sum / (double)move->items;
    model->spectrum[k] = (float)sqrt(fmax(0, square / (double)move->items - mean * mean));
  }
  qsort(model->spectrum, (size_t)data.e, sizeof *model->spectrum, falling);
  return UNICON_OK;
}

/* Everything but what a fit has noted already. */
static unicon_status note_build(unicon_ctx *ctx, const unicon__move *move, const char *how,
                                unicon_model *model) {
  char hash[24];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)move->hash);
  UNICON_TRY(unicon__model_note_text(ctx, model, "format", "unicon"));
  UNICON_TRY(unicon__model_note_text(ctx, model, "format_version", "1"));
  UNICON_TRY(unicon__model_note_text(ctx, model, "library_version", unicon_version()));
  UNICON_TRY(unicon__model_note_text(ctx, model, "input_hash", hash));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_x", move->d[UNICON__OLD]));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_y", move->d[UNICON__NEW]));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "n_x", move->n));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "n_y", move->n));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "pairs", move->n));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "rank", model->rank));
  UNICON_TRY(unicon__model_note_text(ctx, model, "method", how));
  return unicon__model_note_maps(ctx, model);
}

/* What only models of a migration have. */
static unicon_status note_migration(unicon_ctx *ctx, const unicon__outcome *o,
                                    unicon_model *model) {
  static const char *const directions[UNICON__WAYS] = {"new-to-old", "old-to-new", "shared"};
  static const char *const keys[2][3] = {{"x.like.share", "x.like.length", "x.like.length_spread"},
                                         {"y.like.share", "y.like.length", "y.like.length_spread"}};
  UNICON_TRY(unicon__model_note_text(ctx, model, "direction", directions[o->way]));
  UNICON_TRY(unicon__model_note_text(ctx, model, "verdict", o->verdict));
  for (int s = 0; s < 2; s++) {
    const unicon__likeness *like = &o->move->like[s];
    const int64_t d = o->move->d[s];
    model->like[s] = *like;
    UNICON_TRY(copy_array(ctx, &model->arena, like->mean, d, &model->like[s].mean));
    UNICON_TRY(copy_array(ctx, &model->arena, like->axis, like->axes * d, &model->like[s].axis));
    UNICON_TRY(unicon__model_note_real(ctx, model, keys[s][0], 9, like->share));
    UNICON_TRY(unicon__model_note_real(ctx, model, keys[s][1], 9, like->length));
    UNICON_TRY(unicon__model_note_real(ctx, model, keys[s][2], 9, like->length_spread));
  }
  unicon__model_seal(model);
  return UNICON_OK;
}

static unicon_status fill(unicon_ctx *ctx, unicon__outcome *o, const unicon__fitted *f,
                          unicon_model *model) {
  char how[64];
  scores s = {0};
  if (o->way != UNICON__SHARED) {
    unicon__recipe_say(&f->trial.recipe, how, sizeof how);
    UNICON_TRY(build(ctx, o->move, f, model));
    UNICON_TRY(note_build(ctx, o->move, how, model));
    UNICON_TRY(collect(ctx, o->move, f, &s));
  } else {
    unicon_model *part = NULL;
    UNICON_TRY(unicon__shared_fit(ctx, o->move, o->shared.setting, o->shared.pairs, &part));
    const unicon_status status = collect_shared(ctx, o, part, &s);
    unicon_model_destroy(part);
    UNICON_TRY(status);
  }
  UNICON_TRY(calibrate(ctx, &s, o, model));
  return note_migration(ctx, o, model);
}

unicon_status unicon__outcome_model(unicon_ctx *ctx, unicon__outcome *o, const unicon__fitted *f,
                                    unicon_model **out) {
  unicon_model *model = NULL;
  if (o->way == UNICON__SHARED)
    UNICON_TRY(unicon__shared_fit(ctx, o->move, o->shared.setting, o->move->n, &model));
  else
    UNICON_TRY(unicon__model_create(ctx, &model));
  const unicon_status status = fill(ctx, o, f, model);
  if (status != UNICON_OK)
    unicon_model_destroy(model);
  else
    *out = model;
  return status;
}
