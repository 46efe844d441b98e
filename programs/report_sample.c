/* SPDX-License-Identifier: Apache-2.0 */
#include "report_sample.h"

#include <stdlib.h>
#include <string.h>

enum { PARTNERS = 5 }; /* of a row, in a sample */

/* A row with the key it is sorted by. */
typedef struct keyed {
  int64_t key, row;
} keyed;

static int by_key(const void *a, const void *b) {
  const keyed *left = a, *right = b;
  if (left->key != right->key) return left->key < right->key ? -1 : 1;
  return (left->row > right->row) - (left->row < right->row);
}

static bool allocate(const subject *s, int64_t most, sample *a) {
  for (int side = 0; side < 2; side++) a->row[side] = calloc((size_t)most + 1, sizeof(int64_t));
  a->x = calloc((size_t)(most * most) / 4 + 1, sizeof *a->x);
  a->y = calloc((size_t)(most * most) / 4 + 1, sizeof *a->y);
  if (a->row[0] && a->row[1] && a->x && a->y) return true;
  tool_out_of_memory(s->t);
  return false;
}

/* Rows of x that have partners, evenly spread, each with its first few. `place` (rows of y) is -1
 * where a row is not in yet; `with` has room for the rows of x. */
static void take_pairs(const subject *s, int64_t most, int64_t *place, int64_t *with, sample *a) {
  const int64_t pairs = unicon_pairs_count(s->in.pairs);
  int64_t n = 0;
  for (int64_t i = 0; i < s->rows[0]; i++)
    if (unicon_pairs_partners(s->in.pairs, UNICON_X, i, 0, NULL) > 0) with[n++] = i;
  const int64_t usual = n > 0 ? (pairs + n - 1) / n : 1;
  const int64_t each = usual < PARTNERS ? usual : PARTNERS, wanted = most / (1 + each);
  const int64_t count = n < wanted ? n : wanted;
  for (int64_t t = 0; t < count; t++) {
    const int64_t i = with[t * n / count];
    int64_t partner[PARTNERS];
    int64_t found = unicon_pairs_partners(s->in.pairs, UNICON_X, i, each, partner);
    if (found > each) found = each;
    a->row[0][a->count[0]++] = i;
    for (int64_t k = 0; k < found; k++) {
      if (place[partner[k]] >= 0) continue;
      place[partner[k]] = a->count[1];
      a->row[1][a->count[1]++] = partner[k];
    }
  }
}

/* Rows of one side evenly spread, those of a class together: rows of a class share their first
 * partner. */
static bool take_spread(const subject *s, int side, int64_t most, sample *a) {
  const int64_t n = s->rows[side], count = n < most ? n : most;
  keyed *list = calloc((size_t)count + 1, sizeof *list);
  if (!list) {
    tool_out_of_memory(s->t);
    return false;
  }
  for (int64_t t = 0; t < count; t++) {
    int64_t first = INT64_MAX, again = INT64_MAX;
    const int64_t row = t * n / count;
    if (unicon_pairs_partners(s->in.pairs, side == 0 ? UNICON_X : UNICON_Y, row, 1, &first) > 0 &&
        side == 1)
      unicon_pairs_partners(s->in.pairs, UNICON_X, first, 1, &again);
    list[t] = (keyed){side == 0 ? first : again, row};
  }
  qsort(list, (size_t)count, sizeof *list, by_key);
  for (int64_t t = 0; t < count; t++) a->row[side][t] = list[t].row;
  a->count[side] = count;
  free(list);
  return true;
}

/* The true pairs between the sampled rows, at most a quarter of most^2. */
static bool link(const subject *s, const int64_t *place, sample *a) {
  int64_t *partner = calloc((size_t)s->rows[1] + 1, sizeof *partner);
  if (!partner) {
    tool_out_of_memory(s->t);
    return false;
  }
  for (int64_t i = 0; i < a->count[0]; i++) {
    const int64_t count =
        unicon_pairs_partners(s->in.pairs, UNICON_X, a->row[0][i], s->rows[1], partner);
    for (int64_t k = 0; k < count; k++) {
      if (place[partner[k]] < 0) continue;
      a->x[a->pairs] = i;
      a->y[a->pairs++] = place[partner[k]];
    }
  }
  free(partner);
  return true;
}

/* The sample as `out->classes` says; `place` and `with` are room for the rows of y and of x. */
static bool draw(const subject *s, int64_t most, int64_t *place, int64_t *with, sample *out) {
  bool done = true;
  out->count[0] = out->count[1] = out->pairs = 0;
  for (int64_t j = 0; j < s->rows[1]; j++) place[j] = -1;
  if (!out->classes) take_pairs(s, most, place, with, out);
  for (int side = 0; side < 2 && done && out->classes; side++)
    done = take_spread(s, side, most / 2, out);
  for (int64_t k = 0; done && k < out->count[1]; k++) place[out->row[1][k]] = k;
  return done && link(s, place, out);
}

/* Rows spread evenly may have hardly a pair between them when there are many classes: then pairs
 * are drawn. */
bool sample_open(const subject *s, int64_t most, sample *out) {
  const int64_t longer = s->rows[0] > s->rows[1] ? s->rows[0] : s->rows[1];
  *out = (sample){.classes = unicon_pairs_count(s->in.pairs) > PARTNERS * longer};
  int64_t *place = calloc((size_t)s->rows[1] + 1, sizeof *place);
  int64_t *with = calloc((size_t)s->rows[0] + 1, sizeof *with);
  if (!place || !with) tool_out_of_memory(s->t);
  bool done = place && with && allocate(s, most, out) && draw(s, most, place, with, out);
  if (done && out->classes && 4 * out->pairs < out->count[0]) {
    out->classes = false;
    done = draw(s, most, place, with, out);
  }
  free(place);
  free(with);
  return done;
}

void sample_close(sample *a) {
  for (int side = 0; side < 2; side++) free(a->row[side]);
  free(a->x);
  free(a->y);
  *a = (sample){0};
}

float *sample_vectors(const subject *s, const sample *a, int first_side, int last_side) {
  int64_t count = 0;
  for (int side = first_side; side <= last_side; side++) count += a->count[side];
  float *z = calloc((size_t)(count * s->r) + 1, sizeof *z), *to = z;
  if (!z) tool_out_of_memory(s->t);
  for (int side = first_side; z && side <= last_side; side++)
    for (int64_t k = 0; k < a->count[side]; k++, to += s->r)
      memcpy(to, s->z[side] + a->row[side][k] * s->r, (size_t)s->r * sizeof *z);
  return z;
}
