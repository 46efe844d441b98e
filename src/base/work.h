/* SPDX-License-Identifier: Apache-2.0 */
/* Memory. Everything the library allocates comes from an arena and counts against the budget of
 * the context that made it, which has a hard limit (option max_mem).
 *
 * A public call opens a frame on the context's own arena and closes it on every way out, so the
 * code below it allocates and returns without clean-up. Objects that outlive a call (rows, pairs,
 * models) have an arena of their own. Only the calling thread allocates. */
#ifndef UNICON_BASE_WORK_H
#define UNICON_BASE_WORK_H

#include "base/status.h"

typedef struct unicon__budget unicon__budget;
typedef struct unicon__block unicon__block;

typedef struct unicon__arena {
  unicon__budget *budget;
  unicon__block *head; /* newest first */
  /* Large blocks given back while others are in use, kept for the next of their size: fresh pages
   * cost more than clearing old ones. Only without a limit; not counted as used, but in the peak,
   * which they never raise: they make way for blocks of other sizes, and go with the last one. */
  unicon__block *spare;
  size_t spare_bytes;
} unicon__arena;

unicon__budget *unicon__budget_create(void);
void unicon__budget_release(unicon__budget *budget); /* freed with its last arena */
void unicon__budget_set_limit(unicon__budget *budget, uint64_t bytes);
uint64_t unicon__budget_limit(const unicon__budget *budget);
uint64_t unicon__budget_used(const unicon__budget *budget);
uint64_t unicon__budget_peak(const unicon__budget *budget); /* spare blocks included */

void unicon__arena_init(unicon__arena *arena, unicon__budget *budget);
/* Frees every block and lets go of the budget. */
void unicon__arena_release(unicon__arena *arena);

/* count*size zeroed bytes, 64-byte aligned; NULL with the error set when the product overflows, the
 * limit is passed or the system has no more. A count of 0 gives a valid pointer. */
void *unicon__arena_new(unicon_ctx *ctx, unicon__arena *arena, int64_t count, size_t size);

/* The same from the context's frame. */
void *unicon__new(unicon_ctx *ctx, int64_t count, size_t size);

/* Where an arena stands, and back to there: frees what was made since. */
unicon__block *unicon__arena_mark(const unicon__arena *arena);
void unicon__arena_back(unicon__arena *arena, const unicon__block *mark);

/* Gives what is kept for reuse back to the system. */
void unicon__arena_trim(unicon__arena *arena);

/* Gives a block back before its arena, or the frame of the context's arena, closes. NULL is fine.
 */
void unicon__arena_drop(unicon__arena *arena, void *memory);
void unicon__drop(unicon_ctx *ctx, void *memory);

unicon__block *unicon__frame_open(unicon_ctx *ctx);
void unicon__frame_close(unicon_ctx *ctx, unicon__block *frame);

/* p = count objects of *p, or return the error. */
#define UNICON_NEW(ctx, p, count)                   \
  do {                                              \
    (p) = unicon__new((ctx), (count), sizeof *(p)); \
    if ((p) == NULL) return UNICON_ERR_MEMORY;      \
  } while (0)

#define UNICON_ARENA_NEW(ctx, arena, p, count)                     \
  do {                                                             \
    (p) = unicon__arena_new((ctx), (arena), (count), sizeof *(p)); \
    if ((p) == NULL) return UNICON_ERR_MEMORY;                     \
  } while (0)

#endif
