/* SPDX-License-Identifier: Apache-2.0 */
/* The .stats file: a safetensors container, docs/model-format.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/object.h"
#include "io/text.h"
#include "kept/kept.h"

enum { FORMAT_MAJOR = 1, TENSORS_MOST = 40, FIGURES = 5, UNIT_COLUMNS = 4 };

static const char format_name[] = "unicon-stats";
static const double most_rows = 1e18, most_pairs = 1e60; /* with weights up to 3e38 each */

/* Numbers of the metadata, and where they are. */
typedef struct figure {
  const char *key;
  double *value;
} figure;

static void figures_of(unicon_stats *s, figure out[FIGURES]) {
  const figure all[FIGURES] = {{"n_x", &s->sums.rows[0]},
                               {"n_y", &s->sums.rows[1]},
                               {"pairs", &s->pairs},
                               {"weight_x_to_y", &s->sums.way[0].weight},
                               {"weight_y_to_x", &s->sums.way[1].weight}};
  memcpy(out, all, sizeof all);
}

/* Arrays of float64, and their shapes; those of pairs, or of classes, have no data. */
typedef struct table {
  const char *name;
  double *data;
  int64_t rows, cols; /* cols 0: a vector */
} table;

enum { TABLES = 14 };

static void tables_of(const unicon_stats *s, table out[TABLES]) {
  const unicon__stats *u = &s->sums;
  const int64_t p_x = u->p[0], p_y = u->p[1], classes = u->classes;
  const table all[TABLES] = {{"x.sum", u->sum[0], p_x, 0},
                             {"y.sum", u->sum[1], p_y, 0},
                             {"x.gram", u->gram[0], p_x, p_x},
                             {"y.gram", u->gram[1], p_y, p_y},
                             {"xy.cross", u->way[0].cross, p_x, p_y},
                             {"yx.cross", u->way[1].cross, p_x, p_y},
                             {"xy.x", u->way[0].left, p_x, 0},
                             {"xy.y", u->way[0].right, p_y, 0},
                             {"yx.x", u->way[1].left, p_x, 0},
                             {"yx.y", u->way[1].right, p_y, 0},
                             {"x.class.rows", u->class_rows[0], classes, 0},
                             {"y.class.rows", u->class_rows[1], classes, 0},
                             {"x.class.sum", u->class_sum[0], classes, p_x},
                             {"y.class.sum", u->class_sum[1], classes, p_y}};
  memcpy(out, all, sizeof all);
}

/* ---- writing ------------------------------------------------------------------------------ */

typedef struct writing {
  unicon__tensor tensor[TENSORS_MOST];
  int64_t count;
} writing;

static void put(writing *w, const char *name, const char *dtype, size_t size, const void *data,
                int64_t rows, int64_t cols) {
  unicon__tensor *t = &w->tensor[w->count++];
  *t = (unicon__tensor){
      .name = name, .dtype = dtype, .shape = {rows, cols}, .dims = cols >= 0 ? 2 : 1, .data = data};
  t->bytes = (size_t)(rows * (cols >= 0 ? cols : 1)) * size;
}

static void put_map(writing *w, const unicon__map *map, int s) {
  static const char *const name[2][4] = {{"x.landmarks", "x.directions", "x.phases", "x.factor"},
                                         {"y.landmarks", "y.directions", "y.phases", "y.factor"}};
  const bool random = map->kind == UNICON__MAP_RANDOM;
  if (map->kind == UNICON__MAP_LINEAR) return;
  put(w, name[s][random], "F32", sizeof(float), map->base, map->points, map->in);
  if (random && unicon__kernel_is_fourier(map->kernel.kind))
    put(w, name[s][2], "F32", sizeof(float), map->square, map->points, -1);
  if (map->factor) put(w, name[s][3], "F32", sizeof(float), map->factor, map->points, map->out);
}

