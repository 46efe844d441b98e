/* SPDX-License-Identifier: Apache-2.0 */
/* Fused models (T23: preset paper-printed with a kernel and batches), and what holds for models of
 * every map: files give back the same bits, threads change nothing, the memory limit is kept.
 *
 * Cosines of a model with kernel features repeat to 1e-4 when the order of rows or of sums changes:
 * float32 features, roundings of 1e-7 amplified by the factor K^-1/2 (up to 700, test_map.c). */
#include "features/batch.h"
#include "model/model.h"
#include "support.h"

enum { N = 150, TEST = 50, DX = 10, DY = 8, LATENT = 5, MOST = 8 };

/* Which rows go into which batch, as the fit cuts them. */
typedef struct cut {
  int64_t batches, count[MOST], row[MOST][N];
} cut;

static void make_cut(unicon_ctx *ctx, const problem *p, int64_t size, uint64_t seed, cut *out) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, p->n, p->n, &pairs));
  unicon__problem whole = {.whole = {.x = {.rows = p->rows_x, .count = p->n},
                                     .y = {.rows = p->rows_y, .count = p->n},
                                     .pairs = pairs}};
  CHECK_OK(ctx, unicon__problem_cut(ctx, &(unicon__cut){.size = size, .seed = seed}, &whole));
  out->batches = whole.batches;
  assert_true(out->batches <= MOST);
  for (int64_t b = 0; b < whole.batches; b++) {
    out->count[b] = whole.batch[b].x.count;
    assert_int_equal(out->count[b], whole.batch[b].y.count);
    for (int64_t k = 0; k < out->count[b]; k++) {
      out->row[b][k] = whole.batch[b].x_row[k];
      assert_int_equal(whole.batch[b].y_row[k], out->row[b][k]);
    }
  }
  unicon__problem_close(&whole);
  unicon_pairs_destroy(pairs);
  unicon__frame_close(ctx, frame);
}

static unicon_options *paper(unicon_ctx *ctx, const char *kernel, const char *batch) {
  return support_options(ctx, "preset", "paper-printed", "kernel", kernel, "batch", batch, "width",
                         "0.9", "seed", "4", NULL);
}

/* The model of one batch alone. */
static unicon_model *fit_batch(unicon_ctx *ctx, const problem *p, const cut *c, int64_t b,
                               const char *kernel) {
  float *x = support_floats(c->count[b] * DX), *y = support_floats(c->count[b] * DY);
  for (int64_t k = 0; k < c->count[b]; k++) {
    memcpy(x + k * DX, p->x + c->row[b][k] * DX, DX * sizeof *x);
    memcpy(y + k * DY, p->y + c->row[b][k] * DY, DY * sizeof *y);
  }
  unicon_rows *rows_x = support_rows(ctx, "x", x, c->count[b], DX);
  unicon_rows *rows_y = support_rows(ctx, "y", y, c->count[b], DY);
  unicon_options *options = paper(ctx, kernel, "full");
  unicon_model *model = support_fit(ctx, rows_x, rows_y, NULL, options);
  unicon_options_destroy(options);
  unicon_rows_close(rows_x);
  unicon_rows_close(rows_y);
  free(x);
  free(y);
  return model;
}

/* T23: cosine of fused vectors = mean of the cosines of the batches' own models. */
static void fused_cosine_is_the_mean_cosine(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const kernels[] = {"angular", "rbf", "arccos0", "cosine"};
  problem p, q;
  problem_make(ctx, 1, N, DX, DY, LATENT, 0.4, &p);
  problem_make(ctx, 2, TEST, DX, DY, LATENT, 0.4, &q);
  for (int t = 0; t < 4; t++) {
    cut c;
    make_cut(ctx, &p, 40, 4, &c);
    assert_int_equal(c.batches, 4);
    unicon_options *options = paper(ctx, kernels[t], "40");
    unicon_model *fused = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    assert_string_equal(unicon_model_meta(fused, "parts"), "4");
    double *found = support_cosines(ctx, fused, q.rows_x, q.rows_y);
    double *mean = support_doubles(TEST * TEST), weight = 0;
    int64_t rank = 0;
    for (int64_t b = 0; b < c.batches; b++) {
      unicon_model *part = fit_batch(ctx, &p, &c, b, kernels[t]);
      double *cosines = support_cosines(ctx, part, q.rows_x, q.rows_y);
      for (int k = 0; k < TEST * TEST; k++) mean[k] += fused->part[b].share * cosines[k];
      weight += fused->part[b].share;
      rank += unicon_model_rank(part);
      free(cosines);
      unicon_model_destroy(part);
    }
    assert_int_equal(unicon_model_rank(fused), rank);
    for (int k = 0; k < TEST * TEST; k++) mean[k] /= weight;
    if (support_distance(found, mean, TEST * TEST) > 1e-5) print_error("%s\n", kernels[t]);
    CHECK_CLOSE(support_distance(found, mean, TEST * TEST), 0, 1e-5);
    free(found);
    free(mean);
    unicon_model_destroy(fused);
    unicon_options_destroy(options);
  }
  problem_free(&p);
  problem_free(&q);
}

