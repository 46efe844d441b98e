/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does for the library: the interface of plugins.
 *
 * A plugin is a shared library libunicon_NAME.so with one exported function, UNICON__DEVICE_ENTRY,
 * which returns a table of functions. It links nothing of this library and includes this header
 * alone (C11 or C++). The host finds it at run time (device/plugin.h), checks its version and asks
 * whether it is usable. The CPU is the device without a table: every stage has a host road of its
 * own, which is the reference, and which goes on where an entry of a table is NULL.
 *
 * Data live in matrices of the device from one stage to the next. An operation is a whole stage on
 * a block of rows, so that a device is asked seldom and with much work; the host cuts blocks to what
 * `memory` says is left, and to most_rows. One thread calls an open device at a time; several may be
 * open, each in the hands of another thread.
 *
 * Numbers. Matrices are row-major without gaps. float32 data, products in float32 or better, sums
 * over rows in float64 as each operation says; formulas are those of docs/method.md. The same calls
 * must give the same bytes, whatever else the device does. Infinities and NaN pass through: the
 * host looks for them.
 *
 * Failure. Functions return a unicon__device_status. After FAILED and MEMORY `error` gives a
 * sentence: what was asked, what is there. Nothing an operation was to write holds then, and the
 * host ends the call or, after MEMORY, may ask again for less. ELSEWHERE says "not this case", at
 * once and without effect: the host road does it. Operations may run on after they return;
 * what fails then is said by a later one, at the latest by `download`. */
#ifndef UNICON_DEVICE_DEVICE_H
#define UNICON_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the whole interface. A host takes plugins of its own version only: both are built together. */
#define UNICON__DEVICE_VERSION 3
#define UNICON__DEVICE_ENTRY "unicon__device_entry"

typedef enum unicon__device_status {
  UNICON__DEVICE_OK = 0,
  UNICON__DEVICE_FAILED = 1,
  UNICON__DEVICE_MEMORY = 2,    /* the limit, or the device, has no more */
  UNICON__DEVICE_CANCELLED = 3, /* the host's poll said so */
  UNICON__DEVICE_ELSEWHERE = 4
} unicon__device_status;

/* An open device, and a matrix of it: the plugin's own. */
typedef struct unicon__device unicon__device;
typedef struct unicon__matrix unicon__matrix;

/* Elements, numbered as unicon_dtype. Matrices are F32 or F64; all of them may be uploaded. */
enum {
  UNICON__ELEMENT_F16 = 0,
  UNICON__ELEMENT_BF16 = 1,
  UNICON__ELEMENT_F32 = 2,
  UNICON__ELEMENT_F64 = 3,
  UNICON__ELEMENT_I8 = 4,
  UNICON__ELEMENT_U8 = 5
};

/* What a plugin may call, on the calling thread, inside an operation. `poll` is for operations that
 * take more than about 0.1 s: not 0 means stop and return CANCELLED. `copy` is memcpy by all threads
 * of the host, of `rows` rows of `bytes` bytes with so many bytes between their beginnings. */
typedef struct unicon__device_host {
  size_t size; /* of this struct */
  void *user;
  int (*poll)(void *user);
  void (*copy)(void *user, void *to, int64_t to_stride, const void *from, int64_t from_stride,
               int64_t bytes, int64_t rows);
  /* 1: exp_sums and weigh may round scores and weights to 16 bits, as docs/numerics.md says; all
   * other operations are as they are. */
  int32_t reduced;
} unicon__device_host;

typedef struct unicon__device_memory {
  uint64_t used, peak; /* bytes of matrices and of all room that operations keep or had at once */
  uint64_t left;       /* until the limit, or until the device is full */
} unicon__device_memory;

/* Rows in memory of a kind of device that others have filled or will read: where they lie, and how.
 * `number` says on which device of the kind. Work on them is in order on `stream`, as the kind has
 * it (CUDA: 1 and 2 are the default streams, else the stream itself); 0: none is under way. */
typedef struct unicon__foreign {
  void *data;                                 /* element (0, 0) */
  int64_t rows, cols, row_stride, col_stride; /* bytes */
  int32_t element, number;
  uint64_t stream;
} unicon__foreign;

/* ---- rows to features ----------------------------------------------------------------------- */

