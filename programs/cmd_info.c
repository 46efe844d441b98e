/* SPDX-License-Identifier: Apache-2.0 */
/* unicon info [MODEL|STATS|ROWS] */
#include <string.h>
#include <sys/stat.h>

#include "balanced.h"
#include "summed.h"

enum { LEADING = 6, LONGEST = 300 };

/* ---- a model ------------------------------------------------------------------------------ */

static json_t *model_json(const unicon_model *model, const unicon_balance *balance,
                          const char *path) {
  json_t *spectrum = json_array(), *metadata = json_object();
  const int64_t rank = unicon_model_rank(model);
  const char *key, *value;
  for (int64_t i = 0; i < rank; i++)
    json_array_append_new(spectrum, json_real((double)unicon_model_spectrum(model)[i]));
  for (size_t i = 0; unicon_model_meta_at(model, i, &key, &value); i++)
    json_object_set_new(metadata, key, json_string(value));
  json_t *out = json_pack(
      "{s:o, s:I, s:I, s:I, s:o, s:o}", "model", display_json_text(path), "rank", (json_int_t)rank,
      "x_width", (json_int_t)unicon_model_width(model, UNICON_X), "y_width",
      (json_int_t)unicon_model_width(model, UNICON_Y), "spectrum", spectrum, "metadata", metadata);
  balanced_json(balance, out);
  return out;
}

/* Metadata are what the maker of the file wrote: nothing that a terminal would obey, and no more than
 * a few lines of it. */
static void print_tame(const char *text) {
  const unsigned char *const end = (const unsigned char *)text + LONGEST;
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    if (p >= end && *p < 0x80) {
      fputs(" ... (--json has all of it)", stdout);
      return;
    }
    const bool wide = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0; /* C1 controls in UTF-8 */
    putchar(wide || *p < ' ' || *p == 0x7f ? '?' : *p);
    p += wide;
  }
}

static void print_model(const unicon_model *model, const unicon_balance *balance,
                        const char *path) {
  char words[BALANCED_WORDS];
  const int64_t rank = unicon_model_rank(model);
  const char *key, *value;
  printf("%s\n", path);
  printf("  x: %lld numbers to %lld\n", (long long)unicon_model_width(model, UNICON_X),
         (long long)rank);
  printf("  y: %lld numbers to %lld\n", (long long)unicon_model_width(model, UNICON_Y),
         (long long)rank);
  fputs("  singular values:", stdout);
  for (int64_t i = 0; i < rank && i < LEADING; i++)
    printf(" %.3g", (double)unicon_model_spectrum(model)[i]);
  if (rank > LEADING) printf(" ... %.3g", (double)unicon_model_spectrum(model)[rank - 1]);
  printf("\n  balance: %s\n", balanced_words(balance, words));
  fputs("metadata\n", stdout);
  for (size_t i = 0; unicon_model_meta_at(model, i, &key, &value); i++) {
    fputs("  ", stdout);
    print_tame(key);
    printf("%*s ", strlen(key) < 22 ? 22 - (int)strlen(key) : 0, "");
    print_tame(value);
    putchar('\n');
  }
}

static int info_model(tool *t, const char *path) {
  unicon_model *model = NULL;
  const unicon_status status = unicon_model_load(t->ctx, path, &model);
  int code = status == UNICON_OK ? balanced_open(t, model) : tool_fail(t, status);
  if (code == EXIT_DONE && !tool_has(t, CLI_OPT_JSON))
    print_model(model, t->balance, path);
  else if (code == EXIT_DONE && !display_json(model_json(model, t->balance, path)))
    code = tool_out_of_memory(t);
  unicon_model_destroy(model);
  return code;
}

/* ---- presets, formats, build, devices ----------------------------------------------------- */

static const unicon_option_info *find_option(const char *name) {
  for (size_t i = 0; i < unicon_option_count(); i++)
    if (strcmp(unicon_option_at(i)->name, name) == 0) return unicon_option_at(i);
  return NULL;
}

/* The next word of a list separated by |; false at its end. */
static bool next_word(const char **list, char *out, size_t size) {
  const size_t length = strcspn(*list, "|");
  if (!length) return false;
  snprintf(out, size, "%.*s", (int)length, *list);
  *list += length + ((*list)[length] == '|');
  return true;
}

/* Name and what it may hold. */
static const char *const formats[][2] = {
    {"FILE.npy", "float16, bfloat16, float32, float64, int8, uint8; C or Fortran order"},
    {"FILE.npz:ARRAY", "the same, not compressed"},
    {"FILE.safetensors:TENSOR", "F16, BF16, F32, F64, I8, U8"},
    {"FILE.fvecs, FILE.fbin", "float32"},
    {"FILE.bvecs, FILE.u8bin", "uint8"},
    {"FILE.i8bin", "int8"},
    {"FILE.faiss, FILE.index", "the vectors of a flat FAISS index, float32"},
    {"FOLDER", "numbered .npy shards as one matrix"},
};
enum { FORMATS = sizeof formats / sizeof *formats };

enum { DEVICES = 9 };

