/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers under stress: every hard data set with every method. A fit gives a model whose spectrum
 * and embeddings are finite, or a status with a sentence; and the same on 1, 2 and 3 threads.
 *
 * Tolerance: tiles are summed in the same order whatever the thread count, so cosines could be
 * equal to the last bit; 1e-3 leaves room for BLAS kernels that cut a product by threads. Where
 * preset auto chooses between settings that tie up to rounding, either choice is right: then the
 * held-out scores must agree to a hundredth. */
#include "support.h"

enum { THREADS = 4, N_MOST = 1200 };

/* One to three threads, and all processors where there are more. */
static int threads_of(int t) {
  const int all = unicon__processor_count();
  return t < 3 ? t + 1 : all;
}

typedef struct data {
  int64_t n_x, n_y, d_x, d_y;
  float *x, *y;
  unicon_pairs *pairs; /* NULL: row i with row i */
} data;

/* Two views of four common normals, as problem_make draws them. */
static void draw(scratch *s, data *d, int64_t n, int64_t d_x, int64_t d_y) {
  problem p;
  problem_make(s->ctx, 7, n, d_x, d_y, 4, 0.3, &p);
  *d = (data){n, n, d_x, d_y, support_floats(n * d_x), support_floats(n * d_y), NULL};
  memcpy(d->x, p.x, (size_t)(n * d_x) * sizeof *d->x);
  memcpy(d->y, p.y, (size_t)(n * d_y) * sizeof *d->y);
  problem_free(&p);
}

static void scale(data *d, float by) {
  for (int64_t k = 0; k < d->n_x * d->d_x; k++) d->x[k] *= by;
  for (int64_t k = 0; k < d->n_y * d->d_y; k++) d->y[k] *= by;
}

static void plain(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
}

/* Rank 2: every column is a mixture of the first two. */
static void rank_deficient(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < d->n_x; i++)
    for (int64_t k = 2; k < d->d_x; k++)
      d->x[i * d->d_x + k] = (float)k * d->x[i * d->d_x] - d->x[i * d->d_x + 1];
}

static void duplicated_rows(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++) {
    memcpy(d->x + i * 8, d->x + i / 5 * 5 * 8, 8 * sizeof *d->x);
    memcpy(d->y + i * 6, d->y + i / 5 * 5 * 6, 6 * sizeof *d->y);
  }
}

static void duplicated_columns(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++)
    for (int64_t k = 4; k < 8; k++) d->x[i * 8 + k] = d->x[i * 8 + k - 4];
}

static void constant_columns(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++) {
    d->x[i * 8 + 3] = 7;
    d->x[i * 8 + 5] = 0;
    d->y[i * 6 + 2] = -1e-3f;
  }
}

/* One column drowns the others. */
static void huge_constant_column(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++) d->x[i * 8 + 3] = 1e6f;
}

static void huge(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  scale(d, 1e30f);
}

static void largest(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  scale(d, 2e37f);
}

static void tiny(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  scale(d, 1e-30f);
}

static void denormal(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  scale(d, 1e-40f);
}

/* From row to row and from column to column a factor of 1e60 in all. */
static void mixed_sizes(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++)
    for (int64_t k = 0; k < 8; k++)
      d->x[i * 8 + k] *= (float)pow(10, (double)(i % 5) * 7.5 - 15 + (double)(k % 3) * 15 - 15);
}

static void wide(scratch *s, data *d) {
  draw(s, d, 6, 200, 150);
}

static void two_rows(scratch *s, data *d) {
  draw(s, d, 2, 5, 4);
}

static void long_and_thin(scratch *s, data *d) {
  draw(s, d, N_MOST, 2, 2);
}

static void one_column(scratch *s, data *d) {
  draw(s, d, 60, 1, 6);
}

static void heavy_tails(scratch *s, data *d) {
  uint64_t state = 5;
  draw(s, d, 60, 8, 6);
  for (int64_t k = 0; k < 60 * 8; k++)
    d->x[k] += (float)tan(3.141592653589793 * (support_uniform(&state) - 0.5));
  for (int64_t k = 0; k < 60 * 6; k++)
    d->y[k] += (float)tan(3.141592653589793 * (support_uniform(&state) - 0.5));
}

