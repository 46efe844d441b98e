/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to features: unit rows, products with landmarks, a function of each product, the factor. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

/* Kernels, as in device.h. */
enum {
  LINEAR = 0,
  COSINE = 1,
  ARCCOS0 = 3,
  ARCCOS1 = 4,
  ARCCOS2 = 5,
  EXPCOS = 6,
  RBF = 7,
  MATERN12 = 8,
  MATERN32 = 10,
  MATERN52 = 11,
  POLY = 12
};
enum { MAP_LINEAR = 0, MAP_KERNEL = 1, MAP_RANDOM = 2 };

static const float pi = 3.14159265358979f;

/* ---- pointwise ------------------------------------------------------------------------------ */

typedef struct tile_form {
  int kernel, degree;
  float inverse; /* what squares of distances, or cosines, are multiplied with */
} tile_form;

static __device__ inline float arccos_of(int order, float c) {
  const float theta = acosf(c), rest = pi - theta;
  const float sine = sqrtf(fmaxf((1 - c) * (1 + c), 0.0f));
  if (order == 0) return rest / pi;
  if (order == 1) return (sine + rest * c) / pi;
  return (3 * sine * c + rest * (1 + 2 * c * c)) / (3 * pi);
}

static __device__ inline float matern_of(int kernel, float square) {
  const float a = sqrtf(square), e = expf(-a);
  if (kernel == MATERN32) return (1 + a) * e;
  if (kernel == MATERN52) return (1 + a + square / 3) * e;
  return e;
}

/* As features/kernel.c: lengths whose product may overflow are never multiplied as squares, and
 * distances beyond float32 are far. */
static __device__ float kernel_of(tile_form f, float t, float square_x, float square_y) {
  if (f.kernel == LINEAR) return t;
  if (f.kernel == POLY) return powf((1 + t) / 2, (float)f.degree);
  if (f.kernel >= RBF) {
    const float gap = (square_x + square_y - 2 * t) * f.inverse;
    const float bounded = gap < 1e30f ? gap : 1e30f, square = bounded > 0 ? bounded : 0;
    return f.kernel == RBF ? expf(-square) : matern_of(f.kernel, square);
  }
  const float lengths = sqrtf(square_x) * sqrtf(square_y);
  const float ratio = lengths > 0 ? t / lengths : 0;
  const float c = ratio > 1 ? 1 : ratio < -1 ? -1 : ratio;
  if (f.kernel == COSINE) return c;
  if (f.kernel == EXPCOS) return expf(c * f.inverse);
  if (f.kernel == ARCCOS0) return arccos_of(0, c);
  if (f.kernel == ARCCOS1) return lengths * arccos_of(1, c);
  return lengths * lengths * arccos_of(2, c);
}

static tile_form form_of(const gpu_map *map) {
  const double l = map->width, factor = map->kernel == MATERN32   ? sqrt(3.0)
                                        : map->kernel == MATERN52 ? sqrt(5.0)
                                                                  : 1;
  tile_form f = {map->kernel, map->degree, 1};
  if (map->kernel == EXPCOS) f.inverse = (float)(1 / (l * l));
  if (map->kernel == RBF) f.inverse = (float)(1 / (l * l)) / 2;
  if (map->kernel >= MATERN12 && map->kernel <= MATERN52)
    f.inverse = (float)(factor / l * (factor / l));
  return f;
}

static __global__ void tile_kernel(tile_form f, float *t, int64_t rows, int64_t cols, int64_t ld,
                                   const float *square_x, const float *square_y) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows * cols;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / cols, j = at - i * cols;
    t[i * ld + j] = kernel_of(f, t[i * ld + j], square_x[i], square_y[j]);
  }
}

int gpu_kernel_tile(gpu *g, const gpu_map *map, float *t, int64_t rows, int64_t cols, int64_t ld,
                    const float *square_x, const float *square_y) {
  if (map->kernel == LINEAR || rows * cols == 0) return GPU_OK;
  tile_kernel<<<part_blocks(g, rows * cols), 256, 0, g->stream>>>(form_of(map), t, rows, cols, ld,
                                                                  square_x, square_y);
  return gpu_launched(g, "kernel values");
}

static __global__ void random_kernel(int kernel, float scale, float *t, int64_t rows, int64_t cols,
                                     int64_t ld, const float *phase) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows * cols;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / cols, j = at - i * cols;
    const float v = t[i * ld + j], positive = v > 0 ? v : v <= 0 ? 0 : v; /* NaN stays */
    t[i * ld + j] = kernel == ARCCOS0   ? (v > 0 ? scale : 0 * positive)
                    : kernel == ARCCOS1 ? scale * positive
                    : kernel == ARCCOS2 ? scale * positive * positive * 0.577350269f
                                        : scale * cosf(v + phase[j]);
  }
}

