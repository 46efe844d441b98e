/* SPDX-License-Identifier: Apache-2.0 */
/* Held-out pairs, and the score by which candidates are compared: the mean over both directions of
 * (mrr + hit@10) / 2, so that the top of the list and its first page both count. */
#ifndef UNICON_CORE_JUDGE_H
#define UNICON_CORE_JUDGE_H

#include "core/batch.h"

typedef struct unicon__judge {
  unicon__source x, y; /* held-out rows; their maps are set by whoever asks for a score */
  const unicon_pairs *pairs;
} unicon__judge;

/* The score of a pair of results. */
double unicon__score(const unicon_metrics metrics[2]);

/* Scores embeddings (n by r with ld floats between rows) by their first `rank` columns. */
unicon_status unicon__judge_embedded(unicon_ctx *ctx, const unicon__judge *judge, const float *zx,
                                     const float *zy, int64_t ld, int64_t rank,
                                     unicon_metrics metrics[2]);

/* Scores the weights F_x, F_y (map->out by r). */
unicon_status unicon__judge_weights(unicon_ctx *ctx, const unicon__judge *judge, const float *fx,
                                    const float *fy, int64_t r, unicon_metrics metrics[2]);

#endif
