/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin is made of: functions on device pointers. Matrices are row-major, `ld` elements
 * between rows. All work goes to one stream in the order of the calls; nothing depends on how
 * blocks are scheduled (no sums by atomic operations in floating point), so the same calls give the
 * same bytes.
 *
 * Functions return one of the codes below; after GPU_FAILED and GPU_MEMORY gpu->error has a
 * sentence. Room that a function takes for itself goes back when it returns.
 *
 * Products of float32 data run on the tensor cores as split products where that is as good as
 * float32: x = h + l, h and l of 16 bits, and the products h h' + h l' + l h' with float32 sums.
 * In float16 that keeps 22 bits of every entry that is not far below the largest, in bfloat16 16
 * bits of every entry. */
#ifndef UNICON_DEVICE_CUDA_KERNELS_CUH
#define UNICON_DEVICE_CUDA_KERNELS_CUH

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>
#include <stddef.h>
#include <stdint.h>

/* As unicon__device_status. */
enum { GPU_OK = 0, GPU_FAILED = 1, GPU_MEMORY = 2, GPU_CANCELLED = 3, GPU_ELSEWHERE = 4 };

/* ---- context -------------------------------------------------------------------------------- */

typedef struct gpu_block {
  void *data;
  size_t size;
  long taken; /* number of its `take`, 0: free, kept for the next */
} gpu_block;

typedef struct gpu {
  int device, processors;
  cudaStream_t stream;
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  cusolverDnParams_t solver_params;
  uint64_t limit, held, used, peak; /* bytes; held counts kept blocks as well */
  gpu_block *block;
  int blocks, room;
  long takes;
  void *pinned[2]; /* GPU_PINNED bytes each, for copies from and to the host */
  cudaEvent_t copied[2];
  int reduced;                /* scores and weights of a plane in 16 bits */
  int64_t cell_x, cell_y;     /* rows and columns of the plane at a time; 0: as measured best */
  int64_t search_x, search_y; /* queries and candidates at a time, likewise */
  int64_t sum_rows;           /* rows of sums of columns at a time, likewise */
  long fault;                 /* tests: the call that fails, counted down; 0: none */
  int (*poll)(void *user);
  void (*copy)(void *user, void *to, int64_t to_stride, const void *from, int64_t from_stride,
               int64_t bytes, int64_t rows); /* NULL: memcpy */
  void *user;
  char error[400];
} gpu;

enum {
  GPU_PINNED = 16 << 20,
  GPU_SPARE = 512 << 20, /* stays for the libraries and the driver */
  GPU_KEPT = 1 << 30     /* of free blocks, where nothing is in use */
};

/* `limit` bytes at most, 0: what the device has. On failure `text` has the sentence. */
int gpu_open(gpu *g, uint64_t limit, char *text, size_t size);
void gpu_close(gpu *g);

/* Sets the sentence and returns `code`. */
int gpu_fail(gpu *g, int code, const char *format, ...);
int gpu_check(gpu *g, cudaError_t code, const char *what);
int gpu_check_blas(gpu *g, cublasStatus_t code, const char *what);
int gpu_check_solver(gpu *g, cusolverStatus_t code, const char *what);
/* After a launch. */
int gpu_launched(gpu *g, const char *what);
int gpu_poll(gpu *g);
int gpu_sync(gpu *g, const char *what);

/* Memory. What was taken after a mark goes back with gpu_release; free blocks are kept and used
 * again, and given to the driver when room gets short. */
int gpu_take(gpu *g, size_t bytes, void **out);
void gpu_give(gpu *g, void *data);
long gpu_mark(const gpu *g);
void gpu_release(gpu *g, long mark);
uint64_t gpu_left(const gpu *g);
void gpu_trim(gpu *g); /* free blocks to the driver */

/* Copies between host memory of any kind and the device; on return the host memory is free. The
 * host's rows are `stride` bytes apart. */
int gpu_upload(gpu *g, void *to, const void *from, size_t row_bytes, int64_t rows, int64_t stride);
int gpu_download_rows(gpu *g, void *to, const void *from, size_t row_bytes, int64_t rows,
                      int64_t stride);
int gpu_download(gpu *g, void *to, const void *from, size_t bytes);

