/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion to float32 and to float16 against formulas written down independently. */
#include "scratch.h"

#include <math.h>

#include "linalg/convert.h"

enum { HALVES = 65536 };

/* (-1)^sign * 2^(e-15) * (1 + m/1024), 2^-14 * m/1024 for e = 0, inf and NaN for e = 31. */
static double half_value(unsigned bits) {
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  const int e = (int)((bits >> 10) & 31u);
  const double m = bits & 1023u;
  if (e == 31) return m > 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (e == 0 ? ldexp(m, -24) : ldexp(1024.0 + m, e - 25));
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void every_half(void **state) {
  (void)state;
  static uint16_t half[HALVES];
  static float plain[HALVES], fast[HALVES], chosen[HALVES];
  for (unsigned k = 0; k < HALVES; k++) half[k] = (uint16_t)k;
  const unsigned char *data = (const unsigned char *)half;
  unicon__from_half_plain(data, 2, HALVES, plain);
  unicon__convert(UNICON_F16, data, 2, HALVES, chosen);
  const bool has_fast = unicon__from_half_fast(data, HALVES, fast);
  for (unsigned k = 0; k < HALVES; k++) {
    const double expected = half_value(k);
    if (isnan(expected))
      assert_true(isnan(plain[k]));
    else
      assert_true(bits_of(plain[k]) == bits_of((float)expected));
    if (has_fast) assert_int_equal(bits_of(fast[k]), bits_of(plain[k]));
    assert_int_equal(bits_of(chosen[k]), bits_of(plain[k]));
  }
}

/* Halves come back; the middle of two neighbours goes to the even one, what is a hair beside it
 * to the nearer one. */
static void to_half_rounds(void **state) {
  (void)state;
  for (unsigned k = 0; k < HALVES; k++) {
    const float value = (float)half_value(k);
    uint16_t back;
    unicon__to_half(&value, 1, &back);
    if (isnan(value))
      assert_true((back & 0x7c00u) == 0x7c00u && (back & 0x3ffu));
    else
      assert_int_equal(back, k);
  }
  for (unsigned k = 0; k < 0x7c00u; k++) {
    const double next = k + 1 == 0x7c00u ? 65536.0 : half_value(k + 1);
    const float middle = (float)((half_value(k) + next) / 2); /* exact in float32 */
    const float in[6] = {middle,  nextafterf(middle, 0.0f),  nextafterf(middle, INFINITY),
                         -middle, -nextafterf(middle, 0.0f), -nextafterf(middle, INFINITY)};
    const unsigned even = k + (k & 1u);
    const unsigned expected[3] = {even, k, k + 1};
    uint16_t out[6];
    unicon__to_half(in, 6, out);
    for (int c = 0; c < 6; c++) assert_int_equal(out[c], expected[c % 3] | (c < 3 ? 0u : 0x8000u));
  }
  const float extreme[4] = {INFINITY, -INFINITY, 1e30f, 1e-30f};
  uint16_t out[4];
  unicon__to_half(extreme, 4, out);
  assert_int_equal(out[0], 0x7c00);
  assert_int_equal(out[1], 0xfc00);
  assert_int_equal(out[2], 0x7c00);
  assert_int_equal(out[3], 0);
}

/* Puts element k of `dtype`, the number k - 9 (or k where there is no sign), at p. */
static void put(unicon_dtype dtype, int k, unsigned char *p) {
  const float value = dtype == UNICON_U8 ? (float)k : (float)(k - 9);
  const double wide = value;
  uint16_t half;
  switch (dtype) {
    case UNICON_F16:
      unicon__to_half(&value, 1, &half);
      memcpy(p, &half, 2);
      break;
    case UNICON_BF16:
      half = (uint16_t)(bits_of(value) >> 16);
      memcpy(p, &half, 2);
      break;
    case UNICON_F32:
      memcpy(p, &value, 4);
      break;
    case UNICON_F64:
      memcpy(p, &wide, 8);
      break;
    case UNICON_I8:
      *p = (unsigned char)(k - 9);
      break;
    case UNICON_U8:
      *p = (unsigned char)k;
      break;
  }
}

/* All types at odd addresses with strides forwards, backwards, wide and zero. */
static void every_stride(void **state) {
  (void)state;
  enum { COUNT = 37 };
  for (int type = UNICON_F16; type <= UNICON_U8; type++) {
    const unicon_dtype dtype = (unicon_dtype)type;
    const int64_t size = unicon__dtype_size(dtype);
    const int64_t strides[] = {size, 2 * size + 3, -size, -3 * size - 1, 0};
    for (int t = 0; t < 5; t++) {
      unsigned char memory[4 * COUNT * 8 + 64] = {0};
      float out[COUNT + 1] = {0};
      const int64_t far = strides[t] < 0 ? -strides[t] * (COUNT - 1) : 0;
      unsigned char *data = memory + 1 + far;
      for (int k = 0; k < COUNT; k++) put(dtype, k, data + k * strides[t]);
      out[COUNT] = 77.0f;
      unicon__convert(dtype, data, strides[t], COUNT, out);
      for (int k = 0; k < COUNT; k++) {
        const int which = strides[t] ? k : COUNT - 1;
        assert_true(out[k] == (float)(dtype == UNICON_U8 ? which : which - 9));
      }
      assert_true(out[COUNT] == 77.0f);
    }
  }
}

static void special_values(void **state) {
  (void)state;
  const double wide[4] = {1e300, -1e300, 1.0 + 0x1p-24, 1e-320};
  float out[4];
  unicon__convert(UNICON_F64, (const unsigned char *)wide, 8, 4, out);
  assert_true(isinf(out[0]) && out[0] > 0 && isinf(out[1]) && out[1] < 0);
  assert_true(out[2] == 1.0f && out[3] == 0.0f);
  const unsigned char bytes[2] = {0x80, 0xff};
  unicon__convert(UNICON_I8, bytes, 1, 2, out);
  assert_true(out[0] == -128.0f && out[1] == -1.0f);
  unicon__convert(UNICON_U8, bytes, 1, 2, out);
  assert_true(out[0] == 128.0f && out[1] == 255.0f);
  assert_int_equal(unicon__dtype_size((unicon_dtype)6), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half),
      cmocka_unit_test(to_half_rounds),
      cmocka_unit_test(every_stride),
      cmocka_unit_test(special_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
