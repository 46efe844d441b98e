/* SPDX-License-Identifier: Apache-2.0 */
/* The linear probe: its loss and gradient against plain double loops, its minimum, its answers. */
#include "use/logistic.h"
#include "figures.h"
#include "support.h"

enum { ROWS = 1100, DIMS = 6, CLASSES = 4, SIZE = (DIMS + 1) * CLASSES };

/* Unit rows of `classes` bundles of directions; `spread` says how far a row strays from its own. */
typedef struct bundle {
  float *z;
  int64_t *label, n;
} bundle;

static bundle bundle_make(uint64_t seed, int64_t n, int64_t d, int64_t classes, double spread) {
  bundle b = {support_floats(n * d), calloc((size_t)n, sizeof *b.label), n};
  uint64_t state = seed * 977u + 1;
  assert_non_null(b.label);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    b.label[i] = (int64_t)(support_uniform(&state) * (double)classes);
    for (int64_t k = 0; k < d; k++) {
      const double v = (k == b.label[i] % d) + spread * support_normal(&state);
      b.z[i * d + k] = (float)v;
      sum += v * v;
    }
    for (int64_t k = 0; k < d; k++) b.z[i * d + k] /= (float)sqrt(sum);
  }
  return b;
}

static void bundle_free(bundle *b) {
  free(b->z);
  free(b->label);
}

/* ---- loss and gradient -------------------------------------------------------------------- */

/* L and its gradient from the definition. */
static double oracle(const bundle *b, int64_t d, int64_t k, double ridge, const double *point,
                     double *gradient) {
  double loss = 0, *logit = support_doubles(k);
  for (int64_t j = 0; j < (d + 1) * k; j++) gradient[j] = j < d * k ? ridge * point[j] : 0;
  for (int64_t j = 0; j < d * k; j++) loss += ridge / 2 * point[j] * point[j];
  for (int64_t i = 0; i < b->n; i++) {
    double total = 0;
    for (int64_t c = 0; c < k; c++) {
      logit[c] = point[d * k + c];
      for (int64_t t = 0; t < d; t++) logit[c] += (double)b->z[i * d + t] * point[t * k + c];
      total += exp(logit[c]);
    }
    loss += (log(total) - logit[b->label[i]]) / (double)b->n;
    for (int64_t c = 0; c < k; c++) {
      const double residual = (exp(logit[c]) / total - (c == b->label[i])) / (double)b->n;
      gradient[d * k + c] += residual;
      for (int64_t t = 0; t < d; t++) gradient[t * k + c] += residual * (double)b->z[i * d + t];
    }
  }
  free(logit);
  return loss;
}

static unicon__logistic open_fit(unicon_ctx *ctx, const bundle *b, int32_t *class, double ridge) {
  unicon__logistic fit = {
      .n = b->n, .r = DIMS, .k = CLASSES, .z = b->z, .class = class, .ridge = ridge};
  for (int64_t i = 0; i < b->n; i++) class[i] = (int32_t)b->label[i];
  CHECK_OK(ctx, unicon__logistic_open(ctx, &fit));
  return fit;
}

