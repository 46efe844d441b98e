/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics against their definitions, and as sums: any split into parts, any order, added and
 * taken away, another shift, folds by subtraction (docs/method.md section 9). */
#include "solve/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "scratch.h"
#include "support.h"

enum { GROUPS = 60, PX = 9, PY = 6 };

static const int64_t all_of[2] = {INT64_MAX, INT64_MAX};
enum {
  EVERYTHING = UNICON__STATS_GRAM_X | UNICON__STATS_GRAM_Y | UNICON__STATS_CROSS,
  WIDE = EVERYTHING | UNICON__STATS_DOUBLE
};

/* Groups of rows that belong together: group g has x rows and y rows, paired by `shape`. */
/* ODD: five for each row of x, but for one row that has two. */
typedef enum shape { ONE_TO_ONE, FIVE_PER_X, ODD, MANY, WEIGHTED, LONELY, LABELS } shape;
enum { SHAPES = 7 };

typedef struct table {
  int64_t n_x, n_y;
  float *x, *y;
  int64_t *group_x, *group_y;
  int64_t pairs, *i, *k;
  double *w;
} table;

static int rows_of(shape s, int64_t group, bool x) {
  if (s == ONE_TO_ONE) return 1;
  if (s == FIVE_PER_X || s == ODD) return x ? 1 : s == ODD && group == 0 ? 2 : 5;
  return 1 + (int)((group * (x ? 7 : 5) + (x ? 1 : 2)) % 3);
}

static void table_make(shape s, table *t) {
  *t = (table){0};
  for (int64_t g = 0; g < GROUPS; g++) {
    t->n_x += rows_of(s, g, true);
    t->n_y += rows_of(s, g, false);
  }
  t->x = support_normals(3, t->n_x * PX);
  t->y = support_normals(4, t->n_y * PY);
  t->group_x = calloc((size_t)t->n_x, sizeof *t->group_x);
  t->group_y = calloc((size_t)t->n_y, sizeof *t->group_y);
  t->i = calloc((size_t)(9 * GROUPS), sizeof *t->i);
  t->k = calloc((size_t)(9 * GROUPS), sizeof *t->k);
  t->w = calloc((size_t)(9 * GROUPS), sizeof *t->w);
  for (int64_t g = 0, i = 0, j = 0; g < GROUPS; g++) {
    const int a = rows_of(s, g, true), b = rows_of(s, g, false);
    for (int p = 0; p < a; p++) t->group_x[i + p] = g;
    for (int q = 0; q < b; q++) t->group_y[j + q] = g;
    for (int p = 0; p < a; p++)
      for (int q = 0; q < b; q++) {
        const bool some = s == MANY || s == WEIGHTED || s == LONELY;
        if (some && (p + 2 * q + g) % 3 == 1) continue; /* many to many, with holes */
        if (s == LONELY && g % 4 == 0 && p == 0) continue;
        t->i[t->pairs] = i + p;
        t->k[t->pairs] = j + q;
        t->w[t->pairs++] = s == WEIGHTED ? 0.25 + (double)((p + q + g) % 5) : 1;
      }
    for (int p = 0; p < a * PX; p++) t->x[i * PX + p] += 0.7f + 0.1f * (float)(g % 3);
    for (int q = 0; q < b * PY; q++) t->y[j * PY + q] -= 0.4f + 0.2f * (float)(g % 2);
    i += a;
    j += b;
  }
}

static void table_free(table *t) {
  free(t->x);
  free(t->y);
  free(t->group_x);
  free(t->group_y);
  free(t->i);
  free(t->k);
  free(t->w);
}

/* A part of the table as a set, rows and pairs of groups g with g % parts == part. */
typedef struct piece {
  float *data[2];
  unicon_rows *x, *y;
  unicon_pairs *pairs;
  unicon__map map[2];
  unicon__batch set;
} piece;

static int64_t *numbers(const int64_t *group, int64_t n, int parts, int part, int64_t *count) {
  int64_t *row = calloc((size_t)n, sizeof *row);
  *count = 0;
  for (int64_t i = 0; i < n; i++)
    if (group[i] % parts == part) row[(*count)++] = i;
  return row;
}

