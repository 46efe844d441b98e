/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/stats.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "base/together.h"
#include "linalg/blas.h"
#include "solve/stats_device.h"
#include "solve/stats_rows.h"

enum {
  CHUNK_ROWS = 1024, /* of a float32 product: rounding grows with its root */
  FILL_ROWS = 128,   /* of a piece of work that makes rows */
  COLUMNS = 256,     /* of a piece of work that sums rows */
  TILE_SMALL = 128,  /* of products of few features, so that there are enough of them ... */
  TILE_LARGE = 256,  /* ... and of many */
  LARGE_FROM = 1024,
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

/* ---- products ----------------------------------------------------------------------------- */

/* out (m by n) += sign a^T b over the rows of a chunk. */
typedef struct product {
  const float *a, *b;
  const double *wide_b; /* in the place of b, where it is in float64 */
  int64_t lda, ldb, m, n, tile, tiles_m, tiles_n;
  bool lower; /* a is b: the lower triangle alone */
  double *out;
} product;

enum { PRODUCTS_MOST = 3, WEIGHTS_MOST = 4 };

/* One chunk of rows of one side: what is to be summed of it. */
typedef struct chunk {
  const unicon__stats *stats;
  int side, groups, products;
  int64_t first, rows; /* among the rows that count */
  product product[PRODUCTS_MOST];
  const float *psi; /* rows by ld */
  int64_t ld;
  double sign;
  int weights; /* weighted sums beside the plain one */
  const double *weight[WEIGHTS_MOST];
  double *sum[WEIGHTS_MOST];
  const int32_t *class_of;
  const int64_t *row; /* numbers of the rows, or NULL */
  float *scratch;     /* per worker: a tile */
  double *wide;       /* per worker: rows of a and b in float64, where asked for */
} chunk;

static int64_t tiles_of(const product *p) {
  return p->lower ? p->tiles_m * (p->tiles_m + 1) / 2 : p->tiles_m * p->tiles_n;
}

static void set_product(product *p, const float *a, int64_t lda, int64_t m, const float *b,
                        int64_t ldb, int64_t n, double *out) {
  const int64_t tile = (m < n ? m : n) < LARGE_FROM ? TILE_SMALL : TILE_LARGE;
  *p = (product){.a = a,
                 .lda = lda,
                 .m = m,
                 .b = b,
                 .ldb = ldb,
                 .n = n,
                 .tile = tile,
                 .tiles_m = (m + tile - 1) / tile,
                 .tiles_n = (n + tile - 1) / tile,
                 .lower = a == b,
                 .wide_b = p->wide_b,
                 .out = out};
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Tile number t of a product: its row and column of tiles. */
static void place_of(const product *p, int64_t t, int64_t *i, int64_t *j) {
  *i = p->lower ? (int64_t)((sqrt(8 * (double)t + 1) - 1) / 2) : t / p->tiles_n;
  if (!p->lower) {
    *j = t % p->tiles_n;
    return;
  }
  while (*i * (*i + 1) / 2 > t) --*i;
  while ((*i + 1) * (*i + 2) / 2 <= t) ++*i;
  *j = t - *i * (*i + 1) / 2;
}

static void widen(const float *from, int64_t ld, int64_t rows, int64_t cols, double *to) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < cols; k++) to[i * cols + k] = (double)from[i * ld + k];
}

