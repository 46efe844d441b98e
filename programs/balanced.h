/* SPDX-License-Identifier: Apache-2.0 */
/* --balance, --bank-x and --bank-y where a model is used. */
#ifndef UNICON_PROGRAMS_BALANCED_H
#define UNICON_PROGRAMS_BALANCED_H

#include "command.h"

enum { BALANCED_WORDS = 160 };

/* Sets t->balance to what the command line says, or else the model (NULL: none). Returns EXIT_DONE,
 * or another exit status after a sentence on stderr. */
int balanced_open(tool *t, const unicon_model *model);

/* Was any of the options given? */
bool balanced_asked(const tool *t);

/* Are scores balanced? */
bool balanced_is_on(const unicon_balance *balance);

/* "softmax:10 by 4096 rows of x and 4096 of y", into BALANCED_WORDS bytes. */
const char *balanced_words(const unicon_balance *balance, char *out);

/* "balance", "bank_x" and "bank_y" of a JSON object. */
void balanced_json(const unicon_balance *balance, json_t *object);

#endif
