/* SPDX-License-Identifier: Apache-2.0 */
#include "io/text.h"

#include <stdio.h>
#include <string.h>

char *unicon__text_copy(unicon_ctx *ctx, unicon__arena *arena, const char *text) {
  const size_t length = strlen(text) + 1;
  char *copy = unicon__arena_new(ctx, arena, (int64_t)length, 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}

char *unicon__text_join(unicon_ctx *ctx, const char *a, const char *b, const char *c) {
  const size_t room = strlen(a) + strlen(b) + strlen(c) + 1;
  char *text = unicon__new(ctx, (int64_t)room, 1);
  if (text) snprintf(text, room, "%s%s%s", a, b, c);
  return text;
}

const char *unicon__text_shell(const char *path) {
  return strpbrk(path, "'\"\\`$!\n") ? "FILE" : path;
}

bool unicon__has_suffix(const char *path, const char *suffix) {
  const size_t length = strlen(path), n = strlen(suffix);
  return length > n && strcmp(path + length - n, suffix) == 0;
}

bool unicon__line_next(unicon__lines *lines, const char **text, size_t *length) {
  const unicon__bytes bytes = lines->bytes;
  if (lines->at == 0 && bytes.size >= 3 && memcmp(bytes.data, "\xef\xbb\xbf", 3) == 0)
    lines->at = 3;
  if (lines->at >= bytes.size) return false;
  const unsigned char *start = bytes.data + lines->at;
  const size_t left = bytes.size - lines->at;
  const unsigned char *newline = memchr(start, '\n', left);
  size_t n = newline ? (size_t)(newline - start) : left;
  lines->at += newline ? n + 1 : n;
  lines->number++;
  if (n > 0 && start[n - 1] == '\r') n--;
  *text = (const char *)start;
  *length = n;
  return true;
}

int64_t unicon__line_count(unicon__bytes bytes) {
  unicon__lines lines = {bytes, 0, 0};
  const char *text;
  size_t length;
  while (unicon__line_next(&lines, &text, &length)) continue;
  return lines.number;
}
