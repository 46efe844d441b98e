/* SPDX-License-Identifier: Apache-2.0 */
/* Every stage that a device can run, on the CPU and on each usable device, in one run.
 *
 *     bench_device [--size small|mscoco] [--repeat 3] [--threads N] [--x N] [--y N] [--d N] [--r N]
 *                  [--landmarks N] [--bank N] [--queries N] [--base N] [--width N] [--eigen N]
 *
 * Random unit rows on the host, so a device's times have the copies to it and back in them; its
 * kernels alone are timed by cuda_check --time. `-`: the stage stayed on the CPU, being too small
 * or having no form there. Plugins are looked for beside the program and in UNICON_DEVICES.
 * experiments/torch_device.py prints the same stages of plain torch under the same names;
 * experiments/beside.py puts both tables side by side. */
#include "bench.h"
#include "device/use.h"
#include "features/feed.h"
#include "features/mapfit.h"
#include "linalg/reflect.h"
#include "linalg/svd.h"
#include "loss/pass.h"
#include "score/balance.h"
#include "solve/stats.h"

enum { DEVICES = 9, NEAREST = 10 };

typedef struct sizes {
  long x, y, d, r, landmarks, bank, queries, base, width, eigen;
} sizes;

static const sizes small = {1000, 3000, 64, 32, 150, 256, 200, 20000, 64, 96};
static const sizes mscoco = {82783, 413915, 512, 128, 2000, 4096, 10000, 1000000, 256, 2000};

typedef struct problem {
  unicon_ctx *ctx;
  sizes n;
  float *x, *y, *zx, *zy, *base;
  double *symmetric, *dense, *work[3];
  unicon_rows *rows_x, *rows_y, *rows_base, *rows_query;
  unicon_pairs *pairs;
  unicon_options *fast;
  unicon__map map;
  int64_t *id;
  float *score;
} problem;

/* ---- data --------------------------------------------------------------------------------- */

static void *room(int64_t count, size_t size) {
  void *out = calloc((size_t)count, size);
  if (!out) exit(1);
  return out;
}

static float *unit_rows(int64_t n, int64_t d, uint32_t stream) {
  float *out = bench_normals(n, d, stream);
  bench_unit(out, n, d);
  return out;
}

static unicon_rows *wrapped(problem *p, const char *name, const float *data, int64_t n, int64_t d) {
  unicon_rows *out;
  BENCH_TRY(p->ctx, unicon_rows_wrap(p->ctx, name, data, UNICON_F32, n, d, d * 4, 4, &out));
  return out;
}

static void open_matrices(problem *p) {
  const int64_t n = p->n.eigen;
  p->symmetric = room(n * n, sizeof(double));
  p->dense = room(n * n, sizeof(double));
  for (int k = 0; k < 3; k++) p->work[k] = room(n * n, sizeof(double));
  float *row = bench_normals(n, n, 9);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      p->dense[i * n + j] = (double)row[i * n + j];
      p->symmetric[i * n + j] = (double)row[i * n + j] + (double)row[j * n + i];
    }
  free(row);
}

static void problem_open(problem *p, unicon_ctx *ctx, const sizes *n) {
  static const char *const fast[][2] = {
      {"preset", "fast"}, {"ridge", "0.01"}, {"exponent", "1.5"}, {"balance", "off"}};
  char rank[24];
  *p = (problem){.ctx = ctx, .n = *n};
  p->x = unit_rows(n->x, n->d, 1), p->y = unit_rows(n->y, n->d, 2);
  p->zx = unit_rows(n->x, n->r, 3), p->zy = unit_rows(n->y, n->r, 4);
  p->base = unit_rows(n->base, n->width, 5);
  p->rows_x = wrapped(p, "x", p->x, n->x, n->d);
  p->rows_y = wrapped(p, "y", p->y, n->y, n->d);
  p->rows_base = wrapped(p, "base", p->base, n->base, n->width);
  p->rows_query = wrapped(p, "queries", p->base, n->queries, n->width);
  BENCH_TRY(ctx, unicon_pairs_per_x(ctx, n->x, n->y, n->y / n->x, &p->pairs));
  BENCH_TRY(ctx, unicon_options_create(ctx, &p->fast));
  for (size_t k = 0; k < sizeof fast / sizeof *fast; k++)
    BENCH_TRY(ctx, unicon_options_set(ctx, p->fast, fast[k][0], fast[k][1]));
  snprintf(rank, sizeof rank, "%ld", n->r);
  BENCH_TRY(ctx, unicon_options_set(ctx, p->fast, "rank", rank));
  p->map = (unicon__map){.in = n->d, .out = n->d, .normalize = true};
  p->id = room(n->queries * NEAREST, sizeof *p->id);
  p->score = room(n->queries * NEAREST, sizeof *p->score);
  open_matrices(p);
}

