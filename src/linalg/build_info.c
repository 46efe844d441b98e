/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/ctx.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

const char *unicon_build_info(void) {
  static _Thread_local char text[320];
  snprintf(text, sizeof text, "BLAS: %s; SIMD: %s", unicon__blas_name(), unicon__vec_best()->name);
  return text;
}
