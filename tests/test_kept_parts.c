/* SPDX-License-Identifier: Apache-2.0 */
/* What the sample of statistics knows where parts were made with other options, rows are equal, or a
 * file was written by a stranger. Sums themselves are those of test_kept.c and test_kept_labels.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kept/kept.h"
#include "scratch.h"
#include "support.h"

enum { N = 240, D = 6, CLASSES = 4 };

typedef struct rows {
  float *data[2];
  unicon_rows *x, *y;
  unicon_pairs *pairs;
  unicon_data data_of;
} rows;

/* Rows from .. to - 1 of both sides, with their labels or one to one. */
static void rows_open(unicon_ctx *ctx, int from, int to, bool labels, rows *out) {
  int64_t label[N];
  out->data[0] = support_normals(1, (int64_t)N * D);
  out->data[1] = support_normals(2, (int64_t)N * D);
  out->x = support_rows(ctx, "x", out->data[0] + from * D, to - from, D);
  out->y = support_rows(ctx, "y", out->data[1] + from * D, to - from, D);
  for (int i = from; i < to; i++) label[i - from] = i % CLASSES;
  if (labels)
    CHECK_OK(ctx, unicon_pairs_labels(ctx, label, to - from, label, to - from, &out->pairs));
  else
    CHECK_OK(ctx, unicon_pairs_identity(ctx, to - from, to - from, &out->pairs));
  out->data_of = UNICON_DATA(.x = out->x, .y = out->y, .pairs = out->pairs);
}

static void rows_close(rows *r) {
  unicon_pairs_destroy(r->pairs);
  unicon_rows_close(r->x);
  unicon_rows_close(r->y);
  free(r->data[0]);
  free(r->data[1]);
}

static unicon_stats *stats_of(unicon_ctx *ctx, int from, int to, bool labels,
                              const char *sample_rows) {
  rows r;
  unicon_stats *out = NULL;
  unicon_options *options = support_options(ctx, "sample_rows", sample_rows, NULL);
  rows_open(ctx, from, to, labels, &r);
  CHECK_OK(ctx, unicon_stats_create(ctx, &r.data_of, options, &out));
  CHECK_OK(ctx, unicon_stats_add(ctx, out, &r.data_of, NULL));
  rows_close(&r);
  unicon_options_destroy(options);
  return out;
}

static unicon_stats *read_again(scratch *s, const unicon_stats *stats) {
  unicon_stats *out = NULL;
  CHECK_OK(s->ctx, unicon_stats_save(s->ctx, stats, scratch_path(s, "again.stats")));
  CHECK_OK(s->ctx, unicon_stats_load(s->ctx, scratch_path(s, "again.stats"), &out));
  return out;
}

/* No row that was taken away may stay in the sample, whatever the sample of the part knew of it. */
static void a_part_without_a_sample(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int labels = 0; labels < 2; labels++)
    for (int few = 0; few < 2; few++) {
      unicon_stats *all = stats_of(ctx, 0, N, labels, "1000");
      unicon_stats *part = stats_of(ctx, 0, N / 2, labels, few ? "40" : "0");
      unicon_stats *other = stats_of(ctx, N / 2, N, labels, "1000");
      CHECK_OK(ctx, unicon_stats_subtract(ctx, all, part, NULL));
      for (int64_t u = 0; u < all->sample.units; u++) {
        bool there = false;
        for (int64_t k = 0; k < other->sample.units; k++)
          there |= other->sample.unit[k].key == all->sample.unit[u].key;
        assert_true(there);
      }
      assert_true(few ? all->sample.units > 0 : all->sample.units == 0);
      unicon_stats *read = read_again(s, all);
      assert_int_equal(read->sample.units, all->sample.units);
      unicon_stats_destroy(read);
      unicon_stats_destroy(other);
      unicon_stats_destroy(part);
      unicon_stats_destroy(all);
    }
}

/* A part that is there already is refused by ledgers, and by samples there is a warning; rows that
 * were never added are known to a sample that has every row. Parts that share nothing pass. */
