/* SPDX-License-Identifier: Apache-2.0 */
/* Held-out rows: unit rows of the leading columns, biases by the banks, ranks of the matches in
 * both directions. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

/* A warp a row: the first `rank` columns scaled, to length 1, `width` apart; rounded to float16 if
 * `half`. */
static __global__ void columns_kernel(const float *z, int64_t rows, int64_t ld, int64_t rank,
                                      const double *scale, int half, float *out, int64_t width) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  const float *from = z + i * ld;
  float *to = out + i * width;
  double sum = 0;
  for (int64_t k = lane; k < rank; k += 32) {
    const float v = scale ? (float)((double)from[k] * scale[k]) : from[k];
    sum += (double)v * (double)v;
    to[k] = v;
  }
  const double length = sqrt(warp_sum(sum));
  for (int64_t k = lane; k < rank; k += 32) {
    const float v = length > 0 ? (float)((double)to[k] / length) : to[k];
    to[k] = half ? __half2float(__float2half_rn(v)) : v;
  }
}

/* The last column: 1, or minus the bias within [-1, 1]. */
static __global__ void last_kernel(float *z, int64_t rows, int64_t width, const float *bias) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  const float b = bias ? bias[i] : 0;
  z[i * width + width - 1] = bias ? (b > 1 ? -1 : b < -1 ? 1 : -b) : 1;
}

static __global__ void fill_kernel(double *v, int64_t count, double value) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) v[i] = value;
}

/* Scores of the matches of a query in descending order, by a warp: two at a time. */
static __global__ void match_kernel(const float *query, const float *candidate, int64_t queries,
                                    int64_t width, const int64_t *start, const int64_t *match,
                                    double *threshold) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= queries) return;
  const int64_t from = start[i], end = start[i + 1];
  for (int64_t k = from; k < end; k += 2) {
    const int64_t mine = k + lane / 16 < end ? k + lane / 16 : end - 1;
    const double score =
        half_warp_dot(query + i * width, candidate + match[mine] * width, width);
    if (lane % 16 == 0 && k + lane / 16 < end) threshold[mine] = score;
  }
  __syncwarp();
  if (lane > 0) return;
  for (int64_t k = from + 1; k < end; k++) { /* few */
    const double now = threshold[k];
    int64_t at = k;
    for (; at > from && threshold[at - 1] < now; at--) threshold[at] = threshold[at - 1];
    threshold[at] = now;
  }
}

static unsigned warps(int64_t rows) {
  return (unsigned)((rows + 7) / 8);
}

static unsigned blocks_of(int64_t count) {
  return (unsigned)((count + 255) / 256);
}

/* Unit rows of a side, and their biases. */
static int judge_side(gpu *g, const gpu_judge *j, int s, int64_t width, float *out, float **bias) {
  const gpu_rows *bank = &j->bank[1 - s], *held = &j->held[s];
  float *rows;
  *bias = NULL;
  columns_kernel<<<warps(held->rows), 256, 0, g->stream>>>(held->data, held->rows, held->ld,
                                                           j->rank, j->scale[s], 0, out, width);
  GPU_TRY(gpu_launched(g, "held-out rows"));
  if (width == j->rank) return GPU_OK;
  GPU_TRY(gpu_new(g, bias, held->rows));
  GPU_TRY(gpu_new(g, &rows, bank->rows * j->rank));
  columns_kernel<<<warps(bank->rows), 256, 0, g->stream>>>(
      bank->data, bank->rows, bank->ld, j->rank, j->scale[1 - s], 1, rows, j->rank);
  GPU_TRY(gpu_launched(g, "rows of a bank"));
  return gpu_bias(g, out, held->rows, width, rows, bank->rows, j->rank, j->rank, j->csls,
                  j->strength, *bias);
}

int gpu_judge_rows(gpu *g, const gpu_judge *j) {
  const int balanced = j->bank[0].data && j->bank[1].data;
  const int64_t width = j->rank + balanced;
  float *z[2], *bias[2];
  for (int s = 0; s < 2; s++) {
    GPU_TRY(gpu_new(g, &z[s], j->held[s].rows * width));
    GPU_TRY(judge_side(g, j, s, width, z[s], &bias[s]));
  }
  for (int d = 0; d < 2; d++) {
    const gpu_judge_lists *l = &j->of[d];
    const int64_t n = j->held[d].rows, m = j->held[1 - d].rows;
    if (l->top && n > 0) fill_kernel<<<blocks_of(n), 256, 0, g->stream>>>(l->top, n, -INFINITY);
    GPU_TRY(gpu_launched(g, "held-out matches"));
    if (n == 0 || m == 0) continue;
    for (int s = 0; s < 2 && balanced; s++)
      last_kernel<<<blocks_of(j->held[s].rows), 256, 0, g->stream>>>(z[s], j->held[s].rows, width,
                                                                     s == d ? NULL : bias[s]);
    match_kernel<<<warps(n), 256, 0, g->stream>>>(z[d], z[1 - d], n, width, l->start, l->match,
                                                  l->threshold);
    GPU_TRY(gpu_launched(g, "held-out matches"));
    const gpu_scores s = {z[d], z[1 - d], n, m, width, width, width, 0, l->self};
    const gpu_ranked by = {l->threshold, l->above, l->top, l->sum, 0, NULL, NULL};
    GPU_TRY(gpu_ranks(g, &s, l->start, l->hidden, &by, 1));
  }
  return GPU_OK;
}
