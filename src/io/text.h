/* SPDX-License-Identifier: Apache-2.0 */
/* Small pieces of text: names, and the lines of a text file. */
#ifndef UNICON_IO_TEXT_H
#define UNICON_IO_TEXT_H

#include "io/bytes.h"

/* A copy of the text in the arena; NULL with the error set. */
char *unicon__text_copy(unicon_ctx *ctx, unicon__arena *arena, const char *text);

/* A path as it may stand in quotes in a line for a shell and Python: FILE in the place of one that
 * would mean something there. */
const char *unicon__text_shell(const char *path);

/* The three texts one after the other, in the context's frame; NULL with the error set. */
char *unicon__text_join(unicon_ctx *ctx, const char *a, const char *b, const char *c);

/* Whether `path` ends in `suffix` and is longer. */
bool unicon__has_suffix(const char *path, const char *suffix);

/* Walks through the lines of a file: start with {bytes, 0, 0}. */
typedef struct unicon__lines {
  unicon__bytes bytes;
  size_t at;
  int64_t number; /* of the current line, from 1 */
} unicon__lines;

/* The next line without its line end (LF or CR LF); false at the end. A byte order mark at the
 * start of the file is skipped. */
bool unicon__line_next(unicon__lines *lines, const char **text, size_t *length);

/* How many lines there are. */
int64_t unicon__line_count(unicon__bytes bytes);

#endif
