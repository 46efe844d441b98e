/* SPDX-License-Identifier: Apache-2.0 */
/* The model file: a safetensors container, docs/model-format.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "model/model.h"
#include "base/options.h"
#include "io/object.h"
#include "linalg/convert.h"

enum {
  FORMAT_MAJOR = 1,
  SIDE_TENSORS = 6,
  NAME_SIZE = 48,
  PARTS_MAX = 1 << 16 /* more have a header beyond what is read */
};

/* "x.weight", or "x.3.weight" for part 3 of a fused model. */
static void side_name(const unicon_model *model, int64_t part, int side, const char *what,
                      char *out) {
  if (model->parts == 1)
    snprintf(out, NAME_SIZE, "%c.%s", "xy"[side], what);
  else
    snprintf(out, NAME_SIZE, "%c.%lld.%s", "xy"[side], (long long)part, what);
}

/* Directions instead of landmarks, and phases beside them? */
static bool directed(const unicon__map *map) {
  return map->kind == UNICON__MAP_RANDOM;
}

static bool shifted(const unicon__map *map) {
  return directed(map) && unicon__kernel_is_fourier(map->kernel.kind);
}

/* Notes about one side: what is common to all parts, then widths part by part. */
static unicon_status note_side(unicon_ctx *ctx, unicon_model *model, int side) {
  const unicon__map *map = &model->part[0].map[side];
  char word[32], key[NAME_SIZE];
  snprintf(key, sizeof key, "%c.map", "xy"[side]);
  unicon__option_word(UNICON__MAP, 1 + (int)map->kind, word, sizeof word);
  UNICON_TRY(unicon__model_note_text(ctx, model, key, word));
  snprintf(key, sizeof key, "%c.normalize", "xy"[side]);
  UNICON_TRY(unicon__model_note_text(ctx, model, key, map->normalize ? "on" : "off"));
  snprintf(key, sizeof key, "%c.kernel", "xy"[side]);
  unicon__option_word(UNICON__KERNEL, (int)map->kernel.kind, word, sizeof word);
  UNICON_TRY(unicon__model_note_text(ctx, model, key, word));
  snprintf(key, sizeof key, "%c.kernel_degree", "xy"[side]);
  if (map->kernel.kind == UNICON__KERNEL_POLY)
    UNICON_TRY(unicon__model_note_integer(ctx, model, key, map->kernel.degree));
  for (int64_t b = 0; b < model->parts && unicon__kernel_has_width(map->kernel.kind); b++) {
    side_name(model, b, side, "kernel_width", key);
    UNICON_TRY(unicon__model_note_real(ctx, model, key, 17, model->part[b].map[side].kernel.width));
  }
  return UNICON_OK;
}

unicon_status unicon__model_note_maps(unicon_ctx *ctx, unicon_model *model) {
  UNICON_TRY(unicon__model_note_integer(ctx, model, "parts", model->parts));
  for (int64_t b = 0; b < model->parts && model->parts > 1; b++) {
    char key[NAME_SIZE];
    snprintf(key, sizeof key, "share.%lld", (long long)b);
    UNICON_TRY(unicon__model_note_real(ctx, model, key, 17, model->part[b].share));
  }
  UNICON_TRY(note_side(ctx, model, 0));
  return note_side(ctx, model, 1);
}

/* ---- saving ------------------------------------------------------------------------------- */

static unicon__tensor tensor(const char *name, const float *data, int64_t rows, int64_t cols) {
  unicon__tensor t = {.name = name, .dtype = "F32", .data = data, .dims = cols > 0 ? 2 : 1};
  t.shape[0] = rows;
  t.shape[1] = cols;
  t.bytes = (size_t)(rows * (cols > 0 ? cols : 1)) * sizeof *data;
  return t;
}

