/* SPDX-License-Identifier: Apache-2.0 */
/* How the work goes faster with more threads.
 *
 *     bench_scale [--most 16] [--percent 100] [--repeat 1]
 *
 * Seconds on one thread, and how many times faster 2, 4, 8, ... threads are, up to --most. More
 * threads than processors are left out. --percent scales the numbers of rows. */
#include "bench.h"
#include "loss/pass.h"

enum { WIDTH_X = 1024, WIDTH_Y = 768, PASS_WIDTH = 512, RANK = 128, SPACE = 256, MOST_STEPS = 16 };

typedef struct sizes {
  int64_t fit, pass, few, wide, base, queries;
} sizes;

typedef struct stage {
  unicon_ctx *ctx;
  sizes n;
  unicon_rows *x, *y;       /* for fits */
  unicon_rows *base, *many; /* for searches */
  float *zx, *zy, *fx, *fy; /* for passes: embeddings and features */
  double *c;
} stage;

static unicon_rows *random_rows(unicon_ctx *ctx, const char *name, int64_t n, int64_t d,
                                uint32_t stream, float **data) {
  unicon_rows *rows = NULL;
  *data = bench_normals(n, d, stream);
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, name, *data, UNICON_F32, n, d, d * (int64_t)sizeof(float),
                                  sizeof(float), &rows));
  return rows;
}

/* The first rows of a matrix in memory. */
static unicon_rows *head(unicon_ctx *ctx, const unicon_rows *rows, const float *data, int64_t n) {
  unicon_rows *out = NULL;
  const int64_t d = unicon_rows_width(rows);
  BENCH_TRY(ctx, unicon_rows_wrap(ctx, "head", data, UNICON_F32, n, d, d * (int64_t)sizeof(float),
                                  sizeof(float), &out));
  return out;
}

/* ---- the work ----------------------------------------------------------------------------- */

static void run_fit(stage *s, const unicon_rows *x, const unicon_rows *y, const char *kernel) {
  unicon_options *options = NULL;
  unicon_model *model = NULL;
  BENCH_TRY(s->ctx, unicon_options_create(s->ctx, &options));
  BENCH_TRY(s->ctx, unicon_options_set(s->ctx, options, "preset", "fast"));
  BENCH_TRY(s->ctx, unicon_options_set(s->ctx, options, "kernel", kernel));
  if (strcmp(kernel, "linear") != 0)
    BENCH_TRY(s->ctx, unicon_options_set(s->ctx, options, "map", "nystrom"));
  const unicon_data data = {.x = x, .y = y};
  BENCH_TRY(s->ctx, unicon_fit(s->ctx, &data, NULL, options, &model));
  unicon_model_destroy(model);
  unicon_options_destroy(options);
}

static void run_search(stage *s, int64_t queries, int64_t k) {
  const float *data = s->zx; /* any rows of SPACE numbers will do */
  unicon_rows *q = head(s->ctx, s->base, data, queries);
  int64_t *ids = malloc((size_t)(queries * k) * sizeof *ids);
  float *scores = malloc((size_t)(queries * k) * sizeof *scores);
  if (!ids || !scores) exit(1);
  const unicon_view view = {.rows = q}, base = {.rows = queries > 100 ? s->many : s->base};
  BENCH_TRY(s->ctx, unicon_search(s->ctx, &view, &base, k, ids, scores));
  free(scores);
  free(ids);
  unicon_rows_close(q);
}

/* Observes the plane and makes C. */
static void run_pass(stage *s, int64_t n_x, int64_t n_y) {
  unicon_pairs *pairs = NULL;
  unicon_rows *x = NULL, *y = NULL;
  unicon__plane plane;
  unicon__loss loss;
  const unicon__loss_params params = {.kind = UNICON__LOSS_CLIP, .temperature = 0.1};
  const unicon__map map = {.in = PASS_WIDTH, .out = PASS_WIDTH, .normalize = true};
  const int64_t step = PASS_WIDTH * (int64_t)sizeof(float), size = sizeof(float);
  int64_t *one = malloc((size_t)n_x * sizeof *one);
  if (!one) exit(1);
  for (int64_t i = 0; i < n_x; i++) one[i] = i;
  BENCH_TRY(s->ctx, unicon_pairs_list(s->ctx, n_x, n_y, one, one, NULL, n_x, &pairs));
  BENCH_TRY(s->ctx,
            unicon_rows_wrap(s->ctx, "x", s->fx, UNICON_F32, n_x, PASS_WIDTH, step, size, &x));
  BENCH_TRY(s->ctx,
            unicon_rows_wrap(s->ctx, "y", s->fy, UNICON_F32, n_y, PASS_WIDTH, step, size, &y));
  const unicon__source sx = {.rows = x, .count = n_x, .map = &map};
  const unicon__source sy = {.rows = y, .count = n_y, .map = &map};
  BENCH_TRY(s->ctx, unicon__enter(s->ctx));
  unicon__plane_init(&plane, pairs, RANK, s->zx, s->zy);
  BENCH_TRY(s->ctx, unicon__loss_begin(s->ctx, &params, &plane, &loss));
  BENCH_TRY(s->ctx, unicon__pass_observe(s->ctx, &loss));
  BENCH_TRY(s->ctx, unicon__pass_cross(s->ctx, &loss, &sx, &sy, s->c));
  BENCH_TRY(s->ctx, unicon__leave(s->ctx, UNICON_OK));
  unicon_rows_close(y);
  unicon_rows_close(x);
  unicon_pairs_destroy(pairs);
  free(one);
}

