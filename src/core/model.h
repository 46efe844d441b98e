/* SPDX-License-Identifier: Apache-2.0 */
/* The fitted model: per side a feature map and a weight matrix F; spectrum and metadata. */
#ifndef UNICON_CORE_MODEL_H
#define UNICON_CORE_MODEL_H

#include "core/feature.h"
#include "io/safetensors.h"

enum { UNICON__META_MAX = 96 };

struct unicon_model {
  unicon__arena arena; /* holds everything below, this struct too */
  int64_t rank;
  unicon__map map[2];
  float *weight[2]; /* map.out by rank */
  float *spectrum;  /* rank */
  unicon__meta meta[UNICON__META_MAX]; /* sorted by key once the model is done */
  int64_t metas;
};

/* An empty model with an arena of its own. */
unicon_status unicon__model_create(unicon_ctx *ctx, unicon_model **out);

/* Adds a metadata entry. */
unicon_status unicon__model_note(unicon_ctx *ctx, unicon_model *model, const char *key,
                                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sorts the metadata; called once when the model is complete. */
void unicon__model_seal(unicon_model *model);

#endif
