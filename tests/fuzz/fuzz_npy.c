/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files of embeddings. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.npy", unicon__npy_parse, data, size);
  return 0;
}
