/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-shot classification: rows of one side against class vectors of the other. */
#ifndef UNICON_PROGRAMS_CLASSES_H
#define UNICON_PROGRAMS_CLASSES_H

#include "command.h"
#include "confusion.h"

typedef struct classes {
  unicon_rows *vectors;          /* --classes, one row per class */
  unicon_labels *labels, *names; /* of the rows, and --class-names or NULL */
  const char **name;             /* of each class */
  char *digits;                  /* the texts of unnamed classes */
  int64_t *label;                /* of each row, a row of `vectors` */
  int64_t dropped;               /* rows left out by --bad-rows drop */
  unicon_result *result;
} classes;

/* Reads --classes and --class-names, and from `label_path` the label of each row of `rows`, which
 * belong to `side`; then classifies. Labels are names of classes if all are, else all must be row
 * numbers. Returns EXIT_DONE, or another exit status after a sentence on stderr; close the result
 * whatever is returned. */
int classes_run(tool *t, const unicon_rows *rows, const char *label_path, const unicon_model *model,
                unicon_side side, classes *out);
void classes_close(classes *c);

confusion classes_confusion(const classes *c);
json_t *classes_json(const classes *c);

#endif
