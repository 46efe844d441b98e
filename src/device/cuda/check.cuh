/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks and the clock share: numbers from a seed, copies, one line a result. */
#ifndef UNICON_DEVICE_CUDA_CHECK_CUH
#define UNICON_DEVICE_CUDA_CHECK_CUH

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vector>

#include "kernels.cuh"

typedef std::vector<float> floats;
typedef std::vector<double> doubles;
typedef std::vector<int64_t> numbers;

extern int check_failures;
extern uint64_t check_seed;

#define MUST(g, call)                                                                  \
  do {                                                                                 \
    const int must_code = (call);                                                      \
    if (must_code != GPU_OK) {                                                         \
      printf("FAIL %s:%d status %d: %s\n", __FILE__, __LINE__, must_code, (g)->error); \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

static inline void report(const char *name, double value, double most) {
  const bool good = value <= most; /* NaN is not */
  printf("%s %-58s %.3g (at most %.3g)\n", good ? "ok  " : "FAIL", name, value, most);
  if (!good) check_failures++;
}

static inline double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  uint64_t x = *state;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

static inline floats normals(int64_t n, uint64_t *state) {
  floats out((size_t)n);
  for (auto &v : out)
    v = (float)(sqrt(-2 * log(uniform(state))) * cos(6.283185307179586 * uniform(state)));
  return out;
}

static inline void unit(floats &z, int64_t r) {
  for (size_t i = 0; i < z.size() / (size_t)r; i++) {
    double sum = 0;
    for (int64_t k = 0; k < r; k++) sum += (double)z[i * r + k] * z[i * r + k];
    for (int64_t k = 0; k < r; k++) z[i * r + k] = (float)(z[i * r + k] / sqrt(sum));
  }
}

static inline double dot(const float *a, const float *b, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += (double)a[k] * b[k];
  return sum;
}

template <class T>
static inline T *put(gpu *g, const std::vector<T> &v) {
  T *p;
  MUST(g, gpu_new(g, &p, (int64_t)v.size()));
  if (!v.empty()) MUST(g, gpu_upload(g, p, v.data(), v.size() * sizeof(T), 1, 0));
  return p;
}

template <class T>
static inline std::vector<T> get(gpu *g, const T *p, size_t n) {
  std::vector<T> v(n);
  MUST(g, gpu_download(g, v.data(), p, n * sizeof(T)));
  return v;
}

/* Largest difference over largest value. */
template <class T, class U>
static inline double gap(const std::vector<T> &a, const std::vector<U> &b) {
  double most = 0, size = 0;
  for (size_t k = 0; k < a.size(); k++) {
    const double d = fabs((double)a[k] - (double)b[k]);
    if (!(d <= most)) most = d;
    size = fmax(size, fabs((double)b[k]));
  }
  return most / fmax(size, 1e-300);
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void check_searches(gpu *g);             /* check_search.cu */
void time_all(gpu *g, const char *only); /* clock.cu */

#endif
