/* SPDX-License-Identifier: Apache-2.0 */
/* The plane of scores, never stored: cells of it are made by one product each, and used at once.
 *
 *     sums     products, entries of the lists, one kernel for exponent and partial sums
 *     weights  products, entries, one kernel that turns scores into weights S, T += S Phi_y; when
 *              a row of cells is done, the fixed entries of S, which are few, are added to T, and
 *              C += Phi_x^T T
 *
 * The hot kernels have no branch for positives: their scores are -inf in the cell, so they count
 * nothing. (Sums are never "total minus positives".) Partial sums of a cell go to places of their
 * own and are added in order.
 *
 * Full: scores of rows of moderate size are split products (float16, about 22 bits), S and Phi_y
 * split in bfloat16 (16 bits each). Reduced: scores are products of float16 rows, rounded to
 * float16, S and Phi_y are bfloat16. Rows with large entries: float32 products. */
#include <math.h>
#include <stdlib.h>

#include "kernels.cuh"
#include "parts.cuh"

enum {
  THREAD_COLS = 8,
  WARP_COLS = 256, /* of a row */
  BLOCK_COLS = 2048,
  GROUP_ROWS = 32, /* a warp adds up so many rows at once */
  BLOCK_ROWS = 64
};

/* ---- scores of a cell ----------------------------------------------------------------------- */

typedef struct cells {
  const gpu_plane *plane;
  int parts;                     /* of split products; 0: float32 products */
  int half;                      /* scores are float16 */
  int64_t rows, cols, ld, width; /* of a cell; ld: between its rows; width of split rows */
  __half *left, *right;
  int64_t ahead; /* columns of y that are split at once: whole cells */
  void *s;
} cells;

/* Rows and columns of a cell: as many rows as give every processor a tile of S Phi_y, few columns,
 * so that a cell stays in the cache. */
static void cell_size(const gpu *g, const gpu_plane *p, int64_t p_y, cells *c) {
  int64_t rows = g->cell_x > 0 ? g->cell_x : 64 * (int64_t)g->processors;
  const int64_t cols = g->cell_y > 0 ? g->cell_y : c->half ? 4096 : 2048;
  if (g->cell_x == 0 && p_y > 1024) rows /= 2;
  c->rows = gpu_least(gpu_up(p->n_x, 8), gpu_up(rows, BLOCK_ROWS));
  c->cols = gpu_up(gpu_least(p->n_y, cols), BLOCK_COLS);
  c->ld = c->cols;
  c->ahead = c->cols < 8192 ? 8192 / c->cols * c->cols : c->cols;
}

static int cells_open(gpu *g, const gpu_plane *p, int64_t p_y, cells *c) {
  float entry_x, entry_y, length_x, length_y;
  *c = (cells){};
  c->plane = p;
  GPU_TRY(gpu_largest(g, p->zx, p->n_x, p->r, p->ld_x, &entry_x, &length_x));
  GPU_TRY(gpu_largest(g, p->zy, p->n_y, p->r, p->ld_y, &entry_y, &length_y));
  const int moderate = entry_x < GPU_SPLIT_MOST && entry_y < GPU_SPLIT_MOST;
  c->half = g->reduced && moderate && length_x * length_y < 2;
  c->parts = !moderate ? 0 : c->half ? 1 : 3;
  c->width = gpu_split_width(p->r, c->parts);
  cell_size(g, p, p_y, c);
  if (c->parts > 0) {
    GPU_TRY(gpu_new(g, &c->left, c->rows * c->width));
    GPU_TRY(gpu_new(g, &c->right, gpu_least(c->ahead, p->n_y) * c->width));
  }
  const size_t size = (size_t)(c->rows * c->ld) * (c->half ? sizeof(__half) : sizeof(float));
  GPU_TRY(gpu_take(g, size, &c->s));
  return gpu_check(g, cudaMemsetAsync(c->s, 0, size, g->stream), "scores");
}

static int cells_row(gpu *g, const cells *c, int64_t x0, int64_t nx) {
  const gpu_plane *p = c->plane;
  if (c->parts == 0) return GPU_OK;
  return gpu_split_rows(g, p->zx + x0 * p->ld_x, nx, p->r, p->ld_x, GPU_LEFT, c->parts,
                        GPU_SPLIT_SCALE, c->left);
}

