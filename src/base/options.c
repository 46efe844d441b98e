/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#include "base/balancing.h"

#define FIT UNICON_SCOPE_FIT
#define EVAL UNICON_SCOPE_EVAL
#define SYNTH UNICON_SCOPE_SYNTH
#define PROBE UNICON_SCOPE_PROBE
#define CHECK UNICON_SCOPE_CHECK
#define COMPARE UNICON_SCOPE_COMPARE
#define REPORT UNICON_SCOPE_REPORT
#define USE UNICON_SCOPE_USE
#define CONTEXT UNICON_SCOPE_CONTEXT
#define BALANCE UNICON_SCOPE_BALANCE
#define WEIGHTS UNICON_SCOPE_WEIGHTS
#define MIGRATE UNICON_SCOPE_MIGRATE
#define MOVE UNICON_SCOPE_MOVE
#define STATS UNICON_SCOPE_STATS

static const unicon_option_info table[] = {
#define UNICON__OPTION_ROW(id, name, kind, value, words, metavar, low, high, scope, group, help) \
  {name, kind, value, words, metavar, group, help, low, high, scope},
    UNICON__OPTIONS(UNICON__OPTION_ROW)
#undef UNICON__OPTION_ROW
};

struct unicon_options {
  unicon__arena arena;
  unicon__value value[UNICON__OPTION_COUNT];
  char *copy[UNICON__OPTION_COUNT];  /* of the values' texts */
  bool given[UNICON__OPTION_COUNT];  /* by the user */
  bool chosen[UNICON__OPTION_COUNT]; /* by a choice, see unicon__options_replace */
  unicon__custom custom;             /* see unicon_options_set_loss */
};

typedef struct setting {
  const char *name, *value;
} setting;

static const setting preset_auto[] = {{0}}; /* nothing is set: what it chooses, see select.c */
static const setting auto_chooses[] = {{"kernel", "chosen"},
                                       {"landmarks", "chosen"},
                                       {"ridge", "chosen"},
                                       {"metric", "chosen"},
                                       {"rank", "chosen"},
                                       {"exponent", "chosen"},
                                       {"balance", "chosen"},
                                       {"refine", "chosen"},
                                       {"temperature", "chosen"},
                                       {"refine_batch", "chosen"},
                                       {0}};
static const setting preset_fast[] = {{"metric", "whiten"},
                                      {"ridge", "auto"},
                                      {"rank", "auto"},
                                      {"exponent", "auto"},
                                      {"balance", "auto"},
                                      {"iterations", "0"},
                                      {0}};
/* What the authors' code runs on image and text (clip with nu 2 is the loss general). */
static const setting preset_paper[] = {
    {"loss", "general"},  {"psi", "exp"},       {"phi", "log"},
    {"nu", "2"},          {"temperature", "1"}, {"normalize", "off"},
    {"center", "off"},    {"metric", "none"},   {"exponent", "0"},
    {"balance", "off"},   {"start", "random"},  {"iterations", "1"},
    {"damping", "plain"}, {"rank", "128"},      {0}};
/* What it runs on its synthetic data. */
static const setting preset_synthetic[] = {{"loss", "clip"},         {"temperature", "1"},
                                           {"normalize", "off"},     {"center", "off"},
                                           {"metric", "none"},       {"exponent", "1"},
                                           {"balance", "off"},       {"start", "random"},
                                           {"iterations", "0"},      {"damping", "plain"},
                                           {"rank", "10"},           {"batch", "30"},
                                           {"batch_order", "file"},  {"batch_average", "solution"},
                                           {"kernel_ridge", "1e-6"}, {0}};
/* The text of the paper, read to the letter. */
static const setting preset_printed[] = {{"loss", "clip"},
                                         {"temperature", "1"},
                                         {"normalize", "on"},
                                         {"center", "off"},
                                         {"metric", "none"},
                                         {"split", "0"},
                                         {"exponent", "1"},
                                         {"balance", "off"},
                                         {"iterations", "1"},
                                         {"damping", "plain"},
                                         {"rank", "128"},
                                         {"batch", "500"},
                                         {0}};

