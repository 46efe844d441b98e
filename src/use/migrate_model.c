/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a migration: the map of the way, what rows looked like, curves of the scores. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/vec.h"
#include "model/embed.h"
#include "use/migrate.h"

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

/* One query and one item, by their places among rows of both models. */
static void add_score(const unicon__move *move, scores *s, double own, const float *const query[2],
                      int64_t q, const float *const item[2], int64_t id) {
  const unicon__vec *vec = unicon__vec_best();
  s->own[s->count] = (float)own;
  for (int m = 0; m < 2; m++)
    s->of[m][s->count] =
        query[m] ? (float)vec->dot(query[m] + q * move->d[m], item[m] + id * move->d[m], move->d[m])
                 : 0;
  s->count++;
}

/* Rows whose products are the scores, and the same rows as both models see them. */
typedef struct scene {
  const unicon__jury *jury;
  int64_t width;
  const float *query, *item, *query_of[2], *item_of[2];
} scene;

/* The nearest items of a query and as many others. Where `halve`, the scores of the first half of
 * the queries are kept apart: no query is on both sides. */
static unicon_status collect(unicon_ctx *ctx, const unicon__move *move, const scene *c,
                             int64_t queries, bool halve, scores *s) {
  const unicon__vec *vec = unicon__vec_best();
  const unicon__jury *jury = c->jury;
  int64_t *near;
  UNICON_NEW(ctx, near, jury->queries * SCORE_NEAR);
  UNICON_TRY(unicon__jury_find(ctx, jury, c->query, c->item, c->width, SCORE_NEAR, near));
  const int64_t count = queries < jury->queries ? queries : jury->queries;
  for (int64_t q = 0; q < count; q++) {
    if (halve && q == count / 2) s->tested = s->count;
    for (int k = 0; k < SCORE_PICKS; k++) {
      const int64_t id = k < SCORE_NEAR ? near[q * SCORE_NEAR + k]
                                        : unicon__below(0, UNICON__STREAM_MIGRATE, (uint64_t)q,
                                                        (uint32_t)k, jury->items);
      if (id < 0 || (jury->self && id == q)) continue;
      add_score(move, s, vec->dot(c->query + q * c->width, c->item + id * c->width, c->width),
                c->query_of, q, c->item_of, id);
    }
  }
  unicon__drop(ctx, near);
  return UNICON_OK;
}

/* As a rewrite is deployed, fold by fold; the first half of the folds is kept apart, or of the
 * queries where there is one fold. */
static unicon_status collect_rewrite(unicon_ctx *ctx, const unicon__outcome *o, scores *s) {
  const unicon__move *move = o->move;
  const unicon__panel *panel = &move->panel;
  const int64_t e = move->d[UNICON__NEW], each = SCORE_QUERIES / panel->folds;
  UNICON_TRY(open_scores(ctx, SCORE_QUERIES, s));
  for (int64_t f = 0; f < panel->folds; f++) {
    const int64_t first = unicon__panel_first(panel, f), asked = move->self ? first : 0;
    scene c = {.jury = &panel->jury[f],
               .width = e,
               .query = move->query[UNICON__NEW] + asked * e,
               .item = o->left + first * e};
    for (int m = 0; m < 2; m++) {
      c.query_of[m] = move->query[m] ? move->query[m] + asked * move->d[m] : NULL;
      c.item_of[m] = move->row[m] + first * move->d[m];
    }
    UNICON_TRY(collect(ctx, move, &c, each, panel->folds == 1, s));
    if (f < panel->folds / 2) s->tested = s->count;
  }
  return UNICON_OK;
}

/* A bridge and a shared space stand among held-out items, by maps of the other pairs. */
static unicon_status held_scene(unicon_ctx *ctx, const unicon__outcome *o, int64_t width,
                                const float *query, const float *item, scores *s) {
  const unicon__held *h = &o->held;
  const scene c = {.jury = &h->jury,
                   .width = width,
                   .query = query,
                   .item = item,
                   .query_of = {h->query[0], h->query[1]},
                   .item_of = {h->item[0], h->item[1]}};
  UNICON_TRY(open_scores(ctx, SCORE_QUERIES, s));
  return collect(ctx, o->move, &c, SCORE_QUERIES, true, s);
}

