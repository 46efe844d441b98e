/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of the plugin against plain loops in float64 on small sets, ties, lists, windows and
 * odd sizes included; the same bytes twice; every call failing once.
 *
 *     cuda_check           the checks
 *     cuda_check --quick   without failing calls (for compute-sanitizer)
 *     cuda_check --time    the stages at MSCOCO size, instead */
#include "check.cuh"

int check_failures = 0;
uint64_t check_seed = 20240229;

/* ---- rows ----------------------------------------------------------------------------------- */

static void check_rows(gpu *g) {
  const int64_t n = 1037, d = 77;
  const long mark = gpu_mark(g);
  floats x = normals(n * d, &check_seed);
  for (int64_t k = 0; k < d; k++) x[3 * d + k] = 0, x[5 * d + k] *= 1e30f, x[7 * d + k] *= 1e-30f;
  std::vector<__half> h;
  for (float v : x) h.push_back(__float2half(v));
  float *out = put(g, x), *square;
  MUST(g, gpu_convert(g, put(g, h), 0, n * d, out));
  floats want;
  for (auto v : h) want.push_back(__half2float(v));
  floats seen = get(g, out, x.size());
  double off = 0;
  for (size_t k = 0; k < seen.size(); k++) off += memcmp(&seen[k], &want[k], 4) != 0;
  report("float16 to float32: entries that differ", off, 0);
  floats shift = normals(d, &check_seed);
  float *z = put(g, x);
  MUST(g, gpu_new(g, &square, n));
  MUST(g, gpu_unit_rows(g, z, n, d, d, 1, put(g, shift), square));
  floats made(x.size()), squares;
  for (int64_t i = 0; i < n; i++) {
    double sum = 0, after = 0;
    for (int64_t k = 0; k < d; k++) sum += (double)x[i * d + k] * x[i * d + k];
    for (int64_t k = 0; k < d; k++) {
      made[i * d + k] = (float)(x[i * d + k] / (sum > 0 ? sqrt(sum) : 1) - shift[k]);
      after += (double)made[i * d + k] * made[i * d + k];
    }
    squares.push_back((float)after);
  }
  report("unit rows, shifted", gap(get(g, z, x.size()), made), 2e-7);
  report("their squared lengths", gap(get(g, square, (size_t)n), squares), 2e-6);
  doubles weight, sums(4 * 80, 1), expect(4 * 80, 1);
  for (int64_t i = 0; i < 2 * n; i++) weight.push_back(uniform(&check_seed));
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < d; k++) {
      const double v = made[i * d + k];
      expect[k] -= v, expect[80 + k] -= v * v;
      expect[160 + k] -= weight[i] * v, expect[240 + k] -= weight[n + i] * v;
    }
  double *sum = put(g, sums);
  MUST(g, gpu_column_sums(g, put(g, made), n, d, d, put(g, weight), 2, -1, sum, 80));
  report("sums of columns", gap(get(g, sum, sums.size()), expect), 1e-13);
  sum = put(g, sums);
  g->sum_rows = 300;
  MUST(g, gpu_column_sums(g, put(g, made), n, d, d, put(g, weight), 2, -1, sum, 80));
  g->sum_rows = 0;
  report("  by pieces", gap(get(g, sum, sums.size()), expect), 1e-13);
  gpu_release(g, mark);
}