enum { UNICON__DEVICE_LINEAR = 0, UNICON__DEVICE_KERNEL = 1, UNICON__DEVICE_RANDOM = 2 };

/* Kernels, numbered as unicon__kernel_kind; formulas in features/kernel.h. */
enum {
  UNICON__DEVICE_KERNEL_LINEAR = 0,
  UNICON__DEVICE_KERNEL_COSINE = 1,
  UNICON__DEVICE_KERNEL_ARCCOS0 = 3,
  UNICON__DEVICE_KERNEL_ARCCOS1 = 4,
  UNICON__DEVICE_KERNEL_ARCCOS2 = 5,
  UNICON__DEVICE_KERNEL_EXPCOS = 6,
  UNICON__DEVICE_KERNEL_RBF = 7,
  UNICON__DEVICE_KERNEL_MATERN12 = 8,
  UNICON__DEVICE_KERNEL_MATERN32 = 10,
  UNICON__DEVICE_KERNEL_MATERN52 = 11,
  UNICON__DEVICE_KERNEL_POLY = 12
};

/* The map of a side (features/feature.h):
 *
 *     u = x / |x| if `normalize` (0 stays 0), else x;  u -= center, where there is one
 *     LINEAR  f = u
 *     KERNEL  f_j = k(u, base_j), the squared length of base_j in square_j
 *     RANDOM  t_j = u . base_j;  ARCCOS0 f = sqrt(2/m) [t > 0], ARCCOS1 sqrt(2/m) t_+,
 *             ARCCOS2 sqrt(2/m) t_+^2 / sqrt 3, kernels of distances sqrt(2/m) cos(t + square_j)
 *     phi = f factor, where there is one, minus mean, where there is one
 *
 * Lengths are taken so that no square over- or underflows. */
typedef struct unicon__device_map {
  int32_t kind, kernel;
  int32_t normalize;
  int32_t degree; /* of POLY */
  double width;
  int64_t in, points, out;      /* LINEAR: points 0, out = in; without factor out = points */
  const unicon__matrix *base;   /* points by in */
  const unicon__matrix *square; /* 1 by points */
  const unicon__matrix *center; /* 1 by in, or NULL */
  const unicon__matrix *factor; /* points by out, upper triangular; or NULL */
  const unicon__matrix *mean;   /* 1 by out, or NULL */
} unicon__device_map;

/* ---- sparse rows ---------------------------------------------------------------------------- */

/* Entries of row i: start[i] .. start[i+1]-1, columns ascending, each at most once, unless an
 * operation says otherwise. Host memory. */
typedef struct unicon__device_sparse {
  int64_t rows;
  const int64_t *start; /* rows + 1 */
  const int64_t *column;
  const double *value; /* NULL: all 0 */
} unicon__device_sparse;

/* ---- the plane of scores -------------------------------------------------------------------- */

/* Scores s_ij = zx_i . zy_j of all rows of two F32 matrices of r columns; never stored whole. */
typedef struct unicon__device_plane {
  const unicon__matrix *zx, *zy;
  int64_t n_x, n_y, r;
} unicon__device_plane;

/* The sums of an exponential loss. With e_ij the value of `counts` at its entries, 1 elsewhere:
 *
 *     row i     sum_j e_ij exp(a s_ij) = row_sum[i] exp(row_top[i])
 *     column j  sum_i e_ij exp(a s_ij) = column_sum[j] exp(column_top[j])
 *
 * Not `shifted`: |a s| <= 44 for every score, and the tops are 0. Else each row and column has its
 * own running maximum; an empty sum is 0 with top -inf. Entries with e = 0 are not part of the
 * maximum. Exponentials and partial sums over at most 1024 entries in float32, beyond in float64. */
typedef struct unicon__device_exp {
  double a;
  int shifted;
  const unicon__device_sparse *counts;                 /* n_x rows */
  double *row_top, *row_sum, *column_top, *column_sum; /* host memory: n_x, n_x, n_y, n_y */
} unicon__device_exp;

