/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices in memory of others, on the host or on a device. */
#ifndef UNICON_IO_MEMORY_H
#define UNICON_IO_MEMORY_H

#include "device/use.h"
#include "io/rows.h"
#include "unicon/tools.h"

/* DLPack's numbers. */
enum { UNICON__MEMORY_HOST = 1, UNICON__MEMORY_CUDA = 2, UNICON__MEMORY_PINNED = 3 };

static inline bool unicon__memory_is_host(const unicon_memory *m) {
  return m->kind == UNICON__MEMORY_HOST || m->kind == UNICON__MEMORY_PINNED;
}

/* A checked copy of the caller's struct. Memory that the host cannot read must be of the device in
 * force, which is open then. */
unicon_status unicon__memory_take(unicon_ctx *ctx, const char *name, const unicon_memory *given,
                                  unicon_memory *out);

/* As the device wants it. */
unicon__foreign unicon__memory_foreign(const unicon_memory *m);

/* unicon_rows_wrap_memory of what was taken, inside a call. */
unicon_status unicon__rows_of_memory(unicon_ctx *ctx, const char *name, const unicon_memory *m,
                                     unicon_rows **out);

#endif
