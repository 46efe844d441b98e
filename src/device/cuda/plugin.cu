/* SPDX-License-Identifier: Apache-2.0 */
/* The table of device/device.h over the kernels: matrices, host memory to and from the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "kernels.cuh"

/* Stages of fewer stay on the host. Tests build with 0: then all of them come here. */
#ifndef UNICON_CUDA_LEAST_FLOPS
#define UNICON_CUDA_LEAST_FLOPS 5e8
#endif

struct unicon__matrix {
  int64_t rows, cols;
  int element;
  void *data;
};

struct unicon__device {
  gpu g;
  unicon__device_host host;
};

/* ---- which GPU ----------------------------------------------------------------------------- */

enum { FIRST_GPU = 0 };

/* The GPU of a call, whichever is current in the thread that makes it; that one is current again
 * afterwards. */
class current_gpu {
 public:
  explicit current_gpu(int wanted) : before(wanted) {
    if (cudaGetDevice(&before) != cudaSuccess) before = wanted;
    if (before != wanted) cudaSetDevice(wanted);
    now = wanted;
  }
  ~current_gpu() {
    if (before != now) cudaSetDevice(before);
  }
  current_gpu(const current_gpu &) = delete;
  current_gpu &operator=(const current_gpu &) = delete;

 private:
  int before, now;
};

/* ---- opening -------------------------------------------------------------------------------- */

/* Why the driver counts no devices. */
static void why_none(cudaError_t code, char *text, size_t size) {
  int driver = 0, needed = 0;
  cudaGetLastError();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&needed);
  if (driver == 0)
    snprintf(text, size, "there is no NVIDIA driver");
  else if (code == cudaErrorInsufficientDriver)
    snprintf(text, size, "the NVIDIA driver is for CUDA %d.%d, and CUDA %d.%d is needed",
             driver / 1000, driver % 1000 / 10, needed / 1000, needed % 1000 / 10);
  else
    snprintf(text, size, "there is no NVIDIA GPU that can be used: %s",
             code != cudaSuccess ? cudaGetErrorString(code) : "none was found");
}

static int usable(char *text, size_t size) {
  int count = 0, major = 0;
  cudaDeviceProp about;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    why_none(code, text, size);
    return 0;
  }
  if (cudaGetDeviceProperties(&about, FIRST_GPU) != cudaSuccess) {
    snprintf(text, size, "the GPU does not answer: %s", cudaGetErrorString(cudaGetLastError()));
    return 0;
  }
  major = about.major;
  snprintf(text, size, "%s, %.0f GiB%s", about.name, (double)about.totalGlobalMem * 0x1p-30,
           major < 8 ? ": compute capability 8.0 or more is needed" : "");
  return major >= 8;
}

static void close_device(unicon__device *d) {
  if (!d) return;
  const current_gpu gpu(d->g.device);
  gpu_close(&d->g);
  free(d);
}

static int open_device(const unicon__device_host *host, uint64_t limit, unicon__device **out,
                       char *text, size_t size) {
  unicon__device *d = (unicon__device *)calloc(1, sizeof *d);
  *out = NULL;
  if (!d) {
    snprintf(text, size, "the host has no memory left for a device");
    return GPU_MEMORY;
  }
  const current_gpu gpu(FIRST_GPU);
  const int code = gpu_open(&d->g, limit, text, size);
  if (code != GPU_OK) {
    free(d);
    return code;
  }
  d->host = *host;
  d->g.reduced = d->host.reduced != 0;
  d->g.poll = d->host.poll;
  d->g.copy = d->host.copy;
  d->g.user = d->host.user;
  *out = d;
  return GPU_OK;
}

static void error_of(const unicon__device *d, char *text, size_t size) {
  snprintf(text, size, "%s", d->g.error);
}

static void memory_of(const unicon__device *d, unicon__device_memory *out) {
  *out = {d->g.used, d->g.peak, gpu_left(&d->g)};
}

/* ---- matrices ------------------------------------------------------------------------------- */

static int64_t bytes_of(int element) {
  return element == UNICON__ELEMENT_F64                                      ? 8
         : element == UNICON__ELEMENT_F32                                    ? 4
         : element == UNICON__ELEMENT_F16 || element == UNICON__ELEMENT_BF16 ? 2
                                                                             : 1;
}

