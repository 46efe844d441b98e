/* SPDX-License-Identifier: Apache-2.0 */
/* The library speaks of options by their names, "bad_rows drop"; a message of the command says what
 * can be typed, "--bad-rows drop". */
#ifndef UNICON_PROGRAMS_FLAGS_H
#define UNICON_PROGRAMS_FLAGS_H

#include "cli.h"

/* Writes the sentence with options of the command as they are typed. What is quoted, is part of a
 * path, or stands in an argument of the command line stays; so do names that are plain words, unless
 * the sentence refuses or advises a value of theirs, or names the one that was given. */
void flags_in(const cli_args *args, const char *text, char *out, size_t size);

#endif
