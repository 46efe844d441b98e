/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the stages on random data at MSCOCO size, 82 783 x 413 915 rows, 512 -> 128, on the
 * device: the best and the median of several runs after a warm-up, the floor by the operations and
 * bytes that must be, and the memory taken beyond the data. */
#include <algorithm>

#include "check.cuh"
#include "parts.cuh"

enum { NX = 82783, NY = 413915, D = 512, R = 128 };

static __device__ inline float noise(uint64_t x) {
  x = x * 6364136223846793005ull + 1442695040888963407ull;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  const float u = ((float)(x >> 40) + 0.5f) * 0x1p-24f, v = (float)(x & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

static __global__ void noise_kernel(float *out, int64_t n, uint64_t seed) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += step)
    out[k] = noise(seed + (uint64_t)k);
}

static float *random_rows(gpu *g, int64_t rows, int64_t cols, uint64_t seed) {
  float *z;
  MUST(g, gpu_new(g, &z, rows * cols));
  noise_kernel<<<part_blocks(g, rows * cols), 256, 0, g->stream>>>(z, rows * cols, seed << 40);
  MUST(g, gpu_unit_rows(g, z, rows, cols, cols, 1, NULL, NULL));
  return z;
}

/* `flops` at `rate` (TFLOP/s), `bytes` at 4.3 TB/s: the larger is the floor. */
template <class F>
static double clocked(gpu *g, const char *name, int repeat, double flops, double rate, double bytes,
                      F body) {
  doubles times;
  body();
  MUST(g, gpu_sync(g, name));
  for (int k = 0; k < repeat; k++) {
    const double start = now();
    body();
    MUST(g, gpu_sync(g, name));
    times.push_back(1e3 * (now() - start));
  }
  std::sort(times.begin(), times.end());
  const double floor = fmax(flops / rate * 1e-9, bytes / 4.3e9);
  printf("%-56s %9.2f ms (median %.2f)  floor %.2f  x%.1f\n", name, times[0],
         times[times.size() / 2], floor, times[0] / floor);
  fflush(stdout);
  return times[0];
}

/* The most room that was held at once beyond what is in use before. */
template <class F>
static void room_of(gpu *g, const char *name, F body) {
  gpu_trim(g);
  const uint64_t before = g->held;
  g->peak = g->held;
  body();
  MUST(g, gpu_sync(g, name));
  printf("%-56s %9.1f MB\n", name, 1e-6 * (double)(g->peak - before));
}

static bool wanted(const char *only, const char *name) {
  return !only || strstr(only, name);
}

static gpu_lists five_each(gpu *g) {
  numbers start, column;
  for (int64_t i = 0; i <= NX; i++) start.push_back(5 * i);
  for (int64_t j = 0; j < NY; j++) column.push_back(j);
  return {NX, put(g, start), put(g, column), put(g, doubles(NY, 1. / NY))};
}

/* ---- the closed form ------------------------------------------------------------------------ */

static void time_rows(gpu *g, float *x, float *y) {
  double *sum;
  const double bytes = 4. * NY * D;
  MUST(g, gpu_new(g, &sum, 2 * D));
  floats host((size_t)(128 << 20));
  float *to;
  MUST(g, gpu_new(g, &to, 128 << 20));
  clocked(g, "upload of 0.5 GB", 3, 0, 1, 0,
          [&] { MUST(g, gpu_upload(g, to, host.data(), host.size() * 4, 1, 0)); });
  gpu_give(g, to);
  clocked(g, "unit rows of y", 5, 0, 1, 2 * bytes,
          [&] { MUST(g, gpu_unit_rows(g, y, NY, D, D, 1, NULL, NULL)); });
  clocked(g, "sums of columns of y", 5, 0, 1, bytes,
          [&] { MUST(g, gpu_column_sums(g, y, NY, D, D, NULL, 0, 1, sum, D)); });
  (void)x;
}

