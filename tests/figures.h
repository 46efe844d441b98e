/* SPDX-License-Identifier: Apache-2.0 */
/* Named results as plain structs, so that tests can write down and compare what they expect. Each
 * call is the public one; where it fails nothing is filled. */
#ifndef UNICON_TESTS_FIGURES_H
#define UNICON_TESTS_FIGURES_H

#include "score/retrieval.h"
#include "unicon/tools.h"
#include "use/suspect.h"

/* A number that must be there. */
double figures_number(const unicon_result *r, const char *name);

/* One direction of unicon_evaluate; NaN where there is no entry. */
typedef struct figures {
  int64_t queries, candidates, pairs;
  double value[UNICON__METRIC_COUNT], plain[UNICON__METRIC_COUNT];
  double low[UNICON__METRIC_COUNT], high[UNICON__METRIC_COUNT], chance[UNICON__METRIC_COUNT];
  double hub_skew, plain_hub_skew, hub_never, plain_hub_never;
} figures;

unicon_status figures_evaluate(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                               const unicon_pairs *pairs, const unicon_options *options,
                               figures *to_y, figures *to_x);

typedef struct check_figures {
  int64_t pairs, rows_x, rows_y, spectrum_count, rank, graded, doubtful, suspects;
  double spectrum[64], noise, cosine, chance, p_value, closer;
} check_figures;

/* `room` suspects at most go to `suspects`. */
unicon_status figures_check(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                            int64_t room, unicon__suspect *suspects, check_figures *out);

typedef struct classify_figures {
  int64_t rows, classes;
  double accuracy, top5, mean_class_accuracy, chance;
} classify_figures;

unicon_status figures_classify(unicon_ctx *ctx, const unicon_view *rows, const int64_t *label,
                               const unicon_view *classes, int64_t *answer, int64_t *confusion,
                               classify_figures *out);

typedef struct probe_figures {
  int64_t classes, unseen, iterations;
  double accuracy, train_accuracy, chance, loss, gradient;
} probe_figures;

/* Labels and the confusion matrix go to `label` and `confusion`, unless NULL. */
unicon_status figures_probe(unicon_ctx *ctx, const unicon_view *train, const int64_t *train_label,
                            const unicon_view *test, const int64_t *test_label,
                            const unicon_options *options, int64_t *label, int64_t *confusion,
                            probe_figures *out);

typedef struct plan_figures {
  double memory, reads[2], plane_sweeps, flops, seconds;
  char advice[320];
} plan_figures;

unicon_status figures_plan(unicon_ctx *ctx, const unicon_data *data, const unicon_options *options,
                           plan_figures *out);

#endif
