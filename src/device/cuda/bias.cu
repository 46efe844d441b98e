/* SPDX-License-Identifier: Apache-2.0 */
/* Biases of rows by a bank: products of a block of rows with the whole bank, then a warp or a block
 * a row. 2 rows m r flops, thrice as split products, and 8 bytes a product. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

enum { BIAS_BYTES = 64 << 20, MOST_NEAREST_BANK = 11000 };

/* (1/beta) log mean exp(beta s); a2 = beta / ln 2. Where no sum can overflow the top is 0. */
static __global__ void softmax_kernel(const float *s, int64_t rows, int64_t m, int64_t ld, float a2,
                                      double strength, int shifted, float *out) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  const float *row = s + i * ld;
  float top = 0;
  if (shifted) {
    top = -INFINITY;
    for (int64_t k = lane; k < m; k += 32) top = fmaxf(top, row[k]);
    top = warp_max(top);
  }
  float part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const int64_t whole = m / 256 * 256;
  for (int64_t k = lane * 8; k < whole; k += 256) {
    float v[8];
    load8(row + k, v);
#pragma unroll
    for (int c = 0; c < 8; c++) part[c] += exp2_fast(a2 * (v[c] - top));
  }
  for (int64_t k = whole + lane; k < m; k += 32) part[0] += exp2_fast(a2 * (row[k] - top));
  double sum = 0;
#pragma unroll
  for (int c = 0; c < 8; c++) sum += (double)part[c];
  sum = warp_sum(sum);
  if (lane == 0) out[i] = (float)((double)top + log(sum / (double)m) / strength);
}

