/* SPDX-License-Identifier: Apache-2.0 */
/* Where a call stands. Work is cut into stages within stages; each says in advance which share of
 * the stage around it it takes:
 *
 *     const int stage = unicon__stage_begin(ctx, "refine", 0.3);
 *     for (int64_t k = 0; k < steps; k++) {
 *       UNICON_TRY(unicon__stage_step(ctx, k, steps));
 *       ... stages that begin in here share one step among them
 *     }
 *     unicon__stage_end(ctx, stage);
 *
 * From this come one share of the whole call, which never falls, the seconds left, and how long
 * each stage took. On the way out of a failure stages need not be ended: the public call, or
 * whoever goes on after the failure, ends its own and with it all inside. For the calling thread
 * only. */
#ifndef UNICON_BASE_PROGRESS_H
#define UNICON_BASE_PROGRESS_H

#include "base/status.h"

enum { UNICON__STAGES = 16, UNICON__STAGE_NAMES = 32, UNICON__STAGE_LABEL = 64 };

/* A stage in progress; places are shares of the call. */
typedef struct unicon__stage {
  const char *name;          /* a literal, or NULL: the time counts for the stage around */
  double from, to;           /* its part of the call */
  double item_from, item_to; /* the step in progress */
  double at;                 /* what is done */
  char label[UNICON__STAGE_LABEL];
} unicon__stage;

typedef struct unicon__progress {
  unicon__stage stage[UNICON__STAGES]; /* the first is the call */
  int depth;                           /* the last in progress */
  double share;                        /* the largest reported */
  double begun, told;                  /* when the call began, and the callback was called last */
  char said[UNICON__STAGE_LABEL];      /* to it */
  bool cancelled;
  /* seconds by name; those of a stage are without its inner ones */
  const char *name[UNICON__STAGE_NAMES];
  double seconds[UNICON__STAGE_NAMES];
  int names;
  double marked; /* until when they are counted */
} unicon__progress;

/* A new call: nothing is done, no stage has begun. */
void unicon__progress_reset(unicon_ctx *ctx);

/* Begins a stage that takes `share` of the step in progress; 0: half of what is left of it, for
 * work that nobody planned. Returns what unicon__stage_end takes. */
int unicon__stage_begin(unicon_ctx *ctx, const char *name, double share);
void unicon__stage_end(unicon_ctx *ctx, int stage);

/* What people read in the place of the stage's name: "candidate 4 of 11, angular". The label or
 * name of the outermost stage is shown. */
void unicon__stage_label(unicon_ctx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Step k of `count` of the stage begins: tells the callback, and fails when that asks to stop. */
unicon_status unicon__stage_step(unicon_ctx *ctx, int64_t k, int64_t count);

/* Only asks whether to go on. Once it has failed it fails until the call ends, so loops that cannot
 * fail may end early and leave it to the next that can. */
unicon_status unicon__poll(unicon_ctx *ctx);

/* Writes the seconds and shares of the stages so far to the log, the longest first. */
void unicon__stage_report(unicon_ctx *ctx);

#endif
