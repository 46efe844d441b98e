/* SPDX-License-Identifier: Apache-2.0 */
/* t-SNE against a naive double oracle: affinities, KL and its gradient by central differences; then
 * what a picture must do: clusters apart, neighbours kept, KL below that of its start. */
#include "use/tsne.h"
#include "support.h"

enum { N = 60, DIMS = 5 };

/* ---- the oracle --------------------------------------------------------------------------- */

/* p from the definition: bisection in double until the entropy is right. */
static double *oracle_affinities(const float *z, int64_t n, int64_t d, double perplexity) {
  double *p = support_doubles(n * n), *both = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++) {
    double low = 0, high = 1e6;
    for (int k = 0; k < 200; k++) {
      const double beta = (low + high) / 2;
      double sum = 0, entropy = 0;
      for (int64_t j = 0; j < n; j++) {
        double square = 0;
        for (int64_t t = 0; t < d; t++) {
          const double gap = (double)z[i * d + t] - (double)z[j * d + t];
          square += gap * gap;
        }
        p[i * n + j] = j == i ? 0 : exp(-beta * square);
        sum += p[i * n + j];
      }
      for (int64_t j = 0; j < n; j++) {
        p[i * n + j] /= sum > 0 ? sum : 1;
        if (p[i * n + j] > 0) entropy -= p[i * n + j] * log(p[i * n + j]);
      }
      if (sum > 0 && entropy > log(perplexity))
        low = beta;
      else
        high = beta;
    }
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      both[i * n + j] = (p[i * n + j] + p[j * n + i]) / (2 * (double)n);
  free(p);
  return both;
}

/* KL of places (x, y) from the definition. */
static double oracle_divergence(const double *p, const double *x, const double *y, int64_t n) {
  double z = 0, sum = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      if (i != j) z += 1 / (1 + pow(x[i] - x[j], 2) + pow(y[i] - y[j], 2));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const double q = 1 / (1 + pow(x[i] - x[j], 2) + pow(y[i] - y[j], 2)) / z;
      if (i != j && p[i * n + j] > 0) sum += p[i * n + j] * log(p[i * n + j] / q);
    }
  return sum;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* The entropy is met to 1e-5, and float32 distances are off by 1e-6 of beta D: together 1e-4. */
static void affinities_match(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  float *z = support_normals(1, N * DIMS);
  unicon__tsne t;
  CHECK_OK(ctx, unicon__tsne_open(ctx, N, &t));
  CHECK_OK(ctx, unicon__tsne_affinities(ctx, &t, z, DIMS, 7));
  double *wanted = oracle_affinities(z, N, DIMS, 7), total = 0;
  for (int64_t k = 0; k < N * N; k++) {
    CHECK_CLOSE(t.p[k], wanted[k], 2e-4 * wanted[k] + 1e-9);
    total += (double)t.p[k];
  }
  CHECK_CLOSE(total, 1, 1e-5);
  free(wanted);
  free(z);
  unicon__frame_close(ctx, frame);
}

/* Central differences of the double oracle; float32 sums of 60 terms of size below 1. */
static void the_gradient_is_right(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  float *z = support_normals(2, N * DIMS);
  double *p = support_doubles(N * N), place[2][N];
  uint64_t draw = 4;
  unicon__tsne t;
  CHECK_OK(ctx, unicon__tsne_open(ctx, N, &t));
  CHECK_OK(ctx, unicon__tsne_affinities(ctx, &t, z, DIMS, 5));
  for (int i = 0; i < N; i++) {
    t.x[i] = (float)support_normal(&draw);
    t.y[i] = (float)support_normal(&draw);
    place[0][i] = (double)t.x[i];
    place[1][i] = (double)t.y[i];
  }
  for (int k = 0; k < N * N; k++) p[k] = (double)t.p[k];
  CHECK_CLOSE(unicon__tsne_divergence(&t), oracle_divergence(p, place[0], place[1], N), 1e-5);
  unicon__tsne_gradient(ctx, &t, 1);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < N; i++) {
      const double h = 1e-4, at = place[k][i];
      place[k][i] = at + h;
      const double above = oracle_divergence(p, place[0], place[1], N);
      place[k][i] = at - h;
      const double below = oracle_divergence(p, place[0], place[1], N);
      place[k][i] = at;
      CHECK_CLOSE(t.change[k][i], (above - below) / (2 * h), 1e-6);
    }
  free(p);
  free(z);
  unicon__frame_close(ctx, frame);
}

