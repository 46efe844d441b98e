/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/stats_device.h"

#include "base/sweep.h"
#include "features/feed.h"

enum { WAYS = 2, WEIGHTS_MOST = 3 };

/* What the road works with. */
typedef struct summing {
  const unicon__stats_job *job;
  unicon__device_room *room;
  unicon__feed feed[2];
  int64_t block, most_y;             /* rows of a block, partners at once */
  unicon__matrix *gram[2], *sums[2]; /* float64 */
  unicon__matrix *cross[WAYS], *t;   /* H of each direction; T of a block */
  int64_t weights;                   /* weighted sums of a side */
  double *weight;                    /* of a block */
  int64_t *place, *pick;             /* per row of y: its place among those picked, or -1 */
  int64_t picked;
} summing;

bool unicon__stats_device_serves(unicon_ctx *ctx, const unicon__stats_job *job) {
  const unicon__stats *s = job->stats;
  const double p_x = (double)s->p[0], p_y = (double)s->p[1];
  const double flops =
      (double)job->count[0] * p_x * (p_x + p_y) + (double)job->count[1] * p_y * p_y;
  if ((s->holds & UNICON__STATS_DOUBLE) ||
      (job->set->pairs->class_x && s->holds & UNICON__STATS_CROSS))
    return false;
  return unicon__device_serves(ctx, features, flops) && unicon__device_serves(ctx, gather, flops) &&
         unicon__device_serves(ctx, add_product, flops) &&
         unicon__device_serves(ctx, add_sums, flops) && unicon__device_serves(ctx, combine, flops);
}

/* ---- T ------------------------------------------------------------------------------------ */

/* The partners of some rows, as features: columns of the entries become rows of *y. */
static unicon_status pick_partners(unicon_ctx *ctx, summing *m, unicon__stats_entries *e,
                                   int64_t from, int64_t to, const unicon__matrix **y,
                                   int64_t *at) {
  const unicon__source *source = &m->job->set->y;
  if (unicon__is_kept(source)) {
    *y = source->kept->phi;
    for (int64_t k = e->start[from]; k < e->start[to]; k++)
      e->column[k] = unicon__kept_place(source, e->column[k]);
    return UNICON_OK;
  }
  m->picked = 0;
  for (int64_t k = e->start[from]; k < e->start[to]; k++) {
    int64_t *place = &m->place[e->column[k]];
    if (*place < 0) {
      *place = m->picked;
      m->pick[m->picked++] = e->column[k];
    }
    e->column[k] = *place;
  }
  for (int64_t k = 0; k < m->picked; k++) m->place[m->pick[k]] = -1;
  return unicon__feed_block(ctx, &m->feed[1], m->pick, 0, m->picked, y, at);
}

/* H += Psi_x^T T over rows `first`.. of x, which lie at row `at` of psi; T in pieces whose partners
 * have room. */
