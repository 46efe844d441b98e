/* SPDX-License-Identifier: Apache-2.0 */
#include "use/shuffle.h"

#include <string.h>

#include "base/sweep.h"
#include "base/rng.h"
#include "linalg/tiled.h"

enum {
  FEWEST_BLOCKS = 10,   /* 10! orders are enough for a small p-value */
  TEST_ROWS = 2048,     /* of a side: their scores take 16 MB */
  SHUFFLES = 1000,      /* p-values down to 0.001 */
  ROUND_PICK = 1 << 20, /* draw that picks the rows of a test; the shuffles are 0 .. SHUFFLES-1 */
  ROUND_SIDE = 1 << 21  /* added for y */
};

static unicon__partners partners_of(const unicon_pairs *pairs, bool from_x, int64_t row) {
  return from_x ? unicon__positives_x(pairs, row) : unicon__positives_y(pairs, row);
}

/* One block for each row that has a partner. */
static unicon_status single_blocks(unicon_ctx *ctx, const unicon__batch *set, bool from_x,
                                   unicon__blocks *out) {
  const int64_t n = from_x ? set->x.count : set->y.count;
  *out = (unicon__blocks){.single = true};
  UNICON_NEW(ctx, out->start, n + 1);
  UNICON_NEW(ctx, out->row, n);
  for (int64_t i = 0; i < n; i++) {
    if (partners_of(set->pairs, from_x, i).count == 0) continue;
    out->row[out->count++] = i;
    out->start[out->count] = out->count;
  }
  return UNICON_OK;
}

/* x rows by component, components in order of first appearance. */
static unicon_status component_blocks(unicon_ctx *ctx, const unicon__batch *set,
                                      const int64_t *groups, unicon__blocks *out,
                                      bool *independent) {
  const int64_t n = set->x.count;
  int64_t *number = NULL, *size, count = 0, largest = 0;
  *out = (unicon__blocks){0};
  UNICON_TRY(unicon__components(ctx, set, groups, &number, &count, &largest));
  UNICON_NEW(ctx, size, count);
  UNICON_NEW(ctx, out->start, count + 1);
  UNICON_NEW(ctx, out->row, n);
  for (int64_t i = 0; i < n; i++) size[number[i]] += unicon__positives_x(set->pairs, i).count > 0;
  int64_t *next = size; /* becomes the next place of each component */
  for (int64_t c = 0; c < count; c++) {
    const int64_t rows = size[c];
    next[c] = out->start[out->count];
    if (rows > 0) {
      out->start[out->count + 1] = out->start[out->count] + rows;
      out->count++;
    }
  }
  for (int64_t i = 0; i < n; i++)
    if (unicon__positives_x(set->pairs, i).count > 0) out->row[next[number[i]]++] = i;
  *independent = out->count >= FEWEST_BLOCKS && 2 * largest <= n + set->y.count;
  return UNICON_OK;
}

unicon_status unicon__blocks_open(unicon_ctx *ctx, const unicon__batch *set, const int64_t *groups,
                                  bool from_x, unicon__blocks *out) {
  bool independent = false;
  if (!set->pairs->class_x || groups)
    UNICON_TRY(component_blocks(ctx, set, groups, out, &independent));
  return independent ? UNICON_OK : single_blocks(ctx, set, from_x, out);
}

void unicon__blocks_shuffle(const unicon__blocks *blocks, uint64_t seed, uint32_t round,
                            int64_t *order, int64_t *out) {
  int64_t place = 0;
  unicon__permutation(seed, UNICON__STREAM_PERMUTE, round, blocks->count, order);
  for (int64_t k = 0; k < blocks->count; k++)
    for (int64_t p = blocks->start[order[k]]; p < blocks->start[order[k] + 1]; p++)
      out[place++] = blocks->row[p];
}

