/* SPDX-License-Identifier: Apache-2.0 */
/* The context: error text, memory, threads, callbacks. */
#ifndef UNICON_BASE_CTX_H
#define UNICON_BASE_CTX_H

#include <stdatomic.h>

#include "base/progress.h"
#include "base/work.h"
#include "unicon/tools.h"

typedef struct unicon__pool unicon__pool;

/* Tests make the k-th event fail: each counter runs down to 0, then that event fails once; -1 is
 * off. */
typedef struct unicon__faults {
  int64_t allocation, io, thread;
  int64_t lapack; /* a divide-and-conquer routine does not converge */
} unicon__faults;

/* Where stages run (device/use.h): the option, and what has been made of it. */
typedef struct unicon__where {
  char name[24];                            /* "auto", "cpu" or the name of a plugin; "": auto */
  uint64_t limit;                           /* bytes of the device's memory; 0: all it has */
  char folder[1024];                        /* where plugins are looked for first, or "" */
  bool settled;                             /* a device has been looked for */
  bool reduced;                             /* option precision */
  bool used;                                /* a stage of this call ran on it */
  bool lowered;                             /* ... in reduced precision */
  int said;                                 /* its last status */
  bool told;                                /* the log knows that it has no form of a loss */
  int64_t process;                          /* that opened it */
  const struct unicon__device_table *table; /* of the open device; NULL: the CPU */
  struct unicon__device *device;
  void *library;
  void (*close)(unicon_ctx *ctx);
} unicon__where;

/* The processes of a job (base/together.h). */
typedef struct unicon__job {
  unicon_processes with; /* count 0: there are no others */
  bool active;           /* in a call of all of them */
  bool over;             /* all know that one has failed: nothing more is said in this call */
  int64_t said;          /* exchanges so far in this call */
  double least;          /* flops of a stage that is worth dividing */
  unicon_status status;  /* where it is over: of whom failed, and the sentence */
  char why[1024];
} unicon__job;

struct unicon_ctx {
  atomic_bool busy;     /* a call runs */
  atomic_bool refused;  /* ... and another one was refused meanwhile */
  unicon__block *frame; /* of the call in progress */
  unicon_status status;
  char error[1024];
  char warned[1024];   /* the last warning of this call */
  unicon__arena arena; /* frames of the call in progress */
  int threads;         /* at least 1 */
  unicon__pool *pool;  /* made on first use */
  unicon_log_fn log;
  void *log_user;
  unicon_progress_fn tell;
  void *tell_user;
  double progress_interval; /* seconds between two calls of it */
  unicon__progress progress;
  int64_t tile_x, tile_y; /* rows and columns of a tile of the plane */
  unicon__faults faults;
  unicon__where where;
  unicon__job job;
};

/* True once when the counter reaches 0. */
bool unicon__fault(int64_t *counter);

void unicon__log(unicon_ctx *ctx, unicon_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How many threads `threads` = 0 (all) means. */
int unicon__processor_count(void);

/* Changes the number of threads; the pool is remade on next use. */
void unicon__ctx_set_threads(unicon_ctx *ctx, int threads);

/* Public calls are written as
 *     UNICON_TRY(unicon__enter(ctx));
 *     return unicon__leave(ctx, body(ctx, ...));
 * Enter fails without a context, and with one that is inside another call: a callback's, or another
 * thread's. What runs inside a call uses internal functions only. */
unicon_status unicon__enter(unicon_ctx *ctx);
unicon_status unicon__leave(unicon_ctx *ctx, unicon_status status);

#endif
