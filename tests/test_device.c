/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation of device/device.h on every device that is there, against its definition in
 * float64: the soft one always, others (cuda) where they are usable.
 *
 * Tolerances: float32 products and sums of terms of about 1 are off by 1e-6 times the root of their
 * number; kernels by what features/kernel.h says of them; float64 algebra by 1e-12. */
#include "soft/loaded.h"

#include "device/use.h"
#include "features/kernel.h"
#include "score/balance.h"
#include "support.h"

enum { SINGLE = UNICON__ELEMENT_F32, DOUBLE = UNICON__ELEMENT_F64, DEVICES = 9 };

/* The device under test. */
typedef struct bench {
  unicon_ctx *ctx;
  const unicon__device_table *table;
  unicon__device *device;
  unicon__device_room room;
  bool reduced; /* scores and weights of 16 bits */
} bench;

/* What an operation returned must be OK. */
#define RUN(b, entry, ...) \
  CHECK_OK((b)->ctx, unicon__device_check((b)->ctx, (b)->table->entry((b)->device, __VA_ARGS__)))

static unicon__matrix *zeros(bench *b, int64_t rows, int64_t cols, int element) {
  unicon__matrix *m;
  CHECK_OK(b->ctx, unicon__device_new(b->ctx, &b->room, rows, cols, element, &m));
  return m;
}

static unicon__matrix *sent(bench *b, const float *from, int64_t rows, int64_t cols) {
  unicon__matrix *m;
  CHECK_OK(b->ctx, unicon__device_copy(b->ctx, &b->room, from, rows, cols, cols, &m));
  return m;
}

static float *fetched(bench *b, const unicon__matrix *m, int64_t rows, int64_t cols) {
  float *out = support_floats(rows * cols);
  RUN(b, download, m, 0, rows, out, cols * 4);
  return out;
}

static double *fetched_wide(bench *b, const unicon__matrix *m, int64_t rows, int64_t cols) {
  double *out = support_doubles(rows * cols);
  RUN(b, download, m, 0, rows, out, cols * 8);
  return out;
}

static void check_wide(const double *got, const double *want, int64_t count, double tolerance) {
  for (int64_t k = 0; k < count; k++) CHECK_CLOSE(got[k], want[k], tolerance);
}

/* ---- matrices ----------------------------------------------------------------------------- */

static void matrices(bench *b) {
  unicon__device_memory before, now;
  b->table->memory(b->device, &before);
  unicon__matrix *m = zeros(b, 5, 3, SINGLE), *w = zeros(b, 2, 3, DOUBLE);
  b->table->memory(b->device, &now);
  assert_true(now.used >= before.used + 5 * 3 * 4 + 2 * 3 * 8 && now.peak >= now.used);
  float *none = fetched(b, m, 5, 3);
  for (int k = 0; k < 15; k++) assert_true(none[k] == 0);
  /* rows 1 and 2, 5 floats apart; back from row 2 on, 4 floats apart */
  const float from[10] = {1, 2, 3, 0, 0, 4, 5, 6, 0, 0};
  float back[8] = {0};
  RUN(b, upload, m, 1, 2, from, SINGLE, 20);
  RUN(b, download, m, 2, 2, back, 16);
  assert_memory_equal(back, ((float[8]){4, 5, 6, 0, 0, 0, 0, 0}), sizeof back);
  const double wide[3] = {0.1, 1e300, -3};
  double wide_back[3];
  RUN(b, upload, w, 1, 1, wide, DOUBLE, 24);
  RUN(b, download, w, 1, 1, wide_back, 24);
  assert_memory_equal(wide_back, wide, sizeof wide);
  RUN(b, upload, m, 0, 1, wide, DOUBLE, 24);
  RUN(b, download, m, 0, 1, back, 12);
  assert_true(back[0] == 0.1F && isinf(back[1]) && back[2] == -3);
  b->table->matrix_free(b->device, NULL);
  free(none);
}

/* Every type, at an odd address. */
static void elements(bench *b) {
  unsigned char bytes[64] = {0}, *at = bytes + 1;
  float got[4];
  unicon__matrix *m = zeros(b, 1, 4, SINGLE);
  const uint16_t half[4] = {0x3c00, 0xc500, 0x0001, 0x7bff}; /* 1, -5, 2^-24, 65504 */
  memcpy(at, half, sizeof half);
  RUN(b, upload, m, 0, 1, at, UNICON__ELEMENT_F16, 8);
  RUN(b, download, m, 0, 1, got, 16);
  assert_memory_equal(got, ((float[4]){1, -5, 0x1p-24F, 65504}), sizeof got);
  const uint16_t brain[4] = {0x3f80, 0xc0a0, 0x4049, 0x0080}; /* 1, -5, 3.140625, 2^-126 */
  memcpy(at, brain, sizeof brain);
  RUN(b, upload, m, 0, 1, at, UNICON__ELEMENT_BF16, 8);
  RUN(b, download, m, 0, 1, got, 16);
  assert_memory_equal(got, ((float[4]){1, -5, 3.140625F, 0x1p-126F}), sizeof got);
  memcpy(at, ((signed char[4]){1, -128, 127, 0}), 4);
  RUN(b, upload, m, 0, 1, at, UNICON__ELEMENT_I8, 4);
  RUN(b, download, m, 0, 1, got, 16);
  assert_memory_equal(got, ((float[4]){1, -128, 127, 0}), sizeof got);
  memcpy(at, ((unsigned char[4]){1, 128, 255, 0}), 4);
  RUN(b, upload, m, 0, 1, at, UNICON__ELEMENT_U8, 4);
  RUN(b, download, m, 0, 1, got, 16);
  assert_memory_equal(got, ((float[4]){1, 128, 255, 0}), sizeof got);
}

/* ---- features ----------------------------------------------------------------------------- */

enum { ROWS = 37, IN = 19, POINTS = 11, OUT = 7 };

typedef struct map_case {
  int kind, kernel;
  bool normalize, center, factor, mean;
} map_case;

static double random_feature(int kernel, double t, double phase) {
  const double scale = sqrt(2.0 / POINTS);
  if (kernel == UNICON__DEVICE_KERNEL_ARCCOS0) return t > 0 ? scale : 0;
  if (kernel == UNICON__DEVICE_KERNEL_ARCCOS1) return t > 0 ? scale * t : 0;
  if (kernel == UNICON__DEVICE_KERNEL_ARCCOS2) return t > 0 ? scale * t * t / sqrt(3) : 0;
  return scale * cos(t + phase);
}

/* The definition. */
static void naive_features(const map_case *c, const float *x, const float *base,
                           const float *square, const float *center, const float *factor,
                           const float *mean, double *phi) {
  const unicon__kernel kernel = {(unicon__kernel_kind)c->kernel, 0.9, 3};
  double u[IN], f[IN + POINTS], length = 0, own = 0;
  for (int k = 0; k < IN; k++) length += (double)x[k] * (double)x[k];
  for (int k = 0; k < IN; k++) {
    u[k] = (double)x[k] / (c->normalize && length > 0 ? sqrt(length) : 1);
    if (c->center) u[k] -= (double)center[k];
    own += u[k] * u[k];
    f[k] = u[k];
  }
  for (int j = 0; j < POINTS && c->kind != UNICON__DEVICE_LINEAR; j++) {
    double t = 0;
    for (int k = 0; k < IN; k++) t += u[k] * (double)base[j * IN + k];
    f[j] = c->kind == UNICON__DEVICE_RANDOM
               ? random_feature(c->kernel, t, (double)square[j])
               : unicon__kernel_value(&kernel, t, own, (double)square[j]);
  }
  const int out = c->kind == UNICON__DEVICE_LINEAR ? IN : c->factor ? OUT : POINTS;
  for (int k = 0; k < out; k++) {
    double sum = c->factor ? 0 : f[k];
    for (int j = 0; c->factor && j <= k; j++) sum += f[j] * (double)factor[j * OUT + k];
    phi[k] = sum - (c->mean ? (double)mean[k] : 0);
  }
}

