/* SPDX-License-Identifier: Apache-2.0 */
/* Files of pairs and of labels. */
#include "support.h"

#include <locale.h>

#include "io/pairs.h"

static void refused(scratch *s, const char *path, unicon_status expected, const char *word,
                    const char *other) {
  unicon_pairs *pairs = (unicon_pairs *)(void *)s;
  scratch_failed(s, unicon_pairs_read(s->ctx, path, 5, 4, &pairs), expected, word, other);
  assert_null(pairs);
}

static void refused_text(scratch *s, const char *text, unicon_status expected, const char *word,
                         const char *other) {
  refused(s, scratch_text(s, "p.tsv", text), expected, word, other);
}

/* The pairs (0, 1), (4, 0), (2, 3), with weights 1, 0.5, 20 if `weighted`. */
static void expect_three(scratch *s, const char *path, bool weighted) {
  static const int64_t x[3] = {0, 4, 2};
  static const int32_t y[3] = {1, 0, 3};
  static const float weight[3] = {1.0f, 0.5f, 20.0f};
  unicon_pairs *pairs = NULL;
  const unicon_status status = unicon_pairs_read(s->ctx, path, 5, 4, &pairs);
  if (status) print_error("%s\n", unicon_ctx_error(s->ctx));
  assert_int_equal(status, UNICON_OK);
  assert_int_equal(unicon_pairs_count(pairs), 3);
  for (int p = 0; p < 3; p++) {
    const unicon__partners list = unicon__positives_x(pairs, x[p]);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.item[0], y[p]);
    assert_int_equal(list.weight != NULL, weighted);
    if (weighted) assert_true(list.weight[0] == weight[p]);
  }
  unicon_pairs_destroy(pairs);
}

static void text_forms(void **state) {
  scratch *s = *state;
  static const char *const plain[] = {
      "0\t1\n4\t0\n2\t3\n",
      "0\t1\n4\t0\n2\t3",                                         /* no line end */
      "x_row\ty_row\r\n0\t1\r\n4\t0\r\n2\t3\r\n",                 /* header, CR LF */
      "# made by hand\n\n  \nx y\n0 1\n# more\n4   0  \n\t2 3\n", /* comments, blanks */
      "0,1\n4 , 0\n2,3\n",
      "\357\273\2770,1\n4,0\n2,3\n", /* byte order mark */
      "+0 1\n4 00\n2 3\n",
  };
  for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
    expect_three(s, scratch_text(s, "p.tsv", plain[k]), false);
  static const char *const weighted[] = {
      "0\t1\t1\n4\t0\t0.5\n2\t3\t2e1\n",
      "x,y,weight\n0,1,1.0\n4,0,.5\n2,3,20\n",
  };
  for (size_t k = 0; k < sizeof weighted / sizeof *weighted; k++)
    expect_three(s, scratch_text(s, "p.tsv", weighted[k]), true);
}

/* The decimal point is a point, whatever the program's locale says. */
static void text_locale(void **state) {
  scratch *s = *state;
  if (!support_comma_locale()) skip();
  expect_three(s, scratch_text(s, "p.tsv", "0 1 1\n4 0 0.5\n2 3 20\n"), true);
  setlocale(LC_ALL, "C");
}

