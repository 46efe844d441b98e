/* SPDX-License-Identifier: Apache-2.0 */
/* unicon: closed-form contrastive alignment of two sets of frozen embeddings.
 *
 * Two frozen encoders give two matrices, X with n_x rows and Y with n_y rows, and a sparse set P of
 * pairs (i, j) says which rows belong together. unicon_fit finds two maps f and g into one space of
 * r dimensions in which the cosine of paired rows is large and that of other rows small.
 *
 * A whole program (examples/quickstart.c is this text; the tests compile and run it):
 *
 *     unicon_ctx *ctx = NULL;
 *     unicon_rows *x = NULL, *y = NULL;
 *     unicon_pairs *pairs = NULL;
 *     unicon_model *model = NULL;
 *     unicon_result *result = NULL;
 *     double hit = 0;
 *     if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
 *     if (unicon_rows_open(ctx, "image.npy", &x) || unicon_rows_open(ctx, "text.npy", &y) ||
 *         unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), 5, &pairs) ||
 *         unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y, .pairs = pairs), NULL, NULL, &model) ||
 *         unicon_evaluate(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
 *                         &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), pairs, NULL,
 *                         &result))
 *       fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
 *     else if (!unicon_result_number(result, "x_to_y.hit@1", &hit))
 *       printf("hit@1 on the rows it was fitted on: %.3f\n", hit);
 *     unicon_result_destroy(result);
 *     unicon_model_destroy(model);
 *     unicon_pairs_destroy(pairs);
 *     unicon_rows_close(y);
 *     unicon_rows_close(x);
 *     unicon_ctx_destroy(ctx);
 *
 * Rules that hold everywhere
 *
 * Promise. This header is the stable interface: within one minor version, what is here stays, and
 * programs linked to libunicon.so.0.MINOR (.MAJOR from 1.0.0 on) go on working. unicon/tools.h
 * makes no such promise.
 *
 * Errors. A function that can fail returns a unicon_status; 0 is success. unicon_ctx_error(ctx)
 * then gives a sentence with the offending value and what is accepted. On failure no object is made
 * and *out is NULL; arrays of the caller may have been written to. The library never prints, aborts
 * or exits.
 *
 * Ownership. What a create, open, make, read, fit, load or evaluate function puts into *out belongs
 * to the caller, who ends it with the destroy or close function of its type; these accept NULL.
 * Objects may outlive the context that made them. What a call is given, it copies or needs only
 * while it runs, with two exceptions: unicon_rows_wrap borrows the memory of the rows, and rows and
 * splits made from other rows borrow those (the function says so). What is borrowed must outlive
 * the borrower.
 *
 * Lifetimes. A pointer returned by an object is valid until that object is destroyed. Exceptions:
 * unicon_ctx_error, until the next call with that context; unicon_options_get, until the options
 * change; unicon_build_info, until the same thread calls it again. The version, names of statuses
 * and the option table are always valid.
 *
 * Threads. A context is used by one thread at a time. Rows, pairs, options, models, balances and
 * results do not change once they are made and filled, and may be shared by threads that each have
 * a context of their own. A call runs on the context's own threads (option `threads`); it returns
 * when all work is done. While it computes, the process-wide thread count of OpenBLAS is set to 1,
 * and then restored.
 *
 * Callbacks. Log and progress callbacks are made from the thread that made the call, while it runs.
 * They may ask the context for unicon_ctx_error and unicon_ctx_memory_peak, and may use other
 * contexts. Any other use of this context, by a callback or by another thread, is refused with
 * UNICON_ERR_ARGUMENT and a sentence, and the running call is not disturbed; unicon_ctx_set_log,
 * unicon_ctx_set_progress and unicon_ctx_destroy then do nothing. The text passed to a callback is
 * valid until it returns. Do not leave a callback by longjmp or by a C++ exception.
 *
 * Fork. A process may fork. In the child every object is usable, and a context starts new threads;
 * only a context that another thread was using at that moment is not.
 *
 * Structs of the caller begin with their size, which the macros UNICON_DATA and UNICON_VIEW set;
 * all other members start as 0 or NULL. Later versions add members at the end, and 0 there means
 * what it meant before. In C, members are arguments of the macro; in C++, assign them:
 *     unicon_view view = UNICON_VIEW(.rows = rows, .model = model);
 *     unicon_view view = UNICON_VIEW(); view.rows = rows; view.model = model;
 * A size that is not set is an error, and so is a member that is newer than the library and not 0.
 * Enumerations may get new numbers, results new entries; what is there keeps its meaning.
 *
 * Repeatability. The same input, options and seed give the same bytes on the same machine, whatever
 * the number of threads. Rows and columns count from 0.
 */