static void equal_rows(scratch *s, data *d) {
  draw(s, d, 60, 8, 6);
  for (int64_t i = 1; i < 60; i++) memcpy(d->y + i * 6, d->y, 6 * sizeof *d->y);
}

static void equal_rows_twice(scratch *s, data *d) {
  equal_rows(s, d);
  for (int64_t i = 1; i < 60; i++) memcpy(d->x + i * 8, d->x, 8 * sizeof *d->x);
}

/* x and y are rows of one Hadamard matrix, other columns: their covariance is exactly zero. */
static void nothing_to_align(scratch *s, data *d) {
  draw(s, d, 64, 4, 3);
  for (int64_t i = 0; i < 64; i++) {
    for (int64_t k = 0; k < 4; k++)
      d->x[i * 4 + k] = __builtin_popcountll((uint64_t)(i & (k + 1))) % 2 ? -1 : 1;
    for (int64_t k = 0; k < 3; k++)
      d->y[i * 3 + k] = __builtin_popcountll((uint64_t)(i & (k + 17))) % 2 ? -1 : 1;
  }
}

/* One x has 180 of 200 pairs. */
static void unbalanced(scratch *s, data *d) {
  int64_t x[200], y[200];
  draw(s, d, 200, 8, 6);
  d->n_x = 21;
  for (int64_t p = 0; p < 200; p++) {
    x[p] = p < 180 ? 0 : p - 179;
    y[p] = p;
  }
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, 21, 200, x, y, NULL, 200, &d->pairs));
}

static void one_sample_classes(scratch *s, data *d) {
  int64_t label[60];
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++) label[i] = i < 30 ? i : 1000;
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, 60, label, 60, &d->pairs));
}

/* Weights over 12 powers of ten, and zeros. */
static void extreme_weights(scratch *s, data *d) {
  int64_t row[60];
  double weight[60];
  draw(s, d, 60, 8, 6);
  for (int64_t i = 0; i < 60; i++) {
    row[i] = i;
    weight[i] = i % 7 == 0 ? 0 : pow(10, (double)(i % 13) - 6);
  }
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, 60, 60, row, row, weight, 60, &d->pairs));
}

/* One pair in all. */
static void one_pair(scratch *s, data *d) {
  static const int64_t zero = 0;
  draw(s, d, 60, 8, 6);
  CHECK_OK(s->ctx, unicon_pairs_list(s->ctx, 60, 60, &zero, &zero, NULL, 1, &d->pairs));
}

static const struct {
  const char *name;
  void (*make)(scratch *s, data *d);
  bool fits; /* there is something to align: the plain methods make a model */
} sets[] = {{"plain", plain, true},
            {"rank-deficient", rank_deficient, true},
            {"duplicated rows", duplicated_rows, true},
            {"duplicated columns", duplicated_columns, true},
            {"constant columns", constant_columns, true},
            {"huge constant column", huge_constant_column, false},
            {"1e30", huge, true},
            {"2e37", largest, true},
            {"1e-30", tiny, true},
            {"denormal", denormal, false},
            {"mixed sizes", mixed_sizes, false},
            {"d >> n", wide, true},
            {"two rows", two_rows, false},
            {"n >> d", long_and_thin, true},
            {"one column", one_column, false},
            {"heavy tails", heavy_tails, true},
            {"equal rows of y", equal_rows, false},
            {"equal rows", equal_rows_twice, false},
            {"nothing to align", nothing_to_align, false},
            {"unbalanced", unbalanced, true},
            {"one-sample classes", one_sample_classes, true},
            {"extreme weights", extreme_weights, true},
            {"one pair", one_pair, false}};

