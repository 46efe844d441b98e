/* SPDX-License-Identifier: Apache-2.0 */
/* Refine: steps of Adam on minibatches of an exponential loss. The plane of a batch is small, so it
 * lies in memory twice, by rows and by columns: sums of columns are sums of rows of the second.
 * About forty launches a step, nothing of which the host waits for. */
#include <math.h>

#include "kernels.cuh"
#include "parts.cuh"

enum { ROW_THREADS = 128, SQUARE_BLOCKS = 256, POLL_STEPS = 16 };

/* One side of a batch. */
typedef struct half_batch {
  const gpu_tuned *t;
  int64_t most, n; /* rows of the largest batch, and of this one */
  float *phi, *z, *dz, *length;
  float *gradient, *half; /* p by r; half: where there is a whole metric */
  double *part;           /* of the mean square */
  float *s;               /* scores: by rows of x, or by rows of y */
  double *log_n, *value;  /* per row: log N, its part of the loss */
  float *weight;          /* log R */
} half_batch;

typedef struct refining {
  const gpu_steps *k;
  int64_t r;
  half_batch side[2];
  float *score; /* of the entries of a batch */
} refining;

/* ---- factors -------------------------------------------------------------------------------- */

static __global__ void scale_kernel(const float *scale, const float *g, int64_t count, int64_t r,
                                    float *f) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
    f[at] = scale[at / r] * g[at];
}

static int times_scale(gpu *g, const gpu_tuned *t, const float *from, int64_t r, float *to) {
  const int64_t count = t->p * r;
  scale_kernel<<<part_blocks(g, count), 256, 0, g->stream>>>(t->scale, from, count, r, to);
  return gpu_launched(g, "factors");
}

/* F = R G */
static int make_factors(gpu *g, const gpu_tuned *t, int64_t r) {
  const int64_t p = t->p;
  if (t->whole) return gpu_sgemm(g, 0, 0, p, r, p, 1, t->whole, p, t->g, r, 0, t->f, r);
  if (t->scale) return times_scale(g, t, t->g, r, t->f);
  return gpu_check(g,
                   cudaMemcpyAsync(t->f, t->g, (size_t)(p * r) * sizeof *t->f,
                                   cudaMemcpyDeviceToDevice, g->stream),
                   "factors");
}

/* ---- embeddings ----------------------------------------------------------------------------- */

/* A warp a row: to length 1, with the length it had. */
static __global__ void unit_kernel(float *z, int64_t rows, int64_t r, float *length) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  float *row = z + i * r;
  double sum = 0;
  for (int64_t k = lane; k < r; k += 32) sum += (double)row[k] * (double)row[k];
  const double now = sqrt(warp_sum(sum));
  if (lane == 0) length[i] = (float)now;
  if (!(now > 0)) return;
  for (int64_t k = lane; k < r; k += 32) row[k] = (float)((double)row[k] / now);
}

static int embed_batch(gpu *g, half_batch *b, const int64_t *row, int64_t r) {
  const gpu_tuned *t = b->t;
  GPU_TRY(make_factors(g, t, r));
  GPU_TRY(gpu_gather(g, t->phi, t->p, t->p, row, b->n, b->phi, t->p));
  GPU_TRY(gpu_sgemm(g, 0, 0, b->n, r, t->p, 1, b->phi, t->p, t->f, r, 0, b->z, r));
  unit_kernel<<<(unsigned)((b->n + 7) / 8), 256, 0, g->stream>>>(b->z, b->n, r, b->length);
  return gpu_launched(g, "embeddings of a batch");
}

/* d becomes ((z . d) z - d) / length */
static __global__ void pull_kernel(const float *z, float *d, int64_t rows, int64_t r,
                                   const float *length) {
  const int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= rows) return;
  double along = 0;
  for (int64_t k = lane; k < r; k += 32) along += (double)z[i * r + k] * (double)d[i * r + k];
  along = warp_sum(along);
  const double scale = length[i] > 0 ? 1 / (double)length[i] : 0;
  for (int64_t k = lane; k < r; k += 32)
    d[i * r + k] = (float)((along * (double)z[i * r + k] - (double)d[i * r + k]) * scale);
}

/* ---- the loss ------------------------------------------------------------------------------- */

typedef struct loss_form {
  double a, nu, own;
  int phi;
} loss_form;

/* The entries of a batch: their numbers begin at `first`. */
typedef struct batch_entries {
  int64_t first, count;
  const int64_t *row, *column; /* of all entries, row and column within their batch */
  const double *value, *omega_x, *omega_y;
} batch_entries;