#ifndef UNICON_UNICON_H
#define UNICON_UNICON_H

#include <stddef.h>
#include <stdint.h>

#define UNICON_VERSION_MAJOR 0
#define UNICON_VERSION_MINOR 1
#define UNICON_VERSION_PATCH 0

/* UNICON_API: exported. UNICON_CALL: exported, and the status it returns must be looked at. */
#if defined(__GNUC__)
#define UNICON_API __attribute__((visibility("default")))
#define UNICON_CALL UNICON_API __attribute__((warn_unused_result))
#else
#define UNICON_API
#define UNICON_CALL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Version and status ---------------------------------------------------------------- */

/* "0.1.0". */
UNICON_API const char *unicon_version(void);

/* One line about what runs underneath: BLAS with its kernel, and the SIMD level in use. */
UNICON_API const char *unicon_build_info(void);

typedef enum unicon_status {
  UNICON_OK = 0,
  UNICON_ERR_ARGUMENT = 1,     /* an argument is NULL or makes no sense */
  UNICON_ERR_OPTION = 2,       /* an unknown option, or a value out of bounds */
  UNICON_ERR_SHAPE = 3,        /* matrices that do not fit each other or the model */
  UNICON_ERR_DATA = 4,         /* unusable values: not finite, rows of zeros, too few rows */
  UNICON_ERR_PAIRS = 5,        /* a pair out of range, given twice, or positive and ignored */
  UNICON_ERR_MEMORY = 10,      /* out of memory, or the limit max_mem is too low */
  UNICON_ERR_IO = 20,          /* a file cannot be opened, read, written or renamed */
  UNICON_ERR_FORMAT = 21,      /* a file is not what its name or header says */
  UNICON_ERR_NUMERIC = 30,     /* a factorisation failed */
  UNICON_ERR_CANCELLED = 40,   /* the progress callback asked to stop */
  UNICON_ERR_UNSUPPORTED = 50, /* a combination that is not implemented */
  UNICON_ERR_DEVICE = 60       /* a device is absent, unusable, or failed */
} unicon_status;

/* "UNICON_ERR_SHAPE", for logs; "UNICON_ERR_UNKNOWN" for other numbers. */
UNICON_API const char *unicon_status_name(unicon_status status);

/* ---- 2. Context --------------------------------------------------------------------------- */

/* Where and how work runs: threads, memory limit, callbacks, the text of the last error. */
typedef struct unicon_ctx unicon_ctx;

UNICON_CALL unicon_status unicon_ctx_create(unicon_ctx **out);
UNICON_API void unicon_ctx_destroy(unicon_ctx *ctx);

/* Sets an option of scope UNICON_SCOPE_CONTEXT by name: "threads", "max_mem", "device",
 * "precision". */
UNICON_CALL unicon_status unicon_ctx_set(unicon_ctx *ctx, const char *name, const char *value);

/* The sentence of the last call's failure, "" if it succeeded. */
UNICON_API const char *unicon_ctx_error(const unicon_ctx *ctx);

/* The most bytes that the library has held at once through this context. */
UNICON_API uint64_t unicon_ctx_memory_peak(const unicon_ctx *ctx);

typedef enum unicon_log_level {
  UNICON_LOG_WARNING = 0, /* something users should know: an option without effect, a fallback */
  UNICON_LOG_INFO = 1,    /* what was chosen and why */
  UNICON_LOG_DEBUG = 2    /* phases and their times */
} unicon_log_level;

typedef void (*unicon_log_fn)(void *user, unicon_log_level level, const char *text);

/* Called about ten times a second: what is being done, the share of the whole call that is done
 * (from 0 to 1, never falling), and the seconds that the rest will take, below 0 while unknown.
 * Return non-zero to cancel: the call then ends with UNICON_ERR_CANCELLED. */
