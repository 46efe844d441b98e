/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes at the edge: more than 2^31 elements behind one index, headers whose counts overflow, ten
 * million pairs, and the memory limit from 1 MB up against what the system counts. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "rows_check.h"
#include "support.h"

#include "io/pairs.h"
#include "linalg/blas.h"
#include "linalg/reflect.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { ROWS = 70000, WIDTH = 40000, MEGABYTE = 1 << 20 };

/* Noise that is worth nothing but tells elements apart; exact in float32. */
static float element(int64_t k) {
  return (float)((k * 7919) % 10007 - 5003) / 64;
}

/* ---- more than 2^31 elements -------------------------------------------------------------- */

/* Row i is elements i .. i+WIDTH-1 of one line: 2.8e9 elements in 440 kB. */
static float *line_make(void) {
  float *line = support_floats(ROWS + WIDTH);
  for (int64_t k = 0; k < ROWS + WIDTH; k++) line[k] = element(k);
  return line;
}

static unicon_rows *line_rows(scratch *s, const float *line) {
  unicon_rows *rows = NULL;
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "line", line, UNICON_F32, ROWS, WIDTH, 4, 4, &rows));
  return rows;
}

static void far_rows_are_read(void **state) {
  scratch *s = *state;
  static const int64_t first[] = {0, 53686, 53687, ROWS - 2}; /* 53687 * 40000 > 2^31 */
  float *line = line_make(), *out = support_floats(2 * WIDTH);
  unicon_rows *rows = line_rows(s, line);
  for (size_t c = 0; c < sizeof first / sizeof *first; c++) {
    CHECK_OK(s->ctx, unicon_rows_read(s->ctx, rows, first[c], 2, out));
    for (int64_t k = 0; k < 2 * WIDTH; k++)
      assert_true(out[k] == line[first[c] + k / WIDTH + k % WIDTH]);
  }
  scratch_failed(s, unicon_rows_read(s->ctx, rows, ROWS - 1, 2, out), UNICON_ERR_ARGUMENT, "69999",
                 "70000");
  scratch_failed(s, unicon_rows_read(s->ctx, rows, INT64_MAX, 2, out), UNICON_ERR_ARGUMENT, "line",
                 "70000");
  scratch_failed(s, unicon_rows_read(s->ctx, rows, 2, INT64_MAX, out), UNICON_ERR_ARGUMENT, "line",
                 "70000");
  unicon_rows_close(rows);
  free(out);
  free(line);
}

/* Counts and strides alone pass 2^31: rows without memory, and rows that run backwards. */
static void row_numbers_pass_2_31(void **state) {
  scratch *s = *state;
  static const float one[3] = {1, 2, 3};
  const int64_t many = (int64_t)1 << 40;
  float out[6];
  unicon_rows *rows = NULL;
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "one", one, UNICON_F32, many, 3, 0, 4, &rows));
  assert_int_equal(unicon_rows_count(rows), many);
  CHECK_OK(s->ctx, unicon_rows_read(s->ctx, rows, many - 2, 2, out));
  assert_memory_equal(out + 3, one, sizeof one);
  unicon_rows_close(rows);
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "wide", one, UNICON_F32, 1, many, 0, 0, &rows));
  assert_int_equal(unicon_rows_width(rows), many);
  unicon_model *model = NULL;
  float z[4];
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "max-mem", "1G"));
  scratch_failed(s, unicon_embed(s->ctx, &UNICON_VIEW(.rows = rows, .side = UNICON_X), 0, 1, 1, z),
                 UNICON_ERR_SHAPE, "1099511627776 values", "at most 16777216");
  const unicon_data data = UNICON_DATA(.x = rows, .y = rows);
  const unicon_status status = unicon_fit(s->ctx, &data, NULL, NULL, &model);
  assert_true(status != UNICON_OK && strlen(unicon_ctx_error(s->ctx)) > 0);
  unicon_rows_close(rows);
}