/* Float32 logits of size 5 are off by at most 5e-6, and means over rows by less. */
static void the_gradient_is_right(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon__block *frame = unicon__frame_open(ctx);
  bundle b = bundle_make(1, ROWS, DIMS, CLASSES, 0.4);
  int32_t class[ROWS];
  double point[SIZE], gradient[SIZE], wanted[SIZE], unused[SIZE];
  uint64_t draw = 5;
  unicon__logistic fit = open_fit(ctx, &b, class, 0.03);
  for (int j = 0; j < SIZE; j++) point[j] = 1.5 * support_normal(&draw);
  double loss, above, below;
  CHECK_OK(ctx, unicon__logistic_loss(ctx, &fit, point, gradient, &loss));
  CHECK_CLOSE(loss, oracle(&b, DIMS, CLASSES, 0.03, point, wanted), 2e-6);
  for (int j = 0; j < SIZE; j++) CHECK_CLOSE(gradient[j], wanted[j], 2e-6);
  for (int j = 0; j < SIZE; j++) { /* central differences: rounding 1e-7/h, bending h^2 */
    const double h = 0.01, at = point[j];
    point[j] = at + h;
    CHECK_OK(ctx, unicon__logistic_loss(ctx, &fit, point, unused, &above));
    point[j] = at - h;
    CHECK_OK(ctx, unicon__logistic_loss(ctx, &fit, point, unused, &below));
    point[j] = at;
    CHECK_CLOSE((above - below) / (2 * h), gradient[j], 5e-5);
  }
  unicon__frame_close(ctx, frame);
  bundle_free(&b);
}

/* The minimum of a strictly convex function: the exact gradient vanishes, and every step away
 * costs at least ridge/2 of its square in the weights. */
static void the_minimum_is_reached(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const double ridges[] = {1e-4, 0.01, 1};
  bundle b = bundle_make(2, ROWS, DIMS, CLASSES, 0.5);
  for (int k = 0; k < 3; k++) {
    unicon__block *frame = unicon__frame_open(ctx);
    int32_t class[ROWS];
    double point[SIZE], gradient[SIZE], length = 0, unused[SIZE];
    uint64_t draw = 9;
    unicon__logistic_log log;
    unicon__logistic fit = open_fit(ctx, &b, class, ridges[k]);
    CHECK_OK(ctx, unicon__logistic_minimize(ctx, &fit, &log));
    for (int j = 0; j < SIZE; j++)
      point[j] = (double)(j < DIMS * CLASSES ? fit.weight[j] : fit.bias[j - DIMS * CLASSES]);
    const double least = oracle(&b, DIMS, CLASSES, ridges[k], point, gradient);
    for (int j = 0; j < SIZE; j++) length += gradient[j] * gradient[j];
    assert_true(sqrt(length) < 1e-4 && log.gradient < 1e-4 && log.steps > 3);
    CHECK_CLOSE(log.loss, least, 1e-6);
    for (int away = 0; away < 20; away++) {
      double moved[SIZE], square = 0;
      for (int j = 0; j < SIZE; j++) {
        const double step = 0.3 * support_normal(&draw);
        moved[j] = point[j] + step;
        square += j < DIMS * CLASSES ? step * step : 0;
      }
      assert_true(oracle(&b, DIMS, CLASSES, ridges[k], moved, unused) >
                  least + ridges[k] / 2 * square - 1e-3 * sqrt(square));
    }
    unicon__frame_close(ctx, frame);
  }
  bundle_free(&b);
}

/* ---- answers ------------------------------------------------------------------------------ */

typedef struct outcome {
  probe_figures result;
  int64_t classes, label[16], confusion[256];
} outcome;

static unicon_status run(unicon_ctx *ctx, const bundle *train, const bundle *test, int64_t d,
                         const unicon_options *options, outcome *out) {
  unicon_rows *a = support_rows(ctx, "train.npy", train->z, train->n, d);
  unicon_rows *b = support_rows(ctx, "test.npy", test->z, test->n, d);
  const unicon_status status =
      figures_probe(ctx, &UNICON_VIEW(.rows = a, .side = UNICON_X), train->label,
                    &UNICON_VIEW(.rows = b, .side = UNICON_X), test->label, options, out->label,
                    out->confusion, &out->result);
  out->classes = out->result.classes;
  unicon_rows_close(a);
  unicon_rows_close(b);
  return status;
}