static int matrix_new(unicon__device *d, int64_t rows, int64_t cols, int element,
                      unicon__matrix **out) {
  gpu *g = &d->g;
  void *data;
  const size_t size = (size_t)rows * (size_t)cols * (size_t)bytes_of(element);
  *out = NULL;
  GPU_TRY(gpu_take(g, size, &data));
  unicon__matrix *m = (unicon__matrix *)malloc(sizeof *m);
  int code = m ? gpu_check(g, cudaMemsetAsync(data, 0, size, g->stream), "a new matrix")
               : gpu_fail(g, GPU_MEMORY, "the host has no memory left for a matrix");
  if (code != GPU_OK) {
    gpu_give(g, data);
    free(m);
    return code;
  }
  *m = {rows, cols, element, data};
  *out = m;
  return GPU_OK;
}

static void matrix_free(unicon__device *d, unicon__matrix *m) {
  if (!m) return;
  gpu_give(&d->g, m->data);
  free(m);
}

static float *row_of(const unicon__matrix *m, int64_t first) {
  return (float *)m->data + first * m->cols;
}

static const float *data_of(const unicon__matrix *m) {
  return m ? (const float *)m->data : NULL;
}

/* Elements of another kind go through room on the device, a piece at a time. */
static int upload_converted(gpu *g, unicon__matrix *to, int64_t first, int64_t count,
                            const void *from, int element, int64_t stride) {
  const int64_t row = to->cols * bytes_of(element), fit = (64 << 20) / (row > 0 ? row : 1);
  const int64_t piece = gpu_least(count, fit < 1 ? 1 : fit);
  void *room;
  GPU_TRY(gpu_take(g, (size_t)(piece * row), &room));
  for (int64_t i = 0; i < count; i += piece) {
    const int64_t now = gpu_least(piece, count - i), at = (first + i) * to->cols;
    GPU_TRY(gpu_upload(g, room, (const char *)from + i * stride, (size_t)row, now, stride));
    if (to->element == UNICON__ELEMENT_F64)
      GPU_TRY(gpu_convert_double(g, room, element, now * to->cols, (double *)to->data + at));
    else
      GPU_TRY(gpu_convert(g, room, element, now * to->cols, (float *)to->data + at));
  }
  return GPU_OK;
}

static int upload(unicon__device *d, unicon__matrix *to, int64_t first, int64_t count,
                  const void *from, int element, int64_t stride) {
  gpu *g = &d->g;
  const int64_t size = bytes_of(to->element);
  if (count == 0 || to->cols == 0) return GPU_OK;
  if (element == to->element)
    return gpu_upload(g, (char *)to->data + first * to->cols * size, from,
                      (size_t)(to->cols * size), count, stride);
  const long mark = gpu_mark(g);
  const int code = upload_converted(g, to, first, count, from, element, stride);
  gpu_release(g, mark);
  return code;
}

static int download(unicon__device *d, const unicon__matrix *from, int64_t first, int64_t count,
                    void *to, int64_t stride) {
  gpu *g = &d->g;
  const int64_t row = from->cols * bytes_of(from->element);
  return gpu_download_rows(g, to, (const char *)from->data + first * row, (size_t)row, count,
                           stride);
}

/* ---- host memory ---------------------------------------------------------------------------- */

/* A copy on the device; NULL stays NULL. */
template <class T>
static int send(gpu *g, const T *from, int64_t count, T **to) {
  *to = NULL;
  if (!from) return GPU_OK;
  GPU_TRY(gpu_new(g, to, count));
  return gpu_upload(g, *to, from, (size_t)count * sizeof *from, 1, 0);
}

static int send_lists(gpu *g, const unicon__device_sparse *from, gpu_lists *to) {
  int64_t *start, *column;
  double *value;
  *to = {0, NULL, NULL, NULL};
  if (!from || !from->start || from->rows == 0) return GPU_OK;
  const int64_t count = from->start[from->rows];
  GPU_TRY(send(g, from->start, from->rows + 1, &start));
  GPU_TRY(send(g, from->column, count, &column));
  GPU_TRY(send(g, from->value, count, &value));
  *to = {from->rows, start, column, value};
  return GPU_OK;
}

/* An operation with room that goes back when it ends. */
#define IN_ROOM(d, call)         \
  gpu *g = &(d)->g;              \
  const long mark = gpu_mark(g); \
  const int code = (call);       \
  gpu_release(g, mark);          \
  return code

/* ---- rows ----------------------------------------------------------------------------------- */

static int features(unicon__device *d, const unicon__device_map *map, unicon__matrix *raw,
                    int64_t count, unicon__matrix *out, int64_t first) {
  const gpu_map own = {map->kind,
                       map->kernel,
                       map->normalize,
                       map->degree,
                       map->width,
                       map->in,
                       map->points,
                       map->out,
                       data_of(map->base),
                       data_of(map->square),
                       data_of(map->center),
                       data_of(map->factor),
                       data_of(map->mean)};
  return gpu_features(&d->g, &own, (float *)raw->data, count, row_of(out, first), out->cols);
}

