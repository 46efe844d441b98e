/* SPDX-License-Identifier: Apache-2.0 */
/* Retrieval metrics against an oracle that sorts all candidates of every query, ties against us. */
#include "score/retrieval.h"
#include "figures.h"
#include "support.h"

/* ---- the oracle --------------------------------------------------------------------------- */

typedef struct candidate {
  double score;
  int match;
} candidate;

static int by_score(const void *a, const void *b) {
  const candidate *left = a, *right = b;
  if (left->score != right->score) return left->score < right->score ? 1 : -1;
  return left->match - right->match; /* a wrong one of the same score comes first */
}

/* A problem as a full table: 1 match, -1 ignored, 0 neither. */
typedef struct table {
  int64_t n_x, n_y, r;
  float *zx, *zy;
  int *mark;
  unicon_pairs *pairs;
} table;

static int mark_at(const table *t, bool from_x, int64_t query, int64_t other) {
  return from_x ? t->mark[query * t->n_y + other] : t->mark[other * t->n_y + query];
}

/* Ranked list of one query; returns its length. */
static int64_t rank_list(const table *t, bool from_x, int64_t query, candidate *list) {
  const int64_t n = from_x ? t->n_y : t->n_x;
  const float *q = (from_x ? t->zx : t->zy) + query * t->r, *c = from_x ? t->zy : t->zx;
  int64_t count = 0;
  for (int64_t j = 0; j < n; j++) {
    const int mark = mark_at(t, from_x, query, j);
    if (mark < 0) continue;
    double score = 0;
    for (int64_t k = 0; k < t->r; k++) score += (double)q[k] * (double)c[j * t->r + k];
    list[count++] = (candidate){score, mark};
  }
  qsort(list, (size_t)count, sizeof *list, by_score);
  return count;
}

static void oracle_query(const candidate *list, int64_t count, double *v) {
  static const int cut[3] = {1, 5, 10};
  double matches = 0, found = 0, precision = 0, first = 0, gain = 0, ideal = 0, within[3] = {0};
  for (int64_t k = 0; k < count; k++) matches += list[k].match;
  for (int64_t k = 0; k < count; k++) {
    if (!list[k].match) continue;
    const double rank = (double)k + 1;
    found++;
    if (first == 0) first = rank;
    precision += found / rank;
    if (k < 10) gain += 1 / log2(rank + 1);
    for (int c = 0; c < 3; c++) within[c] += k < cut[c];
  }
  for (int k = 1; k <= 10 && k <= (int)matches; k++) ideal += 1 / log2(k + 1.0);
  for (int c = 0; c < 3; c++) {
    v[UNICON__HIT_1 + c] = within[c] > 0;
    v[UNICON__RECALL_1 + c] = within[c] / matches;
  }
  v[UNICON__MRR] = 1 / first;
  v[UNICON__MEAN_PRECISION] = precision / matches;
  v[UNICON__NDCG_10] = gain / ideal;
  v[UNICON__MEDIAN_RANK] = v[UNICON__MEAN_RANK] = first;
}

static int by_value(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Chance of a hit among the first k of n in random order, m of them right: 1 - C(n-m,k)/C(n,k). */
static double chance(double n, double m, double k) {
  if (n - m < k) return 1;
  return 1 - exp(lgamma(n - m + 1) - lgamma(n - m - k + 1) - lgamma(n + 1) + lgamma(n - k + 1));
}

static void oracle(const table *t, bool from_x, unicon__metrics *out, double *first_rank) {
  const int64_t queries = from_x ? t->n_x : t->n_y, n = from_x ? t->n_y : t->n_x;
  candidate *list = calloc((size_t)n, sizeof *list);
  double *ranks = support_doubles(queries);
  memset(out, 0, sizeof *out);
  out->candidates = n;
  for (int64_t i = 0; i < queries; i++) {
    const int64_t count = rank_list(t, from_x, i, list);
    double v[UNICON__METRIC_COUNT], matches = 0;
    for (int64_t k = 0; k < count; k++) matches += list[k].match;
    first_rank[i] = 0;
    if (matches == 0) continue;
    oracle_query(list, count, v);
    first_rank[i] = v[UNICON__MEAN_RANK];
    ranks[out->queries++] = v[UNICON__MEAN_RANK];
    for (int m = 0; m < UNICON__METRIC_COUNT; m++) out->value[m] += v[m];
    for (int c = 0; c < 3; c++)
      out->chance[UNICON__HIT_1 + c] += chance((double)count, matches, c == 0 ? 1 : 5 * c);
  }
  const int64_t q = out->queries;
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) out->value[m] /= (double)q;
  for (int c = 0; c < 3; c++) out->chance[UNICON__HIT_1 + c] /= (double)q;
  qsort(ranks, (size_t)q, sizeof *ranks, by_value);
  out->value[UNICON__MEDIAN_RANK] = q % 2 ? ranks[q / 2] : (ranks[q / 2 - 1] + ranks[q / 2]) / 2;
  free(list);
  free(ranks);
}

