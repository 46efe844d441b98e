/* SPDX-License-Identifier: Apache-2.0 */
/* Products and solutions on the context's threads: what they compute, that one thread and
 * several give the same bytes, and that the threads of OpenBLAS stay out of it. */
#include <cblas.h>

#include "linalg/blas.h"
#include "linalg/tiled.h"
#include "support.h"

static void set_threads(unicon_ctx *ctx, int threads) {
  char text[12];
  snprintf(text, sizeof text, "%d", threads);
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", text));
}

/* ---- products ----------------------------------------------------------------------------- */

typedef struct shape {
  int64_t m, n, k;
} shape;

/* Around the sizes where the cut changes, and degenerate ones. */
static const shape shapes[] = {{1, 1, 1},      {0, 5, 3},      {5, 0, 3},
                               {5, 4, 0},      {130, 17, 90},  {255, 257, 33},
                               {600, 40, 120}, {40, 1100, 64}, {513, 515, 70}};

/* 2 k terms of size 1 with rounding u each, and cancellation: |error| <= 2 k u is generous. */
static void check_dgemm(unicon_ctx *ctx, const shape *z, bool trans_a, bool trans_b) {
  const int64_t size = z->m * z->n;
  double *a = support_random(1, z->m * z->k), *b = support_random(2, z->k * z->n);
  double *start = support_random(3, size), *want = support_doubles(size);
  double *c = support_doubles(size);
  support_product(trans_a, trans_b, z->m, z->n, z->k, a, b, want);
  for (int64_t i = 0; i < size; i++) want[i] = 2 * want[i] - 0.5 * start[i];
  memcpy(c, start, (size_t)size * sizeof *c);
  unicon__tiled_dgemm(ctx, trans_a, trans_b, z->m, z->n, z->k, 2, a, trans_a ? z->m : z->k, b,
                      trans_b ? z->k : z->n, -0.5, c, z->n);
  CHECK_CLOSE(support_distance(c, want, size), 0, 1e-14 * (double)(20 + z->k));
  free(a);
  free(b);
  free(start);
  free(want);
  free(c);
}

static void check_sgemm(unicon_ctx *ctx, const shape *z, bool trans_a, bool trans_b) {
  const int64_t size = z->m * z->n;
  float *a = support_normals(1, z->m * z->k), *b = support_normals(2, z->k * z->n);
  float *c = support_floats(size);
  double *wide_a = support_doubles(z->m * z->k), *wide_b = support_doubles(z->k * z->n);
  double *want = support_doubles(size);
  for (int64_t i = 0; i < z->m * z->k; i++) wide_a[i] = (double)a[i];
  for (int64_t i = 0; i < z->k * z->n; i++) wide_b[i] = (double)b[i];
  support_product(trans_a, trans_b, z->m, z->n, z->k, wide_a, wide_b, want);
  unicon__tiled_sgemm(ctx, trans_a, trans_b, z->m, z->n, z->k, 1, a, trans_a ? z->m : z->k, b,
                      trans_b ? z->k : z->n, 0, c, z->n);
  for (int64_t i = 0; i < size; i++) CHECK_CLOSE(c[i], want[i], 5e-6 * (double)(20 + z->k));
  free(a);
  free(b);
  free(c);
  free(wide_a);
  free(wide_b);
  free(want);
}

/* C += A^T B in blocks of rows; of a symmetric sum the lower triangle, at least. */
static void check_sums(unicon_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t block) {
  unicon__block *frame = unicon__frame_open(ctx);
  const bool square = m == n;
  const int64_t lda = m + 3, ldb = square ? lda : n + 2, ldc = n + 1;
  float *a = support_normals(31, k * lda), *b = square ? a : support_normals(32, k * ldb);
  double *c = support_random(33, m * ldc), *before = support_random(33, m * ldc);
  CHECK_OK(ctx, unicon__tiled_add_product(ctx, m, n, k, block, a, lda, b, ldb, square, c, ldc));
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < (square ? i + 1 : n); j++) {
      double want = before[i * ldc + j];
      for (int64_t t = 0; t < k; t++) want += (double)a[t * lda + i] * (double)b[t * ldb + j];
      /* float32 products of `block` terms of about 1 */
      CHECK_CLOSE(c[i * ldc + j], want, 5e-6 * (double)(20 + k));
    }
  for (int64_t i = 0; i < m; i++) assert_true(c[i * ldc + n] == before[i * ldc + n]);
  free(before);
  free(c);
  if (!square) free(b);
  free(a);
  unicon__frame_close(ctx, frame);
}

static void sums_of_products_are_sums(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  set_threads(ctx, 3);
  check_sums(ctx, 1, 1, 1, 4);
  check_sums(ctx, 17, 5, 23, 8);
  check_sums(ctx, 400, 130, 50, 16);
  check_sums(ctx, 300, 300, 64, 64);
  check_sums(ctx, 9, 700, 40, 100);
}