/* Adds a tile over the rows of a group to the group's sums. */
static void add_tile(const chunk *c, const product *p, int64_t t, int64_t group, int64_t worker) {
  int64_t bi, bj;
  place_of(p, t, &bi, &bj);
  const int64_t i0 = bi * p->tile, j0 = bj * p->tile;
  const int64_t m = smaller(p->tile, p->m - i0), n = smaller(p->tile, p->n - j0);
  const int64_t r0 = group * CHUNK_ROWS, rows = smaller(CHUNK_ROWS, c->rows - r0);
  double *out = p->out + (group * p->m + i0) * p->n + j0;
  const float *a = p->a + r0 * p->lda + i0, *b = p->b ? p->b + r0 * p->ldb + j0 : NULL;
  if (rows <= 0) return;
  if (c->wide) {
    double *left = c->wide + worker * 2 * CHUNK_ROWS * TILE_LARGE;
    double *right = left + CHUNK_ROWS * (int64_t)TILE_LARGE;
    widen(a, p->lda, rows, m, left);
    if (!b)
      for (int64_t i = 0; i < rows; i++)
        memcpy(right + i * n, p->wide_b + (r0 + i) * p->ldb + j0, (size_t)n * sizeof *right);
    else
      widen(b, p->ldb, rows, n, right);
    unicon__dgemm(true, false, m, n, rows, c->sign, left, m, right, n, 1, out, p->n);
    return;
  }
  float *scratch = c->scratch + worker * TILE_LARGE * TILE_LARGE;
  unicon__sgemm(true, false, m, n, rows, 1, a, p->lda, b, p->ldb, 0, scratch, n);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[i * p->n + j] += c->sign * (double)scratch[i * n + j];
}

/* Plain, weighted and class sums of some columns. */
static void add_columns(const chunk *c, int64_t block) {
  const unicon__stats *s = c->stats;
  const int64_t p = s->p[c->side], k0 = block * COLUMNS, k1 = smaller(p, k0 + COLUMNS);
  for (int64_t i = 0; i < c->rows; i++) {
    const float *psi = c->psi + i * c->ld;
    double *sum = s->sum[c->side], *square = s->square[c->side];
    const int64_t row = c->row ? c->row[c->first + i] : c->first + i;
    for (int64_t k = k0; k < k1; k++) {
      sum[k] += c->sign * (double)psi[k];
      square[k] += c->sign * (double)psi[k] * (double)psi[k];
    }
    for (int w = 0; w < c->weights; w++) {
      const double weight = c->sign * c->weight[w][row];
      if (weight == 0) continue;
      for (int64_t k = k0; k < k1; k++) c->sum[w][k] += weight * (double)psi[k];
    }
    if (!c->class_of) continue;
    double *of_class = s->class_sum[c->side] + c->class_of[row] * p;
    for (int64_t k = k0; k < k1; k++) of_class[k] += c->sign * (double)psi[k];
  }
}

static int64_t items_of(const chunk *c) {
  int64_t items = (c->stats->p[c->side] + COLUMNS - 1) / COLUMNS;
  for (int k = 0; k < c->products; k++) items += tiles_of(&c->product[k]) * c->groups;
  return items;
}

static void chunk_item(void *state, unicon__cell cell) {
  const chunk *c = state;
  int64_t item = cell.row;
  for (int k = 0; k < c->products; k++) {
    const int64_t own = tiles_of(&c->product[k]) * c->groups;
    if (item < own) {
      add_tile(c, &c->product[k], item / c->groups, item % c->groups, cell.worker);
      return;
    }
    item -= own;
  }
  add_columns(c, item);
}

/* ---- a set -------------------------------------------------------------------------------- */

/* What the adding of a set works with. */
typedef struct adding {
  unicon_ctx *ctx;
  const unicon__batch *set;
  unicon__stats *stats;
  double sign;
  unicon__stats_rows rows;         /* T, and the weights of rows */
  int64_t *row[2], count[2];       /* rows that count; NULL: all */
  unicon__share own[2];            /* those of this process */
  int groups[2];                   /* row groups with sums of their own: more work at once */
  float *psi;                      /* a chunk of features */
  unicon__stats_t t[2];            /* T of each direction */
  double *extra[2][PRODUCTS_MOST]; /* sums of the groups */
} adding;

/* More groups where there are few tiles; by the shape alone, so that sums do not depend on the
 * threads. */
