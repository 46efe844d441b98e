/* SPDX-License-Identifier: Apache-2.0 */
/* How good a candidate of `unicon compare` is, plain and balanced, and how strongly to balance one
 * whose fit has not chosen that. */
#ifndef UNICON_PROGRAMS_JURY_H
#define UNICON_PROGRAMS_JURY_H

#include "contestants.h"

typedef struct jury {
  unicon_ctx *ctx;
  display *display; /* where warnings go */
  const compared_sets *data;
} jury;

/* A candidate: its model, NULL for the rows as they are, and how it is balanced, NULL for what the
 * model says. */
typedef struct fitted {
  unicon_model *model;
  unicon_balance *balance;
  bool there;
} fitted;

/* Both kinds of scores at once, as of unicon_evaluate. Silent unless `loud`. */
unicon_status jury_judge(const jury *j, const fitted *f, const unicon_data *rows,
                         const unicon_options *options, bool loud, unicon_result **out);

/* The score of either kind on the validation rows. */
unicon_status jury_held(const jury *j, const fitted *f, double score[SCORINGS]);

/* Balances a candidate with the strength that is best on the validation rows, of equals the
 * weakest, which *how names. `bank`: rows in place of the model's banks, or NULLs. */
unicon_status jury_choose(const jury *j, const unicon_rows *const bank[2], fitted *f,
                          const char **how);

/* The same for the rows as they are, with banks of training rows; where these are too few, nothing
 * is done. */
unicon_status jury_balance_rows(const jury *j, fitted *f, const char **how);

#endif
