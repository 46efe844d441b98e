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

/* What a migration works on. Rows have length 1 and come in random order, so that the first of them
 * are a sample. */
typedef struct unicon__move {
  const unicon_options *options;
  int64_t n, items, d[2]; /* pairs in use; the first `items` are searched */
  float *row[2];          /* n by d, old and new */
  int64_t *original;      /* n: their numbers in the files */
  int64_t queries;
  const float *query[2]; /* NULL for old: not given */
  unicon__jury jury;     /* all queries */
  unicon__jury quick;    /* the first of them, to compare settings */
  unicon__likeness like[2];
  uint64_t hash; /* of both files */
} unicon__move;

/* Opens the files of a migration: usable rows of both sides in random order, queries, the right
 * answers. Everything is in the context's frame. */
unicon_status unicon__move_open(unicon_ctx *ctx, const unicon_migration_data *data,
                                const unicon_options *options, unicon__move *move);

/* X and Y of a way: from new to old for a bridge, from old to new for a rewrite; the first `pairs`
 * of them. */
unicon__regress_data unicon__move_data(const unicon__move *move, unicon__way way, int64_t pairs);

/* One setting of a way. */
typedef struct unicon__trial {
  unicon__way way;
  unicon__recipe recipe;
  int64_t pairs, items; /* fitted on, judged among */
  double score;         /* the leading figure on quick queries */
} unicon__trial;

enum { UNICON__TRIALS = 128 };

typedef struct unicon__contest {
  unicon__trial list[UNICON__TRIALS]; /* all that was tried */
  int count;
  unicon__trial best[UNICON__WAYS]; /* of bridge and rewrite, fitted on all pairs */
} unicon__contest;

/* Tries methods, kernels and ridges for bridge and rewrite. Kernels are compared on a part of the
 * pairs, and the best goes on with all of them. */
unicon_status unicon__contest_run(unicon_ctx *ctx, const unicon__move *move, unicon__contest *out);

/* The k nearest items of each query when the way is deployed. `left` are predictions for items
 * without themselves: items of a rewrite, or queries of a bridge that are items; `map` serves a
 * bridge for other queries. */
unicon_status unicon__way_find(unicon_ctx *ctx, const unicon__move *move, const unicon__jury *jury,
                               const unicon__trial *trial, const float *left,
                               const unicon__regression *map, int64_t k, int64_t *list);

/* A point of the learning curve: the recipe fitted on the first `pairs`, its ridge chosen again
 * near the given one, judged among all items. */
unicon_status unicon__contest_learn(unicon_ctx *ctx, const unicon__move *move,
                                    const unicon__trial *trial, int64_t pairs, double *score);

/* The shared space: fitted on three quarters of the pairs and judged among the last quarter, beside
 * the other way on the same rows. */
typedef struct unicon__shared_result {
  bool tried;
  int64_t pairs, items;
  int setting;
  unicon__figures figures, other;
  double gain, error; /* mean of the differences, and its standard error */
} unicon__shared_result;

unicon_status unicon__shared_try(unicon_ctx *ctx, const unicon__move *move,
                                 const unicon__trial *rival, unicon__shared_result *out);

/* What a setting is, in words. */
const char *unicon__shared_name(int setting);

/* A setting fitted on the first `pairs`; a new object. */
unicon_status unicon__shared_fit(unicon_ctx *ctx, const unicon__move *move, int setting,
                                 int64_t pairs, unicon_model **out);

/* ---- what came of it ---------------------------------------------------------------------- */

/* The rows of the table: three ways beside what one could do instead. */
typedef enum unicon__row_of_table {
  UNICON__ROW_KEEP,    /* old queries, old index */
  UNICON__ROW_NAIVE,   /* new queries, old index, as if nothing had changed */
  UNICON__ROW_BRIDGE,  /* new queries mapped into the old index */
  UNICON__ROW_REWRITE, /* new queries, index mapped into the new space */
  UNICON__ROW_SHARED,  /* both mapped */
  UNICON__ROW_CASCADE, /* the better of bridge and rewrite, its first 200 embedded anew */
  UNICON__ROW_REEMBED, /* new queries, all embedded anew */
  UNICON__TABLE_ROWS
} unicon__row_of_table;

typedef struct unicon__entry {
  bool known;
  char how[64];
  int64_t items; /* searched */
  unicon__figures figures;
  double *each; /* the leading figure of every query, or NULL */
} unicon__entry;

/* A way fitted on all pairs. */
typedef struct unicon__fitted {
  unicon__trial trial;
  float *left;            /* items by e: predictions for items without themselves */
  unicon__regression map; /* of all pairs */
  int64_t *list;          /* of all queries: the first 200 */
} unicon__fitted;

enum { UNICON__POINTS = 4 };

typedef struct unicon__outcome {
  const unicon__move *move;
  unicon__contest contest;
  unicon__shared_result shared;
  unicon__entry entry[UNICON__TABLE_ROWS];
  unicon__way lead;    /* the better of bridge and rewrite */
  unicon__way way;     /* of the model */
  const char *verdict; /* rewrite, bridge, shared or keep */
  char sentence[1024];
  /* How the score of the lead grows with the pairs, and what twice as many would add: */
  int64_t curve_pairs[UNICON__POINTS];
  double curve_score[UNICON__POINTS], more;
  int curve_points;
  bool enough;
  /* How overlap@10 falls with the items searched, and what to expect of an index: */
  int64_t size_items[UNICON__POINTS];
  double size_score[UNICON__POINTS];
  int size_points;
  int64_t index_rows; /* 0: not asked */
  double index_score, index_low, index_high;
  /* Mean distance of scores to those of the old and the new model, before and after the curves, on
   * queries that the curves have not seen: */
  double off_before[2], off_after[2];
} unicon__outcome;

/* "kernel map, angular, ridge 1e-06" */
void unicon__recipe_say(const unicon__recipe *recipe, char *out, size_t size);

/* How the score grows with the pairs. */
unicon_status unicon__outcome_learn(unicon_ctx *ctx, unicon__outcome *o);
/* ... and falls with the items; of the lead. */
unicon_status unicon__outcome_shrink(unicon_ctx *ctx, unicon__outcome *o, const unicon__fitted *f);

/* Makes the model of the way: map, likeness, curves, metadata. `f` is the way's fit, and for a
 * shared space that of the lead. */
unicon_status unicon__outcome_model(unicon_ctx *ctx, unicon__outcome *o, const unicon__fitted *f,
                                    unicon_model **out);

/* Verdict and sentence. */
void unicon__outcome_decide(unicon__outcome *o);

/* The decision as JSON, in `arena`. */
unicon_status unicon__outcome_json(unicon_ctx *ctx, unicon__arena *arena, const unicon__outcome *o,
                                   char **out);

#endif