static void products_are_products(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  set_threads(ctx, 3);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int trans = 0; trans < 4; trans++) {
      check_dgemm(ctx, &shapes[s], trans & 1, trans & 2);
      check_sgemm(ctx, &shapes[s], trans & 1, trans & 2);
    }
}

/* ---- triangles ---------------------------------------------------------------------------- */

/* A well-conditioned lower triangle; NaN above it, which nothing may read. */
static double *triangle(int64_t n) {
  double *l = support_random(7, n * n);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) l[i * n + j] = j > i ? NAN : l[i * n + j] / (double)n;
    l[i * n + i] = 1 + fabs(l[i * n + i]);
  }
  return l;
}

static double *without_upper(const double *l, int64_t n) {
  double *out = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++) memcpy(out + i * n, l + i * n, (size_t)(i + 1) * sizeof *out);
  return out;
}

static void triangles_solve(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 150, M = 700 };
  double *l = triangle(N), *clean = without_upper(l, N), *b = support_random(8, N * M);
  double *x = support_doubles(N * M), *back = support_doubles(N * M);
  set_threads(ctx, 3);
  for (int trans = 0; trans < 2; trans++) {
    memcpy(x, b, sizeof *x * N * M);
    unicon__tiled_dtrsm_left(ctx, trans, N, M, l, N, x, M);
    support_product(trans, false, N, M, N, clean, x, back);
    CHECK_CLOSE(support_distance(back, b, N * M), 0, 1e-12); /* the condition is about 10 */
    memcpy(x, b, sizeof *x * N * M);
    unicon__tiled_dtrsm_right(ctx, trans, M, N, l, N, x, N);
    support_product(false, trans, M, N, N, x, clean, back);
    CHECK_CLOSE(support_distance(back, b, N * M), 0, 1e-12);
  }
  free(l);
  free(clean);
  free(b);
  free(x);
  free(back);
}

static void cholesky_gives_the_triangle_back(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[] = {1, 5, 191, 192, 193, 450};
  set_threads(ctx, 3);
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    const int64_t n = sizes[c];
    double *l = triangle(n), *clean = without_upper(l, n), *a = support_doubles(n * n);
    support_product(false, true, n, n, n, clean, clean, a);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) a[i * n + j] = NAN;
    double *bad = support_doubles(n * n);
    memcpy(bad, a, (size_t)(n * n) * sizeof *a);
    int64_t info = -1;
    CHECK_OK(ctx, unicon__tiled_dpotrf(ctx, n, a, n, &info));
    assert_int_equal(info, 0);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++)
        if (j > i)
          assert_true(isnan(a[i * n + j])); /* nor is anything written there */
        else
          CHECK_CLOSE(a[i * n + j], clean[i * n + j], 1e-12);
    const int64_t at = n - 1 - n / 3; /* the first pivot that is not positive */
    bad[at * n + at] = c % 2 ? -1 : (double)NAN;
    CHECK_OK(ctx, unicon__tiled_dpotrf(ctx, n, bad, n, &info));
    assert_int_equal(info, at + 1);
    free(l);
    free(clean);
    free(a);
    free(bad);
  }
}

/* ---- symmetric matrices ------------------------------------------------------------------- */

static void symmetric_times_vector(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[] = {1, 9, 511, 512, 700, 1025};
  set_threads(ctx, 3);
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    const int64_t n = sizes[c];
    double *full, *a = support_symmetric(n, &full), *x = support_random(12, n);
    double *y = support_doubles(n), *want = support_doubles(n);
    double *room = support_doubles(unicon__tiled_dsymv_room(n) + 1);
    memset(room, 0xff, (size_t)(unicon__tiled_dsymv_room(n) + 1) * sizeof *room); /* NaN */
    support_product(false, false, n, 1, n, full, x, want);
    unicon__tiled_dsymv(ctx, n, a, n, x, y, room);
    CHECK_CLOSE(support_distance(y, want, n), 0, 1e-14 * (double)(20 + n));
    free(full);
    free(a);
    free(x);
    free(y);
    free(want);
    free(room);
  }
}

/* A of rank r: P A P^T = L L^T for the leading r rows and columns of L, pivots fall, and no entry
 * of the rest of the diagonal is above the floor. */
