/* SPDX-License-Identifier: Apache-2.0 */
/* Grades of pairs by a fit that has not seen them: for what share of the rows that are no partner
 * the partner is closer. A true pair of alignable data comes near 1, a wrong one anywhere. */
#ifndef UNICON_USE_SUSPECT_H
#define UNICON_USE_SUSPECT_H

#include "features/batch.h"

/* A pair that may be wrong; with class labels a row that may have the wrong label, the other number
 * being -1. */
typedef struct unicon__suspect {
  int64_t x, y;
  double cosine; /* of the pair, by a fit that did not see it; with class labels the mean */
  double closer; /* share of other rows that are farther than the partner, of both directions */
} unicon__suspect;

typedef struct unicon__grades {
  unicon__suspect *entry;
  int64_t count, room;
} unicon__grades;

/* How many entries the pairs make. */
int64_t unicon__grade_count(const unicon_pairs *pairs);

/* Appends the grades of a set from its unit embeddings. Pairs are graded in both directions and the
 * mean is taken; with class labels a row is graded by its mean cosine with its class. At most 4096
 * rows of the other side, drawn at random, are compared. Row numbers are those of the files. */
unicon_status unicon__grade(unicon_ctx *ctx, const unicon__batch *set, const float *zx,
                            const float *zy, int64_t r, uint64_t seed, unicon__grades *grades);

/* Worst first. */
void unicon__grades_sort(unicon__grades *grades);

#endif