/* The tensors of one side of one part; their names go to `name`. */
static int64_t side_tensors(const unicon_model *model, int64_t b, int side, unicon__tensor *list,
                            char (*name)[NAME_SIZE]) {
  static const char *const what[SIDE_TENSORS] = {"mean",       "weight", "landmarks",
                                                 "directions", "phases", "offset"};
  const unicon__part *part = &model->part[b];
  const unicon__map *map = &part->map[side];
  int64_t count = 0;
  for (int k = 0; k < SIDE_TENSORS; k++) side_name(model, b, side, what[k], name[k]);
  if (map->mean) list[count++] = tensor(name[0], map->mean, map->out, 0);
  if (part->weight[side]) list[count++] = tensor(name[1], part->weight[side], map->out, part->rank);
  if (part->offset[side]) list[count++] = tensor(name[5], part->offset[side], part->rank, 0);
  if (map->kind != UNICON__MAP_LINEAR)
    list[count++] = tensor(name[directed(map) ? 3 : 2], map->base, map->points, map->in);
  if (shifted(map)) list[count++] = tensor(name[4], map->square, map->points, 0);
  return count;
}

static const char *const bank_name[2] = {"x.bank", "y.bank"};
static const char *const bias_name[2] = {"x.bias", "y.bias"};

/* The bank of a side as float16, or the quadratic form of its biases. */
static unicon_status balance_tensor(unicon_ctx *ctx, const unicon_model *model, int side,
                                    unicon__tensor *out) {
  const unicon_balance *balance = &model->balance;
  const int64_t count = balance->bank[side].count, r = balance->r;
  uint16_t *half;
  if (balance->how.kind == UNICON__BALANCE_QUADRATIC) {
    *out = tensor(bias_name[side], balance->curve[side], 2 * r + 1, 0);
    return UNICON_OK;
  }
  UNICON_NEW(ctx, half, count * r);
  unicon__to_half(balance->bank[side].row, count * r, half);
  *out = (unicon__tensor){.name = bank_name[side],
                          .dtype = "F16",
                          .shape = {count, r},
                          .dims = 2,
                          .data = half,
                          .bytes = (size_t)(count * r) * sizeof *half};
  return UNICON_OK;
}

static const char *const mean_name[2] = {"x.like.mean", "y.like.mean"};
static const char *const axis_name[2] = {"x.like.axes", "y.like.axes"};
static const char *const curve_name[2] = {"scores.old", "scores.new"};

/* What rows looked like, and the curves of the scores: of models that migrate. */
static int64_t likeness_tensors(const unicon_model *model, unicon__tensor *list) {
  int64_t count = 0;
  for (int side = 0; side < 2; side++) {
    const unicon__likeness *like = &model->like[side];
    const unicon__curve *curve = &model->curve[side];
    const int64_t d = model->part[0].map[side].in;
    if (like->axes > 0) list[count++] = tensor(mean_name[side], like->mean, d, 0);
    if (like->axes > 0) list[count++] = tensor(axis_name[side], like->axis, like->axes, d);
    if (curve->knots > 0) list[count++] = tensor(curve_name[side], curve->knot, curve->knots, 2);
  }
  return count;
}

/* All that the file has, in the frame of the call. */
static unicon_status content_of(unicon_ctx *ctx, const unicon_model *model,
                                unicon__safetensors *out) {
  unicon__tensor *list;
  unicon__meta *meta;
  char(*name)[NAME_SIZE];
  UNICON_NEW(ctx, list, 9 + model->parts * 2 * SIDE_TENSORS);
  UNICON_NEW(ctx, name, model->parts * 2 * SIDE_TENSORS);
  UNICON_NEW(ctx, meta, model->metas);
  memcpy(meta, model->meta, (size_t)model->metas * sizeof *meta);
  int64_t count = 0;
  list[count++] = tensor("spectrum", model->spectrum, model->rank, 0);
  for (int side = 0; side < 2 && model->balance.how.kind != UNICON__BALANCE_OFF; side++)
    UNICON_TRY(balance_tensor(ctx, model, side, &list[count++]));
  count += likeness_tensors(model, list + count);
  for (int64_t b = 0; b < model->parts; b++)
    for (int side = 0; side < 2; side++)
      count += side_tensors(model, b, side, list + count, name + (2 * b + side) * SIDE_TENSORS);
  *out =
      (unicon__safetensors){.tensor = list, .tensors = count, .meta = meta, .metas = model->metas};
  return UNICON_OK;
}

