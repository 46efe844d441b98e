/* SPDX-License-Identifier: Apache-2.0 */
/* Exact neighbours and ranks. A block of queries meets the candidates chunk after chunk: 16-bit
 * products screen, and what lies within their error bound of a decision is scored in float64, so
 * results are those of the exact scores whatever the chunks are.
 *
 * The bound of a score: rounding of the rows, |dq| |b| + |q| |db| with the lengths of what was
 * really lost; rounding of the float32 sum, at most one part in 2^23 for each term and each group
 * of four; rounding of the score itself where it is kept in float16. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernels.cuh"
#include "parts.cuh"

enum { SPAN = 4096, PLACES = 1024, SORTED = 2048 /* >= PLACES + GPU_MOST_NEAREST */ };

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

/* Lengths of rows and of what one or two float16 take from them, rounded up. */
static __global__ void lengths_kernel(const float *z, int64_t rows, int64_t width, int64_t ld,
                                      int parts, float *length, float *lost, unsigned *most) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  float sum = 0, loss = 0;
  for (int64_t k = lane; k < width; k += 32) {
    const float v = z[i * ld + k], scaled = v * GPU_SPLIT_SCALE;
    const float rest = scaled - __half2float(__float2half_rn(scaled));
    const float left = parts == 3 ? rest - __half2float(__float2half_rn(rest)) : rest;
    const float gone = parts > 0 ? left / GPU_SPLIT_SCALE : 0;
    sum += v * v;
    loss += gone * gone;
  }
  sum = sqrtf(warp_sum(sum)) * 1.0001f;
  loss = sqrtf(warp_sum(loss)) * 1.0001f;
  sum = sum < INFINITY ? sum : INFINITY; /* NaN: nothing is known of the row's scores */
  loss = loss < INFINITY ? loss : INFINITY;
  if (lane > 0) return;
  if (length) length[i] = sum, lost[i] = loss;
  if (most) {
    atomicMax(&most[0], __float_as_uint(sum));
    atomicMax(&most[1], __float_as_uint(loss));
  }
}

/* How far a score of query i in this chunk may be from the exact one, but for its own rounding. */
static __device__ inline float bound_of(const float *length, const float *lost,
                                        const unsigned *most, float sum_error, int64_t i) {
  const float b = __uint_as_float(most[0]), db = __uint_as_float(most[1]);
  const float bound = lost[i] * (b + db) + length[i] * db + sum_error * length[i] * b;
  return bound < INFINITY ? bound * 1.0001f + 1e-37f : INFINITY;
}

/* The column behind those of the products, a place each, 0 behind the end. */
static __global__ void last_kernel(const float *b, int64_t rows, int64_t ld, int64_t column,
                                   float *last, unsigned *most) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (rows + 7) / 8 * 8) return;
  const float v = i < rows ? b[i * ld + column] : 0;
  last[i] = v;
  atomicMax(&most[2], __float_as_uint(fabsf(v)));
}

/* The same of scores with a tail: what is kept of a product is rounded at its own size, and the sum
 * once more. */
