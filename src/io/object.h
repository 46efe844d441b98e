/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that outlive a call: their first member is the arena they live in. */
#ifndef UNICON_IO_OBJECT_H
#define UNICON_IO_OBJECT_H

#include "base/ctx.h"

/* A zeroed object of `size` bytes whose first member, a unicon__arena, holds it; NULL with the
 * error set. */
void *unicon__object_new(unicon_ctx *ctx, size_t size);

/* Frees the object with all its arena. NULL is fine. */
void unicon__object_free(void *object);

/* Arguments that must be there. */
#define UNICON_NEED(ctx, pointer)                                                           \
  do {                                                                                      \
    if (!(pointer))                                                                         \
      return unicon__fail((ctx), UNICON_ERR_ARGUMENT, "the argument " #pointer " is NULL"); \
  } while (0)

#endif
