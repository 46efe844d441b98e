/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading plugins: the one place that opens libraries at run time.
 *
 * A plugin NAME is a file libunicon_NAME.so in the first of these folders that has it: the one that
 * was given (unicon_device_folder); the folder of this library, or of the program that it is linked
 * into; lib inside of that; the folders for libraries beside that (../lib and what the build
 * installs to). The environment is not read. */
#ifndef UNICON_DEVICE_PLUGIN_H
#define UNICON_DEVICE_PLUGIN_H

#include "base/ctx.h"
#include "device/device.h"

enum { UNICON__PLUGIN_NAME = 24, UNICON__PLUGIN_TEXT = 256, UNICON__PLUGINS = 8 };

typedef struct unicon__plugin {
  char name[UNICON__PLUGIN_NAME];
  const unicon__device_table *table; /* NULL: there is none, or not one for this library */
  bool usable;
  char text[UNICON__PLUGIN_TEXT]; /* what it is, or why it cannot be used */
  void *library;
} unicon__plugin;

/* Small letters, digits and _, short enough. */
bool unicon__plugin_is_name(const char *name);

/* Loads the plugin and asks it. The library stays loaded while `library` is held. */
void unicon__plugin_load(const char *folder, const char *name, unicon__plugin *out);
void unicon__plugin_drop(unicon__plugin *plugin);

/* Names of all that are found, in alphabetical order, and how many. */
int unicon__plugin_names(const char *folder, char name[UNICON__PLUGINS][UNICON__PLUGIN_NAME]);

#endif
