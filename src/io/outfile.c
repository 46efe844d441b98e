/* SPDX-License-Identifier: Apache-2.0 */
#include "io/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/bytes.h"
#include "io/text.h"

enum {
  NAME_KEPT = 200, /* of the target's name, so that the temporary name is not too long */
  ATTEMPTS = 1000  /* at a temporary name that nobody has */
};

struct unicon__outfile {
  char *path, *temporary;
  int file; /* -1 after commit, discard or a failed write */
};

/* A folder cannot be replaced, and a device must not be. */
static unicon_status check_target(unicon_ctx *ctx, const char *path) {
  struct stat about;
  if (stat(path, &about) || S_ISREG(about.st_mode)) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_IO, "cannot write %s: it is a %s, not a file", path,
                      S_ISDIR(about.st_mode) ? "folder" : "device or pipe");
}

/* FOLDER/.NAME.tmp-PID-COUNTER with the first counter that is free. */
static int open_temporary(const char *path, char *out, size_t room) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    snprintf(out, room, "%.*s.%.*s.tmp-%ld-%d", (int)(name - path), path, NAME_KEPT, name,
             (long)getpid(), attempt);
    const int file = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

unicon_status unicon__outfile_open(unicon_ctx *ctx, unicon__arena *arena, const char *path,
                                   unicon__outfile **out) {
  *out = NULL;
  UNICON_TRY(check_target(ctx, path));
  unicon__outfile *file;
  const size_t room = strlen(path) + 64;
  UNICON_ARENA_NEW(ctx, arena, file, 1);
  UNICON_ARENA_NEW(ctx, arena, file->temporary, (int64_t)room);
  file->path = unicon__text_copy(ctx, arena, path);
  if (!file->path) return UNICON_ERR_MEMORY;
  file->file = unicon__io_fault(ctx) ? -1 : open_temporary(path, file->temporary, room);
  if (file->file < 0) return unicon__fail_io(ctx, "create a file beside", path);
  *out = file;
  return UNICON_OK;
}

/* Says what failed, by errno, and drops the temporary file. */
static unicon_status fail_and_drop(unicon_ctx *ctx, unicon__outfile *file, const char *doing) {
  const unicon_status status = unicon__fail_io(ctx, doing, file->path);
  unicon__outfile_discard(file);
  return status;
}

static unicon_status check_open(unicon_ctx *ctx, const unicon__outfile *file) {
  if (file->file >= 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_IO, "cannot write %s: an earlier write failed", file->path);
}

unicon_status unicon__outfile_write(unicon_ctx *ctx, unicon__outfile *file, const void *data,
                                    size_t bytes) {
  UNICON_TRY(check_open(ctx, file));
  const char *at = data;
  while (bytes > 0) {
    const ssize_t n = unicon__io_fault(ctx) ? -1 : write(file->file, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_and_drop(ctx, file, "write");
    at += n;
    bytes -= (size_t)n;
  }
  return UNICON_OK;
}

unicon_status unicon__outfile_commit(unicon_ctx *ctx, unicon__outfile *file) {
  UNICON_TRY(check_open(ctx, file));
  if (unicon__io_fault(ctx) || fsync(file->file)) return fail_and_drop(ctx, file, "write");
  if (unicon__io_fault(ctx) || rename(file->temporary, file->path))
    return fail_and_drop(ctx, file, "rename a temporary file to");
  close(file->file); /* after fsync there is nothing left that could fail */
  file->file = -1;
  return UNICON_OK;
}

void unicon__outfile_discard(unicon__outfile *file) {
  if (!file || file->file < 0) return;
  close(file->file);
  unlink(file->temporary);
  file->file = -1;
}
