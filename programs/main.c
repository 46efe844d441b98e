/* SPDX-License-Identifier: Apache-2.0 */
/* unicon: the table of commands, and what happens around a command. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "flags.h"
#include "job.h"
#include "space.h"

/* A new command is a row here, a CLI_ bit, a cmd_NAME.c, and its rows in tool_options.c. */
const cli_command cli_commands[] = {
    {"fit",
     CLI_FIT,
     UNICON_SCOPE_FIT | UNICON_SCOPE_CONTEXT,
     {"X", "Y", NULL},
     0,
     "X Y -o MODEL.safetensors [options]   or   unicon fit --from ALL.stats -o ...",
     "learn the shared space from two files of vectors",
     "Learns two maps into one shared space, in which rows of X and Y that belong together "
     "have a large cosine. Unless told otherwise (--preset auto) it compares closed forms on "
     "held-out pairs, refines the best where that helps, and fits that one on everything. "
     "Without a pair option row i of X belongs to row i of Y. X and Y are .npy, .fvecs, "
     ".bvecs, .fbin, .u8bin or .i8bin files, FILE.npz:ARRAY, FILE.safetensors:TENSOR, flat "
     "FAISS indexes, or folders of numbered .npy shards.",
     "unicon fit image.train.npy text.train.npy --y-per-x 5 -o model.safetensors\n",
     cmd_fit},
    {"plan",
     CLI_PLAN,
     UNICON_SCOPE_FIT | UNICON_SCOPE_CONTEXT,
     {"X", "Y", NULL},
     0,
     "X Y [pairs] [options of fit]   or   unicon plan --from ALL.stats ...",
     "say what a fit will take before it starts",
     "Estimates memory, passes over the data and time of a fit with the same options, on the CPU, "
     "and says what to change when it does not fit into --max-mem or into the machine, or what to "
     "do in its place when it would take weeks. Also says what `unicon stats` would take.",
     "unicon plan image.train.npy text.train.npy --y-per-x 5 --max-mem 512M\n",
     cmd_plan},
    {"check",
     CLI_CHECK,
     UNICON_SCOPE_CHECK | UNICON_SCOPE_CONTEXT,
     {"X", "Y", NULL},
     2,
     "X Y [options]",
     "say before a fit whether there is anything to align",
     "Fits one half of the pairs in closed form and looks at the other half: are its pairs "
     "closer than shuffled ones (a permutation test), how many dimensions carry that, and "
     "which pairs look wrong? X and Y are files as fit takes them.",
     "unicon check image.train.npy text.train.npy --y-per-x 5\n",
     cmd_check},
    {"compare",
     CLI_COMPARE,
     UNICON_SCOPE_COMPARE | UNICON_SCOPE_CONTEXT,
     {"X", "Y", NULL},
     2,
     "X Y [--val-x X2 --val-y Y2] [--test-x X3 --test-y Y3] [options]",
     "try our presets and the usual methods on your data",
     "Fits the presets fast, auto, best and paper, and beside them a linear SGD-CLIP head "
     "(sgd_linear), cca, pls, procrustes, ridge regression in both directions and no alignment "
     "at all (none), on the same rows, and measures all of them on the same test rows. Every "
     "method has two lines: cosines alone (plain), and balanced scores. What a method leaves "
     "open (step length, ridge, rank, strength of balance) is chosen on the validation rows, "
     "for each line by its own scores; early stopping, and what a preset chooses itself, use "
     "the balanced ones. Without --val-x or --test-x a part of X and Y is held out instead. "
     "Each row is printed as soon as it is finished, and an interrupt keeps the rows printed "
     "so far.",
     "unicon compare image.train.npy text.train.npy --test-x image.test.npy \\\n"
     "  --test-y text.test.npy --y-per-x 5 --only fast,cca,ridge\n",
     cmd_compare},
    {"eval",
     CLI_EVAL,
     UNICON_SCOPE_EVAL | UNICON_SCOPE_CONTEXT,
     {"MODEL", "X", "Y", NULL},
     2,
     "MODEL X Y [options]   or   unicon eval MODEL X --classes FILE --x-labels FILE",
     "measure retrieval in both directions, or zero-shot classes",
     "Embeds X and Y and measures how well each row finds its matches on the other side. hit@k "
     "is the share of queries with a match among the first k (papers call it R@k), recall@k "
     "the mean share of a query's matches found there; ties count against the model. Where "
     "scores are balanced, the figures without balance stand beside them, and the number of "
     "hubs (rows that are near everything) with and without. With --classes the rows of X are "
     "classified by the nearest class vector instead. With --no-model instead of MODEL, X and "
     "Y hold vectors that share a space already.",
     "unicon eval model.safetensors image.test.npy text.test.npy --y-per-x 5 --ci\n"
     "unicon eval model.safetensors image.test.npy --classes prompts.npy \\\n"
     "  --class-names names.txt --x-labels image.labels.txt\n",
     cmd_eval},
    {"report",
     CLI_REPORT,
     UNICON_SCOPE_REPORT | UNICON_SCOPE_CONTEXT,
     {"MODEL", "X", "Y", NULL},
     0,
     "MODEL X Y -o report.html [options]   or   unicon report --from FILE.json -o ...",
     "show a model on one page",
     "Writes one HTML file that needs nothing else: what to look at first; both sides in one "
     "picture to explore (zoom, click a row for its id, rank and neighbours, search, filter by "
     "side, rank and class); classes and hubs, the hardest queries and the most suspicious "
     "pairs; how well rows find each other, with intervals; what was fitted and chosen. Texts "
     "and images of the rows are shown if files of them are given. --beside MODEL shows a "
     "second model of the same rows. --json prints what the page is made from. Some thousands of "
     "rows are enough: every query is compared with every row, several times.",
     "unicon report model.safetensors image.test.npy text.test.npy --y-per-x 5 \\\n"
     "  -o report.html\n"
     "unicon report model.safetensors image.test.npy text.test.npy --y-per-x 5 \\\n"
     "  --x-media photos.txt --y-text captions.txt --beside older.safetensors \\\n"
     "  -o report.html\n",
     cmd_report},
    {"embed",
     CLI_EMBED,
     UNICON_SCOPE_USE | UNICON_SCOPE_MOVE | UNICON_SCOPE_CONTEXT,
     {"MODEL", "ROWS", NULL},
     2,
     "MODEL --side x|y ROWS -o OUT.npy [options]",
     "write rows as vectors of the shared space",
     "Writes the rows of one side as unit vectors of the shared space, in which a dot product "
     "is the cosine. A vector index that shall rank as `unicon search` does needs one more "
     "number per row: write the rows to be searched with --index and the queries with --query, "
     "and use the inner product; for an index that has only the cosine, write --index cosine "
     "and --query cosine. With --bad-rows drop only the usable rows are written, in their "
     "order, and a warning says which ones are missing.",
     "unicon embed model.safetensors --side x image.npy --index -o index.npy\n"
     "unicon embed model.safetensors --side y text.new.npy --query -o queries.npy\n",
     cmd_embed},
    {"search",
     CLI_SEARCH,
     UNICON_SCOPE_USE | UNICON_SCOPE_MOVE | UNICON_SCOPE_CONTEXT,
     {"MODEL", "Q", "B", NULL},
     3,
     "MODEL --query-side x|y Q [--base-side x|y] B [-k 10] [options]",
     "list the nearest rows for each query",
     "Lists for each row of Q the K rows of B with the largest score, exactly, as lines `query "
     "TAB rank TAB base TAB score`. The score is the cosine, less the bias of the row of B "
     "where scores are balanced. Rows count from 0, ranks from 1. With --bad-rows drop the "
     "rows keep their numbers in Q and B; in the files of -o a query that was left out has -1 "
     "and -inf. `balance` of --json is what scores were balanced by, or `base` where the rows "
     "of B carry their own biases.",
     "unicon search model.safetensors --query-side y q.npy --base-side x image.npy \\\n"
     "  -k 10\n",
     cmd_search},
    {"balance",
     CLI_BALANCE,
     UNICON_SCOPE_BALANCE | UNICON_SCOPE_CONTEXT,
     {"MODEL", "X", "Y", NULL},
     3,
     "MODEL X Y -o NEW.safetensors [pairs] [options]",
     "balance a model's scores by other rows",
     "Scores are balanced by banks: embedded rows of each side, kept in the model, that say "
     "which candidates are near everything. This command replaces the model's banks by rows of "
     "X and Y. The shared space stays as it is, nothing is fitted, and unless --balance says "
     "otherwise scores are balanced as strongly as before (where they were not, at the usual "
     "strength). Use it when queries come from "
     "another domain than the training rows, when a model has no banks yet, or with --balance "
     "quadratic:BETA before a model is handed out: such a model keeps no rows, only a few "
     "numbers per dimension. X and Y need no pairs and may differ in length; with a pair "
     "option only rows that have a partner are taken.",
     "unicon balance model.safetensors image.new.npy text.new.npy -o new.safetensors\n"
     "unicon balance model.safetensors image.train.npy text.train.npy \\\n"
     "  --balance quadratic:10 -o shared.safetensors\n",
     cmd_balance},
    {"probe",
     CLI_PROBE,
     UNICON_SCOPE_PROBE | UNICON_SCOPE_CONTEXT,
     {"MODEL", "TRAIN", NULL},
     2,
     "MODEL --side x|y TRAIN --train-labels FILE --test TEST --test-labels FILE",
     "measure how well a linear classifier reads labels",
     "Trains a multinomial logistic regression on the embedded rows of TRAIN and measures it "
     "on those of TEST: accuracy and confusion matrix. With --no-model instead of MODEL and "
     "--side the rows are taken as they are.",
     "unicon probe model.safetensors --side x x.train.npy --train-labels train.txt \\\n"
     "  --test x.test.npy --test-labels test.txt\n",
     cmd_probe},
    {"weights",
     CLI_WEIGHTS,
     UNICON_SCOPE_WEIGHTS | UNICON_SCOPE_CONTEXT,
     {"MODEL", "X", "Y", NULL},
     3,
     "MODEL X Y [-o S.npy] [--scores s.npy] [pairs] [loss]",
     "show how much each pair of rows pulls or pushes",
     "The loss of a model on the rows of X and Y, the scores s of all rows of X with all of Y, "
     "and the weights S = -dL/ds that the loss gives them: positive where a pair should come "
     "closer. The loss is that of the model's fit unless options say otherwise. Scores are "
     "plain cosines (dot products for the loss spectral). Both are whole matrices, meant for a "
     "few thousand rows; without -o and --scores only the loss is computed.",
     "unicon weights model.safetensors image.test.npy text.test.npy --y-per-x 5 \\\n"
     "  -o S.npy\n",
     cmd_weights},
    {"migrate",
     CLI_MIGRATE,
     UNICON_SCOPE_MIGRATE | UNICON_SCOPE_CONTEXT,
     {"OLD", "NEW", NULL},
     2,
     "OLD NEW -o DIR [--queries-new Q] [--judgements TSV] [options]",
     "change the embedding model and keep the index",
     "OLD and NEW hold the vectors of the same items by an old and a new model, a few hundred "
     "to some thousands. Tries the ways in which new queries can search an index of old "
     "vectors: queries mapped into the old space, the index rewritten into the new one, or "
     "both in a shared space; with Procrustes, ridge and kernel maps. Each is judged as it "
     "would be deployed, on items its map has not seen, beside keeping the old model and "
     "embedding everything anew. Writes the model of the best way, the decision and a page "
     "about it; the decision may be not to migrate.",
     "unicon migrate old.npy new.npy -o moved\n",
     cmd_migrate},
    {"rewrite",
     CLI_REWRITE,
     UNICON_SCOPE_MOVE | UNICON_SCOPE_CONTEXT,
     {"MODEL", "INDEX", NULL},
     2,
     "MODEL INDEX -o OUT.npy|FOLDER [options]",
     "carry an index of old vectors over to the new model",
     "Writes the old vectors of INDEX as vectors of the new space (or of the shared one) by a "
     "model of `unicon migrate`. Rows are streamed, so the index may be larger than memory; "
     "after an interrupt the same command continues where it stopped. OUT.npy.json names the "
     "model, the space and the bytes; from it `unicon search` knows vectors of another space "
     "and refuses them, and --check tells whether a file is complete.",
     "unicon rewrite moved/model.safetensors index.npy -o index.new.npy\n",
     cmd_rewrite},
    {"stats",
     CLI_STATS,
     UNICON_SCOPE_STATS | UNICON_SCOPE_CONTEXT,
     {"X", "Y", "Y", NULL},
     2,
     "X Y -o PART.stats   or   unicon stats ALL.stats --add|--remove X Y -o ...",
     "sum up rows and pairs, so that they can be added to, merged and forgotten",
     "Writes all that the closed form needs to know about the rows and pairs of X and Y: sums, "
     "with a small sample of the rows. Such files are merged by `unicon merge`, and `unicon "
     "fit --from` makes the model: shards may lie on many machines, rows may come every night, "
     "and --remove forgets rows without reading the others again. All partners of a row must "
     "be in the same X and Y, but for class labels, which may be split anywhere. With a kernel all "
     "parts must have the same landmarks: make them "
     "once with `unicon landmarks` and give them with --map-from.",
     "unicon stats image.train.npy text.train.npy --y-per-x 5 -o part.stats\n"
     "unicon stats part.stats --remove image.train.npy text.train.npy --y-per-x 5 \\\n"
     "  -o none.stats\n",
     cmd_stats},
    {"merge",
     CLI_MERGE,
     UNICON_SCOPE_CONTEXT,
     {"PART...", NULL},
     1,
     "PART.stats ... -o ALL.stats",
     "sum statistics of many parts",
     "Writes the sum of statistics that were made with the same maps: the same as if all rows "
     "had been summed at once, up to the rounding of float64. If a part cannot be read or was "
     "made with other options, nothing is written.",
     "unicon merge part.stats more.stats -o all.stats\n",
     cmd_merge},
    {"landmarks",
     CLI_LANDMARKS,
     UNICON_SCOPE_STATS | UNICON_SCOPE_CONTEXT,
     {"X", "Y", NULL},
     2,
     "X Y --kernel NAME -o MAPS.stats [options]",
     "choose the landmarks of a kernel once, for all parts",
     "Writes statistics of no rows at all, with the kernel, its width and its landmarks (or random "
     "directions) that X and Y give: a sample of the data is enough. `unicon stats --map-from` "
     "takes "
     "them.",
     "unicon landmarks image.train.npy text.train.npy --kernel angular -o maps.stats\n",
     cmd_landmarks},
    {"info",
     CLI_INFO,
     UNICON_SCOPE_CONTEXT,
     {"MODEL", NULL},
     0,
     "[MODEL|STATS|ROWS] [options]",
     "describe a model or statistics, or the presets, formats and devices",
     "Shows what is inside a model: sizes, options in force, spectrum, certificate; or what is in "
     "statistics: rows, pairs, maps, sample; or how many rows a matrix has. Without a MODEL: the "
     "presets with their settings, the "
     "file formats, the build, and the devices that --device may name, with the reason where one "
     "cannot be used. Devices are libraries libunicon_NAME.so beside that of unicon, or in the "
     "folder that the environment variable UNICON_DEVICES names.",
     "unicon info model.safetensors\n",
     cmd_info},
    {"synth",
     CLI_SYNTH,
     UNICON_SCOPE_SYNTH | UNICON_SCOPE_CONTEXT,
     {"KIND", NULL},
     1,
     "KIND -o DIR [options]",
     "make data with a known answer",
     "Writes x, y and label files, .train.npy, .test.npy and .val.npy, of synthetic models. With z "
     "around one of a few centres: linear x = U1 z + noise, y = U2 z + noise; nonlinear: tanh of "
     "both. These follow the paper's text. linear-released is linear with centres uniform in a "
     "cube, new ones for each file, rows in the order of their clusters and less noise; "
     "nonlinear-released is x = tanh(U3 tanh(U1 z)) + noise without clusters: as the authors' code "
     "makes them.",
     "unicon synth linear -o demo\n",
     cmd_synth},
};