static __device__ inline float tail_bound(float bound, const tail t, float length,
                                          const unsigned *most, int row, int half) {
  if (!t.last) return bound;
  const float product = length * __uint_as_float(most[0]) + bound;
  const float add = fabsf(t.own[row * t.ld]) * __uint_as_float(most[2]);
  const float sum = bound + (half ? product * 0x1.01p-11f + 0x1p-24f : 0) + (product + add) * 0x1p-22f;
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

static int screen_open(gpu *g, const gpu_scores *s, int parts, int64_t rows, int64_t cols,
                       screen *w) {
  float entry_q, entry_c, length_q, length_c;
  *w = (screen){};
  GPU_TRY(gpu_largest(g, s->query, s->queries, s->width, s->ld_query, &entry_q, &length_q));
  GPU_TRY(
      gpu_largest(g, s->candidate, s->candidates, s->width, s->ld_candidate, &entry_c, &length_c));
  const bool moderate = entry_q < GPU_SPLIT_MOST && entry_c < GPU_SPLIT_MOST;
  w->parts = moderate && length_q * length_c < 1e4f ? parts : 0;
  w->half = w->parts == 1;
  w->width = s->width;
  w->split = gpu_split_width(s->width, w->parts);
  w->rows = gpu_least(rows, s->queries);
  w->cols = gpu_up(gpu_least(cols, s->candidates), 8);
  w->ld = w->cols;
  w->sum_error = w->parts == 0 ? (double)(s->width + 8) * 0x1p-23 : gpu_split_error(s->width);
  GPU_TRY(gpu_new(g, &w->length, w->rows));
  GPU_TRY(gpu_new(g, &w->lost, w->rows));
  GPU_TRY(gpu_new(g, &w->most, 3));
  if (w->parts > 0) {
    GPU_TRY(gpu_new(g, &w->left, w->rows * w->split));
    GPU_TRY(gpu_new(g, &w->right, w->cols * w->split));
  }
  const size_t size = (size_t)(w->rows * w->ld) * (w->half ? sizeof(__half) : sizeof(float));
  GPU_TRY(gpu_take(g, size, &w->s));
  return gpu_check(g, cudaMemsetAsync(w->s, 0, size, g->stream), "scores");
}

static int screen_queries(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld) {
  lengths_kernel<<<(unsigned)((rows + 7) / 8), 256, 0, g->stream>>>(q, rows, w->width, ld, w->parts,
                                                                    w->length, w->lost, NULL);
  GPU_TRY(gpu_launched(g, "lengths of rows"));
  if (w->parts == 0) return GPU_OK;
  return gpu_split_rows(g, q, rows, w->width, ld, GPU_LEFT, w->parts, GPU_SPLIT_SCALE, w->left);
}

static int screen_chunk(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld_q,
                        const float *b, int64_t cols, int64_t ld_b) {
  GPU_TRY(gpu_check(g, cudaMemsetAsync(w->most, 0, 3 * sizeof *w->most, g->stream), "scores"));
  lengths_kernel<<<(unsigned)((cols + 7) / 8), 256, 0, g->stream>>>(b, cols, w->width, ld_b,
                                                                    w->parts, NULL, NULL, w->most);
  if (w->last)
    last_kernel<<<(unsigned)((cols + 7 + 255) / 256), 256, 0, g->stream>>>(b, cols, ld_b, w->width,
                                                                           w->last, w->most);
  GPU_TRY(gpu_launched(g, "lengths of rows"));
  if (w->parts == 0)
    return gpu_sgemm(g, 0, 1, rows, cols, w->width, 1, q, ld_q, b, ld_b, 0, (float *)w->s, w->ld);
  GPU_TRY(
      gpu_split_rows(g, b, cols, w->width, ld_b, GPU_RIGHT, w->parts, GPU_SPLIT_SCALE, w->right));
  return gpu_gemm16(g, CUDA_R_16F, 0, 1, rows, cols, w->split, 0x1p-16f, w->left, w->split,
                    w->right, w->split, 0, w->s, w->half ? CUDA_R_16F : CUDA_R_32F, w->ld);
}

/* ---- neighbours ----------------------------------------------------------------------------- */

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

/* The least score of this precision whose exact value may be `bar` or more. */
static __device__ inline float reach(double bar, float bound, int half) {
  const double least = bar - (double)bound;
  const double kept =
      half ? (least > 0 ? least / (1 + 0x1p-11) : least / (1 - 0x1p-11)) - 0x1p-24 : least;
  return __double2float_rd(kept);
}

static __device__ inline float top8(const __half *p) {
  const uint4 q = *reinterpret_cast<const uint4 *>(p);
  const __half2 *two = reinterpret_cast<const __half2 *>(&q);
  const __half2 most = __hmax2(__hmax2(two[0], two[1]), __hmax2(two[2], two[3]));
  return fmaxf(__low2float(most), __high2float(most));
}

static __device__ inline float top8(const float *p) {
  const float4 a = *reinterpret_cast<const float4 *>(p);
  const float4 b = *reinterpret_cast<const float4 *>(p + 4);
  return fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
}

/* A warp a query and a span of candidates. Most groups of eight have nothing to offer. The order of
 * the places does not matter: they are a set. */
template <class T>
static __global__ void __launch_bounds__(256)
    offer_kernel(const T *s, int64_t ld, int rows, int cols, wanted w, tail t, const float *length,
                 const float *lost, const unsigned *most, float sum_error) {
  const int row = blockIdx.y * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool half = sizeof(T) == 2;
  if (row >= rows) return;
  const float bound = tail_bound(bound_of(length, lost, most, sum_error, row), t, length[row], most,
                                 row, half);
  const float least = reach(w.bar[row], bound, half && !t.last), own = own_of(t, row);
  const int end = min(cols, (int)(blockIdx.x + 1) * SPAN);
  const T *from = s + row * ld;
#pragma unroll 4
  for (int c = blockIdx.x * SPAN + lane * 8; c < end; c += 256) {
    if (!t.last && top8(from + c) < least) continue;
    float v[8];
    scores8(from, c, t, own, v);
    for (int k = 0; k < 8 && c + k < end; k++) {
      if (v[k] < least) continue; /* NaN: the sum is beyond float32, its parts are not */
      const int at = atomicAdd(&w.count[row], 1);
      if (at < PLACES) w.place[(int64_t)row * PLACES + at] = c + k;
    }
  }
}

static __device__ inline bool before(double a, int64_t id_a, double b, int64_t id_b) {
  return a > b || (a == b && id_a < id_b);
}

/* Bitonic, best first; size is a power of 2. */
static __device__ void sort_hits(double *score, int64_t *id, int size) {
  for (int span = 2; span <= size; span *= 2)
    for (int step = span / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int a = threadIdx.x; a < size; a += blockDim.x) {
        const int b = a ^ step;
        if (b <= a) continue;
        const bool ahead = before(score[b], id[b], score[a], id[a]);
        if (ahead != ((a & span) == 0)) continue;
        const double held = score[a];
        const int64_t kept = id[a];
        score[a] = score[b], id[a] = id[b];
        score[b] = held, id[b] = kept;
      }
    }
  __syncthreads();
}

