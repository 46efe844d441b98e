/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled pass against its own products.
 *
 *     bench_pass [--n 20000] [--d 512] [--r 128] [--repeat 3] [--threads 2] [--all 1] [--compare 0]
 *
 * For each loss: time of observing the plane and of C = Phi_x^T S Phi_y, and the share of it that
 * plain multi-threaded sgemm needs for the same products on the same tile shapes, in the same run.
 * `extra` is what the library allocated beyond the data and the embeddings. */
#include "bench.h"
#include "loss/pass.h"

typedef struct problem {
  unicon_ctx *ctx;
  int64_t n, d, r;
  float *x, *y, *zx, *zy;
  unicon_rows *rows_x, *rows_y;
  unicon_pairs *pairs;
  unicon__map map;
  unicon__source sx, sy;
  double *c;
  bool compare; /* time the products too */
} problem;

static void problem_open(problem *p, unicon_ctx *ctx, int64_t n, int64_t d, int64_t r) {
  *p = (problem){.ctx = ctx, .n = n, .d = d, .r = r};
  p->x = bench_normals(n, d, 101);
  p->y = bench_normals(n, d, 102);
  p->zx = bench_normals(n, r, 103);
  p->zy = bench_normals(n, r, 104);
  bench_unit(p->zx, n, r);
  bench_unit(p->zy, n, r);
  const int64_t row = d * (int64_t)sizeof(float);
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "x", p->x, UNICON_F32, n, d, row, 4, &p->rows_x));
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "y", p->y, UNICON_F32, n, d, row, 4, &p->rows_y));
  BENCH_TRY(ctx, unicon_pairs_identity(ctx, n, n, &p->pairs));
  p->map = (unicon__map){.in = d, .out = d, .normalize = true};
  p->sx = (unicon__source){.rows = p->rows_x, .count = n, .map = &p->map};
  p->sy = (unicon__source){.rows = p->rows_y, .count = n, .map = &p->map};
  p->c = calloc((size_t)(d * d), sizeof *p->c);
  if (!p->c) exit(1);
}

static void problem_close(problem *p) {
  unicon_pairs_destroy(p->pairs);
  unicon_rows_close(p->rows_y);
  unicon_rows_close(p->rows_x);
  free(p->c);
  free(p->zy);
  free(p->zx);
  free(p->y);
  free(p->x);
}

/* All products of `sweeps` looks at the plane and one C, by multi-threaded sgemm. */
static double time_products(const problem *p, int sweeps, long repeat) {
  const int64_t tx = p->ctx->tile_x, ty = p->ctx->tile_y;
  float *s = calloc((size_t)(tx * ty), sizeof *s), *t = calloc((size_t)(tx * p->d), sizeof *t);
  float *c = calloc((size_t)(p->d * p->d), sizeof *c);
  if (!s || !t || !c) exit(1);
  double best = 1e30;
  openblas_set_num_threads(p->ctx->threads);
  for (long k = 0; k < repeat; k++) {
    const double start = unicon__now();
    for (int64_t x0 = 0; x0 < p->n; x0 += tx) {
      const int64_t nx = p->n - x0 < tx ? p->n - x0 : tx;
      for (int64_t y0 = 0; y0 < p->n; y0 += ty) {
        const int64_t ny = p->n - y0 < ty ? p->n - y0 : ty;
        for (int sweep = 0; sweep < sweeps + 1; sweep++)
          bench_sgemm(false, true, nx, ny, p->r, 1, p->zx + x0 * p->r, p->r, p->zy + y0 * p->r,
                      p->r, 0, s, ty);
        bench_sgemm(false, false, nx, p->d, ny, 1e-9f, s, ty, p->y + y0 * p->d, p->d,
                    y0 == 0 ? 0 : 1, t, p->d);
      }
      bench_sgemm(true, false, p->d, p->d, nx, 1, p->x + x0 * p->d, p->d, t, p->d, 1, c, p->d);
    }
    const double taken = unicon__now() - start;
    best = taken < best ? taken : best;
  }
  free(c);
  free(t);
  free(s);
  return best;
}