const size_t cli_command_count = sizeof cli_commands / sizeof *cli_commands;

int tool_fail(tool *t, unicon_status status) {
  if (status == UNICON_ERR_CANCELLED) return tool_interrupted(t);
  char text[1024];
  const bool limited = status == UNICON_ERR_MEMORY && cli_sets(t->args, "max_mem");
  display_clear(&t->display);
  flags_in(t->args, unicon_ctx_error(t->ctx), text, sizeof text);
  cli_error(t->args->command, "%s%s", text,
            limited ? "; raise --max-mem or use fewer --threads" : "");
  return status == UNICON_ERR_OPTION || status == UNICON_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

int tool_error(tool *t, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);  // NOLINT(clang-analyzer-valist.Uninitialized)
  va_end(arguments);
  display_clear(&t->display);
  cli_error(t->args->command, "%s", text);
  return EXIT_FAILED;
}

int tool_out_of_memory(tool *t) {
  return tool_error(t, "out of memory");
}

int tool_interrupted(tool *t) {
  display_clear(&t->display);
  cli_error(t->args->command, "interrupted; nothing was left half written");
  return EXIT_INTERRUPTED;
}

unicon_status tool_devices(unicon_ctx *ctx) {
  const char *folder = getenv("UNICON_DEVICES");
  return folder && *folder ? unicon_device_folder(ctx, folder) : UNICON_OK;
}