static void map_is_its_definition(bench *b, const map_case *c) {
  float *x = support_normals(1, ROWS * IN), *base = support_unit_rows(2, POINTS, IN);
  float *square = support_floats(POINTS), *center = support_normals(4, IN);
  float *factor = support_normals(5, POINTS * OUT), *mean = support_normals(6, IN + POINTS);
  const bool linear = c->kind == UNICON__DEVICE_LINEAR;
  const int out = linear ? IN : c->factor ? OUT : POINTS;
  for (int k = 0; k < ROWS * IN && !c->normalize; k++) x[k] /= 4;
  for (int k = 0; k < IN; k++) {
    center[k] /= 10;
    if (c->normalize) x[k] = 0, x[IN + k] *= 1e-30F, x[2 * IN + k] *= 1e30F;
  }
  for (int j = 0; j < POINTS; j++) {
    for (int k = 0; k < OUT; k++) factor[j * OUT + k] *= j <= k;
    square[j] = c->kind == UNICON__DEVICE_RANDOM
                    ? (float)j
                    : (float)support_dot(base + j * IN, base + j * IN, IN);
  }
  unicon__matrix *raw = sent(b, x, ROWS, IN), *phi = zeros(b, ROWS + 3, out, SINGLE);
  const unicon__device_map map = {.kind = c->kind,
                                  .kernel = c->kernel,
                                  .normalize = c->normalize,
                                  .degree = 3,
                                  .width = 0.9,
                                  .in = IN,
                                  .points = linear ? 0 : POINTS,
                                  .out = out,
                                  .base = linear ? NULL : sent(b, base, POINTS, IN),
                                  .square = linear ? NULL : sent(b, square, 1, POINTS),
                                  .center = c->center ? sent(b, center, 1, IN) : NULL,
                                  .factor = c->factor ? sent(b, factor, POINTS, OUT) : NULL,
                                  .mean = c->mean ? sent(b, mean, 1, out) : NULL};
  RUN(b, features, &map, raw, ROWS, phi, 2);
  float *got = fetched(b, phi, ROWS + 3, out);
  const double error = linear || c->kind == UNICON__DEVICE_RANDOM
                           ? 2e-6
                           : unicon__kernel_error((unicon__kernel_kind)c->kernel);
  for (int i = 0; i < ROWS; i++) {
    double want[IN + POINTS];
    naive_features(c, x + i * IN, base, square, center, factor, mean, want);
    for (int k = 0; k < out; k++)
      CHECK_CLOSE(got[(i + 2) * out + k], want[k], (c->factor ? 20 : 2) * error);
  }
  for (int k = 0; k < out; k++) assert_true(got[k] == 0 && got[(ROWS + 2) * out + k] == 0);
  free(x), free(base), free(square), free(center), free(factor), free(mean), free(got);
  unicon__device_close(b->ctx, &b->room);
}

static void features(bench *b) {
  static const int kernels[] = {UNICON__DEVICE_KERNEL_LINEAR,   UNICON__DEVICE_KERNEL_COSINE,
                                UNICON__DEVICE_KERNEL_ARCCOS0,  UNICON__DEVICE_KERNEL_ARCCOS1,
                                UNICON__DEVICE_KERNEL_ARCCOS2,  UNICON__DEVICE_KERNEL_EXPCOS,
                                UNICON__DEVICE_KERNEL_RBF,      UNICON__DEVICE_KERNEL_MATERN12,
                                UNICON__DEVICE_KERNEL_MATERN32, UNICON__DEVICE_KERNEL_MATERN52,
                                UNICON__DEVICE_KERNEL_POLY};
  static const int random[] = {UNICON__DEVICE_KERNEL_ARCCOS0, UNICON__DEVICE_KERNEL_ARCCOS1,
                               UNICON__DEVICE_KERNEL_ARCCOS2, UNICON__DEVICE_KERNEL_RBF};
  for (int bits = 0; bits < 4; bits++) {
    const bool one = bits & 1, two = bits & 2;
    map_is_its_definition(b, &(map_case){UNICON__DEVICE_LINEAR, 0, one, false, false, two});
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
      map_is_its_definition(b,
                            &(map_case){UNICON__DEVICE_KERNEL, kernels[k], true, one, two, !one});
    for (size_t k = 0; k < sizeof random / sizeof *random; k++)
      map_is_its_definition(b,
                            &(map_case){UNICON__DEVICE_RANDOM, random[k], one, false, false, two});
  }
}

static void moved_rows(bench *b) {
  float *x = support_normals(1, ROWS * IN), *mean = support_normals(2, IN);
  const int64_t row[4] = {36, 0, 5, 5};
  unicon__matrix *from = sent(b, x, ROWS, IN), *to = zeros(b, 6, IN, SINGLE);
  RUN(b, gather, from, row, 4, to, 1);
  RUN(b, shift, to, 2, 3, sent(b, mean, 1, IN));
  float *got = fetched(b, to, 6, IN);
  for (int k = 0; k < IN; k++) {
    assert_true(got[k] == 0 && got[5 * IN + k] == 0 && got[IN + k] == x[36 * IN + k]);
    for (int i = 1; i < 4; i++)
      CHECK_CLOSE(got[(1 + i) * IN + k], x[row[i] * IN + k] - mean[k], 1e-6);
  }
  free(x), free(mean), free(got);
}

static void embeddings(bench *b) {
  float *x = support_normals(1, ROWS * IN), *weight = support_normals(2, IN * OUT);
  for (int k = 0; k < IN; k++) x[3 * IN + k] = 0, x[4 * IN + k] *= 1e25F;
  unicon__matrix *phi = sent(b, x, ROWS, IN), *w = sent(b, weight, IN, OUT);
  for (int unit = 0; unit < 2; unit++) {
    unicon__matrix *z = zeros(b, ROWS + 1, OUT + 2, SINGLE);
    RUN(b, embed, phi, 2, ROWS - 2, w, unit, z, 1);
    float *got = fetched(b, z, ROWS + 1, OUT + 2);
    for (int i = 2; i < ROWS; i++) {
      double want[OUT], square = 0;
      for (int k = 0; k < OUT; k++) {
        want[k] = 0;
        for (int j = 0; j < IN; j++) want[k] += (double)x[i * IN + j] * (double)weight[j * OUT + k];
        square += want[k] * want[k];
      }
      const float *row = got + (i - 1) * (OUT + 2);
      const double scale = square > 0 ? sqrt(square) : 1;
      for (int k = 0; k < OUT; k++) CHECK_CLOSE(row[k] / (unit ? 1 : scale), want[k] / scale, 5e-6);
      assert_true(row[OUT] == 0 && row[OUT + 1] == 0);
    }
    free(got);
  }
  free(x), free(weight);
}

/* ---- sums --------------------------------------------------------------------------------- */

static void products_of_rows(bench *b) {
  enum { N = 300, P = 13, Q = 9, LEAD = 8 };
  float *x = support_normals(1, N * P), *y = support_normals(2, N * Q);
  unicon__matrix *a = sent(b, x, N, P), *c = sent(b, y, N, Q);
  unicon__matrix *sum = zeros(b, LEAD, Q, DOUBLE), *gram = zeros(b, P, P, DOUBLE);
  double want[LEAD * Q] = {0}, want_gram[P * P] = {0};
  RUN(b, add_product, a, 3, c, 1, 250, 1.0, sum, LEAD, Q);
  RUN(b, add_product, a, 10, c, 8, 5, -1.0, sum, LEAD, Q);
  RUN(b, add_product, a, 7, a, 7, 290, 1.0, gram, P, P);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < P; k++) {
      for (int j = 0; j < Q && k < LEAD && i >= 3 && i < 253; j++)
        if (i < 10 || i >= 15) want[k * Q + j] += (double)x[i * P + k] * (double)y[(i - 2) * Q + j];
      for (int j = 0; j <= k && i >= 7 && i < 297; j++)
        want_gram[k * P + j] += (double)x[i * P + k] * (double)x[i * P + j];
    }
  double *got = fetched_wide(b, sum, LEAD, Q), *got_gram = fetched_wide(b, gram, P, P);
  check_wide(got, want, LEAD * Q, 5e-4);
  for (int k = 0; k < P; k++) check_wide(got_gram + k * P, want_gram + k * P, k + 1, 5e-4);
  /* the same again gives the same bytes */
  unicon__matrix *again = zeros(b, LEAD, Q, DOUBLE);
  RUN(b, add_product, a, 3, c, 1, 250, 1.0, again, LEAD, Q);
  RUN(b, add_product, a, 10, c, 8, 5, -1.0, again, LEAD, Q);
  double *second = fetched_wide(b, again, LEAD, Q);
  assert_memory_equal(got, second, sizeof want);
  free(x), free(y), free(got), free(got_gram), free(second);
}

