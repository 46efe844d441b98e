/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "io/object.h"
#include "io/text.h"

unicon_status unicon__model_create(unicon_ctx *ctx, unicon_model **out) {
  *out = unicon__object_new(ctx, sizeof **out);
  return *out ? UNICON_OK : UNICON_ERR_MEMORY;
}

void unicon_model_destroy(unicon_model *model) {
  unicon__object_free(model);
}

unicon_status unicon__model_note_text(unicon_ctx *ctx, unicon_model *model, const char *key,
                                      const char *value) {
  if (model->metas == model->meta_room) { /* the old list stays in the arena: it is small */
    unicon__meta *larger;
    const int64_t room = 2 * model->meta_room + 64;
    UNICON_ARENA_NEW(ctx, &model->arena, larger, room);
    if (model->metas > 0) memcpy(larger, model->meta, (size_t)model->metas * sizeof *larger);
    model->meta = larger;
    model->meta_room = room;
  }
  unicon__meta *entry = &model->meta[model->metas];
  entry->key = unicon__text_copy(ctx, &model->arena, key);
  entry->value = entry->key ? unicon__text_copy(ctx, &model->arena, value) : NULL;
  if (!entry->value) return UNICON_ERR_MEMORY;
  model->metas++;
  return UNICON_OK;
}

unicon_status unicon__model_note_integer(unicon_ctx *ctx, unicon_model *model, const char *key,
                                         int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  return unicon__model_note_text(ctx, model, key, text);
}

unicon_status unicon__model_note_real(unicon_ctx *ctx, unicon_model *model, const char *key,
                                      int digits, double value) {
  char text[48];
  unicon__number_print(text, sizeof text, "%.*g", digits, value);
  return unicon__model_note_text(ctx, model, key, text);
}

unicon_status unicon__model_note_numbers(unicon_ctx *ctx, unicon_model *model, const char *key,
                                         const double *values, int count) {
  enum { LONGEST = 16 }; /* "-1.2345678e-300 " */
  char *text;
  size_t used = 0;
  UNICON_NEW(ctx, text, (int64_t)LONGEST * count + 1);
  for (int k = 0; k < count; k++)
    used +=
        (size_t)unicon__number_print(text + used, LONGEST + 1, "%s%.8g", k ? " " : "", values[k]);
  return unicon__model_note_text(ctx, model, key, text);
}

static unicon_status copy_floats(unicon_ctx *ctx, unicon__arena *arena, const float *from,
                                 int64_t count, float **out) {
  *out = NULL;
  if (!from) return UNICON_OK;
  UNICON_ARENA_NEW(ctx, arena, *out, count);
  memcpy(*out, from, (size_t)count * sizeof *from);
  return UNICON_OK;
}

unicon_status unicon__part_copy_side(unicon_ctx *ctx, unicon__arena *arena,
                                     const unicon__part *from, int side, unicon__part *to) {
  const unicon__map *map = &from->map[side];
  unicon__map *copy = &to->map[side];
  to->rank = from->rank;
  to->share = from->share;
  *copy = *map;
  UNICON_TRY(copy_floats(ctx, arena, map->mean, map->out, &copy->mean));
  UNICON_TRY(copy_floats(ctx, arena, map->base, map->points * map->in, &copy->base));
  UNICON_TRY(copy_floats(ctx, arena, map->center, map->in, &copy->center));
  UNICON_TRY(copy_floats(ctx, arena, map->near, map->points * map->in, &copy->near));
  UNICON_TRY(copy_floats(ctx, arena, map->square, map->points, &copy->square));
  UNICON_TRY(copy_floats(ctx, arena, map->factor, map->points * map->out, &copy->factor));
  UNICON_TRY(copy_floats(ctx, arena, from->offset[side], from->rank, &to->offset[side]));
  return copy_floats(ctx, arena, from->weight[side], map->out * from->rank, &to->weight[side]);
}

/* What the rows of a side looked like, and the curve to its scores. */
static unicon_status copy_likeness(unicon_ctx *ctx, const unicon_model *from, int side,
                                   unicon_model *to) {
  const unicon__likeness *like = &from->like[side];
  const int64_t d = from->part[0].map[side].in;
  to->like[side] = *like;
  to->curve[side] = from->curve[side];
  UNICON_TRY(copy_floats(ctx, &to->arena, like->mean, d, &to->like[side].mean));
  UNICON_TRY(copy_floats(ctx, &to->arena, like->axis, like->axes * d, &to->like[side].axis));
  return copy_floats(ctx, &to->arena, from->curve[side].knot, 2 * from->curve[side].knots,
                     &to->curve[side].knot);
}