static int gather_rows(gpu *g, const unicon__matrix *from, const int64_t *row, int64_t count,
                       unicon__matrix *to, int64_t first) {
  int64_t *rows;
  GPU_TRY(send(g, row, count, &rows));
  return gpu_gather(g, data_of(from), from->cols, from->cols, rows, count, row_of(to, first),
                    to->cols);
}

static int gather(unicon__device *d, const unicon__matrix *from, const int64_t *row, int64_t count,
                  unicon__matrix *to, int64_t to_first) {
  IN_ROOM(d, gather_rows(g, from, row, count, to, to_first));
}

static int shift(unicon__device *d, unicon__matrix *m, int64_t first, int64_t count,
                 const unicon__matrix *row) {
  return gpu_subtract(&d->g, row_of(m, first), count, m->cols, m->cols, data_of(row));
}

static int embed(unicon__device *d, const unicon__matrix *phi, int64_t first, int64_t count,
                 const unicon__matrix *weight, int unit, unicon__matrix *z, int64_t z_first) {
  return gpu_embed(&d->g, row_of(phi, first), count, weight->rows, phi->cols, data_of(weight),
                   weight->cols, unit, row_of(z, z_first), z->cols);
}

/* ---- sums ----------------------------------------------------------------------------------- */

static int add_product(unicon__device *d, const unicon__matrix *a, int64_t a_first,
                       const unicon__matrix *b, int64_t b_first, int64_t count, double sign,
                       unicon__matrix *sum, int64_t rows, int64_t cols) {
  const int same = a == b && a_first == b_first && rows == cols;
  return gpu_add_product(&d->g, row_of(a, a_first), a->cols, row_of(b, b_first), b->cols, count,
                         rows, cols, sign, same, (double *)sum->data, sum->cols);
}

static int sums_in_room(gpu *g, const unicon__matrix *a, int64_t first, int64_t count,
                        const double *weight, int64_t weights, double sign, unicon__matrix *sum,
                        int64_t cols) {
  double *own;
  GPU_TRY(send(g, weights > 0 ? weight : NULL, weights * count, &own));
  return gpu_column_sums(g, row_of(a, first), count, cols, a->cols, own, weights, sign,
                         (double *)sum->data, sum->cols);
}

static int add_sums(unicon__device *d, const unicon__matrix *a, int64_t first, int64_t count,
                    const double *weight, int64_t weights, double sign, unicon__matrix *sum,
                    int64_t cols) {
  IN_ROOM(d, sums_in_room(g, a, first, count, weight, weights, sign, sum, cols));
}

static int combine_in_room(gpu *g, const unicon__device_sparse *w, const unicon__matrix *y,
                           unicon__matrix *t) {
  gpu_lists own;
  GPU_TRY(send_lists(g, w, &own));
  return gpu_combine(g, own, data_of(y), y->cols, y->cols, 0, (float *)t->data, t->cols);
}

static int combine(unicon__device *d, const unicon__device_sparse *w, const unicon__matrix *y,
                   unicon__matrix *t) {
  IN_ROOM(d, combine_in_room(g, w, y, t));
}

/* ---- the plane ------------------------------------------------------------------------------ */

static gpu_plane plane_of(const unicon__device_plane *p) {
  return {data_of(p->zx), data_of(p->zy), p->n_x, p->n_y, p->r, p->zx->cols, p->zy->cols};
}

static int sums_of_plane(gpu *g, const unicon__device_plane *plane, const unicon__device_exp *e) {
  const gpu_plane own = plane_of(plane);
  double *to[4] = {e->row_top, e->row_sum, e->column_top, e->column_sum}, *out[4];
  gpu_lists counts;
  GPU_TRY(send_lists(g, e->counts, &counts));
  for (int k = 0; k < 4; k++) GPU_TRY(gpu_new(g, &out[k], k < 2 ? own.n_x : own.n_y));
  GPU_TRY(gpu_exp_sums(g, &own, e->a, e->shifted, counts, out[0], out[1], out[2], out[3]));
  for (int k = 0; k < 4; k++)
    GPU_TRY(gpu_download(g, to[k], out[k], (size_t)(k < 2 ? own.n_x : own.n_y) * sizeof(double)));
  return GPU_OK;
}

static int exp_sums(unicon__device *d, const unicon__device_plane *plane,
                    const unicon__device_exp *sums) {
  IN_ROOM(d, sums_of_plane(g, plane, sums));
}