unicon_status unicon__source_shuffle(unicon_ctx *ctx, const unicon__source *source,
                                     const unicon__blocks *blocks, uint64_t seed, uint32_t round,
                                     unicon__source *out) {
  const int64_t n = source->count, moved = blocks->start[blocks->count];
  int64_t *order, *rows, *place, *index;
  UNICON_NEW(ctx, order, blocks->count);
  UNICON_NEW(ctx, rows, moved);
  UNICON_NEW(ctx, place, n);
  UNICON_NEW(ctx, index, n);
  unicon__blocks_shuffle(blocks, seed, round, order, rows);
  for (int64_t i = 0; i < n; i++) place[i] = i;
  for (int64_t p = 0; p < moved; p++) place[blocks->row[p]] = rows[p];
  for (int64_t i = 0; i < n; i++) index[i] = source->index ? source->index[place[i]] : place[i];
  *out = *source;
  out->index = index;
  out->cache_row = place;
  return UNICON_OK;
}

/* ---- the test ----------------------------------------------------------------------------- */

/* Rows a of one side against the partners of rows b: score[a * rows + b] is the mean cosine of row
 * a with the partners of row b. The true pairing is the diagonal. */
typedef struct test {
  unicon__blocks blocks; /* of positions 0 .. rows-1 */
  int64_t rows;
  float *score;
  int64_t *order, *shuffled; /* per worker */
  double *mean;              /* per shuffle */
  uint64_t seed;
  uint32_t round;
} test;

/* Picks blocks at random until there are about TEST_ROWS rows; long blocks are cut. */
static unicon_status pick_blocks(unicon_ctx *ctx, const unicon__blocks *all, test *t,
                                 int64_t **row) {
  const int64_t longest = TEST_ROWS / FEWEST_BLOCKS;
  int64_t *order;
  UNICON_NEW(ctx, order, all->count);
  UNICON_NEW(ctx, *row, TEST_ROWS + longest);
  UNICON_NEW(ctx, t->blocks.start, all->count + 1);
  UNICON_NEW(ctx, t->blocks.row, TEST_ROWS + longest);
  unicon__permutation(t->seed, UNICON__STREAM_PERMUTE, t->round + ROUND_PICK, all->count, order);
  for (int64_t k = 0; k < all->count && t->rows < TEST_ROWS; k++) {
    const int64_t from = all->start[order[k]], length = all->start[order[k] + 1] - from;
    for (int64_t p = 0; p < length && p < longest; p++) (*row)[t->rows++] = all->row[from + p];
    t->blocks.start[++t->blocks.count] = t->rows;
  }
  for (int64_t p = 0; p < t->rows; p++) t->blocks.row[p] = p;
  return UNICON_OK;
}

/* Mean vectors of the partners of each row; those of a class are summed once. */
static unicon_status mean_partners(unicon_ctx *ctx, const unicon_pairs *pairs, bool from_x,
                                   const float *z, int64_t r, const int64_t *row, int64_t rows,
                                   float *out) {
  const int32_t *class = from_x ? pairs->class_x : pairs->class_y;
  int64_t *done = NULL; /* place of the first row of each class, plus 1 */
  double *sum;
  UNICON_NEW(ctx, sum, r);
  if (class) UNICON_NEW(ctx, done, pairs->classes);
  for (int64_t p = 0; p < rows; p++) {
    if (class && done[class[row[p]]]) {
      memcpy(out + p * r, out + (done[class[row[p]]] - 1) * r, (size_t)r * sizeof *out);
      continue;
    }
    const unicon__partners partners = partners_of(pairs, from_x, row[p]);
    memset(sum, 0, (size_t)r * sizeof *sum);
    for (int64_t k = 0; k < partners.count; k++)
      for (int64_t j = 0; j < r; j++) sum[j] += (double)z[partners.item[k] * r + j];
    for (int64_t j = 0; j < r; j++) out[p * r + j] = (float)(sum[j] / (double)partners.count);
    if (class) done[class[row[p]]] = p + 1;
  }
  return UNICON_OK;
}