/* T23: rows may change places inside their batch (with their partners). */
static void order_inside_a_batch_does_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p, q, moved;
  problem_make(ctx, 1, N, DX, DY, LATENT, 0.4, &p);
  problem_make(ctx, 1, N, DX, DY, LATENT, 0.4, &moved);
  problem_make(ctx, 2, TEST, DX, DY, LATENT, 0.4, &q);
  cut c;
  make_cut(ctx, &p, 40, 4, &c);
  for (int64_t b = 0; b < c.batches; b++)
    for (int64_t k = 0; k < c.count[b]; k++) {
      const int64_t from = c.row[b][k], to = c.row[b][(k * 7 + 3) % c.count[b]];
      assert_true(c.count[b] % 7 != 0);
      memcpy(moved.x + to * DX, p.x + from * DX, DX * sizeof *p.x);
      memcpy(moved.y + to * DY, p.y + from * DY, DY * sizeof *p.y);
    }
  assert_memory_not_equal(p.x, moved.x, N * DX * sizeof *p.x);
  unicon_options *options = paper(ctx, "angular", "40");
  unicon_model *a = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  unicon_model *b = support_fit(ctx, moved.rows_x, moved.rows_y, NULL, options);
  double *of_a = support_cosines(ctx, a, q.rows_x, q.rows_y);
  double *of_b = support_cosines(ctx, b, q.rows_x, q.rows_y);
  CHECK_CLOSE(support_distance(of_a, of_b, TEST * TEST), 0, 1e-4);
  free(of_a);
  free(of_b);
  unicon_model_destroy(a);
  unicon_model_destroy(b);
  unicon_options_destroy(options);
  problem_free(&p);
  problem_free(&q);
  problem_free(&moved);
}

/* A given rank is one of each part, and too large a one a sentence. */
static void rank_is_that_of_a_part(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 1, N, DX, DY, LATENT, 0.4, &p);
  unicon_options *options = paper(s->ctx, "angular", "40");
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "5"));
  unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
  assert_int_equal(unicon_model_rank(model), 20);
  unicon_model_destroy(model);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "60"));
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_DATA, "rank is 60",
                 "at most");
  unicon_options_destroy(options);
  problem_free(&p);
}

/* ---- every map ---------------------------------------------------------------------------- */

/* Options of one model of each kind: name, value, ... */
static const char *const kinds[][12] = {
    {"kernel", "linear", "map", "linear", NULL},
    {"kernel", "angular", "map", "exact", NULL},
    {"kernel", "arccos0", "map", "nystrom", "landmarks", "60", NULL},
    {"kernel", "matern12", "map", "nystrom", "landmarks", "60", "landmark_method", "pivot", NULL},
    {"kernel", "poly", "width", "5", "map", "exact", "kernel_ridge", "0.1", NULL},
    {"kernel", "expcos", "map", "exact", NULL},
    {"kernel", "arccos2", "map", "random", "features", "90", NULL},
    {"kernel", "rbf", "map", "random", "features", "90", NULL},
    {"kernel_x", "matern52", "kernel_y", "angular", "map", "random", "features", "90", NULL},
    {"kernel_x", "linear", "kernel_y", "rbf", "center", "off", NULL},
    {"preset", "paper-printed", "kernel", "angular", "batch", "40", NULL},
    {"preset", "paper-printed", "kernel", "rbf", "batch", "40", NULL},
    {"preset", "paper-printed", "kernel_x", "linear", "kernel_y", "matern32", "batch", "40", NULL},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static unicon_options *options_of(unicon_ctx *ctx, int kind) {
  unicon_options *options = support_options(ctx, "preset", "fast", NULL);
  for (int k = 0; kinds[kind][k]; k += 2)
    CHECK_OK(ctx, unicon_options_set(ctx, options, kinds[kind][k], kinds[kind][k + 1]));
  return options;
}

/* Embeddings of both sides, to be freed. */
static float *embed_both(unicon_ctx *ctx, const unicon_model *model, const problem *p) {
  const int64_t r = unicon_model_rank(model);
  float *out = support_floats(2 * p->n * r);
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = p->rows_x, .model = model, .side = UNICON_X),
                             0, p->n, 0, out));
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = p->rows_y, .model = model, .side = UNICON_Y),
                             0, p->n, 0, out + p->n * r));
  return out;
}

