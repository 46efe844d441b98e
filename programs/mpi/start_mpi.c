/* SPDX-License-Identifier: Apache-2.0 */
/* unicon-mpi: the commands fit, eval and search in the processes of an MPI job. Process 0 speaks for
 * all and writes the files. */
#include <stdio.h>
#include <unistd.h>

#include "command.h"
#include "communicator.h"

/* What the others would say, all of them have heard. */
static bool be_silent(void) {
  const bool out = freopen("/dev/null", "w", stdout) != NULL;
  const bool err = freopen("/dev/null", "w", stderr) != NULL;
  return out && err;
}

int main(int argc, char **argv) {
  communicator c;
  program_hurry(argv);
  if (!communicator_open(&argc, &argv, &c)) return EXIT_FAILED;
  const job of = {.with = &c.with,
                  .crowded = c.here > 1,
                  .bytes = &c.bytes,
                  .seconds = &c.seconds,
                  .abandon = communicator_abandon,
                  .user = NULL};
  if (c.with.index > 0 && !be_silent()) communicator_abandon(NULL);
  const int code = program_run(argc, argv, &of);
  communicator_close();
  return code;
}
