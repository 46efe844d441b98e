/* SPDX-License-Identifier: Apache-2.0 */
/* How a call fails: unicon__fail stores the sentence in the context and returns the code. */
#ifndef UNICON_BASE_STATUS_H
#define UNICON_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "unicon/unicon.h"

/* Records "what was wrong, the value, what is accepted" and returns `status`. */
unicon_status unicon__fail(unicon_ctx *ctx, unicon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The status of the last unicon__fail. */
unicon_status unicon__status(const unicon_ctx *ctx);

/* Forgets the last failure; every public entry starts so. */
void unicon__clear_error(unicon_ctx *ctx);

#define UNICON_TRY(call)                              \
  do {                                                \
    const unicon_status try_status_ = (call);         \
    if (try_status_ != UNICON_OK) return try_status_; \
  } while (0)

#endif
