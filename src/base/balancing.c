/* SPDX-License-Identifier: Apache-2.0 */
#include "base/balancing.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* Words in the order of the kinds, with the bounds of their strengths: a beta beyond 1000 is the
 * maximum in all but name, a neighbourhood beyond 1000 rows the mean. */
static const struct {
  const char *word;
  double low, high;
} kinds[] = {{"off", 0, 0}, {"softmax", 0.01, 1000}, {"csls", 1, 1000}, {"quadratic", 0.01, 1000}};

unicon_status unicon__balancing_parse(unicon_ctx *ctx, const char *text, unicon__balancing *out) {
  *out = (unicon__balancing){UNICON__BALANCE_OFF, 0};
  if (strcmp(text, kinds[0].word) == 0) return UNICON_OK;
  for (int k = UNICON__BALANCE_SOFTMAX; k <= UNICON__BALANCE_QUADRATIC; k++) {
    const size_t length = strlen(kinds[k].word);
    if (strncmp(text, kinds[k].word, length) != 0 || text[length] != ':') continue;
    char *end;
    const double strength = unicon__number_read(text + length + 1, &end);
    const bool whole = k != UNICON__BALANCE_CSLS || strength == floor(strength);
    if (end == text + length + 1 || *end || !whole || !(strength >= kinds[k].low) ||
        !(strength <= kinds[k].high))
      break;
    *out = (unicon__balancing){(unicon__balancing_kind)k, strength};
    return UNICON_OK;
  }
  return unicon__fail(ctx, UNICON_ERR_OPTION,
                      "balance is \"%.60s\"; accepted: auto, off, softmax:BETA or quadratic:BETA "
                      "with BETA from 0.01 to 1000, csls:K with K from 1 to 1000",
                      text);
}

void unicon__balancing_print(unicon__balancing how, char *out) {
  const char *word = kinds[how.kind].word;
  if (how.kind == UNICON__BALANCE_OFF)
    memcpy(out, word, strlen(word) + 1);
  else
    unicon__number_print(out, UNICON__BALANCING_TEXT, "%s:%.10g", word, how.strength);
}