/* Hands the library options of the command line to the library. */
static int apply_settings(tool *t) {
  const unicon_status found = tool_devices(t->ctx);
  if (found != UNICON_OK) return tool_fail(t, found);
  for (size_t i = 0; i < t->args->settings; i++) {
    const cli_setting *setting = &t->args->setting[i];
    if (strcmp(setting->option->name, "loss") == 0 && strcmp(setting->value, "custom") == 0)
      return cli_error(t->args->command, "--loss custom takes its psi and phi from a program in C");
    const bool context = (setting->option->scope & UNICON_SCOPE_CONTEXT) != 0;
    const unicon_status status =
        context ? unicon_ctx_set(t->ctx, setting->option->name, setting->value)
                : unicon_options_set(t->ctx, t->options, setting->option->name, setting->value);
    if (status != UNICON_OK) return tool_fail(t, status);
  }
  return EXIT_DONE;
}

enum { LINE_SECONDS = 10 }; /* between lines of progress where there is no terminal */

static void open_display(tool *t) {
  const cli_args *args = t->args;
  t->display.command = args->command->name;
  t->display.args = args;
  t->display.verbosity = args->given[CLI_OPT_QUIET] ? -1 : args->given[CLI_OPT_VERBOSE];
  t->display.bar =
      args->given[CLI_OPT_PROGRESS] || (!args->given[CLI_OPT_QUIET] && isatty(STDERR_FILENO));
  t->display.every = args->given[CLI_OPT_QUIET] ? 0 : LINE_SECONDS;
  unicon_ctx_set_log(t->ctx, display_log, &t->display);
  unicon_ctx_set_progress(t->ctx, display_progress, &t->display);
}

