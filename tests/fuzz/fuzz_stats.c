/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics files, and what is done with those that can be read: described, merged with themselves,
 * written again, fitted, taken from themselves. */
#include "target.h"

#include <math.h>

#include "io/bytes.h"
#include "unicon/stats.h"

enum { SMALL = 64 };

/* What was read is written as the same statistics. */
static void write_again(unicon_ctx *ctx, const unicon_stats *stats) {
  unicon_stats *again = NULL;
  size_t size = 0;
  if (!target_ok(ctx, unicon_stats_to_bytes(ctx, stats, NULL, 0, &size))) return;
  unsigned char *bytes = malloc(size);
  TARGET_HOLDS(bytes != NULL);
  if (target_ok(ctx, unicon_stats_to_bytes(ctx, stats, bytes, size, &size)) &&
      target_ok(ctx, unicon_stats_from_bytes(ctx, bytes, size, &again)))
    (void)target_ok(ctx, unicon_stats_merge(ctx, again, stats));
  unicon_stats_destroy(again);
  free(bytes);
}

static void fit(unicon_ctx *ctx, const unicon_stats *stats) {
  unicon_options *options = NULL;
  unicon_model *model = NULL;
  TARGET_HOLDS(target_ok(ctx, unicon_options_create(ctx, &options)));
  TARGET_HOLDS(target_ok(ctx, unicon_options_set(ctx, options, "preset", "fast")));
  if (target_ok(ctx, unicon_stats_fit(ctx, stats, NULL, options, &model)))
    for (int64_t k = 0; k < unicon_model_rank(model); k++)
      TARGET_HOLDS(isfinite(unicon_model_spectrum(model)[k]));
  unicon_model_destroy(model);
  unicon_options_destroy(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon_stats *stats = NULL;
  unicon_result *about = NULL;
  double features[2] = {0, 0};
  if (target_ok(ctx,
                unicon_stats_from_bytes(ctx, data ? data : (const uint8_t *)"", size, &stats))) {
    TARGET_HOLDS(target_ok(ctx, unicon_stats_describe(ctx, stats, &about)));
    (void)unicon_result_number(about, "features_x", &features[0]);
    (void)unicon_result_number(about, "features_y", &features[1]);
    write_again(ctx, stats);
    if (features[0] <= SMALL && features[1] <= SMALL) fit(ctx, stats);
    (void)target_ok(ctx, unicon_stats_merge(ctx, stats, stats));
    (void)target_ok(ctx, unicon_stats_subtract(ctx, stats, stats, NULL));
  }
  unicon_result_destroy(about);
  unicon_stats_destroy(stats);
  target_done(ctx);
  return 0;
}
