/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/stats_chunk.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum {
  COLUMNS = 256,    /* of a piece of work that sums rows */
  TILE_SMALL = 128, /* of products of few features, so that there are enough of them ... */
  TILE_LARGE = 256, /* ... and of many */
  LARGE_FROM = 1024
};

static int64_t tiles_of(const unicon__stats_product *p) {
  return p->lower ? p->tiles_m * (p->tiles_m + 1) / 2 : p->tiles_m * p->tiles_n;
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

void unicon__stats_chunk_product(unicon__stats_chunk *c, const float *a, int64_t lda, int64_t m,
                                 const float *b, int64_t ldb, int64_t n, double *out) {
  const int64_t few = m < n ? m : n, large_from = a == b ? LARGE_FROM : LARGE_FROM / 2;
  const int64_t tile = few < large_from ? TILE_SMALL : TILE_LARGE;
  unicon__stats_product *p = &c->product[c->products++];
  *p = (unicon__stats_product){.a = a,
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

/* Tile number t of a product: its row and column of tiles. */
static void place_of(const unicon__stats_product *p, int64_t t, int64_t *i, int64_t *j) {
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

/* A tile of a product, m by n from (i0, j0) on, with the rows of one float32 product. */
typedef struct tile {
  int64_t i0, j0, m, n, first, rows;
  double *out;
} tile;

static void add_wide(const unicon__stats_chunk *c, const unicon__stats_product *p, const tile *t,
                     int64_t worker) {
  double *left = c->wide + worker * 2 * UNICON__STATS_CHUNK * TILE_LARGE;
  double *right = left + UNICON__STATS_CHUNK * (int64_t)TILE_LARGE;
  widen(p->a + t->first * p->lda + t->i0, p->lda, t->rows, t->m, left);
  if (p->b)
    widen(p->b + t->first * p->ldb + t->j0, p->ldb, t->rows, t->n, right);
  else
    for (int64_t i = 0; i < t->rows; i++)
      memcpy(right + i * t->n, p->wide_b + (t->first + i) * p->ldb + t->j0,
             (size_t)t->n * sizeof *right);
  unicon__dgemm(true, false, t->m, t->n, t->rows, c->sign, left, t->m, right, t->n, 1, t->out,
                p->n);
}

static void add_single(const unicon__stats_chunk *c, const unicon__stats_product *p, const tile *t,
                       int64_t worker) {
  float *scratch = c->scratch + worker * TILE_LARGE * TILE_LARGE;
  unicon__sgemm(true, false, t->m, t->n, t->rows, 1, p->a + t->first * p->lda + t->i0, p->lda,
                p->b + t->first * p->ldb + t->j0, p->ldb, 0, scratch, t->n);
  for (int64_t i = 0; i < t->m; i++)
    unicon__vec_best()->add_widened(t->out + i * p->n, scratch + i * t->n, t->n, c->sign);
}

/* Adds a tile over the rows of a group to the group's sums. */
static void add_tile(const unicon__stats_chunk *c, const unicon__stats_product *p, int64_t number,
                     int64_t group, int64_t worker) {
  int64_t bi, bj;
  place_of(p, number, &bi, &bj);
  tile t = {.i0 = bi * p->tile, .j0 = bj * p->tile, .first = group * c->group_rows};
  t.m = smaller(p->tile, p->m - t.i0);
  t.n = smaller(p->tile, p->n - t.j0);
  t.out = p->out + (group * p->m + t.i0) * p->n + t.j0;
  const int64_t end = smaller(c->rows, t.first + c->group_rows);
  for (; t.first < end; t.first += UNICON__STATS_CHUNK) {
    t.rows = smaller(UNICON__STATS_CHUNK, end - t.first);
    if (c->wide)
      add_wide(c, p, &t, worker);
    else
      add_single(c, p, &t, worker);
  }
}

/* Plain and weighted sums of some columns over up to four rows from i on. */
static void add_four(const unicon__stats_chunk *c, int64_t i, int64_t k0, int64_t cols) {
  static const double one[4] = {1, 1, 1, 1};
  const unicon__vec *vec = unicon__vec_best();
  const unicon__stats *s = c->stats;
  const float *psi = c->psi + i * c->ld + k0;
  const int64_t rows = smaller(4, c->rows - i);
  double *sum = s->sum[c->side] + k0, *square = s->square[c->side] + k0;
  if (rows == 4) {
    vec->add_columns(psi, c->ld, cols, one, c->sign, sum, square);
    for (int w = 0; w < c->weights; w++)
      vec->add_columns(psi, c->ld, cols, c->weight[w] + i, c->sign, c->sum[w] + k0, NULL);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < cols; k++) {
      const double value = (double)psi[r * c->ld + k];
      sum[k] += c->sign * value;
      square[k] += c->sign * value * value;
      for (int w = 0; w < c->weights; w++)
        c->sum[w][k0 + k] += c->sign * c->weight[w][i + r] * value;
    }
}

/* Plain, weighted and class sums of some columns. */
static void add_columns(const unicon__stats_chunk *c, int64_t block) {
  const unicon__stats *s = c->stats;
  const int64_t p = s->p[c->side], k0 = block * COLUMNS, cols = smaller(p - k0, COLUMNS);
  for (int64_t i = 0; i < c->rows; i += 4) add_four(c, i, k0, cols);
  for (int64_t i = 0; c->class_of && i < c->rows; i++) {
    const int64_t row = c->row ? c->row[c->first + i] : c->first + i;
    unicon__vec_best()->add_widened(s->class_sum[c->side] + c->class_of[row] * p + k0,
                                    c->psi + i * c->ld + k0, cols, c->sign);
  }
}

static int64_t items_of(const unicon__stats_chunk *c) {
  int64_t items = (c->stats->p[c->side] + COLUMNS - 1) / COLUMNS;
  for (int k = 0; k < c->products; k++) items += tiles_of(&c->product[k]) * c->groups;
  return items;
}

static void chunk_item(void *state, unicon__cell cell) {
  const unicon__stats_chunk *c = state;
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

unicon_status unicon__stats_chunk_sum(unicon_ctx *ctx, unicon__stats_chunk *c) {
  const int64_t items = items_of(c), workers = unicon__workers_for(ctx, items);
  if (c->stats->holds & UNICON__STATS_DOUBLE)
    UNICON_NEW(ctx, c->wide, workers * 2 * UNICON__STATS_CHUNK * TILE_LARGE);
  else
    UNICON_NEW(ctx, c->scratch, workers * TILE_LARGE * TILE_LARGE);
  return unicon__sweep_rows(ctx, NULL, &unicon__blas_region, items, chunk_item, c);
}
