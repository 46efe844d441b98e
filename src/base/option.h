/* SPDX-License-Identifier: Apache-2.0 */
/* The option engine: checks and keeps values of a table of unicon_option_info rows. Which options
 * there are is the business of base/options.c. */
#ifndef UNICON_BASE_OPTION_H
#define UNICON_BASE_OPTION_H

#include "base/ctx.h"

typedef struct unicon__value {
  const char *text; /* as given, or the default */
  double number;    /* of integers, reals, sided reals and bytes */
  int word;         /* position in `words`, or -1 */
  bool sided;       /* "A,B" was given: A for x, above, and B for y: */
  double number_y;
  int word_y;
} unicon__value;

/* Reads `text` as a value of `row`; the error names the option, the text and what is accepted. */
unicon_status unicon__value_parse(unicon_ctx *ctx, const unicon_option_info *row, const char *text,
                                  unicon__value *out);

/* 1.5G and the like, powers of 1024; false for anything else. */
bool unicon__bytes_read(const char *text, double *out);

/* Position of the row called `name` ("-" equals "_"), or -1. */
int unicon__option_find(const unicon_option_info *table, int rows, const char *name);

#endif
