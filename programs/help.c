/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts, made from the two option tables. */
#include <math.h>
#include <string.h>

#include "cli.h"

enum { LEFT = 24, RIGHT = 92, TEXT = 1200 };

/* Prints `text` wrapped between the columns; the first line starts at column `at`. */
static void print_wrapped(FILE *stream, const char *text, int at, int left, int right) {
  int column = at;
  while (*text) {
    const int length = (int)strcspn(text, " \n");
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
  print_wrapped(stream, text, LEFT, LEFT, RIGHT);
}

/* What most people need of a command that has --help-all. */
static bool is_common(const cli_entry *entry) {
  static const char *const names[] = {
      "output", "y-per-x", "pairs",   "x-labels", "y-labels", "val-x", "val-y",    "preset",
      "kernel", "rank",    "balance", "budget",   "threads",  "help",  "help-all",
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
      print_wrapped(stream, section->intro, 2, 2, RIGHT);
    }
    for (const cli_formula *line = section->line; line->word; line++) {
      if (!cli_library_accepts(section->option, line->word)) continue;
      const int left = *line->word ? 13 : 2;
      fprintf(stream, "  %-*s", left - 2, line->word);
      print_wrapped(stream, line->text, left, left, RIGHT);
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

void cli_help(const cli_command *command, bool all, FILE *stream) {
  all = all || !has_more(command);
  fprintf(stream, "Usage: unicon %s %s\n\n", command->name, command->usage);
  print_wrapped(stream, command->about, 0, 0, RIGHT);
  print_example(stream, command->example);
  print_options(stream, command, all);
  if (!all)
    fprintf(stream,
            "\nThese are the common options. `unicon %s --help-all` lists all of them: losses, "
            "kernels,\nmetrics and solver, with their formulas.\n",
            command->name);
  else if (command->scope & UNICON_SCOPE_FIT)
    print_formulas(stream);
}

void cli_overview(FILE *stream) {
  fputs(
      "unicon aligns two sets of frozen embeddings into one shared space.\n\n"
      "`fit` compares closed forms (kernel, ridge, metric, rank) on held-out pairs, refines the "
      "best\nwhere that helps, and reports its held-out score; `--preset fast` is the closed form "
      "alone.\n\n"
      "Usage: unicon COMMAND ...\n\n",
      stream);
  for (size_t i = 0; i < cli_command_count; i++)
    fprintf(stream, "  %-9s %s\n", cli_commands[i].name, cli_commands[i].summary);
  fputs(
      "\nExample: images and their captions, five for each image\n"
      "  unicon fit image.train.npy text.train.npy --y-per-x 5 -o model.safetensors\n"
      "  unicon eval model.safetensors image.test.npy text.test.npy --y-per-x 5\n"
      "\nNo data at hand? `unicon synth linear -o demo` makes some.\n"
      "`unicon COMMAND --help` explains a command; also: unicon --version, --man,\n"
      "--completion bash|zsh|fish.\n",
      stream);
}
