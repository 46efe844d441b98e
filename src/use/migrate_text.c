/* SPDX-License-Identifier: Apache-2.0 */
/* A migration in words and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "use/migrate.h"

static const char *const row_names[UNICON__TABLE_ROWS] = {"keep",   "naive",   "bridge", "rewrite",
                                                          "shared", "cascade", "reembed"};
static const char *const way_names[UNICON__WAYS] = {"bridge", "rewrite", "shared"};
static const char *const directions[UNICON__WAYS] = {"new-to-old", "old-to-new", "shared"};
static const char *const figure_names[UNICON__FIGURES] = {"overlap@10", "ndcg@10"};

static const char *method_name(const unicon__recipe *recipe) {
  return recipe->method == UNICON__BY_PROCRUSTES ? "procrustes"
         : recipe->method == UNICON__BY_RIDGE    ? "ridge"
                                                 : "kernel";
}

static const char *kernel_name(const unicon__recipe *recipe) {
  return recipe->kernel.kind == UNICON__KERNEL_RBF ? "rbf" : "angular";
}

void unicon__recipe_say(const unicon__recipe *recipe, char *out, size_t size) {
  if (recipe->method == UNICON__BY_PROCRUSTES)
    snprintf(out, size, "centred procrustes");
  else if (recipe->method == UNICON__BY_RIDGE)
    unicon__number_print(out, size, "ridge %.2g", recipe->ridge);
  else if (recipe->kernel.kind == UNICON__KERNEL_RBF)
    unicon__number_print(out, size, "kernel rbf, width %.3g, ridge %.2g", recipe->kernel.width,
                         recipe->ridge);
  else
    unicon__number_print(out, size, "kernel angular, ridge %.2g", recipe->ridge);
}

/* ---- verdict ------------------------------------------------------------------------------ */

static unicon__row_of_table row_of_way(unicon__way way) {
  return way == UNICON__BRIDGE    ? UNICON__ROW_BRIDGE
         : way == UNICON__REWRITE ? UNICON__ROW_REWRITE
                                  : UNICON__ROW_SHARED;
}

/* Is a better than b, beyond noise? Yes where one of them is not known. */
static bool beats(const double *a, const double *b, int64_t queries, unicon__figure figure) {
  double gain, error;
  if (!a || !b) return true;
  unicon__figures_gain(a, b, queries, figure, &gain, &error);
  return gain > 1.96 * error;
}

/* Is the way better than keeping the old model? Each is judged where it can be. */
static bool beats_keep(const unicon__outcome *o) {
  if (o->way == UNICON__REWRITE)
    return beats(o->entry[UNICON__ROW_REWRITE].each, o->entry[UNICON__ROW_KEEP].each,
                 o->move->queries, unicon__panel_leads(&o->move->panel));
  return beats(o->there[o->way].each, o->keep_there.each, o->held.jury.queries, UNICON__OVERLAP);
}

unicon_status unicon__outcome_choose(unicon_ctx *ctx, unicon__outcome *o) {
  static const unicon__way asked[] = {UNICON__REWRITE, UNICON__BRIDGE, UNICON__REWRITE,
                                      UNICON__SHARED};
  const int into = unicon__word(o->move->options, UNICON__INTO);
  const int64_t queries = o->held.jury.queries;
  const unicon__held_result *there = o->there;
  o->way = asked[into];
  if (o->way != UNICON__REWRITE && !there[o->way].known)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%lld items are too few to judge this way; 200 are needed",
                        (long long)o->move->n);
  if (into != 0 || !there[UNICON__BRIDGE].known) return UNICON_OK;
  double gain, error;
  unicon__figures_gain(there[UNICON__BRIDGE].each, there[UNICON__REWRITE].each, queries,
                       UNICON__OVERLAP, &gain, &error);
  if (gain > -0.01 && gain + 1.96 * error > 0) o->way = UNICON__BRIDGE; /* spares the rewriting */
  if (beats(there[UNICON__SHARED].each, there[o->way].each, queries, UNICON__OVERLAP))
    o->way = UNICON__SHARED;
  return UNICON_OK;
}

