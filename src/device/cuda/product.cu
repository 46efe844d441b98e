/* SPDX-License-Identifier: Apache-2.0 */
/* Products: plain ones by cuBLAS, split ones on the tensor cores, sums over rows in float64. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

enum { SPLIT_BLOCK = 512 };

/* ---- cuBLAS, which counts columns first: C^T = op(B)^T op(A)^T ----------------------------- */

int gpu_sgemm(gpu *g, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
              int64_t ldc) {
  if (m == 0 || n == 0) return GPU_OK;
  return gpu_check_blas(g,
                        cublasSgemm_64(g->blas, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                       trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &alpha, b, ldb,
                                       a, lda, &beta, c, ldc),
                        "a product");
}

int gpu_dgemm(gpu *g, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha,
              const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c,
              int64_t ldc) {
  if (m == 0 || n == 0) return GPU_OK;
  return gpu_check_blas(g,
                        cublasDgemm_64(g->blas, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                       trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &alpha, b, ldb,
                                       a, lda, &beta, c, ldc),
                        "a product");
}

int gpu_gemm16(gpu *g, cudaDataType type, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
               float alpha, const void *a, int64_t lda, const void *b, int64_t ldb, float beta,
               void *c, cudaDataType type_c, int64_t ldc) {
  if (m == 0 || n == 0) return GPU_OK;
  return gpu_check_blas(
      g,
      cublasGemmEx_64(g->blas, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                      trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &alpha, b, type, ldb, a, type,
                      lda, &beta, c, type_c, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "a product");
}

/* ---- split rows ----------------------------------------------------------------------------- */

int64_t gpu_split_width(int64_t k, int parts) {
  return parts * gpu_up(k, 8);
}

/* Each product of 16-bit numbers is exact; what is lost: entries of l beyond 11 bits (2^-22 of the
 * entry, or 2^-33 where that is subnormal), products l l', and in the float32 sum at most one part
 * in 2^23 for each term and each group of four; sums of the small terms are 2^-10 of that in the
 * first block, and are added to what is there already in the others. */
double gpu_split_error(int64_t k) {
  const int64_t later = k > SPLIT_BLOCK ? k - SPLIT_BLOCK : 0;
  return 0x1p-20 + 1.26 * (double)(k + 2 * later) * 0x1p-23;
}

/* Where entry k of a row lies, for its part. */
static __device__ inline int64_t split_place(int64_t k, int64_t width, int parts, int part) {
  const int64_t block = k / SPLIT_BLOCK, from = block * SPLIT_BLOCK;
  const int64_t length = width - from < SPLIT_BLOCK ? width - from : SPLIT_BLOCK;
  return from * parts + part * length + (k - from);
}

static __device__ inline void split_store(float value, int64_t k, int64_t width, int side,
                                          int parts, __half *row) {
  const __half h = __float2half_rn(value);
  if (parts == 1) {
    row[k] = h;
    return;
  }
  const __half l = __float2half_rn(value - __half2float(h));
  row[split_place(k, width, 3, 0)] = side == GPU_LEFT ? l : h;
  row[split_place(k, width, 3, 1)] = side == GPU_LEFT ? h : l;
  row[split_place(k, width, 3, 2)] = h;
}

static __global__ void split_kernel(const float *z, int64_t rows, int64_t k, int64_t ld, int side,
                                    int parts, float scale, __half *out) {
  const int64_t width = (k + 7) / 8 * 8, count = rows * width;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / width, c = at - i * width;
    split_store(c < k ? z[i * ld + c] * scale : 0.0f, c, width, side, parts,
                out + i * width * parts);
  }
}

int gpu_split_rows(gpu *g, const float *z, int64_t rows, int64_t k, int64_t ld, int side, int parts,
                   float scale, __half *out) {
  if (rows == 0) return GPU_OK;
  split_kernel<<<part_blocks(g, rows * gpu_up(k, 8)), 256, 0, g->stream>>>(z, rows, k, ld, side,
                                                                           parts, scale, out);
  return gpu_launched(g, "splitting rows");
}

