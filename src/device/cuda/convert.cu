/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: elements to float32, lengths, sums of columns, rows picked out. All of it is bound by
 * memory: each number is read once or twice and written once. */
#include <float.h>
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

/* ---- elements ------------------------------------------------------------------------------- */

static __device__ inline float as_float(__half x) {
  return __half2float(x);
}
static __device__ inline float as_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
static __device__ inline float as_float(float x) {
  return x;
}
static __device__ inline float as_float(double x) {
  return (float)x;
}
static __device__ inline float as_float(int8_t x) {
  return (float)x;
}
static __device__ inline float as_float(uint8_t x) {
  return (float)x;
}

template <class T>
static __global__ void convert_kernel(const T *from, int64_t count, float *to) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += step)
    to[k] = as_float(from[k]);
}

static __global__ void widen_kernel(const float *from, int64_t count, double *to) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += step)
    to[k] = (double)from[k];
}

int gpu_convert(gpu *g, const void *from, int element, int64_t count, float *to) {
  const unsigned blocks = part_blocks(g, count);
  if (count == 0) return GPU_OK;
  if (element == 0)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const __half *)from, count, to);
  else if (element == 1)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const __nv_bfloat16 *)from, count, to);
  else if (element == 2)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const float *)from, count, to);
  else if (element == 3)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const double *)from, count, to);
  else if (element == 4)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const int8_t *)from, count, to);
  else if (element == 5)
    convert_kernel<<<blocks, 256, 0, g->stream>>>((const uint8_t *)from, count, to);
  else
    return gpu_fail(g, GPU_FAILED, "elements of kind %d cannot be converted", element);
  return gpu_launched(g, "converting rows");
}

int gpu_convert_double(gpu *g, const void *from, int element, int64_t count, double *to) {
  float *room;
  if (count == 0) return GPU_OK;
  if (element == 3)
    return gpu_check(
        g,
        cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToDevice, g->stream),
        "copying rows");
  const long mark = gpu_mark(g);
  int code = gpu_new(g, &room, count);
  if (code == GPU_OK) code = gpu_convert(g, from, element, count, room);
  if (code == GPU_OK) {
    widen_kernel<<<part_blocks(g, count), 256, 0, g->stream>>>(room, count, to);
    code = gpu_launched(g, "converting rows");
  }
  gpu_release(g, mark);
  return code;
}

/* ---- lengths -------------------------------------------------------------------------------- */

/* A warp a row. Squares are summed in float64, where no float32 over- or underflows. */
static __global__ void unit_kernel(float *z, int64_t rows, int64_t cols, int64_t ld, int unit,
                                   const float *shift, float *square) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  float *row = z + i * ld;
  double factor = 1;
  if (unit) {
    double sum = 0;
    for (int64_t k = lane; k < cols; k += 32) sum += (double)row[k] * (double)row[k];
    sum = warp_sum(sum);
    const double length = sqrt(sum);
    factor = isfinite(length) ? (length > 0 ? 1 / length : 1) : NAN;
  }
  const float small = (float)factor;
  const bool plain = small > 1e-30f && small < 1e30f;
  double sum = 0;
  for (int64_t k = lane; k < cols; k += 32) {
    float value = unit ? (plain ? row[k] * small : (float)((double)row[k] * factor)) : row[k];
    if (shift) value -= shift[k];
    row[k] = value;
    sum += (double)value * (double)value;
  }
  if (!square) return;
  sum = warp_sum(sum);
  if (lane == 0) square[i] = (float)sum;
}

int gpu_unit_rows(gpu *g, float *z, int64_t rows, int64_t cols, int64_t ld, int unit,
                  const float *shift, float *square) {
  if (rows == 0 || (!unit && !shift && !square)) return GPU_OK;
  unit_kernel<<<(unsigned)((rows + 7) / 8), 256, 0, g->stream>>>(z, rows, cols, ld, unit, shift,
                                                                 square);
  return gpu_launched(g, "scaling rows");
}

/* ---- sums of columns ------------------------------------------------------------------------ */

enum { SUM_ROWS = 512 };

/* part[slice][w][column]; a thread a column of a slice of rows. Weights are `ld_weight` apart. */
static __global__ void column_kernel(const float *a, int64_t rows, int64_t cols, int64_t ld,
                                     const double *weight, int64_t ld_weight, int64_t weights,
                                     double *part) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t first = (int64_t)blockIdx.y * SUM_ROWS;
  const int64_t last = first + SUM_ROWS < rows ? first + SUM_ROWS : rows;
  const int64_t w = (int64_t)blockIdx.z; /* 0: plain and squares; 1 ..: weights */
  if (j >= cols) return;
  double sum = 0, square = 0;
  if (w == 0) {
#pragma unroll 8
    for (int64_t i = first; i < last; i++) {
      const double v = (double)a[i * ld + j];
      sum += v;
      square += v * v;
    }
  } else {
#pragma unroll 8
    for (int64_t i = first; i < last; i++)
      sum += weight[(w - 1) * ld_weight + i] * (double)a[i * ld + j];
  }
  double *to = part + (int64_t)blockIdx.y * (weights + 2) * cols;
  to[(w == 0 ? 0 : w + 1) * cols + j] = sum;
  if (w == 0) to[cols + j] = square;
}

