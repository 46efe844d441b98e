/* SPDX-License-Identifier: Apache-2.0 */
/* Randomly pivoted Cholesky: what it says is left is what is left, it leaves less than uniform
 * landmarks, rows are picked once, copies of a row not at all, and a seed settles everything. */
#include "features/mapfit.h"
#include "linalg/blas.h"
#include "support.h"

enum { D = 6 };

/* n rows: nine tenths around one direction, the rest anywhere. */
static float *uneven_rows(uint64_t seed, int64_t n) {
  float *x = support_normals(seed, n * D);
  for (int64_t i = 0; i < n; i++)
    if (i % 10) x[i * D] += 6;
  return x;
}

/* Share of trace K that the landmarks leave unexplained, in float64 by Gram-Schmidt: column by
 * column with the largest pivot first, until 1e-10 of the trace. */
static double share_left(const unicon__kernel *kernel, const float *x, int64_t n,
                         const int64_t *row, int64_t m) {
  double *unit = support_doubles(n * D), *left = support_doubles(n), *f = support_doubles(n * m);
  bool *used = calloc((size_t)m, sizeof *used);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int k = 0; k < D; k++) sum += (double)x[i * D + k] * (double)x[i * D + k];
    for (int k = 0; k < D; k++) unit[i * D + k] = (double)x[i * D + k] / sqrt(sum);
    left[i] = unicon__kernel_value(kernel, 1, 1, 1);
  }
  const double own = left[0];
  for (int64_t t = 0; t < m; t++) {
    int64_t best = -1;
    for (int64_t a = 0; a < m; a++)
      if (!used[a] && (best < 0 || left[row[a]] > left[row[best]])) best = a;
    used[best] = true;
    const int64_t p = row[best];
    if (left[p] < 1e-10 * own) break;
    const double root = sqrt(left[p]);
    for (int64_t i = 0; i < n; i++) {
      double dot = 0, value;
      for (int k = 0; k < D; k++) dot += unit[i * D + k] * unit[p * D + k];
      value = unicon__kernel_value(kernel, i == p ? 1 : dot, 1, 1);
      for (int64_t k = 0; k < t; k++) value -= f[i * m + k] * f[p * m + k];
      f[i * m + t] = value / root;
    }
    for (int64_t i = 0; i < n; i++) left[i] -= f[i * m + t] * f[i * m + t];
  }
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += left[i] > 0 ? left[i] : 0;
  free(unit);
  free(left);
  free(f);
  free(used);
  return sum / own / (double)n;
}

typedef struct choice {
  int64_t row[512], count;
  double left;
} choice;

static void pick(unicon_ctx *ctx, const unicon__kernel *kernel, const float *x, int64_t n,
                 int64_t wanted, uint64_t seed, choice *out) {
  unicon_rows *rows = support_rows(ctx, "x", x, n, D);
  const unicon__source source = {.rows = rows, .count = n};
  unicon__block *frame = unicon__frame_open(ctx);
  assert_true(wanted <= 512);
  CHECK_OK(ctx, unicon__pivot_rows(ctx, &source, kernel, true, wanted, seed, 11, out->row,
                                   &out->count, &out->left));
  unicon__frame_close(ctx, frame);
  unicon_rows_close(rows);
  assert_true(out->count >= 1 && out->count <= wanted);
  for (int64_t k = 0; k < out->count; k++) {
    assert_true(out->row[k] >= 0 && out->row[k] < n);
    assert_true(k == 0 || out->row[k] > out->row[k - 1]); /* ascending, so none twice */
  }
}

static const unicon__kernel kernels[] = {{UNICON__KERNEL_ARCCOS1, 1, 1},
                                         {UNICON__KERNEL_RBF, 0.5, 1},
                                         {UNICON__KERNEL_MATERN32, 0.5, 1},
                                         {UNICON__KERNEL_ARCCOS2, 1, 1}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* At 20, 64 and 150 landmarks (less than a block, a block, several) and five seeds: the mean of
 * what is left is below that of uniform rows, and the share it reports is the true one to 1e-5, the
 * sum of float32 errors of f. */
static void leaves_less_than_uniform(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 600 };
  static const int64_t counts[3] = {20, 100, 200};
  float *x = uneven_rows(1, N);
  int failures = 0;
  for (int c = 0; c < KERNELS; c++)
    for (int t = 0; t < 3; t++) {
      double pivoted = 0, uniform = 0;
      for (uint64_t seed = 1; seed <= 5; seed++) {
        choice found;
        int64_t order[N];
        uint64_t draw = seed;
        pick(ctx, &kernels[c], x, N, counts[t], seed, &found);
        const double left = share_left(&kernels[c], x, N, found.row, found.count);
        CHECK_CLOSE(found.left, left, 1e-5);
        pivoted += left / 5;
        for (int64_t k = 0; k < N; k++) order[k] = k;
        for (int64_t k = 0; k < counts[t]; k++) {
          const int64_t other = k + (int64_t)(support_uniform(&draw) * (double)(N - k));
          const int64_t held = order[k];
          order[k] = order[other];
          order[other] = held;
        }
        uniform += share_left(&kernels[c], x, N, order, counts[t]) / 5;
      }
      /* Few picks see an almost flat residual: no worse than chance is all one can ask of them. */
      if (counts[t] < 64) uniform *= 1.15;
      if (!(pivoted < uniform))
        print_error("kernel %d, %lld landmarks: %g pivoted, %g uniform\n", c, (long long)counts[t],
                    pivoted, uniform);
      failures += !(pivoted < uniform);
    }
  free(x);
  assert_int_equal(failures, 0);
}