static int cells_scores(gpu *g, const cells *c, int64_t x0, int64_t nx, int64_t y0, int64_t ny) {
  const gpu_plane *p = c->plane;
  const float *zy = p->zy + y0 * p->ld_y;
  if (c->parts == 0)
    return gpu_sgemm(g, 0, 1, nx, ny, p->r, 1, p->zx + x0 * p->ld_x, p->ld_x, zy, p->ld_y, 0,
                     (float *)c->s, c->ld);
  if (y0 % c->ahead == 0)
    GPU_TRY(gpu_split_rows(g, zy, gpu_least(c->ahead, p->n_y - y0), p->r, p->ld_y, GPU_RIGHT,
                           c->parts, GPU_SPLIT_SCALE, c->right));
  const __half *right = c->right + y0 % c->ahead * c->width;
  return gpu_gemm16(g, CUDA_R_16F, 0, 1, nx, ny, c->width, 0x1p-16f, c->left, c->width, right,
                    c->width, 0, c->s, c->half ? CUDA_R_16F : CUDA_R_32F, c->ld);
}

/* ---- entries of the lists ------------------------------------------------------------------- */

/* What an entry does to its score. */
typedef enum edit_kind {
  EDIT_COUNT, /* += log(value) / a: exp(a s) counts `value` times; -inf where that is 0 */
  EDIT_NONE,  /* -inf */
  EDIT_ZERO   /* 0 */
} edit_kind;

static __device__ inline void add_to(float *s, float v) {
  *s += v;
}
static __device__ inline void add_to(__half *s, float v) {
  *s = __float2half_rn(__half2float(*s) + v);
}

template <class T>
static __global__ void edit_kernel(T *s, int64_t ld, gpu_lists lists, int64_t x0, int64_t nx,
                                   int64_t y0, int64_t ny, edit_kind kind, double a) {
  const int64_t row = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= nx) return;
  const int64_t end = lists.start[x0 + row + 1];
  const int64_t from = first_at_least(lists.column, lists.start[x0 + row], end, y0);
  for (int64_t k = from + threadIdx.x % 32; k < end && lists.column[k] < y0 + ny; k += 32) {
    T *at = s + row * ld + (lists.column[k] - y0);
    const double value = kind == EDIT_COUNT && lists.value ? lists.value[k] : 0;
    if (kind == EDIT_ZERO)
      *at = (T)0.0f;
    else
      add_to(at, value > 0                    ? (float)(log(value) / a)
                 : kind == EDIT_NONE && a < 0 ? INFINITY
                                              : -INFINITY);
  }
}

/* Which cells have entries? Most have none, and are spared the launch. */
static __global__ void occupied_kernel(gpu_lists lists, int64_t x0, int64_t n_x, int64_t y0,
                                       int64_t n_y, int64_t rows, int64_t cols, int64_t across,
                                       unsigned char *cell) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (i >= n_x) return;
  const int64_t end = lists.start[x0 + i + 1];
  for (int64_t k = lists.start[x0 + i] + threadIdx.x % 32; k < end; k += 32) {
    const int64_t j = lists.column[k] - y0;
    if (j >= 0 && j < n_y) cell[i / rows * across + j / cols] = 1;
  }
}

typedef struct edits {
  gpu_lists lists;
  edit_kind kind;
  double a;
  int64_t across;
  unsigned char *occupied; /* on the host; NULL: no entries */
} edits;

static int edits_open(gpu *g, gpu_lists lists, const cells *c, int64_t x0, int64_t n_x, int64_t y0,
                      int64_t n_y, edit_kind kind, double a, edits *e) {
  *e = (edits){lists, kind, a, (n_y + c->cols - 1) / c->cols, NULL};
  const int64_t count = (n_x + c->rows - 1) / c->rows * e->across;
  unsigned char *cell;
  if (!lists.start) return GPU_OK;
  GPU_TRY(gpu_new(g, &cell, count));
  GPU_TRY(gpu_check(g, cudaMemsetAsync(cell, 0, (size_t)count, g->stream), "entries of the plane"));
  occupied_kernel<<<(unsigned)((n_x + 7) / 8), 256, 0, g->stream>>>(
      lists, x0, n_x, y0, n_y, c->rows, c->cols, e->across, cell);
  GPU_TRY(gpu_launched(g, "entries of the plane"));
  e->occupied = (unsigned char *)malloc((size_t)count);
  if (!e->occupied) return gpu_fail(g, GPU_MEMORY, "the host has no memory left for a list");
  return gpu_download(g, e->occupied, cell, (size_t)count);
}

static int edits_apply(gpu *g, const edits *e, const cells *c, int64_t cell, int64_t x0, int64_t nx,
                       int64_t y0, int64_t ny) {
  const unsigned blocks = (unsigned)((nx + 7) / 8);
  if (!e->occupied || !e->occupied[cell]) return GPU_OK;
  if (c->half)
    edit_kernel<<<blocks, 256, 0, g->stream>>>((__half *)c->s, c->ld, e->lists, x0, nx, y0, ny,
                                               e->kind, e->a);
  else
    edit_kernel<<<blocks, 256, 0, g->stream>>>((float *)c->s, c->ld, e->lists, x0, nx, y0, ny,
                                               e->kind, e->a);
  return gpu_launched(g, "entries of the plane");
}

