/* SPDX-License-Identifier: Apache-2.0 */
/* Maps between models against the definition: the normal equations, bordered for the free offset,
 * solved by elimination in float64; and predictions without a fold against fits without it.
 *
 * Tolerance 5e-5: predictions are float32 vectors of length 1 (6e-8); features of landmarks are
 * float32 too, and their factor, of a kernel whose condition is 1e5 at most here, amplifies that
 * to 1e-5 or so; the largest eigenvalue is good to 1e-5 where two are close. */
#include "support.h"
#include "use/regress.h"

enum { N = 40, D = 5, E = 3, M = 12, JUDGED = 35, FOLDS = 4 };
static const double close_to = 5e-5;

/* Rows of length 1; Y is a bent function of X. */
static void make(float *x, float *y) {
  uint64_t seed = 3;
  double mix[D * E];
  for (int k = 0; k < D * E; k++) mix[k] = support_normal(&seed);
  for (int i = 0; i < N; i++) {
    double length = 0, row[E] = {0}, other = 0;
    for (int k = 0; k < D; k++) {
      x[i * D + k] = (float)(support_normal(&seed) + 1);
      length += (double)x[i * D + k] * (double)x[i * D + k];
    }
    for (int k = 0; k < D; k++) x[i * D + k] = (float)((double)x[i * D + k] / sqrt(length));
    for (int j = 0; j < E; j++) {
      for (int k = 0; k < D; k++) row[j] += (double)x[i * D + k] * mix[k * E + j];
      row[j] = row[j] * fabs(row[j]) + 0.3 * support_normal(&seed);
      other += row[j] * row[j];
    }
    for (int j = 0; j < E; j++) y[i * E + j] = (float)(row[j] / sqrt(other));
  }
}

/* Solves A X = B (size by size, size by E) with pivoting; both are destroyed, X is in b. */
static void eliminate(double *a, double *b, int size) {
  for (int c = 0; c < size; c++) {
    int p = c;
    for (int i = c + 1; i < size; i++)
      if (fabs(a[i * size + c]) > fabs(a[p * size + c])) p = i;
    for (int k = 0; k < size; k++) {
      const double t = a[c * size + k];
      a[c * size + k] = a[p * size + k];
      a[p * size + k] = t;
    }
    for (int k = 0; k < E; k++) {
      const double t = b[c * E + k];
      b[c * E + k] = b[p * E + k];
      b[p * E + k] = t;
    }
    for (int i = 0; i < size; i++) {
      const double f = i == c ? 0 : a[i * size + c] / a[c * size + c];
      for (int k = 0; k < size; k++) a[i * size + k] -= f * a[c * size + k];
      for (int k = 0; k < E; k++) b[i * E + k] -= f * b[c * E + k];
    }
  }
  for (int i = 0; i < size; i++)
    for (int k = 0; k < E; k++) b[i * E + k] /= a[i * size + i];
}

static double largest_eigenvalue(const double *a, int size) {
  double v[N], w[N], length = 0;
  for (int i = 0; i < size; i++) v[i] = 1;
  for (int step = 0; step < 5000; step++) {
    length = 0;
    for (int i = 0; i < size; i++) {
      w[i] = 0;
      for (int k = 0; k < size; k++) w[i] += a[i * size + k] * v[k];
      length += w[i] * w[i];
    }
    length = sqrt(length);
    for (int i = 0; i < size; i++) v[i] = w[i] / length;
  }
  return length;
}

/* Prediction of row `at` by a kernel map of all rows but those of a fold (-1: none), lambda given.
 */
