/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <Random123/philox.h>
#include <math.h>

void unicon__philox(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j, uint32_t out[4]) {
  const philox4x32_ctr_t counter = {{(uint32_t)i, (uint32_t)(i >> 32), j, stream}};
  const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
  const philox4x32_ctr_t word = philox4x32(counter, key);
  for (int k = 0; k < 4; k++) out[k] = word.v[k];
}

/* 52 random bits as the middle of one of 2^52 equal cells of (0, 1). */
static double unit_interval(uint32_t high, uint32_t low) {
  const uint64_t bits = ((uint64_t)high << 20) ^ (low >> 12);
  return ((double)bits + 0.5) * 0x1p-52;
}

double unicon__uniform(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j) {
  uint32_t word[4];
  unicon__philox(seed, stream, i, j, word);
  return unit_interval(word[0], word[1]);
}

int64_t unicon__below(uint64_t seed, uint32_t stream, uint64_t i, uint32_t j, int64_t n) {
  const int64_t value = (int64_t)(unicon__uniform(seed, stream, i, j) * (double)n);
  return value < n ? value : n - 1;
}

void unicon__normals(uint64_t seed, uint32_t stream, uint64_t i, int64_t count, float *out) {
  const double two_pi = 6.283185307179586;
  for (int64_t k = 0; k < count; k += 2) {
    uint32_t word[4];
    unicon__philox(seed, stream, i, (uint32_t)(k / 2), word);
    const double radius = sqrt(-2.0 * log(unit_interval(word[0], word[1])));
    const double angle = two_pi * unit_interval(word[2], word[3]);
    out[k] = (float)(radius * cos(angle));
    if (k + 1 < count) out[k + 1] = (float)(radius * sin(angle));
  }
}

void unicon__permutation(uint64_t seed, uint32_t stream, uint32_t round, int64_t n, int64_t *out) {
  for (int64_t k = 0; k < n; k++) out[k] = k;
  for (int64_t k = n - 1; k > 0; k--) {
    const int64_t other = unicon__below(seed, stream, (uint64_t)k, round, k + 1);
    const int64_t held = out[k];
    out[k] = out[other];
    out[other] = held;
  }
}
