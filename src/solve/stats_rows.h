/* SPDX-License-Identifier: Apache-2.0 */
/* T = W Psi_y for rows of x, W the weights of the pairs: what statistics multiply by Psi_x^T.
 *
 * Direction 0 is x to y, W_ik = w / |P_x(i)|; 1 is y to x, W_ik = w / |P_y(k)|. With lists there is
 * one W, S of supcon at s = 0 without its terms of rank one,
 *
 *     S(0)_ij = (omega^x_ij + omega^y_ij)/2 - e_ij (u_i + v_j), e = 1 on positives, else epsilon,
 *     u_i = Omega^x_i / (2 candidates of row i),  v_j = Omega^y_j / (2 candidates of column j):
 *
 * of u 1^T + 1 v^T it takes what ignored pairs (in part, where they count in part) and a row with
 * itself give back or, where negatives are listed, everything there is. */
#ifndef UNICON_SOLVE_STATS_ROWS_H
#define UNICON_SOLVE_STATS_ROWS_H

#include "features/batch.h"
#include "loss/loss.h"

typedef struct unicon__stats_rows {
  const unicon__batch *set;
  int64_t p; /* features of y that are looked at */
  bool listed;
  double *total[2]; /* lists: row sums and column sums of W */
  double weight;    /* ... its sum */
  double *alone[2]; /* ... u and v, where all rows are candidates, else 0 */
  double alone_weight[2];
  unicon__plane plane; /* for omega */
  double *u, *v;
  double *class_sum, *class_b; /* labels: sums over a class of psi_y, plain and by column shares */
} unicon__stats_rows;

unicon_status unicon__stats_rows_open(unicon_ctx *ctx, const unicon__batch *set, int64_t p,
                                      bool listed, unicon__stats_rows *out);

/* Sum of W. */
double unicon__stats_rows_weight(const unicon__stats_rows *rows, int direction);

/* Row sums (side 0) or column sums (1) of W for the rows of a chunk, as below. */
void unicon__stats_rows_totals(const unicon__stats_rows *rows, int direction, int side,
                               const int64_t *row, int64_t first, int64_t count, double *out);

/* With lists: u (side 0) or v of these rows. */
void unicon__stats_rows_alone(const unicon__stats_rows *rows, int side, const int64_t *row,
                              int64_t first, int64_t count, double *out);

/* T, in one precision or the other. */
typedef struct unicon__stats_t {
  float *single;
  double *wide; /* or NULL */
} unicon__stats_t;

/* T of rows first .. first+count-1 (of those that `row` lists, unless it is NULL). */
unicon_status unicon__stats_rows_make(unicon_ctx *ctx, const unicon__stats_rows *rows,
                                      int direction, const int64_t *row, int64_t first,
                                      int64_t count, unicon__stats_t t);

/* The entries of W in rows as above, in no order; start has count + 1 numbers. In the frame. What
 * labels give to a whole class is not among them. */
typedef struct unicon__stats_entries {
  int64_t *start, *column;
  double *value;
} unicon__stats_entries;

unicon_status unicon__stats_rows_entries(unicon_ctx *ctx, const unicon__stats_rows *rows,
                                         int direction, const int64_t *row, int64_t first,
                                         int64_t count, unicon__stats_entries *out);

/* The r with w / |P_y(k)| = r w / |P_x(i)| for all pairs, or -1: then one direction tells both. */
double unicon__pairs_ratio(const unicon_pairs *pairs);
bool unicon__pairs_have_ratio(const unicon_pairs *pairs, double ratio);

#endif