static int weigh_plane(gpu *g, const unicon__device_plane *plane, const unicon__device_weights *w,
                       unicon__matrix *c, double *value) {
  const gpu_plane own = plane_of(plane);
  float *row, *column;
  gpu_weights k = {w->form, w->a,   w->bias, w->scale, NULL, NULL, {0, NULL, NULL, NULL},
                   w->x0,   w->n_x, w->y0,   w->n_y,   NULL, NULL, 0,
                   0};
  const bool both = w->form == UNICON__DEVICE_EXP || w->form == UNICON__DEVICE_SHIFTED;
  GPU_TRY(send(g, both ? w->row : NULL, own.n_x, &row));
  GPU_TRY(send(g, both ? w->column : NULL, own.n_y, &column));
  GPU_TRY(send_lists(g, w->fixed, &k.fixed));
  k.row = row;
  k.column = column;
  if (w->phi_x) {
    k.phi_x = row_of(w->phi_x, w->phi_x0);
    k.phi_y = row_of(w->phi_y, w->phi_y0);
    k.p_x = w->phi_x->cols;
    k.p_y = w->phi_y->cols;
  }
  return gpu_weigh(g, &own, &k, c ? (double *)c->data : NULL, value);
}

static int weigh(unicon__device *d, const unicon__device_plane *plane,
                 const unicon__device_weights *weights, unicon__matrix *c, double *value) {
  IN_ROOM(d, weigh_plane(g, plane, weights, c, value));
}

/* ---- use ------------------------------------------------------------------------------------ */

static int bias_in_room(gpu *g, const unicon__matrix *z, int64_t first, int64_t count,
                        const unicon__matrix *bank, int form, double strength, float *out) {
  float *own;
  GPU_TRY(gpu_new(g, &own, count));
  GPU_TRY(gpu_bias(g, row_of(z, first), count, z->cols, data_of(bank), bank->rows, bank->cols,
                   bank->cols, form == UNICON__DEVICE_CSLS, strength, own));
  return gpu_download(g, out, own, (size_t)count * sizeof *out);
}

static int bias(unicon__device *d, const unicon__matrix *z, int64_t first, int64_t count,
                const unicon__matrix *bank, int form, double strength, float *out) {
  if (count == 0) return GPU_OK;
  if (bank->rows == 0) return GPU_ELSEWHERE;
  IN_ROOM(d, bias_in_room(g, z, first, count, bank, form, strength, out));
}

static int send_scores(gpu *g, const unicon__device_scores *s, gpu_scores *out) {
  int64_t *self;
  GPU_TRY(send(g, s->self, s->queries, &self));
  *out = {row_of(s->query, s->q0), row_of(s->candidate, s->c0), s->queries, s->candidates, s->width,
          s->query->cols,          s->candidate->cols,          s->number,  self};
  return GPU_OK;
}

static int nearest_in_room(gpu *g, const unicon__device_scores *scores, int64_t k, double *score,
                           int64_t *id) {
  const int64_t count = scores->queries * k;
  gpu_scores s;
  double *own;
  int64_t *ids;
  GPU_TRY(send_scores(g, scores, &s));
  GPU_TRY(send(g, score, count, &own));
  GPU_TRY(send(g, id, count, &ids));
  GPU_TRY(gpu_nearest(g, &s, k, own, ids));
  GPU_TRY(gpu_download(g, score, own, (size_t)count * sizeof *score));
  return gpu_download(g, id, ids, (size_t)count * sizeof *id);
}

static int nearest(unicon__device *d, const unicon__device_scores *scores, int64_t k, double *score,
                   int64_t *id) {
  if (k > GPU_MOST_NEAREST) return GPU_ELSEWHERE;
  if (k < 1 || scores->queries == 0 || scores->candidates == 0) return GPU_OK;
  IN_ROOM(d, nearest_in_room(g, scores, k, score, id));
}

static int send_ranked(gpu *g, const unicon__device_ranks *r, int64_t n, gpu_ranked *out) {
  const int64_t count = r->start[n];
  double *threshold;
  GPU_TRY(send(g, r->threshold, count, &threshold));
  *out = {};
  out->threshold = threshold;
  out->k = r->k;
  GPU_TRY(send(g, r->above, count, &out->above));
  GPU_TRY(send(g, r->top, n, &out->top));
  GPU_TRY(send(g, r->sum, n, &out->sum));
  if (r->k == 0) return GPU_OK;
  GPU_TRY(send(g, r->score, n * r->k, &out->score));
  return send(g, r->id, n * r->k, &out->id);
}