/* How scores become weights S:
 *
 *     EXP       S = -(exp(a s) row_i + exp(a s) column_j), |a s| <= 44
 *     SHIFTED   S = -(exp(a s + row_i) + exp(a s + column_j)), row and column logarithms
 *     SIGMOID   S = -scale / (1 + exp(-(a s + bias)));  value = sum log(1 + exp(a s + bias))
 *     SQUARE    S = -scale s;                           value = sum s^2
 *
 * At the entries of `fixed` S is the value given there, and they add nothing to the sum of the
 * value. */
enum {
  UNICON__DEVICE_EXP = 0,
  UNICON__DEVICE_SHIFTED = 1,
  UNICON__DEVICE_SIGMOID = 2,
  UNICON__DEVICE_SQUARE = 3
};

typedef struct unicon__device_weights {
  int32_t form;
  double a, bias, scale;
  const float *row, *column;          /* EXP, SHIFTED: n_x, n_y; host memory */
  const unicon__device_sparse *fixed; /* n_x rows */
  /* A window of the plane: rows x0.., columns y0.. . */
  int64_t x0, n_x, y0, n_y;
  /* Features of its rows, from row phi_x0 and phi_y0 of these on. */
  const unicon__matrix *phi_x, *phi_y;
  int64_t phi_x0, phi_y0;
} unicon__device_weights;

/* ---- use ------------------------------------------------------------------------------------ */

enum { UNICON__DEVICE_SOFTMAX = 0, UNICON__DEVICE_CSLS = 1 };

/* Queries against candidates by their exact scores: products of float32 rows in float64, always
 * summed in the same order, so that equal rows tie. Rows first.. of each matrix, `width` of their
 * columns. */
typedef struct unicon__device_scores {
  const unicon__matrix *query, *candidate;
  int64_t q0, queries, c0, candidates, width;
  int64_t number;      /* of the first candidate */
  const int64_t *self; /* per query: the number of a candidate that is not there; or NULL */
} unicon__device_scores;

/* How many candidates are at or above the thresholds of a query, but for those of `hidden`:
 * above[k] += 1 for the first k with score >= threshold[k], thresholds descending from start[i].
 * Beside it the first candidates, hidden ones too, as by `nearest`. */
typedef struct unicon__device_ranks {
  const int64_t *start; /* queries + 1 */
  const double *threshold;
  const unicon__device_sparse *hidden; /* numbers of candidates; no values */
  int64_t *above;
  /* Or NULL: the largest, and the sum in float32 products, of the scores of candidates that are not
   * hidden: updated (start from -inf and 0). Of queries with a threshold. */
  double *top, *sum;
  int64_t k; /* of the lists score and id; 0: not wanted */
  double *score;
  int64_t *id;
} unicon__device_ranks;

/* ---- refine --------------------------------------------------------------------------------- */

/* One side of a refinement. F = scale G (row k times scale_k), F = whole G, or F = G. */
typedef struct unicon__device_tuned {
  const unicon__matrix *phi;           /* F32, p columns: the rows that batches are taken from */
  const unicon__matrix *scale, *whole; /* F32, 1 by p and p by p; at most one of them */
  unicon__matrix *g, *mean, *square;   /* F32, p by r: factors and their moments, updated */
  unicon__matrix *f;                   /* F32, p by r: F at the end */
} unicon__device_tuned;

/* phi of the loss, numbered as in loss/loss.h. */
enum { UNICON__DEVICE_LOG = 0, UNICON__DEVICE_LOG1P = 1, UNICON__DEVICE_IDENTITY = 2 };

