/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding: z(x) = F^T phi(x), scaled to length 1 when asked. */
#ifndef UNICON_FEATURES_PROJECT_H
#define UNICON_FEATURES_PROJECT_H

#include "features/feature.h"

/* Embeds rows first .. first+count-1 of the source into out (count by r, ld floats between rows).
 * `weight` is F (map->out by r); NULL leaves the features as they are (r = map->out). With `check`,
 * a row that is not finite or has no direction is an error that names it. 2 count out r flops. */
unicon_status unicon__project(unicon_ctx *ctx, const unicon__source *source, const float *weight,
                              int64_t r, int64_t first, int64_t count, bool unit, bool check,
                              float *out, int64_t ld);

/* Scales `count` rows of r floats to `length`; rows of zeros stay. */
void unicon__scale_rows(float *rows, int64_t count, int64_t r, int64_t ld, double length);

#endif
