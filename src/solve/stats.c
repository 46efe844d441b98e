/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/stats.h"

#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "solve/stats_chunk.h"
#include "solve/stats_device.h"
#include "solve/stats_rows.h"

enum {
  CHUNKS_MOST = 2, /* added to a tile one after the other, while it is in the cache */
  FILL_ROWS = 128, /* of a piece of work that makes rows */
  FEW_FEATURES = 256,
  MANY_FEATURES = 1024,
  GROUPS_MOST = 8
};

/* ---- room --------------------------------------------------------------------------------- */

static bool has_lists(const unicon_pairs *pairs) {
  return pairs->only_listed || pairs->self_x || pairs->ignore.count > 0 ||
         pairs->negative.count > 0;
}

/* Classes that have rows on both sides. */
static unicon_status keep_classes(unicon_ctx *ctx, unicon__arena *arena, const unicon_pairs *pairs,
                                  unicon__stats *out) {
  unsigned char *kept;
  UNICON_ARENA_NEW(ctx, arena, kept, out->classes);
  for (int64_t k = 0; k < out->classes; k++)
    kept[k] = unicon__list_at(&pairs->positive.by_x, k).count > 0 &&
              unicon__list_at(&pairs->positive.by_y, k).count > 0;
  out->class_kept = kept;
  return UNICON_OK;
}

unicon_status unicon__stats_open(unicon_ctx *ctx, unicon__arena *arena, const unicon__batch *like,
                                 const int64_t lead[2], unsigned holds, unicon__stats *out) {
  const unicon__source *source[2] = {&like->x, &like->y};
  *out = (unicon__stats){.holds = holds, .ratio = -1};
  for (int s = 0; s < 2; s++) {
    out->p[s] = source[s]->map->out < lead[s] ? source[s]->map->out : lead[s];
    UNICON_ARENA_NEW(ctx, arena, out->sum[s], out->p[s]);
    UNICON_ARENA_NEW(ctx, arena, out->square[s], out->p[s]);
    if (holds & (unsigned)(UNICON__STATS_GRAM_X << s))
      UNICON_ARENA_NEW(ctx, arena, out->gram[s], out->p[s] * out->p[s]);
  }
  if (!(holds & UNICON__STATS_CROSS)) return UNICON_OK;
  out->listed = has_lists(like->pairs);
  out->classes = like->pairs->class_x && !out->listed ? like->pairs->classes : 0;
  out->class_key = like->pairs->class_key;
  for (int s = 0; s < 2 && out->classes > 0; s++) {
    UNICON_ARENA_NEW(ctx, arena, out->class_rows[s], out->classes);
    UNICON_ARENA_NEW(ctx, arena, out->class_sum[s], out->classes * out->p[s]);
  }
  if (out->classes > 0) UNICON_TRY(keep_classes(ctx, arena, like->pairs, out));
  for (int s = 0; s < 2 && out->listed; s++) UNICON_ARENA_NEW(ctx, arena, out->alone[s], out->p[s]);
  if (out->classes > 0) return UNICON_OK;
  /* sets to come may have other numbers of partners, but for a fit's own splits */
  if (!out->listed && !(holds & UNICON__STATS_DOUBLE))
    out->ratio = unicon__pairs_ratio(like->pairs);
  for (int d = 0; d < 2; d++) {
    if (d == 0 || (out->ratio < 0 && !out->listed))
      UNICON_ARENA_NEW(ctx, arena, out->way[d].cross, out->p[0] * out->p[1]);
    UNICON_ARENA_NEW(ctx, arena, out->way[d].left, out->p[0]);
    UNICON_ARENA_NEW(ctx, arena, out->way[d].right, out->p[1]);
  }
  return UNICON_OK;
}

void unicon__stats_drop(unicon__arena *arena, unicon__stats *stats) {
  for (int s = 0; s < 2; s++) {
    unicon__direction *way = &stats->way[s];
    double *const all[] = {stats->sum[s],        stats->square[s],    stats->gram[s],
                           way->cross,           way->left,           way->right,
                           stats->class_rows[s], stats->class_sum[s], stats->alone[s]};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) unicon__arena_drop(arena, all[k]);
  }
  unicon__arena_drop(arena, (void *)(uintptr_t)stats->class_kept);
  *stats = (unicon__stats){.classes = 0};
}