static const struct {
  const char *name;
  const char *option[9]; /* name, value, ...; NULL */
  bool plain;
} methods[] = {
    {"auto", {"preset", "auto"}, true},
    {"fast", {"preset", "fast"}, true},
    {"paper", {"preset", "paper"}, false},
    {"paper-synthetic", {"preset", "paper-synthetic"}, false},
    {"paper-printed", {"preset", "paper-printed"}, true},
    {"angular", {"preset", "fast", "kernel", "angular"}, true},
    {"iterations", {"preset", "fast", "iterations", "2", "damping", "safe"}, true},
    {"refine", {"preset", "fast", "refine", "1"}, true},
    {"cold iterations", {"iterations", "2", "temperature", "0.001"}, true},
    {"cold plain steps", {"damping", "plain", "iterations", "3", "temperature", "0.001"}, false},
    {"cold refine", {"preset", "fast", "refine", "1", "temperature", "0.001"}, true},
    {"ridge 0", {"preset", "fast", "ridge", "0"}, true},
    {"ridge 1e-12", {"preset", "fast", "ridge", "1e-12"}, true},
    {"angular, ridge 0", {"preset", "fast", "kernel", "angular", "ridge", "0"}, true},
    {"inverse metric", {"preset", "fast", "metric", "1", "ridge", "0"}, false},
    {"rbf", {"preset", "fast", "kernel", "rbf"}, true},
    {"random features",
     {"preset", "fast", "kernel", "arccos1", "map", "random", "features", "64"},
     false},
    {"siglip", {"loss", "siglip", "scale", "10000", "iterations", "2"}, false},
    {"raw", {"preset", "fast", "normalize", "off"}, false},
    {"raw rbf", {"normalize", "off", "preset", "fast", "kernel", "rbf"}, false},
};

enum { SETS = sizeof sets / sizeof *sets, METHODS = sizeof methods / sizeof *methods };

/* ---- one fit ------------------------------------------------------------------------------ */

typedef struct result {
  unicon_status status;
  char error[256];
  int64_t rank;
  double *cosines;  /* n_x by n_y */
  char chosen[160]; /* by preset auto, and its held-out score */
  double score;
} result;

static int bad_numbers(const float *value, int64_t count) {
  int bad = 0;
  for (int64_t k = 0; k < count; k++) bad += !isfinite(value[k]);
  return bad;
}

/* "nan" or "inf" as a number of its own in the metadata. */
static const char *bad_meta(const unicon_model *model) {
  const char *key, *value;
  for (size_t k = 0; unicon_model_meta_at(model, k, &key, &value); k++) {
    if (strncmp(key, "option.", 7) == 0) continue;
    const char *at = strstr(value, "nan");
    if (!at) at = strstr(value, "inf");
    if (at && (at == value || strchr(" -,", at[-1]))) return key;
  }
  return NULL;
}

/* Embeds both sides; returns how many values are not finite. */
static int embed_both(scratch *s, const data *d, const unicon_rows *x, const unicon_rows *y,
                      const unicon_model *model, result *out) {
  const int64_t r = unicon_model_rank(model);
  float *u = support_floats(d->n_x * r), *v = support_floats(d->n_y * r);
  CHECK_OK(s->ctx, unicon_embed(s->ctx, &(unicon_view){.rows = x, .model = model, .side = UNICON_X},
                                0, d->n_x, 1, u));
  CHECK_OK(s->ctx, unicon_embed(s->ctx, &(unicon_view){.rows = y, .model = model, .side = UNICON_Y},
                                0, d->n_y, 1, v));
  out->rank = r;
  out->cosines = support_doubles(d->n_x * d->n_y);
  for (int64_t i = 0; i < d->n_x; i++)
    for (int64_t j = 0; j < d->n_y; j++)
      for (int64_t k = 0; k < r; k++)
        out->cosines[i * d->n_y + j] += (double)u[i * r + k] * (double)v[j * r + k];
  const int bad = bad_numbers(u, d->n_x * r) + bad_numbers(v, d->n_y * r);
  free(u);
  free(v);
  return bad;
}

static void note_choice(const unicon_model *model, result *out) {
  const char *chosen = unicon_model_meta(model, "auto_chosen");
  const char *score = unicon_model_meta(model, "auto_score");
  snprintf(out->chosen, sizeof out->chosen, "%s", chosen ? chosen : "");
  out->score = score ? strtod(score, NULL) : 0;
}