/* The query is row 69,000; its nearest rows are itself and then what a plain loop says. */
static void search_passes_2_31(void **state) {
  scratch *s = *state;
  enum { QUERY = 69000, K = 2 };
  int64_t ids[K];
  float scores[K];
  float *line = line_make();
  unicon_rows *base = line_rows(s, line), *query = NULL;
  CHECK_OK(s->ctx,
           unicon_rows_wrap(s->ctx, "query", line + QUERY, UNICON_F32, 1, WIDTH, 0, 4, &query));
  CHECK_OK(s->ctx, unicon_search(s->ctx, &UNICON_VIEW(.rows = query, .side = UNICON_X),
                                 &UNICON_VIEW(.rows = base, .side = UNICON_X), K, ids, scores));
  /* The line repeats after 10007 elements, so these rows are equal; row order decides. */
  assert_int_equal(ids[0], QUERY % 10007);
  assert_int_equal(ids[1], QUERY % 10007 + 10007);
  CHECK_CLOSE(scores[0], 1, 1e-5);
  unicon_rows_close(query);
  unicon_rows_close(base);
  free(line);
}

/* As many rows as an int64_t can count, of one number each, where the space has eight dimensions.
 */
static void embeddings_pass_2_63(void **state) {
  scratch *s = *state;
  float *x = support_normals(1, 40), *y = support_normals(2, 40 * 9), score;
  int64_t id;
  unicon_rows *rows_x = support_rows(s->ctx, "x", x, 40, 1), *all = NULL;
  unicon_rows *rows_y = support_rows(s->ctx, "y", y, 40, 9);
  unicon_options *options =
      support_options(s->ctx, "kernel_x", "rbf", "map", "nystrom", "landmarks", "20", "rank", "8",
                      "normalize", "off", NULL);
  unicon_model *model = support_fit(s->ctx, rows_x, rows_y, NULL, options);
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "all", x, UNICON_F32, INT64_MAX / 4, 1, 0, 0, &all));
  const unicon_view queries = UNICON_VIEW(.rows = all, .model = model, .side = UNICON_X);
  const unicon_view base = UNICON_VIEW(.rows = rows_y, .model = model, .side = UNICON_Y);
  scratch_failed(s, unicon_search(s->ctx, &queries, &base, 1, &id, &score), UNICON_ERR_MEMORY,
                 "all has 2305843009213693951 rows", "8 dimensions");
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  unicon_rows_close(all);
  unicon_rows_close(rows_y);
  unicon_rows_close(rows_x);
  free(y);
  free(x);
}

/* ---- headers that overflow ---------------------------------------------------------------- */

static void npy_counts_overflow(void **state) {
  scratch *s = *state;
  static const char *const shape[] = {"(4294967296, 4294967296)",
                                      "(9223372036854775807, 1)",
                                      "(9223372036854775807, 9223372036854775807)",
                                      "(2305843009213693952, 4)",
                                      "(2, 2305843009213693953)",
                                      "(9223372036854775808, 1)",
                                      "(99999999999999999999999999, 1)",
                                      "(0, 9223372036854775807)",
                                      "(9223372036854775807, 0)",
                                      "(-1, 2)"};
  for (size_t c = 0; c < sizeof shape / sizeof *shape; c++)
    for (int fortran = 0; fortran < 2; fortran++) {
      char dict[256];
      unicon_rows *rows = NULL;
      snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': %s, 'shape': %s, }\n",
               fortran ? "True" : "False", shape[c]);
      const char *path = scratch_npy(s, "lie.npy", dict, "12345678", 8);
      const unicon_status status = unicon_rows_open(s->ctx, path, &rows);
      scratch_failed(s, status, UNICON_ERR_FORMAT, "lie.npy", "");
      if (c >= 7 && c <= 8) { /* nothing at all, promised and kept */
        path = scratch_npy(s, "lie.npy", dict, "", 0);
        const unicon_status empty = unicon_rows_open(s->ctx, path, &rows);
        assert_true(empty == UNICON_ERR_DATA || empty == UNICON_ERR_FORMAT);
      }
      unicon_pairs *pairs = NULL;
      snprintf(dict, sizeof dict, "{'descr': '<i8', 'fortran_order': %s, 'shape': %s, }\n",
               fortran ? "True" : "False", shape[c]);
      path = scratch_npy(s, "pairs.npy", dict, "12345678", 8);
      scratch_failed(s, unicon_pairs_read(s->ctx, path, 4, 4, &pairs), UNICON_ERR_FORMAT,
                     "pairs.npy", "");
      scratch_failed(s, unicon_pairs_read_labels(s->ctx, path, path, 4, 4, &pairs),
                     UNICON_ERR_FORMAT, "pairs.npy", "");
    }
}

