/* SPDX-License-Identifier: Apache-2.0 */
/* A device in plain C, for tests: every operation of device/device.h as its definition says, in
 * float64 loops, with memory accounts of its own, small blocks and failures on demand. It is loaded
 * as any other plugin. UNICON_SOFT=unusable in the environment makes it unusable. */
#include "soft.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

struct unicon__matrix {
  int64_t rows, cols;
  int element;
  uint64_t bytes;
  double *f64;
  float *f32;
};

struct unicon__device {
  unicon__device_host host;
  uint64_t limit, used, peak;
  char error[200];
};

enum { USUAL_LIMIT = 1 << 30, USUAL_ROWS = 48 };

static soft_control control = {.version = UNICON__DEVICE_VERSION,
                               .memory_kind = 1,
                               .most_rows = USUAL_ROWS,
                               .fail_allocation = -1,
                               .fail_launch = -1,
                               .elsewhere = -1};

EXPORTED soft_control *soft_control_of(void);
soft_control *soft_control_of(void) {
  return &control;
}

/* ---- failures and memory ------------------------------------------------------------------ */

static bool strikes(int64_t *counter) {
  return *counter >= 0 && (*counter)-- == 0;
}

/* The hook of device.h. */
static long hook_after;
static bool hook_stays, hook_struck;

EXPORTED long unicon__device_fault(long after, int stays);
long unicon__device_fault(long after, int stays) {
  const long left = hook_after;
  hook_after = after;
  hook_stays = stays != 0;
  hook_struck = false;
  return left;
}

static bool hooked(void) {
  if (hook_struck && hook_stays) return true;
  hook_struck = hook_after > 0 && --hook_after == 0;
  return hook_struck;
}

static int fail(unicon__device *d, int status, const char *what) {
  snprintf(d->error, sizeof d->error, "%s", what);
  return status;
}

/* An operation begins. */
static int launch(unicon__device *d, int op) {
  control.calls[op]++;
  if (control.elsewhere == op) return UNICON__DEVICE_ELSEWHERE;
  if (d->host.poll && d->host.poll(d->host.user)) return UNICON__DEVICE_CANCELLED;
  if (hooked() || strikes(&control.fail_launch))
    return fail(d, UNICON__DEVICE_FAILED, "an operation failed because the test wanted it");
  return UNICON__DEVICE_OK;
}

#define LAUNCH(d, op)                                     \
  do {                                                    \
    const int launched_ = launch((d), SOFT_##op);         \
    if (launched_ != UNICON__DEVICE_OK) return launched_; \
  } while (0)

static int matrix_new(unicon__device *d, int64_t rows, int64_t cols, int element,
                      unicon__matrix **out) {
  *out = NULL;
  if (rows < 0 || cols < 0 || (element != UNICON__ELEMENT_F32 && element != UNICON__ELEMENT_F64))
    return fail(d, UNICON__DEVICE_FAILED, "a matrix of no shape or element that there is");
  if (hooked())
    return fail(d, hook_stays ? UNICON__DEVICE_FAILED : UNICON__DEVICE_MEMORY,
                "a matrix failed because the test wanted it");
  const uint64_t bytes = (uint64_t)rows * (uint64_t)cols * (element == UNICON__ELEMENT_F64 ? 8 : 4);
  if (d->used + bytes > d->limit || strikes(&control.fail_allocation)) {
    snprintf(d->error, sizeof d->error, "%llu bytes are needed, %llu of %llu are in use",
             (unsigned long long)bytes, (unsigned long long)d->used, (unsigned long long)d->limit);
    return UNICON__DEVICE_MEMORY;
  }
  unicon__matrix *m = calloc(1, sizeof *m);
  void *data = calloc(bytes + 1, 1);
  if (!m || !data) abort();
  *m = (unicon__matrix){rows, cols, element, bytes, NULL, NULL};
  if (element == UNICON__ELEMENT_F64)
    m->f64 = data;
  else
    m->f32 = data;
  d->used += bytes;
  d->peak = d->peak > d->used ? d->peak : d->used;
  control.matrices++;
  *out = m;
  return UNICON__DEVICE_OK;
}

static void matrix_free(unicon__device *d, unicon__matrix *m) {
  if (!m) return;
  d->used -= m->bytes;
  control.matrices--;
  free(m->f64);
  free(m->f32);
  free(m);
}

static double at(const unicon__matrix *m, int64_t i, int64_t k) {
  return m->f64 ? m->f64[i * m->cols + k] : (double)m->f32[i * m->cols + k];
}

static void put(unicon__matrix *m, int64_t i, int64_t k, double value) {
  if (m->f64)
    m->f64[i * m->cols + k] = value;
  else
    m->f32[i * m->cols + k] = (float)value;
}

static bool holds(const unicon__matrix *m, int64_t first, int64_t count) {
  return m && first >= 0 && count >= 0 && first <= m->rows && count <= m->rows - first;
}

/* ---- elements ----------------------------------------------------------------------------- */

static double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double element_value(const unsigned char *from, int element) {
  uint16_t half;
  uint32_t word;
  float single;
  double wide;
  switch (element) {
    case UNICON__ELEMENT_F16:
      memcpy(&half, from, sizeof half);
      return half_value(half);
    case UNICON__ELEMENT_BF16:
      memcpy(&half, from, sizeof half);
      word = (uint32_t)half << 16;
      memcpy(&single, &word, sizeof single);
      return (double)single;
    case UNICON__ELEMENT_F32:
      memcpy(&single, from, sizeof single);
      return (double)single;
    case UNICON__ELEMENT_F64:
      memcpy(&wide, from, sizeof wide);
      return wide;
    case UNICON__ELEMENT_I8:
      return (double)(signed char)*from;
    default:
      return (double)*from;
  }
}

static int64_t element_size(int element) {
  return element == UNICON__ELEMENT_F64    ? 8
         : element == UNICON__ELEMENT_F32  ? 4
         : element <= UNICON__ELEMENT_BF16 ? 2
                                           : 1;
}

static int upload(unicon__device *d, unicon__matrix *to, int64_t first, int64_t count,
                  const void *from, int element, int64_t stride) {
  LAUNCH(d, upload);
  if (!holds(to, first, count)) return fail(d, UNICON__DEVICE_FAILED, "upload past the end");
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < to->cols; k++)
      put(to, first + i, k,
          element_value((const unsigned char *)from + i * stride + k * element_size(element),
                        element));
  return UNICON__DEVICE_OK;
}