static void naive_kernel(const double *k, const float *y, double lambda, int fold, int at,
                         double *out) {
  double a[(N + 1) * (N + 1)] = {0}, b[(N + 1) * E] = {0}, length = 0;
  int row[N], n = 0;
  for (int i = 0; i < N; i++)
    if (fold < 0 || i < JUDGED * fold / FOLDS || i >= JUDGED * (fold + 1) / FOLDS) row[n++] = i;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) a[i * (n + 1) + j] = k[row[i] * N + row[j]] + (i == j ? lambda : 0);
    a[i * (n + 1) + n] = a[n * (n + 1) + i] = 1;
    for (int j = 0; j < E; j++) b[i * E + j] = (double)y[row[i] * E + j];
  }
  eliminate(a, b, n + 1);
  for (int j = 0; j < E; j++) {
    out[j] = b[n * E + j];
    for (int i = 0; i < n; i++) out[j] += k[at * N + row[i]] * b[i * E + j];
    length += out[j] * out[j];
  }
  for (int j = 0; j < E; j++) out[j] /= sqrt(length);
}

/* The fold of a row; -1: it is not judged. */
static int fold_of(int row) {
  for (int f = 0; f < FOLDS; f++)
    if (row < JUDGED * (f + 1) / FOLDS) return f;
  return -1;
}

/* Checks both kinds of prediction against the kernel matrix k and its lambda. */
static void check_against(unicon_ctx *ctx, const unicon__recipe *recipe, int64_t anchors,
                          const float *x, const float *y, const double *k, double lambda) {
  const unicon__regress_data data = {N, D, E, x, y, anchors, JUDGED, FOLDS};
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__regress *r = NULL;
  unicon__regression map;
  float left[N * E], all[N * E];
  double by_hand[E];
  CHECK_OK(ctx, unicon__regress_open(ctx, &data, recipe, &r));
  CHECK_OK(ctx, unicon__regress_fit(ctx, r, recipe->ridge, left, &map));
  CHECK_OK(ctx, unicon__regress_apply(ctx, recipe, &map, D, E, x, N, all));
  for (int i = 0; i < N; i++) {
    naive_kernel(k, y, lambda, -1, i, by_hand);
    for (int j = 0; j < E; j++) CHECK_CLOSE(all[i * E + j], by_hand[j], close_to);
    const int fold = fold_of(i);
    if (fold < 0) continue;
    naive_kernel(k, y, lambda, fold, i, by_hand);
    for (int j = 0; j < E; j++) CHECK_CLOSE(left[i * E + j], by_hand[j], close_to);
  }
  unicon__regress_close(ctx, r);
  unicon__frame_close(ctx, frame);
}

static void kernel_of(const unicon__kernel *kernel, const float *x, double *k) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double dot = 0;
      for (int t = 0; t < D; t++) dot += (double)x[i * D + t] * (double)x[j * D + t];
      k[i * N + j] =
          i == j ? unicon__kernel_value(kernel, 1, 1, 1) : unicon__kernel_value(kernel, dot, 1, 1);
    }
}

static void kernel_map_is_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const unicon__kernel kernels[] = {{UNICON__KERNEL_ARCCOS1, 1, 1},
                                           {UNICON__KERNEL_RBF, 0.8, 1}};
  float x[N * D], y[N * E];
  double k[N * N];
  make(x, y);
  for (int t = 0; t < 4; t++) {
    const unicon__recipe recipe = {UNICON__BY_KERNEL, kernels[t % 2], t < 2 ? 1e-2 : 1e-4};
    kernel_of(&recipe.kernel, x, k);
    check_against(ctx, &recipe, N, x, y, k, recipe.ridge * largest_eigenvalue(k, N));
  }
}

/* A ridge is the kernel map of centred products, lambda from the largest eigenvalue of X'^T X'. */
static void ridge_is_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float x[N * D], y[N * E];
  double k[N * N], mean[D] = {0};
  make(x, y);
  for (int i = 0; i < N * D; i++) mean[i % D] += (double)x[i] / N;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      k[i * N + j] = 0;
      for (int t = 0; t < D; t++)
        k[i * N + j] += ((double)x[i * D + t] - mean[t]) * ((double)x[j * D + t] - mean[t]);
    }
  for (int t = 0; t < 3; t++) {
    const unicon__recipe recipe = {UNICON__BY_RIDGE, {UNICON__KERNEL_LINEAR, 1, 1}, pow(10, -t)};
    check_against(ctx, &recipe, N, x, y, k, recipe.ridge * largest_eigenvalue(k, N));
  }
}