static void check_pivots(unicon_ctx *ctx, int64_t n, int64_t r) {
  unicon__block *frame = unicon__frame_open(ctx);
  double *g = support_random(41, n * r), *a = support_doubles(n * n), *l = support_doubles(n * n);
  int *order = calloc((size_t)n, sizeof *order), *seen = calloc((size_t)n, sizeof *seen);
  int64_t rank = -1;
  for (int64_t i = 0; i < n; i++) g[i * r] *= 1 + (double)(i % 7); /* pivots to look for */
  support_product(false, true, n, n, r, g, g, a);
  memcpy(l, a, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) l[i * n + j] = NAN; /* not read */
  double top = 0;
  for (int64_t i = 0; i < n; i++) top = fmax(top, a[i * n + i]);
  CHECK_OK(ctx, unicon__tiled_dpstrf(ctx, n, l, order, 1e-10 * top, &rank));
  assert_int_equal(rank, r < n ? r : n);
  for (int64_t i = 0; i < n; i++) assert_int_equal(seen[order[i]]++, 0);
  for (int64_t k = 1; k < rank; k++) /* a residual diagonal only falls */
    assert_true(l[k * (n + 1)] <= l[(k - 1) * (n + 1)] * (1 + 1e-12));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      double sum = 0;
      for (int64_t k = 0; k < rank && k <= j; k++) sum += l[i * n + k] * l[j * n + k];
      CHECK_CLOSE(sum, a[order[i] * n + order[j]], 1e-11 * top);
    }
  free(seen);
  free(order);
  free(l);
  free(a);
  free(g);
  unicon__frame_close(ctx, frame);
}

static void pivots_are_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  set_threads(ctx, 3);
  check_pivots(ctx, 1, 1);
  check_pivots(ctx, 7, 9);
  check_pivots(ctx, 64, 64);
  check_pivots(ctx, 65, 90);
  check_pivots(ctx, 200, 30);
  check_pivots(ctx, 200, 64);
  check_pivots(ctx, 620, 150);
  int order[4];
  int64_t rank = -1;
  double zero[16] = {0}, bad[4] = {NAN, 0, 0, NAN};
  CHECK_OK(ctx, unicon__tiled_dpstrf(ctx, 4, zero, order, 0, &rank));
  assert_int_equal(rank, 0);
  CHECK_OK(ctx, unicon__tiled_dpstrf(ctx, 2, bad, order, 0, &rank));
  assert_int_equal(rank, 0);
}

static void triangles_are_inverted(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t sizes[] = {1, 17, 128, 130, 300};
  set_threads(ctx, 3);
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    const int64_t n = sizes[c];
    double *l = triangle(n), *clean = without_upper(l, n), *out = support_random(9, n * n);
    double *back = support_doubles(n * n);
    unicon__tiled_inverse(ctx, n, l, n, out);
    support_product(true, false, n, n, n, clean, out, back); /* L^T L^{-T} = I */
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        CHECK_CLOSE(back[i * n + j], i == j, 1e-12);
        if (j < i) assert_true(out[i * n + j] == 0);
      }
    free(back);
    free(out);
    free(clean);
    free(l);
  }
}

/* ---- threads ------------------------------------------------------------------------------ */

/* Everything above at sizes that are cut. */
typedef struct results {
  double *gemm, *left, *right, *symv, *cholesky, *sums, *pivoted, *inverse;
  float *single;
} results;

enum { BIG = 720, WIDE = 300 };

static void compute(unicon_ctx *ctx, results *r) {
  int64_t info = -1;
  double *full, *a = support_symmetric(BIG, &full), *b = support_random(21, BIG * WIDE),
                *l = triangle(BIG);
  float *x = support_normals(22, BIG * WIDE);
  double *room = support_doubles(unicon__tiled_dsymv_room(BIG));
  r->gemm = support_doubles(BIG * WIDE);
  r->single = support_floats(BIG * BIG);
  r->left = support_random(23, BIG * WIDE);
  r->right = support_random(24, WIDE * BIG);
  r->symv = support_doubles(BIG);
  r->cholesky = support_doubles(BIG * BIG);
  unicon__tiled_dgemm(ctx, false, false, BIG, WIDE, BIG, 1, full, BIG, b, WIDE, 0, r->gemm, WIDE);
  unicon__tiled_sgemm(ctx, false, true, BIG, BIG, WIDE, 1, x, WIDE, x, WIDE, 0, r->single, BIG);
  r->sums = support_doubles(BIG * BIG);
  CHECK_OK(ctx,
           unicon__tiled_add_product(ctx, BIG, BIG, WIDE, 64, x, BIG, x, BIG, true, r->sums, BIG));
  unicon__tiled_dtrsm_left(ctx, true, BIG, WIDE, l, BIG, r->left, WIDE);
  unicon__tiled_dtrsm_right(ctx, false, WIDE, BIG, l, BIG, r->right, BIG);
  unicon__tiled_dsymv(ctx, BIG, a, BIG, b, r->symv, room);
  memcpy(r->cholesky, full, sizeof *full * BIG * BIG);
  for (int64_t i = 0; i < BIG; i++) r->cholesky[i * BIG + i] += 100;
  int order[BIG];
  r->pivoted = support_doubles(BIG * BIG);
  r->inverse = support_doubles(BIG * BIG);
  memcpy(r->pivoted, r->cholesky, sizeof *full * BIG * BIG);
  CHECK_OK(ctx, unicon__tiled_dpstrf(ctx, BIG, r->pivoted, order, 0, &info));
  assert_int_equal(info, BIG);
  unicon__tiled_inverse(ctx, BIG, r->pivoted, BIG, r->inverse);
  CHECK_OK(ctx, unicon__tiled_dpotrf(ctx, BIG, r->cholesky, BIG, &info));
  assert_int_equal(info, 0);
  free(full);
  free(a);
  free(b);
  free(l);
  free(x);
  free(room);
}

