/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_probe: what a linear classifier reads from embeddings. */
#include <stdlib.h>

#include "io/result.h"
#include "model/embed.h"
#include "use/logistic.h"
#include "base/options.h"
#include "unicon/tools.h"

enum { BLOCK_ROWS = 8192 }; /* test rows embedded at once */

static const double poor_gradient = 1e-3; /* above this the probe is said to be unfinished */

/* ---- classes ------------------------------------------------------------------------------ */

/* Distinct labels of both lists, ascending, in a new array. */
static unicon_status distinct(unicon_ctx *ctx, const int64_t *a, int64_t n_a, const int64_t *b,
                              int64_t n_b, int64_t **label, int64_t *count) {
  const int64_t n = n_a + n_b;
  UNICON_NEW(ctx, *label, n);
  for (int64_t i = 0; i < n; i++) (*label)[i] = i < n_a ? a[i] : b[i - n_a];
  qsort(*label, (size_t)n, sizeof **label, unicon__compare_int64);
  *count = 0;
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || (*label)[i] != (*label)[*count - 1]) (*label)[(*count)++] = (*label)[i];
  return UNICON_OK;
}

/* Position of a label in an ascending list, or -1. */
static int64_t position(const int64_t *label, int64_t count, int64_t value) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (label[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && label[low] == value ? low : -1;
}

/* ---- probe -------------------------------------------------------------------------------- */

typedef struct probe {
  unicon__lens train, test;
  const int64_t *train_label, *test_label;
  int64_t *label, classes;   /* of both sets, ascending */
  int64_t *seen, seen_count; /* of the training rows: what is fitted */
  int32_t *class;            /* of each training row, a position in `seen` */
  int64_t *rows_of;          /* training rows of each class in `seen` */
  unicon__logistic fit;
  /* what comes of it */
  int64_t
      *confusion; /* classes by classes: test rows of class a that were given class b; or NULL */
  int64_t unseen; /* test rows with a label that no training row has: counted as wrong */
  double accuracy, train_accuracy, chance;
  unicon__logistic_log log;
} probe;

static unicon_status open_classes(unicon_ctx *ctx, probe *p) {
  const int64_t n = p->train.count;
  UNICON_TRY(distinct(ctx, p->train_label, n, NULL, 0, &p->seen, &p->seen_count));
  UNICON_TRY(
      distinct(ctx, p->train_label, n, p->test_label, p->test.count, &p->label, &p->classes));
  if (p->seen_count < 2)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "all %lld training rows have the label %lld; a probe needs at least 2 "
                        "labels to tell apart",
                        (long long)n, (long long)p->seen[0]);
  UNICON_NEW(ctx, p->class, n);
  UNICON_NEW(ctx, p->rows_of, p->seen_count);
  for (int64_t i = 0; i < n; i++) {
    p->class[i] = (int32_t)position(p->seen, p->seen_count, p->train_label[i]);
    p->rows_of[p->class[i]]++;
  }
  return UNICON_OK;
}

static unicon_status fit_probe(unicon_ctx *ctx, probe *p, const unicon_options *options) {
  const int64_t n = p->train.count, r = p->train.r;
  float *z;
  int32_t *answer;
  UNICON_NEW(ctx, z, n * r);
  UNICON_NEW(ctx, answer, n);
  UNICON_TRY(unicon__lens_rows(ctx, &p->train, 0, n, true, z, p->train.r));
  p->fit = (unicon__logistic){.n = n,
                              .r = r,
                              .k = p->seen_count,
                              .z = z,
                              .class = p->class,
                              .ridge = unicon__number(options, UNICON__PROBE_RIDGE)};
  UNICON_TRY(unicon__logistic_open(ctx, &p->fit));
  UNICON_TRY(unicon__logistic_minimize(ctx, &p->fit, &p->log));
  if (p->log.gradient > poor_gradient)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the probe stopped after %lld steps with a gradient of %.2g; a larger probe_ridge "
                "helps",
                (long long)p->log.steps, p->log.gradient);
  UNICON_TRY(unicon__logistic_answer(ctx, &p->fit, z, n, answer));
  int64_t right = 0;
  for (int64_t i = 0; i < n; i++) right += answer[i] == p->class[i];
  p->train_accuracy = (double)right / (double)n;
  unicon__drop(ctx, answer);
  unicon__drop(ctx, z);
  return UNICON_OK;
}