static void piece_open(unicon_ctx *ctx, shape s, const table *t, int parts, int part,
                       const float *const shift[2], piece *out) {
  int64_t n_x, n_y, kept = 0;
  int64_t *row_x = numbers(t->group_x, t->n_x, parts, part, &n_x);
  int64_t *row_y = numbers(t->group_y, t->n_y, parts, part, &n_y);
  int64_t *place_x = calloc((size_t)t->n_x, sizeof *place_x);
  int64_t *place_y = calloc((size_t)t->n_y, sizeof *place_y);
  float *x = support_floats(n_x * PX), *y = support_floats(n_y * PY);
  for (int64_t i = 0; i < n_x; i++) {
    memcpy(x + i * PX, t->x + row_x[i] * PX, PX * sizeof *x);
    place_x[row_x[i]] = i;
  }
  for (int64_t j = 0; j < n_y; j++) {
    memcpy(y + j * PY, t->y + row_y[j] * PY, PY * sizeof *y);
    place_y[row_y[j]] = j;
  }
  int64_t *i = calloc((size_t)t->pairs, sizeof *i), *k = calloc((size_t)t->pairs, sizeof *k);
  double *w = support_doubles(t->pairs);
  for (int64_t p = 0; p < t->pairs; p++) {
    if (t->group_x[t->i[p]] % parts != part) continue;
    i[kept] = place_x[t->i[p]];
    k[kept] = place_y[t->k[p]];
    w[kept++] = t->w[p];
  }
  out->data[0] = x;
  out->data[1] = y;
  out->x = support_rows(ctx, "x", x, n_x, PX);
  out->y = support_rows(ctx, "y", y, n_y, PY);
  if (s == LABELS) {
    int64_t *label_x = calloc((size_t)n_x, sizeof *label_x);
    int64_t *label_y = calloc((size_t)n_y, sizeof *label_y);
    for (int64_t a = 0; a < n_x; a++) label_x[a] = t->group_x[row_x[a]];
    for (int64_t b = 0; b < n_y; b++) label_y[b] = t->group_y[row_y[b]];
    CHECK_OK(ctx, unicon_pairs_labels(ctx, label_x, n_x, label_y, n_y, &out->pairs));
    free(label_x);
    free(label_y);
  } else {
    CHECK_OK(ctx,
             unicon_pairs_list(ctx, n_x, n_y, i, k, s == WEIGHTED ? w : NULL, kept, &out->pairs));
  }
  out->map[0] = (unicon__map){.in = PX, .out = PX, .mean = (float *)(uintptr_t)shift[0]};
  out->map[1] = (unicon__map){.in = PY, .out = PY, .mean = (float *)(uintptr_t)shift[1]};
  out->set = (unicon__batch){.x = {.rows = out->x, .count = n_x, .map = &out->map[0]},
                             .y = {.rows = out->y, .count = n_y, .map = &out->map[1]},
                             .pairs = out->pairs};
  free(row_x), free(row_y), free(place_x), free(place_y), free(i), free(k), free(w);
}

static void piece_close(piece *p) {
  unicon_pairs_destroy(p->pairs);
  unicon_rows_close(p->x);
  unicon_rows_close(p->y);
  free(p->data[0]);
  free(p->data[1]);
}

/* ---- the definition ----------------------------------------------------------------------- */

typedef struct naive {
  double mean[2][PX], sigma[2][PX * PX], c[PX * PY];
} naive;

/* Number of partners of row `row` of a side. */
static int partners(const table *t, bool x, int64_t row) {
  int count = 0;
  for (int64_t p = 0; p < t->pairs; p++) count += (x ? t->i[p] : t->k[p]) == row;
  return count;
}

/* Means and covariances over rows that count, then C = (C_x + C_y)/2 with C_d the weighted mean
 * over pairs of the product of centred rows, less what weights of single rows would give. */
