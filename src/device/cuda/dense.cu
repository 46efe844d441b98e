/* SPDX-License-Identifier: Apache-2.0 */
/* Dense algebra in float64 by cuSOLVER, which counts columns first: a row-major matrix is the
 * transpose there. */
#include <math.h>
#include <stdlib.h>

#include "kernels.cuh"
#include "parts.cuh"

/* Room on the device and on the host for one call. */
typedef struct room {
  void *device, *host;
  size_t device_bytes, host_bytes;
  int *info;
} room;

static int room_open(gpu *g, room *r) {
  GPU_TRY(gpu_take(g, r->device_bytes, &r->device));
  GPU_TRY(gpu_new(g, &r->info, 1));
  /* cuSOLVER reads parts of it that it has not written (a singular matrix) */
  GPU_TRY(gpu_check(g, cudaMemsetAsync(r->device, 0, r->device_bytes, g->stream), "room"));
  if (r->host_bytes == 0) return GPU_OK;
  r->host = malloc(r->host_bytes);
  return r->host ? GPU_OK : gpu_fail(g, GPU_MEMORY, "the host has no memory left for cuSOLVER");
}

/* Not 0: it did not converge, or the matrix is not what it must be. */
static int room_info(gpu *g, const room *r, int *info) {
  return gpu_download(g, info, r->info, sizeof *info);
}

/* ---- eigenvectors --------------------------------------------------------------------------- */

static int eigen(gpu *g, int64_t n, double *a, double *w, room *r, int *info) {
  const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;
  /* the lower triangle of rows is the upper one of columns; vectors come as columns, our rows */
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXsyevd_bufferSize(g->solver, g->solver_params, vectors, CUBLAS_FILL_MODE_UPPER, n,
                                  CUDA_R_64F, a, n, CUDA_R_64F, w, CUDA_R_64F, &r->device_bytes,
                                  &r->host_bytes),
      "eigenvectors"));
  GPU_TRY(room_open(g, r));
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXsyevd(g->solver, g->solver_params, vectors, CUBLAS_FILL_MODE_UPPER, n, CUDA_R_64F,
                       a, n, CUDA_R_64F, w, CUDA_R_64F, r->device, r->device_bytes, r->host,
                       r->host_bytes, r->info),
      "eigenvectors"));
  return room_info(g, r, info);
}

int gpu_eigen(gpu *g, int64_t n, double *a, double *w) {
  int info = 0;
  room r = {};
  const long mark = gpu_mark(g);
  const int code = eigen(g, n, a, w, &r, &info);
  free(r.host);
  gpu_release(g, mark);
  return code != GPU_OK ? code : info != 0 ? GPU_ELSEWHERE : GPU_OK;
}

/* ---- singular values ------------------------------------------------------------------------ */

/* to (cols by rows) = from^T, from rows by cols. */
static int transpose(gpu *g, int64_t rows, int64_t cols, const double *from, double *to) {
  const double one = 1, none = 0;
  return gpu_check_blas(g,
                        cublasDgeam(g->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, (int)cols, &one,
                                    from, (int)cols, &none, to, (int)rows, to, (int)rows),
                        "turning a matrix");
}

/* The pointers of a decomposition by columns: a rows by cols, rows >= cols, becomes u, s, v (whose
 * columns are the vectors). */
typedef struct tall {
  int64_t rows, cols;
  double *a, *s, *u, *v;
} tall;

/* By the polar decomposition (QDWH and eigenvectors): stable, and fast on a GPU. */
static int svd_polar(gpu *g, const tall *t, room *r, int *info) {
  double sigma = 0;
  const int64_t m = t->rows, n = t->cols;
  GPU_TRY(gpu_check_solver(g,
                           cusolverDnXgesvdp_bufferSize(
                               g->solver, g->solver_params, CUSOLVER_EIG_MODE_VECTOR, 1, m, n,
                               CUDA_R_64F, t->a, m, CUDA_R_64F, t->s, CUDA_R_64F, t->u, m,
                               CUDA_R_64F, t->v, n, CUDA_R_64F, &r->device_bytes, &r->host_bytes),
                           "singular values"));
  GPU_TRY(room_open(g, r));
  GPU_TRY(
      gpu_check_solver(g,
                       cusolverDnXgesvdp(g->solver, g->solver_params, CUSOLVER_EIG_MODE_VECTOR, 1,
                                         m, n, CUDA_R_64F, t->a, m, CUDA_R_64F, t->s, CUDA_R_64F,
                                         t->u, m, CUDA_R_64F, t->v, n, CUDA_R_64F, r->device,
                                         r->device_bytes, r->host, r->host_bytes, r->info, &sigma),
                       "singular values"));
  return room_info(g, r, info);
}

