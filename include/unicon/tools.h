/* SPDX-License-Identifier: Apache-2.0 */
/* unicon: tools around unicon/unicon.h, whose rules hold here too, but without its promise: any
 * version may change or drop them. The command is written with them, and you may use them as well.
 */
#ifndef UNICON_TOOLS_H
#define UNICON_TOOLS_H

#include "unicon/unicon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Before a fit ---------------------------------------------------------------------- */

/* What a fit will take, before it starts: memory as an upper bound, seconds good to about a factor of
 * 2. The result:
 *     memory            bytes the library will hold at most; max_mem must be above it
 *     memory_least      the same where kernels that do not fit are left out (presets auto and best)
 *     machine_memory    bytes this machine has
 *     reads_x, reads_y  how often the rows of each side are read
 *     plane_sweeps      walks over all n_x n_y scores
 *     flops
 *     seconds           from a product timed here and now, on the CPU
 *     device            that would do the stages it has, faster; or cpu
 *     advice            a sentence: that it fits, what to change, or not to do it and what in its
 *                       place
 *     statistics.memory, statistics.bytes, statistics.seconds
 *                       what summing the same rows into statistics takes, and the size of the file
 *                       (unicon/stats.h); not with map exact */
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
 *     closer                  mean share of others that are farther than the partner; .5: chance
 *     graded, doubtful        pairs tried (rows, for class labels), and those with a share below .5
 *     suspects.x, .y, .cosine, .closer
 *                             lists of the worst pairs, at most `suspects`, worst first. For class
 *                             labels an entry is a single row, and the other number is -1 */
UNICON_CALL unicon_status unicon_check(unicon_ctx *ctx, const unicon_data *data,
                                       const unicon_options *options, int64_t suspects,
                                       unicon_result **out);

/* A set cut in two, for training (part 0) and for testing or validation (part 1). */
typedef struct unicon_split unicon_split;

/* Holds out about `fraction` of the pairs, 0 <= fraction < 1, as option seed draws them. What
 * belongs together stays together:
 *   - the groups of the set or, if it has none, rows that are connected by pairs;
 *   - with class labels, nothing: single rows are drawn;
 *   - if most rows are connected, rows of y are drawn, and if one side has few rows, rows of the
 *     other; their partners are then in both parts, and a warning says so.
 * Unusable rows are an error or dropped, as option bad_rows says; a fraction of 0 does only that,
 * and part 1 then has no rows (NULL). The split borrows the rows of `data`, and its pairs if they
 * are unchanged. */
UNICON_CALL unicon_status unicon_split_make(unicon_ctx *ctx, const unicon_data *data,
                                            double fraction, const unicon_options *options,
                                            unicon_split **out);
UNICON_API void unicon_split_destroy(unicon_split *split);

/* A part of the split, which owns its rows, pairs and groups. */
UNICON_API const unicon_data *unicon_split_part(const unicon_split *split, int part);
/* The numbers that the rows of a side had in the whole set, ascending; as many as the part has. */
UNICON_API const int64_t *unicon_split_rows(const unicon_split *split, int part, unicon_side side);

/* ---- 2. Labels ---------------------------------------------------------------------------- */

/* The labels in one file or two, as class numbers 0, 1, ... in the order of the labels. */
typedef struct unicon_labels unicon_labels;

/* Reads files of one label per line (any text), or of integers (.npy, .ibin, .ivecs), that must
 * have `rows` and `other_rows` labels. Both files are numbered together and must be of one kind.
 * `other_path` may be NULL. */
UNICON_CALL unicon_status unicon_labels_read(unicon_ctx *ctx, const char *path, int64_t rows,
                                             const char *other_path, int64_t other_rows,
                                             unicon_labels **out);
UNICON_API void unicon_labels_destroy(unicon_labels *labels);

