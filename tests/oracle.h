/* SPDX-License-Identifier: Apache-2.0 */
/* The losses once more, in double precision and straight from their definitions (docs/method.md
 * section 1), with dense masks and naive loops: what the tiled, masked, log-domain float32 code
 * must equal.
 *
 * Nothing here shares a formula with src: the sums run over pairs and negatives as written,
 * without statistics of rows, sorting or log domains. */
#ifndef UNICON_TESTS_ORACLE_H
#define UNICON_TESTS_ORACLE_H

#include <stdbool.h>

#include "loss/loss.h"

enum { ORACLE_MOST = 40 };

typedef struct oracle_matrix {
  double at[ORACLE_MOST][ORACLE_MOST];
} oracle_matrix;

/* A set of pairs, twice: as dense masks, and as the library's object. */
typedef struct oracle_problem {
  int n_x, n_y;
  bool positive[ORACLE_MOST][ORACLE_MOST];
  oracle_matrix weight;  /* w of positives */
  oracle_matrix epsilon; /* of pairs as negatives; 0 on positives and ignored pairs */
  unicon_pairs *pairs;
} oracle_problem;

/* ---- losses ------------------------------------------------------------------------------- */

double oracle_loss(const unicon__loss_params *params, const oracle_problem *problem,
                   const oracle_matrix *s);
void oracle_weights(const unicon__loss_params *params, const oracle_problem *problem,
                    const oracle_matrix *s, oracle_matrix *out);

/* One direction alone: L_x and S^x. Not for siglip and spectral, which have no directions. */
double oracle_loss_x(const unicon__loss_params *params, const oracle_problem *problem,
                     const oracle_matrix *s);
void oracle_weights_x(const unicon__loss_params *params, const oracle_problem *problem,
                      const oracle_matrix *s, oracle_matrix *out);

/* x and y change places; `out` has no pairs object. */
void oracle_transpose(const oracle_problem *problem, oracle_problem *out);
void oracle_transpose_matrix(const oracle_matrix *m, oracle_matrix *out);

/* omega^x_ik, 0 off the positives; number of positives of row i; rows with a positive (a_x). */
double oracle_omega(const oracle_problem *problem, int i, int k);
int oracle_row_count(const oracle_problem *problem, int i);
int oracle_anchors(const oracle_problem *problem);

/* psi, phi and their derivatives. */
double oracle_psi(const unicon__loss_params *params, double x, int derivative);
double oracle_phi(const unicon__loss_params *params, double x, int derivative);

/* ---- what is tested on what --------------------------------------------------------------- */

/* A loss with its parameters; the temperature is the test's to set. */
typedef struct oracle_case {
  const char *name;
  unicon__loss_params params;
} oracle_case;

extern const oracle_case oracle_cases[];
extern const int oracle_case_count;

/* Whether psi is e^(x/tau), whether the temperature matters, whether the loss is a sum of two
 * directions (or one), whether it has a kink, and whether it is defined by all of exp(s/tau)
 * without a logarithm. */
bool oracle_is_exponential(const unicon__loss_params *params);
bool oracle_has_temperature(const unicon__loss_params *params);
bool oracle_has_directions(const unicon__loss_params *params);
bool oracle_has_kink(const unicon__loss_params *params);
bool oracle_overflows(const unicon__loss_params *params);
/* The library refuses this loss on class labels (softplus: n^3 / classes). */
bool oracle_refuses(const unicon__loss_params *params, const oracle_problem *problem);

enum {
  ORACLE_ONE_TO_ONE,
  ORACLE_FIVE_PER_X,
  ORACLE_MANY,             /* random many-to-many, unpaired rows and columns */
  ORACLE_WEIGHTED,         /* the same with weights, some 0, one row all 0 */
  ORACLE_IGNORED,          /* weights and ignored pairs */
  ORACLE_NEGATIVES,        /* explicit negatives, a row has none */
  ORACLE_LABELS,           /* classes, one of them on one side only */
  ORACLE_LABELS_IGNORED,   /* labels with ignored pairs */
  ORACLE_LABELS_NEGATIVES, /* labels with explicit negatives */
  ORACLE_TALL,             /* n_x > n_y */
  ORACLE_DENSE,            /* most pairs are positive: more than a block of them */
  ORACLE_PART_IGNORED,     /* negatives that count less than others */
  ORACLE_PART_NEGATIVES,   /* explicit negatives that count 1/8 to 7/8 */
  ORACLE_ONE_SET,          /* labels of one set: no row is its own pair, one has none */
  ORACLE_ONE_SET_IGNORED,
  ORACLE_ONE_SET_NEGATIVES,
  ORACLE_SET_COUNT
};

const char *oracle_set_name(int set);
/* Small: about 10 rows a side; otherwise 19 to 40. Needs cmocka; the pairs are made by the public
 * functions. */
void oracle_open(unicon_ctx *ctx, int set, bool small, oracle_problem *out);
/* From masks that are set already (pairs NULL): lists, weights, and explicit negatives where
 * `listed`, otherwise ignored pairs. */
void oracle_attach(unicon_ctx *ctx, bool listed, oracle_problem *problem);
void oracle_close(oracle_problem *problem);

/* ---- the library on a small plane --------------------------------------------------------- */

typedef struct oracle_rows {
  int n, r;
  float z[ORACLE_MOST * ORACLE_MOST];
} oracle_rows;

/* Random rows of length 1. With `grid` they are rounded to multiples of 2^-8 (lengths are then off
 * by less than 1 %): every score is a multiple of 2^-16 and exact in float32, in whatever order it
 * is summed, and no hinge with the margins of oracle_cases is within 1e-6 of its kink. */
void oracle_rows_draw(uint64_t seed, int n, int r, bool grid, oracle_rows *out);
/* Rows whose scores are exactly the given ones (rounded to float32): x is the identity. */
void oracle_rows_direct(const oracle_problem *problem, const oracle_matrix *s, oracle_rows *x,
                        oracle_rows *y);
void oracle_scores(const oracle_rows *x, const oracle_rows *y, oracle_matrix *s);

/* L and S of the library, at the context's tile sizes and threads. */
unicon_status oracle_library(unicon_ctx *ctx, const unicon__loss_params *params,
                             const oracle_problem *problem, const oracle_rows *x,
                             const oracle_rows *y, double *value, oracle_matrix *s);

/* Largest modulus of m, and of a - b, over n_x by n_y. */
double oracle_largest(const oracle_problem *problem, const oracle_matrix *m);
double oracle_distance(const oracle_problem *problem, const oracle_matrix *a,
                       const oracle_matrix *b);

#endif
