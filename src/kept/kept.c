/* SPDX-License-Identifier: Apache-2.0 */
#include "kept/kept.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/object.h"
#include "io/result.h"
#include "linalg/vec.h"

enum { BLOCK_ROWS = 1 << 15 }; /* of x, added at once: what is kept beside the sums is for these */

/* ---- empty ones --------------------------------------------------------------------------- */

unicon_status unicon__kept_new(unicon_ctx *ctx, unicon_stats **out) {
  *out = unicon__object_new(ctx, sizeof **out);
  if (!*out) return UNICON_ERR_MEMORY;
  (*out)->name = "the statistics";
  snprintf((*out)->vectors, sizeof(*out)->vectors, "%s", unicon__vec_best()->name);
  return UNICON_OK;
}

void unicon_stats_destroy(unicon_stats *stats) {
  unicon__object_free(stats);
}

unicon_status unicon__kept_open(unicon_ctx *ctx, unicon_stats *stats) {
  return unicon__kept_open_sums(ctx, &stats->arena, stats->map, stats->unpaired, NULL, 0,
                                &stats->sums);
}

static bool has_whole_units(const unicon__sample *sample) {
  for (int64_t k = 0; k < sample->units; k++)
    if (!sample->unit[k].whole) return false;
  return true;
}

static bool has_as_many_rows(const unicon_stats *stats) {
  const int64_t *rows = stats->sample.rows;
  return fabs(stats->sums.rows[0] - (double)rows[0]) < 0.5 &&
         fabs(stats->sums.rows[1] - (double)rows[1]) < 0.5;
}

bool unicon__kept_has_rows(const unicon_stats *stats) {
  return unicon__sample_is_all(&stats->sample) && has_whole_units(&stats->sample) &&
         has_as_many_rows(stats) && !stats->decayed;
}

static unicon_status fill_like(unicon_ctx *ctx, const unicon_stats *like, unicon_stats *out) {
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__kept_copy_map(ctx, &out->arena, &like->map[s], &out->map[s]));
  out->unpaired = like->unpaired;
  unicon__sample_init(&out->sample, like->sample.room, like->map[0].in, like->map[1].in);
  out->ledger.on = like->ledger.on;
  return unicon__kept_open(ctx, out);
}

static unicon_status done(unicon_stats *made, unicon_status status, unicon_stats **out) {
  if (status == UNICON_OK)
    *out = made;
  else
    unicon_stats_destroy(made);
  return status;
}

unicon_status unicon__kept_like(unicon_ctx *ctx, const unicon_stats *like, unicon_stats **out) {
  unicon_stats *made = NULL;
  UNICON_TRY(unicon__kept_new(ctx, &made));
  return done(made, fill_like(ctx, like, made), out);
}

/* What is kept beside the sums. */
static unicon_status open_beside(unicon_ctx *ctx, const unicon_options *options,
                                 unicon_stats *stats) {
  unicon__sample_init(&stats->sample, unicon__integer(options, UNICON__SAMPLE_ROWS),
                      stats->map[0].in, stats->map[1].in);
  stats->ledger.on = unicon__is(options, UNICON__LEDGER, "on");
  stats->unpaired = unicon__is(options, UNICON__UNPAIRED, "on");
  return unicon__kept_open(ctx, stats);
}

static unicon_status create(unicon_ctx *ctx, const unicon_data *given,
                            const unicon_options *options, unicon_stats **out) {
  unicon_data data;
  unicon_stats *made = NULL;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  UNICON_TRY(unicon__kept_new(ctx, &made));
  unicon_status status = unicon__kept_fit_maps(ctx, &data, options, made);
  if (status == UNICON_OK) status = open_beside(ctx, options, made);
  return done(made, status, out);
}

unicon_status unicon_stats_create(unicon_ctx *ctx, const unicon_data *data,
                                  const unicon_options *options, unicon_stats **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, create(ctx, data, options, out));
}

