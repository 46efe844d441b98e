/* SPDX-License-Identifier: Apache-2.0 */
/* Adam against its definition in double, step by step:
 *
 *     m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
 *     x = x (1 - rate decay) - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + floor)
 *
 * with b1 = .9, b2 = .999; floor is 1e-4 of the rms of the gradient for vectors, 1e-8 for a number.
 * Tolerance: float32 in a few operations on numbers around 1, over 30 steps: 1e-5. */
#include "solve/adam.h"
#include "support.h"

enum { SIZE = 37, STEPS = 30 };

/* One entry by the definition. */
static double plain_step(double gradient, double *m, double *v, int number, double rate,
                         double decay, double floor, double value) {
  *m = 0.9 * *m + 0.1 * gradient;
  *v = 0.999 * *v + 0.001 * gradient * gradient;
  const double mean = *m / (1 - pow(0.9, number)), square = *v / (1 - pow(0.999, number));
  return value * (1 - rate * decay) - rate * mean / (sqrt(square) + floor);
}

static void vectors_follow_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__adam adam;
  float *value = support_normals(3, SIZE), gradient[SIZE];
  double plain[SIZE], m[SIZE] = {0}, v[SIZE] = {0};
  uint64_t draw = 8;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__adam_open(ctx, SIZE, &adam));
  for (int k = 0; k < SIZE; k++) plain[k] = (double)value[k];
  for (int t = 1; t <= STEPS; t++) {
    const unicon__adam_step step = {t, 0.05 / t, 0.1};
    double square = 0;
    for (int k = 0; k < SIZE; k++) {
      gradient[k] = (float)(plain[k] + 0.3 * support_normal(&draw));
      square += (double)gradient[k] * (double)gradient[k] / SIZE;
    }
    unicon__adam_take(&adam, &step, gradient, value);
    for (int k = 0; k < SIZE; k++) {
      plain[k] = plain_step((double)gradient[k], &m[k], &v[k], t, step.rate, step.decay,
                            1e-4 * sqrt(square), plain[k]);
      CHECK_CLOSE(value[k], plain[k], 1e-5);
    }
  }
  unicon__frame_close(ctx, frame);
  free(value);
}

static void numbers_follow_the_definition(void **state) {
  (void)state;
  double moment[2] = {0}, m = 0, v = 0, value = 1.5, plain = 1.5;
  uint64_t draw = 9;
  for (int t = 1; t <= STEPS; t++) {
    const unicon__adam_step step = {t, 0.1, 0};
    const double gradient = 3 * plain + support_normal(&draw);
    value = unicon__adam_scalar(&step, gradient, moment, value);
    plain = plain_step(gradient, &m, &v, t, step.rate, 0, 1e-8, plain);
    CHECK_CLOSE(value, plain, 1e-12);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(vectors_follow_the_definition),
      SCRATCH_TEST(numbers_follow_the_definition),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
