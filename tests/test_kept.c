/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that are kept, as a user has them: parts in any split and order, added, merged, taken
 * away, saved and read; what a fit makes of them; what is refused (unicon/stats.h).
 *
 * Tolerances. Sums are float64 sums of the same float64 products in another order: n roundings of
 * 2^-53 each at most, relative to the sum of their sizes, and far fewer as they cancel; cosines of
 * two models whose sums differ by that much differ by 1e-6 at most, the rounding of the float32
 * weights. A fit on the rows uses float32 products (1e-6 of the covariances), so its cosines are
 * compared with 1e-4. */
#include "unicon/stats.h"

#include <stdlib.h>
#include <string.h>

#include "kept_check.h"
#include "linalg/convert.h"

enum { N = 700, DX = 24, DY = 18, TESTS = 60 };

/* Rows [from, to) of a problem, with 1, 2 or 3 rows of y for each row of x (or one). */
typedef struct shard {
  unicon_rows *x, *y;
  unicon_pairs *pairs;
  unicon_data data;
} shard;

typedef struct world {
  float *x, *y;     /* N by DX; 3 N by DY */
  int64_t *first_y; /* N + 1: the rows of y of a row of x */
} world;

static void world_make(bool many, world *w) {
  w->first_y = calloc(N + 1, sizeof *w->first_y);
  for (int64_t i = 0; i < N; i++) w->first_y[i + 1] = w->first_y[i] + (many ? 1 + i % 3 : 1);
  w->x = support_normals(11, N * DX);
  w->y = support_normals(12, w->first_y[N] * DY);
  float *z = support_normals(13, N * 6), *a = support_normals(14, 6 * DX);
  float *b = support_normals(15, 6 * DY);
  for (int64_t i = 0; i < N; i++)
    for (int l = 0; l < 6; l++) {
      for (int k = 0; k < DX; k++) w->x[i * DX + k] += z[i * 6 + l] * a[l * DX + k] + 0.1f;
      for (int64_t j = w->first_y[i]; j < w->first_y[i + 1]; j++)
        for (int k = 0; k < DY; k++) w->y[j * DY + k] += z[i * 6 + l] * b[l * DY + k] - 0.05f;
    }
  free(z);
  free(a);
  free(b);
}

static void world_free(world *w) {
  free(w->x);
  free(w->y);
  free(w->first_y);
}

static void shard_open(unicon_ctx *ctx, const world *w, int64_t from, int64_t to, shard *out) {
  const int64_t y0 = w->first_y[from], n_x = to - from, n_y = w->first_y[to] - y0;
  int64_t *i = calloc((size_t)n_y, sizeof *i), *j = calloc((size_t)n_y, sizeof *j);
  for (int64_t a = 0, p = 0; a < n_x; a++)
    for (int64_t b = w->first_y[from + a]; b < w->first_y[from + a + 1]; b++, p++) {
      i[p] = a;
      j[p] = b - y0;
    }
  out->x = support_rows(ctx, "x", w->x + from * DX, n_x, DX);
  out->y = support_rows(ctx, "y", w->y + y0 * DY, n_y, DY);
  CHECK_OK(ctx, unicon_pairs_list(ctx, n_x, n_y, i, j, NULL, n_y, &out->pairs));
  out->data = UNICON_DATA(.x = out->x, .y = out->y, .pairs = out->pairs);
  free(i);
  free(j);
}

static void shard_close(shard *s) {
  unicon_pairs_destroy(s->pairs);
  unicon_rows_close(s->x);
  unicon_rows_close(s->y);
}

static unicon_options *options_of(unicon_ctx *ctx, const char *kernel, const char *name,
                                  const char *value) {
  unicon_options *options = NULL;
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "kernel", kernel));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "landmarks", "120"));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "sample_rows", "400"));
  if (name) CHECK_OK(ctx, unicon_options_set(ctx, options, name, value));
  return options;
}

/* Statistics of rows [from, to), with the maps of `like` or of all rows. */
static unicon_stats *stats_of(unicon_ctx *ctx, const world *w, int64_t from, int64_t to,
                              const unicon_stats *like, const unicon_options *options) {
  unicon_stats *out = NULL;
  shard all, part = {NULL, NULL, NULL, UNICON_DATA()};
  shard_open(ctx, w, 0, N, &all);
  if (to > from) shard_open(ctx, w, from, to, &part);
  if (like)
    CHECK_OK(ctx, unicon_stats_create_like(ctx, like, &out));
  else
    CHECK_OK(ctx, unicon_stats_create(ctx, &all.data, options, &out));
  if (to > from) CHECK_OK(ctx, unicon_stats_add(ctx, out, &part.data, NULL));
  if (to > from) shard_close(&part);
  shard_close(&all);
  return out;
}

/* Largest difference of sums of b from those of a, relative to the traces. */
static double distance(const unicon_stats *a, const unicon_stats *b) {
  double worst = kept_sides_distance(a, b);
  const double scale = sqrt(kept_trace(a, 0) * kept_trace(a, 1));
  for (int d = 0; d < 2; d++) {
    const double far =
        support_distance(a->sums.way[d].cross, b->sums.way[d].cross, a->sums.p[0] * a->sums.p[1]);
    worst = fmax(worst, far / scale);
    worst = fmax(worst, fabs(a->sums.way[d].weight - b->sums.way[d].weight) / (double)N);
  }
  return worst;
}

static double cosine_distance(unicon_ctx *ctx, const world *w, const unicon_model *a,
                              const unicon_model *b) {
  shard test;
  shard_open(ctx, w, 0, TESTS, &test);
  const double far = kept_cosine_distance(ctx, test.x, test.y, a, b);
  shard_close(&test);
  return far;
}

static const char *const kernels[] = {"linear", "rbf"};
/* Features of kernels come from float32 products, whose last bits depend on the place in a tile;
 * the factor makes up to 1e3 of 1e-7 of that in the last of them. */
static const double sums_near[] = {1e-13, 1e-5};

