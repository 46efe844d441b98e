/* SPDX-License-Identifier: Apache-2.0 */
/* .fvecs files, the same as .bvecs. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.fvecs", unicon__fvecs_parse, data, size);
  target_matrix("input.bvecs", unicon__bvecs_parse, data, size);
  return 0;
}
