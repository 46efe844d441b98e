/* SPDX-License-Identifier: Apache-2.0 */
#include "base/work.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/ctx.h"

enum {
  ALIGNMENT = 64,
  /* Blocks of this size and more are mapped, so that freeing them gives the pages back at once and
   * the resident peak is what the budget says. */
  MAP_FROM = 1 << 20,
  /* And from here on the system may use huge pages: a page of 4 KiB costs a fault, and one that is
   * read before it is written a second fault that stops all threads (a third of the time of a small
   * fit). */
  HUGE_FROM = 2 << 20,
  SPARE_MAX = 64 << 20 /* bytes kept for reuse */
};

struct unicon__budget {
  atomic_int references;
  atomic_uint_least64_t used, spare; /* bytes of blocks in use, and of those kept for reuse */
  atomic_uint_least64_t peak, limit; /* most of both at once; of those in use */
};

struct unicon__block {
  unicon__block *older, *newer;
  size_t bytes; /* header included */
};

unicon__budget *unicon__budget_create(void) {
  unicon__budget *budget = malloc(sizeof *budget);
  if (!budget) return NULL;
  atomic_init(&budget->references, 1);
  atomic_init(&budget->used, 0);
  atomic_init(&budget->spare, 0);
  atomic_init(&budget->peak, 0);
  atomic_init(&budget->limit, UINT64_MAX);
  return budget;
}

void unicon__budget_release(unicon__budget *budget) {
  if (budget && atomic_fetch_sub(&budget->references, 1) == 1) free(budget);
}

void unicon__budget_set_limit(unicon__budget *budget, uint64_t bytes) {
  atomic_store(&budget->limit, bytes);
}

uint64_t unicon__budget_limit(const unicon__budget *budget) {
  return atomic_load(&budget->limit);
}

uint64_t unicon__budget_used(const unicon__budget *budget) {
  return atomic_load(&budget->used);
}

uint64_t unicon__budget_peak(const unicon__budget *budget) {
  return atomic_load(&budget->peak);
}

/* Takes `bytes` from the budget if the limit allows. */
static bool budget_take(unicon__budget *budget, uint64_t bytes) {
  const uint64_t limit = atomic_load(&budget->limit);
  const uint64_t used = atomic_fetch_add(&budget->used, bytes) + bytes;
  if (used > limit) {
    atomic_fetch_sub(&budget->used, bytes);
    return false;
  }
  const uint64_t held = used + atomic_load(&budget->spare);
  uint_least64_t peak = atomic_load(&budget->peak);
  while (peak < held && !atomic_compare_exchange_weak(&budget->peak, &peak, held)) continue;
  return true;
}

void unicon__arena_init(unicon__arena *arena, unicon__budget *budget) {
  atomic_fetch_add(&budget->references, 1);
  arena->budget = budget;
  arena->head = arena->spare = NULL;
  arena->spare_bytes = 0;
}

static void spare_give_back(unicon__arena *arena) {
  unicon__block *block = arena->spare;
  arena->spare = block->older;
  arena->spare_bytes -= block->bytes;
  atomic_fetch_sub(&arena->budget->spare, block->bytes);
  munmap(block, block->bytes);
}

void unicon__arena_trim(unicon__arena *arena) {
  while (arena->spare) spare_give_back(arena);
}

/* Spare blocks must not be the reason for a new peak: they make way for `bytes` more. */
static void spare_make_way(unicon__arena *arena, uint64_t bytes) {
  const unicon__budget *budget = arena->budget;
  while (arena->spare && atomic_load(&budget->used) + atomic_load(&budget->spare) + bytes >
                             atomic_load(&budget->peak))
    spare_give_back(arena);
}

static bool spare_keep(unicon__arena *arena, unicon__block *block) {
  if (!arena->head || unicon__budget_limit(arena->budget) != UINT64_MAX ||
      arena->spare_bytes + block->bytes > SPARE_MAX)
    return false;
  block->older = arena->spare;
  arena->spare = block;
  arena->spare_bytes += block->bytes;
  atomic_fetch_add(&arena->budget->spare, block->bytes);
  return true;
}

