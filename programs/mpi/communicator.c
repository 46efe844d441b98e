/* SPDX-License-Identifier: Apache-2.0 */
#include "communicator.h"

#include <mpi.h>
#include <stddef.h>
#include <time.h>

/* Counts of MPI are ints. */
enum { AT_ONCE = 1 << 28 };

static double clock_of(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double communicator_worked(void) {
  return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* When an exchange began, by both clocks. */
typedef struct beginning {
  double now, worked;
} beginning;

static beginning begin(void) {
  return (beginning){clock_of(CLOCK_MONOTONIC), communicator_worked()};
}

static int end(communicator *c, beginning begun, int64_t bytes, int said) {
  c->bytes += (double)bytes;
  c->seconds += clock_of(CLOCK_MONOTONIC) - begun.now;
  c->busy += communicator_worked() - begun.worked;
  return said == MPI_SUCCESS ? 0 : 1;
}

static int send_to_all(int from, char *bytes, int64_t count) {
  int said = MPI_SUCCESS;
  for (int64_t at = 0; at < count && said == MPI_SUCCESS; at += AT_ONCE) {
    const int64_t left = count - at;
    said = MPI_Bcast(bytes + at, (int)(left < AT_ONCE ? left : AT_ONCE), MPI_BYTE, from,
                     MPI_COMM_WORLD);
  }
  return said;
}

/* Equal parts by one call, others by one for each process. */
static int gather(void *user, void *all, const int64_t *offset) {
  communicator *c = user;
  const beginning begun = begin();
  const int64_t own = offset[c->with.index + 1] - offset[c->with.index];
  bool equal = own < AT_ONCE / c->with.count;
  int said = MPI_SUCCESS;
  for (int64_t k = 0; k < c->with.count; k++) equal = equal && offset[k + 1] - offset[k] == own;
  if (equal)
    said = MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, (char *)all + offset[0], (int)own,
                         MPI_BYTE, MPI_COMM_WORLD);
  for (int64_t k = 0; k < c->with.count && !equal && said == MPI_SUCCESS; k++)
    said = send_to_all((int)k, (char *)all + offset[k], offset[k + 1] - offset[k]);
  return end(c, begun, own, said);
}

static int broadcast(void *user, void *bytes, int64_t count) {
  communicator *c = user;
  const beginning begun = begin();
  return end(c, begun, c->with.index == 0 ? count : 0, send_to_all(0, bytes, count));
}

/* By process 0, which sends the result to all: they hold the same bytes whatever the order that MPI
 * sums in. */
static int reduce(communicator *c, void *values, int64_t count, int64_t size, MPI_Datatype type,
                  MPI_Op operation) {
  const beginning begun = begin();
  const int64_t step = AT_ONCE / size;
  const bool first = c->with.index == 0;
  int said = MPI_SUCCESS;
  for (int64_t at = 0; at < count && said == MPI_SUCCESS; at += step) {
    const int now_many = (int)(count - at < step ? count - at : step);
    char *part = (char *)values + at * size;
    said =
        MPI_Reduce(first ? MPI_IN_PLACE : part, part, now_many, type, operation, 0, MPI_COMM_WORLD);
    if (said == MPI_SUCCESS) said = MPI_Bcast(part, now_many, type, 0, MPI_COMM_WORLD);
  }
  return end(c, begun, count * size, said);
}

static int sum(void *user, double *values, int64_t count) {
  return reduce(user, values, count, (int64_t)sizeof *values, MPI_DOUBLE, MPI_SUM);
}

static int sum_floats(void *user, float *values, int64_t count) {
  return reduce(user, values, count, (int64_t)sizeof *values, MPI_FLOAT, MPI_SUM);
}

static int largest(void *user, double *values, int64_t count) {
  return reduce(user, values, count, (int64_t)sizeof *values, MPI_DOUBLE, MPI_MAX);
}

bool communicator_open(int *argc, char ***argv, communicator *out) {
  int level = 0, index = 0, count = 1, here = 1;
  MPI_Comm machine;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &index);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, index, MPI_INFO_NULL, &machine) ==
      MPI_SUCCESS) {
    MPI_Comm_size(machine, &here);
    MPI_Comm_free(&machine);
  }
  *out = (communicator){
      .with = UNICON_PROCESSES(index, count, out, gather, broadcast, sum, sum_floats, largest),
      .here = here};
  return true;
}

void communicator_close(void) {
  MPI_Finalize();
}

void communicator_abandon(void *user) {
  (void)user;
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void communicator_rest(void) {
  const struct timespec pause = {0, 2000000};
  MPI_Request request;
  int done = 0;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
    nanosleep(&pause, NULL);
}

double communicator_sum(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

double communicator_largest(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}