static void time_products(gpu *g, const float *x, const float *y, gpu_lists w) {
  double *c;
  float *t;
  MUST(g, gpu_new(g, &c, D * D));
  MUST(g, gpu_new(g, &t, (int64_t)NX * D));
  const double fx = 2. * NX * D * D, fy = 2. * NY * D * D;
  clocked(g, "G_y, split", 5, 3 * fy, 700, 4. * NY * D,
          [&] { MUST(g, gpu_add_product_split(g, y, D, y, D, NY, D, D, 1, 1, c, D)); });
  clocked(g, "G_y, float32", 5, fy, 50, 4. * NY * D,
          [&] { MUST(g, gpu_add_product_plain(g, y, D, y, D, NY, D, D, 1, c, D)); });
  clocked(g, "T = W Y", 5, 0, 1, 4. * (NX + NY) * D,
          [&] { MUST(g, gpu_combine(g, w, y, D, D, 0, t, D)); });
  clocked(g, "C = X^T T, split", 5, 3 * fx, 700, 8. * NX * D,
          [&] { MUST(g, gpu_add_product(g, x, D, t, D, NX, D, D, 1, 0, c, D)); });
  gpu_give(g, c);
  gpu_give(g, t);
}

static double *spd(gpu *g, int64_t n) {
  float *z = random_rows(g, 4 * n, n, 77);
  double *a;
  MUST(g, gpu_new(g, &a, n * n));
  MUST(g, gpu_check(g, cudaMemsetAsync(a, 0, (size_t)(n * n) * 8, g->stream), "clock"));
  MUST(g, gpu_add_product(g, z, n, z, n, 4 * n, n, n, 1, 0, a, n));
  gpu_give(g, z);
  return a;
}

static void time_dense(gpu *g) {
  for (int64_t n : {512, 2000}) {
    const long mark = gpu_mark(g);
    double *a = spd(g, n), *b, *w, *u, *v;
    const size_t size = (size_t)(n * n) * 8;
    MUST(g, gpu_new(g, &b, n * n));
    MUST(g, gpu_new(g, &w, n));
    MUST(g, gpu_new(g, &u, n * n));
    MUST(g, gpu_new(g, &v, n * n));
    const auto fresh = [&] {
      MUST(g,
           gpu_check(g, cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, g->stream), "clock"));
    };
    printf("n = %lld, float64\n", (long long)n);
    const double cube = (double)n * n * n;
    clocked(g, "  eigenvectors", 3, 9 * cube, 50, 0, [&] {
      fresh();
      MUST(g, gpu_eigen(g, n, b, w));
    });
    clocked(g, "  singular values (polar)", 3, 20 * cube, 50, 0, [&] {
      fresh();
      MUST(g, gpu_svd(g, n, n, b, w, u, v));
    });
    clocked(g, "  the leading quarter, by A A^T", 3, 11 * cube, 50, 0,
            [&] { MUST(g, gpu_svd_top(g, n, n, a, n / 4, w, u, v)); });
    clocked(g, "  Cholesky", 3, cube / 3, 50, 0, [&] {
      fresh();
      MUST(g, gpu_cholesky(g, n, b));
    });
    clocked(g, "  L^-1 A L^-T", 3, 2 * cube, 50, 0, [&] {
      MUST(g, gpu_solve_left(g, 0, n, n, b, u));
      MUST(g, gpu_solve_right(g, 1, n, n, b, u));
    });
    gpu_release(g, mark);
  }
}

/* C += ridge on the diagonal. */
static __global__ void ridge_kernel(double *a, int64_t n, double scale, double ridge) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n * n) a[at] = a[at] * scale + (at / n == at % n ? ridge : 0);
}

static __global__ void narrow_kernel(const double *in, int64_t n, float *out) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) out[k] = (float)in[k];
}