static void results_free(results *r) {
  free(r->gemm);
  free(r->left);
  free(r->right);
  free(r->symv);
  free(r->cholesky);
  free(r->sums);
  free(r->pivoted);
  free(r->inverse);
  free(r->single);
}

static void threads_change_no_byte(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  results one, many;
  set_threads(ctx, 1);
  compute(ctx, &one);
  for (int threads = 2; threads <= 5; threads++) {
    set_threads(ctx, threads);
    compute(ctx, &many);
    assert_memory_equal(one.gemm, many.gemm, sizeof *one.gemm * BIG * WIDE);
    assert_memory_equal(one.single, many.single, sizeof *one.single * BIG * BIG);
    assert_memory_equal(one.left, many.left, sizeof *one.left * BIG * WIDE);
    assert_memory_equal(one.right, many.right, sizeof *one.right * BIG * WIDE);
    assert_memory_equal(one.sums, many.sums, sizeof *one.sums * BIG * BIG);
    assert_memory_equal(one.pivoted, many.pivoted, sizeof *one.pivoted * BIG * BIG);
    assert_memory_equal(one.inverse, many.inverse, sizeof *one.inverse * BIG * BIG);
    assert_memory_equal(one.symv, many.symv, sizeof *one.symv * BIG);
    assert_memory_equal(one.cholesky, many.cholesky, sizeof *one.cholesky * BIG * BIG);
    results_free(&many);
  }
  results_free(&one);
}

/* ---- OpenBLAS ----------------------------------------------------------------------------- */

enum { TASKS_MOST = 300 };

/* Threads of this process other than the first: their numbers. */
static int other_tasks(long *task) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *e; (e = readdir(folder));) {
    const long number = strtol(e->d_name, NULL, 10);
    if (number > 0 && number != (long)getpid() && count < TASKS_MOST) task[count++] = number;
  }
  closedir(folder);
  return count;
}

/* Seconds that a thread has been running. */
static double task_time(long task) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%ld/stat", task);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  const size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = '\0';
  const char *at = strrchr(text, ')'); /* the name may hold anything */
  for (int field = 2; at && field < 14; field++) at = strchr(at + 1, ' ');
  char *end = NULL;
  const double user = at ? strtod(at, &end) : 0, system = end ? strtod(end, NULL) : 0;
  return (user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* A fit with all kinds of products leaves the threads of OpenBLAS where they are: asleep. While
 * they wait for one another they spin, and a busy neighbour turns that into lost slices. */
static void openblas_threads_stay_idle(void **state) {
  scratch *s = *state;
  long task[TASKS_MOST];
  double before = 0, after = 0;
  problem p;
  const int blas = openblas_get_num_threads();
  openblas_set_num_threads(4);
  usleep(300000);                      /* a new thread spins a while before it sleeps */
  const int tasks = other_tasks(task); /* no context has a pool yet */
  for (int k = 0; k < tasks; k++) before += task_time(task[k]);
  set_threads(s->ctx, 2);
  problem_make(s->ctx, 5, 900, 800, 780, 20, 0.3, &p);
  unicon_options *options = support_options(s->ctx, "iterations", "1", "metric", "0.3", "rank",
                                            "64", "refine", "1", NULL);
  unicon_model_destroy(support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options));
  unicon_options_destroy(options);
  problem_free(&p);
  for (int k = 0; k < tasks; k++) after += task_time(task[k]);
  CHECK_CLOSE(after, before, 0.05);
  assert_int_equal(openblas_get_num_threads(), 4);
  openblas_set_num_threads(blas);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(openblas_threads_stay_idle), /* first: no pool is there yet */
      SCRATCH_TEST(products_are_products),
      SCRATCH_TEST(sums_of_products_are_sums),
      SCRATCH_TEST(triangles_solve),
      SCRATCH_TEST(cholesky_gives_the_triangle_back),
      SCRATCH_TEST(pivots_are_found),
      SCRATCH_TEST(triangles_are_inverted),
      SCRATCH_TEST(symmetric_times_vector),
      SCRATCH_TEST(threads_change_no_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