/* The context as one of a job. Several processes of a machine run on a thread each, unless they are
 * told otherwise. */
static unicon_status join_job(tool *t) {
  if (!t->job) return UNICON_OK;
  const unicon_status status = unicon_ctx_join(t->ctx, t->job->with);
  char text[96];
  snprintf(text, sizeof text, "%lld processes%s", (long long)t->job->with->count,
           t->job->crowded ? ", of one thread each unless threads says otherwise" : "");
  display_log(&t->display, UNICON_LOG_INFO, text);
  return status == UNICON_OK && t->job->crowded ? unicon_ctx_set(t->ctx, "threads", "1") : status;
}

static int run_command(const cli_args *args, const job *j) {
  tool t = {.args = args, .job = j};
  if (unicon_ctx_create(&t.ctx) != UNICON_OK) {
    cli_error(args->command, "out of memory");
    return job_agree(j, args->command, EXIT_FAILED);
  }
  open_display(&t);
  unicon_status status = join_job(&t);
  if (status == UNICON_OK) status = unicon_options_create(t.ctx, &t.options);
  int code = status == UNICON_OK ? apply_settings(&t) : tool_fail(&t, status);
  if (code == EXIT_DONE && j) code = job_check(args);
  if (code == EXIT_DONE) code = space_check(&t);
  if (code == EXIT_DONE) code = args->command->run(&t);
  if (!t.agreed) code = tool_agree(&t, code); /* what failed before the others' call began */
  job_tell(&t);
  if (!display_finish(&t.display) && code == EXIT_DONE) code = EXIT_FAILED;
  unicon_balance_destroy(t.balance);
  unicon_options_destroy(t.options);
  unicon_ctx_destroy(t.ctx);
  return code;
}

