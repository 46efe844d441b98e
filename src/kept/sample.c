/* SPDX-License-Identifier: Apache-2.0 */
#include "kept/sample.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/sweep.h"
#include "features/dataset.h"
#include "linalg/convert.h"
#include "linalg/vec.h"

enum { HASH_ROWS = 64 };

/* ---- content ------------------------------------------------------------------------------ */

uint64_t unicon__hash_of(uint64_t a, uint64_t b) {
  const uint64_t both[2] = {a, b};
  return unicon__hash(0x756e69636f6e, both, sizeof both);
}

typedef struct hashing {
  const unicon__source *source;
  float *buffer; /* per worker */
  uint64_t *out;
  unsigned char *bad; /* of each item, or NULL */
} hashing;

static void hash_item(void *state, unicon__cell cell) {
  const hashing *h = state;
  const int64_t first = cell.row * HASH_ROWS, left = h->source->count - first;
  const int64_t count = left < HASH_ROWS ? left : HASH_ROWS, d = h->source->rows->width;
  float *rows = h->buffer + cell.worker * HASH_ROWS * d;
  unicon__rows_load(h->source->rows, h->source->index ? h->source->index + first : NULL,
                    h->source->index ? 0 : first, count, rows, d);
  if (h->bad) {
    int64_t column;
    h->bad[cell.row] = unicon__first_bad_row(rows, count, d, h->source->look->need, &column) >= 0;
  }
  for (int64_t k = 0; k < count * d; k++) rows[k] += 0.0f; /* -0 is 0 */
  for (int64_t i = 0; i < count; i++)
    h->out[first + i] = unicon__hash((uint64_t)d, rows + i * d, (size_t)d * sizeof *rows);
}

unicon_status unicon__row_hashes(unicon_ctx *ctx, const unicon__source *source, uint64_t **out) {
  const int64_t items = (source->count + HASH_ROWS - 1) / HASH_ROWS;
  hashing h = {.source = source};
  UNICON_NEW(ctx, *out, source->count);
  h.out = *out;
  if (source->look) UNICON_NEW(ctx, h.bad, items);
  UNICON_NEW(ctx, h.buffer, unicon__workers_for(ctx, items) * HASH_ROWS * source->rows->width);
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, items, hash_item, &h));
  unicon__drop(ctx, h.buffer);
  for (int64_t k = 0; h.bad && k < items; k++)
    if (h.bad[k]) return unicon__look_refuse(ctx, source->look);
  return UNICON_OK;
}

/* ---- units of a set ----------------------------------------------------------------------- */

/* A unit that may enter. */
typedef struct candidate {
  double key;
  int64_t size;            /* rows */
  int side;                /* of a labelled row; else 0 */
  int64_t component, x, y; /* component -1: the pair (x, y) */
  float weight;
} candidate;

typedef struct candidates {
  const unicon__batch *set;
  candidate *list;
  int64_t count;
  int64_t *number; /* component of each row, those of x first */
  int64_t components;
} candidates;

/* The number of a unit by its content: standard exponential. */
static double key_of(uint64_t content) {
  return -log(unicon__uniform(content, UNICON__STREAM_SAMPLE, 0, 0));
}

/* Is it the number of the same content? The logarithm of another library may be the neighbouring
 * double; that of other content is as near once in 10^14. */
static bool is_key(double a, double b) {
  return fabs(a - b) <= ldexp(fmax(a, b), -49);
}

static float weight_of(unicon__partners p, int64_t k) {
  return p.weight ? p.weight[k] : 1;
}

static uint64_t pair_content(uint64_t x, uint64_t y, float weight) {
  uint32_t bits;
  memcpy(&bits, &weight, sizeof bits);
  return unicon__hash_of(unicon__hash_of(x, y), bits);
}

static int by_key(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b; /* the first member */
  return (left > right) - (left < right);
}

static int64_t label_of(const unicon_pairs *pairs, int side, int64_t row) {
  return pairs->class_key[(side == 0 ? pairs->class_x : pairs->class_y)[row]];
}

