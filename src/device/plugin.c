/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */  // NOLINT(bugprone-reserved-identifier)
#include "device/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef UNICON_LIBRARY_FOLDER
#define UNICON_LIBRARY_FOLDER "lib"
#endif

enum { PATH_ROOM = 1200, FOLDERS = 5 };

static const char prefix[] = "libunicon_", suffix[] = ".so";

bool unicon__plugin_is_name(const char *name) {
  const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return length > 0 && length < UNICON__PLUGIN_NAME && name[length] == '\0';
}

/* The folder of the library or program that this code is in; "" if nobody knows. */
static void own_folder(char *out, size_t size) {
  static const char here = 0;
  Dl_info about;
  out[0] = '\0';
  if (!dladdr(&here, &about) || !about.dli_fname) return;
  const char *slash = strrchr(about.dli_fname, '/');
  if (slash) {
    snprintf(out, size, "%.*s", (int)(slash - about.dli_fname), about.dli_fname);
    return;
  }
  /* a program that was found by its name: where is it? */
  const ssize_t length = readlink("/proc/self/exe", out, size - 1);
  out[length > 0 ? length : 0] = '\0';
  char *last = strrchr(out, '/');
  if (last) *last = '\0';
}

/* Where to look, in order; empty ones are left out. */
static int folders(const char *given, char out[FOLDERS][PATH_ROOM]) {
  char own[PATH_ROOM - 64];
  int count = 0;
  own_folder(own, sizeof own);
  if (given && given[0]) snprintf(out[count++], PATH_ROOM, "%s", given);
  if (!own[0]) return count;
  snprintf(out[count++], PATH_ROOM, "%s", own);
  snprintf(out[count++], PATH_ROOM, "%s/lib", own);
  snprintf(out[count++], PATH_ROOM, "%s/../lib", own);
  snprintf(out[count++], PATH_ROOM, "%s/../%s", own, UNICON_LIBRARY_FOLDER);
  return count;
}

static bool find(const char *given, const char *name, char *path, size_t size) {
  char folder[FOLDERS][PATH_ROOM];
  const int count = folders(given, folder);
  for (int k = 0; k < count; k++) {
    const int length = snprintf(path, size, "%s/%s%s%s", folder[k], prefix, name, suffix);
    if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return true;
  }
  return false;
}

static bool complete(const unicon__device_table *t) {
  return t->size >= sizeof *t && t->name && t->usable && t->open && t->close && t->error &&
         t->memory && t->matrix_new && t->matrix_free && t->upload && t->download;
}

/* The table of a library that has been loaded, or the reason why it cannot serve. */
static const unicon__device_table *table_of(void *library, const char *name, char *text,
                                            size_t size) {
  union { /* POSIX: a function's address is one of data */
    void *symbol;
    unicon__device_entry_fn entry;
  } found = {.symbol = dlsym(library, UNICON__DEVICE_ENTRY)};
  if (!found.symbol) {
    snprintf(text, size, "its library has no function %s", UNICON__DEVICE_ENTRY);
    return NULL;
  }
  const unicon__device_table *table = found.entry();
  if (!table || table->version != UNICON__DEVICE_VERSION) {
    snprintf(text, size,
             "its library is of interface version %u, and this one takes %u; both "
             "are built together",
             table ? (unsigned)table->version : 0, (unsigned)UNICON__DEVICE_VERSION);
    return NULL;
  }
  if (!complete(table) || strcmp(table->name, name) != 0) {
    snprintf(text, size, "its library is not complete, or of another name");
    return NULL;
  }
  return table;
}

void unicon__plugin_load(const char *folder, const char *name, unicon__plugin *out) {
  char path[PATH_ROOM + 64];
  *out = (unicon__plugin){.table = NULL};
  snprintf(out->name, sizeof out->name, "%s", name);
  if (!find(folder, name, path, sizeof path)) {
    snprintf(out->text, sizeof out->text, "there is no %s%s%s beside the library", prefix, name,
             suffix);
    return;
  }
  out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!out->library) {
    const char *why = dlerror();
    snprintf(out->text, sizeof out->text, "its library cannot be loaded: %.200s",
             why ? why : "unknown");
    return;
  }
  out->table = table_of(out->library, name, out->text, sizeof out->text);
  if (out->table) out->usable = out->table->usable(out->text, sizeof out->text) != 0;
}

void unicon__plugin_drop(unicon__plugin *plugin) {
  if (plugin->library) dlclose(plugin->library);
  *plugin = (unicon__plugin){.table = NULL};
}

/* Puts a name in its place, unless it is there already. */
static int insert(char list[UNICON__PLUGINS][UNICON__PLUGIN_NAME], int count, const char *name) {
  int at = 0;
  while (at < count && strcmp(list[at], name) < 0) at++;
  if ((at < count && strcmp(list[at], name) == 0) || count == UNICON__PLUGINS) return count;
  memmove(list[at + 1], list[at], (size_t)(count - at) * sizeof list[0]);
  snprintf(list[at], sizeof list[at], "%s", name);
  return count + 1;
}

int unicon__plugin_names(const char *given, char name[UNICON__PLUGINS][UNICON__PLUGIN_NAME]) {
  char folder[FOLDERS][PATH_ROOM];
  const int searched = folders(given, folder);
  int count = 0;
  for (int k = 0; k < searched; k++) {
    DIR *list = opendir(folder[k]);
    for (const struct dirent *e; list && (e = readdir(list));) {
      char own[UNICON__PLUGIN_NAME];
      const size_t length = strlen(e->d_name), ends = sizeof prefix - 1 + sizeof suffix - 1;
      if (length <= ends || length - ends >= sizeof own ||
          memcmp(e->d_name, prefix, sizeof prefix - 1) != 0 ||
          strcmp(e->d_name + length - (sizeof suffix - 1), suffix) != 0)
        continue;
      snprintf(own, sizeof own, "%.*s", (int)(length - ends), e->d_name + sizeof prefix - 1);
      if (unicon__plugin_is_name(own)) count = insert(name, count, own);
    }
    if (list) closedir(list);
  }
  return count;
}
