/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of rows that can be merged, taken from and made smaller, and is the same whatever the
 * order and the split of what it was made from.
 *
 * A unit is a connected component of the pairs, or a single pair of one that has too many rows; with
 * class labels it is a row with its label, equal ones once, and each side has half of the room. Its
 * number e = -log u comes from the generator, fed with the content of its rows and pairs. The sample
 * has all units with a number below `threshold`, of which there are as many as have room: the first
 * unit that has none, in the order of the numbers, sets the threshold. After units are removed there
 * are fewer; a unit above the threshold never enters again.
 *
 * Where older units count less, as by weight w, their numbers are e / w: the sample is then drawn by
 * weight, without replacement (Efraimidis and Spirakis 2006). */
#ifndef UNICON_KEPT_SAMPLE_H
#define UNICON_KEPT_SAMPLE_H

#include "features/batch.h"

enum { UNICON__UNIT_ROWS = 64 }; /* a component of more rows is sampled by its pairs */

typedef struct unicon__unit {
  double key;
  bool whole;             /* a component, not one pair of it */
  int64_t rows[2], pairs; /* how many of each */
  int64_t at[2], at_pair; /* where they start */
} unicon__unit;

typedef struct unicon__sample {
  int64_t room;        /* rows of both sides together */
  double threshold[2]; /* labels: of each side; else [0] of all */
  bool labelled;
  unicon__unit *unit; /* by number */
  int64_t units;
  int64_t width[2], rows[2];
  uint16_t *half[2]; /* rows by width: the rows at length 1, in float16 */
  float *length[2];  /* of the rows as they came */
  uint64_t *hash[2]; /* of their content */
  int64_t *label[2]; /* key of the class of each row, or NULL */
  int64_t pairs;
  int32_t *pair; /* pairs by 2: numbers of rows inside the unit */
  float *weight; /* pairs */
} unicon__sample;

/* Numbers of the content of rows. Fails at a row that cannot be used, where the source is to be
 * looked at. */
unicon_status unicon__row_hashes(unicon_ctx *ctx, const unicon__source *source, uint64_t **out);

/* One number of both, in this order. */
uint64_t unicon__hash_of(uint64_t a, uint64_t b);

/* Is it all rows there are? */
bool unicon__sample_is_all(const unicon__sample *sample);

/* An empty sample; what it will hold lives in arenas of whoever fills it. */
void unicon__sample_init(unicon__sample *sample, int64_t room, int64_t width_x, int64_t width_y);

/* The sample of a set alone, in the context's frame; `hash` has the content of its rows. */
unicon_status unicon__sample_of(unicon_ctx *ctx, const unicon__batch *set,
                                const uint64_t *const hash[2], const unicon__sample *like,
                                unicon__sample *out);

/* Those below make a new sample, `out`, in memory of `arena`; what they are made from stays.
 *
 * The sample of two sets together. */
unicon_status unicon__sample_merge(unicon_ctx *ctx, unicon__arena *arena, const unicon__sample *a,
                                   const unicon__sample *b, unicon__sample *out);

/* A sample without the units of a set: those with its numbers, and units of which it has some pair.
 * Adds the units of the set that were not there to *strangers. */
unicon_status unicon__sample_remove(unicon_ctx *ctx, unicon__arena *arena,
                                    const unicon__sample *sample, const unicon__batch *set,
                                    const uint64_t *const hash[2], int64_t *strangers,
                                    unicon__sample *out);

/* A sample without the units of another; it knows of units below the threshold of that one alone. */
unicon_status unicon__sample_subtract(unicon_ctx *ctx, unicon__arena *arena,
                                      const unicon__sample *sample, const unicon__sample *less,
                                      int64_t *strangers, unicon__sample *out);

/* Units of a side (labels; else all are of side 0) of `more` that could be in both samples, and how
 * many of them are. */
void unicon__sample_shared(const unicon__sample *sample, const unicon__sample *more, int side,
                           int64_t *could, int64_t *are);

/* Gives the memory of a sample back. */
void unicon__sample_drop(unicon__arena *arena, unicon__sample *sample);

/* Units so far weigh `keep` times as much. */
void unicon__sample_decay(unicon__sample *sample, double keep);

/* The rows of a side as float32, in the context's frame. */
unicon_status unicon__sample_rows(unicon_ctx *ctx, const unicon__sample *sample, int side,
                                  float **out);

#endif