/* Labels: a unit for each row. */
static unicon_status list_rows(unicon_ctx *ctx, const unicon__batch *set,
                               const uint64_t *const hash[2], const double threshold[2],
                               candidates *out) {
  const int64_t n_x = set->x.count, n = n_x + set->y.count;
  *out = (candidates){.set = set, .components = n};
  UNICON_NEW(ctx, out->number, n);
  UNICON_NEW(ctx, out->list, n);
  for (int64_t i = 0; i < n; i++) {
    const int side = i >= n_x;
    const int64_t row = side ? i - n_x : i;
    const uint64_t content = unicon__hash_of(unicon__hash_of(hash[side][row], 1 + (uint64_t)side),
                                             (uint64_t)label_of(set->pairs, side, row));
    const candidate c = {.key = key_of(content), .size = 1, .side = side, .component = i};
    out->number[i] = i;
    if (c.key < threshold[side]) out->list[out->count++] = c;
  }
  qsort(out->list, (size_t)out->count, sizeof *out->list, by_key);
  return UNICON_OK;
}

/* Components with their content and rows, then a unit for each, or for each of its pairs. */
static unicon_status list_units(unicon_ctx *ctx, const unicon__batch *set,
                                const uint64_t *const hash[2], const double threshold[2],
                                candidates *out) {
  if (set->pairs->class_x) return list_rows(ctx, set, hash, threshold, out);
  const int64_t n_x = set->x.count, n_y = set->y.count;
  int64_t largest, *size, room = 0;
  uint64_t *content;
  *out = (candidates){.set = set};
  UNICON_TRY(unicon__components(ctx, set, NULL, &out->number, &out->components, &largest));
  UNICON_NEW(ctx, size, out->components);
  UNICON_NEW(ctx, content, out->components);
  for (int64_t i = 0; i < n_x + n_y; i++) size[out->number[i]]++;
  for (int64_t i = 0; i < n_x; i++) content[out->number[i]] += unicon__hash_of(hash[0][i], 1);
  for (int64_t j = 0; j < n_y; j++) content[out->number[n_x + j]] += unicon__hash_of(hash[1][j], 2);
  for (int64_t i = 0; i < n_x; i++) {
    const unicon__partners p = unicon__positives_x(set->pairs, i);
    const int64_t own = out->number[i];
    for (int64_t k = 0; k < p.count; k++)
      content[own] += pair_content(hash[0][i], hash[1][unicon__partner(p, k)], weight_of(p, k));
    room += size[own] > UNICON__UNIT_ROWS ? p.count : p.count > 0;
  }
  UNICON_NEW(ctx, out->list, room);
  for (int64_t i = 0; i < n_x; i++) {
    const unicon__partners p = unicon__positives_x(set->pairs, i);
    const int64_t own = out->number[i];
    const bool whole = size[own] <= UNICON__UNIT_ROWS;
    for (int64_t k = 0; k < (whole ? p.count > 0 : p.count); k++) {
      const int64_t j = unicon__partner(p, k);
      const uint64_t number =
          whole ? content[own] : pair_content(hash[0][i], hash[1][j], weight_of(p, k));
      const candidate c = {key_of(number), whole ? size[own] : 2, 0, whole ? own : -1, i, j,
                           weight_of(p, k)};
      if (c.key < threshold[0] && size[own] > 0) out->list[out->count++] = c;
    }
    if (whole) size[own] = 0; /* once */
  }
  qsort(out->list, (size_t)out->count, sizeof *out->list, by_key);
  unicon__drop(ctx, content);
  unicon__drop(ctx, size);
  return UNICON_OK;
}

/* ---- a sample in the making --------------------------------------------------------------- */

void unicon__sample_init(unicon__sample *sample, int64_t room, int64_t width_x, int64_t width_y) {
  const double none = room > 0 ? INFINITY : 0;
  *sample = (unicon__sample){.room = room, .threshold = {none, none}, .width = {width_x, width_y}};
}

