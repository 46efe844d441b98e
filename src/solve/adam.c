/* SPDX-License-Identifier: Apache-2.0 */
#include "solve/adam.h"

#include <math.h>

#include "linalg/vec.h"

static const double beta_1 = 0.9, beta_2 = 0.999, relative_floor = 1e-4;

unicon_status unicon__adam_open(unicon_ctx *ctx, int64_t size, unicon__adam *out) {
  *out = (unicon__adam){.size = size};
  UNICON_NEW(ctx, out->mean, size);
  UNICON_NEW(ctx, out->square, size);
  return UNICON_OK;
}

void unicon__adam_take(unicon__adam *adam, const unicon__adam_step *step, const float *gradient,
                       float *value) {
  const unicon__vec *vec = unicon__vec_best();
  const double bias_1 = 1 - pow(beta_1, (double)step->number);
  const double bias_2 = 1 - pow(beta_2, (double)step->number);
  const double size = sqrt(vec->dot(gradient, gradient, adam->size) / (double)adam->size);
  const unicon__adam_rates rates = {
      .beta_1 = (float)beta_1,
      .beta_2 = (float)beta_2,
      .keep = (float)(1 - step->rate * step->decay),
      .length = (float)(step->rate / bias_1),
      .root = (float)(1 / sqrt(bias_2)),
      .floor = (float)(size * relative_floor + 1e-20),
  };
  vec->adam(value, adam->mean, adam->square, gradient, adam->size, &rates);
}

double unicon__adam_scalar(const unicon__adam_step *step, double gradient, double moment[2],
                           double value) {
  moment[0] = beta_1 * moment[0] + (1 - beta_1) * gradient;
  moment[1] = beta_2 * moment[1] + (1 - beta_2) * gradient * gradient;
  const double mean = moment[0] / (1 - pow(beta_1, (double)step->number));
  const double square = moment[1] / (1 - pow(beta_2, (double)step->number));
  return value - step->rate * mean / (sqrt(square) + 1e-8);
}
