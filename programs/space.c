/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier) sched_getaffinity
#include "space.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* OpenBLAS maps so many MiB for each thread that computes, and asks for ever where it gets none. */
enum { BLAS_MIB = 129, OTHERS_MIB = 32, MOST_THREADS = 256 };

static int64_t needed(int64_t threads) {
  return threads * BLAS_MIB + OTHERS_MIB;
}

static bool fits(int64_t threads) {
  const size_t bytes = (size_t)needed(threads) << 20;
  void *room =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, bytes);
  return true;
}

/* Those of the option, or one for each processor that we may use, as the library takes them. */
static int64_t threads_of(const tool *t) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t threads = processors > 0 ? processors : 1;
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) threads = CPU_COUNT(&allowed);
#endif
  if (t->job && t->job->crowded) threads = 1;
  for (size_t i = 0; i < t->args->settings; i++) {
    const cli_setting *setting = &t->args->setting[i];
    const bool meant = strcmp(setting->option->name, "threads") == 0;
    const double given = meant ? strtod(setting->value, NULL) : 0;
    if (given >= 1) threads = (int64_t)given;
  }
  return threads < MOST_THREADS ? threads : MOST_THREADS;
}

/* Commands that make no products. */
static bool is_light(const char *command) {
  return strcmp(command, "info") == 0 || strcmp(command, "synth") == 0 ||
         strcmp(command, "merge") == 0;
}

int space_check(tool *t) {
  struct rlimit limit;
  char instead[64] = "";
  const int64_t threads = threads_of(t);
  int64_t most = threads;
  if (is_light(t->args->command->name) || getrlimit(RLIMIT_AS, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return EXIT_DONE;
  while (most > 0 && !fits(most)) most--;
  if (most == threads) return EXIT_DONE;
  if (most > 0) snprintf(instead, sizeof instead, " or use --threads %lld", (long long)most);
  return tool_error(t,
                    "the address space is limited to %.0f MiB (ulimit -v), and too little is left: "
                    "%lld thread%s of OpenBLAS need%s %lld MiB; raise the limit%s",
                    (double)limit.rlim_cur * 0x1p-20, (long long)threads, threads > 1 ? "s" : "",
                    threads > 1 ? "" : "s", (long long)needed(threads), instead);
}
