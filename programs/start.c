/* SPDX-License-Identifier: Apache-2.0 */
/* unicon, in one process. */
#include "command.h"

int main(int argc, char **argv) {
  program_hurry(argv);
  return program_run(argc, argv, NULL);
}
