/* SPDX-License-Identifier: Apache-2.0 */
/* Loops on the context's own threads. */
#ifndef UNICON_BASE_PARALLEL_H
#define UNICON_BASE_PARALLEL_H

#include "base/ctx.h"

enum { UNICON__MAX_THREADS = 256 }; /* the bound of option threads */

/* One item of a loop; `worker` (below unicon__workers_for) picks scratch memory. Which worker runs
 * an item is not fixed, so results must depend on the item alone. */
typedef void (*unicon__item_fn)(void *state, int64_t item, int worker);

/* Runs items 0 .. count-1. Threads that cannot be made are done without. The body must not
 * allocate, fail or call multi-threaded BLAS. */
void unicon__parallel_for(unicon_ctx *ctx, int64_t count, unicon__item_fn body, void *state);

/* How many workers unicon__parallel_for uses at most. */
int unicon__workers(const unicon_ctx *ctx);

/* ... and for a loop of so many items: their numbers are below this, so that scratch memory for few
 * items does not grow with the threads. */
int64_t unicon__workers_for(const unicon_ctx *ctx, int64_t items);

void unicon__pool_destroy(unicon__pool *pool);

#endif
