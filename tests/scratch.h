/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of files share: a folder that goes away, files written byte by byte, and checks
 * of error sentences, of leaks, and of the k-th failure. */
#ifndef UNICON_TESTS_SCRATCH_H
#define UNICON_TESTS_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ctx.h"
#include "unicon/tools.h"

/* A context and a folder for one test. */
typedef struct scratch {
  unicon_ctx *ctx;
  char folder[512];
  char path[16][1024]; /* a ring, so that a few paths may be in use at once */
  int paths;
  int files_open; /* before the test */
} scratch;

static inline int scratch_count_entries(const char *folder) {
  int count = 0;
  DIR *open_folder = opendir(folder);
  assert_non_null(open_folder);
  for (struct dirent *e; (e = readdir(open_folder));) count += strcmp(e->d_name, ".") != 0;
  closedir(open_folder);
  return count - 1; /* without ".." */
}

static inline void scratch_remove(const char *path) {
  struct stat about;
  if (lstat(path, &about)) return;
  if (S_ISDIR(about.st_mode)) {
    DIR *open_folder = opendir(path);
    for (struct dirent *e; open_folder && (e = readdir(open_folder));) {
      if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
      const size_t room = strlen(path) + strlen(e->d_name) + 2;
      char *inside = malloc(room);
      assert_non_null(inside);
      snprintf(inside, room, "%s/%s", path, e->d_name);
      scratch_remove(inside);
      free(inside);
    }
    if (open_folder) closedir(open_folder);
  }
  remove(path);
}

/* UNICON_TEST_DEVICE runs a test on a device. */
static inline void scratch_device(unicon_ctx *ctx) {
  const char *device = getenv("UNICON_TEST_DEVICE"), *folder = getenv("UNICON_SOFT_FOLDER");
  if (!device) return;
  if (folder) assert_int_equal(unicon_device_folder(ctx, folder), UNICON_OK);
  if (unicon_ctx_set(ctx, "device", device) != UNICON_OK) fail_msg("%s", unicon_ctx_error(ctx));
}

static inline int scratch_setup(void **state) {
  scratch *s = calloc(1, sizeof *s);
  const char *base = getenv("TMPDIR");
  snprintf(s->folder, sizeof s->folder, "%s/unicon-test-XXXXXX", base ? base : "/tmp");
  assert_non_null(mkdtemp(s->folder));
  assert_int_equal(unicon_ctx_create(&s->ctx), UNICON_OK);
  scratch_device(s->ctx);
  s->files_open = scratch_count_entries("/proc/self/fd");
  *state = s;
  return 0;
}

/* Whether a file of the folder is still mapped. */
static inline int scratch_mapped(const scratch *s) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) found += strstr(line, s->folder) != NULL;
  fclose(maps);
  return found;
}

static inline uint64_t scratch_memory(const scratch *s) {
  return unicon__budget_used(s->ctx->arena.budget);
}

/* Nothing may be left behind by any test. */
static inline int scratch_teardown(void **state) {
  scratch *s = *state;
  assert_int_equal(scratch_mapped(s), 0);
  assert_int_equal(scratch_memory(s), 0);
  assert_int_equal(scratch_count_entries("/proc/self/fd"), s->files_open);
  scratch_remove(s->folder);
  unicon_ctx_destroy(s->ctx);
  free(s);
  return 0;
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

static inline const char *scratch_path(scratch *s, const char *name) {
  char *path = s->path[s->paths++ % 16];
  snprintf(path, sizeof s->path[0], "%s/%s", s->folder, name);
  return path;
}

/* Writes a file of the folder and gives its path. */
static inline const char *scratch_write(scratch *s, const char *name, const void *data,
                                        size_t size) {
  const char *path = scratch_path(s, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  if (size) assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
  return path;
}

static inline const char *scratch_text(scratch *s, const char *name, const char *text) {
  return scratch_write(s, name, text, strlen(text));
}

/* A small file in memory. */
typedef struct file_image {
  unsigned char bytes[4096];
  size_t size;
} file_image;

static inline void image_add(file_image *image, const void *data, size_t size) {
  assert_true(image->size + size <= sizeof image->bytes);
  if (size) memcpy(image->bytes + image->size, data, size);
  image->size += size;
}

static inline void image_add_length(file_image *image, size_t length, int bytes) {
  for (int k = 0; k < bytes; k++) {
    const unsigned char byte = (unsigned char)((uint64_t)length >> (8 * k));
    image_add(image, &byte, 1);
  }
}

/* .npy: magic, version, length, the dictionary as given, data. */
static inline file_image npy_make(int version, const char *dictionary, const void *data,
                                  size_t size) {
  file_image image = {.size = 0};
  const unsigned char start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
  image_add(&image, start, sizeof start);
  image_add_length(&image, strlen(dictionary), version == 1 ? 2 : 4);
  image_add(&image, dictionary, strlen(dictionary));
  image_add(&image, data, size);
  return image;
}

/* .safetensors: length, the header as given, data. */
static inline file_image safetensors_make(const char *header, const void *data, size_t size) {
  file_image image = {.size = 0};
  image_add_length(&image, strlen(header), 8);
  image_add(&image, header, strlen(header));
  image_add(&image, data, size);
  return image;
}

static inline const char *scratch_npy(scratch *s, const char *name, const char *dictionary,
                                      const void *data, size_t size) {
  const file_image image = npy_make(1, dictionary, data, size);
  return scratch_write(s, name, image.bytes, image.size);
}

/* The status, and a sentence that has both words. */
static inline void scratch_failed(const scratch *s, unicon_status status, unicon_status expected,
                                  const char *word, const char *other) {
  const char *error = unicon_ctx_error(s->ctx);
  if (status != expected || !strstr(error, word) || !strstr(error, other))
    print_error("status %d, wanted %d with '%s' and '%s', got: %s\n", (int)status, (int)expected,
                word, other, error);
  assert_int_equal(status, expected);
  assert_non_null(strstr(error, word));
  assert_non_null(strstr(error, other));
}

/* The event to fail after event k: every one of the first, then fewer and fewer; every one with
 * UNICON_FAULTS=full in the environment. */
static inline int scratch_next_fault(int k) {
  const char *depth = getenv("UNICON_FAULTS");
  return depth && strcmp(depth, "full") == 0 ? k + 1 : k + 1 + k / 24;
}

/* Makes the 1st, 2nd, ... event fail until the call gets through. `attempt` does the call, undoes
 * a success, and returns the status; each failure must leave nothing behind. Returns how many
 * events there are, or a little more where some are left out. */
static inline int scratch_faults(scratch *s, int64_t *counter, unicon_status expected,
                                 unicon_status (*attempt)(scratch *s, void *user), void *user) {
  const uint64_t memory = scratch_memory(s);
  const int files = scratch_count_entries(s->folder), mapped = scratch_mapped(s);
  for (int k = 0;; k = scratch_next_fault(k)) {
    *counter = k;
    const unicon_status status = attempt(s, user);
    const bool over = *counter >= 0; /* the call ended before the k-th event */
    *counter = -1;
    assert_int_equal(scratch_memory(s), memory);
    assert_int_equal(scratch_mapped(s), mapped);
    assert_int_equal(scratch_count_entries("/proc/self/fd"), s->files_open);
    if (over) {
      assert_int_equal(status, UNICON_OK);
      return k;
    }
    assert_int_equal(status, expected);
    assert_true(strlen(unicon_ctx_error(s->ctx)) > 0);
    assert_int_equal(scratch_count_entries(s->folder), files);
  }
}

#endif
