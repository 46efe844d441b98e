/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, with a point as the decimal point whatever the program's locale says; and what
 * every folder needs of numbers. */
#ifndef UNICON_BASE_NUMBER_H
#define UNICON_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* strtod */
double unicon__number_read(const char *text, char **end);

/* snprintf */
int unicon__number_print(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline int64_t unicon__least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* For qsort, ascending. */
int unicon__compare_int64(const void *a, const void *b);
int unicon__compare_double(const void *a, const void *b);

/* The median of `count` numbers, which are sorted on the way. */
double unicon__median(double *values, int64_t count);

#endif