static int groups_for(const unicon__stats *s, int side) {
  const int64_t p =
      side == 0 && (s->holds & UNICON__STATS_CROSS) && s->p[1] > s->p[0] ? s->p[1] : s->p[side];
  return p <= 256 ? GROUPS_MOST : p <= LARGE_FROM ? GROUPS_MOST / 2 : 1;
}

/* Sums of groups, where there is more than one. */
static unicon_status open_groups(adding *a) {
  const unicon__stats *s = a->stats;
  for (int side = 0; side < 2; side++) {
    const int64_t groups = a->groups[side];
    if (groups == 1) continue;
    if (s->gram[side]) UNICON_NEW(a->ctx, a->extra[side][0], groups * s->p[side] * s->p[side]);
    for (int d = 0; d < 2 && side == 0; d++)
      if (s->way[d].cross) UNICON_NEW(a->ctx, a->extra[0][1 + d], groups * s->p[0] * s->p[1]);
  }
  return UNICON_OK;
}

/* Where a product of this side goes: sums of groups, or the statistics themselves. */
static double *sums_for(const adding *a, int side, int k, double *own) {
  return a->extra[side][k] ? a->extra[side][k] : own;
}

/* Features of a chunk, rows made on all threads. */
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
  const float *rows = unicon__source_tile(f->source, f->row ? f->row + f->first + at : NULL,
                                          f->row ? 0 : f->first + at, count, buffer);
  memcpy(f->out + at * p, rows, (size_t)(count * p) * sizeof *rows);
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
  return UNICON_OK;
}

/* The products of a chunk of x: G_x and, T made, H of each direction. */
static unicon_status products_x(adding *a, chunk *c) {
  unicon__stats *s = a->stats;
  const int64_t p_x = s->p[0], p_y = s->p[1];
  if (s->gram[0])
    set_product(&c->product[c->products++], c->psi, c->ld, p_x, c->psi, c->ld, p_x,
                sums_for(a, 0, 0, s->gram[0]));
  for (int d = 0; d < 2; d++) {
    if (!s->way[d].cross) continue;
    UNICON_TRY(unicon__stats_rows_make(a->ctx, &a->rows, d, a->row[0], c->first, c->rows, a->t[d]));
    c->product[c->products].wide_b = a->t[d].wide;
    set_product(&c->product[c->products++], c->psi, c->ld, p_x, a->t[d].single, p_y, p_y,
                sums_for(a, 0, 1 + d, s->way[d].cross));
  }
  return UNICON_OK;
}

static void products_y(const adding *a, chunk *c) {
  const unicon__stats *s = a->stats;
  if (s->gram[1])
    set_product(&c->product[c->products++], c->psi, c->ld, s->p[1], c->psi, c->ld, s->p[1],
                sums_for(a, 1, 0, s->gram[1]));
}

/* The weighted sums of a side: h or h' of both directions, u or v alone. */
static void weights_of(const adding *a, chunk *c) {
  const unicon__stats *s = a->stats;
  if (s->classes > 0) c->class_of = c->side == 0 ? a->set->pairs->class_x : a->set->pairs->class_y;
  if (!(s->holds & UNICON__STATS_CROSS) || s->classes > 0) return;
  for (int d = 0; d < (s->listed ? 1 : 2); d++) {
    c->weight[c->weights] = a->rows.total[d][c->side];
    c->sum[c->weights++] = c->side == 0 ? s->way[d].left : s->way[d].right;
  }
  if (!s->listed) return;
  c->weight[c->weights] = a->rows.alone[c->side];
  c->sum[c->weights++] = s->alone[c->side];
}