static json_t *devices_json(const unicon_device *list, size_t count) {
  json_t *out = json_array();
  for (size_t k = 0; k < count; k++)
    json_array_append_new(
        out, json_pack("{s:s, s:b, s:b, s:o}", "name", list[k].name, "usable", list[k].usable,
                       "chosen", list[k].chosen, "text", display_json_text(list[k].text)));
  return out;
}

static void print_devices(const unicon_device *list, size_t count) {
  puts("\ndevices (device NAME; * is the one in force)");
  for (size_t k = 0; k < count; k++) {
    printf("%c %-7s ", list[k].chosen ? '*' : ' ', list[k].name);
    if (!list[k].usable) fputs("not usable: ", stdout);
    print_tame(list[k].text);
    putchar('\n');
  }
}

static json_t *tool_json(const unicon_device *device, size_t devices) {
  json_t *presets = json_object(), *readable = json_array();
  const unicon_option_info *preset = find_option("preset");
  const char *list = preset ? preset->words : "", *name, *value;
  char word[32];
  while (next_word(&list, word, sizeof word)) {
    json_t *settings = json_object();
    for (size_t i = 0; unicon_preset_at(word, i, &name, &value); i++)
      json_object_set_new(settings, name, json_string(value));
    json_object_set_new(presets, word, settings);
  }
  for (size_t i = 0; i < FORMATS; i++) json_array_append_new(readable, json_string(formats[i][0]));
  return json_pack("{s:s, s:s, s:o, s:o, s:o}", "version", unicon_version(), "build",
                   unicon_build_info(), "devices", devices_json(device, devices), "presets",
                   presets, "formats", readable);
}

static void print_preset(const char *preset) {
  const char *name, *value, *before = "";
  int column = printf("  %-6s", preset);
  for (size_t i = 0; unicon_preset_at(preset, i, &name, &value); i++) {
    const bool chosen = strcmp(value, "chosen") == 0;
    if (i == 0 && chosen) column += printf(" chosen on held-out pairs:");
    column += printf("%s", before);
    if (column > 60) column = printf("\n%8s", "") - 1;
    column += chosen ? printf(" %s", name) : printf(" %s %s", name, value);
    before = ",";
  }
}

static void print_presets(void) {
  const unicon_option_info *preset = find_option("preset");
  const char *list = preset ? preset->words : "";
  char word[32];
  puts("presets (fit --preset NAME; options that are given override it)");
  while (next_word(&list, word, sizeof word)) {
    print_preset(word);
    puts(preset && strcmp(word, preset->default_value) == 0 ? " (the default)" : "");
  }
}

/* ---- rows --------------------------------------------------------------------------------- */

/* By its name no model: a matrix in another format, a part of a file, or a folder. */
static bool names_rows(const char *path) {
  static const char *const suffix[] = {".npy",   ".npz",   ".fvecs", ".bvecs", ".fbin",
                                       ".u8bin", ".i8bin", ".faiss", ".index"};
  const char *dot = strrchr(path, '.');
  struct stat about;
  bool found = (stat(path, &about) == 0) ? S_ISDIR(about.st_mode) : strchr(path, ':') != NULL;
  for (size_t k = 0; dot && k < sizeof suffix / sizeof *suffix; k++)
    found = found || strcmp(dot, suffix[k]) == 0;
  return found;
}

static int info_rows(tool *t, const char *path) {
  unicon_rows *rows = NULL;
  const unicon_status status = unicon_rows_open(t->ctx, path, &rows);
  if (status != UNICON_OK) return tool_fail(t, status);
  const int64_t count = unicon_rows_count(rows), width = unicon_rows_width(rows);
  char shape[80];
  unicon_rows_close(rows);
  if (!tool_has(t, CLI_OPT_JSON)) {
    printf("%s\n  %s\n", path, display_shape(count, width, shape, sizeof shape));
    return EXIT_DONE;
  }
  json_t *out = json_pack("{s:o, s:I, s:I}", "rows_of", display_json_text(path), "rows",
                          (json_int_t)count, "width", (json_int_t)width);
  return display_json(out) ? EXIT_DONE : tool_out_of_memory(t);
}

int cmd_info(tool *t) {
  const char *path = t->args->positional[0];
  if (path && summed_is_name(path)) return summed_info(t, path);
  if (path && names_rows(path)) return info_rows(t, path);
  if (path) return info_model(t, path);
  unicon_device device[DEVICES];
  size_t devices;
  const unicon_status status = unicon_devices(t->ctx, device, DEVICES, &devices);
  if (status != UNICON_OK) return tool_fail(t, status);
  if (devices > DEVICES) devices = DEVICES;
  if (tool_has(t, CLI_OPT_JSON))
    return display_json(tool_json(device, devices)) ? EXIT_DONE : tool_out_of_memory(t);
  printf("unicon %s\n%s\n\n", unicon_version(), unicon_build_info());
  print_presets();
  puts("\nmatrices are read from");
  for (size_t i = 0; i < FORMATS; i++) printf("  %-24s %s\n", formats[i][0], formats[i][1]);
  print_devices(device, devices);
  return EXIT_DONE;
}
