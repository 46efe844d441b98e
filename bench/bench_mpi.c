/* SPDX-License-Identifier: Apache-2.0 */
/* How many times faster P processes of one machine are than one.
 *
 *     mpirun -n P bench_mpi [--pairs 2000000] [--dim 512] [--plane 100000] [--rank 128] [--part P]
 *
 * Statistics of `pairs` pairs of dim + dim random float16 rows, made on the fly in memory that all
 * processes share; and an exact pass of clip over plane x plane scores, as a step of a fit makes it:
 * embeddings, loss, C. First by process 0 alone, on 1/part of the rows (for the pass: of the rows of x,
 * against all of y), while the others sleep; then by all. Ratios are of a time times part. Where there
 * are fewer cores than processes the ratio of times says nothing; that of work, processor time outside
 * of exchanges, says how it is divided. */
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier) memfd_create
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/together.h"
#include "bench.h"
#include "communicator.h"
#include "features/project.h"
#include "io/pair_set.h"
#include "linalg/blas.h"
#include "linalg/convert.h"
#include "loss/pass.h"
#include "solve/stats.h"

typedef struct setting {
  int64_t pairs, dim, plane, rank, part;
} setting;

typedef struct bench {
  communicator c;
  unicon_ctx *ctx;
  setting s;
  uint16_t *data[2]; /* rows of x and of y */
  unicon_rows *rows[2];
  float *mean;
  unicon__map map;
  float *weight[2]; /* dim by rank */
} bench;

/* What a run took: seconds of the slowest process, seconds of it in exchanges, bytes told by all; the
 * most processor time of a process outside of exchanges, and that of all. */
typedef struct cost {
  double seconds, exchanges, bytes, work, all_work;
} cost;

/* ---- rows that all processes see ---------------------------------------------------------- */

/* Memory of process 0, by the name under which the others can open it. */
static void *shared_memory(bench *b, size_t bytes) {
  char name[64] = "";
  int file = -1;
  if (b->c.with.index == 0) {
    file = memfd_create("rows", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) name[0] = '!';
    if (name[0] != '!') snprintf(name, sizeof name, "/proc/%ld/fd/%d", (long)getpid(), file);
  }
  b->c.with.broadcast(b->c.with.user, name, sizeof name);
  if (b->c.with.index > 0 && name[0] != '!') file = open(name, O_RDWR);
  void *memory =
      file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "bench_mpi: there is no memory for %.1f GB that all processes share\n",
            1e-9 * (double)bytes);
    communicator_abandon(NULL);
  }
  return memory;
}