static void sums_of_rows(bench *b) {
  enum { N = 200, P = 13, LEAD = 10, WEIGHTS = 2 };
  float *x = support_normals(1, N * P);
  double *weight = support_doubles(WEIGHTS * N), want[(2 + WEIGHTS) * LEAD] = {0};
  unicon__matrix *a = sent(b, x, N, P), *sum = zeros(b, 2 + WEIGHTS, LEAD, DOUBLE);
  for (int k = 0; k < WEIGHTS * N; k++) weight[k] = sin(k);
  RUN(b, add_sums, a, 20, 150, weight, (int64_t)WEIGHTS, -1.0, sum, (int64_t)LEAD);
  RUN(b, add_sums, a, 0, 1, weight, (int64_t)WEIGHTS, 1.0, sum, (int64_t)LEAD);
  for (int i = 0; i < 151; i++)
    for (int k = 0; k < LEAD; k++) {
      const double v = (double)x[(i < 150 ? 20 + i : 0) * P + k], sign = i < 150 ? -1 : 1;
      want[k] += sign * v;
      want[LEAD + k] += sign * v * v;
      for (int w = 0; w < WEIGHTS; w++)
        want[(2 + w) * LEAD + k] += sign * v * (i < 150 ? weight[w * 150 + i] : weight[w]);
    }
  double *got = fetched_wide(b, sum, 2 + WEIGHTS, LEAD);
  check_wide(got, want, (2 + WEIGHTS) * LEAD, 1e-12 * N);
  unicon__matrix *plain = zeros(b, 2, LEAD, DOUBLE);
  RUN(b, add_sums, a, 20, 150, NULL, (int64_t)0, -1.0, plain, (int64_t)LEAD);
  free(x), free(weight), free(got);
}

static void sparse_rows(bench *b) {
  enum { N = 40, P = 13, T = 5 };
  float *y = support_normals(1, N * P);
  const int64_t start[T + 1] = {0, 3, 3, 4, 8, 9}, column[9] = {39, 0, 7, 5, 3, 3, 2, 1, 39};
  const double value[9] = {0.5, -1, 2, 1.0 / 3, 1, 1, 1e-3, 4, 1};
  const unicon__device_sparse w = {T, start, column, value};
  unicon__matrix *t = zeros(b, T + 1, P, SINGLE);
  RUN(b, combine, &w, sent(b, y, N, P), t);
  float *got = fetched(b, t, T + 1, P);
  for (int i = 0; i < T; i++)
    for (int k = 0; k < P; k++) {
      double want = 0;
      for (int64_t e = start[i]; e < start[i + 1]; e++)
        want += value[e] * (double)y[column[e] * P + k];
      CHECK_CLOSE(got[i * P + k], want, 1e-5);
    }
  free(y), free(got);
}

/* ---- the plane ---------------------------------------------------------------------------- */

enum { NX = 45, NY = 61, R = 9, PX = 6, PY = 8, LISTED = 3 };

/* A plane with a few entries in every row but the fifth; row 2 has every entry. */
typedef struct plane {
  float *zx, *zy, *phi_x, *phi_y;
  unicon__matrix *dx, *dy, *fx, *fy;
  int64_t start[NX + 1], column[NX * LISTED + NY];
  double value[NX * LISTED + NY];
  unicon__device_sparse sparse;
  double s[NX][NY], entry[NX][NY]; /* scores; values of entries, NaN elsewhere */
} plane;

/* Values of entries: 0, 1/2, 1 in turn, or all 0 in row 2. */
static void plane_open(bench *b, plane *p) {
  p->zx = support_unit_rows(1, NX, R);
  p->zy = support_unit_rows(2, NY, R);
  p->phi_x = support_normals(3, NX * PX);
  p->phi_y = support_normals(4, NY * PY);
  p->dx = sent(b, p->zx, NX, R);
  p->dy = sent(b, p->zy, NY, R);
  p->fx = sent(b, p->phi_x, NX, PX);
  p->fy = sent(b, p->phi_y, NY, PY);
  int64_t at = 0;
  for (int i = 0; i < NX; i++) {
    p->start[i] = at;
    for (int j = 0; j < NY; j++) {
      p->s[i][j] = support_dot(p->zx + i * R, p->zy + j * R, R);
      p->entry[i][j] = NAN;
      if (i != 2 && (i == 5 || j % 20 != (7 * i) % 20)) continue;
      p->column[at] = j;
      p->entry[i][j] = p->value[at++] = i == 2 ? 0 : (i + j / 20) % 3 / 2.0;
    }
  }
  p->start[NX] = at;
  p->sparse = (unicon__device_sparse){NX, p->start, p->column, p->value};
}

static void plane_close(plane *p) {
  free(p->zx), free(p->zy), free(p->phi_x), free(p->phi_y);
}

static double count_at(const plane *p, int i, int j) {
  return isnan(p->entry[i][j]) ? 1 : p->entry[i][j];
}

static void sums_of_the_plane(bench *b) {
  static const double as[] = {10, 40, 500}; /* the last with running maxima */
  plane p;
  plane_open(b, &p);
  const unicon__device_plane whole = {p.dx, p.dy, NX, NY, R};
  for (int k = 0; k < 3; k++) {
    double rt[NX], rs[NX], ct[NY], cs[NY], want_x[NX] = {0}, want_y[NY] = {0};
    const unicon__device_exp e = {as[k], k == 2, &p.sparse, rt, rs, ct, cs};
    RUN(b, exp_sums, &whole, &e);
    for (int i = 0; i < NX; i++)
      for (int j = 0; j < NY; j++) {
        want_x[i] += count_at(&p, i, j) * exp(as[k] * p.s[i][j]);
        want_y[j] += count_at(&p, i, j) * exp(as[k] * p.s[i][j]);
      }
    /* a score is off by some 1e-7, its exponential by a times that; of 16 bits by 3 times 2^-12:
     * of each row, and of itself */
    const double tolerance = b->reduced ? 7.4e-4 * as[k] : 5e-6 + 3e-7 * as[k];
    for (int i = 0; i < NX; i++)
      if (i == 2)
        assert_true(rs[i] == 0);
      else
        CHECK_CLOSE(rt[i] + log(rs[i]), log(want_x[i]), tolerance);
    for (int j = 0; j < NY; j++) CHECK_CLOSE(ct[j] + log(cs[j]), log(want_y[j]), tolerance);
  }
  plane_close(&p);
}

/* S of a form, its value going to *value. */
static double naive_weight(const unicon__device_weights *w, int i, int j, double s, double *value) {
  const double v = w->a * s + w->bias, row = w->row ? (double)w->row[i] : 0;
  const double column = w->column ? (double)w->column[j] : 0;
  if (w->form == UNICON__DEVICE_EXP) return -exp(v) * (row + column);
  if (w->form == UNICON__DEVICE_SHIFTED) return -exp(v + row) - exp(v + column);
  if (w->form == UNICON__DEVICE_SQUARE) return *value += s * s, -w->scale * s;
  *value += log1p(exp(v));
  return -w->scale / (1 + exp(-v));
}

static void weights_of_a_window(bench *b, const plane *p, unicon__device_weights *w) {
  const unicon__device_plane whole = {p->dx, p->dy, NX, NY, R};
  double c[PX * PY] = {0}, value = 0, got_value = 1, alone = 1;
  unicon__matrix *sum = zeros(b, PX, PY, DOUBLE);
  for (int i = (int)w->x0; i < w->x0 + w->n_x; i++)
    for (int j = (int)w->y0; j < w->y0 + w->n_y; j++) {
      const double s =
          isnan(p->entry[i][j]) ? naive_weight(w, i, j, p->s[i][j], &value) : p->entry[i][j];
      for (int k = 0; k < PX; k++)
        for (int l = 0; l < PY; l++)
          c[k * PY + l] += s * (double)p->phi_x[(w->phi_x0 + i - w->x0) * PX + k] *
                           (double)p->phi_y[(w->phi_y0 + j - w->y0) * PY + l];
    }
  const bool pointwise = w->form >= UNICON__DEVICE_SIGMOID;
  RUN(b, weigh, &whole, w, sum, pointwise ? &got_value : NULL);
  double *got = fetched_wide(b, sum, PX, PY);
  double most = 0, far = 0;
  for (int k = 0; k < PX * PY; k++) {
    most = fmax(most, fabs(c[k]));
    far = fmax(far, fabs(got[k] - c[k]));
  }
  /* of sums of about 1000 terms of about 1 */
  CHECK_CLOSE(far, 0, b->reduced ? 1e-2 * most : 2e-3);
  if (b->reduced) assert_true(far > 1e-5 * most);
  if (pointwise) {
    CHECK_CLOSE(got_value - 1, value, (b->reduced ? 1e-3 : 1e-4) * (1 + fabs(value)));
    w->phi_x = w->phi_y = NULL;
    RUN(b, weigh, &whole, w, NULL, &alone);
    CHECK_CLOSE(alone, got_value, 1e-6 * (1 + fabs(value)));
  }
  free(got);
}