static int fetch_ranked(gpu *g, const gpu_ranked *from, int64_t n, const unicon__device_ranks *r) {
  const size_t lists = (size_t)(n * r->k);
  if (r->top) GPU_TRY(gpu_download(g, r->top, from->top, (size_t)n * sizeof *r->top));
  if (r->sum) GPU_TRY(gpu_download(g, r->sum, from->sum, (size_t)n * sizeof *r->sum));
  if (lists > 0) GPU_TRY(gpu_download(g, r->score, from->score, lists * sizeof *r->score));
  if (lists > 0) GPU_TRY(gpu_download(g, r->id, from->id, lists * sizeof *r->id));
  return gpu_download(g, r->above, from->above, (size_t)r->start[n] * sizeof *r->above);
}

static int ranks_in_room(gpu *g, const unicon__device_scores *scores,
                         const unicon__device_ranks *r, int scales) {
  const int64_t n = scores->queries;
  gpu_ranked by[2];
  gpu_lists hidden;
  gpu_scores s;
  int64_t *start;
  GPU_TRY(send_scores(g, scores, &s));
  GPU_TRY(send_lists(g, r->hidden, &hidden));
  GPU_TRY(send(g, r->start, n + 1, &start));
  for (int k = 0; k < scales; k++) GPU_TRY(send_ranked(g, &r[k], n, &by[k]));
  GPU_TRY(gpu_ranks(g, &s, start, hidden, by, scales));
  for (int k = 0; k < scales; k++) GPU_TRY(fetch_ranked(g, &by[k], n, &r[k]));
  return GPU_OK;
}

static int ranks(unicon__device *d, const unicon__device_scores *scores,
                 const unicon__device_ranks *r, int scales) {
  bool wanted = r->start[scores->queries] > 0;
  for (int k = 0; k < scales; k++) {
    wanted |= r[k].k > 0;
    if (r[k].k > GPU_MOST_NEAREST) return GPU_ELSEWHERE;
  }
  if (scores->queries == 0 || scores->candidates == 0 || !wanted) return GPU_OK;
  IN_ROOM(d, ranks_in_room(g, scores, r, scales));
}

/* ---- dense algebra -------------------------------------------------------------------------- */

static int eigen_in_room(gpu *g, int64_t n, double *a, double *w) {
  double *own, *values;
  GPU_TRY(send(g, a, n * n, &own));
  GPU_TRY(gpu_new(g, &values, n));
  GPU_TRY(gpu_eigen(g, n, own, values));
  GPU_TRY(gpu_download(g, w, values, (size_t)n * sizeof *w));
  return gpu_download(g, a, own, (size_t)(n * n) * sizeof *a);
}

static int eigen(unicon__device *d, int64_t n, double *a, double *w) {
  if (n == 0) return GPU_OK;
  IN_ROOM(d, eigen_in_room(g, n, a, w));
}

static int svd_in_room(gpu *g, int64_t m, int64_t n, const double *a, double *s, double *u,
                       double *vt) {
  const int64_t q = gpu_least(m, n);
  double *own, *values, *left, *right;
  GPU_TRY(send(g, a, m * n, &own));
  GPU_TRY(gpu_new(g, &values, q));
  GPU_TRY(gpu_new(g, &left, m * q));
  GPU_TRY(gpu_new(g, &right, q * n));
  GPU_TRY(gpu_svd(g, m, n, own, values, left, right));
  GPU_TRY(gpu_download(g, s, values, (size_t)q * sizeof *s));
  GPU_TRY(gpu_download(g, u, left, (size_t)(m * q) * sizeof *u));
  return gpu_download(g, vt, right, (size_t)(q * n) * sizeof *vt);
}

static int svd(unicon__device *d, int64_t m, int64_t n, double *a, double *s, double *u,
               double *vt) {
  if (m == 0 || n == 0) return GPU_OK;
  IN_ROOM(d, svd_in_room(g, m, n, a, s, u, vt));
}

static int leading_in_room(gpu *g, int64_t m, int64_t n, int64_t r, const double *a, double *s,
                           double *u, double *v) {
  const int64_t values = gpu_least(r + 1, gpu_least(m, n));
  double *own, *value, *left, *right;
  GPU_TRY(send(g, a, m * n, &own));
  GPU_TRY(gpu_new(g, &value, values));
  GPU_TRY(gpu_new(g, &left, m * r));
  GPU_TRY(gpu_new(g, &right, n * r));
  GPU_TRY(gpu_svd_leading(g, m, n, own, r, value, left, right));
  s[r] = 0;
  GPU_TRY(gpu_download(g, s, value, (size_t)values * sizeof *s));
  GPU_TRY(gpu_download(g, u, left, (size_t)(m * r) * sizeof *u));
  return gpu_download(g, v, right, (size_t)(n * r) * sizeof *v);
}

