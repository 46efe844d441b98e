/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that `unicon compare` lines up. Each is a set of options of one and the same library
 * call, so all see the same rows, the same pairs and the same evaluator; what a method leaves open
 * is chosen on the validation pairs, the strength of its balance too. */
#ifndef UNICON_PROGRAMS_CONTESTANTS_H
#define UNICON_PROGRAMS_CONTESTANTS_H

#include "command.h"

typedef struct contestant {
  const char *name;
  bool baseline;        /* not one of our presets */
  bool judged;          /* its fit sees the validation pairs: to choose, or to stop early; else
                           compare itself chooses the strength of its balance on them */
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

/* Every method is scored twice: by cosines alone, and balanced. */
typedef enum scoring { PLAIN, BALANCED, SCORINGS } scoring;

/* The candidate of a contestant that is best by one of the two. */
typedef struct showing {
  const unicon_result *result;    /* on the test rows */
  double score;                   /* on the validation rows */
  double run;                     /* seconds of its fit */
  char balance[32];               /* how it is balanced: "off", "softmax:10" */
  char chosen[256];               /* what the axes and auto chose */
  int epochs;                     /* of a method that learns by epochs */
  double epoch_score[EPOCHS_MAX]; /* its validation score after each, entry 0 the start */
} showing;

/* How a contestant did. */
typedef struct outcome {
  const contestant *who;
  char skipped[256]; /* why it did not take part, or "" */
  showing by[SCORINGS];
  unicon_result *result[SCORINGS]; /* what the showings look at; one may be NULL */
  double seconds;                  /* of the fits of all candidates */
  double memory;                   /* most bytes the library held */
  int candidates;                  /* tried */
} outcome;

/* Fits every candidate, takes the best by the validation score, of plain and of balanced scores
 * apart, and evaluates both on the test rows. `loud`: warnings about the test rows are shown.
 * EXIT_DONE also when the contestant had to be skipped; EXIT_INTERRUPTED when the user stopped it.
 */
int contestant_run(tool *t, const contestant *who, const compared_sets *data, bool loud,
                   outcome *out);

/* A metric on the test rows: `direction` is "x_to_y" or "y_to_x". */
double outcome_number(const outcome *o, scoring by, const char *direction, const char *metric);

/* Frees what an outcome holds. */
void outcome_close(outcome *o);

/* Seconds after which the method had reached the validation score `target`, balanced, or INFINITY:
 * all of its time for a closed form; for epochs their share of the chosen run alone. */
double outcome_time_to(const outcome *o, double target);

#endif
