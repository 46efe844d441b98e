/* SPDX-License-Identifier: Apache-2.0 */
/* Hold-out: what belongs together stays together, the share is kept, the seed settles it, and what
 * cannot be split is said. */
#include "features/dataset.h"
#include "support.h"

/* Rows of x and y with 3 numbers each, and a split of them. */
typedef struct split {
  float *x, *y;
  unicon_rows *rows_x, *rows_y;
  unicon__block *frame;
  unicon__dataset set, train, held;
} split;

static void split_open(unicon_ctx *ctx, int64_t n_x, int64_t n_y, const unicon_pairs *pairs,
                       const unicon_options *options, split *s) {
  s->x = support_normals(1, n_x * 3);
  s->y = support_normals(2, n_y * 3);
  s->rows_x = support_rows(ctx, "x.npy", s->x, n_x, 3);
  s->rows_y = support_rows(ctx, "y.npy", s->y, n_y, 3);
  s->frame = unicon__frame_open(ctx);
  s->train = s->held = (unicon__dataset){0};
  const unicon_data data = UNICON_DATA(.x = s->rows_x, .y = s->rows_y, .pairs = pairs);
  CHECK_OK(ctx, unicon__dataset_open(ctx, &data, options, false, &s->set));
}

static void split_close(unicon_ctx *ctx, split *s) {
  unicon__dataset_close(&s->train);
  unicon__dataset_close(&s->held);
  unicon__dataset_close(&s->set);
  unicon__frame_close(ctx, s->frame);
  unicon_rows_close(s->rows_x);
  unicon_rows_close(s->rows_y);
  free(s->x);
  free(s->y);
}

/* Original row k of a source. */
static int64_t row_of(const unicon__source *source, int64_t k) {
  return source->index ? source->index[k] : k;
}

/* Side of each original row: 0 in neither, 1 train, 2 held, 3 both. */
static void sides(const split *s, bool y, unsigned char *out, int64_t n) {
  memset(out, 0, (size_t)n);
  const unicon__dataset *part[2] = {&s->train, &s->held};
  for (int t = 0; t < 2; t++) {
    const unicon__source *source = y ? &part[t]->whole.y : &part[t]->whole.x;
    for (int64_t k = 0; k < source->count; k++) {
      assert_true(k == 0 || row_of(source, k) > row_of(source, k - 1));
      out[row_of(source, k)] |= (unsigned char)(1 << t);
    }
  }
}

/* Every pair of the parts is a pair of the whole between the rows it names, and every pair of the
 * whole between rows of one part is there. */
static void check_pairs(const split *s, const unicon__dataset *part) {
  const unicon__batch *whole = &s->set.whole, *some = &part->whole;
  assert_int_equal(some->pairs->n_x, some->x.count);
  assert_int_equal(some->pairs->n_y, some->y.count);
  int64_t found = 0, wanted = 0;
  for (int64_t a = 0; a < some->x.count; a++) {
    const unicon__partners p = unicon__positives_x(some->pairs, a);
    found += p.count;
    for (int64_t i = 0; i < whole->x.count; i++) {
      if (row_of(&whole->x, i) != row_of(&some->x, a)) continue;
      const unicon__partners all = unicon__positives_x(whole->pairs, i);
      for (int64_t k = 0; k < all.count; k++)
        for (int64_t b = 0; b < some->y.count; b++)
          if (row_of(&some->y, b) == row_of(&whole->y, all.item[k])) {
            int64_t length;
            wanted++;
            (void)unicon__list_range(p, b, b + 1, &length);
            assert_int_equal(length, 1);
          }
    }
  }
  assert_int_equal(found, wanted);
}

/* ---- components --------------------------------------------------------------------------- */

