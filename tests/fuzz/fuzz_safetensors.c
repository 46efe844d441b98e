/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors container: every tensor and every metadata text is looked at, and the file is
 * opened as rows, once by a name and once without. */
#include "target.h"

#include "io/safetensors.h"

static void look(const unicon__safetensors *file, size_t size) {
  size_t total = 0, bits = 0;
  for (int64_t k = 0; k < file->tensors; k++) {
    const unicon__tensor *t = &file->tensor[k];
    TARGET_HOLDS(t->name && t->dtype && t->dims >= 0 && t->dims <= UNICON__TENSOR_DIMS);
    for (size_t b = 0; b < t->bytes; b++) bits |= ((const unsigned char *)t->data)[b];
    total += t->bytes;
  }
  TARGET_HOLDS(total <= size && bits < 256);
  for (int64_t k = 0; k < file->metas; k++) {
    TARGET_HOLDS(file->meta[k].key && file->meta[k].value);
    if (k) TARGET_HOLDS(strcmp(file->meta[k - 1].key, file->meta[k].key) < 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon__safetensors file;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  const unicon_status status = unicon__safetensors_parse(ctx, &ctx->arena, "input.safetensors",
                                                         (unicon__bytes){data, size}, &file);
  if (target_ok(ctx, status)) look(&file, size);
  TARGET_HOLDS(unicon__leave(ctx, status) == status);
  target_matrix("input.safetensors", unicon__tensor_parse, data, size);
  target_matrix("input.safetensors:x", unicon__tensor_parse, data, size);
  return 0;
}
