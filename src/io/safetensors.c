/* SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "io/text.h"

static const char meta_name[] = "__metadata__";

static const struct {
  const char *name;
  int64_t size;
} dtypes[] = {{"F32", 4},  {"F16", 2},     {"BF16", 2},    {"F64", 8}, {"I64", 8}, {"I32", 4},
              {"I16", 2},  {"I8", 1},      {"U8", 1},      {"U64", 8}, {"U32", 4}, {"U16", 2},
              {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"C64", 8}};

/* A file being read. */
typedef struct parse {
  unicon_ctx *ctx;
  unicon__arena *arena;
  const char *name;
  const unsigned char *data; /* what follows the header */
  size_t size;
} parse;

static int64_t dtype_size(const char *name) {
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
    if (strcmp(dtypes[k].name, name) == 0) return dtypes[k].size;
  return 0;
}

static unicon_status copy_text(const parse *p, const char *text, const char **out) {
  *out = unicon__text_copy(p->ctx, p->arena, text);
  return *out ? UNICON_OK : UNICON_ERR_MEMORY;
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const unicon__meta *)a)->key, ((const unicon__meta *)b)->key);
}

static unicon_status read_meta(const parse *p, json_t *object, unicon__safetensors *out) {
  if (!json_is_object(object))
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT, "%s: %s is not an object", p->name, meta_name);
  UNICON_ARENA_NEW(p->ctx, p->arena, out->meta, (int64_t)json_object_size(object));
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    if (!json_is_string(value))
      return unicon__fail(p->ctx, UNICON_ERR_FORMAT, "%s: the metadata '%s' is not a string",
                          p->name, key);
    unicon__meta *meta = &out->meta[out->metas++];
    UNICON_TRY(copy_text(p, key, &meta->key));
    UNICON_TRY(copy_text(p, json_string_value(value), &meta->value));
  }
  qsort(out->meta, (size_t)out->metas, sizeof *out->meta, by_key);
  return UNICON_OK;
}

/* The shape, and in *count the number of elements. */
static unicon_status read_shape(const parse *p, const json_t *shape, unicon__tensor *tensor,
                                int64_t *count) {
  const size_t dims = json_array_size(shape);
  if (!json_is_array(shape) || dims > UNICON__TENSOR_DIMS)
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                        "%s: the tensor '%s' has %zu dimensions; at most %d are read", p->name,
                        tensor->name, dims, UNICON__TENSOR_DIMS);
  *count = 1;
  tensor->dims = (int)dims;
  for (size_t d = 0; d < dims; d++) {
    const json_t *size = json_array_get(shape, d);
    tensor->shape[d] = json_is_integer(size) ? json_integer_value(size) : -1;
    if (tensor->shape[d] < 0 || __builtin_mul_overflow(*count, tensor->shape[d], count))
      return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                          "%s: size %zu of the tensor '%s' is %" PRId64
                          "; sizes are whole, not negative, and fit the file",
                          p->name, d, tensor->name, tensor->shape[d]);
  }
  return UNICON_OK;
}

/* data_offsets: [begin, end) in the data that follows the header. */
static unicon_status read_offsets(const parse *p, const json_t *offsets, unicon__tensor *tensor,
                                  int64_t expected) {
  json_int_t begin = -1, end = -1;
  if (json_array_size(offsets) == 2) {
    const json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
    if (json_is_integer(a)) begin = json_integer_value(a);
    if (json_is_integer(b)) end = json_integer_value(b);
  }
  if (begin < 0 || end < begin || (uint64_t)end > p->size)
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                        "%s: the tensor '%s' lies at bytes %" JSON_INTEGER_FORMAT
                        " to %" JSON_INTEGER_FORMAT ", but the file has %zu bytes of data",
                        p->name, tensor->name, begin, end, p->size);
  if (end - begin != expected)
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                        "%s: the tensor '%s' takes %" JSON_INTEGER_FORMAT
                        " bytes, but its shape and dtype %s need %" PRId64,
                        p->name, tensor->name, end - begin, tensor->dtype, expected);
  tensor->data = p->data + begin;
  tensor->bytes = (size_t)expected;
  return UNICON_OK;
}

static unicon_status read_tensor(const parse *p, const char *name, const json_t *entry,
                                 unicon__tensor *tensor) {
  int64_t count = 0, bytes = 0;
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  UNICON_TRY(copy_text(p, name, &tensor->name));
  UNICON_TRY(copy_text(p, dtype ? dtype : "(none)", &tensor->dtype));
  const int64_t size = dtype_size(tensor->dtype);
  if (size == 0)
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT, "%s: the tensor '%s' has the unknown dtype %s",
                        p->name, tensor->name, tensor->dtype);
  UNICON_TRY(read_shape(p, json_object_get(entry, "shape"), tensor, &count));
  if (__builtin_mul_overflow(count, size, &bytes))
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                        "%s: the tensor '%s' of %" PRId64 " elements is larger than any file",
                        p->name, tensor->name, count);
  return read_offsets(p, json_object_get(entry, "data_offsets"), tensor, bytes);
}