static void components_stay_together(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { MOST = 400, PAIRS = 300 };
  for (int c = 0; c < 4; c++)
    for (uint64_t seed = 0; seed < 5; seed++) {
      static const int64_t n_x[4] = {200, 60, 240, 150}, n_y[4] = {200, 300, 80, 140};
      unicon_pairs *pairs = NULL;
      int64_t largest = 1;
      if (c == 0) CHECK_OK(ctx, unicon_pairs_identity(ctx, 200, 200, &pairs));
      if (c == 1) CHECK_OK(ctx, unicon_pairs_per_x(ctx, 60, 300, largest = 5, &pairs));
      if (c == 2) CHECK_OK(ctx, unicon_pairs_per_y(ctx, 240, 80, 3, &pairs));
      if (c == 3) { /* chains i, i+1 within blocks of 6 rows; the last rows of both are unpaired */
        int64_t x[PAIRS], y[PAIRS], count = 0;
        for (int64_t i = 0; i < 132; i++)
          for (int64_t t = 0; t < 2; t++)
            if (i / 6 == (i + t) / 6) x[count] = i, y[count++] = (i + t) % 132;
        CHECK_OK(ctx, unicon_pairs_list(ctx, n_x[c], n_y[c], x, y, NULL, count, &pairs));
        largest = 6;
      }
      split s;
      split_open(ctx, n_x[c], n_y[c], pairs, NULL, &s);
      CHECK_OK(ctx, unicon__dataset_split(ctx, &s.set, NULL, 0.2, seed, &s.train, &s.held, NULL));
      unsigned char side_x[MOST], side_y[MOST];
      sides(&s, false, side_x, n_x[c]);
      sides(&s, true, side_y, n_y[c]);
      for (int64_t i = 0; i < n_x[c]; i++) assert_true(side_x[i] == 1 || side_x[i] == 2);
      for (int64_t j = 0; j < n_y[c]; j++) assert_true(side_y[j] == 1 || side_y[j] == 2);
      for (int64_t i = 0; i < n_x[c]; i++) {
        const unicon__partners p = unicon__positives_x(pairs, i);
        for (int64_t k = 0; k < p.count; k++) assert_int_equal(side_x[i], side_y[p.item[k]]);
      }
      check_pairs(&s, &s.train);
      check_pairs(&s, &s.held);
      assert_int_equal(
          unicon_pairs_count(s.train.whole.pairs) + unicon_pairs_count(s.held.whole.pairs),
          unicon_pairs_count(pairs));
      const double wanted = 0.2 * (double)n_y[c], got = (double)s.held.whole.y.count;
      assert_true(got >= wanted && got < wanted + (double)largest);
      split_close(ctx, &s);
      unicon_pairs_destroy(pairs);
    }
}

/* The same seed the same rows, another seed others, and a larger share more of them. */
static void seed_and_share_settle_it(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 300 };
  static const double share[4] = {0.1, 0.1, 0.1, 0.4};
  static const uint64_t seed[4] = {3, 3, 4, 3};
  unsigned char side[4][N];
  for (int t = 0; t < 4; t++) {
    split s;
    split_open(ctx, N, N, NULL, NULL, &s);
    CHECK_OK(ctx,
             unicon__dataset_split(ctx, &s.set, NULL, share[t], seed[t], &s.train, &s.held, NULL));
    assert_int_equal(s.held.whole.y.count, (int64_t)(share[t] * N + 0.5));
    sides(&s, false, side[t], N);
    split_close(ctx, &s);
  }
  assert_memory_equal(side[0], side[1], N);
  assert_memory_not_equal(side[0], side[2], N);
}

/* ---- groups ------------------------------------------------------------------------------- */

/* Rows of a group (given by original number, with some rows dropped) are on one side. */
static void groups_are_never_split(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 240 };
  for (int c = 0; c < 3; c++) {
    int64_t group[N];
    for (int64_t i = 0; i < N; i++)
      group[i] = c == 0 ? i / 8 - 7 : c == 1 ? (i * 7) % 30 : i < 144 ? 0 : 1 + i % 12;
    unicon_options *options = support_options(ctx, "bad_rows", "drop", NULL);
    for (uint64_t seed = 0; seed < 4; seed++) {
      split s;
      s.x = support_normals(1, N * 3);
      s.y = support_normals(2, N * 3);
      for (int64_t i = 5; c < 2 && i < N; i += 40) s.x[i * 3] = NAN;
      s.rows_x = support_rows(ctx, "x.npy", s.x, N, 3);
      s.rows_y = support_rows(ctx, "y.npy", s.y, N, 3);
      s.frame = unicon__frame_open(ctx);
      s.train = s.held = (unicon__dataset){0};
      const unicon_data data = UNICON_DATA(.x = s.rows_x, .y = s.rows_y);
      CHECK_OK(ctx, unicon__dataset_open(ctx, &data, options, false, &s.set));
      CHECK_OK(ctx, unicon__dataset_split(ctx, &s.set, group, 0.25, seed, &s.train, &s.held, NULL));
      unsigned char side[N];
      int64_t broken = 0;
      sides(&s, false, side, N);
      for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < i; k++)
          broken += group[i] == group[k] && side[i] && side[k] && side[i] != side[k];
      for (int64_t i = 0; i < N; i++) broken += side[i] == 3;
      if (broken) print_error("groups of case %d are split %lld times\n", c, (long long)broken);
      split_close(ctx, &s);
      assert_int_equal(broken, 0);
    }
    unicon_options_destroy(options);
  }
}

