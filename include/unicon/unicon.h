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
 *     unicon_result *result = NULL;
 *     double hit = 0;
 *     if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
 *     if (unicon_rows_open(ctx, "image.npy", &x) || unicon_rows_open(ctx, "text.npy", &y) ||
 *         unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), 5, &pairs) ||
 *         unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y, .pairs = pairs), NULL, NULL, &model) ||
 *         unicon_evaluate(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
 *                         &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), pairs, NULL,
 *                         &result) ||
 *         unicon_result_number(result, "x_to_y.hit@1", &hit))
 *       fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
 *     else
 *       printf("hit@1 on the rows it was fitted on: %.3f\n", hit);
 *     unicon_result_destroy(result);
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

UNICON_CALL unicon_status unicon_ctx_create(unicon_ctx **out);
/* Not from a callback of a call that runs: see the rules. */
UNICON_API void unicon_ctx_destroy(unicon_ctx *ctx);

/* Sets an option of scope UNICON_SCOPE_CONTEXT by name: "threads", "max_mem". */
UNICON_CALL unicon_status unicon_ctx_set(unicon_ctx *ctx, const char *name, const char *value);

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

/* Called at most about ten times a second from the calling thread; a phase has a name, the share
 * done lies in 0..1. Return non-zero to cancel: the call ends with UNICON_ERR_CANCELLED. */
typedef int (*unicon_progress_fn)(void *user, const char *phase, double done);

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
  UNICON_SCOPE_BALANCE = 512
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

UNICON_CALL unicon_status unicon_options_create(unicon_ctx *ctx, unicon_options **out);
UNICON_API void unicon_options_destroy(unicon_options *options);

/* Sets one option; the error names the value, what is accepted and, for an unknown name, the
 * nearest known one. "-" and "_" are the same in names. */
UNICON_CALL unicon_status unicon_options_set(unicon_ctx *ctx, unicon_options *options,
                                             const char *name, const char *value);

/* The value in force (given, from the preset, or default) as text; NULL for an unknown name.
 * Valid until the options change. */
UNICON_API const char *unicon_options_get(const unicon_options *options, const char *name);

/* A preset's settings, one by one: *name and *value of setting `index`; 0 past the end. The value
 * "chosen" is no setting: the preset chooses on held-out pairs, unless the option is given. */
UNICON_API int unicon_preset_at(const char *preset, size_t index, const char **name,
                                const char **value);

/* ---- 4. Results --------------------------------------------------------------------------- */

/* What a call found: named numbers, texts and arrays, listed where the call is declared. New versions
 * may add entries, so read by name. A dot in a name is an object in the JSON: "x_to_y.hit@1" is
 * {"x_to_y": {"hit@1": ...}}. A value that does not exist (a chance that nobody knows) has no entry.
 * Everything that is returned lives as long as the result. */
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

/* The number of that name, integer or real. If there is none: UNICON_ERR_ARGUMENT, and NaN. */
UNICON_API unicon_status unicon_result_number(const unicon_result *result, const char *name,
                                              double *value);
/* NULL if there is no such text. */
UNICON_API const char *unicon_result_text(const unicon_result *result, const char *name);

/* An array of `rows` by `width` values, or a list of `rows` values: then the width is 0. NULL if
 * there is no such array of this kind. `rows` and `width` may be NULL. */
UNICON_API const double *unicon_result_reals(const unicon_result *result, const char *name,
                                             int64_t *rows, int64_t *width);
UNICON_API const int64_t *unicon_result_integers(const unicon_result *result, const char *name,
                                                 int64_t *rows, int64_t *width);

/* All entries: the name of entry `index`, NULL past the end, and the kind of a name. */
UNICON_API const char *unicon_result_name(const unicon_result *result, size_t index);
UNICON_API unicon_kind unicon_result_kind(const unicon_result *result, const char *name);

/* The result as a JSON object, as the command prints it with --json. Works like snprintf: at most
 * `room` bytes are written, the end of the text included; the length of the whole text, without its
 * end, is returned. */
UNICON_API size_t unicon_result_json(const unicon_result *result, char *out, size_t room);

/* ---- 5. Data ------------------------------------------------------------------------------ */

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

/* Opens PATH: .npy, FILE.safetensors:TENSOR, .fvecs, .fbin, or a folder of numbered .npy shards. */
UNICON_CALL unicon_status unicon_rows_open(unicon_ctx *ctx, const char *path, unicon_rows **out);

/* Rows in the caller's memory, borrowed. Strides are in bytes and may be negative or zero; `name`
 * is what errors call the matrix. */