static unicon_status try_probe(unicon_ctx *ctx, probe *p) {
  const int64_t n = p->test.count;
  int64_t right = 0, usual = 0, commonest = 0;
  float *z;
  int32_t *answer;
  for (int64_t c = 1; c < p->seen_count; c++)
    if (p->rows_of[c] > p->rows_of[commonest]) commonest = c;
  UNICON_NEW(ctx, z, (n < BLOCK_ROWS ? n : BLOCK_ROWS) * p->test.r);
  UNICON_NEW(ctx, answer, BLOCK_ROWS);
  for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
    const int64_t count = n - first < BLOCK_ROWS ? n - first : BLOCK_ROWS;
    UNICON_TRY(unicon__lens_rows(ctx, &p->test, first, count, true, z, p->test.r));
    UNICON_TRY(unicon__logistic_answer(ctx, &p->fit, z, count, answer));
    for (int64_t i = 0; i < count; i++) {
      const int64_t truth = p->test_label[first + i], given = p->seen[answer[i]];
      right += given == truth;
      usual += p->seen[commonest] == truth;
      p->unseen += position(p->seen, p->seen_count, truth) < 0;
      if (p->confusion)
        p->confusion[position(p->label, p->classes, truth) * p->classes +
                     position(p->label, p->classes, given)]++;
    }
  }
  p->accuracy = (double)right / (double)n;
  p->chance = (double)usual / (double)n;
  return UNICON_OK;
}

static unicon_status report(unicon_ctx *ctx, const probe *p, unicon_result **out) {
  unicon_result *r = unicon__result_new(ctx);
  unicon__result_real(ctx, r, "accuracy", p->accuracy);
  unicon__result_real(ctx, r, "train_accuracy", p->train_accuracy);
  unicon__result_real(ctx, r, "chance", p->chance);
  unicon__result_real(ctx, r, "loss", p->log.loss);
  unicon__result_real(ctx, r, "gradient", p->log.gradient);
  unicon__result_integer(ctx, r, "iterations", p->log.steps);
  unicon__result_integer(ctx, r, "train_rows", p->train.count);
  unicon__result_integer(ctx, r, "test_rows", p->test.count);
  unicon__result_integer(ctx, r, "unseen", p->unseen);
  unicon__result_integers(ctx, r, "labels", p->label, p->classes, 0);
  if (p->confusion)
    unicon__result_integers(ctx, r, "confusion", p->confusion, p->classes, p->classes);
  return unicon__result_done(r, out);
}

static unicon_status run_probe(unicon_ctx *ctx, probe *p, const unicon_view *train,
                               const unicon_view *test, const unicon_options *options,
                               unicon_result **out) {
  if (!p->train_label || !p->test_label || !out)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "probe needs the labels of both views and an out pointer");
  UNICON_TRY(unicon__lens_open(ctx, train, &p->train));
  UNICON_TRY(unicon__lens_open(ctx, test, &p->test));
  if (p->train.r != p->test.r)
    return unicon__fail(
        ctx, UNICON_ERR_SHAPE, "%s has %lld dimensions and %s has %lld; both must lie in one space",
        p->train.rows->name, (long long)p->train.r, p->test.rows->name, (long long)p->test.r);
  UNICON_TRY(open_classes(ctx, p));
  if (p->classes <= UNICON__CONFUSION_MAX) UNICON_NEW(ctx, p->confusion, p->classes * p->classes);
  UNICON_TRY(fit_probe(ctx, p, options));
  UNICON_TRY(try_probe(ctx, p));
  return report(ctx, p, out);
}

unicon_status unicon_probe(unicon_ctx *ctx, const unicon_view *train, const int64_t *train_label,
                           const unicon_view *test, const int64_t *test_label,
                           const unicon_options *options, unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  probe p = {.train_label = train_label, .test_label = test_label};
  return unicon__leave(ctx, run_probe(ctx, &p, train, test, options, out));
}
