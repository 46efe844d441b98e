/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that are kept: fixed maps, the sums, a sample of the rows and, if wanted, a ledger
 * (unicon/stats.h). The features are not centred (c = 0): there is nothing to agree on beside the
 * maps, and float64 products of float32 features lose no more than the digits that the square of the
 * mean has over the variance. */
#ifndef UNICON_KEPT_KEPT_H
#define UNICON_KEPT_KEPT_H

#include "base/options.h"
#include "features/dataset.h"
#include "kept/ledger.h"
#include "kept/sample.h"
#include "model/model.h"
#include "solve/stats.h"
#include "unicon/stats.h"

struct unicon_stats {
  unicon__arena arena; /* holds everything below, this struct too */
  const char *name;    /* what errors call them: the path, or "the statistics" */
  unicon__map map[2];  /* without means */
  bool unpaired;       /* rows without a partner count */
  unicon__stats sums;  /* in float64 */
  double pairs;
  bool decayed;
  int64_t updates;  /* additions, removals and merges so far */
  char vectors[16]; /* instruction set that the features were computed with; "mixed" */
  unicon__sample sample;
  unicon__ledger ledger;
};

/* An object with nothing in it but its arena. */
unicon_status unicon__kept_new(unicon_ctx *ctx, unicon_stats **out);

/* Empty sums of the maps that are there, of pairs. */
unicon_status unicon__kept_open(unicon_ctx *ctx, unicon_stats *stats);

/* Class labels (kept/classes.c). Sums of labelled rows count every row, as the partners of a label
 * may come later, and have a class for each label that has rows. Empty ones are of either kind. */
unicon_status unicon__kept_open_sums(unicon_ctx *ctx, unicon__arena *arena,
                                     const unicon__map map[2], bool unpaired, const int64_t *key,
                                     int64_t classes, unicon__stats *out);
void unicon__kept_drop_sums(unicon__arena *arena, unicon__stats *sums);
bool unicon__kept_is_empty(const unicon_stats *stats);

/* The sums of `stats` with all classes that `from` has rows of: as they are, or new ones in its
 * arena. */
unicon_status unicon__kept_widen(unicon_ctx *ctx, unicon_stats *stats, const unicon__stats *from,
                                 unicon__stats *out);
/* Drops the classes without rows. */
void unicon__kept_compact(unicon__stats *sums);
double unicon__kept_class_pairs(const unicon__stats *sums);
unicon_status unicon__kept_check_classes(unicon_ctx *ctx, const unicon_stats *stats,
                                         const unicon__stats *part);
/* Fails where these sum pairs, and `name` has labels, or the other way round. */
unicon_status unicon__kept_check_kind(unicon_ctx *ctx, const unicon_stats *stats, bool labels,
                                      const char *name);

/* Has the sample each row that was summed, so that it knows what was never added? */
bool unicon__kept_has_rows(const unicon_stats *stats);

/* Empty statistics with the maps of others. */
unicon_status unicon__kept_like(unicon_ctx *ctx, const unicon_stats *like, unicon_stats **out);

/* Fits the maps on rows, or takes those of a model. */
unicon_status unicon__kept_fit_maps(unicon_ctx *ctx, const unicon_data *data,
                                    const unicon_options *options, unicon_stats *stats);
unicon_status unicon__kept_take_maps(unicon_ctx *ctx, const unicon_model *model,
                                     const unicon_options *options, unicon_stats *stats);

/* A copy of a map without its mean. */
unicon_status unicon__kept_copy_map(unicon_ctx *ctx, unicon__arena *arena, const unicon__map *from,
                                    unicon__map *to);

/* A number that differs between maps. */
uint64_t unicon__kept_hash(const unicon_stats *stats);

/* Fails with a sentence that names what differs unless both have the same maps. */
unicon_status unicon__kept_same(unicon_ctx *ctx, const unicon_stats *a, const unicon_stats *b);

/* What is done with a set beside summing it, or NULL. */
typedef struct unicon__kept_seen {
  unicon_status (*look)(unicon_ctx *ctx, void *state, const unicon__batch *set,
                        const uint64_t *const hash[2]);
  void *state;
} unicon__kept_seen;

/* Adds a set to statistics that nobody else has: a failure leaves them in between. */
unicon_status unicon__kept_add(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *data,
                               const unicon_options *options, const unicon__kept_seen *seen);

/* The sums of `to` += sign `from`, which cannot fail for the same maps. */
unicon_status unicon__kept_sum(unicon_ctx *ctx, const unicon_stats *from, double sign,
                               unicon_stats *to);

/* Fills an object from the bytes of a file called `name`. */
unicon_status unicon__kept_parse(unicon_ctx *ctx, unicon_stats *stats, const char *name,
                                 unicon__bytes bytes);

/* The landmarks of a map and those that are rows which go (kept/landmarks.c); without a list where
 * the map has none. */
typedef struct unicon__landmark {
  double number; /* of its content; ascending */
  int64_t at;
} unicon__landmark;

typedef struct unicon__landmarks {
  const unicon__map *map;
  unicon__landmark *list;
  unsigned char *gone; /* marks those that are rows of a set */
  int64_t found;       /* how many of them */
} unicon__landmarks;

unicon_status unicon__landmarks_list(unicon_ctx *ctx, const unicon__map *map,
                                     unicon__landmarks *out);
/* Marks all that are rows of the set, scaled as the map scales them. */
unicon_status unicon__landmarks_mark(unicon_ctx *ctx, const unicon__source *source,
                                     unicon__landmarks *l);

/* A side with fewer landmarks (kept/fewer.c): features phi become Q^T phi. */
typedef struct unicon__projection {
  int64_t p, left; /* features before and after */
  double *q;       /* p by left, in the context's frame; NULL: nothing changes */
  unicon__map map; /* of the landmarks that are left */
} unicon__projection;

/* `gone` marks landmarks; NULL: none. The new map's tables are allocated in `arena`. */
unicon_status unicon__project_open(unicon_ctx *ctx, unicon__arena *arena, const unicon__map *map,
                                   const unsigned char *gone, unicon__projection *out);
unicon_status unicon__project_sums(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon__projection side[2], const unicon__stats *from,
                                   unicon__stats *out);

#endif