/* One direction of the table, ranked by the library. */
static unicon_status metrics_of(unicon_ctx *ctx, const table *t, bool from_x, double *rank,
                                unicon__metrics *out) {
  const unicon__retrieval of = {.query = from_x ? t->zx : t->zy,
                                .candidate = from_x ? t->zy : t->zx,
                                .width = t->r,
                                .pairs = t->pairs,
                                .from_x = from_x,
                                .rank = rank};
  return unicon__retrieval_of(ctx, &of, out);
}

static unicon_status intervals_of(unicon_ctx *ctx, const table *t, bool intervals, uint64_t seed,
                                  unicon__metrics *out) {
  const unicon__retrieval of = {.query = t->zx,
                                .candidate = t->zy,
                                .width = t->r,
                                .pairs = t->pairs,
                                .from_x = true,
                                .intervals = intervals,
                                .seed = seed};
  return unicon__retrieval_of(ctx, &of, out);
}

/* ---- problems ----------------------------------------------------------------------------- */

enum { ONE_TO_ONE, SPARSE, LABELS, IGNORED, ONE_SET };

static void unit(float *z, int64_t n, int64_t r) {
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < r; k++) sum += (double)z[i * r + k] * (double)z[i * r + k];
    for (int64_t k = 0; k < r; k++) z[i * r + k] = (float)((double)z[i * r + k] / sqrt(sum));
  }
}

/* With `ties`, entries are +-1/2 in 4 dimensions: unit length and scores that are exact multiples
 * of 1/4 in any order of summation. */
static void make_vectors(table *t, uint64_t seed, bool ties) {
  t->zx = support_normals(seed, t->n_x * t->r);
  t->zy = support_normals(seed + 1, t->n_y * t->r);
  for (int64_t k = 0; ties && k < t->n_x * t->r; k++) t->zx[k] = t->zx[k] < 0 ? -0.5f : 0.5f;
  for (int64_t k = 0; ties && k < t->n_y * t->r; k++) t->zy[k] = t->zy[k] < 0 ? -0.5f : 0.5f;
  if (ties) return;
  const int64_t n = t->n_x < t->n_y ? t->n_x : t->n_y; /* some signal */
  for (int64_t k = 0; k < n * t->r; k++) t->zy[k] += 1.5f * t->zx[k];
  for (int64_t i = 0; i + 4 < n; i += 5) /* the same candidate twice, on both sides */
    for (int64_t k = 0; k < t->r; k++) {
      t->zy[(i + 3) * t->r + k] = t->zy[i * t->r + k];
      t->zx[(i + 4) * t->r + k] = t->zx[(i + 1) * t->r + k];
    }
  unit(t->zx, t->n_x, t->r);
  unit(t->zy, t->n_y, t->r);
}

static void make_labels(unicon_ctx *ctx, table *t, uint64_t *state) {
  int64_t *label_x = calloc((size_t)t->n_x, sizeof *label_x);
  int64_t *label_y = calloc((size_t)t->n_y, sizeof *label_y);
  for (int64_t i = 0; i < t->n_x; i++) label_x[i] = (int64_t)(9 * support_uniform(state));
  for (int64_t j = 0; j < t->n_y; j++) label_y[j] = 1 + (int64_t)(9 * support_uniform(state));
  for (int64_t k = 0; k < t->n_x * t->n_y; k++)
    t->mark[k] = label_x[k / t->n_y] == label_y[k % t->n_y];
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label_x, t->n_x, label_y, t->n_y, &t->pairs));
  free(label_x);
  free(label_y);
}

/* One set: both sides are the same rows, and none finds itself. */
static void make_one_set(unicon_ctx *ctx, table *t, uint64_t *state) {
  int64_t *label = calloc((size_t)t->n_x, sizeof *label);
  for (int64_t i = 0; i < t->n_x; i++) label[i] = (int64_t)(9 * support_uniform(state));
  for (int64_t k = 0; k < t->n_x * t->n_y; k++)
    t->mark[k] = k / t->n_y == k % t->n_y ? -1 : label[k / t->n_y] == label[k % t->n_y];
  memcpy(t->zy, t->zx, (size_t)(t->n_x * t->r) * sizeof *t->zy);
  CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, t->n_x, &t->pairs));
  free(label);
}