/* Tiles of 32 by 32 through shared memory: both sides are read and written along their rows. */
static __global__ void split_columns_kernel(const float *z, int64_t k, int64_t rows, int64_t ld,
                                            int parts, float scale, __half *out) {
  __shared__ float tile[32][33];
  const int64_t width = (k + 7) / 8 * 8, k0 = (int64_t)blockIdx.x * 32,
                i0 = (int64_t)blockIdx.y * 32;
  for (int t = threadIdx.y; t < 32; t += blockDim.y) {
    const int64_t c = k0 + t, i = i0 + threadIdx.x;
    tile[t][threadIdx.x] = c < k && i < rows ? z[c * ld + i] * scale : 0.0f;
  }
  __syncthreads();
  for (int t = threadIdx.y; t < 32; t += blockDim.y) {
    const int64_t i = i0 + t, c = k0 + threadIdx.x;
    if (i < rows && c < width)
      split_store(tile[threadIdx.x][t], c, width, GPU_RIGHT, parts, out + i * width * parts);
  }
}

int gpu_split_columns(gpu *g, const float *z, int64_t k, int64_t rows, int64_t ld, int parts,
                      float scale, __half *out) {
  if (rows == 0) return GPU_OK;
  const dim3 grid((unsigned)((gpu_up(k, 8) + 31) / 32), (unsigned)((rows + 31) / 32));
  split_columns_kernel<<<grid, dim3(32, 8), 0, g->stream>>>(z, k, rows, ld, parts, scale, out);
  return gpu_launched(g, "splitting columns");
}

static __global__ void planes_kernel(const float *z, int64_t rows, int64_t cols, int64_t ld,
                                     int64_t rows_out, int64_t ld_out, __nv_bfloat16 *h,
                                     __nv_bfloat16 *l) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows_out * ld_out;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / ld_out, c = at - i * ld_out;
    const float value = i < rows && c < cols ? z[i * ld + c] : 0.0f;
    const __nv_bfloat16 high = __float2bfloat16_rn(value);
    h[at] = high;
    if (l) l[at] = __float2bfloat16_rn(value - __bfloat162float(high));
  }
}

int gpu_planes(gpu *g, const float *z, int64_t rows, int64_t cols, int64_t ld, int64_t rows_out,
               int64_t ld_out, __nv_bfloat16 *h, __nv_bfloat16 *l) {
  planes_kernel<<<part_blocks(g, rows_out * ld_out), 256, 0, g->stream>>>(z, rows, cols, ld,
                                                                          rows_out, ld_out, h, l);
  return gpu_launched(g, "splitting rows");
}

/* ---- sum += A^T B --------------------------------------------------------------------------- */

enum { PIECE = 1024, GROUP_BYTES = 64 << 20, SHORT = 256, SHORT_BYTES = 16 << 20 };

/* top[j] = bits of the largest modulus of column j. */
static __global__ void column_top_kernel(const float *a, int64_t rows, int64_t cols, int64_t ld,
                                         unsigned *top) {
  const int64_t j = (int64_t)blockIdx.x * 32 + threadIdx.x;
  const int64_t step = (int64_t)gridDim.y * blockDim.y;
  if (j >= cols) return;
  float most = 0;
  for (int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; i < rows; i += step)
    most = fmaxf(most, fabsf(a[i * ld + j]));
  if (most > 0) atomicMax(&top[j], __float_as_uint(most));
}

/* The power of 2 that takes the largest entry of a column to [64, 128). */
static __device__ inline float column_scale(unsigned top) {
  const float most = __uint_as_float(top);
  if (!(most > 0) || isinf(most)) return 1;
  int exponent;
  frexpf(most, &exponent); /* most < 2^exponent */
  const int power = 7 - exponent;
  return ldexpf(1.0f, power > 100 ? 100 : power < -100 ? -100 : power);
}

