/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing settings on held-out pairs. Presets auto and best choose kernel, ridge, metric power,
 * rank, exponent, balance and refine; preset fast chooses exponent and balance where there are few
 * rows. What the user has set is not touched. The fit that follows uses what was chosen. */
#ifndef UNICON_SELECT_SELECT_H
#define UNICON_SELECT_SELECT_H

#include "features/dataset.h"
#include "select/trial.h"

/* What was chosen, and the words about it for the metadata. */
typedef struct unicon__select_log {
  char tried[8192]; /* every setting with its score, ; between */
  char chosen[320];
  double score;                       /* held-out, of the choice */
  double by_epoch[UNICON__EPOCH_LOG]; /* held-out, refine of that kernel; entry 0: before it */
  int epochs;                         /* of refine that were tried */
  int schedule;                       /* of the refine that was chosen */
  int folds;
  int64_t held[2]; /* rows of x and y that were held out, of the first split */
} unicon__select_log;

/* How much is left to choose. */
typedef enum unicon__select_scope {
  UNICON__SELECT_NOTHING,
  UNICON__SELECT_SCORES, /* exponent and balance: how scores are made */
  UNICON__SELECT_ALL
} unicon__select_scope;

/* What these options leave to a choice, for so many rows of y. Only the closed form of one batch
 * and two encoders is chosen. */
unicon__select_scope unicon__select_scope_of(const unicon_options *options, int64_t rows_y);

/* Splits of a set with so many rows of y: several where a single one would be noisy. */
static inline int unicon__select_folds(int64_t rows) {
  return rows < 4000 ? 3 : 1;
}

/* Landmarks that tell settings apart; the fit that follows takes its own number. */
enum { UNICON__SELECT_LANDMARKS = 1000 };

/* Chooses on `folds` splits (train[k], held[k]) and writes the choice into `options`. */
unicon_status unicon__select(unicon_ctx *ctx, unicon__select_scope scope, unicon_options *options,
                             const unicon__dataset *train, const unicon__dataset *held, int folds,
                             unicon__select_log *log);

#endif
