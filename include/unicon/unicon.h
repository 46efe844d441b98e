/* SPDX-License-Identifier: Apache-2.0 */
/* unicon: closed-form contrastive alignment of two sets of frozen embeddings.
 *
 * Two matrices X (n_x rows) and Y (n_y rows) come from two frozen encoders, and a sparse set P of
 * pairs (i, j) says which rows belong together. unicon_fit finds two maps f and g into one space
 * of r dimensions in which paired rows have a large cosine and others a small one.
 *
 * A whole program (examples/quickstart.c is this text, compiled and run by the tests):
 *
 *     unicon_ctx *ctx = NULL;
 *     unicon_rows *x = NULL, *y = NULL;
 *     unicon_pairs *pairs = NULL;
 *     unicon_model *model = NULL;
 *     unicon_metrics to_y, to_x;
 *     if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
 *     if (unicon_rows_open(ctx, "image.npy", &x) || unicon_rows_open(ctx, "text.npy", &y) ||
 *         unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), 5, &pairs) ||
 *         unicon_fit(ctx, &(unicon_data){x, y, pairs, NULL}, NULL, NULL, &model) ||
 *         unicon_evaluate(ctx, &(unicon_view){.rows = x, .model = model, .side = UNICON_X},
 *                         &(unicon_view){.rows = y, .model = model, .side = UNICON_Y}, pairs,
 *                         NULL, &to_y, &to_x))
 *       fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
 *     else
 *       printf("hit@1 on the rows it was fitted on: %.3f\n", to_y.value[UNICON_HIT_1]);
 *     unicon_model_destroy(model);
 *     unicon_pairs_destroy(pairs);
 *     unicon_rows_close(y);
 *     unicon_rows_close(x);
 *     unicon_ctx_destroy(ctx);
 *
 * Rules that hold everywhere
 *   - Every fallible function returns a unicon_status; 0 is success. The full sentence of the last
 *     failure is unicon_ctx_error(ctx). The library never prints, aborts or exits.
 *   - On failure no output object is made: *out is NULL.
 *   - The caller's arrays are borrowed: unicon_rows_wrap and unicon_view keep pointers, so the
 *     memory must outlive the object. Everything else is copied.
 *   - A context is used by one thread at a time. Rows, pairs and models are immutable after they
 *     are made and may be shared by threads that each have their own context. Objects may outlive
 *     the context that made them. Every destroy function accepts NULL.
 *   - A context is inside one call at a time. While that runs, its log and progress callbacks may
 *     ask for unicon_ctx_error and unicon_ctx_memory_peak and use other contexts; anything else
 *     with this context, by a callback or by another thread, is refused with UNICON_ERR_ARGUMENT
 *     and a sentence, and the call goes on as if nothing had been asked. unicon_ctx_set_log,
 *     unicon_ctx_set_progress and unicon_ctx_destroy then do nothing but leave that sentence.
 *   - A process may fork. In the child a context starts threads of its own, and every object is
 *     usable; but a context that was inside a call of another thread stays there for good.
 *   - The same input, options and seed give the same bytes on the same machine, whatever the number
 *     of threads.
 *   - While a call computes, the process-wide thread count of OpenBLAS is borrowed, set to 1 and
 *     then restored; the threads of the call are the library's own.
 *   - Rows and columns count from 0.
 */
#ifndef UNICON_UNICON_H
#define UNICON_UNICON_H

#include <stddef.h>
#include <stdint.h>

#define UNICON_VERSION_MAJOR 0
#define UNICON_VERSION_MINOR 1
#define UNICON_VERSION_PATCH 0

#if defined(__GNUC__)
#define UNICON_API __attribute__((visibility("default")))
#define UNICON_CHECK __attribute__((warn_unused_result))
#else
#define UNICON_API
#define UNICON_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Version and status ---------------------------------------------------------------- */

/* "0.1.0". */
UNICON_API const char *unicon_version(void);

/* What runs underneath, one line: BLAS with its kernel, and the SIMD level in use. */
UNICON_API const char *unicon_build_info(void);

typedef enum unicon_status {
  UNICON_OK = 0,
  UNICON_ERR_ARGUMENT = 1,    /* a NULL or meaningless argument of a call */
  UNICON_ERR_OPTION = 2,      /* an unknown option or a value out of its bounds */
  UNICON_ERR_SHAPE = 3,       /* matrices that do not fit each other or the model */
  UNICON_ERR_DATA = 4,        /* values that cannot be used: not finite, all-zero rows, too few */
  UNICON_ERR_PAIRS = 5,       /* a pair out of range, listed twice, positive and ignored */
  UNICON_ERR_MEMORY = 10,     /* out of memory, or the limit max_mem is too low */
  UNICON_ERR_IO = 20,         /* a file cannot be opened, read, written or renamed */
  UNICON_ERR_FORMAT = 21,     /* a file is not what its name or header says */
  UNICON_ERR_NUMERIC = 30,    /* a factorisation failed for good */
  UNICON_ERR_CANCELLED = 40,  /* the progress callback asked to stop */
  UNICON_ERR_UNSUPPORTED = 50 /* a combination that is not built */
} unicon_status;