/* With landmarks the kernel is k(x, L) K_L^-1 k(L, x), centred features give its largest
 * eigenvalue. */
static void landmarks_are_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const unicon__recipe recipe = {UNICON__BY_KERNEL, {UNICON__KERNEL_ARCCOS1, 1, 1}, 1e-2};
  float x[N * D], y[N * E];
  double whole[N * N], k[N * N], centred[N * N], a[N * N], b[N * E], mean[N] = {0}, all = 0;
  make(x, y);
  kernel_of(&recipe.kernel, x, whole);
  for (int j = 0; j < N; j += E) { /* E columns of K_L^-1 k(L, x) at a time */
    for (int s = 0; s < M; s++) {
      const int row = s * N / M;
      for (int t = 0; t < M; t++) a[s * M + t] = whole[row * N + t * N / M] + (s == t ? 1e-6 : 0);
      for (int c = 0; c < E; c++) b[s * E + c] = j + c < N ? whole[row * N + j + c] : 0;
    }
    eliminate(a, b, M);
    for (int i = 0; i < N; i++)
      for (int c = 0; c < E && j + c < N; c++) {
        k[i * N + j + c] = 0;
        for (int s = 0; s < M; s++) k[i * N + j + c] += whole[i * N + s * N / M] * b[s * E + c];
      }
  }
  for (int i = 0; i < N * N; i++) mean[i / N] += k[i] / N;
  for (int i = 0; i < N; i++) all += mean[i] / N;
  for (int i = 0; i < N * N; i++) centred[i] = k[i] - mean[i / N] - mean[i % N] + all;
  check_against(ctx, &recipe, M, x, y, k, recipe.ridge * largest_eigenvalue(centred, N));
}

/* The rotation that made Y from X is found, wider and narrower, and predicts rows left out. */
static void procrustes_finds_a_rotation(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { WIDE = 7 };
  const unicon__recipe recipe = {UNICON__BY_PROCRUSTES, {UNICON__KERNEL_LINEAR, 1, 1}, 0};
  uint64_t seed = 8;
  float x[N * D], y[N * WIDE], left[N * WIDE], all[N * WIDE];
  double *q = support_orthonormal(4, WIDE, D);
  for (int i = 0; i < N; i++) {
    double length = 0;
    for (int k = 0; k < D; k++) {
      x[i * D + k] = (float)support_normal(&seed);
      length += (double)x[i * D + k] * (double)x[i * D + k];
    }
    for (int k = 0; k < D; k++) x[i * D + k] = (float)((double)x[i * D + k] / sqrt(length));
    for (int j = 0; j < WIDE; j++) {
      double sum = 0;
      for (int k = 0; k < D; k++) sum += (double)x[i * D + k] * q[j * D + k];
      y[i * WIDE + j] = (float)sum;
    }
  }
  for (int back = 0; back < 2; back++) {
    const int64_t d = back ? WIDE : D, e = back ? D : WIDE;
    const unicon__regress_data data = {N, d, e, back ? y : x, back ? x : y, N, JUDGED, FOLDS};
    unicon__block *frame = unicon__frame_open(ctx);
    unicon__regress *r = NULL;
    unicon__regression map;
    CHECK_OK(ctx, unicon__regress_open(ctx, &data, &recipe, &r));
    CHECK_OK(ctx, unicon__regress_fit(ctx, r, 0, left, &map));
    CHECK_OK(ctx, unicon__regress_apply(ctx, &recipe, &map, d, e, data.x, N, all));
    for (int64_t k = 0; k < N * e; k++) {
      CHECK_CLOSE(all[k], data.y[k], 1e-5);
      if (k < JUDGED * e) CHECK_CLOSE(left[k], data.y[k], 1e-5);
    }
    unicon__frame_close(ctx, frame);
  }
  free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(kernel_map_is_the_definition), SCRATCH_TEST(ridge_is_the_definition),
      SCRATCH_TEST(landmarks_are_the_definition), SCRATCH_TEST(procrustes_finds_a_rotation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