/* ---- sums ----------------------------------------------------------------------------------- */

enum { FORM_SUM, FORM_TOP, FORM_SHIFTED };

template <int FORM>
static __device__ inline float joined(float a, float b) {
  return FORM == FORM_TOP ? fmaxf(a, b) : a + b;
}

/* Lane k gets the total of p[k] over the warp: 31 exchanges in place of 160. */
template <int FORM, int O>
static __device__ inline void halve_rows(float *p, int lane) {
  const bool upper = lane & O;
#pragma unroll
  for (int k = 0; k < O; k++) {
    const float keep = upper ? p[k + O] : p[k], send = upper ? p[k] : p[k + O];
    p[k] = joined<FORM>(keep, __shfl_xor_sync(~0u, send, O));
  }
}

template <int FORM>
static __device__ inline float totals_of_rows(float p[GROUP_ROWS], int lane) {
  halve_rows<FORM, 16>(p, lane);
  halve_rows<FORM, 8>(p, lane);
  halve_rows<FORM, 4>(p, lane);
  halve_rows<FORM, 2>(p, lane);
  halve_rows<FORM, 1>(p, lane);
  return p[0];
}

/* The eight scores of a thread in a row: what they add to the row, and to their columns. */
template <int FORM>
static __device__ inline float take_scores(const float v[THREAD_COLS], float a2, float shift_row,
                                           const float shift[THREAD_COLS],
                                           float column[THREAD_COLS]) {
  float row = FORM == FORM_TOP ? -INFINITY : 0;
#pragma unroll
  for (int k = 0; k < THREAD_COLS; k++) {
    if (FORM == FORM_TOP) {
      row = fmaxf(row, v[k]);
      column[k] = fmaxf(column[k], v[k]);
    } else if (FORM == FORM_SHIFTED) {
      row += exp2_fast(a2 * (v[k] - shift_row));
      column[k] += exp2_fast(a2 * (v[k] - shift[k]));
    } else {
      const float e = exp2_fast(a2 * v[k]);
      row += e;
      column[k] += e;
    }
  }
  return row;
}

/* Of a cell, what blocks of 64 rows and 2048 columns say:
 *     row_part[block across][row]        columns of a block
 *     column_part[block down][column]    rows of a block */
template <class T, int FORM>
static __global__ void __launch_bounds__(256)
    sums_kernel(const T *s, int64_t ld, int rows, int cols, float a2, const float *top_row,
                const float *top_column, double *row_part, int64_t ld_row, float *column_part,
                int64_t ld_column) {
  __shared__ float held[8][GROUP_ROWS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int c0 = blockIdx.x * BLOCK_COLS + warp * WARP_COLS + lane * THREAD_COLS;
  const int last = min(rows, (int)(blockIdx.y + 1) * BLOCK_ROWS);
  const bool whole = c0 + THREAD_COLS <= cols;
  float column[THREAD_COLS], shift[THREAD_COLS];
#pragma unroll
  for (int k = 0; k < THREAD_COLS; k++) {
    column[k] = FORM == FORM_TOP ? -INFINITY : 0;
    shift[k] = FORM == FORM_SHIFTED && c0 + k < cols ? top_column[c0 + k] : 0;
  }
  for (int first = blockIdx.y * BLOCK_ROWS; first < last; first += GROUP_ROWS) {
    float p[GROUP_ROWS];
    const T *at = s + first * ld + c0;
    if (whole && first + GROUP_ROWS <= last) {
#pragma unroll
      for (int i = 0; i < GROUP_ROWS; i++) {
        float v[THREAD_COLS];
        load8(at + i * ld, v);
        p[i] =
            take_scores<FORM>(v, a2, FORM == FORM_SHIFTED ? top_row[first + i] : 0, shift, column);
      }
    } else {
#pragma unroll
      for (int i = 0; i < GROUP_ROWS; i++) {
        float v[THREAD_COLS];
        p[i] = FORM == FORM_TOP ? -INFINITY : 0;
        if (first + i >= last || c0 >= cols) continue;
        load8(at + i * ld, v);
#pragma unroll
        for (int k = 0; k < THREAD_COLS; k++) v[k] = c0 + k < cols ? v[k] : -INFINITY;
        p[i] =
            take_scores<FORM>(v, a2, FORM == FORM_SHIFTED ? top_row[first + i] : 0, shift, column);
      }
    }
    held[warp][lane] = totals_of_rows<FORM>(p, lane);
    __syncthreads();
    if (warp == 0 && first + lane < last) {
      double total = FORM == FORM_TOP ? -INFINITY : 0;
      for (int w = 0; w < 8; w++)
        total =
            FORM == FORM_TOP ? fmax(total, (double)held[w][lane]) : total + (double)held[w][lane];
      row_part[blockIdx.x * ld_row + first + lane] = total;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < THREAD_COLS; k++)
    if (c0 + k < cols) column_part[blockIdx.y * ld_column + c0 + k] = column[k];
}

/* total[k] joins part[0][k], part[1][k], ...: eight threads take every eighth of them. */
template <class T>
static __global__ void __launch_bounds__(256)
    fold_parts(const T *part, int64_t count, int64_t ld, int64_t n, int top, double *total) {
  __shared__ double held[8][32];
  const int64_t k = (int64_t)blockIdx.x * 32 + threadIdx.x;
  double sum = top ? -INFINITY : 0;
#pragma unroll 4
  for (int64_t p = threadIdx.y; p < count && k < n; p += 8) {
    const double v = (double)part[p * ld + k];
    sum = top ? fmax(sum, v) : sum + v;
  }
  held[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || k >= n) return;
  double all = total[k];
  for (int w = 0; w < 8; w++)
    all = top ? fmax(all, held[w][threadIdx.x]) : all + held[w][threadIdx.x];
  total[k] = all;
}

static __global__ void fill_kernel(double *out, int64_t n, double value) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += step) out[k] = value;
}