static void fast(stage *s) {
  run_fit(s, s->x, s->y, "linear");
}

static void angular(stage *s) {
  run_fit(s, s->x, s->y, "angular");
}

static void pass_square(stage *s) {
  run_pass(s, s->n.pass, s->n.pass);
}

static void pass_few_rows(stage *s) {
  run_pass(s, s->n.few, s->n.wide);
}

static void search_8(stage *s) {
  run_search(s, 8, 10);
}

static void search_many(stage *s) {
  run_search(s, s->n.queries, 10);
}

static const struct {
  const char *name;
  void (*run)(stage *s);
} works[] = {{"fit, preset fast", fast},
             {"fit, angular kernel, 2000 landmarks", angular},
             {"pass, clip, square plane", pass_square},
             {"pass, clip, 500 rows of x", pass_few_rows},
             {"search, 8 queries", search_8},
             {"search, 10 000 queries", search_many}};

/* ---- the table ---------------------------------------------------------------------------- */

static double best_time(stage *s, void (*run)(stage *s), int threads, long repeat) {
  char text[16];
  double best = 1e30;
  snprintf(text, sizeof text, "%d", threads);
  BENCH_TRY(s->ctx, unicon_ctx_set(s->ctx, "threads", text));
  for (long k = 0; k < repeat; k++) {
    const double start = unicon__now();
    run(s);
    const double taken = unicon__now() - start;
    best = taken < best ? taken : best;
  }
  return best;
}

static int64_t part_of(int64_t rows, long percent) {
  return rows * percent / 100 < 512 ? 512 : rows * percent / 100;
}

int main(int argc, char **argv) {
  const long most = bench_option(argc, argv, "--most", 16);
  const long percent = bench_option(argc, argv, "--percent", 100);
  const long repeat = bench_option(argc, argv, "--repeat", 1);
  const int processors = unicon__processor_count();
  stage s = {.n = {part_of(40000, percent), part_of(20000, percent), 500, part_of(200000, percent),
                   part_of(400000, percent), part_of(10000, percent)}};
  float *x, *y, *base;
  BENCH_TRY(s.ctx, unicon_ctx_create(&s.ctx));
  s.x = random_rows(s.ctx, "x", s.n.fit, WIDTH_X, 201, &x);
  s.y = random_rows(s.ctx, "y", s.n.fit, WIDTH_Y, 202, &y);
  s.base = random_rows(s.ctx, "base", s.n.base, SPACE, 203, &base);
  s.many = head(s.ctx, s.base, base, part_of(100000, percent));
  const int64_t longest = s.n.wide > s.n.pass ? s.n.wide : s.n.pass;
  s.zx = bench_normals(s.n.queries > s.n.pass ? s.n.queries : s.n.pass, SPACE, 204);
  s.zy = bench_normals(longest, RANK, 205);
  s.fx = bench_normals(s.n.pass, PASS_WIDTH, 206);
  s.fy = bench_normals(longest, PASS_WIDTH, 207);
  s.c = malloc((size_t)(PASS_WIDTH * PASS_WIDTH) * sizeof *s.c);
  if (!s.c) return 1;
  bench_unit(s.zx, s.n.pass, RANK);
  bench_unit(s.zy, longest, RANK);
  printf("%d processors; seconds on 1 thread, and how many times faster more threads are\n",
         processors);
  printf("%-38s %9s", "work", "1 thread");
  for (int t = 2; t <= most && t <= processors; t *= 2) printf(" %6d", t);
  printf("\n");
  for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
    const double alone = best_time(&s, works[w].run, 1, repeat);
    printf("%-38s %7.2f s", works[w].name, alone);
    for (int t = 2; t <= most && t <= processors; t *= 2) {
      printf(" %6.2f", alone / best_time(&s, works[w].run, t, repeat));
      fflush(stdout);
    }
    printf("\n");
  }
  free(s.c);
  free(s.fy);
  free(s.fx);
  free(s.zy);
  free(s.zx);
  unicon_rows_close(s.many);
  unicon_rows_close(s.base);
  unicon_rows_close(s.y);
  unicon_rows_close(s.x);
  free(base);
  free(y);
  free(x);
  unicon_ctx_destroy(s.ctx);
  return 0;
}