/* Counts of the matrix agree with the accuracy and with the labels. */
static void check_counts(const outcome *o, const bundle *test) {
  int64_t right = 0, all = 0;
  for (int64_t a = 0; a < o->classes; a++) {
    int64_t rows = 0, wanted = 0;
    right += o->confusion[a * o->classes + a];
    for (int64_t b = 0; b < o->classes; b++) rows += o->confusion[a * o->classes + b];
    for (int64_t i = 0; i < test->n; i++) wanted += test->label[i] == o->label[a];
    assert_int_equal(rows, wanted);
    all += rows;
  }
  assert_int_equal(all, test->n);
  CHECK_CLOSE(o->result.accuracy, (double)right / (double)test->n, 1e-12);
}

static void separable_classes_are_told_apart(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  bundle train = bundle_make(3, 900, 5, 5, 0.05), test = bundle_make(4, 300, 5, 5, 0.05);
  outcome o;
  CHECK_OK(ctx, run(ctx, &train, &test, 5, NULL, &o));
  assert_true(o.result.accuracy == 1 && o.result.train_accuracy == 1 && o.result.unseen == 0);
  assert_int_equal(o.result.classes, 5);
  assert_true(o.result.chance < 0.3);
  check_counts(&o, &test);
  bundle_free(&train);
  bundle_free(&test);
}

/* A fifth of the labels replaced by the next one: no better than .8, and not fooled. */
static void noisy_labels_do_not_mislead(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  bundle train = bundle_make(5, 3000, 4, 4, 0.1), test = bundle_make(6, 2000, 4, 4, 0.1);
  uint64_t draw = 3;
  outcome o;
  for (int64_t i = 0; i < train.n; i++)
    if (support_uniform(&draw) < 0.2) train.label[i] = (train.label[i] + 1) % 4;
  for (int64_t i = 0; i < test.n; i++)
    if (support_uniform(&draw) < 0.2) test.label[i] = (test.label[i] + 1) % 4;
  unicon_options *options = support_options(ctx, "probe_ridge", "0.0001", NULL);
  CHECK_OK(ctx, run(ctx, &train, &test, 4, options, &o));
  CHECK_CLOSE(o.result.accuracy, 0.8, 0.03); /* three standard deviations of 2000 draws */
  for (int64_t a = 0; a < 4; a++)
    assert_true(o.confusion[a * 4 + a] > 3 * o.confusion[a * 4 + (a + 3) % 4]);
  check_counts(&o, &test);
  unicon_options_destroy(options);
  bundle_free(&train);
  bundle_free(&test);
}

static void threads_change_nothing(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const threads[] = {"1", "2", "5"};
  bundle train = bundle_make(7, 2700, 8, 6, 0.6), test = bundle_make(8, 900, 8, 6, 0.6);
  outcome first = {0}, now = {0};
  for (int k = 0; k < 3; k++) {
    CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", threads[k]));
    CHECK_OK(ctx, run(ctx, &train, &test, 8, NULL, k == 0 ? &first : &now));
    if (k > 0) assert_memory_equal(&first, &now, sizeof now);
  }
  assert_true(first.result.accuracy > 0.5 && first.result.accuracy < 1);
  bundle_free(&train);
  bundle_free(&test);
}

/* Any integers are labels; one that only the test rows have is an error wherever it stands. */
static void labels_may_have_gaps(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t value[3] = {-5, 7, 1000000000007};
  bundle train = bundle_make(9, 300, 3, 3, 0.05), test = bundle_make(10, 100, 3, 3, 0.05);
  outcome o;
  int64_t unseen = 0;
  for (int64_t i = 0; i < train.n; i++) train.label[i] = value[train.label[i]];
  for (int64_t i = 0; i < test.n; i++) {
    test.label[i] = i % 10 == 0 ? 42 : value[test.label[i]];
    unseen += i % 10 == 0;
  }
  CHECK_OK(ctx, run(ctx, &train, &test, 3, NULL, &o));
  static const int64_t wanted[4] = {-5, 7, 42, 1000000000007};
  assert_int_equal(o.classes, 4);
  assert_memory_equal(o.label, wanted, sizeof wanted);
  assert_int_equal(o.result.unseen, unseen);
  CHECK_CLOSE(o.result.accuracy, 0.9, 1e-12);
  for (int a = 0; a < 4; a++) assert_int_equal(o.confusion[a * 4 + 2], 0); /* never answered */
  check_counts(&o, &test);
  bundle_free(&train);
  bundle_free(&test);
}

