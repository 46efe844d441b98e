/* SPDX-License-Identifier: Apache-2.0 */
/* Reads --groups: one label per line, any text; equal lines get equal numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

typedef struct line {
  const char *text;
  int64_t row;
} line;

static int compare_lines(const void *a, const void *b) {
  return strcmp(((const line *)a)->text, ((const line *)b)->text);
}

/* The whole file with a 0 at its end, or NULL with errno. */
static char *read_all(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t room = 1 << 16, used = 0;
  char *text = malloc(room);
  while (text) {
    used += fread(text + used, 1, room - used - 1, file);
    if (used + 1 < room) break;
    char *larger = room < SIZE_MAX / 2 ? realloc(text, room *= 2) : NULL;
    if (!larger) free(text);
    text = larger;
  }
  if (text && ferror(file)) {
    free(text);
    text = NULL;
  }
  fclose(file);
  if (text) text[used] = '\0';
  *length = used;
  return text;
}

/* Cuts the text into lines, at most `rows`; returns how many there are in all. */
static int64_t cut_lines(char *text, size_t length, line *out, int64_t rows) {
  int64_t count = 0;
  for (char *at = text, *end = text + length; at < end; count++) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    char *next = stop ? stop + 1 : end;
    if (!stop) stop = end;
    *stop = '\0';
    if (stop > at && stop[-1] == '\r') stop[-1] = '\0';
    if (count < rows) out[count] = (line){at, count};
    at = next;
  }
  return count;
}

static void number_lines(line *lines, int64_t rows, int64_t *out) {
  int64_t number = 0;
  qsort(lines, (size_t)rows, sizeof *lines, compare_lines);
  for (int64_t i = 0; i < rows; i++) {
    if (i > 0 && strcmp(lines[i].text, lines[i - 1].text) != 0) number++;
    out[lines[i].row] = number;
  }
}

int inputs_read_groups(tool *t, const char *path, int64_t rows, int64_t **out) {
  size_t length = 0;
  char *text = read_all(path, &length);
  if (!text) return tool_error(t, "cannot read %s: %s", path, strerror(errno));
  line *lines = calloc((size_t)rows + 1, sizeof *lines);
  *out = calloc((size_t)rows + 1, sizeof **out);
  int code = EXIT_DONE;
  if (!lines || !*out)
    code = tool_out_of_memory(t);
  else if (memchr(text, '\0', length))
    code = tool_error(t, "%s is not text; --groups wants one label per line", path);
  if (code == EXIT_DONE) {
    const int64_t count = cut_lines(text, length, lines, rows);
    if (count != rows)
      code =
          tool_error(t, "%s has %lld lines, but X has %lld rows; --groups wants one line per row",
                     path, (long long)count, (long long)rows);
    else
      number_lines(lines, rows, *out);
  }
  free(lines);
  free(text);
  return code;
}
