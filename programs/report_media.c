/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and images of rows. Both come from strangers: texts are JSON strings that the page only
 * ever shows as text; an image is recognised by its first bytes, and a link holds no character that
 * could make it anything but a path. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report.h"

enum { IMAGE_BYTES = 512 << 10, ALL_BYTES = 6 << 20, TEXT_BYTES = 600 };

static const cli_id text_option[2] = {CLI_OPT_X_TEXT, CLI_OPT_Y_TEXT};
static const cli_id media_option[2] = {CLI_OPT_X_MEDIA, CLI_OPT_Y_MEDIA};

/* ---- one line per row --------------------------------------------------------------------- */

/* Cuts the text into lines; an end of line at the very end begins no other. */
static int64_t cut(char *text, size_t size, char **line) {
  int64_t count = 0;
  for (char *at = text; at < text + size; count++) {
    char *end = memchr(at, '\n', (size_t)(text + size - at));
    if (!end) end = text + size;
    if (line) {
      line[count] = at;
      *end = '\0';
      if (end > at && end[-1] == '\r') end[-1] = '\0';
    }
    at = end + 1;
  }
  return count;
}

static int read_lines(tool *t, cli_id option, int64_t rows, report_lines *out) {
  const char *path = tool_value(t, option);
  size_t size = 0;
  if (!path) return EXIT_DONE;
  FILE *file = fopen(path, "rb");
  FILE *memory = file ? open_memstream(&out->text, &size) : NULL;
  if (!file) return tool_error(t, "%s: %s", path, strerror(errno));
  char block[1 << 14];
  for (size_t got; memory && (got = fread(block, 1, sizeof block, file)) > 0;)
    fwrite(block, 1, got, memory);
  const bool failed = ferror(file) != 0;
  fclose(file);
  if (!memory || fclose(memory) != 0) return tool_out_of_memory(t);
  if (failed) return tool_error(t, "%s: cannot be read", path);
  const int64_t count = cut(out->text, size, NULL);
  if (count != rows)
    return tool_error(t, "%s: %lld lines, but there are %lld rows", path, (long long)count,
                      (long long)rows);
  out->line = calloc((size_t)rows + 1, sizeof *out->line);
  if (!out->line) return tool_out_of_memory(t);
  cut(out->text, size, out->line);
  return EXIT_DONE;
}

int report_media_open(subject *s) {
  int code = EXIT_DONE;
  for (int side = 0; side < 2 && code == EXIT_DONE; side++) {
    code = read_lines(s->t, text_option[side], s->rows[side], &s->text[side]);
    if (code == EXIT_DONE)
      code = read_lines(s->t, media_option[side], s->rows[side], &s->media[side]);
  }
  return code;
}

void report_media_close(subject *s) {
  for (int side = 0; side < 2; side++) {
    free(s->text[side].line);
    free(s->text[side].text);
    free(s->media[side].line);
    free(s->media[side].text);
  }
}

/* ---- links -------------------------------------------------------------------------------- */

/* The path as part of an address: everything but letters, digits and a few signs as %XX. */
static void put_address(FILE *out, const char *path) {
  static const char plain[] = "/._-~+,=@";
  for (const char *c = path; *c; c++) {
    const bool letter =
        (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (letter || strchr(plain, *c))
      fputc(*c, out);
    else
      fprintf(out, "%%%02X", (unsigned char)*c);
  }
}

/* From folder to file, both absolute and without links: "./a/b.png", "../c.png". */
static json_t *link_json(const char *folder, const char *file) {
  char *text = NULL;
  size_t size = 0, same = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out) return NULL;
  for (size_t k = 0; folder[k] && folder[k] == file[k]; k++)
    if (folder[k] == '/') same = k + 1;
  const size_t length = strlen(folder);
  if (strncmp(folder, file, length) == 0 && file[length] == '/') same = length + 1;
  const char *rest = same > length ? "" : folder + same;
  fputs(*rest ? "" : "./", out);
  for (const char *c = rest; *c; c++)
    if (c == rest || *c == '/') fputs("../", out);
  put_address(out, file + same);
  json_t *value = fclose(out) == 0 ? json_string(text) : NULL;
  free(text);
  return value;
}

/* ---- images ------------------------------------------------------------------------------- */

static const char *image_type(const unsigned char *data, size_t size) {
  if (size > 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0) return "png";
  if (size > 3 && memcmp(data, "\xff\xd8\xff", 3) == 0) return "jpeg";
  if (size > 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0)) return "gif";
  if (size > 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0) return "webp";
  return NULL;
}