static void what_is_there_already_is_noticed(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int labels = 0; labels < 2; labels++)
    for (int k = 0; k < 3; k++) {
      static const char *const rooms[] = {"1000", "200", "0"}; /* all, some, none */
      log_book book = {0};
      unicon_stats *all = stats_of(ctx, 0, N, labels, rooms[k]);
      unicon_stats *part = stats_of(ctx, N / 2, N, labels, rooms[k]);
      unicon_stats *less = stats_of(ctx, 0, N / 2, labels, rooms[k]);
      unicon_ctx_set_log(ctx, support_log, &book);
      CHECK_OK(ctx, unicon_stats_merge(ctx, less, part));
      assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
      CHECK_OK(ctx, unicon_stats_merge(ctx, all, part));
      assert_int_equal(book.count[UNICON_LOG_WARNING], k < 2);
      if (k < 2) assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "seems to be in the stat"));
      unicon_ctx_set_log(ctx, NULL, NULL);
      unicon_stats_destroy(less);
      unicon_stats_destroy(part);
      unicon_stats_destroy(all);
    }
  unicon_stats *classes = stats_of(ctx, 0, N, true, "1000"),
               *same = stats_of(ctx, 0, N, true, "1000");
  log_book book = {0};
  classes->sample.threshold[0] = 0; /* of x nothing is known: texts alone tell nothing */
  unicon_ctx_set_log(ctx, support_log, &book);
  CHECK_OK(ctx, unicon_stats_merge(ctx, classes, same));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 0);
  unicon_ctx_set_log(ctx, NULL, NULL);
  unicon_stats_destroy(same);
  unicon_stats_destroy(classes);
  unicon_options *options = support_options(ctx, "ledger", "on", NULL);
  unicon_stats *all = NULL, *part = NULL;
  rows r, q;
  rows_open(ctx, 0, N, false, &r);
  rows_open(ctx, 20, 30, false, &q);
  CHECK_OK(ctx, unicon_stats_create(ctx, &r.data_of, options, &all));
  CHECK_OK(ctx, unicon_stats_create(ctx, &r.data_of, options, &part));
  CHECK_OK(ctx, unicon_stats_merge(ctx, all, part)); /* nothing is there twice */
  CHECK_OK(ctx, unicon_stats_add(ctx, all, &r.data_of, NULL));
  CHECK_OK(ctx, unicon_stats_add(ctx, part, &q.data_of, NULL));
  scratch_failed(s, unicon_stats_merge(ctx, all, part), UNICON_ERR_DATA,
                 "the ledger of the statistics has every row of", "count twice");
  CHECK_CLOSE(all->sums.rows[0], N, 0);
  CHECK_OK(ctx, unicon_stats_merge(ctx, part, all)); /* other rows come with them */
  unicon_stats_destroy(part);
  unicon_stats_destroy(all);
  unicon_options_destroy(options);
  rows_close(&q);
  rows_close(&r);
}

/* Of a sample with every row: rows of one part that are paired otherwise, or strangers. */
static void a_sample_of_all_knows_strangers(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int labels = 0; labels < 2; labels++) {
    unicon_stats *all = stats_of(ctx, 0, N - 10, labels, "1000");
    unicon_stats *other = stats_of(ctx, N - 20, N, labels, "1000");
    unicon_result *certificate = NULL;
    rows r, q;
    double removed;
    rows_open(ctx, N - 12, N - 4, labels, &r);
    rows_open(ctx, 4, 8, labels, &q);
    scratch_failed(s, unicon_stats_remove(ctx, all, &r.data_of, NULL, NULL), UNICON_ERR_DATA,
                   labels ? "but not 12 of the rows" : "but not 6 of the rows and their partners",
                   "nothing is removed");
    scratch_failed(s, unicon_stats_subtract(ctx, all, other, NULL), UNICON_ERR_DATA, "but not",
                   "never added");
    CHECK_CLOSE(all->sums.rows[0], N - 10, 0);
    CHECK_OK(ctx, unicon_stats_remove(ctx, all, &q.data_of, NULL, &certificate));
    assert_string_equal(unicon_result_text(certificate, "checked_by"), "sample of every row");
    assert_int_equal(unicon_result_number(certificate, "sample.removed", &removed), 0);
    CHECK_CLOSE(removed, 8, 0);
    unicon_result_destroy(certificate);
    unicon_stats_destroy(other);
    unicon_stats_destroy(all);
    rows_close(&q);
    rows_close(&r);
  }
}

/* Where nothing is left there is no sample either, and rows of the other kind may come. */
static void nothing_is_of_either_kind(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int labels = 0; labels < 2; labels++) {
    unicon_stats *all = stats_of(ctx, 0, N, labels, "1000");
    unicon_stats *same = stats_of(ctx, 0, N, labels, "0");
    unicon_stats *other = stats_of(ctx, 0, N, !labels, "1000");
    CHECK_OK(ctx, unicon_stats_subtract(ctx, all, same, NULL));
    assert_int_equal(all->sample.units, 0);
    unicon_stats *read = read_again(s, all);
    CHECK_OK(ctx, unicon_stats_merge(ctx, read, other));
    assert_int_equal(read->sample.units, other->sample.units);
    unicon_stats_destroy(read);
    unicon_stats_destroy(other);
    unicon_stats_destroy(same);
    unicon_stats_destroy(all);
  }
}

static void no_sample_comes_back(void **state) {
  scratch *s = *state;
  for (int labels = 0; labels < 2; labels++) {
    unicon_stats *all = stats_of(s->ctx, 0, N, labels, "0");
    unicon_stats *read = read_again(s, all);
    assert_int_equal(read->sums.classes, labels ? CLASSES : 0);
    CHECK_CLOSE(read->pairs, all->pairs, 0);
    unicon_stats_destroy(read);
    unicon_stats_destroy(all);
  }
}

