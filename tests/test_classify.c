/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-shot classification against an oracle that scores every class of every row in double and
 * counts ties against the true class. */
#include "figures.h"
#include "support.h"

enum { DIMS = 7 };

typedef struct task {
  int64_t n, classes;
  float *z, *class_z;
  int64_t *label;
  unicon_rows *rows, *class_rows;
} task;

/* Rows stray from the vector of their class by `spread`. Values on a grid of 1/4 make exact ties.
 */
static task task_make(unicon_ctx *ctx, uint64_t seed, int64_t n, int64_t classes, double spread,
                      bool grid) {
  task t = {n,
            classes,
            support_floats(n * DIMS),
            support_normals(seed, classes * DIMS),
            calloc((size_t)n, sizeof(int64_t)),
            NULL,
            NULL};
  uint64_t draw = seed * 7919u + 3;
  assert_non_null(t.label);
  for (int64_t k = 0; grid && k < classes * DIMS; k++) t.class_z[k] = roundf(t.class_z[k]);
  for (int64_t c = 0; c < classes; c++) t.class_z[c * DIMS] += 3; /* no row is all zero */
  for (int64_t i = 0; i < n; i++) {
    t.label[i] = (int64_t)(support_uniform(&draw) * (double)classes);
    for (int64_t k = 0; k < DIMS; k++) {
      const double v = (double)t.class_z[t.label[i] * DIMS + k] + spread * support_normal(&draw);
      t.z[i * DIMS + k] = (float)(grid ? round(4 * v) / 4 : v);
    }
    t.z[i * DIMS] += 1;
  }
  t.rows = support_rows(ctx, "rows", t.z, n, DIMS);
  t.class_rows = support_rows(ctx, "classes", t.class_z, classes, DIMS);
  return t;
}

static void task_free(task *t) {
  unicon_rows_close(t->rows);
  unicon_rows_close(t->class_rows);
  free(t->z);
  free(t->class_z);
  free(t->label);
}

/* Cosine of the unit float32 rows that the library sees. */
static double cosine(const float *z, const float *c, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < DIMS; k++) sum += (double)z[i * DIMS + k] * (double)c[j * DIMS + k];
  return sum;
}

static void against_oracle(unicon_ctx *ctx, uint64_t seed, int64_t n, int64_t classes,
                           double spread, bool grid) {
  task t = task_make(ctx, seed, n, classes, spread, grid);
  const unicon_view rows = UNICON_VIEW(.rows = t.rows, .side = UNICON_X),
                    class_rows = UNICON_VIEW(.rows = t.class_rows, .side = UNICON_Y);
  float *z = support_floats(n * DIMS), *c = support_floats(classes * DIMS);
  int64_t *answer = calloc((size_t)n, sizeof *answer), right = 0, top = 0;
  int64_t *confusion = calloc((size_t)(classes * classes), sizeof *confusion);
  int64_t *wanted = calloc((size_t)(classes * classes), sizeof *wanted);
  classify_figures result;
  CHECK_OK(ctx, unicon_embed(ctx, &rows, 0, n, 1, z));
  CHECK_OK(ctx, unicon_embed(ctx, &class_rows, 0, classes, 1, c));
  CHECK_OK(ctx, figures_classify(ctx, &rows, t.label, &class_rows, answer, confusion, &result));
  for (int64_t i = 0; i < n; i++) {
    const double truth = cosine(z, c, i, t.label[i]);
    double best = -INFINITY;
    int64_t ahead = 0, other = t.label[i];
    for (int64_t j = 0; j < classes; j++) {
      const double s = cosine(z, c, i, j);
      if (j == t.label[i] || s < truth) continue;
      ahead++;
      if (s > best) {
        best = s;
        other = j;
      }
    }
    assert_int_equal(answer[i], other);
    right += ahead == 0;
    top += ahead < 5;
    wanted[t.label[i] * classes + other]++;
  }
  CHECK_CLOSE(result.accuracy, (double)right / (double)n, 1e-12);
  CHECK_CLOSE(result.top5, (double)top / (double)n, 1e-12);
  CHECK_CLOSE(result.chance, 1 / (double)classes, 1e-15);
  assert_memory_equal(confusion, wanted, (size_t)(classes * classes) * sizeof *wanted);
  double mean = 0, used = 0;
  for (int64_t a = 0; a < classes; a++) {
    double sum = 0;
    for (int64_t b = 0; b < classes; b++) sum += (double)wanted[a * classes + b];
    if (sum == 0) continue;
    mean += (double)wanted[a * classes + a] / sum;
    used++;
  }
  CHECK_CLOSE(result.mean_class_accuracy, mean / used, 1e-12);
  assert_true(result.rows == n && result.classes == classes);
  free(z);
  free(c);
  free(answer);
  free(confusion);
  free(wanted);
  task_free(&t);
}