/* There and back through the pinned buffers: many rows, rows longer than a buffer, gaps between rows. */
static void check_copies(gpu *g) {
  for (int64_t cols : {10007, 5000011}) {
    const long mark = gpu_mark(g);
    const int64_t rows = cols < 100000 ? 1301 : 3, gap = 3;
    const size_t row = (size_t)cols * sizeof(float);
    floats there((size_t)(rows * cols)), wide((size_t)(rows * (cols + gap)), -1);
    for (size_t k = 0; k < there.size(); k++) there[k] = (float)(k % 1000003);
    float *data = put(g, there);
    double wrong = get(g, data, there.size()) != there;
    MUST(g, gpu_download_rows(g, wide.data(), data, row, rows, (int64_t)row + 4 * gap));
    for (int64_t i = 0; i < rows; i++) {
      wrong += memcmp(&wide[i * (cols + gap)], &there[i * cols], row) != 0;
      wrong += wide[i * (cols + gap) + cols] != -1;
    }
    MUST(g, gpu_upload(g, data, wide.data(), row, rows, (int64_t)row + 4 * gap));
    wrong += get(g, data, there.size()) != there;
    report("copies there and back: differ", wrong, 0);
    gpu_release(g, mark);
  }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Columns of many sizes, most of them nearly constant: the rounding of a constant is no chance, and
 * takes up to 2^-19 of it. */
static void check_sums_of_products(gpu *g, bool same, bool split) {
  const int64_t n = 2500, p = 1100, q = same ? p : 50;
  const long mark = gpu_mark(g);
  floats a = normals(n * p, &check_seed), b = same ? a : normals(n * q, &check_seed);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < p; k++) a[i * p + k] = a[i * p + k] * powf(10, -(float)(k % 7)) + .1f;
  if (same) b = a;
  const doubles sum((size_t)(p * q), 0.25);
  double *out = put(g, sum), most = 0;
  float *da = put(g, a), *db = same ? da : put(g, b);
  if (split)
    MUST(g, gpu_add_product_split(g, da, p, db, q, n, p, q, -1, same, out, q));
  else
    MUST(g, gpu_add_product(g, da, p, db, q, n, p, q, -1, same, out, q));
  doubles seen = get(g, out, sum.size());
  for (int64_t i = 0; i < p; i += 13)
    for (int64_t j = 0; j < q && (!same || j <= i); j++) {
      double total = 0, scale = 0, other = 0;
      for (int64_t k = 0; k < n; k++) {
        total += (double)a[k * p + i] * b[k * q + j];
        scale += (double)a[k * p + i] * a[k * p + i];
        other += (double)b[k * q + j] * b[k * q + j];
      }
      most = fmax(most, fabs(seen[i * q + j] - (.25 - total)) / sqrt(scale * other));
    }
  char name[80];
  snprintf(name, sizeof name, "sum of a^T %s, of the lengths%s", same ? "a" : "b",
           split ? ", split" : "");
  report(name, most, split ? 2e-6 : 1e-6);
  gpu_release(g, mark);
}

static void check_products(gpu *g) {
  const long mark = gpu_mark(g);
  for (int64_t k : {5, 128, 600, 1100}) {
    const int64_t m = 70, n = 90, width = gpu_split_width(k, 3);
    floats a = normals(m * k, &check_seed), b = normals(n * k, &check_seed);
    unit(a, k), unit(b, k);
    __half *left, *right;
    float *c;
    MUST(g, gpu_new(g, &left, m * width));
    MUST(g, gpu_new(g, &right, n * width));
    MUST(g, gpu_new(g, &c, m * 96));
    MUST(g, gpu_check(g, cudaMemsetAsync(c, 0, (size_t)(m * 96) * 4, g->stream), "check"));
    MUST(g, gpu_split_rows(g, put(g, a), m, k, k, GPU_LEFT, 3, GPU_SPLIT_SCALE, left));
    floats turned((size_t)(n * k));
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < k; j++) turned[j * n + i] = b[i * k + j];
    if (k == 600)
      MUST(g, gpu_split_columns(g, put(g, turned), k, n, n, 3, GPU_SPLIT_SCALE, right));
    else
      MUST(g, gpu_split_rows(g, put(g, b), n, k, k, GPU_RIGHT, 3, GPU_SPLIT_SCALE, right));
    MUST(g, gpu_gemm16(g, CUDA_R_16F, 0, 1, m, n, width, 0x1p-16f, left, width, right, width, 0, c,
                       CUDA_R_32F, 96));
    floats seen = get(g, c, (size_t)(m * 96));
    double most = 0;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        most = fmax(most, fabs(seen[i * 96 + j] - dot(&a[i * k], &b[j * k], k)));
    char name[80];
    snprintf(name, sizeof name, "split product of unit rows of %lld", (long long)k);
    report(name, most, fmin(gpu_split_error(k), 5e-7));
  }
  for (int same = 0; same < 4; same++) check_sums_of_products(g, same & 1, same & 2);
  gpu_release(g, mark);
}

