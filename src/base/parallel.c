/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct unicon__pool {
  pid_t owner; /* the process whose threads these are */
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pthread_t thread[UNICON__MAX_THREADS];
  int threads;     /* helpers; the caller works too */
  int entered;     /* helpers that came into the current loop: their numbers */
  int inside;      /* those that are still in it */
  uint64_t loop;   /* number of the current loop */
  bool open, stop; /* it may still have items; all is over */
  unicon__item_fn body;
  void *state;
  int64_t count;
  atomic_int_least64_t next;
};

static void run_items(unicon__pool *pool, int worker) {
  for (;;) {
    const int64_t item = atomic_fetch_add(&pool->next, 1);
    if (item >= pool->count) return;
    pool->body(pool->state, item, worker);
  }
}

static void *helper(void *argument) {
  unicon__pool *pool = argument;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stop && !(pool->open && pool->loop != seen && pool->entered + 1 < pool->count))
      pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->stop) break;
    seen = pool->loop;
    const int worker = ++pool->entered;
    pool->inside++;
    pthread_mutex_unlock(&pool->lock);
    run_items(pool, worker);
    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    if (--pool->inside == 0) pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

static unicon__pool *pool_create(unicon_ctx *ctx) {
  unicon__pool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->owner = getpid();
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  for (int t = 1; t < ctx->threads; t++) {
    if (unicon__fault(&ctx->faults.thread)) break;
    if (pthread_create(&pool->thread[pool->threads], NULL, helper, pool)) break;
    pool->threads++;
  }
  if (pool->threads + 1 < ctx->threads)
    unicon__log(ctx, UNICON_LOG_WARNING, "%d threads were asked for, %d could be started",
                ctx->threads, pool->threads + 1);
  return pool;
}

/* In the child of a fork there are no helpers, and the lock is as they left it. */
static bool is_inherited(const unicon__pool *pool) {
  return pool->owner != getpid();
}

void unicon__pool_destroy(unicon__pool *pool) {
  if (!pool) return;
  if (is_inherited(pool)) {
    free(pool);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->stop = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (int t = 0; t < pool->threads; t++) pthread_join(pool->thread[t], NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}

int unicon__workers(const unicon_ctx *ctx) {
  return ctx->threads;
}

int64_t unicon__workers_for(const unicon_ctx *ctx, int64_t items) {
  return items < 1 ? 1 : items < ctx->threads ? items : ctx->threads;
}

/* Wakes as many helpers as there are items for; the caller takes one itself. */
static void wake_helpers(unicon__pool *pool) {
  if (pool->count > pool->threads)
    pthread_cond_broadcast(&pool->wake);
  else
    for (int64_t k = 1; k < pool->count; k++) pthread_cond_signal(&pool->wake);
}

/* A helper that has not woken up by the time the items are gone is not waited for: beside a busy
 * process that may take long. */
void unicon__parallel_for(unicon_ctx *ctx, int64_t count, unicon__item_fn body, void *state) {
  if (ctx->pool && is_inherited(ctx->pool)) unicon__ctx_set_threads(ctx, ctx->threads);
  if (ctx->threads > 1 && count > 1 && !ctx->pool) ctx->pool = pool_create(ctx);
  unicon__pool *pool = ctx->pool;
  if (!pool || count <= 1) {
    for (int64_t item = 0; item < count; item++) body(state, item, 0);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->body = body;
  pool->state = state;
  pool->count = count;
  atomic_store(&pool->next, 0);
  pool->loop++;
  pool->entered = 0;
  pool->open = true;
  wake_helpers(pool);
  pthread_mutex_unlock(&pool->lock);
  run_items(pool, 0);
  pthread_mutex_lock(&pool->lock);
  pool->open = false;
  while (pool->inside > 0) pthread_cond_wait(&pool->done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}