static __global__ void fold_columns(const double *part, int64_t slices, int64_t cols,
                                    int64_t height, double sign, double *sum, int64_t stride) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, w = blockIdx.y;
  if (j >= cols) return;
  double total = 0;
  for (int64_t s = 0; s < slices; s++) total += part[(s * height + w) * cols + j];
  sum[w * stride + j] += sign * total;
}

static int column_sums(gpu *g, const float *a, int64_t rows, int64_t cols, int64_t ld,
                       const double *weight, int64_t ld_weight, int64_t weights, double sign,
                       double *sum, int64_t stride) {
  const int64_t slices = (rows + SUM_ROWS - 1) / SUM_ROWS;
  const unsigned across = (unsigned)((cols + 127) / 128);
  double *part;
  GPU_TRY(gpu_new(g, &part, slices * (weights + 2) * cols));
  column_kernel<<<dim3(across, (unsigned)slices, (unsigned)(weights + 1)), 128, 0, g->stream>>>(
      a, rows, cols, ld, weight, ld_weight, weights, part);
  GPU_TRY(gpu_launched(g, "summing columns"));
  fold_columns<<<dim3(across, (unsigned)(weights + 2)), 128, 0, g->stream>>>(
      part, slices, cols, weights + 2, sign, sum, stride);
  return gpu_launched(g, "summing columns");
}

int gpu_column_sums(gpu *g, const float *a, int64_t rows, int64_t cols, int64_t ld,
                    const double *weight, int64_t weights, double sign, double *sum,
                    int64_t stride) {
  const int64_t most = g->sum_rows > 0 ? g->sum_rows : 16 << 20; /* so many slices fit a grid */
  const long mark = gpu_mark(g);
  int code = GPU_OK;
  for (int64_t first = 0; first < rows && code == GPU_OK; first += most) {
    code = column_sums(g, a + first * ld, gpu_least(most, rows - first), cols, ld,
                       weight ? weight + first : NULL, rows, weights, sign, sum, stride);
    gpu_release(g, mark);
  }
  return code;
}

/* ---- largest numbers ------------------------------------------------------------------------ */

/* Moduli are not negative, so they compare as their bits do, and a maximum has no order. */
static __global__ void largest_kernel(const float *a, int64_t rows, int64_t cols, int64_t ld,
                                      unsigned *out) {
  const int64_t step = (int64_t)gridDim.x * (blockDim.x / 32);
  const int lane = threadIdx.x % 32;
  float entry = 0, length = 0;
  for (int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < rows;
       i += step) {
    float sum = 0;
    for (int64_t k = lane; k < cols; k += 32) {
      const float v = fabsf(a[i * ld + k]);
      entry = v > entry || v != v ? v : entry;
      sum += v * v;
    }
    sum = warp_sum(sum);
    length = sum > length || sum != sum ? sum : length;
  }
  for (int o = 16; o > 0; o /= 2) entry = fmaxf(entry, __shfl_xor_sync(~0u, entry, o));
  if (lane == 0) {
    atomicMax(&out[0], __float_as_uint(fabsf(entry)));
    atomicMax(&out[1], __float_as_uint(fabsf(length)));
  }
}

int gpu_largest(gpu *g, const float *a, int64_t rows, int64_t cols, int64_t ld, float *entry,
                float *length) {
  float result[2];
  unsigned *out;
  const long mark = gpu_mark(g);
  int code = gpu_new(g, &out, 2);
  if (code == GPU_OK)
    code = gpu_check(g, cudaMemsetAsync(out, 0, 2 * sizeof *out, g->stream), "looking at rows");
  if (code == GPU_OK) {
    largest_kernel<<<(unsigned)(8 * g->processors), 256, 0, g->stream>>>(a, rows, cols, ld, out);
    code = gpu_launched(g, "looking at rows");
  }
  if (code == GPU_OK) code = gpu_download(g, result, out, sizeof result);
  gpu_release(g, mark);
  if (code != GPU_OK) return code;
  *entry = result[0];
  *length = sqrtf(result[1]) * (1 + 1e-5f); /* rounding of the sum */
  return GPU_OK;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static __global__ void gather_kernel(const float *from, int64_t cols, int64_t ld,
                                     const int64_t *row, int64_t count, float *to, int64_t ld_to) {
  const int64_t step = (int64_t)gridDim.x * (blockDim.x / 32);
  for (int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < count; i += step)
    for (int64_t k = threadIdx.x % 32; k < cols; k += 32) to[i * ld_to + k] = from[row[i] * ld + k];
}

int gpu_gather(gpu *g, const float *from, int64_t cols, int64_t ld, const int64_t *row,
               int64_t count, float *to, int64_t ld_to) {
  if (count == 0) return GPU_OK;
  gather_kernel<<<part_blocks(g, count * 32), 256, 0, g->stream>>>(from, cols, ld, row, count, to,
                                                                   ld_to);
  return gpu_launched(g, "picking rows");
}

static __global__ void sum_kernel(const double *part, int64_t count, double *out) {
  __shared__ double held[1024];
  double sum = 0;
  for (int64_t k = threadIdx.x; k < count; k += 1024) sum += part[k];
  held[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 512; half > 0; half /= 2) {
    if ((int)threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = held[0];
}

int gpu_sum_doubles(gpu *g, const double *part, int64_t count, double *out) {
  sum_kernel<<<1, 1024, 0, g->stream>>>(part, count, out);
  return gpu_launched(g, "adding up");
}
