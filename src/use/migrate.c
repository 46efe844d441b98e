/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_migrate: tries the ways, judges them as deployed, and makes the model of the best. */
#include "use/migrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/object.h"
#include "linalg/vec.h"

enum { CASCADE = 200, CASCADE_QUERIES = 1000 };

struct unicon_migration {
  unicon__arena arena;
  unicon_model *model;
  char *json;
};

/* ---- the table ---------------------------------------------------------------------------- */

static unicon__entry *entry_of(unicon__outcome *o, unicon__row_of_table row, const char *how) {
  unicon__entry *entry = &o->entry[row];
  entry->known = true;
  entry->items = o->move->items / o->move->panel.folds;
  snprintf(entry->how, sizeof entry->how, "%s", how);
  return entry;
}

/* Two sets of rows as they are. */
static unicon_status judge_plain(unicon_ctx *ctx, unicon__outcome *o, unicon__row_of_table row,
                                 const char *how, int query_side, int item_side) {
  const unicon__move *move = o->move;
  unicon__entry *entry = entry_of(o, row, how);
  UNICON_NEW(ctx, entry->each, move->queries * UNICON__FIGURES);
  return unicon__panel_rows(ctx, &move->panel, move->query[query_side], move->row[item_side],
                            move->d[item_side], entry->each, &entry->figures);
}

/* The rewrite: its items by maps without their fold, and its map of all pairs. */
static unicon_status judge_rewrite(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  const unicon__regress_data data =
      unicon__move_data(move, UNICON__REWRITE, 0, move->n, move->items);
  const unicon__recipe *recipe = &o->contest.best[UNICON__REWRITE].recipe;
  char how[64];
  unicon__regress *regress;
  unicon__recipe_say(recipe, how, sizeof how);
  unicon__entry *entry = entry_of(o, UNICON__ROW_REWRITE, how);
  entry->pairs = move->n - move->items / move->folds;
  UNICON_NEW(ctx, entry->each, move->queries * UNICON__FIGURES);
  UNICON_NEW(ctx, o->left, move->items * data.e);
  UNICON_TRY(unicon__regress_open(ctx, &data, recipe, &regress));
  UNICON_TRY(unicon__regress_fit(ctx, regress, recipe->ridge, o->left, &o->map));
  unicon__regress_close(ctx, regress);
  return unicon__panel_rows(ctx, &move->panel, move->query[UNICON__NEW], o->left, data.e,
                            entry->each, &entry->figures);
}

typedef struct ranked {
  double score;
  int64_t id;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *left = a, *right = b;
  if (left->score != right->score) return left->score < right->score ? 1 : -1;
  return (left->id > right->id) - (left->id < right->id);
}

/* The first 200 of a query in the order of the new model. */
static void rerank(const unicon__move *move, int64_t query, int64_t *list) {
  const int64_t e = move->d[UNICON__NEW];
  const float *asked = move->query[UNICON__NEW] + query * e;
  ranked r[CASCADE];
  int count = 0;
  for (int k = 0; k < CASCADE; k++)
    if (list[k] >= 0)
      r[count++] = (ranked){unicon__vec_best()->dot(asked, move->row[UNICON__NEW] + list[k] * e, e),
                            list[k]};
  qsort(r, (size_t)count, sizeof *r, compare_ranked);
  for (int k = 0; k < count; k++) list[k] = r[k].id;
}

/* 200 are few of all items but not of a fold, so all are searched; that some maps have seen a
 * neighbour of what they predict weighs little for places that far down. Nothing where 200 are most
 * of the items. */
static unicon_status judge_cascade(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  const int64_t e = move->d[UNICON__NEW];
  const float *query = move->query[UNICON__NEW];
  if (move->items < 2 * CASCADE) return UNICON_OK;
  unicon__entry *entry = entry_of(o, UNICON__ROW_CASCADE, "rewrite, first 200 embedded anew");
  unicon__jury jury = {.queries = move->queries < CASCADE_QUERIES ? move->queries : CASCADE_QUERIES,
                       .items = move->items,
                       .self = move->self,
                       .judged = move->judged,
                       .original = move->original,
                       .drawn = move->drawn};
  int64_t *list;
  double *each;
  entry->items = move->items;
  UNICON_NEW(ctx, list, jury.queries * CASCADE);
  UNICON_NEW(ctx, each, jury.queries * UNICON__FIGURES);
  UNICON_TRY(unicon__jury_open(ctx, query, move->row[UNICON__NEW], e, &jury));
  UNICON_TRY(unicon__jury_find(ctx, &jury, query, o->left, e, CASCADE, list));
  for (int64_t q = 0; q < jury.queries; q++) rerank(move, q, list + q * CASCADE);
  unicon__jury_judge(&jury, list, CASCADE, each);
  unicon__figures_of(each, jury.queries, &entry->figures);
  return UNICON_OK;
}

