/* SPDX-License-Identifier: Apache-2.0 */
/* unicon: tools around unicon/unicon.h that make no promise. The command needs them and so may you,
 * but any version may change or drop them; what has to last stays within unicon/unicon.h. Its rules
 * hold here too.
 */
#ifndef UNICON_TOOLS_H
#define UNICON_TOOLS_H

#include "unicon/unicon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Before a fit ---------------------------------------------------------------------- */

/* What a fit will take, before it starts. Estimates, good to about a factor of 1.5. The result:
 *     memory            bytes the library will hold at most; max_mem must be above it
 *     reads_x, reads_y  how often the rows of each side are read
 *     plane_sweeps      walks over all n_x n_y scores
 *     flops
 *     seconds           from a product timed here and now
 *     advice            a sentence: that it fits, or what to change */
UNICON_CALL unicon_status unicon_plan(unicon_ctx *ctx, const unicon_data *data,
                                      const unicon_options *options, unicon_result **out);

/* Says before a fit whether there is anything to align, how many dimensions carry it, and which
 * pairs look wrong. Needs at least 20 rows of each side. The result:
 *     verdict                 a sentence for someone who does not know the numbers
 *     pairs, rows_x, rows_y   in use
 *   Canonical correlations on all pairs, shrunk by the ridge:
 *     spectrum                a list, largest first, of at most 64
 *     noise                   the largest one of shuffled pairs
 *     rank                    how many lie above it, at most 256: a fit may well use more
 *   A fit on one half of the pairs, tried on the other half:
 *     cosine, chance          mean cosine of true and of shuffled pairs
 *     p_value                 share of 1000 shuffles at least as close as the true pairs, those
 *                             included
 *   Fits on either half, tried on the other:
 *     closer                  mean share of other rows that are farther than the partner: .5 is chance
 *     graded, doubtful        pairs tried (with class labels: rows), and those with a share below .5
 *     suspects.x .y .cosine .closer   lists of the worst, at most `suspects`, worst first. With class
 *                             labels an entry is a single row: the other number is -1 */
UNICON_CALL unicon_status unicon_check(unicon_ctx *ctx, const unicon_data *data,
                                       const unicon_options *options, int64_t suspects,
                                       unicon_result **out);

/* A set cut in two, for training (0) and for a test or validation (1). */
typedef struct unicon_split unicon_split;

/* Holds out about `fraction` of the pairs. Rows that belong together stay together: whole groups or
 * connected components of the pairs; with class labels single rows; where one component has most
 * of the rows, rows of y alone, with a warning: their x rows are then in both parts; where a side
 * has few rows, those of the other side alone, likewise. Rows that
 * cannot be used are an error or dropped, as option bad_rows says; a fraction of 0 does that alone,
 * and part 1 has no rows (NULL). Option seed sets the draw. The rows of `data` are borrowed, and so
 * are its pairs where nothing changed: they must outlive the split. */
UNICON_CALL unicon_status unicon_split_make(unicon_ctx *ctx, const unicon_data *data,
                                            double fraction, const unicon_options *options,
                                            unicon_split **out);
UNICON_API void unicon_split_destroy(unicon_split *split);

/* The rows, pairs and groups of a part, which belong to the split. */
UNICON_API const unicon_data *unicon_split_part(const unicon_split *split, int part);

/* ---- 2. Labels ---------------------------------------------------------------------------- */

/* Labels of the rows of one or two files, as class numbers 0, 1, ... in the order of the labels,
 * with their texts. */
typedef struct unicon_labels unicon_labels;

/* From one label per line (any text) or an integer npy. Labels of `other_path` (NULL: none) are
 * numbered together with those of `path`, and must be of the same kind. `rows` and `other_rows` are
 * how many there must be. */
UNICON_CALL unicon_status unicon_labels_read(unicon_ctx *ctx, const char *path, int64_t rows,
                                             const char *other_path, int64_t other_rows,
                                             unicon_labels **out);
UNICON_API void unicon_labels_destroy(unicon_labels *labels);

/* Class numbers, one for each row, of the first file (0) or the other (1). */
UNICON_API const int64_t *unicon_labels_numbers(const unicon_labels *labels, int file);
UNICON_API int64_t unicon_labels_classes(const unicon_labels *labels);
/* The label of class `number` as text; NULL past the end. */
UNICON_API const char *unicon_labels_name(const unicon_labels *labels, int64_t number);

/* ---- 3. Rows and pairs one by one --------------------------------------------------------- */

/* How many rows of the other side belong to row `row` of `side` (0 for a row that is not there);
 * the first `room` of them, ascending, go to `partner`. */
UNICON_API int64_t unicon_pairs_partners(const unicon_pairs *pairs, unicon_side side, int64_t row,
                                         int64_t room, int64_t *partner);

/* The rows that can be used through the view: finite and, where they must have a direction, not all
 * zero. They are numbered anew and borrowed from the rows of the view, which must outlive them; row
 * i of them is row number[i] there (`number` has room for all rows, or is NULL). A view without any
 * such row is an error. */
UNICON_CALL unicon_status unicon_rows_usable(unicon_ctx *ctx, const unicon_view *view,
                                             int64_t *number, unicon_rows **out);

/* The rank of the first match of every row, 1 being best and 0 for rows without a match, counted as
 * unicon_evaluate does. `to_y` has a place for each row of x, `to_x` for each row of y; either may
 * be NULL. */