/* Everything of preset fast but the means: covariances, C, whitening, 128 triples, embeddings. */
static void time_fast(gpu *g, const float *x, const float *y, gpu_lists w) {
  double *gx, *gy, *c, *s, *u, *v;
  float *t, *zx, *zy, *a;
  MUST(g, gpu_new(g, &gx, D * D));
  MUST(g, gpu_new(g, &gy, D * D));
  MUST(g, gpu_new(g, &c, D * D));
  MUST(g, gpu_new(g, &s, D));
  MUST(g, gpu_new(g, &u, D * R));
  MUST(g, gpu_new(g, &v, D * R));
  MUST(g, gpu_new(g, &a, D * R));
  MUST(g, gpu_new(g, &t, (int64_t)NX * D));
  MUST(g, gpu_new(g, &zx, (int64_t)NX * R));
  MUST(g, gpu_new(g, &zy, (int64_t)NY * R));
  const unsigned blocks = D * D / 256;
  const double flops = 3 * 2. * D * D * (2. * NX + NY);
  clocked(g, "preset fast: statistics to embeddings", 5, flops, 700, 4. * D * (2. * NX + NY), [&] {
    for (double *m : {gx, gy, c})
      MUST(g, gpu_check(g, cudaMemsetAsync(m, 0, D * D * 8, g->stream), "clock"));
    MUST(g, gpu_add_product(g, x, D, x, D, NX, D, D, 1, 1, gx, D));
    MUST(g, gpu_add_product(g, y, D, y, D, NY, D, D, 1, 1, gy, D));
    MUST(g, gpu_combine(g, w, y, D, D, 0, t, D));
    MUST(g, gpu_add_product(g, x, D, t, D, NX, D, D, 1, 0, c, D));
    ridge_kernel<<<blocks, 256, 0, g->stream>>>(gx, D, 1. / NX, 1e-3);
    ridge_kernel<<<blocks, 256, 0, g->stream>>>(gy, D, 1. / NY, 1e-3);
    MUST(g, gpu_cholesky(g, D, gx));
    MUST(g, gpu_cholesky(g, D, gy));
    MUST(g, gpu_solve_left(g, 0, D, D, gx, c));
    MUST(g, gpu_solve_right(g, 1, D, D, gy, c));
    MUST(g, gpu_svd_top(g, D, D, c, R, s, u, v));
    MUST(g, gpu_solve_left(g, 1, D, R, gx, u));
    MUST(g, gpu_solve_left(g, 1, D, R, gy, v));
    narrow_kernel<<<D * R / 256, 256, 0, g->stream>>>(u, D * R, a);
    MUST(g, gpu_embed(g, x, NX, D, D, a, R, 1, zx, R));
    narrow_kernel<<<D * R / 256, 256, 0, g->stream>>>(v, D * R, a);
    MUST(g, gpu_embed(g, y, NY, D, D, a, R, 1, zy, R));
  });
}

static void time_landmarks(gpu *g, const float *x, const float *y) {
  enum { M = 2000, ROWS = 32768 };
  const long mark = gpu_mark(g);
  float *factor = random_rows(g, M, M, 5), *raw, *phi;
  floats ones(M, 1);
  double *sum, *w;
  MUST(g, gpu_new(g, &raw, (int64_t)ROWS * D));
  MUST(g, gpu_new(g, &phi, (int64_t)ROWS * M));
  MUST(g, gpu_new(g, &sum, M * M));
  MUST(g, gpu_new(g, &w, M));
  gpu_map map = {1, 4, 1, 3, 1, D, M, M, y, put(g, ones), NULL, factor, NULL};
  const double n = NX + NY, flops = 2 * n * (3. * M * D + 2 * 3. * M * M * 5 / 8);
  const auto sides = [&](bool with_sum, bool with_eigen) {
    for (int side = 0; side < 2; side++) {
      const int64_t rows = side ? NY : NX;
      for (int64_t first = 0; first < rows; first += ROWS) {
        const int64_t now = gpu_least(ROWS, rows - first);
        MUST(g, gpu_check(g,
                          cudaMemcpyAsync(raw, (side ? y : x) + first * D, (size_t)(now * D) * 4,
                                          cudaMemcpyDeviceToDevice, g->stream),
                          "clock"));
        MUST(g, gpu_features(g, &map, raw, now, phi, M));
        if (with_sum) MUST(g, gpu_add_product(g, phi, M, phi, M, now, M, M, 1, 1, sum, M));
      }
      if (with_eigen) MUST(g, gpu_eigen(g, M, sum, w));
    }
  };
  MUST(g, gpu_check(g, cudaMemsetAsync(sum, 0, (size_t)M * M * 8, g->stream), "clock"));
  clocked(g, "angular, 2000 landmarks: features of both sides", 2,
          2 * n * (3. * M * D + 3. * M * M * 5 / 8), 700, 4. * n * (D + M),
          [&] { sides(false, false); });
  clocked(g, "  and covariances", 2, flops, 700, 4. * n * (D + M), [&] { sides(true, false); });
  clocked(g, "  and eigenvectors", 2, flops, 700, 4. * n * (D + M), [&] { sides(true, true); });
  gpu_release(g, mark);
}

