/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers (Philox4x32-10 of Random123): a draw is a function of seed, stream
 * and position, so it does not depend on threads, tiles or the order of the draws. */
#ifndef UNICON_BASE_RNG_H
#define UNICON_BASE_RNG_H

#include <stdint.h>

/* One stream for each purpose, so that no two draws share a counter. */
enum {
  UNICON__STREAM_SKETCH = 1,
  UNICON__STREAM_BATCH,
  UNICON__STREAM_SPLIT,
  UNICON__STREAM_BOOTSTRAP,
  UNICON__STREAM_SYNTH_BASIS_X,
  UNICON__STREAM_SYNTH_BASIS_Y,
  UNICON__STREAM_SYNTH_CENTER,
  UNICON__STREAM_SYNTH_LATENT,
  UNICON__STREAM_SYNTH_NOISE_X,
  UNICON__STREAM_SYNTH_NOISE_Y,
  UNICON__STREAM_LANDMARK_X,
  UNICON__STREAM_LANDMARK_Y,
  UNICON__STREAM_FEATURE_X,
  UNICON__STREAM_FEATURE_Y,
  UNICON__STREAM_START,
  UNICON__STREAM_REFINE,
  UNICON__STREAM_WIDTH,
  UNICON__STREAM_PERMUTE,
  UNICON__STREAM_BANK_X = 21, /* 19 and 20 are free; a number is never given a new meaning */
  UNICON__STREAM_BANK_Y,
  UNICON__STREAM_SYNTH_LAYER_X,
  UNICON__STREAM_SYNTH_LAYER_Y,
  UNICON__STREAM_MIGRATE,
  UNICON__STREAM_SAMPLE = 40
};

/* Four 32-bit words of position (i, j). */
void unicon__philox(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j, uint32_t out[4]);

/* In (0, 1). */
double unicon__uniform(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j);

/* 0 .. n-1. */
int64_t unicon__below(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j, int64_t n);

/* `count` standard normals of row i (Box-Muller). */
void unicon__normals(uint64_t seed, uint32_t stream, uint64_t i, int64_t count, float *out);

/* A random order of 0 .. n-1 (Fisher-Yates); draw number `round`. */
void unicon__permutation(uint64_t seed, uint32_t stream, uint32_t round, int64_t n, int64_t *out);

#endif