typedef int (*unicon_progress_fn)(void *user, const char *label, double done, double left);

/* NULL switches a callback off. */
UNICON_API void unicon_ctx_set_log(unicon_ctx *ctx, unicon_log_fn fn, void *user);
UNICON_API void unicon_ctx_set_progress(unicon_ctx *ctx, unicon_progress_fn fn, void *user);

/* ---- 3. Options --------------------------------------------------------------------------- */

/* All options are in one table, which also makes the command line, the man page, the bindings and
 * the model metadata. Values are text. NULL options mean all defaults. */
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
  UNICON_SCOPE_MOVE = 4096, /* rows through a model of a migration */
  UNICON_SCOPE_STATS = 8192
};

/* A row of the table. The library owns it; later versions may add members at the end. */
typedef struct unicon_option_info {
  const char *name;          /* snake_case; the command line writes it --kebab-case */
  const char *kind;          /* "integer", "real", "word", "flag" (on or off), "text", "bytes",
                                "form" (a word with a number, as softmax:10), "sided" (a
                                number, or A,B: A for x and B for y) */
  const char *default_value; /* as text; "" is "not given" */
  const char *words;         /* accepted words, separated by |, or "" */
  const char *metavar;       /* what help calls the value: N, FILE, ... */
  const char *group;         /* heading in help */
  const char *help;          /* one or two sentences */
  double low, high;          /* inclusive bounds of numbers */
  unsigned scope;            /* UNICON_SCOPE_... */
} unicon_option_info;

UNICON_API size_t unicon_option_count(void);
UNICON_API const unicon_option_info *unicon_option_at(size_t index); /* NULL past the end */

UNICON_CALL unicon_status unicon_options_create(unicon_ctx *ctx, unicon_options **out);
UNICON_API void unicon_options_destroy(unicon_options *options);

/* Sets one option. The error gives the value and what is accepted, or the known name nearest to an
 * unknown one. In names "-" and "_" are the same. */
UNICON_CALL unicon_status unicon_options_set(unicon_ctx *ctx, unicon_options *options,
                                             const char *name, const char *value);

/* The value in force (given, from the preset, or default) as text; NULL for an unknown name. */
UNICON_API const char *unicon_options_get(const unicon_options *options, const char *name);

/* Setting `index` of a preset: its *name and *value; returns 0 past the end. The value "chosen"
 * means that the preset chooses on held-out pairs, unless the option is given. */
UNICON_API int unicon_preset_at(const char *preset, size_t index, const char **name,
                                const char **value);

/* ---- 4. Results --------------------------------------------------------------------------- */

/* What a call found: named numbers, texts and arrays, listed where the call is declared. A dot in a
 * name stands for a nested object in JSON: "x_to_y.hit@1" is {"x_to_y": {"hit@1": ...}}. A value
 * that is not defined has no entry. */
typedef struct unicon_result unicon_result;

typedef enum unicon_kind {
  UNICON_KIND_NONE = 0, /* there is no such entry */
  UNICON_KIND_INTEGER = 1,
  UNICON_KIND_REAL = 2,
  UNICON_KIND_TEXT = 3,
  UNICON_KIND_INTEGERS = 4, /* arrays: a list, or a matrix row by row */
  UNICON_KIND_REALS = 5
} unicon_kind;

UNICON_API void unicon_result_destroy(unicon_result *result);

/* The number of that name, integer or real; NaN and UNICON_ERR_ARGUMENT if there is none. */
UNICON_API unicon_status unicon_result_number(const unicon_result *result, const char *name,
                                              double *value);
/* NULL if there is no such text. */
UNICON_API const char *unicon_result_text(const unicon_result *result, const char *name);

/* An array of that name and type: `rows` by `width` values, or a list of `rows` values, whose width
 * is 0. NULL if there is none. `rows` and `width` may be NULL. */
UNICON_API const double *unicon_result_reals(const unicon_result *result, const char *name,
                                             int64_t *rows, int64_t *width);
UNICON_API const int64_t *unicon_result_integers(const unicon_result *result, const char *name,
                                                 int64_t *rows, int64_t *width);

