/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/dense_device.h"

typedef struct dense {
  bool trans_a, trans_b;
  int64_t m, n, k;
  double *a, *w, *u, *vt, *c; /* vt: or v, n by k */
  const double *left, *right;
} dense;

static unicon_status eigen_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  (void)room;
  const dense *d = state;
  return unicon__on(ctx, eigen, d->n, d->a, d->w);
}

unicon_status unicon__device_dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, bool *done) {
  dense d = {.n = n, .a = a, .w = w};
  *done = false;
  if (!unicon__device_serves(ctx, eigen, 5 * (double)n * (double)n * (double)n)) return UNICON_OK;
  return unicon__device_run(ctx, "eigenvectors", eigen_road, &d, done);
}

static unicon_status svd_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  (void)room;
  const dense *d = state;
  return unicon__on(ctx, svd, d->m, d->n, d->a, d->w, d->u, d->vt);
}

unicon_status unicon__device_dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                    double *u, double *vt, bool *done) {
  dense d = {.m = m, .n = n, .a = a, .w = s, .u = u, .vt = vt};
  const double least = (double)(m < n ? m : n);
  *done = false;
  if (!unicon__device_serves(ctx, svd, 7 * (double)m * (double)n * least)) return UNICON_OK;
  return unicon__device_run(ctx, "singular values", svd_road, &d, done);
}

static unicon_status leading_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  (void)room;
  const dense *d = state;
  return unicon__on(ctx, leading, d->m, d->n, d->k, d->left, d->w, d->u, d->vt);
}

unicon_status unicon__device_leading(unicon_ctx *ctx, int64_t m, int64_t n, int64_t r,
                                     const double *a, double *s, double *u, double *v, bool *done) {
  dense d = {.m = m, .n = n, .k = r, .left = a, .w = s, .u = u, .vt = v};
  const double least = (double)(m < n ? m : n);
  *done = false;
  if (!unicon__device_serves(ctx, leading, least * least * (9 * least + (double)(m + n))))
    return UNICON_OK;
  return unicon__device_run(ctx, "singular values", leading_road, &d, done);
}

static unicon_status product_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  (void)room;
  const dense *d = state;
  return unicon__on(ctx, product, d->trans_a, d->trans_b, d->m, d->n, d->k, d->left, d->right,
                    d->c);
}

/* Who calls has no status: where the device fails the host goes on, and the next stage that can
 * fail says it. */
bool unicon__device_dgemm(unicon_ctx *ctx, bool trans_a, bool trans_b, int64_t m, int64_t n,
                          int64_t k, const double *a, const double *b, double *c) {
  dense d = {.trans_a = trans_a,
             .trans_b = trans_b,
             .m = m,
             .n = n,
             .k = k,
             .left = a,
             .right = b,
             .c = c};
  bool done = false;
  if (!unicon__device_serves(ctx, product, 2 * (double)m * (double)n * (double)k)) return false;
  if (unicon__device_run(ctx, "product", product_road, &d, &done) != UNICON_OK)
    unicon__device_forget(ctx);
  return done;
}
