/* SPDX-License-Identifier: Apache-2.0 */
/* What a removal promises, where rows are there more than once, where another machine has rounded
 * otherwise, and where numbers are very large or very small. Sums are those of test_kept.c. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kept_check.h"

enum { N = 130, D = 12 };

typedef struct world {
  float *x, *y;
} world;

static void world_make(world *w) {
  w->x = support_normals(1, (int64_t)N * D);
  w->y = support_normals(2, (int64_t)N * D);
}

static void world_free(world *w) {
  free(w->x);
  free(w->y);
}

/* Rows [from, to), one to one, weighted, or with labels. */
static void part_open(unicon_ctx *ctx, const world *w, int from, int to, bool labels, double weight,
                      kept_part *out) {
  int64_t label[N], at[N];
  double weights[N];
  const int64_t n = to - from;
  for (int i = from; i < to; i++) {
    label[i - from] = i % 4;
    at[i - from] = i - from;
    weights[i - from] = weight;
  }
  out->x = support_rows(ctx, "x", w->x + from * D, n, D);
  out->y = support_rows(ctx, "y", w->y + from * D, n, D);
  CHECK_OK(ctx, labels ? unicon_pairs_labels_part(ctx, label, n, label, n, &out->pairs)
                       : unicon_pairs_list(ctx, n, n, at, at, weights, n, &out->pairs));
  out->data = UNICON_DATA(.x = out->x, .y = out->y, .pairs = out->pairs);
}

static void add(unicon_ctx *ctx, const world *w, int from, int to, bool labels,
                unicon_stats *stats) {
  kept_part p;
  part_open(ctx, w, from, to, labels, 1, &p);
  CHECK_OK(ctx, unicon_stats_add(ctx, stats, &p.data, NULL));
  kept_part_close(&p);
}

static unicon_status take(unicon_ctx *ctx, const world *w, int from, int to, bool labels, bool drop,
                          unicon_stats *stats) {
  kept_part p;
  unicon_options *options = support_options(ctx, "drop_landmarks", drop ? "on" : "off", NULL);
  part_open(ctx, w, from, to, labels, 1, &p);
  const unicon_status status = unicon_stats_remove(ctx, stats, &p.data, options, NULL);
  kept_part_close(&p);
  unicon_options_destroy(options);
  return status;
}

/* Nothing but the maps that the first rows give. */
static unicon_stats *empty_of(unicon_ctx *ctx, const world *w, int rows, const char *kernel,
                              const char *name, const char *value) {
  kept_part p;
  unicon_stats *out = NULL;
  unicon_options *options =
      support_options(ctx, "kernel", kernel, "landmarks", "300", name, value, NULL);
  part_open(ctx, w, 0, rows, false, 1, &p);
  CHECK_OK(ctx, unicon_stats_create(ctx, &p.data, options, &out));
  kept_part_close(&p);
  unicon_options_destroy(options);
  return out;
}

static unicon_stats *again(scratch *s, const unicon_stats *stats) {
  unicon_stats *out = NULL;
  CHECK_OK(s->ctx, unicon_stats_save(s->ctx, stats, scratch_path(s, "again.stats")));
  CHECK_OK(s->ctx, unicon_stats_load(s->ctx, scratch_path(s, "again.stats"), &out));
  return out;
}

/* How many landmarks of a side point where the row does. */
static int64_t landmarks_like(const unicon_stats *stats, int s, const float *row) {
  const unicon__map *map = &stats->map[s];
  int64_t found = 0;
  for (int64_t k = 0; k < map->points; k++) {
    const float *landmark = map->base + k * D;
    const double cosine = support_dot(row, landmark, D) /
                          sqrt(support_dot(row, row, D) * support_dot(landmark, landmark, D));
    found += cosine > 1 - 1e-6;
  }
  return found;
}