static __device__ inline double log_add(double u, double v) {
  if (isnan(u) || isnan(v)) return NAN; /* of which the two below know nothing */
  const double high = fmax(u, v), low = fmin(u, v);
  return high == -INFINITY ? high : high + log1p(exp(low - high));
}

static __device__ inline double log_denominator(loss_form f, double u, double log_n) {
  return f.own > 0 ? log_add(u + log(f.own), log_n) : log_n;
}

static __device__ inline double log_rho(loss_form f, double u, double log_d) {
  if (f.phi == 0) return -log_d;
  if (f.phi == 1) return -log_add(log_d, f.nu * u);
  return log(f.a) - f.nu * u;
}

static __device__ inline double phi_value(loss_form f, double u, double log_d) {
  const double log_arg = log_d - f.nu * u;
  if (f.phi == 0) return log_arg / f.a;
  if (f.phi == 1) return log_add(0, log_arg) / f.a;
  return exp(log_arg);
}

static __device__ inline double slope(loss_form f, double u, double log_n) {
  const double log_d = log_denominator(f, u, log_n);
  if (log_d == -INFINITY) return 0;
  const double rho = log_rho(f, u, log_d);
  return f.nu * exp(rho + log_n) - (1 - f.nu) * (f.own > 0 ? f.own * exp(rho + u) : 0);
}

/* Scores of entries are kept, and what they count in the sums goes to their places. */
static __global__ void mark_kernel(batch_entries e, double a, float *s, int64_t n_y, float *turned,
                                   int64_t n_x, float *score) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= e.count) return;
  const int64_t i = e.row[e.first + k], j = e.column[e.first + k];
  const double value = e.value[e.first + k];
  const float own = s[i * n_y + j];
  const float marked = value > 0 ? (float)((double)own + log(value) / a) : -INFINITY;
  score[k] = own;
  s[i * n_y + j] = marked;
  turned[j * n_x + i] = marked;
}

static __device__ double block_sum(double v, double *held) {
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = v;
  __syncthreads();
  double total = 0;
  for (unsigned w = 0; w < blockDim.x / 32; w++) total += held[w];
  return total;
}

/* log N of a row by a block. */
static __global__ void count_kernel(const float *s, int64_t cols, double a, double *log_n) {
  __shared__ float tops[ROW_THREADS / 32];
  __shared__ double held[ROW_THREADS / 32];
  const float *row = s + (int64_t)blockIdx.x * cols;
  float top = -INFINITY;
  for (int64_t k = threadIdx.x; k < cols; k += blockDim.x) top = fmaxf(top, row[k]);
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  for (int w = 0; w < ROW_THREADS / 32; w++) top = fmaxf(top, tops[w]);
  double sum = 0;
  for (int64_t k = threadIdx.x; k < cols; k += blockDim.x)
    sum += row[k] == -INFINITY ? 0 : (double)expf((float)(a * ((double)row[k] - (double)top)));
  sum = block_sum(sum, held);
  if (threadIdx.x == 0)
    log_n[blockIdx.x] = sum > 0 ? a * (double)top + log(sum) : isnan(sum) ? sum : -INFINITY;
}

/* log R and the part of the loss of each row, from its entries: places start[i] .. of `list`, which
 * has numbers of entries, or of the entries themselves. */
static __global__ void settle_kernel(loss_form f, int64_t rows, const int64_t *start,
                                     const int64_t *list, int64_t first, const double *omega,
                                     const float *score, const double *log_n, float *weight,
                                     double *value) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  double top = -INFINITY, sum = 0, total = 0;
  for (int64_t k = start[i]; k < start[i + 1]; k++) {
    const int64_t at = list ? list[k] : k;
    const double u = f.a * (double)score[at - first], w = omega[at];
    const double log_d = log_denominator(f, u, log_n[i]);
    if (log_d == -INFINITY || !(w > 0)) continue;
    const double term = log(w) + log_rho(f, u, log_d);
    if (term <= top) {
      sum += exp(term - top);
    } else {
      sum = sum * exp(top - term) + 1;
      top = term;
    }
    total += w * phi_value(f, u, log_d);
  }
  weight[i] = sum > 0 ? (float)(top + log(sum)) : isnan(sum) ? NAN : -INFINITY;
  value[i] = total;
}

/* Scores become weights. */
static __global__ void weigh_kernel(float *s, int64_t rows, int64_t cols, float a,
                                    const float *weight_x, const float *weight_y) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x, count = rows * cols;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t i = at / cols, j = at - i * cols;
    const float u = a * s[at];
    s[at] = u == -INFINITY ? 0 : -(expf(u + weight_x[i]) + expf(u + weight_y[j]));
  }
}