static void weights_of_the_plane(bench *b) {
  plane p;
  float row[NX], column[NY], log_row[NX], log_column[NY];
  plane_open(b, &p);
  for (int i = 0; i < NX; i++) {
    row[i] = i == 4 ? 0 : 0.5F + (float)i / NX;
    log_row[i] = i == 4 ? -INFINITY : -30 + row[i];
  }
  for (int j = 0; j < NY; j++) {
    column[j] = j == 3 ? 0 : 0.25F + (float)j / NY;
    log_column[j] = j == 3 ? -INFINITY : -30 + column[j];
  }
  for (int form = 0; form < 4; form++)
    for (int part = 0; part < 2; part++) {
      const bool shifted = form == UNICON__DEVICE_SHIFTED, exps = form <= UNICON__DEVICE_SHIFTED;
      unicon__device_weights w = {.form = form,
                                  .a = shifted ? 30 : 2,
                                  .bias = form == UNICON__DEVICE_SIGMOID ? -1.5 : 0,
                                  .scale = 0.75,
                                  .row = !exps     ? NULL
                                         : shifted ? log_row
                                                   : row,
                                  .column = !exps     ? NULL
                                            : shifted ? log_column
                                                      : column,
                                  .fixed = &p.sparse,
                                  .x0 = part ? 7 : 0,
                                  .n_x = part ? 30 : NX,
                                  .y0 = part ? 11 : 0,
                                  .n_y = part ? 50 : NY,
                                  .phi_x = p.fx,
                                  .phi_y = p.fy,
                                  .phi_x0 = part ? 2 : 0,
                                  .phi_y0 = part ? 9 : 0};
      weights_of_a_window(b, &p, &w);
    }
  plane_close(&p);
}

/* ---- use ---------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left < right) - (left > right);
}

static void biases(bench *b) {
  enum { N = 33, M = 70, WIDE = R + 1 };
  float *z = support_unit_rows(1, N, WIDE), *bank = support_unit_rows(2, M, R), got[N];
  unicon__matrix *dz = sent(b, z, N, WIDE), *db = sent(b, bank, M, R);
  static const struct {
    int form;
    double strength;
  } hows[] = {{UNICON__DEVICE_SOFTMAX, 0.5},
              {UNICON__DEVICE_SOFTMAX, 500},
              {UNICON__DEVICE_CSLS, 1},
              {UNICON__DEVICE_CSLS, 10},
              {UNICON__DEVICE_CSLS, 1000}};
  for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
    RUN(b, bias, dz, 3, N - 3, db, hows[h].form, hows[h].strength, got);
    for (int i = 3; i < N; i++) {
      double s[M], sum = 0;
      for (int k = 0; k < M; k++) s[k] = support_dot(z + i * WIDE, bank + k * R, R);
      qsort(s, M, sizeof *s, descending);
      const bool csls = hows[h].form == UNICON__DEVICE_CSLS;
      const int near = csls && hows[h].strength < M ? (int)hows[h].strength : M;
      for (int k = 0; k < near; k++)
        sum += csls ? s[k] / near / 2 : exp(hows[h].strength * (s[k] - s[0])) / M;
      CHECK_CLOSE(got[i - 3], csls ? sum : s[0] + log(sum) / hows[h].strength, 2e-6);
    }
  }
  free(z), free(bank);
}

/* The place of a candidate among all, ties in the order of the rows. */
static int64_t place_of(const double *s, const bool *there, int64_t n, int64_t j) {
  int64_t place = 0;
  for (int64_t k = 0; k < n; k++) place += there[k] && (s[k] > s[j] || (s[k] == s[j] && k < j));
  return place;
}

enum { QUERIES = 21, CANDIDATES = 90, FIRST = 40 };

/* Candidates, of which a few are the same row. */
static float *tied_rows(uint64_t seed) {
  float *rows = support_unit_rows(seed, CANDIDATES, R);
  for (int k = 0; k < R; k++)
    rows[7 * R + k] = rows[60 * R + k] = rows[61 * R + k] = rows[3 * R + k];
  return rows;
}

static void neighbours(bench *b) {
  float *q = support_unit_rows(1, QUERIES, R), *c = tied_rows(2);
  unicon__matrix *dq = sent(b, q, QUERIES, R), *dc = sent(b, c, CANDIDATES, R);
  static const int64_t ks[] = {1, 5, CANDIDATES + 3};
  int64_t self[QUERIES];
  for (int i = 0; i < QUERIES; i++) self[i] = i % 3 ? 3 * i : -1;
  for (int t = 0; t < 6; t++) {
    const int64_t k = ks[t % 3];
    const bool alone = t >= 3;
    double *score = support_doubles(QUERIES * k), s[CANDIDATES];
    int64_t *id = calloc((size_t)(QUERIES * k), sizeof *id);
    assert_non_null(id);
    for (int64_t e = 0; e < QUERIES * k; e++) id[e] = -1;
    for (int part = 0; part < 2; part++) {
      const unicon__device_scores scores = {.query = dq,
                                            .candidate = dc,
                                            .q0 = 1,
                                            .queries = QUERIES - 1,
                                            .c0 = part ? FIRST : 0,
                                            .candidates = part ? CANDIDATES - FIRST : FIRST,
                                            .width = R,
                                            .number = part ? FIRST : 0,
                                            .self = alone ? self + 1 : NULL};
      RUN(b, nearest, &scores, k, score + k, id + k);
    }
    for (int i = 1; i < QUERIES; i++) {
      bool there[CANDIDATES];
      int64_t found = 0;
      for (int j = 0; j < CANDIDATES; j++) {
        s[j] = support_dot(q + i * R, c + j * R, R);
        there[j] = !alone || self[i] != j;
      }
      for (int j = 0; j < CANDIDATES; j++) {
        const int64_t place = place_of(s, there, CANDIDATES, j);
        if (!there[j] || place >= k) continue;
        assert_int_equal(id[i * k + place], j);
        CHECK_CLOSE(score[i * k + place], s[j], 1e-14);
        found++;
      }
      for (int64_t e = found; e < k; e++) assert_int_equal(id[i * k + e], -1);
    }
    free(score), free(id);
  }
  free(q), free(c);
}

static void ranks(bench *b) {
  float *q = support_unit_rows(1, QUERIES, R), *c = tied_rows(2);
  unicon__matrix *dq = sent(b, q, QUERIES, R), *dc = sent(b, c, CANDIDATES, R);
  /* positives of query i: rows 3 (tied with others) and i; none for every fourth */
  int64_t start[QUERIES + 1] = {0}, hidden[2 * QUERIES], above[2 * QUERIES] = {0};
  int64_t self[QUERIES];
  double threshold[2 * QUERIES], top[QUERIES], sum[QUERIES] = {0};
  int64_t at = 0;
  for (int i = 0; i < QUERIES; i++) {
    const int own = i == 3 ? 4 : i, low = own < 3 ? own : 3, high = own < 3 ? 3 : own;
    start[i] = at;
    self[i] = i + 30;
    top[i] = -INFINITY;
    if (i % 4 == 0) continue;
    hidden[at] = low;
    hidden[at + 1] = high;
    for (int k = 0; k < 2; k++)
      threshold[at + k] = support_dot(q + i * R, c + hidden[at + k] * R, R);
    qsort(threshold + at, 2, sizeof *threshold, descending);
    at += 2;
  }
  start[QUERIES] = at;
  for (int part = 0; part < 2; part++) {
    const unicon__device_sparse hide = {QUERIES, start, hidden, NULL};
    const unicon__device_scores scores = {.query = dq,
                                          .candidate = dc,
                                          .queries = QUERIES,
                                          .c0 = part ? FIRST : 0,
                                          .candidates = part ? CANDIDATES - FIRST : FIRST,
                                          .width = R,
                                          .number = part ? FIRST : 0,
                                          .self = self};
    const unicon__device_ranks wanted = {.start = start,
                                         .threshold = threshold,
                                         .hidden = &hide,
                                         .above = above,
                                         .top = top,
                                         .sum = sum};
    RUN(b, ranks, &scores, &wanted, 1);
  }
  for (int i = 0; i < QUERIES; i++) {
    int64_t want[2] = {0, 0};
    double most = -INFINITY, total = 0;
    if (i % 4 == 0) continue;
    for (int j = 0; j < CANDIDATES; j++) {
      const double s = support_dot(q + i * R, c + j * R, R);
      if (j == hidden[start[i]] || j == hidden[start[i] + 1] || j == self[i]) continue;
      if (s >= threshold[start[i]])
        want[0]++;
      else if (s >= threshold[start[i] + 1])
        want[1]++;
      most = fmax(most, s);
      total += s;
    }
    assert_int_equal(above[start[i]], want[0]);
    assert_int_equal(above[start[i] + 1], want[1]);
    CHECK_CLOSE(top[i], most, 1e-6);
    CHECK_CLOSE(sum[i], total, 1e-5);
  }
  free(q), free(c);
}

/* By all columns and by all but the last in one walk, with the first candidates of both: as each by
 * itself. The last column is no small thing. */
