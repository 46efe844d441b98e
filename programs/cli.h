/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. Two tables make it: the library's options (unicon_option_at) and the tool's own
 * (tool_options.c). The parser, the help, the man page and the completions all walk both through
 * cli_entry_at and nothing else. */
#ifndef UNICON_PROGRAMS_CLI_H
#define UNICON_PROGRAMS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "unicon/tools.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* One bit per command, for the tool's option table. */
enum {
  CLI_FIT = 1,
  CLI_EVAL = 2,
  CLI_EMBED = 4,
  CLI_SEARCH = 8,
  CLI_INFO = 16,
  CLI_SYNTH = 32,
  CLI_PLAN = 64,
  CLI_PROBE = 128,
  CLI_CHECK = 256,
  CLI_COMPARE = 512,
  CLI_REPORT = 1024,
  CLI_BALANCE = 2048,
  CLI_WEIGHTS = 4096,
  CLI_MIGRATE = 8192,
  CLI_REWRITE = 16384,
  CLI_STATS = 32768,
  CLI_MERGE = 65536,
  CLI_LANDMARKS = 131072,
  CLI_TOP = 262144,     /* `unicon` itself, without a command */
  CLI_ALL = CLI_TOP - 1 /* every command */
};

enum { CLI_POSITIONALS = 3 };

/* The group of options that every command has; shown last. */
#define CLI_GENERAL "Run"

/* The tool's options; where a value is found in cli_args. */
typedef enum cli_id {
  CLI_OPT_HELP,
  CLI_OPT_HELP_ALL,
  CLI_OPT_VERSION,
  CLI_OPT_MAN,
  CLI_OPT_COMPLETION,
  CLI_OPT_QUIET,
  CLI_OPT_VERBOSE,
  CLI_OPT_JSON,
  CLI_OPT_PROGRESS,
  CLI_OPT_OUTPUT,
  CLI_OPT_Y_PER_X,
  CLI_OPT_X_PER_Y,
  CLI_OPT_PAIRS,
  CLI_OPT_X_LABELS,
  CLI_OPT_Y_LABELS,
  CLI_OPT_ONE_SET,
  CLI_OPT_IGNORE,
  CLI_OPT_NEGATIVES,
  CLI_OPT_GROUPS,
  CLI_OPT_VAL_X,
  CLI_OPT_VAL_Y,
  CLI_OPT_VAL_PAIRS,
  CLI_OPT_VAL_X_LABELS,
  CLI_OPT_VAL_Y_LABELS,
  CLI_OPT_TEST_X,
  CLI_OPT_TEST_Y,
  CLI_OPT_TEST_PAIRS,
  CLI_OPT_TEST_X_LABELS,
  CLI_OPT_TEST_Y_LABELS,
  CLI_OPT_ONLY,
  CLI_OPT_NO_MODEL,
  CLI_OPT_CLASSES,
  CLI_OPT_CLASS_NAMES,
  CLI_OPT_LABELS,
  CLI_OPT_X_IDS,
  CLI_OPT_Y_IDS,
  CLI_OPT_X_TEXT,
  CLI_OPT_Y_TEXT,
  CLI_OPT_X_MEDIA,
  CLI_OPT_Y_MEDIA,
  CLI_OPT_BESIDE,
  CLI_OPT_FROM,
  CLI_OPT_LAYOUT,
  CLI_OPT_PERPLEXITY,
  CLI_OPT_SIDE,
  CLI_OPT_INDEX,
  CLI_OPT_QUERY,
  CLI_OPT_NO_UNIT,
  CLI_OPT_DTYPE,
  CLI_OPT_QUERY_SIDE,
  CLI_OPT_BASE_SIDE,
  CLI_OPT_BASE_EMBEDDED,
  CLI_OPT_TOP,
  CLI_OPT_SCORES,
  CLI_OPT_BANK_X,
  CLI_OPT_BANK_Y,
  CLI_OPT_TRAIN,
  CLI_OPT_TEST,
  CLI_OPT_VAL,
  CLI_OPT_TRAIN_LABELS,
  CLI_OPT_TEST_LABELS,
  CLI_OPT_QUERIES_OLD,
  CLI_OPT_QUERIES_NEW,
  CLI_OPT_JUDGEMENTS,
  CLI_OPT_INTO,
  CLI_OPT_CHECK,
  CLI_OPT_SHARD_ROWS,
  CLI_OPT_CALIBRATE,
  CLI_OPT_ADD,
  CLI_OPT_REMOVE,
  CLI_OPT_DECAY,
  CLI_OPT_MAP_FROM,
  CLI_OPT_CERTIFICATE,
  CLI_OPT_COUNT
} cli_id;

/* A row of the tool's table. Rows may share an id where commands word it differently. */
typedef struct cli_option {
  cli_id id;
  const char *name;
  char letter;         /* 0: none */
  const char *metavar; /* NULL: a flag without a value, or with one of the words behind it */
  const char *words;   /* accepted words, separated by |, or "" */
  const char *default_value;
  unsigned commands; /* CLI_... bits */
  const char *group; /* heading in help */
  const char *help;
} cli_option;