static void text_defects(void **state) {
  scratch *s = *state;
  const unicon_status format = UNICON_ERR_FORMAT;
  refused_text(s, "0 1\n2 x\n", format, "p.tsv line 2", "'x' is not a row number of y");
  refused_text(s, "a b\nc d\n", format, "p.tsv line 2", "'c' is not a row number of x");
  refused_text(s, "a 1\n", format, "line 1", "'a' is not a row number of x");
  refused_text(s, "0 1.5\n", format, "line 1", "'1.5' is not");
  refused_text(s, "0 99999999999999999999\n", format, "line 1", "'99999999999999999999'");
  refused_text(s, "0 -\n", format, "line 1", "'-' is not");
  refused_text(s, "# c\n\n0\n", format, "line 3 has 1 field;", "x_row, y_row");
  refused_text(s, "0 1 2 3 4\n", format, "line 1 has 4 or more fields", "x_row, y_row");
  refused_text(s, "0 1\n2 3 1\n", format, "line 2 has 3 fields", "before it have 2");
  refused_text(s, "0 1 1\n2 3\n", format, "line 2 has 2 fields", "before it have 3");
  refused_text(s, "0,,1\n", format, "line 1", "'' is not");
  refused_text(s, "0,1,\n", format, "line 1", "'' is not a weight");
  refused_text(s, ",1\n", format, "line 1", "'' is not a row number of x");
  refused_text(s, "0 1 heavy\n", format, "line 1", "'heavy' is not a weight");
  refused_text(s, "0 1 1x\n", format, "line 1", "'1x' is not a weight");
  const unsigned char hidden[] = "0 1 2\0x\n"; /* what C calls the end of a text */
  scratch_write(s, "p.tsv", hidden, sizeof hidden - 1);
  refused(s, scratch_path(s, "p.tsv"), format, "line 1", "is not a weight");
  refused_text(s, "", UNICON_ERR_PAIRS, "p.tsv: the list of pairs", "is empty");
  refused_text(s, "x y\n", UNICON_ERR_PAIRS, "p.tsv: the list of pairs", "is empty");
  refused_text(s, "x y\n0 1\n5 0\n", UNICON_ERR_PAIRS, "p.tsv line 3 is (5, 0)", "0 .. 4");
  refused_text(s, "0 1\n0 -1\n", UNICON_ERR_PAIRS, "p.tsv line 2 is (0, -1)", "0 .. 3");
  refused_text(s, "0 1\n1 1\n0 1\n", UNICON_ERR_PAIRS, "p.tsv line 3 is (0, 1), given twice",
               "line 1 is the same");
  refused_text(s, "# rows\nx y\n0 1\n\n1 1\n0 1\n", UNICON_ERR_PAIRS,
               "p.tsv line 6 is (0, 1), given twice", "line 3 is the same");
  refused_text(s, "0 1 nan\n", UNICON_ERR_PAIRS, "p.tsv line 1 has weight", "nan");
  refused_text(s, "0 1 0\n1 1 0\n", UNICON_ERR_PAIRS, "p.tsv", "weight 0");
  refused(s, scratch_path(s, "none.tsv"), UNICON_ERR_IO, "none.tsv", "No such file");
  refused(s, s->folder, UNICON_ERR_IO, s->folder, "is a folder");
}

#define INTEGERS(type) \
  { (const type[]){0, 1, 4, 0, 2, 3}, sizeof(type) }

static void npy_forms(void **state) {
  scratch *s = *state;
  const struct {
    const char *descr;
    struct {
      const void *data;
      size_t size;
    } values;
  } cases[] = {
      {"|i1", INTEGERS(int8_t)},   {"<i2", INTEGERS(int16_t)},  {"<i4", INTEGERS(int32_t)},
      {"<i8", INTEGERS(int64_t)},  {"|u1", INTEGERS(uint8_t)},  {"<u2", INTEGERS(uint16_t)},
      {"<u4", INTEGERS(uint32_t)}, {"<u8", INTEGERS(uint64_t)}, {"<f8", INTEGERS(double)}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char dictionary[128];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '%s', 'fortran_order': False, 'shape': (3, 2), }\n", cases[k].descr);
    expect_three(
        s, scratch_npy(s, "p.npy", dictionary, cases[k].values.data, 6 * cases[k].values.size),
        false);
  }
  const int32_t columns[6] = {0, 4, 2, 1, 0, 3};
  const double with_weight[9] = {0, 4, 2, 1, 0, 3, 1, 0.5, 20};
  expect_three(s,
               scratch_npy(s, "p.npy", "{'descr':'<i4','fortran_order':True,'shape':(3,2)}",
                           columns, sizeof columns),
               false);
  expect_three(s,
               scratch_npy(s, "p.npy", "{'descr':'<f8','fortran_order':True,'shape':(3,3)}",
                           with_weight, sizeof with_weight),
               true);
}