/* ---- the plane ------------------------------------------------------------------------------ */

static void time_plane(gpu *g, const float *x, const float *y, const float *zx, const float *zy,
                       gpu_lists fixed) {
  double *out[4], *c;
  const gpu_plane plane = {zx, zy, NX, NY, R, R, R};
  for (int k = 0; k < 4; k++) MUST(g, gpu_new(g, &out[k], k < 2 ? NX : NY));
  MUST(g, gpu_new(g, &c, D * D));
  floats row(NX, 1e-10f), column(NY, 1e-10f);
  const gpu_weights w = {GPU_EXP, 10, 0, 1, put(g, row), put(g, column), fixed, 0, NX, 0, NY,
                         x,       y,  D, D};
  const double cells = (double)NX * NY;
  const int sizes[][2] = {{0, 0}, {8448, 2048}, {8448, 4096}, {16896, 4096}};
  for (int reduced = 0; reduced < 2; reduced++) {
    g->reduced = reduced;
    const double parts = reduced ? 1 : 3;
    for (int k = 0; k < 4; k++) {
      char name[100];
      g->cell_x = sizes[k][0], g->cell_y = sizes[k][1];
      snprintf(name, sizeof name, "%s, cells %lld x %lld: sums", reduced ? "reduced" : "full",
               (long long)g->cell_x, (long long)g->cell_y);
      const auto sums = [&] {
        MUST(g, gpu_exp_sums(g, &plane, 10, 0, fixed, out[0], out[1], out[2], out[3]));
      };
      const auto weights = [&] { MUST(g, gpu_weigh(g, &plane, &w, c, NULL)); };
      const double one = clocked(g, name, 2, parts * 2 * R * cells, 700, 0, sums);
      const double two =
          clocked(g, "  weights and C", 2, parts * 2 * (R + D) * cells, 700, 0, weights);
      printf("  together %.1f ms\n", one + two);
      room_of(g, "  extra room, sums", sums);
      room_of(g, "  extra room, weights", weights);
      if (k == 0)
        clocked(g, "  sums, shifted", 1, 2 * parts * 2 * R * cells, 700, 0, [&] {
          MUST(g, gpu_exp_sums(g, &plane, 100, 1, fixed, out[0], out[1], out[2], out[3]));
        });
    }
  }
  g->reduced = 0, g->cell_x = g->cell_y = 0;
}

/* ---- use ------------------------------------------------------------------------------------ */

