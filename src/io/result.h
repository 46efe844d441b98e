/* SPDX-License-Identifier: Apache-2.0 */
/* Results: what a call found, as named numbers, texts and arrays. The name is the place in the JSON
 * object too, so entries of one object follow one another: "a.x" "a.y" "b", not "a.x" "b" "a.y".
 *
 *     unicon_result *r = unicon__result_new(ctx);
 *     unicon__result_integer(ctx, r, "pairs", n);
 *     unicon__result_real(ctx, r, "x_to_y.hit@1", value);
 *     return unicon__result_done(r, out);
 *
 * The calls in between cannot fail: what fails is remembered and said by the last one. */
#ifndef UNICON_IO_RESULT_H
#define UNICON_IO_RESULT_H

#include "base/ctx.h"

enum {
  UNICON__RESULT_NAME = 48,    /* longest name, with its end */
  UNICON__CONFUSION_MAX = 4096 /* classes of a confusion matrix: 128 MiB */
};

/* NULL, which the others accept, when there is no memory. */
unicon_result *unicon__result_new(unicon_ctx *ctx);

void unicon__result_integer(unicon_ctx *ctx, unicon_result *r, const char *name, int64_t value);
/* A value that is not finite makes no entry. */
void unicon__result_real(unicon_ctx *ctx, unicon_result *r, const char *name, double value);
void unicon__result_text(unicon_ctx *ctx, unicon_result *r, const char *name, const char *value);

/* Copies of rows by width values, or of a list of rows values where width is 0. */
void unicon__result_reals(unicon_ctx *ctx, unicon_result *r, const char *name, const double *values,
                          int64_t rows, int64_t width);
void unicon__result_integers(unicon_ctx *ctx, unicon_result *r, const char *name,
                             const int64_t *values, int64_t rows, int64_t width);

/* Hands the result out, or destroys it and gives the status of what failed. */
unicon_status unicon__result_done(unicon_result *r, unicon_result **out);

#endif
