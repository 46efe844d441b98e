/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks: how many candidates are at or above the thresholds of a query, by one scale or two, with the
 * lists of those that want them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "screen.cuh"

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
                  tail_bound(bound_of(length, lost, most, sum_error, row), t, length[row], most,
                             row, sizeof(T) == 2)};
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
    rank_kernel<T, 1><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start,
                                                   threshold, above, w->length, w->lost, w->most,
                                                   error);
  if (k->what.few)
    rank_kernel<T, COUNTERS><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start,
                                                          threshold, above, w->length, w->lost,
                                                          w->most, error);
  if (k->what.many)
    rank_kernel<T, 0><<<grid, 256, 0, g->stream>>>(scores, w->ld, rows, cols, z, t, start,
                                                   threshold, above, w->length, w->lost, w->most,
                                                   error);
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
  GPU_TRY(gpu_screen_chunk(g, w, s->query + m.first * s->ld_query, m.rows, s->ld_query,
                           s->candidate + m.c * s->ld_candidate, m.cols, s->ld_candidate));
  for (int by = 0; by < k->scales; by++)
    if (k->by[by].k > 0)
      GPU_TRY(gpu_take_chunk(g, w, s, &k->q[by], tail_of(w, s, k, by, m.first), m.c, m.cols));
  GPU_TRY(w->half ? hide_scores<__half>(g, w, s, k, m) : hide_scores<float>(g, w, s, k, m));
  for (int by = 0; by < k->scales; by++)
    GPU_TRY(w->half ? rank_scores<__half>(g, w, s, k, by, m)
                    : rank_scores<float>(g, w, s, k, by, m));
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
  GPU_TRY(gpu_screen_queries(g, w, s->query + first * s->ld_query, rows, s->ld_query));
  for (int by = 0; by < k->scales; by++) {
    if (k->by[by].k == 0) continue;
    most = k->by[by].k > most ? k->by[by].k : most;
    GPU_TRY(gpu_keep_lists(g, &k->q[by], &before[by]));
    GPU_TRY(gpu_begin_lists(g, &k->q[by]));
  }
  for (int64_t c = 0, cols; c < s->candidates; c += cols) {
    cols = gpu_least(most > 0 ? gpu_next_chunk(c, most, w->cols) : w->cols, s->candidates - c);
    GPU_TRY(rank_chunk(g, w, s, k, {first, rows, c, cols}));
  }
  GPU_TRY(gpu_poll(g));
  for (int by = 0; by < k->scales; by++)
    if (k->by[by].k > 0) GPU_TRY(gpu_settle_lists(g, s, &k->q[by], &before[by]));
  return GPU_OK;
}

static int rank_all(gpu *g, const gpu_scores *s, ranking *k) {
  screen w;
  gpu_scores narrow = *s;
  const int64_t rows = g->search_x > 0 ? g->search_x : gpu_is_large(g, s) ? 16384 : 8192;
  narrow.width = s->width - (k->scales - 1);
  GPU_TRY(find_kinds(g, k->start, s->queries, &k->what));
  GPU_TRY(gpu_screen_open(g, &narrow, k->by[0].top ? 3 : 1, rows,
                          g->search_y > 0 ? g->search_y : 8192, &w));
  if (k->scales > 1) GPU_TRY(gpu_new(g, &w.last, w.cols + 8));
  for (int by = 0; by < k->scales; by++) {
    k->q[by].ld = s->ld_query;
    k->q[by].width = s->width - by;
    k->q[by].k = k->by[by].k;
    k->q[by].rows = w.rows;
    if (k->by[by].k > 0) GPU_TRY(gpu_wanted_room(g, &k->q[by]));
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
