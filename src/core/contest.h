/* SPDX-License-Identifier: Apache-2.0 */
/* A contest between settings on one training and one held-out part, sharing what can be shared:
 * the features, the eigenvectors of both covariances and C are made once; then a setting (power,
 * ridge) costs one small SVD, and all ranks come from it.
 *
 *     M = D_x^{-power} (Q_x C Q_y^T) D_y^{-power},  D = eigenvalues + ridge * largest */
#ifndef UNICON_CORE_CONTEST_H
#define UNICON_CORE_CONTEST_H

#include "core/part.h"

enum { UNICON__CONTEST_RANKS = 6 };

typedef struct unicon__contest {
  const unicon_options *options;
  unicon__batch train; /* through the sides' maps */
  unicon__judge judge; /* through the same maps */
  unicon__side side[2];
  double *rotated; /* Q_x C Q_y^T */
  float *held[2];  /* held-out features times Q^T */
  double *start;   /* p_y by start_width: right basis of the last setting, or NULL */
  int64_t start_width;
  bool warm;                           /* start comes from a setting, not from the generator */
  int64_t rank[UNICON__CONTEST_RANKS]; /* tried, ascending */
  int ranks;
} unicon__contest;

/* Prepares the sides and everything shared. The contest must stay where it is. `most` bounds the
 * rank; a rank given by the user is the only one tried, or the highest that these rows allow: an
 * error where the contest is `final`, its winner being the model. */
unicon_status unicon__contest_open(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon_options *options, const unicon__batch *train,
                                   const unicon__judge *held, int64_t most, bool final,
                                   unicon__contest *out);

/* Held-out score of a setting at every rank. The SVD starts from that of the setting before. */
unicon_status unicon__contest_score(unicon_ctx *ctx, unicon__contest *contest, double power,
                                    double ridge, double score[UNICON__CONTEST_RANKS]);

/* The closed form of a setting as factors, with its metric and spectrum. */
unicon_status unicon__contest_factors(unicon_ctx *ctx, const unicon__contest *contest, double power,
                                      double ridge, int64_t rank, unicon__metric metric[2],
                                      unicon__factors *factors, unicon__solve_log *log);

#endif