/* A row that is there three times is three landmarks where the ridge lets them be: all of them go. */
static void equal_landmarks_go_together(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  world_make(&w);
  for (int i = 1; i < 3; i++) {
    memcpy(w.x + i * D, w.x, D * sizeof *w.x);
    memcpy(w.y + i * D, w.y, D * sizeof *w.y);
  }
  unicon_stats *all = empty_of(ctx, &w, N, "rbf", "kernel_ridge", "1e-3");
  add(ctx, &w, 0, N, false, all);
  assert_int_equal(landmarks_like(all, 0, w.x), 3);
  CHECK_OK(ctx, take(ctx, &w, 0, 3, false, true, all));
  assert_int_equal(landmarks_like(all, 0, w.x), 0);
  assert_int_equal(landmarks_like(all, 1, w.y), 0);
  assert_int_equal(all->map[0].points, N - 3);
  unicon_stats_destroy(all);
  world_free(&w);
}

/* Landmarks at length 1 whose lengths another machine has rounded otherwise are the rows still. */
static void landmarks_of_another_machine(void **state) {
  scratch *s = *state;
  world w;
  world_make(&w);
  for (int raw = 0; raw < 2; raw++) {
    unicon_stats *all = empty_of(s->ctx, &w, N, "rbf", "normalize", raw ? "off" : "on");
    add(s->ctx, &w, 0, N, false, all);
    for (int64_t k = 0; k < N * D && !raw; k++) {
      all->map[0].base[k] *= 1 + 3 * FLT_EPSILON;
      all->map[1].base[k] *= 1 - 3 * FLT_EPSILON;
    }
    scratch_failed(s, take(s->ctx, &w, 5, 9, false, false, all), UNICON_ERR_DATA,
                   "8 of the rows are landmarks", "drop_landmarks");
    unicon_stats_destroy(all);
  }
  world_free(&w);
}

/* Numbers of units whose logarithm is the neighbouring double are those of the same units. */
static void samples_of_another_machine(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { GONE = 40 };
  world w;
  world_make(&w);
  for (int labels = 0; labels < 2; labels++)
    for (int by_sums = 0; by_sums < 2; by_sums++) {
      unicon_stats *all = empty_of(ctx, &w, N, "linear", "seed", "0");
      unicon_stats *gone = empty_of(ctx, &w, N, "linear", "seed", "0");
      unicon_stats *never = empty_of(ctx, &w, N, "linear", "seed", "0");
      add(ctx, &w, 0, N, labels, all);
      add(ctx, &w, 0, GONE, labels, gone);
      add(ctx, &w, GONE, N, labels, never);
      for (int64_t k = 0; k < all->sample.units; k++)
        all->sample.unit[k].key = nextafter(all->sample.unit[k].key, k % 2 ? INFINITY : 0);
      if (by_sums)
        CHECK_OK(ctx, unicon_stats_subtract(ctx, all, gone, NULL));
      else
        CHECK_OK(ctx, take(ctx, &w, 0, GONE, labels, false, all));
      for (int64_t k = 0; k < all->sample.units; k++) /* as if this machine had made it */
        all->sample.unit[k].key = never->sample.unit[k].key;
      kept_same_sample(never, all);
      unicon_stats_destroy(never);
      unicon_stats_destroy(gone);
      unicon_stats_destroy(all);
    }
  world_free(&w);
}

/* Fewer rows than features are left, so an eigenvalue is 0 but for the rounding of features that are
 * computed for many rows when they are added, and for few when they go. */
static void rounding_of_features_is_no_stranger(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const kernels[] = {"rbf", "matern32", "arccos1"};
  world w;
  world_make(&w);
  for (int k = 0; k < 3; k++)
    for (int rows = 1; rows <= 5; rows++) {
      unicon_stats *all = empty_of(ctx, &w, N, kernels[k], "kernel_ridge", "0");
      add(ctx, &w, 0, N, false, all);
      CHECK_OK(ctx, take(ctx, &w, N - rows, N, false, true, all));
      unicon_stats_destroy(all);
    }
  world_free(&w);
}

/* What a removal of landmarks leaves behind is given back: the sums and maps become smaller. */
static void smaller_maps_take_less_memory(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  world w;
  world_make(&w);
  unicon_stats *all = empty_of(ctx, &w, N, "rbf", "sample_rows", "100");
  add(ctx, &w, 0, N, false, all);
  uint64_t before = unicon__budget_used(all->arena.budget);
  for (int k = 0; k < 6; k++) {
    CHECK_OK(ctx, take(ctx, &w, 10 * k, 10 * k + 10, false, true, all));
    const uint64_t now = unicon__budget_used(all->arena.budget);
    assert_true(now < before);
    before = now;
  }
  add(ctx, &w, 0, 10, false, all); /* the memory is in order */
  unicon_stats_destroy(all);
  world_free(&w);
}