/* ---- labels ------------------------------------------------------------------------------- */

static void labels_split_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { NX = 500, NY = 400 };
  int64_t label_x[NX], label_y[NY];
  for (int i = 0; i < NX; i++) label_x[i] = i % 4;
  for (int j = 0; j < NY; j++) label_y[j] = j % 4;
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label_x, NX, label_y, NY, &pairs));
  split s;
  log_book book = {0};
  unicon_ctx_set_log(ctx, support_log, &book);
  split_open(ctx, NX, NY, pairs, NULL, &s);
  CHECK_OK(ctx, unicon__dataset_split(ctx, &s.set, NULL, 0.2, 1, &s.train, &s.held, NULL));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
  unsigned char side_x[NX], side_y[NY];
  int64_t held[2] = {0, 0};
  sides(&s, false, side_x, NX);
  sides(&s, true, side_y, NY);
  for (int i = 0; i < NX; i++) assert_true(side_x[i] == 1 || side_x[i] == 2);
  for (int j = 0; j < NY; j++) assert_true(side_y[j] == 1 || side_y[j] == 2);
  for (int i = 0; i < NX; i++) held[0] += side_x[i] == 2;
  for (int j = 0; j < NY; j++) held[1] += side_y[j] == 2;
  /* four standard deviations of a binomial */
  CHECK_CLOSE(held[0], 0.2 * NX, 4 * sqrt(0.16 * NX));
  CHECK_CLOSE(held[1], 0.2 * NY, 4 * sqrt(0.16 * NY));
  check_pairs(&s, &s.train);
  check_pairs(&s, &s.held);
  split_close(ctx, &s);
  unicon_pairs_destroy(pairs);
}

/* ---- one component ------------------------------------------------------------------------ */

/* Components of class labels, beside groups: a class is one, whatever the number of its pairs.
 * There are 1.2e11 of them here, so a walk over all of them would not end. Classes 0 and 1 share a
 * group, class 2 stands alone, class 3 is on x only, so that each of its rows does. */
static void classes_are_components(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { ROWS = 600000 };
  int64_t *label = malloc(2 * ROWS * sizeof *label), *group = malloc(ROWS * sizeof *group);
  assert_true(label && group);
  for (int64_t i = 0; i < ROWS; i++) {
    label[i] = i < 6 ? 3 : i % 3;
    label[ROWS + i] = i % 3;
    group[i] = i == 6 || i == 7 ? ROWS : i; /* rows of classes 0 and 1 */
  }
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label, ROWS, label + ROWS, ROWS, &pairs));
  const unicon__batch whole = {.x = {.count = ROWS}, .y = {.count = ROWS}, .pairs = pairs};
  int64_t *number = NULL, count = 0, largest = 0;
  unicon__block *frame = unicon__frame_open(ctx);
  CHECK_OK(ctx, unicon__components(ctx, &whole, group, &number, &count, &largest));
  assert_int_equal(count, 6 + 2);
  assert_int_equal(largest, 2 * 2 * ROWS / 3 - 4);
  for (int64_t k = 0; k < 2 * ROWS; k++) /* in order of first appearance: 6 single rows first */
    if (number[k] != (k < 6 ? k : label[k] == 2 ? 7 : 6)) fail_msg("row %lld", (long long)k);
  unicon__frame_close(ctx, frame);
  unicon_pairs_destroy(pairs);
  free(label);
  free(group);
}