static unicon_status create_like(unicon_ctx *ctx, const unicon_stats *like, unicon_stats **out) {
  UNICON_NEED(ctx, like);
  UNICON_NEED(ctx, out);
  return unicon__kept_like(ctx, like, out);
}

unicon_status unicon_stats_create_like(unicon_ctx *ctx, const unicon_stats *like,
                                       unicon_stats **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, create_like(ctx, like, out));
}

static unicon_status create_from(unicon_ctx *ctx, const unicon_model *model,
                                 const unicon_options *options, unicon_stats **out) {
  unicon_stats *made = NULL;
  UNICON_NEED(ctx, model);
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__kept_new(ctx, &made));
  unicon_status status = unicon__kept_take_maps(ctx, model, options, made);
  if (status == UNICON_OK) status = open_beside(ctx, options, made);
  return done(made, status, out);
}

unicon_status unicon_stats_create_from_model(unicon_ctx *ctx, const unicon_model *model,
                                             const unicon_options *options, unicon_stats **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, create_from(ctx, model, options, out));
}

/* ---- sums --------------------------------------------------------------------------------- */

unicon_status unicon__kept_sum(unicon_ctx *ctx, const unicon_stats *from, double sign,
                               unicon_stats *to) {
  if (!unicon__kept_is_empty(from))
    UNICON_TRY(unicon__stats_merge(ctx, &from->sums, sign, &to->sums));
  if (to->updates == 0) /* nothing was computed for it so far */
    memcpy(to->vectors, from->vectors, sizeof to->vectors);
  else if (strcmp(from->vectors, to->vectors) != 0)
    snprintf(to->vectors, sizeof to->vectors, "mixed");
  to->pairs =
      to->sums.classes > 0 ? unicon__kept_class_pairs(&to->sums) : to->pairs + sign * from->pairs;
  to->updates += from->updates;
  to->decayed = to->decayed || from->decayed;
  return UNICON_OK;
}

/* A part that is there already would count twice. Ledgers know it; samples whose units are there
 * already, on both sides, say so of parts that are large enough. */
static unicon_status check_twice(unicon_ctx *ctx, const unicon_stats *to, const unicon_stats *from,
                                 const char *name, bool added) {
  enum { TELLING = 10 }; /* units, entries: fewer may be alike */
  int64_t could[2] = {0, 0}, are[2] = {0, 0};
  if (!added && to->ledger.on && from->ledger.on && from->ledger.count[0] >= TELLING &&
      unicon__ledger_has(&to->ledger, &from->ledger))
    return unicon__fail(
        ctx, UNICON_ERR_DATA,
        "the ledger of %s has every row of %s already, with the same partners: they "
        "would count twice; leave %s out, or sum parts without a ledger",
        to->name, name, name);
  bool there = true; /* on each side: the texts of classes come with any images */
  for (int s = 0; s <= to->sample.labelled; s++) {
    unicon__sample_shared(&to->sample, &from->sample, s, &could[s], &are[s]);
    there = there && could[s] > 0 && 2 * are[s] >= could[s];
  }
  const int64_t all = could[0] + could[1], shared = are[0] + are[1];
  if (there && all >= TELLING)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "%s seems to be in %s already (%lld of its %lld samples are): rows that are summed "
                "twice count twice, and some that a choice holds out are fitted on as well",
                name, to->name, (long long)shared, (long long)all);
  return UNICON_OK;
}