static const setting *preset_settings(const char *preset) {
  if (strcmp(preset, "auto") == 0 || strcmp(preset, "best") == 0) return preset_auto;
  if (strcmp(preset, "fast") == 0) return preset_fast;
  if (strcmp(preset, "paper") == 0) return preset_paper;
  if (strcmp(preset, "paper-synthetic") == 0) return preset_synthetic;
  if (strcmp(preset, "paper-printed") == 0) return preset_printed;
  return NULL;
}

int unicon_preset_at(const char *preset, size_t index, const char **name, const char **value) {
  const setting *list = preset ? preset_settings(preset) : NULL;
  if (!list || !name || !value) return 0;
  if (list == preset_auto) list = auto_chooses;
  for (size_t k = 0; list[k].name; k++)
    if (k == index) {
      *name = list[k].name;
      *value = list[k].value;
      return 1;
    }
  return 0;
}

size_t unicon_option_count(void) {
  return UNICON__OPTION_COUNT;
}

const unicon_option_info *unicon_option_at(size_t index) {
  return index < UNICON__OPTION_COUNT ? &table[index] : NULL;
}

void unicon__option_word(int id, int index, char *out, size_t size) {
  const char *p = table[id].words;
  for (; index > 0; index--) p = strchr(p, '|') + 1;
  snprintf(out, size, "%.*s", (int)strcspn(p, "|"), p);
}

const unicon_option_info *unicon__option_row(int id) {
  return &table[id];
}

unicon_status unicon__options_create(unicon_ctx *ctx, unicon_options **out) {
  unicon__arena arena;
  unicon__arena_init(&arena, ctx->arena.budget);
  unicon_options *options = unicon__arena_new(ctx, &arena, 1, sizeof *options);
  if (!options) {
    unicon__arena_release(&arena);
    return UNICON_ERR_MEMORY;
  }
  options->arena = arena;
  *out = options;
  return UNICON_OK;
}

unicon_status unicon_options_create(unicon_ctx *ctx, unicon_options **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(
      ctx, out ? unicon__options_create(ctx, out)
               : unicon__fail(ctx, UNICON_ERR_ARGUMENT, "options_create needs an out pointer"));
}

void unicon_options_destroy(unicon_options *options) {
  if (!options) return;
  unicon__arena arena = options->arena;
  unicon__arena_release(&arena);
}

static unicon_status unknown_name(unicon_ctx *ctx, const char *name) {
  return unicon__fail(ctx, UNICON_ERR_OPTION,
                      "there is no option \"%.60s\"; unicon_option_at lists those there are", name);
}

/* Checks the value and keeps a copy of its text, in the place of an older one. `value` may be that
 * older text itself. */
static unicon_status store(unicon_ctx *ctx, unicon_options *options, int id, const char *value) {
  const size_t size = strlen(value) + 1;
  unicon__value parsed;
  UNICON_TRY(unicon__value_parse(ctx, &table[id], value, &parsed));
  if (id == UNICON__BALANCE && parsed.word < 0)
    UNICON_TRY(unicon__balancing_parse(ctx, value, &(unicon__balancing){0}));
  char *copy = unicon__arena_new(ctx, &options->arena, (int64_t)size, 1);
  if (!copy) return UNICON_ERR_MEMORY;
  memcpy(copy, value, size);
  unicon__arena_drop(&options->arena, options->copy[id]);
  options->copy[id] = copy;
  parsed.text = copy;
  options->value[id] = parsed;
  return UNICON_OK;
}

static unicon_status set_option(unicon_ctx *ctx, unicon_options *options, const char *name,
                                const char *value) {
  if (!options || !name || !value)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "options_set needs options, a name and a value");
  const int id = unicon__option_find(table, UNICON__OPTION_COUNT, name);
  if (id < 0) return unknown_name(ctx, name);
  if (table[id].scope & CONTEXT)
    return unicon__fail(ctx, UNICON_ERR_OPTION, "%s belongs to the context: use unicon_ctx_set",
                        table[id].name);
  UNICON_TRY(store(ctx, options, id, value));
  options->given[id] = true;
  return UNICON_OK;
}

unicon_status unicon_options_set(unicon_ctx *ctx, unicon_options *options, const char *name,
                                 const char *value) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, set_option(ctx, options, name, value));
}

static unicon_status set_loss(unicon_ctx *ctx, unicon_options *options, unicon__custom loss) {
  if (!options || !loss.psi || !loss.phi)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "options_set_loss needs options, psi and phi");
  UNICON_TRY(set_option(ctx, options, "loss", "custom"));
  options->custom = loss;
  return UNICON_OK;
}

