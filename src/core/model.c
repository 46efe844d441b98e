/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_MAJOR = 1 };

unicon_status unicon__model_create(unicon_ctx *ctx, unicon_model **out) {
  unicon__arena arena;
  unicon__arena_init(&arena, ctx->arena.budget);
  unicon_model *model = unicon__arena_new(ctx, &arena, 1, sizeof *model);
  if (!model) {
    unicon__arena_release(&arena);
    return unicon__status(ctx);
  }
  model->arena = arena;
  *out = model;
  return UNICON_OK;
}

void unicon_model_destroy(unicon_model *model) {
  if (!model) return;
  unicon__arena arena = model->arena;
  unicon__arena_release(&arena);
}

static char *copy_text(unicon_ctx *ctx, unicon__arena *arena, const char *text) {
  const size_t size = strlen(text) + 1;
  char *copy = unicon__arena_new(ctx, arena, (int64_t)size, 1);
  if (copy) memcpy(copy, text, size);
  return copy;
}

static unicon_status add_meta(unicon_ctx *ctx, unicon_model *model, const char *key,
                              const char *value) {
  if (model->metas == UNICON__META_MAX)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "more than %d metadata entries", UNICON__META_MAX);
  unicon__meta *entry = &model->meta[model->metas];
  entry->key = copy_text(ctx, &model->arena, key);
  entry->value = entry->key ? copy_text(ctx, &model->arena, value) : NULL;
  if (!entry->value) return unicon__status(ctx);
  model->metas++;
  return UNICON_OK;
}

unicon_status unicon__model_note(unicon_ctx *ctx, unicon_model *model, const char *key,
                                 const char *format, ...) {
  char value[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  return add_meta(ctx, model, key, value);
}

static int compare_keys(const void *a, const void *b) {
  const unicon__meta *left = a, *right = b;
  return strcmp(left->key, right->key);
}

void unicon__model_seal(unicon_model *model) {
  qsort(model->meta, (size_t)model->metas, sizeof *model->meta, compare_keys);
}

int64_t unicon_model_rank(const unicon_model *model) {
  return model ? model->rank : 0;
}

int64_t unicon_model_width(const unicon_model *model, unicon_side side) {
  return model ? model->map[side == UNICON_Y].in : 0;
}

const float *unicon_model_spectrum(const unicon_model *model) {
  return model ? model->spectrum : NULL;
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

/* ---- file ------------------------------------------------------------------------------------- */

static unicon__tensor tensor(const char *name, const float *data, int64_t rows, int64_t cols) {
  unicon__tensor t = {.name = name, .dtype = "F32", .data = data, .dims = cols > 0 ? 2 : 1};
  t.shape[0] = rows;
  t.shape[1] = cols;
  t.bytes = (size_t)(rows * (cols > 0 ? cols : 1)) * sizeof *data;
  return t;
}

static unicon_status save(unicon_ctx *ctx, const unicon_model *model, const char *path) {
  static const char *const mean_name[2] = {"x.mean", "y.mean"};
  static const char *const weight_name[2] = {"x.weight", "y.weight"};
  unicon__tensor list[16];
  unicon__meta *meta;
  int64_t count = 0;
  UNICON_NEW(ctx, meta, model->metas);
  memcpy(meta, model->meta, (size_t)model->metas * sizeof *meta);
  list[count++] = tensor("spectrum", model->spectrum, model->rank, 0);
  for (int side = 0; side < 2; side++) {
    const unicon__map *map = &model->map[side];
    if (map->mean) list[count++] = tensor(mean_name[side], map->mean, map->out, 0);
    list[count++] = tensor(weight_name[side], model->weight[side], map->out, model->rank);
  }
  const unicon__safetensors content = {list, count, meta, model->metas};
  return unicon__safetensors_write(ctx, path, &content);
}

unicon_status unicon_model_save(unicon_ctx *ctx, const unicon_model *model, const char *path) {
  if (!ctx) return UNICON_ERR_ARGUMENT;
  unicon__block *frame = unicon__enter(ctx);
  if (!model || !path)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "model_save needs a model and a path");
  return unicon__leave(ctx, frame, save(ctx, model, path));
}

/* A copy of the named tensor, checked to be F32 of rows by cols (cols 0: a vector). */
static unicon_status read_tensor(unicon_ctx *ctx, unicon_model *model, const char *path,
                                 const unicon__safetensors *file, const char *name, int64_t rows,
                                 int64_t cols, float **out) {
  const unicon__tensor *t = unicon__tensor_find(file, name);
  if (!t)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s is no unicon model: it has no tensor %s", path,
                        name);
  if (strcmp(t->dtype, "F32") != 0 || t->dims != (cols > 0 ? 2 : 1) || t->shape[0] != rows ||
      (cols > 0 && t->shape[1] != cols))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: tensor %s is not the F32 array its metadata promise", path, name);
  UNICON_ARENA_NEW(ctx, &model->arena, *out, (int64_t)(t->bytes / sizeof **out));
  memcpy(*out, t->data, t->bytes);
  for (size_t k = 0; k < t->bytes / sizeof **out; k++)
    if (!((*out)[k] - (*out)[k] == 0))
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: tensor %s holds a value that is not finite",
                          path, name);
  return UNICON_OK;
}