static void check_lists(gpu *g) {
  const long mark = gpu_mark(g);
  const int64_t n = 300, m = 200, p = 131;
  floats y = normals(m * p, &check_seed), want((size_t)(n * p), 0);
  numbers start(1, 0), column;
  doubles value;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < m; j++)
      if (uniform(&check_seed) < (i % 3) * .02) {
        column.push_back(j);
        value.push_back(uniform(&check_seed));
        for (int64_t k = 0; k < p; k++) want[i * p + k] += (float)(value.back() * y[j * p + k]);
      }
    start.push_back((int64_t)column.size());
  }
  float *t;
  MUST(g, gpu_new(g, &t, n * p));
  const gpu_lists w = {n, put(g, start), put(g, column), put(g, value)};
  MUST(g, gpu_combine(g, w, put(g, y), p, p, 0, t, p));
  report("T = W Y", gap(get(g, t, (size_t)(n * p)), want), 1e-6);
  numbers row;
  for (int k = 0; k < 50; k++) row.push_back((int64_t)(uniform(&check_seed) * m));
  MUST(g, gpu_gather(g, put(g, y), p, p, put(g, row), 50, t, p));
  floats seen = get(g, t, (size_t)(50 * p));
  double off = 0;
  for (int k = 0; k < 50; k++)
    off += memcmp(&seen[(size_t)(k * p)], &y[(size_t)(row[k] * p)], (size_t)p * 4) != 0;
  report("rows picked: that differ", off, 0);
  gpu_release(g, mark);
}

/* ---- features ------------------------------------------------------------------------------- */

static double kernel_value(int kind, double l, int degree, double t, double sx, double sy) {
  const double pi = 3.14159265358979323846, lengths = sqrt(sx * sy);
  double c = lengths > 0 ? t / lengths : 0;
  c = c > 1 ? 1 : c < -1 ? -1 : c;
  const double th = acos(c), sine = sqrt((1 - c) * (1 + c)), d = sqrt(fmax(sx + sy - 2 * t, 0));
  if (kind == 0) return t;
  if (kind == 1) return c;
  if (kind == 3) return 1 - th / pi;
  if (kind == 4) return lengths * (sine + (pi - th) * c) / pi;
  if (kind == 5) return sx * sy * (3 * sine * c + (pi - th) * (1 + 2 * c * c)) / (3 * pi);
  if (kind == 6) return exp(c / (l * l));
  if (kind == 7) return exp(-d * d / (2 * l * l));
  if (kind == 8) return exp(-d / l);
  if (kind == 10) return (1 + sqrt(3.) * d / l) * exp(-sqrt(3.) * d / l);
  if (kind == 11) return (1 + sqrt(5.) * d / l + 5 * d * d / (3 * l * l)) * exp(-sqrt(5.) * d / l);
  return pow((1 + t) / 2, degree);
}