/* The class number of each row of the first file (0) or of the other (1). */
UNICON_API const int64_t *unicon_labels_numbers(const unicon_labels *labels, int file);
UNICON_API int64_t unicon_labels_classes(const unicon_labels *labels);
/* The label of class `number`; NULL past the end. */
UNICON_API const char *unicon_labels_name(const unicon_labels *labels, int64_t number);

/* ---- 3. Rows and pairs one by one --------------------------------------------------------- */

/* How many partners row `row` of `side` has on the other side; 0 for a row that does not exist. The
 * first `room` of them, in ascending order, go to `partner`. */
UNICON_API int64_t unicon_pairs_partners(const unicon_pairs *pairs, unicon_side side, int64_t row,
                                         int64_t room, int64_t *partner);

/* The usable rows of a view: finite and, where rows are scaled to length 1, not all zero. Row i of
 * *out is row number[i] of the view; `number` has room for all rows, or is NULL. *out borrows the
 * rows of the view. It is an error if no row is usable. */
UNICON_CALL unicon_status unicon_rows_usable(unicon_ctx *ctx, const unicon_view *view,
                                             int64_t *number, unicon_rows **out);

/* The rank of each row's first match, as unicon_evaluate counts it: 1 is best, 0 means that the row
 * has no match. `to_y` has a number for each row of x, `to_x` for each row of y; either may be
 * NULL. */
UNICON_CALL unicon_status unicon_ranks(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                       const unicon_pairs *pairs, int64_t *to_y, int64_t *to_x);

/* How often each row is among the first ten of a query, over all queries: found[0] counts rows of y
 * for queries of x, found[1] rows of x for queries of y; `plain` is without balance. Any of them
 * may be NULL. */
UNICON_CALL unicon_status unicon_hubs(unicon_ctx *ctx, const unicon_view *x, const unicon_view *y,
                                      const unicon_pairs *pairs, int64_t *found[2],
                                      int64_t *plain[2]);

/* The scores s of all rows of x with all rows of y, the weights S = -dL/ds of the loss in the
 * options, and the loss L; any of them may be NULL. Both matrices are n_x by n_y, so this is for
 * pictures of a few rows. Scores are cosines, for the loss `spectral` dot products; for `moment` S
 * is at s = 0. */
UNICON_CALL unicon_status unicon_weights(unicon_ctx *ctx, const unicon_view *x,
                                         const unicon_view *y, const unicon_pairs *pairs,
                                         const unicon_options *options, float *scores,
                                         float *weights, double *loss);

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
 * largest score with it. `label` says which row of `classes` is right, `answer` (one number for
 * each row; may be NULL) takes what was given. The result:
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

/* Writes a .npy or, by its suffix, a .fbin file piece by piece under a temporary name. */
typedef struct unicon_writer unicon_writer;

typedef enum unicon_file_dtype {
  UNICON_WRITE_F32 = 0,
  UNICON_WRITE_F16 = 1,
  UNICON_WRITE_I64 = 2
} unicon_file_dtype;

UNICON_CALL unicon_status unicon_writer_open(unicon_ctx *ctx, const char *path,
                                             unicon_file_dtype dtype, int64_t rows, int64_t width,
                                             unicon_writer **out);
/* Appends `count` rows: of float for F32 and F16 files, of int64_t for I64. */
UNICON_CALL unicon_status unicon_writer_append(unicon_ctx *ctx, unicon_writer *writer,
                                               const void *rows, int64_t count);
/* Completes and renames the file. Destroys the writer, whatever the status. */
UNICON_CALL unicon_status unicon_writer_commit(unicon_ctx *ctx, unicon_writer *writer);
/* Drops the file and destroys the writer. */
UNICON_API void unicon_writer_discard(unicon_writer *writer);