/* Through a model: labels that are clear in the shared space are read from either side. */
static void a_model_is_looked_through(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  problem p;
  problem_make(ctx, 4, 400, 12, 9, 3, 0.05, &p);
  int64_t label[400];
  unicon_options *options = support_options(ctx, "preset", "fast", NULL);
  unicon_model *model = support_fit(ctx, p.rows_x, p.rows_y, NULL, options);
  float *z = support_floats(400 * unicon_model_rank(model));
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X),
                             0, 400, 1, z));
  for (int i = 0; i < 400; i++) label[i] = z[i * unicon_model_rank(model)] > 0;
  for (int side = 0; side < 2; side++) {
    const unicon_view view = UNICON_VIEW(.rows = side ? p.rows_y : p.rows_x, .model = model,
                                         .side = side ? UNICON_Y : UNICON_X);
    probe_figures result;
    CHECK_OK(ctx, figures_probe(ctx, &view, label, &view, label, NULL, NULL, NULL, &result));
    assert_true(result.accuracy > 0.95);
  }
  free(z);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  problem_free(&p);
}

/* ---- failures ----------------------------------------------------------------------------- */

static int stop(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)user, (void)done;
  return strcmp(phase, "logistic regression") == 0;
}

static void mistakes_have_sentences(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  bundle train = bundle_make(11, 60, 3, 3, 0.1), test = bundle_make(12, 30, 3, 3, 0.1);
  unicon_rows *rows = support_rows(ctx, "a.npy", train.z, 60, 3);
  unicon_rows *other = support_rows(ctx, "b.npy", test.z, 15, 6);
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X),
                    wide = UNICON_VIEW(.rows = other, .side = UNICON_X);
  probe_figures result;
  outcome o;
  scratch_failed(
      s, figures_probe(ctx, &view, train.label, &wide, test.label, NULL, NULL, NULL, &result),
      UNICON_ERR_SHAPE, "a.npy has 3 dimensions", "b.npy has 6");
  scratch_failed(s, figures_probe(ctx, &view, NULL, &view, train.label, NULL, NULL, NULL, &result),
                 UNICON_ERR_ARGUMENT, "labels", "");
  unicon_ctx_set_progress(ctx, stop, NULL);
  scratch_failed(s, run(ctx, &train, &test, 3, NULL, &o), UNICON_ERR_CANCELLED, "cancelled",
                 "logistic");
  unicon_ctx_set_progress(ctx, NULL, NULL);
  for (int i = 0; i < 60; i++) train.label[i] = 17;
  scratch_failed(s, run(ctx, &train, &test, 3, NULL, &o), UNICON_ERR_DATA, "the label 17",
                 "at least 2");
  unicon_rows_close(rows);
  unicon_rows_close(other);
  bundle_free(&train);
  bundle_free(&test);
}

