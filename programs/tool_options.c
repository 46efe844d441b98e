/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's own options: files, output, display. Everything that changes a result is in the
 * library's table instead. */
#include <string.h>

#include "cli.h"

#define PAIRED (CLI_FIT | CLI_PLAN | CLI_EVAL | CLI_CHECK | CLI_COMPARE | CLI_REPORT | CLI_WEIGHTS)
#define JUDGED (CLI_FIT | CLI_PLAN | CLI_COMPARE)
#define USED (CLI_EVAL | CLI_EMBED | CLI_SEARCH)

const cli_option cli_tool_options[] = {
    {CLI_OPT_OUTPUT, "output", 'o', "MODEL", "", NULL, CLI_FIT, "Output",
     "Where the model goes: MODEL.safetensors. Required."},
    {CLI_OPT_OUTPUT, "output", 'o', "MODEL", "", NULL, CLI_PLAN, "Output",
     "Nothing is written: accepted so that a `fit` command can be reused unchanged."},
    {CLI_OPT_OUTPUT, "output", 'o', "NEW", "", NULL, CLI_BALANCE, "Output",
     "Where the model with the new banks goes: NEW.safetensors. Required."},
    {CLI_OPT_OUTPUT, "output", 'o', "OUT", "", NULL, CLI_EMBED, "Output",
     "Where the embedded rows go: OUT.npy or OUT.fbin. Required."},
    {CLI_OPT_OUTPUT, "output", 'o', "PREFIX", "", NULL, CLI_SEARCH, "Output",
     "Write PREFIX.ids.npy (int64) and PREFIX.scores.npy (float32), queries by k, instead of the "
     "table."},
    {CLI_OPT_OUTPUT, "output", 'o', "DIR", "", NULL, CLI_SYNTH, "Output",
     "The folder for the files, made if it is missing. Required."},

    {CLI_OPT_OUTPUT, "output", 'o', "DIR", "", NULL, CLI_MIGRATE, "Output",
     "The folder for model.safetensors, decision.json and report.html, made if it is missing. "
     "Required."},
    {CLI_OPT_OUTPUT, "output", 'o', "OUT", "", NULL, CLI_REWRITE, "Output",
     "Where the rewritten rows go: OUT.npy with OUT.npy.json beside it, or a folder for shards "
     "0.npy, 1.npy, ... Required."},
    {CLI_OPT_SHARD_ROWS, "shard-rows", 0, "N", "", "1000000", CLI_REWRITE, "Output",
     "Rows of a shard; the same as before where the folder has some."},
    {CLI_OPT_DTYPE, "dtype", 0, "TYPE", "f4|f2", "f4", CLI_REWRITE, "Output",
     "Type of the numbers written: float32 or float16."},
    {CLI_OPT_CHECK, "check", 0, NULL, "", NULL, CLI_REWRITE, "Output",
     "Write nothing; check that OUT, a file or a folder of shards, is all of INDEX by MODEL, and "
     "that its bytes are those that were written."},
    {CLI_OPT_QUERIES_OLD, "queries-old", 0, "FILE", "", NULL, CLI_MIGRATE, "Queries",
     "The queries of --queries-new, row by row, by the old model: shows what it would find."},
    {CLI_OPT_QUERIES_NEW, "queries-new", 0, "FILE", "", NULL, CLI_MIGRATE, "Queries",
     "Queries by the new model, to judge with. If omitted: the items are the queries."},
    {CLI_OPT_JUDGEMENTS, "judgements", 0, "FILE", "", NULL, CLI_MIGRATE, "Queries",
     "Right answers of the queries: lines `query_row TAB item_row [TAB grade]`, or an integer .npy "
     "with 2 columns. If omitted: the ten nearest items by the new model."},

    {CLI_OPT_OUTPUT, "output", 'o', "NEW", "", NULL, CLI_STATS | CLI_MERGE | CLI_LANDMARKS,
     "Output", "Where the statistics go: NEW.stats. Required."},
    {CLI_OPT_ADD, "add", 0, NULL, "", NULL, CLI_STATS, "Change",
     "Add the rows of X and Y to ALL.stats."},
    {CLI_OPT_REMOVE, "remove", 0, NULL, "", NULL, CLI_STATS, "Change",
     "Take the rows of X and Y, which were added before, out of ALL.stats."},
    {CLI_OPT_CERTIFICATE, "certificate", 0, "OUT", "", NULL, CLI_STATS, "Change",
     "Write a certificate of the removal to OUT.json: what was removed, how that was checked, "
     "what is left of it, what else has seen the rows."},
    {CLI_OPT_DECAY, "decay", 0, "KEEP", "", NULL, CLI_STATS, "Change",
     "Before --add, let what was added so far count KEEP times as much, above 0 and below 1: "
     "for data that drift. After that nothing can be removed any more."},
    {CLI_OPT_MAP_FROM, "map-from", 0, "FILE", "", NULL, CLI_STATS | CLI_LANDMARKS, "Kernel",
     "Take kernel, landmarks and normalize of other statistics, or of a model, so that parts "
     "can be merged. Options about them must not be given then."},
    {CLI_OPT_FROM, "from", 0, "FILE", "", NULL, CLI_FIT | CLI_PLAN, "Data",
     "Fit from the statistics in FILE, which `unicon stats` and `unicon merge` make; X and Y must "
     "not be given then."},

    {CLI_OPT_OUTPUT, "output", 'o', "FILE", "", NULL, CLI_CHECK, "Output",
     "Also write the listed pairs to FILE, as lines `x TAB y TAB cosine TAB closer`."},

    {CLI_OPT_SIDE, "side", 0, "SIDE", "x|y", NULL, CLI_EMBED, "Embedding",
     "Which side of the model the rows belong to: x is the old model of a migration, y the new "
     "one. "
     "Required unless --into says it."},
    {CLI_OPT_INTO, "into", 0, "SPACE", "old|new|shared", NULL, CLI_EMBED, "Embedding",
     "With a model of `unicon migrate`: the space the rows go to, which must be the one that "
     "the model leads to. --side is then the side of the rows that move, unless it is given; "
     "OUT.json says where the vectors lie."},
    {CLI_OPT_INDEX, "index", 0, NULL, "cosine", NULL, CLI_EMBED, "Embedding",
     "Rows that will be searched: the vector and minus its bias, one more number. The inner "
     "product with rows of --query is the balanced score. cosine: two more numbers, for an "
     "index that has only the cosine."},
    {CLI_OPT_QUERY, "query", 0, NULL, "cosine", NULL, CLI_EMBED, "Embedding",
     "Queries for such an index: the vector and a 1. cosine: as in --index."},
    {CLI_OPT_NO_UNIT, "no-unit", 0, NULL, "", NULL, CLI_EMBED, "Embedding",
     "Do not scale the embedded rows to length 1."},
    {CLI_OPT_DTYPE, "dtype", 0, "TYPE", "f4|f2", "f4", CLI_EMBED, "Embedding",
     "Type of the numbers written: float32 or float16."},

    {CLI_OPT_QUERY_SIDE, "query-side", 0, "SIDE", "x|y", NULL, CLI_SEARCH, "Search",
     "Which side of the model the queries Q belong to. Required unless --base-side is given."},
    {CLI_OPT_BASE_SIDE, "base-side", 0, "SIDE", "x|y", NULL, CLI_SEARCH, "Search",
     "Which side the rows B belong to. If omitted: the side that the queries are not of."},
    {CLI_OPT_BASE_EMBEDDED, "base-embedded", 0, NULL, "", NULL, CLI_SEARCH, "Search",
     "B holds vectors written earlier by `unicon embed`, with or without --index."},
    {CLI_OPT_TOP, "top", 'k', "K", "", "10", CLI_SEARCH, "Search",
     "How many rows of B to list for each query."},
    {CLI_OPT_CALIBRATE, "calibrate", 0, "MODEL", "old|new", NULL, CLI_SEARCH, "Search",
     "With a model of `unicon migrate`: give the scores that the old or the new model would "
     "give, so that thresholds keep their meaning. The order stays."},

    {CLI_OPT_TOP, "top", 'k', "N", "", "20", CLI_CHECK, "Output",
     "How many of the worst pairs to list; of labels the worst rows, with - on the other side."},

    {CLI_OPT_SIDE, "side", 0, "SIDE", "x|y", NULL, CLI_PROBE, "Probe",
     "Which side of the model the rows belong to. Required unless --no-model is given."},
    {CLI_OPT_TRAIN_LABELS, "train-labels", 0, "FILE", "", NULL, CLI_PROBE, "Probe",
     "One label per row of TRAIN: lines of any text, or an integer .npy. Required."},
    {CLI_OPT_TEST, "test", 0, "FILE", "", NULL, CLI_PROBE, "Probe",
     "Rows that the classifier is tried on. Required."},
    {CLI_OPT_TEST_LABELS, "test-labels", 0, "FILE", "", NULL, CLI_PROBE, "Probe",
     "One label per row of TEST, of the same kind as the training labels. Required."},
    {CLI_OPT_NO_MODEL, "no-model", 0, NULL, "", NULL, CLI_PROBE, "Probe",
     "Take the rows as they are; no MODEL is given."},

    {CLI_OPT_OUTPUT, "output", 'o', "FILE", "", NULL, CLI_WEIGHTS, "Output",
     "Where the weights S go: an .npy file of as many rows as X and columns as Y has rows."},
    {CLI_OPT_SCORES, "scores", 0, "OUT", "", NULL, CLI_WEIGHTS, "Output",
     "Where the scores s go, in the same form: OUT.npy."},
    {CLI_OPT_NO_MODEL, "no-model", 0, NULL, "", NULL, CLI_WEIGHTS, "Data",
     "X and Y hold vectors of one shared space already; no MODEL is given."},
    {CLI_OPT_NO_MODEL, "no-model", 0, NULL, "", NULL, CLI_EVAL, "Evaluation",
     "X and Y hold vectors of one shared space already; no MODEL is given."},
    {CLI_OPT_OUTPUT, "output", 'o', "FILE", "", NULL, CLI_REPORT, "Report",
     "Where the page goes: report.html. Required unless --json is given."},
    {CLI_OPT_FROM, "from", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "Make the page again from what --json printed, or from a page; no MODEL, X and Y are given."},
    {CLI_OPT_X_IDS, "x-ids", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "One line per row of X: what the page calls the row. If omitted: its number."},
    {CLI_OPT_Y_IDS, "y-ids", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "The same for the rows of Y."},
    {CLI_OPT_X_TEXT, "x-text", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "One line per row of X: its text, shown beside its id. A line may be empty."},
    {CLI_OPT_Y_TEXT, "y-text", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "The same for the rows of Y."},
    {CLI_OPT_X_MEDIA, "x-media", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "One line per row of X: the path of its image or sound, from the folder of this list. "
     "Images (PNG, JPEG, GIF, WebP up to 512 KiB) are put inside the page, 6 MiB in all, "
     "beginning with the rows it lists; the rest is linked by paths from the folder of the "
     "page."},
    {CLI_OPT_Y_MEDIA, "y-media", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "The same for the rows of Y."},
    {CLI_OPT_BESIDE, "beside", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "Another model of the same rows, shown beside this one: metrics, both pictures, and the "
     "queries on which the two differ."},
    {CLI_OPT_LABELS, "labels", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "One label per row of X: its colour in the picture and its true class for --classes. Rows of "
     "Y take the colour of their partner. If omitted: --x-labels, or colours by rank."},
    {CLI_OPT_LAYOUT, "layout", 0, "HOW", "tsne|pca", "tsne", CLI_REPORT, "Report",
     "How points are placed in the plane."},
    {CLI_OPT_PERPLEXITY, "perplexity", 0, "P", "", "30", CLI_REPORT, "Report",
     "Neighbours that t-SNE looks at; at most a third of all points. From 1 to 1000."},
    {CLI_OPT_CLASSES, "classes", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "Class vectors of the y side, one row per class: adds zero-shot classification of X."},
    {CLI_OPT_CLASS_NAMES, "class-names", 0, "FILE", "", NULL, CLI_REPORT, "Report",
     "One name per row of the classes, as in eval."},

    {CLI_OPT_CLASSES, "classes", 0, "FILE", "", NULL, CLI_EVAL, "Zero-shot",
     "Class vectors of the y side, one row per class, instead of Y: every row of X is given the "
     "class with the largest score. --x-labels has the right answers. With --y-labels instead, X "
     "holds rows of the y side and the classes are of the x side."},
    {CLI_OPT_CLASS_NAMES, "class-names", 0, "FILE", "", NULL, CLI_EVAL, "Zero-shot",
     "One name per row of the classes. Labels are then names; without it, or in an integer .npy, "
     "they are row numbers of the classes, from 0."},

    {CLI_OPT_BANK_X, "bank-x", 0, "FILE", "", NULL, USED, "Balance",
     "Rows of the x side, already embedded, to use instead of the model's bank; at least 16."},
    {CLI_OPT_BANK_Y, "bank-y", 0, "FILE", "", NULL, USED, "Balance", "The same for the y side."},

    {CLI_OPT_TRAIN, "train", 0, "N", "", "600", CLI_SYNTH, "Size", "Number of training pairs."},
    {CLI_OPT_TEST, "test", 0, "N", "", "400", CLI_SYNTH, "Size", "Number of test pairs."},
    {CLI_OPT_VAL, "val", 0, "N", "", "0", CLI_SYNTH, "Size", "Number of validation pairs."},

    {CLI_OPT_Y_PER_X, "y-per-x", 0, "K", "", NULL, PAIRED | CLI_BALANCE | CLI_STATS, "Pairs",
     "Rows K*i to K*i+K-1 of Y belong to row i of X: K captions per image, in order."},
    {CLI_OPT_X_PER_Y, "x-per-y", 0, "K", "", NULL, PAIRED | CLI_BALANCE | CLI_STATS, "Pairs",
     "The other way round: K rows of X belong to each row of Y."},
    {CLI_OPT_PAIRS, "pairs", 0, "FILE", "", NULL, PAIRED | CLI_BALANCE | CLI_STATS, "Pairs",
     "Lines `x_row TAB y_row [TAB weight]`, rows from 0, header optional; or an integer .npy with "
     "2 columns."},
    {CLI_OPT_X_LABELS, "x-labels", 0, "FILE", "", NULL, PAIRED | CLI_BALANCE | CLI_STATS, "Pairs",
     "One label per row of X; rows with equal labels belong together. Goes with --y-labels."},
    {CLI_OPT_Y_LABELS, "y-labels", 0, "FILE", "", NULL, PAIRED | CLI_BALANCE | CLI_STATS, "Pairs",
     "One label per row of Y."},
    {CLI_OPT_ONE_SET, "one-set", 0, NULL, "", NULL, CLI_FIT | CLI_PLAN | CLI_EVAL | CLI_WEIGHTS,
     "Pairs",
     "X and Y are the same rows, with the labels of --x-labels: rows with equal labels belong "
     "together, and a row and itself count neither as right nor as wrong."},
    {CLI_OPT_IGNORE, "ignore", 0, "FILE", "", NULL, PAIRED, "Pairs",
     "Pairs that count neither as right nor as wrong, as in --pairs; in a fit a third column, "
     "0 to 1, says how much each still counts as wrong. The file may be empty."},
    {CLI_OPT_NEGATIVES, "negatives", 0, "FILE", "", NULL, CLI_FIT | CLI_PLAN | CLI_WEIGHTS, "Pairs",
     "The only pairs that count as wrong, at least one; a third column, 0 to 1, says how much. "
     "Left out: all pairs that are not right."},
    {CLI_OPT_GROUPS, "groups", 0, "FILE", "", NULL, CLI_FIT | CLI_PLAN | CLI_CHECK | CLI_COMPARE,
     "Pairs", "One label per row of X; a hold-out never splits rows with equal labels."},

    {CLI_OPT_VAL_X, "val-x", 0, "FILE", "", NULL, JUDGED, "Validation",
     "Rows of the x side that choose between candidates. Goes with --val-y; --y-per-x and "
     "--x-per-y hold for them too."},
    {CLI_OPT_VAL_Y, "val-y", 0, "FILE", "", NULL, JUDGED, "Validation",
     "Rows of the y side that choose between candidates."},
    {CLI_OPT_VAL_PAIRS, "val-pairs", 0, "FILE", "", NULL, JUDGED, "Validation",
     "Their pairs, as in --pairs."},
    {CLI_OPT_VAL_X_LABELS, "val-x-labels", 0, "FILE", "", NULL, JUDGED, "Validation",
     "Their labels, as in --x-labels."},
    {CLI_OPT_VAL_Y_LABELS, "val-y-labels", 0, "FILE", "", NULL, JUDGED, "Validation",
     "Their labels, as in --y-labels."},

    {CLI_OPT_TEST_X, "test-x", 0, "FILE", "", NULL, CLI_COMPARE, "Test",
     "Rows of the x side that every method is measured on. Goes with --test-y; --y-per-x and "
     "--x-per-y hold for them too. If omitted: a fifth of X and Y."},
    {CLI_OPT_TEST_Y, "test-y", 0, "FILE", "", NULL, CLI_COMPARE, "Test",
     "Rows of the y side that every method is measured on."},
    {CLI_OPT_TEST_PAIRS, "test-pairs", 0, "FILE", "", NULL, CLI_COMPARE, "Test",
     "Their pairs, as in --pairs."},
    {CLI_OPT_TEST_X_LABELS, "test-x-labels", 0, "FILE", "", NULL, CLI_COMPARE, "Test",
     "Their labels, as in --x-labels."},
    {CLI_OPT_TEST_Y_LABELS, "test-y-labels", 0, "FILE", "", NULL, CLI_COMPARE, "Test",
     "Their labels, as in --y-labels."},

    {CLI_OPT_ONLY, "only", 0, "NAMES", "", NULL, CLI_COMPARE, "Methods",
     "The rows to compare, separated by commas: fast, auto, best, paper, sgd_linear, cca, pls, "
     "procrustes, ridge, none. If omitted: all; best and sgd_linear take longest."},

    {CLI_OPT_JSON, "json", 0, NULL, "", NULL, CLI_ALL, CLI_GENERAL,
     "Print the result as one JSON object."},
    {CLI_OPT_QUIET, "quiet", 'q', NULL, "", NULL, CLI_ALL, CLI_GENERAL,
     "No warnings and no progress."},
    {CLI_OPT_VERBOSE, "verbose", 'v', NULL, "", NULL, CLI_ALL, CLI_GENERAL,
     "Say what was chosen and why; twice: also the stages of a fit and their times."},
    {CLI_OPT_PROGRESS, "progress", 0, NULL, "", NULL, CLI_ALL, CLI_GENERAL,
     "Draw the progress line even if standard error is not a terminal; there, without this and "
     "without --quiet, a line is written every ten seconds."},
    {CLI_OPT_HELP, "help", 'h', NULL, "", NULL, CLI_ALL | CLI_TOP, CLI_GENERAL, "Show this help."},
    {CLI_OPT_HELP_ALL, "help-all", 0, NULL, "", NULL, CLI_FIT | CLI_PLAN, CLI_GENERAL,
     "Show all options, and the formulas of losses, kernels and metrics."},
    {CLI_OPT_VERSION, "version", 0, NULL, "", NULL, CLI_TOP, CLI_GENERAL,
     "Show the version, the BLAS library and the SIMD level."},
    {CLI_OPT_MAN, "man", 0, NULL, "", NULL, CLI_TOP, CLI_GENERAL,
     "Print the manual page in scdoc format."},
    {CLI_OPT_COMPLETION, "completion", 0, "SHELL", "bash|zsh|fish", NULL, CLI_TOP, CLI_GENERAL,
     "Print the completion script of a shell."},
};

const size_t cli_tool_option_count = sizeof cli_tool_options / sizeof *cli_tool_options;

/* Options of the context for which some commands have no use. */
static const struct {
  const char *name;
  unsigned commands;
} limited[] = {
    {"precision", CLI_FIT | CLI_PLAN | CLI_COMPARE | CLI_WEIGHTS},
    {"device", CLI_ALL & ~(CLI_SYNTH | CLI_MERGE)},
};

unsigned cli_commands_of(const unicon_option_info *option) {
  for (size_t i = 0; i < sizeof limited / sizeof *limited; i++)
    if (strcmp(limited[i].name, option->name) == 0) return limited[i].commands;
  return CLI_ALL;
}

const char *cli_name(cli_id id) {
  for (size_t i = 0; i < cli_tool_option_count; i++)
    if (cli_tool_options[i].id == id) return cli_tool_options[i].name;
  return "";
}
