/* SPDX-License-Identifier: Apache-2.0 */
/* A job of several processes that are threads of one: each has a context of its own, and they speak
 * with one another through memory. */
#ifndef UNICON_TESTS_PROCESSES_H
#define UNICON_TESTS_PROCESSES_H

#include "support.h"

enum { PROCESSES_MOST = 70 };

/* What one of them does. It asserts nothing: cmocka's checks belong to the main thread. */
typedef void (*process_fn)(unicon_ctx *ctx, int64_t index, void *user);

/* Runs `body` in `count` processes, each stage divided however small it is. Returns the bytes that
 * they have told one another. */
int64_t processes_run(int64_t count, process_fn body, void *user);

#endif