static void make_list(unicon_ctx *ctx, table *t, int kind, uint64_t *state) {
  int64_t *list = calloc((size_t)(4 * t->n_x * t->n_y), sizeof *list), counts[2] = {0, 0};
  const int64_t size = t->n_x * t->n_y;
  for (int64_t k = 0; k < size; k++) {
    const int64_t i = k / t->n_y, j = k % t->n_y;
    /* Every seventh row and column has nothing; others about three matches. */
    const bool match = i % 7 && j % 7 && support_uniform(state) < 3.0 / (double)t->n_y;
    const bool ignored = kind == IGNORED && support_uniform(state) < 0.1;
    t->mark[k] = match ? 1 : ignored ? -1 : 0;
    if (!t->mark[k]) continue;
    int64_t *to = list + (match ? 0 : 2 * size) + 2 * counts[!match]++;
    to[0] = i;
    to[1] = j;
  }
  int64_t *x = calloc((size_t)size, sizeof *x), *y = calloc((size_t)size, sizeof *y);
  for (int64_t k = 0; k < counts[0]; k++) x[k] = list[2 * k], y[k] = list[2 * k + 1];
  CHECK_OK(ctx, unicon_pairs_list(ctx, t->n_x, t->n_y, x, y, NULL, counts[0], &t->pairs));
  for (int64_t k = 0; k < counts[1]; k++)
    x[k] = list[2 * size + 2 * k], y[k] = list[2 * size + 2 * k + 1];
  if (kind == IGNORED)
    CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, t->pairs, x, y, NULL, counts[1]));
  free(list);
  free(x);
  free(y);
}

static void make_table(unicon_ctx *ctx, uint64_t seed, int kind, int64_t n_x, int64_t n_y,
                       int64_t r, bool ties, table *t) {
  uint64_t state = seed + 1000;
  *t = (table){.n_x = n_x, .n_y = n_y, .r = r};
  t->mark = calloc((size_t)(n_x * n_y), sizeof *t->mark);
  make_vectors(t, seed, ties);
  if (kind == LABELS) {
    make_labels(ctx, t, &state);
  } else if (kind == ONE_SET) {
    make_one_set(ctx, t, &state);
  } else if (kind == ONE_TO_ONE) {
    for (int64_t i = 0; i < n_x; i++) t->mark[i * n_y + i] = 1;
    CHECK_OK(ctx, unicon_pairs_identity(ctx, n_x, n_y, &t->pairs));
  } else {
    make_list(ctx, t, kind, &state);
  }
}

static void free_table(table *t) {
  unicon_pairs_destroy(t->pairs);
  free(t->zx);
  free(t->zy);
  free(t->mark);
}

/* ---- tests -------------------------------------------------------------------------------- */

/* Ranks are whole numbers, so both sides add the same terms and differ by rounding alone. */
static void check_table(unicon_ctx *ctx, const table *t) {
  for (int from_x = 0; from_x < 2; from_x++) {
    const int64_t queries = from_x ? t->n_x : t->n_y;
    double *expected = support_doubles(queries), *rank = support_doubles(queries);
    unicon__metrics want, got, again;
    oracle(t, from_x, &want, expected);
    memset(&got, 0, sizeof got);
    unicon__ctx_set_threads(ctx, 1);
    CHECK_OK(ctx, metrics_of(ctx, t, from_x, rank, &got));
    assert_int_equal(got.queries, want.queries);
    assert_int_equal(got.candidates, want.candidates);
    for (int64_t i = 0; i < queries; i++) CHECK_CLOSE(rank[i], expected[i], 0);
    for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
      CHECK_CLOSE(got.value[m], want.value[m], 1e-12 * (1 + fabs(want.value[m])));
      assert_true(isnan(got.low[m]) && isnan(got.high[m]));
      if (m <= UNICON__HIT_10)
        CHECK_CLOSE(got.chance[m], want.chance[m], 1e-9); /* lgamma of the oracle */
      else
        assert_true(isnan(got.chance[m]));
    }
    unicon__ctx_set_threads(ctx, 3);
    memset(&again, 0, sizeof again);
    CHECK_OK(ctx, metrics_of(ctx, t, from_x, NULL, &again));
    assert_memory_equal(again.value, got.value, sizeof got.value);
    free(expected);
    free(rank);
  }
}

static void check_kind(unicon_ctx *ctx, int kind) {
  static const int64_t sizes[][3] = {{8, 8, 3}, {60, 60, 5}, {130, 130, 17}, {50, 50, 40}};
  for (uint64_t seed = 0; seed < 4; seed++) {
    table t;
    const bool square = kind == ONE_TO_ONE || kind == ONE_SET;
    make_table(ctx, seed, kind, sizes[seed][0] + (square ? 0 : 25), sizes[seed][1], sizes[seed][2],
               false, &t);
    check_table(ctx, &t);
    free_table(&t);
    make_table(ctx, seed, kind, 70, square ? 70 : 45, 4, true, &t);
    check_table(ctx, &t);
    free_table(&t);
  }
}

