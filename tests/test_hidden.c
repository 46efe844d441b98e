/* SPDX-License-Identifier: Apache-2.0 */
/* The trained hidden layer: its forward pass against the definition, its gradients against central
 * differences, dropout, and fits from end to end.
 *
 * sum_ik e_ik phi_ik is piecewise linear in W and b, so a central difference is exact up to float32
 * as long as no unit crosses zero within h: rows whose pre-activation comes within 10 h are left
 * out of the sum by e = 0. Float32 sums of about 100 terms near 1 then give 1e-3 after dividing by
 * 2 h = 2e-2. */
#include "solve/hidden.h"
#include "features/mapfit.h"
#include "figures.h"
#include "support.h"

enum { N = 20, D = 7, M = 13 }; /* M: no multiple of the four draws at a time */

typedef struct layer {
  unicon__arena arena;
  unicon_rows *rows;
  float *x;
  unicon__map map;
  unicon__source source;
  unicon__block *frame;
  unicon__hidden hidden;
} layer;

static void layer_open(unicon_ctx *ctx, const char *center, double dropout, layer *l) {
  unicon_options *options = support_options(ctx, "map", "hidden", "features", "13", NULL);
  CHECK_OK(ctx, unicon_options_set(ctx, options, "center", center));
  *l = (layer){.x = support_normals(5, (int64_t)N * D)};
  for (int64_t k = 0; k < (int64_t)N * D; k++) l->x[k] += 0.4f; /* a mean worth taking off */
  l->rows = support_rows(ctx, "x", l->x, N, D);
  l->source = (unicon__source){.rows = l->rows, .count = N};
  unicon__arena_init(&l->arena, ctx->arena.budget);
  l->frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__map_fit(ctx, &l->arena, options, 0, NULL, 0, &l->source, &l->map));
  l->source.map = &l->map;
  if (center[1] == 'n') { /* on */
    l->map.mean = unicon__arena_new(ctx, &l->arena, M, sizeof(float));
    CHECK_OK(ctx, unicon__feature_mean(ctx, &l->source, l->map.mean, NULL));
  }
  CHECK_OK(ctx, unicon__hidden_open(ctx, &l->source, &l->map, N, dropout, 3, 0, &l->hidden));
  unicon_options_destroy(options);
}

static void layer_close(unicon_ctx *ctx, layer *l) {
  unicon__frame_close(ctx, l->frame);
  unicon__arena_release(&l->arena);
  unicon_rows_close(l->rows);
  free(l->x);
}

static const int64_t all_rows[N] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                    10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

/* phi = sqrt(2/m) relu(W x/|x| + b) - mean by the definition, from what the map holds. */
static double phi_of(const layer *l, int64_t row, int64_t unit) {
  double length = 0, sum = (double)l->map.square[unit];
  for (int k = 0; k < D; k++) length += (double)l->x[row * D + k] * (double)l->x[row * D + k];
  for (int k = 0; k < D; k++)
    sum += (double)l->map.base[unit * D + k] * (double)l->x[row * D + k] / sqrt(length);
  const double mean = l->map.mean ? (double)l->map.mean[unit] : 0;
  return sqrt(2.0 / M) * (sum > 0 ? sum : 0) - mean;
}

static void forward_is_the_definition(void **state) {
  scratch *s = *state;
  for (int centred = 0; centred < 2; centred++) {
    layer l;
    layer_open(s->ctx, centred ? "on" : "off", 0, &l);
    for (int moved = 0; moved < 2; moved++) {
      const float *phi = unicon__hidden_forward(&l.hidden, all_rows, N, 0);
      unicon__hidden_publish(&l.hidden);
      float *buffer = support_floats(N * unicon__map_room(&l.map));
      const float *applied = unicon__source_tile(&l.source, NULL, 0, N, buffer);
      for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < M; k++) {
          CHECK_CLOSE(phi[i * M + k], phi_of(&l, i, k), 2e-6);
          CHECK_CLOSE(applied[i * M + k], phi_of(&l, i, k), 2e-6);
        }
      free(buffer);
      /* and again after a step that moves every weight */
      float *d = support_normals(9, (int64_t)N * M);
      unicon__hidden_backward(&l.hidden, d, N, &(unicon__adam_step){1, 0.2, 0.1});
      free(d);
    }
    layer_close(s->ctx, &l);
  }
}

