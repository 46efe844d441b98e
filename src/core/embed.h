/* SPDX-License-Identifier: Apache-2.0 */
/* Views opened: rows, the map they go through, and the weights that follow. */
#ifndef UNICON_CORE_EMBED_H
#define UNICON_CORE_EMBED_H

#include "core/model.h"

typedef struct unicon__lens {
  const unicon_rows *rows;
  const unicon_model *model; /* NULL: the rows are vectors of the shared space already */
  int side;
  int64_t count, r;
} unicon__lens;

/* Checks the view against its model. */
unicon_status unicon__lens_open(unicon_ctx *ctx, const unicon_view *view, unicon__lens *lens);

/* unicon__usable_rows of the lens, dropping the others. */
unicon_status unicon__lens_usable(unicon_ctx *ctx, const unicon__lens *lens, const int64_t **keep,
                                  int64_t *count);

/* Rows first..first+count-1 as vectors of the shared space, checked. */
unicon_status unicon__lens_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out);

/* How far a float32 product of two unit vectors of r entries can be from the exact one:
 * r roundings of 2^-24 each. */
static inline double unicon__score_error(int64_t r) {
  return (double)(r + 8) * 0x1p-24;
}

#endif