static void one_to_one_matches_the_oracle(void **state) {
  check_kind(((scratch *)*state)->ctx, ONE_TO_ONE);
}

static void many_to_many_matches_the_oracle(void **state) {
  check_kind(((scratch *)*state)->ctx, SPARSE);
}

static void labels_match_the_oracle(void **state) {
  check_kind(((scratch *)*state)->ctx, LABELS);
}

static void ignored_pairs_are_no_candidates(void **state) {
  check_kind(((scratch *)*state)->ctx, IGNORED);
}

/* Nor is a row its own hub: of n <= 11 rows every other one is among the first ten. */
static void no_row_finds_itself(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 11 };
  float *z = support_normals(5, ROWS * 3);
  const int64_t label[ROWS] = {0, 1, 0, 1, 0, 1, 2, 2, 2, 3, 3};
  int64_t found[2][ROWS], *both[2] = {found[0], found[1]};
  unicon_pairs *pairs = NULL;
  check_kind(ctx, ONE_SET);
  unicon_rows *rows = support_rows(ctx, "z", z, ROWS, 3);
  CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, ROWS, &pairs));
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  CHECK_OK(ctx, unicon_hubs(ctx, &view, &view, pairs, both, NULL));
  for (int i = 0; i < ROWS; i++) assert_true(found[0][i] == ROWS - 1 && found[1][i] == ROWS - 1);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(rows);
  free(z);
}

/* More candidates than a tile has columns, more queries than a block has rows. */
static void tiles_do_not_show(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  table t;
  make_table(ctx, 9, SPARSE, 300, 2100, 6, false, &t);
  check_table(ctx, &t);
  free_table(&t);
  make_table(ctx, 9, LABELS, 150, 1300, 4, true, &t);
  check_table(ctx, &t);
  free_table(&t);
}

/* How often each row of y is among the first ten of a query, of equals the first; and the mean
 * margin of the queries that have a match. */
static double naive_found(const table *t, int64_t *found) {
  double *score = support_doubles(t->n_y), margin = 0, scored = 0;
  memset(found, 0, (size_t)t->n_y * sizeof *found);
  for (int64_t i = 0; i < t->n_x; i++) {
    double match = -INFINITY, top = -INFINITY, sum = 0, others = 0;
    for (int64_t j = 0; j < t->n_y; j++) {
      score[j] = 0;
      for (int64_t k = 0; k < t->r; k++)
        score[j] += (double)t->zx[i * t->r + k] * (double)t->zy[j * t->r + k];
      const int mark = mark_at(t, true, i, j);
      if (mark > 0) match = fmax(match, score[j]);
      if (mark != 0) continue;
      top = fmax(top, score[j]);
      sum += score[j];
      others++;
    }
    for (int n = 0; n < UNICON__HUB_TOP; n++) {
      int64_t best = 0;
      for (int64_t j = 1; j < t->n_y; j++)
        if (score[j] > score[best]) best = j;
      found[best]++;
      score[best] = -INFINITY;
    }
    if (match == -INFINITY) continue;
    const double gap = match - sum / others;
    margin += gap > 0 ? fmax((match - top) / gap, -1) : -1;
    scored++;
  }
  free(score);
  return margin / scored;
}

/* Few queries and many candidates: these are shared among the threads, and what they saw is put
 * together. */
static void few_queries_share_the_candidates(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N_Y = 9 * 1024 + 1 }; /* whole tiles, and one more */
  int64_t *want = calloc(N_Y, sizeof *want), *found = calloc(N_Y, sizeof *found);
  double margin, first = 0;
  unicon__metrics m;
  table t;
  for (int k = 0; k < 2 * (IGNORED - SPARSE + 1); k++) {
    const bool coarse = k % 2 == 0; /* with many ties, or none */
    make_table(ctx, 21, SPARSE + k / 2, 14, N_Y, 4, coarse, &t);
    check_table(ctx, &t);
    const double right = naive_found(&t, want);
    for (int threads = 1; threads <= 5; threads += 2) {
      const unicon__retrieval of = {.query = t.zx,
                                    .candidate = t.zy,
                                    .width = t.r,
                                    .pairs = t.pairs,
                                    .from_x = true,
                                    .found = found,
                                    .margin = &margin};
      unicon__ctx_set_threads(ctx, threads);
      CHECK_OK(ctx, unicon__retrieval_of(ctx, &of, &m));
      assert_memory_equal(found, want, N_Y * sizeof *found);
      CHECK_CLOSE(margin, right, coarse ? 1e-12 : 1e-6); /* coarse: multiples of 1/4 */
      if (threads == 1) first = margin;
      assert_true(margin == first);
    }
    free_table(&t);
  }
  free(found);
  free(want);
}