static void ranks_by_two_scales(bench *b) {
  enum { K = 5 };
  float *q = support_unit_rows(1, QUERIES, R), *c = tied_rows(2);
  for (int i = 0; i < QUERIES; i++) q[i * R + R - 1] = 1;
  for (int j = 0; j < CANDIDATES; j++) c[j * R + R - 1] = (float)(j % 9) / 8;
  unicon__matrix *dq = sent(b, q, QUERIES, R), *dc = sent(b, c, CANDIDATES, R);
  int64_t start[QUERIES + 1], hidden[QUERIES], above[4][QUERIES] = {{0}}, id[4][QUERIES * K];
  double threshold[2][QUERIES], score[4][QUERIES * K];
  for (int i = 0; i <= QUERIES; i++) start[i] = i;
  for (int i = 0; i < QUERIES; i++) {
    hidden[i] = (3 * i) % CANDIDATES;
    for (int by = 0; by < 2; by++)
      threshold[by][i] = support_dot(q + i * R, c + hidden[i] * R, R - by);
  }
  memset(id, 255, sizeof id);
  const unicon__device_sparse hide = {QUERIES, start, hidden, NULL};
  unicon__device_ranks both[2];
  const unicon__device_scores all = {
      .query = dq, .candidate = dc, .queries = QUERIES, .candidates = CANDIDATES, .width = R};
  for (int by = 0; by < 2; by++) {
    unicon__device_scores s = all;
    s.width = R - by;
    const unicon__device_ranks one = {
        .start = start, .threshold = threshold[by], .hidden = &hide, .above = above[by]};
    RUN(b, ranks, &s, &one, 1);
    RUN(b, nearest, &s, (int64_t)K, score[by], id[by]);
    both[by] = one;
    both[by].above = above[2 + by];
    both[by].k = K;
    both[by].score = score[2 + by];
    both[by].id = id[2 + by];
  }
  RUN(b, ranks, &all, both, 2);
  assert_memory_equal(above[2], above[0], 2 * sizeof above[0]);
  assert_memory_not_equal(above[0], above[1], sizeof above[0]);
  assert_memory_equal(id[2], id[0], 2 * sizeof id[0]);
  for (int k = 0; k < 2 * QUERIES * K; k++)
    CHECK_CLOSE((&score[2][0])[k], (&score[0][0])[k], 1e-14);
  free(q), free(c);
}

/* ---- dense algebra ------------------------------------------------------------------------ */

static double *wide_normals(uint64_t seed, int64_t count) {
  double *out = support_doubles(count);
  uint64_t state = seed;
  for (int64_t k = 0; k < count; k++) out[k] = support_normal(&state);
  return out;
}

/* Rows of q are orthonormal. */
static void check_orthonormal(const double *q, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j <= i; j++) {
      double sum = 0;
      for (int64_t k = 0; k < cols; k++) sum += q[i * cols + k] * q[j * cols + k];
      CHECK_CLOSE(sum, i == j, 1e-12);
    }
}

static void eigenvectors(bench *b) {
  static const int64_t sizes[] = {1, 2, 33, 70};
  for (size_t t = 0; t < 4; t++) {
    const int64_t n = sizes[t];
    double *half = wide_normals(1 + t, n * n), *a = support_doubles(n * n);
    double *v = support_doubles(n * n), *w = support_doubles(n);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) a[i * n + j] = half[i * n + j] + half[j * n + i];
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) v[i * n + j] = j <= i ? a[i * n + j] : NAN;
    RUN(b, eigen, n, v, w);
    check_orthonormal(v, n, n);
    for (int64_t k = 0; k < n; k++) {
      assert_true(k == 0 || w[k] >= w[k - 1]);
      for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += a[i * n + j] * v[k * n + j];
        CHECK_CLOSE(sum, w[k] * v[k * n + i], 1e-11);
      }
    }
    free(half), free(a), free(v), free(w);
  }
}

static void singular_values(bench *b) {
  static const int64_t shapes[][2] = {{1, 1}, {7, 3}, {3, 7}, {40, 40}, {60, 25}, {25, 60}};
  for (size_t t = 0; t < 12; t++) {
    const int64_t m = shapes[t % 6][0], n = shapes[t % 6][1], q = m < n ? m : n;
    double *a = wide_normals(1 + t, m * n), *copy = support_doubles(m * n);
    double *s = support_doubles(q), *u = support_doubles(m * q), *vt = support_doubles(q * n);
    double *ut = support_doubles(m * q);
    for (int64_t i = 0; i < m && t >= 6; i++) /* rank 1: the rest of the basis is still there */
      for (int64_t j = 0; j < n; j++) a[i * n + j] = (double)(i + 1) * (double)(j + 2) / 10;
    memcpy(copy, a, (size_t)(m * n) * sizeof *a);
    RUN(b, svd, m, n, a, s, u, vt);
    for (int64_t i = 0; i < m; i++)
      for (int64_t k = 0; k < q; k++) ut[k * m + i] = u[i * q + k];
    check_orthonormal(ut, q, m);
    check_orthonormal(vt, q, n);
    for (int64_t k = 0; k < q; k++) assert_true(s[k] >= 0 && (k == 0 || s[k] <= s[k - 1]));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t k = 0; k < q; k++) sum += u[i * q + k] * s[k] * vt[k * n + j];
        CHECK_CLOSE(sum, copy[i * n + j], 1e-10);
      }
    free(a), free(copy), free(s), free(u), free(vt), free(ut);
  }
}

/* The leading triples: those of the matrix, and the next value. */
static void leading_triples(bench *b) {
  static const int64_t shape[][3] = {{40, 23, 5}, {23, 40, 23}, {9, 9, 1}};
  for (size_t c = 0; c < sizeof shape / sizeof *shape; c++) {
    const int64_t m = shape[c][0], n = shape[c][1], r = shape[c][2], q = m < n ? m : n;
    double *a = wide_normals(3, m * n), *copy = wide_normals(3, m * n);
    double *all = support_doubles(q + 1), *u = support_doubles(m * q), *v = support_doubles(n * q);
    double *full_u = support_doubles(m * q), *full_vt = support_doubles(q * n);
    double *s = support_doubles(r + 1);
    RUN(b, svd, m, n, copy, all, full_u, full_vt);
    RUN(b, leading, m, n, r, a, s, u, v);
    for (int64_t k = 0; k <= r; k++) CHECK_CLOSE(s[k], k < q ? all[k] : 0, 1e-10);
    for (int64_t i = 0; i < m; i++)
      for (int64_t k = 0; k < r; k++) { /* A v = s u, and u is of length 1 with the others */
        double sum = 0, dot = 0;
        for (int64_t j = 0; j < n; j++) sum += a[i * n + j] * v[j * r + k];
        CHECK_CLOSE(sum, s[k] * u[i * r + k], 1e-10);
        for (int64_t j = 0; j < m && i < r; j++) dot += u[j * r + i] * u[j * r + k];
        if (i < r) CHECK_CLOSE(dot, i == k, 1e-9);
      }
    free(a), free(copy), free(all), free(u), free(v), free(full_u), free(full_vt), free(s);
  }
}

static void wide_products(bench *b) {
  enum { M = 17, N = 23, K = 31 };
  for (int t = 0; t < 4; t++) {
    double *left = wide_normals(1, M * K), *right = wide_normals(2, K * N), got[M * N];
    double *want = support_doubles(M * N);
    support_product(t & 1, t & 2, M, N, K, left, right, want);
    RUN(b, product, t & 1, (t & 2) / 2, M, N, K, left, right, got);
    check_wide(got, want, M * N, 1e-12);
    free(left), free(right), free(want);
  }
}

/* ---- memory of others --------------------------------------------------------------------- */

/* Rows go out and come back, turned around. */
static void foreign_rows(bench *b) {
  float *x = support_normals(1, ROWS * IN);
  unicon__matrix *m = sent(b, x, ROWS, IN), *turned = zeros(b, IN + 1, ROWS, SINGLE);
  void *data;
  int32_t number = -1;
  RUN(b, room_new, (uint64_t)(ROWS * IN * 4), &data, &number);
  unicon__foreign f = {data, ROWS, IN, IN * 4, 4, SINGLE, number, 0};
  RUN(b, hand, m, 0, 20, &f, 0);
  RUN(b, hand, m, 20, ROWS - 20, &f, 20);
  const unicon__foreign back = {data, IN, ROWS, 4, IN * 4, SINGLE, number, 1};
  RUN(b, receive, turned, 1, 10, &back, 0);
  RUN(b, receive, turned, 11, IN - 10, &back, 10);
  float *got = fetched(b, turned, IN + 1, ROWS);
  for (int k = 0; k < IN; k++)
    for (int i = 0; i < ROWS; i++) assert_true(got[(k + 1) * ROWS + i] == x[i * IN + k]);
  for (int i = 0; i < ROWS; i++) assert_true(got[i] == 0);
  f.number = number + 1;
  assert_int_equal(b->table->receive(b->device, turned, 0, 1, &f, 0), UNICON__DEVICE_FAILED);
  b->table->room_free(data, number);
  free(x), free(got);
}