static void problem_close(problem *p) {
  unicon_options_destroy(p->fast);
  unicon_pairs_destroy(p->pairs);
  unicon_rows_close(p->rows_query), unicon_rows_close(p->rows_base);
  unicon_rows_close(p->rows_y), unicon_rows_close(p->rows_x);
  free(p->x), free(p->y), free(p->zx), free(p->zy), free(p->base);
  free(p->symmetric), free(p->dense), free(p->id), free(p->score);
  for (int k = 0; k < 3; k++) free(p->work[k]);
}

/* ---- stages ------------------------------------------------------------------------------- */

static unicon__batch batch_of(const problem *p, const unicon__map *x, const unicon__map *y) {
  return (unicon__batch){{.rows = p->rows_x, .count = p->n.x, .map = x},
                         {.rows = p->rows_y, .count = p->n.y, .map = y},
                         p->pairs,
                         NULL,
                         NULL};
}

/* X^T X, Y^T Y and X^T mean(Y). */
static unicon_status add_statistics(problem *p, const unicon__batch *set, unicon__stats *stats) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  UNICON_TRY(unicon__stats_open(p->ctx, &p->ctx->arena, set, all,
                                UNICON__STATS_GRAM_X | UNICON__STATS_GRAM_Y | UNICON__STATS_CROSS,
                                stats));
  return unicon__stats_add(p->ctx, set, 1, stats);
}