/* ---- pictures ----------------------------------------------------------------------------- */

static int64_t nearest(const float *place, int64_t width, int64_t n, int64_t i, double *least) {
  int64_t best = -1;
  *least = INFINITY;
  for (int64_t j = 0; j < n; j++) {
    double square = 0;
    for (int64_t k = 0; k < width; k++) {
      const double gap = (double)place[i * width + k] - (double)place[j * width + k];
      square += gap * gap;
    }
    if (j != i && square < *least) {
      *least = square;
      best = j;
    }
  }
  return best;
}

/* Far from the origin, too, where a float32 dot product would see no distances, and where squares
 * of the points are no float32 or vanish. */
static void clusters_stay_apart(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { GROUPS = 6, EACH = 40, POINTS = GROUPS * EACH, WIDE = 12 };
  static const struct {
    float shift, scale;
  } places[] = {{0, 1}, {20000, 1}, {0, 1e25f}, {0, 1e-25f}};
  float *z = support_normals(3, POINTS * WIDE), *moved = support_floats(POINTS * WIDE);
  float out[POINTS * 2];
  for (int64_t i = 0; i < POINTS; i++) z[i * WIDE + i / EACH] += 8;
  for (size_t t = 0; t < sizeof places / sizeof *places; t++) {
    double divergence = 0, least;
    int64_t kept = 0;
    for (int64_t k = 0; k < POINTS * WIDE; k++)
      moved[k] = (z[k] + places[t].shift) * places[t].scale;
    CHECK_OK(ctx, unicon_layout(ctx, moved, POINTS, WIDE, NULL, out, &divergence));
    for (int64_t i = 0; i < POINTS; i++)
      kept += nearest(out, 2, POINTS, i, &least) / EACH == i / EACH;
    assert_int_equal(kept, POINTS);
    assert_true(divergence > 0 && divergence < 1.5);
  }
  free(moved);
  free(z);
}

/* Points on a curled strip: a point's nearest neighbour stays among its nearest in the picture, and
 * KL is far below that of the PCA picture of the same size. */
static void neighbours_are_kept(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  enum { POINTS = 300 };
  float z[POINTS * 3], out[POINTS * 2];
  double divergence, gap, least;
  uint64_t draw = 8;
  int64_t kept = 0;
  for (int64_t i = 0; i < POINTS; i++) {
    const double turn = 1.5 + 9 * support_uniform(&draw);
    z[i * 3] = (float)(turn * cos(turn));
    z[i * 3 + 1] = (float)(turn * sin(turn));
    z[i * 3 + 2] = (float)(6 * support_uniform(&draw));
  }
  CHECK_OK(ctx, unicon_layout(ctx, z, POINTS, 3, NULL, out, &divergence));
  for (int64_t i = 0; i < POINTS; i++) {
    const int64_t true_one = nearest(z, 3, POINTS, i, &gap);
    int closer = 0;
    for (int64_t j = 0; j < POINTS; j++) {
      const double a = (double)out[2 * i] - (double)out[2 * j],
                   b = (double)out[2 * i + 1] - (double)out[2 * j + 1],
                   c = (double)out[2 * i] - (double)out[2 * true_one],
                   d = (double)out[2 * i + 1] - (double)out[2 * true_one + 1];
      closer += j != i && j != true_one && a * a + b * b < c * c + d * d;
    }
    kept += closer < 10;
  }
  assert_true(kept > POINTS * 9 / 10);
  unicon_options *pca = support_options(ctx, "layout", "pca", NULL);
  unicon__tsne t;
  float flat[POINTS * 2];
  CHECK_OK(ctx, unicon_layout(ctx, z, POINTS, 3, pca, flat, &least));
  assert_true(isnan(least));
  unicon_options_destroy(pca);
  CHECK_OK(ctx, unicon__tsne_open(ctx, POINTS, &t));
  CHECK_OK(ctx, unicon__tsne_affinities(ctx, &t, z, 3, 30));
  for (int64_t i = 0; i < POINTS; i++) {
    t.x[i] = flat[2 * i];
    t.y[i] = flat[2 * i + 1];
  }
  assert_true(divergence < 0.8 * unicon__tsne_divergence(&t));
  for (int64_t i = 0; i < POINTS; i++) { /* the value returned is that of the places returned */
    t.x[i] = out[2 * i];
    t.y[i] = out[2 * i + 1];
  }
  /* the affinities here are of points that were not centred: float32 squares of about 10 differ by
   * 1e-6, and so do their exponentials */
  CHECK_CLOSE(divergence, unicon__tsne_divergence(&t), 1e-5);
  unicon__frame_close(ctx, frame);
}

