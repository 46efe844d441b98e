/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of several processes changes about commands. */
#ifndef UNICON_PROGRAMS_JOB_H
#define UNICON_PROGRAMS_JOB_H

#include "command.h"

/* All processes say how they fare; as tool_agree. `command` may be NULL. */
int job_agree(const job *j, const cli_command *command, int code);

/* Commands that run in several processes. */
bool job_knows(const cli_command *command);
/* What they do not do there; EXIT_DONE, or another exit status after a sentence. */
int job_check(const cli_args *args);

/* What they are and how they are started, on standard output. */
void job_overview(void);

/* Says how much this process has told the others (-v). */
void job_tell(tool *t);

#endif
