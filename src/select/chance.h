/* SPDX-License-Identifier: Apache-2.0 */
/* The held-out score of a model that has learned nothing. */
#ifndef UNICON_SELECT_CHANCE_H
#define UNICON_SELECT_CHANCE_H

#include "io/pairs.h"

/* The mean over both directions of (mrr + hit@10) / 2, as score/validation.h defines the score, where
 * every order of the candidates is equally likely. */
double unicon__chance(const unicon_pairs *pairs);

#endif
