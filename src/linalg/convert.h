/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a file or of the caller's memory as float32, and back to float16. */
#ifndef UNICON_LINALG_CONVERT_H
#define UNICON_LINALG_CONVERT_H

#include "base/status.h"

/* Bytes of one element. */
int64_t unicon__dtype_size(unicon_dtype dtype);

/* `count` elements, `stride` bytes apart (also 0 or negative), as float32. The data may lie at any
 * address. A float64 beyond the range of float32 becomes inf. */
void unicon__convert(unicon_dtype dtype, const unsigned char *data, int64_t stride, int64_t count,
                     float *out);

/* Rounds to nearest, ties to even; what is too large becomes inf, NaN stays NaN. */
void unicon__to_half(const float *in, int64_t count, uint16_t *out);

/* The two ways from float16 that unicon__convert chooses from; the tests compare them. The fast
 * one returns false, having done nothing, where the processor or the build has no F16C. */
void unicon__from_half_plain(const unsigned char *data, int64_t stride, int64_t count, float *out);
bool unicon__from_half_fast(const unsigned char *data, int64_t count, float *out);

#endif