static void parts_in_any_order_are_the_whole(void **state) {
  static const int64_t cut[] = {0, 10, 333, 334, 600, N};
  static const int order[] = {3, 0, 4, 2, 1};
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int many = 0; many < 2; many++)
    for (int k = 0; k < 2; k++) {
      world w;
      world_make(many, &w);
      unicon_options *options = options_of(ctx, kernels[k], NULL, NULL);
      unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
      unicon_stats *sum = stats_of(ctx, &w, 0, 0, all, options);
      for (int o = 0; o < 5; o++) {
        unicon_stats *part = stats_of(ctx, &w, cut[order[o]], cut[order[o] + 1], all, options);
        CHECK_OK(ctx, unicon_stats_merge(ctx, sum, part));
        unicon_stats_destroy(part);
      }
      CHECK_CLOSE(distance(all, sum), 0, sums_near[k]);
      kept_same_sample(all, sum);
      assert_true(all->sample.rows[0] + all->sample.rows[1] <= 400);
      assert_true(all->sample.rows[0] + all->sample.rows[1] > 390);
      unicon_model *a = kept_fit(ctx, all, "fast"), *b = kept_fit(ctx, sum, "fast");
      CHECK_CLOSE(cosine_distance(ctx, &w, a, b), 0, k == 0 ? 1e-6 : 2e-4);
      unicon_model_destroy(a);
      unicon_model_destroy(b);
      unicon_stats_destroy(sum);
      unicon_stats_destroy(all);
      unicon_options_destroy(options);
      world_free(&w);
    }
}

/* Added and taken away is never having been there: sums within the bound that the certificate
 * states, cosines 1e-6, the same sample. */
static void removed_rows_were_never_there(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int many = 0; many < 2; many++)
    for (int ledger = 0; ledger < 2; ledger++) {
      world w;
      world_make(many, &w);
      unicon_options *options =
          options_of(ctx, "linear", ledger ? "ledger" : "normalize", ledger ? "on" : "off");
      CHECK_OK(ctx, unicon_options_set(ctx, options, "sample_rows", "1000000"));
      unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
      unicon_stats *never = stats_of(ctx, &w, 200, N, all, options);
      unicon_stats *other = stats_of(ctx, &w, 0, 200, all, options);
      unicon_result *certificate = NULL;
      shard gone;
      double value, bound;
      shard_open(ctx, &w, 0, 200, &gone);
      CHECK_OK(ctx, unicon_stats_remove(ctx, all, &gone.data, NULL, &certificate));
      assert_int_equal(unicon_result_number(certificate, "trace.bound", &bound), 0);
      assert_true(bound > 0 && bound < 1e-10);
      assert_true(distance(never, all) <= bound);
      assert_int_equal(unicon_result_number(certificate, "removed.rows_x", &value), 0);
      CHECK_CLOSE(value, 200, 0);
      assert_int_equal(unicon_result_number(certificate, "left.rows_x", &value), 0);
      CHECK_CLOSE(value, N - 200, 0);
      assert_int_equal(unicon_result_number(certificate, "sample.removed", &value), 0);
      CHECK_CLOSE(value, 200 + w.first_y[200], 0);
      assert_string_equal(unicon_result_text(certificate, "checked_by"),
                          ledger ? "ledger" : "sample of every row");
      kept_same_sample(never, all);
      unicon_model *a = kept_fit(ctx, all, "auto"), *b = kept_fit(ctx, never, "auto");
      CHECK_CLOSE(cosine_distance(ctx, &w, a, b), 0, 1e-6);
      unicon_model_destroy(a);
      unicon_model_destroy(b);
      /* and with the difference of statistics */
      CHECK_OK(ctx, unicon_stats_add(ctx, all, &gone.data, NULL));
      CHECK_OK(ctx, unicon_stats_subtract(ctx, all, other, NULL));
      assert_true(distance(never, all) <= 2 * bound);
      kept_same_sample(never, all);
      unicon_result_destroy(certificate);
      unicon_stats_destroy(other);
      unicon_stats_destroy(never);
      unicon_stats_destroy(all);
      unicon_options_destroy(options);
      shard_close(&gone);
      world_free(&w);
    }
}

/* Taking everything away leaves exactly nothing. */
static void all_removed_is_empty(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  shard all_rows;
  unicon_model *model = NULL;
  world_make(true, &w);
  unicon_options *options = options_of(ctx, "linear", "ledger", "on");
  unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
  shard_open(ctx, &w, 0, N, &all_rows);
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &all_rows.data, NULL, NULL));
  assert_true(all->sums.rows[0] == 0 && all->sums.square[1][3] == 0 && all->pairs == 0);
  assert_int_equal(all->ledger.count[0] + all->ledger.count[1] + all->sample.units, 0);
  scratch_failed(*state, unicon_stats_fit(ctx, all, NULL, NULL, &model), UNICON_ERR_DATA,
                 "the statistics has 0 rows", "at least 2");
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  shard_close(&all_rows);
  world_free(&w);
}