/* Best time of a pass; *sweeps and *extra describe it. */
static double time_pass(problem *p, const unicon__loss_params *params, long repeat, int *sweeps,
                        double *extra) {
  double best = 1e30;
  for (long k = 0; k < repeat; k++) {
    BENCH_TRY(p->ctx, unicon__enter(p->ctx));
    const uint64_t before = unicon__budget_used(p->ctx->arena.budget);
    unicon__plane plane;
    unicon__loss loss;
    const double start = unicon__now();
    unicon__plane_init(&plane, p->pairs, p->r, p->zx, p->zy);
    BENCH_TRY(p->ctx, unicon__loss_begin(p->ctx, params, &plane, &loss));
    *sweeps = loss.ops->pointwise ? 0 : loss.ops->sweeps(&loss);
    if (!loss.ops->pointwise) BENCH_TRY(p->ctx, unicon__pass_observe(p->ctx, &loss));
    BENCH_TRY(p->ctx, unicon__pass_cross(p->ctx, &loss, &p->sx, &p->sy, p->c));
    const double taken = unicon__now() - start;
    best = taken < best ? taken : best;
    *extra = (double)(unicon_ctx_memory_peak(p->ctx) - before) / 1e6;
    (void)unicon__leave(p->ctx, UNICON_OK);
  }
  return best;
}

static void report(problem *p, const char *name, const unicon__loss_params *params, long repeat) {
  int sweeps = 0;
  double extra = 0;
  const double pass = time_pass(p, params, repeat, &sweeps, &extra);
  const double products = p->compare ? time_products(p, sweeps, repeat) : 0;
  const double flops = 2.0 * (double)p->n * (double)p->n * (double)((sweeps + 1) * p->r + p->d) +
                       2.0 * (double)(p->n * p->d * p->d);
  printf("%-22s %8lld %8.2f %8.2f %7.1f %9.1f %8.1f\n", name, (long long)p->n, pass, products,
         100 * products / pass, flops / pass / 1e9, extra);
  fflush(stdout);
}

int main(int argc, char **argv) {
  const long repeat = bench_option(argc, argv, "--repeat", 3);
  const int64_t n = bench_option(argc, argv, "--n", 20000);
  const int64_t d = bench_option(argc, argv, "--d", 512), r = bench_option(argc, argv, "--r", 128);
  unicon_ctx *ctx;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  unicon__ctx_set_threads(ctx, (int)bench_option(argc, argv, "--threads", 2));
  ctx->tile_x = bench_option(argc, argv, "--tile-x", (long)ctx->tile_x);
  ctx->tile_y = bench_option(argc, argv, "--tile-y", (long)ctx->tile_y);
  const unicon__loss_params base = {
      .temperature = 0.1, .margin = 0.2, .scale = 10, .bias = -10, .nu = 1, .own = 1};
  printf("%s, %d threads, d %lld, r %lld, tiles %lld x %lld, best of %ld\n", unicon_build_info(),
         ctx->threads, (long long)d, (long long)r, (long long)ctx->tile_x, (long long)ctx->tile_y,
         repeat);
  printf("%-22s %8s %8s %8s %7s %9s %8s\n", "loss", "n", "pass s", "gemm s", "gemm %", "GFLOP/s",
         "extra MB");
  problem p;
  problem_open(&p, ctx, n, d, r);
  p.compare = bench_option(argc, argv, "--compare", 1) != 0;
  unicon__loss_params params = base;
  report(&p, "clip", &params, repeat);
  if (bench_option(argc, argv, "--all", 0)) {
    static const char *const name[] = {"infonce", "general exp log1p", "triplet", "supcon",
                                       "siglip",  "spectral"};
    for (int kind = UNICON__LOSS_INFONCE; kind <= UNICON__LOSS_SPECTRAL; kind++) {
      params = base;
      params.kind = kind;
      params.phi = UNICON__PHI_LOG1P;
      report(&p, name[kind - 1], &params, repeat);
    }
    params = base;
    params.temperature = 0.01;
    report(&p, "clip, tau .01", &params, repeat);
  }
  problem_close(&p);
  unicon_ctx_destroy(ctx);
  return 0;
}