#define GPU_TRY(call)                        \
  do {                                       \
    const int gpu_code = (call);             \
    if (gpu_code != GPU_OK) return gpu_code; \
  } while (0)

template <class T>
static inline int gpu_new(gpu *g, T **out, int64_t count) {
  return gpu_take(g, (size_t)(count > 0 ? count : 1) * sizeof(T), (void **)out);
}

static inline int64_t gpu_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t gpu_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* Lists in device memory: entries of row i are start[i] .. start[i+1]-1, columns ascending. */
typedef struct gpu_lists {
  int64_t rows;
  const int64_t *start, *column;
  const double *value; /* may be NULL */
} gpu_lists;

/* ---- rows (convert.cu) ---------------------------------------------------------------------- */

/* Elements as in device.h: 0 f16, 1 bf16, 2 f32, 3 f64, 4 i8, 5 u8. */
int gpu_convert(gpu *g, const void *from, int element, int64_t count, float *to);
int gpu_convert_double(gpu *g, const void *from, int element, int64_t count, double *to);
/* Rows to length 1 (0 stays 0) and less `shift` (NULL: nothing); squares (NULL: not wanted) get the
 * squared lengths of the result. */
int gpu_unit_rows(gpu *g, float *z, int64_t rows, int64_t cols, int64_t ld, int unit,
                  const float *shift, float *square);
/* sum[0] += sign sum a, sum[1] += sign sum a^2, sum[2 + w] += sign sum weight_w a, each cols long,
 * `stride` apart; weight: `weights` by rows in device memory. Float64. */
int gpu_column_sums(gpu *g, const float *a, int64_t rows, int64_t cols, int64_t ld,
                    const double *weight, int64_t weights, double sign, double *sum,
                    int64_t stride);
/* The largest modulus, and the largest length of a row, to the host. */
int gpu_largest(gpu *g, const float *a, int64_t rows, int64_t cols, int64_t ld, float *entry,
                float *length);
int gpu_gather(gpu *g, const float *from, int64_t cols, int64_t ld, const int64_t *row,
               int64_t count, float *to, int64_t ld_to);
int gpu_sum_doubles(gpu *g, const double *part, int64_t count, double *out); /* out: device */

/* ---- products (product.cu) ------------------------------------------------------------------ */

/* C = alpha op(A) op(B) + beta C in float32, op(A) m by k. */
int gpu_sgemm(gpu *g, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
              int64_t ldc);
int gpu_dgemm(gpu *g, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha,
              const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c,
              int64_t ldc);
/* The same of 16-bit matrices (CUDA_R_16F, CUDA_R_16BF) with float32 sums; C float32 or float16. */
int gpu_gemm16(gpu *g, cudaDataType type, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
               float alpha, const void *a, int64_t lda, const void *b, int64_t ldb, float beta,
               void *c, cudaDataType type_c, int64_t ldc);

/* Operands of C = A B^T as float16 with scale 2^8, for entries of modulus below GPU_SPLIT_MOST. A
 * row of k numbers is cut into blocks of at most 512; a block of the left side becomes l h h, of
 * the right side h l h, so that one product of three times the length is the split product, small
 * terms first. With parts 1: h alone. Lengths are padded with 0 to multiples of 8. */
enum { GPU_LEFT = 0, GPU_RIGHT = 1 };
static const float GPU_SPLIT_MOST = 128;
static const float GPU_SPLIT_SCALE = 256;
int64_t gpu_split_width(int64_t k, int parts);
int gpu_split_rows(gpu *g, const float *z, int64_t rows, int64_t k, int64_t ld, int side, int parts,
                   float scale, __half *out);
/* Of the columns of z (k by rows) in place of its rows. */
int gpu_split_columns(gpu *g, const float *z, int64_t k, int64_t rows, int64_t ld, int parts,
                      float scale, __half *out);
/* Error of a score by such a product, as a share of the product of the rows' lengths. */
double gpu_split_error(int64_t k);

/* z (rows by cols) as bfloat16 planes h and l (NULL: h alone), ld_out apart, padded with zeros to
 * rows_out by ld_out. */
int gpu_planes(gpu *g, const float *z, int64_t rows, int64_t cols, int64_t ld, int64_t rows_out,
               int64_t ld_out, __nv_bfloat16 *h, __nv_bfloat16 *l);