/* Takes in all of `from`, or nothing. */
static unicon_status take_in(unicon_ctx *ctx, const unicon_stats *from, unicon_stats *to) {
  const unicon__block *mark = unicon__arena_mark(&to->arena);
  const bool ledger = to->ledger.on && from->ledger.on;
  unicon__sample sample;
  unicon__ledger entries = {.on = false};
  unicon__stats before = to->sums, sums;
  unicon_status status = unicon__sample_merge(ctx, &to->arena, &to->sample, &from->sample, &sample);
  if (status == UNICON_OK && ledger)
    status = unicon__ledger_merge(ctx, &to->arena, &to->ledger, &from->ledger, &entries);
  if (status == UNICON_OK) status = unicon__kept_widen(ctx, to, &from->sums, &sums);
  if (status == UNICON_OK) {
    to->sums = sums;
    status = unicon__kept_sum(ctx, from, 1, to);
  }
  if (status != UNICON_OK) {
    to->sums = before;
    unicon__arena_back(&to->arena, mark);
    return status;
  }
  if (to->sums.sum[0] != before.sum[0]) unicon__kept_drop_sums(&to->arena, &before);
  if (!ledger && (to->ledger.on || (from->ledger.on && to->updates > from->updates)))
    unicon__log(ctx, UNICON_LOG_WARNING, "the sum has no ledger, because %s has none",
                to->ledger.on ? from->name : to->name);
  unicon__sample_drop(&to->arena, &to->sample);
  unicon__ledger_drop(&to->arena, &to->ledger);
  to->sample = sample;
  to->ledger = entries;
  return UNICON_OK;
}

static unicon_status merge(unicon_ctx *ctx, unicon_stats *stats, const unicon_stats *other) {
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, other);
  UNICON_TRY(unicon__kept_same(ctx, stats, other));
  if (!unicon__kept_is_empty(other))
    UNICON_TRY(unicon__kept_check_kind(ctx, stats, other->sums.classes > 0, other->name));
  UNICON_TRY(check_twice(ctx, stats, other, other->name, false));
  return take_in(ctx, other, stats);
}

unicon_status unicon_stats_merge(unicon_ctx *ctx, unicon_stats *stats, const unicon_stats *other) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, merge(ctx, stats, other));
}

static unicon_status decay(unicon_ctx *ctx, unicon_stats *stats, double keep) {
  const double fewest = 1e-100; /* rows: of fewer, sums of small values are lost */
  UNICON_NEED(ctx, stats);
  if (!(keep > 0 && keep <= 1))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "decay keeps %g of what there is; accepted: above 0, at most 1", keep);
  if (keep == 1) return UNICON_OK;
  for (int s = 0; s < 2; s++)
    if (stats->sums.rows[s] > 0 && !(stats->sums.rows[s] * keep > fewest))
      return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                          "decay keeps %g of %g rows of %c, which leaves nothing of %s; accepted: "
                          "what leaves more than %g",
                          keep, stats->sums.rows[s], "xy"[s], stats -> name, fewest);
  unicon__stats_scale(keep, &stats->sums);
  stats->pairs =
      stats->sums.classes > 0 ? unicon__kept_class_pairs(&stats->sums) : stats->pairs * keep;
  stats->decayed = true;
  unicon__sample_decay(&stats->sample, keep);
  unicon__ledger_drop(&stats->arena, &stats->ledger);
  return UNICON_OK;
}

unicon_status unicon_stats_decay(unicon_ctx *ctx, unicon_stats *stats, double keep) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, decay(ctx, stats, keep));
}

/* ---- adding ------------------------------------------------------------------------------- */

static unicon_status check_pairs(unicon_ctx *ctx, const unicon_stats *stats,
                                 const unicon_data *data) {
  const unicon_rows *rows[2] = {data->x, data->y};
  const unicon_pairs *pairs = data->pairs;
  for (int s = 0; s < 2; s++)
    if (rows[s]->width != stats->map[s].in)
      return unicon__fail(ctx, UNICON_ERR_SHAPE,
                          "%s has rows of %lld values, but side %c of %s is of rows of %lld",
                          rows[s]->name, (long long)rows[s]->width, "xy"[s], stats -> name,
                          (long long)stats -> map[s].in);
  if (!pairs) return UNICON_OK;
  if (pairs->self_x)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "statistics cannot be summed of one set of rows that are given as x and as "
                        "y: what a row is to itself is no sum over its class");
  if (pairs->only_listed || pairs->ignore.count > 0 || pairs->negative.count > 0)
    return unicon__fail(ctx, UNICON_ERR_UNSUPPORTED,
                        "statistics cannot be summed where pairs are ignored or negatives listed: "
                        "their weights depend on all rows");
  return UNICON_OK;
}

