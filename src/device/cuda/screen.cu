/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "screen.cuh"

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

/* The column behind those of the products, a place each, 0 behind the end. */
static __global__ void last_kernel(const float *b, int64_t rows, int64_t ld, int64_t column,
                                   float *last, unsigned *most) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (rows + 7) / 8 * 8) return;
  const float v = i < rows ? b[i * ld + column] : 0;
  last[i] = v;
  atomicMax(&most[2], __float_as_uint(fabsf(v)));
}

int gpu_screen_open(gpu *g, const gpu_scores *s, int parts, int64_t rows, int64_t cols, screen *w) {
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

int gpu_screen_queries(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld) {
  lengths_kernel<<<(unsigned)((rows + 7) / 8), 256, 0, g->stream>>>(q, rows, w->width, ld, w->parts,
                                                                    w->length, w->lost, NULL);
  GPU_TRY(gpu_launched(g, "lengths of rows"));
  if (w->parts == 0) return GPU_OK;
  return gpu_split_rows(g, q, rows, w->width, ld, GPU_LEFT, w->parts, GPU_SPLIT_SCALE, w->left);
}

int gpu_screen_chunk(gpu *g, const screen *w, const float *q, int64_t rows, int64_t ld_q,
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

bool gpu_is_large(const gpu *g, const gpu_scores *s) {
  return s->queries >= 65536 && s->candidates >= 65536 && gpu_left(g) > (uint64_t)4 << 30;
}
