/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer landmarks without looking at a row again. With K = L L^T of the landmarks and phi = L^{-1}
 * k(landmarks, x), row i of L is the feature vector of landmark i. For the landmarks S that are left
 * let L_S^T = Q R; then
 *
 *     K_S = R^T R,   phi_S = R^{-T} k(S, x) = R^{-T} L_S phi = Q^T phi:
 *
 * the features of a fit on S alone, up to signs, are the projection of phi on the span of S, and sums
 * of phi become sums of phi_S by products with Q, which is orthonormal. About 6 m^3 flops a side. */
#include <string.h>

#include "kept/kept.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"
#include "linalg/tiled.h"

/* out = l^T, of n by n. */
static void transpose(const double *l, int64_t n, double *out) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) out[j * n + i] = l[i * n + j];
}

/* Q (p by left) of a side, and its factor R^{-1}. */
static unicon_status basis_of(unicon_ctx *ctx, const unicon__map *map, const unsigned char *gone,
                              int64_t left, double **q, double **factor) {
  const int64_t m = map->points;
  double *wide, *lower, *r;
  UNICON_NEW(ctx, wide, m * m);
  UNICON_NEW(ctx, lower, m * m);
  for (int64_t k = 0; k < m * m; k++) wide[k] = (double)map->factor[k];
  transpose(wide, m, lower);
  unicon__tiled_inverse(ctx, m, lower, m, wide); /* L^T */
  UNICON_NEW(ctx, *q, m * left);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0, to = 0; j < m; j++)
      if (!gone[j]) (*q)[i * left + to++] = wide[i * m + j];
  UNICON_NEW(ctx, r, left * left);
  UNICON_TRY(unicon__tiled_dqr(ctx, m, left, *q, r));
  UNICON_NEW(ctx, *factor, left * left);
  transpose(r, left, lower);
  unicon__tiled_inverse(ctx, left, lower, left, *factor);
  unicon__drop(ctx, r);
  unicon__drop(ctx, lower);
  unicon__drop(ctx, wide);
  return unicon__poll(ctx);
}

static unicon_status smaller_map(unicon_ctx *ctx, unicon__arena *arena, const unicon__map *map,
                                 const unsigned char *gone, int64_t left, const double *factor,
                                 unicon__map *out) {
  *out = *map;
  out->center = out->near = out->square = NULL;
  out->points = out->out = left;
  UNICON_ARENA_NEW(ctx, arena, out->base, left * map->in);
  UNICON_ARENA_NEW(ctx, arena, out->factor, left * left);
  for (int64_t k = 0; k < left * left; k++) out->factor[k] = (float)factor[k];
  for (int64_t j = 0, to = 0; j < map->points; j++)
    if (!gone[j])
      memcpy(out->base + to++ * map->in, map->base + j * map->in,
             (size_t)map->in * sizeof *map->base);
  return unicon__map_settle(ctx, arena, out);
}

unicon_status unicon__project_open(unicon_ctx *ctx, unicon__arena *arena, const unicon__map *map,
                                   const unsigned char *gone, unicon__projection *out) {
  double *factor;
  *out = (unicon__projection){.p = map->out, .left = map->out, .map = *map};
  if (!gone) return UNICON_OK;
  out->left = 0;
  for (int64_t j = 0; j < map->points; j++) out->left += !gone[j];
  if (out->left < 2)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "the rows to be removed are all but %lld of the %lld landmarks; make the "
                        "statistics anew with other landmarks",
                        (long long)out->left, (long long)map->points);
  unicon__blas_begin();
  const unicon_status status = basis_of(ctx, map, gone, out->left, &out->q, &factor);
  unicon__blas_end();
  UNICON_TRY(status);
  return smaller_map(ctx, arena, map, gone, out->left, factor, &out->map);
}

/* to = Q_x^T from Q_y, the one or the other being no projection. `lower`: from is the lower triangle
 * of a symmetric matrix. */
static unicon_status project_matrix(unicon_ctx *ctx, const unicon__projection *x,
                                    const unicon__projection *y, bool lower, const double *from,
                                    double *to) {
  const int64_t p = x->p, q = y->p;
  double *whole, *half;
  UNICON_NEW(ctx, whole, p * q);
  memcpy(whole, from, (size_t)(p * q) * sizeof *whole);
  for (int64_t i = 0; i < p && lower; i++)
    for (int64_t j = 0; j < i; j++) whole[j * q + i] = whole[i * q + j];
  half = whole;
  if (x->q) {
    UNICON_NEW(ctx, half, x->left * q);
    unicon__tiled_dgemm(ctx, true, false, x->left, q, p, 1, x->q, x->left, whole, q, 0, half, q);
  }
  if (y->q)
    unicon__tiled_dgemm(ctx, false, false, x->left, y->left, q, 1, half, q, y->q, y->left, 0, to,
                        y->left);
  else
    memcpy(to, half, (size_t)(x->left * q) * sizeof *to);
  if (half != whole) unicon__drop(ctx, half);
  unicon__drop(ctx, whole);
  return UNICON_OK;
}

static void project_vector(const unicon__projection *x, const double *from, double *to) {
  if (!x->q) {
    memcpy(to, from, (size_t)x->p * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < x->p; i++)
    for (int64_t k = 0; k < x->left; k++) to[k] += x->q[i * x->left + k] * from[i];
}

static unicon_status project_all(unicon_ctx *ctx, const unicon__projection side[2],
                                 const unicon__stats *from, unicon__stats *to) {
  for (int s = 0; s < 2; s++) {
    const int64_t p = side[s].left;
    to->rows[s] = from->rows[s];
    project_vector(&side[s], from->sum[s], to->sum[s]);
    UNICON_TRY(project_matrix(ctx, &side[s], &side[s], true, from->gram[s], to->gram[s]));
    for (int64_t k = 0; k < p; k++) to->square[s][k] = to->gram[s][k * p + k];
    for (int64_t c = 0; c < from->classes; c++) {
      to->class_rows[s][c] = from->class_rows[s][c];
      project_vector(&side[s], from->class_sum[s] + c * side[s].p, to->class_sum[s] + c * p);
    }
  }
  for (int d = 0; d < 2 && from->classes == 0; d++) {
    to->way[d].weight = from->way[d].weight;
    project_vector(&side[0], from->way[d].left, to->way[d].left);
    project_vector(&side[1], from->way[d].right, to->way[d].right);
    UNICON_TRY(
        project_matrix(ctx, &side[0], &side[1], false, from->way[d].cross, to->way[d].cross));
  }
  return unicon__poll(ctx);
}

unicon_status unicon__project_sums(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon__projection side[2], const unicon__stats *from,
                                   unicon__stats *out) {
  const unicon__map map[2] = {side[0].map, side[1].map};
  UNICON_TRY(unicon__kept_open_sums(ctx, arena, map, from->holds & UNICON__STATS_UNPAIRED,
                                    from->class_key, from->classes, out));
  unicon__blas_begin();
  const unicon_status status = project_all(ctx, side, from, out);
  unicon__blas_end();
  return status;
}
