/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/blas.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "linalg/vec.h"
#include "unicon/tools.h"

/* Every dimension that arrives here was checked where data came in, or is a tile's. */
static int narrow(int64_t value) {
  assert(value >= 0 && value <= INT_MAX);
  return (int)value;
}

static CBLAS_TRANSPOSE op(bool trans) {
  return trans ? CblasTrans : CblasNoTrans;
}

/* ---- thread count ------------------------------------------------------------------------- */

/* Open regions. It leaves 0 and comes back to 0 under the lock only, which also guards the
 * process-wide count: whoever finds it above 0 may rely on single-threaded BLAS. */
static pthread_mutex_t region_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int regions;
static int outside_threads; /* of the process, before the first region */
static bool outside_known;  /* ... and a fork cut that region off */
static _Thread_local int own_regions;
static pthread_once_t watch_forks = PTHREAD_ONCE_INIT;

static void before_fork(void) {
  pthread_mutex_lock(&region_lock);
}

static void after_fork(void) {
  pthread_mutex_unlock(&region_lock);
}

/* The other threads are gone, and with them their regions. The count stays at 1 until the next
 * region ends: to raise it would start threads in a child that may be about to exec. */
static void in_child(void) {
  outside_known |= atomic_load(&regions) > 0 && own_regions == 0;
  atomic_store(&regions, own_regions);
  pthread_mutex_unlock(&region_lock);
}

static void watch(void) {
  pthread_atfork(before_fork, after_fork, in_child);
}

/* Adds `step` if that neither leaves 0 nor comes to it. */
static bool step_inside(int step) {
  int now = atomic_load(&regions);
  while (now > 0 && now + step > 0)
    if (atomic_compare_exchange_weak(&regions, &now, now + step)) return true;
  return false;
}

void unicon__blas_begin(void) {
  own_regions++;
  if (step_inside(1)) return;
  pthread_once(&watch_forks, watch);
  pthread_mutex_lock(&region_lock);
  if (atomic_load(&regions) == 0) {
    if (!outside_known) outside_threads = openblas_get_num_threads();
    outside_known = false;
    if (outside_threads != 1) openblas_set_num_threads(1);
  }
  atomic_fetch_add(&regions, 1);
  pthread_mutex_unlock(&region_lock);
}

void unicon__blas_end(void) {
  own_regions--;
  if (step_inside(-1)) return;
  pthread_mutex_lock(&region_lock);
  if (atomic_fetch_sub(&regions, 1) == 1 && outside_threads != 1)
    openblas_set_num_threads(outside_threads);
  pthread_mutex_unlock(&region_lock);
}

const unicon__region unicon__blas_region = {unicon__blas_begin, unicon__blas_end};

/* One call of BLAS or LAPACK on one thread. */
#define ALONE(call)       \
  do {                    \
    unicon__blas_begin(); \
    call;                 \
    unicon__blas_end();   \
  } while (0)

const char *unicon__blas_name(void) {
  static _Thread_local char text[256];
  char config[160];
  snprintf(config, sizeof config, "%s", openblas_get_config());
  char *end = strchr(config, ' ');
  end = end ? strchr(end + 1, ' ') : NULL;
  if (end) *end = '\0';
  const char *faster = unicon_faster_kernels();
  snprintf(text, sizeof text, "%s (%s%s%s%s)", config, openblas_get_corename(),
           faster ? "; OPENBLAS_CORETYPE=" : "", faster ? faster : "", faster ? " is faster" : "");
  return text;
}

/* OpenBLAS chooses its kernels when it is loaded, and may take a processor that is newer than itself
 * for one of 2004: a choice took three times as long on a Xeon of 2024. */
const char *unicon_faster_kernels(void) {
  static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  static const char *const avx2[] = {"Haswell", "Zen"};
  const char *core = openblas_get_corename(), *own = unicon__vec_best()->name;
  if (!strstr(openblas_get_config(), "DYNAMIC_ARCH") || strcmp(own, "plain") == 0) return NULL;
  for (size_t k = 0; k < sizeof avx512 / sizeof *avx512; k++)
    if (strcmp(core, avx512[k]) == 0) return NULL;
  if (strcmp(own, "avx512") == 0) return "SKYLAKEX";
  for (size_t k = 0; k < sizeof avx2 / sizeof *avx2; k++)
    if (strcmp(core, avx2[k]) == 0) return NULL;
  return "HASWELL";
}