/* What was never added: the ledger knows, also of other partners; else counts and covariances. */
static void strangers_are_noticed(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  shard strange, twice;
  world_make(true, &w);
  for (int ledger = 0; ledger < 2; ledger++) {
    unicon_options *options = options_of(ctx, "linear", ledger ? "ledger" : NULL, "on");
    CHECK_OK(ctx, unicon_options_set(ctx, options, "normalize", "off"));
    unicon_stats *all = stats_of(ctx, &w, 100, N, NULL, options), *before;
    before = stats_of(ctx, &w, 100, N, all, options);
    shard_open(ctx, &w, 90, 110, &strange);
    if (ledger) {
      scratch_failed(s, unicon_stats_remove(ctx, all, &strange.data, NULL, NULL), UNICON_ERR_DATA,
                     "10 of the 20 rows of x", "never added");
      /* the same rows, but a pair less */
      int64_t i[] = {0, 0}, j[] = {0, 1};
      unicon_pairs_destroy(strange.pairs);
      unicon_rows_close(strange.x);
      unicon_rows_close(strange.y);
      strange.x = support_rows(ctx, "x", w.x + 101 * DX, 1, DX);
      strange.y = support_rows(ctx, "y", w.y + w.first_y[101] * DY, 2, DY);
      CHECK_OK(ctx, unicon_pairs_list(ctx, 1, 2, i, j, NULL, 2, &strange.pairs));
      strange.data = UNICON_DATA(.x = strange.x, .y = strange.y, .pairs = strange.pairs);
      scratch_failed(s, unicon_stats_remove(ctx, all, &strange.data, NULL, NULL), UNICON_ERR_DATA,
                     "1 of the 1 rows of x", "not with these partners");
      /* as many, the last one the same */
      int64_t i3[] = {0, 0, 0}, j3[] = {0, 1, 2};
      const int64_t y0 = w.first_y[101];
      assert_int_equal(w.first_y[102] - y0, 3);
      float *other = support_floats(3 * DY);
      memcpy(other, w.y + y0 * DY, 3 * DY * sizeof *other);
      other[4] += 1;
      unicon_pairs_destroy(strange.pairs);
      unicon_rows_close(strange.y);
      strange.y = support_rows(ctx, "y", other, 3, DY);
      CHECK_OK(ctx, unicon_pairs_list(ctx, 1, 3, i3, j3, NULL, 3, &strange.pairs));
      strange.data = UNICON_DATA(.x = strange.x, .y = strange.y, .pairs = strange.pairs);
      scratch_failed(s, unicon_stats_remove(ctx, all, &strange.data, NULL, NULL), UNICON_ERR_DATA,
                     "1 of the 1 rows of x", "not with these partners");
      free(other);
    } else {
      for (int64_t k = 0; k < 20 * DX; k++) w.x[90 * DX + k] *= 40;
      scratch_failed(s, unicon_stats_remove(ctx, all, &strange.data, NULL, NULL), UNICON_ERR_DATA,
                     "never added", "negative eigenvalue");
      for (int64_t k = 0; k < 20 * DX; k++) w.x[90 * DX + k] /= 40;
    }
    assert_true(distance(before, all) == 0);
    kept_same_sample(before, all);
    shard_open(ctx, &w, 0, N, &twice);
    scratch_failed(s, unicon_stats_remove(ctx, all, &twice.data, NULL, NULL), UNICON_ERR_DATA,
                   "cannot be removed", "has 600");
    shard_close(&twice);
    shard_close(&strange);
    unicon_stats_destroy(before);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
  }
  world_free(&w);
}

/* A fit from statistics is the fit of the rows, to the rounding of float32 products. */
static void a_fit_is_that_of_the_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const metric[] = {"whiten", "none", "0.25"};
  for (int many = 0; many < 2; many++) {
    world w;
    shard all_rows;
    world_make(many, &w);
    shard_open(ctx, &w, 0, N, &all_rows);
    unicon_options *options = options_of(ctx, "linear", NULL, NULL);
    unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
    for (int k = 0; k < 6; k++) {
      unicon_options *how =
          support_options(ctx, "metric", metric[k % 3], "center", k < 3 ? "on" : "off", NULL);
      unicon_model *rows = NULL, *sums = NULL;
      CHECK_OK(ctx, unicon_fit(ctx, &all_rows.data, NULL, how, &rows));
      CHECK_OK(ctx, unicon_stats_fit(ctx, all, NULL, how, &sums));
      CHECK_CLOSE(cosine_distance(ctx, &w, rows, sums), 0, 1e-4);
      assert_string_equal(unicon_model_meta(sums, "n_x"), unicon_model_meta(rows, "n_x"));
      assert_string_equal(unicon_model_meta(sums, "pairs"), unicon_model_meta(rows, "pairs"));
      unicon_model_destroy(rows);
      unicon_model_destroy(sums);
      unicon_options_destroy(how);
    }
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
    shard_close(&all_rows);
    world_free(&w);
  }
}

/* With kernels: the landmarks of a fit on the rows, by way of its model. */
static void maps_of_a_model(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  shard all_rows;
  unicon_model *rows = NULL, *sums = NULL;
  unicon_stats *all = NULL;
  world_make(true, &w);
  shard_open(ctx, &w, 0, N, &all_rows);
  unicon_options *how = support_options(ctx, "kernel", "rbf", "landmarks", "90", "map", "nystrom",
                                        "rank", "20", NULL);
  CHECK_OK(ctx, unicon_fit(ctx, &all_rows.data, NULL, how, &rows));
  CHECK_OK(ctx, unicon_stats_create_from_model(ctx, rows, NULL, &all));
  assert_int_equal(all->map[0].points, 90);
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &all_rows.data, NULL));
  CHECK_OK(ctx, unicon_stats_fit(ctx, all, NULL, how, &sums));
  /* another order of pivots is another basis of the same features, rounded otherwise */
  CHECK_CLOSE(cosine_distance(ctx, &w, rows, sums), 0, 2e-3);
  unicon_model_destroy(rows);
  unicon_model_destroy(sums);
  unicon_stats_destroy(all);
  unicon_options_destroy(how);
  shard_close(&all_rows);
  world_free(&w);
}

