/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel tried on one split. The features and their statistics are made once for all rows and
 * splits (solve/prepared); the moments of a training part are those of all rows less those of the
 * held-out ones. Of landmark features the first 1024 are looked at: they are those of the first
 * 1024 landmarks, the factor being triangular.
 *
 * Turned into eigenvector coordinates, where whitening is diagonal, a setting (power, ridges) costs
 * one small SVD, and exponents, ranks and balances only scale, cut and shift the embeddings that it
 * gives. Refine works in the same coordinates. */
#ifndef UNICON_SELECT_TRIAL_H
#define UNICON_SELECT_TRIAL_H

#include "features/dataset.h"
#include "score/judge.h"
#include "select/params.h"

typedef struct unicon__setting {
  double power, ridge[2], exponent;
  int64_t rank;
  unicon__balancing balance;
} unicon__setting;

typedef struct unicon__trial {
  const unicon__params *params;
  const unicon__prepared *prepared;
  unicon__batch train;         /* through the maps of what is prepared */
  unicon__moments moments;     /* of the training rows */
  unicon__validation held;     /* held-out and bank rows, in the coordinates in force */
  unicon__validation features; /* the same as features */
  bool turned;
  int64_t features_used[2], q[2]; /* features, and coordinates, in use */
  float *axes[2];                 /* features by q: eigenvectors by column */
  float *offset[2];               /* q: the mean of the training rows in coordinates */
  unicon__map seen[2];  /* what rows are seen through: the map about their own mean or, turned,
                          nothing but q columns */
  unicon__kept kept[6]; /* rows on a device: held-out ones and banks of both sides, training rows */
  unicon__judge judge;
  unicon__svd_start start;
  int64_t most, limit; /* highest rank, and what it can be resized to */
  /* The last setting that was decomposed, and what it made of the held-out and bank rows before
   * the singular values come in: */
  double power, ridge[2];
  unicon__state state;
  int64_t signal; /* directions above rounding */
  bool away;      /* on the device of the judge, not in z */
  unicon__embedded z;
  /* Training rows in coordinates, for refine; opened on first use. */
  unicon__batch rows;
  unicon__problem part; /* where only some of the rows have room */
} unicon__trial;

/* Prepares a split; `most` bounds the rank. The trial must stay where it is; unicon__trial_close
 * frees what is not of the frame, also after a failure. */
unicon_status unicon__trial_open(unicon_ctx *ctx, const unicon__params *params,
                                 const unicon__prepared *prepared, const unicon__dataset *train,
                                 const unicon__dataset *held, int64_t most, unicon__trial *out);
void unicon__trial_close(unicon__trial *trial);

/* Turns into eigenvector coordinates: before more than one setting is tried. */
unicon_status unicon__trial_turn(unicon_ctx *ctx, unicon__trial *trial);

/* Makes `most`, or the limit, the highest rank; what was decomposed is forgotten. */
unicon_status unicon__trial_resize(unicon_ctx *ctx, unicon__trial *trial, int64_t most);

/* Held-out score of a setting. */
unicon_status unicon__trial_score(unicon_ctx *ctx, unicon__trial *trial,
                                  const unicon__setting *setting, double *score);

/* The setting refined; the log has the held-out score of every epoch, and `score` those of the best
 * epoch under `hows` ways to balance. */
unicon_status unicon__trial_refine(unicon_ctx *ctx, unicon__trial *trial,
                                   const unicon__setting *setting,
                                   const unicon__refine_params *params, unicon__refine_log *log,
                                   const unicon__balancing *how, int hows, double *score);

#endif