static int download(unicon__device *d, const unicon__matrix *from, int64_t first, int64_t count,
                    void *to, int64_t stride) {
  LAUNCH(d, download);
  if (!holds(from, first, count)) return fail(d, UNICON__DEVICE_FAILED, "download past the end");
  for (int64_t i = 0; i < count; i++) {
    unsigned char *row = (unsigned char *)to + i * stride;
    if (from->f64)
      memcpy(row, from->f64 + (first + i) * from->cols, (size_t)from->cols * 8);
    else
      memcpy(row, from->f32 + (first + i) * from->cols, (size_t)from->cols * 4);
  }
  return UNICON__DEVICE_OK;
}

/* ---- features ----------------------------------------------------------------------------- */

static double clamp(double c) {
  return c > 1 ? 1 : c < -1 ? -1 : c;
}

static double kernel_value(const unicon__device_map *m, double product, double xx, double yy) {
  const double pi = acos(-1), lengths = sqrt(xx * yy), l = m->width;
  const double c = lengths > 0 ? clamp(product / lengths) : 0, t = acos(c);
  const double far = sqrt(fmax(0, xx + yy - 2 * product)) / l;
  switch (m->kernel) {
    case UNICON__DEVICE_KERNEL_LINEAR:
      return product;
    case UNICON__DEVICE_KERNEL_COSINE:
      return c;
    case UNICON__DEVICE_KERNEL_ARCCOS0:
      return 1 - t / pi;
    case UNICON__DEVICE_KERNEL_ARCCOS1:
      return lengths * (sin(t) + (pi - t) * c) / pi;
    case UNICON__DEVICE_KERNEL_ARCCOS2:
      return lengths * lengths * (3 * sin(t) * c + (pi - t) * (1 + 2 * c * c)) / (3 * pi);
    case UNICON__DEVICE_KERNEL_EXPCOS:
      return exp(c / (l * l));
    case UNICON__DEVICE_KERNEL_RBF:
      return exp(-far * far / 2);
    case UNICON__DEVICE_KERNEL_MATERN12:
      return exp(-far);
    case UNICON__DEVICE_KERNEL_MATERN32:
      return (1 + sqrt(3) * far) * exp(-sqrt(3) * far);
    case UNICON__DEVICE_KERNEL_MATERN52:
      return (1 + sqrt(5) * far + 5 * far * far / 3) * exp(-sqrt(5) * far);
    default:
      return pow((1 + product) / 2, m->degree);
  }
}

static double random_value(const unicon__device_map *m, double t, double phase) {
  const double scale = sqrt(2 / (double)m->points), positive = t > 0 ? t : 0;
  switch (m->kernel) {
    case UNICON__DEVICE_KERNEL_ARCCOS0:
      return t > 0 ? scale : 0;
    case UNICON__DEVICE_KERNEL_ARCCOS1:
      return scale * positive;
    case UNICON__DEVICE_KERNEL_ARCCOS2:
      return scale * positive * positive / sqrt(3);
    default:
      return scale * cos(t + phase);
  }
}

/* u of a row, in place; returns its squared length. */
static double direct(const unicon__device_map *m, double *u) {
  double square = 0, length = 0;
  for (int64_t k = 0; k < m->in; k++) length += u[k] * u[k];
  length = sqrt(length);
  for (int64_t k = 0; k < m->in; k++) {
    if (m->normalize && length > 0) u[k] /= length;
    if (m->center) u[k] -= at(m->center, 0, k);
    square += u[k] * u[k];
  }
  return square;
}

static void row_features(const unicon__device_map *m, double *u, double *f, double *phi) {
  const double square = direct(m, u);
  for (int64_t j = 0; j < m->points; j++) {
    const float *base = m->base->f32 + j * m->in;
    double t = 0;
    for (int64_t k = 0; k < m->in; k++) t += u[k] * (double)base[k];
    f[j] = m->kind == UNICON__DEVICE_RANDOM
               ? random_value(m, t, m->square ? at(m->square, 0, j) : 0)
               : kernel_value(m, t, square, at(m->square, 0, j));
  }
  const double *values = m->kind == UNICON__DEVICE_LINEAR ? u : f;
  for (int64_t k = 0; k < m->out; k++) {
    double sum = m->factor ? 0 : values[k];
    for (int64_t j = 0; m->factor && j <= k && j < m->points; j++)
      sum += values[j] * at(m->factor, j, k);
    phi[k] = sum - (m->mean ? at(m->mean, 0, k) : 0);
  }
}

static int features(unicon__device *d, const unicon__device_map *m, unicon__matrix *raw,
                    int64_t count, unicon__matrix *out, int64_t first) {
  LAUNCH(d, features);
  if (!holds(raw, 0, count) || !holds(out, first, count) || raw->cols != m->in ||
      out->cols != m->out)
    return fail(d, UNICON__DEVICE_FAILED, "features of other shapes");
  double *room = calloc((size_t)(m->in + m->points + m->out), sizeof *room);
  if (!room) abort();
  for (int64_t i = 0; i < count; i++) {
    for (int64_t k = 0; k < m->in; k++) room[k] = at(raw, i, k);
    row_features(m, room, room + m->in, room + m->in + m->points);
    for (int64_t k = 0; k < m->out; k++) put(out, first + i, k, room[m->in + m->points + k]);
  }
  for (int64_t k = 0; k < raw->rows * raw->cols; k++) raw->f32[k] = NAN; /* may be overwritten */
  free(room);
  return UNICON__DEVICE_OK;
}

static int gather(unicon__device *d, const unicon__matrix *from, const int64_t *row, int64_t count,
                  unicon__matrix *to, int64_t to_first) {
  LAUNCH(d, gather);
  if (!holds(to, to_first, count) || to->cols != from->cols)
    return fail(d, UNICON__DEVICE_FAILED, "gather of other shapes");
  for (int64_t i = 0; i < count; i++) {
    if (!holds(from, row[i], 1)) return fail(d, UNICON__DEVICE_FAILED, "gather past the end");
    for (int64_t k = 0; k < to->cols; k++) put(to, to_first + i, k, at(from, row[i], k));
  }
  return UNICON__DEVICE_OK;
}

static int shift(unicon__device *d, unicon__matrix *m, int64_t first, int64_t count,
                 const unicon__matrix *row) {
  LAUNCH(d, shift);
  if (!holds(m, first, count) || row->cols != m->cols)
    return fail(d, UNICON__DEVICE_FAILED, "shift of other shapes");
  for (int64_t i = first; i < first + count; i++)
    for (int64_t k = 0; k < m->cols; k++) put(m, i, k, at(m, i, k) - at(row, 0, k));
  return UNICON__DEVICE_OK;
}

