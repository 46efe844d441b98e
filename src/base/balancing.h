/* SPDX-License-Identifier: Apache-2.0 */
/* How scores are balanced, as a value and as the text of option `balance`. */
#ifndef UNICON_BASE_BALANCING_H
#define UNICON_BASE_BALANCING_H

#include "base/status.h"

typedef enum unicon__balancing_kind {
  UNICON__BALANCE_OFF,
  UNICON__BALANCE_SOFTMAX,  /* strength: beta */
  UNICON__BALANCE_CSLS,     /* strength: how many neighbours */
  UNICON__BALANCE_QUADRATIC /* softmax of this beta as a quadratic form: no bank is kept */
} unicon__balancing_kind;

typedef struct unicon__balancing {
  unicon__balancing_kind kind;
  double strength;
} unicon__balancing;

enum { UNICON__BALANCING_TEXT = 32 }; /* the longest form with the longest number fits */

/* "off", "softmax:BETA", "csls:K" or "quadratic:BETA"; the error says what is accepted. */
unicon_status unicon__balancing_parse(unicon_ctx *ctx, const char *text, unicon__balancing *out);

/* The same as text, into UNICON__BALANCING_TEXT bytes. */
void unicon__balancing_print(unicon__balancing how, char *out);

#endif