/* The tensor cores cut the bits of their float32 sums off, which over a thousand squares loses 1e-5
 * of them. So a scaled entry v is its nearest integer n and the rest: products of integers up to
 * 128 over 1024 rows are exact, and the rest is small, where a share of 1e-5 does not matter:
 *     v v' = n n' + n (v' - n') + (v - n) v'
 * with v - n and the last v' rounded to float16, at random. Planes are padded with zeros to
 * rows_out by ld_out; `all` is not wanted of a left side. */
static __global__ void scaled_planes_kernel(const float *a, int64_t rows, int64_t cols, int64_t ld,
                                            const unsigned *top, int64_t rows_out, int64_t ld_out,
                                            __half *whole, __half *rest, __half *all) {
  const int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x;
  const int64_t step = (int64_t)gridDim.y * blockDim.y;
  if (c >= ld_out) return;
  const float scale = c < cols ? column_scale(top[c]) : 1;
  for (int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; i < rows_out; i += step) {
    const float value = i < rows && c < cols ? a[i * ld + c] * scale : 0.0f, near = rintf(value);
    whole[i * ld_out + c] = __float2half_rn(near);
    rest[i * ld_out + c] = __float2half_rn(value - near);
    if (all) all[i * ld_out + c] = __float2half_rn(value);
  }
}

/* sum += sign (the parts of all pieces in order), scales taken off. */
static __global__ void fold_kernel(const float *part, int64_t pieces, int64_t m, int64_t n,
                                   int64_t ld, const unsigned *top_a, const unsigned *top_b,
                                   double sign, int same, double *sum, int64_t ld_sum) {
  const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= n || (same && j > i)) return;
  double total = 0;
  for (int64_t p = 0; p < pieces; p++) total += (double)part[(p * m + i) * ld + j];
  const double scale = top_a ? (double)column_scale(top_a[i]) * (double)column_scale(top_b[j]) : 1;
  sum[i * ld_sum + j] += sign * (total / scale);
}

typedef struct split_side {
  const float *a;
  int64_t lda, cols, ld; /* ld: of the planes */
  unsigned *top;
  __half *whole, *rest, *all;
} split_side;

static int side_open(gpu *g, const float *a, int64_t lda, int64_t rows, int64_t cols, int64_t room,
                     int right, split_side *s) {
  *s = (split_side){a, lda, cols, gpu_up(cols, 8), NULL, NULL, NULL, NULL};
  GPU_TRY(gpu_new(g, &s->top, cols));
  GPU_TRY(gpu_new(g, &s->whole, room * s->ld));
  GPU_TRY(gpu_new(g, &s->rest, room * s->ld));
  if (right) GPU_TRY(gpu_new(g, &s->all, room * s->ld));
  GPU_TRY(gpu_check(g, cudaMemsetAsync(s->top, 0, (size_t)cols * sizeof *s->top, g->stream),
                    "a product"));
  const dim3 grid((unsigned)((cols + 31) / 32), (unsigned)gpu_least((rows + 63) / 64, 256));
  column_top_kernel<<<grid, dim3(32, 8), 0, g->stream>>>(a, rows, cols, lda, s->top);
  return gpu_launched(g, "a product");
}

static int side_split(gpu *g, const split_side *s, int64_t first, int64_t rows, int64_t rows_out) {
  const dim3 grid((unsigned)((s->ld + 31) / 32), (unsigned)gpu_least((rows_out + 63) / 64, 4096));
  scaled_planes_kernel<<<grid, dim3(32, 8), 0, g->stream>>>(s->a + first * s->lda, rows, s->cols,
                                                            s->lda, s->top, rows_out, s->ld,
                                                            s->whole, s->rest, s->all);
  return gpu_launched(g, "a product");
}

/* part[p] (+)= A_p^T B_p for all pieces; columns 0 .. of a, and with `same` those rows of the
 * result that reach its lower triangle, in panels of columns. */
