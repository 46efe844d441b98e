/* SPDX-License-Identifier: Apache-2.0 */
/* How a call fails: unicon__fail stores the sentence in the context and gives the code. */
#ifndef UNICON_BASE_STATUS_H
#define UNICON_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "unicon/unicon.h"

/* Records "what was wrong, the value, what is accepted". */
void unicon__set_error(unicon_ctx *ctx, unicon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same, with `status` as its value: return unicon__fail(...). A macro, so that compilers and
 * analysers see which status it is. */
#define unicon__fail(ctx, status, ...) \
  (unicon__set_error((ctx), (status), __VA_ARGS__), (unicon_status)(status))

/* The status of the last error. */
unicon_status unicon__status(const unicon_ctx *ctx);

/* Forgets the last failure; every public entry starts so. */
void unicon__clear_error(unicon_ctx *ctx);

#define UNICON_TRY(call)                              \
  do {                                                \
    const unicon_status try_status_ = (call);         \
    if (try_status_ != UNICON_OK) return try_status_; \
  } while (0)

#endif
