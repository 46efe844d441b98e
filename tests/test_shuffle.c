/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of unicon_check: grades of pairs, shuffles of blocks, the permutation test. */
#include "use/shuffle.h"
#include "use/suspect.h"
#include "support.h"

/* ---- grades ------------------------------------------------------------------------------- */

enum { GX = 30, GY = 45, GR = 5 };

/* Pairs and ignored pairs of the test, by arithmetic. */
static bool paired(int64_t i, int64_t j) {
  return i != 4 && (i * 7 + j * 3) % 11 == 0;
}

static bool ignored(int64_t i, int64_t j) {
  return !paired(i, j) && (i + j) % 5 == 0;
}

/* Share of the rows that are neither partner nor ignored and lie farther than `cosine`. */
static double oracle_share(const float *zx, const float *zy, bool from_x, int64_t query,
                           double cosine) {
  double below = 0, all = 0;
  for (int64_t k = 0; k < (from_x ? GY : GX); k++) {
    const int64_t i = from_x ? query : k, j = from_x ? k : query;
    if (paired(i, j) || ignored(i, j)) continue;
    below += support_dot(zx + i * GR, zy + j * GR, GR) < cosine;
    all++;
  }
  return below / all;
}

static unicon_pairs *graded_pairs(unicon_ctx *ctx, int64_t *x, int64_t *y, int64_t *count) {
  int64_t other_x[GX * GY], other_y[GX * GY], others = 0;
  unicon_pairs *pairs = NULL;
  *count = 0;
  for (int64_t k = 0; k < GX * GY; k++) {
    const int64_t i = k / GY, j = k % GY;
    if (paired(i, j)) x[*count] = i, y[(*count)++] = j;
    if (ignored(i, j)) other_x[others] = i, other_y[others++] = j;
  }
  CHECK_OK(ctx, unicon_pairs_list(ctx, GX, GY, x, y, NULL, *count, &pairs));
  CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, pairs, other_x, other_y, NULL, others));
  return pairs;
}

static void grades_count_farther_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  float *zx = support_unit_rows(1, GX, GR), *zy = support_unit_rows(2, GY, GR);
  int64_t x[GX * GY], y[GX * GY], count;
  unicon_pairs *pairs = graded_pairs(ctx, x, y, &count);
  const unicon__batch set = {.x = {.count = GX}, .y = {.count = GY}, .pairs = pairs};
  unicon_suspect entry[GX * GY];
  unicon__grades grades = {entry, 0, GX * GY};
  CHECK_OK(ctx, unicon__grade(ctx, &set, zx, zy, GR, 3, &grades));
  assert_int_equal(grades.count, count);
  assert_int_equal(unicon__grade_count(pairs), count);
  for (int64_t k = 0; k < count; k++) {
    const double cosine = support_dot(zx + x[k] * GR, zy + y[k] * GR, GR);
    const double wanted = oracle_share(zx, zy, true, x[k], cosine) / 2 +
                          oracle_share(zx, zy, false, y[k], cosine) / 2;
    assert_int_equal(entry[k].x, x[k]);
    assert_int_equal(entry[k].y, y[k]);
    CHECK_CLOSE(entry[k].cosine, cosine, 1e-6);
    CHECK_CLOSE(entry[k].closer, wanted, 1e-12);
  }
  unicon_pairs_destroy(pairs);
  free(zx);
  free(zy);
  unicon__frame_close(ctx, frame);
}

/* ---- shuffles ----------------------------------------------------------------------------- */

/* A shuffle moves every row that has a partner, blocks as a whole, and no other row. */
static void a_shuffle_keeps_blocks(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  int64_t x[60], y[60], order[30], out[60], seen[61] = {0};
  unicon_pairs *pairs = NULL;
  unicon__blocks blocks;
  unicon__source moved;
  for (int k = 0; k < 60; k++) {
    x[k] = k % 30 + (k >= 30 ? 31 : 0); /* row 30 has no partner; rows k and k + 31 share one */
    y[k] = k % 30;
  }
  CHECK_OK(ctx, unicon_pairs_list(ctx, 61, 30, x, y, NULL, 60, &pairs));
  const unicon__batch set = {.x = {.count = 61}, .y = {.count = 30}, .pairs = pairs};
  CHECK_OK(ctx, unicon__blocks_open(ctx, &set, NULL, true, &blocks));
  assert_false(blocks.single);
  assert_int_equal(blocks.count, 30);
  unicon__blocks_shuffle(&blocks, 7, 0, order, out);
  for (int p = 0; p < 60; p += 2) {
    assert_int_equal(out[p] + 31, out[p + 1]);
    assert_int_equal(blocks.row[p] + 31, blocks.row[p + 1]);
    seen[out[p]]++;
    seen[out[p + 1]]++;
  }
  for (int i = 0; i < 61; i++) assert_int_equal(seen[i], i != 30);
  CHECK_OK(ctx, unicon__source_shuffle(ctx, &set.x, &blocks, 7, 0, &moved));
  assert_int_equal(moved.index[30], 30);
  for (int p = 0; p < 60; p++) assert_int_equal(moved.index[blocks.row[p]], out[p]);
  unicon_pairs_destroy(pairs);
  unicon__frame_close(ctx, frame);
}

/* The test on embeddings that are known: partners next to each other are seen, others are not; the
 * mean cosine is that of the rows with a partner, and the chance that of all of them. */
static void the_test_knows_close_from_far(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  enum { N = 60, R = 8 };
  float *zx = support_unit_rows(5, N, R), *zy = support_unit_rows(6, N, R);
  unicon_pairs *pairs = NULL;
  unicon__shuffle_test far_apart, near;
  double cosine = 0, chance = 0;
  CHECK_OK(ctx, unicon_pairs_identity(ctx, N, N, &pairs));
  const unicon__batch set = {.x = {.count = N}, .y = {.count = N}, .pairs = pairs};
  CHECK_OK(ctx, unicon__shuffle_pairs(ctx, &set, NULL, zx, zy, R, 1, &far_apart));
  CHECK_OK(ctx, unicon__shuffle_pairs(ctx, &set, NULL, zx, zx, R, 1, &near));
  for (int64_t i = 0; i < N; i++) {
    cosine += support_dot(zx + i * R, zy + i * R, R) / N;
    for (int64_t j = 0; j < N; j++) chance += support_dot(zx + i * R, zy + j * R, R) / (N * N);
  }
  CHECK_CLOSE(far_apart.cosine, cosine, 1e-6);
  CHECK_CLOSE(far_apart.chance, chance, 0.006); /* a shuffle: sd .046; the mean of 1000: .0015 */
  CHECK_CLOSE(near.cosine, 1, 1e-6);
  CHECK_CLOSE(near.p, 1.0 / 1001, 1e-12);
  assert_true(far_apart.p > 1.0 / 1001 && far_apart.p <= 1);
  unicon_pairs_destroy(pairs);
  free(zx);
  free(zy);
  unicon__frame_close(ctx, frame);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(grades_count_farther_rows),
      SCRATCH_TEST(a_shuffle_keeps_blocks),
      SCRATCH_TEST(the_test_knows_close_from_far),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