UNICON_CALL unicon_status unicon_rows_wrap(unicon_ctx *ctx, const char *name, const void *data,
                                           unicon_dtype dtype, int64_t count, int64_t width,
                                           int64_t row_stride, int64_t col_stride,
                                           unicon_rows **out);
UNICON_API void unicon_rows_close(unicon_rows *rows);

UNICON_API int64_t unicon_rows_count(const unicon_rows *rows);
UNICON_API int64_t unicon_rows_width(const unicon_rows *rows);

/* Rows first .. first+count-1 as float32, width floats each. */
UNICON_CALL unicon_status unicon_rows_read(unicon_ctx *ctx, const unicon_rows *rows, int64_t first,
                                           int64_t count, float *out);

typedef enum unicon_side { UNICON_X = 0, UNICON_Y = 1 } unicon_side;

/* The sparse set of positive pairs (i, j) of an n_x by n_y problem. Class labels are kept as
 * labels: no list of n_x n_y / classes pairs is made. Only the loss `triplet` and psi `hinge` and
 * `identity` of the loss `general` keep numbers for every pair, and refuse more than 2^24 pairs of
 * labels at once (option `batch` makes them fewer). */
typedef struct unicon_pairs unicon_pairs;

/* Row i with row i; n_x must equal n_y. */
UNICON_CALL unicon_status unicon_pairs_identity(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                                unicon_pairs **out);
/* Rows k*i .. k*i+k-1 of y belong to row i of x; n_y must equal k*n_x. */
UNICON_CALL unicon_status unicon_pairs_per_x(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                             unicon_pairs **out);
/* The mirror image: n_x must equal k*n_y. */
UNICON_CALL unicon_status unicon_pairs_per_y(unicon_ctx *ctx, int64_t n_x, int64_t n_y, int64_t k,
                                             unicon_pairs **out);
/* `count` pairs (x[p], y[p]) with weights of 0 to FLT_MAX, or NULL for weight 1. A pair given twice
 * is an error. */
UNICON_CALL unicon_status unicon_pairs_list(unicon_ctx *ctx, int64_t n_x, int64_t n_y,
                                            const int64_t *x, const int64_t *y,
                                            const double *weight, int64_t count,
                                            unicon_pairs **out);
/* (i, j) is a pair if label_x[i] == label_y[j]. */
UNICON_CALL unicon_status unicon_pairs_labels(unicon_ctx *ctx, const int64_t *label_x, int64_t n_x,
                                              const int64_t *label_y, int64_t n_y,
                                              unicon_pairs **out);
/* From a file: TSV `x_row<TAB>y_row[<TAB>weight]`, header line optional, or an integer npy n by 2.
 */
UNICON_CALL unicon_status unicon_pairs_read(unicon_ctx *ctx, const char *path, int64_t n_x,
                                            int64_t n_y, unicon_pairs **out);
/* From two label files: one label per line (any text), or an integer npy. */
UNICON_CALL unicon_status unicon_pairs_read_labels(unicon_ctx *ctx, const char *x_path,
                                                   const char *y_path, int64_t n_x, int64_t n_y,
                                                   unicon_pairs **out);
UNICON_API void unicon_pairs_destroy(unicon_pairs *pairs);

/* Pairs that are neither positive nor negative; a count of 0 is none. To be called at most once,
 * before the pairs are first used. A pair that is positive, or also in the other set, is an error.
 */
UNICON_CALL unicon_status unicon_pairs_set_ignored(unicon_ctx *ctx, unicon_pairs *pairs,
                                                   const int64_t *x, const int64_t *y,
                                                   int64_t count);
/* The only negatives there are, at least one; without this call every pair that is not positive and
 * not ignored is one. The same rules hold. */
UNICON_CALL unicon_status unicon_pairs_set_negatives(unicon_ctx *ctx, unicon_pairs *pairs,
                                                     const int64_t *x, const int64_t *y,
                                                     int64_t count);
/* The same from files like those of unicon_pairs_read, without weights. */
UNICON_CALL unicon_status unicon_pairs_read_ignored(unicon_ctx *ctx, unicon_pairs *pairs,
                                                    const char *path);
UNICON_CALL unicon_status unicon_pairs_read_negatives(unicon_ctx *ctx, unicon_pairs *pairs,
                                                      const char *path);

/* Number of positive pairs. */
UNICON_API int64_t unicon_pairs_count(const unicon_pairs *pairs);

/* A training or validation set, made by UNICON_DATA. `pairs` NULL means row i with row i. `groups`:
 * n_x group numbers that a hold-out never splits, or NULL (connected components of the pairs). All
 * are borrowed, for the time of a call. */