/* A landmark among the rows is refused; without it the features are those of a fit on the others. */
static void landmarks_are_not_forgotten(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  shard gone;
  unicon_options *on = NULL;
  unicon_result *certificate = NULL;
  double dropped;
  world_make(true, &w);
  unicon_options *options = options_of(ctx, "rbf", NULL, NULL);
  unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
  unicon_stats *never = stats_of(ctx, &w, 100, N, all, options);
  shard_open(ctx, &w, 0, 100, &gone);
  scratch_failed(s, unicon_stats_remove(ctx, all, &gone.data, NULL, &certificate), UNICON_ERR_DATA,
                 "of the rows are landmarks", "drop_landmarks");
  assert_null(certificate);
  CHECK_OK(ctx, unicon_options_create(ctx, &on));
  CHECK_OK(ctx, unicon_options_set(ctx, on, "drop_landmarks", "on"));
  const int64_t before = all->map[0].points + all->map[1].points;
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &gone.data, on, &certificate));
  assert_int_equal(unicon_result_number(certificate, "landmarks.dropped", &dropped), 0);
  assert_true(dropped > 10 && dropped < 100);
  CHECK_CLOSE(before - all->map[0].points - all->map[1].points, dropped, 0);
  /* the rows that are left, through the maps that are left: the same sums */
  unicon_stats *direct = stats_of(ctx, &w, 100, N, all, options);
  for (int side = 0; side < 2; side++) {
    const int64_t p = all->sums.p[side];
    double trace = 0;
    for (int64_t k = 0; k < p; k++) trace += direct->sums.square[side][k];
    CHECK_CLOSE(support_distance(all->sums.gram[side], direct->sums.gram[side], p * p) / trace, 0,
                3e-5);
  }
  CHECK_CLOSE(distance(direct, all), 0, 3e-5);
  unicon_result_destroy(certificate);
  unicon_stats_destroy(direct);
  unicon_stats_destroy(never);
  unicon_stats_destroy(all);
  unicon_options_destroy(on);
  unicon_options_destroy(options);
  shard_close(&gone);
  world_free(&w);
}

/* Older rows count less: as if they had been added with that weight, and then nothing can go. */
static void decay_is_a_weight(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  shard part;
  world_make(false, &w);
  unicon_options *options = options_of(ctx, "linear", "ledger", "on");
  unicon_stats *all = stats_of(ctx, &w, 0, 300, NULL, options);
  unicon_stats *old = stats_of(ctx, &w, 0, 300, all, options);
  unicon_stats *new_rows = stats_of(ctx, &w, 300, N, all, options);
  shard_open(ctx, &w, 300, N, &part);
  scratch_failed(s, unicon_stats_decay(ctx, all, 1.5), UNICON_ERR_ARGUMENT, "1.5", "at most 1");
  CHECK_OK(ctx, unicon_stats_decay(ctx, all, 0.5));
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &part.data, NULL));
  for (int64_t k = 0; k < DX * DX; k++)
    CHECK_CLOSE(all->sums.gram[0][k], 0.5 * old->sums.gram[0][k] + new_rows->sums.gram[0][k],
                1e-12);
  CHECK_CLOSE(all->sums.rows[0], 550, 1e-12);
  assert_false(all->ledger.on);
  scratch_failed(s, unicon_stats_remove(ctx, all, &part.data, NULL, NULL), UNICON_ERR_UNSUPPORTED,
                 "decayed", "none can be removed");
  scratch_failed(s, unicon_stats_subtract(ctx, new_rows, all, NULL), UNICON_ERR_UNSUPPORTED,
                 "decayed", "none can be removed");
  unicon_model *model = kept_fit(ctx, all, "auto");
  assert_string_equal(unicon_model_meta(model, "n_x"), "550");
  unicon_model_destroy(model);
  shard_close(&part);
  unicon_stats_destroy(new_rows);
  unicon_stats_destroy(old);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  world_free(&w);
}

/* Files and bytes are the statistics again; every cut and every changed entry is refused. */
static void files_come_back(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  world_make(true, &w);
  for (int k = 0; k < 2; k++) {
    unicon_options *options = options_of(ctx, kernels[k], "ledger", "on");
    unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options), *read = NULL, *cut = NULL;
    const char *path = scratch_path(s, "all.stats"), *again = scratch_path(s, "again.stats");
    size_t size, other;
    CHECK_OK(ctx, unicon_stats_save(ctx, all, path));
    CHECK_OK(ctx, unicon_stats_load(ctx, path, &read));
    assert_true(distance(all, read) == 0);
    kept_same_sample(all, read);
    assert_int_equal(unicon__kept_hash(all), unicon__kept_hash(read));
    CHECK_OK(ctx, unicon_stats_save(ctx, read, again));
    unsigned char *bytes = support_slurp(path, &size), *same = support_slurp(again, &other);
    assert_int_equal(size, other);
    assert_memory_equal(bytes, same, size);
    unsigned char *own = malloc(size + 3);
    CHECK_OK(ctx, unicon_stats_to_bytes(ctx, all, NULL, 0, &other));
    assert_int_equal(size, other);
    assert_int_equal(unicon_stats_to_bytes(ctx, all, own, size - 1, &other), UNICON_ERR_ARGUMENT);
    CHECK_OK(ctx, unicon_stats_to_bytes(ctx, all, own, size, &other));
    assert_memory_equal(bytes, own, size);
    memmove(own + 3, own, size); /* any address will do */
    CHECK_OK(ctx, unicon_stats_from_bytes(ctx, own + 3, size, &cut));
    assert_true(distance(all, cut) == 0);
    unicon_stats_destroy(cut);
    free(own);
    assert_int_equal(unicon_stats_from_bytes(ctx, bytes, size - 8, &cut), UNICON_ERR_FORMAT);
    assert_int_equal(unicon_stats_from_bytes(ctx, bytes, 40, &cut), UNICON_ERR_FORMAT);
    for (size_t at = 0; at < 2000; at += 37) { /* the header: refused, or read as what it says */
      bytes[at] ^= 4;
      const unicon_status status = unicon_stats_from_bytes(ctx, bytes, size, &cut);
      assert_true(status == UNICON_OK || status == UNICON_ERR_FORMAT);
      assert_true((status == UNICON_OK) == (cut != NULL));
      if (status != UNICON_OK) assert_true(strlen(unicon_ctx_error(ctx)) > 0);
      unicon_stats_destroy(cut);
      bytes[at] ^= 4;
    }
    CHECK_OK(ctx, unicon_stats_create_like(ctx, read, &cut));
    CHECK_OK(ctx, unicon_stats_merge(ctx, cut, read));
    assert_true(distance(all, cut) == 0);
    unicon_stats_destroy(cut);
    unicon_stats_destroy(read);
    unicon_stats_destroy(all);
    unicon_options_destroy(options);
    free(bytes);
    free(same);
  }
  world_free(&w);
}

