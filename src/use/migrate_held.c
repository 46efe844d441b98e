/* SPDX-License-Identifier: Apache-2.0 */
/* Ways that must be judged among held-out items: the bridge, and the shared space, which is the
 * closed form that aligns any two sets of vectors. */
#include <string.h>

#include "fit/fit.h"
#include "use/migrate.h"
#include "use/search.h"

enum { MOST_PAIRS = 8000, FEWEST_HELD = 50 };

static const struct {
  const char *name, *metric, *balance;
} settings[] = {{"whitened", "whiten", "off"},
                {"metric 0.25", "0.25", "off"},
                {"whitened, balanced", "whiten", "softmax:10"}};

enum { SETTINGS = sizeof settings / sizeof *settings };

const char *unicon__shared_name(int setting) {
  return settings[setting].name;
}

unicon_status unicon__shared_fit(unicon_ctx *ctx, const unicon__move *move, int setting,
                                 int64_t pairs, unicon_model **out) {
  unicon__segment segment[2];
  const unicon_rows x = unicon__rows_over("old", move->row[0], pairs, move->d[0], &segment[0]);
  const unicon_rows y = unicon__rows_over("new", move->row[1], pairs, move->d[1], &segment[1]);
  const unicon_data data = UNICON_DATA(.x = &x, .y = &y);
  unicon_options *options = NULL;
  UNICON_TRY(unicon__options_create(ctx, &options));
  unicon_status status = UNICON_OK;
  const struct {
    int id;
    const char *value;
  } given[] = {{UNICON__PRESET, "fast"},
               {UNICON__METRIC, settings[setting].metric},
               {UNICON__RANK, "full"},
               {UNICON__EXPONENT, "1"},
               {UNICON__BALANCE, settings[setting].balance}};
  for (size_t k = 0; k < sizeof given / sizeof *given && status == UNICON_OK; k++)
    status = unicon__options_replace(ctx, options, given[k].id, given[k].value);
  if (status == UNICON_OK) status = unicon__fit(ctx, &data, NULL, options, out);
  unicon_options_destroy(options);
  return status;
}

/* Held-out items and their queries. */
static unicon_status open_held(unicon_ctx *ctx, const unicon__move *move, unicon__held *h) {
  const int64_t n = move->n < MOST_PAIRS ? move->n : MOST_PAIRS, items = n / 4;
  *h = (unicon__held){.first = n - items};
  h->jury = (unicon__jury){
      .queries = move->self ? items : move->queries, .items = items, .self = move->self};
  for (int s = 0; s < 2; s++) {
    h->item[s] = move->row[s] + h->first * move->d[s];
    h->query[s] = move->self ? h->item[s] : move->query[s];
  }
  return unicon__jury_open(ctx, h->query[UNICON__NEW], h->item[UNICON__NEW], move->d[UNICON__NEW],
                           &h->jury);
}

unicon_status unicon__held_map(unicon_ctx *ctx, const unicon__move *move, const unicon__held *held,
                               const unicon__trial *trial, float **out) {
  const unicon__regress_data data =
      unicon__move_data(move, trial->way, 0, held->first, held->first);
  const bool rewrite = trial->way == UNICON__REWRITE;
  const int64_t count = rewrite ? held->jury.items : held->jury.queries;
  unicon__regress *regress;
  unicon__regression map;
  UNICON_NEW(ctx, *out, count * data.e);
  UNICON_TRY(unicon__regress_open(ctx, &data, &trial->recipe, &regress));
  UNICON_TRY(unicon__regress_fit(ctx, regress, trial->recipe.ridge, NULL, &map));
  unicon__regress_close(ctx, regress);
  return unicon__regress_apply(ctx, &trial->recipe, &map, data.d, data.e,
                               rewrite ? held->item[UNICON__OLD] : held->query[UNICON__NEW], count,
                               *out);
}

/* Judges rows as they are. */
static unicon_status judge_there(unicon_ctx *ctx, const unicon__held *h, const float *query,
                                 const float *item, int64_t width, unicon__held_result *out) {
  out->known = true;
  UNICON_NEW(ctx, out->each, h->jury.queries * UNICON__FIGURES);
  UNICON_TRY(unicon__jury_rows(ctx, &h->jury, query, item, width, out->each));
  unicon__figures_of(out->each, h->jury.queries, &out->figures);
  return UNICON_OK;
}

