/* SPDX-License-Identifier: Apache-2.0 */
/* The score of a random order, of pairs of every kind.
 *
 * Tolerances. Where all orders are listed, the rounding of their sum. Where they are drawn, a score
 * of one order is between 0 and 1, so a mean over DRAWS of them has a deviation of 1 / (2 sqrt DRAWS)
 * at most, and 5 of these are allowed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "select/chance.h"
#include "support.h"

enum { DRAWS = 4000 };
static const double drawn = 0.04; /* 5 / (2 sqrt DRAWS) */

/* Draws an order of the candidates of query i; its (1 / first rank + [first rank <= 10]) / 2. */
static double draw_query(const unicon_pairs *pairs, bool x, int64_t i, uint64_t *state) {
  const int64_t all = x ? pairs->n_y : pairs->n_x;
  const unicon__partners p = x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
  const unicon__partners ignored =
      unicon__list_at(x ? &pairs->ignore.by_x : &pairs->ignore.by_y, i);
  double best = INFINITY, before = 1;
  double *at = support_doubles(all);
  for (int64_t k = 0; k < all; k++) at[k] = support_uniform(state);
  for (int64_t k = 0; k < ignored.count; k++) at[unicon__partner(ignored, k)] = INFINITY;
  if ((x ? unicon__self_x(pairs, i) : unicon__self_y(pairs, i)) >= 0)
    at[x ? unicon__self_x(pairs, i) : unicon__self_y(pairs, i)] = INFINITY;
  for (int64_t k = 0; k < p.count; k++) best = fmin(best, at[unicon__partner(p, k)]);
  for (int64_t k = 0; k < all; k++) before += at[k] < best;
  free(at);
  return (1 / before + (before <= 10)) / 2;
}

static double draw_chance(const unicon_pairs *pairs) {
  uint64_t state = 77;
  double total = 0;
  for (int side = 0; side < 2; side++) {
    const int64_t n = side == 0 ? pairs->n_x : pairs->n_y;
    double sum = 0, count = 0;
    for (int64_t k = 0; k < DRAWS; k++) {
      const int64_t i = k % n;
      const int64_t matches =
          (side == 0 ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i)).count;
      if (matches == 0) continue;
      sum += draw_query(pairs, side == 0, i, &state);
      count++;
    }
    total += sum / count / 2;
  }
  return total;
}

/* One match among n: all ranks are as likely. Two among three: the first has rank 1 or, one time in
 * three, 2. */
static void small_ones_are_counted(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int n = 1; n < 30; n++) {
    unicon_pairs *pairs = NULL;
    double sum = 0;
    for (int k = 1; k <= n; k++) sum += (1.0 / k + (k <= 10)) / 2 / n;
    CHECK_OK(ctx, unicon_pairs_identity(ctx, n, n, &pairs));
    CHECK_CLOSE(unicon__chance(pairs), sum, 1e-12);
    unicon_pairs_destroy(pairs);
  }
  const int64_t x[] = {0, 0}, y[] = {0, 1};
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_list(ctx, 1, 3, x, y, NULL, 2, &pairs));
  CHECK_CLOSE(unicon__chance(pairs), ((2.0 / 3 + 1.0 / 6 + 1) / 2 + 1) / 2, 1e-12);
  unicon_pairs_destroy(pairs);
}

/* Of n candidates some are ignored, or are the query itself: what is left is drawn from. */
static void hidden_ones_are_no_candidates(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 12, IGNORED = 5 };
  unicon_pairs *pairs = NULL;
  int64_t from[N * IGNORED], to[N * IGNORED], label[N];
  double sum = 0, two = 0;
  for (int k = 0; k < N * IGNORED; k++) {
    from[k] = k / IGNORED;
    to[k] = (k / IGNORED + 1 + k % IGNORED) % N; /* as many for each row of y */
  }
  for (int k = 1; k <= N - IGNORED; k++) sum += (1.0 / k + 1) / 2 / (N - IGNORED);
  CHECK_OK(ctx, unicon_pairs_identity(ctx, N, N, &pairs));
  CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, pairs, from, to, NULL, N * IGNORED));
  CHECK_CLOSE(unicon__chance(pairs), sum, 1e-12);
  unicon_pairs_destroy(pairs);
  /* pairs of rows with a label: one match among 11; the first ten of 11 are hit but for the last */
  for (int k = 0; k < N; k++) label[k] = k / 2;
  for (int k = 1; k < N; k++) two += (1.0 / k + (k <= 10)) / 2 / (N - 1);
  CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, N, &pairs));
  CHECK_CLOSE(unicon__chance(pairs), two, 1e-12);
  unicon_pairs_destroy(pairs);
}

