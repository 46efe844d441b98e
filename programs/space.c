/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* OpenBLAS maps so much for each thread that computes, and asks for ever where it gets none. */
enum { BLAS_MB = 129, OTHERS_MB = 32 };

static bool fits(int64_t threads) {
  const size_t bytes = (size_t)(threads * BLAS_MB + OTHERS_MB) << 20;
  void *room =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, bytes);
  return true;
}

/* Those of the option, or a processor each. */
static int64_t threads_of(const tool *t) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t threads = t->job && t->job->crowded ? 1 : processors > 0 ? processors : 1;
  for (size_t i = 0; i < t->args->settings; i++) {
    const cli_setting *setting = &t->args->setting[i];
    const long long given =
        strcmp(setting->option->name, "threads") == 0 ? atoll(setting->value) : 0;
    if (given > 0) threads = given;
  }
  return threads;
}

int space_check(tool *t) {
  struct rlimit limit;
  const int64_t threads = threads_of(t);
  int64_t most = threads;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return EXIT_DONE;
  while (most > 0 && !fits(most)) most--;
  if (most == threads) return EXIT_DONE;
  return tool_error(t,
                    "the address space is limited to %.0f MB (ulimit -v), in which OpenBLAS takes "
                    "%d MB for each of %lld threads; raise the limit%s",
                    1e-6 * (double)limit.rlim_cur, BLAS_MB, (long long)threads,
                    most > 0 ? ", or lower --threads" : "");
}
