/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of a block of queries with chunk after chunk of the candidates, for search.cu and ranks.cu:
 * 16-bit products screen, and what lies within their error bound of a decision is scored in float64,
 * so results are those of the exact scores whatever the chunks are.
 *
 * The bound of a score: rounding of the rows, |dq| |b| + |q| |db| with the lengths of what was
 * really lost; rounding of the float32 sum, at most one part in 2^23 for each term and each group
 * of four; rounding of the score itself where it is kept in float16. */
#ifndef UNICON_DEVICE_CUDA_SCREEN_CUH
#define UNICON_DEVICE_CUDA_SCREEN_CUH

#include "kernels.cuh"
#include "parts.cuh"

enum { SPAN = 4096 /* candidates that a warp looks at */ };

/* ---- products of a chunk -------------------------------------------------------------------- */

typedef struct screen {
  int64_t width, split, rows, cols, ld; /* of rows, split rows, a chunk */
  int parts, half;
  double sum_error; /* share of the product of the lengths */
  __half *left, *right;
  float *length, *lost; /* of queries: |q|, |dq| */
  unsigned *most;       /* of the chunk: bits of the largest |b|, |db|, |last| */
  float *last;          /* of the chunk: a column that is not in the products, or NULL */
  void *s;
} screen;

/* Scores of one column more than the products have: own * last is added. No `last`: as they are. */
typedef struct tail {
  const float *own, *last;
  int64_t ld; /* of own */
} tail;

/* Room for blocks of `rows` queries and chunks of `cols` candidates; a block of queries; a chunk. */
int gpu_screen_open(gpu *g, const gpu_scores *s, int parts, int64_t rows, int64_t cols, screen *w);
int gpu_screen_queries(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld);
int gpu_screen_chunk(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld_q,
                     const float *b, int64_t cols, int64_t ld_b);
/* Is there so much to do, and memory, that blocks twice as large are worth it? */
bool gpu_is_large(const gpu *g, const gpu_scores *s);

/* How far a score of query i in this chunk may be from the exact one, but for its own rounding. */
static __device__ inline float bound_of(const float *length, const float *lost,
                                        const unsigned *most, float sum_error, int64_t i) {
  const float b = __uint_as_float(most[0]), db = __uint_as_float(most[1]);
  const float bound = lost[i] * (b + db) + length[i] * db + sum_error * length[i] * b;
  return bound < INFINITY ? bound * 1.0001f + 1e-37f : INFINITY;
}

/* The same of scores with a tail: what is kept of a product is rounded at its own size, and the sum
 * once more. */
static __device__ inline float tail_bound(float bound, const tail t, float length,
                                          const unsigned *most, int row, int half) {
  if (!t.last) return bound;
  const float product = length * __uint_as_float(most[0]) + bound;
  const float add = fabsf(t.own[row * t.ld]) * __uint_as_float(most[2]);
  const float sum =
      bound + (half ? product * 0x1.01p-11f + 0x1p-24f : 0) + (product + add) * 0x1p-22f;
  return sum < INFINITY ? sum : INFINITY;
}

static __device__ inline float own_of(const tail t, int row) {
  return t.last ? t.own[row * t.ld] : 0;
}

/* Eight scores; hidden ones stay -inf. */
template <class T>
static __device__ inline void scores8(const T *s, int c, const tail t, float own, float v[8]) {
  float last[8];
  load8(s + c, v);
  if (!t.last) return;
  load8(t.last + c, last);
#pragma unroll
  for (int k = 0; k < 8; k++) v[k] = v[k] == -INFINITY ? v[k] : fmaf(own, last[k], v[k]);
}

/* The least score of this precision whose exact value may be `bar` or more. */
static __device__ inline float reach(double bar, float bound, int half) {
  const double least = bar - (double)bound;
  const double kept =
      half ? (least > 0 ? least / (1 + 0x1p-11) : least / (1 - 0x1p-11)) - 0x1p-24 : least;
  return __double2float_rd(kept);
}

/* ---- lists of neighbours -------------------------------------------------------------------- */

/* A block of queries: their rows, their lists (best first), the score to reach, and the places of
 * a chunk's candidates that may reach it. */
typedef struct wanted {
  const float *q;
  int64_t rows, ld, k, width;
  const int64_t *self;
  double *score;
  int64_t *id;
  double *bar;
  int *count, *place, *spilled;
} wanted;

/* Lists as they were, for queries that are offered too much. */
typedef struct before_lists {
  double *score;
  int64_t *id;
} before_lists;

/* Room beside the lists; a block of queries, from their lists on; what the screen has of a chunk; at
 * the end, queries that were offered too much. */
int gpu_wanted_room(gpu *g, wanted *q);
int gpu_keep_lists(gpu *g, const wanted *q, before_lists *out);
int gpu_begin_lists(gpu *g, const wanted *q);
int gpu_take_chunk(gpu *g, const screen *w, const gpu_scores *s, const wanted *q, tail t, int64_t c,
                   int64_t cols);
int gpu_settle_lists(gpu *g, const gpu_scores *s, const wanted *q, const before_lists *before);
/* How many candidates are next: few while the lists are young, for every one of the first is
 * offered, and later about k times the share of new ones. */
int64_t gpu_next_chunk(int64_t seen, int64_t k, int64_t most);

#endif