/* Scores the places of a query exactly and merges them into its list. */
static __global__ void __launch_bounds__(128)
    merge_kernel(wanted w, const float *b, int64_t ld_b, int64_t number) {
  __shared__ double score[SORTED];
  __shared__ int64_t id[SORTED];
  const int row = blockIdx.x, found = w.count[row];
  if (found == 0) return;
  const int kept = (int)w.k, places = min(found, (int)PLACES);
  int size = 32;
  while (size < kept + places) size *= 2;
  for (int k = threadIdx.x; k < size; k += blockDim.x) {
    const bool listed = k < kept && w.id[row * w.k + k] >= 0;
    score[k] = listed ? w.score[row * w.k + k] : -INFINITY;
    id[k] = listed ? w.id[row * w.k + k] : INT64_MAX;
  }
  __syncthreads();
  const int64_t self = w.self ? w.self[row] : -1;
  const int warp_first = threadIdx.x / 32 * 2;
  for (int k = warp_first; k < places; k += blockDim.x / 16) { /* two at once, one a half warp */
    const int half = k + (int)(threadIdx.x % 32) / 16, mine = min(half, places - 1);
    const int64_t column = w.place[(int64_t)row * PLACES + mine];
    const double exact = half_warp_dot(w.q + row * w.ld, b + column * ld_b, w.width);
    if (threadIdx.x % 16 == 0 && half < places && number + column != self) {
      score[kept + mine] = exact == exact ? exact : -INFINITY;
      id[kept + mine] = number + column;
    }
  }
  __syncthreads();
  sort_hits(score, id, size);
  for (int k = threadIdx.x; k < kept; k += blockDim.x) {
    w.score[row * w.k + k] = score[k];
    w.id[row * w.k + k] = id[k] == INT64_MAX ? -1 : id[k];
  }
  if (threadIdx.x > 0) return;
  w.bar[row] = id[kept - 1] == INT64_MAX ? -INFINITY : score[kept - 1];
  w.count[row] = 0;
  if (found > PLACES) w.spilled[row] = 1;
}

static __global__ void bars_kernel(wanted w) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= w.rows) return;
  w.bar[i] = w.id[i * w.k + w.k - 1] >= 0 ? w.score[i * w.k + w.k - 1] : -INFINITY;
  w.count[i] = 0;
  w.spilled[i] = 0;
}

/* How many candidates are next: few while the lists are young, for every one of the first is
 * offered, and later about k times the share of new ones. */
static int64_t next_chunk(int64_t seen, int64_t k, int64_t most) {
  if (seen == 0) return gpu_least(PLACES, most);
  const int64_t growth = gpu_least(8, PLACES / (3 * k));
  const int64_t wish = growth > 0 ? seen * growth : seen / 2;
  return gpu_least(gpu_up(wish < PLACES / 2 ? PLACES / 2 : wish, 8), most);
}

static int begin_lists(gpu *g, const wanted *q) {
  bars_kernel<<<(unsigned)((q->rows + 127) / 128), 128, 0, g->stream>>>(*q);
  return gpu_launched(g, "neighbours");
}

/* What the screen has of a chunk, to the lists. */
static int take_chunk(gpu *g, const screen *w, const gpu_scores *s, const wanted *q, tail t,
                      int64_t c, int64_t cols) {
  const dim3 grid((unsigned)((cols + SPAN - 1) / SPAN), (unsigned)((q->rows + 7) / 8));
  const float error = (float)w->sum_error;
  if (w->half)
    offer_kernel<<<grid, 256, 0, g->stream>>>((const __half *)w->s, w->ld, (int)q->rows, (int)cols,
                                              *q, t, w->length, w->lost, w->most, error);
  else
    offer_kernel<<<grid, 256, 0, g->stream>>>((const float *)w->s, w->ld, (int)q->rows, (int)cols,
                                              *q, t, w->length, w->lost, w->most, error);
  GPU_TRY(gpu_launched(g, "neighbours"));
  merge_kernel<<<(unsigned)q->rows, 128, 0, g->stream>>>(*q, s->candidate + c * s->ld_candidate,
                                                         s->ld_candidate, s->number + c);
  return gpu_launched(g, "neighbours");
}

