/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ----------------------------------------------------------------------------- */

/* The last sentence, for other processes that have not seen it. */
static char said[1024];

const char *cli_said(void) {
  return said;
}

__attribute__((format(printf, 2, 0))) static void say(const cli_command *command,
                                                      const char *format, va_list arguments) {
  vsnprintf(said, sizeof said, format, arguments);  // NOLINT(clang-analyzer-valist.Uninitialized)
  fprintf(stderr, "unicon%s%s: %s\n", command ? " " : "", command ? command->name : "", said);
}

int cli_error(const cli_command *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(command, format, arguments);
  va_end(arguments);
  return EXIT_USAGE;
}

int cli_usage_error(const cli_command *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(command, format, arguments);
  va_end(arguments);
  fprintf(stderr, "usage: unicon %s %s\n", command->name, command->usage);
  return EXIT_USAGE;
}

/* ---- nearest name ------------------------------------------------------------------------- */

enum { LONGEST_NAME = 48, LONGEST_WORDS = 20 };

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b; long names count as far
 * apart. O(|a| |b|). */
static size_t edit_distance(const char *a, const char *b) {
  const size_t n = strlen(a), m = strlen(b);
  if (n > LONGEST_NAME || m > LONGEST_NAME) return SIZE_MAX;
  size_t row[3][LONGEST_NAME + 1]; /* the last three rows of the table, by i modulo 3 */
  for (size_t j = 0; j <= m; j++) row[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t *now = row[i % 3];
    const size_t *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t least = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < least) least = last[j] + 1;
      if (now[j - 1] + 1 < least) least = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < least)
        least = before[j - 2] + 1;
      now[j] = least;
    }
  }
  return row[n % 3][m];
}

bool cli_nearer(const char *word, const char *known, size_t *best) {
  const size_t length = strlen(word);
  size_t distance = edit_distance(word, known);
  if (length >= 3 && strncmp(word, known, length) == 0) distance = 1; /* a beginning */
  if (distance > 1 + length / 4 || distance >= *best) return false;
  *best = distance;
  return true;
}

/* ---- the two tables as one ---------------------------------------------------------------- */

static void describe(cli_entry *out, const char *words, const char *default_value,
                     const char *group, const char *help) {
  out->words = words;
  out->default_value = default_value;
  out->group = group;
  out->help = help;
  out->general = strcmp(group, CLI_GENERAL) == 0;
}

static bool entry_of_tool(const cli_option *option, cli_entry *out) {
  snprintf(out->name, sizeof out->name, "%s", option->name);
  out->letter = option->letter;
  out->flag = !option->metavar;
  if (out->flag && *option->words)
    snprintf(out->value, sizeof out->value, "[%s]", option->words);
  else if (!out->flag)
    snprintf(out->value, sizeof out->value, "%s", *option->words ? option->words : option->metavar);
  describe(out, option->words, option->default_value ? option->default_value : "", option->group,
           option->help);
  out->tool = option;
  return true;
}

static bool entry_of_library(const unicon_option_info *option, cli_entry *out) {
  snprintf(out->name, sizeof out->name, "%s", option->name);
  for (char *c = out->name; *c; c++)
    if (*c == '_') *c = '-';
  const bool word = strcmp(option->kind, "word") == 0;
  out->flag = strcmp(option->kind, "flag") == 0;
  if (out->flag)
    out->value[0] = '\0';
  else if (word && strlen(option->words) <= LONGEST_WORDS)
    snprintf(out->value, sizeof out->value, "%s", option->words);
  else if (!word && strcmp(option->kind, "form") != 0 && *option->words)
    snprintf(out->value, sizeof out->value, "%s|%s", option->metavar, option->words);
  else
    snprintf(out->value, sizeof out->value, "%s", option->metavar);
  describe(out, option->words, option->default_value, option->group, option->help);
  out->library = option;
  return true;
}

bool cli_chosen(const unicon_option_info *option) {
  const char *preset = unicon_options_get(NULL, "preset"), *name, *value;
  for (size_t i = 0; unicon_preset_at(preset, i, &name, &value); i++)
    if (strcmp(name, option->name) == 0) return strcmp(value, "chosen") == 0;
  return false;
}

bool cli_entry_at(const cli_command *command, size_t index, cli_entry *out) {
  const unsigned bit = command ? command->bit : CLI_TOP;
  const unsigned scope = command ? command->scope : 0;
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < cli_tool_option_count; i++)
    if (cli_tool_options[i].commands & bit)
      if (index-- == 0) return entry_of_tool(&cli_tool_options[i], out);
  for (size_t i = 0; i < unicon_option_count(); i++)
    if ((unicon_option_at(i)->scope & scope) && (cli_commands_of(unicon_option_at(i)) & bit))
      if (index-- == 0) {
        out->chosen = (scope & UNICON_SCOPE_FIT) && cli_chosen(unicon_option_at(i));
        out->of_model = unicon_option_at(i)->scope & scope & UNICON_SCOPE_WEIGHTS;
        return entry_of_library(unicon_option_at(i), out);
      }
  return false;
}

