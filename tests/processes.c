/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where all meet. */
typedef struct meeting_place {
  pthread_barrier_t all_here;
  int64_t count;
  void *brought[PROCESSES_MOST];
  atomic_llong bytes;
} meeting_place;

typedef struct process {
  pthread_t thread;
  meeting_place *place;
  int64_t index;
  process_fn body;
  void *user;
} process;

static void meet(meeting_place *place) {
  pthread_barrier_wait(&place->all_here);
}

/* Shows all others what one has. */
static void bring(process *p, void *what, int64_t bytes) {
  p->place->brought[p->index] = what;
  atomic_fetch_add(&p->place->bytes, bytes);
  meet(p->place);
}

static int gather(void *user, void *all, const int64_t *offset) {
  process *p = user;
  bring(p, all, offset[p->index + 1] - offset[p->index]);
  for (int64_t k = 0; k < p->place->count; k++)
    if (k != p->index && offset[k + 1] > offset[k])
      memcpy((char *)all + offset[k], (char *)p->place->brought[k] + offset[k],
             (size_t)(offset[k + 1] - offset[k]));
  meet(p->place);
  return 0;
}

static int broadcast(void *user, void *bytes, int64_t count) {
  process *p = user;
  bring(p, bytes, p->index == 0 ? count : 0);
  if (p->index > 0) memcpy(bytes, p->place->brought[0], (size_t)count);
  meet(p->place);
  return 0;
}

/* Puts a new array in the place of `values` when all have read what there was. */
static int replace(process *p, void *values, void *made, size_t bytes) {
  meet(p->place);
  memcpy(values, made, bytes);
  free(made);
  meet(p->place);
  return 0;
}

static int reduce(void *user, double *values, int64_t count, bool largest) {
  process *p = user;
  double *out = support_doubles(count);
  bring(p, values, count * (int64_t)sizeof *values);
  for (int64_t k = 0; k < p->place->count; k++) {
    const double *from = p->place->brought[k];
    for (int64_t i = 0; i < count; i++)
      out[i] = k == 0 ? from[i] : !largest ? out[i] + from[i] : from[i] > out[i] ? from[i] : out[i];
  }
  return replace(p, values, out, (size_t)count * sizeof *out);
}

static int sum(void *user, double *values, int64_t count) {
  return reduce(user, values, count, false);
}

static int largest(void *user, double *values, int64_t count) {
  return reduce(user, values, count, true);
}

static int sum_floats(void *user, float *values, int64_t count) {
  process *p = user;
  float *out = support_floats(count);
  bring(p, values, count * (int64_t)sizeof *values);
  for (int64_t k = 0; k < p->place->count; k++) {
    const float *from = p->place->brought[k];
    for (int64_t i = 0; i < count; i++) out[i] += from[i];
  }
  return replace(p, values, out, (size_t)count * sizeof *out);
}

static void *run(void *user) {
  process *p = user;
  unicon_ctx *ctx = NULL;
  const unicon_processes with =
      UNICON_PROCESSES(p->index, p->place->count, p, gather, broadcast, sum, sum_floats, largest);
  if (unicon_ctx_create(&ctx) != UNICON_OK || unicon_ctx_set(ctx, "threads", "1") != UNICON_OK ||
      unicon_ctx_join(ctx, &with) != UNICON_OK)
    abort();
  ctx->job.least = 0;
  p->body(ctx, p->index, p->user);
  unicon_ctx_destroy(ctx);
  return NULL;
}

int64_t processes_run(int64_t count, process_fn body, void *user) {
  meeting_place place = {.count = count};
  process p[PROCESSES_MOST];
  assert_int_equal(pthread_barrier_init(&place.all_here, NULL, (unsigned)count), 0);
  for (int64_t k = 0; k < count; k++) {
    p[k] = (process){.place = &place, .index = k, .body = body, .user = user};
    assert_int_equal(pthread_create(&p[k].thread, NULL, run, &p[k]), 0);
  }
  for (int64_t k = 0; k < count; k++) assert_int_equal(pthread_join(p[k].thread, NULL), 0);
  pthread_barrier_destroy(&place.all_here);
  return atomic_load(&place.bytes);
}