/* All candidates against a block of queries. */
static int meet(gpu *g, const screen *w, const gpu_scores *s, const wanted *q, int64_t most) {
  const tail none = {NULL, NULL, 0};
  GPU_TRY(begin_lists(g, q));
  GPU_TRY(screen_queries(g, w, q->q, q->rows, q->ld));
  for (int64_t c = 0, cols; c < s->candidates; c += cols) {
    cols = gpu_least(next_chunk(c, q->k, most), s->candidates - c);
    GPU_TRY(screen_chunk(g, w, q->q, q->rows, q->ld, s->candidate + c * s->ld_candidate, cols,
                         s->ld_candidate));
    GPU_TRY(take_chunk(g, w, s, q, none, c, cols));
  }
  return gpu_poll(g);
}

/* Rows of `words` 8-byte words: to[k] = from[row[k]], or to[row[k]] = from[k]. */
static __global__ void pick_kernel(const uint64_t *from, const int64_t *row, int64_t count,
                                   int64_t words, int back, uint64_t *to) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count * words) return;
  const int64_t k = at / words, c = at - k * words;
  if (back)
    to[row[k] * words + c] = from[at];
  else
    to[at] = from[row[k] * words + c];
}

static int pick(gpu *g, const void *from, const int64_t *row, int64_t count, int64_t words,
                int back, void *to) {
  pick_kernel<<<(unsigned)((count * words + 255) / 256), 256, 0, g->stream>>>(
      (const uint64_t *)from, row, count, words, back, (uint64_t *)to);
  return gpu_launched(g, "neighbours");
}

static int wanted_room(gpu *g, wanted *q) {
  GPU_TRY(gpu_new(g, &q->bar, q->rows));
  GPU_TRY(gpu_new(g, &q->count, q->rows));
  GPU_TRY(gpu_new(g, &q->spilled, q->rows));
  return gpu_new(g, &q->place, q->rows * PLACES);
}

/* Queries that a chunk offered too much meet all candidates again, so few at a time that there is
 * a place for each. `score` and `id` are their lists as they were. */
static int meet_again(gpu *g, const gpu_scores *s, const wanted *q, const int64_t *row,
                      int64_t count, const double *score, const int64_t *id) {
  wanted few = *q;
  gpu_scores all = *s;
  screen w;
  int64_t *rows, *self = NULL;
  float *rows_q;
  few.rows = all.queries = count;
  few.ld = all.ld_query = all.width = q->width;
  GPU_TRY(gpu_new(g, &rows, count));
  GPU_TRY(gpu_upload(g, rows, row, (size_t)count * sizeof *row, 1, 0));
  GPU_TRY(gpu_new(g, &rows_q, count * few.ld));
  GPU_TRY(gpu_new(g, &few.score, count * q->k));
  GPU_TRY(gpu_new(g, &few.id, count * q->k));
  GPU_TRY(gpu_gather(g, q->q, q->width, q->ld, rows, count, rows_q, few.ld));
  GPU_TRY(pick(g, score, rows, count, q->k, 0, few.score));
  GPU_TRY(pick(g, id, rows, count, q->k, 0, few.id));
  if (q->self) {
    GPU_TRY(gpu_new(g, &self, count));
    GPU_TRY(pick(g, q->self, rows, count, 1, 0, self));
  }
  few.q = rows_q;
  few.self = self;
  all.query = rows_q;
  GPU_TRY(screen_open(g, &all, 1, count, PLACES, &w));
  GPU_TRY(meet(g, &w, &all, &few, gpu_least(PLACES, w.cols)));
  GPU_TRY(pick(g, few.score, rows, count, q->k, 1, q->score));
  return pick(g, few.id, rows, count, q->k, 1, q->id);
}

/* Lists as they were, for queries that are offered too much. */
typedef struct before_lists {
  double *score;
  int64_t *id;
} before_lists;

static int keep_lists(gpu *g, const wanted *q, before_lists *out) {
  const size_t size = (size_t)(q->rows * q->k) * 8;
  GPU_TRY(gpu_new(g, &out->score, q->rows * q->k));
  GPU_TRY(gpu_new(g, &out->id, q->rows * q->k));
  GPU_TRY(gpu_check(
      g, cudaMemcpyAsync(out->score, q->score, size, cudaMemcpyDeviceToDevice, g->stream), "lists"));
  return gpu_check(g, cudaMemcpyAsync(out->id, q->id, size, cudaMemcpyDeviceToDevice, g->stream),
                   "lists");
}