static int leading(unicon__device *d, int64_t m, int64_t n, int64_t r, const double *a, double *s,
                   double *u, double *v) {
  if (r < 1 || r > gpu_least(m, n)) return GPU_ELSEWHERE;
  IN_ROOM(d, leading_in_room(g, m, n, r, a, s, u, v));
}

static int product_in_room(gpu *g, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                           const double *a, const double *b, double *c) {
  double *left, *right, *out;
  GPU_TRY(send(g, a, m * k, &left));
  GPU_TRY(send(g, b, k * n, &right));
  GPU_TRY(gpu_new(g, &out, m * n));
  GPU_TRY(gpu_dgemm(g, trans_a, trans_b, m, n, k, 1, left, trans_a ? m : k, right, trans_b ? k : n,
                    0, out, n));
  return gpu_download(g, c, out, (size_t)(m * n) * sizeof *c);
}

static int product(unicon__device *d, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                   const double *a, const double *b, double *c) {
  if (m == 0 || n == 0 || k == 0) return GPU_ELSEWHERE;
  IN_ROOM(d, product_in_room(g, trans_a, trans_b, m, n, k, a, b, c));
}

/* ---- memory of others ----------------------------------------------------------------------- */

static gpu_foreign foreign_of(const unicon__foreign *f) {
  return {f->data,          f->rows,         f->cols,        f->row_stride,
          f->col_stride,    (int)f->element, (int)f->number, f->stream};
}

static int check_shapes(gpu *g, const unicon__matrix *m, int64_t m_first, int64_t count,
                        const unicon__foreign *f, int64_t first) {
  if (m->element == UNICON__ELEMENT_F32 && f->cols <= m->cols && m_first >= 0 && first >= 0 &&
      count <= m->rows - m_first && count <= f->rows - first)
    return GPU_OK;
  return gpu_fail(g, GPU_FAILED, "rows of others have other shapes");
}

static int receive(unicon__device *d, unicon__matrix *to, int64_t to_first, int64_t count,
                   const unicon__foreign *from, int64_t first) {
  const gpu_foreign own = foreign_of(from);
  GPU_TRY(check_shapes(&d->g, to, to_first, count, from, first));
  return gpu_receive(&d->g, &own, first, count, row_of(to, to_first), to->cols);
}

static int hand(unicon__device *d, const unicon__matrix *from, int64_t from_first, int64_t count,
                const unicon__foreign *to, int64_t first) {
  const gpu_foreign own = foreign_of(to);
  GPU_TRY(check_shapes(&d->g, from, from_first, count, to, first));
  return gpu_hand(&d->g, row_of(from, from_first), from->cols, count, &own, first);
}

static int flaw(unicon__device *d, const unicon__matrix *m, int64_t first, int64_t count, int zero,
                int64_t *row) {
  return gpu_flaw(&d->g, row_of(m, first), count, m->cols, m->cols, zero, row);
}

static int room_new(unicon__device *d, uint64_t bytes, void **out, int32_t *number) {
  *number = d->g.device;
  return gpu_room_new(&d->g, bytes, out);
}

static void room_free(void *room, int32_t number) {
  (void)number; /* addresses are of one space */
  gpu_room_free(room);
}

/* ---- refine --------------------------------------------------------------------------------- */

/* Lists of all batches, as the kernels want them: host memory. */
typedef struct batch_lists {
  int64_t *entry_row, *column_start, *by_column;
} batch_lists;

static void free_lists(batch_lists *l) {
  free(l->entry_row);
  free(l->column_start);
  free(l->by_column);
}