/* Tops of scores as shifts (0 where there is none), and as exponents. */
static __global__ void shift_kernel(double *top, int64_t n, double a, float *shift) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  shift[k] = isinf(top[k]) && top[k] < 0 ? 0.0f : (float)top[k];
  top[k] *= a;
}

static int fill(gpu *g, double *out, int64_t n, double value) {
  fill_kernel<<<part_blocks(g, n), 256, 0, g->stream>>>(out, n, value);
  return gpu_launched(g, "scores");
}

typedef struct summing {
  const gpu_plane *plane;
  struct cells cells;
  struct edits edits;
  float a2;
  float *shift_x, *shift_y; /* FORM_SHIFTED */
  double *row_part;
  float *column_part;
} summing;

template <class T, int FORM>
static void launch_sums(gpu *g, const summing *w, int64_t x0, int64_t nx, int64_t y0, int64_t ny) {
  const cells *c = &w->cells;
  const dim3 grid((unsigned)((ny + BLOCK_COLS - 1) / BLOCK_COLS),
                  (unsigned)((nx + BLOCK_ROWS - 1) / BLOCK_ROWS));
  const float *top_row = w->shift_x ? w->shift_x + x0 : NULL;
  const float *top_column = w->shift_y ? w->shift_y + y0 : NULL;
  sums_kernel<T, FORM><<<grid, 256, 0, g->stream>>>(
      (const T *)c->s, c->ld, (int)nx, (int)ny, w->a2, top_row, top_column,
      w->row_part + y0 / BLOCK_COLS * c->rows, c->rows, w->column_part, c->cols);
}

static int cell_sums(gpu *g, const summing *w, int form, int64_t x0, int64_t nx, int64_t y0,
                     int64_t ny, double *column) {
  const cells *c = &w->cells;
  GPU_TRY(cells_scores(g, c, x0, nx, y0, ny));
  GPU_TRY(
      edits_apply(g, &w->edits, c, x0 / c->rows * w->edits.across + y0 / c->cols, x0, nx, y0, ny));
  if (c->half && form == FORM_SUM)
    launch_sums<__half, FORM_SUM>(g, w, x0, nx, y0, ny);
  else if (c->half && form == FORM_TOP)
    launch_sums<__half, FORM_TOP>(g, w, x0, nx, y0, ny);
  else if (c->half)
    launch_sums<__half, FORM_SHIFTED>(g, w, x0, nx, y0, ny);
  else if (form == FORM_SUM)
    launch_sums<float, FORM_SUM>(g, w, x0, nx, y0, ny);
  else if (form == FORM_TOP)
    launch_sums<float, FORM_TOP>(g, w, x0, nx, y0, ny);
  else
    launch_sums<float, FORM_SHIFTED>(g, w, x0, nx, y0, ny);
  GPU_TRY(gpu_launched(g, "sums of scores"));
  fold_parts<<<(unsigned)((ny + 31) / 32), dim3(32, 8), 0, g->stream>>>(
      w->column_part, (nx + BLOCK_ROWS - 1) / BLOCK_ROWS, c->cols, ny, form == FORM_TOP,
      column + y0);
  return gpu_launched(g, "sums of scores");
}

