/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of paired rows: all that the closed form needs, as sums over rows, so that they can be
 * added to, taken from and merged (docs/method.md section 9).
 *
 * Through fixed maps, with psi = phi - c and c the mean of the map (any vector near the mean of the
 * features; it must not change while the statistics live):
 *
 *     a side         n, a = sum psi, G = sum psi psi^T
 *     a direction    A = sum_P w_ik, H = sum_P w_ik psi_x(i) psi_y(k)^T,
 *                    h = sum_P w_ik psi_x(i), h' = sum_P w_ik psi_y(k)
 *     x to y         w_ik = weight / |P_x(i)|;  y to x  w_ik = weight / |P_y(k)|
 *
 * With class labels the rows and sums of each class stand in the place of H: any split of the rows
 * adds up. Else all partners of a row must come in one set. Rows without a partner are left out unless asked for, or
 * where there are lists. Ignored pairs and listed negatives are no sums over rows: a set
 * that has them can only be added alone.
 *
 * Products are float32 tiles of 1024 rows, summed in float64 in a fixed order; or float64 where
 * statistics will be kept and taken from. n p_x^2 + n p_y^2 + 2 n_x p_x p_y flops. Room does not
 * grow with the threads beyond a tile each. */
#ifndef UNICON_SOLVE_STATS_H
#define UNICON_SOLVE_STATS_H

#include "features/batch.h"

typedef struct unicon__direction {
  double weight;        /* A */
  double *cross;        /* H, p_x by p_y */
  double *left, *right; /* h, h' */
} unicon__direction;

typedef struct unicon__stats {
  int64_t p[2];               /* features that are looked at: the first of each map */
  double rows[2];             /* n */
  double *sum[2], *square[2]; /* a; the diagonal of G */
  double *gram[2];            /* G (lower triangle), NULL: not kept */
  unicon__direction way[2];   /* x to y; y to x, whose cross is NULL while H' = ratio H */
  double ratio;
  int64_t classes; /* labels: n and a of each class ... */
  double *class_rows[2], *class_sum[2];
  const unsigned char *class_kept; /* ... that has rows on both sides, in the first set */
  const int64_t *class_key;        /* ... by which it is known in other sets, ascending */
  bool listed; /* ignored pairs or listed negatives: way[0] holds C as it is (not divided by A), and
                  alone[s] the sums of u psi_x, v psi_y, that the terms u 1^T, 1 v^T need */
  double *alone[2], alone_weight[2];
  unsigned holds; /* see the flags */
} unicon__stats;

enum {
  UNICON__STATS_GRAM_X = 1,
  UNICON__STATS_GRAM_Y = 2,
  UNICON__STATS_CROSS = 4,
  UNICON__STATS_DOUBLE = 8,   /* float64 products */
  UNICON__STATS_UNPAIRED = 16 /* rows without a partner count as well */
};

/* Empty statistics for sets like `like`, of the first lead[s] features of each side. */
unicon_status unicon__stats_open(unicon_ctx *ctx, unicon__arena *arena, const unicon__batch *like,
                                 const int64_t lead[2], unsigned holds, unicon__stats *out);

/* Gives the memory of sums back; class_key is the caller's. */
void unicon__stats_drop(unicon__arena *arena, unicon__stats *stats);

/* Adds (sign 1) or takes away (sign -1) the rows and pairs of a set. */
unicon_status unicon__stats_add(unicon_ctx *ctx, const unicon__batch *set, double sign,
                                unicon__stats *stats);

/* Sums two sets of statistics that hold the same things of the same maps: to += sign from. `to` has
 * all classes of which `from` has rows. */
unicon_status unicon__stats_merge(unicon_ctx *ctx, const unicon__stats *from, double sign,
                                  unicon__stats *to);

/* All sums of sets without lists times a factor. */
void unicon__stats_scale(double factor, unicon__stats *stats);

/* What features are centred by. */
typedef enum unicon__centring {
  UNICON__CENTRE_NONE,
  UNICON__CENTRE_SIDES, /* the mean of their own side */
  UNICON__CENTRE_SHARED /* the mean of both sides together, which have one map */
} unicon__centring;

/* Means, covariances and C = (C_x + C_y)/2 of the moment weights, S of supcon at s = 0:
 *
 *     C_x = H/A - (h/A) m_y^T - m_x (h'/A)^T + m_x m_y^T - (h/A - m_x) (a_y/n_y - m_y)^T
 *
 * with m what is subtracted: the last term vanishes where that is the mean of y. */
typedef struct unicon__moments {
  int64_t p[2];
  double rows[2];
  double *mean[2];   /* m, to be added to the mean of the map */
  double spread[2];  /* trace of the covariance */
  double *sigma[2];  /* lower triangle, or NULL */
  double *values[2]; /* in its place where the features are eigenvector coordinates: its diagonal */
  double mu[2];      /* its largest eigenvalue; 0 without sigma */
  double *cross;     /* C, or NULL */
} unicon__moments;

/* The moments of `stats` without those of `less` (NULL: nothing), of the first lead[s] features. */
unicon_status unicon__stats_finish(unicon_ctx *ctx, const unicon__stats *stats,
                                   const unicon__stats *less, unicon__centring centring,
                                   const int64_t lead[2], unicon__moments *out);

/* C alone of statistics about given means (relative to the maps'): for batches of one fit. */
unicon_status unicon__stats_cross(unicon_ctx *ctx, const unicon__stats *stats,
                                  const double *const mean[2], double *c);

#endif