static int settle_lists(gpu *g, const gpu_scores *s, const wanted *q, const before_lists *before) {
  int64_t count = 0;
  int *spilled = (int *)malloc((size_t)q->rows * sizeof *spilled);
  int64_t *row = (int64_t *)malloc((size_t)q->rows * sizeof *row);
  int code = spilled && row
                 ? gpu_download(g, spilled, q->spilled, (size_t)q->rows * sizeof *spilled)
                 : gpu_fail(g, GPU_MEMORY, "the host has no memory left for a list");
  for (int64_t i = 0; code == GPU_OK && i < q->rows; i++)
    if (spilled[i]) row[count++] = i;
  if (code == GPU_OK && count > 0)
    code = meet_again(g, s, q, row, count, before->score, before->id);
  free(spilled);
  free(row);
  return code;
}

static int nearest_block(gpu *g, const screen *w, const gpu_scores *s, const wanted *q) {
  before_lists before;
  GPU_TRY(keep_lists(g, q, &before));
  GPU_TRY(meet(g, w, s, q, w->cols));
  return settle_lists(g, s, q, &before);
}

/* Is there so much to do, and memory, that blocks twice as large are worth it? */
static bool is_large(const gpu *g, const gpu_scores *s) {
  return s->queries >= 65536 && s->candidates >= 65536 && gpu_left(g) > (uint64_t)4 << 30;
}

static int nearest(gpu *g, const gpu_scores *s, int64_t k, double *score, int64_t *id) {
  screen w;
  wanted q = {};
  const int64_t rows = g->search_x > 0 ? g->search_x : is_large(g, s) ? 10240 : 4096;
  GPU_TRY(screen_open(g, s, 1, rows, g->search_y > 0 ? g->search_y : 16384, &w));
  q.rows = w.rows;
  q.ld = s->ld_query;
  q.k = k;
  q.width = s->width;
  GPU_TRY(wanted_room(g, &q));
  for (int64_t first = 0; first < s->queries; first += w.rows) {
    const long mark = gpu_mark(g);
    q.rows = gpu_least(w.rows, s->queries - first);
    q.q = s->query + first * s->ld_query;
    q.self = s->self ? s->self + first : NULL;
    q.score = score + first * k;
    q.id = id + first * k;
    GPU_TRY(nearest_block(g, &w, s, &q));
    gpu_release(g, mark);
  }
  return GPU_OK;
}

