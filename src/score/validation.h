/* SPDX-License-Identifier: Apache-2.0 */
/* Held-out pairs, and the score by which candidates are compared: the mean over both directions of
 * (mrr + hit@10) / 2, so that the top of the list and its first page both count. Scores are
 * balanced as in use, from banks of training rows, none of which is held out as well. */
#ifndef UNICON_SCORE_VALIDATION_H
#define UNICON_SCORE_VALIDATION_H

#include "score/balance.h"
#include "features/batch.h"

typedef struct unicon__validation {
  unicon__source side[2]; /* held-out rows of x and y; maps are set by whoever asks for a score */
  const unicon_pairs *pairs;
  unicon__source bank[2];      /* training rows, through the same maps; count 0: no balance */
  unicon__balancing balance;   /* in force */
  struct unicon__judge *judge; /* of a device (score/judge.h), or NULL */
} unicon__validation;

/* Makes v->bank[side] from at most `most` rows of `train`, whose pairs are given. Where rows of one
 * side alone are held out their partners are training rows too: these are left out, unless hardly
 * any other is there (a side of few rows, all of them partners). */
unicon_status unicon__validation_bank(unicon_ctx *ctx, const unicon__source *train,
                                      const unicon_pairs *pairs, int side, int64_t most,
                                      uint64_t seed, unicon__validation *v);

/* Embeddings of the held-out and of the bank rows, not scaled. */
typedef struct unicon__embedded {
  int64_t r;
  float *held[2], *bank[2];
  const unicon_balance *made; /* banks or curves of a finished model, used as they are; or NULL */
} unicon__embedded;

/* All four sets times F_x or F_y (features by r). */
unicon_status unicon__validation_embed(unicon_ctx *ctx, const unicon__validation *v,
                                       const float *const f[2], int64_t r, unicon__embedded *out);

/* The score of the first `rank` columns, column k of side s times scale[s][k] (NULL: 1), balanced
 * as `how` says. Where candidates tie, a millionth of the margin decides (metrics.h). */
unicon_status unicon__validation_judge(unicon_ctx *ctx, const unicon__validation *v,
                                       const unicon__embedded *z, int64_t rank,
                                       const double *const scale[2], unicon__balancing how,
                                       double *score);

/* The score of the weights F_x and F_y, balanced as the validation says. */
unicon_status unicon__validation_score(unicon_ctx *ctx, const unicon__validation *v,
                                       const float *const f[2], int64_t r, double *score);

#endif