/* One walk over the plane. */
static int sweep_sums(gpu *g, const summing *w, int form, double *row, double *column) {
  const gpu_plane *p = w->plane;
  const cells *c = &w->cells;
  const double start = form == FORM_TOP ? -INFINITY : 0;
  GPU_TRY(fill(g, row, p->n_x, start));
  GPU_TRY(fill(g, column, p->n_y, start));
  for (int64_t x0 = 0; x0 < p->n_x; x0 += c->rows) {
    const int64_t nx = gpu_least(c->rows, p->n_x - x0);
    GPU_TRY(cells_row(g, c, x0, nx));
    for (int64_t y0 = 0; y0 < p->n_y; y0 += c->cols)
      GPU_TRY(cell_sums(g, w, form, x0, nx, y0, gpu_least(c->cols, p->n_y - y0), column));
    fold_parts<<<(unsigned)((nx + 31) / 32), dim3(32, 8), 0, g->stream>>>(
        w->row_part, (p->n_y + BLOCK_COLS - 1) / BLOCK_COLS, c->rows, nx, form == FORM_TOP,
        row + x0);
    GPU_TRY(gpu_launched(g, "sums of scores"));
    GPU_TRY(gpu_poll(g));
  }
  return GPU_OK;
}

static int tops_to_shifts(gpu *g, double *top, int64_t n, double a, float *shift) {
  shift_kernel<<<(unsigned)((n + 255) / 256), 256, 0, g->stream>>>(top, n, a, shift);
  return gpu_launched(g, "sums of scores");
}

/* Of nothing. */
static int no_sums(gpu *g, const gpu_plane *p, int shifted, double *row_top, double *row_sum,
                   double *column_top, double *column_sum) {
  const double top = shifted ? -INFINITY : 0;
  if (p->n_x > 0) GPU_TRY(fill(g, row_top, p->n_x, top));
  if (p->n_x > 0) GPU_TRY(fill(g, row_sum, p->n_x, 0));
  if (p->n_y > 0) GPU_TRY(fill(g, column_top, p->n_y, top));
  if (p->n_y > 0) GPU_TRY(fill(g, column_sum, p->n_y, 0));
  return GPU_OK;
}

static int exp_sums(gpu *g, summing *w, double a, int shifted, gpu_lists counts, double *row_top,
                    double *row_sum, double *column_top, double *column_sum) {
  const gpu_plane *p = w->plane;
  cells *c = &w->cells;
  if (p->n_x == 0 || p->n_y == 0)
    return no_sums(g, p, shifted, row_top, row_sum, column_top, column_sum);
  GPU_TRY(cells_open(g, p, 0, c));
  GPU_TRY(gpu_new(g, &w->row_part, (p->n_y + BLOCK_COLS - 1) / BLOCK_COLS * c->rows));
  GPU_TRY(gpu_new(g, &w->column_part, (c->rows + BLOCK_ROWS - 1) / BLOCK_ROWS * c->cols));
  GPU_TRY(edits_open(g, counts, c, 0, p->n_x, 0, p->n_y, EDIT_COUNT, a, &w->edits));
  if (!shifted) {
    GPU_TRY(fill(g, row_top, p->n_x, 0));
    GPU_TRY(fill(g, column_top, p->n_y, 0));
    return sweep_sums(g, w, FORM_SUM, row_sum, column_sum);
  }
  GPU_TRY(sweep_sums(g, w, FORM_TOP, row_top, column_top));
  float *shift_x, *shift_y;
  GPU_TRY(gpu_new(g, &shift_x, p->n_x));
  GPU_TRY(gpu_new(g, &shift_y, p->n_y));
  GPU_TRY(tops_to_shifts(g, row_top, p->n_x, a, shift_x));
  GPU_TRY(tops_to_shifts(g, column_top, p->n_y, a, shift_y));
  w->shift_x = shift_x;
  w->shift_y = shift_y;
  return sweep_sums(g, w, FORM_SHIFTED, row_sum, column_sum);
}

int gpu_exp_sums(gpu *g, const gpu_plane *plane, double a, int shifted, gpu_lists counts,
                 double *row_top, double *row_sum, double *column_top, double *column_sum) {
  summing w = {};
  const long mark = gpu_mark(g);
  w.plane = plane;
  w.a2 = (float)(a * 1.4426950408889634);
  const int code = exp_sums(g, &w, a, shifted, counts, row_top, row_sum, column_top, column_sum);
  if (w.edits.occupied) free(w.edits.occupied);
  gpu_release(g, mark);
  return code;
}

/* ---- weights -------------------------------------------------------------------------------- */

enum { WEIGH_ROWS = 16 };

typedef struct forms {
  float a, a2, bias, scale;
} forms;

