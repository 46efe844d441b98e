/* SPDX-License-Identifier: Apache-2.0 */
/* What every command works with: its arguments, a context, the library options given. */
#ifndef UNICON_PROGRAMS_COMMAND_H
#define UNICON_PROGRAMS_COMMAND_H

#include "cli.h"
#include "display.h"
#include "unicon/tools.h"

/* The processes that a command runs in (unicon-mpi); NULL in the place of it: one. */
typedef struct job {
  const unicon_processes *with;
  bool crowded;                  /* several of them on this machine */
  const double *bytes, *seconds; /* that this one has told the others, and how long that took */
  void (*abandon)(void *user);   /* ends all of them: the others cannot be told any more */
  void *user;
} job;

/* Starts the program anew with faster products where OpenBLAS took the wrong kernels, and the user
 * has not said which to take. Returns where that is not so. */
void program_hurry(char **argv);

/* The program: what follows its name on the command line. */
int program_run(int argc, char **argv, const job *j);

struct tool {
  const cli_args *args;
  const job *job;
  bool agreed; /* tool_agree has been called */
  display display;
  unicon_ctx *ctx;
  unicon_options *options; /* those given on the command line are set */
  unicon_balance *balance; /* set by balanced_open; NULL: as the model says */
};

int cmd_fit(tool *t);
int cmd_plan(tool *t);
int cmd_compare(tool *t);
int cmd_eval(tool *t);
int cmd_probe(tool *t);
int cmd_check(tool *t);
int cmd_report(tool *t);
int cmd_embed(tool *t);
int cmd_search(tool *t);
int cmd_balance(tool *t);
int cmd_weights(tool *t);
int cmd_info(tool *t);
int cmd_synth(tool *t);
int cmd_migrate(tool *t);
int cmd_rewrite(tool *t);
int cmd_stats(tool *t);
int cmd_merge(tool *t);
int cmd_landmarks(tool *t);

/* Says why the last library call failed; returns the exit status: 2 for a value of the command
 * line, 130 when cancelled, 1 otherwise. */
int tool_fail(tool *t, unicon_status status);
/* Says it in our own words; returns EXIT_FAILED. */
int tool_error(tool *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Out of memory in the tool itself; returns EXIT_FAILED. */
int tool_out_of_memory(tool *t);
/* A new context looks for plugins of devices in the folder that UNICON_DEVICES names, where it
 * does: the library itself never reads the environment. */
unicon_status tool_devices(unicon_ctx *ctx);
/* For loops of the tool: "interrupted" on stderr, returns EXIT_INTERRUPTED. */
int tool_interrupted(tool *t);

/* Before a call of the library that all processes make: how this one fares. Returns `code` if all are
 * well, or the exit status of a failure, of whichever process; its sentence has been said. */
int tool_agree(tool *t, int code);
/* Is this the process that writes files? */
bool tool_writes(const tool *t);

static inline bool tool_has(const tool *t, cli_id id) {
  return t->args->given[id] > 0;
}

static inline const char *tool_value(const tool *t, cli_id id) {
  return t->args->value[id];
}

#endif