/* By QR iteration: slower, and exact to rounding where A is singular too. vt is room. */
static int svd_iterated(gpu *g, const tall *t, double *vt, room *r, int *info) {
  const int64_t m = t->rows, n = t->cols;
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXgesvd_bufferSize(g->solver, g->solver_params, 'S', 'S', m, n, CUDA_R_64F, t->a, m,
                                  CUDA_R_64F, t->s, CUDA_R_64F, t->u, m, CUDA_R_64F, vt, n,
                                  CUDA_R_64F, &r->device_bytes, &r->host_bytes),
      "singular values"));
  GPU_TRY(room_open(g, r));
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXgesvd(g->solver, g->solver_params, 'S', 'S', m, n, CUDA_R_64F, t->a, m, CUDA_R_64F,
                       t->s, CUDA_R_64F, t->u, m, CUDA_R_64F, vt, n, CUDA_R_64F, r->device,
                       r->device_bytes, r->host, r->host_bytes, r->info),
      "singular values"));
  GPU_TRY(room_info(g, r, info));
  return transpose(g, n, n, vt, t->v);
}

/* Small singular values make the polar way perturb the matrix, by about 1e-13 of the largest. */
static int svd_tall(gpu *g, int64_t rows, int64_t cols, double *a, double *s, double *u, double *v,
                    room *r, int *info) {
  const size_t size = (size_t)(rows * cols) * sizeof *a;
  const tall first = {rows, cols, a, s, u, v};
  tall again = first;
  double ends[2], *vt;
  GPU_TRY(gpu_new(g, &again.a, rows * cols));
  GPU_TRY(gpu_new(g, &vt, cols * cols));
  GPU_TRY(gpu_check(g, cudaMemcpyAsync(again.a, a, size, cudaMemcpyDeviceToDevice, g->stream),
                    "singular values"));
  /* as its room: cuSOLVER reads what it has not written */
  GPU_TRY(gpu_check(g, cudaMemsetAsync(u, 0, size, g->stream), "singular values"));
  GPU_TRY(gpu_check(g, cudaMemsetAsync(v, 0, (size_t)(cols * cols) * sizeof *v, g->stream),
                    "singular values"));
  GPU_TRY(svd_polar(g, &first, &r[0], info));
  GPU_TRY(gpu_download(g, &ends[0], s, sizeof ends[0]));
  GPU_TRY(gpu_download(g, &ends[1], s + cols - 1, sizeof ends[1]));
  if (*info == 0 && ends[1] > 1e-9 * ends[0]) return GPU_OK;
  return svd_iterated(g, &again, vt, &r[1], info);
}

static int svd(gpu *g, int64_t m, int64_t n, double *a, double *s, double *u, double *vt, room *r,
               int *info) {
  const int64_t q = gpu_least(m, n);
  double *left, *right, *turned = a;
  if (m > n) { /* by columns A itself is tall, ours is its transpose */
    GPU_TRY(gpu_new(g, &turned, m * n));
    GPU_TRY(transpose(g, m, n, a, turned)); /* n by m in rows: A by columns, m by n */
    GPU_TRY(gpu_new(g, &left, m * q));
    GPU_TRY(gpu_new(g, &right, n * q));
    GPU_TRY(svd_tall(g, m, n, turned, s, left, right, r, info)); /* columns: U m by q, V n by q */
    GPU_TRY(transpose(g, q, m, left, u));                        /* left read by rows is q by m */
    return gpu_check(g,
                     cudaMemcpyAsync(vt, right, (size_t)(n * q) * sizeof *vt,
                                     cudaMemcpyDeviceToDevice, g->stream),
                     "singular values");
  }
  GPU_TRY(gpu_new(g, &left, n * q));
  GPU_TRY(gpu_new(g, &right, m * q));
  /* by columns the rows of A make A^T = V S U^T, n by m */
  GPU_TRY(svd_tall(g, n, m, turned, s, left, right, r, info));
  GPU_TRY(gpu_check(
      g,
      cudaMemcpyAsync(vt, left, (size_t)(n * q) * sizeof *vt, cudaMemcpyDeviceToDevice, g->stream),
      "singular values"));
  return transpose(g, q, m, right, u);
}

int gpu_svd(gpu *g, int64_t m, int64_t n, double *a, double *s, double *u, double *vt) {
  int info = 0;
  room r[2] = {};
  const long mark = gpu_mark(g);
  const int code = svd(g, m, n, a, s, u, vt, r, &info);
  free(r[0].host);
  free(r[1].host);
  gpu_release(g, mark);
  return code != GPU_OK ? code : info != 0 ? GPU_ELSEWHERE : GPU_OK;
}

/* ---- the leading triples --------------------------------------------------------------------- */