static int embed(unicon__device *d, const unicon__matrix *phi, int64_t first, int64_t count,
                 const unicon__matrix *weight, int unit, unicon__matrix *z, int64_t z_first) {
  LAUNCH(d, embed);
  if (!holds(phi, first, count) || !holds(z, z_first, count) || phi->cols != weight->rows ||
      z->cols < weight->cols)
    return fail(d, UNICON__DEVICE_FAILED, "embed of other shapes");
  double *out = calloc((size_t)weight->cols + 1, sizeof *out);
  if (!out) abort();
  for (int64_t i = 0; i < count; i++) {
    double square = 0;
    for (int64_t k = 0; k < weight->cols; k++) {
      out[k] = 0;
      for (int64_t j = 0; j < phi->cols; j++) out[k] += at(phi, first + i, j) * at(weight, j, k);
      square += out[k] * out[k];
    }
    for (int64_t k = 0; k < weight->cols; k++)
      put(z, z_first + i, k, unit && square > 0 ? out[k] / sqrt(square) : out[k]);
  }
  free(out);
  return UNICON__DEVICE_OK;
}

/* ---- sums --------------------------------------------------------------------------------- */

static int add_product(unicon__device *d, const unicon__matrix *a, int64_t a_first,
                       const unicon__matrix *b, int64_t b_first, int64_t count, double sign,
                       unicon__matrix *sum, int64_t rows, int64_t cols) {
  LAUNCH(d, add_product);
  if (!holds(a, a_first, count) || !holds(b, b_first, count) || a->cols < rows || b->cols < cols ||
      !sum->f64 || sum->rows != rows || sum->cols != cols)
    return fail(d, UNICON__DEVICE_FAILED, "add_product of other shapes");
  const bool lower = a == b && a_first == b_first;
  for (int64_t i = 0; i < count; i++) {
    const float *x = a->f32 + (a_first + i) * a->cols, *y = b->f32 + (b_first + i) * b->cols;
    for (int64_t k = 0; k < rows; k++)
      for (int64_t j = 0; j < (lower ? k + 1 : cols); j++)
        sum->f64[k * cols + j] += sign * (double)x[k] * (double)y[j];
  }
  return UNICON__DEVICE_OK;
}

static int add_sums(unicon__device *d, const unicon__matrix *a, int64_t first, int64_t count,
                    const double *weight, int64_t weights, double sign, unicon__matrix *sum,
                    int64_t cols) {
  LAUNCH(d, add_sums);
  if (!holds(a, first, count) || a->cols < cols || !sum->f64 || sum->rows != 2 + weights ||
      sum->cols != cols)
    return fail(d, UNICON__DEVICE_FAILED, "add_sums of other shapes");
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < cols; k++) {
      const double value = at(a, first + i, k);
      sum->f64[k] += sign * value;
      sum->f64[cols + k] += sign * value * value;
      for (int64_t w = 0; w < weights; w++)
        sum->f64[(2 + w) * cols + k] += sign * weight[w * count + i] * value;
    }
  return UNICON__DEVICE_OK;
}

static double value_of(const unicon__device_sparse *s, int64_t k) {
  return s->value ? s->value[k] : 0;
}

static int combine(unicon__device *d, const unicon__device_sparse *w, const unicon__matrix *y,
                   unicon__matrix *t) {
  LAUNCH(d, combine);
  if (!holds(t, 0, w->rows) || t->cols != y->cols)
    return fail(d, UNICON__DEVICE_FAILED, "combine of other shapes");
  for (int64_t i = 0; i < w->rows; i++)
    for (int64_t k = 0; k < y->cols; k++) {
      double sum = 0;
      for (int64_t e = w->start[i]; e < w->start[i + 1]; e++)
        sum += value_of(w, e) * at(y, w->column[e], k);
      put(t, i, k, sum);
    }
  return UNICON__DEVICE_OK;
}

/* ---- the plane ---------------------------------------------------------------------------- */

/* To so many significant bits, if the device is to be less exact: 11 are float16, 8 bfloat16. */
static double coarse(const unicon__device *d, double v, int bits) {
  uint64_t word;
  if (!d->host.reduced || !isfinite(v)) return v;
  memcpy(&word, &v, sizeof word);
  const uint64_t last = UINT64_C(1) << (53 - bits);
  word = (word + last / 2) & ~(last - 1); /* a carry goes into the exponent, as it should */
  memcpy(&v, &word, sizeof v);
  return v;
}

static double score(const unicon__matrix *a, int64_t i, const unicon__matrix *b, int64_t j,
                    int64_t width) {
  const float *x = a->f32 + i * a->cols, *y = b->f32 + j * b->cols;
  double sum = 0;
  for (int64_t k = 0; k < width; k++) sum += (double)x[k] * (double)y[k];
  return sum;
}

/* One of the plane. */
static double plane_score(const unicon__device *d, const unicon__device_plane *p, int64_t i,
                          int64_t j) {
  if (!d->host.reduced) return score(p->zx, i, p->zy, j, p->r);
  double sum = 0;
  for (int64_t k = 0; k < p->r; k++)
    sum += coarse(d, at(p->zx, i, k), 11) * coarse(d, at(p->zy, j, k), 11);
  return coarse(d, sum, 11);
}

/* The entry of a sparse row at a column: its place, or -1. `next` runs along. */
static int64_t entry_at(const unicon__device_sparse *s, int64_t i, int64_t j, int64_t *next) {
  while (*next < s->start[i + 1] && s->column[*next] < j) ++*next;
  return *next < s->start[i + 1] && s->column[*next] == j ? *next : -1;
}

static void lse_add(double *top, double *sum, double v, double count) {
  if (v <= *top) {
    *sum += count * exp(v - *top);
  } else {
    *sum = *sum * exp(*top - v) + count;
    *top = v;
  }
}