static void npy_header_lengths_overflow(void **state) {
  scratch *s = *state;
  file_image image = npy_make(2, DICT("<f4", "False", "(1, 1)"), "1234", 4);
  memset(image.bytes + 8, 0xff, 4);
  refused(s, scratch_write(s, "length.npy", image.bytes, image.size), UNICON_ERR_FORMAT,
          "length.npy", "4294967295");
}

static void vecs_counts_overflow(void **state) {
  scratch *s = *state;
  static const uint32_t fbin[][4] = {{0xffffffffu, 0xffffffffu, 0, 0},
                                     {0x80000000u, 0x80000000u, 0, 0},
                                     {0x40000000u, 4, 0, 0},
                                     {1u << 31, 1u << 31, 1, 1},
                                     {0xffffffffu, 1, 0, 0}};
  for (size_t c = 0; c < sizeof fbin / sizeof *fbin; c++)
    refused(s, scratch_write(s, "lie.fbin", fbin[c], sizeof fbin[c]), UNICON_ERR_FORMAT, "lie.fbin",
            "");
  static const uint32_t fvecs[][4] = {
      {0xffffffffu, 0, 0, 0}, {0x80000000u, 0, 0, 0}, {0x7fffffffu, 0, 0, 0}, {0x40000000u, 0, 0}};
  for (size_t c = 0; c < sizeof fvecs / sizeof *fvecs; c++)
    refused(s, scratch_write(s, "lie.fvecs", fvecs[c], sizeof fvecs[c]), UNICON_ERR_FORMAT,
            "lie.fvecs", "");
}

static void tensor_counts_overflow(void **state) {
  scratch *s = *state;
  static const char *const header[] = {
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,1],\"data_offsets\":[0,8]}}",
      "{\"x\":{\"dtype\":\"F64\",\"shape\":[2305843009213693953,1],\"data_offsets\":[0,8]}}",
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808,1],\"data_offsets\":[0,8]}}",
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,9223372036854775807]}}",
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[-8,0]}}",
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[1e300,1],\"data_offsets\":[0,8]}}"};
  for (size_t c = 0; c < sizeof header / sizeof *header; c++) {
    const file_image image = safetensors_make(header[c], "12345678", 8);
    refused(s, scratch_write(s, "lie.safetensors", image.bytes, image.size), UNICON_ERR_FORMAT,
            "lie.safetensors", "");
  }
  static const char nothing[] =
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904],\"data_offsets\":[0,0]}}";
  const file_image image = safetensors_make(nothing, "", 0);
  refused(s, scratch_write(s, "empty.safetensors", image.bytes, image.size), UNICON_ERR_DATA,
          "empty.safetensors", "empty");
  file_image length = safetensors_make("{}", "", 0);
  memset(length.bytes, 0xff, 8);
  refused(s, scratch_write(s, "length.safetensors", length.bytes, length.size), UNICON_ERR_FORMAT,
          "length.safetensors", "");
}