/* "UNICON_ERR_SHAPE", for logs; "UNICON_ERR_UNKNOWN" for other numbers. */
UNICON_API const char *unicon_status_name(unicon_status status);

/* ---- 2. Context --------------------------------------------------------------------------- */

/* Where and how work runs: threads, memory limit, callbacks, the text of the last error. */
typedef struct unicon_ctx unicon_ctx;

UNICON_API UNICON_CHECK unicon_status unicon_ctx_create(unicon_ctx **out);
/* Not from a callback of a call that runs: see the rules. */
UNICON_API void unicon_ctx_destroy(unicon_ctx *ctx);

/* Sets an option of scope UNICON_SCOPE_CONTEXT by name: "threads", "max_mem". */
UNICON_API UNICON_CHECK unicon_status unicon_ctx_set(unicon_ctx *ctx, const char *name,
                                                     const char *value);

/* The sentence of the last failure, "" if there was none. Valid until the next call. */
UNICON_API const char *unicon_ctx_error(const unicon_ctx *ctx);

/* Most bytes the library held at once through this context since it was made. */
UNICON_API uint64_t unicon_ctx_memory_peak(const unicon_ctx *ctx);

typedef enum unicon_log_level {
  UNICON_LOG_WARNING = 0, /* something the user should know: an option without effect, a fallback */
  UNICON_LOG_INFO = 1,    /* what was chosen and why */
  UNICON_LOG_DEBUG = 2    /* phases and their times */
} unicon_log_level;

typedef void (*unicon_log_fn)(void *user, unicon_log_level level, const char *text);

/* Called about ten times a second from the calling thread: what is being done, the share of the
 * whole call that is done (in 0..1, never falling), and the seconds that the rest will take, below
 * 0 while nobody knows. Return non-zero to cancel: the call ends with UNICON_ERR_CANCELLED. */
typedef int (*unicon_progress_fn)(void *user, const char *label, double done, double left);

/* NULL switches a callback off. */
UNICON_API void unicon_ctx_set_log(unicon_ctx *ctx, unicon_log_fn fn, void *user);
UNICON_API void unicon_ctx_set_progress(unicon_ctx *ctx, unicon_progress_fn fn, void *user);

/* ---- 3. Options --------------------------------------------------------------------------- */

/* All options live in one table, which also feeds the command line, the man page, the bindings and
 * the model metadata. Values travel as text. NULL for `options` anywhere means all defaults. */
typedef struct unicon_options unicon_options;

enum {
  UNICON_SCOPE_CONTEXT = 1,
  UNICON_SCOPE_FIT = 2,
  UNICON_SCOPE_EVAL = 4,
  UNICON_SCOPE_SYNTH = 8,
  UNICON_SCOPE_PROBE = 16,
  UNICON_SCOPE_CHECK = 32,
  UNICON_SCOPE_COMPARE = 64,
  UNICON_SCOPE_REPORT = 128,
  UNICON_SCOPE_USE = 256, /* embed and search */
  UNICON_SCOPE_BALANCE = 512,
  UNICON_SCOPE_WEIGHTS = 1024,
  UNICON_SCOPE_MIGRATE = 2048,
  UNICON_SCOPE_MOVE = 4096 /* rows through a model of a migration */
};

typedef struct unicon_option_info {
  const char *name;          /* snake_case; the command line writes it --kebab-case */
  const char *kind;          /* "integer", "real", "word", "flag" (on or off), "text", "bytes",
                                "form" (a word with a number, as softmax:10) */
  const char *default_value; /* as text; "" is "not given" */
  const char *words;         /* accepted words, separated by |, or "" */
  const char *metavar;       /* what the value stands for in help: N, FILE, ... */
  const char *group;         /* heading in help */
  const char *help;          /* one or two sentences */
  double low, high;          /* inclusive bounds of numbers */
  unsigned scope;            /* UNICON_SCOPE_... */
} unicon_option_info;

UNICON_API size_t unicon_option_count(void);
UNICON_API const unicon_option_info *unicon_option_at(size_t index); /* NULL past the end */

UNICON_API UNICON_CHECK unicon_status unicon_options_create(unicon_ctx *ctx, unicon_options **out);
UNICON_API void unicon_options_destroy(unicon_options *options);

/* Sets one option; the error names the value, what is accepted and, for an unknown name, the
 * nearest known one. "-" and "_" are the same in names. */