/* Rows of one column more: 1 in queries, a shift of its own in candidates. */
static float *widened(const float *z, int64_t n, int64_t r, bool query) {
  float *out = support_floats(n * (r + 1));
  for (int64_t i = 0; i < n; i++) {
    memcpy(out + i * (r + 1), z + i * r, (size_t)r * sizeof *z);
    out[i * (r + 1) + r] = query ? 1 : (float)(i % 7) / 16;
  }
  return out;
}

/* Balanced and plain figures of one walk are those of two, ties included, whatever the cells. */
static void both_scales_are_one_walk(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t shapes[2][2] = {{14, 9300}, {150, 1500}};
  for (int kind = ONE_TO_ONE; kind <= ONE_SET; kind++) {
    for (int k = 0; k < 2; k++) {
      const int64_t n_x = kind == ONE_TO_ONE || kind == ONE_SET ? 300 : shapes[k][0];
      const int64_t n_y = n_x == 300 ? 300 : shapes[k][1];
      int64_t *found[4];
      unicon__metrics all, plain, want_all, want_plain;
      table t;
      for (int f = 0; f < 4; f++) found[f] = calloc((size_t)n_y, sizeof *found[f]);
      make_table(ctx, 31, kind, n_x, n_y, 4, true, &t);
      float *asked = widened(t.zx, n_x, 4, true), *offered = widened(t.zy, n_y, 4, false);
      unicon__retrieval of = {.query = t.zx,
                              .candidate = t.zy,
                              .width = 4,
                              .pairs = t.pairs,
                              .from_x = true,
                              .found = found[0]};
      CHECK_OK(ctx, unicon__retrieval_of(ctx, &of, &want_plain));
      of.query = asked, of.candidate = offered, of.width = 5, of.found = found[1];
      CHECK_OK(ctx, unicon__retrieval_of(ctx, &of, &want_all));
      assert_memory_not_equal(want_all.value, want_plain.value, sizeof all.value);
      of.found = found[2], of.plain = &plain, of.plain_found = found[3];
      CHECK_OK(ctx, unicon__retrieval_of(ctx, &of, &all));
      assert_memory_equal(all.value, want_all.value, sizeof all.value);
      assert_memory_equal(plain.value, want_plain.value, sizeof all.value);
      assert_memory_equal(found[2], found[1], (size_t)n_y * sizeof *found[0]);
      assert_memory_equal(found[3], found[0], (size_t)n_y * sizeof *found[0]);
      for (int f = 0; f < 4; f++) free(found[f]);
      free(asked), free(offered);
      free_table(&t);
    }
  }
}

/* Large classes: blocks of fewer queries, in memory that does not grow with them. */
static void large_classes_take_small_blocks(void **state) {
  (void)state; /* a context of its own: its peak is looked at */
  enum { ROWS = 9000 };
  unicon_ctx *ctx = NULL;
  unicon_pairs *pairs = NULL;
  figures m[2];
  float *z = support_normals(3, ROWS * 2);
  int64_t *label = calloc(ROWS, sizeof *label);
  for (int64_t i = 0; i < ROWS; i++) {
    label[i] = i % 2;
    z[2 * i] += i % 2 ? 9 : -9;
  }
  CHECK_OK(ctx, unicon_ctx_create(&ctx));
  unicon_rows *rows = support_rows(ctx, "z", z, ROWS, 2);
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, ROWS, label, ROWS, &pairs));
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  CHECK_OK(ctx, figures_evaluate(ctx, &view, &view, pairs, NULL, &m[0], &m[1]));
  CHECK_CLOSE(m[0].value[UNICON__MEAN_PRECISION], 1, 1e-12); /* two heaps far from each other */
  CHECK_CLOSE(m[1].value[UNICON__HIT_1], 1, 1e-12);
  /* 2^18 places of 16 bytes for each thread; with blocks of 128 queries it would be 9 MB each */
  assert_true(unicon_ctx_memory_peak(ctx) < (4u << 20) * (unsigned)ctx->threads + (6u << 20));
  unicon_pairs_destroy(pairs);
  unicon_rows_close(rows);
  unicon_ctx_destroy(ctx);
  free(label);
  free(z);
}