#define SAY(...)                                                                         \
  do {                                                                                   \
    if (at < size) at += (size_t)unicon__number_print(out + at, size - at, __VA_ARGS__); \
  } while (0)

/* What is deployed, or would be, and what it finds. */
static size_t say_way(const unicon__outcome *o, bool advised, char *out, size_t size) {
  static const char *const doing[UNICON__WAYS] = {
      "Map new queries into the old index, which stays as it is",
      "Rewrite the index into the new space (`unicon rewrite`) and ask with new queries",
      "Map the index and new queries into a shared space"};
  static const char *const way[UNICON__WAYS] = {"a map of new queries into the old index",
                                                "a rewrite of the index into the new space",
                                                "a map of index and queries into a shared space"};
  const bool rewrite = o->way == UNICON__REWRITE;
  const unicon__entry *entry = &o->entry[row_of_way(o->way)];
  const unicon__figure leads = rewrite ? unicon__panel_leads(&o->move->panel) : UNICON__OVERLAP;
  const unicon__figures *f = &entry->figures;
  const unicon__figures *keep =
      rewrite ? &o->entry[UNICON__ROW_KEEP].figures : &o->keep_there.figures;
  size_t at = 0;
  if (advised)
    SAY("%s", doing[o->way]);
  else
    SAY("Do not: %s is not clearly better than keeping the old model", way[o->way]);
  SAY(": %s %.3f (%.3f to %.3f) among %lld items that the map has not seen", figure_names[leads],
      f->value[leads], f->low[leads], f->high[leads], (long long)entry->items);
  if (keep->queries > 0) SAY(", where keeping the old model has %.3f", keep->value[leads]);
  if (!rewrite)
    SAY(" and a rewrite %.3f", o->there[UNICON__REWRITE].figures.value[UNICON__OVERLAP]);
  if (o->move->judged && rewrite)
    SAY(" and embedding all anew %.3f", o->entry[UNICON__ROW_REEMBED].figures.value[leads]);
  SAY(".");
  return at;
}

static void say_growth(const unicon__outcome *o, char *out, size_t size) {
  size_t at = 0;
  const unicon__entry *cascade = &o->entry[UNICON__ROW_CASCADE];
  const unicon__figure leads = unicon__panel_leads(&o->move->panel);
  if (o->way != UNICON__REWRITE) return;
  if (cascade->known)
    SAY(" With the first 200 of a query embedded anew: %.3f among %lld.",
        cascade->figures.value[leads], (long long)cascade->items);
  if (o->curve_points >= 3 && o->enough)
    SAY(" More than %lld pairs would add little.", (long long)o->move->n);
  if (o->curve_points >= 3 && !o->enough) SAY(" Twice the pairs would add about %.2f.", o->more);
  if (o->index_rows > 0)
    SAY(" In an index of %lld rows expect overlap@10 of about %.2f (%.2f to %.2f).",
        (long long)o->index_rows, o->index_score, o->index_low, o->index_high);
}

/* The overlap@10 that any map has, and that below which one has found hardly more: twice as much, or
 * where items are so few that this says nothing, a fifth of the way to all. */
static double by_chance(int64_t items, bool self, double *hardly_more) {
  const double chance = fmin(1, UNICON__NEIGHBOURS / (double)(items - self));
  *hardly_more = fmin(2 * chance + 0.02, chance + 0.2 * (1 - chance));
  return chance;
}