/* ---- products ----------------------------------------------------------------------------- */

void unicon__sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc) {
  ALONE(cblas_sgemm(CblasRowMajor, op(trans_a), op(trans_b), narrow(m), narrow(n), narrow(k), alpha,
                    a, narrow(lda), b, narrow(ldb), beta, c, narrow(ldc)));
}

void unicon__dgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                   double *c, int64_t ldc) {
  ALONE(cblas_dgemm(CblasRowMajor, op(trans_a), op(trans_b), narrow(m), narrow(n), narrow(k), alpha,
                    a, narrow(lda), b, narrow(ldb), beta, c, narrow(ldc)));
}

void unicon__dsyrk(int64_t n, int64_t k, double alpha, const double *a, int64_t lda, double beta,
                   double *c, int64_t ldc) {
  ALONE(cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, narrow(n), narrow(k), alpha, a,
                    narrow(lda), beta, c, narrow(ldc)));
}

void unicon__dgemv(bool trans, int64_t m, int64_t n, double alpha, const double *a, int64_t lda,
                   const double *x, double beta, double *y) {
  ALONE(cblas_dgemv(CblasRowMajor, op(trans), narrow(m), narrow(n), alpha, a, narrow(lda), x, 1,
                    beta, y, 1));
}

void unicon__dsymv(int64_t n, const double *a, int64_t lda, const double *x, double *y) {
  ALONE(cblas_dsymv(CblasRowMajor, CblasLower, narrow(n), 1.0, a, narrow(lda), x, 1, 0.0, y, 1));
}

void unicon__dtrsm_left(bool trans, int64_t n, int64_t m, const double *l, int64_t ldl, double *b,
                        int64_t ldb) {
  ALONE(cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, op(trans), CblasNonUnit, narrow(n),
                    narrow(m), 1.0, l, narrow(ldl), b, narrow(ldb)));
}

void unicon__dtrsm_right(bool trans, int64_t m, int64_t n, const double *l, int64_t ldl, double *b,
                         int64_t ldb) {
  ALONE(cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, op(trans), CblasNonUnit, narrow(m),
                    narrow(n), 1.0, l, narrow(ldl), b, narrow(ldb)));
}

/* ---- LAPACK ------------------------------------------------------------------------------- */

/* LAPACK is column-major: a row-major matrix is its own transpose there, so the lower triangle is
 * called "U" below and left and right factors change places. */

int unicon__dpotrf(int64_t n, double *a, int64_t lda) {
  int info;
  ALONE(info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', narrow(n), a, narrow(lda)));
  for (int64_t i = 0; i < n && info == 0; i++) /* OpenBLAS lets a NaN through */
    if (!(a[i * lda + i] > 0)) info = (int)i + 1;
  return info;
}

/* The least that LAPACK asks for. Blocks that want more than this are small. */
int64_t unicon__dsyevd_room(int64_t n) {
  return 1 + 6 * n + 2 * n * n;
}

int64_t unicon__dstedc_room(int64_t n) {
  return 1 + 4 * n + n * n;
}

int64_t unicon__dgesdd_room(int64_t m, int64_t n) {
  const int64_t small = m < n ? m : n;
  return 7 * small + 4 * small * small;
}

/* `least` and what blocks of 64 columns would like on top, as far as LAPACK can count. */
static int with_blocks(int64_t least, int64_t columns) {
  const int64_t wish = least + 64 * columns;
  return wish > INT_MAX ? INT_MAX : (int)wish;
}

static unicon_status too_large(unicon_ctx *ctx, const char *what, int64_t m, int64_t n,
                               int64_t most) {
  return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                      "%s of a %lld by %lld matrix: LAPACK counts its work space in 32 bits, which "
                      "allows %lld rows or columns; use fewer columns, fewer landmarks (map "
                      "nystrom) or features, or svd random with a lower rank",
                      what, (long long)m, (long long)n, (long long)most);
}

