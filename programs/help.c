/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts, made from the two option tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli.h"

enum { LEFT = 24, NARROW = 60, USUAL = 80, WIDE = 100, TEXT = 1200 };

/* The columns of the terminal, as far as lines are easy to read. */
static int width_of(FILE *stream) {
  const char *said = getenv("COLUMNS");
  struct winsize size;
  int columns = said ? atoi(said) : 0;
  if (columns <= 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0) columns = USUAL;
  return columns < NARROW ? NARROW : columns > WIDE ? WIDE : columns;
}

static bool is_operator(const char *word, size_t length) {
  return length == 1 && strchr("=+-/*", *word);
}

/* Does the word look like a part of a formula: W_x, s^2, psi(t), a capital letter, a number? */
static bool is_formula(const char *word, size_t length) {
  const size_t from = *word == '-';
  if (length == 0 || strchr(",;:.", word[length - 1])) length = length ? length - 1 : 0;
  if (length > from && length - from <= 2 && strchr("ABCEFLSTUVW", word[from])) return true;
  for (size_t k = 1; k + 1 < length; k++)
    if (word[k] == '^' || word[k] == '(' || (word[k] == '_' && length <= 6)) return true;
  return false;
}

/* How far the text goes without a place to break a line: formulas stay whole, and so does what is in
 * backquotes or brackets. */
static size_t unit_of(const char *text) {
  size_t at = 0, word = 0; /* the word that is being read begins here */
  int depth = 0;
  bool quoted = false;
  for (;; at++) {
    const char c = text[at];
    if (!c || c == '\n') return at;
    quoted ^= c == '`';
    const bool call = c == '(' && at > 0 && !strchr(" (", text[at - 1]);
    depth += c == '[' || call || (depth > 0 && c == '(');
    depth -= depth > 0 && (c == ']' || c == ')');
    if (c != ' ') continue;
    const char *next = text + at + 1;
    const size_t length = at - word, following = strcspn(next, " \n");
    const bool ends = at > 0 && strchr(",;:.", text[at - 1]);
    const bool joined = is_operator(text + word, length) || is_operator(next, following) ||
                        (!ends && is_formula(text + word, length) && is_formula(next, following));
    if (!quoted && depth == 0 && !joined) return at;
    word = at + 1;
  }
}

/* Prints `text` wrapped between the columns; the first line starts at column `at`. */
static void print_wrapped(FILE *stream, const char *text, int at, int left, int right) {
  int column = at;
  while (*text) {
    int length = (int)unit_of(text);
    if (length > right - left) length = (int)strcspn(text, " \n");
    if (column > left && column + 1 + length > right) {
      fprintf(stream, "\n%*s", left, "");
      column = left;
    } else if (column > left) {
      fputc(' ', stream);
      column++;
    }
    fprintf(stream, "%.*s", length, text);
    column += length;
    text += length;
    text += strspn(text, " \n");
  }
  fputc('\n', stream);
}

static size_t append(char *out, size_t size, size_t at, const char *text) {
  if (at < size) snprintf(out + at, size - at, "%s", text);
  return at + strlen(text);
}

/* " From 0 to 1." where the bounds say something. */
static size_t append_bounds(const unicon_option_info *option, char *out, size_t size, size_t at) {
  char text[96] = "";
  const bool number = strcmp(option->kind, "integer") == 0 || strcmp(option->kind, "real") == 0 ||
                      strcmp(option->kind, "sided") == 0;
  if (!number || (option->low == 0 && option->high == 0)) return at;
  const bool low = option->low > -1e9, high = option->high < 1e6;
  if (low && high)
    snprintf(text, sizeof text, " From %g to %g.", option->low, option->high);
  else if (low)
    snprintf(text, sizeof text, " At least %g.", option->low);
  return append(out, size, at, text);
}

void cli_entry_text(const cli_entry *entry, char *out, size_t size) {
  const bool form = entry->library && strcmp(entry->library->kind, "form") == 0;
  const bool listed = entry->flag || form || strchr(entry->value, '|'); /* named already */
  size_t at = append(out, size, 0, entry->help);
  if (*entry->words && !listed) {
    at = append(out, size, at, " One of: ");
    for (const char *c = entry->words; *c; c++) {
      const char one[2] = {*c, '\0'};
      at = append(out, size, at, *c == '|' ? ", " : one);
    }
    at = append(out, size, at, ".");
  }
  if (entry->library) at = append_bounds(entry->library, out, size, at);
  if (*entry->default_value && !entry->flag) {
    const bool same = strcmp(entry->default_value, "auto") == 0;
    at = append(out, size, at, " Default: ");
    if (entry->chosen) at = append(out, size, at, same ? "chosen by " : "chosen by auto, else ");
    if (entry->of_model) at = append(out, size, at, "that of the model, else ");
    at = append(out, size, at, entry->default_value);
    append(out, size, at, ".");
  }
}

static void print_entry(FILE *stream, const cli_entry *entry) {
  char left[160], text[TEXT];
  char letter[8] = "";
  if (entry->letter) snprintf(letter, sizeof letter, "-%c, ", entry->letter);
  const int width = snprintf(left, sizeof left, "  %s--%s%s%s", letter, entry->name,
                             *entry->value ? " " : "", entry->value);
  cli_entry_text(entry, text, sizeof text);
  fputs(left, stream);
  if (width + 2 > LEFT)
    fprintf(stream, "\n%*s", LEFT, "");
  else
    fprintf(stream, "%*s", LEFT - width, "");
  print_wrapped(stream, text, LEFT, LEFT, width_of(stream));
}

