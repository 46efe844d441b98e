/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/draw.h"

#include <stdlib.h>

#include "base/number.h"
#include "base/rng.h"

unicon_status unicon__draw_open(unicon_ctx *ctx, const unicon_pairs *pairs, int64_t batch,
                                uint64_t seed, unicon__draw *out) {
  *out = (unicon__draw){.pairs = pairs, .seed = seed};
  for (int64_t i = 0; i < pairs->n_x; i++) out->rows += unicon__positives_x(pairs, i).count > 0;
  out->batch = batch < out->rows ? batch : out->rows;
  UNICON_NEW(ctx, out->order, 2 * out->rows);
  UNICON_NEW(ctx, out->seen, pairs->n_y);
  return UNICON_OK;
}

void unicon__draw_epoch(unicon__draw *d, int epoch) {
  unicon__permutation(d->seed, UNICON__STREAM_REFINE, (uint32_t)epoch, d->rows, d->order);
  /* the permutation numbers rows of x that have a positive */
  for (int64_t i = 0, next = 0; i < d->pairs->n_x; i++)
    if (unicon__positives_x(d->pairs, i).count > 0) d->order[d->rows + next++] = i;
  for (int64_t k = 0; k < d->rows; k++) d->order[k] = d->order[d->rows + d->order[k]];
}

void unicon__draw_batch(unicon__draw *d, int64_t step, int64_t *const row[2], int64_t count[2]) {
  count[0] = d->batch;
  count[1] = 0;
  for (int64_t k = 0; k < d->batch; k++) {
    const int64_t at = step * d->batch + k, i = d->order[at % d->rows];
    const unicon__partners p = unicon__positives_x(d->pairs, i);
    const int64_t j = unicon__partner(
        p, unicon__below(d->seed, UNICON__STREAM_REFINE, (uint64_t)at, UINT32_MAX, p.count));
    row[0][k] = i;
    if (d->seen[j]) continue;
    d->seen[j] = 1;
    row[1][count[1]++] = j;
  }
  for (int64_t k = 0; k < count[1]; k++) d->seen[row[1][k]] = 0;
  for (int s = 0; s < 2; s++)
    qsort(row[s], (size_t)count[s], sizeof *row[s], unicon__compare_int64);
}