unicon_status unicon__dsyevd(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  const int64_t room = unicon__dsyevd_room(n);
  if (room > INT_MAX) return too_large(ctx, "the eigenvectors", n, n, 32766);
  const int size = narrow(n), size_int = 3 + 5 * size;
  double *work;
  int *iwork;
  UNICON_NEW(ctx, work, room);
  UNICON_NEW(ctx, iwork, size_int);
  ALONE(*info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', size, a, size, w, work, (int)room,
                                    iwork, size_int));
  if (unicon__fault(&ctx->faults.lapack)) *info = 1;
  unicon__drop(ctx, iwork);
  unicon__drop(ctx, work);
  return UNICON_OK;
}

unicon_status unicon__dsyev(unicon_ctx *ctx, int64_t n, double *a, double *w, int *info) {
  const int size = narrow(n), room = with_blocks(3 * n, n);
  double *work;
  UNICON_NEW(ctx, work, room);
  ALONE(*info = LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', size, a, size, w, work, room));
  unicon__drop(ctx, work);
  return UNICON_OK;
}

/* The transposed problem in LAPACK's eyes: A^T = V diag(s) U^T, with V stored as vt row-major. */
static unicon_status svd_divide_and_conquer(unicon_ctx *ctx, int64_t m, int64_t n, double *a,
                                            double *s, double *u, double *vt, int *info) {
  const int rows = narrow(n), cols = narrow(m), small = rows < cols ? rows : cols;
  const int room = with_blocks(unicon__dgesdd_room(m, n), m + n);
  double *work;
  int *iwork;
  UNICON_NEW(ctx, work, room);
  UNICON_NEW(ctx, iwork, 8 * (int64_t)small + 1);
  ALONE(*info = LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'S', rows, cols, a, rows, s, vt, rows, u,
                                    small, work, room, iwork));
  unicon__drop(ctx, iwork);
  unicon__drop(ctx, work);
  return UNICON_OK;
}

static unicon_status svd_qr_iteration(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s,
                                      double *u, double *vt, int *info) {
  const int rows = narrow(n), cols = narrow(m), small = rows < cols ? rows : cols;
  const int room = with_blocks(5 * (m + n), m + n);
  double *work;
  UNICON_NEW(ctx, work, room);
  ALONE(*info = LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, 'S', 'S', rows, cols, a, rows, s, vt, rows, u,
                                    small, work, room));
  unicon__drop(ctx, work);
  return UNICON_OK;
}

unicon_status unicon__dgesvd(unicon_ctx *ctx, int64_t m, int64_t n, double *a, double *s, double *u,
                             double *vt, int *info) {
  if (unicon__dgesdd_room(m, n) > INT_MAX)
    return too_large(ctx, "the singular vectors", m, n, 23169);
  double *copy;
  UNICON_NEW(ctx, copy, m * n);
  memcpy(copy, a, (size_t)(m * n) * sizeof *a);
  UNICON_TRY(svd_divide_and_conquer(ctx, m, n, a, s, u, vt, info));
  if (unicon__fault(&ctx->faults.lapack)) *info = 1;
  if (*info > 0) UNICON_TRY(svd_qr_iteration(ctx, m, n, copy, s, u, vt, info));
  unicon__drop(ctx, copy);
  return UNICON_OK;
}

double unicon__dlarfg(int64_t n, double *x) {
  double tau = 0;
  ALONE(LAPACKE_dlarfg_work(narrow(n), x, x + 1, 1, &tau));
  return tau;
}

void unicon__dlarft(int64_t n, int64_t k, const double *v, int64_t ldv, const double *tau,
                    double *factor) {
  ALONE(LAPACKE_dlarft_work(LAPACK_COL_MAJOR, 'F', 'C', narrow(n), narrow(k), v, narrow(ldv), tau,
                            factor, narrow(k)));
}