/* A side has a kernel if its own word, or without one that of both, is another than linear. The
 * word linear makes none, and batches of linear rows share their basis: one part. */
static void linear_is_no_kernel(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const struct {
    const char *both, *x, *y, *parts;
  } cases[] = {{"linear", "same", "same", "1"},   {"linear", "linear", "same", "1"},
               {"linear", "same", "linear", "1"}, {"linear", "linear", "linear", "1"},
               {"rbf", "linear", "linear", "1"},  {"rbf", "same", "same", "3"},
               {"rbf", "linear", "same", "3"},    {"linear", "rbf", "same", "3"},
               {"linear", "same", "poly", "3"},   {"cosine", "linear", "same", "3"}};
  problem p;
  problem_make(ctx, 6, N, DX, DY, LATENT, 0.3, &p);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unicon_options *options =
        support_options(ctx, "kernel", cases[c].both, "kernel_x", cases[c].x, "kernel_y",
                        cases[c].y, "batch", "50", "rank", "4", NULL);
    unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
    if (strcmp(unicon_model_meta(model, "parts"), cases[c].parts) != 0)
      print_error("kernel %s, of x %s, of y %s\n", cases[c].both, cases[c].x, cases[c].y);
    assert_string_equal(unicon_model_meta(model, "parts"), cases[c].parts);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

static void files_give_the_same_bits(void **state) {
  scratch *s = *state;
  problem p, q;
  problem_make(s->ctx, 3, N, DX, DY, LATENT, 0.4, &p);
  problem_make(s->ctx, 4, TEST, DX, DY, LATENT, 0.4, &q);
  for (int kind = 0; kind < KINDS; kind++) {
    unicon_options *options = options_of(s->ctx, kind);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options), *loaded = NULL;
    const char *path = scratch_path(s, "m.safetensors"), *again = scratch_path(s, "n.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &loaded));
    const int64_t r = unicon_model_rank(model);
    assert_int_equal(unicon_model_rank(loaded), r);
    float *a = embed_both(s->ctx, model, &q), *b = embed_both(s->ctx, loaded, &q);
    if (memcmp(a, b, (size_t)(2 * TEST * r) * sizeof *a) != 0)
      print_error("%s %s\n", kinds[kind][1], kinds[kind][3]);
    assert_memory_equal(a, b, (size_t)(2 * TEST * r) * sizeof *a);
    for (int64_t k = 0; k < 2 * TEST * r; k++) assert_true(isfinite(a[k]));
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, loaded, again)); /* and the same file */
    size_t size[2];
    unsigned char *bytes[2] = {support_slurp(path, &size[0]), support_slurp(again, &size[1])};
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    free(a);
    free(b);
    unicon_model_destroy(model);
    unicon_model_destroy(loaded);
    unicon_options_destroy(options);
  }
  problem_free(&p);
  problem_free(&q);
}

/* The same bytes for the same number of threads; the same cosines for any, at rank 6 (the last
 * singular values of a full rank are roundings and may be anything). */
static void threads_do_not_matter(void **state) {
  scratch *s = *state;
  problem p, q;
  problem_make(s->ctx, 5, 700, DX, DY, LATENT, 0.4, &p);
  problem_make(s->ctx, 6, TEST, DX, DY, LATENT, 0.4, &q);
  for (int kind = 0; kind < KINDS; kind++) {
    unicon_options *options = options_of(s->ctx, kind);
    double *first = NULL;
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "6"));
    for (int threads = 1; threads <= 3; threads++) {
      unicon__ctx_set_threads(s->ctx, threads);
      unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      unicon_model *again = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options);
      const size_t bytes = (size_t)(2 * TEST * unicon_model_rank(model)) * sizeof(float);
      float *a = embed_both(s->ctx, model, &q), *b = embed_both(s->ctx, again, &q);
      assert_memory_equal(a, b, bytes);
      double *cosines = support_cosines(s->ctx, model, q.rows_x, q.rows_y);
      if (!first) first = cosines;
      if (support_distance(first, cosines, TEST * TEST) > 1e-4)
        print_error("%s, %s: %d threads\n", kinds[kind][1], kinds[kind][3], threads);
      CHECK_CLOSE(support_distance(first, cosines, TEST * TEST), 0, 1e-4);
      if (cosines != first) free(cosines);
      free(a);
      free(b);
      unicon_model_destroy(model);
      unicon_model_destroy(again);
    }
    free(first);
    unicon_options_destroy(options);
  }
  problem_free(&p);
  problem_free(&q);
}