static void flawed_rows(bench *b) {
  float *x = support_normals(1, ROWS * IN);
  static const struct {
    int first, zero, want;
  } tries[] = {{0, 0, 9}, {0, 1, 4}, {5, 1, 4}, {10, 0, 12}, {23, 1, -1}};
  for (int k = 0; k < IN; k++) x[4 * IN + k] = 0;
  x[9 * IN + 18] = NAN, x[22 * IN] = -INFINITY;
  unicon__matrix *m = sent(b, x, ROWS, IN);
  for (size_t t = 0; t < sizeof tries / sizeof *tries; t++) {
    int64_t row = 77;
    RUN(b, flaw, m, tries[t].first, ROWS - tries[t].first, tries[t].zero, &row);
    assert_int_equal(row, tries[t].want);
  }
  free(x);
}

/* ---- refine --------------------------------------------------------------------------------- */

enum { RX = 12, RY = 10, FX = 6, FY = 5, RANK = 3, BATCHES = 2, ENTRIES = 64 };

/* Batches with their entries: positives, an ignored pair and one that counts half. */
typedef struct batches {
  int64_t start[2][BATCHES + 1], row[2][32], from[32], column[ENTRIES], entries;
  double value[ENTRIES], omega[2][ENTRIES], rate[BATCHES], loss[BATCHES];
  unicon__device_sparse sparse;
} batches;

static void make_batches(batches *k, bool supcon) {
  static const int64_t rows[2][BATCHES][6] = {{{0, 2, 3, 7, 9, 11}, {1, 2, 4, 5, -1, -1}},
                                              {{0, 1, 4, 6, 9, -1}, {2, 3, 5, 7, 8, -1}}};
  *k = (batches){.entries = 0};
  for (int t = 0; t < BATCHES; t++) {
    for (int s = 0; s < 2; s++) {
      k->start[s][t + 1] = k->start[s][t];
      for (int i = 0; i < 6 && rows[s][t][i] >= 0; i++)
        k->row[s][k->start[s][t + 1]++] = rows[s][t][i];
    }
    const int64_t n_y = k->start[1][t + 1] - k->start[1][t];
    for (int64_t i = k->start[0][t]; i < k->start[0][t + 1]; i++) {
      const int64_t place = i - k->start[0][t], j = place % (n_y - 1);
      k->from[i] = k->entries;
      for (int e = 0; e < 2; e++) { /* the second: a positive, ignored, half a negative */
        const bool positive = e == 0 || place % 3 == 0;
        if (place == 4 && e == 0) continue; /* a row without a positive */
        k->column[k->entries] = j + e;
        k->value[k->entries] = positive ? supcon : place % 3 == 1 ? 0 : 0.5;
        k->omega[0][k->entries] = positive ? 0.05 + 0.01 * (double)i : 0;
        k->omega[1][k->entries++] = positive && place != 2 ? 0.04 + 0.02 * (double)e : 0;
      }
    }
    k->rate[t] = 0.1 / (t + 1);
  }
  k->from[k->start[0][BATCHES]] = k->entries;
  k->sparse = (unicon__device_sparse){k->start[0][BATCHES], k->from, k->column, k->value};
}

/* A problem: features, metrics, factors. */
typedef struct tuning {
  float *phi[2], *scale[2], *whole[2], *g[2];
  int kind; /* 0: plain, 1: scale, 2: whole */
  double a, nu, own;
  int form;
} tuning;

static const int64_t tuned_p[2] = {FX, FY}, tuned_n[2] = {RX, RY};

/* F of a side from any factors, in float64. */
static void naive_weights(const tuning *u, int s, const double *g, double *f) {
  const int64_t p = tuned_p[s];
  for (int64_t i = 0; i < p; i++)
    for (int64_t k = 0; k < RANK; k++) {
      double sum = 0;
      for (int64_t j = 0; j < p && u->kind == 2; j++)
        sum += (double)u->whole[s][i * p + j] * g[j * RANK + k];
      f[i * RANK + k] = u->kind == 2   ? sum
                        : u->kind == 1 ? (double)u->scale[s][i] * g[i * RANK + k]
                                       : g[i * RANK + k];
    }
}

static void naive_unit(const tuning *u, int s, int64_t row, const double *f, double *z) {
  double square = 0;
  for (int k = 0; k < RANK; k++) {
    z[k] = 0;
    for (int64_t j = 0; j < tuned_p[s]; j++)
      z[k] += (double)u->phi[s][row * tuned_p[s] + j] * f[j * RANK + k];
    square += z[k] * z[k];
  }
  for (int k = 0; k < RANK; k++) z[k] /= sqrt(square);
}

/* The loss of one positive. */
static double naive_part(const tuning *u, double v, double n) {
  const double d = u->own * exp(v) + n;
  if (u->form == UNICON__DEVICE_LOG) return (log(d) - u->nu * v) / u->a;
  if (u->form == UNICON__DEVICE_LOG1P) return log(1 + d * exp(-u->nu * v)) / u->a;
  return d * exp(-u->nu * v);
}

/* L of batch t. */
static double naive_loss(const tuning *u, const batches *k, int t, double *const g[2]) {
  double f[2][FX * RANK], z[2][8][RANK], v[8][8], e[8][8], n[2][8] = {{0}, {0}}, loss = 0;
  int64_t count[2];
  for (int s = 0; s < 2; s++) {
    naive_weights(u, s, g[s], f[s]);
    count[s] = k->start[s][t + 1] - k->start[s][t];
    for (int64_t i = 0; i < count[s]; i++)
      naive_unit(u, s, k->row[s][k->start[s][t] + i], f[s], z[s][i]);
  }
  for (int64_t i = 0; i < count[0]; i++)
    for (int64_t j = 0; j < count[1]; j++) {
      v[i][j] = 0;
      for (int c = 0; c < RANK; c++) v[i][j] += u->a * z[0][i][c] * z[1][j][c];
      e[i][j] = 1;
      for (int64_t at = k->from[k->start[0][t] + i]; at < k->from[k->start[0][t] + i + 1]; at++)
        if (k->column[at] == j) e[i][j] = k->value[at];
      n[0][i] += e[i][j] * exp(v[i][j]);
      n[1][j] += e[i][j] * exp(v[i][j]);
    }
  for (int64_t i = 0; i < count[0]; i++)
    for (int64_t at = k->from[k->start[0][t] + i]; at < k->from[k->start[0][t] + i + 1]; at++) {
      const int64_t j = k->column[at];
      if (k->omega[0][at] > 0) loss += k->omega[0][at] * naive_part(u, v[i][j], n[0][i]);
      if (k->omega[1][at] > 0) loss += k->omega[1][at] * naive_part(u, v[i][j], n[1][j]);
    }
  return loss;
}

/* dL/dG of a side by differences. */
static void naive_slopes(const tuning *u, const batches *k, int t, double *const g[2], int s,
                         double *out) {
  const double h = 1e-5;
  for (int64_t at = 0; at < tuned_p[s] * RANK; at++) {
    const double kept = g[s][at];
    g[s][at] = kept + h;
    const double above = naive_loss(u, k, t, g);
    g[s][at] = kept - h;
    out[at] = (above - naive_loss(u, k, t, g)) / (2 * h);
    g[s][at] = kept;
  }
}

/* Both steps from the definition; ends with what the device is to end with. */
static void naive_steps(const tuning *u, const batches *k, int64_t first, double *const g[2],
                        double *const mean[2], double *const square[2], double *loss) {
  double slope[2][FX * RANK];
  for (int t = 0; t < BATCHES; t++) {
    const double n = (double)(first + t + 1);
    loss[t] = naive_loss(u, k, t, g);
    for (int s = 0; s < 2; s++) naive_slopes(u, k, t, g, s, slope[s]);
    for (int s = 0; s < 2; s++) {
      const int64_t count = tuned_p[s] * RANK;
      double size = 0;
      for (int64_t at = 0; at < count; at++) size += slope[s][at] * slope[s][at] / (double)count;
      for (int64_t at = 0; at < count; at++) {
        mean[s][at] = 0.9 * mean[s][at] + 0.1 * slope[s][at];
        square[s][at] = 0.999 * square[s][at] + 0.001 * slope[s][at] * slope[s][at];
        g[s][at] = (1 - k->rate[t] * 0.02) * g[s][at] -
                   k->rate[t] * mean[s][at] / (1 - pow(0.9, n)) /
                       (sqrt(square[s][at] / (1 - pow(0.999, n))) + 1e-4 * sqrt(size) + 1e-20);
      }
    }
  }
}

static void check_single(bench *b, const unicon__matrix *m, const double *want, int64_t rows,
                         double tolerance) {
  float *got = fetched(b, m, rows, RANK);
  for (int64_t at = 0; at < rows * RANK; at++) CHECK_CLOSE(got[at], want[at], tolerance);
  free(got);
}