static unicon_status add_chunk(adding *a, int side, int64_t first) {
  unicon__block *frame = unicon__frame_open(a->ctx);
  const bool wide = a->stats->holds & UNICON__STATS_DOUBLE;
  const int64_t step = (int64_t)a->groups[side] * CHUNK_ROWS;
  chunk c = {.stats = a->stats,
             .side = side,
             .groups = a->groups[side],
             .first = first,
             .rows = smaller(step, a->own[side].first + a->own[side].count - first),
             .sign = a->sign,
             .row = a->row[side],
             .ld = (side == 0 ? a->set->x : a->set->y).map->out};
  UNICON_TRY(fill(a, side, first, c.rows, &c.psi));
  if (side == 0)
    UNICON_TRY(products_x(a, &c));
  else
    products_y(a, &c);
  weights_of(a, &c);
  const int64_t items = items_of(&c), workers = unicon__workers_for(a->ctx, items);
  if (wide)
    UNICON_NEW(a->ctx, c.wide, workers * 2 * CHUNK_ROWS * TILE_LARGE);
  else
    UNICON_NEW(a->ctx, c.scratch, workers * TILE_LARGE * TILE_LARGE);
  UNICON_TRY(unicon__sweep_rows(a->ctx, NULL, &unicon__blas_region, items, chunk_item, &c));
  unicon__frame_close(a->ctx, frame);
  return UNICON_OK;
}

/* Sums of groups, in order. */
typedef struct folding {
  const double *from;
  double *to;
  int64_t size;
  int groups;
} folding;

enum { FOLD_PIECE = 1 << 16 };

static void fold_piece(void *state, unicon__cell cell) {
  const folding *f = state;
  const int64_t first = cell.row * FOLD_PIECE, last = smaller(f->size, first + FOLD_PIECE);
  for (int g = 0; g < f->groups; g++)
    for (int64_t i = first; i < last; i++) f->to[i] += f->from[(int64_t)g * f->size + i];
}

static unicon_status fold(const adding *a, int side, int k, double *to, int64_t size) {
  folding f = {a->extra[side][k], to, size, a->groups[side]};
  if (!f.from) return UNICON_OK;
  return unicon__sweep_rows(a->ctx, NULL, NULL, (size + FOLD_PIECE - 1) / FOLD_PIECE, fold_piece,
                            &f);
}

static unicon_status add_side(adding *a, int side) {
  unicon__stats *s = a->stats;
  const int64_t step = (int64_t)a->groups[side] * CHUNK_ROWS, n = a->own[side].count;
  const int stage = unicon__stage_begin(a->ctx, "statistics", 0.5);
  for (int64_t at = 0; at < n; at += step) {
    UNICON_TRY(unicon__stage_step(a->ctx, at / step, (n + step - 1) / step));
    UNICON_TRY(add_chunk(a, side, a->own[side].first + at));
  }
  unicon__stage_end(a->ctx, stage);
  s->rows[side] += a->sign * (double)a->count[side];
  if (s->gram[side]) UNICON_TRY(fold(a, side, 0, s->gram[side], s->p[side] * s->p[side]));
  for (int d = 0; d < 2 && side == 0; d++)
    if (s->way[d].cross) UNICON_TRY(fold(a, 0, 1 + d, s->way[d].cross, s->p[0] * s->p[1]));
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
    a->groups[side] = groups_for(s, side);
    const int64_t rows = smaller((int64_t)a->groups[side] * CHUNK_ROWS, a->own[side].count);
    const bool own = !source->cache || source->cache_row || a->row[side];
    if (own && rows * source->map->out > psi) psi = rows * source->map->out;
    if (side == 0) t = rows * s->p[1];
  }
  UNICON_NEW(a->ctx, a->psi, psi);
  for (int d = 0; d < 2; d++) {
    if (!s->way[d].cross) continue;
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
  for (int d = 0; d < (s->listed ? 1 : 2); d++) s->way[d].weight += a->sign * a->rows.weight[d];
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
  UNICON_TRY(open_room(a));
  unicon__blas_begin();
  unicon_status status = add_side(a, 0);
  if (status == UNICON_OK) status = add_side(a, 1);
  unicon__blas_end();
  return status == UNICON_OK ? sum_parts(a) : status;
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
  UNICON_TRY(add_on_device(&a, &done));
  if (!done) UNICON_TRY(add_on_host(&a));
  add_totals(&a);
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