static unicon_status save(unicon_ctx *ctx, const unicon_model *model, const char *path) {
  unicon__safetensors content;
  UNICON_NEED(ctx, model);
  UNICON_NEED(ctx, path);
  UNICON_TRY(content_of(ctx, model, &content));
  return unicon__safetensors_write(ctx, path, &content);
}

unicon_status unicon_model_save(unicon_ctx *ctx, const unicon_model *model, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, save(ctx, model, path));
}

static unicon_status to_bytes(unicon_ctx *ctx, const unicon_model *model, void *out, size_t room,
                              size_t *size) {
  unicon__safetensors content;
  UNICON_NEED(ctx, model);
  UNICON_NEED(ctx, size);
  UNICON_TRY(content_of(ctx, model, &content));
  return unicon__safetensors_bytes(ctx, &content, out, room, size);
}

unicon_status unicon_model_to_bytes(unicon_ctx *ctx, const unicon_model *model, void *out,
                                    size_t room, size_t *size) {
  if (size) *size = 0;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, to_bytes(ctx, model, out, room, size));
}

/* ---- loading ------------------------------------------------------------------------------ */

/* What is being loaded. */
typedef struct reading {
  unicon_model *model;
  const char *path;
  unicon__safetensors file;
} reading;

/* A copy of the named tensor, checked to be F32 of rows by cols (cols 0: a vector). */
static unicon_status read_tensor(unicon_ctx *ctx, const reading *r, const char *name, int64_t rows,
                                 int64_t cols, float **out) {
  const unicon__tensor *t = unicon__tensor_find(&r->file, name);
  if (!t)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is not a complete unicon model: it has no tensor %s", r->path, name);
  if (strcmp(t->dtype, "F32") != 0 || t->dims != (cols > 0 ? 2 : 1) || t->shape[0] != rows ||
      (cols > 0 && t->shape[1] != cols))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: tensor %s is not the F32 array its metadata promise", r->path, name);
  const size_t count = t->bytes / sizeof **out;
  UNICON_ARENA_NEW(ctx, &r->model->arena, *out, (int64_t)count);
  memcpy(*out, t->data, t->bytes);
  for (size_t k = 0; k < count; k++)
    if (!((*out)[k] - (*out)[k] == 0))
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: tensor %s holds a value that is not finite",
                          r->path, name);
  return UNICON_OK;
}

static unicon_status bad_entry(unicon_ctx *ctx, const reading *r, const char *key,
                               const char *text) {
  return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: metadata %s is %s%s%s", r->path, key,
                      text ? "\"" : "missing", text ? text : "", text ? "\"" : "");
}

/* A metadata entry that must be a whole number from low to high. */
static unicon_status read_number(unicon_ctx *ctx, const reading *r, const char *key, int64_t low,
                                 int64_t high, int64_t *out) {
  const char *text = unicon_model_meta(r->model, key);
  char *end = NULL;
  *out = text ? strtoll(text, &end, 10) : 0;
  if (!text || end == text || *end || *out < low || *out > high)
    return bad_entry(ctx, r, key, text);
  return UNICON_OK;
}

/* A metadata entry that must be a positive number below 1e30 and nothing else. */
static unicon_status read_positive(unicon_ctx *ctx, const reading *r, const char *key,
                                   double *out) {
  const char *text = unicon_model_meta(r->model, key);
  char *end;
  if (!text) return bad_entry(ctx, r, key, text);
  *out = unicon__number_read(text, &end);
  return *out > 0 && *out < 1e30 && !*end ? UNICON_OK : bad_entry(ctx, r, key, text);
}

