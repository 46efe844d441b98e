/* SPDX-License-Identifier: Apache-2.0 */
/* What a migration works on, checked. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "use/migrate.h"

enum {
  FEWEST_PAIRS = 100,
  MOST_ITEMS = 5000, /* that are searched: more say little more, and each must be left out */
  MOST_QUERIES = 5000
};

static const char *const side_word[2] = {"old", "new"};

static unicon_status check_shapes(unicon_ctx *ctx, const unicon_migration_data *data) {
  const unicon_rows *o = data->old_rows, *w = data->new_rows;
  const unicon_rows *qo = data->queries_old, *qw = data->queries_new;
  if (!o || !w)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "migrate needs rows of the old and the new model");
  if (o->count != w->count)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %lld rows and %s has %lld: row i of both must be the same item",
                        o->name, (long long)o->count, w->name, (long long)w->count);
  if (qo && !qw)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "queries by the old model alone say nothing: give them by the new one too");
  if (qw && qw->width != w->width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld values, but the new model's %s has %lld", qw->name,
                        (long long)qw->width, w->name, (long long)w->width);
  if (qo && qo->width != o->width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld values, but the old model's %s has %lld", qo->name,
                        (long long)qo->width, o->name, (long long)o->width);
  if (qo && qo->count != qw->count)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %lld rows and %s has %lld: row i of both must be the same query",
                        qo->name, (long long)qo->count, qw->name, (long long)qw->count);
  const unicon_pairs *judged = data->judgements;
  if (judged && !qw)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "judgements are about queries: give those too");
  if (judged && (judged->n_x != qw->count || judged->n_y != w->count))
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "judgements are of %lld queries and %lld items, but there are %lld and "
                        "%lld",
                        (long long)judged->n_x, (long long)judged->n_y, (long long)qw->count,
                        (long long)w->count);
  return UNICON_OK;
}

static bool is_judged(const unicon_pairs *judged, int64_t row) {
  return judged && unicon__positives_y(judged, row).count > 0;
}

/* Leaves at most `most` rows in the order they have: judged ones before others, since an answer that
 * is not among the items can be found by nobody. Returns how many. */
static int64_t draw(const unicon_pairs *judged, int64_t most, int64_t *row, int64_t count) {
  int64_t found = 0, kept = 0;
  if (count <= most) return count;
  for (int64_t k = 0; k < count; k++) found += is_judged(judged, row[k]);
  int64_t room[2] = {found < most ? most - found : 0, most}; /* for others, for judged ones */
  for (int64_t k = 0; k < count; k++)
    if (room[is_judged(judged, row[k])]-- > 0) row[kept++] = row[k];
  return kept;
}

/* Rows that both sides can use, in random order. */
static unicon_status choose_rows(unicon_ctx *ctx, const unicon_migration_data *data,
                                 unicon__move *move) {
  const unicon_rows *side[2] = {data->old_rows, data->new_rows};
  const int64_t all = side[0]->count;
  const bool drop = unicon__is(move->options, UNICON__BAD_ROWS, "drop");
  const uint64_t seed = (uint64_t)unicon__integer(move->options, UNICON__SEED);
  unsigned char *good;
  int64_t *order, count = 0;
  UNICON_NEW(ctx, good, all);
  for (int s = 0; s < 2; s++) {
    const int64_t *keep;
    int64_t kept;
    UNICON_TRY(
        unicon__usable_rows(ctx, side[s], UNICON__ROW_DIRECTED, drop, &keep, &kept, &move->hash));
    for (int64_t k = 0; k < kept; k++) good[keep ? keep[k] : k]++;
  }
  UNICON_NEW(ctx, order, all);
  UNICON_NEW(ctx, move->original, all);
  unicon__permutation(seed, UNICON__STREAM_MIGRATE, 0, all, order);
  for (int64_t k = 0; k < all; k++)
    if (good[order[k]] == 2) move->original[count++] = order[k];
  if (count < FEWEST_PAIRS)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%lld items are too few to choose a map and to judge it: at least %d are "
                        "needed, and some thousands are better",
                        (long long)count, FEWEST_PAIRS);
  move->n = draw(data->judgements, 4 * unicon__integer(move->options, UNICON__ANCHORS),
                 move->original, count);
  move->items = move->n < MOST_ITEMS || data->judgements ? move->n : MOST_ITEMS;
  if (move->n < count)
    unicon__log(ctx, UNICON_LOG_INFO, "%lld of %lld pairs are used, drawn by seed%s",
                (long long)move->n, (long long)count,
                data->judgements ? ", judged ones first" : "");
  if (!data->judgements) return UNICON_OK;
  UNICON_NEW(ctx, move->drawn, all);
  for (int64_t k = 0; k < move->n; k++) move->drawn[move->original[k]] = true;
  return UNICON_OK;
}

static unicon_status load_unit(unicon_ctx *ctx, const unicon_rows *rows, const int64_t *index,
                               int64_t count, float **out) {
  UNICON_NEW(ctx, *out, count * rows->width);
  unicon__rows_load(rows, index, 0, count, *out, rows->width);
  unicon__unit_rows(*out, count, rows->width);
  return UNICON_OK;
}