/* Synthetic latent-factor models, by name. With z around one of `clusters` centres,
 *     linear      x = U_1 z + noise, y = U_2 z + noise
 *     nonlinear   tanh of both
 * are those of the paper's text; linear-released and nonlinear-released are those of its authors'
 * code (docs/method.md). Options of scope UNICON_SCOPE_SYNTH set the constants. unicon_synth_width
 * gives the length of the rows, 0 for an unknown kind. */
UNICON_API int64_t unicon_synth_width(const char *kind, const unicon_options *options,
                                      unicon_side side);

/* Samples first .. first + count - 1 of a part, 0 to 65535, as train and test are parts: x, y and
 * label. A sample depends only on the seed, the part and its number there. linear-released has
 * centres of its own in each part, and its rows in the order of their clusters, so it must know how
 * many `rows` the part has; for the others they may be 0. */
UNICON_CALL unicon_status unicon_synth(unicon_ctx *ctx, const char *kind,
                                       const unicon_options *options, int64_t part, int64_t rows,
                                       int64_t first, int64_t count, float *x, float *y,
                                       int64_t *label);

/* ---- 6. Losses of the caller -------------------------------------------------------------- */

/* A function of one number: returns its value at t and sets *slope to its derivative there. It must
 * be increasing, give the same answer every time, and be callable by several threads at once. */
typedef double (*unicon_loss_fn)(void *user, double t, double *slope);

/* Sets option loss to `custom`: the general loss (docs/method.md section 1) with these psi and phi;
 * nu, epsilon and direction hold as in loss `general`. `user` is passed to both and must outlive
 * the options. A step takes rows times pairs evaluations of psi, so this is for lists of pairs, not
 * for class labels. */
UNICON_CALL unicon_status unicon_options_set_loss(unicon_ctx *ctx, unicon_options *options,
                                                  unicon_loss_fn psi, unicon_loss_fn phi,
                                                  void *user);

/* ---- 7. Devices ---------------------------------------------------------------------------- */

/* A device that option device may name. */
typedef struct unicon_device {
  char name[24];
  char text[256]; /* what it is, or why it cannot be used */
  int usable;
  int chosen; /* is it the one in force? */
} unicon_device;

/* The first `room` devices, the CPU first, and how many there are: plugins, libraries
 * libunicon_NAME.so beside this one. They are asked, not started, but for the one that device auto
 * means. */
UNICON_CALL unicon_status unicon_devices(unicon_ctx *ctx, unicon_device *list, size_t room,
                                         size_t *count);

/* A folder in which plugins are looked for before those beside the library. Loading one runs its
 * code. To be given before option device. */
UNICON_CALL unicon_status unicon_device_folder(unicon_ctx *ctx, const char *folder);

/* A matrix in memory of the host or of a device, as other libraries hand it over (DLPack,
 * __cuda_array_interface__). */
typedef struct unicon_memory {
  size_t size; /* set by UNICON_MEMORY */
  void *data;  /* element (0, 0) */
  int64_t rows, cols;
  int64_t row_stride, col_stride; /* bytes */
  uint64_t stream; /* on which it is being made: of CUDA 1 and 2, the default streams, or a
                    * cudaStream_t; 0: it is there */
  unicon_dtype dtype;
  int kind;     /* DLPack's number: 1 and 3 are the host's memory, 2 is CUDA's */
  int number;   /* on which device of the kind */
  int reserved; /* 0 */
} unicon_memory;

#define UNICON_MEMORY(...) ((unicon_memory){.size = sizeof(unicon_memory), __VA_ARGS__})

/* The kind of memory that the device in force has, which is started; 1 for the CPU. */
UNICON_CALL unicon_status unicon_memory_kind(unicon_ctx *ctx, int *kind);

/* unicon_rows_wrap of memory of any kind. What lies on a device is borrowed and read there by the
 * stages that run there; the others (the check of rows and their hash, the CPU's roads) read a
 * float32 copy, which is made now and counts as the library's memory. The device must be the one in
 * force, whenever the rows are used. */