int gpu_nearest(gpu *g, const gpu_scores *s, int64_t k, double *score, int64_t *id) {
  if (s->queries == 0 || s->candidates == 0) return GPU_OK;
  if (k > GPU_MOST_NEAREST) return GPU_ELSEWHERE;
  const long mark = gpu_mark(g);
  const int code = nearest(g, s, k, score, id);
  gpu_release(g, mark);
  return code;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

/* Thresholds that are counted without looking them up. */
enum { COUNTERS = 8 };

/* Hidden candidates, and the query itself, are -inf. */
template <class T>
static __global__ void hide_kernel(T *s, int64_t ld, int64_t rows, int64_t cols, gpu_lists hidden,
                                   const int64_t *self, int64_t first, int64_t number) {
  const int64_t row = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  if (self && lane == 0 && self[first + row] >= number && self[first + row] < number + cols)
    s[row * ld + self[first + row] - number] = (T)-INFINITY;
  if (!hidden.start) return;
  const int64_t end = hidden.start[first + row + 1];
  const int64_t from = first_at_least(hidden.column, hidden.start[first + row], end, number);
  for (int64_t k = from + lane; k < end && hidden.column[k] < number + cols; k += 32)
    s[row * ld + hidden.column[k] - number] = (T)-INFINITY;
}

/* First k with score >= threshold[k] (descending). */
static __device__ inline int first_beaten(const double *threshold, int count, double score) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (score >= threshold[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static __device__ inline void count_one(int at, int count, int64_t *above) {
  if (at < count) atomicAdd((unsigned long long *)&above[at], 1ull); /* whole numbers */
}

/* The least score of this precision whose exact value is `bar` or more for certain. */
static __device__ inline float certain(double bar, float bound, int half) {
  const double most = bar + (double)bound;
  const double kept =
      half ? (most > 0 ? most / (1 - 0x1p-11) : most / (1 + 0x1p-11)) + 0x1p-24 : most;
  return __double2float_ru(kept);
}

/* What is hidden, or no candidate at all, is -inf, and below any bar. */
static __device__ inline float visible(float least) {
  return fmaxf(least, -FLT_MAX);
}

/* Scores of a query from `certain` on are counted, those between `reach` and it scored exactly. */
typedef struct bars {
  const double *threshold;
  int64_t *above;
  int count;
  float bound;
} bars;

/* Of eight scores: the ones above each of C thresholds, in a counter each, and as bits those that
 * are near one. */
template <int C>
static __device__ inline unsigned count_eight(const float v[8], const float low[C],
                                              const float high[C], int counter[C]) {
  unsigned near = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    bool close = false;
#pragma unroll
    for (int c = 0; c < C; c++) close |= !(v[k] < low[c]) && !(v[k] >= high[c]);
#pragma unroll
    for (int c = 0; c < C; c++) counter[c] += !close && v[k] >= high[c];
    near |= close ? 1u << k : 0;
  }
  return near;
}

/* The same where there are many thresholds: a search and an addition a score. */
static __device__ inline unsigned count_many(const float v[8], const bars *b, int half) {
  unsigned near = 0;
  const float least = visible(reach(b->threshold[b->count - 1], b->bound, half));
  for (int k = 0; k < 8; k++) {
    if (v[k] < least) continue;
    const double slack = (double)b->bound + (half ? fabs((double)v[k]) * 0x1p-10 + 0x1p-23 : 0);
    const int at = first_beaten(b->threshold, b->count, (double)v[k] - slack);
    if (isnan(v[k]) || (at > 0 && (double)v[k] + slack >= b->threshold[at - 1]))
      near |= 1u << k;
    else
      count_one(at, b->count, b->above);
  }
  return near;
}

typedef struct rows_of {
  const float *q, *b;
  int64_t ld_q, ld_b, width;
} rows_of;

/* The near scores of a warp, two at a time, half a warp each. */
static __device__ inline void settle_near(unsigned near, int c, int row, const rows_of *z,
                                          const bars *b) {
  const int lane = threadIdx.x % 32;
  for (unsigned lanes = __ballot_sync(~0u, near != 0); lanes; lanes &= lanes - 1) {
    const int owner = __ffs((int)lanes) - 1, from = __shfl_sync(~0u, c, owner);
    unsigned bits = __shfl_sync(~0u, near, owner);
    while (bits) {
      const int first = __ffs((int)bits) - 1;
      bits &= bits - 1;
      const int second = bits ? __ffs((int)bits) - 1 : first;
      const int mine = lane < 16 ? first : second;
      const double exact =
          half_warp_dot(z->q + row * z->ld_q, z->b + (from + mine) * z->ld_b, z->width);
      if (lane == 0 || (lane == 16 && bits))
        count_one(first_beaten(b->threshold, b->count, exact), b->count, b->above);
      bits &= bits - 1;
    }
  }
}

/* A warp a query and a span of candidates. C counters serve queries of 1 .. C thresholds, C = 0 those
 * of more than COUNTERS; others are left to another launch. */
template <class T, int C>
static __global__ void __launch_bounds__(256)
    rank_kernel(const T *s, int64_t ld, int rows, int cols, rows_of z, tail t, const int64_t *start,
                const double *thresholds, int64_t *above, const float *length, const float *lost,
                const unsigned *most, float sum_error) {
  constexpr int ROOM = C > 0 ? C : 1;
  const int row = blockIdx.y * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool half = sizeof(T) == 2 && !t.last;
  if (row >= rows) return;
  const bars b = {thresholds + start[row], above + start[row], (int)(start[row + 1] - start[row]),
                  tail_bound(bound_of(length, lost, most, sum_error, row), t, length[row], most, row,
                             sizeof(T) == 2)};
  const float own = own_of(t, row);
  if (b.count == 0 || (C == 1) != (b.count == 1) || (C == 0) != (b.count > COUNTERS)) return;
  const int end = min(cols, (int)(blockIdx.x + 1) * SPAN);
  int counter[ROOM];
  float low[ROOM], high[ROOM];
#pragma unroll
  for (int k = 0; k < ROOM; k++) {
    counter[k] = 0;
    low[k] = k < b.count ? visible(reach(b.threshold[k], b.bound, half)) : INFINITY;
    high[k] = k < b.count ? certain(b.threshold[k], b.bound, half) : INFINITY;
  }
  for (int c = blockIdx.x * SPAN + lane * 8; __any_sync(~0u, c < end); c += 256) {
    unsigned near = 0;
    if (c < end) {
      float v[8];
      scores8(s + row * ld, c, t, own, v);
      if (c + 8 > end)
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = c + k < end ? v[k] : -INFINITY;
      near = C > 0 ? count_eight<ROOM>(v, low, high, counter) : count_many(v, &b, half);
    }
    settle_near(near, c, row, &z, &b);
  }
  int below = 0; /* counters are of all scores above a threshold, `above` of the first it is */
#pragma unroll
  for (int k = 0; C > 0 && k < ROOM; k++) {
    const int total = __reduce_add_sync(~0u, counter[k]);
    if (lane == 0 && k < b.count && total > below)
      atomicAdd((unsigned long long *)&b.above[k], (unsigned long long)(total - below));
    below = total;
  }
}

/* Largest and sum of what is not hidden; a warp a query. */
static __global__ void others_kernel(const float *s, int64_t ld, int rows, int cols,
                                     const int64_t *start, double *top, double *sum) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows || start[row + 1] == start[row]) return;
  float most = -INFINITY;
  double total = 0;
  for (int c = threadIdx.x % 32; c < cols; c += 32) {
    const float v = s[row * ld + c];
    if (v == -INFINITY) continue;
    most = fmaxf(most, v);
    total += (double)v;
  }
  most = warp_max(most);
  total = warp_sum(total);
  if (threadIdx.x % 32 > 0) return;
  top[row] = fmax(top[row], (double)most);
  sum[row] += total;
}

