/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into statistics, and how far they and models of them are from one another. */
#ifndef UNICON_TESTS_KEPT_CHECK_H
#define UNICON_TESTS_KEPT_CHECK_H

#include <math.h>
#include <stdlib.h>

#include "kept/kept.h"
#include "scratch.h"
#include "support.h"

/* Rows that are summed, or taken away. */
typedef struct kept_part {
  unicon_rows *x, *y;
  unicon_pairs *pairs;
  unicon_data data;
} kept_part;

static inline void kept_part_close(kept_part *p) {
  unicon_pairs_destroy(p->pairs);
  unicon_rows_close(p->x);
  unicon_rows_close(p->y);
}

static inline double kept_trace(const unicon_stats *stats, int side) {
  double trace = 0;
  for (int64_t k = 0; k < stats->sums.p[side]; k++) trace += stats->sums.square[side][k];
  return trace;
}

/* Largest difference of rows, and of G relative to its trace. */
static inline double kept_sides_distance(const unicon_stats *a, const unicon_stats *b) {
  double worst = 0;
  for (int s = 0; s < 2; s++) {
    const int64_t p = a->sums.p[s];
    const double trace = kept_trace(a, s);
    for (int64_t i = 0; i < p; i++)
      for (int64_t j = 0; j <= i; j++)
        worst = fmax(worst, fabs(a->sums.gram[s][i * p + j] - b->sums.gram[s][i * p + j]) / trace);
    worst = fmax(worst, fabs(a->sums.rows[s] - b->sums.rows[s]));
  }
  return worst;
}

/* Do both samples hold the same rows, labels and pairs, in the same units? */
static inline void kept_same_sample(const unicon_stats *a, const unicon_stats *b) {
  const unicon__sample *s = &a->sample, *t = &b->sample;
  assert_int_equal(s->units, t->units);
  assert_int_equal(s->pairs, t->pairs);
  assert_int_equal(s->labelled, t->labelled);
  assert_memory_equal(s->threshold, t->threshold, sizeof s->threshold);
  for (int64_t k = 0; k < s->units; k++) {
    const unicon__unit *u = &s->unit[k], *v = &t->unit[k];
    assert_true(u->key == v->key && u->whole == v->whole && u->pairs == v->pairs);
    assert_true(u->rows[0] == v->rows[0] && u->rows[1] == v->rows[1]);
    assert_true(u->at[0] == v->at[0] && u->at[1] == v->at[1] && u->at_pair == v->at_pair);
  }
  for (int side = 0; side < 2; side++) {
    const size_t rows = (size_t)s->rows[side];
    assert_int_equal(s->rows[side], t->rows[side]);
    assert_memory_equal(s->length[side], t->length[side], rows * sizeof **s->length);
    assert_memory_equal(s->hash[side], t->hash[side], rows * 8);
    assert_memory_equal(s->half[side], t->half[side], rows * (size_t)s->width[side] * 2);
    if (s->labelled) assert_memory_equal(s->label[side], t->label[side], rows * 8);
  }
  assert_memory_equal(s->pair, t->pair, (size_t)(2 * s->pairs) * sizeof *s->pair);
  assert_memory_equal(s->weight, t->weight, (size_t)s->pairs * sizeof *s->weight);
}

static inline unicon_model *kept_fit(unicon_ctx *ctx, const unicon_stats *stats,
                                     const char *preset) {
  unicon_options *options = support_options(ctx, "preset", preset, NULL);
  unicon_model *model = NULL;
  CHECK_OK(ctx, unicon_stats_fit(ctx, stats, NULL, options, &model));
  unicon_options_destroy(options);
  return model;
}

/* Largest difference of the cosines that two models give these rows. */
static inline double kept_cosine_distance(unicon_ctx *ctx, const unicon_rows *x,
                                          const unicon_rows *y, const unicon_model *a,
                                          const unicon_model *b) {
  double *ca = support_cosines(ctx, a, x, y), *cb = support_cosines(ctx, b, x, y);
  const double far = support_distance(ca, cb, unicon_rows_count(x) * unicon_rows_count(y));
  free(ca);
  free(cb);
  return far;
}

#endif
