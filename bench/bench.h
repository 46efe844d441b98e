/* SPDX-License-Identifier: Apache-2.0 */
/* Small things every benchmark needs. Times are the best of several runs in one process, so that
 * ratios hold on a noisy machine. */
#ifndef UNICON_BENCH_H
#define UNICON_BENCH_H

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/ctx.h"
#include "unicon/tools.h"
#include "base/rng.h"

#define BENCH_TRY(ctx, call)                          \
  do {                                                \
    if ((call) != UNICON_OK) {                        \
      fprintf(stderr, "%s\n", unicon_ctx_error(ctx)); \
      exit(1);                                        \
    }                                                 \
  } while (0)

/* The value of --name N on the command line, or a default. */
static inline long bench_option(int argc, char **argv, const char *name, long otherwise) {
  for (int k = 1; k + 1 < argc; k++)
    if (strcmp(argv[k], name) == 0) return strtol(argv[k + 1], NULL, 10);
  return otherwise;
}

/* Seconds of the clock, and of all processors: for machines that have other things to do. */
typedef struct bench_moment {
  double clock, processor;
} bench_moment;

static inline bench_moment bench_now(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  const double micro = (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  return (bench_moment){unicon__now(),
                        (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * micro};
}

static inline bench_moment bench_since(bench_moment start) {
  const bench_moment end = bench_now();
  return (bench_moment){end.clock - start.clock, end.processor - start.processor};
}

/* A line of /proc/self/status in MB ("VmHWM:", "RssAnon:"), 0 where there is none. */
static inline double bench_memory(const char *key) {
  char line[256];
  double kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) kb = strtod(line + strlen(key), NULL);
  if (file) fclose(file);
  return kb / 1024;
}

/* n by d normals from the library's generator; exits when memory runs out. */
static inline float *bench_normals(int64_t n, int64_t d, uint32_t stream) {
  float *data = malloc((size_t)(n * d) * sizeof *data);
  if (!data) exit(1);
  for (int64_t i = 0; i < n; i++) unicon__normals(1, stream, (uint64_t)i, d, data + i * d);
  return data;
}

/* Scales n rows of r numbers to length 1. */
static inline void bench_unit(float *z, int64_t n, int64_t r) {
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < r; k++) sum += (double)z[i * r + k] * (double)z[i * r + k];
    for (int64_t k = 0; k < r; k++) z[i * r + k] = (float)((double)z[i * r + k] / sqrt(sum));
  }
}

/* The yardstick: sgemm of OpenBLAS itself, on its own threads. */
static inline void bench_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
                               float alpha, const float *a, int64_t lda, const float *b,
                               int64_t ldb, float beta, float *c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
              trans_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
              (int)ldb, beta, c, (int)ldc);
}

#endif