UNICON_API UNICON_CHECK unicon_status unicon_options_set(unicon_ctx *ctx, unicon_options *options,
                                                         const char *name, const char *value);

/* A general loss of the caller's own psi and phi (docs/method.md section 1): each returns its value
 * at t and sets *slope to its derivative there. They must be increasing, give the same answer every
 * time, and be callable by several threads at once. */
typedef struct unicon_loss {
  double (*psi)(void *user, double t, double *slope);
  double (*phi)(void *user, double t, double *slope);
  void *user; /* handed to both; it must outlive the options */
} unicon_loss;

/* Sets option loss to `custom` with this psi and phi; nu, epsilon and direction hold as in loss
 * general. A step costs rows times pairs evaluations of psi, so it is for lists of pairs, not for
 * class labels. */
UNICON_API UNICON_CHECK unicon_status unicon_options_set_loss(unicon_ctx *ctx,
                                                              unicon_options *options,
                                                              const unicon_loss *loss);

/* The value in force (given, from the preset, or default) as text; NULL for an unknown name.
 * Valid until the options change. */
UNICON_API const char *unicon_options_get(const unicon_options *options, const char *name);

/* A preset's settings, one by one: *name and *value of setting `index`; 0 past the end. The value
 * "chosen" is no setting: the preset chooses on held-out pairs, unless the option is given. */
UNICON_API int unicon_preset_at(const char *preset, size_t index, const char **name,
                                const char **value);

/* ---- 4. Data ------------------------------------------------------------------------------ */

/* A matrix given by rows: a file, a folder of shards, or the caller's memory. Files are mapped and
 * converted to float32 tile by tile, so they may be larger than memory. */
typedef struct unicon_rows unicon_rows;

typedef enum unicon_dtype {
  UNICON_F16 = 0,
  UNICON_BF16 = 1,
  UNICON_F32 = 2,
  UNICON_F64 = 3,
  UNICON_I8 = 4,
  UNICON_U8 = 5
} unicon_dtype;

/* Opens PATH: .npy, FILE.npz:ARRAY, FILE.safetensors:TENSOR, .fvecs, .bvecs, .fbin, .u8bin, .i8bin,
 * a flat FAISS index (.faiss, .index), or a folder of numbered .npy shards (docs/formats.md). */
UNICON_API UNICON_CHECK unicon_status unicon_rows_open(unicon_ctx *ctx, const char *path,
                                                       unicon_rows **out);

/* Rows in the caller's memory, borrowed. Strides are in bytes and may be negative or zero; `name`
 * is what errors call the matrix. */
UNICON_API UNICON_CHECK unicon_status unicon_rows_wrap(unicon_ctx *ctx, const char *name,
                                                       const void *data, unicon_dtype dtype,
                                                       int64_t count, int64_t width,
                                                       int64_t row_stride, int64_t col_stride,
                                                       unicon_rows **out);
UNICON_API void unicon_rows_close(unicon_rows *rows);

UNICON_API int64_t unicon_rows_count(const unicon_rows *rows);
UNICON_API int64_t unicon_rows_width(const unicon_rows *rows);

/* Rows first .. first+count-1 as float32, width floats each. */
UNICON_API UNICON_CHECK unicon_status unicon_rows_read(unicon_ctx *ctx, const unicon_rows *rows,
                                                       int64_t first, int64_t count, float *out);

typedef enum unicon_side { UNICON_X = 0, UNICON_Y = 1 } unicon_side;

/* The sparse set of positive pairs (i, j) of an n_x by n_y problem. Class labels are kept as
 * labels: no list of n_x n_y / classes pairs is made. Only the loss `triplet` and psi `hinge` and
 * `identity` of the loss `general` keep numbers for every pair, and refuse more than 2^24 pairs of
 * labels at once (option `batch` makes them fewer). */
typedef struct unicon_pairs unicon_pairs;

