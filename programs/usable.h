/* SPDX-License-Identifier: Apache-2.0 */
/* --bad-rows drop where a model is used: the rows that are left, and their numbers in the file. */
#ifndef UNICON_PROGRAMS_USABLE_H
#define UNICON_PROGRAMS_USABLE_H

#include "command.h"

typedef struct usable {
  unicon_rows *rows;
  int64_t *number; /* of each of them in the file; NULL: all rows are in use */
  int64_t total;   /* rows of the file */
  int64_t count;   /* rows in use */
} usable;

/* Does the command line say --bad-rows drop? */
bool usable_wanted(const tool *t);

/* Where it does, puts the usable rows in the place of the view's. Returns EXIT_DONE, or another
 * exit status after a sentence on stderr. Close it whatever is returned; the view is of no use
 * then. */
int usable_open(tool *t, unicon_view *view, usable *out);
void usable_close(usable *u);

/* tool_fail; where a row that cannot be used is the reason, also how many there are, and what to do. */
int usable_fail(tool *t, unicon_status status, const unicon_view *view, size_t views);

/* The number in the file of row `row` of those in use. */
int64_t usable_number(const usable *u, int64_t row);

/* Numbers of the first rows that were left out, at most `room`; returns how many. */
int64_t usable_dropped(const usable *u, int64_t room, int64_t *number);

#endif