/* ---- a set -------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* What the adding of a set works with. */
typedef struct adding {
  unicon_ctx *ctx;
  const unicon__batch *set;
  unicon__stats *stats;
  double sign;
  unicon__stats_rows rows;   /* T, and the weights of rows */
  int64_t *row[2], count[2]; /* rows that count; NULL: all */
  unicon__share own[2];      /* those of this process */
  int groups[2];             /* row groups with sums of their own: more work at once */
  int64_t group_rows[2];     /* rows of each */
  float *psi;                /* a chunk of features */
  unicon__stats_t t[2];      /* T of each direction */
  double *extra[2][UNICON__STATS_PRODUCTS]; /* sums of the groups */
  double mirror; /* H' = mirror H for this set, whose H' is not summed; or -1 */
} adding;

/* Where sums do not fit into the cache, it pays to add more rows to a tile at once. */
static int64_t group_rows_for(const unicon__stats *s, int side) {
  return s->p[side] <= FEW_FEATURES ? UNICON__STATS_CHUNK : CHUNKS_MOST * UNICON__STATS_CHUNK;
}

/* More groups where there are few tiles, but none without rows; by the shape alone, so that sums do
 * not depend on the threads. */
static int groups_for(const unicon__stats *s, int side, int64_t rows) {
  const int64_t p =
      side == 0 && (s->holds & UNICON__STATS_CROSS) && s->p[1] > s->p[0] ? s->p[1] : s->p[side];
  const int most = p <= FEW_FEATURES ? GROUPS_MOST : p <= MANY_FEATURES ? GROUPS_MOST / 2 : 1;
  const int64_t full = 1 + (rows - 1) / group_rows_for(s, side);
  return full < most ? (int)full : most;
}

/* Is H of this direction summed? */
static bool sums_cross(const adding *a, int d) {
  return a->stats->way[d].cross && (d == 0 || a->mirror < 0);
}

/* Sums of groups, where there is more than one. */
static unicon_status open_groups(adding *a) {
  const unicon__stats *s = a->stats;
  for (int side = 0; side < 2; side++) {
    const int64_t groups = a->groups[side];
    if (side == 0 && a->mirror >= 0) /* what this set adds, by itself */
      UNICON_NEW(a->ctx, a->extra[0][1], groups * s->p[0] * s->p[1]);
    if (groups == 1) continue;
    if (s->gram[side]) UNICON_NEW(a->ctx, a->extra[side][0], groups * s->p[side] * s->p[side]);
    for (int d = 0; d < 2 && side == 0; d++)
      if (sums_cross(a, d) && !a->extra[0][1 + d])
        UNICON_NEW(a->ctx, a->extra[0][1 + d], groups * s->p[0] * s->p[1]);
  }
  return UNICON_OK;
}

/* Where a product of this side goes: sums of groups, or the statistics themselves. */
static double *sums_for(const adding *a, int side, int k, double *own) {
  return a->extra[side][k] ? a->extra[side][k] : own;
}

/* Features of a chunk, rows made on all threads and, where nobody has, looked at. */
typedef struct filling {
  const unicon__source *source;
  const int64_t *row;
  int64_t first, count;
  float *out, *buffer;
} filling;

static void fill_item(void *state, unicon__cell cell) {
  const filling *f = state;
  const int64_t at = cell.row * FILL_ROWS, count = smaller(FILL_ROWS, f->count - at);
  const int64_t p = f->source->map->out;
  float *buffer = f->buffer + cell.worker * FILL_ROWS * unicon__map_room(f->source->map);
  if (f->source->look && !f->source->look->done) {
    float *raw = unicon__map_raw(f->source->map, buffer, count);
    unicon__source_load(f->source, NULL, f->first + at, count, raw);
    unicon__look_at(f->source->look, f->first + at, raw, count);
    unicon__map_apply(f->source->map, buffer, count);
    memcpy(f->out + at * p, buffer, (size_t)(count * p) * sizeof *buffer);
    return;
  }
  const float *rows = unicon__source_tile(f->source, f->row ? f->row + f->first + at : NULL,
                                          f->row ? 0 : f->first + at, count, buffer);
  memcpy(f->out + at * p, rows, (size_t)(count * p) * sizeof *rows);
}

_Static_assert((int)FILL_ROWS == (int)UNICON__LOOK_ROWS, "pieces of rows that are looked at");