/* sum e phi of the layer as it is. */
static double functional(layer *l, const float *e, int64_t step) {
  const float *phi = unicon__hidden_forward(&l->hidden, all_rows, N, step);
  double sum = 0;
  for (int64_t k = 0; k < (int64_t)N * M; k++) sum += (double)e[k] * (double)phi[k];
  return sum;
}

/* Zero where the unit is within `near` of its kink. */
static void leave_out_kinks(layer *l, double near, float *e) {
  for (int64_t i = 0; i < N; i++)
    for (int64_t k = 0; k < M; k++) {
      double sum = (double)l->hidden.b[k];
      for (int j = 0; j < D; j++)
        sum += (double)l->hidden.w[k * D + j] * (double)l->hidden.u[i * D + j];
      if (fabs(sum) < near) e[i * M + k] = 0;
    }
}

static void gradients_are_differences(void **state) {
  scratch *s = *state;
  const float h = 1e-2f;
  for (int dropped = 0; dropped < 2; dropped++) {
    layer l;
    layer_open(s->ctx, "on", dropped ? 0.4 : 0, &l);
    float *e = support_normals(11, (int64_t)N * M);
    (void)functional(&l, e, 1);
    leave_out_kinks(&l, 10 * (double)h, e);
    (void)functional(&l, e, 1);
    float w[M * D], b[M];
    memcpy(w, l.hidden.w, sizeof w);
    memcpy(b, l.hidden.b, sizeof b);
    unicon__hidden_backward(&l.hidden, e, N, &(unicon__adam_step){1, 0.1, 0});
    for (int k = 0; k < M * D + M; k++) { /* weights, then biases */
      memcpy(l.hidden.w, w, sizeof w);
      memcpy(l.hidden.b, b, sizeof b);
      float *at = k < M * D ? &l.hidden.w[k] : &l.hidden.b[k - M * D];
      const float held = *at;
      *at = held + h;
      const double up = functional(&l, e, 1);
      *at = held - h;
      const double down = functional(&l, e, 1);
      const float found = k < M * D ? l.hidden.gradient_w[k] : l.hidden.gradient_b[k - M * D];
      CHECK_CLOSE(found, (up - down) / (2 * (double)h), 1e-3);
    }
    free(e);
    layer_close(s->ctx, &l);
  }
}

/* The first step of Adam goes `rate` against the sign of the gradient, after the decay. */
static void a_step_goes_downhill(void **state) {
  scratch *s = *state;
  layer l;
  layer_open(s->ctx, "on", 0, &l);
  float *e = support_normals(13, (int64_t)N * M);
  const double before = functional(&l, e, 1);
  float w[M * D];
  memcpy(w, l.hidden.w, sizeof w);
  unicon__hidden_backward(&l.hidden, e, N, &(unicon__adam_step){1, 1e-3, 0.5});
  for (int k = 0; k < M * D; k++) {
    const double g = (double)l.hidden.gradient_w[k];
    if (fabs(g) > 1e-2)
      CHECK_CLOSE(l.hidden.w[k], (double)w[k] * (1 - 5e-4) - (g > 0 ? 1e-3 : -1e-3), 1e-4);
  }
  assert_true(functional(&l, e, 1) < before);
  free(e);
  layer_close(s->ctx, &l);
}

/* Every unit is kept with probability 1-P and scaled by 1/(1-P): the mean over many draws is the
 * value without dropout. 4000 draws of a Bernoulli know it to 1.6 % at one sigma; 6 sigma. */