/* The held-out score, too, was one of scores balanced in that way. */
static bool is_about_balance(const char *key) {
  return strcmp(key, "balance") == 0 || strcmp(key, "option.balance") == 0 ||
         strcmp(key, "option.balance_bank") == 0 || strcmp(key, "auto_score") == 0 ||
         strcmp(key, "auto_chance") == 0;
}

/* What was chosen, "kernel linear, ..., balance off, refine ...", without its balance. */
static unicon_status note_chosen(unicon_ctx *ctx, unicon_model *model, const char *text) {
  const char *at = strstr(text, ", balance ");
  char *rest;
  if (!at) return unicon__model_note_text(ctx, model, "auto_chosen", text);
  const size_t kept = (size_t)(at - text), size = strlen(text) + 1;
  UNICON_NEW(ctx, rest, (int64_t)size);
  memcpy(rest, text, kept);
  at += 2 + strcspn(at + 2, ",");
  memcpy(rest + kept, at, strlen(at) + 1);
  return unicon__model_note_text(ctx, model, "auto_chosen", rest);
}

unicon_status unicon__model_copy(unicon_ctx *ctx, const unicon_model *from, unicon_model *to) {
  to->rank = from->rank;
  to->parts = from->parts;
  UNICON_ARENA_NEW(ctx, &to->arena, to->part, to->parts);
  for (int64_t b = 0; b < to->parts; b++)
    for (int side = 0; side < 2; side++)
      UNICON_TRY(unicon__part_copy_side(ctx, &to->arena, &from->part[b], side, &to->part[b]));
  for (int side = 0; side < 2; side++) UNICON_TRY(copy_likeness(ctx, from, side, to));
  UNICON_TRY(copy_floats(ctx, &to->arena, from->spectrum, from->rank, &to->spectrum));
  for (int64_t k = 0; k < from->metas; k++) {
    const char *key = from->meta[k].key;
    if (is_about_balance(key)) continue;
    UNICON_TRY(strcmp(key, "auto_chosen") == 0
                   ? note_chosen(ctx, to, from->meta[k].value)
                   : unicon__model_note_text(ctx, to, key, from->meta[k].value));
  }
  return UNICON_OK;
}

static int compare_keys(const void *a, const void *b) {
  const unicon__meta *left = a, *right = b;
  return strcmp(left->key, right->key);
}

void unicon__model_seal(unicon_model *model) {
  if (model->metas > 1) qsort(model->meta, (size_t)model->metas, sizeof *model->meta, compare_keys);
}

int64_t unicon_model_rank(const unicon_model *model) {
  return model ? model->rank : 0;
}

int64_t unicon_model_width(const unicon_model *model, unicon_side side) {
  return model ? model->part[0].map[side == UNICON_Y].in : 0;
}

const float *unicon_model_spectrum(const unicon_model *model) {
  return model ? model->spectrum : NULL;
}

static uint64_t hash_floats(uint64_t h, const float *data, int64_t count) {
  return unicon__hash(h, data, data ? (size_t)count * sizeof *data : 0);
}

static uint64_t hash_side(uint64_t h, const unicon_model *model, int side) {
  for (int64_t b = 0; b < model->parts; b++) {
    const unicon__part *part = &model->part[b];
    const unicon__map *map = &part->map[side];
    h = hash_floats(h, map->mean, map->out);
    h = hash_floats(h, map->base, map->points * map->in);
    if (map->kind == UNICON__MAP_RANDOM) h = hash_floats(h, map->square, map->points);
    h = hash_floats(h, part->weight[side], map->out * part->rank);
    h = hash_floats(h, part->offset[side], part->rank);
  }
  const unicon_balance *balance = &model->balance;
  h = hash_floats(h, balance->bank[side].row, balance->bank[side].count * balance->r);
  return hash_floats(h, balance->curve[side], 2 * balance->r + 1);
}

void unicon_model_id(const unicon_model *model, char out[UNICON_MODEL_ID]) {
  uint64_t h = 0;
  for (int64_t k = 0; model && k < model->metas; k++) {
    h = unicon__hash(h, model->meta[k].key, strlen(model->meta[k].key));
    h = unicon__hash(h, model->meta[k].value, strlen(model->meta[k].value));
  }
  for (int side = 0; model && side < 2; side++) h = hash_side(h, model, side);
  snprintf(out, UNICON_MODEL_ID, "%016llx", (unsigned long long)h);
}

int unicon_model_meta_at(const unicon_model *model, size_t index, const char **key,
                         const char **value) {
  if (!model || !key || !value || index >= (size_t)model->metas) return 0;
  *key = model->meta[index].key;
  *value = model->meta[index].value;
  return 1;
}

const char *unicon_model_meta(const unicon_model *model, const char *key) {
  for (int64_t k = 0; model && key && k < model->metas; k++)
    if (strcmp(model->meta[k].key, key) == 0) return model->meta[k].value;
  return NULL;
}
