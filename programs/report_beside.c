/* SPDX-License-Identifier: Apache-2.0 */
/* Two models on the same rows: the second one's metrics and picture, and the queries on which the
 * two differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { BANDS = 4, MOVED_MOST = 7 };

/* 1, 2 to 5, 6 to 10, worse. */
static int band(int64_t rank) {
  return rank <= 1 ? 0 : rank <= 5 ? 1 : rank <= 10 ? 2 : 3;
}

/* How often one of two equal models would be ahead at least this clearly, of the queries that only
 * one of them answers: the exact two-sided sign test, 2 sum_{k <= min} C(n, k) / 2^n. */
static double sign_test(int64_t a, int64_t b) {
  const int64_t n = a + b, least = a < b ? a : b;
  double sum = 0;
  for (int64_t k = 0; k <= least; k++)
    sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) -
               (double)n * log(2));
  return n > 0 ? fmin(1, 2 * sum) : 1;
}

typedef struct move {
  double size; /* |log(rank here / rank there)| */
  int64_t row;
} move;

static int by_size(const void *a, const void *b) {
  const move *left = a, *right = b;
  if (left->size != right->size) return left->size < right->size ? 1 : -1;
  return (left->row > right->row) - (left->row < right->row);
}

/* The queries whose rank differs most, as a ratio: those that are better there (sign 1), or worse
 * (-1). */
static void add_moved(const subject *s, int side, int sign, move *list, json_t *out) {
  const int64_t *here = s->rank[side], *there = s->beside->rank[side];
  int64_t count = 0;
  for (int64_t i = 0; i < s->rows[side]; i++) {
    const double size = log((double)here[i] / (double)there[i]) * sign;
    if (here[i] > 0 && there[i] > 0 && size > 0) list[count++] = (move){size, i};
  }
  qsort(list, (size_t)count, sizeof *list, by_size);
  for (int64_t k = 0; k < count && k < MOVED_MOST; k++) {
    const int64_t row = list[k].row;
    json_array_append_new(
        out, json_pack("{s:o, s:I, s:I, s:I}", "row", report_row_name(s, side, row), "number",
                       (json_int_t)row, "rank", (json_int_t)here[row], "beside_rank",
                       (json_int_t)there[row]));
  }
}

static json_t *moved_json(const subject *s, int side) {
  move *list = calloc((size_t)s->rows[side] + 1, sizeof *list);
  json_t *out = list ? json_array() : NULL;
  if (out) add_moved(s, side, 1, list, out);
  if (out) add_moved(s, side, -1, list, out);
  free(list);
  return out;
}

/* Queries by the band of their rank here (rows) and there (columns). */
static json_t *crossing_json(const subject *s, int side) {
  int64_t count[BANDS][BANDS] = {{0}};
  json_t *bands = json_array();
  for (int64_t i = 0; i < s->rows[side]; i++)
    if (s->rank[side][i] > 0 && s->beside->rank[side][i] > 0)
      count[band(s->rank[side][i])][band(s->beside->rank[side][i])]++;
  int64_t here = 0, there = 0;
  for (int a = 0; a < BANDS; a++) {
    json_t *row = json_array();
    for (int b = 0; b < BANDS; b++) {
      json_array_append_new(row, json_integer((json_int_t)count[a][b]));
      here += a == 0 && b > 0 ? count[a][b] : 0;
      there += a > 0 && b == 0 ? count[a][b] : 0;
    }
    json_array_append_new(bands, row);
  }
  return json_pack("{s:o, s:I, s:I, s:f, s:o}", "bands", bands, "here_alone", (json_int_t)here,
                   "there_alone", (json_int_t)there, "p", sign_test(here, there), "moved",
                   moved_json(s, side));
}

json_t *report_beside(subject *s) {
  subject *b = s->beside;
  json_t *out =
      json_pack("{s:o, s:I, s:{s:o, s:o}}", "file",
                display_json_text(tool_value(s->t, CLI_OPT_BESIDE)), "rank", (json_int_t)b->r,
                "differ", "x_to_y", crossing_json(s, 0), "y_to_x", crossing_json(s, 1));
  if (!report_made(s, out)) return NULL;
  json_t *view = report_add_metrics(b, out) == EXIT_DONE ? report_view(b) : NULL;
  if (view && json_object_set_new(out, "view", view) == 0) return out;
  json_decref(out);
  return NULL;
}