static unicon_status collect_bridge(unicon_ctx *ctx, const unicon__outcome *o, scores *s) {
  float *mapped;
  UNICON_TRY(unicon__held_map(ctx, o->move, &o->held, &o->contest.best[UNICON__BRIDGE], &mapped));
  return held_scene(ctx, o, o->move->d[UNICON__OLD], mapped, o->held.item[UNICON__OLD], s);
}

/* Rows of a shared space with their biases: queries end in 1, items in minus their bias. */
static unicon_status embed_held(unicon_ctx *ctx, const unicon__outcome *o,
                                const unicon_model *model, scores *s) {
  const unicon__held *h = &o->held;
  unicon__segment segment[2];
  const unicon_rows base = unicon__rows_over("old", h->item[UNICON__OLD], h->jury.items,
                                             o->move->d[UNICON__OLD], &segment[0]);
  const unicon_rows asks = unicon__rows_over("new", h->query[UNICON__NEW], h->jury.queries,
                                             o->move->d[UNICON__NEW], &segment[1]);
  const unicon_view of_base = UNICON_VIEW(.rows = &base, .model = model, .side = UNICON_X);
  const unicon_view of_query = UNICON_VIEW(.rows = &asks, .model = model, .side = UNICON_Y);
  unicon__lens items, queries;
  unicon__meeting meeting;
  float *q, *b;
  UNICON_TRY(unicon__lens_open(ctx, &of_query, &queries));
  UNICON_TRY(unicon__lens_open(ctx, &of_base, &items));
  UNICON_TRY(unicon__meet(ctx, &queries, &items, &meeting));
  UNICON_NEW(ctx, q, h->jury.queries * meeting.width);
  UNICON_NEW(ctx, b, h->jury.items * meeting.width);
  UNICON_TRY(unicon__meeting_queries(ctx, &meeting, 0, h->jury.queries, q));
  UNICON_TRY(unicon__meeting_candidates(ctx, &meeting, 0, h->jury.items, b));
  return held_scene(ctx, o, meeting.width, q, b, s);
}

static unicon_status collect_shared(unicon_ctx *ctx, const unicon__outcome *o, scores *s) {
  unicon_model *part = NULL;
  UNICON_TRY(unicon__shared_fit(ctx, o->move, o->setting, o->held.first, &part));
  const unicon_status status = embed_held(ctx, o, part, s);
  unicon_model_destroy(part);
  return status;
}