/* To go through all entries: the name of entry `index`, NULL past the end; the kind of a name. */
UNICON_API const char *unicon_result_name(const unicon_result *result, size_t index);
UNICON_API unicon_kind unicon_result_kind(const unicon_result *result, const char *name);

/* The result as a JSON object, as the command prints it with --json. Like snprintf it writes at
 * most `room` bytes with the final NUL, and returns the length of the whole text without it. */
UNICON_API size_t unicon_result_json(const unicon_result *result, char *out, size_t room);

/* ---- 5. Data ------------------------------------------------------------------------------ */

/* A matrix, row by row: a file, a folder of shards, or memory of the caller. Files are mapped and
 * converted to float32 piece by piece, so they may be larger than memory. */
typedef struct unicon_rows unicon_rows;

typedef enum unicon_dtype {
  UNICON_F16 = 0,
  UNICON_BF16 = 1,
  UNICON_F32 = 2,
  UNICON_F64 = 3,
  UNICON_I8 = 4,
  UNICON_U8 = 5
} unicon_dtype;

/* Opens a .npy, .fvecs, .bvecs, .fbin, .u8bin or .i8bin file, FILE.npz:ARRAY,
 * FILE.safetensors:TENSOR, a flat FAISS index (.faiss, .index), or a folder of numbered .npy shards
 * (docs/formats.md). */
UNICON_CALL unicon_status unicon_rows_open(unicon_ctx *ctx, const char *path, unicon_rows **out);

/* Rows in memory of the caller, borrowed. Strides are in bytes and may be negative or zero. Errors
 * call the matrix `name`. */
UNICON_CALL unicon_status unicon_rows_wrap(unicon_ctx *ctx, const char *name, const void *data,
                                           unicon_dtype dtype, int64_t count, int64_t width,
                                           int64_t row_stride, int64_t col_stride,
                                           unicon_rows **out);
UNICON_API void unicon_rows_close(unicon_rows *rows);

UNICON_API int64_t unicon_rows_count(const unicon_rows *rows);
UNICON_API int64_t unicon_rows_width(const unicon_rows *rows);

/* Reads rows first .. first + count - 1 as float32, `width` numbers each. */
UNICON_CALL unicon_status unicon_rows_read(unicon_ctx *ctx, const unicon_rows *rows, int64_t first,
                                           int64_t count, float *out);

typedef enum unicon_side { UNICON_X = 0, UNICON_Y = 1 } unicon_side;

/* The sparse set of positive pairs (i, j) of an n_x by n_y problem. Class labels stay labels; their
 * n_x n_y / classes pairs are not listed. Only the loss `triplet`, and `general` with psi `hinge`,
 * `identity`, `softplus` or `softmin`, keep numbers for each pair: the first three refuse more than
 * 2^24 pairs of labels at once (option `batch` makes them fewer), the smooth ones labels at all. */
typedef struct unicon_pairs unicon_pairs;

/* Row i of x with row i of y; n_x must equal n_y. */
UNICON_CALL unicon_status unicon_pairs_identity(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                                unicon_pairs **out);
/* Row i of x with rows k i .. k i + k - 1 of y; n_y must equal k n_x. */
UNICON_CALL unicon_status unicon_pairs_per_x(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                             unicon_pairs **out);
/* Row j of y with rows k j .. k j + k - 1 of x; n_x must equal k n_y. */
UNICON_CALL unicon_status unicon_pairs_per_y(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                             unicon_pairs **out);
/* `count` pairs (x[p], y[p]), no two alike, with weights from 0 to FLT_MAX; NULL: all weights 1. */
UNICON_CALL unicon_status unicon_pairs_list(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                            const int64_t *x, const int64_t *y,
                                            const double *weight, int64_t count,
                                            unicon_pairs **out);
/* The pairs (i, j) with label_x[i] == label_y[j]. */
UNICON_CALL unicon_status unicon_pairs_labels(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                              const int64_t *label_y, int64_t n_y,
                                              unicon_pairs **out);
/* The same of a part of the rows, for statistics (unicon/stats.h): no label has to be on both sides,
 * as the partners may be in another part. Labels are the same where their numbers are. */
UNICON_CALL unicon_status unicon_pairs_labels_part(unicon_ctx *ctx, const int64_t *label_x,
                                                   int64_t n_x, const int64_t *label_y, int64_t n_y,
                                                   unicon_pairs **out);
