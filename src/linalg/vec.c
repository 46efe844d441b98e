/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/vec.h"

#include <stddef.h>

#include "linalg/vec_sets.h"

const unicon__vec *unicon__vec_set(int index) {
#ifndef UNICON_NO_X86
  if (index == 0)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
               ? &unicon__vec_avx512
               : NULL;
  if (index == 1)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &unicon__vec_avx2
                                                                           : NULL;
#endif
  return index == 2 ? &unicon__vec_plain : NULL;
}

const unicon__vec *unicon__vec_best(void) {
  for (int k = 0; k < UNICON__VEC_SETS; k++)
    if (unicon__vec_set(k)) return unicon__vec_set(k);
  return &unicon__vec_plain;
}