/* Cancelled between blocks, not only before the first. */
static int cancel_at_third(void *user, const char *phase, double done, double left) {
  (void)left;
  int *calls = user;
  assert_true(done >= 0 && done <= 1);
  return strcmp(phase, "metrics") == 0 && ++*calls == 3;
}

static void a_long_evaluation_can_be_cancelled(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 12000 };
  figures m[2];
  int calls = 0;
  float *z = support_normals(3, ROWS);
  unicon_rows *rows = support_rows(ctx, "z", z, ROWS, 1);
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1"));
  CHECK_OK(ctx, unicon_ctx_set(ctx, "device", "cpu")); /* others have as many blocks as they like */
  unicon_ctx_set_progress(ctx, cancel_at_third, &calls);
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  assert_int_equal(figures_evaluate(ctx, &view, &view, NULL, NULL, &m[0], &m[1]),
                   UNICON_ERR_CANCELLED);
  assert_int_equal(calls, 3);
  unicon_rows_close(rows);
  free(z);
}

static int note_first(void *user, const char *phase, double done, double left) {
  double *first = user;
  (void)left;
  if (strcmp(phase, "metrics") == 0 && *first < 0) *first = done;
  return 0;
}

/* Looking whether the rows are those of the fit is a small share of the work: the ranks, most of it,
 * begin below a half. */
static void progress_has_room_for_the_ranks(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  figures m[2];
  log_book book = {0};
  double first = -1;
  problem_make(ctx, 5, 600, 20, 15, 5, 0.3, &p);
  unicon_options *fast = support_options(ctx, "preset", "fast", NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, fast);
  unicon_ctx_set_log(ctx, support_log, &book);
  unicon_ctx_set_progress(ctx, note_first, &first);
  ctx->progress_interval = 0;
  const unicon_view x = UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X),
                    y = UNICON_VIEW(.rows = p.rows_y, .model = model, .side = UNICON_Y);
  CHECK_OK(ctx, figures_evaluate(ctx, &x, &y, NULL, NULL, &m[0], &m[1]));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 1); /* the rows are those */
  assert_true(first >= 0 && first < 0.5);
  unicon_ctx_set_progress(ctx, NULL, NULL);
  unicon_ctx_set_log(ctx, NULL, NULL);
  unicon_model_destroy(model);
  unicon_options_destroy(fast);
  problem_free(&p);
}

/* The interval holds the mean, repeats by seed, and has the edges of the normal approximation,
 * p +- 1.96 sigma. The 25th of 1000 resamples scatters by .085 sigma, and means of 400 hits come in
 * steps of about .1 sigma: .4 sigma is four of both. */
static void intervals_are_those_of_the_mean(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  table t;
  unicon__metrics a, b, c, d;
  make_table(ctx, 5, ONE_TO_ONE, 400, 400, 5, false, &t);
  CHECK_OK(ctx, intervals_of(ctx, &t, true, 3, &a));
  unicon__ctx_set_threads(ctx, 2);
  CHECK_OK(ctx, intervals_of(ctx, &t, true, 3, &b));
  CHECK_OK(ctx, intervals_of(ctx, &t, true, 4, &c));
  CHECK_OK(ctx, intervals_of(ctx, &t, false, 4, &d));
  assert_memory_equal(a.low, b.low, sizeof a.low);
  assert_memory_equal(a.high, b.high, sizeof a.high);
  assert_memory_not_equal(a.low, c.low, sizeof a.low);
  assert_memory_equal(a.value, d.value, sizeof a.value);
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
    assert_true(a.low[m] <= a.value[m] && a.value[m] <= a.high[m]);
    assert_true(a.low[m] < a.high[m]);
  }
  for (int m = UNICON__HIT_1; m <= UNICON__HIT_10; m++) {
    const double p = a.value[m], sigma = sqrt(p * (1 - p) / 400);
    assert_true(p > 0.05 && p < 0.95);
    CHECK_CLOSE(a.low[m], p - 1.96 * sigma, 0.4 * sigma);
    CHECK_CLOSE(a.high[m], p + 1.96 * sigma, 0.4 * sigma);
    CHECK_CLOSE(a.chance[m],
                m == UNICON__HIT_1   ? 0.0025
                : m == UNICON__HIT_5 ? 0.0125
                                     : 0.025,
                1e-12);
  }
  free_table(&t);
}

