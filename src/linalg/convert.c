/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/convert.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define UNICON_HAVE_F16C 1
#else
#define UNICON_HAVE_F16C 0
#endif

int64_t unicon__dtype_size(unicon_dtype dtype) {
  switch (dtype) {
    case UNICON_F16:
      return 2;
    case UNICON_BF16:
      return 2;
    case UNICON_F32:
      return 4;
    case UNICON_F64:
      return 8;
    case UNICON_I8:
      return 1;
    case UNICON_U8:
      return 1;
  }
  return 0;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint16_t load_u16(const unsigned char *p) {
  uint16_t bits;
  memcpy(&bits, p, sizeof bits);
  return bits;
}

/* Normal numbers move their exponent from bias 15 to bias 127. Subnormals are mantissa * 2^-24,
 * exact in float32. A NaN keeps its payload and becomes quiet, as the processor does it. */
static inline float load_f16(const unsigned char *p) {
  const uint32_t half = load_u16(p);
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float size = (float)mantissa * 0x1p-24f;
    return sign ? -size : size;
  }
  if (exponent == 31)
    return float_of(sign | 0x7f800000u | (mantissa ? 0x400000u : 0u) | mantissa << 13);
  return float_of(sign | (exponent + 112u) << 23 | mantissa << 13);
}

static inline float load_bf16(const unsigned char *p) {
  return float_of((uint32_t)load_u16(p) << 16);
}

static inline float load_f32(const unsigned char *p) {
  float value;
  memcpy(&value, p, sizeof value);
  return value;
}

static inline float load_f64(const unsigned char *p) {
  double value;
  memcpy(&value, p, sizeof value);
  return (float)value;
}

static inline float load_i8(const unsigned char *p) {
  return (float)(int8_t)*p;
}

static inline float load_u8(const unsigned char *p) {
  return (float)*p;
}

/* The loop of one type. With the stride known to be the element size the compiler vectorises. */
#define CONVERT(load, size)                                                 \
  do {                                                                      \
    if (stride == (size))                                                   \
      for (int64_t k = 0; k < count; k++) out[k] = load(data + k * (size)); \
    else                                                                    \
      for (int64_t k = 0; k < count; k++) out[k] = load(data + k * stride); \
  } while (0)

void unicon__from_half_plain(const unsigned char *data, int64_t stride, int64_t count, float *out) {
  CONVERT(load_f16, 2);
}

#if UNICON_HAVE_F16C
__attribute__((target("avx,f16c"))) static void from_half_f16c(const unsigned char *data,
                                                               int64_t count, float *out) {
  int64_t k = 0;
  for (; k + 8 <= count; k += 8) {
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(data + 2 * k));
    _mm256_storeu_ps(out + k, _mm256_cvtph_ps(half));
  }
  unicon__from_half_plain(data + 2 * k, 2, count - k, out + k);
}
#endif

bool unicon__from_half_fast(const unsigned char *data, int64_t count, float *out) {
#if UNICON_HAVE_F16C
  /* A look at a word that the start-up code filled. Every processor with AVX2 has F16C, which
   * older compilers cannot ask for by name. */
  if (__builtin_cpu_supports("avx2")) {
    from_half_f16c(data, count, out);
    return true;
  }
#else
  (void)data, (void)count, (void)out;
#endif
  return false;
}

void unicon__convert(unicon_dtype dtype, const unsigned char *data, int64_t stride, int64_t count,
                     float *out) {
  switch (dtype) {
    case UNICON_F16:
      if (stride != 2 || !unicon__from_half_fast(data, count, out))
        unicon__from_half_plain(data, stride, count, out);
      break;
    case UNICON_BF16:
      CONVERT(load_bf16, 2);
      break;
    case UNICON_F32:
      CONVERT(load_f32, 4);
      break;
    case UNICON_F64:
      CONVERT(load_f64, 8);
      break;
    case UNICON_I8:
      CONVERT(load_i8, 1);
      break;
    case UNICON_U8:
      CONVERT(load_u8, 1);
      break;
  }
}

/* Drops the low `shift` bits of a mantissa, rounding to nearest, ties to even. A carry into the
 * exponent is the right result. */
static inline uint32_t round_off(uint32_t bits, uint32_t shift) {
  const uint32_t odd = (bits >> shift) & 1u;
  return (bits + (1u << (shift - 1)) - 1u + odd) >> shift;
}

static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) /* NaN, made quiet */
    return (uint16_t)(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
  if (size >= 0x477ff000u) /* 65520 and more round to inf */
    return (uint16_t)(sign | 0x7c00u);
  if (size >= 0x38800000u) /* 2^-14: normal; the exponent moves from bias 127 to bias 15 */
    return (uint16_t)(sign | round_off(size - 0x38000000u, 13));
  if (size < 0x33000000u) /* below 2^-25, half of the smallest subnormal */
    return (uint16_t)sign;
  const uint32_t shift = 126u - (size >> 23); /* 14 .. 24 */
  return (uint16_t)(sign | round_off((size & 0x7fffffu) | 0x800000u, shift));
}

void unicon__to_half(const float *in, int64_t count, uint16_t *out) {
  for (int64_t k = 0; k < count; k++) out[k] = half_of(in[k]);
}