const cli_command *cli_command_find(const char *name) {
  for (size_t i = 0; i < cli_command_count; i++)
    if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
  return NULL;
}

static bool find_long(const cli_command *command, const char *name, cli_entry *out) {
  for (size_t i = 0; cli_entry_at(command, i, out); i++)
    if (strcmp(out->name, name) == 0) return true;
  return false;
}

bool cli_has(const cli_command *command, const char *name) {
  cli_entry entry;
  return find_long(command, name, &entry);
}

static bool find_letter(const cli_command *command, char letter, cli_entry *out) {
  for (size_t i = 0; cli_entry_at(command, i, out); i++)
    if (out->letter == letter) return true;
  return false;
}

/* ---- the parser --------------------------------------------------------------------------- */

typedef struct parser {
  const cli_command *command;
  char **argv;
  int count, next;
  int positionals; /* given so far */
  cli_args *out;
} parser;

/* Names the nearest option of the command; NULL stands for `unicon` itself. */
static int suggest(const cli_command *command, const char *name) {
  cli_entry entry;
  char nearest[sizeof entry.name] = "";
  size_t best = SIZE_MAX;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++)
    if (cli_nearer(name, entry.name, &best)) memcpy(nearest, entry.name, sizeof nearest);
  if (*nearest) return cli_error(command, "unknown option --%s; did you mean --%s?", name, nearest);
  return cli_error(command, "unknown option --%s; `unicon%s%s --help` lists them", name,
                   command ? " " : "", command ? command->name : "");
}

/* "of `unicon eval`", or "of the commands fit, plan and eval"; false where no other command has it. */
static bool whose(const cli_command *command, const char *name, char *out, size_t size) {
  const char *owner[32];
  size_t owners = 0, at = 0;
  for (size_t c = 0; c < cli_command_count && owners < 32; c++)
    if (&cli_commands[c] != command && cli_has(&cli_commands[c], name))
      owner[owners++] = cli_commands[c].name;
  if (owners == 1) snprintf(out, size, "of `unicon %s`", owner[0]);
  for (size_t k = 0; owners > 1 && k < owners && at < size; k++)
    at += (size_t)snprintf(out + at, size - at, "%s%s",
                           k == 0            ? "of the commands "
                           : k + 1 == owners ? " and "
                                             : ", ",
                           owner[k]);
  return owners > 0;
}

int cli_unknown_option(const cli_command *command, const char *name) {
  char owners[256];
  if (!whose(command, name, owners, sizeof owners)) return suggest(command, name);
  return cli_error(command, "--%s is an option %s, not of `unicon%s%s`", name, owners,
                   command ? " " : "", command ? command->name : "");
}

/* True when `word` is one of the words separated by |, or there are none to choose from. */
static bool is_one_of(const char *words, const char *word) {
  const size_t length = strlen(word);
  if (!*words) return true;
  for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (strncmp(at, word, length) == 0 && (at[length] == '|' || !at[length])) return length > 0;
  return false;
}

static int wrong_word(const cli_command *command, const cli_entry *entry, const char *value) {
  char words[128] = "";
  size_t at = 0;
  for (const char *c = entry->words; *c && at + 5 < sizeof words; c++)
    at += (size_t)snprintf(words + at, sizeof words - at, *c == '|' ? " or " : "%c", *c);
  return cli_error(command, "--%s is `%s`; accepted: %s", entry->name, value, words);
}

static int keep(parser *p, const cli_entry *entry, const char *value) {
  if (entry->library) {
    p->out->setting[p->out->settings++] = (cli_setting){entry->library, value};
    return EXIT_DONE;
  }
  if (value && !is_one_of(entry->words, value)) return wrong_word(p->command, entry, value);
  if (value && entry->tool->id == CLI_OPT_OUTPUT && strcmp(value, "-") == 0)
    return cli_error(p->command,
                     "--output is `-`: output cannot go to standard output; give a file name");
  p->out->given[entry->tool->id]++;
  p->out->value[entry->tool->id] = value;
  return EXIT_DONE;
}

/* A flag, or one of its words: attached, or the next argument if it is exactly that. */
static int take_flag(parser *p, const cli_entry *entry, const char *attached) {
  const bool words = entry->tool && *entry->words;
  if (attached && !words) return cli_error(p->command, "--%s takes no value", entry->name);
  if (attached) return keep(p, entry, attached);
  const char *following = words && p->next < p->count ? p->argv[p->next] : NULL;
  if (!following || !is_one_of(entry->words, following))
    return keep(p, entry, entry->library ? "on" : NULL);
  p->next++;
  return keep(p, entry, following);
}

/* Takes the option's value from `attached` (after = or a letter) or from the next argument. */
static int take(parser *p, const cli_entry *entry, const char *attached) {
  if (entry->flag) return take_flag(p, entry, attached);
  if (attached) return keep(p, entry, attached);
  const char *following = p->next < p->count ? p->argv[p->next] : NULL;
  if (!following || strncmp(following, "--", 2) == 0)
    return cli_error(p->command, "--%s needs a value: --%s %s", entry->name, entry->name,
                     entry->value);
  p->next++;
  return keep(p, entry, following);
}