/* Row i with row i; n_x must equal n_y. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_identity(unicon_ctx *ctx, int64_t n_x,
                                                            int64_t n_y, unicon_pairs **out);
/* Rows k*i .. k*i+k-1 of y belong to row i of x; n_y must equal k*n_x. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_per_x(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                                         int64_t k, unicon_pairs **out);
/* The mirror image: n_x must equal k*n_y. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_per_y(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                                         int64_t k, unicon_pairs **out);
/* `count` pairs (x[p], y[p]) with weights of 0 to FLT_MAX, or NULL for weight 1. A pair given twice
 * is an error. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_list(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                                        const int64_t *x, const int64_t *y,
                                                        const double *weight, int64_t count,
                                                        unicon_pairs **out);
/* (i, j) is a pair if label_x[i] == label_y[j]. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_labels(unicon_ctx *ctx, const int64_t *label_x,
                                                          int64_t n_x, const int64_t *label_y,
                                                          int64_t n_y, unicon_pairs **out);
/* One set of rows, given as x and as y: row i belongs to the other rows of its label, and with
 * itself it is neither a pair nor a negative. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_one_set(unicon_ctx *ctx, const int64_t *label,
                                                           int64_t n, unicon_pairs **out);
/* From a file: TSV `x_row<TAB>y_row[<TAB>weight]`, header line optional, or an integer npy, .ibin
 * or .ivecs, n by 2. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_read(unicon_ctx *ctx, const char *path,
                                                        int64_t n_x, int64_t n_y,
                                                        unicon_pairs **out);
/* From two label files: one label per line (any text), or an integer npy, .ibin or .ivecs. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_read_labels(unicon_ctx *ctx, const char *x_path,
                                                               const char *y_path, int64_t n_x,
                                                               int64_t n_y, unicon_pairs **out);
UNICON_API void unicon_pairs_destroy(unicon_pairs *pairs);

/* Pairs that are neither positive nor negative, or with weights (0 to 1; NULL: all 0) negatives
 * that count so much less than others; a count of 0 is none. To be called at most once, before the
 * pairs are first used. A pair that is positive, or also in the other set, is an error. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_set_ignored(unicon_ctx *ctx, unicon_pairs *pairs,
                                                               const int64_t *x, const int64_t *y,
                                                               const double *weight, int64_t count);
/* The only negatives there are, at least one, with what they count (0 to 1; NULL: all 1); without
 * this call every pair that is not positive and not ignored is one. The same rules hold. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_set_negatives(unicon_ctx *ctx,
                                                                 unicon_pairs *pairs,
                                                                 const int64_t *x, const int64_t *y,
                                                                 const double *weight,
                                                                 int64_t count);
/* The same from files like those of unicon_pairs_read. */
UNICON_API UNICON_CHECK unicon_status unicon_pairs_read_ignored(unicon_ctx *ctx,
                                                                unicon_pairs *pairs,
                                                                const char *path);
UNICON_API UNICON_CHECK unicon_status unicon_pairs_read_negatives(unicon_ctx *ctx,
                                                                  unicon_pairs *pairs,
                                                                  const char *path);

/* Number of positive pairs. */
UNICON_API int64_t unicon_pairs_count(const unicon_pairs *pairs);

/* How many rows of the other side belong to row `row` of `side` (0 for a row that is not there);
 * the first `room` of them, ascending, go to `partner`. */
UNICON_API int64_t unicon_pairs_partners(const unicon_pairs *pairs, unicon_side side, int64_t row,
                                         int64_t room, int64_t *partner);

/* Labels of the rows of one or two files, as class numbers 0, 1, ... in the order of the labels,
 * with their texts. */
typedef struct unicon_labels unicon_labels;

/* From one label per line (any text) or an integer npy. Labels of `other_path` (NULL: none) are
 * numbered together with those of `path`, and must be of the same kind. `rows` and `other_rows` are
 * how many there must be. */
UNICON_API UNICON_CHECK unicon_status unicon_labels_read(unicon_ctx *ctx, const char *path,
                                                         int64_t rows, const char *other_path,
                                                         int64_t other_rows, unicon_labels **out);
UNICON_API void unicon_labels_destroy(unicon_labels *labels);

/* Class numbers, one for each row, of the first file (0) or the other (1). */
UNICON_API const int64_t *unicon_labels_numbers(const unicon_labels *labels, int file);
UNICON_API int64_t unicon_labels_classes(const unicon_labels *labels);
/* The label of class `number` as text; NULL past the end. */
UNICON_API const char *unicon_labels_name(const unicon_labels *labels, int64_t number);

/* A training or validation set. `pairs` NULL means row i with row i. `groups`: n_x group numbers
 * that a hold-out never splits, or NULL (connected components of the pairs). All borrowed. */
typedef struct unicon_data {
  const unicon_rows *x, *y;
  const unicon_pairs *pairs;
  const int64_t *groups;
} unicon_data;

/* A set cut in two, for training (0) and for a test or validation (1). */
typedef struct unicon_split unicon_split;

/* Holds out about `fraction` of the pairs. Rows that belong together stay together: whole groups or
 * connected components of the pairs; with class labels single rows; where one component has most
 * of the rows, rows of y alone, with a warning: their x rows are then in both parts; where a side
 * has few rows, those of the other side alone, likewise. Rows that
 * cannot be used are an error or dropped, as option bad_rows says; a fraction of 0 does that alone,
 * and part 1 has no rows (NULL). Option seed sets the draw. The rows of `data` are borrowed, and so
 * are its pairs where nothing changed: they must outlive the split. */
