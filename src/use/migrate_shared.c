/* SPDX-License-Identifier: Apache-2.0 */
/* The third way: both models in a space of their own, by the closed form that aligns any two sets
 * of vectors. Rows that a model has seen lie closer than others, and vectors of two models of this
 * kind cannot be searched together, so this way is judged among rows held out. */
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
  const unicon_data data = {&x, &y, NULL, NULL};
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

/* Lists of the ten nearest held-out items through the model, without the query itself. */
static unicon_status search_held(unicon_ctx *ctx, const unicon__move *move,
                                 const unicon_model *model, const unicon__jury *jury,
                                 const float *query, int64_t first, int64_t *list) {
  enum { WIDE = UNICON__NEIGHBOURS + 1 };
  unicon__segment segment[2];
  const unicon_rows base = unicon__rows_over("old", move->row[0] + first * move->d[0], jury->items,
                                             move->d[0], &segment[0]);
  const unicon_rows asks = unicon__rows_over("new", query, jury->queries, move->d[1], &segment[1]);
  const unicon_view of_base = {.rows = &base, .model = model, .side = UNICON_X};
  const unicon_view of_query = {.rows = &asks, .model = model, .side = UNICON_Y};
  int64_t *ids;
  float *scores;
  UNICON_NEW(ctx, ids, jury->queries * WIDE);
  UNICON_NEW(ctx, scores, jury->queries * WIDE);
  UNICON_TRY(unicon__search(ctx, &of_query, &of_base, WIDE, ids, scores));
  for (int64_t q = 0; q < jury->queries; q++)
    for (int64_t from = 0, to = 0; from < WIDE && to < UNICON__NEIGHBOURS; from++)
      if (!jury->self || ids[q * WIDE + from] != jury->self[q])
        list[q * UNICON__NEIGHBOURS + to++] = ids[q * WIDE + from];
  unicon__drop(ctx, scores);
  unicon__drop(ctx, ids);
  return UNICON_OK;
}

/* What is held out, and who is asked about it. */
typedef struct held {
  int64_t first;      /* row of the first held-out item */
  const float *query; /* by the new model */
  unicon__jury jury;
  double *each, *other; /* per query */
} held;

static unicon_status open_held(unicon_ctx *ctx, const unicon__move *move, int64_t pairs,
                               int64_t items, held *h) {
  const int64_t e = move->d[UNICON__NEW];
  int64_t *self = NULL;
  h->first = pairs;
  h->jury = (unicon__jury){.queries = move->queries, .items = items};
  h->query = move->query[UNICON__NEW];
  if (move->jury.self) {
    h->jury.queries = items;
    h->query = move->row[UNICON__NEW] + pairs * e;
    UNICON_NEW(ctx, self, items);
    for (int64_t i = 0; i < items; i++) self[i] = i;
    h->jury.self = self;
  }
  UNICON_NEW(ctx, h->each, h->jury.queries);
  UNICON_NEW(ctx, h->other, h->jury.queries);
  return unicon__jury_open(ctx, h->query, move->row[UNICON__NEW] + pairs * e, e, &h->jury);
}

/* The rival, fitted on the same pairs. */
static unicon_status judge_rival(unicon_ctx *ctx, const unicon__move *move,
                                 const unicon__trial *rival, const held *h, unicon__figures *out) {
  const unicon__regress_data data = unicon__move_data(move, rival->way, h->first);
  const bool rewrite = rival->way == UNICON__REWRITE;
  const int64_t d = data.d, e = data.e, items = h->jury.items, queries = h->jury.queries;
  unicon__regress *regress;
  unicon__regression map;
  float *mapped;
  UNICON_TRY(unicon__regress_open(ctx, &data, &rival->recipe, &regress));
  UNICON_TRY(unicon__regress_fit(ctx, regress, rival->recipe.ridge, NULL, &map));
  UNICON_NEW(ctx, mapped, (rewrite ? items : queries) * e);
  UNICON_TRY(unicon__regress_apply(ctx, &rival->recipe, &map, d, e,
                                   rewrite ? data.x + h->first * d : h->query,
                                   rewrite ? items : queries, mapped));
  const float *old_items = move->row[UNICON__OLD] + h->first * move->d[UNICON__OLD];
  return rewrite ? unicon__jury_rows(ctx, &h->jury, h->query, mapped, e, out, h->other)
                 : unicon__jury_rows(ctx, &h->jury, mapped, old_items, e, out, h->other);
}

unicon_status unicon__shared_try(unicon_ctx *ctx, const unicon__move *move,
                                 const unicon__trial *rival, unicon__shared_result *out) {
  const int64_t n = move->n < MOST_PAIRS ? move->n : MOST_PAIRS, items = n / 4, pairs = n - items;
  unicon__block *frame = unicon__frame_open(ctx);
  held h;
  int64_t *list;
  *out = (unicon__shared_result){.pairs = pairs, .items = items};
  if (items < FEWEST_HELD) return UNICON_OK;
  UNICON_TRY(open_held(ctx, move, pairs, items, &h));
  UNICON_NEW(ctx, list, h.jury.queries * UNICON__NEIGHBOURS);
  for (int s = 0; s < SETTINGS; s++) {
    unicon_model *model = NULL;
    unicon__figures figures;
    UNICON_TRY(unicon__shared_fit(ctx, move, s, pairs, &model));
    unicon_status status = search_held(ctx, move, model, &h.jury, h.query, h.first, list);
    unicon_model_destroy(model);
    UNICON_TRY(status);
    const bool first = !out->tried;
    UNICON_TRY(unicon__jury_lists(ctx, &h.jury, list, UNICON__NEIGHBOURS, &figures, h.other));
    if (!first && figures.value[UNICON__OVERLAP] <= out->figures.value[UNICON__OVERLAP]) continue;
    out->tried = true;
    out->figures = figures;
    memcpy(h.each, h.other, (size_t)h.jury.queries * sizeof *h.each);
    out->setting = s;
  }
  UNICON_TRY(judge_rival(ctx, move, rival, &h, &out->other));
  unicon__paired_gain(h.each, h.other, h.jury.queries, &out->gain, &out->error);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