/* Steps of Adam on minibatches. Batch t has rows row[s][start[s][t]] .. row[s][start[s][t+1]-1] of
 * phi of each side s, and as entries those of rows start[0][t] .. of `entries`, whose columns count
 * the batch's rows of y from 0, with omega_x and omega_y beside `entries->value`. With z = F^T phi
 * to length 1 (0 stays 0), s = z_i . z_j, u = a s, e the value of an entry, 1 elsewhere:
 *
 *     N_i = sum_j e_ij exp u_ij,  N_j = sum_i e_ij exp u_ij,  D = own exp u + N
 *     rho = 1 / D (LOG), 1 / (D + exp(nu u)) (LOG1P), a exp(-nu u) (IDENTITY)
 *     R_i = sum over the entries of i of omega_x rho(u, N_i),  R_j likewise with omega_y
 *     S_ij = omega_x slope(u, N_i) + omega_y slope(u, N_j) - e_ij exp(u) (R_i + R_j)
 *     slope(u, N) = rho (nu N - (1 - nu) own exp u);  where D = 0 an entry gives nothing
 *     value[t] = sum over entries of omega_x q(u, N_i) + omega_y q(u, N_j),  q = 1/a times
 *     log D - nu u (LOG), log(1 + D exp(-nu u)) (LOG1P); D exp(-nu u) (IDENTITY)
 *
 *     dU_i = ((z_i . d_i) z_i - d_i) / |F^T phi_i|,  d_i = sum_j S_ij z_j (0 where the length is 0)
 *     dG = scale, or whole^T, of Phi^T dU;  the same of y
 *     n = first + t + 1,  mean = .9 mean + .1 dG,  square = .999 square + .001 dG^2
 *     G = (1 - rate_t decay) G - rate_t (mean / (1 - .9^n)) / (sqrt(square / (1 - .999^n)) + floor)
 *     floor = 1e-4 times the root of the mean square of dG, + 1e-20
 *
 * Products in float32, sums of a row or column, values and mean squares in float64. No steps: F
 * alone. ELSEWHERE where a batch has no room. */
typedef struct unicon__device_steps {
  int64_t steps, first;
  const int64_t *start[2], *row[2]; /* start: steps + 1 numbers */
  const unicon__device_sparse *entries;
  const double *omega_x, *omega_y;
  double a, nu, own;
  int32_t phi;
  const double *rate;
  double decay;
  double *value; /* steps numbers, host memory */
} unicon__device_steps;

/* ---- held-out rows -------------------------------------------------------------------------- */

/* Ranks of matches among held-out rows, each side once the queries. Rows are the first `rank`
 * columns of held[s], column k times scale[s][k] (NULL: 1), to length 1 (0 stays 0), in float32;
 * those of bank[s] too, and then rounded to float16. A candidate's bias is that of the operation
 * `bias` by the bank of the other side, cut to [-1, 1]; without banks it is 0. The score of a query
 * u with a candidate v is [u, 1] . [v, -bias], as in unicon__device_scores. `of` has the lists of
 * both directions, of x first: thresholds are written, the scores of match[d] (numbers of
 * candidates) in descending order; then above, top and sum are filled as by `ranks`, from 0, -inf
 * and 0. ELSEWHERE where a row has more matches than the device sorts. */
