/* SPDX-License-Identifier: Apache-2.0 */
/* A set of rows and pairs, checked and ready: bad rows refused or dropped, pairs renumbered; and
 * its split into a training and a held-out part. */
#ifndef UNICON_FEATURES_DATASET_H
#define UNICON_FEATURES_DATASET_H

#include "features/batch.h"
#include "base/options.h"

typedef struct unicon__dataset {
  unicon__batch whole;  /* sources without maps, and the pairs among their rows */
  unicon_pairs *own;    /* pairs made here, or NULL */
  uint64_t hash;        /* of every value of the rows */
  unicon__look look[2]; /* of rows that are looked at when they are first walked */
  bool overlaps; /* of a split: held-out rows of one side have partners that are in training */
} unicon__dataset;

/* What is done about rows that cannot be used. */
typedef enum unicon__bad_rows {
  UNICON__BAD_REFUSE,
  UNICON__BAD_DROP,
  UNICON__BAD_LATER /* whoever walks them first will see */
} unicon__bad_rows;

/* A copy of the caller's set, which must have rows of both sides. */
unicon_status unicon__data_take(unicon_ctx *ctx, const unicon_data *given, unicon_data *out);

/* The rows that can be used through the maps of both sides, and the pairs among them; how many are
 * left is the caller's business. unicon__dataset_close frees what it made, also after a failure. */
unicon_status unicon__dataset_take(unicon_ctx *ctx, const unicon_data *data,
                                   const unicon__map map[2], unicon__bad_rows bad,
                                   unicon__dataset *out);

/* Checks shapes and values, and that there is something to fit on; with `later`, values are not
 * looked at: the sources say so (`look`), and unicon__dataset_look has to follow. `out` must stay
 * where it is then. unicon__dataset_close frees what it made, also after a failure. */
unicon_status unicon__dataset_open(unicon_ctx *ctx, const unicon_data *data,
                                   const unicon_options *options, bool later, unicon__dataset *out);

/* Looks at rows that nobody has looked at in the meantime, and fails where one cannot be used. */
unicon_status unicon__dataset_look(unicon_ctx *ctx, unicon__dataset *set);
void unicon__dataset_close(unicon__dataset *set);

/* Numbers each row, those of x and then those of y, by its connected component of the pairs,
 * 0 .. count-1 in order of first appearance; x rows of one group (may be NULL) are connected too.
 * `largest` is the number of rows of the largest component. */
unicon_status unicon__components(unicon_ctx *ctx, const unicon__batch *whole, const int64_t *groups,
                                 int64_t **number, int64_t *count, int64_t *largest);

/* Holds out about `fraction` of the pairs. Rows that belong together stay together: whole groups
 * (numbers per x row of the original data) or, without, whole connected components of the pairs.
 * With class labels single rows of both sides are held out. Where one component has most of the
 * rows, y rows are held out instead, and the log says so. Where the data cannot be cut in two parts
 * that a fit could be made of, *why_not says why, and is NULL otherwise; with why_not NULL that is
 * an error. */
unicon_status unicon__dataset_split(unicon_ctx *ctx, const unicon__dataset *set,
                                    const int64_t *groups, double fraction, uint64_t seed,
                                    unicon__dataset *train, unicon__dataset *held,
                                    const char **why_not);

#endif