/* A metadata entry that must be one of the words of an option. */
static unicon_status read_word(unicon_ctx *ctx, const reading *r, const char *key, int option,
                               int *out) {
  const char *text = unicon_model_meta(r->model, key);
  unicon__value value = {.word = -1};
  if (text) (void)unicon__value_parse(ctx, unicon__option_row(option), text, &value);
  *out = value.word;
  return value.word < 0 ? bad_entry(ctx, r, key, text) : UNICON_OK;
}

static unicon_status read_kernel(unicon_ctx *ctx, const reading *r, int64_t b, int side,
                                 unicon__kernel *kernel) {
  char key[NAME_SIZE];
  int word;
  int64_t degree = 1;
  snprintf(key, sizeof key, "%c.kernel", "xy"[side]);
  UNICON_TRY(read_word(ctx, r, key, UNICON__KERNEL, &word));
  *kernel = (unicon__kernel){.kind = unicon__kernel_plain((unicon__kernel_kind)word), .width = 1};
  snprintf(key, sizeof key, "%c.kernel_degree", "xy"[side]);
  if (kernel->kind == UNICON__KERNEL_POLY) UNICON_TRY(read_number(ctx, r, key, 1, 64, &degree));
  kernel->degree = (int)degree;
  if (!unicon__kernel_has_width(kernel->kind)) return UNICON_OK;
  side_name(r->model, b, side, "kernel_width", key);
  return read_positive(ctx, r, key, &kernel->width);
}

/* Rows of a two-dimensional tensor; 1, which then fails to fit, when it is missing or absurd. */
static int64_t rows_of(const reading *r, const char *name) {
  const unicon__tensor *t = unicon__tensor_find(&r->file, name);
  return t && t->dims == 2 && t->shape[0] >= 1 && t->shape[0] <= 1 << 24 ? t->shape[0] : 1;
}

/* Landmarks, or random directions. */
static unicon_status read_points(unicon_ctx *ctx, const reading *r, int64_t b, int side,
                                 unicon__map *map) {
  const bool directions = directed(map);
  char name[NAME_SIZE];
  side_name(r->model, b, side, directions ? "directions" : "landmarks", name);
  map->points = map->out = rows_of(r, name);
  UNICON_TRY(read_tensor(ctx, r, name, map->points, map->in, &map->base));
  side_name(r->model, b, side, "phases", name);
  if (directions)
    return shifted(map) ? read_tensor(ctx, r, name, map->points, 0, &map->square) : UNICON_OK;
  return unicon__map_settle(ctx, &r->model->arena, map);
}

/* Weights and offset. A side without weights holds vectors of the space already. */
static unicon_status read_weight(unicon_ctx *ctx, const reading *r, int64_t b, int side) {
  unicon__part *part = &r->model->part[b];
  const unicon__map *map = &part->map[side];
  char name[NAME_SIZE];
  side_name(r->model, b, side, "offset", name);
  const bool shifted_by = unicon__tensor_find(&r->file, name) != NULL;
  side_name(r->model, b, side, "weight", name);
  const unicon__tensor *weight = unicon__tensor_find(&r->file, name);
  const bool plain = !weight && !shifted_by && map->kind == UNICON__MAP_LINEAR && !map->mean &&
                     r->model->parts == 1 && unicon_model_meta(r->model, "direction");
  const int64_t rank = plain ? map->in : weight && weight->dims == 2 ? weight->shape[1] : 0;
  if (rank < 1 || rank > r->model->rank || (side == 1 && rank != part->rank))
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: tensor %s is missing or has a wrong shape",
                        r->path, name);
  part->rank = rank;
  if (plain) return UNICON_OK;
  UNICON_TRY(read_tensor(ctx, r, name, map->out, rank, &part->weight[side]));
  side_name(r->model, b, side, "offset", name);
  return shifted_by ? read_tensor(ctx, r, name, rank, 0, &part->offset[side]) : UNICON_OK;
}