/* A label above all that were trained on is unseen, whatever lies behind the end of the list. */
static void labels_past_the_list_are_unseen(void **state) {
  scratch *s = *state;
  const float z[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const int64_t train[] = {-3, -2, -1}, test[] = {-3, -2, 0};
  unicon_rows *rows = support_rows(s->ctx, "z", z, 3, 3);
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  probe_figures result;
  int64_t confusion[16];
  CHECK_OK(s->ctx,
           figures_probe(s->ctx, &view, train, &view, test, NULL, NULL, confusion, &result));
  assert_int_equal(result.unseen, 1);
  CHECK_CLOSE(result.accuracy, 2.0 / 3, 1e-12);
  unicon_rows_close(rows);
}

static unicon_status attempt(scratch *s, void *user) {
  const bundle *b = user;
  outcome o;
  unicon__faults kept = s->ctx->faults;
  s->ctx->faults = (unicon__faults){-1, -1, -1, -1};
  unicon_rows *rows = support_rows(s->ctx, "a.npy", b->z, b->n, 3);
  s->ctx->faults = kept;
  const unicon_view view = UNICON_VIEW(.rows = rows, .side = UNICON_X);
  const unicon_status status =
      figures_probe(s->ctx, &view, b->label, &view, b->label, NULL, NULL, o.confusion, &o.result);
  unicon_rows_close(rows);
  return status;
}

static void memory_may_run_out(void **state) {
  scratch *s = *state;
  bundle b = bundle_make(13, 60, 3, 3, 0.2);
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, attempt, &b) > 10);
  bundle_free(&b);
}

/* ---- label files -------------------------------------------------------------------------- */

static void label_files_are_numbered_together(void **state) {
  scratch *s = *state;
  static const int64_t numbers[3] = {30, -7, 30};
  unicon_labels *labels = NULL;
  const char *a = scratch_text(s, "a.txt", "cat\ndog\r\ncat\n");
  const char *b = scratch_text(s, "b.txt", "dog\nbee\n");
  const char *c = scratch_npy(s, "c.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}",
                              numbers, sizeof numbers);
  CHECK_OK(s->ctx, unicon_labels_read(s->ctx, a, 3, b, 2, &labels));
  static const int64_t first[3] = {1, 2, 1}, second[2] = {2, 0};
  assert_memory_equal(unicon_labels_numbers(labels, 0), first, sizeof first);
  assert_memory_equal(unicon_labels_numbers(labels, 1), second, sizeof second);
  assert_int_equal(unicon_labels_classes(labels), 3);
  assert_string_equal(unicon_labels_name(labels, 0), "bee");
  assert_string_equal(unicon_labels_name(labels, 2), "dog");
  assert_null(unicon_labels_name(labels, 3));
  assert_null(unicon_labels_numbers(labels, 2));
  unicon_labels_destroy(labels);
  CHECK_OK(s->ctx, unicon_labels_read(s->ctx, c, 3, NULL, 0, &labels));
  assert_string_equal(unicon_labels_name(labels, 0), "-7");
  assert_int_equal(unicon_labels_numbers(labels, 0)[2], 1);
  assert_null(unicon_labels_numbers(labels, 1));
  unicon_labels_destroy(labels);
  scratch_failed(s, unicon_labels_read(s->ctx, a, 4, NULL, 0, &labels), UNICON_ERR_SHAPE, "3 lines",
                 "4 rows");
  assert_null(labels);
  scratch_failed(s, unicon_labels_read(s->ctx, a, 3, c, 3, &labels), UNICON_ERR_FORMAT, "a.txt",
                 "one kind");
  scratch_failed(s, unicon_labels_read(s->ctx, "nowhere.txt", 3, NULL, 0, &labels), UNICON_ERR_IO,
                 "nowhere.txt", "");
  scratch_failed(s, unicon_labels_read(s->ctx, NULL, 3, NULL, 0, &labels), UNICON_ERR_ARGUMENT,
                 "path", "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(the_gradient_is_right),
      SCRATCH_TEST(the_minimum_is_reached),
      SCRATCH_TEST(separable_classes_are_told_apart),
      SCRATCH_TEST(noisy_labels_do_not_mislead),
      SCRATCH_TEST(threads_change_nothing),
      SCRATCH_TEST(labels_may_have_gaps),
      SCRATCH_TEST(a_model_is_looked_through),
      SCRATCH_TEST(mistakes_have_sentences),
      SCRATCH_TEST(labels_past_the_list_are_unseen),
      SCRATCH_TEST(memory_may_run_out),
      SCRATCH_TEST(label_files_are_numbered_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
