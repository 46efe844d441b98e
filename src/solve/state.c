/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/state.h"

#include <math.h>
#include <string.h>

#include "linalg/reflect.h"
#include "linalg/tiled.h"

unicon_status unicon__state_new(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r,
                                unicon__state *out) {
  *out = (unicon__state){.m = m, .n = n, .r = r};
  UNICON_NEW(ctx, out->u, m * r);
  UNICON_NEW(ctx, out->s, r);
  UNICON_NEW(ctx, out->v, n * r);
  return UNICON_OK;
}

void unicon__state_copy(unicon__state *to, const unicon__state *from) {
  memcpy(to->u, from->u, (size_t)(from->m * from->r) * sizeof *to->u);
  memcpy(to->s, from->s, (size_t)from->r * sizeof *to->s);
  memcpy(to->v, from->v, (size_t)(from->n * from->r) * sizeof *to->v);
}

void unicon__state_normalize(unicon__state *state) {
  double sum = 0;
  for (int64_t k = 0; k < state->r; k++) sum += state->s[k] * state->s[k];
  for (int64_t k = 0; k < state->r && sum > 0; k++) state->s[k] /= sqrt(sum);
}

void unicon__state_trim(unicon__state *state, int64_t keep) {
  for (int64_t i = 0; i < state->m; i++)
    memmove(state->u + i * keep, state->u + i * state->r, (size_t)keep * sizeof *state->u);
  for (int64_t j = 0; j < state->n; j++)
    memmove(state->v + j * keep, state->v + j * state->r, (size_t)keep * sizeof *state->v);
  state->r = keep;
}

unicon_status unicon__state_add(unicon_ctx *ctx, const unicon__state *state, double exponent,
                                double factor, double *g) {
  double *scaled;
  UNICON_NEW(ctx, scaled, state->m * state->r);
  for (int64_t i = 0; i < state->m; i++)
    for (int64_t k = 0; k < state->r; k++)
      scaled[i * state->r + k] = state->u[i * state->r + k] * pow(state->s[k], exponent);
  unicon__tiled_dgemm(ctx, false, true, state->m, state->n, state->r, factor, scaled, state->r,
                      state->v, state->r, 1, g, state->n);
  unicon__drop(ctx, scaled);
  return UNICON_OK;
}

/* |A|^2 + |B|^2 - 2 sum_kl s_k s'_l (u_k.u'_l)(v_k.v'_l), O((m + n) r^2). */
unicon_status unicon__state_distance(unicon_ctx *ctx, const unicon__state *a,
                                     const unicon__state *b, double *out) {
  const int64_t r = a->r;
  double *p, *q, sum = 0;
  UNICON_NEW(ctx, p, r * r);
  UNICON_NEW(ctx, q, r * r);
  unicon__tiled_dgemm(ctx, true, false, r, r, a->m, 1, a->u, r, b->u, r, 0, p, r);
  unicon__tiled_dgemm(ctx, true, false, r, r, a->n, 1, a->v, r, b->v, r, 0, q, r);
  for (int64_t k = 0; k < r; k++) {
    sum += a->s[k] * a->s[k] + b->s[k] * b->s[k];
    for (int64_t l = 0; l < r; l++) sum -= 2 * a->s[k] * b->s[l] * p[k * r + l] * q[k * r + l];
  }
  *out = sum > 0 ? sqrt(sum) : 0;
  unicon__drop(ctx, q);
  unicon__drop(ctx, p);
  return UNICON_OK;
}

/* ---- mixing ------------------------------------------------------------------------------- */

static void stack(const double *a, const double *b, int64_t rows, int64_t r, double *out) {
  for (int64_t i = 0; i < rows; i++) {
    memcpy(out + i * 2 * r, a + i * r, (size_t)r * sizeof *out);
    memcpy(out + i * 2 * r + r, b + i * r, (size_t)r * sizeof *out);
  }
}

static double kept(const unicon__mixer *mix, double eta) {
  return mix->cosine ? 1 - eta : 1;
}

