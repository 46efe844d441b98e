/* SPDX-License-Identifier: Apache-2.0 */
/* Output that appears whole or not at all: a temporary file beside the target, renamed when done.
 */
#ifndef UNICON_IO_OUTFILE_H
#define UNICON_IO_OUTFILE_H

#include "base/ctx.h"

typedef struct unicon__outfile unicon__outfile;

/* `out` and its names live in `arena`. */
unicon_status unicon__outfile_open(unicon_ctx *ctx, unicon__arena *arena, const char *path,
                                   unicon__outfile **out);
unicon_status unicon__outfile_write(unicon_ctx *ctx, unicon__outfile *file, const void *data,
                                    size_t bytes);
/* Flushes, closes and renames. On failure the temporary file is gone. */
unicon_status unicon__outfile_commit(unicon_ctx *ctx, unicon__outfile *file);
/* Closes and removes the temporary file; fine after a commit, or with NULL. */
void unicon__outfile_discard(unicon__outfile *file);

#endif