bool unicon__sample_is_all(const unicon__sample *sample) {
  return isinf(sample->threshold[0]) && isinf(sample->threshold[1]);
}

/* Room for so many units, rows and pairs. */
static unicon_status open_arrays(unicon_ctx *ctx, unicon__arena *arena, int64_t units,
                                 const int64_t rows[2], int64_t pairs, unicon__sample *out) {
  UNICON_ARENA_NEW(ctx, arena, out->unit, units);
  UNICON_ARENA_NEW(ctx, arena, out->pair, 2 * pairs);
  UNICON_ARENA_NEW(ctx, arena, out->weight, pairs);
  for (int s = 0; s < 2; s++) {
    UNICON_ARENA_NEW(ctx, arena, out->half[s], rows[s] * out->width[s]);
    UNICON_ARENA_NEW(ctx, arena, out->length[s], rows[s]);
    UNICON_ARENA_NEW(ctx, arena, out->hash[s], rows[s]);
    if (out->labelled) UNICON_ARENA_NEW(ctx, arena, out->label[s], rows[s]);
  }
  return UNICON_OK;
}

void unicon__sample_drop(unicon__arena *arena, unicon__sample *s) {
  void *const all[] = {s->unit,      s->pair,    s->weight,  s->half[0],  s->half[1], s->length[0],
                       s->length[1], s->hash[0], s->hash[1], s->label[0], s->label[1]};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) unicon__arena_drop(arena, all[k]);
  unicon__sample_init(s, s->room, s->width[0], s->width[1]);
}

/* Number and rows of a unit that may enter. */
typedef struct ranked {
  double key;
  int64_t size, number;
  int side;
} ranked;

/* One of each number: a text for a class may be there as often as the class has images, and one row
 * would fill the sample. */
static int64_t once(ranked *list, int64_t count) {
  int64_t kept = 0;
  for (int64_t k = 0; k < count; k++)
    if (kept == 0 || !is_key(list[k].key, list[kept - 1].key)) list[kept++] = list[k];
  return kept;
}

/* Keeps those of the units, whose numbers ascend, that have room; lowers the threshold, of the side
 * of a labelled row, where one has none. How many there are. */
static int64_t fitting(ranked *list, int64_t count, unicon__sample *out) {
  const int64_t room = out->labelled ? out->room / 2 : out->room;
  double *threshold = out->threshold;
  int64_t used[2] = {0, 0}, kept = 0;
  if (out->labelled) count = once(list, count);
  for (int64_t k = 0; k < count; k++) {
    const int s = list[k].side;
    if (list[k].key >= threshold[s]) continue;
    if (used[s] + list[k].size > room)
      threshold[s] = list[k].key;
    else
      used[s] += list[k].size;
  }
  for (int64_t k = 0; k < count; k++) /* not those of the same content as one without room */
    if (list[k].key < threshold[list[k].side]) list[kept++] = list[k];
  return kept;
}

/* Row `row` of the set as row `to` of the sample. */
static void take_row(const unicon__batch *set, int side, int64_t row, const uint64_t *hash,
                     float *buffer, unicon__sample *out, int64_t to) {
  const unicon__source *source = side == 0 ? &set->x : &set->y;
  const int64_t d = out->width[side], original = source->index ? source->index[row] : row;
  unicon__rows_load(source->rows, NULL, original, 1, buffer, d);
  const double length = unicon__row_length(unicon__vec_best(), buffer, d);
  for (int64_t k = 0; k < d && length > 0; k++) buffer[k] = (float)((double)buffer[k] / length);
  unicon__to_half(buffer, d, out->half[side] + to * d);
  out->length[side][to] = (float)fmin(length, FLT_MAX);
  out->hash[side][to] = hash[row];
  if (out->labelled) out->label[side][to] = label_of(set->pairs, side, row);
}

