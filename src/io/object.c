/* SPDX-License-Identifier: Apache-2.0 */
#include "io/object.h"

#include <string.h>

void *unicon__object_new(unicon_ctx *ctx, size_t size) {
  unicon__arena arena;
  unicon__arena_init(&arena, ctx->arena.budget);
  void *object = unicon__arena_new(ctx, &arena, 1, size);
  if (object)
    memcpy(object, &arena, sizeof arena);
  else
    unicon__arena_release(&arena);
  return object;
}

void unicon__object_free(void *object) {
  if (!object) return;
  unicon__arena arena; /* a copy: the original goes away with its blocks */
  memcpy(&arena, object, sizeof arena);
  unicon__arena_release(&arena);
}

unicon_status unicon__take_sized(unicon_ctx *ctx, const char *macro, const void *given, void *out,
                                 size_t least, size_t size) {
  size_t bytes = 0;
  if (!given) return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "NULL in place of a %s", macro);
  memcpy(&bytes, given, sizeof bytes);
  if (bytes < least)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "the size of a struct is %zu; accepted: at least %zu, which %s sets", bytes,
                        least, macro);
  for (size_t k = size; k < bytes; k++)
    if (((const unsigned char *)given)[k] != 0)
      return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                          "a %s sets a member that unicon %s does not know; use a newer library",
                          macro, unicon_version());
  memset(out, 0, size);
  memcpy(out, given, bytes < size ? bytes : size);
  memcpy(out, &size, sizeof size);
  return UNICON_OK;
}
