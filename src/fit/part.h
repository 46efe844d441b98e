/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a model: rows prepared, the closed form, spectral steps and refine where asked for,
 * the factors stored. */
#ifndef UNICON_FIT_PART_H
#define UNICON_FIT_PART_H

#include "model/model.h"
#include "select/params.h"

/* What a part is fitted on and with. */
typedef struct unicon__part_job {
  const unicon__params *params;
  unicon__batch data;             /* sources without maps, and pairs */
  unicon__prepared *prepared;     /* the same made ready before, or NULL */
  unicon__cut cut;                /* into batches */
  const unicon__validation *held; /* held-out rows without maps or banks, or NULL */
  const int64_t *landmark[2];
  int64_t landmarks;
  unicon__arena *arena; /* of the model */
} unicon__part_job;

/* What happened, for the metadata. */
typedef struct unicon__part_log {
  unicon__solve_log solve; /* its spectrum lives in the frame */
  unicon__refine_log refine;
} unicon__part_log;

unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__part_log *log);

#endif