/* Four texts, each as often as its class has images, are four rows of the sample. */
static void equal_rows_are_there_once(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  rows r;
  unicon_stats *all = NULL, *half = NULL;
  unicon_options *options = support_options(ctx, "sample_rows", "100", NULL);
  for (int parts = 1; parts <= 2; parts++) {
    unicon_stats *sum = NULL;
    for (int p = 0; p < parts; p++) {
      rows_open(ctx, p * N / parts, (p + 1) * N / parts, true, &r);
      float *y = r.data[1] + p * N / parts * D;
      for (int i = CLASSES; i < N / parts; i++)
        memcpy(y + i * D, y + i % CLASSES * D, D * sizeof *y);
      if (p > 0) memcpy(y, r.data[1], CLASSES * D * sizeof *y);
      for (int i = CLASSES; i < N / parts && p > 0; i++)
        memcpy(y + i * D, y + i % CLASSES * D, D * sizeof *y);
      if (!sum) CHECK_OK(ctx, unicon_stats_create(ctx, &r.data_of, options, &sum));
      CHECK_OK(ctx, unicon_stats_add(ctx, sum, &r.data_of, NULL));
      rows_close(&r);
    }
    assert_int_equal(sum->sample.rows[1], CLASSES);
    assert_int_equal(sum->sample.rows[0], 50);
    if (parts == 1)
      all = sum;
    else
      half = sum;
  }
  for (int64_t u = 0; u < all->sample.units; u++)
    assert_true(all->sample.unit[u].key == half->sample.unit[u].key);
  unicon_stats_destroy(all);
  unicon_stats_destroy(half);
  unicon_options_destroy(options);
}

/* Pairs are not looked for in labels, nor labels in pairs. */
static void kinds_are_told_before(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int labels = 0; labels < 2; labels++) {
    rows r;
    unicon_stats *all = stats_of(ctx, 0, N, labels, "1000");
    unicon_stats *other = stats_of(ctx, 0, N / 2, !labels, "1000");
    rows_open(ctx, 0, N / 2, !labels, &r);
    scratch_failed(s, unicon_stats_remove(ctx, all, &r.data_of, NULL, NULL), UNICON_ERR_SHAPE,
                   "class labels", "cannot be summed");
    scratch_failed(s, unicon_stats_subtract(ctx, all, other, NULL), UNICON_ERR_SHAPE,
                   "class labels", "cannot be summed");
    rows_close(&r);
    unicon_stats_destroy(other);
    unicon_stats_destroy(all);
  }
}

/* Half of the rows of each class on each side: a quarter of the pairs. */
static void decay_counts_pairs_of_classes(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_stats *all = stats_of(ctx, 0, N, true, "0");
  const double before = all->pairs;
  CHECK_OK(ctx, unicon_stats_decay(ctx, all, 0.5));
  CHECK_CLOSE(all->pairs, before / 4, 1e-9);
  unicon_stats_destroy(all);
}

typedef enum crime { NO_ROWS, FEWER_ROWS, MANY_ROWS, NO_CLASS, BELOW } crime;

static void commit_crime(unicon_stats *stats, crime c) {
  unicon__stats *sums = &stats->sums;
  for (int s = 0; s < 2; s++) {
    if (c == NO_ROWS) sums->rows[s] = 0;
    if (c == FEWER_ROWS) sums->rows[s] -= 1;
    if (c == MANY_ROWS) sums->class_rows[s][0] = sums->rows[s] = 1e300;
    if (c == NO_CLASS) sums->class_rows[s][1] = 0;
    if (c == BELOW) sums->class_rows[s][0] = -1;
  }
}

/* Counts of a file must agree with one another. */
static void counts_of_strangers_are_checked(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  for (int c = NO_ROWS; c <= BELOW; c++) {
    unicon_stats *all = stats_of(ctx, 0, N, true, "1000"), *read = NULL;
    commit_crime(all, (crime)c);
    CHECK_OK(ctx, unicon_stats_save(ctx, all, scratch_path(s, "crime.stats")));
    scratch_failed(s, unicon_stats_load(ctx, scratch_path(s, "crime.stats"), &read),
                   UNICON_ERR_FORMAT, "crime.stats", c == MANY_ROWS ? "n_x" : "class.rows");
    unicon_stats_destroy(all);
  }
  unicon_stats *all = stats_of(ctx, 0, N, false, "1000"), *read = NULL;
  all->sums.rows[0] = all->sums.rows[1] = 0;
  CHECK_OK(ctx, unicon_stats_save(ctx, all, scratch_path(s, "crime.stats")));
  scratch_failed(s, unicon_stats_load(ctx, scratch_path(s, "crime.stats"), &read),
                 UNICON_ERR_FORMAT, "sample.key", "nothing was summed");
  unicon_stats_destroy(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(a_part_without_a_sample),
      SCRATCH_TEST(what_is_there_already_is_noticed),
      SCRATCH_TEST(a_sample_of_all_knows_strangers),
      SCRATCH_TEST(nothing_is_of_either_kind),
      SCRATCH_TEST(no_sample_comes_back),
      SCRATCH_TEST(equal_rows_are_there_once),
      SCRATCH_TEST(kinds_are_told_before),
      SCRATCH_TEST(decay_counts_pairs_of_classes),
      SCRATCH_TEST(counts_of_strangers_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
