/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of shards. The input is a list of files, each a byte with the length of its name, the
 * name, two bytes with the length of its contents, the contents; they are written into a folder. */
#include "target.h"

#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 6, NAME = 40 };

typedef struct cursor {
  const uint8_t *at;
  size_t left;
} cursor;

/* The next `wanted` bytes, or what is left. */
static cursor cut(cursor *c, size_t wanted) {
  const cursor part = {c->at, wanted < c->left ? wanted : c->left};
  if (part.left) c->at += part.left;
  c->left -= part.left;
  return part;
}

static char folder[64];

static void remove_folder(void) {
  rmdir(folder);
}

static void make_folder(void) {
  if (folder[0]) return;
  snprintf(folder, sizeof folder, "%s/unicon-fuzz-XXXXXX",
           access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  TARGET_HOLDS(mkdtemp(folder));
  atexit(remove_folder);
}

/* Writes the next file; its path goes to `path`, "" where the input has no usable name. */
static void write_next(cursor *c, char *path, size_t room) {
  const cursor length = cut(c, 1), name = cut(c, length.left ? length.at[0] % NAME : 0);
  const cursor size = cut(c, 2), data = cut(c, size.left == 2 ? size.at[0] + 256u * size.at[1] : 0);
  char text[NAME] = "";
  for (size_t k = 0; k < name.left; k++)
    text[k] = name.at[k] == '/' || name.at[k] == '\0' ? '_' : (char)name.at[k];
  path[0] = '\0';
  if (!name.left || strcmp(text, ".") == 0 || strcmp(text, "..") == 0) return;
  snprintf(path, room, "%s/%s", folder, text);
  FILE *file = fopen(path, "wb");
  TARGET_HOLDS(file);
  if (data.left) TARGET_HOLDS(fwrite(data.at, 1, data.left, file) == data.left);
  fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  cursor c = {data, size};
  char path[FILES][sizeof folder + NAME + 1] = {""};
  make_folder();
  for (int k = 0; k < FILES && c.left; k++) write_next(&c, path[k], sizeof path[k]);
  unicon_rows *rows = NULL;
  if (target_ok(ctx, unicon_rows_open(ctx, folder, &rows))) target_use_rows(ctx, rows);
  unicon_rows_close(rows);
  for (int k = 0; k < FILES; k++)
    if (path[k][0]) unlink(path[k]);
  target_done(ctx);
  return 0;
}