static void npy_defects(void **state) {
  scratch *s = *state;
  const int64_t values[6] = {0, 1, -4, 0, 2, 3};
  const int16_t narrow[2] = {3, -2};
  const uint64_t huge[2] = {0, UINT64_MAX};
  const double part[2] = {0, 1.5};
  const int32_t three[3] = {0, 1, 2};
  refused(
      s, scratch_npy(s, "p.npy", "{'descr':'<i8','fortran_order':False,'shape':(3,2)}", values, 48),
      UNICON_ERR_PAIRS, "p.npy: pair 1 is (-4, 0)", "0 .. 4");
  refused(s,
          scratch_npy(s, "p.npy", "{'descr':'<i8','fortran_order':False,'shape':(6,)}", values, 48),
          UNICON_ERR_SHAPE, "1 dimensions", "n by 2");
  refused(
      s, scratch_npy(s, "p.npy", "{'descr':'<i8','fortran_order':False,'shape':(1,6)}", values, 48),
      UNICON_ERR_SHAPE, "6 columns", "n by 2");
  refused(
      s, scratch_npy(s, "p.npy", "{'descr':'<f4','fortran_order':False,'shape':(6,2)}", values, 48),
      UNICON_ERR_FORMAT, "dtype '<f4'", "astype('<i8')");
  refused(
      s, scratch_npy(s, "p.npy", "{'descr':'<f4','fortran_order':False,'shape':(3,4)}", values, 48),
      UNICON_ERR_SHAPE, "4 columns of dtype '<f4'", "pairs have 2 or 3");
  refused(s,
          scratch_npy(s, "p.npy", "{'descr':'<u8','fortran_order':False,'shape':(1,2)}", huge, 16),
          UNICON_ERR_FORMAT, "row 0 has 18446744073709551615", "p.npy");
  refused(s,
          scratch_npy(s, "p.npy", "{'descr':'<f8','fortran_order':False,'shape':(1,2)}", part, 16),
          UNICON_ERR_FORMAT, "row 0 has 1.5", "whole number");
  refused(s,
          scratch_npy(s, "p.npy", "{'descr':'<i2','fortran_order':False,'shape':(1,2)}", narrow, 4),
          UNICON_ERR_PAIRS, "p.npy: pair 0 is (3, -2)", "0 .. 3");
  unicon_pairs *pairs;
  assert_int_equal(
      unicon_pairs_read(
          s->ctx,
          scratch_npy(s, "p.npy", "{'descr':'<i4','fortran_order':False,'shape':(1,3)}", three, 12),
          5, 4, &pairs),
      UNICON_OK);
  assert_true(unicon__positives_x(pairs, 0).weight[0] == 2.0f); /* integer weights */
  unicon_pairs_destroy(pairs);
  const uint64_t heavy[3] = {0, 1, (uint64_t)1 << 63};
  assert_int_equal(
      unicon_pairs_read(
          s->ctx,
          scratch_npy(s, "p.npy", "{'descr':'<u8','fortran_order':False,'shape':(1,3)}", heavy, 24),
          5, 4, &pairs),
      UNICON_OK);
  assert_true(unicon__positives_x(pairs, 0).weight[0] == 0x1p63f);
  unicon_pairs_destroy(pairs);
}