/* Rows [x, to_x) of x and [y, to_y) of y, whose partners are all among them. */
typedef struct cut {
  int64_t x, to_x, y, to_y;
} cut;

/* Labelled rows add up in any split: as many of each side as there are blocks for. */
static cut next_labelled(const unicon__batch *set, int64_t x, int64_t y) {
  const int64_t n_x = set->x.count, n_y = set->y.count;
  const int64_t few = n_x < n_y ? n_x : n_y, most = n_x < n_y ? n_y : n_x;
  int64_t blocks = (most + BLOCK_ROWS - 1) / BLOCK_ROWS;
  if (blocks > few) blocks = few;
  const int64_t done = (x * blocks + n_x - 1) / n_x; /* x = n_x done / blocks, rounded down */
  return (cut){x, n_x * (done + 1) / blocks, y, n_y * (done + 1) / blocks};
}

/* The next cut of at least BLOCK_ROWS rows of x, as far as the pairs allow: partners of what is in it
 * are taken in until nothing reaches out. */
static cut next_cut(const unicon__batch *set, int64_t x, int64_t y) {
  const unicon_pairs *pairs = set->pairs;
  if (pairs->class_x) return next_labelled(set, x, y);
  int64_t i = x, j = y, need_x = x + BLOCK_ROWS, need_y = y;
  if (need_x > set->x.count) need_x = set->x.count;
  while (i < need_x || j < need_y) {
    for (; i < need_x; i++) {
      const unicon__partners p = unicon__positives_x(pairs, i);
      if (p.count > 0 && p.item[p.count - 1] >= need_y) need_y = p.item[p.count - 1] + 1;
    }
    for (; j < need_y; j++) {
      const unicon__partners p = unicon__positives_y(pairs, j);
      if (p.count > 0 && p.item[p.count - 1] >= need_x) need_x = p.item[p.count - 1] + 1;
    }
  }
  if (i == set->x.count) j = set->y.count;
  return (cut){x, i, y, j};
}

static unicon_status range(unicon_ctx *ctx, int64_t from, int64_t to, int64_t **out) {
  UNICON_NEW(ctx, *out, to - from);
  for (int64_t i = from; i < to; i++) (*out)[i - from] = i;
  return UNICON_OK;
}