static void define(const table *t, bool lonely, bool centred, naive *out) {
  memset(out, 0, sizeof *out);
  double own[2][PX] = {{0}};
  for (int s = 0; s < 2; s++) {
    const int64_t n = s == 0 ? t->n_x : t->n_y, p = s == 0 ? PX : PY;
    const float *rows = s == 0 ? t->x : t->y;
    double count = 0;
    for (int64_t i = 0; i < n; i++) {
      if (!lonely && partners(t, s == 0, i) == 0) continue;
      count++;
      for (int64_t k = 0; k < p; k++) own[s][k] += (double)rows[i * p + k];
    }
    for (int64_t k = 0; k < p; k++) own[s][k] /= count;
    if (centred) memcpy(out->mean[s], own[s], sizeof own[s]);
    for (int64_t i = 0; i < n; i++) {
      if (!lonely && partners(t, s == 0, i) == 0) continue;
      for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b < p; b++)
          out->sigma[s][a * p + b] += ((double)rows[i * p + a] - out->mean[s][a]) *
                                      ((double)rows[i * p + b] - out->mean[s][b]) / count;
    }
  }
  double total[2] = {0, 0};
  for (int64_t p = 0; p < t->pairs; p++) {
    total[0] += t->w[p] / partners(t, true, t->i[p]);
    total[1] += t->w[p] / partners(t, false, t->k[p]);
  }
  for (int64_t p = 0; p < t->pairs; p++)
    for (int d = 0; d < 2; d++) {
      const int count = d == 0 ? partners(t, true, t->i[p]) : partners(t, false, t->k[p]);
      const double w = t->w[p] / count / total[d] / 2;
      for (int64_t a = 0; a < PX; a++)
        for (int64_t b = 0; b < PY; b++) {
          const double x = (double)t->x[t->i[p] * PX + a] - out->mean[0][a];
          const double y = (double)t->y[t->k[p] * PY + b] - out->mean[1][b];
          /* S has zero row sums towards y, and zero column sums towards x */
          const double rest =
              d == 0 ? x * (own[1][b] - out->mean[1][b]) : (own[0][a] - out->mean[0][a]) * y;
          out->c[a * PY + b] += w * (x * y - rest);
        }
    }
}

static void expect(const unicon__moments *m, const naive *n, const float *const shift[2],
                   double tolerance) {
  for (int s = 0; s < 2; s++) {
    const int64_t p = s == 0 ? PX : PY;
    for (int64_t a = 0; a < p; a++) {
      if (n->mean[s][0] != 0)
        CHECK_CLOSE(m->mean[s][a] + (shift[s] ? (double)shift[s][a] : 0), n->mean[s][a], tolerance);
      for (int64_t b = 0; b <= a; b++)
        CHECK_CLOSE(m->sigma[s][a * p + b], n->sigma[s][a * p + b], tolerance);
    }
  }
  for (int64_t k = 0; k < PX * PY; k++) CHECK_CLOSE(m->cross[k], n->c[k], tolerance);
}

static const float *const no_shift[2] = {NULL, NULL};

static void sums_are_the_definition(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int s = 0; s < SHAPES; s++)
    for (int how = 0; how < 4; how++) {
      const bool centred = how % 2 == 0, lonely = how > 1 || s == LABELS;
      table t;
      piece p;
      naive n;
      unicon__stats stats;
      unicon__moments m;
      table_make((shape)s, &t);
      piece_open(ctx, (shape)s, &t, 1, 0, no_shift, &p);
      define(&t, lonely, centred, &n);
      unicon__block *frame = unicon__frame_open(ctx);
      for (int wide = 0; wide < 2; wide++) {
        const unsigned holds = (wide ? WIDE : EVERYTHING) | (lonely ? UNICON__STATS_UNPAIRED : 0);
        CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &p.set, all_of, holds, &stats));
        CHECK_OK(ctx, unicon__stats_add(ctx, &p.set, 1, &stats));
        CHECK_OK(ctx, unicon__stats_finish(ctx, &stats, NULL,
                                           centred ? UNICON__CENTRE_SIDES : UNICON__CENTRE_NONE,
                                           all_of, &m));
        /* float32 products of some 100 rows: roundings of 2^-24 times values about 1 */
        expect(&m, &n, no_shift, wide ? 1e-12 : 3e-6);
      }
      unicon__frame_close(ctx, frame);
      piece_close(&p);
      table_free(&t);
    }
}

