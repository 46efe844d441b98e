/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes of a job agree about what each has done by itself. */
#include "job.h"

static unicon_status status_of(int code) {
  return code == EXIT_DONE          ? UNICON_OK
         : code == EXIT_USAGE       ? UNICON_ERR_ARGUMENT
         : code == EXIT_INTERRUPTED ? UNICON_ERR_CANCELLED
                                    : UNICON_ERR_IO;
}

static int code_of(unicon_status status) {
  return status == UNICON_ERR_ARGUMENT    ? EXIT_USAGE
         : status == UNICON_ERR_CANCELLED ? EXIT_INTERRUPTED
                                          : EXIT_FAILED;
}

int job_agree(const job *j, const cli_command *command, int code) {
  unicon_ctx *ctx = NULL;
  if (!j) return code;
  if (unicon_ctx_create(&ctx) != UNICON_OK || unicon_ctx_join(ctx, j->with) != UNICON_OK) {
    unicon_ctx_destroy(ctx);
    cli_error(command, "out of memory");
    j->abandon(j->user);
    return EXIT_FAILED;
  }
  const unicon_status status = unicon_agree(ctx, status_of(code), cli_said());
  if (status != UNICON_OK && code == EXIT_DONE) {
    cli_error(command, "%s", unicon_ctx_error(ctx));
    code = code_of(status);
  }
  unicon_ctx_destroy(ctx);
  return code;
}

int tool_agree(tool *t, int code) {
  t->agreed = true;
  display_clear(&t->display);
  return job_agree(t->job, t->args->command, code);
}

bool tool_writes(const tool *t) {
  return !t->job || t->job->with->index == 0;
}

void job_tell(tool *t) {
  char size[32], time[32], text[128];
  if (!t->job) return;
  snprintf(text, sizeof text,
           "process 0 told the others %s and was %s in exchanges, waiting included",
           display_bytes(*t->job->bytes, size, sizeof size),
           display_time(*t->job->seconds, time, sizeof time));
  display_log(&t->display, UNICON_LOG_INFO, text);
}

bool job_knows(const cli_command *command) {
  return command->bit == CLI_FIT || command->bit == CLI_EVAL || command->bit == CLI_SEARCH;
}

void job_overview(void) {
  fputs(
      "unicon-mpi runs commands of unicon in the processes of an MPI job: the same words, the "
      "same\n"
      "options, the same output.\n\n"
      "Usage: mpirun -n PROCESSES unicon-mpi COMMAND ...\n\n",
      stdout);
  for (size_t i = 0; i < cli_command_count; i++)
    if (job_knows(&cli_commands[i]))
      printf("  %-9s %s\n", cli_commands[i].name, cli_commands[i].summary);
  fputs(
      "\nExample:\n"
      "  mpirun -n 16 unicon-mpi fit image text --y-per-x 5 -o model.safetensors\n"
      "\n`unicon COMMAND --help` explains a command.\n",
      stdout);
}

int job_check(const cli_args *args) {
  const cli_command *command = args->command;
  if (!job_knows(command))
    return cli_error(NULL, "unicon-mpi runs fit, eval and search; `unicon %s` runs in one process",
                     command->name);
  if (command->bit == CLI_FIT && args->given[CLI_OPT_FROM])
    return cli_error(command,
                     "a fit from statistics needs no rows and runs in one process: `unicon "
                     "fit --from`");
  if (command->bit == CLI_EVAL && args->given[CLI_OPT_CLASSES])
    return cli_error(command, "--classes runs in one process: `unicon eval`");
  return EXIT_DONE;
}