/* Parts of other maps, rows that cannot be used, pairs that are no sums: a sentence, no change. */
static void what_does_not_fit_is_refused(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  static const char *const other[][3] = {
      {"normalize", "off", "normalize"}, {"unpaired", "on", "unpaired"},
      {"kernel", "cosine", "kernel"},    {"map", "random", "kernel"},
      {"width", "3", "width"},           {"landmarks", "50", "features"},
      {"seed", "4", "landmarks"}};
  world w;
  shard part;
  world_make(false, &w);
  unicon_options *options = options_of(ctx, "rbf", "width", "2");
  unicon_stats *all = stats_of(ctx, &w, 0, 300, NULL, options);
  unicon_stats *before = stats_of(ctx, &w, 0, 300, all, options);
  for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
    unicon_options *changed = options_of(ctx, "rbf", "width", "2");
    CHECK_OK(ctx, unicon_options_set(ctx, changed, other[k][0], other[k][1]));
    unicon_stats *b = stats_of(ctx, &w, 300, N, NULL, changed);
    scratch_failed(s, unicon_stats_merge(ctx, all, b), UNICON_ERR_SHAPE, other[k][2],
                   "sums need the same maps");
    unicon_stats_destroy(b);
    unicon_options_destroy(changed);
  }
  shard_open(ctx, &w, 300, N, &part);
  w.x[500 * DX + 3] = NAN;
  scratch_failed(s, unicon_stats_add(ctx, all, &part.data, NULL), UNICON_ERR_DATA, "row 200",
                 "column 3");
  shard_close(&part);
  const int64_t label[] = {0, 1, 0, 1};
  unicon_rows *x = support_rows(ctx, "x", w.x, 4, DX), *y = support_rows(ctx, "y", w.y, 4, DY);
  unicon_pairs *labels = NULL;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, 4, label, 4, &labels));
  const unicon_data data = UNICON_DATA(.x = x, .y = y, .pairs = labels);
  scratch_failed(s, unicon_stats_add(ctx, all, &data, NULL), UNICON_ERR_SHAPE, "class labels",
                 "made with pairs");
  unicon_pairs *ignoring = NULL;
  const int64_t zero = 0, one = 1;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, 4, 4, &ignoring));
  CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, ignoring, &zero, &one, NULL, 1));
  const unicon_data lists = UNICON_DATA(.x = x, .y = y, .pairs = ignoring);
  scratch_failed(s, unicon_stats_add(ctx, all, &lists, NULL), UNICON_ERR_UNSUPPORTED, "ignored",
                 "depend on all rows");
  unicon_pairs_destroy(ignoring);
  const unicon_data turned = UNICON_DATA(.x = y, .y = x);
  scratch_failed(s, unicon_stats_add(ctx, all, &turned, NULL), UNICON_ERR_SHAPE, "18 values",
                 "rows of 24");
  unicon_options *dropping = options_of(ctx, "rbf", "bad_rows", "drop");
  for (int64_t k = 0; k < 4; k++) w.x[k * DX] = k % 2 ? NAN : w.x[k * DX];
  for (int64_t k = 0; k < 4; k++) w.y[k * DY] = k % 2 ? w.y[k * DY] : NAN;
  const unicon_data broken = UNICON_DATA(.x = x, .y = y);
  scratch_failed(s, unicon_stats_add(ctx, all, &broken, dropping), UNICON_ERR_DATA, "no pair",
                 "could be summed");
  unicon_options_destroy(dropping);
  assert_true(distance(before, all) == 0);
  kept_same_sample(before, all);
  unicon_pairs_destroy(labels);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_stats_destroy(before);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  world_free(&w);
}

/* Random features, one encoder for both sides, another processor. */
static void other_maps_and_machines(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  shard part;
  unicon_stats *read = NULL;
  unicon_result *certificate = NULL;
  double near, far;
  world_make(false, &w);
  shard_open(ctx, &w, 0, 100, &part);
  unicon_options *options = options_of(ctx, "rbf", "map", "random");
  CHECK_OK(ctx, unicon_options_set(ctx, options, "features", "40"));
  unicon_stats *all = stats_of(ctx, &w, 0, N, NULL, options);
  CHECK_OK(ctx, unicon_stats_save(ctx, all, scratch_path(s, "random.stats")));
  CHECK_OK(ctx, unicon_stats_load(ctx, scratch_path(s, "random.stats"), &read));
  CHECK_OK(ctx, unicon_stats_add(ctx, read, &part.data, NULL));
  CHECK_OK(ctx, unicon_stats_remove(ctx, read, &part.data, NULL, NULL));
  CHECK_CLOSE(distance(all, read), 0, 1e-6);
  unicon_stats_destroy(read);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);

  options = options_of(ctx, "linear", NULL, NULL);
  all = stats_of(ctx, &w, 0, N, NULL, options);
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &part.data, NULL, &certificate));
  assert_int_equal(unicon_result_number(certificate, "trace.bound", &near), 0);
  unicon_result_destroy(certificate);
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &part.data, NULL));
  snprintf(all->vectors, sizeof all->vectors, "another");
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &part.data, NULL, &certificate));
  assert_int_equal(unicon_result_number(certificate, "trace.bound", &far), 0);
  assert_true(far > 1e-8 && far < 1e-6 && near < 1e-11);
  assert_string_equal(all->vectors, "mixed");
  unicon_result_destroy(certificate);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  shard_close(&part);
  world_free(&w);
}

