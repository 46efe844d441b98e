/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU on the CPU, for tests: the plugin's own sources, kernels included, run by a C++ compiler.
 * This header is included before each of them; translate.py has turned kernel<<<...>>>(...) into
 * emulated_bind.
 *
 * Threads of a block are fibers that run until they wait for one another, blocks one after another.
 * What is asked of a stream is queued and runs as late as CUDA allows: when someone waits for it.
 * What CUDA leaves undefined ends the program with a sentence: a warp operation that not all lanes
 * reach, a barrier that some threads never come to, a launch of a shape that no GPU takes. Memory
 * out of bounds and misaligned accesses are found by the compiler's sanitizers, a missing barrier by
 * running threads in reverse order (EMULATED_ORDER=reverse), what was never written by the NaN that
 * new memory is full of. Slow; not for timing. */
#ifndef EMULATED_H
#define EMULATED_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <string.h>

#include <functional>
#include <tuple>

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __shared__ static /* one block at a time */
#define __launch_bounds__(...)

/* ---- launches ------------------------------------------------------------------------------- */

struct emulated_shape {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};

void emulated_launch(const char *name, const emulated_shape &shape, std::function<void()> body);

/* Arguments are copied when the launch is asked for, as CUDA does. */
template <class K>
struct emulated_kernel {
  const char *name;
  K kernel;
  emulated_shape shape;
  template <class... A>
  void operator()(A... a) const {
    const std::tuple<A...> arguments(a...);
    emulated_launch(name, shape, [k = kernel, arguments] { std::apply(k, arguments); });
  }
};

template <class K>
emulated_kernel<K> emulated_bind(const char *name, K kernel, dim3 grid, dim3 block,
                                 size_t shared = 0, cudaStream_t stream = nullptr) {
  return {name, kernel, {grid, block, shared, stream}};
}

/* Puts an operation into a stream. */
void emulated_enqueue(cudaStream_t stream, std::function<void()> body);

/* ---- inside a kernel ------------------------------------------------------------------------ */

struct emulated_place {
  uint3 thread, block;
  dim3 block_shape, grid_shape;
};
extern thread_local emulated_place emulated_here;
#define threadIdx (emulated_here.thread)
#define blockIdx (emulated_here.block)
#define blockDim (emulated_here.block_shape)
#define gridDim (emulated_here.grid_shape)

void *emulated_shared(void); /* extern __shared__ */
void emulated_barrier(void);
/* All lanes put `bytes` bytes in; returns those of all, 8 bytes apart, once all have. */
const char *emulated_exchange(unsigned mask, const char *kind, const void *value, size_t bytes);
bool emulated_lane_exists(int lane);

inline void __syncthreads() {
  emulated_barrier();
}

inline void __syncwarp(unsigned mask = ~0u) {
  emulated_exchange(mask, "syncwarp", "", 0);
}

inline int emulated_lane() {
  const auto &b = emulated_here.block_shape;
  const auto &t = emulated_here.thread;
  return (int)((t.x + b.x * (t.y + b.y * t.z)) % 32);
}

template <class T>
T emulated_from(const char *all, int lane) {
  T out;
  memcpy(&out, all + 8 * lane, sizeof out);
  return out;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  static_assert(sizeof(T) <= 8, "of a register or two");
  const int lane = emulated_lane(), first = lane / width * width;
  const char *all = emulated_exchange(mask, "shfl", &value, sizeof value);
  return emulated_from<T>(all, first + (from % width + width) % width);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  static_assert(sizeof(T) <= 8, "of a register or two");
  const int lane = emulated_lane(), from = lane ^ with;
  const char *all = emulated_exchange(mask, "shfl_xor", &value, sizeof value);
  return from / width > lane / width ? value : emulated_from<T>(all, from);
}

inline unsigned __ballot_sync(unsigned mask, int set) {
  const int value = set != 0;
  const char *all = emulated_exchange(mask, "ballot", &value, sizeof value);
  unsigned out = 0;
  for (int k = 0; k < 32; k++)
    if (emulated_lane_exists(k) && emulated_from<int>(all, k)) out |= 1u << k;
  return out;
}

inline int __any_sync(unsigned mask, int set) {
  return __ballot_sync(mask, set) != 0;
}

template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  const char *all = emulated_exchange(mask, "reduce_add", &value, sizeof value);
  T sum = 0;
  for (int k = 0; k < 32; k++)
    if (emulated_lane_exists(k)) sum += emulated_from<T>(all, k);
  return sum;
}

template <class T, class U>
T atomicAdd(T *at, U value) {
  const T old = *at;
  *at = old + (T)value;
  return old;
}

template <class T, class U>
T atomicMin(T *at, U value) {
  const T old = *at;
  if ((T)value < old) *at = (T)value;
  return old;
}

template <class T, class U>
T atomicMax(T *at, U value) {
  const T old = *at;
  if ((T)value > old) *at = (T)value;
  return old;
}

inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline unsigned __float_as_uint(float x) {
  unsigned u;
  memcpy(&u, &x, sizeof u);
  return u;
}
inline float __uint_as_float(unsigned u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
inline float __expf(float x) {
  return expf(x);
}
inline float cospif(float x) {
  return cosf((float)M_PI * x);
}
inline float __double2float_rd(double x) {
  const float f = (float)x;
  return (double)f > x ? nextafterf(f, -INFINITY) : f;
}
inline float __double2float_ru(double x) {
  const float f = (float)x;
  return (double)f < x ? nextafterf(f, INFINITY) : f;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

#endif
