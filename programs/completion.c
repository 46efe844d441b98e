/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts, made from the tables. */
#include <string.h>

#include "cli.h"

/* The words of an option separated by blanks; for numbers they are the special values. */
static void put_words(FILE *stream, const cli_entry *entry) {
  for (const char *c = entry->words; *c; c++) fputc(*c == '|' ? ' ' : *c, stream);
}

/* The first sentence of the help, without what a shell would read: quotes, brackets, colons. */
static void put_brief(FILE *stream, const char *help) {
  for (const char *c = help; *c && !(c[0] == '.' && (c[1] == ' ' || !c[1])); c++) {
    if (strchr("'\"`[]\\$", *c)) continue;
    fputc(*c == ':' ? ',' : *c, stream);
  }
}

static void put_commands(FILE *stream) {
  for (size_t i = 0; i < cli_command_count; i++)
    fprintf(stream, "%s%s", i ? " " : "", cli_commands[i].name);
}

static void put_names(FILE *stream, const cli_command *command) {
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    fprintf(stream, "%s--%s", i ? " " : "", entry.name);
    if (entry.letter) fprintf(stream, " -%c", entry.letter);
  }
}

/* ---- bash --------------------------------------------------------------------------------- */

/* Cases `COMMAND,--OPTION)` for options whose value is a word; other values are files. */
static void bash_values(FILE *stream, const cli_command *command) {
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    if (entry.flag) continue;
    const char *name = command ? command->name : "";
    fprintf(stream, "    %s,--%s", name, entry.name);
    if (entry.letter) fprintf(stream, "|%s,-%c", name, entry.letter);
    if (*entry.words) {
      fputs(") COMPREPLY=($(compgen -W '", stream);
      put_words(stream, &entry);
      fputs("' -- \"$word\")); return;;\n", stream);
    } else {
      fputs(") COMPREPLY=($(compgen -f -- \"$word\")); return;;\n", stream);
    }
  }
}

static void bash(FILE *stream) {
  fputs(
      "# bash completion for unicon; made by `unicon --completion bash`\n"
      "_unicon() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local command='' options=''\n"
      "  [ \"$COMP_CWORD\" -gt 1 ] && command=\"${COMP_WORDS[1]}\"\n"
      "  case \"$command\" in -*) command='';; esac\n"
      "  case \"$command,$before\" in\n",
      stream);
  bash_values(stream, NULL);
  for (size_t i = 0; i < cli_command_count; i++) bash_values(stream, &cli_commands[i]);
  fputs("  esac\n  case \"$command\" in\n    '') options='", stream);
  put_commands(stream);
  fputc(' ', stream);
  put_names(stream, NULL);
  fputs("';;\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) {
    fprintf(stream, "    %s) options='", cli_commands[i].name);
    put_names(stream, &cli_commands[i]);
    fputs("';;\n", stream);
  }
  fputs(
      "  esac\n"
      "  if [ -z \"$command\" ] || [ \"${word#-}\" != \"$word\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _unicon unicon\n",
      stream);
}

/* ---- zsh ---------------------------------------------------------------------------------- */

static void zsh_options(FILE *stream, const cli_command *command) {
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    if (entry.letter)
      fprintf(stream, "        {-%c,--%s}'[", entry.letter, entry.name);
    else
      fprintf(stream, "        '--%s[", entry.name);
    put_brief(stream, entry.help);
    fputc(']', stream);
    if (!entry.flag && *entry.words) {
      fputs(":value:(", stream);
      put_words(stream, &entry);
      fputc(')', stream);
    } else if (!entry.flag) {
      fputs(":value:_files", stream);
    }
    fputs("' \\\n", stream);
  }
}

static void zsh(FILE *stream) {
  fputs("#compdef unicon\n# made by `unicon --completion zsh`\n_unicon() {\n", stream);
  fputs("  if (( CURRENT == 2 )); then\n    _values 'command or option' \\\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) {
    fprintf(stream, "      '%s[", cli_commands[i].name);
    put_brief(stream, cli_commands[i].summary);
    fputs("]' \\\n", stream);
  }
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(NULL, i, &entry); i++) {
    fprintf(stream, "      '--%s[", entry.name);
    put_brief(stream, entry.help);
    fputs("]' \\\n", stream);
  }
  fputs("      && return\n  fi\n  case \"$words[2]\" in\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) {
    fprintf(stream, "    %s)\n      _arguments '1:command:' \\\n", cli_commands[i].name);
    zsh_options(stream, &cli_commands[i]);
    fputs("        '*:file:_files';;\n", stream);
  }
  fputs("    --completion) _values 'shell' bash zsh fish;;\n  esac\n}\n_unicon \"$@\"\n", stream);
}

/* ---- fish --------------------------------------------------------------------------------- */

static void fish_options(FILE *stream, const cli_command *command) {
  cli_entry entry;
  for (size_t i = 0; cli_entry_at(command, i, &entry); i++) {
    if (command)
      fprintf(stream, "complete -c unicon -n '__fish_seen_subcommand_from %s'", command->name);
    else
      fputs("complete -c unicon -n __fish_use_subcommand", stream);
    fprintf(stream, " -l %s", entry.name);
    if (entry.letter) fprintf(stream, " -s %c", entry.letter);
    if (!entry.flag) fputs(*entry.words ? " -x -a '" : " -r", stream);
    if (!entry.flag && *entry.words) {
      put_words(stream, &entry);
      fputc('\'', stream);
    }
    fputs(" -d '", stream);
    put_brief(stream, entry.help);
    fputs("'\n", stream);
  }
}

static void fish(FILE *stream) {
  fputs("# fish completion for unicon; made by `unicon --completion fish`\n", stream);
  for (size_t i = 0; i < cli_command_count; i++) {
    fprintf(stream, "complete -c unicon -f -n __fish_use_subcommand -a %s -d '",
            cli_commands[i].name);
    put_brief(stream, cli_commands[i].summary);
    fputs("'\n", stream);
  }
  fish_options(stream, NULL);
  for (size_t i = 0; i < cli_command_count; i++) fish_options(stream, &cli_commands[i]);
}

int completion_print(const char *shell, FILE *stream) {
  if (shell && strcmp(shell, "bash") == 0)
    bash(stream);
  else if (shell && strcmp(shell, "zsh") == 0)
    zsh(stream);
  else if (shell && strcmp(shell, "fish") == 0)
    fish(stream);
  else if (shell)
    return cli_error(NULL, "--completion is `%s`; accepted: bash or zsh or fish", shell);
  else
    return cli_error(NULL, "--completion needs a value: --completion bash|zsh|fish");
  return EXIT_DONE;
}
