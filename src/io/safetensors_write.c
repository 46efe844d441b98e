/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "io/outfile.h"
#include "io/safetensors.h"

enum { ALIGNMENT = 64 };

static bool add_tensor(json_t *root, const unicon__tensor *tensor, json_int_t begin) {
  json_t *shape = json_array();
  bool fine = shape != NULL;
  for (int d = 0; fine && d < tensor->dims; d++)
    fine = json_array_append_new(shape, json_integer(tensor->shape[d])) == 0;
  const json_int_t end = begin + (json_int_t)tensor->bytes;
  json_t *entry = fine ? json_pack("{s:s, s:O, s:[I, I]}", "dtype", tensor->dtype, "shape", shape,
                                   "data_offsets", begin, end)
                       : NULL;
  json_decref(shape);
  return json_object_set_new(root, tensor->name, entry) == 0; /* fails for NULL */
}

static bool add_meta(json_t *root, const unicon__safetensors *content) {
  if (content->metas == 0) return true;
  json_t *object = json_object();
  bool fine = json_object_set_new(root, "__metadata__", object) == 0;
  for (int64_t k = 0; fine && k < content->metas; k++)
    fine =
        json_object_set_new(object, content->meta[k].key, json_string(content->meta[k].value)) == 0;
  return fine;
}

/* The header as text in the context's frame; never one that would not be read again. */
static unicon_status header_text(unicon_ctx *ctx, const char *path, const json_t *root,
                                 char **out) {
  const size_t length = json_dumpb(root, NULL, 0, JSON_COMPACT);
  if (length > UNICON__HEADER_MAX - ALIGNMENT)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "cannot write %s: its header would take %zu bytes, but at most %d are "
                        "read; a model of fewer batches has a shorter one",
                        path, length, UNICON__HEADER_MAX);
  UNICON_NEW(ctx, *out, (int64_t)length + 1);
  json_dumpb(root, *out, length, JSON_COMPACT);
  return UNICON_OK;
}

static unicon_status make_header(unicon_ctx *ctx, const char *path,
                                 const unicon__safetensors *content, char **out) {
  json_t *root = json_object();
  bool fine = root && add_meta(root, content);
  int64_t begin = 0;
  for (int64_t k = 0; fine && k < content->tensors; k++) {
    fine = add_tensor(root, &content->tensor[k], begin);
    begin += (int64_t)content->tensor[k].bytes;
  }
  const unicon_status status =
      fine ? header_text(ctx, path, root, out)
           : unicon__fail(ctx, UNICON_ERR_DATA,
                          "cannot write %s: a name or metadata text is not UTF-8", path);
  json_decref(root);
  return status;
}

/* Length, text, and blanks up to the next multiple of 64 bytes. */
static unicon_status write_header(unicon_ctx *ctx, unicon__outfile *file, const char *text) {
  static const char blanks[ALIGNMENT + 1] =
      "                                                                ";
  const size_t length = strlen(text);
  const size_t padding = (ALIGNMENT - (8 + length) % ALIGNMENT) % ALIGNMENT;
  unsigned char size[8];
  for (int k = 0; k < 8; k++) size[k] = (unsigned char)((uint64_t)(length + padding) >> (8 * k));
  UNICON_TRY(unicon__outfile_write(ctx, file, size, sizeof size));
  UNICON_TRY(unicon__outfile_write(ctx, file, text, length));
  return unicon__outfile_write(ctx, file, blanks, padding);
}

static unicon_status write_content(unicon_ctx *ctx, unicon__outfile *file,
                                   const unicon__safetensors *content, const char *text) {
  UNICON_TRY(write_header(ctx, file, text));
  for (int64_t k = 0; k < content->tensors; k++)
    UNICON_TRY(unicon__outfile_write(ctx, file, content->tensor[k].data, content->tensor[k].bytes));
  return unicon__outfile_commit(ctx, file);
}

unicon_status unicon__safetensors_write(unicon_ctx *ctx, const char *path,
                                        const unicon__safetensors *content) {
  char *text = NULL;
  unicon__outfile *file;
  UNICON_TRY(make_header(ctx, path, content, &text));
  UNICON_TRY(unicon__outfile_open(ctx, &ctx->arena, path, &file));
  const unicon_status status = write_content(ctx, file, content, text);
  unicon__outfile_discard(file);
  return status;
}