static __global__ void slope_kernel(loss_form f, batch_entries e, const float *score,
                                    const double *log_x, const double *log_y, float *s,
                                    int64_t n_y) {
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= e.count) return;
  const int64_t at = e.first + k, i = e.row[at], j = e.column[at];
  const double u = f.a * (double)score[k], x = e.omega_x[at], y = e.omega_y[at];
  double add = 0;
  if (x > 0) add += x * slope(f, u, log_x[i]);
  if (y > 0) add += y * slope(f, u, log_y[j]);
  s[i * n_y + j] = (float)((double)s[i * n_y + j] + add);
}

/* The sum of the parts in order, by one block. */
static __global__ void value_kernel(const double *x, int64_t n_x, const double *y, int64_t n_y,
                                    double *out) {
  __shared__ double held[ROW_THREADS / 32];
  double sum = 0;
  for (int64_t k = threadIdx.x; k < n_x; k += blockDim.x) sum += x[k];
  for (int64_t k = threadIdx.x; k < n_y; k += blockDim.x) sum += y[k];
  sum = block_sum(sum, held);
  if (threadIdx.x == 0) *out = sum;
}

static unsigned blocks_of(int64_t count) {
  return (unsigned)((count + 255) / 256);
}

/* S of a batch, in place of the scores of x. */
static int weigh_batch(gpu *g, refining *w, int64_t t) {
  const gpu_steps *k = w->k;
  half_batch *x = &w->side[0], *y = &w->side[1];
  const int64_t at[2] = {k->start[0][t], k->start[1][t]};
  const int64_t first = k->entry_from[at[0]], count = k->entry_from[at[0] + x->n] - first;
  const batch_entries e = {first, count, k->entry_row, k->entry_column, k->value,
                           k->omega[0], k->omega[1]};
  const loss_form f = {k->a, k->nu, k->own, k->phi};
  GPU_TRY(gpu_sgemm(g, 0, 1, x->n, y->n, w->r, 1, x->z, w->r, y->z, w->r, 0, x->s, y->n));
  GPU_TRY(gpu_sgemm(g, 0, 1, y->n, x->n, w->r, 1, y->z, w->r, x->z, w->r, 0, y->s, x->n));
  if (count > 0)
    mark_kernel<<<blocks_of(count), 256, 0, g->stream>>>(e, k->a, x->s, y->n, y->s, x->n, w->score);
  for (int s = 0; s < 2; s++) {
    half_batch *b = &w->side[s];
    count_kernel<<<(unsigned)b->n, ROW_THREADS, 0, g->stream>>>(b->s, w->side[1 - s].n, k->a,
                                                                b->log_n);
    settle_kernel<<<blocks_of(b->n), 256, 0, g->stream>>>(
        f, b->n, k->list_start[s] + at[s], s == 0 ? NULL : k->by_column, first, k->omega[s],
        w->score, b->log_n, b->weight, b->value);
  }
  weigh_kernel<<<part_blocks(g, x->n * y->n), 256, 0, g->stream>>>(x->s, x->n, y->n, (float)k->a,
                                                                   x->weight, y->weight);
  if (count > 0)
    slope_kernel<<<blocks_of(count), 256, 0, g->stream>>>(f, e, w->score, x->log_n, y->log_n, x->s,
                                                          y->n);
  value_kernel<<<1, ROW_THREADS, 0, g->stream>>>(x->value, x->n, y->value, y->n, k->loss + t);
  return gpu_launched(g, "weights of a batch");
}

/* ---- the step ------------------------------------------------------------------------------- */

static __global__ void square_kernel(const float *v, int64_t count, double *part) {
  __shared__ double held[8];
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  double sum = 0;
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
    sum += (double)v[at] * (double)v[at];
  sum = block_sum(sum, held);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

typedef struct adam_rates {
  float keep, length, root;
} adam_rates;

/* Every block adds up the parts of the mean square in the same order. */
static __global__ void adam_kernel(float *value, float *mean, float *square, const float *gradient,
                                   int64_t count, adam_rates rate, const double *part) {
  __shared__ double held[8];
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const double all = block_sum(threadIdx.x < SQUARE_BLOCKS ? part[threadIdx.x] : 0, held);
  const float floor = (float)(1e-4 * sqrt(all / (double)count) + 1e-20);
  for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const float d = gradient[at];
    const float m = 0.9f * mean[at] + 0.1f * d, s = 0.999f * square[at] + 0.001f * d * d;
    mean[at] = m;
    square[at] = s;
    value[at] = rate.keep * value[at] - rate.length * m / (rate.root * sqrtf(s) + floor);
  }
}