static void text_numbers_overflow(void **state) {
  scratch *s = *state;
  unicon_pairs *pairs = NULL;
  static const char *const text[] = {"9223372036854775808\t0\n", "0\t99999999999999999999999\n",
                                     "-9223372036854775809 0\n"};
  for (size_t c = 0; c < sizeof text / sizeof *text; c++)
    scratch_failed(s, unicon_pairs_read(s->ctx, scratch_text(s, "p.tsv", text[c]), 4, 4, &pairs),
                   UNICON_ERR_FORMAT, "p.tsv", "line 1");
  scratch_failed(
      s,
      unicon_pairs_read(s->ctx, scratch_text(s, "p.tsv", "9223372036854775807\t0\n"), 4, 4, &pairs),
      UNICON_ERR_PAIRS, "p.tsv", "9223372036854775807");
  scratch_failed(s, unicon_pairs_identity(s->ctx, (int64_t)1 << 31, (int64_t)1 << 31, &pairs),
                 UNICON_ERR_PAIRS, "", "");
  scratch_failed(s, unicon_pairs_per_x(s->ctx, (int64_t)1 << 30, (int64_t)1 << 33, 8, &pairs),
                 UNICON_ERR_PAIRS, "", "");
  scratch_failed(s, unicon_pairs_per_x(s->ctx, 4, 4, INT64_MAX, &pairs), UNICON_ERR_PAIRS, "", "");
}

/* ---- ten million pairs -------------------------------------------------------------------- */

/* Work space of LAPACK, which counts in 32 bits: the last size that fits and the first that does
 * not, which is refused before anything is touched or allocated. */
static void lapack_work_passes_2_31(void **state) {
  scratch *s = *state;
  double *const none = NULL;
  int info = 0;
  assert_true(unicon__dsyevd_room(32766) == 2147418109);
  assert_true(unicon__dsyevd_room(32767) == 2147549181);
  assert_true(unicon__dstedc_room(46338) == 2147395597);
  assert_true(unicon__dstedc_room(46339) == 2147488278);
  assert_true(unicon__dgesdd_room(23169, 90000) == 2147372427);
  assert_true(unicon__dgesdd_room(90000, 23170) == 2147557790);
  assert_true(unicon__dsyevd_room(3000000) > INT32_MAX); /* 64 bits all the way */
  scratch_failed(s, unicon__dsyevd(s->ctx, 32767, none, none, &info), UNICON_ERR_UNSUPPORTED,
                 "32767 by 32767", "allows 32766");
  scratch_failed(s, unicon__tiled_dsyevd(s->ctx, 46339, none, none, &info), UNICON_ERR_UNSUPPORTED,
                 "46339 by 46339", "allows 46338");
  scratch_failed(s, unicon__dstedc(s->ctx, 46339, none, none, none, &info), UNICON_ERR_UNSUPPORTED,
                 "46339 by 46339", "landmarks");
  scratch_failed(s, unicon__dgesvd(s->ctx, 23170, 24000, none, none, none, none, &info),
                 UNICON_ERR_UNSUPPORTED, "23170 by 24000", "svd random");
}

/* Shapes whose products would pass what BLAS can count are refused where they come in. */
static void widths_beyond_blas_are_refused(void **state) {
  scratch *s = *state;
  static const float zero = 0;
  const int64_t wide = ((int64_t)1 << 24) + 1;
  int64_t id;
  float score;
  unicon_rows *rows = NULL;
  CHECK_OK(s->ctx, unicon_rows_wrap(s->ctx, "wide", &zero, UNICON_F32, 2, wide, 0, 0, &rows));
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  scratch_failed(s, unicon_search(s->ctx, &view, &view, 1, &id, &score), UNICON_ERR_SHAPE,
                 "16777217 values", "at most 16777216");
  unicon_rows_close(rows);
}