/* What most people need of a command that has --help-all. */
static bool is_common(const cli_entry *entry) {
  static const char *const names[] = {
      "output",  "y-per-x",  "x-per-y", "pairs",   "x-labels", "y-labels", "val-x",
      "val-y",   "bad-rows", "preset",  "kernel",  "rank",     "balance",  "budget",
      "threads", "max-mem",  "json",    "verbose", "help",     "help-all",
  };
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(entry->name, names[k]) == 0) return true;
  return false;
}

static bool has_more(const cli_command *command) {
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++)
    if (entry.tool && entry.tool->id == CLI_OPT_HELP_ALL) return true;
  return false;
}

static void print_group(FILE *stream, const cli_command *command, const char *group, bool all) {
  cli_entry entry;
  bool any = false;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    if (strcmp(entry.group, group) != 0 || !(all || is_common(&entry))) continue;
    if (!any) fprintf(stream, "\n%s:\n", group);
    any = true;
    print_entry(stream, &entry);
  }
}

/* Groups come in the order of their first option, those of every command last. */
static void print_options(FILE *stream, const cli_command *command, bool all) {
  cli_entry entry, earlier;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    if (entry.general) continue;
    bool first = true;
    for (size_t j = 0; first && j < i && cli_entry_at(command, j, &earlier); j++)
      first = strcmp(earlier.group, entry.group) != 0;
    if (first) print_group(stream, command, entry.group, all);
  }
  print_group(stream, command, CLI_GENERAL, all);
}

static void print_formulas(FILE *stream) {
  const cli_formulas *section;
  for (size_t i = 0; (section = cli_formulas_at(i)) != NULL; i++) {
    if (!cli_library_accepts(section->option, "")) continue;
    fprintf(stream, "\n%s\n", section->heading);
    if (*section->intro) {
      fputs("  ", stream);
      print_wrapped(stream, section->intro, 2, 2, width_of(stream));
    }
    for (const cli_formula *line = section->line; line->word; line++) {
      if (!cli_library_accepts(section->option, line->word)) continue;
      const int left = *line->word ? 13 : 2;
      fprintf(stream, "  %-*s", left - 2, line->word);
      print_wrapped(stream, line->text, left, left, width_of(stream));
    }
  }
}

static void print_example(FILE *stream, const char *example) {
  fputs("\nExample:\n", stream);
  while (*example) {
    const int length = (int)strcspn(example, "\n");
    fprintf(stream, "  %.*s\n", length, example);
    example += length + (example[length] == '\n');
  }
}

/* "Usage: unicon fit X Y ...", a line for each way. */
static void print_usage(FILE *stream, const cli_command *command) {
  static const char before[] = "Usage: unicon ", between[] = "   or   ";
  const int left = (int)(sizeof before - 1 + strlen(command->name));
  const char *usage = command->usage;
  fprintf(stream, "%s%s ", before, command->name);
  for (const char *next; (next = strstr(usage, between)) != NULL;) {
    char way[160];
    snprintf(way, sizeof way, "%.*s", (int)(next - usage), usage);
    print_wrapped(stream, way, left + 1, left + 1, width_of(stream));
    usage = next + sizeof between - 1;
    fprintf(stream, "%*s", (int)sizeof "Usage:", "");
    if (strncmp(usage, "unicon ", 7) == 0) usage += 7;
    fputs("unicon ", stream);
    const size_t name = strcspn(usage, " ");
    fprintf(stream, "%.*s ", (int)name, usage);
    usage += name + 1;
  }
  print_wrapped(stream, usage, left + 1, left + 1, width_of(stream));
  fputc('\n', stream);
}

void cli_help(const cli_command *command, bool all, FILE *stream) {
  char rest[200];
  all = all || !has_more(command);
  print_usage(stream, command);
  print_wrapped(stream, command->about, 0, 0, width_of(stream));
  print_example(stream, command->example);
  print_options(stream, command, all);
  if (all) {
    if (command->scope & UNICON_SCOPE_FIT) print_formulas(stream);
    return;
  }
  snprintf(rest, sizeof rest,
           "These are the common options. `unicon %s --help-all` lists all of them: losses, "
           "kernels, metrics and solver, with their formulas.",
           command->name);
  fputc('\n', stream);
  print_wrapped(stream, rest, 0, 0, width_of(stream));
}

void cli_overview(FILE *stream) {
  const int right = width_of(stream);
  fputs("unicon aligns two sets of frozen embeddings into one shared space.\n\n", stream);
  print_wrapped(stream,
                "`fit` compares closed forms (kernel, ridge, metric, rank) on held-out pairs, "
                "refines the best where that helps, and reports its held-out score; `--preset "
                "fast` is the closed form alone.",
                0, 0, right);
  fputs("\nUsage: unicon COMMAND ...\n\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) {
    fprintf(stream, "  %-9s ", cli_commands[i].name);
    print_wrapped(stream, cli_commands[i].summary, 12, 12, right);
  }
  fputs(
      "\nExample: images and their captions, five for each image\n"
      "  unicon fit image.train.npy text.train.npy --y-per-x 5 -o model.safetensors\n"
      "  unicon eval model.safetensors image.test.npy text.test.npy --y-per-x 5\n"
      "\nNo data at hand? `unicon synth linear -o demo` makes some.\n"
      "`unicon COMMAND --help` explains a command. Also: unicon --version,\n"
      "--man (the manual page as scdoc source), --completion bash|zsh|fish.\n",
      stream);
}
