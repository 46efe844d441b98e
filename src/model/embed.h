/* SPDX-License-Identifier: Apache-2.0 */
/* Views opened: rows, the map they go through, and the weights and biases that follow. */
#ifndef UNICON_MODEL_EMBED_H
#define UNICON_MODEL_EMBED_H

#include "model/model.h"
#include "score/retrieval.h"

typedef struct unicon__lens {
  const unicon_rows *rows;
  const unicon_model *model; /* NULL: the rows are vectors of the shared space already */
  int side;
  int64_t count, r;              /* r: dimensions of the shared space, biases not counted */
  const unicon_balance *balance; /* NULL: plain cosines */
  bool ready;                    /* rows of form QUERY or INDEX, taken as they are */
} unicon__lens;

/* A copy of the caller's view, which must have rows. */
unicon_status unicon__view_take(unicon_ctx *ctx, const unicon_view *given, unicon_view *out);

/* Checks the view against its model and its balance. */
unicon_status unicon__lens_open(unicon_ctx *ctx, const unicon_view *view, unicon__lens *lens);

/* unicon__usable_rows of the lens, dropping the others. */
unicon_status unicon__lens_usable(unicon_ctx *ctx, const unicon__lens *lens, const int64_t **keep,
                                  int64_t *count);

/* Rows first..first+count-1 as vectors of the shared space, checked; ld floats between rows. */
unicon_status unicon__lens_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out, int64_t ld);

/* unicon_embed, inside a call. */
unicon_status unicon__embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                            unicon_form form, float *out);
/* The length of the longest of such rows, `width` floats each: sqrt 2 at most for a unit vector and
 * its bias, anything for rows that are taken as they are. */
double unicon__lens_longest(const unicon__lens *lens, const float *rows, int64_t count,
                            int64_t width);

/* Rows of a source (whose map is not read) through a model. */
unicon_status unicon__model_embed(unicon_ctx *ctx, const unicon_model *model, int side,
                                  const unicon__source *rows, int64_t first, int64_t count,
                                  bool unit, bool check, float *out, int64_t ld);

/* Two lenses that meet: queries and candidates. `width` is r, or r + 1 where scores are balanced:
 * then queries end in 1 and candidates in minus their bias. */
typedef struct unicon__meeting {
  const unicon__lens *queries, *candidates;
  int64_t width;
} unicon__meeting;

unicon_status unicon__meet(unicon_ctx *ctx, const unicon__lens *queries,
                           const unicon__lens *candidates, unicon__meeting *out);
unicon_status unicon__meeting_queries(unicon_ctx *ctx, const unicon__meeting *m, int64_t first,
                                      int64_t count, float *out);
unicon_status unicon__meeting_candidates(unicon_ctx *ctx, const unicon__meeting *m, int64_t first,
                                         int64_t count, float *out);

#endif
