/* SPDX-License-Identifier: Apache-2.0 */
/* Where the address space is limited (ulimit -v, batch systems): is there room for OpenBLAS? It would
 * hang later. */
#ifndef UNICON_PROGRAMS_SPACE_H
#define UNICON_PROGRAMS_SPACE_H

#include "command.h"

/* EXIT_DONE, or says what is missing. */
int space_check(tool *t);

#endif