/* Parts in any order, one added and taken away again, about another shift: the same to rounding. */
static void parts_add_up(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { PARTS = 3 };
  for (int s = 0; s < LABELS; s++) {
    table t;
    naive n;
    piece p[PARTS];
    float near_x[PX], near_y[PY];
    for (int k = 0; k < PX; k++) near_x[k] = 0.75f;
    for (int k = 0; k < PY; k++) near_y[k] = -0.5f;
    const float *const near[2] = {near_x, near_y};
    table_make((shape)s, &t);
    define(&t, false, true, &n);
    for (int shifted = 0; shifted < 2; shifted++) {
      const float *const *shift = shifted ? near : no_shift;
      for (int k = 0; k < PARTS; k++) piece_open(ctx, (shape)s, &t, PARTS, k, shift, &p[k]);
      unicon__block *frame = unicon__frame_open(ctx);
      unicon__stats one, other;
      unicon__moments m;
      CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &p[2].set, all_of, WIDE, &one));
      CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &p[2].set, all_of, WIDE, &other));
      CHECK_OK(ctx, unicon__stats_add(ctx, &p[2].set, 1, &one));
      CHECK_OK(ctx, unicon__stats_add(ctx, &p[1].set, 1, &other));
      CHECK_OK(ctx, unicon__stats_add(ctx, &p[1].set, 1, &other));
      CHECK_OK(ctx, unicon__stats_add(ctx, &p[0].set, 1, &other));
      CHECK_OK(ctx, unicon__stats_add(ctx, &p[1].set, -1, &other));
      CHECK_OK(ctx, unicon__stats_merge(ctx, &other, 1, &one));
      CHECK_OK(ctx, unicon__stats_finish(ctx, &one, NULL, UNICON__CENTRE_SIDES, all_of, &m));
      /* n 2^-53 times the squares of a few: 100 values of about 1; about a shift the features
       * themselves are rounded to float32 */
      expect(&m, &n, shift, shifted ? 1e-6 : 1e-12);
      unicon__frame_close(ctx, frame);
      for (int k = 0; k < PARTS; k++) piece_close(&p[k]);
    }
    table_free(&t);
  }
}

static void check_fold(unicon_ctx *ctx, int s, unsigned holds, double tolerance) {
  static const int64_t lead[2] = {PX - 2, PY - 1};
  table t;
  piece whole, fold, rest[2];
  unicon__stats all, part, apart;
  unicon__moments a, b;
  table_make((shape)s, &t);
  piece_open(ctx, (shape)s, &t, 1, 0, no_shift, &whole);
  piece_open(ctx, (shape)s, &t, 3, 1, no_shift, &fold);
  piece_open(ctx, (shape)s, &t, 3, 0, no_shift, &rest[0]);
  piece_open(ctx, (shape)s, &t, 3, 2, no_shift, &rest[1]);
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &whole.set, all_of, holds, &all));
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &fold.set, lead, holds, &part));
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &whole.set, lead, holds, &apart));
  CHECK_OK(ctx, unicon__stats_add(ctx, &whole.set, 1, &all));
  CHECK_OK(ctx, unicon__stats_add(ctx, &fold.set, 1, &part));
  for (int k = 0; k < 2; k++) CHECK_OK(ctx, unicon__stats_add(ctx, &rest[k].set, 1, &apart));
  CHECK_OK(ctx, unicon__stats_finish(ctx, &all, &part, UNICON__CENTRE_SIDES, all_of, &a));
  CHECK_OK(ctx, unicon__stats_finish(ctx, &apart, NULL, UNICON__CENTRE_SIDES, all_of, &b));
  assert_int_equal(a.p[0], lead[0]);
  CHECK_CLOSE(a.rows[1], b.rows[1], 0);
  CHECK_CLOSE(support_distance(a.cross, b.cross, lead[0] * lead[1]), 0, tolerance);
  for (int k = 0; k < 2; k++) {
    CHECK_CLOSE(support_distance(a.sigma[k], b.sigma[k], lead[k] * lead[k]), 0, tolerance);
    CHECK_CLOSE(a.spread[k], b.spread[k], tolerance);
  }
  unicon__frame_close(ctx, frame);
  piece_close(&whole);
  piece_close(&fold);
  piece_close(&rest[0]);
  piece_close(&rest[1]);
  table_free(&t);
}

/* All rows less a fold are the other folds by themselves, also of the first features alone; in
 * float32 as well, where of regular pairs one direction alone is kept: a fold of pairs that are not
 * may be regular. */
static void folds_by_subtraction(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int s = 0; s < LABELS; s++) {
    check_fold(ctx, s, WIDE, 1e-12);
    check_fold(ctx, s, EVERYTHING, 1e-6);
  }
}

/* Many rows of few features (groups of rows with sums of their own), and features beyond a tile:
 * the plain sums, and the same bytes on any number of threads. */
