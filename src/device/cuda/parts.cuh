/* SPDX-License-Identifier: Apache-2.0 */
/* Small device functions that several kernels are made of. */
#ifndef UNICON_DEVICE_CUDA_PARTS_CUH
#define UNICON_DEVICE_CUDA_PARTS_CUH

#include "kernels.cuh"

/* Blocks of 256 threads for a loop over `count` with a step of the whole grid. */
static inline unsigned part_blocks(const gpu *g, int64_t count) {
  const int64_t wanted = (count + 255) / 256, most = 16 * (int64_t)g->processors;
  return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

template <class T>
static __device__ inline T warp_sum(T v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

static __device__ inline float warp_max(float v) {
  for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

/* 2^x, 2 ulp; 0 far below. */
static __device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Eight neighbours, 16-byte aligned. */
static __device__ inline void load8(const __half *p, float v[8]) {
  const uint4 q = *reinterpret_cast<const uint4 *>(p);
  const unsigned word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const float2 two = __half22float2(*reinterpret_cast<const __half2 *>(&word[k]));
    v[2 * k] = two.x;
    v[2 * k + 1] = two.y;
  }
}

static __device__ inline void load8(const float *p, float v[8]) {
  const float4 a = *reinterpret_cast<const float4 *>(p);
  const float4 b = *reinterpret_cast<const float4 *>(p + 4);
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
  v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* The product of two rows in float64, the same on every device of the library: 16 sums, of every
 * sixteenth entry each, added in a fixed order. Products of float32 are exact in float64. By the 16
 * threads of half a warp; both halves must call. */
static __device__ inline double half_warp_dot(const float *x, const float *y, int64_t n) {
  const int lane = threadIdx.x % 16;
  double sum = 0;
  for (int64_t k = lane; k < n; k += 16) sum += (double)x[k] * (double)y[k];
  for (int o = 8; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o, 16);
  return sum;
}

/* Places of [from, to) in an ascending list. */
static __device__ inline int64_t first_at_least(const int64_t *list, int64_t low, int64_t high,
                                                int64_t value) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (list[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
