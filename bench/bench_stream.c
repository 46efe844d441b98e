/* SPDX-License-Identifier: Apache-2.0 */
/* A fit over folders of shards that need not fit into memory: `fast` within --max-mem against reading
 * the shards and the three products X^T X, Y^T Y, X^T Y as full float32 sgemm, shard after shard.
 *
 *     bench_stream [--rows 1000000] [--width 512] [--shard 100000] [--distinct 2] [--memory 2000]
 *
 * makes the folders (float16, under $TMPDIR or /tmp, removed at the end): `distinct` shards of each
 * side, which the others are hard links of, so that 20 million rows take the disk of 200 000. With
 * --distinct 0 every shard is a file of its own. --memory is the limit in MB. Processor seconds stand
 * beside those of the clock, for a machine that has other things to do. */
#include "bench.h"

#include <sys/stat.h>
#include <unistd.h>

#include "linalg/convert.h"

typedef struct setting {
  int64_t rows, width, shard, shards, distinct;
  long memory;
  char folder[512];
} setting;

static void path_of(const setting *s, char side, int64_t shard, char out[600]) {
  snprintf(out, 600, shard < 0 ? "%s/%c" : "%s/%c/%lld.npy", s->folder, side, (long long)shard);
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

/* A shard: a part that both sides share, and noise. */
static void write_shard(const setting *s, char side, int64_t shard) {
  char path[600], header[129];
  const int64_t d = s->width, block = 1024;
  float *z = malloc((size_t)(block * d) * sizeof *z), *e = malloc((size_t)(block * d) * sizeof *e);
  uint16_t *half = malloc((size_t)(block * d) * sizeof *half);
  path_of(s, side, shard, path);
  FILE *file = fopen(path, "wb");
  if (!file || !z || !e || !half) fail(path);
  const int used = snprintf(header, sizeof header,
                            "{'descr': '<f2', 'fortran_order': False, 'shape': (%lld, %lld), }",
                            (long long)s->shard, (long long)d);
  const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  memset(header + used, ' ', (size_t)(118 - used));
  header[117] = '\n';
  if (fwrite(magic, 1, 10, file) != 10 || fwrite(header, 1, 118, file) != 118) fail(path);
  for (int64_t at = 0; at < s->shard; at += block) {
    const int64_t count = s->shard - at < block ? s->shard - at : block;
    for (int64_t i = 0; i < count; i++) {
      unicon__normals(1, 1, (uint64_t)(shard * s->shard + at + i), d, z + i * d);
      unicon__normals(1, side == 'x' ? 2 : 3, (uint64_t)(shard * s->shard + at + i), d, e + i * d);
    }
    for (int64_t k = 0; k < count * d; k++) z[k] += 2 * e[k];
    unicon__to_half(z, count * d, half);
    if (fwrite(half, 2, (size_t)(count * d), file) != (size_t)(count * d)) fail(path);
  }
  if (fclose(file)) fail(path);
  free(z), free(e), free(half);
}

static void make_folders(setting *s) {
  const char *base = getenv("TMPDIR");
  snprintf(s->folder, sizeof s->folder, "%s/bench_stream.XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(s->folder)) fail(s->folder);
  for (int side = 0; side < 2; side++) {
    char path[600], other[600];
    path_of(s, "xy"[side], -1, path);
    if (mkdir(path, 0700)) fail(path);
    for (int64_t k = 0; k < s->shards; k++) {
      if (k < s->distinct) {
        write_shard(s, "xy"[side], k);
        continue;
      }
      path_of(s, "xy"[side], k % s->distinct, other);
      path_of(s, "xy"[side], k, path);
      if (link(other, path)) fail(path);
    }
  }
}

static void remove_folders(const setting *s) {
  for (int side = 0; side < 2; side++) {
    char path[600];
    for (int64_t k = 0; k < s->shards; k++) {
      path_of(s, "xy"[side], k, path);
      unlink(path);
    }
    path_of(s, "xy"[side], -1, path);
    rmdir(path);
  }
  rmdir(s->folder);
}

/* Bytes of a shard by read(2), then as float32. */
static void read_shard(const setting *s, char side, int64_t shard, uint16_t *half, float *out,
                       bench_moment *reading, bench_moment *converting) {
  char path[600];
  bench_moment start = bench_now();
  path_of(s, side, shard, path);
  FILE *file = fopen(path, "rb");
  const size_t count = (size_t)(s->shard * s->width);
  if (!file || fseek(file, 128, SEEK_SET) || fread(half, 2, count, file) != count) fail(path);
  fclose(file);
  const bench_moment read = bench_since(start);
  start = bench_now();
  unicon__convert(UNICON_F16, (const unsigned char *)half, 2, (int64_t)count, out);
  const bench_moment converted = bench_since(start);
  reading->clock += read.clock;
  reading->processor += read.processor;
  converting->clock += converted.clock;
  converting->processor += converted.processor;
}

static bench_moment products(const setting *s, int threads, bench_moment *reading,
                             bench_moment *converting) {
  const int64_t n = s->shard, d = s->width;
  const size_t size = (size_t)(n * d);
  float *x = malloc(size * sizeof *x), *y = malloc(size * sizeof *y);
  float *c = calloc((size_t)(3 * d * d), sizeof *c);
  uint16_t *half = malloc(size * sizeof *half);
  bench_moment sum = {0, 0};
  if (!x || !y || !c || !half) exit(1);
  openblas_set_num_threads(threads);
  for (int64_t k = 0; k < s->shards; k++) {
    read_shard(s, 'x', k, half, x, reading, converting);
    read_shard(s, 'y', k, half, y, reading, converting);
    const bench_moment start = bench_now();
    bench_sgemm(true, false, d, d, n, 1, x, d, x, d, 1, c, d);
    bench_sgemm(true, false, d, d, n, 1, y, d, y, d, 1, c + d * d, d);
    bench_sgemm(true, false, d, d, n, 1, x, d, y, d, 1, c + 2 * d * d, d);
    const bench_moment taken = bench_since(start);
    sum.clock += taken.clock;
    sum.processor += taken.processor;
  }
  free(x), free(y), free(c), free(half);
  return sum;
}

static bench_moment fit(const setting *s, unicon_ctx *ctx, double *held) {
  char x_path[600], y_path[600], limit[32];
  unicon_rows *x, *y;
  unicon_options *fast;
  unicon_model *model;
  path_of(s, 'x', -1, x_path);
  path_of(s, 'y', -1, y_path);
  snprintf(limit, sizeof limit, "%ldM", s->memory);
  BENCH_TRY(ctx, unicon_ctx_set(ctx, "max_mem", limit));
  BENCH_TRY(ctx, unicon_options_create(ctx, &fast));
  BENCH_TRY(ctx, unicon_options_set(ctx, fast, "preset", "fast"));
  const bench_moment start = bench_now();
  BENCH_TRY(ctx, unicon_rows_open(ctx, x_path, &x));
  BENCH_TRY(ctx, unicon_rows_open(ctx, y_path, &y));
  BENCH_TRY(ctx, unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y), NULL, fast, &model));
  const bench_moment taken = bench_since(start);
  *held = (double)unicon_ctx_memory_peak(ctx) / 1e6;
  unicon_model_destroy(model);
  unicon_options_destroy(fast);
  unicon_rows_close(y);
  unicon_rows_close(x);
  return taken;
}