static int exp_sums(unicon__device *d, const unicon__device_plane *p, const unicon__device_exp *e) {
  LAUNCH(d, exp_sums);
  if (!holds(p->zx, 0, p->n_x) || !holds(p->zy, 0, p->n_y))
    return fail(d, UNICON__DEVICE_FAILED, "a plane of other shapes");
  const double start = e->shifted ? -INFINITY : 0;
  for (int64_t i = 0; i < p->n_x; i++) e->row_top[i] = start, e->row_sum[i] = 0;
  for (int64_t j = 0; j < p->n_y; j++) e->column_top[j] = start, e->column_sum[j] = 0;
  for (int64_t i = 0; i < p->n_x; i++) {
    int64_t next = e->counts->start[i];
    for (int64_t j = 0; j < p->n_y; j++) {
      const int64_t found = entry_at(e->counts, i, j, &next);
      const double count = found < 0 ? 1 : value_of(e->counts, found);
      const double v = e->a * plane_score(d, p, i, j);
      if (count == 0) continue;
      if (e->shifted) {
        lse_add(&e->row_top[i], &e->row_sum[i], v, count);
        lse_add(&e->column_top[j], &e->column_sum[j], v, count);
      } else {
        e->row_sum[i] += count * exp(v);
        e->column_sum[j] += count * exp(v);
      }
    }
  }
  return UNICON__DEVICE_OK;
}

/* S of a score that is not fixed; adds to the value. */
static double weight_of(const unicon__device_weights *w, int64_t i, int64_t j, double s,
                        double *value) {
  const double v = w->a * s + w->bias;
  switch (w->form) {
    case UNICON__DEVICE_EXP:
      return -exp(w->a * s) * ((double)w->row[i] + (double)w->column[j]);
    case UNICON__DEVICE_SHIFTED:
      return -exp(w->a * s + (double)w->row[i]) - exp(w->a * s + (double)w->column[j]);
    case UNICON__DEVICE_SIGMOID:
      *value += (v > 0 ? v : 0) + log1p(exp(-fabs(v)));
      return -w->scale / (1 + exp(-v));
    default:
      *value += s * s;
      return -w->scale * s;
  }
}

static int weigh(unicon__device *d, const unicon__device_plane *p, const unicon__device_weights *w,
                 unicon__matrix *c, double *value) {
  LAUNCH(d, weigh);
  double total = 0;
  if (!holds(p->zx, w->x0, w->n_x) || !holds(p->zy, w->y0, w->n_y) ||
      (w->phi_x && (!holds(w->phi_x, w->phi_x0, w->n_x) || !holds(w->phi_y, w->phi_y0, w->n_y))))
    return fail(d, UNICON__DEVICE_FAILED, "a window of other shapes");
  double *t = calloc((size_t)(w->phi_x ? w->phi_y->cols : 0) + 1, sizeof *t);
  if (!t) abort();
  for (int64_t i = w->x0; i < w->x0 + w->n_x; i++) {
    int64_t next = w->fixed->start[i];
    for (int64_t k = 0; w->phi_x && k < w->phi_y->cols; k++) t[k] = 0;
    for (int64_t j = w->y0; j < w->y0 + w->n_y; j++) {
      const int64_t found = entry_at(w->fixed, i, j, &next);
      const double weight = found >= 0
                                ? value_of(w->fixed, found)
                                : coarse(d, weight_of(w, i, j, plane_score(d, p, i, j), &total), 8);
      for (int64_t k = 0; w->phi_x && k < w->phi_y->cols; k++) {
        const double phi = at(w->phi_y, w->phi_y0 + j - w->y0, k);
        t[k] += weight * (found >= 0 ? phi : coarse(d, phi, 8));
      }
    }
    for (int64_t a = 0; w->phi_x && a < w->phi_x->cols; a++)
      for (int64_t k = 0; k < w->phi_y->cols; k++)
        c->f64[a * c->cols + k] += at(w->phi_x, w->phi_x0 + i - w->x0, a) * t[k];
  }
  free(t);
  if (value) *value += total;
  return UNICON__DEVICE_OK;
}

/* ---- use ---------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left < right) - (left > right);
}

static void bias_rows(const unicon__matrix *z, int64_t first, int64_t count,
                      const unicon__matrix *bank, int form, double strength, float *out) {
  double *s = calloc((size_t)bank->rows + 1, sizeof *s);
  if (!s) abort();
  for (int64_t i = 0; i < count; i++) {
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < bank->rows; k++) {
      s[k] = score(z, first + i, bank, k, bank->cols);
      lse_add(&top, &sum, strength * s[k], 1);
    }
    double result = (top + log(sum / (double)bank->rows)) / strength;
    if (form == UNICON__DEVICE_CSLS) {
      const int64_t k = (int64_t)strength < bank->rows ? (int64_t)strength : bank->rows;
      qsort(s, (size_t)bank->rows, sizeof *s, descending);
      result = 0;
      for (int64_t j = 0; j < k; j++) result += s[j] / (double)k / 2;
    }
    out[i] = (float)result;
  }
  free(s);
}

static int bias(unicon__device *d, const unicon__matrix *z, int64_t first, int64_t count,
                const unicon__matrix *bank, int form, double strength, float *out) {
  LAUNCH(d, bias);
  if (!holds(z, first, count) || z->cols < bank->cols)
    return fail(d, UNICON__DEVICE_FAILED, "bias of other shapes");
  bias_rows(z, first, count, bank, form, strength, out);
  return UNICON__DEVICE_OK;
}

static void offer(int64_t k, double *score, int64_t *id, double s, int64_t number) {
  int64_t place = k;
  while (place > 0 && (id[place - 1] < 0 || score[place - 1] < s ||
                       (score[place - 1] == s && id[place - 1] > number)))
    place--;
  if (place == k) return;
  memmove(score + place + 1, score + place, (size_t)(k - place - 1) * sizeof *score);
  memmove(id + place + 1, id + place, (size_t)(k - place - 1) * sizeof *id);
  score[place] = s;
  id[place] = number;
}

static void find_nearest(const unicon__device_scores *s, int64_t k, double *best, int64_t *id) {
  for (int64_t i = 0; i < s->queries && k > 0; i++)
    for (int64_t j = 0; j < s->candidates; j++)
      if (!s->self || s->self[i] != s->number + j)
        offer(k, best + i * k, id + i * k,
              score(s->query, s->q0 + i, s->candidate, s->c0 + j, s->width), s->number + j);
}

static int nearest(unicon__device *d, const unicon__device_scores *s, int64_t k, double *best,
                   int64_t *id) {
  LAUNCH(d, nearest);
  if (!holds(s->query, s->q0, s->queries) || !holds(s->candidate, s->c0, s->candidates))
    return fail(d, UNICON__DEVICE_FAILED, "nearest of other shapes");
  find_nearest(s, k, best, id);
  return UNICON__DEVICE_OK;
}

static void count_ranks(const unicon__device_scores *s, const unicon__device_ranks *r) {
  for (int64_t i = 0; i < s->queries; i++) {
    int64_t next = r->hidden->start[i];
    for (int64_t j = 0; j < s->candidates && r->start[i] < r->start[i + 1]; j++) {
      if (entry_at(r->hidden, i, s->number + j, &next) >= 0) continue;
      if (s->self && s->self[i] == s->number + j) continue;
      const double now = score(s->query, s->q0 + i, s->candidate, s->c0 + j, s->width);
      int64_t k = r->start[i];
      while (k < r->start[i + 1] && now < r->threshold[k]) k++;
      if (k < r->start[i + 1]) r->above[k]++;
      if (r->top) r->top[i] = fmax(r->top[i], now);
      if (r->sum) r->sum[i] += now;
    }
  }
}

static int ranks(unicon__device *d, const unicon__device_scores *given,
                 const unicon__device_ranks *r, int scales) {
  LAUNCH(d, ranks);
  if (!holds(given->query, given->q0, given->queries) ||
      !holds(given->candidate, given->c0, given->candidates))
    return fail(d, UNICON__DEVICE_FAILED, "ranks of other shapes");
  for (int by = 0; by < scales; by++) {
    unicon__device_scores s = *given;
    s.width -= by;
    count_ranks(&s, &r[by]);
    find_nearest(&s, r[by].k, r[by].score, r[by].id);
  }
  return UNICON__DEVICE_OK;
}

/* ---- dense algebra: Jacobi ------------------------------------------------------------------ */

