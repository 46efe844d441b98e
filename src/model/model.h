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
  float *weight[2]; /* map.out by rank; NULL: the rows are vectors of the space already */
  float *offset[2]; /* rank, added to the product; NULL: nothing is */
  double share;     /* weight in a fused model */
} unicon__part;

/* What rows of a side looked like when the model was made, so that others can be told from them:
 * the mean of the rows at length 1, and leading principal directions around it. */
typedef struct unicon__likeness {
  int64_t axes;                 /* 0: nothing is known */
  float *mean;                  /* d */
  float *axis;                  /* axes by d, orthonormal */
  double share;                 /* of the variance around the mean that lies in the axes */
  double length, length_spread; /* of the rows as they came: mean and standard deviation */
} unicon__likeness;

/* A curve that never falls: `value` at `at`, straight between; outside it goes on as steeply as
 * from its first knot to its last, up to 1 and down to -1. */
typedef struct unicon__curve {
  int64_t knots;
  float *knot; /* knots by 2: at, value; at ascending */
} unicon__curve;

/* Spaces of a migration, and the order of its curves. */
enum { UNICON__OLD, UNICON__NEW };

struct unicon_model {
  unicon__arena arena; /* holds everything below, this struct too */
  int64_t rank;        /* of all parts together */
  unicon__part *part;
  int64_t parts;
  float *spectrum; /* rank */
  unicon_balance balance;
  unicon__likeness like[2];
  unicon__curve curve[2]; /* from scores of this model to cosines of the old and the new model */
  unicon__meta *meta;     /* sorted by key once the model is done */
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

/* Reads the maps alone, by the names and metadata of a model of one part; the metadata are noted.
 */
unicon_status unicon__model_parse_maps(unicon_ctx *ctx, unicon_model *model, const char *path,
                                       const unicon__safetensors *file);

/* Fills an empty model from the bytes of a file called `path`. */
unicon_status unicon__model_parse(unicon_ctx *ctx, unicon_model *model, const char *path,
                                  unicon__bytes bytes);

/* The model in a file. */
unicon_status unicon__model_load(unicon_ctx *ctx, const char *path, unicon_model **out);

/* Sorts the metadata; called once when the model is complete. */
void unicon__model_seal(unicon_model *model);

#endif