static json_t *image_json(const char *type, const unsigned char *data, size_t size) {
  static const char sign[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t room = 4 * ((size + 2) / 3) + 40;
  char *text = malloc(room);
  if (!text) return NULL;
  char *to = text + snprintf(text, room, "data:image/%s;base64,", type);
  for (size_t k = 0; k < size; k += 3) {
    const unsigned next = k + 1 < size ? data[k + 1] : 0, last = k + 2 < size ? data[k + 2] : 0;
    const unsigned bits = (unsigned)data[k] << 16 | next << 8 | last;
    *to++ = sign[bits >> 18];
    *to++ = sign[bits >> 12 & 63];
    *to++ = k + 1 < size ? sign[bits >> 6 & 63] : '=';
    *to++ = k + 2 < size ? sign[bits & 63] : '=';
  }
  *to = '\0';
  json_t *out = json_string(text);
  free(text);
  return out;
}

/* ---- cards -------------------------------------------------------------------------------- */

/* Where links begin, what may still be put inside, and what could not be read. */
typedef struct library {
  char folder[PATH_MAX];
  size_t left;
  int64_t missing;
  char first[PATH_MAX + 80]; /* that is missing, with the reason */
} library;

/* The file of a line: an absolute path, or one from the folder of the list. */
static bool find_file(const char *list, const char *line, char out[PATH_MAX]) {
  char path[PATH_MAX];
  const char *slash = strrchr(list, '/');
  const int folder = *line == '/' || !slash ? 0 : (int)(slash - list) + 1;
  const int length = snprintf(path, sizeof path, "%.*s%s", folder, list, line);
  if (length >= (int)sizeof path) errno = ENAMETOOLONG;
  return length < (int)sizeof path && realpath(path, out);
}

/* Is this what a page can show or play? Images of the common kinds are known by their bytes, others
 * and sounds by their names. */
static bool is_media(const char *type, const char *path) {
  static const char *const known[] = {".wav",  ".mp3", ".ogg", ".oga",  ".opus", ".flac",
                                      ".m4a",  ".aac", ".aif", ".aiff", ".weba", ".mp4",
                                      ".m4v",  ".mov", ".mkv", ".ogv",  ".webm", ".avif",
                                      ".heic", ".jxl", ".bmp", ".tif",  ".svg",  ".tiff"};
  const char *dot = strrchr(path, '.');
  bool found = type != NULL;
  for (size_t k = 0; dot && k < sizeof known / sizeof *known; k++)
    found = found || strcasecmp(dot, known[k]) == 0;
  return found;
}

/* An image that still has room, else a link; NULL with errno set where there is no such file. */
static json_t *media_json(library *l, const char *list, const char *line) {
  char path[PATH_MAX];
  FILE *file = find_file(list, line, path) ? fopen(path, "rb") : NULL;
  unsigned char *data = file ? malloc(IMAGE_BYTES + 1) : NULL;
  if (!data) {
    if (file) fclose(file);
    return NULL;
  }
  const size_t size = fread(data, 1, IMAGE_BYTES + 1, file);
  const bool failed = ferror(file) != 0; /* a folder */
  fclose(file);
  const char *type = image_type(data, size);
  json_t *out = NULL;
  if (failed)
    errno = EISDIR;
  else if (!is_media(type, path))
    errno = 0;
  else if (type && size <= IMAGE_BYTES && size <= l->left)
    out = image_json(type, data, size);
  else
    out = link_json(l->folder, path);
  if (out && json_string_value(out)[0] == 'd') l->left -= size;
  free(data);
  return out;
}

static void add_media(const subject *s, int side, json_t *card, library *l) {
  const char *list = tool_value(s->t, media_option[side]);
  const char *line = s->media[side].line[json_integer_value(json_object_get(card, "number"))];
  if (!*line) return;
  errno = ENOMEM;
  json_t *media = media_json(l, list, line);
  if (media)
    json_object_set_new(card, "media", media);
  else if (l->missing++ == 0)
    snprintf(l->first, sizeof l->first, "%.2000s: %s", line,
             errno ? strerror(errno) : "no image or sound");
}

/* At most TEXT_BYTES bytes, cut between two characters. */
static json_t *text_json(const char *line) {
  char text[TEXT_BYTES + 8];
  size_t length = strlen(line);
  const bool cut_off = length > TEXT_BYTES;
  if (cut_off)
    for (length = TEXT_BYTES; length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80;) length--;
  snprintf(text, sizeof text, "%.*s%s", (int)length, line, cut_off ? "\xe2\x80\xa6" : "");
  return display_json_text(text);
}

static void add_texts(const subject *s, int side, json_t *cards) {
  size_t k;
  json_t *card;
  json_array_foreach(cards, k, card) {
    const char *line = s->text[side].line[json_integer_value(json_object_get(card, "number"))];
    if (*line) json_object_set_new(card, "text", text_json(line));
  }
}

/* Where the page will lie; links lead from there. */
static bool open_library(const subject *s, library *l) {
  const char *output = tool_value(s->t, CLI_OPT_OUTPUT),
             *slash = output ? strrchr(output, '/') : NULL;
  char *folder =
      !slash ? strdup(".") : strndup(output, slash == output ? 1 : (size_t)(slash - output));
  const bool done = folder && realpath(folder, l->folder);
  l->left = ALL_BYTES;
  free(folder);
  return done;
}

int report_media_add(const subject *s, json_t *const cards[2]) {
  static const unsigned char turn[] = {REPORT_LISTED, REPORT_PLACED, REPORT_MENTIONED};
  library *l = calloc(1, sizeof *l);
  if (!l || !open_library(s, l)) {
    free(l);
    return tool_error(s->t, "the folder of the page cannot be found: %s", strerror(errno));
  }
  for (int side = 0; side < 2; side++)
    if (s->text[side].line) add_texts(s, side, cards[side]);
  for (size_t k = 0; k < 2 * sizeof turn; k++) { /* rows of the lists come first */
    const int side = (int)(k % 2);
    const unsigned char own = turn[k / 2], before = (unsigned char)(own - 1);
    size_t i;
    json_t *card;
    if (!s->media[side].line) continue;
    json_array_foreach(cards[side], i, card) {
      const int64_t row = json_integer_value(json_object_get(card, "number"));
      const unsigned char named = s->named[side][row];
      if ((named & own) && !(named & before)) add_media(s, side, card, l);
    }
  }
  if (l->missing > 0) {
    char said[PATH_MAX + 200];
    snprintf(said, sizeof said,
             "%lld files of --x-media and --y-media are left out; the first is %s",
             (long long)l->missing, l->first);
    display_log(&s->t->display, UNICON_LOG_WARNING, said);
  }
  free(l);
  return EXIT_DONE;
}