static void check_kernels(gpu *g) {
  const int64_t n = 600, d = 40, m = 530;
  for (int kind : {0, 1, 3, 4, 5, 6, 7, 8, 10, 11, 12})
    for (int normalize = 0; normalize < 2; normalize++) {
      const long mark = gpu_mark(g);
      const bool centred = kind >= 7 && kind < 12;
      floats x = normals(n * d, &check_seed), base = normals(m * d, &check_seed), center(d, 0.f),
             mean, factor;
      if (normalize) unit(base, d);
      if (centred)
        for (auto &v : center) v = (float)(.1 * uniform(&check_seed));
      if (centred)
        for (int64_t j = 0; j < m; j++)
          for (int64_t k = 0; k < d; k++) base[j * d + k] -= center[k];
      floats square, u = x;
      for (int64_t j = 0; j < m; j++) square.push_back((float)dot(&base[j * d], &base[j * d], d));
      if (normalize) unit(u, d);
      if (centred)
        for (int64_t i = 0; i < n * d; i++) u[i] -= center[i % d];
      mean = normals(m, &check_seed);
      factor = normals(m * m, &check_seed);
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++) factor[i * m + j] = 0;
      gpu_map map = {1,
                     kind,
                     normalize,
                     3,
                     .9,
                     d,
                     m,
                     m,
                     put(g, base),
                     put(g, square),
                     centred ? put(g, center) : NULL,
                     NULL,
                     NULL};
      float *raw = put(g, x), *out;
      MUST(g, gpu_new(g, &out, n * m));
      MUST(g, gpu_features(g, &map, raw, n, out, m));
      doubles want((size_t)(n * m));
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
          want[i * m + j] = kernel_value(kind, .9, 3, dot(&u[i * d], &base[j * d], d),
                                         dot(&u[i * d], &u[i * d], d), square[j]);
      char name[80];
      snprintf(name, sizeof name, "kernel %d%s", kind, normalize ? ", unit rows" : "");
      report(name, gap(get(g, out, want.size()), want), kind == 3 ? 2e-4 : kind == 8 ? 6e-4 : 5e-6);
      floats k = get(g, out, want.size());
      map.factor = put(g, factor);
      map.mean = put(g, mean);
      raw = put(g, x);
      MUST(g, gpu_features(g, &map, raw, n, out, m));
      floats seen = get(g, out, want.size());
      double most = 0;
      for (int64_t i = 0; i < n; i += 7)
        for (int64_t j = 0; j < m; j += 3) {
          double sum = 0, size = 0;
          for (int64_t c = 0; c <= j; c++) {
            sum += (double)k[i * m + c] * factor[c * m + j];
            size += pow((double)k[i * m + c] * factor[c * m + j], 2);
          }
          most = fmax(most, fabs(seen[i * m + j] - (sum - mean[j])) / (sqrt(size) + 1));
        }
      snprintf(name, sizeof name, "kernel %d%s, factor and mean", kind,
               normalize ? ", unit rows" : "");
      report(name, most, 5e-6);
      gpu_release(g, mark);
    }
}

/* phi = K L^-T of the landmarks themselves gives K back: what a factor with large entries does to
 * sums that cut bits off. */
static void check_factor(gpu *g) {
  const int64_t d = 30, m = 1300;
  const long mark = gpu_mark(g);
  floats base = normals(m * d, &check_seed), square((size_t)m, 1), factor((size_t)(m * m), 0);
  unit(base, d);
  doubles k((size_t)(m * m)), l;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < m; j++)
      k[i * m + j] =
          kernel_value(4, 1, 1, dot(&base[i * d], &base[j * d], d), 1, 1) + (i == j) * 1e-6;
  double *dl = put(g, k), *inverse;
  doubles one((size_t)(m * m), 0);
  for (int64_t i = 0; i < m; i++) one[i * m + i] = 1;
  inverse = put(g, one);
  MUST(g, gpu_cholesky(g, m, dl));
  MUST(g, gpu_solve_left(g, 0, m, m, dl, inverse));
  l = get(g, inverse, l.size() + (size_t)(m * m));
  double most = 0, worst = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j <= i; j++) {
      factor[j * m + i] = (float)l[i * m + j];
      most = fmax(most, fabs(l[i * m + j]));
    }
  gpu_map map = {1, 4, 1, 1, 1, d, m, m, put(g, base), put(g, square), NULL, put(g, factor), NULL};
  float *raw = put(g, base), *out;
  MUST(g, gpu_new(g, &out, m * m));
  MUST(g, gpu_features(g, &map, raw, m, out, m));
  floats phi = get(g, out, (size_t)(m * m));
  for (int64_t i = 0; i < m; i += 17)
    for (int64_t j = 0; j < m; j += 11)
      worst = fmax(worst, fabs(dot(&phi[i * m], &phi[j * m], m) - k[i * m + j]));
  printf("     largest entry of the factor %.3g\n", most);
  report("kernel of the landmarks from their features", worst, 1e-4);
  gpu_release(g, mark);
}

/* ---- dense algebra -------------------------------------------------------------------------- */