static int by_place(const void *a, const void *b) {
  const unicon__tensor *left = a, *right = b;
  const unsigned char *l = left->data, *r = right->data;
  if (l != r) return l < r ? -1 : 1;
  return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

static int by_name(const void *a, const void *b) {
  const unicon__tensor *left = a, *right = b;
  return strcmp(left->name, right->name);
}

/* The format asks that the tensors cover the data without overlaps and holes. */
static unicon_status check_cover(const parse *p, const unicon__safetensors *file) {
  size_t end = 0;
  for (int64_t k = 0; k < file->tensors; k++) {
    const unicon__tensor *tensor = &file->tensor[k];
    const size_t begin = (size_t)((const unsigned char *)tensor->data - p->data);
    if (begin != end)
      return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                          "%s: the tensor '%s' starts at byte %zu, %s the tensor before it ends at "
                          "byte %zu",
                          p->name, tensor->name, begin,
                          begin < end ? "an overlap:" : "a hole:", end);
    end = begin + tensor->bytes;
  }
  if (end != p->size)
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT,
                        "%s: the tensors end at byte %zu, but %zu bytes of data are there", p->name,
                        end, p->size);
  return UNICON_OK;
}

static unicon_status read_header(const parse *p, json_t *root, unicon__safetensors *out) {
  if (!json_is_object(root))
    return unicon__fail(p->ctx, UNICON_ERR_FORMAT, "%s: the header is not a JSON object", p->name);
  UNICON_ARENA_NEW(p->ctx, p->arena, out->tensor, (int64_t)json_object_size(root));
  const char *key;
  json_t *value;
  json_object_foreach(root, key, value) {
    if (strcmp(key, meta_name) == 0)
      UNICON_TRY(read_meta(p, value, out));
    else
      UNICON_TRY(read_tensor(p, key, value, &out->tensor[out->tensors++]));
  }
  qsort(out->tensor, (size_t)out->tensors, sizeof *out->tensor, by_place);
  UNICON_TRY(check_cover(p, out));
  qsort(out->tensor, (size_t)out->tensors, sizeof *out->tensor, by_name);
  return UNICON_OK;
}

/* The JSON library allocates by itself, up to about 45 bytes for each byte of the header. */
static unicon_status check_header_memory(unicon_ctx *ctx, const char *name, uint64_t length) {
  const uint64_t limit = unicon__budget_limit(ctx->arena.budget);
  if (limit == UINT64_MAX || 45 * length <= limit) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_MEMORY,
                      "%s: reading its header of %" PRIu64
                      " bytes may take more than max_mem allows (%" PRIu64 " bytes)",
                      name, length, limit);
}

unicon_status unicon__safetensors_parse(unicon_ctx *ctx, unicon__arena *arena, const char *name,
                                        unicon__bytes bytes, unicon__safetensors *out) {
  *out = (unicon__safetensors){0};
  uint64_t length = 0;
  for (size_t k = 0; k < 8 && k < bytes.size; k++) length |= (uint64_t)bytes.data[k] << (8 * k);
  if (bytes.size > 6 && memcmp(bytes.data, "\x93NUMPY", 6) == 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s is an .npy file, not a .safetensors file",
                        name);
  if (length >> 40) /* text, say */
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is not a .safetensors file, nor a model: it does not begin with the "
                        "length of a header",
                        name);
  if (bytes.size > 8 && bytes.data[8] == '{' && length <= UNICON__HEADER_MAX &&
      length > bytes.size - 8)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is cut off: its header takes %" PRIu64 " bytes, the file has %zu", name,
                        length + 8, bytes.size);
  if (bytes.size < 8 || length > UNICON__HEADER_MAX || length > bytes.size - 8)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is not a .safetensors file: its header would take %" PRIu64
                        " bytes (at most %d are read) of %zu",
                        name, length, UNICON__HEADER_MAX, bytes.size);
  UNICON_TRY(check_header_memory(ctx, name, length));
  json_error_t error;
  json_t *root =
      json_loadb((const char *)bytes.data + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: the header is not valid JSON: %s at byte %d",
                        name, error.text, error.position);
  const size_t start = 8 + (size_t)length;
  const parse p = {ctx, arena, name, bytes.data + start, bytes.size - start};
  const unicon_status status = read_header(&p, root, out);
  json_decref(root);
  return status;
}

const unicon__tensor *unicon__tensor_find(const unicon__safetensors *file, const char *name) {
  const unicon__tensor wanted = {.name = name};
  return bsearch(&wanted, file->tensor, (size_t)file->tensors, sizeof *file->tensor, by_name);
}