/* Any limit gives a model within it, or the sentence; nothing is left behind. */
static void memory_limit_is_kept(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 7, 500, DX, DY, LATENT, 0.4, &p);
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  for (int kind = 1; kind < KINDS; kind++) {
    unicon_options *options = options_of(s->ctx, kind);
    int made = 0, refused = 0;
    for (uint64_t limit = 1 << 20; made < 1; limit += limit / 3) {
      unicon_ctx *small = NULL;
      unicon_model *model = NULL;
      char text[32];
      assert_int_equal(unicon_ctx_create(&small), UNICON_OK);
      snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
      CHECK_OK(small, unicon_ctx_set(small, "max-mem", text));
      const unicon_status status = unicon_fit(small, &data, NULL, options, &model);
      assert_true(unicon_ctx_memory_peak(small) <= limit);
      if (status == UNICON_OK) {
        made++;
        unicon_model_destroy(model);
      } else {
        refused++;
        assert_int_equal(status, UNICON_ERR_MEMORY);
        assert_null(model);
        assert_non_null(strstr(unicon_ctx_error(small), "max_mem"));
        assert_int_equal(unicon__budget_used(small->arena.budget), 0);
      }
      unicon_ctx_destroy(small);
    }
    if (kind == 1 || kind == 4) assert_true(refused >= 3); /* K alone is 500 x 500 doubles */
    unicon_options_destroy(options);
  }
  problem_free(&p);
}

/* A batch whose pairs are wrong has no share by `robust`, and nothing of it is in the model. */
static void dropped_batches_leave_nothing(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { BATCHES = 6, ROWS = 50, HELD = 80, BAD = 2 };
  problem p;
  int64_t rank[2];
  problem_make(ctx, 9, BATCHES * ROWS + HELD, DX, DY, LATENT, 0.2, &p);
  for (int i = BAD * ROWS; i < BAD * ROWS + ROWS / 2; i++) /* pairs of one batch in reverse */
    for (int k = 0; k < DY; k++) {
      float *other = &p.y[((2 * BAD + 1) * ROWS - 1 - i) * DY + k], held = p.y[i * DY + k];
      p.y[i * DY + k] = *other;
      *other = held;
    }
  const int64_t first = BATCHES * ROWS;
  unicon_rows *x = support_rows(ctx, "x", p.x, first, DX),
              *y = support_rows(ctx, "y", p.y, first, DY);
  unicon_rows *held_x = support_rows(ctx, "held x", p.x + first * DX, HELD, DX);
  unicon_rows *held_y = support_rows(ctx, "held y", p.y + first * DY, HELD, DY);
  const unicon_data train = UNICON_DATA(.x = x, .y = y);
  const unicon_data held = UNICON_DATA(.x = held_x, .y = held_y);
  for (int k = 0; k < 2; k++) {
    unicon_model *model = NULL;
    unicon_options *options =
        support_options(ctx, "kernel", "rbf", "batch", "50", "batch_order", "file", "rank", "8",
                        "aggregate", k ? "robust" : "uniform", NULL);
    CHECK_OK(ctx, unicon_fit(ctx, &train, &held, options, &model));
    const int parts = atoi(unicon_model_meta(model, "parts"));
    double share = 0;
    for (int b = 0; b < parts; b++) {
      char key[32];
      snprintf(key, sizeof key, "share.%d", b);
      share += atof(unicon_model_meta(model, key));
    }
    CHECK_CLOSE(share, 1, 1e-12);
    rank[k] = unicon_model_rank(model);
    assert_int_equal(rank[k], 8 * parts);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  assert_int_equal(rank[0], 8 * BATCHES);
  assert_int_equal(rank[1], 8 * (BATCHES - 1));
  unicon_rows_close(held_y);
  unicon_rows_close(held_x);
  unicon_rows_close(y);
  unicon_rows_close(x);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(fused_cosine_is_the_mean_cosine),
      SCRATCH_TEST(order_inside_a_batch_does_not_matter),
      SCRATCH_TEST(rank_is_that_of_a_part),
      SCRATCH_TEST(dropped_batches_leave_nothing),
      SCRATCH_TEST(linear_is_no_kernel),
      SCRATCH_TEST(files_give_the_same_bits),
      SCRATCH_TEST(threads_do_not_matter),
      SCRATCH_TEST(memory_limit_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
