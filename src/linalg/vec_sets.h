/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNICON_LINALG_VEC_SETS_H
#define UNICON_LINALG_VEC_SETS_H

#include "linalg/vec.h"

extern const unicon__vec unicon__vec_plain;
extern const unicon__vec unicon__vec_avx2;
extern const unicon__vec unicon__vec_avx512;

#endif
