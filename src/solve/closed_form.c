/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/closed_form.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "linalg/blas.h"

enum { DENSE_UP_TO = 400 }; /* smaller side for which the dense SVD is cheap */

/* ---- whitening ---------------------------------------------------------------------------- */

/* Coordinates in which Sigma is diagonal. */
static unicon_status whiten_diagonal(unicon_ctx *ctx, const unicon__moments *m, int s, double power,
                                     double ridge, unicon__whitening *out) {
  /* Float32 features carry noise of about 1e-7 of the largest eigenvalue. */
  const double floor = m->mu[s] * (double)FLT_EPSILON;
  double *scale;
  UNICON_NEW(ctx, scale, m->p[s]);
  for (int64_t k = 0; k < m->p[s]; k++) {
    const double e = (m->values[s][k] > 0 ? m->values[s][k] : 0) + ridge * m->mu[s];
    scale[k] = e > floor ? pow(e, -power) : 0;
  }
  *out = (unicon__whitening){UNICON__WHITEN_DIAGONAL, m->p[s], NULL, scale};
  return UNICON_OK;
}

unicon_status unicon__closed_whiten(unicon_ctx *ctx, const unicon__moments *moments,
                                    const unicon__closed_params *params,
                                    unicon__whitening metric[2]) {
  for (int s = 0; s < 2; s++) {
    const double power = params->power[s];
    if (moments->values[s])
      UNICON_TRY(whiten_diagonal(ctx, moments, s, power, params->ridge[s], &metric[s]));
    else
      UNICON_TRY(unicon__whiten_build(ctx, moments->sigma[s], moments->p[s], moments->mu[s], power,
                                      params->ridge[s], &metric[s]));
  }
  return UNICON_OK;
}

unicon_status unicon__closed_matrix(unicon_ctx *ctx, const unicon__whitening metric[2], double *c) {
  for (int64_t k = 0; k < metric[0].size * metric[1].size; k++)
    if (!isfinite(c[k]))
      return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                          "the weights of the loss overflow float32; a higher temperature, or phi "
                          "log instead of identity, keeps them small");
  UNICON_TRY(unicon__whiten_left(ctx, &metric[0], c, metric[1].size));
  return unicon__whiten_right(ctx, &metric[1], c, metric[0].size);
}

/* ---- decomposition ------------------------------------------------------------------------ */

/* The leading positive eigenvalues of (M + M^T)/2 and their vectors: the best symmetric positive
 * approximation (docs/method.md T22). Missing ones are 0. */
static unicon_status symmetric(unicon_ctx *ctx, double *m, int64_t p, int64_t rank,
                               unicon__closed *out) {
  unicon__state *state = &out->state;
  double *vectors = NULL, *values = NULL;
  for (int64_t i = 0; i < p; i++)
    for (int64_t j = 0; j < i; j++) m[i * p + j] = m[j * p + i] = (m[i * p + j] + m[j * p + i]) / 2;
  UNICON_TRY(unicon__state_new(ctx, p, p, rank, state));
  UNICON_TRY(unicon__eigen(ctx, m, p, &vectors, &values));
  for (int64_t k = 0; k < rank; k++) {
    const int64_t from = p - 1 - k; /* ascending order */
    state->s[k] = values[from] > 0 ? values[from] : 0;
    for (int64_t i = 0; i < p; i++)
      state->u[i * rank + k] = state->v[i * rank + k] = vectors[from * p + i];
  }
  out->gap = rank < p && state->s[rank - 1] > 0 ? values[p - 1 - rank] / state->s[rank - 1] : 0;
  out->method = "symmetric";
  unicon__drop(ctx, values);
  unicon__drop(ctx, vectors);
  return UNICON_OK;
}

unicon_status unicon__closed_update(unicon_ctx *ctx, const unicon__whitening metric[2], double *c,
                                    const unicon__closed_params *params, unicon__closed *out) {
  const int64_t p_x = metric[0].size, p_y = metric[1].size, rank = params->rank;
  unicon__svd_start *start = params->start;
  unicon__svd svd;
  UNICON_TRY(unicon__closed_matrix(ctx, metric, c));
  if (params->shared) return symmetric(ctx, c, p_x, rank, out);
  if (start && start->basis) {
    UNICON_TRY(unicon__svd_warm(ctx, c, p_x, p_y, rank, start->basis, start->width,
                                start->warm ? 1 : 5, &svd));
    start->warm = true;
  } else {
    UNICON_TRY(unicon__svd_top(ctx, c, p_x, p_y, rank, params->svd, params->seed, &svd));
  }
  out->state = (unicon__state){p_x, p_y, rank, svd.u, svd.s, svd.v};
  out->residual = svd.residual > out->residual ? svd.residual : out->residual;
  out->gap = svd.s[rank - 1] > 0 ? svd.next / svd.s[rank - 1] : 0;
  out->method = svd.method;
  return UNICON_OK;
}

unicon_status unicon__closed_form(unicon_ctx *ctx, const unicon__moments *moments,
                                  const unicon__closed_params *params, unicon__closed *out) {
  double *c;
  *out = (unicon__closed){.method = ""};
  unicon__blas_begin();
  unicon_status status = unicon__closed_whiten(ctx, moments, params, out->metric);
  c = status == UNICON_OK ? unicon__new(ctx, moments->p[0] * moments->p[1], sizeof *c) : NULL;
  if (status == UNICON_OK && !c) status = UNICON_ERR_MEMORY;
  if (status == UNICON_OK) {
    memcpy(c, moments->cross, (size_t)(moments->p[0] * moments->p[1]) * sizeof *c);
    status = unicon__closed_update(ctx, out->metric, c, params, out);
  }
  unicon__blas_end();
  if (status == UNICON_OK) unicon__drop(ctx, c);
  return status;
}

unicon_status unicon__svd_start_open(unicon_ctx *ctx, int64_t p_x, int64_t p_y, int64_t rank,
                                     uint64_t seed, unicon__svd_start *out) {
  const int64_t small = p_x < p_y ? p_x : p_y, width = rank + rank / 4 + 16;
  float *row;
  *out = (unicon__svd_start){.width = width};
  if (small <= DENSE_UP_TO || 2 * width > small) return UNICON_OK;
  UNICON_NEW(ctx, out->basis, p_y * width);
  UNICON_NEW(ctx, row, width);
  for (int64_t j = 0; j < p_y; j++) {
    unicon__normals(seed, UNICON__STREAM_SKETCH, (uint64_t)j, width, row);
    for (int64_t k = 0; k < width; k++) out->basis[j * width + k] = (double)row[k];
  }
  unicon__drop(ctx, row);
  return UNICON_OK;
}
