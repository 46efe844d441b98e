/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer: gives a target the empty input and every file of the given folders, so
 * that what the fuzzer once found is tried in every test run and with every compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fail(const char *what, const char *path) {
  fprintf(stderr, "replay: cannot %s ", what);
  perror(path);
  return -1;
}

/* Runs the target on one file. The buffer has exactly the size of the file, so that
 * AddressSanitizer sees the first byte read past it. */
static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return fail("open", path);
  struct stat info;
  if (fstat(fileno(file), &info) != 0) {
    fclose(file);
    return fail("stat", path);
  }
  const size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size ? size : 1);
  const int complete = data && fread(data, 1, size, file) == size;
  fclose(file);
  if (complete) LLVMFuzzerTestOneInput(data, size);
  free(data);
  return complete ? 0 : fail("read", path);
}

static int not_hidden(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

/* Returns the number of files, or -1. */
static int replay_folder(const char *folder) {
  struct dirent **entry = NULL;
  const int count = scandir(folder, &entry, not_hidden, alphasort);
  if (count < 0) return fail("list", folder);
  int bad = 0;
  for (int i = 0; i < count; i++) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
    if (length < 0 || (size_t)length >= sizeof path || replay_file(path) != 0) bad = 1;
    free(entry[i]);
  }
  free(entry);
  return bad ? -1 : count;
}

int main(int argc, char **argv) {
  uint8_t *nothing = malloc(1);
  if (!nothing) return 1;
  LLVMFuzzerTestOneInput(nothing, 0);
  free(nothing);
  int bad = 0;
  for (int i = 1; i < argc; i++) {
    const int count = replay_folder(argv[i]);
    if (count < 0)
      bad = 1;
    else
      printf("%s: %d inputs\n", argv[i], count);
  }
  return bad;
}