/* What is kept beside the sums of a block. */
static unicon_status add_beside(unicon_ctx *ctx, unicon_stats *stats, const unicon__batch *set,
                                const unicon__kept_seen *seen) {
  unicon__block *frame = unicon__frame_open(ctx);
  uint64_t *made[2];
  UNICON_TRY(unicon__row_hashes(ctx, &set->x, &made[0]));
  UNICON_TRY(unicon__row_hashes(ctx, &set->y, &made[1]));
  const uint64_t *const hash[2] = {made[0], made[1]};
  if (seen) UNICON_TRY(seen->look(ctx, seen->state, set, hash));
  if (stats->sample.room > 0) {
    unicon__sample sample, both;
    UNICON_TRY(unicon__sample_of(ctx, set, hash, &stats->sample, &sample));
    UNICON_TRY(unicon__sample_merge(ctx, &stats->arena, &stats->sample, &sample, &both));
    unicon__sample_drop(&stats->arena, &stats->sample);
    stats->sample = both;
  }
  if (stats->ledger.on) {
    unicon__ledger entries, all;
    UNICON_TRY(unicon__ledger_of(ctx, set, hash, stats->unpaired, &entries));
    UNICON_TRY(unicon__ledger_merge(ctx, &stats->arena, &stats->ledger, &entries, &all));
    unicon__ledger_drop(&stats->arena, &stats->ledger);
    stats->ledger = all;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static unicon_status add_block(unicon_ctx *ctx, unicon_stats *stats, const unicon__batch *set,
                               const unicon__kept_seen *seen) {
  unicon__batch through = *set;
  UNICON_TRY(add_beside(ctx, stats, set, seen));
  through.x.map = &stats->map[0];
  through.y.map = &stats->map[1];
  through.x.look = through.y.look = NULL; /* the numbers of the rows were made of all of them */
  UNICON_TRY(unicon__stats_add(ctx, &through, 1, &stats->sums));
  stats->pairs += (double)set->pairs->positive.count;
  return UNICON_OK;
}

static unicon_status add_cut(unicon_ctx *ctx, unicon_stats *stats, const unicon__batch *set, cut c,
                             const unicon__kept_seen *seen) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__batch part = {.pairs = NULL};
  unicon_pairs *pairs = NULL;
  int64_t *x, *y;
  if (c.x == 0 && c.to_x == set->x.count && c.y == 0 && c.to_y == set->y.count)
    return add_block(ctx, stats, set, seen);
  UNICON_TRY(range(ctx, c.x, c.to_x, &x));
  UNICON_TRY(range(ctx, c.y, c.to_y, &y));
  UNICON_TRY(unicon__source_narrow(ctx, &set->x, x, c.to_x - c.x, &part.x));
  UNICON_TRY(unicon__source_narrow(ctx, &set->y, y, c.to_y - c.y, &part.y));
  UNICON_TRY(unicon__pairs_subset(ctx, set->pairs, x, c.to_x - c.x, y, c.to_y - c.y, &pairs));
  part.pairs = pairs;
  const unicon_status status = add_block(ctx, stats, &part, seen);
  unicon_pairs_destroy(pairs);
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

static unicon_status add_set(unicon_ctx *ctx, unicon_stats *stats, const unicon__batch *set,
                             const unicon__kept_seen *seen) {
  const int stage = unicon__stage_begin(ctx, "statistics", 0.9);
  for (int64_t x = 0, y = 0; x < set->x.count;) {
    const cut c = next_cut(set, x, y);
    UNICON_TRY(unicon__stage_step(ctx, x / BLOCK_ROWS, set->x.count / BLOCK_ROWS + 1));
    if (!set->x.index) unicon__rows_ahead(set->x.rows, c.to_x, BLOCK_ROWS);
    if (!set->y.index) unicon__rows_ahead(set->y.rows, c.to_y, c.to_y - c.y);
    UNICON_TRY(add_cut(ctx, stats, set, c, seen));
    if (!set->x.index) unicon__rows_behind(set->x.rows, c.x, c.to_x - c.x);
    if (!set->y.index) unicon__rows_behind(set->y.rows, c.y, c.to_y - c.y);
    x = c.to_x;
    y = c.to_y;
  }
  unicon__stage_end(ctx, stage);
  return unicon__poll(ctx);
}

/* Sums of the classes of these labels, in the place of those of pairs. */
static unicon_status open_labelled(unicon_ctx *ctx, unicon_stats *stats,
                                   const unicon_pairs *pairs) {
  unicon__kept_drop_sums(&stats->arena, &stats->sums);
  return unicon__kept_open_sums(ctx, &stats->arena, stats->map, stats->unpaired, pairs->class_key,
                                pairs->classes, &stats->sums);
}

unicon_status unicon__kept_add(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *data,
                               const unicon_options *options, const unicon__kept_seen *seen) {
  unicon__dataset set = {.hash = 0};
  UNICON_TRY(check_pairs(ctx, stats, data));
  const int stage = unicon__stage_begin(ctx, "reading", 0.1);
  const bool drop = unicon__is(options, UNICON__BAD_ROWS, "drop");
  unicon_status status = unicon__dataset_take(ctx, data, stats->map,
                                              drop ? UNICON__BAD_DROP : UNICON__BAD_LATER, &set);
  unicon__stage_end(ctx, stage);
  if (status == UNICON_OK && set.whole.pairs->class_x)
    status = open_labelled(ctx, stats, set.whole.pairs);
  else if (status == UNICON_OK && set.whole.pairs->positive.count == 0)
    status = unicon__fail(ctx, UNICON_ERR_DATA, "%s and %s have no pair that could be summed",
                          data->x->name, data->y->name);
  if (status == UNICON_OK) status = add_set(ctx, stats, &set.whole, seen);
  if (status == UNICON_OK && stats->sums.classes > 0)
    stats->pairs = unicon__kept_class_pairs(&stats->sums);
  unicon__dataset_close(&set);
  stats->updates = 1;
  return status;
}

static unicon_status add(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *given,
                         const unicon_options *options) {
  unicon_data data;
  unicon_stats *part = NULL;
  UNICON_NEED(ctx, stats);
  UNICON_TRY(unicon__data_take(ctx, given, &data));
  UNICON_TRY(unicon__kept_check_kind(ctx, stats, data.pairs && data.pairs->class_x, data.x->name));
  UNICON_TRY(unicon__kept_like(ctx, stats, &part)); /* so that a failure changes nothing */
  unicon_status status = unicon__kept_add(ctx, part, &data, options, NULL);
  if (status == UNICON_OK) status = check_twice(ctx, stats, part, data.x->name, true);
  if (status == UNICON_OK) status = take_in(ctx, part, stats);
  unicon_stats_destroy(part);
  return status;
}

unicon_status unicon_stats_add(unicon_ctx *ctx, unicon_stats *stats, const unicon_data *data,
                               const unicon_options *options) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, add(ctx, stats, data, options));
}