unicon_status unicon_options_set_loss(unicon_ctx *ctx, unicon_options *options, unicon_loss_fn psi,
                                      unicon_loss_fn phi, void *user) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, set_loss(ctx, options, (unicon__custom){psi, phi, user}));
}

unicon__custom unicon__custom_loss(const unicon_options *options) {
  return options ? options->custom : (unicon__custom){NULL, NULL, NULL};
}

unicon_status unicon__options_replace(unicon_ctx *ctx, unicon_options *options, int id,
                                      const char *value) {
  UNICON_TRY(store(ctx, options, id, value));
  options->given[id] = false;
  options->chosen[id] = true;
  return UNICON_OK;
}

unicon_status unicon__options_choose(unicon_ctx *ctx, unicon_options *options, int id,
                                     const char *value) {
  return options->given[id] ? UNICON_OK : unicon__options_replace(ctx, options, id, value);
}

unicon_status unicon__options_copy(unicon_ctx *ctx, const unicon_options *from,
                                   unicon_options **out) {
  UNICON_TRY(unicon__options_create(ctx, out));
  if (from) (*out)->custom = from->custom;
  for (int id = 0; from && id < UNICON__OPTION_COUNT; id++) {
    if (!from->given[id] && !from->chosen[id]) continue;
    const unicon_status status = store(ctx, *out, id, from->value[id].text);
    if (status != UNICON_OK) {
      unicon_options_destroy(*out);
      *out = NULL;
      return status;
    }
    (*out)->given[id] = from->given[id];
    (*out)->chosen[id] = from->chosen[id];
  }
  return UNICON_OK;
}

/* Number and word of table text, which is known to parse (a test reads every row). */
static unicon__value parsed_text(int id, const char *text) {
  unicon_ctx scratch = {0};
  unicon__value value;
  (void)unicon__value_parse(&scratch, &table[id], text, &value);
  return value;
}

unicon__value unicon__in_force(const unicon_options *options, int id) {
  if (options && (options->given[id] || options->chosen[id])) return options->value[id];
  const char *text = table[id].default_value;
  if (id != UNICON__PRESET) {
    const setting *list = preset_settings(unicon__in_force(options, UNICON__PRESET).text);
    for (; list && list->name; list++)
      if (strcmp(list->name, table[id].name) == 0) text = list->value;
  }
  return parsed_text(id, text);
}

unicon__value unicon__of_side(const unicon_options *options, int id, int side) {
  unicon__value value = unicon__in_force(options, id);
  if (value.sided && side == 1) {
    value.number = value.number_y;
    value.word = value.word_y;
  }
  return value;
}

bool unicon__has_preset(const unicon_options *options, const char *name) {
  return strcmp(unicon__text(options, UNICON__PRESET), name) == 0;
}

bool unicon__is(const unicon_options *options, int id, const char *word) {
  return strcmp(unicon__text(options, id), word) == 0;
}

bool unicon__given(const unicon_options *options, int id) {
  return options && options->given[id];
}

double unicon__number(const unicon_options *options, int id) {
  return unicon__in_force(options, id).number;
}

int unicon__word(const unicon_options *options, int id) {
  return unicon__in_force(options, id).word;
}

const char *unicon__text(const unicon_options *options, int id) {
  return unicon__in_force(options, id).text;
}

int64_t unicon__integer(const unicon_options *options, int id) {
  return (int64_t)unicon__in_force(options, id).number;
}

const char *unicon_options_get(const unicon_options *options, const char *name) {
  const int id = name ? unicon__option_find(table, UNICON__OPTION_COUNT, name) : -1;
  return id < 0 ? NULL : unicon__text(options, id);
}

unicon_status unicon__context_value(unicon_ctx *ctx, const char *name, const char *text, int *id,
                                    unicon__value *out) {
  if (!name || !text)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "ctx_set needs a name and a value");
  *id = unicon__option_find(table, UNICON__OPTION_COUNT, name);
  if (*id < 0) return unknown_name(ctx, name);
  if (!(table[*id].scope & CONTEXT))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "%s is not an option of the context: use unicon_options_set",
                        table[*id].name);
  return unicon__value_parse(ctx, &table[*id], text, out);
}