static __global__ void subtract_kernel(float *t, int64_t rows, int64_t cols, int64_t ld,
                                       const float *row) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows * cols;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / cols, j = at - i * cols;
    t[i * ld + j] -= row[j];
  }
}

int gpu_subtract(gpu *g, float *t, int64_t rows, int64_t cols, int64_t ld, const float *row) {
  if (rows == 0 || cols == 0) return GPU_OK;
  subtract_kernel<<<part_blocks(g, rows * cols), 256, 0, g->stream>>>(t, rows, cols, ld, row);
  return gpu_launched(g, "centring rows");
}

/* ---- products ------------------------------------------------------------------------------- */

enum { FEATURE_BYTES = 128 << 20 };

/* What a features call makes once. */
typedef struct work {
  const gpu_map *map;
  int split_base, split_factor; /* by split products? */
  __half *base, *factor;        /* right operands: points by 3 in, out by 3 points */
  float value_scale, factor_scale;
} work;

/* Kernel values of unit rows are at most this; 0: unknown. */
static double most_value(const gpu_map *map) {
  const double l = map->width;
  if (map->kind != MAP_KERNEL) return 0;
  if (map->kernel == EXPCOS) return exp(1 / (l * l)) < 1e4 ? exp(1 / (l * l)) : 0;
  return 1.01;
}

/* The power of 2 that takes numbers up to `most` below `to`. */
static float power_below(double most, double to) {
  int exponent;
  frexp(to / most, &exponent);
  return (float)ldexp(1.0, exponent - 1);
}

static int split_factor_of(gpu *g, work *w) {
  const gpu_map *map = w->map;
  float entry, length;
  GPU_TRY(gpu_largest(g, map->factor, map->points, map->out, map->out, &entry, &length));
  if (!(entry > 0) || !(entry < 1e30f)) return GPU_OK;
  w->value_scale = power_below(most_value(map), 8192);
  w->factor_scale = power_below(entry, 16384);
  GPU_TRY(gpu_new(g, &w->factor, map->out * gpu_split_width(map->points, 3)));
  w->split_factor = 1;
  return gpu_split_columns(g, map->factor, map->points, map->out, map->out, 3, w->factor_scale,
                           w->factor);
}

static int work_open(gpu *g, const gpu_map *map, int64_t count, work *w) {
  float entry = 0, length = 0;
  *w = (work){map, 0, 0, NULL, NULL, 1, 1};
  if (!map->normalize || count < 256) return GPU_OK; /* entries without a bound: plain float32 */
  GPU_TRY(gpu_largest(g, map->base, map->points, map->in, map->in, &entry, &length));
  if (!(length < GPU_SPLIT_MOST)) return GPU_OK;
  GPU_TRY(gpu_new(g, &w->base, map->points * gpu_split_width(map->in, 3)));
  GPU_TRY(gpu_split_rows(g, map->base, map->points, map->in, map->in, GPU_RIGHT, 3, GPU_SPLIT_SCALE,
                         w->base));
  w->split_base = 1;
  /* values of rows longer than 1 may be larger: where all landmarks are unit rows they are not */
  const int by_angle = map->kernel == COSINE || map->kernel == ARCCOS0 || map->kernel >= EXPCOS;
  const int bounded = map->kernel != POLY && by_angle ? 1 : length < 1.001f && !map->center;
  return map->factor && bounded && most_value(map) > 0 ? split_factor_of(g, w) : GPU_OK;
}

/* t = u base^T */
static int times_base(gpu *g, const work *w, const float *u, int64_t rows, float *t) {
  const gpu_map *map = w->map;
  const int64_t m = map->points, d = map->in, width = gpu_split_width(d, 3);
  __half *left;
  if (!w->split_base) return gpu_sgemm(g, 0, 1, rows, m, d, 1, u, d, map->base, d, 0, t, m);
  const long mark = gpu_mark(g);
  int code = gpu_new(g, &left, rows * width);
  if (code == GPU_OK) code = gpu_split_rows(g, u, rows, d, d, GPU_LEFT, 3, GPU_SPLIT_SCALE, left);
  if (code == GPU_OK)
    code = gpu_gemm16(g, CUDA_R_16F, 0, 1, rows, m, width, 0x1p-16f, left, width, w->base, width, 0,
                      t, CUDA_R_32F, m);
  gpu_release(g, mark);
  return code;
}

/* out = t factor, which is upper triangular: panels of its columns with the rows above their ends.
 * Split products block after block, as wide as the panels: the tensor cores cut bits off, so what
 * they add up in one go is kept short. */
