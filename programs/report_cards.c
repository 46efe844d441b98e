/* SPDX-License-Identifier: Apache-2.0 */
/* What a page can show of a row when it is asked: its partners and what it finds first. Rows that
 * the report names have all of it, rows that only stand in such a list a name, rank and label. */
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { PARTNERS_SHOWN = 5 };

static void mention(const subject *s, int side, int64_t row) {
  if (row >= 0) s->named[side][row] |= REPORT_MENTIONED;
}

/* The rows found first, [number, score, 1 if a match]. */
static json_t *near_json(const subject *s, int side, int64_t row) {
  json_t *out = json_array();
  for (int k = 0; k < REPORT_NEAR; k++) {
    const int64_t found = s->near[side][row * REPORT_NEAR + k];
    if (found < 0) break;
    mention(s, 1 - side, found);
    json_array_append_new(
        out, json_pack("[I, o, i]", (json_int_t)found,
                       report_rounded((double)s->near_score[side][row * REPORT_NEAR + k], 1e-4),
                       s->match[side][row] >> k & 1));
  }
  return out;
}

/* The first partners, [number, score]. */
static json_t *partners_json(const subject *s, int side, int64_t row, const int64_t *partner,
                             int64_t count) {
  json_t *out = json_array();
  for (int64_t k = 0; k < count && k < PARTNERS_SHOWN; k++) {
    mention(s, 1 - side, partner[k]);
    json_array_append_new(out,
                          json_pack("[I, o]", (json_int_t)partner[k],
                                    report_rounded(report_score(s, side, row, partner[k]), 1e-4)));
  }
  return out;
}

static json_t *brief_json(const subject *s, int side, int64_t row) {
  json_t *out = json_pack("{s:I, s:o, s:I}", "number", (json_int_t)row, "name",
                          report_row_name(s, side, row), "rank", (json_int_t)s->rank[side][row]);
  if (out && s->labels)
    json_object_set_new(out, "label", json_integer((json_int_t)report_label(s, side, row)));
  if (out && s->beside)
    json_object_set_new(out, "beside_rank", json_integer((json_int_t)s->beside->rank[side][row]));
  return out;
}

static json_t *card_json(const subject *s, int side, int64_t row) {
  int64_t partner[PARTNERS_SHOWN];
  const int64_t count =
      unicon_pairs_partners(s->in.pairs, report_side(side), row, PARTNERS_SHOWN, partner);
  json_t *out = brief_json(s, side, row);
  json_object_set_new(out, "found", json_integer((json_int_t)s->found[side][row]));
  json_object_set_new(out, "plain", json_integer((json_int_t)s->plain_found[side][row]));
  json_object_set_new(out, "partners", json_integer((json_int_t)count));
  json_object_set_new(out, "pairs", partners_json(s, side, row, partner, count));
  json_object_set_new(out, "near", near_json(s, side, row));
  if (s->beside) json_object_set_new(out, "beside_near", near_json(s->beside, side, row));
  return out;
}

/* Cards of the rows that are named, or of those that are mentioned alone. */
static void add_cards(const subject *s, bool named, json_t *const out[2]) {
  const unsigned char mask = REPORT_LISTED | REPORT_PLACED;
  for (int side = 0; side < 2; side++)
    for (int64_t i = 0; i < s->rows[side]; i++) {
      const unsigned char was = s->named[side][i];
      if (named ? !(was & mask) : was != REPORT_MENTIONED) continue;
      json_t *card = named ? card_json(s, side, i) : brief_json(s, side, i);
      json_array_append_new(out[side], card);
      s->named[side][i] = was | (s->named[side][i] & REPORT_MENTIONED);
    }
}

json_t *report_cards(const subject *s) {
  json_t *side[2] = {json_array(), json_array()};
  add_cards(s, true, side);
  add_cards(s, false, side);
  if (report_media_add(s, side) == EXIT_DONE)
    return report_made(s, json_pack("{s:o, s:o}", "x", side[0], "y", side[1]));
  json_decref(side[0]);
  json_decref(side[1]);
  return NULL;
}