UNICON_API UNICON_CHECK unicon_status unicon_split_make(unicon_ctx *ctx, const unicon_data *data,
                                                        double fraction,
                                                        const unicon_options *options,
                                                        unicon_split **out);
UNICON_API void unicon_split_destroy(unicon_split *split);

/* The rows, pairs and groups of a part, which belong to the split. */
UNICON_API const unicon_data *unicon_split_part(const unicon_split *split, int part);

/* ---- 5. Model ----------------------------------------------------------------------------- */

typedef struct unicon_model unicon_model;

/* Fits a model on `train`. `validation` (may be NULL) holds other pairs that choose between
 * candidates. Without options (preset auto) closed forms are compared on held-out pairs and the
 * best is refined where that helps. */
UNICON_API UNICON_CHECK unicon_status unicon_fit(unicon_ctx *ctx, const unicon_data *train,
                                                 const unicon_data *validation,
                                                 const unicon_options *options, unicon_model **out);
UNICON_API void unicon_model_destroy(unicon_model *model);

/* What such a fit will take, before it starts. Estimates, good to about a factor of 1.5. */
typedef struct unicon_plan_result {
  uint64_t memory;      /* bytes the library will hold at most; max_mem must be above it */
  int64_t reads[2];     /* how often the rows of x and of y are read */
  int64_t plane_sweeps; /* walks over all n_x n_y scores */
  double flops;
  double seconds;   /* from a product timed here and now */
  char advice[256]; /* a sentence: fits, or what to change */
} unicon_plan_result;

UNICON_API UNICON_CHECK unicon_status unicon_plan(unicon_ctx *ctx, const unicon_data *data,
                                                  const unicon_options *options,
                                                  unicon_plan_result *out);

/* One .safetensors file, written under a temporary name and renamed, so that an older file stays
 * whole until the new one is. docs/model-format.md lists the tensors. */
UNICON_API UNICON_CHECK unicon_status unicon_model_save(unicon_ctx *ctx, const unicon_model *model,
                                                        const char *path);
UNICON_API UNICON_CHECK unicon_status unicon_model_load(unicon_ctx *ctx, const char *path,
                                                        unicon_model **out);

UNICON_API int64_t unicon_model_rank(const unicon_model *model);
UNICON_API int64_t unicon_model_width(const unicon_model *model, unicon_side side);

/* The singular values, rank of them, largest first (of fused batches: those of each part). */
UNICON_API const float *unicon_model_spectrum(const unicon_model *model);

/* Metadata, all text: options in force, sizes, losses, certificate. NULL for an unknown key. */
UNICON_API const char *unicon_model_meta(const unicon_model *model, const char *key);
/* Entry `index` in file order; 0 past the end. */
UNICON_API int unicon_model_meta_at(const unicon_model *model, size_t index, const char **key,
                                    const char **value);

/* 16 hexadecimal digits, ended by NUL, that differ between models: of every number and every text
 * inside. Files of vectors name the model that made them by it. */
enum { UNICON_MODEL_ID = 17 };
UNICON_API void unicon_model_id(const unicon_model *model, char out[UNICON_MODEL_ID]);

/* ---- 6. Use ------------------------------------------------------------------------------- */

/* Balanced scores. A candidate that is near everything pushes true matches down, so a model keeps a
 * bank of embedded training rows of each side, and from the bank of the other side every candidate
 * v has a bias b(v) that its scores are lowered by: score = u.v - b(v). Search, evaluate, ranks and
 * classify do this unless told otherwise. docs/method.md section 8 has the formulas. */
typedef struct unicon_balance unicon_balance;

/* How to balance in another way than a model says. Option `balance` sets the kind and strength
 * (auto: as the model says, which may be NULL; then off, or softmax:10 with banks). `bank_x` and
 * `bank_y` are embedded rows, at least 16, that take the place of the model's (NULL: those of the
 * model); beside a model they may be of form QUERY or INDEX. Everything is copied. */
UNICON_API UNICON_CHECK unicon_status
unicon_balance_create(unicon_ctx *ctx, const unicon_model *model, const unicon_options *options,
                      const unicon_rows *bank_x, const unicon_rows *bank_y, unicon_balance **out);
UNICON_API void unicon_balance_destroy(unicon_balance *balance);

/* What came of it: "off", "softmax:10", ... as option `balance` writes it. */
UNICON_API const char *unicon_balance_text(const unicon_balance *balance);
/* Rows of the bank of that side; 0 where scores are balanced without a bank, or not at all. */
UNICON_API int64_t unicon_balance_rows(const unicon_balance *balance, unicon_side side);

/* What an embedded row looks like. The products of QUERY rows with INDEX rows are the balanced
 * scores, so that any index for inner products ranks as unicon_search does; the COSINE forms serve
 * indexes that know the cosine alone. */