static int times_factor(gpu *g, const work *w, const float *t, int64_t rows, float *out,
                        int64_t ld) {
  enum { PANEL = 512 };
  const gpu_map *map = w->map;
  const int64_t m = map->points, p = map->out, width = gpu_split_width(m, 3);
  const float scale = 1 / (w->value_scale * w->factor_scale);
  __half *left = NULL;
  if (w->split_factor) {
    GPU_TRY(gpu_new(g, &left, rows * width));
    GPU_TRY(gpu_split_rows(g, t, rows, m, m, GPU_LEFT, 3, w->value_scale, left));
  }
  for (int64_t j = 0; j < p; j += PANEL) {
    const int64_t cols = gpu_least(PANEL, p - j), k = gpu_least(m, j + PANEL);
    if (!w->split_factor)
      GPU_TRY(gpu_sgemm(g, 0, 0, rows, cols, k, 1, t, m, map->factor + j, p, 0, out + j, ld));
    for (int64_t c = 0; w->split_factor && c < k; c += PANEL)
      GPU_TRY(gpu_gemm16(g, CUDA_R_16F, 0, 1, rows, cols, gpu_least(3 * PANEL, width - 3 * c),
                         scale, left + 3 * c, width, w->factor + j * width + 3 * c, width, c > 0,
                         out + j, CUDA_R_32F, ld));
  }
  return GPU_OK;
}

/* A block of rows that are scaled and shifted. */
static int block_features(gpu *g, const work *w, const float *u, const float *square, int64_t rows,
                          float *out, int64_t ld) {
  const gpu_map *map = w->map;
  const int64_t m = map->points;
  float *t = out;
  if (map->factor || ld != m) GPU_TRY(gpu_new(g, &t, rows * m));
  GPU_TRY(times_base(g, w, u, rows, t));
  if (map->kind == MAP_KERNEL) GPU_TRY(gpu_kernel_tile(g, map, t, rows, m, m, square, map->square));
  if (map->kind == MAP_RANDOM) {
    random_kernel<<<part_blocks(g, rows * m), 256, 0, g->stream>>>(
        map->kernel, sqrtf(2.0f / (float)m), t, rows, m, m, map->square);
    GPU_TRY(gpu_launched(g, "random features"));
  }
  if (map->factor) GPU_TRY(times_factor(g, w, t, rows, out, ld));
  if (t == out || map->factor) return GPU_OK;
  return gpu_check(
      g,
      cudaMemcpy2DAsync(out, (size_t)ld * sizeof *out, t, (size_t)m * sizeof *t,
                        (size_t)m * sizeof *t, (size_t)rows, cudaMemcpyDeviceToDevice, g->stream),
      "copying features");
}

static int features(gpu *g, const gpu_map *map, float *raw, int64_t count, float *out, int64_t ld) {
  float *square = NULL;
  work w;
  GPU_TRY(gpu_new(g, &square, count));
  GPU_TRY(gpu_unit_rows(g, raw, count, map->in, map->in, map->normalize, map->center, square));
  if (map->kind == MAP_LINEAR) {
    GPU_TRY(
        gpu_check(g,
                  cudaMemcpy2DAsync(out, (size_t)ld * sizeof *out, raw,
                                    (size_t)map->in * sizeof *raw, (size_t)map->in * sizeof *raw,
                                    (size_t)count, cudaMemcpyDeviceToDevice, g->stream),
                  "copying features"));
  } else {
    GPU_TRY(work_open(g, map, count, &w));
    const int64_t row = 6 * map->in + 10 * map->points;
    const int64_t block = gpu_least(count, FEATURE_BYTES / row < 128 ? 128 : FEATURE_BYTES / row);
    for (int64_t first = 0; first < count; first += block) {
      const long mark = gpu_mark(g);
      const int64_t rows = gpu_least(block, count - first);
      GPU_TRY(
          block_features(g, &w, raw + first * map->in, square + first, rows, out + first * ld, ld));
      gpu_release(g, mark);
    }
  }
  return map->mean ? gpu_subtract(g, out, count, map->out, ld, map->mean) : GPU_OK;
}

int gpu_features(gpu *g, const gpu_map *map, float *raw, int64_t count, float *out, int64_t ld) {
  if (count == 0) return GPU_OK;
  const long mark = gpu_mark(g);
  const int code = features(g, map, raw, count, out, ld);
  gpu_release(g, mark);
  return code;
}

int gpu_embed(gpu *g, const float *phi, int64_t rows, int64_t p, int64_t ld, const float *weight,
              int64_t r, int unit, float *z, int64_t ld_z) {
  GPU_TRY(gpu_sgemm(g, 0, 0, rows, r, p, 1, phi, ld, weight, r, 0, z, ld_z));
  return unit ? gpu_unit_rows(g, z, rows, r, ld_z, 1, NULL, NULL) : GPU_OK;
}