static void seed_settles_the_choice(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 700 };
  float *x = uneven_rows(2, N);
  for (int c = 0; c < KERNELS; c++) {
    choice first, again, other;
    unicon__ctx_set_threads(ctx, 1);
    pick(ctx, &kernels[c], x, N, 100, 5, &first);
    pick(ctx, &kernels[c], x, N, 100, 6, &other);
    for (int threads = 1; threads <= 3; threads++) {
      unicon__ctx_set_threads(ctx, threads);
      pick(ctx, &kernels[c], x, N, 100, 5, &again);
      assert_int_equal(first.count, again.count);
      assert_memory_equal(first.row, again.row, (size_t)first.count * sizeof *first.row);
      assert_true(first.left == again.left);
    }
    assert_memory_not_equal(first.row, other.row, 100 * sizeof *first.row);
  }
  free(x);
}

/* 40 rows, each eight times: no row and its copy, nothing left, and a number of landmarks that is
 * at most 40 although more were asked for. */
static void copies_are_not_picked(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { BASE = 40, N = 320 };
  float *x = support_normals(3, N * D);
  for (int k = BASE * D; k < N * D; k++) x[k] = x[k - BASE * D];
  for (int c = 0; c < KERNELS; c++)
    for (uint64_t seed = 1; seed <= 4; seed++) {
      choice found;
      bool used[BASE] = {false};
      pick(ctx, &kernels[c], x, N, 200, seed, &found);
      assert_true(found.count <= BASE);
      for (int64_t k = 0; k < found.count; k++) {
        assert_false(used[found.row[k] % BASE]);
        used[found.row[k] % BASE] = true;
      }
      assert_true(found.left < 1e-3);
      CHECK_CLOSE(found.left, share_left(&kernels[c], x, N, found.row, found.count), 1e-5);
    }
  free(x);
}

/* A linear kernel has D dimensions: D landmarks, and the rest is explained. One row is enough when
 * all are the same. */
static void few_directions_need_few_landmarks(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 300 };
  const unicon__kernel linear = {UNICON__KERNEL_LINEAR, 1, 1};
  float *x = support_normals(4, N * D);
  choice found;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    pick(ctx, &linear, x, N, 100, seed, &found);
    assert_int_equal(found.count, D);
    CHECK_CLOSE(found.left, 0, 1e-5);
  }
  for (int k = D; k < N * D; k++) x[k] = x[k % D];
  for (int c = 0; c < KERNELS; c++) {
    pick(ctx, &kernels[c], x, N, 10, 1, &found);
    assert_int_equal(found.count, 1);
    CHECK_CLOSE(found.left, 0, 1e-5);
  }
  free(x);
}

/* The fit says how much is left. */
static void fit_says_what_is_left(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, 300, 8, 7, 4, 0.3, &p);
  log_book book = {0};
  unicon_ctx_set_log(s->ctx, support_log, &book);
  unicon_options *options =
      support_options(s->ctx, "preset", "fast", "kernel", "angular", "map", "nystrom", "landmarks",
                      "40", "landmark_method", "pivot", NULL);
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  assert_non_null(strstr(book.last[UNICON_LOG_INFO], "y: 40 pivoted landmarks leave "));
  int64_t count;
  float *landmarks = support_tensor(s, model, "x.landmarks", &count);
  assert_int_equal(count, 40 * 8);
  free(landmarks);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(leaves_less_than_uniform), SCRATCH_TEST(seed_settles_the_choice),
      SCRATCH_TEST(copies_are_not_picked),    SCRATCH_TEST(few_directions_need_few_landmarks),
      SCRATCH_TEST(fit_says_what_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
