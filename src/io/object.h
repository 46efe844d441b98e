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

/* Copies a struct of the caller, whose first member says how many bytes it has, into `out` of
 * `size` bytes. One from an older header is shorter, at least `least`: the rest becomes 0. One from
 * a newer header is longer: what we do not know must be 0. `macro` makes such structs. */
unicon_status unicon__take_sized(unicon_ctx *ctx, const char *macro, const void *given, void *out,
                                 size_t least, size_t size);

/* Arguments that must be there. */
#define UNICON_NEED(ctx, pointer)                                                           \
  do {                                                                                      \
    if (!(pointer))                                                                         \
      return unicon__fail((ctx), UNICON_ERR_ARGUMENT, "the argument " #pointer " is NULL"); \
  } while (0)

#endif
