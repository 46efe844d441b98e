/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only span of bytes: a mapped file, or memory (so that readers can be fuzzed without
 * files). */
#ifndef UNICON_IO_BYTES_H
#define UNICON_IO_BYTES_H

#include "base/ctx.h"

/* A file that says its header is longer than this is refused: no honest header is. */
enum { UNICON__HEADER_MAX = 1 << 20 };

typedef struct unicon__bytes {
  const unsigned char *data;
  size_t size;
} unicon__bytes;

/* Maps the regular file at `path`. An empty file gives size 0. */
unicon_status unicon__bytes_map(unicon_ctx *ctx, const char *path, unicon__bytes *out);
void unicon__bytes_unmap(unicon__bytes *bytes);

/* "cannot open PATH: reason of errno", for `doing` "open"; always UNICON_ERR_IO. */
unicon_status unicon__fail_io(unicon_ctx *ctx, const char *doing, const char *path);

/* True, with errno EIO, when a test wants the next system call to fail. */
bool unicon__io_fault(unicon_ctx *ctx);

/* The whole number in `count` bytes, the lowest first. */
static inline uint64_t unicon__little_endian(const unsigned char *p, int count) {
  uint64_t value = 0;
  for (int k = 0; k < count; k++) value |= (uint64_t)p[k] << (8 * k);
  return value;
}

#endif
