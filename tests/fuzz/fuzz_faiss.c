/* SPDX-License-Identifier: Apache-2.0 */
/* FAISS indexes. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.faiss", unicon__faiss_parse, data, size);
  return 0;
}