/* x row i has the ten y rows 7 i + 100003 k modulo n. */
static void ten_million_pairs(void **state) {
  scratch *s = *state;
  enum { N = 1000000, PER = 10 };
  int64_t *x = malloc(sizeof *x * N * PER), *y = malloc(sizeof *y * N * PER);
  assert_non_null(x);
  assert_non_null(y);
  for (int64_t p = 0; p < (int64_t)N * PER; p++) {
    x[p] = N - 1 - p / PER;
    y[p] = (7 * x[p] + 100003 * (p % PER)) % N;
  }
  unicon_pairs *pairs = NULL;
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, N, N, x, y, NULL, (int64_t)N * PER, &pairs));
  assert_int_equal(unicon_pairs_count(pairs), N * PER);
  int64_t entries = 0;
  for (int64_t j = 0; j < N; j++) {
    const unicon__partners p = unicon__positives_y(pairs, j);
    entries += p.count;
    for (int64_t k = 1; k < p.count; k++) assert_true(p.item[k - 1] < p.item[k]);
  }
  assert_int_equal(entries, N * PER);
  unicon_pairs_destroy(pairs);
  x[N * PER - 1] = x[17]; /* and one of them twice */
  y[N * PER - 1] = y[17];
  scratch_failed(s, unicon_pairs_list(s->ctx, N, N, x, y, NULL, (int64_t)N * PER, &pairs),
                 UNICON_ERR_PAIRS, "twice", "");
  assert_null(pairs);
  free(x);
  free(y);
}

/* One class: a million million pairs without a list of them. */
static void million_million_pairs(void **state) {
  scratch *s = *state;
  enum { N = 1000000 };
  int64_t *label = calloc(N, sizeof *label);
  unicon_pairs *pairs = NULL;
  assert_non_null(label);
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, N, label, N, &pairs));
  assert_int_equal(unicon_pairs_count(pairs), (int64_t)N * N);
  assert_int_equal(unicon__positives_x(pairs, N - 1).count, N);
  assert_true(scratch_memory(s) < 64u * MEGABYTE);
  unicon_pairs_destroy(pairs);
  free(label);
}

/* ---- the memory limit --------------------------------------------------------------------- */

enum { FIT_ROWS = 1500, FIT_X = 300, FIT_Y = 200, ALLOWANCE = 64 };

static const char *const fits[][5] = {{"preset", "fast", NULL},
                                      {"preset", "auto", NULL},
                                      {"preset", "paper", NULL},
                                      {"iterations", "1", "batch", "700", NULL},
                                      {"preset", "fast", "refine", "1", NULL},
                                      {"preset", "fast", "kernel", "rbf", NULL}};

static atomic_bool sampling;

/* Anonymous memory of this process that is resident now, in bytes. */
static uint64_t resident(void) {
  char line[256];
  unsigned long long kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "RssAnon: %llu kB", &kilobytes) == 1) break;
  if (file) fclose(file);
  return 1024 * (uint64_t)kilobytes;
}

static void *sample(void *user) {
  uint64_t *peak = user;
  while (atomic_load(&sampling)) {
    const uint64_t now = resident();
    if (now > *peak) *peak = now;
    nanosleep(&(struct timespec){0, 500000}, NULL);
  }
  return NULL;
}

/* The child: LIMIT KIND X Y. Fits files under the limit; prints status, budget peak, resident peak
 * and the sentence. The parent looks at them. */
static int child(char **argument) {
  unicon_ctx *ctx = NULL;
  unicon_rows *x = NULL, *y = NULL;
  unicon_model *model = NULL;
  const char *const *o = fits[atoi(argument[1])];
  uint64_t peak = 0;
  pthread_t sampler;
  /* a driver's library beside this build has memory of its own as soon as it is loaded */
  if (unicon_ctx_create(&ctx) || unicon_ctx_set(ctx, "threads", "2") ||
      unicon_ctx_set(ctx, "device", "cpu") || unicon_ctx_set(ctx, "max-mem", argument[0]))
    return 3;
  unicon_options *options = support_options(ctx, o[0], o[1], o[2], o[3], NULL);
  atomic_store(&sampling, true);
  if (pthread_create(&sampler, NULL, sample, &peak)) return 3;
  unicon_status status = unicon_rows_open(ctx, argument[2], &x);
  if (!status) status = unicon_rows_open(ctx, argument[3], &y);
  if (!status) status = unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y), NULL, options, &model);
  atomic_store(&sampling, false);
  pthread_join(sampler, NULL);
  printf("%d %llu %llu %s\n", (int)status, (unsigned long long)unicon_ctx_memory_peak(ctx),
         (unsigned long long)peak, unicon_ctx_error(ctx));
  unicon_model_destroy(model);
  unicon_rows_close(y);
  unicon_rows_close(x);
  unicon_options_destroy(options);
  unicon_ctx_destroy(ctx);
  return 0;
}

