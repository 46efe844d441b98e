/* SPDX-License-Identifier: Apache-2.0 */
#include "shards.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *shards_path(const char *folder, int64_t k, const char *behind) {
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  const size_t room = length + strlen(behind) + 32;
  char *path = malloc(room);
  if (path) snprintf(path, room, "%.*s/%lld.npy%s", (int)length, folder, (long long)k, behind);
  return path;
}

/* "rows" of a sidecar or a journal; 0 where it has none. */
static int64_t rows_in(const char *path) {
  json_t *about = path ? json_load_file(path, 0, NULL) : NULL;
  const int64_t rows = json_integer_value(json_object_get(about, "rows"));
  json_decref(about);
  return rows;
}

int64_t shards_rows(const char *path, int64_t left) {
  const size_t room = strlen(path) + 6;
  char *sidecar = malloc(room);
  if (sidecar) snprintf(sidecar, room, "%s.json", path);
  const int64_t rows = rows_in(sidecar);
  free(sidecar);
  return rows >= 1 && rows <= left ? rows : left;
}

/* The number of NUMBER.npy as we write it; -1 for another name. */
static int64_t number_of(const char *name) {
  char own[32], *end;
  const long long number = strtoll(name, &end, 10);
  if (number < 0 || strcmp(end, ".npy") != 0) return -1;
  snprintf(own, sizeof own, "%lld.npy", number);
  return strcmp(own, name) == 0 ? (int64_t)number : -1;
}

static bool is_npy(const char *name) {
  const size_t length = strlen(name);
  return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".npy") == 0;
}

int shards_refuse_others(tool *t, const char *folder, int64_t count) {
  DIR *files = opendir(folder);
  int code = EXIT_DONE;
  if (!files) return tool_error(t, "cannot read the folder %s: %s", folder, strerror(errno));
  for (const struct dirent *e; code == EXIT_DONE && (e = readdir(files));) {
    const int64_t number = is_npy(e->d_name) ? number_of(e->d_name) : 0;
    if (number < 0 || number >= count)
      code = tool_error(
          t,
          "%s in the folder %s does not belong to this rewrite, which ends with %lld.npy: "
          "remove it, or name another folder",
          e->d_name, folder, (long long)(count - 1));
  }
  closedir(files);
  return code;
}

/* How many rows the first shard has or is to have, and whether it is the only one. */
static int look_at_first(tool *t, const char *folder, int64_t *rows, bool *alone) {
  char *names[4] = {shards_path(folder, 0, ".json"), shards_path(folder, 0, ".part.json"),
                    shards_path(folder, 1, ""), shards_path(folder, 1, ".part")};
  int code = EXIT_DONE;
  for (int k = 0; k < 4; k++)
    if (!names[k]) code = tool_out_of_memory(t);
  if (code == EXIT_DONE) {
    *rows = rows_in(names[0]);
    if (*rows == 0) *rows = rows_in(names[1]);
    *alone = access(names[2], F_OK) != 0 && access(names[3], F_OK) != 0;
  }
  for (int k = 0; k < 4; k++) free(names[k]);
  return code;
}

int shards_check_room(tool *t, const char *folder, int64_t count, int64_t each) {
  int64_t rows = 0;
  bool alone = true;
  const int code = look_at_first(t, folder, &rows, &alone);
  if (code != EXIT_DONE) return code;
  if (rows > each || (rows > 0 && rows < each && !alone))
    return tool_error(t,
                      "%s has shards of %lld rows, not of %lld: give --shard-rows %lld, or name "
                      "another folder",
                      folder, (long long)rows, (long long)each, (long long)rows);
  return shards_refuse_others(t, folder, (count - 1) / each + 1);
}