/* A metadata entry that must be a whole number from low to high. */
static unicon_status read_number(unicon_ctx *ctx, const unicon_model *model, const char *path,
                                 const char *key, int64_t low, int64_t high, int64_t *out) {
  const char *text = unicon_model_meta(model, key);
  char *end = NULL;
  *out = text ? strtoll(text, &end, 10) : 0;
  if (!text || end == text || *end || *out < low || *out > high)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: metadata %s is %s%s%s", path, key,
                        text ? "\"" : "missing", text ? text : "", text ? "\"" : "");
  return UNICON_OK;
}

static unicon_status read_side(unicon_ctx *ctx, unicon_model *model, const char *path,
                               const unicon__safetensors *file, int side) {
  static const char *const width_key[2] = {"d_x", "d_y"};
  static const char *const mean_name[2] = {"x.mean", "y.mean"};
  static const char *const weight_name[2] = {"x.weight", "y.weight"};
  unicon__map *map = &model->map[side];
  const char *normalize = unicon_model_meta(model, "option.normalize");
  UNICON_TRY(read_number(ctx, model, path, width_key[side], 1, 1 << 24, &map->in));
  map->out = map->in;
  map->normalize = !normalize || strcmp(normalize, "off") != 0;
  if (unicon__tensor_find(file, mean_name[side]))
    UNICON_TRY(read_tensor(ctx, model, path, file, mean_name[side], map->out, 0, &map->mean));
  return read_tensor(ctx, model, path, file, weight_name[side], map->out, model->rank,
                     &model->weight[side]);
}

static unicon_status fill(unicon_ctx *ctx, unicon_model *model, const char *path,
                          unicon__bytes bytes) {
  unicon__safetensors file;
  UNICON_TRY(unicon__safetensors_parse(ctx, &ctx->arena, path, bytes, &file));
  for (int64_t k = 0; k < file.metas; k++)
    UNICON_TRY(add_meta(ctx, model, file.meta[k].key, file.meta[k].value));
  unicon__model_seal(model);
  const char *format = unicon_model_meta(model, "format");
  if (!format || strcmp(format, "unicon") != 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is a safetensors file but no unicon model (metadata \"format\" is not "
                        "\"unicon\")",
                        path);
  int64_t version;
  UNICON_TRY(read_number(ctx, model, path, "format_version", 1, INT32_MAX, &version));
  if (version > FORMAT_MAJOR)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has model format %lld, newer than the %d that unicon %s reads; use a "
                        "newer unicon",
                        path, (long long)version, FORMAT_MAJOR, unicon_version());
  UNICON_TRY(read_number(ctx, model, path, "rank", 1, 1 << 24, &model->rank));
  UNICON_TRY(
      read_tensor(ctx, model, path, &file, "spectrum", model->rank, 0, &model->spectrum));
  UNICON_TRY(read_side(ctx, model, path, &file, 0));
  return read_side(ctx, model, path, &file, 1);
}

static unicon_status load(unicon_ctx *ctx, const char *path, unicon_model **out) {
  unicon__bytes bytes;
  unicon_model *model = NULL;
  UNICON_TRY(unicon__model_create(ctx, &model));
  unicon_status status = unicon__bytes_map(ctx, path, &bytes);
  if (status == UNICON_OK) {
    status = fill(ctx, model, path, bytes);
    unicon__bytes_unmap(&bytes);
  }
  if (status != UNICON_OK)
    unicon_model_destroy(model);
  else
    *out = model;
  return status;
}

unicon_status unicon_model_load(unicon_ctx *ctx, const char *path, unicon_model **out) {
  if (!ctx) return UNICON_ERR_ARGUMENT;
  unicon__block *frame = unicon__enter(ctx);
  if (!path || !out)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "model_load needs a path and a place for it");
  *out = NULL;
  return unicon__leave(ctx, frame, load(ctx, path, out));
}