/* Entries of each row of y, in the order of the rows of x; fails where there is no memory. */
static int make_lists(gpu *g, const unicon__device_steps *k, batch_lists *l) {
  const int64_t rows = k->start[1][k->steps], count = k->entries->start[k->entries->rows];
  l->entry_row = (int64_t *)calloc((size_t)count + 1, sizeof *l->entry_row);
  l->by_column = (int64_t *)calloc((size_t)count + 1, sizeof *l->by_column);
  l->column_start = (int64_t *)calloc((size_t)rows + 2, sizeof *l->column_start);
  if (!l->entry_row || !l->by_column || !l->column_start)
    return gpu_fail(g, GPU_MEMORY, "the host has no memory left for the lists of batches");
  int64_t *at = l->column_start + 1; /* counts, then starts; when all are in, ends */
  const int64_t *start = k->entries->start, *column = k->entries->column;
  for (int64_t t = 0; t < k->steps; t++)
    for (int64_t e = start[k->start[0][t]]; e < start[k->start[0][t + 1]]; e++)
      at[k->start[1][t] + column[e] + 1]++;
  for (int64_t j = 1; j < rows; j++) at[j] += at[j - 1];
  for (int64_t t = 0; t < k->steps; t++)
    for (int64_t i = k->start[0][t]; i < k->start[0][t + 1]; i++)
      for (int64_t e = start[i]; e < start[i + 1]; e++) {
        l->entry_row[e] = i - k->start[0][t];
        l->by_column[at[k->start[1][t] + column[e]]++] = e;
      }
  return GPU_OK;
}

static int send_steps(gpu *g, const unicon__device_steps *k, const batch_lists *l,
                      gpu_steps *out) {
  const int64_t count = k->entries->start[k->entries->rows];
  int64_t *own[7];
  double *value, *omega[2];
  for (int s = 0; s < 2; s++) GPU_TRY(send(g, k->row[s], k->start[s][k->steps], &own[s]));
  GPU_TRY(send(g, l->entry_row, count, &own[2]));
  GPU_TRY(send(g, k->entries->column, count, &own[3]));
  GPU_TRY(send(g, k->entries->start, k->entries->rows + 1, &own[4]));
  GPU_TRY(send(g, l->column_start, k->start[1][k->steps] + 1, &own[5]));
  GPU_TRY(send(g, l->by_column, count, &own[6]));
  GPU_TRY(send(g, k->entries->value, count, &value));
  GPU_TRY(send(g, k->omega_x, count, &omega[0]));
  GPU_TRY(send(g, k->omega_y, count, &omega[1]));
  *out = {k->steps, k->first, {k->start[0], k->start[1]}, k->entries->start,
          {own[0], own[1]}, own[2], own[3], {own[4], own[5]}, own[6],
          value, {omega[0], omega[1]}, k->a, k->nu, k->own,
          k->phi, k->rate, k->decay, NULL};
  return gpu_new(g, &out->loss, k->steps);
}

static gpu_tuned tuned_of(const unicon__device_tuned *t) {
  return {data_of(t->phi),          data_of(t->scale),           data_of(t->whole),
          t->g->rows,               (float *)t->g->data,         (float *)t->mean->data,
          (float *)t->square->data, (float *)t->f->data};
}

static int refine_in_room(gpu *g, const unicon__device_tuned side[2],
                          const unicon__device_steps *k, batch_lists *lists) {
  const gpu_tuned own[2] = {tuned_of(&side[0]), tuned_of(&side[1])};
  gpu_steps steps = {};
  if (k->steps > 0) {
    GPU_TRY(make_lists(g, k, lists));
    GPU_TRY(send_steps(g, k, lists, &steps));
  }
  GPU_TRY(gpu_refine(g, own, &steps, side[0].g->cols));
  if (k->steps == 0) return GPU_OK;
  return gpu_download(g, k->value, steps.loss, (size_t)k->steps * sizeof *k->value);
}

static int refine(unicon__device *d, const unicon__device_tuned side[2],
                  const unicon__device_steps *steps) {
  gpu *g = &d->g;
  const long mark = gpu_mark(g);
  batch_lists lists = {};
  const int code = refine_in_room(g, side, steps, &lists);
  free_lists(&lists);
  gpu_release(g, mark);
  return code;
}

/* ---- held-out rows -------------------------------------------------------------------------- */

static gpu_rows rows_of(const unicon__matrix *m) {
  if (!m) return {NULL, 0, 0};
  return {data_of(m), m->rows, m->cols};
}

/* Room for what a direction finds, and its lists. */
static int send_direction(gpu *g, const unicon__device_judge *j, int d, gpu_judge_lists *out) {
  const unicon__device_ranks *of = &j->of[d];
  const int64_t n = j->held[d]->rows, count = of->start[n];
  int64_t *start, *match, *self;
  GPU_TRY(send(g, of->start, n + 1, &start));
  GPU_TRY(send(g, j->match[d], count, &match));
  GPU_TRY(send(g, j->self[d], n, &self));
  *out = {start, match, self, {0, NULL, NULL, NULL}, NULL, NULL, NULL, NULL};
  GPU_TRY(send_lists(g, of->hidden, &out->hidden));
  GPU_TRY(gpu_new(g, &out->threshold, count));
  GPU_TRY(gpu_new(g, &out->above, count));
  if (of->top) GPU_TRY(gpu_new(g, &out->top, n));
  if (of->sum) GPU_TRY(gpu_new(g, &out->sum, n));
  GPU_TRY(gpu_check(g, cudaMemsetAsync(out->above, 0, (size_t)count * sizeof *out->above, g->stream),
                    "ranks"));
  if (!out->sum) return GPU_OK;
  return gpu_check(g, cudaMemsetAsync(out->sum, 0, (size_t)n * sizeof *out->sum, g->stream),
                   "ranks");
}