static void open_tuned(bench *b, const tuning *u, unicon__device_tuned side[2]) {
  for (int s = 0; s < 2; s++) {
    const int64_t p = tuned_p[s];
    side[s] = (unicon__device_tuned){.phi = sent(b, u->phi[s], tuned_n[s], p),
                                     .scale = u->kind == 1 ? sent(b, u->scale[s], 1, p) : NULL,
                                     .whole = u->kind == 2 ? sent(b, u->whole[s], p, p) : NULL,
                                     .g = sent(b, u->g[s], p, RANK),
                                     .mean = zeros(b, p, RANK, SINGLE),
                                     .square = zeros(b, p, RANK, SINGLE),
                                     .f = zeros(b, p, RANK, SINGLE)};
  }
}

static unicon__device_steps steps_of(const tuning *u, batches *k, int64_t first) {
  return (unicon__device_steps){.steps = BATCHES,
                                .first = first,
                                .start = {k->start[0], k->start[1]},
                                .row = {k->row[0], k->row[1]},
                                .entries = &k->sparse,
                                .omega_x = k->omega[0],
                                .omega_y = k->omega[1],
                                .a = u->a,
                                .nu = u->nu,
                                .own = u->own,
                                .phi = u->form,
                                .rate = k->rate,
                                .decay = 0.02,
                                .value = k->loss};
}

/* Once more from the same start: the same bytes. */
static void check_again(bench *b, const tuning *u, const unicon__device_steps *steps,
                        const unicon__device_tuned before[2]) {
  unicon__device_tuned side[2];
  open_tuned(b, u, side);
  RUN(b, refine, side, steps);
  for (int s = 0; s < 2; s++) {
    float *one = fetched(b, before[s].g, tuned_p[s], RANK);
    float *two = fetched(b, side[s].g, tuned_p[s], RANK);
    assert_memory_equal(one, two, (size_t)(tuned_p[s] * RANK) * sizeof *one);
    free(one), free(two);
  }
}

static void check_refine(bench *b, const tuning *u, batches *k, int64_t first) {
  unicon__device_tuned side[2];
  unicon__device_steps steps = steps_of(u, k, first);
  const unicon__device_steps none = {.steps = 0};
  double *g[2], *mean[2], *square[2], loss[BATCHES], f[FX * RANK];
  open_tuned(b, u, side);
  RUN(b, refine, side, &none); /* F alone */
  for (int s = 0; s < 2; s++) {
    const int64_t count = tuned_p[s] * RANK;
    g[s] = support_doubles(count);
    mean[s] = support_doubles(count);
    square[s] = support_doubles(count);
    for (int64_t at = 0; at < count; at++) g[s][at] = (double)u->g[s][at];
    naive_weights(u, s, g[s], f);
    check_single(b, side[s].f, f, tuned_p[s], 1e-6);
    check_single(b, side[s].g, g[s], tuned_p[s], 1e-7);
  }
  RUN(b, refine, side, &steps);
  naive_steps(u, k, first, g, mean, square, loss);
  for (int t = 0; t < BATCHES; t++) CHECK_CLOSE(k->loss[t], loss[t], 2e-5 * (1 + fabs(loss[t])));
  for (int s = 0; s < 2; s++) {
    double size = 0;
    for (int64_t at = 0; at < tuned_p[s] * RANK; at++) size = fmax(size, fabs(mean[s][at]));
    check_single(b, side[s].mean, mean[s], tuned_p[s], 1e-4 * size);
    check_single(b, side[s].g, g[s], tuned_p[s], 2e-4);
    naive_weights(u, s, g[s], f);
    check_single(b, side[s].f, f, tuned_p[s], 5e-4);
    free(g[s]), free(mean[s]), free(square[s]);
  }
  check_again(b, u, &steps, side);
}

static void refined(bench *b) {
  static const struct {
    int kind, form;
    double a, nu, own;
    bool supcon;
  } forms[] = {{0, UNICON__DEVICE_LOG, 10, 1, 1, false},
               {1, UNICON__DEVICE_LOG, 90, 1, 1, false},
               {2, UNICON__DEVICE_LOG, 5, 1, 1, false},
               {1, UNICON__DEVICE_LOG, 4, 1, 0, true},
               {2, UNICON__DEVICE_LOG1P, 3, 0.5, 0.25, false},
               {0, UNICON__DEVICE_IDENTITY, 2, 0.8, 0.5, false}};
  tuning u = {.kind = 0};
  for (int s = 0; s < 2; s++) {
    u.phi[s] = support_normals(10 + (uint64_t)s, tuned_n[s] * tuned_p[s]);
    u.scale[s] = support_normals(20 + (uint64_t)s, tuned_p[s]);
    u.whole[s] = support_normals(30 + (uint64_t)s, tuned_p[s] * tuned_p[s]);
    u.g[s] = support_normals(40 + (uint64_t)s, tuned_p[s] * RANK);
  }
  for (size_t c = 0; c < sizeof forms / sizeof *forms; c++) {
    batches k;
    make_batches(&k, forms[c].supcon);
    u.kind = forms[c].kind;
    u.form = forms[c].form;
    u.a = forms[c].a;
    u.nu = forms[c].nu;
    u.own = forms[c].own;
    check_refine(b, &u, &k, c % 2 ? 7 : 0);
    unicon__device_close(b->ctx, &b->room);
  }
  for (int s = 0; s < 2; s++) free(u.phi[s]), free(u.scale[s]), free(u.whole[s]), free(u.g[s]);
}

/* ---- held-out rows -------------------------------------------------------------------------- */

enum { JX = 14, JY = 31, JB = 40, WIDE_R = R + 2 };

/* Unit rows of the leading columns in float32, as the definition has them. */
static float *leading_rows(const float *from, int64_t n, int64_t rank, const double *scale,
                           bool rounded) {
  float *out = support_floats(n * rank);
  for (int64_t i = 0; i < n; i++) {
    double square = 0;
    for (int64_t k = 0; k < rank; k++) {
      out[i * rank + k] = (float)((double)from[i * WIDE_R + k] * (scale ? scale[k] : 1));
      square += (double)out[i * rank + k] * (double)out[i * rank + k];
    }
    for (int64_t k = 0; k < rank; k++)
      out[i * rank + k] = (float)((double)out[i * rank + k] / sqrt(square));
  }
  if (rounded) unicon__bank_round(out, n * rank);
  return out;
}

static double naive_bias(const float *v, const float *bank, int64_t rank, int form,
                         double strength) {
  double s[JB], sum = 0;
  for (int k = 0; k < JB; k++) s[k] = support_dot(v, bank + k * rank, rank);
  qsort(s, JB, sizeof *s, descending);
  const bool csls = form == UNICON__DEVICE_CSLS;
  const int near = csls ? (int)strength : JB;
  for (int k = 0; k < near; k++) sum += csls ? s[k] / near / 2 : exp(strength * (s[k] - s[0])) / JB;
  return csls ? sum : s[0] + log(sum) / strength;
}

/* What comes back of a direction, against all scores. */
static void check_direction(const unicon__device_judge *j, int d, const float *q, const float *c,
                            const double *bias, int64_t rank) {
  const int64_t n = d == 0 ? JX : JY, m = d == 0 ? JY : JX;
  const unicon__device_ranks *of = &j->of[d];
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = of->start[i], count = of->start[i + 1] - from;
    double own[4], top = -INFINITY, sum = 0;
    int64_t above[4] = {0};
    for (int64_t k = 0; k < count; k++) {
      const int64_t v = j->match[d][from + k];
      own[k] = support_dot(q + i * rank, c + v * rank, rank) - bias[v];
    }
    qsort(own, (size_t)count, sizeof *own, descending);
    for (int64_t v = 0; v < m; v++) {
      const double s = support_dot(q + i * rank, c + v * rank, rank) - bias[v];
      bool hidden = v == j->self[d][i];
      for (int64_t k = of->hidden->start[i]; k < of->hidden->start[i + 1]; k++)
        hidden = hidden || of->hidden->column[k] == v;
      if (hidden) continue;
      for (int64_t k = 0; k < count; k++)
        if (s >= own[k]) {
          above[k]++;
          break;
        }
      top = fmax(top, s);
      sum += s;
    }
    for (int64_t k = 0; k < count; k++) {
      CHECK_CLOSE(of->threshold[from + k], own[k], 3e-6);
      assert_int_equal(of->above[from + k], above[k]);
    }
    if (count == 0) continue;
    CHECK_CLOSE(of->top[i], top, 3e-6);
    CHECK_CLOSE(of->sum[i], sum, 1e-4);
  }
}

/* Lists of both directions: query i has matches i and i + 3 (one, or none for every fifth), and one
 * more candidate is hidden from it. */
