/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/vec_sets.h"

#define VEC_TABLE unicon__vec_avx512
#define VEC_NAME "avx512"
#include "linalg/vec_body.h"