/* A row that cannot be used: that of x is named first. */
static unicon_status refuse(adding *a) {
  if (a->set->x.look) UNICON_TRY(unicon__look_refuse(a->ctx, a->set->x.look));
  return a->set->y.look ? unicon__look_refuse(a->ctx, a->set->y.look) : UNICON_OK;
}

static unicon_status fill(adding *a, int side, int64_t first, int64_t count, const float **out) {
  const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
  const int64_t p = source->map->out, items = (count + FILL_ROWS - 1) / FILL_ROWS;
  if (source->cache && !source->cache_row && !a->row[side]) {
    *out = source->cache + first * p;
    return UNICON_OK;
  }
  filling f = {
      .source = source, .row = a->row[side], .first = first, .count = count, .out = a->psi};
  UNICON_NEW(a->ctx, f.buffer,
             unicon__workers_for(a->ctx, items) * FILL_ROWS * unicon__map_room(source->map));
  UNICON_TRY(unicon__sweep_rows(a->ctx, NULL, &unicon__blas_region, items, fill_item, &f));
  unicon__drop(a->ctx, f.buffer);
  *out = a->psi;
  return source->look && unicon__look_found(source->look, first, count) ? refuse(a) : UNICON_OK;
}

/* The products of a chunk of x: G_x and, T made, H of each direction. */
static unicon_status products_x(adding *a, unicon__stats_chunk *c) {
  unicon__stats *s = a->stats;
  const int64_t p_x = s->p[0], p_y = s->p[1];
  if (s->gram[0])
    unicon__stats_chunk_product(c, c->psi, c->ld, p_x, c->psi, c->ld, p_x,
                                sums_for(a, 0, 0, s->gram[0]));
  for (int d = 0; d < 2; d++) {
    if (!sums_cross(a, d)) continue;
    UNICON_TRY(unicon__stats_rows_make(a->ctx, &a->rows, d, a->row[0], c->first, c->rows, a->t[d]));
    c->product[c->products].wide_b = a->t[d].wide;
    unicon__stats_chunk_product(c, c->psi, c->ld, p_x, a->t[d].single, p_y, p_y,
                                sums_for(a, 0, 1 + d, s->way[d].cross));
  }
  return UNICON_OK;
}

static void products_y(const adding *a, unicon__stats_chunk *c) {
  const unicon__stats *s = a->stats;
  if (s->gram[1])
    unicon__stats_chunk_product(c, c->psi, c->ld, s->p[1], c->psi, c->ld, s->p[1],
                                sums_for(a, 1, 0, s->gram[1]));
}

/* The weighted sums of a side: h or h' of both directions, u or v alone. */
static unicon_status weights_of(const adding *a, unicon__stats_chunk *c) {
  const unicon__stats *s = a->stats;
  const int64_t *row = a->row[c->side];
  if (s->classes > 0) c->class_of = c->side == 0 ? a->set->pairs->class_x : a->set->pairs->class_y;
  if (!(s->holds & UNICON__STATS_CROSS) || s->classes > 0) return UNICON_OK;
  for (int w = 0; w < 2; w++) {
    const bool alone = s->listed && w == 1;
    double *of_way = c->side == 0 ? s->way[w].left : s->way[w].right;
    UNICON_NEW(a->ctx, c->weight[w], c->rows);
    c->sum[w] = alone ? s->alone[c->side] : of_way;
    if (alone)
      unicon__stats_rows_alone(&a->rows, c->side, row, c->first, c->rows, c->weight[w]);
    else
      unicon__stats_rows_totals(&a->rows, w, c->side, row, c->first, c->rows, c->weight[w]);
  }
  c->weights = 2;
  return UNICON_OK;
}

static int64_t step_of(const adding *a, int side) {
  return a->groups[side] * a->group_rows[side];
}

/* Are the rows of a side read in order from where they lie? */
static bool streams(const adding *a, int side) {
  const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
  return source->rows && !source->cache && !source->index && !a->row[side];
}