/* Rotates rows i and j of a (of `cols` numbers): (x, y) to (c x - s y, s x + c y). */
static void rotate(double *a, int64_t cols, int64_t i, int64_t j, double c, double s) {
  for (int64_t k = 0; k < cols; k++) {
    const double x = a[i * cols + k], y = a[j * cols + k];
    a[i * cols + k] = c * x - s * y;
    a[j * cols + k] = s * x + c * y;
  }
}

static double row_dot(const double *a, int64_t cols, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < cols; k++) sum += a[i * cols + k] * a[j * cols + k];
  return sum;
}

/* One-sided Jacobi: rotates the rows of a (n by m) until they are orthogonal, and those of v (n by
 * n) along. */
static void make_orthogonal(double *a, int64_t n, int64_t m, double *v) {
  for (int sweep = 0; sweep < 60; sweep++) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) {
        const double p = row_dot(a, m, i, i), q = row_dot(a, m, j, j), g = row_dot(a, m, i, j);
        if (g == 0 || fabs(g) <= 1e-16 * sqrt(p * q)) continue;
        worst = fmax(worst, fabs(g) / sqrt(p * q));
        const double zeta = (q - p) / (2 * g);
        const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
        const double c = 1 / sqrt(1 + t * t), s = c * t;
        rotate(a, m, i, j, c, s);
        rotate(v, n, i, j, c, s);
      }
    if (worst < 1e-15) return;
  }
}

/* Makes rows count .. n-1 of a (n by m, m >= n) orthonormal to those before. */
static void complete(double *a, int64_t n, int64_t m, int64_t count) {
  for (int64_t axis = 0; count < n && axis < m; axis++) {
    double *row = a + count * m, square = 0;
    for (int64_t k = 0; k < m; k++) row[k] = k == axis;
    for (int twice = 0; twice < 2; twice++)
      for (int64_t i = 0; i < count; i++) {
        const double along = row_dot(a, m, i, count);
        for (int64_t k = 0; k < m; k++) row[k] -= along * a[i * m + k];
      }
    for (int64_t k = 0; k < m; k++) square += row[k] * row[k];
    if (square < 1e-8) continue;
    for (int64_t k = 0; k < m; k++) row[k] /= sqrt(square);
    count++;
  }
}

/* b (n by m, n <= m) = V diag(s) U^T, s descending: b becomes U^T, v (n by n) V^T. */
static void decompose(double *b, int64_t n, int64_t m, double *s, double *v) {
  for (int64_t k = 0; k < n * n; k++) v[k] = k % (n + 1) == 0;
  make_orthogonal(b, n, m, v);
  for (int64_t i = 0; i < n; i++) s[i] = sqrt(row_dot(b, m, i, i));
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++) best = s[j] > s[best] ? j : best;
    if (best == i) continue;
    const double held = s[i];
    s[i] = s[best];
    s[best] = held;
    rotate(b, m, i, best, 0, 1);
    rotate(v, n, i, best, 0, 1);
  }
  int64_t rank = 0;
  while (rank < n && s[rank] > 1e-15 * (double)m * s[0]) rank++;
  for (int64_t i = 0; i < rank; i++)
    for (int64_t k = 0; k < m; k++) b[i * m + k] /= s[i];
  complete(b, n, m, rank);
}

static double *copied(const double *from, int64_t count) {
  double *to = calloc((size_t)count + 1, sizeof *to);
  if (!to) abort();
  if (from) memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

/* A + shift I is positive semidefinite, and its singular vectors are the eigenvectors of A. */
static int eigen(unicon__device *d, int64_t n, double *a, double *w) {
  LAUNCH(d, eigen);
  double most = 0, *b = copied(NULL, n * n), *v = copied(NULL, n * n), *s = copied(NULL, n);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
      b[i * n + k] = k <= i ? a[i * n + k] : a[k * n + i];
      sum += fabs(b[i * n + k]);
    }
    most = fmax(most, sum);
  }
  for (int64_t i = 0; i < n; i++) b[i * n + i] += most;
  decompose(b, n, n, s, v);
  for (int64_t i = 0; i < n; i++) {
    w[i] = s[n - 1 - i] - most;
    memcpy(a + i * n, v + (n - 1 - i) * n, (size_t)n * sizeof *a);
  }
  free(b);
  free(v);
  free(s);
  return UNICON__DEVICE_OK;
}

static void all_triples(int64_t m, int64_t n, const double *a, double *s, double *u, double *vt) {
  const bool wide = m < n;
  const int64_t q = wide ? m : n, large = wide ? n : m;
  double *b = copied(wide ? a : NULL, q * large), *v = copied(NULL, q * q);
  for (int64_t i = 0; !wide && i < m; i++)
    for (int64_t k = 0; k < n; k++) b[k * m + i] = a[i * n + k];
  decompose(b, q, large, s, v);
  const double *left = wide ? v : b, *right = wide ? b : v; /* rows are singular vectors */
  for (int64_t k = 0; k < q; k++) {
    for (int64_t i = 0; i < m; i++) u[i * q + k] = left[k * m + i];
    memcpy(vt + k * n, right + k * n, (size_t)n * sizeof *vt);
  }
  free(b);
  free(v);
}

