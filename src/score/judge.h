/* SPDX-License-Identifier: Apache-2.0 */
/* The held-out score on a device: rows stay there, weights go there, counts come back. */
#ifndef UNICON_SCORE_JUDGE_H
#define UNICON_SCORE_JUDGE_H

#include "features/feed.h"
#include "score/validation.h"

typedef struct unicon__judge {
  unicon_ctx *ctx;
  bool on;                  /* is it in force? */
  unicon__kept kept[4];     /* of sources that had none: held-out rows, rows of banks */
  unicon__device_room room; /* of the embeddings */
  unicon__matrix *z[4];     /* of held-out rows of x, of y, of both banks (NULL: none) */
  int64_t r;                /* their columns */
  /* Of both directions, x first: matches, and what is hidden with them (unicon__device_ranks). */
  int64_t *start[2], *match[2], *hidden_start[2], *hidden[2], *self[2], *count[2];
} unicon__judge;

/* Puts the rows of a validation on the device, if there is one that can judge them: `out` is then
 * in force. Memory in the frame; close before the context ends, also after a failure. */
unicon_status unicon__judge_open(unicon_ctx *ctx, unicon__validation *v, unicon__judge *out);
void unicon__judge_close(unicon__judge *judge);

/* Inside a road: embeddings by F_x and F_y, features by r, of the device. */
unicon_status unicon__judge_embed(unicon_ctx *ctx, unicon__device_room *room,
                                  const unicon__validation *v, unicon__judge *judge,
                                  unicon__matrix *const f[2], int64_t r);

/* Inside a road: the score of the embeddings, as unicon__validation_judge. */
unicon_status unicon__judge_score(unicon_ctx *ctx, const unicon__validation *v,
                                  const unicon__judge *judge, int64_t rank,
                                  const double *const scale[2], unicon__balancing how,
                                  double *score);

/* The same as roads of their own, F from the host. *done: it has been done; else the host is to do
 * it, and the judge is out of force. */
unicon_status unicon__judge_take(unicon_ctx *ctx, const unicon__validation *v, unicon__judge *judge,
                                 const float *const f[2], int64_t r, bool *done);
unicon_status unicon__judge_tell(unicon_ctx *ctx, const unicon__validation *v, unicon__judge *judge,
                                 int64_t rank, const double *const scale[2], unicon__balancing how,
                                 double *score, bool *done);

/* unicon__validation_score, on the device where the validation has a judge in force. */
unicon_status unicon__judged(unicon_ctx *ctx, const unicon__validation *v, const float *const f[2],
                             int64_t r, double *score);

#endif