static unicon_status add_chunk(adding *a, int side, int64_t first) {
  unicon__block *frame = unicon__frame_open(a->ctx);
  const unicon_rows *rows = (side == 0 ? &a->set->x : &a->set->y)->rows;
  const int64_t step = step_of(a, side);
  unicon__stats_chunk c = {.stats = a->stats,
                           .side = side,
                           .groups = a->groups[side],
                           .first = first,
                           .rows = smaller(step, a->own[side].first + a->own[side].count - first),
                           .group_rows = a->group_rows[side],
                           .sign = a->sign,
                           .row = a->row[side],
                           .ld = (side == 0 ? a->set->x : a->set->y).map->out};
  if (streams(a, side)) unicon__rows_ahead(rows, first + step, step);
  UNICON_TRY(fill(a, side, first, c.rows, &c.psi));
  if (side == 0)
    UNICON_TRY(products_x(a, &c));
  else
    products_y(a, &c);
  UNICON_TRY(weights_of(a, &c));
  UNICON_TRY(unicon__stats_chunk_sum(a->ctx, &c));
  if (streams(a, side)) unicon__rows_behind(rows, first, c.rows);
  unicon__frame_close(a->ctx, frame);
  return UNICON_OK;
}

/* Sums of groups, in order, `factor` times. */
typedef struct folding {
  const double *from;
  double *to, factor;
  int64_t size;
  int groups;
} folding;

enum { FOLD_PIECE = 1 << 16 };

static void fold_piece(void *state, unicon__cell cell) {
  const folding *f = state;
  const int64_t first = cell.row * FOLD_PIECE, last = smaller(f->size, first + FOLD_PIECE);
  for (int g = 0; g < f->groups; g++)
    for (int64_t i = first; i < last; i++)
      f->to[i] += f->factor * f->from[(int64_t)g * f->size + i];
}

static unicon_status fold(const adding *a, int side, int k, double factor, double *to,
                          int64_t size) {
  folding f = {a->extra[side][k], to, factor, size, a->groups[side]};
  if (!f.from) return UNICON_OK;
  return unicon__sweep_rows(a->ctx, NULL, NULL, (size + FOLD_PIECE - 1) / FOLD_PIECE, fold_piece,
                            &f);
}

/* A chunk of x and one of y in turn, in the same proportion: partners that lie in the same order are
 * read from a file once. */
static unicon_status add_chunks(adding *a) {
  const int64_t step[2] = {step_of(a, 0), step_of(a, 1)};
  const int64_t chunks[2] = {(a->own[0].count + step[0] - 1) / step[0],
                             (a->own[1].count + step[1] - 1) / step[1]};
  int64_t done[2] = {0, 0};
  while (done[0] < chunks[0] || done[1] < chunks[1]) {
    const bool x =
        done[1] == chunks[1] || (done[0] < chunks[0] && done[0] * chunks[1] <= done[1] * chunks[0]);
    const int side = x ? 0 : 1;
    UNICON_TRY(unicon__stage_step(a->ctx, done[0] + done[1], chunks[0] + chunks[1]));
    UNICON_TRY(add_chunk(a, side, a->own[side].first + done[side]++ * step[side]));
  }
  return UNICON_OK;
}

static unicon_status close_side(adding *a, int side) {
  unicon__stats *s = a->stats;
  const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
  if (source->look) source->look->done = true;
  s->rows[side] += a->sign * (double)a->count[side];
  if (s->gram[side]) UNICON_TRY(fold(a, side, 0, 1, s->gram[side], s->p[side] * s->p[side]));
  for (int d = 0; d < 2 && side == 0; d++)
    if (sums_cross(a, d)) UNICON_TRY(fold(a, 0, 1 + d, 1, s->way[d].cross, s->p[0] * s->p[1]));
  if (side == 0 && a->mirror >= 0)
    return fold(a, 0, 1, a->mirror, s->way[1].cross, s->p[0] * s->p[1]);
  return UNICON_OK;
}

/* Does a row count? */
static bool counts(const unicon__stats *s, const unicon_pairs *pairs, int side, int64_t row) {
  if (s->classes > 0) return s->class_kept[(side == 0 ? pairs->class_x : pairs->class_y)[row]];
  return (side == 0 ? unicon__positives_x(pairs, row) : unicon__positives_y(pairs, row)).count > 0;
}