static int svd(unicon__device *d, int64_t m, int64_t n, double *a, double *s, double *u,
               double *vt) {
  LAUNCH(d, svd);
  all_triples(m, n, a, s, u, vt);
  return UNICON__DEVICE_OK;
}

static int leading(unicon__device *d, int64_t m, int64_t n, int64_t r, const double *a, double *s,
                   double *u, double *v) {
  LAUNCH(d, leading);
  const int64_t q = m < n ? m : n;
  if (r < 1 || r > q) return fail(d, UNICON__DEVICE_FAILED, "more triples than there are");
  double *value = copied(NULL, q), *left = copied(NULL, m * q), *right = copied(NULL, q * n);
  all_triples(m, n, a, value, left, right);
  for (int64_t k = 0; k <= r; k++) s[k] = k < q ? value[k] : 0;
  for (int64_t k = 0; k < r; k++) {
    for (int64_t i = 0; i < m; i++) u[i * r + k] = left[i * q + k];
    for (int64_t j = 0; j < n; j++) v[j * r + k] = right[k * n + j];
  }
  free(value);
  free(left);
  free(right);
  return UNICON__DEVICE_OK;
}

static int product(unicon__device *d, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                   const double *a, const double *b, double *c) {
  LAUNCH(d, product);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++)
        sum += (trans_a ? a[l * m + i] : a[i * k + l]) * (trans_b ? b[j * k + l] : b[l * n + j]);
      c[i * n + j] = sum;
    }
  return UNICON__DEVICE_OK;
}

/* ---- memory of others -------------------------------------------------------------------- */

static int foreign_holds(unicon__device *d, const unicon__matrix *m, int64_t m_first, int64_t count,
                         const unicon__foreign *f, int64_t first) {
  if (!holds(m, m_first, count) || first < 0 || count > f->rows - first || f->cols > m->cols)
    return fail(d, UNICON__DEVICE_FAILED, "rows of others have other shapes");
  if (f->number == 0) return UNICON__DEVICE_OK;
  snprintf(d->error, sizeof d->error, "the rows lie on number %d of the kind, and 0 is in use",
           (int)f->number);
  return UNICON__DEVICE_FAILED;
}

static int receive(unicon__device *d, unicon__matrix *to, int64_t to_first, int64_t count,
                   const unicon__foreign *from, int64_t first) {
  LAUNCH(d, receive);
  const int said = foreign_holds(d, to, to_first, count, from, first);
  if (said != UNICON__DEVICE_OK) return said;
  control.last_stream = from->stream;
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < from->cols; k++)
      put(to, to_first + i, k,
          element_value((const unsigned char *)from->data + (first + i) * from->row_stride +
                            k * from->col_stride,
                        from->element));
  return UNICON__DEVICE_OK;
}

static int hand(unicon__device *d, const unicon__matrix *from, int64_t from_first, int64_t count,
                const unicon__foreign *to, int64_t first) {
  LAUNCH(d, hand);
  const int said = foreign_holds(d, from, from_first, count, to, first);
  if (said != UNICON__DEVICE_OK) return said;
  for (int64_t i = 0; i < count; i++)
    memcpy((unsigned char *)to->data + (first + i) * to->row_stride,
           from->f32 + (from_first + i) * from->cols, (size_t)to->cols * sizeof(float));
  return UNICON__DEVICE_OK;
}

static int flaw(unicon__device *d, const unicon__matrix *m, int64_t first, int64_t count, int zero,
                int64_t *row) {
  LAUNCH(d, flaw);
  if (!holds(m, first, count)) return fail(d, UNICON__DEVICE_FAILED, "flaw past the end");
  *row = -1;
  for (int64_t i = 0; i < count && *row < 0; i++) {
    bool good = true, all_zero = true;
    for (int64_t k = 0; k < m->cols; k++) {
      const double value = at(m, first + i, k);
      good = good && isfinite(value);
      all_zero = all_zero && value == 0;
    }
    if (!good || (zero && all_zero)) *row = i;
  }
  return UNICON__DEVICE_OK;
}

static int room_new(unicon__device *d, uint64_t bytes, void **out, int32_t *number) {
  *number = 0;
  *out = hooked() || strikes(&control.fail_allocation) ? NULL : calloc(bytes + 1, 1);
  if (!*out) return fail(d, UNICON__DEVICE_MEMORY, "there is no room for others");
  control.rooms++;
  return UNICON__DEVICE_OK;
}

static void room_free(void *room, int32_t number) {
  (void)number;
  control.rooms--;
  free(room);
}

/* ---- refine ------------------------------------------------------------------------------- */

/* One side of a batch, in float64. */
typedef struct half {
  const unicon__device_tuned *t;
  const int64_t *row;
  int64_t n, p, r;
  double *z, *d, *length; /* n by r, n by r, n */
  double *sum, *weight;   /* n: N, R */
} half;

static void make_factors(const unicon__device_tuned *t) {
  for (int64_t i = 0; i < t->g->rows; i++)
    for (int64_t k = 0; k < t->g->cols; k++) {
      double value = at(t->g, i, k) * (t->scale ? at(t->scale, 0, i) : 1);
      if (t->whole) value = 0;
      for (int64_t j = 0; t->whole && j < t->g->rows; j++)
        value += at(t->whole, i, j) * at(t->g, j, k);
      put(t->f, i, k, value);
    }
}

static void embed_half(half *b) {
  make_factors(b->t);
  for (int64_t i = 0; i < b->n; i++) {
    double square = 0;
    for (int64_t k = 0; k < b->r; k++) {
      double sum = 0;
      for (int64_t j = 0; j < b->p; j++) sum += at(b->t->phi, b->row[i], j) * at(b->t->f, j, k);
      b->z[i * b->r + k] = sum;
      square += sum * sum;
    }
    b->length[i] = sqrt(square);
    for (int64_t k = 0; k < b->r && square > 0; k++) b->z[i * b->r + k] /= b->length[i];
  }
}

static double row_product(const half *x, int64_t i, const half *y, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < x->r; k++) sum += x->z[i * x->r + k] * y->z[j * y->r + k];
  return sum;
}

static double denominator(const unicon__device_steps *k, double u, double n) {
  return k->own * exp(u) + n;
}