/* The curves, and how far scores are off before and after those of one half on the other. */
static unicon_status calibrate(unicon_ctx *ctx, const scores *s, unicon__outcome *o,
                               unicon_model *model) {
  o->off_known = s->tested > 0 && s->tested < s->count;
  for (int m = 0; m < 2; m++) {
    unicon__curve half = {0};
    if (!o->move->query[m] || s->count < 2) continue;
    if (o->off_known)
      UNICON_TRY(unicon__isotonic(ctx, &ctx->arena, s->own + s->tested, s->of[m] + s->tested,
                                  s->count - s->tested, &half));
    for (int64_t k = 0; o->off_known && k < s->tested; k++) {
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

/* The spectrum of such a model: how widely vectors of the space they move to spread along each of
 * its axes, largest first. */
static unicon_status spread(unicon_ctx *ctx, const float *y, int64_t n, int64_t e,
                            unicon_model *model) {
  UNICON_ARENA_NEW(ctx, &model->arena, model->spectrum, e);
  for (int64_t k = 0; k < e; k++) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
      sum += (double)y[i * e + k];
      square += (double)y[i * e + k] * (double)y[i * e + k];
    }
    const double mean = sum / (double)n;
    model->spectrum[k] = (float)sqrt(fmax(0, square / (double)n - mean * mean));
  }
  qsort(model->spectrum, (size_t)e, sizeof *model->spectrum, falling);
  return UNICON_OK;
}

/* One part: the map on the side that moves, nothing on the other. */
static unicon_status build(unicon_ctx *ctx, const unicon__move *move, const unicon__trial *trial,
                           const unicon__regression *map, unicon_model *model) {
  const unicon__regress_data data = unicon__move_data(move, trial->way, 0, move->n, move->items);
  const int from = trial->way == UNICON__REWRITE ? UNICON__OLD : UNICON__NEW;
  unicon__arena *arena = &model->arena;
  unicon__regression own = *map;
  model->parts = 1;
  UNICON_ARENA_NEW(ctx, arena, model->part, 1);
  unicon__part *part = model->part;
  const int64_t p = own.points > 0 ? own.points : data.d;
  UNICON_TRY(copy_array(ctx, arena, map->base, own.points * data.d, &own.base));
  UNICON_TRY(copy_array(ctx, arena, map->mean, data.d, &own.mean));
  UNICON_TRY(copy_array(ctx, arena, map->weight, p * data.e, &part->weight[from]));
  UNICON_TRY(copy_array(ctx, arena, map->offset, data.e, &part->offset[from]));
  UNICON_TRY(unicon__regress_map(ctx, arena, &trial->recipe, &own, data.d, &part->map[from]));
  part->map[1 - from] = (unicon__map){.kind = UNICON__MAP_LINEAR,
                                      .in = data.e,
                                      .out = data.e,
                                      .normalize = true,
                                      .kernel = {.kind = UNICON__KERNEL_LINEAR, .width = 1}};
  model->rank = part->rank = data.e;
  part->share = 1;
  return spread(ctx, data.y, move->n, data.e, model);
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

/* The map of a bridge on all pairs; that of a rewrite is there already. */
static unicon_status bridge_map(unicon_ctx *ctx, const unicon__outcome *o,
                                unicon__regression *map) {
  const unicon__regress_data data =
      unicon__move_data(o->move, UNICON__BRIDGE, 0, o->move->n, o->move->items);
  const unicon__recipe *recipe = &o->contest.best[UNICON__BRIDGE].recipe;
  unicon__regress *regress;
  UNICON_TRY(unicon__regress_open(ctx, &data, recipe, &regress));
  UNICON_TRY(unicon__regress_fit(ctx, regress, recipe->ridge, NULL, map));
  unicon__regress_close(ctx, regress);
  return UNICON_OK;
}

static unicon_status fill(unicon_ctx *ctx, unicon__outcome *o, unicon_model *model) {
  char how[64];
  scores s = {0};
  unicon__regression map = o->map;
  if (o->way == UNICON__SHARED) {
    UNICON_TRY(collect_shared(ctx, o, &s));
  } else {
    const unicon__trial *trial = &o->contest.best[o->way];
    if (o->way == UNICON__BRIDGE) UNICON_TRY(bridge_map(ctx, o, &map));
    unicon__recipe_say(&trial->recipe, how, sizeof how);
    UNICON_TRY(build(ctx, o->move, trial, &map, model));
    UNICON_TRY(note_build(ctx, o->move, how, model));
    UNICON_TRY(o->way == UNICON__BRIDGE ? collect_bridge(ctx, o, &s) : collect_rewrite(ctx, o, &s));
  }
  UNICON_TRY(calibrate(ctx, &s, o, model));
  return note_migration(ctx, o, model);
}

unicon_status unicon__outcome_model(unicon_ctx *ctx, unicon__outcome *o, unicon_model **out) {
  unicon_model *model = NULL;
  if (o->way == UNICON__SHARED)
    UNICON_TRY(unicon__shared_fit(ctx, o->move, o->setting, o->move->n, &model));
  else
    UNICON_TRY(unicon__model_create(ctx, &model));
  const unicon_status status = fill(ctx, o, model);
  if (status != UNICON_OK)
    unicon_model_destroy(model);
  else
    *out = model;
  return status;
}