void unicon__outcome_decide(unicon__outcome *o) {
  const unicon__entry *entry = &o->entry[row_of_way(o->way)];
  const bool there = o->move->judged && o->there[o->way].known; /* judged items say nothing here */
  const unicon__figures *best = there ? &o->there[o->way].figures : &entry->figures;
  double least;
  const double chance = by_chance(there ? o->held.jury.items : entry->items, o->move->self, &least);
  const double *anew = o->entry[UNICON__ROW_REEMBED].each, *keep = o->entry[UNICON__ROW_KEEP].each;
  char *out = o->sentence;
  const size_t size = sizeof o->sentence;
  size_t at = 0;
  o->verdict = "keep";
  if (best->value[UNICON__OVERLAP] < least) {
    SAY("Do not: no map does better than chance (overlap@10 %.3f, by chance %.3f). Rows of the old "
        "and the new file do not seem to be the same items in the same order.",
        best->value[UNICON__OVERLAP], chance);
    return;
  }
  if (o->move->judged && !beats(anew, keep, o->move->queries, UNICON__NDCG)) {
    SAY("Do not: by the judgements the new model is no better than the old (ndcg@10 %.3f and "
        "%.3f). Were the files swapped?",
        o->entry[UNICON__ROW_REEMBED].figures.value[UNICON__NDCG],
        o->entry[UNICON__ROW_KEEP].figures.value[UNICON__NDCG]);
    return;
  }
  const bool advised = beats_keep(o);
  if (advised) o->verdict = way_names[o->way];
  at = say_way(o, advised, out, size);
  if (at < size) say_growth(o, out + at, size - at);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* Text that grows; the status of the last failure is kept. */
typedef struct paper {
  unicon_ctx *ctx;
  unicon__arena *arena;
  char *text;
  size_t used, room;
  unicon_status status;
  bool first; /* in its object or list: no comma */
} paper;

static void put(paper *p, const char *text, size_t length) {
  if (p->status != UNICON_OK) return;
  if (p->used + length + 1 > p->room) {
    const size_t room = 2 * p->room + length + 4096;
    char *larger = unicon__arena_new(p->ctx, p->arena, (int64_t)room, 1);
    if (!larger) {
      p->status = UNICON_ERR_MEMORY;
      return;
    }
    if (p->used > 0) memcpy(larger, p->text, p->used);
    unicon__arena_drop(p->arena, p->text);
    p->text = larger;
    p->room = room;
  }
  memcpy(p->text + p->used, text, length);
  p->used += length;
  p->text[p->used] = '\0';
}

static void put_text(paper *p, const char *text) {
  put(p, text, strlen(text));
}

/* A comma unless it is the first, then the name if there is one. Names and texts are our own: ASCII
 * without quotes. */
static void name(paper *p, const char *text) {
  if (!p->first) put_text(p, ",");
  p->first = false;
  if (!text) return;
  put_text(p, "\"");
  put_text(p, text);
  put_text(p, "\":");
}

static void open_with(paper *p, const char *text, const char *bracket) {
  name(p, text);
  put_text(p, bracket);
  p->first = true;
}

static void close_with(paper *p, const char *bracket) {
  put_text(p, bracket);
  p->first = false;
}

static void add_real(paper *p, const char *text, double value) {
  char number[48];
  unicon__number_print(number, sizeof number, "%.6g", isfinite(value) ? value : 0);
  name(p, text);
  put_text(p, number);
}

static void add_integer(paper *p, const char *text, int64_t value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)value);
  name(p, text);
  put_text(p, number);
}

static void add_word(paper *p, const char *text, const char *value) {
  name(p, text);
  put_text(p, "\"");
  put_text(p, value);
  put_text(p, "\"");
}

static void add_figures(paper *p, const unicon__entry *entry) {
  for (int f = 0; f < UNICON__FIGURES; f++) {
    open_with(p, figure_names[f], "{");
    add_real(p, "value", entry->figures.value[f]);
    add_real(p, "low", entry->figures.low[f]);
    add_real(p, "high", entry->figures.high[f]);
    close_with(p, "}");
  }
}

static void add_table(paper *p, const unicon__outcome *o) {
  open_with(p, "ways", "[");
  for (int r = 0; r < UNICON__TABLE_ROWS; r++) {
    const unicon__entry *entry = &o->entry[r];
    if (!entry->known) continue;
    open_with(p, NULL, "{");
    add_word(p, "way", row_names[r]);
    add_word(p, "how", entry->how);
    add_integer(p, "items", entry->items);
    add_integer(p, "queries", entry->figures.queries);
    if (entry->pairs > 0) add_integer(p, "pairs", entry->pairs);
    add_figures(p, entry);
    if (r == UNICON__ROW_BRIDGE || r == UNICON__ROW_SHARED) {
      if (o->keep_there.known)
        add_real(p, "keep_there", o->keep_there.figures.value[UNICON__OVERLAP]);
      add_real(p, "rewrite_there", o->there[UNICON__REWRITE].figures.value[UNICON__OVERLAP]);
    }
    close_with(p, "}");
  }
  close_with(p, "]");
}

