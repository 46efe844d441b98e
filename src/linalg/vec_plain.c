/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/vec_sets.h"

#define VEC_TABLE unicon__vec_plain
#define VEC_NAME "plain"
#include "linalg/vec_body.h"