static uint64_t mix(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* Uniform numbers; a row of y is half that of x. */
static void fill_rows(bench *b) {
  const int64_t dim = b->s.dim, count = b->c.with.count;
  const int64_t first = b->s.pairs * b->c.with.index / count;
  const int64_t last = b->s.pairs * (b->c.with.index + 1) / count;
  float *row = malloc((size_t)(2 * dim) * sizeof *row);
  if (!row) exit(1);
  for (int64_t i = first; i < last; i++) {
    uint64_t state = (uint64_t)i << 20;
    for (int64_t k = 0; k < dim; k++) {
      const uint64_t draw = mix(&state);
      row[k] = (float)(uint32_t)draw * 0x1p-31f - 1;
      row[dim + k] = 0.5f * row[k] + (float)(uint32_t)(draw >> 32) * 0x1p-32f - 0.5f;
    }
    for (int s = 0; s < 2; s++) unicon__to_half(row + s * dim, dim, b->data[s] + i * dim);
  }
  free(row);
}

static void open_rows(bench *b) {
  const int64_t dim = b->s.dim, row = dim * 2;
  for (int s = 0; s < 2; s++) b->data[s] = shared_memory(b, (size_t)(b->s.pairs * row));
  fill_rows(b);
  communicator_rest();
  for (int s = 0; s < 2; s++) {
    BENCH_TRY(b->ctx, unicon_rows_wrap(b->ctx, s == 0 ? "x" : "y", b->data[s], UNICON_F16,
                                       b->s.pairs, dim, row, 2, &b->rows[s]));
    b->weight[s] = bench_normals(dim, b->s.rank, (uint32_t)(200 + s));
  }
  b->mean = calloc((size_t)dim, sizeof *b->mean);
  if (!b->mean) exit(1);
  b->map = (unicon__map){.in = dim, .out = dim, .normalize = true, .mean = b->mean};
}

/* ---- what is measured --------------------------------------------------------------------- */

static unicon__source source_of(const bench *b, int s, int64_t count) {
  return (unicon__source){.rows = b->rows[s], .count = count, .map = &b->map};
}

/* Sums over the first `n` pairs. */
static unicon_status statistics(bench *b, int64_t n, double *check) {
  static const int64_t all[2] = {INT64_MAX, INT64_MAX};
  unicon__block *frame = unicon__frame_open(b->ctx);
  unicon_pairs *pairs = NULL;
  unicon__stats stats;
  UNICON_TRY(unicon__pairs_identity(b->ctx, n, n, &pairs));
  const unicon__batch set = {.x = source_of(b, 0, n), .y = source_of(b, 1, n), .pairs = pairs};
  unicon_status status =
      unicon__stats_open(b->ctx, &b->ctx->arena, &set, all,
                         UNICON__STATS_GRAM_X | UNICON__STATS_GRAM_Y | UNICON__STATS_CROSS, &stats);
  if (status == UNICON_OK) status = unicon__stats_add(b->ctx, &set, 1, &stats);
  *check = status == UNICON_OK ? stats.way[0].cross[0] / stats.way[0].weight : 0;
  unicon_pairs_destroy(pairs);
  unicon__frame_close(b->ctx, frame);
  return status;
}

/* Loss and C of the first `n_x` rows of x against `plane` rows of y, row i with row i. */
static unicon_status pass_over(bench *b, int64_t n_x, const unicon_pairs *pairs, double *check) {
  const int64_t n_y = b->s.plane, r = b->s.rank, dim = b->s.dim;
  const unicon__source x = source_of(b, 0, n_x), y = source_of(b, 1, n_y);
  const unicon__loss_params params = {.kind = UNICON__LOSS_CLIP, .temperature = 0.1};
  unicon__plane plane;
  unicon__loss loss;
  float *zx, *zy;
  double *c;
  UNICON_NEW(b->ctx, zx, n_x * r);
  UNICON_NEW(b->ctx, zy, n_y * r);
  UNICON_NEW(b->ctx, c, dim * dim);
  UNICON_TRY(unicon__project(b->ctx, &x, b->weight[0], r, 0, n_x, true, false, zx, r));
  UNICON_TRY(unicon__project(b->ctx, &y, b->weight[1], r, 0, n_y, true, false, zy, r));
  unicon__plane_init(&plane, pairs, r, zx, zy);
  UNICON_TRY(unicon__loss_begin(b->ctx, &params, &plane, &loss));
  UNICON_TRY(unicon__pass_observe(b->ctx, &loss));
  UNICON_TRY(unicon__pass_cross(b->ctx, &loss, &x, &y, c));
  *check = loss.value;
  return UNICON_OK;
}

static unicon_status exact_pass(bench *b, int64_t n_x, double *check) {
  unicon__block *frame = unicon__frame_open(b->ctx);
  unicon_pairs *pairs = NULL;
  int64_t *row;
  UNICON_NEW(b->ctx, row, n_x);
  for (int64_t i = 0; i < n_x; i++) row[i] = i;
  unicon_status status =
      unicon__pairs_from_list(b->ctx, "pair", n_x, b->s.plane, row, row, NULL, n_x, &pairs);
  if (status == UNICON_OK) status = pass_over(b, n_x, pairs, check);
  unicon_pairs_destroy(pairs);
  unicon__frame_close(b->ctx, frame);
  return status;
}

/* ---- by one, by all ----------------------------------------------------------------------- */

typedef unicon_status (*work_fn)(bench *b, int64_t rows, double *check);

/* Process 0 by itself, or all of them. */
static cost run(bench *b, work_fn work, int64_t rows, bool all, double *check) {
  const double bytes = b->c.bytes, waited = b->c.seconds, busy = b->c.busy;
  BENCH_TRY(b->ctx, unicon_ctx_join(b->ctx, all ? &b->c.with : NULL));
  communicator_rest();
  const double start = unicon__now(), worked = communicator_worked();
  unicon_status status = UNICON_OK;
  if (all || b->c.with.index == 0) {
    BENCH_TRY(b->ctx, unicon__enter(b->ctx));
    status = unicon__together_begin(b->ctx, NULL, "bench");
    unicon__blas_begin();
    if (status == UNICON_OK) status = work(b, rows, check);
    unicon__blas_end();
    status = unicon__leave(b->ctx, unicon__together_end(b->ctx, status));
  }
  const double seconds = unicon__now() - start;
  const double work_here = communicator_worked() - worked - (b->c.busy - busy);
  if (status != UNICON_OK) {
    fprintf(stderr, "bench_mpi: %s\n", unicon_ctx_error(b->ctx));
    communicator_abandon(NULL);
  }
  communicator_rest();
  return (cost){communicator_largest(seconds), communicator_largest(b->c.seconds - waited),
                communicator_sum(b->c.bytes - bytes), communicator_largest(work_here),
                communicator_sum(work_here)};
}

static void compare(bench *b, const char *name, work_fn work, int64_t rows) {
  double alone, all;
  const cost one = run(b, work, rows / b->s.part, false, &alone);
  const cost many = run(b, work, rows, true, &all);
  if (b->c.with.index > 0) return;
  const double whole = one.seconds * (double)rows / (double)(rows / b->s.part);
  printf("%s\n", name);
  printf("  1 process     %8.2f s for 1/%lld of it: %.2f s\n", one.seconds, (long long)b->s.part,
         whole);
  printf(
      "  %2lld processes  %8.2f s, of it at most %.2f s in exchanges; %.1f MB told by all of "
      "them\n",
      (long long)b->c.with.count, many.seconds, many.exchanges, 1e-6 * many.bytes);
  printf("  ratio         %8.1f   (values %.6g, of the part %.6g)\n", whole / many.seconds, all,
         alone);
  printf("  work          %8.1f times that of the busiest process; all of them %.2f of it\n",
         one.work * whole / one.seconds / many.work,
         many.all_work / (one.work * whole / one.seconds));
  fflush(stdout);
}

int main(int argc, char **argv) {
  bench b = {0};
  char name[160];
  if (!communicator_open(&argc, &argv, &b.c)) return 1;
  b.s = (setting){.pairs = bench_option(argc, argv, "--pairs", 2000000),
                  .dim = bench_option(argc, argv, "--dim", 512),
                  .plane = bench_option(argc, argv, "--plane", 100000),
                  .rank = bench_option(argc, argv, "--rank", 128),
                  .part = bench_option(argc, argv, "--part", (long)b.c.with.count)};
  if (b.s.plane > b.s.pairs) b.s.pairs = b.s.plane;
  BENCH_TRY(b.ctx, unicon_ctx_create(&b.ctx));
  BENCH_TRY(b.ctx, unicon_ctx_set(b.ctx, "threads", "1"));
  const double start = unicon__now();
  open_rows(&b);
  if (b.c.with.index == 0)
    printf("%s\nrows made in %.1f s\n", unicon_build_info(), unicon__now() - start);
  snprintf(name, sizeof name, "statistics of %lld pairs of %lld + %lld", (long long)b.s.pairs,
           (long long)b.s.dim, (long long)b.s.dim);
  compare(&b, name, statistics, b.s.pairs);
  snprintf(name, sizeof name, "exact pass of %lld x %lld, rank %lld, %lld + %lld features",
           (long long)b.s.plane, (long long)b.s.plane, (long long)b.s.rank, (long long)b.s.dim,
           (long long)b.s.dim);
  compare(&b, name, exact_pass, b.s.plane);
  const double held = communicator_sum((double)unicon_ctx_memory_peak(b.ctx));
  if (b.c.with.index == 0)
    printf(
        "%.1f s in all; %.1f GB of rows, shared; %.2f GB of the library at most, in all "
        "processes\n",
        unicon__now() - start, 4e-9 * (double)b.s.pairs * (double)b.s.dim, 1e-9 * held);
  for (int s = 0; s < 2; s++) {
    unicon_rows_close(b.rows[s]);
    free(b.weight[s]);
  }
  free(b.mean);
  unicon_ctx_destroy(b.ctx);
  communicator_close();
  return 0;
}