typedef struct judged_lists {
  int64_t start[JY + 1], hidden_start[JY + 1], match[2 * JY], hidden[3 * JY], self[JY];
  double threshold[2 * JY], top[JY], sum[JY];
  int64_t above[2 * JY];
  unicon__device_sparse sparse;
} judged_lists;

static void make_lists(judged_lists *l, int d, unicon__device_judge *j) {
  const int64_t n = d == 0 ? JX : JY, m = d == 0 ? JY : JX;
  *l = (judged_lists){.start = {0}};
  for (int64_t i = 0; i < n; i++) {
    int64_t *at = &l->start[i + 1], *hidden = &l->hidden_start[i + 1];
    *at = l->start[i];
    *hidden = l->hidden_start[i];
    l->self[i] = i % 7 == 1 ? (i + 5) % m : -1;
    for (int64_t v = 0; v < m && i % 5; v++) {
      const bool match = v == i % m || v == (i + 3) % m;
      if (match) l->match[(*at)++] = v;
      if ((match || v == (i + 8) % m) && v != l->self[i]) l->hidden[(*hidden)++] = v;
    }
  }
  l->sparse = (unicon__device_sparse){n, l->hidden_start, l->hidden, NULL};
  j->match[d] = l->match;
  j->self[d] = l->self;
  j->threshold[d] = l->threshold;
  j->of[d] = (unicon__device_ranks){.start = l->start,
                                    .threshold = l->threshold,
                                    .hidden = &l->sparse,
                                    .above = l->above,
                                    .top = l->top,
                                    .sum = l->sum};
}

static void judged(bench *b) {
  static const struct {
    int64_t rank;
    bool scaled, balanced;
    int form;
    double strength;
  } hows[] = {{WIDE_R, false, false, UNICON__DEVICE_SOFTMAX, 5},
              {R, true, true, UNICON__DEVICE_SOFTMAX, 10},
              {R - 3, true, true, UNICON__DEVICE_CSLS, 7}};
  float *held[2] = {support_normals(1, JX * WIDE_R), support_normals(2, JY * WIDE_R)};
  float *bank[2] = {support_normals(3, JB * WIDE_R), support_normals(4, JB * WIDE_R)};
  const int64_t n[2] = {JX, JY};
  double scale[2][WIDE_R];
  for (int k = 0; k < WIDE_R; k++) scale[0][k] = 1 / (1.0 + k), scale[1][k] = 1.5 - 0.02 * k;
  for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
    const int64_t rank = hows[h].rank;
    const bool scaled = hows[h].scaled, balanced = hows[h].balanced;
    unicon__device_judge j = {.rank = rank, .form = hows[h].form, .strength = hows[h].strength};
    judged_lists lists[2];
    float *z[2], *rows[2];
    for (int s = 0; s < 2; s++) {
      j.held[s] = sent(b, held[s], n[s], WIDE_R);
      j.bank[s] = balanced ? sent(b, bank[s], JB, WIDE_R) : NULL;
      j.scale[s] = scaled ? scale[s] : NULL;
      make_lists(&lists[s], s, &j);
      z[s] = leading_rows(held[s], n[s], rank, j.scale[s], false);
      rows[s] = leading_rows(bank[s], JB, rank, j.scale[s], true);
    }
    for (int again = 0; again < 2; again++) RUN(b, judge, &j); /* nothing is left from before */
    for (int d = 0; d < 2; d++) {
      double bias[JY] = {0};
      for (int64_t v = 0; v < n[1 - d] && balanced; v++)
        bias[v] = naive_bias(z[1 - d] + v * rank, rows[d], rank, hows[h].form, hows[h].strength);
      check_direction(&j, d, z[d], z[1 - d], bias, rank);
    }
    for (int s = 0; s < 2; s++) free(z[s]), free(rows[s]);
    unicon__device_close(b->ctx, &b->room);
  }
  for (int s = 0; s < 2; s++) free(held[s]), free(bank[s]);
}

/* ---- what fails ---------------------------------------------------------------------------- */

/* More than there is: the sentence says so, and everything goes on. */
static void too_much_memory(bench *b) {
  unicon__matrix *m;
  unicon__device_memory before, after;
  char text[200] = "";
  b->table->memory(b->device, &before);
  const int said = b->table->matrix_new(b->device, INT64_C(1) << 40, 1, SINGLE, &m);
  assert_int_equal(said, UNICON__DEVICE_MEMORY);
  assert_null(m);
  b->table->error(b->device, text, sizeof text);
  assert_true(strlen(text) > 10);
  b->table->memory(b->device, &after);
  assert_true(after.used == before.used);
  matrices(b);
}

/* ---- all of it on all of them -------------------------------------------------------------- */

/* The table of cases, with the entry that each needs. */
static const struct {
  const char *name;
  void (*run)(bench *b);
  size_t place;
} cases[] = {
#define CASE(run, entry) \
  { #run, run, offsetof(unicon__device_table, entry) }
    CASE(matrices, upload),
    CASE(elements, upload),
    CASE(features, features),
    CASE(moved_rows, gather),
    CASE(embeddings, embed),
    CASE(products_of_rows, add_product),
    CASE(sums_of_rows, add_sums),
    CASE(sparse_rows, combine),
    CASE(sums_of_the_plane, exp_sums),
    CASE(weights_of_the_plane, weigh),
    CASE(biases, bias),
    CASE(neighbours, nearest),
    CASE(ranks, ranks),
    CASE(ranks_by_two_scales, ranks),
    CASE(eigenvectors, eigen),
    CASE(singular_values, svd),
    CASE(leading_triples, leading),
    CASE(wide_products, product),
    CASE(foreign_rows, receive),
    CASE(flawed_rows, flaw),
    CASE(refined, refine),
    CASE(judged, judge),
    CASE(too_much_memory, matrix_new),
#undef CASE
};

static void run_cases(scratch *s) {
  bench b = {s->ctx, s->ctx->where.table, s->ctx->where.device, {.count = 0}, false};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    void (*entry)(void);
    memcpy(&entry, (const char *)b.table + cases[k].place, sizeof entry);
    if (!entry) {
      print_message("%s has no %s\n", b.table->name, cases[k].name);
      continue;
    }
    unicon__device_memory before, after;
    b.table->memory(b.device, &before);
    cases[k].run(&b);
    unicon__device_close(s->ctx, &b.room);
    b.table->memory(b.device, &after);
    if (after.used > before.used) print_error("%s left memory behind\n", cases[k].name);
    assert_true(after.used <= before.used || strcmp(b.table->name, "soft") != 0);
  }
}

/* What reduced precision changes, and by how much at most. */
static void run_reduced(scratch *s, const char *name) {
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "reduced"));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", name));
  bench b = {s->ctx, s->ctx->where.table, s->ctx->where.device, {.count = 0}, true};
  sums_of_the_plane(&b);
  weights_of_the_plane(&b);
  unicon__device_close(s->ctx, &b.room);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "precision", "full"));
}

static void every_operation_is_its_definition(void **state) {
  scratch *s = *state;
  unicon_device list[DEVICES];
  size_t count;
  soft_reset();
  assert_int_equal(unicon_device_folder(s->ctx, soft_folder()), UNICON_OK);
  CHECK_OK(s->ctx, unicon_devices(s->ctx, list, DEVICES, &count));
  for (size_t k = 1; k < count && k < DEVICES; k++) {
    print_message("device %s: %s\n", list[k].name, list[k].text);
    if (!list[k].usable) continue;
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", list[k].name));
    run_cases(s);
    run_reduced(s, list[k].name);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
    if (strcmp(list[k].name, "soft") != 0) /* a driver keeps files of its own open */
      s->files_open = scratch_count_entries("/proc/self/fd");
  }
}

/* Each launch of the soft device can fail: a sentence, and nothing is left. */
static void failures_have_sentences(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  soft_use(s->ctx, "soft");
  const float row[3] = {1, 2, 3};
  unicon__device_room room = {.count = 0};
  unicon__matrix *m;
  soft->fail_allocation = 0;
  scratch_failed(s, unicon__device_new(s->ctx, &room, 2, 2, SINGLE, &m), UNICON_ERR_MEMORY,
                 "device soft", "bytes are needed");
  soft->fail_launch = 0;
  scratch_failed(s, unicon__device_copy(s->ctx, &room, row, 1, 3, 3, &m), UNICON_ERR_DEVICE,
                 "device soft", "because the test wanted it");
  soft->elsewhere = SOFT_shift;
  scratch_failed(s, unicon__on(s->ctx, shift, m, 0, 1, m), UNICON_ERR_DEVICE, "soft",
                 "no such case");
  unicon__device_close(s->ctx, &room);
  assert_int_equal(soft->matrices, 0);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(every_operation_is_its_definition),
                                     SCRATCH_TEST(failures_have_sentences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
