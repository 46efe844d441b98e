/* SPDX-License-Identifier: Apache-2.0 */
#include "balanced.h"

#include <string.h>

int balanced_open(tool *t, const unicon_model *model) {
  static const cli_id option[2] = {CLI_OPT_BANK_X, CLI_OPT_BANK_Y};
  unicon_rows *bank[2] = {NULL, NULL};
  unicon_status status = UNICON_OK;
  for (int s = 0; s < 2 && status == UNICON_OK; s++)
    if (tool_has(t, option[s]))
      status = unicon_rows_open(t->ctx, tool_value(t, option[s]), &bank[s]);
  if (status == UNICON_OK)
    status = unicon_balance_create(t->ctx, model, t->options, bank[0], bank[1], &t->balance);
  for (int s = 0; s < 2; s++) unicon_rows_close(bank[s]);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

bool balanced_asked(const tool *t) {
  return cli_sets(t->args, "balance") || tool_has(t, CLI_OPT_BANK_X) || tool_has(t, CLI_OPT_BANK_Y);
}

bool balanced_is_on(const unicon_balance *balance) {
  return strcmp(unicon_balance_text(balance), "off") != 0;
}

const char *balanced_words(const unicon_balance *balance, char *out) {
  const int64_t x = unicon_balance_rows(balance, UNICON_X),
                y = unicon_balance_rows(balance, UNICON_Y);
  const int at = snprintf(out, BALANCED_WORDS, "%s", unicon_balance_text(balance));
  const size_t left = BALANCED_WORDS - (size_t)at;
  if (!balanced_is_on(balance))
    snprintf(out + at, left, ": scores are plain cosines");
  else if (x == 0 && y == 0)
    snprintf(out + at, left, ", without a bank of rows");
  else
    snprintf(out + at, left, " by %lld rows of x and %lld of y", (long long)x, (long long)y);
  return out;
}

void balanced_json(const unicon_balance *balance, json_t *object) {
  json_object_set_new(object, "balance", json_string(unicon_balance_text(balance)));
  json_object_set_new(object, "bank_x", json_integer(unicon_balance_rows(balance, UNICON_X)));
  json_object_set_new(object, "bank_y", json_integer(unicon_balance_rows(balance, UNICON_Y)));
}