/* One encoder for both sides, as a fit on the rows has it. */
static void one_encoder(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  unicon_stats *all = NULL;
  unicon_model *rows = NULL, *sums = NULL;
  world_make(false, &w);
  unicon_rows *x = support_rows(ctx, "x", w.x, N - 1, DX);
  unicon_rows *y = support_rows(ctx, "y", w.x + DX, N - 1, DX);
  const unicon_data data = UNICON_DATA(.x = x, .y = y);
  unicon_options *how = support_options(ctx, "shared_encoder", "on", "rank", "5", NULL);
  CHECK_OK(ctx, unicon_stats_create(ctx, &data, NULL, &all));
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &data, NULL));
  CHECK_OK(ctx, unicon_fit(ctx, &data, NULL, how, &rows));
  CHECK_OK(ctx, unicon_stats_fit(ctx, all, NULL, how, &sums));
  double *a = support_cosines(ctx, rows, x, y), *b = support_cosines(ctx, sums, x, y);
  CHECK_CLOSE(support_distance(a, b, (N - 1) * (N - 1)), 0, 1e-4);
  free(a), free(b);
  unicon_model_destroy(rows);
  unicon_model_destroy(sums);
  unicon_stats_destroy(all);
  unicon_options_destroy(how);
  unicon_rows_close(x);
  unicon_rows_close(y);
  world_free(&w);
}

/* ---- other pairs -------------------------------------------------------------------------- */

/* Statistics of a list of pairs between the first rows of the world. */
static unicon_stats *listed(unicon_ctx *ctx, const world *w, int64_t n_x, int64_t n_y,
                            const int64_t *i, const int64_t *j, const double *weight, int64_t count,
                            const unicon_options *options) {
  shard s;
  unicon_stats *out = NULL;
  s.x = support_rows(ctx, "x", w->x, n_x, DX);
  s.y = support_rows(ctx, "y", w->y, n_y, DY);
  CHECK_OK(ctx, unicon_pairs_list(ctx, n_x, n_y, i, j, weight, count, &s.pairs));
  s.data = UNICON_DATA(.x = s.x, .y = s.y, .pairs = s.pairs);
  CHECK_OK(ctx, unicon_stats_create(ctx, &s.data, options, &out));
  CHECK_OK(ctx, unicon_stats_add(ctx, out, &s.data, options));
  shard_close(&s);
  return out;
}

/* Pairs that connect all rows: units are single pairs, with weights; the order of the pairs does not
 * matter, and nothing can be held out. */
static void connected_rows_are_sampled_by_pairs(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 200, PAIRS = 2 * ROWS - 1 };
  int64_t i[PAIRS], j[PAIRS], back_i[PAIRS], back_j[PAIRS];
  double weight[PAIRS], back_weight[PAIRS];
  world w;
  log_book book = {{0}, {""}};
  world_make(false, &w);
  for (int64_t k = 0; k < PAIRS; k++) { /* a chain: row a with rows a and a + 1 */
    i[k] = k / 2;
    j[k] = k / 2 + k % 2;
    weight[k] = 0.5 + (double)(k % 3);
    back_i[PAIRS - 1 - k] = i[k];
    back_j[PAIRS - 1 - k] = j[k];
    back_weight[PAIRS - 1 - k] = weight[k];
  }
  unicon_options *options = options_of(ctx, "linear", "sample_rows", "120");
  unicon_stats *all = listed(ctx, &w, ROWS, ROWS, i, j, weight, PAIRS, options);
  unicon_stats *same = listed(ctx, &w, ROWS, ROWS, back_i, back_j, back_weight, PAIRS, options);
  CHECK_CLOSE(distance(all, same), 0, 1e-13);
  kept_same_sample(all, same);
  assert_int_equal(all->sample.units, 60);
  for (int64_t u = 0; u < all->sample.units; u++) {
    const unicon__unit *unit = &all->sample.unit[u];
    assert_false(unit->whole);
    assert_int_equal(unit->pairs, 1);
    bool found = false; /* its weight is that of its pair */
    for (int64_t k = 0; k < PAIRS && !found; k++) {
      const float *row = w.x + i[k] * DX;
      float back[DX];
      unicon__convert(UNICON_F16, (const unsigned char *)(all->sample.half[0] + unit->at[0] * DX),
                      2, DX, back);
      double far = 0;
      for (int d = 0; d < DX; d++) { /* with fmax, gcc 12 crashes for aarch64 */
        const double one = (double)back[d] * all->sample.length[0][unit->at[0]];
        const double apart = fabs((double)row[d] - one);
        if (apart > far) far = apart;
      }
      found = far < 1e-2 && (double)all->sample.weight[unit->at_pair] == weight[k];
    }
    assert_true(found);
  }
  unicon_ctx_set_log(ctx, support_log, &book);
  unicon_model *model = kept_fit(ctx, all, "auto");
  unicon_ctx_set_log(ctx, NULL, NULL);
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "their pairs connect too many rows"));
  unicon_model_destroy(model);
  unicon_stats_destroy(same);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  world_free(&w);
}

/* Rows that are there many times have one number: all of them are in the sample, or none. */
static void equal_rows_share_their_fate(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { KINDS = 20, EACH = 10, ROWS = KINDS * EACH };
  float *x = support_floats(ROWS * DX), *y = support_floats(ROWS * DY);
  world w;
  int64_t i[ROWS];
  world_make(false, &w);
  for (int64_t k = 0; k < ROWS; k++) {
    i[k] = k;
    memcpy(x + k * DX, w.x + k % KINDS * DX, DX * sizeof *x);
    memcpy(y + k * DY, w.y + k % KINDS * DY, DY * sizeof *y);
  }
  const world many = {.x = x, .y = y};
  unicon_options *options = options_of(ctx, "linear", "sample_rows", "110");
  unicon_stats *all = listed(ctx, &many, ROWS, ROWS, i, i, NULL, ROWS, options);
  assert_int_equal(all->sample.units,
                   50); /* 55 have room, and the last five would be of one kind */
  unicon_stats *part = listed(ctx, &many, ROWS / 2, ROWS / 2, i, i, NULL, ROWS / 2, options);
  unicon_stats *sum = listed(ctx, &many, ROWS / 2, ROWS / 2, i, i, NULL, ROWS / 2, options);
  CHECK_OK(ctx, unicon_stats_merge(ctx, sum, part));
  kept_same_sample(all, sum);
  unicon_stats_destroy(sum);
  unicon_stats_destroy(part);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  free(x), free(y);
  world_free(&w);
}

