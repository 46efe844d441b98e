/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.h"

#include <string.h>

/* Does `text` go on with `words`, and then with no letter or other part of a name? */
static bool goes_on(const char *text, const char *words, size_t length) {
  const char after = strncmp(text, words, length) == 0 ? text[length] : 'x';
  return !after || strchr(" ,;)", after) ||
         (after == '.' && (!text[length + 1] || text[length + 1] == ' '));
}

/* The length of the accepted word that follows; 0: none does. */
static size_t word_after(const char *text, const char *words) {
  for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|') {
    const size_t length = strcspn(w, "|");
    if (goes_on(text, w, length)) return length;
  }
  return 0;
}

/* File names and other words of the user may be those of an option. */
static bool is_argument(const cli_args *args, const char *name) {
  bool found = false;
  for (int k = 0; k < CLI_POSITIONALS; k++)
    found = found || (args->positional[k] && strstr(args->positional[k], name));
  for (size_t k = 0; k < args->rests; k++) found = found || strstr(args->rest[k], name);
  for (size_t k = 0; k < args->settings; k++) found = found || strstr(args->setting[k].value, name);
  for (int k = 0; k < CLI_OPT_COUNT; k++)
    found = found || (args->value[k] && strstr(args->value[k], name));
  return found;
}

/* The option of the command whose name, of `length`, the text begins with. */
static bool find(const cli_args *args, const char *text, size_t length, cli_entry *out) {
  char name[sizeof out->name];
  if (length == 0 || length >= sizeof name || !goes_on(text, text, length)) return false;
  snprintf(name, sizeof name, "%.*s", (int)length, text);
  if (is_argument(args, name)) return false;
  for (char *c = name; *c; c++)
    if (*c == '_') *c = '-';
  for (size_t i = 0; cli_entry_at(args->command, i, out); i++)
    if (strcmp(out->name, name) == 0) return true;
  return false;
}

/* Is the name meant as an option: it is no plain word, or something is said about its value? */
static bool is_meant(const cli_entry *entry, const char *at, size_t length, bool begins) {
  const char *rest = at + length;
  if (memchr(at, '_', length)) return true;
  if (begins && (strncmp(rest, " is ", 4) == 0 || strncmp(rest, " has no effect", 14) == 0))
    return true;
  return entry->library && *rest == ' ' && word_after(rest + 1, entry->words) > 0;
}

void flags_in(const cli_args *args, const char *text, char *out, size_t size) {
  const char *value = NULL, *end = NULL; /* the quotes of a value that is refused */
  char quote = 0;
  size_t at = 0;
  for (const char *c = text; *c && at + 1 < size;) {
    const size_t length = strspn(c, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const bool first = c == text || strchr(" (", c[-1]);
    cli_entry entry;
    if (!quote && first && find(args, c, length, &entry) &&
        is_meant(&entry, c, length, c == text)) {
      at += (size_t)snprintf(out + at, size - at, "--%s", entry.name);
      if (c == text && strncmp(c + length, " is \"", 5) == 0) value = c + length + 4;
      if (value) end = strstr(value + 1, "\"; ");
      c += length;
      if (entry.flag && goes_on(c, " on", 3)) c += 3;
      continue;
    }
    if (*c == '"' || *c == '`') quote = !quote ? *c : quote == *c ? 0 : quote;
    out[at++] = (char)(end && (c == value || c == end) ? '`' : *c);
    c++;
  }
  out[at < size ? at : size - 1] = '\0';
}
