/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNICON_FIT_FIT_H
#define UNICON_FIT_FIT_H

#include "base/ctx.h"

/* unicon_fit, inside a call. */
unicon_status unicon__fit(unicon_ctx *ctx, const unicon_data *train, const unicon_data *validation,
                          const unicon_options *options, unicon_model **out);

#endif
