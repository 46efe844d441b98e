/* SPDX-License-Identifier: Apache-2.0 */
/* What each row finds first, and what that says class by class. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { CLASSES_MOST = 200, HUBS_OF_CLASS = 3 };

unicon_side report_side(int side) {
  return side == 0 ? UNICON_X : UNICON_Y;
}

double report_cosine(const subject *s, int64_t x, int64_t y) {
  const float *a = s->z[0] + x * s->r, *b = s->z[1] + y * s->r;
  double sum = 0;
  for (int64_t k = 0; k < s->r; k++) sum += (double)a[k] * (double)b[k];
  return sum;
}

double report_score(const subject *s, int side, int64_t row, int64_t candidate) {
  const double c = side == 0 ? report_cosine(s, row, candidate) : report_cosine(s, candidate, row);
  return c - (double)s->bias[1 - side][candidate];
}

int64_t report_label(const subject *s, int side, int64_t row) {
  int64_t partner = row;
  if (!s->labels) return -1;
  if (side == 1 && unicon_pairs_partners(s->in.pairs, UNICON_Y, row, 1, &partner) == 0) return -1;
  return unicon_labels_numbers(s->labels, 0)[partner];
}

/* ---- the first rows found ----------------------------------------------------------------- */

static unicon_status search(subject *s, int side) {
  unicon_ctx *ctx = s->t->ctx;
  unicon_rows *rows[2] = {NULL, NULL};
  const int64_t stride = s->r * (int64_t)sizeof(float);
  unicon_status status = UNICON_OK;
  for (int k = 0; k < 2 && status == UNICON_OK; k++)
    status = unicon_rows_wrap(ctx, k == 0 ? "x" : "y", s->z[k], UNICON_F32, s->rows[k], s->r,
                              stride, sizeof(float), &rows[k]);
  const unicon_view queries = UNICON_VIEW(.rows = rows[side], .side = report_side(side)),
                    base = UNICON_VIEW(.rows = rows[1 - side], .side = report_side(1 - side),
                                       .balance = s->balance);
  if (status == UNICON_OK)
    status = unicon_search(ctx, &queries, &base, REPORT_NEAR, s->near[side], s->near_score[side]);
  for (int k = 0; k < 2; k++) unicon_rows_close(rows[k]);
  return status;
}

