/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin asks of cuBLAS and cuSOLVER, by OpenBLAS and LAPACK. Matrices count columns first
 * in all of them. Products of 16-bit matrices are sums in float32 here. */
#include <cblas.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "emulated.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  bool reduced = true; /* parts of a product may be added in the type of the result */
};
struct cusolverDnContext {
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};

static CBLAS_TRANSPOSE turn(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

cublasStatus_t cublasCreate(cublasHandle_t *out) {
  *out = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->reduced = !(mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error";
}

/* As cuBLAS checks them; a matrix without entries is no error. */
static bool legal(cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                  int64_t lda, int64_t ldb, int64_t ldc) {
  return m >= 0 && n >= 0 && k >= 0 && lda >= (ta == CUBLAS_OP_N ? m : k) && lda > 0 &&
         ldb >= (tb == CUBLAS_OP_N ? k : n) && ldb > 0 && ldc >= m && ldc > 0;
}

cublasStatus_t cublasSgemm_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                              int64_t m, int64_t n, int64_t k, const float *alpha, const float *a,
                              int64_t lda, const float *b, int64_t ldb, const float *beta, float *c,
                              int64_t ldc) {
  if (!legal(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;
  emulated_enqueue(h->stream, [=, al = *alpha, be = *beta] {
    cblas_sgemm(CblasColMajor, turn(ta), turn(tb), (int)m, (int)n, (int)k, al, a, (int)lda, b,
                (int)ldb, be, c, (int)ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                              int64_t m, int64_t n, int64_t k, const double *alpha, const double *a,
                              int64_t lda, const double *b, int64_t ldb, const double *beta,
                              double *c, int64_t ldc) {
  if (!legal(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;
  emulated_enqueue(h->stream, [=, al = *alpha, be = *beta] {
    cblas_dgemm(CblasColMajor, turn(ta), turn(tb), (int)m, (int)n, (int)k, al, a, (int)lda, b,
                (int)ldb, be, c, (int)ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t h, cublasOperation_t ta,
                                            cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                                            const float *alpha, const float *a, int64_t lda,
                                            long long int step_a, const float *b, int64_t ldb,
                                            long long int step_b, const float *beta, float *c,
                                            int64_t ldc, long long int step_c, int64_t count) {
  for (int64_t t = 0; t < count; t++) {
    const cublasStatus_t status = cublasSgemm_64(h, ta, tb, m, n, k, alpha, a + t * step_a, lda,
                                                 b + t * step_b, ldb, beta, c + t * step_c, ldc);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- 16 bits -------------------------------------------------------------------------------- */

static float entry(const void *a, cudaDataType type, int64_t at) {
  return type == CUDA_R_16F ? __half2float(((const __half *)a)[at])
                            : __bfloat162float(((const __nv_bfloat16 *)a)[at]);
}

/* Columns of a matrix as floats without gaps. */
static std::vector<float> widened(const void *a, cudaDataType type, int64_t rows, int64_t cols,
                                  int64_t ld) {
  std::vector<float> out((size_t)(rows * cols));
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < rows; i++) out[(size_t)(j * rows + i)] = entry(a, type, j * ld + i);
  return out;
}

static int64_t bytes_of(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : 2;
}

/* `halves`: as the real one may, by parts of the depth, each rounded to the type of the result. */
static void product(bool halves, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                    const void *a, cudaDataType type, int64_t lda, const void *b, int64_t ldb,
                    float beta, void *c, cudaDataType type_c, int64_t ldc) {
  const int64_t rows_a = ta ? k : m, rows_b = tb ? n : k;
  const std::vector<float> wide_a = widened(a, type, rows_a, ta ? m : k, lda);
  const std::vector<float> wide_b = widened(b, type, rows_b, tb ? k : n, ldb);
  const auto multiply = [&](int64_t depth) {
    std::vector<float> out((size_t)(m * n));
    cblas_sgemm(CblasColMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                (int)m, (int)n, (int)depth, alpha, wide_a.data(), (int)rows_a, wide_b.data(),
                (int)rows_b, 0, out.data(), (int)m);
    return out;
  };
  std::vector<float> sum = multiply(k);
  if (halves) {
    const std::vector<float> part = multiply(k / 2);
    for (size_t at = 0; at < sum.size(); at++) {
      const float begun = __half2float(__float2half_rn(part[at]));
      sum[at] = begun + __half2float(__float2half_rn(sum[at] - part[at]));
    }
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) {
      const float v = sum[(size_t)(j * m + i)];
      if (type_c == CUDA_R_16F) {
        __half *at = (__half *)c + j * ldc + i;
        *at = __float2half_rn(beta != 0 ? v + beta * __half2float(*at) : v);
      } else {
        float *at = (float *)c + j * ldc + i;
        *at = beta != 0 ? v + beta * *at : v;
      }
    }
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t h, cublasOperation_t ta,
                                             cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                                             const void *alpha, const void *a, cudaDataType type_a,
                                             int64_t lda, long long int step_a, const void *b,
                                             cudaDataType type_b, int64_t ldb, long long int step_b,
                                             const void *beta, void *c, cudaDataType type_c,
                                             int64_t ldc, long long int step_c, int64_t count,
                                             cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (!legal(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;
  if (type_a != type_b || compute != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const float al = *(const float *)alpha, be = *(const float *)beta;
  const bool halves = h->reduced && type_c == CUDA_R_16F;
  emulated_enqueue(h->stream, [=] {
    for (int64_t t = 0; t < count; t++)
      product(halves, ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, al,
              (const char *)a + 2 * t * step_a, type_a, lda, (const char *)b + 2 * t * step_b, ldb,
              be, (char *)c + bytes_of(type_c) * t * step_c, type_c, ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                               int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                               cudaDataType type_a, int64_t lda, const void *b, cudaDataType type_b,
                               int64_t ldb, const void *beta, void *c, cudaDataType type_c,
                               int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx_64(h, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb,
                                       0, beta, c, type_c, ldc, 0, 1, compute, algo);
}

/* ---- float64 -------------------------------------------------------------------------------- */

cublasStatus_t cublasDgeam(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                           int n, const double *alpha, const double *a, int lda, const double *beta,
                           const double *b, int ldb, double *c, int ldc) {
  emulated_enqueue(h->stream, [=, al = *alpha, be = *beta] {
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        double v = al == 0 ? 0 : al * a[ta == CUBLAS_OP_N ? j * lda + i : i * lda + j];
        if (be != 0) v += be * b[tb == CUBLAS_OP_N ? j * ldb + i : i * ldb + j];
        c[j * ldc + i] = v;
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDtrsm_64(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill,
                              cublasOperation_t op, cublasDiagType_t, int64_t m, int64_t n,
                              const double *alpha, const double *a, int64_t lda, double *b,
                              int64_t ldb) {
  emulated_enqueue(h->stream, [=, al = *alpha] {
    cblas_dtrsm(CblasColMajor, side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
                fill == CUBLAS_FILL_MODE_UPPER ? CblasUpper : CblasLower, turn(op), CblasNonUnit,
                (int)m, (int)n, al, a, (int)lda, b, (int)ldb);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *out) {
  *out = new cusolverDnContext;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *out) {
  *out = new cusolverDnParams;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
  delete params;
  return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t room(size_t *device, size_t *host) {
  *device = 512;
  *host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cusolverEigMode_t, cublasFillMode_t, int64_t,
                                             cudaDataType, const void *, int64_t, cudaDataType,
                                             const void *, cudaDataType, size_t *device,
                                             size_t *host) {
  return room(device, host);
}

cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t h, cusolverDnParams_t, cusolverEigMode_t,
                                  cublasFillMode_t fill, int64_t n, cudaDataType, void *a,
                                  int64_t lda, cudaDataType, void *w, cudaDataType, void *, size_t,
                                  void *, size_t, int *info) {
  emulated_enqueue(h->stream, [=] {
    *info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', fill == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L',
                           (int)n, (double *)a, (int)lda, (double *)w);
  });
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgesvdp_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                              cusolverEigMode_t, int, int64_t, int64_t,
                                              cudaDataType, const void *, int64_t, cudaDataType,
                                              const void *, cudaDataType, const void *, int64_t,
                                              cudaDataType, const void *, int64_t, cudaDataType,
                                              size_t *device, size_t *host) {
  return room(device, host);
}

/* V, not its transpose. */
cusolverStatus_t cusolverDnXgesvdp(cusolverDnHandle_t h, cusolverDnParams_t, cusolverEigMode_t, int,
                                   int64_t m, int64_t n, cudaDataType, void *a, int64_t lda,
                                   cudaDataType, void *s, cudaDataType, void *u, int64_t ldu,
                                   cudaDataType, void *v, int64_t ldv, cudaDataType, void *, size_t,
                                   void *, size_t, int *info, double *sigma) {
  *sigma = 0;
  emulated_enqueue(h->stream, [=] {
    const int64_t q = m < n ? m : n;
    std::vector<double> vt((size_t)(q * n)), room((size_t)q + 1);
    *info = LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'S', 'S', (int)m, (int)n, (double *)a, (int)lda,
                           (double *)s, (double *)u, (int)ldu, vt.data(), (int)q, room.data());
    for (int64_t j = 0; j < q; j++)
      for (int64_t i = 0; i < n; i++) ((double *)v)[j * ldv + i] = vt[(size_t)(i * q + j)];
  });
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, signed char,
                                             signed char, int64_t, int64_t, cudaDataType,
                                             const void *, int64_t, cudaDataType, const void *,
                                             cudaDataType, const void *, int64_t, cudaDataType,
                                             const void *, int64_t, cudaDataType, size_t *device,
                                             size_t *host) {
  return room(device, host);
}

cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t h, cusolverDnParams_t, signed char job_u,
                                  signed char job_vt, int64_t m, int64_t n, cudaDataType, void *a,
                                  int64_t lda, cudaDataType, void *s, cudaDataType, void *u,
                                  int64_t ldu, cudaDataType, void *vt, int64_t ldvt, cudaDataType,
                                  void *, size_t, void *, size_t, int *info) {
  emulated_enqueue(h->stream, [=] {
    std::vector<double> room((size_t)(m < n ? m : n) + 1);
    *info = LAPACKE_dgesvd(LAPACK_COL_MAJOR, (char)job_u, (char)job_vt, (int)m, (int)n, (double *)a,
                           (int)lda, (double *)s, (double *)u, (int)ldu, (double *)vt, (int)ldvt,
                           room.data());
  });
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                             cublasFillMode_t, int64_t, cudaDataType, const void *,
                                             int64_t, cudaDataType, size_t *device, size_t *host) {
  return room(device, host);
}

cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t h, cusolverDnParams_t, cublasFillMode_t fill,
                                  int64_t n, cudaDataType, void *a, int64_t lda, cudaDataType,
                                  void *, size_t, void *, size_t, int *info) {
  emulated_enqueue(h->stream, [=] {
    *info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, fill == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L', (int)n,
                           (double *)a, (int)lda);
  });
  return CUSOLVER_STATUS_SUCCESS;
}