/* The map of a side, without its mean. */
static unicon_status read_map(unicon_ctx *ctx, const reading *r, int64_t b, int side) {
  unicon__map *map = &r->model->part[b].map[side];
  char key[NAME_SIZE];
  int kind, normalize;
  UNICON_TRY(read_number(ctx, r, side == 0 ? "d_x" : "d_y", 1, 1 << 24, &map->in));
  snprintf(key, sizeof key, "%c.normalize", "xy"[side]);
  UNICON_TRY(read_word(ctx, r, key, UNICON__NORMALIZE, &normalize));
  snprintf(key, sizeof key, "%c.map", "xy"[side]);
  UNICON_TRY(read_word(ctx, r, key, UNICON__MAP, &kind));
  if (kind == 0) return bad_entry(ctx, r, key, "auto");
  map->kind = (unicon__map_kind)(kind - 1);
  map->normalize = normalize == 0;
  map->out = map->in;
  UNICON_TRY(read_kernel(ctx, r, b, side, &map->kernel));
  if (map->kind == UNICON__MAP_RANDOM && !unicon__kernel_is_relu(map->kernel.kind) &&
      !unicon__kernel_is_fourier(map->kernel.kind))
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: the kernel of side %c has no random features",
                        r->path, "xy"[side]);
  return map->kind == UNICON__MAP_LINEAR ? UNICON_OK : read_points(ctx, r, b, side, map);
}

unicon_status unicon__model_parse_maps(unicon_ctx *ctx, unicon_model *model, const char *path,
                                       const unicon__safetensors *file) {
  const reading r = {.model = model, .path = path, .file = *file};
  model->parts = 1;
  UNICON_ARENA_NEW(ctx, &model->arena, model->part, 1);
  UNICON_TRY(read_map(ctx, &r, 0, 0));
  return read_map(ctx, &r, 0, 1);
}

static unicon_status read_side(unicon_ctx *ctx, const reading *r, int64_t b, int side) {
  unicon__map *map = &r->model->part[b].map[side];
  char key[NAME_SIZE];
  UNICON_TRY(read_map(ctx, r, b, side));
  side_name(r->model, b, side, "mean", key);
  if (unicon__tensor_find(&r->file, key))
    UNICON_TRY(read_tensor(ctx, r, key, map->out, 0, &map->mean));
  return read_weight(ctx, r, b, side);
}

static unicon_status read_parts(unicon_ctx *ctx, const reading *r) {
  unicon_model *model = r->model;
  int64_t total = 0;
  UNICON_TRY(read_number(ctx, r, "parts", 1, PARTS_MAX, &model->parts));
  UNICON_ARENA_NEW(ctx, &model->arena, model->part, model->parts);
  for (int64_t b = 0; b < model->parts; b++) {
    char key[NAME_SIZE];
    snprintf(key, sizeof key, "share.%lld", (long long)b);
    model->part[b].share = 1;
    if (model->parts > 1) UNICON_TRY(read_positive(ctx, r, key, &model->part[b].share));
    UNICON_TRY(read_side(ctx, r, b, 0));
    UNICON_TRY(read_side(ctx, r, b, 1));
    total += model->part[b].rank;
  }
  if (total != model->rank)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the parts have %lld dimensions, but metadata rank is %lld", r->path,
                        (long long)total, (long long)model->rank);
  return UNICON_OK;
}