/* Weight of one score, and what it adds to the value. */
template <int FORM>
static __device__ inline float weight_of(float s, forms f, float row, float column, float *value) {
  if (FORM == GPU_EXP) return -exp2_fast(f.a2 * s) * (row + column);
  if (FORM == GPU_SHIFTED)
    return -(exp2_fast(fmaf(f.a2, s, row)) + exp2_fast(fmaf(f.a2, s, column)));
  if (FORM == GPU_SQUARE) {
    *value += s * s;
    return -f.scale * s;
  }
  const float v = fmaf(f.a, s, f.bias), e = __expf(-fabsf(v));
  *value += fmaxf(v, 0.0f) + log1pf(e);
  return -f.scale * (v > 0 ? 1 : e) / (1 + e);
}

static __device__ inline void store8(__nv_bfloat16 *p, const float v[8]) {
  __nv_bfloat162 two[4];
#pragma unroll
  for (int k = 0; k < 4; k++) two[k] = __floats2bfloat162_rn(v[2 * k], v[2 * k + 1]);
  *reinterpret_cast<uint4 *>(p) = *reinterpret_cast<const uint4 *>(two);
}

/* Scores of a cell to planes of weights (low NULL: one plane), 0 beyond its columns; the value of a
 * block to part[block]. Logarithms of SHIFTED come as binary ones. */
template <class T, int FORM>
static __global__ void __launch_bounds__(256)
    weigh_kernel(const T *s, int64_t ld, int rows, int cols, forms f, const float *row,
                 const float *column, __nv_bfloat16 *high, __nv_bfloat16 *low, double *part) {
  const int c0 = (blockIdx.x * 256 + threadIdx.x) * THREAD_COLS;
  const int first = blockIdx.y * WEIGH_ROWS, last = min(rows, first + WEIGH_ROWS);
  float by_column[THREAD_COLS], value = 0;
#pragma unroll
  for (int k = 0; k < THREAD_COLS; k++) by_column[k] = column && c0 + k < cols ? column[c0 + k] : 0;
#pragma unroll 4
  for (int i = first; i < last && c0 < ld; i++) {
    float v[THREAD_COLS];
    const float by_row = row ? row[i] : 0;
    load8(s + i * ld + c0, v);
#pragma unroll
    for (int k = 0; k < THREAD_COLS; k++)
      v[k] = c0 + k < cols ? weight_of<FORM>(v[k], f, by_row, by_column[k], &value) : 0;
    if (!high) continue;
    store8(high + i * ld + c0, v);
    if (!low) continue;
#pragma unroll
    for (int k = 0; k < THREAD_COLS; k++) v[k] -= __bfloat162float(__float2bfloat16_rn(v[k]));
    store8(low + i * ld + c0, v);
  }
  if (!part) return;
  __shared__ double held[8];
  const double sum = warp_sum((double)value);
  if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = 0;
  for (int w = 0; w < 8; w++) total += held[w];
  part[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

static __global__ void binary_kernel(const float *in, int64_t n, float *out) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) out[k] = (float)((double)in[k] * 1.4426950408889634);
}

typedef struct weighing {
  const gpu_plane *plane;
  const gpu_weights *w;
  gpu_plane window;
  struct cells cells;
  struct edits edits;
  forms f;
  const float *row, *column;         /* of the window */
  __nv_bfloat16 *high, *low;         /* S of a cell */
  __nv_bfloat16 *phi_high, *phi_low; /* Phi_y of its columns */
  int64_t ld_phi;
  float *t;
  double *part, *value; /* of blocks, of cells */
  int64_t cells_done;
} weighing;

template <class T>
static void launch_weigh(gpu *g, const weighing *k, int64_t x0, int64_t nx, int64_t y0,
                         int64_t ny) {
  const cells *c = &k->cells;
  const dim3 grid((unsigned)((c->ld + BLOCK_COLS - 1) / BLOCK_COLS),
                  (unsigned)((nx + WEIGH_ROWS - 1) / WEIGH_ROWS));
  const T *s = (const T *)c->s;
  const float *row = k->row ? k->row + x0 : NULL, *column = k->column ? k->column + y0 : NULL;
  if (k->w->form == GPU_EXP)
    weigh_kernel<T, GPU_EXP><<<grid, 256, 0, g->stream>>>(s, c->ld, (int)nx, (int)ny, k->f, row,
                                                          column, k->high, k->low, k->part);
  else if (k->w->form == GPU_SHIFTED)
    weigh_kernel<T, GPU_SHIFTED><<<grid, 256, 0, g->stream>>>(s, c->ld, (int)nx, (int)ny, k->f, row,
                                                              column, k->high, k->low, k->part);
  else if (k->w->form == GPU_SIGMOID)
    weigh_kernel<T, GPU_SIGMOID><<<grid, 256, 0, g->stream>>>(s, c->ld, (int)nx, (int)ny, k->f, row,
                                                              column, k->high, k->low, k->part);
  else
    weigh_kernel<T, GPU_SQUARE><<<grid, 256, 0, g->stream>>>(s, c->ld, (int)nx, (int)ny, k->f, row,
                                                             column, k->high, k->low, k->part);
}