static unicon_status score_rows(unicon_ctx *ctx, const unicon_pairs *pairs, bool from_x,
                                const float *zx, const float *zy, int64_t r, const int64_t *row,
                                test *t) {
  const float *own = from_x ? zx : zy, *other = from_x ? zy : zx;
  float *rows, *partners;
  UNICON_NEW(ctx, rows, t->rows * r);
  UNICON_NEW(ctx, partners, t->rows * r);
  UNICON_NEW(ctx, t->score, t->rows * t->rows);
  for (int64_t p = 0; p < t->rows; p++)
    memcpy(rows + p * r, own + row[p] * r, (size_t)r * sizeof *rows);
  UNICON_TRY(mean_partners(ctx, pairs, from_x, other, r, row, t->rows, partners));
  unicon__tiled_sgemm(ctx, false, true, t->rows, t->rows, r, 1, rows, r, partners, r, 0, t->score,
                      t->rows);
  return UNICON_OK;
}

static void one_shuffle(void *state, unicon__cell cell) {
  const test *t = state;
  int64_t *shuffled = t->shuffled + cell.worker * t->rows;
  unicon__blocks_shuffle(&t->blocks, t->seed, t->round + (uint32_t)cell.row,
                         t->order + cell.worker * t->blocks.count, shuffled);
  double sum = 0;
  for (int64_t p = 0; p < t->rows; p++) sum += (double)t->score[shuffled[p] * t->rows + p];
  t->mean[cell.row] = sum / (double)t->rows;
}

static unicon_status run_test(unicon_ctx *ctx, test *t, unicon__shuffle_test *out) {
  int64_t closer = 0;
  *out = (unicon__shuffle_test){0};
  UNICON_NEW(ctx, t->order, unicon__workers(ctx) * t->blocks.count);
  UNICON_NEW(ctx, t->shuffled, unicon__workers(ctx) * t->rows);
  UNICON_NEW(ctx, t->mean, SHUFFLES);
  for (int64_t p = 0; p < t->rows; p++) out->cosine += (double)t->score[p * t->rows + p];
  out->cosine /= (double)t->rows;
  UNICON_TRY(unicon__sweep_rows(ctx, NULL, NULL, SHUFFLES, one_shuffle, t));
  for (int64_t k = 0; k < SHUFFLES; k++) {
    out->chance += t->mean[k] / SHUFFLES;
    closer += t->mean[k] >= out->cosine;
  }
  out->p = (double)(1 + closer) / (1 + SHUFFLES);
  return UNICON_OK;
}

static unicon_status test_side(unicon_ctx *ctx, const unicon__batch *set,
                               const unicon__blocks *blocks, bool from_x, const float *zx,
                               const float *zy, int64_t r, uint64_t seed,
                               unicon__shuffle_test *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  test t = {.seed = seed, .round = from_x ? 0 : ROUND_SIDE};
  int64_t *row = NULL;
  const int stage = unicon__stage_begin(ctx, "shuffles", 0);
  UNICON_TRY(pick_blocks(ctx, blocks, &t, &row));
  UNICON_TRY(score_rows(ctx, set->pairs, from_x, zx, zy, r, row, &t));
  UNICON_TRY(run_test(ctx, &t, out));
  unicon__stage_end(ctx, stage);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__shuffle_pairs(unicon_ctx *ctx, const unicon__batch *set,
                                    const int64_t *groups, const float *zx, const float *zy,
                                    int64_t r, uint64_t seed, unicon__shuffle_test *out) {
  unicon__blocks blocks;
  unicon__shuffle_test other;
  UNICON_TRY(unicon__blocks_open(ctx, set, groups, true, &blocks));
  UNICON_TRY(test_side(ctx, set, &blocks, true, zx, zy, r, seed, out));
  if (!blocks.single) return UNICON_OK;
  if (!set->pairs->class_x || groups)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "there are too few independent groups of rows: rows are shuffled one by one, and "
                "the p-value may be too small");
  UNICON_TRY(unicon__blocks_open(ctx, set, groups, false, &blocks));
  UNICON_TRY(test_side(ctx, set, &blocks, false, zx, zy, r, seed, &other));
  if (other.p > out->p) out->p = other.p;
  return UNICON_OK;
}