static unicon_status products(problem *p, double *seconds) {
  const unicon__batch set = batch_of(p, &p->map, &p->map);
  unicon__stats stats;
  const double start = unicon__now();
  UNICON_TRY(add_statistics(p, &set, &stats));
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

/* Covariances of kernel features of both sides, and their eigenvectors; landmarks are chosen before. */
static unicon_status angular(problem *p, double *seconds) {
  unicon_ctx *ctx = p->ctx;
  unicon__batch set = batch_of(p, &p->map, &p->map);
  unicon__map map[2];
  unicon__stats stats;
  const unicon__map_params how = {.normalize = true,
                                  .kernel = {UNICON__KERNEL_ARCCOS1, UNICON__KERNEL_ARCCOS1},
                                  .kind = UNICON__MAP_NYSTROM,
                                  .landmarks = p->n.landmarks};
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__map_fit(ctx, &ctx->arena, &how, s, NULL, 0, s ? &set.y : &set.x, &map[s]));
  set.x.map = &map[0], set.y.map = &map[1];
  const double start = unicon__now();
  UNICON_TRY(add_statistics(p, &set, &stats));
  for (int s = 0; s < 2; s++) {
    double *w;
    int info;
    UNICON_NEW(ctx, w, map[s].out);
    UNICON_TRY(unicon__tiled_dsyevd(ctx, map[s].out, stats.gram[s], w, &info));
  }
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

static unicon_status clip(problem *p, double *seconds) {
  const unicon__loss_params params = {
      .temperature = 0.1, .margin = 0.2, .scale = 10, .bias = -10, .nu = 1, .own = 1};
  const unicon__batch set = batch_of(p, &p->map, &p->map);
  unicon__plane plane;
  unicon__loss loss;
  double *c;
  UNICON_NEW(p->ctx, c, p->n.d * p->n.d);
  const double start = unicon__now();
  unicon__plane_init(&plane, p->pairs, p->n.r, p->zx, p->zy);
  UNICON_TRY(unicon__loss_begin(p->ctx, &params, &plane, &loss));
  UNICON_TRY(unicon__pass_observe(p->ctx, &loss));
  UNICON_TRY(unicon__pass_cross(p->ctx, &loss, &set.x, &set.y, c));
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

static unicon_status biases(problem *p, double *seconds) {
  const unicon_balance balance = {.how = {UNICON__BALANCE_SOFTMAX, 10},
                                  .r = p->n.r,
                                  .bank = {{p->n.bank < p->n.x ? p->n.bank : p->n.x, p->zx}}};
  float *out;
  UNICON_NEW(p->ctx, out, p->n.y);
  const double start = unicon__now();
  UNICON_TRY(unicon__bias(p->ctx, &balance, UNICON_Y, p->zy, p->n.y, p->n.r, out, 1));
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

static unicon_status eigenvectors(problem *p, double *seconds) {
  const int64_t n = p->n.eigen;
  int info;
  memcpy(p->work[0], p->symmetric, (size_t)(n * n) * sizeof(double));
  const double start = unicon__now();
  UNICON_TRY(unicon__tiled_dsyevd(p->ctx, n, p->work[0], p->work[1], &info));
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

static unicon_status singular_values(problem *p, double *seconds) {
  const int64_t n = p->n.eigen;
  double *a;
  int info;
  UNICON_NEW(p->ctx, a, n * n);
  memcpy(a, p->dense, (size_t)(n * n) * sizeof *a);
  const double start = unicon__now();
  UNICON_TRY(unicon__tiled_dgesvd(p->ctx, n, n, a, p->work[0], p->work[1], p->work[2], &info));
  *seconds = unicon__now() - start;
  return UNICON_OK;
}

/* The next are public calls of their own. */

static unicon_status fast(problem *p, double *seconds) {
  float *z = room(p->n.y * p->n.r, sizeof *z);
  unicon_model *model;
  const double start = unicon__now();
  unicon_status status =
      unicon_fit(p->ctx, &UNICON_DATA(.x = p->rows_x, .y = p->rows_y, .pairs = p->pairs), NULL,
                 p->fast, &model);
  for (int s = 0; s < 2 && status == UNICON_OK; s++)
    status = unicon_embed(p->ctx,
                          &UNICON_VIEW(.rows = s ? p->rows_y : p->rows_x, .model = model,
                                       .side = s ? UNICON_Y : UNICON_X),
                          0, s ? p->n.y : p->n.x, UNICON_FORM_UNIT, z);
  *seconds = unicon__now() - start;
  unicon_model_destroy(model);
  free(z);
  return status;
}

static unicon_status search(problem *p, double *seconds) {
  const unicon_view query = UNICON_VIEW(.rows = p->rows_query, .form = UNICON_FORM_UNIT);
  const unicon_view base =
      UNICON_VIEW(.rows = p->rows_base, .form = UNICON_FORM_UNIT, .side = UNICON_Y);
  const double start = unicon__now();
  const unicon_status status = unicon_search(p->ctx, &query, &base, NEAREST, p->id, p->score);
  *seconds = unicon__now() - start;
  return status;
}

static unicon_status evaluate(problem *p, double *seconds) {
  const unicon_view query = UNICON_VIEW(.rows = p->rows_query, .form = UNICON_FORM_UNIT);
  const unicon_view base =
      UNICON_VIEW(.rows = p->rows_base, .form = UNICON_FORM_UNIT, .side = UNICON_Y);
  int64_t *number = room(p->n.queries, sizeof *number), *rank = room(p->n.queries, sizeof *rank);
  int64_t *back = room(p->n.base, sizeof *back);
  unicon_pairs *pairs;
  for (int64_t i = 0; i < p->n.queries; i++) number[i] = i;
  BENCH_TRY(p->ctx, unicon_pairs_list(p->ctx, p->n.queries, p->n.base, number, number, NULL,
                                      p->n.queries, &pairs));
  const double start = unicon__now();
  const unicon_status status = unicon_ranks(p->ctx, &query, &base, pairs, rank, back);
  *seconds = unicon__now() - start;
  unicon_pairs_destroy(pairs);
  free(number), free(rank), free(back);
  return status;
}

/* ---- the table ---------------------------------------------------------------------------- */

typedef struct line {
  char name[80];
  unicon_status (*run)(problem *p, double *seconds);
  bool inside; /* to be run inside a call */
} line;

enum { LINES = 10 };

static void name_lines(const sizes *n, line *out) {
  const line all[LINES] = {{"", products, true},     {"", fast, false},
                           {"", angular, true},      {"", clip, true},
                           {"", clip, true},         {"", biases, true},
                           {"", search, false},      {"", evaluate, false},
                           {"", eigenvectors, true}, {"", singular_values, true}};
  memcpy(out, all, sizeof all);
  snprintf(out[0].name, sizeof out->name, "products");
  snprintf(out[1].name, sizeof out->name, "fast: statistics to embeddings");
  snprintf(out[2].name, sizeof out->name, "angular, %ld landmarks, covariances and eigenvectors",
           n->landmarks);
  snprintf(out[3].name, sizeof out->name, "exact clip pass");
  snprintf(out[4].name, sizeof out->name, "exact clip pass, reduced");
  snprintf(out[5].name, sizeof out->name, "biases of y by %ld rows, softmax 10",
           n->bank < n->x ? n->bank : n->x);
  snprintf(out[6].name, sizeof out->name, "top 10 of %ld x %ld, r %ld", n->queries, n->base,
           n->width);
  snprintf(out[7].name, sizeof out->name, "ranks of %ld x %ld and back", n->queries, n->base);
  snprintf(out[8].name, sizeof out->name, "eigh %ld f64", n->eigen);
  snprintf(out[9].name, sizeof out->name, "svd %ld f64", n->eigen);
}

/* Milliseconds, best of several after one that is not counted; -1: it stayed on the CPU. */
static double time_line(problem *p, const line *l, const char *device, long repeat) {
  double best = 1e30;
  bool there = false;
  for (long k = 0; k <= repeat; k++) {
    double seconds = 0;
    if (l->inside) BENCH_TRY(p->ctx, unicon__enter(p->ctx));
    const unicon_status status = l->run(p, &seconds);
    there = strcmp(unicon__device_name(p->ctx), device) == 0;
    if (l->inside)
      BENCH_TRY(p->ctx, unicon__leave(p->ctx, status));
    else
      BENCH_TRY(p->ctx, status);
    if (!there) return -1;
    if (k > 0 && seconds < best) best = seconds;
  }
  return 1e3 * best;
}

static void print_time(double ms) {
  if (ms < 0)
    printf("  %12s", "-");
  else
    printf("  %12.2f", ms);
  fflush(stdout);
}

/* All devices of a line, the CPU first. */
static void print_line(problem *p, const line *l, const unicon_device *device, size_t count,
                       long repeat) {
  const bool reduced = strstr(l->name, "reduced") != NULL;
  printf("%-58s", l->name);
  for (size_t k = 0; k < count; k++) {
    if (!device[k].usable) continue;
    const bool cpu = strcmp(device[k].name, "cpu") == 0;
    BENCH_TRY(p->ctx, unicon_ctx_set(p->ctx, "precision", reduced ? "reduced" : "full"));
    BENCH_TRY(p->ctx, unicon_ctx_set(p->ctx, "device", device[k].name));
    print_time(cpu && reduced ? -1 : time_line(p, l, device[k].name, repeat));
  }
  printf("\n");
}

static sizes chosen(int argc, char **argv) {
  sizes n = small;
  for (int k = 1; k + 1 < argc; k++)
    if (strcmp(argv[k], "--size") == 0 && strcmp(argv[k + 1], "mscoco") == 0) n = mscoco;
  const struct {
    const char *name;
    long *value;
  } all[] = {{"--x", &n.x},         {"--y", &n.y},       {"--d", &n.d},
             {"--r", &n.r},         {"--bank", &n.bank}, {"--landmarks", &n.landmarks},
             {"--width", &n.width}, {"--base", &n.base}, {"--queries", &n.queries},
             {"--eigen", &n.eigen}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    *all[k].value = bench_option(argc, argv, all[k].name, *all[k].value);
  n.y = n.y / n.x * n.x; /* as many for each row of x */
  if (n.queries > n.base) n.queries = n.base;
  return n;
}

int main(int argc, char **argv) {
  const long repeat = bench_option(argc, argv, "--repeat", 3);
  const sizes n = chosen(argc, argv);
  const char *folder = getenv("UNICON_DEVICES");
  unicon_device device[DEVICES];
  size_t count;
  unicon_ctx *ctx;
  problem p;
  line lines[LINES];
  if (n.x < 1 || n.y < 1 || unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  unicon__ctx_set_threads(ctx,
                          (int)bench_option(argc, argv, "--threads", unicon__processor_count()));
  if (folder && *folder) BENCH_TRY(ctx, unicon_device_folder(ctx, folder));
  BENCH_TRY(ctx, unicon_devices(ctx, device, DEVICES, &count));
  count = count < DEVICES ? count : DEVICES;
  printf("%ld x %ld rows, d %ld, r %ld; best of %ld\n", n.x, n.y, n.d, n.r, repeat);
  for (size_t k = 0; k < count; k++)
    printf("%s: %s%s\n", device[k].name, device[k].usable ? "" : "not usable, ", device[k].text);
  printf("%-58s", "stage, ms");
  for (size_t k = 0; k < count; k++)
    if (device[k].usable) printf("  %12s", device[k].name);
  printf("\n");
  problem_open(&p, ctx, &n);
  name_lines(&n, lines);
  for (int k = 0; k < LINES; k++) print_line(&p, &lines[k], device, count, repeat);
  problem_close(&p);
  unicon_ctx_destroy(ctx);
  return 0;
}
