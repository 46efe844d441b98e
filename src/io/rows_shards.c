/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of numbered .npy files as clip-retrieval writes it: img_emb_0.npy, img_emb_1.npy, ...
 * The number, not the name, gives the order; gaps in the numbering are fine. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/object.h"
#include "io/rows_format.h"
#include "io/text.h"

typedef struct shard {
  int64_t number;
  size_t prefix; /* length of the name before the number */
  char name[NAME_MAX + 1];
} shard;

typedef struct shard_list {
  shard *item;
  int64_t count, room;
} shard_list;

/* PREFIX<number>.npy; false for any other name, hidden files included. */
static bool parse_name(const char *name, shard *out) {
  const size_t length = strlen(name);
  if (name[0] == '.' || !unicon__has_suffix(name, ".npy") || length >= sizeof out->name)
    return false;
  const size_t end = length - 4;
  size_t start = end;
  while (start > 0 && name[start - 1] >= '0' && name[start - 1] <= '9') start--;
  if (start == end || end - start > 18) return false;
  *out = (shard){.number = strtoll(name + start, NULL, 10), .prefix = start};
  memcpy(out->name, name, length);
  return true;
}

static unicon_status append(unicon_ctx *ctx, shard_list *list, const shard *item) {
  if (list->count == list->room) {
    shard *wider;
    const int64_t room = list->room ? 2 * list->room : 64;
    UNICON_NEW(ctx, wider, room);
    if (list->count) memcpy(wider, list->item, (size_t)list->count * sizeof *wider);
    unicon__drop(ctx, list->item);
    list->item = wider;
    list->room = room;
  }
  list->item[list->count++] = *item;
  return UNICON_OK;
}

static unicon_status read_names(unicon_ctx *ctx, const char *folder, DIR *open_folder,
                                shard_list *list) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = unicon__io_fault(ctx) ? NULL : readdir(open_folder);
    if (!entry && errno) return unicon__fail_io(ctx, "read the folder", folder);
    if (!entry) return UNICON_OK;
    shard item;
    if (parse_name(entry->d_name, &item)) UNICON_TRY(append(ctx, list, &item));
  }
}

static int by_number(const void *a, const void *b) {
  const int64_t left = ((const shard *)a)->number, right = ((const shard *)b)->number;
  return (left > right) - (left < right);
}

static unicon_status list_folder(unicon_ctx *ctx, const char *folder, shard_list *list) {
  DIR *open_folder = unicon__io_fault(ctx) ? NULL : opendir(folder);
  if (!open_folder) return unicon__fail_io(ctx, "open the folder", folder);
  const unicon_status status = read_names(ctx, folder, open_folder, list);
  closedir(open_folder);
  UNICON_TRY(status);
  if (list->count == 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "the folder %s has no numbered .npy files such as img_emb_0.npy", folder);
  qsort(list->item, (size_t)list->count, sizeof *list->item, by_number);
  return UNICON_OK;
}

static unicon_status check_names(unicon_ctx *ctx, const char *folder, const shard_list *list) {
  const shard *first = &list->item[0], *gap = first;
  int64_t gaps = 0;
  for (int64_t k = 1; k < list->count; k++) {
    const shard *item = &list->item[k];
    if (item->prefix != first->prefix || memcmp(item->name, first->name, first->prefix) != 0)
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "the folder %s has files of two series, %s and %s; keep one series in it",
                          folder, first->name, item->name);
    if (item->number == item[-1].number)
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "the folder %s has two files with one number, %s and %s", folder,
                          item[-1].name, item->name);
    if (item->number > item[-1].number + 1 && gaps++ == 0) gap = item;
  }
  if (gaps > 0)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the folder %s has no number between %s and %s%s: is a file missing?", folder,
                gap[-1].name, gap->name, gaps > 1 ? ", nor in other places" : "");
  return UNICON_OK;
}

unicon_status unicon__rows_open_shards(unicon_ctx *ctx, unicon_rows *rows, const char *folder) {
  shard_list list = {0};
  UNICON_TRY(list_folder(ctx, folder, &list));
  UNICON_TRY(check_names(ctx, folder, &list));
  UNICON_TRY(unicon__rows_reserve(ctx, rows, list.count));
  UNICON_ARENA_NEW(ctx, &rows->arena, rows->file, list.count);
  for (int64_t k = 0; k < list.count; k++) {
    char *path = unicon__text_join(ctx, folder, "/", list.item[k].name);
    if (!path) return UNICON_ERR_MEMORY;
    const int64_t before = rows->segments;
    UNICON_TRY(unicon__rows_add(ctx, rows, path, path, unicon__npy_parse));
    rows->file[before] = unicon__text_copy(ctx, &rows->arena, list.item[k].name);
    if (!rows->file[before]) return UNICON_ERR_MEMORY;
    unicon__drop(ctx, path);
  }
  return UNICON_OK;
}