/* Help and the like: print, then make sure that it arrived. */
static int printed(int code) {
  display d = {.command = ""};
  return display_finish(&d) ? code : EXIT_FAILED;
}

static int command_line(const cli_command *command, int count, char **argv, const job *j) {
  cli_args args = {.command = command};
  int code = job_agree(j, command, cli_parse(command, count, argv, &args));
  if (code == EXIT_DONE && (args.given[CLI_OPT_HELP] || args.given[CLI_OPT_HELP_ALL])) {
    cli_help(command, args.given[CLI_OPT_HELP_ALL] > 0, stdout);
    code = printed(EXIT_DONE);
  } else if (code == EXIT_DONE) {
    code = run_command(&args, j);
  }
  cli_args_free(&args);
  return code;
}

static int unknown_command(const char *name) {
  const char *nearest = strcasecmp(name, "train") == 0     ? "fit"
                        : strcasecmp(name, "version") == 0 ? "--version"
                                                           : NULL;
  size_t best = nearest ? 0 : SIZE_MAX;
  for (size_t i = 0; i < cli_command_count; i++) {
    const char *known = cli_commands[i].name;
    if (strncasecmp(name, known, strlen(known)) == 0) best = 0, nearest = known; /* evaluate, FIT */
    if (cli_nearer(name, known, &best)) nearest = known;
  }
  if (nearest) return cli_error(NULL, "unknown command `%s`; did you mean `%s`?", name, nearest);
  return cli_error(NULL, "unknown command `%s`; `unicon --help` lists them", name);
}

