/* SPDX-License-Identifier: Apache-2.0 */
/* The soft device's library, loaded beside the one under test: the same copy of it. */
#ifndef UNICON_TESTS_SOFT_LOADED_H
#define UNICON_TESTS_SOFT_LOADED_H

#include <dlfcn.h>

#include "scratch.h"
#include "soft/soft.h"

static inline const char *soft_folder(void) {
  const char *folder = getenv("UNICON_SOFT_FOLDER");
  assert_non_null(folder);
  return folder;
}

/* What is set and counted, as at the beginning. */
static inline soft_control *soft_reset(void) {
  static soft_control *control;
  if (!control) {
    char path[1200];
    snprintf(path, sizeof path, "%s/libunicon_soft.so", soft_folder());
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) print_error("%s\n", dlerror());
    assert_non_null(library);
    void *symbol = dlsym(library, "soft_control_of");
    soft_control_fn of;
    assert_non_null(symbol);
    memcpy(&of, &symbol, sizeof of);
    control = of();
  }
  assert_int_equal(control->opened, 0);
  assert_int_equal(control->matrices, 0);
  assert_int_equal(control->rooms, 0);
  *control = (soft_control){.version = UNICON__DEVICE_VERSION,
                            .memory_kind = 1,
                            .most_rows = 48,
                            .fail_allocation = -1,
                            .fail_launch = -1,
                            .elsewhere = -1};
  return control;
}

/* The context's device becomes the soft one. */
static inline void soft_use(unicon_ctx *ctx, const char *text) {
  assert_int_equal(unicon_device_folder(ctx, soft_folder()), UNICON_OK);
  const unicon_status status = unicon_ctx_set(ctx, "device", text);
  if (status != UNICON_OK) print_error("%s\n", unicon_ctx_error(ctx));
  assert_int_equal(status, UNICON_OK);
}

#endif
