/* SPDX-License-Identifier: Apache-2.0 */
#include "moving.h"

#include <string.h>

#include "unicon/migrate.h"

const char *moving_space(const unicon_model *model) {
  const char *direction = unicon_model_meta(model, "direction");
  if (!direction) return NULL;
  return strcmp(direction, "old-to-new") == 0   ? "new"
         : strcmp(direction, "new-to-old") == 0 ? "old"
                                                : "shared";
}

unicon_form moving_index_form(const unicon_model *model) {
  const char *balance = unicon_model_meta(model, "balance");
  return balance && strcmp(balance, "off") != 0 ? UNICON_FORM_INDEX : UNICON_FORM_UNIT;
}

void moving_warn_keep(tool *t, const unicon_model *model, const char *path) {
  char text[512];
  const char *verdict = unicon_model_meta(model, "verdict");
  if (!verdict || strcmp(verdict, "keep") != 0) return;
  snprintf(text, sizeof text,
           "%.300s is for comparison alone: the migration advised keeping the old model", path);
  display_log(&t->display, UNICON_LOG_WARNING, text);
}

int moving_refuse_other(tool *t, const unicon_model *model, const char *path) {
  if (moving_space(model)) return EXIT_DONE;
  return tool_error(t, "%s was not made by `unicon migrate`: it has no direction", path);
}

int moving_refuse_moved(tool *t, const unicon_model *model, const char *path) {
  int known = 0;
  const unicon_status status = unicon_vectors_match(t->ctx, path, model, &known);
  if (status == UNICON_OK && known)
    return tool_error(t, "%s lies in the %s space already, as its sidecar says", path,
                      moving_space(model));
  return EXIT_DONE; /* of other models nothing is known here */
}

int moving_check_moved(tool *t, const unicon_model *model, const char *path) {
  int known = 0;
  const unicon_status status = unicon_vectors_match(t->ctx, path, model, &known);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}

int moving_check_rows(tool *t, const unicon_model *model, unicon_side side,
                      const unicon_rows *rows) {
  if (strcmp(unicon_options_get(t->options, "trust"), "on") == 0) return EXIT_DONE;
  const unicon_status status = unicon_model_check_rows(t->ctx, model, side, rows);
  return status == UNICON_OK ? EXIT_DONE : tool_fail(t, status);
}