static void dropout_keeps_the_mean(void **state) {
  scratch *s = *state;
  layer l, plain;
  enum { DRAWS = 4000 };
  layer_open(s->ctx, "off", 0.5, &l);
  layer_open(s->ctx, "off", 0, &plain);
  double *mean = support_doubles((int64_t)N * M);
  int64_t zeros = 0, active = 0;
  const float *want = unicon__hidden_forward(&plain.hidden, all_rows, N, 0);
  for (int64_t step = 0; step < DRAWS; step++) {
    const float *phi = unicon__hidden_forward(&l.hidden, all_rows, N, step);
    for (int64_t k = 0; k < (int64_t)N * M; k++) {
      mean[k] += (double)phi[k] / DRAWS;
      active += want[k] > 0;
      zeros += want[k] > 0 && phi[k] == 0;
    }
  }
  CHECK_CLOSE((double)zeros / (double)active, 0.5, 0.005);
  for (int64_t k = 0; k < (int64_t)N * M; k++)
    CHECK_CLOSE(mean[k], want[k], 6 * 0.0159 * (double)want[k] + 1e-6);
  free(mean);
  layer_close(s->ctx, &plain);
  layer_close(s->ctx, &l);
}

/* What a row leaves out depends on its number and the step alone, not on the rows beside it. */
static void dropout_is_a_matter_of_the_row(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  layer l;
  layer_open(ctx, "on", 0.5, &l);
  float *together = support_floats((int64_t)N * M);
  memcpy(together, unicon__hidden_forward(&l.hidden, all_rows, N, 5),
         (size_t)N * M * sizeof *together);
  for (int64_t i = 0; i < N; i++) {
    const float *alone = unicon__hidden_forward(&l.hidden, &i, 1, 5);
    for (int64_t k = 0; k < M; k++) CHECK_CLOSE(alone[k], together[i * M + k], 1e-6);
  }
  free(together);
  layer_close(ctx, &l);
}

static void the_best_layer_comes_back(void **state) {
  scratch *s = *state;
  layer l;
  layer_open(s->ctx, "on", 0, &l);
  float base[M * D], bias[M];
  memcpy(base, l.map.base, sizeof base);
  memcpy(bias, l.map.square, sizeof bias);
  float *e = support_normals(17, (int64_t)N * M);
  (void)functional(&l, e, 1);
  unicon__hidden_backward(&l.hidden, e, N, &(unicon__adam_step){1, 0.3, 0});
  unicon__hidden_publish(&l.hidden);
  assert_true(memcmp(base, l.map.base, sizeof base) != 0);
  unicon__hidden_publish_best(&l.hidden);
  assert_memory_equal(base, l.map.base, sizeof base);
  for (int k = 0; k < M; k++) CHECK_CLOSE(bias[k], l.map.square[k], 1e-6);
  free(e);
  layer_close(s->ctx, &l);
}

/* ---- fits --------------------------------------------------------------------------------- */

/* Points on a circle; y is the doubled angle, which no linear map of x can tell. */
static void circle(uint64_t seed, int64_t n, float *x, float *y) {
  for (int64_t i = 0; i < n; i++) {
    const double angle = 6.283185307179586 * support_uniform(&seed);
    x[2 * i] = (float)cos(angle);
    x[2 * i + 1] = (float)sin(angle);
    y[2 * i] = (float)cos(2 * angle);
    y[2 * i + 1] = (float)sin(2 * angle);
  }
}

/* Median rank of the true partner among n, from x to y. */
static double median_rank(unicon_ctx *ctx, const unicon_model *model, const unicon_rows *x,
                          const unicon_rows *y) {
  figures to_y, to_x;
  const unicon_view vx = UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
                    vy = UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y);
  CHECK_OK(ctx, figures_evaluate(ctx, &vx, &vy, NULL, NULL, &to_y, &to_x));
  return to_y.value[UNICON__MEDIAN_RANK];
}

