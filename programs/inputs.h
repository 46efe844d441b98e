/* SPDX-License-Identifier: Apache-2.0 */
/* The files that commands read and write. */
#ifndef UNICON_PROGRAMS_INPUTS_H
#define UNICON_PROGRAMS_INPUTS_H

#include "command.h"

/* Two matrices and the pairs between them. */
typedef struct inputs {
  unicon_rows *x, *y;
  unicon_pairs *pairs;
  unicon_labels *groups; /* of the rows of x, or NULL */
} inputs;

/* Which of the command line's pair options speak about these rows. Loose rows need no pairs:
 * without a pair option there are none. */
typedef enum inputs_kind { INPUTS_MAIN, INPUTS_LOOSE, INPUTS_VALIDATION, INPUTS_TEST } inputs_kind;

/* Looks for pair options that contradict each other, before any file is opened. Like all below:
 * returns EXIT_DONE, or another exit status after a sentence on stderr. */
int inputs_check_options(tool *t);

/* Are the two paths one file? */
bool inputs_same(const char *a, const char *b);

/* Opens X, Y and their pairs. Close them whatever is returned. */
int inputs_open(tool *t, const char *x_path, const char *y_path, inputs_kind kind, inputs *out);
void inputs_close(inputs *in);

/* Checks early that a file can be made at `path`: its folder exists and it is none of the files
 * that the command line names as inputs. */
int inputs_check_output(tool *t, const char *path);
/* The same for a matrix, whose name says the format. */
int inputs_check_matrix_output(tool *t, const char *path);
/* Two options, given or not, must not name one file. */
int inputs_check_differ(tool *t, cli_id first, cli_id second);

/* The same for a model, whose name must not promise another format. */
int inputs_check_model_output(tool *t, const char *path);
/* A name that says nothing is taken, with a warning. */
void inputs_warn_model_name(tool *t, const char *path);

/* Writes a file whole or not at all: under a temporary name, then renamed. */
int output_write(tool *t, const char *path, const void *data, size_t size);

#endif