/* Removing one text of an image takes the image's unit out of the sample, though its number is not
 * that of the rows that go; the ledger refuses it, and so does a sample that has every row. */
static void parts_of_units_leave_the_sample(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  world_make(false, &w);
  const int64_t i[] = {0, 0, 1, 1, 2, 2}, j[] = {0, 1, 2, 3, 4, 5};
  unicon_options *options = options_of(ctx, "linear", NULL, NULL);
  unicon_stats *all = listed(ctx, &w, 3, 6, i, j, NULL, 6, options);
  unicon_result *certificate = NULL;
  shard one;
  const int64_t zero = 0;
  double removed;
  assert_int_equal(all->sample.units, 3);
  one.x = support_rows(ctx, "x", w.x + DX, 1, DX);
  one.y = support_rows(ctx, "y", w.y + 3 * DY, 1, DY);
  CHECK_OK(ctx, unicon_pairs_list(ctx, 1, 1, &zero, &zero, NULL, 1, &one.pairs));
  one.data = UNICON_DATA(.x = one.x, .y = one.y, .pairs = one.pairs);
  scratch_failed(*state, unicon_stats_remove(ctx, all, &one.data, NULL, NULL), UNICON_ERR_DATA,
                 "has every row, but not 1 of the rows and their partners", "nothing is removed");
  all->sample.threshold[0] = 1e9; /* as if there were more rows than it has */
  CHECK_OK(ctx, unicon_stats_remove(ctx, all, &one.data, NULL, &certificate));
  assert_string_equal(unicon_result_text(certificate, "checked_by"), "counts and covariance");
  assert_int_equal(unicon_result_number(certificate, "sample.removed", &removed), 0);
  CHECK_CLOSE(removed, 3, 0);
  assert_int_equal(all->sample.units, 2);
  for (int64_t k = 0; k < all->sample.rows[1]; k++) { /* none has the first number of row 3 of y */
    float back[DY];
    unicon__convert(UNICON_F16, (const unsigned char *)(all->sample.half[1] + k * DY), 2, DY, back);
    assert_true(fabsf(back[0] * all->sample.length[1][k] - w.y[3 * DY]) > 1e-3f);
  }
  unicon_result_destroy(certificate);
  shard_close(&one);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  world_free(&w);
}

/* More rows than are added at once, with cuts that pairs forbid, and rows without a partner. */
static void blocks_do_not_show(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 90003, AT = 40000, WIDTH = 3 }; /* the last row has no partner */
  float *x = support_normals(1, ROWS * WIDTH), *y = support_normals(2, ROWS * WIDTH);
  int64_t *i = calloc(2 * ROWS, sizeof *i), *j = calloc(2 * ROWS, sizeof *j);
  for (int unpaired = 0; unpaired < 2; unpaired++) {
    int64_t count = 0;
    unicon_stats *whole = NULL, *sum = NULL;
    unicon_options *options = options_of(ctx, "linear", "unpaired", unpaired ? "on" : "off");
    CHECK_OK(ctx, unicon_options_set(ctx, options, "ledger", "on"));
    for (int64_t a = 0; a < ROWS; a++) {
      if (a % 7 == 3) continue;
      i[count] = a;
      j[count++] = a;
      /* a long bond across the first place where a cut would be, and some short ones */
      const int64_t other = a == 32000 ? 33500 : a % 5 == 1 && a + 2 < ROWS ? a + 1 : -1;
      if (other < 0 || (a < AT) != (other < AT)) continue;
      i[count] = a;
      j[count++] = other;
    }
    for (int part = -1; part < 2; part++) {
      const int64_t from = part == 1 ? AT : 0, to = part == 0 ? AT : ROWS;
      int64_t first = 0, n = 0;
      while (i[first] < from) first++;
      while (first + n < count && i[first + n] < to) n++;
      int64_t *pi = calloc((size_t)n, sizeof *pi), *pj = calloc((size_t)n, sizeof *pj);
      for (int64_t k = 0; k < n; k++) {
        pi[k] = i[first + k] - from;
        pj[k] = j[first + k] - from;
      }
      shard s;
      s.x = support_rows(ctx, "x", x + from * WIDTH, to - from, WIDTH);
      s.y = support_rows(ctx, "y", y + from * WIDTH, to - from, WIDTH);
      CHECK_OK(ctx, unicon_pairs_list(ctx, to - from, to - from, pi, pj, NULL, n, &s.pairs));
      s.data = UNICON_DATA(.x = s.x, .y = s.y, .pairs = s.pairs);
      unicon_stats **out = part < 0 ? &whole : &sum;
      if (!*out) CHECK_OK(ctx, unicon_stats_create(ctx, &s.data, options, out));
      CHECK_OK(ctx, unicon_stats_add(ctx, *out, &s.data, options));
      shard_close(&s);
      free(pi);
      free(pj);
    }
    CHECK_CLOSE(whole->pairs, count, 0);
    if (unpaired) CHECK_CLOSE(whole->sums.rows[0], ROWS, 0);
    if (unpaired) CHECK_CLOSE(whole->sums.rows[1], ROWS, 0);
    assert_true(unpaired || whole->sums.rows[0] < ROWS);
    for (int side = 0; side < 2; side++) {
      CHECK_CLOSE(whole->sums.rows[side], sum->sums.rows[side], 0);
      CHECK_CLOSE(whole->sums.rows[side], whole->ledger.count[side], 0);
      assert_memory_equal(whole->ledger.entry[side], sum->ledger.entry[side],
                          (size_t)whole->ledger.count[side] * 8);
      CHECK_CLOSE(support_distance(whole->sums.gram[side], sum->sums.gram[side], WIDTH * WIDTH), 0,
                  1e-13 * ROWS);
    }
    CHECK_CLOSE(support_distance(whole->sums.way[1].cross, sum->sums.way[1].cross, WIDTH * WIDTH),
                0, 1e-13 * ROWS);
    kept_same_sample(whole, sum);
    unicon_stats_destroy(whole);
    unicon_stats_destroy(sum);
    unicon_options_destroy(options);
  }
  free(x), free(y), free(i), free(j);
}