/* The public call: raw rows of a shared space, options, both directions, one row. */
static void evaluate_is_both_directions(void **state) {
  scratch *s = *state;
  table t;
  unicon__metrics want[2];
  figures to_y, to_x;
  double *rank = support_doubles(100);
  make_table(s->ctx, 6, SPARSE, 90, 60, 7, false, &t);
  for (int64_t k = 0; k < 90 * 7; k++) t.zx[k] *= 4; /* a power of two: the same after scaling */
  unicon_rows *x = support_rows(s->ctx, "x", t.zx, 90, 7),
              *y = support_rows(s->ctx, "y", t.zy, 60, 7);
  const unicon_view vx = UNICON_VIEW(.rows = x, .side = UNICON_X),
                    vy = UNICON_VIEW(.rows = y, .side = UNICON_Y);
  oracle(&t, true, &want[0], rank);
  oracle(&t, false, &want[1], rank);
  unicon_options *options = support_options(s->ctx, "ci", "on", "seed", "5", NULL);
  CHECK_OK(s->ctx, figures_evaluate(s->ctx, &vx, &vy, t.pairs, options, &to_y, &to_x));
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
    CHECK_CLOSE(to_y.value[m], want[0].value[m], 1e-10);
    CHECK_CLOSE(to_x.value[m], want[1].value[m], 1e-10);
    assert_true(to_y.low[m] <= to_y.value[m] && to_x.high[m] >= to_x.value[m]);
  }
  scratch_failed(s, figures_evaluate(s->ctx, &vx, &vx, t.pairs, NULL, &to_y, &to_x),
                 UNICON_ERR_SHAPE, "90 by 60", "90 and 90");
  scratch_failed(s, figures_evaluate(s->ctx, &vx, &vy, NULL, NULL, &to_y, &to_x), UNICON_ERR_PAIRS,
                 "90", "60");
  unicon_rows *one = support_rows(s->ctx, "one", t.zy, 1, 7);
  const unicon_view single = UNICON_VIEW(.rows = one, .side = UNICON_X);
  CHECK_OK(s->ctx, figures_evaluate(s->ctx, &single, &single, NULL, NULL, &to_y, &to_x));
  assert_true(to_y.value[UNICON__HIT_1] == 1 && to_x.value[UNICON__MEAN_RANK] == 1);
  assert_true(to_y.chance[UNICON__HIT_10] == 1);
  unicon_rows_close(one);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_options_destroy(options);
  free_table(&t);
  free(rank);
}

/* Ranks of the oracle, either direction alone or both. */
static void ranks_match_the_oracle(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  table t;
  unicon__metrics unused;
  make_table(ctx, 5, SPARSE, 80, 60, 5, false, &t);
  unicon_rows *x = support_rows(ctx, "x", t.zx, 80, 5), *y = support_rows(ctx, "y", t.zy, 60, 5);
  const unicon_view vx = UNICON_VIEW(.rows = x, .side = UNICON_X),
                    vy = UNICON_VIEW(.rows = y, .side = UNICON_Y);
  double wanted[2][80];
  int64_t to_y[80], to_x[60], alone[60];
  oracle(&t, true, &unused, wanted[0]);
  oracle(&t, false, &unused, wanted[1]);
  CHECK_OK(ctx, unicon_ranks(ctx, &vx, &vy, t.pairs, to_y, to_x));
  for (int i = 0; i < 80; i++) CHECK_CLOSE(to_y[i], wanted[0][i], 0);
  for (int j = 0; j < 60; j++) CHECK_CLOSE(to_x[j], wanted[1][j], 0);
  CHECK_OK(ctx, unicon_ranks(ctx, &vx, &vy, t.pairs, NULL, alone));
  assert_memory_equal(alone, to_x, sizeof to_x);
  scratch_failed(*state, unicon_ranks(ctx, NULL, &vy, t.pairs, to_y, NULL), UNICON_ERR_ARGUMENT,
                 "NULL", "UNICON_VIEW");
  unicon_rows_close(x);
  unicon_rows_close(y);
  free_table(&t);
}

static void views_are_needed(void **state) {
  scratch *s = *state;
  problem p;
  figures to_y, to_x;
  problem_make(s->ctx, 1, 4, 3, 3, 2, 0.1, &p);
  const unicon_view x = UNICON_VIEW(.rows = p.rows_x, .side = UNICON_X),
                    empty = UNICON_VIEW(.rows = NULL, .side = UNICON_Y);
  scratch_failed(s, figures_evaluate(s->ctx, &x, NULL, NULL, NULL, &to_y, &to_x),
                 UNICON_ERR_ARGUMENT, "NULL", "UNICON_VIEW");
  scratch_failed(s, figures_evaluate(s->ctx, &x, &empty, NULL, NULL, &to_y, &to_x),
                 UNICON_ERR_ARGUMENT, "a view needs rows", "");
  problem_free(&p);
}