/* T += S Phi_y of a cell, the small products first. The tensor cores cut bits off: the large product
 * is made of pieces of 1024 columns, between which sums are rounded. */
static int cell_product(gpu *g, const weighing *k, int64_t nx, int64_t y0, int64_t ny) {
  enum { DEPTH = 1024 };
  const cells *c = &k->cells;
  const int64_t p = k->w->p_y, ld = k->ld_phi, depth = gpu_up(ny, 64);
  const float keep = y0 == 0 ? 0 : 1;
  if (y0 % c->ahead == 0) {
    const int64_t some = gpu_least(c->ahead, k->w->n_y - y0);
    GPU_TRY(gpu_planes(g, k->w->phi_y + y0 * p, some, p, p, gpu_up(some, 64), ld, k->phi_high,
                       k->phi_low));
  }
  const __nv_bfloat16 *high = k->phi_high + y0 % c->ahead * ld;
  if (k->low) {
    GPU_TRY(gpu_gemm16(g, CUDA_R_16BF, 0, 0, nx, p, depth, 1, k->low, c->ld, high, ld, keep, k->t,
                       CUDA_R_32F, ld));
    GPU_TRY(gpu_gemm16(g, CUDA_R_16BF, 0, 0, nx, p, depth, 1, k->high, c->ld,
                       k->phi_low + y0 % c->ahead * ld, ld, 1, k->t, CUDA_R_32F, ld));
  }
  const int64_t piece = k->low ? (int64_t)DEPTH : depth;
  for (int64_t j = 0; j < depth; j += piece)
    GPU_TRY(gpu_gemm16(g, CUDA_R_16BF, 0, 0, nx, p, gpu_least(piece, depth - j), 1, k->high + j,
                       c->ld, high + j * ld, ld, k->low || j > 0 ? 1 : keep, k->t, CUDA_R_32F, ld));
  return GPU_OK;
}

static int cell_weigh(gpu *g, weighing *k, int64_t x0, int64_t nx, int64_t y0, int64_t ny) {
  const cells *c = &k->cells;
  const int64_t cell = x0 / c->rows * k->edits.across + y0 / c->cols;
  GPU_TRY(cells_scores(g, c, x0, nx, y0, ny));
  GPU_TRY(edits_apply(g, &k->edits, c, cell, k->w->x0 + x0, nx, k->w->y0 + y0, ny));
  if (c->half)
    launch_weigh<__half>(g, k, x0, nx, y0, ny);
  else
    launch_weigh<float>(g, k, x0, nx, y0, ny);
  GPU_TRY(gpu_launched(g, "weights of scores"));
  if (k->part) {
    const int64_t blocks =
        (c->ld + BLOCK_COLS - 1) / BLOCK_COLS * ((nx + WEIGH_ROWS - 1) / WEIGH_ROWS);
    GPU_TRY(gpu_sum_doubles(g, k->part, blocks, k->value + k->cells_done));
  }
  k->cells_done++;
  return k->t ? cell_product(g, k, nx, y0, ny) : GPU_OK;
}

/* The fixed entries of rows x0.. of the window, whose columns lie in it: to T. */
static __global__ void fixed_kernel(gpu_lists fixed, int64_t x0, int64_t rows, int64_t y0,
                                    int64_t n_y, const float *phi, int64_t p, float *t,
                                    int64_t ld) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  const int64_t end = fixed.start[x0 + i + 1];
  const int64_t from = first_at_least(fixed.column, fixed.start[x0 + i], end, y0);
  for (int64_t c = (int64_t)blockIdx.y * 128 + threadIdx.x;
       c < p && c < ((int64_t)blockIdx.y + 1) * 128; c += 32) {
    double sum = 0;
    for (int64_t k = from; k < end && fixed.column[k] < y0 + n_y; k++)
      sum += fixed.value[k] * (double)phi[(fixed.column[k] - y0) * p + c];
    t[i * ld + c] = (float)((double)t[i * ld + c] + sum);
  }
}

static int add_fixed(gpu *g, const weighing *k, int64_t x0, int64_t nx) {
  const gpu_weights *w = k->w;
  if (!w->fixed.start || !w->fixed.value) return GPU_OK;
  const dim3 grid((unsigned)((nx + 7) / 8), (unsigned)((w->p_y + 127) / 128));
  fixed_kernel<<<grid, dim3(32, 8), 0, g->stream>>>(w->fixed, w->x0 + x0, nx, w->y0, w->n_y,
                                                    w->phi_y, w->p_y, k->t, k->ld_phi);
  return gpu_launched(g, "fixed weights");
}

