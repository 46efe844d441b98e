/* SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { NAME_MAX_LENGTH = 63 };

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

/* Levenshtein distance of two short names. */
static int distance(const char *a, const char *b) {
  int row[NAME_MAX_LENGTH + 1];
  const int m = (int)strnlen(a, NAME_MAX_LENGTH), n = (int)strnlen(b, NAME_MAX_LENGTH);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; i <= m; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      const int change = diagonal + (folded(a[i - 1]) != folded(b[j - 1]));
      diagonal = row[j];
      const int shift = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
      row[j] = change < shift ? change : shift;
    }
  }
  return row[n];
}

const char *unicon__option_nearest(const unicon_option_info *table, int rows, const char *name) {
  const int length = (int)strnlen(name, NAME_MAX_LENGTH);
  int best = 1 + length / 3; /* further away is no help */
  const char *nearest = NULL;
  for (int k = 0; k < rows; k++) {
    const int d = distance(table[k].name, name);
    if (d <= best && (!nearest || d < best)) {
      best = d;
      nearest = table[k].name;
    }
  }
  return nearest;
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
  else if (numeric && row->high >= 1e15)
    snprintf(range, sizeof range, "%s of at least %.10g",
             strcmp(row->kind, "integer") ? "a number" : "a whole number", row->low);
  else if (numeric)
    snprintf(range, sizeof range, "%s from %.10g to %.10g",
             strcmp(row->kind, "integer") ? "a number" : "a whole number", row->low, row->high);
  return unicon__fail(ctx, UNICON_ERR_OPTION, "%s is \"%.100s\"; accepted: %s%s%s", row->name, text,
                      range, numeric && row->words[0] ? ", or " : "", row->words);
}

/* 1.5G and the like: powers of 1024. */
static bool parse_bytes(const char *text, double *out) {
  char *end;
  double value = unicon__number_read(text, &end);
  if (end == text || errno) return false;
  const char *suffix = strchr("KMGT", *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
  if (*end && suffix && *suffix) {
    value = ldexp(value, 10 * (int)(1 + (suffix - strchr("KMGT", 'K'))));
    end++;
    if (*end == 'i') end++;
  }
  if (*end == 'B' || *end == 'b') end++;
  *out = value;
  return *end == '\0';
}

unicon_status unicon__value_parse(unicon_ctx *ctx, const unicon_option_info *row, const char *text,
                                  unicon__value *out) {
  *out = (unicon__value){text, NAN, word_index(row->words, text)};
  if (out->word >= 0 || is_text(row)) return UNICON_OK;
  if (strcmp(row->kind, "word") == 0 || strcmp(row->kind, "flag") == 0)
    return refuse(ctx, row, text);
  if (strcmp(row->kind, "bytes") == 0) {
    if (!parse_bytes(text, &out->number)) return refuse(ctx, row, text);
  } else {
    char *end;
    out->number = unicon__number_read(text, &end);
    if (end == text || *end) return refuse(ctx, row, text);
    if (strcmp(row->kind, "integer") == 0 && out->number != floor(out->number))
      return refuse(ctx, row, text);
  }
  if (!(out->number >= row->low && out->number <= row->high)) return refuse(ctx, row, text);
  return UNICON_OK;
}