/* A spare block of just this size, cleared, or NULL. */
static unicon__block *spare_take(unicon__arena *arena, size_t bytes) {
  for (unicon__block **at = &arena->spare; *at; at = &(*at)->older)
    if ((*at)->bytes == bytes) {
      unicon__block *block = *at;
      *at = block->older;
      arena->spare_bytes -= bytes;
      atomic_fetch_sub(&arena->budget->spare, bytes);
      memset(block, 0, bytes);
      return block;
    }
  return NULL;
}

static void block_free(unicon__arena *arena, unicon__block *block) {
  if (block == arena->head)
    arena->head = block->older;
  else
    block->newer->older = block->older;
  if (block->older) block->older->newer = block->newer;
  atomic_fetch_sub(&arena->budget->used, block->bytes);
  if (block->bytes < MAP_FROM)
    free(block);
  else if (!spare_keep(arena, block))
    munmap(block, block->bytes);
  if (!arena->head) unicon__arena_trim(arena);
}

void unicon__arena_release(unicon__arena *arena) {
  if (!arena->budget) return;
  while (arena->head) block_free(arena, arena->head);
  unicon__budget_release(arena->budget);
  arena->budget = NULL;
}

static unicon__block *block_get(size_t bytes) {
  if (bytes >= MAP_FROM) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_FROM) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
  }
  void *memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, bytes)) return NULL;
  memset(memory, 0, bytes);
  return memory;
}

static void *no_memory(unicon_ctx *ctx, const unicon__budget *budget, double bytes) {
  const double mib = 1048576.0;
  const uint64_t limit = unicon__budget_limit(budget);
  if (limit == UINT64_MAX)
    unicon__set_error(ctx, UNICON_ERR_MEMORY, "the system has no memory for %.1f MiB more",
                      bytes / mib);
  else
    unicon__set_error(
        ctx, UNICON_ERR_MEMORY,
        "%.1f MiB more are needed, but %.1f MiB of the %.1f MiB that max_mem allows are in use",
        bytes / mib, (double)unicon__budget_used(budget) / mib, (double)limit / mib);
  return NULL;
}

void *unicon__arena_new(unicon_ctx *ctx, unicon__arena *arena, int64_t count, size_t size) {
  if (count < 0 || size == 0 || (uint64_t)count > (SIZE_MAX / 4) / size)
    return no_memory(ctx, arena->budget, (double)count * (double)size);
  const size_t payload = (size_t)count * size;
  const size_t bytes = (payload + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (unicon__fault(&ctx->faults.allocation)) return no_memory(ctx, arena->budget, (double)bytes);
  unicon__block *block =
      bytes >= MAP_FROM ? spare_take(arena, bytes) : NULL; /* none with a limit */
  if (!block) spare_make_way(arena, bytes);
  if (!budget_take(arena->budget, bytes)) return no_memory(ctx, arena->budget, (double)bytes);
  if (!block) block = block_get(bytes);
  if (!block) {
    atomic_fetch_sub(&arena->budget->used, bytes);
    return no_memory(ctx, arena->budget, (double)bytes);
  }
  block->bytes = bytes;
  block->older = arena->head;
  block->newer = NULL;
  if (arena->head) arena->head->newer = block;
  arena->head = block;
  return (char *)block + ALIGNMENT;
}

void *unicon__new(unicon_ctx *ctx, int64_t count, size_t size) {
  return unicon__arena_new(ctx, &ctx->arena, count, size);
}

void unicon__arena_drop(unicon__arena *arena, void *memory) {
  if (memory) block_free(arena, (unicon__block *)(void *)((char *)memory - ALIGNMENT));
}

void unicon__drop(unicon_ctx *ctx, void *memory) {
  unicon__arena_drop(&ctx->arena, memory);
}

unicon__block *unicon__arena_mark(const unicon__arena *arena) {
  return arena->head;
}

void unicon__arena_back(unicon__arena *arena, const unicon__block *mark) {
  while (arena->head && arena->head != mark) block_free(arena, arena->head);
}

unicon__block *unicon__frame_open(unicon_ctx *ctx) {
  return unicon__arena_mark(&ctx->arena);
}

void unicon__frame_close(unicon_ctx *ctx, unicon__block *frame) {
  unicon__arena_back(&ctx->arena, frame);
}