static void check_dense(gpu *g) {
  const long mark = gpu_mark(g);
  for (int shape = 0; shape < 3; shape++) {
    const int64_t m = shape == 0 ? 40 : 61, n = shape == 1 ? 40 : 61, q = m < n ? m : n;
    doubles a((size_t)(m * n));
    for (auto &v : a) v = uniform(&check_seed) - .5;
    double *da = put(g, a), *s, *u, *vt;
    MUST(g, gpu_new(g, &s, q));
    MUST(g, gpu_new(g, &u, m * q));
    MUST(g, gpu_new(g, &vt, q * n));
    MUST(g, gpu_svd(g, m, n, da, s, u, vt));
    doubles hs = get(g, s, (size_t)q), hu = get(g, u, (size_t)(m * q)),
            hv = get(g, vt, (size_t)(q * n)), back(a.size(), 0);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < q; k++) back[i * n + j] += hu[i * q + k] * hs[k] * hv[k * n + j];
    report("singular values: U S V^T against A", gap(back, a), 1e-12);
    doubles flat(a.size()), rebuilt(a.size(), 0);
    for (int64_t i = 0; i < m; i++) /* of rank 1 */
      for (int64_t j = 0; j < n; j++) flat[i * n + j] = (double)(i + 1) * (double)(j + 2) / 10;
    MUST(g, gpu_svd(g, m, n, put(g, flat), s, u, vt));
    doubles fs = get(g, s, (size_t)q), fu = get(g, u, (size_t)(m * q)),
            fv = get(g, vt, (size_t)(q * n));
    double skew = 0;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < q; k++) rebuilt[i * n + j] += fu[i * q + k] * fs[k] * fv[k * n + j];
    for (int64_t k = 0; k < q; k++)
      for (int64_t l = 0; l < q; l++) {
        double left = 0, right = 0;
        for (int64_t i = 0; i < m; i++) left += fu[i * q + k] * fu[i * q + l];
        for (int64_t j = 0; j < n; j++) right += fv[k * n + j] * fv[l * n + j];
        skew = fmax(skew, fmax(fabs(left - (k == l)), fabs(right - (k == l))));
      }
    report("  of a matrix of rank 1", gap(rebuilt, flat), 1e-13);
    report("  its vectors orthonormal", skew, 1e-12);
    double worst = 0;
    for (int64_t k = 0; k + 1 < q; k++) worst = fmax(worst, hs[k + 1] - hs[k]);
    report("  descending", worst, 0);
    MUST(g, gpu_svd_top(g, m, n, put(g, a), 10, s, u, vt));
    doubles ts = get(g, s, 10), tu = get(g, u, (size_t)(m * 10)), tv = get(g, vt, (size_t)(n * 10));
    doubles residual((size_t)(m * 10), 0), left = residual;
    for (int64_t i = 0; i < m; i++)
      for (int64_t k = 0; k < 10; k++) {
        for (int64_t j = 0; j < n; j++) residual[i * 10 + k] += a[i * n + j] * tv[j * 10 + k];
        left[i * 10 + k] = ts[k] * tu[i * 10 + k];
      }
    report("leading triples: A V against U S", gap(residual, left), 1e-10);
    hs.resize(10);
    report("  the same values", gap(ts, hs), 1e-10);
  }
  const int64_t n = 90;
  doubles b((size_t)(n * n)), a((size_t)(n * n), 0);
  for (auto &v : b) v = uniform(&check_seed) - .5;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < n; k++) a[i * n + j] += b[i * n + k] * b[j * n + k];
  for (int64_t i = 0; i < n; i++) a[i * n + i] += 1;
  doubles lower = a;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) lower[i * n + j] = 99;
  double *da = put(g, lower), *w;
  MUST(g, gpu_new(g, &w, n));
  MUST(g, gpu_eigen(g, n, da, w));
  doubles vectors = get(g, da, a.size()), values = get(g, w, (size_t)n), back(a.size(), 0);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++)
        back[i * n + j] += values[k] * vectors[k * n + i] * vectors[k * n + j];
  report("eigenvectors: V W V^T against A", gap(back, a), 1e-12);
  double *l = put(g, lower);
  MUST(g, gpu_cholesky(g, n, l));
  doubles hl = get(g, l, a.size()), product(a.size(), 0);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k <= (i < j ? i : j); k++)
        product[i * n + j] += hl[i * n + k] * hl[j * n + k];
  report("Cholesky: L L^T against A", gap(product, a), 1e-13);
  double *x = put(g, a);
  MUST(g, gpu_solve_left(g, 0, n, n, l, x));
  MUST(g, gpu_solve_right(g, 1, n, n, l, x));
  doubles one = get(g, x, a.size()), id(a.size(), 0);
  for (int64_t i = 0; i < n; i++) id[i * n + i] = 1;
  report("L^-1 A L^-T against 1", gap(one, id), 1e-11);
  gpu_release(g, mark);
}