/* The number by which a text is known as a label, in files and in statistics: its value where it is
 * a whole number of 64 bits, else a hash. */
UNICON_API int64_t unicon_label_number(const char *text);
/* One set of rows, given as x and as y: row i with the other rows of its label. With itself a row
 * is neither a pair nor a negative. */
UNICON_CALL unicon_status unicon_pairs_one_set(unicon_ctx *ctx, const int64_t *label, int64_t n,
                                               unicon_pairs **out);
/* Reads pairs from a TSV file of x_row, y_row and, if you like, weight, with or without a header
 * line; or from an n by 2 .npy, .ibin or .ivecs file of integers. */
UNICON_CALL unicon_status unicon_pairs_read(unicon_ctx *ctx, const char *path, int64_t n_x,
                                            int64_t n_y, unicon_pairs **out);
/* Reads labels from two files: one label per line (any text), or integers in .npy, .ibin or .ivecs.
 */
UNICON_CALL unicon_status unicon_pairs_read_labels(unicon_ctx *ctx, const char *x_path,
                                                   const char *y_path, int64_t n_x, int64_t n_y,
                                                   unicon_pairs **out);
UNICON_CALL unicon_status unicon_pairs_read_labels_part(unicon_ctx *ctx, const char *x_path,
                                                        const char *y_path, int64_t n_x,
                                                        int64_t n_y, unicon_pairs **out);
UNICON_API void unicon_pairs_destroy(unicon_pairs *pairs);

/* Sets pairs to be ignored, neither positive nor negative; or, with weights from 0 to 1 (NULL: all
 * 0), to count that much as negatives. Call it at most once, before the pairs are used. A pair that
 * is positive or a given negative is an error. A count of 0 changes nothing. */
UNICON_CALL unicon_status unicon_pairs_set_ignored(unicon_ctx *ctx, unicon_pairs *pairs,
                                                   const int64_t *x, const int64_t *y,
                                                   const double *weight, int64_t count);
/* Sets the only negatives, at least one, and how much they count, from 0 to 1 (NULL: all 1).
 * Without this call every pair that is neither positive nor ignored is a negative. The same rules
 * hold. */
UNICON_CALL unicon_status unicon_pairs_set_negatives(unicon_ctx *ctx, unicon_pairs *pairs,
                                                     const int64_t *x, const int64_t *y,
                                                     const double *weight, int64_t count);
/* The same, from files like those of unicon_pairs_read. */
UNICON_CALL unicon_status unicon_pairs_read_ignored(unicon_ctx *ctx, unicon_pairs *pairs,
                                                    const char *path);
UNICON_CALL unicon_status unicon_pairs_read_negatives(unicon_ctx *ctx, unicon_pairs *pairs,
                                                      const char *path);

/* The number of positive pairs. */
UNICON_API int64_t unicon_pairs_count(const unicon_pairs *pairs);

/* A training or validation set. `pairs` NULL: row i with row i. `groups`: a number for each row of
 * x; rows of one group are never split between training and validation. NULL: rows connected by
 * pairs are a group. */
typedef struct unicon_data {
  size_t size; /* set by UNICON_DATA */
  const unicon_rows *x, *y;
  const unicon_pairs *pairs;
  const int64_t *groups;
} unicon_data;

#ifdef __cplusplus
#define UNICON_DATA() \
  { sizeof(unicon_data), NULL, NULL, NULL, NULL }
#else
#define UNICON_DATA(...) ((unicon_data){.size = sizeof(unicon_data), __VA_ARGS__})
#endif

/* ---- 6. Model ----------------------------------------------------------------------------- */

typedef struct unicon_model unicon_model;

/* Fits a model on `train`. By default (preset auto) closed forms are compared on held-out pairs,
 * and the best is refined where that helps. `validation` holds the pairs to compare on; NULL: a
 * part of the training pairs is held out for it. */
UNICON_CALL unicon_status unicon_fit(unicon_ctx *ctx, const unicon_data *train,
                                     const unicon_data *validation, const unicon_options *options,
                                     unicon_model **out);
UNICON_API void unicon_model_destroy(unicon_model *model);

