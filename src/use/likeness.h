/* SPDX-License-Identifier: Apache-2.0 */
/* Do rows come from the model that they are said to come from? Vectors carry no name, and a map
 * takes any of the right width; but every model fills its space in its own way. Kept are the mean
 * of the rows at length 1 and the leading principal directions around it. Of rows that come later
 * is asked how much of their variance lies in those directions: near as much as before for the same
 * model, axes / d of it for another; and whether they have their mean still. */
#ifndef UNICON_USE_LIKENESS_H
#define UNICON_USE_LIKENESS_H

#include "model/model.h"

enum { UNICON__AXES = 16 };

/* Of n rows of d, as they came; in `arena`. 2 n d^2 flops for at most 4096 of them. */
unicon_status unicon__likeness_make(unicon_ctx *ctx, unicon__arena *arena, const unicon_rows *rows,
                                    unicon__likeness *out);

typedef enum unicon__resemblance {
  UNICON__ALIKE,
  UNICON__LIKE_OTHER, /* they look like rows of the other side */
  UNICON__CENTRED,    /* their mean is gone */
  UNICON__UNLIKE      /* they look like neither */
} unicon__resemblance;

/* Compares at most 1024 rows with what is known of their side and of the other (which may have
 * another width). `length` receives their mean length. */
unicon_status unicon__likeness_of(unicon_ctx *ctx, const unicon_rows *rows,
                                  const unicon__likeness *own, const unicon__likeness *other,
                                  bool same_width, unicon__resemblance *out, double *length);

/* Fails with a sentence where rows do not look like those of their side, and warns where their
 * lengths are others. `side` is UNICON__OLD or UNICON__NEW. */
unicon_status unicon__likeness_check(unicon_ctx *ctx, const unicon_model *model, int side,
                                     const unicon_rows *rows);

/* The sentence of a resemblance that is not UNICON__ALIKE: what to say about rows of that side. */
void unicon__likeness_say(unicon__resemblance how, int side, const char *name, char *out,
                          size_t size);

#endif
