/* SPDX-License-Identifier: Apache-2.0 */
/* t-SNE against a naive double oracle: affinities, KL and its gradient by central differences; then
 * what a picture must do: clusters apart, neighbours kept, KL below that of its start. */
#include "tsne.h"

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
  (void)state;
  float *z = support_normals(1, N * DIMS);
  tsne t;
  assert_int_equal(tsne_open(N, &t), TSNE_DONE);
  assert_int_equal(tsne_affinities(&t, z, DIMS, 7, NULL, NULL), TSNE_DONE);
  double *wanted = oracle_affinities(z, N, DIMS, 7), total = 0;
  for (int64_t k = 0; k < N * N; k++) {
    CHECK_CLOSE(t.p[k], wanted[k], 2e-4 * wanted[k] + 1e-9);
    total += (double)t.p[k];
  }
  CHECK_CLOSE(total, 1, 1e-5);
  tsne_close(&t);
  free(wanted);
  free(z);
}

/* Central differences of the double oracle; float32 sums of 60 terms of size below 1. */
static void the_gradient_is_right(void **state) {
  (void)state;
  float *z = support_normals(2, N * DIMS);
  double *p = support_doubles(N * N), at[2][N];
  uint64_t draw = 4;
  tsne t;
  assert_int_equal(tsne_open(N, &t), TSNE_DONE);
  assert_int_equal(tsne_affinities(&t, z, DIMS, 5, NULL, NULL), TSNE_DONE);
  for (int i = 0; i < N; i++) {
    t.at[0][i] = (float)support_normal(&draw);
    t.at[1][i] = (float)support_normal(&draw);
    at[0][i] = (double)t.at[0][i];
    at[1][i] = (double)t.at[1][i];
  }
  for (int k = 0; k < N * N; k++) p[k] = (double)t.p[k];
  CHECK_CLOSE(tsne_divergence(&t), oracle_divergence(p, at[0], at[1], N), 1e-5);
  tsne_gradient(&t, 1);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < N; i++) {
      const double h = 1e-4, here = at[k][i];
      at[k][i] = here + h;
      const double above = oracle_divergence(p, at[0], at[1], N);
      at[k][i] = here - h;
      const double below = oracle_divergence(p, at[0], at[1], N);
      at[k][i] = here;
      CHECK_CLOSE(t.change[k][i], (above - below) / (2 * h), 1e-6);
    }
  tsne_close(&t);
  free(p);
  free(z);
}

/* ---- pictures ----------------------------------------------------------------------------- */

static double place(const float *z, int64_t n, int64_t d, double perplexity, float *out) {
  double divergence;
  assert_int_equal(tsne_place(z, n, d, perplexity, NULL, NULL, out, &divergence), TSNE_DONE);
  return divergence;
}

static int64_t nearest(const float *at, int64_t width, int64_t n, int64_t i, double *least) {
  int64_t best = -1;
  *least = INFINITY;
  for (int64_t j = 0; j < n; j++) {
    double square = 0;
    for (int64_t k = 0; k < width; k++) {
      const double gap = (double)at[i * width + k] - (double)at[j * width + k];
      square += gap * gap;
    }
    if (j != i && square < *least) {
      *least = square;
      best = j;
    }
  }
  return best;
}

