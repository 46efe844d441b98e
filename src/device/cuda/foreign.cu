/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other libraries have filled or will read: rows of any type and strides in, float32
 * rows out, rows that cannot be used found where they lie. Bound by memory. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

static size_t size_of(int element) {
  static const size_t size[] = {2, 2, 4, 8, 1, 1};
  return size[element];
}

/* Is this memory of our GPU, that a kernel may read? */
static int check_memory(gpu *g, const gpu_foreign *f) {
  cudaPointerAttributes about;
  if (f->number != g->device)
    return gpu_fail(g, GPU_FAILED, "the rows lie on GPU %d, and GPU %d is in use", f->number,
                    g->device);
  if (f->element < 0 || f->element > 5)
    return gpu_fail(g, GPU_FAILED, "rows of elements of kind %d are not read", f->element);
  const int64_t size = (int64_t)size_of(f->element);
  if ((uintptr_t)f->data % (uintptr_t)size != 0 || f->row_stride % size != 0 ||
      f->col_stride % size != 0)
    return gpu_fail(g, GPU_FAILED,
                    "rows with strides %lld and %lld do not lie where elements of %lld bytes do",
                    (long long)f->row_stride, (long long)f->col_stride, (long long)size);
  GPU_TRY(gpu_check(g, cudaPointerGetAttributes(&about, f->data), "looking at memory of others"));
  if (about.type == cudaMemoryTypeManaged) return GPU_OK;
  if (about.type != cudaMemoryTypeDevice)
    return gpu_fail(g, GPU_FAILED, "the rows do not lie in the memory of a GPU");
  if (about.device != g->device)
    return gpu_fail(g, GPU_FAILED, "the rows lie on GPU %d, and GPU %d is in use", about.device,
                    g->device);
  return GPU_OK;
}

/* What was asked on the stream of others has run. */
static int wait_for(gpu *g, const gpu_foreign *f) {
  if (f->stream == 0) return GPU_OK;
  return gpu_check(g, cudaStreamSynchronize((cudaStream_t)(uintptr_t)f->stream),
                   "waiting for memory of others");
}

static __device__ inline float as_float(__half x) {
  return __half2float(x);
}
static __device__ inline float as_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <class T>
static __device__ inline float as_float(T x) {
  return (float)x;
}

template <class T>
static __global__ void strided_kernel(const char *from, int64_t row_stride, int64_t col_stride,
                                      int64_t rows, int64_t cols, float *to, int64_t ld) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows * cols;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += step) {
    const int64_t i = k / cols, j = k % cols;
    to[i * ld + j] = as_float(*(const T *)(from + i * row_stride + j * col_stride));
  }
}

template <class T>
static void launch_strided(gpu *g, const gpu_foreign *f, int64_t first, int64_t count, float *to,
                           int64_t ld) {
  strided_kernel<T><<<part_blocks(g, count * f->cols), 256, 0, g->stream>>>(
      (const char *)f->data + first * f->row_stride, f->row_stride, f->col_stride, count, f->cols,
      to, ld);
}

int gpu_receive(gpu *g, const gpu_foreign *f, int64_t first, int64_t count, float *to, int64_t ld) {
  if (count == 0 || f->cols == 0) return GPU_OK;
  GPU_TRY(check_memory(g, f));
  GPU_TRY(wait_for(g, f));
  if (f->element == 0)
    launch_strided<__half>(g, f, first, count, to, ld);
  else if (f->element == 1)
    launch_strided<__nv_bfloat16>(g, f, first, count, to, ld);
  else if (f->element == 2)
    launch_strided<float>(g, f, first, count, to, ld);
  else if (f->element == 3)
    launch_strided<double>(g, f, first, count, to, ld);
  else if (f->element == 4)
    launch_strided<int8_t>(g, f, first, count, to, ld);
  else
    launch_strided<uint8_t>(g, f, first, count, to, ld);
  GPU_TRY(gpu_launched(g, "reading memory of others"));
  return gpu_sync(g, "reading memory of others");
}

int gpu_hand(gpu *g, const float *from, int64_t ld, int64_t count, const gpu_foreign *f,
             int64_t first) {
  const size_t row = (size_t)f->cols * sizeof *from;
  if (count == 0 || f->cols == 0) return GPU_OK;
  GPU_TRY(check_memory(g, f));
  GPU_TRY(wait_for(g, f));
  GPU_TRY(gpu_check(g,
                    cudaMemcpy2DAsync((char *)f->data + first * f->row_stride,
                                      (size_t)f->row_stride, from, (size_t)ld * sizeof *from, row,
                                      (size_t)count, cudaMemcpyDeviceToDevice, g->stream),
                    "writing memory of others"));
  return gpu_sync(g, "writing memory of others");
}

/* A warp a row; the smallest number of a bad one. */
static __global__ void flaw_kernel(const float *m, int64_t rows, int64_t cols, int64_t ld, int zero,
                                   unsigned long long *first) {
  const int64_t step = (int64_t)gridDim.x * (blockDim.x / 32);
  for (int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < rows;
       i += step) {
    bool bad = false, some = false;
    for (int64_t k = threadIdx.x % 32; k < cols; k += 32) {
      const float value = m[i * ld + k];
      bad = bad || !isfinite(value);
      some = some || value != 0;
    }
    bad = __any_sync(~0u, bad);
    some = __any_sync(~0u, some);
    if (threadIdx.x % 32 == 0 && (bad || (zero && !some))) atomicMin(first, (unsigned long long)i);
  }
}

static int find_flaw(gpu *g, const float *m, int64_t rows, int64_t cols, int64_t ld, int zero,
                     int64_t *row) {
  unsigned long long found, *first;
  GPU_TRY(gpu_new(g, &first, 1));
  GPU_TRY(gpu_check(g, cudaMemsetAsync(first, 0xff, sizeof *first, g->stream), "looking at rows"));
  flaw_kernel<<<part_blocks(g, rows * 32), 256, 0, g->stream>>>(m, rows, cols, ld, zero, first);
  GPU_TRY(gpu_launched(g, "looking at rows"));
  GPU_TRY(gpu_download(g, &found, first, sizeof found));
  *row = found < (unsigned long long)rows ? (int64_t)found : -1;
  return GPU_OK;
}

int gpu_flaw(gpu *g, const float *m, int64_t rows, int64_t cols, int64_t ld, int zero,
             int64_t *row) {
  const long mark = gpu_mark(g);
  *row = -1;
  if (rows == 0) return GPU_OK;
  const int code = find_flaw(g, m, rows, cols, ld, zero, row);
  gpu_release(g, mark);
  return code;
}

int gpu_room_new(gpu *g, uint64_t bytes, void **out) {
  *out = NULL;
  if (cudaMalloc(out, bytes) == cudaSuccess) return GPU_OK;
  cudaGetLastError();
  gpu_trim(g);
  return gpu_check(g, cudaMalloc(out, bytes), "embeddings");
}

void gpu_room_free(void *room) {
  cudaFree(room);
  cudaGetLastError(); /* a driver that is gone has freed it */
}
