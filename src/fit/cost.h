/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of a fit hold and do, by the sizes of the problem: memory follows their
 * allocations in the order of the code (what stays until the end, and what a stage needs on top),
 * work is the number of float operations. */
#ifndef UNICON_FIT_COST_H
#define UNICON_FIT_COST_H

#include "features/dataset.h"
#include "select/select.h"

typedef struct unicon__cost_side {
  double n, d;      /* rows and their width */
  double p, points; /* features, landmarks or directions */
  double tables;    /* of points by d: kernels of distances hold landmarks around their mean too */
  bool linear;
} unicon__cost_side;

/* Parts of the work, to say which one is most of it. */
typedef enum unicon__cost_part {
  UNICON__COST_SUMS,    /* features and statistics */
  UNICON__COST_PLANE,   /* sweeps over all pairs of rows */
  UNICON__COST_REFINE,  /* steps of refine */
  UNICON__COST_ALGEBRA, /* factorisations, in float64 */
  UNICON__COST_PARTS
} unicon__cost_part;

typedef struct unicon__cost {
  const unicon_options *options;
  unicon__params params;
  unicon__cost_side side[2];
  double pairs, classes;     /* classes 0: a list of pairs */
  double listed;             /* pairs, those of labels too */
  bool lists;                /* ignored pairs, listed negatives, one set of rows */
  bool own_pairs, one_sweep; /* row i with row i; rows are looked at while they are summed */
  double ways;               /* directions of pairs with sums of their own */
  double workers, rank, parts;
  double limit;       /* max_mem, or infinity */
  double most_points; /* landmarks that a trial takes at most */
  double held, peak;  /* bytes */
  double work[UNICON__COST_PARTS];
  double reads[2], sweeps;
} unicon__cost;

/* Fills in sizes and counts what is held at the start. */
void unicon__cost_open(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                       unicon__cost *out);

/* A fit as its parameters say. */
void unicon__cost_fit(unicon__cost *cost);
bool unicon__cost_chooses(const unicon__cost *cost);

/* A fit from statistics with p features of each side and a sample of so many rows, and statistics of
 * the rows of a fit. */
void unicon__cost_stored(unicon__cost *cost, const double sample[2]);
void unicon__cost_sums(unicon__cost *cost, bool ledger, double sample);

#endif
