/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of options: name, 0, value, 0, name, ... What is accepted reads back as given,
 * has a value within its bounds, and survives a copy. A name that begins with a byte from 128 on
 * stands for an option by its number. Unknown names are rarely tried: the search for a near one
 * takes a thousand times as long as the rest. */
#include "target.h"

#include "base/options.h"

/* A copy of the text up to the next 0 or the end. */
static char *next_text(const uint8_t **at, size_t *left) {
  const uint8_t *zero = *left ? memchr(*at, 0, *left) : NULL;
  const size_t length = zero ? (size_t)(zero - *at) : *left;
  char *text = malloc(length + 1);
  TARGET_HOLDS(text);
  if (length) memcpy(text, *at, length);
  text[length] = '\0';
  const size_t used = zero ? length + 1 : length;
  if (used) *at += used;
  *left -= used;
  return text;
}

static void look(const unicon_options *options) {
  for (int id = 0; id < UNICON__OPTION_COUNT; id++) {
    if (!unicon__given(options, id)) continue;
    const unicon_option_info *row = unicon__option_row(id);
    const char *text = unicon_options_get(options, row->name);
    TARGET_HOLDS(text && text == unicon__text(options, id));
    const double number = unicon__number(options, id);
    if (unicon__word(options, id) < 0 && strcmp(row->kind, "text") != 0)
      TARGET_HOLDS(number >= row->low && number <= row->high);
    if (strcmp(row->kind, "integer") == 0 && unicon__word(options, id) < 0)
      TARGET_HOLDS((double)unicon__integer(options, id) == number);
  }
}

static void set(unicon_ctx *ctx, unicon_options *options, const char *text, const char *value) {
  const unsigned char number = (unsigned char)text[0];
  const char *name =
      number < 128 ? text : unicon_option_at((number - 128u) % unicon_option_count())->name;
  if (!unicon_options_get(options, name) && (strlen(name) % 64 != 9 || name[8] % 16)) return;
  if (target_ok(ctx, unicon_options_set(ctx, options, name, value))) {
    const char *now = unicon_options_get(options, name);
    TARGET_HOLDS(now && strcmp(now, value) == 0);
  }
  if (target_ok(ctx, unicon_ctx_set(ctx, name, value))) target_limit(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon_options *options = NULL, *copy = NULL;
  TARGET_HOLDS(target_ok(ctx, unicon_options_create(ctx, &options)));
  for (int k = 0; k < 6 && size; k++) {
    char *name = next_text(&data, &size), *value = next_text(&data, &size);
    set(ctx, options, name, value);
    const char *setting, *text;
    for (size_t i = 0; unicon_preset_at(value, i, &setting, &text); i++)
      TARGET_HOLDS(unicon_options_get(options, setting) != NULL);
    free(name);
    free(value);
  }
  look(options);
  if (target_ok(ctx, unicon__options_copy(ctx, options, &copy)))
    for (int id = 0; id < UNICON__OPTION_COUNT; id++)
      TARGET_HOLDS(unicon__given(options, id) == unicon__given(copy, id) &&
                   (!unicon__given(options, id) ||
                    strcmp(unicon__text(options, id), unicon__text(copy, id)) == 0));
  unicon_options_destroy(options);
  unicon_options_destroy(copy);
  target_done(ctx);
  return 0;
}