static void ignored_and_negatives(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_pairs *pairs;
  assert_int_equal(unicon_pairs_identity(ctx, 4, 4, &pairs), UNICON_OK);
  scratch_failed(s, unicon_pairs_read_ignored(ctx, pairs, scratch_text(s, "i.tsv", "0 1\n2 2\n")),
                 UNICON_ERR_PAIRS, "i.tsv: ignored pair (2, 2)", "a positive pair");
  scratch_failed(s, unicon_pairs_read_ignored(ctx, pairs, scratch_text(s, "i.tsv", "0 4\n")),
                 UNICON_ERR_PAIRS, "i.tsv line 1 is (0, 4)", "0 .. 3");
  scratch_failed(s, unicon_pairs_read_ignored(ctx, pairs, scratch_text(s, "i.tsv", "0 1 2\n")),
                 UNICON_ERR_PAIRS, "i.tsv line 1 has weight 2", "from 0 to 1");
  scratch_failed(s, unicon_pairs_read_negatives(ctx, pairs, scratch_text(s, "i.tsv", "0 1 0\n")),
                 UNICON_ERR_PAIRS, "i.tsv: negative pair 0 and all others", "weight 0");
  static const char *const none[] = {"", "\n", "x y\n", "# nothing\n\n"};
  for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
    const char *path = scratch_text(s, "none.tsv", none[k]);
    assert_int_equal(unicon_pairs_read_ignored(ctx, pairs, path), UNICON_OK);
    assert_int_equal(pairs->ignore.count, 0);
    scratch_failed(s, unicon_pairs_read_negatives(ctx, pairs, path), UNICON_ERR_PAIRS,
                   "none.tsv: the list of negative pairs is empty", "without a list every pair");
    assert_false(pairs->only_listed);
  }
  assert_int_equal(
      unicon_pairs_read_ignored(ctx, pairs, scratch_text(s, "i.tsv", "0 1 0\n3 0 .25\n")),
      UNICON_OK);
  assert_int_equal(pairs->ignore.count, 2);
  assert_true(unicon__list_at(&pairs->ignore.by_y, 0).weight[0] == 0.25f);
  assert_int_equal(unicon__list_at(&pairs->ignore.by_y, 0).item[0], 3);
  scratch_failed(s, unicon_pairs_read_negatives(ctx, pairs, scratch_text(s, "n.tsv", "3 0\n")),
                 UNICON_ERR_PAIRS, "n.tsv: negative pair (3, 0)", "an ignored pair");
  assert_int_equal(unicon_pairs_read_negatives(ctx, pairs, scratch_text(s, "n.tsv", "3 1\n")),
                   UNICON_OK);
  assert_true(pairs->only_listed);
  assert_int_equal(unicon__list_at(&pairs->negative.by_x, 3).item[0], 1);
  scratch_failed(s, unicon_pairs_read_ignored(ctx, NULL, "a"), UNICON_ERR_ARGUMENT, "pairs is NULL",
                 "");
  scratch_failed(s, unicon_pairs_read_negatives(ctx, pairs, NULL), UNICON_ERR_ARGUMENT,
                 "path is NULL", "");
  assert_int_equal(unicon_pairs_read_ignored(NULL, pairs, "a"), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_pairs_read_negatives(NULL, pairs, "a"), UNICON_ERR_ARGUMENT);
  unicon_pairs_destroy(pairs);
}

static void label_refused(scratch *s, const char *x, const char *y, int64_t n_x, int64_t n_y,
                          unicon_status expected, const char *word, const char *other) {
  unicon_pairs *pairs = (unicon_pairs *)(void *)s;
  scratch_failed(s, unicon_pairs_read_labels(s->ctx, x, y, n_x, n_y, &pairs), expected, word,
                 other);
  assert_null(pairs);
}

/* x: cat, dog, cat, fish; y: dog, cat, bird. */
static void expect_animals(scratch *s, const char *x, const char *y) {
  unicon_pairs *pairs = NULL;
  const unicon_status status = unicon_pairs_read_labels(s->ctx, x, y, 4, 3, &pairs);
  if (status) print_error("%s\n", unicon_ctx_error(s->ctx));
  assert_int_equal(status, UNICON_OK);
  assert_int_equal(unicon_pairs_count(pairs), 3);
  assert_int_equal(unicon__positives_x(pairs, 0).item[0], 1);
  assert_int_equal(unicon__positives_x(pairs, 1).item[0], 0);
  assert_int_equal(unicon__positives_x(pairs, 2).item[0], 1);
  assert_int_equal(unicon__positives_x(pairs, 3).count, 0);
  assert_int_equal(unicon__positives_y(pairs, 1).count, 2);
  assert_int_equal(unicon__positives_y(pairs, 2).count, 0);
  unicon_pairs_destroy(pairs);
}

