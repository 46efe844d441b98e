/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.h"

#include <stddef.h>
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

/* Was the option given with the value that `text` begins with? */
static bool is_given(const cli_args *args, const cli_entry *entry, const char *text,
                     size_t length) {
  for (size_t k = 0; k < args->settings; k++) {
    const char *value = args->setting[k].value ? args->setting[k].value : "on";
    if (args->setting[k].option == entry->library && strlen(value) == length &&
        strncmp(value, text, length) == 0)
      return true;
  }
  return false;
}

/* Does what stands before `at` in the text advise, or say when something holds? */
static bool is_advised(const char *text, const char *at) {
  static const char *const before[] = {"; ",   "(",   "or ",   "use ",
                                       "set ", "in ", "with ", "without "};
  for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
    const size_t length = strlen(before[k]);
    if ((size_t)(at - text) >= length && strncmp(at - length, before[k], length) == 0 &&
        ((before[k][0] == ';' || before[k][0] == '(') || at == text + length ||
         at[-(ptrdiff_t)length - 1] == ' '))
      return true;
  }
  return false;
}

/* Is the name meant as an option: it is no plain word, or something is said about its value? What a
 * choice has tried, as in "no time for kernel rbf", is no option of the user's. */
static bool is_meant(const cli_args *args, const cli_entry *entry, const char *text, const char *at,
                     size_t length) {
  const char *rest = at + length;
  if (memchr(at, '_', length)) return true;
  if (at == text && (strncmp(rest, " is ", 4) == 0 || strncmp(rest, " has no effect", 14) == 0))
    return true;
  const size_t word = entry->library && *rest == ' ' ? word_after(rest + 1, entry->words) : 0;
  return word > 0 && (is_advised(text, at) || is_given(args, entry, rest + 1, word));
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
        is_meant(args, &entry, text, c, length)) {
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