/* sum += sign A^T B, A rows by m and B rows by n, pieces summed in float64 in order; same: the lower
 * triangle alone need hold. Many rows by split products (each column scaled; integers and the rest,
 * see product.cu) over pieces of 1024, few in plain float32 over pieces of 256. */
int gpu_add_product(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
                    int64_t m, int64_t n, double sign, int same, double *sum, int64_t ld_sum);
int gpu_add_product_split(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                          int64_t rows, int64_t m, int64_t n, double sign, int same, double *sum,
                          int64_t ld_sum);
int gpu_add_product_plain(gpu *g, const float *a, int64_t lda, const float *b, int64_t ldb,
                          int64_t rows, int64_t m, int64_t n, double sign, double *sum,
                          int64_t ld_sum);
/* T = W Y (or T += W Y); a row in float64. */
int gpu_combine(gpu *g, gpu_lists w, const float *y, int64_t cols, int64_t ld, int add, float *t,
                int64_t ld_t);

/* ---- features (feature.cu) ------------------------------------------------------------------ */

typedef struct gpu_map {
  int kind, kernel, normalize, degree; /* as unicon__device_map */
  double width;
  int64_t in, points, out;
  const float *base, *square, *center, *factor, *mean;
} gpu_map;

/* Products become kernel values in place; squares are the squared lengths. */
int gpu_kernel_tile(gpu *g, const gpu_map *map, float *t, int64_t rows, int64_t cols, int64_t ld,
                    const float *square_x, const float *square_y);
/* raw (count by in) is overwritten. */
int gpu_features(gpu *g, const gpu_map *map, float *raw, int64_t count, float *out, int64_t ld);
/* Rows of t -= row. */
int gpu_subtract(gpu *g, float *t, int64_t rows, int64_t cols, int64_t ld, const float *row);
/* z = phi weight, rows to length 1 if `unit`. */
int gpu_embed(gpu *g, const float *phi, int64_t rows, int64_t p, int64_t ld, const float *weight,
              int64_t r, int unit, float *z, int64_t ld_z);

/* ---- dense algebra (dense.cu), device memory, float64 --------------------------------------- */

/* Lower triangle of a symmetric matrix in, eigenvectors one per row out, w ascending. */
int gpu_eigen(gpu *g, int64_t n, double *a, double *w);
/* A (m by n, row-major, destroyed) = U diag(s) V^T; u m by q, vt q by n. */
int gpu_svd(gpu *g, int64_t m, int64_t n, double *a, double *s, double *u, double *vt);
/* The r leading triples by the eigenvectors of A A^T or A^T A, the smaller; u m by r, v n by r.
 * Of singular values below about 1e-7 of the largest nothing is left. */
int gpu_svd_top(gpu *g, int64_t m, int64_t n, const double *a, int64_t r, double *s, double *u,
                double *v);
/* The same with one more of s, where there is one. */
int gpu_svd_leading(gpu *g, int64_t m, int64_t n, const double *a, int64_t r, double *s, double *u,
                    double *v);
/* Lower Cholesky factor in place; GPU_ELSEWHERE where it is not positive definite. */
int gpu_cholesky(gpu *g, int64_t n, double *a);
/* B (n by m) = op(L)^{-1} B; B (m by n) = B op(L)^{-1}. */
int gpu_solve_left(gpu *g, int trans, int64_t n, int64_t m, const double *l, double *b);
int gpu_solve_right(gpu *g, int trans, int64_t m, int64_t n, const double *l, double *b);

/* ---- the plane (pass.cu) -------------------------------------------------------------------- */

typedef struct gpu_plane {
  const float *zx, *zy;
  int64_t n_x, n_y, r, ld_x, ld_y;
} gpu_plane;

/* As unicon__device_exp; results in device memory. `counts.start` NULL: no entries. */
int gpu_exp_sums(gpu *g, const gpu_plane *plane, double a, int shifted, gpu_lists counts,
                 double *row_top, double *row_sum, double *column_top, double *column_sum);