/* What is measured among held-out items, as rows. */
static void enter_held(unicon__outcome *o, unicon__way way, unicon__row_of_table row,
                       const char *how) {
  if (!o->there[way].known) return;
  unicon__entry *entry = entry_of(o, row, how);
  entry->items = o->held.jury.items;
  entry->pairs = o->held.first;
  entry->figures = o->there[way].figures;
}

static unicon_status fill_table(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  char how[64];
  if (move->query[UNICON__OLD])
    UNICON_TRY(
        judge_plain(ctx, o, UNICON__ROW_KEEP, "old queries, old index", UNICON__OLD, UNICON__OLD));
  if (move->d[0] == move->d[1])
    UNICON_TRY(
        judge_plain(ctx, o, UNICON__ROW_NAIVE, "new queries, old index", UNICON__NEW, UNICON__OLD));
  UNICON_TRY(
      judge_plain(ctx, o, UNICON__ROW_REEMBED, "new queries, new index", UNICON__NEW, UNICON__NEW));
  UNICON_TRY(judge_rewrite(ctx, o));
  UNICON_TRY(judge_cascade(ctx, o));
  UNICON_TRY(unicon__held_run(ctx, o));
  unicon__recipe_say(&o->contest.best[UNICON__BRIDGE].recipe, how, sizeof how);
  enter_held(o, UNICON__BRIDGE, UNICON__ROW_BRIDGE, how);
  enter_held(o, UNICON__SHARED, UNICON__ROW_SHARED, unicon__shared_name(o->setting));
  return UNICON_OK;
}

/* ---- unicon_migrate ----------------------------------------------------------------------- */

static unicon_status run(unicon_ctx *ctx, const unicon_migration_data *data,
                         const unicon_options *options, unicon_migration *migration) {
  unicon__move move;
  unicon__outcome *o;
  int stage = unicon__stage_begin(ctx, "reading", 0.05);
  UNICON_TRY(unicon__move_open(ctx, data, options, &move));
  unicon__stage_end(ctx, stage);
  UNICON_NEW(ctx, o, 1);
  o->move = &move;
  stage = unicon__stage_begin(ctx, "rewrites", 0.5);
  UNICON_TRY(unicon__contest_rewrite(ctx, &move, &o->contest));
  unicon__stage_end(ctx, stage);
  stage = unicon__stage_begin(ctx, "other ways", 0.25);
  UNICON_TRY(fill_table(ctx, o));
  UNICON_TRY(unicon__outcome_choose(ctx, o));
  unicon__stage_end(ctx, stage);
  stage = unicon__stage_begin(ctx, "more pairs, more items", 0.15);
  UNICON_TRY(unicon__outcome_learn(ctx, o));
  UNICON_TRY(unicon__outcome_shrink(ctx, o));
  unicon__stage_end(ctx, stage);
  unicon__outcome_decide(o);
  UNICON_TRY(unicon__outcome_model(ctx, o, &migration->model));
  unicon__log(ctx, UNICON_LOG_INFO, "%s", o->sentence);
  return unicon__outcome_json(ctx, &migration->arena, o, &migration->json);
}

/* Members never end in padding, so that a new one makes the struct longer. */
enum { DATA_LEAST = offsetof(unicon_migration_data, judgements) + sizeof(const unicon_pairs *) };
_Static_assert(sizeof(unicon_migration_data) == DATA_LEAST, "no padding at the end");

static unicon_status migrate(unicon_ctx *ctx, const unicon_migration_data *given,
                             const unicon_options *options, unicon_migration **out) {
  unicon_migration_data data;
  UNICON_NEED(ctx, out);
  UNICON_TRY(
      unicon__take_sized(ctx, "UNICON_MIGRATION_DATA", given, &data, DATA_LEAST, sizeof data));
  unicon_migration *migration = unicon__object_new(ctx, sizeof *migration);
  if (!migration) return UNICON_ERR_MEMORY;
  const unicon_status status = run(ctx, &data, options, migration);
  if (status != UNICON_OK)
    unicon_migration_destroy(migration);
  else
    *out = migration;
  return status;
}

unicon_status unicon_migrate(unicon_ctx *ctx, const unicon_migration_data *data,
                             const unicon_options *options, unicon_migration **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, migrate(ctx, data, options, out));
}

void unicon_migration_destroy(unicon_migration *migration) {
  if (!migration) return;
  unicon_model_destroy(migration->model);
  unicon__object_free(migration);
}

const unicon_model *unicon_migration_model(const unicon_migration *migration) {
  return migration ? migration->model : NULL;
}

const char *unicon_migration_json(const unicon_migration *migration) {
  return migration ? migration->json : NULL;
}