static unicon_status put_sample(unicon_ctx *ctx, writing *w, const unicon__sample *s) {
  static const char *const name[2][4] = {
      {"x.sample", "x.sample.length", "x.sample.hash", "x.sample.label"},
      {"y.sample", "y.sample.length", "y.sample.hash", "y.sample.label"}};
  double *key;
  int64_t *unit, *pair;
  if (s->room == 0) return UNICON_OK;
  UNICON_NEW(ctx, key, s->units);
  UNICON_NEW(ctx, unit, UNIT_COLUMNS * s->units);
  UNICON_NEW(ctx, pair, 2 * s->pairs);
  for (int64_t k = 0; k < s->units; k++) {
    const unicon__unit *u = &s->unit[k];
    const int64_t row[UNIT_COLUMNS] = {u->rows[0], u->rows[1], u->pairs, u->whole};
    key[k] = u->key;
    memcpy(unit + UNIT_COLUMNS * k, row, sizeof row);
  }
  for (int64_t k = 0; k < 2 * s->pairs; k++) pair[k] = s->pair[k];
  put(w, "sample.key", "F64", sizeof *key, key, s->units, -1);
  put(w, "sample.unit", "I64", sizeof *unit, unit, s->units, UNIT_COLUMNS);
  put(w, "sample.pair", "I64", sizeof *pair, pair, s->pairs, 2);
  put(w, "sample.weight", "F32", sizeof(float), s->weight, s->pairs, -1);
  for (int side = 0; side < 2; side++) {
    put(w, name[side][0], "F16", 2, s->half[side], s->rows[side], s->width[side]);
    put(w, name[side][1], "F32", sizeof(float), s->length[side], s->rows[side], -1);
    put(w, name[side][2], "U64", 8, s->hash[side], s->rows[side], -1);
    if (s->labelled) put(w, name[side][3], "I64", 8, s->label[side], s->rows[side], -1);
  }
  return UNICON_OK;
}

static unicon_status note_sample(unicon_ctx *ctx, const unicon_stats *s, unicon_model *model) {
  const unicon__sample *sample = &s->sample;
  UNICON_TRY(unicon__model_note_integer(ctx, model, "sample_rows", sample->room));
  UNICON_TRY(unicon__model_note_real(ctx, model, "sample_threshold", 17, sample->threshold[0]));
  if (s->sums.classes == 0) return UNICON_OK;
  return unicon__model_note_real(ctx, model, "sample_threshold_y", 17, sample->threshold[1]);
}

/* Metadata, by way of a model that has the maps and nothing else. */
static unicon_status note_all(unicon_ctx *ctx, const unicon_stats *s, unicon_model *model) {
  unicon_stats copy = *s;
  figure figures[FIGURES];
  char hash[24];
  model->parts = 1;
  UNICON_ARENA_NEW(ctx, &model->arena, model->part, 1);
  for (int side = 0; side < 2; side++) model->part[0].map[side] = s->map[side];
  UNICON_TRY(unicon__model_note_text(ctx, model, "format", format_name));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "format_version", FORMAT_MAJOR));
  UNICON_TRY(unicon__model_note_text(ctx, model, "library_version", unicon_version()));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_x", s->map[0].in));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_y", s->map[1].in));
  UNICON_TRY(unicon__model_note_maps(ctx, model));
  UNICON_TRY(unicon__model_note_text(ctx, model, "unpaired", s->unpaired ? "on" : "off"));
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)unicon__kept_hash(s));
  UNICON_TRY(unicon__model_note_text(ctx, model, "maps", hash));
  figures_of(&copy, figures);
  for (int k = 0; k < FIGURES; k++)
    UNICON_TRY(unicon__model_note_real(ctx, model, figures[k].key, 17, *figures[k].value));
  UNICON_TRY(unicon__model_note_text(ctx, model, "decayed", s->decayed ? "on" : "off"));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "updates", s->updates));
  if (s->sums.classes > 0)
    UNICON_TRY(unicon__model_note_integer(ctx, model, "classes", s->sums.classes));
  UNICON_TRY(unicon__model_note_text(ctx, model, "vectors", s->vectors));
  UNICON_TRY(unicon__model_note_text(ctx, model, "ledger", s->ledger.on ? "on" : "off"));
  UNICON_TRY(note_sample(ctx, s, model));
  unicon__model_seal(model);
  return UNICON_OK;
}

