/* SPDX-License-Identifier: Apache-2.0 */
/* THE option table: every library option once. The command line, man page, bindings, model metadata
 * and defaults all read it. */
#ifndef UNICON_BASE_OPTIONS_H
#define UNICON_BASE_OPTIONS_H

#include "base/option.h"
#include "unicon/tools.h"

/* id, name, kind, default, words, metavar, low, high, scope, group, help */
#define UNICON__OPTIONS(X)                                                                         \
  X(PRESET, "preset", "word", "auto", "auto|best|fast|paper|paper-synthetic|paper-printed",        \
    "NAME", 0, 0, FIT, "Method",                                                                   \
    "A set of settings; options that are given override it. auto: kernel, landmarks, ridge, "      \
    "metric, rank, exponent, balance and refine chosen on held-out pairs (not together with "      \
    "iterations, batch, start, identity or shared_encoder). best: the same with a larger grid. "   \
    "fast: linear, whitened, closed form; below 10000 rows of y ridge, exponent and balance "      \
    "are chosen. paper: what the authors' code runs on image and text (clip with nu 2, "           \
    "temperature 1, rows as they are, singular vectors alone, rank 128, two plain steps from "     \
    "random factors). paper-synthetic: what it runs on its synthetic data (batches of 30, even "   \
    "split, rank 10; give the kernel as well). paper-printed: the text read to the letter "        \
    "(split 0, batches of 500, unit rows). All three are kept for comparison.")                    \
  X(RANK, "rank", "integer", "auto", "auto|full", "N", 1, 1e6, FIT | COMPARE, "Method",            \
    "Dimensions of the shared space. auto: 256, or fewer where the data allow no more; preset "    \
    "auto "                                                                                        \
    "takes twice as many where that is clearly better. full: all that the data allow.")            \
  X(LOSS, "loss", "word", "clip",                                                                  \
    "clip|infonce|general|triplet|supcon|siglip|spectral|moment|custom", "NAME", 0, 0,             \
    FIT | WEIGHTS, "Loss",                                                                         \
    "The loss whose weights S = -dL/ds the iterations use; custom is one of a C program.")         \
  X(DIRECTION, "direction", "word", "both", "both|x|y", "WHO", 0, 0, FIT | WEIGHTS, "Loss",        \
    "Whose rows look for partners among the other side: the mean of both losses, or one of them "  \
    "alone. infonce is clip with x; siglip and spectral have no directions.")                      \
  X(TEMPERATURE, "temperature", "real", "0.1", "learn", "T", 1e-3, 1e3, FIT | WEIGHTS, "Loss",     \
    "Temperature of exponential losses and of psi softplus and softmin. learn: 0.07, and refine "  \
    "learns it on L/T, as CLIP does.")                                                             \
  X(MARGIN, "margin", "real", "0.2", "", "M", 0, 1e3, FIT | WEIGHTS, "Loss",                       \
    "Margin of triplet and of psi hinge and softmin.")                                             \
  X(SCALE, "scale", "real", "10", "", "T", 1e-6, 1e4, FIT | WEIGHTS, "Loss", "Scale t of siglip.") \
  X(BIAS, "bias", "real", "-10", "", "B", -1e4, 1e4, FIT | WEIGHTS, "Loss", "Bias b of siglip.")   \
  X(PSI, "psi", "word", "exp", "exp|hinge|softplus|softmin|identity", "NAME", 0, 0, FIT | WEIGHTS, \
    "Loss",                                                                                        \
    "psi of the general loss: e^(x/T), [x+M]+, T log(1+e^(x/T)), -T log(1+e^((M-x)/T)) or x.")     \
  X(PHI, "phi", "word", "log", "log|log1p|identity", "NAME", 0, 0, FIT | WEIGHTS, "Loss",          \
    "phi of the general loss; log and log1p are multiplied by T where psi is exp.")                \
  X(NU, "nu", "real", "1", "", "NU", 0, 1e3, FIT | WEIGHTS, "Loss",                                \
    "nu of the general loss: how strongly a negative is compared with the positive.")              \
  X(EPSILON, "epsilon", "real", "1", "", "E", 0, 1e3, FIT | WEIGHTS, "Loss",                       \
    "Weight of the positive's own term in the general loss.")                                      \
  X(METRIC, "metric", "sided", "whiten", "none|whiten", "POWER", 0, 1, FIT, "Method",              \
    "Metric W = (Sigma + ridge lambda_max I)^-POWER on both sides. whiten is POWER 0.5, none is "  \
    "0 and the paper's choice. A,B is A for x and B for y: whiten,none with split 1 and full "     \
    "rank is a ridge regression.")                                                                 \
  X(RIDGE, "ridge", "sided", "auto", "auto", "L", 0, 1e6, FIT | CHECK, "Method",                   \
    "Shrinkage of the metric, as a share of the largest eigenvalue of Sigma; A,B for x and for "   \
    "y. auto: where nothing chooses it, the more the fewer rows there are, and most for the "      \
    "side with fewer; 1.16 / sqrt(n) for n pairs one to one.")                                     \
  X(IDENTITY, "identity", "real", "0", "", "L", 0, 1e6, FIT, "Method",                             \
    "Shrinks the map towards the identity, which is no alignment at all: for rows that share a "   \
    "space, such as two versions of a model. L times the identity is added to the map scaled "     \
    "to a largest singular value of 1; with rank auto all dimensions are kept.")                   \
  X(SPLIT, "split", "real", "0.5", "", "A", 0, 1, FIT, "Method",                                   \
    "Share of the singular values given to x: F_x = U S^A, F_y = V S^(1-A).")                      \
  X(EXPONENT, "exponent", "real", "auto", "auto", "E", 0, 4, FIT, "Method",                        \
    "Power of the singular values in the factors: F_x = U S^(E A), F_y = V S^(E (1-A)). 0 weighs " \
    "all directions alike, as plain CCA does. auto: chosen on held-out pairs where there are "     \
    "any, "                                                                                        \
    "else 1.5, or 1 before iterations and refine.")                                                \
  X(BALANCE, "balance", "form", "auto", "auto|off", "HOW", 0, 0, FIT | EVAL | USE | BALANCE,       \
    "Balance",                                                                                     \
    "How much a candidate's score is lowered for being near everything: off, softmax:BETA, "       \
    "csls:K (half the mean of the K nearest bank rows), or quadratic:BETA, which keeps no "        \
    "training rows (only in `fit` and `balance`). auto: at a fit chosen on held-out "              \
    "pairs where there are any, else "                                                             \
    "softmax:10 (softmax:5 below 4000 rows of y); in use, what the model says. Banks of "          \
    "another domain can do harm; `unicon balance` renews them.")                                   \
  X(BALANCE_BANK, "balance_bank", "integer", "4096", "", "N", 16, 1e6, FIT | BALANCE, "Balance",   \
    "Embedded training rows of each side that biases are made from, kept in the model.")           \
  X(NORMALIZE, "normalize", "word", "on", "on|off", "on|off", 0, 0, FIT | COMPARE | CHECK | STATS, \
    "Data", "Scale every input row to length 1 first.")                                            \
  X(CENTER, "center", "word", "on", "on|off", "on|off", 0, 0, FIT | COMPARE | CHECK, "Data",       \
    "Subtract the mean of the features.")                                                          \
  X(UNPAIRED, "unpaired", "word", "off", "on|off", "on|off", 0, 0, FIT | CHECK | STATS, "Data",    \
    "Let rows without a partner count in means and covariances.")                                  \
  X(KERNEL, "kernel", "word", "linear",                                                            \
    "linear|cosine|angular|arccos0|arccos1|arccos2|expcos|rbf|matern12|laplace|matern32|matern52|" \
    "poly",                                                                                        \
    "NAME", 0, 0, FIT | STATS, "Kernel", "Kernel of both sides.")                                  \
  X(KERNEL_X, "kernel_x", "word", "same",                                                          \
    "linear|cosine|angular|arccos0|arccos1|arccos2|expcos|rbf|matern12|laplace|matern32|matern52|" \
    "poly|same",                                                                                   \
    "NAME", 0, 0, FIT | STATS, "Kernel", "Kernel of x; same: as kernel says.")                     \
  X(KERNEL_Y, "kernel_y", "word", "same",                                                          \
    "linear|cosine|angular|arccos0|arccos1|arccos2|expcos|rbf|matern12|laplace|matern32|matern52|" \
    "poly|same",                                                                                   \
    "NAME", 0, 0, FIT | STATS, "Kernel", "Kernel of y; same: as kernel says.")                     \
  X(WIDTH, "width", "sided", "auto", "auto", "L", 1e-6, 1e6, FIT | STATS, "Kernel",                \
    "Width of expcos, rbf and matern; auto: the median distance between rows. Degree of poly, a "  \
    "whole number up to 16; auto: 3. A,B is A for x and B for y.")                                 \
  X(MAP, "map", "word", "auto", "auto|linear|exact|nystrom|random", "HOW", 0, 0, FIT | STATS,      \
    "Kernel",                                                                                      \
    "How features are made. auto: linear for the linear kernel, else exact up to 4000 rows, else " \
    "nystrom. exact: every training row is a landmark. random: random features, for arc-cosine, "  \
    "rbf and matern kernels.")                                                                     \
  X(LANDMARKS, "landmarks", "integer", "2000", "", "N", 1, 1e6, FIT | STATS, "Kernel",             \
    "Landmarks of nystrom, fewer where there are fewer rows.")                                     \
  X(LANDMARK_METHOD, "landmark_method", "text", "uniform", "uniform|pivot", "FILE", 0, 0,          \
    FIT | STATS, "Kernel",                                                                         \
    "uniform: random rows. pivot: randomly pivoted Cholesky. Else a file of x_row<TAB>y_row "      \
    "lines.")                                                                                      \
  X(FEATURES, "features", "integer", "2048", "", "N", 1, 1e6, FIT | STATS, "Kernel",               \
    "Number of random features.")                                                                  \
  X(KERNEL_RIDGE, "kernel_ridge", "real", "0", "", "L", 0, 1e6, FIT | STATS, "Kernel",             \
    "Added to the diagonal of K in exact and nystrom; 0 is the pseudo-inverse.")                   \
  X(ITERATIONS, "iterations", "integer", "0", "", "T", 0, 1e4, FIT, "Solver",                      \
    "Spectral steps after the first. 0 with start moment is the closed form alone: no loss is "    \
    "used.")                                                                                       \
  X(DAMPING, "damping", "word", "safe", "safe|plain", "HOW", 0, 0, FIT, "Solver",                  \
    "safe: a step is shortened until the loss falls, or refused. plain: every step is taken.")     \
  X(START, "start", "text", "moment", "moment|random|zero", "FILE", 0, 0, FIT, "Solver",           \
    "Where the weights S of the first step come from. moment: the closed form. zero: the loss "    \
    "at scores of 0. random: the loss at random factors; with refine and no iterations it "        \
    "starts from them (an SGD head). Else the file of a linear model whose weights refine "        \
    "starts from (metric none). With random or a file, refine is AdamW with weight decay 0.01 "    \
    "and stops after 5 epochs without a better held-out score.")                                   \
  X(TOLERANCE, "tolerance", "real", "0", "", "T", 0, 1, FIT, "Solver",                             \
    "Stop iterations after a step that changes the map, scaled to norm 1, by less than T. 0: "     \
    "never.")                                                                                      \
  X(REFINE, "refine", "integer", "0", "", "EPOCHS", 0, 1e4, FIT, "Solver",                         \
    "Epochs of minibatch Adam on the loss after the spectral steps; with auto and best at most.")  \
  X(REFINE_BATCH, "refine_batch", "integer", "2000", "", "N", 2, 1e6, FIT, "Solver",               \
    "Rows of x in a batch of refine.")                                                             \
  X(REFINE_RATE, "refine_rate", "real", "0.1", "", "R", 1e-6, 10, FIT, "Solver",                   \
    "First step length of refine, on factors of unit mean square; it falls to 0 as a cosine.")     \
  X(BATCH, "batch", "integer", "full", "full", "N", 2, 1e12, FIT, "Solver",                        \
    "Rows of x per batch, each with the y rows paired to them; full: the exact global weights.")   \
  X(BATCH_ORDER, "batch_order", "word", "random", "random|file", "HOW", 0, 0, FIT, "Solver",       \
    "random: batches are drawn, in equal parts. file: rows as they come, N at a time; fewer "      \
    "than N at the end are left out.")                                                             \
  X(BATCH_AVERAGE, "batch_average", "word", "c", "c|solution", "WHAT", 0, 0, FIT, "Solver",        \
    "What is averaged over batches: the matrices C, decomposed once, or the solution of each, "    \
    "reweighted in every step, as in the authors' code.")                                          \
  X(AGGREGATE, "aggregate", "word", "uniform", "uniform|accuracy|softmax|robust", "HOW", 0, 0,     \
    FIT, "Solver",                                                                                 \
    "Weights of batches, by the held-out score of each: proportional to it (accuracy), to its "    \
    "exponential (softmax), or equal for all but outliers (robust). All but uniform need "         \
    "validation pairs.")                                                                           \
  X(SHARED_ENCODER, "shared_encoder", "flag", "off", "on|off", "", 0, 0, FIT, "Method",            \
    "One encoder for both sides, for two views of the same kind of data: the positive "            \
    "eigenvalues of (C + C^T)/2.")                                                                 \
  X(SVD, "svd", "word", "auto", "auto|dense|random", "HOW", 0, 0, FIT, "Solver",                   \
    "dense: LAPACK. random: subspace iteration from a random start. auto: by size.")               \
  X(VAL_FRACTION, "val_fraction", "real", "auto", "auto", "F", 0.01, 0.5, FIT | COMPARE, "Data",   \
    "Share of the pairs that auto holds out when no validation files are given; auto: 0.1, but "   \
    "0.2 below 1500 rows of y and 5000 rows above 50000. Below 4000 rows on three splits.")        \
  X(BUDGET, "budget", "real", "none", "none", "SECONDS", 0.1, 1e7, FIT | COMPARE, "Run",           \
    "Time after which auto tries nothing new.")                                                    \
  X(BAD_ROWS, "bad_rows", "word", "error", "error|drop", "HOW", 0, 0,                              \
    FIT | COMPARE | CHECK | EVAL | USE | BALANCE | MIGRATE | STATS, "Data",                        \
    "What to do with rows that are all zero, not finite or, with normalize off, too large to "     \
    "square: stop, or drop them and their pairs.")                                                 \
  X(SEED, "seed", "integer", "0", "", "N", 0, 9007199254740992.0,                                  \
    FIT | COMPARE | EVAL | SYNTH | CHECK | REPORT | BALANCE | MIGRATE | STATS, "Run",              \
    "Seed of every random draw.")                                                                  \
  X(THREADS, "threads", "integer", "all", "all", "N", 1, 256, CONTEXT, "Run", "Threads to use.")   \
  X(MAX_MEM, "max_mem", "bytes", "none", "none", "SIZE", 1048576, 1e18, CONTEXT, "Run",            \
    "Most memory the library may allocate, such as 512M or 2G. Mapped input and about 64M for "    \
    "BLAS and code come on top.")                                                                  \
  X(DEVICE, "device", "text", "auto", "auto|cpu", "NAME[:SIZE]", 0, 0, CONTEXT, "Run",             \
    "Where the heavy stages run: cpu, or the NAME of a device that `unicon info` lists. auto: "    \
    "the best one that is usable, else cpu. SIZE (cuda:4G, auto:4G) is the most of its memory "    \
    "to use. Results agree to rounding; the same device gives the same bytes.")                    \
  X(PRECISION, "precision", "word", "full", "full|reduced", "HOW", 0, 0, CONTEXT, "Run",           \
    "Of iterations on a device. full: as on the CPU. reduced: scores of the plane and weights "    \
    "have 16 bits, which takes less than half of the time; the weights are off by about 1e-3 at "  \
    "temperature 0.1. Without a device it has no effect, and search and eval are exact either "    \
    "way.")                                                                                        \
  X(CI, "ci", "flag", "off", "on|off", "", 0, 0, EVAL, "Evaluation",                               \
    "Add 95 % bootstrap intervals (1000 resamples of the queries).")                               \
  X(INTO, "into", "word", "auto", "auto|old|new|shared", "SPACE", 0, 0, MIGRATE, "Migration",      \
    "The space in which old and new vectors meet. auto: the one that loses least. old: new "       \
    "queries are mapped into the index as it is. new: the index is rewritten. shared: both are "   \
    "mapped.")                                                                                     \
  X(ANCHORS, "anchors", "integer", "5000", "", "N", 16, 1e5, MIGRATE, "Migration",                 \
    "Pairs that the kernel map keeps as landmarks, at most; with four times as many pairs it "     \
    "learns from all of them, and more are not read.")                                             \
  X(INDEX_ROWS, "index_rows", "integer", "none", "none", "N", 1, 1e15, MIGRATE, "Migration",       \
    "Rows of the index that will be searched: adds what to expect there, by extrapolation from "   \
    "the pairs.")                                                                                  \
  X(TRUST, "trust", "flag", "off", "on|off", "", 0, 0, MIGRATE | MOVE, "Migration",                \
    "Accept rows that do not look like those the migration was made with.")                        \
  X(SAMPLE_ROWS, "sample_rows", "integer", "10000", "", "N", 0, 1e8, STATS, "Statistics",          \
    "Rows of both sides together, at most, that statistics keep in float16 for banks and "         \
    "held-out "                                                                                    \
    "rows of a fit. 0: none.")                                                                     \
  X(LEDGER, "ledger", "flag", "off", "on|off", "", 0, 0, STATS, "Statistics",                      \
    "Also keep 8 bytes per row, so that removing rows that were never added is noticed.")          \
  X(DROP_LANDMARKS, "drop_landmarks", "flag", "off", "on|off", "", 0, 0, STATS, "Statistics",      \
    "Where removed rows are landmarks, go on without those landmarks; otherwise the removal is "   \
    "refused.")                                                                                    \
  X(PROBE_RIDGE, "probe_ridge", "real", "1e-4", "", "L", 0, 1e6, PROBE, "Probe",                   \
    "Weight of the penalty L/2 |W|^2 beside the mean cross-entropy; the intercepts are free.")     \
  X(DIM_X, "dim_x", "integer", "40", "", "N", 1, 1e6, SYNTH, "Data", "Dimensions of x.")           \
  X(DIM_Y, "dim_y", "integer", "auto", "auto", "N", 1, 1e6, SYNTH, "Data",                         \
    "Dimensions of y. auto: 30, in nonlinear-released 39.")                                        \
  X(LATENT, "latent", "integer", "10", "", "N", 1, 1e6, SYNTH, "Data",                             \
    "Dimensions of the latent vector z; at most those of x and y.")                                \
  X(CLUSTERS, "clusters", "integer", "auto", "auto", "N", 1, 1e6, SYNTH, "Data",                   \
    "Number of clusters. auto: 3, in nonlinear-released 1.")                                       \
  X(SPREAD, "spread", "real", "auto", "auto", "S", 0, 1e6, SYNTH, "Data",                          \
    "Standard deviation of z around its centre. auto: 1, in linear-released 0.6.")                 \
  X(CENTERS, "centers", "real", "auto", "auto", "S", 0, 1e6, SYNTH, "Data",                        \
    "Standard deviation of the centres; in linear-released they are uniform in [-S, S]. auto: 3, " \
    "in linear-released 2, in nonlinear-released 0.")                                              \
  X(NOISE, "noise", "real", "auto", "auto", "S", 0, 1e6, SYNTH, "Data",                            \
    "Standard deviation of the noise on x and y. auto: 0.3, in linear-released 0.1.")

