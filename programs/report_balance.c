/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report about balanced scores: the metrics without them, and the hubs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { BLOCK_ROWS = 4096, HUBS_LISTED = 15 };

unicon_status report_embed(subject *s, const unicon_view *view, int side) {
  const int64_t width = unicon_form_width(s->r, UNICON_FORM_INDEX);
  float *block = calloc(BLOCK_ROWS, (size_t)width * sizeof *block);
  unicon_status status = block ? UNICON_OK : UNICON_ERR_MEMORY;
  for (int64_t at = 0; at < s->rows[side] && status == UNICON_OK; at += BLOCK_ROWS) {
    const int64_t left = s->rows[side] - at, count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
    status = unicon_embed(s->t->ctx, view, at, count, UNICON_FORM_INDEX, block);
    for (int64_t i = 0; i < count && status == UNICON_OK; i++) {
      memcpy(s->z[side] + (at + i) * s->r, block + i * width, (size_t)s->r * sizeof *block);
      s->bias[side][at + i] = -block[i * width + s->r];
    }
  }
  free(block);
  return status;
}

/* ---- hubs --------------------------------------------------------------------------------- */

typedef struct hub {
  int64_t row, plain, found;
} hub;

/* Those found most often without balance first, then those found most often with it. */
static int by_count(const void *a, const void *b) {
  const hub *left = a, *right = b;
  if (left->plain != right->plain) return left->plain < right->plain ? 1 : -1;
  if (left->found != right->found) return left->found < right->found ? 1 : -1;
  return (left->row > right->row) - (left->row < right->row);
}

/* The strongest hubs among the rows of a side. */
static json_t *hubs_json(const subject *s, int side) {
  const int64_t rows = s->rows[side];
  hub *list = calloc((size_t)rows + 1, sizeof *list);
  json_t *out = list ? json_array() : NULL;
  for (int64_t i = 0; i < rows && list; i++)
    list[i] = (hub){i, s->plain_found[side][i], s->found[side][i]};
  if (list) qsort(list, (size_t)rows, sizeof *list, by_count);
  for (int64_t k = 0; out && k < rows && k < HUBS_LISTED; k++)
    json_array_append_new(
        out, json_pack("{s:o, s:I, s:I, s:I}", "row", report_row_name(s, side, list[k].row),
                       "number", (json_int_t)list[k].row, "plain", (json_int_t)list[k].plain,
                       "found", (json_int_t)list[k].found));
  free(list);
  return out;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static json_t *direction_json(const subject *s, int direction, json_t *evaluation) {
  const char *folder = direction == 0 ? "x_to_y.hubs" : "y_to_x.hubs";
  json_t *figures = json_object_get(evaluation, direction == 0 ? "x_to_y" : "y_to_x");
  json_t *out = json_pack("{s:O, s:o}", "plain", json_object_get(figures, "plain"), "hubs",
                          hubs_json(s, 1 - direction));
  display_json_real(out, "skew", display_number(s->result, folder, "skewness"));
  display_json_real(out, "plain_skew", display_number(s->result, folder, "plain_skewness"));
  display_json_real(out, "never", display_number(s->result, folder, "never_found"));
  display_json_real(out, "plain_never", display_number(s->result, folder, "plain_never_found"));
  return out;
}

json_t *report_balance(const subject *s) {
  const char *how = unicon_model_meta(s->model, "balance");
  json_t *evaluation = display_json_result(s->result);
  json_t *out =
      json_pack("{s:o, s:o, s:o}", "how", display_json_text(how ? how : "off"), "x_to_y",
                direction_json(s, 0, evaluation), "y_to_x", direction_json(s, 1, evaluation));
  json_decref(evaluation);
  return report_made(s, out);
}