static void time_use(gpu *g, const float *zx, const float *zy) {
  const long mark = gpu_mark(g);
  float *out;
  MUST(g, gpu_new(g, &out, NY));
  const double f = 3 * 2. * NY * 4096 * R;
  clocked(g, "biases of y by 4096 rows, softmax 10", 5, f, 700, 8. * NY * 4096,
          [&] { MUST(g, gpu_bias(g, zy, NY, R, zx, 4096, R, R, 0, 10, out)); });
  clocked(g, "biases of y by 4096 rows, csls 10", 3, f, 700, 8. * NY * 4096,
          [&] { MUST(g, gpu_bias(g, zy, NY, R, zx, 4096, R, R, 1, 10, out)); });
  gpu_release(g, mark);
  const int64_t n = 1000000, q = 10000, r = 256, k = 10;
  float *base = random_rows(g, n, r, 9);
  double *score;
  int64_t *id;
  MUST(g, gpu_new(g, &score, q * k));
  MUST(g, gpu_new(g, &id, q * k));
  const gpu_scores s = {base + 1000 * r, base, q, n, r, r, r, 0, NULL};
  const int sizes[][2] = {{0, 0}, {10000, 16384}, {10000, 8192}};
  for (int c = 0; c < 3; c++) {
    char name[100];
    g->search_x = sizes[c][0], g->search_y = sizes[c][1];
    snprintf(name, sizeof name, "top 10 of 10 000 x 1M, r 256, blocks %lld x %lld",
             (long long)g->search_x, (long long)g->search_y);
    const auto search = [&] {
      MUST(g, gpu_check(g, cudaMemsetAsync(id, 255, (size_t)(q * k) * 8, g->stream), "clock"));
      MUST(g, gpu_nearest(g, &s, k, score, id));
    };
    clocked(g, name, 3, 2. * q * n * r, 700, 0, search);
    room_of(g, "  extra room", search);
  }
  g->search_x = g->search_y = 0;
  numbers start;
  doubles threshold;
  const int64_t ranked = 40000;
  for (int64_t i = 0; i <= ranked; i++) start.push_back(i);
  for (int64_t i = 0; i < ranked; i++) threshold.push_back(.05 + .2 * (i % 2));
  int64_t *above = put(g, numbers(ranked, 0)), *ds = put(g, start);
  double *dt = put(g, threshold);
  const gpu_scores many = {base, base, ranked, n, r, r, r, 0, NULL};
  for (int c = 0; c < 3; c++) {
    g->search_x = c == 0 ? 0 : c == 1 ? 8192 : 16384;
    g->search_y = c == 0 ? 0 : c == 1 ? 16384 : 8192;
    char name[100];
    snprintf(name, sizeof name, "ranks of 40 000 x 1M, r 256, blocks %lld x %lld (1M x 1M: x 25)",
             (long long)g->search_x, (long long)g->search_y);
    clocked(g, name, 1, 3 * 2. * ranked * n * r, 700, 0, [&] {
      const gpu_ranked by = {dt, above, NULL, NULL, 0, NULL, NULL};
      MUST(g, gpu_ranks(g, &many, ds, {ranked, NULL, NULL, NULL}, &by, 1));
    });
  }
  g->search_x = g->search_y = 0;
  gpu_ranked both[2] = {{dt, above, NULL, NULL, k, NULL, NULL}, {dt, above, NULL, NULL, k, NULL, NULL}};
  for (auto &by : both) {
    MUST(g, gpu_new(g, &by.score, ranked * k));
    MUST(g, gpu_new(g, &by.id, ranked * k));
  }
  clocked(g, "ranks and top 10, by all columns and all but one (1M x 1M: x 25)", 1,
          3 * 2. * ranked * n * r, 700, 0, [&] {
            for (auto &by : both)
              MUST(g, gpu_check(g, cudaMemsetAsync(by.id, 255, (size_t)(ranked * k) * 8, g->stream),
                                "clock"));
            MUST(g, gpu_ranks(g, &many, ds, {ranked, NULL, NULL, NULL}, both, 2));
          });
  gpu_release(g, mark);
}

void time_all(gpu *g, const char *only) {
  float *x = random_rows(g, NX, D, 1), *y = random_rows(g, NY, D, 2);
  float *zx = random_rows(g, NX, R, 3), *zy = random_rows(g, NY, R, 4);
  const gpu_lists w = five_each(g);
  if (wanted(only, "rows")) time_rows(g, x, y);
  if (wanted(only, "products")) time_products(g, x, y, w);
  if (wanted(only, "dense")) time_dense(g);
  if (wanted(only, "fast")) time_fast(g, x, y, w);
  if (wanted(only, "landmarks")) time_landmarks(g, x, y);
  if (wanted(only, "plane")) time_plane(g, x, y, zx, zy, w);
  if (wanted(only, "use")) time_use(g, zx, zy);
}