extern const cli_option cli_tool_options[];
extern const size_t cli_tool_option_count;

typedef struct tool tool;

typedef struct cli_command {
  const char *name;
  unsigned bit;
  unsigned scope;                              /* of the library options it takes */
  const char *positional[CLI_POSITIONALS + 1]; /* names, ended by NULL; "NAME..." takes all */
  int required;                                /* how many of them must be given */
  const char *usage;                           /* what follows `unicon NAME ` */
  const char *summary;                         /* one line */
  const char *about;                           /* paragraphs for help and man page */
  const char *example;                         /* lines of shell, each ended by \n */
  int (*run)(tool *t);                         /* returns the exit status */
} cli_command;

extern const cli_command cli_commands[];
extern const size_t cli_command_count;

/* One option of a command, from either table. */
typedef struct cli_entry {
  char name[64]; /* --kebab-case, without the dashes */
  char letter;
  char value[64];    /* what follows in help, "FILE" or "none|whiten"; "" for a flag */
  bool flag;         /* takes no value, but for one of its words if it follows at once */
  const char *words; /* accepted words, separated by |, or "" */
  const char *default_value, *group, *help;
  bool chosen;            /* by the default preset, unless it is given */
  bool of_model;          /* the default is what the model was fitted with */
  bool general;           /* of the group shown last: how to run, not what to do */
  const cli_option *tool; /* one of these two is set */
  const unicon_option_info *library;
} cli_entry;

/* Does the default preset choose this option from the data? */
bool cli_chosen(const unicon_option_info *option);

/* The commands that have a use for a library option of their scope, as CLI_ bits. */
unsigned cli_commands_of(const unicon_option_info *option);

/* Option `index` of the command, NULL for `unicon` itself; false past the end. */
bool cli_entry_at(const cli_command *command, size_t index, cli_entry *out);

typedef struct cli_setting {
  const unicon_option_info *option;
  const char *value;
} cli_setting;

typedef struct cli_args {
  const cli_command *command;
  int given[CLI_OPT_COUNT];         /* how often */
  const char *value[CLI_OPT_COUNT]; /* the last one given, or the default, or NULL */
  const char *positional[CLI_POSITIONALS];
  const char **rest; /* what follows the last positional, where that takes all */
  size_t rests;
  cli_setting *setting; /* library options in the order given */
  size_t settings;
} cli_args;

/* Does the command have the option of that name? */
bool cli_has(const cli_command *command, const char *name);

const cli_command *cli_command_find(const char *name);

/* Reads the arguments after the command's name. Returns EXIT_DONE or, with the sentence on stderr,
 * EXIT_USAGE or EXIT_FAILED. After --help nothing more is read. Values point into argv. */
int cli_parse(const cli_command *command, int count, char **argv, cli_args *out);
void cli_args_free(cli_args *args);

/* Was the library's option, by its name in snake_case, given? */
bool cli_sets(const cli_args *args, const char *option);

/* The integer of a tool option within low..high; EXIT_USAGE with a sentence otherwise. */
int cli_integer(const cli_args *args, cli_id id, int64_t low, int64_t high, int64_t *out);

/* "--y-per-x" without the dashes. */
const char *cli_name(cli_id id);

/* `unicon NAME: SENTENCE` on stderr, one line; returns EXIT_USAGE. `command` may be NULL. */
int cli_error(const cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The last of these sentences, without the name of the command; "": there was none. */
const char *cli_said(void);
/* The same, and the usage line. */
int cli_usage_error(const cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An option that the command does not have (NULL: `unicon` itself): whose it is, or what was meant.
 * Returns EXIT_USAGE. */
int cli_unknown_option(const cli_command *command, const char *name);

/* True when `word` may be a misspelling of `known` and none before was nearer. `best` starts at
 * SIZE_MAX and keeps the distance from call to call. */
bool cli_nearer(const char *word, const char *known, size_t *best);

/* Help, on the given stream. A command that has --help-all lists its common options unless `all`.
 */
void cli_overview(FILE *stream);
void cli_help(const cli_command *command, bool all, FILE *stream);

/* What the words of an option mean, as formulas; NULL past the end of the sections. Only words that
 * the library's table accepts are shown. */
typedef struct cli_formula {
  const char *word;
  const char *text;
} cli_formula;
typedef struct cli_formulas {
  const char *option; /* whose words these are, snake_case */
  const char *heading;
  const char *intro;
  const cli_formula *line; /* ended by a NULL word */
} cli_formulas;
const cli_formulas *cli_formulas_at(size_t index);
/* True when the library has that option and accepts that word ("" stands for any). */
bool cli_library_accepts(const char *option, const char *word);

/* The sentence of an option with its words, bounds and default. */
void cli_entry_text(const cli_entry *entry, char *out, size_t size);

void man_print(FILE *stream);
/* EXIT_USAGE for an unknown shell. */
int completion_print(const char *shell, FILE *stream);

#endif