static int by_number(const void *a, const void *b) {
  const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static unicon_status find_matches(subject *s, int side) {
  int64_t *partner = calloc((size_t)s->rows[1 - side] + 1, sizeof *partner);
  for (int64_t i = 0; partner && i < s->rows[side]; i++) {
    const int64_t *near = s->near[side] + i * REPORT_NEAR;
    const int64_t count =
        unicon_pairs_partners(s->in.pairs, report_side(side), i, s->rows[1 - side], partner);
    for (int k = 0; k < REPORT_NEAR; k++)
      if (bsearch(&near[k], partner, (size_t)count, sizeof *partner, by_number))
        s->match[side][i] |= (unsigned char)(1u << k);
  }
  const bool done = partner != NULL;
  free(partner);
  return done ? UNICON_OK : UNICON_ERR_MEMORY;
}

unicon_status report_find_near(subject *s) {
  unicon_status status = UNICON_OK;
  for (int side = 0; side < 2 && status == UNICON_OK; side++) {
    status = search(s, side);
    if (status == UNICON_OK) status = find_matches(s, side);
  }
  return status;
}

/* ---- class by class ----------------------------------------------------------------------- */

typedef struct query {
  int64_t label, row;
  int side;
} query;

/* A class with its queries, and how well they do; `most_taken` is the other class that is found
 * first most often. */
typedef struct class_of {
  int64_t label, first, count, hits, tens, taken, taken_count;
  double low, high, median;
} class_of;

/* Room that is counted in and made zero again. */
typedef struct tally {
  int64_t *of_class, *of_row[2], *ranks;
} tally;

static int by_label(const void *a, const void *b) {
  const query *left = a, *right = b;
  if (left->label != right->label) return left->label < right->label ? -1 : 1;
  if (left->side != right->side) return left->side - right->side;
  return (left->row > right->row) - (left->row < right->row);
}

/* Worst first: by what the class may at best be (the upper end of its interval), so that a class of
 * one row that fails is not the worst of all. */
static int by_worst(const void *a, const void *b) {
  const class_of *left = a, *right = b;
  if (left->high != right->high) return left->high < right->high ? -1 : 1;
  return (left->label > right->label) - (left->label < right->label);
}

/* Wilson's 95 % interval of a share. */
static void interval(class_of *c) {
  const double z = 1.959964, n = (double)c->count, p = (double)c->hits / n, zz = z * z / n;
  const double middle = (p + zz / 2) / (1 + zz);
  const double half = z * sqrt(p * (1 - p) / n + zz / (4 * n)) / (1 + zz);
  c->low = fmax(0, middle - half);
  c->high = fmin(1, middle + half);
}

/* The label of what the query finds first, if it is another one than its own; else -1. */
static int64_t taken_for(const subject *s, const query *q) {
  const int64_t first = s->near[q->side][q->row * REPORT_NEAR];
  const int64_t label = first >= 0 ? report_label(s, 1 - q->side, first) : -1;
  return label == q->label ? -1 : label;
}

static void measure_class(const subject *s, const query *list, tally *t, class_of *c) {
  for (int64_t k = 0; k < c->count; k++) {
    const query *q = &list[c->first + k];
    const int64_t rank = s->rank[q->side][q->row], other = taken_for(s, q);
    t->ranks[k] = rank;
    c->hits += rank == 1;
    c->tens += rank <= 10;
    if (other < 0 || ++t->of_class[other] <= c->taken_count) continue;
    c->taken_count = t->of_class[other];
    c->taken = other;
  }
  for (int64_t k = 0; k < c->count; k++) {
    const int64_t other = taken_for(s, &list[c->first + k]);
    if (other >= 0) t->of_class[other] = 0;
  }
  qsort(t->ranks, (size_t)c->count, sizeof *t->ranks, by_number);
  const size_t below = (size_t)(c->count - 1) / 2, above = (size_t)c->count / 2;
  c->median = 0.5 * (double)(t->ranks[below] + t->ranks[above]);
  interval(c);
}

/* The rows that queries of the class find among the first few most often, without being a match. */
static json_t *hubs_of_class(const subject *s, const query *list, tally *t, const class_of *c) {
  json_t *out = json_array();
  for (int taken = 0; taken <= HUBS_OF_CLASS; taken++) {
    int64_t best = 0, best_row = -1;
    int best_side = 0;
    for (int64_t k = 0; k < c->count; k++) {
      const query *q = &list[c->first + k];
      for (int n = 0; n < REPORT_NEAR; n++) {
        const int64_t row = s->near[q->side][q->row * REPORT_NEAR + n];
        if (row < 0 || (s->match[q->side][q->row] >> n & 1)) continue;
        int64_t *count = &t->of_row[1 - q->side][row];
        if (taken == HUBS_OF_CLASS) *count = 0; /* the last round cleans up */
        if (taken == 0) (*count)++;
        if (*count <= best) continue;
        best = *count;
        best_row = row;
        best_side = 1 - q->side;
      }
    }
    if (best < 2 || taken == HUBS_OF_CLASS) continue;
    t->of_row[best_side][best_row] = INT64_MIN / 2;
    json_array_append_new(out, json_pack("{s:s, s:o, s:I, s:I}", "side", best_side == 0 ? "x" : "y",
                                         "row", report_row_name(s, best_side, best_row), "number",
                                         (json_int_t)best_row, "count", (json_int_t)best));
  }
  return out;
}

static json_t *class_json(const subject *s, const query *list, tally *t, const class_of *c) {
  const double n = (double)c->count;
  json_t *out = json_pack("{s:o, s:I, s:I, s:f, s:o, s:o, s:f, s:f, s:o}", "name",
                          display_json_text(unicon_labels_name(s->labels, c->label)), "label",
                          (json_int_t)c->label, "queries", (json_int_t)c->count, "hit@1",
                          (double)c->hits / n, "low", report_rounded(c->low, 1e-6), "high",
                          report_rounded(c->high, 1e-6), "hit@10", (double)c->tens / n,
                          "median_rank", c->median, "hubs", hubs_of_class(s, list, t, c));
  if (out && c->taken_count > 0) {
    json_object_set_new(out, "taken", display_json_text(unicon_labels_name(s->labels, c->taken)));
    json_object_set_new(out, "taken_count", json_integer((json_int_t)c->taken_count));
  }
  return out;
}

/* Queries that have a match and a label, by label. */
static int64_t list_queries(const subject *s, query *list) {
  int64_t count = 0;
  for (int side = 0; side < 2; side++)
    for (int64_t i = 0; i < s->rows[side]; i++) {
      const int64_t label = s->rank[side][i] > 0 ? report_label(s, side, i) : -1;
      if (label >= 0) list[count++] = (query){label, i, side};
    }
  qsort(list, (size_t)count, sizeof *list, by_label);
  return count;
}

static json_t *classes_json_of(const subject *s, const query *list, int64_t queries, tally *t,
                               class_of *classes) {
  int64_t count = 0;
  for (int64_t at = 0; at < queries; at += classes[count++].count) {
    classes[count] = (class_of){.label = list[at].label, .first = at};
    while (at + classes[count].count < queries &&
           list[at + classes[count].count].label == list[at].label)
      classes[count].count++;
    measure_class(s, list, t, &classes[count]);
  }
  qsort(classes, (size_t)count, sizeof *classes, by_worst);
  json_t *rows = json_array();
  for (int64_t k = 0; k < count && k < CLASSES_MOST; k++)
    json_array_append_new(rows, class_json(s, list, t, &classes[k]));
  return json_pack("{s:I, s:o}", "count", (json_int_t)count, "rows", rows);
}

json_t *report_by_class(const subject *s) {
  const size_t all = (size_t)(s->rows[0] + s->rows[1]) + 1;
  const size_t labels = (size_t)unicon_labels_classes(s->labels) + 1;
  query *list = calloc(all, sizeof *list);
  class_of *classes = calloc(labels, sizeof *classes);
  tally t = {calloc(labels, sizeof(int64_t)),
             {calloc((size_t)s->rows[0] + 1, sizeof(int64_t)),
              calloc((size_t)s->rows[1] + 1, sizeof(int64_t))},
             calloc(all, sizeof(int64_t))};
  json_t *out = NULL;
  if (list && classes && t.of_class && t.of_row[0] && t.of_row[1] && t.ranks)
    out = classes_json_of(s, list, list_queries(s, list), &t, classes);
  free(t.ranks);
  free(t.of_row[1]);
  free(t.of_row[0]);
  free(t.of_class);
  free(classes);
  free(list);
  return report_made(s, out);
}