static void add_tried(paper *p, const unicon__outcome *o) {
  open_with(p, "tried", "[");
  for (int k = 0; k < o->contest.count; k++) {
    const unicon__trial *t = &o->contest.list[k];
    open_with(p, NULL, "{");
    add_word(p, "way", way_names[t->way]);
    add_word(p, "method", method_name(&t->recipe));
    if (t->recipe.method == UNICON__BY_KERNEL) add_word(p, "kernel", kernel_name(&t->recipe));
    if (t->recipe.method == UNICON__BY_KERNEL && t->recipe.kernel.kind == UNICON__KERNEL_RBF)
      add_real(p, "width", t->recipe.kernel.width);
    if (t->recipe.method != UNICON__BY_PROCRUSTES) add_real(p, "ridge", t->recipe.ridge);
    add_integer(p, "pairs", t->pairs);
    add_real(p, "score", t->score);
    close_with(p, "}");
  }
  close_with(p, "]");
}

static void add_growth(paper *p, const unicon__outcome *o) {
  open_with(p, "by_pairs", "[");
  for (int k = 0; k < o->curve_points; k++) {
    open_with(p, NULL, "{");
    add_integer(p, "pairs", o->curve_pairs[k]);
    add_real(p, "score", o->curve_score[k]);
    close_with(p, "}");
  }
  close_with(p, "]");
  if (o->curve_points >= 3) {
    add_real(p, "twice_the_pairs_add", o->more);
    name(p, "enough_pairs");
    put_text(p, o->enough ? "true" : "false");
  }
  open_with(p, "by_items", "[");
  for (int k = 0; k < o->size_points; k++) {
    if (o->size_items[k] < 2 * UNICON__NEIGHBOURS) continue; /* ten of so few are found by chance */
    open_with(p, NULL, "{");
    add_integer(p, "items", o->size_items[k]);
    for (int c = 0; c < UNICON__CUTS; c++) {
      char cut[24];
      snprintf(cut, sizeof cut, "overlap@%d", unicon__cuts[c]);
      add_real(p, cut, o->size_score[k][c]);
    }
    close_with(p, "}");
  }
  close_with(p, "]");
  if (o->index_rows == 0) return;
  open_with(p, "index", "{");
  add_integer(p, "rows", o->index_rows);
  add_real(p, "overlap@10", o->index_score);
  add_real(p, "low", o->index_low);
  add_real(p, "high", o->index_high);
  close_with(p, "}");
}

static void add_scores(paper *p, const unicon__outcome *o) {
  static const char *const models[2] = {"old", "new"};
  open_with(p, "scores", "{");
  for (int m = 0; m < 2; m++) {
    if (!o->move->query[m] || !o->off_known) continue;
    open_with(p, models[m], "{");
    add_real(p, "off_before", o->off_before[m]);
    add_real(p, "off_after", o->off_after[m]);
    close_with(p, "}");
  }
  close_with(p, "}");
}

unicon_status unicon__outcome_json(unicon_ctx *ctx, unicon__arena *arena, const unicon__outcome *o,
                                   char **out) {
  paper p = {.ctx = ctx, .arena = arena, .first = true};
  const unicon__move *move = o->move;
  open_with(&p, NULL, "{");
  add_word(&p, "verdict", o->verdict);
  add_word(&p, "sentence", o->sentence);
  add_word(&p, "direction", directions[o->way]);
  add_word(&p, "score", figure_names[unicon__panel_leads(&move->panel)]);
  add_word(&p, "answers", move->judged ? "judgements" : "neighbours by the new model");
  add_word(&p, "queries_are", move->self ? "items" : "given");
  add_integer(&p, "pairs", move->n);
  add_integer(&p, "items", move->items);
  add_integer(&p, "folds", move->panel.folds);
  add_integer(&p, "queries", move->queries);
  add_integer(&p, "old_width", move->d[UNICON__OLD]);
  add_integer(&p, "new_width", move->d[UNICON__NEW]);
  add_table(&p, o);
  add_growth(&p, o);
  add_scores(&p, o);
  add_tried(&p, o);
  close_with(&p, "}");
  *out = p.text;
  return p.status;
}
