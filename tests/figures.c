/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include "support.h"

double figures_number(const unicon_result *r, const char *name) {
  double value;
  if (unicon_result_number(r, name, &value) != UNICON_OK) fail_msg("there is no number %s", name);
  return value;
}

static int64_t integer(const unicon_result *r, const char *name) {
  assert_int_equal(unicon_result_kind(r, name), UNICON_KIND_INTEGER);
  return (int64_t)figures_number(r, name);
}

/* The number "WAY.PART.NAME", or NaN. */
static double maybe(const unicon_result *r, const char *way, const char *part, const char *name) {
  char whole[96];
  double value;
  snprintf(whole, sizeof whole, "%s%s%s.%s", way, *part ? "." : "", part, name);
  unicon_result_number(r, whole, &value);
  return value;
}

static void read_direction(const unicon_result *r, const char *way, figures *out) {
  out->pairs = integer(r, "pairs");
  out->queries = (int64_t)maybe(r, way, "", "queries");
  out->candidates = (int64_t)maybe(r, way, "", "candidates");
  for (int m = 0; m < UNICON__METRIC_COUNT; m++) {
    const char *name = unicon__metric_name[m];
    char ci[96];
    int64_t count;
    snprintf(ci, sizeof ci, "%s.ci.%s", way, name);
    const double *interval = unicon_result_reals(r, ci, &count, NULL);
    if (interval) assert_int_equal(count, 2);
    out->value[m] = maybe(r, way, "", name);
    out->plain[m] = maybe(r, way, "plain", name);
    out->chance[m] = maybe(r, way, "chance", name);
    out->low[m] = interval ? interval[0] : NAN;
    out->high[m] = interval ? interval[1] : NAN;
  }
  out->hub_skew = maybe(r, way, "hubs", "skewness");
  out->hub_never = maybe(r, way, "hubs", "never_found");
  out->plain_hub_skew = maybe(r, way, "hubs", "plain_skewness");
  out->plain_hub_never = maybe(r, way, "hubs", "plain_never_found");
}

unicon_status figures_evaluate(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                               const unicon_pairs *pairs, const unicon_options *options,
                               figures *to_y, figures *to_x) {
  unicon_result *r = (unicon_result *)(void *)to_y;
  const unicon_status status = unicon_evaluate(ctx, x, y, pairs, options, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  if (status != UNICON_OK) return status;
  read_direction(r, "x_to_y", to_y);
  read_direction(r, "y_to_x", to_x);
  unicon_result_destroy(r);
  return UNICON_OK;
}

static void read_suspects(const unicon_result *r, unicon__suspect *out, int64_t *count) {
  const int64_t *x = unicon_result_integers(r, "suspects.x", count, NULL);
  const int64_t *y = unicon_result_integers(r, "suspects.y", NULL, NULL);
  const double *cosine = unicon_result_reals(r, "suspects.cosine", NULL, NULL);
  const double *closer = unicon_result_reals(r, "suspects.closer", NULL, NULL);
  assert_true(x && y && cosine && closer);
  for (int64_t k = 0; k < *count; k++) out[k] = (unicon__suspect){x[k], y[k], cosine[k], closer[k]};
}

unicon_status figures_check(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                            int64_t room, unicon__suspect *suspects, check_figures *out) {
  unicon_result *r = (unicon_result *)(void *)out;
  const unicon_status status = unicon_check(ctx, data, options, room, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  if (status != UNICON_OK) return status;
  memset(out, 0, sizeof *out);
  const double *spectrum = unicon_result_reals(r, "spectrum", &out->spectrum_count, NULL);
  memcpy(out->spectrum, spectrum, (size_t)out->spectrum_count * sizeof *spectrum);
  out->pairs = integer(r, "pairs");
  out->rows_x = integer(r, "rows_x");
  out->rows_y = integer(r, "rows_y");
  out->rank = integer(r, "rank");
  out->graded = integer(r, "graded");
  out->doubtful = integer(r, "doubtful");
  out->noise = figures_number(r, "noise");
  out->cosine = figures_number(r, "cosine");
  out->chance = figures_number(r, "chance");
  out->p_value = figures_number(r, "p_value");
  out->closer = figures_number(r, "closer");
  assert_non_null(strstr(unicon_result_text(r, "verdict"), "align"));
  read_suspects(r, suspects, &out->suspects);
  unicon_result_destroy(r);
  return UNICON_OK;
}

/* A square matrix of integers into `out`, unless that is NULL. */
static void read_square(const unicon_result *r, const char *name, int64_t size, int64_t *out) {
  int64_t rows, width;
  const int64_t *values = unicon_result_integers(r, name, &rows, &width);
  assert_non_null(values);
  assert_true(rows == size && width == size);
  if (out) memcpy(out, values, (size_t)(size * size) * sizeof *out);
}

unicon_status figures_classify(unicon_ctx *ctx, const unicon_view *rows, const int64_t *label,
                               const unicon_view *classes, int64_t *answer, int64_t *confusion,
                               classify_figures *out) {
  unicon_result *r = (unicon_result *)(void *)out;
  const unicon_status status = unicon_classify(ctx, rows, label, classes, answer, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  if (status != UNICON_OK) return status;
  *out = (classify_figures){integer(r, "rows"),
                            integer(r, "classes"),
                            figures_number(r, "accuracy"),
                            figures_number(r, "top5"),
                            figures_number(r, "mean_class_accuracy"),
                            figures_number(r, "chance")};
  read_square(r, "confusion", out->classes, confusion);
  unicon_result_destroy(r);
  return UNICON_OK;
}

unicon_status figures_probe(unicon_ctx *ctx, const unicon_view *train, const int64_t *train_label,
                            const unicon_view *test, const int64_t *test_label,
                            const unicon_options *options, int64_t *label, int64_t *confusion,
                            probe_figures *out) {
  unicon_result *r = (unicon_result *)(void *)out;
  const unicon_status status = unicon_probe(ctx, train, train_label, test, test_label, options, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  if (status != UNICON_OK) return status;
  *out = (probe_figures){.unseen = integer(r, "unseen"),
                         .iterations = integer(r, "iterations"),
                         .accuracy = figures_number(r, "accuracy"),
                         .train_accuracy = figures_number(r, "train_accuracy"),
                         .chance = figures_number(r, "chance"),
                         .loss = figures_number(r, "loss"),
                         .gradient = figures_number(r, "gradient")};
  const int64_t *labels = unicon_result_integers(r, "labels", &out->classes, NULL);
  if (label) memcpy(label, labels, (size_t)out->classes * sizeof *label);
  read_square(r, "confusion", out->classes, confusion);
  assert_int_equal(integer(r, "train_rows"), unicon_rows_count(train->rows));
  assert_int_equal(integer(r, "test_rows"), unicon_rows_count(test->rows));
  unicon_result_destroy(r);
  return UNICON_OK;
}

unicon_status figures_plan(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                           plan_figures *out) {
  unicon_result *r = (unicon_result *)(void *)out;
  const unicon_status status = unicon_plan(ctx, data, options, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  if (status != UNICON_OK) return status;
  *out = (plan_figures){(double)integer(r, "memory"),
                        {(double)integer(r, "reads_x"), (double)integer(r, "reads_y")},
                        (double)integer(r, "plane_sweeps"),
                        figures_number(r, "flops"),
                        figures_number(r, "seconds"),
                        ""};
  snprintf(out->advice, sizeof out->advice, "%s", unicon_result_text(r, "advice"));
  unicon_result_destroy(r);
  return UNICON_OK;
}