typedef enum unicon_form {
  UNICON_FORM_RAW = 0,          /* z, rank numbers */
  UNICON_FORM_UNIT = 1,         /* v = z / |z| */
  UNICON_FORM_QUERY = 2,        /* [v, 1] */
  UNICON_FORM_INDEX = 3,        /* [v, -b(v)] */
  UNICON_FORM_QUERY_COSINE = 4, /* [v, 1, 0] */
  UNICON_FORM_INDEX_COSINE = 5  /* [v, -b(v), sqrt(1 - b(v)^2)]: all of one length */
} unicon_form;

/* Numbers of a row of that form, for vectors of `rank` dimensions. */
UNICON_API int64_t unicon_form_width(int64_t rank, unicon_form form);

/* Rows as seen through a model. `model` NULL: the rows are vectors of a shared space already, of
 * the given form: RAW or UNIT vectors are scaled to length 1, QUERY and INDEX rows are taken as
 * they are. `balance` NULL: as the model says; of two views that of the candidates counts. */
typedef struct unicon_view {
  const unicon_rows *rows;
  const unicon_model *model;
  unicon_side side;
  const unicon_balance *balance;
  unicon_form form;
} unicon_view;

/* Embeds rows first .. first+count-1 into out (float32, unicon_form_width numbers each). Rows that
 * are not finite or all zero are an error. */
UNICON_API UNICON_CHECK unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view,
                                                   int64_t first, int64_t count, unicon_form form,
                                                   float *out);

/* One row into `out` (rank numbers, length 1) for queries as they come: nothing is allocated, no
 * lock is taken, and any number of threads may do it at once. `room` is scratch memory of
 * unicon_embed_one_room floats. Without a context there is no sentence: UNICON_ERR_DATA is a row
 * that is not finite or all zero. */
UNICON_API int64_t unicon_embed_one_room(const unicon_model *model, unicon_side side);
UNICON_API UNICON_CHECK unicon_status unicon_embed_one(const unicon_model *model, unicon_side side,
                                                       const float *row, float *room, float *out);

/* The rows that can be used through the view: finite and, where they must have a direction, not all
 * zero. They are numbered anew and borrowed from the rows of the view, which must outlive them; row
 * i of them is row number[i] there (`number` has room for all rows, or is NULL). A view without any
 * such row is an error. */
UNICON_API UNICON_CHECK unicon_status unicon_rows_usable(unicon_ctx *ctx, const unicon_view *view,
                                                         int64_t *number, unicon_rows **out);

/* The model with new banks from rows of the given sets (their pairs, if any, say which rows may
 * enter): for another domain, or with option balance quadratic:BETA to keep no training rows.
 * Nothing is fitted again. Options: balance (auto: that of the model; where it is off softmax:10,
 * or softmax:5 below 4000 rows of y), balance_bank, seed, bad_rows. */
UNICON_API UNICON_CHECK unicon_status unicon_model_rebalance(unicon_ctx *ctx,
                                                             const unicon_model *model,
                                                             const unicon_data *data,
                                                             const unicon_options *options,
                                                             unicon_model **out);

/* The k rows of `base` with the largest score for each query row, exactly: ids and scores are
 * queries by k; where base has fewer than k rows the rest is -1 and -inf. Equal scores come in
 * row order. The score is the cosine, less the bias of the base row where scores are balanced: the
 * float64 product of the float32 rows that forms QUERY and INDEX give. */
UNICON_API UNICON_CHECK unicon_status unicon_search(unicon_ctx *ctx, const unicon_view *queries,
                                                    const unicon_view *base, int64_t k,
                                                    int64_t *ids, float *scores);

enum {
  UNICON_HIT_1, /* share of queries with a true match among the first k: papers' R@k */
  UNICON_HIT_5,
  UNICON_HIT_10,
  UNICON_RECALL_1, /* mean share of a query's matches that are among the first k */
  UNICON_RECALL_5,
  UNICON_RECALL_10,
  UNICON_MRR, /* mean 1/rank of the first match */
  UNICON_MAP, /* mean average precision */
  UNICON_NDCG_10,
  UNICON_MEDIAN_RANK, /* of the first match, 1 is best */
  UNICON_MEAN_RANK,
  UNICON_METRIC_COUNT
};

/* "hit@1", ... NULL past the end. */
UNICON_API const char *unicon_metric_name(size_t index);