unicon_status unicon__mixer_open(unicon_ctx *ctx, const unicon__state *from,
                                 const unicon__state *to, bool cosine, unicon__mixer *out) {
  const int64_t m = from->m, n = from->n, r = from->r;
  *out = (unicon__mixer){.from = from, .to = to, .cosine = cosine, .dense = 2 * r > m || 2 * r > n};
  if (out->dense) return UNICON_OK;
  UNICON_NEW(ctx, out->qu, m * 2 * r);
  UNICON_NEW(ctx, out->ru, 4 * r * r);
  UNICON_NEW(ctx, out->qv, n * 2 * r);
  UNICON_NEW(ctx, out->rv, 4 * r * r);
  stack(from->u, to->u, m, r, out->qu);
  stack(from->v, to->v, n, r, out->qv);
  UNICON_TRY(unicon__tiled_dqr(ctx, m, 2 * r, out->qu, out->ru));
  return unicon__tiled_dqr(ctx, n, 2 * r, out->qv, out->rv);
}

/* weight * U diag(s) V^T added to `out` (m by n). */
static unicon_status add_dense(unicon_ctx *ctx, const unicon__state *state, double weight,
                               double *out) {
  double *us;
  UNICON_NEW(ctx, us, state->m * state->r);
  for (int64_t i = 0; i < state->m; i++)
    for (int64_t k = 0; k < state->r; k++)
      us[i * state->r + k] = state->u[i * state->r + k] * state->s[k];
  unicon__tiled_dgemm(ctx, false, true, state->m, state->n, state->r, weight, us, state->r,
                      state->v, state->r, 1, out, state->n);
  return UNICON_OK;
}

static unicon_status mix_dense(unicon_ctx *ctx, const unicon__mixer *mix, double eta,
                               unicon__state *out) {
  double *matrix;
  unicon__svd svd;
  UNICON_NEW(ctx, matrix, out->m * out->n);
  UNICON_TRY(add_dense(ctx, mix->from, kept(mix, eta), matrix));
  UNICON_TRY(add_dense(ctx, mix->to, eta, matrix));
  UNICON_TRY(unicon__svd_top(ctx, matrix, out->m, out->n, out->r, UNICON__SVD_DENSE, 0, &svd));
  const unicon__state top = {out->m, out->n, out->r, svd.u, svd.s, svd.v};
  unicon__state_copy(out, &top);
  return UNICON_OK;
}

static unicon_status mix_stacked(unicon_ctx *ctx, const unicon__mixer *mix, double eta,
                                 unicon__state *out) {
  const int64_t r = out->r, w = 2 * r;
  double *scaled, *core;
  unicon__svd svd;
  UNICON_NEW(ctx, scaled, w * w);
  UNICON_NEW(ctx, core, w * w);
  for (int64_t i = 0; i < w; i++)
    for (int64_t k = 0; k < w; k++)
      scaled[i * w + k] =
          mix->ru[i * w + k] * (k < r ? kept(mix, eta) * mix->from->s[k] : eta * mix->to->s[k - r]);
  unicon__tiled_dgemm(ctx, false, true, w, w, w, 1, scaled, w, mix->rv, w, 0, core, w);
  UNICON_TRY(unicon__svd_top(ctx, core, w, w, r, UNICON__SVD_DENSE, 0, &svd));
  memcpy(out->s, svd.s, (size_t)r * sizeof *out->s);
  unicon__tiled_dgemm(ctx, false, false, out->m, r, w, 1, mix->qu, w, svd.u, r, 0, out->u, r);
  unicon__tiled_dgemm(ctx, false, false, out->n, r, w, 1, mix->qv, w, svd.v, r, 0, out->v, r);
  return UNICON_OK;
}

unicon_status unicon__mix(unicon_ctx *ctx, const unicon__mixer *mix, double eta,
                          unicon__state *out) {
  if (kept(mix, eta) == 0) {
    unicon__state_copy(out, mix->to);
    return UNICON_OK;
  }
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(mix->dense ? mix_dense(ctx, mix, eta, out) : mix_stacked(ctx, mix, eta, out));
  unicon__frame_close(ctx, frame);
  if (mix->cosine) unicon__state_normalize(out);
  return UNICON_OK;
}
