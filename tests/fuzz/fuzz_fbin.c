/* SPDX-License-Identifier: Apache-2.0 */
/* .fbin files. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.fbin", unicon__fbin_parse, data, size);
  return 0;
}