/* Rows that cannot be used are left out with their pairs, as if they had never been there. */
static void dropped_rows_leave_no_trace(void **state) {
  scratch *s = *state;
  enum { N_X = 20, N_Y = 15, R = 4, BAD_X = 3, BAD_Y = 9 };
  table t;
  figures got[2], want[2];
  make_table(s->ctx, 8, IGNORED, N_X, N_Y, R, false, &t);
  int64_t keep_x[N_X - 1], keep_y[N_Y - 1];
  float zx[(N_X - 1) * R], zy[(N_Y - 1) * R];
  for (int64_t i = 0; i < N_X - 1; i++) {
    keep_x[i] = i + (i >= BAD_X);
    memcpy(zx + i * R, t.zx + keep_x[i] * R, R * sizeof *zx);
  }
  for (int64_t j = 0; j < N_Y - 1; j++) {
    keep_y[j] = j + (j >= BAD_Y);
    memcpy(zy + j * R, t.zy + keep_y[j] * R, R * sizeof *zy);
  }
  unicon_pairs *among = NULL;
  CHECK_OK(s->ctx, unicon__pairs_subset(s->ctx, t.pairs, keep_x, N_X - 1, keep_y, N_Y - 1, &among));
  unicon_rows *x = support_rows(s->ctx, "x", t.zx, N_X, R),
              *y = support_rows(s->ctx, "y", t.zy, N_Y, R),
              *left_x = support_rows(s->ctx, "x", zx, N_X - 1, R),
              *left_y = support_rows(s->ctx, "y", zy, N_Y - 1, R);
  const unicon_view vx = UNICON_VIEW(.rows = x, .side = UNICON_X),
                    vy = UNICON_VIEW(.rows = y, .side = UNICON_Y);
  for (int k = 0; k < R; k++) t.zx[BAD_X * R + k] = 0;
  t.zy[BAD_Y * R + 1] = NAN;
  scratch_failed(s, figures_evaluate(s->ctx, &vx, &vy, t.pairs, NULL, &got[0], &got[1]),
                 UNICON_ERR_DATA, "row 3 is all zero", "x");
  unicon_options *drop = support_options(s->ctx, "bad_rows", "drop", NULL);
  CHECK_OK(s->ctx, figures_evaluate(s->ctx, &vx, &vy, t.pairs, drop, &got[0], &got[1]));
  CHECK_OK(s->ctx, figures_evaluate(s->ctx, &UNICON_VIEW(.rows = left_x, .side = UNICON_X),
                                    &UNICON_VIEW(.rows = left_y, .side = UNICON_Y), among, NULL,
                                    &want[0], &want[1]));
  for (int d = 0; d < 2; d++) {
    assert_int_equal(got[d].queries, want[d].queries);
    assert_int_equal(got[d].candidates, want[d].candidates);
    assert_int_equal(got[d].pairs, unicon_pairs_count(among));
    assert_int_equal(want[d].pairs, unicon_pairs_count(among));
    assert_memory_equal(got[d].value, want[d].value, sizeof got[d].value);
  }
  assert_int_equal(got[0].candidates, N_Y - 1);
  scratch_failed(s, figures_evaluate(s->ctx, &vx, &vx, t.pairs, drop, &got[0], &got[1]),
                 UNICON_ERR_SHAPE, "20 by 15", "20 and 20");
  for (int k = 0; k < N_X * R; k++) t.zx[k] = 0;
  scratch_failed(s, figures_evaluate(s->ctx, &vx, &vy, t.pairs, drop, &got[0], &got[1]),
                 UNICON_ERR_DATA, "x: none of its 20 rows", "zero");
  unicon_options_destroy(drop);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_rows_close(left_x);
  unicon_rows_close(left_y);
  unicon_pairs_destroy(among);
  free_table(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(one_to_one_matches_the_oracle),
      SCRATCH_TEST(many_to_many_matches_the_oracle),
      SCRATCH_TEST(labels_match_the_oracle),
      SCRATCH_TEST(no_row_finds_itself),
      SCRATCH_TEST(ignored_pairs_are_no_candidates),
      SCRATCH_TEST(tiles_do_not_show),
      SCRATCH_TEST(few_queries_share_the_candidates),
      SCRATCH_TEST(both_scales_are_one_walk),
      SCRATCH_TEST(large_classes_take_small_blocks),
      SCRATCH_TEST(a_long_evaluation_can_be_cancelled),
      SCRATCH_TEST(progress_has_room_for_the_ranks),
      SCRATCH_TEST(intervals_are_those_of_the_mean),
      SCRATCH_TEST(evaluate_is_both_directions),
      SCRATCH_TEST(ranks_match_the_oracle),
      SCRATCH_TEST(views_are_needed),
      SCRATCH_TEST(dropped_rows_leave_no_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