static unicon_status content_of(unicon_ctx *ctx, const unicon_stats *s, unicon_model *notes,
                                unicon__safetensors *out) {
  writing *w;
  table tables[TABLES];
  UNICON_NEW(ctx, w, 1);
  UNICON_TRY(note_all(ctx, s, notes));
  tables_of(s, tables);
  for (int k = 0; k < TABLES; k++)
    if (tables[k].data)
      put(w, tables[k].name, "F64", sizeof(double), tables[k].data, tables[k].rows,
          tables[k].cols > 0 ? tables[k].cols : -1);
  if (s->sums.classes > 0) put(w, "class.key", "I64", 8, s->sums.class_key, s->sums.classes, -1);
  for (int side = 0; side < 2; side++) put_map(w, &s->map[side], side);
  UNICON_TRY(put_sample(ctx, w, &s->sample));
  if (s->ledger.on) put(w, "x.ledger", "U64", 8, s->ledger.entry[0], s->ledger.count[0], -1);
  if (s->ledger.on) put(w, "y.ledger", "U64", 8, s->ledger.entry[1], s->ledger.count[1], -1);
  *out = (unicon__safetensors){
      .tensor = w->tensor, .tensors = w->count, .meta = notes->meta, .metas = notes->metas};
  return UNICON_OK;
}

static unicon_status save(unicon_ctx *ctx, const unicon_stats *stats, const char *path) {
  unicon__safetensors content;
  unicon_model *notes = NULL;
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, path);
  UNICON_TRY(unicon__model_create(ctx, &notes));
  unicon_status status = content_of(ctx, stats, notes, &content);
  if (status == UNICON_OK) status = unicon__safetensors_write(ctx, path, &content);
  unicon_model_destroy(notes);
  return status;
}

unicon_status unicon_stats_save(unicon_ctx *ctx, const unicon_stats *stats, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, save(ctx, stats, path));
}

static unicon_status to_bytes(unicon_ctx *ctx, const unicon_stats *stats, void *out, size_t room,
                              size_t *size) {
  unicon__safetensors content;
  unicon_model *notes = NULL;
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, size);
  UNICON_TRY(unicon__model_create(ctx, &notes));
  unicon_status status = content_of(ctx, stats, notes, &content);
  if (status == UNICON_OK) status = unicon__safetensors_bytes(ctx, &content, out, room, size);
  unicon_model_destroy(notes);
  return status;
}

unicon_status unicon_stats_to_bytes(unicon_ctx *ctx, const unicon_stats *stats, void *out,
                                    size_t room, size_t *size) {
  if (size) *size = 0;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, to_bytes(ctx, stats, out, room, size));
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct reading {
  unicon_stats *stats;
  unicon_model *notes;
  const char *path;
  unicon__safetensors file;
} reading;

static unicon_status bad_entry(unicon_ctx *ctx, const reading *r, const char *key) {
  const char *text = unicon_model_meta(r->notes, key);
  return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: metadata %s is %s%s%s", r->path, key,
                      text ? "\"" : "missing", text ? text : "", text ? "\"" : "");
}

static unicon_status bad_tensor(unicon_ctx *ctx, const reading *r, const char *name,
                                const char *what) {
  return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: tensor %s %s", r->path, name, what);
}

static unicon_status read_number(unicon_ctx *ctx, const reading *r, const char *key, double low,
                                 double high, double *out) {
  const char *text = unicon_model_meta(r->notes, key);
  char *end = NULL;
  *out = text ? unicon__number_read(text, &end) : 0;
  const bool fine = text && end != text && !*end && *out >= low && *out <= high;
  return fine ? UNICON_OK : bad_entry(ctx, r, key);
}

static unicon_status read_flag(unicon_ctx *ctx, const reading *r, const char *key, bool *out) {
  const char *text = unicon_model_meta(r->notes, key);
  *out = text && strcmp(text, "on") == 0;
  return *out || (text && strcmp(text, "off") == 0) ? UNICON_OK : bad_entry(ctx, r, key);
}

/* The named tensor, of rows (or any number, -1) by cols (-1: a vector). */
static unicon_status find(unicon_ctx *ctx, const reading *r, const char *name, const char *dtype,
                          int64_t rows, int64_t cols, const unicon__tensor **out) {
  const unicon__tensor *t = unicon__tensor_find(&r->file, name);
  *out = t;
  if (!t)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s is not complete: it has no tensor %s", r->path,
                        name);
  const bool fine = strcmp(t->dtype, dtype) == 0 && t->dims == (cols >= 0 ? 2 : 1) &&
                    (rows < 0 ? t->shape[0] <= INT32_MAX : t->shape[0] == rows) &&
                    (cols < 0 || t->shape[1] == cols);
  return fine ? UNICON_OK : bad_tensor(ctx, r, name, "is not the array that the metadata promise");
}