/* A model is one .safetensors file; docs/model-format.md lists its tensors. It is written under a
 * temporary name and then renamed, so that an older file stays intact until the new one is
 * complete. */
UNICON_CALL unicon_status unicon_model_save(unicon_ctx *ctx, const unicon_model *model,
                                            const char *path);
UNICON_CALL unicon_status unicon_model_load(unicon_ctx *ctx, const char *path, unicon_model **out);

/* The content of that file in memory: *size bytes. `out` NULL asks for the size alone; a `room`
 * that is too small is an error. */
UNICON_CALL unicon_status unicon_model_to_bytes(unicon_ctx *ctx, const unicon_model *model,
                                                void *out, size_t room, size_t *size);
/* The bytes may start at any address and are not needed afterwards. */
UNICON_CALL unicon_status unicon_model_from_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                                  unicon_model **out);

UNICON_API int64_t unicon_model_rank(const unicon_model *model);
UNICON_API int64_t unicon_model_width(const unicon_model *model, unicon_side side);

/* The singular values, `rank` of them, largest first (for fused batches: of each part in turn). */
UNICON_API const float *unicon_model_spectrum(const unicon_model *model);

/* Metadata as text: options in force, sizes, losses, residual of the SVD; NULL for unknown keys. */
UNICON_API const char *unicon_model_meta(const unicon_model *model, const char *key);
/* Entry `index`, in the order of the file; returns 0 past the end. */
UNICON_API int unicon_model_meta_at(const unicon_model *model, size_t index, const char **key,
                                    const char **value);

/* 16 hexadecimal digits, ended by NUL, that differ between models: of every number and every text
 * inside. Files of vectors name the model that made them by it. */
enum { UNICON_MODEL_ID = 17 };
UNICON_API void unicon_model_id(const unicon_model *model, char out[UNICON_MODEL_ID]);

/* ---- 7. Use ------------------------------------------------------------------------------- */

/* Balanced scores. A candidate that is close to everything pushes true matches down. So a model
 * keeps a bank of embedded training rows of each side, and the bank of the queries' side gives each
 * candidate v a bias b(v). The score of v for a query u is
 *     u.v - b(v).
 * Search, evaluate, ranks and classify use it unless told otherwise. Formulas: docs/method.md,
 * section 8. */
typedef struct unicon_balance unicon_balance;

/* Another way to balance than that of the model. Option `balance` sets kind and strength; auto: as
 * the model says, or, where `model` is NULL, softmax:10 with banks and off without. `bank_x` and
 * `bank_y`, at least 16 embedded rows each, replace the model's; NULL: keep those. Beside a model
 * they may be of form QUERY or INDEX. */
UNICON_CALL unicon_status unicon_balance_create(unicon_ctx *ctx, const unicon_model *model,
                                                const unicon_options *options,
                                                const unicon_rows *bank_x,
                                                const unicon_rows *bank_y, unicon_balance **out);
UNICON_API void unicon_balance_destroy(unicon_balance *balance);

/* How scores are balanced, as option `balance` writes it: "off", "softmax:10", ... */
UNICON_API const char *unicon_balance_text(const unicon_balance *balance);
/* Rows of that side's bank; 0 if scores are balanced without a bank, or not at all. */
UNICON_API int64_t unicon_balance_rows(const unicon_balance *balance, unicon_side side);

/* What an embedded row looks like. The inner product of a QUERY row and an INDEX row is the
 * balanced score, so any inner product index ranks as unicon_search does. The COSINE forms do the
 * same for indexes that only know the cosine. */
typedef enum unicon_form {
  UNICON_FORM_RAW = 0,          /* z, rank numbers */
  UNICON_FORM_UNIT = 1,         /* v = z / |z| */
  UNICON_FORM_QUERY = 2,        /* [v, 1] */
  UNICON_FORM_INDEX = 3,        /* [v, -b(v)] */
  UNICON_FORM_QUERY_COSINE = 4, /* [v, 1, 0] */
  UNICON_FORM_INDEX_COSINE = 5  /* [v, -b(v), sqrt(1 - b(v)^2)], of length sqrt(2) */
} unicon_form;

/* How many numbers a row of that form has, for vectors of `rank` dimensions. */
UNICON_API int64_t unicon_form_width(int64_t rank, unicon_form form);