static void fits_what_no_line_can(void **state) {
  scratch *s = *state;
  enum { COUNT = 400 };
  float *data = support_floats(8 * COUNT);
  circle(21, COUNT, data, data + 2 * COUNT);
  circle(22, COUNT, data + 4 * COUNT, data + 6 * COUNT);
  unicon_rows *row[4];
  for (int k = 0; k < 4; k++) row[k] = support_rows(s->ctx, "rows", data + 2 * COUNT * k, COUNT, 2);
  unicon_options *linear = support_options(s->ctx, "refine", "30", "refine_batch", "100", NULL);
  unicon_options *hidden =
      support_options(s->ctx, "map", "hidden", "features", "64", "start", "random", "metric",
                      "none", "refine", "30", "refine_batch", "100", "rank", "8", NULL);
  unicon_options *warm = support_options(s->ctx, "map", "hidden", "features", "64", "refine", "10",
                                         "refine_batch", "100", "rank", "8", NULL);
  unicon_model *a = support_fit(s->ctx, row[0], row[1], NULL, linear);
  unicon_model *b = support_fit(s->ctx, row[0], row[1], NULL, hidden);
  unicon_model *c = support_fit(s->ctx, row[0], row[1], NULL, warm);
  assert_true(median_rank(s->ctx, a, row[2], row[3]) > COUNT / 5);
  assert_true(median_rank(s->ctx, b, row[2], row[3]) < COUNT / 20);
  assert_true(median_rank(s->ctx, c, row[2], row[3]) < COUNT / 20);

  /* a file keeps it, and the same fit gives the same bytes */
  unicon_model *again = support_fit(s->ctx, row[0], row[1], NULL, hidden), *loaded = NULL;
  const char *path = scratch_path(s, "hidden.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, b, path));
  CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &loaded));
  double *cos_b = support_cosines(s->ctx, b, row[2], row[3]);
  double *cos_loaded = support_cosines(s->ctx, loaded, row[2], row[3]);
  double *cos_again = support_cosines(s->ctx, again, row[2], row[3]);
  assert_true(support_distance(cos_b, cos_loaded, COUNT * COUNT) == 0);
  assert_true(support_distance(cos_b, cos_again, COUNT * COUNT) == 0);
  assert_string_equal(unicon_model_meta(loaded, "x.map"), "hidden");
  free(cos_again);
  free(cos_loaded);
  free(cos_b);
  unicon_model *model[] = {a, b, c, again, loaded};
  for (size_t k = 0; k < sizeof model / sizeof *model; k++) unicon_model_destroy(model[k]);
  unicon_options_destroy(warm);
  unicon_options_destroy(hidden);
  unicon_options_destroy(linear);
  for (int k = 0; k < 4; k++) unicon_rows_close(row[k]);
  free(data);
}

static void a_shared_encoder_is_refused(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 3, 50, 4, 4, 3, 0.1, &p);
  unicon_options *options =
      support_options(s->ctx, "map", "hidden", "features", "8", "shared_encoder", "on", NULL);
  unicon_model *model = NULL;
  const unicon_data data = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  scratch_failed(s, unicon_fit(s->ctx, &data, NULL, options, &model), UNICON_ERR_UNSUPPORTED,
                 "map hidden", "shared encoder");
  unicon_options_destroy(options);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(forward_is_the_definition),      SCRATCH_TEST(gradients_are_differences),
      SCRATCH_TEST(a_step_goes_downhill),           SCRATCH_TEST(dropout_keeps_the_mean),
      SCRATCH_TEST(dropout_is_a_matter_of_the_row), SCRATCH_TEST(the_best_layer_comes_back),
      SCRATCH_TEST(fits_what_no_line_can),          SCRATCH_TEST(a_shared_encoder_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
