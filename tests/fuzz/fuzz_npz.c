/* SPDX-License-Identifier: Apache-2.0 */
/* .npz files: the only array, and one asked for by name. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.npz", unicon__npz_parse, data, size);
  target_matrix("input.npz:emb", unicon__npz_parse, data, size);
  return 0;
}