typedef struct unicon_metrics {
  int64_t queries;    /* rows with at least one match: the ones that count */
  int64_t candidates; /* rows searched */
  int64_t pairs;      /* positive pairs among the rows in use */
  double value[UNICON_METRIC_COUNT];
  double low[UNICON_METRIC_COUNT], high[UNICON_METRIC_COUNT]; /* 95 % bootstrap, or NaN */
  double chance[UNICON_METRIC_COUNT]; /* of a random order, for hit@k; NaN for the rest */
  /* The same without balance, equal to `value` where scores are not balanced: */
  double plain[UNICON_METRIC_COUNT];
  /* Hubs: how often each candidate is among the first ten of a query, over all queries. */
  double hub_skew, plain_hub_skew;   /* skewness of these counts; 0: no hubs */
  double hub_never, plain_hub_never; /* share of the candidates that are never found */
} unicon_metrics;

/* Retrieval quality in both directions; ties count against us. `to_y` has x as queries. Option
 * bad_rows drop leaves out rows that cannot be used, with their pairs. A warning says where the
 * queries look unlike the bank that balances them. */
UNICON_API UNICON_CHECK unicon_status unicon_evaluate(unicon_ctx *ctx, const unicon_view *x,
                                                      const unicon_view *y,
                                                      const unicon_pairs *pairs,
                                                      const unicon_options *options,
                                                      unicon_metrics *to_y, unicon_metrics *to_x);

/* The rank of the first match of every row, 1 being best and 0 for rows without a match, counted as
 * unicon_evaluate does. `to_y` has a place for each row of x, `to_x` for each row of y; either may
 * be NULL. */
UNICON_API UNICON_CHECK unicon_status unicon_ranks(unicon_ctx *ctx, const unicon_view *x,
                                                   const unicon_view *y, const unicon_pairs *pairs,
                                                   int64_t *to_y, int64_t *to_x);

/* Hubs: how often each row is among the first ten of a query, over all queries; index 0 counts the
 * rows of y with x as queries, 1 those of x, and `plain` is without balance. Any may be NULL. */
UNICON_API UNICON_CHECK unicon_status unicon_hubs(unicon_ctx *ctx, const unicon_view *x,
                                                  const unicon_view *y, const unicon_pairs *pairs,
                                                  int64_t *found[2], int64_t *plain[2]);

/* The scores s of all rows of x with all of y and the weights S = -dL/ds that the loss of the
 * options gives them, each n_x by n_y (either may be NULL), and the loss L (may be NULL). The one
 * call that makes whole matrices: it is for a picture of a few rows. Scores are cosines, but dot
 * products for the loss `spectral`; `moment` is S at s = 0. */
UNICON_API UNICON_CHECK unicon_status unicon_weights(unicon_ctx *ctx, const unicon_view *x,
                                                     const unicon_view *y,
                                                     const unicon_pairs *pairs,
                                                     const unicon_options *options, float *scores,
                                                     float *weights, double *loss);

/* The distinct labels of two sets, ascending: how many there are, and in `label` (NULL, or room for
 * count_a + count_b) which. */
UNICON_API UNICON_CHECK unicon_status unicon_probe_classes(unicon_ctx *ctx, const int64_t *label_a,
                                                           int64_t count_a, const int64_t *label_b,
                                                           int64_t count_b, int64_t *classes,
                                                           int64_t *label);

typedef struct unicon_probe_result {
  int64_t classes;       /* distinct labels of both sets */
  int64_t unseen;        /* test rows with a label that no training row has: counted as wrong */
  double accuracy;       /* share of the test rows that got their label */
  double train_accuracy; /* the same on the training rows */
  double chance;         /* of answering the most frequent training label always */
  double loss;           /* minimum reached: mean cross-entropy plus ridge/2 |W|^2 */
  double gradient;       /* length of its gradient there */
  int64_t iterations;
} unicon_probe_result;

/* A linear probe: multinomial logistic regression with intercept on the unit embeddings of `train`
 * and their labels (any integers), tried on `test`. `confusion` (may be NULL) is classes by
 * classes, `classes` being what unicon_probe_classes says: entry (a, b) counts test rows of class a
 * that were given class b, classes in the order of their labels. */
UNICON_API UNICON_CHECK unicon_status unicon_probe(unicon_ctx *ctx, const unicon_view *train,
                                                   const int64_t *train_label,
                                                   const unicon_view *test,
                                                   const int64_t *test_label,
                                                   const unicon_options *options, int64_t classes,
                                                   int64_t *confusion, unicon_probe_result *out);

typedef struct unicon_classify_result {
  int64_t rows, classes;
  double accuracy; /* share of the rows whose class is the closest; ties count against us */
  double top5;     /* ... among the five closest */
  double mean_class_accuracy; /* mean of the accuracies of the classes that have rows */
  double chance;              /* of a random answer: 1 / classes */
} unicon_classify_result;

/* Zero-shot classification: each row is given the class whose vector, a row of `classes`, has the
 * largest cosine with it. `label` says which row of `classes` is right. `answer` (rows) and
 * `confusion` (classes by classes; entry (a, b) counts rows of class a that were given b) may be
 * NULL. */
