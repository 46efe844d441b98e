/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the plane that are not plain negatives, as sparse rows for a device: positives,
 * ignored pairs and a row with itself. */
#ifndef UNICON_LOSS_ENTRIES_H
#define UNICON_LOSS_ENTRIES_H

#include "device/device.h"
#include "loss/loss.h"

typedef struct unicon__entry {
  int64_t i, j;
  bool positive;
  int64_t count;  /* positives: partners of row i */
  double weight;  /* ... and the weight of the pair */
  double epsilon; /* what it would count as a negative: 1 for a positive, 0 for the row itself */
} unicon__entry;

/* The entries of row i, in the order of their columns. */
typedef struct unicon__entry_walk {
  const unicon_pairs *pairs;
  unicon__partners positive, listed;
  int64_t i, self, p, l; /* row; the next of each */
} unicon__entry_walk;

unicon__entry_walk unicon__entries_of(const unicon_pairs *pairs, int64_t i);
bool unicon__entry_next(unicon__entry_walk *walk, unicon__entry *out);

/* The value of an entry; its part of the loss goes to *part. Called by several threads. */
typedef double (*unicon__entry_fn)(const unicon__loss *loss, const unicon__entry *entry,
                                   double *part);

/* Their rows, columns ascending, in the frame; *sum is that of the parts, in order. */
unicon_status unicon__entries_make(unicon_ctx *ctx, const unicon__loss *loss,
                                   unicon__entry_fn value, unicon__device_sparse *out, double *sum);

/* Can they be listed? Not where only listed pairs are negatives, or labels make too many pairs for
 * the memory. */
bool unicon__entries_few(const unicon_ctx *ctx, const unicon_pairs *pairs);

/* The score of an entry in float64. */
double unicon__entry_score(const unicon__loss *loss, const unicon__entry *entry);

#endif