/* Rows and the model to see them through. `model` NULL: the rows are vectors of the shared space
 * already, of the given form; RAW and UNIT rows are scaled to length 1, QUERY and INDEX rows are
 * taken as they are. `balance` NULL: as the model says. The balance of the candidates' view counts.
 */
typedef struct unicon_view {
  size_t size; /* set by UNICON_VIEW */
  const unicon_rows *rows;
  const unicon_model *model;
  const unicon_balance *balance;
  unicon_side side;
  unicon_form form;
} unicon_view;

#ifdef __cplusplus
#define UNICON_VIEW() \
  { sizeof(unicon_view), NULL, NULL, NULL, UNICON_X, UNICON_FORM_RAW }
#else
#define UNICON_VIEW(...) ((unicon_view){.size = sizeof(unicon_view), __VA_ARGS__})
#endif

/* Embeds rows first .. first + count - 1 into `out`, unicon_form_width numbers each. A row that is
 * not finite or all zero is an error. */
UNICON_CALL unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                       int64_t count, unicon_form form, float *out);

/* One row into `out` (rank numbers, length 1) for queries as they come: nothing is allocated, no
 * lock is taken, and any number of threads may do it at once. `room` is scratch memory of
 * unicon_embed_one_room floats. Without a context there is no sentence: UNICON_ERR_DATA is a row
 * that is not finite or all zero. */
UNICON_API int64_t unicon_embed_one_room(const unicon_model *model, unicon_side side);
UNICON_CALL unicon_status unicon_embed_one(const unicon_model *model, unicon_side side,
                                           const float *row, float *room, float *out);

/* A copy of the model with new banks, drawn from the given rows (from those that have a pair, if
 * there are pairs): for another domain, or, with balance quadratic:BETA, to keep no training rows.
 * Nothing is fitted again. Options: balance (auto: as the model; if that is off, softmax:10, or
 * softmax:5 below 4000 rows of y), balance_bank, seed, bad_rows. */
UNICON_CALL unicon_status unicon_model_rebalance(unicon_ctx *ctx, const unicon_model *model,
                                                 const unicon_data *data,
                                                 const unicon_options *options, unicon_model **out);

/* For each query the k rows of `base` with the largest scores, best first, exactly. `ids` and
 * `scores` have k numbers for each query; if base has fewer rows the rest is -1 and -inf. Equal
 * scores come in row order. The score is the float64 product of the float32 rows of forms QUERY and
 * INDEX. */
UNICON_CALL unicon_status unicon_search(unicon_ctx *ctx, const unicon_view *queries,
                                        const unicon_view *base, int64_t k, int64_t *ids,
                                        float *scores);

/* Retrieval quality in both directions; of equal scores a match comes last. Option ci adds 95 %
 * bootstrap intervals, bad_rows drop leaves out unusable rows with their pairs. A warning is logged
 * if the queries look unlike the bank that balances them. `pairs` NULL: row i with row i. The
 * result:
 *     pairs                     positive pairs among the rows in use
 *     x_to_y                    rows of x are the queries, rows of y the candidates:
 *       queries, candidates     queries are the rows with at least one match
 *       hit@1 hit@5 hit@10      share of queries with a match among the first k: papers' R@k
 *       recall@1 ...            mean share of a query's matches among the first k
 *       mrr                     mean of 1 / rank of the first match
 *       map, ndcg@10
 *       median_rank, mean_rank  of the first match, 1 being best
 *       chance.hit@1 ...        of a random order
 *       plain.hit@1 ...         all of these without balance
 *       ci.hit@1 ...            low and high, with option ci
 *       hubs.skewness           of how often each candidate is among the first ten of a query;
 *                               0: there are no hubs
 *       hubs.never_found        share of the candidates that never are
 *       hubs.plain_skewness, hubs.plain_never_found
 *     y_to_x                    the other way round
 *     balance, bank_x, bank_y   how scores were balanced, and rows of the banks
 *     dropped.x, dropped.y      rows left out */
UNICON_CALL unicon_status unicon_evaluate(unicon_ctx *ctx, const unicon_view *x,
                                          const unicon_view *y, const unicon_pairs *pairs,
                                          const unicon_options *options, unicon_result **out);

#ifdef __cplusplus
}
#endif

#endif
