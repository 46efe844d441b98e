/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a model that was fitted: options in force, sizes, certificate, logs of the steps
 * and epochs. No times, paths or dates. */
#ifndef UNICON_FIT_DESCRIBE_H
#define UNICON_FIT_DESCRIBE_H

#include "fit/part.h"
#include "fit/stored.h"

typedef struct unicon__fitted {
  const unicon_options *options;
  const unicon__params *params;
  const unicon__dataset *train;
  const unicon_stats *stats; /* in the place of the training rows, or NULL */
  bool judged;               /* the log has held-out scores */
  const unicon__part_log *log;
} unicon__fitted;

/* Notes all of it and seals the metadata. */
unicon_status unicon__describe_fit(unicon_ctx *ctx, const unicon__fitted *f, unicon_model *model);

#endif