/* Numbers as unsigned ones of the same order. */
static __device__ inline unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ inline float unordered(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

static __device__ inline int block_count(int mine, int *held) {
  const int sum = __reduce_add_sync(~0u, mine);
  __syncthreads();
  if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = sum;
  __syncthreads();
  int total = 0;
  for (unsigned w = 0; w < blockDim.x / 32; w++) total += held[w];
  return total;
}

enum { NEAREST_THREADS = 128, SHORTLIST = 512 };

/* The k-th largest of the row bit by bit: 32 counts of the row. */
static __device__ unsigned kth_key(const float *row, int64_t m, int k, int *held) {
  unsigned key = 0;
  for (int bit = 31; bit >= 0; bit--) {
    const unsigned trial = key | 1u << bit;
    int count = 0;
    for (int64_t c = threadIdx.x; c < m; c += blockDim.x) count += ordered(row[c]) >= trial;
    if (block_count(count, held) >= k) key = trial;
  }
  return key;
}

/* The k-th largest of what the threads found largest is at most the k-th of all: the few numbers
 * that reach it are a short list, and the k-th of that is the k-th of all. */
static __device__ unsigned short_list(const float *row, int64_t m, int k, unsigned *most,
                                      float *list, int *count) {
  unsigned mine = 0;
  for (int64_t c = threadIdx.x; c < m; c += blockDim.x) mine = max(mine, ordered(row[c]));
  most[threadIdx.x] = mine;
  if (threadIdx.x == 0) *count = 0;
  __syncthreads();
  int above = 0;
  for (int t = 0; t < NEAREST_THREADS; t++)
    above += most[t] > mine || (most[t] == mine && t < (int)threadIdx.x);
  __syncthreads();
  if (above == k - 1) most[0] = mine; /* of one thread */
  __syncthreads();
  const unsigned least = most[0];
  for (int64_t c = threadIdx.x; c < m; c += blockDim.x)
    if (ordered(row[c]) >= least) {
      const int at = atomicAdd(count, 1);
      if (at < SHORTLIST) list[at] = row[c];
    }
  __syncthreads();
  return least;
}

/* Half the mean of the k largest. The order of the list differs from run to run, so it is only
 * counted in; the sum is over the row in its own order. */
static __global__ void nearest_kernel(const float *s, int64_t m, int64_t ld, int k, float *out) {
  extern __shared__ float row[];
  __shared__ unsigned most[NEAREST_THREADS];
  __shared__ float list[SHORTLIST];
  __shared__ int held[4], count;
  __shared__ double sums[4];
  const float *from = s + (int64_t)blockIdx.x * ld;
  for (int64_t c = threadIdx.x; c < m; c += blockDim.x) row[c] = from[c];
  __syncthreads();
  unsigned key = 0;
  if (k <= NEAREST_THREADS) key = short_list(row, m, k, most, list, &count);
  if (k > NEAREST_THREADS || count > SHORTLIST) {
    key = kth_key(row, m, k, held);
  } else { /* rank k - 1 in the list, equals by place */
    for (int c = threadIdx.x; c < count; c += blockDim.x) {
      int above = 0;
      for (int t = 0; t < count; t++) above += list[t] > list[c] || (list[t] == list[c] && t < c);
      if (above == k - 1) most[1] = ordered(list[c]);
    }
    __syncthreads();
    key = most[1];
  }
  double sum = 0;
  int above = 0;
  for (int64_t c = threadIdx.x; c < m; c += blockDim.x)
    if (ordered(row[c]) > key) sum += (double)row[c], above++;
  above = block_count(above, held);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = (double)(k - above) * (double)unordered(key);
  for (unsigned w = 0; w < blockDim.x / 32; w++) total += sums[w];
  out[blockIdx.x] = (float)(total / k / 2);
}

static int bias(gpu *g, const float *z, int64_t rows, int64_t ld, const float *bank, int64_t m,
                int64_t ld_bank, int64_t r, int csls, double strength, float *out) {
  float entry, length, entry_bank, length_bank, *s;
  __half *left = NULL, *right = NULL;
  const int64_t width = gpu_split_width(r, 3), ld_s = gpu_up(m, 8);
  const int64_t fit = BIAS_BYTES / (4 * ld_s), block = gpu_least(rows, fit < 256 ? 256 : fit);
  GPU_TRY(gpu_largest(g, z, rows, r, ld, &entry, &length));
  GPU_TRY(gpu_largest(g, bank, m, r, ld_bank, &entry_bank, &length_bank));
  const bool split = entry < GPU_SPLIT_MOST && entry_bank < GPU_SPLIT_MOST;
  const int shifted = !(strength * (double)length * (double)length_bank < 70);
  GPU_TRY(gpu_new(g, &s, block * ld_s));
  if (split) {
    GPU_TRY(gpu_new(g, &left, block * width));
    GPU_TRY(gpu_new(g, &right, m * width));
    GPU_TRY(gpu_split_rows(g, bank, m, r, ld_bank, GPU_RIGHT, 3, GPU_SPLIT_SCALE, right));
  }
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t now = gpu_least(block, rows - first);
    const float *from = z + first * ld;
    if (split) {
      GPU_TRY(gpu_split_rows(g, from, now, r, ld, GPU_LEFT, 3, GPU_SPLIT_SCALE, left));
      GPU_TRY(gpu_gemm16(g, CUDA_R_16F, 0, 1, now, m, width, 0x1p-16f, left, width, right, width, 0,
                         s, CUDA_R_32F, ld_s));
    } else {
      GPU_TRY(gpu_sgemm(g, 0, 1, now, m, r, 1, from, ld, bank, ld_bank, 0, s, ld_s));
    }
    if (csls)
      nearest_kernel<<<(unsigned)now, NEAREST_THREADS, (size_t)m * sizeof *s, g->stream>>>(
          s, m, ld_s, (int)fmin(strength, (double)m), out + first);
    else
      softmax_kernel<<<(unsigned)((now + 7) / 8), 256, 0, g->stream>>>(
          s, now, m, ld_s, (float)(strength * 1.4426950408889634), strength, shifted, out + first);
    GPU_TRY(gpu_launched(g, "biases"));
  }
  return GPU_OK;
}

int gpu_bias(gpu *g, const float *z, int64_t rows, int64_t ld, const float *bank, int64_t m,
             int64_t ld_bank, int64_t r, int csls, double strength, float *out) {
  if (rows == 0 || m == 0) return GPU_OK;
  if (csls && m > MOST_NEAREST_BANK) return GPU_ELSEWHERE;
  const long mark = gpu_mark(g);
  const int code = bias(g, z, rows, ld, bank, m, ld_bank, r, csls, strength, out);
  gpu_release(g, mark);
  return code;
}
