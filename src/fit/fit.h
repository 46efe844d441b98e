/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNICON_FIT_FIT_H
#define UNICON_FIT_FIT_H

#include "select/params.h"

/* unicon_fit, inside a call. */
unicon_status unicon__fit(unicon_ctx *ctx, const unicon_data *train, const unicon_data *validation,
                          const unicon_options *options, unicon_model **out);

/* Are rows looked at while they are summed, as nothing is made of them before? */
bool unicon__fit_one_sweep(const unicon_options *options, const unicon__params *params,
                           const unicon_data *train);

#endif