/* Are there queries of one, of a few, of many thresholds? */
typedef struct kinds {
  bool one, few, many;
} kinds;

/* Ranks by one or two scales, and the lists of those that want them. */
typedef struct ranking {
  const int64_t *start;
  gpu_lists hidden;
  const gpu_ranked *by;
  int scales;
  kinds what;
  wanted q[2];
} ranking;

/* A block of queries against a chunk of candidates. */
typedef struct meeting {
  int64_t first, rows, c, cols;
} meeting;

/* Scores by all columns have a tail where those of two scales come from one product. */
static tail tail_of(const screen *w, const gpu_scores *s, const ranking *k, int by, int64_t first) {
  const float *q = s->query + first * s->ld_query;
  if (by + 1 == k->scales) return {NULL, NULL, 0};
  return {q + w->width, w->last, s->ld_query};
}

template <class T>
static int rank_scores(gpu *g, const screen *w, const gpu_scores *s, const ranking *k, int by,
                       meeting m) {
  const dim3 grid((unsigned)((m.cols + SPAN - 1) / SPAN), (unsigned)((m.rows + 7) / 8));
  const rows_of z = {s->query + m.first * s->ld_query, s->candidate + m.c * s->ld_candidate,
                     s->ld_query, s->ld_candidate, s->width - by};
  const tail t = tail_of(w, s, k, by, m.first);
  const T *scores = (const T *)w->s;
  const int64_t *start = k->start + m.first;
  const double *threshold = k->by[by].threshold;
  int64_t *above = k->by[by].above;
  const int rows = (int)m.rows, cols = (int)m.cols;
  const float error = (float)w->sum_error;
  if (k->what.one)
    rank_kernel<T, 1><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start, threshold,
                                                   above, w->length, w->lost, w->most, error);
  if (k->what.few)
    rank_kernel<T, COUNTERS><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start,
                                                          threshold, above, w->length, w->lost,
                                                          w->most, error);
  if (k->what.many)
    rank_kernel<T, 0><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start, threshold,
                                                   above, w->length, w->lost, w->most, error);
  return gpu_launched(g, "ranks");
}

template <class T>
static int hide_scores(gpu *g, const screen *w, const gpu_scores *s, const ranking *k, meeting m) {
  if (!k->hidden.start && !s->self) return GPU_OK;
  hide_kernel<<<(unsigned)((m.rows + 7) / 8), 256, 0, g->stream>>>(
      (T *)w->s, w->ld, m.rows, m.cols, k->hidden, s->self, m.first, s->number + m.c);
  return gpu_launched(g, "ranks");
}

/* Where the others' scores are wanted they are kept in float32, else in float16. */
static int rank_chunk(gpu *g, const screen *w, const gpu_scores *s, const ranking *k, meeting m) {
  GPU_TRY(screen_chunk(g, w, s->query + m.first * s->ld_query, m.rows, s->ld_query,
                       s->candidate + m.c * s->ld_candidate, m.cols, s->ld_candidate));
  for (int by = 0; by < k->scales; by++)
    if (k->by[by].k > 0)
      GPU_TRY(take_chunk(g, w, s, &k->q[by], tail_of(w, s, k, by, m.first), m.c, m.cols));
  GPU_TRY(w->half ? hide_scores<__half>(g, w, s, k, m) : hide_scores<float>(g, w, s, k, m));
  for (int by = 0; by < k->scales; by++)
    GPU_TRY(w->half ? rank_scores<__half>(g, w, s, k, by, m) : rank_scores<float>(g, w, s, k, by, m));
  if (!k->by[0].top) return GPU_OK;
  others_kernel<<<(unsigned)((m.rows + 7) / 8), 256, 0, g->stream>>>(
      (const float *)w->s, w->ld, (int)m.rows, (int)m.cols, k->start + m.first,
      k->by[0].top + m.first, k->by[0].sum + m.first);
  return gpu_launched(g, "ranks");
}

