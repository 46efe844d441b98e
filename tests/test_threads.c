/* SPDX-License-Identifier: Apache-2.0 */
/* Callers with threads of their own: several contexts at once, and rows, pairs and a model shared
 * by them. Every thread must see what one thread alone sees, to the last byte. The thread sanitizer
 * runs this too. */
#include <cblas.h>
#include <pthread.h>

#include "figures.h"
#include "support.h"

enum { N = 90, DX = 12, DY = 9, K = 4, CALLERS = 4, ROUNDS = 2 };

/* What all threads share. */
typedef struct common {
  problem p;
  unicon_pairs *pairs;
  unicon_options *options;
  unicon_model *model;
  const char *path; /* of the model */
} common;

/* What one thread saw. */
typedef struct view {
  int64_t ids[N * K];
  float scores[N * K], embedded[N * N];
  figures to_y, to_x;
  float spectrum[N];
  int64_t rank;
} view;

typedef struct caller {
  pthread_t thread;
  const common *c;
  int threads; /* of its context */
  char error[256];
  view saw;
} caller;

static unicon_status use_model(unicon_ctx *ctx, const common *c, const unicon_model *model,
                               view *out) {
  const unicon_view x = UNICON_VIEW(.rows = c->p.rows_x, .model = model, .side = UNICON_X),
                    y = UNICON_VIEW(.rows = c->p.rows_y, .model = model, .side = UNICON_Y);
  UNICON_TRY(unicon_embed(ctx, &x, 0, N, 1, out->embedded));
  UNICON_TRY(unicon_search(ctx, &x, &y, K, out->ids, out->scores));
  return figures_evaluate(ctx, &x, &y, c->pairs, NULL, &out->to_y, &out->to_x);
}

/* A fit of its own, the model of the file, and the shared model. */
static unicon_status work(unicon_ctx *ctx, const common *c, view *out) {
  unicon_model *own = NULL, *loaded = NULL;
  const unicon_data data = UNICON_DATA(.x = c->p.rows_x, .y = c->p.rows_y, .pairs = c->pairs);
  unicon_status status = unicon_fit(ctx, &data, NULL, c->options, &own);
  if (status == UNICON_OK) {
    out->rank = unicon_model_rank(own);
    memcpy(out->spectrum, unicon_model_spectrum(own), (size_t)out->rank * sizeof *out->spectrum);
    status = unicon_model_load(ctx, c->path, &loaded);
  }
  if (status == UNICON_OK) status = use_model(ctx, c, loaded, out);
  if (status == UNICON_OK) status = use_model(ctx, c, c->model, out);
  unicon_model_destroy(own);
  unicon_model_destroy(loaded);
  return status;
}

static void *run_caller(void *user) {
  caller *t = user;
  unicon_ctx *ctx = NULL;
  char threads[12];
  snprintf(threads, sizeof threads, "%d", t->threads);
  unicon_status status = unicon_ctx_create(&ctx);
  if (status == UNICON_OK) status = unicon_ctx_set(ctx, "threads", threads);
  for (int round = 0; round < ROUNDS && status == UNICON_OK; round++)
    status = work(ctx, t->c, &t->saw);
  if (status != UNICON_OK) snprintf(t->error, sizeof t->error, "%.255s", unicon_ctx_error(ctx));
  unicon_ctx_destroy(ctx);
  return NULL;
}

