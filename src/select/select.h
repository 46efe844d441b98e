/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing settings on held-out pairs. Presets auto and best choose kernel, landmarks, ridge,
 * metric power, rank, exponent, balance and refine; preset fast chooses ridge, exponent and balance
 * where there are few rows. What the user has set is not touched. The fit that follows uses what
 * was chosen. */
#ifndef UNICON_SELECT_SELECT_H
#define UNICON_SELECT_SELECT_H

#include "select/trial.h"

/* What was chosen, and the words about it for the metadata. */
typedef struct unicon__select_log {
  char tried[32768]; /* every setting with its score, ; between */
  char chosen[320];
  double score;                       /* held-out, of the choice */
  double chance;                      /* what it would be of a random order */
  double by_epoch[UNICON__EPOCH_LOG]; /* held-out, of the refine; entry 0: before it */
  int epochs;                         /* of refine that were tried */
  int folds;
  int64_t held[2]; /* rows of x and y that were held out, of the first split */
} unicon__select_log;

/* Rows of y below which preset fast chooses too: it costs little, and a rule fits less well. */
enum { UNICON__FEW_ROWS = 10000 };

/* How much is left to choose. */
typedef enum unicon__select_scope {
  UNICON__SELECT_NOTHING,
  UNICON__SELECT_SCORES, /* ridge, exponent and balance: of one kernel, metric and rank */
  UNICON__SELECT_ALL
} unicon__select_scope;

/* What these parameters leave to a choice, for so many rows of y. Only the closed form of one batch
 * and two encoders is chosen. */
unicon__select_scope unicon__select_scope_of(const unicon__params *params, int64_t rows_y);

/* Splits of a set with so many rows of y: several where a single one would be noisy. */
static inline int unicon__select_folds(int64_t rows) {
  return rows < 4000 ? 3 : 1;
}

enum {
  UNICON__SELECT_LANDMARKS = 1024, /* that tell kernels apart, for preset best ... */
  UNICON__AUTO_LANDMARKS = 2000,   /* ... and those of the model: auto's */
  UNICON__BEST_LANDMARKS = 5000    /* ... and best's */
};

/* What a choice is made on. */
typedef struct unicon__select_job {
  unicon__select_scope scope;
  const unicon_options *options; /* for words */
  const unicon__batch *data;     /* all training rows, sources without maps */
  const unicon__dataset *train, *held;
  int folds;                  /* splits (train[k], held[k]) */
  bool judged;                /* held[0] are validation pairs, and train[0] is all there is */
  unicon__prepared *prepared; /* of the kernel that is given, made ready before; NULL: made here */
} unicon__select_job;

enum { UNICON__SELECT_SLOTS = 2 };

/* Chooses, and writes the choice into `params`. Works in the given slots, which the caller closes,
 * also after a failure; *kept is the one whose rows the fit can go on with, or NULL. */
unicon_status unicon__select(unicon_ctx *ctx, const unicon__select_job *job, unicon__params *params,
                             unicon__prepared slot[UNICON__SELECT_SLOTS], unicon__prepared **kept,
                             unicon__select_log *log);

#endif