/* Counts rows and pairs of the units that entered: unit_of[component], or -1. */
static void count_units(const candidates *c, int64_t kept, const int32_t *unit_of,
                        unicon__sample *out) {
  const int64_t n_x = c->set->x.count, n_y = c->set->y.count;
  for (int64_t k = 0; k < kept; k++) {
    const bool whole = c->list[k].component >= 0;
    out->unit[k] = (unicon__unit){.key = c->list[k].key, .whole = whole};
    if (whole) continue;
    out->unit[k].rows[0] = out->unit[k].rows[1] = out->unit[k].pairs = 1;
  }
  for (int64_t i = 0; i < n_x + n_y; i++) {
    const int32_t unit = unit_of[c->number[i]];
    if (unit < 0) continue;
    out->unit[unit].rows[i >= n_x]++;
    if (i < n_x && !out->labelled)
      out->unit[unit].pairs += unicon__positives_x(c->set->pairs, i).count;
  }
}

/* Where each unit starts. */
static void place_units(unicon__sample *s) {
  int64_t at[3] = {0, 0, 0};
  for (int64_t k = 0; k < s->units; k++) {
    unicon__unit *u = &s->unit[k];
    u->at[0] = at[0];
    u->at[1] = at[1];
    u->at_pair = at[2];
    at[0] += u->rows[0];
    at[1] += u->rows[1];
    at[2] += u->pairs;
  }
  s->rows[0] = at[0];
  s->rows[1] = at[1];
  s->pairs = at[2];
}

static void put_pair(unicon__sample *s, int64_t at, int64_t x, int64_t y, float weight) {
  s->pair[2 * at] = (int32_t)x;
  s->pair[2 * at + 1] = (int32_t)y;
  s->weight[at] = weight;
}

/* Rows and pairs of the units. `place` is the number of each row of the set inside its unit. */
static void fill_units(const candidates *c, int64_t kept, const int32_t *unit_of,
                       const uint64_t *const hash[2], float *buffer, int32_t *place,
                       int64_t *filled, unicon__sample *out) {
  const unicon__batch *set = c->set;
  const int64_t n_x = set->x.count, n_y = set->y.count;
  for (int64_t k = 0; k < kept; k++) {
    if (c->list[k].component >= 0) continue;
    const unicon__unit *u = &out->unit[k];
    take_row(set, 0, c->list[k].x, hash[0], buffer, out, u->at[0]);
    take_row(set, 1, c->list[k].y, hash[1], buffer, out, u->at[1]);
    put_pair(out, u->at_pair, 0, 0, c->list[k].weight);
  }
  for (int64_t i = 0; i < n_x + n_y; i++) {
    const int32_t unit = unit_of[c->number[i]];
    const int side = i >= n_x;
    if (unit < 0) continue;
    place[i] = (int32_t)filled[2 * unit + side]++;
    take_row(set, side, side == 0 ? i : i - n_x, hash[side], buffer, out,
             out->unit[unit].at[side] + place[i]);
  }
  memset(filled, 0, (size_t)(2 * kept) * sizeof *filled);
  for (int64_t i = 0; i < n_x && !out->labelled; i++) {
    const int32_t unit = unit_of[c->number[i]];
    const unicon__partners p = unicon__positives_x(set->pairs, i);
    for (int64_t k = 0; unit >= 0 && k < p.count; k++)
      put_pair(out, out->unit[unit].at_pair + filled[2 * unit]++, place[i],
               place[n_x + unicon__partner(p, k)], weight_of(p, k));
  }
}