/* Rows without a partner are candidates and no queries; what is ignored is no candidate; labels of
 * two sets and of one. */
static void any_pairs_are_drawn_alike(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 120 };
  int64_t x[N], y[N], label[N], own[N];
  for (int64_t k = 0; k < N; k++) {
    x[k] = k / 4; /* 30 rows of x have four partners, the others none */
    y[k] = k % 5 == 0 ? 0 : k;
    label[k] = k % 3 == 0 ? 1 : k % 7;
    own[k] = k % 11;
  }
  for (int kind = 0; kind < 4; kind++) {
    unicon_pairs *pairs = NULL;
    if (kind < 2) CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, x, y, NULL, N, &pairs));
    if (kind == 1) {
      int64_t from[N], to[N];
      for (int64_t k = 0; k < N; k++) from[k] = k / 40, to[k] = 40 + k % 40;
      CHECK_OK(ctx, unicon_pairs_set_ignored(ctx, pairs, from, to, NULL, N));
    }
    if (kind == 2) CHECK_OK(ctx, unicon_pairs_labels(ctx, label, N, own, N / 2, &pairs));
    if (kind == 3) CHECK_OK(ctx, unicon_pairs_one_set(ctx, label, N, &pairs));
    CHECK_CLOSE(unicon__chance(pairs), draw_chance(pairs), drawn);
    unicon_pairs_destroy(pairs);
  }
}

static double chance_of(unicon_ctx *ctx, const unicon_data *data, const unicon_data *validation) {
  unicon_options *options = support_options(ctx, "exponent", "auto", "balance", "auto", NULL);
  unicon_model *model = NULL;
  CHECK_OK(ctx, unicon_fit(ctx, data, validation, options, &model));
  const double chance = atof(unicon_model_meta(model, "auto_chance"));
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  return chance;
}

/* A fit says the chance of the pairs that were held out: of validation pairs of another kind than
 * its own, and of splits with rows that have no partner. */
static void a_fit_says_that_of_its_held_out_pairs(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 600, EVERY = 5, VAL = 60 };
  problem p, q;
  unicon_pairs *some = NULL, *five = NULL;
  int64_t at[N / EVERY];
  problem_make(ctx, 3, N, 9, 7, 4, 1, &p);
  problem_make(ctx, 4, VAL, 9, 7, 4, 1, &q);
  for (int64_t k = 0; k < N / EVERY; k++) at[k] = EVERY * k;
  CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, at, at, NULL, N / EVERY, &some));
  CHECK_OK(ctx, unicon_pairs_per_x(ctx, VAL / 5, VAL, 5, &five));
  unicon_rows *few = support_rows(ctx, "few", q.x, VAL / 5, 9);
  const unicon_data one_each = UNICON_DATA(.x = p.rows_x, .y = p.rows_y);
  const unicon_data five_each = UNICON_DATA(.x = few, .y = q.rows_y, .pairs = five);
  CHECK_CLOSE(chance_of(ctx, &one_each, &five_each), unicon__chance(five), 1e-6);
  /* a fifth of the 120 pairs is held out, and of the rows without a partner */
  const unicon_data sparse = UNICON_DATA(.x = p.rows_x, .y = p.rows_y, .pairs = some);
  double sum = 0;
  for (int k = 1; k <= N / 5; k++) sum += (1.0 / k + (k <= 10)) / 2 / (N / 5);
  CHECK_CLOSE(chance_of(ctx, &sparse, NULL), sum, 0.25 * sum);
  unicon_rows_close(few);
  unicon_pairs_destroy(five);
  unicon_pairs_destroy(some);
  problem_free(&q);
  problem_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(small_ones_are_counted),
      SCRATCH_TEST(hidden_ones_are_no_candidates),
      SCRATCH_TEST(any_pairs_are_drawn_alike),
      SCRATCH_TEST(a_fit_says_that_of_its_held_out_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