static double rho_of(const unicon__device_steps *k, double u, double n) {
  const double d = denominator(k, u, n);
  if (d == 0) return 0;
  if (k->phi == UNICON__DEVICE_LOG) return 1 / d;
  if (k->phi == UNICON__DEVICE_LOG1P) return 1 / (d + exp(k->nu * u));
  return k->a * exp(-k->nu * u);
}

static double slope_of(const unicon__device_steps *k, double u, double n) {
  return rho_of(k, u, n) * (k->nu * n - (1 - k->nu) * k->own * exp(u));
}

static double part_of(const unicon__device_steps *k, double u, double n) {
  const double d = denominator(k, u, n);
  if (d == 0) return 0;
  if (k->phi == UNICON__DEVICE_LOG) return (log(d) - k->nu * u) / k->a;
  if (k->phi == UNICON__DEVICE_LOG1P) return log1p(d * exp(-k->nu * u)) / k->a;
  return d * exp(-k->nu * u);
}

/* The value of batch t; d of both sides. `first`: number of its first row of x. */
static double weigh_halves(const unicon__device_steps *k, half *x, half *y, int64_t first) {
  const unicon__device_sparse *e = k->entries;
  double value = 0;
  for (int pass = 0; pass < 3; pass++) /* N, R, S */
    for (int64_t i = 0; i < x->n; i++) {
      int64_t next = e->start[first + i];
      for (int64_t j = 0; j < y->n; j++) {
        const int64_t found = entry_at(e, first + i, j, &next);
        const double u = k->a * row_product(x, i, y, j), count = found < 0 ? 1 : value_of(e, found);
        const double ox = found < 0 ? 0 : k->omega_x[found], oy = found < 0 ? 0 : k->omega_y[found];
        if (pass == 0) x->sum[i] += count * exp(u), y->sum[j] += count * exp(u);
        if (pass == 1 && ox > 0) x->weight[i] += ox * rho_of(k, u, x->sum[i]);
        if (pass == 1 && oy > 0) y->weight[j] += oy * rho_of(k, u, y->sum[j]);
        if (pass < 2) continue;
        double s = -count * exp(u) * (x->weight[i] + y->weight[j]);
        if (ox > 0) s += ox * slope_of(k, u, x->sum[i]), value += ox * part_of(k, u, x->sum[i]);
        if (oy > 0) s += oy * slope_of(k, u, y->sum[j]), value += oy * part_of(k, u, y->sum[j]);
        for (int64_t c = 0; c < x->r; c++) {
          x->d[i * x->r + c] += s * y->z[j * y->r + c];
          y->d[j * y->r + c] += s * x->z[i * x->r + c];
        }
      }
    }
  return value;
}

/* dG of a side, p by r. */
static double *gradient_of(half *b) {
  const unicon__device_tuned *t = b->t;
  double *plain = copied(NULL, b->p * b->r), *out = copied(NULL, b->p * b->r);
  for (int64_t i = 0; i < b->n; i++) {
    double *d = b->d + i * b->r, along = 0;
    const double *z = b->z + i * b->r;
    for (int64_t k = 0; k < b->r; k++) along += d[k] * z[k];
    for (int64_t k = 0; k < b->r; k++)
      d[k] = b->length[i] > 0 ? (along * z[k] - d[k]) / b->length[i] : 0;
    for (int64_t j = 0; j < b->p; j++)
      for (int64_t k = 0; k < b->r; k++) plain[j * b->r + k] += at(t->phi, b->row[i], j) * d[k];
  }
  for (int64_t j = 0; j < b->p; j++)
    for (int64_t k = 0; k < b->r; k++) {
      double sum = plain[j * b->r + k] * (t->scale ? at(t->scale, 0, j) : 1);
      if (t->whole) sum = 0;
      for (int64_t i = 0; t->whole && i < b->p; i++)
        sum += at(t->whole, i, j) * plain[i * b->r + k];
      out[j * b->r + k] = sum;
    }
  free(plain);
  return out;
}

static void adam_half(half *b, double n, double rate, double decay) {
  const unicon__device_tuned *t = b->t;
  double *gradient = gradient_of(b), square = 0;
  for (int64_t k = 0; k < b->p * b->r; k++) square += gradient[k] * gradient[k];
  const double floor = 1e-4 * sqrt(square / (double)(b->p * b->r)) + 1e-20;
  for (int64_t i = 0; i < b->p; i++)
    for (int64_t k = 0; k < b->r; k++) {
      const double d = gradient[i * b->r + k];
      put(t->mean, i, k, 0.9 * at(t->mean, i, k) + 0.1 * d);
      put(t->square, i, k, 0.999 * at(t->square, i, k) + 0.001 * d * d);
      const double m = at(t->mean, i, k) / (1 - pow(0.9, n));
      const double s = sqrt(at(t->square, i, k) / (1 - pow(0.999, n)));
      put(t->g, i, k, (1 - rate * decay) * at(t->g, i, k) - rate * m / (s + floor));
    }
  free(gradient);
}

static half open_half(const unicon__device_tuned *t, const unicon__device_steps *k, int s,
                      int64_t step) {
  half b = {.t = t, .row = k->row[s] + k->start[s][step], .p = t->g->rows, .r = t->g->cols};
  b.n = k->start[s][step + 1] - k->start[s][step];
  b.z = copied(NULL, b.n * b.r);
  b.d = copied(NULL, b.n * b.r);
  b.length = copied(NULL, b.n);
  b.sum = copied(NULL, b.n);
  b.weight = copied(NULL, b.n);
  return b;
}

static int refine(unicon__device *d, const unicon__device_tuned side[2],
                  const unicon__device_steps *k) {
  LAUNCH(d, refine);
  for (int s = 0; s < 2; s++)
    for (int64_t i = 0; i < (k->steps ? k->start[s][k->steps] : 0); i++)
      if (!holds(side[s].phi, k->row[s][i], 1) || side[s].phi->cols != side[s].g->rows)
        return fail(d, UNICON__DEVICE_FAILED, "refine of other shapes");
  for (int64_t t = 0; t < k->steps; t++) {
    half b[2] = {open_half(&side[0], k, 0, t), open_half(&side[1], k, 1, t)};
    for (int s = 0; s < 2; s++) embed_half(&b[s]);
    k->value[t] = weigh_halves(k, &b[0], &b[1], k->start[0][t]);
    for (int s = 0; s < 2; s++) {
      adam_half(&b[s], (double)(k->first + t + 1), k->rate[t], k->decay);
      free(b[s].z), free(b[s].d), free(b[s].length), free(b[s].sum), free(b[s].weight);
    }
  }
  for (int s = 0; s < 2; s++) make_factors(&side[s]);
  return UNICON__DEVICE_OK;
}