/* Rows that have a partner; NULL if all have. */
static unicon_status paired_rows(unicon_ctx *ctx, const unicon__stats *s, const unicon_pairs *pairs,
                                 int side, int64_t **row, int64_t *count) {
  const int64_t n = side == 0 ? pairs->n_x : pairs->n_y;
  *count = 0;
  for (int64_t i = 0; i < n; i++) *count += counts(s, pairs, side, i);
  *row = NULL;
  if (*count == n) return UNICON_OK;
  UNICON_NEW(ctx, *row, *count);
  for (int64_t i = 0, next = 0; i < n; i++)
    if (counts(s, pairs, side, i)) (*row)[next++] = i;
  return UNICON_OK;
}

/* Which rows count, and what weighs their pairs. */
static unicon_status open_adding(adding *a) {
  const unicon__stats *s = a->stats;
  for (int side = 0; side < 2; side++) {
    a->count[side] = (side == 0 ? &a->set->x : &a->set->y)->count;
    if (!(s->holds & UNICON__STATS_UNPAIRED) && !s->listed)
      UNICON_TRY(paired_rows(a->ctx, s, a->set->pairs, side, &a->row[side], &a->count[side]));
  }
  if (!(s->holds & UNICON__STATS_CROSS) || s->classes > 0) return UNICON_OK;
  return unicon__stats_rows_open(a->ctx, a->set, s->p[1], s->listed, &a->rows);
}

static unicon_status open_room(adding *a) {
  const unicon__stats *s = a->stats;
  int64_t psi = 0, t = 0;
  for (int side = 0; side < 2; side++) {
    const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
    a->groups[side] = groups_for(s, side, a->count[side]);
    a->group_rows[side] = group_rows_for(s, side);
    const int64_t rows = smaller(step_of(a, side), a->own[side].count);
    const bool own = !source->cache || source->cache_row || a->row[side];
    if (own && rows * source->map->out > psi) psi = rows * source->map->out;
    if (side == 0) t = rows * s->p[1];
  }
  UNICON_NEW(a->ctx, a->psi, psi);
  for (int d = 0; d < 2; d++) {
    if (!sums_cross(a, d)) continue;
    if (s->holds & UNICON__STATS_DOUBLE)
      UNICON_NEW(a->ctx, a->t[d].wide, t);
    else
      UNICON_NEW(a->ctx, a->t[d].single, t);
  }
  return open_groups(a);
}

static void add_totals(const adding *a) {
  unicon__stats *s = a->stats;
  const unicon_pairs *pairs = a->set->pairs;
  for (int side = 0; side < 2 && s->classes > 0; side++)
    for (int64_t i = 0; i < a->count[side]; i++) {
      const int64_t row = a->row[side] ? a->row[side][i] : i;
      s->class_rows[side][(side == 0 ? pairs->class_x : pairs->class_y)[row]] += a->sign;
    }
  if (!(s->holds & UNICON__STATS_CROSS) || s->classes > 0) return;
  for (int d = 0; d < (s->listed ? 1 : 2); d++)
    s->way[d].weight += a->sign * unicon__stats_rows_weight(&a->rows, d);
  for (int side = 0; side < 2 && s->listed; side++)
    s->alone_weight[side] += a->sign * a->rows.alone_weight[side];
}

static unicon_status check_like(unicon_ctx *ctx, const unicon__batch *set, const unicon__stats *s) {
  const unicon_pairs *pairs = set->pairs;
  if (!(s->holds & UNICON__STATS_CROSS)) return UNICON_OK;
  if (s->listed != has_lists(pairs) || (s->listed && s->rows[0] > 0))
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "statistics cannot be summed where pairs are ignored or negatives listed: "
                        "their weights depend on all rows");
  if (s->classes != (pairs->class_x && !s->listed ? pairs->classes : 0))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "statistics of %lld classes cannot take rows of %lld",
                        (long long)s->classes, (long long)(pairs->class_x ? pairs->classes : 0));
  const double ratio = s->classes > 0 || s->listed || s->way[1].cross ? -1 : s->ratio;
  if (ratio >= 0 && !unicon__pairs_have_ratio(pairs, ratio))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "statistics of %g partners a row cannot take rows with other numbers",
                        ratio);
  return UNICON_OK;
}

/* ---- several processes -------------------------------------------------------------------- */

/* The sums over rows: those of the features, by process; what totals add is known to all. */
typedef struct part {
  double *values;
  int64_t count;
} part;

enum { PARTS_MOST = 16 };