static int long_option(parser *p, const char *text) {
  char name[64];
  const char *equals = strchr(text, '=');
  const size_t length = equals ? (size_t)(equals - text) : strlen(text);
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
  for (char *c = name; *c; c++)
    if (*c == '_') *c = '-';
  cli_entry entry;
  const bool found = find_long(p->command, name, &entry) ||
                     (strcmp(name, "help-all") == 0 && find_long(p->command, "help", &entry));
  if (!found) return cli_unknown_option(p->command, name);
  return take(p, &entry, equals ? equals + 1 : NULL);
}

/* -q, -vv, -k10, -k=10, -o FILE. */
static int letters(parser *p, const char *text) {
  for (; *text; text++) {
    cli_entry entry;
    if (!find_letter(p->command, *text, &entry))
      return cli_error(p->command, "unknown option -%c; `unicon %s --help` lists them", *text,
                       p->command->name);
    if (!entry.flag) return take(p, &entry, text[1] ? text + 1 + (text[1] == '=') : NULL);
    const int code = keep(p, &entry, NULL);
    if (code != EXIT_DONE) return code;
  }
  return EXIT_DONE;
}

static int check_positionals(parser *p) {
  const cli_command *command = p->command;
  const char **given = p->out->positional;
  int most = 0;
  while (command->positional[most]) most++;
  int required = command->required;
  if (p->out->given[CLI_OPT_NO_MODEL]) { /* the first one, MODEL, falls away */
    most--;
    required--;
    if (p->positionals > most)
      return cli_usage_error(
          command, "with --no-model only %s%s%s %s given, without MODEL; is `%s` a model?",
          command->positional[1], most > 1 ? " and " : "", most > 1 ? command->positional[2] : "",
          most > 1 ? "are" : "is", given[0]);
    memmove(given + 1, given, sizeof *given * (size_t)most);
    given[0] = NULL;
    if (p->positionals < required)
      return cli_usage_error(command, "%s is missing", command->positional[1 + p->positionals]);
    return EXIT_DONE;
  }
  if (p->positionals < required)
    return cli_usage_error(command, "%s is missing", command->positional[p->positionals]);
  return EXIT_DONE;
}

/* Does the last positional take all that is left? */
static bool takes_all(const parser *p) {
  const char *last = p->positionals > 0 ? p->command->positional[p->positionals - 1] : NULL;
  return last && strstr(last, "...");
}

static int positional(parser *p, const char *text) {
  if (takes_all(p)) {
    p->out->rest[p->out->rests++] = text;
    return EXIT_DONE;
  }
  if (p->positionals == CLI_POSITIONALS || !p->command->positional[p->positionals])
    return cli_usage_error(p->command, "`%s` is one argument too many", text);
  p->out->positional[p->positionals++] = text;
  return EXIT_DONE;
}

static int one_argument(parser *p, bool *options_ended) {
  const char *text = p->argv[p->next++];
  if (*options_ended || text[0] != '-' || !text[1]) return positional(p, text);
  if (text[1] != '-') return letters(p, text + 1);
  if (text[2]) return long_option(p, text + 2);
  *options_ended = true;
  return EXIT_DONE;
}

int cli_parse(const cli_command *command, int count, char **argv, cli_args *out) {
  parser p = {command, argv, count, 0, 0, out};
  memset(out, 0, sizeof *out);
  out->command = command;
  out->setting = calloc((size_t)count + 1, sizeof *out->setting);
  out->rest = calloc((size_t)count + 1, sizeof *out->rest);
  if (!out->setting || !out->rest) {
    cli_error(command, "out of memory");
    return EXIT_FAILED;
  }
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++)
    if (entry.tool) out->value[entry.tool->id] = entry.tool->default_value;
  bool options_ended = false;
  while (p.next < p.count) {
    const int code = one_argument(&p, &options_ended);
    if (code != EXIT_DONE) return code;
    if (out->given[CLI_OPT_HELP] || out->given[CLI_OPT_HELP_ALL]) return EXIT_DONE;
  }
  return check_positionals(&p);
}

void cli_args_free(cli_args *args) {
  free(args->rest);
  free(args->setting);
  args->rest = NULL;
  args->setting = NULL;
}

bool cli_sets(const cli_args *args, const char *option) {
  for (size_t i = 0; i < args->settings; i++)
    if (strcmp(args->setting[i].option->name, option) == 0) return true;
  return false;
}

int cli_integer(const cli_args *args, cli_id id, int64_t low, int64_t high, int64_t *out) {
  const char *text = args->value[id];
  char *end = NULL;
  const double value = strtod(text, &end); /* 1e6 as well */
  const bool whole = end != text && !*end && !strpbrk(text, "xX") && value == floor(value);
  const bool fits = whole && fabs(value) < 9e18;
  *out = fits ? (int64_t)value : 0;
  if (fits && *out >= low && *out <= high) return EXIT_DONE;
  const bool top = id == CLI_OPT_TOP; /* known by its letter */
  return cli_error(args->command, "%s%s is `%s`; accepted: a whole number from %lld to %lld",
                   top ? "-" : "--", top ? "k" : cli_name(id), text, (long long)low,
                   (long long)high);
}