static void label_files(void **state) {
  scratch *s = *state;
  const char *x = scratch_text(s, "x.txt", "a cat\na dog\na cat\na fish");
  const char *y = scratch_text(s, "y.txt", "a dog\r\na cat\r\na bird\r\n");
  expect_animals(s, x, y);
  /* A label may be empty, and a label that begins another is another. */
  expect_animals(s, scratch_text(s, "e.txt", "\nab\n\nabc\n"),
                 scratch_text(s, "f.txt", "ab\n\na\n"));
  const int32_t numbers_x[4] = {-7, 3, -7, 4}, numbers_y[3] = {3, -7, 5};
  const char *n_x =
      scratch_npy(s, "x.npy", "{'descr':'<i4','fortran_order':False,'shape':(4,)}", numbers_x, 16);
  expect_animals(s, n_x,
                 scratch_npy(s, "y.npy", "{'descr':'<i4','fortran_order':False,'shape':(3,1)}",
                             numbers_y, 12));
  label_refused(s, x, y, 5, 3, UNICON_ERR_SHAPE, "x.txt has 4 labels", "x has 5 rows");
  label_refused(s, x, y, 4, 2, UNICON_ERR_SHAPE, "y.txt has 3 labels", "y has 2 rows");
  label_refused(s, x, scratch_text(s, "z.txt", "none\n"), 4, 1, UNICON_ERR_PAIRS, "4 labels",
                "both sides");
  label_refused(s, n_x, y, 4, 3, UNICON_ERR_FORMAT, "x.npy is an .npy file", "y.txt is text");
  label_refused(s, x, scratch_text(s, "e.txt", ""), 4, 3, UNICON_ERR_DATA, "e.txt is empty", "");
  label_refused(s, scratch_path(s, "none"), y, 4, 3, UNICON_ERR_IO, "none", "No such file");
  label_refused(
      s,
      scratch_npy(s, "w.npy", "{'descr':'<i4','fortran_order':False,'shape':(2,2)}", numbers_x, 16),
      y, 2, 3, UNICON_ERR_SHAPE, "2 columns", "one column");
  label_refused(s, NULL, y, 4, 3, UNICON_ERR_ARGUMENT, "x_path is NULL", "");
  label_refused(s, x, NULL, 4, 3, UNICON_ERR_ARGUMENT, "y_path is NULL", "");
  unicon_pairs *pairs;
  assert_int_equal(unicon_pairs_read_labels(NULL, x, y, 4, 3, &pairs), UNICON_ERR_ARGUMENT);
}

/* One file alone, as the groups of a hold-out are read. */
static void one_label_file(void **state) {
  scratch *s = *state;
  unicon_labels *labels = NULL;
  const char *path = scratch_text(s, "g.txt", "b\na\nb\nc\n");
  assert_int_equal(unicon_labels_read(s->ctx, path, 4, NULL, 0, &labels), UNICON_OK);
  const int64_t expected[4] = {1, 0, 1, 2};
  assert_memory_equal(unicon_labels_numbers(labels, 0), expected, sizeof expected);
  assert_null(unicon_labels_numbers(labels, 1));
  unicon_labels_destroy(labels);
}

typedef struct inputs {
  char pairs[1024], npy[1024], x[1024], y[1024];
} inputs;

static unicon_status read_all(scratch *s, void *user) {
  const inputs *in = user;
  unicon_pairs *a = NULL, *b = NULL, *c = NULL;
  unicon_status status = unicon_pairs_read(s->ctx, in->pairs, 5, 4, &a);
  if (!status) status = unicon_pairs_read(s->ctx, in->npy, 5, 4, &b);
  if (!status) status = unicon_pairs_read_negatives(s->ctx, b, in->pairs);
  if (!status) status = unicon_pairs_read_labels(s->ctx, in->x, in->y, 2, 1, &c);
  unicon_pairs_destroy(a);
  unicon_pairs_destroy(b);
  unicon_pairs_destroy(c);
  return status;
}

static void failures(void **state) {
  scratch *s = *state;
  const int64_t pair[2] = {3, 3};
  inputs in;
  snprintf(in.pairs, sizeof in.pairs, "%s", scratch_text(s, "p.tsv", "0 1\n4 0\n"));
  snprintf(
      in.npy, sizeof in.npy, "%s",
      scratch_npy(s, "p.npy", "{'descr':'<i8','fortran_order':False,'shape':(1,2)}", pair, 16));
  snprintf(in.x, sizeof in.x, "%s", scratch_text(s, "x.txt", "a\nb\n"));
  snprintf(in.y, sizeof in.y, "%s", scratch_text(s, "y.txt", "a\n"));
  assert_true(scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, read_all, &in) >= 15);
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, read_all, &in) >=
              30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(text_forms),  SCRATCH_TEST(text_locale), SCRATCH_TEST(text_defects),
      SCRATCH_TEST(npy_forms),   SCRATCH_TEST(npy_defects), SCRATCH_TEST(ignored_and_negatives),
      SCRATCH_TEST(label_files), SCRATCH_TEST(failures),    SCRATCH_TEST(one_label_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
