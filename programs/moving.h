/* SPDX-License-Identifier: Apache-2.0 */
/* Models of a migration where they are used: spaces, and files that lie in them. */
#ifndef UNICON_PROGRAMS_MOVING_H
#define UNICON_PROGRAMS_MOVING_H

#include "command.h"

/* The space in which vectors of the model meet: "old", "new" or "shared"; NULL for a model that no
 * migration made. */
const char *moving_space(const unicon_model *model);

/* The form of rows that will be searched: with their biases where scores are balanced. */
unicon_form moving_index_form(const unicon_model *model);

/* A warning where the verdict was to keep the old model. */
void moving_warn_keep(tool *t, const unicon_model *model, const char *path);

/* These return EXIT_DONE, or another exit status after a sentence on stderr. */

/* A model of `unicon fit` goes no way. */
int moving_refuse_other(tool *t, const unicon_model *model, const char *path);

/* Rows that the model has moved already are not moved again. */
int moving_refuse_moved(tool *t, const unicon_model *model, const char *path);

/* Vectors that are said to be moved: of this model and its space, as far as they say. */
int moving_check_moved(tool *t, const unicon_model *model, const char *path);

/* Rows of a side must look like it, unless --trust. */
int moving_check_rows(tool *t, const unicon_model *model, unicon_side side,
                      const unicon_rows *rows);

#endif