/* Rows whose squares are beyond float32, or below it, have a direction: the sample keeps it. */
static void rows_of_any_length_are_sampled(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  world_make(&w);
  for (int k = 0; k < D; k++) {
    w.x[k] *= 1e20f;
    w.x[D + k] *= 1e-25f;
    w.x[2 * D + k] = k % 2 ? FLT_MAX : -FLT_MAX; /* longer than float32 can say */
  }
  unicon_stats *all = empty_of(ctx, &w, N, "linear", "sample_rows", "1000");
  add(ctx, &w, 0, N, false, all);
  unicon_stats *read = again(s, all);
  kept_same_sample(all, read);
  for (int64_t i = 0; i < all->sample.rows[0]; i++) {
    assert_true(all->sample.length[0][i] > 0);
    assert_true(isfinite(all->sample.length[0][i]));
  }
  unicon_model_destroy(kept_fit(ctx, all, "auto"));
  unicon_stats_destroy(read);
  unicon_stats_destroy(all);
  world_free(&w);
}

/* A decay is a factor, however small, of all that is there; one that leaves nothing is refused. */
static void a_decay_is_a_factor(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  const double keep = 1e-17;
  world w;
  world_make(&w);
  for (int labels = 0; labels < 2; labels++) {
    unicon_stats *all = empty_of(ctx, &w, N, "linear", "seed", "0");
    unicon_stats *whole = empty_of(ctx, &w, N, "linear", "seed", "0");
    add(ctx, &w, 0, N, labels, all);
    add(ctx, &w, 0, N, labels, whole);
    CHECK_OK(ctx, unicon_stats_decay(ctx, all, keep));
    CHECK_CLOSE(all->sums.rows[0] / keep, N, 1e-10);
    for (int64_t k = 0; k < D * D; k++)
      CHECK_CLOSE(all->sums.gram[1][k] / keep, whole->sums.gram[1][k], 1e-10);
    for (int64_t k = 0; k < D && labels; k++)
      CHECK_CLOSE(all->sums.class_sum[0][k] / keep, whole->sums.class_sum[0][k], 1e-10);
    if (!labels) CHECK_CLOSE(all->sums.way[1].weight / keep, N, 1e-10);
    unicon_stats_destroy(again(s, all));
    scratch_failed(s, unicon_stats_decay(ctx, all, 1e-200), UNICON_ERR_ARGUMENT,
                   "decay keeps 1e-200 of", "leaves nothing");
    unicon_stats_destroy(all);
    unicon_stats_destroy(whole);
  }
  world_free(&w);
}

/* What is accepted can be read again; what no map of ours has is not. */
static void files_of_large_weights_and_bad_factors(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  world w;
  kept_part p;
  unicon_stats *none = NULL;
  world_make(&w);
  unicon_stats *all = empty_of(ctx, &w, N, "linear", "seed", "0");
  part_open(ctx, &w, 0, N, false, 3e38, &p);
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &p.data, NULL));
  kept_part_close(&p);
  unicon_stats_destroy(again(s, all));
  unicon_stats_destroy(all);
  all = empty_of(ctx, &w, N, "rbf", "seed", "0");
  add(ctx, &w, 0, N, false, all);
  all->map[1].factor[7 * all->map[1].points + 7] = 0;
  CHECK_OK(ctx, unicon_stats_save(ctx, all, scratch_path(s, "bad.stats")));
  scratch_failed(s, unicon_stats_load(ctx, scratch_path(s, "bad.stats"), &none), UNICON_ERR_FORMAT,
                 "tensor y.factor", "diagonal");
  unicon_stats_destroy(all);
  world_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(equal_landmarks_go_together),
      SCRATCH_TEST(landmarks_of_another_machine),
      SCRATCH_TEST(samples_of_another_machine),
      SCRATCH_TEST(rounding_of_features_is_no_stranger),
      SCRATCH_TEST(smaller_maps_take_less_memory),
      SCRATCH_TEST(rows_of_any_length_are_sampled),
      SCRATCH_TEST(a_decay_is_a_factor),
      SCRATCH_TEST(files_of_large_weights_and_bad_factors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