static const char *write_rows(scratch *s, const char *name, const float *data, int64_t n,
                              int64_t d) {
  unicon_writer *writer = NULL;
  const char *path = scratch_path(s, name);
  CHECK_OK(s->ctx, unicon_writer_open(s->ctx, path, UNICON_WRITE_F32, n, d, &writer));
  CHECK_OK(s->ctx, unicon_writer_append(s->ctx, writer, data, n));
  CHECK_OK(s->ctx, unicon_writer_commit(s->ctx, writer));
  return path;
}

/* Runs one child; true where the fit succeeded. */
static bool limited_fit(int kind, int limit, const char *x, const char *y) {
  char self[1024], command[4096], answer[1024] = "";
  unsigned long long peak = 0, anonymous = 0;
  int status = -1, at = 0;
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  snprintf(command, sizeof command, "'%s' %dM %d '%s' '%s'", self, limit, kind, x, y);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_non_null(fgets(answer, sizeof answer, pipe));
  assert_int_equal(pclose(pipe), 0);
  assert_int_equal(sscanf(answer, "%d %llu %llu %n", &status, &peak, &anonymous, &at), 3);
  const unsigned long long allowed = (unsigned long long)limit * MEGABYTE;
  const bool kept =
      peak <= allowed && (SANITIZED || anonymous <= allowed + (uint64_t)ALLOWANCE * MEGABYTE);
  const bool said = status == UNICON_OK ||
                    (status == UNICON_ERR_MEMORY && strstr(answer + at, "max_mem") != NULL);
  if (!kept || !said)
    print_error("%s %s with %d MB: status %d, %.1f MB in the budget, %.1f MB resident: %s\n",
                fits[kind][0], fits[kind][1], limit, status, (double)peak / MEGABYTE,
                (double)anonymous / MEGABYTE, answer + at);
  assert_true(kept && said);
  return status == UNICON_OK;
}

static void limit_holds_in_the_system(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 3, FIT_ROWS, FIT_X, FIT_Y, 30, 0.5, &p);
  const char *x = write_rows(s, "x.npy", p.x, FIT_ROWS, FIT_X);
  const char *y = write_rows(s, "y.npy", p.y, FIT_ROWS, FIT_Y);
  problem_free(&p);
  const int kinds = (int)(sizeof fits / sizeof *fits);
  for (int kind = 0; kind < kinds; kind++) {
    int refused_fits = 0;
    bool made = false;
    for (int limit = 1; limit <= 4096 && !made; limit += limit < 4 ? 1 : limit / 2) {
      made = limited_fit(kind, limit, x, y);
      refused_fits += !made;
    }
    assert_true(made && refused_fits > 0);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(far_rows_are_read),
      SCRATCH_TEST(row_numbers_pass_2_31),
      SCRATCH_TEST(embeddings_pass_2_63),
      SCRATCH_TEST(search_passes_2_31),
      SCRATCH_TEST(npy_counts_overflow),
      SCRATCH_TEST(npy_header_lengths_overflow),
      SCRATCH_TEST(vecs_counts_overflow),
      SCRATCH_TEST(tensor_counts_overflow),
      SCRATCH_TEST(text_numbers_overflow),
      SCRATCH_TEST(lapack_work_passes_2_31),
      SCRATCH_TEST(widths_beyond_blas_are_refused),
      SCRATCH_TEST(ten_million_pairs),
      SCRATCH_TEST(million_million_pairs),
      SCRATCH_TEST(limit_holds_in_the_system),
  };
  if (argc == 5) return child(argv + 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
