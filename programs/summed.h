/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics in files, for the commands that make, merge, show and fit them. */
#ifndef UNICON_PROGRAMS_SUMMED_H
#define UNICON_PROGRAMS_SUMMED_H

#include "command.h"
#include "unicon/stats.h"

/* Does the name end in .stats? */
bool summed_is_name(const char *path);

/* X and Y are given, or --from in their place, without options about rows. */
int summed_check_sources(tool *t);

/* Reads a file. Like all below: returns EXIT_DONE, or another exit status after a sentence. */
int summed_open(tool *t, const char *path, unicon_stats **out);

/* Says what is in it. */
int summed_info(tool *t, const char *path);
int summed_print(tool *t, const char *path, const unicon_stats *stats,
                 const unicon_result *certificate);

#endif