/* All rows in one ring: y rows are held out, x rows stay, and the log says so. */
static void one_component_holds_out_y_rows(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  enum { N = 300 };
  int64_t x[2 * N], y[2 * N];
  for (int64_t i = 0; i < N; i++)
    for (int64_t t = 0; t < 2; t++) x[2 * i + t] = i, y[2 * i + t] = (i + t) % N;
  unicon_pairs *pairs = NULL;
  CHECK_OK(ctx, unicon_pairs_list(ctx, N, N, x, y, NULL, 2 * N, &pairs));
  split s;
  log_book book = {0};
  unicon_ctx_set_log(ctx, support_log, &book);
  split_open(ctx, N, N, pairs, NULL, &s);
  CHECK_OK(ctx, unicon__dataset_split(ctx, &s.set, NULL, 0.2, 1, &s.train, &s.held, NULL));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 1);
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "y rows alone are held out"));
  unsigned char side_x[N], side_y[N];
  sides(&s, false, side_x, N);
  sides(&s, true, side_y, N);
  int64_t held = 0;
  for (int i = 0; i < N; i++) {
    assert_true(side_x[i] == 1 || side_x[i] == 3);
    assert_true(side_y[i] == 1 || side_y[i] == 2);
    held += side_y[i] == 2;
    const bool needed = side_y[i] == 2 || side_y[(i + 1) % N] == 2;
    assert_int_equal(side_x[i] == 3, needed);
  }
  CHECK_CLOSE(held, 0.2 * N, 4 * sqrt(0.16 * N));
  check_pairs(&s, &s.train);
  check_pairs(&s, &s.held);
  split_close(ctx, &s);
  unicon_pairs_destroy(pairs);
}

/* Too little to hold anything out is a sentence, whatever the seed, and nothing is left behind. */
static void too_little_is_a_sentence(void **state) {
  scratch *t = *state;
  unicon_ctx *ctx = t->ctx;
  static const int64_t all_x[3] = {0, 0, 1}, all_y[3] = {0, 1, 1}; /* one component */
  for (int c = 0; c < 3; c++)
    for (uint64_t seed = 0; seed < 6; seed++) {
      unicon_pairs *pairs = NULL;
      if (c == 1) CHECK_OK(ctx, unicon_pairs_list(ctx, 2, 2, all_x, all_y, NULL, 3, &pairs));
      if (c == 2) CHECK_OK(ctx, unicon_pairs_labels(ctx, all_y, 2, all_y, 2, &pairs));
      split s;
      split_open(ctx, 2, 2, pairs, NULL, &s);
      const unicon_status status =
          unicon__dataset_split(ctx, &s.set, NULL, 0.2, seed, &s.train, &s.held, NULL);
      const bool said = strlen(unicon_ctx_error(ctx)) > 30;
      split_close(ctx, &s);
      unicon_pairs_destroy(pairs);
      if (status == UNICON_OK) print_error("case %d, seed %d: was split\n", c, (int)seed);
      assert_int_equal(status, UNICON_ERR_DATA);
      assert_true(said);
    }
}

/* Where every row belongs to every other nothing can be told apart: no fit, and no score of 1. */
static void pairs_without_information(void **state) {
  scratch *t = *state;
  int64_t label[40], x[400], y[400];
  for (int64_t k = 0; k < 40; k++) label[k] = 3;
  for (int64_t k = 0; k < 400; k++) x[k] = k / 20, y[k] = k % 20;
  for (int c = 0; c < 2; c++) {
    const int64_t n = c == 0 ? 40 : 20;
    unicon_pairs *pairs = NULL;
    unicon_model *model = NULL;
    problem p;
    problem_make(t->ctx, 3, n, 5, 4, 3, 0.3, &p);
    if (c == 0) CHECK_OK(t->ctx, unicon_pairs_labels(t->ctx, label, n, label, n, &pairs));
    if (c == 1) CHECK_OK(t->ctx, unicon_pairs_list(t->ctx, n, n, x, y, NULL, 400, &pairs));
    scratch_failed(t,
                   unicon_fit(t->ctx, &UNICON_DATA(.x = p.rows_x, .y = p.rows_y, .pairs = pairs),
                              NULL, NULL, &model),
                   UNICON_ERR_DATA, "every row of x", "nothing to align");
    unicon_pairs_destroy(pairs);
    problem_free(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(components_stay_together), SCRATCH_TEST(seed_and_share_settle_it),
      SCRATCH_TEST(groups_are_never_split),   SCRATCH_TEST(labels_split_rows),
      SCRATCH_TEST(classes_are_components),   SCRATCH_TEST(one_component_holds_out_y_rows),
      SCRATCH_TEST(too_little_is_a_sentence), SCRATCH_TEST(pairs_without_information),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