typedef struct unicon__device_judge {
  const unicon__matrix *held[2], *bank[2];
  int64_t rank;
  const double *scale[2];
  int32_t form; /* of the bias */
  double strength;
  const int64_t *match[2], *self[2];
  double *threshold[2];
  unicon__device_ranks of[2]; /* of[d].threshold is threshold[d] */
} unicon__device_judge;

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct unicon__device_table {
  /* These two never move. */
  uint32_t version; /* UNICON__DEVICE_VERSION */
  uint32_t size;    /* of this struct */
  const char *name; /* the NAME of the file: small letters, digits */
  /* Which one `device auto` takes: the usable one with the largest; 0: never without being asked. */
  int32_t preference;
  int64_t most_rows;  /* of a block, at most; 0: as many as memory allows */
  double least_flops; /* stages of fewer stay on the host: they end before they would have begun */

  /* 1: can be opened; `text` says what it is ("NVIDIA H200, 139 GiB"). 0: `text` says why not. Must
   * not start the device: it is called to list it. */
  int (*usable)(char *text, size_t size);
  /* `limit`: most bytes of device memory; 0: no limit but the device's own. On failure `text` has
   * the sentence. `host` is copied by the plugin. */
  int (*open)(const unicon__device_host *host, uint64_t limit, unicon__device **out, char *text,
              size_t size);
  void (*close)(unicon__device *device); /* frees what is left */
  void (*error)(const unicon__device *device, char *text, size_t size);
  void (*memory)(const unicon__device *device, unicon__device_memory *out);

  /* ---- matrices: none of these may be NULL */

  int (*matrix_new)(unicon__device *device, int64_t rows, int64_t cols, int element,
                    unicon__matrix **out);                             /* zeros */
  void (*matrix_free)(unicon__device *device, unicon__matrix *matrix); /* NULL is fine */
  /* `count` rows from row `first` on; rows of host memory lie `stride` bytes apart, their elements
   * side by side at any address. Converted to the element of the matrix (float64 beyond float32
   * becomes inf). The memory may be reused on return. */
  int (*upload)(unicon__device *device, unicon__matrix *to, int64_t first, int64_t count,
                const void *from, int element, int64_t stride);
  /* In the element of the matrix. All that was asked before has run when it returns. */
  int (*download)(unicon__device *device, const unicon__matrix *from, int64_t first, int64_t count,
                  void *to, int64_t stride);

  /* ---- stages: NULL where the device has none */

  /* Features of rows raw 0 .. count-1 (F32, `in` columns; may be overwritten) to rows first.. . */
  int (*features)(unicon__device *device, const unicon__device_map *map, unicon__matrix *raw,
                  int64_t count, unicon__matrix *out, int64_t first);
  /* Rows to_first.. of `to` = rows row[0 .. count-1] of `from`, F32 of as many columns. */
  int (*gather)(unicon__device *device, const unicon__matrix *from, const int64_t *row,
                int64_t count, unicon__matrix *to, int64_t to_first);
  /* `count` rows of m from `first` on -= row (F32, 1 by the columns of m). */
  int (*shift)(unicon__device *device, unicon__matrix *m, int64_t first, int64_t count,
               const unicon__matrix *row);
  /* Embeddings: rows z_first.. of z = rows first.. of phi times weight (F32, p by r), scaled to
   * length 1 if `unit` (0 stays 0). z may have more columns than r: they stay. */
  int (*embed)(unicon__device *device, const unicon__matrix *phi, int64_t first, int64_t count,
               const unicon__matrix *weight, int unit, unicon__matrix *z, int64_t z_first);
  /* sum += sign a^T b over `count` rows from a_first and b_first on: F32, the leading columns that
   * `sum` (F64, rows by cols) has. Products in float32 over pieces of at most 4096 rows, summed in
   * float64 in order. Where a is b and the rows are the same, the lower triangle alone need hold. */
  int (*add_product)(unicon__device *device, const unicon__matrix *a, int64_t a_first,
                     const unicon__matrix *b, int64_t b_first, int64_t count, double sign,
                     unicon__matrix *sum, int64_t rows, int64_t cols);
  /* Of rows first.. of a, in float64 throughout, the leading `cols` columns: row 0 of `sum` (F64)
   * += sign sum a, row 1 += sign sum a^2, row 2 + w += sign sum weight_w[i] a_i, with `weight` in
   * host memory, `weights` times count. */
  int (*add_sums)(unicon__device *device, const unicon__matrix *a, int64_t first, int64_t count,
                  const double *weight, int64_t weights, double sign, unicon__matrix *sum,
                  int64_t cols);
  /* T = W Y: row i of t (F32) = sum over the entries of row i of value times row `column` of y.
   * Columns in any order, and more than once: then all of them count. */
  int (*combine)(unicon__device *device, const unicon__device_sparse *w, const unicon__matrix *y,
                 unicon__matrix *t);

  int (*exp_sums)(unicon__device *device, const unicon__device_plane *plane,
                  const unicon__device_exp *sums);
  /* c (F64, p_x by p_y) += Phi_x^T S Phi_y over a window; S Phi_y in float32 over pieces of at most
   * 4096 columns, the rest as in add_product. *value += the sum of the form over the window; NULL:
   * not wanted. phi_x NULL: the value alone, c is NULL. */
  int (*weigh)(unicon__device *device, const unicon__device_plane *plane,
               const unicon__device_weights *weights, unicon__matrix *c, double *value);

  /* out[i] (host memory) = the bias of row first + i of z, by the rows of `bank` (F32, m by r; z
   * may have more columns), before it is cut to [-1, 1]:
   *     SOFTMAX  (1/strength) log mean_k exp(strength bank_k . z)
   *     CSLS     half the mean of the min(strength, m) largest bank_k . z */
  int (*bias)(unicon__device *device, const unicon__matrix *z, int64_t first, int64_t count,
              const unicon__matrix *bank, int form, double strength, float *out);
  /* The k candidates of the largest scores of each query, of equals those of the smallest numbers:
   * merged into the lists score, id (host memory, queries by k, best first; free places at the end
   * have id -1). */
  int (*nearest)(unicon__device *device, const unicon__device_scores *scores, int64_t k,
                 double *score, int64_t *id);
  /* `scales` 2: ranks[0] by all columns, ranks[1] by all but the last, of one walk; `start` and
   * `hidden` are the same, top and sum are not wanted. 1: ranks[0]. ELSEWHERE for long lists. */
  int (*ranks)(unicon__device *device, const unicon__device_scores *scores,
               const unicon__device_ranks *ranks, int scales);

  /* ---- dense algebra in float64 on host memory, row-major; NULL where the host does it. With
   * ELSEWHERE and MEMORY the matrices are as they were */

  /* Eigenvalues of a symmetric matrix ascending in w; a (n by n, lower triangle read) becomes the
   * eigenvectors, one per row, of any sign. ELSEWHERE where it does not converge. */
  int (*eigen)(unicon__device *device, int64_t n, double *a, double *w);
  /* A (m by n) = U diag(s) V^T, q = min(m, n), s descending; u is m by q, vt q by n; a is destroyed.
   * Orthonormal to float64 rounding, small singular values too (not by way of A^T A).
   * ELSEWHERE where it does not converge. */
  int (*svd)(unicon__device *device, int64_t m, int64_t n, double *a, double *s, double *u,
             double *vt);
  /* The r leading triples of A (m by n): s descending, and one more (0 where there is none), u m by
   * r, v n by r, each pair of any sign. By way of the smaller of A A^T and A^T A: the basis of its
   * side is orthonormal to rounding, the other to 1e-16 (s_1 / s_k)^2; of singular values below 1e-7
   * of the largest nothing is left. ELSEWHERE where it does not converge. */
  int (*leading)(unicon__device *device, int64_t m, int64_t n, int64_t r, const double *a,
                 double *s, double *u, double *v);
  /* C (m by n) = op(A) op(B), op(A) m by k; matrices without gaps. */
  int (*product)(unicon__device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                 const double *a, const double *b, double *c);

  /* ---- memory of others; all or none of these */

  /* The kind of memory that matrices lie in, as DLPack numbers it: 1 is the host's, 2 CUDA's. */
  int32_t memory_kind;
  /* Rows to_first.. of `to` (F32) = rows first.. of `from`, converted as `upload` does. Both have
   * run when it returns. FAILED with a sentence where the memory is not of this device. */
  int (*receive)(unicon__device *device, unicon__matrix *to, int64_t to_first, int64_t count,
                 const unicon__foreign *from, int64_t first);
  /* Rows first.. of `to` (F32, elements side by side) = the leading columns of rows from_first.. of
   * `from`. */
  int (*hand)(unicon__device *device, const unicon__matrix *from, int64_t from_first, int64_t count,
              const unicon__foreign *to, int64_t first);
  /* The first of rows first .. first + count - 1 of m (F32) that has an infinity or NaN, or, if
   * `zero`, is all 0; relative to `first`; -1: none. */
  int (*flaw)(unicon__device *device, const unicon__matrix *m, int64_t first, int64_t count,
              int zero, int64_t *row);
  /* Memory that outlives the open device and may be freed by any thread; `number` is its device's. */
  int (*room_new)(unicon__device *device, uint64_t bytes, void **out, int32_t *number);
  void (*room_free)(void *room, int32_t number);

  /* ---- refine and held-out rows: NULL where the host does it */

  int (*refine)(unicon__device *device, const unicon__device_tuned side[2],
                const unicon__device_steps *steps);
  int (*judge)(unicon__device *device, const unicon__device_judge *judge);
} unicon__device_table;

/* Returns the table, which lives as long as the library is loaded. */
typedef const unicon__device_table *(*unicon__device_entry_fn)(void);

/* Plugins built for tests (-DUNICON_CUDA_FAULTS=ON; the soft device) also export this hook: the
 * `after`-th event from now on fails, of all open devices: an allocation, a copy, a launch, an
 * opening. `stays`: all that follow fail as well, as those of a GPU that has been taken away; `after`
 * 0: none does. Returns how many events were left before the one that was set; 0: it has struck. */
#define UNICON__DEVICE_FAULT "unicon__device_fault"
typedef long (*unicon__device_fault_fn)(long after, int stays);

#ifdef __cplusplus
}
#endif

#endif
