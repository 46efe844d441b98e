/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a migration: what it works on, the ways that are tried, and what came of each. */
#ifndef UNICON_USE_MIGRATE_H
#define UNICON_USE_MIGRATE_H

#include "base/options.h"
#include "unicon/migrate.h"
#include "use/isotonic.h"
#include "use/likeness.h"
#include "use/neighbours.h"
#include "use/regress.h"

/* Where vectors meet: new queries in the old space, old items in the new space, both elsewhere. */
typedef enum unicon__way {
  UNICON__BRIDGE,
  UNICON__REWRITE,
  UNICON__SHARED,
  UNICON__WAYS
} unicon__way;

/* What a migration works on. Rows have length 1 and come in random order, so that any part of them
 * is a sample. */
typedef struct unicon__move {
  const unicon_options *options;
  int64_t n, items, d[2]; /* pairs in use; the first `items` are searched, in folds */
  int64_t folds;          /* of the items, for maps that have not seen them */
  float *row[2];          /* n by d, old and new */
  int64_t *original;      /* n: their numbers in the files */
  int64_t queries;        /* given, or the items */
  bool self;              /* the items ask for each other */
  const float *query[2];  /* NULL for old: not given */
  const unicon_pairs *judged;
  bool *drawn;         /* of the rows of the files, where there are judgements: in use? */
  unicon__panel panel; /* who judges */
  unicon__likeness like[2];
  uint64_t hash; /* of both files */
} unicon__move;

/* Opens the files of a migration: usable rows of both sides in random order, queries, the right
 * answers. Everything is in the context's frame. */
unicon_status unicon__move_open(unicon_ctx *ctx, const unicon_migration_data *data,
                                const unicon_options *options, unicon__move *move);

/* How many folds so many items are searched in: enough of them that a map has most of the pairs,
 * with enough items each that ten neighbours are few. */
int64_t unicon__move_folds(int64_t items);

/* X and Y of a way: from new to old for a bridge, from old to new for a rewrite; `pairs` of them
 * from row `first` on, with predictions for the first `judged` in folds. */
unicon__regress_data unicon__move_data(const unicon__move *move, unicon__way way, int64_t first,
                                       int64_t pairs, int64_t judged);

/* ---- settings ----------------------------------------------------------------------------- */

/* One setting of a way. */
typedef struct unicon__trial {
  unicon__way way;
  unicon__recipe recipe;
  int64_t pairs; /* fitted on */
  double score;  /* the leading figure; overlap@10 of a bridge */
} unicon__trial;

enum { UNICON__TRIALS = 128 };

typedef struct unicon__contest {
  unicon__trial list[UNICON__TRIALS]; /* all that was tried */
  int count;
  unicon__trial best[2]; /* of bridge and rewrite */
} unicon__contest;

/* Items held out, `first` to first + jury.items - 1, and who is asked about them. A bridge meets
 * queries that are no items, and vectors of two shared spaces cannot be searched together, so these
 * two ways are fitted on the pairs before `first` and judged among these items, beside a rewrite
 * that was fitted so. Right answers are neighbours here. */
typedef struct unicon__held {
  int64_t first;
  const float *item[2], *query[2]; /* of both models; an old query may be NULL */
  unicon__jury jury;
} unicon__held;

/* Tries methods, kernels and ridges for a rewrite. Kernels are compared on a part of the pairs, and
 * the best goes on with all of them. */
unicon_status unicon__contest_rewrite(unicon_ctx *ctx, const unicon__move *move,
                                      unicon__contest *out);

/* The same for a bridge, on held-out items and with one kernel: it seldom leads. */
unicon_status unicon__contest_bridge(unicon_ctx *ctx, const unicon__move *move,
                                     const unicon__held *held, unicon__contest *out);

/* A point of the learning curve: the rewrite fitted on the last `pairs` rows, its ridge chosen
 * again near the given one, judged among the items of the first `folds` folds, which it has not
 * seen. */
unicon_status unicon__contest_learn(unicon_ctx *ctx, const unicon__move *move,
                                    const unicon__trial *trial, int64_t pairs, int64_t folds,
                                    double *score);

/* ---- what came of it ---------------------------------------------------------------------- */