enum {
#define UNICON__OPTION_ID(id, ...) UNICON__##id,
  UNICON__OPTIONS(UNICON__OPTION_ID)
#undef UNICON__OPTION_ID
      UNICON__OPTION_COUNT
};

/* The value in force: given, else the preset's, else the default. `options` may be NULL. */
double unicon__number(const unicon_options *options, int id);
unicon__value unicon__in_force(const unicon_options *options, int id);
/* The value of a sided option for x (0) or y (1), in `number` and `word`. */
unicon__value unicon__of_side(const unicon_options *options, int id, int side);
int unicon__word(const unicon_options *options, int id);
const char *unicon__text(const unicon_options *options, int id);
int64_t unicon__integer(const unicon_options *options, int id);

/* A value for an option of the context: which one, and what was read. */
unicon_status unicon__context_value(unicon_ctx *ctx, const char *name, const char *text, int *id,
                                    unicon__value *out);

/* Is the value in force this word? */
bool unicon__is(const unicon_options *options, int id, const char *word);

/* Was it given by the caller (not by a preset)? */
bool unicon__given(const unicon_options *options, int id);

const unicon_option_info *unicon__option_row(int id);

/* Word `index` of an option, into out. */
void unicon__option_word(int id, int index, char *out, size_t size);

/* psi and phi of loss custom, NULL where there are none. */
typedef struct unicon__custom {
  unicon_loss_fn psi, phi;
  void *user;
} unicon__custom;

unicon__custom unicon__custom_loss(const unicon_options *options);

/* All defaults. */
unicon_status unicon__options_create(unicon_ctx *ctx, unicon_options **out);

/* A copy, so that choices can be written into it. `from` may be NULL. */
unicon_status unicon__options_copy(unicon_ctx *ctx, const unicon_options *from,
                                   unicon_options **out);

/* Is the preset in force the one of this name? */
bool unicon__has_preset(const unicon_options *options, const char *name);

/* Sets a value that a choice made; it does not count as given. */
unicon_status unicon__options_replace(unicon_ctx *ctx, unicon_options *options, int id,
                                      const char *value);

/* The same, unless the user gave one. */
unicon_status unicon__options_choose(unicon_ctx *ctx, unicon_options *options, int id,
                                     const char *value);

#endif