static void open_common(scratch *s, common *c) {
  int64_t label[N];
  memset(c, 0, sizeof *c);
  problem_make(s->ctx, 3, N, DX, DY, 5, 0.5, &c->p);
  for (int64_t i = 0; i < N; i++) label[i] = i / 3;
  CHECK_OK(s->ctx, unicon_pairs_labels(s->ctx, label, N, label, N, &c->pairs));
  c->options = support_options(s->ctx, "iterations", "1", "kernel", "angular", "refine", "1",
                               "refine_batch", "30", NULL);
  c->model = support_fit(s->ctx, c->p.rows_x, c->p.rows_y, c->pairs, c->options);
  c->path = scratch_path(s, "shared.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, c->model, c->path));
}

static void close_common(common *c) {
  unicon_model_destroy(c->model);
  unicon_options_destroy(c->options);
  unicon_pairs_destroy(c->pairs);
  problem_free(&c->p);
}

static void check_same(const view *a, const view *b) {
  assert_memory_equal(a->embedded, b->embedded, sizeof a->embedded);
  assert_memory_equal(a->ids, b->ids, sizeof a->ids);
  assert_memory_equal(a->scores, b->scores, sizeof a->scores);
  assert_memory_equal(a->to_y.value, b->to_y.value, sizeof a->to_y.value);
  assert_memory_equal(a->to_x.value, b->to_x.value, sizeof a->to_x.value);
  assert_int_equal(a->rank, b->rank);
  assert_memory_equal(a->spectrum, b->spectrum, (size_t)a->rank * sizeof *a->spectrum);
}

static void callers_do_not_meet(void **state) {
  scratch *s = *state;
  common c;
  open_common(s, &c);
  const int blas = openblas_get_num_threads();
  caller *all = calloc(CALLERS + 1, sizeof *all), *alone = all + CALLERS;
  assert_non_null(all);
  *alone = (caller){.c = &c, .threads = 1};
  run_caller(alone);
  assert_string_equal(alone->error, "");
  assert_true(alone->saw.to_y.value[UNICON__HIT_1] > 0.2); /* there is something to see */
  for (int t = 0; t < CALLERS; t++) {
    all[t] = (caller){.c = &c, .threads = 1 + t % 3};
    assert_int_equal(pthread_create(&all[t].thread, NULL, run_caller, &all[t]), 0);
  }
  for (int t = 0; t < CALLERS; t++) assert_int_equal(pthread_join(all[t].thread, NULL), 0);
  for (int t = 0; t < CALLERS; t++) {
    assert_string_equal(all[t].error, "");
    check_same(&alone->saw, &all[t].saw);
  }
  assert_int_equal(openblas_get_num_threads(), blas);
  free(all);
  close_common(&c);
}

/* Fits of all kinds, by different numbers of threads: the same file. The larger problem has
 * products and decompositions that are cut into tiles. */
static void the_number_of_threads_changes_no_byte(void **state) {
  scratch *s = *state;
  static const char *const kinds[][10] = {
      {"iterations", "2", NULL},
      {"metric", "0.3", "rank", "15", "refine", "1", "refine_batch", "100", NULL},
      {"kernel", "angular", "landmarks", "150", "map", "nystrom", "landmark_method", "pivot", NULL},
      {"svd", "random", "rank", "14", "loss", "siglip", "iterations", "1", NULL},
      {"map", "random", "kernel", "rbf", "features", "300", "rank", "30", NULL},
      {"batch", "200", "iterations", "1", "rank", "10", NULL}};
  for (size_t k = 0; k < 2 * sizeof kinds / sizeof *kinds; k++) {
    const char *const *o = kinds[k / 2];
    const bool large = k % 2;
    problem p;
    unsigned char *first = NULL;
    size_t first_size = 0;
    problem_make(s->ctx, 7, large ? 900 : 300, large ? 720 : 24, large ? 180 : 17, 9, 0.5, &p);
    unicon_options *options = support_options(s->ctx, o[0], o[1], NULL);
    for (int n = 2; o[n]; n += 2)
      CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, o[n], o[n + 1]));
    for (int threads = 1; threads <= 3; threads++) {
      char text[12];
      size_t size;
      snprintf(text, sizeof text, "%d", threads);
      CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", text));
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      const char *path = scratch_path(s, "model.safetensors");
      CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
      unsigned char *bytes = support_slurp(path, &size);
      if (threads == 1) {
        first = bytes;
        first_size = size;
      } else {
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
      }
      unicon_model_destroy(model);
    }
    free(first);
    unicon_options_destroy(options);
    problem_free(&p);
  }
}

/* Objects outlive the context that made them. */
static void objects_outlive_contexts(void **state) {
  scratch *s = *state;
  common c;
  unicon_ctx *first = NULL, *second = NULL;
  unicon_model *model = NULL;
  open_common(s, &c);
  assert_int_equal(unicon_ctx_create(&first), UNICON_OK);
  CHECK_OK(first, unicon_model_load(first, c.path, &model));
  unicon_ctx_destroy(first);
  assert_int_equal(unicon_ctx_create(&second), UNICON_OK);
  float *z = support_floats(N * unicon_model_rank(model));
  CHECK_OK(second,
           unicon_embed(second, &UNICON_VIEW(.rows = c.p.rows_x, .model = model, .side = UNICON_X),
                        0, N, 1, z));
  unicon_ctx_destroy(second);
  unicon_model_destroy(model);
  free(z);
  close_common(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(callers_do_not_meet),
      SCRATCH_TEST(the_number_of_threads_changes_no_byte),
      SCRATCH_TEST(objects_outlive_contexts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