static int binary_logs(gpu *g, const float *in, int64_t n, const float **out) {
  float *made;
  GPU_TRY(gpu_new(g, &made, n));
  binary_kernel<<<(unsigned)((n + 255) / 256), 256, 0, g->stream>>>(in, n, made);
  *out = made;
  return gpu_launched(g, "weights of scores");
}

static int weigh_open(gpu *g, weighing *k, bool valued) {
  const gpu_weights *w = k->w;
  cells *c = &k->cells;
  const bool both = w->form == GPU_EXP || w->form == GPU_SHIFTED;
  GPU_TRY(cells_open(g, &k->window, w->phi_x ? w->p_y : 0, c));
  GPU_TRY(edits_open(g, w->fixed, c, w->x0, w->n_x, w->y0, w->n_y,
                     w->form == GPU_SQUARE ? EDIT_ZERO : EDIT_NONE, w->a, &k->edits));
  k->row = both ? w->row + w->x0 : NULL;
  k->column = both ? w->column + w->y0 : NULL;
  if (w->form == GPU_SHIFTED) {
    GPU_TRY(binary_logs(g, k->row, w->n_x, &k->row));
    GPU_TRY(binary_logs(g, k->column, w->n_y, &k->column));
  }
  if (valued) {
    const int64_t down = (w->n_x + c->rows - 1) / c->rows,
                  across = (w->n_y + c->cols - 1) / c->cols;
    GPU_TRY(gpu_new(g, &k->part, c->ld / BLOCK_COLS * ((c->rows + WEIGH_ROWS - 1) / WEIGH_ROWS)));
    GPU_TRY(gpu_new(g, &k->value, down * across + 1));
  }
  if (!w->phi_x) return GPU_OK;
  k->ld_phi = gpu_up(w->p_y, 8);
  GPU_TRY(gpu_new(g, &k->high, c->rows * c->ld));
  const int64_t rows = gpu_least(c->ahead, gpu_up(w->n_y, 64)) * k->ld_phi;
  GPU_TRY(gpu_new(g, &k->phi_high, rows));
  GPU_TRY(gpu_new(g, &k->t, c->rows * k->ld_phi));
  if (g->reduced) return GPU_OK;
  GPU_TRY(gpu_new(g, &k->low, c->rows * c->ld));
  return gpu_new(g, &k->phi_low, rows);
}

static int weigh(gpu *g, weighing *k, double *c_sum, double *value) {
  const gpu_weights *w = k->w;
  const cells *c = &k->cells;
  GPU_TRY(weigh_open(g, k, value && w->form >= GPU_SIGMOID));
  for (int64_t x0 = 0; x0 < w->n_x; x0 += c->rows) {
    const int64_t nx = gpu_least(c->rows, w->n_x - x0);
    GPU_TRY(cells_row(g, c, x0, nx));
    for (int64_t y0 = 0; y0 < w->n_y; y0 += c->cols)
      GPU_TRY(cell_weigh(g, k, x0, nx, y0, gpu_least(c->cols, w->n_y - y0)));
    if (k->t) {
      GPU_TRY(add_fixed(g, k, x0, nx));
      GPU_TRY(gpu_add_product(g, w->phi_x + x0 * w->p_x, w->p_x, k->t, k->ld_phi, nx, w->p_x,
                              w->p_y, 1, 0, c_sum, w->p_y));
    }
    GPU_TRY(gpu_poll(g));
  }
  if (!k->value) return GPU_OK;
  double total;
  GPU_TRY(gpu_sum_doubles(g, k->value, k->cells_done, k->value + k->cells_done));
  GPU_TRY(gpu_download(g, &total, k->value + k->cells_done, sizeof total));
  *value += total;
  return GPU_OK;
}

int gpu_weigh(gpu *g, const gpu_plane *plane, const gpu_weights *w, double *c, double *value) {
  weighing k = {};
  const long mark = gpu_mark(g);
  if (w->n_x == 0 || w->n_y == 0) return GPU_OK;
  k.plane = plane;
  k.w = w;
  k.window = (gpu_plane){plane->zx + w->x0 * plane->ld_x,
                         plane->zy + w->y0 * plane->ld_y,
                         w->n_x,
                         w->n_y,
                         plane->r,
                         plane->ld_x,
                         plane->ld_y};
  k.f = (forms){(float)w->a, (float)(w->a * 1.4426950408889634), (float)w->bias, (float)w->scale};
  const int code = weigh(g, &k, c, value);
  if (k.edits.occupied) free(k.edits.occupied);
  gpu_release(g, mark);
  return code;
}