static unicon_status add_cross(unicon_ctx *ctx, summing *m, int d, const unicon__matrix *psi,
                               int64_t at, int64_t first, int64_t count) {
  const unicon__stats_job *job = m->job;
  unicon__stats_entries e;
  UNICON_TRY(unicon__stats_rows_entries(ctx, job->rows, d, job->row[0], first, count, &e));
  for (int64_t from = 0, to; from < count; from = to) {
    const unicon__matrix *y;
    int64_t y_at = 0;
    for (to = from + 1; to < count && e.start[to + 1] - e.start[from] <= m->most_y;) to++;
    UNICON_TRY(pick_partners(ctx, m, &e, from, to, &y, &y_at));
    for (int64_t k = e.start[from]; k < e.start[to] && y_at > 0; k++) e.column[k] += y_at;
    const unicon__device_sparse w = {to - from, e.start + from, e.column, e.value};
    UNICON_TRY(unicon__on(ctx, combine, &w, y, m->t));
    UNICON_TRY(unicon__on(ctx, add_product, psi, at + from, m->t, 0, to - from, job->sign,
                          m->cross[d], job->stats->p[0], job->stats->p[1]));
  }
  return UNICON_OK;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* The weights of the rows of a block, one weighted sum after the other. */
static void gather_weights(summing *m, int side, int64_t first, int64_t count) {
  const unicon__stats_job *job = m->job;
  const bool listed = job->stats->listed;
  for (int64_t w = 0; w < m->weights; w++) {
    double *to = m->weight + w * count;
    if (listed && w == 1)
      unicon__stats_rows_alone(job->rows, side, job->row[side], first, count, to);
    else
      unicon__stats_rows_totals(job->rows, (int)w, side, job->row[side], first, count, to);
  }
}

static unicon_status add_block(unicon_ctx *ctx, summing *m, int side, int64_t first,
                               int64_t count) {
  const unicon__stats_job *job = m->job;
  const int64_t p = job->stats->p[side], *row = job->row[side];
  const unicon__matrix *psi;
  int64_t at;
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(unicon__feed_block(ctx, &m->feed[side], row ? row + first : NULL, row ? 0 : first,
                                count, &psi, &at));
  if (m->gram[side])
    UNICON_TRY(
        unicon__on(ctx, add_product, psi, at, psi, at, count, job->sign, m->gram[side], p, p));
  gather_weights(m, side, first, count);
  UNICON_TRY(unicon__on(ctx, add_sums, psi, at, count, m->weight, m->weights, job->sign,
                        m->sums[side], p));
  for (int d = 0; d < WAYS && side == 0; d++)
    if (m->cross[d]) UNICON_TRY(add_cross(ctx, m, d, psi, at, first, count));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static unicon_status add_side(unicon_ctx *ctx, summing *m, int side) {
  const int64_t n = m->job->count[side];
  const int stage = unicon__stage_begin(ctx, "statistics", 0.5);
  for (int64_t first = 0; first < n; first += m->block) {
    UNICON_TRY(unicon__stage_step(ctx, first / m->block, (n + m->block - 1) / m->block));
    UNICON_TRY(add_block(ctx, m, side, first, n - first < m->block ? n - first : m->block));
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* ---- room and results --------------------------------------------------------------------- */

/* The most entries that a row of W can have. */
static int64_t longest_row(const unicon_pairs *pairs) {
  int64_t most = 1;
  for (int64_t i = 0; i < pairs->n_x; i++) {
    const int64_t count =
        unicon__positives_x(pairs, i).count + unicon__listed(pairs, true, i).count + 1;
    most = count > most ? count : most;
  }
  return most;
}

static unicon_status open_sums(unicon_ctx *ctx, summing *m) {
  const unicon__stats *s = m->job->stats;
  const int wide = UNICON__ELEMENT_F64;
  m->weights = s->holds & UNICON__STATS_CROSS ? 2 : 0;
  for (int side = 0; side < 2; side++) {
    const int64_t p = s->p[side];
    if (s->gram[side]) UNICON_TRY(unicon__device_new(ctx, m->room, p, p, wide, &m->gram[side]));
    UNICON_TRY(unicon__device_new(ctx, m->room, 2 + m->weights, p, wide, &m->sums[side]));
  }
  for (int d = 0; d < WAYS; d++)
    if (s->way[d].cross)
      UNICON_TRY(unicon__device_new(ctx, m->room, s->p[0], s->p[1], wide, &m->cross[d]));
  return UNICON_OK;
}

static unicon_status open_feeds(unicon_ctx *ctx, summing *m) {
  const unicon__batch *set = m->job->set;
  const int64_t n_x = m->job->count[0], n_y = m->job->count[1], n = n_x > n_y ? n_x : n_y;
  const double more = 4.0 * (double)(set->x.map->out + 2 * set->y.map->out);
  const int64_t longest = longest_row(set->pairs);
  const int64_t block_y = unicon__feed_rows(ctx, &set->y, n, more, 0.3);
  m->block = unicon__feed_rows(ctx, &set->x, n, more, 0.3);
  if (m->block > block_y) m->block = block_y;
  m->most_y = unicon__feed_rows(ctx, &set->y, set->y.count, more, 0.3);
  if (m->most_y < longest) m->most_y = longest;
  if (unicon__is_kept(&set->y)) m->most_y = INT64_MAX;
  const int64_t room_y = m->most_y < m->block || m->most_y == INT64_MAX ? m->block : m->most_y;
  UNICON_TRY(unicon__feed_open(ctx, m->room, &set->x, m->block, &m->feed[0]));
  UNICON_TRY(unicon__feed_open(ctx, m->room, &set->y, room_y, &m->feed[1]));
  UNICON_NEW(ctx, m->weight, WEIGHTS_MOST * m->block);
  if (!m->cross[0]) return UNICON_OK;
  UNICON_NEW(ctx, m->place, set->y.count);
  UNICON_NEW(ctx, m->pick, room_y);
  for (int64_t j = 0; j < set->y.count; j++) m->place[j] = -1;
  return unicon__device_new(ctx, m->room, m->block, set->y.map->out, UNICON__ELEMENT_F32, &m->t);
}

/* Sums that have come back, and where they belong. */
typedef struct results {
  int count;
  double *sum[12], *to[12];
  int64_t size[12];
} results;

/* Rows of a float64 matrix come back; NULL is fine. */
static unicon_status fetch(unicon_ctx *ctx, results *all, const unicon__matrix *from, int64_t first,
                           int64_t rows, int64_t cols, double *to) {
  const int k = all->count;
  if (!from || !to) return UNICON_OK;
  UNICON_NEW(ctx, all->sum[k], rows * cols);
  all->to[k] = to;
  all->size[k] = rows * cols;
  all->count++;
  return unicon__on(ctx, download, from, first, rows, all->sum[k],
                    cols * (int64_t)sizeof *all->sum[k]);
}

static unicon_status fetch_side(unicon_ctx *ctx, const summing *m, int side, results *all) {
  const unicon__stats *s = m->job->stats;
  const int64_t p = s->p[side];
  UNICON_TRY(fetch(ctx, all, m->gram[side], 0, p, p, s->gram[side]));
  UNICON_TRY(fetch(ctx, all, m->sums[side], 0, 1, p, s->sum[side]));
  UNICON_TRY(fetch(ctx, all, m->sums[side], 1, 1, p, s->square[side]));
  for (int64_t w = 0; w < m->weights; w++) {
    double *of_way = side == 0 ? s->way[w].left : s->way[w].right;
    double *to = s->listed && w == 1 ? s->alone[side] : of_way;
    UNICON_TRY(fetch(ctx, all, m->sums[side], 2 + w, 1, p, to));
  }
  for (int d = 0; d < WAYS && side == 0; d++)
    UNICON_TRY(fetch(ctx, all, m->cross[d], 0, s->p[0], s->p[1], s->way[d].cross));
  return UNICON_OK;
}

enum { ADD_AT_ONCE = 1 << 15 };

/* A piece of every sum, for the places of a row of cells. */
static void add_piece(void *state, unicon__cell cell) {
  const results *all = state;
  const int64_t first = cell.row * ADD_AT_ONCE;
  for (int k = 0; k < all->count; k++)
    for (int64_t i = first; i < first + ADD_AT_ONCE && i < all->size[k]; i++)
      all->to[k][i] += all->sum[k][i];
}

static unicon_status add_results(unicon_ctx *ctx, results *all) {
  int64_t most = 0;
  for (int k = 0; k < all->count; k++) most = all->size[k] > most ? all->size[k] : most;
  return unicon__sweep_rows(ctx, NULL, NULL, (most + ADD_AT_ONCE - 1) / ADD_AT_ONCE, add_piece,
                            all);
}

unicon_status unicon__stats_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  summing m = {.job = state, .room = room};
  results all = {.count = 0};
  UNICON_TRY(open_sums(ctx, &m));
  UNICON_TRY(open_feeds(ctx, &m));
  for (int side = 0; side < 2; side++) UNICON_TRY(add_side(ctx, &m, side));
  for (int side = 0; side < 2; side++) UNICON_TRY(fetch_side(ctx, &m, side, &all));
  UNICON_TRY(add_results(ctx, &all));
  for (int side = 0; side < 2; side++)
    m.job->stats->rows[side] += m.job->sign * (double)m.job->count[side];
  return UNICON_OK;
}
