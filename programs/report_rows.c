/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report that are about rows: which queries fail, which pairs look wrong, where
 * points lie, what the loss pulls and pushes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { LISTED = 15, PARTNERS_LOOKED_AT = 64 };

/* Room for the partners of any row of a side. */
static int64_t *partner_room(const subject *s, int side) {
  int64_t *out = calloc((size_t)s->rows[1 - side] + 1, sizeof *out);
  if (!out) tool_out_of_memory(s->t);
  return out;
}

/* ---- the worst of a list ------------------------------------------------------------------ */

/* The LISTED largest `badness` of all that were offered, worst first; of equals the first. */
typedef struct worst {
  int count;
  double badness[LISTED];
  int64_t x[LISTED], y[LISTED];
} worst;

static void offer(worst *w, double badness, int64_t x, int64_t y) {
  int at = w->count < LISTED ? w->count++ : LISTED;
  while (at > 0 && badness > w->badness[at - 1]) {
    at--;
    if (at + 1 < LISTED) {
      w->badness[at + 1] = w->badness[at];
      w->x[at + 1] = w->x[at];
      w->y[at + 1] = w->y[at];
    }
  }
  if (at == LISTED) return;
  w->badness[at] = badness;
  w->x[at] = x;
  w->y[at] = y;
}

/* ---- the hardest queries ------------------------------------------------------------------ */

/* The partner with the largest score. */
static int64_t best_partner(const subject *s, int side, int64_t row, int64_t *partner) {
  const int64_t count =
      unicon_pairs_partners(s->in.pairs, report_side(side), row, s->rows[1 - side], partner);
  int64_t found = -1;
  double best = -INFINITY;
  for (int64_t k = 0; k < count; k++) {
    const double now = report_score(s, side, row, partner[k]);
    if (now > best) {
      best = now;
      found = partner[k];
    }
  }
  return found;
}

/* A query, the rank of its first match, that match and what is found first, with their scores. */
static json_t *hard_json(const subject *s, int side, int64_t row, int64_t match, int64_t found) {
  const int other = 1 - side;
  return json_pack(
      "{s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "query",
      report_row_name(s, side, row), "query_number", (json_int_t)row, "match_number",
      (json_int_t)match, "found_number", (json_int_t)found, "rank", (json_int_t)s->rank[side][row],
      "match", report_row_name(s, other, match), "match_score",
      report_rounded(report_score(s, side, row, match), 1e-4), "match_cosine",
      report_rounded(report_score(s, side, row, match) + (double)s->bias[other][match], 1e-4),
      "found", report_row_name(s, other, found), "found_score",
      report_rounded(report_score(s, side, row, found), 1e-4), "found_cosine",
      report_rounded(report_score(s, side, row, found) + (double)s->bias[other][found], 1e-4));
}

static json_t *hardest_of(subject *s, int side) {
  worst w = {.count = 0};
  int64_t *partner = partner_room(s, side);
  json_t *out = NULL;
  for (int64_t i = 0; i < s->rows[side]; i++)
    if (s->rank[side][i] > 1) offer(&w, (double)s->rank[side][i], i, 0);
  if (partner) out = json_array();
  for (int k = 0; k < w.count && out; k++)
    json_array_append_new(out, hard_json(s, side, w.x[k], best_partner(s, side, w.x[k], partner),
                                         s->near[side][w.x[k] * REPORT_NEAR]));
  free(partner);
  return out;
}

json_t *report_hardest(subject *s) {
  json_t *x = hardest_of(s, 0), *y = x ? hardest_of(s, 1) : NULL;
  if (x && y) return report_made(s, json_pack("{s:o, s:o}", "x_to_y", x, "y_to_x", y));
  json_decref(x);
  return NULL;
}

/* ---- suspicious pairs --------------------------------------------------------------------- */

json_t *report_suspects(subject *s) {
  worst w = {.count = 0};
  int64_t *partner = partner_room(s, 0), pairs = 0;
  double sum = 0;
  if (!partner) return NULL;
  for (int64_t i = 0; i < s->rows[0]; i++) {
    const int64_t count = unicon_pairs_partners(s->in.pairs, UNICON_X, i, s->rows[1], partner);
    const int64_t looked = count < PARTNERS_LOOKED_AT ? count : PARTNERS_LOOKED_AT;
    for (int64_t k = 0; k < looked; k++) {
      const int64_t j = partner[k * count / looked];
      const double now = report_cosine(s, i, j);
      offer(&w, -now, i, j);
      sum += now;
      pairs++;
    }
  }
  free(partner);
  json_t *rows = json_array();
  for (int k = 0; k < w.count; k++)
    json_array_append_new(
        rows,
        json_pack("{s:o, s:o, s:I, s:I, s:o, s:I, s:I}", "x", report_row_name(s, 0, w.x[k]), "y",
                  report_row_name(s, 1, w.y[k]), "x_number", (json_int_t)w.x[k], "y_number",
                  (json_int_t)w.y[k], "cosine", report_rounded(-w.badness[k], 1e-4), "x_rank",
                  (json_int_t)s->rank[0][w.x[k]], "y_rank", (json_int_t)s->rank[1][w.y[k]]));
  return report_made(
      s, json_pack("{s:I, s:o, s:o}", "pairs", (json_int_t)pairs, "mean_cosine",
                   report_rounded(pairs > 0 ? sum / (double)pairs : 0, 1e-4), "rows", rows));
}