UNICON_API UNICON_CHECK unicon_status unicon_classify(unicon_ctx *ctx, const unicon_view *rows,
                                                      const int64_t *label,
                                                      const unicon_view *classes, int64_t *answer,
                                                      int64_t *confusion,
                                                      unicon_classify_result *out);

enum { UNICON_CHECK_SPECTRUM = 64 };

typedef struct unicon_check_result {
  int64_t pairs;          /* positive pairs */
  int64_t rows_x, rows_y; /* rows in use */
  /* Canonical correlations on all pairs, shrunk by the ridge, largest first, against the largest
   * one of shuffled pairs: */
  double spectrum[UNICON_CHECK_SPECTRUM];
  int64_t spectrum_count; /* in use */
  double noise;           /* the largest of shuffled pairs */
  int64_t rank;           /* how many lie above it, at most 256: a fit may well use more */
  /* A fit on one half of the pairs, tried on the other half: */
  double cosine;  /* mean cosine of true pairs */
  double chance;  /* mean cosine of shuffled pairs */
  double p_value; /* share of 1000 shuffles at least as close as the true pairs, those included */
  /* Fits on either half, tried on the other: */
  double closer;    /* mean share of other rows that are farther than the partner: .5 is chance */
  int64_t graded;   /* pairs (with class labels: rows) that were tried */
  int64_t doubtful; /* those for which that share is below .5 */
  int64_t suspects; /* written to the caller's list */
} unicon_check_result;

/* A pair that may be wrong. With class labels a single row that may have the wrong label: the other
 * number is -1. */
typedef struct unicon_suspect {
  int64_t x, y;
  double cosine; /* of the pair, by a fit that did not see it; with class labels the mean */
  double closer; /* share of other rows that are farther than the partner, of both directions */
} unicon_suspect;

/* Says before a fit whether there is anything to align, how many dimensions carry it, and which
 * pairs look wrong: the `room` worst, worst first, in `suspects` (NULL when room is 0). */
UNICON_API UNICON_CHECK unicon_status unicon_check(unicon_ctx *ctx, const unicon_data *data,
                                                   const unicon_options *options, int64_t room,
                                                   unicon_suspect *suspects,
                                                   unicon_check_result *out);

/* ---- 7. Files and synthetic data ---------------------------------------------------------- */

/* Writes an .npy or (by suffix) .fbin file row block by row block under a temporary name. */
typedef struct unicon_writer unicon_writer;

typedef enum unicon_file_dtype {
  UNICON_WRITE_F32 = 0,
  UNICON_WRITE_F16 = 1,
  UNICON_WRITE_I64 = 2
} unicon_file_dtype;

UNICON_API UNICON_CHECK unicon_status unicon_writer_open(unicon_ctx *ctx, const char *path,
                                                         unicon_file_dtype dtype, int64_t rows,
                                                         int64_t width, unicon_writer **out);
/* `count` more rows: float for F32 and F16 files, int64_t for I64. */
UNICON_API UNICON_CHECK unicon_status unicon_writer_append(unicon_ctx *ctx, unicon_writer *writer,
                                                           const void *rows, int64_t count);
/* Completes and renames the file. The writer is destroyed, whatever the status. */
UNICON_API UNICON_CHECK unicon_status unicon_writer_commit(unicon_ctx *ctx, unicon_writer *writer);
/* Drops the file. */
UNICON_API void unicon_writer_discard(unicon_writer *writer);

/* Synthetic latent-factor models, by name. With z around one of `clusters` centres: linear
 * x = U_1 z + noise, y = U_2 z + noise and nonlinear, tanh of both, are those of the paper's text;
 * linear-released and nonlinear-released those of its authors' code (docs/method.md). Options of
 * scope UNICON_SCOPE_SYNTH set the constants; unicon_synth_width says how long the rows then are (0
 * for an unknown kind). */
UNICON_API int64_t unicon_synth_width(const char *kind, const unicon_options *options,
                                      unicon_side side);

/* A part of the samples, as train and test are. linear-released has centres of its own in each, and
 * its rows in the order of their clusters, so it must know how many there are. */
typedef struct unicon_synth_part {
  int64_t number; /* 0 to 65535 */
  int64_t rows;
} unicon_synth_part;

/* Samples first .. first+count-1 of a part (NULL: part 0, of any size): x, y and label. A sample
 * depends on the seed, the part and its number there, and on nothing else. */
UNICON_API UNICON_CHECK unicon_status unicon_synth(unicon_ctx *ctx, const char *kind,
                                                   const unicon_options *options,
                                                   const unicon_synth_part *part, int64_t first,
                                                   int64_t count, float *x, float *y,
                                                   int64_t *label);

#ifdef __cplusplus
}
#endif

#endif
