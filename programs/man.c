/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page in scdoc format, made from the tables and a few hand-written sections. */
#include <string.h>

#include "cli.h"

enum { TEXT = 1200 };

/* Text with the characters escaped that mean something to scdoc; some do only at the start. */
static void put(FILE *stream, const char *text) {
  if (*text && strchr("-.|[;", *text)) fputc('\\', stream);
  for (const char *c = text; *c; c++) {
    if (strchr("_*\\`#", *c)) fputc('\\', stream);
    fputc(*c, stream);
  }
}

static void put_entry(FILE *stream, const cli_entry *entry) {
  char text[TEXT];
  if (entry->letter) fprintf(stream, "*-%c*, ", entry->letter);
  fprintf(stream, "*--%s*", entry->name);
  if (*entry->value) {
    fputs(" _", stream);
    put(stream, entry->value);
    fputc('_', stream);
  }
  cli_entry_text(entry, text, sizeof text);
  fputs("\n\t", stream);
  put(stream, text);
  fputs("\n\n", stream);
}

/* Lines of shell as a literal block. */
static void put_shell(FILE *stream, const char *lines) {
  fprintf(stream, "```\n%s```\n\n", lines);
}

static void put_formulas(FILE *stream) {
  const cli_formulas *section;
  for (size_t i = 0; (section = cli_formulas_at(i)) != NULL; i++) {
    if (!cli_library_accepts(section->option, "")) continue;
    put(stream, section->heading);
    fputc('\n', stream);
    put(stream, section->intro);
    fputs("\n\n", stream);
    for (const cli_formula *line = section->line; line->word; line++) {
      if (!cli_library_accepts(section->option, line->word)) continue;
      if (*line->word) fprintf(stream, "*%s*\n\t", line->word);
      put(stream, line->text);
      fputs("\n\n", stream);
    }
  }
}

static bool everywhere(const cli_entry *entry) {
  return entry->tool ? (entry->tool->commands & CLI_ALL) == CLI_ALL
                     : (entry->library->scope & UNICON_SCOPE_CONTEXT) &&
                           cli_commands_of(entry->library) == CLI_ALL;
}

static void put_command(FILE *stream, const cli_command *command) {
  cli_entry entry;
  fprintf(stream, "## unicon %s\n\n*unicon %s* ", command->name, command->name);
  put(stream, command->usage);
  fputs("\n\n", stream);
  put(stream, command->about);
  fputs("\n\n", stream);
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++)
    if (!everywhere(&entry)) put_entry(stream, &entry);
  if (command->scope & UNICON_SCOPE_FIT) put_formulas(stream);
}

static const char opening[] =
    "unicon(1)\n\n"
    "# NAME\n\n"
    "unicon - align two sets of frozen embeddings into one shared space\n\n"
    "# SYNOPSIS\n\n"
    "*unicon* _COMMAND_ [arguments] [options]\n\n"
    "*unicon* _COMMAND_ *--help*\n\n"
    "*unicon* *--version* | *--man* | *--completion* _SHELL_\n\n"
    "# DESCRIPTION\n\n"
    "Two files hold vectors from two frozen encoders (images and text, two languages, an old and a "
    "new embedding model), and some of their rows belong together. *unicon fit* finds two maps "
    "into "
    "one space in which such rows have a large cosine. It compares closed forms, each one singular "
    "value decomposition, on held-out pairs and refines the best where that helps; *--preset fast* "
    "is the closed form alone. *unicon eval*, *embed* and *search* use the model.\n\n"
    "The result goes to standard output, messages and progress to standard error. Options may "
    "stand "
    "anywhere after the command, as *--name value* or *--name=value*; *--* ends them. Rows count "
    "from 0.\n\n";

static const char files[] =
    "# FILES\n\n"
    "Matrices, one vector per row:\n\n"
    "*FILE.npy*, *FILE.npz:ARRAY*\n\tNumPy, float16, bfloat16, float32, float64, int8 or uint8, "
    "two dimensions, not compressed.\n\n"
    "*FILE.safetensors:TENSOR*\n\tA tensor of type F16, BF16, F32, F64, I8 or U8.\n\n"
    "*FILE.fvecs*, *.bvecs*, *.fbin*, *.u8bin*, *.i8bin*\n\tThe formats of nearest-neighbour "
    "benchmarks.\n\n"
    "*FILE.faiss*, *FILE.index*\n\tThe vectors of a flat FAISS index.\n\n"
    "*FOLDER*\n\tNumbered .npy shards, read as one matrix.\n\n"
    "They are mapped into memory and converted piece by piece, so they may be larger than memory. "
    "A model is one .safetensors file with its options as metadata. Files appear under their name "
    "only when they are whole.\n\n";

static const char closing[] =
    "# EXIT STATUS\n\n"
    "*0*\n\tDone.\n\n"
    "*1*\n\tFailed; the reason is on standard error.\n\n"
    "*2*\n\tThe command line is wrong.\n\n"
    "*130*\n\tInterrupted. Nothing is left half written; a second interrupt ends at once.\n\n"
    "# EXAMPLES\n\n";

static const char tour[] =
    "unicon synth linear -o demo\n"
    "unicon fit demo/x.train.npy demo/y.train.npy -o demo/model.safetensors\n"
    "unicon eval demo/model.safetensors demo/x.test.npy demo/y.test.npy\n"
    "unicon embed demo/model.safetensors --side x demo/x.test.npy -o demo/z.npy\n"
    "unicon search demo/model.safetensors --query-side y demo/y.test.npy demo/x.test.npy -k 3\n";

void man_print(FILE *stream) {
  cli_entry entry;
  fputs(opening, stream);
  fputs("# COMMANDS\n\n", stream);
  for (size_t i = 0; i < cli_command_count; i++)
    fprintf(stream, "*%s*\n\t%s\n\n", cli_commands[i].name, cli_commands[i].summary);
  fputs("# OPTIONS\n\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) put_command(stream, &cli_commands[i]);
  fputs("## Every command\n\n", stream);
  for (size_t i = 0; cli_entry_at(&cli_commands[0], i, &entry); i++)
    if (everywhere(&entry)) put_entry(stream, &entry);
  fputs("## Without a command\n\n", stream);
  for (size_t i = 0; cli_entry_at(NULL, i, &entry); i++) put_entry(stream, &entry);
  fputs(files, stream);
  fputs(closing, stream);
  fputs("A tour on synthetic data:\n\n", stream);
  put_shell(stream, tour);
  for (size_t i = 0; i < cli_command_count; i++) put_shell(stream, cli_commands[i].example);
}