/* ---- held-out rows -------------------------------------------------------------------------- */

/* To the nearest number of float16, ties to even. */
static double to_half(double v) {
  int exponent;
  if (v == 0 || !isfinite(v)) return v;
  frexp(v, &exponent);
  const int least = exponent - 11 < -24 ? -24 : exponent - 11;
  const double rounded = ldexp(nearbyint(ldexp(v, -least)), least);
  return fabs(rounded) > 65504 ? copysign(INFINITY, v) : rounded;
}

/* Unit rows of the leading columns with one more, which is 0. */
static unicon__matrix unit_rows(const unicon__matrix *from, int64_t rank, const double *scale,
                                bool rounded, bool wider) {
  unicon__matrix m = {.rows = from->rows, .cols = rank + wider};
  m.f32 = calloc((size_t)(m.rows * m.cols) + 1, sizeof *m.f32);
  if (!m.f32) abort();
  for (int64_t i = 0; i < m.rows; i++) {
    double square = 0;
    for (int64_t k = 0; k < rank; k++) {
      put(&m, i, k, at(from, i, k) * (scale ? scale[k] : 1));
      square += at(&m, i, k) * at(&m, i, k);
    }
    for (int64_t k = 0; k < rank && square > 0; k++) {
      put(&m, i, k, at(&m, i, k) / sqrt(square));
      if (rounded) put(&m, i, k, to_half(at(&m, i, k)));
    }
  }
  return m;
}

/* The last column of candidates: minus their biases by a bank. */
static void set_biases(const unicon__device_judge *j, unicon__matrix *z, const unicon__matrix *bank,
                       float *room) {
  bias_rows(z, 0, z->rows, bank, j->form, j->strength, room);
  for (int64_t i = 0; i < z->rows; i++) put(z, i, z->cols - 1, -fmax(-1, fmin(1, (double)room[i])));
}

static void judge_direction(const unicon__device_judge *j, int way, const unicon__matrix *query,
                            const unicon__matrix *candidate) {
  const unicon__device_ranks *of = &j->of[way];
  for (int64_t i = 0; i < query->rows; i++) {
    double *threshold = j->threshold[way] + of->start[i];
    const int64_t count = of->start[i + 1] - of->start[i];
    for (int64_t k = 0; k < count; k++)
      threshold[k] = score(query, i, candidate, j->match[way][of->start[i] + k], query->cols);
    qsort(threshold, (size_t)count, sizeof *threshold, descending);
    for (int64_t k = 0; k < count; k++) of->above[of->start[i] + k] = 0;
    if (of->top) of->top[i] = -INFINITY;
    if (of->sum) of->sum[i] = 0;
  }
  const unicon__device_scores s = {.query = query,
                                   .candidate = candidate,
                                   .queries = query->rows,
                                   .candidates = candidate->rows,
                                   .width = query->cols,
                                   .self = j->self[way]};
  count_ranks(&s, of);
}

static int judge(unicon__device *d, const unicon__device_judge *j) {
  const bool balanced = j->bank[0] && j->bank[1];
  unicon__matrix z[2], bank[2] = {{.rows = 0}, {.rows = 0}};
  LAUNCH(d, judge);
  float *room = calloc((size_t)(j->held[0]->rows + j->held[1]->rows) + 1, sizeof *room);
  if (!room) abort();
  for (int s = 0; s < 2; s++) {
    z[s] = unit_rows(j->held[s], j->rank, j->scale[s], false, balanced);
    if (balanced) bank[s] = unit_rows(j->bank[s], j->rank, j->scale[s], true, false);
  }
  for (int way = 0; way < 2; way++) {
    for (int64_t i = 0; i < z[way].rows && balanced; i++) put(&z[way], i, j->rank, 1);
    if (balanced) set_biases(j, &z[1 - way], &bank[way], room);
    judge_direction(j, way, &z[way], &z[1 - way]);
  }
  for (int s = 0; s < 2; s++) free(z[s].f32), free(bank[s].f32);
  free(room);
  return UNICON__DEVICE_OK;
}

/* ---- the table ---------------------------------------------------------------------------- */

static int usable(char *text, size_t size) {
  const char *wish = getenv("UNICON_SOFT");
  const int no = control.unusable || (wish && strcmp(wish, "unusable") == 0);
  snprintf(text, size, "%s", no ? "the test says that it is not" : "plain C, for tests");
  return !no;
}

static int open_device(const unicon__device_host *host, uint64_t limit, unicon__device **out,
                       char *text, size_t size) {
  unicon__device *d = calloc(1, sizeof *d);
  *out = NULL;
  if (hooked() || strikes(&control.fail_launch)) {
    free(d);
    snprintf(text, size, "it did not start because the test wanted it");
    return UNICON__DEVICE_FAILED;
  }
  if (!d) abort();
  d->host = *host;
  d->limit = limit ? limit : USUAL_LIMIT;
  control.opened++;
  *out = d;
  return UNICON__DEVICE_OK;
}

static void close_device(unicon__device *d) {
  control.opened--;
  free(d);
}

static void error_of(const unicon__device *d, char *text, size_t size) {
  snprintf(text, size, "%s", d->error);
}

static void memory_of(const unicon__device *d, unicon__device_memory *out) {
  *out = (unicon__device_memory){d->used, d->peak, d->limit - d->used};
}

EXPORTED const unicon__device_table *unicon__device_entry(void);
const unicon__device_table *unicon__device_entry(void) {
  static unicon__device_table table = {.size = sizeof table,
                                       .name = "soft",
                                       .usable = usable,
                                       .open = open_device,
                                       .close = close_device,
                                       .error = error_of,
                                       .memory = memory_of,
                                       .matrix_new = matrix_new,
                                       .matrix_free = matrix_free,
                                       .room_new = room_new,
                                       .room_free = room_free,
#define SOFT_ENTRY(op) .op = op,
                                       SOFT_OPS(SOFT_ENTRY)
#undef SOFT_ENTRY
  };
  table.version = control.version;
  table.most_rows = control.most_rows;
  table.least_flops = control.least_flops;
  table.preference = control.preference;
  const char *kind = getenv("UNICON_SOFT_KIND");
  table.memory_kind = kind && atoi(kind) > 0 ? atoi(kind) : control.memory_kind;
  return &table;
}