/* A bank of float16 rows. */
static unicon_status read_bank(unicon_ctx *ctx, const reading *r, int side, unicon__bank *out) {
  const unicon__tensor *t = unicon__tensor_find(&r->file, bank_name[side]);
  const int64_t rank = r->model->rank;
  if (!t || strcmp(t->dtype, "F16") != 0 || t->dims != 2 || t->shape[0] < 1 ||
      t->shape[0] > 1 << 24 || t->shape[1] != rank)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: tensor %s is missing or not an F16 array with %lld columns", r->path,
                        bank_name[side], (long long)rank);
  const int64_t count = t->shape[0] * rank;
  float *rows;
  UNICON_ARENA_NEW(ctx, &r->model->arena, rows, count);
  unicon__convert(UNICON_F16, t->data, 2, count, rows);
  for (int64_t k = 0; k < count; k++)
    if (!(fabsf(rows[k]) <= 1.01f)) /* unit rows, rounded */
      return unicon__fail(
          ctx, UNICON_ERR_FORMAT,
          "%s: tensor %s holds a value that cannot be a coordinate of a unit vector", r->path,
          bank_name[side]);
  for (int64_t i = 0; i < t->shape[0]; i++) {
    double square = 0;
    for (int64_t k = 0; k < rank; k++)
      square += (double)rows[i * rank + k] * (double)rows[i * rank + k];
    if (square > 1.01)
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: row %lld of tensor %s is longer than 1",
                          r->path, (long long)i, bank_name[side]);
  }
  *out = (unicon__bank){t->shape[0], rows};
  return UNICON_OK;
}

/* How scores are balanced, and from what. */
static unicon_status read_balance(unicon_ctx *ctx, const reading *r) {
  unicon_balance *balance = &r->model->balance;
  const char *text = unicon_model_meta(r->model, "balance");
  if (!text) return UNICON_OK;
  if (unicon__balancing_parse(ctx, text, &balance->how) != UNICON_OK)
    return bad_entry(ctx, r, "balance", text);
  balance->r = r->model->rank;
  for (int side = 0; side < 2 && balance->how.kind != UNICON__BALANCE_OFF; side++) {
    float *curve;
    if (balance->how.kind != UNICON__BALANCE_QUADRATIC) {
      UNICON_TRY(read_bank(ctx, r, side, &balance->bank[side]));
      continue;
    }
    UNICON_TRY(read_tensor(ctx, r, bias_name[side], 2 * balance->r + 1, 0, &curve));
    balance->curve[side] = curve;
  }
  return UNICON_OK;
}

/* What rows of a side looked like. */
static unicon_status read_likeness(unicon_ctx *ctx, const reading *r, int side) {
  unicon__likeness *like = &r->model->like[side];
  const int64_t d = r->model->part[0].map[side].in;
  static const char *const key[2][3] = {{"x.like.share", "x.like.length", "x.like.length_spread"},
                                        {"y.like.share", "y.like.length", "y.like.length_spread"}};
  if (!unicon__tensor_find(&r->file, axis_name[side])) return UNICON_OK;
  const int64_t axes = rows_of(r, axis_name[side]);
  UNICON_TRY(read_tensor(ctx, r, mean_name[side], d, 0, &like->mean));
  UNICON_TRY(read_tensor(ctx, r, axis_name[side], axes, d, &like->axis));
  UNICON_TRY(read_positive(ctx, r, key[side][0], &like->share));
  UNICON_TRY(read_positive(ctx, r, key[side][1], &like->length));
  UNICON_TRY(read_positive(ctx, r, key[side][2], &like->length_spread));
  like->axes = axes;
  return UNICON_OK;
}

/* A curve of scores, which must not fall. */
static unicon_status read_curve(unicon_ctx *ctx, const reading *r, int which) {
  unicon__curve *curve = &r->model->curve[which];
  if (!unicon__tensor_find(&r->file, curve_name[which])) return UNICON_OK;
  const int64_t knots = rows_of(r, curve_name[which]);
  UNICON_TRY(read_tensor(ctx, r, curve_name[which], knots, 2, &curve->knot));
  for (int64_t k = 1; k < knots; k++)
    if (!(curve->knot[2 * k] > curve->knot[2 * k - 2] &&
          curve->knot[2 * k + 1] >= curve->knot[2 * k - 1]))
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: tensor %s is a curve that falls", r->path,
                          curve_name[which]);
  curve->knots = knots;
  return UNICON_OK;
}