/* ---- the plane ------------------------------------------------------------------------------ */

typedef struct scene {
  int64_t nx, ny, r, px, py;
  floats zx, zy, phi_x, phi_y;
  numbers start, column;
  doubles value;
} scene;

static scene make_scene(int64_t nx, int64_t ny, int64_t r) {
  scene s = {nx,
             ny,
             r,
             37,
             45,
             normals(nx * r, &check_seed),
             normals(ny * r, &check_seed),
             normals(nx * 37, &check_seed),
             normals(ny * 45, &check_seed),
             numbers(1, 0),
             {},
             {}};
  for (int64_t i = 0; i < nx && i < ny; i++) /* partners are near */
    for (int64_t k = 0; k < r; k++) s.zy[i * r + k] = s.zx[i * r + k] + .3f * s.zy[i * r + k];
  unit(s.zx, r), unit(s.zy, r);
  for (int64_t i = 0; i < nx; i++) {
    for (int64_t j = 0; j < ny; j++)
      if (i == j || uniform(&check_seed) < .003) {
        s.column.push_back(j);
        s.value.push_back(i == j ? 0 : uniform(&check_seed));
      }
    s.start.push_back((int64_t)s.column.size());
  }
  return s;
}

/* Score and entry of a pair. */
static double at(const scene &s, int64_t i, int64_t j, double *entry) {
  *entry = NAN;
  for (int64_t k = s.start[i]; k < s.start[i + 1]; k++)
    if (s.column[k] == j) *entry = s.value[k];
  return dot(&s.zx[i * s.r], &s.zy[j * s.r], s.r);
}

static void check_sums(gpu *g, const scene &s, double a, int shifted, double tolerance) {
  const long mark = gpu_mark(g);
  double *out[4];
  const int64_t size[4] = {s.nx, s.nx, s.ny, s.ny};
  for (int k = 0; k < 4; k++) MUST(g, gpu_new(g, &out[k], size[k]));
  const gpu_plane plane = {put(g, s.zx), put(g, s.zy), s.nx, s.ny, s.r, s.r, s.r};
  const gpu_lists lists = {s.nx, put(g, s.start), put(g, s.column), put(g, s.value)};
  MUST(g, gpu_exp_sums(g, &plane, a, shifted, lists, out[0], out[1], out[2], out[3]));
  doubles row((size_t)s.nx, 0), column((size_t)s.ny, 0);
  const double top = shifted ? a : 0;
  for (int64_t i = 0; i < s.nx; i++)
    for (int64_t j = 0; j < s.ny; j++) {
      double entry;
      const double score = at(s, i, j, &entry), e = isnan(entry) ? 1 : entry;
      row[i] += e * exp(a * score - top);
      column[j] += e * exp(a * score - top);
    }
  double worst = 0;
  for (int side = 0; side < 2; side++) {
    doubles tops = get(g, out[2 * side], (size_t)size[2 * side]);
    doubles sums = get(g, out[2 * side + 1], (size_t)size[2 * side]);
    const doubles &want = side ? column : row;
    for (size_t k = 0; k < want.size(); k++)
      worst = fmax(worst, fabs(log(sums[k]) + tops[k] - top - log(want[k])));
  }
  char name[80];
  snprintf(name, sizeof name, "sums of exponentials, a = %g%s%s", a, shifted ? ", shifted" : "",
           g->reduced ? ", reduced" : "");
  report(name, worst, tolerance);
  gpu_release(g, mark);
}

static double form_weight(int form, double s, double a, double b, double scale, double row,
                          double column, double *value) {
  if (form == GPU_EXP) return -(exp(a * s) * (row + column));
  if (form == GPU_SHIFTED) return -(exp(a * s + row) + exp(a * s + column));
  if (form == GPU_SQUARE) {
    *value += s * s;
    return -scale * s;
  }
  *value += log1p(exp(a * s + b));
  return -scale / (1 + exp(-(a * s + b)));
}

