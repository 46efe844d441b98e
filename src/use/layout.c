/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_layout: points placed in the plane, by their two main directions or by t-SNE from there.
 */
#include <math.h>

#include "base/options.h"
#include "linalg/spectral.h"
#include "use/tsne.h"
#include "linalg/blas.h"
#include "unicon/tools.h"

enum { TSNE_MOST = 2000, TSNE_LEAST = 4, LAYOUT_AUTO = 0, LAYOUT_TSNE = 1 };

static const double start_spread = 1e-4; /* of a t-SNE start, so that no point is far away yet */

/* Coordinates along the two leading principal directions, U s of the centred points. */
static unicon_status main_directions(unicon_ctx *ctx, const float *points, int64_t n, int64_t d,
                                     float *out) {
  const int64_t r = d < 2 || n < 2 ? 1 : 2;
  double *centred, *mean;
  unicon__svd svd;
  UNICON_NEW(ctx, centred, n * d);
  UNICON_NEW(ctx, mean, d);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < d; k++) mean[k] += (double)points[i * d + k] / (double)n;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < d; k++) centred[i * d + k] = (double)points[i * d + k] - mean[k];
  UNICON_TRY(unicon__svd_top(ctx, centred, n, d, r, UNICON__SVD_AUTO, 0, &svd));
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < 2; k++)
      out[i * 2 + k] = k < r ? (float)(svd.u[i * r + k] * svd.s[k]) : 0;
  return UNICON_OK;
}

/* Distances come from dot products, which lose everything far from the origin, and whose squares
 * must be float32. Affinities do not depend on the scale, so points that are very large or small
 * get another one. */
static unicon_status centred_points(unicon_ctx *ctx, const float *points, int64_t n, int64_t d,
                                    float **out) {
  double *mean;
  UNICON_NEW(ctx, mean, d);
  UNICON_NEW(ctx, *out, n * d);
  for (int64_t k = 0; k < n * d; k++) mean[k % d] += (double)points[k] / (double)n;
  double most = 0;
  for (int64_t k = 0; k < n * d; k++) most = fmax(most, fabs((double)points[k] - mean[k % d]));
  const double scale = most > 0 && (most < 1e-6 || most > 1e12) ? 1 / most : 1;
  for (int64_t k = 0; k < n * d; k++)
    (*out)[k] = (float)(((double)points[k] - mean[k % d]) * scale);
  unicon__drop(ctx, mean);
  return UNICON_OK;
}

static unicon_status spread_out(unicon_ctx *ctx, const float *points, int64_t n, int64_t d,
                                double perplexity, float *out, double *divergence) {
  unicon__tsne t;
  double square = 0;
  UNICON_TRY(unicon__tsne_open(ctx, n, &t));
  for (int64_t i = 0; i < n; i++) square += (double)out[i * 2] * (double)out[i * 2];
  const double scale = square > 0 ? start_spread / sqrt(square / (double)n) : 0;
  for (int64_t i = 0; i < n; i++) {
    t.x[i] = (float)(scale * (double)out[i * 2]);
    t.y[i] = (float)(scale * (double)out[i * 2 + 1]);
  }
  float *centred;
  UNICON_TRY(centred_points(ctx, points, n, d, &centred));
  UNICON_TRY(unicon__tsne_affinities(ctx, &t, centred, d, perplexity));
  UNICON_TRY(unicon__tsne_descend(ctx, &t));
  for (int64_t i = 0; i < n; i++) {
    out[i * 2] = t.x[i];
    out[i * 2 + 1] = t.y[i];
  }
  *divergence = unicon__tsne_divergence(&t);
  return UNICON_OK;
}

static unicon_status layout(unicon_ctx *ctx, const float *points, int64_t n, int64_t d,
                            const unicon_options *options, float *out, double *divergence) {
  const int how = unicon__word(options, UNICON__LAYOUT);
  for (int64_t k = 0; k < n * d; k++)
    if (!isfinite(points[k]))
      return unicon__fail(ctx, UNICON_ERR_DATA, "point %lld is not finite", (long long)(k / d));
  *divergence = NAN;
  UNICON_TRY(main_directions(ctx, points, n, d, out));
  const bool fits = how == LAYOUT_TSNE || (how == LAYOUT_AUTO && n <= TSNE_MOST);
  if (!fits || n < TSNE_LEAST) return UNICON_OK;
  return spread_out(ctx, points, n, d, unicon__number(options, UNICON__PERPLEXITY), out,
                    divergence);
}

unicon_status unicon_layout(unicon_ctx *ctx, const float *points, int64_t count, int64_t width,
                            const unicon_options *options, float *out, double *divergence) {
  double unused;
  UNICON_TRY(unicon__enter(ctx));
  if (count > INT32_MAX || width > UNICON__MAX_WIDTH)
    return unicon__leave(
        ctx, unicon__fail(ctx, UNICON_ERR_SHAPE,
                          "%lld points of width %lld: at most %d of width %d are "
                          "supported",
                          (long long)count, (long long)width, INT32_MAX, UNICON__MAX_WIDTH));
  if (!points || !out || count < 1 || width < 1)
    return unicon__leave(
        ctx,
        unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                     "layout needs points, at least 1 of width 1 (they are %lld by %lld), and a "
                     "place for them",
                     (long long)count, (long long)width));
  return unicon__leave(
      ctx, layout(ctx, points, count, width, options, out, divergence ? divergence : &unused));
}
