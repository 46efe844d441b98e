/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, with a point as the decimal point whatever the program's locale says. */
#ifndef UNICON_BASE_NUMBER_H
#define UNICON_BASE_NUMBER_H

#include <stddef.h>

/* strtod */
double unicon__number_read(const char *text, char **end);

/* snprintf */
int unicon__number_print(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
