/* SPDX-License-Identifier: Apache-2.0 */
/* Preset auto: chooses kernel, ridge, metric power, rank and refine epochs on held-out pairs. What
 * the user has set is not touched. */
#ifndef UNICON_CORE_AUTO_H
#define UNICON_CORE_AUTO_H

#include "core/contest.h"
#include "core/dataset.h"

/* What was chosen, and the words about it for the metadata. */
typedef struct unicon__auto_log {
  char tried[4096]; /* "kernel ridge power rank score" of every setting, ; between */
  char chosen[256];
  double score;                       /* held-out, of the choice */
  double by_epoch[UNICON__EPOCH_LOG]; /* held-out, of the choice's refine; entry 0: before it */
  int epochs;                         /* of refine that were tried */
  int folds;
  int64_t held[2]; /* rows of x and y that were held out, of the first split */
} unicon__auto_log;

/* Do these options leave the choice to auto? One batch, a closed form and two encoders. */
bool unicon__is_auto(const unicon_options *options);

/* Splits of a set with so many rows of y: several where a single one would be noisy. */
static inline int unicon__auto_folds(int64_t rows) {
  return rows < 4000 ? 3 : 1;
}

/* Landmarks that tell settings apart on several splits. */
enum { UNICON__AUTO_LANDMARKS = 1000 };

/* Chooses on `folds` splits (train[k], held[k]) and writes the choice into `options`. With `part`
 * (one fold only), the fitted part of that split is stored there too. */
unicon_status unicon__auto(unicon_ctx *ctx, unicon__arena *arena, unicon_options *options,
                           const unicon__dataset *train, const unicon__dataset *held, int folds,
                           unicon__part *part, unicon__part_log *part_log, unicon__auto_log *log);

#endif
