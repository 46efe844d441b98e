/* SPDX-License-Identifier: Apache-2.0 */
#include "use/suspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum {
  SAMPLE = 4096,         /* other rows that a pair is graded against: a share to a hundredth */
  QUERY_ROWS = 128,      /* of a tile of scores */
  ROUND_SAMPLE = 1 << 22 /* draws of their own, apart from those of shuffles and spectra */
};

/* One direction: rows of one side as queries against a sample of the other. */
typedef struct grading {
  const unicon_pairs *pairs;
  bool from_x;
  int64_t queries, r, samples;
  const float *query, *other; /* unit embeddings of both sides */
  int64_t *sample;            /* rows of the other side, ascending */
  float *sampled;             /* their embeddings */
  float *scores;              /* per worker: QUERY_ROWS by samples */
  float *class_mean;          /* with labels: mean embedding of each class of the other side */
  unicon__suspect *entry;     /* with labels: of each query; else of each pair, by x */
} grading;

int64_t unicon__grade_count(const unicon_pairs *pairs) {
  return pairs->class_x ? pairs->n_x + pairs->n_y : pairs->positive.count;
}

static unicon_status draw_sample(unicon_ctx *ctx, grading *g, int64_t n, uint64_t seed) {
  int64_t *order;
  UNICON_NEW(ctx, order, n);
  unicon__permutation(seed, UNICON__STREAM_PERMUTE, ROUND_SAMPLE + (uint32_t)g->from_x, n, order);
  g->samples = n < SAMPLE ? n : SAMPLE;
  UNICON_NEW(ctx, g->sample, g->samples);
  memcpy(g->sample, order, (size_t)g->samples * sizeof *g->sample);
  qsort(g->sample, (size_t)g->samples, sizeof *g->sample, unicon__compare_int64);
  UNICON_NEW(ctx, g->sampled, g->samples * g->r);
  for (int64_t k = 0; k < g->samples; k++)
    memcpy(g->sampled + k * g->r, g->other + g->sample[k] * g->r, (size_t)g->r * sizeof(float));
  unicon__drop(ctx, order);
  return UNICON_OK;
}

static unicon_status average_classes(unicon_ctx *ctx, grading *g) {
  const unicon_pairs *pairs = g->pairs;
  const int32_t *class_of = g->from_x ? pairs->class_y : pairs->class_x;
  const int64_t n = g->from_x ? pairs->n_y : pairs->n_x, size = pairs->classes * g->r;
  double *sum;
  int64_t *members;
  if (!class_of) return UNICON_OK;
  UNICON_NEW(ctx, sum, size);
  UNICON_NEW(ctx, members, pairs->classes);
  UNICON_NEW(ctx, g->class_mean, size);
  for (int64_t i = 0; i < n; i++) {
    members[class_of[i]]++;
    for (int64_t j = 0; j < g->r; j++)
      sum[class_of[i] * g->r + j] += (double)g->other[i * g->r + j];
  }
  for (int64_t k = 0; k < size; k++) {
    const int64_t rows = members[k / g->r];
    g->class_mean[k] = rows ? (float)(sum[k] / (double)rows) : 0;
  }
  unicon__drop(ctx, members);
  unicon__drop(ctx, sum);
  return UNICON_OK;
}

/* Takes the listed rows out of a row of scores; returns how many were in the sample. */
static int64_t hide(const grading *g, unicon__partners list, float *scores) {
  int64_t hidden = 0;
  for (int64_t k = 0, s = 0; k < list.count && s < g->samples;) {
    if (g->sample[s] < list.item[k]) {
      s++;
    } else if (g->sample[s] > list.item[k]) {
      k++;
    } else {
      hidden += scores[s] > -INFINITY;
      scores[s++] = -INFINITY;
      k++;
    }
  }
  return hidden;
}

/* Share of the `left` scores that are below `cosine`; 1 where there is nothing to compare with. */
static double share_below(const grading *g, const float *scores, int64_t left, double cosine) {
  int64_t above = 0;
  const float bound = (float)cosine;
  for (int64_t s = 0; s < g->samples; s++) above += scores[s] >= bound;
  return left > 0 ? 1 - (double)above / (double)left : 1;
}

/* The entry of pair number k of query q: its place in the lists by x. */
static unicon__suspect *entry_of(const grading *g, int64_t q, int64_t item, int64_t k) {
  const unicon__lists *by_x = &g->pairs->positive.by_x;
  if (g->from_x) return g->entry + by_x->start[q] + k;
  int64_t length;
  const int64_t at = unicon__list_range(unicon__list_at(by_x, item), q, q + 1, &length);
  return g->entry + by_x->start[item] + at;
}

