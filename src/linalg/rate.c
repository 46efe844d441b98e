/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/rate.h"

#include "base/clock.h"
#include "linalg/tiled.h"

enum { SIZE = 768, TIMES = 3 }; /* some tens of milliseconds; the best of TIMES counts */

unicon_status unicon__product_rate(unicon_ctx *ctx, double *single, double *wide) {
  const double flops = 2.0 * SIZE * SIZE * SIZE;
  unicon__block *frame = unicon__frame_open(ctx);
  float *a;
  double *b = NULL;
  UNICON_NEW(ctx, a, 2 * SIZE * SIZE);
  if (wide) UNICON_NEW(ctx, b, 2 * SIZE * SIZE);
  for (int k = 0; k < TIMES; k++) {
    double start = unicon__now();
    unicon__tiled_sgemm(ctx, false, false, SIZE, SIZE, SIZE, 1, a, SIZE, a, SIZE, 0,
                        a + SIZE * SIZE, SIZE);
    const double rate = flops / (unicon__now() - start + 1e-9);
    if (k == 0 || rate > *single) *single = rate;
    if (!wide) continue;
    start = unicon__now();
    unicon__tiled_dgemm(ctx, false, false, SIZE, SIZE, SIZE, 1, b, SIZE, b, SIZE, 0,
                        b + SIZE * SIZE, SIZE);
    const double rate_wide = flops / (unicon__now() - start + 1e-9);
    if (k == 0 || rate_wide > *wide) *wide = rate_wide;
  }
  unicon__frame_close(ctx, frame);
  return unicon__poll(ctx);
}
