/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor of a .safetensors file as rows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/rows_format.h"
#include "io/safetensors.h"
#include "linalg/convert.h"

static const struct {
  const char *name;
  unicon_dtype dtype;
} dtypes[] = {{"F16", UNICON_F16}, {"BF16", UNICON_BF16}, {"F32", UNICON_F32},
              {"F64", UNICON_F64}, {"I8", UNICON_I8},     {"U8", UNICON_U8}};

const char *unicon__member_part(const char *name) {
  static const char *const mark[] = {".safetensors:", ".npz:"};
  for (size_t k = 0; k < sizeof mark / sizeof *mark; k++) {
    const char *found = strstr(name, mark[k]);
    if (found) return found + strlen(mark[k]);
  }
  return NULL;
}

/* "'a', 'b', ...", cut off where it gets long. */
static void list_names(const unicon__safetensors *file, char *out, size_t room) {
  size_t used = 0;
  out[0] = '\0';
  for (int64_t k = 0; k < file->tensors && used < room - 1; k++) {
    const int n = snprintf(out + used, room - used, "%s'%s'", k ? ", " : "", file->tensor[k].name);
    used += n > 0 ? (size_t)n : 0;
  }
}

/* The named tensor, or the only one with two dimensions; NULL with the error set. */
static const unicon__tensor *choose(unicon_ctx *ctx, const char *name,
                                    const unicon__safetensors *file) {
  const char *wanted = unicon__member_part(name);
  const unicon__tensor *found = wanted ? unicon__tensor_find(file, wanted) : NULL;
  if (found) return found;
  int64_t matrices = 0;
  for (int64_t k = 0; k < file->tensors; k++) {
    if (file->tensor[k].dims != 2) continue;
    found = &file->tensor[k];
    matrices++;
  }
  if (!wanted && matrices == 1) return found;
  char names[512];
  list_names(file, names, sizeof names);
  if (wanted)
    unicon__set_error(ctx, UNICON_ERR_FORMAT, "%s: there is no tensor '%s'; the file has %s", name,
                      wanted, file->tensors > 0 ? names : "no tensors");
  else if (matrices == 0)
    unicon__set_error(ctx, UNICON_ERR_FORMAT, "%s has no tensor of 2 dimensions; the file has %s",
                      name, file->tensors > 0 ? names : "no tensors");
  else
    unicon__set_error(ctx, UNICON_ERR_FORMAT,
                      "%s has %" PRId64
                      " tensors of 2 dimensions; say which to take as %s:NAME. The file has %s",
                      name, matrices, name, names);
  return NULL;
}

unicon_status unicon__tensor_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                   unicon__matrix *out) {
  unicon__safetensors file = {.tensors = 0};
  UNICON_TRY(unicon__safetensors_parse(ctx, &ctx->arena, name, bytes, &file));
  const unicon__tensor *tensor = choose(ctx, name, &file);
  if (!tensor) return unicon__status(ctx);
  if (tensor->dims != 2)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s: the tensor '%s' has %d dimensions, but needs 2 dimensions", name,
                        tensor->name, tensor->dims);
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    if (strcmp(tensor->dtype, dtypes[k].name) != 0) continue;
    const int64_t size = unicon__dtype_size(dtypes[k].dtype);
    const int64_t stride = tensor->shape[0] == 0 ? 0 : size * tensor->shape[1];
    out->rows = (unicon__segment){tensor->data, 0, tensor->shape[0], stride, size, dtypes[k].dtype,
                                  NULL,         0};
    out->width = tensor->shape[1];
    return UNICON_OK;
  }
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s: the tensor '%s' has dtype %s; F16, BF16, F32, F64, I8 and U8 are read",
                      name, tensor->name, tensor->dtype);
}
