/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours: a list for each query, and a bar, the score of its last. What of a chunk may reach the
 * bar is scored exactly and merged into the list. */
#include <math.h>
#include <stdlib.h>

#include "screen.cuh"

enum { PLACES = 1024, SORTED = 2048 /* >= PLACES + GPU_MOST_NEAREST */ };

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
  const float bound =
      tail_bound(bound_of(length, lost, most, sum_error, row), t, length[row], most, row, half);
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

int64_t gpu_next_chunk(int64_t seen, int64_t k, int64_t most) {
  if (seen == 0) return gpu_least(PLACES, most);
  const int64_t growth = gpu_least(8, PLACES / (3 * k));
  const int64_t wish = growth > 0 ? seen * growth : seen / 2;
  return gpu_least(gpu_up(wish < PLACES / 2 ? PLACES / 2 : wish, 8), most);
}

int gpu_begin_lists(gpu *g, const wanted *q) {
  bars_kernel<<<(unsigned)((q->rows + 127) / 128), 128, 0, g->stream>>>(*q);
  return gpu_launched(g, "neighbours");
}

/* What the screen has of a chunk, to the lists. */
int gpu_take_chunk(gpu *g, const screen *w, const gpu_scores *s, const wanted *q, tail t, int64_t c,
                   int64_t cols) {
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
  GPU_TRY(gpu_begin_lists(g, q));
  GPU_TRY(gpu_screen_queries(g, w, q->q, q->rows, q->ld));
  for (int64_t c = 0, cols; c < s->candidates; c += cols) {
    cols = gpu_least(gpu_next_chunk(c, q->k, most), s->candidates - c);
    GPU_TRY(gpu_screen_chunk(g, w, q->q, q->rows, q->ld, s->candidate + c * s->ld_candidate, cols,
                             s->ld_candidate));
    GPU_TRY(gpu_take_chunk(g, w, s, q, none, c, cols));
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

int gpu_wanted_room(gpu *g, wanted *q) {
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
  GPU_TRY(gpu_screen_open(g, &all, 1, count, PLACES, &w));
  GPU_TRY(meet(g, &w, &all, &few, gpu_least(PLACES, w.cols)));
  GPU_TRY(pick(g, few.score, rows, count, q->k, 1, q->score));
  return pick(g, few.id, rows, count, q->k, 1, q->id);
}

int gpu_keep_lists(gpu *g, const wanted *q, before_lists *out) {
  const size_t size = (size_t)(q->rows * q->k) * 8;
  GPU_TRY(gpu_new(g, &out->score, q->rows * q->k));
  GPU_TRY(gpu_new(g, &out->id, q->rows * q->k));
  GPU_TRY(
      gpu_check(g, cudaMemcpyAsync(out->score, q->score, size, cudaMemcpyDeviceToDevice, g->stream),
                "lists"));
  return gpu_check(g, cudaMemcpyAsync(out->id, q->id, size, cudaMemcpyDeviceToDevice, g->stream),
                   "lists");
}

int gpu_settle_lists(gpu *g, const gpu_scores *s, const wanted *q, const before_lists *before) {
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
  GPU_TRY(gpu_keep_lists(g, q, &before));
  GPU_TRY(meet(g, w, s, q, w->cols));
  return gpu_settle_lists(g, s, q, &before);
}

static int nearest(gpu *g, const gpu_scores *s, int64_t k, double *score, int64_t *id) {
  screen w;
  wanted q = {};
  const int64_t rows = g->search_x > 0 ? g->search_x : gpu_is_large(g, s) ? 10240 : 4096;
  GPU_TRY(gpu_screen_open(g, s, 1, rows, g->search_y > 0 ? g->search_y : 16384, &w));
  q.rows = w.rows;
  q.ld = s->ld_query;
  q.k = k;
  q.width = s->width;
  GPU_TRY(gpu_wanted_room(g, &q));
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