typedef struct unicon_data {
  size_t size; /* of this struct; see the rules on sized structs */
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

/* Fits a model on `train`. `validation` (may be NULL) holds other pairs that choose between
 * candidates. Without options (preset auto) closed forms are compared on held-out pairs and the
 * best is refined where that helps. */
UNICON_CALL unicon_status unicon_fit(unicon_ctx *ctx, const unicon_data *train,
                                     const unicon_data *validation, const unicon_options *options,
                                     unicon_model **out);
UNICON_API void unicon_model_destroy(unicon_model *model);

/* One .safetensors file, written under a temporary name and renamed, so that an older file stays
 * whole until the new one is. docs/model-format.md lists the tensors. */
UNICON_CALL unicon_status unicon_model_save(unicon_ctx *ctx, const unicon_model *model,
                                            const char *path);
UNICON_CALL unicon_status unicon_model_load(unicon_ctx *ctx, const char *path, unicon_model **out);

/* The same bytes in memory. *size is how many there are; `out` NULL asks for that alone, and less
 * `room` than that is an error. */
UNICON_CALL unicon_status unicon_model_to_bytes(unicon_ctx *ctx, const unicon_model *model,
                                                void *out, size_t room, size_t *size);
/* The bytes may lie at any address and are not needed any more afterwards. */
UNICON_CALL unicon_status unicon_model_from_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
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

/* ---- 7. Use ------------------------------------------------------------------------------- */

/* Balanced scores. A candidate that is near everything pushes true matches down, so a model keeps a
 * bank of embedded training rows of each side, and from the bank of the other side every candidate
 * v has a bias b(v) that its scores are lowered by: score = u.v - b(v). Search, evaluate, ranks and
 * classify do this unless told otherwise. docs/method.md section 8 has the formulas. */
typedef struct unicon_balance unicon_balance;

/* How to balance in another way than a model says. Option `balance` sets the kind and strength
 * (auto: as the model says, which may be NULL; then off, or softmax:10 with banks). `bank_x` and
 * `bank_y` are embedded rows, at least 16, that take the place of the model's (NULL: those of the
 * model). Everything is copied. */
UNICON_CALL unicon_status unicon_balance_create(unicon_ctx *ctx, const unicon_model *model,
                                                const unicon_options *options,
                                                const unicon_rows *bank_x,
                                                const unicon_rows *bank_y, unicon_balance **out);
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

/* Rows as seen through a model, made by UNICON_VIEW. `model` NULL: the rows are vectors of a shared
 * space already, of the given form: RAW or UNIT vectors are scaled to length 1, QUERY and INDEX rows
 * are taken as they are. `balance` NULL: as the model says; of two views that of the candidates
 * counts. All are borrowed, for the time of a call. */
typedef struct unicon_view {
  size_t size; /* of this struct; see the rules on sized structs */
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

/* Embeds rows first .. first+count-1 into out (float32, unicon_form_width numbers each). Rows that
 * are not finite or all zero are an error. */
UNICON_CALL unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                       int64_t count, unicon_form form, float *out);

/* The model with new banks from rows of the given sets (their pairs, if any, say which rows may
 * enter): for another domain, or with option balance quadratic:BETA to keep no training rows.
 * Nothing is fitted again. Options: balance (auto: that of the model; where it is off softmax:10,
 * or softmax:5 below 4000 rows of y), balance_bank, seed, bad_rows. */
UNICON_CALL unicon_status unicon_model_rebalance(unicon_ctx *ctx, const unicon_model *model,
                                                 const unicon_data *data,
                                                 const unicon_options *options, unicon_model **out);

/* The k rows of `base` with the largest score for each query row, exactly: ids and scores are
 * queries by k; where base has fewer than k rows the rest is -1 and -inf. Equal scores come in
 * row order. The score is the cosine, less the bias of the base row where scores are balanced: the
 * float64 product of the float32 rows that forms QUERY and INDEX give. */
UNICON_CALL unicon_status unicon_search(unicon_ctx *ctx, const unicon_view *queries,
                                        const unicon_view *base, int64_t k, int64_t *ids,
                                        float *scores);

/* Retrieval quality in both directions. A tie counts as a miss. Option ci adds intervals (95 %
 * bootstrap); bad_rows drop leaves out rows that cannot be used, with their pairs. A warning says
 * where the queries look unlike the bank that balances them. The result:
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
 *       hubs.skewness           of how often each candidate is among the first ten of a query, over
 *                               all queries; 0: no hubs
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