/* Every class has rows, and all of them together are those of the sides. */
static unicon_status check_classes(unicon_ctx *ctx, const reading *r) {
  static const char *const name[2] = {"x.class.rows", "y.class.rows"};
  const unicon__stats *sums = &r->stats->sums;
  if (sums->classes == 0) return UNICON_OK;
  for (int s = 0; s < 2; s++) {
    double all = 0;
    for (int64_t k = 0; k < sums->classes; k++) {
      const double own = sums->class_rows[s][k], other = sums->class_rows[1 - s][k];
      if (!(own >= 0 && own <= most_rows && (own > 0 || other > 0)))
        return bad_tensor(ctx, r, name[s], "holds what is no number of rows");
      all += own;
    }
    if (!(fabs(all - sums->rows[s]) <= 1e-6 * all))
      return bad_tensor(ctx, r, name[s], "is not what the metadata count");
  }
  r->stats->pairs = unicon__kept_class_pairs(sums);
  return UNICON_OK;
}

static unicon_status read_tables(unicon_ctx *ctx, const reading *r) {
  table tables[TABLES];
  tables_of(r->stats, tables);
  for (int k = 0; k < TABLES; k++) {
    const table *t = &tables[k];
    const unicon__tensor *from;
    if (!t->data) continue;
    UNICON_TRY(find(ctx, r, t->name, "F64", t->rows, t->cols > 0 ? t->cols : -1, &from));
    memcpy(t->data, from->data, from->bytes);
    for (size_t i = 0; i < from->bytes / sizeof(double); i++)
      if (!isfinite(t->data[i]))
        return bad_tensor(ctx, r, t->name, "holds a value that is not finite");
  }
  UNICON_TRY(check_classes(ctx, r));
  for (int s = 0; s < 2; s++)
    for (int64_t k = 0; k < r->stats->sums.p[s]; k++)
      r->stats->sums.square[s][k] = r->stats->sums.gram[s][k * r->stats->sums.p[s] + k];
  return UNICON_OK;
}

/* A factor that leads from kernel values to features. */
static unicon_status read_factor(unicon_ctx *ctx, const reading *r, int s) {
  static const char *const name[2] = {"x.factor", "y.factor"};
  unicon__map *map = &r->stats->map[s];
  const unicon__tensor *t;
  if (!unicon__map_is_kernel(map)) return UNICON_OK;
  UNICON_TRY(find(ctx, r, name[s], "F32", map->points, map->points, &t));
  UNICON_ARENA_NEW(ctx, &r->stats->arena, map->factor, map->points * map->points);
  memcpy(map->factor, t->data, t->bytes);
  for (int64_t k = 0; k < map->points * map->points; k++) {
    const int64_t below = k / map->points - k % map->points;
    if (!isfinite(map->factor[k]) || (below > 0 && map->factor[k] != 0) ||
        (below == 0 && map->factor[k] == 0))
      return bad_tensor(ctx, r, name[s],
                        "is no upper triangle of finite numbers, none of the diagonal being 0");
  }
  map->out = map->points;
  map->kind = UNICON__MAP_NYSTROM;
  return UNICON_OK;
}

static unicon_status read_maps(unicon_ctx *ctx, const reading *r) {
  UNICON_TRY(unicon__model_parse_maps(ctx, r->notes, r->path, &r->file));
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(
        unicon__kept_copy_map(ctx, &r->stats->arena, &r->notes->part[0].map[s], &r->stats->map[s]));
    UNICON_TRY(read_factor(ctx, r, s));
  }
  return r->stats->map[0].normalize == r->stats->map[1].normalize
             ? UNICON_OK
             : bad_entry(ctx, r, "y.normalize");
}