/* ---- faults ------------------------------------------------------------------------------- */

typedef struct round_of {
  shard all, part;
  unicon_options *options, *drop;
} round_of;

/* Everything that statistics can do, once. */
static unicon_status go_round(scratch *s, void *user) {
  const round_of *r = user;
  unicon_ctx *ctx = s->ctx;
  unicon_stats *a = NULL, *b = NULL, *c = NULL;
  unicon_result *certificate = NULL;
  unicon_model *model = NULL;
  const char *path = scratch_path(s, "faulty.stats");
  unicon_status status = unicon_stats_create(ctx, &r->all.data, r->options, &a);
  if (status == UNICON_OK) status = unicon_stats_add(ctx, a, &r->all.data, NULL);
  if (status == UNICON_OK) status = unicon_stats_save(ctx, a, path);
  if (status == UNICON_OK) status = unicon_stats_load(ctx, path, &b);
  if (status == UNICON_OK) status = unicon_stats_create_like(ctx, a, &c);
  if (status == UNICON_OK) status = unicon_stats_merge(ctx, c, b);
  if (status == UNICON_OK)
    status = unicon_stats_remove(ctx, c, &r->part.data, r->drop, &certificate);
  if (status == UNICON_OK) status = unicon_stats_fit(ctx, c, NULL, r->options, &model);
  unicon_model_destroy(model);
  unicon_result_destroy(certificate);
  unicon_stats_destroy(c);
  unicon_stats_destroy(b);
  unicon_stats_destroy(a);
  remove(path);
  return status;
}

/* The k-th allocation or system call fails: the right status, nothing left behind. */
static void faults_leave_nothing(void **state) {
  scratch *s = *state;
  world w;
  world_make(true, &w);
  for (int k = 0; k < 2; k++) {
    round_of r = {.options = options_of(s->ctx, kernels[k], "ledger", "on")};
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, r.options, "preset", "fast"));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, r.options, "landmarks", "30"));
    CHECK_OK(s->ctx, unicon_options_create(s->ctx, &r.drop));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, r.drop, "drop_landmarks", "on"));
    shard_open(s->ctx, &w, 0, 80, &r.all);
    shard_open(s->ctx, &w, 20, 40, &r.part);
    CHECK_OK(s->ctx, go_round(s, &r));
    assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, go_round, &r) >
                50);
    assert_true(scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, go_round, &r) > 3);
    shard_close(&r.part);
    shard_close(&r.all);
    unicon_options_destroy(r.drop);
    unicon_options_destroy(r.options);
  }
  world_free(&w);
}

/* A failure in the middle of a change leaves the statistics as they were: each allocation of an
 * addition and of a removal fails once. */
static void a_failed_change_changes_nothing(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  shard part;
  unicon_options *drop = NULL;
  world_make(true, &w);
  unicon_options *options = options_of(ctx, "rbf", "ledger", "on");
  CHECK_OK(ctx, unicon_options_set(ctx, options, "landmarks", "30"));
  CHECK_OK(ctx, unicon_options_create(ctx, &drop));
  CHECK_OK(ctx, unicon_options_set(ctx, drop, "drop_landmarks", "on"));
  unicon_stats *all = stats_of(ctx, &w, 0, 200, NULL, options), *before;
  before = stats_of(ctx, &w, 0, 0, all, options);
  CHECK_OK(ctx, unicon_stats_merge(ctx, before, all));
  shard_open(ctx, &w, 20, 60, &part);
  for (int what = 0; what < 2; what++)
    for (int k = 0;; k = scratch_next_fault(k)) {
      ctx->faults.allocation = k;
      const unicon_status status = what == 0
                                       ? unicon_stats_add(ctx, all, &part.data, NULL)
                                       : unicon_stats_remove(ctx, all, &part.data, drop, NULL);
      const bool over = ctx->faults.allocation >= 0;
      ctx->faults.allocation = -1;
      if (over) {
        CHECK_OK(ctx, status);
        CHECK_OK(ctx, unicon_stats_add(ctx, before, &part.data, NULL));
        break;
      }
      assert_int_equal(status, UNICON_ERR_MEMORY);
      assert_true(distance(before, all) == 0);
      assert_true(before->pairs == all->pairs && before->map[0].points == all->map[0].points);
      kept_same_sample(before, all);
      assert_int_equal(before->ledger.count[1], all->ledger.count[1]);
      if (what == 0) continue;
      unicon_stats *copy = stats_of(ctx, &w, 0, 0, all, options); /* the memory is in order */
      CHECK_OK(ctx, unicon_stats_merge(ctx, copy, all));
      unicon_stats_destroy(copy);
    }
  shard_close(&part);
  unicon_stats_destroy(before);
  unicon_stats_destroy(all);
  unicon_options_destroy(drop);
  unicon_options_destroy(options);
  world_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(parts_in_any_order_are_the_whole),
      SCRATCH_TEST(removed_rows_were_never_there),
      SCRATCH_TEST(all_removed_is_empty),
      SCRATCH_TEST(strangers_are_noticed),
      SCRATCH_TEST(a_fit_is_that_of_the_rows),
      SCRATCH_TEST(maps_of_a_model),
      SCRATCH_TEST(landmarks_are_not_forgotten),
      SCRATCH_TEST(decay_is_a_weight),
      SCRATCH_TEST(files_come_back),
      SCRATCH_TEST(what_does_not_fit_is_refused),
      SCRATCH_TEST(other_maps_and_machines),
      SCRATCH_TEST(one_encoder),
      SCRATCH_TEST(connected_rows_are_sampled_by_pairs),
      SCRATCH_TEST(equal_rows_share_their_fate),
      SCRATCH_TEST(parts_of_units_leave_the_sample),
      SCRATCH_TEST(blocks_do_not_show),
      SCRATCH_TEST(faults_leave_nothing),
      SCRATCH_TEST(a_failed_change_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