/* Of models that migrate: which way the vectors go. */
static unicon_status read_direction(unicon_ctx *ctx, const reading *r) {
  const char *text = unicon_model_meta(r->model, "direction");
  const unicon__part *part = &r->model->part[0];
  if (!text) return UNICON_OK;
  const bool to_new = strcmp(text, "old-to-new") == 0, to_old = strcmp(text, "new-to-old") == 0;
  if (!to_new && !to_old && strcmp(text, "shared") != 0)
    return bad_entry(ctx, r, "direction", text);
  if ((part->weight[UNICON__OLD] != NULL) == to_old ||
      (part->weight[UNICON__NEW] != NULL) == to_new)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: its weights do not fit its direction %s",
                        r->path, text);
  for (int side = 0; side < 2; side++) {
    UNICON_TRY(read_likeness(ctx, r, side));
    UNICON_TRY(read_curve(ctx, r, side));
  }
  return UNICON_OK;
}

static unicon_status check_format(unicon_ctx *ctx, const reading *r) {
  const char *format = unicon_model_meta(r->model, "format");
  int64_t version;
  if (format && strcmp(format, "unicon-stats") == 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s holds statistics, not a model; fit a model from them first", r->path);
  if (!format || strcmp(format, "unicon") != 0)
    return unicon__fail(
        ctx, UNICON_ERR_FORMAT,
        "%s is a safetensors file but not a unicon model (metadata \"format\" is not "
        "\"unicon\")",
        r->path);
  UNICON_TRY(read_number(ctx, r, "format_version", 1, INT32_MAX, &version));
  if (version > FORMAT_MAJOR)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has model format %lld, newer than the %d that unicon %s reads; use a "
                        "newer unicon",
                        r->path, (long long)version, FORMAT_MAJOR, unicon_version());
  return UNICON_OK;
}

unicon_status unicon__model_parse(unicon_ctx *ctx, unicon_model *model, const char *path,
                                  unicon__bytes bytes) {
  reading r = {.model = model, .path = path};
  UNICON_TRY(unicon__safetensors_parse(ctx, &ctx->arena, path, bytes, &r.file));
  for (int64_t k = 0; k < r.file.metas; k++)
    UNICON_TRY(unicon__model_note_text(ctx, model, r.file.meta[k].key, r.file.meta[k].value));
  unicon__model_seal(model);
  UNICON_TRY(check_format(ctx, &r));
  UNICON_TRY(read_number(ctx, &r, "rank", 1, 1 << 24, &model->rank));
  UNICON_TRY(read_tensor(ctx, &r, "spectrum", model->rank, 0, &model->spectrum));
  UNICON_TRY(read_parts(ctx, &r));
  UNICON_TRY(read_direction(ctx, &r));
  return read_balance(ctx, &r);
}

static unicon_status from_bytes(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon_model **out) {
  unicon_model *model = NULL;
  UNICON_TRY(unicon__model_create(ctx, &model));
  const unicon_status status = unicon__model_parse(ctx, model, name, bytes);
  if (status == UNICON_OK)
    *out = model;
  else
    unicon_model_destroy(model);
  return status;
}

unicon_status unicon__model_load(unicon_ctx *ctx, const char *path, unicon_model **out) {
  unicon__bytes bytes;
  UNICON_NEED(ctx, path);
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = from_bytes(ctx, path, bytes, out);
  unicon__bytes_unmap(&bytes);
  return status;
}

unicon_status unicon_model_load(unicon_ctx *ctx, const char *path, unicon_model **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, unicon__model_load(ctx, path, out));
}

static unicon_status take_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                unicon_model **out) {
  UNICON_NEED(ctx, bytes);
  UNICON_NEED(ctx, out);
  return from_bytes(ctx, "the bytes", (unicon__bytes){bytes, size}, out);
}

unicon_status unicon_model_from_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                      unicon_model **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, take_bytes(ctx, bytes, size, out));
}