/* Units: numbers that ascend below the threshold, and sizes. */
static unicon_status read_units(unicon_ctx *ctx, const reading *r) {
  unicon__sample *s = &r->stats->sample;
  const unicon__tensor *key, *unit;
  int64_t at[3] = {0, 0, 0};
  UNICON_TRY(find(ctx, r, "sample.key", "F64", -1, -1, &key));
  UNICON_TRY(find(ctx, r, "sample.unit", "I64", key->shape[0], UNIT_COLUMNS, &unit));
  s->units = key->shape[0];
  UNICON_ARENA_NEW(ctx, &r->stats->arena, s->unit, s->units);
  for (int64_t k = 0; k < s->units; k++) {
    unicon__unit *u = &s->unit[k];
    int64_t row[UNIT_COLUMNS];
    memcpy(&u->key, (const char *)key->data + 8 * k, sizeof u->key);
    memcpy(row, (const char *)unit->data + (size_t)k * sizeof row, sizeof row);
    if (!(u->key >= (k > 0 ? u[-1].key : 0) && u->key < s->threshold[s->labelled && row[1] > 0]))
      return bad_tensor(ctx, r, "sample.key", "does not ascend to the threshold");
    bool fine = true;
    for (int c = 0; c < 3; c++)
      fine = fine && row[c] >= !s->labelled && row[c] <= UNICON__UNIT_ROWS * UNICON__UNIT_ROWS;
    fine = fine && (!s->labelled || (row[0] + row[1] == 1 && row[2] == 0 && row[3] == 1));
    if (!fine) return bad_tensor(ctx, r, "sample.unit", "has a unit of impossible size");
    *u = (unicon__unit){.key = u->key,
                        .whole = row[3] == 1,
                        .rows = {row[0], row[1]},
                        .pairs = row[2],
                        .at = {at[0], at[1]},
                        .at_pair = at[2]};
    for (int c = 0; c < 3; c++) at[c] += row[c];
  }
  s->rows[0] = at[0];
  s->rows[1] = at[1];
  s->pairs = at[2];
  return UNICON_OK;
}

static unicon_status read_pairs(unicon_ctx *ctx, const reading *r) {
  unicon__sample *s = &r->stats->sample;
  const unicon__tensor *pair, *weight;
  UNICON_TRY(find(ctx, r, "sample.pair", "I64", s->pairs, 2, &pair));
  UNICON_TRY(find(ctx, r, "sample.weight", "F32", s->pairs, -1, &weight));
  UNICON_ARENA_NEW(ctx, &r->stats->arena, s->pair, 2 * s->pairs);
  UNICON_ARENA_NEW(ctx, &r->stats->arena, s->weight, s->pairs);
  memcpy(s->weight, weight->data, weight->bytes);
  for (int64_t u = 0; u < s->units; u++)
    for (int64_t k = s->unit[u].at_pair; k < s->unit[u].at_pair + s->unit[u].pairs; k++) {
      int64_t row[2];
      memcpy(row, (const char *)pair->data + (size_t)k * sizeof row, sizeof row);
      for (int c = 0; c < 2; c++) {
        if (row[c] < 0 || row[c] >= s->unit[u].rows[c])
          return bad_tensor(ctx, r, "sample.pair", "names a row that its unit does not have");
        s->pair[2 * k + c] = (int32_t)row[c];
      }
      if (!(s->weight[k] >= 0 && isfinite(s->weight[k])))
        return bad_tensor(ctx, r, "sample.weight", "holds what is no weight");
    }
  return UNICON_OK;
}

static unicon_status read_rows(unicon_ctx *ctx, const reading *r, int side) {
  static const char *const name[2][4] = {
      {"x.sample", "x.sample.length", "x.sample.hash", "x.sample.label"},
      {"y.sample", "y.sample.length", "y.sample.hash", "y.sample.label"}};
  unicon__sample *s = &r->stats->sample;
  unicon__arena *arena = &r->stats->arena;
  const int64_t rows = s->rows[side], d = s->width[side];
  const unicon__tensor *half, *length, *hash, *label = NULL;
  UNICON_TRY(find(ctx, r, name[side][0], "F16", rows, d, &half));
  UNICON_TRY(find(ctx, r, name[side][1], "F32", rows, -1, &length));
  UNICON_TRY(find(ctx, r, name[side][2], "U64", rows, -1, &hash));
  if (s->labelled) UNICON_TRY(find(ctx, r, name[side][3], "I64", rows, -1, &label));
  if (s->labelled) UNICON_ARENA_NEW(ctx, arena, s->label[side], rows);
  if (s->labelled) memcpy(s->label[side], label->data, label->bytes);
  UNICON_ARENA_NEW(ctx, arena, s->half[side], rows * d);
  UNICON_ARENA_NEW(ctx, arena, s->length[side], rows);
  UNICON_ARENA_NEW(ctx, arena, s->hash[side], rows);
  memcpy(s->half[side], half->data, half->bytes);
  memcpy(s->length[side], length->data, length->bytes);
  memcpy(s->hash[side], hash->data, hash->bytes);
  for (int64_t k = 0; k < rows * d; k++)
    if ((s->half[side][k] & 0x7fff) > 0x3c01) /* |value| a little above 1, inf or NaN */
      return bad_tensor(ctx, r, name[side][0], "holds a value that is no coordinate of a unit row");
  for (int64_t i = 0; i < rows; i++)
    if (!(s->length[side][i] >= 0 && isfinite(s->length[side][i])))
      return bad_tensor(ctx, r, name[side][1], "holds what is no length");
  return UNICON_OK;
}

