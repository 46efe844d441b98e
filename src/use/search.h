/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest neighbours, exactly. */
#ifndef UNICON_USE_SEARCH_H
#define UNICON_USE_SEARCH_H

#include "model/embed.h"

/* unicon_search, inside a call. */
unicon_status unicon__search(unicon_ctx *ctx, const unicon_view *queries, const unicon_view *base,
                             int64_t k, int64_t *ids, float *scores);

/* The same for two matrices in memory, by the product of their rows of `width` floats as they are.
 * 2 queries count width flops. */
unicon_status unicon__nearest(unicon_ctx *ctx, const float *q, int64_t queries, const float *base,
                              int64_t count, int64_t width, int64_t k, int64_t *ids, float *scores);

#endif
