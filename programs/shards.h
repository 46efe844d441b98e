/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of rewritten vectors: FOLDER/0.npy, 1.npy, ... in the order of the index. */
#ifndef UNICON_PROGRAMS_SHARDS_H
#define UNICON_PROGRAMS_SHARDS_H

#include "command.h"

/* FOLDER/k.npy and what comes behind it, to be freed; NULL without memory. */
char *shards_path(const char *folder, int64_t k, const char *behind);

/* How many rows the shard at `path` has, as its sidecar says: 1 to `left`, or `left` where it says
 * nothing of the kind. */
int64_t shards_rows(const char *path, int64_t left);

/* These return EXIT_DONE, or another exit status after a sentence on stderr. */

/* Refuses a folder with .npy files that are not among the first `count` shards. */
int shards_refuse_others(tool *t, const char *folder, int64_t count);

/* Refuses a folder that `count` rows in shards of so many each would not replace file by file: it
 * has shards of another size, or more of them. */
int shards_check_room(tool *t, const char *folder, int64_t count, int64_t each);

#endif