/* Lists of the ten nearest held-out items through the model, without the query itself. */
static unicon_status search_there(unicon_ctx *ctx, const unicon__move *move, const unicon__held *h,
                                  const unicon_model *model, int64_t *list) {
  enum { WIDE = UNICON__NEIGHBOURS + 1 };
  const unicon__jury *jury = &h->jury;
  unicon__segment segment[2];
  const unicon_rows base =
      unicon__rows_over("old", h->item[UNICON__OLD], jury->items, move->d[0], &segment[0]);
  const unicon_rows asks =
      unicon__rows_over("new", h->query[UNICON__NEW], jury->queries, move->d[1], &segment[1]);
  const unicon_view of_base = UNICON_VIEW(.rows = &base, .model = model, .side = UNICON_X);
  const unicon_view of_query = UNICON_VIEW(.rows = &asks, .model = model, .side = UNICON_Y);
  int64_t *ids;
  float *scores;
  UNICON_NEW(ctx, ids, jury->queries * WIDE);
  UNICON_NEW(ctx, scores, jury->queries * WIDE);
  UNICON_TRY(unicon__search(ctx, &of_query, &of_base, WIDE, ids, scores));
  for (int64_t q = 0; q < jury->queries; q++)
    for (int64_t from = 0, to = 0; from < WIDE && to < UNICON__NEIGHBOURS; from++)
      if (!jury->self || ids[q * WIDE + from] != q)
        list[q * UNICON__NEIGHBOURS + to++] = ids[q * WIDE + from];
  unicon__drop(ctx, scores);
  unicon__drop(ctx, ids);
  return UNICON_OK;
}

/* The best setting of the shared space. */
static unicon_status judge_shared(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__held *h = &o->held;
  unicon__held_result *best = &o->there[UNICON__SHARED];
  int64_t *list;
  UNICON_NEW(ctx, list, h->jury.queries * UNICON__NEIGHBOURS);
  for (int s = 0; s < SETTINGS; s++) {
    unicon_model *model = NULL;
    unicon__held_result now = {.known = true};
    UNICON_NEW(ctx, now.each, h->jury.queries * UNICON__FIGURES);
    UNICON_TRY(unicon__shared_fit(ctx, o->move, s, h->first, &model));
    const unicon_status status = search_there(ctx, o->move, h, model, list);
    unicon_model_destroy(model);
    UNICON_TRY(status);
    unicon__jury_judge(&h->jury, list, UNICON__NEIGHBOURS, now.each);
    unicon__figures_of(now.each, h->jury.queries, &now.figures);
    if (best->known && now.figures.value[UNICON__OVERLAP] <= best->figures.value[UNICON__OVERLAP])
      continue;
    *best = now;
    o->setting = s;
  }
  return UNICON_OK;
}

unicon_status unicon__held_run(unicon_ctx *ctx, unicon__outcome *o) {
  const unicon__move *move = o->move;
  const int64_t *d = move->d;
  unicon__held *h = &o->held;
  float *mapped;
  if (move->n / 4 < FEWEST_HELD) return UNICON_OK;
  UNICON_TRY(open_held(ctx, move, h));
  if (h->query[UNICON__OLD])
    UNICON_TRY(judge_there(ctx, h, h->query[UNICON__OLD], h->item[UNICON__OLD], d[UNICON__OLD],
                           &o->keep_there));
  UNICON_TRY(unicon__held_map(ctx, move, h, &o->contest.best[UNICON__REWRITE], &mapped));
  UNICON_TRY(judge_there(ctx, h, h->query[UNICON__NEW], mapped, d[UNICON__NEW],
                         &o->there[UNICON__REWRITE]));
  UNICON_TRY(unicon__contest_bridge(ctx, move, h, &o->contest));
  UNICON_TRY(unicon__held_map(ctx, move, h, &o->contest.best[UNICON__BRIDGE], &mapped));
  UNICON_TRY(
      judge_there(ctx, h, mapped, h->item[UNICON__OLD], d[UNICON__OLD], &o->there[UNICON__BRIDGE]));
  return judge_shared(ctx, o);
}