void unicon__dlarfb(bool trans, int64_t n, int64_t m, int64_t k, const double *v, int64_t ldv,
                    const double *factor, double *c, int64_t ldc, double *room) {
  ALONE(LAPACKE_dlarfb_work(LAPACK_COL_MAJOR, 'L', trans ? 'T' : 'N', 'F', 'C', narrow(n),
                            narrow(m), narrow(k), v, narrow(ldv), factor, narrow(k), c, narrow(ldc),
                            room, narrow(m)));
}

void unicon__dgeqr2(int64_t n, int64_t k, double *a, int64_t lda, double *tau, double *room) {
  ALONE(LAPACKE_dgeqr2_work(LAPACK_COL_MAJOR, narrow(n), narrow(k), a, narrow(lda), tau, room));
}

unicon_status unicon__dstedc_fits(unicon_ctx *ctx, int64_t n) {
  return unicon__dstedc_room(n) <= INT_MAX ? UNICON_OK
                                           : too_large(ctx, "the eigenvectors", n, n, 46338);
}

unicon_status unicon__dstedc(unicon_ctx *ctx, int64_t n, double *diagonal, double *off_diagonal,
                             double *z, int *info) {
  double *work;
  int *iwork;
  const int64_t size = unicon__dstedc_room(n), size_int = 3 + 5 * n;
  UNICON_TRY(unicon__dstedc_fits(ctx, n));
  UNICON_NEW(ctx, work, size);
  UNICON_NEW(ctx, iwork, size_int);
  ALONE(*info = LAPACKE_dstedc_work(LAPACK_COL_MAJOR, 'I', narrow(n), diagonal, off_diagonal, z,
                                    narrow(n), work, narrow(size), iwork, narrow(size_int)));
  unicon__drop(ctx, iwork);
  unicon__drop(ctx, work);
  return UNICON_OK;
}

static int64_t dbdsdc_room(int64_t n) {
  return 4 * n + 3 * n * n;
}

unicon_status unicon__dbdsdc_fits(unicon_ctx *ctx, int64_t n) {
  return dbdsdc_room(n) <= INT_MAX ? UNICON_OK
                                   : too_large(ctx, "the singular vectors", n, n, 26753);
}

unicon_status unicon__dbdsdc(unicon_ctx *ctx, int64_t n, double *diagonal, double *off_diagonal,
                             double *u, double *v, int *info) {
  const int size = narrow(n);
  double *work, *d, *e;
  int *iwork;
  UNICON_NEW(ctx, work, dbdsdc_room(n));
  UNICON_NEW(ctx, iwork, 8 * n);
  UNICON_NEW(ctx, d, n);
  UNICON_NEW(ctx, e, n);
  memcpy(d, diagonal, (size_t)n * sizeof *d);
  memcpy(e, off_diagonal, (size_t)n * sizeof *e);
  ALONE(*info = LAPACKE_dbdsdc_work(LAPACK_COL_MAJOR, 'U', 'I', size, diagonal, off_diagonal, u,
                                    size, v, size, NULL, NULL, work, iwork));
  if (unicon__fault(&ctx->faults.lapack)) *info = 1;
  if (*info > 0) {
    memset(u, 0, (size_t)(n * n) * sizeof *u);
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t k = 0; k < n; k++) u[k * (n + 1)] = v[k * (n + 1)] = 1;
    memcpy(diagonal, d, (size_t)n * sizeof *d);
    ALONE(*info = LAPACKE_dbdsqr_work(LAPACK_COL_MAJOR, 'U', size, size, size, 0, diagonal, e, v,
                                      size, u, size, NULL, 1, work));
  }
  unicon__drop(ctx, e);
  unicon__drop(ctx, d);
  unicon__drop(ctx, iwork);
  unicon__drop(ctx, work);
  return UNICON_OK;
}

int unicon__dsterf(int64_t n, double *diagonal, double *off_diagonal) {
  int info;
  ALONE(info = LAPACKE_dsterf_work(narrow(n), diagonal, off_diagonal));
  return info;
}