static void grade_query(const grading *g, int64_t q, float *scores) {
  const unicon__vec *vec = unicon__vec_best();
  const unicon__lists *ignore = g->from_x ? &g->pairs->ignore.by_x : &g->pairs->ignore.by_y;
  const unicon__partners p =
      g->from_x ? unicon__positives_x(g->pairs, q) : unicon__positives_y(g->pairs, q);
  if (p.count == 0) return;
  const float *z = g->query + q * g->r;
  int64_t left = g->samples - hide(g, p, scores);
  if (g->pairs->ignore.count > 0) left -= hide(g, unicon__list_at(ignore, q), scores);
  if (g->pairs->class_x) {
    const int32_t class = (g->from_x ? g->pairs->class_x : g->pairs->class_y)[q];
    g->entry[q].cosine = vec->dot(z, g->class_mean + class * g->r, g->r);
    g->entry[q].closer = share_below(g, scores, left, g->entry[q].cosine);
    return;
  }
  for (int64_t k = 0; k < p.count; k++) {
    unicon__suspect *entry = entry_of(g, q, p.item[k], k);
    entry->cosine = vec->dot(z, g->other + p.item[k] * g->r, g->r);
    entry->closer += share_below(g, scores, left, entry->cosine) / 2;
  }
}

static void grade_block(void *state, unicon__cell cell) {
  const grading *g = state;
  const int64_t first = cell.row * QUERY_ROWS, left = g->queries - first;
  const int64_t count = left < QUERY_ROWS ? left : QUERY_ROWS;
  float *scores = g->scores + cell.worker * QUERY_ROWS * g->samples;
  unicon__sgemm(false, true, count, g->samples, g->r, 1, g->query + first * g->r, g->r, g->sampled,
                g->r, 0, scores, g->samples);
  for (int64_t i = 0; i < count; i++) grade_query(g, first + i, scores + i * g->samples);
}

static unicon_status grade_side(unicon_ctx *ctx, const unicon__batch *set, bool from_x,
                                const float *zx, const float *zy, int64_t r, uint64_t seed,
                                unicon__suspect *entry) {
  unicon__block *frame = unicon__frame_open(ctx);
  grading g = {.pairs = set->pairs,
               .from_x = from_x,
               .r = r,
               .entry = entry,
               .queries = from_x ? set->x.count : set->y.count,
               .query = from_x ? zx : zy,
               .other = from_x ? zy : zx};
  UNICON_TRY(draw_sample(ctx, &g, from_x ? set->y.count : set->x.count, seed));
  UNICON_TRY(average_classes(ctx, &g));
  const int64_t blocks = (g.queries + QUERY_ROWS - 1) / QUERY_ROWS;
  UNICON_NEW(ctx, g.scores, unicon__workers_for(ctx, blocks) * QUERY_ROWS * g.samples);
  UNICON_TRY(unicon__sweep_rows(ctx, "pairs", &unicon__blas_region, blocks, grade_block, &g));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static int64_t file_row(const unicon__source *source, int64_t row) {
  return source->index ? source->index[row] : row;
}

/* Rows with a label: those that have a partner move up in the list. */
static void name_rows(const unicon__batch *set, unicon__grades *grades) {
  const int64_t n_x = set->x.count, n = n_x + set->y.count, first = grades->count;
  for (int64_t i = 0; i < n; i++) {
    const bool x = i < n_x;
    const unicon__partners p =
        x ? unicon__positives_x(set->pairs, i) : unicon__positives_y(set->pairs, i - n_x);
    if (p.count == 0) continue;
    unicon__suspect *entry = &grades->entry[grades->count++];
    *entry = grades->entry[first + i];
    entry->x = x ? file_row(&set->x, i) : -1;
    entry->y = x ? -1 : file_row(&set->y, i - n_x);
  }
}

static void name_pairs(const unicon__batch *set, unicon__grades *grades) {
  for (int64_t i = 0; i < set->x.count; i++) {
    const unicon__partners p = unicon__positives_x(set->pairs, i);
    for (int64_t k = 0; k < p.count; k++, grades->count++) {
      grades->entry[grades->count].x = file_row(&set->x, i);
      grades->entry[grades->count].y = file_row(&set->y, p.item[k]);
    }
  }
}

unicon_status unicon__grade(unicon_ctx *ctx, const unicon__batch *set, const float *zx,
                            const float *zy, int64_t r, uint64_t seed, unicon__grades *grades) {
  const bool labels = set->pairs->class_x != NULL;
  unicon__suspect *entry = grades->entry + grades->count;
  const int64_t count = unicon__grade_count(set->pairs);
  memset(entry, 0, (size_t)count * sizeof *entry);
  UNICON_TRY(grade_side(ctx, set, true, zx, zy, r, seed, entry));
  UNICON_TRY(grade_side(ctx, set, false, zx, zy, r, seed, labels ? entry + set->x.count : entry));
  if (labels)
    name_rows(set, grades);
  else
    name_pairs(set, grades);
  return UNICON_OK;
}

static int worst_first(const void *a, const void *b) {
  const unicon__suspect *left = a, *right = b;
  if (left->closer != right->closer) return left->closer < right->closer ? -1 : 1;
  if (left->cosine != right->cosine) return left->cosine < right->cosine ? -1 : 1;
  if (left->x != right->x) return left->x < right->x ? -1 : 1;
  return (left->y > right->y) - (left->y < right->y);
}

void unicon__grades_sort(unicon__grades *grades) {
  qsort(grades->entry, (size_t)grades->count, sizeof *grades->entry, worst_first);
}
