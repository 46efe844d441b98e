/* SPDX-License-Identifier: Apache-2.0 */
#include "io/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

unicon_status unicon__fail_io(unicon_ctx *ctx, const char *doing, const char *path) {
  return unicon__fail(ctx, UNICON_ERR_IO, "cannot %s %s: %s", doing, path, strerror(errno));
}

bool unicon__io_fault(unicon_ctx *ctx) {
  if (!unicon__fault(&ctx->faults.io)) return false;
  errno = EIO;
  return true;
}

static unicon_status check_regular(unicon_ctx *ctx, const char *path, mode_t mode) {
  if (S_ISREG(mode)) return UNICON_OK;
  if (S_ISDIR(mode)) return unicon__fail(ctx, UNICON_ERR_IO, "%s is a folder, not a file", path);
  return unicon__fail(ctx, UNICON_ERR_IO,
                      "%s is a %s, not a regular file; files are mapped, so write it to disk first",
                      path, S_ISFIFO(mode) ? "pipe" : "device");
}

static unicon_status map_open_file(unicon_ctx *ctx, const char *path, int file,
                                   unicon__bytes *out) {
  struct stat about;
  if (unicon__io_fault(ctx) || fstat(file, &about)) return unicon__fail_io(ctx, "look at", path);
  UNICON_TRY(check_regular(ctx, path, about.st_mode));
  if (about.st_size == 0) return UNICON_OK;
  const size_t size = (size_t)about.st_size;
  void *data =
      unicon__io_fault(ctx) ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return unicon__fail_io(ctx, "map", path);
  *out = (unicon__bytes){data, size};
  return UNICON_OK;
}

unicon_status unicon__bytes_map(unicon_ctx *ctx, const char *path, unicon__bytes *out) {
  *out = (unicon__bytes){NULL, 0};
  /* O_NONBLOCK: opening a pipe without a writer would wait for ever. */
  const int file = unicon__io_fault(ctx) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return unicon__fail_io(ctx, "open", path);
  const unicon_status status = map_open_file(ctx, path, file, out);
  close(file);
  return status;
}

void unicon__bytes_unmap(unicon__bytes *bytes) {
  if (bytes->data) munmap((void *)(uintptr_t)bytes->data, bytes->size);
  *bytes = (unicon__bytes){NULL, 0};
}