/* Far from the origin, too, where a float32 dot product would see no distances. */
static void clusters_stay_apart(void **state) {
  (void)state;
  enum { GROUPS = 6, EACH = 40, POINTS = GROUPS * EACH, WIDE = 12 };
  static const float shift[] = {0, 20000};
  float *z = support_normals(3, POINTS * WIDE), *moved = support_floats(POINTS * WIDE);
  float out[POINTS * 2];
  for (int64_t i = 0; i < POINTS; i++) z[i * WIDE + i / EACH] += 8;
  for (int t = 0; t < 2; t++) {
    double least;
    int64_t kept = 0;
    for (int64_t k = 0; k < POINTS * WIDE; k++) moved[k] = z[k] + shift[t];
    const double divergence = place(moved, POINTS, WIDE, 30, out);
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
  (void)state;
  enum { POINTS = 300 };
  float z[POINTS * 3], out[POINTS * 2];
  double gap;
  uint64_t draw = 8;
  int64_t kept = 0;
  for (int64_t i = 0; i < POINTS; i++) {
    const double turn = 1.5 + 9 * support_uniform(&draw);
    z[i * 3] = (float)(turn * cos(turn));
    z[i * 3 + 1] = (float)(turn * sin(turn));
    z[i * 3 + 2] = (float)(6 * support_uniform(&draw));
  }
  const double divergence = place(z, POINTS, 3, 30, out);
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
  tsne t;
  float flat[POINTS * 2];
  assert_true(isnan(place(z, POINTS, 3, 0, flat)));
  assert_int_equal(tsne_open(POINTS, &t), TSNE_DONE);
  assert_int_equal(tsne_affinities(&t, z, 3, 30, NULL, NULL), TSNE_DONE);
  for (int64_t i = 0; i < POINTS; i++) {
    t.at[0][i] = flat[2 * i];
    t.at[1][i] = flat[2 * i + 1];
  }
  assert_true(divergence < 0.8 * tsne_divergence(&t));
  for (int64_t i = 0; i < POINTS; i++) { /* the value returned is that of the places returned */
    t.at[0][i] = out[2 * i];
    t.at[1][i] = out[2 * i + 1];
  }
  CHECK_CLOSE(divergence, tsne_divergence(&t), 1e-12);
  tsne_close(&t);
}

/* PCA: along the axes, by variance, centred. */
static void main_directions_come_first(void **state) {
  (void)state;
  const float z[] = {11, 5, 9, 5, 10, 6, 10, 4, 16, 5, 4, 5};
  float out[12];
  (void)place(z, 6, 2, 0, out);
  for (int i = 0; i < 6; i++) { /* up to a sign */
    CHECK_CLOSE(fabsf(out[2 * i]), fabsf(z[2 * i] - 10), 1e-5);
    CHECK_CLOSE(fabsf(out[2 * i + 1]), fabsf(z[2 * i + 1] - 5), 1e-5);
  }
}

/* ---- promises ----------------------------------------------------------------------------- */

static void few_points_are_placed(void **state) {
  (void)state;
  float *z = support_normals(6, 12), same[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, out[24];
  for (int64_t width = 1; width <= 2; width++)
    for (int64_t n = 1; n <= 6; n++) {
      (void)place(z, n, width, 30, out);
      for (int64_t k = 0; k < 2 * n; k++) assert_true(isfinite(out[k]));
    }
  (void)place(same, 5, 2, 30, out);
  for (int k = 0; k < 10; k++) assert_true(isfinite(out[k]));
  free(z);
}

/* Stops as soon as the share is above that of `user`. */
static int stop_above(void *user, const char *phase, double done, double left) {
  (void)left;
  double *least = user;
  assert_string_equal(phase, "layout");
  assert_true(done >= 0 && done < 1);
  return done > *least;
}

static void it_can_be_stopped(void **state) {
  (void)state;
  float *z = support_normals(7, 100 * 4), out[200];
  double divergence, least[2] = {0, 0.5};
  for (int k = 0; k < 2; k++)
    assert_int_equal(tsne_place(z, 100, 4, 30, stop_above, &least[k], out, &divergence),
                     TSNE_STOPPED);
  free(z);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(affinities_match),           cmocka_unit_test(the_gradient_is_right),
      cmocka_unit_test(clusters_stay_apart),        cmocka_unit_test(neighbours_are_kept),
      cmocka_unit_test(main_directions_come_first), cmocka_unit_test(few_points_are_placed),
      cmocka_unit_test(it_can_be_stopped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
