/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel tried on one training and one held-out part. The features, the eigenvectors of both
 * covariances and C are made once; then rows live in the leading q eigenvector coordinates, where
 * the metric is diagonal:
 *
 *     M = D_x^{-power} (Q_x^T C Q_y) D_y^{-power},  D = eigenvalues + ridge * largest
 *
 * So a setting (power, ridge) costs one small SVD, and exponents, ranks and balances only scale,
 * cut and shift the embeddings that it gives. Refine works in the same coordinates. */
#ifndef UNICON_SELECT_TRIAL_H
#define UNICON_SELECT_TRIAL_H

#include "select/part.h"

typedef struct unicon__setting {
  double power, ridge, exponent;
  int64_t rank;
  unicon__balancing balance;
} unicon__setting;

typedef struct unicon__trial {
  const unicon_options *options;
  unicon__side side[2];
  const unicon_pairs *pairs;
  int64_t q[2];            /* coordinates in use */
  double *values[2];       /* their eigenvalues, largest first */
  float *axes[2];          /* features by q: eigenvectors by column */
  unicon__map plain[2];    /* what rows in coordinates are seen through: nothing but q columns */
  unicon__validation held; /* held-out and bank rows in coordinates */
  double *cross;           /* Q_x^T C Q_y, q_x by q_y */
  double *start;           /* q_y by start_width: right basis of the last setting, or NULL */
  int64_t start_width;
  bool warm;    /* start comes from a setting, not from the generator */
  int64_t most; /* highest rank */
  /* The last setting that was decomposed, and what it made of the held-out and bank rows before
   * the singular values come in: */
  double power, ridge;
  unicon__svd svd;
  int64_t signal; /* directions above rounding */
  unicon__embedded z;
  /* Training rows in coordinates, for refine; opened on first use. */
  unicon__batch rows;
  unicon__problem part; /* where only some of the rows have room */
} unicon__trial;

/* Prepares the sides and everything shared; `most` bounds the rank. The trial must stay where it
 * is; unicon__trial_close frees what is not of the frame, also after a failure. */
unicon_status unicon__trial_open(unicon_ctx *ctx, const unicon_options *options,
                                 const unicon__batch *train, const unicon__validation *held,
                                 int64_t most, unicon__trial *out);
void unicon__trial_close(unicon__trial *trial);

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
