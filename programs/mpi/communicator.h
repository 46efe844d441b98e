/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of an MPI job, as callbacks for the library. The only user of mpi.h. */
#ifndef UNICON_PROGRAMS_MPI_COMMUNICATOR_H
#define UNICON_PROGRAMS_MPI_COMMUNICATOR_H

#include <stdbool.h>

#include "unicon/tools.h"

typedef struct communicator {
  unicon_processes with;
  int64_t here;   /* processes of the job on this machine */
  double bytes;   /* that this process has given to the others so far ... */
  double seconds; /* ... how long it was in these exchanges, waiting included ... */
  double busy;    /* ... and the processor time that they took, as MPI waits by asking */
} communicator;

/* Starts MPI; false where it fails, which it says itself. */
bool communicator_open(int *argc, char ***argv, communicator *out);
void communicator_close(void);
/* Ends all processes. */
void communicator_abandon(void *user);

/* Processor time of this process so far. */
double communicator_worked(void);

/* Waits for all others without taking their processor. */
void communicator_rest(void);
/* The sum, or the largest, over the processes, on all of them. */
double communicator_sum(double value);
double communicator_largest(double value);

#endif
