/* SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static char folded(char c) {
  return c == '-' ? '_' : c;
}

static bool same_name(const char *a, const char *b) {
  while (*a && folded(*a) == folded(*b)) a++, b++;
  return folded(*a) == folded(*b);
}

int unicon__option_find(const unicon_option_info *table, int rows, const char *name) {
  for (int k = 0; k < rows; k++)
    if (same_name(table[k].name, name)) return k;
  return -1;
}

static int word_index(const char *words, const char *text) {
  const size_t length = strlen(text);
  int index = 0;
  for (const char *p = words; *p && length; index++) {
    const size_t word = strcspn(p, "|");
    if (word == length && memcmp(p, text, length) == 0) return index;
    p += word;
    if (*p == '|') p++;
  }
  return -1;
}

/* Any text, as far as the engine can tell: whose option it is checks a form. */
static bool is_text(const unicon_option_info *row) {
  return strcmp(row->kind, "text") == 0 || strcmp(row->kind, "form") == 0;
}

/* "a number from LOW to HIGH", "one of a, b", or both. */
static unicon_status refuse(unicon_ctx *ctx, const unicon_option_info *row, const char *text) {
  char range[160] = "";
  const bool numeric =
      strcmp(row->kind, "word") != 0 && strcmp(row->kind, "flag") != 0 && !is_text(row);
  if (numeric && strcmp(row->kind, "bytes") == 0)
    snprintf(range, sizeof range, "a size from 1M on, such as 512M or 2G");
  else if (numeric)
    unicon__number_print(range, sizeof range, "%s from %.16g to %.16g",
                         strcmp(row->kind, "integer") ? "a number" : "a whole number", row->low,
                         row->high);
  return unicon__fail(ctx, UNICON_ERR_OPTION, "%s is \"%.100s\"; accepted: %s%s%s%s", row->name,
                      text, range, numeric && row->words[0] ? ", or " : "", row->words,
                      strcmp(row->kind, "sided") == 0 ? ", or two of these for x and y: A,B" : "");
}

bool unicon__bytes_read(const char *text, double *out) {
  char *end;
  double value = unicon__number_read(text, &end);
  if (end == text || errno) return false;
  static const char suffixes[] = "KMGT";
  const char *suffix = strchr(suffixes, *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
  if (*end && suffix && *suffix) {
    value = ldexp(value, 10 * (int)(1 + (suffix - suffixes)));
    end++;
    if (*end == 'i') end++;
  }
  if (*end == 'B' || *end == 'b') end++;
  *out = value;
  return *end == '\0';
}

/* A decimal number within the bounds of the row; false if it is none. */
static bool parse_number(const unicon_option_info *row, const char *text, double *out) {
  char *end;
  if (strcmp(row->kind, "bytes") == 0) {
    if (!unicon__bytes_read(text, out)) return false;
  } else {
    *out = unicon__number_read(text, &end);
    if (end == text || *end || errno || strpbrk(text, "xX")) return false;
    if (strcmp(row->kind, "integer") == 0 && *out != floor(*out)) return false;
  }
  return *out >= row->low && *out <= row->high;
}

/* "A,B": one value for x and one for y. */
static bool parse_sided(const unicon_option_info *row, const char *text, unicon__value *out) {
  char x[32];
  const char *comma = strchr(text, ',');
  if (strcmp(row->kind, "sided") != 0 || !comma || comma - text >= (ptrdiff_t)sizeof x)
    return false;
  memcpy(x, text, (size_t)(comma - text));
  x[comma - text] = '\0';
  out->sided = true;
  out->word = word_index(row->words, x);
  out->word_y = word_index(row->words, comma + 1);
  return (out->word >= 0 || parse_number(row, x, &out->number)) &&
         (out->word_y >= 0 || parse_number(row, comma + 1, &out->number_y));
}

unicon_status unicon__value_parse(unicon_ctx *ctx, const unicon_option_info *row, const char *text,
                                  unicon__value *out) {
  *out = (unicon__value){.text = text, .number = NAN, .word = word_index(row->words, text)};
  if (out->word >= 0 || is_text(row)) return UNICON_OK;
  const bool words = strcmp(row->kind, "word") == 0 || strcmp(row->kind, "flag") == 0;
  if (!words && parse_number(row, text, &out->number)) return UNICON_OK;
  return parse_sided(row, text, out) ? UNICON_OK : refuse(ctx, row, text);
}