/* dG of a side from the pull on its embeddings, and its step. */
static int step_side(gpu *g, half_batch *b, int64_t r, adam_rates rate) {
  const gpu_tuned *t = b->t;
  const int64_t p = t->p, count = p * r;
  float *to = t->whole ? b->half : b->gradient;
  pull_kernel<<<(unsigned)((b->n + 7) / 8), 256, 0, g->stream>>>(b->z, b->dz, b->n, r, b->length);
  GPU_TRY(gpu_launched(g, "gradients"));
  GPU_TRY(gpu_sgemm(g, 1, 0, p, r, b->n, 1, b->phi, p, b->dz, r, 0, to, r));
  if (t->whole) GPU_TRY(gpu_sgemm(g, 1, 0, p, r, p, 1, t->whole, p, b->half, r, 0, b->gradient, r));
  if (t->scale) GPU_TRY(times_scale(g, t, b->gradient, r, b->gradient));
  square_kernel<<<SQUARE_BLOCKS, 256, 0, g->stream>>>(b->gradient, count, b->part);
  adam_kernel<<<part_blocks(g, count), 256, 0, g->stream>>>(t->g, t->mean, t->square, b->gradient,
                                                            count, rate, b->part);
  return gpu_launched(g, "a step");
}

static int take_step(gpu *g, refining *w, int64_t t) {
  const gpu_steps *k = w->k;
  half_batch *x = &w->side[0], *y = &w->side[1];
  const double n = (double)(k->first + t + 1);
  const adam_rates rate = {(float)(1 - k->rate[t] * k->decay),
                           (float)(k->rate[t] / (1 - pow(0.9, n))),
                           (float)(1 / sqrt(1 - pow(0.999, n)))};
  for (int s = 0; s < 2; s++) {
    half_batch *b = &w->side[s];
    b->n = k->start[s][t + 1] - k->start[s][t];
    GPU_TRY(embed_batch(g, b, k->row[s] + k->start[s][t], w->r));
  }
  GPU_TRY(weigh_batch(g, w, t));
  GPU_TRY(gpu_sgemm(g, 0, 0, x->n, w->r, y->n, 1, x->s, y->n, y->z, w->r, 0, x->dz, w->r));
  GPU_TRY(gpu_sgemm(g, 1, 0, y->n, w->r, x->n, 1, x->s, y->n, x->z, w->r, 0, y->dz, w->r));
  for (int s = 0; s < 2; s++) GPU_TRY(step_side(g, &w->side[s], w->r, rate));
  return t % POLL_STEPS == POLL_STEPS - 1 ? gpu_poll(g) : GPU_OK;
}

/* ---- all steps ------------------------------------------------------------------------------ */

static int open_side(gpu *g, refining *w, const gpu_tuned *t, int s) {
  half_batch *b = &w->side[s];
  const int64_t r = w->r;
  b->t = t;
  GPU_TRY(gpu_new(g, &b->phi, b->most * t->p));
  GPU_TRY(gpu_new(g, &b->z, b->most * r));
  GPU_TRY(gpu_new(g, &b->dz, b->most * r));
  GPU_TRY(gpu_new(g, &b->length, b->most));
  GPU_TRY(gpu_new(g, &b->gradient, t->p * r));
  if (t->whole) GPU_TRY(gpu_new(g, &b->half, t->p * r));
  GPU_TRY(gpu_new(g, &b->part, SQUARE_BLOCKS));
  GPU_TRY(gpu_new(g, &b->s, w->side[0].most * w->side[1].most));
  GPU_TRY(gpu_new(g, &b->log_n, b->most));
  GPU_TRY(gpu_new(g, &b->value, b->most));
  return gpu_new(g, &b->weight, b->most);
}

int gpu_refine(gpu *g, const gpu_tuned side[2], const gpu_steps *k, int64_t r) {
  refining w = {k, r, {}, NULL};
  int64_t most = 0;
  for (int64_t t = 0; t < k->steps; t++) {
    for (int s = 0; s < 2; s++) {
      const int64_t n = k->start[s][t + 1] - k->start[s][t];
      if (n > w.side[s].most) w.side[s].most = n;
    }
    const int64_t count = k->entry_from[k->start[0][t + 1]] - k->entry_from[k->start[0][t]];
    most = count > most ? count : most;
  }
  GPU_TRY(gpu_new(g, &w.score, most));
  for (int s = 0; s < 2 && k->steps > 0; s++) GPU_TRY(open_side(g, &w, &side[s], s));
  for (int64_t t = 0; t < k->steps; t++) GPU_TRY(take_step(g, &w, t));
  for (int s = 0; s < 2; s++) GPU_TRY(make_factors(g, &side[s], r));
  return GPU_OK;
}
