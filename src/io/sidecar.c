/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sidecar.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/outfile.h"

#define FORMAT "unicon vectors"
enum { VERSION = 1, MOST_BYTES = 1 << 16 }; /* a hundred times what is ever written */

/* Far beyond what is written, and so few that the bytes of rows times width can be counted. */
static const int64_t most_width = INT64_C(1) << 25, most_rows = INT64_C(1) << 35;

/* Text members: where they are, and how they must look. */
static const struct {
  const char *key;
  size_t at, room;
  bool id; /* 16 hexadecimal digits */
} texts[] = {
    {"model", offsetof(unicon__sidecar, model), UNICON__SIDECAR_ID, true},
    {"space", offsetof(unicon__sidecar, space), UNICON__SIDECAR_WORD, false},
    {"form", offsetof(unicon__sidecar, form), UNICON__SIDECAR_WORD, false},
    {"dtype", offsetof(unicon__sidecar, dtype), UNICON__SIDECAR_WORD, false},
    {"source", offsetof(unicon__sidecar, source), UNICON__SIDECAR_ID, true},
    {"hash", offsetof(unicon__sidecar, hash), UNICON__SIDECAR_ID, true},
};

static const struct {
  const char *key;
  size_t at;
  const int64_t *most;
} numbers[] = {
    {"rows", offsetof(unicon__sidecar, rows), &most_rows},
    {"width", offsetof(unicon__sidecar, width), &most_width},
    {"first", offsetof(unicon__sidecar, first), &most_rows},
    {"done", offsetof(unicon__sidecar, done), &most_rows},
};

enum { TEXTS = sizeof texts / sizeof *texts, NUMBERS = sizeof numbers / sizeof *numbers };

static bool is_id(const char *text) {
  return strlen(text) == UNICON__SIDECAR_ID - 1 &&
         strspn(text, "0123456789abcdef") == UNICON__SIDECAR_ID - 1;
}

static unicon_status read_members(unicon_ctx *ctx, const char *name, const json_t *root,
                                  unicon__sidecar *out) {
  const char *format = json_string_value(json_object_get(root, "format"));
  const json_t *version = json_object_get(root, "version");
  if (!format || strcmp(format, FORMAT) != 0)
    return unicon__fail(
        ctx, UNICON_ERR_FORMAT,
        "%s does not describe vectors of unicon (its \"format\" is not \"" FORMAT "\")", name);
  if (!json_is_integer(version) || json_integer_value(version) != VERSION)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s is not of version %d; use a newer unicon", name,
                        VERSION);
  for (int k = 0; k < TEXTS; k++) {
    const char *text = json_string_value(json_object_get(root, texts[k].key));
    if (!text || strlen(text) >= texts[k].room || (texts[k].id && !is_id(text)))
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: \"%s\" is missing or not %s", name,
                          texts[k].key, texts[k].id ? "16 hexadecimal digits" : "a short text");
    memcpy((char *)out + texts[k].at, text, strlen(text) + 1);
  }
  for (int k = 0; k < NUMBERS; k++) {
    const json_t *number = json_object_get(root, numbers[k].key);
    const int64_t value = json_is_integer(number) ? json_integer_value(number) : -1;
    if (value < 0 || value > *numbers[k].most)
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "%s: \"%s\" is missing or not a whole number from 0 to %" PRId64, name,
                          numbers[k].key, *numbers[k].most);
    *(int64_t *)(void *)((char *)out + numbers[k].at) = value;
  }
  if (out->done > out->rows)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: %" PRId64 " rows are done, but it has %" PRId64, name, out->done,
                        out->rows);
  return UNICON_OK;
}

unicon_status unicon__sidecar_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                    unicon__sidecar *out) {
  json_error_t error;
  *out = (unicon__sidecar){.rows = 0};
  if (bytes.size > MOST_BYTES)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s has %zu bytes, too many to describe vectors",
                        name, bytes.size);
  json_t *root = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s is not JSON: line %d: %s", name, error.line,
                        error.text);
  const unicon_status status = read_members(ctx, name, root, out);
  json_decref(root);
  return status;
}

unicon_status unicon__sidecar_read(unicon_ctx *ctx, const char *path, unicon__sidecar *out,
                                   bool *found) {
  struct stat about;
  unicon__bytes bytes;
  *found = stat(path, &about) == 0;
  if (!*found) return UNICON_OK;
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = unicon__sidecar_parse(ctx, path, bytes, out);
  unicon__bytes_unmap(&bytes);
  return status;
}

unicon_status unicon__sidecar_write(unicon_ctx *ctx, const char *path,
                                    const unicon__sidecar *sidecar) {
  char text[2048];
  int used =
      snprintf(text, sizeof text, "{\n \"format\": \"" FORMAT "\",\n \"version\": %d", VERSION);
  for (int k = 0; k < TEXTS; k++)
    used += snprintf(text + used, sizeof text - (size_t)used, ",\n \"%s\": \"%s\"", texts[k].key,
                     (const char *)sidecar + texts[k].at);
  for (int k = 0; k < NUMBERS; k++) {
    int64_t value;
    memcpy(&value, (const char *)sidecar + numbers[k].at, sizeof value);
    used += snprintf(text + used, sizeof text - (size_t)used, ",\n \"%s\": %" PRId64,
                     numbers[k].key, value);
  }
  used += snprintf(text + used, sizeof text - (size_t)used, "\n}\n");
  unicon__outfile *file;
  UNICON_TRY(unicon__outfile_open(ctx, &ctx->arena, path, &file));
  UNICON_TRY(unicon__outfile_write(ctx, file, text, (size_t)used));
  return unicon__outfile_commit(ctx, file);
}