static void check_weights(gpu *g, const scene &s, int form, double tolerance) {
  const long mark = gpu_mark(g);
  const double a = form == GPU_SHIFTED ? 60 : 10, b = -3, scale = 1.7;
  floats row, column;
  for (int64_t i = 0; i < s.nx; i++)
    row.push_back((float)uniform(&check_seed) - (form == 1 ? 62.f : 0));
  for (int64_t j = 0; j < s.ny; j++)
    column.push_back((float)uniform(&check_seed) - (form == 1 ? 61.f : 0));
  const int64_t x0 = 9, nx = s.nx - 20, y0 = 31, ny = s.ny - 50;
  gpu_weights w = {form,
                   a,
                   b,
                   scale,
                   put(g, row),
                   put(g, column),
                   {s.nx, put(g, s.start), put(g, s.column), put(g, s.value)},
                   x0,
                   nx,
                   y0,
                   ny,
                   put(g, s.phi_x) + 3 * s.px,
                   put(g, s.phi_y) + 5 * s.py,
                   s.px,
                   s.py};
  doubles c((size_t)(s.px * s.py), .5), want = c;
  double *out = put(g, c), value = 1, expect = 1;
  const gpu_plane plane = {put(g, s.zx), put(g, s.zy), s.nx, s.ny, s.r, s.r, s.r};
  MUST(g, gpu_weigh(g, &plane, &w, out, form >= GPU_SIGMOID ? &value : NULL));
  doubles t((size_t)s.py);
  for (int64_t i = 0; i < nx; i++) {
    std::fill(t.begin(), t.end(), 0);
    for (int64_t j = 0; j < ny; j++) {
      double entry, own = 0;
      const double score = at(s, x0 + i, y0 + j, &entry);
      double weight = form_weight(form, score, a, b, scale, row[x0 + i], column[y0 + j], &own);
      if (isnan(entry))
        expect += own;
      else
        weight = entry;
      if (j + 5 < s.ny)
        for (int64_t k = 0; k < s.py; k++) t[k] += weight * s.phi_y[(j + 5) * s.py + k];
    }
    for (int64_t k = 0; k < s.px; k++)
      for (int64_t l = 0; l < s.py; l++) want[k * s.py + l] += s.phi_x[(i + 3) * s.px + k] * t[l];
  }
  char name[80];
  snprintf(name, sizeof name, "weights of form %d in a window%s", form,
           g->reduced ? ", reduced" : "");
  doubles seen = get(g, out, c.size());
  report(name, gap(seen, want), tolerance);
  if (form >= GPU_SIGMOID)
    report("  their value", fabs(value / expect - 1), g->reduced ? 1e-4 : 1e-6);
  out = put(g, c);
  MUST(g, gpu_weigh(g, &plane, &w, out, NULL));
  report("  the same bytes again",
         memcmp(get(g, out, c.size()).data(), seen.data(), c.size() * 8) != 0, 0);
  gpu_release(g, mark);
}

static void check_plane(gpu *g) {
  scene s = make_scene(333, 2300, 48);
  for (int reduced = 0; reduced < 2; reduced++) {
    g->reduced = reduced;
    g->cell_x = 0, g->cell_y = 0;
    check_sums(g, s, 10, 0, reduced ? 2e-2 : 2e-5);
    g->cell_x = 128, g->cell_y = 2048;
    check_sums(g, s, 40, 0, reduced ? 5e-2 : 5e-5);
    check_sums(g, s, 100, 1, reduced ? 1e-1 : 1e-4);
    for (int form = 0; form < 4; form++) check_weights(g, s, form, reduced ? 2e-2 : 1e-5);
  }
  g->reduced = 0;
  /* large entries: float32 products; and no lists */
  for (auto &v : s.zx) v *= 500;
  for (auto &v : s.zy) v /= 500;
  check_weights(g, s, GPU_SQUARE, 1e-5);
  g->cell_x = 0, g->cell_y = 0;
}

/* ---- use ------------------------------------------------------------------------------------ */