/* ---- what is in them ---------------------------------------------------------------------- */

static void describe_side(unicon_ctx *ctx, const unicon_stats *stats, int s, unicon_result *r) {
  static const char *const name[2][4] = {{"width_x", "features_x", "kernel_x", "map_x"},
                                         {"width_y", "features_y", "kernel_y", "map_y"}};
  const unicon__map *map = &stats->map[s];
  char word[16];
  unicon__result_integer(ctx, r, name[s][0], map->in);
  unicon__result_integer(ctx, r, name[s][1], map->out);
  unicon__option_word(UNICON__KERNEL, map->kind == UNICON__MAP_LINEAR ? 0 : (int)map->kernel.kind,
                      word, sizeof word);
  unicon__result_text(ctx, r, name[s][2], word);
  unicon__option_word(UNICON__MAP, 1 + (int)map->kind, word, sizeof word);
  unicon__result_text(ctx, r, name[s][3], word);
}

static unicon_status describe(unicon_ctx *ctx, const unicon_stats *stats, unicon_result **out) {
  char hash[24];
  UNICON_NEED(ctx, stats);
  UNICON_NEED(ctx, out);
  unicon_result *r = unicon__result_new(ctx);
  unicon__result_real(ctx, r, "rows_x", stats->sums.rows[0]);
  unicon__result_real(ctx, r, "rows_y", stats->sums.rows[1]);
  unicon__result_real(ctx, r, "pairs", stats->pairs);
  for (int s = 0; s < 2; s++) describe_side(ctx, stats, s, r);
  unicon__result_text(ctx, r, "normalize", stats->map[0].normalize ? "on" : "off");
  unicon__result_text(ctx, r, "unpaired", stats->unpaired ? "on" : "off");
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)unicon__kept_hash(stats));
  unicon__result_text(ctx, r, "maps", hash);
  unicon__result_integer(ctx, r, "classes", stats->sums.classes);
  unicon__result_integer(ctx, r, "sample.rows_x", stats->sample.rows[0]);
  unicon__result_integer(ctx, r, "sample.rows_y", stats->sample.rows[1]);
  const bool tells = stats->sums.classes == 0 && !stats->unpaired && !stats->decayed &&
                     has_whole_units(&stats->sample); /* how many rows it should have */
  unicon__result_integer(
      ctx, r, "sample.all",
      unicon__sample_is_all(&stats->sample) && (!tells || has_as_many_rows(stats)));
  unicon__result_integer(ctx, r, "ledger", stats->ledger.on);
  unicon__result_integer(ctx, r, "decayed", stats->decayed);
  unicon__result_integer(ctx, r, "updates", stats->updates);
  return unicon__result_done(r, out);
}

unicon_status unicon_stats_describe(unicon_ctx *ctx, const unicon_stats *stats,
                                    unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, describe(ctx, stats, out));
}