/* Two names of one file, or a copy. */
static unicon_status refuse_equal(unicon_ctx *ctx, const unicon_migration_data *data,
                                  const unicon__move *move) {
  if (move->d[0] != move->d[1] ||
      memcmp(move->row[0], move->row[1], (size_t)(move->n * move->d[0]) * sizeof(float)) != 0)
    return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA,
                      "%s and %s hold the same vectors: there is nothing to migrate",
                      data->old_rows->name, data->new_rows->name);
}

/* Queries that look like the other model's are swapped files; others may well differ from items,
 * and are only spoken of. */
static unicon_status check_query_side(unicon_ctx *ctx, const unicon__move *move, int side,
                                      const unicon_rows *rows) {
  unicon__resemblance how;
  double length;
  char sentence[512];
  UNICON_TRY(unicon__likeness_of(ctx, rows, &move->like[side], &move->like[1 - side],
                                 move->d[0] == move->d[1], &how, &length));
  if (how == UNICON__ALIKE) return UNICON_OK;
  unicon__likeness_say(how, side, rows->name, sentence, sizeof sentence);
  if (how == UNICON__LIKE_OTHER && unicon__is(move->options, UNICON__TRUST, "off"))
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s (trust on takes them as they are)", sentence);
  unicon__log(ctx, UNICON_LOG_WARNING, "%s", sentence);
  return UNICON_OK;
}

static unicon_status open_queries(unicon_ctx *ctx, const unicon_migration_data *data,
                                  unicon__move *move) {
  const unicon_rows *given[2] = {data->queries_old, data->queries_new};
  move->self = !data->queries_new;
  if (move->self) { /* items ask for each other */
    move->queries = move->items;
    move->query[0] = move->row[0];
    move->query[1] = move->row[1];
    return UNICON_OK;
  }
  move->queries = given[1]->count < MOST_QUERIES ? given[1]->count : MOST_QUERIES;
  for (int s = 0; s < 2; s++) {
    const int64_t *keep;
    int64_t kept;
    float *rows;
    if (!given[s]) continue;
    UNICON_TRY(unicon__usable_rows(ctx, given[s], UNICON__ROW_DIRECTED, false, &keep, &kept, NULL));
    UNICON_TRY(check_query_side(ctx, move, s, given[s]));
    UNICON_TRY(load_unit(ctx, given[s], NULL, move->queries, &rows));
    move->query[s] = rows;
  }
  if (move->queries < given[1]->count)
    unicon__log(ctx, UNICON_LOG_INFO, "the first %lld of %lld queries are used",
                (long long)move->queries, (long long)given[1]->count);
  return UNICON_OK;
}

int64_t unicon__move_folds(int64_t items) {
  return items < 800 ? 4 : 8;
}

unicon_status unicon__move_open(unicon_ctx *ctx, const unicon_migration_data *data,
                                const unicon_options *options, unicon__move *move) {
  const unicon_rows *side[2] = {data->old_rows, data->new_rows};
  *move = (unicon__move){.options = options};
  UNICON_TRY(check_shapes(ctx, data));
  UNICON_TRY(choose_rows(ctx, data, move));
  for (int s = 0; s < 2; s++) {
    move->d[s] = side[s]->width;
    UNICON_TRY(load_unit(ctx, side[s], move->original, move->n, &move->row[s]));
    UNICON_TRY(unicon__likeness_make(ctx, &ctx->arena, side[s], &move->like[s]));
    if (move->like[s].axes == 0)
      return unicon__fail(ctx, UNICON_ERR_DATA, "%s: all vectors of the %s model are equal",
                          side[s]->name, side_word[s]);
  }
  UNICON_TRY(refuse_equal(ctx, data, move));
  UNICON_TRY(open_queries(ctx, data, move));
  move->judged = data->judgements;
  move->folds = unicon__move_folds(move->items);
  move->panel = (unicon__panel){.items = move->items,
                                .folds = move->judged ? 1 : move->folds,
                                .queries = move->queries,
                                .self = move->self,
                                .judged = move->judged,
                                .original = move->original,
                                .drawn = move->drawn};
  return unicon__panel_open(ctx, move->query[UNICON__NEW], move->row[UNICON__NEW],
                            move->d[UNICON__NEW], &move->panel);
}

unicon__regress_data unicon__move_data(const unicon__move *move, unicon__way way, int64_t first,
                                       int64_t pairs, int64_t judged) {
  const int to = way == UNICON__REWRITE ? UNICON__NEW : UNICON__OLD, from = 1 - to;
  return (unicon__regress_data){
      .n = pairs,
      .d = move->d[from],
      .e = move->d[to],
      .x = move->row[from] + first * move->d[from],
      .y = move->row[to] + first * move->d[to],
      .anchors = unicon__integer(move->options, UNICON__ANCHORS),
      .judged = judged,
      .folds = judged == move->items ? move->folds : unicon__move_folds(judged)};
}
