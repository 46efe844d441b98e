/* SPDX-License-Identifier: Apache-2.0 */
#include "usable.h"

#include <stdlib.h>
#include <string.h>

#include "flags.h"

bool usable_wanted(const tool *t) {
  return strcmp(unicon_options_get(t->options, "bad_rows"), "drop") == 0;
}

int usable_open(tool *t, unicon_view *view, usable *out) {
  const int64_t total = unicon_rows_count(view->rows);
  *out = (usable){.total = total, .count = total};
  if (!usable_wanted(t)) return EXIT_DONE;
  out->number = calloc((size_t)total + 1, sizeof *out->number);
  if (!out->number) return tool_out_of_memory(t);
  const unicon_status status = unicon_rows_usable(t->ctx, view, out->number, &out->rows);
  if (status != UNICON_OK) return tool_fail(t, status);
  out->count = unicon_rows_count(out->rows);
  view->rows = out->rows;
  return EXIT_DONE;
}

void usable_close(usable *u) {
  unicon_rows_close(u->rows);
  free(u->number);
  *u = (usable){0};
}

/* Rows of the view that cannot be used; 0 where that cannot be said either. */
static int64_t count_bad(tool *t, const unicon_view *view) {
  const int64_t total = unicon_rows_count(view->rows);
  const int verbosity = t->display.verbosity;
  int64_t *number = calloc((size_t)total + 1, sizeof *number), bad = 0;
  unicon_rows *left = NULL;
  t->display.verbosity = -1; /* it would warn of rows that it drops */
  if (number && unicon_rows_usable(t->ctx, view, number, &left) == UNICON_OK)
    bad = total - unicon_rows_count(left);
  t->display.verbosity = verbosity;
  unicon_rows_close(left);
  free(number);
  return bad;
}

int usable_fail(tool *t, unicon_status status, const unicon_view *view, size_t views) {
  char why[1024];
  if (status != UNICON_ERR_DATA || usable_wanted(t) || t->job) return tool_fail(t, status);
  flags_in(t->args, unicon_ctx_error(t->ctx), why, sizeof why);
  for (size_t k = 0; k < views; k++) {
    const int64_t bad = count_bad(t, &view[k]);
    if (bad > 0)
      return tool_error(t, "%s; %lld of %lld rows cannot be used: %s", why, (long long)bad,
                        (long long)unicon_rows_count(view[k].rows),
                        cli_has(t->args->command, "bad-rows") ? "--bad-rows drop leaves them out"
                                                              : "leave them out of the file");
  }
  return tool_error(t, "%s", why);
}

int64_t usable_number(const usable *u, int64_t row) {
  return u->number ? u->number[row] : row;
}

int64_t usable_dropped(const usable *u, int64_t room, int64_t *number) {
  int64_t found = 0;
  for (int64_t row = 0, next = 0; row < u->total && found < room; row++) {
    if (next < u->count && usable_number(u, next) == row)
      next++;
    else
      number[found++] = row;
  }
  return found;
}