/* Fits and looks at the model; returns the number of broken promises. */
static int fit(scratch *s, const data *d, const char *what, const unicon_options *options,
               result *out) {
  unicon_rows *x = support_rows(s->ctx, "x", d->x, d->n_x, d->d_x);
  unicon_rows *y = support_rows(s->ctx, "y", d->y, d->n_y, d->d_y);
  unicon_model *model = NULL;
  int broken = 0;
  *out = (result){.rank = 0};
  out->status = unicon_fit(s->ctx, &(unicon_data){x, y, d->pairs, NULL}, NULL, options, &model);
  snprintf(out->error, sizeof out->error, "%s", unicon_ctx_error(s->ctx));
  if (out->status == UNICON_OK) {
    const int spectrum = bad_numbers(unicon_model_spectrum(model), unicon_model_rank(model));
    const int embedded = embed_both(s, d, x, y, model, out);
    const char *meta = bad_meta(model);
    note_choice(model, out);
    if (spectrum || embedded || meta) {
      print_error("%s: not finite: %d singular values, %d embedded values, metadata %s\n", what,
                  spectrum, embedded, meta ? meta : "fine");
      broken++;
    }
  } else if (!out->error[0] || model ||
             (out->status != UNICON_ERR_DATA && out->status != UNICON_ERR_NUMERIC)) {
    print_error("%s: %s, '%s'\n", what, unicon_status_name(out->status), out->error);
    broken++;
  }
  unicon_model_destroy(model);
  unicon_rows_close(x);
  unicon_rows_close(y);
  return broken;
}

static int compare(const data *d, const char *what, int threads, const result *one,
                   const result *many) {
  if (strcmp(one->chosen, many->chosen) != 0 && fabs(one->score - many->score) <= 0.01) return 0;
  if (one->status != many->status || strcmp(one->error, many->error) != 0 ||
      one->rank != many->rank) {
    print_error("%s: %s, rank %lld on 1 thread, but %s, rank %lld on %d: '%s' and '%s'\n", what,
                unicon_status_name(one->status), (long long)one->rank,
                unicon_status_name(many->status), (long long)many->rank, threads, one->error,
                many->error);
    return 1;
  }
  if (one->status != UNICON_OK) return 0;
  const double off = support_distance(one->cosines, many->cosines, d->n_x * d->n_y);
  /* Without a ridge the weights of a kernel model reach 1e5 in float32, so its cosines are good to
   * a tenth at best, on any number of threads. */
  const bool noisy = strstr(what, "angular") && strstr(what, "ridge 0");
  if (off <= (noisy ? 0.2 : 1e-3)) return 0;
  print_error("%s: cosines on %d threads differ by %g\n", what, threads, off);
  return 1;
}

static int check_case(scratch *s, const data *d, int set, int method) {
  char what[128];
  const char *const *o = methods[method].option;
  result got[THREADS];
  int broken = 0;
  snprintf(what, sizeof what, "%s, %s", sets[set].name, methods[method].name);
  unicon_options *options =
      support_options(s->ctx, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], NULL);
  for (int t = 0; t < THREADS; t++) {
    got[t] = (result){0};
    if (t == 3 && threads_of(t) <= 3) continue;
    unicon__ctx_set_threads(s->ctx, threads_of(t));
    broken += fit(s, d, what, options, &got[t]);
    if (t) broken += compare(d, what, threads_of(t), &got[0], &got[t]);
  }
  if (sets[set].fits && methods[method].plain && got[0].status != UNICON_OK) {
    print_error("%s: should fit, but: %s\n", what, got[0].error);
    broken++;
  }
  for (int t = 0; t < THREADS; t++) free(got[t].cosines);
  unicon_options_destroy(options);
  return broken;
}

static void hard_data_sets(void **state) {
  scratch *s = *state;
  int broken = 0, cases = 0;
  s->ctx->tile_x = 16; /* many tiles, so that there is something to share out */
  s->ctx->tile_y = 16;
  for (int set = 0; set < (int)SETS; set++) {
    data d;
    sets[set].make(s, &d);
    for (int method = 0; method < (int)METHODS; method++, cases++) {
      const int slow = d.n_x >= N_MOST && strstr(methods[method].name, "angular") != NULL;
      if (!slow) broken += check_case(s, &d, set, method) > 0;
    }
    free(d.x);
    free(d.y);
    unicon_pairs_destroy(d.pairs);
  }
  if (broken) print_error("%d of %d cases\n", broken, cases);
  assert_int_equal(broken, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(hard_data_sets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
