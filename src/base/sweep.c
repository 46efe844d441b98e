/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sweep.h"

#include <pthread.h>

enum { ALONG_ROW, ALONG_COL, WAYS };

/* The cells of a row or of a column: whose turn it is to be folded. */
typedef struct lane {
  int64_t due;
  bool busy; /* it is being folded */
} lane;

/* A slot in use, or free. */
typedef struct place {
  unicon__cell cell;
  bool ready[WAYS]; /* computed, and not folded yet */
  bool used;
} place;

typedef struct run {
  unicon_ctx *ctx;
  const unicon__sweep *sweep;
  pthread_mutex_t lock;
  pthread_cond_t freed;
  int64_t next, done, cells;
  bool stop;
  unicon_status status;
  int slots, used;
  place *place;
  lane *lane[WAYS];
} run;

int64_t unicon__sweep_slots(const unicon_ctx *ctx, int64_t cells) {
  const int64_t workers = unicon__workers_for(ctx, cells), wish = workers + workers / 2 + 1;
  return wish < cells ? wish : cells < 1 ? 1 : cells;
}

static unicon__cell_fn fold_of(const run *r, int way) {
  return way == ALONG_ROW ? r->sweep->fold_row : r->sweep->fold_col;
}

static int64_t lane_of(unicon__cell cell, int way) {
  return way == ALONG_ROW ? cell.row : cell.col;
}

static int64_t turn_of(unicon__cell cell, int way) {
  return way == ALONG_ROW ? cell.col : cell.row;
}

/* Takes the next cell and a slot for it; false: there is nothing left to do. With the lock. */
static bool take(run *r, int worker, unicon__cell *out) {
  while (!r->stop && r->next < r->cells && r->place && r->used == r->slots)
    pthread_cond_wait(&r->freed, &r->lock);
  if (r->stop || r->next == r->cells) return false;
  *out = (unicon__cell){r->next / r->sweep->cols, r->next % r->sweep->cols, worker, worker};
  r->next++;
  if (!r->place) return true;
  out->slot = 0;
  while (r->place[out->slot].used) out->slot++;
  r->place[out->slot] = (place){.cell = *out, .used = true};
  r->used++;
  return true;
}

/* The slot of the cell whose turn it is in a lane, or -1. */
static int due_slot(const run *r, int way, int64_t number) {
  for (int s = 0; s < r->slots; s++)
    if (r->place[s].ready[way] && lane_of(r->place[s].cell, way) == number &&
        turn_of(r->place[s].cell, way) == r->lane[way][number].due)
      return s;
  return -1;
}

/* Folds what is due in a lane, and what comes to be due by that. A lane that is busy is left to the
 * one who is at it: he will look again. With the lock, which is open during a fold. */
static void fold_lane(run *r, int way, int64_t number) {
  lane *l = &r->lane[way][number];
  for (int slot; !l->busy && (slot = due_slot(r, way, number)) >= 0;) {
    const unicon__cell cell = r->place[slot].cell;
    l->busy = true;
    pthread_mutex_unlock(&r->lock);
    fold_of(r, way)(r->sweep->state, cell);
    pthread_mutex_lock(&r->lock);
    l->busy = false;
    l->due++;
    r->place[slot].ready[way] = false;
    if (r->place[slot].ready[ALONG_ROW] || r->place[slot].ready[ALONG_COL]) continue;
    r->place[slot].used = false;
    r->used--;
    pthread_cond_signal(&r->freed);
  }
}

static void fold(run *r, unicon__cell cell) {
  for (int way = 0; way < WAYS; way++) r->place[cell.slot].ready[way] = fold_of(r, way) != NULL;
  for (int way = 0; way < WAYS; way++)
    if (fold_of(r, way)) fold_lane(r, way, lane_of(cell, way));
}

/* Tells how far the sweep is. With the lock, which is open during the call. */
static void tell(run *r) {
  const int64_t done = r->done;
  pthread_mutex_unlock(&r->lock);
  const unicon_status status = unicon__stage_step(r->ctx, done, r->cells);
  pthread_mutex_lock(&r->lock);
  if (status == UNICON_OK) return;
  r->status = status;
  r->stop = true;
  pthread_cond_broadcast(&r->freed);
}

/* What one thread does; the calling one is worker 0. */
static void work(void *state, int64_t item, int worker) {
  (void)item;
  run *r = state;
  unicon__cell cell;
  pthread_mutex_lock(&r->lock);
  while (take(r, worker, &cell)) {
    pthread_mutex_unlock(&r->lock);
    r->sweep->body(r->sweep->state, cell);
    pthread_mutex_lock(&r->lock);
    r->done++;
    if (r->place) fold(r, cell);
    if (worker == 0 && r->next < r->cells) tell(r);
  }
  pthread_mutex_unlock(&r->lock);
}

static unicon_status open_order(run *r) {
  const unicon__sweep *sweep = r->sweep;
  if (!sweep->fold_row && !sweep->fold_col) return UNICON_OK;
  r->slots = (int)unicon__sweep_slots(r->ctx, r->cells);
  UNICON_NEW(r->ctx, r->place, r->slots);
  UNICON_NEW(r->ctx, r->lane[ALONG_ROW], sweep->rows);
  UNICON_NEW(r->ctx, r->lane[ALONG_COL], sweep->cols);
  return UNICON_OK;
}

static unicon_status run_cells(run *r) {
  UNICON_TRY(unicon__stage_step(r->ctx, 0, r->cells));
  UNICON_TRY(open_order(r));
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->freed, NULL);
  if (r->sweep->region) r->sweep->region->begin();
  unicon__parallel_for(r->ctx, unicon__workers_for(r->ctx, r->cells), work, r);
  if (r->sweep->region) r->sweep->region->end();
  pthread_cond_destroy(&r->freed);
  pthread_mutex_destroy(&r->lock);
  return r->status;
}

unicon_status unicon__sweep_run(unicon_ctx *ctx, const unicon__sweep *sweep) {
  run r = {.ctx = ctx, .sweep = sweep, .cells = sweep->rows * sweep->cols, .status = UNICON_OK};
  const int stage = unicon__stage_begin(ctx, sweep->name, sweep->share);
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(run_cells(&r));
  unicon__frame_close(ctx, frame);
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

unicon_status unicon__sweep_rows(unicon_ctx *ctx, const char *name, const unicon__region *region,
                                 int64_t count, unicon__cell_fn body, void *state) {
  return unicon__sweep_run(
      ctx,
      &(unicon__sweep){
          .name = name, .rows = count, .cols = 1, .region = region, .state = state, .body = body});
}
