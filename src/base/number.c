/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The locale "C" for this thread; what was there before comes back with locale_end. It is built in,
 * so that nothing is allocated; where that fails the program's locale stays. */
typedef struct plain_locale {
  locale_t own, before;
} plain_locale;

static plain_locale locale_begin(void) {
  plain_locale l = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
  if (l.own) l.before = uselocale(l.own);
  return l;
}

static void locale_end(plain_locale l) {
  if (!l.own) return;
  uselocale(l.before);
  freelocale(l.own);
}

double unicon__number_read(const char *text, char **end) {
  const plain_locale l = locale_begin();
  errno = 0;
  const double value = strtod(text, end);
  const int error = errno;
  locale_end(l);
  errno = error;
  return value;
}

int unicon__number_print(char *out, size_t size, const char *format, ...) {
  const plain_locale l = locale_begin();
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(out, size, format, arguments);
  va_end(arguments);
  locale_end(l);
  return length;
}

int unicon__compare_int64(const void *a, const void *b) {
  const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

int unicon__compare_double(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

double unicon__median(double *values, int64_t count) {
  qsort(values, (size_t)count, sizeof *values, unicon__compare_double);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