UNICON_CALL unicon_status unicon_rows_wrap_memory(unicon_ctx *ctx, const char *name,
                                                  const unicon_memory *memory, unicon_rows **out);

/* Embeds all rows of `from` into `to`: float32, as many rows, the columns of the form (RAW or UNIT),
 * side by side. Where one of them lies on a device nothing passes through the host, unless the
 * model is made of parts; `name` is what errors call the rows. */
UNICON_CALL unicon_status unicon_embed_memory(unicon_ctx *ctx, const unicon_model *model,
                                              unicon_side side, unicon_form form, const char *name,
                                              const unicon_memory *from, const unicon_memory *to);

/* Memory for `rows` by `cols` float32 numbers on the device in force, or on the host where that is
 * the CPU. It outlives the context, and any thread may destroy it. */
typedef struct unicon_room unicon_room;
UNICON_CALL unicon_status unicon_room_create(unicon_ctx *ctx, int64_t rows, int64_t cols,
                                             unicon_room **out);
UNICON_API void unicon_room_memory(const unicon_room *room, unicon_memory *out);
UNICON_API void unicon_room_destroy(unicon_room *room);

/* Of the CPU: the value of the environment variable OPENBLAS_CORETYPE with which its products are faster
 * here, or NULL: OpenBLAS takes a processor that is newer than itself for an old one. It reads the
 * variable when it is loaded, so it must be set before the process starts. */
UNICON_API const char *unicon_faster_kernels(void);

/* ---- 8. Several processes ------------------------------------------------------------------- */

/* How the processes of one job speak with one another, by a few callbacks: `unicon-mpi` gives those
 * of MPI, and a program may give any others. Each is called by all processes, in the same order, from
 * the thread that made the call, and returns 0 or, if the others cannot be reached any more, another
 * number. After a sum, a maximum or a broadcast all processes must hold the same bytes. */
typedef struct unicon_processes {
  size_t size;
  int64_t index, count; /* which one this is, 0 .. count-1 */
  void *user;
  /* Process k has bytes offset[k] .. offset[k+1]-1 of `all`, in their place; it becomes whole. */
  int (*gather)(void *user, void *all, const int64_t *offset);
  /* What process 0 has, to all. */
  int (*broadcast)(void *user, void *bytes, int64_t count);
  /* Sums, and the largest, place by place, into the place of what each process has. */
  int (*sum)(void *user, double *values, int64_t count);
  int (*sum_floats)(void *user, float *values, int64_t count);
  int (*largest)(void *user, double *values, int64_t count);
} unicon_processes;

#define UNICON_PROCESSES(...) ((unicon_processes){sizeof(unicon_processes), __VA_ARGS__})

/* The context becomes one of a job; NULL, or a count of 1: it is alone again. From then on
 * unicon_fit, unicon_evaluate and unicon_search are calls of all processes: each makes them with the
 * same options and the same data, which all of them can see (files that are mapped are read where
 * they are needed), and each does its part of the rows: the statistics, embeddings, scores and
 * gradients of n/count consecutive ones. All get the same result, that of one process up to rounding.
 *
 * Where one of them fails, all fail, with its sentence and "process K: " in front. What must be the
 * same is compared first: the version and build of the library, options, shapes of the data. All
 * other calls are of one process. `user` must outlive the context. A device of its own is not used in
 * such a call: option device must be auto or cpu. */
UNICON_CALL unicon_status unicon_ctx_join(unicon_ctx *ctx, const unicon_processes *processes);

/* A call of all processes in which each says how it fared (UNICON_OK, or a status with a sentence):
 * for what a program does by itself, such as opening files, before it makes a call of all. Succeeds
 * if all have; else all get the status and sentence of the first that failed; where all fail, each keeps its own. */
UNICON_CALL unicon_status unicon_agree(unicon_ctx *ctx, unicon_status own, const char *sentence);

#ifdef __cplusplus
}
#endif

#endif
