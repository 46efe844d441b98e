/* SPDX-License-Identifier: Apache-2.0 */
#include "features/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

unicon_status unicon__source_narrow(unicon_ctx *ctx, const unicon__source *from, const int64_t *row,
                                    int64_t count, unicon__source *out) {
  *out = *from;
  out->count = count;
  out->index = out->cache_row = row; /* a cache is that of the whole source */
  if (from->index) {
    int64_t *index;
    UNICON_NEW(ctx, index, count);
    for (int64_t k = 0; k < count; k++) index[k] = from->index[row[k]];
    out->index = index;
  }
  if (from->cache_row) {
    int64_t *cache_row;
    UNICON_NEW(ctx, cache_row, count);
    for (int64_t k = 0; k < count; k++) cache_row[k] = from->cache_row[row[k]];
    out->cache_row = cache_row;
  }
  return UNICON_OK;
}

/* y rows paired to any of the batch's x rows, ascending. `seen` is all zero before and after. */
static unicon_status paired_rows(unicon_ctx *ctx, const unicon_pairs *pairs, const int64_t *x_row,
                                 int64_t x_count, unsigned char *seen, int64_t **out,
                                 int64_t *count) {
  *count = 0;
  for (int64_t a = 0; a < x_count; a++) {
    unicon__partners p = unicon__positives_x(pairs, x_row[a]);
    if (p.count == 0) continue;
    if (pairs->class_x) p = unicon__list_at(&pairs->positive.by_y, pairs->class_x[x_row[a]]);
    if (pairs->class_x && seen[p.item[0]]) continue; /* its whole class is there */
    for (int64_t k = 0; k < p.count; k++) {
      *count += !seen[p.item[k]];
      seen[p.item[k]] = 1;
    }
  }
  UNICON_NEW(ctx, *out, *count);
  for (int64_t j = 0, next = 0; j < pairs->n_y; j++)
    if (seen[j]) (*out)[next++] = j;
  memset(seen, 0, (size_t)pairs->n_y);
  return UNICON_OK;
}

static unicon_status make_batch(unicon_ctx *ctx, const unicon__batch *whole, int64_t *x_row,
                                int64_t x_count, unsigned char *seen, unicon__batch *out) {
  int64_t *y_row, y_count;
  unicon_pairs *pairs;
  qsort(x_row, (size_t)x_count, sizeof *x_row, unicon__compare_int64);
  UNICON_TRY(paired_rows(ctx, whole->pairs, x_row, x_count, seen, &y_row, &y_count));
  if (x_count < 2 || y_count < 2) return UNICON_OK; /* nothing to tell apart */
  UNICON_TRY(unicon__source_narrow(ctx, &whole->x, x_row, x_count, &out->x));
  UNICON_TRY(unicon__source_narrow(ctx, &whole->y, y_row, y_count, &out->y));
  UNICON_TRY(unicon__pairs_subset(ctx, whole->pairs, x_row, x_count, y_row, y_count, &pairs));
  out->pairs = pairs;
  out->x_row = x_row;
  out->y_row = y_row;
  return UNICON_OK;
}

unicon_status unicon__problem_cut(unicon_ctx *ctx, const unicon__cut *cut,
                                  unicon__problem *problem) {
  const int64_t n = problem->whole.pairs->n_x, size = cut->size;
  problem->batch = &problem->whole;
  problem->batches = 1;
  if (size == 0 || size >= n) return UNICON_OK;
  const int64_t most = cut->in_order ? n / size : (n + size - 1) / size;
  int64_t *order;
  unsigned char *seen;
  unicon__batch *batch;
  UNICON_NEW(ctx, order, n);
  UNICON_NEW(ctx, seen, problem->whole.pairs->n_y);
  UNICON_NEW(ctx, batch, most);
  problem->batch = batch;
  problem->batches = 0;
  if (!cut->in_order) unicon__permutation(cut->seed, UNICON__STREAM_BATCH, 0, n, order);
  for (int64_t i = 0; i < n && cut->in_order; i++) order[i] = i;
  for (int64_t b = 0; b < most; b++) {
    const int64_t from = cut->in_order ? b * size : n * b / most;
    const int64_t to = cut->in_order ? from + size : n * (b + 1) / most; /* equal parts */
    UNICON_TRY(
        make_batch(ctx, &problem->whole, order + from, to - from, seen, &batch[problem->batches]));
    if (batch[problem->batches].pairs) problem->batches++;
  }
  unicon__drop(ctx, seen);
  if (cut->in_order && n % size > 0)
    unicon__log(ctx, UNICON_LOG_INFO,
                "the last %lld rows of x do not fill a batch and are left out",
                (long long)(n % size));
  if (problem->batches == 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "batch is %lld: no batch of that size has two rows on each side",
                        (long long)size);
  return UNICON_OK;
}

void unicon__problem_close(unicon__problem *problem) {
  if (problem->batch == &problem->whole) return;
  for (int64_t b = 0; b < problem->batches; b++)
    unicon_pairs_destroy((unicon_pairs *)(uintptr_t)problem->batch[b].pairs);
  problem->batches = 0;
}