unicon_status unicon__sample_of(unicon_ctx *ctx, const unicon__batch *set,
                                const uint64_t *const hash[2], const unicon__sample *like,
                                unicon__sample *out) {
  candidates c;
  ranked *rank;
  int64_t rows[2] = {0, 0}, pairs = 0, *filled;
  int32_t *unit_of, *place;
  float *buffer;
  unicon__sample_init(out, like->room, like->width[0], like->width[1]);
  memcpy(out->threshold, like->threshold, sizeof out->threshold);
  out->labelled = set->pairs->class_x != NULL;
  if (like->room == 0) return UNICON_OK;
  UNICON_TRY(list_units(ctx, set, hash, like->threshold, &c));
  UNICON_NEW(ctx, rank, c.count);
  for (int64_t k = 0; k < c.count; k++)
    rank[k] = (ranked){c.list[k].key, c.list[k].size, k, c.list[k].side};
  const int64_t kept = fitting(rank, c.count, out);
  for (int64_t k = 0; k < kept; k++) c.list[k] = c.list[rank[k].number];
  UNICON_NEW(ctx, unit_of, c.components);
  memset(unit_of, 0xff, (size_t)c.components * sizeof *unit_of);
  for (int64_t k = 0; k < kept; k++)
    if (c.list[k].component >= 0) unit_of[c.list[k].component] = (int32_t)k;
  UNICON_NEW(ctx, out->unit, kept);
  count_units(&c, kept, unit_of, out);
  for (int64_t k = 0; k < kept; k++) {
    for (int s = 0; s < 2; s++) rows[s] += out->unit[k].rows[s];
    pairs += out->unit[k].pairs;
  }
  unicon__unit *unit = out->unit;
  UNICON_TRY(open_arrays(ctx, &ctx->arena, 0, rows, pairs, out));
  out->unit = unit;
  out->units = kept;
  place_units(out);
  UNICON_NEW(ctx, buffer, like->width[0] > like->width[1] ? like->width[0] : like->width[1]);
  UNICON_NEW(ctx, place, set->x.count + set->y.count);
  UNICON_NEW(ctx, filled, 2 * kept);
  fill_units(&c, kept, unit_of, hash, buffer, place, filled, out);
  return UNICON_OK;
}

/* ---- sums of samples ---------------------------------------------------------------------- */

/* A unit of one of two samples. */
typedef struct ref {
  double key;
  int64_t size;
  const unicon__sample *from;
  int64_t unit;
} ref;

static void copy_unit(const unicon__sample *from, const unicon__unit *a, const unicon__unit *b,
                      unicon__sample *to) {
  for (int s = 0; s < 2; s++) {
    const int64_t d = from->width[s];
    memcpy(to->half[s] + b->at[s] * d, from->half[s] + a->at[s] * d,
           (size_t)(a->rows[s] * d) * sizeof **to->half);
    memcpy(to->length[s] + b->at[s], from->length[s] + a->at[s],
           (size_t)a->rows[s] * sizeof **to->length);
    memcpy(to->hash[s] + b->at[s], from->hash[s] + a->at[s],
           (size_t)a->rows[s] * sizeof **to->hash);
    if (to->labelled)
      memcpy(to->label[s] + b->at[s], from->label[s] + a->at[s],
             (size_t)a->rows[s] * sizeof **to->label);
  }
  memcpy(to->pair + 2 * b->at_pair, from->pair + 2 * a->at_pair,
         (size_t)(2 * a->pairs) * sizeof *to->pair);
  memcpy(to->weight + b->at_pair, from->weight + a->at_pair, (size_t)a->pairs * sizeof *to->weight);
}

/* A sample of the units in the list; room, threshold and widths of `out` are set. */
static unicon_status build(unicon_ctx *ctx, unicon__arena *arena, const ref *list, int64_t count,
                           unicon__sample *out) {
  int64_t rows[2] = {0, 0}, pairs = 0;
  for (int64_t k = 0; k < count; k++) {
    const unicon__unit *u = &list[k].from->unit[list[k].unit];
    for (int s = 0; s < 2; s++) rows[s] += u->rows[s];
    pairs += u->pairs;
  }
  UNICON_TRY(open_arrays(ctx, arena, count, rows, pairs, out));
  out->units = count;
  for (int64_t k = 0; k < count; k++) out->unit[k] = list[k].from->unit[list[k].unit];
  place_units(out);
  for (int64_t k = 0; k < count; k++)
    copy_unit(list[k].from, &list[k].from->unit[list[k].unit], &out->unit[k], out);
  return UNICON_OK;
}

/* Of a labelled row; else 0. */
static int side_of(const unicon__sample *s, int64_t unit) {
  return s->labelled && s->unit[unit].rows[1] > 0;
}

