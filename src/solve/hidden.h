/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a hidden layer, in front of the factors that refine trains:
 *
 *     h = sqrt(2/m) relu(W (u - c) + b),  phi = drop(h) - mean,  u = x/|x|, c the mean of u
 *
 * with dropout scaled by 1/(1-P) so that phi has the same mean with and without it. From dL/dphi:
 * dL/dW = d^T (U - c), dL/db = sum_i d_i, d = sqrt(2/m)/(1-P) dL/dphi where h > 0 was kept. A batch
 * of B rows costs 4 B m d flops. The map of the model holds W and b - W c. */
#ifndef UNICON_SOLVE_HIDDEN_H
#define UNICON_SOLVE_HIDDEN_H

#include "solve/adam.h"
#include "features/feature.h"

typedef struct unicon__hidden {
  unicon_ctx *ctx;
  unicon__map *map;     /* the model's: its base and square are what is trained */
  unicon__map plain;    /* u - c */
  unicon__source input; /* the training rows through `plain` */
  float *best_w, *best_b;
  float *w, *b;
  unicon__adam adam_w, adam_b;
  float *gradient_w, *gradient_b;
  const float *u;               /* rows of the batch, B by in */
  float *buffer, *h, *phi, *dh; /* B by m, but for the buffer of u */
  double dropout;
  uint64_t seed;
  uint32_t stream;
} unicon__hidden;

/* Begins with W and b of `map`, whose arrays change while it is trained. `source` has the training
 * rows, `batch` is the most rows a step has. */
unicon_status unicon__hidden_open(unicon_ctx *ctx, const unicon__source *source, unicon__map *map,
                                  int64_t batch, double dropout, uint64_t seed, int side,
                                  unicon__hidden *out);

/* phi of rows row[0..count-1] of the source; `step` numbers the dropout. */
const float *unicon__hidden_forward(unicon__hidden *hidden, const int64_t *row, int64_t count,
                                    int64_t step);

/* One step of Adam from dL/dphi (count by m) of the rows seen last. */
void unicon__hidden_backward(unicon__hidden *hidden, const float *d_phi, int64_t count,
                             const unicon__adam_step *step);

/* Writes the layer as it is now to the map. */
void unicon__hidden_publish(unicon__hidden *hidden);
/* Keeps it as the best one, and publishes the best one. */
void unicon__hidden_keep(unicon__hidden *hidden);
void unicon__hidden_publish_best(unicon__hidden *hidden);

#endif
