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
