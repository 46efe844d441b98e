/* SPDX-License-Identifier: Apache-2.0 */
/* The moment weights: S of supcon at s = 0, sparse plus rank one, so C needs no walk of the plane.
 *
 *     S(0)_ij = (omega^x_ij + omega^y_ij)/2 - (u_i + v_j) on candidates (positives and negatives),
 *     u_i = Omega^x_i / (2 candidates of row i),  v_j = Omega^y_j / (2 candidates of column j)
 *
 * With centred features the terms u 1^T and 1 v^T vanish from C. (docs/method.md section 2.) */
#ifndef UNICON_LOSS_MOMENT_H
#define UNICON_LOSS_MOMENT_H

#include "features/feature.h"
#include "io/pairs.h"

/* C = Phi_x^T S(0) Phi_y; `centred`: the features of both sides sum to 0. O(nnz(P) p_y + n_x p_x
 * p_y), with labels O(n_y p_y) for the first term. */
unicon_status unicon__moment_cross(unicon_ctx *ctx, const unicon_pairs *pairs,
                                   const unicon__source *x, const unicon__source *y, bool centred,
                                   double *c);

#endif
