/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a choice share: candidates, kernels that are open, what is best so far. */
#ifndef UNICON_SELECT_SELECTION_H
#define UNICON_SELECT_SELECTION_H

#include "select/select.h"

enum { UNICON__FOLDS_MAX = 8, UNICON__KERNELS_MAX = 6 };

/* What a setting may be behind on some of the splits before it is given up: other splits seldom
 * bring back more. */
#define UNICON__NEAR_ENOUGH 0.01

/* A kernel is swept only where its first score is as near as this to the best first score of
 * another: sweeps of two kernels gain about the same. */
#define UNICON__NEAR_KERNEL 0.005

typedef struct unicon__kernel_name {
  const char *name;
  unicon__kernel_kind kind;
} unicon__kernel_name;

/* A kernel's best setting, closed form or refined. */
typedef struct unicon__candidate {
  const unicon__kernel_name *kernel;
  unicon__setting setting;
  int64_t directions;   /* that the splits had of setting.rank; 0: not known */
  int epochs, schedule; /* of refine: run, and of the falling rate */
  double temperature;
  double score;                   /* -1: none yet */
  double fold[UNICON__FOLDS_MAX]; /* its parts */
  int tried;                      /* refined: epochs that were run, and the scores after them */
  double by_epoch[UNICON__EPOCH_LOG];
} unicon__candidate;

/* A kernel with its rows prepared and its splits open. */
typedef struct unicon__opened {
  const unicon__kernel_name *kernel; /* NULL: nothing is open */
  unicon__prepared *prepared;
  unicon__trial *trial[UNICON__FOLDS_MAX];
  unicon__block *frame;
} unicon__opened;

typedef struct unicon__selection {
  const unicon__select_job *job;
  unicon__params *params; /* what is being tried; the choice in the end */
  int folds;
  bool all, larger;          /* scope, preset best */
  unicon__kernel_name given; /* the user's kernel, where it is not open */
  double begun, rate;        /* seconds; flops a second */
  unicon__select_log *log;
  unicon_status none;  /* why no kernel may be left */
  bool quarter_is_bad; /* power 1/4 lost clearly with another kernel: not tried again */
  unicon__opened open[UNICON__SELECT_SLOTS];
  unicon__prepared *slot;
  unicon__candidate now;              /* best of the kernel that is being tried */
  double first[UNICON__FOLDS_MAX];    /* score after the first epoch of the best refine, per fold */
  double reached[UNICON__FOLDS_MAX];  /* and at its best */
  double by_epoch[UNICON__EPOCH_LOG]; /* of the first refine of the kernel */
  int tried;
  unicon__candidate kernel[UNICON__KERNELS_MAX]; /* best of each kernel */
  int kernels;
  double glance; /* first score of the linear kernel; -1: none */
  unicon__candidate glanced;
  bool due;           /* settings are tried whatever the budget */
  double opening;     /* best first score of a kernel that was swept */
  int shown, planned; /* candidates of the kernel so far, and in all, about */
} unicon__selection;

/* ---- words and time (selection.c) -------------------------------------------------------- */

void unicon__kernel_words(const unicon_options *options, const char *kernel, char *out,
                          size_t size);
int unicon__setting_words(const unicon__candidate *c, const char *comma, char *out, size_t size);
/* Keeps a candidate in the log. */
void unicon__remember(unicon_ctx *ctx, const unicon__selection *w, const unicon__candidate *c);
/* Seconds of a share of the budget that are left; until the first setting of a kernel on so many
 * landmarks; and as many landmarks as half of the budget has time for. */
double unicon__seconds_left(const unicon__selection *w, double share);
double unicon__preparation_time(const unicon__selection *w, int64_t landmarks);
int64_t unicon__landmarks_for(const unicon__selection *w, int64_t wanted);

/* ---- kernels that are open (selection.c) ------------------------------------------------- */

void unicon__kernel_close(unicon_ctx *ctx, const unicon__selection *w, unicon__opened *o);
void unicon__kernel_set(unicon__selection *w, const unicon__kernel_name *kernel);
unicon__opened *unicon__kernel_find(unicon__selection *w, const unicon__kernel_name *kernel);
unicon_status unicon__kernel_open(unicon_ctx *ctx, unicon__selection *w,
                                  const unicon__kernel_name *kernel, unicon__opened **out);
double unicon__opening_share(const unicon__selection *w);
unicon_status unicon__kernel_turn(unicon_ctx *ctx, const unicon__selection *w, unicon__opened *o);
int64_t unicon__common_rank(const unicon__selection *w, const unicon__opened *o);

/* ---- settings (axes.c) ------------------------------------------------------------------- */

/* Both ridges of a setting, times those of `from`. */
void unicon__scale_ridge(unicon__setting *s, const unicon__setting *from, double factor);
/* How many settings a sweep tries where none but the first of each axis helps. */
int unicon__count_settings(const unicon__selection *w);
/* The first setting of a kernel alone, and all that are left open, into w->now. */
unicon_status unicon__glance(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o);
unicon_status unicon__sweep_settings(unicon_ctx *ctx, unicon__selection *w, unicon__opened *o);

#endif