static int parts_of(const unicon__stats *s, part *out) {
  int parts = 0;
  for (int side = 0; side < 2; side++) {
    const int64_t p = s->p[side];
    out[parts++] = (part){s->sum[side], p};
    out[parts++] = (part){s->square[side], p};
    out[parts++] = (part){s->gram[side], p * p};
    out[parts++] = (part){s->class_sum[side], s->classes * p};
    out[parts++] = (part){s->alone[side], p};
    out[parts++] = (part){s->way[side].cross, s->p[0] * s->p[1]};
    out[parts++] = (part){s->way[side].left, s->p[0]};
    out[parts++] = (part){s->way[side].right, s->p[1]};
  }
  return parts;
}

/* Each process its share of the rows; the sum over processes begins with what process 0 had. */
static void share_rows(adding *a) {
  const unicon__stats *s = a->stats;
  const double p_x = (double)s->p[0], p_y = (double)s->p[1];
  const double wide = s->gram[0] || s->gram[1] ? 2 * (p_x > p_y ? p_x : p_y) : 0;
  const double most = s->way[0].cross && wide < 2 * p_y ? 2 * p_y : wide;
  double flops = 0;
  for (int side = 0; side < 2; side++) {
    const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
    const double row = (double)s->p[side] * (2 + most) + unicon__feature_flops(source);
    flops += (double)a->count[side] * row;
  }
  for (int side = 0; side < 2; side++)
    a->own[side] = unicon__share_of(a->ctx, a->count[side], 1, flops);
  part own[PARTS_MOST];
  const bool first = !a->own[0].divided || a->ctx->job.with.index == 0;
  for (int k = parts_of(s, own) - 1; k >= 0 && !first; k--)
    if (own[k].values) memset(own[k].values, 0, (size_t)own[k].count * sizeof *own[k].values);
}

static unicon_status sum_parts(const adding *a) {
  part own[PARTS_MOST];
  for (int k = parts_of(a->stats, own) - 1; k >= 0; k--)
    UNICON_TRY(unicon__sum_all(a->ctx, &a->own[0], own[k].values, own[k].count));
  return UNICON_OK;
}

static unicon_status add_on_host(adding *a) {
  share_rows(a);
  const bool both = a->stats->way[0].cross && a->stats->way[1].cross;
  a->mirror = both ? unicon__pairs_ratio(a->set->pairs) : -1;
  UNICON_TRY(open_room(a));
  unicon__blas_begin();
  const int stage = unicon__stage_begin(a->ctx, "statistics", 1);
  const unicon_status status = add_chunks(a);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__stage_end(a->ctx, stage);
  UNICON_TRY(close_side(a, 0));
  UNICON_TRY(close_side(a, 1));
  return sum_parts(a);
}

/* Rows that the sums will not meet one after the other are looked at before. */
static unicon_status look_before(adding *a) {
  for (int side = 0; side < 2; side++) {
    const unicon__source *source = side == 0 ? &a->set->x : &a->set->y;
    if (source->look &&
        (unicon__together(a->ctx) || a->row[side] || source->cache || source->index))
      UNICON_TRY(unicon__look_refuse(a->ctx, source->look));
  }
  return UNICON_OK;
}

static unicon_status add_on_device(adding *a, bool *done) {
  unicon__stats_job job = {.set = a->set,
                           .stats = a->stats,
                           .sign = a->sign,
                           .rows = &a->rows,
                           .row = {a->row[0], a->row[1]},
                           .count = {a->count[0], a->count[1]}};
  *done = false;
  if (!unicon__stats_device_serves(a->ctx, &job)) return UNICON_OK;
  UNICON_TRY(refuse(a));
  return unicon__device_run(a->ctx, "statistics", unicon__stats_road, &job, done);
}

unicon_status unicon__stats_add(unicon_ctx *ctx, const unicon__batch *set, double sign,
                                unicon__stats *stats) {
  unicon__block *frame = unicon__frame_open(ctx);
  adding a = {.ctx = ctx, .set = set, .stats = stats, .sign = sign};
  bool done;
  const int stage = unicon__stage_begin(ctx, "statistics", 0);
  UNICON_TRY(check_like(ctx, set, stats));
  UNICON_TRY(open_adding(&a));
  UNICON_TRY(look_before(&a));
  UNICON_TRY(add_on_device(&a, &done));
  if (!done) UNICON_TRY(add_on_host(&a));
  add_totals(&a);
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
