/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "io/outfile.h"
#include "io/safetensors.h"

enum { ALIGNMENT = 64 }; /* of the data in the file: a cache line, when it is mapped */

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

/* Where the container goes: a file, or memory. */
typedef struct sink {
  unicon__outfile *file;
  unsigned char *memory;
  size_t used;
} sink;

static unicon_status put(unicon_ctx *ctx, sink *to, const void *data, size_t bytes) {
  if (to->file) return unicon__outfile_write(ctx, to->file, data, bytes);
  if (bytes > 0) memcpy(to->memory + to->used, data, bytes);
  to->used += bytes;
  return UNICON_OK;
}

static size_t padding_of(const char *text) {
  return (ALIGNMENT - (8 + strlen(text)) % ALIGNMENT) % ALIGNMENT;
}

/* Length, text, blanks up to the next multiple of 64 bytes; then the tensors. */
static unicon_status put_all(unicon_ctx *ctx, sink *to, const unicon__safetensors *content,
                             const char *text) {
  static const char blanks[ALIGNMENT + 1] =
      "                                                                ";
  const size_t length = strlen(text), padding = padding_of(text);
  unsigned char size[8];
  for (int k = 0; k < 8; k++) size[k] = (unsigned char)((uint64_t)(length + padding) >> (8 * k));
  UNICON_TRY(put(ctx, to, size, sizeof size));
  UNICON_TRY(put(ctx, to, text, length));
  UNICON_TRY(put(ctx, to, blanks, padding));
  for (int64_t k = 0; k < content->tensors; k++)
    UNICON_TRY(put(ctx, to, content->tensor[k].data, content->tensor[k].bytes));
  return UNICON_OK;
}

unicon_status unicon__safetensors_write(unicon_ctx *ctx, const char *path,
                                        const unicon__safetensors *content) {
  char *text = NULL;
  sink to = {NULL, NULL, 0};
  UNICON_TRY(make_header(ctx, path, content, &text));
  UNICON_TRY(unicon__outfile_open(ctx, &ctx->arena, path, &to.file));
  unicon_status status = put_all(ctx, &to, content, text);
  if (status == UNICON_OK) status = unicon__outfile_commit(ctx, to.file);
  unicon__outfile_discard(to.file);
  return status;
}

unicon_status unicon__safetensors_bytes(unicon_ctx *ctx, const unicon__safetensors *content,
                                        void *out, size_t room, size_t *size) {
  char *text = NULL;
  sink to = {NULL, out, 0};
  UNICON_TRY(make_header(ctx, "the bytes", content, &text));
  *size = 8 + strlen(text) + padding_of(text);
  for (int64_t k = 0; k < content->tensors; k++) *size += content->tensor[k].bytes;
  if (!out) return UNICON_OK;
  if (room < *size)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "there is room for %zu bytes, but %zu are needed",
                        room, *size);
  return put_all(ctx, &to, content, text);
}