enum { GPU_EXP = 0, GPU_SHIFTED = 1, GPU_SIGMOID = 2, GPU_SQUARE = 3 };
typedef struct gpu_weights {
  int form;
  double a, bias, scale;
  const float *row, *column; /* device memory, of the whole plane */
  gpu_lists fixed;           /* rows of the whole plane */
  int64_t x0, n_x, y0, n_y;
  const float *phi_x, *phi_y; /* of row x0, of column y0; phi_x NULL: the value alone */
  int64_t p_x, p_y;
} gpu_weights;
/* As `weigh` of the table; value: host, or NULL. */
int gpu_weigh(gpu *g, const gpu_plane *plane, const gpu_weights *w, double *c, double *value);

/* ---- use (search.cu, ranks.cu, bias.cu) --------------------------------------------------------------- */

int gpu_bias(gpu *g, const float *z, int64_t rows, int64_t ld, const float *bank, int64_t m,
             int64_t ld_bank, int64_t r, int csls, double strength, float *out); /* out: device */

typedef struct gpu_scores {
  const float *query, *candidate;
  int64_t queries, candidates, width, ld_query, ld_candidate;
  int64_t number;
  const int64_t *self; /* device memory, or NULL */
} gpu_scores;

enum { GPU_MOST_NEAREST = 512 };
/* Lists in device memory, queries by k, best first, free places id -1. */
int gpu_nearest(gpu *g, const gpu_scores *s, int64_t k, double *score, int64_t *id);
/* As unicon__device_ranks, device memory; start[queries] thresholds in all. top, sum NULL, k 0: not
 * wanted. */
typedef struct gpu_ranked {
  const double *threshold;
  int64_t *above;
  double *top, *sum;
  int64_t k;
  double *score;
  int64_t *id;
} gpu_ranked;
int gpu_ranks(gpu *g, const gpu_scores *s, const int64_t *start, gpu_lists hidden,
              const gpu_ranked *by, int scales);

/* ---- memory of others (foreign.cu) ---------------------------------------------------------- */

/* As unicon__foreign. */
typedef struct gpu_foreign {
  void *data;
  int64_t rows, cols, row_stride, col_stride; /* bytes */
  int element, number;
  uint64_t stream;
} gpu_foreign;

int gpu_receive(gpu *g, const gpu_foreign *f, int64_t first, int64_t count, float *to, int64_t ld);
int gpu_hand(gpu *g, const float *from, int64_t ld, int64_t count, const gpu_foreign *f,
             int64_t first);
/* The first row with an infinity or NaN or, if `zero`, of zeros alone; -1: none. */
int gpu_flaw(gpu *g, const float *m, int64_t rows, int64_t cols, int64_t ld, int zero,
             int64_t *row);
/* Not of the room that is kept and counted. */
int gpu_room_new(gpu *g, uint64_t bytes, void **out);
void gpu_room_free(void *room);

/* ---- refine (refine.cu) --------------------------------------------------------------------- */

typedef struct gpu_tuned {
  const float *phi, *scale, *whole;
  int64_t p;
  float *g, *mean, *square, *f;
} gpu_tuned;

/* As unicon__device_steps. */
typedef struct gpu_steps {
  int64_t steps, first;
  const int64_t *start[2], *entry_from;       /* host: of batches; of the entries of each row of x */
  const int64_t *row[2];                      /* device memory, from here on */
  const int64_t *entry_row, *entry_column;    /* within their batch */
  const int64_t *list_start[2], *by_column;   /* entries of each row, and of each column */
  const double *value, *omega[2];
  double a, nu, own;
  int phi;
  const double *rate; /* host */
  double decay;
  double *loss; /* device: of each step */
} gpu_steps;
int gpu_refine(gpu *g, const gpu_tuned side[2], const gpu_steps *steps, int64_t r);

/* ---- held-out rows (judge.cu) --------------------------------------------------------------- */

typedef struct gpu_rows {
  const float *data;
  int64_t rows, ld;
} gpu_rows;

/* Device memory. top and sum NULL: not wanted. */
typedef struct gpu_judge_lists {
  const int64_t *start, *match, *self;
  gpu_lists hidden;
  double *threshold, *top, *sum;
  int64_t *above;
} gpu_judge_lists;

enum { GPU_MOST_MATCHES = 256 };
typedef struct gpu_judge {
  gpu_rows held[2], bank[2];
  int64_t rank;
  const double *scale[2];
  int csls;
  double strength;
  gpu_judge_lists of[2];
} gpu_judge;
int gpu_judge_rows(gpu *g, const gpu_judge *judge);

#endif
