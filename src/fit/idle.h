/* SPDX-License-Identifier: Apache-2.0 */
/* Options that were given and change nothing: a warning for each. */
#ifndef UNICON_FIT_IDLE_H
#define UNICON_FIT_IDLE_H

#include "base/options.h"

/* What a fit is, apart from its options. */
typedef struct unicon__fit_kind {
  bool judged;  /* there are validation pairs */
  bool sweeps;  /* auto chooses */
  bool fused;   /* one model for each batch */
  bool chooses; /* something is chosen on held-out pairs, by auto or by fast of few rows */
  bool scores;  /* exponent or balance is chosen on the validation pairs, if there are any */
} unicon__fit_kind;

/* Says which given options have no effect, the choices of auto being in `options`. */
void unicon__warn_idle(unicon_ctx *ctx, const unicon_options *options, unicon__fit_kind kind);

#endif