static int64_t list_refs(const unicon__sample *s, ref *out) {
  for (int64_t k = 0; k < s->units; k++) {
    const unicon__unit *u = &s->unit[k];
    out[k] = (ref){u->key, u->rows[0] + u->rows[1], s, k};
  }
  return s->units;
}

unicon_status unicon__sample_merge(unicon_ctx *ctx, unicon__arena *arena, const unicon__sample *a,
                                   const unicon__sample *b, unicon__sample *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  ref *list;
  ranked *rank;
  UNICON_NEW(ctx, list, a->units + b->units);
  int64_t count = list_refs(a, list);
  count += list_refs(b, list + count);
  qsort(list, (size_t)count, sizeof *list, by_key);
  unicon__sample_init(out, a->room < b->room ? a->room : b->room, a->width[0], a->width[1]);
  for (int s = 0; s < 2; s++) out->threshold[s] = fmin(a->threshold[s], b->threshold[s]);
  out->labelled = a->labelled || b->labelled; /* one without units is of either kind */
  UNICON_NEW(ctx, rank, count);
  for (int64_t k = 0; k < count; k++)
    rank[k] = (ranked){list[k].key, list[k].size, k, side_of(list[k].from, list[k].unit)};
  count = fitting(rank, count, out);
  for (int64_t k = 0; k < count; k++) list[k] = list[rank[k].number];
  UNICON_TRY(build(ctx, arena, list, count, out));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* ---- removal ------------------------------------------------------------------------------ */

static int by_hash(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

/* The units that are not marked. */
static unicon_status without_marked(unicon_ctx *ctx, unicon__arena *arena,
                                    const unicon__sample *sample, const unsigned char *gone,
                                    unicon__sample *out) {
  ref *list;
  int64_t kept = 0;
  UNICON_NEW(ctx, list, sample->units);
  list_refs(sample, list);
  unicon__sample_init(out, sample->room, sample->width[0], sample->width[1]);
  memcpy(out->threshold, sample->threshold, sizeof out->threshold);
  out->labelled = sample->labelled;
  for (int64_t k = 0; k < sample->units; k++)
    if (!gone[k]) list[kept++] = list[k];
  return build(ctx, arena, list, kept, out);
}

/* The first unit from `at` on whose number is not below this one; is it this one? */
static bool find_key(const unicon__sample *sample, double wanted, int64_t *at) {
  while (*at < sample->units && sample->unit[*at].key < wanted &&
         !is_key(sample->unit[*at].key, wanted))
    ++*at;
  return *at < sample->units && is_key(sample->unit[*at].key, wanted);
}

/* Marks the first unit from *at on with this number, once each; numbers are asked for in order. Was
 * there one? */
static bool mark_key(const unicon__sample *sample, double wanted, int64_t *at,
                     unsigned char *gone) {
  const bool found = find_key(sample, wanted, at);
  if (found) gone[(*at)++] = 1;
  return found;
}

/* Marks units that have a pair among `pair`, ascending contents of pairs without their weights. */
static void mark_pairs(const unicon__sample *s, const uint64_t *pair, int64_t count,
                       unsigned char *gone) {
  for (int64_t u = 0; u < s->units && count > 0; u++) {
    const unicon__unit *unit = &s->unit[u];
    for (int64_t k = unit->at_pair; k < unit->at_pair + unit->pairs && !gone[u]; k++) {
      const uint64_t wanted = unicon__hash_of(s->hash[0][unit->at[0] + s->pair[2 * k]],
                                              s->hash[1][unit->at[1] + s->pair[2 * k + 1]]);
      gone[u] = bsearch(&wanted, pair, (size_t)count, sizeof *pair, by_hash) != NULL;
    }
  }
}

/* Pairs of units of the set that the sample does not have as such: a part of one may be there. */
static unicon_status pairs_of(unicon_ctx *ctx, const unicon__batch *set,
                              const uint64_t *const hash[2], const candidates *c,
                              const unicon__sample *sample, uint64_t **out, int64_t *count) {
  unsigned char *there;
  *count = 0;
  if (sample->labelled) return UNICON_OK; /* a row is there as such, or not */
  UNICON_NEW(ctx, there, c->components);
  UNICON_NEW(ctx, *out, set->pairs->positive.count);
  for (int64_t k = 0, u = 0; k < c->count; k++) {
    if (find_key(sample, c->list[k].key, &u) && c->list[k].component >= 0)
      there[c->list[k].component] = 1;
  }
  for (int64_t i = 0; i < set->x.count; i++) {
    const unicon__partners p = unicon__positives_x(set->pairs, i);
    for (int64_t k = 0; k < p.count && !there[c->number[i]]; k++)
      (*out)[(*count)++] = unicon__hash_of(hash[0][i], hash[1][unicon__partner(p, k)]);
  }
  qsort(*out, (size_t)*count, sizeof **out, by_hash);
  return UNICON_OK;
}

unicon_status unicon__sample_remove(unicon_ctx *ctx, unicon__arena *arena,
                                    const unicon__sample *sample, const unicon__batch *set,
                                    const uint64_t *const hash[2], int64_t *strangers,
                                    unicon__sample *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  static const double all[2] = {INFINITY, INFINITY};
  candidates c;
  unsigned char *gone;
  uint64_t *pair = NULL;
  int64_t pairs = 0;
  UNICON_TRY(list_units(ctx, set, hash, all, &c));
  UNICON_NEW(ctx, gone, sample->units);
  UNICON_TRY(pairs_of(ctx, set, hash, &c, sample, &pair, &pairs));
  mark_pairs(sample, pair, pairs, gone);
  for (int64_t k = 0, at = 0; k < c.count; k++)
    *strangers += !mark_key(sample, c.list[k].key, &at, gone);
  UNICON_TRY(without_marked(ctx, arena, sample, gone, out));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__sample_subtract(unicon_ctx *ctx, unicon__arena *arena,
                                      const unicon__sample *sample, const unicon__sample *less,
                                      int64_t *strangers, unicon__sample *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  unsigned char *gone;
  UNICON_NEW(ctx, gone, sample->units);
  for (int64_t k = 0, at = 0; k < less->units; k++)
    *strangers += !mark_key(sample, less->unit[k].key, &at, gone);
  for (int64_t k = 0; k < sample->units; k++)
    if (sample->unit[k].key >= less->threshold[side_of(sample, k)]) gone[k] = 1;
  UNICON_TRY(without_marked(ctx, arena, sample, gone, out));
  for (int s = 0; s < 2; s++) out->threshold[s] = fmin(sample->threshold[s], less->threshold[s]);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

void unicon__sample_shared(const unicon__sample *sample, const unicon__sample *more, int side,
                           int64_t *could, int64_t *are) {
  *could = *are = 0;
  for (int64_t k = 0, at = 0; k < more->units; k++) {
    const double key = more->unit[k].key;
    if (side_of(more, k) != side || !(key < sample->threshold[side])) continue;
    ++*could;
    *are += find_key(sample, key, &at);
  }
}

void unicon__sample_decay(unicon__sample *sample, double keep) {
  for (int64_t k = 0; k < sample->units; k++) sample->unit[k].key /= keep;
  for (int s = 0; s < 2; s++) sample->threshold[s] /= keep;
}

unicon_status unicon__sample_rows(unicon_ctx *ctx, const unicon__sample *sample, int side,
                                  float **out) {
  const int64_t d = sample->width[side];
  UNICON_NEW(ctx, *out, sample->rows[side] * d);
  for (int64_t i = 0; i < sample->rows[side]; i++) {
    float *row = *out + i * d;
    unicon__convert(UNICON_F16, (const unsigned char *)(sample->half[side] + i * d), 2, d, row);
    for (int64_t k = 0; k < d; k++) row[k] *= sample->length[side][i];
  }
  return UNICON_OK;
}