static void check_bias(gpu *g) {
  const long mark = gpu_mark(g);
  const int64_t n = 700, m = 1030, r = 48, ld = 50;
  floats z = normals(n * ld, &check_seed), bank = normals(m * r, &check_seed);
  unit(z, ld), unit(bank, r);
  float *dz = put(g, z), *db = put(g, bank), *out;
  MUST(g, gpu_new(g, &out, n));
  for (double strength : {5., 10., 50., 400., -1., -10., -200., -2000.}) {
    floats want;
    MUST(g, gpu_bias(g, dz, n, ld, db, m, r, r, strength < 0, fabs(strength), out));
    for (int64_t i = 0; i < n; i++) {
      doubles s;
      double sum = 0;
      for (int64_t k = 0; k < m; k++) s.push_back(dot(&z[i * ld], &bank[k * r], r));
      std::vector<double> sorted = s;
      qsort(sorted.data(), sorted.size(), 8, [](const void *a, const void *b) {
        return (*(double *)a < *(double *)b) - (*(double *)a > *(double *)b);
      });
      const int64_t top = strength < 0 ? (int64_t)fmin(-strength, (double)m) : m;
      for (int64_t k = 0; k < top; k++)
        sum += strength < 0 ? sorted[k] : exp(strength * (s[k] - sorted[0]));
      want.push_back((float)(strength < 0 ? sum / (double)top / 2
                                          : sorted[0] + log(sum / (double)m) / strength));
    }
    floats seen = get(g, out, (size_t)n);
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)seen[i] - want[i]));
    char name[80];
    snprintf(name, sizeof name, strength < 0 ? "biases by the %g nearest" : "biases, strength %g",
             fabs(strength));
    report(name, most, 1e-6);
  }
  gpu_release(g, mark);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Every call of a pass and a search fails once; each time there is a sentence, no room is lost, and
 * the next attempt is good. */
static void check_faults(gpu *g) {
  scene s = make_scene(200, 900, 24);
  const gpu_plane plane = {put(g, s.zx), put(g, s.zy), s.nx, s.ny, s.r, s.r, s.r};
  gpu_weights w = {GPU_SIGMOID,
                   10,
                   -3,
                   1,
                   NULL,
                   NULL,
                   {s.nx, put(g, s.start), put(g, s.column), put(g, s.value)},
                   0,
                   s.nx,
                   0,
                   s.ny,
                   put(g, s.phi_x),
                   put(g, s.phi_y),
                   s.px,
                   s.py};
  doubles c((size_t)(s.px * s.py), 0);
  numbers id((size_t)(s.nx * 5), -1);
  double *out = put(g, c), *score = put(g, doubles((size_t)(s.nx * 5), 0)), value = 0;
  int64_t *ids = put(g, id);
  const gpu_scores scores = {plane.zx, plane.zy, s.nx, s.ny, s.r, s.r, s.r, 0, NULL};
  int failed = 0, silent = 0, lost = 0;
  for (long fault = 1; fault < 2000; fault++) {
    const uint64_t used = g->used;
    g->error[0] = 0;
    g->fault = fault;
    int code = gpu_weigh(g, &plane, &w, out, &value);
    if (code == GPU_OK) code = gpu_nearest(g, &scores, 5, score, ids);
    if (code == GPU_OK && g->fault > 0) break;
    failed++;
    silent += code == GPU_OK || g->error[0] == 0;
    lost += g->used != used;
  }
  g->fault = 0;
  MUST(g, gpu_weigh(g, &plane, &w, out, &value));
  printf("     %d calls made to fail\n", failed);
  report("failures without a sentence", silent, 0);
  report("failures that keep room", lost, 0);
  report("too few calls to fail", failed < 50, 0);
}

int main(int argc, char **argv) {
  char text[400];
  gpu g;
  const double start = now();
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (gpu_open(&g, 0, text, sizeof text) != GPU_OK) {
    printf("%s\n", text);
    return 77;
  }
  printf("device opened in %.2f s\n", now() - start);
  if (argc > 1 && strcmp(argv[1], "--time") == 0) {
    time_all(&g, argc > 2 ? argv[2] : NULL);
    gpu_close(&g);
    return 0;
  }
  check_rows(&g);
  check_copies(&g);
  check_products(&g);
  check_lists(&g);
  check_kernels(&g);
  check_factor(&g);
  check_dense(&g);
  check_plane(&g);
  check_bias(&g);
  check_searches(&g);
  if (argc < 2) check_faults(&g);
  printf("%d failures, peak %.1f MB\n", check_failures, 1e-6 * (double)g.peak);
  gpu_close(&g);
  return check_failures ? 1 : 0;
}