static void check_large(unicon_ctx *ctx, int64_t n, int64_t p) {
  float *x = support_normals((uint64_t)n, n * p);
  unicon_rows *rows = support_rows(ctx, "x", x, n, p);
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, n, n, &pairs));
  const unicon__map map = {.in = p, .out = p};
  const unicon__source source = {.rows = rows, .count = n, .map = &map};
  const unicon__batch set = {.x = source, .y = source, .pairs = pairs};
  double *gram = support_doubles(p * p), *cross = support_doubles(p * p);
  for (int threads = 1; threads <= 3; threads++) {
    unicon__stats stats;
    unicon__ctx_set_threads(ctx, threads);
    unicon__block *frame = unicon__frame_open(ctx);
    CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &set, all_of, EVERYTHING, &stats));
    CHECK_OK(ctx, unicon__stats_add(ctx, &set, 1, &stats));
    if (threads == 1) {
      memcpy(gram, stats.gram[0], (size_t)(p * p) * sizeof *gram);
      memcpy(cross, stats.way[0].cross, (size_t)(p * p) * sizeof *cross);
    }
    assert_memory_equal(gram, stats.gram[0], (size_t)(p * p) * sizeof *gram);
    assert_memory_equal(cross, stats.way[0].cross, (size_t)(p * p) * sizeof *cross);
    assert_null(stats.way[1].cross); /* one to one: one direction tells both */
    unicon__frame_close(ctx, frame);
  }
  for (int64_t i = 0; i < p; i += 1 + p / 40)
    for (int64_t j = 0; j <= i; j += 1 + p / 50) {
      double sum = 0;
      for (int64_t k = 0; k < n; k++) sum += (double)x[k * p + i] * (double)x[k * p + j];
      /* float32 sums over 1024 rows of unit variance: random roundings of sqrt(1024) 2^-24 each,
       * and a factor of five */
      CHECK_CLOSE(gram[i * p + j] / (double)n, sum / (double)n, 1e-5);
      CHECK_CLOSE(cross[i * p + j] / (double)n, sum / (double)n, 1e-5);
      CHECK_CLOSE(cross[j * p + i] / (double)n, sum / (double)n, 1e-5);
    }
  free(gram);
  free(cross);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(rows);
  free(x);
}

static void sums_do_not_depend_on_threads(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t counts[] = {2, 1023, 1024, 1025, 9000};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) check_large(ctx, counts[c], 7);
  check_large(ctx, 40, 1);
  check_large(ctx, 1500, 300);
  check_large(ctx, 300, 1100);
}

/* What is no sum over rows is refused. */
static void what_does_not_add_is_refused(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  table one, five, labels;
  piece p, q, r;
  unicon__stats stats, other;
  static const int64_t first[1] = {0}, second[1] = {1};
  table_make(ONE_TO_ONE, &one);
  table_make(FIVE_PER_X, &five);
  table_make(LABELS, &labels);
  piece_open(ctx, ONE_TO_ONE, &one, 1, 0, no_shift, &p);
  piece_open(ctx, FIVE_PER_X, &five, 1, 0, no_shift, &q);
  piece_open(ctx, LABELS, &labels, 1, 0, no_shift, &r);
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &p.set, all_of, EVERYTHING, &stats));
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &q.set, all_of, EVERYTHING, &other));
  assert_int_equal(unicon__stats_add(ctx, &q.set, 1, &stats), UNICON_ERR_SHAPE);
  assert_int_equal(unicon__stats_add(ctx, &r.set, 1, &stats), UNICON_ERR_SHAPE);
  assert_int_equal(unicon__stats_merge(ctx, &other, 1, &stats), UNICON_ERR_SHAPE);
  CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, p.pairs, first, second, NULL, 1));
  assert_int_equal(unicon__stats_add(ctx, &p.set, 1, &stats), UNICON_ERR_UNSUPPORTED);
  CHECK_OK(ctx, unicon__stats_open(ctx, &ctx->arena, &p.set, all_of, WIDE, &stats));
  CHECK_OK(ctx, unicon__stats_add(ctx, &p.set, 1, &stats));
  assert_int_equal(unicon__stats_add(ctx, &p.set, 1, &stats), UNICON_ERR_UNSUPPORTED);
  unicon__frame_close(ctx, frame);
  piece_close(&p);
  piece_close(&q);
  piece_close(&r);
  table_free(&one);
  table_free(&five);
  table_free(&labels);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(sums_are_the_definition),
                                     SCRATCH_TEST(parts_add_up), SCRATCH_TEST(folds_by_subtraction),
                                     SCRATCH_TEST(sums_do_not_depend_on_threads),
                                     SCRATCH_TEST(what_does_not_add_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