/* PCA: along the axes, by variance, centred. */
static void main_directions_come_first(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const float z[] = {11, 5, 9, 5, 10, 6, 10, 4, 16, 5, 4, 5};
  float out[12];
  unicon_options *pca = support_options(ctx, "layout", "pca", NULL);
  CHECK_OK(ctx, unicon_layout(ctx, z, 6, 2, pca, out, NULL));
  for (int i = 0; i < 6; i++) { /* up to a sign */
    CHECK_CLOSE(fabsf(out[2 * i]), fabsf(z[2 * i] - 10), 1e-5);
    CHECK_CLOSE(fabsf(out[2 * i + 1]), fabsf(z[2 * i + 1] - 5), 1e-5);
  }
  unicon_options_destroy(pca);
}

/* ---- promises ----------------------------------------------------------------------------- */

static void threads_do_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { POINTS = 203, WIDE = 40 };
  float *z = support_normals(5, POINTS * WIDE), one[POINTS * 2], three[POINTS * 2];
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1"));
  CHECK_OK(ctx, unicon_layout(ctx, z, POINTS, WIDE, NULL, one, NULL));
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "3"));
  CHECK_OK(ctx, unicon_layout(ctx, z, POINTS, WIDE, NULL, three, NULL));
  assert_memory_equal(one, three, sizeof one);
  free(z);
}

static void few_points_are_placed(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  float *z = support_normals(6, 12), same[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, out[24];
  for (int64_t width = 1; width <= 2; width++)
    for (int64_t n = 1; n <= 6; n++) {
      CHECK_OK(ctx, unicon_layout(ctx, z, n, width, NULL, out, NULL));
      for (int64_t k = 0; k < 2 * n; k++) assert_true(isfinite(out[k]));
    }
  CHECK_OK(ctx, unicon_layout(ctx, same, 5, 2, NULL, out, NULL));
  for (int k = 0; k < 10; k++) assert_true(isfinite(out[k]));
  free(z);
}

static int stop_at_once(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)phase;
  *(double *)user = done;
  return done > 0;
}

static void mistakes_and_cancel(void **state) {
  scratch *s = *state;
  float *z = support_normals(7, 100 * 4), out[200];
  double seen = -1;
  unicon_ctx_set_progress(s->ctx, stop_at_once, &seen);
  s->ctx->progress_interval = 0;
  scratch_failed(s, unicon_layout(s->ctx, z, 100, 4, NULL, out, NULL), UNICON_ERR_CANCELLED, "",
                 "");
  assert_true(seen > 0 && seen < 1);
  unicon_ctx_set_progress(s->ctx, NULL, NULL);
  z[17] = NAN;
  scratch_failed(s, unicon_layout(s->ctx, z, 100, 4, NULL, out, NULL), UNICON_ERR_DATA, "point 4",
                 "finite");
  scratch_failed(s, unicon_layout(s->ctx, z, 0, 4, NULL, out, NULL), UNICON_ERR_ARGUMENT, "layout",
                 "0 by 4");
  free(z);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(affinities_match),           SCRATCH_TEST(the_gradient_is_right),
      SCRATCH_TEST(clusters_stay_apart),        SCRATCH_TEST(neighbours_are_kept),
      SCRATCH_TEST(main_directions_come_first), SCRATCH_TEST(threads_do_not_matter),
      SCRATCH_TEST(few_points_are_placed),      SCRATCH_TEST(mistakes_and_cancel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
