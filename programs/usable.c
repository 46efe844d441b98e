/* SPDX-License-Identifier: Apache-2.0 */
#include "usable.h"

#include <stdlib.h>
#include <string.h>

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