static int find_kinds(gpu *g, const int64_t *start, int64_t queries, kinds *out) {
  int64_t *host = (int64_t *)malloc((size_t)(queries + 1) * sizeof *host);
  *out = (kinds){false, false, false};
  if (!host) return gpu_fail(g, GPU_MEMORY, "the host has no memory left for a list");
  const int code = gpu_download(g, host, start, (size_t)(queries + 1) * sizeof *host);
  for (int64_t i = 0; code == GPU_OK && i < queries; i++) {
    const int64_t count = host[i + 1] - host[i];
    out->one |= count == 1;
    out->few |= count > 1 && count <= COUNTERS;
    out->many |= count > COUNTERS;
  }
  free(host);
  return code;
}

static void place_lists(ranking *k, const gpu_scores *s, int64_t first, int64_t rows) {
  for (int by = 0; by < k->scales; by++) {
    wanted *q = &k->q[by];
    const int64_t at = first * k->by[by].k;
    if (k->by[by].k == 0) continue;
    q->rows = rows;
    q->q = s->query + first * s->ld_query;
    q->self = s->self ? s->self + first : NULL;
    q->score = k->by[by].score + at;
    q->id = k->by[by].id + at;
  }
}

/* All candidates, by chunks that are short while lists are young. */
static int rank_block(gpu *g, const screen *w, const gpu_scores *s, ranking *k, int64_t first,
                      int64_t rows) {
  before_lists before[2];
  int64_t most = 0;
  place_lists(k, s, first, rows);
  GPU_TRY(screen_queries(g, w, s->query + first * s->ld_query, rows, s->ld_query));
  for (int by = 0; by < k->scales; by++) {
    if (k->by[by].k == 0) continue;
    most = k->by[by].k > most ? k->by[by].k : most;
    GPU_TRY(keep_lists(g, &k->q[by], &before[by]));
    GPU_TRY(begin_lists(g, &k->q[by]));
  }
  for (int64_t c = 0, cols; c < s->candidates; c += cols) {
    cols = gpu_least(most > 0 ? next_chunk(c, most, w->cols) : w->cols, s->candidates - c);
    GPU_TRY(rank_chunk(g, w, s, k, {first, rows, c, cols}));
  }
  GPU_TRY(gpu_poll(g));
  for (int by = 0; by < k->scales; by++)
    if (k->by[by].k > 0) GPU_TRY(settle_lists(g, s, &k->q[by], &before[by]));
  return GPU_OK;
}

static int rank_all(gpu *g, const gpu_scores *s, ranking *k) {
  screen w;
  gpu_scores narrow = *s;
  const int64_t rows = g->search_x > 0 ? g->search_x : is_large(g, s) ? 16384 : 8192;
  narrow.width = s->width - (k->scales - 1);
  GPU_TRY(find_kinds(g, k->start, s->queries, &k->what));
  GPU_TRY(screen_open(g, &narrow, k->by[0].top ? 3 : 1, rows,
                      g->search_y > 0 ? g->search_y : 8192, &w));
  if (k->scales > 1) GPU_TRY(gpu_new(g, &w.last, w.cols + 8));
  for (int by = 0; by < k->scales; by++) {
    k->q[by].ld = s->ld_query;
    k->q[by].width = s->width - by;
    k->q[by].k = k->by[by].k;
    k->q[by].rows = w.rows;
    if (k->by[by].k > 0) GPU_TRY(wanted_room(g, &k->q[by]));
  }
  for (int64_t first = 0; first < s->queries; first += w.rows) {
    const long mark = gpu_mark(g);
    GPU_TRY(rank_block(g, &w, s, k, first, gpu_least(w.rows, s->queries - first)));
    gpu_release(g, mark);
  }
  return GPU_OK;
}

int gpu_ranks(gpu *g, const gpu_scores *s, const int64_t *start, gpu_lists hidden,
              const gpu_ranked *by, int scales) {
  ranking k = {};
  k.start = start;
  k.hidden = hidden;
  k.by = by;
  k.scales = scales;
  const long mark = gpu_mark(g);
  if (s->queries == 0 || s->candidates == 0) return GPU_OK;
  const int code = rank_all(g, s, &k);
  gpu_release(g, mark);
  return code;
}