static int batched(gpu *g, const __half *a, int64_t m, int64_t lda, const __half *b, int64_t n,
                   int64_t ldb, int64_t pieces, int same, float beta, float *part, int64_t ld) {
  const int64_t panel = same && n >= 1024 ? 512 : n;
  const float one = 1;
  for (int64_t j = 0; j < n; j += panel) {
    const int64_t cols = gpu_least(panel, n - j), i = same ? j : 0;
    GPU_TRY(gpu_check_blas(
        g,
        cublasGemmStridedBatchedEx_64(g->blas, CUBLAS_OP_N, CUBLAS_OP_T, cols, m - i, PIECE, &one,
                                      b + j, CUDA_R_16F, ldb, PIECE * ldb, a + i, CUDA_R_16F, lda,
                                      PIECE * lda, &beta, part + i * ld + j, CUDA_R_32F, ld, m * ld,
                                      pieces, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "a product"));
  }
  return GPU_OK;
}

static int add_product(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                       int64_t rows, int64_t m, int64_t n, double sign, int same, double *sum,
                       int64_t ld_sum) {
  const int64_t all = (rows + PIECE - 1) / PIECE, ld = gpu_up(n, 4);
  const int64_t fit = GROUP_BYTES / (int64_t)(sizeof(float) * (size_t)(m * ld));
  const int64_t group = gpu_least(all, fit < 1 ? 1 : fit > 32 ? 32 : fit);
  split_side sa, sb;
  float *part;
  GPU_TRY(side_open(g, a, lda, rows, m, group * PIECE, same, &sa));
  sb = sa;
  if (!same) GPU_TRY(side_open(g, b, ldb, rows, n, group * PIECE, 1, &sb));
  GPU_TRY(gpu_new(g, &part, group * m * ld));
  for (int64_t p = 0; p < all; p += group) {
    const int64_t now = gpu_least(group, all - p), first = p * PIECE;
    const int64_t count = gpu_least(now * PIECE, rows - first);
    GPU_TRY(side_split(g, &sa, first, count, now * PIECE));
    if (!same) GPU_TRY(side_split(g, &sb, first, count, now * PIECE));
    GPU_TRY(batched(g, sa.rest, m, sa.ld, sb.all, n, sb.ld, now, same, 0, part, ld));
    GPU_TRY(batched(g, sa.whole, m, sa.ld, sb.rest, n, sb.ld, now, same, 1, part, ld));
    GPU_TRY(batched(g, sa.whole, m, sa.ld, sb.whole, n, sb.ld, now, same, 1, part, ld));
    fold_kernel<<<dim3((unsigned)((n + 127) / 128), (unsigned)m), 128, 0, g->stream>>>(
        part, now, m, n, ld, sa.top, sb.top, sign, same, sum, ld_sum);
    GPU_TRY(gpu_launched(g, "a product"));
  }
  return GPU_OK;
}

int gpu_add_product_split(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                          int64_t rows, int64_t m, int64_t n, double sign, int same, double *sum,
                          int64_t ld_sum) {
  const long mark = gpu_mark(g);
  const int code = add_product(g, a, lda, b, ldb, rows, m, n, sign, same, sum, ld_sum);
  gpu_release(g, mark);
  return code;
}

/* part[p] = A_p^T B_p of pieces of SHORT rows, the last one shorter. */
static int plain_pieces(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                        int64_t rows, int64_t m, int64_t n, float *part) {
  const int64_t whole = rows / SHORT, rest = rows - whole * SHORT;
  const float one = 1, none = 0;
  if (whole > 0)
    GPU_TRY(gpu_check_blas(g,
                           cublasSgemmStridedBatched_64(g->blas, CUBLAS_OP_N, CUBLAS_OP_T, n, m,
                                                        SHORT, &one, b, ldb, SHORT * ldb, a, lda,
                                                        SHORT * lda, &none, part, n, m * n, whole),
                           "a product"));
  if (rest == 0) return GPU_OK;
  return gpu_sgemm(g, 1, 0, m, n, rest, 1, a + whole * SHORT * lda, lda, b + whole * SHORT * ldb,
                   ldb, 0, part + whole * m * n, n);
}

/* Pieces of few rows: float32 sums of many equal terms drift. */
static int add_plain(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
                     int64_t m, int64_t n, double sign, double *sum, int64_t ld_sum) {
  const int64_t all = (rows + SHORT - 1) / SHORT, fit = SHORT_BYTES / (4 * m * n);
  const int64_t group = gpu_least(all, fit < 1 ? 1 : fit);
  float *part;
  GPU_TRY(gpu_new(g, &part, group * m * n));
  for (int64_t first = 0; first < rows; first += group * SHORT) {
    const int64_t now = gpu_least(group * SHORT, rows - first);
    GPU_TRY(plain_pieces(g, a + first * lda, lda, b + first * ldb, ldb, now, m, n, part));
    fold_kernel<<<dim3((unsigned)((n + 127) / 128), (unsigned)m), 128, 0, g->stream>>>(
        part, (now + SHORT - 1) / SHORT, m, n, n, NULL, NULL, sign, 0, sum, ld_sum);
    GPU_TRY(gpu_launched(g, "a product"));
  }
  return GPU_OK;
}

int gpu_add_product_plain(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                          int64_t rows, int64_t m, int64_t n, double sign, double *sum,
                          int64_t ld_sum) {
  const long mark = gpu_mark(g);
  const int code = add_plain(g, a, lda, b, ldb, rows, m, n, sign, sum, ld_sum);
  gpu_release(g, mark);
  return code;
}

/* What rounding takes from a product of split columns is random, 2^-18 or so of an entry: over many
 * rows it vanishes, over few plain float32 is better, and cheap. */
int gpu_add_product(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
                    int64_t m, int64_t n, double sign, int same, double *sum, int64_t ld_sum) {
  enum { MANY_ROWS = 16384, MOST_COLUMNS = 65535 };
  if (rows == 0 || m == 0 || n == 0) return GPU_OK;
  if (m > MOST_COLUMNS) return GPU_ELSEWHERE;
  if (rows < MANY_ROWS)
    return gpu_add_product_plain(g, a, lda, b, ldb, rows, m, n, sign, sum, ld_sum);
  return gpu_add_product_split(g, a, lda, b, ldb, rows, m, n, sign, same, sum, ld_sum);
}

/* ---- T = W Y -------------------------------------------------------------------------------- */

/* A warp a row and 128 columns of it; lists are short. */
static __global__ void combine_kernel(gpu_lists w, const float *y, int64_t cols, int64_t ld,
                                      int add, float *t, int64_t ld_t) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= w.rows) return;
  const int64_t from = w.start[i], to = w.start[i + 1];
  for (int64_t c = (int64_t)blockIdx.y * 128 + threadIdx.x;
       c < cols && c < ((int64_t)blockIdx.y + 1) * 128; c += 32) {
    double sum = 0;
    for (int64_t k = from; k < to; k++)
      sum += (w.value ? w.value[k] : 0) * (double)y[w.column[k] * ld + c];
    t[i * ld_t + c] = add ? (float)((double)t[i * ld_t + c] + sum) : (float)sum;
  }
}

int gpu_combine(gpu *g, gpu_lists w, const float *y, int64_t cols, int64_t ld, int add, float *t,
                int64_t ld_t) {
  if (w.rows == 0 || cols == 0) return GPU_OK;
  const dim3 grid((unsigned)((w.rows + 7) / 8), (unsigned)((cols + 127) / 128));
  combine_kernel<<<grid, dim3(32, 8), 0, g->stream>>>(w, y, cols, ld, add, t, ld_t);
  return gpu_launched(g, "combining rows");
}