/* The rows of the table: three ways beside what one could do instead. */
typedef enum unicon__row_of_table {
  UNICON__ROW_KEEP,    /* old queries, old index */
  UNICON__ROW_NAIVE,   /* new queries, old index, as if nothing had changed */
  UNICON__ROW_BRIDGE,  /* new queries mapped into the old index */
  UNICON__ROW_REWRITE, /* new queries, index mapped into the new space */
  UNICON__ROW_SHARED,  /* both mapped */
  UNICON__ROW_CASCADE, /* the rewrite, its first 200 of all items embedded anew */
  UNICON__ROW_REEMBED, /* new queries, all embedded anew */
  UNICON__TABLE_ROWS
} unicon__row_of_table;

typedef struct unicon__entry {
  bool known;
  char how[64];
  int64_t items; /* searched at a time */
  int64_t pairs; /* fitted on; 0: nothing is fitted */
  unicon__figures figures;
  double *each; /* figures of every query, or NULL */
} unicon__entry;

/* What was measured among held-out items. */
typedef struct unicon__held_result {
  bool known;
  unicon__figures figures;
  double *each;
} unicon__held_result;

enum { UNICON__POINTS = 4, UNICON__SIZES = 3, UNICON__CUTS = 5 };

typedef struct unicon__outcome {
  const unicon__move *move;
  unicon__contest contest;
  unicon__held held;
  unicon__held_result keep_there, there[UNICON__WAYS];
  int setting; /* of the shared space */
  unicon__entry entry[UNICON__TABLE_ROWS];
  unicon__way way;     /* of the model */
  const char *verdict; /* rewrite, bridge, shared or keep */
  char sentence[1024];
  float *left;            /* items by e: the rewrite of each item by a map without its fold */
  unicon__regression map; /* of the rewrite, fitted on all pairs */
  /* How the score of a rewrite grows with the pairs, and what twice as many would add: */
  int64_t curve_pairs[UNICON__POINTS];
  double curve_score[UNICON__POINTS], more;
  double missing; /* what the pairs of a fold would add, which maps were judged without */
  int curve_points;
  bool enough;
  /* How its overlap@k falls with the items searched, by maps of half of the pairs, and what to
   * expect of an index: */
  int64_t size_items[UNICON__SIZES];
  double size_score[UNICON__SIZES][UNICON__CUTS];
  int size_points;
  int64_t index_rows; /* 0: not asked */
  double index_score, index_low, index_high;
  /* Mean distance of scores to those of the old and the new model, before and after the curves, on
   * queries that the curves have not seen: */
  double off_before[2], off_after[2];
  bool off_known; /* of two queries or more */
} unicon__outcome;

/* The k of size_score. */
extern const int unicon__cuts[UNICON__CUTS];

/* Bridge and shared space among held-out items, beside the rewrite and the old model. Nothing
 * where there are too few. */
unicon_status unicon__held_run(unicon_ctx *ctx, unicon__outcome *o);

/* A trial fitted on the pairs before the held-out items: these (rewrite) or their queries (bridge)
 * through its map, in the context's frame. */
unicon_status unicon__held_map(unicon_ctx *ctx, const unicon__move *move, const unicon__held *held,
                               const unicon__trial *trial, float **out);

/* The shared space of a setting, fitted on the first `pairs`; a new object. What it is, in words.
 */
unicon_status unicon__shared_fit(unicon_ctx *ctx, const unicon__move *move, int setting,
                                 int64_t pairs, unicon_model **out);
const char *unicon__shared_name(int setting);

/* How the score grows with the pairs. */
unicon_status unicon__outcome_learn(unicon_ctx *ctx, unicon__outcome *o);
/* ... and falls with the items. */
unicon_status unicon__outcome_shrink(unicon_ctx *ctx, unicon__outcome *o);

/* Makes the model of the way: map, likeness, curves, metadata. */
unicon_status unicon__outcome_model(unicon_ctx *ctx, unicon__outcome *o, unicon_model **out);

/* Which way, by what was measured and option `into`; then verdict and sentence. */
unicon_status unicon__outcome_choose(unicon_ctx *ctx, unicon__outcome *o);
void unicon__outcome_decide(unicon__outcome *o);

/* "kernel angular, ridge 1e-06" */
void unicon__recipe_say(const unicon__recipe *recipe, char *out, size_t size);

/* The decision as JSON, in `arena`. */
unicon_status unicon__outcome_json(unicon_ctx *ctx, unicon__arena *arena, const unicon__outcome *o,
                                   char **out);

#endif