static void print(const char *what, bench_moment m) {
  printf("%-28s %9.2f s %9.2f s\n", what, m.clock, m.processor);
}

int main(int argc, char **argv) {
  setting s = {.rows = bench_option(argc, argv, "--rows", 1000000),
               .width = bench_option(argc, argv, "--width", 512),
               .shard = bench_option(argc, argv, "--shard", 100000),
               .distinct = bench_option(argc, argv, "--distinct", 2),
               .memory = bench_option(argc, argv, "--memory", 2000)};
  unicon_ctx *ctx;
  double held, before = bench_memory("RssAnon:");
  bench_moment reading = {0, 0}, converting = {0, 0};
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  s.shards = (s.rows + s.shard - 1) / s.shard;
  if (s.distinct < 1 || s.distinct > s.shards) s.distinct = s.shards;
  make_folders(&s);
  const bench_moment fitted = fit(&s, ctx, &held);
  const double file_pages = bench_memory("RssFile:"), most = bench_memory("VmHWM:");
  const bench_moment multiplied = products(&s, ctx->threads, &reading, &converting);
  remove_folders(&s);
  const bench_moment all = {reading.clock + converting.clock + multiplied.clock,
                            reading.processor + converting.processor + multiplied.processor};
  printf(
      "%s, %d threads, %lld pairs of %lld + %lld numbers (float16, %.1f GB), %lld of %lld shards "
      "of their own\n",
      unicon_build_info(), ctx->threads, (long long)(s.shards * s.shard), (long long)s.width,
      (long long)s.width, 4e-9 * (double)(s.shards * s.shard * s.width), (long long)s.distinct,
      (long long)s.shards);
  printf("%-28s %11s %11s\n", "", "clock", "processors");
  print("fit fast", fitted);
  print("reading the bytes", reading);
  print("as float32 (one thread)", converting);
  print("three products", multiplied);
  printf("%-28s %11.2f %11.2f   (at most 1.3)\n", "ratio", fitted.clock / all.clock,
         fitted.processor / all.processor);
  printf(
      "library memory               %9.1f MB at most (limit %ld); resident at most %.0f MB, %.0f "
      "MB "
      "of it before, %.0f MB mapped file pages at the end\n",
      held, s.memory, most, before, file_pages);
  unicon_ctx_destroy(ctx);
  return 0;
}