static unicon_status read_sample(unicon_ctx *ctx, const reading *r) {
  unicon__sample *s = &r->stats->sample;
  double room;
  UNICON_TRY(read_number(ctx, r, "sample_rows", 0, 1e8, &room));
  unicon__sample_init(s, (int64_t)room, r->stats->map[0].in, r->stats->map[1].in);
  s->labelled = r->stats->sums.classes > 0;
  UNICON_TRY(read_number(ctx, r, "sample_threshold", 0, INFINITY, &s->threshold[0]));
  if (s->labelled)
    UNICON_TRY(read_number(ctx, r, "sample_threshold_y", 0, INFINITY, &s->threshold[1]));
  if (s->room == 0) return UNICON_OK;
  UNICON_TRY(read_units(ctx, r));
  if (s->units > 0 && unicon__kept_is_empty(r->stats))
    return bad_tensor(ctx, r, "sample.key", "has rows, but nothing was summed");
  UNICON_TRY(read_pairs(ctx, r));
  UNICON_TRY(read_rows(ctx, r, 0));
  return read_rows(ctx, r, 1);
}

static unicon_status read_ledger(unicon_ctx *ctx, const reading *r) {
  static const char *const name[2] = {"x.ledger", "y.ledger"};
  unicon__ledger *ledger = &r->stats->ledger;
  UNICON_TRY(read_flag(ctx, r, "ledger", &ledger->on));
  for (int s = 0; s < 2 && ledger->on; s++) {
    const unicon__tensor *t;
    UNICON_TRY(find(ctx, r, name[s], "U64", -1, -1, &t));
    ledger->count[s] = t->shape[0];
    UNICON_ARENA_NEW(ctx, &r->stats->arena, ledger->entry[s], ledger->count[s]);
    memcpy(ledger->entry[s], t->data, t->bytes);
    for (int64_t k = 1; k < ledger->count[s]; k++)
      if (ledger->entry[s][k] < ledger->entry[s][k - 1])
        return bad_tensor(ctx, r, name[s], "does not ascend");
  }
  return UNICON_OK;
}

static unicon_status check_format(unicon_ctx *ctx, const reading *r) {
  const char *format = unicon_model_meta(r->notes, "format");
  double version;
  if (format && strcmp(format, "unicon") == 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is a model, not statistics; `unicon stats` makes those", r->path);
  if (!format || strcmp(format, format_name) != 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is a safetensors file without statistics (metadata \"format\" is not "
                        "\"%s\")",
                        r->path, format_name);
  UNICON_TRY(read_number(ctx, r, "format_version", 1, INT32_MAX, &version));
  if (version > FORMAT_MAJOR)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has statistics format %g, newer than the %d that unicon %s reads; use "
                        "a newer unicon",
                        r->path, version, FORMAT_MAJOR, unicon_version());
  return UNICON_OK;
}

/* The hash of the maps must be that of the maps that were read: no part can pass for another's. */
static unicon_status check_maps(unicon_ctx *ctx, const reading *r) {
  const char *text = unicon_model_meta(r->notes, "maps");
  char hash[24];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)unicon__kept_hash(r->stats));
  return text && strcmp(text, hash) == 0 ? UNICON_OK : bad_entry(ctx, r, "maps");
}