static int fetch_direction(gpu *g, const unicon__device_judge *j, int d,
                           const gpu_judge_lists *from) {
  const unicon__device_ranks *of = &j->of[d];
  const int64_t n = j->held[d]->rows, count = of->start[n];
  GPU_TRY(gpu_download(g, j->threshold[d], from->threshold, (size_t)count * sizeof(double)));
  GPU_TRY(gpu_download(g, of->above, from->above, (size_t)count * sizeof *of->above));
  if (of->top) GPU_TRY(gpu_download(g, of->top, from->top, (size_t)n * sizeof *of->top));
  return of->sum ? gpu_download(g, of->sum, from->sum, (size_t)n * sizeof *of->sum) : GPU_OK;
}

static int judge_in_room(gpu *g, const unicon__device_judge *j) {
  gpu_judge own = {};
  own.rank = j->rank;
  own.csls = j->form == UNICON__DEVICE_CSLS;
  own.strength = j->strength;
  for (int s = 0; s < 2; s++) {
    double *scale;
    own.held[s] = rows_of(j->held[s]);
    own.bank[s] = rows_of(j->bank[s]);
    GPU_TRY(send(g, j->scale[s], j->rank, &scale));
    own.scale[s] = scale;
    GPU_TRY(send_direction(g, j, s, &own.of[s]));
  }
  GPU_TRY(gpu_judge_rows(g, &own));
  for (int d = 0; d < 2; d++) GPU_TRY(fetch_direction(g, j, d, &own.of[d]));
  return GPU_OK;
}

static int judge(unicon__device *d, const unicon__device_judge *j) {
  for (int s = 0; s < 2; s++)
    for (int64_t i = 0; i < j->held[s]->rows; i++)
      if (j->of[s].start[i + 1] - j->of[s].start[i] > GPU_MOST_MATCHES) return GPU_ELSEWHERE;
  IN_ROOM(d, judge_in_room(g, j));
}

/* ---- the table ------------------------------------------------------------------------------ */

/* An operation on the GPU of its device. */
template <auto operation>
struct there;

template <typename R, typename... A, R (*operation)(unicon__device *, A...)>
struct there<operation> {
  static R call(unicon__device *d, A... arguments) {
    const current_gpu gpu(d->g.device);
    return operation(d, arguments...);
  }
};

static unicon__device_table make_table(void) {
  unicon__device_table t = {};
  t.version = UNICON__DEVICE_VERSION;
  t.size = sizeof t;
  t.name = "cuda";
  t.preference = 10;
  t.least_flops = UNICON_CUDA_LEAST_FLOPS;
  t.usable = usable;
  t.open = open_device;
  t.close = close_device;
  t.error = error_of;
  t.memory = memory_of;
  t.matrix_new = there<matrix_new>::call;
  t.matrix_free = there<matrix_free>::call;
  t.upload = there<upload>::call;
  t.download = there<download>::call;
  t.features = there<features>::call;
  t.gather = there<gather>::call;
  t.shift = there<shift>::call;
  t.embed = there<embed>::call;
  t.add_product = there<add_product>::call;
  t.add_sums = there<add_sums>::call;
  t.combine = there<combine>::call;
  t.exp_sums = there<exp_sums>::call;
  t.weigh = there<weigh>::call;
  t.bias = there<bias>::call;
  t.nearest = there<nearest>::call;
  t.ranks = there<ranks>::call;
  t.eigen = there<eigen>::call;
  t.svd = there<svd>::call;
  t.leading = there<leading>::call;
  t.product = there<product>::call;
  t.memory_kind = 2;
  t.receive = there<receive>::call;
  t.hand = there<hand>::call;
  t.flaw = there<flaw>::call;
  t.room_new = there<room_new>::call;
  t.room_free = room_free;
  t.refine = there<refine>::call;
  t.judge = there<judge>::call;
  return t;
}

extern "C" __attribute__((visibility("default"))) const unicon__device_table *unicon__device_entry(
    void) {
  static const unicon__device_table table = make_table();
  return &table;
}