UNICON_CALL unicon_status unicon_ranks(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                       const unicon_pairs *pairs, int64_t *to_y, int64_t *to_x);

/* Hubs: how often each row is among the first ten of a query, over all queries; index 0 counts the
 * rows of y with x as queries, 1 those of x, and `plain` is without balance. Any may be NULL. */
UNICON_CALL unicon_status unicon_hubs(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                      const unicon_pairs *pairs, int64_t *found[2],
                                      int64_t *plain[2]);

/* The scores s of all rows of x with all of y and the weights S = -dL/ds that the loss of the
 * options gives them, each n_x by n_y (either may be NULL), and the loss L (may be NULL). The one
 * call that makes whole matrices: it is for a picture of a few rows. Scores are cosines, but dot
 * products for the loss `spectral`; `moment` is S at s = 0. */
UNICON_CALL unicon_status unicon_weights(unicon_ctx *ctx, const unicon_view *x,
                                         const unicon_view *y, const unicon_pairs *pairs,
                                         const unicon_options *options, float *scores,
                                         float *weights, double *loss);

/* A picture: places `count` points of `width` numbers each in the plane, `out` being count by 2.
 * Exact t-SNE from a PCA start, or PCA (options `layout` and `perplexity`); t-SNE keeps count by
 * count floats. `divergence` (may be NULL) is what t-SNE reached, NaN for PCA. */
UNICON_CALL unicon_status unicon_layout(unicon_ctx *ctx, const float *points, int64_t count,
                                        int64_t width, const unicon_options *options, float *out,
                                        double *divergence);

/* ---- 4. Classes --------------------------------------------------------------------------- */

/* A linear probe: multinomial logistic regression with intercept on the unit embeddings of `train`
 * and their labels (any integers), tried on `test`. The result:
 *     accuracy, train_accuracy   share of the rows that got their label
 *     chance                     of always answering the most frequent training label
 *     loss, gradient, iterations minimum reached, mean cross-entropy + ridge/2 |W|^2; length of its
 *                                gradient there; steps taken
 *     train_rows, test_rows
 *     unseen                     test rows with a label that no training row has: counted as wrong
 *     labels                     the distinct labels of both sets, ascending
 *     confusion                  entry (a, b): test rows with labels[a] that were given labels[b];
 *                                not there above 4096 labels */
UNICON_CALL unicon_status unicon_probe(unicon_ctx *ctx, const unicon_view *train,
                                       const int64_t *train_label, const unicon_view *test,
                                       const int64_t *test_label, const unicon_options *options,
                                       unicon_result **out);

/* Zero-shot classification: each row is given the class whose vector, a row of `classes`, has the
 * largest score with it. `label` says which row of `classes` is right, `answer` (one number for each
 * row; may be NULL) takes what was given. The result:
 *     accuracy             share of the rows whose class is the closest; a tie counts as a miss
 *     top5                 ... among the five closest
 *     mean_class_accuracy  mean of the accuracies of the classes that have rows
 *     chance               of a random answer: 1 / classes
 *     rows, classes
 *     confusion            entry (a, b): rows of class a that were given class b; not there above
 *                          4096 classes */
UNICON_CALL unicon_status unicon_classify(unicon_ctx *ctx, const unicon_view *rows,
                                          const int64_t *label, const unicon_view *classes,
                                          int64_t *answer, unicon_result **out);

/* ---- 5. Files and synthetic data ---------------------------------------------------------- */

/* Writes an .npy or (by suffix) .fbin file row block by row block under a temporary name. */
typedef struct unicon_writer unicon_writer;

typedef enum unicon_file_dtype {
  UNICON_WRITE_F32 = 0,
  UNICON_WRITE_F16 = 1,
  UNICON_WRITE_I64 = 2
} unicon_file_dtype;

UNICON_CALL unicon_status unicon_writer_open(unicon_ctx *ctx, const char *path,
                                             unicon_file_dtype dtype, int64_t rows, int64_t width,
                                             unicon_writer **out);
/* `count` more rows: float for F32 and F16 files, int64_t for I64. */
UNICON_CALL unicon_status unicon_writer_append(unicon_ctx *ctx, unicon_writer *writer,
                                               const void *rows, int64_t count);
/* Completes and renames the file. The writer is destroyed, whatever the status. */
UNICON_CALL unicon_status unicon_writer_commit(unicon_ctx *ctx, unicon_writer *writer);
/* Drops the file. */
UNICON_API void unicon_writer_discard(unicon_writer *writer);

/* The paper's synthetic latent-factor models. With z around one of `clusters` centres:
 * linear x = U_1 z + xi_1, y = U_2 z + xi_2; nonlinear: tanh of both. Options of scope
 * UNICON_SCOPE_SYNTH (dim_x, dim_y, latent, clusters, spread, centers, noise, seed) set the rest.
 * Fills x (count by dim_x), y (count by dim_y), label (count). Sample `first + i` depends on the
 * seed and its number alone, so a test set is another range of numbers. */
UNICON_CALL unicon_status unicon_synth(unicon_ctx *ctx, const char *kind,
                                       const unicon_options *options, int64_t first, int64_t count,
                                       float *x, float *y, int64_t *label);

#ifdef __cplusplus
}
#endif

#endif