static void classes_match_the_oracle(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  against_oracle(ctx, 1, 700, 12, 1, false);
  against_oracle(ctx, 2, 9000, 40, 2, true);  /* more than one block */
  against_oracle(ctx, 3, 150, 1100, 2, true); /* more than one tile of classes */
  against_oracle(ctx, 4, 30, 1, 1, false);
  against_oracle(ctx, 5, 1, 6, 9, false);
}

/* Two classes with the same vector: the true one never comes first. */
static void ties_count_against_us(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  const float z[] = {1, 0, 0, 1}, c[] = {1, 0, 2, 0, 0, 1};
  const int64_t label[] = {0, 2};
  int64_t answer[2], confusion[9];
  classify_figures result;
  unicon_rows *rows = support_rows(ctx, "z", z, 2, 2), *classes = support_rows(ctx, "c", c, 3, 2);
  const unicon_view a = UNICON_VIEW(.rows = rows, .side = UNICON_X),
                    b = UNICON_VIEW(.rows = classes, .side = UNICON_Y);
  CHECK_OK(ctx, figures_classify(ctx, &a, label, &b, answer, confusion, &result));
  assert_int_equal(answer[0], 1);
  assert_int_equal(answer[1], 2);
  CHECK_CLOSE(result.accuracy, 0.5, 0);
  CHECK_CLOSE(result.top5, 1, 0);
  assert_true(confusion[1] == 1 && confusion[0] == 0 && confusion[8] == 1);
  unicon_rows_close(rows);
  unicon_rows_close(classes);
}

/* Through a model: classes of the y side, and the mirror. */
static void a_model_stands_between(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 3, 200, 12, 9, 4, 0.05, &p);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, NULL);
  int64_t *label = calloc((size_t)p.n, sizeof *label), *confusion = NULL;
  classify_figures result;
  for (int64_t i = 0; i < p.n; i++) label[i] = i; /* every row of y is a class */
  const unicon_view x = UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X),
                    y = UNICON_VIEW(.rows = p.rows_y, .model = model, .side = UNICON_Y);
  figures to_y, to_x;
  CHECK_OK(ctx, figures_evaluate(ctx, &x, &y, NULL, NULL, &to_y, &to_x));
  CHECK_OK(ctx, figures_classify(ctx, &x, label, &y, NULL, confusion, &result));
  CHECK_CLOSE(result.accuracy, to_y.value[UNICON__HIT_1], 0);
  CHECK_CLOSE(result.top5, to_y.value[UNICON__HIT_5], 0);
  CHECK_OK(ctx, figures_classify(ctx, &y, label, &x, NULL, confusion, &result));
  CHECK_CLOSE(result.accuracy, to_x.value[UNICON__HIT_1], 0);
  assert_true(result.accuracy > 0.5);
  free(label);
  unicon_model_destroy(model);
  problem_free(&p);
}

static void mistakes_are_named(void **state) {
  scratch *s = *state;
  const float z[] = {1, 0, 0, 1}, c[] = {1, 0, 0, 1, 1, 1};
  const int64_t label[] = {0, 3}, negative[] = {-1, 0}, fine[] = {0, 1};
  classify_figures result;
  unicon_rows *rows = support_rows(s->ctx, "z", z, 2, 2), *two = support_rows(s->ctx, "c", c, 3, 2),
              *three = support_rows(s->ctx, "wide", c, 2, 3);
  const unicon_view a = UNICON_VIEW(.rows = rows, .side = UNICON_X),
                    b = UNICON_VIEW(.rows = two, .side = UNICON_Y),
                    wide = UNICON_VIEW(.rows = three, .side = UNICON_Y);
  scratch_failed(s, figures_classify(s->ctx, &a, label, &b, NULL, NULL, &result), UNICON_ERR_DATA,
                 "label 3", "3 classes");
  scratch_failed(s, figures_classify(s->ctx, &a, negative, &b, NULL, NULL, &result),
                 UNICON_ERR_DATA, "label -1", "row 0");
  scratch_failed(s, figures_classify(s->ctx, &a, fine, &wide, NULL, NULL, &result),
                 UNICON_ERR_SHAPE, "z has 2", "wide has 3");
  scratch_failed(s, figures_classify(s->ctx, &a, NULL, &b, NULL, NULL, &result),
                 UNICON_ERR_ARGUMENT, "label is NULL", "");
  unicon_rows_close(rows);
  unicon_rows_close(two);
  unicon_rows_close(three);
}

/* Nothing depends on the number of threads. */
static void threads_do_not_matter(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "3"));
  against_oracle(ctx, 6, 900, 25, 2, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(classes_match_the_oracle), SCRATCH_TEST(ties_count_against_us),
      SCRATCH_TEST(a_model_stands_between),   SCRATCH_TEST(mistakes_are_named),
      SCRATCH_TEST(threads_do_not_matter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
