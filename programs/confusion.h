/* SPDX-License-Identifier: Apache-2.0 */
/* Confusion matrices as text. */
#ifndef UNICON_PROGRAMS_CONFUSION_H
#define UNICON_PROGRAMS_CONFUSION_H

#include <jansson.h>
#include <stdint.h>

/* Entry (a, b) of `count` (classes by classes) counts rows of class a that were given class b; NULL
 * where there are too many classes. */
typedef struct confusion {
  int64_t classes;
  const char *const *name; /* of the classes */
  const int64_t *count;
} confusion;

/* The matrix, or its largest errors where it is too wide for a screen. */
void confusion_print(const confusion *c);

/* A list; a number stands in for a name that is not UTF-8. */
json_t *confusion_names_json(const confusion *c);

#endif
