/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that `unicon compare` lines up. Each is a set of options of one and the same library
 * call, so all see the same rows, the same pairs and the same evaluator; what a method leaves open
 * is chosen on the validation pairs. */
#ifndef UNICON_PROGRAMS_CONTESTANTS_H
#define UNICON_PROGRAMS_CONTESTANTS_H

#include "command.h"

typedef struct contestant {
  const char *name;
  bool baseline;        /* not one of our presets */
  bool judged;          /* its fit sees the validation pairs: to choose, or to stop early */
  bool identity;        /* the rows as they are: nothing is fitted */
  const char *settings; /* "option=value ..." */
  const char *axis[2];  /* what is left open: alternatives separated by |, or NULL */
} contestant;

extern const contestant contestants[];
extern const size_t contestant_count;

/* NULL when there is none of that name, `length` characters long. */
const contestant *contestant_find(const char *name, size_t length);

/* The three sets of rows that all contestants share. */
typedef struct compared_sets {
  unicon_data train, validation, test;
} compared_sets;

enum { EPOCHS_MAX = 512 };

/* How a contestant did. */
typedef struct outcome {
  const contestant *who;
  char skipped[256];              /* why it did not take part, or "" */
  unicon_metrics to_y, to_x;      /* on the test rows */
  double score;                   /* on the validation rows */
  double seconds, run;            /* of all candidates, and of the chosen one */
  double memory;                  /* most bytes the library held */
  int candidates;                 /* tried */
  char chosen[256];               /* what the axes and auto chose */
  int epochs;                     /* of a method that learns by epochs */
  double epoch_score[EPOCHS_MAX]; /* its validation score after each, entry 0 the start */
} outcome;

/* Fits every candidate, takes the best by the validation score and evaluates it on the test rows.
 * EXIT_DONE also when the contestant had to be skipped; EXIT_INTERRUPTED when the user stopped it.
 */
int contestant_run(tool *t, const contestant *who, const compared_sets *data, outcome *out);

/* Seconds after which the method had reached the validation score `target`, or INFINITY: all of its
 * time for a closed form; for epochs their share of the chosen run alone. */
double outcome_time_to(const outcome *o, double target);

#endif