/* s_k = sqrt(w), largest first, and its inverse. */
static __global__ void roots_kernel(const double *w, int64_t q, int64_t r, double *s,
                                    double *inverse) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= r) return;
  const double value = w[q - 1 - k];
  s[k] = value > 0 ? sqrt(value) : 0;
  inverse[k] = s[k] > 1e-7 * sqrt(fmax(w[q - 1], 0.0)) ? 1 / s[k] : 0;
}

/* out (n by r) = columns of the vectors (rows, ascending), largest first. */
static __global__ void leading_kernel(const double *vectors, int64_t q, int64_t r, double *out) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= q * r) return;
  const int64_t i = at / r, k = at - i * r;
  out[at] = vectors[(q - 1 - k) * q + i];
}

static __global__ void columns_times(double *m, int64_t rows, int64_t r, const double *factor) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < rows * r) m[at] *= factor[at % r];
}

/* `values` of s, at least r. */
static int svd_top(gpu *g, int64_t m, int64_t n, const double *a, int64_t r, int64_t values,
                   double *s, double *u, double *v) {
  const bool wide = m <= n;
  const int64_t q = wide ? m : n, other = wide ? n : m;
  double *gram, *w, *inverse, *near = wide ? u : v, *far = wide ? v : u;
  GPU_TRY(gpu_new(g, &gram, q * q));
  GPU_TRY(gpu_new(g, &w, q));
  GPU_TRY(gpu_new(g, &inverse, values));
  GPU_TRY(gpu_dgemm(g, !wide, wide, q, q, other, 1, a, n, a, n, 0, gram, q));
  GPU_TRY(gpu_eigen(g, q, gram, w));
  roots_kernel<<<(unsigned)((values + 127) / 128), 128, 0, g->stream>>>(w, q, values, s, inverse);
  leading_kernel<<<(unsigned)((q * r + 255) / 256), 256, 0, g->stream>>>(gram, q, r, near);
  GPU_TRY(gpu_launched(g, "singular values"));
  GPU_TRY(gpu_dgemm(g, wide, 0, other, r, q, 1, a, n, near, r, 0, far, r));
  columns_times<<<(unsigned)((other * r + 255) / 256), 256, 0, g->stream>>>(far, other, r, inverse);
  return gpu_launched(g, "singular values");
}

int gpu_svd_top(gpu *g, int64_t m, int64_t n, const double *a, int64_t r, double *s, double *u,
                double *v) {
  const long mark = gpu_mark(g);
  const int code = svd_top(g, m, n, a, r, r, s, u, v);
  gpu_release(g, mark);
  return code;
}

int gpu_svd_leading(gpu *g, int64_t m, int64_t n, const double *a, int64_t r, double *s, double *u,
                    double *v) {
  const long mark = gpu_mark(g);
  const int code = svd_top(g, m, n, a, r, gpu_least(r + 1, gpu_least(m, n)), s, u, v);
  gpu_release(g, mark);
  return code;
}

/* ---- triangles ------------------------------------------------------------------------------ */

static int cholesky(gpu *g, int64_t n, double *a, room *r, int *info) {
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXpotrf_bufferSize(g->solver, g->solver_params, CUBLAS_FILL_MODE_UPPER, n,
                                  CUDA_R_64F, a, n, CUDA_R_64F, &r->device_bytes, &r->host_bytes),
      "a Cholesky factor"));
  GPU_TRY(room_open(g, r));
  GPU_TRY(gpu_check_solver(
      g,
      cusolverDnXpotrf(g->solver, g->solver_params, CUBLAS_FILL_MODE_UPPER, n, CUDA_R_64F, a, n,
                       CUDA_R_64F, r->device, r->device_bytes, r->host, r->host_bytes, r->info),
      "a Cholesky factor"));
  return room_info(g, r, info);
}

int gpu_cholesky(gpu *g, int64_t n, double *a) {
  int info = 0;
  room r = {};
  const long mark = gpu_mark(g);
  const int code = cholesky(g, n, a, &r, &info);
  free(r.host);
  gpu_release(g, mark);
  return code != GPU_OK ? code : info != 0 ? GPU_ELSEWHERE : GPU_OK;
}

/* By columns L is upper triangular, U = L^T, and B is its transpose. */
int gpu_solve_left(gpu *g, int trans, int64_t n, int64_t m, const double *l, double *b) {
  const double one = 1;
  return gpu_check_blas(g,
                        cublasDtrsm_64(g->blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER,
                                       trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, m,
                                       n, &one, l, n, b, m),
                        "a triangular system");
}

int gpu_solve_right(gpu *g, int trans, int64_t m, int64_t n, const double *l, double *b) {
  const double one = 1;
  return gpu_check_blas(g,
                        cublasDtrsm_64(g->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                                       trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n,
                                       m, &one, l, n, b, n),
                        "a triangular system");
}
