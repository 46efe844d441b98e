/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the published vectors of Philox, and the laws of what is made of them. */
#include "base/rng.h"
#include "support.h"

/* kat_vectors of Random123, philox4x32 with 10 rounds: counter words, key words, result. */
static void known_answers(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], result[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t c = 0; c < sizeof known / sizeof *known; c++) {
    const uint32_t *w = known[c].counter, *k = known[c].key;
    uint32_t out[4];
    unicon__philox(k[0] | (uint64_t)k[1] << 32, w[3], w[0] | (uint64_t)w[1] << 32, w[2], out);
    assert_memory_equal(out, known[c].result, sizeof out);
  }
}

/* Five standard deviations of the mean of n draws of variance v: wrong once in two million. */
static double five_sigma(double v, double n) {
  return 5 * sqrt(v / n);
}

static void uniforms_fill_the_open_interval(void **state) {
  (void)state;
  enum { N = 200000 };
  double sum = 0, squares = 0, low = 1, high = 0;
  for (uint64_t k = 0; k < N; k++) {
    const double u = unicon__uniform(11, UNICON__STREAM_SKETCH, k, 0);
    assert_true(u > 0 && u < 1);
    sum += u;
    squares += u * u;
    low = u < low ? u : low;
    high = u > high ? u : high;
  }
  CHECK_CLOSE(sum / N, 0.5, five_sigma(1.0 / 12, N));
  CHECK_CLOSE(squares / N, 1.0 / 3, five_sigma(4.0 / 45, N));
  assert_true(low < 20.0 / N && high > 1 - 20.0 / N); /* missed with probability e^-20 */
}

static void normals_have_their_moments(void **state) {
  (void)state;
  enum { ROWS = 2000, WIDTH = 101 };
  static float row[ROWS][WIDTH];
  const double n = (double)ROWS * WIDTH;
  double m[5] = {0}, neighbours = 0, rows = 0;
  for (int i = 0; i < ROWS; i++) {
    unicon__normals(3, UNICON__STREAM_START, (uint64_t)i, WIDTH, row[i]);
    for (int k = 0; k < WIDTH; k++) {
      const double z = (double)row[i][k];
      for (int p = 1; p <= 4; p++) m[p] += pow(z, p) / n;
      if (k) neighbours += z * (double)row[i][k - 1] / n;
      if (i) rows += z * (double)row[i - 1][k] / n;
    }
  }
  CHECK_CLOSE(m[1], 0, five_sigma(1, n));
  CHECK_CLOSE(m[2], 1, five_sigma(2, n));
  CHECK_CLOSE(m[3], 0, five_sigma(15, n));
  CHECK_CLOSE(m[4], 3, five_sigma(96, n));
  CHECK_CLOSE(neighbours, 0, five_sigma(1, n));
  CHECK_CLOSE(rows, 0, five_sigma(1, n));
}

static void draws_depend_on_their_place_alone(void **state) {
  (void)state;
  float many[9], few[4], other[9];
  unicon__normals(3, 5, 42, 9, many);
  unicon__normals(3, 5, 42, 4, few);
  assert_memory_equal(many, few, sizeof few);
  unicon__normals(3, 5, 42, 3, few); /* an odd count leaves the rest alone */
  assert_memory_equal(many, few, sizeof few);
  const struct {
    uint64_t seed;
    uint32_t stream;
    uint64_t i;
  } changed[] = {
      {4, 5, 42}, {3, 6, 42}, {3, 5, 43}, {3 + (1ull << 32), 5, 42}, {3, 5, 42 + (1ull << 32)}};
  for (size_t c = 0; c < sizeof changed / sizeof *changed; c++) {
    unicon__normals(changed[c].seed, changed[c].stream, changed[c].i, 9, other);
    int same = 0;
    for (int k = 0; k < 9; k++) same += other[k] == many[k];
    assert_int_equal(same, 0);
  }
}

static void below_is_even(void **state) {
  (void)state;
  enum { N = 70000, SIDES = 7 };
  double count[SIDES] = {0};
  for (uint64_t k = 0; k < N; k++) {
    const int64_t side = unicon__below(1, UNICON__STREAM_BOOTSTRAP, k, 3, SIDES);
    assert_true(side >= 0 && side < SIDES);
    count[side]++;
    assert_int_equal(unicon__below(1, UNICON__STREAM_BOOTSTRAP, k, 3, 1), 0);
  }
  for (int s = 0; s < SIDES; s++)
    CHECK_CLOSE(count[s] / N, 1.0 / SIDES, five_sigma((1.0 / SIDES) * (1 - 1.0 / SIDES), N));
}

static void permutations_permute(void **state) {
  (void)state;
  int64_t order[1000], again[1000];
  static const int64_t sizes[] = {0, 1, 2, 3, 17, 1000};
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    unsigned char seen[1000] = {0};
    unicon__permutation(5, UNICON__STREAM_BATCH, 0, sizes[c], order);
    for (int64_t k = 0; k < sizes[c]; k++) {
      assert_true(order[k] >= 0 && order[k] < sizes[c]);
      assert_false(seen[order[k]]);
      seen[order[k]] = 1;
    }
  }
  unicon__permutation(5, UNICON__STREAM_BATCH, 0, 1000, again);
  assert_memory_equal(order, again, sizeof order);
  unicon__permutation(5, UNICON__STREAM_BATCH, 1, 1000, again);
  assert_memory_not_equal(order, again, sizeof order);
  unicon__permutation(6, UNICON__STREAM_BATCH, 0, 1000, again);
  assert_memory_not_equal(order, again, sizeof order);
  /* All 24 orders of 4 things are equally likely. */
  enum { ROUNDS = 24000 };
  double count[256] = {0};
  for (uint32_t round = 0; round < ROUNDS; round++) {
    unicon__permutation(9, UNICON__STREAM_SPLIT, round, 4, order);
    count[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]]++;
  }
  int kinds = 0;
  for (int k = 0; k < 256; k++) {
    if (count[k] == 0) continue;
    kinds++;
    CHECK_CLOSE(count[k] / ROUNDS, 1.0 / 24, five_sigma(1.0 / 24, ROUNDS));
  }
  assert_int_equal(kinds, 24);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(uniforms_fill_the_open_interval),
      cmocka_unit_test(normals_have_their_moments),
      cmocka_unit_test(draws_depend_on_their_place_alone),
      cmocka_unit_test(below_is_even),
      cmocka_unit_test(permutations_permute),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
