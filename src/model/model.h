/* SPDX-License-Identifier: Apache-2.0 */
/* The fitted model: per side a feature map and a weight matrix F; spectrum and metadata.
 *
 * A fused model has several parts (one per batch of a kernel fit). Its embedding is the parts'
 * unit embeddings side by side, each times the square root of its weight, so that the cosine of
 * two fused vectors is the weighted mean of the parts' cosines (docs/method.md section 6). */
#ifndef UNICON_MODEL_MODEL_H
#define UNICON_MODEL_MODEL_H

#include "score/balance.h"
#include "features/feature.h"
#include "io/safetensors.h"

typedef struct unicon__part {
  int64_t rank;
  unicon__map map[2];
  float *weight[2]; /* map.out by rank */
  double share;     /* weight in a fused model */
} unicon__part;

struct unicon_model {
  unicon__arena arena; /* holds everything below, this struct too */
  int64_t rank;        /* of all parts together */
  unicon__part *part;
  int64_t parts;
  float *spectrum; /* rank */
  unicon_balance balance;
  unicon__meta *meta; /* sorted by key once the model is done */
  int64_t metas, meta_room;
};

/* An empty model with an arena of its own. */
unicon_status unicon__model_create(unicon_ctx *ctx, unicon_model **out);

/* Adds a metadata entry: text, a whole number, a number with so many digits, or a list of them
 * separated by blanks. */
unicon_status unicon__model_note_text(unicon_ctx *ctx, unicon_model *model, const char *key,
                                      const char *value);
unicon_status unicon__model_note_integer(unicon_ctx *ctx, unicon_model *model, const char *key,
                                         int64_t value);
unicon_status unicon__model_note_real(unicon_ctx *ctx, unicon_model *model, const char *key,
                                      int digits, double value);
unicon_status unicon__model_note_numbers(unicon_ctx *ctx, unicon_model *model, const char *key,
                                         const double *values, int count);

/* Fills an empty model with all of another but its balance and what the metadata say of it: the
 * held-out score is left out as well. */
unicon_status unicon__model_copy(unicon_ctx *ctx, const unicon_model *from, unicon_model *to);

/* A copy of a part's map and weights of one side, in the model's arena. */
unicon_status unicon__part_copy_side(unicon_ctx *ctx, unicon__arena *arena,
                                     const unicon__part *from, int side, unicon__part *to);

/* Notes what the feature maps are. */
unicon_status unicon__model_note_maps(unicon_ctx *ctx, unicon_model *model);

/* Fills an empty model from the bytes of a file called `path`. */
unicon_status unicon__model_parse(unicon_ctx *ctx, unicon_model *model, const char *path,
                                  unicon__bytes bytes);

/* The model in a file. */
unicon_status unicon__model_load(unicon_ctx *ctx, const char *path, unicon_model **out);

/* Sorts the metadata; called once when the model is complete. */
void unicon__model_seal(unicon_model *model);

#endif
