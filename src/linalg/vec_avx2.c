/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/vec_sets.h"

#define VEC_TABLE unicon__vec_avx2
#define VEC_NAME "avx2"
#include "linalg/vec_body.h"