/* Sums of pairs, or of as many classes as there are keys. */
static unicon_status open_sums(unicon_ctx *ctx, const reading *r) {
  unicon_stats *s = r->stats;
  const unicon__tensor *t;
  int64_t *key;
  double classes;
  if (!unicon_model_meta(r->notes, "classes")) return unicon__kept_open(ctx, s);
  UNICON_TRY(read_number(ctx, r, "classes", 1, INT32_MAX, &classes));
  UNICON_TRY(find(ctx, r, "class.key", "I64", (int64_t)classes, -1, &t));
  UNICON_NEW(ctx, key, (int64_t)classes);
  memcpy(key, t->data, t->bytes);
  for (int64_t k = 1; k < t->shape[0]; k++)
    if (key[k] <= key[k - 1]) return bad_tensor(ctx, r, t->name, "does not ascend");
  return unicon__kept_open_sums(ctx, &s->arena, s->map, s->unpaired, key, t->shape[0], &s->sums);
}

static unicon_status read_all(unicon_ctx *ctx, reading *r) {
  unicon_stats *s = r->stats;
  figure figures[FIGURES];
  double updates;
  for (int64_t k = 0; k < r->file.metas; k++)
    UNICON_TRY(unicon__model_note_text(ctx, r->notes, r->file.meta[k].key, r->file.meta[k].value));
  UNICON_TRY(check_format(ctx, r));
  UNICON_TRY(read_maps(ctx, r));
  UNICON_TRY(read_flag(ctx, r, "unpaired", &s->unpaired));
  UNICON_TRY(check_maps(ctx, r));
  UNICON_TRY(open_sums(ctx, r));
  figures_of(s, figures);
  for (int k = 0; k < FIGURES; k++)
    UNICON_TRY(read_number(ctx, r, figures[k].key, -1, most_pairs, figures[k].value));
  for (int side = 0; side < 2; side++)
    if (s->sums.rows[side] > most_rows) return bad_entry(ctx, r, figures[side].key);
  UNICON_TRY(read_flag(ctx, r, "decayed", &s->decayed));
  UNICON_TRY(read_number(ctx, r, "updates", 0, 1e15, &updates));
  s->updates = (int64_t)updates;
  const char *vectors = unicon_model_meta(r->notes, "vectors");
  snprintf(s->vectors, sizeof s->vectors, "%s", vectors ? vectors : "mixed");
  UNICON_TRY(read_tables(ctx, r));
  UNICON_TRY(read_sample(ctx, r));
  return read_ledger(ctx, r);
}

unicon_status unicon__kept_parse(unicon_ctx *ctx, unicon_stats *stats, const char *name,
                                 unicon__bytes bytes) {
  reading r = {.stats = stats, .path = name};
  stats->name = unicon__text_copy(ctx, &stats->arena, name);
  if (!stats->name) return UNICON_ERR_MEMORY;
  UNICON_TRY(unicon__safetensors_parse(ctx, &ctx->arena, name, bytes, &r.file));
  UNICON_TRY(unicon__model_create(ctx, &r.notes));
  const unicon_status status = read_all(ctx, &r);
  unicon_model_destroy(r.notes);
  return status;
}

static unicon_status from_bytes(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon_stats **out) {
  unicon_stats *stats = NULL;
  UNICON_TRY(unicon__kept_new(ctx, &stats));
  const unicon_status status = unicon__kept_parse(ctx, stats, name, bytes);
  if (status == UNICON_OK)
    *out = stats;
  else
    unicon_stats_destroy(stats);
  return status;
}

static unicon_status load(unicon_ctx *ctx, const char *path, unicon_stats **out) {
  unicon__bytes bytes;
  UNICON_NEED(ctx, path);
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = from_bytes(ctx, path, bytes, out);
  unicon__bytes_unmap(&bytes);
  return status;
}

unicon_status unicon_stats_load(unicon_ctx *ctx, const char *path, unicon_stats **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, load(ctx, path, out));
}

static unicon_status take_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                unicon_stats **out) {
  UNICON_NEED(ctx, bytes);
  UNICON_NEED(ctx, out);
  return from_bytes(ctx, "the bytes", (unicon__bytes){bytes, size}, out);
}

unicon_status unicon_stats_from_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                      unicon_stats **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, take_bytes(ctx, bytes, size, out));
}
