/* SPDX-License-Identifier: Apache-2.0 */
/* What a fit is to do, read from the options once. A choice is made among values of this struct;
 * options are text only at the border. */
#ifndef UNICON_SELECT_PARAMS_H
#define UNICON_SELECT_PARAMS_H

#include "solve/prepared.h"
#include "solve/refine.h"
#include "solve/solve.h"

typedef enum unicon__goal {
  UNICON__GOAL_FIXED, /* no preset that chooses */
  UNICON__GOAL_AUTO,
  UNICON__GOAL_BEST
} unicon__goal;

typedef struct unicon__params {
  unicon__goal goal;
  const char *kernel;    /* name of the one that was chosen, or NULL */
  bool landmarks_chosen; /* how many, too */
  unicon__map_params map;
  unicon__centring centring;
  bool shared;
  bool unpaired; /* rows without a partner count as well */
  bool sided;    /* each side has a power of its own */
  int64_t rows[2];
  double power[2], ridge[2];
  int64_t rank; /* at most; INT64_MAX: full */
  bool rank_given;
  double exponent, split;
  unicon__svd_method svd;
  unicon__start start;
  const char *start_path; /* of the options */
  unicon__loss_params loss;
  int iterations;
  bool safe;
  double tolerance, identity;
  unicon__cut cut; /* into batches */
  bool solutions;  /* of batches are averaged, not their C */
  unicon__aggregation aggregate;
  unicon__refine_params refine;
  unicon__balancing balance;
  int64_t bank;
  double val_fraction; /* 0: by the number of rows */
  double budget;       /* seconds, or infinity */
  uint64_t seed;
  /* what the user left open */
  struct {
    bool kernel, landmarks, ridge, power, exponent, rank, balance, refine, temperature, batch;
  } open;
} unicon__params;

/* `rows` of x and y decide the usual ridges and balance. `options` must outlive the parameters. */
void unicon__params_from(const unicon_options *options, const int64_t rows[2], unicon__params *out);

/* Ridges of both sides by their numbers of rows: sample eigenvalues of fewer rows are noisier. With
 * n the geometric mean of both numbers,
 *     factor n^-1/2 (n_y / n_x)^1/2 for x,   factor n^-1/2 (n_x / n_y)^1/2 for y.
 */
#define UNICON__RIDGE_ROWS 1.16   /* factor for plain rows: 0.01 for the n of Flickr8k, 13416 ... */
#define UNICON__RIDGE_KERNEL 0.35 /* ... and where auto begins with a kernel (docs/results) */
void unicon__params_ridges(double factor, const int64_t rows[2], double ridge[2]);

/* Writes what a choice changed into options, for those who read them. */
unicon_status unicon__params_write(unicon_ctx *ctx, const unicon__params *params,
                                   unicon_options *options);

/* Powers of the singular values in F_x and F_y: exponent * split and exponent * (1 - split). */
void unicon__params_powers(const unicon__params *params, double power[2]);

unicon__closed_params unicon__params_closed(const unicon__params *params, int64_t rank);
unicon__solve_params unicon__params_solve(const unicon__params *params, int64_t rank);

/* What the statistics of a fit must hold, and how its rows are prepared. */
unicon__prepare_plan unicon__params_prepare(const unicon__params *params,
                                            const unicon__batch *data);

/* Batches with a kernel have no basis in common: each gets a model of its own, fused in the end. */
bool unicon__params_fused(const unicon__params *params, int64_t rows_x);

/* The highest rank that features and rows allow. */
int64_t unicon__most_rank(const unicon__params *params, const unicon__prepared *prepared);

#endif