static int overview(const job *j) {
  if (j)
    job_overview();
  else
    cli_overview(stdout);
  return printed(EXIT_DONE);
}

static int help(const char *name, const job *j) {
  const cli_command *command = name ? cli_command_find(name) : NULL;
  if (!name) return overview(j);
  if (!command) return unknown_command(name);
  cli_help(command, false, stdout);
  return printed(EXIT_DONE);
}

/* An option that stands before the command, or without one. */
static int early_option(int argc, char **argv) {
  const char *name = argv[1];
  const int length = (int)strcspn(name, "=");
  const cli_command *command = NULL;
  cli_entry entry;
  for (int k = 2; k < argc && !command; k++) command = cli_command_find(argv[k]);
  const cli_command *of = command ? command : &cli_commands[0];
  for (size_t i = 0; cli_entry_at(of, i, &entry); i++)
    if ((name[1] == '-' && strncmp(name + 2, entry.name, (size_t)length - 2) == 0 &&
         !entry.name[length - 2]) ||
        (entry.letter && name[1] == entry.letter))
      return cli_error(NULL, "%.*s follows a command: unicon %s ... %.*s", length, name, of->name,
                       length, name);
  if (name[1] == '-') return cli_unknown_option(NULL, name + 2);
  return cli_error(NULL, "unknown option %s; `unicon --help` lists the commands", name);
}

/* `unicon --OPTION`: there is no command yet. */
static int top_option(int argc, char **argv, const job *j) {
  const char *name = argv[1];
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
    return help(argc > 2 && argv[2][0] != '-' ? argv[2] : NULL, j);
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
    printf("unicon %s\n%s\n", unicon_version(), unicon_build_info());
    return printed(EXIT_DONE);
  }
  if (strcmp(name, "--man") == 0) {
    man_print(stdout);
    return printed(EXIT_DONE);
  }
  if (strcmp(name, "--completion") == 0)
    return printed(completion_print(argc > 2 ? argv[2] : NULL, stdout));
  if (strncmp(name, "--completion=", 13) == 0) return printed(completion_print(name + 13, stdout));
  return early_option(argc, argv);
}

void program_hurry(char **argv) {
  static const char variable[] = "OPENBLAS_CORETYPE";
  const char *kernels = unicon_faster_kernels();
  if (!kernels || getenv(variable) || setenv(variable, kernels, 0) != 0) return;
  execv("/proc/self/exe", argv);
  unsetenv(variable); /* it goes on as it is */
}

int program_run(int argc, char **argv, const job *j) {
  display_catch_signals();
  if (argc < 2) {
    cli_overview(stderr);
    return EXIT_USAGE;
  }
  if (argv[1][0] == '-') return top_option(argc, argv, j);
  if (strcmp(argv[1], "help") == 0) return help(argc > 2 ? argv[2] : NULL, j);
  const cli_command *command = cli_command_find(argv[1]);
  return command ? command_line(command, argc - 2, argv + 2, j) : unknown_command(argv[1]);
}
